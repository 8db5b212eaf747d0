/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/door.h"

#include <errno.h>
#include <string.h>

#include "crashtest/runtime/record.h"
#include "libminl2r/error.h"
#include "libminl2r/pm.h"

#define HELD_BACK_MAX PM_BATCH_SIZE_MAX
#define OTHER_THREAD 100

static struct {
    door_pause_fn *pause;
    void *pause_arg;
    struct door_fault fault;
    struct door_count count;

    /* A store or stream that comes late: after so many fences, or the next store. */
    const void *held_at;
    size_t held_size; /* 0: none */
    unsigned held_fences;
    uint8_t held[HELD_BACK_MAX];

    uintptr_t lost_start, lost_end; /* lines whose flush does not come */
    struct door_left_out left_out;

    bool watches_sites;
    struct door_sites *sites; /* or NULL */
} door;

void door_on_pause(door_pause_fn *call, void *arg)
{
    door.pause = call;
    door.pause_arg = arg;
}

void door_break(struct door_fault fault)
{
    door.fault = fault;
    door.count = (struct door_count){0};
    door.held_size = 0;
    door.lost_start = door.lost_end = 0;
}

struct door_count door_counted(void)
{
    return door.count;
}

struct door_left_out door_left_out(void)
{
    return door.left_out;
}

static bool has_fault(enum door_fault_kind kind, uint64_t nth)
{
    return door.fault.kind == kind && door.fault.nth == nth;
}

/* ---- Sites ----------------------------------------------------------------------- */

#define SITE_FRAMES 3 /* that tell one from another */

size_t door_add_site(struct door_sites *sites, const struct door_site *site)
{
    for (size_t i = 0; i < sites->count; i++)
        if (sites->sites[i].key == site->key)
            return i;
    if (sites->count == DOOR_SITES_MAX)
        return DOOR_SITES_MAX;
    sites->sites[sites->count] = *site;
    return sites->count++;
}

void door_note_sites(struct door_sites *sites)
{
    door.sites = sites;
}

void door_watch_sites(bool watch)
{
    door.watches_sites = watch;
}

/* Is it the site that is lost? It is noted, if anybody wants that. */
static bool comes_by(const void *pc)
{
    struct door_site site = {0};

    if (!door.watches_sites || (!door.sites && door.fault.kind != DOOR_LOSE_SITE))
        return false;
    record_frames(pc, site.frames);
    for (unsigned i = 0; i < SITE_FRAMES; i++)
        site.key = (site.key ^ site.frames[i]) * 0x9e3779b97f4a7c15u;
    if (door.sites)
        door_add_site(door.sites, &site);
    return has_fault(DOOR_LOSE_SITE, site.key);
}

static uintptr_t line_of(const void *at)
{
    return (uintptr_t)at & ~(uintptr_t)(PM_LINE - 1);
}

/* ---- Stores ---------------------------------------------------------------------- */

void __real_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size);
void __wrap_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size);
void __real_pm_store_piece(struct pm_phase *phase, const void *dst, const void *src,
                           size_t size);
void __wrap_pm_store_piece(struct pm_phase *phase, const void *dst, const void *src,
                           size_t size);
void __real_pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __wrap_pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __real_pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __wrap_pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void __real_pm_store_nt(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size);
void __wrap_pm_store_nt(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size);
void __wrap_pm_store_nt_extents(struct pm_phase *phase, const uint8_t *base,
                                const struct extent *extents, size_t count);
void __real_pm_flush(struct pm_phase *phase, const void *ptr, size_t size);
void __wrap_pm_flush(struct pm_phase *phase, const void *ptr, size_t size);
int __real_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase);

static void hold_back(const void *dst, const void *src, size_t size, unsigned fences)
{
    door.held_at = dst;
    door.held_size = size;
    door.held_fences = fences;
    memcpy(door.held, src, size);
}

static void let_go(struct pm_phase *phase)
{
    if (door.held_size > 0 && door.held_fences-- == 0) {
        __real_pm_store(phase, door.held_at, door.held, door.held_size);
        door.held_size = 0;
    }
}

static void lose_lines(const void *at, size_t size)
{
    door.lost_start = line_of(at);
    door.lost_end = size > 0 ? (uintptr_t)at + size : door.lost_start;
}

/* True if the store is not to be done now. */
static bool begin_store(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size)
{
    uint64_t nth = door.count.stores++;

    if (has_fault(DOOR_EARLY_FLUSH, nth)) {
        __real_pm_flush(phase, dst, size);
        lose_lines(dst, size);
    }
    if (door.fault.kind == DOOR_LOSE_SAME)
        lose_lines(dst, memcmp(dst, src, size) == 0 ? size : 0);
    if (has_fault(DOOR_LOSE_STORE, nth) ||
        (door.fault.kind == DOOR_SKIP_SAME && memcmp(dst, src, size) == 0))
        return true;
    if (!(has_fault(DOOR_LATE_STORE, nth) || has_fault(DOOR_SWAP_STORES, nth)) ||
        size > HELD_BACK_MAX)
        return false;
    hold_back(dst, src, size, 0);
    return true;
}

static void end_store(struct pm_phase *phase)
{
    if (door.count.stores > 1 && has_fault(DOOR_SWAP_STORES, door.count.stores - 2))
        let_go(phase);
}

void __wrap_pm_store(struct pm_phase *phase, const void *dst, const void *src,
                     size_t size)
{
    if (!begin_store(phase, dst, src, size))
        __real_pm_store(phase, dst, src, size);
    end_store(phase);
}

void __wrap_pm_store_piece(struct pm_phase *phase, const void *dst, const void *src,
                           size_t size)
{
    if (!begin_store(phase, dst, src, size))
        __real_pm_store_piece(phase, dst, src, size);
    end_store(phase);
}

void __wrap_pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    uint64_t value = *word | bits;

    if (!begin_store(phase, word, &value, sizeof(value)))
        __real_pm_or64(phase, word, bits);
}

void __wrap_pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    uint64_t value = *word & bits;

    if (!begin_store(phase, word, &value, sizeof(value)))
        __real_pm_and64(phase, word, bits);
}

static void stream(struct pm_phase *phase, const void *dst, const void *src,
                   size_t size, const void *pc)
{
    uint64_t nth = door.count.streams++;

    if (has_fault(DOOR_LATE_STREAM, nth) && size <= HELD_BACK_MAX) {
        hold_back(dst, src, size, 1);
        phase->pending = true;
    } else if (comes_by(pc) || has_fault(DOOR_LOSE_STREAM, nth)) {
        __real_pm_store(phase, dst, src, size);
        phase->pending = true;
    } else {
        __real_pm_store_nt(phase, dst, src, size);
    }
}

void __wrap_pm_store_nt(struct pm_phase *phase, const void *dst, const void *src,
                        size_t size)
{
    stream(phase, dst, src, size, __builtin_return_address(0));
}

void __wrap_pm_store_nt_extents(struct pm_phase *phase, const uint8_t *base,
                                const struct extent *extents, size_t count)
{
    for (size_t i = 0; i < count; i++)
        stream(phase, base + extents[i].start, extents[i].bytes, extents[i].size,
               __builtin_return_address(0));
}

/* ---- Flushes and fences ---------------------------------------------------------- */

static bool is_lost(const struct pm_phase *phase, uintptr_t line)
{
    return (door.lost_start <= line && line < door.lost_end) ||
           has_fault(DOOR_LOSE_LINE, line - (uintptr_t)phase->pm->base);
}

static void flush_lines(struct pm_phase *phase, uintptr_t line, uintptr_t end)
{
    for (; line < end; line += PM_LINE)
        if (!is_lost(phase, line))
            __real_pm_flush(phase, (const void *)line, 1);
}

static void leave_out(const struct pm_phase *phase, uintptr_t line, uintptr_t end)
{
    uintptr_t base = (uintptr_t)phase->pm->base;

    record_settle();
    door.left_out = (struct door_left_out){line - base, end - base,
                                           recorder.trace ? recorder.trace->count : 0};
}

/* Of a flush that is left out the library believes that it was done. */
void __wrap_pm_flush(struct pm_phase *phase, const void *ptr, size_t size)
{
    uint64_t nth = door.count.flushes;
    uintptr_t line = line_of(ptr);
    uintptr_t end = line_of((const uint8_t *)ptr + size - 1) + PM_LINE;

    if (size == 0 || (line == phase->last_line && line + PM_LINE == end)) {
        __real_pm_flush(phase, ptr, size);
        return;
    }
    door.count.flushes++;
    if (door.fault.kind == DOOR_IS_SOUND && !door.sites) {
        __real_pm_flush(phase, ptr, size);
        return;
    }
    if (comes_by(__builtin_return_address(0)) || has_fault(DOOR_LOSE_FLUSH, nth)) {
        leave_out(phase, line, end);
        line = end;
    }
    if (has_fault(DOOR_LOSE_FIRST_LINE, nth))
        line += PM_LINE;
    flush_lines(phase, line, has_fault(DOOR_LOSE_LAST_LINE, nth) ? end - PM_LINE : end);
    phase->pending = true;
    phase->last_line = end - PM_LINE;
}

static int other_fence(struct pm_phase *phase)
{
    uint32_t self = record_as_thread(OTHER_THREAD);
    int result = __real_pm_fence(phase);

    record_as_thread(self);
    return result;
}

int __wrap_pm_fence(struct pm_phase *phase)
{
    if (!phase->pending)
        return __real_pm_fence(phase);
    if (door.pause)
        door.pause(door.pause_arg);
    uint64_t nth = door.count.fences++;

    let_go(phase);
    if (has_fault(DOOR_FAIL_FENCE, nth)) {
        phase->pending = false;
        return error_set(EIO, "fence %llu is made to fail", (unsigned long long)nth);
    }
    if (has_fault(DOOR_OTHER_FENCE, nth))
        return other_fence(phase);
    if (!comes_by(__builtin_return_address(0)) && !has_fault(DOOR_LOSE_FENCE, nth))
        return __real_pm_fence(phase);
    phase->pending = false;
    phase->last_line = 0;
    return 0;
}
