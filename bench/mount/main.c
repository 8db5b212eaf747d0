/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-mount - what a mounted pmfs costs beyond the kernel and libfuse: each job runs on
 * it and on a filesystem that keeps nothing and answers at once, round by round, with
 * who asks and who answers on one core.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command.h"
#include "bench/harness.h"
#include "bench/mount/jobs.h"
#include "bench/mount/servers.h"
#include "bench/scratch.h"
#include "bench/table.h"

#define POOL_SIZE ((uint64_t)192 << 20)
#define ABOVE_NS_MAX 2000 /* per request, with up to a block of content */
#define BLOCK_SIZE 4096

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

static int print_bars(const struct table *results, enum table_format format)
{
    for (size_t i = 0; i < results->row_count; i++) {
        const struct cell *row = table_row(results, i);

        if (has_bar(row))
            print_bar(row, bench_bullet(format));
    }
    return 0;
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
                       const struct bench_options *options, struct table *results)
{
    struct bench_subject subjects[SYSTEMS];
    double requests, ignored;

    for (int i = 0; i < SYSTEMS; i++) {
        sides[i].job = job;
        sides[i].operations = options->is_quick ? 300 : 1000;
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

static int measure(const void *options, struct table *results)
{
    static struct side sides[SYSTEMS]; /* large */
    int rc = bench_pin();

    if (rc == 0)
        rc = servers_start(POOL_SIZE);
    for (int i = 0; rc == 0 && i < SYSTEMS; i++)
        rc = load_open(&sides[i].load, servers_mountpoint((enum system)i));
    if (rc == 0)
        rc = load_touch(&sides[PMFS].load);
    if (rc < 0)
        return rc;
    bench_print_setup(options, NULL, NULL);
    for (uint32_t i = 0; rc == 0 && i < job_count; i++)
        rc = measure_job(sides, &jobs[i], options, results);
    for (int i = 0; i < SYSTEMS; i++)
        load_close(&sides[i].load);
    servers_stop();
    return rc;
}

/* ---- The command ----------------------------------------------------------------- */

static const struct bench_command command = {
    .name = "bench-mount",
    .about =
        "Measures what a mounted pmfs costs beside an empty filesystem: one that "
        "keeps\n"
        "nothing and answers at once, so that what is above it is ours and not the\n"
        "kernel's or libfuse's. Prints a table, then each bar and whether it is met.\n"
        "Needs to mount: /dev/fuse, and root or fusermount3.",
    .quick = "fewer and shorter rounds, with more noise",
    .rounds = 31,
    .quick_rounds = 11,
    .room = "192 MiB",
    .columns = columns,
    .column_count = COL_COUNT,
    .measure = measure,
    .print_bars = print_bars,
};

int main(int argc, char **argv)
{
    struct bench_options options = {0};

    return bench_main(&command, &options, argc, argv);
}
