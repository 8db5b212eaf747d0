/* SPDX-License-Identifier: BSD-3-Clause */
/* pages.h - the first touch of a page is the kernel's, and a hypervisor's, not pmfs's. */
#ifndef BENCH_PMFS_PAGES_H
#define BENCH_PMFS_PAGES_H

#include <stdint.h>

#include "include/minl2r.h"

/* Reads a byte of each page, so that the mapping has them all. */
static inline int touch_pages(struct minl2r_pool *pool)
{
    struct minl2r_info info;
    int rc = minl2r_pool_info(pool, &info);

    for (uint64_t at = 0; rc == 0 && at < info.pool_size; at += 4096) {
        const volatile uint8_t *page = minl2r_at(pool, at);

        if (page)
            (void)*page;
    }
    return rc;
}

#endif
