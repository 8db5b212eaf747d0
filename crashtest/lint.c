/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/lint.h"

#include <stdlib.h>
#include <string.h>

static bool is_same_site(const struct trace_event *a, const struct trace_event *b)
{
    return a->kind == b->kind && memcmp(a->frames, b->frames, sizeof(a->frames)) == 0;
}

static struct lint_site *find_site(struct lint *lint, const struct trace_event *event)
{
    for (size_t i = 0; i < lint->count; i++)
        if (is_same_site(&lint->sites[i].event, event))
            return &lint->sites[i];
    if (lint->count == lint->capacity) {
        size_t capacity = lint->capacity * 2 + 32;
        struct lint_site *grown = realloc(lint->sites, capacity * sizeof(*lint->sites));

        if (!grown)
            return NULL;
        lint->sites = grown;
        lint->capacity = capacity;
    }
    lint->sites[lint->count] = (struct lint_site){.event = *event};
    return &lint->sites[lint->count++];
}

static bool is_flushed(const struct px86 *px86, uint32_t line, uint32_t thread)
{
    for (uint32_t i = 0; i < px86->flush_count; i++)
        if (px86->flushes[i].line == line && px86->flushes[i].thread == thread &&
            px86->flushes[i].last == px86->lines[line].last)
            return true;
    return false;
}

/* LINT_KINDS: it does something. */
static enum lint_kind use_of_flush(const struct px86 *px86,
                                   const struct trace_event *event)
{
    uint32_t line = px86->line_index[event->at / LINE_SIZE];

    if (line == 0 || px86->lines[line - 1].first == PX86_NONE)
        return LINT_CLEAN;
    return is_flushed(px86, line - 1, event->thread) ? LINT_AGAIN : LINT_KINDS;
}

static enum lint_kind use_of(const struct px86 *px86, const struct trace_event *event)
{
    if (event->kind != TRACE_FENCE)
        return use_of_flush(px86, event);
    return px86_is_pending(px86, event->thread) ? LINT_KINDS : LINT_FENCE;
}

static bool is_of_interest(const struct trace_event *event)
{
    return event->kind == TRACE_FLUSH || event->kind == TRACE_CLFLUSH ||
           (event->kind == TRACE_FENCE && !event->locks);
}

static void note(struct lint *lint, const struct trace_event *event)
{
    struct lint_site *site = find_site(lint, event);
    enum lint_kind use = use_of(&lint->px86, event);

    if (site && use == LINT_KINDS)
        site->useful++;
    else if (site)
        site->useless[use]++;
}

void lint_run(struct lint *lint, const struct trace *trace, const uint8_t *image,
              uint64_t size)
{
    if (lint->px86.image == image && lint->px86.size == size) {
        px86_reset(&lint->px86);
    } else {
        px86_finish(&lint->px86);
        if (px86_init(&lint->px86, image, size) < 0)
            return;
    }
    for (size_t i = 0; i < trace->count; i++) {
        if (is_of_interest(&trace->events[i]))
            note(lint, &trace->events[i]);
        px86_apply(&lint->px86, &trace->events[i], (uint32_t)i);
    }
}

void lint_finish(struct lint *lint)
{
    free(lint->sites);
    px86_finish(&lint->px86);
}

bool lint_is_useless(const struct lint_site *site, enum lint_kind *kind)
{
    uint64_t most = 0;

    for (enum lint_kind i = 0; i < LINT_KINDS; i++)
        if (site->useless[i] > most) {
            most = site->useless[i];
            *kind = i;
        }
    return site->useful == 0 && most > 0;
}

const char *lint_name(enum lint_kind kind)
{
    static const char *const names[] = {[LINT_CLEAN] = "clean-line-flushed",
                                        [LINT_AGAIN] = "line-flushed-again",
                                        [LINT_FENCE] = "fence-without-flush"};

    return names[kind];
}

const char *lint_says(enum lint_kind kind)
{
    switch (kind) {
    case LINT_CLEAN:
        return "this flush does nothing: what is there is durable already";
    case LINT_AGAIN:
        return "this flush does nothing: the same was flushed just before";
    default:
        return "this fence does nothing: no flush and no non-temporal store of its "
               "thread came since the one before";
    }
}
