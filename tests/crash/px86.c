/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/crash/px86.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* More undecided pieces of one line than this are not told apart. */
#define OPEN_MAX 64

static void *grow(void *memory, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return memory;
    *capacity = *capacity ? *capacity * 2 : 64;
    memory = realloc(memory, *capacity * size);
    if (!memory) {
        fprintf(stderr, "no memory for the model\n");
        exit(2);
    }
    return memory;
}

void px86_init(struct px86 *px86, const uint8_t *image, uint64_t size)
{
    *px86 = (struct px86){.image = image, .size = size};
    px86->line_index = calloc(size / PM_LINE, sizeof(*px86->line_index));
    if (!px86->line_index)
        exit(2);
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
        px86->line_index[px86->lines[i].at / PM_LINE] = 0;
    px86->line_count = px86->store_count = px86->flush_count = 0;
}

void px86_copy(struct px86 *to, const struct px86 *from)
{
    px86_reset(to);
    for (uint32_t i = 0; i < from->line_count; i++) {
        to->lines = grow(to->lines, i, &to->line_capacity, sizeof(*to->lines));
        to->lines[i] = from->lines[i];
        to->line_index[to->lines[i].at / PM_LINE] = i + 1;
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
    uint64_t number = at / PM_LINE;

    if (px86->line_index[number] == 0) {
        px86->lines = grow(px86->lines, px86->line_count, &px86->line_capacity,
                           sizeof(*px86->lines));
        struct px86_line *line = &px86->lines[px86->line_count++];

        *line = (struct px86_line){.at = number * PM_LINE};
        memcpy(line->floor, px86->image + line->at, PM_LINE);
        px86->line_index[number] = px86->line_count;
    }
    return &px86->lines[px86->line_index[number] - 1];
}

static void apply_store(struct px86 *px86, const struct shadow_event *event)
{
    struct px86_line *line = line_at(px86, event->at);

    px86->stores = grow(px86->stores, px86->store_count, &px86->store_capacity,
                        sizeof(*px86->stores));
    px86->stores[px86->store_count++] = (struct px86_store){
        .value = event->after,
        .phase = event->phase,
        .group = event->group,
        .at = (uint8_t)(event->at % PM_LINE),
        .size = event->size,
        .streamed = event->kind == SHADOW_STREAM,
    };
    if (line->last)
        px86->stores[line->last - 1].next = px86->store_count;
    else
        line->first = px86->store_count;
    line->last = px86->store_count;
}

static void apply_flush(struct px86 *px86, const struct shadow_event *event)
{
    const struct px86_line *line = line_at(px86, event->at);

    px86->flushes = grow(px86->flushes, px86->flush_count, &px86->flush_capacity,
                         sizeof(*px86->flushes));
    px86->flushes[px86->flush_count++] = (struct px86_flush){
        event->phase, px86->line_index[line->at / PM_LINE] - 1, line->last};
}

static void put(uint8_t content[PM_LINE], const struct px86_store *store)
{
    memcpy(content + store->at, &store->value, store->size);
}

/* Durable stores that nothing undecided precedes belong to the floor. */
static void raise_floor(struct px86 *px86, struct px86_line *line)
{
    while (line->first && px86->stores[line->first - 1].durable) {
        const struct px86_store *store = &px86->stores[line->first - 1];

        put(line->floor, store);
        line->first = store->next;
    }
    if (!line->first)
        line->last = 0;
}

static void cover(struct px86 *px86, const struct px86_flush *flush)
{
    struct px86_line *line = &px86->lines[flush->line];

    for (uint32_t i = line->first; i != 0 && i <= flush->last;
         i = px86->stores[i - 1].next)
        if (!px86->stores[i - 1].streamed)
            px86->stores[i - 1].durable = true;
}

static void apply_fence(struct px86 *px86, uintptr_t phase)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < px86->flush_count; i++) {
        if (px86->flushes[i].phase == phase)
            cover(px86, &px86->flushes[i]);
        else
            px86->flushes[kept++] = px86->flushes[i];
    }
    px86->flush_count = kept;
    for (uint32_t i = 0; i < px86->store_count; i++)
        if (px86->stores[i].streamed && px86->stores[i].phase == phase)
            px86->stores[i].durable = true;
    for (uint32_t i = 0; i < px86->line_count; i++)
        raise_floor(px86, &px86->lines[i]);
}

void px86_apply(struct px86 *px86, const struct shadow_event *event)
{
    switch (event->kind) {
    case SHADOW_STORE:
    case SHADOW_STREAM:
        apply_store(px86, event);
        break;
    case SHADOW_FLUSH:
        apply_flush(px86, event);
        break;
    case SHADOW_FENCE:
        apply_fence(px86, event->phase);
        break;
    default:
        break;
    }
}

void px86_kill(struct px86 *px86)
{
    px86->flush_count = 0;
    for (uint32_t i = 0; i < px86->store_count; i++)
        px86->stores[i].phase = 0;
}

bool px86_is_dirty(const struct px86 *px86, uint64_t at)
{
    uint32_t index = px86->line_index[at / PM_LINE];

    if (index == 0)
        return false;
    for (uint32_t i = px86->lines[index - 1].first; i != 0;
         i = px86->stores[i - 1].next)
        if (!px86->stores[i - 1].streamed && !px86->stores[i - 1].durable)
            return true;
    return false;
}

/* ---- Contents of a line ---------------------------------------------------------- */

/*
 * The stores of a line, oldest first; which of them are open, as bits; and the open
 * ones of each group, in order, streams apart. Bits count from the first.
 */
struct open_stores {
    const struct px86_store *stores[OPEN_MAX];
    uint32_t count;
    uint64_t always; /* durable */
    uint64_t streams;
    uint64_t groups[OPEN_MAX];
    uint32_t group_count;
};

static uint64_t bytes_of(const struct px86_store *store)
{
    return (((uint64_t)1 << store->size) - 1) << store->at;
}

static void add_to_group(struct open_stores *open, uint32_t i)
{
    const struct px86_store *store = open->stores[i];
    uint32_t newest = open->group_count;

    if (store->streamed) {
        open->streams |= (uint64_t)1 << i;
        return;
    }
    if (newest > 0) {
        uint32_t before = 63 - (uint32_t)__builtin_clzll(open->groups[newest - 1]);

        if (open->stores[before]->group == store->group) {
            open->groups[newest - 1] |= (uint64_t)1 << i;
            return;
        }
    }
    open->groups[open->group_count++] = (uint64_t)1 << i;
}

/* What is alone on its bytes, and leaves them as they are, makes no difference. */
static bool makes_no_difference(const struct px86_line *line,
                                const struct px86_store *store, uint64_t shared)
{
    return (bytes_of(store) & shared) == 0 &&
           memcmp(line->floor + store->at, &store->value, store->size) == 0;
}

/* False if the line has more stores than can be told apart. */
static bool find_open(const struct px86 *px86, const struct px86_line *line,
                      struct open_stores *open)
{
    uint64_t seen = 0, shared = 0;

    *open = (struct open_stores){0};
    for (uint32_t i = line->first; i != 0; i = px86->stores[i - 1].next) {
        const struct px86_store *store = &px86->stores[i - 1];

        if (open->count == OPEN_MAX)
            return false;
        shared |= seen & bytes_of(store);
        seen |= bytes_of(store);
        open->stores[open->count++] = store;
    }
    for (uint32_t i = 0; i < open->count; i++) {
        if (open->stores[i]->durable ||
            makes_no_difference(line, open->stores[i], shared))
            open->always |= (uint64_t)1 << i;
        else
            add_to_group(open, i);
    }
    return true;
}

static void compose(const struct px86_line *line, const struct open_stores *open,
                    uint64_t included, uint8_t content[PM_LINE])
{
    included |= open->always;
    memcpy(content, line->floor, PM_LINE);
    for (uint32_t i = 0; i < open->count; i++)
        if (included >> i & 1)
            put(content, open->stores[i]);
}

static uint32_t bits_in(uint64_t mask)
{
    return (uint32_t)__builtin_popcountll(mask);
}

static uint64_t subsets_of(uint64_t mask)
{
    return bits_in(mask) > 31 ? UINT32_MAX : (uint64_t)1 << bits_in(mask);
}

static uint64_t count_prefixes(const struct open_stores *open)
{
    uint64_t count = 1;

    for (uint32_t i = 0; i < open->group_count; i++)
        count += subsets_of(open->groups[i]) - 1;
    return count;
}

static uint64_t saturate(uint64_t a, uint64_t b)
{
    return a > UINT32_MAX / b ? UINT32_MAX : a * b;
}

uint32_t px86_count(const struct px86 *px86, const struct px86_line *line)
{
    struct open_stores open;

    if (!find_open(px86, line, &open))
        return UINT32_MAX;
    return (uint32_t)saturate(count_prefixes(&open), subsets_of(open.streams));
}

/* Steps `subset` of `mask` to the next one; wraps around to 0. */
static uint64_t next_subset(uint64_t subset, uint64_t mask)
{
    return (subset - mask) & mask;
}

/*
 * The cached part in steps: every subset of one group over all groups before it.
 * Answers with the included stores, and false after the last.
 */
struct prefix {
    uint32_t group;
    uint64_t subset; /* of open->groups[group] */
    uint64_t before;
};

static bool next_prefix(const struct open_stores *open, struct prefix *prefix)
{
    if (prefix->group == open->group_count)
        return false;
    uint64_t group = open->groups[prefix->group];

    prefix->subset = next_subset(prefix->subset, group);
    if (prefix->subset == group) { /* whole: the same as none of the next */
        prefix->before |= group;
        prefix->subset = 0;
        prefix->group++;
    }
    return true;
}

static uint32_t all_contents(const struct px86_line *line,
                             const struct open_stores *open, px86_content *contents)
{
    struct prefix prefix = {0};
    uint32_t count = 0;

    do {
        uint64_t streams = 0;

        do {
            compose(line, open, prefix.before | prefix.subset | streams,
                    contents[count++]);
            streams = next_subset(streams, open->streams);
        } while (streams != 0);
    } while (next_prefix(open, &prefix));
    return count;
}

/* Nothing, then prefixes and single pieces as far as `max` goes, then everything. */
static uint32_t some_contents(const struct px86_line *line,
                              const struct open_stores *open, px86_content *contents,
                              uint32_t max)
{
    uint64_t everything = open->streams, cached = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < open->group_count; i++)
        everything |= open->groups[i];
    compose(line, open, 0, contents[count++]);
    for (uint32_t i = 0; i < open->count && count + 3 < max; i++) {
        uint64_t bit = (uint64_t)1 << i;

        if ((everything & bit) == 0)
            continue;
        if ((open->streams & bit) == 0)
            cached |= bit;
        compose(line, open, open->streams & bit ? bit : cached, contents[count++]);
        compose(line, open, everything & ~bit, contents[count++]);
    }
    compose(line, open, everything, contents[count++]);
    return count;
}

/* A line of more stores than can be told apart: each of its last prefixes. */
static uint32_t last_contents(const struct px86 *px86, const struct px86_line *line,
                              px86_content *contents, uint32_t max)
{
    uint32_t count = 1, left = 0;

    for (uint32_t i = line->first; i != 0; i = px86->stores[i - 1].next)
        left++;
    memcpy(contents[0], line->floor, PM_LINE);
    memcpy(contents[1], line->floor, PM_LINE);
    for (uint32_t i = line->first; i != 0; i = px86->stores[i - 1].next, left--) {
        put(contents[count], &px86->stores[i - 1]);
        if (left > 1 && left < max - 1) {
            memcpy(contents[count + 1], contents[count], PM_LINE);
            count++;
        }
    }
    return count + 1;
}

uint32_t px86_contents(const struct px86 *px86, const struct px86_line *line,
                       px86_content *contents, uint32_t max)
{
    struct open_stores open;

    if (!find_open(px86, line, &open))
        return last_contents(px86, line, contents, max);
    if (saturate(count_prefixes(&open), subsets_of(open.streams)) <= max)
        return all_contents(line, &open, contents);
    return some_contents(line, &open, contents, max);
}
