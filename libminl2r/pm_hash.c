/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_hash.c - the hash of all checksums, apart from the rest of the door: crashtest
 * leaves its loads out. */
#include "libminl2r/pm_hash.h"
#include "libminl2r/pm.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#ifdef __x86_64__
/* Up to here XXH3 has no use for vectors. */
#define SHORT_MAX 240

static uint64_t hash(const void *data, size_t size)
{
    return size > SHORT_MAX && __builtin_cpu_supports("avx2") ? pm_hash_avx2(data, size)
                                                              : XXH3_64bits(data, size);
}
#else
static uint64_t hash(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}
#endif

uint64_t pm_hash(const void *data, size_t size, uint64_t seed)
{
    return hash(data, size) ^ seed; /* XXH3 itself is slow to seed */
}

uint64_t pm_hash_ranges(const struct pm_range *ranges, size_t count)
{
    XXH3_state_t state;

    XXH3_64bits_reset(&state);
    for (size_t i = 0; i < count; i++)
        XXH3_64bits_update(&state, ranges[i].start, ranges[i].size);
    return XXH3_64bits_digest(&state);
}
