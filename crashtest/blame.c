/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/blame.h"

#include <stdio.h>
#include <string.h>

#include "crashtest/source.h"

/* ---- Finding --------------------------------------------------------------------- */

struct search {
    const struct trace *trace; /* that the culprit is in */
    size_t end;                /* of it: the crash */
    const struct account *account;
    const struct account_entry *culprit; /* NULL: nothing was lost */
    const struct trace_event *follower;  /* a store that did arrive, or had; or NULL */
    size_t follower_index;               /* of it in the trace, if it arrived */
    const struct trace_event *flush;     /* that came too early, or has no fence */
    const struct trace_event *last;      /* the last store before the crash, or NULL */
};

/* Entries are in order; what recovery lost comes before what the run did. */
static const struct account_entry *first_lost(const struct account *account)
{
    const struct account_entry *first = NULL;

    for (size_t i = 0; i < account->count; i++) {
        const struct account_entry *entry = &account->entries[i];

        if (entry->lost && (!first || first->level < entry->level))
            first = entry;
    }
    return first;
}

static bool is_same_store(const struct account_entry *a, const struct account_entry *b)
{
    return a->level == b->level && a->event.group == b->event.group;
}

/* All that is lost is a part of one store, and another part of it is not. */
static bool is_torn(const struct search *search)
{
    const struct account_entry *culprit = search->culprit;
    bool some_arrived = false;

    for (size_t i = 0; i < search->account->count; i++) {
        const struct account_entry *entry = &search->account->entries[i];

        if (entry->lost && !is_same_store(entry, culprit))
            return false;
        some_arrived |= !entry->lost && is_same_store(entry, culprit);
    }
    return some_arrived;
}

/* The first store after the culprit that arrived; one that matters, if any does. */
static const struct account_entry *first_survivor(const struct search *search)
{
    const struct account_entry *culprit = search->culprit, *first = NULL;

    for (size_t i = 0; i < search->account->count; i++) {
        const struct account_entry *entry = &search->account->entries[i];

        if (entry->lost || entry->level != culprit->level ||
            is_same_store(entry, culprit) ||
            (entry->index <= culprit->index && !culprit->event.unseen))
            continue;
        if (entry->matters)
            return entry;
        if (!first)
            first = entry;
    }
    return first;
}

static void find_survivor(struct search *search)
{
    const struct account_entry *entry = first_survivor(search);

    search->follower = entry ? &entry->event : NULL;
    search->follower_index = entry ? entry->index : 0;
}

static bool is_undecided(const struct search *search, size_t index)
{
    for (size_t i = 0; i < search->account->count; i++)
        if (search->account->entries[i].index == index &&
            search->account->entries[i].level == search->culprit->level)
            return true;
    return false;
}

/* Another thread is in an operation of its own. */
static bool is_of_other(const struct trace_event *event, const struct trace_event *of)
{
    return event->thread != 0 && event->thread != of->thread;
}

/* The newest durable store of the same operation before the culprit. */
static const struct trace_event *durable_before(const struct search *search)
{
    for (size_t i = search->culprit->index; i-- > 0;) {
        const struct trace_event *event = &search->trace->events[i];

        if (is_of_other(event, &search->culprit->event))
            continue;
        if (event->kind == TRACE_BEGIN || event->kind == TRACE_END)
            return NULL;
        if (trace_is_store(event) && !is_undecided(search, i) &&
            event->group != search->culprit->event.group)
            return event;
    }
    return NULL;
}

static bool is_flush_of(const struct trace_event *event,
                        const struct trace_event *store)
{
    return (event->kind == TRACE_FLUSH || event->kind == TRACE_CLFLUSH) &&
           event->at / LINE_SIZE == store->at / LINE_SIZE;
}

static const struct trace_event *flush_after(const struct search *search)
{
    for (size_t i = search->culprit->index + 1; i < search->end; i++)
        if (is_flush_of(&search->trace->events[i], &search->culprit->event))
            return &search->trace->events[i];
    return NULL;
}

/*
 * The first flush of the culprit in its operation, before the crash or after it;
 * SIZE_MAX: there is none.
 */
static size_t flush_of_operation(const struct search *search)
{
    for (size_t i = search->culprit->index + 1; i < search->trace->count; i++) {
        const struct trace_event *event = &search->trace->events[i];

        if (event->kind == TRACE_END && !is_of_other(event, &search->culprit->event))
            return SIZE_MAX;
        if (is_flush_of(event, &search->culprit->event))
            return i;
    }
    return SIZE_MAX;
}

/* The newest durable store between the culprit and `end`. */
static const struct trace_event *durable_between(const struct search *search,
                                                 size_t end)
{
    for (size_t i = end < search->end ? end : search->end;
         i-- > search->culprit->index + 1;) {
        const struct trace_event *event = &search->trace->events[i];

        if (trace_is_store(event) && !is_undecided(search, i) &&
            !is_of_other(event, &search->culprit->event))
            return event;
    }
    return NULL;
}

/* What needs the culprit was stored before the culprit is flushed; which it is. */
static bool is_flushed_late(struct search *search)
{
    size_t flush = flush_of_operation(search);

    if (flush == SIZE_MAX)
        return false;
    if (!search->follower)
        search->follower = durable_between(search, flush);
    else if (search->follower_index > flush)
        return false;
    if (!search->follower)
        return false;
    search->flush = &search->trace->events[flush];
    return true;
}

/* Did the flush at `index` have something to do? Its operation has stored to the line.
 */
static bool had_reason(const struct trace *trace, size_t index)
{
    const struct trace_event *flush = &trace->events[index];

    for (size_t i = index; i-- > 0;) {
        const struct trace_event *event = &trace->events[i];

        if (is_of_other(event, flush))
            continue;
        if (event->kind == TRACE_BEGIN || event->kind == TRACE_END)
            return false;
        if (trace_is_store(event) && event->at / LINE_SIZE == flush->at / LINE_SIZE)
            return true;
    }
    return false;
}

static bool is_fenced_between(const struct search *search, size_t flush, size_t end)
{
    const struct trace_event *events = search->trace->events;

    for (size_t i = flush + 1; i < end; i++)
        if ((events[i].kind == TRACE_FENCE || events[i].kind == TRACE_CLFLUSH) &&
            events[i].thread == events[flush].thread)
            return true;
    return events[flush].kind == TRACE_CLFLUSH;
}

/*
 * A flush that was meant for the culprit, but came before it: it had nothing else to
 * do, or the culprit is between it and its fence.
 */
static const struct trace_event *flush_before(const struct search *search)
{
    for (size_t i = search->culprit->index; i-- > 0;) {
        const struct trace_event *event = &search->trace->events[i];

        if (is_of_other(event, &search->culprit->event))
            continue;
        if (event->kind == TRACE_BEGIN || event->kind == TRACE_END)
            return NULL;
        if (is_flush_of(event, &search->culprit->event))
            return had_reason(search->trace, i) &&
                           is_fenced_between(search, i, search->culprit->index)
                       ? NULL
                       : event;
    }
    return NULL;
}

static bool is_fenced_by_other(const struct search *search,
                               const struct trace_event *flush)
{
    const struct trace_event *end = &search->trace->events[search->end];

    for (const struct trace_event *event = flush + 1; event < end; event++)
        if (event->kind == TRACE_FENCE && event->thread != flush->thread)
            return true;
    return false;
}

/* Its own thread flushes and fences it, but only after the crash. */
static bool is_durable_later(const struct search *search)
{
    const struct trace_event *store = &search->culprit->event;
    bool flushed = store->kind == TRACE_STREAM;

    for (size_t i = search->culprit->index + 1; i < search->trace->count; i++) {
        const struct trace_event *event = &search->trace->events[i];

        if (event->thread != store->thread)
            continue;
        flushed |= is_flush_of(event, store);
        if (flushed && (event->kind == TRACE_FENCE || event->kind == TRACE_CLFLUSH))
            return i >= search->end;
    }
    return false;
}

/* The newest durable store of another thread since the culprit. */
static const struct trace_event *durable_of_other(const struct search *search)
{
    for (size_t i = search->end; i-- > search->culprit->index;) {
        const struct trace_event *event = &search->trace->events[i];

        if (event->thread != search->culprit->event.thread && trace_is_store(event) &&
            !is_undecided(search, i))
            return event;
    }
    return NULL;
}

/* What another thread stored got there first. */
static bool is_race(struct search *search)
{
    if (!search->follower && search->culprit->level == 0)
        search->follower = durable_of_other(search);
    return search->follower && search->culprit->level == 0 &&
           search->follower->thread != search->culprit->event.thread &&
           is_durable_later(search);
}

static enum blame_kind kind_of_unflushed(struct search *search)
{
    if (search->culprit->event.unseen)
        return BLAME_UNSEEN;
    if (!trace_has_flushes(search->trace) && search->culprit->level == 0)
        return BLAME_NEVER_FLUSHED;
    search->flush = flush_before(search);
    return search->flush ? BLAME_FLUSHED_EARLY : BLAME_NOT_FLUSHED;
}

/* Not durable: for want of a flush, or of a fence? */
static enum blame_kind kind_of_loss(struct search *search)
{
    if (is_torn(search))
        return BLAME_TORN;
    find_survivor(search);
    if (is_race(search))
        return BLAME_RACE;
    find_survivor(search);
    if (search->culprit->event.kind == TRACE_STORE) {
        if (is_flushed_late(search))
            return BLAME_FLUSHED_LATE;
        search->flush = flush_after(search);
        if (!search->flush)
            return kind_of_unflushed(search);
        if (is_fenced_by_other(search, search->flush))
            return BLAME_OTHER_FENCE;
    }
    return BLAME_NOT_FENCED;
}

/* It will be durable in time, but something that was so before cannot do without it. */
static bool is_matter_of_order(struct search *search, enum blame_kind kind,
                               const struct crash *crash)
{
    if (search->follower || crash->running == NO_OPERATION || kind == BLAME_TORN ||
        kind == BLAME_NEVER_FLUSHED)
        return false;
    search->follower = durable_before(search);
    return search->follower != NULL;
}

/* ---- Saying ---------------------------------------------------------------------- */

static const char *const kinds[] = {
    [BLAME_NEVER_FLUSHED] = "never-flushed",
    [BLAME_NOT_FLUSHED] = "not-flushed",
    [BLAME_UNSEEN] = "unseen",
    [BLAME_FLUSHED_EARLY] = "flushed-early",
    [BLAME_FLUSHED_LATE] = "flushed-late",
    [BLAME_NOT_FENCED] = "not-fenced",
    [BLAME_OTHER_FENCE] = "other-fence",
    [BLAME_TORN] = "torn",
    [BLAME_ORDER] = "order",
    [BLAME_RACE] = "race",
    [BLAME_CUT] = "cut",
    [BLAME_LOGIC] = "logic",
};

const char *blame_name(enum blame_kind kind)
{
    return kinds[kind];
}

struct words {
    char culprit[220]; /* places */
    char follower[220];
    char flush[220];
    char last[220];
    char before_what[300]; /* until when it should have been durable */
    const char *operation; /* of the last store */
    const char *other;     /* operation that another thread was in; NULL: none */
    unsigned other_thread;
};

/* ---- Threads --------------------------------------------------------------------- */

/* The operation that the thread was in at that event; NULL: none. */
static const char *operation_of_thread(const struct search *search,
                                       const struct blame_names *names, size_t end,
                                       uint32_t thread)
{
    for (size_t i = end; i-- > 0;) {
        const struct trace_event *event = &search->trace->events[i];

        if (event->thread != thread)
            continue;
        if (event->kind == TRACE_BEGIN)
            return names->operations[event->at];
        if (event->kind == TRACE_END)
            return NULL;
    }
    return NULL;
}

/* Who was in the middle of something, and ran before the last one did. */
static void find_other(const struct search *search, const struct blame_names *names,
                       struct words *words)
{
    const uint32_t last = search->last->thread;

    const char *operation = operation_of_thread(search, names, search->end, last);

    if (operation)
        words->operation = operation;
    for (size_t i = search->end; i-- > 0 && !words->other;) {
        words->other_thread = search->trace->events[i].thread;
        if (words->other_thread != last)
            words->other =
                operation_of_thread(search, names, i + 1, words->other_thread);
    }
}

/* ---- Words ----------------------------------------------------------------------- */

static void name_event(const struct trace_event *event, char *text, size_t size)
{
    struct source source;

    text[0] = 0;
    if (!event)
        return;
    source_of_event(event, &source);
    snprintf(text, size, "%s", source.place);
    if (event->outside == 0)
        return;
    size_t length = strlen(text);

    source_find(event->outside, &source);
    snprintf(text + length, size - length, ", in a call at %s", source.place);
}

static void find_words(const struct search *search, const struct crash *crash,
                       const struct blame_names *names, struct words *words)
{
    const char *operation = names->current;

    words->operation = operation;
    words->other = NULL;
    if (names->operations && search->last)
        find_other(search, names, words);
    name_event(search->culprit ? &search->culprit->event : NULL, words->culprit,
               sizeof(words->culprit));
    name_event(search->follower, words->follower, sizeof(words->follower));
    name_event(search->flush, words->flush, sizeof(words->flush));
    name_event(search->last, words->last, sizeof(words->last));
    if (search->follower)
        snprintf(words->before_what, sizeof(words->before_what),
                 "before %s stores what needs it", words->follower);
    else if (crash->running == NO_OPERATION && operation)
        snprintf(words->before_what, sizeof(words->before_what), "when \"%s\" returns",
                 operation);
    else
        snprintf(words->before_what, sizeof(words->before_what), "when it is needed");
}

#define SAY(text, ...) snprintf(text, sizeof(text), __VA_ARGS__)

static void say_unflushed(struct blame *blame, const struct words *words)
{
    switch (blame->kind) {
    case BLAME_NEVER_FLUSHED:
        SAY(blame->headline,
            "%s: this store can be lost: the program never flushes what it stores to "
            "PM",
            words->culprit);
        SAY(blame->hint, "stores stay in the CPU's caches until they are flushed: "
                         "after storing, call "
                         "pmem_persist(address, size), or _mm_clwb() for each line and "
                         "_mm_sfence()");
        break;
    case BLAME_FLUSHED_EARLY:
        SAY(blame->headline,
            "%s: this store is not flushed %s: the flush at %s comes before the store",
            words->culprit, words->before_what, words->flush);
        SAY(blame->hint,
            "a flush covers what was stored before it: move the flush of %s behind %s",
            words->flush, words->culprit);
        break;
    case BLAME_FLUSHED_LATE:
        SAY(blame->headline,
            "%s: this store is flushed too late: at %s, after %s has stored what needs "
            "it",
            words->culprit, words->flush, words->follower);
        SAY(blame->hint,
            "what is stored last need not be durable last: move the flush of %s, and a "
            "fence after it, in front of %s",
            words->flush, words->follower);
        break;
    case BLAME_UNSEEN:
        SAY(blame->headline,
            "%s: what was stored before this, at offset 0x%llx and unseen by the "
            "tester, "
            "is not flushed %s",
            words->culprit, (unsigned long long)blame->store.at, words->before_what);
        SAY(blame->hint,
            "flushes of code that crashtest-cc did not compile, and those in inline "
            "assembly, are not seen either: compile all that stores to PM by "
            "crashtest-cc, or flush it by what is seen, such as pmem_persist()");
        break;
    default:
        SAY(blame->headline, "%s: this store is not flushed %s", words->culprit,
            words->before_what);
        SAY(blame->hint,
            "flush it and fence right after %s: pmem_persist(address, size), or "
            "_mm_clwb() for each line and _mm_sfence()",
            words->culprit);
        break;
    }
}

static void say_unfenced(struct blame *blame, const struct words *words)
{
    if (!words->flush[0]) {
        SAY(blame->headline, "%s: no fence makes this non-temporal store durable %s",
            words->culprit, words->before_what);
        SAY(blame->hint,
            "non-temporal stores need a fence: pmem_drain() or _mm_sfence() "
            "right after them");
        return;
    }
    SAY(blame->headline, "%s: this store is flushed at %s, but no fence%s follows %s",
        words->culprit, words->flush,
        blame->kind == BLAME_OTHER_FENCE ? " of the same thread" : "",
        words->before_what);
    SAY(blame->hint,
        "a flush only begins to write back: wait for it with pmem_drain() or "
        "_mm_sfence() after %s, in the thread that flushed",
        words->flush);
}

static void say_lost(struct blame *blame, const struct words *words)
{
    switch (blame->kind) {
    case BLAME_TORN:
        SAY(blame->headline,
            "%s: only a part of what is stored here may arrive, and nothing notices",
            words->culprit);
        SAY(blame->hint,
            "8 aligned bytes arrive whole, larger stores do not: make what is larger "
            "durable first, then make it valid by one store of 8 bytes, or give it a "
            "checksum that recovery tests");
        break;
    case BLAME_ORDER:
        SAY(blame->headline,
            "%s: this store comes too late: what %s stored is durable by then, and "
            "needs it",
            words->culprit, words->follower);
        SAY(blame->hint, "store, flush and fence %s before %s", words->culprit,
            words->follower);
        break;
    case BLAME_RACE:
        SAY(blame->headline,
            "%s: this store is not durable yet when another thread, at %s, stores what "
            "needs it",
            words->culprit, words->follower);
        SAY(blame->hint,
            "flush and fence %s before another thread can go on with it, such as "
            "before "
            "the lock is given up; or let the thread at %s wait for that",
            words->culprit, words->follower);
        break;
    case BLAME_NOT_FENCED:
    case BLAME_OTHER_FENCE:
        say_unfenced(blame, words);
        break;
    default:
        say_unflushed(blame, words);
        break;
    }
}

static void say_cut(struct blame *blame, const struct words *words,
                    const struct verdict *verdict)
{
    SAY(blame->headline,
        "%s: \"%s\" can be cut off after this store%s%s%s, and then "
        "%.200s",
        words->last, words->operation ? words->operation : "run",
        words->other ? " while \"" : "", words->other ? words->other : "",
        words->other ? "\" is half done" : "", verdict->message);
    SAY(blame->hint, "every store before the crash has arrived, none after it: let the "
                     "operation take "
                     "effect by one store of 8 bytes, or by a transaction, or let "
                     "recovery finish or "
                     "undo it");
}

static void say_not_lost(struct blame *blame, const struct words *words,
                         const struct verdict *verdict)
{
    if (blame->kind == BLAME_CUT)
        say_cut(blame, words, verdict);
    else
        SAY(blame->headline, "%.300s, although no store was lost", verdict->message);
    if (words->other)
        SAY(blame->hint,
            "thread %u was in the middle of \"%.60s\": let others that need it wait "
            "until it is durable, or let recovery finish or undo it",
            words->other_thread, words->other);
    else if (blame->kind == BLAME_LOGIC)
        SAY(blame->hint, "no crash is needed for this, a restart is enough: look at "
                         "recover and check, and at what is kept outside PM");
}

static const struct trace_event *last_store(const struct trace *trace, size_t end)
{
    for (size_t i = end; i-- > 0;)
        if (trace_is_store(&trace->events[i]))
            return &trace->events[i];
    return NULL;
}

static enum blame_kind kind_of(struct search *search, const struct place *place,
                               const struct crash *crash)
{
    if (!search->culprit)
        return crash->running == NO_OPERATION ? BLAME_LOGIC : BLAME_CUT;
    if (search->culprit->level == 1) {
        search->trace = search->account->recovery;
        search->end = place->levels[1].event;
    }
    enum blame_kind kind = kind_of_loss(search);

    return is_matter_of_order(search, kind, crash) ? BLAME_ORDER : kind;
}

void blame_find(const struct subject *subject, const struct place *place,
                const struct crash *crash, const struct account *account,
                const struct verdict *verdict, const struct blame_names *names,
                struct blame *blame)
{
    const struct place_level *run = &place->levels[0];
    size_t end = run->event + (run->kind != PLACE_POWER);
    struct search search = {.trace = subject->trace,
                            .end = end,
                            .account = account,
                            .culprit = first_lost(account),
                            .last = last_store(subject->trace, end)};
    struct words words;

    *blame = (struct blame){.kind = kind_of(&search, place, crash)};
    find_words(&search, crash, names, &words);
    if (blame->kind != BLAME_LOGIC)
        SAY(blame->culprit, "%s", search.culprit ? words.culprit : words.last);
    if (search.culprit) {
        blame->store = search.culprit->event;
        blame->is_lost = true;
        say_lost(blame, &words);
        return;
    }
    if (search.last)
        blame->store = *search.last;
    say_not_lost(blame, &words, verdict);
}
