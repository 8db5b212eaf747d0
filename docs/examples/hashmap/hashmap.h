/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hashmap.h - a persistent hash map: keys and values of any size that the pool has in
 * one piece, each change atomic and durable when the call returns. One thread at a
 * time. Calls return 0 or a negative errno; -EUCLEAN: the map is damaged.
 */
#ifndef HASHMAP_H
#define HASHMAP_H

#include <minl2r.h>

#define HASHMAP_LAYOUT "hashmap-1"

struct hashmap {
    struct minl2r_pool *pool;
    const struct hashmap_root *root;
};

struct bytes {
    const void *data;
    size_t size;
};

/* Finds the map in `pool`; makes it in a new pool. */
int hashmap_open(struct hashmap *map, struct minl2r_pool *pool);

/* Inserts, or replaces the value. -ENOSPC: no room for a new node beside the old one.
 */
int hashmap_put(struct hashmap *map, struct bytes key, struct bytes value);

/* `value` points into the pool: valid until the map changes. -ENOENT: no such key. */
int hashmap_get(const struct hashmap *map, struct bytes key, struct bytes *value);

/* -ENOENT: no such key. */
int hashmap_delete(struct hashmap *map, struct bytes key);

uint64_t hashmap_count(const struct hashmap *map);

/* Calls `visit` for every key until it returns other than 0, which is then returned. */
typedef int hashmap_visit_fn(void *arg, struct bytes key, struct bytes value);
int hashmap_each(const struct hashmap *map, hashmap_visit_fn *visit, void *arg);

/* 0 if every key is where it is looked for and the count is right, else -EUCLEAN. */
int hashmap_check(const struct hashmap *map);

#endif
