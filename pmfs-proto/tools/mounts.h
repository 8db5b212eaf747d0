/* SPDX-License-Identifier: BSD-3-Clause */
/* mounts.h - which filesystems are mounted where, and taking them off. */
#ifndef PMFS_TOOLS_MOUNTS_H
#define PMFS_TOOLS_MOUNTS_H

#include <limits.h>
#include <stdbool.h>

struct mounted {
    char pool[PATH_MAX];
    char mountpoint[PATH_MAX];
};

/*
 * The absolute path of an existing file or directory, without symbolic links. A mount
 * point whose daemon is dead has one too.
 */
int mounts_resolve(const char *path, char resolved[PATH_MAX]);

/* Calls `visit` for each mounted pmfs, from the bottom of the mount table up. */
typedef void mounts_visit_fn(void *arg, const struct mounted *mounted);
int mounts_visit(mounts_visit_fn *visit, void *arg);

/* The topmost pmfs mounted on `mountpoint`, or of `pool`; both resolved. False: none.
 */
bool mounts_find_at(const char *mountpoint, struct mounted *found);
bool mounts_find_pool(const char *pool, struct mounted *found);

/* Is the daemon of this mount dead: "Transport endpoint is not connected"? */
bool mounts_is_stale(const struct mounted *mounted);

/* Unmounts; `lazy` also what is in use. As fusermount3 where this process may not. */
int mounts_remove(const struct mounted *mounted, bool lazy);

/*
 * Waits until no process has the pool open. A daemon closes its pool after its mount is
 * gone, and a killed one is not gone at once. -EBUSY after `timeout_ms`.
 */
int mounts_wait_released(const char *pool, int timeout_ms);

#endif
