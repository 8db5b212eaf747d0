/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random sequences of every public call on transactions, two of them at a time, against
 * the model of model.h: content is compared after every commit and abort, after opening
 * the pool again, and after losing all that a killed process loses.
 */
#include "tests/unit/long.h"
#include "tests/unit/memory_pool.h"
#include "tests/unit/model.h"
#include "tests/unit/transact.h"

/* ---- Memory that runs out -------------------------------------------------------- */

static bool no_memory;

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return no_memory ? NULL : __real_aligned_alloc(alignment, size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return no_memory ? NULL : __real_calloc(count, size);
}

/* ---- Runs ------------------------------------------------------------------------ */

#define POOL_SIZE ((size_t)16 << 20)
#define WORLDS 2
#define SEED 20120716

struct run {
    struct memory_pool mp;
    struct random random;
    struct world worlds[WORLDS];
    uint64_t blocks_free;  /* without any world */
    uint64_t blocks_taken; /* away: see leave_few_blocks() */
    uint64_t recoveries;
    bool may_fail;
};

/* Takes blocks away until the pool is closed: a few are left, or very few. */
static void leave_few_blocks(struct run *run)
{
    uint64_t left = random_below(&run->random, 100), offset;

    while (run->may_fail && free_blocks(&run->mp.pool) > left) {
        assert_ok(alloc_reserve(&run->mp.pool, 1, 0, &offset));
        run->blocks_taken++;
    }
}

static void start(struct run *run, const struct minl2r_options *options, uint64_t seed,
                  bool may_fail)
{
    *run = (struct run){.random = {seed}, .may_fail = may_fail};
    memory_pool_make(&run->mp, POOL_SIZE, options);
    run->blocks_free = free_blocks(&run->mp.pool);
    for (int i = 0; i < WORLDS; i++)
        world_create(&run->worlds[i], &run->mp.pool, &run->random);
    for (int i = 0; i < WORLDS; i++)
        run->worlds[i].may_fail = may_fail;
    leave_few_blocks(run);
}

static void compare_free_blocks(struct run *run)
{
    uint64_t blocks = 0;

    for (int i = 0; i < WORLDS; i++) {
        if (run->worlds[i].tx)
            return;
        blocks += world_blocks(&run->worlds[i]);
    }
    assert_int_equal(free_blocks(&run->mp.pool),
                     run->blocks_free - run->blocks_taken - blocks);
}

static void open_again(struct run *run)
{
    memory_pool_check(&run->mp);
    memory_pool_open(&run->mp);
    run->blocks_taken = 0;
    for (int i = 0; i < WORLDS; i++)
        world_reopen(&run->worlds[i], &run->mp.pool);
    run->recoveries += run->mp.pool.recovery.lanes;
    compare_free_blocks(run);
    leave_few_blocks(run);
}

static void finish(struct run *run)
{
    for (int i = 0; i < WORLDS; i++)
        world_end(&run->worlds[i], true);
    memory_pool_close(&run->mp);
    open_again(run);
    memory_pool_remove(&run->mp);
    for (int i = 0; i < WORLDS; i++)
        world_destroy(&run->worlds[i]);
}

/* Leaves a transaction at most `room` bytes of memory. */
static void leave_little_memory(struct world *world, size_t room)
{
    struct arena *arena = &world->tx->writes.arena;

    if (arena->chunks->size - arena->used > room)
        arena->used = arena->chunks->size - room / 16 * 16;
    no_memory = true;
}

static void step_of_world(struct run *run, struct world *world)
{
    if (run->may_fail && world->tx && random_below(&run->random, 8) == 0)
        leave_little_memory(world, random_below(&run->random, 1000));
    world_step(world);
    no_memory = false;
}

static void step(struct run *run)
{
    struct world *world = &run->worlds[random_below(&run->random, WORLDS)];
    uint64_t what = random_below(&run->random, 200);

    if (what < 12) {
        world_end(world, what > 2);
        compare_free_blocks(run);
    } else if (what == 12) {
        memory_pool_kill(&run->mp);
        open_again(run);
    } else {
        step_of_world(run, world);
    }
}

static void run_at_random(const struct minl2r_options *options, uint64_t steps,
                          bool may_fail)
{
    struct run *run = malloc(sizeof(*run));
    uint64_t failures = 0;

    assert_non_null(run);
    for (uint64_t round = 0; round < times_if_long(5, 15); round++) {
        uint64_t seed = SEED + round;

        print_message("seed %llu\n", (unsigned long long)seed);
        start(run, options, seed, may_fail);
        for (uint64_t i = 0; i < steps; i++)
            step(run);
        assert_true(run->recoveries > 0);
        for (int i = 0; i < WORLDS; i++)
            failures += run->worlds[i].failures;
        finish(run);
    }
    assert_int_equal(failures > 0, may_fail);
    free(run);
}

static void any_calls_with_the_defaults_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2};

    (void)state;
    run_at_random(&options, 10000, false);
}

static void any_calls_with_pointers_always_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2,
                                     .pointer_threshold = MINL2R_POINTER_ALWAYS};

    (void)state;
    run_at_random(&options, 10000, false);
}

static void any_calls_with_pointers_never_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {
        .lanes = 2, .log_size = 4096, .pointer_threshold = MINL2R_POINTER_NEVER};

    (void)state;
    run_at_random(&options, 10000, false);
}

static void any_calls_with_the_smallest_blocks_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2, .block_size = 512, .log_size = 4096};

    (void)state;
    run_at_random(&options, 10000, false);
}

static void any_calls_with_the_largest_blocks_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2, .block_size = 65536};

    (void)state;
    run_at_random(&options, 1500, false);
}

static void any_calls_with_one_lane_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 1};

    (void)state;
    run_at_random(&options, 10000, false);
}

static void failing_calls_with_the_defaults_do_nothing(void **state)
{
    struct minl2r_options options = {.lanes = 2, .log_size = 4096, .spare_blocks = 1};

    (void)state;
    run_at_random(&options, 10000, true);
}

static void failing_calls_with_pointers_always_do_nothing(void **state)
{
    struct minl2r_options options = {.lanes = 2,
                                     .log_size = 4096,
                                     .pointer_threshold = MINL2R_POINTER_ALWAYS,
                                     .spare_blocks = 10};

    (void)state;
    run_at_random(&options, 10000, true);
}

static void failing_calls_with_the_smallest_blocks_do_nothing(void **state)
{
    struct minl2r_options options = {
        .lanes = 2, .block_size = 512, .log_size = 4096, .spare_blocks = 1};

    (void)state;
    run_at_random(&options, 10000, true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_calls_with_the_defaults_do_what_the_model_does),
        cmocka_unit_test(any_calls_with_pointers_always_do_what_the_model_does),
        cmocka_unit_test(any_calls_with_pointers_never_do_what_the_model_does),
        cmocka_unit_test(any_calls_with_the_smallest_blocks_do_what_the_model_does),
        cmocka_unit_test(any_calls_with_the_largest_blocks_do_what_the_model_does),
        cmocka_unit_test(any_calls_with_one_lane_do_what_the_model_does),
        cmocka_unit_test(failing_calls_with_the_defaults_do_nothing),
        cmocka_unit_test(failing_calls_with_pointers_always_do_nothing),
        cmocka_unit_test(failing_calls_with_the_smallest_blocks_do_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
