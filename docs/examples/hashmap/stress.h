/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stress.h - a known sequence of random operations, and whether a map shows it. It
 * proves that what was acknowledged survives kill -9.
 */
#ifndef STRESS_H
#define STRESS_H

#include "hashmap.h"

/* Runs operations `first` to `last`; prints a line for each when it is durable. */
int stress_run(struct hashmap *map, uint64_t seed, uint64_t first, uint64_t last);

/*
 * Checks that the map is what operations 1 to `last` make of an empty one, or 1 to
 * `last` + 1: one may have been committed and not acknowledged. Prints the number of
 * the last one found.
 */
int stress_verify(const struct hashmap *map, uint64_t seed, uint64_t last);

#endif
