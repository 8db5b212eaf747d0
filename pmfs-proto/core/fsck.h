/* SPDX-License-Identifier: BSD-3-Clause */
/* fsck.h - the parts of pmfs_fsck() that need no file, and findings for repair.c. */
#ifndef PMFS_FSCK_H
#define PMFS_FSCK_H

#include "include/pmfs.h"
#include "pmfs-proto/core/format.h"

/* Verifies the filesystem in a pool that is open, and recovered. As pmfs_fsck(). */
int fsck_pool(struct minl2r_pool *pool, pmfs_fsck_fn *found, void *arg,
              struct pmfs_fsck_summary *summary);

/* As pmfs_repair(), of such a pool. */
int repair_pool(struct minl2r_pool *pool, pmfs_repair_fn *ask, void *arg,
                struct pmfs_repair_summary *summary);

/* What is wrong, by what can be done about it; `value` is what should be. */
enum fsck_kind {
    FSCK_DAMAGE,       /* nothing that is safe; names or blocks may be hidden by it */
    FSCK_CONTENT,      /* nothing that is safe; it hides nothing */
    FSCK_POOL,         /* nothing that is safe: the library's */
    FSCK_OWN_BLOCKS,   /* the pool's own blocks are marked free */
    FSCK_UNALLOCATED,  /* `offset`: a block that is reachable, but marked free */
    FSCK_DIR_SIZE,     /* of directory `ino` */
    FSCK_BLOCK_COUNT,  /* of `ino` */
    FSCK_ENTRY_TYPE,   /* `offset`: that byte of an entry */
    FSCK_TAGS,         /* `offset`: a block of entries, which are good */
    FSCK_PARENT,       /* of directory `ino` */
    FSCK_LINK_COUNT,   /* of `ino` */
    FSCK_NAMED_ORPHAN, /* `ino` has a name, or names in it; `value`: its link count */
    FSCK_LOST,         /* `ino` has no name; `value`: its link count with one */
    FSCK_LOST_BLOCKS,  /* allocated, but not reachable; `value`: how many */
};

struct fsck_finding {
    enum fsck_kind kind;
    uint64_t ino;
    uint64_t value;
    uint64_t offset; /* in the pool */
    const char *what;
};

typedef void fsck_visit_fn(void *arg, const struct fsck_finding *finding);

/*
 * As fsck_pool(), and keeps what was learned until fsck_end(), which must follow unless
 * this is -ENOMEM.
 */
struct fsck;
int fsck_begin(struct minl2r_pool *pool, fsck_visit_fn *visit, void *arg,
               struct fsck **fsck);
void fsck_end(struct fsck *fsck, struct pmfs_fsck_summary *summary);

/* Was every name and block map read? Then what was not found is not there. */
bool fsck_is_sound(const struct fsck *fsck);

/* As fs_open_super() has filled it: no inodes. */
const struct pmfs *fsck_super(const struct fsck *fsck);

/* An inode that a finding names, and its state. */
const struct pm_inode *fsck_inode(struct fsck *fsck, uint64_t ino,
                                  const uint8_t **state);

/* Is the block at `offset`, of those that view_visit_allocated() visits, reachable? */
bool fsck_is_reachable(const struct fsck *fsck, uint64_t offset);

#endif
