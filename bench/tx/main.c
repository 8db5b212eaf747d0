/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-tx - compares transactions of minl2r with libpmemobj, libpmemblk and the floor.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/scratch.h"
#include "bench/tx/count.h"
#include "bench/tx/run.h"
#include "bench/tx/tx.h"

enum { EXIT_USAGE = 2 };

struct options {
    struct run_options run;
    bool quick;
    bool no_counts;
    const char *directory;
    const char *json_path;   /* NULL: none */
    const char *render_path; /* NULL: measure */
};

/* ---- Options --------------------------------------------------------------------- */

static void print_usage(FILE *out)
{
    fputs("Usage: bench-tx [OPTION ...]\n"
          "\n"
          "Compares transactions of minl2r with libpmemobj, libpmemblk, and the floor: "
          "what\n"
          "it costs to make the same bytes durable without atomicity. All run "
          "interleaved\n"
          "on one core. Prints a table, then each bar and whether it is met.\n"
          "\n"
          "  --quick         shorter rounds: ends within 30 seconds\n"
          "  --case NAME     only ranges, prove, block, snapshot, store64, abort, open "
          "or\n                  recover\n"
          "  --rounds N      rounds (default 11)\n"
          "  --dir DIR       where pools are made: tmpfs or DAX (default /dev/shm); "
          "needs\n"
          "                  2.3 GiB\n"
          "  --json FILE     also write the results there\n"
          "  --render FILE   measure nothing: print such results as Markdown\n"
          "  --no-counts     leave out the second run, which counts the fences and "
          "lines of\n"
          "                  PMDK's libraries\n"
          "  --help          this text\n"
          "\n"
          "Exit status: 0, 1 if it could not run, 2 for a wrong usage.\n",
          out);
}

static int usage_error(const char *what, const char *value)
{
    fprintf(stderr, "bench-tx: %s: %s\n", what, value);
    return -EINVAL;
}

static int parse_rounds(const char *text, size_t *rounds)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || value < 1 || value > BENCH_ROUNDS_MAX)
        return usage_error("no number of rounds", text);
    *rounds = value;
    return 0;
}

static int parse_option(struct options *options, int option)
{
    switch (option) {
    case 'q':
        options->quick = true;
        return 0;
    case 'c':
        options->run.case_name = optarg;
        return run_has_case(optarg) ? 0 : usage_error("no such case", optarg);
    case 'r':
        return parse_rounds(optarg, &options->run.rounds);
    case 'd':
        options->directory = optarg;
        return 0;
    case 'j':
        options->json_path = optarg;
        return 0;
    case 'n':
        options->no_counts = true;
        return 0;
    case 'm':
        options->render_path = optarg;
        return 0;
    case 'h':
        print_usage(stdout);
        exit(EXIT_SUCCESS);
    default:
        return -EINVAL; /* getopt has said why */
    }
}

static int parse_options(struct options *options, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"quick", no_argument, NULL, 'q'},
        {"case", required_argument, NULL, 'c'},
        {"rounds", required_argument, NULL, 'r'},
        {"dir", required_argument, NULL, 'd'},
        {"json", required_argument, NULL, 'j'},
        {"render", required_argument, NULL, 'm'},
        {"no-counts", no_argument, NULL, 'n'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        if (parse_option(options, option) < 0)
            return -EINVAL;
    return optind == argc ? 0 : usage_error("unexpected argument", argv[optind]);
}

static void choose_effort(struct options *options)
{
    if (options->run.rounds == 0)
        options->run.rounds = 11;
    options->run.operations = options->quick ? 2000 : 20000;
}

/* ---- Environment ----------------------------------------------------------------- */

/*
 * libpmem reads its variables when it is loaded, so this program starts itself again
 * with the only one it wants: on tmpfs libpmem would call msync() for each flush
 * without it. Nothing else that libpmem or libpmemobj read from there may favour one of
 * the systems.
 */
static int require_environment(char **argv)
{
    static const char *const others[] = {
        "PMEM_NO_FLUSH",  "PMEM_NO_CLWB",         "PMEM_NO_CLFLUSHOPT",
        "PMEM_NO_MOVNT",  "PMEM_MOVNT_THRESHOLD", "PMEM_AVX",
        "PMEM_AVX512F",   "PMEM_NO_MOVDIR64B",    "PMEM_NO_GENERIC_MEMCPY",
        "PMEM_MMAP_HINT", "PMEMOBJ_CONF",         "PMEMOBJ_CONF_FILE",
        "PMEMBLK_CONF",   "PMEMBLK_CONF_FILE",    "PMEMOBJ_NLANES",
    };
    const char *force = getenv("PMEM_IS_PMEM_FORCE");
    bool is_right = force && strcmp(force, "1") == 0;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        is_right = is_right && !getenv(others[i]);
        unsetenv(others[i]);
    }
    if (is_right)
        return 0;
    if (setenv("PMEM_IS_PMEM_FORCE", "1", 1) < 0)
        return -errno;
    execv("/proc/self/exe", argv);
    return -errno;
}

static void print_environment(const struct options *options)
{
    bench_print_machine();
    printf("PMDK: %s\n", BENCH_PMDK_VERSION);
    printf("Pools: in %s\n", options->directory);
    printf("Rounds: %zu, of %llu operations per system\n", options->run.rounds,
           (unsigned long long)options->run.operations);
}

/* ---- Output ---------------------------------------------------------------------- */

static int fail(const char *what, int rc)
{
    fprintf(stderr, "bench-tx: %s: %s\n", what, table_strerror(rc));
    return EXIT_FAILURE;
}

static int print_results(const struct table *results, enum table_format format)
{
    if (format == TABLE_MARKDOWN)
        puts("### Bars\n");
    else
        table_print(results, format, stdout);
    if (format == TABLE_PLAIN)
        puts("\nBars");
    int rc = bars_print(results, format, stdout);

    if (format == TABLE_MARKDOWN) {
        puts("\n### All results\n");
        table_print(results, format, stdout);
    }
    return rc;
}

/* The file appears only when it is complete. */
struct json_file {
    const char *path;
    char *partial_path;
    FILE *file;
};

static int json_open(struct json_file *json, const char *path)
{
    *json = (struct json_file){.path = path};
    if (!path)
        return 0;
    if (asprintf(&json->partial_path, "%s.partial", path) < 0)
        return -ENOMEM;
    scratch_adopt(json->partial_path);
    json->file = fopen(json->partial_path, "w");
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

/* ---- Commands -------------------------------------------------------------------- */

static int render(const char *path)
{
    struct table results;
    FILE *in = fopen(path, "r");

    if (!in)
        return fail(path, -errno);
    table_init(&results, tx_columns, TX_COLUMN_COUNT);
    int rc = table_read_json(&results, in);

    if (rc == 0)
        rc = print_results(&results, TABLE_MARKDOWN);
    table_finish(&results);
    fclose(in);
    return rc < 0 ? fail(path, rc) : EXIT_SUCCESS;
}

static int measure(const struct options *options)
{
    struct table results;
    struct json_file json;
    int rc = scratch_init(options->directory);

    if (rc < 0)
        return fail(options->directory, rc);
    rc = json_open(&json, options->json_path);
    if (rc < 0)
        return fail(options->json_path, rc);
    rc = bench_pin();
    if (rc < 0)
        return fail("cannot stay on one core", rc);
    print_environment(options);
    table_init(&results, tx_columns, TX_COLUMN_COUNT);
    if (run_workloads(&options->run, &results) < 0)
        return EXIT_FAILURE; /* it has said why */
    if (!options->no_counts) {
        rc = count_in_second_run(options->run.case_name, options->directory, &results);
        if (rc < 0)
            return fail("counting in a second run", rc);
    }
    rc = print_results(&results, TABLE_PLAIN);
    if (rc == 0)
        rc = json_close(&json, &results);
    table_finish(&results);
    return rc < 0 ? fail("writing the results", rc) : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    struct options options = {.directory = "/dev/shm"};

    if (parse_options(&options, argc, argv) < 0) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (options.render_path)
        return render(options.render_path);
    choose_effort(&options);
    int rc = require_environment(argv);

    return rc < 0 ? fail("setting PMEM_IS_PMEM_FORCE", rc) : measure(&options);
}
