/* SPDX-License-Identifier: BSD-3-Clause */
/* daemon.h - the process that serves a mount. */
#ifndef PMFS_FUSE_DAEMON_H
#define PMFS_FUSE_DAEMON_H

#include <stdbool.h>

#include "include/pmfs.h"

struct daemon_options {
    const char *pool;       /* absolute */
    const char *mountpoint; /* absolute */
    const char *pid_file;   /* holds the pid of who serves, once mounted; NULL: none */
    const char *kernel_options; /* for mount(2), comma-separated; may be empty */
    enum minl2r_medium require; /* refuse a lesser medium; 0: take any */
    uint64_t cached_inodes; /* kept although the kernel has forgotten them; 0: 65536 */
    bool foreground;        /* serve in this process */
    bool single_thread;
    bool read_only; /* nothing is written to the pool */
    bool direct_io; /* file content bypasses the kernel's cache */
    bool shared_fd; /* all threads share one descriptor of /dev/fuse */
};

/*
 * Mounts `pool` on `mountpoint` and serves it: by a process in the background, or, if
 * `foreground`, until unmounted or told by SIGTERM, SIGINT or SIGHUP to end. Returns
 * once mounted, or once over; what went wrong, and what recovery undid, is on stderr.
 *
 * Nothing is lost when the process is killed at any moment: every answered request is
 * durable.
 */
int daemon_mount(const struct daemon_options *options);

#endif
