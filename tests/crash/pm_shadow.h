/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pm_shadow.h - a door to PM over ordinary memory that writes down what passes through:
 * every store with the value before and after it, every flush, every fence.
 *
 * A store is cut into the pieces that arrive whole: what an instruction stores within
 * an aligned word. Pieces of one call have the same group: their order is not known.
 * Who stored, flushed or fenced is a phase; a caller that stores directly is phase 0.
 */
#ifndef PM_SHADOW_H
#define PM_SHADOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libminl2r/pm.h"

enum shadow_kind {
    SHADOW_STORE,  /* through the cache */
    SHADOW_STREAM, /* past it */
    SHADOW_FLUSH,  /* of the line at `at` */
    SHADOW_FENCE,
    SHADOW_MARK, /* set by the test: `after` */
};

struct shadow_event {
    uint8_t kind;
    uint8_t size;    /* of a piece: 1, 2, 4 or 8 bytes */
    uint32_t group;  /* of pieces */
    uint32_t call;   /* flushes and fences: which of its kind in the trace */
    uint64_t at;     /* offset from the start of the mapping */
    uint64_t before; /* the piece's bytes */
    uint64_t after;
    uintptr_t phase;
};

struct shadow_trace {
    struct shadow_event *events;
    size_t count, capacity;
    uint32_t groups, flushes, fences; /* calls so far */
    uint8_t *mirror; /* PM as the trace has it; NULL: no store passes by the door */
};

void shadow_trace_clear(struct shadow_trace *trace);
void shadow_trace_finish(struct shadow_trace *trace);

/* Adds what passes the door to `trace`, which may be NULL: from now on nothing. */
void shadow_record(struct shadow_trace *trace);
void shadow_mark(const struct pm *pm, uint64_t value);

/* Adds what was stored to `pm` past the door, into memory that is writable to the
 * caller; this happens at flushes, fences and marks, too. */
void shadow_catch_up(const struct pm *pm);

/* A store of the caller's own, at its time. */
void shadow_store(const struct pm *pm, const void *dst, const void *src, size_t size);

/* Takes back every store of `trace` in `memory`, newest first. */
void shadow_revert(const struct shadow_trace *trace, uint8_t *memory);

/* Called before each fence that has something to wait for, and at each shadow_pause().
 */
typedef void shadow_pause_fn(void *arg);
void shadow_on_pause(shadow_pause_fn *call, void *arg);
void shadow_pause(void);

/* A bug to have: the call number `nth` (from 0) of its kind in the trace goes wrong. */
enum shadow_bug {
    SHADOW_NO_BUG,
    SHADOW_LOSE_FENCE,
    SHADOW_FAIL_FENCE,      /* says so: the medium failed */
    SHADOW_LOSE_FLUSH,      /* no line of the call is flushed */
    SHADOW_LOSE_FIRST_LINE, /* all but the first line are */
    SHADOW_LOSE_LAST_LINE,
    SHADOW_LOSE_LINE,   /* `nth` is the offset of a line that is never flushed */
    SHADOW_LOSE_STREAM, /* streamed bytes stay in the cache; counts groups */
};
struct shadow_fault {
    enum shadow_bug bug;
    uint32_t nth;
    const struct shadow_trace *trace; /* the one it happens in */
};
void shadow_inject(struct shadow_fault fault);

#endif
