/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slab.c - small objects, cut from blocks. Written over the public transaction API
 * alone, so that a crash leaves a slab as the caller's transactions do: old or new.
 *
 *   slab.partial[class] -> block <-> block <-> block      the blocks of a class with
 * room
 *
 *   a block: | struct pm_slab_block | used bits | object | object | ... |
 *
 * A block is listed if and only if one of its used bits is clear. When the last object
 * goes, so does the block. A call visits the block concerned and at most two that are
 * next to it in the list, so its cost does not depend on how many objects there are.
 *
 * The order in every call: first what can fail (getting DRAM copies of the headers
 * concerned by minl2r_tx_edit(), writing the list's head), then changes to the copies,
 * which cannot (I8).
 */
#include <string.h>

#include "include/minl2r.h"
#include "libminl2r/error.h"
#include "libminl2r/pool.h"
#include "libminl2r/writeset.h"

/* What one call works on: the list of one class. */
struct list {
    struct minl2r_tx *tx;
    const struct minl2r_pool *pool;
    const uint64_t *head; /* in PM */
    struct shape {
        uint32_t object_size;
        uint32_t object_count;
        uint32_t objects_offset; /* bytes before the first object */
    } shape;
};

/* A block: as it is on media, and a copy as this transaction sees and changes it. */
struct block {
    uint64_t offset;
    const struct pm_slab_block *media;
    struct pm_slab_block *copy;
};

/* ---- Size classes
 * -------------------------------------------------------------------- */

/* 16, 32, 48, 64, 96, 128, 192, 256, ...: two per doubling. */
static uint32_t nominal_size(unsigned class)
{
    return ((class & 1 ? 32u : 24u) << class / 2) & ~15u;
}

static uint32_t word_count(uint32_t bits)
{
    return (bits + 63) / 64;
}

/* Objects are stretched to use what the nominal size would leave at the end of the
 * block. */
static struct shape shape_of(uint32_t block_size, unsigned class)
{
    struct shape shape;
    uint32_t size = nominal_size(class);
    uint32_t words = word_count(block_size / size);

    shape.objects_offset =
        ((uint32_t)sizeof(struct pm_slab_block) + 8 * words + 15) & ~15u;
    shape.object_count = (block_size - shape.objects_offset) / size;
    shape.object_size = size;
    if (shape.object_count > 0)
        shape.object_size =
            (block_size - shape.objects_offset) / shape.object_count & ~15u;
    return shape;
}

/* The smallest class whose objects hold `size` bytes, at most half a block. */
static unsigned class_of(uint32_t block_size, size_t size)
{
    unsigned class = 0;

    while (nominal_size(class) < size)
        class ++;
    if (class > 0 && shape_of(block_size, class - 1).object_size >= size)
        class --;
    return class;
}

/* Fills `list` for objects of `size` bytes; false if such objects take whole blocks. */
static bool list_of(struct list *list, struct minl2r_tx *tx,
                    const struct minl2r_slab *slab, size_t size)
{
    uint32_t block_size = tx->pool->geo.block_size;

    if (size > block_size / 2)
        return false;
    unsigned class = class_of(block_size, size);

    list->tx = tx;
    list->pool = tx->pool;
    list->head = &slab->partial[class];
    list->shape = shape_of(block_size, class);
    return list->shape.object_count >= 2;
}
_Static_assert(MINL2R_BLOCK_SIZE_MAX == 65536 && MINL2R_SLAB_CLASSES >= 21,
               "a block of 64 KiB has 21 classes with two objects or more");

/* ---- Used bits
 * ----------------------------------------------------------------------- */

/* The bits of word `index` that stand for no object: always set. */
static uint64_t no_object_bits(const struct shape *shape, uint32_t index)
{
    uint32_t bits = shape->object_count - index * 64;

    return bits >= 64 ? 0 : ~(uint64_t)0 << bits;
}

static uint32_t count_free(const struct list *list, const struct block *block)
{
    uint32_t free = 0;

    for (uint32_t i = 0; i < word_count(list->shape.object_count); i++)
        free += (uint32_t)__builtin_popcountll(~block->copy->used[i]);
    return free;
}

/*
 * Finds an object that is free, and was free before this transaction: the bytes of one
 * that it freed itself must stay as they are until commit, because a crash brings the
 * object back.
 */
static bool find_free(const struct list *list, const struct block *block,
                      uint32_t *index)
{
    for (uint32_t i = 0; i < word_count(list->shape.object_count); i++) {
        uint64_t free = ~(block->copy->used[i] | block->media->used[i]);

        if (free) {
            *index = i * 64 + (uint32_t)__builtin_ctzll(free);
            return true;
        }
    }
    return false;
}

/* ---- Blocks
 * -------------------------------------------------------------------------- */

static bool is_slab_block(const struct list *list, const struct pm_slab_block *block)
{
    const struct shape *shape = &list->shape;

    return block->magic == PM_SLAB_MAGIC && block->object_size == shape->object_size &&
           block->object_count == shape->object_count &&
           block->objects_offset == shape->objects_offset;
}

/* Gets the copy of the block's header. The identity of a block is never changed by a
 * write. */
static int edit_block(const struct list *list, uint64_t offset, struct block *block)
{
    block->offset = offset;
    block->media = pool_at(list->pool, offset);
    return minl2r_tx_edit(list->tx, block->media, list->shape.objects_offset,
                          &block->copy);
}

/* Follows a link of the list. */
static int edit_listed(const struct list *list, uint64_t offset, struct block *block)
{
    if (!is_blocks(&list->pool->geo, offset, 1) ||
        !is_slab_block(list, pool_at(list->pool, offset)))
        return error_set(EUCLEAN,
                         "slab: offset %llu is listed, but no block of %u B objects",
                         (unsigned long long)offset, list->shape.object_size);
    return edit_block(list, offset, block);
}

static int list_damaged(const struct list *list, uint64_t offset)
{
    return error_set(EUCLEAN, "slab: list of %u B objects is broken at offset %llu",
                     list->shape.object_size, (unsigned long long)offset);
}

/* ---- Lists
 * --------------------------------------------------------------------------- */

/* What lies before and after a place in the list. NULL copy: nothing. */
struct place {
    struct block prev, next;
};

/*
 * Makes both sides of the place point to other blocks. Only writing the head can fail,
 * and only if this transaction has not written it before.
 */
static int point_to(const struct list *list, const struct place *place,
                    uint64_t prev_next, uint64_t next_prev)
{
    if (place->prev.copy) {
        place->prev.copy->next = prev_next;
    } else {
        int rc = minl2r_tx_write(list->tx, list->head, &prev_next, sizeof(prev_next));
        if (rc < 0)
            return rc;
    }
    if (place->next.copy)
        place->next.copy->prev = next_prev;
    return 0;
}

/* The head block; its copy is NULL if the list is empty. */
static int edit_head(const struct list *list, struct block *block)
{
    uint64_t offset;
    int rc = minl2r_tx_read(list->tx, &offset, list->head, sizeof(offset));

    block->copy = NULL;
    if (rc < 0 || offset == 0)
        return rc;
    rc = edit_listed(list, offset, block);
    if (rc == 0 && block->copy->prev != 0)
        return list_damaged(list, offset);
    return rc;
}

/* The block after `block`; its copy is NULL if that is the last. */
static int edit_next(const struct list *list, const struct block *block,
                     struct block *next)
{
    int rc = 0;

    next->copy = NULL;
    if (block->copy->next == 0)
        return 0;
    rc = edit_listed(list, block->copy->next, next);
    if (rc == 0 && next->copy->prev != block->offset)
        return list_damaged(list, block->offset);
    return rc;
}

/* The place that a listed block has. */
static int find_place(const struct list *list, const struct block *block,
                      struct place *place)
{
    int rc = edit_next(list, block, &place->next);

    if (rc < 0)
        return rc;
    if (block->copy->prev == 0) {
        struct block head;

        place->prev.copy = NULL;
        rc = edit_head(list, &head);
        if (rc == 0 && (!head.copy || head.offset != block->offset))
            return list_damaged(list, block->offset);
        return rc;
    }
    rc = edit_listed(list, block->copy->prev, &place->prev);
    if (rc == 0 && place->prev.copy->next != block->offset)
        return list_damaged(list, block->offset);
    return rc;
}

/*
 * Lists a block that is about to get room. It goes behind the head: none of its room
 * may be used in this transaction, and the head is where allocation looks.
 */
static int list_block(const struct list *list, const struct block *block)
{
    struct place place = {0};
    int rc = edit_head(list, &place.prev);

    if (rc == 0 && place.prev.copy)
        rc = edit_next(list, &place.prev, &place.next);
    if (rc == 0)
        rc = point_to(list, &place, block->offset, block->offset);
    if (rc < 0)
        return rc;
    block->copy->prev = place.prev.copy ? place.prev.offset : 0;
    block->copy->next = place.next.copy ? place.next.offset : 0;
    return 0;
}

static int unlist_block(const struct list *list, const struct block *block)
{
    struct place place;
    int rc = find_place(list, block, &place);

    return rc < 0 ? rc : point_to(list, &place, block->copy->next, block->copy->prev);
}

/* Unlists a block and gives it back to the pool: both or none. */
static int release_block(const struct list *list, const struct block *block)
{
    struct place place;
    int rc = find_place(list, block, &place);

    if (rc == 0)
        rc = point_to(list, &place, block->copy->next, block->copy->prev);
    if (rc < 0)
        return rc;
    rc = minl2r_tx_free(list->tx, block->offset, 1);
    if (rc < 0)
        point_to(list, &place, block->offset, block->offset);
    return rc;
}

/* ---- Allocating
 * ---------------------------------------------------------------------- */

static void init_block(const struct list *list, struct pm_slab_block *block,
                       uint64_t next)
{
    const struct shape *shape = &list->shape;

    memset(block, 0, shape->objects_offset);
    block->magic = PM_SLAB_MAGIC;
    block->object_size = shape->object_size;
    block->object_count = shape->object_count;
    block->objects_offset = shape->objects_offset;
    block->next = next;
    for (uint32_t i = 0; i < word_count(shape->object_count); i++)
        block->used[i] = no_object_bits(shape, i);
}

/* Takes a new block, before the present head, and its first object. */
static int alloc_in_new_block(const struct list *list, const struct block *head,
                              uint64_t *offset)
{
    struct place place = {.next = *head};
    struct pm_slab_block *block;
    uint64_t block_offset;
    int rc = minl2r_tx_alloc(list->tx, 1, &block_offset, &block);

    if (rc < 0)
        return rc;
    init_block(list, block, head->copy ? head->offset : 0);
    block->used[0] |= 1;
    rc = point_to(list, &place, block_offset, block_offset);
    if (rc < 0) {
        minl2r_tx_free(list->tx, block_offset, 1);
        return rc;
    }
    *offset = block_offset + list->shape.objects_offset;
    return 0;
}

static int alloc_in_block(const struct list *list, const struct block *block,
                          uint32_t index, uint64_t *offset)
{
    if (count_free(list, block) == 1) {
        int rc = unlist_block(list, block);
        if (rc < 0)
            return rc;
    }
    block->copy->used[index / 64] |= (uint64_t)1 << index % 64;
    *offset =
        block->offset + list->shape.objects_offset + index * list->shape.object_size;
    return 0;
}

static int alloc_small(const struct list *list, uint64_t *offset)
{
    struct block head;
    uint32_t index;
    int rc = edit_head(list, &head);

    if (rc < 0)
        return rc;
    if (head.copy && count_free(list, &head) == 0)
        return list_damaged(list, head.offset);
    if (head.copy && find_free(list, &head, &index))
        return alloc_in_block(list, &head, index, offset);
    return alloc_in_new_block(list, &head, offset);
}

static uint64_t whole_blocks(const struct minl2r_tx *tx, size_t size)
{
    uint32_t block_size = tx->pool->geo.block_size;

    return size / block_size + (size % block_size != 0);
}

int minl2r_slab_alloc(struct minl2r_tx *tx, const struct minl2r_slab *slab, size_t size,
                      uint64_t *offset)
{
    struct list list;

    if (size == 0)
        return error_set(EINVAL, "slab: an object of 0 bytes");
    if (!list_of(&list, tx, slab, size))
        return minl2r_tx_alloc(tx, whole_blocks(tx, size), offset, NULL);
    return alloc_small(&list, offset);
}

/* ---- Freeing
 * ------------------------------------------------------------------------- */

static int not_allocated(const struct list *list, uint64_t offset)
{
    return error_set(EINVAL, "slab: no object of %u B is allocated at offset %llu",
                     list->shape.object_size, (unsigned long long)offset);
}

/* The block and index of the object at `offset`. */
static int find_object(const struct list *list, uint64_t offset, struct block *block,
                       uint32_t *index)
{
    const struct geometry *geo = &list->pool->geo;
    uint64_t in_block = (offset - geo->zones_offset) & (geo->block_size - 1);
    uint64_t start = offset - in_block;
    uint64_t in_objects = in_block - list->shape.objects_offset;

    if (!is_blocks(geo, start, 1) || !is_slab_block(list, pool_at(list->pool, start)) ||
        in_block < list->shape.objects_offset ||
        in_objects % list->shape.object_size != 0 ||
        in_objects / list->shape.object_size >= list->shape.object_count)
        return not_allocated(list, offset);
    *index = (uint32_t)(in_objects / list->shape.object_size);

    int rc = edit_block(list, start, block);

    if (rc == 0 && !(block->copy->used[*index / 64] & (uint64_t)1 << *index % 64))
        return not_allocated(list, offset);
    return rc;
}

static int free_small(const struct list *list, uint64_t offset)
{
    struct block block;
    uint32_t index;
    int rc = find_object(list, offset, &block, &index);

    if (rc < 0)
        return rc;
    uint32_t free = count_free(list, &block);

    if (free == 0)
        rc = list_block(list, &block);
    else if (free == list->shape.object_count - 1)
        rc = release_block(list, &block);
    if (rc < 0)
        return rc;
    block.copy->used[index / 64] &= ~((uint64_t)1 << index % 64);
    return 0;
}

int minl2r_slab_free(struct minl2r_tx *tx, const struct minl2r_slab *slab,
                     uint64_t offset, size_t size)
{
    struct list list;

    if (size == 0)
        return error_set(EINVAL, "slab: an object of 0 bytes");
    if (!list_of(&list, tx, slab, size))
        return minl2r_tx_free(tx, offset, whole_blocks(tx, size));
    return free_small(&list, offset);
}
