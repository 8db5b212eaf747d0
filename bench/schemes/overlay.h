/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * overlay.h - what is in a log but not at home yet, in DRAM: words, and pieces of
 * blocks in the order in which they were written.
 */
#ifndef BENCH_OVERLAY_H
#define BENCH_OVERLAY_H

#include <stdint.h>

struct overlay;

/* Room for what a log of `log_size` bytes can have. NULL: no memory. */
struct overlay *overlay_create(uint64_t log_size);
void overlay_destroy(struct overlay *overlay);
void overlay_clear(struct overlay *overlay);

void overlay_set_word(struct overlay *overlay, uint64_t home, uint64_t value);
/* The word at `home`, which is `value` if there is none. */
uint64_t overlay_word(const struct overlay *overlay, uint64_t home, uint64_t value);

void overlay_add_piece(struct overlay *overlay, uint64_t block, uint32_t at,
                       const void *bytes, uint32_t size);

/* The block is not the file's any more: its pieces need not go home. */
void overlay_drop_pieces(struct overlay *overlay, uint64_t block);

struct overlay_piece {
    uint64_t block;
    uint32_t at, size;
    uint32_t next;  /* of the same block; index + 1 */
    uint32_t bytes; /* index */
};

/* The first piece of a block, and the next one; NULL: there are no more. */
const struct overlay_piece *overlay_first(const struct overlay *overlay,
                                          uint64_t block);
const struct overlay_piece *overlay_next(const struct overlay *overlay,
                                         const struct overlay_piece *piece);
const void *overlay_bytes(const struct overlay *overlay,
                          const struct overlay_piece *piece);

/* All that there is, by home, so that words of one line come in a row; the pieces of a
 * block in the order in which they were written. */
typedef void overlay_word_fn(void *arg, uint64_t home, uint64_t value);
typedef void overlay_piece_fn(void *arg, uint64_t home, const void *bytes,
                              uint32_t size);
void overlay_visit(struct overlay *overlay, overlay_word_fn *word,
                   overlay_piece_fn *piece, void *arg);

#endif
