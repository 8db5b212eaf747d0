/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bytes.h - memmove() and memset() that nobody is told of.
 */
#ifndef CRASHTEST_BYTES_H
#define CRASHTEST_BYTES_H

#include <stddef.h>

void bytes_move(void *dst, const void *src, size_t size);
void bytes_set(void *dst, int byte, size_t size);

#endif
