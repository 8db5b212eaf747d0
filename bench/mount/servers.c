/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mount/servers.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/mount/empty.h"
#include "bench/scratch.h"
#include "pmfs-proto/fuse/daemon.h"

static const char *const names[SYSTEMS] = {"empty", "pmfs"};
static char mountpoints[SYSTEMS][PATH_MAX];
static volatile pid_t pids[SYSTEMS]; /* 0: not running */
static const char *pool;
static uint64_t *asked; /* shared with who serves */

static int serve(enum system system)
{
    const struct daemon_options options = {
        .pool = pool,
        .mountpoint = mountpoints[system],
        .kernel_options = "",
        .foreground = true,
    };

    return system == EMPTY ? empty_serve(mountpoints[system], asked)
                           : daemon_mount(&options);
}

/* Calls only what POSIX allows in a signal handler. */
static void end_all(void)
{
    for (int i = 0; i < SYSTEMS; i++) {
        if (pids[i] > 0) {
            kill(pids[i], SIGTERM);
            waitpid(pids[i], NULL, 0);
        }
        pids[i] = 0;
        rmdir(mountpoints[i]);
    }
}

/* A parent that dies without a word takes its servers with it. */
static _Noreturn void run_server(enum system system, pid_t parent)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};

    /* libfuse keeps its hands off signals that somebody handles. */
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        signal(signals[i], SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    _exit(getppid() == parent && serve(system) == 0 ? 0 : 1);
}

static int await_mount(enum system system, dev_t below)
{
    const struct timespec millisecond = {.tv_nsec = 1000000};
    struct stat now;

    while (waitpid(pids[system], NULL, WNOHANG) == 0) {
        if (stat(mountpoints[system], &now) == 0 && now.st_dev != below)
            return 0;
        nanosleep(&millisecond, NULL);
    }
    pids[system] = 0;
    fprintf(stderr, "bench-mount: cannot mount %s\n", names[system]);
    return -ENODEV;
}

static int start(enum system system)
{
    pid_t parent = getpid();
    const char *path = scratch_path(names[system]);
    struct stat below;

    if (!path)
        return -ENOMEM;
    snprintf(mountpoints[system], PATH_MAX, "%s", path);
    if (mkdir(path, 0700) < 0 || stat(path, &below) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        run_server(system, parent);
    pids[system] = pid;
    return await_mount(system, below.st_dev);
}

int servers_start(uint64_t pool_size)
{
    int rc;

    pool = scratch_path("pool");
    asked = mmap(NULL, REQUESTS * sizeof(*asked), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!pool || asked == MAP_FAILED)
        return -ENOMEM;
    scratch_before(end_all);
    rc = pmfs_mkfs(pool, pool_size, NULL);
    for (int i = 0; rc == 0 && i < SYSTEMS; i++)
        rc = start((enum system)i);
    return rc;
}

void servers_stop(void)
{
    end_all();
}

const char *servers_mountpoint(enum system system)
{
    return mountpoints[system];
}

const uint64_t *servers_asked(void)
{
    return asked;
}
