/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/fuse/status.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

int status_read(struct pmfs *fs, struct pmfs_status *status)
{
    struct minl2r_info info;
    int error = minl2r_pool_info(pmfs_pool(fs), &info);

    memset(status, 0, sizeof(*status));
    if (error == 0)
        error = pmfs_statfs(fs, &status->statfs);
    if (error == 0)
        error = minl2r_stats_get(pmfs_pool(fs), &status->stats);
    if (error < 0)
        return error;
    status->recovery = info.recovery;
    pmfs_recovery(fs, &status->finished);
    memcpy(status->uuid, info.uuid, sizeof(status->uuid));
    status->pool_size = info.pool_size;
    status->cached_inodes = pmfs_cached_inodes(fs);
    status->pid = getpid();
    status->medium = info.medium;
    status->lanes = info.lanes;
    status->log_size = info.log_size;
    status->pointer_threshold = info.pointer_threshold;
    snprintf(status->flush_method, sizeof(status->flush_method), "%s",
             info.flush_method);
    snprintf(status->medium_reason, sizeof(status->medium_reason), "%s",
             info.medium_reason);
    return 0;
}
