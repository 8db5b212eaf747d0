/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tree.h - the file model that all schemes but the library's share: what lies on media,
 * its twin in DRAM, and how both are walked and built.
 *
 *     place of the file --> inode {root, size} --> node --> ... --> node --> block
 *
 * A node is a block of slots, each the offset of a node or a data block; 0 is a hole
 * and reads as zeros. There is always a node at the root, and its word has the height
 * of the tree in the bits that an offset of a block leaves. Level 1 is the lowest node,
 * level 0 the data. What lies past `size` is never read: data, and slots too.
 *
 * Which blocks are in use is kept in DRAM only and found by walking the tree. Each file
 * has its own part of the volume, and shares nothing with the others.
 */
#ifndef BENCH_TREE_H
#define BENCH_TREE_H

#include "bench/schemes/scheme.h"
#include "libminl2r/pm.h"

#define TREE_HEIGHT_MAX 6

/* ---- Media ----------------------------------------------------------------------- */

struct pm_inode {
    uint64_t root; /* offset of the root node | height */
    uint64_t
        size; /* bytes; in the same line as `root`, so stored after it when later */
};

/* The first block of a volume. */
struct pm_place {
    uint64_t inode; /* offset of the block that has the inode at its start */
    uint64_t unused[7];
};
struct pm_volume {
    uint64_t magic;
    uint64_t unused[7];
    struct pm_place places[VOLUME_FILES_MAX];
};
#define PM_VOLUME_MAGIC UINT64_C(0x312e656d65686373)

/* ---- DRAM ------------------------------------------------------------------------ */

/* Blocks that nothing refers to. */
struct tree_blocks {
    uint64_t *free; /* a stack */
    uint64_t free_count;
    uint64_t *freed; /* that what is on media may still refer to; oldest first */
    uint64_t freed_count;
    uint64_t capacity;
};

struct file {
    _Alignas(APART) struct volume *volume;
    struct pm_phase phase;
    const uint64_t *word; /* the last one stored, if its line is not flushed yet */
    struct scheme_counts counts;
    const struct pm_place *place;

    /* As of the last write that returned. */
    const struct pm_inode *inode;
    uint64_t size;
    uint64_t root; /* offset */
    uint32_t height;

    struct tree_blocks blocks;
    uint64_t log_offset, first_block, end_block; /* of its part of the volume */
    uint64_t *buffers[TREE_HEIGHT_MAX + 1];      /* a block each; [0] is the inode's */
    void *scheme;                                /* state of the scheme */
};

struct tree_volume {
    struct pm pm;
    uint32_t block_size, block_shift;
    uint32_t slot_shift; /* log2 of the slots in a node */
    struct file files[VOLUME_FILES_MAX];
};

static inline struct tree_volume *tree_of(const struct file *file)
{
    return file->volume->trees;
}

static inline const void *tree_at(const struct file *file, uint64_t offset)
{
    return tree_of(file)->pm.base + offset;
}

static inline const uint64_t *tree_node(const struct file *file, uint64_t offset)
{
    return tree_at(file, offset);
}

/* ---- Volumes --------------------------------------------------------------------- */

uint64_t tree_volume_size(const struct volume_options *options);
int tree_create(struct volume *volume, const char *path);

/* The volume is mapped, and each file has its part of it; nothing is read yet. */
int tree_map(struct volume *volume, const char *path);
void tree_unmap(struct volume *volume);

/*
 * Reads the file: what crashes have left past its end is cleared, what it uses is
 * flushed (a killed process leaves caches), the rest is free. -EUCLEAN: it is no tree.
 */
int tree_load(struct file *file);

/* tree_map(), and tree_load() of each file. */
int tree_open(struct volume *volume, const char *path);

int tree_read(struct file *file, uint64_t offset, void *dst, uint64_t size,
              uint64_t *done);
int tree_clear(struct file *file);
uint64_t tree_size(const struct file *file);
void tree_count(const struct volume *volume, struct scheme_counts *counts);
int tree_check(struct volume *volume);

/* ---- Ranges ---------------------------------------------------------------------- */

/* What a write changes in one block. */
struct piece {
    uint64_t index; /* of the block in the file */
    uint32_t at;    /* in the block */
    uint32_t size;
    const uint8_t *src;
};

/* What of [offset, offset + size) lies in its first block. */
struct piece tree_piece(const struct file *file, uint64_t offset, const void *src,
                        uint64_t size);

/* The piece after `piece`, up to `end`. False: there is none. */
bool tree_next_piece(const struct file *file, struct piece *piece, uint64_t end);

static inline uint64_t tree_last_index(const struct file *file, uint64_t end)
{
    return end > 0 ? (end - 1) >> tree_of(file)->block_shift : 0;
}

/* ---- Walking --------------------------------------------------------------------- */

/* Which node of `level` leads to block `index`, counted from the left. */
static inline uint64_t tree_node_number(const struct file *file, uint64_t index,
                                        uint32_t level)
{
    return index >> (tree_of(file)->slot_shift * level);
}

/* Which slot of a node of `level` leads to block `index`. */
static inline uint32_t tree_slot_number(const struct file *file, uint64_t index,
                                        uint32_t level)
{
    uint32_t mask = (1u << tree_of(file)->slot_shift) - 1;

    return (uint32_t)tree_node_number(file, index, level - 1) & mask;
}

static inline bool tree_covers(const struct file *file, uint64_t index)
{
    return tree_node_number(file, index, file->height) == 0;
}

/* The slot for `index` in its node of `level`; NULL if that node is missing. */
const uint64_t *tree_slot(const struct file *file, uint64_t index, uint32_t level);

static inline uint64_t tree_root_word(uint64_t root, uint32_t height)
{
    return root | height;
}

/* ---- Blocks ---------------------------------------------------------------------- */

/* The most blocks that a write can need: new data, new or copied nodes, an inode. */
uint64_t tree_blocks_needed(const struct file *file, uint64_t offset, uint64_t size);

/* There is one: see tree_blocks_needed(). */
uint64_t tree_alloc(struct file *file);

/* Kept until tree_release(), of the `count` that were freed first. */
void tree_free(struct file *file, uint64_t block);
void tree_release(struct file *file, uint64_t count);

static inline bool tree_has_blocks(const struct file *file, uint64_t count)
{
    return count <= file->blocks.free_count;
}

/* ---- Stores ---------------------------------------------------------------------- */

/* Streams bytes in place. Durable after a fence. */
void tree_put(struct file *file, uint64_t offset, const void *src, uint64_t size);

/* Zeros, likewise. */
void tree_put_zeros(struct file *file, uint64_t offset, uint64_t size);

/*
 * One word, through the cache: it is read again soon. Durable after a fence. Its line is
 * flushed once no word of it follows: a store to a line on its way to memory would wait.
 */
void tree_put_word(struct file *file, const uint64_t *word, uint64_t value);

/* What was put, then what follows. */
int tree_fence(struct file *file);

/*
 * Streams the block at `offset` as it is to be: `piece`, and around it what the block
 * `old` has, or zeros if that is 0. What lies `used` bytes or more into it is never
 * read, and left as it is. Whole lines leave at once.
 */
void tree_put_block(struct file *file, uint64_t offset, uint64_t old,
                    const struct piece *piece, uint32_t used);

/* How much of the block `index` is read once the file has `size` bytes. */
uint32_t tree_used(const struct file *file, uint64_t index, uint64_t size);

/* A node without slots, through the cache. Durable after a fence. */
uint64_t tree_add_node(struct file *file);

#endif
