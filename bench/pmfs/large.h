/* SPDX-License-Identifier: BSD-3-Clause */
/* large.h - mounting a pool of 10 GiB with a million files, closed or after a kill. */
#ifndef BENCH_PMFS_LARGE_H
#define BENCH_PMFS_LARGE_H

#include "bench/pmfs/scale.h"

/*
 * Adds a figure of each. Without room for it in memory nothing is measured, and that is
 * said. 0 or a negative errno.
 */
int large_measure(scale_take_fn *take, void *arg);

#endif
