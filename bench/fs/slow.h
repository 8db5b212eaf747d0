/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slow.h - slower media (bench/delay) are in a program of their own: in front of the
 * door to PM they would cost a little even when they are not used. This header has two
 * implementations, one for each program.
 */
#ifndef BENCH_FS_SLOW_H
#define BENCH_FS_SLOW_H

#include <stdbool.h>

/* Is this the program that has them? */
bool slow_is_here(void);

/* "tmpfs", "optane", "cxl" */
bool slow_is_medium(const char *name);

/* ns of reads that this thread had to wait for, while nothing that it wrote was on its way;
 * NAN: nobody knows. */
double slow_reads(void);

/* From now on PM is that medium. */
int slow_use(const char *name);

#endif
