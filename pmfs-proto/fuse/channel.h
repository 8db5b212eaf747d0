/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.h - what is to be agreed with the kernel, and libfuse 3.14 has no name for. */
#ifndef PMFS_FUSE_CHANNEL_H
#define PMFS_FUSE_CHANNEL_H

#include <fuse3/fuse_lowlevel.h>

/*
 * Tells the kernel of a mounted session, in the answer to its first request, that
 * writing, truncating and changing the owner of a file take its privileges away
 * (FUSE_HANDLE_KILLPRIV_V2). Without that it would ask for the attribute
 * "security.capability" before each write.
 */
int channel_open(struct fuse_session *session);

#endif
