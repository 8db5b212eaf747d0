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

/*
 * Queues what else of the attributes changes with a file: the access list follows new
 * permission bits (`mode`, or NULL), and capabilities are dropped.
 */
int xattr_queue_follow(struct change *change, const uint32_t *mode,
                       bool drop_capabilities);

/*
 * What is made in a directory inherits its default list: fills in attributes and mode
 * of the new inode, whose block map of attributes is the caller's to make of `*bytes`,
 * to be freed. Without a default list `*bytes` is NULL and `umask` is taken from the
 * mode. With the directory's lock.
 */
int xattr_inherit(struct pmfs *fs, const struct inode *parent, uint32_t umask,
                  struct pm_inode *pm, uint8_t **bytes);

/* Queues the freeing of all blocks of attributes. Adds to `*freed`. */
int xattr_queue_free(const struct pmfs *fs, struct minl2r_tx *tx,
                     const struct inode *inode, uint64_t *freed);

#endif
