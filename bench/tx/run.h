/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run.h - runs workloads on all systems that have them.
 */
#ifndef BENCH_TX_RUN_H
#define BENCH_TX_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/table.h"

struct run_options {
    const char *case_name; /* run only this case; NULL: all */
    size_t rounds;
    uint64_t operations; /* per batch */
};

/* Is there a case of this name? */
bool run_has_case(const char *name);

/* Appends a row per workload and system. Progress and errors go to stderr. */
int run_workloads(const struct run_options *options, struct table *results);

#endif
