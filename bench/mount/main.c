/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-mount - what a mounted pmfs costs beyond the kernel and libfuse: each job runs on
 * it and on a filesystem that keeps nothing and answers at once, round by round, with
 * who asks and who answers on one core.
 */
#include <errno.h>
#include <libpmem.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command.h"
#include "bench/harness.h"
#include "bench/mount/empty.h"
#include "bench/mount/jobs.h"
#include "bench/mount/servers.h"
#include "bench/scratch.h"
#include "bench/table.h"

#define POOL_SIZE ((uint64_t)192 << 20)
#define ABOVE_NS_MAX                                                                   \
    2000 /* per request, without what a copy of more than a block takes */
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
    COL_NS_COPY,
    COL_NS_OWN,
    COL_ASKED,
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
    /* That pmfs has to do and the empty filesystem has not; above a block only. */
    {"ns_copy", "copy ns", COLUMN_LATER_NUMBER, 0},
    /* Above, for each request that the job is about: see own_of(). */
    {"ns_own", "own ns", COLUMN_LATER_NUMBER, 0},
    {"asked", "asked for", COLUMN_LATER_TEXT, 0},
};

/* Of results that are older than what is subtracted. */
static bool has_bar(const struct cell *row)
{
    return !isnan(row[COL_NS_OWN].number) || !(row[COL_SIZE].number > BLOCK_SIZE);
}

static void print_bar(const struct cell *row, const char *bullet)
{
    double requests = row[COL_REQUESTS].number;
    bool is_free = requests < 1;
    double own = row[COL_NS_OWN].number;
    double figure = is_free      ? row[COL_NS_PMFS].number
                    : isnan(own) ? row[COL_NS_ABOVE].number / requests
                                 : own;
    char size[24] = "", asked[TABLE_TEXT_SIZE + 4] = "", copy[40] = "";

    if (row[COL_SIZE].number > 0)
        snprintf(size, sizeof(size), " of %.0f B", row[COL_SIZE].number);
    if (row[COL_ASKED].text[0])
        snprintf(asked, sizeof(asked), " (%s)", row[COL_ASKED].text);
    if (row[COL_NS_COPY].number > 0)
        snprintf(copy, sizeof(copy), " (a copy of %.0f taken off)",
                 row[COL_NS_COPY].number);
    printf("%s%s%s%s: %s %.0f%s, at most %d: %s\n", bullet, row[COL_OP].text, size,
           asked, is_free ? "no request; ns" : "ns above empty per request", figure,
           copy, ABOVE_NS_MAX, figure <= ABOVE_NS_MAX ? "met" : "MISSED");
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

/* Of one operation, by kind. */
struct requests {
    double of[REQUESTS];
};

/* A first batch, which warms up, and tells how many requests an operation makes. */
static int count_requests(struct side *side, struct requests *requests)
{
    const uint64_t *asked = servers_asked();
    uint64_t before[REQUESTS];
    int rc = run_all(side, side->job->before);

    for (int i = 0; i < REQUESTS; i++)
        before[i] = __atomic_load_n(&asked[i], __ATOMIC_RELAXED);
    if (rc == 0)
        rc = run_all(side, side->job->run);
    for (int i = 0; i < REQUESTS; i++)
        requests->of[i] =
            (double)(__atomic_load_n(&asked[i], __ATOMIC_RELAXED) - before[i]) /
            side->operations;
    return rc < 0 ? rc : run_all(side, side->job->after);
}

static double sum_of(const struct requests *requests)
{
    double sum = 0;

    for (int i = 0; i < REQUESTS; i++)
        sum += requests->of[i];
    return sum;
}

/* "1 mknod, 2 getattr"; what comes now and then is left out. */
static void write_requests(const struct requests *requests, char text[TABLE_TEXT_SIZE])
{
    size_t used = 0;

    text[0] = 0;
    for (int i = 0; i < REQUESTS; i++)
        if (requests->of[i] >= 0.5 && used < TABLE_TEXT_SIZE)
            used +=
                (size_t)snprintf(text + used, TABLE_TEXT_SIZE - used, "%s%.0f %s",
                                 used ? ", " : "", requests->of[i], request_names[i]);
}

/* ---- Copies ---------------------------------------------------------------------- */

/*
 * pmfs stores what is written in memory like that of its pool, past the caches; the empty
 * filesystem does not look at it. What is read the kernel copies from both: from zeros that
 * are in the caches, or from anywhere in the pool.
 */
struct copy {
    const struct job *job;
    uint32_t operations;
    uint8_t *memory; /* [EMPTY_FILE_SIZE] */
    uint64_t random_state;
    double ns[BENCH_ROUNDS_MAX];
};

static char copied[JOB_SIZE_MAX] __attribute__((aligned(4096)));
static const char zeros[JOB_SIZE_MAX] __attribute__((aligned(4096)));

static uint8_t *random_place(struct copy *copy)
{
    copy->random_state =
        copy->random_state * 6364136223846793005u + 1442695040888963407u;
    return copy->memory + (copy->random_state >> 33) %
                              (EMPTY_FILE_SIZE / copy->job->size) * copy->job->size;
}

static void copy_out(const void *from, uint32_t size)
{
    memcpy(copied, from, size);
    __asm__ volatile("" : : "r"(copied) : "memory"); /* it is used */
}

static int run_copies(void *arg, double *ns_per_op)
{
    struct copy *copy = arg;
    uint32_t size = copy->job->size;
    uint64_t start_ns = bench_now_ns();

    for (uint32_t i = 0; i < copy->operations; i++)
        if (copy->job->copies == JOB_WRITES)
            pmem_memcpy(random_place(copy), copied, size, PMEM_F_MEM_NONTEMPORAL);
        else
            copy_out(random_place(copy), size);
    uint64_t end_ns = bench_now_ns();

    *ns_per_op = (double)(end_ns - start_ns) / copy->operations;
    if (copy->job->copies == JOB_WRITES)
        return 0;
    for (uint32_t i = 0; i < copy->operations; i++)
        copy_out(zeros, size);
    *ns_per_op -= (double)(bench_now_ns() - end_ns) / copy->operations;
    return 0;
}

static int make_copy(struct copy *copy)
{
    const char *path = scratch_path("copy");
    size_t mapped_size;
    int is_pmem;

    copy->random_state = 1;
    copy->memory =
        path ? pmem_map_file(path, EMPTY_FILE_SIZE, PMEM_FILE_CREATE | PMEM_FILE_EXCL,
                             0600, &mapped_size, &is_pmem)
             : NULL;
    if (path)
        scratch_unlink(path);
    if (!copy->memory)
        return -errno;
    memset(copy->memory, 1, EMPTY_FILE_SIZE);
    return 0;
}

/* ---- Rows ------------------------------------------------------------------------ */

/* Of those that often come along with others; 0: not measured yet. */
static double above_of(const struct table *results, const char *op)
{
    for (size_t i = 0; i < results->row_count; i++)
        if (strcmp(table_row(results, i)[COL_OP].text, op) == 0)
            return table_row(results, i)[COL_NS_OWN].number;
    return 0;
}

/*
 * A request that a job is about, without those that the kernel makes besides and that are
 * measured by themselves. FORGET has no answer and counts for nothing: what it takes is
 * part of what comes before.
 */
static double own_of(const struct table *results, const struct requests *requests,
                     double above, double copy)
{
    static const enum request besides[] = {REQUEST_GETATTR, REQUEST_LOOKUP,
                                           REQUEST_GETXATTR};
    double all = sum_of(requests) - requests->of[REQUEST_FORGET];
    double others = all, of_others = isnan(copy) ? above : above - copy;

    for (size_t i = 0; i < sizeof(besides) / sizeof(*besides); i++) {
        double count = requests->of[besides[i]];

        others -= count;
        if (count >= 0.5)
            of_others -= count * fmax(0, above_of(results, request_names[besides[i]]));
    }
    if (others >= 0.5)
        return of_others / others;
    return (isnan(copy) ? above : above - copy) / all;
}

static int add_row(struct table *results, const struct side *sides,
                   const struct copy *copy, const struct requests *requests,
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
    row[COL_REQUESTS].number = sum_of(requests);
    write_requests(requests, row[COL_ASKED].text);
    row[COL_NS_EMPTY].number = bench_spread(sides[EMPTY].ns, rounds).median;
    row[COL_NS_PMFS].number = pmfs.median;
    row[COL_NS_MIN].number = pmfs.min;
    row[COL_NS_MAX].number = pmfs.max;
    row[COL_NS_ABOVE].number = bench_spread(above, rounds).median;
    if (job->size > BLOCK_SIZE)
        row[COL_NS_COPY].number = bench_spread(copy->ns, rounds).median;
    if (sum_of(requests) >= 0.5)
        row[COL_NS_OWN].number = own_of(results, requests, row[COL_NS_ABOVE].number,
                                        row[COL_NS_COPY].number);
    return 0;
}

static int measure_job(struct side *sides, struct copy *copy, const struct job *job,
                       const struct bench_options *options, struct table *results)
{
    struct bench_subject subjects[SYSTEMS + 1];
    size_t count = SYSTEMS;
    struct requests requests;
    double ignored;

    for (int i = 0; i < SYSTEMS; i++) {
        sides[i].job = job;
        sides[i].operations = options->is_quick ? 300 : 1000;
        subjects[i] = (struct bench_subject){run_batch, &sides[i], sides[i].ns};
    }
    copy->job = job;
    copy->operations = sides[PMFS].operations;
    if (job->size > BLOCK_SIZE)
        subjects[count++] = (struct bench_subject){run_copies, copy, copy->ns};
    int rc = count_requests(&sides[EMPTY], &requests);
    if (rc == 0)
        rc = run_batch(&sides[PMFS], &ignored);
    if (rc == 0)
        rc = bench_rounds(subjects, count, options->rounds);
    if (rc == 0)
        rc = add_row(results, sides, copy, &requests, options->rounds);
    if (rc < 0)
        fprintf(stderr, "bench-mount: %s: %s\n", job->name, strerror(-rc));
    return rc;
}

static int measure(const void *options, struct table *results)
{
    static struct side sides[SYSTEMS]; /* large */
    static struct copy copy;
    int rc = bench_pin();

    if (rc == 0)
        rc = make_copy(&copy);
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
        rc = measure_job(sides, &copy, &jobs[i], options, results);
    for (int i = 0; i < SYSTEMS; i++)
        load_close(&sides[i].load);
    servers_stop();
    pmem_unmap(copy.memory, EMPTY_FILE_SIZE);
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
    .room = "256 MiB",
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
