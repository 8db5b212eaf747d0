/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-mount - what a mounted pmfs costs beyond the kernel and libfuse: each job runs on
 * it and on a filesystem that keeps nothing and answers at once, round by round, with
 * who asks and who answers on one core.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"
#include "bench/mount/jobs.h"
#include "bench/mount/servers.h"
#include "bench/scratch.h"
#include "bench/table.h"

enum { EXIT_USAGE = 2 };

#define POOL_SIZE ((uint64_t)192 << 20)
#define ABOVE_NS_MAX 2000 /* per request, with up to a block of content */
#define BLOCK_SIZE 4096

struct options {
    size_t rounds;
    uint32_t operations; /* per batch */
    const char *directory;
    const char *json_path;   /* NULL: none */
    const char *render_path; /* NULL: measure */
};

/* ---- Results --------------------------------------------------------------------- */

enum {
    COL_OP,
    COL_SIZE,
    COL_REQUESTS,
    COL_NS_EMPTY,
    COL_NS_PMFS,
    COL_NS_MIN,
    COL_NS_MAX,
    COL_NS_ABOVE,
    COL_COUNT
};

static const struct column columns[COL_COUNT] = {
    {"op", "operation", COLUMN_TEXT, 0},
    {"size", "size", COLUMN_NUMBER, 0},
    {"requests", "requests", COLUMN_NUMBER, 2},
    {"ns_empty", "empty ns", COLUMN_NUMBER, 0},
    {"ns_pmfs", "pmfs ns", COLUMN_NUMBER, 0},
    {"ns_min", "min", COLUMN_NUMBER, 0},
    {"ns_max", "max", COLUMN_NUMBER, 0},
    {"ns_above", "above ns", COLUMN_NUMBER, 0},
};

/* What copying takes grows with the size; up to a block it is small beside the rest. */
static bool has_bar(const struct cell *row)
{
    return isnan(row[COL_SIZE].number) || row[COL_SIZE].number <= BLOCK_SIZE;
}

static void print_bar(const struct cell *row, const char *bullet)
{
    double requests = row[COL_REQUESTS].number;
    bool is_free = requests < 1;
    double figure =
        is_free ? row[COL_NS_PMFS].number : row[COL_NS_ABOVE].number / requests;
    char size[24] = "";

    if (row[COL_SIZE].number > 0)
        snprintf(size, sizeof(size), " of %.0f B", row[COL_SIZE].number);
    printf("%s%s%s: %s %.0f, at most %d: %s\n", bullet, row[COL_OP].text, size,
           is_free ? "no request; ns" : "ns above empty per request", figure,
           ABOVE_NS_MAX, figure <= ABOVE_NS_MAX ? "met" : "MISSED");
}

static void print_bars(const struct table *results, const char *bullet)
{
    for (size_t i = 0; i < results->row_count; i++) {
        const struct cell *row = table_row(results, i);

        if (has_bar(row))
            print_bar(row, bullet);
    }
}

static void print_results(const struct table *results, enum table_format format)
{
    if (format == TABLE_MARKDOWN) {
        puts("### Bars\n");
        print_bars(results, "- ");
        puts("\n### All results\n");
        table_print(results, format, stdout);
        return;
    }
    table_print(results, format, stdout);
    puts("\nBars");
    print_bars(results, "  ");
}

/* ---- Measuring ------------------------------------------------------------------- */

struct side {
    struct load load;
    const struct job *job;
    uint32_t operations;
    double ns[BENCH_ROUNDS_MAX];
};

static int run_all(struct side *side, job_fn *run)
{
    int rc = 0;

    for (uint32_t i = 0; run && rc == 0 && i < side->operations; i++)
        rc = run(&side->load, side->job, i);
    return rc;
}

static int run_batch(void *arg, double *ns_per_op)
{
    struct side *side = arg;
    int rc = run_all(side, side->job->before);
    uint64_t start_ns = bench_now_ns();

    if (rc == 0)
        rc = run_all(side, side->job->run);
    *ns_per_op = (double)(bench_now_ns() - start_ns) / side->operations;
    return rc < 0 ? rc : run_all(side, side->job->after);
}

/* A first batch, which warms up, and tells how many requests an operation makes. */
static int count_requests(struct side *side, double *requests)
{
    int rc = run_all(side, side->job->before);
    uint64_t before = servers_asked();

    if (rc == 0)
        rc = run_all(side, side->job->run);
    *requests = (double)(servers_asked() - before) / side->operations;
    return rc < 0 ? rc : run_all(side, side->job->after);
}

static int add_row(struct table *results, const struct side *sides, double requests,
                   size_t rounds)
{
    struct bench_spread pmfs = bench_spread(sides[PMFS].ns, rounds);
    double above[BENCH_ROUNDS_MAX];
    const struct job *job = sides[PMFS].job;
    struct cell *row = table_add(results);

    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < rounds; i++)
        above[i] = sides[PMFS].ns[i] - sides[EMPTY].ns[i];
    cell_set_text(&row[COL_OP], job->name);
    row[COL_SIZE].number = job->size ? job->size : (double)NAN;
    row[COL_REQUESTS].number = requests;
    row[COL_NS_EMPTY].number = bench_spread(sides[EMPTY].ns, rounds).median;
    row[COL_NS_PMFS].number = pmfs.median;
    row[COL_NS_MIN].number = pmfs.min;
    row[COL_NS_MAX].number = pmfs.max;
    row[COL_NS_ABOVE].number = bench_spread(above, rounds).median;
    return 0;
}

static int measure_job(struct side *sides, const struct job *job,
                       const struct options *options, struct table *results)
{
    struct bench_subject subjects[SYSTEMS];
    double requests, ignored;

    for (int i = 0; i < SYSTEMS; i++) {
        sides[i].job = job;
        sides[i].operations = options->operations;
        subjects[i] = (struct bench_subject){run_batch, &sides[i], sides[i].ns};
    }
    int rc = count_requests(&sides[EMPTY], &requests);
    if (rc == 0)
        rc = run_batch(&sides[PMFS], &ignored);
    if (rc == 0)
        rc = bench_rounds(subjects, SYSTEMS, options->rounds);
    if (rc == 0)
        rc = add_row(results, sides, requests, options->rounds);
    if (rc < 0)
        fprintf(stderr, "bench-mount: %s: %s\n", job->name, strerror(-rc));
    return rc;
}

static int measure_all(const struct options *options, struct table *results)
{
    static struct side sides[SYSTEMS]; /* large */
    int rc = servers_start(POOL_SIZE);

    for (int i = 0; rc == 0 && i < SYSTEMS; i++)
        rc = load_open(&sides[i].load, servers_mountpoint((enum system)i));
    if (rc == 0)
        rc = load_touch(&sides[PMFS].load);
    if (rc < 0)
        return rc;
    bench_print_machine();
    printf("Rounds: %zu\n\n", options->rounds);
    for (uint32_t i = 0; rc == 0 && i < job_count; i++)
        rc = measure_job(sides, &jobs[i], options, results);
    for (int i = 0; i < SYSTEMS; i++)
        load_close(&sides[i].load);
    servers_stop();
    return rc;
}

/* ---- Commands -------------------------------------------------------------------- */

static int fail(const char *what, int rc)
{
    fprintf(stderr, "bench-mount: %s: %s\n", what, table_strerror(rc));
    return EXIT_FAILURE;
}

static int write_json(const char *path, const struct table *results)
{
    FILE *file = fopen(path, "w");
    int rc = file ? table_write_json(results, file) : -errno;

    if (file && fclose(file) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

static int measure(const struct options *options)
{
    struct table results;
    int rc = scratch_init(options->directory);

    if (rc < 0)
        return fail(options->directory, rc);
    rc = bench_pin();
    if (rc < 0)
        return fail("cannot stay on one core", rc);
    table_init(&results, columns, COL_COUNT);
    rc = measure_all(options, &results);
    if (rc == 0)
        print_results(&results, TABLE_PLAIN);
    if (rc == 0 && options->json_path)
        rc = write_json(options->json_path, &results);
    table_finish(&results);
    return rc < 0 ? fail("measuring", rc) : EXIT_SUCCESS;
}

static int render(const char *path)
{
    struct table results;
    FILE *in = fopen(path, "r");

    if (!in)
        return fail(path, -errno);
    table_init(&results, columns, COL_COUNT);
    int rc = table_read_json(&results, in);

    if (rc == 0)
        print_results(&results, TABLE_MARKDOWN);
    table_finish(&results);
    fclose(in);
    return rc < 0 ? fail(path, rc) : EXIT_SUCCESS;
}

static void print_usage(FILE *out)
{
    fputs(
        "Usage: bench-mount [OPTION ...]\n"
        "\n"
        "Measures what a mounted pmfs costs beside an empty filesystem: one that "
        "keeps\n"
        "nothing and answers at once, so that what is above it is ours and not the\n"
        "kernel's or libfuse's. Prints a table, then each bar and whether it is met.\n"
        "Needs to mount: /dev/fuse, and root or fusermount3.\n"
        "\n"
        "  --quick         fewer and shorter rounds, with more noise\n"
        "  --rounds N      rounds (default 31)\n"
        "  --dir DIR       where the pool is made: tmpfs or DAX (default /dev/shm); "
        "needs\n"
        "                  192 MiB\n"
        "  --json FILE     also write the results there\n"
        "  --render FILE   measure nothing: print such results as Markdown\n"
        "  --help          this text\n"
        "\n"
        "Exit status: 0, 1 if it could not run, 2 for a wrong usage.\n",
        out);
}

static int parse_rounds(const char *text, size_t *rounds)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || value < 1 || value > BENCH_ROUNDS_MAX)
        return -EINVAL;
    *rounds = value;
    return 0;
}

static int parse_option(struct options *options, int option)
{
    switch (option) {
    case 'q':
        options->rounds = 11;
        options->operations = 300;
        return 0;
    case 'r':
        return parse_rounds(optarg, &options->rounds);
    case 'd':
        options->directory = optarg;
        return 0;
    case 'j':
        options->json_path = optarg;
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

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"quick", no_argument, NULL, 'q'},
        {"rounds", required_argument, NULL, 'r'},
        {"dir", required_argument, NULL, 'd'},
        {"json", required_argument, NULL, 'j'},
        {"render", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct options options = {
        .rounds = 31, .operations = 1000, .directory = "/dev/shm"};
    int option, rc = 0;

    while (rc == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        rc = parse_option(&options, option);
    if (rc < 0 || optind != argc) {
        bench_say_wrong(argv, option);
        print_usage(stderr);
        return EXIT_USAGE;
    }
    return options.render_path ? render(options.render_path) : measure(&options);
}
