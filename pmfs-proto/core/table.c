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

    pthread_mutex_t free_lock;
    /* One bit per number: free = !taken, and used implies taken. */
    uint64_t *taken;
    uint64_t *used;
    uint64_t *present; /* at the first number of a block of inodes: it is there */
    uint64_t word_count;
    uint64_t used_count;
    uint64_t taken_count;
    uint64_t *full;        /* one bit per word of `taken`: it has no 0 */
    uint64_t low_word;     /* all words below are full */
    uint64_t empty_blocks; /* that are there, and no number of them is taken */
    uint32_t per_block;    /* inodes */
};

static uint64_t bit_of(uint64_t ino)
{
    return (uint64_t)1 << (ino % 64);
}

/* ---- Places -------------------------------------------------------------------- */

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
    /* Who wants its place reads it: let it come while the state is looked for. */
    if (place->pm) {
        __builtin_prefetch(&place->pm->size);
        __builtin_prefetch(&place->pm->atime_ns);
    }
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

static int reserve_words(struct inode_table *table, uint64_t inode_count)
{
    uint64_t words = inode_count / 64;

    uint64_t **all[] = {&table->taken, &table->used, &table->present};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        uint64_t *grown = realloc(*all[i], words * sizeof(*grown));

        if (!grown)
            return -ENOMEM;
        *all[i] = grown;
    }

    uint64_t *full = realloc(table->full, (words + 63) / 64 * sizeof(*full));

    if (!full)
        return -ENOMEM;
    table->full = full;
    return 0;
}

static void add_words(struct inode_table *table, uint64_t inode_count)
{
    uint64_t words = inode_count / 64;
    uint64_t size = (words - table->word_count) * sizeof(uint64_t);

    memset(table->taken + table->word_count, 0, size);
    memset(table->used + table->word_count, 0, size);
    memset(table->present + table->word_count, 0, size);
    for (uint64_t i = (table->word_count + 63) / 64; i < (words + 63) / 64; i++)
        table->full[i] = 0;
    table->word_count = words;
}

/* The first number of the block of inodes that has `ino`. */
static uint64_t first_of(const struct inode_table *table, uint64_t ino)
{
    return ino - ino % table->per_block;
}

static bool is_present(const struct inode_table *table, uint64_t ino)
{
    uint64_t first = first_of(table, ino);

    return table->present[first / 64] & bit_of(first);
}

/* Is no number of a block taken? */
static bool is_empty(const struct inode_table *table, uint64_t ino)
{
    uint64_t first = first_of(table, ino), taken = 0;

    if (table->per_block < 64)
        return !(table->taken[first / 64] >> first % 64 &
                 (((uint64_t)1 << table->per_block) - 1));
    for (uint64_t i = 0; i < table->per_block; i += 64)
        taken |= table->taken[(first + i) / 64];
    return !taken;
}

static void mark_taken(struct inode_table *table, uint64_t ino)
{
    table->empty_blocks -= is_present(table, ino) && is_empty(table, ino);
    table->taken[ino / 64] |= bit_of(ino);
    table->taken_count++;
    if (table->taken[ino / 64] == UINT64_MAX)
        table->full[ino / 64 / 64] |= bit_of(ino / 64);
}

static void mark_free(struct inode_table *table, uint64_t ino)
{
    table->taken[ino / 64] &= ~bit_of(ino);
    table->taken_count--;
    table->full[ino / 64 / 64] &= ~bit_of(ino / 64);
    if (ino / 64 < table->low_word)
        table->low_word = ino / 64;
    table->empty_blocks += is_present(table, ino) && is_empty(table, ino);
}

static void mark_used(struct inode_table *table, uint64_t ino)
{
    table->used[ino / 64] |= bit_of(ino);
    table->used_count++;
}

/* The first word of `taken` that is not full, or word_count. */
static uint64_t find_word(const struct inode_table *table)
{
    for (uint64_t i = table->low_word / 64; i * 64 < table->word_count; i++) {
        if (~table->full[i])
            return i * 64 + (uint64_t)__builtin_ctzll(~table->full[i]);
    }
    return table->word_count;
}

/* The lowest free number, now taken, or 0. So the blocks that are there are filled. */
static uint64_t take_number(struct inode_table *table)
{
    uint64_t ino = 0;

    pthread_mutex_lock(&table->free_lock);
    table->low_word = find_word(table);
    if (table->low_word < table->word_count) {
        ino = table->low_word * 64 +
              (uint64_t)__builtin_ctzll(~table->taken[table->low_word]);
        mark_taken(table, ino);
    } else {
        table->low_word = table->word_count;
    }
    pthread_mutex_unlock(&table->free_lock);
    return ino;
}

bool table_is_used(struct pmfs *fs, uint64_t ino)
{
    struct inode_table *table = fs->table;

    pthread_mutex_lock(&table->free_lock);
    bool used = ino / 64 < table->word_count && table->used[ino / 64] & bit_of(ino);
    pthread_mutex_unlock(&table->free_lock);
    return used;
}

void table_unuse(struct pmfs *fs, uint64_t ino)
{
    struct inode_table *table = fs->table;

    pthread_mutex_lock(&table->free_lock);
    table->used[ino / 64] &= ~bit_of(ino);
    table->used_count--;
    pthread_mutex_unlock(&table->free_lock);
}

void table_free_number(struct pmfs *fs, uint64_t ino)
{
    struct inode_table *table = fs->table;

    pthread_mutex_lock(&table->free_lock);
    mark_free(table, ino);
    pthread_mutex_unlock(&table->free_lock);
}

uint64_t table_used(struct pmfs *fs)
{
    pthread_mutex_lock(&fs->table->free_lock);
    uint64_t used = fs->table->used_count;
    pthread_mutex_unlock(&fs->table->free_lock);
    return used;
}

uint64_t table_free(struct pmfs *fs)
{
    struct inode_table *table = fs->table;

    pthread_mutex_lock(&table->free_lock);
    uint64_t free_numbers = table->word_count * 64 - table->taken_count;
    pthread_mutex_unlock(&table->free_lock);
    return free_numbers;
}

/* ---- Shrinking ----------------------------------------------------------------- */

/* The highest empty block that is there, by its first number, below `end`; 0: none. */
static uint64_t find_empty(const struct inode_table *table, uint64_t end)
{
    uint64_t first = end;

    while (first > 0) {
        first -= table->per_block;
        if (!table->present[first / 64])
            first -= first % 64;
        else if (is_present(table, first) && is_empty(table, first))
            return first;
    }
    return 0;
}

/*
 * Takes all numbers of an empty block below *end, if there are more than `spare` of
 * them; *end is its first then.
 */
static bool take_block(struct inode_table *table, uint64_t spare, uint64_t *end)
{
    uint64_t first = 0;

    pthread_mutex_lock(&table->free_lock);
    if (table->empty_blocks > spare)
        first = find_empty(
            table, *end < table->word_count * 64 ? *end : table->word_count * 64);
    for (uint64_t i = first; first && i < first + table->per_block; i++)
        mark_taken(table, i);
    pthread_mutex_unlock(&table->free_lock);
    *end = first;
    return first != 0;
}

static void give_block_back(struct inode_table *table, uint64_t first, bool is_present)
{
    pthread_mutex_lock(&table->free_lock);
    if (!is_present)
        table->present[first / 64] &= ~bit_of(first);
    for (uint64_t i = first; i < first + table->per_block; i++)
        mark_free(table, i);
    pthread_mutex_unlock(&table->free_lock);
}

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
    give_block_back(fs->table, first, rc < 0);
    return rc;
}

void table_shrink(struct pmfs *fs)
{
    struct inode_table *table = fs->table;
    uint64_t end = UINT64_MAX;
    int rc = 0;

    pthread_mutex_lock(&table->free_lock);
    bool is_due = table->empty_blocks > (uint64_t)2 * fs->spare_inode_blocks;
    pthread_mutex_unlock(&table->free_lock);
    while (is_due && rc == 0 && take_block(table, fs->spare_inode_blocks, &end))
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

    if (rc == 0) {
        pthread_mutex_lock(&fs->table->free_lock);
        rc = reserve_words(fs->table, new_count);
        pthread_mutex_unlock(&fs->table->free_lock);
    }
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
        claim->place.ino = take_number(fs->table);
    if (!claim->place.ino)
        rc = add_states(fs, tx, claim);
    else
        rc = find_place(fs, claim->place.ino, &claim->place);
    if (rc == 0)
        rc = add_inodes(fs, tx, claim);
    return rc;
}

int table_take(struct pmfs *fs, struct minl2r_tx *tx, struct table_claim *claim)
{
    int rc = 0;

    *claim = (struct table_claim){.place.ino = take_number(fs->table)};
    if (claim->place.ino) {
        pthread_rwlock_rdlock(&fs->table->grow_lock);
        rc = find_place(fs, claim->place.ino, &claim->place);
        pthread_rwlock_unlock(&fs->table->grow_lock);
    }
    if (rc == 0 && !claim->place.pm)
        rc = grow(fs, tx, claim);
    if (rc < 0)
        table_give_back(fs, claim);
    return rc;
}

void table_keep(struct pmfs *fs, const struct table_claim *claim)
{
    struct inode_table *table = fs->table;

    pthread_mutex_lock(&table->free_lock);
    if (claim->new_count) {
        add_words(table, claim->new_count);
        mark_taken(table, claim->place.ino);
    }
    if (claim->grows) {
        uint64_t first = first_of(table, claim->place.ino);

        table->present[first / 64] |= bit_of(first);
    }
    mark_used(table, claim->place.ino);
    pthread_mutex_unlock(&table->free_lock);
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

/* Of 64 numbers at once. */
static void read_states(struct inode_table *table, const uint8_t *states,
                        uint64_t first, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 64) {
        uint64_t used = 0;

        for (uint32_t bit = 0; bit < 64; bit += 8)
            used |= used_bits(states + i + bit) << bit;
        if (first + i == 0)
            used &= ~(uint64_t)1; /* number 0 is none */
        table->used[(first + i) / 64] = used;
        table->taken[(first + i) / 64] = used;
        table->used_count += (uint64_t)__builtin_popcountll(used);
    }
}

/* Which blocks of inodes are there: those in use, and of the others the map tells. */
static int find_blocks(struct pmfs *fs, struct inode_table *table)
{
    uint64_t count = fs->pm->inode_count;
    struct map map;
    int rc = map_init(&map, fs, &fs->pm->inodes, 0);

    for (uint64_t ino = 0; rc == 0 && ino < count; ino += table->per_block) {
        bool empty = is_empty(table, ino);
        const void *block = NULL;

        if (empty)
            rc = map_block(&map, ino / table->per_block, &block);
        if (!empty || block)
            table->present[ino / 64] |= bit_of(ino);
        table->empty_blocks += empty && block;
    }
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
    if (rc == 0 && reserve_words(table, count) < 0)
        rc = fs_error(ENOMEM, "out of memory");
    if (rc != 0)
        return rc;
    add_words(table, count);
    for (uint64_t first = 0; first < count; first += fs->block_size) {
        const void *states;

        rc = map_block(&map, first >> fs->block_shift, &states);
        if (rc == 0 && !states)
            rc = fs_error(EUCLEAN, "inode table: no states for inode %" PRIu64, first);
        if (rc < 0)
            return rc;
        read_states(table, states, first, fs->block_size);
    }
    table->taken[0] |= 1;
    table->taken_count = table->used_count + 1;
    for (uint64_t word = 0; word < table->word_count; word++) {
        if (table->taken[word] == UINT64_MAX)
            table->full[word / 64] |= bit_of(word);
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
    rc = read_table(fs, table);
    pthread_rwlock_init(&table->grow_lock, NULL);
    fs_short_lock_init(&table->free_lock);
    fs->table = table;
    if (rc < 0)
        table_detach(fs);
    return rc;
}

void table_detach(struct pmfs *fs)
{
    struct inode_table *table = fs->table;

    pthread_rwlock_destroy(&table->grow_lock);
    pthread_mutex_destroy(&table->free_lock);
    free(table->taken);
    free(table->used);
    free(table->present);
    free(table->full);
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
    uint64_t count = fs->table->word_count * 64;
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
