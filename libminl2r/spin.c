/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/spin.h"

#include <linux/membarrier.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libminl2r/clock.h"

#define PAUSE_ROUNDS 100
#define YIELD_ROUNDS 200
#define SLEEP_NS 50000
#define DRAIN_NS 2000000

/* All threads of this process pass a barrier. */
static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

/* Can the kernel do that? Where it cannot, every lock is everyone's. */
static bool can_bias(void)
{
    static int can; /* atomic; 0: not asked yet; -1: no */

    if (__atomic_load_n(&can, __ATOMIC_RELAXED) == 0)
        __atomic_store_n(&can,
                         membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED) ? 1 : -1,
                         __ATOMIC_RELAXED);
    return __atomic_load_n(&can, __ATOMIC_RELAXED) > 0;
}

static bool change_state(struct spin *spin, uint64_t from, uint64_t to)
{
    return __atomic_compare_exchange_n(&spin->state, &from, to, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

/* With SPIN_TAKEN: to the state of who has it from now on. */
static void become_owner(struct spin *spin, uint64_t own)
{
    __atomic_store_n(spin_inside(spin, own), 1, __ATOMIC_RELAXED);
    __atomic_store_n(&spin->state, own, __ATOMIC_RELEASE);
}

static bool take_first(struct spin *spin)
{
    uint64_t own = spin_own();

    if (!can_bias())
        return change_state(spin, 0, SPIN_SHARED | SPIN_TAKEN);
    if (!change_state(spin, 0, own | SPIN_TAKEN))
        return false;
    become_owner(spin, own);
    return true;
}

/*
 * Where the call is forbidden by now (seccomp(2)), time is the barrier: what the owner
 * has loaded before it sees SPIN_TAKEN comes after its store to `inside`, which drains
 * in microseconds. Without a call of libc in which a thread could be cancelled.
 */
static void pass_barriers(void)
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    for (uint64_t begin = clock_now_ns(); clock_now_ns() - begin < DRAIN_NS;)
        __builtin_ia32_pause();
}

/* Takes a lock that is another thread's from it; see spin_try(). */
static bool take_from(struct spin *spin, uint64_t owner)
{
    const uint32_t *inside = spin_inside(spin, owner);

    if (__atomic_load_n(inside, __ATOMIC_RELAXED) ||
        !change_state(spin, owner, owner | SPIN_TAKEN))
        return false;
    pass_barriers();
    bool taken = !__atomic_load_n(inside, __ATOMIC_ACQUIRE);

    if (!taken)
        __atomic_store_n(&spin->state, owner, __ATOMIC_RELEASE);
    else if (owner & SPIN_SECOND)
        __atomic_store_n(&spin->state, SPIN_SHARED | SPIN_TAKEN, __ATOMIC_RELEASE);
    else
        become_owner(spin, spin_own() | SPIN_SECOND);
    return taken;
}

bool spin_try_other(struct spin *spin)
{
    uint64_t state = __atomic_load_n(&spin->state, __ATOMIC_RELAXED);

    if (state & SPIN_TAKEN)
        return false;
    if (state == SPIN_SHARED)
        return change_state(spin, SPIN_SHARED, SPIN_SHARED | SPIN_TAKEN);
    return state == 0 ? take_first(spin) : take_from(spin, state);
}

bool spin_barrier(void)
{
    return can_bias() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

void spin_wait(uint32_t round)
{
    static const struct timespec sleep = {.tv_nsec = SLEEP_NS};

    if (round < PAUSE_ROUNDS)
        __builtin_ia32_pause();
    else if (round < YIELD_ROUNDS)
        sched_yield();
    else
        nanosleep(&sleep, NULL);
}
