/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/crash/mutants.h"

#include "libminl2r/alloc.h"
#include "libminl2r/lane.h"
#include "libminl2r/log.h"

static enum mutant mutant;
static bool lane_is_live[8];

void mutate(enum mutant new)
{
    mutant = new;
}

/* ---- Log ------------------------------------------------------------------------- */

void __real_log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size);
void __wrap_log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size);
void __wrap_log_append_undo(struct log_writer *writer, uint64_t target, uint64_t size)
{
    if (mutant == MUTANT_RANGE_NOT_LOGGED && size > 0)
        return;
    if (mutant == MUTANT_RECORD_TOO_SHORT && size > 0)
        size--;
    __real_log_append_undo(writer, target, size);
}

void __real_log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                              struct block_run run);
void __wrap_log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                              struct block_run run);
void __wrap_log_append_blocks(struct log_writer *writer, enum pm_record_type type,
                              struct block_run run)
{
    if (mutant != MUTANT_BLOCKS_NOT_LOGGED)
        __real_log_append_blocks(writer, type, run);
}

void __real_log_append_swap(struct log_writer *writer, uint64_t slot,
                            struct pm_swap swap);
void __wrap_log_append_swap(struct log_writer *writer, uint64_t slot,
                            struct pm_swap swap);
void __wrap_log_append_swap(struct log_writer *writer, uint64_t slot,
                            struct pm_swap swap)
{
    if (mutant != MUTANT_SWAP_NOT_LOGGED)
        __real_log_append_swap(writer, slot, swap);
}

void __real_log_end(struct log_writer *writer);
void __wrap_log_end(struct log_writer *writer);
void __wrap_log_end(struct log_writer *writer)
{
    if (mutant != MUTANT_SNAPSHOT_NOT_LOGGED)
        __real_log_end(writer);
}

/* Of a batch, only the header is hashed. Nothing else has a seed. */
uint64_t __real_pm_hash(const void *data, size_t size, uint64_t seed);
uint64_t __wrap_pm_hash(const void *data, size_t size, uint64_t seed);
uint64_t __wrap_pm_hash(const void *data, size_t size, uint64_t seed)
{
    size_t header = sizeof(struct pm_batch) - sizeof(uint64_t);

    if (mutant == MUTANT_TORN_BATCH_IS_VALID && seed != 0 && size > header)
        size = header;
    return __real_pm_hash(data, size, seed);
}

/* ---- Lanes ----------------------------------------------------------------------- */

int __real_lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                       struct pm_phase *phase);
int __wrap_lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                       struct pm_phase *phase);
int __wrap_lane_settle(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                       struct pm_phase *phase)
{
    if (mutant == MUTANT_NOT_SETTLED)
        return 0;
    return __real_lane_settle(pool, lane, generation, phase);
}

void __real_lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                               uint64_t generation, struct pm_phase *phase);
void __wrap_lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                               uint64_t generation, struct pm_phase *phase);
void __wrap_lane_store_settled(struct minl2r_pool *pool, struct lane *lane,
                               uint64_t generation, struct pm_phase *phase)
{
    if (mutant == MUTANT_ONLY_LIVE_LANES_SETTLED && !lane_is_live[lane->index])
        return;
    if (mutant == MUTANT_SETTLED_MOVES_BACK)
        generation -= 2;
    __real_lane_store_settled(pool, lane, generation, phase);
}

void __real_lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                           struct pm_phase *phase, uint64_t word);
void __wrap_lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                           struct pm_phase *phase, uint64_t word);
void __wrap_lane_note_word(struct minl2r_pool *pool, const struct lane *lane,
                           struct pm_phase *phase, uint64_t word)
{
    if (mutant != MUTANT_WORD_NOT_NOTED)
        __real_lane_note_word(pool, lane, phase, word);
}

/* ---- Blocks ---------------------------------------------------------------------- */

void __real_alloc_release(struct minl2r_pool *pool, struct block_run run);
void __wrap_alloc_release(struct minl2r_pool *pool, struct block_run run);
void __wrap_alloc_release(struct minl2r_pool *pool, struct block_run run)
{
    if (mutant != MUTANT_NOT_RELEASED)
        __real_alloc_release(pool, run);
}

void __real_alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                          struct block_run run);
void __wrap_alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                          struct block_run run);
void __wrap_alloc_publish(struct minl2r_pool *pool, struct pm_phase *phase,
                          struct block_run run)
{
    if (mutant != MUTANT_NOT_PUBLISHED && mutant != MUTANT_FREE_NOT_UNDONE)
        __real_alloc_publish(pool, phase, run);
}

void __real_alloc_release_freed(struct minl2r_pool *pool, struct block_run run);
void __real_alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                            struct block_run run);
void __wrap_alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                            struct block_run run);
void __wrap_alloc_unpublish(struct minl2r_pool *pool, struct pm_phase *phase,
                            struct block_run run)
{
    if (mutant == MUTANT_ALLOC_NOT_UNDONE)
        return;
    __real_alloc_unpublish(pool, phase, run);
    if (mutant == MUTANT_FREED_TOO_EARLY)
        __real_alloc_release_freed(pool, run);
}

void __wrap_alloc_release_freed(struct minl2r_pool *pool, struct block_run run);
void __wrap_alloc_release_freed(struct minl2r_pool *pool, struct block_run run)
{
    if (mutant != MUTANT_FREED_TOO_EARLY)
        __real_alloc_release_freed(pool, run);
}

void __real_alloc_flush(struct minl2r_pool *pool, struct pm_phase *phase,
                        struct block_run run);
void __wrap_alloc_flush(struct minl2r_pool *pool, struct pm_phase *phase,
                        struct block_run run);
void __wrap_alloc_flush(struct minl2r_pool *pool, struct pm_phase *phase,
                        struct block_run run)
{
    if (mutant != MUTANT_BITS_NOT_FLUSHED)
        __real_alloc_flush(pool, phase, run);
}

void __real_alloc_reload(struct minl2r_pool *pool);
void __wrap_alloc_reload(struct minl2r_pool *pool);
void __wrap_alloc_reload(struct minl2r_pool *pool)
{
    if (mutant != MUTANT_TWINS_NOT_RELOADED)
        __real_alloc_reload(pool);
}

/* ---- Recovery -------------------------------------------------------------------- */

int __real_log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live);
int __wrap_log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live);
int __wrap_log_validate(struct minl2r_pool *pool, uint32_t lane, struct log_live *live)
{
    int result = __real_log_validate(pool, lane, live);

    lane_is_live[lane] = live->last != 0;
    if (mutant == MUTANT_OTHER_LANES_FORGOTTEN && lane > 0)
        *live = (struct log_live){0};
    return result;
}

/* The batches of a lane's log, as recovery asks for them: newest first. */
uint64_t __real_log_visit_batch(struct minl2r_pool *pool, uint64_t offset,
                                uint8_t *scratch, log_visit_fn *visit, void *arg);
uint64_t __wrap_log_visit_batch(struct minl2r_pool *pool, uint64_t offset,
                                uint8_t *scratch, log_visit_fn *visit, void *arg);
uint64_t __wrap_log_visit_batch(struct minl2r_pool *pool, uint64_t offset,
                                uint8_t *scratch, log_visit_fn *visit, void *arg)
{
    const struct pm_batch *batch = pool_at(pool, offset);
    uint64_t prev = batch->prev;

    if (mutant == MUTANT_NEWEST_BATCH_NOT_UNDONE && prev != 0)
        return prev;
    if (mutant == MUTANT_OLDEST_FIRST && prev != 0) { /* of two */
        __real_log_visit_batch(pool, prev, scratch, visit, arg);
        __real_log_visit_batch(pool, offset, scratch, visit, arg);
        return 0;
    }
    return __real_log_visit_batch(pool, offset, scratch, visit, arg);
}
