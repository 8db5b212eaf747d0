/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * alloc_internal.h - for alloc.c, who has which block, in DRAM; and alloc_bits.c, the
 * bitmaps on media.
 */
#ifndef MINL2R_ALLOC_INTERNAL_H
#define MINL2R_ALLOC_INTERNAL_H

#include "libminl2r/alloc.h"
#include "libminl2r/spin.h"

#define LINE_WORDS (PM_LINE / 8)

/* Of a line of a bitmap on media. */
struct bit_lock {
    struct spin spin;
    uint32_t user;      /* the thread that had it last; 0: none */
    bool changed_hands; /* then; read without the lock */
} __attribute__((aligned(PM_LINE)));

/* What changes is apart. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct alloc {
    uint64_t word_count; /* of busy and leaving */
    uint64_t *busy;
    uint64_t *leaving;
    uint64_t *full; /* bit set: that word of busy has no 0 */
    struct stash *stashes;
    uint32_t stash_count;       /* a power of two */
    uint64_t *rings;            /* of all stashes */
    struct bit_lock *bit_locks; /* [word_count / LINE_WORDS] */

    _Alignas(128) struct spin lock; /* of bitmaps and hints, and of what follows */
    uint64_t free_blocks;           /* zeros in busy; read without the lock */
};

static inline struct bit_lock *bit_lock(const struct alloc *alloc, uint64_t word)
{
    return &alloc->bit_locks[word / LINE_WORDS];
}

/* ---- Bits of a run, word by word ---- */

struct run_piece {
    uint64_t word; /* index into busy and leaving; 64 times it: a block index */
    uint64_t mask;
};

struct run_cursor {
    uint64_t index; /* of the next block */
    uint64_t end;
};

static inline struct run_cursor run_begin(const struct minl2r_pool *pool,
                                          struct block_run run)
{
    uint64_t index = block_index(&pool->geo, run.offset);

    return (struct run_cursor){index, index + run.count};
}

static inline uint64_t mask_of(uint64_t first, uint64_t count)
{
    return (count == 64 ? UINT64_MAX : ((uint64_t)1 << count) - 1) << first;
}

static inline bool run_next(struct run_cursor *cursor, struct run_piece *piece)
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

static inline const uint64_t *media_word(const struct minl2r_pool *pool,
                                         struct run_piece piece)
{
    return pool_bitmap_word(pool, piece.word * 64);
}

#endif
