/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/library_operations.h"

#include <errno.h>
#include <string.h>

#define TRY(call)                                                                      \
    do {                                                                               \
        int result_ = (call);                                                          \
        if (result_ < 0)                                                               \
            return result_;                                                            \
    } while (0)

/* ---- Changes --------------------------------------------------------------------- */

/* What most transactions are made of: calls with new bytes, or stores of them. */
enum change_kind {
    END,
    PAUSE,
    WRITE,
    SAME, /* writes what is there */
    ZERO,
    FRESH,
    SNAPSHOT,
    STORE,
    BLOCK, /* minl2r_tx_write_block() */
};

struct change {
    enum change_kind kind;
    uint32_t at, size; /* bytes: of the side; or of a block */
    uint32_t slot;     /* 0: of the side; else SLOT() of the block, or HOLE */
};

#define AT(member) offsetof(struct side, member)
#define SIZE(member) sizeof(((struct side *)0)->member)
#define SLOT(index) ((index) + 1)
#define HOLE UINT32_MAX /* a slot without a block */
#define WHOLE LIBRARY_BLOCK_SIZE

static const uint64_t *find_hole(const struct side *side)
{
    uint32_t i = 6;

    while (i < 14 && side->slots[i] != 0)
        i++;
    return &side->slots[i];
}

/* Queues `size` new bytes. */
static int write_new(struct minl2r_tx *tx, const void *dst, uint64_t size)
{
    uint8_t bytes[SIZE(area)];

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

static int store_new(const void *dst, uint64_t size)
{
    uint8_t bytes[2 * LIBRARY_BLOCK_SIZE];

    library_new_bytes(bytes, size);
    memcpy((void *)(uintptr_t)dst, bytes, size);
    return 0;
}

static const uint64_t *slot_of(const struct side *side, const struct change *change)
{
    return change->slot == HOLE ? find_hole(side) : &side->slots[change->slot - 1];
}

static const void *place_of(const struct minl2r_pool *pool, const struct side *side,
                            const struct change *change)
{
    return change->slot ? pool_at(pool, *slot_of(side, change) + change->at)
                        : (const uint8_t *)side + change->at;
}

static int make_change(struct minl2r_pool *pool, struct minl2r_tx *tx,
                       const struct side *side, const struct change *change)
{
    uint32_t size = change->size;

    if (change->kind == BLOCK)
        return write_new_block(tx, slot_of(side, change), change->at, size);
    const void *pm = place_of(pool, side, change);

    switch (change->kind) {
    case WRITE:
        return write_new(tx, pm, size);
    case SAME:
        return minl2r_tx_write(tx, pm, pm, size);
    case ZERO:
        return minl2r_tx_zero(tx, pm, size);
    case FRESH:
        return write_new_fresh(pool, tx, pm, size);
    case SNAPSHOT:
        return minl2r_tx_snapshot(tx, pm, size, NULL);
    case STORE:
        return store_new(pm, size);
    default: /* PAUSE */
        library_pause();
        return 0;
    }
}

static int make_changes(struct minl2r_pool *pool, struct minl2r_tx *tx,
                        const struct side *side, const struct change *change)
{
    for (; change->kind != END; change++)
        TRY(make_change(pool, tx, side, change));
    return 0;
}

int library_operate(const struct operation *operation, struct minl2r_pool *pool,
                    const struct side *side)
{
    struct minl2r_tx *tx;

    if (operation->flags & OPERATION_HAS_NO_TX)
        return operation->call(pool, NULL, side);
    TRY(minl2r_tx_begin(pool, &tx));
    int result = operation->call ? operation->call(pool, tx, side)
                                 : make_changes(pool, tx, side, operation->changes);

    if (result == 0 && !(operation->flags & OPERATION_ABORTS))
        return minl2r_tx_commit(tx);
    TRY(minl2r_tx_abort(tx));
    return result;
}

/* ---- Bytes ----------------------------------------------------------------------- */

/* Beside another transaction, so that this one is not the last one's object used again.
 */
static int write_beside_open(struct minl2r_pool *pool, struct minl2r_tx *open,
                             const struct side *side)
{
    struct minl2r_tx *tx;

    (void)open;
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(write_new(tx, side->bytes + 120, 20));
    TRY(write_new(tx, side->area + 1500, 20));
    return minl2r_tx_commit(tx);
}

/* The program stored a word directly and did not flush it: now it has to be durable. */
static int write_same(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    store_new(&side->words[6], 8);
    library_note_loose(pool, &side->words[6], 8);
    TRY(minl2r_tx_write(tx, &side->words[6], &side->words[6], 8));
    return minl2r_tx_write(tx, side->bytes + 60, side->bytes + 60, 8);
}

static int copy(struct minl2r_pool *pool, struct minl2r_tx *tx, const struct side *side)
{
    (void)pool;
    TRY(write_new(tx, side->area + 1000, 8));
    return minl2r_tx_copy(tx, side->area + 900, side->area + 950, 120);
}

static int store_new_word(struct minl2r_pool *pool, const uint64_t *word)
{
    uint64_t value;

    library_new_bytes(&value, sizeof(value));
    return minl2r_store64(pool, word, value);
}

static int store_word(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    (void)tx;
    return store_new_word(pool, &side->words[9]);
}

static int store_word_of_words(struct minl2r_pool *pool, struct minl2r_tx *tx,
                               const struct side *side)
{
    (void)tx;
    return store_new_word(pool, &side->words[11]);
}

static int write_nothing(struct minl2r_pool *pool, struct minl2r_tx *tx,
                         const struct side *side)
{
    uint64_t word;

    (void)pool;
    return minl2r_tx_read(tx, &word, &side->words[0], sizeof(word));
}

/*
 * Each in a line of its own. With only the last one stored, the values that are there
 * add up to the same as with all of them.
 */
static int exchange_words(struct minl2r_pool *pool, struct minl2r_tx *tx,
                          const struct side *side)
{
    uint64_t a = side->words[2], b = side->words[12];

    (void)pool;
    TRY(minl2r_tx_write(tx, &side->words[2], &b, sizeof(b)));
    TRY(minl2r_tx_write(tx, &side->words[12], &a, sizeof(a)));
    return write_new(tx, &side->words[22], 8);
}

/* More places than a lane tells apart, in the order in which it owns them. */
static const uint8_t *one_of_many(const struct side *side, uint32_t i)
{
    return side->area + i / 4 * LIBRARY_BLOCK_SIZE + 200 + i * 16;
}

#define MANY 10

static int many_words(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    (void)pool;
    for (uint32_t i = 0; i < MANY; i++)
        TRY(write_new(tx, one_of_many(side, i), 8));
    return 0;
}

static int word_of_many(struct minl2r_pool *pool, struct minl2r_tx *tx,
                        const struct side *side)
{
    (void)pool;
    return write_new(tx, one_of_many(side, MANY - 1), 8);
}

static int write_more_than_log(struct minl2r_pool *pool, struct minl2r_tx *tx,
                               const struct side *side)
{
    (void)pool;
    for (uint32_t at = 0; at < sizeof(side->area); at += 16)
        TRY(write_new(tx, side->area + at, 8));
    return 0;
}

/* ---- Working copies -------------------------------------------------------------- */

static int edit_words(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    uint64_t *words;

    (void)pool;
    TRY(minl2r_tx_edit(tx, side->words, sizeof(side->words), &words));
    library_new_bytes(&words[3], 8);
    library_new_bytes(&words[20], 16);
    return write_new(tx, &side->words[30], 8);
}

static int edit_nothing_of_many(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                const struct side *side)
{
    uint8_t *copy;

    (void)pool;
    return minl2r_tx_edit(tx, side->area, sizeof(side->area), &copy);
}

/* Far more is reserved than the lone word needs. */
static int edit_one_word_of_many(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                 const struct side *side)
{
    uint8_t *copy;

    (void)pool;
    TRY(minl2r_tx_edit(tx, side->area, sizeof(side->area), &copy));
    library_new_bytes(copy + 256, 8);
    return 0;
}

static int edit_over_block(struct minl2r_pool *pool, struct minl2r_tx *tx,
                           const struct side *side)
{
    uint8_t *copy;

    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_edit(tx, pool_at(pool, side->slots[1]), LIBRARY_BLOCK_SIZE, &copy));
    library_new_bytes(copy + 8, 16);
    return 0;
}

/* ---- Blocks by slot -------------------------------------------------------------- */

/*
 * So many that the next commit ends their quarantine, and, since a slot amid them
 * stays, that they are flushed: word by word, past the cache, they would have more
 * states than can be tried, as at once with others.
 */
static int swap_many(struct minl2r_pool *pool, struct minl2r_tx *tx,
                     const struct side *side)
{
    (void)pool;
    for (uint32_t i = 0; i < LIBRARY_MANY; i++)
        TRY(write_new_block(tx, &side->many[i + (i >= LIBRARY_MANY / 2)], 0,
                            LIBRARY_BLOCK_SIZE));
    return 0;
}

/* In another lane than the operation before, which the other transaction has. What that
 * one gives back, still within this operation, could be another's: differences of
 * operations cannot tell whose bytes are in a block then. */
static int block_beside_open(struct minl2r_pool *pool, struct minl2r_tx *tx,
                             const struct side *side)
{
    struct minl2r_tx *open;

    TRY(minl2r_tx_begin(pool, &open));
    TRY(write_new_block(open, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(write_new_block(tx, &side->slots[0], 0, LIBRARY_BLOCK_SIZE));
    return minl2r_tx_abort(open);
}

/* A block moves from one slot to another; none is freed. */
static int move_block(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    const uint64_t *hole = find_hole(side);

    (void)pool;
    TRY(minl2r_tx_write(tx, hole, &hole[-1], sizeof(*hole)));
    return minl2r_tx_zero(tx, &hole[-1], sizeof(*hole));
}

static int slot_in_block(struct minl2r_pool *pool, struct minl2r_tx *tx,
                         const struct side *side)
{
    const uint64_t *slots = pool_at(pool, side->slots[3]);

    return write_new_block(tx, &slots[2], 0, LIBRARY_BLOCK_SIZE);
}

/* The block that holds slots is swapped for a copy of it. */
static int copy_holder(struct minl2r_pool *pool, struct minl2r_tx *tx,
                       const struct side *side)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];

    memcpy(bytes, pool_at(pool, side->slots[3]), sizeof(bytes));
    return minl2r_tx_write_block(tx, &side->slots[3], 0, bytes, sizeof(bytes));
}

/* A new block of slots, all of them holes. */
static int alloc_slots(struct minl2r_pool *pool, struct minl2r_tx *tx, uint64_t *own)
{
    TRY(minl2r_tx_alloc(tx, 1, own, NULL));
    return minl2r_tx_zero(tx, pool_at(pool, *own), LIBRARY_BLOCK_SIZE);
}

/* It is freed with what it names, and nothing in it changes. */
static int free_holder(struct minl2r_pool *pool, struct minl2r_tx *tx,
                       const struct side *side)
{
    const uint64_t *slots = pool_at(pool, side->slots[3]);
    uint64_t own;

    TRY(alloc_slots(pool, tx, &own));
    TRY(minl2r_tx_write(tx, &side->slots[3], &own, sizeof(own)));
    if (slots[2])
        TRY(minl2r_tx_free(tx, slots[2], 1));
    return minl2r_tx_free(tx, pool_offset(pool, slots), 1);
}

/* The transaction fills it, too. */
static int hole_in_own_block(struct minl2r_pool *pool, struct minl2r_tx *tx,
                             const struct side *side)
{
    uint64_t own;

    TRY(alloc_slots(pool, tx, &own));
    const uint64_t *slots = pool_at(pool, own);

    TRY(write_new_block(tx, &slots[0], 0, 100));
    TRY(write_new_block(tx, &slots[9], 0, LIBRARY_BLOCK_SIZE));
    return minl2r_tx_write(tx, find_hole(side), &own, sizeof(own));
}

/* The slot that names the topmost node of the side's tree. */
static const uint64_t *tree(const struct side *side)
{
    return &side->many[LIBRARY_TREE];
}

/* On top of the nodes that there are, with two blocks more. */
static int add_node(struct minl2r_pool *pool, struct minl2r_tx *tx,
                    const struct side *side)
{
    uint64_t own;

    TRY(alloc_slots(pool, tx, &own));
    const uint64_t *slots = pool_at(pool, own);

    TRY(minl2r_tx_write(tx, &slots[3], tree(side), sizeof(own)));
    TRY(write_new_block(tx, &slots[0], 0, 100));
    TRY(write_new_block(tx, &slots[9], 0, LIBRARY_BLOCK_SIZE));
    return minl2r_tx_write(tx, tree(side), &own, sizeof(own));
}

/* And a block elsewhere is swapped. */
static int add_node_and_swap(struct minl2r_pool *pool, struct minl2r_tx *tx,
                             const struct side *side)
{
    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    return add_node(pool, tx, side);
}

static int swap_in_node(struct minl2r_pool *pool, struct minl2r_tx *tx,
                        const struct side *side)
{
    const uint64_t *slots = pool_at(pool, *tree(side));

    if (!*tree(side))
        return add_node(pool, tx, side);
    return write_new_block(tx, &slots[9], 0, LIBRARY_BLOCK_SIZE);
}

static int copy_node(struct minl2r_pool *pool, struct minl2r_tx *tx,
                     const struct side *side)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];

    if (!*tree(side))
        return add_node(pool, tx, side);
    memcpy(bytes, pool_at(pool, *tree(side)), sizeof(bytes));
    return minl2r_tx_write_block(tx, tree(side), 0, bytes, sizeof(bytes));
}

/* Nothing tells whether what is allocated beside it is committed. */
static int alloc_and_write_same(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                const struct side *side)
{
    (void)pool;
    TRY(minl2r_tx_alloc(tx, 1, NULL, NULL));
    return minl2r_tx_write(tx, side->words, side->words, 16);
}

static int own_block_in_own_slot(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                 const struct side *side)
{
    uint64_t own, below;
    uint8_t *copy;

    TRY(alloc_slots(pool, tx, &own));
    TRY(minl2r_tx_alloc(tx, 1, &below, NULL));
    const uint64_t *slots = pool_at(pool, own);

    TRY(minl2r_tx_write(tx, &slots[5], &below, sizeof(below)));
    TRY(write_new_block(tx, &slots[5], 0, LIBRARY_BLOCK_SIZE));
    TRY(write_new_block(tx, &slots[5], 100, 8));
    TRY(minl2r_tx_edit(tx, pool_at(pool, below + 200), 100, &copy));
    library_new_bytes(copy + 16, 8);
    return minl2r_tx_write(tx, find_hole(side), &own, sizeof(own));
}

/* A block moves under a new block of slots, and is changed on the way. */
static int old_block_in_own_slot(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                 const struct side *side)
{
    uint64_t own;

    TRY(alloc_slots(pool, tx, &own));
    const uint64_t *slots = pool_at(pool, own);

    TRY(minl2r_tx_write(tx, &slots[1], &side->slots[0], sizeof(own)));
    TRY(write_new_block(tx, &slots[1], 0, LIBRARY_BLOCK_SIZE));
    return minl2r_tx_write(tx, &side->slots[0], &own, sizeof(own));
}

/* The block would be swapped, but holds a slot that is written: it stays, its fresh
 * block is given up. */
static int slot_in_changed_block(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                 const struct side *side)
{
    TRY(write_new_block(tx, &side->slots[3], 128, LIBRARY_BLOCK_SIZE - 128));
    return write_new_block(tx, pool_at(pool, side->slots[3] + 64), 0, 100);
}

/* ---- Allocating and freeing ------------------------------------------------------ */

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

static int alloc_and_store(struct minl2r_pool *pool, struct minl2r_tx *tx,
                           const struct side *side)
{
    uint64_t run;

    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool_at(pool, run), 2 * LIBRARY_BLOCK_SIZE);
    return minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run));
}

static int alloc_write_and_store(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                 const struct side *side)
{
    uint64_t run;

    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    TRY(minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run)));
    TRY(write_new(tx, pool_at(pool, run), 8));
    return store_new(pool_at(pool, run + 8), 8); /* in the line flushed last */
}

static int free_run(struct minl2r_pool *pool, struct minl2r_tx *tx,
                    const struct side *side)
{
    const uint64_t *run = find_run(side);

    (void)pool;
    TRY(minl2r_tx_free(tx, *run, 2));
    return minl2r_tx_zero(tx, run, sizeof(*run));
}

static int alloc_and_free(struct minl2r_pool *pool, struct minl2r_tx *tx,
                          const struct side *side)
{
    const uint64_t *old = find_run(side);
    uint64_t run;

    TRY(minl2r_tx_free(tx, *old, 2));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool_at(pool, run + 100), 50);
    return minl2r_tx_write(tx, old, &run, sizeof(run));
}

static int alloc_and_free_own(struct minl2r_pool *pool, struct minl2r_tx *tx,
                              const struct side *side)
{
    uint64_t run;

    TRY(minl2r_tx_alloc(tx, 5, &run, NULL));
    TRY(write_new(tx, pool_at(pool, run), 3 * LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_free(tx, run + 2 * LIBRARY_BLOCK_SIZE, 3));
    return minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run));
}

static int alloc_nothing_left(struct minl2r_pool *pool, struct minl2r_tx *tx,
                              const struct side *side)
{
    uint64_t run;

    (void)side;
    TRY(minl2r_tx_alloc(tx, 5, &run, NULL));
    TRY(write_new(tx, pool_at(pool, run), 100));
    return minl2r_tx_free(tx, run, 5);
}

/* Its bits lie in several words and lines of the bitmap. */
static int alloc_many(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    uint64_t run;

    TRY(minl2r_tx_alloc(tx, 600, &run, NULL));
    TRY(write_new(tx, pool_at(pool, run + 599 * LIBRARY_BLOCK_SIZE), 8));
    return minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run));
}

static int free_in_pieces(struct minl2r_pool *pool, struct minl2r_tx *tx,
                          const struct side *side)
{
    const uint64_t *run = find_run(side);

    (void)pool;
    TRY(minl2r_tx_free(tx, *run + LIBRARY_BLOCK_SIZE, 1));
    TRY(minl2r_tx_free(tx, *run, 1));
    if (side->slots[5]) {
        TRY(minl2r_tx_free(tx, side->slots[5], 1));
        TRY(minl2r_tx_zero(tx, &side->slots[5], sizeof(side->slots[5])));
    }
    return minl2r_tx_zero(tx, run, sizeof(*run));
}

/* One that no other operation needs, if it is still there. */
static int free_block_of_slot(struct minl2r_pool *pool, struct minl2r_tx *tx,
                              const struct side *side)
{
    uint32_t i = 4;

    while (i < 15 && side->slots[i] == 0)
        i++;
    TRY(write_new(tx, side->bytes, 20));
    if (i == 15)
        return 0;
    TRY(write_new(tx, pool_at(pool, side->slots[i]), 20));
    TRY(minl2r_tx_free(tx, side->slots[i], 1));
    return minl2r_tx_zero(tx, &side->slots[i], sizeof(side->slots[i]));
}

static int slab_object(struct minl2r_pool *pool, struct minl2r_tx *tx,
                       const struct side *side)
{
    uint64_t object = 0;

    if (side->object) {
        TRY(minl2r_slab_free(tx, &side->slab, side->object, 100));
    } else {
        TRY(minl2r_slab_alloc(tx, &side->slab, 100, &object));
        TRY(write_new(tx, pool_at(pool, object), 100));
    }
    return minl2r_tx_write(tx, &side->object, &object, sizeof(object));
}

/* More than a block of them, of which some are given back at once. */
static int slab_objects(struct minl2r_pool *pool, struct minl2r_tx *tx,
                        const struct side *side)
{
    uint64_t objects[6];

    for (uint32_t i = 0; i < 6; i++) {
        TRY(minl2r_slab_alloc(tx, &side->slab, 120, &objects[i]));
        TRY(write_new(tx, pool_at(pool, objects[i]), 120));
    }
    TRY(minl2r_slab_free(tx, &side->slab, objects[5], 120));
    return minl2r_slab_free(tx, &side->slab, objects[0], 120);
}

static int create_root(struct minl2r_pool *pool, struct minl2r_tx *tx,
                       const struct side *side)
{
    (void)tx;
    return minl2r_root(pool, LIBRARY_SIDES * sizeof(*side)) ? 0 : -EIO;
}

/* ---- Snapshots ------------------------------------------------------------------- */

static int snapshot_ranges(struct minl2r_pool *pool, struct minl2r_tx *tx,
                           const struct side *side)
{
    const struct minl2r_range ranges[] = {
        {&side->words[2], 8}, {side->bytes + 60, 10}, {side->area + 500, 100}};

    (void)pool;
    TRY(minl2r_tx_snapshotv(tx, ranges, 3, NULL));
    for (uint32_t i = 0; i < 3; i++)
        store_new(ranges[i].pm, ranges[i].size);
    return 0;
}

/* What was allocated just now is logged like all else. */
static int snapshot_of_own_block(struct minl2r_pool *pool, struct minl2r_tx *tx,
                                 const struct side *side)
{
    uint64_t run;

    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool_at(pool, run), 100);
    TRY(minl2r_tx_snapshot(tx, pool_at(pool, run + 130), 100, NULL));
    store_new(pool_at(pool, run + 140), 80);
    return minl2r_tx_write(tx, find_no_run(side), &run, sizeof(run));
}

/* Everything that abort has to give back, at once. */
static int abort_all_kinds(struct minl2r_pool *pool, struct minl2r_tx *tx,
                           const struct side *side)
{
    uint64_t run;

    TRY(write_new_block(tx, &side->slots[1], 0, LIBRARY_BLOCK_SIZE));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    store_new(pool_at(pool, run), 8);
    store_new(pool_at(pool, run + 700), 16);
    TRY(minl2r_tx_snapshot(tx, side->area, 200, NULL));
    store_new(side->area, 200);
    TRY(minl2r_tx_free(tx, *find_run(side), 2));
    TRY(write_new(tx, side->bytes, 100));
    return write_new_fresh(pool, tx, side->area + 600, 100);
}

/* ---- All ------------------------------------------------------------------------- */

#define CORE OPERATION_IS_CORE
#define HOLDS_LANE OPERATION_HOLDS_LANE
#define FITS_FULL OPERATION_FITS_FULL
#define ONLY_COMMITS OPERATION_ONLY_COMMITS
#define LONE_WORD OPERATION_HAS_LONE_WORD
#define NO_TX OPERATION_HAS_NO_TX
#define ABORTS OPERATION_ABORTS
#define ONLY_IN_ROWS OPERATION_ONLY_IN_ROWS

/* clang-format off */
#define CHANGES(...) NULL, (const struct change[]){__VA_ARGS__, {.kind = END}}
#define OVERLAPPING                                                                    \
    {SNAPSHOT, AT(bytes[0]), 100, 0}, {STORE, AT(bytes[0]), 80, 0},                    \
    {SNAPSHOT, AT(bytes[50]), 100, 0}, {STORE, AT(bytes[50]), 100, 0}
#define MORE_THAN_LOG                                                                  \
    {SNAPSHOT, AT(area), SIZE(area), 0}, {STORE, AT(area[500]), 100, 0},               \
    {SNAPSHOT, AT(bytes), SIZE(bytes), 0}, {STORE, AT(bytes), 100, 0},                 \
    {SNAPSHOT, 0, WHOLE, SLOT(1)}, {STORE, 300, 100, SLOT(1)}

const struct operation library_operations[] = {
    {"write_word", CORE | ONLY_COMMITS, CHANGES({WRITE, AT(words[1]), 8, 0})},
    {"write_half_word", 0, CHANGES({WRITE, AT(words[2]) + 4, 4, 0})},
    {"write_unaligned_word", 0, CHANGES({WRITE, AT(bytes[3]), 8, 0})},
    {"write_three_bytes", 0, CHANGES({WRITE, AT(bytes[1]), 3, 0})},
    {"write_across_lines", CORE, CHANGES({WRITE, AT(bytes[40]), 40, 0})},
    {"write_across_blocks", 0,
     CHANGES({WRITE, AT(area[LIBRARY_BLOCK_SIZE - 20]), 4 * LIBRARY_BLOCK_SIZE + 50, 0})},
    {"write_ranges", FITS_FULL | ONLY_COMMITS,
     CHANGES({WRITE, AT(words[4]), 8, 0}, {WRITE, AT(bytes[5]), 1, 0},
             {WRITE, AT(bytes[61]), 7, 0}, {WRITE, AT(area[800]), 9, 0},
             {WRITE, AT(words[5]), 8, 0})}, /* a neighbour of the first */
    {"write_beside_open", 0, write_beside_open, NULL},
    /* What transactions that aborted have brought back. */
    {"write_over_aborted", 0,
     CHANGES({WRITE, AT(words[11]), 8, 0}, {WRITE, AT(area[50]), 20, 0})},
    {"write_overlapping", 0,
     CHANGES({WRITE, AT(bytes[10]), 30, 0}, {WRITE, AT(bytes[15]), 5, 0},
             {WRITE, AT(bytes[35]), 40, 0}, {ZERO, AT(bytes[30]), 8, 0})},
    /* Bytes that bring nothing new, beside some that do. */
    {"write_same_and_new", 0,
     CHANGES({SAME, AT(bytes[0]), 20, 0}, {WRITE, AT(bytes[20]), 20, 0},
             {SAME, AT(bytes[40]), 20, 0}, {SAME, AT(words[0]), 8, 0})},
    {"write_same", 0, write_same, NULL},
    {"write_word_and_same", 0,
     CHANGES({SAME, AT(bytes[60]), 8, 0}, {WRITE, AT(words[7]), 8, 0})},
    {"zero", 0, CHANGES({ZERO, AT(area[100]), 100, 0})},
    {"zero_word", 0, CHANGES({ZERO, AT(words[8]), 8, 0})},
    {"copy", 0, copy, NULL},
    {"store_word", CORE | LONE_WORD | NO_TX, store_word, NULL},
    {"write_nothing", 0, write_nothing, NULL},
    {"abort_writes", CORE | ABORTS,
     CHANGES({WRITE, AT(bytes[0]), 100, 0}, {BLOCK, 0, WHOLE, SLOT(1)},
             {BLOCK, 0, 100, HOLE})},

    {"edit_words", LONE_WORD, edit_words, NULL},
    {"edit_one_word_of_many", 0, edit_one_word_of_many, NULL},
    {"edit_nothing_of_many", 0, edit_nothing_of_many, NULL},
    {"edit_over_block", FITS_FULL, edit_over_block, NULL},

    {"fresh_in_line_of_word", 0,
     CHANGES({FRESH, AT(words[16]), 8, 0}, {WRITE, AT(words[17]), 8, 0},
             {FRESH, AT(words[19]), 24, 0})},
    {"fresh_across_line_of_word", 0,
     CHANGES({FRESH, AT(words[22]), 32, 0}, {WRITE, AT(words[17]), 8, 0})},
    {"fresh_in_other_line", ONLY_COMMITS,
     CHANGES({FRESH, AT(area[50]), 30, 0}, {FRESH, AT(words[16]), 8, 0},
             {WRITE, AT(words[17]), 8, 0})},
    {"fresh_streamed", 0,
     CHANGES({FRESH, AT(area[1030]), 300, 0}, {WRITE, AT(words[17]), 8, 0})},
    {"fresh_line_streamed", 0,
     CHANGES({FRESH, AT(area[512]), 64, 0}, {WRITE, AT(words[17]), 8, 0})},
    {"fresh_and_ranges", 0,
     CHANGES({FRESH, AT(area[50]), 30, 0}, {WRITE, AT(words[17]), 8, 0},
             {WRITE, AT(bytes[100]), 10, 0})},
    /* The fresh line is also changed in place; fresh bytes of a block move with it. */
    {"fresh_amid_changes", 0,
     CHANGES({WRITE, AT(words[17]), 8, 0}, {FRESH, AT(words[16]), 8, 0},
             {FRESH, 400, 40, SLOT(2)}, {BLOCK, 0, 300, SLOT(2)})},
    {"fresh_alone", 0, CHANGES({FRESH, AT(area[50]), 30, 0})},

    {"block_word", 0, CHANGES({BLOCK, 200, 8, SLOT(0)})},
    {"block_below_half", CORE, CHANGES({BLOCK, 10, WHOLE / 2 - 1, SLOT(0)})},
    {"block_half", CORE | FITS_FULL, CHANGES({BLOCK, 10, WHOLE / 2, SLOT(0)})},
    {"block_above_half", CORE, CHANGES({BLOCK, 10, WHOLE / 2 + 1, SLOT(0)})},
    {"block_whole", FITS_FULL | ONLY_COMMITS, CHANGES({BLOCK, 0, WHOLE, SLOT(1)})},
    {"block_in_pieces", 0,
     CHANGES({BLOCK, 0, 100, SLOT(2)}, {BLOCK, 150, 100, SLOT(2)},
             {WRITE, 400, 100, SLOT(2)}, {BLOCK, 300, 1, SLOT(2)})},
    {"block_whole_then_part", FITS_FULL,
     CHANGES({WRITE, 0, 20, SLOT(1)}, {BLOCK, 0, WHOLE, SLOT(1)},
             {BLOCK, 60, 8, SLOT(1)}, {WRITE, 300, 20, SLOT(1)})},
    {"blocks_and_ranges", FITS_FULL | ONLY_COMMITS,
     CHANGES({BLOCK, 0, WHOLE, SLOT(1)}, {BLOCK, 100, 300, SLOT(2)},
             {BLOCK, 100, 9, SLOT(4)}, {WRITE, AT(words[10]), 8, 0})},
    {"hole_part", 0, CHANGES({BLOCK, 100, 20, HOLE})},
    /* What a slot commit takes along, where the program promises what that needs. */
    {"block_and_words", ONLY_COMMITS,
     CHANGES({BLOCK, 0, WHOLE, SLOT(1)}, {WRITE, AT(words[10]), 16, 0})},
    {"holes_and_words", 0,
     CHANGES({WRITE, AT(words[11]), 8, 0}, {WRITE, AT(words[13]), 5, 0},
             {BLOCK, 0, WHOLE, HOLE}, {BLOCK, 40, 300, SLOT(1)})},
    {"words", 0, CHANGES({WRITE, AT(words[10]), 8, 0}, {WRITE, AT(words[12]), 8, 0})},
    {"exchange_words", 0, exchange_words, NULL},
    {"many_words", 0, many_words, NULL},
    {"word_of_many", 0, word_of_many, NULL},
    {"word_of_words", 0, CHANGES({WRITE, AT(words[10]), 8, 0})},
    {"store_word_of_words", LONE_WORD | NO_TX, store_word_of_words, NULL},
    {"fresh_word_of_words", 0,
     CHANGES({FRESH, AT(words[10]), 8, 0}, {BLOCK, 0, WHOLE, SLOT(2)})},
    {"swap_many", ONLY_IN_ROWS, swap_many, NULL},
    {"block_beside_open", ONLY_IN_ROWS, block_beside_open, NULL},
    {"move_block", 0, move_block, NULL},
    {"slot_in_block", 0, slot_in_block, NULL},
    {"copy_holder", 0, copy_holder, NULL},
    {"free_holder", 0, free_holder, NULL},
    {"hole_whole_then_part", 0,
     CHANGES({BLOCK, 0, WHOLE, HOLE}, {BLOCK, 100, 20, HOLE})},
    {"hole_in_own_block", ONLY_COMMITS, hole_in_own_block, NULL},
    {"add_node", 0, add_node, NULL},
    {"add_node_and_swap", ONLY_COMMITS, add_node_and_swap, NULL},
    {"swap_in_node", 0, swap_in_node, NULL},
    {"copy_node", 0, copy_node, NULL},
    {"alloc_and_write_same", 0, alloc_and_write_same, NULL},
    {"own_block_in_own_slot", 0, own_block_in_own_slot, NULL},
    {"old_block_in_own_slot", 0, old_block_in_own_slot, NULL},
    {"slot_in_changed_block", 0, slot_in_changed_block, NULL},

    {"alloc_and_store", CORE, alloc_and_store, NULL},
    {"alloc_write_and_store", 0, alloc_write_and_store, NULL},
    {"free_run", CORE | FITS_FULL, free_run, NULL},
    {"alloc_and_free", ONLY_COMMITS, alloc_and_free, NULL},
    {"alloc_and_free_own", 0, alloc_and_free_own, NULL},
    {"alloc_nothing_left", 0, alloc_nothing_left, NULL},
    {"alloc_many", 0, alloc_many, NULL},
    {"free_in_pieces", 0, free_in_pieces, NULL},
    {"free_block_of_slot", FITS_FULL | ONLY_COMMITS, free_block_of_slot, NULL},
    {"slab_object", 0, slab_object, NULL},
    {"slab_objects", 0, slab_objects, NULL},

    {"snapshot", CORE | HOLDS_LANE,
     CHANGES({SNAPSHOT, AT(words[10]), 64, 0}, {STORE, AT(words[11]), 8, 0},
             {.kind = PAUSE}, {STORE, AT(words[12]), 40, 0})},
    {"snapshot_and_abort", HOLDS_LANE | ABORTS,
     CHANGES({SNAPSHOT, AT(words[10]), 64, 0}, {STORE, AT(words[11]), 8, 0},
             {.kind = PAUSE})},
    {"snapshot_ranges", HOLDS_LANE, snapshot_ranges, NULL},
    {"snapshots_same", CORE | HOLDS_LANE,
     CHANGES({SNAPSHOT, AT(bytes[20]), 24, 0}, {STORE, AT(bytes[20]), 24, 0},
             {SNAPSHOT, AT(bytes[20]), 24, 0}, {STORE, AT(bytes[20]), 24, 0})},
    {"snapshots_overlap", CORE | HOLDS_LANE, CHANGES(OVERLAPPING)},
    {"snapshots_adjacent", CORE | HOLDS_LANE,
     CHANGES({SNAPSHOT, AT(bytes[20]), 24, 0}, {STORE, AT(bytes[20]), 24, 0},
             {SNAPSHOT, AT(bytes[44]), 24, 0}, {STORE, AT(bytes[44]), 24, 0})},
    {"snapshots_overlap_and_abort", HOLDS_LANE | ABORTS, CHANGES(OVERLAPPING)},
    {"snapshot_and_write", HOLDS_LANE | FITS_FULL,
     CHANGES({SNAPSHOT, AT(bytes[0]), 40, 0}, {WRITE, AT(bytes[8]), 16, 0},
             {STORE, AT(bytes[0]), 20, 0}, {WRITE, AT(words[1]), 8, 0},
             {BLOCK, 0, WHOLE, SLOT(1)})},
    {"snapshot_in_swapped_block", HOLDS_LANE | FITS_FULL,
     CHANGES({SNAPSHOT, 0, 64, SLOT(0)}, {STORE, 0, 64, SLOT(0)},
             {BLOCK, 100, 300, SLOT(0)})},
    {"snapshot_of_own_block", HOLDS_LANE, snapshot_of_own_block, NULL},
    {"abort_all_kinds", HOLDS_LANE | ABORTS, abort_all_kinds, NULL},

    {"write_more_than_log", CORE, write_more_than_log, NULL},
    {"snapshot_more_than_log", HOLDS_LANE, CHANGES(MORE_THAN_LOG)},
    {"snapshot_more_than_log_and_abort", HOLDS_LANE | ABORTS, CHANGES(MORE_THAN_LOG)},
};
const uint32_t library_operation_count =
    sizeof(library_operations) / sizeof(library_operations[0]);

/* Those that need a pool of their own, and what is no transaction. */
static const struct operation special[] = {
    {"reopen", NO_TX, library_reopen, NULL},
    {"create_root", NO_TX, create_root, NULL},
    {"format", NO_TX, NULL, NULL},
};
/* clang-format on */

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

static int fill_runs(struct minl2r_pool *pool, struct minl2r_tx *tx,
                     const struct side *side)
{
    uint64_t run;

    (void)pool;
    for (uint32_t i = 0; i < 4; i++) {
        TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
        TRY(minl2r_tx_write(tx, &side->runs[i], &run, sizeof(run)));
    }
    return 0;
}

/* The first bytes of its blocks are holes, where they hold slots themselves. */
static int fill_slots(struct minl2r_pool *pool, struct minl2r_tx *tx,
                      const struct side *side)
{
    uint8_t bytes[LIBRARY_BLOCK_SIZE];

    (void)pool;
    for (uint32_t i = 0; i < 6; i++) {
        library_new_bytes(bytes, sizeof(bytes));
        memset(bytes, 0, 128);
        TRY(minl2r_tx_write_block(tx, &side->slots[i], 0, bytes, sizeof(bytes)));
    }
    return 0;
}

/* Runs come first and lie lowest, so that what is freed of them is allocated next. */
static const struct operation filling[] = {
    {"runs", 0, fill_runs, NULL},
    {"slots", 0, fill_slots, NULL},
    {"many", 0, swap_many, NULL},
    {"bytes", 0,
     CHANGES({WRITE, AT(words), SIZE(words), 0}, {WRITE, AT(bytes), SIZE(bytes), 0},
             {WRITE, AT(area), SIZE(area), 0})},
};

int library_fill(struct minl2r_pool *pool)
{
    const struct side *sides = minl2r_root(pool, LIBRARY_SIDES * sizeof(*sides));

    if (!sides)
        return -EIO;
    for (uint32_t i = 0; i < sizeof(filling) / sizeof(filling[0]); i++)
        for (uint32_t j = 0; j < LIBRARY_SIDES; j++)
            TRY(library_operate(&filling[i], pool, &sides[j]));
    return 0;
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
    return memcmp(pool_at(pool, side->slots[15]), bytes, 400) == 0 ? 0 : -EBADMSG;
}

static int use_snapshot(struct minl2r_pool *pool, const struct side *side)
{
    uint64_t before = side->words[1];
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[1], sizeof(before), NULL));
    store_new(&side->words[1], sizeof(before));
    TRY(minl2r_tx_abort(tx));
    return side->words[1] == before ? 0 : -EBADMSG;
}

int library_use(struct minl2r_pool *pool)
{
    const struct side *sides = minl2r_root(pool, LIBRARY_SIDES * sizeof(*sides));

    if (!sides)
        return -EIO;
    TRY(use_blocks(pool, &sides[0]));
    return use_snapshot(pool, &sides[0]);
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
    return minl2r_tx_commit(tx);
}
