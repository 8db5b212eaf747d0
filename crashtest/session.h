/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - runs a program once, in a child, and has its trace.
 */
#ifndef CRASHTEST_SESSION_H
#define CRASHTEST_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/explore.h"
#include "include/crashtest.h"

#define OPERATIONS_MAX 65536
#define OPERATION_NAME_MAX 63

struct session {
    const struct crashtest_program *program;
    int fd; /* of the file that is PM */
    char path[64];
    uint64_t size;
    uint8_t *base;   /* PM after init: what was durable before the run */
    uint8_t *image;  /* a mapping of the file, for recovery */
    uint8_t *shadow; /* of the image */
    struct trace *trace;
    const char **operations; /* ends with NULL */
    size_t operation_count;

    uint64_t unseen; /* words stored past the hooks; the first of them: */
    uint64_t unseen_at;
    const char *unseen_in; /* operation, or NULL */
    bool is_blind;         /* no store was seen by a hook */

    struct marks *marks; /* shared with the child */
    struct outcome *outcome;
    char error[600]; /* why there is no trace */
};

/* 0, or negative with `error` set. Either way session_finish() comes later. */
int session_record(struct session *session, const struct crashtest_program *program);
void session_finish(struct session *session);

#endif
