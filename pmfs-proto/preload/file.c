/* SPDX-License-Identifier: BSD-3-Clause */
/* file.c - opening, reading and writing. */
#include "pmfs-proto/preload/preload.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* ---- Opening ------------------------------------------------------------------- */

static bool makes(int flags)
{
    return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* There is nobody at the other end of a fifo or socket, nor a driver. */
static int check_type(uint32_t mode, int flags)
{
    bool can = S_ISREG(mode) || S_ISDIR(mode) || flags & O_PATH;

    return can ? 0 : -ENXIO;
}

static int open_place(const struct place *at, int flags, mode_t mode)
{
    const int not_kept = O_CREAT | O_EXCL | O_NOCTTY | O_TRUNC;
    const struct pmfs_cred cred = cred_get();
    struct pmfs_attr attr;
    int rc;

    rc = pmfs_path_open(at->fs, at->at.parent, at->at.name, flags | O_NOFOLLOW,
                        mode & 07777, &cred, &attr);
    if (rc < 0)
        return rc;
    rc = check_type(attr.mode, flags);
    if (rc < 0) {
        pmfs_release(at->fs, attr.ino);
        return rc;
    }
    return fd_open(attr.ino, attr.mode & S_IFMT, flags & ~not_kept);
}

/* What the kernel asks before it looks at the path. */
static bool are_flags(int flags)
{
    const int nameless = O_TMPFILE & ~O_DIRECTORY;
    int access = flags & O_ACCMODE;

    if (flags & nameless)
        return flags & O_DIRECTORY && !(flags & O_CREAT) && access != O_RDONLY;
    return !(flags & O_CREAT) || !(flags & O_DIRECTORY);
}

/* By the path of a descriptor. */
static int open_again(struct handle *file, int flags)
{
    int rc = handle_begin(file, O_PATH);

    if (rc == 0 && !are_flags(flags))
        rc = -EINVAL;
    if (rc == 0)
        rc = check_type(file->type, flags);
    if (rc == 0)
        rc = fd_open_again(file, flags);
    return (int)handle_end(file, rc);
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    const int of_path = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    struct place at;

    if (flags & O_PATH)
        flags &= of_path;
    bool exclusive = flags & O_CREAT && flags & O_EXCL;
    struct handle *file = exclusive || flags & O_NOFOLLOW ? NULL : handle_of_path(path);

    if (file)
        return open_again(file, flags);
    int rc =
        place_find(&at, dir, path, exclusive || flags & O_NOFOLLOW ? NOFOLLOW : FOLLOW);

    if (!are_flags(flags))
        rc = -EINVAL;
    if (!at.is_host)
        return (int)place_end(&at, rc < 0 ? rc : open_place(&at, flags, mode));
    rc = REAL(openat)(at.dir, at.path, flags, mode);
    if (pool_is_opening(at.path))
        rc = pool_keep_fd(rc);
    return (int)place_host(&at, rc);
}

#define MODE_ARGUMENT(flags, mode)                                                     \
    do {                                                                               \
        va_list args_;                                                                 \
        va_start(args_, flags);                                                        \
        (mode) = makes(flags) ? va_arg(args_, mode_t) : 0;                             \
        va_end(args_);                                                                 \
    } while (0)

INTERPOSE(int, open, (const char *path, int flags, ...))
{
    mode_t mode;

    MODE_ARGUMENT(flags, mode);
    return open_at(AT_FDCWD, path, flags, mode);
}
ALIAS(open64, open);

INTERPOSE(int, openat, (int dir, const char *path, int flags, ...))
{
    mode_t mode;

    MODE_ARGUMENT(flags, mode);
    return open_at(dir, path, flags, mode);
}
ALIAS(openat64, openat);

INTERPOSE(int, creat, (const char *path, mode_t mode))
{
    return open_at(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}
ALIAS(creat64, creat);

/* What programs call that were compiled with _FORTIFY_SOURCE. */
int __open_2(const char *path, int flags);
INTERPOSE(int, __open_2, (const char *path, int flags))
{
    return open_at(AT_FDCWD, path, flags, 0);
}
ALIAS(__open64_2, __open_2);

int __openat_2(int dir, const char *path, int flags);
INTERPOSE(int, __openat_2, (int dir, const char *path, int flags))
{
    return open_at(dir, path, flags, 0);
}
ALIAS(__openat64_2, __openat_2);

/* ---- Reading ------------------------------------------------------------------- */

#define SIZE_MAX_OF_A_CALL ((size_t)0x7ffff000) /* as the kernel has it */

static size_t limit(size_t size)
{
    return size < SIZE_MAX_OF_A_CALL ? size : SIZE_MAX_OF_A_CALL;
}

static int check_range(uint64_t at, size_t size)
{
    /* No buffer is so large, whatever its address. */
    if (size >> 47)
        return -EFAULT;
    return size > INT64_MAX - at ? -EINVAL : 0;
}

ssize_t handle_read_at(const struct handle *file, void *buffer, size_t size,
                       uint64_t at)
{
    struct pmfs *fs;
    size_t done = 0;
    int rc = check_range(at, size);

    if (rc == 0)
        rc = pool_get(&fs);
    if (rc == 0)
        rc = pmfs_read(fs, file->ino, at, buffer, limit(size), &done);
    return rc < 0 ? rc : (ssize_t)done;
}

static ssize_t read_next(struct handle *file, void *buffer, size_t size)
{
    ssize_t done;

    pthread_mutex_lock(&file->lock);
    done = handle_read_at(file, buffer, size, file->offset);
    if (done > 0)
        file->offset += (uint64_t)done;
    pthread_mutex_unlock(&file->lock);
    return done;
}

INTERPOSE(ssize_t, read, (int fd, void *buffer, size_t size))
{
    struct handle *file = handle_get(fd);
    ssize_t rc;

    if (!file)
        return REAL(read)(fd, buffer, size);
    rc = handle_begin(file, O_RDONLY);
    return handle_end(file, rc < 0 ? rc : read_next(file, buffer, size));
}

INTERPOSE(ssize_t, pread, (int fd, void *buffer, size_t size, off_t at))
{
    struct handle *file = handle_get(fd);
    ssize_t rc;

    if (!file)
        return REAL(pread)(fd, buffer, size, at);
    if (at < 0)
        return handle_refuse(file, EINVAL);
    rc = handle_begin(file, O_RDONLY);
    if (rc == 0)
        rc = handle_read_at(file, buffer, size, (uint64_t)at);
    return handle_end(file, rc);
}
ALIAS(pread64, pread);

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
INTERPOSE(ssize_t, __read_chk, (int fd, void *buffer, size_t size, size_t room))
{
    return fd_is_ours(fd) && size <= room ? read(fd, buffer, size)
                                          : REAL(__read_chk)(fd, buffer, size, room);
}

ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room);
INTERPOSE(ssize_t, __pread_chk,
          (int fd, void *buffer, size_t size, off_t at, size_t room))
{
    return fd_is_ours(fd) && size <= room
               ? pread(fd, buffer, size, at)
               : REAL(__pread_chk)(fd, buffer, size, at, room);
}
ALIAS(__pread64_chk, __pread_chk);

/* ---- Writing ------------------------------------------------------------------- */

static ssize_t write_at(struct handle *file, const void *buffer, size_t size,
                        uint64_t at, unsigned flags)
{
    struct pmfs *fs;
    size_t done = 0;
    int rc = check_range(at, size);

    if (rc < 0 || size == 0)
        return rc;
    rc = pool_get(&fs);
    if (rc == 0)
        rc = pmfs_write(fs, file->ino, at, buffer, limit(size), flags, &done);
    return rc < 0 ? rc : (ssize_t)done;
}

static unsigned append_flag(const struct handle *file)
{
    return __atomic_load_n(&file->flags, __ATOMIC_RELAXED) & O_APPEND ? PMFS_APPEND : 0;
}

/* Where the end is, after appending. */
static uint64_t end_of(const struct handle *file)
{
    struct pmfs_attr attr;
    struct pmfs *fs;

    return pool_get(&fs) == 0 && pmfs_getattr(fs, file->ino, &attr) == 0 ? attr.size
                                                                         : file->offset;
}

static ssize_t write_next(struct handle *file, const void *buffer, size_t size,
                          unsigned flags)
{
    ssize_t done;

    pthread_mutex_lock(&file->lock);
    done = write_at(file, buffer, size, file->offset, flags);
    if (done > 0)
        file->offset =
            flags & PMFS_APPEND ? end_of(file) : file->offset + (uint64_t)done;
    pthread_mutex_unlock(&file->lock);
    return done;
}

INTERPOSE(ssize_t, write, (int fd, const void *buffer, size_t size))
{
    struct handle *file = handle_get(fd);
    ssize_t rc;

    if (!file)
        return REAL(write)(fd, buffer, size);
    rc = handle_begin(file, O_WRONLY);
    return handle_end(file,
                      rc < 0 ? rc : write_next(file, buffer, size, append_flag(file)));
}

INTERPOSE(ssize_t, pwrite, (int fd, const void *buffer, size_t size, off_t at))
{
    struct handle *file = handle_get(fd);
    ssize_t rc;

    if (!file)
        return REAL(pwrite)(fd, buffer, size, at);
    if (at < 0)
        return handle_refuse(file, EINVAL);
    rc = handle_begin(file, O_WRONLY);
    if (rc == 0)
        rc = write_at(file, buffer, size, (uint64_t)at, append_flag(file));
    return handle_end(file, rc);
}
ALIAS(pwrite64, pwrite);

/* ---- Vectors ------------------------------------------------------------------- */

static ssize_t total_of(const struct iovec *pieces, int count)
{
    size_t total = 0;

    if (count < 0 || count > IOV_MAX)
        return -EINVAL;
    for (int i = 0; i < count; i++) {
        if (pieces[i].iov_len > SSIZE_MAX - total)
            return -EINVAL;
        total += pieces[i].iov_len;
    }
    return (ssize_t)limit(total);
}

enum { NOAPPEND = 0x20 }; /* RWF_NOAPPEND, which headers may lack */

/* All is written at once and durably, so most of what may be asked for is there. */
static int check_flags(int flags)
{
    const int known =
        RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT | RWF_APPEND | NOAPPEND;

    if (flags & ~known)
        return -EOPNOTSUPP;
    return flags & RWF_APPEND && flags & NOAPPEND ? -EINVAL : 0;
}

/* The flags are not looked at where there is nothing to do. */
static ssize_t check_pieces(const struct iovec *pieces, int count, int flags)
{
    ssize_t total = total_of(pieces, count);
    int rc = total > 0 ? check_flags(flags) : 0;

    return rc < 0 ? rc : total;
}

/* At `at`, or where the file stands if that is -1. */
static ssize_t read_pieces(struct handle *file, const struct iovec *pieces, int count,
                           off_t at, int flags)
{
    ssize_t rc = check_pieces(pieces, count, flags);
    ssize_t done = 0;

    for (int i = 0; rc >= 0 && i < count; i++) {
        void *base = pieces[i].iov_base;
        size_t size = pieces[i].iov_len;

        rc = at < 0 ? read_next(file, base, size)
                    : handle_read_at(file, base, size, (uint64_t)(at + done));
        if (rc > 0)
            done += rc;
        if (rc < 0 || (size_t)rc < size)
            break;
    }
    return done > 0 ? done : rc < 0 ? rc : 0;
}

static ssize_t write_bytes(struct handle *file, const void *bytes, size_t size,
                           off_t at, int flags)
{
    unsigned append = flags & RWF_APPEND ? PMFS_APPEND
                      : flags & NOAPPEND ? 0
                                         : append_flag(file);

    return at < 0 ? write_next(file, bytes, size, append)
                  : write_at(file, bytes, size, (uint64_t)at, append);
}

/* All pieces are one write, and so one transaction. */
static ssize_t write_pieces(struct handle *file, const struct iovec *pieces, int count,
                            off_t at, int flags)
{
    ssize_t total = check_pieces(pieces, count, flags);
    uint8_t *bytes, *end;
    ssize_t rc;

    if (total <= 0)
        return total;
    if (count == 1)
        return write_bytes(file, pieces->iov_base, (size_t)total, at, flags);
    bytes = end = malloc((size_t)total);
    if (!bytes)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        size_t room = (size_t)(bytes + total - end);
        size_t size = pieces[i].iov_len < room ? pieces[i].iov_len : room;

        if (size)
            memcpy(end, pieces[i].iov_base, size);
        end += size;
    }
    rc = write_bytes(file, bytes, (size_t)total, at, flags);
    free(bytes);
    return rc;
}

/* An offset that is none comes before anything about the file. */
static ssize_t read_vector(struct handle *file, const struct iovec *pieces, int count,
                           off_t at, int flags)
{
    ssize_t rc;

    if (at < -1)
        return handle_refuse(file, EINVAL);
    rc = handle_begin(file, O_RDONLY);
    return handle_end(file, rc < 0 ? rc : read_pieces(file, pieces, count, at, flags));
}

static ssize_t write_vector(struct handle *file, const struct iovec *pieces, int count,
                            off_t at, int flags)
{
    ssize_t rc;

    if (at < -1)
        return handle_refuse(file, EINVAL);
    rc = handle_begin(file, O_WRONLY);
    return handle_end(file, rc < 0 ? rc : write_pieces(file, pieces, count, at, flags));
}

INTERPOSE(ssize_t, readv, (int fd, const struct iovec *pieces, int count))
{
    struct handle *file = handle_get(fd);

    return file ? read_vector(file, pieces, count, -1, 0)
                : REAL(readv)(fd, pieces, count);
}

INTERPOSE(ssize_t, writev, (int fd, const struct iovec *pieces, int count))
{
    struct handle *file = handle_get(fd);

    return file ? write_vector(file, pieces, count, -1, 0)
                : REAL(writev)(fd, pieces, count);
}

INTERPOSE(ssize_t, preadv, (int fd, const struct iovec *pieces, int count, off_t at))
{
    struct handle *file = handle_get(fd);

    if (!file)
        return REAL(preadv)(fd, pieces, count, at);
    return at < 0 ? handle_refuse(file, EINVAL)
                  : read_vector(file, pieces, count, at, 0);
}
ALIAS(preadv64, preadv);

INTERPOSE(ssize_t, pwritev, (int fd, const struct iovec *pieces, int count, off_t at))
{
    struct handle *file = handle_get(fd);

    if (!file)
        return REAL(pwritev)(fd, pieces, count, at);
    return at < 0 ? handle_refuse(file, EINVAL)
                  : write_vector(file, pieces, count, at, 0);
}
ALIAS(pwritev64, pwritev);

INTERPOSE(ssize_t, preadv2,
          (int fd, const struct iovec *pieces, int count, off_t at, int flags))
{
    struct handle *file = handle_get(fd);

    return file ? read_vector(file, pieces, count, at, flags)
                : REAL(preadv2)(fd, pieces, count, at, flags);
}
ALIAS(preadv64v2, preadv2);

INTERPOSE(ssize_t, pwritev2,
          (int fd, const struct iovec *pieces, int count, off_t at, int flags))
{
    struct handle *file = handle_get(fd);

    return file ? write_vector(file, pieces, count, at, flags)
                : REAL(pwritev2)(fd, pieces, count, at, flags);
}
ALIAS(pwritev64v2, pwritev2);
