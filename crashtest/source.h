/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source.h - return addresses as places in the source, for reports.
 */
#ifndef CRASHTEST_SOURCE_H
#define CRASHTEST_SOURCE_H

#include <stddef.h>
#include <stdint.h>

#include "crashtest/trace.h"

struct source {
    char place[200];    /* "log.c:57"; or the library and function; never empty */
    char function[100]; /* may be empty */
    char path[400];     /* of the file; empty: not known */
    unsigned line;
};

void source_find(uintptr_t return_address, struct source *source);

/* The innermost frame of the event that has a line of source, else the innermost one.
 */
void source_of_event(const struct trace_event *event, struct source *source);

/* Where the program did it: the same, or where it called libminl2r. */
void source_of_program(const struct trace_event *event, struct source *source);

/* "log.c:57 (append), called from log.c:80 (insert)"; what libminl2r did, besides "in a
 * call at log.c:91 (main)". */
void source_describe(const struct trace_event *event, char *text, size_t size);

#endif
