/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * space.c - which parts of a file have blocks: giving them, taking them, finding them,
 * and copying without losing the difference.
 *
 * A range is changed in pieces, front to back: what one lowest node names is one
 * transaction, so that its log is bounded.
 */
#include <errno.h>
#include <stdlib.h>

#include "pmfs-proto/core/file.h"

struct range {
    uint64_t offset, end; /* bytes */
};

static bool is_in_tail(const struct change *change, uint64_t offset)
{
    uint64_t size = change->inode->place.pm->size;

    return offset >= size &&
           offset >> change->fs->block_shift == size >> change->fs->block_shift &&
           size & (change->fs->block_size - 1);
}

static int check_range(const struct inode *inode, uint64_t offset, uint64_t size)
{
    if (inode->type != S_IFREG)
        return is_directory(inode) ? -EISDIR : -ENODEV;
    if (size == 0)
        return -EINVAL;
    if (offset > PMFS_FILE_SIZE_MAX || size > PMFS_FILE_SIZE_MAX - offset)
        return -EFBIG;
    return 0;
}

/* ---- One transaction's worth --------------------------------------------------- */

/* Makes a part of a block zeros, and gives it the block if it is missing. */
static int zero_piece(struct change *change, struct piece piece)
{
    const uint64_t *slot;
    int rc = map_slot(&change->map, change->tx, piece.index, &slot);

    if (rc < 0)
        return rc;
    change->head.blocks += *slot == 0;
    change->in_place = true;
    return change_error(change, minl2r_tx_write_block(change->tx, slot, piece.at,
                                                      fs_zeros, piece.size));
}

/* Gives each hole a block of zeros; with `zero`, the blocks that are there become
 * zeros. */
static int queue_allocate(struct change *change, struct range range, bool zero)
{
    const struct pmfs *fs = change->fs;
    int rc = map_reserve(&change->map, change->tx, (range.end - 1) >> fs->block_shift);

    while (rc == 0 && range.offset < range.end) {
        struct piece piece = piece_at(fs, range.offset, range.end - range.offset);
        const void *block;

        rc = map_block(&change->map, piece.index, &block);
        if (rc == 0 && !block)
            rc = zero_piece(change, (struct piece){piece.index, 0, fs->block_size});
        else if (rc == 0 && zero && !is_in_tail(change, range.offset))
            rc = zero_piece(change, piece);
        range.offset += piece.size;
    }
    return rc;
}

/* Zeroes a part of a block, if that is there. */
static int zero_if_block(struct change *change, struct piece piece)
{
    const void *block;
    int rc = map_block(&change->map, piece.index, &block);

    return rc < 0 || !block ? rc : zero_piece(change, piece);
}

/* Frees the whole blocks of a range, and zeroes the rest. The end of a file may be
 * freed with what lies past it. */
static int queue_punch(struct change *change, struct range range)
{
    const struct pmfs *fs = change->fs;
    uint64_t mask = fs->block_size - 1;
    bool to_end = range.end >= change->inode->place.pm->size;
    int rc = 0;

    if (range.offset & mask) {
        struct piece piece = piece_at(fs, range.offset, range.end - range.offset);

        if (!is_in_tail(change, range.offset))
            rc = zero_if_block(change, piece);
        range.offset = (range.offset | mask) + 1;
    }
    if (rc == 0 && range.offset < range.end && range.end & mask && !to_end)
        rc = zero_if_block(change, (struct piece){range.end >> fs->block_shift, 0,
                                                  (uint32_t)(range.end & mask)});
    if (to_end)
        range.end = (range.end + mask) & ~mask;
    if (rc == 0 && range.offset < range.end)
        rc = change_free(change, range.offset >> fs->block_shift,
                         range.end >> fs->block_shift);
    return rc;
}

/* Raises the size to the end of a range whose part past the old one is zeros. */
static int queue_growth(struct change *change, struct range range, bool zeroed)
{
    uint64_t size = change->inode->place.pm->size;

    if (range.end <= size)
        return 0;
    change->head.size = range.end;
    return zeroed && range.offset < size ? 0 : change_zero_gap(change, range.end);
}

/* ---- Allocating, punching, zeroing --------------------------------------------- */

/* The first piece of a range, for one transaction. */
static struct range first_piece(const struct pmfs *fs, struct range range)
{
    uint64_t end = (range.offset >> fs->block_shift >> fs->map_shift) + 1;

    end <<= fs->block_shift + fs->map_shift;
    return (struct range){range.offset, end < range.end ? end : range.end};
}

static int queue_piece(struct change *change, struct range piece, unsigned mode)
{
    bool zero = mode & PMFS_ZERO_RANGE;
    int rc = mode & PMFS_KEEP_SIZE ? 0 : queue_growth(change, piece, zero);

    if (rc == 0)
        rc = mode & PMFS_PUNCH_HOLE ? queue_punch(change, piece)
                                    : queue_allocate(change, piece, zero);
    change->head.blocks += change->map.added;
    if (rc == 0 && change->head.blocks > change->inode->place.pm->blocks &&
        blocks_of(change->fs, piece.end) > blocks_of(change->fs, change->head.size))
        rc = change_set_flags(change, PM_INODE_BLOCKS_PAST_END);
    return rc < 0 ? rc : change_set_head(change);
}

static int change_piece(struct pmfs *fs, struct inode *inode, struct range piece,
                        unsigned mode)
{
    struct change change;
    int rc = change_begin(&change, fs, inode);

    return rc < 0 ? rc : fs_end(change.tx, queue_piece(&change, piece, mode));
}

/* Leaves out of a range to be punched what has no blocks; the rest may be empty. */
static int skip_holes(struct pmfs *fs, const struct inode *inode, struct range *range)
{
    uint64_t limit = inode_blocks_end(fs, inode) << fs->block_shift;
    uint64_t found;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    if (range->end > limit)
        range->end = limit;
    if (rc < 0 || range->offset >= range->end)
        return rc;
    rc = map_next(&map, range->offset >> fs->block_shift, blocks_of(fs, range->end),
                  MAP_BLOCK, &found);
    if (rc == 0 && found << fs->block_shift > range->offset)
        range->offset = found << fs->block_shift;
    return rc;
}

/* Where there is no room even to log a piece, a smaller one is tried. */
static int change_range(struct pmfs *fs, struct inode *inode, struct range range,
                        unsigned mode)
{
    int rc = 0;

    while (rc == 0) {
        if (mode & PMFS_PUNCH_HOLE)
            rc = skip_holes(fs, inode, &range);
        if (rc < 0 || range.offset >= range.end)
            break;

        struct range piece = first_piece(fs, range);

        rc = change_piece(fs, inode, piece, mode);
        while (rc == -ENOSPC && mode & (PMFS_PUNCH_HOLE | PMFS_ZERO_RANGE) &&
               piece.end - piece.offset > fs->block_size) {
            piece.end =
                piece.offset + file_smaller(fs, piece.offset, piece.end - piece.offset);
            rc = change_piece(fs, inode, piece, mode);
        }
        range.offset = piece.end;
    }
    return rc;
}

/* Is there room for every hole of a range? So that a call that cannot succeed changes
 * nothing. No range has more blocks than the pool. */
static int check_room(struct pmfs *fs, const struct inode *inode, struct range range)
{
    uint64_t index = range.offset >> fs->block_shift, hole = index;
    uint64_t end = blocks_of(fs, range.end);
    uint64_t needed = 0, present = 0;
    struct pmfs_statfs statfs;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    while (rc == 0 && index < end) {
        rc = map_next(&map, index, end, MAP_HOLE, &hole);
        present += hole - index;
        if (rc == 0)
            rc = map_next(&map, hole, end, MAP_BLOCK, &index);
        needed += index - hole;
        if (rc == 0 && present > fs->block_count)
            rc = -EUCLEAN;
    }
    if (rc == 0)
        rc = pmfs_statfs(fs, &statfs);
    return rc == 0 && needed > statfs.blocks_available ? -ENOSPC : rc;
}

static bool is_mode(unsigned mode)
{
    switch (mode & ~(unsigned)PMFS_KEEP_SIZE) {
    case 0:
    case PMFS_ZERO_RANGE:
        return true;
    case PMFS_PUNCH_HOLE:
        return mode & PMFS_KEEP_SIZE;
    default:
        return false;
    }
}

int pmfs_fallocate(struct pmfs *fs, uint64_t ino, unsigned mode, uint64_t offset,
                   uint64_t size)
{
    fs_forget_message();

    struct range range = {offset, offset + size};
    struct inode *inode;
    int rc = is_mode(mode) ? inode_get(fs, ino, LOCK_EXCLUSIVE, &inode) : -EOPNOTSUPP;

    if (rc < 0)
        return rc;
    rc = check_range(inode, offset, size);
    if (rc == 0 && !(mode & PMFS_PUNCH_HOLE))
        rc = check_room(fs, inode, range);
    if (rc == 0)
        rc = change_range(fs, inode, range, mode);
    inode_put(inode);
    return rc;
}

/* ---- Seeking ------------------------------------------------------------------- */

static int seek(struct pmfs *fs, const struct inode *inode, uint64_t offset,
                enum pmfs_seek whence, uint64_t *found)
{
    uint64_t size = inode->place.pm->size;
    uint64_t first = offset >> fs->block_shift, index = first;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    if (rc == 0 && offset >= size)
        rc = -ENXIO;
    if (rc == 0)
        rc = map_next(&map, first, blocks_of(fs, size),
                      whence == PMFS_SEEK_DATA ? MAP_BLOCK : MAP_HOLE, &index);
    if (rc < 0)
        return rc;
    *found = index == first ? offset : index << fs->block_shift;
    if (*found < size)
        return 0;
    *found = size; /* the hole behind every file */
    return whence == PMFS_SEEK_DATA ? -ENXIO : 0;
}

int pmfs_seek(struct pmfs *fs, uint64_t ino, uint64_t offset, enum pmfs_seek whence,
              uint64_t *found)
{
    fs_forget_message();

    struct inode *inode;
    uint64_t answer;
    int rc;

    if (whence != PMFS_SEEK_DATA && whence != PMFS_SEEK_HOLE)
        return -EINVAL;
    rc = inode_get(fs, ino, LOCK_SHARED, &inode);
    if (rc < 0)
        return rc;
    rc = file_check(inode);
    if (rc == 0)
        rc = seek(fs, inode, offset, whence, &answer);
    inode_put(inode);
    if (rc == 0)
        *found = answer;
    return rc;
}

/* ---- Copying ------------------------------------------------------------------- */

/* At most this much data is copied by one transaction. */
#define COPY_MAX ((uint64_t)1 << 20)

struct copy {
    struct pmfs *fs;
    struct inode *from, *to;
    uint64_t from_offset, to_offset;
    uint64_t size; /* of what is copied by this call */
};

/* Shortens the copy to what is all data or all a hole. */
static int find_run(struct copy *copy, bool *hole)
{
    uint64_t end = copy->from_offset + copy->size, found;
    int rc = seek(copy->fs, copy->from, copy->from_offset, PMFS_SEEK_DATA, &found);

    if (rc == -ENXIO) /* nothing but a hole up to the end */
        found = end;
    else if (rc < 0)
        return rc;
    *hole = found > copy->from_offset;
    if (!*hole) {
        rc = seek(copy->fs, copy->from, copy->from_offset, PMFS_SEEK_HOLE, &found);
        if (rc < 0)
            return rc;
    }
    if (found < end)
        copy->size = found - copy->from_offset;
    return 0;
}

static int copy_data(struct copy *copy, struct change *change)
{
    uint8_t *bytes;
    int rc;

    if (copy->size > COPY_MAX)
        copy->size = COPY_MAX;
    /* Never 0: see copy_locked(). NOLINTNEXTLINE(clang-analyzer-optin.*) */
    bytes = malloc(copy->size);
    if (!bytes)
        return -ENOMEM;
    rc = file_copy_out(copy->fs, copy->from, copy->from_offset, bytes, copy->size);
    if (rc == 0)
        rc = change_write(change, copy->to_offset, bytes, copy->size);
    free(bytes);
    return rc;
}

/* A hole stays one, but for parts of blocks. Up to the end of what one transaction may
 * free. */
static int copy_hole(struct copy *copy, struct change *change)
{
    struct range range = {copy->to_offset, copy->to_offset + copy->size};
    struct range blocks = range, piece;
    int rc = skip_holes(copy->fs, copy->to, &blocks);

    piece = first_piece(copy->fs, blocks);
    if (piece.end < blocks.end)
        range.end = piece.end;
    copy->size = range.end - range.offset;
    if (rc == 0)
        rc = queue_growth(change, range, true);
    if (rc == 0 && piece.offset < piece.end)
        rc = queue_punch(change, piece);
    return rc < 0 ? rc : change_set_head(change);
}

static bool overlaps(const struct copy *copy)
{
    uint64_t from = copy->from_offset, to = copy->to_offset;

    return copy->from == copy->to &&
           (from < to ? to - from < copy->size : from - to < copy->size);
}

static int copy_locked(struct copy *copy)
{
    struct change change;
    bool hole;
    int rc = file_check(copy->from);

    if (rc == 0)
        rc = file_check(copy->to);
    if (rc < 0)
        return rc;
    copy->size = file_readable(copy->from, copy->from_offset, copy->size);
    if (copy->size == 0)
        return 0;
    rc = file_limit(copy->to_offset, &copy->size);
    if (rc < 0)
        return rc;
    if (overlaps(copy))
        return -EINVAL;
    rc = find_run(copy, &hole);
    if (rc == 0)
        rc = change_begin(&change, copy->fs, copy->to);
    if (rc < 0)
        return rc;
    return fs_end(change.tx,
                  hole ? copy_hole(copy, &change) : copy_data(copy, &change));
}

/* Locks what is read and what is written, by number. */
static int lock_both(struct inode *from, struct inode *to)
{
    bool from_first = from->place.ino < to->place.ino;
    int rc =
        from_first ? inode_lock(from, LOCK_SHARED) : inode_lock(to, LOCK_EXCLUSIVE);

    if (rc < 0 || from == to)
        return rc;
    rc = from_first ? inode_lock(to, LOCK_EXCLUSIVE) : inode_lock(from, LOCK_SHARED);
    if (rc < 0)
        inode_unlock(from_first ? from : to);
    return rc;
}

static int copy_pinned(struct copy *copy)
{
    int rc;

    /* Their locks have another order. */
    if (is_directory(copy->from) || is_directory(copy->to))
        return -EISDIR;
    rc = lock_both(copy->from, copy->to);
    if (rc < 0)
        return rc;
    rc = copy_locked(copy);
    inode_unlock(copy->to);
    if (copy->from != copy->to)
        inode_unlock(copy->from);
    return rc;
}

int pmfs_copy_range(struct pmfs *fs, uint64_t from, uint64_t from_offset, uint64_t to,
                    uint64_t to_offset, uint64_t size, uint64_t *done)
{
    fs_forget_message();

    struct copy copy = {fs, NULL, NULL, from_offset, to_offset, size};
    int rc = inode_pin(fs, from, &copy.from);

    if (rc < 0)
        return rc;
    rc = inode_pin(fs, to, &copy.to);
    if (rc == 0) {
        rc = copy_pinned(&copy);
        inode_unpin(copy.to);
    }
    inode_unpin(copy.from);
    if (rc == 0)
        *done = copy.size;
    return rc;
}
