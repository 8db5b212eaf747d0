/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/tools/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "libminl2r/tools/console.h"
#include "pmfs-proto/tools/mounts.h"

#define CLOSE_WAIT_MS 30000

static const char help[] =
    "Usage: pmfs umount [OPTION ...] DIRECTORY|POOL\n\n"
    "Unmounts a filesystem and returns when its pool is closed, so that it can be "
    "checked,\n"
    "moved or mounted again at once.\n\n"
    "  -l, --lazy   detach it now, also if it is in use; do not wait\n"
    "      --help\n\n"
    "Exit status: 0 unmounted, 1 wrong usage, 32 not unmounted.\n";

static int fail(const char *path, const char *why)
{
    console_fail("pmfs umount", path, why);
    return MOUNT_EXIT_FAILED;
}

static int unmount(const char *path, bool lazy)
{
    struct mounted mounted;
    char resolved[PATH_MAX];
    int error = mounts_resolve(path, resolved);

    if (error < 0)
        return fail(path, strerror(-error));
    if (!mounts_find_at(resolved, &mounted) && !mounts_find_pool(resolved, &mounted))
        return fail(path, "no pmfs is mounted here");
    bool stale = mounts_is_stale(&mounted);
    error = mounts_remove(&mounted, lazy || stale);
    if (error == 0 && !lazy && !stale)
        error = mounts_wait_released(mounted.pool, CLOSE_WAIT_MS);
    /* Whoever removed the pool meanwhile need not wait for it. */
    return error < 0 && error != -ENOENT ? fail(path, strerror(-error)) : 0;
}

int cmd_umount(int argc, char **argv)
{
    static const struct option options[] = {
        {"lazy", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    bool lazy = false;
    int option;

    while ((option = getopt_long(argc, argv, "l", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option == '?')
            return MOUNT_EXIT_USAGE;
        lazy = lazy || option == 'l';
    }
    if (argc - optind != 1) {
        fputs("pmfs umount: one DIRECTORY or POOL has to be named\n"
              "Try: pmfs umount --help\n",
              stderr);
        return MOUNT_EXIT_USAGE;
    }
    return unmount(argv[optind], lazy);
}
