/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/crash/pm_shadow.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "libminl2r/error.h"

static struct {
    struct shadow_trace *trace;
    struct shadow_fault fault;
    shadow_pause_fn *pause;
    void *pause_arg;
} shadow;

/* ---- Trace ----------------------------------------------------------------------- */

void shadow_record(struct shadow_trace *trace)
{
    shadow.trace = trace;
}

void shadow_trace_clear(struct shadow_trace *trace)
{
    trace->count = 0;
    trace->groups = trace->flushes = trace->fences = 0;
}

void shadow_trace_finish(struct shadow_trace *trace)
{
    free(trace->events);
    free(trace->mirror);
    *trace = (struct shadow_trace){0};
}

static struct shadow_event *make_room(struct shadow_trace *trace)
{
    if (trace->count == trace->capacity) {
        trace->capacity = trace->capacity ? trace->capacity * 2 : 1024;
        trace->events =
            realloc(trace->events, trace->capacity * sizeof(*trace->events));
        if (!trace->events) {
            fprintf(stderr, "no memory for a trace\n");
            exit(2);
        }
    }
    return &trace->events[trace->count++];
}

static void emit(struct shadow_event event)
{
    if (shadow.trace)
        *make_room(shadow.trace) = event;
}

void shadow_revert(const struct shadow_trace *trace, uint8_t *memory)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct shadow_event *e = &trace->events[i];

        if (e->kind == SHADOW_STORE || e->kind == SHADOW_STREAM)
            memcpy(memory + e->at, &e->before, e->size);
    }
}

/* ---- Bugs on demand -------------------------------------------------------------- */

void shadow_inject(struct shadow_fault fault)
{
    shadow.fault = fault;
}

static bool has_bug(enum shadow_bug bug, uint32_t call)
{
    return shadow.fault.bug == bug && shadow.fault.nth == call &&
           shadow.fault.trace == shadow.trace;
}

/* ---- Pauses ---------------------------------------------------------------------- */

void shadow_on_pause(shadow_pause_fn *call, void *arg)
{
    shadow.pause = call;
    shadow.pause_arg = arg;
}

void shadow_pause(void)
{
    if (shadow.pause)
        shadow.pause(shadow.pause_arg);
}

/* ---- Mapping --------------------------------------------------------------------- */

int pm_map(struct pm *pm, int fd, uint64_t size, bool writable)
{
    (void)fd;
    *pm = (struct pm){.size = size, .writable = writable};
    return error_set(ENOTSUP, "the shadow door maps no files");
}

void pm_unmap(struct pm *pm)
{
    pm->base = NULL;
}

void pm_adopt(struct pm *pm, const void *base, uint64_t size, enum minl2r_medium medium)
{
    *pm = (struct pm){
        .base = base,
        .size = size,
        .medium = medium,
        .reason = "memory of a test",
        .flush_method = "shadow",
        .writable = true,
    };
}

/* ---- Stores ---------------------------------------------------------------------- */

static uint8_t *writable(const void *ptr)
{
    return (uint8_t *)(uintptr_t)ptr;
}

static uintptr_t line_of(const void *ptr)
{
    return (uintptr_t)ptr & ~(uintptr_t)(PM_LINE - 1);
}

/* The largest naturally aligned piece at `dst` that `size` bytes hold. */
static size_t piece_at(const uint8_t *dst, size_t size)
{
    size_t piece = 8;

    while (((uintptr_t)dst & (piece - 1)) != 0 || piece > size)
        piece /= 2;
    return piece;
}

static void store_piece(const struct pm *pm, struct shadow_event like, uint8_t *dst,
                        const uint8_t *src)
{
    like.at = (uint64_t)(dst - pm->base);
    memcpy(&like.before, dst, like.size);
    memcpy(&like.after, src, like.size);
    memcpy(dst, src, like.size);
    if (shadow.trace && shadow.trace->mirror)
        memcpy(shadow.trace->mirror + like.at, src, like.size);
    emit(like);
}

static uint32_t next_group(void)
{
    return shadow.trace ? shadow.trace->groups++ : 0;
}

static void store(const struct pm *pm, uintptr_t phase, enum shadow_kind kind,
                  const void *dst, const void *src, size_t size)
{
    uint8_t *to = writable(dst);
    const uint8_t *from = src;
    struct shadow_event like = {
        .kind = (uint8_t)kind, .phase = phase, .group = next_group()};

    while (size > 0) {
        size_t piece = piece_at(to, size);

        like.size = (uint8_t)piece;
        store_piece(pm, like, to, from);
        to += piece;
        from += piece;
        size -= piece;
    }
}

void shadow_store(const struct pm *pm, const void *dst, const void *src, size_t size)
{
    store(pm, 0, SHADOW_STORE, dst, src, size);
}

/* ---- Stores past the door -------------------------------------------------------- */

static void catch_up_line(const struct pm *pm, uint64_t at)
{
    uint8_t *mirror = shadow.trace->mirror;
    uint32_t group = next_group();

    for (uint64_t word = at; word < at + PM_LINE; word += 8) {
        struct shadow_event event = {
            .kind = SHADOW_STORE, .size = 8, .group = group, .at = word};

        memcpy(&event.before, mirror + word, 8);
        memcpy(&event.after, pm->base + word, 8);
        if (event.before == event.after)
            continue;
        memcpy(mirror + word, pm->base + word, 8);
        emit(event);
    }
}

static void catch_up(const struct pm *pm, uint64_t start, uint64_t end)
{
    if (!shadow.trace || !shadow.trace->mirror)
        return;
    for (uint64_t at = start; at < end; at += PM_LINE)
        if (memcmp(pm->base + at, shadow.trace->mirror + at, PM_LINE) != 0)
            catch_up_line(pm, at);
}

void shadow_catch_up(const struct pm *pm)
{
    catch_up(pm, 0, pm->size);
}

void shadow_mark(const struct pm *pm, uint64_t value)
{
    shadow_catch_up(pm);
    emit((struct shadow_event){.kind = SHADOW_MARK, .after = value});
}

/* ---- Stores through the door ----------------------------------------------------- */

/* As on hardware: a line flushed last has to be flushed again. */
static void note_store(struct pm_phase *phase, const void *dst, size_t size)
{
    uintptr_t start = (uintptr_t)dst;

    phase->stats->pm_bytes += size;
    if (phase->last_line < start + size && start < phase->last_line + PM_LINE)
        phase->last_line = 0;
}

void pm_store(struct pm_phase *phase, const void *dst, const void *src, size_t size)
{
    store(phase->pm, (uintptr_t)phase, SHADOW_STORE, dst, src, size);
    note_store(phase, dst, size);
}

void pm_zero(struct pm_phase *phase, const void *dst, size_t size)
{
    static const uint8_t zeros[PM_LINE];
    const uint8_t *at = dst;

    while (size > 0) {
        size_t piece = size < sizeof(zeros) ? size : sizeof(zeros);

        pm_store(phase, at, zeros, piece);
        at += piece;
        size -= piece;
    }
}

void pm_store_piece(struct pm_phase *phase, const void *dst, const void *src,
                    size_t size)
{
    pm_store(phase, dst, src, size);
}

void pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    uint64_t value = *word | bits;

    pm_store(phase, word, &value, sizeof(value));
}

void pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    uint64_t value = *word & bits;

    pm_store(phase, word, &value, sizeof(value));
}

void pm_store_nt(struct pm_phase *phase, const void *dst, const void *src, size_t size)
{
    enum shadow_kind kind = SHADOW_STREAM;

    if (phase->pm->medium == MINL2R_EADR ||
        (shadow.trace && has_bug(SHADOW_LOSE_STREAM, shadow.trace->groups)))
        kind = SHADOW_STORE;
    store(phase->pm, (uintptr_t)phase, kind, dst, src, size);
    phase->stats->pm_bytes += size;
    phase->pending |= size > 0;
}

/* ---- Flushes and fences ---------------------------------------------------------- */

static void flush_lines(struct pm_phase *phase, uintptr_t line, uintptr_t end,
                        uint32_t call)
{
    uintptr_t base = (uintptr_t)phase->pm->base;

    if (has_bug(SHADOW_LOSE_FLUSH, call))
        return;
    if (has_bug(SHADOW_LOSE_FIRST_LINE, call))
        line += PM_LINE;
    if (has_bug(SHADOW_LOSE_LAST_LINE, call))
        end -= PM_LINE;
    for (; line < end; line += PM_LINE)
        if (!has_bug(SHADOW_LOSE_LINE, (uint32_t)(line - base)))
            emit((struct shadow_event){.kind = SHADOW_FLUSH,
                                       .phase = (uintptr_t)phase,
                                       .call = call,
                                       .at = line - base});
}

/* What is flushed already is not flushed again, as on hardware: that is pm.h's promise
 * to be tested too. */
void pm_flush(struct pm_phase *phase, const void *ptr, size_t size)
{
    if (size == 0)
        return;
    phase->pending = true;
    if (phase->pm->medium == MINL2R_EADR)
        return;
    uintptr_t line = line_of(ptr);
    uintptr_t end = line_of((const uint8_t *)ptr + size - 1) + PM_LINE;

    catch_up(phase->pm, line - (uintptr_t)phase->pm->base,
             end - (uintptr_t)phase->pm->base);
    if (line == phase->last_line)
        line += PM_LINE;
    if (line == end)
        return;
    flush_lines(phase, line, end, shadow.trace ? shadow.trace->flushes++ : 0);
    phase->stats->lines_flushed += (end - line) / PM_LINE;
    phase->last_line = end - PM_LINE;
}

int pm_fence(struct pm_phase *phase)
{
    if (!phase->pending)
        return 0;
    shadow_pause();
    shadow_catch_up(phase->pm);
    phase->pending = false;
    phase->last_line = 0;
    uint32_t call = shadow.trace ? shadow.trace->fences++ : 0;

    if (has_bug(SHADOW_FAIL_FENCE, call))
        return error_set(EIO, "the shadow door fails fence %u", call);
    if (!has_bug(SHADOW_LOSE_FENCE, call))
        emit((struct shadow_event){
            .kind = SHADOW_FENCE, .phase = (uintptr_t)phase, .call = call});
    phase->stats->fences++;
    return 0;
}

uint64_t pm_hash(const void *data, size_t size, uint64_t seed)
{
    return XXH3_64bits(data, size) ^ seed;
}
