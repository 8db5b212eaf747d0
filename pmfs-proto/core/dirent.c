/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/dirent.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define HEADER_SIZE ((uint32_t)sizeof(struct pm_dirent))

/* ---- Names --------------------------------------------------------------------- */

uint64_t dirent_hash(const struct pmfs *fs, const char *name, uint32_t size)
{
    return XXH3_64bits_withSeed(name, size, fs->hash_seed) << (64 - DIRENT_HASH_BITS);
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
    name->hash = dirent_hash(fs, text, name->size);
    return 0;
}

/* ---- One entry ----------------------------------------------------------------- */

uint32_t dirent_size(uint32_t name_size)
{
    return (HEADER_SIZE + name_size + PM_DIRENT_UNIT - 1) & ~(PM_DIRENT_UNIT - 1);
}

uint64_t dirent_position(uint64_t hash, const struct pm_dirent *pm)
{
    uint64_t even = hash >> (63 - DIRENT_HASH_BITS);

    if (!pm->position)
        return even;
    return (even & ~(uint64_t)(DIRENT_CELL - 1)) | (pm->position & (DIRENT_CELL - 1));
}

bool dirent_has_bad_position(const struct pm_dirent *pm)
{
    return pm->reserved ||
           (pm->position && (pm->position % 2 == 0 || pm->position < DIRENT_ODD_FIRST ||
                             pm->position > DIRENT_ODD_LAST));
}

void dirent_set(struct pm_dirent *entry, const struct name *name, uint64_t ino,
                uint32_t type)
{
    *entry = (struct pm_dirent){
        .ino = ino,
        .size = dirent_size(name->size),
        .name_size = (uint8_t)name->size,
        .type = (uint8_t)(type >> 12),
    };
}

void dirent_set_free(struct pm_dirent *entry, uint32_t size)
{
    *entry = (struct pm_dirent){.size = size};
}

const struct pm_dirent *dirent_at(const struct pmfs *fs, const void *block, uint32_t at)
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

bool dirent_has_good_name(const struct pm_dirent *pm)
{
    if (memchr(pm->name, '/', pm->name_size) || memchr(pm->name, 0, pm->name_size))
        return false;
    return !(pm->name[0] == '.' &&
             (pm->name_size == 1 || (pm->name_size == 2 && pm->name[1] == '.')));
}

/* ---- The entries of a block ---------------------------------------------------- */

int dirent_bad(const struct pmfs *fs, uint64_t ino, const void *block, uint32_t at)
{
    return fs_error(EUCLEAN,
                    "directory %" PRIu64 ": block 0x%" PRIx64
                    ": the entry at byte %" PRIu32 " is impossible",
                    ino, minl2r_offset(fs->pool, block), at);
}

static bool is_named(const struct pm_dirent *pm, const struct name *name)
{
    return pm->ino && pm->name_size == name->size &&
           memcmp(pm->name, name->text, name->size) == 0;
}

/*
 * The first entry of a block from `*at` on that has the tag; `*at` goes behind its
 * start. NULL: there is none. One name in 255 has the tag of another.
 */
static int next_tagged(const struct pmfs *fs, uint64_t ino, const void *block,
                       uint8_t tag, uint32_t *at, const struct pm_dirent **pm)
{
    const uint8_t *tags = block;
    uint32_t first = *at / PM_DIRENT_UNIT;
    const uint8_t *hit = memchr(tags + first, tag, dirent_tags(fs) - first);

    *pm = NULL;
    if (!hit)
        return 0;
    *at = (uint32_t)(hit - tags) * PM_DIRENT_UNIT;
    *pm = dirent_at(fs, block, *at);
    if (!*pm)
        return dirent_bad(fs, ino, block, *at);
    *at += PM_DIRENT_UNIT;
    return 0;
}

int dirent_find(const struct pmfs *fs, uint64_t ino, const void *block,
                const struct name *name, const struct pm_dirent **result)
{
    uint32_t at = 0;
    int rc;

    do {
        rc = next_tagged(fs, ino, block, dirent_tag(name->hash), &at, result);
    } while (rc == 0 && *result && !is_named(*result, name));
    return rc;
}

static int has_hash(const struct pmfs *fs, uint64_t ino, const void *block,
                    uint64_t hash, bool *found)
{
    const struct pm_dirent *pm;
    uint32_t at = 0;
    int rc;

    *found = false;
    do {
        rc = next_tagged(fs, ino, block, dirent_tag(hash), &at, &pm);
        if (rc == 0 && pm)
            *found = pm->ino && dirent_hash(fs, pm->name, pm->name_size) == hash;
    } while (rc == 0 && pm && !*found);
    return rc;
}

/* One bit for each odd position of a cell. */
static int find_odd(const struct pmfs *fs, uint64_t ino, const void *block,
                    uint64_t cell, uint64_t *taken)
{
    const struct pm_dirent *pm;

    *taken = 0;
    for (uint32_t at = dirent_tags(fs); at < fs->block_size; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        if (!pm->ino || !pm->position)
            continue;
        uint64_t position =
            dirent_position(dirent_hash(fs, pm->name, pm->name_size), pm);

        if (position / DIRENT_CELL == cell)
            *taken |= (uint64_t)1 << position % DIRENT_CELL / 2;
    }
    return 0;
}

int dirent_choose_position(const struct pmfs *fs, uint64_t ino, const void *block,
                           uint64_t hash, uint8_t *position)
{
    uint64_t cell = hash >> (64 - DIRENT_CELL_BITS), taken;
    bool found;
    int rc = has_hash(fs, ino, block, hash, &found);

    *position = 0;
    if (rc < 0 || !found)
        return rc;
    rc = find_odd(fs, ino, block, cell, &taken);
    for (uint8_t odd = DIRENT_ODD_FIRST; rc == 0 && odd <= DIRENT_ODD_LAST; odd += 2) {
        if (taken >> odd / 2 & 1)
            continue;
        *position = odd;
        return 0;
    }
    return rc < 0 ? rc
                  : fs_error(ENOSPC,
                             "directory %" PRIu64 ": too many names with the same hash",
                             ino);
}

int dirent_scan(const struct pmfs *fs, uint64_t ino, const void *block, uint32_t first,
                const struct name *name, const struct pm_dirent **result)
{
    const struct pm_dirent *pm;

    *result = NULL;
    for (uint32_t at = first; at < fs->block_size && !*result; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        if (is_named(pm, name))
            *result = pm;
    }
    return 0;
}

int dirent_find_room(const struct pmfs *fs, uint64_t ino, const void *block,
                     uint32_t size, const struct pm_dirent **room)
{
    const struct pm_dirent *pm;

    *room = NULL;
    for (uint32_t at = dirent_tags(fs); at < fs->block_size && !*room; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        if (!pm->ino && pm->size >= size)
            *room = pm;
    }
    return 0;
}

int dirent_make_tags(const struct pmfs *fs, uint64_t ino, const void *block,
                     uint8_t *tags)
{
    const struct pm_dirent *pm;

    memset(tags, 0, dirent_tags(fs));
    for (uint32_t at = dirent_tags(fs); at < fs->block_size; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        if (pm->ino)
            tags[at / PM_DIRENT_UNIT] =
                dirent_tag(dirent_hash(fs, pm->name, pm->name_size));
    }
    return 0;
}

int dirent_check_empty(const struct pmfs *fs, uint64_t ino, const void *block,
                       uint32_t first, bool *is_empty)
{
    const struct pm_dirent *pm;

    *is_empty = true;
    for (uint32_t at = first; at < fs->block_size && *is_empty; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        *is_empty = pm->ino == 0;
    }
    return 0;
}

int dirent_find_rest(const struct pmfs *fs, uint64_t ino, const void *block,
                     uint32_t first, const struct pm_dirent *leaving,
                     struct dirent_rest *rest)
{
    const struct pm_dirent *pm;
    bool was_free = false, has_passed = false, is_over = false;

    rest->live = 0;
    for (uint32_t at = first; at < fs->block_size; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        bool is_free = pm->ino == 0 || pm == leaving;

        if (!is_free)
            rest->live += pm->size;
        is_over |= has_passed && !is_free;
        has_passed |= pm == leaving;
        if (is_free && !was_free && !is_over)
            rest->start = at;
        if (is_free && !is_over)
            rest->size = at + pm->size - rest->start;
        was_free = is_free;
    }
    return 0;
}

uint32_t dirent_count_max(const struct pmfs *fs)
{
    return fs->block_size / dirent_size(1);
}

int dirent_collect(const struct pmfs *fs, uint64_t ino, const void *block,
                   uint32_t first, struct hashed *list, uint64_t *count)
{
    const struct pm_dirent *pm;

    for (uint32_t at = first; at < fs->block_size; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm || (pm->ino && !dirent_has_good_name(pm)))
            return dirent_bad(fs, ino, block, at);
        if (pm->ino)
            list[(*count)++] = (struct hashed){
                .hash = dirent_hash(fs, pm->name, pm->name_size),
                .pm = pm,
                .name = pm->name,
            };
    }
    return 0;
}

static int compare_names(const struct hashed *a, const struct hashed *b)
{
    uint32_t a_size = a->pm->name_size, b_size = b->pm->name_size;
    int order = memcmp(a->name, b->name, a_size < b_size ? a_size : b_size);

    return order ? order : (a_size > b_size) - (a_size < b_size);
}

/*
 * Where two have one position, which used to be given to names with one hash, names
 * tell which is listed first.
 */
static int compare(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;
    uint64_t x_position = dirent_position(x->hash, x->pm);
    uint64_t y_position = dirent_position(y->hash, y->pm);

    if (x_position == y_position)
        return compare_names(x, y);
    return x_position > y_position ? 1 : -1;
}

void dirent_sort(struct hashed *list, uint64_t count)
{
    qsort(list, count, sizeof(*list), compare);
}

void dirent_fill(const struct pmfs *fs, uint8_t *block, const struct hashed *list,
                 uint64_t count)
{
    uint32_t at = dirent_tags(fs);

    memset(block, 0, at);
    for (uint64_t i = 0; i < count; i++) {
        struct pm_dirent entry = *list[i].pm;

        entry.size = dirent_size(entry.name_size);
        block[at / PM_DIRENT_UNIT] = dirent_tag(list[i].hash);
        memcpy(block + at, &entry, HEADER_SIZE);
        memcpy(block + at + HEADER_SIZE, list[i].name, entry.name_size);
        at += entry.size;
    }
    if (at < fs->block_size) {
        struct pm_dirent rest;

        dirent_set_free(&rest, fs->block_size - at);
        memcpy(block + at, &rest, HEADER_SIZE);
    }
}
