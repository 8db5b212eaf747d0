/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_operations.h - one transaction of each kind, and the pool that they change.
 * Compiled with hooks.
 */
#ifndef LIBRARY_OPERATIONS_H
#define LIBRARY_OPERATIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/pool.h"

#define LIBRARY_SIZE ((uint64_t)1 << 20) /* the least that a pool can have */
#define LIBRARY_BLOCK_SIZE ((uint64_t)512)
#define LIBRARY_SIDES 3

/* What operations change; the root object holds several, so that transactions can be
 * open at once. Its slots and runs name blocks of its own. */
struct side {
    uint64_t words[32];
    uint8_t bytes[256];
    uint64_t slots[16]; /* blocks; some are holes */
    uint64_t runs[8];   /* two blocks each; some are 0 */
    struct minl2r_slab slab;
    uint64_t object; /* of the slab */
    uint8_t again[120];
    uint8_t area[6 * LIBRARY_BLOCK_SIZE];
    /*
     * LIBRARY_MANY are slots, one is left out amid them, and LIBRARY_TREE names nodes.
     */
    uint64_t many[LIBRARY_BLOCK_SIZE / sizeof(uint64_t)];
};
_Static_assert(sizeof(struct side) == 9 * LIBRARY_BLOCK_SIZE, "sides share no block");
#define LIBRARY_MANY 16
#define LIBRARY_TREE (LIBRARY_MANY + 1)

/* Changes the pool through `side`, NULL where there is no root, in a transaction that
 * is committed then. 0 or a negative errno: then it is aborted. */
typedef int operation_fn(struct minl2r_pool *pool, struct minl2r_tx *tx,
                         const struct side *side);

enum {
    OPERATION_IS_CORE = 1,        /* one of those that longer sequences are made of */
    OPERATION_HOLDS_LANE = 2,     /* while it can be paused */
    OPERATION_FITS_FULL = 4,      /* works on a full pool */
    OPERATION_ONLY_COMMITS = 8,   /* all of its fences are those of one commit */
    OPERATION_HAS_LONE_WORD = 16, /* changes the word that store_word stores */
    OPERATION_HAS_NO_TX = 32,
    OPERATION_ABORTS = 64,       /* in place of committing */
    OPERATION_ONLY_IN_ROWS = 128 /* no other one runs in it, nor it in another */
};

struct operation {
    const char *name;
    unsigned flags;
    operation_fn *call;           /* or, where it is NULL, */
    const struct change *changes; /* up to the end */
};
extern const struct operation library_operations[];
extern const uint32_t library_operation_count;

/*
 * The one of this name, or NULL. Besides the ones above there are reopen, which comes
 * between two; create_root, for a pool without; and format, for what is no pool: that
 * has no call.
 */
const struct operation *library_find_operation(const char *name);

/* Does it. 0 or a negative errno. */
int library_operate(const struct operation *operation, struct minl2r_pool *pool,
                    const struct side *side);

/* Fills a new pool. 0 or a negative errno. */
int library_fill(struct minl2r_pool *pool);
/* Allocates every block that can be allocated: the spare ones stay free. */
int library_fill_blocks(struct minl2r_pool *pool);

/* Changes a recovered pool in some ways. 0 or a negative errno; -EBADMSG: it does not
 * hold what was stored. */
int library_use(struct minl2r_pool *pool);
/* The same in one transaction, which changes `again` of the first side only. */
int library_do_again(struct minl2r_pool *pool);
#define LIBRARY_AGAIN_BYTE 0xa5
#define LIBRARY_AGAIN_END 112

static inline bool library_again_changes(uint64_t at)
{
    return at < 8 || (72 <= at && at < LIBRARY_AGAIN_END);
}

/* ---- For operations -------------------------------------------------------------- */

/* The process ends without closing the pool, and another one opens it. */
operation_fn library_reopen;

/* Bytes that were never there before: the same in each run. */
void library_new_bytes(void *bytes, uint64_t size);

/* Another operation may run now. */
void library_pause(void);

/* Bytes that may be there before the operation is: those of minl2r_tx_write_fresh(). */
void library_note_loose(const struct minl2r_pool *pool, const void *pm, uint64_t size);

#endif
