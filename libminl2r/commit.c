/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NOTES ON THE COMMIT PROTOCOL
 *
 * A transaction has three kinds of bytes:
 *
 *   fresh    nothing reachable refers to them: new blocks, space past an end;
 *            never logged
 *   logged   reachable: bytes in place, slots of swapped blocks, bits of the block
 *            bitmaps
 *   word     a single aligned word in place, when it is all that the transaction logs
 *
 * and four states:
 *
 *   queued     all changes in DRAM, but for fresh bytes
 *     |          store fresh bytes, stream the log: the old values of all logged bytes
 *     |          F1                                            log_and_store_fresh()
 *   logged     a crash now: recovery undoes a generation of which nothing has changed
 *     |          store logged bytes in place: past the cache, or flush
 *     |          F2                                            commit_store_in_place()
 *   stored     a crash now: recovery undoes it, new bytes or not
 *     |          store settled = generation
 *     |          F3                                            commit_settle()
 *   settled    durable; freed blocks may be used again         release_committed()
 *
 * F1 keeps I1 (a record is durable before a byte that it covers changes in place: the
 * change may reach the medium at any instant after its store) and I2 (fresh bytes
 * before the slot or size that makes them reachable). F2 and F3 keep I3: nothing is
 * settled that is not in place, and commit returns only when it is settled. Without F2,
 * settled could arrive before a changed byte, which recovery would then not undo. I5
 * holds since blocks that the transaction freed stay busy in DRAM until F3; segments of
 * the log too, which recovery reads before that.
 *
 * A word alone needs no log, since its store is atomic: F1 if there are fresh bytes
 * outside its line (stores to one line arrive in order), then store, flush, fence.
 *
 * A snapshot logs at once: its batches are the first of the generation, each followed
 * by F1. The caller's stores come next, then commit as above, or abort: undo as
 * recovery does.
 *
 * A transaction that changes nothing but block slots needs no F3, since they say
 * themselves whether it happened: slot_commit.h. What it leaves live, others settle:
 * live.h.
 *
 * In every phase locks and locked instructions come before the first flush: see pm.h.
 */
#include "libminl2r/commit.h"

#include <errno.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/live.h"
#include "libminl2r/watch.h"

/* ---- Ordering points ------------------------------------------------------------- */

int commit_order(struct minl2r_tx *tx)
{
    return pm_fence(&tx->phase) < 0 ? pool_poison(tx->pool) : 0;
}

int commit_order_stored(struct minl2r_tx *tx)
{
    int result = commit_order(tx);

    if (tx->bits.count > 0)
        alloc_unlock_bits(tx->pool, &tx->bits);
    return result;
}

int commit_settle(struct minl2r_tx *tx)
{
    if (lane_settle(tx->pool, tx->lane, tx->cursor.generation, &tx->phase) < 0)
        return pool_poison(tx->pool);
    live_leave(tx->lane);
    return 0;
}

void commit_settle_others(struct minl2r_tx *tx)
{
    if (!live_others_possible(tx->pool, tx->lane))
        return;
    if (live_round_begins(lane_next_generation(tx->lane)))
        live_look_for_idle(tx->pool, tx->lane, &tx->phase, &tx->writes.settling);
    live_settle_all(tx->pool, tx->lane, &tx->phase, &tx->writes.settling);
}

int commit_order_log(struct minl2r_tx *tx)
{
    int result = commit_order(tx);

    if (result == 0)
        live_forget(tx->pool, &tx->writes.settling);
    return result;
}

/* Begins the lane's next generation, unless a snapshot has. */
static void begin_generation(struct minl2r_tx *tx)
{
    if (tx->cursor.index > 0)
        return;
    watch_check(tx->pool, tx->lane, live_generation_of(tx->lane));
    log_cursor_init(&tx->cursor, tx->pool, tx->lane->index,
                    lane_next_generation(tx->lane));
}

struct log_writer commit_begin_log(struct minl2r_tx *tx)
{
    begin_generation(tx);
    return (struct log_writer){
        .pool = tx->pool,
        .phase = &tx->phase,
        .cursor = &tx->cursor,
        .segments = tx->writes.segments.runs,
        .segment_count = tx->writes.segments.count,
        .batch = tx->batch,
    };
}

/* Should a log not have had the room that was reserved, nothing in place may change. */
int commit_log_result(struct minl2r_tx *tx, const struct log_writer *writer)
{
    if (!writer->overflowed)
        return 0;
    pool_poison(tx->pool);
    return error_set(EIO,
                     "a log outgrew what was reserved for it: a bug in this library");
}

/* ---- queued -> logged ------------------------------------------------------------ */

/*
 * Logs what changes in place, neighbours in one record. What is unchanged between two
 * neighbours is logged too: no more records than log_growth() reckoned with.
 *
 * Chooses, too, how the bytes will be stored: past the cache if that does for the whole
 * block, since F2 waits for it less than for flushes.
 */
static void log_extents(struct log_writer *writer, struct block_write *write,
                        bool may_stream)
{
    uint64_t start = 0, end = 0; /* of the record being gathered; empty: none yet */
    uint64_t neighbour = 0;      /* where an extent that belongs to it starts */
    bool past_cache = may_stream;

    for (uint32_t i = 0; i < write->extent_count; i++) {
        struct extent *e = &write->extents[i];

        e->unchanged = commit_has_bytes(pool_at(writer->pool, write->block + e->start),
                                        e->bytes, e->size);
        past_cache &= e->bytes && !e->unchanged && commit_streams_well(e);
        if (e->start != neighbour && start < end) {
            log_append_undo(writer, write->block + start, end - start);
            start = end;
        }
        neighbour = extent_end(e);
        if (e->unchanged)
            continue;
        if (start == end)
            start = e->start;
        end = extent_end(e);
    }
    if (start < end)
        log_append_undo(writer, write->block + start, end - start);
    write->past_cache = past_cache;
}

static void log_swap(struct log_writer *writer, const struct swap *swap)
{
    if (!slot_is_own(swap)) {
        log_append_swap(writer, swap->slot, (struct pm_swap){swap->block, swap->fresh});
        return;
    }
    log_append_blocks(writer, PM_ALLOC, (struct block_run){swap->fresh, 1});
    if (swap->block)
        log_append_blocks(writer, PM_FREE, (struct block_run){swap->block, 1});
}

void commit_log_runs(struct log_writer *writer, enum pm_record_type type,
                     const struct run_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->runs[i].count > 0)
            log_append_blocks(writer, type, list->runs[i]);
}

static int log_changes(struct minl2r_tx *tx)
{
    struct log_writer writer = commit_begin_log(tx);

    for (struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        log_extents(&writer, w,
                    tx->writes.snapshots.count == 0 && commit_streams_slots(tx));
    for (uint32_t i = 0; i < tx->writes.swaps.count; i++)
        log_swap(&writer, &tx->writes.swaps.list[i]);
    commit_log_runs(&writer, PM_ALLOC, &tx->writes.allocs);
    commit_log_runs(&writer, PM_FREE, &tx->writes.frees);
    log_end(&writer);
    return commit_log_result(tx, &writer);
}

/*
 * A block that is streamed from front to back, out of pieces of any size: whole lines
 * from where they are, others once they are complete, since a line that is streamed in
 * parts is written to memory several times.
 */
struct block_stream {
    struct pm_phase *phase;
    const uint8_t *block;
    uint32_t filled;
    _Alignas(PM_LINE) uint8_t line[PM_LINE]; /* being gathered */
};

/* Not past the end of the line. */
static void gather(struct block_stream *stream, const uint8_t *bytes, uint32_t size)
{
    if (size == 0)
        return;
    memcpy(stream->line + stream->filled % PM_LINE, bytes, size);
    stream->filled += size;
    if (stream->filled % PM_LINE == 0)
        pm_store_nt(stream->phase, stream->block + stream->filled - PM_LINE,
                    stream->line, PM_LINE);
}

static void fill_lines(struct block_stream *stream, const uint8_t *bytes, uint32_t size)
{
    const uint8_t *dst = stream->block + stream->filled;

    if (size > 0 && bytes != dst) /* those were streamed as they were queued */
        pm_store_nt(stream->phase, dst, bytes, size);
    stream->filled += size;
}

static void fill(struct block_stream *stream, const uint8_t *bytes, uint32_t size)
{
    uint32_t head = -stream->filled & (PM_LINE - 1);

    if (head > size)
        head = size;
    uint32_t lines_size = (size - head) & ~(uint32_t)(PM_LINE - 1);

    gather(stream, bytes, head);
    fill_lines(stream, bytes + head, lines_size);
    gather(stream, bytes + head + lines_size, size - head - lines_size);
}

static void fill_zeros(struct block_stream *stream, uint32_t size)
{
    static const uint8_t zeros[1024];

    while (size > 0) {
        uint32_t piece = size < sizeof(zeros) ? size : sizeof(zeros);

        fill(stream, zeros, piece);
        size -= piece;
    }
}

/* Up to `end` what the old block has there. */
static void fill_kept(struct block_stream *stream, const uint8_t *old, uint32_t end)
{
    if (old)
        fill(stream, old + stream->filled, end - stream->filled);
    else
        fill_zeros(stream, end - stream->filled);
}

/* New bytes, around them the old block's or zeros. */
static void store_fresh_block(struct minl2r_tx *tx, const struct block_write *write)
{
    struct block_stream stream = {.phase = &tx->phase,
                                  .block = pool_at(tx->pool, write->fresh)};
    const uint8_t *old = write->block ? pool_at(tx->pool, write->block) : NULL;

    for (uint32_t i = 0; i < write->extent_count; i++) {
        const struct extent *e = &write->extents[i];

        fill_kept(&stream, old, (uint32_t)e->start);
        if (e->bytes)
            fill(&stream, e->bytes, e->size);
        else
            fill_zeros(&stream, e->size);
    }
    fill_kept(&stream, old, tx->pool->geo.block_size);
}

/* Part of a line stays in the cache: what comes next may well go on there. */
static bool streams_fresh(const struct fresh_write *fresh)
{
    return fresh->size >= COMMIT_STREAM_SIZE_MIN ||
           ((fresh->offset | fresh->size) & (PM_LINE - 1)) == 0;
}

void commit_store_fresh_bytes(struct minl2r_tx *tx, const struct fresh_write *fresh)
{
    const void *dst = pool_at(tx->pool, fresh->offset);

    if (streams_fresh(fresh)) {
        pm_store_nt(&tx->phase, dst, fresh->bytes, fresh->size);
        return;
    }
    pm_store(&tx->phase, dst, fresh->bytes, fresh->size);
    pm_flush(&tx->phase, dst, fresh->size);
}

static void store_slot(struct minl2r_tx *tx, const struct swap *swap)
{
    pm_store_piece(&tx->phase, pool_at(tx->pool, swap->slot), &swap->fresh,
                   sizeof(swap->fresh));
}

static void flush_slot(struct minl2r_tx *tx, const struct swap *swap)
{
    pm_flush(&tx->phase, pool_at(tx->pool, swap->slot), sizeof(swap->fresh));
}

/* Those from index `i` on that follow each other, and are alike: their new values. */
static uint32_t gather_slots(const struct swaps *swaps, uint32_t i, uint64_t *values,
                             uint32_t max)
{
    const struct swap *first = &swaps->list[i];
    uint32_t count = 0;

    for (; count < max && i + count < swaps->count; count++) {
        const struct swap *swap = first + count;

        if (swap->type != first->type ||
            swap->slot != first->slot + count * sizeof(*values))
            break;
        values[count] = swap->fresh;
    }
    return count;
}

typedef void store_fn(struct pm_phase *phase, const void *dst, const void *src,
                      size_t size);

/* Neighbours at once. Those in blocks that the transaction allocated, or the others. */
static void store_slots(struct minl2r_tx *tx, bool own, store_fn *store)
{
    const struct swaps *swaps = &tx->writes.swaps;
    uint64_t values[8 * PM_LINE / sizeof(uint64_t)];

    for (uint32_t i = 0, count; i < swaps->count; i += count) {
        count = gather_slots(swaps, i, values, sizeof(values) / sizeof(values[0]));
        if (slot_is_own(&swaps->list[i]) == own)
            store(&tx->phase, pool_at(tx->pool, swaps->list[i].slot), values,
                  count * sizeof(values[0]));
    }
}

/* Those in blocks that the transaction allocated, which are flushed whole. */
static void store_own_slots(struct minl2r_tx *tx)
{
    if (tx->writes.swaps.own > 0)
        store_slots(tx, true, pm_store);
}

/* Fresh bytes come first: a block that is swapped takes those of the old one along. */
void commit_store_fresh(struct minl2r_tx *tx)
{
    const struct run_list *allocs = &tx->writes.allocs;

    for (const struct fresh_write *f = tx->writes.fresh_first; f; f = f->next)
        commit_store_fresh_bytes(tx, f);
    store_own_slots(tx);
    for (const struct block_write *w = tx->writes.to_fill; w; w = w->next_change)
        store_fresh_block(tx, w);
    for (uint32_t i = 0; i < allocs->count; i++)
        pm_flush(&tx->phase, pool_at(tx->pool, allocs->runs[i].offset),
                 allocs->runs[i].count << tx->pool->geo.block_shift);
}

/*
 * Old bytes of many blocks come from memory all at once rather than one by one. A
 * prefetch that misses the TLB holds up what follows it, so it is not done as the
 * writes are queued.
 */
void commit_prefetch_in_place(const struct minl2r_tx *tx)
{
    for (const struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        for (uint32_t i = 0; i < w->extent_count; i++)
            __builtin_prefetch(pool_at(tx->pool, w->block + w->extents[i].start), 1);
}

static int log_and_store_fresh(struct minl2r_tx *tx)
{
    commit_prefetch_in_place(tx);
    commit_settle_others(tx);
    int result = log_changes(tx);

    if (result < 0)
        return result;
    commit_store_fresh(tx);
    return commit_order_log(
        tx); /* I1, I2: log and fresh bytes, then what is in place */
}

/* ---- logged -> stored ------------------------------------------------------------ */

typedef bool bits_fn(struct minl2r_tx *tx, struct block_run run, bool allocated);

static bool bits_of_runs(struct minl2r_tx *tx, const struct run_list *list,
                         bool allocated, bits_fn *call)
{
    for (uint32_t i = 0; i < list->count; i++)
        if (list->runs[i].count > 0 && !call(tx, list->runs[i], allocated))
            return false;
    return true;
}

/* Those that follow each other are one run: their bits change at once. */
static bool bits_of_swaps(struct minl2r_tx *tx, bool allocated, bits_fn *call)
{
    const struct swap *swap = tx->writes.swaps.list,
                      *end = swap + tx->writes.swaps.count;
    uint64_t block_size = tx->pool->geo.block_size;

    while (swap < end) {
        uint64_t first = allocated ? swap->fresh : swap->block, next = first;

        do {
            next += block_size;
            swap++;
        } while (first && swap < end &&
                 (allocated ? swap->fresh : swap->block) == next);
        if (first && !call(tx, (struct block_run){first, (next - first) / block_size},
                           allocated))
            return false;
    }
    return true;
}

static bool all_bits(struct minl2r_tx *tx, bits_fn *call)
{
    return bits_of_swaps(tx, true, call) && bits_of_swaps(tx, false, call) &&
           bits_of_runs(tx, &tx->writes.allocs, true, call) &&
           bits_of_runs(tx, &tx->writes.frees, false, call);
}

static bool add_bits(struct minl2r_tx *tx, struct block_run run, bool allocated)
{
    return alloc_add_bits(tx->pool, &tx->bits, run, allocated);
}

static bool gather_bits(struct minl2r_tx *tx, struct block_run run, bool allocated)
{
    alloc_gather_bits(tx->pool, &tx->phase, &tx->bits, run, allocated);
    return true;
}

static bool changes_bits(const struct minl2r_tx *tx)
{
    return tx->writes.swaps.count > 0 || tx->writes.allocs.count > 0 ||
           tx->writes.frees.count > 0;
}

/* Allocates and frees on media. False if that has to be flushed. */
static bool change_bits(struct minl2r_tx *tx)
{
    if (commit_streams_slots(tx) && all_bits(tx, add_bits)) {
        alloc_stream_bits(tx->pool, &tx->phase, &tx->bits);
        return true;
    }
    tx->bits = (struct bit_changes){0};
    all_bits(tx, gather_bits);
    alloc_store_bits(tx->pool, &tx->phase, &tx->bits);
    return false;
}

/* Lines that were flushed lately, in their places by address. */
#define FLUSHED_COUNT 16

static void flush_bit_once(struct minl2r_tx *tx, uintptr_t flushed[FLUSHED_COUNT],
                           uint64_t block)
{
    uint64_t index = block_index(&tx->pool->geo, block);
    uintptr_t line = (uintptr_t)pool_bitmap_word(tx->pool, index) / PM_LINE;

    if (flushed[line % FLUSHED_COUNT] == line)
        return;
    flushed[line % FLUSHED_COUNT] = line;
    alloc_flush(tx->pool, &tx->phase, (struct block_run){block, 1});
}

/*
 * Blocks that were swapped in another order than that of their numbers share lines with
 * others than their neighbours: to flush a line again costs more than to swap a block.
 */
static void flush_bits_of_swaps(struct minl2r_tx *tx)
{
    const struct swaps *swaps = &tx->writes.swaps;
    uintptr_t flushed[FLUSHED_COUNT] = {0};

    for (uint32_t i = 0; i < swaps->count; i++)
        flush_bit_once(tx, flushed, swaps->list[i].fresh);
    for (uint32_t i = 0; i < swaps->count; i++)
        if (swaps->list[i].block)
            flush_bit_once(tx, flushed, swaps->list[i].block);
}

static bool flush_run(struct minl2r_tx *tx, struct block_run run, bool allocated)
{
    (void)allocated;
    alloc_flush(tx->pool, &tx->phase, run);
    return true;
}

static void flush_bits(struct minl2r_tx *tx)
{
    flush_bits_of_swaps(tx);
    bits_of_runs(tx, &tx->writes.allocs, true, flush_run);
    bits_of_runs(tx, &tx->writes.frees, false, flush_run);
}

static void store_through_cache(struct minl2r_tx *tx, const struct block_write *write)
{
    for (uint32_t i = 0; i < write->extent_count; i++) {
        const struct extent *e = &write->extents[i];
        const void *dst = pool_at(tx->pool, write->block + e->start);

        if (e->unchanged)
            continue;
        if (e->bytes)
            pm_store(&tx->phase, dst, e->bytes, e->size);
        else
            pm_zero(&tx->phase, dst, e->size);
    }
}

static void store_extents(struct minl2r_tx *tx, const struct block_write *write)
{
    if (write->past_cache)
        pm_store_nt_extents(&tx->phase, pool_at(tx->pool, write->block), write->extents,
                            write->extent_count);
    else
        store_through_cache(tx, write);
}

/* Unchanged bytes are flushed too: whoever stored them may not have. */
static void flush_in_place(struct minl2r_tx *tx)
{
    const struct interval_list *snapshots = &tx->writes.snapshots;
    const struct swaps *swaps = &tx->writes.swaps;

    for (uint32_t i = 0; i < swaps->count && !commit_streams_slots(tx); i++)
        if (!slot_is_own(&swaps->list[i]))
            flush_slot(tx, &swaps->list[i]);
    for (const struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        for (uint32_t i = 0; i < w->extent_count && !w->past_cache; i++)
            pm_flush(&tx->phase, pool_at(tx->pool, w->block + w->extents[i].start),
                     w->extents[i].size);
    for (uint32_t i = 0; i < snapshots->count; i++)
        pm_flush(&tx->phase, pool_at(tx->pool, snapshots->list[i].low),
                 snapshots->list[i].high - snapshots->list[i].low);
}

static void count_swaps(struct minl2r_tx *tx)
{
    const struct swaps *swaps = &tx->writes.swaps;

    pm_count(&tx->stats.blocks_allocated, swaps->count);
    pm_count(&tx->stats.blocks_freed, swaps->freed);
    pm_count(&tx->stats.pointer_swaps, swaps->freed);
}

static void count_commit(struct minl2r_tx *tx)
{
    pm_count(&tx->stats.commits, 1);
    if (tx->writes.swaps.count > 0)
        count_swaps(tx);
    for (uint32_t i = 0; i < tx->writes.allocs.count; i++)
        pm_count(&tx->stats.blocks_allocated, tx->writes.allocs.runs[i].count);
    for (uint32_t i = 0; i < tx->writes.frees.count; i++)
        pm_count(&tx->stats.blocks_freed, tx->writes.frees.runs[i].count);
}

/* Many that are scattered are flushed, those of a line together. */
static void change_slots(struct minl2r_tx *tx)
{
    const struct swaps *swaps = &tx->writes.swaps;

    if (commit_streams_slots(tx)) {
        store_slots(tx, false, pm_store_nt); /* as whole lines */
        return;
    }
    for (uint32_t i = 0; i < swaps->count; i++)
        if (!slot_is_own(&swaps->list[i]))
            store_slot(tx, &swaps->list[i]);
}

void commit_store_in_place(struct minl2r_tx *tx)
{
    bool bits_streamed = !changes_bits(tx) || change_bits(tx);

    change_slots(tx);
    for (const struct block_write *w = tx->writes.in_place; w; w = w->next_change)
        store_extents(tx, w);
    if (!bits_streamed)
        flush_bits(tx);
    flush_in_place(tx);
    count_commit(tx); /* while it drains */
}

int commit_logged(struct minl2r_tx *tx)
{
    int result = log_and_store_fresh(tx);

    if (result < 0)
        return result;
    commit_store_in_place(tx);
    result = commit_order_stored(tx); /* I3: what is in place, then settled */
    /* Nothing logged: every byte was there already, or fresh. */
    if (result == 0 && tx->cursor.index > 0)
        result = commit_settle(tx);
    return result;
}
