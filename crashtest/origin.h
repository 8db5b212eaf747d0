/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * origin.h - a process that stays as this one was, and forks others on demand: each
 * run begins with the memory of a program that has just started, whatever recovery and
 * check have done to that of the tester since.
 */
#ifndef CRASHTEST_ORIGIN_H
#define CRASHTEST_ORIGIN_H

#include <stdbool.h>
#include <sys/types.h>

/* What a run came to. */
struct origin_answer {
    bool is_started;
    bool is_stuck; /* and was killed: */
    char stuck[600];
    int status; /* of waitpid() */
};

struct origin {
    pid_t process; /* 0: there is none */
    int socket;    /* to it */
    struct origin_answer *shared;
};

/* What is shared with this process, now, is so with those that call `run` later. 0 or a
 * negative errno. */
int origin_begin(struct origin *origin, void (*run)(void *arg), void *arg);

/* Calls `run` in a new process. NULL: that cannot be done. */
const struct origin_answer *origin_run(struct origin *origin);

void origin_finish(struct origin *origin);

/* The same without: in a child of this process. */
void origin_fork(void (*run)(void *arg), void *arg, struct origin_answer *answer);

#endif
