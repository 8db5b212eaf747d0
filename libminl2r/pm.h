/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pm.h - the only door to persistent memory: mapping, stores, flushes, fences, hashes.
 *
 * Pointers into PM are pointers to const; only the functions here cast that away. They
 * are in pm_map.c, pm_libpmem.c and pm_hash.c; in programs that crashtest tests,
 * pm_traced.c stands in front of the first and the last.
 *
 * Stores are gathered in a *phase*: all that one thread stores between two fences. On
 * hardware a locked instruction waits for what was flushed or streamed before it, so
 * within a phase the order is: locks and pm_or64/pm_and64/pm_max64, then stores, then
 * streams and flushes, then the fence.
 */
#ifndef MINL2R_PM_H
#define MINL2R_PM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/minl2r.h"
#include "libminl2r/layout.h"

/* A mapping. Read-only once made, but for `medium` and what a test simulates. */
struct pm {
    const uint8_t *base;
    uint64_t size;  /* bytes mapped */
    uintptr_t twin; /* how far from `base` they are stored to; 0 but for pm_watch() */
    enum minl2r_medium medium;
    const char *reason;       /* why this medium */
    const char *flush_method; /* as in minl2r_info */
    bool writable;
};

/*
 * Maps `size` bytes of `fd`, shared if `writable`, else private and read-only, and
 * decides the medium.
 */
int pm_map(struct pm *pm, int fd, uint64_t size, bool writable);
void pm_unmap(struct pm *pm);

/*
 * Maps `fd` a second time, for all stores of this door, and makes the first mapping
 * read-only: every other store to it faults.
 */
int pm_watch(struct pm *pm, int fd);

/* Makes `pm` from memory that is mapped already and treats it as `medium` (tests,
 * crashtest). */
void pm_adopt(struct pm *pm, const void *base, uint64_t size,
              enum minl2r_medium medium);

/* A phase; zeroed it is ready for use but for `pm` and `stats`. Counts into `stats`. */
struct pm_phase {
    const struct pm *pm;
    struct minl2r_stats *stats; /* of one lane or thread: not shared while in use */
    uintptr_t low, high;        /* msync mode: bounds of what was flushed */
    uintptr_t last_line;        /* the line flushed last; to be zeroed where somebody
                                   else may have stored to it since */
    uintptr_t last_streamed;    /* likewise; pieces of it in a row leave as one line */
    bool pending;               /* something to fence */
};

/* Adds to a counter of one thread, which others may be reading. */
static inline void pm_count(uint64_t *counter, uint64_t more)
{
    __atomic_store_n(counter, *counter + more, __ATOMIC_RELAXED);
}

/* Ordinary stores; durable after pm_flush() and pm_fence(). Aligned words are atomic.
 */
void pm_store(struct pm_phase *phase, const void *dst, const void *src, size_t size);
void pm_zero(struct pm_phase *phase, const void *dst, size_t size);

/* One naturally aligned piece of 1, 2, 4 or 8 bytes, atomically. */
void pm_store_piece(struct pm_phase *phase, const void *dst, const void *src,
                    size_t size);

/* Sets or clears bits of a word atomically. Durable after pm_flush() and pm_fence(). */
void pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);
void pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits);

/* Raises a word to `value`, unless it is there or above already, atomically. */
void pm_max64(struct pm_phase *phase, const uint64_t *word, uint64_t value);

/*
 * Non-temporal stores; durable after pm_fence(). Any alignment; what starts or ends
 * between multiples of 4 goes through the cache there, and is flushed. Aligned words
 * are atomic.
 */
void pm_store_nt(struct pm_phase *phase, const void *dst, const void *src, size_t size);

/* New bytes of a range. */
struct extent {
    uint64_t start;       /* counted from the start of a block, or of the pool */
    const uint8_t *bytes; /* NULL: zeros */
    uint32_t size;
    bool unchanged; /* set by commit: PM has these bytes already */
};

static inline uint64_t extent_end(const struct extent *extent)
{
    return extent->start + extent->size;
}

/*
 * The same of all the bytes of `count` extents, which count from `base`: small ones
 * cost hardly more than their stores. None is of zeros.
 */
void pm_store_nt_extents(struct pm_phase *phase, const uint8_t *base,
                         const struct extent *extents, size_t count);

/* Writes back every line of the range. */
void pm_flush(struct pm_phase *phase, const void *ptr, size_t size);

/*
 * Waits until all that the phase flushed and streamed is durable, and begins the next
 * phase. No cost and not counted if nothing is pending. -EIO only in msync mode.
 */
int pm_fence(struct pm_phase *phase);

/* The hash of all checksums: XXH3, XOR `seed`. */
uint64_t pm_hash(const void *data, size_t size, uint64_t seed);

/* The same, with seed 0, of ranges one behind the other. */
struct pm_range {
    const void *start;
    size_t size;
};
uint64_t pm_hash_ranges(const struct pm_range *ranges, size_t count);

/* A word in PM that other threads may be changing. */
static inline uint64_t pm_load64(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

#endif
