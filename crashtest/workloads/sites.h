/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sites.h - is each flush, fence and stream needed? Every place in the code that has
 * one, told apart by who called, is left out in turn, and some script has to find that.
 */
#ifndef CRASHTEST_SITES_H
#define CRASHTEST_SITES_H

#include <stdbool.h>
#include <stddef.h>

#include "crashtest/workloads/door.h"

/* Where leaving it out is no bug: a function, and who called it, or NULL. */
struct sites_needless {
    const char *function, *caller;
};

struct sites_hunt {
    size_t script_count;
    /* Runs and explores a script with that fault: is something wrong? */
    bool (*is_wrong)(size_t script, struct door_fault fault);
    /* The same without a fault, only so that sites are seen. */
    void (*look)(size_t script);
    const struct sites_needless *needless; /* ends with {NULL} */
};

/*
 * Are all found but those? If not, `error`, of WORKLOAD_ERROR_SIZE bytes, names them.
 */
bool sites_are_found(const struct sites_hunt *hunt, char *error);

#endif
