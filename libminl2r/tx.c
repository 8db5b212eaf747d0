/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/tx.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/commit.h"
#include "libminl2r/error.h"
#include "libminl2r/live.h"
#include "libminl2r/recovery.h"
#include "libminl2r/slot_commit.h"
#include "libminl2r/thread.h"
#include "libminl2r/word_commit.h"

/* ---- Objects and their cache ----------------------------------------------------- */

static void tx_destroy(struct minl2r_tx *tx)
{
    writeset_finish(&tx->writes);
    free(tx->batch);
    free(tx->scratch);
    free(tx);
}

static struct minl2r_tx *tx_create(struct minl2r_pool *pool)
{
    struct minl2r_tx *tx = aligned_alloc(_Alignof(struct minl2r_tx), sizeof(*tx));

    if (!tx)
        return NULL;
    memset(tx, 0, sizeof(*tx));
    tx->pool = pool;
    tx->phase.pm = &pool->pm;
    tx->phase.stats = &tx->stats;
    tx->batch = aligned_alloc(PM_LINE, PM_BATCH_SIZE_MAX);
    tx->scratch = aligned_alloc(PM_LINE, PM_BATCH_SIZE_MAX);
    if (!tx->batch || !tx->scratch || writeset_init(&tx->writes, pool) < 0) {
        free(tx->batch);
        free(tx->scratch);
        free(tx);
        return NULL;
    }
    tx->writes.phase = &tx->phase;
    tx->writes.lane = &tx->lane;
    pthread_mutex_lock(&pool->tx_lock);
    tx->next = pool->tx_all;
    pool->tx_all = tx;
    pthread_mutex_unlock(&pool->tx_lock);
    return tx;
}

/*
 * Each entry belongs to the first thread that asks for it, so that taking a transaction
 * from it needs no locked instruction, which would wait for the last commit's fence.
 * Other threads, and second transactions of the same one, share the rest in the list of
 * all.
 */
static struct tx_cache_entry *cache_entry(struct minl2r_pool *pool)
{
    return &pool->tx_cache[thread_number() % TX_CACHE_COUNT];
}

static bool is_own_entry(struct tx_cache_entry *entry)
{
    uint32_t self = thread_number();
    uint32_t owner = __atomic_load_n(&entry->owner, __ATOMIC_RELAXED);

    if (owner == 0 && __atomic_compare_exchange_n(&entry->owner, &owner, self, false,
                                                  __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return true;
    return owner == self;
}

static struct minl2r_tx *take_shared(struct minl2r_pool *pool)
{
    pthread_mutex_lock(&pool->tx_lock);
    struct minl2r_tx *tx = pool->tx_shared;

    if (tx)
        pool->tx_shared = tx->next_shared;
    pthread_mutex_unlock(&pool->tx_lock);
    return tx;
}

static void put_shared(struct minl2r_pool *pool, struct minl2r_tx *tx)
{
    pthread_mutex_lock(&pool->tx_lock);
    tx->next_shared = pool->tx_shared;
    pool->tx_shared = tx;
    pthread_mutex_unlock(&pool->tx_lock);
}

static struct minl2r_tx *cache_take(struct minl2r_pool *pool)
{
    struct tx_cache_entry *entry = cache_entry(pool);

    if (!is_own_entry(entry) || !entry->tx)
        return take_shared(pool);
    struct minl2r_tx *tx = entry->tx;

    entry->tx = NULL;
    return tx;
}

static void cache_put(struct minl2r_pool *pool, struct minl2r_tx *tx)
{
    struct tx_cache_entry *entry = cache_entry(pool);

    if (is_own_entry(entry) && !entry->tx)
        entry->tx = tx;
    else
        put_shared(pool, tx);
}

int tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx)
{
    struct minl2r_tx *new = cache_take(pool);

    if (!new)
        new = tx_create(pool);
    if (!new)
        return error_set(ENOMEM, "no memory for a transaction");
    new->owner = thread_number();
    __atomic_store_n(&new->running, true, __ATOMIC_RELAXED);
    *tx = new;
    return 0;
}

int tx_free_all(struct minl2r_pool *pool)
{
    for (const struct minl2r_tx *tx = pool->tx_all; tx; tx = tx->next)
        if (__atomic_load_n(&tx->running, __ATOMIC_RELAXED))
            return error_set(EBUSY, "a transaction is still open");
    while (pool->tx_all) {
        struct minl2r_tx *next = pool->tx_all->next;

        tx_destroy(pool->tx_all);
        pool->tx_all = next;
    }
    return 0;
}

static void tx_end(struct minl2r_tx *tx)
{
    struct minl2r_pool *pool = tx->pool;

    if (tx->lane)
        lane_release(tx->lane);
    tx->lane = NULL;
    tx->cursor.index = 0;
    tx->freed_in_quarantine = false;
    writeset_reset(&tx->writes);
    __atomic_store_n(&tx->running, false, __ATOMIC_RELAXED);
    cache_put(pool, tx);
}

/* ---- Giving back reservations ---------------------------------------------------- */

typedef void run_fn(struct minl2r_pool *pool, struct block_run run);

static inline void for_runs(struct minl2r_pool *pool, const struct run_list *list,
                            run_fn *call)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->runs[i].count > 0)
            call(pool, list->runs[i]);
}

static void release_swaps(struct minl2r_tx *tx, bool committed)
{
    const struct swaps *swaps = &tx->writes.swaps;

    for (uint32_t i = 0; i < swaps->count; i++) {
        uint64_t unused = committed ? swaps->list[i].block : swaps->list[i].fresh;

        if (!unused)
            continue;
        /* Likely the block that is allocated next: find its page while F3 drains. */
        __builtin_prefetch(pool_at(tx->pool, unused));
        alloc_release(tx->pool, (struct block_run){unused, 1});
    }
}

/* I5: only now may blocks that were freed, and the log's own, be used again. */
static void release_committed(struct minl2r_tx *tx)
{
    if (!tx->freed_in_quarantine)
        release_swaps(tx, true);
    for_runs(tx->pool, &tx->writes.frees, alloc_release_freed);
    for_runs(tx->pool, &tx->writes.segments, alloc_release);
    for_runs(tx->pool, &tx->writes.abandoned, alloc_release);
}

static void release_aborted(struct minl2r_tx *tx)
{
    writeset_list_swaps(&tx->writes);
    release_swaps(tx, false);
    for_runs(tx->pool, &tx->writes.allocs, alloc_release);
    for_runs(tx->pool, &tx->writes.frees, alloc_unmark_leaving);
    for_runs(tx->pool, &tx->writes.segments, alloc_release);
    for_runs(tx->pool, &tx->writes.abandoned, alloc_release);
}

/* ---- Commit, abort, snapshot ----------------------------------------------------- */

/*
 * Fresh bytes are stored before F1: whose bytes they change is settled before that. But
 * those in the line of a lone word come with it.
 */
static int settle_owners_of_fresh(struct minl2r_tx *tx, const struct block_write *word)
{
    struct settling *settling = &tx->writes.settling;

    for (const struct fresh_write *f = tx->writes.fresh_first; f; f = f->next)
        if (!word || !word_commit_brings(word, f))
            live_settle_bytes(tx->pool, NULL,
                              (struct interval){f->offset, f->offset + f->size},
                              &tx->phase, settling);
    return settling->any ? commit_order_log(tx) : 0; /* I1: settled, then fresh bytes */
}

static int commit_changes(struct minl2r_tx *tx)
{
    if (!tx->lane)
        tx->lane = lane_wait_commit(tx->pool);
    live_stay_awake(tx->pool, tx->lane);
    const struct block_write *word = word_commit_find(tx);
    struct slot_plan plan;
    /* A lane whose generation failed half-way must not begin it again. */
    int result = pool_check_usable(tx->pool);

    if (result == 0 && tx->writes.fresh_first && live_possible(tx->pool))
        result = settle_owners_of_fresh(tx, word);
    if (result == 0)
        result = word                          ? word_commit(tx, word)
                 : slot_commit_plan(tx, &plan) ? slot_commit(tx, &plan)
                                               : commit_logged(tx);
    return result;
}

int tx_commit(struct minl2r_tx *tx)
{
    int result = 0;

    tx->phase.last_line = 0; /* the caller may have stored to that line since */
    writeset_close(&tx->writes);
    if (!writeset_is_empty(&tx->writes))
        result = commit_changes(tx);
    else if (tx->writes.abandoned.count > 0)
        result =
            commit_order(tx); /* streamed bytes, then another use of their blocks */
    if (result == 0)
        release_committed(tx);
    tx_end(tx);
    return result;
}

static int undo_snapshots(struct minl2r_tx *tx)
{
    struct minl2r_recovery done = {0};

    recovery_undo(tx->pool, tx->cursor.prev, tx->scratch, &tx->phase, &done);
    int result =
        commit_order(tx); /* I4: what was undone, then its generation settled */

    return result < 0 ? result : commit_settle(tx);
}

int tx_abort(struct minl2r_tx *tx)
{
    int result = pool_check_usable(tx->pool);

    if (result == 0 && tx->cursor.index > 0)
        result = undo_snapshots(tx);
    else if (result == 0)
        result =
            commit_order(tx); /* streamed bytes, then another use of their blocks */
    if (result == 0)
        release_aborted(tx);
    pm_count(&tx->stats.aborts, 1);
    tx_end(tx);
    return result;
}

static int take_lane_for_snapshot(struct minl2r_tx *tx)
{
    if (!tx->lane)
        tx->lane = lane_wait(tx->pool);
    if (!tx->lane)
        return error_set(EBUSY, "no lane is free, and this thread holds one already");
    return pool_check_usable(tx->pool);
}

int tx_snapshot(struct minl2r_tx *tx, const struct minl2r_range *ranges, size_t count)
{
    struct interval_list *snapshots = &tx->writes.snapshots;
    int result = writeset_reserve_snapshots(&tx->writes, ranges, count);

    if (result == 0)
        result = take_lane_for_snapshot(tx);
    if (result < 0)
        return result;
    commit_settle_others(tx);
    struct log_writer writer = commit_begin_log(tx);

    for (size_t i = 0; i < count; i++) {
        uint64_t offset = pool_offset(tx->pool, ranges[i].pm);

        if (ranges[i].size == 0)
            continue;
        log_append_undo(&writer, offset, ranges[i].size);
        snapshots->list[snapshots->count++] =
            (struct interval){offset, offset + ranges[i].size};
    }
    log_end(&writer);
    result = commit_log_result(tx, &writer);
    return result < 0
               ? result
               : commit_order_log(tx); /* I1: the record, then the caller's store */
}
