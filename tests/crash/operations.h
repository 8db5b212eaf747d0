/* SPDX-License-Identifier: BSD-3-Clause */
/* operations.h - one transaction of each kind. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include "tests/crash/run.h"

struct operation {
    const char *name;
    operation_fn *call;
};

extern const struct operation operations[];
extern const uint32_t operation_count;

/* The one of this name, which there must be. */
const struct operation *find_operation(const char *name);

/* Makes the root object. */
int operation_create_root(struct minl2r_pool *pool, const struct side *side);

#endif
