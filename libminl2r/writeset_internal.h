/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeset_internal.h - what the files of writeset share.
 *
 * Every call works in two steps: reserve (memory, log, blocks), which may fail and then
 * has changed nothing that matters, and apply, which cannot.
 *
 * Bytes for a block go to one of three places:
 *   its own memory      the transaction allocated it: nothing reachable refers to it
 *   its fresh block     it was streamed already: the same holds
 *   its extents         in DRAM, until commit
 */
#ifndef MINL2R_WRITESET_INTERNAL_H
#define MINL2R_WRITESET_INTERNAL_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/error.h"
#include "libminl2r/log.h"
#include "libminl2r/writeset.h"

static inline int no_memory(void)
{
    return error_set(ENOMEM, "no memory for the transaction");
}

static inline int outside(const struct writeset *ws, uint64_t offset, uint64_t size)
{
    return pool_outside(ws->pool, offset, size);
}

static inline int not_allocated(uint64_t block)
{
    return error_set(EINVAL, "the block at offset %llu is not allocated",
                     (unsigned long long)block);
}

/* ---- writeset_space.c ------------------------------------------------------------ */

/* Makes room in `list` for so many more. */
int run_list_reserve(struct writeset *ws, struct run_list *list, uint64_t more);

/* As alloc_reserve(), but blocks in quarantine are used rather than none. */
int writeset_reserve_blocks(struct writeset *ws, uint64_t count, uint64_t spare,
                            uint64_t *offset);

/* One block that a slot is to name, and its place in the list of swaps; 0 where that
 * fails. */
int writeset_reserve_fresh(struct writeset *ws, uint64_t spare, uint64_t *fresh);

/* The same, but -ENOSPC where that would take one out of quarantine. */
int writeset_take_fresh(struct writeset *ws, uint64_t spare, uint64_t *fresh);

/* Grows the log until it has room for `queued` and `written` more bytes. */
int writeset_grow_log(struct writeset *ws, uint64_t queued, uint64_t written);

static inline void run_list_add(struct run_list *list, uint64_t offset, uint64_t count)
{
    list->runs[list->count++] = (struct block_run){offset, count};
}

/* Twice the bytes queued are more than they need: no need to reckon. */
static inline bool log_has_plenty(const struct writeset *ws, uint64_t more)
{
    return (ws->log_queued + more) * 2 + ws->log_written + PM_PAGE <= ws->log_space;
}

/* Makes sure that the log has room for `queued` and `written` more bytes. */
static inline int reserve_log(struct writeset *ws, uint64_t queued, uint64_t written)
{
    if (!log_has_plenty(ws, queued + written)) {
        int result = writeset_grow_log(ws, queued, written);

        if (result < 0)
            return result;
    }
    ws->log_queued += queued;
    ws->log_written += written;
    return 0;
}

/* Log bytes by which records grow with `growth` more bytes: at most one more record. */
static inline uint64_t log_growth(uint32_t growth)
{
    return growth ? LOG_RECORD_SIZE(growth) + 8 : 0;
}

/* ---- Blocks on media ------------------------------------------------------------- */

static inline bool is_own(const struct writeset *ws, uint64_t block)
{
    return alloc_is_reserved(ws->pool, block);
}

static inline bool is_allocated(const struct writeset *ws, uint64_t block)
{
    uint64_t index = block_index(&ws->pool->geo, block);

    return pm_load64(pool_bitmap_word(ws->pool, index)) >> index % 64 & 1;
}

static inline bool is_in_run(const struct writeset *ws, uint64_t offset,
                             struct block_run run)
{
    return offset >= run.offset &&
           offset - run.offset < run.count << ws->pool->geo.block_shift;
}

/* ---- writeset_blocks.c ----------------------------------------------------------- */

int writeset_init_table(struct writeset *ws); /* -ENOMEM */
void writeset_clear_table(struct writeset *ws);

/* Adds an entry for `key`; NULL: no memory. */
struct block_write *writeset_add_block_write(struct writeset *ws, uint64_t key,
                                             uint64_t block);
void block_write_init(struct block_write *write, uint64_t key, uint64_t block);

/* Makes room for so many more extents, those promised included. */
int writeset_grow_extents(struct writeset *ws, struct block_write *write,
                          uint64_t more);

/* The first extent that ends after `start`. */
uint32_t block_write_find(const struct block_write *write, uint64_t start);

/* Of the bytes at [start, end), how many are in extents? */
uint32_t block_write_covered(const struct block_write *write, uint64_t start,
                             uint64_t end);

/*
 * Removes [start, end) from the extents and answers with the index at which an extent
 * of [start, end) belongs. Needs room for one more extent.
 */
uint32_t block_write_cut(struct block_write *write, uint32_t start, uint32_t end);

/* As block_write_cut(), and makes a gap at that index. */
uint32_t block_write_make_gap(struct block_write *write, uint32_t start, uint32_t end);

static inline uint32_t table_slot(const struct writeset *ws, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ull;

    return (uint32_t)(hash >> 32) & (ws->table_size - 1);
}

/* Where in the table `key` is, or the empty place where it belongs. */
static inline uint32_t table_find(const struct writeset *ws, uint64_t key)
{
    uint32_t i = table_slot(ws, key);

    while (ws->table[i] && ws->table[i]->key != key)
        i = (i + 1) & (ws->table_size - 1);
    return i;
}

static inline struct block_write *find_block_write(struct writeset *ws, uint64_t key)
{
    if (ws->block_count == 0)
        return NULL;
    if (ws->latest && ws->latest->key == key)
        return ws->latest;
    struct block_write *write = ws->table[table_find(ws, key)];

    if (write)
        ws->latest = write;
    return write;
}

/* Enters `write` into the list, and into the table at index `i`. */
static inline void link_block_write(struct writeset *ws, struct block_write *write,
                                    uint32_t i)
{
    *ws->last = write;
    ws->last = &write->next;
    ws->latest = write;
    ws->block_count++;
    ws->table[i] = write;
    write->table_index = i;
}

/* Finds or makes the entry of `key`; NULL: no memory. One without extents changes
 * nothing. */
static inline struct block_write *get_block_write(struct writeset *ws, uint64_t key,
                                                  uint64_t block)
{
    struct block_write *write = find_block_write(ws, key);

    return write ? write : writeset_add_block_write(ws, key, block);
}

static inline const uint8_t *bytes_at(const struct extent *extent, uint64_t at)
{
    return extent->bytes ? extent->bytes + (at - extent->start) : NULL;
}

static inline int reserve_extents(struct writeset *ws, struct block_write *write,
                                  uint64_t more)
{
    more += write->extents_promised;
    if (write->extent_capacity - write->extent_count >= more)
        return 0;
    return writeset_grow_extents(ws, write, more);
}

static inline uint32_t covered_in(const struct block_write *write, uint64_t start,
                                  uint64_t end)
{
    return write->extent_count == 0 ? 0 : block_write_covered(write, start, end);
}

/* Needs room for two more extents. */
static inline void put_extent(struct block_write *write, uint32_t start, uint32_t end,
                              const uint8_t *bytes)
{
    uint32_t i = write->extent_count;

    if (i > 0 && extent_end(&write->extents[i - 1]) > start)
        i = block_write_make_gap(write, start, end);
    else
        write->extent_count++;
    write->extents[i] = (struct extent){start, bytes, end - start, false};
    write->covered += end - start;
}

/* ---- Pieces: a range, block by block --------------------------------------------- */

struct piece {
    uint64_t block;      /* offset of the block */
    uint32_t start, end; /* in the block */
    uint64_t from;       /* position in the whole range */
};

static inline bool next_piece(const struct geometry *geo, uint64_t offset,
                              uint64_t size, struct piece *piece)
{
    uint64_t from = piece->from + (piece->end - piece->start);

    if (from >= size)
        return false;
    uint64_t at = offset + from;
    uint32_t start = (uint32_t)((at - geo->zones_offset) & (geo->block_size - 1));
    uint64_t left = size - from;

    piece->from = from;
    piece->block = at - start;
    piece->start = start;
    piece->end =
        left < geo->block_size - start ? start + (uint32_t)left : geo->block_size;
    return true;
}

/* ---- writeset_write.c ------------------------------------------------------------ */

/*
 * Makes room for a piece. `write` is NULL where it goes to the transaction's own
 * memory.
 */
int writeset_reserve_piece(struct writeset *ws, const struct piece *piece,
                           uint32_t extents, struct block_write **write);

/* Makes room for bytes at [start, end) of a block that is not the transaction's own. */
int writeset_reserve_block_write(struct writeset *ws, struct block_write *write,
                                 uint32_t start, uint32_t end, uint32_t extents);

/*
 * Applies bytes (NULL: zeros) to working copies, own memory, fresh blocks and extents.
 */
void writeset_apply(struct writeset *ws, uint64_t dst, const uint8_t *bytes,
                    uint64_t size);

/* Stores to memory that nothing reachable refers to, and flushes. */
void writeset_store_through(struct writeset *ws, uint64_t offset, const uint8_t *bytes,
                            uint64_t size);

int writeset_sort_all_plain(struct writeset *ws);

/*
 * Gives plain ranges to the entries of their blocks, before anything else is queued.
 * What finds no memory stays plain.
 */
static inline int sort_plain(struct writeset *ws)
{
    return ws->plain.count == 0 ? 0 : writeset_sort_all_plain(ws);
}

int writeset_sort_all_swaps(struct writeset *ws);

/* Gives loose swaps entries, for who looks for blocks or slots there. */
static inline int sort_swaps(struct writeset *ws)
{
    return ws->swaps.count == 0 ? 0 : writeset_sort_all_swaps(ws);
}

static inline int sort_all(struct writeset *ws)
{
    int result = sort_swaps(ws);

    return result < 0 ? result : sort_plain(ws);
}

/*
 * -EINVAL if a block of the range is free: another transaction may take it any time,
 * for its log even.
 */
int writeset_check_allocated(const struct writeset *ws, uint64_t offset, uint64_t size);

static inline void put_bytes(struct writeset *ws, struct block_write *write,
                             uint32_t start, uint32_t end, const uint8_t *bytes)
{
    if (write->streamed)
        writeset_store_through(ws, write->fresh + start, bytes, end - start);
    else
        put_extent(write, start, end, bytes);
}

/* ---- writeset_edit.c ------------------------------------------------------------- */

static inline struct edit *find_edit(const struct writeset *ws, uint64_t offset,
                                     uint64_t size)
{
    struct edit *edit = ws->edits;

    while (edit &&
           (edit->offset >= offset + size || edit->offset + edit->size <= offset))
        edit = edit->next;
    return edit;
}

/*
 * Working copies can split what is applied, each into one more extent: reserve for
 * that. Without them, two extents a block suffice (see put_extent).
 */
int writeset_reserve_for_edits(struct writeset *ws, uint64_t dst, uint64_t size);

/* Queues what differs in the working copies, and forgets them. Cannot fail. */
void writeset_fold_edits(struct writeset *ws);

#endif
