/* SPDX-License-Identifier: BSD-3-Clause */
/* status.h - what a running daemon tells about itself, by ioctl() on any directory of
 * it. */
#ifndef PMFS_FUSE_STATUS_H
#define PMFS_FUSE_STATUS_H

#include <stdint.h>
#include <sys/ioctl.h>

#include "include/pmfs.h"

struct pmfs_status {
    struct pmfs_statfs statfs;
    struct minl2r_stats stats;       /* since it was mounted */
    struct minl2r_recovery recovery; /* what mounting undid */
    struct pmfs_recovery finished;   /* what mounting brought to an end */
    uint8_t uuid[16];
    uint64_t pool_size;
    uint64_t cached_inodes;
    int64_t pid;
    uint32_t medium; /* enum minl2r_medium */
    uint32_t lanes;
    uint32_t log_size;
    uint32_t pointer_threshold;
    char flush_method[16];
    char medium_reason[160];
};

#define PMFS_IOC_STATUS _IOR('P', 1, struct pmfs_status)

int status_read(struct pmfs *fs, struct pmfs_status *status);

#endif
