/* SPDX-License-Identifier: BSD-3-Clause */
/* clock.h - the time that passes. */
#ifndef CRASHTEST_CLOCK_H
#define CRASHTEST_CLOCK_H

#include <time.h>

/* Seconds since some start. */
static inline double clock_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#endif
