/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A state of memory is right after recovery if it is what the transactions that
 * returned have left, and of those that were running each either all or nothing; if a
 * block is allocated just where a reachable slot names it; and if it then has the
 * content that came with that slot.
 */
#include "tests/model/explore.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The oracle ------------------------------------------------------------------ */

struct content {
    uint16_t cells[CELLS];
    uint16_t blocks[BLOCKS];
};

struct judge {
    const struct scenario *scenario;
    struct exploration *x;
    struct content base; /* before the op `first` */
    uint8_t first;
    uint8_t begun, returned;
    uint16_t loose; /* bit per cell: fresh, and its op was killed */
    const char *when;
};

static bool is_slot(const struct scenario *s, unsigned cell)
{
    return s->slots >> cell & 1;
}

static bool is_named(const struct scenario *s, const uint16_t *cells, unsigned block)
{
    for (unsigned i = 0; i < CELLS; i++) {
        bool is_reachable = s->holder[i] == 0;

        /* Holders hang from the root: one level is enough. */
        for (unsigned k = 0; k < CELLS && !is_reachable; k++)
            is_reachable =
                is_slot(s, k) && s->holder[k] == 0 && cells[k] == s->holder[i];
        if (is_reachable && is_slot(s, i) && cells[i] == block)
            return true;
    }
    return false;
}

static void apply(const struct op *op, uint8_t index, struct content *content)
{
    if (op->aborts)
        return;
    if (op->fresh.used)
        content->cells[op->fresh.cell] = op->fresh.new;
    for (unsigned i = 0; i < CHANGED_MAX; i++)
        if (op->cells[i].used)
            content->cells[op->cells[i].cell] = op->cells[i].new;
    for (int i = 0; i < 2; i++) {
        if (op->slots[i].used)
            content->cells[op->slots[i].cell] = op->slots[i].new;
        if (op->fills[i])
            content->blocks[op->fills[i]] = index + 1;
    }
}

/* Cells that may have their new value already, or not. */
static uint16_t loose_cells(const struct judge *j)
{
    uint16_t cells = j->loose;

    for (uint8_t i = j->first; i < j->scenario->op_count; i++)
        if ((j->begun & ~j->returned) >> i & 1 && j->scenario->ops[i].fresh.used)
            cells |= (uint16_t)(1u << j->scenario->ops[i].fresh.cell);
    return cells;
}

static bool is_as_expected(const struct judge *j, const struct content *expected,
                           const uint16_t *words)
{
    const struct scenario *s = j->scenario;
    const uint16_t *cells = &words[CELL];
    uint16_t loose = loose_cells(j);

    for (unsigned i = 0; i < CELLS; i++) {
        bool matters = s->holder[i] == 0 || is_named(s, cells, s->holder[i]);

        if (matters && !(loose >> i & 1) && cells[i] != expected->cells[i])
            return false;
    }
    for (unsigned b = 1; b < BLOCKS; b++) {
        bool named = is_named(s, cells, b);

        if (words[BIT + b] != named ||
            (named && words[CONTENT + b] != expected->blocks[b]))
            return false;
    }
    return true;
}

static bool is_right(const struct judge *j, const uint16_t *words)
{
    uint8_t running = j->begun & (uint8_t)~j->returned;

    for (uint8_t kept = running;; kept = (uint8_t)(kept - 1) & running) {
        struct content expected = j->base;

        for (uint8_t i = j->first; i < j->scenario->op_count; i++)
            if ((j->returned | kept) >> i & 1)
                apply(&j->scenario->ops[i], i, &expected);
        if (is_as_expected(j, &expected, words))
            return true;
        if (kept == 0)
            return false;
    }
}

static void report(const struct judge *j, const uint16_t *words)
{
    int at = snprintf(j->x->violation, sizeof(j->x->violation),
                      "%s, %s: begun 0x%x, returned 0x%x; cells", j->scenario->name,
                      j->when, j->begun, j->returned);

    for (unsigned i = 0; i < CELLS; i++)
        at += snprintf(j->x->violation + at, sizeof(j->x->violation) - (size_t)at,
                       " %u", words[CELL + i]);
    at += snprintf(j->x->violation + at, sizeof(j->x->violation) - (size_t)at,
                   "; allocated");
    for (unsigned b = 1; b < BLOCKS; b++)
        if (words[BIT + b])
            at += snprintf(j->x->violation + at, sizeof(j->x->violation) - (size_t)at,
                           " %u", b);
}

static int judge_crash(void *arg, uint16_t *words)
{
    const struct judge *j = arg;

    j->x->crashes++;
    recover(j->scenario, words, NULL);
    if (is_right(j, words))
        return 1;
    report(j, words);
    return 0;
}

/* ---- Kill ------------------------------------------------------------------------ */

static void view(const struct machine *m, uint16_t *words)
{
    for (uint8_t i = 0; i < MACHINE_WORDS; i++)
        words[i] = machine_load(m, i);
}

static void recovery_step(struct machine *m, const struct recovery_step *step)
{
    if (step->fence) {
        machine_fence(m, 0);
        return;
    }
    if (step->store)
        machine_store(m, step->word, step->value);
    machine_flush(m, 0, step->word);
}

static void new_base(struct judge *j, const uint16_t *words, uint8_t first)
{
    memcpy(j->base.cells, &words[CELL], sizeof(j->base.cells));
    memcpy(j->base.blocks, &words[CONTENT], sizeof(j->base.blocks));
    j->loose = loose_cells(j);
    j->first = first;
    j->begun = j->returned = 0;
}

/* The next process runs `later`, from the first op on that it has. */
static bool run_later(struct judge *j, struct scenario *scenario, struct machine *m,
                      const struct op *later)
{
    struct state state = {.machine = *m};
    struct program programs[LANES];
    struct op *op = &scenario->ops[scenario->op_count];
    uint16_t words[MACHINE_WORDS];

    view(m, words);
    *op = *later;
    for (unsigned i = 0; i < CHANGED_MAX; i++)
        op->cells[i].old = words[CELL + op->cells[i].cell];
    for (unsigned lane = 0; lane < LANES; lane++)
        state.twin.generation[lane] = (uint8_t)words[SETTLED + lane];
    new_base(j, words, scenario->op_count++);
    program_compile(programs, scenario, j->first);
    do {
        j->begun = state.twin.begun;
        j->returned = state.twin.returned;
        if (!machine_crash(&state.machine, judge_crash, j))
            return false;
    } while (program_step(&programs[op->lane], scenario, &state, op->lane));
    *m = state.machine;
    return true;
}

/* The process is killed; recovery runs on what the caches hold, and the power fails. */
static bool kill_and_go_on(struct judge *j, const struct state *state)
{
    struct scenario scenario = *j->scenario;
    struct machine m = state->machine;
    struct recovery recovery = {.count = 0};
    struct judge own = *j;
    uint16_t words[MACHINE_WORDS];

    own.scenario = &scenario;
    own.when = "killed";
    machine_kill(&m);
    view(&m, words);
    recover(&scenario, words, &recovery);
    for (uint8_t i = 0; i < recovery.count; i++) {
        if (!machine_crash(&m, judge_crash, &own))
            return false;
        recovery_step(&m, &recovery.steps[i]);
    }
    new_base(&own, words, scenario.op_count);
    if (!machine_crash(&m, judge_crash, &own))
        return false;
    for (int i = 0; i < 2 && j->scenario->later[i].kind; i++)
        if (!run_later(&own, &scenario, &m, &j->scenario->later[i]))
            return false;
    return true;
}

/* ---- Interleavings --------------------------------------------------------------- */

/* All states met, in the order in which they are gone through. */
struct seen {
    struct state *states;
    uint32_t count, capacity;
    uint32_t *table; /* number of a state + 1; twice the capacity */
};

static uint32_t hash_of(const struct state *state)
{
    uint64_t hash = 14695981039346656037u;
    uint16_t part;

    _Static_assert(sizeof(*state) % sizeof(part) == 0, "it is made of such parts");
    for (size_t i = 0; i < sizeof(*state); i += sizeof(part)) {
        memcpy(&part, (const uint8_t *)state + i, sizeof(part));
        hash = (hash ^ part) * 1099511628211u;
    }
    return (uint32_t)(hash >> 32);
}

static uint32_t *find_place(const struct seen *seen, const struct state *state)
{
    uint32_t mask = seen->capacity * 2 - 1;
    uint32_t i = hash_of(state) & mask;

    while (seen->table[i] &&
           memcmp(&seen->states[seen->table[i] - 1], state, sizeof(*state)) != 0)
        i = (i + 1) & mask;
    return &seen->table[i];
}

static void grow(struct seen *seen)
{
    seen->capacity = seen->capacity ? seen->capacity * 2 : 1024;
    seen->states = realloc(seen->states, seen->capacity * sizeof(*seen->states));
    free(seen->table);
    seen->table = calloc(seen->capacity * 2, sizeof(*seen->table));
    if (!seen->states || !seen->table)
        abort();
    for (uint32_t i = 0; i < seen->count; i++)
        *find_place(seen, &seen->states[i]) = i + 1;
}

static void add(struct seen *seen, const struct state *state)
{
    if (seen->count == seen->capacity)
        grow(seen);
    uint32_t *place = find_place(seen, state);

    if (*place)
        return;
    seen->states[seen->count++] = *state;
    *place = seen->count;
}

static void init_state(const struct scenario *s, struct state *state)
{
    memset(state, 0, sizeof(*state));
    memcpy(&state->machine.durable[CELL], s->cells, sizeof(s->cells));
    for (uint8_t lane = 0; lane < LANES && !scenario_has_sleep(s); lane++)
        state->twin.wakefulness[lane] = AWAKE;
    for (uint8_t b = 1; b < BLOCKS; b++) {
        bool named = is_named(s, s->cells, b);

        state->machine.durable[BIT + b] = named;
        if (!named)
            state->twin.free |= (uint8_t)(1u << b);
    }
}

static bool judge_state(struct judge *j, const struct state *state)
{
    j->begun = state->twin.begun;
    j->returned = state->twin.returned;
    return machine_crash(&state->machine, judge_crash, j) &&
           (!j->x->kill || kill_and_go_on(j, state));
}

/* False if no thread has a step left that it can do. */
static bool go_on(const struct program programs[LANES], const struct scenario *scenario,
                  struct seen *seen, uint32_t number)
{
    bool went_on = false;

    for (uint8_t thread = 0; thread < LANES; thread++) {
        struct state next = seen->states[number];

        if (!program_step(&programs[thread], scenario, &next, thread))
            continue;
        add(seen, &next);
        went_on = true;
    }
    return went_on;
}

bool explore(const struct scenario *scenario, struct exploration *x)
{
    struct judge judge = {.scenario = scenario, .x = x, .when = "crashed"};
    struct program programs[LANES];
    struct seen seen = {0};
    struct state state;
    uint8_t all = (uint8_t)((1u << scenario->op_count) - 1);
    bool right = true;

    x->violation[0] = 0;
    x->got_stuck = false;
    init_state(scenario, &state);
    new_base(&judge, state.machine.durable, 0);
    program_compile(programs, scenario, 0);
    add(&seen, &state);
    for (uint32_t i = 0; i < seen.count && right; i++) {
        state = seen.states[i];
        right = judge_state(&judge, &state);
        if (right && !go_on(programs, scenario, &seen, i) && state.twin.returned != all)
            x->got_stuck = true;
    }
    x->states += seen.count;
    free(seen.states);
    free(seen.table);
    return right && !x->got_stuck;
}
