/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Logs: what is written is read again, wherever it is cut off and whichever byte of it
 * is damaged, and fits into the room that was promised for it.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/random.h"
#include "tests/unit/transact.h"

#include <errno.h>

#include "libminl2r/log.h"

#define BLOCK ((size_t)512)
#define POOL_SIZE ((size_t)4 << 20)
#define LANE 1
#define SEGMENTS 4
#define SEED 3

struct bed {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    struct minl2r_stats stats;
    struct pm_phase phase;
    struct log_cursor cursor;
    struct log_writer writer;
    struct block_run segments[SEGMENTS];
    uint8_t batch[PM_BATCH_SIZE_MAX];
    uint8_t scratch[PM_BATCH_SIZE_MAX];
    uint64_t data; /* 60 allocated blocks in a row */
    struct random random;
    uint8_t *image;
};

static void begin_log(struct bed *bed, uint64_t generation)
{
    log_cursor_init(&bed->cursor, bed->pool, LANE, generation);
    bed->writer = (struct log_writer){
        .pool = bed->pool,
        .phase = &bed->phase,
        .cursor = &bed->cursor,
        .segments = bed->segments,
        .segment_count = SEGMENTS,
        .batch = bed->batch,
    };
}

static uint64_t live_generation(const struct bed *bed)
{
    return pool_lane(bed->pool, LANE)->settled + 1;
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    struct minl2r_options options = {
        .block_size = BLOCK, .lanes = 1, .log_size = MINL2R_LOG_SIZE_MIN};

    *state = bed;
    memory_pool_make(&bed->mp, POOL_SIZE, &options);
    bed->pool = &bed->mp.pool;
    bed->phase = (struct pm_phase){.pm = &bed->pool->pm, .stats = &bed->stats};
    bed->data = make_blocks(bed->pool, 60, 1);
    for (int i = 0; i < SEGMENTS; i++) {
        bed->segments[i].count = i == 0 ? 1 : 5;
        assert_ok(alloc_reserve(bed->pool, bed->segments[i].count, 0,
                                &bed->segments[i].offset));
    }
    bed->random = (struct random){SEED};
    bed->image = malloc(POOL_SIZE);
    begin_log(bed, live_generation(bed));
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;

    memory_pool_remove(&bed->mp);
    free(bed->image);
    free(bed);
    return 0;
}

static int validate(struct bed *bed, struct log_live *live)
{
    alloc_reload(bed->pool); /* forgets reservations, as opening does */
    return log_validate(bed->pool, LANE, live);
}

/* ---- Reading what was written ---------------------------------------------------- */

struct seen {
    struct pm_record record;
    uint8_t payload[PM_BATCH_SIZE_MAX];
};

static void see(void *arg, const struct pm_record *record, const void *payload)
{
    struct seen *seen = arg;

    seen->record = *record;
    if (record->type == PM_UNDO)
        memcpy(seen->payload, payload, record->length);
    if (record->type == PM_SWAP)
        memcpy(seen->payload, payload, sizeof(struct pm_swap));
}

/* The only record of the only batch. */
static struct seen see_one(struct bed *bed)
{
    struct log_live live;
    struct seen seen = {.record.type = 0};

    assert_ok(validate(bed, &live));
    assert_int_equal(live.batches, 1);
    assert_int_equal(live.records, 1);
    assert_int_equal(log_visit_batch(bed->pool, live.last, bed->scratch, see, &seen),
                     0);
    return seen;
}

static void empty_log_is_not_live(void **state)
{
    struct bed *bed = *state;
    struct log_live live;

    log_end(&bed->writer);
    assert_ok(validate(bed, &live));
    assert_int_equal(live.last, 0);
    assert_int_equal(bed->stats.log_bytes, 0);
}

static void undo_record_holds_the_old_bytes(void **state)
{
    struct bed *bed = *state;

    log_append_undo(&bed->writer, bed->data + 3, 13);
    log_end(&bed->writer);
    struct seen seen = see_one(bed);

    assert_int_equal(seen.record.type, PM_UNDO);
    assert_int_equal(seen.record.target, bed->data + 3);
    assert_int_equal(seen.record.length, 13);
    assert_memory_equal(seen.payload, bed->mp.memory + bed->data + 3, 13);
    assert_int_equal(bed->stats.log_payload_bytes, 13);
    assert_int_equal(bed->stats.log_bytes, 64);
}

static void record_of_blocks_holds_their_run(void **state)
{
    struct bed *bed = *state;

    log_append_blocks(&bed->writer, PM_FREE, (struct block_run){bed->data, 9});
    log_end(&bed->writer);
    struct seen seen = see_one(bed);

    assert_int_equal(seen.record.type, PM_FREE);
    assert_int_equal(seen.record.target, bed->data);
    assert_int_equal(seen.record.length, 9);
}

static void swap_record_fits_into_one_line(void **state)
{
    struct bed *bed = *state;
    struct pm_swap swap = {bed->data + BLOCK, POOL_SIZE - BLOCK};

    log_append_swap(&bed->writer, bed->data + 8, swap);
    log_end(&bed->writer);
    struct seen seen = see_one(bed);

    assert_int_equal(seen.record.type, PM_SWAP);
    assert_int_equal(seen.record.target, bed->data + 8);
    assert_memory_equal(seen.payload, &swap, sizeof(swap));
    assert_int_equal(bed->stats.log_bytes, 64);
    assert_int_equal(bed->stats.log_payload_bytes, 8);
}

static void nothing_to_undo_writes_no_record(void **state)
{
    struct bed *bed = *state;

    log_append_undo(&bed->writer, bed->data, 0);
    log_end(&bed->writer);
    assert_int_equal(bed->stats.log_bytes, 0);
}

/* ---- A long log ------------------------------------------------------------------ */

/*
 * Logs pieces of the data in some order, some of them twice, and changes each after it
 * was logged, as transactions do. `batches` log_end() calls, in all parts of the log.
 */
static void write_long_log(struct bed *bed, int batches)
{
    for (int i = 0; i < batches; i++) {
        for (uint64_t records = 1 + random_below(&bed->random, 6); records > 0;
             records--) {
            uint64_t size = 1 + random_below(&bed->random, 90);
            uint64_t at = bed->data + random_below(&bed->random, 60 * BLOCK - size);

            log_append_undo(&bed->writer, at, size);
            random_fill(&bed->random, bed->mp.memory + at, size);
        }
        log_end(&bed->writer);
    }
}

static void expect_first_data(const struct bed *bed)
{
    uint8_t want[60 * BLOCK];

    fill_pattern(want, sizeof(want), 1);
    assert_memory_equal(bed->mp.memory + bed->data, want, sizeof(want));
}

static void undo_all(struct bed *bed, const struct log_live *live)
{
    struct minl2r_recovery done = {0};

    if (live->last)
        recovery_undo(bed->pool, live->last, bed->scratch, &bed->phase, &done);
    assert_int_equal(done.records, live->records);
    assert_int_equal(done.batches, live->batches);
}

static void log_of_many_parts_is_undone_newest_first(void **state)
{
    struct bed *bed = *state;
    struct log_live live;

    write_long_log(bed, 28);
    assert_int_equal(bed->cursor.segment, SEGMENTS - 1);
    assert_ok(validate(bed, &live));
    assert_ok(log_validate_targets(bed->pool, LANE, &live, bed->scratch));
    undo_all(bed, &live);
    expect_first_data(bed);
}

static void segments_of_a_live_log_are_claimed(void **state)
{
    struct bed *bed = *state;
    struct log_live live;

    write_long_log(bed, 28);
    assert_ok(validate(bed, &live));
    for (uint32_t i = 0; i < bed->cursor.segment; i++)
        assert_true(alloc_is_claimed(bed->pool, bed->segments[i]));
}

/* ---- Cut off and damaged --------------------------------------------------------- */

#define BATCHES_MAX 64

struct written {
    uint32_t count;
    struct {
        uint64_t offset, size;
    } batches[BATCHES_MAX]; /* oldest first */
};

static uint64_t whole_lines(uint64_t size)
{
    return (size + PM_LINE - 1) / PM_LINE * PM_LINE;
}

/* Writes a log of many parts and changes nothing else; the memory before is in `image`.
 */
static void write_only(struct bed *bed, struct written *written)
{
    struct log_live live;

    memcpy(bed->image, bed->mp.memory, POOL_SIZE);
    write_long_log(bed, 28);
    memcpy(bed->mp.memory + bed->data, bed->image + bed->data, 60 * BLOCK);
    assert_ok(validate(bed, &live));
    written->count = (uint32_t)live.batches;
    assert_in_range(written->count, 28, BATCHES_MAX);
    for (uint64_t offset = live.last, i = live.batches; i-- > 0;) {
        const struct pm_batch *batch =
            (const struct pm_batch *)(const void *)(bed->mp.memory + offset);

        written->batches[i].offset = offset;
        written->batches[i].size = batch->size;
        offset = batch->prev;
    }
}

static void expect_batches(struct bed *bed, uint64_t count)
{
    struct log_live live;

    assert_ok(validate(bed, &live));
    assert_int_equal(live.batches, count);
}

/* As a crash cuts it: any number of its lines, in the order in which they were written.
 */
static void every_prefix_of_a_log_is_read_up_to_its_last_whole_batch(void **state)
{
    struct bed *bed = *state;
    struct written written;

    write_only(bed, &written);
    for (uint32_t i = written.count; i-- > 0;) {
        uint64_t offset = written.batches[i].offset;
        uint64_t line = whole_lines(written.batches[i].size);

        while (line > 0) {
            line -= PM_LINE;
            memcpy(bed->mp.memory + offset + line, bed->image + offset + line, PM_LINE);
            expect_batches(bed, i);
        }
    }
}

/* Lines of one phase arrive in any order: one is missing, all others are there. */
static void log_ends_before_any_batch_with_a_missing_line(void **state)
{
    struct bed *bed = *state;
    struct written written;

    write_only(bed, &written);
    for (uint32_t i = 0; i < written.count; i++)
        for (uint64_t line = 0; line < written.batches[i].size; line += PM_LINE) {
            uint64_t at = written.batches[i].offset + line;
            uint8_t saved[PM_LINE];

            memcpy(saved, bed->mp.memory + at, PM_LINE);
            memcpy(bed->mp.memory + at, bed->image + at, PM_LINE);
            expect_batches(bed, i);
            memcpy(bed->mp.memory + at, saved, PM_LINE);
        }
    expect_batches(bed, written.count);
}

static void log_ends_before_a_batch_with_any_byte_flipped(void **state)
{
    struct bed *bed = *state;
    struct written written;

    write_only(bed, &written);
    for (uint32_t i = 0; i < written.count; i++)
        for (uint64_t at = 0; at < written.batches[i].size; at++) {
            uint8_t *byte = bed->mp.memory + written.batches[i].offset + at;
            uint8_t bit = (uint8_t)(1 << random_below(&bed->random, 8));

            *byte ^= bit;
            expect_batches(bed, i);
            *byte ^= bit;
        }
    expect_batches(bed, written.count);
}

/* What an older, longer generation has left behind the new one's end is not read. */
static void batches_left_by_an_older_generation_are_not_read(void **state)
{
    struct bed *bed = *state;
    struct written written;

    write_only(bed, &written);
    uint64_t generation = live_generation(bed);

    lane_store_settled(bed->pool, &bed->pool->lanes[LANE], generation, &bed->phase);
    begin_log(bed, generation + 1);
    log_append_undo(&bed->writer, bed->data, 8);
    log_end(&bed->writer);
    expect_batches(bed, 1);
}

/* ---- Room ------------------------------------------------------------------------ */

/* The bytes that records of these sizes take, each in one or more pieces. */
static void append_at_random(struct bed *bed, uint64_t *records_size)
{
    uint64_t size = 1 + random_below(&bed->random, 600);
    struct block_run blocks = {bed->data, 1};
    struct pm_swap swap = {bed->data, bed->data + BLOCK};

    switch (random_below(&bed->random, 3)) {
    case 0:
        log_append_undo(&bed->writer, bed->data, size);
        *records_size += LOG_RECORD_SIZE(size);
        break;
    case 1:
        log_append_blocks(&bed->writer, PM_FREE, blocks);
        *records_size += sizeof(struct pm_record);
        break;
    default:
        log_append_swap(&bed->writer, bed->data, swap);
        *records_size += sizeof(struct pm_record) + sizeof(swap);
        break;
    }
}

/*
 * Appends until the records would no longer fit by log_space_needed() into the parts by
 * log_part_space(); then they must have fitted: into the log area and segments of as
 * many sizes as there are.
 */
static void fill_promised_room(struct bed *bed, const uint64_t blocks[SEGMENTS])
{
    uint64_t space = log_part_space(bed->pool->geo.log_size);
    uint64_t records_size = 0;

    bed->writer.segment_count = 0;
    alloc_reload(bed->pool);
    for (int i = 0; i < SEGMENTS; i++) {
        assert_ok(alloc_reserve(bed->pool, blocks[i], 0, &bed->segments[i].offset));
        bed->segments[i].count = blocks[i];
        bed->writer.segment_count++;
        space += log_part_space(blocks[i] * BLOCK);
    }
    while (log_space_needed(records_size + LOG_RECORD_SIZE(600)) <= space)
        append_at_random(bed, &records_size);
    log_end(&bed->writer);
    assert_true(bed->cursor.segment <= SEGMENTS);
    assert_true(bed->cursor.offset <= bed->cursor.part_end + PM_LINE);
}

static void records_fit_into_the_room_that_was_promised(void **state)
{
    struct bed *bed = *state;
    struct log_live live;

    for (int round = 0; round < 300; round++) {
        uint64_t blocks[SEGMENTS];

        for (int i = 0; i < SEGMENTS; i++)
            blocks[i] = 1 + random_below(&bed->random, i == 0 ? 2 : 30);
        begin_log(bed, live_generation(bed));
        fill_promised_room(bed, blocks);
        assert_ok(validate(bed, &live));
        assert_int_equal(live.batches, bed->cursor.index);
        lane_store_settled(bed->pool, &bed->pool->lanes[LANE], live_generation(bed),
                           &bed->phase);
    }
}

/* One part of hundreds of batches: what each of them loses adds up. */
static void long_log_fits_into_the_room_that_was_promised(void **state)
{
    static const uint64_t lengths[] = {8, 16, 25, 100, 600, 4090};
    struct bed *bed = *state;

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        uint64_t record_size = LOG_RECORD_SIZE(lengths[i]), records_size = 0;
        uint64_t space = log_part_space(bed->pool->geo.log_size);

        alloc_reload(bed->pool);
        begin_log(bed, live_generation(bed));
        bed->writer.segment_count = 1;
        bed->segments[0].count = 2000;
        assert_ok(alloc_reserve(bed->pool, 2000, 0, &bed->segments[0].offset));
        space += log_part_space(bed->segments[0].count * BLOCK);
        while (log_space_needed(records_size + record_size) <= space) {
            log_append_undo(&bed->writer, bed->data, lengths[i]);
            records_size += record_size;
        }
        log_end(&bed->writer);
        assert_int_equal(bed->cursor.segment, 1);
        assert_true(bed->cursor.offset <= bed->cursor.part_end + PM_LINE);
    }
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(empty_log_is_not_live),
        test(undo_record_holds_the_old_bytes),
        test(record_of_blocks_holds_their_run),
        test(swap_record_fits_into_one_line),
        test(nothing_to_undo_writes_no_record),
        test(log_of_many_parts_is_undone_newest_first),
        test(segments_of_a_live_log_are_claimed),
        test(every_prefix_of_a_log_is_read_up_to_its_last_whole_batch),
        test(log_ends_before_any_batch_with_a_missing_line),
        test(log_ends_before_a_batch_with_any_byte_flipped),
        test(batches_left_by_an_older_generation_are_not_read),
        test(records_fit_into_the_room_that_was_promised),
        test(long_log_fits_into_the_room_that_was_promised),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
