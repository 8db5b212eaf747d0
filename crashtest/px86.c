/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/px86.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More pieces of one group, or streams of one line, than this are not told apart. */
#define SUBSET_MAX 20
#define STREAMS_MAX 63

#define KILLED 0u /* a thread that never fences */

static void *grow(void *memory, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return memory;
    *capacity = *capacity ? *capacity * 2 : 64;
    memory = realloc(memory, *capacity * size);
    if (!memory) {
        fputs("crashtest: no memory for the model\n", stderr);
        exit(2);
    }
    return memory;
}

int px86_init(struct px86 *px86, const uint8_t *image, uint64_t size)
{
    *px86 = (struct px86){.image = image, .size = size};
    px86->line_index = calloc(size / LINE_SIZE, sizeof(*px86->line_index));
    return px86->line_index ? 0 : -ENOMEM;
}

void px86_finish(struct px86 *px86)
{
    free(px86->line_index);
    free(px86->lines);
    free(px86->stores);
    free(px86->flushes);
}

void px86_reset(struct px86 *px86)
{
    for (uint32_t i = 0; i < px86->line_count; i++)
        px86->line_index[px86->lines[i].at / LINE_SIZE] = 0;
    px86->line_count = px86->store_count = px86->flush_count = 0;
}

void px86_copy(struct px86 *to, const struct px86 *from)
{
    px86_reset(to);
    for (uint32_t i = 0; i < from->line_count; i++) {
        to->lines = grow(to->lines, i, &to->line_capacity, sizeof(*to->lines));
        to->lines[i] = from->lines[i];
        to->line_index[to->lines[i].at / LINE_SIZE] = i + 1;
    }
    for (uint32_t i = 0; i < from->store_count; i++) {
        to->stores = grow(to->stores, i, &to->store_capacity, sizeof(*to->stores));
        to->stores[i] = from->stores[i];
    }
    for (uint32_t i = 0; i < from->flush_count; i++) {
        to->flushes = grow(to->flushes, i, &to->flush_capacity, sizeof(*to->flushes));
        to->flushes[i] = from->flushes[i];
    }
    to->line_count = from->line_count;
    to->store_count = from->store_count;
    to->flush_count = from->flush_count;
}

/* ---- Events ---------------------------------------------------------------------- */

static struct px86_line *line_at(struct px86 *px86, uint64_t at)
{
    uint64_t number = at / LINE_SIZE;

    if (px86->line_index[number] == 0) {
        px86->lines = grow(px86->lines, px86->line_count, &px86->line_capacity,
                           sizeof(*px86->lines));
        struct px86_line *line = &px86->lines[px86->line_count++];

        *line = (struct px86_line){number * LINE_SIZE, PX86_NONE, PX86_NONE, {0}};
        trace_copy_line(line->floor, px86->image + line->at);
        px86->line_index[number] = px86->line_count;
    }
    return &px86->lines[px86->line_index[number] - 1];
}

/*
 * What stores the value that is durable already, and nothing undecided was stored there
 * before, makes no difference.
 */
static bool changes_nothing(const struct px86 *px86, const struct px86_line *line,
                            const struct px86_store *store, uint32_t end)
{
    if (store->joined ||
        trace_load_piece(line->floor + store->at, store->size) != store->value)
        return false;
    for (uint32_t i = line->first; i != end; i = px86->stores[i].next)
        if (px86->stores[i].at < store->at + store->size &&
            store->at < px86->stores[i].at + px86->stores[i].size)
            return false;
    return true;
}

static void append_store(struct px86 *px86, struct px86_line *line,
                         const struct px86_store *store)
{
    uint32_t number = px86->store_count;

    px86->stores =
        grow(px86->stores, number, &px86->store_capacity, sizeof(*px86->stores));
    px86->stores[px86->store_count++] = *store;
    if (line->last == PX86_NONE)
        line->first = number;
    else
        px86->stores[line->last].next = number;
    line->last = number;
}

static void apply_store(struct px86 *px86, const struct trace_event *event,
                        uint32_t index)
{
    struct px86_line *line = line_at(px86, event->at);
    const struct px86_store store = {
        .value = event->after,
        .event = index,
        .thread = event->thread,
        .group = event->group,
        .next = PX86_NONE,
        .at = (uint8_t)(event->at % LINE_SIZE),
        .size = event->size,
        .streamed = event->kind == TRACE_STREAM,
        .joined = event->joined,
    };

    if (!changes_nothing(px86, line, &store, PX86_NONE))
        append_store(px86, line, &store);
}

static void put(uint8_t content[LINE_SIZE], const struct px86_store *store)
{
    trace_store_piece(content + store->at, store->value, store->size);
}

/* Now that the floor is higher, some stores may make no difference any more. */
static void drop_what_changes_nothing(struct px86 *px86, struct px86_line *line)
{
    uint32_t before = PX86_NONE;

    for (uint32_t i = line->first; i != PX86_NONE; i = px86->stores[i].next) {
        if (!changes_nothing(px86, line, &px86->stores[i], i)) {
            before = i;
            continue;
        }
        if (before == PX86_NONE)
            line->first = px86->stores[i].next;
        else
            px86->stores[before].next = px86->stores[i].next;
    }
    line->last = before;
}

/* Durable stores that nothing undecided precedes belong to the floor. */
static void raise_floor(struct px86 *px86, struct px86_line *line)
{
    uint32_t first = line->first;

    while (line->first != PX86_NONE && px86->stores[line->first].durable) {
        const struct px86_store *store = &px86->stores[line->first];

        put(line->floor, store);
        line->first = store->next;
    }
    if (line->first == PX86_NONE)
        line->last = PX86_NONE;
    else if (line->first != first)
        drop_what_changes_nothing(px86, line);
}

static void cover(struct px86 *px86, const struct px86_flush *flush)
{
    const struct px86_line *line = &px86->lines[flush->line];

    if (flush->last == PX86_NONE)
        return;
    for (uint32_t i = line->first; i != PX86_NONE && i <= flush->last;
         i = px86->stores[i].next)
        if (!px86->stores[i].streamed)
            px86->stores[i].durable = true;
}

static struct px86_flush flush_of(struct px86 *px86, const struct trace_event *event)
{
    const struct px86_line *line = line_at(px86, event->at);

    return (struct px86_flush){event->thread,
                               px86->line_index[line->at / LINE_SIZE] - 1, line->last};
}

static void apply_flush(struct px86 *px86, const struct trace_event *event)
{
    px86->flushes = grow(px86->flushes, px86->flush_count, &px86->flush_capacity,
                         sizeof(*px86->flushes));
    px86->flushes[px86->flush_count] = flush_of(px86, event);
    px86->flush_count++;
}

static void apply_clflush(struct px86 *px86, const struct trace_event *event)
{
    struct px86_flush flush = flush_of(px86, event);

    cover(px86, &flush);
    raise_floor(px86, &px86->lines[flush.line]);
}

/* Once nothing is undecided, what was settled can be forgotten. */
static void forget_settled(struct px86 *px86)
{
    if (px86->flush_count > 0)
        return;
    for (uint32_t i = 0; i < px86->line_count; i++)
        if (px86->lines[i].first != PX86_NONE)
            return;
    px86->store_count = 0;
}

static void apply_fence(struct px86 *px86, uint32_t thread)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < px86->flush_count; i++) {
        if (px86->flushes[i].thread == thread)
            cover(px86, &px86->flushes[i]);
        else
            px86->flushes[kept++] = px86->flushes[i];
    }
    px86->flush_count = kept;
    for (uint32_t i = 0; i < px86->store_count; i++)
        if (px86->stores[i].streamed && px86->stores[i].thread == thread)
            px86->stores[i].durable = true;
    for (uint32_t i = 0; i < px86->line_count; i++)
        raise_floor(px86, &px86->lines[i]);
    forget_settled(px86);
}

void px86_apply(struct px86 *px86, const struct trace_event *event, uint32_t index)
{
    switch (event->kind) {
    case TRACE_STORE:
    case TRACE_STREAM:
        apply_store(px86, event, index);
        break;
    case TRACE_FLUSH:
        apply_flush(px86, event);
        break;
    case TRACE_CLFLUSH:
        apply_clflush(px86, event);
        break;
    case TRACE_FENCE:
        apply_fence(px86, event->thread);
        break;
    default:
        break;
    }
}

void px86_kill(struct px86 *px86)
{
    px86->flush_count = 0;
    for (uint32_t i = 0; i < px86->store_count; i++)
        px86->stores[i].thread = KILLED;
}

bool px86_is_pending(const struct px86 *px86, uint32_t thread)
{
    for (uint32_t i = 0; i < px86->flush_count; i++)
        if (px86->flushes[i].thread == thread)
            return true;
    for (uint32_t i = 0; i < px86->store_count; i++)
        if (px86->stores[i].streamed && px86->stores[i].thread == thread &&
            !px86->stores[i].durable)
            return true;
    return false;
}

/* ---- Walking the stores of a line ------------------------------------------------ */

/* The place of a store: which bit of which group, or of the streams. */
struct walk {
    const struct px86 *px86;
    const struct px86_store *store; /* NULL: before the first */
    uint32_t next;
    uint32_t group;     /* of undecided cached ones, counted from 0 */
    uint32_t group_bit; /* in it */
    uint32_t stream_bit;
    uint32_t groups;  /* begun so far */
    uint32_t streams; /* the same */
};

static struct walk walk_begin(const struct px86 *px86, const struct px86_line *line)
{
    return (struct walk){.px86 = px86, .next = line->first};
}

static uint32_t lesser(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static void place_stream(struct walk *walk, bool is_same_piece)
{
    if (!is_same_piece)
        walk->streams++;
    walk->stream_bit = lesser(walk->streams - 1, STREAMS_MAX);
}

static void place_cached(struct walk *walk, uint32_t *last_group, bool is_same_piece)
{
    if (walk->groups == 0 || *last_group != walk->store->group) {
        walk->group = walk->groups++;
        walk->group_bit = 0;
    } else if (!is_same_piece) {
        walk->group_bit = lesser(walk->group_bit + 1, SUBSET_MAX - 1);
    }
    *last_group = walk->store->group;
}

/* Steps to the next undecided store or durable one. `last_group` is the walk's. */
static bool walk_next(struct walk *walk, uint32_t *last_group)
{
    const struct px86_store *before = walk->store;

    if (walk->next == PX86_NONE)
        return false;
    walk->store = &walk->px86->stores[walk->next];
    walk->next = walk->store->next;
    if (walk->store->durable)
        return true;
    bool is_same_piece =
        before && walk->store->joined && before->group == walk->store->group;

    if (walk->store->streamed)
        place_stream(walk, is_same_piece);
    else
        place_cached(walk, last_group, is_same_piece);
    return true;
}

static bool is_included(const struct walk *walk, struct px86_choice choice)
{
    if (walk->store->durable)
        return true;
    if (walk->store->streamed)
        return choice.streams >> walk->stream_bit & 1;
    return walk->group < choice.whole ||
           (walk->group == choice.whole && (choice.subset >> walk->group_bit & 1));
}

void px86_compose(const struct px86 *px86, const struct px86_line *line,
                  struct px86_choice choice, uint8_t content[LINE_SIZE])
{
    struct walk walk = walk_begin(px86, line);
    uint32_t last_group = 0;

    trace_copy_line(content, line->floor);
    while (walk_next(&walk, &last_group))
        if (is_included(&walk, choice))
            put(content, walk.store);
}

void px86_visit(const struct px86 *px86, const struct px86_line *line,
                struct px86_choice choice, px86_visit_fn *visit, void *arg)
{
    struct walk walk = walk_begin(px86, line);
    uint32_t last_group = 0;

    while (walk_next(&walk, &last_group))
        if (!walk.store->durable)
            visit(arg, walk.store, is_included(&walk, choice));
}

/* ---- Contents of a line ---------------------------------------------------------- */

struct shape {
    uint32_t groups;
    uint32_t streams; /* bits */
    uint64_t count;   /* of choices; saturates */
};

static uint64_t subsets_of(uint32_t bits)
{
    return bits > 31 ? UINT32_MAX : (uint64_t)1 << bits;
}

static uint64_t saturate(uint64_t value)
{
    return value < UINT32_MAX ? value : UINT32_MAX;
}

/* `count` grows by the subsets of each group, but for the whole one: that is counted
 * as none of the next. */
static struct shape shape_of(const struct px86 *px86, const struct px86_line *line)
{
    struct walk walk = walk_begin(px86, line);
    struct shape shape = {.count = 1};
    uint32_t last_group = 0, seen = 0, bits = 0;

    while (walk_next(&walk, &last_group)) {
        if (walk.groups != seen) {
            shape.count += seen ? subsets_of(bits) - 1 : 0;
            seen = walk.groups;
        }
        bits = walk.group_bit + 1;
    }
    if (seen)
        shape.count += subsets_of(bits) - 1;
    shape.groups = walk.groups;
    shape.streams = lesser(walk.streams, STREAMS_MAX + 1);
    shape.count = saturate(saturate(shape.count) * subsets_of(shape.streams));
    return shape;
}

static uint32_t bits_of_group(const struct px86 *px86, const struct px86_line *line,
                              uint32_t group)
{
    struct walk walk = walk_begin(px86, line);
    uint32_t last_group = 0, bits = 0;

    while (walk_next(&walk, &last_group) && walk.groups <= group + 1)
        if (!walk.store->durable && !walk.store->streamed && walk.group == group)
            bits = walk.group_bit + 1;
    return bits;
}

static uint64_t mask_of(uint32_t bits)
{
    return bits >= 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1;
}

uint32_t px86_count(const struct px86 *px86, const struct px86_line *line)
{
    return (uint32_t)shape_of(px86, line).count;
}

static uint32_t add_streams(const struct shape *shape, struct px86_choice choice,
                            struct px86_choice *choices, uint32_t count)
{
    for (choice.streams = 0; choice.streams <= mask_of(shape->streams);
         choice.streams++)
        choices[count++] = choice;
    return count;
}

static uint32_t all_choices(const struct px86 *px86, const struct px86_line *line,
                            const struct shape *shape, struct px86_choice *choices)
{
    struct px86_choice choice = {0};
    uint32_t count = 0;

    for (; choice.whole < shape->groups; choice.whole++) {
        uint32_t full = (uint32_t)mask_of(bits_of_group(px86, line, choice.whole));

        for (choice.subset = 0; choice.subset < full; choice.subset++)
            count = add_streams(shape, choice, choices, count);
        choice.subset = 0;
    }
    return add_streams(shape, choice, choices, count);
}

/* Nothing; the last prefixes and single streams, as far as `max` goes; everything. */
static uint32_t some_choices(const struct shape *shape, struct px86_choice *choices,
                             uint32_t max)
{
    uint64_t streams = mask_of(shape->streams);
    uint32_t count = 0;
    uint32_t first = shape->groups > max / 2 ? shape->groups - max / 2 : 1;

    choices[count++] = (struct px86_choice){0};
    for (uint32_t i = first; i < shape->groups && count + 2 < max; i++)
        choices[count++] = (struct px86_choice){.whole = i, .streams = streams};
    for (uint32_t i = 0; i < shape->streams && count + 3 < max; i++) {
        uint64_t bit = (uint64_t)1 << i;

        choices[count++] = (struct px86_choice){.streams = bit};
        choices[count++] = (struct px86_choice){shape->groups, 0, streams & ~bit};
    }
    choices[count++] = (struct px86_choice){shape->groups, 0, streams};
    return count;
}

uint32_t px86_choices(const struct px86 *px86, const struct px86_line *line,
                      struct px86_choice *choices, uint32_t max)
{
    struct shape shape = shape_of(px86, line);

    return shape.count <= max ? all_choices(px86, line, &shape, choices)
                              : some_choices(&shape, choices, max);
}

struct px86_choice px86_choice_before(const struct px86 *px86,
                                      const struct px86_line *line, uint32_t event)
{
    return px86_choice_at(px86, line, event, event);
}

/* Stores of a killed process come first. */
static bool is_before(const struct px86_store *store, uint32_t killed_event,
                      uint32_t event)
{
    return store->event < (store->thread == KILLED ? killed_event : event);
}

struct px86_choice px86_choice_at(const struct px86 *px86, const struct px86_line *line,
                                  uint32_t killed_event, uint32_t event)
{
    struct walk walk = walk_begin(px86, line);
    struct px86_choice choice = {0};
    uint32_t last_group = 0;

    while (walk_next(&walk, &last_group) &&
           is_before(walk.store, killed_event, event)) {
        if (walk.store->durable)
            continue;
        if (walk.store->streamed) {
            choice.streams |= (uint64_t)1 << walk.stream_bit;
            continue;
        }
        if (walk.group != choice.whole)
            choice = (struct px86_choice){walk.group, 0, choice.streams};
        choice.subset |= 1u << walk.group_bit;
    }
    if (choice.subset != 0 &&
        choice.subset == mask_of(bits_of_group(px86, line, choice.whole)))
        choice = (struct px86_choice){choice.whole + 1, 0, choice.streams};
    return choice;
}

bool px86_is_choice(const struct px86 *px86, const struct px86_line *line,
                    struct px86_choice choice)
{
    struct shape shape = shape_of(px86, line);

    if (choice.whole > shape.groups || (choice.streams & ~mask_of(shape.streams)) != 0)
        return false;
    return choice.subset <= mask_of(bits_of_group(px86, line, choice.whole));
}
