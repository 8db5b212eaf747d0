/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - the arithmetic of delay.h. It knows no clock: times are picoseconds since
 * whenever, given and answered.
 */
#ifndef BENCH_DELAY_MODEL_H
#define BENCH_DELAY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/delay/delay.h"

#define DELAY_LINE ((size_t)64)
#define DELAY_CACHE_LINES ((size_t)1 << 14) /* 1 MiB */

/* When the buses will have carried what was put on them; atomic. */
struct delay_buses {
    uint64_t write_free_ps;
    uint64_t read_free_ps;
};

/* Direct-mapped. A thread's own; zeroed it is empty. */
struct delay_cache {
    uint32_t tags[DELAY_CACHE_LINES];
};

/* Lines that a thread has asked for in advance, by address: a later one may take the place of
 * an earlier one, which then counts as arrived. Zeroed: none. */
#define DELAY_FETCHES ((size_t)128)
struct delay_fetches {
    struct {
        uintptr_t line;
        uint64_t there_ps;
    } places[DELAY_FETCHES];
    uint64_t last_ps; /* when the last one is there */
};

/* What a thread has flushed and streamed since its last fence. Zeroed: nothing. */
struct delay_writes {
    uint64_t first_ps; /* when it began, if there is anything */
    uint64_t flushed;  /* lines */
    uint64_t streamed;
};

static inline bool delay_is_pending(const struct delay_writes *writes)
{
    return writes->flushed + writes->streamed > 0;
}

/* When the fence that ends `writes` may return; empties it. */
uint64_t delay_fence_end(const struct delay_medium *medium, struct delay_buses *buses,
                         struct delay_writes *writes);

/* When a read of `lines` lines from memory that begins at `start_ps` may end. */
uint64_t delay_read_end(const struct delay_medium *medium, struct delay_buses *buses,
                        uint64_t lines, uint64_t start_ps);

/* Asks for the line at `at` at `start_ps`. */
void delay_fetch(const struct delay_medium *medium, struct delay_fetches *fetches,
                 const void *at, uint64_t start_ps);

/* When all lines of a range that were asked for are there; 0: whenever. */
uint64_t delay_fetch_end(const struct delay_fetches *fetches, const void *start,
                         size_t size);

/* The bus for reads carries `lines` lines that nobody waits for here. */
void delay_carry(const struct delay_medium *medium, struct delay_buses *buses,
                 uint64_t lines, uint64_t start_ps);

/* What was published of Optane: lines, 0 being the end, and the time of all of them. */
struct delay_published {
    size_t lines;
    double ns;
};
extern const struct delay_published delay_optane_flush[]; /* with their fence */
extern const struct delay_published delay_optane_stream[];
extern const struct delay_published delay_optane_read[];

/* Brings the lines of a range into the cache; how many were not there. */
uint64_t delay_cache_fill(struct delay_cache *cache, const void *start, size_t size);

bool delay_cache_has(const struct delay_cache *cache, const void *start, size_t size);

void delay_cache_drop(struct delay_cache *cache, const void *start, size_t size);

#endif
