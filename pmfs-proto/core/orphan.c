/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/orphan.h"

#include <errno.h>

#include "pmfs-proto/core/xattr.h"

/* Queues the freeing of all blocks, if one transaction is enough for that. */
static int cut_if_small(struct pmfs *fs, struct minl2r_tx *tx,
                        const struct inode *inode, struct inode_head *head, bool *done)
{
    uint64_t freed = 0;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    *done = false;
    if (rc < 0 || inode->cut_pending ||
        !map_is_one_node(&map, 0, inode_blocks_end(fs, inode)))
        return rc;
    *done = true;
    rc = map_free(&map, tx, 0, map_node_end(&map, 0), &freed);
    if (rc == 0)
        rc = xattr_queue_free(fs, tx, inode, &freed);
    head->blocks -= freed < head->blocks ? freed : head->blocks;
    return rc;
}

int orphan_unlink(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                  int64_t now_ns, enum pm_state *state)
{
    struct inode_head head = inode_head(inode);
    bool done = false;
    int rc = 0;

    head.ctime_ns = now_ns;
    if (!inode_in_use(inode))
        rc = cut_if_small(fs, tx, inode, &head, &done);
    *state = done ? PM_STATE_FREE : PM_STATE_ORPHAN;
    if (rc == 0 && !done)
        rc = inode_set_nlink(tx, inode, 0);
    if (rc == 0 && !done)
        rc = inode_set_head(tx, inode, &head);
    return rc < 0 ? rc : inode_set_state(tx, inode, *state);
}

/* It is free on media: nobody can find it any more, then its number may come again. */
static void forget_freed(struct pmfs *fs, struct inode *inode)
{
    uint64_t ino = inode->place.ino;

    table_unuse(fs, ino);
    inode_forget(fs, inode);
    table_free_number(fs, ino);
    table_shrink(fs);
}

void orphan_unlinked(struct pmfs *fs, struct inode *inode, enum pm_state state)
{
    inode_state_changed(inode, state);
    if (state == PM_STATE_FREE)
        forget_freed(fs, inode);
}

/* Queues the freeing of what one lowest node names from `first` on. */
static int queue_cut(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                     uint64_t first)
{
    struct inode_head head = inode_head(inode);
    uint64_t freed = 0;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    if (rc == 0)
        rc = map_free(&map, tx, first, map_node_end(&map, first), &freed);
    head.blocks -= freed < head.blocks ? freed : head.blocks;
    return rc < 0 ? rc : inode_set_head(tx, inode, &head);
}

static int cut_all(struct pmfs *fs, struct inode *inode, uint64_t first)
{
    for (;;) {
        struct minl2r_tx *tx;
        struct map map;
        int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

        if (rc == 0)
            rc = map_next(&map, first, map_end(&map), MAP_BLOCK, &first);
        if (rc < 0 || first >= map_end(&map))
            return rc;
        rc = fs_library_error(minl2r_tx_begin(fs->pool, &tx), "free", inode->place.ino);
        if (rc == 0)
            rc = fs_end(tx, queue_cut(fs, tx, inode, first));
        if (rc < 0)
            return rc;
    }
}

static int set_used(struct pmfs *fs, struct inode *inode)
{
    struct minl2r_tx *tx;
    int rc = fs_library_error(minl2r_tx_begin(fs->pool, &tx), "free", inode->place.ino);

    return rc < 0 ? rc : fs_end(tx, inode_set_state(tx, inode, PM_STATE_USED));
}

int orphan_finish_truncate(struct pmfs *fs, struct inode *inode)
{
    int rc = cut_all(fs, inode, blocks_of(fs, inode->place.pm->size));

    if (rc == 0 && inode->state == PM_STATE_TRUNCATE) {
        rc = set_used(fs, inode);
        if (rc == 0)
            inode_state_changed(inode, PM_STATE_USED);
    }
    if (rc == 0)
        inode->cut_pending = false;
    return rc;
}

/* Queues the end of an inode that has no blocks but of attributes. */
static int queue_end(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode)
{
    uint64_t freed = 0;
    int rc = xattr_queue_free(fs, tx, inode, &freed);

    return rc < 0 ? rc : inode_set_state(tx, inode, PM_STATE_FREE);
}

static int free_orphan(struct pmfs *fs, struct inode *inode)
{
    struct minl2r_tx *tx;

    inode->linkable = false; /* from here on a part of it may be gone */
    int rc = cut_all(fs, inode, 0);
    if (rc == 0)
        rc = fs_library_error(minl2r_tx_begin(fs->pool, &tx), "free", inode->place.ino);
    if (rc == 0)
        rc = fs_end(tx, queue_end(fs, tx, inode));
    if (rc == 0)
        orphan_unlinked(fs, inode, PM_STATE_FREE);
    return rc;
}

void orphan_reap(struct pmfs *fs, struct inode *inode)
{
    /*
     * Who makes an orphan sets this first and then looks for users; who stops using it
     * does that first and then looks here: one of them sees the other.
     */
    if (!__atomic_load_n(&inode->is_orphan, __ATOMIC_SEQ_CST) || inode_in_use(inode))
        return;
    if (inode_lock(inode, LOCK_EXCLUSIVE) < 0)
        return;
    if (inode->state == PM_STATE_ORPHAN && !inode_in_use(inode))
        free_orphan(fs, inode);
    inode_unlock(inode);
}

static int finish(struct pmfs *fs, uint64_t ino)
{
    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_EXCLUSIVE, &inode);

    if (rc < 0)
        return rc;
    bool is_orphan = inode->state == PM_STATE_ORPHAN;
    rc = is_orphan ? free_orphan(fs, inode) : orphan_finish_truncate(fs, inode);
    if (rc == 0) {
        fs->recovery.orphans += is_orphan;
        fs->recovery.truncates += !is_orphan;
    }
    inode_put(inode);
    return rc;
}

int orphan_recover(struct pmfs *fs)
{
    for (uint64_t ino = 1; (ino = table_next_unfinished(fs, ino)) != 0; ino++) {
        int rc = finish(fs, ino);

        /* A damaged one stays as it is, for fsck to explain: the rest can be used. */
        if (rc < 0 && rc != -EUCLEAN)
            return rc;
    }
    return 0;
}

void orphan_reap_all(struct pmfs *fs)
{
    for (uint64_t ino = 1; (ino = table_next_unfinished(fs, ino)) != 0; ino++)
        finish(fs, ino);
}
