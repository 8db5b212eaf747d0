/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.h - do threads with files of their own slow each other down? */
#ifndef BENCH_PMFS_THREADS_H
#define BENCH_PMFS_THREADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/harness.h"

#define THREADS_MAX 64u

/* An operation by so many threads, each in a file or directory of its own. */
struct threads_figure {
    const char *op;
    uint32_t threads;
    uint32_t size; /* bytes; 0: does not apply */
    size_t rounds;
    bool has_floor;
    double ns[BENCH_ROUNDS_MAX];       /* of one thread's operation, by wall clock */
    double floor_ns[BENCH_ROUNDS_MAX]; /* the same on plain memory */
};

typedef int threads_add_fn(void *arg, const struct threads_figure *figure);

/*
 * Adds two figures of each operation, of one thread and of `thread_count`, each on a core
 * of its own, in the same rounds. Plain memory says what the machine has to give. Scratch files must be
 * possible. A negative errno.
 */
int threads_measure(uint32_t thread_count, size_t rounds, uint32_t operations,
                    threads_add_fn *add, void *arg);

#endif
