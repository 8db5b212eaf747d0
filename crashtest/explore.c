/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/explorer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/clock.h"

/* Contents of a line that are tried where not all states can be. */
#define BOUNDED_CONTENTS 16
#define LAZY_CONTENTS 4096
#define SEEN_FIRST 4096
#define STATE_COMPARED 0xffffffffffffffc5u /* a prime: no judge asks more of it */
#define RECOVERY_EVENTS_MAX ((size_t)1 << 22)

static void *check_memory(void *memory)
{
    if (!memory) {
        fputs("crashtest: no memory to explore\n", stderr);
        exit(2);
    }
    return memory;
}

void *explorer_grow(void *memory, size_t needed, uint32_t *capacity, size_t size)
{
    if (needed <= *capacity)
        return memory;
    *capacity = (uint32_t)(needed * 2 + 64);
    return check_memory(realloc(memory, *capacity * size));
}

void explore_count_add(struct explore_count *to, const struct explore_count *from)
{
    to->points += from->points;
    to->all_points += from->all_points;
    to->exact_points += from->exact_points;
    to->kills += from->kills;
    to->states += from->states;
    to->nested += from->nested;
    to->nested_points += from->nested_points;
    to->exact_nested_points += from->exact_nested_points;
    to->judged += from->judged;
    to->nested_is_bounded |= from->nested_is_bounded;
    to->recovery_stores |= from->recovery_stores;
    to->out_of_time |= from->out_of_time;
    to->is_stopped |= from->is_stopped;
    if (__builtin_add_overflow(to->possible, from->possible, &to->possible))
        to->possible = UINT64_MAX;
}

/* ---- Places ---------------------------------------------------------------------- */

/* The lines that are not as they were stored last. */
static void note_level(const struct level *level, struct place_level *place)
{
    place->kind = level->kind;
    place->event = level->event;
    place->count = 0;
    for (uint32_t i = 0; i < level->choice_count; i++) {
        const struct choice *c = &level->choices[i];

        if (c->chosen != UINT32_MAX && c->chosen + 1 < c->count)
            place_add(place, c->at, level->contents[c->first + c->chosen].choice);
    }
}

/* The same verdict on another state of the crash point is not worth noting. */
static bool is_noted(const struct explorer *x, unsigned number)
{
    for (uint32_t i = 0; i < x->finding_count; i++) {
        const struct finding *f = &x->findings[i];
        const struct place_level *levels = f->place.levels;

        if (levels[RUN].kind == x->levels[RUN].kind &&
            levels[RUN].event == x->levels[RUN].event &&
            (levels[RECOVERY].kind != PLACE_NONE) == (number == RECOVERY) &&
            (number == RUN || levels[RECOVERY].event == x->levels[RECOVERY].event) &&
            strcmp(f->verdict.message, x->verdict.message) == 0)
            return true;
    }
    return false;
}

void explorer_note_wrong(struct explorer *x, unsigned number)
{
    x->wrong++;
    if (x->verdict.kind == VERDICT_WRONG && is_noted(x, number))
        return;
    x->findings = explorer_grow(x->findings, x->finding_count + 1, &x->finding_capacity,
                                sizeof(*x->findings));
    struct finding *f = &x->findings[x->finding_count++];

    *f = (struct finding){.verdict = x->verdict};
    note_level(&x->levels[RUN], &f->place.levels[RUN]);
    if (number == RECOVERY)
        note_level(&x->levels[RECOVERY], &f->place.levels[RECOVERY]);
    x->is_stopped = x->verdict.kind == VERDICT_CANNOT_SAY || x->verdict.hangs ||
                    x->finding_count >= x->options->findings_max;
}

bool finding_is_same(const struct finding *a, const struct finding *b)
{
    for (unsigned i = 0; i < LEVELS; i++)
        if (a->place.levels[i].kind != b->place.levels[i].kind ||
            a->place.levels[i].event != b->place.levels[i].event)
            return false;
    return strcmp(a->verdict.message, b->verdict.message) == 0;
}

static void forget_findings(struct explorer *x)
{
    for (uint32_t i = 0; i < x->finding_count; i++)
        place_finish(&x->findings[i].place);
    x->finding_count = 0;
}

const struct finding *explorer_findings(const struct explorer *x, size_t *count)
{
    *count = x->finding_count;
    return x->findings;
}

/* ---- States seen already --------------------------------------------------------- */

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static uint64_t hash_line(uint64_t at, const uint8_t *bytes)
{
    uint64_t hash = mix(at + 1);

    for (unsigned i = 0; i < LINE_SIZE; i += 8)
        hash = mix(hash ^ trace_load_word(bytes + i));
    return hash;
}

static bool insert(uint64_t *table, uint64_t capacity, uint64_t key)
{
    uint64_t i = key & (capacity - 1);

    for (; table[i] != 0; i = (i + 1) & (capacity - 1))
        if (table[i] == key)
            return false;
    table[i] = key;
    return true;
}

static void grow_seen(struct explorer *x)
{
    uint64_t capacity = x->seen_capacity ? x->seen_capacity * 2 : SEEN_FIRST;
    uint64_t *table = check_memory(calloc(capacity, sizeof(*table)));

    for (uint64_t i = 0; i < x->seen_capacity; i++)
        if (x->seen[i] != 0)
            insert(table, capacity, x->seen[i]);
    free(x->seen);
    x->seen = table;
    x->seen_capacity = capacity;
}

/* A large table is not worth clearing. */
static void forget_seen(struct explorer *x)
{
    if (x->seen_capacity > SEEN_FIRST) {
        free(x->seen);
        x->seen = NULL;
        x->seen_capacity = 0;
    } else if (x->seen_count > 0) {
        memset(x->seen, 0, x->seen_capacity * sizeof(*x->seen));
    }
    x->seen_count = 0;
}

/* Number after number: so small ones do not make up for each other. */
static uint64_t add_to_hash(uint64_t hash, uint64_t number)
{
    return mix(mix(hash) ^ number);
}

static uint64_t hash_crash(const struct crash *crash, uint64_t outcome)
{
    uint64_t hash = add_to_hash(crash->running, crash->returned);

    if (!crash->again)
        return hash;
    hash = add_to_hash(hash, crash->recovery_running);
    hash = add_to_hash(hash, crash->recovery_returned);
    return add_to_hash(hash, outcome);
}

static bool is_new(struct explorer *x, unsigned number)
{
    uint64_t key = add_to_hash(hash_crash(&x->crash, x->outcome) ^ x->hash,
                               (uint64_t)number << 8 | x->pass);

    if (x->compared) /* each point anew */
        key ^= mix((x->count.points + 1) << 32 ^ x->count.nested_points);
    if (x->options->every_failure)
        key ^= mix(x->levels[RUN].event << 32 ^ x->levels[RECOVERY].event);

    if (x->seen_count >= x->seen_capacity / 2)
        grow_seen(x);
    if (!insert(x->seen, x->seen_capacity, key ? key : 1))
        return false;
    x->seen_count++;
    return true;
}

/* ---- Choices --------------------------------------------------------------------- */

static void put_line(struct explorer *x, uint64_t at, const uint8_t *bytes)
{
    trace_copy_line(x->subject->image + at, bytes);
    if (x->subject->shadow)
        trace_copy_line(x->subject->shadow + at, bytes);
}

static void choose(struct explorer *x, struct level *level, uint32_t i, uint32_t chosen)
{
    struct choice *c = &level->choices[i];
    const struct content *content = &level->contents[c->first + chosen];

    if (c->chosen == chosen)
        return;
    x->hash ^= content->hash ^
               (c->chosen == UINT32_MAX ? c->hash_before
                                        : level->contents[c->first + c->chosen].hash);
    put_line(x, c->at, content->bytes);
    c->chosen = chosen;
}

static void choose_none(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        choose(x, level, i, 0);
}

void explorer_choose_all(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        choose(x, level, i, last_of(level, i));
}

static void add_content(struct level *level, const struct px86_line *line,
                        struct px86_choice choice)
{
    level->contents = explorer_grow(level->contents, level->content_count + 1,
                                    &level->content_capacity, sizeof(*level->contents));
    struct content *content = &level->contents[level->content_count++];

    content->choice = choice;
    px86_compose(&level->px86, line, choice, content->bytes);
    content->hash = hash_line(line->at, content->bytes);
}

static struct choice *begin_choice(struct explorer *x, struct level *level, uint32_t i)
{
    const struct px86_line *line = &level->px86.lines[i];

    level->choices = explorer_grow(level->choices, level->choice_count + 1,
                                   &level->choice_capacity, sizeof(*level->choices));
    level->choice_of =
        explorer_grow(level->choice_of, level->px86.line_count,
                      &level->choice_of_capacity, sizeof(*level->choice_of));
    level->choice_of[i] = level->choice_count;
    struct choice *c = &level->choices[level->choice_count++];

    *c = (struct choice){
        .at = line->at, .line = i, .first = level->content_count, .chosen = UINT32_MAX};
    trace_copy_line(c->before, x->subject->image + c->at);
    c->hash_before = hash_line(c->at, c->before);
    return c;
}

static void add_choice(struct explorer *x, struct level *level, uint32_t i,
                       uint32_t max)
{
    const struct px86_line *line = &level->px86.lines[i];
    struct choice *c = begin_choice(x, level, i);

    level->scratch = explorer_grow(level->scratch, max, &level->scratch_capacity,
                                   sizeof(*level->scratch));
    c->count = px86_choices(&level->px86, line, level->scratch, max);
    for (uint32_t j = 0; j < c->count; j++)
        add_content(level, line, level->scratch[j]);
}

uint64_t explorer_count_states(const struct level *level)
{
    const struct px86 *px86 = &level->px86;
    uint64_t product = 1;

    for (uint32_t i = 0; i < px86->line_count; i++)
        if (__builtin_mul_overflow(product, px86_count(px86, &px86->lines[i]),
                                   &product))
            return UINT64_MAX;
    return product;
}

static bool is_as_in_image(const struct explorer *x, const struct px86_line *line)
{
    return line->first == PX86_NONE &&
           memcmp(line->floor, x->subject->image + line->at, LINE_SIZE) == 0;
}

uint64_t explorer_budget(const struct explorer *x, const struct level *level)
{
    return level == &x->levels[RUN] ? x->options->budget : x->options->nested_budget;
}

/* Its states need not be few, only the contents of each line. */
static bool is_lazy(const struct explorer *x, const struct level *level)
{
    return x->options->strategy->is_lazy && level->kind == PLACE_POWER;
}

static uint32_t contents_max(const struct explorer *x, const struct level *level,
                             bool states_fit)
{
    if (states_fit)
        return UINT32_MAX;
    return is_lazy(x, level) ? LAZY_CONTENTS : BOUNDED_CONTENTS;
}

/* Lays out the choices of a point. Are they all that there are? */
static bool begin_choices(struct explorer *x, struct level *level, uint64_t states)
{
    uint64_t budget = explorer_budget(x, level);
    const struct px86 *px86 = &level->px86;
    uint32_t max = contents_max(x, level, states <= budget);
    bool all_fit = true;

    level->choice_count = level->content_count = 0;
    for (uint32_t i = 0; i < px86->line_count; i++) {
        uint32_t count = px86_count(px86, &px86->lines[i]);

        if (is_as_in_image(x, &px86->lines[i]))
            continue;
        if (count > max) {
            count = max;
            all_fit = false;
        }
        add_choice(x, level, i, count < 2 ? 2 : count);
    }
    return all_fit && (states <= budget || is_lazy(x, level));
}

static void end_choices(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++) {
        const struct choice *c = &level->choices[i];

        if (c->chosen == UINT32_MAX)
            continue;
        x->hash ^= level->contents[c->first + c->chosen].hash ^ c->hash_before;
        put_line(x, c->at, c->before);
    }
    level->choice_count = 0;
}

/* ---- Judging --------------------------------------------------------------------- */

/* Is the state right? */
bool explorer_judge(struct explorer *x, unsigned number)
{
    struct trace *trace = x->levels[number].trace;

    x->count.judged++;
    x->crash.state = x->compared ? STATE_COMPARED : x->hash;
    x->crash.is_rare = x->is_rare && !x->compared;
    trace_clear(trace);
    x->subject->judge(x->subject->arg, &x->crash, trace, &x->verdict);
    bool is_right = x->verdict.kind == VERDICT_RIGHT;

    x->count.recovery_stores = x->count.recovery_stores || trace_has_stores(trace);
    if (!is_right && x->is_exploring)
        explorer_note_wrong(x, number);
    if (x->compared)
        compare_note(x);
    if (x->end != 0 && clock_now() > x->end)
        x->count.out_of_time = true;
    return is_right;
}

void explorer_count_state(struct explorer *x, unsigned number)
{
    if (number == RECOVERY)
        x->count.nested++;
    else if (x->pass == PASS_POWER)
        x->count.states++;
}

/* The bound on recursion is LEVELS: the states of recovery lead to no others. */
static void visit(struct explorer *x, unsigned number)
{
    if (is_point_over(x) || !is_new(x, number))
        return;
    explorer_count_state(x, number);
    if (explorer_judge(x, number) && number == RUN && x->pass == PASS_RECOVERY &&
        !is_over(x))
        explorer_visit_nested(x, false);
}

/* ---- Strategies ------------------------------------------------------------------ */

/* As an odometer. */
void explorer_visit_every(struct explorer *x, unsigned number)
{
    struct level *level = &x->levels[number];
    uint32_t i = 0;

    choose_none(x, level);
    if (level->choice_count == 0)
        visit(x, number);
    while (i < level->choice_count && !is_point_over(x)) {
        visit(x, number);
        for (i = 0; i < level->choice_count; i++) {
            if (level->choices[i].chosen < last_of(level, i)) {
                choose(x, level, i, level->choices[i].chosen + 1);
                break;
            }
            choose(x, level, i, 0);
        }
    }
}

/* One line in each of its ways, or some of many, the others all as they are. */
static void visit_one_line(struct explorer *x, unsigned number, uint32_t i)
{
    struct level *level = &x->levels[number];
    uint32_t before = level->choices[i].chosen;
    uint32_t step = last_of(level, i) / (4 * BOUNDED_CONTENTS) + 1;

    for (uint32_t chosen = 0; chosen <= last_of(level, i) && !is_point_over(x);
         chosen += step) {
        choose(x, level, i, chosen);
        visit(x, number);
    }
    choose(x, level, i, before);
}

static void visit_each_line(struct explorer *x, unsigned number, uint64_t most)
{
    for (uint32_t i = 0; i < x->levels[number].choice_count && i < most; i++)
        visit_one_line(x, number, i);
}

static void visit_pairs(struct explorer *x, unsigned number, uint64_t left)
{
    struct level *level = &x->levels[number];

    for (uint32_t i = 0; i < level->choice_count; i++)
        for (uint32_t j = 0; j < i && left > 0 && !is_point_over(x); j++, left--) {
            choose_none(x, level);
            choose(x, level, i, last_of(level, i));
            choose(x, level, j, last_of(level, j));
            visit(x, number);
        }
}

/* Anew at each crash point of the run: which of them were before does not matter. */
static void seed_random(struct explorer *x, size_t event)
{
    x->random = x->options->seed ^ mix(event);
}

static uint32_t random_below(struct explorer *x, uint32_t limit)
{
    x->random = x->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(x->random >> 33) % limit;
}

/* Half of the random states favour the extremes of a line. */
static void visit_random(struct explorer *x, unsigned number, uint64_t left)
{
    struct level *level = &x->levels[number];

    for (; left > 0 && !is_point_over(x); left--) {
        for (uint32_t i = 0; i < level->choice_count; i++) {
            uint32_t chosen = random_below(x, level->choices[i].count);

            if (left % 2)
                chosen = chosen % 2 ? last_of(level, i) : 0;
            choose(x, level, i, chosen);
        }
        visit(x, number);
    }
}

/* Where a content is not among a line's, it is put there as one more. */
static void choose_content(struct explorer *x, struct level *level, uint32_t i,
                           struct px86_choice choice)
{
    struct choice *c = &level->choices[i];
    const struct px86_line *line = &level->px86.lines[c->line];
    struct content *content = &level->contents[c->first];

    choose(x, level, i, last_of(level, i));
    x->hash ^= content[c->chosen].hash;
    content[0].choice = choice;
    px86_compose(&level->px86, line, choice, content[0].bytes);
    content[0].hash = hash_line(c->at, content[0].bytes);
    x->hash ^= content[0].hash;
    put_line(x, c->at, content[0].bytes);
    c->chosen = 0;
}

static uint32_t first_store_after(const struct level *level, uint32_t event)
{
    uint32_t found = UINT32_MAX;

    for (uint32_t i = 0; i < level->choice_count; i++) {
        const struct px86_line *line = &level->px86.lines[level->choices[i].line];

        for (uint32_t s = line->first; s != PX86_NONE; s = level->px86.stores[s].next)
            if (level->px86.stores[s].event > event &&
                level->px86.stores[s].event < found)
                found = level->px86.stores[s].event;
    }
    return found;
}

/* As if stores arrived one by one, in their order. Ends with floors where they were. */
static void visit_chain(struct explorer *x, unsigned number, uint64_t left)
{
    struct level *level = &x->levels[number];
    uint32_t event = 0;

    for (; left > 0 && event != UINT32_MAX && !is_point_over(x); left--) {
        event = first_store_after(level, event);
        for (uint32_t i = 0; i < level->choice_count; i++) {
            const struct px86_line *line = &level->px86.lines[level->choices[i].line];

            choose_content(x, level, i, px86_choice_before(&level->px86, line, event));
        }
        visit(x, number);
    }
    for (uint32_t i = 0; i < level->choice_count; i++)
        choose_content(x, level, i, (struct px86_choice){0});
}

static void visit_some(struct explorer *x, unsigned number)
{
    struct level *level = &x->levels[number];
    uint64_t budget = explorer_budget(x, level);

    explorer_choose_all(x, level);
    visit(x, number);
    choose_none(x, level);
    visit(x, number);
    visit_chain(x, number, budget / 8);
    choose_none(x, level);
    visit_each_line(x, number, budget / 64);
    explorer_choose_all(x, level);
    visit_each_line(x, number, budget / 64);
    visit_pairs(x, number, budget / 4);
    visit_random(x, number, budget / 4);
}

static void visit_eagerly(struct explorer *x, unsigned number, bool all_fit)
{
    if (all_fit)
        explorer_visit_every(x, number);
    else
        visit_some(x, number);
}

static void visit_sampled(struct explorer *x, unsigned number, bool all_fit)
{
    (void)all_fit;
    visit_some(x, number);
}

/*
 * Eagerly where lines cannot be watched, have too many contents, or need too many runs.
 * What recovery does not load can matter once that is crashed: then states are the same
 * only if they are equal.
 */
static void visit_lazily(struct explorer *x, unsigned number, bool all_fit)
{
    struct level *level = &x->levels[number];
    bool states_fit = explorer_count_states(level) <= explorer_budget(x, level);
    bool is_crashed_again = number == RUN && x->pass == PASS_RECOVERY;

    if (!is_lazy(x, level) || !x->subject->set_watch ||
        (is_crashed_again && states_fit)) {
        visit_eagerly(x, number, all_fit);
        return;
    }
    x->count.nested_is_bounded |= is_crashed_again;
    if ((all_fit && lazy_visit(x, number)) || is_point_over(x))
        return;
    x->fell_short = !states_fit;
    visit_eagerly(x, number, states_fit);
}

/* Few states are tried as they are: then nothing depends on what is watched. */
void explorer_visit_at_best(struct explorer *x, unsigned number, bool all_fit)
{
    uint64_t states = explorer_count_states(&x->levels[number]);

    if (states <= explorer_budget(x, &x->levels[number]))
        visit_eagerly(x, number, all_fit);
    else
        visit_lazily(x, number, all_fit);
}

const struct strategy strategies[] = {
    {"best", "eager where the states fit into the budget, else lazy (default)",
     explorer_visit_at_best, true, false},
    {"eager", "every state of a crash point, as far as the budget goes", visit_eagerly,
     false, false},
    {"lazy", "only what recovery and check look at, as far as the budget goes",
     visit_lazily, true, false},
    {"sampled", "extremes, single lines, pairs, and random states of each crash point",
     visit_sampled, false, false},
    {"eadr", "the caches are saved: everything stored is durable", visit_sampled, false,
     true},
    {"both", "a test of the tester: as best, and eager and lazy must agree",
     compare_visit, true, false},
};
const size_t strategy_count = sizeof(strategies) / sizeof(strategies[0]);

const struct strategy *strategy_find(const char *name)
{
    for (size_t i = 0; i < strategy_count; i++)
        if (strcmp(strategies[i].name, name) == 0)
            return &strategies[i];
    return NULL;
}

/* ---- Crash points ---------------------------------------------------------------- */

static void note_point(struct explorer *x, struct explore_point point)
{
    x->points = explorer_grow(x->points, x->point_count + 1, &x->point_capacity,
                              sizeof(*x->points));
    x->points[x->point_count++] = point;
    x->count.points++;
    x->count.exact_points += point.exact;
    if (__builtin_add_overflow(x->count.possible, point.possible, &x->count.possible))
        x->count.possible = UINT64_MAX;
}

static void count_point(struct explorer *x, unsigned number, struct explore_point point)
{
    if (number == RECOVERY) {
        x->count.nested_points++;
        x->count.exact_nested_points += point.exact;
    } else if (x->pass == PASS_POWER || x->pass == PASS_SAVED) {
        point.states = x->count.states - point.states;
        note_point(x, point);
    }
}

const struct explore_point *explorer_points(const struct explorer *x, size_t *count)
{
    *count = x->point_count;
    return x->points;
}

static void visit_point(struct explorer *x, unsigned number, size_t event)
{
    const struct strategy *strategy = x->options->strategy;
    struct level *level = &x->levels[number];

    if (is_over(x))
        return;
    level->kind = PLACE_POWER;
    level->event = event;
    uint64_t states = explorer_count_states(level);
    struct explore_point point = {event, x->count.states, states, false};
    bool all_fit = begin_choices(x, level, states);
    bool outer_fell_short = x->fell_short;
    uint32_t outer_wrong = x->wrong;

    x->fell_short = !all_fit || strategy->visit == visit_sampled;
    x->wrong = 0;
    if (number == RUN)
        seed_random(x, event);
    strategy->visit(x, number, all_fit);
    end_choices(x, level);
    point.exact = !x->fell_short && !is_point_over(x);
    x->count.nested_is_bounded |= x->pass == PASS_RECOVERY && !point.exact;
    count_point(x, number, point);
    x->fell_short = outer_fell_short;
    x->wrong = outer_wrong;
}

static bool is_crash_point(const struct px86 *px86, const struct trace_event *event)
{
    switch (event->kind) {
    case TRACE_FENCE:
        return px86_is_pending(px86, event->thread);
    case TRACE_CLFLUSH:
    case TRACE_END:
        return true;
    default:
        return false;
    }
}

/* ---- Crashes in recovery --------------------------------------------------------- */

static void begin_recovery(struct explorer *x)
{
    x->outcome = x->verdict.outcome;
    x->crash.again = true;
    x->crash.recovery_running = NO_OPERATION;
    x->crash.recovery_returned = 0;
}

static void note_recovery_mark(struct explorer *x, const struct trace_event *e)
{
    if (e->kind == TRACE_BEGIN) {
        x->crash.recovery_running = e->at;
    } else if (e->kind == TRACE_END) {
        x->crash.recovery_running = NO_OPERATION;
        x->crash.recovery_returned = e->at + 1;
    }
}

static void visit_recovery(struct explorer *x)
{
    const struct trace *trace = x->levels[RUN].trace;
    struct px86 *px86 = &x->levels[RECOVERY].px86;
    bool dirty = false;

    begin_recovery(x);
    for (size_t i = 0; i < trace->count; i++) {
        if (is_crash_point(px86, &trace->events[i]))
            visit_point(x, RECOVERY, i);
        px86_apply(px86, &trace->events[i], (uint32_t)i);
        note_recovery_mark(x, &trace->events[i]);
        dirty = dirty || trace_is_store(&trace->events[i]);
    }
    if (dirty)
        visit_point(x, RECOVERY, trace->count);
    x->crash.again = false;
}

void explorer_visit_nested(struct explorer *x, bool was_killed)
{
    struct level *recovery = &x->levels[RECOVERY];

    if (x->options->nested_budget == 0)
        return;
    if (was_killed) {
        px86_copy(&recovery->px86, &x->levels[RUN].px86);
        px86_kill(&recovery->px86);
    } else {
        px86_reset(&recovery->px86);
    }
    visit_recovery(x);
}

/* The state is that in the image, everything that was stored: its base is what was
 * durable. */
static void visit_kill(struct explorer *x, size_t event)
{
    struct level *run = &x->levels[RUN];

    if (is_over(x))
        return;
    run->kind = PLACE_KILLED;
    run->event = event;
    seed_random(x, event);
    x->count.kills++;
    begin_choices(x, run, UINT64_MAX);
    x->wrong = 0;
    explorer_choose_all(x, run);
    x->is_rare = true;
    bool is_right = explorer_judge(x, RUN);

    x->is_rare = false;
    end_choices(x, run);
    if (is_right && !is_over(x))
        explorer_visit_nested(x, true);
}

/* ---- Caches that are saved ------------------------------------------------------- */

static void revert(struct explorer *x, const struct trace *trace)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct trace_event *e = &trace->events[i];

        if (!trace_is_store(e))
            continue;
        trace_store_piece(x->subject->image + e->at, e->before, e->size);
        if (x->subject->shadow)
            trace_store_piece(x->subject->shadow + e->at, e->before, e->size);
    }
}

static void store(struct explorer *x, const struct trace_event *e)
{
    trace_store_piece(x->subject->image + e->at, e->after, e->size);
    if (x->subject->shadow)
        trace_store_piece(x->subject->shadow + e->at, e->after, e->size);
}

static void visit_saved(struct explorer *x, unsigned number, size_t event)
{
    x->levels[number].kind = PLACE_SAVED;
    x->levels[number].event = event;
    x->levels[number].choice_count = 0;
    struct explore_point point = {event, x->count.states, 1, true};

    if (number == RUN)
        x->count.states++;
    else
        x->count.nested++;
    count_point(x, number, point);
    explorer_judge(x, number);
}

static void visit_saved_recovery(struct explorer *x)
{
    const struct trace *trace = x->levels[RUN].trace;

    begin_recovery(x);
    for (size_t i = 0; i < trace->count && !is_over(x); i++) {
        note_recovery_mark(x, &trace->events[i]);
        if (!trace_is_store(&trace->events[i]))
            continue;
        store(x, &trace->events[i]);
        visit_saved(x, RECOVERY, i);
    }
    revert(x, trace);
    x->crash.again = false;
}

/* ---- The run --------------------------------------------------------------------- */

static void note_mark(struct explorer *x, const struct trace_event *e)
{
    if (e->kind == TRACE_BEGIN) {
        x->crash.running = e->at;
    } else if (e->kind == TRACE_END) {
        x->crash.running = NO_OPERATION;
        x->crash.returned = e->at + 1;
    }
}

/* Of the trace; what comes before it is applied, too. */
struct stretch {
    size_t begin, end;
    bool is_last;
};

static struct stretch stretch_of(const struct explorer *x,
                                 const struct explore_part *part)
{
    size_t count = x->subject->trace->count, first = x->options->first;

    return (struct stretch){part->begin > first ? part->begin : first,
                            part->end < count ? part->end : count,
                            part->end == SIZE_MAX};
}

static void run_saved_event(struct explorer *x, size_t i, bool wanted)
{
    const struct trace_event *e = &x->subject->trace->events[i];

    note_mark(x, e);
    if (trace_is_store(e))
        store(x, e);
    if (!wanted || (!trace_is_store(e) && e->kind != TRACE_END))
        return;
    x->wrong = 0;
    visit_saved(x, RUN, i);
    if (x->wrong == 0 && !is_over(x) && x->options->nested_budget > 0)
        visit_saved_recovery(x);
}

static void run_event(struct explorer *x, size_t i, bool wanted)
{
    const struct trace_event *e = &x->subject->trace->events[i];
    bool power = x->pass != PASS_KILL;

    if (wanted && power && is_crash_point(&x->levels[RUN].px86, e))
        visit_point(x, RUN, i);
    px86_apply(&x->levels[RUN].px86, e, (uint32_t)i);
    note_mark(x, e);
    if (wanted && power && e->kind == TRACE_END)
        visit_point(x, RUN, i + 1);
    else if (wanted && !power && trace_ends_group(x->subject->trace, i))
        visit_kill(x, i);
}

static void rewind_run(struct explorer *x)
{
    x->crash = (struct crash){.running = NO_OPERATION};
    x->verdict = (struct verdict){0};
    x->hash = 0;
    for (unsigned i = 0; i < LEVELS; i++) {
        px86_reset(&x->levels[i].px86);
        x->levels[i].choice_count = 0;
    }
}

bool explorer_wants(const struct explore_options *options, enum pass pass,
                    const struct explore_count *count)
{
    if (options->strategy->saves_caches)
        return pass == PASS_SAVED;
    switch (pass) {
    case PASS_POWER:
        return true;
    case PASS_RECOVERY:
        return count->recovery_stores && options->nested_budget > 0;
    case PASS_KILL:
        return options->kill;
    default:
        return false;
    }
}

static void run_cached(struct explorer *x, struct stretch stretch)
{
    bool power = x->pass != PASS_KILL;

    if (power && stretch.begin == 0)
        visit_point(x, RUN, 0);
    for (size_t i = 0; i < stretch.end && !is_over(x); i++)
        run_event(x, i, i >= stretch.begin);
    if (power && stretch.is_last)
        visit_point(x, RUN, stretch.end);
}

static void run_saved(struct explorer *x, struct stretch stretch)
{
    for (size_t i = 0; i < stretch.end && !is_over(x); i++)
        run_saved_event(x, i, i >= stretch.begin);
    revert(x, x->subject->trace);
}

/* As the pass for power failures, or that for saved caches, visits them. */
static uint64_t count_points_at(const struct explorer *x, size_t i)
{
    const struct trace_event *e = &x->subject->trace->events[i];

    if (x->options->strategy->saves_caches)
        return trace_is_store(e) || e->kind == TRACE_END;
    return (uint64_t)is_crash_point(&x->levels[RUN].px86, e) + (e->kind == TRACE_END);
}

uint64_t explorer_count_points(struct explorer *x)
{
    const struct trace *trace = x->subject->trace;
    uint64_t count = 0;

    rewind_run(x);
    if (!x->options->strategy->saves_caches)
        count = 1 + (x->options->first == 0); /* the beginning and the end */
    for (size_t i = 0; i < trace->count; i++) {
        if (i >= x->options->first)
            count += count_points_at(x, i);
        px86_apply(&x->levels[RUN].px86, &trace->events[i], (uint32_t)i);
    }
    return count;
}

static void run_part(struct explorer *x, const struct explore_part *part)
{
    rewind_run(x);
    x->pass = part->pass;
    if (part->pass == PASS_SAVED)
        run_saved(x, stretch_of(x, part));
    else
        run_cached(x, stretch_of(x, part));
}

static void begin_run(struct explorer *x)
{
    x->count = (struct explore_count){0};
    x->point_count = 0;
    x->is_stopped = false;
    forget_findings(x);
    forget_seen(x);
    x->end = x->options->seconds > 0 ? clock_now() + x->options->seconds : 0;
    x->is_exploring = true;
}

static void end_run(struct explorer *x, struct explore_count *count)
{
    x->is_exploring = false;
    x->end = 0;
    x->count.is_stopped = x->is_stopped;
    *count = x->count;
}

void explorer_run_part(struct explorer *x, const struct explore_part *part,
                       struct explore_count *count)
{
    begin_run(x);
    run_part(x, part);
    end_run(x, count);
}

void explorer_run(struct explorer *x, struct explore_count *count, struct place *place,
                  struct verdict *verdict)
{
    begin_run(x);
    for (enum pass pass = 0; pass < PASSES && !is_over(x); pass++)
        if (explorer_wants(x->options, pass, &x->count))
            run_part(x, &(struct explore_part){pass, 0, SIZE_MAX});
    end_run(x, count);
    *verdict = (struct verdict){0};
    if (x->finding_count > 0) {
        *verdict = x->findings[x->finding_count - 1].verdict;
        if (verdict->kind == VERDICT_WRONG)
            *verdict = x->findings[0].verdict;
        place_copy(place, &x->findings[0].place);
    }
}

/* ---- Replaying ------------------------------------------------------------------- */

static const struct place_line *line_of_place(const struct place_level *place,
                                              uint64_t at)
{
    for (size_t i = 0; i < place->count; i++)
        if (place->lines[i].at == at)
            return &place->lines[i];
    return NULL;
}

static struct px86_choice choice_of_place(const struct px86 *px86,
                                          const struct px86_line *line,
                                          const struct place_level *place)
{
    const struct place_line *named = line_of_place(place, line->at);

    return named ? named->choice : px86_choice_before(px86, line, UINT32_MAX);
}

/* Each line gets the one content that the place has of it. */
static bool choose_place(struct explorer *x, struct level *level,
                         const struct place_level *place)
{
    size_t found = 0;

    level->choice_count = level->content_count = 0;
    for (uint32_t i = 0; i < level->px86.line_count; i++) {
        const struct px86_line *line = &level->px86.lines[i];
        struct px86_choice choice = choice_of_place(&level->px86, line, place);

        if (!px86_is_choice(&level->px86, line, choice))
            return false;
        found += line_of_place(place, line->at) != NULL;
        struct choice *c = begin_choice(x, level, i);

        c->count = 1;
        add_content(level, line, choice);
        choose(x, level, level->choice_count - 1, 0);
    }
    return found == place->count;
}

struct account_scope {
    struct account *account;
    const struct trace *run;
    const struct trace *trace; /* of the level */
    unsigned level;
};

static void add_entry(void *arg, const struct px86_store *stored, bool included)
{
    const struct account_scope *scope = arg;
    struct account *account = scope->account;

    bool is_of_run = stored->thread == 0; /* that was killed */

    if (account->count == account->capacity) {
        account->capacity = account->capacity * 2 + 64;
        account->entries = check_memory(
            realloc(account->entries, account->capacity * sizeof(*account->entries)));
    }
    account->entries[account->count++] = (struct account_entry){
        is_of_run ? scope->run->events[stored->event]
                  : scope->trace->events[stored->event],
        stored->event, is_of_run ? RUN : scope->level, !included, false};
}

static int compare_entries(const void *a, const void *b)
{
    const struct account_entry *first = a, *second = b;

    if (first->level != second->level)
        return first->level < second->level ? -1 : 1;
    return first->index < second->index ? -1 : first->index > second->index;
}

static void account_for(struct explorer *x, unsigned number,
                        const struct place_level *place, struct account *account)
{
    const struct px86 *px86 = &x->levels[number].px86;
    struct account_scope scope = {
        account, x->subject->trace,
        number == RUN ? x->subject->trace : x->levels[RUN].trace, number};

    if (!account || place->kind != PLACE_POWER)
        return;
    for (uint32_t i = 0; i < px86->line_count; i++)
        px86_visit(px86, &px86->lines[i], choice_of_place(px86, &px86->lines[i], place),
                   add_entry, &scope);
    if (account->count > 0)
        qsort(account->entries, account->count, sizeof(*account->entries),
              compare_entries);
}

void account_finish(struct account *account)
{
    free(account->entries);
    *account = (struct account){0};
}

/* Applies what is before the crash. False if the trace is shorter. */
static bool advance(struct explorer *x, unsigned number, const struct trace *trace,
                    const struct place_level *place)
{
    size_t end = place->kind == PLACE_POWER ? place->event : place->event + 1;

    if (end > trace->count)
        return false;
    for (size_t i = 0; i < end; i++) {
        px86_apply(&x->levels[number].px86, &trace->events[i], (uint32_t)i);
        if (number == RUN)
            note_mark(x, &trace->events[i]);
        else
            note_recovery_mark(x, &trace->events[i]);
    }
    return true;
}

static bool replay_level(struct explorer *x, unsigned number, const struct trace *trace,
                         const struct place *place, struct account *account)
{
    static const struct place_level everything;
    const struct place_level *level = &place->levels[number];

    if (!advance(x, number, trace, level))
        return false;
    bool exists = choose_place(x, &x->levels[number],
                               level->kind == PLACE_POWER ? level : &everything);

    if (exists) {
        account_for(x, number, level, account);
        explorer_judge(x, number);
    }
    return exists;
}

static bool replay_recovery(struct explorer *x, const struct place *place,
                            struct account *account)
{
    struct px86 *px86 = &x->levels[RECOVERY].px86;

    if (place->levels[RUN].kind == PLACE_KILLED) {
        end_choices(x, &x->levels[RUN]);
        px86_copy(px86, &x->levels[RUN].px86);
        px86_kill(px86);
    }
    bool exists = replay_level(x, RECOVERY, x->levels[RUN].trace, place, account);

    end_choices(x, &x->levels[RECOVERY]);
    return exists;
}

bool explorer_replay(struct explorer *x, const struct place *place, struct crash *crash,
                     struct verdict *verdict, struct account *account)
{
    rewind_run(x);
    x->is_rare = true;
    bool exists = replay_level(x, RUN, x->subject->trace, place, account);

    if (exists && place->levels[RECOVERY].kind != PLACE_NONE) {
        begin_recovery(x);
        x->verdict = (struct verdict){0};
        exists = replay_recovery(x, place, account);
    }
    x->is_rare = false;
    end_choices(x, &x->levels[RUN]);
    if (account)
        account->recovery = x->levels[RUN].trace;
    if (crash)
        *crash = x->crash;
    *verdict = x->verdict;
    return exists;
}

/* ---- Shrinking ------------------------------------------------------------------- */

static bool is_still_wrong(struct explorer *x, const struct place *place)
{
    struct verdict verdict;

    return explorer_replay(x, place, NULL, &verdict, NULL) &&
           verdict.kind == VERDICT_WRONG;
}

static void remove_line(struct place_level *level, size_t i)
{
    level->count--;
    memmove(&level->lines[i], &level->lines[i + 1],
            (level->count - i) * sizeof(level->lines[0]));
}

/* Lines that need not lose anything do not. */
static void shrink_lines(struct explorer *x, struct place *place, unsigned number)
{
    struct place smaller = {0};

    for (size_t i = place->levels[number].count; i-- > 0;) {
        place_copy(&smaller, place);
        remove_line(&smaller.levels[number], i);
        if (is_still_wrong(x, &smaller))
            place_copy(place, &smaller);
    }
    place_finish(&smaller);
}

/* The choice with one group, or one stream, more. Which stream: the oldest that is
 * missing, not among `tried`. */
static bool add_one(struct px86_choice *choice, unsigned step)
{
    if (step == 0) {
        *choice = (struct px86_choice){choice->whole + 1, 0, choice->streams};
        return true;
    }
    uint64_t bit = (uint64_t)1 << (step - 1);

    if (choice->streams & bit)
        return false;
    choice->streams |= bit;
    return true;
}

static void shrink_line(struct explorer *x, struct place *place, unsigned number,
                        size_t i)
{
    struct place smaller = {0};

    for (unsigned step = 0; step <= 64; step++) {
        place_copy(&smaller, place);
        while (add_one(&smaller.levels[number].lines[i].choice, step) &&
               is_still_wrong(x, &smaller))
            place_copy(place, &smaller);
    }
    place_finish(&smaller);
}

/* A judge that asks more now may find the state wrong that recovery was crashed of. */
static void shrink_recovery(struct explorer *x, struct place *place)
{
    struct place smaller = {0};

    place_copy(&smaller, place);
    smaller.levels[RECOVERY].kind = PLACE_NONE;
    smaller.levels[RECOVERY].count = 0;
    if (place->levels[RECOVERY].kind != PLACE_NONE && is_still_wrong(x, &smaller))
        place_copy(place, &smaller);
    place_finish(&smaller);
}

void explorer_shrink(struct explorer *x, struct place *place)
{
    shrink_recovery(x, place);
    for (unsigned number = 0; number < LEVELS; number++)
        if (place->levels[number].kind == PLACE_POWER)
            shrink_lines(x, place, number);
    for (unsigned number = 0; number < LEVELS; number++)
        for (size_t i = 0; i < place->levels[number].count; i++)
            shrink_line(x, place, number, i);
}

/* ---- What is wrong with what arrived --------------------------------------------- */

#define LINES_TRIED 64

static bool is_right(struct explorer *x, const struct place *place)
{
    struct verdict verdict;

    return explorer_replay(x, place, NULL, &verdict, NULL) &&
           verdict.kind == VERDICT_RIGHT;
}

/* The entries of a line of that level; the first one stands for all. */
static bool is_first_of_line(const struct account *account, size_t i)
{
    uint64_t line = account->entries[i].event.at / LINE_SIZE;

    for (size_t j = 0; j < i; j++)
        if (account->entries[j].event.at / LINE_SIZE == line)
            return false;
    return true;
}

static void mark_line(struct account *account, uint64_t at)
{
    for (size_t i = 0; i < account->count; i++)
        if (account->entries[i].event.at / LINE_SIZE == at / LINE_SIZE)
            account->entries[i].matters = !account->entries[i].lost;
}

void explorer_find_matters(struct explorer *x, const struct place *place,
                           struct account *account)
{
    bool again = place->levels[RECOVERY].kind == PLACE_POWER;
    unsigned number = again ? RECOVERY : RUN, tried = 0;
    struct place fewer = {0};

    if (place->levels[number].kind != PLACE_POWER)
        return;
    for (size_t i = 0; i < account->count && tried < LINES_TRIED; i++) {
        uint64_t at = account->entries[i].event.at & ~(uint64_t)(LINE_SIZE - 1);

        if (account->entries[i].lost || !is_first_of_line(account, i) ||
            line_of_place(&place->levels[number], at))
            continue;
        place_copy(&fewer, place);
        place_add(&fewer.levels[number], at, (struct px86_choice){0});
        if (is_right(x, &fewer))
            mark_line(account, at);
        tried++;
    }
    place_finish(&fewer);
}

/* ---- Life ------------------------------------------------------------------------ */

struct explorer *explorer_create(const struct subject *subject,
                                 const struct explore_options *options)
{
    struct explorer *x = calloc(1, sizeof(*x));

    if (!x)
        return NULL;
    x->subject = subject;
    x->options = options;
    for (unsigned i = 0; i < LEVELS; i++) {
        x->levels[i].trace = trace_create(RECOVERY_EVENTS_MAX);
        if (!x->levels[i].trace ||
            px86_init(&x->levels[i].px86, subject->image, subject->size) < 0) {
            explorer_destroy(x);
            return NULL;
        }
    }
    return x;
}

void explorer_destroy(struct explorer *x)
{
    if (!x)
        return;
    for (unsigned i = 0; i < LEVELS; i++) {
        px86_finish(&x->levels[i].px86);
        trace_destroy(x->levels[i].trace);
        free(x->levels[i].choices);
        free(x->levels[i].contents);
        free(x->levels[i].choice_of);
        free(x->levels[i].scratch);
        lazy_finish(&x->levels[i].lazy);
    }
    forget_findings(x);
    compare_finish(x);
    free(x->findings);
    free(x->seen);
    free(x->points);
    free(x);
}
