/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The verifier: each kind of damage is made by hand, in a pool in memory, and must be
 * named; what a crash may leave must not.
 */
#include "tests/unit/fixture.h"

#include <errno.h>

#include "libminl2r/alloc.h"
#include "libminl2r/check.h"
#include "libminl2r/log.h"
#include "libminl2r/recovery.h"

#define MIB ((uint64_t)1 << 20)
#define SIZE MIB

struct bed {
    uint8_t *memory;
    uint8_t *before; /* a copy of it */
    struct pm pm;
    struct minl2r_pool *pool;
    struct minl2r_stats stats;
    struct pm_phase phase;

    struct log_cursor cursor;
    struct log_writer writer;
    struct block_run segment;
    uint8_t batch[PM_BATCH_SIZE_MAX];

    uint64_t problems;
    char text[4096]; /* all of them, a line each */
};

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    bed->memory = aligned_alloc(4096, SIZE);
    bed->before = malloc(SIZE);
    bed->pool = calloc(1, sizeof(*bed->pool));
    memset(bed->memory, 0, SIZE);
    pm_adopt(&bed->pm, bed->memory, SIZE, MINL2R_DAX);
    bed->phase = (struct pm_phase){.pm = &bed->pm, .stats = &bed->stats};
    assert_ok(pool_format(&bed->pm, "test", 0, NULL));
    assert_ok(pool_attach(bed->pool, &bed->pm, NULL));
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    pool_detach(bed->pool);
    free(bed->pool);
    free(bed->before);
    free(bed->memory);
    free(bed);
    return 0;
}

/* ---- Making media ---------------------------------------------------------------- */

/* The offset of the data block number `index`: 2 is the first. */
static uint64_t block(const struct bed *bed, uint64_t index)
{
    return block_offset(&bed->pool->geo, index);
}

static struct block_run run(const struct bed *bed, uint64_t index, uint64_t count)
{
    return (struct block_run){block(bed, index), count};
}

static void poke64(struct bed *bed, uint64_t offset, uint64_t value)
{
    memcpy(bed->memory + offset, &value, sizeof(value));
}

static void set_allocated(struct bed *bed, uint64_t index, bool allocated)
{
    uint64_t offset = pool_offset(bed->pool, pool_bitmap_word(bed->pool, index));
    uint64_t bit = (uint64_t)1 << index % 64;
    uint64_t word;

    memcpy(&word, bed->memory + offset, sizeof(word));
    poke64(bed, offset, allocated ? word | bit : word & ~bit);
}

static void set_root(struct bed *bed, uint64_t offset, uint64_t size)
{
    uint64_t root = pool_offset(bed->pool, pool_root_block(bed->pool));

    poke64(bed, root, offset);
    poke64(bed, root + 8, size);
}

static void set_settled(struct bed *bed, uint32_t lane, uint64_t settled)
{
    poke64(bed, bed->pool->geo.lanes_offset + lane * sizeof(struct pm_lane), settled);
}

/* Begins a log that is live in `lane`; log_end() makes it so. */
static struct log_writer *begin_log(struct bed *bed, uint32_t lane)
{
    uint64_t settled = pool_lane(bed->pool, lane)->settled;

    log_cursor_init(&bed->cursor, bed->pool, lane, settled + 1);
    bed->writer = (struct log_writer){
        .pool = bed->pool,
        .phase = &bed->phase,
        .cursor = &bed->cursor,
        .segments = &bed->segment,
        .batch = bed->batch,
    };
    return &bed->writer;
}

/* A live log of one record about blocks. */
static void log_blocks(struct bed *bed, uint32_t lane, enum pm_record_type type,
                       struct block_run blocks)
{
    struct log_writer *writer = begin_log(bed, lane);

    log_append_blocks(writer, type, blocks);
    log_end(writer);
}

/* ---- Judging it ------------------------------------------------------------------ */

static void collect(void *arg, const char *what)
{
    struct bed *bed = arg;
    size_t length = strlen(bed->text);

    bed->problems++;
    snprintf(bed->text + length, sizeof(bed->text) - length, "%s\n", what);
}

/* Attaches again, as a check would, and verifies. Media must be as they were. */
static int verify(struct bed *bed)
{
    memcpy(bed->before, bed->memory, SIZE);
    pool_detach(bed->pool);
    memset(bed->pool, 0, sizeof(*bed->pool));
    assert_ok(pool_attach(bed->pool, &bed->pm, NULL));
    int result = check_pool(bed->pool, collect, bed);

    assert_memory_equal(bed->before, bed->memory, SIZE);
    return result;
}

static void expect_clean(struct bed *bed)
{
    if (verify(bed) < 0)
        fail_msg("%s", bed->text);
}

static void expect_problem(struct bed *bed, const char *words)
{
    assert_int_equal(verify(bed), -EUCLEAN);
    if (!strstr(bed->text, words))
        fail_msg("not \"%s\", but: %s", words, bed->text);
    assert_int_equal(bed->problems, 1);
}

/* ---- What is no problem ---------------------------------------------------------- */

static void new_pool_is_clean(void **state)
{
    expect_clean(*state);
}

static void live_log_is_clean(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);

    set_allocated(bed, 5, true);
    set_allocated(bed, 8, true);
    log_append_undo(writer, block(bed, 5) + 100, 3000);
    log_append_undo(writer, block(bed, 5), 50);
    log_append_blocks(writer, PM_ALLOC, run(bed, 6, 2));
    log_append_blocks(writer, PM_FREE, run(bed, 8, 1));
    log_end(writer);
    expect_clean(bed);
}

static void root_of_a_finished_transaction_is_clean(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 4, true);
    set_allocated(bed, 5, true);
    set_root(bed, block(bed, 4), 5000);
    expect_clean(bed);
}

static void root_that_an_unfinished_transaction_was_making_is_clean(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 1);

    log_append_blocks(writer, PM_ALLOC, run(bed, 4, 1));
    log_append_undo(writer, block(bed, 1), sizeof(struct pm_root));
    log_end(writer);
    set_root(bed, block(bed, 4), 100); /* in place; the bit was not yet set */
    expect_clean(bed);
}

static void root_whose_freeing_is_unfinished_is_clean(void **state)
{
    struct bed *bed = *state;

    set_root(bed, block(bed, 4), 100); /* its bit is cleared already */
    log_blocks(bed, 0, PM_FREE, run(bed, 4, 1));
    expect_clean(bed);
}

static void log_of_a_settled_generation_is_not_looked_at(void **state)
{
    struct bed *bed = *state;

    log_blocks(bed, 0, 99, run(bed, 4, 1));
    set_settled(bed, 0, 1 + pool_lane(bed->pool, 0)->settled);
    expect_clean(bed);
}

static void swap_is_clean_before_and_after_the_slot_changed(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);
    struct pm_swap swap = {block(bed, 5), block(bed, 6)};

    set_allocated(bed, 4, true);
    set_allocated(bed, 5, true);
    log_append_swap(writer, block(bed, 4), swap);
    log_end(writer);
    poke64(bed, block(bed, 4), swap.old_block);
    expect_clean(bed);
    poke64(bed, block(bed, 4), swap.new_block);
    set_allocated(bed, 5, false);
    set_allocated(bed, 6, true);
    expect_clean(bed);
}

/* ---- Bitmaps --------------------------------------------------------------------- */

static void bitmap_that_calls_itself_free_is_named(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 0, false);
    expect_problem(bed, "block 0 is marked free, but is this bitmap");
}

static void bitmap_that_calls_the_root_block_free_is_named(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 1, false);
    expect_problem(bed, "block 1 is marked free, but is the root block");
}

static void bitmap_that_has_room_past_the_end_is_named(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, bed->pool->geo.block_count, false);
    set_allocated(bed, bed->pool->geo.block_count + 64, false);
    expect_problem(bed, "but is past the end");
}

/* ---- Lanes and logs -------------------------------------------------------------- */

static void impossible_settled_generation_breaks_i4(void **state)
{
    struct bed *bed = *state;

    set_settled(bed, 2, UINT64_MAX);
    expect_problem(bed,
                   "lane 2: settled generation 18446744073709551615 is not possible "
                   "(I4)");
}

static void impossible_generation_of_a_log_breaks_i4(void **state)
{
    struct bed *bed = *state;

    poke64(bed, pool_log_offset(bed->pool, 1) + offsetof(struct pm_batch, generation),
           UINT64_MAX);
    expect_problem(bed,
                   "log of lane 1: generation 18446744073709551615 is not possible "
                   "(I4)");
}

static void word_outside_the_data_area_breaks_i7(void **state)
{
    struct bed *bed = *state;

    poke64(bed, bed->pool->geo.lanes_offset + offsetof(struct pm_lane, word), 4096);
    expect_problem(bed, "lane 0: word is 4096");
}

static void undo_of_a_lane_breaks_i7(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 3);

    log_append_undo(writer, bed->pool->geo.lanes_offset, 8);
    log_end(writer);
    expect_problem(bed, "log of lane 3: batch 0 at offset");
}

static void record_of_unknown_type_breaks_i7(void **state)
{
    struct bed *bed = *state;

    log_blocks(bed, 0, 99, run(bed, 4, 1));
    expect_problem(bed, "bad record at byte 32 (I7)");
}

static void link_to_blocks_in_use_breaks_i7(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 9, true);
    log_blocks(bed, 0, PM_LINK, run(bed, 8, 2));
    expect_problem(bed, "links to blocks in use (I7)");
}

static void record_that_changes_a_log_breaks_i7(void **state)
{
    struct bed *bed = *state;

    log_blocks(bed, 0, PM_LINK, run(bed, 8, 2));
    log_blocks(bed, 1, PM_ALLOC, run(bed, 9, 1));
    expect_problem(bed, "log of lane 1: a record changes a log (I7)");
}

/* ---- Contradictions -------------------------------------------------------------- */

static void expect_twice(struct bed *bed)
{
    expect_problem(bed, "is allocated or freed twice (I5)");
}

static void block_allocated_twice_in_one_log_breaks_i5(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);

    log_append_blocks(writer, PM_ALLOC, run(bed, 4, 3));
    log_append_blocks(writer, PM_ALLOC, run(bed, 6, 3));
    log_end(writer);
    expect_twice(bed);
}

static void block_allocated_in_two_logs_breaks_i5(void **state)
{
    struct bed *bed = *state;

    log_blocks(bed, 0, PM_ALLOC, run(bed, 4, 1));
    log_blocks(bed, 1, PM_ALLOC, run(bed, 4, 1));
    expect_twice(bed);
}

static void block_freed_in_two_logs_breaks_i5(void **state)
{
    struct bed *bed = *state;

    log_blocks(bed, 0, PM_FREE, run(bed, 4, 1));
    log_blocks(bed, 1, PM_FREE, run(bed, 4, 1));
    expect_twice(bed);
}

static void freed_block_reused_before_it_is_settled_breaks_i5(void **state)
{
    struct bed *bed = *state;

    log_blocks(bed, 0, PM_FREE, run(bed, 4, 1));
    log_blocks(bed, 1, PM_ALLOC, run(bed, 4, 1));
    expect_twice(bed);
}

/* A hole at the start of block 3 that is to name block 6. */
static void log_slot(const struct bed *bed, struct log_writer *writer)
{
    log_append_slots(writer,
                     &(struct swap){.type = PM_SLOT,
                                    .length = sizeof(uint64_t),
                                    .slot = block(bed, 3),
                                    .fresh = block(bed, 6)},
                     1);
}

/* A live one that has committed: its block may be another's by now. */
static void what_a_slot_commit_allocates_may_have_been_freed(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);

    set_allocated(bed, 3, true);
    set_allocated(bed, 4, true);
    log_slot(bed, writer);
    log_append_blocks(writer, PM_ALLOC, run(bed, 4, 1));
    log_end(writer);
    log_blocks(bed, 1, PM_FREE, run(bed, 4, 1));
    expect_clean(bed);
}

/* The bit of the root object has not arrived, but recovery would set it. */
static void root_that_a_slot_commit_allocates_is_good(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);

    set_allocated(bed, 3, true);
    set_root(bed, block(bed, 4), 100);
    log_slot(bed, writer);
    log_append_blocks(writer, PM_ALLOC, run(bed, 4, 1));
    log_end(writer);
    expect_clean(bed);
}

static void swap_to_a_block_that_another_log_allocates_breaks_i5(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);

    set_allocated(bed, 4, true);
    log_append_swap(writer, block(bed, 4), (struct pm_swap){0, block(bed, 6)});
    log_end(writer);
    log_blocks(bed, 1, PM_ALLOC, run(bed, 6, 1));
    expect_twice(bed);
}

static void slot_that_names_neither_block_of_its_swap_is_named(void **state)
{
    struct bed *bed = *state;
    struct log_writer *writer = begin_log(bed, 0);

    set_allocated(bed, 4, true);
    poke64(bed, block(bed, 4), 4711);
    log_append_swap(writer, block(bed, 4),
                    (struct pm_swap){block(bed, 5), block(bed, 6)});
    log_end(writer);
    expect_problem(bed, "is 4711, neither the old block");
}

/* ---- Root ------------------------------------------------------------------------ */

static void root_outside_the_data_area_is_named(void **state)
{
    struct bed *bed = *state;

    set_root(bed, 4096, 100);
    expect_problem(bed, "root: 100 bytes at offset 4096");
}

static void root_of_impossible_size_is_named(void **state)
{
    static const uint64_t sizes[] = {0, SIZE, UINT64_MAX};
    struct bed *bed = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        bed->problems = 0;
        set_root(bed, block(bed, 4), sizes[i]);
        expect_problem(bed, "do not lie in the data area");
    }
}

static void root_that_is_not_allocated_is_named(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 4, true);
    set_root(bed, block(bed, 4), 4097);
    expect_problem(bed, "root: block 5");
}

static void root_whose_allocation_will_be_undone_is_named(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 4, true);
    set_root(bed, block(bed, 4), 100);
    log_blocks(bed, 0, PM_ALLOC, run(bed, 4, 1));
    expect_problem(bed, "root: block 4");
}

/* ---- All of them ----------------------------------------------------------------- */

static void every_problem_is_found_not_only_the_first(void **state)
{
    struct bed *bed = *state;

    set_allocated(bed, 1, false);
    set_settled(bed, 0, UINT64_MAX);
    log_blocks(bed, 1, 99, run(bed, 4, 1));
    set_root(bed, 1, 1);
    assert_int_equal(verify(bed), -EUCLEAN);
    assert_int_equal(bed->problems, 4);
    assert_non_null(strstr(minl2r_errormsg(), "4 places"));
}

/* ---- Check and recovery ---------------------------------------------------------- */

#define ROUNDS 2000
#define SEED 20261130u

static uint32_t random_state;

static uint32_t random_below(uint32_t limit)
{
    random_state = random_state * 1664525 + 1013904223;
    return (random_state >> 8) % limit;
}

/* A pool with a live log of every kind of record in each of three lanes. */
static void make_live_logs(struct bed *bed)
{
    for (uint32_t lane = 0; lane < 3; lane++) {
        struct log_writer *writer = begin_log(bed, lane);
        uint64_t first = 10 + 20 * lane;

        for (uint64_t i = first; i < first + 5; i++)
            set_allocated(bed, i, true);
        poke64(bed, block(bed, first), block(bed, first + 1));
        log_append_undo(writer, block(bed, first) + 8, 300);
        log_append_blocks(writer, PM_ALLOC, run(bed, first + 7, 3));
        log_append_blocks(writer, PM_FREE, run(bed, first + 3, 2));
        log_append_swap(writer, block(bed, first),
                        (struct pm_swap){block(bed, first + 1), block(bed, first + 6)});
        log_end(writer);
        log_append_undo(writer, block(bed, first) + 400, 20);
        log_end(writer);
    }
}

/* Changes bytes of the first batch of a log and makes its checksum right again. */
static void forge_batch(struct bed *bed)
{
    uint32_t lane = random_below(3);
    uint64_t offset = pool_log_offset(bed->pool, lane);
    struct pm_batch batch;

    memcpy(&batch, bed->memory + offset, sizeof(batch));
    for (uint32_t i = random_below(3); i < 3; i++) {
        uint32_t at = 8 + random_below(batch.size - 8);

        bed->memory[offset + at] ^= (uint8_t)(1 << random_below(8));
    }
    uint64_t checksum = pm_hash(bed->memory + offset + 8, batch.size - 8,
                                bed->pool->checksum_seed + lane);

    poke64(bed, offset, checksum);
}

/* Flips bits anywhere in lanes, logs, bitmap or root. */
static void flip_bits(struct bed *bed)
{
    uint64_t start = bed->pool->geo.lanes_offset;
    uint64_t end = block(bed, 2);

    for (uint32_t i = random_below(4); i < 4; i++)
        bed->memory[start + random_below((uint32_t)(end - start))] ^=
            (uint8_t)(1 << random_below(8));
}

static int recover(struct bed *bed)
{
    pool_detach(bed->pool);
    memset(bed->pool, 0, sizeof(*bed->pool));
    assert_ok(pool_attach(bed->pool, &bed->pm, NULL));
    return recovery_run(bed->pool);
}

/* One damaged pool: what recovery refuses, check has found; what check finds good, is.
 */
static void expect_agreement(struct bed *bed)
{
    struct pm_super before, after;
    int checked = verify(bed);

    memcpy(&before, bed->memory, sizeof(before));
    int recovered = recover(bed);

    memcpy(&after, bed->memory, sizeof(after));
    assert_memory_equal(&before, &after, sizeof(before));
    if (recovered < 0)
        assert_int_equal(checked, -EUCLEAN);
    if (checked == 0) {
        assert_ok(recovered);
        assert_ok(verify(bed));
    }
}

static void what_recovery_refuses_check_has_found(void **state)
{
    struct bed *bed = *state;
    uint8_t *image = malloc(SIZE);

    print_message("seed %u\n", SEED);
    random_state = SEED;
    make_live_logs(bed);
    expect_clean(bed);
    memcpy(image, bed->memory, SIZE);
    for (int round = 0; round < ROUNDS; round++) {
        memcpy(bed->memory, image, SIZE);
        bed->problems = 0;
        bed->text[0] = '\0';
        if (round % 2 == 0)
            forge_batch(bed);
        else
            flip_bits(bed);
        expect_agreement(bed);
    }
    free(image);
}

/* ---- Files ----------------------------------------------------------------------- */

static void count_problem(void *arg, const char *what)
{
    print_error("%s\n", what);
    ++*(int *)arg;
}

static void pool_after_use_is_clean(void **state)
{
    struct fixture *f = *state;
    int problems = 0;
    uint64_t offset;
    struct minl2r_tx *tx;

    fixture_create(f, SIZE, NULL);
    assert_non_null(minl2r_root(f->pool, 5000));
    for (int i = 0; i < 20; i++) {
        assert_ok(minl2r_tx_begin(f->pool, &tx));
        assert_ok(minl2r_tx_alloc(tx, 3, &offset, NULL));
        assert_ok(minl2r_tx_commit(tx));
        assert_ok(minl2r_tx_begin(f->pool, &tx));
        assert_ok(minl2r_tx_free(tx, offset + 4096, 1));
        assert_ok(minl2r_tx_commit(tx));
    }
    fixture_close(f);
    assert_ok(minl2r_pool_check(f->path, count_problem, &problems));
    assert_int_equal(problems, 0);
}

/* What a killed process leaves: the file while a snapshot is open. */
static void copy_of_a_pool_in_use_is_clean_and_is_recovered(void **state)
{
    struct fixture *f = *state;
    uint8_t *image = malloc(SIZE);
    int problems = 0;
    struct minl2r_tx *tx;
    struct minl2r_info info;
    uint64_t *writable;

    fixture_create(f, SIZE, NULL);
    const uint64_t *root = minl2r_root(f->pool, 64);

    assert_ok(minl2r_store64(f->pool, root, 1));
    assert_ok(minl2r_tx_begin(f->pool, &tx));
    assert_ok(minl2r_tx_snapshot(tx, root, 8, &writable));
    *writable = 2;
    fixture_peek(f, 0, image, SIZE);
    assert_ok(minl2r_tx_abort(tx));
    fixture_close(f);
    fixture_poke(f, 0, image, SIZE);
    free(image);
    assert_ok(minl2r_pool_check(f->path, count_problem, &problems));
    fixture_open(f);
    assert_ok(minl2r_pool_info(f->pool, &info));
    assert_int_equal(info.recovery.lanes, 1);
    assert_int_equal(*(const uint64_t *)minl2r_root(f->pool, 64), 1);
}

static void damaged_superblock_is_a_finding_too(void **state)
{
    struct fixture *f = *state;
    int problems = 0;

    fixture_create(f, SIZE, NULL);
    fixture_close(f);
    fixture_poke(f, offsetof(struct pm_super, lane_count), "\1\0\0\0", 4);
    assert_error(minl2r_pool_check(f->path, count_problem, &problems), EUCLEAN,
                 "lane_count");
    assert_int_equal(problems, 1);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define file_test(function)                                                            \
    cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(new_pool_is_clean),
        test(live_log_is_clean),
        test(root_of_a_finished_transaction_is_clean),
        test(root_that_an_unfinished_transaction_was_making_is_clean),
        test(root_whose_freeing_is_unfinished_is_clean),
        test(log_of_a_settled_generation_is_not_looked_at),
        test(swap_is_clean_before_and_after_the_slot_changed),
        test(bitmap_that_calls_itself_free_is_named),
        test(bitmap_that_calls_the_root_block_free_is_named),
        test(bitmap_that_has_room_past_the_end_is_named),
        test(impossible_settled_generation_breaks_i4),
        test(impossible_generation_of_a_log_breaks_i4),
        test(word_outside_the_data_area_breaks_i7),
        test(undo_of_a_lane_breaks_i7),
        test(record_of_unknown_type_breaks_i7),
        test(link_to_blocks_in_use_breaks_i7),
        test(record_that_changes_a_log_breaks_i7),
        test(block_allocated_twice_in_one_log_breaks_i5),
        test(block_allocated_in_two_logs_breaks_i5),
        test(block_freed_in_two_logs_breaks_i5),
        test(freed_block_reused_before_it_is_settled_breaks_i5),
        test(what_a_slot_commit_allocates_may_have_been_freed),
        test(root_that_a_slot_commit_allocates_is_good),
        test(swap_to_a_block_that_another_log_allocates_breaks_i5),
        test(slot_that_names_neither_block_of_its_swap_is_named),
        test(root_outside_the_data_area_is_named),
        test(root_of_impossible_size_is_named),
        test(root_that_is_not_allocated_is_named),
        test(root_whose_allocation_will_be_undone_is_named),
        test(every_problem_is_found_not_only_the_first),
        test(what_recovery_refuses_check_has_found),
        file_test(pool_after_use_is_clean),
        file_test(copy_of_a_pool_in_use_is_clean_and_is_recovered),
        file_test(damaged_superblock_is_a_finding_too),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
