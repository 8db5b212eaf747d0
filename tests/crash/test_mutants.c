/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test of the tests: bugs that the explorer has to find. Each flush, fence and
 * stream of each operation is left out once, as is each of recovery; then come bugs of
 * the library. What is not found fails the test, unless it is listed here with the
 * reason why it is no bug.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/crash/model.h"
#include "tests/crash/mutants.h"
#include "tests/crash/operations.h"

static const struct minl2r_options small_log = {
    .block_size = BED_BLOCK_SIZE, .lanes = 2, .log_size = MINL2R_LOG_SIZE_MIN};

/* The pool is not used after recovery: bugs have to show in what is recovered. */
static const struct explore_options enough = {
    .medium = MINL2R_DAX,
    .states_max = 1024,
    .nested_states_max = 16,
    .kill = true,
    .again_every = 16,
    .again = run_again,
    .seed = 1,
};

static struct bed bed;

struct tally {
    uint32_t tried, harmless, survived;
};

static void end_tally(const char *what, struct tally tally)
{
    print_message("%s: %u bugs, %u of them harmless for the reasons listed\n", what,
                  tally.tried, tally.harmless);
    assert_true(tally.tried > 0);
    assert_int_equal(tally.survived, 0);
}

/* ---- What is left out, and why that is no bug ------------------------------------ */

static const char *const bug_names[] = {
    [SHADOW_LOSE_FENCE] = "fence",
    [SHADOW_LOSE_FLUSH] = "flush",
    [SHADOW_LOSE_FIRST_LINE] = "first line of flush",
    [SHADOW_LOSE_LAST_LINE] = "last line of flush",
    [SHADOW_LOSE_LINE] = "flushes of line",
    [SHADOW_LOSE_STREAM] = "flush of stream",
};

struct exception {
    const char *operation;
    enum shadow_bug bug;
    uint32_t nth;
    const char *reason;
};

static const struct exception exceptions[] = {
    {"write_word_and_same", SHADOW_LOSE_STREAM, 0,
     "one word is old or new without a log"},
    {"write_word_and_same", SHADOW_LOSE_FENCE, 0,
     "one word is old or new without a log"},
    {"abort_writes", SHADOW_LOSE_STREAM, 0, "nothing refers to an aborted block"},
    {"abort_writes", SHADOW_LOSE_FENCE, 0, "nothing refers to an aborted block"},
    {"abort_all_kinds", SHADOW_LOSE_STREAM, 0, "nothing refers to an aborted block"},
    {"alloc_nothing_left", SHADOW_LOSE_FENCE, 0,
     "nothing refers to what was given back"},
    {"free_block_of_slot", SHADOW_LOSE_STREAM, 3, "nothing refers to a freed block"},
    {"snapshot_of_own_block", SHADOW_LOSE_FENCE, 0, "nothing refers to the block yet"},
    {"write_word", SHADOW_LOSE_FENCE, 1, "recovery undoes nothing: it has one fence"},
    {NULL, SHADOW_NO_BUG, 0, NULL},
};

static bool is_harmless(const char *operation, struct shadow_fault fault)
{
    for (const struct exception *list = exceptions; list->operation; list++)
        if (strcmp(list->operation, operation) == 0 && list->bug == fault.bug &&
            list->nth == fault.nth)
            return true;
    return false;
}

static void judge(struct tally *tally, const struct operation *operation,
                  struct shadow_fault fault, bool found)
{
    bool excused = is_harmless(operation->name, fault);

    tally->tried++;
    tally->harmless += excused;
    if (found != excused)
        return;
    tally->survived++;
    print_error("%s: without %s %u %s\n", operation->name, bug_names[fault.bug],
                fault.nth, found ? "is found, but listed as harmless" : "is not found");
}

/* ---- Each call of each operation ------------------------------------------------- */

/* An operation with a bug in it, alone and before one that has none. */
static bool finds_in_run(const struct operation *operation, struct shadow_fault fault,
                         operation_fn *next)
{
    struct explore_count count = {0};
    struct run run;

    run_begin(&run, &bed, MINL2R_DAX);
    fault.trace = &run.trace;
    shadow_inject(fault);
    run_operation(&run, operation->call);
    shadow_inject((struct shadow_fault){0});
    if (next)
        run_operation(&run, next);
    bool found = !run_explore(&run, &enough, &count);

    run_end(&run);
    return found;
}

static void try_in_run(struct tally *tally, const struct operation *operation,
                       enum shadow_bug bug, uint32_t nth)
{
    struct shadow_fault fault = {bug, nth, NULL};
    operation_fn *next = find_operation("write_beside_open")->call;
    bool found =
        finds_in_run(operation, fault, NULL) || finds_in_run(operation, fault, next);

    judge(tally, operation, fault, found);
}

static bool is_open(const struct px86 *px86, uint64_t at)
{
    uint32_t index = px86->line_index[at / PM_LINE];

    return index != 0 && px86_count(px86, &px86->lines[index - 1]) > 1;
}

/* Is the line flushed again in the phase, or was it since it was last stored to? */
static bool is_repeated(const struct shadow_trace *trace, size_t i)
{
    const struct shadow_event *e = &trace->events[i];

    for (size_t j = i + 1; j < trace->count; j++) {
        const struct shadow_event *other = &trace->events[j];

        if (other->phase != e->phase)
            continue;
        if (other->kind == SHADOW_FENCE)
            break;
        if (other->kind == SHADOW_FLUSH && other->at == e->at)
            return true;
    }
    for (size_t j = i; j-- > 0;) {
        const struct shadow_event *other = &trace->events[j];

        if (other->kind == SHADOW_STORE && other->at / PM_LINE == e->at / PM_LINE)
            break;
        if (other->phase == e->phase && other->kind == SHADOW_FENCE)
            break;
        if (other->phase == e->phase && other->kind == SHADOW_FLUSH &&
            other->at == e->at)
            return true;
    }
    return false;
}

static bool is_first_of_call(const struct shadow_trace *trace, size_t i)
{
    const struct shadow_event *e = &trace->events[i];

    return i == 0 || e[-1].kind != e->kind || e[-1].call != e->call ||
           e[-1].group != e->group;
}

static bool is_last_of_call(const struct shadow_trace *trace, size_t i)
{
    return i + 1 == trace->count || is_first_of_call(trace, i + 1);
}

/* Tries what can go wrong with a flush that would make something durable. */
static void try_flush(struct tally *tally, const struct operation *operation,
                      const struct shadow_trace *trace, size_t i, uint32_t *tried_call)
{
    const struct shadow_event *e = &trace->events[i];

    if (*tried_call != e->call)
        try_in_run(tally, operation, SHADOW_LOSE_FLUSH, e->call);
    *tried_call = e->call;
    if (is_first_of_call(trace, i) && !is_last_of_call(trace, i))
        try_in_run(tally, operation, SHADOW_LOSE_FIRST_LINE, e->call);
    if (is_last_of_call(trace, i) && !is_first_of_call(trace, i))
        try_in_run(tally, operation, SHADOW_LOSE_LAST_LINE, e->call);
}

/* An operation's trace, and the pool before and after it. */
struct recording {
    struct run run;
    struct px86 px86;
    struct geometry geo;
    const uint8_t *before, *after;
};

static void record(struct recording *r, const struct operation *operation)
{
    run_begin(&r->run, &bed, MINL2R_DAX);
    run_operation(&r->run, operation->call);
    shadow_record(NULL);
    r->geo = r->run.pool.geo;
    r->before = r->run.durable;
    r->after = r->run.live;
    assert_int_equal(px86_init(&r->px86, r->run.durable, BED_SIZE), 0);
}

static void end_recording(struct recording *r)
{
    px86_finish(&r->px86);
    run_end(&r->run);
}

/* Is the line in a block that is allocated in `image`, or in the bitmap? */
static bool is_kept(const struct recording *r, const uint8_t *image, uint64_t at)
{
    if (at < r->geo.zones_offset)
        return false;
    uint64_t index = block_index(&r->geo, at);

    return image[r->geo.zones_offset + index / 8] >> index % 8 & 1;
}

static void try_calls(struct tally *tally, const struct operation *operation,
                      struct recording *r)
{
    const struct shadow_trace *trace = &r->run.trace;
    uint32_t tried_call = UINT32_MAX;

    for (size_t i = 0; i < trace->count; i++) {
        const struct shadow_event *e = &trace->events[i];

        if (e->kind == SHADOW_FENCE)
            try_in_run(tally, operation, SHADOW_LOSE_FENCE, e->call);
        if (e->kind == SHADOW_STREAM && is_first_of_call(trace, i))
            try_in_run(tally, operation, SHADOW_LOSE_STREAM, e->group);
        if (e->kind == SHADOW_FLUSH && is_kept(r, r->after, e->at) &&
            is_open(&r->px86, e->at) && !is_repeated(trace, i))
            try_flush(tally, operation, trace, i, &tried_call);
        model_apply(&r->px86, e);
    }
}

static void each_flush_fence_and_stream_of_an_operation_is_needed(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (uint32_t i = 0; i < operation_count; i++) {
        struct recording r;

        record(&r, &operations[i]);
        try_calls(&tally, &operations[i], &r);
        end_recording(&r);
    }
    end_tally("calls of operations", tally);
}

/* ---- Recovery -------------------------------------------------------------------- */

static void try_in_recovery(struct tally *tally, const struct operation *operation,
                            enum shadow_bug bug, uint32_t nth)
{
    struct explore_options options = enough;
    struct explore_count count = {0};
    struct run run;

    options.fault = (struct shadow_fault){bug, nth, NULL};
    run_begin(&run, &bed, MINL2R_DAX);
    run_operation(&run, operation->call);
    judge(tally, operation, options.fault, !run_explore(&run, &options, &count));
    run_end(&run);
}

/* Every line that the operation changed and recovery changes back. */
static void try_lines(struct tally *tally, const struct operation *operation,
                      struct recording *r)
{
    const struct shadow_trace *trace = &r->run.trace;
    uint64_t tried_line = 0;

    for (size_t i = 0; i < trace->count; i++) {
        const struct shadow_event *e = &trace->events[i];

        if (e->kind == SHADOW_FLUSH && is_kept(r, r->before, e->at) &&
            e->at != tried_line && is_open(&r->px86, e->at) && !is_repeated(trace, i)) {
            try_in_recovery(tally, operation, SHADOW_LOSE_LINE, (uint32_t)e->at);
            tried_line = e->at;
        }
        model_apply(&r->px86, e);
    }
}

static void each_line_and_fence_of_recovery_is_needed(void **state)
{
    static const char *const names[] = {
        "write_word",     "write_ranges",      "block_half",  "blocks_and_ranges",
        "alloc_and_free", "snapshots_overlap", "slab_object", "write_more_than_log"};
    struct tally tally = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct operation *operation = find_operation(names[i]);
        struct recording r;

        record(&r, operation);
        try_lines(&tally, operation, &r);
        end_recording(&r);
        try_in_recovery(&tally, operation, SHADOW_LOSE_FENCE, 0);
        try_in_recovery(&tally, operation, SHADOW_LOSE_FENCE, 1);
    }
    end_tally("lines and fences of recovery", tally);
}

/* ---- Formatting ------------------------------------------------------------------ */

static void try_in_format(struct tally *tally, const uint8_t *memory,
                          enum shadow_bug bug, uint32_t nth)
{
    static const struct operation format = {"format", NULL};
    struct explore_options options = enough;
    struct shadow_fault fault = {bug, nth, NULL};
    struct explore_count count = {0};
    struct run run;

    options.again_every = 0; /* there is no root */
    fault.trace = &run.trace;
    shadow_inject(fault);
    run_format(&run, memory, &small_log);
    shadow_inject((struct shadow_fault){0});
    judge(tally, &format, fault, !run_explore(&run, &options, &count));
    run_end(&run);
}

static void each_flush_and_fence_of_formatting_is_needed(void **state)
{
    uint8_t *memory = malloc(BED_SIZE);
    struct tally tally = {0};
    struct run run;

    (void)state;
    assert_non_null(memory);
    memset(memory, 0x5a, BED_SIZE);
    run_format(&run, memory, &small_log);
    uint32_t flushes = run.trace.flushes, fences = run.trace.fences;

    run_end(&run);
    for (uint32_t nth = 0; nth < flushes; nth++)
        try_in_format(&tally, memory, SHADOW_LOSE_FLUSH, nth);
    for (uint32_t nth = 0; nth < fences; nth++)
        try_in_format(&tally, memory, SHADOW_LOSE_FENCE, nth);
    free(memory);
    end_tally("calls of formatting", tally);
}

/* ---- Bugs of the library --------------------------------------------------------- */

struct mutation {
    const char *name;
    const char *operation, *inner;
    enum mutant mutant;
    bool in_run, in_recovery;
};

#define IN_RUN(mutant, operation, inner)                                               \
    {                                                                                  \
#mutant, operation, inner, mutant, true, false                                 \
    }
#define IN_RECOVERY(mutant, operation)                                                 \
    {                                                                                  \
#mutant, operation, NULL, mutant, false, true                                  \
    }

static const struct mutation mutations[] = {
    IN_RUN(MUTANT_RANGE_NOT_LOGGED, "write_ranges", NULL),
    IN_RUN(MUTANT_RECORD_TOO_SHORT, "write_across_lines", NULL),
    IN_RUN(MUTANT_SNAPSHOT_NOT_LOGGED, "snapshot", NULL),
    IN_RUN(MUTANT_BLOCKS_NOT_LOGGED, "alloc_and_store", NULL),
    IN_RUN(MUTANT_SWAP_NOT_LOGGED, "block_whole", NULL),
    IN_RUN(MUTANT_NOT_SETTLED, "write_ranges", NULL),
    IN_RUN(MUTANT_WORD_NOT_NOTED, "store_word", NULL),
    IN_RUN(MUTANT_WORD_NOT_NOTED, "write_word", NULL),
    IN_RUN(MUTANT_FREED_TOO_EARLY, "free_run", "alloc_and_store"),
    IN_RUN(MUTANT_NOT_RELEASED, "abort_writes", NULL),
    IN_RUN(MUTANT_NOT_PUBLISHED, "alloc_and_store", NULL),
    IN_RUN(MUTANT_BITS_NOT_FLUSHED, "alloc_and_store", NULL),
    {"MUTANT_TORN_BATCH_IS_VALID", "write_across_lines", NULL,
     MUTANT_TORN_BATCH_IS_VALID, true, true},
    IN_RECOVERY(MUTANT_NEWEST_BATCH_NOT_UNDONE, "snapshots_overlap"),
    IN_RECOVERY(MUTANT_OLDEST_FIRST, "snapshots_overlap"),
    IN_RECOVERY(MUTANT_OTHER_LANES_FORGOTTEN, "write_ranges"),
    IN_RECOVERY(MUTANT_ONLY_LIVE_LANES_SETTLED, "write_ranges"),
    IN_RECOVERY(MUTANT_SETTLED_MOVES_BACK, "write_ranges"),
    IN_RECOVERY(MUTANT_FREE_NOT_UNDONE, "free_run"),
    IN_RECOVERY(MUTANT_ALLOC_NOT_UNDONE, "alloc_and_store"),
    IN_RECOVERY(MUTANT_TWINS_NOT_RELOADED, "alloc_and_store"),
};

/* At every pause of the operation, if there is an inner one. */
static bool finds_mutant(const struct mutation *m, bool *paused, uint32_t pause)
{
    struct explore_count count = {0};
    struct run run;

    run_begin(&run, &bed, MINL2R_DAX);
    mutate(m->in_run ? m->mutant : MUTANT_NONE);
    *paused = false;
    if (m->inner)
        *paused = run_two(&run, find_operation(m->operation)->call,
                          find_operation(m->inner)->call, 1, pause);
    else
        run_operation(&run, find_operation(m->operation)->call);
    mutate(m->in_recovery ? m->mutant : MUTANT_NONE);
    bool found = !run_explore(&run, &enough, &count);

    mutate(MUTANT_NONE);
    if (found)
        print_message("%s: %.200s\n", m->name, run.failure);
    run_end(&run);
    return found;
}

static void bugs_of_the_library_are_found(void **state)
{
    struct tally tally = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++) {
        bool found = false, paused = true;

        for (uint32_t pause = 0; paused && !found; pause++)
            found = finds_mutant(&mutations[i], &paused, pause);
        tally.tried++;
        tally.survived += !found;
        if (!found)
            print_error("%s is not found in %s\n", mutations[i].name,
                        mutations[i].operation);
    }
    end_tally("bugs of the library", tally);
}

/* An argument names the tests to run, as a pattern. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_flush_fence_and_stream_of_an_operation_is_needed),
        cmocka_unit_test(each_line_and_fence_of_recovery_is_needed),
        cmocka_unit_test(each_flush_and_fence_of_formatting_is_needed),
        cmocka_unit_test(bugs_of_the_library_are_found),
    };

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    bed_init(&bed, &small_log, true);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    bed_finish(&bed);
    run_forget_memory();
    return failed;
}
