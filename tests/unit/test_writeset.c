/* SPDX-License-Identifier: BSD-3-Clause */
/* What transactions do to content: writes, edits and snapshots; see writeset_bed.h. */
#include "tests/unit/writeset_bed.h"

/* ---- Writes ---------------------------------------------------------------------- */

static const uint32_t sizes[] = {1, 7, 8, 9, 63, 64, 65, 2047, 2048, 2049, 4095, 4096};
static const uint32_t places[] = {0, 1, 7, 8, 61, 64, 2047, 2048, 4095};
static const uint32_t thresholds[] = {MINL2R_POINTER_HALF, MINL2R_POINTER_ALWAYS,
                                      MINL2R_POINTER_NEVER};

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
    assert_int_equal(minl2r_tx_snapshotv(bed->tx, &range, 1, NULL), -EINVAL);
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
    assert_ok(minl2r_tx_snapshotv(bed->tx, &range, 0, NULL));
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
    void *writable[BLOCKS];

    make_bed(bed, MINL2R_POINTER_HALF);
    for (int i = 0; i < BLOCKS; i++)
        ranges[i] = (struct minl2r_range){block_at(bed, i) + i, (size_t)i * 100};
    assert_ok(minl2r_tx_snapshotv(bed->tx, ranges, BLOCKS, writable));
    for (int i = 0; i < BLOCKS; i++)
        memset(writable[i], i, ranges[i].size);
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

    assert_error(minl2r_tx_snapshotv(bed->tx, ranges, 2, NULL), EINVAL,
                 "not in the pool");
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

/* ---- What does not change between what does -------------------------------------- */

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
        test(changes_outside_the_data_area_are_einval),
        test(changes_of_a_block_that_is_not_allocated_are_einval),
        test(nothing_is_always_allowed),
        test(missing_source_is_einval),
        test(refused_call_leaves_what_was_queued_before),
        test(abort_leaves_everything_as_it_was),
        test(vector_of_snapshots_is_undone_as_one),
        test(one_bad_range_of_a_vector_snapshots_none),
        test(killed_transaction_with_snapshots_is_undone_at_open),
        test(old_bytes_among_new_ones_need_no_more_log_than_was_reserved),
        test(block_write_to_an_edited_own_block_acts_on_the_copy),
        test(block_whose_slot_is_written_cannot_be_freed),
        test(free_blocks_take_no_bytes_in_any_way),
        test(root_is_the_librarys),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
