/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - batches of calls on volumes of all schemes, timed one by one and counted.
 */
#ifndef BENCH_FS_RUN_H
#define BENCH_FS_RUN_H

#include "bench/fs/ticks.h"
#include "bench/fs/workload.h"
#include "bench/harness.h"
#include "bench/schemes/scheme.h"

#define THREADS_MAX 2
#define BLOCK_SIZE 4096u

/* Each thread has a file of its own. */
struct subject {
    struct volume volume;
    struct sequence sequences[THREADS_MAX];
};

struct plan {
    const char *directory;
    uint64_t file_size;  /* power of two */
    uint64_t batch_size; /* bytes per batch and thread, about */
    uint64_t calls_max;  /* per batch and thread */
    size_t rounds;
    uint32_t threads_max;
};

/* What a batch took. */
struct timing {
    double p50, p99, p999; /* ns per call; NAN: too few calls to say */
    double read_p50, write_p50;
    double mb_s;
};

#define FEW_CALLS 1000 /* are too few for all percentiles */

/* What one scheme does with one workload. */
struct result {
    struct timing rounds[BENCH_ROUNDS_MAX];
    uint32_t
        few[BENCH_ROUNDS_MAX * FEW_CALLS]; /* ticks, of rounds that have few calls */
    size_t few_count;
    double ns_per_tick;          /* of these */
    struct scheme_counts counts; /* of all timed rounds */
    double reads;                /* ns; see slow_reads(). NAN: not known */
    uint64_t calls;              /* likewise */
};

/* Volumes of all schemes, with full files. 0 or a negative errno. */
int bench_open(const struct plan *plan, struct subject *subjects);
void bench_close(struct subject *subjects);

/*
 * Runs a workload on each scheme in turn: a round that does not count, then the
 * plan's; each round begins with another scheme. results[scheme_count].
 */
int bench_run(const struct plan *plan, struct subject *subjects,
              const struct workload *workload, uint64_t record_size, uint32_t threads,
              struct result *results);

/* One batch by this thread, only to be counted: adds to `counts`. */
int bench_count(struct subject *subject, const struct workload *workload,
                uint64_t record_size, uint64_t calls, struct scheme_counts *counts);

/* Nothing yet. */
void bench_result_clear(struct result *result, double ns_per_tick);

/* Keeps the ticks of a round that has few. */
void bench_keep(struct result *result, const uint32_t *ticks, size_t count);

/*
 * The median of a percentile over the rounds; where they have too few calls, it is of the
 * calls of all rounds together. NAN: those are fewer than `least`, too. Sorts.
 */
double bench_tail(const struct plan *plan, struct result *result, size_t member,
                  double share, size_t least);

/* What a reading of the clock is worth, in words. 0 or a negative errno. */
int bench_print_clock(void);

/* Median and so on of a percentile over the rounds. */
struct bench_spread bench_timing(const struct plan *plan, const struct result *result,
                                 size_t member);

/* Sorts. The value that `share` of them do not exceed. */
uint32_t bench_percentile(uint32_t *ticks, size_t count, double share);

#endif
