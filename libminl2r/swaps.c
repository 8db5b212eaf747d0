/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/swaps.h"

#include <string.h>

void swaps_init(struct swaps *swaps)
{
    memset(swaps, 0, sizeof(*swaps));
    swaps->stamp = 1;
}

void swaps_drop(struct swaps *swaps, uint32_t count)
{
    struct swap *list = swaps->list;
    uint32_t end = swaps->count, capacity = swaps->capacity;

    swaps_reset(swaps);
    swaps->list = list;
    swaps->capacity = capacity;
    for (uint32_t i = count; i < end; i++)
        swaps_add_loose(swaps, list[i].slot, list[i].slot_is_own, list[i].block,
                        list[i].fresh);
}
