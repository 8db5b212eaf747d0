/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/fs/ticks.h"

#include "bench/harness.h"

#define CALIBRATION_NS 20000000u
#define READINGS 1000

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b > 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

struct ticks ticks_calibrate(void)
{
    struct ticks clock = {.overhead = UINT64_MAX};
    uint64_t start_ns = bench_now_ns(), start = ticks_now(), end_ns;

    do
        end_ns = bench_now_ns();
    while (end_ns - start_ns < CALIBRATION_NS);
    clock.ns_per_tick = (double)(end_ns - start_ns) / (double)(ticks_now() - start);
    for (int i = 0; i < READINGS; i++) {
        uint64_t before = ticks_now();
        uint64_t between = ticks_now() - before;

        if (between < clock.overhead)
            clock.overhead = between;
        clock.step = common_divisor(clock.step, between);
    }
    return clock;
}
