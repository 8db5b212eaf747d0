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

/* What one scheme does with one workload. */
struct result {
    struct timing rounds[BENCH_ROUNDS_MAX];
    struct scheme_counts counts; /* of all timed rounds */
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

/* Median and so on of a percentile over the rounds. */
struct bench_spread bench_timing(const struct plan *plan, const struct result *result,
                                 size_t member);

/* Sorts. The value that `share` of them do not exceed. */
uint32_t bench_percentile(uint32_t *ticks, size_t count, double share);

#endif
