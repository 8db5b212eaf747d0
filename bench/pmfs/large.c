/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/large.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/scratch.h"
#include "include/pmfs.h"

#define GIB ((uint64_t)1 << 30)
#define POOL_SIZE (10 * GIB)
#define ROOM (POOL_SIZE + GIB)
#define FILES 1000000u
#define ORPHANS 1000u
#define ORPHAN_SIZE ((uint64_t)1 << 20)
#define KILL_AFTER_NS 200000000
#define ROUNDS 7

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

/* ---- The pool -------------------------------------------------------------------- */

static uint64_t available_memory(void)
{
    FILE *file = fopen("/proc/meminfo", "re");
    uint64_t kib = 0;
    char line[128];

    while (file && fgets(line, sizeof(line), file))
        if (sscanf(line, "MemAvailable: %" SCNu64, &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib << 10;
}

static bool has_room(const char *path)
{
    char directory[PATH_MAX];
    struct statvfs room;

    snprintf(directory, sizeof(directory), "%s", path);
    *strrchr(directory, '/') = '\0';
    return statvfs(directory, &room) == 0 &&
           (uint64_t)room.f_bavail * room.f_frsize >= ROOM &&
           available_memory() >= ROOM;
}

static int create(struct pmfs *fs, uint64_t dir, uint64_t number, uint64_t *ino)
{
    struct pmfs_attr attr;
    char name[32];

    snprintf(name, sizeof(name), "name %" PRIu64, number);
    int rc = pmfs_mknod(fs, dir, name, S_IFREG | 0644, 0, &nobody, &attr);
    *ino = attr.ino;
    return rc;
}

static int fill(const char *path)
{
    struct pmfs_attr attr;
    struct pmfs *fs;
    uint64_t ino;
    int rc = pmfs_mkfs(path, POOL_SIZE, NULL);

    if (rc == 0)
        rc = pmfs_mount(path, NULL, &fs);
    if (rc != 0)
        return rc;
    rc = pmfs_mkdir(fs, PMFS_ROOT_INO, "directory", 0755, &nobody, &attr);
    for (uint64_t i = 0; rc == 0 && i < FILES; i++)
        rc = create(fs, attr.ino, i, &ino);
    pmfs_unmount(fs);
    return rc;
}

/* ---- What is killed -------------------------------------------------------------- */

/* Files that are open and have no name, which mounting frees. */
static int make_orphan(struct pmfs *fs, uint64_t number)
{
    static const uint8_t bytes[ORPHAN_SIZE];
    char name[32];
    uint64_t ino;
    size_t done;
    int rc = create(fs, PMFS_ROOT_INO, number, &ino);

    if (rc == 0)
        rc = pmfs_open(fs, ino);
    if (rc == 0)
        rc = pmfs_write(fs, ino, 0, bytes, sizeof(bytes), 0, &done);
    snprintf(name, sizeof(name), "name %" PRIu64, number);
    return rc < 0 ? rc : pmfs_unlink(fs, PMFS_ROOT_INO, name);
}

/* Or finds what the one before has left. */
static int make_file(struct pmfs *fs, uint64_t *ino)
{
    struct pmfs_attr attr;
    int rc = pmfs_mknod(fs, PMFS_ROOT_INO, "file", S_IFREG | 0644, 0, &nobody, &attr);

    if (rc == -EEXIST)
        rc = pmfs_lookup(fs, PMFS_ROOT_INO, "file", &attr);
    *ino = attr.ino;
    return rc;
}

/* In a child: mounts, leaves orphans, says so, and goes on until it is killed. */
static void work(const char *path, int ready)
{
    static const uint8_t bytes[4096];
    struct pmfs *fs;
    uint64_t ino;
    size_t done;
    int rc = pmfs_mount(path, NULL, &fs);

    for (uint64_t i = 0; rc == 0 && i < ORPHANS; i++)
        rc = make_orphan(fs, i);
    if (rc == 0)
        rc = make_file(fs, &ino);
    if (rc == 0 && write(ready, "", 1) == 1)
        while (rc == 0)
            rc = pmfs_write(fs, ino, 0, bytes, sizeof(bytes), 0, &done);
    _exit(1);
}

static int leave_killed(const char *path)
{
    int ready[2];
    char byte;

    if (pipe(ready) < 0)
        return -errno;
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        work(path, ready[1]);
    }
    close(ready[1]);
    int rc = child > 0 && read(ready[0], &byte, 1) == 1 ? 0 : -EIO;
    close(ready[0]);
    if (child < 0)
        return rc;
    if (rc == 0)
        nanosleep(&(struct timespec){.tv_nsec = KILL_AFTER_NS}, NULL);
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
    return rc;
}

/* ---- Measuring ------------------------------------------------------------------- */

static int mount_once(const char *path, double *ns, uint64_t *orphans)
{
    struct pmfs_recovery recovery;
    struct pmfs *fs;
    uint64_t start_ns = bench_now_ns();
    int rc = pmfs_mount(path, NULL, &fs);

    *ns = (double)(bench_now_ns() - start_ns);
    if (rc < 0)
        return rc;
    pmfs_recovery(fs, &recovery);
    *orphans = recovery.orphans;
    return pmfs_unmount(fs);
}

static int measure(const char *path, const char *op, bool is_killed,
                   scale_take_fn *take, void *arg)
{
    double ns[ROUNDS];
    int rc = 0;

    for (int round = 0; rc == 0 && round < ROUNDS; round++) {
        uint64_t orphans = 0;

        if (is_killed)
            rc = leave_killed(path);
        if (rc == 0)
            rc = mount_once(path, &ns[round], &orphans);
        if (rc == 0 && orphans != (is_killed ? ORPHANS : 0))
            rc = -EIO;
    }
    const struct scale_figure figure = {
        .op = op, .size = FILES, .ns = ns, .rounds = ROUNDS};
    return rc < 0 ? rc : take(arg, &figure);
}

int large_measure(scale_take_fn *take, void *arg)
{
    const char *path = scratch_path("large");

    if (!has_room(path)) {
        fprintf(stderr, "bench-pmfs: no room for a pool of 10 GiB: its rows are left "
                        "out\n");
        scratch_keep(path);
        return 0;
    }
    int rc = fill(path);
    if (rc == 0)
        rc = measure(path, "mount, 10 GiB", false, take, arg);
    if (rc == 0)
        rc = measure(path, "mount, 10 GiB, after a kill", true, take, arg);
    scratch_unlink(path);
    return rc;
}
