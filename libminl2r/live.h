/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * live.h - generations that committed and are live still, and who has to settle them.
 *
 * A slot commit (slot_commit.h) ends without settling its generation. Recovery finishes
 * it once more, or undoes it, by what it finds at the slots and bytes that its log
 * names: those must not change behind its back. So, with "settles" for: raises the
 * settled word of that lane and flushes it, before a fence that precedes the change:
 *
 *   who logs            settles every live lane: it rides on F1;
 *   a slot commit       settles the lanes whose bytes it changes, and those that
 *                       allocated what it frees: it rides on F1;
 *   a word              settles the lanes whose bytes or slots it changes;
 *   fresh bytes         settle the lanes whose bytes they change, with a fence of their
 *                       own, since they are stored before F1;
 *   who takes blocks    settles every lane that was live when they were freed.
 *   out of quarantine
 *
 * Whose quarantine it is does not matter: a block is put there once the generation that
 * freed it is live, so whoever has read a mark behind the block sees that lane as live,
 * and those of generations before it.
 *
 * Slots that a slot commit swaps settle nobody: recovery sees by their value that they
 * went on, since a block that was freed is in quarantine as long as a generation is
 * live that can name it. What was allocated besides has no slot that would tell that it
 * was freed since.
 *
 * What a lane owns are up to eight ranges of bytes, one of slots, and one of blocks
 * that it allocated: exactly that, or more. In which pieces of the pool bytes and slots
 * lie it lists besides (lane.h), before it is live, so that others seldom have to look:
 * who changes bytes comes after the commit that owns them, by the program's own locks,
 * and so finds its entries. They are forgotten by whole rounds, between F1 and
 * live_enter(), when the lane is not live. As long as no other lane is linked there is
 * no list: who links one looks at all ranges until this lane's next commit.
 *
 * A thread that commits no more leaves its lane live, and whoever commits would look at
 * it for ever. So each lane looks for idle ones, once in IDLE_ROUND of its generations:
 * those whose generation is as it was at the last look. First they are settled, by its
 * F1, and the next time they fall asleep. A lane that is asleep is not live, and nobody
 * looks at it: awake_lanes tells whether there are others at all. Its holder wakes it
 * in live_enter(), after the store that makes it live. Who puts it to sleep marks it as
 * drowsy, has all processors pass a barrier, and then looks whether it is live: either
 * the barrier came after that store, which is seen then, or before it, and the holder
 * sees the mark.
 *
 * Settling raises a word that other threads may be raising, too, to a generation that
 * committed; the lane itself may have gone on. A lane counts as settled only after the
 * fence of one who raised it (live_forget).
 */
#ifndef MINL2R_LIVE_H
#define MINL2R_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/lane.h"
#include "libminl2r/pool.h"

/* What one transaction is settling: a generation per lane of the pool; 0: none. */
struct settling {
    uint64_t *generations;
    bool any;
};

int settling_init(struct settling *settling, const struct minl2r_pool *pool);
void settling_finish(struct settling *settling);

/* Has there been a slot commit at all? */
static inline bool live_possible(const struct minl2r_pool *pool)
{
    return __atomic_load_n(&pool->live_lanes, __ATOMIC_ACQUIRE) != NULL;
}

static inline enum wakefulness live_wakefulness(const struct lane *lane)
{
    return (enum wakefulness)__atomic_load_n(&lane->wakefulness, __ATOMIC_ACQUIRE);
}

/* Can there be one of another lane? The count comes first: it is lowered last. */
static inline bool live_others_possible(const struct minl2r_pool *pool,
                                        const struct lane *own)
{
    uint32_t awake = __atomic_load_n(&pool->awake_lanes, __ATOMIC_ACQUIRE);

    return awake > (live_wakefulness(own) != LANE_ASLEEP);
}

/*
 * Settle every live lane but `own`, which may be NULL; or those that own bytes of
 * `range`, or bytes or slots; or that allocated blocks of it. A fence must follow, and
 * then live_forget().
 */
void live_settle_all(struct minl2r_pool *pool, const struct lane *own,
                     struct pm_phase *phase, struct settling *settling);
void live_settle_bytes(struct minl2r_pool *pool, const struct lane *own,
                       struct interval range, struct pm_phase *phase,
                       struct settling *settling);
void live_settle_word(struct minl2r_pool *pool, const struct lane *own,
                      struct interval range, struct pm_phase *phase,
                      struct settling *settling);
void live_settle_blocks(struct minl2r_pool *pool, const struct lane *own,
                        struct interval range, struct pm_phase *phase,
                        struct settling *settling);

/*
 * Settles, likewise, the lanes that are idle; those that are not even live fall asleep.
 */
#define IDLE_ROUND 512
void live_look_for_idle(struct minl2r_pool *pool, const struct lane *own,
                        struct pm_phase *phase, struct settling *settling);

/* Is it time to, before `generation`? Early, so that it is when few have committed. */
static inline bool live_round_begins(uint64_t generation)
{
    return generation % IDLE_ROUND == 1;
}

/* The same of the word at `offset`, with a fence where one is needed. -EIO. */
int live_settle_word_now(struct minl2r_pool *pool, uint64_t offset,
                         struct pm_phase *phase);

/* Settles every lane, as the last thing that is done to the pool. */
void live_settle_now(struct minl2r_pool *pool, struct pm_phase *phase);

/* What was settled is durable: nobody has to settle it again. */
void live_forget_settled(const struct minl2r_pool *pool, struct settling *settling);

static inline void live_forget(const struct minl2r_pool *pool,
                               struct settling *settling)
{
    if (settling->any)
        live_forget_settled(pool, settling);
}

/* Settles every lane, waits for that, and releases what was in quarantine. -EIO. */
int live_end_quarantine(struct minl2r_pool *pool, struct pm_phase *phase,
                        struct settling *settling);

/*
 * What the generation of `lane` owns once it is live. Between F1, from which on the one
 * before is not live, and live_enter(). If live_lists(), slots and bytes are listed,
 * too.
 */
void live_own(struct lane *lane, struct interval slots, const struct owned *bytes,
              struct interval blocks);
bool live_lists(const struct minl2r_pool *pool, struct lane *lane, uint64_t generation);
void live_list(struct lane *lane, enum listed_kind kind, struct interval range);

/* For who holds the lane: others look at it from now on, and list what they own. */
void live_wake(struct minl2r_pool *pool, struct lane *lane);

/* A lane of a thread that looks at others' is there, too: so they list. */
static inline void live_stay_awake(struct minl2r_pool *pool, struct lane *lane)
{
    if (live_wakefulness(lane) != LANE_AWAKE && live_possible(pool))
        live_wake(pool, lane);
}

/* The generation, which committed, stays live. */
void live_enter(struct minl2r_pool *pool, struct lane *lane, uint64_t generation);

/* The generation that `lane` has left live; 0: none. */
static inline uint64_t live_generation_of(const struct lane *lane)
{
    return __atomic_load_n(&lane->live, __ATOMIC_ACQUIRE);
}

/* The lane's holder settled it. */
static inline void live_leave(struct lane *lane)
{
    if (__atomic_load_n(&lane->live, __ATOMIC_RELAXED) != 0)
        __atomic_store_n(&lane->live, 0, __ATOMIC_RELEASE);
}

#endif
