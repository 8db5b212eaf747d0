/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.c - block journaling as JBD2 does it. Every block that changes is written
 * whole to the journal, then committed, then stored at home through the cache; homes
 * are flushed when the journal is full, before it is used again: each once, as JBD2
 * writes a buffer back once however many transactions of the journal have it.
 *
 *   journal  data and metadata (as ext4 data=journal)
 *   ordered  metadata only; data is stored in place before (as data=ordered), and torn
 *
 * Of descriptor and commit block only the lines that are used are written.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/schemes/families.h"
#include "bench/schemes/grow.h"
#include "bench/schemes/redo.h"

struct journal {
    struct redo redo;
    uint64_t *homes; /* of the images in the log, each once */
    uint64_t home_count;
    bool *is_home;  /* of each block of the file's part */
    uint64_t block; /* the node or inode in buffers[0], as it will be; 0: none */
};

static struct journal *journal_of(const struct file *file)
{
    return file->scheme;
}

static bool journals_data(const struct file *file)
{
    return file->volume->scheme == &scheme_journal;
}

/* ---- Transactions ---------------------------------------------------------------- */

static bool *is_home(const struct file *file, uint64_t block)
{
    return &journal_of(file)
                ->is_home[(block - file->first_block) >> tree_of(file)->block_shift];
}

static void add_home(struct file *file, uint64_t block)
{
    struct journal *journal = journal_of(file);

    if (!*is_home(file, block))
        journal->homes[journal->home_count++] = block;
    *is_home(file, block) = true;
}

static int checkpoint(struct file *file)
{
    struct journal *journal = journal_of(file);

    for (uint64_t i = 0; i < journal->home_count; i++) {
        pm_flush(&file->phase, tree_at(file, journal->homes[i]),
                 tree_of(file)->block_size);
        *is_home(file, journal->homes[i]) = false;
    }
    journal->home_count = 0;
    file->counts.checkpoints++;
    return redo_reset(&journal->redo, file);
}

/* Of `images` blocks, each changed in `changes` places at most. */
static int begin(struct file *file, uint64_t images, uint64_t changes)
{
    struct journal *journal = journal_of(file);
    const struct redo_bound bound = {
        .records = images, .images = images, .changes = images * changes};
    int rc = redo_begin(&journal->redo, file, &bound);

    if (rc == -ENOSPC) {
        rc = checkpoint(file);
        if (rc == 0)
            rc = redo_begin(&journal->redo, file, &bound);
    }
    return rc;
}

static void put_image(struct file *file, uint64_t home, uint64_t old,
                      const struct piece *piece)
{
    struct journal *journal = journal_of(file);

    redo_image(&journal->redo, file, home, old, piece);
    add_home(file, home);
}

/* The image of the node or inode that words have changed. */
static void put_pending(struct file *file)
{
    struct journal *journal = journal_of(file);
    const struct piece whole = {.size = tree_of(file)->block_size,
                                .src = (const uint8_t *)file->buffers[0]};

    if (journal->block)
        put_image(file, journal->block, 0, &whole);
    journal->block = 0;
}

/* Words of one block come in a row, so that it has one image. */
static void change_word(struct file *file, const uint64_t *word, uint64_t value)
{
    struct journal *journal = journal_of(file);
    uint32_t block_size = tree_of(file)->block_size;
    uint64_t at = (uint64_t)((const uint8_t *)word - tree_of(file)->pm.base);
    uint64_t block = at / block_size * block_size;
    const struct redo_change change = {.home = at, .size = 8, .word = value};

    if (journal->block != block) {
        put_pending(file);
        memcpy(file->buffers[0], tree_at(file, block), block_size);
        journal->block = block;
    }
    file->buffers[0][(at - block) / 8] = value;
    redo_add_change(&journal->redo, &change);
}

/* What was journaled, at home: in the cache only. */
static void store_home(struct file *file)
{
    const struct redo *redo = &journal_of(file)->redo;

    for (uint64_t i = 0; i < redo->change_count; i++) {
        const struct redo_change *change = &redo->changes[i];

        pm_store(&file->phase, tree_at(file, change->home), redo_bytes_of(change),
                 change->size);
    }
}

static int commit(struct file *file)
{
    struct redo *redo = &journal_of(file)->redo;

    put_pending(file);
    if (redo_is_empty(redo))
        return tree_fence(file); /* data in place, then the caller */
    int rc = redo_commit(redo, file);

    if (rc == 0)
        store_home(file);
    return rc;
}

/* A transaction of its own: a node without slots changes nothing. */
static int add_node(struct file *file, const struct grow_link *link, uint64_t *node)
{
    int rc = begin(file, 2, 1);

    if (rc < 0)
        return rc;
    *node = tree_add_node(file);
    change_word(file, tree_node(file, *node), link->first_slot);
    change_word(file, link->word, tree_root_word(*node, link->height));
    return commit(file);
}

/* ---- Writing --------------------------------------------------------------------- */

static void change_bytes(struct file *file, uint64_t home, const void *src,
                         uint64_t size)
{
    const struct redo_change change = {.home = home, .src = src, .size = size};

    if (size > 0)
        redo_add_change(&journal_of(file)->redo, &change);
}

/* All of a new block, since nobody knows what it had. */
static void journal_new_block(struct file *file, uint64_t block,
                              const struct piece *piece)
{
    static const uint8_t zeros[MINL2R_BLOCK_SIZE_MAX];
    uint32_t end = piece->at + piece->size;
    uint32_t used = tree_used(file, piece->index, file->size);

    put_image(file, block, 0, piece);
    change_bytes(file, block, zeros, piece->at);
    change_bytes(file, block + piece->at, piece->src, piece->size);
    change_bytes(file, block + end, zeros, used > end ? used - end : 0);
}

static void write_new_block(struct file *file, const uint64_t *slot,
                            const struct piece *piece)
{
    uint64_t block = tree_alloc(file);

    if (journals_data(file))
        journal_new_block(file, block, piece);
    else
        tree_put_block(file, block, 0, piece,
                       tree_used(file, piece->index, file->size));
    change_word(file, slot, block);
}

static void write_piece(struct file *file, const struct piece *piece)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);

    uint64_t block = pm_load64(slot);

    if (!block) {
        write_new_block(file, slot, piece);
    } else if (journals_data(file)) {
        put_image(file, block, block, piece);
        change_bytes(file, block + piece->at, piece->src, piece->size);
    } else {
        tree_put(file, block + piece->at, piece->src, piece->size);
    }
}

/* One transaction, for a range whose nodes are there. */
static int write_range(struct file *file, struct piece piece, uint64_t end)
{
    uint64_t pieces = tree_last_index(file, end) - piece.index + 1;
    uint64_t nodes = (pieces >> tree_of(file)->slot_shift) + 2;
    uint64_t size = end > file->size ? end : file->size;
    int rc = begin(file, pieces + nodes + 1, 4);

    if (rc < 0)
        return rc;
    do
        write_piece(file, &piece);
    while (tree_next_piece(file, &piece, end));
    if (size > file->size)
        change_word(file, &file->inode->size, size);
    rc = commit(file);
    file->size = size;
    return rc;
}

/* Zeros up to `offset`. Where data is journaled, what is replayed must have them. */
static int write_gap(struct file *file, uint64_t offset)
{
    struct piece gap = grow_gap(file, offset);

    if (gap.size == 0)
        return 0;
    if (!journals_data(file)) {
        grow_zero_gap(file, offset);
        return 0;
    }
    int rc = begin(file, 1, 4);

    if (rc < 0)
        return rc;
    write_piece(file, &gap);
    return commit(file);
}

static int write_journaled(struct file *file, uint64_t offset, const void *src,
                           uint64_t size)
{
    if (size == 0)
        return 0;
    int rc = grow_nodes(file, offset, size, add_node);

    if (rc == 0)
        rc = write_gap(file, offset);
    return rc < 0
               ? rc
               : write_range(file, tree_piece(file, offset, src, size), offset + size);
}

/* ---- Volumes --------------------------------------------------------------------- */

static void stop(struct file *file)
{
    struct journal *journal = journal_of(file);

    if (!journal)
        return;
    redo_finish(&journal->redo);
    free(journal->homes);
    free(journal->is_home);
    free(journal);
    file->scheme = NULL;
}

static int start(struct file *file)
{
    struct journal *journal = memory_apart(sizeof(*journal));
    uint64_t images = file->volume->options.log_size / tree_of(file)->block_size;

    file->scheme = journal;
    if (!journal)
        return -ENOMEM;
    journal->homes = memory_apart((images + 1) * sizeof(*journal->homes));
    journal->is_home = memory_apart(file->blocks.capacity * sizeof(*journal->is_home));
    if (!journal->homes || !journal->is_home)
        return -ENOMEM;
    int rc = redo_init(&journal->redo, file, true);

    return rc < 0 ? rc : tree_load(file);
}

static void close_journaled(struct volume *volume)
{
    for (uint32_t i = 0; i < volume->options.file_count; i++)
        stop(volume->files[i]);
    tree_unmap(volume);
}

static int open_journaled(struct volume *volume, const char *path)
{
    int rc = tree_map(volume, path);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++)
        rc = start(volume->files[i]);
    if (rc < 0)
        close_journaled(volume);
    return rc;
}

static int clear_journaled(struct file *file)
{
    int rc = checkpoint(file);

    return rc < 0 ? rc : tree_clear(file);
}

const struct scheme scheme_journal = {
    .name = "journal",
    .what = "block journal of data and metadata",
    .is_atomic = true,
    .is_durable = true,
    .has_log = true,
    .counts_copies = true,
    .create = tree_create,
    .open = open_journaled,
    .close = close_journaled,
    .write = write_journaled,
    .read = tree_read,
    .clear = clear_journaled,
    .checkpoint = checkpoint,
    .size = tree_size,
    .count = tree_count,
    .check = tree_check,
};

const struct scheme scheme_ordered = {
    .name = "ordered",
    .what = "block journal of metadata; data in place before it, which tears",
    .is_durable = true,
    .has_log = true,
    .counts_copies = true,
    .create = tree_create,
    .open = open_journaled,
    .close = close_journaled,
    .write = write_journaled,
    .read = tree_read,
    .clear = clear_journaled,
    .checkpoint = checkpoint,
    .size = tree_size,
    .count = tree_count,
    .check = tree_check,
};
