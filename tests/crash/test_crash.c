/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every operation of operations.c, alone, after another and amid another, crashed in
 * every way that explore.h knows. MINL2R_TEST_LONG=ON: more states, and all pairs in a row.
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

/* With room to spare the library takes short cuts. */
static const struct minl2r_options large_log = {.block_size = BED_BLOCK_SIZE,
                                                .lanes = 2};

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

/* A swap gets the last free block, and the next one none. */
static const struct minl2r_options one_spare_block = {.block_size = BED_BLOCK_SIZE,
                                                      .lanes = 2,
                                                      .log_size = MINL2R_LOG_SIZE_MIN,
                                                      .spare_blocks = 1};

/* All that the tests of a group share. */
struct setting {
    struct bed bed;
    unsigned inner_side; /* where there are two at once */
    bool one_lane;       /* a transaction amid another has only the one for commits */
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
        .states_max = is_long() ? 8192 : 2048,
        .nested_states_max = is_long() ? 64 : 32,
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

    options.states_max = is_long() ? 512 : 64;
    options.nested_states_max = is_long() ? 8 : 2;
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

/* ---- Making a pool --------------------------------------------------------------- */

/* Each in its own way no pool: nothing, something else, and a pool whose start was
 * cleared. */
static void every_crash_of_formatting_shows_no_pool_or_a_new_one(void **state)
{
    struct trial *trial = *state;
    uint8_t *memory = malloc(BED_SIZE);

    assert_non_null(memory);
    for (unsigned i = 0; i < 3; i++) {
        struct run run;

        memset(memory, i == 0 ? 0 : 0x5a, BED_SIZE);
        if (i == 2)
            memcpy(memory + PM_PAGE, trial->setting->bed.memory + PM_PAGE,
                   BED_SIZE - PM_PAGE);
        run_format(&run, memory, &small_log);
        explore_run(trial->setting, &run, 0, "format");
    }
    free(memory);
}

/* ---- A medium that fails ----------------------------------------------------------
 */

/* I8, of a poisoned pool: old or new once it is opened again. */
static void every_crash_of_a_poisoned_pool_shows_all_or_nothing(void **state)
{
    struct trial *trial = *state;
    uint32_t fences = 1;

    for (uint32_t nth = 0; nth < fences; nth++) {
        struct run whole, run;

        run_begin(&whole, &trial->setting->bed, trial->setting->options.medium);
        run_operation(&whole, trial->operation->call);
        fences = whole.trace.fences;
        run_begin(&run, &trial->setting->bed, trial->setting->options.medium);
        run_failing_operation(&run, trial->operation->call, nth, whole.live);
        explore_run(trial->setting, &run, 0, trial->operation->name);
        run_end(&whole);
    }
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

static bool is_one_of(const struct operation *operation, const char *const names[])
{
    for (; *names; names++)
        if (strcmp(operation->name, *names) == 0)
            return true;
    return false;
}

/* On the same side, what changes other bytes than the outer operation. */
static bool is_inner(const struct setting *setting, const struct operation *outer,
                     const struct operation *inner)
{
    static const char *const lone_words[] = {"store_word", NULL};
    static const char *const copy_its_word[] = {"store_word", "edit_words", NULL};
    static const char *const some[] = {"write_word", "blocks_and_ranges",
                                       "alloc_and_free", "snapshot_and_abort", NULL};
    static const char *const without_lane[] = {"write_word", "blocks_and_ranges",
                                               "alloc_and_free", NULL};

    if (setting->inner_side == 0)
        return is_one_of(inner, lone_words) && !is_one_of(outer, copy_its_word);
    if (setting->one_lane)
        return is_one_of(inner, without_lane);
    return is_one_of(inner, some);
}

/* At every pause of the outer operation, the inner one runs from start to end. */
static void every_crash_shows_all_or_nothing_of_each(void **state)
{
    struct trial *trial = *state;
    const struct setting *setting = trial->setting;

    for (uint32_t i = 0; i < operation_count; i++) {
        bool paused = is_inner(setting, trial->operation, &operations[i]);

        for (uint32_t pause = 0; paused; pause++) {
            struct run run;

            run_begin(&run, &setting->bed, setting->options.medium);
            paused = run_two(&run, trial->operation->call, operations[i].call,
                             setting->inner_side, pause);
            explore_run(trial->setting, &run, STAGE_BOTH, operations[i].name);
        }
    }
}

/* ---- Several, at random ---------------------------------------------------------- */

static uint32_t random_below(uint64_t *state, uint32_t limit)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33) % limit;
}

/* The last of them is crashed. */
static void every_crash_after_some_shows_all_or_nothing(void **state)
{
    struct trial *trial = *state;
    uint64_t random = SEED + (uint64_t)(trial->operation - operations);

    for (uint32_t i = 0; i < (is_long() ? 64 : 4); i++) {
        const struct operation *second =
            &operations[random_below(&random, operation_count)];
        struct run run;

        run_begin(&run, &trial->setting->bed, trial->setting->options.medium);
        run_operation(&run, operations[random_below(&random, operation_count)].call);
        run_operation(&run, second->call);
        run_operation(&run, trial->operation->call);
        explore_run(trial->setting, &run, 2 * STAGES, second->name);
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

static struct explore_options without_use(struct explore_options options)
{
    options.use_every = 0;
    return options;
}

static int run_group(const char *name, struct setting setting,
                     const struct minl2r_options *pool, CMUnitTestFunction call)
{
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

/* A group of the operations named. */
static int run_some(const char *name, struct setting *setting,
                    const char *const names[], CMUnitTestFunction call)
{
    struct trial trials[16] = {0};
    uint32_t count = 0;

    for (; names[count]; count++)
        trials[count].operation = find_operation(names[count]);
    return run_trials(name, setting, trials, count, call);
}

/* Operations that allocate nothing, on a pool without free blocks but one. */
static int run_full_group(void)
{
    static const char *const names[] = {"write_ranges",
                                        "edit_over_block",
                                        "block_half",
                                        "block_whole",
                                        "block_whole_then_part",
                                        "blocks_and_ranges",
                                        "free_run",
                                        "free_block_of_slot",
                                        "snapshot_and_write",
                                        "snapshot_in_swapped_block",
                                        NULL};
    struct setting setting = {.options = without_use(thorough())};

    bed_init(&setting.bed, &one_spare_block, true);
    bed_fill(&setting.bed);
    int failed = run_some("full", &setting, names, every_crash_shows_all_or_nothing);

    bed_finish(&setting.bed);
    return failed;
}

/* Operations of which only the commit has fences. */
static int run_poisoned_group(void)
{
    static const char *const names[] = {
        "write_word",     "write_ranges",       "fresh_in_other_line",
        "block_whole",    "hole_in_own_block",  "blocks_and_ranges",
        "alloc_and_free", "free_block_of_slot", NULL};
    struct setting setting = {.options = brief()};

    bed_init(&setting.bed, &small_log, true);
    int failed = run_some("poisoned", &setting, names,
                          every_crash_of_a_poisoned_pool_shows_all_or_nothing);

    bed_finish(&setting.bed);
    return failed;
}

static struct explore_options without_root(struct explore_options options)
{
    options.again_every = 0;
    return options;
}

static int run_unborn_groups(void)
{
    static const struct operation root = {"create_root", operation_create_root};
    static const struct operation format = {"format", NULL};
    struct setting setting = {.options = without_root(thorough())};
    struct trial trial = {.operation = &root};

    bed_init(&setting.bed, &small_log, false);
    int failed = run_trials("no root yet", &setting, &trial, 1,
                            every_crash_shows_all_or_nothing);

    trial.operation = &format;
    setting.count = (struct explore_count){0};
    failed += run_trials("no pool yet", &setting, &trial, 1,
                         every_crash_of_formatting_shows_no_pool_or_a_new_one);
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
    failed += run_group("one", (struct setting){.options = thorough()}, &small_log,
                        every_crash_shows_all_or_nothing);
    failed += run_unborn_groups();
    failed += run_full_group();
    failed += run_poisoned_group();
    failed += run_group("eADR", (struct setting){.options = on_eadr(brief())},
                        &small_log, every_crash_shows_all_or_nothing);
    failed += run_group("large log", (struct setting){.options = brief()}, &large_log,
                        every_crash_shows_all_or_nothing);
    failed += run_group("swap always", (struct setting){.options = brief()},
                        &always_swap, every_crash_shows_all_or_nothing);
    failed += run_group("swap never", (struct setting){.options = brief()}, &never_swap,
                        every_crash_shows_all_or_nothing);
    failed += run_group("two in a row", (struct setting){.options = brief()},
                        &small_log, every_crash_in_the_second_shows_all_or_nothing);
    failed += run_group("third of three", (struct setting){.options = brief()},
                        &small_log, every_crash_after_some_shows_all_or_nothing);
    failed +=
        run_group("two at once", (struct setting){.options = brief(), .inner_side = 1},
                  &small_log, every_crash_shows_all_or_nothing_of_each);
    failed += run_group(
        "two at once, one lane",
        (struct setting){.options = brief(), .inner_side = 1, .one_lane = true},
        &always_swap, every_crash_shows_all_or_nothing_of_each);
    failed += run_group("two in one line", (struct setting){.options = brief()},
                        &small_log, every_crash_shows_all_or_nothing_of_each);
    run_forget_memory();
    return failed;
}
