/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/dir.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pmfs-proto/core/map.h"

#define HEADER_SIZE ((uint32_t)sizeof(struct pm_dirent))
#define SLOTS_MIN 16u
#define NO_BLOCK UINT32_MAX

/*
 * Blocks with room are in lists by the size of a free entry that they have: list r
 * holds those with r units, the last one those with as many as any name needs, or more.
 */
#define ROOM_LISTS                                                                     \
    ((HEADER_SIZE + PMFS_NAME_MAX + PM_DIRENT_UNIT - 1) / PM_DIRENT_UNIT + 1)

struct dir_block {
    const uint8_t *memory;
    uint32_t next, prev; /* in its list; NO_BLOCK: none */
    uint16_t
        room_unit; /* a free entry, the largest when the block was last looked at */
    uint16_t room_units; /* 0: none */
};

/* A name, found by hash; open addressing with linear probing, at most half full. */
struct dir_slot {
    uint32_t hash;
    uint32_t unit_plus_1; /* 0: empty */
};

struct dir {
    struct dir_slot *slots;
    uint64_t slot_count; /* power of two */
    uint64_t count;      /* of names */
    struct dir_block *blocks;
    uint32_t block_count;
    uint32_t block_capacity;
    uint32_t room[ROOM_LISTS]; /* first block of each list */
    uint64_t *all_bytes;       /* atomic: that all indexes take */
};

static uint32_t units_per_block(const struct pmfs *fs)
{
    return fs->block_size / PM_DIRENT_UNIT;
}

static uint32_t units_for(uint32_t name_size)
{
    return (HEADER_SIZE + name_size + PM_DIRENT_UNIT - 1) / PM_DIRENT_UNIT;
}

/* ---- Names --------------------------------------------------------------------- */

static uint32_t hash_of(const struct pmfs *fs, const void *text, uint32_t size)
{
    uint64_t hash = XXH3_64bits_withSeed(text, size, fs->hash_seed);

    return (uint32_t)(hash ^ hash >> 32);
}

int name_init(struct name *name, const struct pmfs *fs, const char *text)
{
    size_t size = strnlen(text, PMFS_NAME_MAX + 1);

    if (size > PMFS_NAME_MAX)
        return -ENAMETOOLONG;
    if (size == 0 || memchr(text, '/', size))
        return -EINVAL;
    name->text = text;
    name->size = (uint32_t)size;
    name->hash = hash_of(fs, text, name->size);
    return 0;
}

/* ---- Entries on media ---------------------------------------------------------- */

const struct pm_dirent *dir_entry_at(const struct pmfs *fs, const void *block,
                                     uint32_t at)
{
    const struct pm_dirent *pm =
        (const struct pm_dirent *)(const void *)((const uint8_t *)block + at);

    if (at % PM_DIRENT_UNIT || pm->size < HEADER_SIZE || pm->size % PM_DIRENT_UNIT ||
        pm->size > fs->block_size - at)
        return NULL;
    if (pm->ino && (pm->name_size == 0 || pm->size < HEADER_SIZE + pm->name_size))
        return NULL;
    return pm;
}

bool dir_has_good_name(const struct pm_dirent *pm)
{
    if (memchr(pm->name, '/', pm->name_size) || memchr(pm->name, 0, pm->name_size))
        return false;
    return !(pm->name[0] == '.' &&
             (pm->name_size == 1 || (pm->name_size == 2 && pm->name[1] == '.')));
}

static int bad_entry(const struct inode *inode, uint64_t block, uint32_t at)
{
    return fs_error(EUCLEAN,
                    "directory %" PRIu64 ": block %" PRIu64
                    ": the entry at byte %" PRIu32 " is impossible",
                    inode->place.ino, block, at);
}

static int block_memory(struct map *map, uint64_t index, const void **memory)
{
    int rc = map_block(map, index, memory);

    if (rc == 0 && !*memory)
        rc = fs_error(EUCLEAN, "directory %" PRIu64 ": block %" PRIu64 " is missing",
                      map->ino, index);
    return rc;
}

/* ---- The index: memory --------------------------------------------------------- */

/* A name and its slots, and what else of a block it takes, on average. */
#define SIZE_OF_NAME 64u

static uint64_t bytes_of(const struct dir *dir)
{
    return sizeof(*dir) + dir->slot_count * sizeof(*dir->slots) +
           dir->block_capacity * sizeof(*dir->blocks);
}

/* The index takes other memory than `before`. */
static void count_bytes(const struct dir *dir, uint64_t before)
{
    __atomic_add_fetch(dir->all_bytes, bytes_of(dir) - before, __ATOMIC_RELAXED);
}

/* ---- The index: names ---------------------------------------------------------- */

static void slots_put(struct dir *dir, uint32_t hash, uint32_t unit)
{
    uint64_t mask = dir->slot_count - 1;
    uint64_t i = hash & mask;

    while (dir->slots[i].unit_plus_1)
        i = (i + 1) & mask;
    dir->slots[i] = (struct dir_slot){.hash = hash, .unit_plus_1 = unit + 1};
    dir->count++;
}

static int slots_resize(struct dir *dir, uint64_t slot_count)
{
    uint64_t before = bytes_of(dir), old_count = dir->slot_count;
    struct dir_slot *old = dir->slots;
    struct dir_slot *slots = calloc(slot_count, sizeof(*slots));

    if (!slots)
        return -ENOMEM;
    dir->slots = slots;
    dir->slot_count = slot_count;
    dir->count = 0;
    for (uint64_t i = 0; i < old_count; i++) {
        if (old[i].unit_plus_1)
            slots_put(dir, old[i].hash, old[i].unit_plus_1 - 1);
    }
    free(old);
    count_bytes(dir, before);
    return 0;
}

/* Room for one more name. */
static int slots_reserve(struct dir *dir)
{
    if ((dir->count + 1) * 2 <= dir->slot_count)
        return 0;
    return slots_resize(dir, dir->slot_count * 2);
}

/* Takes a name out, and moves up those behind it that an empty slot would hide. */
static void slots_remove(struct dir *dir, uint32_t hash, uint32_t unit)
{
    uint64_t mask = dir->slot_count - 1;
    uint64_t hole = hash & mask;

    while (dir->slots[hole].unit_plus_1 != unit + 1)
        hole = (hole + 1) & mask;
    for (uint64_t i = (hole + 1) & mask; dir->slots[i].unit_plus_1;
         i = (i + 1) & mask) {
        uint64_t home = dir->slots[i].hash & mask;

        if (((i - home) & mask) >= ((i - hole) & mask)) {
            dir->slots[hole] = dir->slots[i];
            hole = i;
        }
    }
    dir->slots[hole].unit_plus_1 = 0;
    dir->count--;
}

/* ---- The index: room ----------------------------------------------------------- */

static uint32_t *room_list(struct dir *dir, uint32_t units)
{
    return &dir->room[units < ROOM_LISTS ? units : ROOM_LISTS - 1];
}

static void room_unlist(struct dir *dir, uint32_t index)
{
    struct dir_block *block = &dir->blocks[index];

    if (block->room_units == 0)
        return;
    if (block->prev == NO_BLOCK)
        *room_list(dir, block->room_units) = block->next;
    else
        dir->blocks[block->prev].next = block->next;
    if (block->next != NO_BLOCK)
        dir->blocks[block->next].prev = block->prev;
}

/* Remembers a free entry of a block; lists it. */
static void room_set(struct dir *dir, uint32_t index, uint32_t unit, uint32_t units)
{
    struct dir_block *block = &dir->blocks[index];
    uint32_t *list = room_list(dir, units);

    room_unlist(dir, index);
    block->room_unit = (uint16_t)unit;
    block->room_units = (uint16_t)units;
    if (units == 0)
        return;
    block->prev = NO_BLOCK;
    block->next = *list;
    if (*list != NO_BLOCK)
        dir->blocks[*list].prev = index;
    *list = index;
}

/* A block that has a free entry of so many units, or NO_BLOCK. */
static uint32_t room_find(const struct dir *dir, uint32_t units)
{
    uint32_t list = units;

    while (list < ROOM_LISTS - 1 && dir->room[list] == NO_BLOCK)
        list++;
    return dir->room[list];
}

static int blocks_reserve(struct dir *dir)
{
    if (dir->block_count < dir->block_capacity)
        return 0;

    uint32_t capacity = dir->block_capacity ? dir->block_capacity * 2 : 1;
    uint64_t before = bytes_of(dir);
    struct dir_block *blocks = realloc(dir->blocks, capacity * sizeof(*blocks));

    if (!blocks)
        return -ENOMEM;
    dir->blocks = blocks;
    dir->block_capacity = capacity;
    count_bytes(dir, before);
    return 0;
}

static void blocks_add(struct dir *dir, const void *memory)
{
    dir->blocks[dir->block_count++] = (struct dir_block){.memory = memory};
}

/* Looks for the largest free entry of a block. */
static void block_look_for_room(const struct pmfs *fs, struct dir *dir, uint32_t index)
{
    const void *memory = dir->blocks[index].memory;
    const struct pm_dirent *pm;
    uint32_t best_unit = 0, best_units = 0;

    for (uint32_t at = 0; at < fs->block_size; at += pm->size) {
        pm = dir_entry_at(fs, memory, at);
        if (!pm)
            break;
        if (pm->ino == 0 && pm->size / PM_DIRENT_UNIT > best_units) {
            best_unit = at / PM_DIRENT_UNIT;
            best_units = pm->size / PM_DIRENT_UNIT;
        }
    }
    room_set(dir, index, best_unit, best_units);
}

/* ---- The index: building ------------------------------------------------------- */

/* An index in the making. Names wait in a queue for the memory of their slots. */
#define QUEUE_SIZE 16u

struct builder {
    struct pmfs *fs;
    const struct inode *inode;
    struct dir *dir;
    struct dir_slot queue[QUEUE_SIZE];
    uint64_t queued; /* ever */
    uint64_t put;    /* of these */
};

static int builder_put_one(struct builder *builder)
{
    const struct dir_slot *name = &builder->queue[builder->put++ % QUEUE_SIZE];

    if (slots_reserve(builder->dir) < 0)
        return -ENOMEM;
    slots_put(builder->dir, name->hash, name->unit_plus_1 - 1);
    return 0;
}

static int builder_add(struct builder *builder, const struct pm_dirent *pm,
                       uint32_t unit)
{
    const struct dir *dir = builder->dir;
    uint32_t hash = hash_of(builder->fs, pm->name, pm->name_size);

    if (builder->queued - builder->put == QUEUE_SIZE && builder_put_one(builder) < 0)
        return -ENOMEM;
    builder->queue[builder->queued++ % QUEUE_SIZE] =
        (struct dir_slot){.hash = hash, .unit_plus_1 = unit + 1};
    __builtin_prefetch(&dir->slots[hash & (dir->slot_count - 1)], 1);
    return 0;
}

/* Each entry says where the next one is: without this, misses would wait in line. */
static void prefetch_block(const struct pmfs *fs, const void *memory)
{
    for (uint32_t i = 0; i < fs->block_size; i += 64)
        __builtin_prefetch((const uint8_t *)memory + i);
}

static int builder_add_block(struct builder *builder, const void *memory)
{
    const struct pmfs *fs = builder->fs;
    struct dir *dir = builder->dir;
    uint32_t index = dir->block_count;
    const struct pm_dirent *pm;

    if (blocks_reserve(dir) < 0)
        return -ENOMEM;
    blocks_add(dir, memory);
    for (uint32_t at = 0; at < fs->block_size; at += pm->size) {
        pm = dir_entry_at(fs, memory, at);
        if (!pm || (pm->ino && !dir_has_good_name(pm)))
            return bad_entry(builder->inode, index, at);
        if (pm->ino == 0)
            continue;
        if (builder_add(builder, pm,
                        index * units_per_block(fs) + at / PM_DIRENT_UNIT) < 0)
            return -ENOMEM;
    }
    block_look_for_room(fs, dir, index);
    return 0;
}

/* Adds all blocks of a directory, each looked at while the next one is fetched. */
static int builder_add_all(struct builder *builder, struct map *map,
                           uint64_t block_count)
{
    const void *memory = NULL, *next = NULL;
    int rc = block_count ? block_memory(map, 0, &next) : 0;

    for (uint64_t i = 0; rc == 0 && i < block_count; i++) {
        memory = next;
        if (i + 1 < block_count)
            rc = block_memory(map, i + 1, &next);
        if (rc == 0) {
            prefetch_block(builder->fs, next);
            rc = builder_add_block(builder, memory);
        }
    }
    while (rc == 0 && builder->put < builder->queued)
        rc = builder_put_one(builder);
    return rc;
}

void dir_destroy(struct dir *dir)
{
    if (!dir)
        return;
    __atomic_sub_fetch(dir->all_bytes, bytes_of(dir), __ATOMIC_RELAXED);
    free(dir->slots);
    free(dir->blocks);
    free(dir);
}

/* An empty index, with slots for as many names as so many blocks may hold. */
static struct dir *dir_create(struct pmfs *fs, uint64_t block_count)
{
    uint64_t names = (block_count << fs->block_shift) / SIZE_OF_NAME;
    uint64_t slot_count = SLOTS_MIN;
    struct dir *dir = calloc(1, sizeof(*dir));

    if (!dir)
        return NULL;
    dir->all_bytes = cache_index_bytes(fs);
    count_bytes(dir, 0);
    for (uint32_t i = 0; i < ROOM_LISTS; i++)
        dir->room[i] = NO_BLOCK;
    while (slot_count < names)
        slot_count *= 2;
    if (slots_resize(dir, slot_count) == 0)
        return dir;
    dir_destroy(dir);
    return NULL;
}

static int dir_build(struct pmfs *fs, struct inode *inode)
{
    uint64_t block_count = inode->place.pm->size >> fs->block_shift;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    if (rc == 0 && block_count > UINT32_MAX / units_per_block(fs))
        rc = fs_error(EUCLEAN, "directory %" PRIu64 ": too large", inode->place.ino);
    if (rc < 0)
        return rc;

    struct builder builder = {.fs = fs, .inode = inode};

    builder.dir = dir_create(fs, block_count);
    if (!builder.dir)
        return -ENOMEM;
    rc = builder_add_all(&builder, &map, block_count);
    if (rc < 0)
        dir_destroy(builder.dir);
    else
        inode->dir = builder.dir;
    return rc;
}

/* Builds the index, with the directory's lock for reading given up meanwhile. */
static int build_unlocked(struct pmfs *fs, struct inode *inode)
{
    int rc;

    inode_unlock(inode);
    rc = inode_lock(inode, LOCK_EXCLUSIVE);
    if (rc < 0)
        return rc;
    if (!inode->dir)
        rc = dir_build(fs, inode);
    inode_unlock(inode);
    /* Nothing takes an index away while the inode is pinned. */
    return rc < 0 ? rc : inode_lock(inode, LOCK_SHARED);
}

int dir_lock(struct pmfs *fs, struct inode *inode, enum lock_mode mode)
{
    int rc;

    if (!is_directory(inode))
        return -ENOTDIR;
    rc = inode_lock(inode, mode);
    if (rc < 0 || inode->dir)
        return rc;
    if (mode == LOCK_SHARED)
        return build_unlocked(fs, inode);
    rc = dir_build(fs, inode);
    if (rc < 0)
        inode_unlock(inode);
    return rc;
}

/* ---- Finding ------------------------------------------------------------------- */

static const struct pm_dirent *entry_of_unit(const struct pmfs *fs,
                                             const struct dir *dir, uint32_t unit)
{
    uint32_t per_block = units_per_block(fs);

    return dir_entry_at(fs, dir->blocks[unit / per_block].memory,
                        unit % per_block * PM_DIRENT_UNIT);
}

static bool is_named(const struct pm_dirent *pm, const struct name *name)
{
    return pm->name_size == name->size && memcmp(pm->name, name->text, name->size) == 0;
}

int dir_find(struct pmfs *fs, const struct inode *inode, const struct name *name,
             struct dir_entry *entry)
{
    const struct dir *dir = inode->dir;
    uint64_t mask = dir->slot_count - 1;

    for (uint64_t i = name->hash & mask; dir->slots[i].unit_plus_1;
         i = (i + 1) & mask) {
        uint32_t unit = dir->slots[i].unit_plus_1 - 1;

        if (dir->slots[i].hash != name->hash)
            continue;

        const struct pm_dirent *pm = entry_of_unit(fs, dir, unit);

        if (!pm || !pm->ino) /* it was good when the index was built */
            return bad_entry(inode, unit / units_per_block(fs),
                             unit % units_per_block(fs) * PM_DIRENT_UNIT);
        if (is_named(pm, name)) {
            *entry = (struct dir_entry){.pm = pm, .unit = unit};
            return 0;
        }
    }
    return -ENOENT;
}

bool dir_is_empty(const struct inode *inode)
{
    return inode->dir->count == 0;
}

int dir_list(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
             dir_visit_fn *visit, void *arg)
{
    uint64_t block_count = inode->place.pm->size >> fs->block_shift;
    uint64_t first_unit = cookie - DIR_COOKIE_FIRST;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    for (uint64_t i = first_unit / units_per_block(fs); rc == 0 && i < block_count;
         i++) {
        uint64_t unit = i * units_per_block(fs);
        const struct pm_dirent *pm;
        const void *memory;

        rc = block_memory(&map, i, &memory);
        for (uint32_t at = 0; rc == 0 && at < fs->block_size; at += pm->size) {
            pm = dir_entry_at(fs, memory, at);
            if (!pm || (pm->ino && !dir_has_good_name(pm)))
                return bad_entry(inode, i, at);
            bool wanted = pm->ino && unit >= first_unit;
            unit += pm->size / PM_DIRENT_UNIT;
            if (wanted)
                rc = visit(arg, pm, unit + DIR_COOKIE_FIRST);
        }
    }
    return rc;
}

/* ---- Changing ------------------------------------------------------------------ */

static int library_error(const struct inode *inode, int rc)
{
    return fs_library_error(rc, "directory", inode->place.ino);
}

/* The header of an entry, whose name lies elsewhere. */
static void set_header(struct pm_dirent *entry, uint64_t ino, uint32_t size,
                       uint32_t name_size, uint32_t type)
{
    entry->ino = ino;
    entry->size = size;
    entry->reserved = 0;
    entry->name_size = (uint8_t)name_size;
    entry->type = (uint8_t)(type >> 12);
}

/* Adds a block with one entry at its start. */
static int add_in_new_block(struct pmfs *fs, struct minl2r_tx *tx,
                            const struct inode *inode, const struct pm_dirent *entry,
                            struct inode_head *head, struct dir_change *change)
{
    uint64_t index = head->size >> fs->block_shift;
    struct pm_dirent rest;
    struct map map;
    uint8_t *memory;

    if (index >= UINT32_MAX / units_per_block(fs))
        return -ENOSPC;
    if (blocks_reserve(inode->dir) < 0)
        return -ENOMEM;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);
    if (rc == 0)
        rc = map_insert(&map, tx, index, &memory);
    if (rc != 0)
        return rc;
    set_header(&rest, 0, fs->block_size - entry->size, 0, 0);
    memcpy(memory, entry, HEADER_SIZE);
    memcpy(memory + HEADER_SIZE, change->name.text, change->name.size);
    memcpy(memory + entry->size, &rest, HEADER_SIZE);
    head->size += fs->block_size;
    head->blocks += map.added;
    change->unit = (uint32_t)index * units_per_block(fs);
    change->free_units = rest.size / PM_DIRENT_UNIT;
    change->new_block = memory;
    return 0;
}

/*
 * Puts an entry at the start of a free one. Only its header is seen before the commit,
 * so what comes behind that, the name and the rest's header, is fresh.
 */
static int add_in_room(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                       const struct pm_dirent *entry, uint32_t index,
                       struct dir_change *change)
{
    const struct dir_block *block = &inode->dir->blocks[index];
    uint32_t at = block->room_unit * PM_DIRENT_UNIT;
    const struct pm_dirent *pm = dir_entry_at(fs, block->memory, at);

    if (!pm || pm->ino || pm->size < entry->size)
        return bad_entry(inode, index, at);

    const uint8_t *start = block->memory + at;
    struct pm_dirent rest;
    int rc = minl2r_tx_write(tx, start, entry, HEADER_SIZE);

    set_header(&rest, 0, pm->size - entry->size, 0, 0);
    if (rc == 0)
        rc = minl2r_tx_write_fresh(tx, start + HEADER_SIZE, change->name.text,
                                   change->name.size);
    if (rc == 0 && rest.size)
        rc = minl2r_tx_write_fresh(tx, start + entry->size, &rest, HEADER_SIZE);
    change->unit = index * units_per_block(fs) + block->room_unit;
    change->free_units = rest.size / PM_DIRENT_UNIT;
    return library_error(inode, rc);
}

int dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
            const struct name *name, uint64_t ino, uint32_t type,
            struct inode_head *head, struct dir_change *change)
{
    uint32_t units = units_for(name->size);
    uint32_t index = room_find(inode->dir, units);
    struct pm_dirent entry;

    set_header(&entry, ino, units * PM_DIRENT_UNIT, name->size, type);
    *change = (struct dir_change){.kind = DIR_ADD, .name = *name, .units = units};
    if (slots_reserve(inode->dir) < 0)
        return -ENOMEM;
    if (index == NO_BLOCK)
        return add_in_new_block(fs, tx, inode, &entry, head, change);
    return add_in_room(fs, tx, inode, &entry, index, change);
}

/*
 * Finds the run of free entries around the live one at `at`: where it starts, and its
 * bytes with that one.
 */
static int find_free_run(const struct pmfs *fs, const void *memory, uint32_t at,
                         uint32_t *start, uint32_t *size)
{
    const struct pm_dirent *pm;
    bool was_free = false;
    uint32_t i;

    prefetch_block(fs, memory);
    for (i = 0; i < at; i += pm->size) {
        pm = dir_entry_at(fs, memory, i);
        if (!pm)
            return -EUCLEAN;
        if (pm->ino == 0 && !was_free)
            *start = i;
        was_free = pm->ino == 0;
    }
    if (!was_free)
        *start = at;
    for (i = at; i < fs->block_size; i += pm->size) {
        pm = dir_entry_at(fs, memory, i);
        if (!pm)
            return -EUCLEAN;
        if (i > at && pm->ino)
            break;
    }
    *size = i - *start;
    return 0;
}

int dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
               const struct name *name, const struct dir_entry *entry,
               const struct dir_change *added, struct dir_change *change)
{
    uint32_t index = entry->unit / units_per_block(fs);
    uint32_t at = entry->unit % units_per_block(fs) * PM_DIRENT_UNIT;
    const uint8_t *memory = inode->dir->blocks[index].memory;
    uint32_t start = at, size = entry->pm->size;

    *change =
        (struct dir_change){.kind = DIR_REMOVE, .name = *name, .unit = entry->unit};
    if (added && added->kind == DIR_ADD && added->unit / units_per_block(fs) == index) {
        /* That may use a free neighbour: leave them apart this time. */
        size = entry->pm->size;
    } else if (find_free_run(fs, memory, at, &start, &size) < 0) {
        return bad_entry(inode, index, at);
    }

    struct pm_dirent unused;

    set_header(&unused, 0, size, 0, 0);
    return library_error(inode,
                         minl2r_tx_write(tx, memory + start, &unused, HEADER_SIZE));
}

int dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                const struct dir_entry *entry, uint64_t ino, uint32_t type)
{
    struct pm_dirent changed;

    set_header(&changed, ino, entry->pm->size, entry->pm->name_size, type);
    return library_error(inode, minl2r_tx_write(tx, entry->pm, &changed, HEADER_SIZE));
}

void dir_apply(struct pmfs *fs, const struct inode *inode,
               const struct dir_change *change)
{
    struct dir *dir = inode->dir;
    uint32_t index = change->unit / units_per_block(fs);

    switch (change->kind) {
    case DIR_NOTHING:
        break;
    case DIR_ADD:
        if (change->new_block)
            blocks_add(dir, change->new_block);
        slots_put(dir, change->name.hash, change->unit);
        room_set(dir, index, change->unit % units_per_block(fs) + change->units,
                 change->free_units);
        break;
    case DIR_REMOVE:
        slots_remove(dir, change->name.hash, change->unit);
        block_look_for_room(fs, dir, index);
        break;
    }
}
