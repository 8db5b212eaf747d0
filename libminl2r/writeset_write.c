/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues ranges of bytes. */
#include <errno.h>
#include <string.h>

#include "libminl2r/copy.h"
#include "libminl2r/error.h"
#include "libminl2r/writeset_internal.h"

/*
 * More lines than the processor itself has under way, up to where their log outweighs
 * it.
 */
#define PREFETCH_MAX 4096

/* ---- Reserve --------------------------------------------------------------------- */

/* Does [start, end) of the block touch a slot that is written as such? */
static bool touches_slot(const struct block_write *write, uint32_t start, uint32_t end)
{
    for (const struct block_write *held = write->slots; held; held = held->next_slot) {
        uint64_t at = held->slot - write->block;

        if (at < end && at + sizeof(uint64_t) > start)
            return true;
    }
    return false;
}

/* Does this transaction free the block at `offset`? */
static bool is_freed(const struct writeset *ws, uint64_t offset)
{
    for (uint32_t i = 0; i < ws->frees.count; i++)
        if (is_in_run(ws, offset, ws->frees.runs[i]))
            return true;
    return false;
}

/*
 * Gives `write` a fresh block if `covered` bytes are enough for pointer logging; a pool
 * without a free block makes do with data logging.
 */
static void choose_pointer(struct writeset *ws, struct block_write *write,
                           uint32_t covered)
{
    if (write->fresh || !write->slot || write->slots ||
        covered < ws->pool->geo.pointer_threshold || is_freed(ws, write->block))
        return;
    writeset_reserve_fresh(ws, 0, &write->fresh);
}

int writeset_reserve_block_write(struct writeset *ws, struct block_write *write,
                                 uint32_t start, uint32_t end, uint32_t extents)
{
    uint32_t growth = end - start - covered_in(write, start, end);
    int result = reserve_extents(ws, write, extents);

    if (result < 0)
        return result;
    choose_pointer(ws, write, write->covered + growth);
    return write->fresh ? 0 : reserve_log(ws, log_growth(growth), 0);
}

int writeset_reserve_piece(struct writeset *ws, const struct piece *piece,
                           uint32_t extents, struct block_write **write)
{
    *write = NULL;
    if (!is_allocated(ws, piece->block)) {
        if (is_own(ws, piece->block))
            return 0;
        return not_allocated(piece->block);
    }
    *write = get_block_write(ws, piece->block, piece->block);
    if (!*write)
        return -ENOMEM;
    if (touches_slot(*write, piece->start, piece->end))
        return error_set(EINVAL,
                         "the block at offset %llu: a slot is written both by "
                         "minl2r_tx_write_block and directly",
                         (unsigned long long)piece->block);
    return writeset_reserve_block_write(ws, *write, piece->start, piece->end, extents);
}

static int reserve_range(struct writeset *ws, uint64_t dst, uint64_t size)
{
    struct block_write *write;
    struct piece piece = {0};

    while (next_piece(&ws->pool->geo, dst, size, &piece)) {
        int result = writeset_reserve_piece(ws, &piece, 2, &write);

        if (result < 0)
            return result;
    }
    return 0;
}

/* ---- Apply ----------------------------------------------------------------------- */

void writeset_store_through(struct writeset *ws, uint64_t offset, const uint8_t *bytes,
                            uint64_t size)
{
    const void *dst = pool_at(ws->pool, offset);

    if (bytes)
        pm_store(ws->phase, dst, bytes, size);
    else
        pm_zero(ws->phase, dst, size);
    pm_flush(ws->phase, dst, size);
}

static void apply_piece(struct writeset *ws, struct block_write *write,
                        const struct piece *piece, const uint8_t *bytes)
{
    if (write)
        put_bytes(ws, write, piece->start, piece->end, bytes);
    else
        writeset_store_through(ws, piece->block + piece->start, bytes,
                               piece->end - piece->start);
}

/* Applies bytes that lie in no working copy. */
static void apply_outside_edits(struct writeset *ws, uint64_t dst, const uint8_t *bytes,
                                uint64_t size)
{
    struct piece piece = {0};

    while (next_piece(&ws->pool->geo, dst, size, &piece))
        apply_piece(ws,
                    is_own(ws, piece.block) ? NULL : find_block_write(ws, piece.block),
                    &piece, bytes ? bytes + piece.from : NULL);
}

static void apply_to_edit(const struct edit *edit, uint64_t dst, const uint8_t *bytes,
                          uint64_t size)
{
    if (bytes)
        memcpy(edit->copy + (dst - edit->offset), bytes, size);
    else
        memset(edit->copy + (dst - edit->offset), 0, size);
}

/* Applies bytes: first what lies before the lowest working copy, then in it, then the
 * rest. */
void writeset_apply(struct writeset *ws, uint64_t dst, const uint8_t *bytes,
                    uint64_t size)
{
    while (size > 0) {
        const struct edit *edit = ws->edits ? find_edit(ws, dst, 1) : NULL;
        uint64_t length = size;

        if (edit) {
            if (length > edit->offset + edit->size - dst)
                length = edit->offset + edit->size - dst;
            apply_to_edit(edit, dst, bytes, length);
        } else {
            for (edit = ws->edits; edit; edit = edit->next)
                if (edit->offset > dst && edit->offset - dst < length)
                    length = edit->offset - dst;
            apply_outside_edits(ws, dst, bytes, length);
        }
        dst += length;
        bytes = bytes ? bytes + length : NULL;
        size -= length;
    }
}

/* Queues `bytes`, which stay where they are until the transaction ends. */
static int queue(struct writeset *ws, uint64_t dst, const uint8_t *bytes, uint64_t size)
{
    struct block_write *write;
    struct piece piece = {0};
    int result;

    next_piece(&ws->pool->geo, dst, size, &piece);
    if (piece.end - piece.start == size && !ws->edits) { /* in one block, as most are */
        result = writeset_reserve_piece(ws, &piece, 2, &write);
        if (result == 0)
            apply_piece(ws, write, &piece, bytes);
        return result;
    }
    result = reserve_range(ws, dst, size);
    if (result == 0)
        result = writeset_reserve_for_edits(ws, dst, size);
    if (result == 0)
        writeset_apply(ws, dst, bytes, size);
    return result;
}

/* ---- Plain ranges ---------------------------------------------------------------- */

/* Does a small range lie in one line of an allocated block? */
static inline bool is_in_allocated_line(const struct writeset *ws, uint64_t offset,
                                        uint64_t size)
{
    const struct geometry *geo = &ws->pool->geo;
    uint64_t index = block_index(geo, offset); /* large where it is below the zones */
    uint64_t in_zone = index & (((uint64_t)1 << geo->zone_shift) - 1);

    return offset % PM_LINE + size <= PM_LINE && index < geo->block_count &&
           in_zone != 0 && is_allocated(ws, offset);
}

/*
 * The common case in a fraction of the instructions, and of the stores, which wait for
 * the last fence. Answers where the bytes of the range go; or NULL, having changed
 * nothing that matters, for any other case.
 */
static inline uint8_t *add_plain(struct writeset *ws, uint64_t dst, uint64_t size)
{
    uint64_t log_size = log_growth((uint32_t)size);

    if (ws->block_count > 0 || ws->swaps.count > 0 || ws->edits ||
        !is_in_allocated_line(ws, dst, size) || !log_has_plenty(ws, log_size))
        return NULL;
    uint8_t *bytes = arena_try_bytes(&ws->arena, size);

    if (!bytes || !plain_add(&ws->plain, dst, (uint32_t)size, bytes))
        return NULL;
    ws->log_queued += log_size;
    if (ws->plain.count == 1) /* commit does that for the others: all at once */
        __builtin_prefetch(pool_at(ws->pool, dst), 1);
    return bytes;
}

static int sort_plain_range(struct writeset *ws, const struct extent *e)
{
    struct block_write *write;
    struct piece piece = {0};
    uint64_t size = e->size;
    uint64_t log_size = log_growth((uint32_t)size);

    next_piece(&ws->pool->geo, e->start, size, &piece);
    ws->log_queued -= log_size; /* its room is found again */
    int result = writeset_reserve_piece(ws, &piece, 2, &write);

    if (result == 0)
        apply_piece(ws, write, &piece, e->bytes);
    else
        ws->log_queued += log_size;
    return result;
}

int writeset_sort_all_plain(struct writeset *ws)
{
    struct plain *plain = &ws->plain;
    uint32_t done = 0;
    int result = 0;

    while (done < plain->count && result == 0) {
        result = sort_plain_range(ws, &plain->extents[done]);
        done += result == 0;
    }
    plain->count -= done;
    memmove(plain->extents, plain->extents + done,
            plain->count * sizeof(struct extent));
    return result;
}

/* ---- The calls ------------------------------------------------------------------- */

static int queue_copy(struct writeset *ws, uint64_t dst, const void *src, uint64_t size)
{
    uint8_t *bytes = arena_alloc_like(&ws->arena, dst, size);

    if (!bytes)
        return no_memory();
    copy_recent(bytes, src, size);
    return queue(ws, dst, bytes, size);
}

/*
 * Does a range lie in one block, and touch no loose swap: neither its block nor its
 * slot?
 */
static bool is_beside_loose(struct writeset *ws, uint64_t offset, uint64_t size)
{
    const struct geometry *geo = &ws->pool->geo;
    const struct interval *slots = &ws->swaps.slots;
    uint64_t block = block_start(geo, offset);

    return offset + size <= block + geo->block_size &&
           (offset >= slots->high || slots->low >= offset + size) &&
           !swaps_find(&ws->swaps, block);
}

/* Of what a transaction changes first; commit does it for the rest, all at once. */
static void prefetch_old_bytes(const struct writeset *ws, uint64_t dst, uint64_t size)
{
    uint64_t end = size < PREFETCH_MAX ? dst + size : dst + PREFETCH_MAX;

    for (uint64_t at = dst; at < end; at += PM_LINE)
        __builtin_prefetch(pool_at(ws->pool, at), 1);
}

__attribute__((noinline)) static int queue_any(struct writeset *ws, uint64_t dst,
                                               const void *src, uint64_t size)
{
    if (size == 0)
        return 0;
    if (!is_data(&ws->pool->geo, dst, size))
        return outside(ws, dst, size);
    if (ws->block_count == 0)
        prefetch_old_bytes(ws, dst, size);
    int result = is_beside_loose(ws, dst, size) ? 0 : sort_swaps(ws);

    if (result == 0)
        result = sort_plain(ws);

    if (result < 0)
        return result;
    return src ? queue_copy(ws, dst, src, size) : queue(ws, dst, NULL, size);
}

__attribute__((noinline)) static int copy_bytes(uint8_t *dst, const void *src,
                                                uint64_t size)
{
    copy_recent(dst, src, size);
    return 0;
}

int writeset_write(struct writeset *ws, uint64_t dst, const void *src, uint64_t size)
{
    uint8_t *bytes = src && size - 1 < PM_LINE ? add_plain(ws, dst, size) : NULL;

    if (!bytes)
        return queue_any(ws, dst, src, size);
    if (size != 8)
        return copy_bytes(bytes, src, size);
    memcpy(bytes, src, 8); /* without a call */
    return 0;
}

int writeset_copy(struct writeset *ws, uint64_t dst, uint64_t src, uint64_t size)
{
    if (size == 0)
        return 0;
    if (!is_data(&ws->pool->geo, dst, size))
        return outside(ws, dst, size);
    if (!is_data(&ws->pool->geo, src, size))
        return outside(ws, src, size);
    uint8_t *bytes = arena_alloc_like(&ws->arena, dst, size);

    if (!bytes)
        return no_memory();
    int result = sort_all(ws);

    if (result == 0)
        result = writeset_read(ws, bytes, src, size);
    return result < 0 ? result : queue(ws, dst, bytes, size);
}

int writeset_check_allocated(const struct writeset *ws, uint64_t offset, uint64_t size)
{
    struct piece piece = {0};

    if (size > 0 && !is_data(&ws->pool->geo, offset, size))
        return outside(ws, offset, size);
    while (next_piece(&ws->pool->geo, offset, size, &piece))
        if (!is_allocated(ws, piece.block) && !is_own(ws, piece.block))
            return not_allocated(piece.block);
    return 0;
}

int writeset_write_fresh(struct writeset *ws, uint64_t dst, const void *src,
                         uint64_t size)
{
    if (size == 0)
        return 0;
    if (!is_data(&ws->pool->geo, dst, size))
        return outside(ws, dst, size);
    int result = writeset_check_allocated(ws, dst, size);

    if (result < 0)
        return result;
    struct fresh_write *fresh = arena_alloc(&ws->arena, sizeof(*fresh));
    uint8_t *bytes = arena_alloc_like(&ws->arena, dst, size);

    if (!fresh || !bytes)
        return no_memory();
    copy_recent(bytes, src, size);
    *fresh = (struct fresh_write){NULL, dst, size, bytes};
    *ws->fresh_last = fresh;
    ws->fresh_last = &fresh->next;
    return 0;
}
