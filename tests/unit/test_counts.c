/* SPDX-License-Identifier: BSD-3-Clause */
/* What transactions cost, counted exactly: fences, lines, log. */
#include "tests/unit/memory_pool.h"
#include "tests/unit/transact.h"

#define BLOCK ((size_t)4096)
#define BLOCKS 64
#define POOL_SIZE ((size_t)4 << 20)

struct bed {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;
    const uint64_t *slots;      /* [BLOCKS] */
    const uint8_t *data;        /* BLOCKS blocks in a row */
    struct minl2r_stats before; /* the transaction began */
    uint8_t bytes[2 * BLOCK];   /* new in every transaction */
};

static void begin_tx(struct bed *bed)
{
    static uint64_t seed;

    fill_pattern(bed->bytes, sizeof(bed->bytes), ++seed);
    bed->before = stats_of(bed->pool);
    bed->tx = begin(bed->pool);
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    uint64_t slots[BLOCKS], data;

    *state = bed;
    memory_pool_make(&bed->mp, POOL_SIZE, NULL);
    bed->pool = &bed->mp.pool;
    for (uint64_t i = 0; i < BLOCKS; i++)
        slots[i] = make_blocks(bed->pool, 1, i);
    data = make_blocks(bed->pool, BLOCKS, 1000);
    bed->data = minl2r_at(bed->pool, data);
    bed->slots = minl2r_root(bed->pool, sizeof(slots));
    bed->tx = begin(bed->pool);
    assert_ok(minl2r_tx_write(bed->tx, bed->slots, slots, sizeof(slots)));
    assert_ok(minl2r_tx_commit(bed->tx));
    begin_tx(bed);
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    memory_pool_kill(&bed->mp);
    memory_pool_unmap(&bed->mp);
    free(bed);
    return 0;
}

/* What has happened since begin_tx(). */
static struct minl2r_stats cost(const struct bed *bed)
{
    struct minl2r_stats cost = stats_of(bed->pool);
    const uint64_t *before = (const uint64_t *)&bed->before;
    uint64_t *after = (uint64_t *)&cost;

    for (size_t i = 0; i < sizeof(cost) / sizeof(*after); i++)
        after[i] -= before[i];
    return cost;
}

static struct minl2r_stats commit_cost(struct bed *bed)
{
    assert_ok(minl2r_tx_commit(bed->tx));
    return cost(bed);
}

static uint64_t lines(struct minl2r_stats cost)
{
    return cost.lines_flushed + cost.lines_streamed;
}

/* `size` bytes in each of `count` blocks, not aligned: no word of its own. */
static void write_ranges(struct bed *bed, size_t count, size_t size)
{
    for (size_t i = 0; i < count; i++)
        assert_ok(minl2r_tx_write(bed->tx, bed->data + i * BLOCK + 4 + 64 * i % BLOCK,
                                  bed->bytes + i, size));
}

/* ---- Fences ---------------------------------------------------------------------- */

static void empty_transaction_costs_nothing(void **state)
{
    struct bed *bed = *state;
    struct minl2r_stats nothing = commit_cost(bed);

    assert_int_equal(nothing.fences, 0);
    assert_int_equal(nothing.pm_bytes, 0);
    assert_int_equal(nothing.commits, 0);
}

static void reading_transaction_costs_nothing(void **state)
{
    struct bed *bed = *state;
    uint64_t word;

    assert_ok(minl2r_tx_read(bed->tx, &word, bed->data, sizeof(word)));
    assert_int_equal(commit_cost(bed).fences, 0);
}

static void aborted_writes_cost_nothing(void **state)
{
    struct bed *bed = *state;

    write_ranges(bed, 16, 8);
    assert_ok(minl2r_tx_abort(bed->tx));
    assert_int_equal(cost(bed).fences, 0);
    assert_int_equal(cost(bed).pm_bytes, 0);
    assert_int_equal(cost(bed).aborts, 1);
}

static void one_range_costs_three_fences(void **state)
{
    struct bed *bed = *state;

    write_ranges(bed, 1, 8);
    assert_int_equal(commit_cost(bed).fences, 3);
}

static void sixteen_ranges_cost_three_fences(void **state)
{
    struct bed *bed = *state;

    write_ranges(bed, 16, 8);
    assert_int_equal(commit_cost(bed).fences, 3);
}

static void sixty_four_ranges_cost_three_fences(void **state)
{
    struct bed *bed = *state;

    write_ranges(bed, 64, 64);
    assert_int_equal(commit_cost(bed).fences, 3);
}

static void ranges_that_outgrow_the_log_cost_three_fences(void **state)
{
    struct bed *bed = *state;

    for (size_t i = 0; i < BLOCKS / 2; i++)
        assert_ok(
            minl2r_tx_write(bed->tx, bed->data + 2 * i * BLOCK, bed->bytes, 2 * BLOCK));
    assert_int_equal(commit_cost(bed).fences, 3);
}

static void swap_of_a_block_costs_two_fences(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, 0, bed->bytes, BLOCK));
    assert_int_equal(commit_cost(bed).fences, 2);
}

static void swaps_of_many_blocks_cost_two_fences(void **state)
{
    struct bed *bed = *state;

    for (int i = 0; i < BLOCKS; i++)
        assert_ok(minl2r_tx_write_block(bed->tx, &bed->slots[i], 5, bed->bytes, 3000));
    assert_int_equal(commit_cost(bed).fences, 2);
}

/*
 * Slots that follow each other but for one amid them, if there is a gap; their old
 * blocks take turns between two lines of the bitmaps.
 */
enum { SWAPS = 16, SWAPS_BEFORE_GAP = SWAPS / 2 };

static size_t swap_slot(size_t i, size_t gap)
{
    return i < SWAPS_BEFORE_GAP ? i : i + gap;
}

static struct minl2r_stats cost_of_swaps(struct bed *bed, size_t gap)
{
    enum { BLOCKS_OF_A_LINE = 512 };
    const uint64_t *slots = (const uint64_t *)bed->data;
    uint64_t blocks[SWAPS + 1] = {0};

    for (size_t i = 0; i < SWAPS; i += 2)
        blocks[swap_slot(i, gap)] = make_blocks(bed->pool, 1, i);
    make_blocks(bed->pool, BLOCKS_OF_A_LINE, 1);
    for (size_t i = 1; i < SWAPS; i += 2)
        blocks[swap_slot(i, gap)] = make_blocks(bed->pool, 1, i);
    assert_ok(minl2r_tx_write(bed->tx, slots, blocks, sizeof(blocks)));
    assert_ok(minl2r_tx_commit(bed->tx));
    begin_tx(bed);
    for (size_t i = 0; i < SWAPS; i++)
        assert_ok(minl2r_tx_write_block(bed->tx, &slots[swap_slot(i, gap)], 0,
                                        bed->bytes, BLOCK));
    return commit_cost(bed);
}

static void scattered_swaps_flush_a_line_of_the_bitmaps_once(void **state)
{
    assert_int_equal(cost_of_swaps(*state, 1).lines_flushed, 2 + 3); /* slots */
}

static void swaps_of_slots_that_follow_each_other_flush_nothing(void **state)
{
    struct minl2r_stats cost = cost_of_swaps(*state, 0);

    assert_int_equal(cost.lines_flushed, 0);
    assert_int_equal(cost.lines_streamed - SWAPS * (BLOCK / PM_LINE) -
                         cost.log_bytes / PM_LINE,
                     2 + 2); /* bits, slots */
}

/* Of a program that promises MINL2R_COMMIT_PROVE. */
static struct minl2r_stats proof_cost(struct bed *bed, size_t count, size_t size)
{
    bed->pool->prove = true;
    write_ranges(bed, count, size);
    return commit_cost(bed);
}

static void proof_of_a_word_costs_two_lines_each_time(void **state)
{
    struct bed *bed = *state;

    for (int i = 0; i < 1000; i++) {
        struct minl2r_stats proof = proof_cost(bed, 1, 8);

        assert_int_equal(proof.fences, 2);
        assert_int_equal(lines(proof), 2);
        begin_tx(bed);
    }
}

static void proof_of_sixteen_ranges_costs_two_fences(void **state)
{
    struct minl2r_stats proof = proof_cost(*state, 16, 8);

    assert_int_equal(proof.fences, 2);
    assert_int_equal(proof.log_bytes, (size_t)7 * 64);
    assert_int_equal(lines(proof), 7 + 16);
}

static void proof_of_a_kilobyte_costs_two_fences(void **state)
{
    struct bed *bed = *state;
    struct minl2r_stats proof = proof_cost(bed, 1, 1024);

    assert_int_equal(proof.fences, 2);
    assert_int_equal(proof.log_bytes, (size_t)17 * 64);
    begin_tx(bed);
    assert_int_equal(proof_cost(bed, 64, 16).fences, 2);
    begin_tx(bed);
    for (size_t i = 0; i < 128; i++)
        assert_ok(minl2r_tx_write(bed->tx, bed->data + 4 + i * 64, bed->bytes + i, 8));
    assert_int_equal(commit_cost(bed).fences, 2);
}

static void proof_of_a_batch_of_bytes_costs_two_fences(void **state)
{
    struct bed *bed = *state;

    assert_int_equal(proof_cost(bed, 1, 4000).fences, 2);
    begin_tx(bed);
    assert_int_equal(proof_cost(bed, 40, 64).fences, 2);
}

static void more_than_a_batch_of_bytes_is_settled(void **state)
{
    struct bed *bed = *state;

    assert_int_equal(proof_cost(bed, 1, BLOCK).fences, 3);
    begin_tx(bed);
    assert_int_equal(proof_cost(bed, 64, 64).fences, 3);
}

static void allocation_costs_three_fences(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_alloc(bed->tx, 3, NULL, NULL));
    assert_int_equal(commit_cost(bed).fences, 3);
}

static void lone_word_costs_one_fence(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write(bed->tx, bed->data + 64, bed->bytes, 8));
    struct minl2r_stats word = commit_cost(bed);

    assert_int_equal(word.fences, 1);
    assert_int_equal(word.log_bytes, 0);
    assert_int_equal(lines(word), 1);
}

static void lone_aligned_piece_costs_one_fence(void **state)
{
    struct bed *bed = *state;

    for (size_t size = 1; size <= 8; size *= 2) {
        begin_tx(bed);
        assert_ok(minl2r_tx_write(bed->tx, bed->data + 3 * size, bed->bytes, size));
        assert_int_equal(commit_cost(bed).fences, 1);
    }
}

static void lone_piece_that_is_not_aligned_is_logged(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write(bed->tx, bed->data + 2, bed->bytes, 4));
    assert_int_equal(commit_cost(bed).fences, 3);
}

static void store64_costs_one_fence_and_one_line(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_store64(bed->pool, bed->slots, bed->slots[0]));
    assert_int_equal(cost(bed).fences, 1);
    assert_int_equal(lines(cost(bed)), 1);
    assert_int_equal(cost(bed).log_bytes, 0);
}

static void fresh_bytes_and_a_word_cost_two_fences(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_fresh(bed->tx, bed->data + 1000, bed->bytes, 500));
    assert_ok(minl2r_tx_write(bed->tx, bed->data + 64, bed->bytes, 8));
    assert_int_equal(commit_cost(bed).fences, 2);
}

static void fresh_bytes_in_the_line_of_the_word_cost_one_fence(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_fresh(bed->tx, bed->data + 64, bed->bytes, 16));
    assert_ok(minl2r_tx_write(bed->tx, bed->data + 80, bed->bytes, 8));
    struct minl2r_stats word = commit_cost(bed);

    assert_int_equal(word.fences, 1);
    assert_int_equal(lines(word), 1);
}

static void fresh_bytes_alone_cost_one_fence(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_fresh(bed->tx, bed->data, bed->bytes, BLOCK));
    struct minl2r_stats fresh = commit_cost(bed);

    assert_int_equal(fresh.fences, 1);
    assert_int_equal(fresh.log_bytes, 0);
}

static void snapshot_costs_one_fence(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_snapshot(bed->tx, bed->data, 100, NULL));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(cost(bed).fences, 3);
}

static void vector_of_snapshots_costs_one_fence(void **state)
{
    struct bed *bed = *state;
    struct minl2r_range ranges[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++)
        ranges[i] = (struct minl2r_range){bed->data + i * BLOCK, 200};
    assert_ok(minl2r_tx_snapshotv(bed->tx, ranges, BLOCKS, NULL));
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_int_equal(cost(bed).fences, 3);
}

static void abort_after_a_snapshot_costs_two_fences(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_snapshot(bed->tx, bed->data, 100, NULL));
    assert_ok(minl2r_tx_abort(bed->tx));
    assert_int_equal(cost(bed).fences, 1 + 2);
}

static void eadr_waits_for_nothing(void **state)
{
    struct bed *bed = *state;

    bed->mp.pool.pm.medium = MINL2R_EADR;
    write_ranges(bed, 16, 8);
    struct minl2r_stats eadr = commit_cost(bed);

    assert_int_equal(eadr.fences, 0);
    assert_int_equal(lines(eadr), 0);
}

/* ---- Lines ----------------------------------------------------------------------- */

/* The log's, the data's, the lane's. */
static void eight_bytes_cost_three_lines(void **state)
{
    struct bed *bed = *state;

    write_ranges(bed, 1, 8);
    assert_int_equal(lines(commit_cost(bed)), 3);
}

static void writes_to_one_line_flush_it_once(void **state)
{
    struct bed *bed = *state;

    for (size_t at = 0; at < 64; at += 8)
        assert_ok(minl2r_tx_write(bed->tx, bed->data + at, bed->bytes + at, 7));
    assert_int_equal(commit_cost(bed).lines_flushed, 1);
}

static void words_in_place_go_past_the_cache(void **state)
{
    struct bed *bed = *state;

    write_ranges(bed, 16, 8);
    assert_int_equal(commit_cost(bed).lines_flushed, 0);
}

static void line_that_is_flushed_is_not_streamed_too(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write(bed->tx, bed->data, bed->bytes, 8));
    assert_ok(minl2r_tx_write(bed->tx, bed->data + 16, bed->bytes, 7));
    struct minl2r_stats both = commit_cost(bed);

    assert_int_equal(both.lines_flushed, 1);
    assert_int_equal(both.lines_streamed, 2 + 1); /* log, settled */
}

static void assert_lines_of_swap(const struct minl2r_stats *swap)
{
    enum { LOG = 1, SLOT = 1 };
    uint64_t rest = swap->lines_streamed - (BLOCK / 64 + LOG + SLOT);

    assert_in_range(rest, 1, 2); /* bits of two blocks */
    assert_int_equal(swap->lines_flushed, 0);
}

static void whole_block_is_streamed(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, 0, bed->bytes, BLOCK));
    struct minl2r_stats swap = commit_cost(bed);

    assert_lines_of_swap(&swap);
}

/* Also where what is new, or was streamed already, begins and ends within lines. */
static void swapped_block_is_streamed_a_line_at_a_time(void **state)
{
    static const struct {
        uint32_t at, size;
    } parts[][2] = {
        {{0, BLOCK / 2}, {0, 0}}, {{64, BLOCK - 64}, {0, 0}}, {{100, 3001}, {0, 0}},
        {{1, 40}, {700, 3000}},   {{300, 2500}, {3000, 17}},
    };
    struct bed *bed = *state;

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        uint8_t expected[BLOCK];

        begin_tx(bed);
        memcpy(expected, minl2r_at(bed->pool, bed->slots[i]), BLOCK);
        for (size_t j = 0; j < 2; j++) {
            uint32_t at = parts[i][j].at, size = parts[i][j].size;

            assert_ok(
                minl2r_tx_write_block(bed->tx, &bed->slots[i], at, bed->bytes, size));
            memcpy(expected + at, bed->bytes, size);
        }
        struct minl2r_stats swap = commit_cost(bed);

        assert_int_equal(swap.pointer_swaps, 1);
        assert_lines_of_swap(&swap);
        assert_memory_equal(minl2r_at(bed->pool, bed->slots[i]), expected, BLOCK);
    }
}

/* The whole of its life within one transaction: written over, read, swapped. */
static void part_that_is_streamed_can_be_written_over(void **state)
{
    struct bed *bed = *state;
    const uint8_t *old = minl2r_at(bed->pool, bed->slots[0]);
    uint8_t expected[BLOCK], read[BLOCK];

    memcpy(expected, old, BLOCK);
    for (uint32_t i = 0; i < 20; i++) {
        uint32_t size = i == 0 ? 3000 : 1 + i * 37;
        uint32_t at = 77 * i * i % ((uint32_t)BLOCK - size);

        assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, at, bed->bytes + i, size));
        memcpy(expected + at, bed->bytes + i, size);
        assert_ok(minl2r_tx_read(bed->tx, read, old, BLOCK));
        assert_memory_equal(read, expected, BLOCK);
    }
    assert_ok(minl2r_tx_commit(bed->tx));
    assert_memory_equal(minl2r_at(bed->pool, bed->slots[0]), expected, BLOCK);
}

/* ---- Log ------------------------------------------------------------------------- */

static void data_logging_saves_the_bytes_that_change(void **state)
{
    struct bed *bed = *state;

    for (uint32_t n = 1; n < BLOCK / 2; n = n * 3 / 2 + 1) {
        if (n <= 8 && (n & (n - 1)) == 0)
            continue; /* a word of its own, at an odd place below */
        begin_tx(bed);
        assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, 3, bed->bytes, n));
        assert_int_equal(commit_cost(bed).log_payload_bytes, n);
    }
}

static void just_below_half_of_a_block_saves_its_bytes(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, 0, bed->bytes, BLOCK / 2 - 1));
    struct minl2r_stats data = commit_cost(bed);

    assert_int_equal(data.log_payload_bytes, BLOCK / 2 - 1);
    assert_int_equal(data.pointer_swaps, 0);
}

static void half_of_a_block_saves_its_pointer(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write_block(bed->tx, bed->slots, 0, bed->bytes, BLOCK / 2));
    struct minl2r_stats pointer = commit_cost(bed);

    assert_int_equal(pointer.log_payload_bytes, 8);
    assert_int_equal(pointer.log_bytes, 64);
    assert_int_equal(pointer.pointer_swaps, 1);
    assert_int_equal(pointer.blocks_allocated, 1);
    assert_int_equal(pointer.blocks_freed, 1);
}

static void bytes_that_stay_the_same_are_not_logged(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write(bed->tx, bed->data, bed->data, 1000));
    assert_ok(minl2r_tx_write(bed->tx, bed->data + 1000, bed->bytes, 5));
    assert_int_equal(commit_cost(bed).log_payload_bytes, 5);
}

static void edit_logs_the_words_that_differ(void **state)
{
    struct bed *bed = *state;
    uint64_t *copy;

    assert_ok(minl2r_tx_edit(bed->tx, bed->data, BLOCK, &copy));
    copy[10]++;
    copy[100]++;
    copy[101]++;
    assert_int_equal(commit_cost(bed).log_payload_bytes, 24);
}

static void overlapping_writes_are_logged_once(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_write(bed->tx, bed->data, bed->bytes, 100));
    assert_ok(minl2r_tx_write(bed->tx, bed->data + 50, bed->bytes, 100));
    assert_ok(minl2r_tx_write(bed->tx, bed->data + 20, bed->bytes, 10));
    assert_int_equal(commit_cost(bed).log_payload_bytes, 150);
}

static void blocks_are_counted(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_alloc(bed->tx, 5, NULL, NULL));
    assert_ok(minl2r_tx_free(bed->tx, minl2r_offset(bed->pool, bed->data), 3));
    struct minl2r_stats blocks = commit_cost(bed);

    assert_int_equal(blocks.blocks_allocated, 5);
    assert_int_equal(blocks.blocks_freed, 3);
    assert_int_equal(blocks.commits, 1);
}

/* Stores to own memory happen, and are counted, whatever becomes of the transaction. */
static void aborted_stores_to_own_blocks_are_counted(void **state)
{
    struct bed *bed = *state;
    uint8_t *own;

    assert_ok(minl2r_tx_alloc(bed->tx, 1, NULL, &own));
    assert_ok(minl2r_tx_write(bed->tx, own, bed->bytes, 100));
    assert_ok(minl2r_tx_abort(bed->tx));
    assert_int_equal(cost(bed).pm_bytes, 100);
    assert_int_equal(cost(bed).lines_flushed, 2);
}

static void statistics_begin_anew_when_a_pool_is_opened(void **state)
{
    struct bed *bed = *state;

    assert_ok(minl2r_tx_commit(bed->tx));
    memory_pool_reopen(&bed->mp);
    assert_int_equal(stats_of(bed->pool).commits, 0);
    assert_int_equal(stats_of(bed->pool).fences, 1); /* every lane is settled */
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(empty_transaction_costs_nothing),
        test(reading_transaction_costs_nothing),
        test(aborted_writes_cost_nothing),
        test(one_range_costs_three_fences),
        test(sixteen_ranges_cost_three_fences),
        test(sixty_four_ranges_cost_three_fences),
        test(ranges_that_outgrow_the_log_cost_three_fences),
        test(swap_of_a_block_costs_two_fences),
        test(swaps_of_many_blocks_cost_two_fences),
        test(proof_of_a_word_costs_two_lines_each_time),
        test(proof_of_sixteen_ranges_costs_two_fences),
        test(scattered_swaps_flush_a_line_of_the_bitmaps_once),
        test(swaps_of_slots_that_follow_each_other_flush_nothing),
        test(proof_of_a_kilobyte_costs_two_fences),
        test(proof_of_a_batch_of_bytes_costs_two_fences),
        test(more_than_a_batch_of_bytes_is_settled),
        test(allocation_costs_three_fences),
        test(lone_word_costs_one_fence),
        test(lone_aligned_piece_costs_one_fence),
        test(lone_piece_that_is_not_aligned_is_logged),
        test(store64_costs_one_fence_and_one_line),
        test(fresh_bytes_and_a_word_cost_two_fences),
        test(fresh_bytes_in_the_line_of_the_word_cost_one_fence),
        test(fresh_bytes_alone_cost_one_fence),
        test(snapshot_costs_one_fence),
        test(vector_of_snapshots_costs_one_fence),
        test(abort_after_a_snapshot_costs_two_fences),
        test(eadr_waits_for_nothing),
        test(eight_bytes_cost_three_lines),
        test(writes_to_one_line_flush_it_once),
        test(words_in_place_go_past_the_cache),
        test(line_that_is_flushed_is_not_streamed_too),
        test(whole_block_is_streamed),
        test(swapped_block_is_streamed_a_line_at_a_time),
        test(part_that_is_streamed_can_be_written_over),
        test(data_logging_saves_the_bytes_that_change),
        test(just_below_half_of_a_block_saves_its_bytes),
        test(half_of_a_block_saves_its_pointer),
        test(bytes_that_stay_the_same_are_not_logged),
        test(edit_logs_the_words_that_differ),
        test(overlapping_writes_are_logged_once),
        test(blocks_are_counted),
        test(aborted_stores_to_own_blocks_are_counted),
        test(statistics_begin_anew_when_a_pool_is_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
