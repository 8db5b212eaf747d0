/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * guard.h - calls a function of the program under test, and survives what it does: it
 * may crash, run for ever, or exit.
 */
#ifndef CRASHTEST_GUARD_H
#define CRASHTEST_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum guard_end {
    GUARD_RETURNED,
    GUARD_CRASHED,
    GUARD_HUNG,
    GUARD_SLEEPS, /* outside of what is scheduled */
    GUARD_EXITED,
    GUARD_DEADLOCKED,      /* every thread waits for another */
    GUARD_STARTED_THREADS, /* where there may be none */
    GUARD_REFUSED,         /* its threads cannot be scheduled */
    GUARD_FORKED           /* and another process has stored to PM */
};

struct guard_report {
    enum guard_end end;
    int result;        /* what was returned, or the exit status */
    int signal;        /* that it crashed by */
    uintptr_t address; /* where it crashed, if that is known */
    char message[400]; /* of crashtest_fail(); empty: none */
};

typedef int guard_fn(void *arg);

/* 0 or a negative errno. */
int guard_init(void);

/* Again in a child of fork(). */
void guard_init_child(void);

/* `hooks_max` loads and stores are enough for the function: it hangs if it does more.
 */
void guard_call(guard_fn *function, void *arg, uint64_t hooks_max,
                struct guard_report *report);

/* Did it return 0? */
bool guard_succeeded(const struct guard_report *report);

/* What happened, as the end of a sentence that begins with what was called. */
void guard_describe(const struct guard_report *report, char *text, size_t size);

#endif
