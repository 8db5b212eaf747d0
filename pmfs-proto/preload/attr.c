/* SPDX-License-Identifier: BSD-3-Clause */
/* attr.c - what inodes say of themselves, and changing it. */
#include "pmfs-proto/preload/preload.h"

#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#define NS_PER_S 1000000000

/* ---- Looking ------------------------------------------------------------------- */

static struct timespec timespec_of(int64_t ns)
{
    int64_t below = ns % NS_PER_S < 0 ? 1 : 0;

    return (struct timespec){.tv_sec = ns / NS_PER_S - below,
                             .tv_nsec = ns % NS_PER_S + below * NS_PER_S};
}

/* A device number that is nobody else's: what is on one device is one filesystem. */
static dev_t device_of(struct pmfs *fs)
{
    enum { UNUSED_MAJOR = 4095 };
    struct pmfs_statfs statfs;

    return pmfs_statfs(fs, &statfs) == 0 ? makedev(UNUSED_MAJOR, statfs.id & 0xfffff)
                                         : 0;
}

static void fill_stat(struct pmfs *fs, const struct pmfs_attr *attr, struct stat *stat)
{
    *stat = (struct stat){
        .st_dev = device_of(fs),
        .st_ino = attr->ino,
        .st_mode = attr->mode,
        .st_nlink = attr->nlink,
        .st_uid = attr->uid,
        .st_gid = attr->gid,
        .st_rdev = attr->rdev,
        .st_size = (off_t)attr->size,
        .st_blksize = (blksize_t)attr->block_size,
        .st_blocks = (blkcnt_t)attr->blocks,
        .st_atim = timespec_of(attr->atime_ns),
        .st_mtim = timespec_of(attr->mtime_ns),
        .st_ctim = timespec_of(attr->ctime_ns),
    };
}

static struct statx_timestamp timestamp_of(int64_t ns)
{
    struct timespec time = timespec_of(ns);

    return (struct statx_timestamp){.tv_sec = time.tv_sec,
                                    .tv_nsec = (uint32_t)time.tv_nsec};
}

static void fill_statx(struct pmfs *fs, const struct pmfs_attr *attr,
                       struct statx *statx)
{
    dev_t device = device_of(fs);

    *statx = (struct statx){
        .stx_mask = STATX_BASIC_STATS | STATX_BTIME,
        .stx_blksize = attr->block_size,
        .stx_nlink = attr->nlink,
        .stx_uid = attr->uid,
        .stx_gid = attr->gid,
        .stx_mode = (uint16_t)attr->mode,
        .stx_ino = attr->ino,
        .stx_size = attr->size,
        .stx_blocks = attr->blocks,
        .stx_atime = timestamp_of(attr->atime_ns),
        .stx_btime = timestamp_of(attr->btime_ns),
        .stx_ctime = timestamp_of(attr->ctime_ns),
        .stx_mtime = timestamp_of(attr->mtime_ns),
        .stx_rdev_major = major(attr->rdev),
        .stx_rdev_minor = minor(attr->rdev),
        .stx_dev_major = major(device),
        .stx_dev_minor = minor(device),
    };
}

/* What a path, or with AT_EMPTY_PATH or as /proc/self/fd/N a descriptor, is about. */
struct target {
    struct handle *file; /* or NULL: `at` */
    struct place at;
};

/* Does the call go to libc, as at.dir and at.path? Else target_end() must follow. */
static bool target_find(struct target *target, int dir, const char *path, int flags,
                        int *rc)
{
    bool is_fd = flags & AT_EMPTY_PATH && path && !*path;

    target->file = is_fd                         ? handle_get(dir)
                   : flags & AT_SYMLINK_NOFOLLOW ? NULL
                                                 : handle_of_path(path);
    if (target->file) {
        *rc = handle_begin(target->file, O_PATH);
        return false;
    }
    *rc = place_find(&target->at, dir, path,
                     flags & AT_SYMLINK_NOFOLLOW ? NOFOLLOW : FOLLOW);
    return target->at.is_host;
}

/* As target_find() of a descriptor, which must not be one of O_PATH. */
static bool target_find_fd(struct target *target, int fd, int *rc)
{
    if (target_find(target, fd, "", AT_EMPTY_PATH, rc))
        return true;
    if (*rc == 0)
        *rc = handle_check(target->file, O_RDWR);
    return false;
}

static int target_end(struct target *target, int rc)
{
    return (int)(target->file ? handle_end(target->file, rc)
                              : place_end(&target->at, rc));
}

static int target_getattr(struct target *target, struct pmfs **fs,
                          struct pmfs_attr *attr)
{
    const struct place *at = &target->at;
    int rc = pool_get(fs);

    if (rc < 0)
        return rc;
    return target->file ? pmfs_getattr(*fs, target->file->ino, attr)
                        : pmfs_path_getattr(*fs, at->at.parent, at->at.name,
                                            PMFS_PATH_NOFOLLOW, attr);
}

static int target_setattr(struct target *target, const struct pmfs_attr *values,
                          unsigned mask)
{
    const struct place *at = &target->at;
    struct pmfs *fs;
    int rc = pool_get(&fs);

    if (rc < 0)
        return rc;
    return target->file ? pmfs_setattr(fs, target->file->ino, values, mask, NULL)
                        : pmfs_path_setattr(fs, at->at.parent, at->at.name,
                                            PMFS_PATH_NOFOLLOW, values, mask, NULL);
}

/* ---- stat ---------------------------------------------------------------------- */

enum {
    STAT_FLAGS =
        AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_EMPTY_PATH | AT_STATX_SYNC_TYPE
};

INTERPOSE(int, fstatat, (int dir, const char *path, struct stat *out, int flags))
{
    struct target target;
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc;

    if (target_find(&target, dir, path, flags, &rc))
        return (int)place_host(
            &target.at, REAL(fstatat)(target.at.dir, target.at.path, out, flags));
    if (flags & ~STAT_FLAGS)
        rc = -EINVAL;
    if (rc == 0)
        rc = target_getattr(&target, &fs, &attr);
    if (rc == 0)
        fill_stat(fs, &attr, out);
    return target_end(&target, rc);
}
ALIAS(fstatat64, fstatat);

INTERPOSE(int, stat, (const char *path, struct stat *out))
{
    return fstatat(AT_FDCWD, path, out, 0);
}
ALIAS(stat64, stat);

INTERPOSE(int, lstat, (const char *path, struct stat *out))
{
    return fstatat(AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
ALIAS(lstat64, lstat);

INTERPOSE(int, fstat, (int fd, struct stat *out))
{
    return fd_is_ours(fd) ? fstatat(fd, "", out, AT_EMPTY_PATH) : REAL(fstat)(fd, out);
}
ALIAS(fstat64, fstat);

/* What programs call that were linked before glibc 2.33; there is one `version`. */
int __fxstatat(int version, int dir, const char *path, struct stat *out, int flags);
INTERPOSE(int, __fxstatat,
          (int version, int dir, const char *path, struct stat *out, int flags))
{
    (void)version;
    return fstatat(dir, path, out, flags);
}
ALIAS(__fxstatat64, __fxstatat);

int __xstat(int version, const char *path, struct stat *out);
INTERPOSE(int, __xstat, (int version, const char *path, struct stat *out))
{
    return __fxstatat(version, AT_FDCWD, path, out, 0);
}
ALIAS(__xstat64, __xstat);

int __lxstat(int version, const char *path, struct stat *out);
INTERPOSE(int, __lxstat, (int version, const char *path, struct stat *out))
{
    return __fxstatat(version, AT_FDCWD, path, out, AT_SYMLINK_NOFOLLOW);
}
ALIAS(__lxstat64, __lxstat);

int __fxstat(int version, int fd, struct stat *out);
INTERPOSE(int, __fxstat, (int version, int fd, struct stat *out))
{
    (void)version;
    return fstat(fd, out);
}
ALIAS(__fxstat64, __fxstat);

INTERPOSE(int, statx,
          (int dir, const char *path, int flags, unsigned mask, struct statx *out))
{
    struct target target;
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc;

    if (target_find(&target, dir, path, flags, &rc))
        return (int)place_host(
            &target.at, REAL(statx)(target.at.dir, target.at.path, flags, mask, out));
    if (mask & STATX__RESERVED || flags & ~STAT_FLAGS ||
        (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE)
        rc = -EINVAL;
    if (rc == 0)
        rc = target_getattr(&target, &fs, &attr);
    if (rc == 0)
        fill_statx(fs, &attr, out);
    return target_end(&target, rc);
}

/* ---- access -------------------------------------------------------------------- */

static bool is_in_group(gid_t group, gid_t own)
{
    int errnum = errno, count = getgroups(0, NULL);
    gid_t *groups = count > 0 ? calloc((size_t)count, sizeof(*groups)) : NULL;
    bool found = group == own;

    count = groups ? getgroups(count, groups) : 0;
    for (int i = 0; i < count && !found; i++)
        found = groups[i] == group;
    free(groups);
    errno = errnum;
    return found;
}

/* As the kernel decides. Root may all but execute what nobody may. */
static int check_access(const struct pmfs_attr *attr, int mode, uid_t uid, gid_t gid)
{
    uint32_t allowed = attr->mode & 7;

    if (uid == 0) {
        bool may_execute = S_ISDIR(attr->mode) || attr->mode & 0111;

        return mode & X_OK && !may_execute ? -EACCES : 0;
    }
    if (uid == attr->uid)
        allowed = attr->mode >> 6 & 7;
    else if (is_in_group(attr->gid, gid))
        allowed = attr->mode >> 3 & 7;
    return (uint32_t)mode & ~allowed ? -EACCES : 0;
}

INTERPOSE(int, faccessat, (int dir, const char *path, int mode, int flags))
{
    bool effective = flags & AT_EACCESS;
    struct target target;
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc;

    if (target_find(&target, dir, path, flags, &rc))
        return (int)place_host(
            &target.at, REAL(faccessat)(target.at.dir, target.at.path, mode, flags));
    if (mode & ~(R_OK | W_OK | X_OK) ||
        flags & ~(AT_EACCESS | AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        rc = -EINVAL;
    if (rc == 0)
        rc = target_getattr(&target, &fs, &attr);
    if (rc == 0)
        rc = check_access(&attr, mode, effective ? geteuid() : getuid(),
                          effective ? getegid() : getgid());
    return target_end(&target, rc);
}

INTERPOSE(int, access, (const char *path, int mode))
{
    return faccessat(AT_FDCWD, path, mode, 0);
}

INTERPOSE(int, eaccess, (const char *path, int mode))
{
    return faccessat(AT_FDCWD, path, mode, AT_EACCESS);
}
ALIAS(euidaccess, eaccess);

/* ---- Modes and owners ---------------------------------------------------------- */

static bool is_capable(int capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {{0}};

    return syscall(SYS_capget, &header, sets) == 0 &&
           sets[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability);
}

/* Set-group-ID is not for who is neither in the group nor may give such bits. */
static bool keeps_setgid(const struct pmfs_attr *attr)
{
    return is_in_group(attr->gid, getegid()) || is_capable(CAP_FSETID);
}

static int target_chmod(struct target *target, mode_t mode)
{
    struct pmfs_attr values = {.mode = mode & 07777}, attr;
    struct pmfs *fs;
    int rc = mode & S_ISGID ? target_getattr(target, &fs, &attr) : 0;

    if (rc < 0)
        return rc;
    if (mode & S_ISGID && !keeps_setgid(&attr))
        values.mode &= ~(uint32_t)S_ISGID;
    return target_setattr(target, &values, PMFS_SET_MODE);
}

INTERPOSE(int, fchmodat, (int dir, const char *path, mode_t mode, int flags))
{
    struct target target;
    int rc;

    if (target_find(&target, dir, path, flags, &rc))
        return (int)place_host(
            &target.at, REAL(fchmodat)(target.at.dir, target.at.path, mode, flags));
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        rc = -EINVAL;
    if (rc == 0 && flags & AT_SYMLINK_NOFOLLOW) {
        struct pmfs_attr attr;
        struct pmfs *fs;

        rc = target_getattr(&target, &fs, &attr);
        if (rc == 0 && S_ISLNK(attr.mode))
            rc = -EOPNOTSUPP;
    }
    if (rc == 0)
        rc = target_chmod(&target, mode);
    return target_end(&target, rc);
}

INTERPOSE(int, chmod, (const char *path, mode_t mode))
{
    return fchmodat(AT_FDCWD, path, mode, 0);
}

INTERPOSE(int, lchmod, (const char *path, mode_t mode))
{
    return fchmodat(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

INTERPOSE(int, fchmod, (int fd, mode_t mode))
{
    struct target target;
    int rc;

    if (target_find_fd(&target, fd, &rc))
        return REAL(fchmod)(fd, mode);
    return target_end(&target, rc < 0 ? rc : target_chmod(&target, mode));
}

static int target_chown(struct target *target, uid_t uid, gid_t gid)
{
    const struct pmfs_attr values = {.uid = uid, .gid = gid};
    unsigned mask =
        (uid != (uid_t)-1 ? PMFS_SET_UID : 0u) | (gid != (gid_t)-1 ? PMFS_SET_GID : 0u);
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc = target_getattr(target, &fs, &attr);

    if (rc < 0)
        return rc;
    mask |= PMFS_DROP_PRIVILEGES;
    if (attr.mode & S_ISGID && !keeps_setgid(&attr))
        mask |= PMFS_DROP_SETGID;
    return target_setattr(target, &values, mask);
}

INTERPOSE(int, fchownat, (int dir, const char *path, uid_t uid, gid_t gid, int flags))
{
    struct target target;
    int rc;

    if (target_find(&target, dir, path, flags, &rc))
        return (int)place_host(
            &target.at, REAL(fchownat)(target.at.dir, target.at.path, uid, gid, flags));
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        rc = -EINVAL;
    if (rc == 0)
        rc = target_chown(&target, uid, gid);
    return target_end(&target, rc);
}

INTERPOSE(int, chown, (const char *path, uid_t uid, gid_t gid))
{
    return fchownat(AT_FDCWD, path, uid, gid, 0);
}

INTERPOSE(int, lchown, (const char *path, uid_t uid, gid_t gid))
{
    return fchownat(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

INTERPOSE(int, fchown, (int fd, uid_t uid, gid_t gid))
{
    struct target target;
    int rc;

    if (target_find_fd(&target, fd, &rc))
        return REAL(fchown)(fd, uid, gid);
    return target_end(&target, rc < 0 ? rc : target_chown(&target, uid, gid));
}

/* ---- Times --------------------------------------------------------------------- */

/* The nearest time that can be kept. */
static int64_t ns_of(const struct timespec *time)
{
    int64_t ns;

    if (__builtin_mul_overflow(time->tv_sec, NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, time->tv_nsec, &ns))
        return time->tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

/* Adds one time to what is to be set; NULL is now. */
static int add_time(const struct timespec *time, int64_t *ns, unsigned *mask,
                    unsigned set, unsigned set_now)
{
    if (!time || time->tv_nsec == UTIME_NOW)
        *mask |= set_now;
    else if (time->tv_nsec < 0 ||
             (time->tv_nsec >= NS_PER_S && time->tv_nsec != UTIME_OMIT))
        return -EINVAL;
    else if (time->tv_nsec != UTIME_OMIT) {
        *ns = ns_of(time);
        *mask |= set;
    }
    return 0;
}

/* That there is no such file comes before that its times are none. */
static int refuse_times(struct target *target)
{
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc = target_getattr(target, &fs, &attr);

    return rc < 0 ? rc : -EINVAL;
}

/* Then the kernel looks at nothing else. */
static bool leaves_both(const struct timespec *times)
{
    return times && times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT;
}

static int target_set_times(struct target *target, const struct timespec *times)
{
    struct pmfs_attr values = {0};
    unsigned mask = 0;
    int rc =
        add_time(times, &values.atime_ns, &mask, PMFS_SET_ATIME, PMFS_SET_ATIME_NOW);

    if (rc == 0)
        rc = add_time(times ? &times[1] : NULL, &values.mtime_ns, &mask, PMFS_SET_MTIME,
                      PMFS_SET_MTIME_NOW);
    if (rc < 0)
        return refuse_times(target);
    return mask ? target_setattr(target, &values, mask) : 0;
}

INTERPOSE(int, utimensat,
          (int dir, const char *path, const struct timespec times[2], int flags))
{
    struct target target;
    int rc;

    if (target_find(&target, dir, path, flags, &rc))
        return (int)place_host(
            &target.at, REAL(utimensat)(target.at.dir, target.at.path, times, flags));
    if (leaves_both(times))
        return target_end(&target, 0);
    if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
        rc = -EINVAL;
    if (rc == 0)
        rc = target_set_times(&target, times);
    return target_end(&target, rc);
}

INTERPOSE(int, futimens, (int fd, const struct timespec times[2]))
{
    struct target target;
    int rc;

    if (target_find_fd(&target, fd, &rc))
        return REAL(futimens)(fd, times);
    return target_end(&target, rc < 0 ? rc : target_set_times(&target, times));
}

static int make_precise(const struct timeval times[2], struct timespec precise[2])
{
    for (int i = 0; i < 2; i++) {
        if (times[i].tv_usec < 0 || times[i].tv_usec >= 1000000)
            return (int)result(-EINVAL);
        precise[i] = (struct timespec){.tv_sec = times[i].tv_sec,
                                       .tv_nsec = times[i].tv_usec * 1000};
    }
    return 0;
}

static int set_timevals(int dir, const char *path, const struct timeval times[2],
                        int flags)
{
    struct timespec precise[2];

    if (times && make_precise(times, precise) < 0)
        return -1;
    return utimensat(dir, path, times ? precise : NULL, flags);
}

INTERPOSE(int, futimesat, (int dir, const char *path, const struct timeval times[2]))
{
    return set_timevals(dir, path, times, 0);
}

INTERPOSE(int, utimes, (const char *path, const struct timeval times[2]))
{
    return set_timevals(AT_FDCWD, path, times, 0);
}

INTERPOSE(int, lutimes, (const char *path, const struct timeval times[2]))
{
    return set_timevals(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

INTERPOSE(int, futimes, (int fd, const struct timeval times[2]))
{
    struct timespec precise[2];

    if (!fd_is_ours(fd))
        return REAL(futimes)(fd, times);
    if (times && make_precise(times, precise) < 0)
        return -1;
    return futimens(fd, times ? precise : NULL);
}

INTERPOSE(int, utime, (const char *path, const struct utimbuf *times))
{
    struct timespec precise[2] = {0};

    if (!times)
        return utimensat(AT_FDCWD, path, NULL, 0);
    precise[0].tv_sec = times->actime;
    precise[1].tv_sec = times->modtime;
    return utimensat(AT_FDCWD, path, precise, 0);
}

/* ---- The filesystem ------------------------------------------------------------ */

#define STATFS_TYPE 0x706d6673 /* "pmfs" */

static int fill_statfs(struct pmfs *fs, struct statfs *result)
{
    struct pmfs_statfs statfs;
    int rc = pmfs_statfs(fs, &statfs);

    if (rc < 0)
        return rc;
    memset(result, 0, sizeof(*result));
    result->f_type = STATFS_TYPE;
    result->f_bsize = statfs.block_size;
    result->f_frsize = statfs.block_size;
    result->f_blocks = statfs.blocks;
    result->f_bfree = statfs.blocks_free;
    result->f_bavail = statfs.blocks_available;
    result->f_files = statfs.files;
    result->f_ffree = statfs.files_free;
    result->f_namelen = statfs.name_max;
    memcpy(&result->f_fsid, &statfs.id, sizeof(statfs.id));
    return 0;
}

/* Of what exists at a path, or of a descriptor if that is NULL. */
static int get_statfs(struct target *target, struct statfs *statfs)
{
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc = target_getattr(target, &fs, &attr);

    return rc < 0 ? rc : fill_statfs(fs, statfs);
}

INTERPOSE(int, statfs, (const char *path, struct statfs *out))
{
    struct target target;
    int rc;

    if (target_find(&target, AT_FDCWD, path, 0, &rc))
        return (int)place_host(&target.at, REAL(statfs)(target.at.path, out));
    return target_end(&target, rc < 0 ? rc : get_statfs(&target, out));
}
ALIAS(statfs64, statfs);

INTERPOSE(int, fstatfs, (int fd, struct statfs *out))
{
    struct target target;
    int rc;

    if (target_find(&target, fd, "", AT_EMPTY_PATH, &rc))
        return (int)place_host(&target.at, REAL(fstatfs)(fd, out));
    return target_end(&target, rc < 0 ? rc : get_statfs(&target, out));
}
ALIAS(fstatfs64, fstatfs);

static void fill_statvfs(const struct statfs *from, struct statvfs *to)
{
    uint64_t id;

    memcpy(&id, &from->f_fsid, sizeof(id));
    *to = (struct statvfs){
        .f_bsize = (unsigned long)from->f_bsize,
        .f_frsize = (unsigned long)from->f_frsize,
        .f_blocks = from->f_blocks,
        .f_bfree = from->f_bfree,
        .f_bavail = from->f_bavail,
        .f_files = from->f_files,
        .f_ffree = from->f_ffree,
        .f_favail = from->f_ffree,
        .f_fsid = id,
        .f_flag = ST_NOATIME,
        .f_namemax = (unsigned long)from->f_namelen,
    };
}

INTERPOSE(int, statvfs, (const char *path, struct statvfs *out))
{
    struct target target;
    struct statfs statfs;
    int rc;

    if (target_find(&target, AT_FDCWD, path, 0, &rc))
        return (int)place_host(&target.at, REAL(statvfs)(target.at.path, out));
    if (rc == 0)
        rc = get_statfs(&target, &statfs);
    if (rc == 0)
        fill_statvfs(&statfs, out);
    return target_end(&target, rc);
}
ALIAS(statvfs64, statvfs);

INTERPOSE(int, fstatvfs, (int fd, struct statvfs *out))
{
    struct statfs statfs;

    if (!fd_is_ours(fd))
        return REAL(fstatvfs)(fd, out);
    if (fstatfs(fd, &statfs) < 0)
        return -1;
    fill_statvfs(&statfs, out);
    return 0;
}
ALIAS(fstatvfs64, fstatvfs);

static long limit_of(int name)
{
    switch (name) {
    case _PC_LINK_MAX:
        return PMFS_LINK_MAX;
    case _PC_NAME_MAX:
        return PMFS_NAME_MAX;
    case _PC_PATH_MAX:
        return PMFS_PATH_MAX + 1;
    case _PC_SYMLINK_MAX:
        return PMFS_SYMLINK_MAX;
    case _PC_FILESIZEBITS:
        return 64;
    default:
        return REAL(pathconf)("/", name);
    }
}

INTERPOSE(long, pathconf, (const char *path, int name))
{
    struct target target;
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc;

    if (target_find(&target, AT_FDCWD, path, 0, &rc))
        return place_host(&target.at, REAL(pathconf)(target.at.path, name));
    if (rc == 0)
        rc = target_getattr(&target, &fs, &attr);
    return target_end(&target, rc) < 0 ? -1 : limit_of(name);
}

INTERPOSE(long, fpathconf, (int fd, int name))
{
    return fd_is_ours(fd) ? limit_of(name) : REAL(fpathconf)(fd, name);
}
