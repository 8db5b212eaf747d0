/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Recovery (I6). Every lane has at most one generation that is live. If its log holds
 * valid batches, they are undone, or, of a slot commit, finished:
 *
 *   validate  all lanes' logs, before the first store
 *   undo      newest record first; every range, slot and bit is flushed even where it
 *             has its value already: a killed process leaves caches that a later power
 *             loss does not
 *   fence     what was undone, then
 *   settle    every lane, undone or not, above all that can have been tried, which is
 *             log_live.newest at most: a torn batch, or later batches whose first one
 *             did not arrive, must never be taken for those of a new transaction of the
 *             same number
 *   fence     settled, then the pool's use
 *
 * A crash in between leaves the logs as they were, and the same is undone again.
 */
#include "libminl2r/recovery.h"

#include <errno.h>
#include <stdlib.h>

#include "libminl2r/alloc.h"
#include "libminl2r/clock.h"
#include "libminl2r/error.h"
#include "libminl2r/lane.h"
#include "libminl2r/log.h"
#include "libminl2r/slot_commit.h"

/* ---- Undo ------------------------------------------------------------------------ */

struct undo {
    struct minl2r_pool *pool;
    struct pm_phase *phase;
    struct minl2r_recovery *done;
};

static void undo_bytes(const struct undo *undo, const struct pm_record *record,
                       const void *bytes)
{
    const void *target = pool_at(undo->pool, record->target);

    pm_store(undo->phase, target, bytes, record->length);
    pm_flush(undo->phase, target, record->length);
    undo->done->bytes += record->length;
}

static void undo_alloc(const struct undo *undo, struct block_run run)
{
    alloc_unpublish(undo->pool, undo->phase, run);
    alloc_flush(undo->pool, undo->phase, run);
    undo->done->blocks += run.count;
}

static void undo_free(const struct undo *undo, struct block_run run)
{
    alloc_publish(undo->pool, undo->phase, run);
    alloc_flush(undo->pool, undo->phase, run);
    undo->done->blocks += run.count;
}

static void undo_swap(const struct undo *undo, uint64_t slot_offset,
                      const struct pm_swap *swap)
{
    const void *slot = pool_at(undo->pool, slot_offset);

    pm_store_piece(undo->phase, slot, &swap->old_block, sizeof(swap->old_block));
    pm_flush(undo->phase, slot, sizeof(swap->old_block));
    undo->done->bytes += sizeof(swap->old_block);
    undo_alloc(undo, (struct block_run){swap->new_block, 1});
    if (swap->old_block)
        undo_free(undo, (struct block_run){swap->old_block, 1});
}

static void undo_record(void *arg, const struct pm_record *record, const void *payload)
{
    const struct undo *undo = arg;

    undo->done->records++;
    switch (record->type) {
    case PM_UNDO:
        undo_bytes(undo, record, payload);
        break;
    case PM_ALLOC:
        undo_alloc(undo, (struct block_run){record->target, record->length});
        break;
    case PM_FREE:
        undo_free(undo, (struct block_run){record->target, record->length});
        break;
    case PM_SWAP:
        undo_swap(undo, record->target, payload);
        break;
    default: /* PM_LINK: segments were never marked on media */
        break;
    }
}

void recovery_undo(struct minl2r_pool *pool, uint64_t last, uint8_t *scratch,
                   struct pm_phase *phase, struct minl2r_recovery *done)
{
    struct undo undo = {pool, phase, done};

    done->lanes++;
    for (uint64_t offset = last; offset != 0; done->batches++)
        offset = log_visit_batch(pool, offset, scratch, undo_record, &undo);
}

/* ---- Recovery of a pool ---------------------------------------------------------- */

static int validate_lanes(struct minl2r_pool *pool, struct log_live *live,
                          uint8_t *scratch)
{
    int result = 0;

    for (uint32_t i = 0; i < pool->geo.lane_count && result == 0; i++)
        result = log_validate(pool, i, &live[i]);
    for (uint32_t i = 0; i < pool->geo.lane_count && result == 0; i++)
        result = log_validate_targets(pool, i, &live[i], scratch);
    return result;
}

/*
 * A word stored without a log by a killed process may be in the cache only, or on its
 * way past it, which no flush waits for: it is stored once more. See lane.h.
 */
static void keep_noted_word(const struct minl2r_pool *pool, uint32_t lane,
                            struct pm_phase *phase)
{
    uint64_t offset = pool_lane(pool, lane)->word;

    if (!is_zone_word(&pool->geo, offset))
        return;
    uint64_t word = pm_load64(pool_at(pool, offset));

    pm_store_piece(phase, pool_at(pool, offset), &word, sizeof(word));
    pm_flush(phase, pool_at(pool, offset), sizeof(word));
}

/* I6: who formatted the pool may have been killed before this was durable. */
static void flush_magic(const struct minl2r_pool *pool, struct pm_phase *phase)
{
    pm_flush(phase, pool->pm.base, sizeof(pool_super(pool)->magic));
}

static bool any_is_live(const struct minl2r_pool *pool, const struct log_live *live)
{
    for (uint32_t i = 0; i < pool->geo.lane_count; i++)
        if (live[i].last != 0)
            return true;
    return false;
}

static int undo_lanes(struct minl2r_pool *pool, const struct log_live *live,
                      uint8_t *scratch, struct pm_phase *phase)
{
    for (uint32_t i = 0; i < pool->geo.lane_count; i++) {
        keep_noted_word(pool, i, phase);
        if (live[i].of_slot_commit)
            slot_commit_recover(pool, i, &live[i], scratch, phase, &pool->recovery);
        else if (live[i].last != 0)
            recovery_undo(pool, live[i].last, scratch, phase, &pool->recovery);
    }
    if (!any_is_live(pool, live))
        return 0;
    return pm_fence(phase); /* I6: what was undone, then its generation settled */
}

static int settle_lanes(struct minl2r_pool *pool, const struct log_live *live,
                        struct pm_phase *phase)
{
    flush_magic(pool, phase);
    for (uint32_t i = 0; i < pool->geo.lane_count; i++)
        lane_store_settled(pool, &pool->lanes[i], live[i].newest, phase);
    /*
     * I4: generations that may have been tried, then new ones.
     * I6: the pool, then what is told of it.
     */
    return pm_fence(phase);
}

int recovery_run(struct minl2r_pool *pool)
{
    struct pm_phase phase = {.pm = &pool->pm, .stats = &pool->stats};
    struct log_live *live = calloc(pool->geo.lane_count, sizeof(*live));
    uint8_t *scratch = malloc(PM_BATCH_SIZE_MAX);
    uint64_t begin_ns = clock_now_ns();
    int result = live && scratch ? validate_lanes(pool, live, scratch)
                                 : error_set(ENOMEM, "no memory for recovery");

    if (result == 0)
        result = undo_lanes(pool, live, scratch, &phase);
    if (result == 0)
        result = settle_lanes(pool, live, &phase);
    if (result == -EIO)
        pool_poison(pool);
    if (result == 0 && any_is_live(pool, live))
        alloc_reload(pool);
    pool->recovery.ns = clock_now_ns() - begin_ns;
    free(scratch);
    free(live);
    return result;
}
