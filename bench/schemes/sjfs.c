/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sjfs.c - Shortcut-JFS (MSST 2012), reconstructed from what has been published of it:
 * a redo log of data and metadata, with two shortcuts.
 *
 *   differential logging     less than half of a block changes: its new bytes
 *   in-place checkpointing   otherwise the log has the whole block, in a free block,
 *                            which then becomes the file's by a swap of its slot
 *
 * sjfs-eager stores at home what it has committed, within the call, but does not wait
 * for it: the fence of the next transaction does, before that one is committed, and the
 * last committed one is stored again after a crash. So its log has two transactions.
 * sjfs-lazy keeps it in DRAM, where reads look first, until the log is full: records and
 * whole blocks together, as those are of the log wherever they lie.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/schemes/families.h"
#include "bench/schemes/grow.h"
#include "bench/schemes/overlay.h"
#include "bench/schemes/redo.h"

struct sjfs {
    struct redo redo;
    struct overlay *overlay; /* lazy; else NULL */
    uint64_t block_bytes;    /* whole blocks since the last checkpoint */
    uint64_t size;           /* of the file, as logged */
};

static struct sjfs *sjfs_of(const struct file *file)
{
    return file->scheme;
}

static uint64_t offset_of(const struct file *file, const void *ptr)
{
    return (uint64_t)((const uint8_t *)ptr - tree_of(file)->pm.base);
}

/* ---- Home, and what is not there yet --------------------------------------------- */

/* What a slot of the lowest level has. */
static uint64_t slot_value(const struct file *file, const uint64_t *slot)
{
    const struct overlay *overlay = sjfs_of(file)->overlay;

    uint64_t value = pm_load64(slot);

    return overlay ? overlay_word(overlay, offset_of(file, slot), value) : value;
}

static void put_home_word(void *arg, uint64_t home, uint64_t value)
{
    struct file *file = arg;

    tree_put_word(file, tree_at(file, home), value);
}

static void put_home_piece(void *arg, uint64_t home, const void *bytes, uint32_t size)
{
    tree_put(arg, home, bytes, size);
}

/* All that the log has goes home. */
static int checkpoint(struct file *file)
{
    struct sjfs *sjfs = sjfs_of(file);

    if (sjfs->overlay) {
        overlay_visit(sjfs->overlay, put_home_word, put_home_piece, file);
        overlay_clear(sjfs->overlay);
        if (sjfs->size != pm_load64(&file->inode->size))
            tree_put_word(file, &file->inode->size, sjfs->size);
    }
    sjfs->block_bytes = 0;
    file->counts.checkpoints++;
    int rc = redo_reset(&sjfs->redo, file);

    tree_release(file, file->blocks.freed_count);
    return rc;
}

static void store_home(struct file *file, const struct redo_change *change)
{
    if (change->is_word)
        tree_put_word(file, tree_at(file, change->home),
                      *(const uint64_t *)redo_bytes_of(change));
    else
        tree_put(file, change->home, redo_bytes_of(change), change->size);
}

/* ---- Transactions ---------------------------------------------------------------- */

static int begin(struct file *file, const struct redo_bound *bound)
{
    struct sjfs *sjfs = sjfs_of(file);
    int rc = redo_begin(&sjfs->redo, file, bound);

    if (rc == -ENOSPC) {
        rc = checkpoint(file);
        if (rc == 0)
            rc = redo_begin(&sjfs->redo, file, bound);
    }
    return rc;
}

/* At once: what is changed is nothing that the overlay has. */
static int commit_eagerly(struct file *file)
{
    struct redo *redo = &sjfs_of(file)->redo;
    int rc = redo_commit(redo, file);

    for (uint64_t i = 0; rc == 0 && i < redo->change_count; i++)
        store_home(file, &redo->changes[i]);
    return rc;
}

/* A transaction of its own: a node without slots changes nothing. */
static int add_node(struct file *file, const struct grow_link *link, uint64_t *node)
{
    const struct redo_bound bound = {.records = 1, .bytes = 8, .changes = 1};
    int rc = begin(file, &bound);

    if (rc < 0)
        return rc;
    *node = tree_add_node(file);
    if (link->first_slot)
        tree_put_word(file, tree_node(file, *node), link->first_slot);
    redo_word(&sjfs_of(file)->redo, file, link->word,
              tree_root_word(*node, link->height));
    return commit_eagerly(file);
}

/* ---- Writing --------------------------------------------------------------------- */

/* The block as readers see it. */
static void read_block(const struct file *file, uint64_t block, uint8_t *dst)
{
    const struct overlay *overlay = sjfs_of(file)->overlay;
    const struct overlay_piece *piece = overlay ? overlay_first(overlay, block) : NULL;

    memcpy(dst, tree_at(file, block), tree_of(file)->block_size);
    for (; piece; piece = overlay_next(overlay, piece))
        memcpy(dst + piece->at, overlay_bytes(overlay, piece), piece->size);
}

/* As much of the block as is ever read. */
static void count_full(struct file *file, const struct piece *piece, uint32_t used)
{
    uint32_t end = piece->at + piece->size;

    file->counts.stats.log_payload_bytes += end > used ? end : used;
    file->counts.stats.log_bytes += end > used ? end : used;
}

/* The whole block, as it will be, in a free one. */
static void put_full(struct file *file, uint64_t block, uint64_t old,
                     const struct piece *piece)
{
    const struct overlay *overlay = sjfs_of(file)->overlay;
    uint32_t used = tree_used(file, piece->index, file->size);
    struct piece whole = {.size = tree_of(file)->block_size,
                          .src = (const uint8_t *)file->buffers[0]};

    if (!old || !overlay || !overlay_first(overlay, old)) {
        tree_put_block(file, block, old, piece, used);
    } else {
        read_block(file, old, (uint8_t *)file->buffers[0]);
        memcpy((uint8_t *)file->buffers[0] + piece->at, piece->src, piece->size);
        tree_put_block(file, block, 0, &whole, whole.size);
        file->counts.copied_bytes += whole.size - piece->size;
    }
    count_full(file, piece, used);
}

static bool is_differential(const struct file *file, uint64_t old,
                            const struct piece *piece)
{
    return old && piece->size * 2 < tree_of(file)->block_size;
}

static void write_full(struct file *file, const uint64_t *slot, uint64_t old,
                       const struct piece *piece)
{
    struct sjfs *sjfs = sjfs_of(file);
    uint64_t block = tree_alloc(file);

    put_full(file, block, old, piece);
    sjfs->block_bytes += tree_of(file)->block_size;
    redo_word(&sjfs->redo, file, slot, block);
    if (old)
        tree_free(file, old);
}

static void write_piece(struct file *file, const struct piece *piece)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);
    uint64_t old = slot_value(file, slot);

    if (is_differential(file, old, piece))
        redo_bytes(&sjfs_of(file)->redo, file, old + piece->at, piece->src,
                   piece->size);
    else
        write_full(file, slot, old, piece);
}

static bool is_of_inode(const struct file *file, uint64_t home)
{
    return home - offset_of(file, file->inode) < sizeof(*file->inode);
}

/* The block that it names now has its own, up to the last byte. */
static void keep_slot(struct file *file, const struct redo_change *change)
{
    struct overlay *overlay = sjfs_of(file)->overlay;
    uint64_t old = slot_value(file, tree_at(file, change->home));

    if (old)
        overlay_drop_pieces(overlay, old);
    overlay_set_word(overlay, change->home, *(const uint64_t *)change->src);
}

/* Slots and pieces; the size is known anyhow. */
static void keep(struct file *file, const struct redo_change *change)
{
    struct overlay *overlay = sjfs_of(file)->overlay;
    uint32_t block_size = tree_of(file)->block_size;

    if (!change->is_word)
        overlay_add_piece(overlay, change->home / block_size * block_size,
                          (uint32_t)(change->home % block_size), change->src,
                          (uint32_t)change->size);
    else if (!is_of_inode(file, change->home))
        keep_slot(file, change);
}

static int commit(struct file *file)
{
    const struct sjfs *sjfs = sjfs_of(file);
    const struct redo *redo = &sjfs->redo;

    if (!sjfs->overlay) {
        int rc = commit_eagerly(file);

        tree_release(file, file->blocks.freed_count);
        return rc;
    }
    int rc = redo_commit(&sjfs_of(file)->redo, file);

    for (uint64_t i = 0; rc == 0 && i < redo->change_count; i++)
        keep(file, &redo->changes[i]);
    return rc;
}

/* One transaction, for a range whose nodes are there. */
static int write_range(struct file *file, struct piece piece, uint64_t end)
{
    uint64_t pieces = tree_last_index(file, end) - piece.index + 1;
    const struct redo_bound bound = {
        .records = pieces + 1,
        .bytes = (pieces + 1) * sizeof(uint64_t) + tree_of(file)->block_size,
        .changes = pieces + 1,
    };
    int rc = begin(file, &bound);

    if (rc < 0)
        return rc;
    do
        write_piece(file, &piece);
    while (tree_next_piece(file, &piece, end));
    if (end > file->size)
        redo_word(&sjfs_of(file)->redo, file, &file->inode->size, end);
    rc = commit(file);
    if (end > file->size)
        file->size = sjfs_of(file)->size = end;
    return rc;
}

/* Zeros up to `offset`: a transaction, so that nothing older is replayed over them. */
static int write_gap(struct file *file, uint64_t offset)
{
    struct piece gap = grow_gap(file, offset);
    uint64_t size = file->size;

    if (gap.size == 0)
        return 0;
    file->size = size + gap.size; /* which no reader sees: it is not in the log */
    int rc = write_range(file, gap, size + gap.size);

    file->size = size;
    return rc;
}

/* Before a write of `size` bytes. */
static bool is_full(const struct file *file, uint64_t size)
{
    const struct sjfs *sjfs = sjfs_of(file);
    uint64_t used = sjfs->redo.to * PM_LINE + sjfs->block_bytes;

    return sjfs->overlay && sjfs->block_bytes > 0 &&
           used + size > file->volume->options.log_size;
}

static int write_logged(struct file *file, uint64_t offset, const void *src,
                        uint64_t size)
{
    int rc = 0;

    if (size == 0)
        return 0;
    if (is_full(file, size) ||
        !tree_has_blocks(file, tree_blocks_needed(file, offset, size)))
        rc = checkpoint(file);
    if (rc == 0)
        rc = grow_nodes(file, offset, size, add_node);
    if (rc == 0)
        rc = write_gap(file, offset);
    return rc < 0
               ? rc
               : write_range(file, tree_piece(file, offset, src, size), offset + size);
}

/* ---- Reading --------------------------------------------------------------------- */

static void read_over(const struct overlay *overlay, uint64_t block,
                      const struct piece *wanted, uint8_t *dst)
{
    const struct overlay_piece *piece = overlay_first(overlay, block);
    uint32_t end = wanted->at + wanted->size;

    for (; piece; piece = overlay_next(overlay, piece)) {
        uint32_t from = piece->at > wanted->at ? piece->at : wanted->at;
        uint32_t to = piece->at + piece->size < end ? piece->at + piece->size : end;
        const uint8_t *bytes = overlay_bytes(overlay, piece);

        if (from < to)
            memcpy(dst + (from - wanted->at), bytes + (from - piece->at), to - from);
    }
}

static void read_piece(const struct file *file, const struct piece *piece, uint8_t *dst)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);
    uint64_t block = slot ? slot_value(file, slot) : 0;

    if (!block) {
        memset(dst, 0, piece->size);
        return;
    }
    memcpy(dst, (const uint8_t *)tree_at(file, block) + piece->at, piece->size);
    read_over(sjfs_of(file)->overlay, block, piece, dst);
}

static int read_lazy(struct file *file, uint64_t offset, void *dst, uint64_t size,
                     uint64_t *done)
{
    uint64_t left = offset < file->size ? file->size - offset : 0;
    uint8_t *to = dst;

    *done = size < left ? size : left;
    if (*done == 0)
        return 0;
    struct piece piece = tree_piece(file, offset, dst, *done);

    do {
        read_piece(file, &piece, to);
        to += piece.size;
    } while (tree_next_piece(file, &piece, offset + *done));
    return 0;
}

/* ---- Volumes --------------------------------------------------------------------- */

static void stop(struct file *file)
{
    struct sjfs *sjfs = sjfs_of(file);

    if (!sjfs)
        return;
    redo_finish(&sjfs->redo);
    overlay_destroy(sjfs->overlay);
    free(sjfs);
    file->scheme = NULL;
}

static int start(struct file *file)
{
    bool is_lazy = file->volume->scheme == &scheme_sjfs_lazy;
    struct sjfs *sjfs = memory_apart(sizeof(*sjfs));

    file->scheme = sjfs;
    if (!sjfs)
        return -ENOMEM;
    if (is_lazy)
        sjfs->overlay = overlay_create(file->volume->options.log_size);
    if (is_lazy && !sjfs->overlay)
        return -ENOMEM;
    int rc = redo_init(&sjfs->redo, file, is_lazy);

    if (rc == 0)
        rc = tree_load(file);
    sjfs->size = file->size;
    return rc;
}

static void close_logged(struct volume *volume)
{
    for (uint32_t i = 0; i < volume->options.file_count; i++)
        stop(volume->files[i]);
    tree_unmap(volume);
}

static int open_logged(struct volume *volume, const char *path)
{
    int rc = tree_map(volume, path);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++)
        rc = start(volume->files[i]);
    if (rc < 0)
        close_logged(volume);
    return rc;
}

static int clear_logged(struct file *file)
{
    int rc = checkpoint(file);

    if (rc == 0)
        rc = tree_clear(file);
    sjfs_of(file)->size = file->size;
    return rc;
}

/* The tree is whole once all is at home. */
static int check_logged(struct volume *volume)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++)
        rc = checkpoint(volume->files[i]);
    return rc < 0 ? rc : tree_check(volume);
}

const struct scheme scheme_sjfs_eager = {
    .name = "sjfs-eager",
    .what = "redo log of differences and whole blocks, stored at home in the call",
    .is_atomic = true,
    .is_durable = true,
    .has_log = true,
    .counts_copies = true,
    .create = tree_create,
    .open = open_logged,
    .close = close_logged,
    .write = write_logged,
    .read = tree_read,
    .clear = clear_logged,
    .size = tree_size,
    .count = tree_count,
    .check = check_logged,
};

const struct scheme scheme_sjfs_lazy = {
    .name = "sjfs-lazy",
    .what = "the same, stored at home when the log is full",
    .is_atomic = true,
    .is_durable = true,
    .has_log = true,
    .counts_copies = true,
    .create = tree_create,
    .open = open_logged,
    .close = close_logged,
    .write = write_logged,
    .read = read_lazy,
    .clear = clear_logged,
    .checkpoint = checkpoint,
    .size = tree_size,
    .count = tree_count,
    .check = check_logged,
};
