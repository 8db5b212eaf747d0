/* SPDX-License-Identifier: BSD-3-Clause */
/* transact.h - short forms of what most tests of transactions do. */
#ifndef TRANSACT_H
#define TRANSACT_H

#include "tests/unit/fixture.h"

static inline struct minl2r_tx *begin(struct minl2r_pool *pool)
{
    struct minl2r_tx *tx;

    assert_ok(minl2r_tx_begin(pool, &tx));
    return tx;
}

static inline uint64_t free_blocks(struct minl2r_pool *pool)
{
    struct minl2r_info info;

    assert_ok(minl2r_pool_info(pool, &info));
    return info.blocks_free;
}

static inline struct minl2r_stats stats_of(struct minl2r_pool *pool)
{
    struct minl2r_stats stats;

    assert_ok(minl2r_stats_get(pool, &stats));
    return stats;
}

/* The bytes of a pattern: no two positions near each other have the same word. */
static inline void fill_pattern(void *bytes, size_t size, uint64_t seed)
{
    uint8_t *to = bytes;

    for (size_t i = 0; i < size; i++) {
        uint64_t word =
            (i / 8 + 1) * 0x9e3779b97f4a7c15ull ^ seed * 0xff51afd7ed558ccdull;

        to[i] = (uint8_t)(word >> (i % 8) * 8);
    }
}

/* Allocates `blocks` with a pattern in them, in a transaction. */
static inline uint64_t make_blocks(struct minl2r_pool *pool, uint64_t blocks,
                                   uint64_t seed)
{
    struct minl2r_tx *tx = begin(pool);
    struct minl2r_info info;
    uint64_t offset;
    uint8_t *bytes;

    assert_ok(minl2r_pool_info(pool, &info));
    assert_ok(minl2r_tx_alloc(tx, blocks, &offset, &bytes));
    fill_pattern(bytes, blocks * info.block_size, seed);
    assert_ok(minl2r_tx_commit(tx));
    return offset;
}

#endif
