/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * linear.h - directories of formats 1 and 2: blocks of entries in no order, without
 * tags, in a block map. One is converted when it is locked first; as long as there is
 * no room for that, names are looked for in all blocks, and can be removed, but not
 * added. All are called with the directory's lock.
 */
#ifndef PMFS_LINEAR_H
#define PMFS_LINEAR_H

#include "pmfs-proto/core/dir.h"

static inline bool linear_is(const struct inode *inode)
{
    return !(inode->place.pm->flags & PM_INODE_HASHED);
}

/* With the lock for writing. Without room it stays as it is, and that is no error. */
int linear_convert(struct pmfs *fs, struct inode *inode);

/* As the calls of dir.h. */
int linear_check_empty(struct pmfs *fs, const struct inode *inode, bool *is_empty);
int linear_find(struct pmfs *fs, const struct inode *inode, const struct name *name,
                struct dir_entry *entry);
int linear_list(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
                dir_visit_fn *visit, void *arg);

#endif
