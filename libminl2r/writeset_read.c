/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the pool as a transaction sees it: with what it has queued. */
#include <string.h>

#include "libminl2r/writeset_internal.h"

/* The block that has all bytes but those of the extents. */
static uint64_t find_source(struct writeset *ws, const struct block_write *write,
                            uint64_t block)
{
    const struct swap *loose = swaps_find(&ws->swaps, block);

    if (loose)
        return loose->fresh;
    return write && write->streamed ? write->fresh : block;
}

static void read_block(struct writeset *ws, const struct piece *piece, uint8_t *dst)
{
    const struct block_write *write = find_block_write(ws, piece->block);
    uint64_t source = find_source(ws, write, piece->block);

    memcpy(dst, pool_at(ws->pool, source + piece->start), piece->end - piece->start);
    if (!write)
        return;
    for (uint32_t i = block_write_find(write, piece->start);
         i < write->extent_count && write->extents[i].start < piece->end; i++) {
        const struct extent *e = &write->extents[i];
        uint64_t start = e->start > piece->start ? e->start : piece->start;
        uint64_t end = extent_end(e) < piece->end ? extent_end(e) : piece->end;

        if (e->bytes)
            memcpy(dst + (start - piece->start), bytes_at(e, start), end - start);
        else
            memset(dst + (start - piece->start), 0, end - start);
    }
}

static void read_plain(const struct plain *plain, uint8_t *dst, uint64_t src,
                       uint64_t size)
{
    for (uint32_t i = 0; i < plain->count; i++) {
        const struct extent *e = &plain->extents[i];
        uint64_t start = e->start > src ? e->start : src;
        uint64_t end = extent_end(e) < src + size ? extent_end(e) : src + size;

        if (start < end)
            memcpy(dst + (start - src), bytes_at(e, start), end - start);
    }
}

int writeset_read(struct writeset *ws, void *dst, uint64_t src, uint64_t size)
{
    struct piece piece = {0};
    uint8_t *bytes = dst;

    if (size == 0)
        return 0;
    if (!is_data(&ws->pool->geo, src, size))
        return outside(ws, src, size);
    while (next_piece(&ws->pool->geo, src, size, &piece))
        read_block(ws, &piece, bytes + piece.from);
    read_plain(&ws->plain, bytes, src, size);
    for (const struct edit *edit = ws->edits; edit; edit = edit->next) {
        uint64_t start = edit->offset > src ? edit->offset : src;
        uint64_t end = edit->offset + edit->size;

        if (end > src + size)
            end = src + size;
        if (start < end)
            memcpy(bytes + (start - src), edit->copy + (start - edit->offset),
                   end - start);
    }
    return 0;
}
