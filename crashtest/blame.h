/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blame.h - why a state after a crash is wrong: the store that was lost, the flush or
 * fence that should have covered it, and what to do about it, in words.
 */
#ifndef CRASHTEST_BLAME_H
#define CRASHTEST_BLAME_H

#include <stddef.h>

#include "crashtest/explore.h"

enum blame_kind {
    BLAME_NEVER_FLUSHED, /* the program has no flush at all */
    BLAME_NOT_FLUSHED,
    BLAME_UNSEEN,        /* the same of a store past the hooks: the flush may be, too */
    BLAME_FLUSHED_EARLY, /* before the store */
    BLAME_FLUSHED_LATE,  /* after what needs it was stored */
    BLAME_NOT_FENCED,
    BLAME_OTHER_FENCE, /* by another thread */
    BLAME_TORN,        /* a part of one store */
    BLAME_ORDER,       /* what was durable before depends on it */
    BLAME_RACE,        /* what another thread has stored depends on it */
    BLAME_CUT,         /* nothing was lost, but an operation was running */
    BLAME_LOGIC,       /* nothing was lost, and no operation was running */
};

struct blame {
    enum blame_kind kind;
    bool is_lost;             /* was anything? */
    struct trace_event store; /* that; else the last before the crash; size 0: none */
    char culprit[220];        /* its place; empty: none */
    char headline[400];       /* what is wrong, in one sentence */
    char hint[400];           /* what to do */
};

/* What operations are called. */
struct blame_names {
    const char *current;           /* was running, or returned last; NULL: none */
    const char *const *operations; /* NULL: there is one thread */
};

void blame_find(const struct subject *subject, const struct place *place,
                const struct crash *crash, const struct account *account,
                const struct verdict *verdict, const struct blame_names *names,
                struct blame *blame);

const char *blame_name(enum blame_kind kind);

#endif
