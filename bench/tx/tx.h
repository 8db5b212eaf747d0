/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tx.h - the transaction benchmark: what is measured (workloads), on what (systems),
 * and where it goes (columns).
 *
 * Each system keeps a region of REGION_SIZE bytes and, for `block`, as many bytes of
 * blocks. An operation makes one change durable in it. Positions are visited in a fixed
 * scattered order that is the same for every system and touches each position once per
 * pass; each pass writes another byte, so that every byte written differs from the one
 * before.
 */
#ifndef BENCH_TX_H
#define BENCH_TX_H

#include <stddef.h>
#include <stdint.h>

#include "bench/table.h"

#define REGION_SIZE ((uint64_t)64 << 20) /* pattern `random` */
#define HOT_SIZE ((uint64_t)64 << 10)    /* pattern `hot` */
#define BLOCK_SIZE 4096u
#define RANGES_MAX 64

#define OPEN_POOL_SIZE ((uint64_t)1 << 30)
#define RECOVER_POOL_SIZE ((uint64_t)32 << 20)
#define BUSY_LANES 8u        /* transactions that recovery undoes, */
#define BUSY_SIZE BLOCK_SIZE /* of one range of so many bytes each */
#define BUSY_TOTAL ((size_t)BUSY_LANES * BUSY_SIZE)

/* ---- Workloads ------------------------------------------------------------------- */

enum tx_op {
    OP_READ,           /* a transaction that reads and changes nothing */
    OP_RANGES,         /* a transaction of some ranges */
    OP_PROVE,          /* the same, where the program promises MINL2R_COMMIT_PROVE */
    OP_BLOCK,          /* part of one block, or all of it */
    OP_SNAPSHOT,       /* undo first, then direct stores */
    OP_STORE64,        /* one aligned word */
    OP_ABORT_QUEUED,   /* the change is given up before anything was stored in place */
    OP_ABORT_SNAPSHOT, /* the change is given up after all of it was stored in place */
    OP_OPEN,           /* opening and closing a clean pool */
    OP_RECOVER,        /* opening a pool with BUSY_LANES unfinished transactions */
    OP_COUNT
};

struct workload {
    const char *name;    /* as in the JSON: its `case` */
    const char *pattern; /* "hot", "random", or NULL */
    enum tx_op op;
    uint32_t size; /* bytes of one range */
    uint32_t ranges;
    uint32_t changed_pct; /* of `size`; 0: does not apply, but for OP_ABORT_QUEUED */
};

/* Every workload, in the order in which they run. */
extern const struct workload workloads[];
extern const size_t workload_count;

/* One operation: `size` bytes of `src` go to each offset. */
struct tx_change {
    const uint8_t *src;
    uint32_t size;
    uint32_t ranges;
    uint64_t offset[RANGES_MAX];
};

/* ---- Systems --------------------------------------------------------------------- */

/* What one operation costs besides time; NAN where it is not known. */
struct tx_counters {
    double fences;
    double lines_flushed;
    double lines_streamed;
    double log_payload_bytes;
    double log_bytes;
};

typedef int tx_op_fn(void *state, const struct tx_change *change);

/*
 * All answer 0 or a negative errno; message() then says more. `before` and `after`,
 * which may be NULL, surround each batch and are not timed. run[op] is NULL where the
 * system has nothing to compare with.
 */
struct tx_system {
    const char *name;
    int (*start)(void **state);
    void (*finish)(void *state);
    int (*reset)(void *state, enum tx_op op,
                 uint64_t size); /* zeroes that many bytes */
    int (*before)(void *state);
    int (*after)(void *state);
    tx_op_fn *run[OP_COUNT];
    void (*count)(void *state,
                  struct tx_counters *sum); /* since start; NULL: unknown */
    const char *(*message)(void);
};

extern const struct tx_system minl2r_system, minl2r_prove_system, minl2r_open_system,
    minl2r_recover_system;
extern const struct tx_system libpmemobj_system, libpmemobj_open_system,
    libpmemobj_recover_system;
extern const struct tx_system libpmemblk_system;
extern const struct tx_system floor_system;

/* What the minl2r system says of its pool: medium, reason and flush method. */
void minl2r_describe(void *state, char *text, size_t size);

/* Time that the last OP_RECOVER spent in validating and undoing. */
uint64_t minl2r_recovery_ns(void *state);

/* ---- Results --------------------------------------------------------------------- */

enum tx_column {
    TX_CASE,
    TX_SYSTEM,
    TX_PATTERN,
    TX_SIZE,
    TX_RANGES,
    TX_CHANGED_PCT,
    TX_FENCES,
    TX_LINES_FLUSHED,
    TX_LINES_STREAMED,
    TX_LOG_PAYLOAD_BYTES,
    TX_LOG_BYTES,
    TX_NS_MEDIAN,
    TX_NS_MIN,
    TX_NS_MAX,
    TX_RATIO_LIBPMEMOBJ,
    TX_RATIO_FLOOR,
    TX_COLUMN_COUNT
};

extern const struct column tx_columns[TX_COLUMN_COUNT];

/* Prints every bar with the figure that `results` has for it, and whether it is met. */
int bars_print(const struct table *results, enum table_format format, FILE *out);

#endif
