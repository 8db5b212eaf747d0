/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/fuse/caller.h"

#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

bool caller_is_in_group(fuse_req_t req, gid_t group)
{
    gid_t few[32], *groups = few;
    int room = (int)(sizeof(few) / sizeof(*few)), count;
    bool found = fuse_req_ctx(req)->gid == group;

    if (found)
        return true;
    count = fuse_req_getgroups(req, room, few);
    if (count > room) {
        room = count;
        groups = calloc((size_t)room, sizeof(*groups));
        count = groups ? fuse_req_getgroups(req, room, groups) : 0;
    }
    for (int i = 0; i < count && i < room && !found; i++)
        found = groups[i] == group;
    if (groups != few)
        free(groups);
    return found;
}

static bool same_user_namespace(pid_t pid)
{
    struct stat own, other;
    char path[64];

    snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
    return stat("/proc/self/ns/user", &own) == 0 && stat(path, &other) == 0 &&
           own.st_dev == other.st_dev && own.st_ino == other.st_ino;
}

static uint64_t capabilities_of(pid_t pid)
{
    uint64_t capabilities = 0;
    char text[256];
    FILE *file;

    snprintf(text, sizeof(text), "/proc/%d/status", (int)pid);
    file = fopen(text, "re");
    if (!file)
        return 0;
    while (fgets(text, sizeof(text), file))
        if (sscanf(text, "CapEff: %" SCNx64, &capabilities) == 1)
            break;
    fclose(file);
    return capabilities;
}

/* The id of a thread, each of which has capabilities of its own. */
bool caller_is_capable(fuse_req_t req, unsigned capability)
{
    pid_t pid = fuse_req_ctx(req)->pid;

    return pid > 0 && capabilities_of(pid) >> capability & 1 &&
           same_user_namespace(pid);
}
