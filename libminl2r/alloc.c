/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two levels of bitmaps in DRAM find a single block in a few steps however full the
 * pool is: `busy`, one bit per block, and `full`, one bit per word of `busy`. Blocks
 * are taken near those that the same thread freed last, so that their bitmap lines are
 * still in its cache.
 */
#include "libminl2r/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/spin.h"
#include "libminl2r/thread.h"

#define HINT_COUNT 64
#define QUARANTINE_MAX 512
#define NONE UINT64_MAX

struct alloc {
    struct spin lock;    /* of all below */
    uint64_t word_count; /* of busy and leaving */
    uint64_t *busy;
    uint64_t *leaving;
    uint64_t *full;             /* bit set: that word of busy has no 0 */
    uint64_t free_blocks;       /* zeros in busy; read without the lock */
    uint64_t hints[HINT_COUNT]; /* by thread: word of busy to search first */

    /*
     * Blocks that slot commits freed, oldest first: busy, and to be reserved up to
     * `ready`. Who reads this without the lock may see it late.
     */
    struct {
        uint64_t blocks[QUARANTINE_MAX]; /* a ring; indexes */
        uint64_t begin, ready, end;
    } quarantine;
};

/* ---- Bits of a run, word by word ------------------------------------------------- */

struct run_piece {
    uint64_t word; /* index into busy and leaving; 64 times it: a block index */
    uint64_t mask;
};

struct run_cursor {
    uint64_t index; /* of the next block */
    uint64_t end;
};

static struct run_cursor run_begin(const struct minl2r_pool *pool, struct block_run run)
{
    uint64_t index = block_index(&pool->geo, run.offset);

    return (struct run_cursor){index, index + run.count};
}

static uint64_t mask_of(uint64_t first, uint64_t count)
{
    return (count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1) << first;
}

static bool run_next(struct run_cursor *cursor, struct run_piece *piece)
{
    if (cursor->index == cursor->end)
        return false;
    uint64_t first = cursor->index % 64;
    uint64_t count = 64 - first;

    if (count > cursor->end - cursor->index)
        count = cursor->end - cursor->index;
    piece->word = cursor->index / 64;
    piece->mask = mask_of(first, count);
    cursor->index += count;
    return true;
}

static const uint64_t *media_word(const struct minl2r_pool *pool,
                                  struct run_piece piece)
{
    return pool_bitmap_word(pool, piece.word * 64);
}

/* ---- Attach ---------------------------------------------------------------------- */

static void set_bits(uint64_t *words, uint64_t from, uint64_t to)
{
    struct run_cursor cursor = {from, to};
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        words[piece.word] |= piece.mask;
}

/* All bits from `from` on; there is one. */
static void set_bits_from(uint64_t *words, uint64_t from, uint64_t word_count)
{
    uint64_t word = from / 64;

    words[word] |= UINT64_MAX << from % 64;
    memset(&words[word + 1], 0xff, (word_count - word - 1) * 8);
}

/* What damaged media may say of itself is not believed: bitmaps and what is past the
 * end. */
static void load_busy(struct minl2r_pool *pool)
{
    struct alloc *alloc = pool->alloc;
    uint64_t zone_words = (uint64_t)1 << pool->geo.zone_shift >> 6;

    for (uint64_t zone = 0; zone < pool->geo.zone_count; zone++) {
        uint64_t first = zone << pool->geo.zone_shift;

        memcpy(&alloc->busy[first / 64], pool_bitmap_word(pool, first), zone_words * 8);
        alloc->busy[first / 64] |= 1;
    }
    alloc->busy[0] |= 2; /* the root block */
    if (pool->geo.block_count < alloc->word_count * 64)
        set_bits_from(alloc->busy, pool->geo.block_count, alloc->word_count);
}

static void count_free(struct alloc *alloc)
{
    const uint64_t *words = alloc->busy;
    uint64_t word_count = alloc->word_count, free_blocks = 0;

    for (uint64_t i = 0; i < word_count; i++) {
        uint64_t zeros = ~words[i];

        if (zeros == 0)
            alloc->full[i / 64] |= (uint64_t)1 << i % 64;
        else
            free_blocks += (uint64_t)__builtin_popcountll(zeros);
    }
    alloc->free_blocks = free_blocks;
}

void alloc_reload(struct minl2r_pool *pool)
{
    struct alloc *alloc = pool->alloc;

    memset(alloc->full, 0, (alloc->word_count + 63) / 64 * 8);
    if (alloc->word_count % 64 != 0)
        set_bits_from(alloc->full, alloc->word_count, (alloc->word_count + 63) / 64);
    memset(alloc->leaving, 0, alloc->word_count * 8);
    alloc->quarantine.begin = alloc->quarantine.ready = alloc->quarantine.end = 0;
    load_busy(pool);
    count_free(alloc);
}

/* Threads begin in different lines of the bitmaps. */
static void spread_hints(struct alloc *alloc)
{
    uint64_t word_count = alloc->word_count, word = 0;

    for (uint64_t i = 0; i < HINT_COUNT; i++) {
        alloc->hints[i] = word;
        word = word + 8 < word_count ? word + 8 : 0;
    }
}

int alloc_attach(struct minl2r_pool *pool)
{
    struct alloc *alloc = calloc(1, sizeof(*alloc));

    if (!alloc)
        return -ENOMEM;
    alloc->word_count = pool->geo.zone_count << pool->geo.zone_shift >> 6;
    alloc->busy = calloc(alloc->word_count, 8);
    alloc->leaving = calloc(alloc->word_count, 8);
    alloc->full = calloc((alloc->word_count + 63) / 64, 8);
    pool->alloc = alloc;
    if (!alloc->busy || !alloc->leaving || !alloc->full) {
        alloc_detach(pool);
        return -ENOMEM;
    }
    spread_hints(alloc);
    alloc_reload(pool);
    return 0;
}

void alloc_detach(struct minl2r_pool *pool)
{
    struct alloc *alloc = pool->alloc;

    if (!alloc)
        return;
    free(alloc->busy);
    free(alloc->leaving);
    free(alloc->full);
    free(alloc);
    pool->alloc = NULL;
}

uint64_t alloc_free_blocks(const struct minl2r_pool *pool)
{
    const struct alloc *alloc = pool->alloc;
    uint64_t begin = __atomic_load_n(&alloc->quarantine.begin, __ATOMIC_RELAXED);
    uint64_t end = __atomic_load_n(&alloc->quarantine.end, __ATOMIC_ACQUIRE);

    return __atomic_load_n(&alloc->free_blocks, __ATOMIC_RELAXED) +
           (end > begin ? end - begin : 0);
}

/* ---- Reserve and release: DRAM only ---------------------------------------------- */

static uint64_t *hint_of_thread(struct alloc *alloc)
{
    return &alloc->hints[thread_number() % HINT_COUNT];
}

static void count_add(struct alloc *alloc, uint64_t count)
{
    __atomic_store_n(&alloc->free_blocks, alloc->free_blocks + count, __ATOMIC_RELAXED);
}

/* The first 0 of words[] in [from, to), or NONE. */
static uint64_t find_zero(const uint64_t *words, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i = (i / 64 + 1) * 64) {
        uint64_t zeros = ~words[i / 64] & mask_of(i % 64, 64 - i % 64);

        if (zeros) {
            uint64_t found = i / 64 * 64 + (uint64_t)__builtin_ctzll(zeros);

            return found < to ? found : NONE;
        }
    }
    return NONE;
}

/* The first 1 of words[] in [from, to), or `to`. */
static uint64_t find_one(const uint64_t *words, uint64_t from, uint64_t to)
{
    for (uint64_t i = from; i < to; i = (i / 64 + 1) * 64) {
        uint64_t ones = words[i / 64] & mask_of(i % 64, 64 - i % 64);

        if (ones) {
            uint64_t found = i / 64 * 64 + (uint64_t)__builtin_ctzll(ones);

            return found < to ? found : to;
        }
    }
    return to;
}

static uint64_t find_block(const struct alloc *alloc, uint64_t hint)
{
    uint64_t word = find_zero(alloc->full, hint, alloc->word_count);

    if (word == NONE)
        word = find_zero(alloc->full, 0, hint);
    if (word == NONE)
        return NONE;
    return word * 64 + (uint64_t)__builtin_ctzll(~alloc->busy[word]);
}

/* In [from, to). Zones begin with a busy bit, so no run spans two. */
static uint64_t find_run_in(const struct alloc *alloc, uint64_t count, uint64_t from,
                            uint64_t to)
{
    uint64_t start = find_zero(alloc->busy, from, to);

    while (start != NONE && to - start >= count) {
        uint64_t end = find_one(alloc->busy, start, start + count);

        if (end == start + count)
            return start;
        start = find_zero(alloc->busy, end, to);
    }
    return NONE;
}

/* Goes on where the last one was found: what lies before has been looked through. */
static uint64_t find_run(const struct alloc *alloc, uint64_t count, uint64_t hint)
{
    uint64_t limit = alloc->word_count * 64;
    uint64_t index = find_run_in(alloc, count, hint * 64, limit);

    if (index != NONE)
        return index;
    return find_run_in(alloc, count, 0,
                       limit - hint * 64 > count ? hint * 64 + count : limit);
}

/* Under the lock, but alloc_is_reserved() reads without it. */
static void set_busy_word(struct alloc *alloc, uint64_t word, uint64_t value)
{
    __atomic_store_n(&alloc->busy[word], value, __ATOMIC_RELAXED);
}

static void mark_busy(struct alloc *alloc, struct run_cursor cursor)
{
    struct run_piece piece;

    count_add(alloc, cursor.index - cursor.end);
    while (run_next(&cursor, &piece)) {
        set_busy_word(alloc, piece.word, alloc->busy[piece.word] | piece.mask);
        if (alloc->busy[piece.word] == UINT64_MAX)
            alloc->full[piece.word / 64] |= (uint64_t)1 << piece.word % 64;
    }
}

static void mark_free(struct alloc *alloc, struct run_cursor cursor)
{
    struct run_piece piece;

    count_add(alloc, cursor.end - cursor.index);
    *hint_of_thread(alloc) = cursor.index / 64;
    while (run_next(&cursor, &piece)) {
        set_busy_word(alloc, piece.word, alloc->busy[piece.word] & ~piece.mask);
        alloc->full[piece.word / 64] &= ~((uint64_t)1 << piece.word % 64);
    }
}

static uint64_t count_ready(const struct alloc *alloc)
{
    return alloc->quarantine.ready - alloc->quarantine.begin;
}

static uint64_t pop_ready(struct alloc *alloc)
{
    uint64_t begin = alloc->quarantine.begin;

    __atomic_store_n(&alloc->quarantine.begin, begin + 1, __ATOMIC_RELAXED);
    return __atomic_load_n(&alloc->quarantine.blocks[begin % QUARANTINE_MAX],
                           __ATOMIC_RELAXED);
}

static void free_ready(struct alloc *alloc)
{
    while (count_ready(alloc) > 0) {
        uint64_t block = pop_ready(alloc);

        mark_free(alloc, (struct run_cursor){block, block + 1});
    }
}

static uint64_t find_and_mark(struct alloc *alloc, uint64_t count)
{
    uint64_t *hint = hint_of_thread(alloc);
    uint64_t index =
        count == 1 ? find_block(alloc, *hint) : find_run(alloc, count, *hint);

    if (index != NONE) {
        mark_busy(alloc, (struct run_cursor){index, index + count});
        *hint = index / 64;
    }
    return index;
}

static uint64_t reserve_locked(struct alloc *alloc, uint64_t count, uint64_t spare)
{
    uint64_t available = alloc->free_blocks + count_ready(alloc);

    if (available < count || available - count < spare)
        return NONE;
    if (count == 1 && count_ready(alloc) > 0)
        return pop_ready(alloc);
    uint64_t index = find_and_mark(alloc, count);

    if (index != NONE || count_ready(alloc) == 0)
        return index;
    free_ready(alloc);
    return find_and_mark(alloc, count);
}

int alloc_reserve(struct minl2r_pool *pool, uint64_t count, uint64_t spare,
                  uint64_t *offset)
{
    spin_lock(&pool->alloc->lock);
    uint64_t index = reserve_locked(pool->alloc, count, spare);

    spin_unlock(&pool->alloc->lock);
    if (index == NONE)
        return -ENOSPC;
    *offset = block_offset(&pool->geo, index);
    return 0;
}

void alloc_release(struct minl2r_pool *pool, struct block_run run)
{
    spin_lock(&pool->alloc->lock);
    mark_free(pool->alloc, run_begin(pool, run));
    spin_unlock(&pool->alloc->lock);
}

bool alloc_is_reserved(const struct minl2r_pool *pool, uint64_t offset)
{
    uint64_t index = block_index(&pool->geo, offset);
    uint64_t busy = __atomic_load_n(&pool->alloc->busy[index / 64], __ATOMIC_RELAXED);

    return (busy & ~pm_load64(pool_bitmap_word(pool, index))) >> index % 64 & 1;
}

/* ---- Media ----------------------------------------------------------------------- */

bool alloc_is_allocated(const struct minl2r_pool *pool, struct block_run run)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        if ((pm_load64(media_word(pool, piece)) & piece.mask) != piece.mask)
            return false;
    return true;
}

static bool any_leaving(const struct alloc *alloc, struct run_cursor cursor)
{
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        if (alloc->leaving[piece.word] & piece.mask)
            return true;
    return false;
}

static void clear_leaving(struct alloc *alloc, struct run_cursor cursor)
{
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        alloc->leaving[piece.word] &= ~piece.mask;
}

int alloc_mark_leaving(struct minl2r_pool *pool, struct block_run run)
{
    struct alloc *alloc = pool->alloc;
    struct run_cursor cursor = run_begin(pool, run);
    int result = 0;

    spin_lock(&alloc->lock);
    if (!alloc_is_allocated(pool, run) || any_leaving(alloc, cursor))
        result = -EINVAL;
    else
        set_bits(alloc->leaving, cursor.index, cursor.end);
    spin_unlock(&alloc->lock);
    return result;
}

void alloc_unmark_leaving(struct minl2r_pool *pool, struct block_run run)
{
    spin_lock(&pool->alloc->lock);
    clear_leaving(pool->alloc, run_begin(pool, run));
    spin_unlock(&pool->alloc->lock);
}

typedef void change_word_fn(struct pm_phase *phase, const uint64_t *word,
                            uint64_t bits);

static void clear_bits(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    pm_and64(phase, word, ~bits);
}

/* Most runs are of one block. */
static inline void change_media(struct minl2r_pool *pool, struct pm_phase *phase,
                                struct block_run run, change_word_fn *change)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    if (run.count == 1)
        change(phase, pool_bitmap_word(pool, cursor.index),
               (uint64_t)1 << cursor.index % 64);
    else
        while (run_next(&cursor, &piece))
            change(phase, media_word(pool, piece), piece.mask);
}

void alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                   struct block_run run)
{
    change_media(pool, phase, run, pm_or64);
}

void alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                     struct block_run run)
{
    change_media(pool, phase, run, clear_bits);
}

void alloc_flush(struct minl2r_pool *pool, struct pm_phase *phase, struct block_run run)
{
    uint64_t first = block_index(&pool->geo, run.offset);
    const uint64_t *from = pool_bitmap_word(pool, first);
    const uint64_t *last =
        run.count == 1 ? from : pool_bitmap_word(pool, first + run.count - 1);

    pm_flush(phase, from, (size_t)(last - from + 1) * sizeof(*from));
}

void alloc_release_freed(struct minl2r_pool *pool, struct block_run run)
{
    struct run_cursor cursor = run_begin(pool, run);

    spin_lock(&pool->alloc->lock);
    clear_leaving(pool->alloc, cursor);
    mark_free(pool->alloc, cursor);
    spin_unlock(&pool->alloc->lock);
}

/* ---- Quarantine ------------------------------------------------------------------ */

uint64_t alloc_quarantine_mark(const struct minl2r_pool *pool)
{
    return __atomic_load_n(&pool->alloc->quarantine.end, __ATOMIC_ACQUIRE);
}

uint64_t alloc_quarantine_count(const struct minl2r_pool *pool)
{
    uint64_t ready = __atomic_load_n(&pool->alloc->quarantine.ready, __ATOMIC_RELAXED);
    uint64_t end = alloc_quarantine_mark(pool);

    return end > ready ? end - ready : 0;
}

bool alloc_quarantine(struct minl2r_pool *pool, uint64_t block)
{
    struct alloc *alloc = pool->alloc;

    spin_lock(&alloc->lock);
    uint64_t end = alloc->quarantine.end;

    if (end - alloc->quarantine.begin == QUARANTINE_MAX)
        free_ready(alloc);
    bool has_room = end - alloc->quarantine.begin < QUARANTINE_MAX;

    if (has_room) {
        __atomic_store_n(&alloc->quarantine.blocks[end % QUARANTINE_MAX],
                         block_index(&pool->geo, block), __ATOMIC_RELAXED);
        __atomic_store_n(&alloc->quarantine.end, end + 1, __ATOMIC_RELEASE);
    }
    spin_unlock(&alloc->lock);
    return has_room;
}

void alloc_end_quarantine(struct minl2r_pool *pool, uint64_t mark)
{
    struct alloc *alloc = pool->alloc;

    spin_lock(&alloc->lock);
    if (alloc->quarantine.ready < mark)
        __atomic_store_n(&alloc->quarantine.ready, mark, __ATOMIC_RELAXED);
    spin_unlock(&alloc->lock);
}

void alloc_prefetch_next(const struct minl2r_pool *pool)
{
    const struct alloc *alloc = pool->alloc;
    uint64_t begin = __atomic_load_n(&alloc->quarantine.begin, __ATOMIC_RELAXED);
    uint64_t index = __atomic_load_n(&alloc->quarantine.blocks[begin % QUARANTINE_MAX],
                                     __ATOMIC_RELAXED);

    __builtin_prefetch(pool_at(pool, block_offset(&pool->geo, index)), 1);
    __builtin_prefetch(pool_bitmap_word(pool, index), 1);
}

/* ---- Recovery -------------------------------------------------------------------- */

bool alloc_claim_segment(struct minl2r_pool *pool, struct block_run run)
{
    struct run_cursor cursor = run_begin(pool, run);

    if (find_one(pool->alloc->busy, cursor.index, cursor.end) != cursor.end)
        return false;
    mark_busy(pool->alloc, cursor);
    return true;
}

bool alloc_is_claimed(const struct minl2r_pool *pool, struct block_run run)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        if (pool->alloc->busy[piece.word] & ~pm_load64(media_word(pool, piece)) &
            piece.mask)
            return true;
    return false;
}
