/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * in_place.c - the floor: bytes are stored where they belong, flushed, and one fence is
 * waited for. A crash tears what was being written. Only the tree stays whole: a node
 * has no slots yet when it is linked.
 */
#include "bench/schemes/families.h"
#include "bench/schemes/grow.h"
#include "bench/schemes/tree.h"

static void write_piece(struct file *file, const struct piece *piece, uint64_t size)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);

    uint64_t block = pm_load64(slot);

    if (block) {
        tree_put(file, block + piece->at, piece->src, piece->size);
        return;
    }
    block = tree_alloc(file);

    tree_put_block(file, block, 0, piece, tree_used(file, piece->index, size));
    tree_put_word(file, slot, block);
}

static int write_in_place(struct file *file, uint64_t offset, const void *src,
                          uint64_t size)
{
    uint64_t end = offset + size;

    if (size == 0)
        return 0;
    int rc = grow_nodes(file, offset, size, grow_in_place);

    if (rc < 0)
        return rc;
    grow_zero_gap(file, offset);
    struct piece piece = tree_piece(file, offset, src, size);

    do
        write_piece(file, &piece, file->size);
    while (tree_next_piece(file, &piece, end));
    if (end > file->size) {
        file->size = end;
        tree_put_word(file, &file->inode->size, end);
    }
    return tree_fence(file); /* all of it, then the caller */
}

const struct scheme scheme_none = {
    .name = "none",
    .what = "in place, one fence: no atomicity",
    .is_durable = true,
    .counts_copies = true,
    .create = tree_create,
    .open = tree_open,
    .close = tree_unmap,
    .write = write_in_place,
    .read = tree_read,
    .clear = tree_clear,
    .size = tree_size,
    .count = tree_count,
    .check = tree_check,
};
