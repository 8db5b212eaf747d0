/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fd.c - descriptors. Each of ours is a real one, so that its number is nobody else's:
 * /dev/null, opened neither to read nor to write. What it stands for is in fd_slots.
 */
#include "pmfs-proto/preload/preload.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files --------------------------------------------------------------------- */

/* Memory of handles is used for handles only: handle_get() may look at a freed one. */
static struct handle *free_files;
static pthread_mutex_t free_lock = PTHREAD_MUTEX_INITIALIZER;

static void release(uint64_t ino)
{
    struct pmfs *fs;

    if (pool_get(&fs) == 0)
        pmfs_release(fs, ino);
}

/* NULL, and the inode is released, without memory. */
static struct handle *handle_new(uint64_t ino, uint32_t type, int flags)
{
    struct handle *file;

    pthread_mutex_lock(&free_lock);
    file = free_files;
    if (file)
        free_files = file->free_next;
    pthread_mutex_unlock(&free_lock);
    if (!file) {
        file = calloc(1, sizeof(*file));
        if (!file) {
            release(ino);
            return NULL;
        }
        pthread_mutex_init(&file->lock, NULL);
    }
    file->ino = ino;
    file->type = type;
    file->flags = flags;
    file->offset = 0;
    __atomic_store_n(&file->users, 1, __ATOMIC_RELEASE);
    return file;
}

static void unlock_flock(struct handle *file);

static void handle_free(struct handle *file)
{
    /* The parent goes on with it; and another thread may have held these locks. */
    if (process_is_child())
        return;
    unlock_flock(file);
    release(file->ino);
    pthread_mutex_lock(&free_lock);
    file->free_next = free_files;
    free_files = file;
    pthread_mutex_unlock(&free_lock);
}

void handle_put(struct handle *file)
{
    if (file && __atomic_sub_fetch(&file->users, 1, __ATOMIC_ACQ_REL) == 0)
        handle_free(file);
}

static void handle_hold(struct handle *file)
{
    __atomic_add_fetch(&file->users, 1, __ATOMIC_RELAXED);
}

/* ---- Slots --------------------------------------------------------------------- */

struct handle *fd_slots[FD_MAX + 1];
static int highest; /* descriptor that was ever ours; atomic */

struct handle *handle_get(int fd)
{
    if (fd == AT_FDCWD)
        fd = FD_CWD;
    if (fd < 0 || fd > FD_MAX)
        return NULL;
    for (;;) {
        struct handle *file = __atomic_load_n(&fd_slots[fd], __ATOMIC_ACQUIRE);

        if (!file)
            return NULL;

        uint32_t users = __atomic_load_n(&file->users, __ATOMIC_RELAXED);

        if (users == 0 ||
            !__atomic_compare_exchange_n(&file->users, &users, users + 1, false,
                                         __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            continue;
        if (__atomic_load_n(&fd_slots[fd], __ATOMIC_ACQUIRE) == file)
            return file;
        handle_put(file); /* it was closed, and is something else's by now */
    }
}

/* Gives the slot a file, which it holds, or NULL; lets go of what it had. */
static void set_slot(int fd, struct handle *file)
{
    int before = __atomic_load_n(&highest, __ATOMIC_RELAXED);

    while (fd < FD_MAX && fd > before &&
           !__atomic_compare_exchange_n(&highest, &before, fd, false, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED))
        ;
    handle_put(__atomic_exchange_n(&fd_slots[fd], file, __ATOMIC_ACQ_REL));
}

/* Makes the new descriptor `fd` name `file`, which it then holds. */
static long add_slot(int fd, struct handle *file)
{
    if (fd < 0)
        return -errno;
    if (fd >= FD_MAX) {
        REAL(close)(fd);
        return -EMFILE;
    }
    handle_hold(file);
    set_slot(fd, file);
    return fd;
}

int fd_open(uint64_t ino, uint32_t type, int flags)
{
    enum { KERNELS_O_LARGEFILE = 0100000 }; /* that of the headers is 0 */
    int kept = (flags & ~O_CLOEXEC) | (flags & O_PATH ? 0 : KERNELS_O_LARGEFILE);
    struct handle *file = handle_new(ino, type, kept);
    long fd;

    if (!file)
        return -ENOMEM;
    fd = add_slot(REAL(open)("/dev/null", O_ACCMODE | (flags & O_CLOEXEC)), file);
    handle_put(file);
    return (int)fd;
}

int fd_open_again(const struct handle *file, int flags)
{
    const struct pmfs_attr empty = {.size = 0};
    const int to_write = O_CREAT | O_TRUNC;
    struct pmfs *fs;
    int rc = pool_get(&fs);

    if (rc == 0 && flags & O_DIRECTORY && file->type != S_IFDIR)
        rc = -ENOTDIR;
    if (rc == 0 && file->type == S_IFDIR &&
        ((flags & O_ACCMODE) != O_RDONLY || flags & to_write))
        rc = -EISDIR;
    if (rc == 0)
        rc = pmfs_open(fs, file->ino);
    if (rc < 0)
        return rc;
    if (flags & O_TRUNC)
        rc = pmfs_setattr(fs, file->ino, &empty, PMFS_SET_SIZE, NULL);
    if (rc < 0) {
        pmfs_release(fs, file->ino);
        return rc;
    }
    return fd_open(file->ino, file->type, flags & ~(to_write | O_EXCL | O_NOCTTY));
}

int fd_set_cwd(uint64_t ino)
{
    struct handle *file = ino ? handle_new(ino, S_IFDIR, O_PATH) : NULL;

    if (ino && !file)
        return -ENOMEM;
    set_slot(FD_CWD, file);
    return 0;
}

void fd_set_cwd_file(struct handle *file)
{
    handle_hold(file);
    set_slot(FD_CWD, file);
}

/* ---- Calls on a file ----------------------------------------------------------- */

int handle_check(const struct handle *file, int access)
{
    int flags = __atomic_load_n(&file->flags, __ATOMIC_RELAXED);

    if (access == O_PATH)
        return 0;
    if (flags & O_PATH)
        return -EBADF;
    flags &= O_ACCMODE;
    return access == O_RDWR || flags == O_RDWR || flags == access ? 0 : -EBADF;
}

int handle_begin(const struct handle *file, int access)
{
    int rc = call_begin();

    if (rc == 0)
        rc = process_check();
    return rc < 0 ? rc : handle_check(file, access);
}

long handle_end(struct handle *file, long rc)
{
    handle_put(file);
    if (rc != -EDEADLK) /* then call_begin() had failed */
        call_end();
    return result(rc);
}

long handle_refuse(struct handle *file, int errnum)
{
    handle_put(file);
    return result(-errnum);
}

static bool is_pool_fd(int fd)
{
    return fd >= 0 && fd == pool_fd();
}

/* ---- Duplicating --------------------------------------------------------------- */

INTERPOSE(int, dup, (int fd))
{
    struct handle *file = handle_get(fd);

    if (!file)
        return REAL(dup)(fd);

    long rc = add_slot(REAL(dup)(fd), file);

    handle_put(file);
    return (int)result(rc);
}

static int replace(int fd, int new_fd, int flags)
{
    struct handle *file;
    bool is_standard = new_fd >= 0 && new_fd <= STDERR_FILENO;
    int rc;

    if (is_pool_fd(fd) || is_pool_fd(new_fd))
        return (int)result(-EBADF);
    file = handle_get(fd);
    if (!file && !fd_is_ours(new_fd))
        return REAL(dup3)(fd, new_fd, flags);
    if (is_standard)
        stdio_flush(new_fd);
    rc = new_fd < FD_MAX ? REAL(dup3)(fd, new_fd, flags) : (int)result(-EBADF);
    if (rc >= 0) {
        int errnum = errno;

        if (file)
            handle_hold(file);
        set_slot(new_fd, file);
        if (is_standard)
            stdio_follow(new_fd);
        errno = errnum;
    }
    handle_put(file);
    return rc;
}

INTERPOSE(int, dup2, (int fd, int new_fd))
{
    return fd == new_fd ? REAL(dup2)(fd, new_fd) : replace(fd, new_fd, 0);
}

INTERPOSE(int, dup3, (int fd, int new_fd, int flags))
{
    return fd == new_fd ? REAL(dup3)(fd, new_fd, flags) : replace(fd, new_fd, flags);
}

/* ---- Closing ------------------------------------------------------------------- */

INTERPOSE(int, close, (int fd))
{
    int rc;

    if (!fd_is_ours(fd) || fd == FD_CWD)
        return is_pool_fd(fd) ? (int)result(-EBADF) : REAL(close)(fd);
    rc = call_begin();
    if (rc < 0)
        return (int)result(rc);

    /* First ours: once the number is free, another thread may get it. */
    struct handle *file = __atomic_exchange_n(&fd_slots[fd], NULL, __ATOMIC_ACQ_REL);

    rc = REAL(close)(fd);
    handle_put(file);
    call_end();
    if (fd <= STDERR_FILENO)
        stdio_follow(fd);
    return rc;
}

/* The kernel's part, but for the pool's own descriptor. */
static int close_others(unsigned first, unsigned last, int flags)
{
    int own = pool_fd();
    unsigned between = (unsigned)own;
    int rc = 0;

    if (own < 0 || between < first || between > last)
        return REAL(close_range)(first, last, flags);
    if (between > first)
        rc = REAL(close_range)(first, between - 1, flags);
    if (rc == 0 && between < last)
        rc = REAL(close_range)(between + 1, last, flags);
    return rc;
}

INTERPOSE(int, close_range, (unsigned first, unsigned last, int flags))
{
    unsigned end = (unsigned)__atomic_load_n(&highest, __ATOMIC_RELAXED);

    if (first <= last && !(flags & (int)CLOSE_RANGE_CLOEXEC))
        for (unsigned fd = first; fd <= last && fd <= end; fd++)
            if (fd_is_ours((int)fd))
                close((int)fd);
    return close_others(first, last, flags);
}

INTERPOSE(void, closefrom, (int first))
{
    close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0);
}

/* ---- flock --------------------------------------------------------------------- */

static struct handle *locked_files; /* by flock(2) */
static pthread_mutex_t flock_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t flock_released = PTHREAD_COND_INITIALIZER;

static void remove_locked(struct handle *file)
{
    struct handle **link = &locked_files;

    while (*link && *link != file)
        link = &(*link)->flock_next;
    if (*link)
        *link = file->flock_next;
    file->flock = 0;
}

static void unlock_flock(struct handle *file)
{
    pthread_mutex_lock(&flock_mutex);
    if (file->flock) {
        remove_locked(file);
        pthread_cond_broadcast(&flock_released);
    }
    pthread_mutex_unlock(&flock_mutex);
}

static bool conflicts(const struct handle *file, int kind)
{
    for (const struct handle *other = locked_files; other; other = other->flock_next)
        if (other != file && other->ino == file->ino &&
            (kind == LOCK_EX || other->flock == LOCK_EX))
            return true;
    return false;
}

/* As the kernel: to change a lock is to give it up first. */
static int lock_flock(struct handle *file, int kind, bool wait)
{
    int rc = 0;

    pthread_mutex_lock(&flock_mutex);
    remove_locked(file);
    pthread_cond_broadcast(&flock_released);
    while (conflicts(file, kind) && wait)
        pthread_cond_wait(&flock_released, &flock_mutex);
    if (conflicts(file, kind)) {
        rc = -EWOULDBLOCK;
    } else {
        file->flock = kind;
        file->flock_next = locked_files;
        locked_files = file;
    }
    pthread_mutex_unlock(&flock_mutex);
    return rc;
}

INTERPOSE(int, flock, (int fd, int operation))
{
    struct handle *file = handle_get(fd);
    int kind = operation & ~LOCK_NB;
    int rc;

    if (!file)
        return REAL(flock)(fd, operation);
    rc = handle_begin(file, O_RDWR);
    if (rc == 0 && kind == LOCK_UN)
        unlock_flock(file);
    else if (rc == 0 && (kind == LOCK_SH || kind == LOCK_EX))
        rc = lock_flock(file, kind, !(operation & LOCK_NB));
    else if (rc == 0)
        rc = -EINVAL;
    return (int)handle_end(file, rc);
}

/* ---- fcntl --------------------------------------------------------------------- */

/* A process does not stand in its own way, and there is no other one. */
static int record_lock(const struct handle *file, int command, struct flock *lock)
{
    int access = lock->l_type == F_RDLCK   ? O_RDONLY
                 : lock->l_type == F_WRLCK ? O_WRONLY
                                           : O_RDWR;

    if (lock->l_type != F_RDLCK && lock->l_type != F_WRLCK && lock->l_type != F_UNLCK)
        return -EINVAL;
    if (lock->l_whence < SEEK_SET || lock->l_whence > SEEK_END)
        return -EINVAL;
    if (command == F_GETLK) {
        lock->l_type = F_UNLCK;
        return 0;
    }
    return handle_check(file, access);
}

static int set_flags(struct handle *file, int flags)
{
    const int settable = O_APPEND | O_ASYNC | O_DIRECT | O_NOATIME | O_NONBLOCK;
    int before = __atomic_load_n(&file->flags, __ATOMIC_RELAXED);

    __atomic_store_n(&file->flags, (before & ~settable) | (flags & settable),
                     __ATOMIC_RELAXED);
    return 0;
}

/* Files have nothing to signal: the kernel keeps what is set. */
static long control_signals(const struct handle *file, int fd, int command,
                            void *argument)
{
    int rc = handle_check(file, O_RDWR);

    if (rc < 0)
        return rc;
    rc = REAL(fcntl)(fd, command, argument);
    return rc < 0 ? -errno : rc;
}

static long control(struct handle *file, int fd, int command, void *argument)
{
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC:
        return add_slot(REAL(fcntl)(fd, command, argument), file);
    case F_GETFD:
    case F_SETFD: {
        int rc = REAL(fcntl)(fd, command, argument);

        return rc < 0 ? -errno : rc;
    }
    case F_GETFL:
        return __atomic_load_n(&file->flags, __ATOMIC_RELAXED);
    case F_SETFL:
        return set_flags(file, (int)(intptr_t)argument);
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW:
        return record_lock(file, command, argument);
    case F_GETOWN:
    case F_SETOWN:
    case F_GETOWN_EX:
    case F_SETOWN_EX:
    case F_GETSIG:
    case F_SETSIG:
        return control_signals(file, fd, command, argument);
    case F_GETPIPE_SZ:
    case F_SETPIPE_SZ:
        return -EBADF;
    default:
        return -EINVAL;
    }
}

INTERPOSE(int, fcntl, (int fd, int command, ...))
{
    struct handle *file = handle_get(fd);
    void *argument;
    va_list args;
    long rc;

    va_start(args, command);
    argument = va_arg(args, void *);
    va_end(args);
    if (!file)
        return REAL(fcntl)(fd, command, argument);
    /* What a child does to get rid of descriptors is its right. */
    if (process_is_child() && command <= F_SETFD) {
        rc = control(file, fd, command, argument);
        handle_put(file);
        return (int)result(rc);
    }
    rc = handle_begin(file, O_PATH);
    if (rc == 0 && command == F_GETOWN && handle_check(file, O_RDWR) == 0) {
        handle_end(file, 0);
        return REAL(fcntl)(fd, command); /* a group is negative, and no error */
    }
    if (rc == 0)
        rc = control(file, fd, command, argument);
    return (int)handle_end(file, rc);
}
ALIAS(fcntl64, fcntl);

INTERPOSE(int, lockf, (int fd, int command, off_t size))
{
    struct flock lock = {.l_whence = SEEK_CUR, .l_len = size};

    if (!fd_is_ours(fd))
        return REAL(lockf)(fd, command, size);
    lock.l_type = command == F_ULOCK ? F_UNLCK : F_WRLCK;
    if (command == F_TEST)
        return fcntl(fd, F_GETLK, &lock);
    if (command != F_ULOCK && command != F_LOCK && command != F_TLOCK)
        return (int)result(-EINVAL);
    return fcntl(fd, F_SETLK, &lock);
}
ALIAS(lockf64, lockf);

/* ---- ioctl --------------------------------------------------------------------- */

static int attr_of(const struct handle *file, struct pmfs_attr *attr)
{
    struct pmfs *fs;
    int rc = pool_get(&fs);

    return rc < 0 ? rc : pmfs_getattr(fs, file->ino, attr);
}

static int bytes_to_read(struct handle *file, int *count)
{
    struct pmfs_attr attr;
    int rc = file->type == S_IFREG ? attr_of(file, &attr) : -ENOTTY;

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&file->lock);
    *count = (int)(int64_t)(attr.size - file->offset);
    pthread_mutex_unlock(&file->lock);
    return 0;
}

static int block_size_of(const struct handle *file, int *size)
{
    struct pmfs_attr attr;
    int rc = attr_of(file, &attr);

    if (rc == 0)
        *size = (int)attr.block_size;
    return rc;
}

/* FIOQSIZE: what is allocated. */
static int space_of(const struct handle *file, int64_t *size)
{
    struct pmfs_attr attr;
    int rc = attr_of(file, &attr);

    if (rc == 0)
        *size = (int64_t)attr.blocks * 512;
    return rc;
}

/* As F_SETFL with one flag more or less. */
static int set_flag(struct handle *file, int flag, bool on)
{
    int before = __atomic_load_n(&file->flags, __ATOMIC_RELAXED);

    return set_flags(file, on ? before | flag : before & ~flag);
}

static int control_device(struct handle *file, int fd, unsigned long request,
                          void *argument)
{
    switch (request) {
    case FIOCLEX:
    case FIONCLEX:
        return REAL(ioctl)(fd, request) < 0 ? -errno : 0;
    case FIONREAD:
        return bytes_to_read(file, argument);
    case FIONBIO:
        return set_flag(file, O_NONBLOCK, *(int *)argument);
    case FIGETBSZ:
        return block_size_of(file, argument);
    case FIOQSIZE:
        return space_of(file, argument);
    case FIBMAP:
        return file->type == S_IFREG ? -EINVAL : -ENOTTY;
    case FICLONE:
    case FICLONERANGE:
    case FIDEDUPERANGE:
        return file->type == S_IFDIR ? -EISDIR : -EOPNOTSUPP;
    case FS_IOC_FIEMAP:
        return -EOPNOTSUPP;
    default:
        return -ENOTTY;
    }
}

INTERPOSE(int, ioctl, (int fd, unsigned long request, ...))
{
    struct handle *file = handle_get(fd);
    void *argument;
    va_list args;
    int rc;

    va_start(args, request);
    argument = va_arg(args, void *);
    va_end(args);
    if (!file)
        return REAL(ioctl)(fd, request, argument);
    rc = handle_begin(file, O_RDWR);
    if (rc == 0)
        rc = control_device(file, fd, request, argument);
    return (int)handle_end(file, rc);
}
