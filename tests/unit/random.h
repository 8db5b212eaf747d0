/* SPDX-License-Identifier: BSD-3-Clause */
/* random.h - numbers that are the same in every run of a test (xorshift64*). */
#ifndef RANDOM_H
#define RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct random {
    uint64_t state; /* not 0 */
};

static inline uint64_t random_next(struct random *random)
{
    random->state ^= random->state >> 12;
    random->state ^= random->state << 25;
    random->state ^= random->state >> 27;
    return random->state * 0x2545f4914f6cdd1dull;
}

/* From 0 to `limit` - 1; 0 if there is none. */
static inline uint64_t random_below(struct random *random, uint64_t limit)
{
    return limit > 0 ? (random_next(random) >> 16) % limit : 0;
}

static inline void random_fill(struct random *random, void *bytes, size_t size)
{
    uint8_t *to = bytes;

    for (size_t i = 0; i < size; i++)
        to[i] = (uint8_t)(random_next(random) >> 32);
}

#endif
