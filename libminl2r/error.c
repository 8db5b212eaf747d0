/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "include/minl2r.h"

static _Thread_local char message[256];

int error_format(int errnum, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    return errnum > 0 ? -errnum : -EIO; /* an errno that nobody set is no success */
}

const char *minl2r_errormsg(void)
{
    return message;
}
