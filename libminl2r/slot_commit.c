/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/slot_commit.h"

#include <string.h>

#include "libminl2r/live.h"
#include "libminl2r/watch.h"

/*
 * Bytes in place: logging the new ones, too, costs more than the fence that it saves
 * where they are more. Their records have to fit into one batch.
 */
#define BYTES_MAX 1024
#define CHANGES_SIZE_MAX (PM_BATCH_SIZE_MAX - sizeof(struct pm_batch))

/* Swaps that free a block, of one commit. */
#define FREED_MAX 256

/* So many blocks in quarantine are taken out of it by the next slot commit. */
#define QUARANTINE_LONG 64

/* ---- Which transactions ---------------------------------------------------------- */

static bool plan_swap(struct slot_plan *plan, const struct block_write *write)
{
    struct interval slot = {write->slot, write->slot + sizeof(write->slot)};

    plan->swaps_size += sizeof(struct pm_record) + sizeof(struct pm_swap);
    plan->freed_count += write->block != 0;
    plan->slots = interval_join(plan->slots, slot);
    return !write->slot_is_own && plan->freed_count <= FREED_MAX;
}

static bool plan_bytes(struct slot_plan *plan, const struct block_write *write)
{
    for (uint32_t i = 0; i < write->extent_count && plan->byte_count <= BYTES_MAX;
         i++) {
        const struct extent *e = &write->extents[i];
        struct interval range = {write->block + e->start, write->block + extent_end(e)};

        plan->byte_count += e->size;
        plan->changes_size += LOG_RECORD_SIZE(2 * LOG_PADDED(e->size));
        owned_add(&plan->bytes, range);
    }
    return plan->byte_count <= BYTES_MAX && plan->changes_size <= CHANGES_SIZE_MAX;
}

bool slot_commit_plan_changes(const struct minl2r_tx *tx, struct slot_plan *plan)
{
    const struct writeset *ws = &tx->writes;

    plan->changes_size = plan->swaps_size = 0;
    plan->byte_count = plan->freed_count = plan->bytes.count = 0;
    plan->slots = (struct interval){0};
    if (tx->cursor.index > 0 || ws->allocs.count > 0 || ws->frees.count > 0 ||
        ws->segments.count > 0)
        return false;
    if (ws->in_place && !tx->pool->prove)
        return false;
    for (const struct block_write *w = ws->swaps; w; w = w->next_change)
        if (!plan_swap(plan, w))
            return false;
    for (const struct block_write *w = ws->in_place; w; w = w->next_change)
        if (!plan_bytes(plan, w))
            return false;
    return log_space_needed(plan->changes_size + plan->swaps_size) <=
           log_part_space(tx->pool->geo.log_size);
}

/* ---- Commit ---------------------------------------------------------------------- */

/* I4: no generation is more than PM_LAG_MAX above what is settled for sure. */
static void keep_up(struct minl2r_tx *tx)
{
    const struct lane *lane = tx->lane;
    const uint64_t *settled = &pool_lane(tx->pool, lane->index)->settled;

    if (lane->generation - lane->settled < PM_LAG_MAX - 1)
        return;
    pm_max64(&tx->phase, settled, lane->generation);
    pm_flush(&tx->phase, settled, sizeof(*settled));
}

static void settle_owners(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    struct settling *settling = &tx->writes.settling;

    live_settle_bytes(tx->pool, tx->lane, plan->slots, &tx->phase, settling);
    for (uint32_t i = 0; i < plan->bytes.count; i++)
        live_settle_word(tx->pool, tx->lane, plan->bytes.ranges[i], &tx->phase,
                         settling);
}

/* Where blocks are swapped, whose bits have to be flushed, streaming gains nothing. */
static void log_bytes(struct log_writer *writer, struct block_write *write,
                      bool may_stream)
{
    static const uint8_t zeros[BYTES_MAX];
    bool past_cache = may_stream && !write->slots;

    for (uint32_t i = 0; i < write->extent_count; i++) {
        struct extent *e = &write->extents[i];
        uint64_t target = write->block + e->start;
        uint32_t size = e->size;

        e->unchanged = commit_has_bytes(pool_at(writer->pool, target), e->bytes, size);
        past_cache &= e->bytes && !e->unchanged && commit_streams_well(e);
        if (!e->unchanged)
            log_append_change(writer, target, e->bytes ? e->bytes : zeros, size);
    }
    write->past_cache = past_cache;
}

static int log_changes(struct minl2r_tx *tx)
{
    struct log_writer writer = commit_begin_log(tx);

    for (struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        log_bytes(&writer, w, !tx->writes.swaps);
    for (const struct block_write *w = tx->writes.swaps; w; w = w->next_change)
        log_append_slot(&writer, w->slot, (struct pm_swap){w->block, w->fresh});
    log_end(&writer);
    return commit_log_result(tx, &writer);
}

/* Up to F1. */
static int log_and_store_fresh(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    uint32_t own = alloc_own_quarantine(tx->pool);
    bool ends_quarantine = alloc_quarantine_count(tx->pool, own) >= QUARANTINE_LONG;
    uint64_t mark = alloc_quarantine_mark(tx->pool, own);

    if (plan->byte_count > 0)
        commit_prefetch_in_place(tx);
    keep_up(tx);
    if (ends_quarantine)
        live_settle_all(tx->pool, tx->lane, &tx->phase, &tx->writes.settling);
    else
        settle_owners(tx, plan);
    int result = log_changes(tx);

    if (result < 0)
        return result;
    commit_store_fresh(tx);
    result = commit_order(tx); /* I1, I2, and who owned what changes is settled */
    if (result < 0)
        return result;
    if (tx->lane->generation - tx->lane->settled >= PM_LAG_MAX - 1)
        tx->lane->settled = tx->lane->generation;
    live_forget(tx->pool, &tx->writes.settling);
    /* I5: by a new log; without one, what the lane left live is live still. */
    if (ends_quarantine && tx->cursor.index > 0)
        alloc_end_quarantine(tx->pool, own, mark);
    return 0;
}

/* I5: what this commit freed stays busy while a live generation may name it. */
static int quarantine_freed(struct minl2r_tx *tx)
{
    int result = 0;

    for (const struct block_write *w = tx->writes.swaps; w; w = w->next_change)
        if (w->block)
            while (result == 0 && !alloc_quarantine(tx->pool, w->block))
                result =
                    live_end_quarantine(tx->pool, &tx->phase, &tx->writes.settling);
    return result;
}

int slot_commit(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    int result = log_and_store_fresh(tx, plan);

    if (result == 0) {
        watch_remember(tx->pool, tx->lane, tx->cursor.generation, &tx->writes);
        if (tx->writes.swaps)
            alloc_prefetch_next(tx->pool); /* while F2 drains */
        result = commit_store_in_place(tx);
    }
    if (result < 0 || tx->cursor.index == 0) /* every byte was there already */
        return result;
    tx->lane->generation = tx->cursor.generation;
    live_enter(tx->pool, tx->lane, tx->cursor.generation, plan->slots, &plan->bytes);
    tx->freed_in_quarantine = true;
    return quarantine_freed(tx);
}

/* ---- Recovery -------------------------------------------------------------------- */

struct slot_recovery {
    struct minl2r_pool *pool;
    struct pm_phase *phase;
    struct minl2r_recovery *done;

    /* Of batch 0. */
    bool has_bytes;
    bool all_bytes_new;
    bool first_slot_is_old;
};

static uint64_t slot_value(const struct slot_recovery *r, uint64_t slot)
{
    return pm_load64(pool_at(r->pool, slot));
}

static const uint8_t *new_bytes(const struct pm_record *record, const void *payload)
{
    return (const uint8_t *)payload + LOG_PADDED(record->length);
}

/* Newest first: the first slot comes last. */
static void look_at_record(void *arg, const struct pm_record *record,
                           const void *payload)
{
    struct slot_recovery *r = arg;
    const struct pm_swap *swap = payload;

    if (record->type == PM_SLOT) {
        r->first_slot_is_old = slot_value(r, record->target) == swap->old_block;
        return;
    }
    r->has_bytes = true;
    if (memcmp(pool_at(r->pool, record->target), new_bytes(record, payload),
               record->length) != 0)
        r->all_bytes_new = false;
}

static void put_slot(const struct slot_recovery *r, uint64_t slot, uint64_t block,
                     uint64_t unused)
{
    struct block_run used = {block, 1}, free = {unused, 1};

    pm_store_piece(r->phase, pool_at(r->pool, slot), &block, sizeof(block));
    pm_flush(r->phase, pool_at(r->pool, slot), sizeof(block));
    if (block) {
        alloc_publish(r->pool, r->phase, used);
        alloc_flush(r->pool, r->phase, used);
    }
    if (unused) {
        alloc_unpublish(r->pool, r->phase, free);
        alloc_flush(r->pool, r->phase, free);
    }
}

static void finish_slot(const struct slot_recovery *r, uint64_t slot,
                        const struct pm_swap *swap)
{
    uint64_t value = slot_value(r, slot);
    struct block_run holder = {block_start(&r->pool->geo, slot), 1};

    if ((value == swap->old_block || value == swap->new_block) &&
        alloc_is_allocated(r->pool, holder))
        put_slot(r, slot, swap->new_block, swap->old_block);
    else
        pm_flush(r->phase, pool_at(r->pool, slot), sizeof(value));
}

/* I6: stored once more, though they are there. A killed process may have streamed them
 * without a fence: no flush covers that. */
static void put_bytes(const struct slot_recovery *r, const struct pm_record *record,
                      const uint8_t *bytes)
{
    const void *target = pool_at(r->pool, record->target);

    pm_store(r->phase, target, bytes, record->length);
    pm_flush(r->phase, target, record->length);
}

static void finish_record(void *arg, const struct pm_record *record,
                          const void *payload)
{
    const struct slot_recovery *r = arg;

    if (record->type == PM_SLOT)
        finish_slot(r, record->target, payload);
    else
        put_bytes(r, record, new_bytes(record, payload));
}

static void undo_record(void *arg, const struct pm_record *record, const void *payload)
{
    const struct slot_recovery *r = arg;
    const struct pm_swap *swap = payload;

    r->done->records++;
    r->done->bytes += record->length;
    if (record->type == PM_SLOT) {
        r->done->blocks += swap->old_block ? 2 : 1;
        put_slot(r, record->target, swap->old_block, swap->new_block);
        return;
    }
    put_bytes(r, record, payload);
}

void slot_commit_recover(struct minl2r_pool *pool, uint32_t lane,
                         const struct log_live *live, uint8_t *scratch,
                         struct pm_phase *phase, struct minl2r_recovery *done)
{
    struct slot_recovery r = {pool, phase, done, .all_bytes_new = true};
    uint64_t offset = live->last;

    log_visit_batch(pool, pool_log_offset(pool, lane), scratch, look_at_record, &r);
    bool committed = r.has_bytes ? r.all_bytes_new : !r.first_slot_is_old;

    for (; offset != 0; done->batches += !committed)
        offset = log_visit_batch(pool, offset, scratch,
                                 committed ? finish_record : undo_record, &r);
    done->lanes += !committed;
}
