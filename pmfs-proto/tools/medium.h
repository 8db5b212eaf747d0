/* SPDX-License-Identifier: BSD-3-Clause */
/* medium.h - a medium by its name. */
#ifndef PMFS_TOOLS_MEDIUM_H
#define PMFS_TOOLS_MEDIUM_H

#include <stdbool.h>
#include <string.h>

#include "include/minl2r.h"

static inline bool medium_parse(const char *name, enum minl2r_medium *medium)
{
    for (unsigned i = MINL2R_EMULATED; i <= MINL2R_EADR; i++) {
        *medium = (enum minl2r_medium)i;
        if (strcmp(minl2r_medium_name(*medium), name) == 0)
            return true;
    }
    return false;
}

#endif
