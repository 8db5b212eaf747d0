/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ops.h - what bench-pmfs measures: calls of pmfs.h, and beside them the floor: the same
 * bytes moved with no filesystem and no atomicity.
 */
#ifndef BENCH_PMFS_OPS_H
#define BENCH_PMFS_OPS_H

#include <stddef.h>
#include <stdint.h>

#include "include/pmfs.h"

#define SPAN_SIZE ((uint64_t)64 << 20) /* what random offsets cover */

/* A filesystem, a pool and plain memory, all touched before. */
struct bench {
    struct pmfs *fs;
    uint64_t file;            /* of SPAN_SIZE bytes */
    uint64_t tail;            /* a file that grows */
    uint64_t symlink;         /* to `file` */
    uint64_t dirs[2];         /* for names */
    struct minl2r_pool *pool; /* for transactions without a filesystem */
    const uint8_t *region;    /* [SPAN_SIZE] of it */
    uint8_t *floor;           /* [SPAN_SIZE] */
    uint8_t *buffer;          /* [BUFFER_SIZE] */
    uint64_t random_state;
};
#define BUFFER_SIZE ((size_t)1 << 20)

int bench_make(struct bench *bench);
void bench_finish(struct bench *bench);

struct op;
typedef int op_fn(struct bench *bench, const struct op *op, uint64_t number);

struct op {
    const char *name;
    uint32_t size;            /* bytes; 0: does not apply */
    uint32_t chunk;           /* operations between two `reset`s, which are not timed */
    op_fn *reset;             /* NULL: nothing */
    op_fn *run;               /* `number` counts from 0 in each chunk */
    op_fn *floor;             /* NULL: there is none */
    const struct op *library; /* runs in the same rounds; NULL: nothing */
};

extern const struct op ops[];
extern const size_t op_count;

#endif
