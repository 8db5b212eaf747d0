/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The allocator against an array with one state per block, in all edges that alloc.h
 * draws, with zones of every size, as several threads; and what is found in a pool that
 * is nearly full.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/random.h"

#include <errno.h>
#include <pthread.h>

#include "libminl2r/thread.h"

#define SEED 5
#define THREADS 3u
#define QUARANTINE_MAX 512u
#define REFILL_MAX 128u

/* ---- The model ------------------------------------------------------------------- */

/*
 * Of those that were in quarantine, who freed them has a stash: STASHED. What a stash
 * got out of the bitmap is FREE here.
 */
enum block_state {
    FREE,
    STASHED,
    RESERVED,
    ALLOCATED,
    LEAVING,
    FREED,
    QUARANTINED,
    FIXED
};

struct model {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    struct random random;
    struct minl2r_stats stats;
    struct pm_phase phase;
    uint8_t *states;  /* [geo.block_count], enum block_state */
    uint8_t *threads; /* [geo.block_count], of QUARANTINED */
    uint64_t free_count;
    uint64_t quarantined_count;
};

/* The calls that follow are made as one of THREADS. */
static void become_thread(uint32_t number)
{
    thread_number_cached = 1 + number;
}

static void make_model(struct model *model, size_t size, uint32_t block_size)
{
    struct minl2r_options options = {
        .block_size = block_size, .lanes = THREADS, .log_size = 4096};

    become_thread(0);
    *model = (struct model){.random = {SEED}};
    memory_pool_make(&model->mp, size, &options);
    model->pool = &model->mp.pool;
    model->phase = (struct pm_phase){.pm = &model->pool->pm, .stats = &model->stats};
    const struct geometry *geo = &model->pool->geo;

    model->states = calloc(geo->block_count, 1);
    model->threads = calloc(geo->block_count, 1);
    for (uint64_t i = 0; i < geo->block_count; i += (uint64_t)1 << geo->zone_shift)
        model->states[i] = FIXED; /* bitmaps */
    model->states[1] = FIXED;     /* the root block */
    model->free_count = geo->block_count - geo->zone_count - 1;
}

static void remove_model(struct model *model)
{
    memory_pool_remove(&model->mp);
    free(model->states);
    free(model->threads);
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

static bool is_free(const struct model *model, uint64_t index)
{
    return model->states[index] == FREE || model->states[index] == STASHED;
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

static bool is_free_run(const struct model *model, uint64_t index, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (index + i >= block_count(model) || !is_free(model, index + i))
            return false;
    return true;
}

static void set_states(struct model *model, uint64_t index, uint64_t count,
                       enum block_state state)
{
    for (uint64_t i = 0; i < count; i++) {
        model->free_count -= is_free(model, index + i);
        model->free_count += state == FREE || state == STASHED;
        model->quarantined_count -= model->states[index + i] == QUARANTINED;
        model->quarantined_count += state == QUARANTINED;
    }
    memset(model->states + index, (int)state, count);
}

static void compare(const struct model *model)
{
    uint64_t refilled = 0;

    assert_int_equal(alloc_free_blocks(model->pool),
                     model->free_count + model->quarantined_count);
    for (uint64_t i = 0; i < block_count(model); i++) {
        uint8_t state = model->states[i];
        struct block_run block = run_at(model, i, 1);
        bool is_reserved = alloc_is_reserved(model->pool, block.offset);

        if (state == FREE)
            refilled += is_reserved;
        else if (state != STASHED) /* robbed since, or not */
            assert_int_equal(is_reserved, state == RESERVED || state == FREED ||
                                              state == QUARANTINED);
        assert_int_equal(alloc_is_allocated(model->pool, block),
                         state == ALLOCATED || state == LEAVING || state == FIXED);
    }
    assert_in_range(refilled, 0, alloc_quarantines(model->pool) * REFILL_MAX);
}

/* ---- Edges ----------------------------------------------------------------------- */

/* Is there a run of `count` free blocks? */
static bool has_run(const struct model *model, uint64_t count)
{
    for (uint64_t i = 0; i < block_count(model); i++)
        if (is_free_run(model, i, count))
            return true;
    return false;
}

/* As transactions do. */
static int reserve_for_swap(struct minl2r_pool *pool, uint64_t spare, uint64_t *offset)
{
    int result = alloc_reserve_swap(pool, spare, offset);

    return result == -ENOSPC ? alloc_reserve(pool, 1, spare, offset) : result;
}

static void reserve(struct model *model, uint64_t count, uint64_t spare)
{
    uint64_t offset;
    int result = count == 1 && random_below(&model->random, 2)
                     ? reserve_for_swap(model->pool, spare, &offset)
                     : alloc_reserve(model->pool, count, spare, &offset);

    if (result < 0) {
        assert_int_equal(result, -ENOSPC);
        assert_false(model->free_count >= count + spare && has_run(model, count));
        return;
    }
    assert_true(model->free_count >= count + spare);
    assert_true(is_blocks(&model->pool->geo, offset, count));
    uint64_t index = block_index(&model->pool->geo, offset);

    assert_true(is_free_run(model, index, count));
    set_states(model, index, count, RESERVED);
}

/* allocated -> in quarantine, of the thread that it is now, while there is room. */
static void quarantine(struct model *model, uint64_t index, uint64_t count)
{
    uint32_t own = alloc_own_quarantine(model->pool);

    for (uint64_t i = index; i < index + count; i++) {
        struct block_run block = run_at(model, i, 1);
        uint64_t waiting = alloc_quarantine_count(model->pool, own);
        bool has_room = alloc_quarantine(model->pool, &block.offset, 1) == 1;

        assert_int_equal(has_room, waiting < QUARANTINE_MAX);
        if (!has_room)
            return;
        alloc_unpublish(model->pool, &model->phase, block);
        model->threads[i] = (uint8_t)own;
        set_states(model, i, 1, QUARANTINED);
    }
}

static void end_quarantine(struct model *model, uint32_t which)
{
    alloc_end_quarantine(model->pool, which, alloc_quarantine_mark(model->pool, which));
    for (uint64_t i = 0; i < block_count(model); i++)
        if (model->states[i] == QUARANTINED && model->threads[i] == which)
            set_states(model, i, 1, STASHED);
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
        if (other_way) {
            quarantine(model, index, count);
            break;
        }
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
    case QUARANTINED:
        if (random_below(&model->random, 16) == 0)
            end_quarantine(model, model->threads[index]);
        break;
    case FREE:
    case STASHED:
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
    become_thread((uint32_t)random_below(&model->random, THREADS));
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
        become_thread((uint32_t)random_below(&model.random, THREADS));
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

/* Runs that begin and end anywhere in words, found from before them and from behind. */
static void run_of_every_length_is_found_across_words(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)4 << 20, 4096);
    take_all(&model);
    for (uint64_t count = 2; count <= 130; count++)
        for (uint64_t at = 200; at < 264; at++) {
            uint64_t hint = at % 2 ? 80 : 700;

            alloc_release(model.pool, run_at(&model, at, count));
            alloc_release(model.pool, run_at(&model, hint, 1));
            assert_int_equal(alloc_reserve(model.pool, count + 1, 0, &offset), -ENOSPC);
            assert_ok(alloc_reserve(model.pool, count, 0, &offset));
            assert_int_equal(block_index(&model.pool->geo, offset), at);
            assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
            assert_int_equal(block_index(&model.pool->geo, offset), hint);
        }
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

/* ---- Stashes --------------------------------------------------------------------- */

/* Frees a block of a full pool as thread `number`, as slot commits do. */
static void put_in_quarantine(struct model *model, uint32_t number, uint64_t index)
{
    struct block_run block = run_at(model, index, 1);

    become_thread(number);
    assert_int_equal(alloc_quarantine(model->pool, &block.offset, 1), 1);
}

static void end_quarantine_of(struct model *model, uint32_t number)
{
    become_thread(number);
    uint32_t own = alloc_own_quarantine(model->pool);

    alloc_end_quarantine(model->pool, own, alloc_quarantine_mark(model->pool, own));
}

static uint64_t reserve_as(const struct model *model, uint32_t number)
{
    uint64_t offset;

    become_thread(number);
    assert_ok(reserve_for_swap(model->pool, 0, &offset));
    return block_index(&model->pool->geo, offset);
}

static void assert_no_space_as(const struct model *model, uint32_t number,
                               uint64_t count, uint64_t spare)
{
    uint64_t offset;

    become_thread(number);
    if (count == 1)
        assert_int_equal(alloc_reserve_swap(model->pool, spare, &offset), -ENOSPC);
    assert_int_equal(alloc_reserve(model->pool, count, spare, &offset), -ENOSPC);
}

static void thread_takes_what_it_freed_itself_oldest_first(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    for (uint32_t i = 0; i < 20; i++)
        for (uint32_t number = 0; number < THREADS; number++)
            put_in_quarantine(&model, number, 1000 * number + 100 - i);
    for (uint32_t number = 0; number < THREADS; number++)
        end_quarantine_of(&model, number);
    for (uint32_t i = 0; i < 20; i++)
        for (uint32_t number = 0; number < THREADS; number++)
            assert_int_equal(reserve_as(&model, number), 1000 * number + 100 - i);
    remove_model(&model);
}

static void stash_is_robbed_only_where_nothing_else_is_free(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    put_in_quarantine(&model, 0, 100);
    put_in_quarantine(&model, 0, 300);
    put_in_quarantine(&model, 0, 200);
    end_quarantine_of(&model, 0);
    alloc_release(model.pool, run_at(&model, 9000, 1));
    assert_int_equal(reserve_as(&model, 1), 9000);
    assert_int_equal(reserve_as(&model, 0), 100);
    uint64_t robbed = reserve_as(&model, 1), left = reserve_as(&model, 0);

    assert_true((robbed == 200 && left == 300) || (robbed == 300 && left == 200));
    remove_model(&model);
}

static void blocks_in_quarantine_are_free_but_not_to_be_had(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    for (uint32_t number = 0; number < THREADS; number++)
        put_in_quarantine(&model, number, 100 + number);
    assert_int_equal(alloc_free_blocks(model.pool), THREADS);
    for (uint32_t number = 0; number < THREADS; number++)
        assert_no_space_as(&model, number, 1, 0);
    end_quarantine_of(&model, 1);
    assert_int_equal(reserve_as(&model, 2), 101);
    assert_no_space_as(&model, 1, 1, 0);
    remove_model(&model);
}

/* A mark is not overtaken by what is freed after it. */
static void quarantine_ends_up_to_the_mark(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    put_in_quarantine(&model, 0, 100);
    uint32_t own = alloc_own_quarantine(model.pool);
    uint64_t mark = alloc_quarantine_mark(model.pool, own);

    put_in_quarantine(&model, 0, 200);
    alloc_end_quarantine(model.pool, own, mark);
    assert_int_equal(alloc_quarantine_count(model.pool, own), 1);
    assert_int_equal(reserve_as(&model, 0), 100);
    assert_no_space_as(&model, 0, 1, 0);
    remove_model(&model);
}

static void run_is_found_in_several_stashes(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    for (uint32_t i = 0; i < 2 * THREADS; i++)
        put_in_quarantine(&model, i % THREADS, 100 + i);
    for (uint32_t number = 0; number < THREADS; number++) {
        assert_no_space_as(&model, 0, 2 * THREADS, 0);
        end_quarantine_of(&model, number);
    }
    assert_ok(alloc_reserve(model.pool, 2 * THREADS, 0, &offset));
    assert_int_equal(block_index(&model.pool->geo, offset), 100);
    assert_int_equal(alloc_free_blocks(model.pool), 0);
    remove_model(&model);
}

static void spare_blocks_may_lie_in_stashes(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    for (uint32_t taker = 0; taker < THREADS; taker++) {
        make_model(&model, (size_t)8 << 20, 512);
        take_all(&model);
        put_in_quarantine(&model, 0, 100);
        put_in_quarantine(&model, 1, 200);
        end_quarantine_of(&model, 0);
        end_quarantine_of(&model, 1);
        assert_no_space_as(&model, taker, 1, 2);
        assert_ok(alloc_reserve(model.pool, 1, 1, &offset));
        assert_no_space_as(&model, taker, 1, 1);
        assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
        assert_no_space_as(&model, taker, 1, 0);
        remove_model(&model);
    }
}

/* ---- Stashes out of the bitmap --------------------------------------------------- */

/* What blocks of a bitmap line are for: swaps of a thread, or other things of one. */
struct lines {
    uint8_t users[64]; /* 0: nobody yet */
};

static void use_line(struct lines *lines, uint64_t index, uint32_t number, bool swap)
{
    uint8_t user = (uint8_t)(1 + 2 * number + swap);
    uint8_t *line = &lines->users[index / (PM_LINE * 8)];

    assert_true(*line == 0 || *line == user);
    *line = user;
}

static void swaps_share_no_bitmap_line_with_anything(void **state)
{
    struct model model;
    struct lines lines = {{0}};
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    for (uint32_t i = 0; i < 1200; i++)
        for (uint32_t number = 0; number < THREADS; number++) {
            use_line(&lines, reserve_as(&model, number), number, true);
            if (i % 2)
                continue;
            assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
            use_line(&lines, block_index(&model.pool->geo, offset), number, false);
        }
    remove_model(&model);
}

/* Overwrites by slot commits, each freeing what another one took. */
static void swaps_go_on_in_lines_of_their_own(void **state)
{
    struct model model;
    struct lines lines = {{0}};
    uint64_t blocks[THREADS][100];

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    for (uint32_t i = 0; i < 20000; i++)
        for (uint32_t number = 0; number < THREADS; number++) {
            uint64_t *block = &blocks[number][i < 100 ? i : i * 37 % 100];
            uint64_t old = *block;

            *block = reserve_as(&model, number);
            use_line(&lines, *block, number, true);
            if (i < 100)
                continue;
            put_in_quarantine(&model, number, old);
            if (i % 10 == 0)
                end_quarantine_of(&model, number);
        }
    remove_model(&model);
}

/* And nobody finds one that another one has. */
static void threads_find_every_block_for_swaps(void **state)
{
    struct model model;
    uint64_t count = 0, offset;
    int result = 0;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    for (; result == 0; count += result == 0) {
        become_thread((uint32_t)(count % THREADS));
        result = count % 5 == 0 ? alloc_reserve(model.pool, 1, 0, &offset)
                                : reserve_for_swap(model.pool, 0, &offset);
        if (result < 0)
            break;
        uint64_t index = block_index(&model.pool->geo, offset);

        assert_int_equal(model.states[index], FREE);
        set_states(&model, index, 1, RESERVED);
    }
    assert_int_equal(result, -ENOSPC);
    assert_int_equal(model.free_count, 0);
    compare(&model);
    remove_model(&model);
}

static void refilled_stash_is_free_for_all(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    for (uint32_t number = 0; number < THREADS; number++)
        reserve_as(&model, number);
    assert_int_equal(alloc_free_blocks(model.pool), model.free_count - THREADS);
    assert_int_equal(take_all(&model), model.free_count - THREADS);
    remove_model(&model);
}

/* In one word: small pools are in few. */
static void refill_leaves_spare_blocks(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)1 << 20, 4096);
    uint64_t spare = model.free_count - REFILL_MAX / 2;

    for (uint32_t i = 0; i < REFILL_MAX / 2; i++)
        assert_ok(alloc_reserve_swap(model.pool, spare, &offset));
    assert_no_space_as(&model, 0, 1, spare);
    assert_int_equal(take_all(&model), spare);
    remove_model(&model);
}

/* ---- Lines that several threads use ---------------------------------------------- */

/* Frees a block as a slot commit of that thread does. */
static void free_as(struct model *model, uint32_t number, uint64_t index)
{
    become_thread(number);
    alloc_unpublish(model->pool, &model->phase, run_at(model, index, 1));
    put_in_quarantine(model, number, index);
    end_quarantine_of(model, number);
}

/*
 * A line that other threads use, too, gets the block back, and the thread takes
 * another.
 */
static void freed_block_of_a_shared_line_leaves_the_stash(void **state)
{
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    uint64_t free_blocks = alloc_free_blocks(model.pool), offset;

    become_thread(1);
    assert_ok(alloc_reserve(model.pool, 2, 0, &offset));
    uint64_t first = block_index(&model.pool->geo, offset);

    alloc_publish(model.pool, &model.phase, run_at(&model, first, 2));
    free_as(&model, 1, first);
    assert_int_equal(reserve_as(&model, 1), first); /* nobody else's line */
    become_thread(1);
    alloc_publish(model.pool, &model.phase, run_at(&model, first, 1));
    free_as(&model, 2, first);
    assert_int_equal(alloc_free_blocks(model.pool), free_blocks - 1);
    assert_int_not_equal(reserve_as(&model, 2) / 512, first / 512);
    assert_int_equal(alloc_free_blocks(model.pool), free_blocks - 2);
    assert_false(alloc_is_reserved(model.pool, run_at(&model, first, 1).offset));
    free_as(&model, 2, first + 1); /* it is that thread's line by now */
    uint32_t refilled = 1;

    while (refilled <= REFILL_MAX && reserve_as(&model, 2) != first + 1)
        refilled++;
    assert_in_range(refilled, 1, REFILL_MAX);
    remove_model(&model);
}

/* Where little else is free, the next refill would bring it back. */
static void freed_block_of_a_shared_line_stays_where_blocks_are_scarce(void **state)
{
    struct model model;
    uint64_t offset;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    become_thread(1);
    while (alloc_free_blocks(model.pool) > block_count(&model) / 8)
        assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
    assert_ok(alloc_reserve(model.pool, 1, 0, &offset));
    alloc_publish(model.pool, &model.phase, (struct block_run){offset, 1});
    uint64_t index = block_index(&model.pool->geo, offset);

    free_as(&model, 2, index);
    assert_int_equal(reserve_as(&model, 2), index);
    remove_model(&model);
}

/* ---- Quarantine that is full ----------------------------------------------------- */

/* What may be reserved makes room by going back to the bitmap. */
static void quarantine_that_is_full_has_room_once_it_has_ended(void **state)
{
    struct model model;
    uint64_t index = 0;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    take_all(&model);
    become_thread(1);
    for (uint32_t i = 0; i < QUARANTINE_MAX - 1; i++)
        put_in_quarantine(&model, 1, ++index);
    const uint64_t more[] = {run_at(&model, ++index, 1).offset,
                             run_at(&model, 2000, 1).offset};

    assert_int_equal(alloc_quarantine(model.pool, more, 2), 1);
    assert_int_equal(alloc_quarantine(model.pool, more + 1, 1), 0);
    end_quarantine_of(&model, 1);
    put_in_quarantine(&model, 1, 2000);
    assert_int_equal(alloc_free_blocks(model.pool), QUARANTINE_MAX + 1);
    for (uint32_t i = 0; i < QUARANTINE_MAX; i++)
        assert_in_range(reserve_as(&model, 0), 1, QUARANTINE_MAX);
    assert_no_space_as(&model, 0, 1, 0);
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

/* ---- Bits past the cache --------------------------------------------------------- */

static void bits_of_a_word_change_at_once(void **state)
{
    struct bit_changes bits = {0};
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    alloc_publish(model.pool, &model.phase, run_at(&model, 70, 4));
    assert_true(alloc_add_bits(model.pool, &bits, run_at(&model, 600, 2), true));
    assert_true(alloc_add_bits(model.pool, &bits, run_at(&model, 71, 2), false));
    assert_true(alloc_add_bits(model.pool, &bits, run_at(&model, 80, 1), true));
    assert_int_equal(bits.count, 2);
    alloc_stream_bits(model.pool, &model.phase, &bits);
    assert_ok(pm_fence(&model.phase));
    alloc_unlock_bits(model.pool, &bits);
    assert_int_equal(bits.count, 0);
    set_states(&model, 70, 1, ALLOCATED);
    set_states(&model, 73, 1, ALLOCATED);
    set_states(&model, 80, 1, ALLOCATED);
    set_states(&model, 600, 2, ALLOCATED);
    alloc_reload(model.pool);
    compare(&model);
    remove_model(&model);
}

static void bits_of_too_many_words_do_not_fit(void **state)
{
    struct bit_changes bits = {0};
    struct model model;

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    for (uint64_t i = BIT_WORDS_MAX; i > 0; i--)
        assert_true(alloc_add_bits(model.pool, &bits, run_at(&model, 64 * i, 1), true));
    assert_true(alloc_add_bits(model.pool, &bits, run_at(&model, 65, 63), true));
    assert_false(alloc_add_bits(model.pool, &bits, run_at(&model, 10, 1), true));
    for (uint32_t i = 1; i < bits.count; i++)
        assert_true(bits.words[i - 1].index < bits.words[i].index);
    remove_model(&model);
}

/* Each has every other bit of two words, and finds after its fence what it stored. */
#define FLIPS 1000000u
struct flipper {
    struct model *model;
    pthread_barrier_t *start;
    uint64_t first;
    bool streams;
    uint32_t wrong;
};

static void flip(struct flipper *flipper, struct pm_phase *phase, struct block_run run,
                 bool allocated)
{
    struct minl2r_pool *pool = flipper->model->pool;
    struct bit_changes bits = {0};

    if (flipper->streams) {
        alloc_add_bits(pool, &bits, run, allocated);
        alloc_stream_bits(pool, phase, &bits);
    } else if (allocated) {
        alloc_publish(pool, phase, run);
    } else {
        alloc_unpublish(pool, phase, run);
    }
    pm_fence(phase);
    alloc_unlock_bits(pool, &bits);
    flipper->wrong += alloc_is_allocated(pool, run) != allocated;
}

static void *flip_bits(void *arg)
{
    struct flipper *flipper = arg;
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &flipper->model->pool->pm, .stats = &stats};

    pthread_barrier_wait(flipper->start);
    for (uint32_t i = 0; i < FLIPS; i++) {
        uint64_t index = 512 + flipper->first + 2 * (i % 64);

        flip(flipper, &phase, run_at(flipper->model, index, 1), i / 64 % 2 == 0);
    }
    return NULL;
}

static void threads_change_neighbouring_bits(void **state)
{
    struct model model;
    pthread_barrier_t start;
    pthread_t threads[2];

    (void)state;
    make_model(&model, (size_t)8 << 20, 512);
    pthread_barrier_init(&start, NULL, 2);
    for (int streams = 0; streams < 2; streams++) {
        struct flipper flippers[2] = {{&model, &start, 0, true, 0},
                                      {&model, &start, 1, streams, 0}};

        for (int i = 0; i < 2; i++)
            assert_ok(pthread_create(&threads[i], NULL, flip_bits, &flippers[i]));
        for (int i = 0; i < 2; i++) {
            assert_ok(pthread_join(threads[i], NULL));
            assert_int_equal(flippers[i].wrong, 0);
        }
    }
    pthread_barrier_destroy(&start);
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
        cmocka_unit_test(run_of_every_length_is_found_across_words),
        cmocka_unit_test(largest_run_fills_a_zone),
        cmocka_unit_test(spare_blocks_are_left),
        cmocka_unit_test(block_given_back_last_is_taken_first),
        cmocka_unit_test(thread_takes_what_it_freed_itself_oldest_first),
        cmocka_unit_test(stash_is_robbed_only_where_nothing_else_is_free),
        cmocka_unit_test(blocks_in_quarantine_are_free_but_not_to_be_had),
        cmocka_unit_test(quarantine_ends_up_to_the_mark),
        cmocka_unit_test(run_is_found_in_several_stashes),
        cmocka_unit_test(spare_blocks_may_lie_in_stashes),
        cmocka_unit_test(swaps_share_no_bitmap_line_with_anything),
        cmocka_unit_test(swaps_go_on_in_lines_of_their_own),
        cmocka_unit_test(threads_find_every_block_for_swaps),
        cmocka_unit_test(refilled_stash_is_free_for_all),
        cmocka_unit_test(refill_leaves_spare_blocks),
        cmocka_unit_test(freed_block_of_a_shared_line_leaves_the_stash),
        cmocka_unit_test(freed_block_of_a_shared_line_stays_where_blocks_are_scarce),
        cmocka_unit_test(quarantine_that_is_full_has_room_once_it_has_ended),
        cmocka_unit_test(leaving_of_what_is_not_allocated_is_einval_and_marks_nothing),
        cmocka_unit_test(segment_is_claimed_once_and_only_where_it_is_free),
        cmocka_unit_test(reload_finds_what_is_allocated_on_media),
        cmocka_unit_test(flush_covers_the_bits_of_the_run),
        cmocka_unit_test(bits_of_a_word_change_at_once),
        cmocka_unit_test(bits_of_too_many_words_do_not_fit),
        cmocka_unit_test(threads_change_neighbouring_bits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
