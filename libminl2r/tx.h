/* SPDX-License-Identifier: BSD-3-Clause */
/* tx.h - a transaction, from its begin to commit or abort. */
#ifndef MINL2R_TX_H
#define MINL2R_TX_H

#include <stdbool.h>
#include <stdint.h>

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

/* Frees the cached transactions. -EBUSY, freeing none, if one is running. */
int tx_free_all(struct minl2r_pool *pool);

#endif
