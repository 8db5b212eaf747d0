/* SPDX-License-Identifier: BSD-3-Clause */
/* channel.h - what libfuse 3.14 has no name for: words to be agreed with the kernel, a
 * request, flags of others, and a descriptor for each thread that reads requests. */
#ifndef PMFS_FUSE_CHANNEL_H
#define PMFS_FUSE_CHANNEL_H

#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

struct mount_state;

/*
 * Tells the kernel of a mounted session, in the answer to its first request, that
 * writing, truncating and changing the owner of a file take its privileges away
 * (FUSE_HANDLE_KILLPRIV_V2). Without that it would ask for the attribute
 * "security.capability" before each write. And that it may say whose ACLs take a
 * set-group-ID bit away (FUSE_SETXATTR_EXT). And turns each request for a file without a
 * name (FUSE_TMPFILE) into one to create a file, which looks the same; its name, "/", is
 * nobody else's.
 */
int channel_open(struct fuse_session *session);

/*
 * Does the kernel say of the request that this thread carries out, to write, to truncate, to
 * change the owner or to set an ACL, that it takes away what the caller may not leave? It
 * knows his capabilities as they are where the file system is, and looks at nothing else: not
 * at the mode, and for an ACL alone at the group.
 */
bool channel_kills(void);

/* From Linux 5.12 on; before, it leaves that to the one who asks. */
bool channel_tells_of_acls(const struct mount_state *state);

/*
 * Gives this thread a descriptor of its own: what it has read there it answers there, and
 * the kernel has a list of requests for each. Where that fails, it uses the session's.
 */
void channel_open_own(struct fuse_session *session);

/* Before the thread ends. */
void channel_close_own(void);

#endif
