/* SPDX-License-Identifier: BSD-3-Clause */
/* Transactions far larger than a lane's log: they commit, or fail and change nothing.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/transact.h"

#include <errno.h>

#define MIB ((size_t)1 << 20)
#define RANGES 10000
#define LARGE (64 * MIB)
#define CHUNK (1 * MIB)

struct bed {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;
    uint64_t offset; /* of `size` bytes of data */
    const uint8_t *data;
    size_t size;
    uint64_t blocks_free;
};

static void make_bed(struct bed *bed, size_t pool_size, size_t size)
{
    memory_pool_make(&bed->mp, pool_size, NULL);
    bed->pool = &bed->mp.pool;
    bed->size = size;
    bed->offset = make_blocks(bed->pool, size / 4096, 1);
    bed->data = minl2r_at(bed->pool, bed->offset);
    bed->blocks_free = free_blocks(bed->pool);
    bed->tx = begin(bed->pool);
}

static int setup(void **state)
{
    *state = calloc(1, sizeof(struct bed));
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    memory_pool_kill(&bed->mp);
    memory_pool_unmap(&bed->mp);
    free(bed);
    return 0;
}

static void reopen(struct bed *bed)
{
    memory_pool_check(&bed->mp);
    memory_pool_open(&bed->mp);
}

/* Is the data what it was at first, and every block where it was? */
static void expect_old(const struct bed *bed)
{
    uint8_t *want = malloc(bed->size);

    fill_pattern(want, bed->size, 1);
    assert_int_equal(memcmp(bed->data, want, bed->size), 0);
    assert_int_equal(free_blocks(bed->pool), bed->blocks_free);
    free(want);
}

static void expect_new(const struct bed *bed, uint8_t byte)
{
    assert_int_equal(bed->data[0], byte);
    assert_int_equal(memcmp(bed->data, bed->data + 1, bed->size - 1), 0);
    assert_int_equal(free_blocks(bed->pool), bed->blocks_free);
}

/* ---- Ten thousand ranges --------------------------------------------------------- */

static size_t place_of(size_t i)
{
    return i * 397;
}

static void write_ranges(struct bed *bed)
{
    for (size_t i = 0; i < RANGES; i++) {
        uint64_t word = i * 0x9e3779b97f4a7c15ull;

        assert_ok(minl2r_tx_write(bed->tx, bed->data + place_of(i), &word, 8));
    }
}

static void ten_thousand_ranges_commit_with_three_fences(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 16 * MIB, 4 * MIB);
    write_ranges(bed);
    uint64_t fences = stats_of(bed->pool).fences;

    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(stats_of(bed->pool).fences - fences, 3);
    for (size_t i = 0; i < RANGES; i++) {
        uint64_t word = i * 0x9e3779b97f4a7c15ull;

        assert_memory_equal(bed->data + place_of(i), &word, 8);
    }
    assert_int_equal(free_blocks(bed->pool), bed->blocks_free);
}

static void ten_thousand_ranges_are_aborted(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 16 * MIB, 4 * MIB);
    write_ranges(bed);
    assert_ok(minl2r_tx_abort(bed->tx));
    expect_old(bed);
}

static void store_to_snapshots(struct bed *bed)
{
    for (size_t i = 0; i < RANGES; i++) {
        uint64_t *word;

        assert_ok(
            minl2r_tx_snapshot(bed->tx, bed->data + place_of(i) / 8 * 8, 8, &word));
        *word = i;
    }
}

static void ten_thousand_snapshots_are_aborted(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 16 * MIB, 4 * MIB);
    store_to_snapshots(bed);
    assert_ok(minl2r_tx_abort(bed->tx));
    expect_old(bed);
}

static void ten_thousand_snapshots_are_undone_after_a_kill(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 16 * MIB, 4 * MIB);
    store_to_snapshots(bed);
    memory_pool_kill(&bed->mp);
    reopen(bed);
    assert_int_equal(bed->mp.pool.recovery.bytes, RANGES * 8);
    expect_old(bed);
}

/* ---- 64 MiB ---------------------------------------------------------------------- */

static int zero_all(struct bed *bed)
{
    int result = 0;

    for (size_t at = 0; at < bed->size && result == 0; at += CHUNK)
        result = minl2r_tx_zero(bed->tx, bed->data + at, CHUNK);
    return result;
}

static void large_change_commits(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 160 * MIB, LARGE);
    assert_ok(zero_all(bed));
    assert_ok(minl2r_tx_commit(bed->tx));
    expect_new(bed, 0);
    memory_pool_close(&bed->mp);
    reopen(bed);
    expect_new(bed, 0);
}

static void large_change_without_room_for_its_log_is_enospc_and_aborted(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 96 * MIB, LARGE);
    assert_error(zero_all(bed), ENOSPC, "more bytes of log");
    assert_ok(minl2r_tx_abort(bed->tx));
    expect_old(bed);
}

static void large_change_is_aborted(void **state)
{
    struct bed *bed = *state;

    make_bed(bed, 160 * MIB, LARGE);
    assert_ok(zero_all(bed));
    assert_ok(minl2r_tx_abort(bed->tx));
    expect_old(bed);
}

static void large_snapshot_is_aborted(void **state)
{
    struct bed *bed = *state;
    uint8_t *bytes;

    make_bed(bed, 160 * MIB, LARGE);
    assert_ok(minl2r_tx_snapshot(bed->tx, bed->data, LARGE, &bytes));
    memset(bytes, 1, LARGE);
    assert_ok(minl2r_tx_abort(bed->tx));
    expect_old(bed);
}

static void large_snapshot_is_undone_after_a_kill(void **state)
{
    struct bed *bed = *state;
    uint8_t *bytes;

    make_bed(bed, 160 * MIB, LARGE);
    assert_ok(minl2r_tx_snapshot(bed->tx, bed->data, LARGE, &bytes));
    memset(bytes, 1, LARGE);
    memory_pool_kill(&bed->mp);
    reopen(bed);
    assert_int_equal(bed->mp.pool.recovery.bytes, LARGE);
    expect_old(bed);
}

/* Every block of the pool, and more than one zone: small blocks make small zones. */
static void transaction_over_many_zones_commits(void **state)
{
    struct bed *bed = *state;
    struct minl2r_options options = {.block_size = 512};
    uint64_t offsets[16];

    memory_pool_make(&bed->mp, 32 * MIB, &options);
    bed->pool = &bed->mp.pool;
    bed->blocks_free = free_blocks(bed->pool);
    assert_true(bed->mp.pool.geo.zone_count > 10);
    bed->tx = begin(bed->pool);
    for (int i = 0; i < 8; i++) /* no two fit into one zone */
        assert_ok(minl2r_tx_alloc(bed->tx, 2500, &offsets[i], NULL));
    for (int i = 0; i < 8; i++)
        assert_ok(minl2r_tx_zero(bed->tx, minl2r_at(bed->pool, offsets[i]),
                                 (size_t)2500 * 512));
    assert_ok(minl2r_tx_commit(bed->tx));
    bed->tx = begin(bed->pool);
    for (int i = 0; i < 8; i++)
        assert_ok(minl2r_tx_free(bed->tx, offsets[i], 2500));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(free_blocks(bed->pool), bed->blocks_free);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(ten_thousand_ranges_commit_with_three_fences),
        test(ten_thousand_ranges_are_aborted),
        test(ten_thousand_snapshots_are_aborted),
        test(ten_thousand_snapshots_are_undone_after_a_kill),
        test(large_change_commits),
        test(large_change_without_room_for_its_log_is_enospc_and_aborted),
        test(large_change_is_aborted),
        test(large_snapshot_is_aborted),
        test(large_snapshot_is_undone_after_a_kill),
        test(transaction_over_many_zones_commits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
