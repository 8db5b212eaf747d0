/* SPDX-License-Identifier: BSD-3-Clause */
/* threads.h - do threads that write files of their own slow each other down? */
#ifndef BENCH_PMFS_THREADS_H
#define BENCH_PMFS_THREADS_H

#include <stddef.h>
#include <stdint.h>

#define THREADS_MAX 64u

/*
 * Prints how much more `thread_count` threads, each on a core of its own, overwrite per
 * second than one does, by wall clock: on pmfs, and on plain memory, which says what the
 * machine has to give. Scratch files must be possible. A negative errno.
 */
int threads_measure(uint32_t thread_count, size_t rounds, uint32_t operations);

#endif
