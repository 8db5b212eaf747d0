/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * workers.h - several processes share out cases: each takes the next one, and leaves
 * what it finds in memory that all of them have.
 */
#ifndef CRASHTEST_WORKERS_H
#define CRASHTEST_WORKERS_H

#include <stdbool.h>
#include <stddef.h>

#define WORKERS_MAX 64

/* So many are of use; `wanted` 0: as many as processors. */
unsigned workers_count(unsigned wanted, size_t cases);

/* Zeroed memory; NULL: there is none. Costs only what is used. */
void *workers_share(size_t size);

/* The next case; `*next` is shared. */
size_t workers_take(size_t *next);

struct workers {
    unsigned count;
    void (*work)(void *arg, unsigned number); /* in a process of its own */
    void (*tell)(void *arg);                  /* now and then, here; NULL: do not */
    void *arg;
};

/* The first that did not end by itself, and how, as of waitpid(); status 0: all did. */
struct workers_end {
    unsigned number;
    int status;
};

/*
 * Until all have ended; if one does not by itself, the others are killed. False: not
 * all could be started.
 */
bool workers_run(const struct workers *workers, struct workers_end *end);

#endif
