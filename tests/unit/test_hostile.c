/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Media made to do harm, with right checksums (I7): opening answers -EUCLEAN, naming
 * the place, and has written nothing; check finds it; the tool shows it without a
 * crash. The first four of these end in an endless loop, two crashes and an overwritten
 * header with libpmemobj 1.12.1.
 */
#include "tests/unit/craft.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <sys/wait.h>

#define POOL_SIZE MINL2R_POOL_SIZE_MIN
#define BLOCK ((size_t)4096)

struct bed {
    struct fixture *f; /* for the file that the tool is shown */
    struct memory_pool mp;
    uint8_t *before;
    uint64_t data; /* an allocated block */
    uint64_t last; /* the last block, which is free */
    struct craft craft;
};

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));
    void *f;

    if (fixture_setup(&f) < 0)
        abort();
    bed->f = f;
    bed->before = malloc(POOL_SIZE);
    memory_pool_make(&bed->mp, POOL_SIZE, NULL);
    bed->data = make_blocks(&bed->mp.pool, 1, 7);
    bed->last = POOL_SIZE - BLOCK;
    memory_pool_close(&bed->mp);
    craft_begin(&bed->craft, &bed->mp, 1);
    *state = bed;
    return 0;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    void *f = bed->f;

    memory_pool_unmap(&bed->mp);
    free(bed->before);
    free(bed);
    return fixture_teardown(&f);
}

/* ---- What must come of it -------------------------------------------------------- */

struct findings {
    int count;
    const char *words;
    bool named;
};

static void look_at(void *arg, const char *what)
{
    struct findings *findings = arg;

    findings->count++;
    findings->named |= strstr(what, findings->words) != NULL;
}

static void expect_found(struct bed *bed, const char *words)
{
    struct findings findings = {.words = words};

    assert_ok(memory_pool_attach(&bed->mp));
    assert_int_equal(check_pool(&bed->mp.pool, look_at, &findings), -EUCLEAN);
    pool_detach(&bed->mp.pool);
    assert_true(findings.named);
}

/* Whatever it shows, and whatever it answers: it ends, and not by a signal. */
static void expect_tool_survives(struct bed *bed)
{
    char line[512];
    FILE *file = fopen(bed->f->path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(bed->mp.memory, POOL_SIZE, 1, file), 1);
    fclose(file);
    snprintf(line, sizeof(line), "exec timeout 20 %s dump %s >%s/out 2>&1", MINL2R_TOOL,
             bed->f->path, bed->f->dir);
    int status = system(line);

    assert_true(WIFEXITED(status));
    assert_in_range(WEXITSTATUS(status), 0, 123); /* 124: it hung */
}

static void expect_refused(struct bed *bed, const char *words)
{
    memcpy(bed->before, bed->mp.memory, POOL_SIZE);
    assert_error(memory_pool_try_open(&bed->mp), EUCLEAN, words);
    assert_memory_equal(bed->mp.memory, bed->before, POOL_SIZE);
    expect_found(bed, words);
    expect_tool_survives(bed);
    assert_memory_equal(bed->mp.memory, bed->before, POOL_SIZE);
}

/* The log ends before the batch, as if it had not been written whole. */
static void expect_not_undone(struct bed *bed)
{
    memory_pool_open(&bed->mp);
    assert_int_equal(bed->mp.pool.recovery.records, 0);
    memory_pool_close(&bed->mp);
}

static void end_and_refuse(struct bed *bed, const char *words)
{
    craft_end(&bed->craft);
    expect_refused(bed, words);
}

/* ---- The four -------------------------------------------------------------------- */

static void record_of_unknown_type_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, 99, 8, bed->data);
    craft_bytes(&bed->craft, "garbage", 8);
    end_and_refuse(bed, "log of lane 1: batch 0 at offset");
}

static void record_longer_than_its_batch_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_UNDO, UINT32_MAX, bed->data);
    craft_bytes(&bed->craft, "garbage", 8);
    end_and_refuse(bed, "bad record at byte 32");
}

static void record_for_an_offset_past_the_pool_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, (uint64_t)1 << 40, 0);
    end_and_refuse(bed, "bad record at byte 32");
}

static void record_for_the_superblock_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, 8, 0);
    end_and_refuse(bed, "bad record at byte 32");
}

/* ---- Targets --------------------------------------------------------------------- */

static void record_for_a_lane_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, craft_super(&bed->mp)->lanes_offset, 0);
    end_and_refuse(bed, "bad record");
}

static void record_for_a_log_area_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, craft_super(&bed->mp)->logs_offset + 512, 0);
    end_and_refuse(bed, "bad record");
}

static void record_for_a_bitmap_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, craft_super(&bed->mp)->zones_offset + 64, 0);
    end_and_refuse(bed, "bad record");
}

static void record_that_begins_before_the_data_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, craft_super(&bed->mp)->zones_offset + BLOCK - 4, 0);
    end_and_refuse(bed, "bad record");
}

static void record_that_ends_past_the_pool_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, POOL_SIZE - 4, 0);
    end_and_refuse(bed, "bad record");
}

static void record_whose_end_overflows_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, UINT64_MAX - 3, 0);
    end_and_refuse(bed, "bad record");
}

static void record_without_bytes_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_UNDO, 0, bed->data);
    end_and_refuse(bed, "bad record");
}

static void good_record_before_a_bad_one_is_not_undone_either(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_undo(&bed->craft, bed->data + 8, 0xbad);
    craft_undo(&bed->craft, 8, 0xbad);
    end_and_refuse(bed, "bad record at byte 80");
}

static void good_lanes_beside_a_bad_one_are_not_undone_either(void **state)
{
    struct bed *bed = *state;
    struct craft good;

    craft_begin(&good, &bed->mp, 0);
    craft_undo(&good, bed->data, 0xbad);
    craft_end(&good);
    craft_undo(&bed->craft, 8, 0xbad);
    end_and_refuse(bed, "log of lane 1");
}

static void last_word_of_the_pool_is_data(void **state)
{
    struct bed *bed = *state;
    uint64_t word;

    craft_undo(&bed->craft, POOL_SIZE - 8, 0x600d);
    craft_end(&bed->craft);
    memory_pool_open(&bed->mp);
    memcpy(&word, bed->mp.memory + POOL_SIZE - 8, 8);
    assert_int_equal(word, 0x600d);
    memory_pool_close(&bed->mp);
}

/* ---- Blocks ---------------------------------------------------------------------- */

static void refuse_blocks(struct bed *bed, uint64_t offset, uint32_t count)
{
    static const uint32_t types[] = {PM_ALLOC, PM_FREE, PM_LINK};

    for (int i = 0; i < 3; i++) {
        craft_begin(&bed->craft, &bed->mp, 1);
        craft_record(&bed->craft, types[i], count, offset);
        end_and_refuse(bed, "bad record");
    }
}

static void bitmap_is_no_block_to_allocate(void **state)
{
    struct bed *bed = *state;

    refuse_blocks(bed, craft_super(&bed->mp)->zones_offset, 1);
}

static void root_block_is_no_block_to_allocate(void **state)
{
    struct bed *bed = *state;

    refuse_blocks(bed, craft_super(&bed->mp)->zones_offset + BLOCK, 1);
}

static void log_area_is_no_block_to_allocate(void **state)
{
    struct bed *bed = *state;

    refuse_blocks(bed, craft_super(&bed->mp)->logs_offset, 1);
}

static void offset_inside_a_block_is_no_block(void **state)
{
    struct bed *bed = *state;

    refuse_blocks(bed, bed->data + 64, 1);
}

static void no_blocks_are_refused(void **state)
{
    struct bed *bed = *state;

    refuse_blocks(bed, bed->data, 0);
}

static void blocks_past_the_end_are_refused(void **state)
{
    struct bed *bed = *state;

    refuse_blocks(bed, bed->last, 2);
    refuse_blocks(bed, bed->last, UINT32_MAX);
    refuse_blocks(bed, bed->last + BLOCK, 1);
    refuse_blocks(bed, (uint64_t)1 << 40, 1);
}

/* ---- Swaps ----------------------------------------------------------------------- */

static void refuse_swap(struct bed *bed, uint64_t slot, uint64_t old_block,
                        uint64_t new_block)
{
    craft_begin(&bed->craft, &bed->mp, 1);
    craft_swap(&bed->craft, slot, old_block, new_block);
    end_and_refuse(bed, "bad record");
}

static void swap_of_a_slot_that_is_no_word_of_the_data_is_refused(void **state)
{
    struct bed *bed = *state;

    refuse_swap(bed, bed->data + 4, 0, bed->last);
    refuse_swap(bed, 8, 0, bed->last);
    refuse_swap(bed, craft_super(&bed->mp)->zones_offset, 0, bed->last);
    refuse_swap(bed, POOL_SIZE, 0, bed->last);
    refuse_swap(bed, UINT64_MAX - 7, 0, bed->last);
}

static void swap_of_garbage_is_refused(void **state)
{
    struct bed *bed = *state;

    refuse_swap(bed, bed->data, 1, bed->last);
    refuse_swap(bed, bed->data, UINT64_MAX, bed->last);
    refuse_swap(bed, bed->data, bed->data, 0);
    refuse_swap(bed, bed->data, bed->data, 8);
    refuse_swap(bed, bed->data, bed->data, craft_super(&bed->mp)->zones_offset);
}

static void swap_of_another_length_is_refused(void **state)
{
    struct bed *bed = *state;
    struct pm_swap swap = {0, bed->last};

    craft_record(&bed->craft, PM_SWAP, 16, bed->data);
    craft_bytes(&bed->craft, &swap, sizeof(swap));
    end_and_refuse(bed, "bad record");
}

static void swap_without_its_blocks_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_SWAP, 8, bed->data);
    craft_bytes(&bed->craft, &bed->last, 8);
    end_and_refuse(bed, "bad record");
}

/* ---- Links ----------------------------------------------------------------------- */

static void link_to_an_allocated_block_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_LINK, 1, bed->data);
    end_and_refuse(bed, "links to blocks in use");
}

static void link_back_to_the_same_segment_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_link(&bed->craft, bed->last, 1);
    craft_record(&bed->craft, PM_LINK, 1, bed->last);
    end_and_refuse(bed, "links to blocks in use");
}

static void link_to_a_segment_that_overlaps_another_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_link(&bed->craft, bed->last - 3 * BLOCK, 2);
    craft_record(&bed->craft, PM_LINK, 2, bed->last - 2 * BLOCK);
    end_and_refuse(bed, "links to blocks in use");
}

static void segment_of_two_lanes_is_refused(void **state)
{
    struct bed *bed = *state;
    struct craft other;

    craft_link(&bed->craft, bed->last, 1);
    craft_begin(&other, &bed->mp, 2);
    craft_record(&other, PM_LINK, 1, bed->last);
    craft_end(&other);
    expect_refused(bed, "log of lane 2");
}

static void link_with_another_record_in_its_batch_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_LINK, 1, bed->last);
    craft_undo(&bed->craft, bed->data, 0);
    end_and_refuse(bed, "bad record");
}

static void link_behind_another_record_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_undo(&bed->craft, bed->data, 0);
    craft_record(&bed->craft, PM_LINK, 1, bed->last);
    end_and_refuse(bed, "bad record");
}

static void record_for_a_segment_of_its_own_log_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_link(&bed->craft, bed->last, 1);
    craft_undo(&bed->craft, bed->last + 8, 0xbad);
    end_and_refuse(bed, "a record changes a log");
}

static void record_for_a_segment_of_another_log_is_refused(void **state)
{
    struct bed *bed = *state;
    struct craft other;

    craft_begin(&other, &bed->mp, 0);
    craft_undo(&other, bed->last + 100, 0xbad);
    craft_end(&other);
    craft_link(&bed->craft, bed->last, 1);
    expect_refused(bed, "log of lane 0: a record changes a log");
}

static void freeing_of_a_segment_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_link(&bed->craft, bed->last, 1);
    craft_record(&bed->craft, PM_FREE, 1, bed->last);
    end_and_refuse(bed, "a record changes a log");
}

static void swap_from_or_to_a_segment_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_link(&bed->craft, bed->last, 1);
    craft_swap(&bed->craft, bed->data, bed->last, bed->last - BLOCK);
    craft_end_with_size(&bed->craft, 64);
    expect_refused(bed, "a record changes a log");
    bed->craft.records_size = 0;
    craft_swap(&bed->craft, bed->data, bed->last - BLOCK, bed->last);
    craft_end_with_size(&bed->craft, 64);
    expect_refused(bed, "a record changes a log");
}

static void thousand_links_are_followed_and_no_further(void **state)
{
    struct bed *bed = *state;

    for (uint64_t block = bed->last; block > bed->data + 8 * BLOCK; block -= BLOCK)
        craft_link(&bed->craft, block, 1);
    craft_record(&bed->craft, PM_LINK, 1, bed->last);
    end_and_refuse(bed, "links to blocks in use");
}

/* ---- Slot commits ---------------------------------------------------------------- */

/* Two words, found `first` and 2; the log says that they were 11 and 12. */
static void craft_changes(struct bed *bed, uint64_t first, uint64_t hash)
{
    uint64_t found[2] = {first, 2}, old[2] = {11, 12};

    memcpy(bed->mp.memory + bed->data, found, sizeof(found));
    for (unsigned i = 0; i < 2; i++) {
        craft_record(&bed->craft, PM_CHANGE, 8, bed->data + 8 * i);
        craft_bytes(&bed->craft, &old[i], 8);
    }
    bed->craft.header.prev = hash;
    craft_end(&bed->craft);
}

static uint64_t hash_of_new_words(void)
{
    uint64_t new[2] = {1, 2};

    return pm_hash(new, sizeof(new), 0);
}

static void expect_words(struct bed *bed, uint64_t first, uint64_t second,
                         uint64_t records_undone)
{
    const uint64_t *words =
        (const uint64_t *)(const void *)(bed->mp.memory + bed->data);

    memory_pool_open(&bed->mp);
    assert_int_equal(bed->mp.pool.recovery.records, records_undone);
    assert_int_equal(words[0], first);
    assert_int_equal(words[1], second);
    memory_pool_close(&bed->mp);
}

static void changes_whose_new_bytes_are_all_there_stay(void **state)
{
    struct bed *bed = *state;

    craft_changes(bed, 1, hash_of_new_words());
    expect_words(bed, 1, 2, 0);
}

static void changes_of_which_one_is_missing_are_undone(void **state)
{
    struct bed *bed = *state;

    craft_changes(bed, 11, hash_of_new_words());
    expect_words(bed, 11, 12, 2);
}

static void changes_with_another_hash_are_undone(void **state)
{
    struct bed *bed = *state;

    craft_changes(bed, 1, hash_of_new_words() ^ 1);
    expect_words(bed, 11, 12, 2);
}

static void change_behind_a_slot_is_refused(void **state)
{
    struct bed *bed = *state;
    struct pm_swap swap = {0, bed->last};

    craft_record(&bed->craft, PM_SLOT, 8, bed->data);
    craft_bytes(&bed->craft, &swap, sizeof(swap));
    craft_record(&bed->craft, PM_CHANGE, 8, bed->data + 8);
    craft_bytes(&bed->craft, "garbage", 8);
    end_and_refuse(bed, "log of lane 1: batch 0 at offset");
}

static void change_behind_what_is_allocated_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_CHANGE, 8, bed->data);
    craft_bytes(&bed->craft, "garbage", 8);
    craft_record(&bed->craft, PM_ALLOC, 1, bed->last);
    craft_record(&bed->craft, PM_CHANGE, 8, bed->data + 8);
    craft_bytes(&bed->craft, "garbage", 8);
    end_and_refuse(bed, "log of lane 1: batch 0 at offset");
}

static void slot_commit_that_frees_is_refused(void **state)
{
    struct bed *bed = *state;
    struct pm_swap swap = {0, bed->last};

    craft_record(&bed->craft, PM_SLOT, 8, bed->data);
    craft_bytes(&bed->craft, &swap, sizeof(swap));
    craft_record(&bed->craft, PM_FREE, 1, bed->last);
    end_and_refuse(bed, "log of lane 1: batch 0 at offset");
}

static void slot_commit_that_allocates_no_block_is_refused(void **state)
{
    struct bed *bed = *state;
    struct pm_swap swap = {0, bed->last};

    craft_record(&bed->craft, PM_SLOT, 8, bed->data);
    craft_bytes(&bed->craft, &swap, sizeof(swap));
    craft_record(&bed->craft, PM_ALLOC, 2, bed->last);
    end_and_refuse(bed, "log of lane 1: batch 0 at offset");
}

static void change_of_a_lane_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_record(&bed->craft, PM_CHANGE, 8, craft_super(&bed->mp)->lanes_offset);
    craft_bytes(&bed->craft, "garbage", 8);
    end_and_refuse(bed, "log of lane 1: batch 0 at offset");
}

static void slot_with_a_hash_ends_the_log(void **state)
{
    struct bed *bed = *state;
    struct pm_swap swap = {0, bed->last};

    craft_record(&bed->craft, PM_SLOT, 8, bed->data);
    craft_bytes(&bed->craft, &swap, sizeof(swap));
    bed->craft.header.prev = hash_of_new_words();
    craft_end(&bed->craft);
    expect_not_undone(bed);
}

/* ---- Generations (I4) ------------------------------------------------------------ */

static void settled_near_its_largest_value_is_refused(void **state)
{
    struct bed *bed = *state;

    craft_lane(&bed->mp, 1)->settled = UINT64_MAX;
    expect_refused(bed, "lane 1: settled generation");
    craft_lane(&bed->mp, 1)->settled = UINT64_MAX - 1;
    expect_refused(bed, "lane 1: settled generation");
    craft_lane(&bed->mp, 1)->settled = UINT64_MAX / 2;
    expect_refused(bed, "lane 1: settled generation");
}

static void generation_of_a_log_near_its_largest_value_is_refused(void **state)
{
    struct bed *bed = *state;

    bed->craft.header.generation = UINT64_MAX / 2;
    craft_undo(&bed->craft, bed->data, 0xbad);
    end_and_refuse(bed, "log of lane 1: generation");
}

/* A batch of it may lie further on. */
static void generation_of_a_torn_batch_is_settled(void **state)
{
    struct bed *bed = *state;
    uint64_t offset = bed->craft.offset;
    uint64_t torn = craft_lane(&bed->mp, 1)->settled + 1000;

    bed->craft.header.generation = torn;
    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_end(&bed->craft);
    bed->mp.memory[offset + 50] ^= 1;
    expect_not_undone(bed);
    assert_int_equal(craft_lane(&bed->mp, 1)->settled, torn + 1);
}

static void batch_of_a_settled_generation_is_not_undone(void **state)
{
    struct bed *bed = *state;

    bed->craft.header.generation = craft_lane(&bed->mp, 1)->settled;
    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_end(&bed->craft);
    expect_not_undone(bed);
}

/* Opening settles every lane: what it did not undo will never be. */
static void opening_settles_every_lane_at_a_newer_generation(void **state)
{
    struct bed *bed = *state;
    uint32_t lane_count = craft_super(&bed->mp)->lane_count;
    uint64_t before[MINL2R_LANES_DEFAULT + 1];

    for (uint32_t lane = 0; lane < lane_count; lane++)
        before[lane] = craft_lane(&bed->mp, lane)->settled;
    craft_undo(&bed->craft, bed->data, 0x600d);
    craft_end(&bed->craft);
    memory_pool_open(&bed->mp);
    assert_int_equal(bed->mp.pool.recovery.records, 1);
    for (uint32_t lane = 0; lane < lane_count; lane++)
        assert_true(craft_lane(&bed->mp, lane)->settled > before[lane]);
    memory_pool_close(&bed->mp);
    expect_not_undone(bed);
}

/* ---- What ends a log ------------------------------------------------------------- */

static void batch_with_a_wrong_checksum_ends_the_log(void **state)
{
    struct bed *bed = *state;
    uint64_t offset = bed->craft.offset;

    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_end(&bed->craft);
    bed->mp.memory[offset + 50] ^= 1;
    expect_not_undone(bed);
}

static void batch_of_another_lane_ends_the_log(void **state)
{
    struct bed *bed = *state;

    bed->craft.lane = 0; /* its checksum, not its place */
    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_end(&bed->craft);
    expect_not_undone(bed);
}

static void batch_with_a_wrong_index_ends_the_log(void **state)
{
    struct bed *bed = *state;

    bed->craft.header.index = 1;
    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_end(&bed->craft);
    expect_not_undone(bed);
}

static void batch_with_a_wrong_predecessor_ends_the_log(void **state)
{
    struct bed *bed = *state;

    bed->craft.header.prev = bed->craft.offset;
    craft_undo(&bed->craft, bed->data, 0xbad);
    craft_end(&bed->craft);
    expect_not_undone(bed);
}

static void batch_of_an_impossible_size_ends_the_log(void **state)
{
    static const uint32_t sizes[] = {0, 8, 32, 49, 4104, 16384, UINT32_MAX};
    struct bed *bed = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        craft_begin(&bed->craft, &bed->mp, 1);
        craft_undo(&bed->craft, bed->data, 0xbad);
        craft_end_with_size(&bed->craft, sizes[i]);
        expect_not_undone(bed);
    }
}

/* The last batch may fill the log's last line, and the walk must stop there. */
static void log_area_filled_to_its_last_line_is_undone(void **state)
{
    struct bed *bed = *state;
    uint64_t lines = craft_super(&bed->mp)->log_size / PM_LINE;

    for (uint64_t i = 0; i < lines; i++) {
        craft_undo(&bed->craft, bed->data + 8 * (i % 64), i);
        craft_end(&bed->craft);
    }
    memory_pool_open(&bed->mp);
    assert_int_equal(bed->mp.pool.recovery.records, lines);
    memory_pool_close(&bed->mp);
}

static void segment_filled_to_its_last_line_is_undone(void **state)
{
    struct bed *bed = *state;

    craft_link(&bed->craft, bed->last, 1); /* the last line of the pool */
    for (uint64_t i = 0; i < BLOCK / PM_LINE; i++) {
        craft_undo(&bed->craft, bed->data + 8 * i, i);
        craft_end(&bed->craft);
    }
    memory_pool_open(&bed->mp);
    assert_int_equal(bed->mp.pool.recovery.batches, 1 + BLOCK / PM_LINE);
    memory_pool_close(&bed->mp);
}

/* ---- Hints and bitmaps ----------------------------------------------------------- */

static void word_that_is_no_data_is_ignored_by_recovery(void **state)
{
    static const uint64_t words[] = {1, 8, PM_PAGE, (uint64_t)1 << 40, UINT64_MAX};
    struct bed *bed = *state;

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        craft_lane(&bed->mp, 1)->word = words[i];
        expect_found(bed, "lane 1: word");
        expect_not_undone(bed);
    }
}

/* A repair sets bits without a log. */
static void word_of_a_bitmap_may_be_noted(void **state)
{
    struct bed *bed = *state;

    craft_lane(&bed->mp, 1)->word = craft_super(&bed->mp)->zones_offset;
    assert_ok(memory_pool_attach(&bed->mp));
    assert_ok(check_pool(&bed->mp.pool, NULL, NULL));
    pool_detach(&bed->mp.pool);
    expect_not_undone(bed);
}

/* What bitmaps say of themselves is not believed. */
static void bitmap_that_calls_everything_free_gives_away_no_bitmap(void **state)
{
    struct bed *bed = *state;
    uint64_t zones_offset = craft_super(&bed->mp)->zones_offset;
    uint64_t offset;

    memset(bed->mp.memory + zones_offset, 0, BLOCK);
    memory_pool_open(&bed->mp);
    struct minl2r_tx *tx = begin(&bed->mp.pool);

    while (minl2r_tx_alloc(tx, 1, &offset, NULL) == 0) {
        assert_true(offset > zones_offset + BLOCK);
        assert_true(offset < POOL_SIZE);
    }
    assert_ok(minl2r_tx_abort(tx));
    memory_pool_close(&bed->mp);
}

static void root_of_garbage_is_an_error(void **state)
{
    struct bed *bed = *state;
    struct pm_root *root =
        (struct pm_root *)(void *)(bed->mp.memory +
                                   craft_super(&bed->mp)->zones_offset + BLOCK);
    const struct pm_root garbage[] = {
        {8, 64},          {bed->data, UINT64_MAX}, {bed->data + 1, 64},
        {UINT64_MAX, 64}, {bed->data, 0},          {bed->last, 64}};

    for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
        *root = garbage[i];
        memory_pool_open(&bed->mp);
        assert_null(minl2r_root(&bed->mp.pool, 64));
        assert_int_equal(errno, EUCLEAN);
        memory_pool_close(&bed->mp);
        expect_found(bed, "root");
    }
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(record_of_unknown_type_is_refused),
        test(record_longer_than_its_batch_is_refused),
        test(record_for_an_offset_past_the_pool_is_refused),
        test(record_for_the_superblock_is_refused),
        test(record_for_a_lane_is_refused),
        test(record_for_a_log_area_is_refused),
        test(record_for_a_bitmap_is_refused),
        test(record_that_begins_before_the_data_is_refused),
        test(record_that_ends_past_the_pool_is_refused),
        test(record_whose_end_overflows_is_refused),
        test(record_without_bytes_is_refused),
        test(good_record_before_a_bad_one_is_not_undone_either),
        test(good_lanes_beside_a_bad_one_are_not_undone_either),
        test(last_word_of_the_pool_is_data),
        test(bitmap_is_no_block_to_allocate),
        test(root_block_is_no_block_to_allocate),
        test(log_area_is_no_block_to_allocate),
        test(offset_inside_a_block_is_no_block),
        test(no_blocks_are_refused),
        test(blocks_past_the_end_are_refused),
        test(swap_of_a_slot_that_is_no_word_of_the_data_is_refused),
        test(swap_of_garbage_is_refused),
        test(swap_of_another_length_is_refused),
        test(swap_without_its_blocks_is_refused),
        test(link_to_an_allocated_block_is_refused),
        test(link_back_to_the_same_segment_is_refused),
        test(link_to_a_segment_that_overlaps_another_is_refused),
        test(segment_of_two_lanes_is_refused),
        test(link_with_another_record_in_its_batch_is_refused),
        test(link_behind_another_record_is_refused),
        test(record_for_a_segment_of_its_own_log_is_refused),
        test(record_for_a_segment_of_another_log_is_refused),
        test(freeing_of_a_segment_is_refused),
        test(swap_from_or_to_a_segment_is_refused),
        test(thousand_links_are_followed_and_no_further),
        test(changes_whose_new_bytes_are_all_there_stay),
        test(changes_of_which_one_is_missing_are_undone),
        test(changes_with_another_hash_are_undone),
        test(change_behind_a_slot_is_refused),
        test(change_behind_what_is_allocated_is_refused),
        test(slot_commit_that_frees_is_refused),
        test(slot_commit_that_allocates_no_block_is_refused),
        test(change_of_a_lane_is_refused),
        test(slot_with_a_hash_ends_the_log),
        test(settled_near_its_largest_value_is_refused),
        test(generation_of_a_log_near_its_largest_value_is_refused),
        test(generation_of_a_torn_batch_is_settled),
        test(batch_of_a_settled_generation_is_not_undone),
        test(opening_settles_every_lane_at_a_newer_generation),
        test(batch_with_a_wrong_checksum_ends_the_log),
        test(batch_of_another_lane_ends_the_log),
        test(batch_with_a_wrong_index_ends_the_log),
        test(batch_with_a_wrong_predecessor_ends_the_log),
        test(batch_of_an_impossible_size_ends_the_log),
        test(log_area_filled_to_its_last_line_is_undone),
        test(segment_filled_to_its_last_line_is_undone),
        test(word_that_is_no_data_is_ignored_by_recovery),
        test(word_of_a_bitmap_may_be_noted),
        test(bitmap_that_calls_everything_free_gives_away_no_bitmap),
        test(root_of_garbage_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
