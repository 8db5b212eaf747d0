/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that transactions write by their slots. */
#include "libminl2r/swaps.h"
#include "tests/unit/writeset_bed.h"

/* ---- Slots ----------------------------------------------------------------------- */

static void swap_changes_the_slot_and_frees_the_old_block(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t old = bed->slots[0];

    write_by_slot(bed, 0, 0, 2048);
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_not_equal(bed->slots[0], old);
    assert_error(minl2r_tx_free((bed->tx = begin(bed->pool)), old, 1), EINVAL,
                 "not all allocated");
    commit_and_compare(bed);
}

static void write_below_half_stays_in_its_block(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t old = bed->slots[0];

    write_by_slot(bed, 0, 1, 2047);
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(bed->slots[0], old);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

/* Direct writes count as well as those by the slot, and whichever comes first. */
static void half_is_counted_over_the_union_of_all_writes(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t old0 = bed->slots[0], old1 = bed->slots[1], old2 = bed->slots[2];

    write_bytes(bed, 0, 0, 1024);
    write_bytes(bed, 0, 2048, 1000);
    write_by_slot(bed, 0, 1024, 24); /* 2048 in all */
    write_by_slot(bed, 1, 0, 1500);
    write_by_slot(bed, 1, 500, 1500); /* 2000 in all */
    write_by_slot(bed, 2, 0, 100);
    write_bytes(bed, 2, 1000, 2000);
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_not_equal(bed->slots[0], old0);
    assert_int_equal(bed->slots[1], old1);
    assert_int_not_equal(bed->slots[2], old2);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

static void block_written_twice_whole_has_the_last_bytes(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 0, BLOCK);
    write_by_slot(bed, 0, 0, BLOCK);
    write_by_slot(bed, 0, 100, 50);
    write_bytes(bed, 0, 120, 3000);
    zero_bytes(bed, 0, 130, 7);
    expect_read(bed, 0);
    commit_and_compare(bed);
}

static void whole_block_after_parts_has_the_last_bytes(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 10, 20);
    write_by_slot(bed, 0, 500, 3000);
    write_by_slot(bed, 0, 0, BLOCK);
    expect_read(bed, 0);
    commit_and_compare(bed);
}

static void edit_of_a_block_written_whole_starts_from_the_new_bytes(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 0, BLOCK);
    uint8_t *copy = edit_bytes(bed, 0, 1000, 1000);

    change_copy(bed, copy, 0, 1000, 1000);
    expect_read(bed, 0);
    commit_and_compare(bed);
}

static void whole_block_written_over_an_edit_changes_the_copy(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint8_t *copy = edit_bytes(bed, 0, 1000, 1000);

    write_by_slot(bed, 0, 0, BLOCK);
    assert_memory_equal(copy, bed->want[0] + 1000, 1000);
    change_copy(bed, copy, 0, 1000, 1000);
    commit_and_compare(bed);
}

static void swapped_block_keeps_what_was_not_written(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_ALWAYS);
    write_by_slot(bed, 0, 4095, 1);
    write_by_slot(bed, 1, 0, 1);
    write_by_slot(bed, 2, 100, 1);
    write_by_slot(bed, 2, 200, 100);
    commit_and_compare(bed);
}

static void fresh_bytes_are_in_the_swapped_block(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 0, 3000);
    memset(bed->want[0] + 3000, 7, 1000);
    assert_ok(minl2r_tx_write_fresh(bed->tx, block_at(bed, 0) + 3000,
                                    bed->want[0] + 3000, 1000));
    commit_and_compare(bed);
}

static void stores_after_a_snapshot_are_in_the_swapped_block(void **state)
{
    struct bed *bed = *state;
    uint8_t *bytes;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 0, 3000);
    assert_ok(minl2r_tx_snapshot(bed->tx, block_at(bed, 0) + 3500, 8, &bytes));
    memset(bytes, 7, 8);
    memset(bed->want[0] + 3500, 7, 8);
    commit_and_compare(bed);
}

static void slot_written_directly_too_is_einval(void **state)
{
    struct bed *bed = *state;
    uint64_t word = 0;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 0, 10);
    assert_error(minl2r_tx_write(bed->tx, &bed->slots[0], &word, 8), EINVAL,
                 "written both by");
    assert_error(minl2r_tx_zero(bed->tx, (const uint8_t *)&bed->slots[0] + 7, 1),
                 EINVAL, "written both by");
    assert_error(minl2r_tx_edit(bed->tx, bed->slots, 64, &word), EINVAL,
                 "written both by");
    assert_ok(minl2r_tx_write(bed->tx, &bed->slots[BLOCKS], &word, 8));
    commit_and_compare(bed);
}

static void slot_written_directly_before_is_einval(void **state)
{
    struct bed *bed = *state;
    uint64_t word = bed->seed;

    make_bed(bed, MINL2R_POINTER_HALF);
    word = bed->slots[0];
    assert_ok(minl2r_tx_write(bed->tx, &bed->slots[0], &word, 8));
    assert_error(minl2r_tx_write_block(bed->tx, &bed->slots[0], 0, "x", 1), EINVAL,
                 "written both by");
    edit_bytes(bed, 1, 0, 8);
    commit_and_compare(bed);
}

static void slot_in_an_edit_is_einval(void **state)
{
    struct bed *bed = *state;
    void *copy;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_edit(bed->tx, &bed->slots[1], 8, &copy));
    assert_error(minl2r_tx_write_block(bed->tx, &bed->slots[1], 0, "x", 1), EINVAL,
                 "written both by");
    write_by_slot(bed, 0, 0, 1);
    commit_and_compare(bed);
}

static void two_slots_that_name_one_block_are_refused(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_store64(bed->pool, &bed->slots[BLOCKS], bed->slots[0]));
    write_by_slot(bed, 0, 0, 1);
    assert_error(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 0, "x", 1),
                 EUCLEAN, "name the same block");
    commit_and_compare(bed);
}

/* Whatever its size: large ones are streamed before the slot is looked at. */
static void expect_refused(struct bed *bed, const void *slot, int error,
                           const char *words)
{
    const uint32_t sizes[] = {1, 2048, 3000, BLOCK};

    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_error(minl2r_tx_write_block(bed->tx, slot, 0, bed->want[0], sizes[i]),
                     error, words);
}

static void slot_that_names_no_block_is_refused(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t unallocated = bed->mp.pool.geo.pool_size - BLOCK;
    const uint64_t garbage[] = {1,          bed->slots[0] + 8,
                                UINT64_MAX, unallocated,
                                PM_PAGE,    bed->mp.pool.geo.zones_offset};

    for (size_t i = 0; i < COUNT(garbage); i++) {
        assert_ok(minl2r_store64(bed->pool, &bed->slots[BLOCKS], garbage[i]));
        expect_refused(bed, &bed->slots[BLOCKS], EUCLEAN, "names no allocated block");
    }
    commit_and_compare(bed);
}

static uint64_t fences(const struct bed *bed)
{
    struct minl2r_stats stats;

    minl2r_stats_get(bed->pool, &stats);
    return stats.fences;
}

/* It was streamed to, though nothing is committed, or because nothing is. */
static void block_for_a_refused_slot_is_given_back_behind_a_fence(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_store64(bed->pool, &bed->slots[BLOCKS], 1));
    for (int aborts = 0; aborts < 2; aborts++) {
        uint64_t before = fences(bed);

        expect_refused(bed, &bed->slots[BLOCKS], EUCLEAN, "names no allocated block");
        assert_int_equal(fences(bed), before);
        assert_ok(aborts ? minl2r_tx_abort(bed->tx) : minl2r_tx_commit(bed->tx));
        assert_int_equal(fences(bed), before + 1);
        compare(bed);
        bed->tx = begin(bed->pool);
    }
    commit_and_compare(bed);
}

/* Whatever is written of it, the slot, too. */
static void block_that_holds_the_slot_that_names_it_stays(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t old = bed->slots[0];
    const uint64_t *slot = (const uint64_t *)block_at(bed, 0);

    assert_ok(minl2r_store64(bed->pool, slot, old));
    memcpy(bed->want[0], new_bytes(bed, BLOCK), BLOCK);
    assert_ok(minl2r_tx_write_block(bed->tx, slot, 0, bed->want[0], BLOCK));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(bed->slots[0], old);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

/* They are reserved, as is what a transaction allocates. */
static void slot_that_names_a_block_kept_for_swaps_is_refused(void **state)
{
    struct bed *bed = *state;
    uint64_t kept = 0, own;
    uint8_t *bytes;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_by_slot(bed, 0, 0, BLOCK);
    next_tx(bed);
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &own, &bytes));
    for (uint64_t at = bed->mp.pool.geo.zones_offset; at < bed->mp.pool.geo.pool_size;
         at += BLOCK) {
        if (at == own || !alloc_is_reserved(bed->pool, at) ||
            !is_blocks(&bed->mp.pool.geo, at, 1))
            continue;
        kept++;
        assert_ok(minl2r_store64(bed->pool, &bed->slots[BLOCKS], at));
        expect_refused(bed, &bed->slots[BLOCKS], EUCLEAN, "names no allocated block");
    }
    assert_true(kept > 0);
    assert_ok(minl2r_tx_free(bed->tx, own, 1));
    commit_and_compare(bed);
}

static void misplaced_slots_and_offsets_are_einval(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    const void *misaligned = (const uint8_t *)bed->slots + 4;

    assert_error(minl2r_tx_write_block(bed->tx, misaligned, 0, "x", 1), EINVAL,
                 "no slot");
    assert_error(minl2r_tx_write_block(bed->tx, NULL, 0, "x", 1), EINVAL,
                 "address NULL is not in the pool");
    const void *unallocated = bed->mp.memory + POOL_SIZE - 8;

    expect_refused(bed, unallocated, EINVAL, "not allocated");
    assert_error(minl2r_tx_write_block(bed->tx, bed->slots, BLOCK, "x", 1), EINVAL,
                 "past the end");
    assert_error(minl2r_tx_write_block(bed->tx, bed->slots, UINT32_MAX, "xy", 2),
                 EINVAL, "past the end");
    commit_and_compare(bed);
}

/* The swap frees the old block: once is enough. */
static void block_that_is_replaced_cannot_be_freed(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t old = bed->slots[0];

    write_by_slot(bed, 0, 0, 3000);
    assert_error(minl2r_tx_free(bed->tx, old, 1), EINVAL, "being swapped");
    commit_and_compare(bed);
}

static void block_that_is_freed_is_not_replaced(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t old = bed->slots[0];

    assert_ok(minl2r_tx_free(bed->tx, old, 1));
    write_by_slot(bed, 0, 0, 3000);
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(bed->slots[0], old);
    assert_int_equal(free_blocks(bed->pool), bed->free_blocks + 1);
    memory_pool_close(&bed->mp);
    memory_pool_check(&bed->mp);
    memory_pool_open(&bed->mp);
    assert_int_equal(free_blocks(bed->pool), bed->free_blocks + 1);
    memory_pool_remove(&bed->mp);
}

/* ---- Holes ----------------------------------------------------------------------- */

static const uint8_t *hole_content(const struct bed *bed, int hole)
{
    return minl2r_at(bed->pool, bed->slots[BLOCKS + hole]);
}

static void hole_is_filled_with_zeros_around_the_bytes(void **state)
{
    struct bed *bed = *state;
    uint8_t want[BLOCK] = {0};

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->free_blocks--;
    memset(want + 1000, 'a', 5);
    memset(want + 3000, 'b', 5);
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 1000, "aaaaa", 5));
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 3000, "bbbbb", 5));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(hole_content(bed, 0), want, BLOCK);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

static void hole_filled_whole_and_then_in_part_has_both(void **state)
{
    struct bed *bed = *state;
    uint8_t want[BLOCK];

    make_bed(bed, MINL2R_POINTER_NEVER);
    bed->free_blocks--;
    fill_pattern(want, BLOCK, 5);
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 0, want, BLOCK));
    memset(want + 5, 9, 10);
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 5, want + 5, 10));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(hole_content(bed, 0), want, BLOCK);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

static void aborted_hole_stays_a_hole(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 0, "hello", 5));
    write_by_slot(bed, 0, 0, 0);
    assert_ok(minl2r_tx_abort(bed->tx));
    assert_int_equal(bed->slots[BLOCKS], 0);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

/* A tree that grows: new blocks of slots, slots in them, blocks behind those. */
static void slots_in_a_block_of_the_same_transaction_are_filled(void **state)
{
    struct bed *bed = *state;
    uint64_t offset, *slots;
    uint8_t want[BLOCK];

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->free_blocks -= 3;
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &offset, &slots));
    memset(slots, 0, BLOCK);
    fill_pattern(want, BLOCK, 5);
    assert_ok(minl2r_tx_write_block(bed->tx, &slots[3], 0, want, BLOCK));
    assert_ok(minl2r_tx_write_block(bed->tx, &slots[511], 4000, "end", 3));
    assert_ok(minl2r_tx_write(bed->tx, &bed->slots[BLOCKS], &offset, 8));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(minl2r_at(bed->pool, slots[3]), want, BLOCK);
    assert_memory_equal((const uint8_t *)minl2r_at(bed->pool, slots[511]) + 4000, "end",
                        3);
    assert_int_equal(slots[4], 0);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

static void slot_that_names_a_block_of_the_same_transaction_stores_to_it(void **state)
{
    struct bed *bed = *state;
    uint64_t offset, *slots, data;

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->free_blocks -= 2;
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &offset, &slots));
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &data, NULL));
    assert_ok(minl2r_tx_zero(bed->tx, minl2r_at(bed->pool, data), BLOCK));
    memset(slots, 0, BLOCK);
    slots[7] = data;
    assert_ok(minl2r_tx_write_block(bed->tx, &slots[7], 30, "here", 4));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(slots[7], data);
    assert_memory_equal((const uint8_t *)minl2r_at(bed->pool, data) + 30, "here", 4);
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

/* As when a tree gets a new root: the old one's pointers move to a new block. */
static void slot_moved_to_a_block_of_the_same_transaction_is_swapped(void **state)
{
    struct bed *bed = *state;
    uint64_t offset, *slots;
    const uint64_t old = 0;

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->free_blocks--;
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &offset, &slots));
    memset(slots, 0, BLOCK);
    slots[5] = bed->slots[0];
    memcpy(bed->want[0], new_bytes(bed, 3000), 3000);
    assert_ok(minl2r_tx_write_block(bed->tx, &slots[5], 0, bed->want[0], 3000));
    assert_ok(minl2r_tx_write(bed->tx, &bed->slots[0], &old, 8));
    assert_ok(minl2r_tx_write(bed->tx, &bed->slots[BLOCKS], &offset, 8));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_ok(minl2r_store64(bed->pool, &bed->slots[0], slots[5]));
    bed->tx = begin(bed->pool);
    commit_and_compare(bed);
}

/* ---- Blocks that hold slots ------------------------------------------------------ */

/* The block of slots [0], named by a slot in the root; its words are slots, too. */
static const uint64_t *make_holder(struct bed *bed)
{
    uint64_t words[BLOCK / 8] = {0};

    memcpy(words, bed->want[0], BLOCK);
    words[2] = bed->slots[1];
    assert_ok(minl2r_tx_write(bed->tx, block_at(bed, 0), words, BLOCK));
    memcpy(bed->want[0], words, BLOCK);
    next_tx(bed);
    return (const uint64_t *)(const void *)block_at(bed, 0) + 2;
}

static void write_by_holder(struct bed *bed, const uint64_t *slot, uint32_t at,
                            uint32_t size)
{
    const uint8_t *bytes = new_bytes(bed, size);

    memcpy(bed->want[1] + at, bytes, size);
    assert_ok(minl2r_tx_write_block(bed->tx, slot, at, bytes, size));
}

/* In the end block 1 is found by the slot in block 0, which the root forgets. */
static void compare_holder(struct bed *bed, uint64_t old)
{
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(bed->slots[0], old);
    uint64_t value = ((const uint64_t *)(const void *)block_at(bed, 0))[2];

    memcpy(bed->want[0] + 16, &value, 8);
    assert_ok(minl2r_store64(bed->pool, &bed->slots[1], value));
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

static void block_that_holds_a_written_slot_stays_in_place(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    const uint64_t *slot = make_holder(bed);
    uint64_t old = bed->slots[0];

    write_by_holder(bed, slot, 0, BLOCK);
    write_by_slot(bed, 0, 100, 3000);
    compare_holder(bed, old);
}

static void block_is_kept_in_place_by_a_slot_written_later(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    const uint64_t *slot = make_holder(bed);
    uint64_t old = bed->slots[0];

    write_by_slot(bed, 0, 100, 3000);
    write_by_holder(bed, slot, 0, BLOCK);
    write_by_slot(bed, 0, 50, 3000);
    compare_holder(bed, old);
}

static void block_written_whole_refuses_a_slot_in_it(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    const uint64_t *slot = make_holder(bed);

    write_by_slot(bed, 0, 0, BLOCK);
    assert_error(minl2r_tx_write_block(bed->tx, slot, 0, "x", 1), EINVAL,
                 "written both by");
    commit_and_compare(bed);
}

/*
 * The edit's bytes had no place in the log as long as the block was to be swapped.
 * Enough blocks at once, so that nothing else's room hides it.
 */
static void edit_of_a_block_kept_in_place_later_is_logged(void **state)
{
    struct bed *bed = *state;
    uint8_t *copies[BLOCKS];
    const uint64_t hole = 0;

    make_bed(bed, MINL2R_POINTER_HALF);
    for (int i = 0; i < BLOCKS; i++) {
        assert_ok(minl2r_tx_write(bed->tx, block_at(bed, i), &hole, 8));
        memcpy(bed->want[i], &hole, 8);
    }
    next_tx(bed);
    bed->free_blocks -= BLOCKS;
    for (int i = 0; i < BLOCKS; i++) {
        write_by_slot(bed, i, 8, 8);
        copies[i] = edit_bytes(bed, i, 16, BLOCK - 16);
    }
    for (int i = 0; i < BLOCKS; i++)
        assert_ok(minl2r_tx_write_block(
            bed->tx, (const uint64_t *)(const void *)block_at(bed, i), 0, "x", 1));
    for (int i = 0; i < BLOCKS; i++) {
        memcpy(copies[i], new_bytes(bed, BLOCK - 16), BLOCK - 16);
        memcpy(bed->want[i] + 16, copies[i], BLOCK - 16);
    }
    assert_ok(minl2r_tx_commit(bed->tx));
    for (int i = 0; i < BLOCKS; i++)
        memcpy(bed->want[i], block_at(bed, i), 8);
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

/* ---- More whole blocks than are loose at once (swaps.h) -------------------------- */

#define MANY (LOOSE_MAX + 44)

static const uint64_t *many_slots(const struct bed *bed)
{
    return (const uint64_t *)(const void *)block_at(bed, 0);
}

static void write_many(struct bed *bed, uint64_t seed)
{
    uint8_t bytes[BLOCK];

    for (uint64_t i = 0; i < MANY; i++) {
        fill_pattern(bytes, BLOCK, seed + i);
        assert_ok(minl2r_tx_write_block(bed->tx, &many_slots(bed)[i], 0, bytes, BLOCK));
    }
}

static void expect_many(const struct bed *bed, uint64_t seed)
{
    uint8_t bytes[BLOCK];

    for (uint64_t i = 0; i < MANY; i++) {
        fill_pattern(bytes, BLOCK, seed + i);
        assert_memory_equal(minl2r_at(bed->pool, many_slots(bed)[i]), bytes, BLOCK);
    }
}

/* Of holes, then of blocks; each with bytes beside them, before and after. */
static void make_many(struct bed *bed)
{
    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_zero(bed->tx, block_at(bed, 0), BLOCK));
    memset(bed->want[0], 0, BLOCK);
    next_tx(bed);
    write_bytes(bed, 1, 0, 8);
    write_many(bed, 1000);
    write_bytes(bed, 1, 64, 8);
    assert_ok(minl2r_tx_commit(bed->tx));
    expect_many(bed, 1000);
    bed->free_blocks -= MANY;
    memcpy(bed->want[0], block_at(bed, 0), BLOCK);
    compare(bed);
    bed->tx = begin(bed->pool);
}

static void many_whole_blocks_are_swapped_at_once(void **state)
{
    struct bed *bed = *state;

    make_many(bed);
    write_many(bed, 2000);
    write_bytes(bed, 1, 128, 8);
    assert_ok(minl2r_tx_commit(bed->tx));
    expect_many(bed, 2000);
    memcpy(bed->want[0], block_at(bed, 0), BLOCK);
    compare_after_reopen(bed);
    expect_many(bed, 2000);
    memory_pool_remove(&bed->mp);
}

static void blocks_among_many_are_read_and_written_again(void **state)
{
    struct bed *bed = *state;
    uint8_t want[BLOCK], bytes[BLOCK];

    make_many(bed);
    write_many(bed, 2000);
    for (uint64_t i = 0; i < MANY; i += MANY - 1) { /* the first, the last */
        const uint8_t *old = minl2r_at(bed->pool, many_slots(bed)[i]);

        fill_pattern(want, BLOCK, 2000 + i);
        assert_ok(minl2r_tx_read(bed->tx, bytes, old, BLOCK));
        assert_memory_equal(bytes, want, BLOCK);
        memset(want + 100, 7, 8);
        assert_ok(minl2r_tx_write(bed->tx, old + 100, want + 100, 8));
        assert_ok(minl2r_tx_read(bed->tx, bytes, old, BLOCK));
        assert_memory_equal(bytes, want, BLOCK);
    }
    assert_ok(minl2r_tx_commit(bed->tx));
    for (uint64_t i = 0; i < MANY; i++) {
        fill_pattern(want, BLOCK, 2000 + i);
        if (i % (MANY - 1) == 0)
            memset(want + 100, 7, 8);
        assert_memory_equal(minl2r_at(bed->pool, many_slots(bed)[i]), want, BLOCK);
    }
    memcpy(bed->want[0], block_at(bed, 0), BLOCK);
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

static void many_whole_blocks_are_given_up(void **state)
{
    struct bed *bed = *state;

    make_many(bed);
    write_many(bed, 2000);
    assert_ok(minl2r_tx_abort(bed->tx));
    expect_many(bed, 1000);
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(swap_changes_the_slot_and_frees_the_old_block),
        test(write_below_half_stays_in_its_block),
        test(half_is_counted_over_the_union_of_all_writes),
        test(block_written_twice_whole_has_the_last_bytes),
        test(whole_block_after_parts_has_the_last_bytes),
        test(edit_of_a_block_written_whole_starts_from_the_new_bytes),
        test(whole_block_written_over_an_edit_changes_the_copy),
        test(swapped_block_keeps_what_was_not_written),
        test(fresh_bytes_are_in_the_swapped_block),
        test(stores_after_a_snapshot_are_in_the_swapped_block),
        test(slot_written_directly_too_is_einval),
        test(slot_written_directly_before_is_einval),
        test(slot_in_an_edit_is_einval),
        test(two_slots_that_name_one_block_are_refused),
        test(slot_that_names_no_block_is_refused),
        test(block_for_a_refused_slot_is_given_back_behind_a_fence),
        test(block_that_holds_the_slot_that_names_it_stays),
        test(slot_that_names_a_block_kept_for_swaps_is_refused),
        test(misplaced_slots_and_offsets_are_einval),
        test(block_that_is_replaced_cannot_be_freed),
        test(block_that_is_freed_is_not_replaced),
        test(hole_is_filled_with_zeros_around_the_bytes),
        test(hole_filled_whole_and_then_in_part_has_both),
        test(aborted_hole_stays_a_hole),
        test(slots_in_a_block_of_the_same_transaction_are_filled),
        test(slot_that_names_a_block_of_the_same_transaction_stores_to_it),
        test(slot_moved_to_a_block_of_the_same_transaction_is_swapped),
        test(block_that_holds_a_written_slot_stays_in_place),
        test(block_is_kept_in_place_by_a_slot_written_later),
        test(block_written_whole_refuses_a_slot_in_it),
        test(edit_of_a_block_kept_in_place_later_is_logged),
        test(many_whole_blocks_are_swapped_at_once),
        test(blocks_among_many_are_read_and_written_again),
        test(many_whole_blocks_are_given_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
