/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * px86.h - what a power failure can leave in PM, as a pure model of x86 persistency.
 *
 *   Each line is, independently, its floor and a prefix of the stores to it: a dirty
 * line may be written back at any instant. The pieces of one store are not ordered.
 * Streamed pieces arrive in any order, or not, until the next fence of their thread.
 *   A flush and then a fence of the same thread raise the floor of a line over all that
 * was stored to it through the cache before the flush, by any thread.
 */
#ifndef CRASHTEST_PX86_H
#define CRASHTEST_PX86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/trace.h"

#define PX86_NONE UINT32_MAX

/* A store to a line that is not settled yet. Those of a line are linked, oldest first.
 */
struct px86_store {
    uint64_t value;
    uint32_t event; /* its index in the trace */
    uint32_t thread;
    uint32_t group;
    uint32_t next; /* PX86_NONE: this is the newest */
    uint8_t at;    /* in the line */
    uint8_t size;
    bool streamed;
    bool joined;
    bool durable;
};

struct px86_line {
    uint64_t at; /* offset of the line */
    uint32_t first, last;
    uint8_t floor[LINE_SIZE];
};

/* A flush that no fence of its thread has followed. */
struct px86_flush {
    uint32_t thread;
    uint32_t line;
    uint32_t last; /* the newest store that it covers */
};

struct px86 {
    const uint8_t *image; /* what was durable at first, wherever no line is */
    uint64_t size;
    uint32_t *line_index; /* by line of the image; index + 1 */
    struct px86_line *lines;
    struct px86_store *stores;
    struct px86_flush *flushes;
    uint32_t line_count, line_capacity;
    uint32_t store_count, store_capacity;
    uint32_t flush_count, flush_capacity;
};

/* 0 or -ENOMEM. Later, running out of memory ends the process. */
int px86_init(struct px86 *px86, const uint8_t *image, uint64_t size);
void px86_finish(struct px86 *px86);

/* Everything is durable as the image has it. */
void px86_reset(struct px86 *px86);

void px86_copy(struct px86 *to, const struct px86 *from);

void px86_apply(struct px86 *px86, const struct trace_event *event, uint32_t index);

/* The process is gone: its unfenced flushes and streams promise nothing more. */
void px86_kill(struct px86 *px86);

/* Has the thread flushed or streamed anything since its last fence? */
bool px86_is_pending(const struct px86 *px86, uint32_t thread);

/*
 * A content that a line can have: the first `whole` groups of the undecided stores
 * through the cache, `subset` of the pieces of the next, and `streams` of the pieces
 * streamed. Bit 0 is the oldest.
 */
struct px86_choice {
    uint32_t whole;
    uint32_t subset;
    uint64_t streams;
};

/*
 * The contents that a line can have. px86_count() is their number as far as the model
 * is exact, saturating at UINT32_MAX. px86_choices() writes them, at most `max` (>= 2):
 * the floor first, everything stored last, and in between all of them if `max`
 * suffices, else some. Different choices can have the same content.
 */
uint32_t px86_count(const struct px86 *px86, const struct px86_line *line);
uint32_t px86_choices(const struct px86 *px86, const struct px86_line *line,
                      struct px86_choice *choices, uint32_t max);

/* The content with all stores of events before `event`, and no other; of those that a
 * killed process had done, in a trace of its own, the ones before `killed_event`. */
struct px86_choice px86_choice_at(const struct px86 *px86, const struct px86_line *line,
                                  uint32_t killed_event, uint32_t event);

/* The content with all stores of events before `event`, and no other. */
struct px86_choice px86_choice_before(const struct px86 *px86,
                                      const struct px86_line *line, uint32_t event);

/* Is this one of the contents that the line can have? */
bool px86_is_choice(const struct px86 *px86, const struct px86_line *line,
                    struct px86_choice choice);

void px86_compose(const struct px86 *px86, const struct px86_line *line,
                  struct px86_choice choice, uint8_t content[LINE_SIZE]);

/* Calls `visit` with each undecided store of the line and whether `choice` has it. */
typedef void px86_visit_fn(void *arg, const struct px86_store *store, bool included);
void px86_visit(const struct px86 *px86, const struct px86_line *line,
                struct px86_choice choice, px86_visit_fn *visit, void *arg);

#endif
