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

/*
 * Frees blocks from the end, down to `first`: at most those of one lowest node, and the
 * nodes that become empty. Adds to `*freed`, and says in `*done` if nothing is left
 * from `first` on. The view is of no use afterwards. One call to a transaction.
 */
int map_cut(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t *freed,
            bool *done);

/* Does one map_cut() free all from `first` on, if the map holds `end` blocks at most?
 */
bool map_cut_is_small(const struct map *map, uint64_t first, uint64_t end);

#endif
