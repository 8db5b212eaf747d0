/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/lane.h"

#include <errno.h>
#include <stdlib.h>

#include "libminl2r/error.h"
#include "libminl2r/thread.h"

static _Thread_local uint32_t lanes_held; /* in all pools */

int lanes_attach(struct minl2r_pool *pool)
{
    uint32_t count = pool->geo.lane_count;

    pool->lanes = aligned_alloc(_Alignof(struct lane), count * sizeof(struct lane));
    if (!pool->lanes)
        return error_set(ENOMEM, "no memory for %u lanes", count);
    for (uint32_t i = 0; i < count; i++)
        pool->lanes[i] = (struct lane){
            .index = i, .settled = pm_load64(&pool_lane(pool, i)->settled)};
    pthread_mutex_init(&pool->lane_lock, NULL);
    pthread_cond_init(&pool->lane_freed, NULL);
    return 0;
}

void lanes_detach(struct minl2r_pool *pool)
{
    if (!pool->lanes)
        return;
    pthread_cond_destroy(&pool->lane_freed);
    pthread_mutex_destroy(&pool->lane_lock);
    free(pool->lanes);
    pool->lanes = NULL;
}

static bool take(struct lane *lane)
{
    if (__atomic_load_n(&lane->busy, __ATOMIC_RELAXED) ||
        __atomic_exchange_n(&lane->busy, 1, __ATOMIC_ACQUIRE))
        return false;
    lanes_held++;
    return true;
}

/* One of the first `count` lanes. Each thread begins its search at a lane of its own.
 */
static struct lane *try_first(struct minl2r_pool *pool, uint32_t count)
{
    uint32_t start = thread_number() % count;

    for (uint32_t i = 0; i < count; i++) {
        uint32_t index = start + i < count ? start + i : start + i - count;

        if (take(&pool->lanes[index]))
            return &pool->lanes[index];
    }
    return NULL;
}

/*
 * A releaser looks at the waiters after it freed its lane, a waiter looks at the lanes
 * after it was counted, both sequentially consistent: one of them sees the other.
 */
static struct lane *wait_first(struct minl2r_pool *pool, uint32_t count)
{
    struct lane *lane = try_first(pool, count);

    if (lane)
        return lane;
    pthread_mutex_lock(&pool->lane_lock);
    __atomic_fetch_add(&pool->lane_waiters, 1, __ATOMIC_SEQ_CST);
    while (!(lane = try_first(pool, count)))
        pthread_cond_wait(&pool->lane_freed, &pool->lane_lock);
    __atomic_fetch_sub(&pool->lane_waiters, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&pool->lane_lock);
    return lane;
}

struct lane *lane_try(struct minl2r_pool *pool)
{
    return try_first(pool, pool->geo.lane_count - 1);
}

struct lane *lane_wait(struct minl2r_pool *pool)
{
    struct lane *lane = lane_try(pool);

    return lane || lanes_held > 0 ? lane : wait_first(pool, pool->geo.lane_count - 1);
}

/* The kept lane comes last, so that snapshots find it needed as rarely as can be. */
struct lane *lane_wait_commit(struct minl2r_pool *pool)
{
    struct lane *lane = lane_try(pool);

    return lane ? lane : wait_first(pool, pool->geo.lane_count);
}

void lane_release(struct minl2r_pool *pool, struct lane *lane)
{
    lanes_held--;
    __atomic_store_n(&lane->busy, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&pool->lane_waiters, __ATOMIC_SEQ_CST) == 0)
        return;
    pthread_mutex_lock(&pool->lane_lock);
    pthread_cond_broadcast(&pool->lane_freed);
    pthread_mutex_unlock(&pool->lane_lock);
}

void lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                        uint64_t generation, struct pm_phase *phase)
{
    const struct pm_lane *media = pool_lane(pool, lane->index);
    const uint64_t line[8] = {generation}; /* a whole line streams faster than a word */

    _Static_assert(sizeof(line) == offsetof(struct pm_lane, word),
                   "settled has a line");
    lane->settled = generation;
    pm_store_nt(phase, &media->settled, line, sizeof(line));
}

int lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                struct pm_phase *phase)
{
    if (generation <= lane->settled)
        return 0; /* I4 */
    lane_store_settled(pool, lane, generation, phase);
    return pm_fence(phase); /* I3: settled, then what follows the caller's return */
}

void lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                    struct pm_phase *phase, uint64_t word)
{
    const uint64_t *note = &pool_lane(pool, lane->index)->word;

    if (*note != word)
        pm_store_piece(phase, note, &word, sizeof(word));
}
