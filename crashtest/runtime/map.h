/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * map.h - mappings of the file that is PM: what was compiled by crashtest-cc gets the
 * mapping that is explored, without a system call; others make theirs, and are watched.
 */
#ifndef CRASHTEST_MAP_H
#define CRASHTEST_MAP_H

#include <stdbool.h>
#include <stddef.h>

bool map_is_pm_path(const char *path);

/* As msync(): flushes whole pages, and waits. */
void map_sync(const void *address, size_t size, const void *pc);

#endif
