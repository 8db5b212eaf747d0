/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/tools/mounts.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOUNT_TYPE "fuse.pmfs"
#define POLL_MS 5

extern char **environ;

/* Resolves all but the last component: a dead mount answers no question about itself.
 */
static int resolve_parent(const char *path, char resolved[PATH_MAX])
{
    char copy[PATH_MAX], parent[PATH_MAX];
    size_t length = strlen(path);

    while (length > 1 && path[length - 1] == '/')
        length--;
    if (length >= sizeof(copy))
        return -ENAMETOOLONG;
    memcpy(copy, path, length);
    copy[length] = '\0';
    char *slash = strrchr(copy, '/');
    const char *name = slash == NULL ? copy : slash + 1;
    if (slash != NULL)
        *slash = '\0';
    const char *directory = slash == NULL ? "." : slash == copy ? "/" : copy;
    if (realpath(directory, parent) == NULL)
        return -errno;
    int written = snprintf(resolved, PATH_MAX, "%s/%s",
                           strcmp(parent, "/") == 0 ? "" : parent, name);
    return written < PATH_MAX ? 0 : -ENAMETOOLONG;
}

int mounts_resolve(const char *path, char resolved[PATH_MAX])
{
    if (realpath(path, resolved) != NULL)
        return 0;
    return errno == ENOTCONN ? resolve_parent(path, resolved) : -errno;
}

/* The kernel writes what would end a field, or begin a comment, as three octal digits.
 * getmntent(3) knows fewer of them than the kernel. */
static void decode(char *text)
{
    char *to = text;

    for (const char *from = text; *from != '\0'; to++) {
        unsigned code;

        if (sscanf(from, "\\%3o", &code) == 1) {
            *to = (char)code;
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The next field of a line. */
static char *next_field(char **rest)
{
    char *field = strsep(rest, " ");

    if (field != NULL)
        decode(field);
    return field;
}

static void visit_line(char *line, mounts_visit_fn *visit, void *arg)
{
    struct mounted mounted;
    const char *pool = next_field(&line);
    const char *mountpoint = next_field(&line);
    const char *type = next_field(&line);

    if (type == NULL || strcmp(type, MOUNT_TYPE) != 0)
        return;
    snprintf(mounted.pool, sizeof(mounted.pool), "%s", pool);
    snprintf(mounted.mountpoint, sizeof(mounted.mountpoint), "%s", mountpoint);
    visit(arg, &mounted);
}

int mounts_visit(mounts_visit_fn *visit, void *arg)
{
    FILE *table = fopen("/proc/self/mounts", "re");
    char *line = NULL;
    size_t size = 0;

    if (table == NULL)
        return -errno;
    while (getline(&line, &size, table) >= 0)
        visit_line(line, visit, arg);
    free(line);
    fclose(table);
    return 0;
}

struct search {
    const char *mountpoint; /* NULL: any */
    const char *pool;       /* NULL: any */
    struct mounted *found;
    bool any;
};

static void match(void *arg, const struct mounted *mounted)
{
    struct search *search = arg;

    if ((search->mountpoint != NULL &&
         strcmp(search->mountpoint, mounted->mountpoint) != 0) ||
        (search->pool != NULL && strcmp(search->pool, mounted->pool) != 0))
        return;
    /* The last match is the topmost one. */
    *search->found = *mounted;
    search->any = true;
}

bool mounts_find_at(const char *mountpoint, struct mounted *found)
{
    struct search search = {.mountpoint = mountpoint, .found = found};

    mounts_visit(match, &search);
    return search.any;
}

bool mounts_find_pool(const char *pool, struct mounted *found)
{
    struct search search = {.pool = pool, .found = found};

    mounts_visit(match, &search);
    return search.any;
}

bool mounts_is_stale(const struct mounted *mounted)
{
    struct statvfs status;

    /* Unlike stat(), never answered from the kernel's cache. */
    return statvfs(mounted->mountpoint, &status) < 0 &&
           (errno == ENOTCONN || errno == ECONNABORTED);
}

static int remove_by_helper(const char *mountpoint, bool lazy)
{
    char program[] = "fusermount3", quiet[] = "-q", unmount[] = "-u", detach[] = "-z";
    char target[PATH_MAX];
    char *argv[] = {program, quiet, unmount, target, lazy ? detach : NULL, NULL};
    pid_t pid;
    int status;

    snprintf(target, sizeof(target), "%s", mountpoint);
    int error = posix_spawnp(&pid, program, NULL, NULL, argv, environ);
    if (error != 0)
        return -error;
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EBUSY;
}

int mounts_remove(const struct mounted *mounted, bool lazy)
{
    int flags = UMOUNT_NOFOLLOW | (lazy ? MNT_DETACH : 0);

    if (umount2(mounted->mountpoint, flags) == 0)
        return 0;
    return errno == EPERM ? remove_by_helper(mounted->mountpoint, lazy) : -errno;
}

int mounts_wait_released(const char *pool, int timeout_ms)
{
    int fd = open(pool, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a FIFO, say */
    int error = 0;

    if (fd < 0)
        return -errno;
    while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        error = -errno;
        if (error != -EWOULDBLOCK || timeout_ms <= 0)
            break;
        nanosleep(&(struct timespec){.tv_nsec = POLL_MS * 1000000L}, NULL);
        timeout_ms -= POLL_MS;
        error = 0;
    }
    close(fd);
    return error == -EWOULDBLOCK ? -EBUSY : error;
}
