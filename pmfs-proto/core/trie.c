/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/trie.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Slots that are written or read at once. */
#define SLOTS_AT_ONCE 32u

static uint32_t slots_per_node(const struct pmfs *fs)
{
    return 1u << fs->map_shift;
}

/* How many bits of a hash lie below those that a node at `level` looks at. */
static uint32_t bits_below(const struct pmfs *fs, uint32_t level)
{
    return 64 - (level + 1) * fs->map_shift;
}

static uint32_t slot_number(const struct pmfs *fs, uint64_t hash, uint32_t level)
{
    return (uint32_t)(hash >> bits_below(fs, level)) & (slots_per_node(fs) - 1);
}

/* No node separates names of one cell. */
static uint32_t height_max(const struct pmfs *fs)
{
    return DIRENT_CELL_BITS / fs->map_shift;
}

static int library_error(const struct trie *trie, int rc)
{
    return fs_library_error(rc, "directory", trie->ino);
}

/* ---- Finding ------------------------------------------------------------------- */

static int bad_slot(const struct trie *trie)
{
    return fs_error(EUCLEAN,
                    "directory %" PRIu64 ": 0x%" PRIx64 " can be no block here",
                    trie->ino, trie->slot);
}

int trie_find(struct trie *trie, const struct pmfs *fs, const struct pm_map *pm,
              uint64_t ino, uint64_t hash)
{
    trie->fs = fs;
    trie->pm = pm;
    trie->ino = ino;
    trie->height = 0;
    trie->block = NULL;
    trie->slot = pm->root;
    while (trie->slot & PM_DIR_NODE) {
        uint32_t level = trie->height;
        const uint64_t *node = fs_block(fs, trie->slot - PM_DIR_NODE);

        if (!node || level == height_max(fs))
            return bad_slot(trie);
        uint32_t number = slot_number(fs, hash, level);

        trie->way[level].node = node;
        trie->way[level].low = number;
        trie->way[level].high = number + 1;
        trie->slot = node[number];
        trie->height++;
    }
    if (trie->slot)
        trie->block = fs_block(fs, trie->slot);
    return trie->slot && !trie->block ? bad_slot(trie) : 0;
}

static bool all_are(const uint64_t *slots, uint32_t count, uint64_t value)
{
    for (uint32_t i = 0; i < count; i++) {
        if (slots[i] != value)
            return false;
    }
    return true;
}

/* A group is doubled as long as its other half is the same. */
void trie_widen(struct trie *trie)
{
    if (trie->height == 0)
        return;

    const uint64_t *node = trie->way[trie->height - 1].node;
    uint32_t low = trie->way[trie->height - 1].low, size = 1;

    while (size < slots_per_node(trie->fs) &&
           all_are(&node[low ^ size], size, trie->slot)) {
        low &= ~size;
        size *= 2;
    }
    trie->way[trie->height - 1].low = low;
    trie->way[trie->height - 1].high = low + size;
}

uint64_t trie_first(const struct trie *trie)
{
    uint64_t first = 0;

    for (uint32_t level = 0; level < trie->height; level++)
        first |= (uint64_t)trie->way[level].low << bits_below(trie->fs, level);
    return first;
}

uint64_t trie_last(const struct trie *trie)
{
    if (trie->height == 0)
        return UINT64_MAX;

    uint32_t level = trie->height - 1;
    uint64_t slots = trie->way[level].high - trie->way[level].low;

    return trie_first(trie) + (slots << bits_below(trie->fs, level)) - 1;
}

/* Between two names there are at most the slots behind the first in the nodes on the
 * way to it, and those before the second. */
static uint32_t gap_max(const struct pmfs *fs)
{
    return 2 * height_max(fs) * slots_per_node(fs);
}

int trie_next(const struct trie *trie, bool has_names, uint32_t *gap, uint64_t *hash)
{
    *gap = has_names ? 0 : *gap + 1;
    if (*gap > gap_max(trie->fs))
        return fs_error(EUCLEAN, "directory %" PRIu64 ": nodes that lead to no names",
                        trie->ino);
    *hash = trie_last(trie) + 1;
    return 0;
}

/* ---- Planting ------------------------------------------------------------------ */

/* Entries, and the group that is to lead to them. */
struct plot {
    const uint64_t *node; /* NULL: the root's slot */
    uint64_t *added;      /* the same, if this transaction added it */
    uint32_t level;       /* of the node */
    uint32_t low, high;   /* slots */
    uint64_t begin, end;  /* in the list */
};

/*
 * What is still to be planted. Each step takes one and adds two halves at most, so no
 * more wait than a hash has bits.
 */
struct planting {
    struct trie *trie;
    struct minl2r_tx *tx;
    const struct hashed *list;
    struct inode_head *head;
    uint32_t waiting;
    struct plot plots[DIRENT_HASH_BITS + 2];
};

static uint64_t size_of(const struct planting *planting, const struct plot *plot)
{
    uint64_t size = 0;

    for (uint64_t i = plot->begin; i < plot->end; i++)
        size += dirent_size(planting->list[i].pm->name_size);
    return size;
}

static int set_root(const struct trie *trie, struct minl2r_tx *tx, uint64_t root)
{
    const struct pm_map pm = {.root = root};

    return library_error(trie, minl2r_tx_write(tx, trie->pm, &pm, sizeof(pm)));
}

/* Lets all slots of a group be the same. */
static int set_group(struct planting *planting, const struct plot *plot, uint64_t value)
{
    uint64_t values[SLOTS_AT_ONCE];
    int rc = 0;

    if (!plot->node)
        return set_root(planting->trie, planting->tx, value);
    for (uint32_t i = 0; i < SLOTS_AT_ONCE; i++)
        values[i] = value;
    for (uint32_t i = plot->low, count; i < plot->high && rc == 0; i += count) {
        count = plot->high - i < SLOTS_AT_ONCE ? plot->high - i : SLOTS_AT_ONCE;
        if (plot->added)
            memcpy(&plot->added[i], values, count * sizeof(*values));
        else
            rc = minl2r_tx_write(planting->tx, &plot->node[i], values,
                                 count * sizeof(*values));
    }
    return library_error(planting->trie, rc);
}

static int add_block(struct planting *planting, uint64_t *offset, void *memory)
{
    int rc = minl2r_tx_alloc(planting->tx, 1, offset, memory);

    planting->head->blocks += rc == 0;
    return library_error(planting->trie, rc);
}

static int plant_block(struct planting *planting, const struct plot *plot)
{
    const struct pmfs *fs = planting->trie->fs;
    uint64_t offset;
    uint8_t *memory;
    int rc = add_block(planting, &offset, &memory);

    if (rc < 0)
        return rc;
    dirent_fill(fs, memory, planting->list + plot->begin, plot->end - plot->begin);
    planting->head->size += fs->block_size;
    return set_group(planting, plot, offset);
}

static void push(struct planting *planting, struct plot plot)
{
    assert(planting->waiting < sizeof(planting->plots) / sizeof(*planting->plots));
    planting->plots[planting->waiting++] = plot;
}

/* A group of one slot gets a node. */
static int plant_node(struct planting *planting, const struct plot *plot)
{
    const struct pmfs *fs = planting->trie->fs;
    struct plot below = *plot;
    uint64_t offset;

    below.level = plot->node ? plot->level + 1 : 0;
    if (below.level == height_max(fs))
        return fs_error(ENOSPC,
                        "directory %" PRIu64 ": too many names with the same hash",
                        planting->trie->ino);
    int rc = add_block(planting, &offset, &below.added);
    if (rc < 0)
        return rc;
    memset(below.added, 0, fs->block_size);
    below.node = below.added;
    below.low = 0;
    below.high = slots_per_node(fs);
    push(planting, below);
    return set_group(planting, plot, offset | PM_DIR_NODE);
}

static void halve(struct planting *planting, const struct plot *plot)
{
    const struct pmfs *fs = planting->trie->fs;
    struct plot lower = *plot, upper = *plot;
    uint32_t middle = plot->low + (plot->high - plot->low) / 2;
    uint64_t at = plot->begin;

    while (at < plot->end &&
           slot_number(fs, planting->list[at].hash, plot->level) < middle)
        at++;
    lower.high = upper.low = middle;
    lower.end = upper.begin = at;
    push(planting, upper);
    push(planting, lower);
}

static int plant(struct planting *planting, const struct plot *plot, uint32_t limit)
{
    if (plot->begin == plot->end)
        return set_group(planting, plot, 0);
    if (size_of(planting, plot) <= limit)
        return plant_block(planting, plot);
    if (plot->high - plot->low == 1)
        return plant_node(planting, plot);
    halve(planting, plot);
    return 0;
}

/* The group that a trie has found. */
static struct plot plot_of(const struct trie *trie, uint64_t count)
{
    struct plot plot = {.low = 0, .high = 1, .end = count};

    if (trie->height > 0) {
        plot.level = trie->height - 1;
        plot.node = trie->way[plot.level].node;
        plot.low = trie->way[plot.level].low;
        plot.high = trie->way[plot.level].high;
    }
    return plot;
}

int trie_plant(struct trie *trie, struct minl2r_tx *tx, const struct hashed *list,
               uint64_t count, uint32_t limit, struct inode_head *head)
{
    struct planting *planting = malloc(sizeof(*planting));
    int rc = 0;

    if (!planting)
        return -ENOMEM;
    planting->trie = trie;
    planting->tx = tx;
    planting->list = list;
    planting->head = head;
    planting->waiting = 0;
    push(planting, plot_of(trie, count));
    while (planting->waiting > 0 && rc == 0) {
        struct plot plot = planting->plots[--planting->waiting];

        rc = plant(planting, &plot, limit);
        limit = dirent_room(trie->fs);
    }
    free(planting);
    return rc;
}

/* ---- Freeing ------------------------------------------------------------------- */

/* Counts in what a damaged medium may have too low. */
static int free_block(const struct trie *trie, struct minl2r_tx *tx, uint64_t offset,
                      struct inode_head *head)
{
    head->blocks -= head->blocks > 0;
    if (head->size >= trie->fs->block_size)
        head->size -= trie->fs->block_size;
    return library_error(trie, minl2r_tx_free(tx, offset, 1));
}

static int free_node(const struct trie *trie, struct minl2r_tx *tx,
                     const uint64_t *node, struct inode_head *head)
{
    head->blocks -= head->blocks > 0;
    return library_error(trie,
                         minl2r_tx_free(tx, minl2r_offset(trie->fs->pool, node), 1));
}

bool trie_has_twin(const struct trie *trie, uint64_t *twin)
{
    if (trie->height == 0)
        return false;

    const uint64_t *node = trie->way[trie->height - 1].node;
    uint32_t low = trie->way[trie->height - 1].low;
    uint32_t size = trie->way[trie->height - 1].high - low;

    if (size == slots_per_node(trie->fs))
        return false;
    *twin = node[low ^ size];
    return !(*twin & PM_DIR_NODE) && all_are(&node[low ^ size], size, *twin);
}

/*
 * A group that is all of a node takes that one's place. Answers with the node, or NULL.
 */
static const uint64_t *double_group(struct trie *trie)
{
    uint32_t level = trie->height - 1;
    uint32_t size = trie->way[level].high - trie->way[level].low;

    trie->way[level].low &= ~size;
    trie->way[level].high = trie->way[level].low + 2 * size;
    if (2 * size < slots_per_node(trie->fs))
        return NULL;
    trie->height--;
    return trie->way[level].node;
}

int trie_join(struct trie *trie, struct minl2r_tx *tx, uint64_t twin,
              const struct hashed *list, uint64_t count, struct inode_head *head)
{
    const uint64_t *node = double_group(trie);
    int rc = trie_plant(trie, tx, list, count, dirent_room(trie->fs), head);

    if (rc == 0)
        rc = free_block(trie, tx, trie->slot, head);
    if (rc == 0 && twin)
        rc = free_block(trie, tx, twin, head);
    if (rc == 0 && node)
        rc = free_node(trie, tx, node, head);
    return rc;
}

/*
 * Does a node name something outside the group? As the transaction sees it: it may have
 * put a name there.
 */
static int has_others(const struct trie *trie, struct minl2r_tx *tx, uint32_t level,
                      bool *result)
{
    uint32_t low = trie->way[level].low, high = trie->way[level].high;
    uint64_t slots[SLOTS_AT_ONCE];

    *result = false;
    for (uint32_t i = 0; i < slots_per_node(trie->fs); i += SLOTS_AT_ONCE) {
        int rc = minl2r_tx_read(tx, slots, &trie->way[level].node[i], sizeof(slots));

        if (rc < 0)
            return library_error(trie, rc);
        for (uint32_t j = 0; j < SLOTS_AT_ONCE; j++)
            *result |= slots[j] && (i + j < low || i + j >= high);
        if (*result)
            break;
    }
    return 0;
}

static int clear_group(const struct trie *trie, struct minl2r_tx *tx, uint32_t level)
{
    uint32_t low = trie->way[level].low, high = trie->way[level].high;

    return library_error(trie, minl2r_tx_zero(tx, &trie->way[level].node[low],
                                              (high - low) * sizeof(uint64_t)));
}

int trie_clear(struct trie *trie, struct minl2r_tx *tx, struct inode_head *head)
{
    int rc = free_block(trie, tx, trie->slot, head);

    for (uint32_t level = trie->height; rc == 0 && level-- > 0;) {
        bool others;

        rc = has_others(trie, tx, level, &others);
        if (rc == 0 && others)
            return clear_group(trie, tx, level);
        if (rc == 0)
            rc = free_node(trie, tx, trie->way[level].node, head);
    }
    return rc < 0 ? rc : set_root(trie, tx, 0);
}
