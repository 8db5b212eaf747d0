/* SPDX-License-Identifier: BSD-3-Clause */
/* attach.c - a pool from memory: its superblock validated, its twins in DRAM made. */
#include <errno.h>
#include <string.h>

#include "libminl2r/alloc.h"
#include "libminl2r/error.h"
#include "libminl2r/lane.h"
#include "libminl2r/pool.h"

static int check_layout(const struct pm_super *super, const char *layout)
{
    if (!layout || strncmp(super->layout, layout, sizeof(super->layout)) == 0)
        return 0;
    return error_set(EINVAL, "the pool's layout is \"%.63s\", not \"%.63s\"",
                     super->layout, layout);
}

static int check_writable(const struct pm *pm, const struct pm_super *super)
{
    if (!pm->writable || super->features_ro == 0)
        return 0;
    return error_set(
        EPROTONOSUPPORT,
        "superblock: features_ro is 0x%llx: a newer library made this pool; "
        "this one can only check it",
        (unsigned long long)super->features_ro);
}

static int attach_twins(struct minl2r_pool *pool)
{
    int result = alloc_attach(pool);

    if (result < 0)
        return error_set(-result, "no memory for the bitmaps of %llu blocks",
                         (unsigned long long)pool->geo.block_count);
    result = lanes_attach(pool);
    if (result < 0)
        alloc_detach(pool);
    return result;
}

int pool_attach(struct minl2r_pool *pool, const struct pm *pm, const char *layout)
{
    const struct pm_super *super = (const struct pm_super *)pm->base;

    if (pm->size < PM_PAGE)
        return error_set(EINVAL, "not a MinL2R pool: only %llu bytes",
                         (unsigned long long)pm->size);
    int result = geometry_read(&pool->geo, super, pm->size);

    if (result == 0)
        result = check_layout(super, layout);
    if (result == 0)
        result = check_writable(pm, super);
    if (result < 0)
        return result;
    pool->pm = *pm;
    pool->fd = -1;
    pool->checksum_seed = pm_hash(super->uuid, sizeof(super->uuid), 0);
    pool->fork_count = fork_count();
    return attach_twins(pool);
}

void pool_detach(struct minl2r_pool *pool)
{
    lanes_detach(pool);
    alloc_detach(pool);
}
