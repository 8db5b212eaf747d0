/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/swaps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int swaps_init(struct swaps *swaps)
{
    *swaps = (struct swaps){.stamp = 1};
    swaps->places = calloc(LOOSE_PLACES, sizeof(*swaps->places));
    return swaps->places ? 0 : -ENOMEM;
}

void swaps_finish(struct swaps *swaps)
{
    free(swaps->places);
}

void swaps_forget(struct swaps *swaps)
{
    swaps->list = NULL;
    swaps->count = swaps->capacity = swaps->own = swaps->freed = 0;
    swaps->slots = (struct interval){0};
    if (++swaps->stamp > 0)
        return;
    memset(swaps->places, 0, LOOSE_PLACES * sizeof(*swaps->places));
    swaps->stamp = 1;
}

void swaps_drop(struct swaps *swaps, uint32_t count)
{
    struct swap *list = swaps->list;
    uint32_t end = swaps->count, capacity = swaps->capacity;

    swaps_forget(swaps);
    swaps->list = list;
    swaps->capacity = capacity;
    for (uint32_t i = count; i < end; i++)
        swaps_add_loose(swaps, list[i].slot, slot_is_own(&list[i]), list[i].block,
                        list[i].fresh);
}
