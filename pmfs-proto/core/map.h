/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h - block maps: from the number of a block in a file to the slot that names it.
 *
 * A struct map is a view of one pm_map for the length of one call, by who holds the
 * lock of what the map belongs to. It remembers the path it walked last, so that
 * neighbours cost one step, and so that it finds the nodes that its own transaction has
 * added: these are not yet reachable on media. For that, indexes given to map_slot()
 * must not go down.
 */
#ifndef PMFS_MAP_H
#define PMFS_MAP_H

#include "pmfs-proto/core/fs.h"

/* Enough for 2^44 bytes in blocks of 512. */
#define MAP_HEIGHT_MAX 7

struct map {
    const struct pmfs *fs;
    const struct pm_map *pm;
    uint64_t ino;        /* for messages; 0: the inode table's own */
    uint64_t root;       /* as the transaction sees it */
    uint32_t height;     /* likewise */
    uint64_t added;      /* nodes and, by map_insert(), blocks that it has added */
    uint32_t path_low;   /* lowest level of `path` that is valid; above height: none */
    uint64_t path_index; /* an index that the path leads to */
    const uint64_t *path[MAP_HEIGHT_MAX + 1]; /* node per level; 1 is the lowest */
    uint64_t
        *added_node[MAP_HEIGHT_MAX + 1]; /* the same, if this transaction added it */
};

/* Begins a view. -EUCLEAN for a height that cannot be. */
int map_init(struct map *map, const struct pmfs *fs, const struct pm_map *pm,
             uint64_t ino);

/* The block at `index`, or NULL for a hole. */
int map_block(struct map *map, uint64_t index, const void **block);

/*
 * Makes the map high enough for `last_index`. Comes before the first map_slot(): the
 * slot of block 0 moves when the map gets its first node.
 */
int map_reserve(struct map *map, struct minl2r_tx *tx, uint64_t last_index);

/* The slot of `index`, with the nodes that lead to it. */
int map_slot(struct map *map, struct minl2r_tx *tx, uint64_t index,
             const uint64_t **slot);

/*
 * Gives `index`, a hole, a new block with zeroed memory at `*writable`. For maps whose
 * blocks never change place.
 */
int map_insert(struct map *map, struct minl2r_tx *tx, uint64_t index, void *writable);

/* Gives `index`, a hole, the allocated block at `offset`, which no map has. */
int map_put(struct map *map, struct minl2r_tx *tx, uint64_t index, uint64_t offset);

/* The index behind the last one that a map of this height can have. */
uint64_t map_end(const struct map *map);

/* The index behind the last one of the lowest node that has `index`. */
uint64_t map_node_end(const struct map *map, uint64_t index);

/* Are all indexes from `first` to `end` of one lowest node, as far as the map reaches?
 */
bool map_is_one_node(const struct map *map, uint64_t first, uint64_t end);

/* The first block or hole from `index` on; `end` if there is none below. */
enum map_wanted { MAP_BLOCK, MAP_HOLE };
int map_next(struct map *map, uint64_t index, uint64_t end, enum map_wanted wanted,
             uint64_t *found);

/*
 * Frees the blocks from `first` to `end`, which are of one lowest node, and the nodes
 * that become empty. Adds to `*freed`. The view is of no use afterwards. One call to a
 * transaction.
 */
int map_free(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t end,
             uint64_t *freed);

#endif
