/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeset.h - what a transaction wants to change, in DRAM, and what it has reserved
 * for that.
 *
 * Changes are kept per block (struct block_write), since the choice between data and
 * pointer logging is made per block from all the bytes that the transaction writes in
 * it. All that can fail for want of memory or space fails here; commit only carries
 * out.
 */
#ifndef MINL2R_WRITESET_H
#define MINL2R_WRITESET_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/alloc.h"
#include "libminl2r/arena.h"
#include "libminl2r/lane.h"
#include "libminl2r/live.h"
#include "libminl2r/plain.h"
#include "libminl2r/pool.h"
#include "libminl2r/swaps.h"

/*
 * One block's changes. `extents` are sorted and do not overlap; `covered` is their sum.
 * A block with `fresh` is swapped at commit: fresh becomes the block that the slot
 * names. One that is written whole may have no entry but be a loose swap (swaps.h).
 *
 * At commit, ranges that are plain (plain.h) have one entry together: its `block` is
 * the start of the pool, and its extents are in the order of the calls.
 */
struct block_write {
    struct block_write *next;        /* in the order of first use */
    struct block_write *next_change; /* in `to_fill` or `in_place` */
    uint64_t key;   /* of the table: `block`, or `slot` + 1 for a hole */
    uint64_t block; /* 0: the slot is a hole */
    struct extent *extents;
    uint32_t extent_count;
    uint32_t extent_capacity;
    uint32_t extents_promised; /* of the capacity: to working copies, until commit */
    uint32_t covered;
    uint32_t table_index;
    bool slot_is_own; /* the slot lies in a block that this transaction allocated */
    bool streamed;    /* `fresh` has the whole content already; no extents */
    bool past_cache;  /* set by commit: how the extents are stored */
    uint64_t slot;    /* offset of the slot that names it; 0: not written by slot */
    uint64_t fresh;   /* reserved block; 0: change in place */
    struct block_write *slots;     /* blocks whose slots lie in this block */
    struct block_write *next_slot; /* in that list */
    struct extent inline_extents[2];
};

/* A working copy handed out by minl2r_tx_edit(). */
struct edit {
    struct edit *next;
    uint64_t offset;
    uint64_t size;
    uint8_t *copy;
};

/* Bytes that are stored before anything logged changes. */
struct fresh_write {
    struct fresh_write *next;
    uint64_t offset;
    uint64_t size;
    const uint8_t *bytes;
};

/* A vector in the arena. */
struct run_list {
    struct block_run *runs;
    uint32_t count, capacity;
};

/* So, of ranges of bytes. */
struct interval_list {
    struct interval *list;
    uint32_t count, capacity;
};

struct writeset {
    struct minl2r_pool *pool;
    struct pm_phase *phase; /* for what is stored before commit: fresh and own blocks */
    struct lane **lane;     /* taken early, where it can be, to stream whole blocks */
    struct settling settling; /* what slot commits left live; empty between fences */
    struct arena arena;

    struct block_write *first, **last;
    struct block_write *latest; /* the one found last */
    struct block_write **table; /* open addressing by key */
    uint32_t table_size;        /* power of two */
    uint32_t block_count;
    uint32_t fresh_count; /* blocks with a fresh one, loose swaps included */

    struct plain plain;             /* ranges that are not sorted by blocks (yet) */
    struct block_write plain_write; /* of those that are plain at commit */

    struct swaps swaps; /* those that are loose; once closed, all */

    /*
     * Once closed: blocks whose fresh one has to be filled, and those that have extents
     * in place.
     */
    struct block_write *to_fill, *in_place;

    struct edit *edits;
    struct fresh_write *fresh_first, **fresh_last;
    struct run_list
        allocs; /* by minl2r_tx_alloc(): flushed whole at commit; may be empty */
    struct run_list frees;          /* leaving */
    struct run_list abandoned;      /* reserved and streamed to, but not needed */
    struct interval_list snapshots; /* to flush */

    /* Log: bytes needed for records queued and for snapshots; bytes there. */
    uint64_t log_queued;
    uint64_t log_written;
    uint64_t log_space;
    struct run_list segments;
};

int writeset_init(struct writeset *ws, struct minl2r_pool *pool);
void writeset_finish(struct writeset *ws);

/* Forgets everything, for the next transaction. Reservations are given back before. */
void writeset_reset(struct writeset *ws);

/* The changes, as described in minl2r.h; arguments are validated here. */
int writeset_write(struct writeset *ws, uint64_t dst, const void *src, uint64_t size);
int writeset_copy(struct writeset *ws, uint64_t dst, uint64_t src, uint64_t size);
int writeset_edit(struct writeset *ws, uint64_t offset, uint64_t size, uint8_t **copy);
int writeset_write_fresh(struct writeset *ws, uint64_t dst, const void *src,
                         uint64_t size);
int writeset_write_block(struct writeset *ws, uint64_t slot, uint32_t offset,
                         const void *src, uint32_t size);
int writeset_alloc(struct writeset *ws, uint64_t blocks, uint64_t *offset);
int writeset_free(struct writeset *ws, uint64_t offset, uint64_t blocks);
int writeset_read(struct writeset *ws, void *dst, uint64_t src, uint64_t size);

/* Makes room in log and lists for snapshots of `ranges`, as one batch sequence. */
int writeset_reserve_snapshots(struct writeset *ws, const struct minl2r_range *ranges,
                               uint64_t count);

/*
 * Turns what differs in the working copies into queued changes, enters plain ranges
 * into the list of blocks, and lists what changes: commit comes next. Cannot fail.
 */
void writeset_close(struct writeset *ws);

/* Lists the swaps of the blocks, too: for who gives up a set that was not closed. */
void writeset_list_swaps(struct writeset *ws);

/* Has it nothing to make durable? */
bool writeset_is_empty(const struct writeset *ws);

#endif
