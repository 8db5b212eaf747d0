/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * redo.h - a log of what is to be stored where: written whole, then committed by one
 * word, then stored at home. After a crash what is committed is stored again.
 *
 *     first line: {from, to}, in lines: what is replayed
 *     then transactions: {lines, records} record ... record, perhaps followed by images
 *     record: {home, size, at} and the bytes; an image lies `at` a line of its own
 *
 * Only committed lines are ever read, so nothing in them needs a checksum.
 */
#ifndef BENCH_REDO_H
#define BENCH_REDO_H

#include "bench/schemes/tree.h"

/* What a transaction stores at home. */
struct redo_change {
    uint64_t home;
    const void *src; /* valid until the next transaction; NULL: the word below */
    uint64_t size;
    uint64_t word;
    bool is_word; /* of the tree: added by redo_word() */
};

static inline const void *redo_bytes_of(const struct redo_change *change)
{
    return change->src ? change->src : &change->word;
}

struct redo {
    uint64_t line_count; /* of the log */
    uint64_t from, to;   /* lines that would be replayed */
    bool keeps_all;      /* since the last reset; else the last transaction only */

    /* The transaction that is being written. */
    uint64_t start;        /* line */
    uint64_t images_start; /* line */
    uint64_t image_line;   /* of the next image */
    uint8_t *head;         /* as it will lie at `start` */
    uint64_t head_size, head_room;
    struct redo_change *changes;
    uint64_t change_count, change_room;
};

/* At most so much goes into one transaction. */
struct redo_bound {
    uint64_t records;
    uint64_t bytes;  /* of those that are no images */
    uint64_t images; /* blocks */
    uint64_t changes;
};

/* Reads the log of `file`, stores again what it has, and empties it. */
int redo_init(struct redo *redo, struct file *file, bool keeps_all);
void redo_finish(struct redo *redo);

/*
 * Begins a transaction. -ENOSPC: there is no room, but after redo_reset() there is;
 * -EFBIG: there never is.
 */
int redo_begin(struct redo *redo, struct file *file, const struct redo_bound *bound);

void redo_bytes(struct redo *redo, struct file *file, uint64_t home, const void *src,
                uint64_t size);
void redo_word(struct redo *redo, struct file *file, const uint64_t *home,
               uint64_t value);

/*
 * The whole block at `home` as it is to be: as `old` is (0: zeros), but for `piece`.
 * This adds nothing to `changes`: redo_add_change() tells what of it is new.
 */
void redo_image(struct redo *redo, struct file *file, uint64_t home, uint64_t old,
                const struct piece *piece);
void redo_add_change(struct redo *redo, const struct redo_change *change);

/* Nothing was added yet. */
bool redo_is_empty(const struct redo *redo);

/* Two fences: the transaction, then the word that commits it, then the caller. */
int redo_commit(struct redo *redo, struct file *file);

/*
 * Empties the log. All that it has must be stored at home, and flushed or streamed: two
 * fences, that, then the word.
 */
int redo_reset(struct redo *redo, struct file *file);

#endif
