/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * watch.h - a debug mode that finds what breaks the promise of MINL2R_COMMIT_PROVE.
 *
 * A store past the library into bytes of a live generation makes recovery undo a
 * transaction that committed. With MINL2R_WATCH=1 in the environment two things find
 * such a store, say where, and end the process:
 *
 *   the mapping  is read-only to the program: pm_watch(). A store faults, and the
 *                program's stack is shown. What minl2r_tx_alloc(), minl2r_tx_snapshot()
 *                and minl2r_tx_snapshotv() give out as writable points into the mapping
 *                that the library stores through.
 *   comparing    Before a generation is settled, or another log takes its place, its
 *                bytes have to be those that it stored. So pointers are found that were
 *                kept for too long, and other processes.
 */
#ifndef MINL2R_WATCH_H
#define MINL2R_WATCH_H

#include "libminl2r/pool.h"
#include "libminl2r/writeset.h"

/* Watches the pool if its mapping is. -ENOMEM. */
int watch_start(struct minl2r_pool *pool);
void watch_stop(struct minl2r_pool *pool);

/*
 * What the slot commit of `generation` is about to store in place. By the lane's
 * holder.
 */
void watch_remember_changes(struct minl2r_pool *pool, const struct lane *lane,
                            uint64_t generation, const struct writeset *writes);

/*
 * Compares, once, and forgets: from here on others may change these bytes. Nothing
 * where `generation` is 0, none, or others were here already.
 */
void watch_check_changes(struct minl2r_pool *pool, const struct lane *lane,
                         uint64_t generation);

static inline void watch_remember(struct minl2r_pool *pool, const struct lane *lane,
                                  uint64_t generation, const struct writeset *writes)
{
    if (pool->watch)
        watch_remember_changes(pool, lane, generation, writes);
}

static inline void watch_check(struct minl2r_pool *pool, const struct lane *lane,
                               uint64_t generation)
{
    if (pool->watch && generation != 0)
        watch_check_changes(pool, lane, generation);
}

#endif
