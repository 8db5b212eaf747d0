/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * px86.h - what a power failure can leave in PM, as a pure model of x86 persistency.
 *
 *   Each line is, independently, its floor and a prefix of the stores to it: a dirty
 * line may be written back at any instant. The pieces of one store call are not
 * ordered. Streamed pieces arrive in any order, or not, until the fence of their phase.
 *   A flush and then a fence of the same phase raise the floor of a line over all that
 * was stored to it through the cache before the flush.
 *
 * Less is promised here than hardware does: locked instructions do not fence, and a
 * fence is the phase's own, not its thread's.
 */
#ifndef PX86_H
#define PX86_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/crash/pm_shadow.h"

/* A store whose line is not settled yet. Those of a line are linked, oldest first. */
struct px86_store {
    uint64_t value;
    uintptr_t phase;
    uint32_t group;
    uint32_t next; /* index + 1; 0: the newest */
    uint8_t at;    /* in the line */
    uint8_t size;
    bool streamed;
    bool durable;
};

struct px86_line {
    uint64_t at; /* offset of the line */
    uint32_t first, last;
    uint8_t floor[PM_LINE];
};

struct px86_flush {
    uintptr_t phase;
    uint32_t line;
    uint32_t last; /* the newest store that it covers */
};

struct px86 {
    const uint8_t *image; /* what was durable at first */
    uint64_t size;
    uint32_t *line_index; /* by line of the image; index + 1 */
    struct px86_line *lines;
    struct px86_store *stores;
    struct px86_flush *flushes;
    uint32_t line_count, line_capacity;
    uint32_t store_count, store_capacity;
    uint32_t flush_count, flush_capacity;
};

void px86_init(struct px86 *px86, const uint8_t *image, uint64_t size);
void px86_finish(struct px86 *px86);

/* Everything is durable as the image has it. */
void px86_reset(struct px86 *px86);

void px86_copy(struct px86 *to, const struct px86 *from);

void px86_apply(struct px86 *px86, const struct shadow_event *event);

/* The process is gone: flushes that no fence followed, and streams, promise nothing
 * more. */
void px86_kill(struct px86 *px86);

/*
 * The contents that a line can have. px86_count() is their number as far as the model
 * is exact, saturating at UINT32_MAX. px86_contents() writes them, at most `max` (>=
 * 2): the floor first, everything stored last, and in between all of them if `max`
 * suffices, else a choice. A content may come twice.
 */
typedef uint8_t px86_content[PM_LINE];
uint32_t px86_count(const struct px86 *px86, const struct px86_line *line);
uint32_t px86_contents(const struct px86 *px86, const struct px86_line *line,
                       px86_content *contents, uint32_t max);

/* Would the flush of this line now, and a fence, make anything durable? */
bool px86_is_dirty(const struct px86 *px86, uint64_t line_at);

#endif
