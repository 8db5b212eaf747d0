/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_cover.h"

#include <stdbool.h>
#include <string.h>

/* Ways beyond are not told from others: a campaign sees some hundreds. */
#define WAYS_MAX ((uint64_t)1 << 14)

static struct {
    bool is_on;
    uint64_t count;
    uint64_t ways[2 * WAYS_MAX]; /* hashes, open addressing; 0: none */
} cover;

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

static void add(uint64_t way)
{
    uint64_t mask = 2 * WAYS_MAX - 1;
    uint64_t i = way & mask;

    if (way == 0 || cover.count == WAYS_MAX)
        return;
    for (; cover.ways[i] != 0; i = (i + 1) & mask)
        if (cover.ways[i] == way)
            return;
    cover.ways[i] = way;
    cover.count++;
}

void cover_begin(void)
{
    memset(&cover, 0, sizeof(cover));
    cover.is_on = true;
}

uint64_t cover_count(void)
{
    return cover.count;
}

/* Where a store was made, and from where that was called. */
static uint64_t place_of(const struct trace_event *event)
{
    uint64_t hash = event->kind;

    for (unsigned i = 0; i < TRACE_FRAMES; i++)
        hash = mix(hash, event->frames[i]);
    return hash;
}

void cover_run(const struct trace *trace)
{
    uint64_t before = 1;

    for (size_t i = 0; cover.is_on && i < trace->count; i++) {
        uint64_t place = place_of(&trace->events[i]);

        if (place != before)
            add(mix(before, place));
        before = place;
    }
}

/* Repetitions are one. */
void cover_recovery(const struct trace *trace, uint64_t outcome)
{
    uint64_t way = mix(2, outcome), before = 0;

    for (size_t i = 0; cover.is_on && i < trace->count; i++) {
        uint64_t place = place_of(&trace->events[i]);

        if (place != before)
            way = mix(way, place);
        before = place;
    }
    if (cover.is_on)
        add(way);
}
