/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.h - a lock for sections of a few instructions, or up to a fence.
 *
 * A locked instruction waits until every store of this thread has drained, a fence
 * before it included: see pm.h. So a lock is biased: it belongs to the thread that
 * takes it first, which takes it from then on by ordinary stores. The first other
 * thread that wants it gets it, since many things are made by one thread and used by
 * another one. The next that wants it makes it everyone's, for good: taking it is a
 * locked instruction then, releasing it still is not.
 */
#ifndef MINL2R_SPIN_H
#define MINL2R_SPIN_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/thread.h"

/* Zeroed, it is free, and nobody's. */
struct spin {
    uint64_t state; /* atomic: whose it is, and whether another one has taken it */
    /*
     * Atomic: its first, or second, owner has taken it, or looks whether it can; who
     * was the owner may still write to its own.
     */
    uint32_t inside[2];
};

#define SPIN_TAKEN 1ull
#define SPIN_SHARED (1ull << 40) /* everyone's */
#define SPIN_SECOND_BIT 41
#define SPIN_SECOND (1ull << SPIN_SECOND_BIT) /* the second owner's */

static inline uint32_t *spin_inside(struct spin *spin, uint64_t state)
{
    return &spin->inside[state >> SPIN_SECOND_BIT & 1];
}

/* The state of a free lock that is this thread's, as its first owner. */
static inline uint64_t spin_own(void)
{
    return (uint64_t)thread_number() << 1;
}

/* Of one that is not this thread's (yet). */
bool spin_try_other(struct spin *spin);

/*
 * Who takes a lock from its owner stores SPIN_TAKEN, has all processors pass a barrier
 * (spin.c), and then looks at `inside`. Either that barrier comes after the owner's
 * store, which is seen then; or before it, and the owner sees SPIN_TAKEN.
 */
static inline bool spin_try(struct spin *spin)
{
    uint64_t state = __atomic_load_n(&spin->state, __ATOMIC_RELAXED);
    uint32_t *inside = spin_inside(spin, state);

    if ((state & ~SPIN_SECOND) != spin_own())
        return spin_try_other(spin);
    if (__atomic_load_n(inside, __ATOMIC_RELAXED))
        return false; /* taken by this thread */
    __atomic_store_n(inside, 1, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&spin->state, __ATOMIC_ACQUIRE) == state)
        return true;
    __atomic_store_n(inside, 0, __ATOMIC_RELAXED);
    return false;
}

static inline void spin_unlock(struct spin *spin)
{
    uint64_t state = __atomic_load_n(&spin->state, __ATOMIC_RELAXED);

    if ((state & ~(SPIN_TAKEN | SPIN_SECOND)) == spin_own())
        __atomic_store_n(spin_inside(spin, state), 0, __ATOMIC_RELEASE);
    else
        __atomic_store_n(&spin->state, SPIN_SHARED, __ATOMIC_RELEASE);
}

/*
 * Has all threads of this process pass a barrier: what one of them loads after it comes
 * after its own stores before it. False where that cannot be had.
 */
bool spin_barrier(void);

/* Waits a little longer at each round: first in place, then off the processor. */
void spin_wait(uint32_t round);

static inline void spin_lock(struct spin *spin)
{
    for (uint32_t round = 0; !spin_try(spin); round++)
        spin_wait(round);
}

#endif
