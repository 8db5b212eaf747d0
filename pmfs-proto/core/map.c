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

/* The slot of `index`, which has to be a hole. */
static int reserve_hole(struct map *map, struct minl2r_tx *tx, uint64_t index)
{
    const uint64_t *slot = NULL;
    int rc = map_reserve(map, tx, index);

    if (rc == 0)
        rc = map_slot(map, tx, index, &slot);
    if (rc == 0 && (map->height ? *slot : map->root))
        rc = fs_error(
            EUCLEAN, "inode %" PRIu64 ": block map: block %" PRIu64 " is there already",
            map->ino, index);
    return rc;
}

int map_put(struct map *map, struct minl2r_tx *tx, uint64_t index, uint64_t offset)
{
    int rc = reserve_hole(map, tx, index);

    return rc != 0 ? rc
                   : set_slot(map, tx, 1, map->height ? slot_number(map, index, 1) : 0,
                              offset);
}

int map_insert(struct map *map, struct minl2r_tx *tx, uint64_t index, void *writable)
{
    uint64_t *memory;
    uint64_t offset;
    int rc = reserve_hole(map, tx, index);

    if (rc == 0)
        rc = add_block(map, tx, &offset, &memory);
    if (rc != 0)
        return rc;
    memcpy(writable, &memory, sizeof(memory));
    return set_slot(map, tx, 1, map->height ? slot_number(map, index, 1) : 0, offset);
}

/* ---- Looking for blocks and holes ---------------------------------------------- */

uint64_t map_end(const struct map *map)
{
    return (uint64_t)1 << (map->fs->map_shift * map->height);
}

uint64_t map_node_end(const struct map *map, uint64_t index)
{
    return (node_number(map, index, 1) + 1) << map->fs->map_shift;
}

/* Where the hole ends that find_slot() has met at `index`: with the missing node. */
static uint64_t missing_end(const struct map *map, uint64_t index)
{
    if (!covers(map, index))
        return UINT64_MAX;

    uint32_t level = map->path_low - 1;

    return (node_number(map, index, level) + 1) << (map->fs->map_shift * level);
}

int map_next(struct map *map, uint64_t index, uint64_t end, enum map_wanted wanted,
             uint64_t *found)
{
    /* Blocks, or slots, that the pool can have: a damaged map could have more. */
    uint64_t steps = map->fs->block_count
                     << (wanted == MAP_HOLE ? 0 : map->fs->map_shift);

    while (index < end) {
        const uint64_t *slot;
        int rc = find_slot(map, index, &slot);

        if (rc == 0 && steps-- == 0)
            rc = fs_error(EUCLEAN, "inode %" PRIu64 ": block map: it has no end",
                          map->ino);
        if (rc < 0)
            return rc;
        if ((slot && *slot) == (wanted == MAP_BLOCK))
            break;
        index = slot ? index + 1 : missing_end(map, index);
    }
    *found = index < end ? index : end;
    return 0;
}

/* ---- Freeing ------------------------------------------------------------------- */

static int free_run(struct map *map, struct minl2r_tx *tx, uint64_t offset,
                    uint64_t count, uint64_t *freed)
{
    if (!fs_block(map->fs, offset))
        return bad_pointer(map, offset);
    *freed += count;
    return library_error(map, minl2r_tx_free(tx, offset, count));
}

/* Frees what the slots from `low` to `high` name, neighbours together. */
static int free_data(struct map *map, struct minl2r_tx *tx, uint32_t low, uint32_t high,
                     uint64_t *freed)
{
    const uint64_t *node = map->path[1];
    uint64_t run = 0, count = 0;
    int rc = 0;

    for (uint32_t i = low; i < high && rc == 0; i++) {
        if (!node[i])
            continue;
        if (count && node[i] == run + (count << map->fs->block_shift)) {
            count++;
            continue;
        }
        if (count)
            rc = free_run(map, tx, run, count, freed);
        run = node[i];
        count = 1;
    }
    return rc == 0 && count ? free_run(map, tx, run, count, freed) : rc;
}

/* Does a node name something outside the slots from `low` to `high`? */
static bool has_others(const struct map *map, uint32_t level, uint32_t low,
                       uint32_t high)
{
    const uint64_t *node = map->path[level];

    for (uint32_t i = 0; i < slots_per_node(map); i++) {
        if (node[i] && (i < low || i >= high))
            return true;
    }
    return false;
}

/* Clears the slots from `low` to `high` of a node that stays, but no empty ones at
 * either end. */
static int clear_slots(struct map *map, struct minl2r_tx *tx, uint32_t level,
                       uint32_t low, uint32_t high)
{
    const uint64_t *node = map->path[level];

    while (low < high && !node[high - 1])
        high--;
    while (low < high && !node[low])
        low++;
    if (low == high)
        return 0;
    return library_error(map,
                         minl2r_tx_zero(tx, &node[low], (high - low) * sizeof(*node)));
}

static int clear_root(struct map *map, struct minl2r_tx *tx)
{
    map->root = 0;
    map->height = 0;
    return set_pm_map(map, tx);
}

/* Frees a lowest node, all of whose slots are to go, and those above it that it leaves
 * empty. */
static int free_nodes(struct map *map, struct minl2r_tx *tx, uint64_t index,
                      uint64_t *freed)
{
    for (uint32_t level = 1;; level++) {
        uint64_t offset = minl2r_offset(map->fs->pool, map->path[level]);
        int rc = free_run(map, tx, offset, 1, freed);

        if (rc < 0)
            return rc;
        if (level == map->height)
            return clear_root(map, tx);

        uint32_t number = slot_number(map, index, level + 1);

        if (has_others(map, level + 1, number, number + 1))
            return clear_slots(map, tx, level + 1, number, number + 1);
    }
}

int map_free(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t end,
             uint64_t *freed)
{
    const uint64_t *slot;
    int rc = find_slot(map, first, &slot);

    if (end > map_end(map))
        end = map_end(map);
    if (rc < 0 || !slot || first >= end)
        return rc;
    if (map->height == 0) {
        if (!map->root)
            return 0;
        rc = free_run(map, tx, map->root, 1, freed);
        return rc < 0 ? rc : clear_root(map, tx);
    }
    assert(map_is_one_node(map, first, end));

    uint32_t low = slot_number(map, first, 1);
    uint32_t high = slot_number(map, end - 1, 1) + 1;

    rc = free_data(map, tx, low, high, freed);
    if (rc < 0)
        return rc;
    if (has_others(map, 1, low, high))
        return clear_slots(map, tx, 1, low, high);
    return free_nodes(map, tx, first, freed);
}

bool map_is_one_node(const struct map *map, uint64_t first, uint64_t end)
{
    return map->height <= 1 || first >= end ||
           node_number(map, first, 1) == node_number(map, end - 1, 1);
}
