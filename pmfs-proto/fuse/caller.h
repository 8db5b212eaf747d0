/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caller.h - who asks, as far as the kernel does not say it with the request: read from
 * /proc, which costs more than most requests. The caller waits for the answer meanwhile, so
 * it is still who it was. Whoever cannot be seen (in another PID or user namespace) is in no
 * group and has no capability.
 */
#ifndef PMFS_FUSE_CALLER_H
#define PMFS_FUSE_CALLER_H

#include <fuse3/fuse_lowlevel.h>
#include <stdbool.h>

bool caller_is_in_group(fuse_req_t req, gid_t group);

/* `capability`: CAP_..., in the user namespace of this process. */
bool caller_is_capable(fuse_req_t req, unsigned capability);

#endif
