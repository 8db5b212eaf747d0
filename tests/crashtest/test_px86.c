/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model of crashtest/px86.h against a twin that is slow and obviously right: it
 * takes every set of stored pieces and asks of each rule whether the set breaks it. And
 * its rules one by one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/px86.h"
#include "tests/unit/long.h"
#include "tests/unit/random.h"

#define SEED 1
#define EVENTS_MAX 12
#define CONTENTS_MAX 4096

typedef uint8_t line_bytes[LINE_SIZE];

/* ---- The twin -------------------------------------------------------------------- */

struct history {
    struct trace_event events[EVENTS_MAX];
    uint32_t count;
};

static bool has(uint32_t set, uint32_t event)
{
    return set >> event & 1;
}

static bool is_fenced_after(const struct history *history, uint32_t thread,
                            uint32_t from)
{
    for (uint32_t i = from + 1; i < history->count; i++)
        if (history->events[i].kind == TRACE_FENCE &&
            history->events[i].thread == thread)
            return true;
    return false;
}

static bool must_be_durable(const struct history *history, uint32_t stored)
{
    if (history->events[stored].kind == TRACE_STREAM)
        return is_fenced_after(history, history->events[stored].thread, stored);
    for (uint32_t i = stored + 1; i < history->count; i++) {
        const struct trace_event *event = &history->events[i];

        if (event->kind == TRACE_CLFLUSH ||
            (event->kind == TRACE_FLUSH && is_fenced_after(history, event->thread, i)))
            return true;
    }
    return false;
}

/* Does the set have a cached store, but not one of a group before it? */
static bool overtakes(const struct history *history, uint32_t set, uint32_t stored)
{
    if (history->events[stored].kind != TRACE_STORE || has(set, stored))
        return false;
    for (uint32_t i = stored + 1; i < history->count; i++)
        if (history->events[i].kind == TRACE_STORE && has(set, i) &&
            history->events[i].group != history->events[stored].group)
            return true;
    return false;
}

static bool tears(const struct history *history, uint32_t set, uint32_t stored)
{
    for (uint32_t i = 0; i < history->count; i++)
        if (history->events[stored].joined && trace_is_store(&history->events[i]) &&
            history->events[i].group == history->events[stored].group &&
            has(set, i) != has(set, stored))
            return true;
    return false;
}

static bool is_possible(const struct history *history, uint32_t set)
{
    for (uint32_t i = 0; i < history->count; i++) {
        if (!trace_is_store(&history->events[i])) {
            if (has(set, i))
                return false;
            continue;
        }
        if ((!has(set, i) && must_be_durable(history, i)) ||
            overtakes(history, set, i) || tears(history, set, i))
            return false;
    }
    return true;
}

static void apply_set(const struct history *history, uint32_t set, line_bytes bytes)
{
    memset(bytes, 0, LINE_SIZE);
    for (uint32_t i = 0; i < history->count; i++)
        if (has(set, i))
            memcpy(bytes + history->events[i].at, &history->events[i].after,
                   history->events[i].size);
}

static int compare_lines(const void *a, const void *b)
{
    return memcmp(a, b, LINE_SIZE);
}

static uint32_t sort_and_unite(line_bytes *lines, uint32_t count)
{
    uint32_t kept = 0;

    qsort(lines, count, LINE_SIZE, compare_lines);
    for (uint32_t i = 0; i < count; i++)
        if (kept == 0 || memcmp(lines[kept - 1], lines[i], LINE_SIZE) != 0)
            memcpy(lines[kept++], lines[i], LINE_SIZE);
    return kept;
}

static uint32_t contents_of_twin(const struct history *history, line_bytes *lines)
{
    uint32_t count = 0;

    for (uint32_t set = 0; set < 1u << history->count; set++)
        if (is_possible(history, set))
            apply_set(history, set, lines[count++]);
    return sort_and_unite(lines, count);
}

/* ---- Histories ------------------------------------------------------------------- */

static const uint8_t zeros[4096];

static void model(struct px86 *px86, const struct history *history)
{
    assert_int_equal(px86_init(px86, zeros, sizeof(zeros)), 0);
    for (uint32_t i = 0; i < history->count; i++)
        px86_apply(px86, &history->events[i], i);
}

static uint32_t contents_of_model(const struct px86 *px86, line_bytes *lines)
{
    static struct px86_choice choices[CONTENTS_MAX];

    if (px86->line_count == 0) {
        memset(lines[0], 0, LINE_SIZE);
        return 1;
    }
    const struct px86_line *line = &px86->lines[0];
    uint32_t count = px86_choices(px86, line, choices, CONTENTS_MAX);

    assert_int_equal(count, px86_count(px86, line));
    for (uint32_t i = 0; i < count; i++) {
        assert_true(px86_is_choice(px86, line, choices[i]));
        px86_compose(px86, line, choices[i], lines[i]);
    }
    return sort_and_unite(lines, count);
}

static struct trace_event store_event(struct random *random, uint32_t group)
{
    bool whole = random_below(random, 8) == 0;
    struct trace_event event = {
        .kind = random_below(random, 3) ? TRACE_STORE : TRACE_STREAM,
        .size = (uint8_t)(whole ? 8 : 1u << random_below(random, 4)),
        .joined = whole,
        .group = group,
        .thread = 1 + (uint32_t)random_below(random, 2),
        .after = 0,
    };

    event.at = event.size * random_below(random, (uint64_t)24 / event.size);
    event.after = random_next(random) & 0x0101010101010101;
    if (event.size < 8)
        event.after &= ((uint64_t)1 << (8 * event.size)) - 1;
    return event;
}

/* Pieces of one group are alike, and lie behind one another. */
static struct trace_event next_piece(struct random *random,
                                     const struct trace_event *last)
{
    struct trace_event event = *last;

    event.at = last->at + last->size;
    event.after = ~last->after & 0x0101010101010101;
    if (event.size < 8)
        event.after &= ((uint64_t)1 << (8 * event.size)) - 1;
    (void)random;
    return event;
}

static void add_random_event(struct history *history, struct random *random)
{
    static const enum trace_kind kinds[] = {TRACE_FLUSH, TRACE_FLUSH, TRACE_FENCE,
                                            TRACE_FENCE, TRACE_CLFLUSH};
    const struct trace_event *last =
        history->count ? &history->events[history->count - 1] : NULL;
    struct trace_event *event = &history->events[history->count];

    if (last && trace_is_store(last) && last->at + (uint64_t)last->size * 2 <= 32 &&
        random_below(random, 3) == 0)
        *event = next_piece(random, last);
    else if (random_below(random, 3) > 0)
        *event = store_event(random, history->count);
    else
        *event = (struct trace_event){
            .kind = (uint8_t)kinds[random_below(random, 5)],
            .thread = 1 + (uint32_t)random_below(random, 2),
        };
    history->count++;
}

static void print_history(const struct history *history)
{
    static const char *const names[] = {"store", "stream", "flush", "clflush", "fence"};

    for (uint32_t i = 0; i < history->count; i++) {
        const struct trace_event *e = &history->events[i];

        print_message("  %u: %s thread %u group %u%s at %llu size %u value %llx\n", i,
                      names[e->kind], e->thread, e->group, e->joined ? " joined" : "",
                      (unsigned long long)e->at, e->size, (unsigned long long)e->after);
    }
}

static bool agree(const struct history *history)
{
    static line_bytes by_model[CONTENTS_MAX], by_twin[CONTENTS_MAX];
    struct px86 px86;

    model(&px86, history);
    uint32_t model_count = contents_of_model(&px86, by_model);
    uint32_t twin_count = contents_of_twin(history, by_twin);

    px86_finish(&px86);
    if (model_count == twin_count &&
        memcmp(by_model, by_twin, (size_t)model_count * LINE_SIZE) == 0)
        return true;
    print_message("the model has %u contents, its twin %u:\n", model_count, twin_count);
    print_history(history);
    return false;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void random_histories_leave_what_the_twin_says(void **state)
{
    struct random random = {SEED};
    uint64_t rounds = times_if_long(20000, 20);

    (void)state;
    print_message("seed %d\n", SEED);
    for (uint64_t i = 0; i < rounds; i++) {
        struct history history = {.count = 0};
        uint64_t length = 1 + random_below(&random, i % 50 ? 8 : EVENTS_MAX);

        while (history.count < length)
            add_random_event(&history, &random);
        assert_true(agree(&history));
    }
}

static void what_was_stored_before_any_event_is_possible(void **state)
{
    struct random random = {SEED};

    (void)state;
    for (unsigned i = 0; i < 5000; i++) {
        struct history history = {.count = 0};
        struct px86 px86;

        while (history.count < 8)
            add_random_event(&history, &random);
        model(&px86, &history);
        for (uint32_t event = 0; px86.line_count > 0 && event <= 8; event++)
            assert_true(
                px86_is_choice(&px86, &px86.lines[0],
                               px86_choice_before(&px86, &px86.lines[0], event)));
        px86_finish(&px86);
    }
}

static void put_event(struct history *history, enum trace_kind kind, uint32_t thread,
                      uint64_t at, uint64_t value)
{
    history->events[history->count] = (struct trace_event){.kind = (uint8_t)kind,
                                                           .size = 8,
                                                           .group = history->count,
                                                           .thread = thread,
                                                           .at = at,
                                                           .after = value};
    history->count++;
}

/* How many different contents the line can have. */
static uint32_t count_contents(const struct history *history)
{
    static line_bytes lines[CONTENTS_MAX];
    struct px86 px86;

    model(&px86, history);
    uint32_t count = contents_of_model(&px86, lines);

    px86_finish(&px86);
    return count;
}

static void stores_to_a_line_arrive_in_order(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_STORE, 1, 8, 1);
    put_event(&history, TRACE_STORE, 1, 16, 1);
    assert_int_equal(count_contents(&history), 4);
}

static void streams_arrive_in_any_order(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STREAM, 1, 0, 1);
    put_event(&history, TRACE_STREAM, 1, 8, 1);
    put_event(&history, TRACE_STREAM, 1, 16, 1);
    assert_int_equal(count_contents(&history), 8);
}

static void a_flush_without_a_fence_promises_nothing(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_FLUSH, 1, 0, 0);
    assert_int_equal(count_contents(&history), 2);
}

static void a_fence_of_another_thread_promises_nothing(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_FLUSH, 1, 0, 0);
    put_event(&history, TRACE_FENCE, 2, 0, 0);
    assert_int_equal(count_contents(&history), 2);
}

static void a_store_between_flush_and_fence_is_not_covered(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_FLUSH, 1, 0, 0);
    put_event(&history, TRACE_STORE, 1, 8, 1);
    put_event(&history, TRACE_FENCE, 1, 0, 0);
    assert_int_equal(count_contents(&history), 2);
}

static void clflush_needs_no_fence(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_CLFLUSH, 1, 0, 0);
    assert_int_equal(count_contents(&history), 1);
}

static void a_flush_and_a_fence_make_durable(void **state)
{
    struct history history = {.count = 0};

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_FLUSH, 1, 0, 0);
    put_event(&history, TRACE_FENCE, 1, 0, 0);
    assert_int_equal(count_contents(&history), 1);
}

static void a_kill_forgets_flushes_that_were_not_fenced(void **state)
{
    struct history history = {.count = 0};
    struct trace_event fence = {.kind = TRACE_FENCE, .thread = 1};
    struct px86 px86;

    (void)state;
    put_event(&history, TRACE_STORE, 1, 0, 1);
    put_event(&history, TRACE_FLUSH, 1, 0, 0);
    model(&px86, &history);
    px86_kill(&px86);
    px86_apply(&px86, &fence, 2);
    assert_int_equal(px86_count(&px86, &px86.lines[0]), 2);
    px86_finish(&px86);
}

static void a_counter_stored_often_has_each_of_its_values(void **state)
{
    struct px86 px86;

    (void)state;
    assert_int_equal(px86_init(&px86, zeros, sizeof(zeros)), 0);
    for (uint32_t i = 0; i < 1000; i++) {
        struct trace_event store = {.kind = TRACE_STORE,
                                    .size = 8,
                                    .group = i,
                                    .thread = 1,
                                    .before = i,
                                    .after = i + 1};

        px86_apply(&px86, &store, i);
    }
    assert_int_equal(px86_count(&px86, &px86.lines[0]), 1001);
    px86_finish(&px86);
}

static void too_many_contents_begin_with_none_and_end_with_all(void **state)
{
    struct px86_choice choices[16];
    struct history history = {.count = 0};
    line_bytes first, last;
    struct px86 px86;

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        put_event(&history, TRACE_STREAM, 1, (uint64_t)i * 8, UINT64_MAX);
    model(&px86, &history);
    uint32_t count = px86_choices(&px86, &px86.lines[0], choices, 16);

    assert_in_range(count, 2, 16);
    px86_compose(&px86, &px86.lines[0], choices[0], first);
    px86_compose(&px86, &px86.lines[0], choices[count - 1], last);
    for (unsigned i = 0; i < LINE_SIZE; i++) {
        assert_int_equal(first[i], 0);
        assert_int_equal(last[i], 0xff);
    }
    px86_finish(&px86);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_histories_leave_what_the_twin_says),
        cmocka_unit_test(what_was_stored_before_any_event_is_possible),
        cmocka_unit_test(stores_to_a_line_arrive_in_order),
        cmocka_unit_test(streams_arrive_in_any_order),
        cmocka_unit_test(a_flush_without_a_fence_promises_nothing),
        cmocka_unit_test(a_fence_of_another_thread_promises_nothing),
        cmocka_unit_test(a_store_between_flush_and_fence_is_not_covered),
        cmocka_unit_test(clflush_needs_no_fence),
        cmocka_unit_test(a_flush_and_a_fence_make_durable),
        cmocka_unit_test(a_kill_forgets_flushes_that_were_not_fenced),
        cmocka_unit_test(a_counter_stored_often_has_each_of_its_values),
        cmocka_unit_test(too_many_contents_begin_with_none_and_end_with_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
