/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * swaps.h - blocks that a commit swaps for fresh ones.
 *
 * While changes are queued, a block that is written whole, once, and by its slot alone
 * is loose: it is in this list and not in the table of blocks, since large writes are
 * made of such. The rest comes here when the write set is closed.
 *
 * `places` finds loose ones by their keys, as in plain.h.
 */
#ifndef MINL2R_SWAPS_H
#define MINL2R_SWAPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libminl2r/lane.h"
#include "libminl2r/layout.h"

#define LOOSE_MAX 256u
#define LOOSE_PLACES 512u

/*
 * As a slot commit logs it, a PM_SLOT: what is done for each block of a large write
 * costs nothing before commit, while blocks are on their way.
 */
struct swap {
    uint32_t type;   /* PM_ALLOC: the slot lies in a block that is new, too */
    uint32_t length; /* of the slot */
    uint64_t slot;   /* offset of the slot that names it */
    uint64_t block;  /* 0: the slot is a hole */
    uint64_t fresh;  /* reserved: the slot's new value */
};
_Static_assert(offsetof(struct swap, slot) == offsetof(struct pm_record, target) &&
                   offsetof(struct swap, block) == sizeof(struct pm_record) &&
                   sizeof(struct swap) ==
                       sizeof(struct pm_record) + sizeof(struct pm_swap),
               "a swap is its record");

static inline bool slot_is_own(const struct swap *swap)
{
    return swap->type != PM_SLOT;
}

struct swap_place {
    uint32_t stamp;
    uint32_t index;
};

struct swaps {
    struct swap *list; /* in the arena */
    uint32_t count, capacity;
    uint32_t own, freed;       /* whose slot is own; that free a block */
    uint32_t stamp;            /* never 0 */
    struct interval slots;     /* all lie in it */
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
static inline void swaps_add(struct swaps *swaps, uint64_t slot, bool is_own,
                             uint64_t block, uint64_t fresh)
{
    struct swap *swap = &swaps->list[swaps->count++];
    struct interval *slots = &swaps->slots;

    swap->type = is_own ? PM_ALLOC : PM_SLOT;
    swap->length = sizeof(slot);
    swap->slot = slot;
    swap->block = block;
    swap->fresh = fresh;
    swaps->own += is_own;
    swaps->freed += block != 0;
    if (slots->low == slots->high)
        slots->low = slots->high = slot;
    if (slot < slots->low)
        slots->low = slot;
    if (slot + sizeof(slot) > slots->high)
        slots->high = slot + sizeof(slot);
}

/* Of a key that none has. */
static inline void swaps_add_loose(struct swaps *swaps, uint64_t slot, bool is_own,
                                   uint64_t block, uint64_t fresh)
{
    struct swap_place *place = swaps_find_place(swaps, swap_key(slot, block));

    place->stamp = swaps->stamp;
    place->index = swaps->count;
    swaps_add(swaps, slot, is_own, block, fresh);
}

/* Do their slots follow each other without a gap? */
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
