/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator against an array with one state per block, in all edges that alloc.h
 * draws, with zones of every size; and what is found in a pool that is nearly full.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/random.h"

#include <errno.h>

#define SEED 5

/* ---- The model ------------------------------------------------------------------- */

enum block_state { FREE, RESERVED, ALLOCATED, LEAVING, FREED, FIXED };

struct model {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    struct random random;
    struct minl2r_stats stats;
    struct pm_phase phase;
    uint8_t *states; /* [geo.block_count], enum block_state */
    uint64_t free_count;
};

static void make_model(struct model *model, size_t size, uint32_t block_size)
{
    struct minl2r_options options = {
        .block_size = block_size, .lanes = 1, .log_size = 4096};

    *model = (struct model){.random = {SEED}};
    memory_pool_make(&model->mp, size, &options);
    model->pool = &model->mp.pool;
    model->phase = (struct pm_phase){.pm = &model->pool->pm, .stats = &model->stats};
    const struct geometry *geo = &model->pool->geo;

    model->states = calloc(geo->block_count, 1);
    for (uint64_t i = 0; i < geo->block_count; i += (uint64_t)1 << geo->zone_shift)
        model->states[i] = FIXED; /* bitmaps */
    model->states[1] = FIXED;     /* the root block */
    model->free_count = geo->block_count - geo->zone_count - 1;
}

static void remove_model(struct model *model)
{
    memory_pool_remove(&model->mp);
    free(model->states);
}

static struct block_run run_at(const struct model *model, uint64_t index,
                               uint64_t count)
{
    return (struct block_run){block_offset(&model->pool->geo, index), count};
}

static uint64_t block_count(const struct model *model)
{
    return model->pool->geo.block_count;
}

/* The length, at most `limit`, of the run of blocks in one state that begins at `index`
 * and ends with its zone. */
static uint64_t run_length(const struct model *model, uint64_t index, uint64_t limit)
{
    uint64_t length = 0;

    while (length < limit && index + length < block_count(model) &&
           model->states[index + length] == model->states[index])
        length++;
    return length;
}

static void set_states(struct model *model, uint64_t index, uint64_t count,
                       enum block_state state)
{
    for (uint64_t i = 0; i < count; i++) {
        model->free_count -= model->states[index + i] == FREE;
        model->free_count += state == FREE;
    }
    memset(model->states + index, (int)state, count);
}

static void compare(const struct model *model)
{
    assert_int_equal(alloc_free_blocks(model->pool), model->free_count);
    for (uint64_t i = 0; i < block_count(model); i++) {
        uint8_t state = model->states[i];
        struct block_run block = run_at(model, i, 1);

        assert_int_equal(alloc_is_reserved(model->pool, block.offset),
                         state == RESERVED || state == FREED);
        assert_int_equal(alloc_is_allocated(model->pool, block),
                         state == ALLOCATED || state == LEAVING || state == FIXED);
    }
}

/* ---- Edges ----------------------------------------------------------------------- */

/* Is there a run of `count` free blocks? */
static bool has_run(const struct model *model, uint64_t count)
{
    for (uint64_t i = 0; i < block_count(model); i++)
        if (model->states[i] == FREE && run_length(model, i, count) == count)
            return true;
    return false;
}

static void reserve(struct model *model, uint64_t count, uint64_t spare)
{
    uint64_t offset;
    int result = alloc_reserve(model->pool, count, spare, &offset);

    if (result < 0) {
        assert_int_equal(result, -ENOSPC);
        assert_false(model->free_count >= count + spare && has_run(model, count));
        return;
    }
    assert_true(model->free_count >= count + spare);
    assert_true(is_blocks(&model->pool->geo, offset, count));
    uint64_t index = block_index(&model->pool->geo, offset);

    assert_int_equal(model->states[index], FREE);
    assert_int_equal(run_length(model, index, count), count);
    set_states(model, index, count, RESERVED);
}

/* Moves a run of blocks that are in one state, from `index` on, along one of the edges.
 */
static void move_on(struct model *model, uint64_t index, uint64_t limit)
{
    uint64_t count = run_length(model, index, limit);
    struct block_run run = run_at(model, index, count);
    bool other_way = random_below(&model->random, 2);

    switch ((enum block_state)model->states[index]) {
    case RESERVED:
        if (other_way)
            alloc_release(model->pool, run);
        else
            alloc_publish(model->pool, &model->phase, run);
        set_states(model, index, count, other_way ? FREE : ALLOCATED);
        break;
    case ALLOCATED:
        assert_ok(alloc_mark_leaving(model->pool, run));
        set_states(model, index, count, LEAVING);
        break;
    case LEAVING:
        assert_int_equal(alloc_mark_leaving(model->pool, run), -EINVAL);
        if (other_way)
            alloc_unmark_leaving(model->pool, run);
        else
            alloc_unpublish(model->pool, &model->phase, run);
        set_states(model, index, count, other_way ? ALLOCATED : FREED);
        break;
    case FREED:
        alloc_release_freed(model->pool, run);
        set_states(model, index, count, FREE);
        break;
    case FREE:
    case FIXED:
        break;
    }
}

static uint64_t some_count(struct model *model)
{
    return random_below(&model->random, 4) ? 1 : 1 + random_below(&model->random, 150);
}

static void step(struct model *model)
{
    if (random_below(&model->random, 2))
        reserve(model, some_count(model), random_below(&model->random, 20));
    else
        move_on(model, random_below(&model->random, block_count(model)),
                some_count(model));
}

static void run_model(size_t size, uint32_t block_size, int steps)
{
    struct model model;

    make_model(&model, size, block_size);
    compare(&model);
    for (int i = 0; i < steps; i++) {
        step(&model);
        if (i % 200 == 0)
            compare(&model);
    }
    compare(&model);
    remove_model(&model);
}

static void small_blocks_in_many_zones_follow_the_model(void **state)
{
    (void)state;
    run_model((size_t)8 << 20, 512, 20000);
}

static void default_blocks_follow_the_model(void **state)
{
    (void)state;
    run_model((size_t)4 << 20, 4096, 20000);
}

static void large_blocks_follow_the_model(void **state)
{
    (void)state;
    run_model((size_t)16 << 20, 65536, 20000);
}

/* A last zone that is short, and one that would hold its bitmap only. */
static void last_zone_of_any_length_follows_the_model(void **state)
{
    (void)state;
    for (size_t blocks = 0; blocks < 66; blocks += blocks < 3 ? 1 : 21)
        run_model((size_t)(4096 + 4096 + 8192) + ((size_t)4096 + blocks) * 512, 512,
                  2000);
}

/* ---- Nearly full ----------------------------------------------------------------- */

static uint64_t take_all(struct model *model)
{
    uint64_t count = 0, offset;

    while (alloc_reserve(model->pool, 1, 0, &offset) == 0)
        count++;
    return count;
}

static void every_block_is_found(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    assert_int_equal(take_all(&model), model.free_count);
    assert_int_equal(alloc_free_blocks(model.pool), 0);
    remove_model(&model);
}

static void last_free_block_is_found_wherever_it_is(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    for (uint64_t i = 2; i < block_count(&model); i += 61) {
        if (model.states[i] == FIXED)
            continue;
        alloc_release(model.pool, run_at(&model, i, 1));
        assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
        assert_int_equal(block_index(&model.pool->geo, offset), i);
    }
    remove_model(&model);
}

/* 95 % full, as a file system is in the end: blocks and runs come and go. */
static void pool_that_is_95_percent_full_follows_the_model(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    uint64_t room = model.free_count / 20;

    for (int i = 0; i < 30000; i++) {
        while (model.free_count > room)
            reserve(&model, 1, 0);
        move_on(&model, random_below(&model.random, block_count(&model)), 8);
        reserve(&model, 1 + random_below(&model.random, 4), 0);
    }
    compare(&model);
    remove_model(&model);
}

static void run_is_found_only_where_it_fits(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)4 << 20, 4096);
    take_all(&model);
    for (uint64_t i = 10; i < 300; i += 3) /* holes of two */
        alloc_release(model.pool, run_at(&model, i, 2));
    alloc_release(model.pool, run_at(&model, 400, 130));
    assert_int_equal(alloc_reserve(model.pool, 131, 0, &offset), -ENOSPC);
    assert_ok(alloc_reserve(model.pool, 130, 0, &offset));
    assert_int_equal(block_index(&model.pool->geo, offset), 400);
    assert_int_equal(alloc_reserve(model.pool, 3, 0, &offset), -ENOSPC);
    assert_ok(alloc_reserve(model.pool, 2, 0, &offset));
    remove_model(&model);
}

static void largest_run_fills_a_zone(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    assert_ok(alloc_reserve(model.pool, 4095, 0, &offset));
    assert_int_equal(alloc_reserve(model.pool, 4096, 0, &offset), -ENOSPC);
    remove_model(&model);
}

static void spare_blocks_are_left(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)1 << 20, 4096);
    uint64_t count = model.free_count;

    assert_int_equal(alloc_reserve(model.pool, 1, count, &offset), -ENOSPC);
    assert_int_equal(alloc_reserve(model.pool, 3, count - 2, &offset), -ENOSPC);
    assert_ok(alloc_reserve(model.pool, 3, count - 3, &offset));
    assert_int_equal(alloc_reserve(model.pool, UINT64_MAX, 0, &offset), -ENOSPC);
    assert_int_equal(alloc_reserve(model.pool, 2, UINT64_MAX, &offset), -ENOSPC);
    remove_model(&model);
}

/* A thread takes the block again that it gave back last: its bitmap line is at hand. */
static void block_given_back_last_is_taken_first(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    alloc_release(model.pool, run_at(&model, 100, 1));
    alloc_release(model.pool, run_at(&model, 9000, 1));
    assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
    assert_int_equal(block_index(&model.pool->geo, offset), 9000);
    remove_model(&model);
}

/* ---- What is refused ------------------------------------------------------------- */

static void leaving_of_what_is_not_allocated_is_einval_and_marks_nothing(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)1 << 20, 4096);
    alloc_publish(model.pool, &model.phase, run_at(&model, 10, 3));
    assert_int_equal(alloc_mark_leaving(model.pool, run_at(&model, 10, 4)), -EINVAL);
    assert_int_equal(alloc_mark_leaving(model.pool, run_at(&model, 9, 2)), -EINVAL);
    assert_ok(alloc_mark_leaving(model.pool, run_at(&model, 11, 1)));
    assert_int_equal(alloc_mark_leaving(model.pool, run_at(&model, 10, 3)), -EINVAL);
    assert_ok(alloc_mark_leaving(model.pool, run_at(&model, 10, 1)));
    remove_model(&model);
}

static void segment_is_claimed_once_and_only_where_it_is_free(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)1 << 20, 4096);
    alloc_publish(model.pool, &model.phase, run_at(&model, 10, 1));
    alloc_reload(model.pool);
    assert_false(alloc_claim_segment(model.pool, run_at(&model, 9, 3)));
    assert_true(alloc_claim_segment(model.pool, run_at(&model, 20, 3)));
    assert_false(alloc_claim_segment(model.pool, run_at(&model, 22, 3)));
    assert_true(alloc_is_claimed(model.pool, run_at(&model, 22, 3)));
    assert_false(alloc_is_claimed(model.pool, run_at(&model, 23, 3)));
    assert_false(alloc_is_claimed(model.pool, run_at(&model, 10, 1)));
    alloc_reload(model.pool);
    assert_false(alloc_is_claimed(model.pool, run_at(&model, 20, 3)));
    remove_model(&model);
}

static void reload_finds_what_is_allocated_on_media(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    alloc_publish(model.pool, &model.phase, run_at(&model, 4000, 90));
    set_states(&model, 4000, 90, ALLOCATED);
    assert_ok(alloc_reserve(model.pool, 7, 0, &offset)); /* is forgotten */
    alloc_reload(model.pool);
    compare(&model);
    remove_model(&model);
}

/* The flush covers the words of the run's bits, and no more lines than those. */
static void flush_covers_the_bits_of_the_run(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    alloc_flush(model.pool, &model.phase, run_at(&model, 5, 1));
    assert_int_equal(model.stats.lines_flushed, 1);
    alloc_flush(model.pool, &model.phase, run_at(&model, 600, 1500));
    assert_int_equal(model.stats.lines_flushed, 1 + 4);
    assert_ok(pm_fence(&model.phase));
    remove_model(&model);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_blocks_in_many_zones_follow_the_model),
        cmocka_unit_test(default_blocks_follow_the_model),
        cmocka_unit_test(large_blocks_follow_the_model),
        cmocka_unit_test(last_zone_of_any_length_follows_the_model),
        cmocka_unit_test(every_block_is_found),
        cmocka_unit_test(last_free_block_is_found_wherever_it_is),
        cmocka_unit_test(pool_that_is_95_percent_full_follows_the_model),
        cmocka_unit_test(run_is_found_only_where_it_fits),
        cmocka_unit_test(largest_run_fills_a_zone),
        cmocka_unit_test(spare_blocks_are_left),
        cmocka_unit_test(block_given_back_last_is_taken_first),
        cmocka_unit_test(leaving_of_what_is_not_allocated_is_einval_and_marks_nothing),
        cmocka_unit_test(segment_is_claimed_once_and_only_where_it_is_free),
        cmocka_unit_test(reload_finds_what_is_allocated_on_media),
        cmocka_unit_test(flush_covers_the_bits_of_the_run),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
