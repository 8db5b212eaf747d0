/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_tree.h - all that a mounted pmfs shows, and in what two of them differ.
 */
#ifndef CRASHTEST_PMFS_TREE_H
#define CRASHTEST_PMFS_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/pmfs.h"

#define TREE_NODES_MAX 64
#define TREE_PATH_MAX 320

enum tree_time { TREE_MTIME, TREE_CTIME, TREE_ATIME, TREE_BTIME, TREE_TIMES };

struct tree_node {
    uint64_t ino, size, blocks, rdev;
    uint32_t generation, mode, nlink, uid, gid;
    uint64_t content;    /* hash of what is in a file, or of a link's target */
    uint64_t attributes; /* hash of the extended ones */
    int64_t times[TREE_TIMES];
    char path[TREE_PATH_MAX]; /* from the root; that of the root is "/" */
};

/* In the order of listing, breadth first. */
struct tree {
    uint32_t count;
    struct tree_node nodes[TREE_NODES_MAX];
};

/* 0 or a negative errno; -E2BIG: more than can be held. */
int tree_read(struct pmfs *fs, struct tree *tree);

/* The directory B and what is in it, or what is not: operations may run in either at
 * the same time. */
enum tree_part { TREE_ALL, TREE_B, TREE_NOT_B };

/*
 * Does `found` show what `expected` does, in that part? If not, `why` says in what it
 * differs. Times are those of `expected` or, if it is not NULL, of `newer`.
 */
bool tree_matches(enum tree_part part, const struct tree *found,
                  const struct tree *expected, const struct tree *newer, char *why,
                  size_t size);

#endif
