/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/delay/model.h"

#include <stdbool.h>

static uint64_t ps_of_ns(double ns)
{
    return (uint64_t)(ns * 1000);
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* When a bus that is free at `*free_ps` has carried lines that are there at `start_ps`. */
static uint64_t take_bus(uint64_t *free_ps, double gb_s, uint64_t lines,
                         uint64_t start_ps)
{
    if (gb_s == 0)
        return start_ps;
    uint64_t takes_ps = ps_of_ns((double)(lines * DELAY_LINE) / gb_s);
    uint64_t free = __atomic_load_n(free_ps, __ATOMIC_RELAXED);
    uint64_t end;

    do
        end = later(free, start_ps) + takes_ps;
    while (!__atomic_compare_exchange_n(free_ps, &free, end, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED));
    return end;
}

uint64_t delay_fence_end(const struct delay_medium *medium, struct delay_buses *buses,
                         struct delay_writes *writes)
{
    uint64_t lines = writes->flushed + writes->streamed;
    uint64_t durable =
        writes->first_ps +
        ps_of_ns(medium->fence_ns + medium->flush_line_ns * (double)writes->flushed +
                 medium->stream_line_ns * (double)writes->streamed);
    uint64_t carried =
        take_bus(&buses->write_free_ps, medium->write_gb_s, lines, writes->first_ps);

    *writes = (struct delay_writes){0};
    return later(durable, carried);
}

uint64_t delay_read_end(const struct delay_medium *medium, struct delay_buses *buses,
                        uint64_t lines, uint64_t start_ps)
{
    if (lines == 0)
        return start_ps;
    uint64_t arrived = start_ps + ps_of_ns(medium->read_ns +
                                           medium->read_line_ns * (double)(lines - 1));

    return later(arrived,
                 take_bus(&buses->read_free_ps, medium->read_gb_s, lines, start_ps));
}

void delay_carry(const struct delay_medium *medium, struct delay_buses *buses,
                 uint64_t lines, uint64_t start_ps)
{
    take_bus(&buses->read_free_ps, medium->read_gb_s, lines, start_ps);
}

/* ---- The cache ------------------------------------------------------------------- */

struct line_range {
    uintptr_t first, end;
};

static struct line_range lines_of(const void *start, size_t size)
{
    uintptr_t address = (uintptr_t)start;

    return (struct line_range){address / DELAY_LINE,
                               (address + size + DELAY_LINE - 1) / DELAY_LINE};
}

static uint32_t *entry_of(struct delay_cache *cache, uintptr_t line)
{
    return &cache->tags[line % DELAY_CACHE_LINES];
}

/* Not 0 for any address that a program has PM at. */
static uint32_t tag_of(uintptr_t line)
{
    return (uint32_t)(line / DELAY_CACHE_LINES);
}

uint64_t delay_cache_fill(struct delay_cache *cache, const void *start, size_t size)
{
    struct line_range range = lines_of(start, size);
    uint64_t missed = 0;

    for (uintptr_t line = range.first; size > 0 && line < range.end; line++) {
        uint32_t *entry = entry_of(cache, line);

        missed += *entry != tag_of(line);
        *entry = tag_of(line);
    }
    return missed;
}

bool delay_cache_has(const struct delay_cache *cache, const void *start, size_t size)
{
    struct line_range range = lines_of(start, size);

    for (uintptr_t line = range.first; line < range.end; line++)
        if (cache->tags[line % DELAY_CACHE_LINES] != tag_of(line))
            return false;
    return true;
}

void delay_cache_drop(struct delay_cache *cache, const void *start, size_t size)
{
    struct line_range range = lines_of(start, size);

    for (uintptr_t line = range.first; size > 0 && line < range.end; line++) {
        uint32_t *entry = entry_of(cache, line);

        if (*entry == tag_of(line))
            *entry = 0;
    }
}

/* ---- Prefetches ------------------------------------------------------------------ */

/* Those under way follow each other as the lines of one read do. */
void delay_fetch(const struct delay_medium *medium, struct delay_fetches *fetches,
                 const void *at, uint64_t start_ps)
{
    uintptr_t line = (uintptr_t)at / DELAY_LINE;
    uint64_t there_ps = later(start_ps + ps_of_ns(medium->read_ns),
                              fetches->last_ps + ps_of_ns(medium->read_line_ns));

    fetches->places[line % DELAY_FETCHES].line = line;
    fetches->places[line % DELAY_FETCHES].there_ps = there_ps;
    fetches->last_ps = there_ps;
}

uint64_t delay_fetch_end(const struct delay_fetches *fetches, const void *start,
                         size_t size)
{
    struct line_range range = lines_of(start, size);
    uint64_t end_ps = 0;

    for (uintptr_t line = range.first; size > 0 && line < range.end; line++)
        if (fetches->places[line % DELAY_FETCHES].line == line)
            end_ps = later(end_ps, fetches->places[line % DELAY_FETCHES].there_ps);
    return end_ps;
}
