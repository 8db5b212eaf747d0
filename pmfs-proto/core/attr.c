/* SPDX-License-Identifier: BSD-3-Clause */
/* attr.c - the attributes of inodes. */
#include <errno.h>

#include "pmfs-proto/core/orphan.h"
#include "pmfs-proto/core/xattr.h"

int pmfs_getattr(struct pmfs *fs, uint64_t ino, struct pmfs_attr *attr)
{
    fs_forget_message();

    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;
    inode_attr(fs, inode, attr);
    inode_put(inode);
    return 0;
}

#define SET_ALL ((PMFS_DROP_SETGID << 1) - 1)
#define SET_TIMES                                                                      \
    (PMFS_SET_ATIME | PMFS_SET_MTIME | PMFS_SET_CTIME | PMFS_SET_ATIME_NOW |           \
     PMFS_SET_MTIME_NOW)

static int check_set(const struct inode *inode, const struct pmfs_attr *values,
                     unsigned mask)
{
    if (mask & ~(unsigned)SET_ALL)
        return -EINVAL;
    if (!(mask & PMFS_SET_SIZE))
        return 0;
    if (inode->type != S_IFREG)
        return is_directory(inode) ? -EISDIR : -EINVAL;
    return values->size > PMFS_FILE_SIZE_MAX ? -EFBIG : 0;
}

/* Queues a new size, its blocks included where one transaction is enough for them. */
static int set_size(struct change *change, uint64_t size, bool *cut_pending)
{
    uint64_t old_size = change->head.size;
    uint64_t first = blocks_of(change->fs, size);
    uint64_t end = inode_blocks_end(change->fs, change->inode);
    int rc;

    change->head.size = size;
    if (size > old_size)
        return change_zero_gap(change, size);
    rc = change_set_flags(change, 0);
    if (rc < 0 || first >= end)
        return rc;
    change->in_place = true;
    if (map_is_one_node(&change->map, first, end))
        return change_free(change, first, end);
    *cut_pending = true;
    if (change->inode->state == PM_STATE_ORPHAN)
        return 0; /* mounting frees all of it */
    return inode_set_state(change->tx, change->inode, PM_STATE_TRUNCATE);
}

/* The new times of an inode: fills the head, and answers with the access time. */
static int64_t set_times(struct change *change, const struct pmfs_attr *values,
                         unsigned mask)
{
    int64_t now = change->head.ctime_ns;

    if (mask & PMFS_SET_MTIME)
        change->head.mtime_ns = values->mtime_ns;
    else if (!(mask & (PMFS_SET_MTIME_NOW | PMFS_SET_SIZE)))
        change->head.mtime_ns = change->inode->place.pm->mtime_ns;
    if (mask & PMFS_SET_CTIME)
        change->head.ctime_ns = values->ctime_ns;
    if (mask & PMFS_SET_ATIME)
        return values->atime_ns;
    return mask & PMFS_SET_ATIME_NOW ? now : change->inode->place.pm->atime_ns;
}

int change_set_mode(struct change *change, uint32_t mode)
{
    const uint32_t *field = &change->inode->place.pm->mode;
    uint32_t value = (*field & (uint32_t)S_IFMT) | (mode & 07777);

    return change_error(change,
                        minl2r_tx_write(change->tx, field, &value, sizeof(value)));
}

static int set_owner(struct change *change, const struct pmfs_attr *values,
                     unsigned mask)
{
    const struct pm_inode *pm = change->inode->place.pm;
    /* Both in one word. */
    const uint32_t owner[2] = {
        mask & PMFS_SET_UID ? values->uid : pm->uid,
        mask & PMFS_SET_GID ? values->gid : pm->gid,
    };

    return change_error(change,
                        minl2r_tx_write(change->tx, &pm->uid, owner, sizeof(owner)));
}

static int set_atime(struct change *change, int64_t atime_ns)
{
    return change_error(change,
                        minl2r_tx_write(change->tx, &change->inode->place.pm->atime_ns,
                                        &atime_ns, sizeof(atime_ns)));
}

/*
 * Where the group may not execute, a set-group-ID bit is no privilege, but `setgid`
 * says that it goes, too.
 */
static uint32_t without_privileges(uint32_t mode, bool setgid)
{
    setgid = setgid || mode & S_IXGRP;
    return mode & ~(uint32_t)(setgid ? S_ISUID | S_ISGID : S_ISUID);
}

int change_drop_privileges(struct change *change, bool setgid)
{
    uint32_t mode = change->inode->place.pm->mode;
    uint32_t left = without_privileges(mode, setgid);
    int rc = 0;

    if (is_directory(change->inode))
        return 0;
    if (left != mode) {
        change->in_place = true;
        rc = change_set_mode(change, left);
    }
    return rc < 0 ? rc : change_drop_capabilities(change);
}

int change_drop_capabilities(struct change *change)
{
    if (change->inode->place.pm->xattr_size == 0)
        return 0;
    return xattr_queue_follow(change, NULL, true);
}

/* Queues what else changes with mode and owner. */
static int queue_privileges(struct change *change, const struct pmfs_attr *values,
                            unsigned mask)
{
    const struct pm_inode *pm = change->inode->place.pm;
    bool drop = mask & (PMFS_DROP_PRIVILEGES | PMFS_DROP_SETGID) &&
                !is_directory(change->inode);

    if (!(mask & PMFS_SET_MODE))
        return drop ? change_drop_privileges(change, mask & PMFS_DROP_SETGID) : 0;
    return pm->xattr_size ? xattr_queue_follow(change, &values->mode, drop) : 0;
}

static int queue_set(struct change *change, const struct pmfs_attr *values,
                     unsigned mask, bool *cut_pending)
{
    unsigned owner = mask & (PMFS_SET_UID | PMFS_SET_GID);
    bool one_word = !(mask & SET_TIMES) && (!!(mask & PMFS_SET_MODE) + !!owner +
                                            !!(mask & PMFS_SET_SIZE)) == 1;
    int64_t atime_ns = set_times(change, values, mask);
    int rc = 0;

    change->in_place = !one_word;
    if (mask & PMFS_SET_SIZE)
        rc = set_size(change, values->size, cut_pending);
    if (rc == 0 && mask & PMFS_SET_MODE)
        rc = change_set_mode(change, values->mode);
    if (rc == 0 && owner)
        rc = set_owner(change, values, mask);
    if (rc == 0 && mask & (PMFS_SET_ATIME | PMFS_SET_ATIME_NOW))
        rc = set_atime(change, atime_ns);
    if (rc == 0)
        rc = queue_privileges(change, values, mask);
    return rc < 0 ? rc : change_set_head(change);
}

static int set_locked(struct pmfs *fs, struct inode *inode,
                      const struct pmfs_attr *values, unsigned mask)
{
    bool cut_pending = false;
    struct change change;
    int rc = check_set(inode, values, mask);

    if (rc == 0)
        rc = change_begin(&change, fs, inode);
    if (rc < 0)
        return rc;
    rc = fs_end(change.tx, queue_set(&change, values, mask, &cut_pending));
    if (rc < 0 || !cut_pending)
        return rc;
    /* It is done; what is left of the blocks goes now, or before the next change. */
    inode->cut_pending = true;
    if (inode->state == PM_STATE_USED)
        inode_state_changed(inode, PM_STATE_TRUNCATE);
    rc = orphan_finish_truncate(fs, inode);
    return rc == -EIO ? rc : 0;
}

int pmfs_setattr(struct pmfs *fs, uint64_t ino, const struct pmfs_attr *values,
                 unsigned mask, struct pmfs_attr *attr)
{
    fs_forget_message();

    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_EXCLUSIVE, &inode);

    if (rc < 0)
        return rc;
    rc = set_locked(fs, inode, values, mask);
    if (rc == 0 && attr)
        inode_attr(fs, inode, attr);
    inode_put(inode);
    return rc;
}
