/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * plain.h - ranges that lie in one line each and touch no other: all that most small
 * transactions write. They are kept in the order of the calls, whatever their blocks.
 *
 * `places` is a hash table of lines, with open addressing: a place with the stamp of
 * now says which extent lies in a line of that hash. So it need not be cleared.
 */
#ifndef MINL2R_PLAIN_H
#define MINL2R_PLAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/pm.h"

#define PLAIN_MAX 128u
#define PLAIN_PLACES 512u

struct plain_place {
    uint32_t stamp;
    uint32_t index; /* of the extent */
};

struct plain {
    uint32_t count;
    uint32_t stamp; /* never 0 */
    struct extent extents[PLAIN_MAX];
    struct plain_place places[PLAIN_PLACES];
};

static inline struct plain_place *plain_place(struct plain *plain, uint32_t i)
{
    return &plain->places[i % PLAIN_PLACES];
}

/* Adds a range of one line. False, adding nothing, if it touches another, or where
 * there are too many. */
static inline bool plain_add(struct plain *plain, uint64_t start, uint32_t size,
                             const uint8_t *bytes)
{
    uint64_t hash = start / PM_LINE * 0x9e3779b97f4a7c15u;
    uint32_t i = (uint32_t)(hash >> 32);

    if (plain->count == PLAIN_MAX)
        return false;
    for (; plain_place(plain, i)->stamp == plain->stamp; i++) {
        const struct extent *e = &plain->extents[plain_place(plain, i)->index];

        if (e->start < start + size && start < extent_end(e))
            return false;
    }
    *plain_place(plain, i) = (struct plain_place){plain->stamp, plain->count};
    plain->extents[plain->count++] = (struct extent){start, bytes, size, false};
    return true;
}

void plain_init(struct plain *plain);

/* Forgets all of them. */
static inline void plain_reset(struct plain *plain)
{
    plain->count = 0;
    if (++plain->stamp == 0)
        plain_init(plain);
}

#endif
