/* SPDX-License-Identifier: BSD-3-Clause */
/* fsck.h - the part of pmfs_fsck() that needs no file. */
#ifndef PMFS_FSCK_H
#define PMFS_FSCK_H

#include "include/pmfs.h"

/* Verifies the filesystem in a pool that is open, and recovered. As pmfs_fsck(). */
int fsck_pool(struct minl2r_pool *pool, pmfs_fsck_fn *found, void *arg,
              struct pmfs_fsck_summary *summary);

#endif
