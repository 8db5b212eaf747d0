/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door.h - between the library and its door to PM, where the linker has wrapped pm.h:
 * operations can be paused there, and calls can go wrong.
 */
#ifndef CRASHTEST_DOOR_H
#define CRASHTEST_DOOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/trace.h"

/*
 * What a medium held before: bytes that are relied on without having been stored show.
 */
#define USED_MEDIUM 0xa5

/* Called before each fence that has something to wait for, and by library_pause(). */
typedef void door_pause_fn(void *arg);
void door_on_pause(door_pause_fn *call, void *arg); /* NULL: nobody is */

/* What goes wrong with call number `nth`, from 0, of its kind. */
enum door_fault_kind {
    DOOR_IS_SOUND,
    DOOR_LOSE_FENCE,
    DOOR_FAIL_FENCE,  /* says so: the medium failed */
    DOOR_OTHER_FENCE, /* by another thread */
    DOOR_LOSE_FLUSH,
    DOOR_LOSE_FIRST_LINE, /* of a flush */
    DOOR_LOSE_LAST_LINE,
    DOOR_LOSE_LINE,   /* `nth` is the offset of a line that is never flushed */
    DOOR_LOSE_STREAM, /* a stream stays in the cache */
    DOOR_LATE_STREAM, /* comes after the fence that should have waited for it */
    DOOR_EARLY_FLUSH, /* the lines of store `nth` are flushed before it */
    DOOR_LOSE_STORE,  /* store `nth` does not come */
    DOOR_LATE_STORE,  /* store `nth` comes after its flush */
    DOOR_SWAP_STORES, /* store `nth` comes after the next one */
    DOOR_LOSE_SAME,   /* what was there already is not flushed */
    DOOR_SKIP_SAME,   /* it is flushed, but not stored once more */
    DOOR_LOSE_SITE,   /* `nth` is the key of a site: nothing that it calls is done */
};
struct door_fault {
    enum door_fault_kind kind;
    uint64_t nth;
};

/* From now on has `fault`, which may be {0}, and counts calls from 0. */
void door_break(struct door_fault fault);

/* Calls since then. */
struct door_count {
    uint64_t fences, flushes, streams, stores;
};
struct door_count door_counted(void);

/* What DOOR_LOSE_FLUSH has left out last: lines, as offsets in PM, and how many events
 * the trace had by then. */
struct door_left_out {
    uint64_t start, end;
    size_t event;
};
struct door_left_out door_left_out(void);

/* A place in the code that flushes, fences or streams, and who called it. */
struct door_site {
    uint64_t key; /* of the innermost frames */
    uintptr_t frames[TRACE_FRAMES];
};
#define DOOR_SITES_MAX 256
struct door_sites {
    size_t count;
    struct door_site sites[DOOR_SITES_MAX];
};

/* Adds it, unless it is there. Its number, or DOOR_SITES_MAX: there is no room. */
size_t door_add_site(struct door_sites *sites, const struct door_site *site);

/*
 * From now on sites are added there, and lost, while they are watched; NULL: no more.
 */
void door_note_sites(struct door_sites *sites);
void door_watch_sites(bool watch);

#endif
