/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * spin.h - a lock for sections of a few instructions.
 *
 * A locked instruction waits until every store of this thread has drained, a fence
 * before it included; here only taking the lock is one, releasing it is not. See pm.h.
 */
#ifndef MINL2R_SPIN_H
#define MINL2R_SPIN_H

#include <stdbool.h>
#include <stdint.h>

struct spin {
    uint32_t taken; /* atomic */
};

static inline bool spin_try(struct spin *spin)
{
    return !__atomic_load_n(&spin->taken, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(&spin->taken, 1, __ATOMIC_ACQUIRE);
}

static inline void spin_unlock(struct spin *spin)
{
    __atomic_store_n(&spin->taken, 0, __ATOMIC_RELEASE);
}

/* Waits a little longer at each round: first in place, then off the processor. */
void spin_wait(uint32_t round);

static inline void spin_lock(struct spin *spin)
{
    for (uint32_t round = 0; !spin_try(spin); round++)
        spin_wait(round);
}

#endif
