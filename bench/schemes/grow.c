/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/schemes/grow.h"

#include <errno.h>

static int link_in_place(struct file *file, const struct grow_link *link, bool orders,
                         uint64_t *node)
{
    *node = tree_add_node(file);
    if (link->first_slot)
        tree_put_word(file, tree_node(file, *node), link->first_slot);
    int rc = orders ? tree_fence(file) : 0; /* the node, then what names it */

    if (rc == 0)
        tree_put_word(file, link->word, tree_root_word(*node, link->height));
    return rc;
}

int grow_in_place(struct file *file, const struct grow_link *link, uint64_t *node)
{
    return link_in_place(file, link, true, node);
}

int grow_past_end(struct file *file, const struct grow_link *link, uint64_t *node)
{
    return link_in_place(file, link, link->height > 0, node);
}

int grow_height(struct file *file, uint64_t last, grow_fn *add)
{
    int rc = 0;

    while (rc == 0 && !tree_covers(file, last)) {
        const struct grow_link link = {.first_slot = file->root,
                                       .word = &file->inode->root,
                                       .height = file->height + 1};

        rc = add(file, &link, &file->root);
        file->height += rc == 0;
    }
    return rc;
}

int grow_nodes(struct file *file, uint64_t offset, uint64_t size, grow_fn *add)
{
    uint64_t first = offset >> tree_of(file)->block_shift;
    uint64_t last = tree_last_index(file, offset + size);

    if (!tree_has_blocks(file, tree_blocks_needed(file, offset, size)))
        return -ENOSPC;
    int rc = grow_height(file, last, add);

    for (uint32_t level = file->height - 1; rc == 0 && level > 0; level--) {
        uint64_t number = tree_node_number(file, first, level);

        for (; rc == 0 && number <= tree_node_number(file, last, level); number++) {
            uint64_t index = number << (tree_of(file)->slot_shift * level);
            const struct grow_link link = {.word = tree_slot(file, index, level + 1)};
            uint64_t node;

            if (!pm_load64(link.word))
                rc = add(file, &link, &node);
        }
    }
    return rc;
}

struct piece grow_gap(const struct file *file, uint64_t offset)
{
    static const uint8_t zeros[MINL2R_BLOCK_SIZE_MAX];
    uint64_t size = offset > file->size ? offset - file->size : 0;
    struct piece gap = tree_piece(file, file->size, zeros, size);

    if (gap.at == 0)
        gap.size = 0;
    return gap;
}

void grow_zero_gap(struct file *file, uint64_t offset)
{
    struct piece gap = grow_gap(file, offset);

    if (gap.size > 0)
        tree_put_zeros(file, pm_load64(tree_slot(file, gap.index, 1)) + gap.at,
                       gap.size);
}
