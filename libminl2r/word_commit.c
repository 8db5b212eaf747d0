/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/word_commit.h"

#include "libminl2r/commit.h"
#include "libminl2r/live.h"

const struct block_write *word_commit_find(const struct minl2r_tx *tx)
{
    const struct writeset *ws = &tx->writes;
    const struct block_write *lone = ws->in_place;

    if (!lone || lone->next_change || lone->extent_count > 1 || ws->swaps.count > 0 ||
        tx->cursor.index > 0 || ws->allocs.count > 0 || ws->frees.count > 0)
        return NULL;
    uint64_t size = lone->extents[0].size;

    return size <= 8 && (size & (size - 1)) == 0 && lone->extents[0].start % size == 0
               ? lone
               : NULL;
}

static uint64_t word_offset(const struct block_write *word)
{
    return word->block + word->extents[0].start;
}

bool word_commit_brings(const struct block_write *word, const struct fresh_write *fresh)
{
    uint64_t line = word_offset(word) / PM_LINE;

    return fresh->offset / PM_LINE == line &&
           (fresh->offset + fresh->size - 1) / PM_LINE == line;
}

/* Those in the line of the word, or the others. Are there any? */
static bool store_fresh(struct minl2r_tx *tx, const struct block_write *word,
                        bool inside)
{
    bool any = false;

    for (const struct fresh_write *f = tx->writes.fresh_first; f; f = f->next) {
        if (word_commit_brings(word, f) != inside)
            continue;
        any = true;
        if (inside)
            pm_store(&tx->phase, pool_at(tx->pool, f->offset), f->bytes, f->size);
        else
            commit_store_fresh_bytes(tx, f);
    }
    return any;
}

/*
 * Past the cache, unless what is in the cache of its line has to arrive before it, or
 * it is too small.
 */
static void store_word(struct pm_phase *phase, const void *dst, const void *word,
                       uint64_t size, bool in_order)
{
    if (!in_order && size >= 4) {
        pm_store_nt(phase, dst, word, size);
        return;
    }
    pm_store_piece(phase, dst, word, size);
    pm_flush(phase, dst, 1);
}

/* Whose generation could be undone, or finished, over what is stored to the line. */
static void settle_owners_of_line(struct minl2r_tx *tx, uint64_t line)
{
    struct interval range = {line * PM_LINE, (line + 1) * PM_LINE};

    if (live_possible(tx->pool))
        live_settle_word(tx->pool, NULL, range, &tx->phase, &tx->writes.settling);
}

int word_commit(struct minl2r_tx *tx, const struct block_write *word)
{
    static const uint64_t zero;
    const struct extent *new = &word->extents[0];
    uint64_t offset = word_offset(word);

    settle_owners_of_line(tx, offset / PM_LINE);
    store_fresh(tx, word, false);
    /* I2: fresh bytes, then the word that makes them reachable */
    int result = commit_order_log(tx);

    if (result < 0)
        return result;
    lane_note_word(tx->pool, tx->lane, &tx->phase, offset & ~7ull);
    bool in_order = store_fresh(tx, word, true);

    store_word(&tx->phase, pool_at(tx->pool, offset),
               new->bytes ? (const void *)new->bytes : &zero, new->size, in_order);
    pm_count(&tx->stats.commits, 1); /* while it drains */
    return commit_order(tx);         /* I3: the word, then the caller's return */
}

int word_store64(struct minl2r_pool *pool, const uint64_t *p, uint64_t value)
{
    struct lane *lane = lane_wait_commit(pool);
    struct pm_phase phase = {.pm = &pool->pm, .stats = &lane->stats};
    int result = pool_check_usable(pool);

    live_stay_awake(pool, lane);
    if (result == 0 && live_possible(pool))
        result = live_settle_word_now(pool, pool_offset(pool, p), &phase);
    if (result == 0) {
        lane_note_word(pool, lane, &phase, pool_offset(pool, p));
        store_word(&phase, p, &value, sizeof(value), false);
        if (pm_fence(&phase) < 0) /* I3: the word, then the caller's return */
            result = pool_poison(pool);
        pm_count(&lane->stats.commits, 1);
    }
    lane_release(lane);
    return result;
}
