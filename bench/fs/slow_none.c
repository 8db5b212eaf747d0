/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/fs/slow.h"

#include <errno.h>
#include <math.h>
#include <string.h>

bool slow_is_here(void)
{
    return false;
}

bool slow_is_medium(const char *name)
{
    return strcmp(name, "tmpfs") == 0 || strcmp(name, "optane") == 0 ||
           strcmp(name, "cxl") == 0;
}

double slow_reads(void)
{
    return NAN;
}

int slow_use(const char *name)
{
    return strcmp(name, "tmpfs") == 0 ? 0 : -ENOTSUP;
}
