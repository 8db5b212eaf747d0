/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * inode.h - inodes in DRAM: found by number, pinned while a call uses them, one lock
 * each.
 *
 * The cache drops what nobody has pinned, opened or looked up when it grows past its
 * limit. An inode in DRAM takes about 200 bytes, a directory no more.
 */
#ifndef PMFS_INODE_H
#define PMFS_INODE_H

#include <sys/stat.h>

#include "pmfs-proto/core/fs.h"
#include "pmfs-proto/core/table.h"

struct inode {
    struct inode_place place; /* like `type`, never changes once ready */
    uint32_t type;            /* S_IFMT part of the mode */
    bool ready;               /* atomic: it was read in, or made */

    /* Of the lock; so is the inode on media. */
    enum pm_state state; /* as on media */
    bool gone;           /* freed, or could not be read */
    bool cut_pending;    /* blocks lie past the end, of a truncation that is not over */
    bool linkable;       /* an orphan that may get a name: it was made without one */

    /* Atomic. */
    bool is_orphan; /* state is PM_STATE_ORPHAN */
    uint64_t opens;
    uint64_t lookups;

    struct shard *shard; /* never changes; of its lock is all that follows */

    /* Each call changes these: whatever lies before and behind an inode is in other
     * lines. */
    uint32_t pins; /* see PIN_GONE */
    bool used_lately;
    bool has_writer; /* of this inode's own lock */
    uint32_t readers, writers_waiting;

    struct inode *hash_next;
    struct inode *ring_next, *ring_prev;
    uint8_t reserved[40];
};
#define INODE_LINE 64
_Static_assert(offsetof(struct inode, pins) >= INODE_LINE - 1 &&
                   sizeof(struct inode) - offsetof(struct inode, hash_next) >=
                       INODE_LINE - 1,
               "no line has both what a call changes and what lies beside the inode");

/* `unused_limit`: how many that are in no use are kept; 0: a default. */
int cache_attach(struct pmfs *fs, uint64_t unused_limit);
void cache_detach(struct pmfs *fs);

/* Inodes in DRAM. */
uint64_t cache_inodes(struct pmfs *fs);

enum lock_mode { LOCK_SHARED, LOCK_EXCLUSIVE };

/* Pins the inode `ino`, reading it in if it is not cached. -ESTALE, -EUCLEAN, -ENOMEM.
 */
int inode_pin(struct pmfs *fs, uint64_t ino, struct inode **inode);
void inode_unpin(struct inode *inode);

/* A pinned inode is no longer opened or looked up: the cache may have grown past its
 * limit by such. */
void inode_unused(struct pmfs *fs, const struct inode *inode);

/* -ESTALE, and not locked, if the inode is gone. */
int inode_lock(struct inode *inode, enum lock_mode mode);
void inode_unlock(struct inode *inode);

/* Both at once. */
int inode_get(struct pmfs *fs, uint64_t ino, enum lock_mode mode, struct inode **inode);
void inode_put(struct inode *inode);

/*
 * The inode of a number just taken, pinned and locked for writing: whoever finds it in
 * the cache waits until it is ready, or gone. -ENOMEM.
 */
int inode_new(struct pmfs *fs, const struct inode_place *place, uint32_t type,
              struct inode **inode);

/* After the commit that made it, in that state. */
void inode_made(struct inode *inode, enum pm_state state);

/* Takes an inode, locked for writing, out of the cache: it is gone. */
void inode_forget(struct pmfs *fs, struct inode *inode);

/* -EUCLEAN for an inode that cannot be. `state` is its byte in the table. */
int inode_check(const struct pmfs *fs, const struct inode_place *place, uint8_t state);

void inode_attr(const struct pmfs *fs, const struct inode *inode,
                struct pmfs_attr *attr);

/*
 * The attributes of an inode that is not in the cache, without putting it there: who
 * looks at all files once pushes nobody's out. The inode is one that an entry of a
 * locked directory names. False for one that is cached, a directory, or damaged: pin
 * that.
 */
bool inode_peek(struct pmfs *fs, uint64_t ino, struct pmfs_attr *attr);

/* What nearly every change touches: the start of a struct pm_inode. */
struct inode_head {
    uint64_t size;
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t blocks;
};
_Static_assert(sizeof(struct inode_head) == offsetof(struct pm_inode, map),
               "struct inode_head is the start of struct pm_inode");

static inline struct inode_head inode_head(const struct inode *inode)
{
    const struct pm_inode *pm = inode->place.pm;

    return (struct inode_head){pm->size, pm->mtime_ns, pm->ctime_ns, pm->blocks};
}

/* The index behind the last block that the inode may have, but for a truncation that is
 * not over. */
uint64_t inode_blocks_end(const struct pmfs *fs, const struct inode *inode);

/* Queue changes of single fields. */
int inode_set_head(struct minl2r_tx *tx, const struct inode *inode,
                   const struct inode_head *head);
int inode_set_nlink(struct minl2r_tx *tx, const struct inode *inode, uint32_t nlink);
int inode_set_parent(struct minl2r_tx *tx, const struct inode *inode, uint64_t parent);
int inode_set_state(struct minl2r_tx *tx, const struct inode *inode,
                    enum pm_state state);

/* Times of a change that one word decides: fresh, before it. */
int inode_set_times_fresh(struct minl2r_tx *tx, const struct inode *inode,
                          int64_t mtime_ns, int64_t ctime_ns);

/* After the commit: the state in DRAM follows. */
void inode_state_changed(struct inode *inode, enum pm_state state);

/* Counts as pmfs_lookup() says. */
static inline void inode_count_lookup(const struct pmfs *fs, struct inode *inode)
{
    if (fs->flags & PMFS_COUNT_LOOKUPS)
        __atomic_add_fetch(&inode->lookups, 1, __ATOMIC_SEQ_CST);
}

/* Takes `count` from a counter, but no more than is there. Returns what is left. */
uint64_t inode_uncount(uint64_t *counter, uint64_t count);

static inline bool inode_in_use(const struct inode *inode)
{
    return __atomic_load_n(&inode->opens, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&inode->lookups, __ATOMIC_SEQ_CST);
}

static inline bool is_directory(const struct inode *inode)
{
    return inode->type == S_IFDIR;
}

#endif
