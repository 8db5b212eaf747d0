/* SPDX-License-Identifier: BSD-3-Clause */
/* ops.h - the kernel's requests, one to one on include/pmfs.h. */
#ifndef PMFS_FUSE_OPS_H
#define PMFS_FUSE_OPS_H

#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

#include "include/pmfs.h"

/* What op_create() gets as the name of a file without one. */
#define NAMELESS "/"

/* User data of the session. Holds nothing that a killed daemon would lose. */
struct mount_state {
    struct pmfs *fs; /* mounted with PMFS_COUNT_LOOKUPS */
    struct fuse_session *session;
    bool direct_io;       /* file content bypasses the kernel's cache */
    bool without_open;    /* the kernel can do without OPEN requests */
    bool without_opendir; /* and without OPENDIR */
    uint32_t offered;     /* what the kernel said in its first request */
    bool answered;        /* atomic: that one */
};

extern const struct fuse_lowlevel_ops ops;

#endif
