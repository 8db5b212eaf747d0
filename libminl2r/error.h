/* SPDX-License-Identifier: BSD-3-Clause */
/* error.h - negative errnos with a message per thread. */
#ifndef MINL2R_ERROR_H
#define MINL2R_ERROR_H

/* Sets this thread's message and returns -errnum: return error_set(EINVAL, "..."). */
#define error_set(...) error_negative(error_format(__VA_ARGS__))

__attribute__((format(printf, 2, 3))) int error_format(int errnum, const char *format,
                                                       ...);

/* Lets compilers and analyzers know that an error is never taken for success. */
static inline int error_negative(int result)
{
    if (result >= 0)
        __builtin_unreachable();
    return result;
}

#endif
