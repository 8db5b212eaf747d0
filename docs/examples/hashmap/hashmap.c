/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hashmap.c - linear hashing. A bucket is the head of a chain of nodes:
 *
 *   root.segments[] -> buckets -> node -> node -> 0
 *
 * The map grows by one bucket at a time, whose keys come from one other bucket, so that
 * growing is as small a transaction as any other. Buckets lie in segments, each as long
 * as all before it, and never move.
 *
 * A change is prepared where nobody sees it and takes effect by one link: a crash
 * leaves the map with the change or without.
 */
#include "hashmap.h"

#include <errno.h>
#include <string.h>

#define SEGMENT_COUNT 40
#define FIRST_BUCKETS 64 /* in segment 0, and in segment 1 */

/* In PM. Zeroed when the pool is new. */
struct hashmap_root {
    struct minl2r_slab slab;
    uint64_t count;                   /* keys */
    uint64_t bucket_count;            /* 0: no map yet */
    uint64_t segments[SEGMENT_COUNT]; /* offsets of arrays of buckets */
};

/* In PM. The key follows, then the value. */
struct node {
    uint64_t next; /* offset of the next node of the chain; 0: last */
    uint64_t hash;
    uint64_t key_size;
    uint64_t value_size;
};

static uint64_t hash_of(struct bytes key)
{
    const unsigned char *p = key.data;
    uint64_t hash = 0xcbf29ce484222325; /* FNV-1a */

    for (size_t i = 0; i < key.size; i++)
        hash = (hash ^ p[i]) * 0x100000001b3;
    return hash ^ hash >> 32; /* the low bits choose the bucket */
}

/* ---- From offsets to memory ------------------------------------------------------ */

static uint64_t node_size(uint64_t key_size, uint64_t value_size)
{
    return sizeof(struct node) + key_size + value_size;
}

static struct bytes node_key(const struct node *node)
{
    return (struct bytes){node + 1, node->key_size};
}

static struct bytes node_value(const struct node *node)
{
    return (struct bytes){(const char *)(node + 1) + node->key_size, node->value_size};
}

/* What is in a file may be damaged: NULL if no node can be at `offset`. */
static const struct node *node_at(const struct hashmap *map, uint64_t offset)
{
    const struct node *node = minl2r_at(map->pool, offset);

    if (!node || offset % 16 != 0 || node->key_size > MINL2R_POOL_SIZE_MAX ||
        node->value_size > MINL2R_POOL_SIZE_MAX ||
        !minl2r_at(map->pool, offset + node_size(node->key_size, node->value_size) - 1))
        return NULL;
    return node;
}

/* The segment of a bucket, and the first bucket of a segment. */
static unsigned segment_of(uint64_t bucket)
{
    unsigned segment = 0;

    while (bucket >= (uint64_t)FIRST_BUCKETS << segment)
        segment++;
    return segment;
}

static uint64_t segment_start(unsigned segment)
{
    return segment == 0 ? 0 : (uint64_t)FIRST_BUCKETS << (segment - 1);
}

/* NULL if its segment is damaged. */
static const uint64_t *bucket_at(const struct hashmap *map, uint64_t bucket)
{
    unsigned segment = segment_of(bucket);
    uint64_t offset = map->root->segments[segment];

    if (offset == 0 || offset % 16 != 0)
        return NULL;
    return minl2r_at(map->pool,
                     offset + (bucket - segment_start(segment)) * sizeof(uint64_t));
}

/* The highest power of two that is not above `n`. */
static uint64_t floor_power(uint64_t n)
{
    uint64_t power = 1;

    while (power <= n / 2)
        power *= 2;
    return power;
}

/* Buckets from floor_power(bucket_count) on have taken their keys from those below it.
 */
static uint64_t bucket_of(uint64_t hash, uint64_t bucket_count)
{
    uint64_t power = floor_power(bucket_count);
    uint64_t bucket = hash % (2 * power);

    return bucket < bucket_count ? bucket : hash % power;
}

/* ---- Looking up ------------------------------------------------------------------ */

/*
 * The link that names the node with `key`, or the chain's last link, which is 0. NULL
 * if the map is damaged: a chain that runs in a circle has more nodes than there are.
 */
static const uint64_t *find_link(const struct hashmap *map, struct bytes key,
                                 uint64_t hash)
{
    const uint64_t *link = bucket_at(map, bucket_of(hash, map->root->bucket_count));
    uint64_t nodes_left = map->root->count;

    while (link && *link != 0) {
        const struct node *node = node_at(map, *link);

        if (!node || nodes_left-- == 0)
            return NULL;
        if (node->hash == hash && node->key_size == key.size &&
            memcmp(node_key(node).data, key.data, key.size) == 0)
            break;
        link = &node->next;
    }
    return link;
}

int hashmap_get(const struct hashmap *map, struct bytes key, struct bytes *value)
{
    const uint64_t *link = find_link(map, key, hash_of(key));

    if (!link)
        return -EUCLEAN;
    if (*link == 0)
        return -ENOENT;
    *value = node_value(node_at(map, *link));
    return 0;
}

uint64_t hashmap_count(const struct hashmap *map)
{
    return map->root->count;
}

/* ---- Changing -------------------------------------------------------------------- */

static int write_word(struct minl2r_tx *tx, const uint64_t *word, uint64_t value)
{
    return minl2r_tx_write(tx, word, &value, sizeof(value));
}

/* Commits what was queued, or none of it if something could not be. */
static int end(struct minl2r_tx *tx, int rc)
{
    if (rc == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return rc;
}

/*
 * Allocates and fills a node. Nothing refers to it before this transaction is
 * committed, so its bytes need no log: they are written fresh.
 */
static int make_node(struct minl2r_tx *tx, const struct hashmap *map,
                     const struct node *header, const void *key, const void *value,
                     uint64_t *offset)
{
    int rc = minl2r_slab_alloc(tx, &map->root->slab,
                               node_size(header->key_size, header->value_size), offset);
    if (rc < 0)
        return rc;
    const struct node *node = minl2r_at(map->pool, *offset);
    const char *bytes = (const char *)(node + 1);

    rc = minl2r_tx_write_fresh(tx, node, header, sizeof(*header));
    if (rc == 0)
        rc = minl2r_tx_write_fresh(tx, bytes, key, header->key_size);
    if (rc == 0)
        rc = minl2r_tx_write_fresh(tx, bytes + header->key_size, value,
                                   header->value_size);
    return rc;
}

static int free_node(struct minl2r_tx *tx, const struct hashmap *map, uint64_t offset)
{
    const struct node *node = node_at(map, offset);

    return minl2r_slab_free(tx, &map->root->slab, offset,
                            node_size(node->key_size, node->value_size));
}

/* Puts a new node where `link` points: at the end of a chain, or in an old node's
 * place. */
static int queue_put(struct minl2r_tx *tx, const struct hashmap *map,
                     const uint64_t *link, uint64_t hash, struct bytes key,
                     struct bytes value)
{
    uint64_t old = *link, new;
    struct node header = {old ? node_at(map, old)->next : 0, hash, key.size,
                          value.size};
    int rc = make_node(tx, map, &header, key.data, value.data, &new);

    if (rc == 0)
        rc = write_word(tx, link, new);
    if (rc == 0 && old)
        rc = free_node(tx, map, old);
    if (rc == 0 && !old)
        rc = write_word(tx, &map->root->count, map->root->count + 1);
    return rc;
}

/* Adds the next bucket and moves to it what now belongs there. */
static int queue_split(struct minl2r_tx *tx, const struct hashmap *map)
{
    uint64_t new_bucket = map->root->bucket_count;
    uint64_t power = floor_power(new_bucket);
    const uint64_t *stay = bucket_at(map, new_bucket - power);
    const uint64_t *move = bucket_at(map, new_bucket);
    int rc = 0;

    if (!stay || !move)
        return -EUCLEAN;
    for (uint64_t offset = *stay; offset != 0 && rc == 0;) {
        const struct node *node = node_at(map, offset);
        if (!node)
            return -EUCLEAN;
        const uint64_t **tail = node->hash & power ? &move : &stay;

        rc = write_word(tx, *tail, offset);
        *tail = &node->next;
        offset = node->next;
    }
    if (rc == 0)
        rc = write_word(tx, stay, 0);
    if (rc == 0)
        rc = write_word(tx, move, 0);
    if (rc == 0)
        rc = write_word(tx, &map->root->bucket_count, new_bucket + 1);
    return rc;
}

/* The array for bucket `bucket_count` and those after it. */
static int queue_segment(struct minl2r_tx *tx, const struct hashmap *map)
{
    uint64_t bucket_count = map->root->bucket_count;
    uint64_t offset;
    int rc = minl2r_slab_alloc(tx, &map->root->slab, bucket_count * sizeof(uint64_t),
                               &offset);

    if (rc < 0)
        return rc;
    return write_word(tx, &map->root->segments[segment_of(bucket_count)], offset);
}

/* Grows while there are more keys than buckets. */
static int grow(struct hashmap *map)
{
    struct minl2r_tx *tx;
    unsigned segment = segment_of(map->root->bucket_count);
    int rc = 0;

    if (map->root->count <= map->root->bucket_count || segment == SEGMENT_COUNT)
        return 0;
    rc = minl2r_tx_begin(map->pool, &tx);
    if (rc < 0)
        return rc;
    if (map->root->segments[segment] == 0)
        return end(tx, queue_segment(tx, map));
    return end(tx, queue_split(tx, map));
}

int hashmap_put(struct hashmap *map, struct bytes key, struct bytes value)
{
    struct minl2r_tx *tx;
    uint64_t hash = hash_of(key);
    const uint64_t *link = find_link(map, key, hash);

    if (!link)
        return -EUCLEAN;
    int rc = minl2r_tx_begin(map->pool, &tx);
    if (rc < 0)
        return rc;
    rc = end(tx, queue_put(tx, map, link, hash, key, value));
    if (rc < 0)
        return rc;
    rc = grow(map);
    return rc == -ENOSPC ? 0 : rc; /* a map that could not grow is slower, not wrong */
}

int hashmap_delete(struct hashmap *map, struct bytes key)
{
    struct minl2r_tx *tx;
    const uint64_t *link = find_link(map, key, hash_of(key));

    if (!link)
        return -EUCLEAN;
    if (*link == 0)
        return -ENOENT;
    int rc = minl2r_tx_begin(map->pool, &tx);
    if (rc < 0)
        return rc;
    rc = write_word(tx, link, node_at(map, *link)->next);
    if (rc == 0)
        rc = free_node(tx, map, *link);
    if (rc == 0)
        rc = write_word(tx, &map->root->count, map->root->count - 1);
    return end(tx, rc);
}

static int queue_first_buckets(struct minl2r_tx *tx, const struct hashmap *map)
{
    size_t size = FIRST_BUCKETS * sizeof(uint64_t);
    uint64_t offset;
    int rc = minl2r_slab_alloc(tx, &map->root->slab, size, &offset);

    if (rc == 0)
        rc = minl2r_tx_zero(tx, minl2r_at(map->pool, offset), size);
    if (rc == 0)
        rc = write_word(tx, &map->root->segments[0], offset);
    if (rc == 0)
        rc = write_word(tx, &map->root->bucket_count, FIRST_BUCKETS);
    return rc;
}

int hashmap_open(struct hashmap *map, struct minl2r_pool *pool)
{
    struct minl2r_tx *tx;

    map->pool = pool;
    map->root = minl2r_root(pool, sizeof(*map->root));
    if (!map->root)
        return -errno;
    if (map->root->bucket_count > segment_start(SEGMENT_COUNT))
        return -EUCLEAN;
    if (map->root->bucket_count != 0)
        return 0;
    int rc = minl2r_tx_begin(pool, &tx);

    return rc < 0 ? rc : end(tx, queue_first_buckets(tx, map));
}

/* ---- Looking at all of it -------------------------------------------------------- */

typedef int visit_node_fn(void *arg, uint64_t bucket, const struct node *node);

static int each_node(const struct hashmap *map, visit_node_fn *visit, void *arg)
{
    uint64_t nodes_left = map->root->count;

    for (uint64_t i = 0; i < map->root->bucket_count; i++) {
        const uint64_t *link = bucket_at(map, i);

        while (link && *link != 0) {
            const struct node *node = node_at(map, *link);
            if (!node || nodes_left-- == 0)
                return -EUCLEAN;
            int rc = visit(arg, i, node);
            if (rc != 0)
                return rc;
            link = &node->next;
        }
        if (!link)
            return -EUCLEAN;
    }
    return 0;
}

struct visit {
    hashmap_visit_fn *fn;
    void *arg;
};

static int visit_pair(void *arg, uint64_t bucket, const struct node *node)
{
    const struct visit *visit = arg;

    (void)bucket;
    return visit->fn(visit->arg, node_key(node), node_value(node));
}

int hashmap_each(const struct hashmap *map, hashmap_visit_fn *fn, void *arg)
{
    struct visit visit = {fn, arg};

    return each_node(map, visit_pair, &visit);
}

struct check {
    const struct hashmap *map;
    uint64_t count;
};

static int check_node(void *arg, uint64_t bucket, const struct node *node)
{
    struct check *check = arg;

    check->count++;
    if (node->hash != hash_of(node_key(node)) ||
        bucket_of(node->hash, check->map->root->bucket_count) != bucket)
        return -EUCLEAN;
    return 0;
}

int hashmap_check(const struct hashmap *map)
{
    struct check check = {map, 0};
    int rc = each_node(map, check_node, &check);

    return rc == 0 && check.count != map->root->count ? -EUCLEAN : rc;
}
