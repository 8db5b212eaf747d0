/* SPDX-License-Identifier: BSD-3-Clause */
/* grow.h - making room in a tree: what all schemes do alike, but for linking a node. */
#ifndef BENCH_GROW_H
#define BENCH_GROW_H

#include "bench/schemes/tree.h"

/* A node to be added. */
struct grow_link {
    uint64_t first_slot;  /* its first slot: the old root, or 0 */
    const uint64_t *word; /* that is to name it */
    uint32_t height;      /* of the tree, if it is to be its root; else 0 */
};
typedef int grow_fn(struct file *file, const struct grow_link *link, uint64_t *node);

/* One aligned word makes it so, after a fence. */
int grow_in_place(struct file *file, const struct grow_link *link, uint64_t *node);

/* The same, where nobody follows slots yet: only a root needs the fence. */
int grow_past_end(struct file *file, const struct grow_link *link, uint64_t *node);

/* Raises the root until the tree covers block `last`. */
int grow_height(struct file *file, uint64_t last, grow_fn *add);

/*
 * As grow_height(), and adds the nodes that are missing on the way to a range. -ENOSPC
 * if a write of the range could lack blocks.
 */
int grow_nodes(struct file *file, uint64_t offset, uint64_t size, grow_fn *add);

/* What of the bytes from the end of the file to `offset` lies in its last block. That is
 * there: no file ends in a hole. */
struct piece grow_gap(const struct file *file, uint64_t offset);

/* Makes them zeros, in place: nobody reads them yet. */
void grow_zero_gap(struct file *file, uint64_t offset);

#endif
