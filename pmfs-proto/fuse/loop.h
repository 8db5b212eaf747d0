/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loop.h - who reads the kernel's requests.
 *
 * On several cores there is always a thread that reads while others carry out requests, and
 * they take turns.
 *
 * On one core that gains little, and costs a microsecond or two per request: threads that
 * take turns find nothing of theirs in the caches. So there one thread does it all, short
 * request by short request, and meanwhile nobody reads. Only once a request may take
 * long, and for a while after that, another reads, too, so that the next request need
 * not wait for it.
 */
#ifndef PMFS_FUSE_LOOP_H
#define PMFS_FUSE_LOOP_H

#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

/*
 * Serves a mounted session by up to ten threads, each with a descriptor of /dev/fuse of
 * its own unless `shared_fd`. Returns 0 once unmounted or told to end by a signal, or a
 * negative errno.
 */
int loop_run(struct fuse_session *session, bool shared_fd);

#endif
