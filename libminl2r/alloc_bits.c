/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bits of the bitmaps on media. Threads change different ones of a word at once: each
 * line has a lock in DRAM.
 */
#include "libminl2r/alloc_internal.h"

#include "libminl2r/copy.h"
#include "libminl2r/thread.h"

bool alloc_is_allocated(const struct minl2r_pool *pool, struct block_run run)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        if ((pm_load64(media_word(pool, piece)) & piece.mask) != piece.mask)
            return false;
    return true;
}

static void lock_bits(const struct minl2r_pool *pool, uint64_t word)
{
    struct bit_lock *lock = bit_lock(pool->alloc, word);
    uint32_t self = thread_number();

    spin_lock(&lock->spin);
    bool changes_hands = lock->user != self && lock->user != 0;

    if (lock->user != self)
        lock->user = self;
    if (lock->changed_hands != changes_hands)
        __atomic_store_n(&lock->changed_hands, changes_hands, __ATOMIC_RELAXED);
}

static void unlock_bits(const struct minl2r_pool *pool, uint64_t word)
{
    spin_unlock(&bit_lock(pool->alloc, word)->spin);
}

/* Where `word` is or belongs. */
static struct bit_word *find_bit_word(struct bit_changes *bits, uint64_t word)
{
    uint32_t i = bits->count;

    while (i > 0 && bits->words[i - 1].index >= word)
        i--;
    return &bits->words[i];
}

static bool add_bits(struct bit_changes *bits, struct run_piece piece, bool allocated)
{
    struct bit_word *at = find_bit_word(bits, piece.word);
    struct bit_word *end = &bits->words[bits->count];

    if (at == end || at->index != piece.word) {
        if (bits->count == BIT_WORDS_MAX)
            return false;
        for (struct bit_word *moved = end; moved > at; moved--)
            copy_words(moved, moved - 1, sizeof(*moved));
        *at = (struct bit_word){.index = piece.word};
        bits->count++;
    }
    *(allocated ? &at->set : &at->clear) |= piece.mask;
    return true;
}

bool alloc_add_bits(const struct minl2r_pool *pool, struct bit_changes *bits,
                    struct block_run run, bool allocated)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    while (run_next(&cursor, &piece))
        if (!add_bits(bits, piece, allocated))
            return false;
    return true;
}

static bool begins_line(const struct bit_changes *bits, uint32_t i)
{
    return i == 0 ||
           bits->words[i].index / LINE_WORDS != bits->words[i - 1].index / LINE_WORDS;
}

/* In ascending order: no two threads wait for each other. */
void alloc_stream_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                       struct bit_changes *bits)
{
    for (uint32_t i = 0; i < bits->count; i++)
        if (begins_line(bits, i))
            lock_bits(pool, bits->words[i].index);
    for (uint32_t i = 0; i < bits->count; i++) {
        const struct bit_word *change = &bits->words[i];
        const uint64_t *word = pool_bitmap_word(pool, change->index * 64);
        uint64_t value = (pm_load64(word) | change->set) & ~change->clear;

        pm_store_nt(phase, word, &value, sizeof(value));
    }
}

void alloc_unlock_bits(struct minl2r_pool *pool, struct bit_changes *bits)
{
    for (uint32_t i = 0; i < bits->count; i++)
        if (begins_line(bits, i))
            unlock_bits(pool, bits->words[i].index);
    bits->count = 0;
}

/* Who holds the lock is the only one who stores to the word: no locked instruction. */
static void store_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                       const struct bit_word *change)
{
    const uint64_t *word = pool_bitmap_word(pool, change->index * 64);

    lock_bits(pool, change->index);
    uint64_t value = (pm_load64(word) | change->set) & ~change->clear;

    pm_store_piece(phase, word, &value, sizeof(value));
    unlock_bits(pool, change->index);
}

void alloc_gather_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                       struct bit_changes *bits, struct block_run run, bool allocated)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    while (run_next(&cursor, &piece)) {
        struct bit_word *at = &bits->words[piece.word % BIT_WORDS_MAX];

        if (at->index != piece.word) {
            if (at->set | at->clear)
                store_bits(pool, phase, at);
            *at = (struct bit_word){.index = piece.word};
        }
        *(allocated ? &at->set : &at->clear) |= piece.mask;
    }
}

void alloc_store_bits(struct minl2r_pool *pool, struct pm_phase *phase,
                      const struct bit_changes *bits)
{
    for (uint32_t i = 0; i < BIT_WORDS_MAX; i++)
        if (bits->words[i].set | bits->words[i].clear)
            store_bits(pool, phase, &bits->words[i]);
}

typedef void change_word_fn(struct pm_phase *phase, const uint64_t *word,
                            uint64_t bits);

static void clear_bits(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    pm_and64(phase, word, ~bits);
}

static void change_media(struct minl2r_pool *pool, struct pm_phase *phase,
                         struct block_run run, change_word_fn *change)
{
    struct run_cursor cursor = run_begin(pool, run);
    struct run_piece piece;

    while (run_next(&cursor, &piece)) {
        lock_bits(pool, piece.word);
        change(phase, media_word(pool, piece), piece.mask);
        unlock_bits(pool, piece.word);
    }
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
