/* SPDX-License-Identifier: BSD-3-Clause */
/* check.h - read-only verifier: names each broken invariant and its place. */
#ifndef MINL2R_CHECK_H
#define MINL2R_CHECK_H

#include "libminl2r/pool.h"

/*
 * Verifies a pool that was attached, perhaps read-only, and not recovered: bitmaps,
 * lanes, logs, and the root as it will be once the live logs are undone. Calls `found`
 * for each problem. Changes nothing on media; claims log segments in the allocator.
 *
 * Returns: 0 if consistent, -EUCLEAN if not, -ENOMEM.
 */
int check_pool(struct minl2r_pool *pool, minl2r_check_fn *found, void *arg);

#endif
