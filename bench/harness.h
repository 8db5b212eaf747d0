/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * harness.h - what every benchmark here shares: the clock, interleaved rounds,
 * statistics.
 *
 * Subjects are compared within one run: in each round every subject runs one batch, one
 * after the other, so that what disturbs the machine disturbs them alike. A figure is
 * the median over rounds; a ratio is the median of the ratios of the same rounds.
 */
#ifndef BENCH_HARNESS_H
#define BENCH_HARNESS_H

#include <stddef.h>
#include <stdint.h>

/* Monotonic time. */
uint64_t bench_now_ns(void);

/* Keeps this thread, and those it starts, on the last core it may run on. */
int bench_pin(void);

/* Runs one batch and answers with its time per operation. 0 or a negative errno. */
typedef int bench_batch_fn(void *arg, double *ns_per_op);

struct bench_subject {
    bench_batch_fn *batch;
    void *arg;
    double *ns; /* [rounds] */
};

/*
 * Runs `rounds` rounds and fills every subject's `ns`. Each round starts with another
 * subject, so that none always follows the same one. Stops at the first error.
 */
int bench_rounds(const struct bench_subject *subjects, size_t count, size_t rounds);

/*
 * Prints what the figures depend on, a line each: "Command: ", "Code: " (the commit),
 * "Compiler: ", "CPU: ", "Cores: ", "Kernel: ".
 */
void bench_print_machine(void);

struct bench_spread {
    double median, min, max;
};

/* `count` is at least 1. */
struct bench_spread bench_spread(const double *samples, size_t count);

/* Median of samples[i] / base[i]. */
double bench_ratio(const double *samples, const double *base, size_t count);

#define BENCH_ROUNDS_MAX 101

#endif
