/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mutants.h - bugs in the library, on demand: functions of it that other files call are
 * wrapped by the linker, so that the library itself knows nothing of them.
 */
#ifndef MUTANTS_H
#define MUTANTS_H

#include <stdbool.h>

enum mutant {
    MUTANT_NONE,
    /* In the run. */
    MUTANT_RANGE_NOT_LOGGED,    /* I1 */
    MUTANT_RECORD_TOO_SHORT,    /* I1 */
    MUTANT_SNAPSHOT_NOT_LOGGED, /* I1 */
    MUTANT_BLOCKS_NOT_LOGGED,   /* I1 */
    MUTANT_SWAP_NOT_LOGGED,     /* I1 */
    MUTANT_NOT_SETTLED,         /* I3 */
    MUTANT_WORD_NOT_NOTED,      /* I6 */
    MUTANT_FREED_TOO_EARLY,     /* I5 */
    MUTANT_NOT_RELEASED,
    MUTANT_NOT_PUBLISHED,
    MUTANT_BITS_NOT_FLUSHED,    /* I3 */
    MUTANT_TORN_BATCH_IS_VALID, /* I7; in recovery, too */
    /* In recovery. */
    MUTANT_NEWEST_BATCH_NOT_UNDONE, /* I6, as all of these */
    MUTANT_OLDEST_FIRST,
    MUTANT_OTHER_LANES_FORGOTTEN,
    MUTANT_ONLY_LIVE_LANES_SETTLED, /* I4 */
    MUTANT_SETTLED_MOVES_BACK,      /* I4 */
    MUTANT_FREE_NOT_UNDONE,
    MUTANT_ALLOC_NOT_UNDONE,
    MUTANT_TWINS_NOT_RELOADED,
};

/* Which bug to have from now on. */
void mutate(enum mutant mutant);

#endif
