/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/linear.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/trie.h"

static uint64_t blocks_in(const struct pmfs *fs, const struct inode *inode)
{
    return inode->place.pm->size >> fs->block_shift;
}

static int init_map(struct pmfs *fs, const struct inode *inode, struct map *map)
{
    return map_init(map, fs, &inode->place.pm->map, inode->place.ino);
}

static int block_at(struct map *map, uint64_t index, const void **block)
{
    int rc = map_block(map, index, block);

    if (rc == 0 && !*block)
        rc = fs_error(EUCLEAN, "directory %" PRIu64 ": block %" PRIu64 " is missing",
                      map->ino, index);
    return rc;
}

/* ---- As it is ------------------------------------------------------------------ */

int linear_find(struct pmfs *fs, const struct inode *inode, const struct name *name,
                struct dir_entry *entry)
{
    struct map map;
    int rc = init_map(fs, inode, &map);

    for (uint64_t i = 0; rc == 0 && i < blocks_in(fs, inode); i++) {
        rc = block_at(&map, i, &entry->block);
        if (rc == 0)
            rc = dirent_scan(fs, inode->place.ino, entry->block, 0, name, &entry->pm);
        if (rc == 0 && entry->pm)
            return 0;
    }
    return rc < 0 ? rc : -ENOENT;
}

int linear_check_empty(struct pmfs *fs, const struct inode *inode, bool *is_empty)
{
    const void *block;
    struct map map;
    int rc = init_map(fs, inode, &map);

    *is_empty = true;
    for (uint64_t i = 0; rc == 0 && *is_empty && i < blocks_in(fs, inode); i++) {
        rc = block_at(&map, i, &block);
        if (rc == 0)
            rc = dirent_check_empty(fs, inode->place.ino, block, 0, is_empty);
    }
    return rc;
}

/* A cookie is a place, in units of PM_DIRENT_UNIT. */
int linear_list(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
                dir_visit_fn *visit, void *arg)
{
    uint64_t first = (cookie - DIR_COOKIE_FIRST) * PM_DIRENT_UNIT;
    struct map map;
    int rc = init_map(fs, inode, &map);

    if (cookie - DIR_COOKIE_FIRST >= inode->place.pm->size / PM_DIRENT_UNIT)
        return rc;
    for (uint64_t i = first >> fs->block_shift; rc == 0 && i < blocks_in(fs, inode);
         i++) {
        uint64_t place = i << fs->block_shift;
        const struct pm_dirent *pm;
        const void *block;

        rc = block_at(&map, i, &block);
        for (uint32_t at = 0; rc == 0 && at < fs->block_size; at += pm->size) {
            pm = dirent_at(fs, block, at);
            if (!pm || (pm->ino && !dirent_has_good_name(pm)))
                return dirent_bad(fs, inode->place.ino, block, at);
            if (pm->ino && place + at >= first)
                rc = visit(arg, pm,
                           (place + at + pm->size) / PM_DIRENT_UNIT + DIR_COOKIE_FIRST);
        }
    }
    return rc;
}

/* ---- Converting ---------------------------------------------------------------- */

static int count_names(struct map *map, uint64_t block_count, uint64_t *count)
{
    const struct pm_dirent *pm;
    const void *block;

    *count = 0;
    for (uint64_t i = 0; i < block_count; i++) {
        int rc = block_at(map, i, &block);

        if (rc < 0)
            return rc;
        for (uint32_t at = 0; at < map->fs->block_size; at += pm->size) {
            pm = dirent_at(map->fs, block, at);
            if (!pm)
                return dirent_bad(map->fs, map->ino, block, at);
            *count += pm->ino != 0;
        }
    }
    return 0;
}

static int collect(struct map *map, uint64_t block_count, struct hashed *list)
{
    uint64_t count = 0;
    const void *block;
    int rc = 0;

    for (uint64_t i = 0; i < block_count && rc == 0; i++) {
        rc = block_at(map, i, &block);
        if (rc == 0)
            rc = dirent_collect(map->fs, map->ino, block, 0, list, &count);
    }
    dirent_sort(list, count);
    return rc;
}

/* Frees the blocks, which have no holes between them, and the nodes. */
static int free_map(struct map *map, struct minl2r_tx *tx, uint64_t block_count)
{
    const struct pmfs *fs = map->fs;
    const void *block;
    int rc = 0;

    for (uint64_t i = 0; i < block_count && rc == 0; i++) {
        rc = block_at(map, i, &block);
        if (rc == 0)
            rc = minl2r_tx_free(tx, minl2r_offset(fs->pool, block), 1);
        for (uint32_t level = 1; level <= map->height && rc == 0; level++) {
            if (i & (((uint64_t)1 << (fs->map_shift * level)) - 1))
                break;
            rc = minl2r_tx_free(tx, minl2r_offset(fs->pool, map->path[level]), 1);
        }
    }
    return fs_library_error(rc, "directory", map->ino);
}

/* Blocks and nodes of a map of `block_count` blocks without holes. */
static uint64_t blocks_of_map(const struct map *map, uint64_t block_count)
{
    uint64_t blocks = block_count;

    for (uint32_t level = 1; level <= map->height; level++)
        blocks += 1 + ((block_count - 1) >> (map->fs->map_shift * level));
    return blocks;
}

/* What the map is to have instead: nothing, or a trie. */
static int plant(struct minl2r_tx *tx, const struct map *map, const struct hashed *list,
                 uint64_t count, struct inode_head *head)
{
    const struct pm_map none = {0};
    struct trie trie = {.fs = map->fs, .pm = map->pm, .ino = map->ino};

    if (count > 0)
        return trie_plant(&trie, tx, list, count, dirent_room(map->fs), head);
    return fs_library_error(minl2r_tx_write(tx, map->pm, &none, sizeof(none)),
                            "directory", map->ino);
}

static int set_hashed(struct minl2r_tx *tx, const struct inode *inode)
{
    const struct pm_inode *pm = inode->place.pm;
    uint32_t flags = pm->flags | PM_INODE_HASHED;

    return fs_library_error(minl2r_tx_write(tx, &pm->flags, &flags, sizeof(flags)),
                            "directory", inode->place.ino);
}

static int queue(struct minl2r_tx *tx, const struct inode *inode, struct map *map,
                 uint64_t block_count, const struct hashed *list, uint64_t count)
{
    struct inode_head head = inode_head(inode);
    uint64_t freed = blocks_of_map(map, block_count);
    int rc = free_map(map, tx, block_count);

    head.size = 0;
    /* What the attributes have stays; it is the rest of the count. */
    head.blocks -= freed < head.blocks ? freed : head.blocks;
    if (rc == 0)
        rc = plant(tx, map, list, count, &head);
    if (rc == 0)
        rc = set_hashed(tx, inode);
    return rc < 0 ? rc : inode_set_head(tx, inode, &head);
}

static int convert(struct pmfs *fs, const struct inode *inode, struct map *map,
                   struct hashed *list, uint64_t count)
{
    uint64_t block_count = blocks_in(fs, inode);
    struct minl2r_tx *tx;
    int rc = collect(map, block_count, list);

    if (rc == 0)
        rc = fs_library_error(minl2r_tx_begin(fs->pool, &tx), "convert", map->ino);
    if (rc == 0)
        rc = fs_end(tx, queue(tx, inode, map, block_count, list, count));
    return rc;
}

/* Is there room for all of it anew, which may be half empty? */
static bool has_room(struct pmfs *fs, uint64_t block_count)
{
    struct minl2r_info info;

    return minl2r_pool_info(fs->pool, &info) == 0 &&
           info.blocks_free > info.blocks_spare + 2 * block_count;
}

int linear_convert(struct pmfs *fs, struct inode *inode)
{
    uint64_t block_count = blocks_in(fs, inode), count;
    struct map map;
    int rc = init_map(fs, inode, &map);

    if (rc < 0 || !linear_is(inode) || !has_room(fs, block_count))
        return rc;
    if (block_count == 0 && inode->place.pm->map.root)
        return fs_error(EUCLEAN, "directory %" PRIu64 ": blocks past its end", map.ino);
    rc = count_names(&map, block_count, &count);
    if (rc < 0)
        return rc;

    struct hashed *list = malloc((count + 1) * sizeof(*list));

    if (!list)
        return -ENOMEM;
    rc = convert(fs, inode, &map, list, count);
    free(list);
    return rc == -ENOSPC ? 0 : rc;
}
