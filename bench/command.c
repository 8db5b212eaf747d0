/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/command.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/harness.h"
#include "bench/scratch.h"

enum { EXIT_USAGE = 2 };

#define DIRECTORY "/dev/shm"

/* ---- Options --------------------------------------------------------------------- */

#define OPTIONS_MAX 16
#define FIRST_OWN 256 /* above all letters */

static const struct option shared[] = {
    {"quick", no_argument, NULL, 'q'},        {"rounds", required_argument, NULL, 'n'},
    {"dir", required_argument, NULL, 'd'},    {"json", required_argument, NULL, 'j'},
    {"render", required_argument, NULL, 'r'}, {"help", no_argument, NULL, 'h'},
};
#define SHARED_COUNT (sizeof(shared) / sizeof(*shared))

static bool has_option(const struct bench_command *command, int letter)
{
    return letter == 'q' ? command->quick != NULL
                         : letter != 'n' || command->rounds > 0;
}

static void list_options(const struct bench_command *command, struct option *list)
{
    size_t count = 0;

    for (size_t i = 0; i < SHARED_COUNT; i++)
        if (has_option(command, shared[i].val))
            list[count++] = shared[i];
    for (int i = 0; command->options && command->options[i].name; i++) {
        const struct bench_option *own = &command->options[i];

        assert(count < OPTIONS_MAX - 1);
        list[count++] =
            (struct option){own->name, own->value ? required_argument : no_argument,
                            NULL, FIRST_OWN + i};
    }
    list[count] = (struct option){0};
}

int bench_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *number)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (*text < '0' || *text > '9' || *end != '\0' || value < low || value > high)
        return -EINVAL;
    *number = value;
    return 0;
}

/* ---- Usage ----------------------------------------------------------------------- */

static void print_option(const char *name, const char *value, const char *help)
{
    char head[32];

    snprintf(head, sizeof(head), "--%s%s%s", name, value ? " " : "",
             value ? value : "");
    printf("  %-16s ", head);
    for (; *help; help++) {
        putchar(*help);
        if (*help == '\n')
            printf("%19s", "");
    }
    putchar('\n');
}

static void print_help(const struct bench_command *command)
{
    char text[256];

    printf("Usage: %s [OPTION ...]\n\n%s\n\n", command->name, command->about);
    if (command->quick)
        print_option("quick", NULL, command->quick);
    if (command->rounds > 0) {
        snprintf(text, sizeof(text), "rounds (default %zu)", command->rounds);
        print_option("rounds", "N", text);
    }
    for (const struct bench_option *own = command->options; own && own->name; own++)
        print_option(own->name, own->value, own->help);
    snprintf(text, sizeof(text),
             "where files are made: tmpfs or DAX (default %s);\nneeds %s", DIRECTORY,
             command->room);
    print_option("dir", "DIR", text);
    print_option("json", "FILE", "also write the results there");
    print_option("render", "FILE", "measure nothing: print such results as Markdown");
    print_option("help", NULL, "this text");
    puts("\nExit status: 0, 1 if it could not run, 2 for a wrong usage.");
}

static int refuse(const struct bench_command *command)
{
    fprintf(stderr, "Try: %s --help\n", command->name);
    return EXIT_USAGE;
}

static int refuse_value(const struct bench_command *command, const char *option)
{
    fprintf(stderr, "%s: --%s: not understood: %s\n", command->name, option,
            *optarg ? optarg : "nothing");
    return refuse(command);
}

static int refuse_argument(const struct bench_command *command, const char *argument)
{
    fprintf(stderr, "%s: one argument too many: %s\n", command->name, argument);
    return refuse(command);
}

/* ---- Parsing --------------------------------------------------------------------- */

struct request {
    const struct bench_command *command;
    struct bench_options *options; /* the benchmark's, which begins with these */
    const char *render_path;       /* NULL: measure */
    bool wants_help;
};

static int parse_rounds(struct bench_options *options, const char *text)
{
    uint64_t rounds = 0;
    int rc = bench_parse_number(text, 1, BENCH_ROUNDS_MAX, &rounds);

    options->rounds = rounds;
    return rc;
}

static int parse_path(const char *text, const char **path)
{
    *path = text;
    return *text ? 0 : -EINVAL;
}

static int parse_option(struct request *request, int option)
{
    switch (option) {
    case 'q':
        request->options->is_quick = true;
        return 0;
    case 'n':
        return parse_rounds(request->options, optarg);
    case 'd':
        return parse_path(optarg, &request->options->directory);
    case 'j':
        return parse_path(optarg, &request->options->json_path);
    case 'r':
        return parse_path(optarg, &request->render_path);
    case 'h':
        request->wants_help = true;
        return 0;
    default:
        return request->command->options[option - FIRST_OWN].set(request->options,
                                                                 optarg);
    }
}

static int refuse_contradiction(const struct request *request)
{
    const struct bench_command *command = request->command;
    const char *what =
        command->contradiction ? command->contradiction(request->options) : NULL;

    if (!what)
        return 0;
    fprintf(stderr, "%s: %s\n", command->name, what);
    return refuse(command);
}

/* 0, or the exit status of a wrong usage. */
static int parse(struct request *request, int argc, char **argv)
{
    const struct bench_command *command = request->command;
    struct option list[OPTIONS_MAX];
    int option, index = 0;

    list_options(command, list);
    while (!request->wants_help &&
           (option = getopt_long(argc, argv, "", list, &index)) != -1) {
        if (option == '?') /* said by getopt_long() */
            return refuse(command);
        if (parse_option(request, option) < 0)
            return refuse_value(command, list[index].name);
    }
    if (!request->wants_help && optind != argc)
        return refuse_argument(command, argv[optind]);
    if (request->options->rounds == 0)
        request->options->rounds =
            request->options->is_quick ? command->quick_rounds : command->rounds;
    return request->wants_help ? 0 : refuse_contradiction(request);
}

/* ---- Printing -------------------------------------------------------------------- */

const char *bench_bullet(enum table_format format)
{
    return format == TABLE_MARKDOWN ? "- " : "  ";
}

/* In a document the bars come first. */
static int print_table_and_bars(const struct bench_command *command,
                                const struct table *results, enum table_format format)
{
    int rc;

    if (format == TABLE_MARKDOWN) {
        puts("### Bars\n");
        rc = command->print_bars(results, format);
        puts("\n### All results\n");
        table_print(results, format, stdout);
        return rc;
    }
    table_print(results, format, stdout);
    puts("\nBars");
    return command->print_bars(results, format);
}

static int print_results(const struct bench_command *command,
                         const struct table *results, enum table_format format)
{
    if (command->print)
        return command->print(results, format);
    if (command->print_bars)
        return print_table_and_bars(command, results, format);
    table_print(results, format, stdout);
    return 0;
}

/* ---- Stored results -------------------------------------------------------------- */

static int fail(const struct bench_command *command, const char *what, int rc)
{
    fprintf(stderr, "%s: %s: %s\n", command->name, what, table_strerror(rc));
    return EXIT_FAILURE;
}

static int render(const struct bench_command *command, const char *path)
{
    struct table results;
    FILE *in = fopen(path, "re");

    if (!in)
        return fail(command, path, -errno);
    table_init(&results, command->columns, command->column_count);
    int rc = table_read_json(&results, in);

    if (rc == 0)
        rc = print_results(command, &results, TABLE_MARKDOWN);
    table_finish(&results);
    fclose(in);
    return rc < 0 ? fail(command, path, rc) : EXIT_SUCCESS;
}

/* Opened before anything is measured; it appears only when it is complete, and replaces
 * a file, but no directory or device. */
struct json_file {
    const char *path; /* NULL: none */
    char *partial_path;
    FILE *file;
};

static int json_open(struct json_file *json, const char *path)
{
    struct stat there;

    *json = (struct json_file){.path = path};
    if (!path)
        return 0;
    if (stat(path, &there) == 0 && !S_ISREG(there.st_mode))
        return S_ISDIR(there.st_mode) ? -EISDIR : -ENOTSUP;
    if (asprintf(&json->partial_path, "%s.partial", path) < 0)
        return -ENOMEM;
    scratch_adopt(json->partial_path);
    json->file = fopen(json->partial_path, "we");
    return json->file ? 0 : -errno;
}

static int json_close(struct json_file *json, const struct table *results)
{
    if (!json->path)
        return 0;
    int rc = table_write_json(results, json->file);

    if (fclose(json->file) != 0 && rc == 0)
        rc = -errno;
    if (rc == 0 && rename(json->partial_path, json->path) < 0)
        rc = -errno;
    if (rc < 0)
        return rc; /* the path is needed until the file is removed, at exit */
    scratch_keep(json->partial_path);
    free(json->partial_path);
    return 0;
}

/* ---- Measuring ------------------------------------------------------------------- */

void bench_print_setup(const struct bench_options *options, const char *medium,
                       const char *reason)
{
    bench_print_machine();
    if (medium)
        printf("Medium: %s: %s\n", medium, reason);
    printf("Rounds: %zu\n\n", options->rounds);
    fflush(stdout);
}

static int measure(const struct bench_command *command,
                   const struct bench_options *options, struct table *results)
{
    uint64_t start_ns = bench_now_ns();
    int rc = command->measure(options, results);
    double took_s = (double)(bench_now_ns() - start_ns) / 1e9;

    if (rc < 0 || results->row_count == 0)
        return rc;
    rc = print_results(command, results, TABLE_PLAIN);
    printf("\nTook: %.0f s\n", took_s);
    return rc;
}

static int run(const struct bench_command *command, const struct bench_options *options)
{
    struct table results;
    struct json_file json;
    int rc = scratch_init(options->directory);

    if (rc < 0)
        return fail(command, options->directory, rc);
    rc = json_open(&json, options->json_path);
    if (rc < 0)
        return fail(command, options->json_path, rc);
    table_init(&results, command->columns, command->column_count);
    const char *what = "measuring";
    rc = measure(command, options, &results);
    if (rc == 0) {
        what = options->json_path;
        rc = json_close(&json, &results);
    }
    table_finish(&results);
    return rc < 0 ? fail(command, what, rc) : EXIT_SUCCESS;
}

int bench_main(const struct bench_command *command, void *options, int argc,
               char **argv)
{
    struct request request = {.command = command, .options = options};

    request.options->directory = DIRECTORY;
    int status = parse(&request, argc, argv);

    if (status != 0)
        return status;
    if (request.wants_help) {
        print_help(command);
        return EXIT_SUCCESS;
    }
    return request.render_path ? render(command, request.render_path)
                               : run(command, options);
}
