/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/map.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

static uint32_t slots_per_node(const struct map *map)
{
    return 1u << map->fs->map_shift;
}

/* Which node of `level` leads to `index`, counted from the left. */
static uint64_t node_number(const struct map *map, uint64_t index, uint32_t level)
{
    return index >> (map->fs->map_shift * level);
}

static uint32_t slot_number(const struct map *map, uint64_t index, uint32_t level)
{
    return (uint32_t)node_number(map, index, level - 1) & (slots_per_node(map) - 1);
}

static bool covers(const struct map *map, uint64_t index)
{
    return node_number(map, index, map->height) == 0;
}

static int bad_pointer(const struct map *map, uint64_t offset)
{
    return fs_error(
        EUCLEAN, "inode %" PRIu64 ": block map: 0x%" PRIx64 " is no block of the pool",
        map->ino, offset);
}

static int node_at(const struct map *map, uint64_t offset, const uint64_t **node)
{
    *node = fs_block(map->fs, offset);
    return *node ? 0 : bad_pointer(map, offset);
}

int map_init(struct map *map, const struct pmfs *fs, const struct pm_map *pm,
             uint64_t ino)
{
    uint64_t height = pm->height;

    if (height > fs->map_height)
        return fs_error(EUCLEAN,
                        "inode %" PRIu64 ": block map: height %" PRIu64 " above %u",
                        ino, height, fs->map_height);
    map->fs = fs;
    map->pm = pm;
    map->ino = ino;
    map->root = pm->root;
    map->height = (uint32_t)height;
    map->added = 0;
    map->path_low = map->height + 1;
    map->path_index = 0;
    return 0;
}

static int library_error(const struct map *map, int rc)
{
    return fs_library_error(rc, "block map", map->ino);
}

/* A zeroed block of this transaction. */
static int add_block(struct map *map, struct minl2r_tx *tx, uint64_t *offset,
                     uint64_t **memory)
{
    int rc = minl2r_tx_alloc(tx, 1, offset, memory);

    if (rc < 0)
        return library_error(map, rc);
    memset(*memory, 0, map->fs->block_size);
    map->added++;
    return 0;
}

static int set_pm_map(struct map *map, struct minl2r_tx *tx)
{
    const struct pm_map pm = {.root = map->root, .height = map->height};

    return library_error(map, minl2r_tx_write(tx, map->pm, &pm, sizeof(pm)));
}

/* Puts `offset` into a slot of the node at `level` of the path; above the root: the
 * root. */
static int set_slot(struct map *map, struct minl2r_tx *tx, uint32_t level,
                    uint32_t number, uint64_t offset)
{
    if (level > map->height) {
        map->root = offset;
        return set_pm_map(map, tx);
    }
    if (map->added_node[level]) {
        map->added_node[level][number] = offset;
        return 0;
    }
    return library_error(
        map, minl2r_tx_write(tx, &map->path[level][number], &offset, sizeof(offset)));
}

/* The lowest node of the remembered path that leads to `index`; above height: none. */
static uint32_t path_level(const struct map *map, uint64_t index)
{
    uint32_t level = map->path_low;

    while (level <= map->height &&
           node_number(map, index, level) != node_number(map, map->path_index, level))
        level++;
    return level;
}

/*
 * Walks to the lowest node for `index`; map->path[1] is it then. Adds missing nodes if
 * there is a transaction, else answers with *found = false where one is missing.
 */
static int walk(struct map *map, struct minl2r_tx *tx, uint64_t index, bool *found)
{
    uint32_t level = path_level(map, index);

    map->path_low = level;
    map->path_index = index;
    while (level > 1) {
        bool at_root = level > map->height;
        uint32_t number = at_root ? 0 : slot_number(map, index, level);
        uint64_t offset = at_root ? map->root : map->path[level][number];
        uint64_t *added = NULL;
        int rc;

        if (!offset && !tx) {
            *found = false;
            return 0;
        }
        if (offset) {
            rc = node_at(map, offset, &map->path[level - 1]);
        } else {
            rc = add_block(map, tx, &offset, &added);
            if (rc == 0)
                rc = set_slot(map, tx, level, number, offset);
            map->path[level - 1] = added;
        }
        if (rc < 0)
            return rc;
        map->added_node[level - 1] = added;
        map->path_low = --level;
    }
    *found = true;
    return 0;
}

static int find_slot(struct map *map, uint64_t index, const uint64_t **slot)
{
    bool found = false;
    int rc = 0;

    *slot = NULL;
    if (!covers(map, index))
        return 0;
    if (map->height == 0) {
        *slot = &map->pm->root;
        return 0;
    }
    rc = walk(map, NULL, index, &found);
    if (rc == 0 && found)
        *slot = &map->path[1][slot_number(map, index, 1)];
    return rc;
}

int map_block(struct map *map, uint64_t index, const void **block)
{
    const uint64_t *slot;
    int rc = find_slot(map, index, &slot);

    *block = NULL;
    if (rc < 0 || !slot || !*slot)
        return rc;
    *block = fs_block(map->fs, *slot);
    return *block ? 0 : bad_pointer(map, *slot);
}

/* Puts a node above the root. */
static int raise_root(struct map *map, struct minl2r_tx *tx)
{
    uint64_t offset;
    uint64_t *node;
    int rc = add_block(map, tx, &offset, &node);

    if (rc < 0)
        return rc;
    node[0] = map->root;
    map->root = offset;
    map->height++;
    map->path[map->height] = node;
    map->added_node[map->height] = node;
    return 0;
}

int map_reserve(struct map *map, struct minl2r_tx *tx, uint64_t last_index)
{
    if (covers(map, last_index))
        return 0;

    uint32_t first_added = map->height + 1;

    while (!covers(map, last_index)) {
        int rc = 0;

        if (map->height == map->fs->map_height)
            return -EFBIG;
        if (map->root)
            rc = raise_root(map, tx);
        else
            map->height++;
        if (rc < 0)
            return rc;
    }
    map->path_low = map->root ? first_added : map->height + 1;
    map->path_index = 0;
    return set_pm_map(map, tx);
}

int map_slot(struct map *map, struct minl2r_tx *tx, uint64_t index,
             const uint64_t **slot)
{
    bool found;

    assert(covers(map, index));
    if (map->height == 0) {
        *slot = &map->pm->root;
        return 0;
    }
    assert(map->path_low > map->height || index >= map->path_index);
    int rc = walk(map, tx, index, &found);
    if (rc < 0)
        return rc;
    *slot = &map->path[1][slot_number(map, index, 1)];
    return 0;
}

int map_insert(struct map *map, struct minl2r_tx *tx, uint64_t index, void *writable)
{
    const uint64_t *slot = NULL;
    uint64_t *memory;
    uint64_t offset;
    int rc = map_reserve(map, tx, index);

    if (rc == 0)
        rc = map_slot(map, tx, index, &slot);
    if (rc != 0)
        return rc;
    if (*slot)
        return fs_error(
            EUCLEAN, "inode %" PRIu64 ": block map: block %" PRIu64 " is there already",
            map->ino, index);
    rc = add_block(map, tx, &offset, &memory);
    if (rc != 0)
        return rc;
    memcpy(writable, &memory, sizeof(memory));
    return set_slot(map, tx, 1, map->height ? slot_number(map, index, 1) : 0, offset);
}

/* ---- Cutting ------------------------------------------------------------------- */

/*
 * The rightmost path to something at or after `first`. Of the node at `level`, the
 * slots from `low` on are after `first` at least in part; `last` is the rightmost of
 * them that is not 0. The path ends at the level `end`, where it reaches a lowest node
 * or nothing is left.
 */
struct cut {
    struct map *map;
    struct minl2r_tx *tx;
    uint64_t freed; /* blocks */
    uint32_t end;
    bool left[MAP_HEIGHT_MAX + 1]; /* something is left between `low` and `last` */
    uint32_t low[MAP_HEIGHT_MAX + 1];
    uint32_t last[MAP_HEIGHT_MAX + 1];
    uint64_t offset[MAP_HEIGHT_MAX + 1]; /* of the node */
};

static bool last_used(const uint64_t *node, uint32_t low, uint32_t end, uint32_t *last)
{
    for (uint32_t i = end; i > low; i--) {
        if (node[i - 1]) {
            *last = i - 1;
            return true;
        }
    }
    return false;
}

static int cut_find(struct cut *cut, uint64_t first)
{
    struct map *map = cut->map;
    uint32_t level = map->height;
    uint64_t offset = map->root;
    bool on_edge = true; /* `first` lies below this node */

    for (;;) {
        const uint64_t *node;
        uint32_t low = on_edge ? slot_number(map, first, level) : 0;
        uint32_t ignored;
        int rc = node_at(map, offset, &node);

        if (rc < 0)
            return rc;
        map->path[level] = node;
        map->added_node[level] = NULL;
        cut->offset[level] = offset;
        cut->low[level] = low;
        cut->end = level;
        cut->left[level] = false;
        if (!last_used(node, low, slots_per_node(map), &cut->last[level]) || level == 1)
            return 0;
        cut->left[level] = last_used(node, low, cut->last[level], &ignored);
        on_edge = on_edge && cut->last[level] == low;
        offset = node[cut->last[level]];
        level--;
    }
}

static int cut_free(struct cut *cut, uint64_t offset, uint64_t count)
{
    if (!fs_block(cut->map->fs, offset))
        return bad_pointer(cut->map, offset);
    cut->freed += count;
    return library_error(cut->map, minl2r_tx_free(cut->tx, offset, count));
}

/* Frees what a lowest node names from `low` on, neighbours together. */
static int cut_free_data(struct cut *cut)
{
    const uint64_t *node = cut->map->path[1];
    uint64_t run = 0, count = 0;

    for (uint32_t i = cut->low[1]; i < slots_per_node(cut->map); i++) {
        if (!node[i])
            continue;
        if (count && node[i] == run + (count << cut->map->fs->block_shift)) {
            count++;
            continue;
        }
        if (count) {
            int rc = cut_free(cut, run, count);

            if (rc < 0)
                return rc;
        }
        run = node[i];
        count = 1;
    }
    return count ? cut_free(cut, run, count) : 0;
}

/* Frees the node where the path ends, and those above it that it leaves empty. */
static int cut_free_nodes(struct cut *cut)
{
    struct map *map = cut->map;
    uint32_t ignored;

    for (uint32_t level = cut->end;; level++) {
        int rc = cut_free(cut, cut->offset[level], 1);

        if (rc < 0)
            return rc;
        if (level == map->height) {
            map->root = 0;
            map->height = 0;
            return set_pm_map(map, cut->tx);
        }
        const uint64_t *parent = map->path[level + 1];
        uint32_t number = cut->last[level + 1];

        if (last_used(parent, 0, number, &ignored))
            return set_slot(map, cut->tx, level + 1, number, 0);
    }
}

/* Clears the slots from `low` on of a lowest node that stays. */
static int cut_clear_slots(struct cut *cut)
{
    const uint64_t *node = cut->map->path[1];
    uint32_t low = cut->low[1];
    uint32_t last;

    if (!last_used(node, low, slots_per_node(cut->map), &last))
        return 0;
    return library_error(cut->map, minl2r_tx_zero(cut->tx, &node[low],
                                                  (last + 1 - low) * sizeof(*node)));
}

static int cut_root(struct cut *cut)
{
    int rc = cut_free(cut, cut->map->root, 1);

    if (rc < 0)
        return rc;
    cut->map->root = 0;
    return set_pm_map(cut->map, cut->tx);
}

static bool cut_is_done(const struct cut *cut)
{
    bool left = false;

    for (uint32_t level = cut->end; level <= cut->map->height; level++)
        left = left || cut->left[level];
    return !left;
}

int map_cut(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t *freed,
            bool *done)
{
    struct cut cut = {.map = map, .tx = tx};
    int rc;

    *done = true;
    if (!map->root || !covers(map, first))
        return 0;
    if (map->height == 0) {
        rc = cut_root(&cut);
        *freed += cut.freed;
        return rc;
    }
    rc = cut_find(&cut, first);
    if (rc < 0)
        return rc;
    *done = cut_is_done(&cut);
    if (cut.end == 1)
        rc = cut_free_data(&cut);
    if (rc == 0 && cut.low[cut.end] == 0)
        rc = cut_free_nodes(&cut);
    else if (rc == 0 && cut.end == 1)
        rc = cut_clear_slots(&cut);
    *freed += cut.freed;
    return rc;
}

bool map_cut_is_small(const struct map *map, uint64_t first, uint64_t end)
{
    return map->height <= 1 || first >= end ||
           node_number(map, first, 1) == node_number(map, end - 1, 1);
}
