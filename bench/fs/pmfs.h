/* SPDX-License-Identifier: BSD-3-Clause */
/* pmfs.h - the calls of pmfs, in-process, as rows beside the schemes. */
#ifndef BENCH_FS_PMFS_H
#define BENCH_FS_PMFS_H

#include "bench/fs/run.h"

/* Called for each operation: its name, and the bytes of one call; 0: does not apply. */
typedef int pmfs_row_fn(void *arg, const char *name, uint64_t size,
                        struct result *result);

/* Measures all of bench/pmfs/ops.h, and a storm of calls on names. */
int bench_pmfs(const struct plan *plan, pmfs_row_fn *row, void *arg);

#endif
