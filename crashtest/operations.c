/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/operations.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void operations_finish(struct operations *operations)
{
    free(operations->names);
    free(operations->marks);
    free(operations->begins);
    free(operations->ends);
    free(operations->progress);
    *operations = (struct operations){0};
}

static int reserve(struct operations *operations, size_t count)
{
    size_t capacity = count * 2 + 16;

    if (count + 1 <= operations->capacity)
        return 0;
    operations_finish(operations);
    operations->names = calloc(capacity, sizeof(*operations->names));
    operations->marks = calloc(2 * capacity, sizeof(*operations->marks));
    operations->begins = calloc(capacity, sizeof(*operations->begins));
    operations->ends = calloc(capacity, sizeof(*operations->ends));
    operations->progress = calloc(capacity, sizeof(*operations->progress));
    if (!operations->names || !operations->marks || !operations->begins ||
        !operations->ends || !operations->progress)
        return -ENOMEM;
    operations->capacity = capacity;
    return 0;
}

static void add_mark(struct operations *operations, const struct trace_event *event)
{
    bool is_end = event->kind == TRACE_END;

    operations->marks[operations->mark_count++] =
        (struct operation_mark){event->at, is_end};
    if (is_end)
        operations->ends[event->at] = operations->mark_count;
    else
        operations->begins[event->at] = operations->mark_count;
}

int operations_begin(struct operations *operations, size_t count,
                     const struct trace *trace)
{
    if (reserve(operations, count) < 0)
        return -ENOMEM;
    operations->count = count;
    operations->mark_count = 0;
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].kind >= TRACE_BEGIN && trace->events[i].at < count)
            add_mark(operations, &trace->events[i]);
    for (size_t i = 0; i < count; i++)
        operations->progress[i] = CRASHTEST_NOT_BEGUN;
    operations->passed = operations->returned = operations->running = 0;
    return 0;
}

/* A crash tells which operation began last; or, if one has ended since, which. */
static size_t marks_before(const struct operations *operations,
                           const struct crash *crash)
{
    if (crash->running != NO_OPERATION)
        return operations->begins[crash->running];
    return crash->returned > 0 ? operations->ends[crash->returned - 1] : 0;
}

static void pass(struct operations *operations)
{
    const struct operation_mark *mark = &operations->marks[operations->passed++];

    operations->progress[mark->operation] =
        mark->is_end ? CRASHTEST_RETURNED : CRASHTEST_RUNNING;
    operations->returned += mark->is_end;
    operations->running += mark->is_end ? -(size_t)1 : 1;
}

static void go_back(struct operations *operations)
{
    const struct operation_mark *mark = &operations->marks[--operations->passed];

    operations->progress[mark->operation] =
        mark->is_end ? CRASHTEST_RUNNING : CRASHTEST_NOT_BEGUN;
    operations->returned -= mark->is_end;
    operations->running -= mark->is_end ? -(size_t)1 : 1;
}

void operations_seek(struct operations *operations, const struct crash *crash)
{
    size_t wanted = marks_before(operations, crash);

    while (operations->passed < wanted)
        pass(operations);
    while (operations->passed > wanted)
        go_back(operations);
}

const char *operations_running(const struct operations *operations)
{
    for (size_t i = operations->running > 0 ? operations->count : 0; i-- > 0;)
        if (operations->progress[i] == CRASHTEST_RUNNING)
            return operations->names[i];
    return NULL;
}

/* ---- Words ----------------------------------------------------------------------- */

static void append(char *text, size_t size, const char *before, const char *name)
{
    size_t length = strlen(text);

    snprintf(text + length, size - length, "%s\"%s\"", before, name);
}

static void list_running(const struct operations *operations, char *text, size_t size)
{
    size_t left = operations->running;

    for (size_t i = 0; i < operations->count && left > 0; i++)
        if (operations->progress[i] == CRASHTEST_RUNNING) {
            append(text, size,
                   left == operations->running ? ""
                   : left == 1                 ? " and "
                                               : ", ",
                   operations->names[i]);
            left--;
        }
}

void operations_describe(struct operations *operations, const struct crash *crash,
                         char *text, size_t size)
{
    char running[300] = "";
    const char *be;

    operations_seek(operations, crash);
    list_running(operations, running, sizeof(running));
    be = operations->running == 1 ? "was" : "were";
    if (crash->running != NO_OPERATION)
        snprintf(text, size, "%s %s running, %zu had returned", running, be,
                 operations->returned);
    else if (crash->returned == 0)
        snprintf(text, size, "none had begun");
    else if (operations->running == 0)
        snprintf(text, size, "\"%s\" had returned, %zu in all",
                 operations->names[crash->returned - 1], operations->returned);
    else
        snprintf(text, size, "\"%s\" had returned, %zu in all; %s %s running",
                 operations->names[crash->returned - 1], operations->returned, running,
                 be);
}

enum crashtest_progress crashtest_progress_of(const struct crashtest_crash *crash,
                                              const char *format, ...)
{
    char name[64]; /* as long as operations may have */
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof(name), format, args);
    va_end(args);
    for (size_t i = 0; crash->operations[i]; i++)
        if (strcmp(crash->operations[i], name) == 0)
            return crash->progress[i];
    return CRASHTEST_NOT_BEGUN;
}
