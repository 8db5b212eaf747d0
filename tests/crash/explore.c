/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/crash/explore.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/alloc.h"
#include "libminl2r/check.h"
#include "libminl2r/commit.h"
#include "libminl2r/lane.h"
#include "libminl2r/recovery.h"
#include "tests/crash/model.h"

/* Contents of a line that are tried where not all states can be. */
#define BOUNDED_CONTENTS 16

/* A line that may have several contents, or just another than the image. */
struct choice {
    uint64_t at;
    uint32_t first; /* of `contents` */
    uint32_t count;
    uint32_t chosen; /* UINT32_MAX: as it was */
    uint8_t before[PM_LINE];
};

/* The outer level is the run, the inner one the recovery from one of its crashes. */
enum { RUN, RECOVERY, LEVELS };

struct level {
    struct px86 px86;
    struct choice *choices;
    uint8_t (*contents)[PM_LINE];
    struct px86_choice *line_choices; /* of one line */
    uint32_t choice_count, choice_capacity;
    uint32_t content_count, content_capacity; /* also that of line_choices */
    struct shadow_trace trace; /* of the recovery from a state of this level */
    struct shadow_trace after; /* of what the oracles do next */
    uint32_t matched;          /* the image that it showed */
    bool undid;
};

/* What is expected of the states of a crash point, and how to call it. */
struct point {
    uint32_t expectation; /* or AGAIN */
    uint32_t allowed;     /* bit set: that image */
    char name[96];
};

#define AGAIN UINT32_MAX

struct explorer {
    struct explore *in;
    struct level levels[LEVELS];
    struct expectation again; /* of the transaction after recovery */
    struct shadow_trace again_trace;
    size_t again_begin; /* in that trace: where recovery has returned */
    uint64_t hash;      /* of the image as patched */
    uint64_t random;
    uint64_t *seen; /* hashes, open addressing */
    uint64_t seen_count, seen_capacity;
    uint64_t judged;
    uint64_t agains;
};

static bool failed(const struct explorer *x)
{
    return x->in->failure[0] != 0;
}

static const struct expectation *expected_at(const struct explorer *x,
                                             const struct point *point)
{
    return point->expectation == AGAIN ? &x->again
                                       : &x->in->expectations[point->expectation];
}

/* ---- Failures -------------------------------------------------------------------- */

static void append(char *text, size_t size, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t size, const char *format, ...)
{
    size_t length = strlen(text);
    va_list args;

    va_start(args, format);
    vsnprintf(text + length, size - length, format, args);
    va_end(args);
}

/* Which lines are not as they were last stored: the state's name. */
static void describe_choices(const struct level *level, char *text, size_t size)
{
    uint32_t named = 0;

    for (uint32_t i = 0; i < level->choice_count; i++) {
        const struct choice *c = &level->choices[i];

        if (c->chosen == UINT32_MAX || c->chosen + 1 == c->count || named == 12)
            continue;
        append(text, size, " %llx:%u/%u", (unsigned long long)c->at, c->chosen,
               c->count - 1);
        named++;
    }
    if (named == 0)
        append(text, size, " nothing");
}

static void fail(struct explorer *x, const struct point *point, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fail(struct explorer *x, const struct point *point, const char *format, ...)
{
    char *text = x->in->failure;
    size_t size = sizeof(x->in->failure);
    char what[256];
    va_list args;

    if (failed(x))
        return;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    append(text, size, "%s (%s): %s; lost:", point->name, expected_at(x, point)->stage,
           what);
    describe_choices(&x->levels[RUN], text, size);
    if (x->levels[RECOVERY].choice_count > 0) {
        append(text, size, "; lost in recovery:");
        describe_choices(&x->levels[RECOVERY], text, size);
    }
}

/* ---- Oracles --------------------------------------------------------------------- */

/* May this byte be there, although image `number` has not the operation that it is of?
 */
static bool is_early(const struct explorer *x, const struct expectation *expected,
                     uint32_t number, uint64_t offset)
{
    for (uint32_t i = 0; i < expected->loose_count; i++) {
        const struct loose_range *loose = &expected->loose[i];

        if (offset - loose->offset >= loose->size ||
            expected->has[number] >> loose->operation & 1)
            continue;
        for (uint32_t j = 0; j < expected->count; j++)
            if (expected->images[j][offset] == x->in->image[offset])
                return true;
    }
    return false;
}

static bool block_matches(const struct explorer *x, const struct expectation *expected,
                          uint32_t number, uint64_t offset, uint32_t size)
{
    const uint8_t *image = expected->images[number];

    if (memcmp(x->in->image + offset, image + offset, size) == 0)
        return true;
    if (expected->loose_count == 0)
        return false;
    for (uint64_t at = offset; at < offset + size; at++)
        if (x->in->image[at] != image[at] && !is_early(x, expected, number, at))
            return false;
    return true;
}

/* The same blocks are allocated, and have the same content. Answers with the offset
 * where not, or 0. */
static uint64_t find_difference(const struct explorer *x, const struct geometry *geo,
                                const struct expectation *expected, uint32_t number)
{
    const uint8_t *image = expected->images[number];
    uint64_t bitmap = block_offset(geo, 0);

    if (memcmp(x->in->image + bitmap, image + bitmap, geo->block_size) != 0)
        return bitmap;
    for (uint64_t i = 1; i < geo->block_count; i++) {
        uint64_t offset = block_offset(geo, i);

        if (image[bitmap + i / 8] >> i % 8 & 1 &&
            !block_matches(x, expected, number, offset, geo->block_size))
            return offset;
    }
    return 0;
}

static bool match(struct explorer *x, const struct geometry *geo,
                  const struct point *point, uint32_t *matched)
{
    const struct expectation *expected = expected_at(x, point);
    uint64_t differs = 0;

    for (uint32_t i = 0; i < expected->count; i++) {
        if ((point->allowed >> i & 1) == 0)
            continue;
        differs = find_difference(x, geo, expected, i);
        if (differs == 0) {
            *matched = i;
            return true;
        }
    }
    fail(x, point, "neither old nor new; the newest differs in the block at %llx",
         (unsigned long long)differs);
    return false;
}

static void found_problem(void *arg, const char *what)
{
    char *text = arg;

    snprintf(text, 256, "%s", what);
}

static bool attach(struct explorer *x, const struct point *point,
                   struct minl2r_pool *pool)
{
    struct pm pm;

    pm_adopt(&pm, x->in->image, x->in->size, x->in->options.medium);
    *pool = (struct minl2r_pool){.tx_lock = PTHREAD_MUTEX_INITIALIZER,
                                 .root_lock = PTHREAD_MUTEX_INITIALIZER};
    if (pool_attach(pool, &pm, NULL) == 0)
        return true;
    if (!expected_at(x, point)->may_be_no_pool)
        fail(x, point, "cannot attach: %s", minl2r_errormsg());
    return false;
}

static void check(struct explorer *x, const struct point *point, const char *when)
{
    struct minl2r_pool pool;
    char problem[256] = "";

    if (!attach(x, point, &pool))
        return;
    if (check_pool(&pool, found_problem, problem) < 0)
        fail(x, point, "inconsistent %s recovery: %s", when,
             problem[0] ? problem : minl2r_errormsg());
    pool_detach(&pool);
}

static uint64_t count_zeros(const struct minl2r_pool *pool)
{
    uint64_t zeros = 0;

    for (uint64_t i = 0; i < pool->geo.block_count; i += 64)
        zeros += (uint64_t)__builtin_popcountll(~pm_load64(pool_bitmap_word(pool, i)));
    return zeros;
}

/* Does a log begin with a batch, whole or torn, and not with what was there before the
 * pool? */
static bool is_batch(const struct pm_batch *batch)
{
    return batch->prev == 0 && batch->index == 0 && batch->size <= PM_BATCH_SIZE_MAX;
}

/* I4: no generation that a lane has tried can come again. */
static void check_generations(struct explorer *x, const struct point *point,
                              const struct minl2r_pool *pool)
{
    for (uint32_t i = 0; i < pool->geo.lane_count; i++) {
        const struct pm_batch *batch = pool_at(pool, pool_log_offset(pool, i));

        if (is_batch(batch) && batch->generation > pool->lanes[i].settled)
            fail(x, point, "generation %llu of lane %u was tried, and can come again",
                 (unsigned long long)batch->generation, i);
        if (pool_lane(pool, i)->settled != pool->lanes[i].settled)
            fail(x, point, "lane %u: settled differs from its twin", i);
    }
}

static void check_reservations(struct explorer *x, const struct point *point,
                               const struct minl2r_pool *pool)
{
    if (alloc_free_blocks(pool) != count_zeros(pool))
        fail(x, point, "%llu blocks can be reserved, but %llu are free",
             (unsigned long long)alloc_free_blocks(pool),
             (unsigned long long)count_zeros(pool));
}

static void use(struct explorer *x, const struct point *point, struct minl2r_pool *pool)
{
    if (x->in->options.use_every == 0 || x->judged++ % x->in->options.use_every != 0)
        return;
    int line = x->in->options.use(pool);

    if (line != 0)
        fail(x, point, "cannot be used after recovery (line %d): %s", line,
             minl2r_errormsg());
    check_reservations(x, point, pool);
}

static void recover_again(struct explorer *x, const struct point *point,
                          uint32_t matched)
{
    const struct expectation *expected = expected_at(x, point);
    struct minl2r_pool pool;

    if (!attach(x, point, &pool))
        return;
    if (recovery_run(&pool) < 0)
        fail(x, point, "cannot recover again: %s", minl2r_errormsg());
    else if (pool.recovery.lanes > 0)
        fail(x, point, "recovering again undoes again");
    else if (find_difference(x, &pool.geo, expected, matched) != 0)
        fail(x, point, "recovering again changes the pool");
    else
        use(x, point, &pool);
    tx_free_all(&pool);
    pool_detach(&pool);
}

static void recover(struct explorer *x, const struct point *point, struct level *level)
{
    struct minl2r_pool pool;

    level->matched = 0;
    level->undid = false;
    if (!attach(x, point, &pool))
        return;
    if (recovery_run(&pool) < 0) {
        fail(x, point, "cannot recover: %s", minl2r_errormsg());
    } else if (match(x, &pool.geo, point, &level->matched)) {
        check_generations(x, point, &pool);
        check_reservations(x, point, &pool);
    }
    level->undid = pool.recovery.lanes > 0;
    x->in->count.undone += level->undid;
    pool_detach(&pool);
}

static void recover_recorded(struct explorer *x, const struct point *point,
                             struct level *level)
{
    struct shadow_fault fault = x->in->options.fault;

    fault.trace = &level->trace;
    shadow_trace_clear(&level->trace);
    shadow_record(&level->trace);
    shadow_inject(fault);
    recover(x, point, level);
    shadow_inject((struct shadow_fault){0});
}

/* Asks all oracles of the state in the image and leaves it as it was. The level's trace
 * is then that of recovery. */
static void judge(struct explorer *x, const struct point *point, struct level *level)
{
    check(x, point, "before");
    recover_recorded(x, point, level);
    shadow_trace_clear(&level->after);
    shadow_record(&level->after);
    if (!failed(x))
        check(x, point, "after");
    if (!failed(x))
        recover_again(x, point, level->matched);
    shadow_record(NULL);
    shadow_revert(&level->after, x->in->image);
    shadow_revert(&level->trace, x->in->image);
}

/* ---- States seen already --------------------------------------------------------- */

static uint64_t mix(uint64_t hash)
{
    hash = (hash ^ hash >> 31) * 0x9e3779b97f4a7c15ull;
    return hash ^ hash >> 29;
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count, size);

    if (!memory) {
        fprintf(stderr, "no memory to explore\n");
        exit(2);
    }
    return memory;
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
    uint64_t capacity = x->seen_capacity ? x->seen_capacity * 2 : 4096;
    uint64_t *table = allocate(capacity, sizeof(*table));

    for (uint64_t i = 0; i < x->seen_capacity; i++)
        if (x->seen[i] != 0)
            insert(table, capacity, x->seen[i]);
    free(x->seen);
    x->seen = table;
    x->seen_capacity = capacity;
}

static bool is_new(struct explorer *x, const struct point *point, unsigned level)
{
    uint64_t matched = point->expectation == AGAIN ? x->levels[RUN].matched : 0;
    uint64_t key =
        mix(matched << 32 ^ x->hash ^
            mix((uint64_t)point->expectation << 16 | point->allowed << 2 | level));

    if (x->seen_count >= x->seen_capacity / 2)
        grow_seen(x);
    if (!insert(x->seen, x->seen_capacity, key ? key : 1))
        return false;
    x->seen_count++;
    return true;
}

/* ---- The states of a crash point ------------------------------------------------- */

static uint64_t hash_line(uint64_t at, const uint8_t *content)
{
    return pm_hash(content, PM_LINE, at);
}

static void put_line(struct explorer *x, uint64_t at, const uint8_t *content)
{
    x->hash ^= hash_line(at, x->in->image + at) ^ hash_line(at, content);
    memcpy(x->in->image + at, content, PM_LINE);
}

static void choose(struct explorer *x, struct level *level, uint32_t i, uint32_t chosen)
{
    struct choice *c = &level->choices[i];

    if (c->chosen == chosen)
        return;
    put_line(x, c->at, level->contents[c->first + chosen]);
    c->chosen = chosen;
}

static uint32_t last_of(const struct level *level, uint32_t i)
{
    return level->choices[i].count - 1;
}

static void choose_none(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        choose(x, level, i, 0);
}

static void choose_all(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        choose(x, level, i, last_of(level, i));
}

static void add_choice(struct explorer *x, struct level *level,
                       const struct px86_line *line, uint32_t contents_max)
{
    if (level->choice_count == level->choice_capacity) {
        level->choice_capacity = level->choice_capacity * 2 + 64;
        level->choices =
            realloc(level->choices, level->choice_capacity * sizeof(*level->choices));
    }
    if (level->content_capacity - level->content_count < contents_max) {
        level->content_capacity = level->content_capacity * 2 + contents_max;
        level->contents = realloc(level->contents,
                                  level->content_capacity * sizeof(*level->contents));
        level->line_choices =
            realloc(level->line_choices,
                    level->content_capacity * sizeof(*level->line_choices));
    }
    if (!level->choices || !level->contents || !level->line_choices)
        exit(2);
    struct choice *c = &level->choices[level->choice_count++];

    *c = (struct choice){
        .at = line->at, .first = level->content_count, .chosen = UINT32_MAX};
    c->count = px86_choices(&level->px86, line, level->line_choices, contents_max);
    for (uint32_t i = 0; i < c->count; i++)
        px86_compose(&level->px86, line, level->line_choices[i],
                     level->contents[level->content_count++]);
    memcpy(c->before, x->in->image + c->at, PM_LINE);
}

static uint64_t count_states(const struct px86 *px86)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < px86->line_count && count < UINT32_MAX; i++)
        count *= px86_count(px86, &px86->lines[i]);
    return count;
}

/* Lays out the choices of a point. Are they all that there are? */
static bool begin_choices(struct explorer *x, struct level *level, uint64_t states_max)
{
    const struct px86 *px86 = &level->px86;
    bool exact = count_states(px86) <= states_max;

    level->choice_count = level->content_count = 0;
    for (uint32_t i = 0; i < px86->line_count; i++) {
        const struct px86_line *line = &px86->lines[i];

        if (line->first == PX86_NONE &&
            memcmp(line->floor, x->in->image + line->at, PM_LINE) == 0)
            continue;
        uint32_t count = exact ? px86_count(px86, line) : BOUNDED_CONTENTS;

        add_choice(x, level, line, count < 2 ? 2 : count);
    }
    return exact;
}

static void end_choices(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        put_line(x, level->choices[i].at, level->choices[i].before);
    level->choice_count = 0;
}

static void visit(struct explorer *x, const struct point *point, unsigned level);

/* As an odometer. */
static void visit_every(struct explorer *x, const struct point *point, unsigned number)
{
    struct level *level = &x->levels[number];
    uint32_t i = 0;

    choose_none(x, level);
    while (i < level->choice_count && !failed(x)) {
        visit(x, point, number);
        for (i = 0; i < level->choice_count; i++) {
            if (level->choices[i].chosen < last_of(level, i)) {
                choose(x, level, i, level->choices[i].chosen + 1);
                break;
            }
            choose(x, level, i, 0);
        }
    }
    if (level->choice_count == 0)
        visit(x, point, number);
}

/* One line in each of its ways, the others all as they are. */
static void visit_one_line(struct explorer *x, const struct point *point,
                           unsigned number, uint32_t i)
{
    struct level *level = &x->levels[number];
    uint32_t before = level->choices[i].chosen;

    for (uint32_t chosen = 0; chosen <= last_of(level, i) && !failed(x); chosen++) {
        choose(x, level, i, chosen);
        visit(x, point, number);
    }
    choose(x, level, i, before);
}

static void visit_pairs(struct explorer *x, const struct point *point, unsigned number,
                        uint64_t left)
{
    struct level *level = &x->levels[number];

    for (uint32_t i = 0; i < level->choice_count; i++)
        for (uint32_t j = 0; j < i && left > 0 && !failed(x); j++, left--) {
            choose_none(x, level);
            choose(x, level, i, last_of(level, i));
            choose(x, level, j, last_of(level, j));
            visit(x, point, number);
        }
}

static uint32_t random_below(struct explorer *x, uint32_t limit)
{
    x->random = x->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(x->random >> 33) % limit;
}

/* Half of the random states favour the extremes of a line. */
static void visit_random(struct explorer *x, const struct point *point, unsigned number,
                         uint64_t left)
{
    struct level *level = &x->levels[number];

    for (; left > 0 && !failed(x); left--) {
        for (uint32_t i = 0; i < level->choice_count; i++) {
            uint32_t chosen = random_below(x, level->choices[i].count);

            if (left % 2)
                chosen = chosen % 2 ? last_of(level, i) : 0;
            choose(x, level, i, chosen);
        }
        visit(x, point, number);
    }
}

static void visit_some(struct explorer *x, const struct point *point, unsigned number,
                       uint64_t states_max)
{
    struct level *level = &x->levels[number];

    choose_all(x, level);
    visit(x, point, number);
    for (uint32_t i = 0; i < level->choice_count && i < states_max / 64; i++)
        visit_one_line(x, point, number, i);
    choose_none(x, level);
    visit(x, point, number);
    for (uint32_t i = 0; i < level->choice_count && i < states_max / 64; i++)
        visit_one_line(x, point, number, i);
    visit_pairs(x, point, number, states_max / 4);
    visit_random(x, point, number, states_max / 4);
}

static void visit_point(struct explorer *x, const struct point *point, unsigned number)
{
    struct level *level = &x->levels[number];
    uint64_t states_max =
        number == RUN ? x->in->options.states_max : x->in->options.nested_states_max;

    if (failed(x))
        return;
    if (begin_choices(x, level, states_max)) {
        x->in->count.exact++;
        visit_every(x, point, number);
    } else {
        x->in->count.bounded++;
        visit_some(x, point, number, states_max);
    }
    end_choices(x, level);
}

/* ---- Crashes in recovery --------------------------------------------------------- */

/*
 * Explores the recovery that the outer level's trace is of, from what the inner level's
 * model takes for the past. During it anything allowed before may show; when it has
 * returned, what it showed has to stay.
 */
static void explore_recovery(struct explorer *x, const struct point *outer)
{
    const struct shadow_trace *trace = &x->levels[RUN].trace;
    struct point point = *outer;

    append(point.name, sizeof(point.name), ", in recovery");
    for (size_t i = 0; i < trace->count; i++) {
        if (trace->events[i].kind == SHADOW_FENCE)
            visit_point(x, &point, RECOVERY);
        model_apply(&x->levels[RECOVERY].px86, &trace->events[i]);
    }
    point.allowed = 1u << x->levels[RUN].matched;
    append(point.name, sizeof(point.name), " done");
    visit_point(x, &point, RECOVERY);
}

/* ---- Crashes after recovery ------------------------------------------------------ */

static bool is_time_for_again(struct explorer *x)
{
    const struct explore_options *options = &x->in->options;

    return !failed(x) && options->again_every != 0 &&
           x->agains++ % options->again_every == 0;
}

/* Old or new, but for early bytes: those of a killed operation may still be lost. */
static void expect_again(struct explorer *x, const struct point *outer)
{
    const struct expectation *before = expected_at(x, outer);

    x->again = (struct expectation){
        .images = {x->in->scratch[0], x->in->scratch[1], before->images[0],
                   before->images[before->count - 1]},
        .count = 4,
        .loose_count = before->loose_count,
        .stage = "transaction after recovery",
    };
    memcpy(x->again.loose, before->loose, sizeof(before->loose));
}

static void store_again(struct explorer *x, const struct point *point,
                        struct minl2r_pool *pool)
{
    struct shadow_fault fault = x->in->options.fault;

    fault.trace = &x->again_trace;
    shadow_inject(fault);
    recovery_run(pool); /* has been judged */
    shadow_inject((struct shadow_fault){0});
    x->again_begin = x->again_trace.count;
    memcpy(x->in->scratch[0], x->in->image, x->in->size);
    if (x->in->options.again(pool) != 0)
        fail(x, point, "no transaction after recovery: %s", minl2r_errormsg());
    memcpy(x->in->scratch[1], x->in->image, x->in->size);
}

/* Recovers the state in the image, runs a transaction, and takes back both. */
static void record_again(struct explorer *x, const struct point *point)
{
    struct minl2r_pool pool;

    if (!attach(x, point, &pool))
        return;
    shadow_trace_clear(&x->again_trace);
    shadow_record(&x->again_trace);
    store_again(x, point, &pool);
    shadow_record(NULL);
    tx_free_all(&pool);
    pool_detach(&pool);
    shadow_revert(&x->again_trace, x->in->image);
}

/* As explore_recovery(), of what record_again() recorded. */
static void explore_again(struct explorer *x, const struct point *outer)
{
    struct px86 *px86 = &x->levels[RECOVERY].px86;
    struct point point = *outer;

    expect_again(x, outer);
    x->in->count.again++;
    point.expectation = AGAIN;
    point.allowed = 3;
    append(point.name, sizeof(point.name), ", again");
    for (size_t i = 0; i < x->again_trace.count; i++) {
        const struct shadow_event *e = &x->again_trace.events[i];

        if (i >= x->again_begin && e->kind == SHADOW_FENCE)
            visit_point(x, &point, RECOVERY);
        model_apply(px86, e);
    }
    point.allowed = 2;
    append(point.name, sizeof(point.name), " returned");
    visit_point(x, &point, RECOVERY);
}

/* ---- Visiting -------------------------------------------------------------------- */

/* The bound on recursion is LEVELS: the states of recovery lead to no others. */
static void visit(struct explorer *x, const struct point *point, unsigned number)
{
    if (failed(x) || !is_new(x, point, number))
        return;
    x->in->count.states++;
    x->in->count.nested += number == RECOVERY;
    judge(x, point, &x->levels[number]);
    if (failed(x) || number == RECOVERY || x->in->options.nested_states_max == 0)
        return;
    if (x->levels[RUN].undid || x->in->count.states % 16 == 0) {
        /* Of the others, which only settle lanes, a sample will do. */
        px86_reset(&x->levels[RECOVERY].px86);
        explore_recovery(x, point);
    }
    if (is_time_for_again(x)) {
        record_again(x, point);
        px86_reset(&x->levels[RECOVERY].px86);
        explore_again(x, point);
    }
}

static void begin_killed(struct explorer *x)
{
    px86_copy(&x->levels[RECOVERY].px86, &x->levels[RUN].px86);
    px86_kill(&x->levels[RECOVERY].px86);
}

/* Kills the process: the caches are kept. Then the power fails during recovery, or
 * after. */
static void visit_kill(struct explorer *x, const struct point *point)
{
    struct level *run = &x->levels[RUN];

    if (failed(x))
        return;
    x->in->count.kills++;
    begin_choices(x, run, 0);
    choose_all(x, run);
    judge(x, point, run);
    bool again = is_time_for_again(x);

    if (again)
        record_again(x, point);
    end_choices(x, run);
    if (failed(x) || x->in->options.nested_states_max == 0)
        return;
    begin_killed(x);
    explore_recovery(x, point);
    if (again && !failed(x)) {
        begin_killed(x);
        explore_again(x, point);
    }
}

static void set_expectation(struct explorer *x, struct point *point, uint64_t number)
{
    point->expectation = (uint32_t)number;
    point->allowed = (1u << x->in->expectations[number].count) - 1;
}

/* ---- Caches that are saved ------------------------------------------------------- */

/* With eADR a crash shows all that was stored so far, in recovery too. */
static void explore_recovery_chain(struct explorer *x, const struct point *outer)
{
    const struct shadow_trace *trace = &x->levels[RUN].trace;
    struct point point = *outer;

    append(point.name, sizeof(point.name), ", in recovery");
    for (size_t i = 0; i < trace->count && !failed(x); i++) {
        const struct shadow_event *e = &trace->events[i];

        if (e->kind != SHADOW_STORE)
            continue;
        memcpy(x->in->image + e->at, &e->after, e->size);
        x->in->count.nested++;
        judge(x, &point, &x->levels[RECOVERY]);
    }
    shadow_revert(trace, x->in->image);
}

static bool ends_group(const struct shadow_trace *trace, size_t i)
{
    const struct shadow_event *e = &trace->events[i];

    return e->kind <= SHADOW_STREAM &&
           (i + 1 == trace->count || e[1].kind > SHADOW_STREAM ||
            e[1].group != e->group);
}

static void explore_chain_event(struct explorer *x, struct point *point, size_t i)
{
    const struct shadow_event *e = &x->in->trace->events[i];

    snprintf(point->name, sizeof(point->name), "after event %zu", i);
    if (e->kind == SHADOW_MARK)
        set_expectation(x, point, e->after);
    else if (e->kind == SHADOW_STORE)
        memcpy(x->in->image + e->at, &e->after, e->size);
    else
        return;
    x->in->count.exact++;
    x->in->count.states++;
    judge(x, point, &x->levels[RUN]);
    if (!failed(x) && ends_group(x->in->trace, i))
        explore_recovery_chain(x, point);
}

/* ---- The run --------------------------------------------------------------------- */

static void explore_event(struct explorer *x, struct point *point, size_t i)
{
    const struct shadow_event *e = &x->in->trace->events[i];
    bool explored = point->expectation >= x->in->options.first;

    if (e->kind == SHADOW_FENCE && explored) {
        snprintf(point->name, sizeof(point->name), "before fence %u", e->call);
        visit_point(x, point, RUN);
    }
    model_apply(&x->levels[RUN].px86, e);
    if (e->kind == SHADOW_MARK) {
        set_expectation(x, point, e->after);
        snprintf(point->name, sizeof(point->name), "at event %zu", i);
        if (x->in->expectations[e->after].returned && e->after >= x->in->options.first)
            visit_point(x, point, RUN);
    } else if (explored && x->in->options.kill && ends_group(x->in->trace, i)) {
        snprintf(point->name, sizeof(point->name), "killed after event %zu", i);
        visit_kill(x, point);
    }
}

bool explore(struct explore *explore)
{
    struct explorer x = {.in = explore, .random = explore->options.seed};
    struct point point = {0};

    explore->failure[0] = 0;
    set_expectation(&x, &point, 0);
    for (unsigned i = 0; i < LEVELS; i++)
        if (px86_init(&x.levels[i].px86, explore->image, explore->size) < 0)
            exit(2);
    for (size_t i = 0; i < explore->trace->count && !failed(&x); i++)
        if (explore->options.medium == MINL2R_EADR)
            explore_chain_event(&x, &point, i);
        else
            explore_event(&x, &point, i);
    if (explore->options.medium == MINL2R_EADR)
        shadow_revert(explore->trace, explore->image);
    for (unsigned i = 0; i < LEVELS; i++) {
        px86_finish(&x.levels[i].px86);
        free(x.levels[i].choices);
        free(x.levels[i].contents);
        free(x.levels[i].line_choices);
        shadow_trace_finish(&x.levels[i].trace);
        shadow_trace_finish(&x.levels[i].after);
    }
    shadow_trace_finish(&x.again_trace);
    free(x.seen);
    return !failed(&x);
}
