/* SPDX-License-Identifier: BSD-3-Clause */
/* commit.h - a transaction, and the protocol that makes it durable at once. */
#ifndef MINL2R_COMMIT_H
#define MINL2R_COMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libminl2r/lane.h"
#include "libminl2r/log.h"
#include "libminl2r/pool.h"
#include "libminl2r/writeset.h"

struct minl2r_tx {
    struct minl2r_pool *pool;
    struct writeset writes;
    struct lane *lane;         /* NULL until one is needed */
    struct log_cursor cursor;  /* index > 0: a snapshot was logged */
    struct pm_phase phase;     /* counts into `stats` */
    struct minl2r_stats stats; /* of all transactions that had this object */
    uint8_t *batch;   /* PM_BATCH_SIZE_MAX bytes: the log batch being gathered */
    uint8_t *scratch; /* PM_BATCH_SIZE_MAX bytes: one that is undone */
    uint32_t owner;   /* thread_number() of who began it */
    bool running;     /* atomic */
    bool freed_in_quarantine;      /* the old blocks of its swaps are */
    struct minl2r_tx *next;        /* in pool->tx_all */
    struct minl2r_tx *next_shared; /* in pool->tx_shared */
    struct bit_changes bits;       /* in flight */
} __attribute__((aligned(128)));   /* other threads' are in other lines */

/* Takes a transaction from the pool's cache, or makes one. -ENOMEM. */
int tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx);

/* End the transaction and put it back into the cache, whatever they return. */
int tx_commit(struct minl2r_tx *tx);
int tx_abort(struct minl2r_tx *tx);

int tx_snapshot(struct minl2r_tx *tx, const struct minl2r_range *ranges, size_t count);

/* One word: note, store, flush, fence. */
int tx_store64(struct minl2r_pool *pool, const uint64_t *p, uint64_t value);

/* ---- Phases, for slot_commit.c ---- */

/* To the cache what changes in place, which the log is made of. */
void commit_prefetch_in_place(const struct minl2r_tx *tx);

/* Begins the lane's next generation, unless a snapshot has, and a log of it. */
struct log_writer commit_begin_log(struct minl2r_tx *tx);

/* A record of each run of blocks. */
void commit_log_runs(struct log_writer *writer, enum pm_record_type type,
                     const struct run_list *list);

/* -EIO, poisoning the pool, for a log that had not the room that was reserved. */
int commit_log_result(struct minl2r_tx *tx, const struct log_writer *writer);

/* Are the `old` ones the new `bytes`, NULL being zeros? */
static inline bool commit_has_bytes(const uint8_t *old, const uint8_t *bytes,
                                    size_t size)
{
    if (!bytes)
        return old[0] == 0 && memcmp(old, old + 1, size - 1) == 0;
    if (size == 8) /* without a call */
        return memcmp(old, bytes, 8) == 0;
    return old[0] == bytes[0] && memcmp(old, bytes, size) == 0;
}

/* From this size on, bytes go past the cache, whatever their alignment. */
#define COMMIT_STREAM_SIZE_MIN 256

/* Can they be streamed? Small odd sizes would be flushed one by one. */
static inline bool commit_streams_well(const struct extent *e)
{
    return ((e->start | e->size) & 3) == 0 || e->size >= COMMIT_STREAM_SIZE_MIN;
}

/* Do slots, and bits of the bitmaps, go past the cache? Few, or slots that fill lines. */
#define COMMIT_STREAMED_SLOTS_MAX 8
static inline bool commit_streams_slots(const struct minl2r_tx *tx)
{
    return tx->writes.fresh_count <= COMMIT_STREAMED_SLOTS_MAX ||
           swaps_are_neighbours(&tx->writes.swaps);
}

void commit_store_fresh(struct minl2r_tx *tx);
void commit_store_in_place(struct minl2r_tx *tx);
int commit_order(struct minl2r_tx *tx);        /* waits for all that */
int commit_order_stored(struct minl2r_tx *tx); /* the same of what is in place */

/* Frees the cached transactions. -EBUSY, freeing none, if one is running. */
int tx_free_all(struct minl2r_pool *pool);

#endif
