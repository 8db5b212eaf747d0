/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explore.h - crashes a traced run at every point where it matters, in every way the
 * model allows, recovers each state in place and asks the oracles.
 *
 * Crash points are before each fence and at the return of each operation: what can be
 * lost in between can also be lost at the next of them. Besides, the process is killed
 * after every store call: recovery runs on what the caches hold, and the power fails
 * during it or after. A power failure during the recovery from a power failure is
 * explored, too.
 *
 * The oracles: the pool is consistent before and after recovery; it shows one of the
 * expected images; recovering again changes nothing; no generation can come again (I4);
 * no reservation is left; and it can be used.
 */
#ifndef EXPLORE_H
#define EXPLORE_H

#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/pool.h"
#include "tests/crash/pm_shadow.h"

/* Bytes that may be there before their operation is: those of minl2r_tx_write_fresh().
 */
struct loose_range {
    uint64_t offset, size;
    uint32_t operation; /* bit of `has` */
};

#define EXPECTED_MAX 4
#define LOOSE_MAX 8

/* The images of which a recovered pool must show one, in all its allocated blocks. */
struct expectation {
    const uint8_t *images[EXPECTED_MAX];
    uint32_t has[EXPECTED_MAX]; /* the running operations that the image has, as bits */
    uint32_t count;
    struct loose_range loose[LOOSE_MAX];
    uint32_t loose_count;
    bool returned; /* begins with the return of an operation: itself a crash point */
    bool may_be_no_pool; /* it is being made */
    const char *stage;
};

struct explore_options {
    enum minl2r_medium medium;
    uint64_t states_max;        /* per crash point: up to here every state */
    uint64_t nested_states_max; /* the same, for crashes in recovery; 0: none */
    bool kill;
    uint32_t first;     /* expectations of lower number are not explored */
    uint32_t use_every; /* every so many states the pool is used, too; 0: never */
    int (*use)(struct minl2r_pool *pool); /* 0, or what went wrong */
    uint32_t
        again_every; /* so often, the power fails in a transaction after recovery */
    int (*again)(
        struct minl2r_pool *pool); /* that transaction: 0, or what went wrong */
    struct shadow_fault fault;     /* of every recovery; its trace is the recovery's */
    uint64_t seed;
};

/* What happened to be explored. */
struct explore_count {
    uint64_t exact;   /* crash points of which every state was seen */
    uint64_t bounded; /* the others */
    uint64_t kills;
    uint64_t states; /* different ones */
    uint64_t nested; /* of these, in recovery */
    uint64_t again;  /* transactions after recovery that were crashed */
    uint64_t undone; /* recoveries that had something to undo */
};

struct explore {
    struct explore_options options;
    uint8_t *image; /* what was durable before `trace`; as it was, afterwards */
    uint64_t size;
    uint8_t *scratch[2]; /* of `size` bytes, for transactions after recovery */
    const struct shadow_trace *trace;
    const struct expectation *expectations; /* named by the marks of the trace */

    struct explore_count count; /* added to */
    char failure[1024];         /* empty: none */
};

/* True if no oracle found anything; else `failure` says what, and where it came from.
 */
bool explore(struct explore *explore);

#endif
