/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * report.h - what was found, for people and for scripts.
 */
#ifndef CRASHTEST_REPORT_H
#define CRASHTEST_REPORT_H

#include <stdio.h>

#include "crashtest/blame.h"
#include "crashtest/explore.h"
#include "crashtest/session.h"

/* A state that was not right. */
struct failure {
    struct place place;
    struct crash crash;
    struct verdict verdict;
    struct account account;
    struct blame blame;
    char id[2000]; /* program:seed:place */
};

struct report {
    const struct session *session;
    const struct explore_options *options;
    const char *command; /* the program, as it was called */
    struct explore_count count;
    const struct explore_point *points;
    size_t point_count;
    bool is_replay;  /* of one state */
    bool is_sampled; /* not all stores were seen when they happened */
    double seconds;
    const struct failure *failure; /* NULL: none */
};

/* "exact", "bounded (7 of 9)", "sampled (...)" */
void report_coverage(const struct report *report, char *text, size_t size);

void report_text(const struct report *report, FILE *out);

/* 0 or a negative errno. */
int report_json(const struct report *report, const char *path);
int report_html(const struct report *report, const char *path);

/* What happened to the operation that the failure is about: a clause. */
void report_operation(const struct report *report, char *text, size_t size);
/* What that event is, and where: a clause. */
void report_event(const struct trace *trace, size_t index, char *text, size_t size);
/* Where the power failed: a clause. */
void report_crash(const struct report *report, char *text, size_t size);

#endif
