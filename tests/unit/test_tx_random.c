/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random sequences of every public call on transactions, two of them at a time, against
 * the model of model.h: content is compared after every commit and abort, after opening
 * the pool again, and after losing all that a killed process loses.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/model.h"
#include "tests/unit/transact.h"

#define POOL_SIZE ((size_t)16 << 20)
#define WORLDS 2
#define SEED 20120716

struct run {
    struct memory_pool mp;
    struct random random;
    struct world worlds[WORLDS];
    uint64_t blocks_free; /* without any world */
    uint64_t recoveries;
};

static void start(struct run *run, const struct minl2r_options *options, uint64_t seed)
{
    *run = (struct run){.random = {seed}};
    memory_pool_make(&run->mp, POOL_SIZE, options);
    run->blocks_free = free_blocks(&run->mp.pool);
    for (int i = 0; i < WORLDS; i++)
        world_create(&run->worlds[i], &run->mp.pool, &run->random);
}

static void compare_free_blocks(struct run *run)
{
    uint64_t blocks = 0;

    for (int i = 0; i < WORLDS; i++) {
        if (run->worlds[i].tx)
            return;
        blocks += world_blocks(&run->worlds[i]);
    }
    assert_int_equal(free_blocks(&run->mp.pool), run->blocks_free - blocks);
}

static void open_again(struct run *run)
{
    memory_pool_check(&run->mp);
    memory_pool_open(&run->mp);
    for (int i = 0; i < WORLDS; i++)
        world_reopen(&run->worlds[i], &run->mp.pool);
    run->recoveries += run->mp.pool.recovery.lanes;
    compare_free_blocks(run);
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
        world_step(world);
    }
}

static void run_at_random(const struct minl2r_options *options, uint64_t steps)
{
    struct run *run = malloc(sizeof(*run));

    assert_non_null(run);
    for (uint64_t round = 0; round < times_if_long(8, 10); round++) {
        uint64_t seed = SEED + round;

        print_message("seed %llu\n", (unsigned long long)seed);
        start(run, options, seed);
        for (uint64_t i = 0; i < steps; i++)
            step(run);
        assert_true(run->recoveries > 0);
        finish(run);
    }
    free(run);
}

static void any_calls_with_the_defaults_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2};

    (void)state;
    run_at_random(&options, 10000);
}

static void any_calls_with_pointers_always_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2,
                                     .pointer_threshold = MINL2R_POINTER_ALWAYS};

    (void)state;
    run_at_random(&options, 10000);
}

static void any_calls_with_pointers_never_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {
        .lanes = 2, .log_size = 4096, .pointer_threshold = MINL2R_POINTER_NEVER};

    (void)state;
    run_at_random(&options, 10000);
}

static void any_calls_with_the_smallest_blocks_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2, .block_size = 512, .log_size = 4096};

    (void)state;
    run_at_random(&options, 10000);
}

static void any_calls_with_the_largest_blocks_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 2, .block_size = 65536};

    (void)state;
    run_at_random(&options, 1500);
}

static void any_calls_with_one_lane_do_what_the_model_does(void **state)
{
    struct minl2r_options options = {.lanes = 1};

    (void)state;
    run_at_random(&options, 10000);
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
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
