/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_mutants.h - bugs in pmfs, on demand. Functions of it, and of the library that it
 * calls, are wrapped by the linker: pmfs itself knows nothing of them.
 */
#ifndef CRASHTEST_PMFS_MUTANTS_H
#define CRASHTEST_PMFS_MUTANTS_H

#include "crashtest/workloads/workload.h"

enum pmfs_phase { PMFS_ELSEWHERE, PMFS_RUN, PMFS_REMOUNT, PMFS_RECOVERY };

/* The chosen bug is there from now on, if it is one of that phase. What was before. */
enum pmfs_phase pmfs_enter(enum pmfs_phase phase);

/* NULL: no more of them. */
const struct mutant *pmfs_mutant(size_t index);

/* From now on there is this one. The script that has to find it. */
const char *pmfs_mutate(size_t index);

#endif
