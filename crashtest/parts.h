/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parts.h - explores a run in parts, which processes share out. What it comes to does
 * not depend on how many they are: the parts are those of the trace, each counts for
 * itself, and where enough is wrong is decided in their order.
 */
#ifndef CRASHTEST_PARTS_H
#define CRASHTEST_PARTS_H

#include "crashtest/explore.h"

struct parts {
    const struct subject *subject;
    struct explore_options *options; /* of `explorer`, too */
    unsigned jobs;                   /* processes; 0: as many as processors */

    /*
     * In a new process: makes the subject's image and judge its own. False: it cannot.
     */
    bool (*unshare)(void *arg);
    /* The judge is to be as if no state had been judged before the part. */
    void (*begin)(void *arg, bool is_first);
    /*
     * In that process, after a part: it has to be explored otherwise, from the start.
     */
    bool (*is_void)(void *arg);
    /* Now and then, what has been done so far: a clause. */
    void (*tell)(void *arg, const char *progress);
    void *arg;

    /* Results: */
    struct explore_count count;
    struct explore_point *points; /* the first ones, as many as a report has */
    size_t point_count;
    struct finding *findings; /* as those of an explorer */
    size_t finding_count;
    bool was_void;
    char error[300];
    size_t lost_at; /* event from which on a process was lost; SIZE_MAX: none was */
};

/*
 * `explorer` is of this process: it finds again what others have found. False, with an
 * error: it could not be done.
 */
bool parts_explore(struct parts *parts, struct explorer *explorer);
void parts_finish(struct parts *parts);

#endif
