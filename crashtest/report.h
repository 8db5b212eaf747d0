/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what was found, for people and for scripts. Nothing in it depends on what
 * was tested still being there.
 */
#ifndef CRASHTEST_REPORT_H
#define CRASHTEST_REPORT_H

#include <stdio.h>

#include "crashtest/blame.h"
#include "crashtest/explore.h"
#include "crashtest/lint.h"

#define REPORT_POINTS_MAX 500

/* What one thread did until another did something. */
struct report_turn {
    char operation[64]; /* that it was in; empty: none */
    struct trace_event first, last;
    size_t stores;
};

/* A state that was not right. */
struct failure {
    char id[2000]; /* program:seed:place */
    char workload[64];
    char operation[400]; /* what it was doing: a clause */
    char crash[1600];    /* how it crashed: a clause */
    struct verdict verdict;
    struct blame blame;
    struct account_entry *stores; /* that were not durable, in their order */
    size_t store_count;
    struct trace_event *recovery; /* what recovery stored first */
    size_t recovery_count;
    uint64_t seed;             /* of the order of threads */
    struct report_turn *turns; /* the last ones before the crash */
    size_t turn_count;         /* 0: there is one thread */
};

/* A crash point, where there is one program only. */
struct report_point {
    struct explore_point point;
    struct trace_event before; /* this event */
    bool is_end;               /* no: at the end */
};

/* Stores that no hook saw. */
struct report_unseen {
    uint64_t words;
    uint64_t at; /* of the first */
    char in[64]; /* its operation; empty: none */
    bool is_blind;
};

/* An order of threads that was tried. */
struct report_schedule {
    uint64_t seed;
    uint64_t turns;
    uint64_t same_as; /* seed of an earlier one that did the same to PM; 0: none */
    bool is_tried;    /* no: enough was wrong before */
    struct explore_count count;
    size_t failures;
};

/* What was tested, added up. */
struct report_workload {
    char name[64];
    uint64_t programs;
    uint64_t operations;
    struct explore_count count;
    double seconds;
    bool is_sampled;    /* not all stores were seen when they happened */
    bool never_flushes; /* any of the programs */
    size_t failures;
    struct report_unseen unseen;
    struct report_point *points;
    size_t point_count;
};

struct report {
    const struct explore_options *options;
    const char *name;
    const char *command; /* the program, as it was called */
    struct report_workload *workloads;
    size_t workload_count;
    struct failure *failures; /* no two of them have the same culprit */
    size_t failure_count;
    const struct report_schedule *schedules;
    size_t schedule_count; /* 0: there is one thread */
    uint32_t threads;
    const struct lint *lint; /* NULL: nobody asked */
    bool is_replay;          /* of one state */
    double seconds;
};

/* All workloads as one. */
struct report_workload report_total(const struct report *report);

/* "exact", "bounded (7 of 9)", "sampled (...)" */
void report_coverage(const struct report_workload *workload, char *text, size_t size);

/* Every state was tried, in recovery, too. */
bool report_is_exact(const struct report_workload *workload);

/* The next useless flush or fence from `*at` on; NULL: no more. */
const struct lint_site *report_warning(const struct report *report, size_t *at,
                                       enum lint_kind *kind);

/* Orders of threads that did not do the same. */
size_t report_orders(const struct report *report);

/* How much was stored unseen, and where: a sentence. */
void report_unseen(const struct report_unseen *unseen, char *text, size_t size);

/* Where the thread was in that turn: a clause. */
void report_turn(const struct report_turn *turn, char *text, size_t size);

void report_text(const struct report *report, FILE *out);

/* 0 or a negative errno. */
int report_json(const struct report *report, const char *path);
int report_html(const struct report *report, const char *path);

/* Closes a file that was written; 0 or a negative errno. */
int report_close(FILE *out);

/* In quotes, with what JSON wants escaped. */
void report_json_string(FILE *out, const char *text);

/* What that event is, and where: a clause. */
void report_event(const struct trace_event *event, char *text, size_t size);
/* How the run crashed, or its recovery: a clause. */
void report_place(const struct trace *trace, const struct trace *recovery,
                  const struct place *place, char *text, size_t size);

#endif
