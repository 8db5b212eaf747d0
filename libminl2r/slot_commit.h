/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot_commit.h - commit in two fences, where block slots say whether it happened.
 *
 * The log of such a transaction holds, of each slot that it swaps, the old and the new
 * block, and, of bytes that change beside them, the old and the new ones:
 *
 *   logged     after F1, as in commit.c
 *   stored     slots, bits and bytes; F2: commit returns, and the generation is live
 *
 * Recovery of a live one:
 *
 *   committed?   if there are bytes: all of them are new; else: the first slot does not
 *                name the old block
 *   finish       each slot that names its old or new block gets the new one; the new
 *                one's bit is set, the old one's cleared. A slot that names another
 *                block was swapped again since, and one in a block that is free again
 *                was copied elsewhere: their blocks are no longer this log's.
 *   undo         bytes, slots and bits are brought back
 *
 * live.h has what this asks of those who come later. Bytes may ride along only where
 * the program promises to store nothing behind the library's back
 * (MINL2R_COMMIT_PROVE).
 */
#ifndef MINL2R_SLOT_COMMIT_H
#define MINL2R_SLOT_COMMIT_H

#include "libminl2r/commit.h"

/* Can `tx` commit by its slots? Not worth a look where it swaps nothing. */
bool slot_commit_fits(const struct minl2r_tx *tx);

static inline bool slot_commit_is_possible(const struct minl2r_tx *tx)
{
    return tx->writes.fresh_count > 0 || tx->pool->prove;
}

int slot_commit(struct minl2r_tx *tx);

/*
 * Finishes or undoes the live slot commit of a lane, validated, and flushes all that it
 * names; the caller fences. Adds to `done` what it undoes. `scratch` is as for
 * recovery_undo().
 */
void slot_commit_recover(struct minl2r_pool *pool, uint32_t lane,
                         const struct log_live *live, uint8_t *scratch,
                         struct pm_phase *phase, struct minl2r_recovery *done);

#endif
