/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/lane.h"

#include <errno.h>
#include <stdlib.h>

#include "libminl2r/error.h"
#include "libminl2r/spin.h"
#include "libminl2r/thread.h"

static _Thread_local uint32_t lanes_held; /* in all pools */

int lanes_attach(struct minl2r_pool *pool)
{
    uint32_t count = pool->geo.lane_count;

    pool->lanes = aligned_alloc(_Alignof(struct lane), count * sizeof(struct lane));
    if (!pool->lanes)
        return error_set(ENOMEM, "no memory for %u lanes", count);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t settled = pm_load64(&pool_lane(pool, i)->settled);

        pool->lanes[i] =
            (struct lane){.index = i, .settled = settled, .generation = settled};
    }
    return 0;
}

void lanes_detach(struct minl2r_pool *pool)
{
    for (uint32_t i = 0; pool->lanes && i < pool->geo.lane_count; i++)
        free(pool->lanes[i].listed);
    free(pool->lanes);
    pool->lanes = NULL;
}

static bool take(struct lane *lane)
{
    if (!spin_try(&lane->busy))
        return false;
    lanes_held++;
    return true;
}

/* One of the first `count` lanes. Each thread begins its search at a lane of its own.
 */
static struct lane *try_first(struct minl2r_pool *pool, uint32_t count)
{
    uint32_t lane_count = pool->geo.lane_count;
    uint32_t index = thread_number() % lane_count;

    for (uint32_t i = 0; i < lane_count; i++) {
        if (index < count && take(&pool->lanes[index]))
            return &pool->lanes[index];
        index = index + 1 < lane_count ? index + 1 : 0;
    }
    return NULL;
}

static struct lane *wait_first(struct minl2r_pool *pool, uint32_t count)
{
    struct lane *lane;

    for (uint32_t round = 0; !(lane = try_first(pool, count)); round++)
        spin_wait(round);
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

void lane_release(struct lane *lane)
{
    lanes_held--;
    spin_unlock(&lane->busy);
}

void lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                        uint64_t generation, struct pm_phase *phase)
{
    const struct pm_lane *media = pool_lane(pool, lane->index);
    const uint64_t line[8] = {generation}; /* a whole line streams faster than a word */

    _Static_assert(sizeof(line) == offsetof(struct pm_lane, word),
                   "settled has a line");
    lane->settled = generation;
    lane_set_generation(lane, generation);
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

    if (pm_load64(note) != word)
        pm_store_piece(phase, note, &word, sizeof(word));
}
