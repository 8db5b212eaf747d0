/* SPDX-License-Identifier: BSD-3-Clause */
/* commit.h - the protocol that makes a transaction durable at once. */
#ifndef MINL2R_COMMIT_H
#define MINL2R_COMMIT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libminl2r/tx.h"

/* Logs what changes in place, by any means: three fences. */
int commit_logged(struct minl2r_tx *tx);

/* ---- Its phases, for the other ways to commit ---- */

/* Settles what slot commits left live, for a log that may change any of it. */
void commit_settle_others(struct minl2r_tx *tx);

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

/*
 * Do slots, and bits of the bitmaps, go past the cache? Few, or slots that fill lines.
 */
#define COMMIT_STREAMED_SLOTS_MAX 8
static inline bool commit_streams_slots(const struct minl2r_tx *tx)
{
    return tx->writes.fresh_count <= COMMIT_STREAMED_SLOTS_MAX ||
           swaps_are_neighbours(&tx->writes.swaps);
}

void commit_store_fresh(struct minl2r_tx *tx);
void commit_store_fresh_bytes(struct minl2r_tx *tx, const struct fresh_write *fresh);
void commit_store_in_place(struct minl2r_tx *tx);

/* Wait for all that was stored so far, and poison the pool if they cannot. */
int commit_order(struct minl2r_tx *tx);
int commit_order_log(struct minl2r_tx *tx);    /* F1, which also settles */
int commit_order_stored(struct minl2r_tx *tx); /* F2 */
int commit_settle(struct minl2r_tx *tx);       /* F3 */

#endif
