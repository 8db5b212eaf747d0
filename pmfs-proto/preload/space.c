/* SPDX-License-Identifier: BSD-3-Clause */
/* space.c - positions and sizes of files, copying between them, and what has nothing to
 * do because every call is durable when it returns. */
#include "pmfs-proto/preload/preload.h"

#include <linux/falloc.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Position ------------------------------------------------------------------ */

static int64_t seek_data_or_hole(struct pmfs *fs, const struct handle *file, off_t at,
                                 int whence)
{
    uint64_t found = 0;
    int rc;

    if (file->type != S_IFREG)
        return -EINVAL;
    if (at < 0)
        return -ENXIO;
    rc = pmfs_seek(fs, file->ino, (uint64_t)at,
                   whence == SEEK_DATA ? PMFS_SEEK_DATA : PMFS_SEEK_HOLE, &found);
    return rc < 0 ? rc : (int64_t)found;
}

static int64_t position(const struct handle *file, off_t at, int whence)
{
    struct pmfs_attr attr = {0};
    struct pmfs *fs;
    int64_t base = 0;
    int rc = pool_get(&fs);

    if (rc == 0)
        rc = pmfs_getattr(fs, file->ino, &attr);
    if (rc < 0)
        return rc;
    switch (whence) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        base = (int64_t)file->offset;
        break;
    case SEEK_END:
        base = (int64_t)attr.size;
        break;
    case SEEK_DATA:
    case SEEK_HOLE:
        return seek_data_or_hole(fs, file, at, whence);
    default:
        return -EINVAL;
    }
    return __builtin_add_overflow(base, at, &base) || base < 0 ? -EINVAL : base;
}

/* Of a directory it is a cookie. */
static int64_t seek(struct handle *file, off_t at, int whence)
{
    int64_t rc;

    pthread_mutex_lock(&file->lock);
    rc = position(file, at, whence);
    if (rc >= 0)
        file->offset = (uint64_t)rc;
    pthread_mutex_unlock(&file->lock);
    return rc;
}

INTERPOSE(off_t, lseek, (int fd, off_t at, int whence))
{
    struct handle *file = handle_get(fd);
    int64_t rc;

    if (!file)
        return REAL(lseek)(fd, at, whence);
    rc = handle_begin(file, O_RDWR);
    return handle_end(file, rc < 0 ? rc : seek(file, at, whence));
}
ALIAS(lseek64, lseek);

/* ---- Size ---------------------------------------------------------------------- */

INTERPOSE(int, ftruncate, (int fd, off_t size))
{
    const struct pmfs_attr values = {.size = (uint64_t)size};
    struct handle *file = handle_get(fd);
    struct pmfs *fs;
    int rc;

    if (!file)
        return REAL(ftruncate)(fd, size);
    if (size < 0)
        return (int)handle_refuse(file, EINVAL);
    rc = handle_begin(file, O_RDWR);
    if (rc == 0 && (file->type != S_IFREG || handle_check(file, O_WRONLY) < 0))
        rc = -EINVAL;
    if (rc == 0)
        rc = pool_get(&fs);
    if (rc == 0)
        rc = pmfs_setattr(fs, file->ino, &values, PMFS_SET_SIZE, NULL);
    return (int)handle_end(file, rc);
}
ALIAS(ftruncate64, ftruncate);

INTERPOSE(int, truncate, (const char *path, off_t size))
{
    const struct pmfs_attr values = {.size = (uint64_t)size};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, FOLLOW);

    if (at.is_host)
        return (int)place_host(&at, REAL(truncate)(at.path, size));
    if (size < 0)
        rc = -EINVAL;
    if (rc == 0)
        rc = pmfs_path_setattr(at.fs, at.at.parent, at.at.name, PMFS_PATH_NOFOLLOW,
                               &values, PMFS_SET_SIZE, NULL);
    return (int)place_end(&at, rc);
}
ALIAS(truncate64, truncate);

/* ---- Blocks -------------------------------------------------------------------- */

/* Is it one that the kernel asks a filesystem for? */
static bool is_fallocate_mode(int mode)
{
    const int kinds = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_COLLAPSE_RANGE |
                      FALLOC_FL_ZERO_RANGE | FALLOC_FL_INSERT_RANGE |
                      FALLOC_FL_UNSHARE_RANGE;
    bool keeps = mode & FALLOC_FL_KEEP_SIZE;

    if (mode & ~(kinds | FALLOC_FL_KEEP_SIZE))
        return false;
    switch (mode & kinds) {
    case 0:
    case FALLOC_FL_ZERO_RANGE:
    case FALLOC_FL_UNSHARE_RANGE:
        return true;
    case FALLOC_FL_PUNCH_HOLE:
        return keeps;
    case FALLOC_FL_COLLAPSE_RANGE:
    case FALLOC_FL_INSERT_RANGE:
        return !keeps;
    default:
        return false;
    }
}

INTERPOSE(int, fallocate, (int fd, int mode, off_t at, off_t size))
{
    struct handle *file = handle_get(fd);
    struct pmfs *fs;
    int rc;

    if (!file)
        return REAL(fallocate)(fd, mode, at, size);
    rc = handle_begin(file, O_RDWR);
    if (rc == 0 && (at < 0 || size <= 0))
        rc = -EINVAL;
    if (rc == 0 && !is_fallocate_mode(mode))
        rc = -EOPNOTSUPP;
    if (rc == 0)
        rc = handle_check(file, O_WRONLY);
    if (rc == 0)
        rc = pool_get(&fs);
    if (rc == 0)
        rc =
            pmfs_fallocate(fs, file->ino, (unsigned)mode, (uint64_t)at, (uint64_t)size);
    return (int)handle_end(file, rc);
}
ALIAS(fallocate64, fallocate);

/* Returns the errno. */
INTERPOSE(int, posix_fallocate, (int fd, off_t at, off_t size))
{
    int errnum = errno, rc;

    if (!fd_is_ours(fd))
        return REAL(posix_fallocate)(fd, at, size);
    rc = fallocate(fd, 0, at, size) < 0 ? errno : 0;
    errno = errnum;
    return rc;
}
ALIAS(posix_fallocate64, posix_fallocate);

/* ---- Nothing to do ------------------------------------------------------------- */

static int nothing(struct handle *file, int access)
{
    return (int)handle_end(file, handle_begin(file, access));
}

INTERPOSE(int, fsync, (int fd))
{
    struct handle *file = handle_get(fd);

    return file ? nothing(file, O_RDWR) : REAL(fsync)(fd);
}

INTERPOSE(int, fdatasync, (int fd))
{
    struct handle *file = handle_get(fd);

    return file ? nothing(file, O_RDWR) : REAL(fdatasync)(fd);
}

INTERPOSE(int, syncfs, (int fd))
{
    struct handle *file = handle_get(fd);

    return file ? nothing(file, O_RDWR) : REAL(syncfs)(fd);
}

INTERPOSE(int, sync_file_range, (int fd, off_t at, off_t size, unsigned flags))
{
    struct handle *file = handle_get(fd);

    return file ? nothing(file, O_RDWR) : REAL(sync_file_range)(fd, at, size, flags);
}

INTERPOSE(ssize_t, readahead, (int fd, off_t at, size_t size))
{
    struct handle *file = handle_get(fd);

    return file ? nothing(file, O_RDONLY) : REAL(readahead)(fd, at, size);
}

/* Returns the errno. */
INTERPOSE(int, posix_fadvise, (int fd, off_t at, off_t size, int advice))
{
    struct handle *file = handle_get(fd);
    int errnum = errno, rc;

    if (!file)
        return REAL(posix_fadvise)(fd, at, size, advice);
    rc = nothing(file, O_RDWR) < 0 ? errno : 0;
    if (rc == 0 &&
        (size < 0 || advice < POSIX_FADV_NORMAL || advice > POSIX_FADV_NOREUSE))
        rc = EINVAL;
    errno = errnum;
    return rc;
}
ALIAS(posix_fadvise64, posix_fadvise);

/* ---- Copying ------------------------------------------------------------------- */

enum { COPY_SIZE = 256 << 10 };

/* Bytes of a descriptor, ours or not, from `*at`; NULL: from where it stands. */
static ssize_t read_from(int fd, void *buffer, size_t size, const off_t *at)
{
    return at ? pread(fd, buffer, size, *at) : read(fd, buffer, size);
}

static ssize_t write_to(int fd, const void *buffer, size_t size, const off_t *at)
{
    return at ? pwrite(fd, buffer, size, *at) : write(fd, buffer, size);
}

/* Where less was written than read, goes back there. */
static void go_back(int fd, ssize_t size)
{
    if (size > 0)
        lseek(fd, -size, SEEK_CUR);
}

/* Returns what was copied, or -1 and errno. */
static ssize_t copy(int from, off_t *from_at, int to, off_t *to_at, size_t size)
{
    char *buffer = malloc(COPY_SIZE);
    size_t copied = 0;
    ssize_t written = 0;

    if (!buffer)
        return result(-ENOMEM);
    while (copied < size) {
        size_t want = size - copied < COPY_SIZE ? size - copied : COPY_SIZE;
        ssize_t got = read_from(from, buffer, want, from_at);

        written = got > 0 ? write_to(to, buffer, (size_t)got, to_at) : got;
        if (!from_at)
            go_back(from, got - (written > 0 ? written : 0));
        if (written <= 0)
            break;
        copied += (size_t)written;
        if (from_at)
            *from_at += written;
        if (to_at)
            *to_at += written;
        if (written < got || (size_t)got < want)
            break;
    }
    free(buffer);
    return copied || written == 0 ? (ssize_t)copied : -1;
}

static bool is_pipe(int fd)
{
    struct stat stat;

    return fstat(fd, &stat) == 0 && S_ISFIFO(stat.st_mode);
}

/* By the flags of a descriptor. */
static bool can_read(int flags)
{
    return !(flags & O_PATH) && (flags & O_ACCMODE) != O_WRONLY;
}

static bool can_write(int flags)
{
    return !(flags & O_PATH) && (flags & O_ACCMODE) != O_RDONLY;
}

/* What a pipe holds at most, of a size. */
static size_t limit_to_pipe(int pipe, size_t size)
{
    int capacity = fcntl(pipe, F_GETPIPE_SZ);

    return capacity > 0 && (size_t)capacity < size ? (size_t)capacity : size;
}

/* From a file of the kernel's, which has the bytes, into the pipe. */
static ssize_t splice_bytes(const void *bytes, size_t size, int to, unsigned flags)
{
    int file = memfd_create("pmfs-preload", MFD_CLOEXEC);
    ssize_t rc = file < 0 ? -1 : write(file, bytes, size);

    if (rc > 0)
        rc = REAL(splice)(file, &(off_t){0}, to, NULL, (size_t)rc, flags);
    if (file >= 0) {
        int errnum = errno;

        close(file);
        errno = errnum;
    }
    return rc;
}

/* As much as there is room for: a write(2) would wait until all is in. */
static ssize_t copy_to_pipe(int from, off_t *at, int to, size_t size, unsigned flags)
{
    char *buffer;
    ssize_t got, rc;

    size = limit_to_pipe(to, size);
    buffer = malloc(size + 1);
    if (!buffer)
        return result(-ENOMEM);
    got = rc = read_from(from, buffer, size, at);
    if (got > 0) {
        rc = splice_bytes(buffer, (size_t)got, to, flags);
        if (at)
            *at += rc > 0 ? rc : 0;
        else
            go_back(from, got - (rc > 0 ? rc : 0));
    }
    free(buffer);
    return rc;
}

/* Of what tee(2) has put into our pipe, writes `size` bytes. */
static ssize_t write_from_pipe(int pipe, int to, const off_t *at, size_t size)
{
    char *buffer = malloc(size);
    size_t got = 0;
    ssize_t rc = buffer ? 1 : result(-ENOMEM);

    while (rc > 0 && got < size) {
        rc = read(pipe, buffer + got, size - got);
        got += rc > 0 ? (size_t)rc : 0;
    }
    if (rc > 0)
        rc = write_to(to, buffer, got, at);
    free(buffer);
    return rc;
}

static void skip(int pipe, size_t size)
{
    char bytes[4096];

    while (size > 0) {
        ssize_t got = read(pipe, bytes, size < sizeof(bytes) ? size : sizeof(bytes));

        if (got <= 0)
            return;
        size -= (size_t)got;
    }
}

/* What cannot be written stays in the pipe: it is copied, and taken out afterwards. */
static ssize_t copy_from_pipe(int from, int to, off_t *at, size_t size, unsigned flags)
{
    int own[2];
    ssize_t rc;

    if (pipe2(own, O_CLOEXEC) < 0)
        return -1;
    fcntl(own[1], F_SETPIPE_SZ, fcntl(from, F_GETPIPE_SZ));
    rc = tee(from, own[1], limit_to_pipe(own[1], size), flags);
    if (rc > 0)
        rc = write_from_pipe(own[0], to, at, (size_t)rc);
    if (rc > 0) {
        skip(from, (size_t)rc);
        if (at)
            *at += rc;
    }

    int errnum = errno;

    close(own[0]);
    close(own[1]);
    errno = errnum;
    return rc;
}

INTERPOSE(ssize_t, sendfile, (int to, int from, off_t *at, size_t size))
{
    if (!fd_is_ours(to) && !fd_is_ours(from))
        return REAL(sendfile)(to, from, at, size);
    int from_flags = fcntl(from, F_GETFL);
    int to_flags = from_flags < 0 ? -1 : fcntl(to, F_GETFL);

    if (to_flags < 0)
        return -1;
    if (!can_read(from_flags))
        return result(-EBADF);
    if (at && *at < 0)
        return result(-EINVAL);
    if (!can_write(to_flags))
        return result(-EBADF);
    if (to_flags & O_APPEND)
        return result(-EINVAL);
    return is_pipe(to) ? copy_to_pipe(from, at, to, size, 0)
                       : copy(from, at, to, NULL, size);
}
ALIAS(sendfile64, sendfile);

static uint64_t offset_of(struct handle *file, const off_t *at)
{
    uint64_t offset;

    if (at)
        return (uint64_t)*at;
    pthread_mutex_lock(&file->lock);
    offset = file->offset;
    pthread_mutex_unlock(&file->lock);
    return offset;
}

static void advance(struct handle *file, off_t *at, uint64_t size)
{
    if (at) {
        *at += (off_t)size;
        return;
    }
    pthread_mutex_lock(&file->lock);
    file->offset += size;
    pthread_mutex_unlock(&file->lock);
}

static int check_copy(const struct handle *from, const off_t *from_at,
                      const struct handle *to, const off_t *to_at, unsigned flags)
{
    bool appends = __atomic_load_n(&to->flags, __ATOMIC_RELAXED) & O_APPEND;

    if (flags)
        return -EINVAL;
    if (from->type == S_IFDIR || to->type == S_IFDIR)
        return -EISDIR;
    if (handle_check(from, O_RDONLY) < 0 || handle_check(to, O_WRONLY) < 0 || appends)
        return -EBADF;
    return (from_at && *from_at < 0) || (to_at && *to_at < 0) ? -EINVAL : 0;
}

static ssize_t copy_range(struct handle *from, off_t *from_at, struct handle *to,
                          off_t *to_at, size_t size)
{
    uint64_t from_offset = offset_of(from, from_at), to_offset = offset_of(to, to_at);
    uint64_t copied = 0, done = 1;
    struct pmfs *fs;
    int rc = pool_get(&fs);

    while (rc == 0 && copied < size && done > 0) {
        rc = pmfs_copy_range(fs, from->ino, from_offset + copied, to->ino,
                             to_offset + copied, size - copied, &done);
        copied += rc == 0 ? done : 0;
    }
    advance(from, from_at, copied);
    advance(to, to_at, copied);
    return copied || rc == 0 ? (ssize_t)copied : rc;
}

INTERPOSE(ssize_t, copy_file_range,
          (int from_fd, off_t *from_at, int to_fd, off_t *to_at, size_t size,
           unsigned flags))
{
    struct handle *from = handle_get(from_fd), *to = handle_get(to_fd);
    ssize_t rc;

    if (!from || !to) {
        if (!from && !to)
            return REAL(copy_file_range)(from_fd, from_at, to_fd, to_at, size, flags);
        handle_put(from ? from : to);
        if (fcntl(from ? to_fd : from_fd, F_GETFL) < 0)
            return -1;
        return result(flags ? -EINVAL : -EXDEV);
    }
    rc = handle_begin(from, O_PATH);
    if (rc == 0)
        rc = check_copy(from, from_at, to, to_at, flags);
    if (rc == 0)
        rc = copy_range(from, from_at, to, to_at, size);
    handle_put(to);
    return handle_end(from, rc);
}

INTERPOSE(ssize_t, splice,
          (int from, off_t *from_at, int to, off_t *to_at, size_t size, unsigned flags))
{
    if (!fd_is_ours(to) && !fd_is_ours(from))
        return REAL(splice)(from, from_at, to, to_at, size, flags);

    const unsigned known =
        SPLICE_F_MOVE | SPLICE_F_NONBLOCK | SPLICE_F_MORE | SPLICE_F_GIFT;

    if (size == 0)
        return 0;
    if (flags & ~known)
        return result(-EINVAL);

    int from_flags = fcntl(from, F_GETFL);
    int to_flags = from_flags < 0 ? -1 : fcntl(to, F_GETFL);

    if (to_flags < 0)
        return -1;
    if (!can_read(from_flags) || !can_write(to_flags))
        return result(-EBADF);
    if (is_pipe(from)) {
        if (from_at)
            return result(-ESPIPE);
        return to_flags & O_APPEND ? result(-EINVAL)
                                   : copy_from_pipe(from, to, to_at, size, flags);
    }
    if (!is_pipe(to))
        return result(-EINVAL);
    return to_at ? result(-ESPIPE) : copy_to_pipe(from, from_at, to, size, flags);
}
