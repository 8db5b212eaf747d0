/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/crash/operations.h"

#include <errno.h>
#include <string.h>

#define TRY(call)                                                                      \
    do {                                                                               \
        if ((call) < 0)                                                                \
            return __LINE__;                                                           \
    } while (0)

/* Queues `size` new bytes. */
static int write_new(struct minl2r_tx *tx, const void *dst, uint64_t size)
{
    uint8_t bytes[sizeof(((struct side *)0)->area)];

    run_new_bytes(bytes, size);
    return minl2r_tx_write(tx, dst, bytes, size);
}

static int write_new_block(struct minl2r_tx *tx, const uint64_t *slot, uint32_t offset,
                           uint32_t size)
{
    uint8_t bytes[BED_BLOCK_SIZE];

    run_new_bytes(bytes, size);
    return minl2r_tx_write_block(tx, slot, offset, bytes, size);
}

static int write_new_fresh(struct minl2r_pool *pool, struct minl2r_tx *tx,
                           const void *dst, uint64_t size)
{
    uint8_t bytes[BED_BLOCK_SIZE];

    run_new_bytes(bytes, size);
    run_note_loose(pool, dst, size);
    return minl2r_tx_write_fresh(tx, dst, bytes, size);
}

static void store_new(struct minl2r_pool *pool, const void *dst, uint64_t size)
{
    uint8_t bytes[2 * BED_BLOCK_SIZE];

    run_new_bytes(bytes, size);
    shadow_store(&pool->pm, dst, bytes, size);
}

static const uint64_t *find_hole(const struct side *side)
{
    uint32_t i = 6;

    while (i < 14 && side->slots[i] != 0)
        i++;
    return &side->slots[i];
}

/* A run in use, or the last place for one. */
static const uint64_t *find_run(const struct side *side)
{
    uint32_t i = 0;

    while (i < 7 && side->runs[i] == 0)
        i++;
    return &side->runs[i];
}

static const uint64_t *find_no_run(const struct side *side)
{
    uint32_t i = 0;

    while (i < 7 && side->runs[i] != 0)
        i++;
    return &side->runs[i];
}

/* ---- Bytes ----------------------------------------------------------------------- */

/* One write is a whole transaction. */
static int write_alone(struct minl2r_pool *pool, const void *dst, uint64_t size)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, dst, size));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int write_word(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, &side->words[1], 8);
}

static int write_half_word(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, (const uint8_t *)&side->words[2] + 4, 4);
}

static int write_unaligned_word(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, side->bytes + 3, 8);
}

static int write_three_bytes(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, side->bytes + 1, 3);
}

static int write_across_lines(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, side->bytes + 40, 40);
}

static int write_across_blocks(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, side->area + BED_BLOCK_SIZE - 20, BED_BLOCK_SIZE + 50);
}

static int write_ranges(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, &side->words[4], 8));
    TRY(write_new(tx, side->bytes + 5, 1));
    TRY(write_new(tx, side->bytes + 61, 7));
    TRY(write_new(tx, side->area + 800, 9));
    TRY(write_new(tx, &side->words[5], 8)); /* a neighbour of the first */
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* Beside another transaction, so that this one is not the last one's object used again.
 */
static int write_beside_open(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *open, *tx;

    TRY(minl2r_tx_begin(pool, &open));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->bytes + 120, 20));
    TRY(write_new(tx, side->area + 1500, 20));
    TRY(minl2r_tx_commit(tx));
    TRY(minl2r_tx_commit(open));
    return 0;
}

static int write_overlapping(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->bytes + 10, 30));
    TRY(write_new(tx, side->bytes + 15, 5));
    TRY(write_new(tx, side->bytes + 35, 40));
    TRY(minl2r_tx_zero(tx, side->bytes + 30, 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* Bytes that bring nothing new, beside some that do. */
static int write_same_and_new(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write(tx, side->bytes, side->bytes, 20));
    TRY(write_new(tx, side->bytes + 20, 20));
    TRY(minl2r_tx_write(tx, side->bytes + 40, side->bytes + 40, 20));
    TRY(minl2r_tx_write(tx, &side->words[0], &side->words[0], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* The program stored a word directly and did not flush it: now it has to be durable. */
static int write_same(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    store_new(pool, &side->words[6], 8);
    run_note_loose(pool, &side->words[6], 8);
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write(tx, &side->words[6], &side->words[6], 8));
    TRY(minl2r_tx_write(tx, side->bytes + 60, side->bytes + 60, 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int write_word_and_same(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write(tx, side->bytes + 60, side->bytes + 60, 8));
    TRY(write_new(tx, &side->words[7], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int zero(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_zero(tx, side->area + 100, 100));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int zero_word(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_zero(tx, &side->words[8], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int copy(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->area + 1000, 8));
    TRY(minl2r_tx_copy(tx, side->area + 900, side->area + 950, 120));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int store_word(struct minl2r_pool *pool, const struct side *side)
{
    uint64_t value;

    run_new_bytes(&value, sizeof(value));
    TRY(minl2r_store64(pool, &side->words[9], value));
    return 0;
}

static int write_nothing(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t word;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_read(tx, &word, &side->words[0], sizeof(word)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int abort_writes(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->bytes, 100));
    TRY(write_new_block(tx, &side->slots[1], 0, BED_BLOCK_SIZE));
    TRY(write_new_block(tx, find_hole(side), 0, 100));
    TRY(minl2r_tx_abort(tx));
    return 0;
}

/* ---- Working copies -------------------------------------------------------------- */

static int edit_words(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t *words;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_edit(tx, side->words, sizeof(side->words), &words));
    run_new_bytes(&words[3], 8);
    run_new_bytes(&words[20], 16);
    TRY(write_new(tx, &side->words[30], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* Far more is reserved than the lone word needs. */
static int edit_one_word_of_many(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint8_t *copy;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_edit(tx, side->area, sizeof(side->area), &copy));
    run_new_bytes(copy + 256, 8);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int edit_nothing_of_many(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint8_t *copy;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_edit(tx, side->area, sizeof(side->area), &copy));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int edit_over_block(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint8_t *copy;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[1], 0, BED_BLOCK_SIZE));
    TRY(minl2r_tx_edit(tx, pool_at(pool, side->slots[1]), BED_BLOCK_SIZE, &copy));
    run_new_bytes(copy + 8, 16);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* ---- Fresh bytes ----------------------------------------------------------------- */

static int fresh_in_line_of_word(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, &side->words[16], 8));
    TRY(write_new(tx, &side->words[17], 8));
    TRY(write_new_fresh(pool, tx, &side->words[19], 24));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int fresh_in_other_line(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, side->area + 50, 30));
    TRY(write_new_fresh(pool, tx, &side->words[16], 8));
    TRY(write_new(tx, &side->words[17], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int fresh_streamed(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, side->area + 1030, 300));
    TRY(write_new(tx, &side->words[17], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int fresh_and_ranges(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, side->area + 50, 30));
    TRY(write_new(tx, &side->words[17], 8));
    TRY(write_new(tx, side->bytes + 100, 10));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* The fresh line is also changed in place; the fresh block bytes move with the block.
 */
static int fresh_amid_changes(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, &side->words[17], 8));
    TRY(write_new_fresh(pool, tx, &side->words[16], 8));
    TRY(write_new_fresh(pool, tx, pool_at(pool, side->slots[2] + 400), 40));
    TRY(write_new_block(tx, &side->slots[2], 0, 300));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int fresh_alone(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, side->area + 50, 30));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* ---- Blocks by slot -------------------------------------------------------------- */

static int write_block_alone(struct minl2r_pool *pool, const uint64_t *slot,
                             uint32_t offset, uint32_t size)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, slot, offset, size));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int block_word(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[0], 200, 8);
}

static int block_below_half(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[0], 10, BED_BLOCK_SIZE / 2 - 1);
}

static int block_half(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[0], 10, BED_BLOCK_SIZE / 2);
}

static int block_whole(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[1], 0, BED_BLOCK_SIZE);
}

static int block_in_pieces(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[2], 0, 100));
    TRY(write_new_block(tx, &side->slots[2], 150, 100));
    TRY(write_new(tx, pool_at(pool, side->slots[2] + 400), 100));
    TRY(write_new_block(tx, &side->slots[2], 300, 1));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int block_whole_then_part(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, pool_at(pool, side->slots[1]), 20));
    TRY(write_new_block(tx, &side->slots[1], 0, BED_BLOCK_SIZE));
    TRY(write_new_block(tx, &side->slots[1], 60, 8));
    TRY(write_new(tx, pool_at(pool, side->slots[1] + 300), 20));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int blocks_and_ranges(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[1], 0, BED_BLOCK_SIZE));
    TRY(write_new_block(tx, &side->slots[2], 100, 300));
    TRY(write_new_block(tx, &side->slots[4], 100, 9));
    TRY(write_new(tx, &side->words[10], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int hole_part(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, find_hole(side), 100, 20);
}

static int hole_whole_then_part(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *slot = find_hole(side);
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, slot, 0, BED_BLOCK_SIZE));
    TRY(write_new_block(tx, slot, 100, 20));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* A new block of slots, which the transaction fills, too. */
static int hole_in_own_block(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t own;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 1, &own, NULL));
    const uint64_t *slots = pool_at(pool, own);

    TRY(minl2r_tx_zero(tx, slots, BED_BLOCK_SIZE));
    TRY(write_new_block(tx, &slots[0], 0, 100));
    TRY(write_new_block(tx, &slots[9], 0, BED_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, find_hole(side), &own, sizeof(own)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int own_block_in_own_slot(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t own, below;
    uint8_t *copy;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 1, &own, NULL));
    TRY(minl2r_tx_alloc(tx, 1, &below, NULL));
    const uint64_t *slots = pool_at(pool, own);

    TRY(minl2r_tx_zero(tx, slots, BED_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, &slots[5], &below, sizeof(below)));
    TRY(write_new_block(tx, &slots[5], 0, BED_BLOCK_SIZE));
    TRY(write_new_block(tx, &slots[5], 100, 8));
    TRY(minl2r_tx_edit(tx, pool_at(pool, below + 200), 100, &copy));
    run_new_bytes(copy + 16, 8);
    TRY(minl2r_tx_write(tx, find_hole(side), &own, sizeof(own)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* A block moves under a new block of slots, and is changed on the way. */
static int old_block_in_own_slot(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t own;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 1, &own, NULL));
    const uint64_t *slots = pool_at(pool, own);

    TRY(minl2r_tx_zero(tx, slots, BED_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, &slots[1], &side->slots[0], sizeof(own)));
    TRY(write_new_block(tx, &slots[1], 0, BED_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, &side->slots[0], &own, sizeof(own)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* The block would be swapped, but holds a slot that is written: it stays, its fresh
 * block is given up. */
static int slot_in_changed_block(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[3], 128, BED_BLOCK_SIZE - 128));
    TRY(write_new_block(tx, pool_at(pool, side->slots[3] + 64), 0, 100));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* ---- Allocating and freeing ------------------------------------------------------ */

static int alloc_and_store(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool, pool_at(pool, run), 2 * BED_BLOCK_SIZE);
    TRY(minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int alloc_write_and_store(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    TRY(minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run)));
    TRY(write_new(tx, pool_at(pool, run), 8));
    store_new(pool, pool_at(pool, run + 8), 8); /* in the line flushed last */
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int free_run(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *run = find_run(side);
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_free(tx, *run, 2));
    TRY(minl2r_tx_zero(tx, run, sizeof(*run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int alloc_and_free(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *old = find_run(side);
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_free(tx, *old, 2));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool, pool_at(pool, run + 100), 50);
    TRY(minl2r_tx_write(tx, old, &run, sizeof(run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int alloc_and_free_own(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *place = find_no_run(side);
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 5, &run, NULL));
    TRY(write_new(tx, pool_at(pool, run), 3 * BED_BLOCK_SIZE));
    TRY(minl2r_tx_free(tx, run + 2 * BED_BLOCK_SIZE, 3));
    TRY(minl2r_tx_write(tx, place, &run, sizeof(run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int alloc_nothing_left(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    (void)side;
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 5, &run, NULL));
    TRY(write_new(tx, pool_at(pool, run), 100));
    TRY(minl2r_tx_free(tx, run, 5));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* Its bits lie in several words and lines of the bitmap. */
static int alloc_many(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 700, &run, NULL));
    TRY(write_new(tx, pool_at(pool, run + 699 * BED_BLOCK_SIZE), 8));
    TRY(minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int free_in_pieces(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *run = find_run(side);
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_free(tx, *run + BED_BLOCK_SIZE, 1));
    TRY(minl2r_tx_free(tx, *run, 1));
    if (side->slots[5]) {
        TRY(minl2r_tx_free(tx, side->slots[5], 1));
        TRY(minl2r_tx_zero(tx, &side->slots[5], sizeof(side->slots[5])));
    }
    TRY(minl2r_tx_zero(tx, run, sizeof(*run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* One that no other operation needs, if it is still there. */
static int free_block_of_slot(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint32_t i = 4;

    while (i < 15 && side->slots[i] == 0)
        i++;
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->bytes, 20));
    if (i < 15) {
        TRY(write_new(tx, pool_at(pool, side->slots[i]), 20));
        TRY(minl2r_tx_free(tx, side->slots[i], 1));
        TRY(minl2r_tx_zero(tx, &side->slots[i], sizeof(side->slots[i])));
    }
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int slab_object(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t object = 0;

    TRY(minl2r_tx_begin(pool, &tx));
    if (side->object) {
        TRY(minl2r_slab_free(tx, &side->slab, side->object, 100));
    } else {
        TRY(minl2r_slab_alloc(tx, &side->slab, 100, &object));
        TRY(write_new(tx, pool_at(pool, object), 100));
    }
    TRY(minl2r_tx_write(tx, &side->object, &object, sizeof(object)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* More than a block of them, of which some are given back at once. */
static int slab_objects(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t objects[6];

    TRY(minl2r_tx_begin(pool, &tx));
    for (uint32_t i = 0; i < 6; i++) {
        TRY(minl2r_slab_alloc(tx, &side->slab, 120, &objects[i]));
        TRY(write_new(tx, pool_at(pool, objects[i]), 120));
    }
    TRY(minl2r_slab_free(tx, &side->slab, objects[5], 120));
    TRY(minl2r_slab_free(tx, &side->slab, objects[0], 120));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

int operation_create_root(struct minl2r_pool *pool, const struct side *side)
{
    (void)side;
    return minl2r_root(pool, 2 * sizeof(*side)) ? 0 : __LINE__;
}

/* ---- Snapshots ------------------------------------------------------------------- */

static int snapshot(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[10], 64, NULL));
    store_new(pool, &side->words[11], 8);
    shadow_pause();
    store_new(pool, &side->words[12], 40);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshot_and_abort(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[10], 64, NULL));
    store_new(pool, &side->words[11], 8);
    shadow_pause();
    TRY(minl2r_tx_abort(tx));
    return 0;
}

static int snapshot_ranges(struct minl2r_pool *pool, const struct side *side)
{
    const struct minl2r_range ranges[] = {
        {&side->words[2], 8}, {side->bytes + 60, 10}, {side->area + 500, 100}};
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshotv(tx, ranges, 3));
    for (uint32_t i = 0; i < 3; i++)
        store_new(pool, ranges[i].pm, ranges[i].size);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int begin_overlapping(struct minl2r_pool *pool, const struct side *side,
                             struct minl2r_tx **tx)
{
    TRY(minl2r_tx_begin(pool, tx));
    TRY(minl2r_tx_snapshot(*tx, side->bytes, 100, NULL));
    store_new(pool, side->bytes, 80);
    TRY(minl2r_tx_snapshot(*tx, side->bytes + 50, 100, NULL));
    store_new(pool, side->bytes + 50, 100);
    return 0;
}

static int snapshots_overlap(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    int line = begin_overlapping(pool, side, &tx);

    if (line != 0)
        return line;
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshots_overlap_and_abort(struct minl2r_pool *pool,
                                       const struct side *side)
{
    struct minl2r_tx *tx;
    int line = begin_overlapping(pool, side, &tx);

    if (line != 0)
        return line;
    TRY(minl2r_tx_abort(tx));
    return 0;
}

static int snapshot_and_write(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, side->bytes, 40, NULL));
    TRY(write_new(tx, side->bytes + 8, 16));
    store_new(pool, side->bytes, 20);
    TRY(write_new(tx, &side->words[1], 8));
    TRY(write_new_block(tx, &side->slots[1], 0, BED_BLOCK_SIZE));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshot_in_swapped_block(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    const void *block = pool_at(pool, side->slots[0]);

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, block, 64, NULL));
    store_new(pool, block, 64);
    TRY(write_new_block(tx, &side->slots[0], 100, 300));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* What was allocated just now is logged like all else. */
static int snapshot_of_own_block(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool, pool_at(pool, run), 100);
    TRY(minl2r_tx_snapshot(tx, pool_at(pool, run + 130), 100, NULL));
    store_new(pool, pool_at(pool, run + 140), 80);
    TRY(minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* Everything that abort has to give back, at once. */
static int abort_all_kinds(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[1], 0, BED_BLOCK_SIZE));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool, pool_at(pool, run), 700);
    TRY(minl2r_tx_snapshot(tx, side->area, 200, NULL));
    store_new(pool, side->area, 200);
    TRY(minl2r_tx_free(tx, *find_run(side), 2));
    TRY(write_new(tx, side->bytes, 100));
    TRY(write_new_fresh(pool, tx, side->area + 600, 100));
    TRY(minl2r_tx_abort(tx));
    return 0;
}

/* ---- Logs that grow -------------------------------------------------------------- */

static int write_more_than_log(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    for (uint32_t at = 0; at < sizeof(side->area); at += 16)
        TRY(write_new(tx, side->area + at, 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int begin_large_snapshots(struct minl2r_pool *pool, const struct side *side,
                                 struct minl2r_tx **tx)
{
    const uint8_t *block = pool_at(pool, side->slots[1]);

    TRY(minl2r_tx_begin(pool, tx));
    TRY(minl2r_tx_snapshot(*tx, side->area, sizeof(side->area), NULL));
    store_new(pool, side->area + 500, 100);
    TRY(minl2r_tx_snapshot(*tx, side->bytes, sizeof(side->bytes), NULL));
    store_new(pool, side->bytes, 100);
    TRY(minl2r_tx_snapshot(*tx, block, BED_BLOCK_SIZE, NULL));
    store_new(pool, block + 300, 100);
    return 0;
}

static int snapshot_more_than_log(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    int line = begin_large_snapshots(pool, side, &tx);

    if (line != 0)
        return line;
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshot_more_than_log_and_abort(struct minl2r_pool *pool,
                                            const struct side *side)
{
    struct minl2r_tx *tx;
    int line = begin_large_snapshots(pool, side, &tx);

    if (line != 0)
        return line;
    TRY(minl2r_tx_abort(tx));
    return 0;
}

/* ---- All ------------------------------------------------------------------------- */

#define OPERATION(call)                                                                \
    {                                                                                  \
#call, call                                                                    \
    }

const struct operation operations[] = {
    OPERATION(write_word),
    OPERATION(write_half_word),
    OPERATION(write_unaligned_word),
    OPERATION(write_three_bytes),
    OPERATION(write_across_lines),
    OPERATION(write_across_blocks),
    OPERATION(write_ranges),
    OPERATION(write_beside_open),
    OPERATION(write_overlapping),
    OPERATION(write_same_and_new),
    OPERATION(write_same),
    OPERATION(write_word_and_same),
    OPERATION(zero),
    OPERATION(zero_word),
    OPERATION(copy),
    OPERATION(store_word),
    OPERATION(write_nothing),
    OPERATION(abort_writes),
    OPERATION(edit_words),
    OPERATION(edit_one_word_of_many),
    OPERATION(edit_nothing_of_many),
    OPERATION(edit_over_block),
    OPERATION(fresh_in_line_of_word),
    OPERATION(fresh_in_other_line),
    OPERATION(fresh_streamed),
    OPERATION(fresh_and_ranges),
    OPERATION(fresh_amid_changes),
    OPERATION(fresh_alone),
    OPERATION(block_word),
    OPERATION(block_below_half),
    OPERATION(block_half),
    OPERATION(block_whole),
    OPERATION(block_in_pieces),
    OPERATION(block_whole_then_part),
    OPERATION(blocks_and_ranges),
    OPERATION(hole_part),
    OPERATION(hole_whole_then_part),
    OPERATION(hole_in_own_block),
    OPERATION(own_block_in_own_slot),
    OPERATION(old_block_in_own_slot),
    OPERATION(slot_in_changed_block),
    OPERATION(alloc_and_store),
    OPERATION(alloc_write_and_store),
    OPERATION(free_run),
    OPERATION(alloc_and_free),
    OPERATION(alloc_and_free_own),
    OPERATION(alloc_nothing_left),
    OPERATION(alloc_many),
    OPERATION(free_in_pieces),
    OPERATION(free_block_of_slot),
    OPERATION(slab_object),
    OPERATION(slab_objects),
    OPERATION(snapshot),
    OPERATION(snapshot_and_abort),
    OPERATION(snapshot_ranges),
    OPERATION(snapshots_overlap),
    OPERATION(snapshots_overlap_and_abort),
    OPERATION(snapshot_and_write),
    OPERATION(snapshot_in_swapped_block),
    OPERATION(snapshot_of_own_block),
    OPERATION(abort_all_kinds),
    OPERATION(write_more_than_log),
    OPERATION(snapshot_more_than_log),
    OPERATION(snapshot_more_than_log_and_abort),
};
const struct operation *find_operation(const char *name)
{
    uint32_t i = 0;

    while (strcmp(operations[i].name, name) != 0)
        i++;
    return &operations[i];
}

const uint32_t operation_count = sizeof(operations) / sizeof(operations[0]);
