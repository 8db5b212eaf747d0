/* SPDX-License-Identifier: BSD-3-Clause */
/* pm_hash.h - XXH3 by what a processor can do; the values are the same. */
#ifndef MINL2R_PM_HASH_H
#define MINL2R_PM_HASH_H

#include <stddef.h>
#include <stdint.h>

/* Only where the processor has AVX2. */
uint64_t pm_hash_avx2(const void *data, size_t size);

#endif
