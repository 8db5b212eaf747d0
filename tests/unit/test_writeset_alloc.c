/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that transactions allocate and free, and what they reserve. */
#include "tests/unit/writeset_bed.h"

/* ---- Allocating and freeing ------------------------------------------------------ */

static void allocated_memory_is_written_and_read_like_any_other(void **state)
{
    struct bed *bed = *state;
    uint64_t offset;
    uint8_t *bytes, read[2 * BLOCK], want[2 * BLOCK];
    void *copy;

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->free_blocks -= 2;
    fill_pattern(want, sizeof(want), 3);
    assert_ok(minl2r_tx_alloc(bed->tx, 2, &offset, &bytes));
    memcpy(bytes, want, sizeof(want));
    memset(want + 5, 1, 10);
    assert_ok(minl2r_tx_write(bed->tx, bytes + 5, want + 5, 10));
    memset(want + 4090, 0, 10);
    assert_ok(minl2r_tx_zero(bed->tx, bytes + 4090, 10));
    assert_ok(minl2r_tx_edit(bed->tx, bytes + 100, 16, &copy));
    memset(copy, 2, 16);
    memset(want + 100, 2, 16);
    assert_ok(minl2r_tx_read(bed->tx, read, bytes, sizeof(read)));
    assert_memory_equal(read, want, sizeof(want));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(bytes, want, sizeof(want));
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

static void freed_blocks_keep_their_content_until_commit(void **state)
{
    struct bed *bed = *state;
    uint64_t offset;

    make_bed(bed, MINL2R_POINTER_HALF);
    offset = make_blocks(bed->pool, 3, 7);
    const uint8_t *bytes = minl2r_at(bed->pool, offset);
    uint8_t want[3 * BLOCK];

    fill_pattern(want, sizeof(want), 7);
    assert_ok(minl2r_tx_free(bed->tx, offset + BLOCK, 1));
    assert_ok(minl2r_tx_free(bed->tx, offset + 2 * BLOCK, 1));
    assert_ok(minl2r_tx_free(bed->tx, offset, 1));
    assert_memory_equal(bytes, want, sizeof(want));
    commit_and_compare(bed);
}

static void block_freed_twice_is_einval(void **state)
{
    struct bed *bed = *state;
    uint64_t offset;

    make_bed(bed, MINL2R_POINTER_HALF);
    offset = make_blocks(bed->pool, 2, 7);
    assert_ok(minl2r_tx_free(bed->tx, offset, 2));
    assert_error(minl2r_tx_free(bed->tx, offset + BLOCK, 1), EINVAL, "freed twice");
    commit_and_compare(bed);
}

static void own_blocks_freed_in_any_part_are_free_after_commit(void **state)
{
    struct bed *bed = *state;
    uint64_t offset;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_alloc(bed->tx, 10, &offset, NULL));
    assert_ok(minl2r_tx_free(bed->tx, offset + 3 * BLOCK, 2));
    assert_ok(minl2r_tx_free(bed->tx, offset, 1));
    assert_error(minl2r_tx_free(bed->tx, offset + 2 * BLOCK, 2), EINVAL, "");
    assert_ok(minl2r_tx_free(bed->tx, offset + BLOCK, 2));
    assert_ok(minl2r_tx_free(bed->tx, offset + 5 * BLOCK, 5));
    commit_and_compare(bed);
}

/* Neighbours that were allocated one by one, in whatever order, are freed at once. */
static void own_neighbours_are_freed_in_one_call(void **state)
{
    struct bed *bed = *state;
    uint64_t offset, offsets[6];

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_alloc(bed->tx, 6, &offset, NULL));
    assert_ok(minl2r_tx_abort(bed->tx));
    bed->tx = begin(bed->pool);
    for (int i = 0; i < 6; i++)
        assert_ok(minl2r_tx_alloc(bed->tx, 1, &offsets[i], NULL));
    for (int i = 1; i < 6; i++)
        assert_int_equal(offsets[i], offsets[0] + (uint64_t)i * BLOCK);
    assert_ok(minl2r_tx_free(bed->tx, offsets[0], 6));
    commit_and_compare(bed);
}

static void impossible_allocations_and_frees_are_einval(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_error(minl2r_tx_alloc(bed->tx, 0, NULL, NULL), EINVAL, "cannot allocate");
    assert_error(minl2r_tx_alloc(bed->tx, 8 * BLOCK, NULL, NULL), EINVAL,
                 "cannot allocate");
    assert_error(minl2r_tx_free(bed->tx, 0, 1), EINVAL, "not in the pool");
    assert_error(minl2r_tx_free(bed->tx, bed->slots[0] + 8, 1), EINVAL,
                 "not in the pool");
    assert_error(minl2r_tx_free(bed->tx, bed->mp.pool.geo.zones_offset, 1), EINVAL,
                 "not in the pool");
    assert_error(minl2r_tx_free(bed->tx, bed->slots[0], UINT64_MAX), EINVAL,
                 "not in the pool");
    assert_error(minl2r_tx_free(bed->tx, POOL_SIZE - BLOCK, 1), EINVAL,
                 "not all allocated");
    commit_and_compare(bed);
}

/* ---- Reservations come back ------------------------------------------------------ */

static void large_edit_with_one_changed_word_gives_back_its_log(void **state)
{
    struct bed *bed = *state;
    uint64_t *words;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t offset = make_blocks(bed->pool, 64, 9);

    bed->free_blocks -= 64;
    assert_ok(minl2r_tx_edit(bed->tx, minl2r_at(bed->pool, offset), (size_t)64 * BLOCK,
                             &words));
    words[100] = 1;
    commit_and_compare(bed);
}

static void empty_commit_after_a_failed_snapshot_gives_back_its_log(void **state)
{
    struct bed *bed = *state;
    struct minl2r_tx *holders[2];

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t offset = make_blocks(bed->pool, 64, 9);

    bed->free_blocks -= 64;
    for (int i = 0; i < 2; i++) {
        holders[i] = begin(bed->pool);
        assert_ok(minl2r_tx_snapshot(holders[i], block_at(bed, i), 8, NULL));
    }
    assert_error(minl2r_tx_snapshot(bed->tx, minl2r_at(bed->pool, offset),
                                    (size_t)64 * BLOCK, NULL),
                 EBUSY, "no lane is free");
    assert_ok(minl2r_tx_commit(bed->tx));
    for (int i = 0; i < 2; i++)
        assert_ok(minl2r_tx_abort(holders[i]));
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

/* ---- Quarantine ------------------------------------------------------------------ */

#define LONG 64 /* a quarantine that the next slot commit ends */

static void write_by_slots(struct bed *bed, struct minl2r_tx *tx, int from, int to)
{
    uint8_t bytes[BLOCK];

    for (int i = from; i < to; i++) {
        fill_pattern(bytes, BLOCK, ++bed->seed);
        assert_ok(minl2r_tx_write_block(tx, &bed->slots[i], 0, bytes, BLOCK));
    }
}

static void swap_by_slots(struct bed *bed, int from, int to)
{
    struct minl2r_tx *tx = begin(bed->pool);

    write_by_slots(bed, tx, from, to);
    assert_ok(minl2r_tx_commit(tx));
}

/* Commits bytes that are there already: there is nothing to log. */
static void write_the_same(struct bed *bed)
{
    struct minl2r_tx *tx = begin(bed->pool);
    uint64_t words[2];

    memcpy(words, bed->slots, sizeof(words));
    assert_ok(minl2r_tx_write(tx, bed->slots, words, sizeof(words)));
    assert_ok(minl2r_tx_commit(tx));
}

/*
 * The last block in quarantine was freed by the generation that its lane has left live.
 * Recovery finishes that one: whoever uses the block meanwhile, in another lane, must
 * not lose it.
 */
static void commit_that_logs_nothing_keeps_what_its_lane_freed(void **state)
{
    struct bed *bed = *state;
    const int first = BLOCKS, last = first + LONG;

    make_bed(bed, 0);
    assert_ok(minl2r_tx_abort(bed->tx));
    bed->pool->prove = true;
    swap_by_slots(bed, first, last + 1); /* holes */
    for (int i = first; i < last; i++)
        swap_by_slots(bed, i, i + 1);
    write_the_same(bed);
    write_by_slots(bed, begin(bed->pool), last, last + 1); /* holds that lane */
    swap_by_slots(bed, first, last - 1);                   /* in another one */
    memory_pool_kill(&bed->mp);
    memory_pool_open(&bed->mp);
    find_root(bed);
    for (int i = 0; i <= last; i++)
        assert_true(
            alloc_is_allocated(bed->pool, (struct block_run){bed->slots[i], 1}));
    memory_pool_remove(&bed->mp);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(allocated_memory_is_written_and_read_like_any_other),
        test(freed_blocks_keep_their_content_until_commit),
        test(block_freed_twice_is_einval),
        test(own_blocks_freed_in_any_part_are_free_after_commit),
        test(own_neighbours_are_freed_in_one_call),
        test(impossible_allocations_and_frees_are_einval),
        test(large_edit_with_one_changed_word_gives_back_its_log),
        test(empty_commit_after_a_failed_snapshot_gives_back_its_log),
        test(commit_that_logs_nothing_keeps_what_its_lane_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
