/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * suite.h - tests programs one after another in one process, quietly, and has a report
 * of them all. crashtest_main() is a suite of one.
 *
 *     struct suite *suite = suite_create(&options);
 *
 *     for (each sequence of operations)
 *         suite_test(suite, &program);
 *     report_text(suite_report(suite), stdout);
 *     suite_destroy(suite);
 *
 * A short program that is recorded in process from a base image costs some 20 us
 * besides its states. There is one suite at a time in a process. Programs are compiled
 * by crashtest-cc, the suite's caller may be.
 */
#ifndef CRASHTEST_SUITE_H
#define CRASHTEST_SUITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/report.h"
#include "crashtest/session.h"

enum suite_result { SUITE_PASSED = 0, SUITE_FAILED = 1, SUITE_NOT_TESTED = 2 };

struct suite_options {
    struct explore_options explore; /* suite_options_init(); `first` is the program's */
    uint64_t
        hooks_max; /* loads and stores of one call: a function that does more hangs */
    size_t
        failures_max; /* distinct ones that are kept; from then on nothing is tested */
    double sampled_seconds; /* where `explore.seconds` is negative */
    bool lint;              /* look for flushes and fences that do nothing */
    const char *name;       /* of the report; NULL: the first program's */
    const char *command;    /* that --replay is appended to */
};

/* What crashtest does if it is not told otherwise. */
void suite_options_init(struct suite_options *options);

/*
 * NULL: no memory, or no signal handlers. What `options` points to must stay, itself it
 * need not.
 */
struct suite *suite_create(const struct suite_options *options);
void suite_destroy(struct suite *suite);

/*
 * Records, explores, shrinks and explains `program`, and adds to the report. What it
 * points to needs to stay only meanwhile, but for `base`.
 */
enum suite_result suite_test(struct suite *suite,
                             const struct session_program *program);

/*
 * The same in two steps: records, and explores what was recorded last, in parts that so
 * many processes share out; 0: here, and as a whole. In between the session tells what
 * there is to explore.
 */
enum suite_result suite_record(struct suite *suite,
                               const struct session_program *program);
enum suite_result suite_test_recorded(struct suite *suite, unsigned jobs);
const struct session *suite_session(const struct suite *suite);

/* Looks for flushes and fences that do nothing in what was recorded last. */
void suite_lint(struct suite *suite);

/* The one state that `id` names, of the program that is named id[0..suite_id_name()).
 */
enum suite_result suite_replay(struct suite *suite,
                               const struct session_program *program, const char *id);
size_t suite_id_name(const char *id);
uint64_t suite_id_seed(const char *id); /* 0: there is none */

/* A run that is recorded already, and whose states something else judges. */
struct suite_run {
    const char *name;              /* for ids, without ':' */
    const char *workload;          /* NULL: the name */
    const struct subject *subject; /* image and size had better stay the same */
    const char *const *operations;
    size_t operation_count;
    size_t first;                    /* crash points before this event are left out */
    uint64_t seed;                   /* of its threads; 0: that of the suite */
    struct operations *at_once;      /* where threads do several; NULL: none */
    const struct strategy *strategy; /* NULL: that of the suite */
};
enum suite_result suite_explore(struct suite *suite, const struct suite_run *run);
enum suite_result suite_replay_run(struct suite *suite, const struct suite_run *run,
                                   const char *id);

/* Why the last program was not tested. */
const char *suite_error(const struct suite *suite);

/* So far. Until the suite is destroyed. */
const struct report *suite_report(struct suite *suite);

#endif
