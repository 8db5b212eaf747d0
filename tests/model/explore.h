/* SPDX-License-Identifier: BSD-3-Clause */
/* explore.h - tries every interleaving, crash and kill of a scenario. */
#ifndef EXPLORE_H
#define EXPLORE_H

#include "tests/model/protocol.h"

struct exploration {
    bool kill;           /* kill the process too, then fail the power in recovery */
    uint64_t states;     /* of threads and memory */
    uint64_t crashes;    /* states of memory that were recovered and judged */
    bool got_stuck;      /* a thread waits for ever */
    char violation[256]; /* empty: none */
};

/* Adds to the counts. False: found something wrong. */
bool explore(const struct scenario *scenario, struct exploration *x);

#endif
