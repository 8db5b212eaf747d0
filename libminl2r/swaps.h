/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swaps.h - blocks that a commit swaps for fresh ones.
 *
 * While changes are queued, a block that is written whole, once, and by its slot alone is
 * loose: it is in this list and not in the table of blocks, since large writes are made of
 * such. The rest comes here when the write set is closed.
 *
 * `places` finds loose ones by their keys, as in plain.h.
 */
#ifndef MINL2R_SWAPS_H
#define MINL2R_SWAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libminl2r/lane.h"

#define LOOSE_MAX 256u
#define LOOSE_PLACES 512u

struct swap {
    uint64_t slot;    /* offset of the slot that names it */
    uint64_t block;   /* 0: the slot is a hole */
    uint64_t fresh;   /* reserved: the slot's new value */
    bool slot_is_own; /* the slot lies in a block that this transaction allocated */
};

struct swap_place {
    uint32_t stamp;
    uint32_t index;
};

struct swaps {
    struct swap *list; /* in the arena */
    uint32_t count, capacity;
    uint32_t stamp;            /* never 0 */
    struct interval slots;     /* all loose ones lie in it */
    struct swap_place *places; /* [LOOSE_PLACES] */
};

/* What names an entry of a block in the table, too: the block, or where its slot is. */
static inline uint64_t swap_key(uint64_t slot, uint64_t block)
{
    return block ? block : slot + 1;
}

static inline struct swap_place *swap_place(struct swaps *swaps, uint32_t i)
{
    return &swaps->places[i % LOOSE_PLACES];
}

/* Where a loose one of that key is, or belongs. */
static inline struct swap_place *swaps_find_place(struct swaps *swaps, uint64_t key)
{
    uint32_t i = (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32);

    for (; swap_place(swaps, i)->stamp == swaps->stamp; i++) {
        const struct swap *s = &swaps->list[swap_place(swaps, i)->index];

        if (swap_key(s->slot, s->block) == key)
            break;
    }
    return swap_place(swaps, i);
}

/* A loose one, or NULL. */
static inline const struct swap *swaps_find(struct swaps *swaps, uint64_t key)
{
    if (swaps->count == 0)
        return NULL;
    const struct swap_place *place = swaps_find_place(swaps, key);

    return place->stamp == swaps->stamp ? &swaps->list[place->index] : NULL;
}

/* There is room for one more. Field by field, since blocks may be on their way past the
 * cache: a load of several stores at once would wait until these have drained. */
static inline void swaps_add(struct swaps *swaps, uint64_t slot, bool slot_is_own,
                             uint64_t block, uint64_t fresh)
{
    struct swap *swap = &swaps->list[swaps->count++];

    swap->slot = slot;
    swap->block = block;
    swap->fresh = fresh;
    swap->slot_is_own = slot_is_own;
}

/* Of a key that none has. */
static inline void swaps_add_loose(struct swaps *swaps, uint64_t slot, bool slot_is_own,
                                   uint64_t block, uint64_t fresh)
{
    struct swap_place *place = swaps_find_place(swaps, swap_key(slot, block));
    struct interval *slots = &swaps->slots;

    place->stamp = swaps->stamp;
    place->index = swaps->count;
    if (slots->low == slots->high)
        slots->low = slots->high = slot;
    if (slot < slots->low)
        slots->low = slot;
    if (slot + sizeof(slot) > slots->high)
        slots->high = slot + sizeof(slot);
    swaps_add(swaps, slot, slot_is_own, block, fresh);
}

/* Are all loose, and do their slots follow each other without a gap? */
static inline bool swaps_are_neighbours(const struct swaps *swaps)
{
    return swaps->slots.high - swaps->slots.low == swaps->count * sizeof(uint64_t);
}

int swaps_init(struct swaps *swaps); /* -ENOMEM */
void swaps_finish(struct swaps *swaps);

/* Forgets all of them. Most transactions have none. */
void swaps_forget(struct swaps *swaps);
static inline void swaps_reset(struct swaps *swaps)
{
    if (swaps->capacity > 0)
        swaps_forget(swaps);
}

/* The first `count` are not loose any more. */
void swaps_drop(struct swaps *swaps, uint32_t count);

#endif
