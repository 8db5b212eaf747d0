/* SPDX-License-Identifier: BSD-3-Clause */
/* dirent.h - names, and the entries that one block of a directory holds. */
#ifndef PMFS_DIRENT_H
#define PMFS_DIRENT_H

#include "pmfs-proto/core/fs.h"

/* Tags, and so bytes, that a block of entries begins with. */
static inline uint32_t dirent_tags(const struct pmfs *fs)
{
    return fs->block_size / PM_DIRENT_UNIT;
}

#define DIRENT_TAGS_MAX (65536u / PM_DIRENT_UNIT)

/* Bytes of a block for entries. */
static inline uint32_t dirent_room(const struct pmfs *fs)
{
    return fs->block_size - dirent_tags(fs);
}

struct name {
    const char *text;
    uint32_t size; /* bytes; 1 to PMFS_NAME_MAX */
    uint64_t hash; /* as dirent_hash() */
};

/* Makes a name of a string. -ENAMETOOLONG, -EINVAL (empty, or with a '/'). */
int name_init(struct name *name, const struct pmfs *fs, const char *text);

/*
 * The hash that orders a directory: 62 bits at the top of a word. It depends on the
 * pool: names that meet in one do not in another.
 */
#define DIRENT_HASH_BITS 62u
uint64_t dirent_hash(const struct pmfs *fs, const char *name, uint32_t size);

/*
 * Where a listing has a name: 63 bits, its own in the directory as long as it is there.
 * The hash gives it, even; a name that comes when another has that place gets an odd
 * one of the same cell, and keeps that with its entry. The names of a cell are in one
 * block.
 */
#define DIRENT_CELL 128u
#define DIRENT_CELL_BITS (DIRENT_HASH_BITS - 6u) /* of a hash, which choose a cell */
#define DIRENT_ODD_FIRST 3u                      /* below it are "." and ".." */
#define DIRENT_ODD_LAST (DIRENT_CELL - 3u)       /* what follows the last has no sign */
uint64_t dirent_position(uint64_t hash, const struct pm_dirent *pm);

/* Is it none that dirent_choose_position() gives? */
bool dirent_has_bad_position(const struct pm_dirent *pm);

/* Bytes of an entry with a name of `name_size`. */
uint32_t dirent_size(uint32_t name_size);

/* The header of a live entry, and of a free one of `size` bytes. */
void dirent_set(struct pm_dirent *entry, const struct name *name, uint64_t ino,
                uint32_t type);
void dirent_set_free(struct pm_dirent *entry, uint32_t size);

/* The tag of a name with that hash. */
static inline uint8_t dirent_tag(uint64_t hash)
{
    uint8_t tag = (uint8_t)(hash >> (64 - DIRENT_HASH_BITS));

    return tag ? tag : 1;
}

/* The tag, on media, of the entry that begins there. */
static inline const uint8_t *dirent_tag_of(const void *block, const void *entry)
{
    const uint8_t *tags = block;

    return &tags[(size_t)((const uint8_t *)entry - tags) / PM_DIRENT_UNIT];
}

/*
 * The entry `at` bytes into a block, or NULL if it is none that can be: its size leads
 * on to the next or the end of the block, and a live one has a name.
 */
const struct pm_dirent *dirent_at(const struct pmfs *fs, const void *block,
                                  uint32_t at);

/* Is it no "." or "..", and without '/' and NUL? Of a live entry. */
bool dirent_has_good_name(const struct pm_dirent *pm);

/*
 * Below, `ino` is the directory's, for messages; each is -EUCLEAN where the block
 * cannot be believed. `first` is where entries begin: dirent_tags(), or 0 where there
 * are no tags.
 */

int dirent_bad(const struct pmfs *fs, uint64_t ino, const void *block, uint32_t at);

/* The live entry of a name, or NULL: by the tags; and by a walk through all entries. */
int dirent_find(const struct pmfs *fs, uint64_t ino, const void *block,
                const struct name *name, const struct pm_dirent **pm);
int dirent_scan(const struct pmfs *fs, uint64_t ino, const void *block, uint32_t first,
                const struct name *name, const struct pm_dirent **pm);

/* A free entry with room for one of `size` bytes, or NULL. */
int dirent_find_room(const struct pmfs *fs, uint64_t ino, const void *block,
                     uint32_t size, const struct pm_dirent **room);

/* What a name of that hash is to keep as its position in a block. -ENOSPC if names with
 * that hash have all there are. */
int dirent_choose_position(const struct pmfs *fs, uint64_t ino, const void *block,
                           uint64_t hash, uint8_t *position);

/* What the tags of a block should be. */
int dirent_make_tags(const struct pmfs *fs, uint64_t ino, const void *block,
                     uint8_t *tags);

/* Is no entry live? */
int dirent_check_empty(const struct pmfs *fs, uint64_t ino, const void *block,
                       uint32_t first, bool *is_empty);

/* What there is when an entry is removed. */
struct dirent_rest {
    uint32_t start; /* of the run of free entries that it is part of */
    uint32_t size;  /* bytes of that */
    uint32_t live;  /* bytes that live entries need */
};

int dirent_find_rest(const struct pmfs *fs, uint64_t ino, const void *block,
                     uint32_t first, const struct pm_dirent *leaving,
                     struct dirent_rest *rest);

/* A live entry by its hash; `name` is apart from `pm` where it is not on media yet. */
struct hashed {
    uint64_t hash;
    const struct pm_dirent *pm;
    const char *name;
};

/* How many entries a block can hold. */
uint32_t dirent_count_max(const struct pmfs *fs);

/* Adds the live entries of a block to a list that has room for them. */
int dirent_collect(const struct pmfs *fs, uint64_t ino, const void *block,
                   uint32_t first, struct hashed *list, uint64_t *count);

/* By position. */
void dirent_sort(struct hashed *list, uint64_t count);

/* Fills a new block with tags and entries; they fit. */
void dirent_fill(const struct pmfs *fs, uint8_t *block, const struct hashed *list,
                 uint64_t count);

#endif
