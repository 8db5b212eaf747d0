/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/slot_commit.h"

#include <string.h>

#include "libminl2r/copy.h"
#include "libminl2r/live.h"
#include "libminl2r/watch.h"

/* Records of bytes in place: one batch has a hash of all the new ones. */
#define CHANGES_SIZE_MAX (PM_BATCH_SIZE_MAX - sizeof(struct pm_batch))
#define CHANGES_MAX ((uint32_t)(CHANGES_SIZE_MAX / sizeof(struct pm_record)))

/* Swaps that free a block, of one commit. */
#define FREED_MAX 256

/* So many blocks in quarantine are taken out of it by the next slot commit. */
#define QUARANTINE_LONG 128

/* ---- Which transactions ---------------------------------------------------------- */

static struct interval slot_range(const struct swap *swap)
{
    return (struct interval){swap->slot, swap->slot + sizeof(swap->slot)};
}

static struct interval extent_range(const struct block_write *write,
                                    const struct extent *e)
{
    return (struct interval){write->block + e->start, write->block + extent_end(e)};
}

static struct interval block_range(const struct minl2r_pool *pool, struct block_run run)
{
    return (struct interval){run.offset,
                             run.offset + (run.count << pool->geo.block_shift)};
}

static void plan_alloc(const struct minl2r_pool *pool, struct slot_plan *plan,
                       struct block_run run)
{
    plan->allocs_size += sizeof(struct pm_record);
    plan->blocks = interval_join(plan->blocks, block_range(pool, run));
}

/*
 * A slot in memory of its own is fresh bytes: it tells nothing, and frees nothing here.
 */
static bool plan_own_swaps(const struct minl2r_tx *tx, struct slot_plan *plan)
{
    const struct swaps *swaps = &tx->writes.swaps;

    plan->slots = (struct interval){0};
    for (uint32_t i = 0; i < swaps->count; i++) {
        const struct swap *swap = &swaps->list[i];

        if (!slot_is_own(swap))
            plan->slots = interval_join(plan->slots, slot_range(swap));
        else if (swap->block)
            return false;
        else
            plan_alloc(tx->pool, plan, (struct block_run){swap->fresh, 1});
    }
    return true;
}

static bool plan_swaps(const struct minl2r_tx *tx, struct slot_plan *plan)
{
    const struct swaps *swaps = &tx->writes.swaps;

    plan->swaps_size = (swaps->count - swaps->own) * (uint32_t)sizeof(struct swap);
    plan->slots = swaps->slots;
    return swaps->freed <= FREED_MAX && (swaps->own == 0 || plan_own_swaps(tx, plan));
}

static bool plan_bytes(struct slot_plan *plan, const struct block_write *write)
{
    uint32_t count = write->extent_count, size = 0;
    struct interval rest = {0}; /* joined in registers */

    for (uint32_t i = 0; i < count && size <= CHANGES_SIZE_MAX; i++) {
        const struct extent *e = &write->extents[i];
        struct interval range = extent_range(write, e);

        size += e->size;
        if (plan->bytes.count < OWNED_MAX)
            owned_add(&plan->bytes, range);
        else
            rest = interval_join(rest, range);
    }
    if (rest.low < rest.high)
        owned_add(&plan->bytes, rest);
    plan->changes_size += size + count * (LOG_RECORD_SIZE(1) - 1); /* at most */
    return plan->changes_size <= CHANGES_SIZE_MAX;
}

/* Do bytes change in place at all? */
static bool changes_bytes(const struct minl2r_tx *tx)
{
    for (const struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        for (uint32_t i = 0; i < w->extent_count; i++) {
            const struct extent *e = &w->extents[i];

            if (!commit_has_bytes(pool_at(tx->pool, w->block + e->start), e->bytes,
                                  e->size))
                return true;
        }
    return false;
}

static bool plan_allocs(const struct minl2r_tx *tx, struct slot_plan *plan)
{
    const struct run_list *allocs = &tx->writes.allocs;

    for (uint32_t i = 0; i < allocs->count; i++)
        if (allocs->runs[i].count > 0)
            plan_alloc(tx->pool, plan, allocs->runs[i]);
    /* What is allocated does not tell whether it is committed. */
    return plan->allocs_size == 0 || plan->swaps_size > 0 || changes_bytes(tx);
}

bool slot_commit_plan_changes(const struct minl2r_tx *tx, struct slot_plan *plan)
{
    const struct writeset *ws = &tx->writes;

    plan->changes_size = plan->allocs_size = 0;
    plan->bytes.count = 0;
    plan->blocks = (struct interval){0};
    if (tx->cursor.index > 0 || ws->frees.count > 0 || ws->segments.count > 0)
        return false;
    if (ws->in_place && !tx->pool->prove)
        return false;
    if (!plan_swaps(tx, plan) || !plan_allocs(tx, plan))
        return false;
    commit_prefetch_in_place(tx);
    for (const struct block_write *w = ws->in_place; w; w = w->next_change)
        if (!plan_bytes(plan, w))
            return false;
    return log_space_needed(plan->changes_size + plan->swaps_size +
                            plan->allocs_size) <=
           log_part_space(tx->pool->geo.log_size);
}

/* ---- Commit ---------------------------------------------------------------------- */

static void settle_owners_of_swap(struct minl2r_tx *tx, const struct swap *swap)
{
    struct block_run freed = {swap->block, 1};

    live_settle_bytes(tx->pool, tx->lane, slot_range(swap), &tx->phase,
                      &tx->writes.settling);
    if (swap->block)
        live_settle_blocks(tx->pool, tx->lane, block_range(tx->pool, freed), &tx->phase,
                           &tx->writes.settling);
}

static void settle_owners(struct minl2r_tx *tx)
{
    struct settling *settling = &tx->writes.settling;

    if (!live_others_possible(tx->pool, tx->lane))
        return;
    if (live_round_begins(lane_next_generation(tx->lane)))
        live_look_for_idle(tx->pool, tx->lane, &tx->phase, settling);
    for (uint32_t i = 0; i < tx->writes.swaps.count; i++)
        settle_owners_of_swap(tx, &tx->writes.swaps.list[i]);
    for (const struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        for (uint32_t i = 0; i < w->extent_count; i++)
            live_settle_word(tx->pool, tx->lane, extent_range(w, &w->extents[i]),
                             &tx->phase, settling);
}

/* New bytes one behind the other; those that lie so stay where they are. */
struct gathered {
    uint8_t *room;
    const uint8_t *bytes;
    size_t size;
};

static inline void append_bytes(uint8_t *end, const struct extent *e)
{
    if (!e->bytes)
        memset(end, 0, e->size);
    else if (e->size == 8) /* by far the most */
        memcpy(end, e->bytes, 8);
    else
        copy_recent(end, e->bytes, e->size);
}

static inline void gather(struct gathered *new, const struct extent *e)
{
    if (e->bytes && (new->size == 0 || e->bytes == new->bytes + new->size)) {
        new->bytes = e->bytes - new->size;
    } else {
        if (new->bytes != new->room)
            memcpy(new->room, new->bytes, new->size);
        new->bytes = new->room;
        append_bytes(new->room + new->size, e);
    }
    new->size += e->size;
}

/* Puts records at `at`, and answers with their end. Nothing is streamed where something
 * else has to be flushed. */
static uint8_t *log_bytes(const struct minl2r_pool *pool, struct block_write *write,
                          bool may_stream, struct gathered *new, uint8_t *at)
{
    bool past_cache = may_stream;

    for (uint32_t i = 0; i < write->extent_count; i++) {
        struct extent *e = &write->extents[i];
        uint64_t target = write->block + e->start;
        const uint8_t *old = pool_at(pool, target);

        e->unchanged = commit_has_bytes(old, e->bytes, e->size);
        past_cache &= e->bytes && !e->unchanged && commit_streams_well(e);
        if (e->unchanged)
            continue;
        at = log_put_change(at, target, old, e->size);
        gather(new, e);
    }
    write->past_cache = past_cache;
    return at;
}

static void log_all_bytes(struct minl2r_tx *tx, struct log_writer *writer)
{
    struct gathered new = {tx->scratch, tx->scratch, 0};
    uint8_t *at = log_begin_changes(writer);

    for (struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        at = log_bytes(tx->pool, w, commit_streams_slots(tx), &new, at);
    log_end_changes(writer, at, new.size,
                    new.size > 0 ? log_hash_changes(new.bytes, new.size) : 0);
}

/* From number `i` on, up to one that tells nothing. */
static uint32_t count_told(const struct swaps *swaps, uint32_t i)
{
    uint32_t end = swaps->own == 0 ? swaps->count : i;

    while (end < swaps->count && !slot_is_own(&swaps->list[end]))
        end++;
    return end - i;
}

/* Those that tell whether they committed come first. */
static void log_slots(struct log_writer *writer, const struct swaps *swaps)
{
    for (uint32_t i = 0, count; i < swaps->count; i += count + 1) {
        count = count_told(swaps, i);
        log_append_slots(writer, &swaps->list[i], count);
    }
}

/* Blocks that follow each other have one record. */
static void log_own_swaps(struct log_writer *writer, const struct swaps *swaps)
{
    uint32_t shift = writer->pool->geo.block_shift;
    struct block_run run = {0};

    for (uint32_t i = 0; i < swaps->count; i++) {
        const struct swap *swap = &swaps->list[i];

        if (!slot_is_own(swap))
            continue;
        if (run.count == 0 || swap->fresh != run.offset + (run.count << shift)) {
            if (run.count > 0)
                log_append_blocks(writer, PM_ALLOC, run);
            run = (struct block_run){swap->fresh, 0};
        }
        run.count++;
    }
    if (run.count > 0)
        log_append_blocks(writer, PM_ALLOC, run);
}

static void log_allocs(struct log_writer *writer, const struct writeset *ws)
{
    if (ws->swaps.own > 0)
        log_own_swaps(writer, &ws->swaps);
    commit_log_runs(writer, PM_ALLOC, &ws->allocs);
}

static int log_changes(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    struct log_writer writer = commit_begin_log(tx);

    if (tx->writes.in_place)
        log_all_bytes(tx, &writer);
    log_slots(&writer, &tx->writes.swaps);
    if (plan->allocs_size > 0)
        log_allocs(&writer, &tx->writes);
    log_end(&writer);
    return commit_log_result(tx, &writer);
}

/* Up to F1. */
static int log_and_store_fresh(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    uint32_t own = 0;
    uint64_t mark = 0;
    bool ends_quarantine = false;

    if (tx->writes.swaps.count > 0) { /* else it takes and frees no block */
        own = alloc_own_quarantine(tx->pool);
        ends_quarantine = alloc_quarantine_count(tx->pool, own) >= QUARANTINE_LONG;
        mark = alloc_quarantine_mark(tx->pool, own);
    }
    if (ends_quarantine)
        live_settle_all(tx->pool, tx->lane, &tx->phase, &tx->writes.settling);
    else
        settle_owners(tx);
    int result = log_changes(tx, plan);

    if (result < 0)
        return result;
    commit_store_fresh(tx);
    result = commit_order(tx); /* I1, I2, and who owned what changes is settled */
    if (result < 0)
        return result;
    live_forget(tx->pool, &tx->writes.settling);
    /* I5: by a new log; without one, what the lane left live is live still. */
    if (ends_quarantine && tx->cursor.index > 0)
        alloc_end_quarantine(tx->pool, own, mark);
    return 0;
}

/* I5: what this commit freed stays busy while a live generation may name it. */
static int quarantine_freed(struct minl2r_tx *tx)
{
    const struct swaps *swaps = &tx->writes.swaps;
    uint64_t freed[FREED_MAX]; /* the plan allows no more */
    uint32_t count = 0, done = 0;
    int result = 0;

    for (uint32_t i = 0; i < swaps->count; i++)
        if (swaps->list[i].block)
            freed[count++] = swaps->list[i].block;
    while (result == 0 && done < count) {
        done += alloc_quarantine(tx->pool, freed + done, count - done);
        if (done < count)
            result = live_end_quarantine(tx->pool, &tx->phase, &tx->writes.settling);
    }
    return result;
}

static void own(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    struct lane *lane = tx->lane;

    lane_set_generation(lane, tx->cursor.generation);
    live_own(lane, plan->slots, &plan->bytes, plan->blocks);
    if (!live_lists(tx->pool, lane, lane->generation))
        return;
    for (uint32_t i = 0; i < tx->writes.swaps.count; i++)
        if (!slot_is_own(&tx->writes.swaps.list[i]))
            live_list(lane, LISTED_SLOTS, slot_range(&tx->writes.swaps.list[i]));
    for (const struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        for (uint32_t i = 0; i < w->extent_count; i++)
            live_list(lane, LISTED_BYTES, extent_range(w, &w->extents[i]));
}

/*
 * Up to F2. What needs no store on media is done first, while F1 drains: a lock of bits
 * that is everyone's waits for that.
 */
static int store_in_place(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    watch_remember(tx->pool, tx->lane, tx->cursor.generation, &tx->writes);
    if (tx->writes.swaps.count > 0)
        alloc_prefetch(tx->pool, 1);
    if (tx->cursor.index > 0)
        own(tx, plan);
    commit_store_in_place(tx);
    return commit_order_stored(tx); /* I3: what is in place, then the caller's return */
}

int slot_commit(struct minl2r_tx *tx, const struct slot_plan *plan)
{
    int result = log_and_store_fresh(tx, plan);

    if (result == 0)
        result = store_in_place(tx, plan);
    if (result < 0 || tx->cursor.index == 0) /* every byte was there already */
        return result;
    live_enter(tx->pool, tx->lane, tx->cursor.generation);
    tx->freed_in_quarantine = true;
    return quarantine_freed(tx);
}

/* ---- Recovery -------------------------------------------------------------------- */

struct slot_recovery {
    struct minl2r_pool *pool;
    struct pm_phase *phase;
    struct minl2r_recovery *done;

    /* Of batch 0. */
    bool first_slot_is_old;
    uint32_t changes_at; /* what changes in place is from here on */
    struct pm_range changes[CHANGES_MAX];
};

static uint64_t slot_value(const struct slot_recovery *r, uint64_t slot)
{
    return pm_load64(pool_at(r->pool, slot));
}

/* Newest first: the first slot comes last, and changes are listed from the end. */
static void look_at_record(void *arg, const struct pm_record *record,
                           const void *payload)
{
    struct slot_recovery *r = arg;
    const struct pm_swap *swap = payload;

    if (record->type == PM_SLOT)
        r->first_slot_is_old = slot_value(r, record->target) == swap->old_block;
    else if (record->type == PM_CHANGE)
        r->changes[--r->changes_at] =
            (struct pm_range){pool_at(r->pool, record->target), record->length};
}

static bool has_committed(struct slot_recovery *r, uint32_t lane, uint8_t *scratch)
{
    uint64_t offset = pool_log_offset(r->pool, lane);
    const struct pm_batch *batch = pool_at(r->pool, offset);

    r->changes_at = CHANGES_MAX;
    log_visit_batch(r->pool, offset, scratch, look_at_record, r);
    if (r->changes_at == CHANGES_MAX)
        return !r->first_slot_is_old;
    return batch->prev ==
           log_hash_in_place(r->changes + r->changes_at, CHANGES_MAX - r->changes_at);
}

static void put_bits(const struct slot_recovery *r, struct block_run run,
                     bool allocated)
{
    (allocated ? alloc_publish : alloc_unpublish)(r->pool, r->phase, run);
    alloc_flush(r->pool, r->phase, run);
}

static void put_slot(const struct slot_recovery *r, uint64_t slot, uint64_t block,
                     uint64_t unused)
{
    pm_store_piece(r->phase, pool_at(r->pool, slot), &block, sizeof(block));
    pm_flush(r->phase, pool_at(r->pool, slot), sizeof(block));
    if (block)
        put_bits(r, (struct block_run){block, 1}, true);
    if (unused)
        put_bits(r, (struct block_run){unused, 1}, false);
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

static struct block_run record_blocks(const struct pm_record *record)
{
    return (struct block_run){record->target, record->length};
}

static void finish_record(void *arg, const struct pm_record *record,
                          const void *payload)
{
    const struct slot_recovery *r = arg;

    if (record->type == PM_SLOT)
        finish_slot(r, record->target, payload);
    else if (record->type == PM_ALLOC)
        put_bits(r, record_blocks(record), true);
    else
        put_bytes(r, record, pool_at(r->pool, record->target));
}

static void undo_slot(const struct slot_recovery *r, uint64_t slot,
                      const struct pm_swap *swap)
{
    r->done->bytes += sizeof(slot);
    r->done->blocks += swap->old_block ? 2 : 1;
    put_slot(r, slot, swap->old_block, swap->new_block);
}

static void undo_record(void *arg, const struct pm_record *record, const void *payload)
{
    const struct slot_recovery *r = arg;

    r->done->records++;
    if (record->type == PM_SLOT) {
        undo_slot(r, record->target, payload);
    } else if (record->type == PM_ALLOC) {
        r->done->blocks += record->length;
        put_bits(r, record_blocks(record), false);
    } else {
        r->done->bytes += record->length;
        put_bytes(r, record, payload);
    }
}

void slot_commit_recover(struct minl2r_pool *pool, uint32_t lane,
                         const struct log_live *live, uint8_t *scratch,
                         struct pm_phase *phase, struct minl2r_recovery *done)
{
    struct slot_recovery r = {pool, phase, done, .first_slot_is_old = false};
    bool committed = has_committed(&r, lane, scratch);

    for (uint64_t offset = live->last; offset != 0; done->batches += !committed)
        offset = log_visit_batch(pool, offset, scratch,
                                 committed ? finish_record : undo_record, &r);
    done->lanes += !committed;
}
