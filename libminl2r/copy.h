/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * copy.h - copies of bytes that were stored just now.
 *
 * A load gets its bytes out of the processor's store queue if one store wrote all of
 * them. If several did, it waits until they have left the queue, which they do not as
 * long as a fence or non-temporal stores before them drain: some hundred instructions
 * that could be run meanwhile. memcpy() loads up to 64 bytes at once; callers mostly
 * store words.
 */
#ifndef MINL2R_COPY_H
#define MINL2R_COPY_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COPY_WORDS_MAX 128u /* bytes; more is seldom stored by words just before */

/* `size` is a multiple of 8. The barrier keeps the compiler from joining words. */
static inline void copy_words(void *dst, const void *src, size_t size)
{
    for (size_t at = 0; at < size; at += 8) {
        uint64_t word;

        memcpy(&word, (const uint8_t *)src + at, sizeof(word));
        __asm__ volatile("" : "+r"(word));
        memcpy((uint8_t *)dst + at, &word, sizeof(word));
    }
}

static inline void copy_recent(void *dst, const void *src, size_t size)
{
    if (size % 8 == 0 && size <= COPY_WORDS_MAX)
        copy_words(dst, src, size);
    else
        memcpy(dst, src, size);
}

#endif
