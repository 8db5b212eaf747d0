/* SPDX-License-Identifier: BSD-3-Clause */
/* Allocates and frees blocks in a transaction. */
#include <errno.h>

#include "libminl2r/error.h"
#include "libminl2r/writeset_internal.h"

/* Adds a run of blocks, to the newest one where they are neighbours. */
static void run_list_add_blocks(const struct writeset *ws, struct run_list *list,
                                uint64_t offset, uint64_t count)
{
    if (list->count > 0) {
        struct block_run *newest = &list->runs[list->count - 1];

        if (newest->offset + (newest->count << ws->pool->geo.block_shift) == offset &&
            is_blocks(&ws->pool->geo, newest->offset, newest->count + count)) {
            newest->count += count;
            return;
        }
    }
    run_list_add(list, offset, count);
}

int writeset_alloc(struct writeset *ws, uint64_t blocks, uint64_t *offset)
{
    const struct geometry *geo = &ws->pool->geo;

    if (blocks == 0 || blocks >= (uint64_t)1 << geo->zone_shift)
        return error_set(EINVAL, "cannot allocate %llu contiguous blocks",
                         (unsigned long long)blocks);
    int result = run_list_reserve(ws, &ws->allocs, 1);

    if (result == 0)
        result = reserve_log(ws, sizeof(struct pm_record), 0);
    if (result < 0)
        return result;
    if (writeset_reserve_blocks(ws, blocks, geo->spare_blocks, offset) < 0)
        return error_set(ENOSPC, "no %llu contiguous free blocks",
                         (unsigned long long)blocks);
    run_list_add_blocks(ws, &ws->allocs, *offset, blocks);
    return 0;
}

/* Takes a run out of those allocated by this transaction, which may split one. */
static int free_own(struct writeset *ws, struct block_run run)
{
    uint32_t shift = ws->pool->geo.block_shift;
    int result = run_list_reserve(ws, &ws->allocs, 1);

    if (result == 0)
        result = run_list_reserve(ws, &ws->abandoned, 1);
    if (result < 0)
        return result;
    for (uint32_t i = 0; i < ws->allocs.count; i++) {
        struct block_run *from = &ws->allocs.runs[i];
        uint64_t before = (run.offset - from->offset) >> shift;

        if (run.offset < from->offset || before >= from->count ||
            from->count - before < run.count)
            continue;
        uint64_t after = from->count - before - run.count;

        from->count = before;
        if (after > 0)
            run_list_add(&ws->allocs, run.offset + (run.count << shift), after);
        run_list_add(&ws->abandoned, run.offset, run.count);
        return 0;
    }
    return -EINVAL;
}

/*
 * The commit frees the old block of a swap itself; and a block whose slot it stores to
 * must be there, or what the slot is to name is lost.
 */
static bool is_needed(const struct writeset *ws, struct block_run run)
{
    for (const struct block_write *w = ws->first; w; w = w->next)
        if (w->slot != 0 && (is_in_run(ws, w->slot, run) ||
                             (w->fresh && w->block && is_in_run(ws, w->block, run))))
            return true;
    return false;
}

int writeset_free(struct writeset *ws, uint64_t offset, uint64_t blocks)
{
    struct block_run run = {offset, blocks};

    if (blocks == 0)
        return 0;
    if (!is_blocks(&ws->pool->geo, offset, blocks))
        return error_set(EINVAL, "[%llu, +%llu) is not in the pool's data area",
                         (unsigned long long)offset,
                         (unsigned long long)blocks << ws->pool->geo.block_shift);
    if (is_in_run(ws, pool_root_block(ws->pool)->offset, run))
        return error_set(EINVAL, "the root object at offset %llu cannot be freed",
                         (unsigned long long)pool_root_block(ws->pool)->offset);
    int result = sort_swaps(ws);

    if (result < 0)
        return result;
    if (is_needed(ws, run))
        return error_set(
            EINVAL,
            "blocks at offset %llu: one is being swapped for a new one, or "
            "holds a slot that is written",
            (unsigned long long)offset);
    result = is_own(ws, offset) ? free_own(ws, run) : -EINVAL;

    if (result != -EINVAL)
        return result;
    result = run_list_reserve(ws, &ws->frees, 1);
    if (result == 0)
        result = reserve_log(ws, sizeof(struct pm_record), 0);
    if (result < 0)
        return result;
    if (alloc_mark_leaving(ws->pool, run) < 0)
        return error_set(
            EINVAL, "%llu blocks at offset %llu are not all allocated, or freed twice",
            (unsigned long long)blocks, (unsigned long long)offset);
    run_list_add_blocks(ws, &ws->frees, offset, blocks);
    return 0;
}
