/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h - negative errnos with a message per thread. */
#ifndef MINL2R_ERROR_H
#define MINL2R_ERROR_H

/* Sets this thread's message and returns -errnum: return error_set(EINVAL, "..."). */
__attribute__((format(printf, 2, 3))) int error_set(int errnum, const char *format,
                                                    ...);

#endif
