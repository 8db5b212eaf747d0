/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * compare.c - a crash point eagerly and lazily: both must come to the same verdicts.
 *
 * A verdict is also which of the right states recovery has shown: a lazy exploration
 * that overlooks states differs although nothing is wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "crashtest/explorer.h"

static uint64_t hash_verdict(const struct verdict *verdict)
{
    uint64_t hash = verdict->outcome * 0x9e3779b97f4a7c15u ^ (uint64_t)verdict->kind;

    for (const char *text = verdict->message; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001b3u;
    return hash;
}

static bool has(const struct verdicts *verdicts, uint64_t hash)
{
    for (uint32_t i = 0; i < verdicts->count; i++)
        if (verdicts->hashes[i] == hash)
            return true;
    return false;
}

void compare_note(struct explorer *x)
{
    uint64_t hash = hash_verdict(&x->verdict);

    if (x->is_watched != (x->compared == &x->lazily) || has(x->compared, hash))
        return;
    x->compared->hashes =
        explorer_grow(x->compared->hashes, x->compared->count + 1,
                      &x->compared->capacity, sizeof(*x->compared->hashes));
    x->compared->hashes[x->compared->count++] = hash;
}

static bool are_same(const struct verdicts *a, const struct verdicts *b)
{
    for (uint32_t i = 0; i < a->count; i++)
        if (!has(b, a->hashes[i]))
            return false;
    return a->count == b->count;
}

/* Both ways, and nothing is counted or found. False: not all of it could be lazily. */
static bool visit_twice(struct explorer *x, unsigned number)
{
    const struct explore_count count = x->count;
    bool is_exploring = x->is_exploring, fell_short = x->fell_short;

    x->is_exploring = false;
    x->eagerly.count = x->lazily.count = 0;
    x->compared = &x->eagerly;
    explorer_visit_every(x, number);
    x->compared = &x->lazily;
    bool is_whole = lazy_visit(x, number);

    x->compared = NULL;
    x->is_exploring = is_exploring;
    x->fell_short = fell_short;
    x->count.states = count.states;
    x->count.nested = count.nested;
    return is_whole;
}

static bool can_compare(const struct explorer *x, unsigned number, bool all_fit)
{
    const struct level *level = &x->levels[number];

    return all_fit && level->kind == PLACE_POWER && x->subject->set_watch &&
           explorer_count_states(level) <= explorer_budget(x, level) &&
           !(number == RUN && x->pass == PASS_RECOVERY);
}

static void complain(struct explorer *x, unsigned number)
{
    x->verdict = (struct verdict){.kind = VERDICT_CANNOT_SAY, .step = "compare"};
    snprintf(x->verdict.message, sizeof(x->verdict.message),
             "before event %zu lazy exploration comes to %u verdicts, and eager to %u, "
             "or to others",
             x->levels[number].event, x->lazily.count, x->eagerly.count);
    explorer_note_wrong(x, number);
}

void compare_visit(struct explorer *x, unsigned number, bool all_fit)
{
    if (can_compare(x, number, all_fit) && visit_twice(x, number) &&
        !are_same(&x->eagerly, &x->lazily))
        complain(x, number);
    else
        explorer_visit_at_best(x, number, all_fit);
}

void compare_finish(struct explorer *x)
{
    free(x->eagerly.hashes);
    free(x->lazily.hashes);
}
