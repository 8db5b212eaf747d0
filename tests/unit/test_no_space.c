/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools with any small number of free blocks, down to none (I8): calls work or answer
 * -ENOSPC and change nothing, commit always works, and what is there can be overwritten
 * and freed.
 */
#include "tests/unit/subject_bed.h"
#include "tests/unit/transact.h"

#include <errno.h>

#include "libminl2r/thread.h"

#define BLOCK SUBJECT_BLOCK

/* ---- Every number of free blocks ------------------------------------------------- */

static int setup(void **state)
{
    bed_make(state,
             &(struct minl2r_options){.lanes = 2, .log_size = 4096, .spare_blocks = 2});
    return 0;
}

static int teardown(void **state)
{
    bed_remove(*state);
    return 0;
}

/* Takes blocks away, until the pool is closed, so that `count` are left. */
static void leave_free(struct bed *bed, uint64_t count)
{
    uint64_t offset;

    while (free_blocks(&bed->mp.pool) > count) {
        assert_ok(alloc_reserve(&bed->mp.pool, 1, 0, &offset));
        bed->subject.blocks_free--;
    }
}

/* Makes all calls; number `last` is the last one if it fails. Answers how many failed.
 */
static int run_calls(struct subject *subject, int last)
{
    int failed = 0;

    subject_begin(subject);
    for (int i = 0; i < subject_call_count; i++) {
        int result = subject_calls[i].call(subject);

        if (result == 0)
            continue;
        assert_int_equal(result, -ENOSPC);
        subject_compare_seen(subject);
        failed++;
        if (i >= last)
            break;
    }
    return failed;
}

static void transaction_goes_on_with_any_number_of_free_blocks(void **state)
{
    struct bed *bed = *state;
    int failed = 1;

    for (uint64_t count = 0; failed > 0; count++) {
        leave_free(bed, count);
        failed = run_calls(&bed->subject, subject_call_count);
        subject_commit(&bed->subject);
        bed_compare_after_reopen(bed);
        bed_start_again(bed);
    }
}

static void transaction_is_aborted_at_each_call_without_space(void **state)
{
    struct bed *bed = *state;

    for (int last = 0; last < subject_call_count; last++) {
        int failed = 1;

        for (uint64_t count = 0; failed > 0; count += 3) {
            leave_free(bed, count);
            failed = run_calls(&bed->subject, last);
            subject_abort(&bed->subject);
            bed_compare_after_reopen(bed);
            bed_start_again(bed);
        }
    }
}

/* ---- Filling --------------------------------------------------------------------- */

#define OFFSETS_MAX 600

/* Allocates blocks, each in a transaction of its own, until there are none. */
static uint64_t fill(struct bed *bed, uint64_t blocks, uint64_t offsets[OFFSETS_MAX])
{
    for (uint64_t count = 0;; count++) {
        struct minl2r_tx *tx = begin(&bed->mp.pool);
        uint8_t *bytes;
        int result = minl2r_tx_alloc(tx, blocks, &offsets[count], &bytes);

        if (result < 0) {
            assert_int_equal(result, -ENOSPC);
            assert_ok(minl2r_tx_abort(tx));
            return count;
        }
        fill_pattern(bytes, blocks * BLOCK, offsets[count]);
        assert_ok(minl2r_tx_commit(tx));
    }
}

static void compare_filled(struct bed *bed, uint64_t blocks, const uint64_t *offsets,
                           uint64_t count)
{
    uint8_t want[3 * BLOCK];

    for (uint64_t i = 0; i < count; i++) {
        fill_pattern(want, blocks * BLOCK, offsets[i]);
        assert_memory_equal(minl2r_at(&bed->mp.pool, offsets[i]), want, blocks * BLOCK);
    }
}

static void free_each(struct bed *bed, uint64_t blocks, const uint64_t *offsets,
                      uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct minl2r_tx *tx = begin(&bed->mp.pool);

        assert_ok(minl2r_tx_free(tx, offsets[i], blocks));
        assert_ok(minl2r_tx_commit(tx));
    }
}

/* All of it, one block at a time, takes `room` blocks. */
static void fill_and_empty(struct bed *bed, uint64_t room)
{
    uint64_t offsets[OFFSETS_MAX];

    assert_int_equal(fill(bed, 1, offsets), room);
    compare_filled(bed, 1, offsets, room);
    bed->subject.blocks_free -= room;
    subject_find(&bed->subject, &bed->mp.pool);
    free_each(bed, 1, offsets, room);
    bed->subject.blocks_free = bed->at_first.blocks_free;
}

static void pool_filled_emptied_and_filled_again_takes_as_much(void **state)
{
    struct bed *bed = *state;
    uint64_t room = free_blocks(&bed->mp.pool) - 2; /* spare */

    for (int round = 0; round < 3; round++) {
        fill_and_empty(bed, room);
    }
    bed_compare_after_reopen(bed);
}

static void pool_filled_with_runs_takes_as_many_again(void **state)
{
    struct bed *bed = *state;
    uint64_t offsets[OFFSETS_MAX];
    uint64_t count = fill(bed, 3, offsets);

    assert_in_range(count, (free_blocks(&bed->mp.pool) - 2) / 3, OFFSETS_MAX);
    compare_filled(bed, 3, offsets, count);
    free_each(bed, 3, offsets, count);
    assert_int_equal(fill(bed, 3, offsets), count);
    free_each(bed, 3, offsets, count);
    bed_compare_after_reopen(bed);
}

/* Every second block is free: there are many, but no two in a row. */
static void run_that_no_hole_is_long_enough_for_is_enospc(void **state)
{
    struct bed *bed = *state;
    uint64_t offsets[OFFSETS_MAX];
    uint64_t count = fill(bed, 1, offsets);

    for (uint64_t i = 0; i < count; i++)
        if (offsets[i] / BLOCK % 2)
            free_each(bed, 1, &offsets[i], 1);
    struct minl2r_tx *tx = begin(&bed->mp.pool);

    assert_int_equal(minl2r_tx_alloc(tx, 4, NULL, NULL), -ENOSPC);
    assert_ok(minl2r_tx_alloc(tx, 1, NULL, NULL));
    assert_ok(minl2r_tx_abort(tx));
}

/* ---- Full ------------------------------------------------------------------------ */

static void full_pool_is_overwritten_by_swaps(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;
    uint64_t offsets[OFFSETS_MAX];

    subject->blocks_free -= fill(bed, 1, offsets);
    for (int round = 0; round < 20; round++) {
        uint64_t old = subject->slots[0];

        subject_begin(subject);
        memset(subject->seen.content[SUBJECT_DATA], round, BLOCK);
        assert_ok(minl2r_tx_write_block(subject->tx, subject->slots, 0,
                                        subject->seen.content[SUBJECT_DATA], BLOCK));
        subject_commit(subject);
        assert_int_not_equal(subject->slots[0], old);
    }
}

/* As several threads, each of which keeps what it freed for itself. */
static void overwrite_as_threads(struct bed *bed, uint32_t threads)
{
    struct subject *subject = &bed->subject;
    uint32_t self = thread_number();

    for (uint32_t i = 0; i < 5 * threads; i++) {
        thread_number_cached = self + i % threads;
        subject_begin(subject);
        memset(subject->seen.content[SUBJECT_DATA], (int)i, BLOCK);
        assert_ok(minl2r_tx_write_block(subject->tx, subject->slots, 0,
                                        subject->seen.content[SUBJECT_DATA], BLOCK));
        subject_commit(subject);
    }
    thread_number_cached = self;
}

static void pool_is_filled_whoever_freed_its_blocks(void **state)
{
    struct bed *bed = *state;
    uint64_t room = free_blocks(&bed->mp.pool) - 2; /* spare */

    overwrite_as_threads(bed, 4);
    fill_and_empty(bed, room);
    bed_compare_after_reopen(bed);
}

/* With two blocks, both spare, which may be in any thread's quarantine. */
static void full_pool_is_overwritten_by_several_threads(void **state)
{
    struct bed *bed = *state;
    uint64_t offsets[OFFSETS_MAX];

    bed->subject.blocks_free -= fill(bed, 1, offsets);
    for (int round = 0; round < 20; round++) {
        overwrite_as_threads(bed, 4);
        assert_int_equal(free_blocks(&bed->mp.pool), 2);
        assert_int_equal(fill(bed, 1, offsets), 0);
    }
}

static void pool_without_any_block_is_overwritten_in_place(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;
    uint64_t old = subject->slots[0];

    leave_free(bed, 0);
    subject_begin(subject);
    memset(subject->seen.content[SUBJECT_DATA], 7, 3000);
    assert_ok(minl2r_tx_write_block(subject->tx, subject->slots, 0,
                                    subject->seen.content[SUBJECT_DATA], 3000));
    subject_commit(subject);
    assert_int_equal(subject->slots[0], old);
    bed_compare_after_reopen(bed);
}

static void pool_without_any_block_frees(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;

    leave_free(bed, 0);
    subject_begin(subject);
    assert_ok(minl2r_tx_free(subject->tx, subject->extra, SUBJECT_EXTRA));
    subject->seen.blocks_used -= SUBJECT_EXTRA;
    subject_commit(subject);
    bed_compare_after_reopen(bed);
}

static void change_larger_than_log_and_free_blocks_is_enospc(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;
    const uint8_t *data = minl2r_at(&bed->mp.pool, subject->data);

    leave_free(bed, 1);
    subject_begin(subject);
    assert_error(minl2r_tx_zero(subject->tx, data, (size_t)SUBJECT_DATA * BLOCK),
                 ENOSPC, "more bytes of log");
    assert_error(
        minl2r_tx_snapshot(subject->tx, data, (size_t)SUBJECT_DATA * BLOCK, NULL),
        ENOSPC, "more bytes of log");
    subject_compare_seen(subject);
    subject_commit(subject);
    bed_compare_after_reopen(bed);
}

static void spare_blocks_are_not_for_allocations(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;

    leave_free(bed, 3);
    subject_begin(subject);
    assert_int_equal(minl2r_tx_alloc(subject->tx, 2, NULL, NULL), -ENOSPC);
    assert_ok(minl2r_tx_alloc(subject->tx, 1, NULL, NULL));
    subject->seen.blocks_used++;
    assert_error(
        minl2r_tx_write_block(subject->tx, &subject->slots[SUBJECT_SLOTS], 0, "x", 1),
        ENOSPC, "no free block");
    subject_commit(subject);
    bed_compare_after_reopen(bed);
}

/* I5: not before the transaction that frees it is committed, and then at once. */
static void freed_block_is_not_reused_before_it_is_settled(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;
    uint64_t offset;

    leave_free(bed, 0);
    subject_begin(subject);
    assert_ok(minl2r_tx_free(subject->tx, subject->extra, SUBJECT_EXTRA));
    assert_int_equal(alloc_reserve(&bed->mp.pool, 1, 0, &offset), -ENOSPC);
    subject->seen.blocks_used -= SUBJECT_EXTRA;
    subject_commit(subject);
    for (int i = 0; i < SUBJECT_EXTRA; i++)
        assert_ok(alloc_reserve(&bed->mp.pool, 1, 0, &offset));
    assert_int_equal(alloc_reserve(&bed->mp.pool, 1, 0, &offset), -ENOSPC);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(transaction_goes_on_with_any_number_of_free_blocks),
        test(transaction_is_aborted_at_each_call_without_space),
        test(pool_filled_emptied_and_filled_again_takes_as_much),
        test(pool_filled_with_runs_takes_as_many_again),
        test(run_that_no_hole_is_long_enough_for_is_enospc),
        test(full_pool_is_overwritten_by_swaps),
        test(pool_is_filled_whoever_freed_its_blocks),
        test(full_pool_is_overwritten_by_several_threads),
        test(pool_without_any_block_is_overwritten_in_place),
        test(pool_without_any_block_frees),
        test(change_larger_than_log_and_free_blocks_is_enospc),
        test(spare_blocks_are_not_for_allocations),
        test(freed_block_is_not_reused_before_it_is_settled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
