/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * dir.h - directories: entries on media, an index of names in DRAM.
 *
 * A change is prepared as part of a transaction, and applied to the index once that has
 * committed; what can fail has failed before. Who prepares holds the directory's lock
 * for writing until it has applied.
 */
#ifndef PMFS_DIR_H
#define PMFS_DIR_H

#include "pmfs-proto/core/inode.h"

struct name {
    const char *text;
    uint32_t size; /* bytes; 1 to PMFS_NAME_MAX */
    uint32_t hash;
};

/* Makes a name of a string. -ENAMETOOLONG, -EINVAL (empty, or with a '/'). */
int name_init(struct name *name, const struct pmfs *fs, const char *text);

/* Locks a directory for reading or writing, with its index built. -ENOTDIR, -ESTALE...
 */
int dir_lock(struct pmfs *fs, struct inode *inode, enum lock_mode mode);

void dir_destroy(struct dir *dir);

/* An entry found. */
struct dir_entry {
    const struct pm_dirent *pm;
    uint32_t unit; /* its place in the directory, in units of PM_DIRENT_UNIT */
};

/* -ENOENT if there is none. Not for "." and "..". */
int dir_find(struct pmfs *fs, const struct inode *inode, const struct name *name,
             struct dir_entry *entry);

bool dir_is_empty(const struct inode *inode);

enum dir_change_kind { DIR_NOTHING, DIR_ADD, DIR_REMOVE };

struct dir_change {
    enum dir_change_kind kind;
    struct name name;
    uint32_t unit;
    uint32_t units;        /* that the entry takes */
    uint32_t free_units;   /* of the free entry behind it, after a DIR_ADD */
    const void *new_block; /* memory of the block that a DIR_ADD has added, or NULL */
};

/*
 * Adds an entry; changes size and blocks in `head`, for the caller to write, if the
 * directory must grow.
 */
int dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
            const struct name *name, uint64_t ino, uint32_t type,
            struct inode_head *head, struct dir_change *change);

/* Removes an entry. `added` is what the same transaction adds to this directory, or
 * NULL. */
int dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
               const struct name *name, const struct dir_entry *entry,
               const struct dir_change *added, struct dir_change *change);

/* Lets an entry name another inode. Changes nothing of the index. */
int dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                const struct dir_entry *entry, uint64_t ino, uint32_t type);

/* After the commit. */
void dir_apply(struct pmfs *fs, const struct inode *inode,
               const struct dir_change *change);

/* Where the entries begin; what is below stands for "." and "..". */
#define DIR_COOKIE_FIRST 2u

/*
 * Visits the live entries from `cookie` on. The visitor gets the cookie after the entry
 * and answers 0 to go on. Needs no index.
 */
typedef int dir_visit_fn(void *arg, const struct pm_dirent *pm, uint64_t next_cookie);
int dir_list(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
             dir_visit_fn *visit, void *arg);

/*
 * The entry `at` bytes into a block of a directory, or NULL if it is none that can be:
 * its size leads on to the next or the end of the block, and a live one has a name.
 */
const struct pm_dirent *dir_entry_at(const struct pmfs *fs, const void *block,
                                     uint32_t at);

/* Is it no "." or "..", and without '/' and NUL? Of a live entry. */
bool dir_has_good_name(const struct pm_dirent *pm);

#endif
