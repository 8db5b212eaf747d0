/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xattr.h - extended attributes: packed one behind the other in blocks of their own,
 * which one lowest node names, so that any change of them is part of one transaction.
 */
#ifndef PMFS_XATTR_H
#define PMFS_XATTR_H

#include "pmfs-proto/core/file.h"

/* Bytes that all attributes of an inode may take. */
uint64_t xattr_size_max(const struct pmfs *fs);

/* Are they what they can be? -EUCLEAN. */
int xattr_check(const struct pmfs *fs, const struct inode_place *place);

/* Queues the removal of an attribute as part of a change, if it is there. */
int xattr_queue_remove(struct change *change, const char *name);

/* Queues the freeing of all blocks of attributes. Adds to `*freed`. */
int xattr_queue_free(const struct pmfs *fs, struct minl2r_tx *tx,
                     const struct inode *inode, uint64_t *freed);

#endif
