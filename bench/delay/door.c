/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * door.c - what the linker's --wrap puts in front of the door: the model's clock, and
 * the waiting.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __x86_64__
#include <x86intrin.h>
#endif

#include "bench/delay/model.h"
#include "libminl2r/pm.h"

#define MAPPINGS_MAX 32

int __real_pm_map(struct pm *pm, int fd, uint64_t size, bool writable);
void __real_pm_unmap(struct pm *pm);
void __real_pm_adopt(struct pm *pm, const void *base, uint64_t size,
                     enum minl2r_medium medium);
void __real_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size);
void __real_pm_store_nt(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size);
void __real_pm_flush(struct pm_phase *phase, const void *ptr, size_t size);
void __real_pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __real_pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __real_pm_max64(struct pm_phase *phase, const uint64_t *word, uint64_t value);
int __real_pm_fence(struct pm_phase *phase);
void *__real_memcpy(void *dst, const void *src, size_t size);

int __wrap_pm_map(struct pm *pm, int fd, uint64_t size, bool writable);
void __wrap_pm_unmap(struct pm *pm);
void __wrap_pm_adopt(struct pm *pm, const void *base, uint64_t size,
                     enum minl2r_medium medium);
void __wrap_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size);
void __wrap_pm_store_nt(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size);
void __wrap_pm_store_nt_extents(struct pm_phase *phase, const uint8_t *base,
                                const struct extent *extents, size_t count);
void __wrap_pm_flush(struct pm_phase *phase, const void *ptr, size_t size);
void __wrap_pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __wrap_pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __wrap_pm_max64(struct pm_phase *phase, const uint64_t *word, uint64_t value);
int __wrap_pm_fence(struct pm_phase *phase);
void *__wrap_memcpy(void *dst, const void *src, size_t size);

static const struct delay_medium *medium; /* NULL: no delay */
static struct delay_buses buses;

struct thread {
    struct delay_writes writes;
    struct delay_totals totals;
    uint64_t read_until_ps;   /* when the last read was over */
    bool are_fetched;         /* perhaps some lines are under way */
    uint64_t fetch_start_ps;  /* of prefetches in a row; 0: none */
    uint64_t fetches_carried; /* of totals.lines_prefetched */
    struct delay_fetches fetches;
    struct delay_cache cache;
};
static _Thread_local struct thread thread;

/* ---- The clock ------------------------------------------------------------------- */

static uint64_t system_ps(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000000u + (uint64_t)now.tv_nsec * 1000;
}

#ifdef __x86_64__
#define CALIBRATION_PS ((uint64_t)20 * 1000000000)

static struct {
    uint64_t start;              /* cycles */
    uint64_t ps_per_1024_cycles; /* 0: not calibrated yet */
} tsc;

struct instant {
    uint64_t ps;
    uint64_t cycles;
};

/* Both clocks at once: of several tries the one that nothing came between. */
static struct instant read_clocks(void)
{
    struct instant best = {0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 16; i++) {
        uint64_t before = __rdtsc();
        uint64_t ps = system_ps();
        uint64_t took = __rdtsc() - before;

        if (took < least) {
            least = took;
            best = (struct instant){ps, before + took / 2};
        }
    }
    return best;
}

static void calibrate(void)
{
    struct instant start = read_clocks();

    while (system_ps() - start.ps < CALIBRATION_PS)
        ;
    struct instant end = read_clocks();

    tsc.start = start.cycles;
    tsc.ps_per_1024_cycles = (end.ps - start.ps) * 1024 / (end.cycles - start.cycles);
}

static bool is_calibrated(void)
{
    return tsc.ps_per_1024_cycles != 0;
}

static uint64_t now_ps(void)
{
    unsigned __int128 cycles = __rdtsc() - tsc.start;

    return (uint64_t)(cycles * tsc.ps_per_1024_cycles >> 10);
}
#else
static void calibrate(void)
{
}

static bool is_calibrated(void)
{
    return true;
}

static uint64_t now_ps(void)
{
    return system_ps();
}
#endif

static uint64_t wait_lag_ps; /* what waiting takes beyond the time waited for */

static void wait_until(uint64_t end_ps)
{
    while (now_ps() + wait_lag_ps < end_ps)
        ;
}

static uint64_t mean_wait_ps(uint64_t wait_ps, uint64_t times)
{
    uint64_t start_ps = now_ps();

    for (uint64_t i = 0; i < times; i++)
        wait_until(now_ps() + wait_ps);
    return (now_ps() - start_ps) / times;
}

/* The least of several means: one in which nobody else had the processor. */
static void measure_wait_lag(void)
{
    const uint64_t wait_ps = 500000;
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 20; i++) {
        uint64_t mean = mean_wait_ps(wait_ps, 100);

        if (mean < least)
            least = mean;
    }
    wait_lag_ps = least - wait_ps;
}

/* ---- Where PM is ----------------------------------------------------------------- */

static struct {
    uintptr_t start, end;
} mappings[MAPPINGS_MAX];
static size_t mapping_count;
uintptr_t delay_pm_start, delay_pm_size;

/* From the first mapping to the last one, if they are delayed. */
static void bound_mappings(void)
{
    uintptr_t start = UINTPTR_MAX, end = 0;

    for (size_t i = 0; medium && i < mapping_count; i++) {
        start = mappings[i].start < start ? mappings[i].start : start;
        end = mappings[i].end > end ? mappings[i].end : end;
    }
    delay_pm_start = start;
    delay_pm_size = end > start ? end - start : 0;
}

static bool is_in_mapping(const void *ptr, size_t i)
{
    uintptr_t at = (uintptr_t)ptr;

    return i < mapping_count && mappings[i].start <= at && at < mappings[i].end;
}

/* Most often where the last one was. */
static bool is_pm(const void *ptr)
{
    static _Thread_local size_t last;

    if (is_in_mapping(ptr, last))
        return true;
    for (size_t i = 0; i < mapping_count; i++)
        if (is_in_mapping(ptr, i)) {
            last = i;
            return true;
        }
    return false;
}

static void note_mapping(const struct pm *pm)
{
    assert(mapping_count < MAPPINGS_MAX);
    mappings[mapping_count].start = (uintptr_t)pm->base;
    mappings[mapping_count++].end = (uintptr_t)pm->base + pm->size;
    bound_mappings();
}

static void forget_mapping(const struct pm *pm)
{
    for (size_t i = 0; i < mapping_count; i++)
        if (mappings[i].start == (uintptr_t)pm->base) {
            mappings[i] = mappings[--mapping_count];
            bound_mappings();
            return;
        }
}

int __wrap_pm_map(struct pm *pm, int fd, uint64_t size, bool writable)
{
    int result = __real_pm_map(pm, fd, size, writable);

    if (result == 0)
        note_mapping(pm);
    return result;
}

void __wrap_pm_unmap(struct pm *pm)
{
    forget_mapping(pm);
    __real_pm_unmap(pm);
}

void __wrap_pm_adopt(struct pm *pm, const void *base, uint64_t size,
                     enum minl2r_medium kind)
{
    __real_pm_adopt(pm, base, size, kind);
    forget_mapping(pm);
    note_mapping(pm);
}

/* ---- Which medium ---------------------------------------------------------------- */

void delay_use(const struct delay_medium *chosen)
{
    if (!is_calibrated()) {
        calibrate();
        measure_wait_lag();
    }
    buses = (struct delay_buses){0};
    medium = chosen && chosen != &delay_media[0] ? chosen : NULL;
    bound_mappings();
}

struct delay_totals delay_totals(void)
{
    return thread.totals;
}

/* ---- Reads ----------------------------------------------------------------------- */

/* Prefetches follow each other at once, or the next one looks at the clock; what they have
 * taken of the bus nobody waits for. */
static void end_fetches(void)
{
    uint64_t count = thread.totals.lines_prefetched - thread.fetches_carried;

    if (thread.fetch_start_ps == 0)
        return;
    delay_carry(medium, &buses, count, thread.fetch_start_ps);
    thread.fetches_carried = thread.totals.lines_prefetched;
    thread.fetch_start_ps = 0;
}

/* A copy that loads.h sees may call memcpy(), which is seen as well: no time counts twice. */
static void count_read(uint64_t start_ps, uint64_t end_ps)
{
    uint64_t from_ps =
        start_ps > thread.read_until_ps ? start_ps : thread.read_until_ps;

    if (end_ps <= from_ps)
        return;
    thread.read_until_ps = end_ps;
    if (!delay_is_pending(&thread.writes))
        thread.totals.read_alone_ps += end_ps - from_ps;
}

/* Waits for what a read of PM that began at `start_ps` still needs. */
static void end_read(const void *src, size_t size, uint64_t start_ps)
{
    uint64_t missed = delay_cache_fill(&thread.cache, src, size);
    uint64_t end_ps = 0;

    end_fetches();
    thread.are_fetched = thread.fetches.last_ps > start_ps;
    if (thread.are_fetched)
        end_ps = delay_fetch_end(&thread.fetches, src, size);
    if (missed > 0) {
        uint64_t read_ps = delay_read_end(medium, &buses, missed, start_ps);

        thread.totals.lines_read += missed;
        thread.totals.due_ps += read_ps - start_ps;
        end_ps = read_ps > end_ps ? read_ps : end_ps;
    }
    if (end_ps <= start_ps)
        return;
    count_read(start_ps, end_ps);
    wait_until(end_ps);
}

/* Looks at the clock as seldom as it can. */
uint64_t delay_load_begin(const void *src, size_t size)
{
    bool is_there = !thread.are_fetched && delay_cache_has(&thread.cache, src, size);

    return medium && !is_there && is_pm(src) ? now_ps() : 0;
}

void delay_load_end(const void *src, size_t size, uint64_t start_ps)
{
    if (start_ps > 0)
        end_read(src, size, start_ps);
}

void delay_prefetch(const void *at)
{
    if (!medium || !is_pm(at) || delay_cache_fill(&thread.cache, at, 1) == 0)
        return;
    if (thread.fetch_start_ps == 0)
        thread.fetch_start_ps = now_ps();
    thread.totals.lines_prefetched++;
    thread.are_fetched = true;
    delay_fetch(medium, &thread.fetches, at, thread.fetch_start_ps);
}

void *__wrap_memcpy(void *dst, const void *src, size_t size)
{
    if (!medium || !is_pm(src))
        return __real_memcpy(dst, src, size);
    uint64_t start_ps = now_ps();

    __real_memcpy(dst, src, size);
    end_read(src, size, start_ps);
    return dst;
}

void __wrap_pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    uint64_t start_ps = delay_load_begin(word, sizeof(*word));

    __real_pm_or64(phase, word, bits);
    delay_load_end(word, sizeof(*word), start_ps);
}

void __wrap_pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    uint64_t start_ps = delay_load_begin(word, sizeof(*word));

    __real_pm_and64(phase, word, bits);
    delay_load_end(word, sizeof(*word), start_ps);
}

void __wrap_pm_max64(struct pm_phase *phase, const uint64_t *word, uint64_t value)
{
    uint64_t start_ps = delay_load_begin(word, sizeof(*word));

    __real_pm_max64(phase, word, value);
    delay_load_end(word, sizeof(*word), start_ps);
}

/* ---- Writes ---------------------------------------------------------------------- */

void __wrap_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size)
{
    bool reads = medium && is_pm(src);
    uint64_t start_ps = reads ? now_ps() : 0;

    __real_pm_store(phase, dst, src, size);
    if (reads)
        end_read(src, size, start_ps);
    if (medium)
        delay_cache_fill(&thread.cache, dst, size);
}

/* The time before the first line. */
static void begin_writes(void)
{
    end_fetches();
    if (!delay_is_pending(&thread.writes))
        thread.writes.first_ps = now_ps();
}

static void store_nt_delayed(struct pm_phase *phase, const void *dst, const void *src,
                             size_t size)
{
    uint64_t before = phase->stats->lines_streamed;
    bool reads = is_pm(src);
    uint64_t start_ps = reads ? now_ps() : 0;

    begin_writes();
    __real_pm_store_nt(phase, dst, src, size);
    uint64_t lines = phase->stats->lines_streamed - before;

    thread.writes.streamed += lines;
    thread.totals.lines_streamed += lines;
    if (reads)
        end_read(src, size, start_ps);
    delay_cache_drop(&thread.cache, dst, size);
}

void __wrap_pm_store_nt(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size)
{
    if (medium)
        store_nt_delayed(phase, dst, src, size);
    else
        __real_pm_store_nt(phase, dst, src, size);
}

void __wrap_pm_store_nt_extents(struct pm_phase *phase, const uint8_t *base,
                                const struct extent *extents, size_t count)
{
    for (size_t i = 0; i < count; i++)
        __wrap_pm_store_nt(phase, base + extents[i].start, extents[i].bytes,
                           extents[i].size);
}

static void flush_delayed(struct pm_phase *phase, const void *ptr, size_t size)
{
    uint64_t before = phase->stats->lines_flushed;

    begin_writes();
    __real_pm_flush(phase, ptr, size);
    uint64_t lines = phase->stats->lines_flushed - before;

    thread.writes.flushed += lines;
    thread.totals.lines_flushed += lines;
    delay_cache_fill(&thread.cache, ptr, size);
}

void __wrap_pm_flush(struct pm_phase *phase, const void *ptr, size_t size)
{
    if (medium)
        flush_delayed(phase, ptr, size);
    else
        __real_pm_flush(phase, ptr, size);
}

int __wrap_pm_fence(struct pm_phase *phase)
{
    int result = __real_pm_fence(phase);

    if (medium)
        end_fetches();
    if (medium && delay_is_pending(&thread.writes)) {
        uint64_t first_ps = thread.writes.first_ps;
        uint64_t end_ps = delay_fence_end(medium, &buses, &thread.writes);

        thread.totals.fences++;
        thread.totals.due_ps += end_ps - first_ps;
        wait_until(end_ps);
    }
    return result;
}
