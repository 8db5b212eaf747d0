/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workload.h - what the command `crashtest` explores: families of programs, such as
 * every sequence of two operations of the library, and bugs that they have to find.
 */
#ifndef CRASHTEST_WORKLOAD_H
#define CRASHTEST_WORKLOAD_H

#include <stdio.h>

#include "crashtest/suite.h"

/* What was asked for. A workload takes of it what it knows. */
struct plan {
    const char *const *operations; /* these only; NULL: all */
    size_t operation_count;
    unsigned length;     /* operations in a row; 0: what the workload thinks best */
    unsigned lanes;      /* operations at once; 0: the same */
    const char *setting; /* a variant, of those that list() names; NULL: all */
    bool is_long;        /* time does not matter */
    unsigned thorough;   /* one of so many states is asked every oracle; 0: only few */
    uint64_t random;     /* so many random programs instead; 0: all in order */
    uint64_t seed;       /* of these */
};

/* Why something could not be tested. */
#define WORKLOAD_ERROR_SIZE 1000

/* A bug on demand. */
struct mutant {
    const char *name;
    const char *class_name; /* F1 to V3: see docs/CRASHTEST.md */
    const char *what;       /* goes wrong, as a sentence without its end */
    const char *oracle;     /* step of the verdict that has to find it; "run": the run
                           itself fails; NULL: any */
};

struct workload {
    const char *name;
    const char *what; /* for --help */

    /* Names of operations and settings, and what they are. */
    void (*list)(FILE *out);

    /*
     * Of how many cases the plan is; 0: it makes no sense, `error` says why. They are
     * independent of each other: processes share them out.
     */
    size_t (*plan)(const struct plan *plan, char *error);

    /* Tests the programs of one case. */
    enum suite_result (*test)(const struct plan *plan, size_t index,
                              struct suite *suite, char *error);

    /* One state, of a program of this workload. */
    enum suite_result (*replay)(const char *id, struct suite *suite, char *error);

    /* The bug of that number; NULL: there are no more. */
    const struct mutant *(*mutant)(size_t index);

    /* From now on there is that bug. False: it is no single one. */
    bool (*mutate)(size_t index);

    /* Tests the programs that have to find that bug, until one does, in a process of
     * its own. A run that fails has found it, too: "run". */
    enum suite_result (*kill)(size_t index, struct suite *suite, char *error);
};

extern const struct workload library_workload;
extern const struct workload pmfs_workload;

#endif
