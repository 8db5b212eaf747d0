/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/trace.h"

#include <sys/mman.h>

static size_t size_of(size_t capacity)
{
    return sizeof(struct trace) + capacity * sizeof(struct trace_event);
}

/* One event more than is counted: it takes what does not fit. */
struct trace *trace_create(size_t capacity)
{
    struct trace *trace = mmap(NULL, size_of(capacity + 1), PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (trace == MAP_FAILED)
        return NULL;
    trace->capacity = capacity;
    return trace;
}

void trace_destroy(struct trace *trace)
{
    if (trace)
        munmap(trace, size_of(trace->capacity + 1));
}

void trace_clear(struct trace *trace)
{
    trace->count = 0;
    trace->groups = 0;
    trace->is_full = false;
}

/* Field by field: clearing it as a whole is slow, and this is done a million times. */
struct trace_event *trace_add(struct trace *trace, enum trace_kind kind)
{
    struct trace_event *event = &trace->events[trace->count];

    if (trace->count < trace->capacity)
        trace->count++;
    else
        trace->is_full = true;
    event->kind = (uint8_t)kind;
    event->size = 0;
    event->joined = event->unseen = event->locks = false;
    event->group = event->thread = 0;
    event->at = event->before = event->after = event->outside = 0;
    for (unsigned i = 0; i < TRACE_FRAMES; i++)
        event->frames[i] = 0;
    return event;
}

bool trace_has_stores(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace_is_store(&trace->events[i]))
            return true;
    return false;
}

bool trace_has_flushes(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].kind == TRACE_FLUSH ||
            trace->events[i].kind == TRACE_STREAM ||
            trace->events[i].kind == TRACE_CLFLUSH)
            return true;
    return false;
}

bool trace_ends_group(const struct trace *trace, size_t index)
{
    const struct trace_event *event = &trace->events[index];

    return trace_is_store(event) &&
           (index + 1 == trace->count || !trace_is_store(&event[1]) ||
            event[1].group != event->group);
}
