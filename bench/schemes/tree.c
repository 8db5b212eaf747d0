/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/schemes/tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOT_SIZE ((uint32_t)sizeof(uint64_t))
#define SLACK_BLOCKS 8 /* inode, root, and what grows above it */

static const uint8_t zeros[4096];

/* ---- Parts of a volume ----------------------------------------------------------- */

static uint64_t divide_up(uint64_t number, uint64_t by)
{
    return (number + by - 1) / by;
}

/* Of `blocks` of data, with the nodes that lead to them. */
static uint64_t with_nodes(uint64_t blocks, uint32_t block_size)
{
    uint64_t sum = blocks;

    while (blocks > 1) {
        blocks = divide_up(blocks, block_size / SLOT_SIZE);
        sum += blocks + 1;
    }
    return sum;
}

static uint64_t log_blocks(const struct volume_options *options)
{
    return divide_up(options->log_size, options->block_size);
}

/* Twice what a write replaces: what was replaced may have to wait. A log may be of blocks
 * that lie beside it, so there is room for as many as it could have. */
static uint64_t part_blocks(const struct volume_options *options)
{
    uint64_t blocks = divide_up(options->file_size, options->block_size);
    uint64_t written = divide_up(options->write_size, options->block_size) + 1;

    return 2 * log_blocks(options) + with_nodes(blocks, options->block_size) +
           2 * with_nodes(written, options->block_size) + SLACK_BLOCKS;
}

static const struct pm_volume *tree_media(const struct volume *volume)
{
    return (const struct pm_volume *)(const void *)volume->trees->pm.base;
}

static uint64_t first_part(const struct volume_options *options)
{
    return divide_up(sizeof(struct pm_volume), options->block_size);
}

uint64_t tree_volume_size(const struct volume_options *options)
{
    return (first_part(options) + options->file_count * part_blocks(options)) *
           options->block_size;
}

static void place_part(struct file *file, const struct volume_options *options,
                       uint32_t number)
{
    uint64_t start = first_part(options) + number * part_blocks(options);

    file->log_offset = start * options->block_size;
    file->first_block = (start + log_blocks(options)) * options->block_size;
    file->end_block = (start + part_blocks(options)) * options->block_size;
}

/* ---- Mapping --------------------------------------------------------------------- */

static void unmake_file(struct file *file)
{
    for (uint32_t i = 0; i <= TREE_HEIGHT_MAX; i++)
        free(file->buffers[i]);
    free(file->blocks.free);
    free(file->blocks.freed);
}

static int make_file(struct volume *volume, uint32_t number)
{
    struct tree_volume *trees = volume->trees;
    struct file *file = &trees->files[number];
    bool ok = true;

    place_part(file, &volume->options, number);
    volume->files[number] = file;
    file->volume = volume;
    file->place = &tree_media(volume)->places[number];
    file->phase = (struct pm_phase){.pm = &trees->pm, .stats = &file->counts.stats};
    file->blocks.capacity = (file->end_block - file->first_block) / trees->block_size;
    file->blocks.free =
        memory_apart(file->blocks.capacity * sizeof(*file->blocks.free));
    file->blocks.freed =
        memory_apart(file->blocks.capacity * sizeof(*file->blocks.freed));
    for (uint32_t i = 0; i <= TREE_HEIGHT_MAX; i++) {
        file->buffers[i] = memory_apart(trees->block_size);
        ok = ok && file->buffers[i];
    }
    return ok && file->blocks.free && file->blocks.freed ? 0 : -ENOMEM;
}

static int map_path(struct volume *volume, const char *path, int flags)
{
    uint64_t size = tree_volume_size(&volume->options);
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    struct stat stat;

    if (fd < 0)
        return -errno;
    int rc = fstat(fd, &stat) < 0 ? -errno : 0;

    if (rc == 0 && (uint64_t)stat.st_size < size)
        rc = flags & O_CREAT ? -posix_fallocate(fd, 0, (off_t)size) : -EINVAL;
    if (rc == 0)
        rc = pm_map(&volume->trees->pm, fd, size, true);
    close(fd);
    return rc;
}

static int map_with(struct volume *volume, const char *path, int flags)
{
    const struct volume_options *options = &volume->options;

    assert(options->file_count <= VOLUME_FILES_MAX);
    volume->trees = memory_apart(sizeof(*volume->trees));
    if (!volume->trees)
        return -ENOMEM;
    volume->trees->block_size = options->block_size;
    volume->trees->block_shift = (uint32_t)__builtin_ctz(options->block_size);
    volume->trees->slot_shift =
        (uint32_t)__builtin_ctz(options->block_size / SLOT_SIZE);
    int rc = map_path(volume, path, flags);

    for (uint32_t i = 0; rc == 0 && i < options->file_count; i++)
        rc = make_file(volume, i);
    if (rc < 0)
        tree_unmap(volume);
    return rc;
}

int tree_map(struct volume *volume, const char *path)
{
    int rc = map_with(volume, path, 0);

    if (rc == 0 && tree_media(volume)->magic != PM_VOLUME_MAGIC) {
        tree_unmap(volume);
        rc = -EINVAL;
    }
    return rc;
}

void tree_unmap(struct volume *volume)
{
    for (uint32_t i = 0; i < volume->options.file_count; i++) {
        tree_fence(&volume->trees->files[i]); /* what no call has waited for */
        unmake_file(&volume->trees->files[i]);
    }
    pm_unmap(&volume->trees->pm);
    free(volume->trees);
    volume->trees = NULL;
}

/* Its inode, and a root without slots. */
static void make_empty(struct file *file)
{
    uint64_t inode = file->first_block;
    uint64_t root = inode + tree_of(file)->block_size;
    const struct pm_inode empty = {.root = tree_root_word(root, 1), .size = 0};

    tree_put_zeros(file, root, tree_of(file)->block_size);
    tree_put(file, inode, &empty, sizeof(empty));
    pm_store(&file->phase, &file->place->inode, &inode, sizeof(inode));
    pm_flush(&file->phase, &file->place->inode, sizeof(inode));
}

int tree_create(struct volume *volume, const char *path)
{
    const uint64_t magic = PM_VOLUME_MAGIC;
    int rc = map_with(volume, path, O_CREAT);

    if (rc < 0)
        return rc;
    struct pm_phase *phase = &volume->trees->files[0].phase;

    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++) {
        make_empty(volume->files[i]);
        rc = pm_fence(&volume->files[i]->phase);
    }
    pm_store(phase, &tree_media(volume)->magic, &magic, sizeof(magic));
    pm_flush(phase, &tree_media(volume)->magic, sizeof(magic));
    if (rc == 0)
        rc = pm_fence(phase); /* the files, then what says that they are there */
    tree_unmap(volume);
    return rc;
}

/* ---- Ranges ---------------------------------------------------------------------- */

struct piece tree_piece(const struct file *file, uint64_t offset, const void *src,
                        uint64_t size)
{
    uint32_t block_size = tree_of(file)->block_size;
    uint32_t at = (uint32_t)(offset & (block_size - 1));
    uint32_t room = block_size - at;

    return (struct piece){.index = offset >> tree_of(file)->block_shift,
                          .at = at,
                          .size = size < room ? (uint32_t)size : room,
                          .src = src};
}

bool tree_next_piece(const struct file *file, struct piece *piece, uint64_t end)
{
    uint64_t next = (piece->index + 1) << tree_of(file)->block_shift;

    if (next >= end)
        return false;
    *piece = tree_piece(file, next, piece->src + piece->size, end - next);
    return true;
}

uint32_t tree_used(const struct file *file, uint64_t index, uint64_t size)
{
    uint64_t start = index << tree_of(file)->block_shift;
    uint32_t block_size = tree_of(file)->block_size;

    if (size <= start)
        return 0;
    return size - start < block_size ? (uint32_t)(size - start) : block_size;
}

const uint64_t *tree_slot(const struct file *file, uint64_t index, uint32_t level)
{
    uint64_t node = file->root;

    for (uint32_t above = file->height; above > level; above--) {
        node = pm_load64(&tree_node(file, node)[tree_slot_number(file, index, above)]);
        if (!node)
            return NULL;
    }
    return tree_node(file, node) + tree_slot_number(file, index, level);
}

/* ---- Stores ---------------------------------------------------------------------- */

void tree_put(struct file *file, uint64_t offset, const void *src, uint64_t size)
{
    pm_store_nt(&file->phase, tree_at(file, offset), src, size);
}

void tree_put_zeros(struct file *file, uint64_t offset, uint64_t size)
{
    while (size > 0) {
        uint64_t part = size < sizeof(zeros) ? size : sizeof(zeros);

        tree_put(file, offset, zeros, part);
        offset += part;
        size -= part;
    }
}

static uintptr_t line_of(const uint64_t *word)
{
    return (uintptr_t)word / PM_LINE;
}

static void flush_word(struct file *file)
{
    pm_flush(&file->phase, file->word, sizeof(*file->word));
    file->word = NULL;
}

void tree_put_word(struct file *file, const uint64_t *word, uint64_t value)
{
    if (file->word && line_of(file->word) != line_of(word))
        flush_word(file);
    pm_store(&file->phase, word, &value, sizeof(value));
    file->word = word;
}

int tree_fence(struct file *file)
{
    if (file->word)
        flush_word(file);
    return pm_fence(&file->phase);
}

/* Streams lines [from, to) of the old block, or zeros. */
static void put_old(struct file *file, uint64_t offset, uint64_t old, uint32_t from,
                    uint32_t to)
{
    if (old && to > from)
        tree_put(file, offset + from, (const uint8_t *)tree_at(file, old) + from,
                 to - from);
    else if (to > from)
        tree_put_zeros(file, offset + from, to - from);
}

/* The line at `line` of the block, made of old bytes and the piece's. */
static void put_mixed_line(struct file *file, uint64_t offset, uint64_t old,
                           const struct piece *piece, uint32_t line)
{
    uint8_t bytes[PM_LINE] = {0};
    uint32_t from = piece->at > line ? piece->at : line;
    uint32_t end = piece->at + piece->size;
    uint32_t to = end < line + PM_LINE ? end : line + PM_LINE;

    if (old)
        memcpy(bytes, (const uint8_t *)tree_at(file, old) + line, PM_LINE);
    memcpy(bytes + (from - line), piece->src + (from - piece->at), to - from);
    tree_put(file, offset + line, bytes, PM_LINE);
}

void tree_put_block(struct file *file, uint64_t offset, uint64_t old,
                    const struct piece *piece, uint32_t used)
{
    const uint32_t mask = PM_LINE - 1;
    uint32_t end = piece->at + piece->size;
    uint32_t first = piece->at & ~mask, first_whole = (piece->at + mask) & ~mask;
    uint32_t last = (end + mask) & ~mask, last_whole = end & ~mask;
    uint32_t kept = used > end ? used : end;

    put_old(file, offset, old, 0, first);
    if (first < first_whole)
        put_mixed_line(file, offset, old, piece, first);
    if (first_whole < last_whole)
        tree_put(file, offset + first_whole, piece->src + (first_whole - piece->at),
                 last_whole - first_whole);
    if (last_whole < last && last_whole >= first_whole)
        put_mixed_line(file, offset, old, piece, last_whole);
    put_old(file, offset, old, last, (kept + mask) & ~mask);
    file->counts.copied_bytes += old ? kept - piece->size : 0;
}

/* ---- Blocks ---------------------------------------------------------------------- */

uint64_t tree_blocks_needed(const struct file *file, uint64_t offset, uint64_t size)
{
    uint64_t blocks = (size >> tree_of(file)->block_shift) + 2;
    uint64_t last = tree_last_index(file, offset + size);
    uint64_t needed = blocks + 1;

    for (uint32_t level = 1; level <= TREE_HEIGHT_MAX; level++) {
        blocks = (blocks >> tree_of(file)->slot_shift) + 2;
        if (level <= file->height || tree_node_number(file, last, level - 1) > 0)
            needed += blocks;
    }
    return needed;
}

uint64_t tree_alloc(struct file *file)
{
    assert(file->blocks.free_count > 0);
    return file->blocks.free[--file->blocks.free_count];
}

void tree_free(struct file *file, uint64_t block)
{
    assert(file->blocks.freed_count < file->blocks.capacity);
    file->blocks.freed[file->blocks.freed_count++] = block;
}

void tree_release(struct file *file, uint64_t count)
{
    struct tree_blocks *blocks = &file->blocks;

    for (uint64_t i = 0; i < count; i++)
        blocks->free[blocks->free_count++] = blocks->freed[i];
    blocks->freed_count -= count;
    memmove(blocks->freed, blocks->freed + count,
            blocks->freed_count * sizeof(*blocks->freed));
}

uint64_t tree_add_node(struct file *file)
{
    uint32_t size = tree_of(file)->block_size;
    uint64_t node = tree_alloc(file);

    pm_zero(&file->phase, tree_at(file, node), size);
    pm_flush(&file->phase, tree_at(file, node), size);
    return node;
}

/* ---- Reading a volume ------------------------------------------------------------ */

/* Marks what a file uses. */
struct walk {
    struct file *file;
    uint8_t *used; /* by block */
    bool repairs;  /* clears slots past the end, and flushes; else they are an error */
};

static int mark(struct walk *walk, uint64_t block)
{
    const struct file *file = walk->file;
    uint64_t size = tree_of(file)->block_size;

    if (block < file->first_block || block >= file->end_block || block % size != 0)
        return -EUCLEAN;
    uint8_t *used = &walk->used[(block - file->first_block) / size];

    if (*used)
        return -EUCLEAN;
    *used = 1;
    if (walk->repairs)
        pm_flush(&walk->file->phase, tree_at(file, block), size);
    return 0;
}

/* The slots of the node that is `number` of `level`. */
static int walk_node(struct walk *walk, uint64_t node, uint64_t number, uint32_t level)
{
    struct file *file = walk->file;
    uint32_t slot_shift = tree_of(file)->slot_shift;
    uint64_t last = tree_last_index(file, file->size);
    const uint64_t *slots = tree_node(file, node);
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < 1u << slot_shift; i++) {
        uint64_t first = ((number << slot_shift) + i) << (slot_shift * (level - 1));
        bool is_past = file->size == 0 || first > last;

        if (slots[i] && !is_past)
            rc = mark(walk, slots[i]);
        else if (slots[i] && walk->repairs)
            tree_put_word(file, &slots[i], 0);
        else if (slots[i])
            rc = -EUCLEAN;
    }
    return rc;
}

static int walk_tree(struct walk *walk)
{
    struct file *file = walk->file;
    uint64_t last = tree_last_index(file, file->size);
    int rc = mark(walk, file->place->inode);

    if (rc == 0)
        rc = mark(walk, file->root);
    for (uint32_t level = file->height; rc == 0 && level > 0; level--)
        for (uint64_t i = 0; rc == 0 && i <= tree_node_number(file, last, level); i++) {
            uint64_t index = i << (tree_of(file)->slot_shift * level);
            const uint64_t *slot =
                level == file->height ? &file->root : tree_slot(file, index, level + 1);

            if (slot && *slot)
                rc = walk_node(walk, *slot, i, level);
        }
    return rc;
}

/* What is not marked is free, the lowest on top. */
static void collect_free(struct file *file, const uint8_t *used)
{
    file->blocks.free_count = file->blocks.freed_count = 0;
    for (uint64_t i = file->blocks.capacity; i-- > 0;)
        if (!used[i])
            file->blocks.free[file->blocks.free_count++] =
                file->first_block + i * tree_of(file)->block_size;
}

/* Root, height and size as they are on media. */
static int load_inode(struct file *file)
{
    uint64_t block_size = tree_of(file)->block_size;
    uint64_t at = file->place->inode;

    if (at < file->first_block || at >= file->end_block || at % block_size != 0)
        return -EUCLEAN;
    file->inode = tree_at(file, at);
    file->root = file->inode->root & ~(block_size - 1);
    file->height = (uint32_t)(file->inode->root & (block_size - 1));
    file->size = file->inode->size;
    if (file->height < 1 || file->height > TREE_HEIGHT_MAX ||
        file->root < file->first_block || file->root >= file->end_block ||
        (file->size > 0 && !tree_covers(file, tree_last_index(file, file->size))))
        return -EUCLEAN;
    return 0;
}

int tree_load(struct file *file)
{
    struct walk walk = {.file = file, .repairs = true};
    int rc = load_inode(file);

    if (rc < 0)
        return rc;
    walk.used = calloc(file->blocks.capacity, 1);
    if (!walk.used)
        return -ENOMEM;
    pm_flush(&file->phase, file->place, sizeof(*file->place));
    rc = walk_tree(&walk);
    if (rc == 0)
        rc = tree_fence(file); /* what was found, then what relies on it */
    if (rc == 0)
        collect_free(file, walk.used);
    free(walk.used);
    return rc;
}

int tree_open(struct volume *volume, const char *path)
{
    int rc = tree_map(volume, path);

    if (rc < 0)
        return rc;
    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++)
        rc = tree_load(volume->files[i]);
    if (rc < 0)
        tree_unmap(volume);
    return rc;
}

/* Each block is used once, or free once. */
static int check_free(struct walk *walk)
{
    const struct tree_blocks *blocks = &walk->file->blocks;
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < blocks->free_count; i++)
        rc = mark(walk, blocks->free[i]);
    for (uint64_t i = 0; rc == 0 && i < blocks->freed_count; i++)
        rc = mark(walk, blocks->freed[i]);
    for (uint64_t i = 0; rc == 0 && i < blocks->capacity; i++)
        rc = walk->used[i] ? 0 : -EUCLEAN;
    return rc;
}

static int check_file(struct file *file)
{
    struct walk walk = {.file = file, .used = calloc(file->blocks.capacity, 1)};

    if (!walk.used)
        return -ENOMEM;
    int rc = file->inode->size == file->size &&
                     file->inode->root == tree_root_word(file->root, file->height)
                 ? walk_tree(&walk)
                 : -EUCLEAN;

    if (rc == 0)
        rc = check_free(&walk);
    free(walk.used);
    return rc;
}

int tree_check(struct volume *volume)
{
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < volume->options.file_count; i++)
        rc = check_file(volume->files[i]);
    return rc;
}

/* ---- Other calls ----------------------------------------------------------------- */

static void read_piece(const struct file *file, const struct piece *piece, uint8_t *dst)
{
    const uint64_t *slot = tree_slot(file, piece->index, 1);

    uint64_t block = slot ? pm_load64(slot) : 0;

    if (block)
        memcpy(dst, (const uint8_t *)tree_at(file, block) + piece->at, piece->size);
    else
        memset(dst, 0, piece->size);
}

int tree_read(struct file *file, uint64_t offset, void *dst, uint64_t size,
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

int tree_clear(struct file *file)
{
    struct scheme_counts before = file->counts;

    make_empty(file);
    int rc = tree_fence(file);

    if (rc == 0)
        rc = tree_load(file);
    file->counts = before;
    return rc;
}

uint64_t tree_size(const struct file *file)
{
    return file->size;
}

void tree_count(const struct volume *volume, struct scheme_counts *counts)
{
    *counts = (struct scheme_counts){0};
    for (uint32_t i = 0; i < volume->options.file_count; i++) {
        const struct scheme_counts *file = &volume->files[i]->counts;

        counts->stats.fences += file->stats.fences;
        counts->stats.lines_flushed += file->stats.lines_flushed;
        counts->stats.lines_streamed += file->stats.lines_streamed;
        counts->stats.log_payload_bytes += file->stats.log_payload_bytes;
        counts->stats.log_bytes += file->stats.log_bytes;
        counts->stats.pm_bytes += file->stats.pm_bytes;
        counts->copied_bytes += file->copied_bytes;
        counts->checkpoints += file->checkpoints;
    }
}
