/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_ops.h - the operations that pmfs is tested with, each with what has to be there
 * before. The core of them are those of ACE (Mohan et al., OSDI 2018) in the mode for
 * persistent memory (LeBlanc et al., EuroSys 2023), where no call needs an fsync.
 */
#ifndef CRASHTEST_PMFS_OPS_H
#define CRASHTEST_PMFS_OPS_H

#include "crashtest/workloads/pmfs_scene.h"

enum op_set {
    OP_ACE = 1,      /* of ACE */
    OP_METADATA = 2, /* of these, write, link, unlink and rename */
    OP_EXTRA = 4,    /* what bugs of real filesystems needed besides */
    OP_SLOW = 16,    /* of these, what takes long to explore */
    OP_INSIDE = 8,   /* changes only what is in B, so that it can run inside another */
    OP_ALONE = 64,   /* nothing can run inside it */
    OP_REPAIR = 32,  /* repairs what was damaged before, and leaves it unmounted */
};

struct op {
    const char *name;
    int (*prepare)(struct scene *scene, const struct op *op); /* not explored */
    int (*run)(struct scene *scene, const struct op *op);
    const char *path, *to;
    uint64_t offset, size;
    unsigned sets;
    unsigned mode;
};

extern const struct op ops[];
extern const size_t op_count;
const struct op *op_find(const char *name, size_t length); /* or NULL */

#endif
