/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dir.h - directories: names are found, listed and changed where they lie on media;
 * nothing of it is kept in DRAM.
 */
#ifndef PMFS_DIR_H
#define PMFS_DIR_H

#include "pmfs-proto/core/dirent.h"
#include "pmfs-proto/core/inode.h"

/* Locks a directory for reading or writing. -ENOTDIR, -ESTALE... */
int dir_lock(struct pmfs *fs, struct inode *inode, enum lock_mode mode);

/* Where an entry is, or would be. */
struct dir_entry {
    const struct pm_dirent *pm; /* NULL: not there */
    const void *block;          /* in which it lies, or would; NULL: there is none */
};

/* -ENOENT if there is none. Not for "." and "..". */
int dir_find(struct pmfs *fs, const struct inode *inode, const struct name *name,
             struct dir_entry *entry);

/* Has it no names? */
int dir_check_empty(struct pmfs *fs, const struct inode *inode, bool *is_empty);

/*
 * What a transaction does to a directory. Begin with the head, as it is to be, and what
 * is to be removed, or passed on, after something was added; else leave the rest zero.
 */
struct dir_change {
    struct inode_head head;          /* for the caller to write */
    const struct dir_entry *leaving; /* NULL: nothing */
    uint64_t heir;                   /* the inode that gets its name, or 0 */
    uint32_t heir_type;
    const void *added_to; /* the block that an entry was put into, or NULL */
    bool has_left;        /* `leaving` was removed, or passed on, with the adding */
    bool no_join;         /* blocks are left as they are, however little is in them */
    bool joins;           /* blocks were to be joined */
};

/*
 * Removing needs log only, but joining blocks wants a block, memory and more log. Once
 * one of these has failed, the transaction has a part of it: it has to be aborted, and
 * done again with `no_join`.
 */
static inline bool dir_asks_again(const struct dir_change *change, int rc)
{
    return change->joins && !change->no_join && (rc == -ENOSPC || rc == -ENOMEM);
}

/* Adds the entry of a name that dir_find() has not found, but where it would be. */
int dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
            const struct name *name, const struct dir_entry *place, uint64_t ino,
            uint32_t type, struct dir_change *change);

/* Removes the entry of a name. See dir_asks_again(). */
int dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
               const struct name *name, const struct dir_entry *entry,
               struct dir_change *change);

/* Lets the entry of `leaving` name its heir. */
int dir_pass_on(struct minl2r_tx *tx, const struct inode *inode,
                const struct dir_change *change);

/* Lets an entry name another inode. */
int dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                const struct dir_entry *entry, uint64_t ino, uint32_t type);

/* Where the entries begin; what is below stands for "." and "..". */
#define DIR_COOKIE_FIRST 2u

/*
 * Visits the live entries from `cookie` on, by position. The visitor
 * gets the cookie after the entry and answers 0 to go on.
 */
typedef int dir_visit_fn(void *arg, const struct pm_dirent *pm, uint64_t next_cookie);
int dir_list(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
             dir_visit_fn *visit, void *arg);

#endif
