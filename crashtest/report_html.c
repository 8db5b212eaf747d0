/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "crashtest/report.h"

int report_html(const struct report *report, const char *path)
{
    (void)report;
    (void)path;
    return -ENOSYS;
}
