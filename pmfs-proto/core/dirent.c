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

/* The highest bit of each byte of a word that is 0. */
static uint64_t zero_bytes(uint64_t word)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7fu;

    return ~(((word & low) + low) | word | low);
}

/* Eight tags at a time. Of those that fit, one in 255 is another name's. */
int dirent_find(const struct pmfs *fs, uint64_t ino, const void *block,
                const struct name *name, const struct pm_dirent **result)
{
    const uint64_t wanted = 0x0101010101010101u * dirent_tag(name->hash);

    *result = NULL;
    for (uint32_t i = 0; i < dirent_tags(fs); i += 8) {
        uint64_t tags;

        memcpy(&tags, (const uint8_t *)block + i, sizeof(tags));
        for (uint64_t hits = zero_bytes(tags ^ wanted); hits; hits &= hits - 1) {
            uint32_t at = (i + (uint32_t)__builtin_ctzll(hits) / 8) * PM_DIRENT_UNIT;
            const struct pm_dirent *pm = dirent_at(fs, block, at);

            if (!pm)
                return dirent_bad(fs, ino, block, at);
            if (is_named(pm, name)) {
                *result = pm;
                return 0;
            }
        }
    }
    return 0;
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

/* Of two with the same hash, names tell which is listed first. */
static int compare(const void *a, const void *b)
{
    const struct hashed *x = a, *y = b;

    if (x->hash == y->hash)
        return compare_names(x, y);
    return x->hash > y->hash ? 1 : -1;
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
        entry.reserved = 0;
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
