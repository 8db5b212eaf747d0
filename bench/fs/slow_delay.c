/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/fs/slow.h"

#include <stddef.h>
#include <string.h>

#include "bench/delay/delay.h"

bool slow_is_here(void)
{
    return true;
}

bool slow_is_medium(const char *name)
{
    return delay_find(name) != NULL;
}

double slow_reads(void)
{
    return (double)delay_totals().read_alone_ps / 1000;
}

int slow_use(const char *name)
{
    delay_use(strcmp(name, "tmpfs") == 0 ? NULL : delay_find(name));
    return 0;
}
