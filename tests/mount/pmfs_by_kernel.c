/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_by_kernel.c - calls of pmfs.h by system calls on a mount, so that a test of pmfs.h
 * can be linked with this and run through the kernel. PMFS_TOOL is the program pmfs.
 *
 * An inode that has a name, or is open or looked up, has a descriptor (O_PATH) here, which
 * keeps it in use. What no system call can ask of an inode is -ENOSYS.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "include/pmfs.h"

#define UNASKABLE (-ENOSYS)

extern char **environ;

struct node {
    int fd; /* 0: none */
    uint64_t opens, lookups;
};

struct pmfs {
    char mountpoint[PATH_MAX];
    bool counts_lookups;
    struct node *nodes; /* by inode number */
    uint64_t node_count;
};

static char message[256];

const char *pmfs_errormsg(void)
{
    return message;
}

/* ---- The program ----------------------------------------------------------------- */

/* Its exit status; what it printed is in `message`. */
static int run(char *const argv[])
{
    posix_spawn_file_actions_t actions;
    int ends[2], status = -1;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC) < 0)
        return -1;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    int error = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (error == 0) {
        ssize_t size = read(ends[0], message, sizeof(message) - 1);

        message[size > 0 ? size : 0] = 0;
        waitpid(pid, &status, 0);
    }
    close(ends[0]);
    return status;
}

/* With up to four arguments, NULL after the last. */
static int pmfs_tool(const char *command, const char *a, const char *b, const char *c,
                     const char *d)
{
    const char *texts[] = {PMFS_TOOL, command, a, b, c, d, NULL};
    char *argv[sizeof(texts) / sizeof(texts[0])];

    memcpy(argv, texts, sizeof(argv));
    return run(argv) == 0 ? 0 : -EIO;
}

int pmfs_mkfs(const char *path, uint64_t size, const struct pmfs_mkfs_options *options)
{
    char size_text[24], block_size[24];

    snprintf(size_text, sizeof(size_text), "%llu", (unsigned long long)size);
    snprintf(block_size, sizeof(block_size), "--block-size=%u",
             options->pool.block_size ? options->pool.block_size : 4096);
    return pmfs_tool("mkfs", block_size, path, size_text, NULL);
}

int pmfs_fsck(const char *path, pmfs_fsck_fn *found, void *arg,
              struct pmfs_fsck_summary *summary)
{
    int rc = pmfs_tool("fsck", path, NULL, NULL, NULL);

    *summary = (struct pmfs_fsck_summary){0};
    if (rc < 0)
        found(arg, message);
    return rc;
}

/* ---- Inodes ---------------------------------------------------------------------- */

static int result_of(long returned)
{
    return returned < 0 ? -errno : 0;
}

static int fd_of(const struct pmfs *fs, uint64_t ino)
{
    return ino < fs->node_count && fs->nodes[ino].fd ? fs->nodes[ino].fd : -1;
}

/* The descriptor as a path that leads to the inode itself, whatever has become of it. */
static const char *path_of(const struct pmfs *fs, uint64_t ino)
{
    static char path[64];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd_of(fs, ino));
    return path;
}

static mode_t type_of(const struct pmfs *fs, uint64_t ino)
{
    struct stat stat;

    return fstat(fd_of(fs, ino), &stat) < 0 ? 0 : stat.st_mode & S_IFMT;
}

/* Each thread of the mount takes numbers out of a group of its own, so they may be high. */
static int reserve_nodes(struct pmfs *fs, uint64_t count)
{
    if (count <= fs->node_count)
        return 0;
    struct node *nodes = realloc(fs->nodes, count * sizeof(*nodes));

    if (!nodes)
        return -ENOMEM;
    memset(nodes + fs->node_count, 0, (count - fs->node_count) * sizeof(*nodes));
    fs->nodes = nodes;
    fs->node_count = count;
    return 0;
}

/* Takes over a descriptor; the inode may have one already. */
static int add_node(struct pmfs *fs, int fd, struct pmfs_attr *attr)
{
    struct stat stat;

    if (fd < 0 || fstat(fd, &stat) < 0)
        return -errno;
    if (reserve_nodes(fs, stat.st_ino + 1) < 0) {
        close(fd);
        return -ENOMEM;
    }
    if (fs->nodes[stat.st_ino].fd)
        close(fd);
    else
        fs->nodes[stat.st_ino].fd = fd;
    return pmfs_getattr(fs, stat.st_ino, attr);
}

/* Without a name nobody but opens and lookups keep it. */
static void drop_if_gone(struct pmfs *fs, uint64_t ino)
{
    struct node *node = &fs->nodes[ino];
    struct stat stat;

    if (!node->fd || node->opens || node->lookups || fstat(node->fd, &stat) < 0 ||
        stat.st_nlink > 0)
        return;
    close(node->fd);
    node->fd = 0;
}

static void drop_all_gone(struct pmfs *fs)
{
    for (uint64_t ino = 0; ino < fs->node_count; ino++)
        drop_if_gone(fs, ino);
}

#define NS_PER_S 1000000000

static int64_t ns_of(struct statx_timestamp time)
{
    return time.tv_sec * NS_PER_S + time.tv_nsec;
}

/* A time before the epoch, too. */
static struct timespec timespec_of(int64_t ns)
{
    int64_t below = ns % NS_PER_S < 0 ? 1 : 0;

    return (struct timespec){.tv_sec = ns / NS_PER_S - below,
                             .tv_nsec = ns % NS_PER_S + below * NS_PER_S};
}

/* What has lost its descriptor is gone. */
int pmfs_getattr(struct pmfs *fs, uint64_t ino, struct pmfs_attr *attr)
{
    struct statx found;

    if (fd_of(fs, ino) < 0)
        return -ESTALE;
    if (statx(fd_of(fs, ino), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
              STATX_BASIC_STATS, &found) < 0)
        return -errno;
    *attr = (struct pmfs_attr){
        .ino = found.stx_ino,
        .mode = found.stx_mode,
        .nlink = found.stx_nlink,
        .uid = found.stx_uid,
        .gid = found.stx_gid,
        .block_size = found.stx_blksize,
        .rdev = makedev(found.stx_rdev_major, found.stx_rdev_minor),
        .size = found.stx_size,
        .blocks = found.stx_blocks,
        .atime_ns = ns_of(found.stx_atime),
        .mtime_ns = ns_of(found.stx_mtime),
        .ctime_ns = ns_of(found.stx_ctime),
    };
    return 0;
}

int pmfs_open(struct pmfs *fs, uint64_t ino)
{
    fs->nodes[ino].opens++;
    return 0;
}

void pmfs_release(struct pmfs *fs, uint64_t ino)
{
    fs->nodes[ino].opens--;
    drop_if_gone(fs, ino);
}

void pmfs_forget(struct pmfs *fs, uint64_t ino, uint64_t count)
{
    fs->nodes[ino].lookups -= count;
    drop_if_gone(fs, ino);
}

static int change_owner(struct pmfs *fs, uint64_t ino, const struct pmfs_attr *values,
                        unsigned mask, mode_t mode)
{
    uid_t uid = mask & PMFS_SET_UID ? values->uid : (uid_t)-1;
    gid_t gid = mask & PMFS_SET_GID ? values->gid : (gid_t)-1;
    int rc = result_of(fchownat(fd_of(fs, ino), "", uid, gid, AT_EMPTY_PATH));

    /* The kernel takes privileges away; pmfs.h does not. */
    if (rc == 0 && !(mask & PMFS_SET_MODE) && !S_ISLNK(mode))
        rc = result_of(chmod(path_of(fs, ino), mode & 07777));
    return rc;
}

#define ASKABLE (PMFS_SET_MODE | PMFS_SET_UID | PMFS_SET_GID | PMFS_SET_SIZE | TIMES)
#define TIMES                                                                          \
    (PMFS_SET_ATIME | PMFS_SET_MTIME | PMFS_SET_ATIME_NOW | PMFS_SET_MTIME_NOW)

static struct timespec time_to_set(unsigned given, unsigned now, int64_t ns)
{
    if (now)
        return (struct timespec){.tv_nsec = UTIME_NOW};
    return given ? timespec_of(ns) : (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int set_times(struct pmfs *fs, uint64_t ino, const struct pmfs_attr *values,
                     unsigned mask)
{
    const struct timespec times[] = {
        time_to_set(mask & PMFS_SET_ATIME, mask & PMFS_SET_ATIME_NOW, values->atime_ns),
        time_to_set(mask & PMFS_SET_MTIME, mask & PMFS_SET_MTIME_NOW, values->mtime_ns),
    };

    return result_of(utimensat(AT_FDCWD, path_of(fs, ino), times, 0));
}

int pmfs_setattr(struct pmfs *fs, uint64_t ino, const struct pmfs_attr *values,
                 unsigned mask, struct pmfs_attr *attr)
{
    struct stat before;
    int rc = result_of(fstat(fd_of(fs, ino), &before));

    if (mask & ~(unsigned)ASKABLE ||
        (rc == 0 && mask & PMFS_SET_MODE && S_ISLNK(before.st_mode)))
        return UNASKABLE;
    if (mask & PMFS_SET_SIZE && !S_ISREG(before.st_mode) && !S_ISDIR(before.st_mode))
        return UNASKABLE;
    if (rc == 0 && mask & PMFS_SET_SIZE)
        rc = result_of(truncate(path_of(fs, ino), (off_t)values->size));
    if (rc == 0 && mask & (PMFS_SET_UID | PMFS_SET_GID))
        rc = change_owner(fs, ino, values, mask, before.st_mode);
    if (rc == 0 && mask & PMFS_SET_MODE)
        rc = result_of(chmod(path_of(fs, ino), values->mode & 07777));
    if (rc == 0 && mask & TIMES)
        rc = set_times(fs, ino, values, mask);
    return rc == 0 && attr ? pmfs_getattr(fs, ino, attr) : rc;
}

/* ---- Names ----------------------------------------------------------------------- */

static int find(struct pmfs *fs, uint64_t parent, const char *name,
                struct pmfs_attr *attr)
{
    int fd = openat(fd_of(fs, parent), name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int rc = add_node(fs, fd, attr);

    if (rc == 0 && fs->counts_lookups)
        fs->nodes[attr->ino].lookups++;
    return rc;
}

int pmfs_lookup(struct pmfs *fs, uint64_t parent, const char *name,
                struct pmfs_attr *attr)
{
    return find(fs, parent, name, attr);
}

/* What the kernel takes from the mode of what is made next. */
static void use_umask_of(const struct pmfs_cred *cred)
{
    umask(cred->umask);
}

/* Who makes something is root here; so it is given away. */
static int found_made(struct pmfs *fs, int rc, uint64_t parent, const char *name,
                      const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    if (rc == 0)
        rc = find(fs, parent, name, attr);
    if (rc == 0)
        rc = result_of(
            fchownat(fd_of(fs, attr->ino), "", cred->uid, cred->gid, AT_EMPTY_PATH));
    return rc;
}

int pmfs_mknod(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
               uint64_t rdev, const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    use_umask_of(cred);
    int rc = result_of(mknodat(fd_of(fs, parent), name, mode, rdev));

    return found_made(fs, rc, parent, name, cred, attr);
}

int pmfs_create(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
                const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    int rc = pmfs_mknod(fs, parent, name, S_IFREG | mode, 0, cred, attr);

    return rc < 0 ? rc : pmfs_open(fs, attr->ino);
}

int pmfs_tmpfile(struct pmfs *fs, uint64_t parent, uint32_t mode, unsigned flags,
                 const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    int never_linked = flags & PMFS_NEVER_LINKED ? O_EXCL : 0;

    use_umask_of(cred);
    int fd = open(path_of(fs, parent), O_TMPFILE | O_RDWR | O_CLOEXEC | never_linked,
                  mode & 07777);
    int rc = add_node(fs, fd, attr);

    if (rc < 0)
        return rc;
    fs->nodes[attr->ino].opens++;
    fs->nodes[attr->ino].lookups += fs->counts_lookups;
    return result_of(fchown(fd, cred->uid, cred->gid));
}

int pmfs_mkdir(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
               const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    use_umask_of(cred);
    int rc = result_of(mkdirat(fd_of(fs, parent), name, mode & 07777));

    return found_made(fs, rc, parent, name, cred, attr);
}

int pmfs_symlink(struct pmfs *fs, uint64_t parent, const char *name, const char *target,
                 const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    int rc = result_of(symlinkat(target, fd_of(fs, parent), name));

    return found_made(fs, rc, parent, name, cred, attr);
}

int pmfs_readlink(struct pmfs *fs, uint64_t ino, char *target, size_t size)
{
    ssize_t length = readlinkat(fd_of(fs, ino), "", target, size);

    if (length < 0 || (size_t)length >= size)
        return length < 0 ? -errno : -ERANGE;
    target[length] = 0;
    return 0;
}

int pmfs_link(struct pmfs *fs, uint64_t ino, uint64_t parent, const char *name,
              struct pmfs_attr *attr)
{
    int rc =
        result_of(linkat(fd_of(fs, ino), "", fd_of(fs, parent), name, AT_EMPTY_PATH));

    return rc < 0 ? rc : find(fs, parent, name, attr);
}

int pmfs_unlink(struct pmfs *fs, uint64_t parent, const char *name)
{
    int rc = result_of(unlinkat(fd_of(fs, parent), name, 0));

    drop_all_gone(fs);
    return rc;
}

int pmfs_rmdir(struct pmfs *fs, uint64_t parent, const char *name)
{
    int rc = result_of(unlinkat(fd_of(fs, parent), name, AT_REMOVEDIR));

    drop_all_gone(fs);
    return rc;
}

static int rename_by_kernel(struct pmfs *fs, uint64_t parent, const char *name,
                            uint64_t new_parent, const char *new_name, unsigned flags)
{
    int rc = result_of(
        renameat2(fd_of(fs, parent), name, fd_of(fs, new_parent), new_name, flags));

    drop_all_gone(fs);
    return rc;
}

int pmfs_rename(struct pmfs *fs, uint64_t parent, const char *name, uint64_t new_parent,
                const char *new_name, unsigned flags)
{
    if (flags & ~(unsigned)(PMFS_RENAME_NOREPLACE | PMFS_RENAME_EXCHANGE))
        return UNASKABLE;
    return rename_by_kernel(fs, parent, name, new_parent, new_name, flags);
}

int pmfs_rename_whiteout(struct pmfs *fs, uint64_t parent, const char *name,
                         uint64_t new_parent, const char *new_name, unsigned flags,
                         const struct pmfs_cred *cred)
{
    struct stat before = {0}, after;
    int dir = fd_of(fs, parent);

    fstatat(dir, name, &before, AT_SYMLINK_NOFOLLOW);
    int rc = rename_by_kernel(fs, parent, name, new_parent, new_name,
                              flags | RENAME_WHITEOUT);
    if (rc == 0 && fstatat(dir, name, &after, AT_SYMLINK_NOFOLLOW) == 0 &&
        after.st_ino != before.st_ino)
        rc = result_of(fchownat(dir, name, cred->uid, cred->gid, AT_SYMLINK_NOFOLLOW));
    return rc;
}

/* What the kernel has cached names the parent before a move: see pmfs(1). */
static uint64_t ino_of(DIR *dir, const struct dirent *entry)
{
    struct stat self, parent;

    if (strcmp(entry->d_name, "..") != 0 || fstat(dirfd(dir), &self) < 0 ||
        fstatat(dirfd(dir), "..", &parent, 0) < 0)
        return entry->d_ino;
    return self.st_ino == PMFS_ROOT_INO ? entry->d_ino : parent.st_ino;
}

static int take_entry(struct pmfs *fs, DIR *dir, const struct dirent *entry,
                      unsigned flags, pmfs_readdir_fn *take, void *arg)
{
    struct pmfs_attr attr;
    struct pmfs_dirent found = {
        .name = entry->d_name,
        .ino = ino_of(dir, entry),
        .mode = DTTOIF((uint32_t)entry->d_type),
        .name_size = (uint32_t)strlen(entry->d_name),
        .next_cookie = (uint64_t)entry->d_off,
    };

    if (flags & PMFS_READDIR_ATTR && strcmp(found.name, ".") != 0 &&
        strcmp(found.name, "..") != 0 && pmfs_getattr(fs, found.ino, &attr) == 0)
        found.attr = &attr;
    int refused = take(arg, &found);

    if (found.attr && !refused && fs->counts_lookups)
        fs->nodes[found.ino].lookups++;
    return refused;
}

int pmfs_readdir(struct pmfs *fs, uint64_t ino, uint64_t cookie, unsigned flags,
                 pmfs_readdir_fn *take, void *arg)
{
    DIR *dir = opendir(path_of(fs, ino));
    const struct dirent *entry;

    if (!dir)
        return -errno;
    seekdir(dir, (long)cookie);
    while ((entry = readdir(dir)) && take_entry(fs, dir, entry, flags, take, arg) == 0)
        ;
    closedir(dir);
    return 0;
}

/* ---- Content --------------------------------------------------------------------- */

/* Opens a file for one call; a directory has its own errno. */
static int open_file(const struct pmfs *fs, uint64_t ino, int flags)
{
    mode_t type = type_of(fs, ino);
    int fd;

    if (!S_ISREG(type) && !S_ISDIR(type))
        return UNASKABLE;
    fd = open(path_of(fs, ino), flags | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static int end(int fd, long returned)
{
    int rc = result_of(returned);

    close(fd);
    return rc;
}

int pmfs_read(struct pmfs *fs, uint64_t ino, uint64_t offset, void *buffer, size_t size,
              size_t *done)
{
    int fd = open_file(fs, ino, O_RDONLY);
    ssize_t got;

    if (fd < 0)
        return fd;
    got = pread(fd, buffer, size, (off_t)offset);
    if (got >= 0)
        *done = (size_t)got;
    return end(fd, got);
}

/* Past the kernel's cache, where the kernel does not cut a write into pieces. */
int pmfs_write(struct pmfs *fs, uint64_t ino, uint64_t offset, const void *buffer,
               size_t size, unsigned flags, size_t *done)
{
    int append = flags & PMFS_APPEND ? O_APPEND : 0;
    int fd = open_file(fs, ino, O_WRONLY | O_DIRECT | append);
    ssize_t put;

    if (fd < 0)
        return fd;
    put = append ? write(fd, buffer, size) : pwrite(fd, buffer, size, (off_t)offset);
    if (put >= 0)
        *done = (size_t)put;
    return end(fd, put);
}

int pmfs_fallocate(struct pmfs *fs, uint64_t ino, unsigned mode, uint64_t offset,
                   uint64_t size)
{
    int fd = open_file(fs, ino, O_WRONLY);

    return fd < 0 ? fd : end(fd, fallocate(fd, (int)mode, (off_t)offset, (off_t)size));
}

int pmfs_seek(struct pmfs *fs, uint64_t ino, uint64_t offset, enum pmfs_seek whence,
              uint64_t *found)
{
    int fd = S_ISDIR(type_of(fs, ino)) ? UNASKABLE : open_file(fs, ino, O_RDONLY);
    off_t at;

    if (fd < 0)
        return fd;
    at = lseek(fd, (off_t)offset, whence == PMFS_SEEK_DATA ? SEEK_DATA : SEEK_HOLE);
    if (at >= 0)
        *found = (uint64_t)at;
    return end(fd, at);
}

int pmfs_copy_range(struct pmfs *fs, uint64_t from, uint64_t from_offset, uint64_t to,
                    uint64_t to_offset, uint64_t size, uint64_t *done)
{
    off_t from_at = (off_t)from_offset, to_at = (off_t)to_offset;
    int from_fd = open_file(fs, from, O_RDONLY), to_fd = open_file(fs, to, O_WRONLY);
    int rc = from_fd < 0 ? from_fd : to_fd;

    if (rc >= 0) {
        ssize_t copied = copy_file_range(from_fd, &from_at, to_fd, &to_at, size, 0);

        rc = result_of(copied);
        if (rc == 0)
            *done = (uint64_t)copied;
    }
    if (from_fd >= 0)
        close(from_fd);
    if (to_fd >= 0)
        close(to_fd);
    return rc;
}

/* ---- Extended attributes --------------------------------------------------------- */

static bool has_user_xattrs(const struct pmfs *fs, uint64_t ino)
{
    mode_t type = type_of(fs, ino);

    return S_ISREG(type) || S_ISDIR(type);
}

int pmfs_setxattr(struct pmfs *fs, uint64_t ino, const char *name, const void *value,
                  size_t size, unsigned flags)
{
    if (!has_user_xattrs(fs, ino))
        return UNASKABLE;
    return result_of(setxattr(path_of(fs, ino), name, value, size, (int)flags));
}

int pmfs_removexattr(struct pmfs *fs, uint64_t ino, const char *name)
{
    if (!has_user_xattrs(fs, ino))
        return UNASKABLE;
    return result_of(removexattr(path_of(fs, ino), name));
}

static int sized(ssize_t returned, size_t *size)
{
    if (returned >= 0)
        *size = (size_t)returned;
    return result_of(returned);
}

int pmfs_getxattr(struct pmfs *fs, uint64_t ino, const char *name, void *value,
                  size_t capacity, size_t *size)
{
    if (!has_user_xattrs(fs, ino))
        return -ENODATA;
    return sized(getxattr(path_of(fs, ino), name, value, capacity), size);
}

int pmfs_listxattr(struct pmfs *fs, uint64_t ino, char *names, size_t capacity,
                   size_t *size)
{
    if (!has_user_xattrs(fs, ino)) {
        *size = 0;
        return 0;
    }
    return sized(listxattr(path_of(fs, ino), names, capacity), size);
}

/* ---- The filesystem -------------------------------------------------------------- */

int pmfs_statfs(struct pmfs *fs, struct pmfs_statfs *statfs)
{
    struct statvfs found;

    if (fstatvfs(fd_of(fs, PMFS_ROOT_INO), &found) < 0)
        return -errno;
    *statfs = (struct pmfs_statfs){
        .block_size = (uint32_t)found.f_bsize,
        .name_max = (uint32_t)found.f_namemax,
        .blocks = found.f_blocks,
        .blocks_free = found.f_bfree,
        .blocks_available = found.f_bavail,
        .files = found.f_files,
        .files_free = found.f_ffree,
        .id = found.f_fsid,
    };
    return 0;
}

/* What only the process that has the pool can tell. */
struct minl2r_pool *pmfs_pool(struct pmfs *fs)
{
    (void)fs;
    return NULL;
}

int minl2r_stats_get(struct minl2r_pool *pool, struct minl2r_stats *stats)
{
    (void)pool, (void)stats;
    return UNASKABLE;
}

int pmfs_read_in_place(struct pmfs *fs, uint64_t ino, uint64_t offset, size_t size,
                       pmfs_read_fn *use, void *arg)
{
    (void)fs, (void)ino, (void)offset, (void)size, (void)use, (void)arg;
    return UNASKABLE;
}

/* ---- Mounting -------------------------------------------------------------------- */

/* Finds every inode again. */
static int walk(struct pmfs *fs, uint64_t ino)
{
    DIR *dir = opendir(path_of(fs, ino));
    const struct dirent *entry;
    struct pmfs_attr attr = {0};
    int rc = 0;

    if (!dir)
        return -errno;
    while (rc == 0 && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        int fd = openat(dirfd(dir), entry->d_name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

        rc = add_node(fs, fd, &attr);
        if (rc == 0 && S_ISDIR(attr.mode))
            rc = walk(fs, attr.ino);
    }
    closedir(dir);
    return rc;
}

int pmfs_mount(const char *path, const struct pmfs_mount_options *options,
               struct pmfs **fs)
{
    struct pmfs *made = calloc(1, sizeof(*made));
    struct pmfs_attr attr;
    int rc;

    if (!made)
        return -ENOMEM;
    umask(0);
    made->counts_lookups = options->flags & PMFS_COUNT_LOOKUPS;
    snprintf(made->mountpoint, sizeof(made->mountpoint), "%s-mount", path);
    mkdir(made->mountpoint, 0700);
    rc = pmfs_tool("mount", options->flags & PMFS_READ_ONLY ? "-oro" : "-orw", path,
                   made->mountpoint, NULL);
    if (rc == 0)
        rc = add_node(made, open(made->mountpoint, O_PATH | O_CLOEXEC), &attr);
    if (rc == 0)
        rc = walk(made, PMFS_ROOT_INO);
    *fs = made;
    return rc;
}

int pmfs_unmount(struct pmfs *fs)
{
    int rc;

    if (!fs)
        return 0;
    for (uint64_t ino = 0; ino < fs->node_count; ino++)
        if (fs->nodes[ino].fd)
            close(fs->nodes[ino].fd);
    rc = pmfs_tool("umount", fs->mountpoint, NULL, NULL, NULL);
    if (rc < 0) /* a failed test has something open */
        pmfs_tool("umount", "--lazy", fs->mountpoint, NULL, NULL);
    rmdir(fs->mountpoint);
    free(fs->nodes);
    free(fs);
    return rc;
}
