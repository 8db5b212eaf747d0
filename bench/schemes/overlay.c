/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/schemes/overlay.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "bench/schemes/scheme.h"

#define RECORD_SIZE_MIN 24 /* of the log: so many there are at most */

/* By offset in PM: of a word, or of a block, which is an even or odd key. */
struct entry {
    uint64_t key; /* 0: none */
    uint64_t value;
    uint32_t first, last; /* pieces; index + 1 */
};

struct overlay {
    struct entry *entries;
    uint32_t entry_shift; /* 64 - log2 of how many */
    struct entry **taken; /* the `used` ones: few of many, so that nobody scans all */
    uint64_t used;

    struct overlay_piece *pieces;
    uint64_t piece_count;
    uint8_t *bytes;
    uint64_t byte_count;
    uint64_t record_count, log_size;
};

static uint64_t entry_count(const struct overlay *overlay)
{
    return (uint64_t)1 << (64 - overlay->entry_shift);
}

struct overlay *overlay_create(uint64_t log_size)
{
    struct overlay *overlay = memory_apart(sizeof(*overlay));

    if (!overlay)
        return NULL;
    overlay->log_size = log_size;
    overlay->record_count = log_size / RECORD_SIZE_MIN;
    overlay->entry_shift = 63;
    while (entry_count(overlay) < 2 * overlay->record_count)
        overlay->entry_shift--;
    overlay->entries = calloc(entry_count(overlay), sizeof(*overlay->entries));
    overlay->taken = calloc(entry_count(overlay), sizeof(*overlay->taken));
    overlay->pieces = calloc(overlay->record_count, sizeof(*overlay->pieces));
    overlay->bytes = calloc(log_size, 1);
    if (overlay->entries && overlay->taken && overlay->pieces && overlay->bytes)
        return overlay;
    overlay_destroy(overlay);
    return NULL;
}

void overlay_destroy(struct overlay *overlay)
{
    if (!overlay)
        return;
    free(overlay->entries);
    free(overlay->taken);
    free(overlay->pieces);
    free(overlay->bytes);
    free(overlay);
}

void overlay_clear(struct overlay *overlay)
{
    for (uint64_t i = 0; i < overlay->used; i++)
        *overlay->taken[i] = (struct entry){0};
    overlay->used = overlay->piece_count = overlay->byte_count = 0;
}

/* Where `key` is, or would be. */
static struct entry *find(const struct overlay *overlay, uint64_t key)
{
    uint64_t at = key * 0x9e3779b97f4a7c15u >> overlay->entry_shift;
    struct entry *entry = &overlay->entries[at];

    while (entry->key && entry->key != key) {
        at = (at + 1) & (entry_count(overlay) - 1);
        entry = &overlay->entries[at];
    }
    return entry;
}

static struct entry *find_or_add(struct overlay *overlay, uint64_t key)
{
    struct entry *entry = find(overlay, key);

    assert(overlay->used < entry_count(overlay) - 1);
    if (entry->key == 0)
        overlay->taken[overlay->used++] = entry;
    entry->key = key;
    return entry;
}

void overlay_set_word(struct overlay *overlay, uint64_t home, uint64_t value)
{
    find_or_add(overlay, home)->value = value;
}

uint64_t overlay_word(const struct overlay *overlay, uint64_t home, uint64_t value)
{
    const struct entry *entry = find(overlay, home);

    return entry->key ? entry->value : value;
}

/* Homes of words are even. */
static uint64_t key_of_block(uint64_t block)
{
    return block | 1;
}

void overlay_add_piece(struct overlay *overlay, uint64_t block, uint32_t at,
                       const void *bytes, uint32_t size)
{
    struct entry *entry = find_or_add(overlay, key_of_block(block));
    uint32_t number = (uint32_t)++overlay->piece_count;

    assert(overlay->piece_count <= overlay->record_count &&
           overlay->byte_count + size <= overlay->log_size);
    overlay->pieces[number - 1] = (struct overlay_piece){
        .block = block, .at = at, .size = size, .bytes = (uint32_t)overlay->byte_count};
    memcpy(overlay->bytes + overlay->byte_count, bytes, size);
    overlay->byte_count += size;
    if (entry->last)
        overlay->pieces[entry->last - 1].next = number;
    else
        entry->first = number;
    entry->last = number;
}

void overlay_drop_pieces(struct overlay *overlay, uint64_t block)
{
    struct entry *entry = find(overlay, key_of_block(block)); /* or one that is empty */

    entry->first = entry->last = 0;
}

static const struct overlay_piece *numbered(const struct overlay *overlay,
                                            uint32_t number)
{
    return number ? &overlay->pieces[number - 1] : NULL;
}

const struct overlay_piece *overlay_first(const struct overlay *overlay, uint64_t block)
{
    return numbered(overlay, find(overlay, key_of_block(block))->first);
}

const struct overlay_piece *overlay_next(const struct overlay *overlay,
                                         const struct overlay_piece *piece)
{
    return numbered(overlay, piece->next);
}

const void *overlay_bytes(const struct overlay *overlay,
                          const struct overlay_piece *piece)
{
    return overlay->bytes + piece->bytes;
}

static int compare(const void *a, const void *b)
{
    const struct entry *const *one = a, *const *other = b;

    return ((*one)->key > (*other)->key) - ((*one)->key < (*other)->key);
}

static void visit_pieces(const struct overlay *overlay, const struct entry *entry,
                         overlay_piece_fn *piece, void *arg)
{
    const struct overlay_piece *one = numbered(overlay, entry->first);

    for (; one; one = overlay_next(overlay, one))
        piece(arg, one->block + one->at, overlay_bytes(overlay, one), one->size);
}

void overlay_visit(struct overlay *overlay, overlay_word_fn *word,
                   overlay_piece_fn *piece, void *arg)
{
    qsort(overlay->taken, overlay->used, sizeof(struct entry *), compare);
    for (uint64_t i = 0; i < overlay->used; i++) {
        const struct entry *entry = overlay->taken[i];

        if (entry->key % 2 == 0)
            word(arg, entry->key, entry->value);
        else
            visit_pieces(overlay, entry, piece, arg);
    }
}
