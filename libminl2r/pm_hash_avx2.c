/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_hash_avx2.c - the same, compiled for processors with AVX2. */
#include "libminl2r/pm_hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

uint64_t pm_hash_avx2(const void *data, size_t size)
{
    return XXH3_64bits(data, size);
}
