/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * writeset_bed.h - what transactions do to content: each test says what it writes
 * twice, to the pool and to plain arrays, and compares after the commit and after
 * opening the pool again.
 */
#ifndef WRITESET_BED_H
#define WRITESET_BED_H

#include "tests/unit/memory_pool.h"
#include "tests/unit/transact.h"

#include <errno.h>

#define BLOCK ((size_t)4096)
#define BLOCKS 8
#define POOL_SIZE ((size_t)4 << 20)

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

struct bed {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;
    const uint64_t *slots;       /* [BLOCKS] of the root object */
    uint8_t want[BLOCKS][BLOCK]; /* content of what they name */
    uint64_t seed;               /* of the bytes written last */
    uint64_t free_blocks;        /* without a transaction; 0: may change */
};

/* ---- Setting up and comparing ---------------------------------------------------- */

static inline void find_root(struct bed *bed)
{
    bed->slots = minl2r_root(bed->pool, BLOCK);
    assert_non_null(bed->slots);
}

static inline void fill_slots(struct bed *bed)
{
    uint64_t slots[BLOCKS];

    bed->tx = begin(bed->pool);
    for (uint64_t i = 0; i < BLOCKS; i++) {
        uint8_t *bytes;

        fill_pattern(bed->want[i], BLOCK, ++bed->seed);
        assert_ok(minl2r_tx_alloc(bed->tx, 1, &slots[i], &bytes));
        memcpy(bytes, bed->want[i], BLOCK);
    }
    assert_ok(minl2r_tx_write(bed->tx, bed->slots, slots, sizeof(slots)));
    assert_ok(minl2r_tx_commit(bed->tx));
}

static inline void make_bed(struct bed *bed, uint32_t pointer_threshold)
{
    struct minl2r_options options = {.lanes = 2,
                                     .pointer_threshold = pointer_threshold};

    memory_pool_make(&bed->mp, POOL_SIZE, &options);
    bed->pool = &bed->mp.pool;
    find_root(bed);
    fill_slots(bed);
    bed->free_blocks = free_blocks(bed->pool);
    bed->tx = begin(bed->pool);
}

static inline int setup(void **state)
{
    *state = calloc(1, sizeof(struct bed));
    return *state ? 0 : -1;
}

/* What a failed test left is not cleared up: the process ends soon. */
static inline int teardown(void **state)
{
    free(*state);
    return 0;
}

static inline const uint8_t *block_at(const struct bed *bed, int i)
{
    return minl2r_at(bed->pool, bed->slots[i]);
}

static inline void compare(const struct bed *bed)
{
    for (int i = 0; i < BLOCKS; i++)
        assert_memory_equal(block_at(bed, i), bed->want[i], BLOCK);
    if (bed->free_blocks)
        assert_int_equal(free_blocks(bed->pool), bed->free_blocks);
}

static inline void compare_after_reopen(struct bed *bed)
{
    compare(bed);
    memory_pool_close(&bed->mp);
    memory_pool_check(&bed->mp);
    memory_pool_open(&bed->mp);
    find_root(bed);
    compare(bed);
}

static inline void commit_and_compare(struct bed *bed)
{
    assert_ok(minl2r_tx_commit(bed->tx));
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

static inline void next_tx(struct bed *bed)
{
    assert_ok(minl2r_tx_commit(bed->tx));
    compare(bed);
    bed->tx = begin(bed->pool);
}

/* ---- Operations, done to both ---------------------------------------------------- */

static inline const uint8_t *new_bytes(struct bed *bed, size_t size)
{
    static uint8_t bytes[BLOCKS * BLOCK];

    fill_pattern(bytes, size, ++bed->seed);
    return bytes;
}

static inline void write_bytes(struct bed *bed, int i, size_t at, size_t size)
{
    const uint8_t *bytes = new_bytes(bed, size);

    memcpy(bed->want[i] + at, bytes, size);
    assert_ok(minl2r_tx_write(bed->tx, block_at(bed, i) + at, bytes, size));
}

static inline void zero_bytes(struct bed *bed, int i, size_t at, size_t size)
{
    memset(bed->want[i] + at, 0, size);
    assert_ok(minl2r_tx_zero(bed->tx, block_at(bed, i) + at, size));
}

static inline void write_by_slot(struct bed *bed, int i, uint32_t at, uint32_t size)
{
    const uint8_t *bytes = new_bytes(bed, size);

    memcpy(bed->want[i] + at, bytes, size);
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[i], at, bytes, size));
}

static inline uint8_t *edit_bytes(struct bed *bed, int i, size_t at, size_t size)
{
    uint8_t *copy = NULL;

    assert_ok(minl2r_tx_edit(bed->tx, block_at(bed, i) + at, size, &copy));
    assert_memory_equal(copy, bed->want[i] + at, size);
    return copy;
}

/* Changes every fifth word of a working copy: as many separate changes as there can be.
 */
static inline void change_copy(struct bed *bed, uint8_t *copy, int i, size_t at,
                               size_t size)
{
    for (size_t word = 0; word + 8 <= size; word += 40) {
        memset(copy + word, (int)++bed->seed, 8);
        memcpy(bed->want[i] + at + word, copy + word, 8);
    }
}

static inline void expect_read(struct bed *bed, int i)
{
    uint8_t bytes[BLOCK];

    assert_ok(minl2r_tx_read(bed->tx, bytes, block_at(bed, i), BLOCK));
    assert_memory_equal(bytes, bed->want[i], BLOCK);
}

#endif
