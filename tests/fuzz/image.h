/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.h - what the fuzz targets share: a valid image of a pool in memory, and damage
 * that an input describes field by field, with checksums made right, so that it gets
 * past them.
 *
 * An input is a byte that chooses the image, then edits of 14 bytes each:
 *
 *   kind 1, mode 1, object 2, field 2, operand 8
 *
 * Kinds are the parts of an image, each with objects of one size that are known by
 * offset; one kind more is a record in the log of a lane. `mode` says what becomes of
 * the field: see image.c.
 */
#ifndef FUZZ_IMAGE_H
#define FUZZ_IMAGE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "libminl2r/pool.h"

#define IMAGE_SIZE MINL2R_POOL_SIZE_MIN
#define IMAGE_KINDS_MAX 12

/* Unlike assert(), not a matter of how it is built. */
#define fuzz_require(condition)                                                        \
    ((condition) ? (void)0 : fuzz_fail(#condition, __FILE__, __LINE__))
_Noreturn void fuzz_fail(const char *what, const char *file, int line);

/* The objects of one kind. */
struct image_kind {
    uint32_t size; /* bytes of each */
    uint32_t count;
    uint32_t capacity;
    uint64_t *offsets;
};

struct image {
    uint8_t *bytes; /* [IMAGE_SIZE] */
    uint32_t kind_count;
    struct image_kind kinds[IMAGE_KINDS_MAX];
};

/* Memory of a pool, between pages without access. */
uint8_t *image_map(void);

/* Formats `memory`, with an identity that is always the same. */
void image_format(uint8_t *memory, const char *layout,
                  const struct minl2r_options *options);

/* Opens a pool in memory, with recovery; 0 or why not, and then nothing is left. */
int image_open(uint8_t *memory, struct minl2r_pool *pool);
void image_close(struct minl2r_pool *pool);

/* Copies `memory` and learns where superblock, lanes, bitmaps and root block are. */
void image_take(struct image *image, const uint8_t *memory);

uint32_t image_add_kind(struct image *image, uint32_t size);
void image_add_object(struct image *image, uint32_t kind, uint64_t offset);

/* The image, with the edits of an input. */
void image_damage(const struct image *image, uint8_t *memory, const uint8_t *edits,
                  size_t size);

#endif
