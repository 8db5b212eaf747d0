/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commit protocol in small: each way to get it wrong has a scenario that shows it.
 * What the scenarios do not think of, sequences of all kinds of transactions try.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "tests/model/explore.h"
#include "tests/unit/long.h"

/* Cells of the scenarios. `INNER` lies in block X, `MOVED` in block Y. */
enum { S0, S1, S2, INNER, MOVED, A, B, TIME, LAST };
enum { X = 1, Y, P, Q, R, T };

#define CHANGE(cell, old, new)                                                         \
    {                                                                                  \
        true, cell, old, new                                                           \
    }
#define SLOTS (1 << S0 | 1 << S1 | 1 << S2 | 1 << INNER | 1 << MOVED)
#define HOLDERS                                                                        \
    {                                                                                  \
        [INNER] = X, [MOVED] = Y                                                       \
    }

/* S0 names X, and S1 names P. */
#define SCENARIO(...)                                                                  \
    {                                                                                  \
        .cells = {[S0] = X, [S1] = P}, .slots = SLOTS, .holder = HOLDERS, __VA_ARGS__  \
    }

static const struct scenario scenarios[] = {
    SCENARIO(.name = "a slot and two cells change together",
             .ops = {{.kind = OP_SLOT,
                      .slots = {CHANGE(S1, P, Q), CHANGE(S2, 0, R)},
                      .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)},
                      .fills = {Q, R}}},
             .op_count = 1, .later = {{.kind = OP_WORD, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "blocks are allocated and freed by the log",
             .ops = {{.kind = OP_LOGGED,
                      .cells = {CHANGE(S1, P, Q), CHANGE(A, 0, 1)},
                      .fills = {Q},
                      .allocs = {Q},
                      .frees = {P}}},
             .op_count = 1, .later = {{.kind = OP_LOGGED, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "fresh bytes over cells of a live batch",
             .ops = {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1), CHANGE(TIME, 0, 1)}},
                     {.kind = OP_SLOT,
                      .after = 1,
                      .cells = {CHANGE(A, 1, 2)},
                      .fresh = CHANGE(TIME, 1, 2)}},
             .op_count = 2),
    {.name = "cells exchange their values, and another one changes",
     .cells = {[S0] = X, [S1] = P, [A] = 1, [B] = 2, [LAST] = 3},
     .slots = SLOTS,
     .holder = HOLDERS,
     .ops = {{.kind = OP_SLOT,
              .cells = {CHANGE(A, 1, 2), CHANGE(B, 2, 1), CHANGE(LAST, 3, 4)}}},
     .op_count = 1},
    SCENARIO(.name = "two lanes change cells of a third one's live batch",
             .ops =
                 {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                  {.kind = OP_SLOT, .lane = 1, .after = 1, .cells = {CHANGE(A, 1, 2)}},
                  {.kind = OP_SLOT, .lane = 2, .after = 1, .cells = {CHANGE(B, 1, 2)}}},
             .op_count = 3),
    SCENARIO(.name = "two lanes change cells that a third one owns by one range",
             .ops =
                 {{.kind = OP_SLOT,
                   .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1), CHANGE(LAST, 0, 1)}},
                  {.kind = OP_SLOT, .lane = 1, .after = 1, .cells = {CHANGE(B, 1, 2)}},
                  {.kind = OP_SLOT,
                   .lane = 2,
                   .after = 1,
                   .cells = {CHANGE(LAST, 1, 2)}}},
             .op_count = 3,
             .later = {{.kind = OP_WORD, .cells = {CHANGE(LAST, 0, 9)}}}),
    SCENARIO(.name = "a cell between those of a range",
             .ops = {{.kind = OP_SLOT,
                      .cells = {CHANGE(A, 0, 1), CHANGE(LAST, 0, 1), CHANGE(B, 0, 1)}},
                     {.kind = OP_SLOT, .after = 1, .cells = {CHANGE(A, 1, 2)}},
                     {.kind = OP_SLOT, .lane = 1, .cells = {CHANGE(TIME, 0, 1)}},
                     {.kind = OP_WORD,
                      .lane = 2,
                      .after = 4,
                      .cells = {CHANGE(TIME, 1, 2)}}},
             .op_count = 4),
    SCENARIO(.name = "one lane changes cells of two others",
             .ops = {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                     {.kind = OP_SLOT,
                      .lane = 1,
                      .cells = {CHANGE(TIME, 0, 1), CHANGE(LAST, 0, 1)}},
                     {.kind = OP_SLOT,
                      .lane = 2,
                      .after = 3,
                      .cells = {CHANGE(A, 1, 2), CHANGE(LAST, 1, 2)}}},
             .op_count = 3),
    SCENARIO(.name = "a lane goes on while another looks at what it owns",
             .ops =
                 {{.kind = OP_SLOT,
                   .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1), CHANGE(LAST, 0, 1)}},
                  {.kind = OP_SLOT, .after = 1, .cells = {CHANGE(TIME, 0, 1)}},
                  {.kind = OP_SLOT, .lane = 1, .after = 1, .cells = {CHANGE(A, 1, 2)}},
                  {.kind = OP_WORD, .lane = 2, .after = 1, .cells = {CHANGE(B, 1, 2)}}},
             .op_count = 4),
    SCENARIO(.name = "two generations of a lane are settled at once",
             .ops =
                 {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1)}},
                  {.kind = OP_SLOT, .after = 1, .cells = {CHANGE(B, 0, 1)}},
                  {.kind = OP_SLOT, .lane = 1, .after = 1, .cells = {CHANGE(A, 1, 2)}},
                  {.kind = OP_SLOT, .lane = 2, .after = 2, .cells = {CHANGE(B, 1, 2)}}},
             .op_count = 4),
    SCENARIO(.name = "a word of a live batch",
             .ops =
                 {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                  {.kind = OP_WORD, .lane = 1, .after = 1, .cells = {CHANGE(A, 1, 2)}}},
             .op_count = 2),
    SCENARIO(.name = "a word of the lane's own live batch",
             .ops = {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                     {.kind = OP_WORD, .after = 1, .cells = {CHANGE(A, 1, 2)}}},
             .op_count = 2),
    {.name = "a slot of a live batch is changed as a word",
     .cells = {[S0] = X},
     .slots = SLOTS,
     .holder = HOLDERS,
     .ops = {{.kind = OP_SLOT,
              .slots = {CHANGE(S2, 0, R)},
              .cells = {CHANGE(S1, 0, R)},
              .fills = {R}},
             {.kind = OP_WORD, .lane = 1, .after = 1, .cells = {CHANGE(S2, R, 0)}}},
     .op_count = 2},
    SCENARIO(.name = "the second of two slots is changed as a word",
             .ops = {{.kind = OP_SLOT,
                      .slots = {CHANGE(S1, P, Q), CHANGE(S2, 0, R)},
                      .cells = {CHANGE(INNER, 0, R)},
                      .fills = {Q, R}},
                     {.kind = OP_WORD,
                      .lane = 1,
                      .after = 1,
                      .cells = {CHANGE(S2, R, 0)}}},
             .op_count = 2),
    SCENARIO(.name = "a block moves to another slot",
             .ops = {{.kind = OP_SLOT, .slots = {CHANGE(S2, 0, R)}, .fills = {R}},
                     {.kind = OP_LOGGED,
                      .lane = 1,
                      .after = 1,
                      .cells = {CHANGE(S2, R, 0), CHANGE(S1, P, R)},
                      .frees = {P}}},
             .op_count = 2),
    SCENARIO(.name = "a block is freed with the block that holds its slot",
             .ops = {{.kind = OP_SLOT, .slots = {CHANGE(INNER, 0, R)}, .fills = {R}},
                     {.kind = OP_LOGGED,
                      .lane = 1,
                      .after = 1,
                      .cells = {CHANGE(S0, X, 0)},
                      .frees = {X, R}},
                     {.kind = OP_LOGGED,
                      .lane = 2,
                      .after = 2,
                      .cells = {CHANGE(S2, 0, X)},
                      .fresh = CHANGE(INNER, R, 0),
                      .fills = {X},
                      .allocs = {X}}},
             .op_count = 3),
    SCENARIO(.name = "the block that holds a slot moves",
             .ops = {{.kind = OP_SLOT, .slots = {CHANGE(INNER, 0, R)}, .fills = {R}},
                     {.kind = OP_SLOT,
                      .lane = 1,
                      .after = 1,
                      .slots = {CHANGE(S0, X, Y)},
                      .fresh = CHANGE(MOVED, 0, R),
                      .fills = {Y}},
                     {.kind = OP_SLOT,
                      .lane = 2,
                      .after = 2,
                      .slots = {CHANGE(MOVED, R, Q)},
                      .fills = {Q}}},
             .op_count = 3),
    SCENARIO(.name = "the second of two slots is swapped again",
             .ops = {{.kind = OP_SLOT,
                      .slots = {CHANGE(S1, P, Q), CHANGE(S2, 0, R)},
                      .fills = {Q, R}},
                     {.kind = OP_SLOT,
                      .lane = 1,
                      .after = 1,
                      .slots = {CHANGE(S2, R, T)},
                      .fills = {T}}},
             .op_count = 2),
    SCENARIO(.name = "a block that was allocated beside a slot is swapped",
             .ops = {{.kind = OP_SLOT,
                      .cells = {CHANGE(S2, 0, Y)},
                      .fresh = CHANGE(MOVED, 0, R),
                      .fills = {Y, R},
                      .allocs = {Y, R}},
                     {.kind = OP_SLOT,
                      .lane = 1,
                      .after = 1,
                      .slots = {CHANGE(MOVED, R, Q)},
                      .fills = {Q}}},
             .op_count = 2, .later = {{.kind = OP_WORD, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "a block that was allocated beside a slot is freed by a log",
             .ops = {{.kind = OP_SLOT,
                      .slots = {CHANGE(S1, P, Q)},
                      .cells = {CHANGE(S2, 0, R)},
                      .fills = {Q, R},
                      .allocs = {R}},
                     {.kind = OP_LOGGED,
                      .lane = 1,
                      .after = 1,
                      .cells = {CHANGE(S2, R, 0)},
                      .frees = {R}},
                     {.kind = OP_SLOT,
                      .lane = 2,
                      .after = 2,
                      .slots = {CHANGE(S2, 0, R)},
                      .fills = {R}}},
             .op_count = 3),
    SCENARIO(.name = "a block is used again",
             .ops = {{.kind = OP_SLOT, .slots = {CHANGE(S1, P, Q)}, .fills = {Q}},
                     {.kind = OP_SLOT,
                      .lane = 1,
                      .after = 1,
                      .drains = true,
                      .slots = {CHANGE(S0, X, R)},
                      .fills = {R}},
                     {.kind = OP_SLOT,
                      .lane = 2,
                      .after = 1,
                      .slots = {CHANGE(S2, 0, P)},
                      .fills = {P}}},
             .op_count = 3),
    SCENARIO(.name = "a full pool gets its blocks out of quarantine",
             .ops = {{.kind = OP_SLOT, .slots = {CHANGE(S1, P, Q)}, .fills = {Q}},
                     {.kind = OP_SLOT,
                      .lane = 1,
                      .after = 1,
                      .needs_room = true,
                      .slots = {CHANGE(S1, Q, P)},
                      .fills = {P}}},
             .op_count = 2),
    SCENARIO(.name = "two snapshots, and then a longer log",
             .ops = {{.kind = OP_SNAPSHOT, .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                     {.kind = OP_LOGGED,
                      .after = 1,
                      .cells = {CHANGE(A, 1, 2), CHANGE(TIME, 0, 2)}}},
             .op_count = 2,
             .later = {{.kind = OP_SLOT, .lane = 1, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "an abort",
             .ops =
                 {{.kind = OP_SNAPSHOT,
                   .aborts = true,
                   .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                  {.kind = OP_WORD, .lane = 1, .after = 1, .cells = {CHANGE(A, 0, 2)}}},
             .op_count = 2,
             .later = {{.kind = OP_SLOT, .lane = 1, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "a killed lane and a word",
             .ops = {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}},
                     {.kind = OP_SLOT, .after = 1, .cells = {CHANGE(B, 1, 2)}},
                     {.kind = OP_WORD, .lane = 1, .cells = {CHANGE(TIME, 0, 1)}}},
             .op_count = 3,
             .later = {{.kind = OP_SLOT, .lane = 1, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "a batch that a torn log has left",
             .ops = {{.kind = OP_SLOT, .cells = {CHANGE(TIME, 0, 1)}},
                     {.kind = OP_LOGGED,
                      .after = 1,
                      .cells = {CHANGE(A, 0, 1), CHANGE(B, 0, 1)}}},
             .op_count = 2,
             .later = {{.kind = OP_WORD, .cells = {CHANGE(B, 0, 9)}},
                       {.kind = OP_LOGGED, .cells = {CHANGE(A, 0, 9)}}}),
    SCENARIO(.name = "a lane commits while another puts it to sleep",
             .ops =
                 {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1)}},
                  {.kind = OP_SAME, .lane = 1, .idle = 1 << 0},
                  {.kind = OP_SLOT, .lane = 2, .after = 1, .cells = {CHANGE(A, 1, 2)}}},
             .op_count = 3),
    SCENARIO(.name = "a lane commits while two others look for idle ones",
             .ops =
                 {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1)}},
                  {.kind = OP_SAME, .lane = 1, .idle = 1 << 0},
                  {.kind = OP_SAME, .lane = 2, .idle = 1 << 0},
                  {.kind = OP_WORD, .lane = 2, .after = 1, .cells = {CHANGE(A, 1, 2)}}},
             .op_count = 4),
    SCENARIO(.name = "two lanes put each other to sleep",
             .ops =
                 {{.kind = OP_SLOT, .cells = {CHANGE(A, 0, 1)}},
                  {.kind = OP_SAME, .lane = 1, .idle = 1 << 2},
                  {.kind = OP_SLOT, .lane = 1, .after = 1, .cells = {CHANGE(A, 1, 2)}},
                  {.kind = OP_SAME, .lane = 2, .idle = 1 << 1}},
             .op_count = 4),
    SCENARIO(.name = "a lane frees a block while another puts it to sleep",
             .ops = {{.kind = OP_SLOT, .slots = {CHANGE(S1, P, Q)}, .fills = {Q}},
                     {.kind = OP_SAME, .lane = 1, .idle = 1 << 0},
                     {.kind = OP_SAME, .lane = 1, .needs_room = true},
                     {.kind = OP_SLOT,
                      .lane = 2,
                      .slots = {CHANGE(S2, 0, P)},
                      .fills = {P}},
                     {.kind = OP_SAME, .lane = 1, .after = 1, .needs_room = true}},
             .op_count = 5),
};
#define SCENARIO_COUNT (sizeof(scenarios) / sizeof(scenarios[0]))

static void every_interleaving_and_crash_is_right(void **state)
{
    (void)state;
    for (size_t i = 0; i < SCENARIO_COUNT; i++) {
        struct exploration x = {.kill = !scenario_has_sleep(&scenarios[i])};
        bool right = explore(&scenarios[i], &x);

        print_message("%s: %llu states, %llu crashes\n", scenarios[i].name,
                      (unsigned long long)x.states, (unsigned long long)x.crashes);
        if (!right)
            print_message("%s\n", x.violation);
        assert_false(x.got_stuck);
        assert_true(right);
    }
}

static const char *const mutant_names[MUTANTS] = {
    [LOG_NOT_FENCED] = "the log is not fenced",
    [CHANGE_NOT_FENCED] = "what changes is not fenced",
    [LOGGED_SETTLES_NOBODY] = "who logs does not settle the other lanes",
    [LOGGED_IS_NOT_SETTLED] = "who logs does not settle its own lane",
    [SETTLED_WITH_THE_CHANGE] = "who logs settles by the fence of the change",
    [SLOT_SETTLES_NO_CELLS] = "a slot transaction settles nobody",
    [FRESH_SETTLES_NOBODY] = "fresh bytes settle nobody",
    [FRESH_SETTLES_WITHOUT_FENCE] = "fresh bytes settle by F1",
    [WORD_SETTLES_NOBODY] = "a word settles nobody",
    [WORD_SETTLES_WITHOUT_FENCE] = "a word settles by its own fence",
    [SETTLED_IS_STORED] = "settled is stored, not raised",
    [SETTLED_IS_NOT_FLUSHED] = "settled is not flushed where it is raised already",
    [SETTLED_BEFORE_THE_FENCE] = "a lane counts as settled before the fence",
    [NO_QUARANTINE] = "freed blocks are used at once",
    [QUARANTINE_ENDS_BEFORE_THE_FENCE] = "quarantine ends before the fence",
    [QUARANTINE_SETTLES_NOBODY] = "the end of quarantine settles nobody",
    [SNAPSHOT_IS_NOT_SETTLED] = "snapshots are not settled",
    [ABORT_IS_NOT_SETTLED] = "an abort is not settled",
    [ABORT_SETTLES_WITH_THE_RESTORE] = "an abort settles by the fence of the restore",
    [WORD_IS_NOT_NOTED] = "a word is not noted",
    [SLOT_IS_ALWAYS_UNDONE] = "a slot transaction is undone though committed",
    [SLOT_IS_NEVER_UNDONE] = "a slot transaction is finished though not committed",
    [SLOT_IS_NOT_FINISHED] = "a committed slot transaction is not finished",
    [ALLOC_IS_NOT_UNDONE] = "an allocation is not undone",
    [FREE_IS_NOT_UNDONE] = "a freeing is not undone",
    [FINISH_IGNORES_LATER_SWAPS] = "finishing ignores later swaps",
    [FINISH_IGNORES_FREED_HOLDERS] = "finishing ignores freed holders of slots",
    [ONLY_FIRST_CELL_IS_HASHED] = "only the first of several cells is hashed",
    [LAST_CELL_IS_NOT_HASHED] = "the last of several cells is not hashed",
    [HASH_IGNORES_PLACES] = "the hash is the same wherever the values are",
    [LAST_CELL_IS_NOT_UNDONE] = "the last of several cells is not undone",
    [LAST_RANGE_IS_REPLACED] = "the last range holds the newest cell only",
    [LAST_RANGE_IS_OVERLOOKED] = "only the first range is looked at",
    [SLOTS_ARE_NOT_JOINED] = "only the first slot is owned",
    [RANGES_CHANGE_BEFORE_THE_LOG] = "a lane's ranges change before its log",
    [SLOT_SETTLES_ONE_LANE] = "a slot transaction settles one lane only",
    [FREEING_SETTLES_NOBODY] = "who frees does not settle who allocated",
    [BLOCKS_ARE_NOT_JOINED] = "only the first allocated block is owned",
    [ALLOC_IS_NOT_FINISHED] = "a committed allocation is not finished",
    [RECOVERY_FLUSHES_CHANGES_ONLY] = "recovery flushes only what it changes",
    [RECOVERY_SETTLES_LIVE_LANES_ONLY] = "recovery settles live lanes only",
    [RECOVERY_SETTLES_WITH_THE_UNDOING] = "recovery settles by the fence of undoing",
    [RECOVERY_SETTLES_ONE_GENERATION] = "recovery settles one generation only",
    [RECOVERY_OVERLOOKS_TORN_HEADS] =
        "recovery overlooks the generation of a torn head",
    [RECOVERY_SETTLES_NO_ATTEMPT] = "recovery settles no attempt without a head",
    [LIVE_LANES_FALL_ASLEEP] = "a lane falls asleep that is live",
    [IDLE_SETTLES_BEFORE_THE_FENCE] = "an idle lane counts as settled before the fence",
    [DROWSY_IS_NOT_LOOKED_AT] = "a lane that is drowsy is not looked at again",
    [SLEEPS_WITHOUT_A_MARK] = "a lane falls asleep without having been drowsy",
    [TWO_PUT_LANES_TO_SLEEP] = "two put a lane to sleep at once",
    [LIVE_DOES_NOT_WAKE] = "a lane does not wake once it is live",
    [WAKES_BEFORE_IT_IS_LIVE] = "a lane wakes before it is live",
    [WAKES_AFTER_IT_FREES] = "a lane wakes after it has freed blocks",
    [WAKES_BEFORE_IT_COUNTS] = "a lane wakes before it is counted",
    [OWN_IS_READ_BEFORE_THE_COUNT] = "the own lane is looked at before the count",
};

static bool is_killed(void)
{
    for (size_t i = 0; i < SCENARIO_COUNT; i++) {
        bool has_sleep = scenario_has_sleep(&scenarios[i]);
        struct exploration x = {.kill = !has_sleep};

        if (mutant >= FIRST_OF_SLEEP && !has_sleep)
            continue;
        if (!explore(&scenarios[i], &x) && x.violation[0]) {
            print_message("%s: %s\n", mutant_names[mutant], x.violation);
            return true;
        }
    }
    return false;
}

static void every_mutant_is_killed(void **state)
{
    uint32_t survived = 0;

    (void)state;
    for (mutant = NO_MUTANT + 1; mutant < MUTANTS; mutant++) {
        if (is_killed())
            continue;
        print_message("%s: SURVIVED\n", mutant_names[mutant]);
        survived++;
    }
    mutant = NO_MUTANT;
    assert_int_equal(survived, 0);
}

/* ---- Sequences ------------------------------------------------------------------- */

/* A scenario in the making, and what its ops find if they run one after another. */
struct sequence {
    struct scenario scenario;
    uint16_t cells[CELLS];
    bool used_before[BLOCKS];
};

enum kind {
    SWAP,
    FILL,
    SWAP_AND_FILL,
    FILL_WITH_CELL,
    CELLS_ALONE,
    CELLS_WITH_TIME,
    MANY_CELLS,
    SWAP_WITH_FRESH,
    ALLOC,
    SWAP_AND_ALLOC,
    WORD,
    LOGGED,
    LOGGED_FREE,
    SNAPSHOT,
    ABORT,
    KINDS
};

static struct change change_of(struct sequence *s, uint8_t cell, uint16_t new)
{
    struct change change = {true, cell, s->cells[cell], new};

    s->cells[cell] = new;
    return change;
}

static struct change next_value(struct sequence *s, uint8_t cell)
{
    return change_of(s, cell, s->cells[cell] + 1);
}

/* The lowest block that no slot names and that `op` does not free. */
static uint8_t lowest_free(const struct sequence *s, const struct op *op)
{
    uint32_t taken = 1;

    for (unsigned i = 0; i < CELLS; i++)
        if (SLOTS >> i & 1)
            taken |= 1u << s->cells[i];
    for (int i = 0; i < 2; i++)
        if (op->slots[i].used)
            taken |= 1u << op->slots[i].old;
    return (uint8_t)__builtin_ctz(~taken);
}

static struct change swap(struct sequence *s, struct op *op, int i, uint8_t cell)
{
    uint8_t block = lowest_free(s, op);
    uint16_t old = s->cells[cell];
    struct change change = change_of(s, cell, block);

    op->fills[i] = block;
    op->needs_room |= s->used_before[block];
    s->used_before[old] = true;
    return change;
}

/* What S2 is to name is allocated besides; the slot changes as a plain cell. */
static void alloc(struct sequence *s, struct op *op)
{
    op->cells[op->cells[0].used] = swap(s, op, 1, S2);
    op->allocs[0] = op->fills[1];
}

static void free_slot(struct sequence *s, struct op *op)
{
    op->cells[0] = change_of(s, S2, 0);
    op->frees[0] = (uint8_t)op->cells[0].old;
    s->used_before[op->cells[0].old] = true;
}

static struct op op_of_kind(struct sequence *s, enum kind kind)
{
    struct op op = {.kind = kind < WORD ? OP_SLOT : OP_LOGGED};
    bool allocs = kind == ALLOC || kind == SWAP_AND_ALLOC;

    if (kind == SWAP || kind == SWAP_AND_FILL || kind == SWAP_WITH_FRESH ||
        kind == SWAP_AND_ALLOC)
        op.slots[0] = swap(s, &op, 0, S1);
    if (kind == FILL || kind == SWAP_AND_FILL || kind == FILL_WITH_CELL ||
        (allocs && s->cells[S2] != 0))
        op.slots[1] = swap(s, &op, 1, S2);
    if (!op.slots[0].used) {
        op.slots[0] = op.slots[1];
        op.slots[1].used = false;
    }
    if (kind == SWAP_WITH_FRESH)
        op.fresh = next_value(s, TIME);
    if (kind == WORD)
        op.kind = OP_WORD;
    if (kind == SNAPSHOT || kind == ABORT)
        op.kind = OP_SNAPSHOT;
    if (kind == LOGGED_FREE)
        free_slot(s, &op);
    else if (op.kind != OP_SLOT || !op.slots[0].used || kind == FILL_WITH_CELL)
        op.cells[0] = next_value(s, A);
    if (allocs && !op.slots[1].used && s->cells[S2] == 0)
        alloc(s, &op);
    if (kind == MANY_CELLS)
        op.cells[2] = next_value(s, LAST);
    if (kind == CELLS_WITH_TIME)
        op.cells[1] = next_value(s, TIME);
    else if (kind == CELLS_ALONE || kind == MANY_CELLS || kind == LOGGED ||
             op.kind == OP_SNAPSHOT)
        op.cells[1] = next_value(s, B);
    if (kind != ABORT)
        return op;
    op.aborts = true;
    s->cells[A] = op.cells[0].old;
    s->cells[B] = op.cells[1].old;
    return op;
}

static uint32_t touched(const struct op *op)
{
    uint32_t mask = op->fresh.used ? 1u << op->fresh.cell : 0;

    for (unsigned i = 0; i < CHANGED_MAX; i++)
        mask |= op->cells[i].used ? 1u << op->cells[i].cell : 0;
    for (int i = 0; i < 2; i++) {
        mask |= op->slots[i].used ? 1u << op->slots[i].cell : 0;
        mask |= op->slots[i].used ? 1u << (CELLS + op->slots[i].old) : 0;
        mask |= 1u << (CELLS + op->fills[i]) | 1u << (CELLS + op->frees[i]);
    }
    return mask & ~(1u << CELLS);
}

static void append(struct sequence *s, enum kind kind, uint8_t lane, bool drains)
{
    struct scenario *scenario = &s->scenario;
    struct op op = op_of_kind(s, kind);

    op.lane = lane;
    op.drains = drains;
    for (uint8_t i = 0; i < scenario->op_count; i++)
        if (touched(&scenario->ops[i]) & touched(&op))
            op.after |= (uint8_t)(1u << i);
    scenario->ops[scenario->op_count++] = op;
}

/* `number` says which kinds; the lanes are those of `lanes`. */
static void make_sequence(struct sequence *s, uint32_t number, uint32_t length,
                          const uint8_t *lanes, bool drains)
{
    *s = (struct sequence){.scenario = scenarios[0]};
    s->scenario.name = "sequence";
    s->scenario.op_count = 0;
    memcpy(s->cells, s->scenario.cells, sizeof(s->cells));
    for (uint32_t i = 0; i < length; i++, number /= KINDS)
        append(s, (enum kind)(number % KINDS), lanes[i], drains);
}

static void explore_sequences(uint32_t length, const uint8_t *lanes, bool drains,
                              bool kill)
{
    struct exploration x = {.kill = kill};
    uint32_t count = 1;

    for (uint32_t i = 0; i < length; i++)
        count *= KINDS;
    for (uint32_t number = 0; number < count; number++) {
        struct sequence s;

        make_sequence(&s, number, length, lanes, drains);
        if (!explore(&s.scenario, &x))
            print_message("sequence %u: %s\n", number,
                          x.got_stuck ? "stuck" : x.violation);
        assert_false(x.got_stuck);
        assert_string_equal(x.violation, "");
    }
    print_message("%u sequences of %u: %llu states, %llu crashes\n", count, length,
                  (unsigned long long)x.states, (unsigned long long)x.crashes);
}

static void sequences_of_two_are_right(void **state)
{
    static const uint8_t lanes[][2] = {{0, 0}, {0, 1}};

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int drains = 0; drains < 2; drains++)
            explore_sequences(2, lanes[i], drains, true);
}

static void sequences_of_three_are_right(void **state)
{
    static const uint8_t lanes[][3] = {
        {0, 1, 2}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}, {0, 0, 0}};

    (void)state;
    if (!is_long_test()) {
        explore_sequences(3, lanes[0], false, false);
        return;
    }
    for (int i = 0; i < 5; i++)
        for (int drains = 0; drains < 2; drains++)
            explore_sequences(3, lanes[i], drains, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_interleaving_and_crash_is_right),
        cmocka_unit_test(every_mutant_is_killed),
        cmocka_unit_test(sequences_of_two_are_right),
        cmocka_unit_test(sequences_of_three_are_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
