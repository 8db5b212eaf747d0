/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/fs/pmfs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/pmfs/ops.h"

#define CALLS_MAX 2000u
#define STORM_FILES 500u
#define STORM_CALLS 7u /* per file */

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

/* ---- The storm ------------------------------------------------------------------- */

/* The names of a file, in two directories; static, like that of ops.c. */
static const char *storm_name(const char *prefix, uint64_t number)
{
    static char names[2][32];
    static int turn;

    turn = !turn;
    snprintf(names[turn], sizeof(names[turn]), "%s-%llu", prefix,
             (unsigned long long)number);
    return names[turn];
}

/* Each file is made, written, linked, renamed, changed, and removed by both names. */
static int storm(struct bench *bench, const struct op *op, uint64_t number)
{
    uint64_t file = number / STORM_CALLS;
    uint64_t first = bench->dirs[0], second = bench->dirs[1];
    struct pmfs_attr attr = {.mode = 0600};
    static uint64_t ino;
    size_t done;
    int rc;

    (void)op;
    switch (number % STORM_CALLS) {
    case 0:
        rc = pmfs_mknod(bench->fs, first, storm_name("storm", file), S_IFREG | 0644, 0,
                        &nobody, &attr);
        ino = attr.ino;
        return rc;
    case 1:
        return pmfs_write(bench->fs, ino, 0, bench->buffer, 1024, 0, &done);
    case 2:
        return pmfs_link(bench->fs, ino, second, storm_name("link", file), &attr);
    case 3:
        return pmfs_rename(bench->fs, first, storm_name("storm", file), second,
                           storm_name("moved", file), 0);
    case 4:
        return pmfs_setattr(bench->fs, ino, &attr, PMFS_SET_MODE, NULL);
    case 5:
        return pmfs_unlink(bench->fs, second, storm_name("link", file));
    default:
        return pmfs_unlink(bench->fs, second, storm_name("moved", file));
    }
}

static const struct op storm_op = {
    .name = "metadata storm", .chunk = STORM_FILES * STORM_CALLS, .run = storm};

/* ---- Measuring ------------------------------------------------------------------- */

static struct minl2r_stats read_stats(struct bench *bench)
{
    struct minl2r_stats stats = {0};

    minl2r_stats_get(pmfs_pool(bench->fs), &stats);
    return stats;
}

static void add_spent(struct minl2r_stats *sum, const struct minl2r_stats *before,
                      const struct minl2r_stats *after)
{
    sum->fences += after->fences - before->fences;
    sum->lines_flushed += after->lines_flushed - before->lines_flushed;
    sum->lines_streamed += after->lines_streamed - before->lines_streamed;
    sum->log_payload_bytes += after->log_payload_bytes - before->log_payload_bytes;
    sum->log_bytes += after->log_bytes - before->log_bytes;
    sum->pm_bytes += after->pm_bytes - before->pm_bytes;
}

/* The calls between two resets. */
static int run_chunk(struct bench *bench, const struct op *op,
                     const struct ticks *clock, uint32_t *ticks)
{
    int rc = 0;

    uint64_t start = ticks_now();

    /* To the start of the next one, as in run.c. */
    for (uint64_t i = 0; rc == 0 && i < op->chunk; i++) {
        rc = op->run(bench, op, i);
        uint64_t end = ticks_now();
        uint64_t spent = end - start;

        ticks[i] =
            (uint32_t)(spent - (spent < clock->overhead ? spent : clock->overhead));
        start = end;
    }
    return rc;
}

static void find_timing(const struct op *op, const struct ticks *clock, uint32_t *ticks,
                        size_t count, struct timing *timing)
{
    double sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += ticks[i] * clock->ns_per_tick;
    *timing = (struct timing){
        .p50 = bench_percentile(ticks, count, 0.5) * clock->ns_per_tick,
        .p99 = count >= 100 ? bench_percentile(ticks, count, 0.99) * clock->ns_per_tick
                            : (double)NAN,
        .p999 = count >= 1000
                    ? bench_percentile(ticks, count, 0.999) * clock->ns_per_tick
                    : (double)NAN,
        .read_p50 = NAN,
        .write_p50 = NAN,
        .mb_s = op->size ? (double)count * op->size * 1000 / sum : (double)NAN,
    };
}

static int run_round(struct bench *bench, const struct op *op,
                     const struct ticks *clock, uint32_t *ticks, struct timing *timing,
                     struct result *result)
{
    uint32_t chunks = CALLS_MAX / op->chunk > 0 ? CALLS_MAX / op->chunk : 1;
    int rc = 0;

    if (op->size >= 65536)
        chunks = 1;
    for (uint32_t i = 0; rc == 0 && i < chunks; i++) {
        struct minl2r_stats before, after;

        rc = op->reset ? op->reset(bench, op, 0) : 0;
        before = read_stats(bench);
        if (rc == 0)
            rc = run_chunk(bench, op, clock, ticks + (size_t)i * op->chunk);
        after = read_stats(bench);
        add_spent(&result->counts.stats, &before, &after);
    }
    size_t count = (size_t)chunks * op->chunk;

    find_timing(op, clock, ticks, count, timing);
    bench_keep(result, ticks, count);
    result->calls += count;
    return rc;
}

static int measure(const struct plan *plan, struct bench *bench, const struct op *op,
                   const struct ticks *clock, uint32_t *ticks, struct result *result)
{
    static struct result warm_up;
    struct timing ignored;

    bench_result_clear(&warm_up, clock->ns_per_tick);
    int rc = run_round(bench, op, clock, ticks, &ignored, &warm_up);

    bench_result_clear(result, clock->ns_per_tick);
    for (size_t i = 0; rc == 0 && i < plan->rounds; i++)
        rc = run_round(bench, op, clock, ticks, &result->rounds[i], result);
    return rc;
}

/* Random overwrites and reads are called so for the schemes, too. */
static const char *workload_name(const struct op *op)
{
    return strcmp(op->name, "overwrite") == 0 ? "overwrite random"
           : strcmp(op->name, "read") == 0    ? "read random"
                                              : op->name;
}

int bench_pmfs(const struct plan *plan, pmfs_row_fn *row, void *arg)
{
    static struct result result;
    struct ticks clock = ticks_calibrate();
    uint32_t *ticks = calloc(STORM_FILES * STORM_CALLS + CALLS_MAX, sizeof(*ticks));
    struct bench bench;
    int rc = ticks ? bench_make(&bench) : -ENOMEM;

    if (rc < 0) {
        free(ticks);
        return rc;
    }
    for (size_t i = 0; rc == 0 && i <= op_count; i++) {
        const struct op *op = i < op_count ? &ops[i] : &storm_op;

        rc = measure(plan, &bench, op, &clock, ticks, &result);
        if (rc == 0)
            rc = row(arg, workload_name(op), op->size, &result);
    }
    bench_finish(&bench);
    free(ticks);
    return rc;
}
