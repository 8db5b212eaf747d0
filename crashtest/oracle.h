/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * oracle.h - the judge of a user's program: recovers a state and checks it with the
 * program's own functions, in this process, or, where their stores cannot be taken back
 * one by one, in a child.
 */
#ifndef CRASHTEST_ORACLE_H
#define CRASHTEST_ORACLE_H

#include <stdbool.h>
#include <stdint.h>

#include "crashtest/explore.h"
#include "crashtest/session.h"
#include "include/crashtest.h"

struct oracle {
    const struct session *session;
    const struct crashtest_program *program;
    struct operations *operations; /* of the session, at the crash that is judged */
    struct crashtest_pm pm;
    uint64_t hooks_max;     /* of one call */
    bool in_child;          /* each state is judged in a child */
    bool found_unseen;      /* stores that no hook saw: `in_child` from then on */
    bool starts_threads;    /* that the program's own thread must not run beside */
    struct trace *after;    /* of what comes after recovery */
    struct trace *trial;    /* of a recovery before anything is explored */
    struct verdict *shared; /* with children */
    uint64_t judged;
    int first_free_fd; /* what is open from here on is the program's */
    struct touched_set {
        uint32_t *stamps; /* by line: is it among them? */
        uint64_t *lines;
        size_t line_count; /* of PM */
        uint32_t stamp;
        size_t run_count; /* of lines that the run stored to */
    } touched;
};

/* 0 or a negative errno. */
int oracle_init(struct oracle *oracle, uint64_t hooks_max);
/* From now on judges the program that the session has recorded. */
int oracle_begin(struct oracle *oracle, struct session *session);
void oracle_finish(struct oracle *oracle);

/* Not all that is stored is seen: each state is judged in a child from now on. */
void oracle_mistrust(struct oracle *oracle);

/* In a new process: what is shared with children of this one is so no more. 0 or a
 * negative errno. */
int oracle_unshare(struct oracle *oracle);
/*
 * Judges as if it had judged nothing before; looks at once for stores that are not seen
 * if it is not the first.
 */
void oracle_begin_part(struct oracle *oracle, bool is_first);

/* `arg` is the oracle. */
judge_fn oracle_judge;
bool oracle_set_watch(void *arg, watch_fn *watch, void *watch_arg);

#endif
