/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/watch.h"

#include <errno.h>
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/log.h"
#include "libminl2r/spin.h"

typedef unsigned long long ull;

#define FRAMES_MAX 24
#define SHOWN_MAX 16 /* bytes */

/* Of a lane. */
struct watch {
    struct spin busy;
    uint64_t generation; /* whose changes these are; 0: none that have to be there */
    uint32_t size;
    int frame_count;
    void *frames[FRAMES_MAX]; /* who committed them */
    /* PM_CHANGEs, each with its new bytes behind it. */
    _Alignas(struct pm_record) uint8_t changes[2 * PM_BATCH_SIZE_MAX];
};

/* ---- Saying it ------------------------------------------------------------------- */

static void show_frames(const char *what, void *const *frames, int count)
{
    dprintf(STDERR_FILENO, "  %s:\n", what);
    backtrace_symbols_fd(frames, count, STDERR_FILENO);
}

static void show_bytes(const char *what, const uint8_t *bytes, uint32_t size)
{
    char text[2 * SHOWN_MAX + 1] = "";

    for (uint32_t i = 0; i < size && i < SHOWN_MAX; i++)
        snprintf(text + (size_t)2 * i, 3, "%02x", bytes[i]);
    dprintf(STDERR_FILENO, "  %s: %s%s\n", what, text, size > SHOWN_MAX ? "..." : "");
}

/* ---- Comparing ------------------------------------------------------------------- */

static const uint8_t *old_bytes(const struct pm_record *change)
{
    return (const uint8_t *)(change + 1);
}

static const uint8_t *new_bytes(const struct pm_record *change)
{
    return old_bytes(change) + LOG_PADDED(change->length);
}

static const struct pm_record *next_change(const struct watch *watch,
                                           const struct pm_record *change)
{
    const uint8_t *next =
        change ? new_bytes(change) + LOG_PADDED(change->length) : watch->changes;

    return next < watch->changes + watch->size
               ? (const struct pm_record *)(const void *)next
               : NULL;
}

static void report_change(const struct minl2r_pool *pool, uint32_t lane,
                          const struct pm_record *change)
{
    const struct watch *watch = &pool->watch[lane];
    const uint8_t *found = pool_at(pool, change->target);
    uint32_t first = 0, end = change->length;

    while (found[first] == new_bytes(change)[first])
        first++;
    while (found[end - 1] == new_bytes(change)[end - 1])
        end--;
    dprintf(
        STDERR_FILENO,
        "minl2r: %s: %u bytes at offset %llu were changed past the library, of lane "
        "%u, generation %llu; a crash would undo that transaction\n",
        pool->path, end - first, (ull)change->target + first, lane,
        (ull)watch->generation);
    show_bytes("before it", old_bytes(change) + first, end - first);
    show_bytes("it stored", new_bytes(change) + first, end - first);
    show_bytes("found", found + first, end - first);
    show_frames("it was committed by", watch->frames, watch->frame_count);
    abort();
}

void watch_check_changes(struct minl2r_pool *pool, const struct lane *lane,
                         uint64_t generation)
{
    struct watch *watch = &pool->watch[lane->index];
    const struct pm_record *change = NULL;

    spin_lock(&watch->busy);
    while (watch->generation == generation && (change = next_change(watch, change)))
        if (memcmp(pool_at(pool, change->target), new_bytes(change), change->length) !=
            0)
            report_change(pool, lane->index, change);
    if (watch->generation == generation)
        watch->generation = 0;
    spin_unlock(&watch->busy);
}

static void remember_extent(const struct minl2r_pool *pool, struct watch *watch,
                            uint64_t target, const struct extent *extent)
{
    uint32_t length = extent->size;
    struct pm_record record = {PM_CHANGE, length, target};
    uint8_t *at = watch->changes + watch->size;

    memcpy(at, &record, sizeof(record));
    at += sizeof(record);
    memcpy(at, pool_at(pool, target), length);
    at += LOG_PADDED(length);
    if (extent->bytes)
        memcpy(at, extent->bytes, length);
    else
        memset(at, 0, length);
    watch->size += (uint32_t)LOG_RECORD_SIZE(2 * LOG_PADDED(length));
}

void watch_remember_changes(struct minl2r_pool *pool, const struct lane *lane,
                            uint64_t generation, const struct writeset *writes)
{
    struct watch *watch = &pool->watch[lane->index];

    spin_lock(&watch->busy);
    watch->generation = generation;
    watch->size = 0;
    watch->frame_count = backtrace(watch->frames, FRAMES_MAX);
    for (const struct block_write *w = writes->in_place; w; w = w->next_change)
        for (uint32_t i = 0; i < w->extent_count; i++)
            if (!w->extents[i].unchanged)
                remember_extent(pool, watch, w->block + w->extents[i].start,
                                &w->extents[i]);
    spin_unlock(&watch->busy);
}

/* ---- The mapping ----------------------------------------------------------------- */

/* Pools beyond these fault without a word. */
#define POOLS_MAX 16
static struct minl2r_pool *pools[POOLS_MAX]; /* atomic */
static pthread_once_t handler_once = PTHREAD_ONCE_INIT;
static struct sigaction action_before;

static struct minl2r_pool *pool_with(const void *address)
{
    for (int i = 0; i < POOLS_MAX; i++) {
        struct minl2r_pool *pool = __atomic_load_n(&pools[i], __ATOMIC_ACQUIRE);

        if (pool && pool_offset(pool, address) < pool->pm.size)
            return pool;
    }
    return NULL;
}

static void show_owner(struct minl2r_pool *pool, uint64_t offset, uint32_t lane)
{
    struct watch *watch = &pool->watch[lane];
    const struct pm_record *change = NULL;

    if (!spin_try(&watch->busy))
        return;
    while (watch->generation != 0 && (change = next_change(watch, change))) {
        if (offset < change->target || offset >= change->target + change->length)
            continue;
        dprintf(STDERR_FILENO,
                "  %u bytes at offset %llu are owned by lane %u, "
                "generation %llu\n",
                change->length, (ull)change->target, lane, (ull)watch->generation);
        show_frames("it was committed by", watch->frames, watch->frame_count);
    }
    spin_unlock(&watch->busy);
}

static void report_store(struct minl2r_pool *pool, uint64_t offset, void *const *frames,
                         int count)
{
    dprintf(STDERR_FILENO, "minl2r: %s: a store past the library at offset %llu\n",
            pool->path, (ull)offset);
    show_frames("it is done by", frames, count);
    for (uint32_t i = 0; i < pool->geo.lane_count; i++)
        show_owner(pool, offset, i);
}

/*
 * What is called is not safe in every handler, but this one is for a store to the pool:
 * its thread is in the program, or copies for it. The store is then tried again, and
 * faults as it would without us.
 */
static void on_fault(int number, siginfo_t *info, void *context)
{
    enum { HANDLERS = 2 }; /* this one, and the frame that calls it */
    struct minl2r_pool *pool = pool_with(info->si_addr);
    void *frames[FRAMES_MAX];
    int count = pool ? backtrace(frames, FRAMES_MAX) : 0;

    (void)number;
    (void)context;
    if (count > HANDLERS)
        report_store(pool, pool_offset(pool, info->si_addr), frames + HANDLERS,
                     count - HANDLERS);
    sigaction(SIGSEGV, &action_before, NULL);
}

static void install_handler(void)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frame;

    backtrace(&frame, 1); /* loads what it needs, which a handler must not */
    sigaction(SIGSEGV, &action, &action_before);
}

/* Puts `to` where `from` is in the list, if it is. */
static void exchange(struct minl2r_pool *from, struct minl2r_pool *to)
{
    for (int i = 0; i < POOLS_MAX; i++) {
        struct minl2r_pool *expected = from;

        if (__atomic_compare_exchange_n(&pools[i], &expected, to, false,
                                        __ATOMIC_RELEASE, __ATOMIC_RELAXED))
            return;
    }
}

int watch_start(struct minl2r_pool *pool)
{
    if (pool->pm.twin == 0)
        return 0;
    pool->watch = calloc(pool->geo.lane_count, sizeof(*pool->watch));
    if (!pool->watch)
        return error_set(ENOMEM, "no memory to watch the pool");
    pthread_once(&handler_once, install_handler);
    exchange(NULL, pool);
    return 0;
}

void watch_stop(struct minl2r_pool *pool)
{
    if (!pool->watch)
        return;
    exchange(pool, NULL);
    free(pool->watch);
    pool->watch = NULL;
}
