/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lane.h - hands lanes to transactions; generations; settling.
 *
 * The last lane is kept for commits: a transaction that holds a lane while its caller
 * goes on (a snapshot) never takes it, so a commit always gets a lane in the end.
 */
#ifndef MINL2R_LANE_H
#define MINL2R_LANE_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/pool.h"
#include "libminl2r/spin.h"

/* Bytes [low, high) of the pool; none if they are equal. */
struct interval {
    uint64_t low, high;
};

static inline struct interval interval_join(struct interval a, struct interval b)
{
    if (a.low == a.high)
        return b;
    if (b.low == b.high)
        return a;
    return (struct interval){a.low < b.low ? a.low : b.low,
                             a.high > b.high ? a.high : b.high};
}

/* What a generation changed in place. The last range holds all that are too many. */
#define OWNED_MAX 8
struct owned {
    uint32_t count;
    struct interval ranges[OWNED_MAX];
};

static inline void owned_add(struct owned *owned, struct interval range)
{
    struct interval *last = &owned->ranges[OWNED_MAX - 1];

    if (owned->count < OWNED_MAX)
        owned->ranges[owned->count++] = range;
    else
        *last = interval_join(*last, range);
}

/*
 * Which pieces of the pool a lane changed lately: those whose entry has the lane's tag.
 * Where a pool has more pieces than there are entries, several share one.
 */
#define LISTED_STEP 256u /* bytes */
#define LISTED_COUNT (1u << 20)
enum listed_kind { LISTED_BYTES, LISTED_SLOTS, LISTED_KINDS };
struct listed {
    uint8_t entries[LISTED_KINDS][LISTED_COUNT]; /* atomic */
};

/* Does a lane count among those that others look at? See live.h. */
enum wakefulness { LANE_ASLEEP, LANE_DROWSY, LANE_AWAKE };

/*
 * The DRAM twin of a struct pm_lane. All fields but `busy` belong to who holds the
 * lane; those of live.h others read, too: apart from the rest, and what changes with
 * each commit apart from what seldom does, and from what others write.
 */
struct lane {
    struct spin busy;
    uint64_t settled;    /* at least so much is durable */
    uint64_t generation; /* the last one, settled or live; others read it: atomic */
    struct minl2r_stats stats; /* of words without a transaction */

    /* Of live.h; atomic, all but `index`. */
    _Alignas(128) uint64_t live;
    struct interval slots;
    struct owned bytes;

    _Alignas(128) struct lane *next_live;
    struct interval blocks; /* that the live generation allocated; seldom any */
    struct listed *listed;  /* NULL: not yet */
    uint8_t listed_tag;     /* 0: nothing is listed, but anything may be owned */
    uint8_t wakefulness;
    bool is_linked;
    uint32_t index;

    /* The generation that who looked for idle lanes saw last; atomic. */
    _Alignas(128) uint64_t last_seen;
} __attribute__((aligned(128)));

/* Reads every lane's settled word. -ENOMEM. */
int lanes_attach(struct minl2r_pool *pool);
void lanes_detach(struct minl2r_pool *pool);

/* A free lane at once, or NULL; never the one kept for commits. */
struct lane *lane_try(struct minl2r_pool *pool);

/* As lane_try(), but waits; NULL at once if this thread holds a lane already. */
struct lane *lane_wait(struct minl2r_pool *pool);

/* A lane for a commit: waits while every lane is held. */
struct lane *lane_wait_commit(struct minl2r_pool *pool);

void lane_release(struct lane *lane);

static inline void lane_set_generation(struct lane *lane, uint64_t generation)
{
    __atomic_store_n(&lane->generation, generation, __ATOMIC_RELAXED);
}

/* The generation that a transaction in this lane has. */
static inline uint64_t lane_next_generation(const struct lane *lane)
{
    return lane->generation + 1;
}

/*
 * Stores `settled` = generation and makes it durable with one fence: the generation is
 * over, and recovery will not undo it (I3). Never moves back (I4).
 */
int lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                struct pm_phase *phase);

/* The store of lane_settle() alone: the caller fences. */
void lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                        uint64_t generation, struct pm_phase *phase);

/*
 * Leaves a note in the lane that `word` is about to be stored without a log, so that
 * recovery after a killed process flushes it: what a reader may have seen in the cache
 * must not be lost by a later power failure. An ordinary store, ordered before the
 * word's by x86.
 */
void lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                    struct pm_phase *phase, uint64_t word);

#endif
