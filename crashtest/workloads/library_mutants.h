/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_mutants.h - bugs in the library, on demand. Functions of it that other files
 * call are wrapped by the linker, as is its door to PM (door.h): the library itself
 * knows nothing of them.
 */
#ifndef LIBRARY_MUTANTS_H
#define LIBRARY_MUTANTS_H

#include <stddef.h>

#include "crashtest/workloads/door.h"
#include "crashtest/workloads/workload.h"

enum mutant_place { MUTANT_NOWHERE, MUTANT_IN_RUN, MUTANT_IN_RECOVERY };

/* The chosen mutant goes wrong there, if it is one of there, from now on. */
void mutate_in(enum mutant_place place);

/* NULL: no more of them. */
const struct mutant *library_mutant(size_t index);

/* From now on there is this one. The scripts that have to find it, ending with NULL. */
const char *const *library_mutate(size_t index);

/* What is wrong with the door in its runs. */
struct door_fault library_mutant_fault(void);

#endif
