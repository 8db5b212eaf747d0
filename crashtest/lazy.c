/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lazy.c - states that the judged code tells apart, and no others.
 *
 * What it never loads cannot matter. So a line has all of its contents at once, until
 * bytes of it are loaded in which they differ: then one value of those bytes is chosen,
 * the contents that have another one are out, and it goes on. Each value in turn:
 * recovery is run again, to the last decision where there is another one to try.
 *
 * Where the code takes a checksum it will find the bytes complete, as they were
 * whenever the program had paused storing them, or torn. All torn ones are one
 * value. They are not an interval of contents of any line but a clause over lines,
 * "not all of these are as in that moment", which is kept, for later loads of
 * single lines to respect.
 */
#include <stdlib.h>
#include <string.h>

#include "crashtest/explorer.h"

#define GUARDED 16
#define LOSSES_MAX 3

static uint64_t bytes_of_access(uint64_t line, uint64_t offset, uint64_t end)
{
    uint64_t start = offset > line ? offset - line : 0;
    uint64_t size = (end < line + LINE_SIZE ? end - line : LINE_SIZE) - start;

    return (size == LINE_SIZE ? UINT64_MAX : ((uint64_t)1 << size) - 1) << start;
}

/* A byte of ones for each bit. */
static uint64_t spread(uint64_t bits)
{
    uint64_t one_each = bits * 0x0101010101010101u & 0x8040201008040201u;

    return ((one_each + 0x7f7f7f7f7f7f7f7fu) >> 7 & 0x0101010101010101u) * 0xff;
}

static bool agree(const struct content *a, const struct content *b, uint64_t bytes)
{
    for (unsigned i = 0; bytes != 0; i += 8, bytes >>= 8) {
        uint64_t differ = trace_load_word(a->bytes + i) ^ trace_load_word(b->bytes + i);

        if ((differ & spread(bytes & 0xff)) != 0)
            return false;
    }
    return true;
}

static const struct content *content_of(const struct level *level, uint32_t choice,
                                        uint32_t content)
{
    return &level->contents[level->choices[choice].first + content];
}

static bool is_alive(const struct level *level, uint32_t choice, uint32_t content)
{
    return level->lazy.alive[level->choices[choice].first + content];
}

/* The line's contents must be like that one in those bytes from now on. */
static void restrict_to(struct level *level, uint32_t choice, uint32_t content,
                        uint64_t bytes)
{
    const struct choice *c = &level->choices[choice];
    const struct content *like = content_of(level, choice, content);

    for (uint32_t i = 0; i < c->count; i++)
        if (is_alive(level, choice, i) &&
            !agree(content_of(level, choice, i), like, bytes))
            level->lazy.alive[c->first + i] = false;
}

/* UINT32_MAX: none. */
static uint32_t last_alive_like(const struct level *level, uint32_t choice,
                                uint32_t content, uint64_t bytes)
{
    const struct content *like = content_of(level, choice, content);

    for (uint32_t i = level->choices[choice].count; i-- > 0;)
        if (is_alive(level, choice, i) &&
            agree(content_of(level, choice, i), like, bytes))
            return i;
    return UINT32_MAX;
}

/* ---- Clauses --------------------------------------------------------------------- */

static uint32_t clause_begin(const struct lazy *lazy, uint32_t clause)
{
    return clause == 0 ? 0 : lazy->clause_ends[clause - 1];
}

static bool literal_holds(const struct level *level, const struct literal *literal,
                          uint32_t content)
{
    return !agree(content_of(level, literal->choice, content),
                  content_of(level, literal->choice, literal->content), literal->bytes);
}

static bool clause_holds(const struct level *level, uint32_t clause)
{
    const struct lazy *lazy = &level->lazy;

    for (uint32_t i = clause_begin(lazy, clause); i < lazy->clause_ends[clause]; i++)
        if (literal_holds(level, &lazy->literals[i],
                          lazy->wanted[lazy->literals[i].choice]))
            return true;
    return false;
}

static uint32_t count_broken(const struct level *level)
{
    uint32_t broken = 0;

    for (uint32_t i = 0; i < level->lazy.clause_count; i++)
        broken += !clause_holds(level, i);
    return broken;
}

/* Makes the clause hold, and breaks no other. */
static bool mend(struct level *level, uint32_t clause, uint32_t broken)
{
    struct lazy *lazy = &level->lazy;

    for (uint32_t i = clause_begin(lazy, clause); i < lazy->clause_ends[clause]; i++) {
        const struct literal *literal = &lazy->literals[i];
        uint32_t *wanted = &lazy->wanted[literal->choice];
        uint32_t before = *wanted;

        for (uint32_t j = level->choices[literal->choice].count; j-- > 0;) {
            *wanted = j;
            if (is_alive(level, literal->choice, j) &&
                literal_holds(level, literal, j) && count_broken(level) < broken)
                return true;
        }
        *wanted = before;
    }
    return false;
}

static bool can_hold(const struct level *level, uint32_t clause)
{
    const struct lazy *lazy = &level->lazy;

    for (uint32_t i = clause_begin(lazy, clause); i < lazy->clause_ends[clause]; i++) {
        const struct literal *literal = &lazy->literals[i];

        for (uint32_t j = 0; j < level->choices[literal->choice].count; j++)
            if (is_alive(level, literal->choice, j) && literal_holds(level, literal, j))
                return true;
    }
    return false;
}

/* Each line wants what it has, if that is left to it. */
static void want_what_is_left(struct level *level)
{
    struct lazy *lazy = &level->lazy;

    for (uint32_t i = 0; i < level->choice_count; i++) {
        uint32_t wanted = level->choices[i].chosen;

        if (!is_alive(level, i, wanted))
            wanted = last_alive_like(level, i, 0, 0);
        lazy->wanted[i] = wanted;
    }
}

/*
 * Finds contents with which all clauses hold, changing one line at a time. Where
 * that finds none although each clause could hold alone, there may be some
 * nevertheless: then the point is not explored exactly.
 */
static bool find_contents(struct explorer *x, struct level *level)
{
    const struct lazy *lazy = &level->lazy;

    want_what_is_left(level);
    for (uint32_t i = 0; i < lazy->clause_count; i++)
        if (!can_hold(level, i))
            return false;
    for (uint32_t i = 0; i < lazy->clause_count; i++)
        if (!clause_holds(level, i) && !mend(level, i, count_broken(level))) {
            x->fell_short = true;
            return false;
        }
    return true;
}

/* ---- Decisions ------------------------------------------------------------------- */

static uint32_t decide(struct lazy *lazy, uint32_t count)
{
    if (lazy->depth == lazy->length) {
        lazy->path = explorer_grow(lazy->path, lazy->length + 1, &lazy->path_capacity,
                                   sizeof(*lazy->path));
        lazy->path[lazy->length++] = (struct decision){0, count};
    }
    uint32_t taken = lazy->path[lazy->depth++].taken;

    return taken < count ? taken : 0;
}

/* Drops decisions without another way; takes the next way of the last. */
static bool next_path(struct lazy *lazy)
{
    while (lazy->length > 0) {
        struct decision *last = &lazy->path[lazy->length - 1];

        if (++last->taken < last->count)
            return true;
        lazy->length--;
    }
    return false;
}

static void put_bytes(uint8_t *line, const uint8_t *bytes, uint64_t kept)
{
    if (kept == 0) {
        trace_copy_line(line, bytes);
        return;
    }
    for (unsigned i = 0; i < LINE_SIZE; i++)
        if ((kept >> i & 1) == 0)
            line[i] = bytes[i];
}

/* What the judged code has stored stays. */
static void patch(struct explorer *x, const struct level *level, struct choice *c,
                  uint32_t chosen, uint64_t kept)
{
    const struct content *content = &level->contents[c->first + chosen];

    put_bytes(x->subject->image + c->at, content->bytes, kept);
    if (x->subject->shadow)
        put_bytes(x->subject->shadow + c->at, content->bytes, kept);
    x->hash ^= content->hash ^ level->contents[c->first + c->chosen].hash;
    c->chosen = chosen;
}

/* What was decided leaves contents with which all clauses hold. */
static void patch_wanted(struct explorer *x, struct level *level)
{
    find_contents(x, level);
    for (uint32_t i = 0; i < level->choice_count; i++)
        if (level->choices[i].chosen != level->lazy.wanted[i])
            patch(x, level, &level->choices[i], level->lazy.wanted[i],
                  level->lazy.written[i]);
}

static void save(struct level *level)
{
    struct lazy *lazy = &level->lazy;

    lazy->saved = explorer_grow(lazy->saved, level->content_count,
                                &lazy->saved_capacity, sizeof(*lazy->saved));
    memcpy(lazy->saved, lazy->alive, level->content_count * sizeof(*lazy->saved));
}

static void restore(struct level *level)
{
    struct lazy *lazy = &level->lazy;

    memcpy(lazy->alive, lazy->saved, level->content_count * sizeof(*lazy->saved));
}

/* ---- Loads ----------------------------------------------------------------------- */

static bool is_possible(struct explorer *x, struct level *level, uint32_t choice,
                        uint32_t content, uint64_t bytes)
{
    if (level->lazy.clause_count == 0)
        return true;
    save(level);
    restrict_to(level, choice, content, bytes);
    bool found = find_contents(x, level);

    restore(level);
    return found;
}

static uint64_t hash_bytes(const struct content *content, uint64_t bytes)
{
    uint64_t hash = 0;

    for (unsigned i = 0; bytes != 0; i += 8, bytes >>= 8) {
        uint64_t word = trace_load_word(content->bytes + i) & spread(bytes & 0xff);

        hash = (hash ^ word) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 29;
    }
    return hash;
}

/* Adds the content to the table, unless one is there that is like it in the bytes. */
static bool is_new_value(struct level *level, uint32_t choice, uint32_t content,
                         uint64_t bytes, uint32_t mask)
{
    const struct content *it = content_of(level, choice, content);
    uint32_t *table = level->lazy.table;
    uint32_t slot = (uint32_t)hash_bytes(it, bytes) & mask;

    for (; table[slot] != 0; slot = (slot + 1) & mask)
        if (agree(it, content_of(level, choice, table[slot] - 1), bytes))
            return false;
    table[slot] = content + 1;
    return true;
}

/* One content for each value that the bytes can still have, the newest first. */
static uint32_t list_values(struct level *level, uint32_t choice, uint64_t bytes)
{
    uint32_t all = level->choices[choice].count;
    uint32_t size = 4, count = 0;
    struct lazy *lazy = &level->lazy;

    while (size < 2 * all)
        size *= 2;
    lazy->ways = explorer_grow(lazy->ways, all, &lazy->way_capacity, sizeof(uint32_t));
    lazy->table =
        explorer_grow(lazy->table, size, &lazy->table_capacity, sizeof(uint32_t));
    memset(lazy->table, 0, size * sizeof(*lazy->table));
    for (uint32_t i = all; i-- > 0;)
        if (is_alive(level, choice, i) &&
            is_new_value(level, choice, i, bytes, size - 1))
            lazy->ways[count++] = i;
    return count;
}

/* Those of them with which all clauses can hold. */
static uint32_t find_values(struct explorer *x, struct level *level, uint32_t choice,
                            uint64_t bytes)
{
    uint32_t count = list_values(level, choice, bytes), kept = 0;
    uint32_t *ways = level->lazy.ways;

    for (uint32_t i = 0; i < count && count > 1; i++)
        if (is_possible(x, level, choice, ways[i], bytes))
            ways[kept++] = ways[i];
    return kept;
}

static void narrow(struct explorer *x, struct level *level, uint32_t choice,
                   uint64_t bytes)
{
    struct lazy *lazy = &level->lazy;
    struct choice *c = &level->choices[choice];
    uint32_t count = find_values(x, level, choice, bytes);

    lazy->open[choice] &= ~bytes;
    if (count == 0)
        return;
    uint32_t chosen = lazy->ways[count > 1 ? decide(lazy, count) : 0];

    restrict_to(level, choice, chosen, bytes);
    if (lazy->clause_count > 0)
        patch_wanted(x, level);
    else if (!is_alive(level, choice, c->chosen))
        patch(x, level, c, chosen, lazy->written[choice]);
}

/* ---- Checksums ------------------------------------------------------------------- */

struct sum {
    const struct part *parts; /* one for each line */
    uint32_t count;
    const struct summed *ranges;
    uint32_t range_count;
};

static uint32_t choice_at(const struct level *level, uint64_t line)
{
    uint32_t index = level->px86.line_index[line / LINE_SIZE];

    if (index == 0 || index > level->choice_of_capacity)
        return UINT32_MAX;
    uint32_t choice = level->choice_of[index - 1];

    return choice < level->choice_count && level->choices[choice].at == line
               ? choice
               : UINT32_MAX;
}

static bool has_several(const struct level *level, uint32_t choice, uint64_t bytes)
{
    uint32_t last = last_alive_like(level, choice, 0, 0);

    for (uint32_t i = 0; i < last; i++)
        if (is_alive(level, choice, i) &&
            !agree(content_of(level, choice, i), content_of(level, choice, last),
                   bytes))
            return true;
    return false;
}

/* Of a line that ranges before had bytes of, too, it is the same part. */
static void add_part(struct lazy *lazy, struct sum *sum, uint32_t first,
                     struct part part)
{
    for (uint32_t i = 0; i < first; i++)
        if (lazy->parts[i].choice == part.choice) {
            lazy->parts[i].bytes |= part.bytes;
            return;
        }
    lazy->parts = explorer_grow(lazy->parts, sum->count + 1, &lazy->part_capacity,
                                sizeof(*lazy->parts));
    lazy->parts[sum->count++] = part;
}

static void find_parts_of(struct level *level, struct sum *sum,
                          const struct summed *range)
{
    struct lazy *lazy = &level->lazy;
    uint32_t first = sum->count;

    for (uint64_t line = range->offset & ~(uint64_t)(LINE_SIZE - 1); line < range->end;
         line += LINE_SIZE) {
        uint32_t choice = choice_at(level, line);

        if (choice == UINT32_MAX)
            continue;
        uint64_t bytes =
            bytes_of_access(line, range->offset, range->end) & lazy->open[choice];

        if (has_several(level, choice, bytes))
            add_part(lazy, sum, first, (struct part){choice, bytes});
    }
}

static void find_parts(struct level *level, struct sum *sum)
{
    for (uint32_t i = 0; i < sum->range_count; i++)
        find_parts_of(level, sum, &sum->ranges[i]);
    sum->parts = level->lazy.parts;
}

static void add_cut(struct lazy *lazy, struct cut cut)
{
    lazy->cuts = explorer_grow(lazy->cuts, lazy->cut_count + 1, &lazy->cut_capacity,
                               sizeof(*lazy->cuts));
    lazy->cuts[lazy->cut_count++] = cut;
}

static bool is_store_to(const struct trace_event *event, const struct summed *range)
{
    return event->at < range->end && range->offset < event->at + event->size;
}

static bool is_store_of(const struct trace_event *event, const struct sum *sum)
{
    for (uint32_t i = 0; i < sum->range_count && trace_is_store(event); i++)
        if (is_store_to(event, &sum->ranges[i]))
            return true;
    return false;
}

static bool store_to_range(struct lazy *lazy, const struct summed *range,
                           const struct trace_event *event, uint32_t run)
{
    uint64_t at = event->at > range->offset ? event->at : range->offset;
    uint64_t end = event->at + event->size;
    bool again = false;

    for (; at < end && at < range->end; at++) {
        uint32_t *last = &lazy->runs[range->first_run + (at - range->offset)];

        again |= *last == run;
        *last = run;
    }
    return again;
}

/* Notes that the bytes of the sum were stored to by the event, in that run of stores.
 * Had one of them been before, in the same run? */
static bool store_in_run(struct lazy *lazy, const struct sum *sum,
                         const struct trace_event *event, uint32_t run)
{
    bool again = false;

    for (uint32_t i = 0; i < sum->range_count; i++)
        if (is_store_to(event, &sum->ranges[i]))
            again |= store_to_range(lazy, &sum->ranges[i], event, run);
    return again;
}

/*
 * The bytes may be complete before the first event, and after each run of stores to
 * them that nothing else interrupts, and that stores to each byte once.
 */
static void find_cuts_of(struct lazy *lazy, const struct sum *sum,
                         const struct trace *trace, size_t end, bool was_killed)
{
    bool in_run = false;
    uint32_t run = 0;

    memset(lazy->runs, 0, lazy->summed_size * sizeof(*lazy->runs));
    for (uint32_t i = 0; i < end && i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        bool is_store = is_store_of(event, sum);
        bool again = is_store && store_in_run(lazy, sum, event, run);

        if (in_run && (!is_store || again))
            add_cut(lazy,
                    was_killed ? (struct cut){i, 0} : (struct cut){UINT32_MAX, i});
        if (is_store && (!in_run || again))
            store_in_run(lazy, sum, event, ++run);
        in_run = is_store;
    }
    if (in_run)
        add_cut(lazy, (struct cut){UINT32_MAX, was_killed ? 0 : UINT32_MAX});
}

static void find_cuts(const struct explorer *x, struct level *level,
                      const struct sum *sum)
{
    const struct level *run = &x->levels[RUN];
    struct lazy *lazy = &level->lazy;
    bool was_killed = level != run && run->kind == PLACE_KILLED;

    lazy->runs = explorer_grow(lazy->runs, lazy->summed_size, &lazy->run_capacity,
                               sizeof(*lazy->runs));
    lazy->cut_count = 0;
    add_cut(lazy, (struct cut){0, 0});
    if (was_killed)
        find_cuts_of(lazy, sum, x->subject->trace, run->event + 1, true);
    find_cuts_of(lazy, sum, level == run ? x->subject->trace : run->trace, level->event,
                 false);
}

static uint32_t content_at(const struct level *level, uint32_t choice, struct cut cut)
{
    const struct choice *c = &level->choices[choice];
    const struct px86_choice before = px86_choice_at(
        &level->px86, &level->px86.lines[c->line], cut.killed_event, cut.event);

    for (uint32_t i = 0; i < c->count; i++) {
        const struct px86_choice *it = &content_of(level, choice, i)->choice;

        if (it->whole == before.whole && it->subset == before.subset &&
            it->streams == before.streams)
            return i;
    }
    return UINT32_MAX;
}

/* "Not all parts are as they were at the cut": added if they can be so. */
static bool add_clause(struct level *level, const struct sum *sum, struct cut cut)
{
    struct lazy *lazy = &level->lazy;
    uint32_t count = lazy->literal_count;

    lazy->literals = explorer_grow(lazy->literals, count + sum->count,
                                   &lazy->literal_capacity, sizeof(*lazy->literals));
    for (uint32_t i = 0; i < sum->count; i++) {
        const struct part *part = &sum->parts[i];
        uint32_t content = content_at(level, part->choice, cut);

        if (content == UINT32_MAX ||
            last_alive_like(level, part->choice, content, part->bytes) == UINT32_MAX)
            return false;
        lazy->literals[count + i] =
            (struct literal){part->choice, content, part->bytes};
    }
    lazy->literal_count = count + sum->count;
    lazy->clause_ends =
        explorer_grow(lazy->clause_ends, lazy->clause_count + 1, &lazy->clause_capacity,
                      sizeof(*lazy->clause_ends));
    lazy->clause_ends[lazy->clause_count++] = lazy->literal_count;
    return true;
}

static bool is_same_clause(const struct level *level, uint32_t a, uint32_t b)
{
    const struct lazy *lazy = &level->lazy;
    const struct literal *first = &lazy->literals[clause_begin(lazy, a)];
    const struct literal *second = &lazy->literals[clause_begin(lazy, b)];

    for (uint32_t i = 0; i < lazy->clause_ends[a] - clause_begin(lazy, a); i++)
        if (literal_holds(level, &first[i], second[i].content))
            return false;
    return true;
}

static void drop_clauses(struct lazy *lazy, uint32_t count)
{
    lazy->clause_count = count;
    lazy->literal_count = clause_begin(lazy, count);
}

/* One for each way to be complete; the newest first. */
static void add_clauses(struct level *level, const struct sum *sum)
{
    struct lazy *lazy = &level->lazy;
    uint32_t before = lazy->clause_count;

    for (uint32_t i = lazy->cut_count; i-- > 0;) {
        bool is_known = !add_clause(level, sum, lazy->cuts[i]);

        for (uint32_t j = before; j + 1 < lazy->clause_count && !is_known; j++)
            if (is_same_clause(level, j, lazy->clause_count - 1)) {
                drop_clauses(lazy, lazy->clause_count - 1);
                is_known = true;
            }
    }
}

/* The contrary of the clause. */
static void restrict_to_clause(struct level *level, const struct literal *literals,
                               uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        restrict_to(level, literals[i].choice, literals[i].content, literals[i].bytes);
}

/* Which of the clauses from `first` on can be broken, with all before them held? Lists
 * them in `ways`. */
static uint32_t find_complete(struct explorer *x, struct level *level, uint32_t first)
{
    struct lazy *lazy = &level->lazy;
    uint32_t all = lazy->clause_count, count = 0;

    lazy->ways = explorer_grow(lazy->ways, all - first + 1, &lazy->way_capacity,
                               sizeof(*lazy->ways));
    for (uint32_t i = first; i < all; i++) {
        save(level);
        restrict_to_clause(level, &lazy->literals[clause_begin(lazy, i)],
                           lazy->clause_ends[i] - clause_begin(lazy, i));
        lazy->clause_count = first;
        if (find_contents(x, level))
            lazy->ways[count++] = i;
        lazy->clause_count = all;
        restore(level);
    }
    return count;
}

/* A clause over one line is no clause: contents of that line are out. */
static void exclude(struct level *level, uint32_t first)
{
    struct lazy *lazy = &level->lazy;

    for (uint32_t i = clause_begin(lazy, first); i < lazy->literal_count; i++) {
        const struct literal *literal = &lazy->literals[i];
        const struct choice *c = &level->choices[literal->choice];

        for (uint32_t j = 0; j < c->count; j++)
            if (!literal_holds(level, literal, j))
                lazy->alive[c->first + j] = false;
    }
    drop_clauses(lazy, first);
}

/* Leaves what is torn; false: nothing. */
static bool be_torn(struct explorer *x, struct level *level, const struct sum *sum,
                    uint32_t first)
{
    uint32_t choice = sum->parts[0].choice;

    if (sum->count == 1)
        exclude(level, first);
    return last_alive_like(level, choice, 0, 0) != UINT32_MAX &&
           find_contents(x, level);
}

/* The least of the contents that differ in the literal's bytes. UINT32_MAX: none. */
static uint32_t first_alive_unlike(const struct level *level,
                                   const struct literal *literal)
{
    for (uint32_t i = 0; i < level->choices[literal->choice].count; i++)
        if (is_alive(level, literal->choice, i) && literal_holds(level, literal, i))
            return i;
    return UINT32_MAX;
}

/* The contrary of the clause, but that one of its lines is missing. */
static void restrict_to_loss(struct level *level, const struct literal *literals,
                             uint32_t count, uint32_t lost)
{
    uint32_t least = first_alive_unlike(level, &literals[lost]);

    restrict_to_clause(level, literals, lost);
    restrict_to_clause(level, &literals[lost + 1], count - lost - 1);
    if (least != UINT32_MAX)
        restrict_to(level, literals[lost].choice, least, literals[lost].bytes);
}

/*
 * All that is torn is one to a checksum. What takes none, but looks at some of the
 * bytes, would not notice that others are missing: that is tried, too, the first line,
 * one between and the last. Few lines have few states, which are tried in any case.
 */
static uint32_t find_losses(struct explorer *x, struct level *level, uint32_t clause,
                            uint32_t count, uint32_t losses[LOSSES_MAX])
{
    const struct lazy *lazy = &level->lazy;
    const struct literal *literals = &lazy->literals[clause_begin(lazy, clause)];
    const uint32_t lines[LOSSES_MAX] = {0, count / 2, count - 1};
    bool fell_short = x->fell_short;
    uint32_t found = 0;

    for (uint32_t i = 0; i < LOSSES_MAX; i++) {
        save(level);
        restrict_to_loss(level, literals, count, lines[i]);
        if (find_contents(x, level))
            losses[found++] = lines[i];
        restore(level);
    }
    x->fell_short = fell_short; /* it was not all there is */
    return found;
}

/* From now on the bytes are decided. */
static void close_sum(struct lazy *lazy, const struct sum *sum, uint32_t first)
{
    for (uint32_t i = 0; i < sum->count; i++)
        lazy->open[sum->parts[i].choice] &= ~sum->parts[i].bytes;
    drop_clauses(lazy, first);
}

/* Complete, as one of the clauses says; torn; or torn with a certain line missing. */
static void choose_sum(struct explorer *x, struct level *level, const struct sum *sum)
{
    struct lazy *lazy = &level->lazy;
    uint32_t first = lazy->clause_count, losses[LOSSES_MAX] = {0};

    find_cuts(x, level, sum);
    add_clauses(level, sum);
    uint32_t complete = find_complete(x, level, first);
    uint32_t lost = complete > 0 && sum->count > LOSSES_MAX
                        ? find_losses(x, level, lazy->ways[0], sum->count, losses)
                        : 0;

    save(level);
    uint32_t torn = be_torn(x, level, sum, first);
    uint32_t ways = complete + torn + lost;
    uint32_t taken = ways > 1 ? decide(lazy, ways) : 0;
    uint32_t clause = complete > 0 ? lazy->ways[taken < complete ? taken : 0] : first;
    const struct literal *literals = &lazy->literals[clause_begin(lazy, clause)];

    if (taken < complete) {
        restore(level);
        restrict_to_clause(level, literals, sum->count);
        close_sum(lazy, sum, first);
    } else if (taken >= complete + torn) {
        restrict_to_loss(level, literals, sum->count, losses[taken - complete - torn]);
        close_sum(lazy, sum, first);
    }
    patch_wanted(x, level);
}

static void add_summed(struct lazy *lazy, uint64_t offset, uint64_t end)
{
    lazy->summed = explorer_grow(lazy->summed, lazy->summed_count + 1,
                                 &lazy->summed_capacity, sizeof(*lazy->summed));
    lazy->summed[lazy->summed_count++] =
        (struct summed){offset, end, lazy->summed_size};
    lazy->summed_size += end - offset;
}

static void begin_sum(struct lazy *lazy)
{
    lazy->summed_count = 0;
    lazy->summed_size = 0;
}

static void watch_hash(struct explorer *x, struct level *level)
{
    struct lazy *lazy = &level->lazy;
    struct sum sum = {.ranges = lazy->summed, .range_count = lazy->summed_count};

    find_parts(level, &sum);
    if (sum.count > 0)
        choose_sum(x, level, &sum);
    begin_sum(lazy);
}

/* ---- Watching -------------------------------------------------------------------- */

static void watch(void *arg, uint64_t offset, size_t size, enum access access)
{
    struct explorer *x = arg;
    struct level *level = &x->levels[x->watched];
    uint64_t end = offset + size;

    switch (access) {
    case ACCESS_HASHED:
        add_summed(&level->lazy, offset, end);
        return;
    case ACCESS_HASH:
        watch_hash(x, level);
        return;
    default:
        break;
    }
    for (uint64_t line = offset & ~(uint64_t)(LINE_SIZE - 1); line < end;
         line += LINE_SIZE) {
        uint32_t choice = choice_at(level, line);

        if (choice == UINT32_MAX)
            continue;
        uint64_t bytes = bytes_of_access(line, offset, end);

        if (access == ACCESS_STORE) {
            level->lazy.written[choice] |= bytes;
            level->lazy.open[choice] &= ~bytes;
        } else if (bytes & level->lazy.open[choice]) {
            narrow(x, level, choice, bytes & level->lazy.open[choice]);
        }
    }
}

static bool set_watch(struct explorer *x, watch_fn *function, unsigned number)
{
    x->watched = number;
    x->is_watched = function != NULL;
    return x->subject->set_watch(x->subject->arg, function, x);
}

/* ---- States ---------------------------------------------------------------------- */

static uint64_t varying_bytes(const struct level *level, uint32_t choice)
{
    const struct content *first = content_of(level, choice, 0);
    uint64_t varying = 0;

    for (uint32_t i = 1; i < level->choices[choice].count; i++)
        for (unsigned j = 0; j < LINE_SIZE; j++)
            if (content_of(level, choice, i)->bytes[j] != first->bytes[j])
                varying |= (uint64_t)1 << j;
    return varying;
}

static void begin_states(struct level *level)
{
    struct lazy *lazy = &level->lazy;
    uint32_t *capacity = &lazy->choice_capacity;
    uint32_t count = level->choice_count;

    lazy->alive = explorer_grow(lazy->alive, level->content_count,
                                &lazy->alive_capacity, sizeof(*lazy->alive));
    if (count > *capacity) {
        uint32_t before = *capacity;

        lazy->written =
            explorer_grow(lazy->written, count, capacity, sizeof(*lazy->written));
        *capacity = before;
        lazy->varying =
            explorer_grow(lazy->varying, count, capacity, sizeof(*lazy->varying));
        *capacity = before;
        lazy->open = explorer_grow(lazy->open, count, capacity, sizeof(*lazy->open));
        *capacity = before;
        lazy->wanted =
            explorer_grow(lazy->wanted, count, capacity, sizeof(*lazy->wanted));
    }
    for (uint32_t i = 0; i < count; i++)
        lazy->varying[i] = varying_bytes(level, i);
    lazy->length = 0;
}

static void begin_state(struct level *level)
{
    struct lazy *lazy = &level->lazy;

    for (uint32_t i = 0; i < level->content_count; i++)
        lazy->alive[i] = true;
    for (uint32_t i = 0; i < level->choice_count; i++) {
        lazy->written[i] = 0;
        lazy->open[i] = lazy->varying[i];
    }
    lazy->depth = 0;
    drop_clauses(lazy, 0);
    begin_sum(lazy);
}

/* Taking back what recovery stored was not enough: lines have changed under it. */
static void settle_state(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        patch(x, level, &level->choices[i], level->choices[i].chosen, 0);
}

static void end_state(struct explorer *x, struct level *level)
{
    for (uint32_t i = 0; i < level->choice_count; i++)
        patch(x, level, &level->choices[i], last_of(level, i), 0);
}

/*
 * Guards against loads that are not seen: a right state must be so, too, where each
 * line has the least of the contents that are left to it.
 */
static void visit_least_content(struct explorer *x, unsigned number)
{
    struct level *level = &x->levels[number];

    for (uint32_t i = 0; i < level->choice_count; i++) {
        uint32_t least = 0;

        while (least < last_of(level, i) && !is_alive(level, i, least))
            least++;
        patch(x, level, &level->choices[i], least, 0);
    }
    explorer_judge(x, number);
}

/* A wrong state must be so as it is, too, once its lines are decided. */
static bool judge_lazily(struct explorer *x, unsigned number, bool *is_right)
{
    bool is_exploring = x->is_exploring;

    x->is_exploring = false;
    x->is_rare = number == RUN;
    *is_right = explorer_judge(x, number);
    set_watch(x, NULL, number);
    settle_state(x, &x->levels[number]);
    x->is_exploring = is_exploring;
    bool is_confirmed = *is_right || !explorer_judge(x, number);

    x->is_rare = false;
    return is_confirmed;
}

/* False: this way it cannot be explored. */
static bool visit_state(struct explorer *x, unsigned number, bool guarded)
{
    struct level *level = &x->levels[number];
    bool is_right;

    if (!set_watch(x, watch, number))
        return false;
    begin_state(level);
    explorer_count_state(x, number);
    bool is_confirmed = judge_lazily(x, number, &is_right);

    if (is_right && number == RUN && x->pass == PASS_RECOVERY)
        explorer_visit_nested(x, false);
    if (is_right && guarded && !is_over(x))
        visit_least_content(x, number);
    end_state(x, level);
    return is_confirmed;
}

bool lazy_visit(struct explorer *x, unsigned number)
{
    struct lazy *lazy = &x->levels[number].lazy;
    uint64_t budget = explorer_budget(x, &x->levels[number]);
    uint64_t guarded = number == RUN ? GUARDED : 1;

    begin_states(&x->levels[number]);
    explorer_choose_all(x, &x->levels[number]);
    for (uint64_t i = 0; i < budget && !is_point_over(x); i++) {
        if (!visit_state(x, number, i < guarded))
            return false;
        if (!next_path(lazy))
            return true;
    }
    return false;
}

void lazy_finish(struct lazy *lazy)
{
    free(lazy->alive);
    free(lazy->saved);
    free(lazy->written);
    free(lazy->varying);
    free(lazy->open);
    free(lazy->wanted);
    free(lazy->ways);
    free(lazy->table);
    free(lazy->literals);
    free(lazy->clause_ends);
    free(lazy->cuts);
    free(lazy->runs);
    free(lazy->parts);
    free(lazy->summed);
    free(lazy->path);
}
