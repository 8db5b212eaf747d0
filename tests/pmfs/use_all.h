/* SPDX-License-Identifier: BSD-3-Clause */
/* use_all.h - every kind of call, on whatever a filesystem holds. */
#ifndef PMFS_USE_ALL_H
#define PMFS_USE_ALL_H

#include "include/pmfs.h"

#define VISIT_MAX 400

/* What a walk has met. */
struct visit {
    uint64_t inos[VISIT_MAX];
    char names[VISIT_MAX][PMFS_NAME_MAX + 1];
    uint64_t parents[VISIT_MAX];
    int count;
    uint64_t parent; /* of what comes */
};

/* A pmfs_readdir_fn. */
int visit_remember(void *visit, const struct pmfs_dirent *entry);

/*
 * Walks the tree, as far as it can be believed, reads and changes and renames what it
 * finds, and removes it all. Errors are taken as they come.
 */
void use_all(struct pmfs *fs);

#endif
