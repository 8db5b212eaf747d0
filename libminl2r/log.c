/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/log.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "libminl2r/error.h"

/* A batch is at least a line: header and one record of any type but a long PM_UNDO. */
#define RECORD_SIZE_MIN LOG_RECORD_SIZE(8)
#define RECORDS_PER_BATCH_MAX                                                          \
    ((PM_BATCH_SIZE_MAX - sizeof(struct pm_batch)) / sizeof(struct pm_record))

static uint64_t line_up(uint64_t size)
{
    return (size + PM_LINE - 1) & ~(uint64_t)(PM_LINE - 1);
}

static uint64_t batch_seed(const struct minl2r_pool *pool, uint32_t lane)
{
    return pool->checksum_seed + lane;
}

/* ---- Space ----------------------------------------------------------------------- */

/*
 * What a batch of PM_BATCH_SIZE_MAX does not use for records is at most 80 bytes: its
 * header, less than RECORD_SIZE_MIN bytes or a PM_SWAP that did not fit, and the header
 * of the second half of a split PM_UNDO. A part loses its link line, less than
 * a line before it, and one short batch. Both are rounded up.
 */
#define BATCH_LOSS 96
#define PART_LOSS 320

uint64_t log_space_needed(uint64_t records_size)
{
    return records_size + (records_size / 4000 + 2) * BATCH_LOSS;
}

uint64_t log_part_space(uint64_t size)
{
    return size > PART_LOSS ? size - PART_LOSS : 0;
}

/* ---- Writing --------------------------------------------------------------------- */

void log_cursor_init(struct log_cursor *cursor, const struct minl2r_pool *pool,
                     uint32_t lane, uint64_t generation)
{
    uint64_t offset = pool_log_offset(pool, lane);

    *cursor = (struct log_cursor){
        .offset = offset,
        .part_end = offset + pool->geo.log_size - PM_LINE,
        .generation = generation,
        .lane = lane,
    };
}

/* Streams a batch of `size` bytes in `bytes`, which has room for the padding. */
static void write_batch(struct log_writer *writer, uint8_t *bytes, uint32_t size)
{
    struct log_cursor *cursor = writer->cursor;
    struct pm_batch *batch = (struct pm_batch *)(void *)bytes;
    uint64_t padded = line_up(size);

    memset(bytes + size, 0, padded - size);
    *batch = (struct pm_batch){
        .generation = cursor->generation,
        .prev = cursor->index > 0 ? cursor->prev : writer->changes_hash,
        .index = cursor->index,
        .size = size,
    };
    batch->checksum =
        pm_hash(bytes + sizeof(batch->checksum), size - sizeof(batch->checksum),
                batch_seed(writer->pool, cursor->lane));
    pm_store_nt(writer->phase, pool_at(writer->pool, cursor->offset), bytes, padded);
    pm_count(&writer->phase->stats->log_bytes, padded);
    cursor->prev = cursor->offset;
    cursor->offset += padded;
    cursor->index++;
}

/* Goes on in the next segment, which was reserved when the records were announced. */
static void enter_segment(struct log_writer *writer)
{
    struct log_cursor *cursor = writer->cursor;

    struct block_run run = writer->segments[cursor->segment++];
    struct pm_record link = {PM_LINK, (uint32_t)run.count, run.offset};
    _Alignas(PM_LINE) uint8_t bytes[PM_LINE];

    memcpy(bytes + sizeof(struct pm_batch), &link, sizeof(link));
    write_batch(writer, bytes, sizeof(struct pm_batch) + sizeof(link));
    cursor->offset = run.offset;
    cursor->part_end =
        run.offset + (run.count << writer->pool->geo.block_shift) - PM_LINE;
}

/* Bytes that the batch begun may still take. */
static uint64_t room(const struct log_writer *writer)
{
    return writer->limit - writer->size;
}

/* Starts over where there is no room: what is written is not used then. */
static void overflow(struct log_writer *writer)
{
    assert(!"log space was reserved");
    writer->overflowed = true;
    log_cursor_init(writer->cursor, writer->pool, writer->cursor->lane,
                    writer->cursor->generation);
}

static void begin_batch(struct log_writer *writer)
{
    if (writer->cursor->part_end - writer->cursor->offset < PM_LINE) {
        if (writer->cursor->segment < writer->segment_count)
            enter_segment(writer);
        else
            overflow(writer);
    }
    uint64_t part_room = writer->cursor->part_end - writer->cursor->offset;

    writer->limit =
        part_room < PM_BATCH_SIZE_MAX ? (uint32_t)part_room : PM_BATCH_SIZE_MAX;
    writer->size = sizeof(struct pm_batch);
}

/* Makes room for `size` bytes, at most those of a line less the header. */
static void make_room(struct log_writer *writer, uint64_t size)
{
    if (writer->size > 0 && room(writer) < size)
        log_end(writer);
    if (writer->size == 0)
        begin_batch(writer);
}

static void put_record(struct log_writer *writer, uint32_t type, uint32_t length,
                       uint64_t target)
{
    struct pm_record record = {type, length, target};

    memcpy(writer->batch + writer->size, &record, sizeof(record));
    writer->size += (uint32_t)sizeof(record);
}

static void put_bytes(struct log_writer *writer, const void *bytes, uint64_t size)
{
    uint64_t padded = LOG_PADDED(size);

    memset(writer->batch + writer->size + padded - 8, 0, 8);
    copy_recent(writer->batch + writer->size, bytes, size);
    writer->size += (uint32_t)padded;
}

static void put_undo(struct log_writer *writer, uint64_t target, uint64_t size)
{
    put_record(writer, PM_UNDO, (uint32_t)size, target);
    put_bytes(writer, pool_at(writer->pool, target), size);
}

/* By far the most: one word's worth. */
static inline void put_undo_of_8(struct log_writer *writer, uint64_t target)
{
    put_record(writer, PM_UNDO, 8, target);
    memcpy(writer->batch + writer->size, pool_at(writer->pool, target), 8);
    writer->size += 8;
}

__attribute__((noinline)) static void begin_with_undo_of_8(struct log_writer *writer,
                                                           uint64_t target)
{
    make_room(writer, RECORD_SIZE_MIN);
    put_undo_of_8(writer, target);
}

__attribute__((noinline)) static void append_pieces(struct log_writer *writer,
                                                    uint64_t target, uint64_t size)
{
    while (size > 0) {
        make_room(writer, RECORD_SIZE_MIN);
        uint64_t piece = (room(writer) - sizeof(struct pm_record)) & ~7ull;

        if (piece > size)
            piece = size;
        put_undo(writer, target, piece);
        target += piece;
        size -= piece;
    }
}

void log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size)
{
    pm_count(&writer->phase->stats->log_payload_bytes, size);
    if (size != 8)
        append_pieces(writer, target, size);
    else if (writer->size == 0 || room(writer) < RECORD_SIZE_MIN)
        begin_with_undo_of_8(writer, target);
    else
        put_undo_of_8(writer, target);
}

uint8_t *log_begin_changes(struct log_writer *writer)
{
    make_room(writer, RECORD_SIZE_MIN);
    return writer->batch + writer->size;
}

void log_end_changes(struct log_writer *writer, const uint8_t *end,
                     uint64_t payload_size, uint64_t hash)
{
    uint32_t size = (uint32_t)(end - writer->batch);

    if (size > writer->limit)
        overflow(writer);
    writer->size = payload_size > 0 && size <= writer->limit ? size : 0;
    writer->changes_hash = hash;
    pm_count(&writer->phase->stats->log_payload_bytes, payload_size);
}

void log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                       struct block_run run)
{
    make_room(writer, sizeof(struct pm_record));
    put_record(writer, type, (uint32_t)run.count, run.offset);
}

void log_append_swap(struct log_writer *writer, uint64_t slot, struct pm_swap swap)
{
    pm_count(&writer->phase->stats->log_payload_bytes, sizeof(slot));
    make_room(writer, LOG_RECORD_SIZE(sizeof(swap)));
    put_record(writer, PM_SWAP, sizeof(slot), slot);
    put_bytes(writer, &swap, sizeof(swap));
}

/* The last ones were stored word by word just now: see copy.h. */
static void put_slots(struct log_writer *writer, const struct swap *swaps,
                      uint32_t count)
{
    uint32_t size = count * (uint32_t)sizeof(*swaps);
    uint32_t before = size > COPY_WORDS_MAX ? size - COPY_WORDS_MAX : 0;
    uint8_t *at = writer->batch + writer->size;

    memcpy(at, swaps, before);
    copy_words(at + before, (const uint8_t *)swaps + before, size - before);
    writer->size += size;
}

void log_append_slots(struct log_writer *writer, const struct swap *swaps,
                      uint32_t count)
{
    pm_count(&writer->phase->stats->log_payload_bytes, count * sizeof(swaps->slot));
    for (uint32_t put; count > 0; swaps += put, count -= put) {
        make_room(writer, sizeof(*swaps));
        put = (uint32_t)(room(writer) / sizeof(*swaps));
        if (put > count)
            put = count;
        put_slots(writer, swaps, put);
    }
}

uint64_t log_hash_changes(const void *bytes, size_t size)
{
    return pm_hash(bytes, size, 0);
}

uint64_t log_hash_in_place(const struct pm_range *ranges, size_t count)
{
    return pm_hash_ranges(ranges, count);
}

void log_end(struct log_writer *writer)
{
    if (writer->size == 0)
        return;
    write_batch(writer, writer->batch, writer->size);
    writer->size = 0;
}

/* ---- Validating ------------------------------------------------------------------ */

static uint64_t payload_size(const struct pm_record *record)
{
    switch (record->type) {
    case PM_UNDO:
    case PM_CHANGE:
        return LOG_PADDED(record->length);
    case PM_SWAP:
    case PM_SLOT:
        return sizeof(struct pm_swap);
    default:
        return 0;
    }
}

static bool swap_is_valid(const struct geometry *geo, const struct pm_record *record,
                          const struct pm_swap *swap)
{
    return record->length == sizeof(uint64_t) &&
           record->target % sizeof(uint64_t) == 0 &&
           is_data(geo, record->target, sizeof(uint64_t)) &&
           (swap->old_block == 0 || is_blocks(geo, swap->old_block, 1)) &&
           is_blocks(geo, swap->new_block, 1);
}

/* `record` has its payload behind it, in bounds. */
static bool record_is_valid(const struct geometry *geo, const struct pm_record *record)
{
    switch (record->type) {
    case PM_UNDO:
    case PM_CHANGE:
        return is_data(geo, record->target, record->length);
    case PM_ALLOC:
    case PM_FREE:
    case PM_LINK:
        return is_blocks(geo, record->target, record->length);
    case PM_SWAP:
    case PM_SLOT:
        return swap_is_valid(geo, record, (const struct pm_swap *)(record + 1));
    default:
        return false;
    }
}

/* The record at `at` of a batch of `size` bytes, or NULL if it does not fit in. */
static const struct pm_record *record_at(const struct pm_batch *batch, uint64_t at,
                                         uint64_t size)
{
    const struct pm_record *record =
        (const struct pm_record *)(const void *)((const uint8_t *)batch + at);

    if (size - at < sizeof(*record) ||
        size - at - sizeof(*record) < payload_size(record))
        return NULL;
    return record;
}

static bool begins_with(const struct pm_batch *batch, enum pm_record_type type)
{
    return ((const struct pm_record *)(batch + 1))->type == type;
}

/* Does a log that begins with `batch` belong to a slot commit? */
static bool begins_slot_commit(const struct pm_batch *batch)
{
    return begins_with(batch, PM_CHANGE) || begins_with(batch, PM_SLOT);
}

/* A slot commit's log has records of its own, in this order. */
static bool record_fits_log(const struct pm_record *record, bool of_slot_commit,
                            uint32_t batch_index, uint32_t type_before)
{
    if (!of_slot_commit)
        return record->type != PM_CHANGE && record->type != PM_SLOT;
    if (record->type == PM_CHANGE)
        return batch_index == 0 && (type_before == 0 || type_before == PM_CHANGE);
    return record->type == PM_SLOT || record->type == PM_ALLOC;
}

static int bad_record(const struct pm_batch *batch, uint32_t lane, uint64_t offset,
                      uint64_t at)
{
    return error_set(
        EUCLEAN,
        "log of lane %u: batch %u at offset %llu: bad record at byte %llu (I7)", lane,
        batch->index, (unsigned long long)offset, (unsigned long long)at);
}

/* Validates the records of a batch whose checksum is right, and counts them. */
static int validate_records(const struct minl2r_pool *pool, uint32_t lane,
                            uint64_t offset, struct log_live *live)
{
    const struct pm_batch *batch = pool_at(pool, offset);
    uint64_t size = batch->size;
    uint64_t at = sizeof(*batch);
    uint32_t type_before = 0;

    if (batch->index == 0)
        live->of_slot_commit = begins_slot_commit(batch);
    while (at < size) {
        const struct pm_record *record = record_at(batch, at, size);

        if (!record || !record_is_valid(&pool->geo, record) ||
            !record_fits_log(record, live->of_slot_commit, batch->index, type_before))
            return bad_record(batch, lane, offset, at);
        type_before = record->type;
        uint64_t next = at + sizeof(*record) + payload_size(record);

        if (record->type == PM_LINK && (at != sizeof(*batch) || next != size))
            return bad_record(batch, lane, offset, at);
        live->records++;
        at = next;
    }
    return 0;
}

/* In batch 0 a hash is there instead, if it has PM_CHANGEs. */
static bool prev_is_valid(const struct pm_batch *batch, const struct log_cursor *walk)
{
    return batch->prev == walk->prev ||
           (batch->index == 0 && begins_with(batch, PM_CHANGE));
}

/* Where the batch that `walk` expects next is not valid, the log ends. */
static bool batch_is_valid(const struct minl2r_pool *pool,
                           const struct log_cursor *walk)
{
    const struct pm_batch *batch = pool_at(pool, walk->offset);
    uint64_t limit = walk->part_end + PM_LINE - walk->offset;
    uint64_t size = batch->size;

    if (limit > PM_BATCH_SIZE_MAX)
        limit = PM_BATCH_SIZE_MAX;
    return size > sizeof(*batch) && size % 8 == 0 && size <= limit &&
           batch->index == walk->index && prev_is_valid(batch, walk) &&
           batch->generation == walk->generation &&
           batch->checksum == pm_hash(&batch->generation,
                                      size - sizeof(batch->checksum),
                                      batch_seed(pool, walk->lane));
}

uint64_t log_first_generation(const struct minl2r_pool *pool, uint32_t lane)
{
    const struct pm_batch *batch = pool_at(pool, pool_log_offset(pool, lane));
    uint64_t generation = batch->generation;
    struct log_cursor walk;

    log_cursor_init(&walk, pool, lane, generation);
    return batch_is_valid(pool, &walk) ? generation : 0;
}

/* Steps over the valid batch at walk->offset, into the segment that it may link to. */
static int walk_on(struct minl2r_pool *pool, struct log_cursor *walk)
{
    const struct pm_batch *batch = pool_at(pool, walk->offset);
    const struct pm_record *record = (const struct pm_record *)(batch + 1);

    walk->prev = walk->offset;
    walk->index++;
    if (record->type != PM_LINK) {
        walk->offset += line_up(batch->size);
        return 0;
    }
    struct block_run run = {record->target, record->length};

    if (!alloc_claim_segment(pool, run))
        return error_set(
            EUCLEAN,
            "log of lane %u: batch %u at offset %llu: links to blocks in use (I7)",
            walk->lane, batch->index, (unsigned long long)walk->offset);
    walk->offset = run.offset;
    walk->part_end = run.offset + (run.count << pool->geo.block_shift) - PM_LINE;
    return 0;
}

/* No pool gets so far. */
#define GENERATION_MAX (UINT64_MAX / 2)

/*
 * I4: that of the attempt that a crash may have cut off. At the start of the log, whole
 * or torn, is its number or that of the last generation that was logged, since a word
 * arrives whole; if none was logged since the lane was settled, it has the number after
 * `settled`.
 */
static uint64_t newest_generation(uint64_t settled, uint64_t at_start)
{
    return (at_start > settled ? at_start : settled) + 1;
}

int log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live)
{
    const struct pm_batch *first = pool_at(pool, pool_log_offset(pool, lane));
    uint64_t settled = pm_load64(&pool_lane(pool, lane)->settled);
    uint64_t generation = first->generation;
    struct log_cursor walk;
    int result = 0;

    *live = (struct log_live){.newest = newest_generation(settled, generation)};
    if (settled >= GENERATION_MAX)
        return error_set(EUCLEAN,
                         "lane %u: settled generation %llu is not possible (I4)", lane,
                         (unsigned long long)settled);
    if (generation >= GENERATION_MAX)
        return error_set(EUCLEAN,
                         "log of lane %u: generation %llu is not possible (I4)", lane,
                         (unsigned long long)generation);
    if (generation <= settled)
        return 0;
    log_cursor_init(&walk, pool, lane, generation);
    while (result == 0 && walk.offset <= walk.part_end && batch_is_valid(pool, &walk)) {
        live->batches++;
        live->last = walk.offset;
        live->generation = walk.generation;
        result = validate_records(pool, lane, walk.offset, live);
        if (result == 0)
            result = walk_on(pool, &walk);
    }
    return result;
}

/* ---- Visiting -------------------------------------------------------------------- */

/* Copies a validated batch to `scratch` and finds its records. */
static uint32_t load_batch(const struct minl2r_pool *pool, uint64_t offset,
                           uint8_t *scratch, uint16_t at[RECORDS_PER_BATCH_MAX])
{
    uint64_t size = ((const struct pm_batch *)pool_at(pool, offset))->size;
    uint32_t count = 0;

    memcpy(scratch, pool_at(pool, offset), size);
    for (uint64_t next = sizeof(struct pm_batch); next < size;) {
        const struct pm_record *record =
            record_at((const struct pm_batch *)(void *)scratch, next, size);

        at[count++] = (uint16_t)next;
        next += sizeof(*record) + payload_size(record);
    }
    return count;
}

uint64_t log_visit_batch(struct minl2r_pool *pool, uint64_t offset, uint8_t *scratch,
                         log_visit_fn *visit, void *arg)
{
    uint16_t at[RECORDS_PER_BATCH_MAX];
    uint32_t count = load_batch(pool, offset, scratch, at);

    while (count-- > 0) {
        const struct pm_record *record =
            (const struct pm_record *)(void *)(scratch + at[count]);

        visit(arg, record, record + 1);
    }
    const struct pm_batch *batch = (const struct pm_batch *)(void *)scratch;

    return batch->index > 0 ? batch->prev : 0;
}

struct target_check {
    const struct minl2r_pool *pool;
    bool bad;
};

static struct block_run blocks_of_range(const struct geometry *geo, uint64_t offset,
                                        uint64_t size)
{
    uint64_t first = block_index(geo, offset);
    uint64_t last = block_index(geo, offset + size - 1);

    return (struct block_run){block_offset(geo, first), last - first + 1};
}

static void check_target(void *arg, const struct pm_record *record, const void *payload)
{
    struct target_check *check = arg;
    const struct pm_swap *swap = payload;
    struct block_run run = {record->target, record->length};

    if (record->type == PM_LINK)
        return;
    bool is_swap = record->type == PM_SWAP || record->type == PM_SLOT;

    if (is_swap || record->type == PM_UNDO || record->type == PM_CHANGE)
        run = blocks_of_range(&check->pool->geo, record->target, record->length);
    check->bad |= alloc_is_claimed(check->pool, run);
    if (!is_swap)
        return;
    check->bad |= alloc_is_claimed(check->pool, (struct block_run){swap->new_block, 1});
    if (swap->old_block != 0)
        check->bad |=
            alloc_is_claimed(check->pool, (struct block_run){swap->old_block, 1});
}

int log_validate_targets(struct minl2r_pool *pool, uint32_t lane,
                         const struct log_live *live, uint8_t *scratch)
{
    struct target_check check = {pool, false};

    for (uint64_t offset = live->last; offset != 0 && !check.bad;)
        offset = log_visit_batch(pool, offset, scratch, check_target, &check);
    if (check.bad)
        return error_set(EUCLEAN, "log of lane %u: a record changes a log (I7)", lane);
    return 0;
}
