/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer with a judge that only looks: which states it is shown, and how it names,
 * repeats and shrinks one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/explore.h"
#include "tests/unit/random.h"

#define SEED 1
#define SIZE 4096
#define WORDS 4 /* the first word of as many lines */
#define STATES_MAX 1024

/* Words of a state as one number: each is less than 16. */
struct watch {
    struct subject subject;
    uint8_t image[SIZE];
    struct trace *trace;
    bool seen[1 << 4 * WORDS];
    uint32_t states;
    uint32_t wrong;  /* words of which all are to be 0 for the state to be wrong */
    uint64_t needed; /* but this one not */

    /* Of the lazy judge: these words are to have these values. */
    uint64_t pattern[WORDS];
    uint32_t judged;
    watch_fn *on_access;
    void *on_access_arg;
};

static uint64_t word_of(const struct watch *watch, uint32_t i)
{
    return watch->image[(size_t)i * LINE_SIZE];
}

static uint32_t number_of(const struct watch *watch)
{
    uint32_t number = 0;

    for (uint32_t i = 0; i < WORDS; i++)
        number |= (uint32_t)word_of(watch, i) << 4 * i;
    return number;
}

static bool is_wrong(const struct watch *watch)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (watch->wrong >> i & 1 && word_of(watch, i) != 0)
            return false;
    return watch->wrong != 0 && word_of(watch, (uint32_t)watch->needed) != 0;
}

static void look(void *arg, const struct crash *crash, struct trace *recovery,
                 struct verdict *verdict)
{
    struct watch *watch = arg;

    (void)crash;
    (void)recovery;
    *verdict =
        (struct verdict){.kind = is_wrong(watch) ? VERDICT_WRONG : VERDICT_RIGHT};
    watch->states += !watch->seen[number_of(watch)];
    watch->seen[number_of(watch)] = true;
}

/* Words that it does not need to know are not looked at. */
static bool is_wrong_lazily(const struct watch *watch)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        if ((watch->wrong >> i & 1) == 0)
            continue;
        if (watch->on_access)
            watch->on_access(watch->on_access_arg, (uint64_t)i * LINE_SIZE, 8, false);
        if (word_of(watch, i) != watch->pattern[i])
            return false;
    }
    return watch->wrong != 0;
}

static void look_lazily(void *arg, const struct crash *crash, struct trace *recovery,
                        struct verdict *verdict)
{
    struct watch *watch = arg;

    (void)crash;
    (void)recovery;
    watch->judged++;
    *verdict = (struct verdict){.kind = is_wrong_lazily(watch) ? VERDICT_WRONG
                                                               : VERDICT_RIGHT};
}

static bool set_watch(void *arg, watch_fn *on_access, void *on_access_arg)
{
    struct watch *watch = arg;

    watch->on_access = on_access;
    watch->on_access_arg = on_access_arg;
    return true;
}

static struct watch *watch_begin(void)
{
    struct watch *watch = calloc(1, sizeof(*watch));

    assert_non_null(watch);
    watch->trace = trace_create(STATES_MAX);
    assert_non_null(watch->trace);
    watch->subject = (struct subject){.image = watch->image,
                                      .size = SIZE,
                                      .trace = watch->trace,
                                      .judge = look,
                                      .arg = watch};
    return watch;
}

static void watch_end(struct watch *watch)
{
    trace_destroy(watch->trace);
    free(watch);
}

static void add_store(struct watch *watch, uint32_t line, uint64_t value)
{
    struct trace_event *event = trace_add(watch->trace, TRACE_STORE);

    event->size = 8;
    event->thread = 1;
    event->group = watch->trace->groups++;
    event->at = (uint64_t)line * LINE_SIZE;
    event->before = value - 1;
    event->after = value;
}

static void add_event(struct watch *watch, enum trace_kind kind, uint64_t at)
{
    struct trace_event *event = trace_add(watch->trace, kind);

    event->thread = 1;
    event->at = at;
}

/* One operation that stores 1 and 2 to each word, flushes them all, and fences. */
static void add_operation(struct watch *watch)
{
    add_event(watch, TRACE_BEGIN, 0);
    for (uint32_t i = 0; i < WORDS; i++) {
        add_store(watch, i, 1);
        add_store(watch, i, 2);
        add_event(watch, TRACE_FLUSH, (uint64_t)i * LINE_SIZE);
    }
    add_event(watch, TRACE_FENCE, 0);
    add_event(watch, TRACE_END, 0);
}

static struct explore_count explore(struct watch *watch, const char *strategy,
                                    uint64_t budget, struct place *place,
                                    struct verdict *verdict)
{
    const struct explore_options options = {
        .strategy = strategy_find(strategy), .budget = budget, .seed = 1};
    struct explorer *explorer = explorer_create(&watch->subject, &options);
    struct explore_count count;

    assert_non_null(explorer);
    explorer_run(explorer, &count, place, verdict);
    if (verdict->kind == VERDICT_WRONG)
        explorer_shrink(explorer, place);
    explorer_destroy(explorer);
    return count;
}

static void add_random_operation(struct watch *watch, struct random *random)
{
    uint64_t values[WORDS] = {0};

    add_event(watch, TRACE_BEGIN, 0);
    for (unsigned i = 0; i < 10; i++) {
        uint32_t line = (uint32_t)random_below(random, WORDS);

        switch (random_below(random, 4)) {
        case 0:
            add_event(watch, TRACE_FLUSH, (uint64_t)line * LINE_SIZE);
            break;
        case 1:
            add_event(watch, TRACE_FENCE, 0);
            break;
        default:
            add_store(watch, line, ++values[line]);
        }
    }
    add_event(watch, TRACE_END, 0);
}

/* The first crash point with a wrong state; SIZE_MAX: none has one. */
static size_t first_wrong_point(struct watch *watch, const char *strategy)
{
    struct place place = {0};
    struct verdict verdict;

    watch->judged = 0;
    explore(watch, strategy, 100000, &place, &verdict);
    size_t event = verdict.kind == VERDICT_WRONG ? place.levels[0].event : SIZE_MAX;

    place_finish(&place);
    return event;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void eager_shows_every_state(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    struct explore_count count = explore(watch, "eager", 4096, &place, &verdict);

    assert_int_equal(watch->states, 3 * 3 * 3 * 3);
    assert_int_equal(count.exact_points, count.points);
    place_finish(&place);
    watch_end(watch);
}

static void lazy_and_eager_find_the_same(void **state)
{
    struct random random = {SEED};
    struct watch *watch = watch_begin();
    unsigned wrong = 0;

    (void)state;
    print_message("seed %d\n", SEED);
    watch->subject.judge = look_lazily;
    watch->subject.set_watch = set_watch;
    for (unsigned i = 0; i < 3000; i++) {
        trace_clear(watch->trace);
        add_random_operation(watch, &random);
        watch->wrong = (uint32_t)random_below(&random, 1 << WORDS);
        for (unsigned j = 0; j < WORDS; j++)
            watch->pattern[j] = random_below(&random, 4);
        size_t eager = first_wrong_point(watch, "eager");

        assert_int_equal(first_wrong_point(watch, "lazy"), eager);
        assert_int_equal(first_wrong_point(watch, "best"), eager);
        wrong += eager != SIZE_MAX;
    }
    print_message("%u of 3000 had a wrong state\n", wrong);
    assert_in_range(wrong, 300, 2700);
    watch_end(watch);
}

static void lazy_does_not_try_what_nobody_looks_at(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    watch->subject.judge = look_lazily;
    watch->subject.set_watch = set_watch;
    watch->wrong = 1;
    watch->pattern[0] = 3; /* which it never has */
    struct explore_count count = explore(watch, "lazy", 4096, &place, &verdict);

    assert_int_equal(count.exact_points, count.points);
    assert_in_range(watch->judged, 3,
                    2 * (3 + 6)); /* that many values, and other points */
    place_finish(&place);
    watch_end(watch);
}

static void lazy_finds_out_what_is_looked_at_in_secret(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    watch->subject.judge = look; /* and tells nobody */
    watch->subject.set_watch = set_watch;
    watch->wrong = 1u << 2;
    watch->needed = 0;
    add_store(watch, 2, 1);
    add_store(watch, 0, 1);
    add_event(watch, TRACE_FLUSH, 0);
    add_event(watch, TRACE_FENCE, 0);
    explore(watch, "lazy", 4096, &place, &verdict);
    assert_int_equal(verdict.kind, VERDICT_WRONG);
    place_finish(&place);
    watch_end(watch);
}

static void the_image_is_as_it_was_afterwards(void **state)
{
    static const uint8_t zeros[SIZE];
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    for (size_t i = 0; i < strategy_count; i++) {
        explore(watch, strategies[i].name, 4096, &place, &verdict);
        assert_memory_equal(watch->image, zeros, SIZE);
    }
    place_finish(&place);
    watch_end(watch);
}

static void saved_caches_show_one_state_per_store(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    explore(watch, "eadr", 4096, &place, &verdict);
    assert_int_equal(watch->states, 2 * WORDS);
    place_finish(&place);
    watch_end(watch);
}

static void over_budget_the_extremes_are_shown_and_it_is_not_called_exact(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    struct explore_count count = explore(watch, "eager", 80, &place, &verdict);

    assert_true(count.exact_points < count.points);
    assert_true(watch->seen[0x0000]);
    assert_true(watch->seen[0x2222]);
    assert_true(watch->seen[0x0012]); /* as if stores arrived one by one */
    place_finish(&place);
    watch_end(watch);
}

static void nothing_can_be_lost_after_the_fence(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    add_event(watch, TRACE_BEGIN, 1);
    add_event(watch, TRACE_END, 1);
    memset(watch->seen, 0, sizeof(watch->seen));
    explore(watch, "eager", 4096, &place, &verdict);
    watch->wrong =
        1; /* the first word lost, the last one there: after the return, too? */
    watch->needed = WORDS - 1;
    explore(watch, "eager", 4096, &place, &verdict);
    assert_int_equal(verdict.kind, VERDICT_WRONG);
    assert_true(place.levels[0].event <= 1 + 3 * WORDS); /* before the fence */
    place_finish(&place);
    watch_end(watch);
}

static void a_wrong_state_is_shrunk_to_what_matters(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    add_operation(watch);
    watch->wrong = 1u << 1;
    watch->needed = 3;
    explore(watch, "eager", 4096, &place, &verdict);
    assert_int_equal(verdict.kind, VERDICT_WRONG);
    assert_int_equal(place.levels[0].count, 1);
    assert_int_equal(place.levels[0].lines[0].at, LINE_SIZE);
    place_finish(&place);
    watch_end(watch);
}

static void a_name_leads_back_to_the_state(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0}, named = {0};
    struct verdict verdict;
    char text[400];

    (void)state;
    add_operation(watch);
    watch->wrong = 1u << 1;
    watch->needed = 3;
    explore(watch, "eager", 4096, &place, &verdict);
    place_print(&place, text, sizeof(text));
    assert_true(place_parse(&named, text));

    const struct explore_options options = {.strategy = &strategies[0], .budget = 1};
    struct explorer *explorer = explorer_create(&watch->subject, &options);

    assert_true(explorer_replay(explorer, &named, NULL, &verdict, NULL));
    assert_int_equal(verdict.kind, VERDICT_WRONG);
    explorer_destroy(explorer);
    place_finish(&place);
    place_finish(&named);
    watch_end(watch);
}

static void what_is_no_name_is_refused(void **state)
{
    static const char *const texts[] = {"",          "p",      "x12:",         "p12",
                                        "p12:zz",    "p1:40=", "p1:40=1.0.0x", "p1:/",
                                        "p1:40=1.0", "1:",     "p1:,"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct place place = {0};

        assert_false(place_parse(&place, texts[i]));
        place_finish(&place);
    }
}

static void a_name_of_another_trace_is_refused(void **state)
{
    static const char *const texts[] = {"p99:", "p13:40=9.0.0", "p13:f00=0.0.0",
                                        "p13:40=0.0.1"};
    struct watch *watch = watch_begin();
    const struct explore_options options = {.strategy = &strategies[0], .budget = 1};
    struct explorer *explorer = explorer_create(&watch->subject, &options);

    (void)state;
    add_operation(watch);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct place place = {0};
        struct verdict verdict;

        assert_true(place_parse(&place, texts[i]));
        assert_false(explorer_replay(explorer, &place, NULL, &verdict, NULL));
        place_finish(&place);
    }
    explorer_destroy(explorer);
    watch_end(watch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eager_shows_every_state),
        cmocka_unit_test(lazy_and_eager_find_the_same),
        cmocka_unit_test(lazy_does_not_try_what_nobody_looks_at),
        cmocka_unit_test(lazy_finds_out_what_is_looked_at_in_secret),
        cmocka_unit_test(the_image_is_as_it_was_afterwards),
        cmocka_unit_test(saved_caches_show_one_state_per_store),
        cmocka_unit_test(over_budget_the_extremes_are_shown_and_it_is_not_called_exact),
        cmocka_unit_test(nothing_can_be_lost_after_the_fence),
        cmocka_unit_test(a_wrong_state_is_shrunk_to_what_matters),
        cmocka_unit_test(a_name_leads_back_to_the_state),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(a_name_of_another_trace_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
