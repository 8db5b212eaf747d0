/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - the inode table: which numbers are free, where an inode lies, how the table
 * grows.
 *
 * A number is free, taken (a running transaction makes an inode of it) or used. Only an
 * inode that is in the cache, locked for writing, changes its state on media; `used`
 * follows the commit. So whoever finds a number used and not in the cache may read its
 * inode.
 */
#ifndef PMFS_TABLE_H
#define PMFS_TABLE_H

#include "pmfs-proto/core/fs.h"
#include "pmfs-proto/core/numbers.h"

/* Builds fs->table from the states on media: one byte per inode is read. */
int table_attach(struct pmfs *fs);
void table_detach(struct pmfs *fs);

/* Used ones, and free ones, counted on demand; all lie below the end. */
uint64_t table_used(struct pmfs *fs);
uint64_t table_free(struct pmfs *fs);
uint64_t table_end(struct pmfs *fs);

/* Is `ino` used? */
bool table_is_used(struct pmfs *fs, uint64_t ino);

/* Finds the place of a used inode. -ESTALE if the table does not reach so far. */
int table_locate(struct pmfs *fs, uint64_t ino, struct inode_place *place);

/* A number taken, until table_keep() or table_give_back(). */
struct table_claim {
    struct inode_place place;
    bool grows;         /* grow_lock is held, and `tx` changes the table */
    uint64_t new_count; /* inode_count after the commit; 0: as before */
};

/* Takes a free number, growing the table by `tx` where it must. */
int table_take(struct pmfs *fs, struct minl2r_tx *tx, struct table_claim *claim);
void table_keep(struct pmfs *fs, const struct table_claim *claim);
void table_give_back(struct pmfs *fs, const struct table_claim *claim);

/*
 * After a committed transaction freed the inode: first it is used no more, then, once
 * the cache has forgotten it, its number is free.
 */
void table_unuse(struct pmfs *fs, uint64_t ino);
void table_free_number(struct pmfs *fs, uint64_t ino);

/*
 * Gives blocks back in which no inode is, the highest first, if they are more than
 * twice as many as are kept. Each in a transaction of its own; if one fails, that block
 * stays.
 */
void table_shrink(struct pmfs *fs);

/*
 * The first inode from `ino` on whose state is neither free nor used, or 0. For
 * mounting, before anything changes.
 */
uint64_t table_next_unfinished(struct pmfs *fs, uint64_t ino);

#endif
