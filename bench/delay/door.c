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
int __wrap_pm_fence(struct pm_phase *phase);
void *__wrap_memcpy(void *dst, const void *src, size_t size);

static const struct delay_medium *medium; /* NULL: no delay */
static struct delay_buses buses;

struct thread {
    struct delay_writes writes;
    struct delay_totals totals;
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

void delay_use(const struct delay_medium *chosen)
{
    if (!is_calibrated()) {
        calibrate();
        measure_wait_lag();
    }
    buses = (struct delay_buses){0};
    medium = chosen && chosen != &delay_media[0] ? chosen : NULL;
}

struct delay_totals delay_totals(void)
{
    return thread.totals;
}

/* ---- Where PM is ----------------------------------------------------------------- */

static struct {
    uintptr_t start, end;
} mappings[MAPPINGS_MAX];
static size_t mapping_count;

static bool is_pm(const void *ptr)
{
    uintptr_t at = (uintptr_t)ptr;

    for (size_t i = 0; i < mapping_count; i++)
        if (mappings[i].start <= at && at < mappings[i].end)
            return true;
    return false;
}

static void note_mapping(const struct pm *pm)
{
    assert(mapping_count < MAPPINGS_MAX);
    mappings[mapping_count].start = (uintptr_t)pm->base;
    mappings[mapping_count++].end = (uintptr_t)pm->base + pm->size;
}

static void forget_mapping(const struct pm *pm)
{
    for (size_t i = 0; i < mapping_count; i++)
        if (mappings[i].start == (uintptr_t)pm->base) {
            mappings[i] = mappings[--mapping_count];
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

/* ---- Reads ----------------------------------------------------------------------- */

/* Waits for what a read of PM that began at `start_ps` still needs. */
static void end_read(const void *src, size_t size, uint64_t start_ps)
{
    uint64_t missed = delay_cache_fill(&thread.cache, src, size);

    if (missed == 0)
        return;
    thread.totals.lines_read += missed;
    wait_until(delay_read_end(medium, &buses, missed, start_ps));
}

void delay_read(const void *src, size_t size)
{
    if (medium)
        end_read(src, size, now_ps());
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

/* ---- Writes ---------------------------------------------------------------------- */

void __wrap_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size)
{
    bool reads = medium && is_pm(src);
    uint64_t start_ps = reads ? now_ps() : 0;

    __real_pm_store(phase, dst, src, size);
    if (reads)
        end_read(src, size, start_ps);
}

/* The time before the first line. */
static void begin_writes(void)
{
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

    if (medium && delay_is_pending(&thread.writes)) {
        thread.totals.fences++;
        wait_until(delay_fence_end(medium, &buses, &thread.writes));
    }
    return result;
}
