/* SPDX-License-Identifier: BSD-3-Clause */
/* golden.h - what is in the images, for who makes them and who reads them. */
#ifndef GOLDEN_H
#define GOLDEN_H

#include <stddef.h>
#include <stdint.h>

#define GOLDEN_BLOCK_SIZE 4096
#define GOLDEN_FILE_SIZE 10000
#define GOLDEN_FILE_HOLE 5000       /* bytes before those */
#define GOLDEN_FILE_ALLOCATED 40960 /* since version 2: bytes that have blocks */

/*
 * In "large" there are so many names of one file, "name 0" and so on, "file", and
 * "sub".
 */
#define GOLDEN_NAMES 1500

struct golden_root {
    uint64_t slots[2]; /* a block, a hole */
    uint64_t run;      /* three blocks */
    uint8_t bytes[10000];
};

/* Bytes that depend on `seed` only. */
static inline void golden_fill(void *bytes, size_t size, uint32_t seed)
{
    uint8_t *to = bytes;

    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        to[i] = (uint8_t)(seed >> 24);
    }
}

#endif
