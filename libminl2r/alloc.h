/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc.h - blocks: reserve in DRAM (may fail), publish and free on media (logged by
 * the caller, cannot fail).
 *
 * A block is in one of these states; each has its edges below:
 *
 *   free       media 0, busy 0
 *   reserved   media 0, busy 1              from free by alloc_reserve(), and back by
 *                                           alloc_release()
 *   allocated  media 1, busy 1              from reserved by alloc_publish()
 *   leaving    media 1, busy 1, leaving 1   from allocated by alloc_mark_leaving(), and
 *                                           back by alloc_unmark_leaving()
 *   freed      media 0, busy 1, leaving 1   from leaving by alloc_unpublish(); to free
 *                                           by alloc_release_freed(), once the
 *                                           generation that freed it is settled (I5)
 *
 * The old block of a swap is not marked as leaving; else it goes the same way. That of
 * a slot commit goes to quarantine, where it stays busy: see live.h.
 *
 * "Media" is the zone's bitmap in PM; "busy" and "leaving" are bitmaps in DRAM.
 */
#ifndef MINL2R_ALLOC_H
#define MINL2R_ALLOC_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/pool.h"

/* `count` contiguous blocks from `offset`. */
struct block_run {
    uint64_t offset;
    uint64_t count;
};

/* Builds pool->alloc from the bitmaps on media. -ENOMEM. */
int alloc_attach(struct minl2r_pool *pool);
void alloc_detach(struct minl2r_pool *pool);

/* Reads the bitmaps again, after recovery changed them. Forgets every reservation. */
void alloc_reload(struct minl2r_pool *pool);

/* Those in quarantine included. */
uint64_t alloc_free_blocks(const struct minl2r_pool *pool);

/*
 * Reserves `count` contiguous blocks. `spare` leaves at least that many free. The
 * content is whatever it was. -ENOSPC without a message: callers say what did not fit.
 */
int alloc_reserve(struct minl2r_pool *pool, uint64_t count, uint64_t spare,
                  uint64_t *offset);

/*
 * As alloc_reserve(), one block that a slot is to name. Threads that swap blocks share
 * no line of the bitmaps by these, as long as there is room. -ENOSPC does not say that
 * none is free: alloc_reserve() may find one.
 */
int alloc_reserve_swap(struct minl2r_pool *pool, uint64_t spare, uint64_t *offset);

/* reserved -> free. Nothing of the blocks may be in flight any more. */
void alloc_release(struct minl2r_pool *pool, struct block_run run);

/* Is the block at `offset` reserved: neither free nor allocated on media? */
bool alloc_is_reserved(const struct minl2r_pool *pool, uint64_t offset);

/* Is every block of the run allocated on media? */
bool alloc_is_allocated(const struct minl2r_pool *pool, struct block_run run);

/* allocated -> leaving; -EINVAL, changing nothing, if one is not, or is leaving
 * already. */
int alloc_mark_leaving(struct minl2r_pool *pool, struct block_run run);
void alloc_unmark_leaving(struct minl2r_pool *pool, struct block_run run);

/*
 * What one commit changes of the bitmaps on media, word by word: the words are stored
 * past the cache, since a fence waits for that less than for lines that are flushed. A
 * word is in flight until the fence, and who changed it meanwhile would bring back what
 * it was: the locks of their lines are held until then.
 */
#define BIT_WORDS_MAX 16
struct bit_changes {
    uint32_t count; /* 0: none, and nothing is locked */
    struct bit_word {
        uint64_t index; /* 64 times it: a block index; ascending */
        uint64_t set, clear;
    } words[BIT_WORDS_MAX];
};

/* Adds those of a run. False if these are too many: use what follows below instead. */
bool alloc_add_bits(const struct minl2r_pool *pool, struct bit_changes *bits,
                    struct block_run run, bool allocated);

/* Locks and stores; and, after the fence, unlocks. */
void alloc_stream_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                       struct bit_changes *bits);
void alloc_unlock_bits(struct minl2r_pool *pool, struct bit_changes *bits);

/*
 * The same of any number of runs, through the cache: each word is stored when another
 * one needs its place among those gathered, and the rest by alloc_store_bits(). Begins
 * with zeros in `bits`; alloc_flush() in the same phase makes them durable.
 */
void alloc_gather_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                       struct bit_changes *bits, struct block_run run, bool allocated);
void alloc_store_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                      const struct bit_changes *bits);

/* Set or clear the media bits. alloc_flush() in the same phase makes them durable. */
void alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                   struct block_run run);
void alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                     struct block_run run);
void alloc_flush(struct minl2r_pool *pool, struct pm_phase *phase,
                 struct block_run run);

/* freed -> free. */
void alloc_release_freed(struct minl2r_pool *pool, struct block_run run);

/*
 * Quarantine: freed blocks in the order in which they were freed; each thread's are in
 * one of several. Who ends it for those up to a mark takes the mark first, then settles
 * every live lane, and fences: see live.h. Those are then the first that the thread
 * reserves for its swaps, and others where nothing else is free.
 */
uint32_t alloc_quarantines(const struct minl2r_pool *pool);
uint32_t alloc_own_quarantine(const struct minl2r_pool *pool);
uint64_t alloc_quarantine_mark(const struct minl2r_pool *pool, uint32_t which);
uint64_t alloc_quarantine_count(const struct minl2r_pool *pool, uint32_t which);
void alloc_end_quarantine(struct minl2r_pool *pool, uint32_t which, uint64_t mark);

/*
 * To the thread's own: as many of the blocks, from the first on, as there is room for.
 */
uint32_t alloc_quarantine(struct minl2r_pool *pool, const uint64_t *blocks,
                          uint32_t count);

/* The blocks that are likely reserved next, to the cache; harmless if they are not. */
void alloc_prefetch(const struct minl2r_pool *pool, uint32_t count);

/*
 * Recovery: claims the blocks of a log segment in DRAM. False if one of them is
 * allocated on media or claimed already. alloc_is_claimed: is one of them claimed so?
 */
bool alloc_claim_segment(struct minl2r_pool *pool, struct block_run run);
bool alloc_is_claimed(const struct minl2r_pool *pool, struct block_run run);

#endif
