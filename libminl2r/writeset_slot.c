/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes blocks by the slot that names them. */
#include <errno.h>
#include <string.h>

#include "libminl2r/copy.h"
#include "libminl2r/error.h"
#include "libminl2r/log.h"
#include "libminl2r/writeset_internal.h"

/* A swap's record, or two of blocks. */
#define LOG_SWAP_SIZE_MAX (2 * sizeof(struct pm_record) + sizeof(struct pm_swap))

/* ---- The slot -------------------------------------------------------------------- */

/* A fresh block that may be streamed to: the list has room for it. */
static void abandon(struct writeset *ws, uint64_t *fresh)
{
    run_list_add(&ws->abandoned, *fresh, 1);
    *fresh = 0;
    ws->fresh_count--;
}

/*
 * A block that holds a slot must stay where it is: back to data logging. Working copies
 * in it may have been handed out without room in the log for their bytes, so that is
 * reserved for the whole block.
 */
static int pin_block(struct writeset *ws, struct block_write *write)
{
    uint64_t records_size =
        ws->pool->geo.block_size + write->extent_count * (LOG_RECORD_SIZE(0) + 8);

    if (!write->fresh)
        return 0;
    int result = reserve_log(ws, records_size, 0);

    if (result == 0)
        result = run_list_reserve(ws, &ws->abandoned, 1);
    if (result < 0)
        return result;
    abandon(ws, &write->fresh);
    return 0;
}

/* Finds the entry of the block that holds `slot`, and keeps that block in place. */
static int get_holder(struct writeset *ws, uint64_t slot, struct block_write **holder)
{
    const struct geometry *geo = &ws->pool->geo;
    uint32_t at = (uint32_t)((slot - geo->zones_offset) & (geo->block_size - 1));

    *holder = get_block_write(ws, slot - at, slot - at);
    if (!*holder)
        return -ENOMEM;
    if ((*holder)->streamed ||
        covered_in(*holder, at, at + (uint32_t)sizeof(uint64_t)) > 0 ||
        (ws->edits && find_edit(ws, slot, sizeof(uint64_t))))
        return error_set(EINVAL,
                         "the slot at offset %llu is written both by "
                         "minl2r_tx_write_block and directly",
                         (unsigned long long)slot);
    return pin_block(ws, *holder);
}

/*
 * By this transaction. What is kept for swaps or logs, or is another's, is reserved,
 * too, and a damaged slot may name it.
 */
static bool allocates(const struct writeset *ws, uint64_t block)
{
    for (uint32_t i = ws->allocs.count; i > 0; i--)
        if (is_in_run(ws, block, ws->allocs.runs[i - 1]))
            return true;
    return false;
}

static bool names_block(const struct writeset *ws, uint64_t value)
{
    return is_blocks(&ws->pool->geo, value, 1) &&
           (is_allocated(ws, value) || (is_own(ws, value) && allocates(ws, value)));
}

/* A slot in use by one call: what the call takes back if it fails. */
struct slot_use {
    struct block_write *write;  /* the entry of the block that the slot names */
    struct block_write *holder; /* that of the block it lies in; NULL: own memory */
    bool attached;              /* by this call */
    bool had_fresh;             /* before this call */
};

/* Finds the entries of a slot, and makes it the one that names its block. */
static int attach_slot(struct writeset *ws, uint64_t slot, uint64_t value,
                       struct slot_use *use)
{
    uint64_t block = block_offset(&ws->pool->geo, block_index(&ws->pool->geo, slot));
    bool own = is_own(ws, block);

    *use = (struct slot_use){0};
    if (!own && !is_allocated(ws, block))
        return not_allocated(block);
    int result = own ? 0 : get_holder(ws, slot, &use->holder);

    if (result < 0)
        return result;
    struct block_write *write = get_block_write(ws, swap_key(slot, value), value);

    if (!write)
        return -ENOMEM;
    use->write = write;
    use->had_fresh = write->fresh != 0;
    if (write->slot == slot)
        return 0;
    if (write->slot)
        return error_set(EUCLEAN, "slots at offsets %llu and %llu name the same block",
                         (unsigned long long)write->slot, (unsigned long long)slot);
    result = reserve_log(ws, LOG_SWAP_SIZE_MAX, 0);
    if (result < 0)
        return result;
    write->slot = slot;
    write->slot_is_own = own;
    if (use->holder) {
        write->next_slot = use->holder->slots;
        use->holder->slots = write;
    }
    use->attached = true;
    return 0;
}

/* I8: a slot that could not be written keeps its value, and may be written directly. */
static void take_back_slot(struct writeset *ws, const struct slot_use *use)
{
    struct block_write *write = use->write;

    if (write->fresh && !use->had_fresh) {
        alloc_release(ws->pool, (struct block_run){write->fresh, 1});
        write->fresh = 0;
        ws->fresh_count--;
    }
    if (!use->attached)
        return;
    write->slot = 0;
    if (use->holder)
        use->holder->slots = write->next_slot;
}

/* ---- The block ------------------------------------------------------------------- */

/*
 * Taking a lane in commit, while blocks are in flight, would wait for them: see pm.h.
 */
static bool take_lane_early(struct writeset *ws)
{
    if (!*ws->lane)
        *ws->lane = lane_try(ws->pool);
    return *ws->lane;
}

static void set_streamed(const struct writeset *ws, struct block_write *write)
{
    write->streamed = true;
    write->extent_count = 0;
    write->covered = ws->pool->geo.block_size;
}

static struct interval whole_lines(uint32_t offset, uint32_t size)
{
    return (struct interval){(offset + PM_LINE - 1) & ~(uint32_t)(PM_LINE - 1),
                             (offset + size) & ~(uint32_t)(PM_LINE - 1)};
}

/* Of bytes of a fresh block, those that fill lines, past DRAM. */
static void stream_lines(const struct writeset *ws, uint64_t fresh, uint32_t offset,
                         const uint8_t *src, uint32_t size)
{
    struct interval lines = whole_lines(offset, size);

    pm_store_nt(ws->phase, pool_at(ws->pool, fresh + lines.low),
                src + (lines.low - offset), lines.high - lines.low);
}

/*
 * The first block of a transaction that will be swapped, if all is well, gets its bytes
 * before the slot is read. So while they drain, what an earlier commit streamed past
 * the cache is read: the slot, and the bit of the block that it names. Not where that
 * may be a block of its own, which is not swapped. I2 as for all that is streamed: only
 * F2 makes the block reachable, behind F1. Answers with the block; 0: not done.
 */
static uint64_t stream_early(struct writeset *ws, uint64_t slot, uint32_t offset,
                             const void *src, uint32_t size)
{
    const struct geometry *geo = &ws->pool->geo;
    uint64_t fresh;

    if (ws->block_count > 0 || ws->swaps.count > 0 || ws->edits ||
        ws->frees.count > 0 || ws->allocs.count > 0 || size < geo->pointer_threshold ||
        size < 2 * PM_LINE)
        return 0;
    __builtin_prefetch(pool_at(ws->pool, slot));
    if (!take_lane_early(ws) || run_list_reserve(ws, &ws->abandoned, 1) < 0 ||
        writeset_take_fresh(ws, geo->spare_blocks, &fresh) < 0)
        return 0;
    __builtin_prefetch(pool_bitmap_word(ws->pool, block_index(geo, fresh)));
    stream_lines(ws, fresh, offset, src, size);
    return fresh;
}

/* Bytes of a block that lie in no working copy. */
static bool is_outside_edits(const struct writeset *ws, const struct block_write *write,
                             uint32_t offset, uint32_t size)
{
    return !ws->edits || !write->block || !find_edit(ws, write->block + offset, size);
}

/* To the cache what a swap takes along from the old block. */
static void prefetch_kept(const struct writeset *ws, const struct block_write *write,
                          uint32_t start, uint32_t end)
{
    const uint8_t *old = pool_at(ws->pool, write->block);

    for (uint32_t at = 0; at < ws->pool->geo.block_size; at += PM_LINE)
        if (at < start || at >= end)
            __builtin_prefetch(old + at);
}

/*
 * Part of a fresh block: whole lines are streamed at once, if they were not, from where
 * commit need not move them. What it completes with the bytes around is kept in DRAM.
 */
static int stream_part(struct writeset *ws, struct block_write *write, uint32_t offset,
                       const uint8_t *src, uint32_t size, bool streamed)
{
    struct interval lines = whole_lines(offset, size);
    uint32_t start = (uint32_t)lines.low, end = (uint32_t)lines.high;
    uint32_t head = start - offset, tail = offset + size - end;
    uint8_t *edges = NULL;

    if (head + tail > 0) {
        edges = arena_alloc(&ws->arena, head + tail);
        if (!edges || reserve_extents(ws, write, 6) < 0) /* three, two each */
            return no_memory();
        memcpy(edges, src, head);
        memcpy(edges + head, src + size - tail, tail);
        if (head > 0)
            put_extent(write, offset, start, edges);
    }
    if (!streamed)
        stream_lines(ws, write->fresh, offset, src, size);
    put_extent(write, start, end, pool_at(ws->pool, write->fresh + start));
    if (tail > 0)
        put_extent(write, end, end + tail, edges + head);
    return 0;
}

/* Has a fresh block that takes bytes at once, if a lane can be had at once. */
static bool can_stream(struct writeset *ws, const struct block_write *write,
                       uint32_t offset, uint32_t size)
{
    return write->fresh && !write->streamed && size >= 2 * PM_LINE &&
           is_outside_edits(ws, write, offset, size) && take_lane_early(ws);
}

/* `streamed`: the fresh block has the lines already. */
static int queue_block(struct writeset *ws, struct block_write *write, uint32_t offset,
                       const void *src, uint32_t size, bool streamed)
{
    bool is_first = write->extent_count == 0;
    int result = writeset_reserve_block_write(ws, write, offset, offset + size, 2);

    if (result < 0)
        return result;
    if (can_stream(ws, write, offset, size)) {
        if (size == ws->pool->geo.block_size) {
            if (!streamed)
                stream_lines(ws, write->fresh, offset, src, size);
            set_streamed(ws, write);
            return 0;
        }
        if (is_first && write->block)
            prefetch_kept(ws, write, offset, offset + size);
        return stream_part(ws, write, offset, src, size, streamed);
    }
    uint8_t *bytes = arena_alloc_like(&ws->arena, offset, size);

    if (!bytes)
        return no_memory();
    copy_recent(bytes, src, size);
    if (!write->block) {
        put_bytes(ws, write, offset, offset + size, bytes);
        return 0;
    }
    result = writeset_reserve_for_edits(ws, write->block + offset, size);
    if (result == 0)
        writeset_apply(ws, write->block + offset, bytes, size);
    return result;
}

/* A hole has no old bytes: it always gets a fresh block. */
static int fill_hole(struct writeset *ws, struct block_write *write)
{
    if (write->fresh)
        return 0;
    int result = writeset_reserve_fresh(ws, ws->pool->geo.spare_blocks, &write->fresh);

    return result == -ENOSPC ? error_set(ENOSPC, "no free block") : result;
}

/* ---- The call -------------------------------------------------------------------- */

/* Takes the block that has its bytes already, unless the old one must stay. */
static bool take_early(struct block_write *write, uint64_t *early)
{
    if (!*early || write->fresh || write->slots)
        return false;
    write->fresh = *early;
    *early = 0;
    return true;
}

static int write_slot(struct writeset *ws, uint64_t slot, uint64_t value,
                      uint32_t offset, const void *src, uint32_t size, uint64_t *early)
{
    struct slot_use use;
    int result = attach_slot(ws, slot, value, &use);

    if (result < 0)
        return result;
    bool streamed = take_early(use.write, early);

    if (value == 0)
        result = fill_hole(ws, use.write);
    if (result == 0)
        result = queue_block(ws, use.write, offset, src, size, streamed);
    if (result == 0)
        return 0;
    if (streamed) {
        *early = use.write->fresh;
        use.write->fresh = 0;
    }
    take_back_slot(ws, &use);
    return result;
}

/* Makes an entry of a loose swap, and one of the block that holds its slot. */
static int link_loose(struct writeset *ws, const struct swap *swap)
{
    uint64_t holder_block = block_start(&ws->pool->geo, swap->slot);
    struct block_write *holder = NULL; /* own memory has none */

    if (!slot_is_own(swap)) {
        holder = get_block_write(ws, holder_block, holder_block);
        if (!holder)
            return -ENOMEM;
    }
    struct block_write *write =
        writeset_add_block_write(ws, swap_key(swap->slot, swap->block), swap->block);

    if (!write)
        return -ENOMEM;
    write->slot = swap->slot;
    write->slot_is_own = slot_is_own(swap);
    write->fresh = swap->fresh;
    set_streamed(ws, write);
    if (holder) {
        write->next_slot = holder->slots;
        holder->slots = write;
    }
    return 0;
}

int writeset_sort_all_swaps(struct writeset *ws)
{
    uint32_t done = 0;
    int result = 0;

    while (done < ws->swaps.count && result == 0) {
        result = link_loose(ws, &ws->swaps.list[done]);
        done += result == 0;
    }
    swaps_drop(&ws->swaps, done);
    return result;
}

/* Is a block that is to hold a loose swap's slot neither swapped nor written to? */
static bool holder_stays(struct writeset *ws, uint64_t holder_block)
{
    const struct block_write *holder = find_block_write(ws, holder_block);

    return (!holder || (!holder->fresh && holder->extent_count == 0)) &&
           !swaps_find(&ws->swaps, holder_block);
}

/* Does a block hold the slot of a loose swap? Blocks between such do, too. */
static bool may_hold_loose(const struct writeset *ws, uint64_t block)
{
    const struct interval *slots = &ws->swaps.slots;

    return block < slots->high && block + ws->pool->geo.block_size > slots->low;
}

/* Is it neither written nor read by anything that is queued? */
static bool is_untouched(struct writeset *ws, uint64_t slot, uint64_t block)
{
    uint64_t key = swap_key(slot, block);

    return !find_block_write(ws, key) && !swaps_find(&ws->swaps, key) &&
           (!block || !may_hold_loose(ws, block));
}

/* Can the block be swapped at all? A hole always can. */
static bool may_swap(const struct writeset *ws, uint64_t block)
{
    const struct geometry *geo = &ws->pool->geo;

    return !block || (geo->pointer_threshold <= geo->block_size &&
                      is_blocks(geo, block, 1) && is_allocated(ws, block));
}

/*
 * Finds the pages of fresh blocks that likely follow, while the newest drains: of large
 * writes those of many at once, since each alone may take as long as a block to drain.
 */
static void prefetch_fresh(const struct writeset *ws)
{
    enum { MANY = 8 };

    if (ws->fresh_count == 2)
        alloc_prefetch(ws->pool, 1);
    else if (ws->fresh_count % MANY == 3)
        alloc_prefetch(ws->pool, MANY);
}

/*
 * The common case in a fraction of the instructions: the whole of a block that has not
 * been written yet, with everything at hand. False, having changed nothing that
 * matters, for any other.
 */
static bool swap_whole_block(struct writeset *ws, uint64_t slot, uint64_t block,
                             const void *src, uint64_t *early)
{
    const struct geometry *geo = &ws->pool->geo;
    uint64_t holder = block_start(geo, slot), fresh;
    bool in_own = false;

    if (ws->edits || ws->frees.count > 0 || block == holder || !may_swap(ws, block) ||
        ws->swaps.count == LOOSE_MAX)
        return false;
    if (!is_allocated(ws, holder)) {
        if (!is_own(ws, holder))
            return false;
        in_own = true;
    }
    if (!holder_stays(ws, holder) || !is_untouched(ws, slot, block) ||
        !take_lane_early(ws) || reserve_log(ws, LOG_SWAP_SIZE_MAX, 0) < 0)
        return false;
    if (*early) {
        fresh = *early;
        *early = 0;
    } else if (writeset_reserve_fresh(ws, block ? 0 : geo->spare_blocks, &fresh) == 0) {
        prefetch_fresh(ws);
        stream_lines(ws, fresh, 0, src, geo->block_size);
    } else {
        ws->log_queued -= LOG_SWAP_SIZE_MAX;
        return false;
    }
    swaps_add_loose(&ws->swaps, slot, in_own, block, fresh);
    return true;
}

static int write_block(struct writeset *ws, uint64_t slot, uint32_t offset,
                       const void *src, uint32_t size, uint64_t *early)
{
    uint64_t value = pm_load64(pool_at(ws->pool, slot));

    if (size == ws->pool->geo.block_size &&
        swap_whole_block(ws, slot, value, src, early))
        return 0;
    if (value != 0 && !names_block(ws, value))
        return error_set(EUCLEAN,
                         "the slot at offset %llu names no allocated block: %llu",
                         (unsigned long long)slot, (unsigned long long)value);
    int result = sort_swaps(ws);

    if (result < 0)
        return result;
    if (value == 0 || !is_own(ws, value))
        return write_slot(ws, slot, value, offset, src, size, early);
    return writeset_write(ws, value + offset, src, size);
}

int writeset_write_block(struct writeset *ws, uint64_t slot, uint32_t offset,
                         const void *src, uint32_t size)
{
    if (size == 0)
        return 0;
    if (slot % sizeof(uint64_t) != 0 ||
        !is_data(&ws->pool->geo, slot, sizeof(uint64_t)))
        return slot < ws->pool->pm.size ? error_set(EINVAL, "no slot at offset %llu",
                                                    (unsigned long long)slot)
                                        : outside(ws, slot, sizeof(slot));
    if (size > ws->pool->geo.block_size || offset > ws->pool->geo.block_size - size)
        return error_set(EINVAL, "[%u, +%u) is past the end of a block", offset, size);
    int result = sort_plain(ws);

    if (result < 0)
        return result;
    uint64_t early = stream_early(ws, slot, offset, src, size);

    result = write_block(ws, slot, offset, src, size, &early);
    if (early) /* its stream, a fence by commit or abort, then another use of it */
        abandon(ws, &early);
    return result;
}
