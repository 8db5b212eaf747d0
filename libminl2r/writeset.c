/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every call here works in two steps: reserve (memory, log, blocks), which may fail and
 * then has changed nothing that matters, and apply, which cannot.
 *
 * Bytes for a block go to one of three places:
 *   its own memory      the transaction allocated it: nothing reachable refers to it
 *   its fresh block     it was streamed already: the same holds
 *   its extents         in DRAM, until commit
 */
#include "libminl2r/writeset.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/log.h"

#define TABLE_SIZE_MIN 256

/* Runs of equal words shorter than this cost less in a record than a record of its own.
 */
#define EDIT_GAP 24

/* Of longer ranges the processor itself fetches the rest. */
#define PREFETCH_MAX 1024

static int no_memory(void)
{
    return error_set(ENOMEM, "no memory for the transaction");
}

static int outside(uint64_t offset, uint64_t size)
{
    return error_set(EINVAL, "[%llu, +%llu) is not in the pool's data area",
                     (unsigned long long)offset, (unsigned long long)size);
}

static int not_allocated(uint64_t block)
{
    return error_set(EINVAL, "the block at offset %llu is not allocated",
                     (unsigned long long)block);
}

/* ---- Life ------------------------------------------------------------------------ */

static void clear_lists(struct writeset *ws)
{
    ws->first = ws->latest = NULL;
    ws->last = &ws->first;
    plain_reset(&ws->plain);
    ws->block_count = ws->fresh_count = 0;
    ws->edits = NULL;
    ws->fresh_first = NULL;
    ws->fresh_last = &ws->fresh_first;
    ws->allocs = ws->frees = (struct run_list){0};
    ws->snapshots = ws->abandoned = ws->segments = (struct run_list){0};
    ws->log_queued = ws->log_written = 0;
    ws->log_space = log_part_space(ws->pool->geo.log_size);
}

int writeset_init(struct writeset *ws, struct minl2r_pool *pool)
{
    ws->pool = pool;
    ws->table_size = TABLE_SIZE_MIN;
    ws->table = calloc(ws->table_size, sizeof(struct block_write *));
    if (!ws->table || settling_init(&ws->settling, pool) < 0 ||
        arena_init(&ws->arena) < 0) {
        free(ws->table);
        settling_finish(&ws->settling);
        return no_memory();
    }
    plain_init(&ws->plain);
    clear_lists(ws);
    return 0;
}

void writeset_finish(struct writeset *ws)
{
    free(ws->table);
    settling_finish(&ws->settling);
    arena_finish(&ws->arena);
}

/* A table grown by a large transaction shrinks again: clearing it must stay cheap. */
static void clear_table(struct writeset *ws)
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

void writeset_reset(struct writeset *ws)
{
    clear_table(ws);
    arena_reset(&ws->arena);
    clear_lists(ws);
}

bool writeset_is_empty(const struct writeset *ws)
{
    return !ws->first && ws->plain.count == 0 && !ws->fresh_first &&
           ws->allocs.count == 0 && ws->frees.count == 0 && ws->snapshots.count == 0;
}

/* ---- Lists of runs --------------------------------------------------------------- */

static int run_list_reserve(struct writeset *ws, struct run_list *list, uint64_t more)
{
    if (list->capacity - list->count >= more)
        return 0;
    uint64_t capacity = list->count + more + list->capacity;
    struct block_run *runs = capacity > UINT32_MAX
                                 ? NULL
                                 : arena_alloc(&ws->arena, capacity * sizeof(*runs));

    if (!runs)
        return no_memory();
    if (list->count > 0)
        memcpy(runs, list->runs, list->count * sizeof(*runs));
    list->runs = runs;
    list->capacity = (uint32_t)capacity;
    return 0;
}

static void run_list_add(struct run_list *list, uint64_t offset, uint64_t count)
{
    list->runs[list->count++] = (struct block_run){offset, count};
}

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

/* ---- Reserving blocks ------------------------------------------------------------ */

/* As alloc_reserve(), but blocks in quarantine are used rather than none. */
static int reserve_blocks(struct writeset *ws, uint64_t count, uint64_t spare,
                          uint64_t *offset)
{
    if (alloc_reserve(ws->pool, count, spare, offset) == 0)
        return 0;
    if (live_end_quarantine(ws->pool, ws->phase, &ws->settling) < 0)
        return -ENOSPC;
    return alloc_reserve(ws->pool, count, spare, offset);
}

static int reserve_for_swap(struct writeset *ws, uint64_t spare, uint64_t *offset)
{
    if (alloc_reserve_swap(ws->pool, spare, offset) == 0)
        return 0;
    return reserve_blocks(ws, 1, spare, offset);
}

/* ---- Log space ------------------------------------------------------------------- */

/* A swap's record, or two of blocks. */
#define LOG_SWAP_SIZE_MAX (2 * sizeof(struct pm_record) + sizeof(struct pm_swap))

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
    while (reserve_blocks(ws, count, 0, &offset) < 0) {
        count /= 2;
        if (count == 0)
            return error_set(ENOSPC, "no space for %llu more bytes of log",
                             (unsigned long long)missing);
    }
    run_list_add(&ws->segments, offset, count);
    ws->log_space += log_part_space(count << geo->block_shift);
    return 0;
}

/* Grows the log until it has room for `queued` and `written` more bytes. */
static int grow_log(struct writeset *ws, uint64_t queued, uint64_t written)
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

/* Twice the bytes queued are more than they need: no need to reckon. */
static bool log_has_plenty(const struct writeset *ws, uint64_t more)
{
    return (ws->log_queued + more) * 2 + ws->log_written + PM_PAGE <= ws->log_space;
}

/* Makes sure that the log has room for `queued` and `written` more bytes. */
static int reserve_log(struct writeset *ws, uint64_t queued, uint64_t written)
{
    if (!log_has_plenty(ws, queued + written)) {
        int result = grow_log(ws, queued, written);

        if (result < 0)
            return result;
    }
    ws->log_queued += queued;
    ws->log_written += written;
    return 0;
}

/* ---- Blocks on media --------------------------------------------------------------
 */

static bool is_own(const struct writeset *ws, uint64_t block)
{
    return alloc_is_reserved(ws->pool, block);
}

static bool is_allocated(const struct writeset *ws, uint64_t block)
{
    uint64_t index = block_index(&ws->pool->geo, block);

    return pm_load64(pool_bitmap_word(ws->pool, index)) >> index % 64 & 1;
}

/* ---- The table of blocks --------------------------------------------------------- */

static uint32_t table_slot(const struct writeset *ws, uint64_t key)
{
    uint64_t hash = key * 0x9e3779b97f4a7c15ull;

    return (uint32_t)(hash >> 32) & (ws->table_size - 1);
}

/* Where in the table `key` is, or the empty place where it belongs. */
static uint32_t table_find(const struct writeset *ws, uint64_t key)
{
    uint32_t i = table_slot(ws, key);

    while (ws->table[i] && ws->table[i]->key != key)
        i = (i + 1) & (ws->table_size - 1);
    return i;
}

static struct block_write *find_block_write(struct writeset *ws, uint64_t key)
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

static void init_block_write(struct block_write *write, uint64_t key, uint64_t block)
{
    memset(write, 0, offsetof(struct block_write, inline_extents));
    write->key = key;
    write->block = block;
    write->extents = write->inline_extents;
    write->extent_capacity = sizeof(write->inline_extents) / sizeof(struct extent);
}

/* Enters `write` into the list, and into the table at index `i`. */
static void link_block_write(struct writeset *ws, struct block_write *write, uint32_t i)
{
    *ws->last = write;
    ws->last = &write->next;
    ws->latest = write;
    ws->block_count++;
    ws->table[i] = write;
    write->table_index = i;
}

static struct block_write *add_block_write(struct writeset *ws, uint64_t key,
                                           uint64_t block)
{
    if (ws->block_count >= ws->table_size / 2 && table_grow(ws) < 0)
        return NULL;
    struct block_write *write = arena_alloc(&ws->arena, sizeof(*write));

    if (!write) {
        no_memory();
        return NULL;
    }
    init_block_write(write, key, block);
    link_block_write(ws, write, table_find(ws, key));
    return write;
}

/* Finds or makes the entry of `key`; NULL: no memory. One without extents changes
 * nothing. */
static inline struct block_write *get_block_write(struct writeset *ws, uint64_t key,
                                                  uint64_t block)
{
    struct block_write *write = find_block_write(ws, key);

    return write ? write : add_block_write(ws, key, block);
}

/* ---- Extents of one block -------------------------------------------------------- */

static int reserve_extents(struct writeset *ws, struct block_write *write,
                           uint64_t more)
{
    more += write->extents_promised;
    if (write->extent_capacity - write->extent_count >= more)
        return 0;
    uint64_t capacity = (uint64_t)write->extent_count + write->extent_capacity + more;
    struct extent *extents = arena_alloc(&ws->arena, capacity * sizeof(*extents));

    if (!extents)
        return no_memory();
    memcpy(extents, write->extents, write->extent_count * sizeof(*extents));
    write->extents = extents;
    write->extent_capacity = (uint32_t)capacity;
    return 0;
}

/* The first extent that ends after `start`. */
static uint32_t find_extent(const struct block_write *write, uint64_t start)
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

static uint32_t covered_in(const struct block_write *write, uint64_t start,
                           uint64_t end)
{
    uint64_t sum = 0;

    if (write->extent_count == 0)
        return 0;
    for (uint32_t i = find_extent(write, start);
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

static const uint8_t *bytes_at(const struct extent *extent, uint64_t at)
{
    return extent->bytes ? extent->bytes + (at - extent->start) : NULL;
}

static void cut_front(struct extent *extent, uint64_t start)
{
    extent->bytes = bytes_at(extent, start);
    extent->size -= (uint32_t)(start - extent->start);
    extent->start = start;
}

/*
 * Removes [start, end) from the extents and answers with the index at which an extent
 * of [start, end) belongs. Needs room for one more extent.
 */
static uint32_t cut_extents(struct block_write *write, uint32_t start, uint32_t end)
{
    uint32_t i = find_extent(write, start);

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

/* Needs room for two more extents. */
static void put_extent(struct block_write *write, uint32_t start, uint32_t end,
                       const uint8_t *bytes)
{
    uint32_t i = write->extent_count;

    if (i > 0 && extent_end(&write->extents[i - 1]) > start) {
        i = cut_extents(write, start, end);
        move_extents(write, i, i + 1);
    } else {
        write->extent_count++;
    }
    write->extents[i] = (struct extent){start, bytes, end - start, false};
    write->covered += end - start;
}

/* Log bytes by which records grow with `growth` more bytes: at most one more record. */
static uint64_t log_growth(uint32_t growth)
{
    return growth ? LOG_RECORD_SIZE(growth) + 8 : 0;
}

/* ---- Where bytes of a block go --------------------------------------------------- */

static void store_through(struct writeset *ws, uint64_t offset, const uint8_t *bytes,
                          uint64_t size)
{
    const void *dst = pool_at(ws->pool, offset);

    if (bytes)
        pm_store(ws->phase, dst, bytes, size);
    else
        pm_zero(ws->phase, dst, size);
    pm_flush(ws->phase, dst, size);
}

static void put_bytes(struct writeset *ws, struct block_write *write, uint32_t start,
                      uint32_t end, const uint8_t *bytes)
{
    if (write->streamed)
        store_through(ws, write->fresh + start, bytes, end - start);
    else
        put_extent(write, start, end, bytes);
}

static struct edit *find_edit(const struct writeset *ws, uint64_t offset, uint64_t size)
{
    struct edit *edit = ws->edits;

    while (edit &&
           (edit->offset >= offset + size || edit->offset + edit->size <= offset))
        edit = edit->next;
    return edit;
}

/* ---- Pieces: a range, block by block --------------------------------------------- */

struct piece {
    uint64_t block;      /* offset of the block */
    uint32_t start, end; /* in the block */
    uint64_t from;       /* position in the whole range */
};

static bool next_piece(const struct geometry *geo, uint64_t offset, uint64_t size,
                       struct piece *piece)
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

/* ---- Write ----------------------------------------------------------------------- */

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
    for (uint32_t i = 0; i < ws->frees.count; i++) {
        const struct block_run *run = &ws->frees.runs[i];

        if (offset >= run->offset &&
            offset - run->offset < run->count << ws->pool->geo.block_shift)
            return true;
    }
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
    if (reserve_for_swap(ws, 0, &write->fresh) < 0)
        write->fresh = 0;
    else
        ws->fresh_count++;
}

/* Makes room for bytes at [start, end) of a block that is not the transaction's own. */
static int reserve_block_write(struct writeset *ws, struct block_write *write,
                               uint32_t start, uint32_t end, uint32_t extents)
{
    uint32_t growth = end - start - covered_in(write, start, end);
    int result = reserve_extents(ws, write, extents);

    if (result < 0)
        return result;
    choose_pointer(ws, write, write->covered + growth);
    return write->fresh ? 0 : reserve_log(ws, log_growth(growth), 0);
}

/* Makes room for a piece. `write` is NULL where it goes to the transaction's own
 * memory. */
static int reserve_piece(struct writeset *ws, const struct piece *piece,
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
    return reserve_block_write(ws, *write, piece->start, piece->end, extents);
}

static int reserve_range(struct writeset *ws, uint64_t dst, uint64_t size)
{
    struct block_write *write;
    struct piece piece = {0};

    while (next_piece(&ws->pool->geo, dst, size, &piece)) {
        int result = reserve_piece(ws, &piece, 2, &write);

        if (result < 0)
            return result;
    }
    return 0;
}

static void apply_piece(struct writeset *ws, struct block_write *write,
                        const struct piece *piece, const uint8_t *bytes)
{
    if (write)
        put_bytes(ws, write, piece->start, piece->end, bytes);
    else
        store_through(ws, piece->block + piece->start, bytes,
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
static void apply_range(struct writeset *ws, uint64_t dst, const uint8_t *bytes,
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

/*
 * Working copies can split what is applied, each into one more extent: reserve for
 * that. Without them, two extents a block suffice (see put_extent).
 */
static int reserve_for_edits(struct writeset *ws, uint64_t dst, uint64_t size)
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

/* Queues `bytes`, which stay where they are until the transaction ends. */
static int queue(struct writeset *ws, uint64_t dst, const uint8_t *bytes, uint64_t size)
{
    struct block_write *write;
    struct piece piece = {0};
    int result;

    next_piece(&ws->pool->geo, dst, size, &piece);
    if (piece.end - piece.start == size && !ws->edits) { /* in one block, as most are */
        result = reserve_piece(ws, &piece, 2, &write);
        if (result == 0)
            apply_piece(ws, write, &piece, bytes);
        return result;
    }
    result = reserve_range(ws, dst, size);
    if (result == 0)
        result = reserve_for_edits(ws, dst, size);
    if (result == 0)
        apply_range(ws, dst, bytes, size);
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

    if (ws->block_count > 0 || ws->edits || !is_in_allocated_line(ws, dst, size) ||
        !log_has_plenty(ws, log_size))
        return NULL;
    uint8_t *bytes = arena_try(&ws->arena, size);

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
    int result = reserve_piece(ws, &piece, 2, &write);

    if (result == 0)
        apply_piece(ws, write, &piece, e->bytes);
    else
        ws->log_queued += log_size;
    return result;
}

/*
 * Gives plain ranges to the entries of their blocks, before anything else is queued.
 * What finds no memory stays plain.
 */
static int sort_plain(struct writeset *ws)
{
    struct plain *plain = &ws->plain;
    uint32_t done = 0;
    int result = 0;

    if (plain->count == 0)
        return 0;
    while (done < plain->count && result == 0) {
        result = sort_plain_range(ws, &plain->extents[done]);
        done += result == 0;
    }
    plain->count -= done;
    memmove(plain->extents, plain->extents + done,
            plain->count * sizeof(struct extent));
    return result;
}

static void link_plain(struct writeset *ws)
{
    struct block_write *write = &ws->plain_write;

    if (ws->plain.count == 0)
        return;
    *write = (struct block_write){
        .next = ws->first,
        .extents = ws->plain.extents,
        .extent_count = ws->plain.count,
    };
    ws->first = write;
}

/* ---- Write: the call ------------------------------------------------------------- */

static int queue_copy(struct writeset *ws, uint64_t dst, const void *src, uint64_t size)
{
    uint8_t *bytes = arena_alloc(&ws->arena, size);

    if (!bytes)
        return no_memory();
    memcpy(bytes, src, size);
    return queue(ws, dst, bytes, size);
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
        return outside(dst, size);
    if (ws->block_count == 0)
        prefetch_old_bytes(ws, dst, size);
    int result = sort_plain(ws);

    if (result < 0)
        return result;
    return src ? queue_copy(ws, dst, src, size) : queue(ws, dst, NULL, size);
}

__attribute__((noinline)) static int copy_bytes(uint8_t *dst, const void *src,
                                                uint64_t size)
{
    memcpy(dst, src, size);
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
        return outside(dst, size);
    if (!is_data(&ws->pool->geo, src, size))
        return outside(src, size);
    uint8_t *bytes = arena_alloc(&ws->arena, size);

    if (!bytes)
        return no_memory();
    int result = sort_plain(ws);

    if (result == 0)
        result = writeset_read(ws, bytes, src, size);
    return result < 0 ? result : queue(ws, dst, bytes, size);
}

/* Another transaction may take a free block any time, for its log even. */
static int check_allocated(const struct writeset *ws, uint64_t offset, uint64_t size)
{
    struct piece piece = {0};

    if (size > 0 && !is_data(&ws->pool->geo, offset, size))
        return outside(offset, size);
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
        return outside(dst, size);
    int result = check_allocated(ws, dst, size);

    if (result < 0)
        return result;
    struct fresh_write *fresh = arena_alloc(&ws->arena, sizeof(*fresh) + size);

    if (!fresh)
        return no_memory();
    memcpy(fresh + 1, src, size);
    *fresh = (struct fresh_write){NULL, dst, size, (const uint8_t *)(fresh + 1)};
    *ws->fresh_last = fresh;
    ws->fresh_last = &fresh->next;
    return 0;
}

/* ---- Read through ---------------------------------------------------------------- */

static void read_block(const struct block_write *write, const struct minl2r_pool *pool,
                       const struct piece *piece, uint8_t *dst)
{
    uint64_t source = write && write->streamed ? write->fresh : piece->block;

    memcpy(dst, pool_at(pool, source + piece->start), piece->end - piece->start);
    if (!write)
        return;
    for (uint32_t i = find_extent(write, piece->start);
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
        return outside(src, size);
    while (next_piece(&ws->pool->geo, src, size, &piece))
        read_block(find_block_write(ws, piece.block), ws->pool, &piece,
                   bytes + piece.from);
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

/* ---- Edit ------------------------------------------------------------------------ */

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
        int result =
            reserve_piece(ws, &piece, (uint32_t)edit_extents(length) + 2, &write);

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
        cut_extents(write, piece.start, piece.end);
        write->extents_promised += (uint32_t)edit_extents(piece.end - piece.start);
    }
}

int writeset_edit(struct writeset *ws, uint64_t offset, uint64_t size, uint8_t **copy)
{
    if (!is_data(&ws->pool->geo, offset, size))
        return outside(offset, size);
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
    int result = sort_plain(ws);

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
            store_through(ws, piece->block + piece->start + at, new + at, length);
        at += length;
    }
}

static void fold_edits(struct writeset *ws)
{
    for (const struct edit *edit = ws->edits; edit; edit = edit->next) {
        struct piece piece = {0};

        while (next_piece(&ws->pool->geo, edit->offset, edit->size, &piece))
            fold_piece(ws, edit, &piece);
    }
    ws->edits = NULL;
}

static void list_changes(struct writeset *ws)
{
    struct block_write **swap = &ws->swaps, **in_place = &ws->in_place;

    for (struct block_write *write = ws->first; write; write = write->next) {
        struct block_write ***last = write->fresh ? &swap : &in_place;

        if (!write->fresh && write->extent_count == 0)
            continue;
        **last = write;
        *last = &write->next_change;
    }
    *swap = *in_place = NULL;
}

void writeset_close(struct writeset *ws)
{
    if (ws->edits)
        fold_edits(ws);
    link_plain(ws);
    list_changes(ws);
}

/* ---- Write block: by slot -------------------------------------------------------- */

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
    run_list_add(&ws->abandoned, write->fresh, 1);
    write->fresh = 0;
    ws->fresh_count--;
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

/* Taking a lane in commit, while blocks are in flight, would wait for them: see pm.h. */
static bool take_lane_early(struct writeset *ws)
{
    if (!*ws->lane)
        *ws->lane = lane_try(ws->pool);
    return *ws->lane;
}

/* The whole content of a fresh block, past DRAM. */
static void stream_block(const struct writeset *ws, uint64_t fresh, const void *src)
{
    pm_store_nt(ws->phase, pool_at(ws->pool, fresh), src, ws->pool->geo.block_size);
}

static void set_streamed(const struct writeset *ws, struct block_write *write)
{
    write->streamed = true;
    write->extent_count = 0;
    write->covered = ws->pool->geo.block_size;
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
 * Part of a fresh block: whole lines are streamed at once, from where commit need not
 * move them. What it completes with the bytes around is kept in DRAM.
 */
static int stream_part(struct writeset *ws, struct block_write *write, uint32_t offset,
                       const uint8_t *src, uint32_t size)
{
    uint32_t start = (offset + PM_LINE - 1) & ~(uint32_t)(PM_LINE - 1);
    uint32_t end = (offset + size) & ~(uint32_t)(PM_LINE - 1);
    uint32_t head = start - offset, tail = offset + size - end;
    const uint8_t *lines = pool_at(ws->pool, write->fresh + start);
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
    pm_store_nt(ws->phase, lines, src + head, end - start);
    put_extent(write, start, end, lines);
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

static int queue_block(struct writeset *ws, struct block_write *write, uint32_t offset,
                       const void *src, uint32_t size)
{
    bool is_first = write->extent_count == 0;
    int result = reserve_block_write(ws, write, offset, offset + size, 2);

    if (result < 0)
        return result;
    if (can_stream(ws, write, offset, size)) {
        if (size == ws->pool->geo.block_size) {
            stream_block(ws, write->fresh, src);
            set_streamed(ws, write);
            return 0;
        }
        if (is_first && write->block)
            prefetch_kept(ws, write, offset, offset + size);
        return stream_part(ws, write, offset, src, size);
    }
    uint8_t *bytes = arena_alloc(&ws->arena, size);

    if (!bytes)
        return no_memory();
    memcpy(bytes, src, size);
    if (!write->block) {
        put_bytes(ws, write, offset, offset + size, bytes);
        return 0;
    }
    result = reserve_for_edits(ws, write->block + offset, size);
    if (result == 0)
        apply_range(ws, write->block + offset, bytes, size);
    return result;
}

/* A hole has no old bytes: it always gets a fresh block. */
static int fill_hole(struct writeset *ws, struct block_write *write)
{
    if (write->fresh)
        return 0;
    if (reserve_for_swap(ws, ws->pool->geo.spare_blocks, &write->fresh) < 0) {
        write->fresh = 0;
        return error_set(ENOSPC, "no free block");
    }
    ws->fresh_count++;
    return 0;
}

static bool names_block(const struct writeset *ws, uint64_t value)
{
    return is_blocks(&ws->pool->geo, value, 1) &&
           (is_allocated(ws, value) || is_own(ws, value));
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
    struct block_write *write = get_block_write(ws, value ? value : slot + 1, value);

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

static int write_slot(struct writeset *ws, uint64_t slot, uint64_t value,
                      uint32_t offset, const void *src, uint32_t size)
{
    struct slot_use use;
    int result = attach_slot(ws, slot, value, &use);

    if (result < 0)
        return result;
    if (value == 0)
        result = fill_hole(ws, use.write);
    if (result == 0)
        result = queue_block(ws, use.write, offset, src, size);
    if (result < 0)
        take_back_slot(ws, &use);
    return result;
}

/* Links two new entries: of the block at `value`, and of the one that holds its slot,
 * unless there is one. */
static struct block_write *link_swap(struct writeset *ws, struct block_write *writes,
                                     struct block_write *holder, uint64_t holder_block,
                                     uint64_t slot, uint64_t value)
{
    struct block_write *write = &writes[0];

    if (!holder) {
        holder = &writes[1];
        init_block_write(holder, holder_block, holder_block);
        link_block_write(ws, holder, table_find(ws, holder_block));
    }
    init_block_write(write, value, value);
    link_block_write(ws, write, table_find(ws, value));
    write->slot = slot;
    write->next_slot = holder->slots;
    holder->slots = write;
    return write;
}

/*
 * The common case in a fraction of the instructions: the whole of a block that has not
 * been written yet, with everything at hand. False, having changed nothing that
 * matters, for any other.
 */
static bool swap_whole_block(struct writeset *ws, uint64_t slot, uint64_t value,
                             const void *src)
{
    const struct geometry *geo = &ws->pool->geo;
    uint64_t holder_block = block_start(geo, slot);
    uint64_t fresh;

    if (ws->edits || ws->frees.count > 0 || value == holder_block ||
        geo->pointer_threshold > geo->block_size || !is_blocks(geo, value, 1) ||
        !is_allocated(ws, value) || !is_allocated(ws, holder_block) ||
        ws->block_count + 2 > ws->table_size / 2 ||
        !log_has_plenty(ws, LOG_SWAP_SIZE_MAX))
        return false;
    struct block_write *holder = find_block_write(ws, holder_block);

    if ((holder && (holder->fresh || holder->extent_count > 0)) ||
        find_block_write(ws, value))
        return false;
    struct block_write *writes =
        arena_try(&ws->arena, (holder ? 1 : 2) * sizeof(*writes));

    if (!writes || !take_lane_early(ws) || alloc_reserve_swap(ws->pool, 0, &fresh) < 0)
        return false;
    if (ws->fresh_count > 0) /* finds the page of the next while this one drains */
        alloc_prefetch_next(ws->pool);
    stream_block(ws, fresh, src);
    struct block_write *write = /* while it drains, too */
        link_swap(ws, writes, holder, holder_block, slot, value);

    ws->log_queued += LOG_SWAP_SIZE_MAX;
    ws->fresh_count++;
    write->fresh = fresh;
    set_streamed(ws, write);
    return true;
}

int writeset_write_block(struct writeset *ws, uint64_t slot, uint32_t offset,
                         const void *src, uint32_t size)
{
    if (size == 0)
        return 0;
    if (slot % sizeof(uint64_t) != 0 ||
        !is_data(&ws->pool->geo, slot, sizeof(uint64_t)))
        return error_set(EINVAL, "no slot at offset %llu", (unsigned long long)slot);
    if (size > ws->pool->geo.block_size || offset > ws->pool->geo.block_size - size)
        return error_set(EINVAL, "[%u, +%u) is past the end of a block", offset, size);
    int result = sort_plain(ws);

    if (result < 0)
        return result;
    uint64_t value = pm_load64(pool_at(ws->pool, slot));

    if (size == ws->pool->geo.block_size && swap_whole_block(ws, slot, value, src))
        return 0;
    if (value != 0 && !names_block(ws, value))
        return error_set(EUCLEAN,
                         "the slot at offset %llu names no allocated block: %llu",
                         (unsigned long long)slot, (unsigned long long)value);
    if (value == 0 || !is_own(ws, value))
        return write_slot(ws, slot, value, offset, src, size);
    return writeset_write(ws, value + offset, src, size);
}

/* ---- Blocks ---------------------------------------------------------------------- */

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
    if (reserve_blocks(ws, blocks, geo->spare_blocks, offset) < 0)
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

static bool is_in_run(const struct writeset *ws, uint64_t offset, struct block_run run)
{
    return offset >= run.offset &&
           offset - run.offset < run.count << ws->pool->geo.block_shift;
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
        return outside(offset, blocks << ws->pool->geo.block_shift);
    if (is_in_run(ws, pool_root_block(ws->pool)->offset, run))
        return error_set(EINVAL, "the root object at offset %llu cannot be freed",
                         (unsigned long long)pool_root_block(ws->pool)->offset);
    if (is_needed(ws, run))
        return error_set(
            EINVAL,
            "blocks at offset %llu: one is being swapped for a new one, or "
            "holds a slot that is written",
            (unsigned long long)offset);
    int result = is_own(ws, offset) ? free_own(ws, run) : -EINVAL;

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

/* ---- Snapshots ------------------------------------------------------------------- */

int writeset_reserve_snapshots(struct writeset *ws, const struct minl2r_range *ranges,
                               uint64_t count)
{
    uint64_t records_size = 0;
    int result;

    for (uint64_t i = 0; i < count; i++) {
        result =
            check_allocated(ws, pool_offset(ws->pool, ranges[i].pm), ranges[i].size);
        if (result < 0)
            return result;
        records_size += LOG_RECORD_SIZE(ranges[i].size);
    }
    result = run_list_reserve(ws, &ws->snapshots, count);
    if (result == 0)
        result = reserve_log(ws, 0, log_space_needed(records_size) + PM_LINE);
    return result;
}
