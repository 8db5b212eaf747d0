/* SPDX-License-Identifier: BSD-3-Clause */
/* ticks.h - the processor's own clock, for calls too short for the kernel's. */
#ifndef BENCH_TICKS_H
#define BENCH_TICKS_H

#include <stdint.h>

#ifdef __x86_64__
#include <x86intrin.h>

/* Not before what comes before has been executed. */
static inline uint64_t ticks_now(void)
{
    unsigned core;
    uint64_t ticks = __rdtscp(&core);

    _mm_lfence();
    return ticks;
}
#else
#include "bench/harness.h"

static inline uint64_t ticks_now(void)
{
    return bench_now_ns();
}
#endif

/* Compares the clocks for 20 ms, and finds out what reading this one takes. */
struct ticks {
    double ns_per_tick;
    uint64_t overhead; /* ticks between two readings with nothing in between */
    uint64_t step;     /* ticks by which it advances, as far as readings tell */
};
struct ticks ticks_calibrate(void);

#endif
