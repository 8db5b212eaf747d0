/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * word_commit.h - commit without a log, where a single aligned word changes in place.
 *
 * Its store is atomic. Fresh bytes come before it: those in its own line in order, as
 * stores to one line arrive, the others by a fence, as in commit.c.
 */
#ifndef MINL2R_WORD_COMMIT_H
#define MINL2R_WORD_COMMIT_H

#include "libminl2r/tx.h"

/*
 * The entry of the only word that changes; NULL: there is more than that and fresh
 * bytes.
 */
const struct block_write *word_commit_find(const struct minl2r_tx *tx);

/* Are these fresh bytes in the word's line? */
bool word_commit_brings(const struct block_write *word,
                        const struct fresh_write *fresh);

int word_commit(struct minl2r_tx *tx, const struct block_write *word);

/* Without a transaction: note, store, flush, fence. */
int word_store64(struct minl2r_pool *pool, const uint64_t *p, uint64_t value);

#endif
