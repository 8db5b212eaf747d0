/* SPDX-License-Identifier: BSD-3-Clause */
/* tmpfs.h - the kernel's own lookups in memory, beside those of pmfs. */
#ifndef BENCH_PMFS_TMPFS_H
#define BENCH_PMFS_TMPFS_H

#include "bench/pmfs/scale.h"

/*
 * Adds figures of stat() among so many names: found, and of none. They lie in a tmpfs that
 * is mounted by a child in a namespace of its own, and goes with it; who may not do that
 * gets no figures. 0 or a negative errno.
 */
int tmpfs_measure(uint64_t names, scale_take_fn *take, void *arg);

#endif
