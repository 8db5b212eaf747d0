/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/library_operations.h"

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

    library_new_bytes(bytes, size);
    return minl2r_tx_write(tx, dst, bytes, size);
}

static int write_new_block(struct minl2r_tx *tx, const uint64_t *slot, uint32_t offset,
                           uint32_t size)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];

    library_new_bytes(bytes, size);
    return minl2r_tx_write_block(tx, slot, offset, bytes, size);
}

static int write_new_fresh(struct minl2r_pool *pool, struct minl2r_tx *tx,
                           const void *dst, uint64_t size)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];

    library_new_bytes(bytes, size);
    library_note_loose(pool, dst, size);
    return minl2r_tx_write_fresh(tx, dst, bytes, size);
}

static void store_new(const void *dst, uint64_t size)
{
    uint8_t bytes[2 * LIBRARY_BLOCK_SIZE];

    library_new_bytes(bytes, size);
    memcpy((void *)(uintptr_t)dst, bytes, size);
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
    return write_alone(pool, side->area + LIBRARY_BLOCK_SIZE - 20,
                       LIBRARY_BLOCK_SIZE + 50);
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

/* What transactions that aborted have brought back. */
static int write_over_aborted(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, &side->words[11], 8));
    TRY(write_new(tx, side->area + 50, 20));
    TRY(minl2r_tx_commit(tx));
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

    store_new(&side->words[6], 8);
    library_note_loose(pool, &side->words[6], 8);
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

    library_new_bytes(&value, sizeof(value));
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
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
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
    library_new_bytes(&words[3], 8);
    library_new_bytes(&words[20], 16);
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
    library_new_bytes(copy + 256, 8);
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
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_edit(tx, pool_at(pool, side->slots[1]), LIBRARY_BLOCK_SIZE, &copy));
    library_new_bytes(copy + 8, 16);
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

/* Not whole in the line of the word. */
static int fresh_across_line_of_word(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, &side->words[22], 32));
    TRY(write_new(tx, &side->words[17], 8));
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
    return write_block_alone(pool, &side->slots[0], 10, LIBRARY_BLOCK_SIZE / 2 - 1);
}

static int block_half(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[0], 10, LIBRARY_BLOCK_SIZE / 2);
}

static int block_above_half(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[0], 10, LIBRARY_BLOCK_SIZE / 2 + 1);
}

static int block_whole(struct minl2r_pool *pool, const struct side *side)
{
    return write_block_alone(pool, &side->slots[1], 0, LIBRARY_BLOCK_SIZE);
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
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(write_new_block(tx, &side->slots[1], 60, 8));
    TRY(write_new(tx, pool_at(pool, side->slots[1] + 300), 20));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int blocks_and_ranges(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
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

/* What a slot commit takes along, where the program promises what that needs. */
static int block_and_words(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(write_new(tx, &side->words[10], 16));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int holes_and_words(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, &side->words[11], 8));
    TRY(write_new(tx, &side->words[13], 5));
    TRY(write_new_block(tx, find_hole(side), 0, LIBRARY_BLOCK_SIZE));
    TRY(write_new_block(tx, &side->slots[1], 40, 300));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int words(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, &side->words[10], 8));
    TRY(write_new(tx, &side->words[12], 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* More places than a lane tells apart, in the order in which it owns them. */
static const uint8_t *one_of_many(const struct side *side, uint32_t i)
{
    return side->area + i / 4 * LIBRARY_BLOCK_SIZE + 200 + i * 16;
}

#define MANY 10

static int many_words(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    for (uint32_t i = 0; i < MANY; i++)
        TRY(write_new(tx, one_of_many(side, i), 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int word_of_many(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, one_of_many(side, MANY - 1), 8);
}

static int word_of_words(struct minl2r_pool *pool, const struct side *side)
{
    return write_alone(pool, &side->words[10], 8);
}

static int store_word_of_words(struct minl2r_pool *pool, const struct side *side)
{
    uint64_t value;

    library_new_bytes(&value, sizeof(value));
    TRY(minl2r_store64(pool, &side->words[11], value));
    return 0;
}

static int fresh_word_of_words(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_fresh(pool, tx, &side->words[10], 8));
    TRY(write_new_block(tx, &side->slots[2], 0, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* A block moves from one slot to another; none is freed. */
static int move_block(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *hole = find_hole(side), zero = 0;
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write(tx, hole, &hole[-1], sizeof(*hole)));
    TRY(minl2r_tx_write(tx, &hole[-1], &zero, sizeof(zero)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int slot_in_block(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *slots = pool_at(pool, side->slots[3]);

    return write_block_alone(pool, &slots[2], 0, LIBRARY_BLOCK_SIZE);
}

/* The block that holds slots is swapped for a copy of it. */
static int copy_holder(struct minl2r_pool *pool, const struct side *side)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];
    struct minl2r_tx *tx;

    memcpy(bytes, pool_at(pool, side->slots[3]), sizeof(bytes));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write_block(tx, &side->slots[3], 0, bytes, sizeof(bytes)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* It is freed with what it names, and nothing in it changes. */
static int free_holder(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *slots = pool_at(pool, side->slots[3]);
    struct minl2r_tx *tx;
    uint64_t own;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 1, &own, NULL));
    TRY(minl2r_tx_zero(tx, pool_at(pool, own), LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, &side->slots[3], &own, sizeof(own)));
    if (slots[2])
        TRY(minl2r_tx_free(tx, slots[2], 1));
    TRY(minl2r_tx_free(tx, pool_offset(pool, slots), 1));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int hole_whole_then_part(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *slot = find_hole(side);
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new_block(tx, slot, 0, LIBRARY_BLOCK_SIZE));
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

    TRY(minl2r_tx_zero(tx, slots, LIBRARY_BLOCK_SIZE));
    TRY(write_new_block(tx, &slots[0], 0, 100));
    TRY(write_new_block(tx, &slots[9], 0, LIBRARY_BLOCK_SIZE));
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

    TRY(minl2r_tx_zero(tx, slots, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, &slots[5], &below, sizeof(below)));
    TRY(write_new_block(tx, &slots[5], 0, LIBRARY_BLOCK_SIZE));
    TRY(write_new_block(tx, &slots[5], 100, 8));
    TRY(minl2r_tx_edit(tx, pool_at(pool, below + 200), 100, &copy));
    library_new_bytes(copy + 16, 8);
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

    TRY(minl2r_tx_zero(tx, slots, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_write(tx, &slots[1], &side->slots[0], sizeof(own)));
    TRY(write_new_block(tx, &slots[1], 0, LIBRARY_BLOCK_SIZE));
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
    TRY(write_new_block(tx, &side->slots[3], 128, LIBRARY_BLOCK_SIZE - 128));
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
    store_new(pool_at(pool, run), 2 * LIBRARY_BLOCK_SIZE);
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
    store_new(pool_at(pool, run + 8), 8); /* in the line flushed last */
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
    store_new(pool_at(pool, run + 100), 50);
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
    TRY(write_new(tx, pool_at(pool, run), 3 * LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_free(tx, run + 2 * LIBRARY_BLOCK_SIZE, 3));
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
    TRY(write_new(tx, pool_at(pool, run + 699 * LIBRARY_BLOCK_SIZE), 8));
    TRY(minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int free_in_pieces(struct minl2r_pool *pool, const struct side *side)
{
    const uint64_t *run = find_run(side);
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_free(tx, *run + LIBRARY_BLOCK_SIZE, 1));
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

static int create_root(struct minl2r_pool *pool, const struct side *side)
{
    (void)side;
    return minl2r_root(pool, LIBRARY_SIDES * sizeof(*side)) ? 0 : __LINE__;
}

/* ---- Snapshots ------------------------------------------------------------------- */

static int snapshot(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[10], 64, NULL));
    store_new(&side->words[11], 8);
    library_pause();
    store_new(&side->words[12], 40);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshot_and_abort(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[10], 64, NULL));
    store_new(&side->words[11], 8);
    library_pause();
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
        store_new(ranges[i].pm, ranges[i].size);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int begin_overlapping(struct minl2r_pool *pool, const struct side *side,
                             struct minl2r_tx **tx)
{
    TRY(minl2r_tx_begin(pool, tx));
    TRY(minl2r_tx_snapshot(*tx, side->bytes, 100, NULL));
    store_new(side->bytes, 80);
    TRY(minl2r_tx_snapshot(*tx, side->bytes + 50, 100, NULL));
    store_new(side->bytes + 50, 100);
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

/* `second` is snapshotted after `first` has been changed. */
static int snapshot_two(struct minl2r_pool *pool, const uint8_t *first,
                        const uint8_t *second, uint64_t size)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, first, size, NULL));
    store_new(first, size);
    TRY(minl2r_tx_snapshot(tx, second, size, NULL));
    store_new(second, size);
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshots_same(struct minl2r_pool *pool, const struct side *side)
{
    return snapshot_two(pool, side->bytes + 20, side->bytes + 20, 24);
}

static int snapshots_adjacent(struct minl2r_pool *pool, const struct side *side)
{
    return snapshot_two(pool, side->bytes + 20, side->bytes + 44, 24);
}

static int snapshot_and_write(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, side->bytes, 40, NULL));
    TRY(write_new(tx, side->bytes + 8, 16));
    store_new(side->bytes, 20);
    TRY(write_new(tx, &side->words[1], 8));
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int snapshot_in_swapped_block(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    const void *block = pool_at(pool, side->slots[0]);

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, block, 64, NULL));
    store_new(block, 64);
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
    store_new(pool_at(pool, run), 100);
    TRY(minl2r_tx_snapshot(tx, pool_at(pool, run + 130), 100, NULL));
    store_new(pool_at(pool, run + 140), 80);
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
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool_at(pool, run), 8);
    store_new(pool_at(pool, run + 700), 16);
    TRY(minl2r_tx_snapshot(tx, side->area, 200, NULL));
    store_new(side->area, 200);
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
    store_new(side->area + 500, 100);
    TRY(minl2r_tx_snapshot(*tx, side->bytes, sizeof(side->bytes), NULL));
    store_new(side->bytes, 100);
    TRY(minl2r_tx_snapshot(*tx, block, LIBRARY_BLOCK_SIZE, NULL));
    store_new(block + 300, 100);
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

const struct operation library_operations[] = {
    {"write_word", write_word, OPERATION_IS_CORE | OPERATION_ONLY_COMMITS},
    {"write_half_word", write_half_word, 0},
    {"write_unaligned_word", write_unaligned_word, 0},
    {"write_three_bytes", write_three_bytes, 0},
    {"write_across_lines", write_across_lines, OPERATION_IS_CORE},
    {"write_across_blocks", write_across_blocks, 0},
    {"write_ranges", write_ranges, OPERATION_FITS_FULL | OPERATION_ONLY_COMMITS},
    {"write_beside_open", write_beside_open, 0},
    {"write_over_aborted", write_over_aborted, 0},
    {"write_overlapping", write_overlapping, 0},
    {"write_same_and_new", write_same_and_new, 0},
    {"write_same", write_same, 0},
    {"write_word_and_same", write_word_and_same, 0},
    {"zero", zero, 0},
    {"zero_word", zero_word, 0},
    {"copy", copy, 0},
    {"store_word", store_word, OPERATION_IS_CORE | OPERATION_HAS_LONE_WORD},
    {"write_nothing", write_nothing, 0},
    {"abort_writes", abort_writes, OPERATION_IS_CORE},
    {"edit_words", edit_words, OPERATION_HAS_LONE_WORD},
    {"edit_one_word_of_many", edit_one_word_of_many, 0},
    {"edit_nothing_of_many", edit_nothing_of_many, 0},
    {"edit_over_block", edit_over_block, OPERATION_FITS_FULL},
    {"fresh_in_line_of_word", fresh_in_line_of_word, 0},
    {"fresh_across_line_of_word", fresh_across_line_of_word, 0},
    {"fresh_in_other_line", fresh_in_other_line, OPERATION_ONLY_COMMITS},
    {"fresh_streamed", fresh_streamed, 0},
    {"fresh_and_ranges", fresh_and_ranges, 0},
    {"fresh_amid_changes", fresh_amid_changes, 0},
    {"fresh_alone", fresh_alone, 0},
    {"block_word", block_word, 0},
    {"block_below_half", block_below_half, OPERATION_IS_CORE},
    {"block_half", block_half, OPERATION_IS_CORE | OPERATION_FITS_FULL},
    {"block_above_half", block_above_half, OPERATION_IS_CORE},
    {"block_whole", block_whole, OPERATION_FITS_FULL | OPERATION_ONLY_COMMITS},
    {"block_in_pieces", block_in_pieces, 0},
    {"block_whole_then_part", block_whole_then_part, OPERATION_FITS_FULL},
    {"blocks_and_ranges", blocks_and_ranges,
     OPERATION_FITS_FULL | OPERATION_ONLY_COMMITS},
    {"hole_part", hole_part, 0},
    {"block_and_words", block_and_words, OPERATION_ONLY_COMMITS},
    {"holes_and_words", holes_and_words, 0},
    {"words", words, 0},
    {"many_words", many_words, 0},
    {"word_of_many", word_of_many, 0},
    {"word_of_words", word_of_words, 0},
    {"store_word_of_words", store_word_of_words, OPERATION_HAS_LONE_WORD},
    {"fresh_word_of_words", fresh_word_of_words, 0},
    {"move_block", move_block, 0},
    {"slot_in_block", slot_in_block, 0},
    {"copy_holder", copy_holder, 0},
    {"free_holder", free_holder, 0},
    {"hole_whole_then_part", hole_whole_then_part, 0},
    {"hole_in_own_block", hole_in_own_block, OPERATION_ONLY_COMMITS},
    {"own_block_in_own_slot", own_block_in_own_slot, 0},
    {"old_block_in_own_slot", old_block_in_own_slot, 0},
    {"slot_in_changed_block", slot_in_changed_block, 0},
    {"alloc_and_store", alloc_and_store, OPERATION_IS_CORE},
    {"alloc_write_and_store", alloc_write_and_store, 0},
    {"free_run", free_run, OPERATION_IS_CORE | OPERATION_FITS_FULL},
    {"alloc_and_free", alloc_and_free, OPERATION_ONLY_COMMITS},
    {"alloc_and_free_own", alloc_and_free_own, 0},
    {"alloc_nothing_left", alloc_nothing_left, 0},
    {"alloc_many", alloc_many, 0},
    {"free_in_pieces", free_in_pieces, 0},
    {"free_block_of_slot", free_block_of_slot,
     OPERATION_FITS_FULL | OPERATION_ONLY_COMMITS},
    {"slab_object", slab_object, 0},
    {"slab_objects", slab_objects, 0},
    {"snapshot", snapshot, OPERATION_IS_CORE | OPERATION_HOLDS_LANE},
    {"snapshot_and_abort", snapshot_and_abort, OPERATION_HOLDS_LANE},
    {"snapshot_ranges", snapshot_ranges, OPERATION_HOLDS_LANE},
    {"snapshots_same", snapshots_same, OPERATION_IS_CORE | OPERATION_HOLDS_LANE},
    {"snapshots_overlap", snapshots_overlap, OPERATION_IS_CORE | OPERATION_HOLDS_LANE},
    {"snapshots_adjacent", snapshots_adjacent,
     OPERATION_IS_CORE | OPERATION_HOLDS_LANE},
    {"snapshots_overlap_and_abort", snapshots_overlap_and_abort, OPERATION_HOLDS_LANE},
    {"snapshot_and_write", snapshot_and_write,
     OPERATION_HOLDS_LANE | OPERATION_FITS_FULL},
    {"snapshot_in_swapped_block", snapshot_in_swapped_block,
     OPERATION_HOLDS_LANE | OPERATION_FITS_FULL},
    {"snapshot_of_own_block", snapshot_of_own_block, OPERATION_HOLDS_LANE},
    {"abort_all_kinds", abort_all_kinds, OPERATION_HOLDS_LANE},
    {"write_more_than_log", write_more_than_log, OPERATION_IS_CORE},
    {"snapshot_more_than_log", snapshot_more_than_log, OPERATION_HOLDS_LANE},
    {"snapshot_more_than_log_and_abort", snapshot_more_than_log_and_abort,
     OPERATION_HOLDS_LANE},
};
const uint32_t library_operation_count =
    sizeof(library_operations) / sizeof(library_operations[0]);

/* Those that need a pool of their own, and what is no transaction. */
static const struct operation special[] = {
    {"reopen", library_reopen, 0},
    {"create_root", create_root, 0},
    {"format", NULL, 0},
};

const struct operation *library_find_operation(const char *name)
{
    for (uint32_t i = 0; i < sizeof(special) / sizeof(special[0]); i++)
        if (strcmp(special[i].name, name) == 0)
            return &special[i];
    for (uint32_t i = 0; i < library_operation_count; i++)
        if (strcmp(library_operations[i].name, name) == 0)
            return &library_operations[i];
    return NULL;
}

/* ---- A pool to begin with -------------------------------------------------------- */

/* Comes first: runs lie lowest, so that what is freed of them is allocated next. */
static int fill_runs(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;

    TRY(minl2r_tx_begin(pool, &tx));
    for (uint32_t i = 0; i < 4; i++) {
        TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
        TRY(minl2r_tx_write(tx, &side->runs[i], &run, sizeof(run)));
    }
    TRY(minl2r_tx_commit(tx));
    return 0;
}

/* The first bytes of its blocks are holes, where they hold slots themselves. */
static int fill_slots(struct minl2r_pool *pool, const struct side *side)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    for (uint32_t i = 0; i < 6; i++) {
        library_new_bytes(bytes, sizeof(bytes));
        memset(bytes, 0, 128);
        TRY(minl2r_tx_write_block(tx, &side->slots[i], 0, bytes, sizeof(bytes)));
    }
    TRY(minl2r_tx_commit(tx));
    return 0;
}

static int fill_bytes(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->words, sizeof(side->words)));
    TRY(write_new(tx, side->bytes, sizeof(side->bytes)));
    TRY(write_new(tx, side->area, sizeof(side->area)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}

int library_fill(struct minl2r_pool *pool)
{
    const struct side *sides = minl2r_root(pool, LIBRARY_SIDES * sizeof(*sides));
    int line = sides ? 0 : __LINE__;

    for (uint32_t i = 0; i < LIBRARY_SIDES && line == 0; i++)
        line = fill_runs(pool, &sides[i]);
    for (uint32_t i = 0; i < LIBRARY_SIDES && line == 0; i++)
        line = fill_slots(pool, &sides[i]);
    for (uint32_t i = 0; i < LIBRARY_SIDES && line == 0; i++)
        line = fill_bytes(pool, &sides[i]);
    return line;
}

int library_fill_blocks(struct minl2r_pool *pool)
{
    struct minl2r_tx *tx;

    for (uint64_t count = 64; count > 0; count /= 2) {
        int result = 0;

        TRY(minl2r_tx_begin(pool, &tx));
        while (result == 0)
            result = minl2r_tx_alloc(tx, count, NULL, NULL);
        TRY(minl2r_tx_commit(tx));
    }
    return 0;
}

/* ---- Using a recovered pool ------------------------------------------------------ */

static int use_blocks(struct minl2r_pool *pool, const struct side *side)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];
    struct minl2r_tx *tx;
    uint64_t run;

    memset(bytes, 0x5a, sizeof(bytes));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    TRY(minl2r_tx_write(tx, pool_at(pool, run), bytes, sizeof(bytes)));
    TRY(minl2r_tx_write(tx, &side->words[0], &run, sizeof(run)));
    TRY(minl2r_tx_write_block(tx, &side->slots[15], 0, bytes, 100));
    TRY(minl2r_tx_commit(tx));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write_block(tx, &side->slots[15], 100, bytes, 300));
    TRY(minl2r_tx_free(tx, run, 2));
    TRY(minl2r_tx_commit(tx));
    if (memcmp(pool_at(pool, side->slots[15]), bytes, 400) != 0)
        return __LINE__;
    return 0;
}

static int use_snapshot(struct minl2r_pool *pool, const struct side *side)
{
    uint64_t before = side->words[1];
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[1], sizeof(before), NULL));
    store_new(&side->words[1], sizeof(before));
    TRY(minl2r_tx_abort(tx));
    return side->words[1] == before ? 0 : __LINE__;
}

int library_use(struct minl2r_pool *pool)
{
    const struct side *sides = minl2r_root(pool, LIBRARY_SIDES * sizeof(*sides));
    int line = sides ? use_blocks(pool, &sides[0]) : __LINE__;

    return line != 0 ? line : use_snapshot(pool, &sides[0]);
}

/* Its log is no longer than those of most operations, so that theirs lies behind it. */
int library_do_again(struct minl2r_pool *pool)
{
    const struct side *side = pool_at(pool, pool_root_block(pool)->offset);
    uint8_t bytes[40];
    struct minl2r_tx *tx;

    memset(bytes, LIBRARY_AGAIN_BYTE, sizeof(bytes));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write(tx, side->again, bytes, 8));
    TRY(minl2r_tx_write(tx, side->again + 72, bytes, sizeof(bytes)));
    TRY(minl2r_tx_commit(tx));
    return 0;
}
