/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.h - what libfuse 3.14 has no name for: a word to be agreed with the kernel, a
 * request, and a descriptor for each thread that reads requests. */
#ifndef PMFS_FUSE_CHANNEL_H
#define PMFS_FUSE_CHANNEL_H

#include <fuse3/fuse_lowlevel.h>

/*
 * Tells the kernel of a mounted session, in the answer to its first request, that
 * writing, truncating and changing the owner of a file take its privileges away
 * (FUSE_HANDLE_KILLPRIV_V2). Without that it would ask for the attribute
 * "security.capability" before each write. And turns each request for a file without a
 * name (FUSE_TMPFILE) into one to create a file, which looks the same; its name, "/", is
 * nobody else's.
 */
int channel_open(struct fuse_session *session);

/*
 * Gives this thread a descriptor of its own: what it has read there it answers there, and
 * the kernel has a list of requests for each. Where that fails, it uses the session's.
 */
void channel_open_own(struct fuse_session *session);

/* Before the thread ends. */
void channel_close_own(void);

#endif
