/* SPDX-License-Identifier: BSD-3-Clause */
/* pool_file.c - a pool's file or device: making, locking, mapping. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "libminl2r/error.h"
#include "libminl2r/pool.h"

typedef unsigned long long ull;

static int failed(const char *what, const char *path, int errnum)
{
    return error_set(errnum, "cannot %s %s: %s", what, *path ? path : "''",
                     strerror(errnum));
}

/* What stat() says of a device has no size; the kernel tells that of a DAX device. */
static int device_size(const char *path, dev_t device, uint64_t *size)
{
    char name[64];
    char text[32] = {0};

    snprintf(name, sizeof(name), "/sys/dev/char/%u:%u/size", major(device),
             minor(device));
    int fd = open(name, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return error_set(EINVAL,
                         "%s is a character device, but no DAX device: there is no %s",
                         path, name);
    ssize_t length = read(fd, text, sizeof(text) - 1);

    close(fd);
    *size = length > 0 ? strtoull(text, NULL, 10) : 0;
    if (*size == 0)
        return error_set(EINVAL, "the size of %s is not in %s", path, name);
    return 0;
}

static int size_of(const char *path, int fd, uint64_t *size)
{
    struct stat stat;

    if (fstat(fd, &stat) < 0)
        return failed("look at", path, errno);
    if (S_ISCHR(stat.st_mode))
        return device_size(path, stat.st_rdev, size);
    if (!S_ISREG(stat.st_mode) && !S_ISBLK(stat.st_mode))
        return error_set(EINVAL, "%s is neither a file nor a device that holds pools",
                         path);
    off_t end = lseek(fd, 0, SEEK_END); /* of a block device, too */

    if (end < 0)
        return failed("find the end of", path, errno);
    *size = (uint64_t)end;
    if (*size < PM_PAGE)
        return error_set(EINVAL, "%s is not a MinL2R pool: it has only %llu bytes",
                         path, (ull)*size);
    return 0;
}

static int lock_file(const char *path, int fd, bool exclusive)
{
    if (flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0)
        return 0;
    if (errno == EWOULDBLOCK)
        return error_set(EBUSY, "%s is open already, here or in another process", path);
    return failed("lock", path, errno);
}

static int check_medium(const struct pm *pm, const struct minl2r_options *options)
{
    if (!options || pm->medium >= options->require)
        return 0;
    return error_set(ENOTSUP, "medium \"%s\" is required, but this is \"%s\": %s",
                     minl2r_medium_name(options->require),
                     minl2r_medium_name(pm->medium), pm->reason);
}

/* A debug mode: see watch.h. */
static bool is_watched(const struct minl2r_options *options)
{
    const char *value = secure_getenv("MINL2R_WATCH");

    return options && options->commit == MINL2R_COMMIT_PROVE && value &&
           strcmp(value, "1") == 0;
}

static int map_file(int fd, uint64_t size, bool writable,
                    const struct minl2r_options *options, struct pm *pm)
{
    int result = pm_map(pm, fd, size, writable);

    if (result < 0)
        return result;
    result = check_medium(pm, options);
    if (result == 0 && writable && is_watched(options))
        result = pm_watch(pm, fd);
    if (result < 0)
        pm_unmap(pm);
    return result;
}

/* ---- Open ------------------------------------------------------------------------ */

static mode_t type_of(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 ? info.st_mode & S_IFMT : 0;
}

/* Of a block device the kernel then knows that it is in use: it mounts nothing. */
static int open_for(const char *path, bool writable)
{
    int exclusive = writable && type_of(path) == S_IFBLK ? O_EXCL : 0;

    /* Nothing that is opened by mistake, a pipe say, may make this wait. */
    return open(path,
                (writable ? O_RDWR : O_RDONLY) | exclusive | O_NONBLOCK | O_CLOEXEC);
}

static int open_failed(const char *path, int errnum)
{
    if (errnum == EBUSY)
        return error_set(EBUSY, "%s is in use: mounted, or open as a pool", path);
    return failed("open", path, errnum);
}

static int lock_and_map(const char *path, int fd, const struct minl2r_options *options,
                        bool writable, struct pm *pm)
{
    uint64_t size = 0;
    int result = lock_file(path, fd, writable);

    if (result == 0)
        result = size_of(path, fd, &size);
    if (result == 0)
        result = map_file(fd, size, writable, options, pm);
    return result;
}

int pool_file_open(const char *path, const struct minl2r_options *options,
                   bool writable, struct pm *pm, int *fd)
{
    int result = options_check(options);

    if (result < 0)
        return result;
    *fd = open_for(path, writable);
    if (*fd < 0)
        return open_failed(path, errno);
    result = lock_and_map(path, *fd, options, writable, pm);
    if (result < 0)
        close(*fd);
    return result;
}

/* ---- Space ----------------------------------------------------------------------- */

/* Space for every byte, so that no later store can fail. */
static int allocate(const char *path, int fd, uint64_t size)
{
    int errnum;

    do
        errnum = posix_fallocate(fd, 0, (off_t)size);
    while (errnum == EINTR);
    if (errnum == 0)
        return 0;
    return error_set(errnum, "cannot allocate %llu bytes for %s: %s", (ull)size, path,
                     strerror(errnum));
}

int pool_file_fill_holes(const char *path, int fd, uint64_t size)
{
    struct stat stat;

    if (fstat(fd, &stat) < 0)
        return failed("look at", path, errno);
    if (!S_ISREG(stat.st_mode) || (uint64_t)stat.st_blocks * 512 >= size)
        return 0;
    return allocate(path, fd, size);
}

/* ---- Create ---------------------------------------------------------------------- */

#define PROC_FD "/proc/self/fd/"
#define PROC_FD_SIZE (sizeof(PROC_FD) + 10)

/* What linkat() needs to give a file its first name. snprintf() takes more stack. */
static void name_in_proc(int fd, char name[PROC_FD_SIZE])
{
    size_t end = strlen(PROC_FD) + 1;

    memcpy(name, PROC_FD, sizeof(PROC_FD));
    for (int rest = fd; rest >= 10; rest /= 10)
        end++;
    name[end] = '\0';
    for (; name[end - 1] != '/'; fd /= 10)
        name[--end] = (char)('0' + fd % 10);
}

/* Opens the directory of `path`. -1: not so. */
static int open_directory(const char *path, int flags, mode_t mode)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    int fd = directory ? open(directory, flags | O_CLOEXEC, mode) : -1;

    free(directory);
    return fd;
}

/*
 * A file in the directory of `path` that goes with this process, unless it is
 * published. -1: there can be none.
 */
static int open_nameless(const char *path, mode_t mode)
{
    char name[PROC_FD_SIZE];
    struct stat info;

    if (lstat(path, &info) == 0 || errno != ENOENT || path[strlen(path) - 1] == '/')
        return -1; /* open() says why */
    int fd = open_directory(path, O_TMPFILE | O_RDWR, mode);

    if (fd < 0)
        return -1;
    name_in_proc(fd, name);
    if (access(name, F_OK) == 0)
        return fd;
    close(fd);
    return -1;
}

static int open_new(const char *path, mode_t mode)
{
    int fd = *path ? open_nameless(path, mode) : -1;

    return fd >= 0 ? fd : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static bool is_file(int fd)
{
    struct stat info;

    return fstat(fd, &info) == 0 && S_ISREG(info.st_mode);
}

/* Is it what `path` leads to? */
static bool is_named(const char *path, int fd)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && stat(path, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* Closes what was to be a pool; of a file nothing is left. */
static void drop(const char *path, int fd)
{
    if (is_file(fd) && is_named(path, fd))
        unlink(path);
    close(fd);
}

static int fill_file(const char *path, int fd, uint64_t size,
                     const struct minl2r_options *options, struct pm *pm)
{
    int result = lock_file(path, fd, true);

    if (result == 0)
        result = allocate(path, fd, size);
    if (result == 0)
        result = map_file(fd, size, true, options, pm);
    return result;
}

static bool is_device(const char *path)
{
    mode_t type = type_of(path);

    return type == S_IFCHR || type == S_IFBLK;
}

static int check_blank(const char *path, const struct pm *pm)
{
    uint64_t size = pm->size < POOL_SIGNATURES_SIZE ? pm->size : POOL_SIGNATURES_SIZE;

    if (pm->base[0] == 0 && memcmp(pm->base, pm->base + 1, size - 1) == 0)
        return 0;
    return error_set(EEXIST, "%s holds something: clear its first %llu bytes first",
                     path, (ull)size);
}

static int check_device(const char *path, uint64_t size, const struct pm *pm)
{
    if (size > pm->size)
        return error_set(ENOSPC, "%s has %llu bytes, not %llu", path, (ull)pm->size,
                         (ull)size);
    return type_of(path) == S_IFBLK ? check_blank(path, pm) : 0;
}

static int create_on_device(const char *path, uint64_t size,
                            const struct minl2r_options *options, struct pm *pm,
                            int *fd)
{
    int result = pool_file_open(path, options, true, pm, fd);

    if (result < 0)
        return result;
    result = check_device(path, size, pm);
    if (result < 0)
        pool_file_close(pm, *fd);
    return result;
}

int pool_file_create(const char *path, uint64_t size,
                     const struct minl2r_options *options, struct pm *pm, int *fd)
{
    struct pm_super plan;

    if (is_device(path))
        return create_on_device(path, size, options, pm, fd);
    int result = geometry_plan(&plan, size, options);

    if (result < 0)
        return result;
    mode_t mode = options && options->mode ? options->mode : 0600;

    *fd = open_new(path, mode);
    if (*fd < 0)
        return failed("create", path, errno);
    result = fill_file(path, *fd, plan.pool_size, options, pm);
    if (result < 0)
        drop(path, *fd);
    return result;
}

/* So that the name is as durable as what it names. */
static int sync_name(const char *path, int fd)
{
    int directory = open_directory(path, O_RDONLY | O_DIRECTORY, 0);
    int result = 0;

    if (fsync(fd) < 0)
        result = failed("sync", path, errno);
    if (result == 0 && directory >= 0 && fsync(directory) < 0 && errno != EINVAL)
        result = failed("sync the directory of", path, errno);
    if (directory >= 0)
        close(directory);
    return result;
}

int pool_file_publish(const char *path, int fd)
{
    char name[PROC_FD_SIZE];

    if (!is_file(fd))
        return 0;
    name_in_proc(fd, name);
    if (!is_named(path, fd) &&
        linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0)
        return failed("create", path, errno);
    return sync_name(path, fd);
}

void pool_file_close(struct pm *pm, int fd)
{
    pm_unmap(pm);
    close(fd);
}

void pool_file_unlock(int fd)
{
    flock(fd, LOCK_UN);
}

void pool_file_discard(const char *path, struct pm *pm, int fd)
{
    pm_unmap(pm);
    drop(path, fd);
}
