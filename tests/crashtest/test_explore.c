/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The explorer with a judge that only looks: which states it is shown, and how it
 * names, repeats and shrinks one.
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
#define RULES 3

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
    bool recovers;
    bool sums_ranges; /* of a checksum */
    struct rule {
        uint32_t from, to;
        uint64_t value, stored;
        bool flushes, fences;
    } rules[RULES];
    uint32_t judged;
    watch_fn *on_access;
    void *on_access_arg;
};

static void add_store_to(struct trace *trace, uint32_t line, uint64_t before,
                         uint64_t after)
{
    struct trace_event *event = trace_add(trace, TRACE_STORE);

    event->size = 8;
    event->thread = 1;
    event->group = trace->groups++;
    event->at = (uint64_t)line * LINE_SIZE;
    event->before = before;
    event->after = after;
}

static void add_event_to(struct trace *trace, enum trace_kind kind, uint64_t at)
{
    struct trace_event *event = trace_add(trace, kind);

    event->thread = 1;
    event->at = at;
}

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

static void look_at(const struct watch *watch, uint32_t i, enum access access)
{
    if (watch->on_access)
        watch->on_access(watch->on_access_arg, (uint64_t)i * LINE_SIZE, 8, access);
}

/* Words that it does not need to know are not looked at. The first that is not right,
 * or WORDS. */
static uint32_t find_wrong_lazily(const struct watch *watch)
{
    for (uint32_t i = 0; i < WORDS; i++) {
        if ((watch->wrong >> i & 1) == 0)
            continue;
        look_at(watch, i, ACCESS_LOAD);
        if (word_of(watch, i) != watch->pattern[i])
            return WORDS;
    }
    return watch->wrong != 0 ? watch->wrong : WORDS;
}

/* What has the value of `from` copies it to `to`; not everything is flushed. */
static void recover_lazily(struct watch *watch, struct trace *recovery)
{
    for (uint32_t i = 0; i < RULES; i++) {
        const struct rule *rule = &watch->rules[i];
        size_t at = (size_t)rule->to * LINE_SIZE;

        look_at(watch, rule->from, ACCESS_LOAD);
        if (word_of(watch, rule->from) != rule->value)
            continue;
        look_at(watch, rule->to, ACCESS_STORE);
        if (watch->image[at] != rule->stored)
            add_store_to(recovery, rule->to, watch->image[at], rule->stored);
        watch->image[at] = (uint8_t)rule->stored;
        if (rule->flushes)
            add_event_to(recovery, TRACE_FLUSH, at);
        if (rule->fences)
            add_event_to(recovery, TRACE_FENCE, 0);
    }
}

static void take_back(struct watch *watch, const struct trace *recovery)
{
    for (size_t i = recovery->count; i-- > 0;)
        if (trace_is_store(&recovery->events[i]))
            watch->image[recovery->events[i].at] = (uint8_t)recovery->events[i].before;
}

static void look_lazily(void *arg, const struct crash *crash, struct trace *recovery,
                        struct verdict *verdict)
{
    struct watch *watch = arg;

    watch->judged++;
    if (watch->recovers)
        recover_lazily(watch, recovery);
    *verdict = (struct verdict){0};
    if (find_wrong_lazily(watch) != WORDS) {
        verdict->kind = VERDICT_WRONG;
        snprintf(verdict->message, sizeof(verdict->message), "%u, %llu returned",
                 watch->wrong, (unsigned long long)crash->returned);
    }
    take_back(watch, recovery);
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
    add_store_to(watch->trace, line, value - 1, value);
}

static void add_event(struct watch *watch, enum trace_kind kind, uint64_t at)
{
    add_event_to(watch->trace, kind, at);
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

#define FINDINGS_MAX 4096
#define NAME_SIZE 200

/* All crash points with wrong states, and what is wrong there; sorted. */
struct findings {
    size_t count;
    bool exact;
    char names[FINDINGS_MAX][NAME_SIZE];
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static void name_finding(const struct finding *finding, char *name)
{
    const struct place_level *levels = finding->place.levels;

    snprintf(name, NAME_SIZE, "%d %zu / %d %zu: %.100s", levels[0].kind,
             levels[0].event, levels[1].kind, levels[1].event,
             finding->verdict.message);
}

static void find_all(struct watch *watch, const char *strategy, struct findings *found)
{
    const struct explore_options options = {.strategy = strategy_find(strategy),
                                            .budget = 1000000,
                                            .nested_budget = 1000000,
                                            .kill = true,
                                            .seed = SEED,
                                            .findings_max = FINDINGS_MAX,
                                            .every_failure = true};
    struct explorer *explorer = explorer_create(&watch->subject, &options);
    struct explore_count count;
    struct place place = {0};
    struct verdict verdict;

    assert_non_null(explorer);
    watch->judged = 0;
    explorer_run(explorer, &count, &place, &verdict);
    const struct finding *findings = explorer_findings(explorer, &found->count);

    assert_false(count.is_stopped);
    found->exact = count.exact_points == count.points && !count.nested_is_bounded &&
                   count.exact_nested_points == count.nested_points;
    for (size_t i = 0; i < found->count; i++)
        name_finding(&findings[i], found->names[i]);
    qsort(found->names, found->count, NAME_SIZE, compare_names);
    place_finish(&place);
    explorer_destroy(explorer);
}

static void assert_same_findings(const struct findings *a, const struct findings *b)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        assert_string_equal(a->names[i], b->names[i]);
    assert_int_equal(a->count, b->count);
    assert_true(a->exact && b->exact);
}

static void choose_judge(struct watch *watch, struct random *random)
{
    watch->wrong = (uint32_t)random_below(random, 1 << WORDS);
    watch->recovers = random_below(random, 4) != 0;
    for (unsigned i = 0; i < WORDS; i++)
        watch->pattern[i] = random_below(random, 4);
    for (unsigned i = 0; i < RULES; i++)
        watch->rules[i] = (struct rule){
            .from = (uint32_t)random_below(random, WORDS),
            .to = (uint32_t)random_below(random, WORDS),
            .value = random_below(random, 3),
            .stored = random_below(random, 4),
            .flushes = random_below(random, 2) != 0,
            .fences = random_below(random, 2) != 0,
        };
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

/* Not only the first: every crash point, of recoveries too, and every verdict. */
static void lazy_and_eager_find_the_same(void **state)
{
    static struct findings eager, lazy, best;
    struct random random = {SEED};
    struct watch *watch = watch_begin();
    unsigned wrong = 0, nested = 0;

    (void)state;
    print_message("seed %d\n", SEED);
    watch->subject.judge = look_lazily;
    watch->subject.set_watch = set_watch;
    for (unsigned i = 0; i < 2000; i++) {
        trace_clear(watch->trace);
        add_random_operation(watch, &random);
        choose_judge(watch, &random);
        find_all(watch, "eager", &eager);
        find_all(watch, "lazy", &lazy);
        find_all(watch, "best", &best);
        assert_same_findings(&lazy, &eager);
        assert_same_findings(&best, &eager);
        wrong += eager.count > 0;
        for (size_t j = 0; j < eager.count; j++)
            nested += strstr(eager.names[j], "/ 0") == NULL;
    }
    print_message("%u of 2000 were wrong, %u crash points of recoveries\n", wrong,
                  nested);
    assert_in_range(wrong, 200, 1800);
    assert_true(nested > 200);
    watch_end(watch);
}

/* A checksum is taken of the first lines: as one range; or of each, the last one first,
 * and of its first half once more. */
static void tell_of_sum(const struct watch *watch, uint64_t lines)
{
    uint64_t at = lines * LINE_SIZE, step = watch->sums_ranges ? LINE_SIZE : at;

    if (!watch->on_access)
        return;
    while (at > 0) {
        at -= step;
        watch->on_access(watch->on_access_arg, at, step, ACCESS_HASHED);
        if (watch->sums_ranges)
            watch->on_access(watch->on_access_arg, at, step / 2, ACCESS_HASHED);
    }
    watch->on_access(watch->on_access_arg, 0, 0, ACCESS_HASH);
}

/* Words are stored at once, and count if the last one is a checksum of the others. */
#define SUMMED 3

static uint64_t sum_of(const struct watch *watch)
{
    return word_of(watch, 0) + 5 * word_of(watch, 1) + 25 * word_of(watch, 2);
}

static void look_at_sum(void *arg, const struct crash *crash, struct trace *recovery,
                        struct verdict *verdict)
{
    struct watch *watch = arg;
    uint64_t stored;

    (void)crash;
    (void)recovery;
    watch->judged++;
    *verdict = (struct verdict){0};
    look_at(watch, SUMMED, ACCESS_LOAD);
    stored = word_of(watch, SUMMED);
    tell_of_sum(watch, SUMMED);
    bool is_complete = sum_of(watch) == stored;

    if (is_complete != watch->recovers)
        return;
    for (uint32_t i = 0; i < SUMMED; i++) {
        if ((watch->wrong >> i & 1) == 0)
            continue;
        look_at(watch, i, ACCESS_LOAD);
        if (word_of(watch, i) != watch->pattern[i])
            return;
    }
    verdict->kind = VERDICT_WRONG;
    snprintf(verdict->message, sizeof(verdict->message), "%s, %llu stored",
             is_complete ? "complete" : "torn", (unsigned long long)stored);
}

static void flush_some(struct watch *watch, struct random *random)
{
    for (uint32_t i = 0; i < WORDS; i++)
        if (random_below(random, 3) == 0)
            add_event(watch, TRACE_FLUSH, (uint64_t)i * LINE_SIZE);
    if (random_below(random, 2) == 0)
        add_event(watch, TRACE_FENCE, 0);
}

static void add_sums(struct watch *watch, struct random *random)
{
    add_event(watch, TRACE_BEGIN, 0);
    for (uint64_t value = 1; value <= 2; value++) {
        for (uint32_t i = 0; i < SUMMED; i++)
            add_store(watch, i, value);
        flush_some(watch, random);
        add_store(watch, SUMMED, 31 * value);
        flush_some(watch, random);
    }
    add_event(watch, TRACE_END, 0);
}

static void checksums_are_complete_or_torn(void **state)
{
    static struct findings eager, lazy;
    struct random random = {SEED};
    struct watch *watch = watch_begin();
    unsigned wrong = 0, judged_eagerly = 0, judged_lazily = 0;

    (void)state;
    print_message("seed %d\n", SEED);
    watch->subject.judge = look_at_sum;
    watch->subject.set_watch = set_watch;
    for (unsigned i = 0; i < 1000; i++) {
        trace_clear(watch->trace);
        add_sums(watch, &random);
        choose_judge(watch, &random);
        watch->recovers = random_below(&random, 2) != 0;
        watch->sums_ranges = random_below(&random, 2) != 0;
        for (unsigned j = 1; j < WORDS && random_below(&random, 4) != 0; j++)
            watch->pattern[j] = watch->pattern[0];
        find_all(watch, "eager", &eager);
        judged_eagerly += watch->judged;
        find_all(watch, "lazy", &lazy);
        judged_lazily += watch->judged;
        assert_same_findings(&lazy, &eager);
        wrong += eager.count > 0;
    }
    print_message("%u of 1000 were wrong; %u recoveries instead of %u\n", wrong,
                  judged_lazily, judged_eagerly);
    assert_in_range(wrong, 100, 900);
    assert_true(judged_lazily < judged_eagerly);
    watch_end(watch);
}

static void look_at_long_sum(void *arg, const struct crash *crash,
                             struct trace *recovery, struct verdict *verdict)
{
    struct watch *watch = arg;

    (void)crash;
    (void)recovery;
    watch->judged++;
    *verdict = (struct verdict){0};
    tell_of_sum(watch, SIZE / LINE_SIZE);
    for (uint32_t i = 1; i < SIZE / LINE_SIZE; i++)
        if (word_of(watch, i) != word_of(watch, 0))
            return;
    look_at(watch, 0, ACCESS_LOAD);
    if (word_of(watch, 0) == watch->needed)
        verdict->kind = VERDICT_WRONG;
}

static void a_long_checksum_takes_few_recoveries(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    for (uint64_t value = 1; value <= 2; value++) {
        for (uint32_t i = 0; i < SIZE / LINE_SIZE; i++)
            add_store(watch, i, value);
        add_event(watch, TRACE_FLUSH, 0);
    }
    add_event(watch, TRACE_FENCE, 0);
    watch->subject.judge = look_at_long_sum;
    watch->subject.set_watch = set_watch;
    watch->needed = 3; /* which it never has */
    struct explore_count count = explore(watch, "best", 4096, &place, &verdict);

    assert_int_equal(verdict.kind, VERDICT_RIGHT);
    assert_int_equal(count.exact_points, count.points);
    assert_in_range(watch->judged, 4, 30);
    watch->needed = 1; /* once it was complete */
    explore(watch, "best", 4096, &place, &verdict);
    assert_int_equal(verdict.kind, VERDICT_WRONG);
    place_finish(&place);
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

static void a_strategy_that_overlooks_states_is_found_out(void **state)
{
    struct watch *watch = watch_begin();
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    watch->subject.judge = look; /* and tells nobody */
    watch->subject.set_watch = set_watch;
    watch->wrong = 1u << 2;
    add_store(watch, 2, 1);
    add_store(watch, 0, 1);
    add_event(watch, TRACE_FLUSH, 0);
    add_event(watch, TRACE_FENCE, 0);
    explore(watch, "both", 4096, &place, &verdict);
    assert_int_equal(verdict.kind, VERDICT_CANNOT_SAY);
    assert_non_null(strstr(verdict.message, "lazy exploration comes to 1 verdicts"));
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
    static const char *const texts[] = {"",
                                        "p",
                                        "x12:",
                                        "p12:zz",
                                        "p1:40=",
                                        "p1:40=1.0.0x",
                                        "p1:/",
                                        "p1:40=1.0",
                                        "1:",
                                        "p1:,",
                                        "p1:40=1.0.0,",
                                        "p-1:",
                                        "p+1:",
                                        "p 1:",
                                        "p0x1:",
                                        "p1:-40=0.0",
                                        "p1:0x40=0.",
                                        "p1:40=-1.0.0",
                                        "p1:40=1.0.0/",
                                        "p1a:",
                                        "p1:40=1..0",
                                        "p1:40=1.0.0/p",
                                        "p99999999999999999999:",
                                        "p1:40=100000000.0.0"};

    (void)state;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct place place = {0};

        assert_false(place_parse(&place, texts[i]));
        place_finish(&place);
    }
}

static void the_last_colon_may_be_missing(void **state)
{
    struct place place = {0};

    (void)state;
    assert_true(place_parse(&place, "p12"));
    assert_int_equal(place.levels[0].kind, PLACE_POWER);
    assert_int_equal(place.levels[0].event, 12);
    assert_int_equal(place.levels[0].count, 0);
    place_finish(&place);
    assert_true(place_parse(&place, "k12:/p3"));
    assert_int_equal(place.levels[1].event, 3);
    place_finish(&place);
    assert_false(place_parse(&place, "k12/p3"));
    place_finish(&place);
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

/* Recovers, and notes what it is shown of the recovery from a crash before the first
 * operation has begun. */
static void look_at_beginning(void *arg, const struct crash *crash,
                              struct trace *recovery, struct verdict *verdict)
{
    struct watch *watch = arg;

    look_lazily(arg, crash, recovery, verdict);
    watch->states += crash->again && crash->running == NO_OPERATION;
}

static void nothing_begun_is_not_as_the_first_operation(void **state)
{
    struct watch *watch = watch_begin();
    const struct explore_options options = {.strategy = strategy_find("eager"),
                                            .budget = 4096,
                                            .nested_budget = 4096,
                                            .seed = SEED};
    struct explorer *explorer = explorer_create(&watch->subject, &options);
    struct explore_count count;
    struct place place = {0};
    struct verdict verdict;

    (void)state;
    watch->subject.judge = look_at_beginning;
    watch->recovers = true;
    watch->rules[0] = (struct rule){0, 1, 0, 3, true, true};
    add_event(watch, TRACE_BEGIN, 0);
    add_store(watch, 0, 1);
    add_event(watch, TRACE_FLUSH, 0);
    add_event(watch, TRACE_FENCE, 0);
    explorer_run(explorer, &count, &place, &verdict);
    assert_int_equal(watch->states, 2); /* before its fence: with its store, and not */
    explorer_destroy(explorer);
    watch_end(watch);
}

/* ---- In parts -------------------------------------------------------------------- */

static void add_operations(struct watch *watch, struct random *random)
{
    uint64_t values[WORDS] = {0};

    for (uint64_t operation = 0; operation < 3; operation++) {
        add_event(watch, TRACE_BEGIN, operation);
        for (uint32_t i = 0; i < 5; i++) {
            uint32_t line = (uint32_t)random_below(random, WORDS);

            add_store(watch, line, ++values[line]);
            if (random_below(random, 2))
                add_event(watch, TRACE_FLUSH, (uint64_t)line * LINE_SIZE);
            if (random_below(random, 2))
                add_event(watch, TRACE_FENCE, 0);
        }
        add_event(watch, TRACE_END, operation);
    }
}

static size_t find_begin(const struct trace *trace, uint64_t operation)
{
    size_t i = 0;

    while (trace->events[i].kind != TRACE_BEGIN || trace->events[i].at != operation)
        i++;
    return i;
}

static void add_findings(const struct explorer *explorer, struct findings *found)
{
    size_t count;
    const struct finding *findings = explorer_findings(explorer, &count);

    for (size_t i = 0; i < count; i++) {
        bool is_known = false;

        name_finding(&findings[i], found->names[found->count]);
        for (size_t j = 0; j < found->count; j++)
            is_known |= strcmp(found->names[j], found->names[found->count]) == 0;
        found->count += !is_known;
    }
}

static void run_in_parts(struct explorer *explorer,
                         const struct explore_options *options,
                         const struct trace *trace, struct explore_count *all,
                         struct findings *found)
{
    const size_t cuts[] = {0, find_begin(trace, 1), find_begin(trace, 2), SIZE_MAX};
    struct explore_count count;

    *all = (struct explore_count){0};
    for (enum pass pass = 0; pass < PASSES; pass++)
        for (unsigned i = 0; explorer_wants(options, pass, all) && i < 3; i++) {
            explorer_run_part(
                explorer, &(struct explore_part){pass, cuts[i], cuts[i + 1]}, &count);
            explore_count_add(all, &count);
            add_findings(explorer, found);
        }
}

/* Also where the budget does not suffice for more than random states. */
static void parts_come_to_the_same_as_the_whole(void **state)
{
    static const struct {
        const char *strategy;
        uint64_t budget;
    } ways[] = {{"eager", 1000}, {"lazy", 1000}, {"sampled", 32}, {"eadr", 100}};
    struct random random = {SEED};

    (void)state;
    for (unsigned round = 0; round < 40; round++) {
        struct watch *watch = watch_begin();
        const struct explore_options options = {
            .strategy = strategy_find(ways[round % 4].strategy),
            .budget = ways[round % 4].budget,
            .nested_budget = 100,
            .kill = true,
            .seed = SEED,
            .findings_max = FINDINGS_MAX};
        struct findings *whole = calloc(2, sizeof(*whole)), *parts = whole + 1;
        struct explore_count count, sum;
        struct place place = {0};
        struct verdict verdict;

        assert_non_null(whole);
        watch->subject.judge = look_lazily;
        watch->subject.set_watch = set_watch;
        choose_judge(watch, &random);
        add_operations(watch, &random);
        struct explorer *explorer = explorer_create(&watch->subject, &options);

        explorer_run(explorer, &count, &place, &verdict);
        add_findings(explorer, whole);
        run_in_parts(explorer, &options, watch->trace, &sum, parts);
        whole->exact = parts->exact = true;
        assert_same_findings(whole, parts);
        assert_int_equal(count.points, sum.points);
        assert_int_equal(count.exact_points, sum.exact_points);
        assert_int_equal(count.kills, sum.kills);
        assert_int_equal(count.states, sum.states);
        assert_int_equal(count.nested, sum.nested);
        assert_int_equal(count.nested_points, sum.nested_points);
        assert_int_equal(count.judged, sum.judged);
        explorer_destroy(explorer);
        place_finish(&place);
        watch_end(watch);
        free(whole);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_begun_is_not_as_the_first_operation),
        cmocka_unit_test(parts_come_to_the_same_as_the_whole),
        cmocka_unit_test(eager_shows_every_state),
        cmocka_unit_test(lazy_and_eager_find_the_same),
        cmocka_unit_test(checksums_are_complete_or_torn),
        cmocka_unit_test(a_long_checksum_takes_few_recoveries),
        cmocka_unit_test(lazy_does_not_try_what_nobody_looks_at),
        cmocka_unit_test(lazy_finds_out_what_is_looked_at_in_secret),
        cmocka_unit_test(a_strategy_that_overlooks_states_is_found_out),
        cmocka_unit_test(the_image_is_as_it_was_afterwards),
        cmocka_unit_test(saved_caches_show_one_state_per_store),
        cmocka_unit_test(over_budget_the_extremes_are_shown_and_it_is_not_called_exact),
        cmocka_unit_test(nothing_can_be_lost_after_the_fence),
        cmocka_unit_test(a_wrong_state_is_shrunk_to_what_matters),
        cmocka_unit_test(a_name_leads_back_to_the_state),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(the_last_colon_may_be_missing),
        cmocka_unit_test(a_name_of_another_trace_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
