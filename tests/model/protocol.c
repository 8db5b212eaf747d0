/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/model/protocol.h"

#include <assert.h>
#include <string.h>

enum mutant mutant;

enum what {
    AWAIT, /* the ops of mask `word` returned */
    BEGIN,
    RETURN,
    TAKE_BLOCK,
    NEW_GENERATION,
    STORE,
    STORE_AND_FLUSH,
    FLUSH,
    FENCE,
    LOG,   /* the batch's word `word` */
    LOOK,  /* at lane `word`: does `value`, a look, want it settled? */
    RAISE, /* its settled word, if so */
    OWN,   /* range `word`, for the batch that is going to be live */
    UNLIVE,
    SETTLE,
    LIVE, /* 1: and what it frees goes into quarantine */
    QUARANTINE,
    DEAD,
    RELEASE,
    TAKE_QUARANTINE,
    RELEASE_TAKEN,

    COUNT, /* its own lane, unless that is awake */
    WAKE,  /* if so */
    UNCOUNT,
    WAKE_FIRST,
    COUNT_LATE,
    ASK_FOR_OTHERS,
    ARE_THERE_OTHERS,
    FIND_IDLE, /* lane `word` */
    BEGIN_PUTTING,
    MAKE_DROWSY,
    LOOK_AGAIN,
    PUT_TO_SLEEP,
    COUNT_SLEEPER,
    END_PUTTING,
};

/*
 * Whom to settle; those that own something are found by a look at each of the ranges.
 */
enum policy { SETTLE_ALL, SETTLE_CHANGED, SETTLE_WORD, SETTLE_FRESH, POLICIES };

uint8_t line_of(uint8_t word)
{
    return word >= BIT && word < BIT + BLOCKS ? BIT : word;
}

/* ---- Batches --------------------------------------------------------------------- */

/* A batch is known by its op, its place in the log, and its generation. */
static uint8_t batch_id(uint8_t op, uint8_t place, uint8_t generation)
{
    assert(op < OPS_MAX && generation < 16);
    return (uint8_t)((op * 2 + place + 1) << 4 | generation);
}

static uint8_t id_op(uint16_t id)
{
    return (uint8_t)(((id >> 4) - 1) / 2);
}

static uint8_t id_generation(uint16_t id)
{
    return id & 15;
}

/* ---- What is owned --------------------------------------------------------------- */

static struct range range_of(uint8_t cell)
{
    return (struct range){cell, (uint8_t)(cell + 1)};
}

static bool is_empty(struct range range)
{
    return range.low == range.high;
}

static struct range join(struct range a, struct range b)
{
    if (is_empty(a))
        return b;
    return (struct range){a.low < b.low ? a.low : b.low,
                          a.high > b.high ? a.high : b.high};
}

static bool overlap(struct range a, struct range b)
{
    return a.low < b.high && b.low < a.high;
}

static struct owned owned_by(const struct op *op)
{
    struct owned owned = {0};

    for (unsigned i = 0, count = 0; i < CHANGED_MAX; i++) {
        struct range *last = &owned.ranges[OWNED_MAX - 1];

        if (!op->cells[i].used)
            continue;
        if (count < OWNED_MAX)
            owned.ranges[count++] = range_of(op->cells[i].cell);
        else if (mutant == LAST_RANGE_IS_REPLACED)
            *last = range_of(op->cells[i].cell);
        else
            *last = join(*last, range_of(op->cells[i].cell));
    }
    for (int i = 0; i < (mutant == SLOTS_ARE_NOT_JOINED ? 1 : 2); i++)
        if (op->slots[i].used)
            owned.slots = join(owned.slots, range_of(op->slots[i].cell));
    for (int i = 0; i < (mutant == BLOCKS_ARE_NOT_JOINED ? 1 : 2); i++)
        if (op->allocs[i])
            owned.blocks = join(owned.blocks, range_of(op->allocs[i]));
    return owned;
}

/* Does `op` change bytes, or as bytes also slots, that lie in `bytes` and `slots`? */
static bool changes(const struct op *op, struct range bytes, struct range slots)
{
    struct owned own = owned_by(op);

    for (unsigned i = 0; i < OWNED_MAX; i++)
        if (overlap(own.ranges[i], bytes) || overlap(own.ranges[i], slots))
            return true;
    return overlap(own.slots, bytes);
}

/* Does a slot op free a block that lies in `blocks`? */
static bool frees_any(const struct op *op, struct range blocks)
{
    for (int i = 0; i < 2; i++)
        if (op->slots[i].used && op->slots[i].old &&
            overlap(range_of((uint8_t)op->slots[i].old), blocks))
            return true;
    return false;
}

/* The look at range `index` of what a lane owns; at the first, at all else, too. */
static bool wants_settled(const struct op *op, const struct owned *owned,
                          enum policy policy, unsigned index)
{
    static const struct range none;

    if (policy == SETTLE_ALL)
        return true;
    if (policy == SETTLE_FRESH)
        return overlap(range_of(op->fresh.cell), owned->ranges[index]);
    if (policy == SETTLE_CHANGED && index == 0 && mutant != FREEING_SETTLES_NOBODY &&
        frees_any(op, owned->blocks))
        return true;
    return changes(op, owned->ranges[index], index == 0 ? owned->slots : none);
}

/* ---- Transactions to steps ------------------------------------------------------- */

struct compiler {
    struct program *program;
    const struct op *op;
    uint8_t index;
    bool has_sleep;
};

static void emit(const struct compiler *c, enum what what, unsigned word,
                 unsigned value)
{
    struct program *program = c->program;

    assert(program->count < STEPS_MAX);
    program->steps[program->count++] =
        (struct step){(uint8_t)what, c->index, (uint8_t)word, (uint8_t)value};
}

static void settle_lanes(const struct compiler *c, enum policy policy, bool own)
{
    unsigned looks =
        policy == SETTLE_ALL || mutant == LAST_RANGE_IS_OVERLOOKED ? 1 : OWNED_MAX;

    for (uint8_t lane = 0; lane < LANES; lane++) {
        if (lane == c->op->lane && !own)
            continue;
        for (unsigned i = 0; i < looks; i++)
            emit(c, LOOK, lane, i * POLICIES + policy);
        emit(c, RAISE, lane, 0);
    }
}

static void settle_with_fence(const struct compiler *c, enum policy policy)
{
    settle_lanes(c, policy, true);
    emit(c, FENCE, 0, 0);
    emit(c, UNLIVE, 0, 0);
}

/* Where nobody looks for idle lanes, all are awake. */
static void wake(const struct compiler *c)
{
    if (!c->has_sleep)
        return;
    if (mutant == WAKES_BEFORE_IT_COUNTS) {
        emit(c, WAKE_FIRST, c->op->lane, 0);
        emit(c, COUNT_LATE, 0, 0);
        return;
    }
    emit(c, COUNT, c->op->lane, 0);
    emit(c, WAKE, c->op->lane, 0);
    emit(c, UNCOUNT, 0, 0);
}

static void look_for_idle(const struct compiler *c)
{
    if (!c->op->idle)
        return;
    for (uint8_t lane = 0; lane < LANES; lane++) {
        if (!(c->op->idle >> lane & 1))
            continue;
        emit(c, FIND_IDLE, lane, 0);
        emit(c, RAISE, lane, 0);
        if (mutant == IDLE_SETTLES_BEFORE_THE_FENCE)
            emit(c, UNLIVE, 0, 0);
        emit(c, BEGIN_PUTTING, 0, 0);
        emit(c, MAKE_DROWSY, lane, 0);
        emit(c, LOOK_AGAIN, lane, 0);
        emit(c, PUT_TO_SLEEP, lane, 0);
        emit(c, COUNT_SLEEPER, 0, 0);
        emit(c, END_PUTTING, 0, 0);
    }
}

/* By a log. */
static void settle_others(const struct compiler *c, enum policy policy)
{
    if (c->has_sleep) {
        emit(c, ASK_FOR_OTHERS, c->op->lane, 0);
        emit(c, ARE_THERE_OTHERS, c->op->lane, 0);
    }
    look_for_idle(c);
    settle_lanes(c, policy, false);
}

static void begin(const struct compiler *c)
{
    emit(c, AWAIT, c->op->after, 0);
    emit(c, BEGIN, 0, 0);
    if (c->op->needs_room) {
        emit(c, TAKE_QUARANTINE, 0, 0);
        settle_with_fence(c, SETTLE_ALL);
        emit(c, RELEASE_TAKEN, 0, 0);
    }
    for (int i = 0; i < 2; i++)
        if (c->op->fills[i])
            emit(c, TAKE_BLOCK, c->op->fills[i], 0);
    wake(c);
}

static void drain(const struct compiler *c)
{
    if (!c->op->drains)
        return;
    emit(c, TAKE_QUARANTINE, 0, 0);
    if (mutant == QUARANTINE_ENDS_BEFORE_THE_FENCE)
        emit(c, RELEASE_TAKEN, 0, 0);
}

static void settle_before_fresh(const struct compiler *c)
{
    if (!c->op->fresh.used || mutant == FRESH_SETTLES_NOBODY)
        return;
    if (mutant == FRESH_SETTLES_WITHOUT_FENCE)
        settle_lanes(c, SETTLE_FRESH, true);
    else
        settle_with_fence(c, SETTLE_FRESH);
}

static void store_fresh(const struct compiler *c)
{
    if (c->op->fresh.used)
        emit(c, STORE_AND_FLUSH, CELL + c->op->fresh.cell, c->op->fresh.new);
    for (int i = 0; i < 2; i++)
        if (c->op->fills[i])
            emit(c, STORE_AND_FLUSH, CONTENT + c->op->fills[i], c->index + 1u);
}

static void log_and_fence(const struct compiler *c)
{
    emit(c, LOG, HEAD, 0);
    emit(c, LOG, TAIL, 0);
    if (mutant != LOG_NOT_FENCED)
        emit(c, FENCE, 0, 0);
    emit(c, UNLIVE, 0, 0);
    if (c->op->drains)
        emit(c, RELEASE_TAKEN, 0, 0);
}

static void change_cells(const struct compiler *c)
{
    for (unsigned i = 0; i < CHANGED_MAX; i++)
        if (c->op->cells[i].used)
            emit(c, STORE_AND_FLUSH, CELL + c->op->cells[i].cell, c->op->cells[i].new);
    if (mutant != CHANGE_NOT_FENCED)
        emit(c, FENCE, 0, 0);
}

static void own_ranges(const struct compiler *c)
{
    for (unsigned i = 0; i <= OWNED_MAX + 1; i++)
        emit(c, OWN, i, 0);
}

static void store_allocs(const struct compiler *c)
{
    for (int i = 0; i < 2; i++)
        if (c->op->allocs[i])
            emit(c, STORE_AND_FLUSH, BIT + c->op->allocs[i], 1);
}

static void leave_live(const struct compiler *c)
{
    bool frees_at_once = !c->has_sleep || mutant == WAKES_AFTER_IT_FREES;

    if (mutant == WAKES_BEFORE_IT_IS_LIVE)
        wake(c);
    emit(c, LIVE, frees_at_once, 0);
    if (mutant != LIVE_DOES_NOT_WAKE && mutant != WAKES_BEFORE_IT_IS_LIVE)
        wake(c);
    if (!frees_at_once)
        emit(c, QUARANTINE, 0, 0);
}

static void compile_slot(const struct compiler *c)
{
    emit(c, NEW_GENERATION, 0, 0);
    drain(c);
    settle_before_fresh(c);
    if (c->op->drains && mutant != QUARANTINE_SETTLES_NOBODY)
        settle_lanes(c, SETTLE_ALL, false);
    else if (mutant != SLOT_SETTLES_NO_CELLS)
        settle_others(c, SETTLE_CHANGED);
    store_fresh(c);
    if (mutant == RANGES_CHANGE_BEFORE_THE_LOG)
        own_ranges(c);
    log_and_fence(c);
    for (int i = 0; i < 2; i++) {
        const struct change *slot = &c->op->slots[i];

        if (!slot->used)
            continue;
        emit(c, STORE_AND_FLUSH, BIT + slot->new, 1);
        if (slot->old)
            emit(c, STORE_AND_FLUSH, BIT + slot->old, 0);
        emit(c, STORE_AND_FLUSH, CELL + slot->cell, slot->new);
    }
    store_allocs(c);
    change_cells(c);
    if (mutant != RANGES_CHANGE_BEFORE_THE_LOG)
        own_ranges(c);
    leave_live(c);
}

static void settle_own(const struct compiler *c)
{
    emit(c, SETTLE, 0, 0);
    emit(c, FENCE, 0, 0);
    emit(c, DEAD, 0, 0);
}

static void compile_logged(const struct compiler *c)
{
    emit(c, NEW_GENERATION, 0, 0);
    drain(c);
    settle_before_fresh(c);
    if (mutant != LOGGED_SETTLES_NOBODY)
        settle_others(c, SETTLE_ALL);
    store_fresh(c);
    if (c->op->cells[1].used)
        emit(c, LOG, NEXT, 0);
    log_and_fence(c);
    store_allocs(c);
    for (int i = 0; i < 2; i++)
        if (c->op->frees[i])
            emit(c, STORE_AND_FLUSH, BIT + c->op->frees[i], 0);
    if (mutant == SETTLED_WITH_THE_CHANGE)
        emit(c, SETTLE, 0, 0);
    change_cells(c);
    if (mutant != LOGGED_IS_NOT_SETTLED)
        settle_own(c);
    for (int i = 0; i < 2; i++)
        if (c->op->frees[i])
            emit(c, RELEASE, c->op->frees[i], 0);
}

static void compile_word(const struct compiler *c)
{
    const struct change *word = &c->op->cells[0];

    settle_before_fresh(c);
    if (mutant != WORD_SETTLES_NOBODY)
        settle_lanes(c, SETTLE_WORD, true);
    store_fresh(c);
    if (mutant != WORD_SETTLES_WITHOUT_FENCE)
        emit(c, FENCE, 0, 0);
    emit(c, UNLIVE, 0, 0);
    if (mutant != WORD_IS_NOT_NOTED)
        emit(c, STORE, NOTE + c->op->lane, word->cell + 1u);
    emit(c, STORE_AND_FLUSH, CELL + word->cell, word->new);
    emit(c, FENCE, 0, 0);
}

static void end_snapshot(const struct compiler *c)
{
    const struct change *cells = c->op->cells;

    if (c->op->aborts) {
        emit(c, STORE, CELL + cells[1].cell, cells[1].old);
        emit(c, STORE, CELL + cells[0].cell, cells[0].old);
    }
    emit(c, FLUSH, CELL + cells[0].cell, 0);
    emit(c, FLUSH, CELL + cells[1].cell, 0);
    if (c->op->aborts && mutant == ABORT_SETTLES_WITH_THE_RESTORE)
        emit(c, SETTLE, 0, 0);
    emit(c, FENCE, 0, 0);
    if (mutant != (c->op->aborts ? ABORT_IS_NOT_SETTLED : SNAPSHOT_IS_NOT_SETTLED))
        settle_own(c);
}

static void compile_snapshot(const struct compiler *c)
{
    const struct change *cells = c->op->cells;

    emit(c, NEW_GENERATION, 0, 0);
    settle_others(c, SETTLE_ALL);
    log_and_fence(c);
    emit(c, STORE, CELL + cells[0].cell, cells[0].new);
    emit(c, LOG, NEXT, 0);
    emit(c, FENCE, 0, 0);
    emit(c, STORE, CELL + cells[1].cell, cells[1].new);
    end_snapshot(c);
}

static void compile_same(const struct compiler *c)
{
    look_for_idle(c);
    emit(c, FENCE, 0, 0);
    emit(c, UNLIVE, 0, 0);
}

bool scenario_has_sleep(const struct scenario *scenario)
{
    for (uint8_t i = 0; i < scenario->op_count; i++)
        if (scenario->ops[i].idle)
            return true;
    return false;
}

void program_compile(struct program programs[LANES], const struct scenario *scenario,
                     uint8_t first)
{
    bool has_sleep = scenario_has_sleep(scenario);

    memset(programs, 0, LANES * sizeof(*programs));
    for (uint8_t i = first; i < scenario->op_count; i++) {
        const struct op *op = &scenario->ops[i];
        struct compiler c = {&programs[op->lane], op, i, has_sleep};

        begin(&c);
        if (op->kind == OP_LOGGED)
            compile_logged(&c);
        else if (op->kind == OP_SLOT)
            compile_slot(&c);
        else if (op->kind == OP_WORD)
            compile_word(&c);
        else if (op->kind == OP_SNAPSHOT)
            compile_snapshot(&c);
        else
            compile_same(&c);
        emit(&c, RETURN, 0, 0);
    }
}

/* ---- Steps ----------------------------------------------------------------------- */

static void unlive(struct twin *twin, uint8_t thread)
{
    for (uint8_t lane = 0; lane < LANES; lane++) {
        if (twin->seen[thread][lane] == twin->live[lane])
            twin->live[lane] = 0;
        twin->seen[thread][lane] = 0;
    }
}

static bool sees_any(const struct twin *twin, uint8_t thread)
{
    for (uint8_t lane = 0; lane < LANES; lane++)
        if (twin->seen[thread][lane])
            return true;
    return false;
}

static void look(const struct op *op, struct twin *twin, uint8_t thread,
                 const struct step *step)
{
    uint8_t id = twin->live[step->word];
    enum policy policy = (enum policy)(step->value % POLICIES);

    if (twin->wakefulness[step->word] == ASLEEP || twin->alone >> thread & 1)
        return;
    if (mutant == SLOT_SETTLES_ONE_LANE && policy == SETTLE_CHANGED &&
        sees_any(twin, thread))
        return;
    if (id &&
        wants_settled(op, &twin->owned[step->word], policy, step->value / POLICIES))
        twin->seen[thread][step->word] = id;
}

static void own(const struct op *op, struct twin *twin, unsigned index)
{
    struct owned owned = owned_by(op);

    if (index == OWNED_MAX + 1)
        twin->owned[op->lane].blocks = owned.blocks;
    else if (index == OWNED_MAX)
        twin->owned[op->lane].slots = owned.slots;
    else
        twin->owned[op->lane].ranges[index] = owned.ranges[index];
}

static void raise_settled(struct state *state, uint8_t thread, uint8_t lane)
{
    uint8_t generation = id_generation(state->twin.seen[thread][lane]);
    bool is_there = machine_load(&state->machine, SETTLED + lane) >= generation;

    if (generation == 0)
        return;
    if (!is_there || mutant == SETTLED_IS_STORED)
        machine_store(&state->machine, SETTLED + lane, generation);
    if (!is_there || mutant != SETTLED_IS_NOT_FLUSHED)
        machine_flush(&state->machine, thread, SETTLED + lane);
    if (mutant == SETTLED_BEFORE_THE_FENCE)
        unlive(&state->twin, thread);
}

static void quarantine_freed(const struct op *op, struct twin *twin)
{
    for (int i = 0; i < 2; i++) {
        if (!op->slots[i].used || !op->slots[i].old)
            continue;
        if (mutant == NO_QUARANTINE)
            twin->free |= (uint8_t)(1u << op->slots[i].old);
        else
            twin->quarantine |= (uint8_t)(1u << op->slots[i].old);
    }
}

/* ---- Sleep ----------------------------------------------------------------------- */

/* About a lane that a thread looks at, or its own: 0, or */
enum found {
    IS_DEAD = 1,
    IS_DROWSY,
    FALLS_ASLEEP,
    STAYS_AWAKE,
    SLEEPS,
    IS_COUNTED,
    HAS_SLEPT,
};

/* Its own lane. */
static void wake_step(struct twin *twin, uint8_t thread, const struct step *step)
{
    uint8_t *wakefulness = &twin->wakefulness[step->word];
    uint8_t found = twin->found[thread];

    twin->found[thread] = 0;
    switch (step->what) {
    case COUNT:
        if (*wakefulness == AWAKE)
            return;
        twin->awake++;
        twin->found[thread] = IS_COUNTED;
        break;
    case WAKE:
        if (found != IS_COUNTED)
            return;
        twin->found[thread] = *wakefulness == ASLEEP ? 0 : IS_COUNTED;
        *wakefulness = AWAKE;
        break;
    case UNCOUNT:
        if (found == IS_COUNTED)
            twin->awake--;
        break;
    case WAKE_FIRST:
        twin->found[thread] = *wakefulness == ASLEEP ? HAS_SLEPT : 0;
        *wakefulness = AWAKE;
        break;
    default: /* COUNT_LATE */
        if (found == HAS_SLEPT)
            twin->awake++;
        break;
    }
}

/* Two loads; the count is the first one. */
static void ask_for_others(struct twin *twin, uint8_t thread, const struct step *step)
{
    bool own = twin->wakefulness[step->word] != ASLEEP;
    uint8_t found = twin->found[thread];
    bool is_alone;

    if (step->what == ASK_FOR_OTHERS) {
        twin->found[thread] =
            mutant == OWN_IS_READ_BEFORE_THE_COUNT ? own : twin->awake;
        return;
    }
    if (mutant == OWN_IS_READ_BEFORE_THE_COUNT)
        is_alone = twin->awake <= found;
    else
        is_alone = found <= own;
    twin->found[thread] = 0;
    twin->alone |= (uint8_t)(is_alone << thread);
}

static void find_idle(struct twin *twin, uint8_t thread, uint8_t lane)
{
    if (twin->wakefulness[lane] == ASLEEP)
        return;
    if (twin->live[lane] && mutant != LIVE_LANES_FALL_ASLEEP)
        twin->seen[thread][lane] = twin->live[lane];
    else
        twin->found[thread] = IS_DEAD;
}

/* Who finds another one at it lets the lane be. */
static void begin_putting(struct twin *twin, uint8_t thread)
{
    if (!twin->putter)
        twin->putter = thread + 1;
    else if (mutant != TWO_PUT_LANES_TO_SLEEP)
        twin->found[thread] = 0;
}

static bool change_wakefulness(struct twin *twin, uint8_t lane, enum wakefulness from,
                               enum wakefulness to)
{
    if (twin->wakefulness[lane] != from)
        return false;
    twin->wakefulness[lane] = (uint8_t)to;
    return true;
}

static bool may_sleep(const struct twin *twin, uint8_t lane)
{
    return twin->live[lane] == 0 || mutant == LIVE_LANES_FALL_ASLEEP ||
           mutant == DROWSY_IS_NOT_LOOKED_AT;
}

/* What it answers is found next. */
static enum found put_to_sleep(struct twin *twin, uint8_t found,
                               const struct step *step)
{
    enum wakefulness mark = mutant == SLEEPS_WITHOUT_A_MARK ? AWAKE : DROWSY;
    uint8_t lane = step->word;

    if (step->what == MAKE_DROWSY && found == IS_DEAD)
        return change_wakefulness(twin, lane, AWAKE, mark) ? IS_DROWSY : 0;
    if (step->what == LOOK_AGAIN && found == IS_DROWSY)
        return may_sleep(twin, lane) ? FALLS_ASLEEP : STAYS_AWAKE;
    if (step->what == PUT_TO_SLEEP && found == FALLS_ASLEEP)
        return change_wakefulness(twin, lane, mark, ASLEEP) ? SLEEPS : 0;
    if (step->what == PUT_TO_SLEEP && found == STAYS_AWAKE)
        change_wakefulness(twin, lane, mark, AWAKE);
    if (step->what == COUNT_SLEEPER && found == SLEEPS)
        twin->awake--;
    return 0;
}

static void sleep_step(struct twin *twin, uint8_t thread, const struct step *step)
{
    switch (step->what) {
    case ASK_FOR_OTHERS:
    case ARE_THERE_OTHERS:
        ask_for_others(twin, thread, step);
        break;
    case FIND_IDLE:
        find_idle(twin, thread, step->word);
        break;
    case BEGIN_PUTTING:
        begin_putting(twin, thread);
        break;
    case MAKE_DROWSY:
    case LOOK_AGAIN:
    case PUT_TO_SLEEP:
    case COUNT_SLEEPER:
        twin->found[thread] = (uint8_t)put_to_sleep(twin, twin->found[thread], step);
        break;
    case END_PUTTING:
        if (twin->putter == thread + 1)
            twin->putter = 0;
        break;
    default:
        wake_step(twin, thread, step);
        break;
    }
}

/* ---- Steps of all kinds ---------------------------------------------------------- */

static void step_log(struct state *state, uint8_t thread, uint8_t lane, uint8_t op,
                     uint8_t word)
{
    uint8_t id = batch_id(op, word == NEXT, state->twin.generation[lane]);

    machine_store(&state->machine, word + lane, id);
    machine_flush(&state->machine, thread, word + lane);
}

static bool take_block(struct twin *twin, uint8_t block)
{
    if (!(twin->free >> block & 1))
        return false;
    twin->free &= (uint8_t) ~(1u << block);
    return true;
}

static void store_step(struct state *state, uint8_t thread, const struct step *step)
{
    if (step->what != FLUSH)
        machine_store(&state->machine, step->word, step->value);
    if (step->what != STORE)
        machine_flush(&state->machine, thread, step->word);
}

/* Of DRAM. */
static void twin_step(const struct scenario *scenario, struct twin *twin,
                      uint8_t thread, const struct step *step)
{
    const struct op *op = &scenario->ops[step->op];

    switch (step->what) {
    case BEGIN:
        twin->begun |= (uint8_t)(1u << step->op);
        break;
    case RETURN:
        twin->returned |= (uint8_t)(1u << step->op);
        twin->alone &= (uint8_t) ~(1u << thread);
        break;
    case NEW_GENERATION:
        twin->generation[op->lane]++;
        break;
    case UNLIVE:
        unlive(twin, thread);
        break;
    case OWN:
        own(op, twin, step->word);
        break;
    case LIVE:
        twin->live[op->lane] = batch_id(step->op, 0, twin->generation[op->lane]);
        if (step->word)
            quarantine_freed(op, twin);
        break;
    case QUARANTINE:
        quarantine_freed(op, twin);
        break;
    case DEAD:
        twin->live[op->lane] = 0;
        break;
    case RELEASE:
        twin->free |= (uint8_t)(1u << step->word);
        break;
    case TAKE_QUARANTINE:
        twin->taken[thread] = twin->quarantine;
        twin->quarantine = 0;
        break;
    case RELEASE_TAKEN:
        twin->free |= twin->taken[thread];
        twin->taken[thread] = 0;
        break;
    default:
        sleep_step(twin, thread, step);
        break;
    }
}

bool program_step(const struct program *program, const struct scenario *scenario,
                  struct state *state, uint8_t thread)
{
    uint8_t at = state->twin.pc[thread];

    if (at == program->count)
        return false;
    const struct step *step = &program->steps[at];
    uint8_t lane = scenario->ops[step->op].lane;

    switch (step->what) {
    case AWAIT:
        if ((state->twin.returned & step->word) != step->word)
            return false;
        break;
    case TAKE_BLOCK:
        if (!take_block(&state->twin, step->word))
            return false;
        break;
    case STORE:
    case STORE_AND_FLUSH:
    case FLUSH:
        store_step(state, thread, step);
        break;
    case FENCE:
        machine_fence(&state->machine, thread);
        break;
    case LOG:
        step_log(state, thread, lane, step->op, step->word);
        break;
    case LOOK:
        look(&scenario->ops[step->op], &state->twin, thread, step);
        break;
    case RAISE:
        raise_settled(state, thread, step->word);
        break;
    case SETTLE:
        machine_store(&state->machine, SETTLED + lane, state->twin.generation[lane]);
        machine_flush(&state->machine, thread, SETTLED + lane);
        break;
    default:
        twin_step(scenario, &state->twin, thread, step);
        break;
    }
    state->twin.pc[thread]++;
    return true;
}

/* ---- Recovery -------------------------------------------------------------------- */

struct recoverer {
    const struct scenario *scenario;
    uint16_t *words;
    struct recovery *recovery;
};

static void record(const struct recoverer *r, struct recovery_step step)
{
    if (!r->recovery)
        return;
    assert(r->recovery->count < sizeof(r->recovery->steps) / sizeof(step));
    r->recovery->steps[r->recovery->count++] = step;
}

/* Stores where that changes something; flushes anyway. */
static void put(const struct recoverer *r, unsigned word, uint16_t value)
{
    bool store = r->words[word] != value;

    r->words[word] = value;
    if (store || mutant != RECOVERY_FLUSHES_CHANGES_ONLY)
        record(r, (struct recovery_step){store, false, (uint8_t)word, value});
}

static void undo_logged(const struct recoverer *r, const struct op *op, int place)
{
    if (op->cells[place].used)
        put(r, CELL + op->cells[place].cell, op->cells[place].old);
    for (int i = 0; i < 2 && place == 0; i++) {
        if (op->allocs[i] && mutant != ALLOC_IS_NOT_UNDONE)
            put(r, BIT + op->allocs[i], 0);
        if (op->frees[i] && mutant != FREE_IS_NOT_UNDONE)
            put(r, BIT + op->frees[i], 1);
    }
}

/*
 * Of what is in the cells that `op` changes. That two hashes are equal by chance is
 * left out.
 */
static uint64_t hash_of(const struct op *op, const uint16_t *cells)
{
    uint64_t hash = 0;

    for (unsigned i = 0; i < CHANGED_MAX; i++) {
        const struct change *cell = &op->cells[i];

        if (!cell->used || (i > 0 && mutant == ONLY_FIRST_CELL_IS_HASHED) ||
            (i == CHANGED_MAX - 1 && mutant == LAST_CELL_IS_NOT_HASHED))
            continue;
        if (mutant != HASH_IGNORES_PLACES)
            hash <<= 16;
        hash += cells[cell->cell];
    }
    return hash;
}

static bool slot_op_committed(const struct recoverer *r, const struct op *op)
{
    const uint16_t *cells = &r->words[CELL];
    uint16_t new_cells[CELLS];

    if (mutant == SLOT_IS_ALWAYS_UNDONE || mutant == SLOT_IS_NEVER_UNDONE)
        return mutant == SLOT_IS_NEVER_UNDONE;
    if (!op->cells[0].used)
        return cells[op->slots[0].cell] != op->slots[0].old;
    for (unsigned i = 0; i < CHANGED_MAX; i++)
        if (op->cells[i].used)
            new_cells[op->cells[i].cell] = op->cells[i].new;
    return hash_of(op, cells) == hash_of(op, new_cells);
}

static void put_bits(const struct recoverer *r, uint16_t allocated, uint16_t freed)
{
    if (allocated && (mutant != FREE_IS_NOT_UNDONE || !freed))
        put(r, BIT + allocated, 1);
    if (freed && (mutant != ALLOC_IS_NOT_UNDONE || !allocated))
        put(r, BIT + freed, 0);
}

static void finish_slot(const struct recoverer *r, const struct change *slot)
{
    uint16_t value = r->words[CELL + slot->cell];
    uint8_t holder = r->scenario->holder[slot->cell];

    if (holder && !r->words[BIT + holder] && mutant != FINISH_IGNORES_FREED_HOLDERS)
        return;
    if (value != slot->old && value != slot->new &&mutant != FINISH_IGNORES_LATER_SWAPS)
        return;
    if (mutant == SLOT_IS_NOT_FINISHED)
        return;
    if (value == slot->old || value == slot->new)
        put(r, CELL + slot->cell, slot->new);
    put_bits(r, slot->new, slot->old);
}

static void undo_slot(const struct recoverer *r, const struct change *slot)
{
    put(r, CELL + slot->cell, slot->old);
    put_bits(r, slot->old, slot->new);
}

static void recover_slot_op(const struct recoverer *r, const struct op *op)
{
    bool committed = slot_op_committed(r, op);

    for (unsigned i = 0; i < CHANGED_MAX; i++) {
        const struct change *cell = &op->cells[i];
        bool is_left =
            committed || (i == CHANGED_MAX - 1 && mutant == LAST_CELL_IS_NOT_UNDONE);

        if (cell->used)
            put(r, CELL + cell->cell,
                is_left ? r->words[CELL + cell->cell] : cell->old);
    }
    for (int i = 0; i < 2; i++)
        if (op->allocs[i] &&
            mutant != (committed ? ALLOC_IS_NOT_FINISHED : ALLOC_IS_NOT_UNDONE))
            put(r, BIT + op->allocs[i], committed);
    for (int i = 0; i < 2; i++) {
        if (!op->slots[i].used)
            continue;
        if (committed)
            finish_slot(r, &op->slots[i]);
        else
            undo_slot(r, &op->slots[i]);
    }
}

static bool is_live(const uint16_t *words, uint8_t lane)
{
    uint16_t id = words[HEAD + lane];

    return id != 0 && id == words[TAIL + lane] &&
           id_generation(id) > words[SETTLED + lane];
}

/* I4: a head that is torn tells the generation, too. */
static uint16_t newest_generation(const uint16_t *words, uint8_t lane)
{
    uint16_t settled = words[SETTLED + lane];
    uint16_t id = words[HEAD + lane];
    uint16_t head = id ? id_generation(id) : 0;

    if (mutant == RECOVERY_SETTLES_ONE_GENERATION ||
        (mutant == RECOVERY_OVERLOOKS_TORN_HEADS && id != words[TAIL + lane]))
        head = 0;
    return (uint16_t)((head > settled ? head : settled) +
                      (mutant != RECOVERY_SETTLES_NO_ATTEMPT));
}

static void recover_lane(const struct recoverer *r, uint8_t lane)
{
    uint16_t id = r->words[HEAD + lane], next = r->words[NEXT + lane];
    const struct op *op = &r->scenario->ops[id_op(id)];

    if (op->kind == OP_SLOT) {
        recover_slot_op(r, op);
        return;
    }
    if (next != 0 && id_generation(next) == id_generation(id))
        undo_logged(r, &r->scenario->ops[id_op(next)], 1);
    undo_logged(r, op, 0);
}

void recover(const struct scenario *scenario, uint16_t *words,
             struct recovery *recovery)
{
    struct recoverer r = {scenario, words, recovery};
    struct recovery_step fence = {.fence = true};
    bool live[LANES];

    for (uint8_t lane = 0; lane < LANES; lane++)
        live[lane] = is_live(words, lane);
    for (uint8_t lane = 0; lane < LANES; lane++) {
        if (words[NOTE + lane])
            put(&r, CELL + words[NOTE + lane] - 1,
                words[CELL + words[NOTE + lane] - 1]);
        if (live[lane])
            recover_lane(&r, lane);
    }
    if (mutant != RECOVERY_SETTLES_WITH_THE_UNDOING)
        record(&r, fence);
    for (uint8_t lane = 0; lane < LANES; lane++) {
        if (live[lane] || mutant != RECOVERY_SETTLES_LIVE_LANES_ONLY)
            put(&r, SETTLED + lane, newest_generation(words, lane));
    }
    record(&r, fence);
}
