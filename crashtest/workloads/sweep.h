/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sweep.h - a plan of a workload, by several processes at once, or bugs that it has to
 * find, each in a process of its own; and one report of it all.
 */
#ifndef CRASHTEST_SWEEP_H
#define CRASHTEST_SWEEP_H

#include "crashtest/workloads/workload.h"

struct sweep {
    const struct workload *workload;
    struct plan plan;
    struct suite_options suite;
    unsigned jobs;           /* processes; 0: as many as processors */
    const char *json, *html; /* files to write; NULL: none */
};

/* Explores and prints the report. */
enum suite_result sweep_explore(const struct sweep *sweep);

/* The same of one state, with the bug of that name; NULL: none. */
enum suite_result sweep_replay(const struct sweep *sweep, const char *id,
                               const char *bug);

/*
 * Tries every bug of `workloads`, which ends with NULL, and prints those that are not
 * found, or not by the oracle that should. A crash or a hang is found, too.
 */
enum suite_result sweep_bugs(const struct workload *const *workloads,
                             const struct strategy *strategy, unsigned jobs,
                             const char *json);

#endif
