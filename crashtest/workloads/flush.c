/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/flush.h"

static bool is_flush_of(const struct trace_event *event, uint64_t line)
{
    bool flushes = event->kind == TRACE_FLUSH || event->kind == TRACE_CLFLUSH;

    return flushes && event->at / LINE_SIZE * LINE_SIZE == line;
}

/* A stream needs no flush; a store that leaves what is there has nothing to lose. */
static bool changes(const struct trace_event *event, uint64_t line)
{
    return event->kind == TRACE_STORE && event->at / LINE_SIZE * LINE_SIZE == line &&
           event->before != event->after;
}

static bool is_clean(const struct trace *trace, size_t end, uint64_t line)
{
    while (end-- > 0) {
        if (is_flush_of(&trace->events[end], line))
            return true;
        if (changes(&trace->events[end], line))
            return false;
    }
    return true;
}

static bool is_flushed_in_time(const struct trace *trace, size_t begin, uint64_t line)
{
    for (size_t i = begin; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];

        if (is_flush_of(event, line))
            return true;
        if (event->kind == TRACE_FENCE && !event->locks)
            return false;
    }
    return false;
}

bool flush_is_missed(const struct trace *trace, const struct door_left_out *left_out)
{
    for (uint64_t line = left_out->start; line < left_out->end; line += LINE_SIZE)
        if (!is_clean(trace, left_out->event, line) &&
            !is_flushed_in_time(trace, left_out->event, line))
            return true;
    return false;
}
