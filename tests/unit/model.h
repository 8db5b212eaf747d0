/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - random transactions on a pool, and on plain arrays beside it.
 *
 * A world is what one program could keep in a pool: areas of bytes, some of them blocks
 * that a slot names, which may be holes, some of them runs that come and go. One of the
 * blocks, the container, holds slots itself. A world has one transaction at a time. For
 * each area the model knows what was committed and what the running transaction sees.
 */
#ifndef MODEL_H
#define MODEL_H

#include "tests/unit/fixture.h"
#include "tests/unit/random.h"

#define WORLD_SLOTS 5  /* of a block of their own; the first names the container */
#define WORLD_NESTED 3 /* slots in the container */
#define WORLD_RUNS 4
#define WORLD_NAMED (WORLD_SLOTS + WORLD_NESTED)
#define WORLD_AREAS (1 + WORLD_NAMED + WORLD_RUNS)
#define WORLD_EDITS 16

struct area {
    uint64_t offset; /* 0: not there, or a hole */
    size_t size;
    size_t slots_size; /* of its bytes, the first are slots */
    uint8_t *committed;
    uint8_t *seen;  /* by the running transaction */
    uint8_t *marks; /* per byte: AREA_QUEUED, AREA_FRESH */
    const uint64_t *slot;
    bool own;     /* allocated by the running transaction */
    bool freed;   /* by the running transaction */
    bool by_slot; /* written by slot in the running transaction */
};

struct model_edit {
    struct area *area;
    size_t at, size;
    uint8_t *copy;
};

struct world {
    struct minl2r_pool *pool;
    struct random *random;
    struct minl2r_tx *tx; /* NULL: none runs */
    uint32_t block_size;
    uint64_t slots_offset;
    struct area areas[WORLD_AREAS]; /* one that stays, named ones, runs */
    struct model_edit edits[WORLD_EDITS];
    int edit_count;
    bool may_fail; /* calls may answer -ENOMEM and -ENOSPC, and then do nothing */
    uint64_t operations, failures, commits, aborts;
};

/* Makes the world's areas in the pool. */
void world_create(struct world *world, struct minl2r_pool *pool, struct random *random);
void world_destroy(struct world *world);

/* Finds everything again in the pool opened anew; what was not committed is gone. */
void world_reopen(struct world *world, struct minl2r_pool *pool);

/* One random call, made to both; begins a transaction if none runs. */
void world_step(struct world *world);

/* Ends the running transaction, if any, and compares. */
void world_end(struct world *world, bool commit);

/* Compares all that is committed with the pool; no transaction may run. */
void world_compare(const struct world *world);

/* Blocks that the world has in the pool. */
uint64_t world_blocks(const struct world *world);

#endif
