/* SPDX-License-Identifier: BSD-3-Clause */
/* long.h - whether tests may take long: ./dev test --long. */
#ifndef LONG_H
#define LONG_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static inline bool is_long_test(void)
{
    const char *value = getenv("MINL2R_TEST_LONG");

    return value && strcmp(value, "ON") == 0;
}

/* Tests that search at random then take `factor` times as long. */
static inline uint64_t times_if_long(uint64_t count, uint64_t factor)
{
    return is_long_test() ? count * factor : count;
}

#endif
