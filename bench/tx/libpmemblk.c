/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmemblk: atomic writes of whole blocks. A part of a block is read, changed and
 * written.
 */
#include "bench/tx/tx.h"

#include <errno.h>
#include <libpmemblk.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scratch.h"
#include "bench/tx/count.h"

#define POOL_SIZE (REGION_SIZE + ((uint64_t)16 << 20)) /* room for its metadata */

struct blk_state {
    PMEMblkpool *pool;
    uint8_t block[BLOCK_SIZE];
    struct tx_tally tally;
};

static int zero_blocks(struct blk_state *blk, uint64_t size)
{
    memset(blk->block, 0, BLOCK_SIZE);
    for (uint64_t i = 0; i < size / BLOCK_SIZE; i++)
        if (pmemblk_write(blk->pool, blk->block, (long long)i) < 0)
            return -errno;
    return 0;
}

static int open_pool(struct blk_state *blk)
{
    const char *path = scratch_path("libpmemblk");

    blk->pool = pmemblk_create(path, BLOCK_SIZE, POOL_SIZE, 0600);
    scratch_unlink(path);
    if (!blk->pool)
        return -errno;
    if (pmemblk_nblock(blk->pool) < REGION_SIZE / BLOCK_SIZE) {
        pmemblk_close(blk->pool);
        return -ENOSPC;
    }
    return 0;
}

static int start(void **state)
{
    struct blk_state *blk = calloc(1, sizeof(*blk));
    int rc = blk ? open_pool(blk) : -ENOMEM;

    if (rc < 0)
        free(blk);
    *state = blk;
    return rc;
}

static void finish(void *state)
{
    struct blk_state *blk = state;

    pmemblk_close(blk->pool);
    free(blk);
}

static int reset(void *state, enum tx_op op, uint64_t size)
{
    return op == OP_BLOCK ? zero_blocks(state, size) : 0;
}

static int write_block(void *state, const struct tx_change *change)
{
    struct blk_state *blk = state;
    long long index = (long long)(change->offset[0] / BLOCK_SIZE);
    const void *content = change->src;

    if (change->size < BLOCK_SIZE) {
        if (pmemblk_read(blk->pool, blk->block, index) < 0)
            return -errno;
        memcpy(blk->block, change->src, change->size);
        content = blk->block;
    }
    return pmemblk_write(blk->pool, content, index) < 0 ? -errno : 0;
}

static int before(void *state)
{
    tally_begin(&((struct blk_state *)state)->tally);
    return 0;
}

static int after(void *state)
{
    tally_end(&((struct blk_state *)state)->tally);
    return 0;
}

static void count(void *state, struct tx_counters *sum)
{
    *sum = ((struct blk_state *)state)->tally.sum;
}

const struct tx_system libpmemblk_system = {
    .name = "libpmemblk",
    .start = start,
    .finish = finish,
    .reset = reset,
    .before = before,
    .after = after,
    .run = {[OP_BLOCK] = write_block},
    .count = count,
    .message = pmemblk_errormsg,
};
