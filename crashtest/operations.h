/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * operations.h - what a run does, and how far each of it had come at a crash. Those of
 * several threads run at once: which ones is known from the mark that came last.
 */
#ifndef CRASHTEST_OPERATIONS_H
#define CRASHTEST_OPERATIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/explore.h"
#include "include/crashtest.h"

struct operations {
    const char **names; /* in the order in which they began; ends with NULL */
    size_t count;
    struct operation_mark {
        uint64_t operation;
        bool is_end;
    } * marks; /* as they came */
    size_t mark_count;
    size_t *begins, *ends; /* by operation: how many marks there were with it */
    size_t capacity;       /* of all of them, in operations */

    /* After `passed` marks: */
    size_t passed;
    size_t returned, running;
    enum crashtest_progress *progress; /* by operation */
};

/* The marks are those of `trace`. 0 or a negative errno. */
int operations_begin(struct operations *operations, size_t count,
                     const struct trace *trace);
void operations_finish(struct operations *operations);

/* Moves to that crash. */
void operations_seek(struct operations *operations, const struct crash *crash);

/* Of those that run there, the one that began last; NULL: none. */
const char *operations_running(const struct operations *operations);

/* "a" and "b" were running, 3 had returned */
void operations_describe(struct operations *operations, const struct crash *crash,
                         char *text, size_t size);

#endif
