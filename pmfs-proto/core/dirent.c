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
        .tag = dirent_tag(name->hash),
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

/* The half of a header that tells entries apart, as one word. */
static uint64_t second_word(const struct pm_dirent *pm)
{
    uint64_t word;

    memcpy(&word, &pm->size, sizeof(word));
    return word;
}
#define WORD_TAG ((uint64_t)0xffff << 32)
#define WORD_NAME_SIZE ((uint64_t)0xff << 48)

/* What the entry of a name has there, but for size and type. */
static uint64_t wanted_word(const struct name *name)
{
    struct pm_dirent entry;

    dirent_set(&entry, name, 0, 0);
    return second_word(&entry) & (WORD_TAG | WORD_NAME_SIZE);
}

/*
 * Most entries are passed by their size alone, which is checked for that; of one that
 * may be it all is checked.
 */
int dirent_find(const struct pmfs *fs, uint64_t ino, const void *block,
                const struct name *name, const struct pm_dirent **result,
                const struct pm_dirent **room)
{
    uint32_t wanted_size = dirent_size(name->size), size;
    uint64_t wanted = wanted_word(name);

    *result = *room = NULL;
    for (uint32_t at = 0; at < fs->block_size; at += size) {
        const struct pm_dirent *pm =
            (const struct pm_dirent *)(const void *)((const uint8_t *)block + at);
        uint64_t word = second_word(pm), other = (word ^ wanted);

        size = (uint32_t)word;
        if (size - HEADER_SIZE > fs->block_size - at - HEADER_SIZE ||
            size % PM_DIRENT_UNIT)
            return dirent_bad(fs, ino, block, at);
        if (!(word & WORD_NAME_SIZE)) {
            if (!*room && size >= wanted_size && !pm->ino)
                *room = pm;
        } else if (!(other & WORD_NAME_SIZE) &&
                   (!(other & WORD_TAG) || !(word & WORD_TAG)) && pm->ino) {
            if (!dirent_at(fs, block, at))
                return dirent_bad(fs, ino, block, at);
            if (memcmp(pm->name, name->text, name->size) == 0) {
                *result = pm;
                break;
            }
        }
    }
    return 0;
}

int dirent_check_empty(const struct pmfs *fs, uint64_t ino, const void *block,
                       bool *is_empty)
{
    const struct pm_dirent *pm;

    *is_empty = true;
    for (uint32_t at = 0; at < fs->block_size && *is_empty; at += pm->size) {
        pm = dirent_at(fs, block, at);
        if (!pm)
            return dirent_bad(fs, ino, block, at);
        *is_empty = pm->ino == 0;
    }
    return 0;
}

int dirent_find_rest(const struct pmfs *fs, uint64_t ino, const void *block,
                     const struct pm_dirent *leaving, struct dirent_rest *rest)
{
    const struct pm_dirent *pm;
    bool was_free = false, has_passed = false, is_over = false;

    rest->live = 0;
    for (uint32_t at = 0; at < fs->block_size; at += pm->size) {
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
                   struct hashed *list, uint64_t *count)
{
    const struct pm_dirent *pm;

    for (uint32_t at = 0; at < fs->block_size; at += pm->size) {
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
    uint32_t at = 0;

    for (uint64_t i = 0; i < count; i++) {
        struct pm_dirent entry = *list[i].pm;

        entry.size = dirent_size(entry.name_size);
        entry.tag = dirent_tag(list[i].hash);
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
