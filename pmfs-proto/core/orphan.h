/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * orphan.h - inodes without a name, and the rest of truncations: what takes more than
 * one transaction. The first one says in the inode's state what is to be done, each of
 * the others frees a bounded number of blocks, the last one takes the state back.
 * Mounting goes on where a crash stopped.
 *
 * All but orphan_reap() and the last two are called with the inode's lock for writing.
 */
#ifndef PMFS_ORPHAN_H
#define PMFS_ORPHAN_H

#include "pmfs-proto/core/inode.h"

/*
 * Queues the loss of the last name: the inode is freed by this transaction if nobody
 * uses it and it is small, else it becomes an orphan. *state is what it will be.
 */
int orphan_unlink(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                  int64_t now_ns, enum pm_state *state);

/* After the commit. */
void orphan_unlinked(struct pmfs *fs, struct inode *inode, enum pm_state state);

/*
 * Frees the blocks past the end of a file, in as many transactions as it takes. Until
 * that has succeeded the file must not grow: they would come back as content.
 */
int orphan_finish_truncate(struct pmfs *fs, struct inode *inode);

/* Frees a pinned inode, not locked, if it is an orphan that nobody uses. */
void orphan_reap(struct pmfs *fs, struct inode *inode);

/* At mount: finishes what is unfinished, as far as the medium can be believed. */
int orphan_recover(struct pmfs *fs);

/* At unmount: frees every orphan, used or not. */
void orphan_reap_all(struct pmfs *fs);

#endif
