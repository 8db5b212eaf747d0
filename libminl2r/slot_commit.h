/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot_commit.h - commit in two fences, where block slots say whether it happened.
 *
 * The log of such a transaction holds, of each slot that it swaps, the old and the new
 * block; of bytes that change beside them, the old ones and a hash of all new ones; and
 * what is allocated besides:
 *
 *   logged     after F1, as in commit.c
 *   stored     slots, bits and bytes; F2: commit returns, and the generation is live
 *
 * Recovery of a live one:
 *
 *   committed?   if there are bytes: those in place have the hash; else: the first slot
 *                does not name the old block
 *   finish       each slot that names its old or new block gets the new one; the new
 *                one's bit is set, the old one's cleared. A slot that names another
 *                block was swapped again since, and one in a block that is free again
 *                was copied elsewhere: their blocks are no longer this log's. The bits
 *                of all that was allocated besides are set.
 *   undo         bytes, slots and bits are brought back
 *
 * live.h has what this asks of those who come later. Bytes may ride along only where
 * the program promises to store nothing behind the library's back
 * (MINL2R_COMMIT_PROVE).
 */
#ifndef MINL2R_SLOT_COMMIT_H
#define MINL2R_SLOT_COMMIT_H

#include "libminl2r/commit.h"

/* What a transaction would log and own. */
struct slot_plan {
    uint64_t changes_size, swaps_size, allocs_size; /* of their records */
    struct interval slots;                          /* that holds all of them */
    struct interval blocks; /* that holds all that is allocated besides */
    struct owned bytes;
};

/* False if `tx` cannot commit by its slots. */
bool slot_commit_plan_changes(const struct minl2r_tx *tx, struct slot_plan *plan);

/* Not worth a look where it swaps nothing. */
static inline bool slot_commit_plan(const struct minl2r_tx *tx, struct slot_plan *plan)
{
    return (tx->writes.fresh_count > 0 || tx->pool->prove) &&
           slot_commit_plan_changes(tx, plan);
}

int slot_commit(struct minl2r_tx *tx, const struct slot_plan *plan);

/*
 * Finishes or undoes the live slot commit of a lane, validated, and flushes all that it
 * names; the caller fences. Adds to `done` what it undoes. `scratch` is as for
 * recovery_undo().
 */
void slot_commit_recover(struct minl2r_pool *pool, uint32_t lane,
                         const struct log_live *live, uint8_t *scratch,
                         struct pm_phase *phase, struct minl2r_recovery *done);

#endif
