/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two levels of bitmaps in DRAM find a single block in a few steps however full the
 * pool is: `busy`, one bit per block, and `full`, one bit per word of `busy`. Blocks
 * are taken near those that the same thread freed last, so that their bitmap lines are
 * still in its cache.
 *
 * Block swaps take theirs out of a stash of the thread's own: what its slot commits
 * freed, or, where that is used up, some at once out of the bitmap. So threads that
 * swap blocks write nothing in DRAM that another one reads. Nor on media: as long as
 * there is room, each takes blocks out of bitmap lines that no other does, and those to
 * be swapped out of others than the rest, whose bits are read each time that something
 * in them changes. Others rob a stash only where nothing else is free.
 */
#include "libminl2r/alloc_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/thread.h"

#define STASHES_MAX 64u /* a power of two */
#define STASH_SIZE 512u
#define REFILL_MIN 16u /* blocks */
#define REFILL_MAX 128u
#define REFILL_SHARE 128u        /* between them: one of so many that are free */
#define PLENTY_SHARE 8u          /* are free: one of so many blocks, or more */
#define SHARED_LINE (1ull << 63) /* with the index of a stashed block */
#define NONE UINT64_MAX

enum purpose { FOR_ALLOC, FOR_SWAP, PURPOSES };

/*
 * Of a thread, or of several where there are more threads than stashes: blocks for its
 * swaps; those that its slot commits freed, oldest first. They are busy; those up to
 * `ready` may be reserved, the others are in quarantine. Who reads without the lock may
 * see it late.
 */
struct stash {
    struct spin lock;           /* taken before that of struct alloc */
    uint64_t begin, ready, end; /* of the ring */
    uint64_t *ring;             /* [STASH_SIZE], indexes; see give_back_shared() */

    /*
     * Words of busy to search first: for the thread's swaps, for the rest; NONE: not
     * yet. With the lock of struct alloc.
     */
    _Alignas(PM_LINE) uint64_t hints[PURPOSES];
} __attribute__((aligned(128)));

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
    for (uint32_t i = 0; i < alloc->stash_count; i++) {
        /* Not 0, since a refill goes in front. */
        alloc->stashes[i] =
            (struct stash){.begin = STASH_SIZE,
                           .ready = STASH_SIZE,
                           .end = STASH_SIZE,
                           .ring = &alloc->rings[(size_t)i * STASH_SIZE],
                           .hints = {NONE, NONE}};
    }
    load_busy(pool);
    count_free(alloc);
}

/* More threads than there are lanes do not commit at once. */
static uint32_t count_stashes(const struct geometry *geo)
{
    uint32_t count = STASHES_MAX;

    while (count / 2 >= geo->lane_count)
        count /= 2;
    return count;
}

/* Zones are whole lines of their bitmaps. */
static struct bit_lock *make_bit_locks(uint64_t count)
{
    struct bit_lock *locks = aligned_alloc(PM_LINE, count * sizeof(*locks));

    if (locks)
        memset(locks, 0, count * sizeof(*locks));
    return locks;
}

int alloc_attach(struct minl2r_pool *pool)
{
    struct alloc *alloc = aligned_alloc(_Alignof(struct alloc), sizeof(*alloc));

    if (!alloc)
        return -ENOMEM;
    *alloc = (struct alloc){
        .word_count = pool->geo.zone_count << pool->geo.zone_shift >> 6,
        .stash_count = count_stashes(&pool->geo),
    };
    alloc->busy = calloc(alloc->word_count, 8);
    alloc->leaving = calloc(alloc->word_count, 8);
    alloc->full = calloc((alloc->word_count + 63) / 64, 8);
    alloc->stashes = aligned_alloc(_Alignof(struct stash),
                                   alloc->stash_count * sizeof(struct stash));
    alloc->rings = aligned_alloc(PM_LINE, (size_t)alloc->stash_count * STASH_SIZE * 8);
    alloc->bit_locks = make_bit_locks(alloc->word_count / LINE_WORDS);
    pool->alloc = alloc;
    if (!alloc->busy || !alloc->leaving || !alloc->full || !alloc->stashes ||
        !alloc->rings || !alloc->bit_locks) {
        alloc_detach(pool);
        return -ENOMEM;
    }
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
    free(alloc->stashes);
    free(alloc->rings);
    free(alloc->bit_locks);
    free(alloc);
    pool->alloc = NULL;
}

/* ---- Stashes --------------------------------------------------------------------- */

/* Some counter of a stash, without its lock. */
static uint64_t load(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static struct stash *own_stash(const struct alloc *alloc)
{
    return &alloc->stashes[thread_number() & (alloc->stash_count - 1)];
}

static uint64_t *own_hint(const struct alloc *alloc, enum purpose purpose)
{
    return &own_stash(alloc)->hints[purpose];
}

static uint64_t count_ready(const struct stash *stash)
{
    return stash->ready - stash->begin;
}

/* The one that is reserved next. */
static uint64_t first_ready(const struct stash *stash)
{
    return load(&stash->ring[stash->begin % STASH_SIZE]);
}

static uint64_t pop_ready(struct stash *stash)
{
    uint64_t index = first_ready(stash) & ~SHARED_LINE;

    __atomic_store_n(&stash->begin, stash->begin + 1, __ATOMIC_RELAXED);
    return index;
}

uint64_t alloc_free_blocks(const struct minl2r_pool *pool)
{
    const struct alloc *alloc = pool->alloc;
    uint64_t count = load(&alloc->free_blocks);

    for (uint32_t i = 0; i < alloc->stash_count; i++) {
        uint64_t begin = load(&alloc->stashes[i].begin);
        uint64_t end = __atomic_load_n(&alloc->stashes[i].end, __ATOMIC_ACQUIRE);

        count += end > begin ? end - begin : 0;
    }
    return count;
}

/* ---- Reserve and release: DRAM only ---------------------------------------------- */

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

static bool is_hinted_at(const struct alloc *alloc, uint64_t line)
{
    for (uint32_t i = 0; i < alloc->stash_count; i++)
        for (int purpose = 0; purpose < PURPOSES; purpose++)
            if (alloc->stashes[i].hints[purpose] / LINE_WORDS == line)
                return true;
    return false;
}

/* A word of [from, to) that is not full, in a line that is nobody's, or NONE. */
static uint64_t find_unshared(const struct alloc *alloc, uint64_t from, uint64_t to)
{
    uint64_t word = find_zero(alloc->full, from, to);

    while (word != NONE && is_hinted_at(alloc, word / LINE_WORDS))
        word = find_zero(alloc->full, (word / LINE_WORDS + 1) * LINE_WORDS, to);
    return word;
}

/* A word that is not full: in the line of the hint, in one that is nobody's, or in any;
 * the hint moves there. NONE if all are full. */
static uint64_t find_word(const struct alloc *alloc, uint64_t *hint)
{
    uint64_t next_line = *hint == NONE ? 0 : (*hint / LINE_WORDS + 1) * LINE_WORDS;
    uint64_t word = find_zero(alloc->full, *hint, next_line);

    if (word == NONE)
        word = find_unshared(alloc, next_line, alloc->word_count);
    if (word == NONE)
        word = find_unshared(alloc, 0, next_line);
    if (word == NONE)
        word = find_zero(alloc->full, 0, alloc->word_count);
    if (word != NONE)
        *hint = word;
    return word;
}

/* Not in the first line, where the rest of what the thread allocates begins. */
static uint64_t find_word_for_swap(const struct alloc *alloc)
{
    if (*own_hint(alloc, FOR_ALLOC) == NONE)
        find_word(alloc, own_hint(alloc, FOR_ALLOC));
    return find_word(alloc, own_hint(alloc, FOR_SWAP));
}

static uint64_t first_zero_of(const struct alloc *alloc, uint64_t word)
{
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

/*
 * Bits of the word that begin `count` zeros or more, at most 64, some of them in the
 * next word. After each step a bit stands for `length` zeros from there on.
 */
static uint64_t starts_of_runs(const struct alloc *alloc, uint64_t word, uint64_t count)
{
    uint64_t low = ~alloc->busy[word];
    uint64_t high = word + 1 < alloc->word_count ? ~alloc->busy[word + 1] : 0;

    for (uint64_t length = 1; low && length < count;) {
        uint64_t step = length < count - length ? length : count - length;

        low &= low >> step | high << (64 - step);
        high &= high >> step;
        length += step;
    }
    return low;
}

/* As find_run_in(), of at most 64 that begin in words [from, to): words at a time. */
static uint64_t find_short_run(const struct alloc *alloc, uint64_t count, uint64_t from,
                               uint64_t to)
{
    for (uint64_t word = find_zero(alloc->full, from, to); word != NONE;
         word = find_zero(alloc->full, word + 1, to)) {
        uint64_t starts = starts_of_runs(alloc, word, count);

        if (starts)
            return word * 64 + (uint64_t)__builtin_ctzll(starts);
    }
    return NONE;
}

/* Goes on where the last one was found: what lies before has been looked through. */
static uint64_t find_run(const struct alloc *alloc, uint64_t count, uint64_t hint)
{
    uint64_t limit = alloc->word_count * 64;

    if (hint == NONE)
        hint = 0;
    uint64_t index = count <= 64 ? find_short_run(alloc, count, hint, alloc->word_count)
                                 : find_run_in(alloc, count, hint * 64, limit);

    if (index != NONE)
        return index;
    if (count <= 64)
        return find_short_run(alloc, count, 0, hint);
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
    while (run_next(&cursor, &piece)) {
        set_busy_word(alloc, piece.word, alloc->busy[piece.word] & ~piece.mask);
        alloc->full[piece.word / 64] &= ~((uint64_t)1 << piece.word % 64);
    }
}

/* Those that the thread allocates next lie near, but not among those of its swaps. */
static void mark_given_back(struct alloc *alloc, struct run_cursor cursor)
{
    uint64_t word = cursor.index / 64;

    mark_free(alloc, cursor);
    if (word / LINE_WORDS != *own_hint(alloc, FOR_SWAP) / LINE_WORDS)
        *own_hint(alloc, FOR_ALLOC) = word;
}

static uint64_t find_and_mark(struct alloc *alloc, uint64_t count)
{
    uint64_t *hint = own_hint(alloc, FOR_ALLOC);
    uint64_t index = NONE;

    if (count > 1)
        index = find_run(alloc, count, *hint);
    else if (find_word(alloc, hint) != NONE)
        index = first_zero_of(alloc, *hint);
    if (index != NONE) {
        mark_busy(alloc, (struct run_cursor){index, index + count});
        *hint = index / 64;
    }
    return index;
}

static bool leaves(uint64_t available, uint64_t count, uint64_t spare)
{
    return available >= count && available - count >= spare;
}

/* Many where many are free, since threads that refill write to what they share. */
static uint64_t refill_count(const struct alloc *alloc, const struct stash *stash)
{
    uint64_t room = STASH_SIZE - (stash->end - stash->begin);
    uint64_t count = load(&alloc->free_blocks) / REFILL_SHARE;

    count = count < REFILL_MIN ? REFILL_MIN : count > REFILL_MAX ? REFILL_MAX : count;
    return count < room ? count : room;
}

/* Up to `count` blocks of one word. */
static uint64_t take_of_word(struct alloc *alloc, uint64_t word, uint64_t *indexes,
                             uint64_t count)
{
    uint64_t taken = 0;

    for (; taken < count && alloc->busy[word] != UINT64_MAX; taken++) {
        indexes[taken] = first_zero_of(alloc, word);
        mark_busy(alloc, (struct run_cursor){indexes[taken], indexes[taken] + 1});
    }
    return taken;
}

/* In front of what is in quarantine. */
static void push_ready(struct stash *stash, const uint64_t *indexes, uint64_t count)
{
    uint64_t begin = stash->begin - count;

    for (uint64_t i = 0; i < count; i++)
        __atomic_store_n(&stash->ring[(begin + i) % STASH_SIZE], indexes[i],
                         __ATOMIC_RELAXED);
    __atomic_store_n(&stash->begin, begin, __ATOMIC_RELAXED);
}

/* A stash that has none ready gets some out of the bitmap, as far as that leaves the
 * spare blocks. With the stash's lock. */
static void refill(struct alloc *alloc, struct stash *stash, uint64_t spare)
{
    uint64_t indexes[REFILL_MAX], taken = 0, word = 0;

    spin_lock(&alloc->lock);
    uint64_t count = refill_count(alloc, stash);

    while (count > 0 && !leaves(alloc->free_blocks, count, spare))
        count--;
    while (taken < count && (word = find_word_for_swap(alloc)) != NONE)
        taken += take_of_word(alloc, word, indexes + taken, count - taken);
    spin_unlock(&alloc->lock);
    push_ready(stash, indexes, taken);
}

/*
 * Those whose bitmap lines other threads use, too, leave the stash as they become
 * ready: so each thread has lines of its own in the end. With the stash's lock.
 */
static void give_back_shared(struct alloc *alloc, struct stash *stash)
{
    while (count_ready(stash) > 0 && first_ready(stash) & SHARED_LINE) {
        uint64_t index = pop_ready(stash);

        spin_lock(&alloc->lock);
        mark_free(alloc, (struct run_cursor){index, index + 1});
        spin_unlock(&alloc->lock);
    }
}

/*
 * Out of the thread's own stash. Others may take what is free in the bitmap meanwhile,
 * but leave as much as they have to: so does this, which takes none of that.
 */
static uint64_t reserve_stashed(struct alloc *alloc, uint64_t spare)
{
    struct stash *stash = own_stash(alloc);
    uint64_t index = NONE;

    spin_lock(&stash->lock);
    give_back_shared(alloc, stash);
    if (count_ready(stash) == 0)
        refill(alloc, stash, spare);
    if (count_ready(stash) > 0 && load(&alloc->free_blocks) >= spare)
        index = pop_ready(stash);
    spin_unlock(&stash->lock);
    return index;
}

/* What is stashed is not counted: so much is free at least. */
static uint64_t reserve_free(struct alloc *alloc, uint64_t count, uint64_t spare)
{
    uint64_t index = NONE;

    spin_lock(&alloc->lock);
    if (leaves(alloc->free_blocks, count, spare))
        index = find_and_mark(alloc, count);
    spin_unlock(&alloc->lock);
    return index;
}

static void free_ready(struct alloc *alloc, struct stash *stash)
{
    while (count_ready(stash) > 0) {
        uint64_t block = pop_ready(stash);

        mark_free(alloc, (struct run_cursor){block, block + 1});
    }
}

/* Robs all stashes: with every lock, so that all blocks are seen at once. */
static uint64_t reserve_last(struct alloc *alloc, uint64_t count, uint64_t spare)
{
    uint64_t index = NONE;

    for (uint32_t i = 0; i < alloc->stash_count; i++)
        spin_lock(&alloc->stashes[i].lock);
    spin_lock(&alloc->lock);
    for (uint32_t i = 0; i < alloc->stash_count; i++)
        free_ready(alloc, &alloc->stashes[i]);
    if (leaves(alloc->free_blocks, count, spare))
        index = find_and_mark(alloc, count);
    spin_unlock(&alloc->lock);
    for (uint32_t i = 0; i < alloc->stash_count; i++)
        spin_unlock(&alloc->stashes[i].lock);
    return index;
}

static int result_of(const struct minl2r_pool *pool, uint64_t index, uint64_t *offset)
{
    if (index == NONE)
        return -ENOSPC;
    *offset = block_offset(&pool->geo, index);
    return 0;
}

int alloc_reserve(struct minl2r_pool *pool, uint64_t count, uint64_t spare,
                  uint64_t *offset)
{
    uint64_t index = reserve_free(pool->alloc, count, spare);

    if (index == NONE)
        index = reserve_last(pool->alloc, count, spare);
    return result_of(pool, index, offset);
}

int alloc_reserve_swap(struct minl2r_pool *pool, uint64_t spare, uint64_t *offset)
{
    return result_of(pool, reserve_stashed(pool->alloc, spare), offset);
}

void alloc_release(struct minl2r_pool *pool, struct block_run run)
{
    spin_lock(&pool->alloc->lock);
    mark_given_back(pool->alloc, run_begin(pool, run));
    spin_unlock(&pool->alloc->lock);
}

bool alloc_is_reserved(const struct minl2r_pool *pool, uint64_t offset)
{
    uint64_t index = block_index(&pool->geo, offset);
    uint64_t busy = __atomic_load_n(&pool->alloc->busy[index / 64], __ATOMIC_RELAXED);

    return (busy & ~pm_load64(pool_bitmap_word(pool, index))) >> index % 64 & 1;
}

/* ---- Freed, but not yet ---------------------------------------------------------- */

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

void alloc_release_freed(struct minl2r_pool *pool, struct block_run run)
{
    struct run_cursor cursor = run_begin(pool, run);

    spin_lock(&pool->alloc->lock);
    clear_leaving(pool->alloc, cursor);
    mark_given_back(pool->alloc, cursor);
    spin_unlock(&pool->alloc->lock);
}

/* ---- Quarantine ------------------------------------------------------------------ */

uint32_t alloc_quarantines(const struct minl2r_pool *pool)
{
    return pool->alloc->stash_count;
}

uint32_t alloc_own_quarantine(const struct minl2r_pool *pool)
{
    return (uint32_t)(own_stash(pool->alloc) - pool->alloc->stashes);
}

uint64_t alloc_quarantine_mark(const struct minl2r_pool *pool, uint32_t which)
{
    return __atomic_load_n(&pool->alloc->stashes[which].end, __ATOMIC_ACQUIRE);
}

uint64_t alloc_quarantine_count(const struct minl2r_pool *pool, uint32_t which)
{
    uint64_t ready = load(&pool->alloc->stashes[which].ready);
    uint64_t end = alloc_quarantine_mark(pool, which);

    return end > ready ? end - ready : 0;
}

/* For how many blocks, of `count`. With the stash's lock. */
static uint32_t make_room(struct alloc *alloc, struct stash *stash, uint32_t count)
{
    if (STASH_SIZE - (stash->end - stash->begin) < count && count_ready(stash) > 0) {
        spin_lock(&alloc->lock);
        free_ready(alloc, stash);
        spin_unlock(&alloc->lock);
    }
    uint64_t room = STASH_SIZE - (stash->end - stash->begin);

    return count < room ? count : (uint32_t)room;
}

/* As the stash keeps it. What is scarce stays where it is. */
static uint64_t stashed(const struct minl2r_pool *pool, uint64_t block)
{
    const struct alloc *alloc = pool->alloc;
    uint64_t index = block_index(&pool->geo, block);
    bool is_shared =
        __atomic_load_n(&bit_lock(alloc, index / 64)->changed_hands, __ATOMIC_RELAXED);

    return is_shared &&
                   load(&alloc->free_blocks) >= pool->geo.block_count / PLENTY_SHARE
               ? index | SHARED_LINE
               : index;
}

uint32_t alloc_quarantine(struct minl2r_pool *pool, const uint64_t *blocks,
                          uint32_t count)
{
    struct stash *stash = own_stash(pool->alloc);

    spin_lock(&stash->lock);
    uint64_t end = stash->end;

    count = make_room(pool->alloc, stash, count);
    for (uint32_t i = 0; i < count; i++)
        __atomic_store_n(&stash->ring[(end + i) % STASH_SIZE], stashed(pool, blocks[i]),
                         __ATOMIC_RELAXED);
    __atomic_store_n(&stash->end, end + count, __ATOMIC_RELEASE);
    spin_unlock(&stash->lock);
    return count;
}

void alloc_end_quarantine(struct minl2r_pool *pool, uint32_t which, uint64_t mark)
{
    struct stash *stash = &pool->alloc->stashes[which];

    spin_lock(&stash->lock);
    if (stash->ready < mark)
        __atomic_store_n(&stash->ready, mark, __ATOMIC_RELAXED);
    spin_unlock(&stash->lock);
}

void alloc_prefetch(const struct minl2r_pool *pool, uint32_t count)
{
    const struct stash *stash = own_stash(pool->alloc);
    uint64_t begin = load(&stash->begin), ready = load(&stash->ready);

    for (; begin < ready && count > 0; begin++, count--) {
        uint64_t index = load(&stash->ring[begin % STASH_SIZE]) & ~SHARED_LINE;

        __builtin_prefetch(pool_at(pool, block_offset(&pool->geo, index)), 1);
        __builtin_prefetch(pool_bitmap_word(pool, index), 1);
    }
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
