/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operation of operations.c, alone, after another and amid another, crashed in
 * every way that explore.h knows. MINL2R_TEST_LONG=ON: more states and all pairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/operations.h"

#define SEED 1

static const struct minl2r_options small_log = {
    .block_size = BED_BLOCK_SIZE, .lanes = 2, .log_size = MINL2R_LOG_SIZE_MIN};

/* One lane for commits only: what holds a lane while it goes on has another. */
static const struct minl2r_options always_swap = {.block_size = BED_BLOCK_SIZE,
                                                  .lanes = 1,
                                                  .log_size = MINL2R_LOG_SIZE_MIN,
                                                  .pointer_threshold =
                                                      MINL2R_POINTER_ALWAYS};

static const struct minl2r_options never_swap = {.block_size = BED_BLOCK_SIZE,
                                                 .lanes = 1,
                                                 .log_size = MINL2R_LOG_SIZE_MIN,
                                                 .pointer_threshold =
                                                     MINL2R_POINTER_NEVER};

/* All that the tests of a group share. */
struct setting {
    struct bed bed;
    struct explore_options options;
    struct explore_count count;
};

/* One test: an operation in a setting. */
struct trial {
    struct setting *setting;
    const struct operation *operation;
    char name[96];
};

static bool is_long(void)
{
    const char *value = getenv("MINL2R_TEST_LONG");

    return value && strcmp(value, "ON") == 0;
}

static struct explore_options thorough(void)
{
    return (struct explore_options){
        .medium = MINL2R_DAX,
        .states_max = is_long() ? 65536 : 2048,
        .nested_states_max = is_long() ? 1024 : 32,
        .kill = true,
        .use_every = 16,
        .use = run_use,
        .again_every = is_long() ? 16 : 128,
        .again = run_again,
        .seed = SEED,
    };
}

/* Where there are many runs. */
static struct explore_options brief(void)
{
    struct explore_options options = thorough();

    options.states_max = is_long() ? 2048 : 64;
    options.nested_states_max = is_long() ? 32 : 2;
    return options;
}

static void explore_run(struct setting *setting, struct run *run, uint32_t first,
                        const char *what)
{
    struct explore_options options = setting->options;

    options.first = first;
    bool ok = run_explore(run, &options, &setting->count);

    if (!ok)
        print_error("%s: %s\n", what, run->failure);
    run_end(run);
    assert_true(ok);
}

/* ---- One operation --------------------------------------------------------------- */

static void every_crash_shows_all_or_nothing(void **state)
{
    struct trial *trial = *state;
    struct run run;

    run_begin(&run, &trial->setting->bed, trial->setting->options.medium);
    run_operation(&run, trial->operation->call);
    explore_run(trial->setting, &run, 0, trial->operation->name);
}

/* ---- Two in a row ---------------------------------------------------------------- */

/* The second one finds what the first left: stale log, freed blocks, a settled
 * generation. */
static bool is_follower(const struct operation *operation)
{
    static const char *const names[] = {
        "write_word",  "write_ranges",       "block_whole",
        "hole_part",   "alloc_and_free",     "free_block_of_slot",
        "slab_object", "snapshot_and_abort", "write_more_than_log"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(operation->name, names[i]) == 0)
            return true;
    return is_long();
}

static void every_crash_in_the_second_shows_all_or_nothing(void **state)
{
    struct trial *trial = *state;

    for (uint32_t i = 0; i < operation_count; i++) {
        struct run run;

        if (!is_follower(&operations[i]))
            continue;
        run_begin(&run, &trial->setting->bed, trial->setting->options.medium);
        run_operation(&run, trial->operation->call);
        run_operation(&run, operations[i].call);
        explore_run(trial->setting, &run, STAGES, operations[i].name);
    }
}

/* ---- Two at once ----------------------------------------------------------------- */

static bool is_inner(const struct operation *operation)
{
    static const char *const names[] = {"write_word", "blocks_and_ranges",
                                        "alloc_and_free", "snapshot_and_abort"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(operation->name, names[i]) == 0)
            return true;
    return is_long();
}

/* At every pause of the outer operation, the inner one runs from start to end. */
static void every_crash_shows_all_or_nothing_of_each(void **state)
{
    struct trial *trial = *state;

    for (uint32_t i = 0; i < operation_count; i++) {
        bool paused = is_inner(&operations[i]);

        for (uint32_t pause = 0; paused; pause++) {
            struct run run;

            run_begin(&run, &trial->setting->bed, trial->setting->options.medium);
            paused = run_two(&run, trial->operation->call, operations[i].call, pause);
            explore_run(trial->setting, &run, STAGE_BOTH, operations[i].name);
        }
    }
}

/* ---- Groups ---------------------------------------------------------------------- */

static int run_trials(const char *name, struct setting *setting, struct trial *trials,
                      uint32_t count, CMUnitTestFunction call)
{
    struct CMUnitTest *tests = calloc(count, sizeof(*tests));

    if (!tests)
        return 1;
    for (uint32_t i = 0; i < count; i++) {
        trials[i].setting = setting;
        snprintf(trials[i].name, sizeof(trials[i].name), "%s: %s", name,
                 trials[i].operation->name);
        tests[i] = (struct CMUnitTest){
            .name = trials[i].name, .test_func = call, .initial_state = &trials[i]};
    }
    int failed = _cmocka_run_group_tests(name, tests, count, NULL, NULL);

    print_message(
        "%s, seed %d: %llu states (%llu of recoveries, %llu with something to "
        "undo), %llu kills, %llu transactions after recovery; crash points: %llu "
        "exact, "
        "%llu bounded\n",
        name, SEED, (unsigned long long)setting->count.states,
        (unsigned long long)setting->count.nested,
        (unsigned long long)setting->count.undone,
        (unsigned long long)setting->count.kills,
        (unsigned long long)setting->count.again,
        (unsigned long long)setting->count.exact,
        (unsigned long long)setting->count.bounded);
    free(tests);
    return failed;
}

static int run_group(const char *name, const struct minl2r_options *pool,
                     struct explore_options options, CMUnitTestFunction call)
{
    struct setting setting = {.options = options};
    struct trial *trials = calloc(operation_count, sizeof(*trials));

    if (!trials)
        return 1;
    for (uint32_t i = 0; i < operation_count; i++)
        trials[i].operation = &operations[i];
    bed_init(&setting.bed, pool, true);
    int failed = run_trials(name, &setting, trials, operation_count, call);

    bed_finish(&setting.bed);
    free(trials);
    return failed;
}

static struct explore_options without_root(struct explore_options options)
{
    options.again_every = 0;
    return options;
}

static int run_root_group(void)
{
    static const struct operation root = {"create_root", operation_create_root};
    struct setting setting = {.options = without_root(thorough())};
    struct trial trial = {.operation = &root};

    bed_init(&setting.bed, &small_log, false);
    int failed = run_trials("no root yet", &setting, &trial, 1,
                            every_crash_shows_all_or_nothing);

    bed_finish(&setting.bed);
    return failed;
}

static struct explore_options on_eadr(struct explore_options options)
{
    options.medium = MINL2R_EADR;
    return options;
}

/* An argument names the tests to run, as a pattern. */
int main(int argc, char **argv)
{
    int failed = 0;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    failed +=
        run_group("one", &small_log, thorough(), every_crash_shows_all_or_nothing);
    failed += run_root_group();
    failed += run_group("eADR", &small_log, on_eadr(brief()),
                        every_crash_shows_all_or_nothing);
    failed += run_group("swap always", &always_swap, brief(),
                        every_crash_shows_all_or_nothing);
    failed +=
        run_group("swap never", &never_swap, brief(), every_crash_shows_all_or_nothing);
    failed += run_group("two in a row", &small_log, brief(),
                        every_crash_in_the_second_shows_all_or_nothing);
    failed += run_group("two at once", &small_log, brief(),
                        every_crash_shows_all_or_nothing_of_each);
    run_forget_memory();
    return failed;
}
