/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * minl2r.c - the library itself: each write is one transaction, and the same file model
 * is built of its blocks. The four schemes differ in the pool's threshold of pointer
 * logging only.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench/schemes/families.h"
#include "bench/schemes/tree.h"

#define LAYOUT "bench-scheme"
#define POOL_EXTRA ((uint64_t)2 << 20) /* lanes, logs, bitmaps, what is spare */

/* In the root object. The height is a word of its own, so that the root is plain. */
struct pm_library_file {
    uint64_t root;
    uint64_t height;
    uint64_t size;
    uint64_t unused[5];
};

static const uint8_t zeros[MINL2R_BLOCK_SIZE_MAX];

static const struct pm_library_file *media_of(const struct file *file)
{
    return file->scheme;
}

/* The twin in DRAM, as other schemes have one. */
static void read_media(struct file *file)
{
    const struct pm_library_file *pm = media_of(file);

    file->root = pm->root;
    file->height = (uint32_t)pm->height;
    file->size = pm->size;
}

static struct minl2r_pool *pool_of(const struct file *file)
{
    return file->volume->pool;
}

static uint32_t block_size_of(const struct file *file)
{
    return file->volume->options.block_size;
}

/* ---- Walking --------------------------------------------------------------------- */

/* The nodes on the way to a block. Indexes given to find_slot() do not go down. */
struct path {
    const struct file *file;
    struct minl2r_tx *tx; /* adds nodes that are missing; NULL: does not */
    uint32_t slot_shift;
    uint64_t root;
    uint32_t height;
    uint32_t low; /* nodes from this level on lead to `index` */
    uint64_t index;
    const uint64_t *node[TREE_HEIGHT_MAX + 1];
    uint64_t *added[TREE_HEIGHT_MAX + 1]; /* the same, if `tx` has added it */
};

/* Of the nodes, only those that were reached have a value. */
static void path_init(struct path *path, const struct file *file, struct minl2r_tx *tx)
{
    path->file = file;
    path->tx = tx;
    path->slot_shift = (uint32_t)__builtin_ctz(block_size_of(file) / 8);
    path->root = file->root;
    path->height = path->low = file->height;
    path->index = 0;
    path->node[path->height] = minl2r_at(pool_of(file), path->root);
    path->added[path->height] = NULL;
}

static uint64_t node_number(const struct path *path, uint64_t index, uint32_t level)
{
    return index >> (path->slot_shift * level);
}

static uint32_t slot_number(const struct path *path, uint64_t index, uint32_t level)
{
    uint32_t mask = (1u << path->slot_shift) - 1;

    return (uint32_t)node_number(path, index, level - 1) & mask;
}

/* A node without slots. */
static int add_node(struct path *path, uint32_t level, uint64_t *offset)
{
    int rc = minl2r_tx_alloc(path->tx, 1, offset, &path->added[level]);

    if (rc < 0)
        return rc;
    memset(path->added[level], 0, block_size_of(path->file));
    path->node[level] = path->added[level];
    return 0;
}

static int link_node(struct path *path, uint32_t level, uint32_t number)
{
    uint64_t offset;
    int rc = add_node(path, level - 1, &offset);

    if (rc < 0)
        return rc;
    if (!path->added[level])
        return minl2r_tx_write(path->tx, &path->node[level][number], &offset,
                               sizeof(offset));
    path->added[level][number] = offset;
    return 0;
}

/* To the node below slot `number` of the one at `level`. */
static int descend(struct path *path, uint32_t level, uint32_t number)
{
    uint64_t offset = pm_load64(&path->node[level][number]);

    if (!offset)
        return path->tx ? link_node(path, level, number) : -ENOENT;
    path->node[level - 1] = minl2r_at(pool_of(path->file), offset);
    path->added[level - 1] = NULL;
    return path->node[level - 1] ? 0 : -EUCLEAN;
}

/* To the node of `level` for `index`; -ENOENT: it is missing. */
static int find_node(struct path *path, uint64_t index, uint32_t level)
{
    int rc = 0;

    if (node_number(path, index, path->height) > 0)
        return -ENOENT;
    while (path->low < path->height && node_number(path, index, path->low) !=
                                           node_number(path, path->index, path->low))
        path->low++;
    path->index = index;
    while (rc == 0 && path->low > level) {
        rc = descend(path, path->low, slot_number(path, index, path->low));
        path->low -= rc == 0;
    }
    return rc;
}

static int find_slot(struct path *path, uint64_t index, const uint64_t **slot)
{
    int rc = find_node(path, index, 1);

    if (rc == 0)
        *slot = &path->node[1][slot_number(path, index, 1)];
    return rc;
}

static int raise_root(struct path *path)
{
    uint64_t offset;

    if (path->height == TREE_HEIGHT_MAX)
        return -EFBIG;
    int rc = add_node(path, path->height + 1, &offset);

    if (rc < 0)
        return rc;
    path->height++;
    path->added[path->height][0] = path->root;
    path->root = offset;
    path->low = path->height;
    return 0;
}

static int grow_height(struct path *path, uint64_t last)
{
    const struct pm_library_file *pm = media_of(path->file);
    int rc = 0;

    if (node_number(path, last, path->height) == 0)
        return 0;
    while (rc == 0 && node_number(path, last, path->height) > 0)
        rc = raise_root(path);
    const uint64_t words[2] = {path->root, path->height};

    return rc < 0 ? rc : minl2r_tx_write(path->tx, &pm->root, words, sizeof(words));
}

/* ---- Writing --------------------------------------------------------------------- */

static struct piece piece_at(const struct file *file, uint64_t offset,
                             const uint8_t *src, uint64_t size)
{
    uint32_t block_size = block_size_of(file);
    uint32_t at = (uint32_t)(offset & (block_size - 1));
    uint32_t room = block_size - at;

    return (struct piece){.index = offset / block_size,
                          .at = at,
                          .size = size < room ? (uint32_t)size : room,
                          .src = src};
}

/* The room past the end in the last block, which needs no log; NULL: there is none. */
static const uint8_t *find_tail(const struct file *file)
{
    struct path path;
    uint64_t size = file->size;
    uint32_t at = (uint32_t)(size & (block_size_of(file) - 1));
    const uint64_t *slot = NULL;

    path_init(&path, file, NULL);
    if (at == 0 || find_slot(&path, size / block_size_of(file), &slot) != 0)
        return NULL;
    uint64_t block = pm_load64(slot);

    return block ? (const uint8_t *)minl2r_at(pool_of(file), block) + at : NULL;
}

/* Zeros up to `offset`, and what of the bytes fits behind the end. */
static int write_tail(const struct file *file, struct minl2r_tx *tx, uint64_t offset,
                      const struct piece *piece, uint64_t *written)
{
    uint64_t end = file->size;
    const uint8_t *tail = offset >= end ? find_tail(file) : NULL;
    int rc = 0;

    *written = 0;
    if (!tail)
        return 0;
    struct piece gap = piece_at(file, end, NULL, offset - end);

    if (gap.size > 0)
        rc = minl2r_tx_write_fresh(tx, tail, zeros, gap.size);
    if (rc < 0 || piece->index != gap.index)
        return rc;
    *written = piece->size;
    return minl2r_tx_write_fresh(tx, tail + (offset - end), piece->src, piece->size);
}

/* Will the library swap a block of which so much is written? By the pool's threshold. */
static bool is_swapped(const struct file *file, uint64_t size)
{
    return size >= file->volume->threshold;
}

/* By the slot if the block may be swapped, or is not there; else as plain bytes. */
static int write_piece(const struct path *path, const uint64_t *slot,
                       const struct piece *piece)
{
    uint64_t offset = is_swapped(path->file, piece->size) ? 0 : pm_load64(slot);
    const uint8_t *block = offset ? minl2r_at(pool_of(path->file), offset) : NULL;

    return block ? minl2r_tx_write(path->tx, block + piece->at, piece->src, piece->size)
                 : minl2r_tx_write_block(path->tx, slot, piece->at, piece->src,
                                         piece->size);
}

static int write_blocks(struct path *path, uint64_t offset, const uint8_t *src,
                        uint64_t size)
{
    int rc = 0;

    while (rc == 0 && size > 0) {
        struct piece piece = piece_at(path->file, offset, src, size);
        const uint64_t *slot = NULL;

        rc = find_slot(path, piece.index, &slot);
        if (rc == 0)
            rc = write_piece(path, slot, &piece);
        offset += piece.size;
        src += piece.size;
        size -= piece.size;
    }
    return rc;
}

static int queue_write(struct path *path, uint64_t offset, const uint8_t *src,
                       uint64_t size)
{
    const struct file *file = path->file;
    struct piece first = piece_at(file, offset, src, size);
    uint64_t end = offset + size, written;
    int rc = write_tail(file, path->tx, offset, &first, &written);

    if (rc == 0 && written < size)
        rc = grow_height(path, (end - 1) / block_size_of(file));
    if (rc == 0)
        rc = write_blocks(path, offset + written, src + written, size - written);
    if (rc == 0 && end > file->size)
        rc = minl2r_tx_write(path->tx, &media_of(file)->size, &end, sizeof(end));
    return rc;
}

/* Commits what `rc` says was queued, or gives it up. */
static int end_tx(struct minl2r_tx *tx, int rc)
{
    if (rc == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return rc;
}

static int library_write(struct file *file, uint64_t offset, const void *src,
                         uint64_t size)
{
    struct minl2r_tx *tx;
    struct path path;

    if (size == 0)
        return 0;
    int rc = minl2r_tx_begin(pool_of(file), &tx);

    if (rc < 0)
        return rc;
    path_init(&path, file, tx);
    rc = end_tx(tx, queue_write(&path, offset, src, size));
    if (rc < 0)
        return rc;
    file->root = path.root;
    file->height = path.height;
    if (offset + size > file->size)
        file->size = offset + size;
    return 0;
}

/* ---- Reading --------------------------------------------------------------------- */

static int read_piece(struct path *path, const struct piece *piece, uint8_t *dst)
{
    const uint64_t *slot = NULL;
    int rc = find_slot(path, piece->index, &slot);

    uint64_t offset = rc == 0 ? pm_load64(slot) : 0;

    if (rc == -ENOENT || (rc == 0 && !offset)) {
        memset(dst, 0, piece->size);
        return 0;
    }
    const uint8_t *block = rc == 0 ? minl2r_at(pool_of(path->file), offset) : NULL;

    if (!block)
        return -EUCLEAN;
    memcpy(dst, block + piece->at, piece->size);
    return 0;
}

static int library_read(struct file *file, uint64_t offset, void *dst, uint64_t size,
                        uint64_t *done)
{
    uint64_t left = offset < file->size ? file->size - offset : 0;
    struct path path;
    uint8_t *to = dst;
    int rc = 0;

    path_init(&path, file, NULL);
    *done = size < left ? size : left;
    for (uint64_t at = 0; rc == 0 && at < *done;) {
        struct piece piece = piece_at(file, offset + at, NULL, *done - at);

        rc = read_piece(&path, &piece, to + at);
        at += piece.size;
    }
    return rc;
}

static uint64_t library_size(const struct file *file)
{
    return file->size;
}

/* ---- Clearing, checking ---------------------------------------------------------- */

/* Calls `visit` for each node of a level, whatever size the file has. */
typedef int visit_fn(const struct file *file, const uint64_t *node, void *arg);

static int visit_nodes(const struct file *file, uint32_t level, visit_fn *visit,
                       void *arg)
{
    struct path path;
    int rc = 0;

    path_init(&path, file, NULL);
    uint64_t count = (uint64_t)1 << (path.slot_shift * (path.height - level));

    for (uint64_t i = 0; rc == 0 && i < count; i++) {
        rc = find_node(&path, i << (path.slot_shift * level), level);
        if (rc == 0)
            rc = visit(file, path.node[level], arg);
        else if (rc == -ENOENT)
            rc = 0;
    }
    return rc;
}

/* Frees what the slots of a node name. */
static int empty_node(const struct file *file, const uint64_t *node, void *arg)
{
    uint32_t block_size = block_size_of(file);
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(pool_of(file), &tx);

    (void)arg;
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < block_size / 8; i++)
        if (node[i])
            rc = minl2r_tx_free(tx, node[i], 1);
    if (rc == 0)
        rc = minl2r_tx_zero(tx, node, block_size);
    return end_tx(tx, rc);
}

static int library_clear(struct file *file)
{
    const struct pm_library_file *pm = media_of(file);
    int rc = minl2r_store64(pool_of(file), &pm->size, 0);

    for (uint32_t level = 1; rc == 0 && level <= file->height; level++)
        rc = visit_nodes(file, level, empty_node, NULL);
    if (rc == 0)
        rc = minl2r_store64(pool_of(file), &pm->height, 1);
    read_media(file);
    return rc;
}

static int count_slots(const struct file *file, const uint64_t *node, void *arg)
{
    uint64_t *count = arg;

    for (uint32_t i = 0; i < block_size_of(file) / 8; i++) {
        if (node[i] && !minl2r_at(pool_of(file), node[i]))
            return -EUCLEAN;
        *count += node[i] != 0;
    }
    return 0;
}

/* All blocks that are in use are named by a slot, a root, or are the root object. */
static int library_check(struct volume *volume)
{
    struct minl2r_info info;
    uint64_t named = 1;
    int rc = minl2r_pool_info(volume->pool, &info);

    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++) {
        const struct file *file = volume->files[i];

        named++;
        for (uint32_t level = 1; rc == 0 && level <= file->height; level++)
            rc = visit_nodes(file, level, count_slots, &named);
    }
    return rc == 0 && named != info.blocks - info.blocks_free ? -EUCLEAN : rc;
}

/* ---- Pools ----------------------------------------------------------------------- */

static uint64_t pool_size(const struct volume_options *options)
{
    return tree_volume_size(options) * 33 / 32 + POOL_EXTRA;
}

static void release_files(struct volume *volume)
{
    for (uint32_t i = 0; i < volume->options.file_count; i++)
        free(volume->files[i]);
}

static int make_files(struct volume *volume)
{
    const struct pm_library_file *pm =
        minl2r_root(volume->pool, VOLUME_FILES_MAX * sizeof(*pm));

    if (!pm)
        return -errno;
    for (uint32_t i = 0; i < volume->options.file_count; i++) {
        struct file *file = memory_apart(sizeof(*file));

        if (!file)
            return -ENOMEM;
        *file = (struct file){.volume = volume, .scheme = (void *)(uintptr_t)&pm[i]};
        read_media(file);
        volume->files[i] = file;
    }
    return 0;
}

static int start(struct volume *volume)
{
    struct minl2r_info info;
    int rc = minl2r_pool_info(volume->pool, &info);

    if (rc == 0) {
        volume->threshold = info.pointer_threshold;
        rc = make_files(volume);
    }
    if (rc < 0) {
        release_files(volume);
        minl2r_pool_close(volume->pool);
    }
    return rc;
}

static int library_open(struct volume *volume, const char *path)
{
    const struct minl2r_options options = {.commit = MINL2R_COMMIT_PROVE};
    int rc = minl2r_pool_open(path, LAYOUT, &options, &volume->pool);

    return rc < 0 ? rc : start(volume);
}

static void library_close(struct volume *volume)
{
    release_files(volume);
    minl2r_pool_close(volume->pool);
    volume->pool = NULL;
}

static int add_root(struct file *file)
{
    const struct pm_library_file *pm = media_of(file);
    struct minl2r_tx *tx;
    uint64_t words[2] = {0, 1};
    uint64_t *node;
    int rc = minl2r_tx_begin(pool_of(file), &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_alloc(tx, 1, &words[0], &node);
    if (rc == 0) {
        memset(node, 0, block_size_of(file));
        rc = minl2r_tx_write(tx, &pm->root, words, sizeof(words));
    }
    return end_tx(tx, rc);
}

static int create(struct volume *volume, const char *path, uint32_t threshold)
{
    const struct minl2r_options options = {.block_size = volume->options.block_size,
                                           .pointer_threshold = threshold,
                                           .commit = MINL2R_COMMIT_PROVE};
    int rc = minl2r_pool_create(path, LAYOUT, pool_size(&volume->options), &options,
                                &volume->pool);

    if (rc == 0)
        rc = start(volume);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++)
        rc = add_root(volume->files[i]);
    library_close(volume);
    return rc;
}

static int create_half(struct volume *volume, const char *path)
{
    return create(volume, path, MINL2R_POINTER_HALF);
}

static int create_data(struct volume *volume, const char *path)
{
    return create(volume, path, MINL2R_POINTER_NEVER);
}

static int create_ptr(struct volume *volume, const char *path)
{
    return create(volume, path, MINL2R_POINTER_ALWAYS);
}

static int create_auto(struct volume *volume, const char *path)
{
    return create(volume, path, MINL2R_POINTER_AUTO);
}

static void library_count(const struct volume *volume, struct scheme_counts *counts)
{
    *counts = (struct scheme_counts){0};
    minl2r_stats_get(volume->pool, &counts->stats);
}

/* What all have, whatever their threshold. */
#define LIBRARY                                                                        \
    .is_atomic = true, .is_durable = true, .open = library_open,                       \
    .close = library_close, .write = library_write, .read = library_read,              \
    .clear = library_clear, .size = library_size, .count = library_count,              \
    .check = library_check

const struct scheme scheme_minl2r = {
    .name = "minl2r",
    .what = "the library: data logging below half a block, then pointer logging",
    LIBRARY,
    .create = create_half,
};

const struct scheme scheme_minl2r_data = {
    .name = "minl2r-data",
    .what = "the library with data logging only",
    LIBRARY,
    .create = create_data,
};

const struct scheme scheme_minl2r_ptr = {
    .name = "minl2r-ptr",
    .what = "the library with pointer logging of every block",
    LIBRARY,
    .create = create_ptr,
};

const struct scheme scheme_minl2r_auto = {
    .name = "minl2r-auto",
    .what = "the library with pointer logging from where it is faster on the medium",
    LIBRARY,
    .is_calibrated = true,
    .create = create_auto,
};
