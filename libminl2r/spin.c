/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/spin.h"

#include <sched.h>
#include <time.h>

#define PAUSE_ROUNDS 100
#define YIELD_ROUNDS 200
#define SLEEP_NS 50000

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
