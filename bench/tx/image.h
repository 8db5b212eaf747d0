/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * image.h - a pool as a killed process left it, to be put back before each recovery.
 */
#ifndef BENCH_TX_IMAGE_H
#define BENCH_TX_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct image {
    const char *path;
    uint8_t *bytes;
    size_t size;
};

/* Leaves the pool at `path` with unfinished transactions; nonzero: could not. */
typedef int image_leave_busy_fn(const char *path);

/*
 * Runs `leave_busy` in a child process, which is killed when it returns, and remembers
 * what is then in the pool file `path`.
 */
int image_make(struct image *image, const char *path, size_t size,
               image_leave_busy_fn *leave_busy);

void image_finish(struct image *image);

/* Writes the image to its file again. */
int image_restore(const struct image *image);

/* Did recovery bring the zeros back? */
bool image_is_zero(const uint8_t *bytes, size_t size);

#endif
