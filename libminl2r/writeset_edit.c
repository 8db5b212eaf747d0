/* SPDX-License-Identifier: BSD-3-Clause */
/* Working copies: handed out, and compared with what they are copies of. */
#include <errno.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/log.h"
#include "libminl2r/writeset_internal.h"

/* Runs of equal words shorter than this cost less in a record than a record of its own.
 */
#define EDIT_GAP 24

int writeset_reserve_for_edits(struct writeset *ws, uint64_t dst, uint64_t size)
{
    struct piece piece = {0};
    uint32_t edit_count = 0;

    for (const struct edit *edit = ws->edits; edit; edit = edit->next)
        if (edit->offset < dst + size && edit->offset + edit->size > dst)
            edit_count++;
    while (edit_count > 0 && next_piece(&ws->pool->geo, dst, size, &piece)) {
        struct block_write *write = find_block_write(ws, piece.block);

        if (write && reserve_extents(ws, write, 2ull * edit_count + 2) < 0)
            return -ENOMEM;
    }
    return 0;
}

/* The most extents that differing words of `size` bytes make. */
static uint64_t edit_extents(uint64_t size)
{
    return size / (EDIT_GAP + 8) + 2;
}

static int reserve_edit(struct writeset *ws, uint64_t offset, uint64_t size)
{
    struct block_write *write;
    struct piece piece = {0};

    while (next_piece(&ws->pool->geo, offset, size, &piece)) {
        uint32_t length = piece.end - piece.start;
        int result = writeset_reserve_piece(ws, &piece,
                                            (uint32_t)edit_extents(length) + 2, &write);

        if (result == 0)
            result = reserve_log(ws, edit_extents(length) * LOG_RECORD_SIZE(8), 0);
        if (result < 0)
            return result;
    }
    return 0;
}

/*
 * What is queued under a working copy is in the copy from now on; what will differ in
 * it keeps its room among the extents.
 */
static void move_to_copy(struct writeset *ws, uint64_t offset, uint64_t size)
{
    struct piece piece = {0};

    while (next_piece(&ws->pool->geo, offset, size, &piece)) {
        struct block_write *write = find_block_write(ws, piece.block);

        if (!write || write->streamed)
            continue;
        block_write_cut(write, piece.start, piece.end);
        write->extents_promised += (uint32_t)edit_extents(piece.end - piece.start);
    }
}

int writeset_edit(struct writeset *ws, uint64_t offset, uint64_t size, uint8_t **copy)
{
    if (!is_data(&ws->pool->geo, offset, size))
        return outside(ws, offset, size);
    struct edit *edit = find_edit(ws, offset, size);

    if (edit) {
        if (edit->offset > offset || edit->offset + edit->size < offset + size)
            return error_set(EINVAL, "[%llu, +%llu) overlaps an earlier edit in part",
                             (unsigned long long)offset, (unsigned long long)size);
        *copy = edit->copy + (offset - edit->offset);
        return 0;
    }
    edit = arena_alloc(&ws->arena, sizeof(*edit));
    uint8_t *bytes = arena_alloc(&ws->arena, size);

    if (!edit || !bytes)
        return no_memory();
    int result = sort_all(ws);

    if (result == 0)
        result = reserve_edit(ws, offset, size);
    if (result < 0)
        return result;
    writeset_read(ws, bytes, offset, size);
    move_to_copy(ws, offset, size);
    *edit = (struct edit){ws->edits, offset, size, bytes};
    ws->edits = edit;
    *copy = bytes;
    return 0;
}

/* ---- At commit ------------------------------------------------------------------- */

/* The length, in whole words but for the last, over which `a` and `b` are equal (or
 * not). */
static uint64_t run_length(const uint8_t *a, const uint8_t *b, uint64_t size,
                           bool equal)
{
    uint64_t at = 0;

    while (at < size) {
        uint64_t step = size - at < 8 ? size - at : 8;

        if ((memcmp(a + at, b + at, step) == 0) != equal)
            break;
        at += step;
    }
    return at;
}

/* The length of a change that begins at a differing word: short equal runs are
 * included. */
static uint64_t change_length(const uint8_t *a, const uint8_t *b, uint64_t size)
{
    uint64_t length = run_length(a, b, size, false);

    while (length < size) {
        uint64_t gap = run_length(a + length, b + length, size - length, true);

        if (gap > EDIT_GAP || gap == size - length)
            break;
        length += gap;
        length += run_length(a + length, b + length, size - length, false);
    }
    return length;
}

static void fold_piece(struct writeset *ws, const struct edit *edit,
                       const struct piece *piece)
{
    struct block_write *write = find_block_write(ws, piece->block);
    uint64_t source = write && write->streamed ? write->fresh : piece->block;
    const uint8_t *old = pool_at(ws->pool, source + piece->start);
    const uint8_t *new = edit->copy + piece->from;
    uint64_t size = piece->end - piece->start;

    for (uint64_t at = 0; at < size;) {
        at += run_length(old + at, new + at, size - at, true);
        if (at == size)
            break;
        uint64_t length = change_length(old + at, new + at, size - at);

        if (write)
            put_bytes(ws, write, piece->start + (uint32_t)at,
                      piece->start + (uint32_t)(at + length), new + at);
        else
            writeset_store_through(ws, piece->block + piece->start + at, new + at,
                                   length);
        at += length;
    }
}

void writeset_fold_edits(struct writeset *ws)
{
    for (const struct edit *edit = ws->edits; edit; edit = edit->next) {
        struct piece piece = {0};

        while (next_piece(&ws->pool->geo, edit->offset, edit->size, &piece))
            fold_piece(ws, edit, &piece);
    }
    ws->edits = NULL;
}
