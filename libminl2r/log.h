/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.h - records and batches of one lane: encode, validate, walk. See layout.h for the
 * bytes.
 *
 * A log is the lane's log area followed by segments, which are reserved blocks. The
 * last line of each part is kept for the batch that links to the next part. No tail is
 * stored: a log ends where validation stops.
 */
#ifndef MINL2R_LOG_H
#define MINL2R_LOG_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "libminl2r/alloc.h"
#include "libminl2r/copy.h"
#include "libminl2r/pool.h"
#include "libminl2r/swaps.h"

/* Bytes that a record takes in a batch. */
#define LOG_PADDED(length) (((uint64_t)(length) + 7) & ~7ull)
#define LOG_RECORD_SIZE(length) (sizeof(struct pm_record) + LOG_PADDED(length))

/* Where the next batch of one generation goes. */
struct log_cursor {
    uint64_t offset;   /* of the next batch */
    uint64_t part_end; /* of the part it lies in, link line excluded */
    uint64_t prev;     /* offset of the last batch written; 0: none */
    uint64_t generation;
    uint32_t lane;
    uint32_t index;   /* of the next batch */
    uint32_t segment; /* segments entered so far */
};

/* Writes batches: gathers records in `batch`, streams each full batch. */
struct log_writer {
    struct minl2r_pool *pool;
    struct pm_phase *phase;
    struct log_cursor *cursor;
    const struct block_run *segments; /* reserved for this log, in order of use */
    uint32_t segment_count;
    uint8_t *batch;        /* PM_BATCH_SIZE_MAX bytes of DRAM */
    uint32_t size;         /* of `batch`; 0: none begun */
    uint32_t limit;        /* bytes that the batch begun may have */
    uint64_t changes_hash; /* for batch 0 */
    bool overflowed;       /* reserved too little: the log must not be used */
};

void log_cursor_init(struct log_cursor *cursor, const struct minl2r_pool *pool,
                     uint32_t lane, uint64_t generation);

/* Append records. log_end() streams the last batch; a fence must follow (I1, I2). */
void log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size);
void log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                       struct block_run run);
void log_append_swap(struct log_writer *writer, uint64_t slot, struct pm_swap swap);

/*
 * The same of a slot commit: changes first, which have to fit into one batch, then
 * slots. The records of changes are put where log_begin_changes() says, one behind the
 * other; log_end_changes() takes their end, how many bytes they save, and the hash of
 * what they bring.
 */
uint8_t *log_begin_changes(struct log_writer *writer);
void log_end_changes(struct log_writer *writer, const uint8_t *end,
                     uint64_t payload_size, uint64_t hash);
void log_append_slots(struct log_writer *writer, const struct swap *swaps,
                      uint32_t count);
void log_end(struct log_writer *writer);

static inline uint8_t *log_put_change(uint8_t *at, uint64_t target, const uint8_t *old,
                                      uint32_t size)
{
    struct pm_record record = {PM_CHANGE, size, target};
    uint64_t padded = LOG_PADDED(size);

    memcpy(at, &record, sizeof(record));
    at += sizeof(record);
    if (size == 8) { /* by far the most */
        memcpy(at, old, 8);
        return at + 8;
    }
    memset(at + padded - 8, 0, 8);
    copy_recent(at, old, size);
    return at + padded;
}

/* The hash of all that PM_CHANGEs bring, in their order; and of what is in place. */
uint64_t log_hash_changes(const void *bytes, size_t size);
uint64_t log_hash_in_place(const struct pm_range *ranges, size_t count);

/*
 * Bytes of log that must be there for `records_size` bytes of records (LOG_RECORD_SIZE
 * each) written as any number of whole batches within one log_end().
 */
uint64_t log_space_needed(uint64_t records_size);

/* Bytes of log that a part of `size` bytes contributes. */
uint64_t log_part_space(uint64_t size);

/*
 * Walks the live log of `lane` forward and validates every batch and record of it,
 * bounds first, checksum second, before anything is used (I7). `last` is the offset of
 * the newest batch, 0 if none is live. Claims the segments in the allocator.
 *
 * Returns -EUCLEAN, with the place, for a batch whose checksum is right and whose
 * content is not: only damage or malice make one.
 */
struct log_live {
    uint64_t newest; /* generation that can have been tried: not above (I4) */
    uint64_t generation;
    uint64_t last;
    uint64_t batches;
    uint64_t records;
    bool of_slot_commit;
};
int log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live);

/* The generation of the batch at the start of the lane's log; 0: no valid one. */
uint64_t log_first_generation(const struct minl2r_pool *pool, uint32_t lane);

/*
 * Second pass, once the logs of all lanes are validated: no record may change a log.
 * -EUCLEAN. `scratch` is as for log_visit_batch().
 */
int log_validate_targets(struct minl2r_pool *pool, uint32_t lane,
                         const struct log_live *live, uint8_t *scratch);

/*
 * Visits the records of the batch at `offset`, newest first, and answers with the
 * offset of the batch before it. `scratch` is PM_BATCH_SIZE_MAX bytes of DRAM that the
 * batch is copied to.
 */
typedef void log_visit_fn(void *arg, const struct pm_record *record,
                          const void *payload);
uint64_t log_visit_batch(struct minl2r_pool *pool, uint64_t offset, uint8_t *scratch,
                         log_visit_fn *visit, void *arg);

#endif
