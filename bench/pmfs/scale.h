/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scale.h - how costs grow: of names with how many others are in their directory, of
 * mounting with how many files there are, of allocation with how full the pool is.
 */
#ifndef BENCH_PMFS_SCALE_H
#define BENCH_PMFS_SCALE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A figure: nanoseconds per operation, of each round. */
struct scale_figure {
    const char *op;
    double size; /* names, files, or percent of the pool that are allocated */
    const double *ns;
    size_t rounds;
    double fences;  /* per operation */
    uint32_t reads; /* of lines in no cache, each known by the one before; or 0 */
    const double *floor_ns; /* that many in plain memory; NULL: there is no floor */
};

typedef int scale_take_fn(void *arg, const struct scale_figure *figure);

/* `is_quick`: up to thirty thousand names, not a million. 0 or a negative errno. */
int scale_measure(bool is_quick, scale_take_fn *take, void *arg);

#endif
