/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - a small pool in memory, operations run on it through the shadow door, and
 * what may be seen of them after a crash.
 */
#ifndef RUN_H
#define RUN_H

#include <stdint.h>

#include "tests/crash/explore.h"

#define BED_SIZE ((uint64_t)1 << 20) /* the least that a pool can have */
#define BED_BLOCK_SIZE ((uint64_t)512)

/* What operations change; the root object holds two, so that two transactions can be
 * open at once. Its slots and runs name blocks of its own. */
struct side {
    uint64_t words[32];
    uint8_t bytes[256];
    uint64_t slots[16]; /* blocks; some are holes */
    uint64_t runs[8];   /* two blocks each; some are 0 */
    struct minl2r_slab slab;
    uint64_t object; /* of the slab */
    uint8_t unused[120];
    uint8_t area[6 * BED_BLOCK_SIZE];
};
_Static_assert(sizeof(struct side) == 8 * BED_BLOCK_SIZE, "sides share no block");

/* A pool with a root object, or without, as runs begin with it: durable and closed. */
struct bed {
    uint8_t *memory;
};
void bed_init(struct bed *bed, const struct minl2r_options *options, bool with_root);
/* Allocates every block that can be allocated: the spare ones stay free. */
void bed_fill(struct bed *bed);
void bed_finish(struct bed *bed);

/* Changes the pool through `side`, NULL where there is no root. 0, or the line that
 * failed. */
typedef int operation_fn(struct minl2r_pool *pool, const struct side *side);

#define RUN_OPERATIONS_MAX 4

/* The stages that a crash can meet an operation in, and the expectations of each. */
enum { STAGE_OUTER, STAGE_BOTH, STAGE_INNER_DONE, STAGE_DONE, STAGES };

struct run {
    struct minl2r_pool pool;
    uint8_t *live;    /* the pool as the program sees it */
    uint8_t *durable; /* as it was at first */
    struct shadow_trace trace;
    struct expectation expectations[RUN_OPERATIONS_MAX * STAGES];
    uint8_t *images[RUN_OPERATIONS_MAX * EXPECTED_MAX];
    uint32_t operation_count;
    struct loose_range loose[LOOSE_MAX]; /* of the running operations */
    uint32_t loose_count;
    char failure[1024]; /* empty: none */

    /* The operation within the running one. */
    operation_fn *inner;
    bool inner_running;
    unsigned inner_side;
    uint32_t inner_pause; /* where: the pause of this number */
    uint32_t pauses;
    uint8_t *inner_before, *inner_after;
};

void run_begin(struct run *run, const struct bed *bed, enum minl2r_medium medium);

/* Runs an operation on the first side. */
void run_operation(struct run *run, operation_fn *operation);

/* The same, but at pause `pause` of it, `inner` runs on side `side`, start to end.
 * False if it has no such pause. */
bool run_two(struct run *run, operation_fn *outer, operation_fn *inner, unsigned side,
             uint32_t pause);

/* Instead of run_begin(): makes a pool of `memory`. Until it is made, it may be none.
 */
void run_format(struct run *run, const uint8_t *memory,
                const struct minl2r_options *options);

/*
 * Runs an operation whose commit has to fail since its fence `nth` does. It may have
 * changed the pool to `after`, or not at all, and later changes have to fail, too.
 */
void run_failing_operation(struct run *run, operation_fn *operation, uint32_t nth,
                           const uint8_t *after);

/* Explores all crashes of the operations run. `options->medium` is as in run_begin().
 */
bool run_explore(struct run *run, const struct explore_options *options,
                 struct explore_count *count);

void run_end(struct run *run);

/* Frees what ended runs and beds keep for the next ones. */
void run_forget_memory(void);

/* For operations: bytes that may be there before the operation is. */
void run_note_loose(const struct minl2r_pool *pool, const void *pm, uint64_t size);

/* Bytes that were never there before: the same in each run. */
void run_new_bytes(void *bytes, uint64_t size);

/* For explore_options: changes a recovered pool in some ways; in one transaction. */
int run_use(struct minl2r_pool *pool);
int run_again(struct minl2r_pool *pool);

#endif
