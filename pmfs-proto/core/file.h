/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * file.h - what is in a file, and changing it, one transaction at a time.
 *
 * Bytes past the end of a file, in its last block, may be anything: whoever raises the
 * size zeroes those that it takes in. Blocks that lie wholly past the end are zeros;
 * there are some only of a truncation that is not over, or where the inode's flags say
 * so.
 */
#ifndef PMFS_FILE_H
#define PMFS_FILE_H

#include "pmfs-proto/core/inode.h"
#include "pmfs-proto/core/map.h"

/* Part of one block. */
struct piece {
    uint64_t index; /* of the block */
    uint32_t at;    /* bytes into it */
    uint32_t size;
};

/* What of `size` bytes at `offset` is in the first block. */
static inline struct piece piece_at(const struct pmfs *fs, uint64_t offset,
                                    uint64_t size)
{
    uint32_t at = (uint32_t)(offset & (fs->block_size - 1));
    uint64_t room = fs->block_size - at;

    return (struct piece){
        .index = offset >> fs->block_shift,
        .at = at,
        .size = (uint32_t)(size < room ? size : room),
    };
}

/* ---- With the inode's lock ----------------------------------------------------- */

/* -EISDIR or -EINVAL for what is no regular file. */
int file_check(const struct inode *inode);

/* How many of `size` bytes at `offset` there are to read; and reading them. */
uint64_t file_readable(const struct inode *inode, uint64_t offset, uint64_t size);
int file_copy_out(struct pmfs *fs, const struct inode *inode, uint64_t offset,
                  uint8_t *buffer, uint64_t size);

/*
 * Cuts what is to be written off at the largest size of a file. -EFBIG if nothing of it
 * is below that.
 */
int file_limit(uint64_t offset, uint64_t *size);

/* A smaller size to try: to the end of a block, and less than `size`, which is more
 * than a block. */
size_t file_smaller(const struct pmfs *fs, uint64_t offset, size_t size);

/* ---- With the inode's lock for writing ----------------------------------------- */

/* A change of a file's content, in the making. */
struct change {
    struct pmfs *fs;
    struct inode *inode;
    struct minl2r_tx *tx;
    struct map map;
    struct inode_head head; /* as it will be */
    bool in_place;          /* something changes that is logged, besides the head */
};

/* Begins a transaction that changes the file now; fs_end() ends it. */
int change_begin(struct change *change, struct pmfs *fs, struct inode *inode);

static inline int change_error(const struct change *change, int rc)
{
    return fs_library_error(rc, "data", change->inode->place.ino);
}

/*
 * Makes the bytes from the old end up to `offset`, and of the block there only, zeros.
 * Nobody can read them before the size says so: they need no log. Nothing else of the
 * transaction may change them.
 */
int change_zero_gap(struct change *change, uint64_t offset);

/* Queues all that writing these bytes changes, head included. */
int change_write(struct change *change, uint64_t offset, const uint8_t *bytes,
                 uint64_t size);

/* Queues the freeing of the blocks from `first` to `end`, which are of one lowest node.
 */
int change_free(struct change *change, uint64_t first, uint64_t end);

/*
 * Queues the loss of set-user-ID and set-group-ID bits, and of capabilities; with
 * `setgid` where the group may not execute, too.
 */
int change_drop_privileges(struct change *change, bool setgid);
int change_drop_capabilities(struct change *change);

int change_set_mode(struct change *change, uint32_t mode);

int change_set_flags(struct change *change, uint32_t flags);

/* Queues the head, as cheaply as the rest of the change allows. Comes last. */
int change_set_head(struct change *change);

#endif
