/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of blocks, and each one's extents. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/writeset_internal.h"

#define TABLE_SIZE_MIN 256

/* ---- The table ------------------------------------------------------------------- */

int writeset_init_table(struct writeset *ws)
{
    ws->table_size = TABLE_SIZE_MIN;
    ws->table = calloc(ws->table_size, sizeof(struct block_write *));
    return ws->table ? 0 : -ENOMEM;
}

/* A table grown by a large transaction shrinks again: clearing it must stay cheap. */
void writeset_clear_table(struct writeset *ws)
{
    if (ws->block_count == 0)
        return;
    if (ws->block_count < ws->table_size / 8) { /* fewer stores: they wait for F3 */
        for (const struct block_write *write = ws->first; write; write = write->next)
            ws->table[write->table_index] = NULL;
        return;
    }
    if (ws->table_size > TABLE_SIZE_MIN) {
        struct block_write **table =
            realloc(ws->table, TABLE_SIZE_MIN * sizeof(struct block_write *));

        if (table) {
            ws->table = table;
            ws->table_size = TABLE_SIZE_MIN;
        }
    }
    memset(ws->table, 0, ws->table_size * sizeof(struct block_write *));
}

static int table_grow(struct writeset *ws)
{
    struct block_write **table =
        calloc(ws->table_size * 2ull, sizeof(struct block_write *));

    if (!table)
        return no_memory();
    free(ws->table);
    ws->table = table;
    ws->table_size *= 2;
    for (struct block_write *write = ws->first; write; write = write->next) {
        write->table_index = table_find(ws, write->key);
        ws->table[write->table_index] = write;
    }
    return 0;
}

void block_write_init(struct block_write *write, uint64_t key, uint64_t block)
{
    memset(write, 0, offsetof(struct block_write, inline_extents));
    write->key = key;
    write->block = block;
    write->extents = write->inline_extents;
    write->extent_capacity = sizeof(write->inline_extents) / sizeof(struct extent);
}

struct block_write *writeset_add_block_write(struct writeset *ws, uint64_t key,
                                             uint64_t block)
{
    if (ws->block_count >= ws->table_size / 2 && table_grow(ws) < 0)
        return NULL;
    struct block_write *write = arena_alloc(&ws->arena, sizeof(*write));

    if (!write) {
        no_memory();
        return NULL;
    }
    block_write_init(write, key, block);
    link_block_write(ws, write, table_find(ws, key));
    return write;
}

/* ---- Extents of one block -------------------------------------------------------- */

int writeset_grow_extents(struct writeset *ws, struct block_write *write, uint64_t more)
{
    uint64_t capacity = (uint64_t)write->extent_count + write->extent_capacity + more;
    struct extent *extents = arena_alloc(&ws->arena, capacity * sizeof(*extents));

    if (!extents)
        return no_memory();
    memcpy(extents, write->extents, write->extent_count * sizeof(*extents));
    write->extents = extents;
    write->extent_capacity = (uint32_t)capacity;
    return 0;
}

uint32_t block_write_find(const struct block_write *write, uint64_t start)
{
    uint32_t low = 0, high = write->extent_count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (extent_end(&write->extents[middle]) <= start)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint32_t block_write_covered(const struct block_write *write, uint64_t start,
                             uint64_t end)
{
    uint64_t sum = 0;

    for (uint32_t i = block_write_find(write, start);
         i < write->extent_count && write->extents[i].start < end; i++) {
        const struct extent *e = &write->extents[i];

        uint64_t e_end = extent_end(e);

        sum += (e_end < end ? e_end : end) - (e->start > start ? e->start : start);
    }
    return (uint32_t)sum;
}

/* Moves the extents from index `from` on to index `to`. */
static void move_extents(struct block_write *write, uint32_t from, uint32_t to)
{
    memmove(&write->extents[to], &write->extents[from],
            (write->extent_count - from) * sizeof(struct extent));
    write->extent_count += to - from;
}

static void cut_front(struct extent *extent, uint64_t start)
{
    extent->bytes = bytes_at(extent, start);
    extent->size -= (uint32_t)(start - extent->start);
    extent->start = start;
}

uint32_t block_write_cut(struct block_write *write, uint32_t start, uint32_t end)
{
    uint32_t i = block_write_find(write, start);

    write->covered -= covered_in(write, start, end);
    if (i < write->extent_count && write->extents[i].start < start) {
        struct extent *head = &write->extents[i];
        uint64_t head_end = extent_end(head);

        head->size = (uint32_t)(start - head->start);
        if (head_end > end) { /* one extent becomes two */
            struct extent tail = {end, bytes_at(head, end), (uint32_t)(head_end - end),
                                  false};

            move_extents(write, i + 1, i + 2);
            write->extents[i + 1] = tail;
            return i + 1;
        }
        i++;
    }
    uint32_t j = i;

    while (j < write->extent_count && extent_end(&write->extents[j]) <= end)
        j++;
    if (j < write->extent_count && write->extents[j].start < end)
        cut_front(&write->extents[j], end);
    move_extents(write, j, i);
    return i;
}

uint32_t block_write_make_gap(struct block_write *write, uint32_t start, uint32_t end)
{
    uint32_t i = block_write_cut(write, start, end);

    move_extents(write, i, i + 1);
    return i;
}
