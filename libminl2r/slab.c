/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab.c - small objects, cut from blocks. It changes PM by the public transaction API
 * alone, so that a crash leaves a slab as the caller's transactions do: old or new.
 *
 *   slab.partial[class] -> block <-> block <-> block     those of a class with room
 *
 *   a block: | struct pm_slab_block | used bits | object | object | ... |
 *
 * A block is listed if and only if one of its used bits is clear. When the last object
 * goes, so does the block. A call visits the block concerned and at most two that are
 * next to it in the list, so its cost does not depend on how many objects there are.
 *
 * Every call works in two steps: it reads, checks and notes the words that will change
 * (struct op); then it queues all of them or none (I8).
 */
#include <errno.h>

#include "include/minl2r.h"
#include "libminl2r/error.h"
#include "libminl2r/pool.h"
#include "libminl2r/tx.h"

#define CHANGES_MAX 5
#define USED_WORDS_MAX (MINL2R_BLOCK_SIZE_MAX / 16 / 64)

/* The blocks of one class. */
struct shape {
    uint32_t object_size;
    uint32_t object_count;
    uint32_t objects_offset; /* bytes before the first object */
};

/* A word in PM that a call changes. */
struct change {
    const uint64_t *word;
    uint64_t from, to;
};

/* One call, on the list of one class. */
struct op {
    struct minl2r_tx *tx;
    const struct minl2r_pool *pool;
    const uint64_t *head;
    struct shape shape;
    struct change changes[CHANGES_MAX];
    unsigned change_count;
};

/* A block in PM, and its links as this transaction sees them. Offset 0: none. */
struct block {
    uint64_t offset;
    const struct pm_slab_block *pm;
    uint64_t next, prev;
};

/* ---- Size classes ---------------------------------------------------------------- */

/* 16, 32, 48, 64, 96, 128, 192, 256, ...: two per doubling. */
static uint32_t nominal_size(unsigned index)
{
    return ((index & 1 ? 32u : 24u) << index / 2) & ~15u;
}

static uint32_t word_count(uint32_t bits)
{
    return (bits + 63) / 64;
}

/* Objects are stretched to use what nominal sizes would leave at the block's end. */
static struct shape shape_of(uint32_t block_size, unsigned index)
{
    uint32_t size = nominal_size(index);
    uint32_t words = word_count(block_size / size);
    uint32_t header_size =
        ((uint32_t)sizeof(struct pm_slab_block) + 8 * words + 15) & ~15u;
    uint32_t space = block_size - header_size;
    uint32_t count = space / size;

    return (struct shape){count ? space / count & ~15u : 0, count, header_size};
}

/* The smallest class whose objects hold `size` bytes, at most half a block. */
static unsigned class_of(uint32_t block_size, size_t size)
{
    unsigned index = 0;

    while (nominal_size(index) < size)
        index++;
    if (index > 0 && shape_of(block_size, index - 1).object_size >= size)
        index--;
    return index;
}

/* Begins a call for objects of `size` bytes; false if these take whole blocks. */
static bool op_init(struct op *op, struct minl2r_tx *tx, const struct minl2r_slab *slab,
                    size_t size)
{
    uint32_t block_size = tx->pool->geo.block_size;

    if (size > block_size / 2)
        return false;
    unsigned index = class_of(block_size, size);

    op->tx = tx;
    op->pool = tx->pool;
    op->head = &slab->partial[index];
    op->shape = shape_of(block_size, index);
    op->change_count = 0;
    return op->shape.object_count >= 2;
}
_Static_assert(MINL2R_BLOCK_SIZE_MAX == 65536 && MINL2R_SLAB_CLASSES >= 21,
               "in a block of 64 KiB, 21 classes have two objects or more");

static uint64_t whole_blocks(const struct minl2r_tx *tx, size_t size)
{
    uint32_t block_size = tx->pool->geo.block_size;

    return size / block_size + (size % block_size != 0);
}

/* ---- Changes --------------------------------------------------------------------- */

static void note(struct op *op, const uint64_t *word, uint64_t from, uint64_t to)
{
    op->changes[op->change_count++] = (struct change){word, from, to};
}

/*
 * Takes back the first `count` changes, of a call that failed with `rc`: these words
 * are queued, so this needs no log. It may need memory; without, the caller must abort.
 */
static int unqueue(const struct op *op, unsigned count, int rc)
{
    while (count-- > 0)
        if (minl2r_tx_write(op->tx, op->changes[count].word, &op->changes[count].from,
                            sizeof(uint64_t)) < 0)
            return -ENOMEM;
    return rc;
}

static int queue(const struct op *op)
{
    for (unsigned i = 0; i < op->change_count; i++) {
        int rc = minl2r_tx_write(op->tx, op->changes[i].word, &op->changes[i].to,
                                 sizeof(uint64_t));
        if (rc != 0)
            return unqueue(op, i, rc);
    }
    return 0;
}

/* ---- Blocks ---------------------------------------------------------------------- */

static bool is_slab_block(const struct op *op, uint64_t offset)
{
    const struct shape *shape = &op->shape;

    if (!is_blocks(&op->pool->geo, offset, 1))
        return false;
    const struct pm_slab_block *block = pool_at(op->pool, offset);

    return block->magic == PM_SLAB_MAGIC && block->object_size == shape->object_size &&
           block->object_count == shape->object_count &&
           block->objects_offset == shape->objects_offset;
}

static int read_block(const struct op *op, uint64_t offset, struct block *block)
{
    uint64_t links[2];

    block->offset = offset;
    block->pm = pool_at(op->pool, offset);
    int rc = minl2r_tx_read(op->tx, links, &block->pm->next, sizeof(links));

    block->next = links[0];
    block->prev = links[1];
    return rc;
}
_Static_assert(offsetof(struct pm_slab_block, prev) ==
                   offsetof(struct pm_slab_block, next) + 8,
               "links are read together");

/* Reads the block that a link names, if any. */
static int follow(const struct op *op, uint64_t link, struct block *block)
{
    block->offset = 0;
    if (link == 0)
        return 0;
    if (!is_slab_block(op, link))
        return error_set(EUCLEAN,
                         "slab: the list of %u B objects names offset %llu, which is "
                         "no block of such",
                         op->shape.object_size, (unsigned long long)link);
    return read_block(op, link, block);
}

static int list_damaged(const struct op *op, uint64_t offset)
{
    return error_set(EUCLEAN, "slab: the list of %u B objects is broken at offset %llu",
                     op->shape.object_size, (unsigned long long)offset);
}

/* ---- Used bits ------------------------------------------------------------------- */

/* The bits of word `index` that stand for no object: always set. */
static uint64_t no_object_bits(const struct shape *shape, uint32_t index)
{
    uint32_t bits = shape->object_count - index * 64;

    return bits >= 64 ? 0 : ~(uint64_t)0 << bits;
}

/* Reads the used bits as this transaction sees them. */
static int read_used(const struct op *op, const struct block *block,
                     uint64_t used[USED_WORDS_MAX])
{
    return minl2r_tx_read(op->tx, used, block->pm->used,
                          word_count(op->shape.object_count) * sizeof(uint64_t));
}

static uint32_t count_free(const struct shape *shape, const uint64_t *used)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < word_count(shape->object_count); i++)
        count += (uint32_t)__builtin_popcountll(~used[i]);
    return count;
}

/*
 * Finds an object that is free and was free before this transaction: the bytes of one
 * that it freed itself must stay as they are until commit, because a crash brings the
 * object back.
 */
static bool find_free(const struct shape *shape, const uint64_t *used,
                      const struct pm_slab_block *pm, uint32_t *index)
{
    for (uint32_t i = 0; i < word_count(shape->object_count); i++) {
        uint64_t free = ~(used[i] | pm->used[i]);

        if (free) {
            *index = i * 64 + (uint32_t)__builtin_ctzll(free);
            return true;
        }
    }
    return false;
}

static void note_flip(struct op *op, const struct block *block, const uint64_t *used,
                      uint32_t index)
{
    uint64_t word = used[index / 64];

    note(op, &block->pm->used[index / 64], word, word ^ (uint64_t)1 << index % 64);
}

/* ---- Lists ----------------------------------------------------------------------- */

static int read_head(const struct op *op, struct block *head)
{
    uint64_t offset;
    int rc = minl2r_tx_read(op->tx, &offset, op->head, sizeof(offset));

    if (rc == 0)
        rc = follow(op, offset, head);
    if (rc == 0 && head->offset && head->prev != 0)
        return list_damaged(op, offset);
    return rc;
}

/* The link in front of a place in the list: the head, or in the block before. */
static const uint64_t *link_after(const struct op *op, const struct block *prev)
{
    return prev->offset ? &prev->pm->next : op->head;
}

/*
 * Lists a block that gets room now. It goes behind the head: this transaction can use
 * none of that room (see find_free), and allocation looks at the head only.
 */
static int note_listing(struct op *op, const struct block *block)
{
    struct block head, next = {0};
    int rc = read_head(op, &head);

    if (rc == 0 && head.offset)
        rc = follow(op, head.next, &next);
    if (rc != 0)
        return rc;
    if (next.offset && next.prev != head.offset)
        return list_damaged(op, head.offset);
    note(op, link_after(op, &head), next.offset, block->offset);
    if (next.offset)
        note(op, &next.pm->prev, head.offset, block->offset);
    note(op, &block->pm->next, block->next, next.offset);
    note(op, &block->pm->prev, block->prev, head.offset);
    return 0;
}

static int note_unlisting(struct op *op, const struct block *block)
{
    struct block prev, next;
    uint64_t link;
    int rc = follow(op, block->prev, &prev);

    if (rc == 0)
        rc = follow(op, block->next, &next);
    if (rc == 0)
        rc = minl2r_tx_read(op->tx, &link, link_after(op, &prev), sizeof(link));
    if (rc != 0)
        return rc;
    if (link != block->offset || (next.offset && next.prev != block->offset))
        return list_damaged(op, block->offset);
    note(op, link_after(op, &prev), block->offset, next.offset);
    if (next.offset)
        note(op, &next.pm->prev, block->offset, prev.offset);
    return 0;
}

/* ---- Allocating ------------------------------------------------------------------ */

/* Nothing refers to the block yet, so this stores to it. Its first object is used. */
static void init_block(const struct op *op, struct pm_slab_block *block, uint64_t next)
{
    const struct shape *shape = &op->shape;

    *block = (struct pm_slab_block){
        .magic = PM_SLAB_MAGIC,
        .object_size = shape->object_size,
        .object_count = shape->object_count,
        .objects_offset = shape->objects_offset,
        .next = next,
    };
    for (uint32_t i = 0; i < word_count(shape->object_count); i++)
        block->used[i] = no_object_bits(shape, i);
    block->used[0] |= 1;
}

static int alloc_in_new_block(struct op *op, const struct block *head, uint64_t *offset)
{
    struct pm_slab_block *block;
    uint64_t block_offset;
    int rc = minl2r_tx_alloc(op->tx, 1, &block_offset, &block);

    if (rc != 0)
        return rc;
    init_block(op, block, head->offset);
    note(op, op->head, head->offset, block_offset);
    if (head->offset)
        note(op, &head->pm->prev, 0, block_offset);
    rc = queue(op);
    if (rc != 0) {
        minl2r_tx_free(op->tx, block_offset, 1);
        return rc;
    }
    *offset = block_offset + op->shape.objects_offset;
    return 0;
}

static int alloc_small(struct op *op, uint64_t *offset)
{
    const struct shape *shape = &op->shape;
    uint64_t used[USED_WORDS_MAX];
    struct block head;
    uint32_t index;
    int rc = read_head(op, &head);

    if (rc == 0 && head.offset)
        rc = read_used(op, &head, used);
    if (rc != 0)
        return rc;
    uint32_t free_count = head.offset ? count_free(shape, used) : 0;

    if (head.offset && free_count == 0)
        return list_damaged(op, head.offset);
    if (!head.offset || !find_free(shape, used, head.pm, &index))
        return alloc_in_new_block(op, &head, offset);
    if (free_count == 1)
        rc = note_unlisting(op, &head);
    if (rc != 0)
        return rc;
    note_flip(op, &head, used, index);
    *offset =
        head.offset + shape->objects_offset + index * (uint64_t)shape->object_size;
    return queue(op);
}

static int check_arguments(const struct minl2r_tx *tx, const struct minl2r_slab *slab,
                           size_t size)
{
    uint64_t place = pool_offset(tx->pool, slab);

    if (place >= tx->pool->pm.size)
        return pool_outside(tx->pool, place, sizeof(*slab));
    if ((uintptr_t)slab % sizeof(uint64_t) != 0 || minl2r_offset(tx->pool, slab) == 0)
        return error_set(EINVAL, "slab: no aligned place in the pool's data area");
    if (size == 0)
        return error_set(EINVAL, "slab: an object of 0 bytes");
    return 0;
}

int minl2r_slab_alloc(struct minl2r_tx *tx, const struct minl2r_slab *slab, size_t size,
                      uint64_t *offset)
{
    struct op op;
    int rc = check_arguments(tx, slab, size);

    if (rc != 0)
        return rc;
    if (!op_init(&op, tx, slab, size))
        return minl2r_tx_alloc(tx, whole_blocks(tx, size), offset, NULL);
    return alloc_small(&op, offset);
}

/* ---- Freeing --------------------------------------------------------------------- */

static int not_allocated(const struct op *op, uint64_t offset)
{
    return error_set(EINVAL, "slab: no object of %u B is allocated at offset %llu",
                     op->shape.object_size, (unsigned long long)offset);
}

/* The block and the index of the object at `offset`. */
static int find_object(const struct op *op, uint64_t offset, struct block *block,
                       uint32_t *index)
{
    const struct geometry *geo = &op->pool->geo;
    const struct shape *shape = &op->shape;
    uint64_t in_block = (offset - geo->zones_offset) & (geo->block_size - 1);
    uint64_t in_objects = in_block - shape->objects_offset;

    if (!is_slab_block(op, offset - in_block) || in_block < shape->objects_offset ||
        in_objects % shape->object_size != 0 ||
        in_objects / shape->object_size >= shape->object_count)
        return not_allocated(op, offset);
    *index = (uint32_t)(in_objects / shape->object_size);
    return read_block(op, offset - in_block, block);
}

/* Queues the noted changes, and gives the block back: both or none. */
static int queue_with_release(const struct op *op, const struct block *block)
{
    int rc = queue(op);

    if (rc != 0)
        return rc;
    rc = minl2r_tx_free(op->tx, block->offset, 1);
    return rc != 0 ? unqueue(op, op->change_count, rc) : 0;
}

static int free_small(struct op *op, uint64_t offset)
{
    uint64_t used[USED_WORDS_MAX];
    struct block block;
    uint32_t index = 0;
    int rc = find_object(op, offset, &block, &index);

    if (rc == 0)
        rc = read_used(op, &block, used);
    if (rc != 0)
        return rc;
    if (!(used[index / 64] & (uint64_t)1 << index % 64))
        return not_allocated(op, offset);
    uint32_t free_count = count_free(&op->shape, used);
    bool was_last = free_count == op->shape.object_count - 1;

    if (free_count == 0)
        rc = note_listing(op, &block);
    else if (was_last)
        rc = note_unlisting(op, &block);
    if (rc != 0)
        return rc;
    note_flip(op, &block, used, index);
    return was_last ? queue_with_release(op, &block) : queue(op);
}

int minl2r_slab_free(struct minl2r_tx *tx, const struct minl2r_slab *slab,
                     uint64_t offset, size_t size)
{
    struct op op;
    int rc = check_arguments(tx, slab, size);

    if (rc != 0)
        return rc;
    if (!op_init(&op, tx, slab, size))
        return minl2r_tx_free(tx, offset, whole_blocks(tx, size));
    return free_small(&op, offset);
}
