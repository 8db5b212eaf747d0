/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * syscall.c - system calls by number: those that programs make so because the libc they
 * were written for did not have them.
 */
#include "pmfs-proto/preload/preload.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Pointers and numbers are alike in registers. */
#define POINTER(value) ((void *)(uintptr_t)(value))
#define INT(value) ((int)(value))

INTERPOSE(long, syscall, (long number, ...))
{
    long a[6];
    va_list args;

    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    switch (number) {
    case SYS_renameat2:
        return renameat2(INT(a[0]), POINTER(a[1]), INT(a[2]), POINTER(a[3]),
                         (unsigned)a[4]);
    case SYS_statx:
        return statx(INT(a[0]), POINTER(a[1]), INT(a[2]), (unsigned)a[3],
                     POINTER(a[4]));
    case SYS_faccessat2:
        return faccessat(INT(a[0]), POINTER(a[1]), INT(a[2]), INT(a[3]));
    case SYS_getdents64:
        return getdents64(INT(a[0]), POINTER(a[1]), (size_t)a[2]);
    case SYS_copy_file_range:
        return copy_file_range(INT(a[0]), POINTER(a[1]), INT(a[2]), POINTER(a[3]),
                               (size_t)a[4], (unsigned)a[5]);
    case SYS_close_range:
        return close_range((unsigned)a[0], (unsigned)a[1], INT(a[2]));
    default:
        return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
}
