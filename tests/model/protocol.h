/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protocol.h - the commit protocol, small enough to try every interleaving and every
 * crash of it. This is what libminl2r does; docs/DESIGN.md says why.
 *
 * A pool of a few cells (8-byte words: slots, which name blocks, and plain ones), of
 * blocks with one word of content, and of lanes. Five kinds of transactions:
 *
 *   logged    old values to the log; F1; store in place; F2; settle; F3.
 *             A live batch of it is undone.
 *   slot      old values, old and new blocks, what is allocated besides, and a hash to
 *             the log; F1; store in place; F2. It stays live until somebody settles it
 *             or the lane's next batch takes its place. A live one says itself whether
 *             it committed: if it has plain cells, their hash is that of their new
 *             values, which the batch has; else its first slot does not hold the old
 *             block. It is then finished, or undone.
 *   word      one cell, no log
 *   snapshot  two cells, each logged before it is stored; then commit, or abort
 *   same      what is there already: no log, and F1
 *
 * A slot transaction that returned leaves a live batch that can be finished or undone
 * wrongly, when somebody changes later what the batch speaks of. The rules:
 *
 *   settle      Who logs settles every live lane: the store rides on F1. A slot
 *               transaction, or a word, settles the lanes whose plain cells it changes,
 *               and those whose slots it changes as plain cells; fresh bytes do not
 *               wait for F1, so they and lone words need a fence of their own.
 *   freeing     A slot transaction settles the lanes that allocated, besides slots, a
 *               block that it frees: there is no slot that would tell.
 *   ranges      What a lane owns are ranges of cells, of which the last is joined of
 *               all that are too many, one of slots, and one of blocks that it
 *               allocated besides. They take the place of those of the lane's last
 *               batch after F2: that one is live until F1.
 *   max         `settled` is raised by an atomic maximum and flushed by everyone who
 *               counts on it; a lane counts as settled only after the settler's fence.
 *   sleep       Who looks for idle lanes settles one that is live, and puts one to
 *               sleep that is not: nobody looks at it, nor at any, if as few are awake
 *               as a count says. It is drowsy first, and then looked at again. Its
 *               holder wakes it after the store that makes it live, and before it frees
 *               blocks. Lanes are counted before they wake, and no more once they
 *               sleep. One at a time puts lanes to sleep: a mark is the own one. Stores
 *               are seen in order here; that the one to `live` may be late is
 *               test_lane's.
 *   quarantine  A block is used again only once every batch that was live when it was
 *               freed is not: whoever takes blocks out of quarantine settles all lanes.
 *   guard       Who finishes a slot transaction looks at each slot by itself: what
 *               holds neither its old nor its new block, or lies in a block that was
 *               freed, has changed since, and so may have its blocks.
 *   recovery    flushes everything that a live batch names, changed or not, and settles
 *               every lane above any generation that can have been tried: one more than
 *               that of its log's head, whole or torn, or than `settled`.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdbool.h>
#include <stdint.h>

#include "tests/model/machine.h"

#define LANES 3u
#define BLOCKS 8u /* number 0 is a hole */
#define CELLS 9u
#define CHANGED_MAX 3u /* plain cells of one transaction */
#define OWNED_MAX 2u   /* ranges; the last one holds all that are too many */
#define OPS_MAX 6u

/* ---- Words of the machine -------------------------------------------------------- */

enum {
    SETTLED = 0,
    HEAD = SETTLED + LANES, /* a batch is whole if its two ends are the same */
    TAIL = HEAD + LANES,
    NEXT = TAIL + LANES, /* the second batch of the lane's generation */
    NOTE = NEXT + LANES, /* cell + 1 that is stored without a log */
    BIT = NOTE + LANES,  /* of each block: it is allocated */
    CONTENT = BIT + BLOCKS,
    CELL = CONTENT + BLOCKS,
};
_Static_assert(CELL + CELLS <= MACHINE_WORDS, "the machine is large enough");

/* ---- Transactions ---------------------------------------------------------------- */

enum op_kind { OP_LOGGED = 1, OP_SLOT, OP_WORD, OP_SNAPSHOT, OP_SAME };

struct change {
    bool used;
    uint8_t cell;
    uint16_t old, new;
};

struct op {
    enum op_kind kind;
    uint8_t lane;  /* and thread */
    uint8_t after; /* bit per op that returned before: the caller's locks */
    bool aborts;
    bool drains;            /* takes all blocks out of quarantine, by its own F1 */
    bool needs_room;        /* the same, by a fence before it begins */
    uint8_t idle;           /* bit per lane: before F1 it looks whether that is idle */
    struct change slots[2]; /* old and new block; the new one is the op's own */
    /* Plain cells, and slots that are not swapped; three of slot ops, else two. */
    struct change cells[CHANGED_MAX];
    struct change fresh; /* stored before F1, and never logged */
    uint8_t fills[2];    /* blocks that get new content */
    uint8_t allocs[2];   /* besides those of slots; a slot op has slots or cells, too */
    uint8_t frees[2];    /* of logged ops */
};

struct scenario {
    const char *name;
    uint16_t cells[CELLS];
    uint8_t holder[CELLS]; /* the block that the cell lies in; 0: the root */
    uint8_t slots;         /* bit per cell */
    struct op ops[OPS_MAX];
    uint8_t op_count;
    struct op later[2]; /* by who comes after a kill; kind 0: none. Their old values are
                           those that they find. */
};

/* ---- Bugs ------------------------------------------------------------------------ */

enum mutant {
    NO_MUTANT,
    LOG_NOT_FENCED,
    CHANGE_NOT_FENCED,
    LOGGED_SETTLES_NOBODY,
    LOGGED_IS_NOT_SETTLED,
    SETTLED_WITH_THE_CHANGE,
    SLOT_SETTLES_NO_CELLS,
    FRESH_SETTLES_NOBODY,
    FRESH_SETTLES_WITHOUT_FENCE,
    WORD_SETTLES_NOBODY,
    WORD_SETTLES_WITHOUT_FENCE,
    SETTLED_IS_STORED,
    SETTLED_IS_NOT_FLUSHED,
    SETTLED_BEFORE_THE_FENCE,
    NO_QUARANTINE,
    QUARANTINE_ENDS_BEFORE_THE_FENCE,
    QUARANTINE_SETTLES_NOBODY,
    SNAPSHOT_IS_NOT_SETTLED,
    ABORT_IS_NOT_SETTLED,
    ABORT_SETTLES_WITH_THE_RESTORE,
    WORD_IS_NOT_NOTED,
    SLOT_IS_ALWAYS_UNDONE,
    SLOT_IS_NEVER_UNDONE,
    SLOT_IS_NOT_FINISHED,
    ALLOC_IS_NOT_UNDONE,
    FREE_IS_NOT_UNDONE,
    FINISH_IGNORES_LATER_SWAPS,
    FINISH_IGNORES_FREED_HOLDERS,
    ONLY_FIRST_CELL_IS_HASHED,
    LAST_CELL_IS_NOT_HASHED,
    HASH_IGNORES_PLACES,
    LAST_CELL_IS_NOT_UNDONE,
    LAST_RANGE_IS_REPLACED,
    LAST_RANGE_IS_OVERLOOKED,
    SLOTS_ARE_NOT_JOINED,
    RANGES_CHANGE_BEFORE_THE_LOG,
    SLOT_SETTLES_ONE_LANE,
    FREEING_SETTLES_NOBODY,
    BLOCKS_ARE_NOT_JOINED,
    ALLOC_IS_NOT_FINISHED,
    RECOVERY_FLUSHES_CHANGES_ONLY,
    RECOVERY_SETTLES_LIVE_LANES_ONLY,
    RECOVERY_SETTLES_WITH_THE_UNDOING,
    RECOVERY_SETTLES_ONE_GENERATION,
    RECOVERY_OVERLOOKS_TORN_HEADS,
    RECOVERY_SETTLES_NO_ATTEMPT,
    FIRST_OF_SLEEP, /* from here on: where somebody looks for idle lanes */
    LIVE_LANES_FALL_ASLEEP = FIRST_OF_SLEEP,
    IDLE_SETTLES_BEFORE_THE_FENCE,
    DROWSY_IS_NOT_LOOKED_AT,
    SLEEPS_WITHOUT_A_MARK,
    TWO_PUT_LANES_TO_SLEEP,
    LIVE_DOES_NOT_WAKE,
    WAKES_BEFORE_IT_IS_LIVE,
    WAKES_AFTER_IT_FREES,
    WAKES_BEFORE_IT_COUNTS,
    OWN_IS_READ_BEFORE_THE_COUNT,
    MUTANTS
};
extern enum mutant mutant;

/* ---- Running --------------------------------------------------------------------- */

#define STEPS_MAX 250u

struct step {
    uint8_t what;
    uint8_t op;
    uint8_t word;
    uint8_t value;
};

struct program {
    struct step steps[STEPS_MAX];
    uint8_t count;
};

/* Cells, or blocks, [low, high); none if they are equal. */
struct range {
    uint8_t low, high;
};

/* What a lane's live batch owns. */
struct owned {
    struct range ranges[OWNED_MAX];
    struct range slots;
    struct range blocks;
};

enum wakefulness { ASLEEP, DROWSY, AWAKE };

/* DRAM and threads. */
struct twin {
    uint8_t pc[LANES];
    uint8_t begun, returned; /* bit per op */
    uint8_t generation[LANES];
    uint8_t live[LANES]; /* the id of the live batch of a slot op; 0: none known */
    struct owned owned[LANES];
    uint8_t seen[LANES][LANES]; /* per thread: what it is about to settle */
    uint8_t taken[LANES];       /* per thread: blocks on their way out of quarantine */
    uint8_t free, quarantine;   /* bit per block */
    uint8_t wakefulness[LANES];
    uint8_t found[LANES]; /* per thread: about the lane that it looks at */
    uint8_t awake;        /* as they are counted */
    uint8_t alone;        /* bit per thread: it looks at nobody */
    uint8_t putter;       /* the thread that puts a lane to sleep, and 1 */
};

struct state {
    struct machine machine;
    struct twin twin;
};
_Static_assert(sizeof(struct state) == sizeof(struct machine) + sizeof(struct twin),
               "states are compared byte by byte");

/* Does an op look for idle lanes? Then all are asleep at first, else awake. */
bool scenario_has_sleep(const struct scenario *scenario);

/* Programs for the ops from `first` on. */
void program_compile(struct program programs[LANES], const struct scenario *scenario,
                     uint8_t first);

/* Does the next step of `thread`. False if there is none, or it has to wait. */
bool program_step(const struct program *program, const struct scenario *scenario,
                  struct state *state, uint8_t thread);

/* ---- Recovery -------------------------------------------------------------------- */

/* What recovery does to a machine, in order; `word` is flushed. */
struct recovery_step {
    bool store, fence;
    uint8_t word;
    uint16_t value;
};

struct recovery {
    struct recovery_step steps[96];
    uint8_t count;
};

/* Recovers `words`; `recovery` may be NULL. */
void recover(const struct scenario *scenario, uint16_t *words,
             struct recovery *recovery);

#endif
