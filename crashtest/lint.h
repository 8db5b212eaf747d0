/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lint.h - flushes and fences that do nothing: not wrong, but slow. A place in the
 * source is reported only if it never did anything, in no run that was looked at.
 */
#ifndef CRASHTEST_LINT_H
#define CRASHTEST_LINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/px86.h"
#include "crashtest/trace.h"

enum lint_kind {
    LINT_CLEAN, /* flushes a line of which everything is durable */
    LINT_AGAIN, /* flushes a line to which nothing was stored since its last flush */
    LINT_FENCE, /* a fence that has nothing to wait for */
    LINT_KINDS
};

/* A flush or fence, as it was called. */
struct lint_site {
    struct trace_event event;
    uint64_t useful;
    uint64_t useless[LINT_KINDS];
};

struct lint {
    struct lint_site *sites;
    size_t count, capacity;
    struct px86 px86;
};

/* Looks at one more run, which begins with that image. */
void lint_run(struct lint *lint, const struct trace *trace, const uint8_t *image,
              uint64_t size);
void lint_finish(struct lint *lint);

/* Was the site never of any use? Then why mostly. */
bool lint_is_useless(const struct lint_site *site, enum lint_kind *kind);
const char *lint_name(enum lint_kind kind);
/* A clause that follows the place. */
const char *lint_says(enum lint_kind kind);

#endif
