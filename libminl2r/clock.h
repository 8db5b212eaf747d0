/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the time that passes. */
#ifndef MINL2R_CLOCK_H
#define MINL2R_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds since some start. */
static inline uint64_t clock_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
