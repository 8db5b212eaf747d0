/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedules.h - tests a program with its threads in several orders, by several
 * processes; and has one report of it all, which does not depend on how many they were.
 */
#ifndef CRASHTEST_SCHEDULES_H
#define CRASHTEST_SCHEDULES_H

#include "crashtest/suite.h"

#define SCHEDULES_DEFAULT 16

struct schedules {
    struct suite_options options; /* explore.seed: the first order's */
    uint64_t count;               /* orders; 0: threads run as they happen to */
    unsigned jobs;                /* processes; 0: as many as processors */

    /* Results: */
    struct suite *suite; /* whose report the one below goes on with */
    struct report report;
    struct report_workload workload;
    struct report_schedule *list;
    char error[1600]; /* why it was not tested */
};

enum suite_result schedules_test(struct schedules *schedules,
                                 const struct crashtest_program *program);

/* One state, in the order that the id names. */
enum suite_result schedules_replay(struct schedules *schedules,
                                   const struct crashtest_program *program,
                                   const char *id);

void schedules_finish(struct schedules *schedules);

#endif
