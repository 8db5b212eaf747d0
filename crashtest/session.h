/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * session.h - runs a program once, and has its trace: in a child, or here.
 */
#ifndef CRASHTEST_SESSION_H
#define CRASHTEST_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/explore.h"
#include "crashtest/operations.h"
#include "crashtest/origin.h"
#include "include/crashtest.h"

#define OPERATIONS_MAX 65536
#define OPERATION_NAME_MAX 63

/*
 * The lines that run or recovery have stored to, by their offsets, each once: first all
 * of run's, then those that are only recovery's. No other is unlike the base image.
 */
struct touched {
    const uint64_t *lines;
    size_t count;
};

/* A program, and how it is tested. Only `program` set: as crashtest_main() does. */
struct session_program {
    const struct crashtest_program *program; /* name: for ids, without ':' */
    const char *workload; /* that its results are added to; NULL: the program's name */

    /*
     * PM that `run` begins with, of pm_size bytes, instead of `init`. It must not
     * change: the same pointer again is not copied again.
     */
    const uint8_t *base;

    /*
     * `run` is called in this process, on PM at another address than recovery gets. It
     * must undo whatever it does to the process, and so must `close`. Needs `base`.
     */
    bool in_process;

    /* The process is as it was when the session first recorded the program, as far as
     * `run` can see. Its memory must not change on purpose: `arg`, for example. */
    bool is_fresh;

    uint64_t schedule; /* seed of the order of its threads; 0: as they happen to run */

    /* Operations before this one are not explored: that was done in other programs. */
    uint64_t first;

    bool only_run; /* what it leaves is judged by others: nothing checks it here */

    /* Instead of program->check. */
    int (*check)(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 const struct touched *touched, void *arg);
};

struct session {
    const struct session_program *tested;
    const struct crashtest_program *program;
    uint64_t hooks_max; /* of `run` in this process */
    int fd;             /* of the file that is PM */
    char path[64];
    uint64_t size;
    uint8_t *base;         /* PM after init: what was durable before the run */
    const uint8_t *loaded; /* what image and shadow have; NULL: something else */
    uint8_t *run_image;    /* a mapping of the file, for run: otherwise protected */
    uint8_t *image;        /* the same, for recovery; base again after the run */
    uint8_t *shadow;       /* of the image */
    struct trace *trace;
    struct operations operations;
    uint32_t threads; /* that the run had, if they were scheduled */
    uint64_t turns;   /* that they took */
    uint64_t runs;    /* in this process */
    bool is_fixed;    /* PM is at the same address for run and recovery */

    uint64_t unseen; /* words stored past the hooks; the first of them: */
    uint64_t unseen_at;
    const char *unseen_in; /* operation, or NULL */
    bool is_blind;         /* no store was seen by a hook */

    struct origin origin; /* of fresh runs */
    struct marks *marks;  /* shared with the child */
    struct outcome *outcome;
    char error[1400]; /* why there is no trace */
};

void session_init(struct session *session, uint64_t hooks_max);

/* Two runs that did the same to PM have the same one. */
uint64_t session_hash(const struct session *session);

/* 0, or negative with `error` set. The trace is valid until the next one. */
int session_record(struct session *session, const struct session_program *tested);

/* Takes back what `trace` stored, last first. */
void session_revert(const struct session *session, const struct trace *trace);

/* In a new process, once a run is recorded: PM is its own. 0 or a negative errno. */
int session_unshare(struct session *session);
void session_finish(struct session *session);

#endif
