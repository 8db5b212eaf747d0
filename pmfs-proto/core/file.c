/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - reading and writing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmfs-proto/core/file.h"
#include "pmfs-proto/core/orphan.h"

#define WRITE_ALL ((PMFS_WRITE_DROPS_CAPABILITIES << 1) - 1)

/* ---- Reading ------------------------------------------------------------------- */

int file_check(const struct inode *inode)
{
    if (inode->type == S_IFREG)
        return 0;
    return is_directory(inode) ? -EISDIR : -EINVAL;
}

uint64_t file_readable(const struct inode *inode, uint64_t offset, uint64_t size)
{
    uint64_t end = inode->place.pm->size;

    if (offset >= end)
        return 0;
    return size < end - offset ? size : end - offset;
}

int file_copy_out(struct pmfs *fs, const struct inode *inode, uint64_t offset,
                  uint8_t *buffer, uint64_t size)
{
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    while (rc == 0 && size > 0) {
        struct piece piece = piece_at(fs, offset, size);
        const void *block;

        rc = map_block(&map, piece.index, &block);
        if (rc == 0 && block)
            memcpy(buffer, (const uint8_t *)block + piece.at, piece.size);
        else if (rc == 0)
            memset(buffer, 0, piece.size);
        offset += piece.size;
        buffer += piece.size;
        size -= piece.size;
    }
    return rc;
}

int pmfs_read(struct pmfs *fs, uint64_t ino, uint64_t offset, void *buffer, size_t size,
              size_t *done)
{
    fs_forget_message();

    struct inode *inode;
    uint64_t count = 0;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;
    rc = file_check(inode);
    if (rc == 0) {
        count = file_readable(inode, offset, size);
        rc = file_copy_out(fs, inode, offset, buffer, count);
    }
    inode_put(inode);
    if (rc == 0)
        *done = count;
    return rc;
}

int pmfs_readlink(struct pmfs *fs, uint64_t ino, char *target, size_t size)
{
    fs_forget_message();

    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;

    uint64_t count = inode->place.pm->size;

    if (inode->type != S_IFLNK)
        rc = -EINVAL;
    else if (count >= size)
        rc = -ERANGE;
    else
        rc = file_copy_out(fs, inode, 0, (uint8_t *)target, count);
    inode_put(inode);
    if (rc == 0)
        target[count] = 0;
    return rc;
}

/* Appends memory to a list of pieces, to the last one if it goes on there. */
static void add_iovec(struct iovec *list, int *count, const void *memory, size_t size)
{
    struct iovec *last = *count ? &list[*count - 1] : NULL;

    if (last && (const uint8_t *)last->iov_base + last->iov_len == memory) {
        last->iov_len += size;
        return;
    }
    /* iovec knows no const; who gets the list does. */
    memcpy(&list[*count].iov_base, &memory, sizeof(memory));
    list[*count].iov_len = size;
    (*count)++;
}

static int list_pieces(struct pmfs *fs, const struct inode *inode, uint64_t offset,
                       uint64_t size, struct iovec *list, int *count)
{
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    *count = 0;
    while (rc == 0 && size > 0) {
        struct piece piece = piece_at(fs, offset, size);
        const void *block;

        rc = map_block(&map, piece.index, &block);
        if (rc == 0)
            add_iovec(list, count, block ? (const uint8_t *)block + piece.at : fs_zeros,
                      piece.size);
        offset += piece.size;
        size -= piece.size;
    }
    return rc;
}

#define PIECES_ON_STACK 64

int pmfs_read_in_place(struct pmfs *fs, uint64_t ino, uint64_t offset, size_t size,
                       pmfs_read_fn *use, void *arg)
{
    fs_forget_message();

    struct iovec on_stack[PIECES_ON_STACK];
    struct iovec *list = on_stack;
    struct inode *inode;
    int count;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;

    uint64_t wanted = file_readable(inode, offset, size);
    uint64_t pieces_max = (wanted >> fs->block_shift) + 2;

    rc = file_check(inode);
    if (rc == 0 && pieces_max > PIECES_ON_STACK) {
        list = malloc(pieces_max * sizeof(*list));
        if (!list)
            rc = -ENOMEM;
    }
    if (rc == 0)
        rc = list_pieces(fs, inode, offset, wanted, list, &count);
    if (rc == 0)
        rc = use(arg, list, count, wanted);
    inode_put(inode);
    if (list != on_stack)
        free(list);
    return rc;
}

/* ---- Writing ------------------------------------------------------------------- */

/* Where the last block of the file has room past the end, or NULL if there is none. */
static int find_tail(struct change *change, const uint8_t **tail)
{
    uint64_t size = change->inode->place.pm->size;
    uint32_t at = (uint32_t)(size & (change->fs->block_size - 1));
    const void *block = NULL;
    int rc = 0;

    if (at)
        rc = map_block(&change->map, size >> change->fs->block_shift, &block);
    *tail = rc == 0 && block ? (const uint8_t *)block + at : NULL;
    return rc;
}

int change_zero_gap(struct change *change, uint64_t offset)
{
    uint64_t end = change->inode->place.pm->size;
    struct piece gap = piece_at(change->fs, end, offset > end ? offset - end : 0);
    const uint8_t *tail;
    int rc;

    if (gap.size == 0)
        return 0;
    rc = find_tail(change, &tail);
    if (rc < 0 || !tail)
        return rc;
    return change_error(change,
                        minl2r_tx_write_fresh(change->tx, tail, fs_zeros, gap.size));
}

/*
 * Writes the part of the new bytes that lies past the end of the file but in a block
 * that it has: as in change_zero_gap(), no log is needed.
 */
static int write_tail(struct change *change, uint64_t offset, const uint8_t *bytes,
                      uint64_t size, uint32_t *written)
{
    uint64_t end = change->inode->place.pm->size;
    struct piece piece = piece_at(change->fs, offset, size);
    const uint8_t *tail;
    int rc;

    *written = 0;
    if (offset < end || piece.index != end >> change->fs->block_shift)
        return 0;
    rc = find_tail(change, &tail);
    if (rc < 0 || !tail)
        return rc;
    *written = piece.size;
    return change_error(change, minl2r_tx_write_fresh(change->tx, tail + (offset - end),
                                                      bytes, piece.size));
}

static int write_blocks(struct change *change, uint64_t offset, const uint8_t *bytes,
                        uint64_t size)
{
    int rc = 0;

    while (rc == 0 && size > 0) {
        struct piece piece = piece_at(change->fs, offset, size);
        const uint64_t *slot;

        rc = map_slot(&change->map, change->tx, piece.index, &slot);
        if (rc < 0)
            return rc;
        rc = change_error(change, minl2r_tx_write_block(change->tx, slot, piece.at,
                                                        bytes, piece.size));
        change->head.blocks += *slot == 0; /* unchanged so far, and in the cache now */
        change->in_place = true;
        offset += piece.size;
        bytes += piece.size;
        size -= piece.size;
    }
    return rc;
}

int change_set_head(struct change *change)
{
    const struct pm_inode *pm = change->inode->place.pm;
    const struct inode_head *head = &change->head;
    int rc;

    if (change->in_place || head->blocks != pm->blocks)
        return inode_set_head(change->tx, change->inode, head);
    /* One word decides: the size. The times are there before it. */
    rc = inode_set_times_fresh(change->tx, change->inode, head->mtime_ns,
                               head->ctime_ns);
    if (rc == 0 && head->size != pm->size)
        rc = change_error(change, minl2r_tx_write(change->tx, &pm->size, &head->size,
                                                  sizeof(head->size)));
    return rc;
}

int change_free(struct change *change, uint64_t first, uint64_t end)
{
    uint64_t freed = 0;
    int rc = map_free(&change->map, change->tx, first, end, &freed);

    change->head.blocks -= freed < change->head.blocks ? freed : change->head.blocks;
    change->in_place = true;
    return rc;
}

int change_set_flags(struct change *change, uint32_t flags)
{
    const struct pm_inode *pm = change->inode->place.pm;

    if (flags == pm->flags)
        return 0;
    change->in_place = true;
    return change_error(change,
                        minl2r_tx_write(change->tx, &pm->flags, &flags, sizeof(flags)));
}

int change_write(struct change *change, uint64_t offset, const uint8_t *bytes,
                 uint64_t size)
{
    uint64_t end = offset + size;
    uint32_t written;
    int rc = change_zero_gap(change, offset);

    if (rc == 0)
        rc = write_tail(change, offset, bytes, size, &written);
    if (rc == 0 && written < size) {
        rc =
            map_reserve(&change->map, change->tx, (end - 1) >> change->fs->block_shift);
        if (rc == 0)
            rc =
                write_blocks(change, offset + written, bytes + written, size - written);
    }
    if (rc < 0)
        return rc;
    change->head.blocks += change->map.added;
    if (change->head.size < end)
        change->head.size = end;
    return change_set_head(change);
}

int change_begin(struct change *change, struct pmfs *fs, struct inode *inode)
{
    int64_t now = fs_now_ns();
    int rc;

    /* The rest of an earlier truncation must not come back as content. */
    if (inode->cut_pending) {
        rc = orphan_finish_truncate(fs, inode);
        if (rc < 0)
            return rc;
    }
    change->fs = fs;
    change->inode = inode;
    change->head = inode_head(inode);
    change->head.mtime_ns = now;
    change->head.ctime_ns = now;
    change->in_place = false;
    rc = map_init(&change->map, fs, &inode->place.pm->map, inode->place.ino);
    if (rc < 0)
        return rc;
    return change_error(change, fs_begin(fs, &change->tx));
}

static int write_locked(struct pmfs *fs, struct inode *inode, uint64_t offset,
                        const void *bytes, size_t size, unsigned flags)
{
    struct change change;
    int rc = change_begin(&change, fs, inode);

    if (rc < 0)
        return rc;
    if (flags & (PMFS_WRITE_DROPS_PRIVILEGES | PMFS_WRITE_DROPS_SETGID))
        rc = change_drop_privileges(&change, flags & PMFS_WRITE_DROPS_SETGID);
    else if (flags & PMFS_WRITE_DROPS_CAPABILITIES)
        rc = change_drop_capabilities(&change);
    if (rc == 0)
        rc = change_write(&change, offset, bytes, size);
    return fs_end(change.tx, rc);
}

size_t file_smaller(const struct pmfs *fs, uint64_t offset, size_t size)
{
    uint64_t block_mask = fs->block_size - 1;
    uint64_t end = (offset + size / 2) & ~block_mask;

    return end > offset ? end - offset : fs->block_size - (offset & block_mask);
}

int file_limit(uint64_t offset, uint64_t *size)
{
    uint64_t room = offset < PMFS_FILE_SIZE_MAX ? PMFS_FILE_SIZE_MAX - offset : 0;

    if (*size > 0 && room == 0)
        return -EFBIG;
    if (*size > room)
        *size = room;
    return 0;
}

/*
 * An overwrite needs no room but to be logged. Where there is not even enough of that,
 * a part of it is still better than nothing: POSIX calls that a short write.
 */
static int write_what_fits(struct pmfs *fs, struct inode *inode, uint64_t offset,
                           const void *bytes, size_t size, unsigned flags, size_t *done)
{
    uint64_t file_size = inode->place.pm->size;
    int rc = write_locked(fs, inode, offset, bytes, size, flags);

    while (rc == -ENOSPC && size > fs->block_size && offset < file_size &&
           size <= file_size - offset) {
        size = file_smaller(fs, offset, size);
        rc = write_locked(fs, inode, offset, bytes, size, flags);
    }
    if (rc == 0)
        *done = size;
    return rc;
}

int pmfs_write(struct pmfs *fs, uint64_t ino, uint64_t offset, const void *buffer,
               size_t size, unsigned flags, size_t *done)
{
    fs_forget_message();

    struct inode *inode;
    int rc;

    if (flags & ~(unsigned)WRITE_ALL)
        return -EINVAL;
    rc = inode_get(fs, ino, LOCK_EXCLUSIVE, &inode);
    if (rc < 0)
        return rc;
    if (flags & PMFS_APPEND)
        offset = inode->place.pm->size;
    rc = file_check(inode);
    if (rc == 0)
        rc = file_limit(offset, &size);
    if (rc == 0 && size > 0)
        rc = write_what_fits(fs, inode, offset, buffer, size, flags, done);
    else if (rc == 0)
        *done = 0;
    inode_put(inode);
    return rc;
}
