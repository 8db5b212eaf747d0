/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/table.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pmfs-proto/core/map.h"

/* What a map of inodes can hold, whatever the block size. */
#define INODE_COUNT_MAX ((uint64_t)1 << 36)

struct inode_table {
    pthread_rwlock_t grow_lock; /* the two maps, inode_count */
    struct numbers *numbers;
    uint32_t per_block; /* inodes */
};

/* ---- Places -------------------------------------------------------------------- */

/* Who wants a place reads it: let it come while the state is looked for. */
static void prefetch_inode(const struct pm_inode *pm)
{
    __builtin_prefetch(&pm->size);
    __builtin_prefetch(&pm->atime_ns);
}

/* With grow_lock held. NULL in place->pm where the block of the inode is still missing.
 */
static int find_place(struct pmfs *fs, uint64_t ino, struct inode_place *place)
{
    uint32_t per_block = fs->block_size / PM_INODE_SIZE;
    const void *block;
    struct map map;
    int rc = map_init(&map, fs, &fs->pm->inodes, 0);

    if (rc == 0)
        rc = map_block(&map, ino / per_block, &block);
    if (rc != 0)
        return rc;
    place->ino = ino;
    place->pm = block ? (const struct pm_inode *)block + ino % per_block : NULL;
    if (place->pm)
        prefetch_inode(place->pm);
    rc = map_init(&map, fs, &fs->pm->states, 0);
    if (rc == 0)
        rc = map_block(&map, ino >> fs->block_shift, &block);
    if (rc == 0 && !block)
        rc = fs_error(EUCLEAN, "inode table: no states for inode %" PRIu64, ino);
    if (rc < 0)
        return rc;
    place->state = (const uint8_t *)block + (ino & (fs->block_size - 1));
    __builtin_prefetch(place->state);
    return 0;
}

int table_locate(struct pmfs *fs, uint64_t ino, struct inode_place *place)
{
    pthread_rwlock_rdlock(&fs->table->grow_lock);
    int rc = find_place(fs, ino, place);
    pthread_rwlock_unlock(&fs->table->grow_lock);

    if (rc == 0 && !place->pm)
        rc = fs_error(EUCLEAN, "inode table: no block for inode %" PRIu64, ino);
    return rc;
}

/* ---- Numbers ------------------------------------------------------------------- */

/*
 * With the lock of the shard that the inode is in, if it is cached: whoever made or
 * freed it since had that lock after he said so here.
 */
bool table_is_used(struct pmfs *fs, uint64_t ino)
{
    return numbers_is_used(fs->table->numbers, ino);
}

void table_unuse(struct pmfs *fs, uint64_t ino)
{
    numbers_unuse(fs->table->numbers, ino);
}

void table_free_number(struct pmfs *fs, uint64_t ino)
{
    numbers_free(fs->table->numbers, ino);
}

uint64_t table_end(struct pmfs *fs)
{
    return numbers_end(fs->table->numbers);
}

uint64_t table_used(struct pmfs *fs)
{
    return numbers_count_used(fs->table->numbers);
}

uint64_t table_free(struct pmfs *fs)
{
    return numbers_count_free(fs->table->numbers);
}

/* ---- Shrinking ----------------------------------------------------------------- */

/*
 * New inodes in place of these must have other generations. Generations go round, so
 * the higher of two is the one that is less than half a round ahead.
 */
static uint64_t base_after(const struct pmfs *fs, const struct pm_inode *inodes)
{
    uint32_t base = (uint32_t)fs->pm->generation_base;

    for (uint32_t i = 0; i < fs->table->per_block; i++) {
        if ((int32_t)(inodes[i].generation - base) > 0)
            base = inodes[i].generation;
    }
    return base;
}

static int queue_shrink(struct pmfs *fs, struct minl2r_tx *tx, uint64_t index)
{
    const void *block = NULL;
    uint64_t base, freed = 0;
    struct map map;
    int rc = map_init(&map, fs, &fs->pm->inodes, 0);

    if (rc == 0)
        rc = map_block(&map, index, &block);
    if (rc < 0)
        return rc;
    if (!block)
        return fs_error(EUCLEAN, "inode table: a block is missing");
    base = base_after(fs, block);
    rc = map_free(&map, tx, index, index + 1, &freed);
    if (rc == 0 && base != fs->pm->generation_base)
        rc = fs_library_error(
            minl2r_tx_write(tx, &fs->pm->generation_base, &base, sizeof(base)),
            "inode table", 0);
    return rc;
}

static int shrink(struct pmfs *fs, uint64_t first)
{
    struct minl2r_tx *tx;
    int rc;

    pthread_rwlock_wrlock(&fs->table->grow_lock);
    rc = minl2r_tx_begin(fs->pool, &tx);
    if (rc == 0)
        rc = fs_end(tx, queue_shrink(fs, tx, first / fs->table->per_block));
    pthread_rwlock_unlock(&fs->table->grow_lock);
    numbers_free_block(fs->table->numbers, first, rc < 0);
    return rc;
}

void table_shrink(struct pmfs *fs)
{
    struct numbers *numbers = fs->table->numbers;
    uint64_t end = UINT64_MAX;
    int rc = 0;

    if (numbers_empty_blocks(numbers) <= (uint64_t)2 * fs->spare_inode_blocks)
        return;
    while (rc == 0 && numbers_empty_blocks(numbers) > fs->spare_inode_blocks &&
           numbers_take_block(numbers, &end))
        rc = shrink(fs, end);
}

/* ---- Growing ------------------------------------------------------------------- */

/* Adds a block of states, all free, and takes its first number. With grow_lock for
 * writing. */
static int add_states(struct pmfs *fs, struct minl2r_tx *tx, struct table_claim *claim)
{
    uint64_t count = fs->pm->inode_count;
    uint64_t new_count = count + fs->block_size;
    uint8_t *states;
    struct map map;
    int rc = new_count > INODE_COUNT_MAX ? -ENOSPC : 0;

    if (rc == 0)
        rc = numbers_reserve(fs->table->numbers, new_count);
    if (rc == 0)
        rc = map_init(&map, fs, &fs->pm->states, 0);
    if (rc == 0)
        rc = map_insert(&map, tx, count >> fs->block_shift, &states);
    if (rc == 0)
        rc = fs_library_error(
            minl2r_tx_write(tx, &fs->pm->inode_count, &new_count, sizeof(new_count)),
            "inode table", 0);
    if (rc != 0)
        return rc;
    claim->new_count = new_count;
    claim->place.ino = count;
    claim->place.state = states;
    return 0;
}

/* Adds the block of the claimed inode, unless it is there. With grow_lock for writing.
 */
static int add_inodes(struct pmfs *fs, struct minl2r_tx *tx, struct table_claim *claim)
{
    uint32_t per_block = fs->table->per_block;
    uint64_t index = claim->place.ino / per_block;
    struct pm_inode *inodes;
    const void *block;
    struct map map;
    int rc = map_init(&map, fs, &fs->pm->inodes, 0);

    if (rc == 0)
        rc = map_block(&map, index, &block);
    if (rc == 0 && !block) {
        rc = map_insert(&map, tx, index, &inodes);
        for (uint32_t i = 0; rc == 0 && i < per_block; i++)
            inodes[i].generation = (uint32_t)fs->pm->generation_base;
        block = inodes;
    }
    if (rc == 0)
        claim->place.pm = (const struct pm_inode *)block + claim->place.ino % per_block;
    return rc;
}

static int grow(struct pmfs *fs, struct minl2r_tx *tx, struct table_claim *claim)
{
    int rc = 0;

    pthread_rwlock_wrlock(&fs->table->grow_lock);
    claim->grows = true;
    if (!claim->place.ino) /* another thread may have grown it meanwhile */
        numbers_take(fs->table->numbers, &claim->place);
    if (!claim->place.ino)
        rc = add_states(fs, tx, claim);
    else
        rc = find_place(fs, claim->place.ino, &claim->place);
    if (rc == 0)
        rc = add_inodes(fs, tx, claim);
    return rc;
}

/*
 * Of a number just taken: its place, and the next ones of its block need not be found.
 */
static int find_taken(struct pmfs *fs, struct inode_place *place)
{
    pthread_rwlock_rdlock(&fs->table->grow_lock);
    int rc = find_place(fs, place->ino, place);
    pthread_rwlock_unlock(&fs->table->grow_lock);

    if (rc == 0 && place->pm)
        numbers_remember(fs->table->numbers, place);
    return rc;
}

int table_take(struct pmfs *fs, struct minl2r_tx *tx, struct table_claim *claim)
{
    struct inode_place *place = &claim->place;
    int rc = 0;

    *claim = (struct table_claim){.grows = false};
    if (numbers_take(fs->table->numbers, place) && !place->pm)
        rc = find_taken(fs, place);
    else if (place->pm)
        prefetch_inode(place->pm);
    if (rc == 0 && !place->pm)
        rc = grow(fs, tx, claim);
    if (rc < 0)
        table_give_back(fs, claim);
    return rc;
}

void table_keep(struct pmfs *fs, const struct table_claim *claim)
{
    struct inode_table *table = fs->table;

    if (claim->new_count)
        numbers_add(table->numbers, claim->new_count, claim->place.ino);
    numbers_use(table->numbers, claim->place.ino, claim->grows);
    if (claim->grows)
        pthread_rwlock_unlock(&table->grow_lock);
}

void table_give_back(struct pmfs *fs, const struct table_claim *claim)
{
    if (claim->place.ino && !claim->new_count)
        table_free_number(fs, claim->place.ino);
    if (claim->grows)
        pthread_rwlock_unlock(&fs->table->grow_lock);
}

/* ---- Life ---------------------------------------------------------------------- */

/* One bit for each of eight states, set where it is not free. */
static uint64_t used_bits(const uint8_t *states)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;
    uint64_t eight;

    memcpy(&eight, states, sizeof(eight));
    eight |= (eight & low) + low;
    eight = (eight & ~low) >> 7;
    return eight * 0x0102040810204080u >> 56; /* lowest bits of the bytes, together */
}

static void read_states(struct numbers *numbers, const uint8_t *states, uint64_t first,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 64) {
        uint64_t used = 0;

        for (uint32_t bit = 0; bit < 64; bit += 8)
            used |= used_bits(states + i + bit) << bit;
        numbers_load(numbers, first + i, used);
    }
}

/* Which blocks of inodes are there: those in use, and of the others the map tells. */
static int find_blocks(struct pmfs *fs, struct inode_table *table)
{
    uint64_t count = fs->pm->inode_count;
    struct map map;
    int rc = map_init(&map, fs, &fs->pm->inodes, 0);

    for (uint64_t ino = 0; rc == 0 && ino < count; ino += table->per_block) {
        bool is_there = !numbers_is_block_empty(table->numbers, ino);
        const void *block;

        if (!is_there) {
            rc = map_block(&map, ino / table->per_block, &block);
            is_there = rc == 0 && block;
        }
        if (is_there)
            numbers_load_block(table->numbers, ino);
    }
    if (rc == 0)
        numbers_loaded(table->numbers);
    return rc;
}

static int read_table(struct pmfs *fs, struct inode_table *table)
{
    uint64_t count = fs->pm->inode_count;
    struct map map;
    int rc;

    if (count == 0 || count > INODE_COUNT_MAX || count % fs->block_size ||
        count >> fs->block_shift > fs->block_count)
        return fs_error(EUCLEAN, "superblock: %" PRIu64 " inodes", count);
    rc = map_init(&map, fs, &fs->pm->states, 0);
    if (rc == 0 && numbers_reserve(table->numbers, count) < 0)
        rc = fs_error(ENOMEM, "out of memory");
    if (rc != 0)
        return rc;
    numbers_add(table->numbers, count, 0);
    for (uint64_t first = 0; first < count; first += fs->block_size) {
        const void *states;

        rc = map_block(&map, first >> fs->block_shift, &states);
        if (rc == 0 && !states)
            rc = fs_error(EUCLEAN, "inode table: no states for inode %" PRIu64, first);
        if (rc < 0)
            return rc;
        read_states(table->numbers, states, first, fs->block_size);
    }
    return find_blocks(fs, table);
}

int table_attach(struct pmfs *fs)
{
    struct inode_table *table = calloc(1, sizeof(*table));
    int rc;

    if (!table)
        return fs_error(ENOMEM, "out of memory");
    table->per_block = fs->block_size / PM_INODE_SIZE;
    table->numbers = numbers_create(table->per_block);
    pthread_rwlock_init(&table->grow_lock, NULL);
    fs->table = table;
    rc = table->numbers ? read_table(fs, table) : fs_error(ENOMEM, "out of memory");
    if (rc < 0)
        table_detach(fs);
    return rc;
}

void table_detach(struct pmfs *fs)
{
    struct inode_table *table = fs->table;

    pthread_rwlock_destroy(&table->grow_lock);
    numbers_destroy(table->numbers);
    free(table);
    fs->table = NULL;
}

/* The first unfinished one in a block of states, from `at` on, or the block's end. */
static uint32_t find_unfinished(const uint8_t *states, uint32_t at, uint32_t end)
{
    const uint64_t free_or_used = 0x0101010101010101u * (PM_STATE_FREE | PM_STATE_USED);

    while (at < end) {
        uint64_t eight;

        memcpy(&eight, states + (at & ~7u), sizeof(eight));
        if (at % 8 == 0 && (eight & ~free_or_used) == 0) {
            at += 8;
            continue;
        }
        if (states[at] & ~(uint8_t)(PM_STATE_FREE | PM_STATE_USED))
            break;
        at++;
    }
    return at;
}

uint64_t table_next_unfinished(struct pmfs *fs, uint64_t ino)
{
    uint64_t count = table_end(fs);
    struct map map;

    if (map_init(&map, fs, &fs->pm->states, 0) < 0)
        return 0;
    while (ino < count) {
        uint32_t in_block = (uint32_t)(ino & (fs->block_size - 1));
        const void *states;

        if (map_block(&map, ino >> fs->block_shift, &states) < 0 || !states)
            return 0;
        uint32_t found = find_unfinished(states, in_block, fs->block_size);
        ino += found - in_block;
        if (found < fs->block_size)
            return ino;
    }
    return 0;
}
