/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The floor: what it costs to make the bytes durable with no atomicity at all. Small
 * ranges are stored and flushed, larger ones streamed, with one fence; all by libpmem.
 */
#include "bench/tx/tx.h"

#include <errno.h>
#include <libpmem.h>
#include <stdbool.h>
#include <stdlib.h>

#include "bench/scratch.h"

#define LINE 64u
#define STREAM_FROM 256u /* bytes: libpmem's own limit for non-temporal stores */

struct floor_state {
    uint8_t *region;
    struct tx_counters sum;
};

static int start(void **state)
{
    struct floor_state *floor = calloc(1, sizeof(*floor));
    const char *path = scratch_path("floor");
    size_t mapped_size;
    int is_pmem;

    if (!floor)
        return -ENOMEM;
    floor->region = pmem_map_file(path, REGION_SIZE, PMEM_FILE_CREATE | PMEM_FILE_EXCL,
                                  0600, &mapped_size, &is_pmem);
    scratch_unlink(path);
    if (!floor->region) {
        int rc = -errno;

        free(floor);
        return rc;
    }
    *state = floor;
    return 0;
}

static void finish(void *state)
{
    struct floor_state *floor = state;

    pmem_unmap(floor->region, REGION_SIZE);
    free(floor);
}

static int reset(void *state, enum tx_op op, uint64_t size)
{
    struct floor_state *floor = state;

    (void)op;
    pmem_memset_persist(floor->region, 0, size);
    return 0;
}

static int store(void *state, const struct tx_change *change)
{
    struct floor_state *floor = state;
    bool stream = change->size >= STREAM_FROM;
    unsigned flags = stream ? PMEM_F_MEM_NONTEMPORAL : PMEM_F_MEM_TEMPORAL;
    uint64_t lines = 0;

    for (uint32_t i = 0; i < change->ranges; i++) {
        uint64_t offset = change->offset[i];

        pmem_memcpy(floor->region + offset, change->src, change->size,
                    flags | PMEM_F_MEM_NODRAIN);
        lines += (offset % LINE + change->size + LINE - 1) / LINE;
    }
    pmem_drain();
    floor->sum.fences++;
    *(stream ? &floor->sum.lines_streamed : &floor->sum.lines_flushed) += (double)lines;
    return 0;
}

static void count(void *state, struct tx_counters *sum)
{
    *sum = ((struct floor_state *)state)->sum;
}

const struct tx_system floor_system = {
    .name = "floor",
    .start = start,
    .finish = finish,
    .reset = reset,
    .run = {[OP_RANGES] = store,
            [OP_PROVE] = store,
            [OP_BLOCK] = store,
            [OP_SNAPSHOT] = store,
            [OP_STORE64] = store},
    .count = count,
    .message = pmem_errormsg,
};
