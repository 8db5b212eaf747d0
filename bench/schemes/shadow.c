/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shadow.c - shadow paging: a block that changes is written anew elsewhere, and so are
 * the nodes that lead to it, up to one aligned word whose store makes all of it so.
 *
 * sp copies up to the word that names the inode, always. bpfs (short-circuit shadow
 * paging; Condit et al., "Better I/O through byte-addressable, persistent memory", SOSP
 * 2009) copies as little as possible:
 *
 *   past the end    in place, slots too; `size` is the word
 *   8 bytes         in place, if they are of one aligned word
 *   otherwise       up to the lowest slot that has the whole range below it
 *   over the end    up to the inode, since both its words change
 *
 * The paper's barriers order without waiting; here each is a fence. bpfs-ordered does
 * not wait for the word itself: that is durable with the next write's fence. Until then
 * what it replaced must not be used again.
 */
#include <errno.h>
#include <string.h>

#include "bench/schemes/families.h"
#include "bench/schemes/grow.h"
#include "bench/schemes/tree.h"

static bool copies_all(const struct file *file)
{
    return file->volume->scheme == &scheme_sp;
}

/*
 * What was stored, then the word that makes it so. The fence waits for the word of the
 * write before, too: only now what that has replaced is used no more.
 */
static int commit_word(struct file *file, const uint64_t *word, uint64_t value,
                       uint64_t freed_before)
{
    int rc = tree_fence(file);

    if (rc < 0)
        return rc;
    tree_release(file, freed_before);
    tree_put_word(file, word, value);
    return 0;
}

/* The word, then the caller. */
static int finish(struct file *file)
{
    if (!file->volume->scheme->is_durable)
        return 0;
    int rc = tree_fence(file);

    tree_release(file, file->blocks.freed_count);
    return rc;
}

/* ---- In place -------------------------------------------------------------------- */

static void append_piece(struct file *file, const struct piece *piece)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);

    uint64_t block = pm_load64(slot);

    if (block) {
        tree_put(file, block + piece->at, piece->src, piece->size);
        return;
    }
    block = tree_alloc(file);

    tree_put_block(file, block, 0, piece, 0);
    tree_put_word(file, slot, block);
}

static int append(struct file *file, struct piece piece, uint64_t offset, uint64_t end)
{
    int rc = grow_nodes(file, offset, end - offset, grow_past_end);

    if (rc < 0)
        return rc;
    grow_zero_gap(file, offset);
    do
        append_piece(file, &piece);
    while (tree_next_piece(file, &piece, end));
    rc = commit_word(file, &file->inode->size, end, file->blocks.freed_count);
    file->size = end;
    return rc;
}

static bool is_in_word(const struct piece *piece, uint64_t size)
{
    return piece->size == size && piece->at / 8 == (piece->at + size - 1) / 8;
}

static int write_word(struct file *file, uint64_t block, const struct piece *piece)
{
    const uint64_t *at = tree_at(file, block + (piece->at & ~7u));
    uint64_t word = pm_load64(at);

    memcpy((uint8_t *)&word + piece->at % 8, piece->src, piece->size);
    return commit_word(file, at, word, file->blocks.freed_count);
}

/* ---- Copies ---------------------------------------------------------------------- */

/* Copies that a write makes: of nodes up to level `top`, each built in its buffer. */
struct shadow {
    struct file *file;
    uint32_t top;
    uint64_t block[TREE_HEIGHT_MAX + 1]; /* of each buffer; 0: none yet */
    uint64_t new_top;                    /* what takes the old one's place */
    uint64_t freed_before;               /* by writes before */
};

/* The level below which the whole range is under one slot. */
static uint32_t top_level(const struct file *file, uint64_t first, uint64_t last)
{
    uint32_t level = 0;

    while (tree_node_number(file, first, level) != tree_node_number(file, last, level))
        level++;
    return level;
}

static void count_shadow(struct file *file)
{
    file->counts.stats.log_payload_bytes += tree_of(file)->block_size;
    file->counts.stats.log_bytes += tree_of(file)->block_size;
}

/* Where what is at `level` on the way to `index` is named: in a buffer, or on media. */
static uint64_t replace(struct shadow *shadow, uint64_t index, uint32_t level,
                        uint64_t block)
{
    struct file *file = shadow->file;
    uint64_t old;

    if (level < shadow->top) {
        uint64_t *slot =
            &file->buffers[level + 1][tree_slot_number(file, index, level + 1)];

        old = *slot;
        *slot = block;
        return old;
    }
    shadow->new_top = block;
    if (level == file->height)
        return file->root;
    const uint64_t *slot = tree_slot(file, index, level + 1);

    return slot ? pm_load64(slot) : 0;
}

static void put_node(struct shadow *shadow, uint32_t level)
{
    struct file *file = shadow->file;

    if (shadow->block[level])
        tree_put(file, shadow->block[level], file->buffers[level],
                 tree_of(file)->block_size);
    shadow->block[level] = 0;
}

static void copy_node(struct shadow *shadow, uint64_t index, uint32_t level)
{
    struct file *file = shadow->file;
    uint32_t size = tree_of(file)->block_size;
    uint64_t node = tree_alloc(file);
    uint64_t old = replace(shadow, index, level, node);

    shadow->block[level] = node;
    if (!old) {
        memset(file->buffers[level], 0, size);
        return;
    }
    memcpy(file->buffers[level], tree_node(file, old), size);
    tree_free(file, old);
    file->counts.copied_bytes += size;
    count_shadow(file);
}

/* The nodes on the way to `index`, of which those from `changed` down are others than
 * for the index before. */
static void copy_nodes(struct shadow *shadow, uint64_t index, uint32_t changed)
{
    for (uint32_t level = 1; level <= changed; level++)
        put_node(shadow, level);
    for (uint32_t level = changed; level > 0; level--)
        copy_node(shadow, index, level);
}

static void copy_leaf(struct shadow *shadow, const struct piece *piece)
{
    struct file *file = shadow->file;
    uint64_t block = tree_alloc(file);
    uint64_t old = replace(shadow, piece->index, 0, block);

    tree_put_block(file, block, old, piece, tree_used(file, piece->index, file->size));
    if (!old)
        return;
    tree_free(file, old);
    count_shadow(file);
}

static void copy_range(struct shadow *shadow, struct piece piece, uint64_t end)
{
    uint64_t before = piece.index;

    copy_nodes(shadow, piece.index, shadow->top);
    do {
        uint32_t changed = top_level(shadow->file, before, piece.index);

        copy_nodes(shadow, piece.index, changed < 2 ? 0 : changed - 1);
        copy_leaf(shadow, &piece);
        before = piece.index;
    } while (tree_next_piece(shadow->file, &piece, end));
    for (uint32_t level = 1; level <= shadow->top; level++)
        put_node(shadow, level);
}

/* A new inode, in the place of the old one. */
static int commit_inode(struct shadow *shadow, uint64_t end)
{
    struct file *file = shadow->file;
    uint64_t root = shadow->new_top;
    uint32_t size = tree_of(file)->block_size;
    struct pm_inode inode = {.root = tree_root_word(root, file->height), .size = end};
    uint64_t block = tree_alloc(file);

    memcpy(file->buffers[0], file->inode, size);
    memcpy(file->buffers[0], &inode, sizeof(inode));
    tree_put(file, block, file->buffers[0], size);
    tree_free(file, pm_load64(&file->place->inode));
    file->counts.copied_bytes += size - sizeof(inode);
    count_shadow(file);
    int rc = commit_word(file, &file->place->inode, block, shadow->freed_before);

    file->inode = tree_at(file, block);
    file->root = root;
    file->size = end;
    return rc;
}

static int commit_top(struct shadow *shadow, uint64_t index)
{
    struct file *file = shadow->file;

    if (shadow->top < file->height)
        return commit_word(file, tree_slot(file, index, shadow->top + 1),
                           shadow->new_top, shadow->freed_before);
    file->root = shadow->new_top;
    return commit_word(file, &file->inode->root,
                       tree_root_word(file->root, file->height), shadow->freed_before);
}

/* A slot to commit by has to be there. Rare: in a hole that has no node. */
static int add_missing_nodes(struct file *file, uint64_t offset, uint64_t size)
{
    if (tree_slot(file, offset >> tree_of(file)->block_shift, 1))
        return 0;
    int rc = grow_nodes(file, offset, size, grow_in_place);

    if (rc == 0 && !tree_has_blocks(file, tree_blocks_needed(file, offset, size)))
        rc = -ENOSPC;
    return rc;
}

static int copy_up(struct file *file, const struct piece *piece, uint64_t offset,
                   uint64_t end)
{
    uint64_t new_size = end > file->size ? end : file->size;
    bool to_inode = copies_all(file) || end > file->size;
    struct shadow shadow = {.file = file, .freed_before = file->blocks.freed_count};
    int rc = grow_height(file, tree_last_index(file, end), grow_in_place);

    if (rc == 0)
        rc = add_missing_nodes(file, offset, end - offset);
    if (rc < 0)
        return rc;
    shadow.top = to_inode ? file->height
                          : top_level(file, piece->index, tree_last_index(file, end));
    copy_range(&shadow, *piece, end);
    return to_inode ? commit_inode(&shadow, new_size)
                    : commit_top(&shadow, piece->index);
}

/* ---- Calls ----------------------------------------------------------------------- */

static int overwrite(struct file *file, const struct piece *piece, uint64_t offset,
                     uint64_t end)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);

    uint64_t block = slot ? pm_load64(slot) : 0;

    if (end <= file->size && is_in_word(piece, end - offset) && block)
        return write_word(file, block, piece);
    return copy_up(file, piece, offset, end);
}

static int write_shadow(struct file *file, uint64_t offset, const void *src,
                        uint64_t size)
{
    uint64_t end = offset + size;
    struct piece piece = tree_piece(file, offset, src, size);
    int rc;

    if (size == 0)
        return 0;
    if (!tree_has_blocks(file, tree_blocks_needed(file, offset, size)))
        return -ENOSPC;
    if (copies_all(file)) {
        grow_zero_gap(file, offset);
        rc = copy_up(file, &piece, offset, end);
    } else if (offset >= file->size) {
        rc = append(file, piece, offset, end);
    } else {
        rc = overwrite(file, &piece, offset, end);
    }
    return rc < 0 ? rc : finish(file);
}

const struct scheme scheme_bpfs_ordered = {
    .name = "bpfs-ordered",
    .what = "short-circuit shadow paging; the last write may be lost as a whole",
    .is_atomic = true,
    .counts_copies = true,
    .create = tree_create,
    .open = tree_open,
    .close = tree_unmap,
    .write = write_shadow,
    .read = tree_read,
    .clear = tree_clear,
    .size = tree_size,
    .count = tree_count,
    .check = tree_check,
};

const struct scheme scheme_bpfs_durable = {
    .name = "bpfs-durable",
    .what = "short-circuit shadow paging, durable when it returns",
    .is_atomic = true,
    .is_durable = true,
    .counts_copies = true,
    .create = tree_create,
    .open = tree_open,
    .close = tree_unmap,
    .write = write_shadow,
    .read = tree_read,
    .clear = tree_clear,
    .size = tree_size,
    .count = tree_count,
    .check = tree_check,
};

const struct scheme scheme_sp = {
    .name = "sp",
    .what = "shadow paging: copies up to the root",
    .is_atomic = true,
    .is_durable = true,
    .counts_copies = true,
    .create = tree_create,
    .open = tree_open,
    .close = tree_unmap,
    .write = write_shadow,
    .read = tree_read,
    .clear = tree_clear,
    .size = tree_size,
    .count = tree_count,
    .check = tree_check,
};
