/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What transactions do to content: each test says what it writes twice, to the pool and
 * to plain arrays, and compares after the commit and after opening the pool again.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/transact.h"

#include <errno.h>

#define BLOCK ((size_t)4096)
#define BLOCKS 8
#define POOL_SIZE ((size_t)4 << 20)

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

static void find_root(struct bed *bed)
{
    bed->slots = minl2r_root(bed->pool, BLOCK);
    assert_non_null(bed->slots);
}

static void fill_slots(struct bed *bed)
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

static void make_bed(struct bed *bed, uint32_t pointer_threshold)
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

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct bed));
    return *state ? 0 : -1;
}

/* What a failed test left is not cleared up: the process ends soon. */
static int teardown(void **state)
{
    free(*state);
    return 0;
}

static const uint8_t *block_at(const struct bed *bed, int i)
{
    return minl2r_at(bed->pool, bed->slots[i]);
}

static void compare(const struct bed *bed)
{
    for (int i = 0; i < BLOCKS; i++)
        assert_memory_equal(block_at(bed, i), bed->want[i], BLOCK);
    if (bed->free_blocks)
        assert_int_equal(free_blocks(bed->pool), bed->free_blocks);
}

static void compare_after_reopen(struct bed *bed)
{
    compare(bed);
    memory_pool_close(&bed->mp);
    memory_pool_check(&bed->mp);
    memory_pool_open(&bed->mp);
    find_root(bed);
    compare(bed);
}

static void commit_and_compare(struct bed *bed)
{
    assert_ok(minl2r_tx_commit(bed->tx));
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

static void next_tx(struct bed *bed)
{
    assert_ok(minl2r_tx_commit(bed->tx));
    compare(bed);
    bed->tx = begin(bed->pool);
}

/* ---- Operations, done to both ---------------------------------------------------- */

static const uint8_t *new_bytes(struct bed *bed, size_t size)
{
    static uint8_t bytes[BLOCKS * BLOCK];

    fill_pattern(bytes, size, ++bed->seed);
    return bytes;
}

static void write_bytes(struct bed *bed, int i, size_t at, size_t size)
{
    const uint8_t *bytes = new_bytes(bed, size);

    memcpy(bed->want[i] + at, bytes, size);
    assert_ok(minl2r_tx_write(bed->tx, block_at(bed, i) + at, bytes, size));
}

static void zero_bytes(struct bed *bed, int i, size_t at, size_t size)
{
    memset(bed->want[i] + at, 0, size);
    assert_ok(minl2r_tx_zero(bed->tx, block_at(bed, i) + at, size));
}

static void write_by_slot(struct bed *bed, int i, uint32_t at, uint32_t size)
{
    const uint8_t *bytes = new_bytes(bed, size);

    memcpy(bed->want[i] + at, bytes, size);
    assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[i], at, bytes, size));
}

static uint8_t *edit_bytes(struct bed *bed, int i, size_t at, size_t size)
{
    uint8_t *copy = NULL;

    assert_ok(minl2r_tx_edit(bed->tx, block_at(bed, i) + at, size, &copy));
    assert_memory_equal(copy, bed->want[i] + at, size);
    return copy;
}

/* Changes every fifth word of a working copy: as many separate changes as there can be.
 */
static void change_copy(struct bed *bed, uint8_t *copy, int i, size_t at, size_t size)
{
    for (size_t word = 0; word + 8 <= size; word += 40) {
        memset(copy + word, (int)++bed->seed, 8);
        memcpy(bed->want[i] + at + word, copy + word, 8);
    }
}

static void expect_read(struct bed *bed, int i)
{
    uint8_t bytes[BLOCK];

    assert_ok(minl2r_tx_read(bed->tx, bytes, block_at(bed, i), BLOCK));
    assert_memory_equal(bytes, bed->want[i], BLOCK);
}

/* ---- Writes ---------------------------------------------------------------------- */

static const uint32_t sizes[] = {1, 7, 8, 9, 63, 64, 65, 2047, 2048, 2049, 4095, 4096};
static const uint32_t places[] = {0, 1, 7, 8, 61, 64, 2047, 2048, 4095};
static const uint32_t thresholds[] = {MINL2R_POINTER_HALF, MINL2R_POINTER_ALWAYS,
                                      MINL2R_POINTER_NEVER};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

typedef void write_fn(struct bed *bed, uint32_t at, uint32_t size);

static void each_size_and_place(struct bed *bed, write_fn *write)
{
    for (size_t t = 0; t < COUNT(thresholds); t++) {
        make_bed(bed, thresholds[t]);
        for (size_t s = 0; s < COUNT(sizes); s++)
            for (size_t p = 0; p < COUNT(places); p++) {
                if (places[p] + sizes[s] > BLOCK)
                    continue;
                write(bed, places[p], sizes[s]);
                expect_read(bed, 0);
                next_tx(bed);
            }
        commit_and_compare(bed);
    }
}

static void write_at(struct bed *bed, uint32_t at, uint32_t size)
{
    write_bytes(bed, 0, at, size);
}

static void write_of_every_size_changes_its_bytes_and_no_others(void **state)
{
    each_size_and_place(*state, write_at);
}

static void zero_at(struct bed *bed, uint32_t at, uint32_t size)
{
    zero_bytes(bed, 0, at, size);
}

static void zero_of_every_size_changes_its_bytes_and_no_others(void **state)
{
    each_size_and_place(*state, zero_at);
}

static void write_block_at(struct bed *bed, uint32_t at, uint32_t size)
{
    write_by_slot(bed, 0, at, size);
}

static void write_block_of_every_size_changes_its_bytes_and_no_others(void **state)
{
    each_size_and_place(*state, write_block_at);
}

static void copy_at(struct bed *bed, uint32_t at, uint32_t size)
{
    memcpy(bed->want[0] + at, bed->want[1] + BLOCK - size, size);
    assert_ok(minl2r_tx_copy(bed->tx, block_at(bed, 0) + at,
                             block_at(bed, 1) + BLOCK - size, size));
    write_bytes(bed, 1, 0, BLOCK);
}

static void copy_of_every_size_changes_its_bytes_and_no_others(void **state)
{
    each_size_and_place(*state, copy_at);
}

static void edit_at(struct bed *bed, uint32_t at, uint32_t size)
{
    uint8_t *copy = edit_bytes(bed, 0, at, size);

    memcpy(copy, new_bytes(bed, size), size);
    memcpy(bed->want[0] + at, copy, size);
}

static void edit_of_every_size_changes_its_bytes_and_no_others(void **state)
{
    each_size_and_place(*state, edit_at);
}

static void snapshot_at(struct bed *bed, uint32_t at, uint32_t size)
{
    uint8_t *bytes;

    assert_ok(minl2r_tx_snapshot(bed->tx, block_at(bed, 0) + at, size, &bytes));
    memcpy(bytes, new_bytes(bed, size), size);
    memcpy(bed->want[0] + at, bytes, size);
}

static void snapshot_of_every_size_keeps_the_stores_that_follow(void **state)
{
    each_size_and_place(*state, snapshot_at);
}

static void write_fresh_at(struct bed *bed, uint32_t at, uint32_t size)
{
    const uint8_t *bytes = new_bytes(bed, size);
    uint8_t before[BLOCK];

    memcpy(before, bed->want[0], BLOCK);
    assert_ok(minl2r_tx_write_fresh(bed->tx, block_at(bed, 0) + at, bytes, size));
    expect_read(bed, 0); /* fresh bytes are not read through */
    memcpy(bed->want[0] + at, bytes, size);
    next_tx(bed);
}

static void write_fresh_of_every_size_changes_its_bytes_and_no_others(void **state)
{
    each_size_and_place(*state, write_fresh_at);
}

static void write_that_spans_blocks_changes_all_of_them(void **state)
{
    struct bed *bed = *state;
    uint64_t offset;

    make_bed(bed, MINL2R_POINTER_HALF);
    offset = make_blocks(bed->pool, 4, 99);
    const uint8_t *run = minl2r_at(bed->pool, offset);
    static uint8_t want[4 * BLOCK];

    fill_pattern(want, sizeof(want), 99);
    memcpy(want + 100, new_bytes(bed, 3 * BLOCK), 3 * BLOCK);
    assert_ok(minl2r_tx_write(bed->tx, run + 100, want + 100, 3 * BLOCK));
    memset(want + BLOCK - 1, 0, BLOCK + 2);
    assert_ok(minl2r_tx_zero(bed->tx, run + BLOCK - 1, BLOCK + 2));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(run, want, sizeof(want));
    memory_pool_remove(&bed->mp);
}

static void later_write_wins_where_writes_overlap(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    for (size_t first = 0; first < 24; first++)
        for (size_t size = 1; size < 24; size++) {
            write_bytes(bed, 0, 100, 8);
            write_bytes(bed, 0, 110, 3);
            write_bytes(bed, 0, 92 + first, size);
            expect_read(bed, 0);
            next_tx(bed);
        }
    commit_and_compare(bed);
}

static void adjacent_writes_stand_side_by_side(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    for (size_t at = 0; at < BLOCK; at += 64) /* there and back */
        write_bytes(bed, 0, at, 64);
    for (size_t at = BLOCK; at > 0; at -= 32)
        write_bytes(bed, 1, at - 32, 32);
    commit_and_compare(bed);
}

static void source_may_change_after_the_call(void **state)
{
    struct bed *bed = *state;
    uint64_t source = 1;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_write(bed->tx, block_at(bed, 0), &source, 8));
    memcpy(bed->want[0], &source, 8);
    source = 2;
    commit_and_compare(bed);
}

static void copy_reads_what_the_transaction_has_queued(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_bytes(bed, 0, 50, 100);
    memmove(bed->want[0] + 80, bed->want[0] + 40, 300); /* they overlap */
    assert_ok(
        minl2r_tx_copy(bed->tx, block_at(bed, 0) + 80, block_at(bed, 0) + 40, 300));
    memcpy(bed->want[1] + 1, bed->want[0] + 70, 500);
    assert_ok(
        minl2r_tx_copy(bed->tx, block_at(bed, 1) + 1, block_at(bed, 0) + 70, 500));
    commit_and_compare(bed);
}

static void write_of_the_same_bytes_is_still_made_durable(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint64_t lines = stats_of(bed->pool).lines_flushed;

    assert_ok(minl2r_tx_write(bed->tx, block_at(bed, 0), bed->want[0], 64));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(stats_of(bed->pool).lines_flushed - lines, 1);
    memory_pool_remove(&bed->mp);
}

/* ---- Plain ranges ---------------------------------------------------------------- */

static void write_plain(struct bed *bed)
{
    write_bytes(bed, 0, 100, 8);
    write_bytes(bed, 0, 112, 8); /* in the same line */
    write_bytes(bed, 1, 64, 64);
    write_bytes(bed, 0, 108, 4); /* between the two */
}

static void small_ranges_in_any_number_and_order_all_arrive(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    for (size_t count = 1; count <= 4 * PLAIN_MAX; count *= 2) {
        for (size_t i = 0; i < count; i++)
            write_bytes(bed, (int)(i * 5 % BLOCKS), i * 1624 % BLOCK, 8);
        for (int i = 0; i < BLOCKS; i++)
            expect_read(bed, i);
        next_tx(bed);
    }
    commit_and_compare(bed);
}

static void small_range_over_one_before_wins(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    for (size_t first = 92; first < 128; first++) {
        write_plain(bed);
        write_bytes(bed, 0, first, 6);
        expect_read(bed, 0);
        next_tx(bed);
    }
    commit_and_compare(bed);
}

static void small_ranges_before_a_call_of_another_kind_stand(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_plain(bed);
    zero_bytes(bed, 0, 102, 12);
    write_bytes(bed, 1, 100, 8);
    next_tx(bed);
    write_plain(bed);
    write_bytes(bed, 0, 50, 500);
    next_tx(bed);
    write_plain(bed);
    memcpy(bed->want[1] + 10, bed->want[0] + 90, 60);
    assert_ok(
        minl2r_tx_copy(bed->tx, block_at(bed, 1) + 10, block_at(bed, 0) + 90, 60));
    next_tx(bed);
    write_plain(bed);
    uint8_t *copy = edit_bytes(bed, 0, 104, 10);

    copy[1] = bed->want[0][105] = 0x5a;
    next_tx(bed);
    write_plain(bed);
    write_by_slot(bed, 0, 1000, 2048);
    write_by_slot(bed, 1, 0, 4096);
    commit_and_compare(bed);
}

static void slot_among_small_ranges_is_einval(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_write(bed->tx, &bed->slots[1], &bed->slots[1], 8));
    assert_error(minl2r_tx_write_block(bed->tx, &bed->slots[1], 0, "x", 1), EINVAL,
                 "written both by");
    commit_and_compare(bed);
}

/* What is stored is compared with what is logged: both must have the newest bytes. */
static void small_range_over_one_before_is_proved_to_be_committed(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->pool->prove = true;
    write_bytes(bed, 0, 100, 8);
    write_bytes(bed, 0, 104, 8);
    assert_ok(minl2r_tx_commit(bed->tx));
    memory_pool_kill(&bed->mp);
    memory_pool_open(&bed->mp);
    find_root(bed);
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

/* Their places are told from older ones by a number, which comes round. */
static void small_ranges_of_older_transactions_are_forgotten(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    bed->tx->writes.plain.stamp = UINT32_MAX - 1;
    for (int i = 0; i < 4; i++) {
        write_plain(bed);
        assert_int_equal(bed->tx->writes.plain.count, 4);
        assert_int_not_equal(bed->tx->writes.plain.stamp, 0);
        next_tx(bed);
    }
    commit_and_compare(bed);
}

/* ---- Edits ----------------------------------------------------------------------- */

static void unchanged_edit_changes_nothing(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    edit_bytes(bed, 0, 0, BLOCK);
    commit_and_compare(bed);
}

static void edit_inside_an_edit_answers_with_the_same_copy(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    uint8_t *outer = edit_bytes(bed, 0, 100, 200);

    assert_ptr_equal(edit_bytes(bed, 0, 150, 50), outer + 50);
    assert_int_equal((uintptr_t)outer % 16, 0);
    commit_and_compare(bed);
}

static void edit_that_overlaps_an_edit_in_part_is_einval(void **state)
{
    struct bed *bed = *state;
    void *copy;

    make_bed(bed, MINL2R_POINTER_HALF);
    edit_bytes(bed, 0, 100, 200);
    assert_error(minl2r_tx_edit(bed->tx, block_at(bed, 0) + 50, 100, &copy), EINVAL,
                 "overlaps an earlier edit");
    commit_and_compare(bed);
}

static void writes_and_reads_inside_an_edit_act_on_the_copy(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_bytes(bed, 0, 90, 20); /* under the edit, in part */
    uint8_t *copy = edit_bytes(bed, 0, 100, 200);

    write_bytes(bed, 0, 120, 10);
    zero_bytes(bed, 0, 290, 20); /* half inside */
    write_by_slot(bed, 0, 150, 8);
    assert_memory_equal(copy, bed->want[0] + 100, 200);
    copy[60] = bed->want[0][160] = 0x5a;
    expect_read(bed, 0);
    commit_and_compare(bed);
}

static void write_across_many_edits_of_a_block_reaches_all_of_it(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_NEVER);
    for (size_t at = 64; at + 64 <= BLOCK; at += 128)
        edit_bytes(bed, 0, at, 64);
    write_bytes(bed, 0, 0, BLOCK);
    commit_and_compare(bed);
}

/* Each edit keeps room for its own changes. */
static void two_edits_of_one_block_both_arrive(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_NEVER);
    uint8_t *copies[4];

    for (size_t i = 0; i < 4; i++)
        copies[i] = edit_bytes(bed, 0, i * 1024, 1024);
    for (size_t i = 0; i < 4; i++)
        change_copy(bed, copies[i], 0, i * 1024, 1024);
    commit_and_compare(bed);
}

static void writes_beside_an_edit_leave_it_its_room(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_NEVER);
    uint8_t *copy = edit_bytes(bed, 0, 0, 2048);

    for (size_t at = 2048; at < BLOCK; at += 24)
        write_bytes(bed, 0, at, 8);
    change_copy(bed, copy, 0, 0, 2048);
    commit_and_compare(bed);
}

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
        assert_error(minl2r_tx_write_block(bed->tx, &bed->slots[BLOCKS], 0, "x", 1),
                     EUCLEAN, "names no allocated block");
    }
    commit_and_compare(bed);
}

static void misplaced_slots_and_offsets_are_einval(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    const void *misaligned = (const uint8_t *)bed->slots + 4;

    assert_error(minl2r_tx_write_block(bed->tx, misaligned, 0, "x", 1), EINVAL,
                 "no slot");
    assert_error(minl2r_tx_write_block(bed->tx, NULL, 0, "x", 1), EINVAL, "no slot");
    const void *unallocated = bed->mp.memory + POOL_SIZE - 8;

    assert_error(minl2r_tx_write_block(bed->tx, unallocated, 0, "x", 1), EINVAL,
                 "not allocated");
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

/* ---- What is refused ------------------------------------------------------------- */

/* Every place that is no data, and a block that is not allocated. */
static void expect_refused(struct bed *bed, const void *pm, size_t size)
{
    static const uint8_t source[BLOCK];
    struct minl2r_range range = {pm, size};
    void *copy;

    assert_int_equal(minl2r_tx_write(bed->tx, pm, source, size), -EINVAL);
    assert_int_equal(minl2r_tx_zero(bed->tx, pm, size), -EINVAL);
    assert_int_equal(minl2r_tx_copy(bed->tx, pm, block_at(bed, 0), size), -EINVAL);
    assert_int_equal(minl2r_tx_edit(bed->tx, pm, size, &copy), -EINVAL);
    assert_int_equal(minl2r_tx_snapshot(bed->tx, pm, size, &copy), -EINVAL);
    assert_int_equal(minl2r_tx_snapshotv(bed->tx, &range, 1), -EINVAL);
}

static void changes_outside_the_data_area_are_einval(void **state)
{
    struct bed *bed = *state;
    const uint8_t *base;

    make_bed(bed, MINL2R_POINTER_HALF);
    base = bed->mp.memory;
    const struct geometry *geo = &bed->mp.pool.geo;

    expect_refused(bed, base, 8);
    expect_refused(bed, base + geo->lanes_offset, 8);
    expect_refused(bed, base + geo->logs_offset, 8);
    expect_refused(bed, base + geo->zones_offset, 8);
    expect_refused(bed, base + geo->zones_offset - 4, 8);
    expect_refused(bed, base + POOL_SIZE - 4, 8);
    expect_refused(bed, base + POOL_SIZE, 8);
    expect_refused(bed, base - 8, 8);
    expect_refused(bed, NULL, 8);
    commit_and_compare(bed);
}

/* It may become a segment of a log, and a record must not change a log (I7). */
static void changes_of_a_block_that_is_not_allocated_are_einval(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    expect_refused(bed, bed->mp.memory + POOL_SIZE - 8, 8);
    commit_and_compare(bed);
}

static void nothing_is_always_allowed(void **state)
{
    struct bed *bed = *state;
    struct minl2r_range range = {bed, 0};
    uint8_t *bytes;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_ok(minl2r_tx_write(bed->tx, block_at(bed, 0), NULL, 0));
    assert_ok(minl2r_tx_zero(bed->tx, block_at(bed, 0), 0));
    assert_ok(minl2r_tx_copy(bed->tx, block_at(bed, 0), block_at(bed, 0), 0));
    assert_ok(minl2r_tx_write_fresh(bed->tx, block_at(bed, 0), NULL, 0));
    assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, 0, NULL, 0));
    assert_ok(minl2r_tx_free(bed->tx, bed->slots[0], 0));
    assert_ok(minl2r_tx_read(bed->tx, NULL, block_at(bed, 0), 0));
    assert_ok(minl2r_tx_snapshot(bed->tx, block_at(bed, 0), 0, &bytes));
    assert_ok(minl2r_tx_snapshotv(bed->tx, &range, 0));
    commit_and_compare(bed);
}

static void missing_source_is_einval(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    assert_error(minl2r_tx_write(bed->tx, block_at(bed, 0), NULL, 8), EINVAL, "source");
    assert_error(minl2r_tx_write_fresh(bed->tx, block_at(bed, 0), NULL, 8), EINVAL,
                 "source");
    assert_error(minl2r_tx_write_block(bed->tx, bed->slots, 0, NULL, 8), EINVAL,
                 "source");
    commit_and_compare(bed);
}

static void refused_call_leaves_what_was_queued_before(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    write_bytes(bed, 0, 0, 100);
    /* Its first block is allocated, the others are not. */
    assert_error(minl2r_tx_zero(bed->tx, block_at(bed, BLOCKS - 1), 4 * BLOCK), EINVAL,
                 "not allocated");
    write_bytes(bed, 1, 0, 100);
    commit_and_compare(bed);
}

/* ---- Abort and snapshots (I8) ---------------------------------------------------- */

static void abort_leaves_everything_as_it_was(void **state)
{
    struct bed *bed = *state;
    uint8_t saved[BLOCKS][BLOCK], *bytes;

    make_bed(bed, MINL2R_POINTER_HALF);
    memcpy(saved, bed->want, sizeof(saved));
    write_bytes(bed, 0, 0, 100);
    write_by_slot(bed, 1, 0, BLOCK);
    write_by_slot(bed, 2, 0, 100);
    edit_bytes(bed, 3, 0, 100)[0] ^= 1;
    assert_ok(minl2r_tx_alloc(bed->tx, 5, NULL, NULL));
    assert_ok(minl2r_tx_free(bed->tx, bed->slots[4], 1));
    assert_ok(minl2r_tx_snapshot(bed->tx, block_at(bed, 5), BLOCK, &bytes));
    memset(bytes, 1, BLOCK);
    assert_ok(minl2r_tx_snapshot(bed->tx, block_at(bed, 5) + 10, 20, NULL));
    memset(bytes, 2, 200);
    assert_ok(minl2r_tx_abort(bed->tx));
    memcpy(bed->want, saved, sizeof(saved));
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

static void vector_of_snapshots_is_undone_as_one(void **state)
{
    struct bed *bed = *state;
    struct minl2r_range ranges[BLOCKS];

    make_bed(bed, MINL2R_POINTER_HALF);
    for (int i = 0; i < BLOCKS; i++)
        ranges[i] = (struct minl2r_range){block_at(bed, i) + i, (size_t)i * 100};
    assert_ok(minl2r_tx_snapshotv(bed->tx, ranges, BLOCKS));
    for (int i = 0; i < BLOCKS; i++)
        memset(bed->mp.memory + bed->slots[i] + i, i, ranges[i].size);
    assert_ok(minl2r_tx_abort(bed->tx));
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
}

static void one_bad_range_of_a_vector_snapshots_none(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, MINL2R_POINTER_HALF);
    struct minl2r_range ranges[] = {{block_at(bed, 0), 8}, {bed, 8}};
    uint64_t log_bytes = stats_of(bed->pool).log_bytes;

    assert_error(minl2r_tx_snapshotv(bed->tx, ranges, 2), EINVAL, "not in the pool");
    assert_int_equal(stats_of(bed->pool).log_bytes, log_bytes);
    commit_and_compare(bed);
}

static void killed_transaction_with_snapshots_is_undone_at_open(void **state)
{
    struct bed *bed = *state;
    uint8_t *bytes;

    make_bed(bed, MINL2R_POINTER_HALF);
    for (int i = 0; i < BLOCKS; i++) {
        assert_ok(minl2r_tx_snapshot(bed->tx, block_at(bed, i), BLOCK, &bytes));
        memset(bytes, 0xee, BLOCK);
    }
    memory_pool_kill(&bed->mp);
    memory_pool_check(&bed->mp);
    memory_pool_open(&bed->mp);
    assert_int_equal(bed->mp.pool.recovery.lanes, 1);
    find_root(bed);
    compare_after_reopen(bed);
    memory_pool_remove(&bed->mp);
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

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

/* ---- What does not change between what does ---------------------------------------- */

static void old_bytes_among_new_ones_need_no_more_log_than_was_reserved(void **state)
{
    struct bed *bed = *state;
    const uint8_t *area;
    uint64_t offset;

    make_bed(bed, 0);
    assert_ok(minl2r_tx_alloc(bed->tx, 24, &offset, NULL));
    area = minl2r_at(bed->pool, offset);
    assert_ok(minl2r_tx_zero(bed->tx, area, 24 * BLOCK));
    assert_ok(minl2r_tx_commit(bed->tx));
    for (size_t blocks = 1; blocks <= 24; blocks += 23) {
        bed->tx = begin(bed->pool);
        uint8_t *ones = malloc(blocks * BLOCK);

        memset(ones, 1, blocks * BLOCK);
        assert_ok(minl2r_tx_write(bed->tx, area, ones, blocks * BLOCK));
        for (size_t at = 0; at < blocks * BLOCK; at += 2) {
            ones[at] = area[at];
            assert_ok(minl2r_tx_write(bed->tx, area + at, &ones[at], 1));
        }
        assert_ok(minl2r_tx_commit(bed->tx));
        assert_memory_equal(area, ones, blocks * BLOCK);
        free(ones);
        /* Back to zeros, in another way each time. */
        bed->tx = begin(bed->pool);
        assert_ok(minl2r_tx_zero(bed->tx, area, blocks * BLOCK));
        assert_ok(minl2r_tx_commit(bed->tx));
    }
    memory_pool_remove(&bed->mp);
}

static void block_write_to_an_edited_own_block_acts_on_the_copy(void **state)
{
    struct bed *bed = *state;
    uint64_t holder, block, *slots;
    uint8_t *bytes, *copy, seen[8];

    make_bed(bed, 0);
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &holder, &slots));
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &block, &bytes));
    memset(slots, 0, BLOCK);
    memset(bytes, 0, BLOCK);
    slots[0] = block;
    assert_ok(minl2r_tx_edit(bed->tx, bytes, 64, &copy));
    copy[20] = 'c';
    assert_ok(minl2r_tx_write_block(bed->tx, slots, 0, "NEWBYTES", 8));
    assert_ok(minl2r_tx_read(bed->tx, seen, bytes, 8));
    assert_memory_equal(seen, "NEWBYTES", 8);
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(bytes, "NEWBYTES", 8);
    assert_int_equal(bytes[20], 'c');
    memory_pool_remove(&bed->mp);
}

static void block_whose_slot_is_written_cannot_be_freed(void **state)
{
    struct bed *bed = *state;
    uint64_t holder, *slots;

    make_bed(bed, 0);
    assert_ok(minl2r_tx_alloc(bed->tx, 1, &holder, &slots));
    memset(slots, 0, BLOCK);
    assert_ok(minl2r_tx_write_block(bed->tx, &slots[3], 0, "x", 1));
    assert_error(minl2r_tx_free(bed->tx, holder, 1), EINVAL, "holds a slot");
    assert_ok(minl2r_tx_abort(bed->tx));
    assert_int_equal(free_blocks(bed->pool), bed->free_blocks);
    memory_pool_remove(&bed->mp);
}

static void free_blocks_take_no_bytes_in_any_way(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 0);
    uint64_t offset = make_blocks(bed->pool, 1, 1);
    struct minl2r_tx *tx = begin(bed->pool);

    assert_ok(minl2r_tx_free(tx, offset, 1));
    assert_ok(minl2r_tx_commit(tx));
    const uint64_t *gone = minl2r_at(bed->pool, offset);

    assert_error(minl2r_tx_write_fresh(bed->tx, gone, "x", 1), EINVAL, "not allocated");
    assert_error(minl2r_store64(bed->pool, gone, 1), EINVAL, "no allocated block");
    assert_ok(minl2r_tx_abort(bed->tx));
    memory_pool_remove(&bed->mp);
}

static void root_is_the_librarys(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 0);
    assert_error(minl2r_tx_free(bed->tx, minl2r_offset(bed->pool, bed->slots), 1),
                 EINVAL, "root object");
    assert_null(minl2r_at(bed->pool, block_offset(&bed->pool->geo, 1)));
    assert_ok(minl2r_tx_abort(bed->tx));
    memory_pool_remove(&bed->mp);
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
        test(write_of_every_size_changes_its_bytes_and_no_others),
        test(zero_of_every_size_changes_its_bytes_and_no_others),
        test(write_block_of_every_size_changes_its_bytes_and_no_others),
        test(copy_of_every_size_changes_its_bytes_and_no_others),
        test(edit_of_every_size_changes_its_bytes_and_no_others),
        test(snapshot_of_every_size_keeps_the_stores_that_follow),
        test(write_fresh_of_every_size_changes_its_bytes_and_no_others),
        test(write_that_spans_blocks_changes_all_of_them),
        test(later_write_wins_where_writes_overlap),
        test(adjacent_writes_stand_side_by_side),
        test(source_may_change_after_the_call),
        test(copy_reads_what_the_transaction_has_queued),
        test(write_of_the_same_bytes_is_still_made_durable),
        test(small_ranges_in_any_number_and_order_all_arrive),
        test(small_range_over_one_before_wins),
        test(small_ranges_before_a_call_of_another_kind_stand),
        test(slot_among_small_ranges_is_einval),
        test(small_range_over_one_before_is_proved_to_be_committed),
        test(small_ranges_of_older_transactions_are_forgotten),
        test(unchanged_edit_changes_nothing),
        test(edit_inside_an_edit_answers_with_the_same_copy),
        test(edit_that_overlaps_an_edit_in_part_is_einval),
        test(writes_and_reads_inside_an_edit_act_on_the_copy),
        test(write_across_many_edits_of_a_block_reaches_all_of_it),
        test(two_edits_of_one_block_both_arrive),
        test(writes_beside_an_edit_leave_it_its_room),
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
        test(allocated_memory_is_written_and_read_like_any_other),
        test(freed_blocks_keep_their_content_until_commit),
        test(block_freed_twice_is_einval),
        test(own_blocks_freed_in_any_part_are_free_after_commit),
        test(own_neighbours_are_freed_in_one_call),
        test(impossible_allocations_and_frees_are_einval),
        test(changes_outside_the_data_area_are_einval),
        test(changes_of_a_block_that_is_not_allocated_are_einval),
        test(nothing_is_always_allowed),
        test(missing_source_is_einval),
        test(refused_call_leaves_what_was_queued_before),
        test(abort_leaves_everything_as_it_was),
        test(vector_of_snapshots_is_undone_as_one),
        test(one_bad_range_of_a_vector_snapshots_none),
        test(killed_transaction_with_snapshots_is_undone_at_open),
        test(large_edit_with_one_changed_word_gives_back_its_log),
        test(empty_commit_after_a_failed_snapshot_gives_back_its_log),
        test(old_bytes_among_new_ones_need_no_more_log_than_was_reserved),
        test(block_write_to_an_edited_own_block_acts_on_the_copy),
        test(block_whose_slot_is_written_cannot_be_freed),
        test(free_blocks_take_no_bytes_in_any_way),
        test(root_is_the_librarys),
        test(commit_that_logs_nothing_keeps_what_its_lane_freed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
