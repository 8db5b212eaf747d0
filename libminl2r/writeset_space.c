/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a transaction reserves beside memory: blocks, and room in its lists and its log.
 */
#include <errno.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/log.h"
#include "libminl2r/writeset_internal.h"

/*
 * A larger vector in the arena with the items of one that is too small; NULL: no
 * memory.
 */
static void *grow_vector(struct writeset *ws, const void *items, uint64_t count,
                         uint64_t capacity, size_t item_size)
{
    void *larger =
        capacity > UINT32_MAX ? NULL : arena_alloc(&ws->arena, capacity * item_size);

    if (larger && count > 0)
        memcpy(larger, items, count * item_size);
    return larger;
}

int run_list_reserve(struct writeset *ws, struct run_list *list, uint64_t more)
{
    if (list->capacity - list->count >= more)
        return 0;
    uint64_t capacity = list->count + more + list->capacity;
    struct block_run *runs =
        grow_vector(ws, list->runs, list->count, capacity, sizeof(*runs));

    if (!runs)
        return no_memory();
    list->runs = runs;
    list->capacity = (uint32_t)capacity;
    return 0;
}

static int reserve_intervals(struct writeset *ws, struct interval_list *list,
                             uint64_t more)
{
    if (list->capacity - list->count >= more)
        return 0;
    uint64_t capacity = list->count + more + list->capacity;
    struct interval *larger =
        grow_vector(ws, list->list, list->count, capacity, sizeof(*larger));

    if (!larger)
        return no_memory();
    list->list = larger;
    list->capacity = (uint32_t)capacity;
    return 0;
}

/* ---- Blocks ---------------------------------------------------------------------- */

int writeset_reserve_blocks(struct writeset *ws, uint64_t count, uint64_t spare,
                            uint64_t *offset)
{
    if (alloc_reserve(ws->pool, count, spare, offset) == 0)
        return 0;
    if (live_end_quarantine(ws->pool, ws->phase, &ws->settling) < 0)
        return -ENOSPC;
    return alloc_reserve(ws->pool, count, spare, offset);
}

static int reserve_swap_entry(struct writeset *ws)
{
    struct swaps *swaps = &ws->swaps;

    if (swaps->capacity > ws->fresh_count)
        return 0;
    uint64_t capacity = swaps->capacity * 2ull + 16;
    struct swap *list =
        grow_vector(ws, swaps->list, swaps->count, capacity, sizeof(*list));

    if (!list)
        return no_memory();
    swaps->list = list;
    swaps->capacity = (uint32_t)capacity;
    return 0;
}

static int count_fresh(struct writeset *ws, int result, uint64_t *fresh)
{
    if (result == 0)
        ws->fresh_count++;
    else
        *fresh = 0;
    return result;
}

int writeset_take_fresh(struct writeset *ws, uint64_t spare, uint64_t *fresh)
{
    int result = reserve_swap_entry(ws);

    if (result == 0)
        result = alloc_reserve_swap(ws->pool, spare, fresh);
    return count_fresh(ws, result, fresh);
}

int writeset_reserve_fresh(struct writeset *ws, uint64_t spare, uint64_t *fresh)
{
    int result = writeset_take_fresh(ws, spare, fresh);

    if (result != -ENOSPC)
        return result;
    return count_fresh(ws, writeset_reserve_blocks(ws, 1, spare, fresh), fresh);
}

/* ---- Log ------------------------------------------------------------------------- */

static int add_segment(struct writeset *ws, uint64_t missing)
{
    const struct geometry *geo = &ws->pool->geo;
    uint64_t wanted = missing + ws->log_space / 2 + PM_PAGE;
    uint64_t count = (wanted + geo->block_size - 1) >> geo->block_shift;
    uint64_t count_max = ((uint64_t)1 << geo->zone_shift) - 1;
    uint64_t offset;
    int result = run_list_reserve(ws, &ws->segments, 1);

    if (result < 0)
        return result;
    if (count > count_max)
        count = count_max;
    while (writeset_reserve_blocks(ws, count, 0, &offset) < 0) {
        count /= 2;
        if (count == 0)
            return error_set(ENOSPC, "no space for %llu more bytes of log",
                             (unsigned long long)missing);
    }
    run_list_add(&ws->segments, offset, count);
    ws->log_space += log_part_space(count << geo->block_shift);
    return 0;
}

int writeset_grow_log(struct writeset *ws, uint64_t queued, uint64_t written)
{
    uint64_t needed =
        log_space_needed(ws->log_queued + queued) + ws->log_written + written;

    while (ws->log_space < needed) {
        int result = add_segment(ws, needed - ws->log_space);

        if (result < 0)
            return result;
    }
    return 0;
}

int writeset_reserve_snapshots(struct writeset *ws, const struct minl2r_range *ranges,
                               uint64_t count)
{
    uint64_t records_size = 0;
    int result;

    for (uint64_t i = 0; i < count; i++) {
        result = writeset_check_allocated(ws, pool_offset(ws->pool, ranges[i].pm),
                                          ranges[i].size);
        if (result < 0)
            return result;
        records_size += LOG_RECORD_SIZE(ranges[i].size);
    }
    result = reserve_intervals(ws, &ws->snapshots, count);
    if (result == 0)
        result = reserve_log(ws, 0, log_space_needed(records_size) + PM_LINE);
    return result;
}
