/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preload.h - libpmfs-preload.so: runs a program that knows nothing of pmfs on files
 * below a prefix, which are in a pool, without a mount and without the kernel.
 *
 * It stands between the program and libc: a call that it defines comes here first, and
 * goes on to libc (REAL) if neither a path nor a descriptor in it is ours.
 *
 *   process.c   the pool, mounted by the first call that needs it; fork, exec
 *   path.c      which paths are ours; the current directory, realpath
 *   fd.c        descriptors: dup, close, fcntl, locks
 *   file.c      open, read, write
 *   space.c     lseek, sizes, copying, fsync
 *   attr.c      stat, access, modes, owners, times, statfs
 *   xattr.c     extended attributes
 *   name.c      mkdir, link, rename, unlink, temporary names
 *   dir.c       opendir and its kin
 *   walk.c      scandir, glob, ftw
 *   stdio.c     fopen, fdopen, freopen
 *   wide.c      fgetwc, fputws, fwprintf and their kin
 *   map.c       mmap
 *   syscall.c   syscall
 *
 * To find where a call is: grep "INTERPOSE(.*, call," or "ALIAS(call,". What is not
 * there goes to libc.
 */
#ifndef PMFS_PRELOAD_H
#define PMFS_PRELOAD_H

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "include/pmfs.h"

/* ---- Standing in between ------------------------------------------------------- */

/* Starts the definition of the call `name`. */
#define INTERPOSE(type, name, params)                                                  \
    type name params;                                                                  \
    __attribute__((visibility("default"))) type name params

/* `alias` is another name of the call `name`, defined in the same file. */
#define ALIAS(alias, name) __asm__(".globl " #alias "\n\t.set " #alias ", " #name "\n")

/* libc's function of this name. */
#define REAL(name)                                                                     \
    __extension__({                                                                    \
        static void *found_;                                                           \
        void *next_ = __atomic_load_n(&found_, __ATOMIC_ACQUIRE);                      \
        (__typeof__(name) *)(next_ ? next_ : real_find(&found_, #name));               \
    })

void *real_find(void **found, const char *name);

/* What a call returns for `rc`, which is a result or a negative errno. */
static inline long result(long rc)
{
    if (rc >= 0)
        return rc;
    errno = (int)-rc;
    return -1;
}

/* ---- process.c ----------------------------------------------------------------- */

struct config {
    const char *prefix; /* as "/mnt/pmfs"; NULL: nothing is ours */
    const char *last;   /* its last component */
    size_t prefix_size;
    size_t above_size; /* of what comes before the last component, without slash */
    const char *pool;
};

const struct config *config_get(void);

/* The filesystem, mounted when first asked for. A negative errno, and says so once. */
int pool_get(struct pmfs **fs);

/*
 * The library opens the pool's file by open(), which gives it here to be moved out of
 * the way. Once the pool is mounted the program can neither close nor replace
 * pool_fd(); before it is -1.
 */
bool pool_is_opening(const char *path);
int pool_keep_fd(int fd);
int pool_fd(void);

bool process_is_child(void);

/* -ENOTCONN in a child of the process that mounted the pool, and says so once. */
int process_check(void);

/*
 * Around what a call does in the filesystem. -EDEADLK, and says so once, if a signal
 * interrupted another such call of this thread: it may hold a lock.
 */
int call_begin(void);
void call_end(void);

/* Says something on standard error, the first time only. */
enum notice {
    NOTICE_MOUNT,
    NOTICE_CHILD,
    NOTICE_EXEC,
    NOTICE_SIGNAL,
    NOTICE_MAP,
    NOTICE_STREAM,
    NOTICE_SCAN,
    NOTICE_PROC,
    NOTICES
};
__attribute__((format(printf, 2, 3))) void say_once(enum notice notice,
                                                    const char *format, ...);

/* Whom what the program makes belongs to, and its umask. */
struct pmfs_cred cred_get(void);

/* ---- fd.c ---------------------------------------------------------------------- */

/* What open(2) made, one or more descriptors name it. */
struct handle {
    uint32_t users; /* atomic: descriptors, and calls under way; 0: free */
    uint32_t type;  /* S_IFMT part of the mode */
    uint64_t ino;   /* open */
    int flags;      /* atomic: access mode and status, as F_GETFL */
    pthread_mutex_t lock;
    uint64_t offset; /* of the lock; of a directory a cookie */
    /* Of locks in fd.c. */
    int flock; /* LOCK_SH, LOCK_EX, or 0 */
    struct handle *flock_next;
    struct handle *free_next;
};

#define FD_MAX (1 << 20) /* descriptors are below this */

/* As a descriptor: the current directory. */
#define FD_CWD FD_MAX

/*
 * The file of a descriptor, or NULL if it is not ours. AT_FDCWD is the current
 * directory. handle_put() must follow.
 */
struct handle *handle_get(int fd);
void handle_put(struct handle *file);

extern struct handle *fd_slots[FD_MAX + 1]; /* atomic */

static inline bool fd_is_ours(int fd)
{
    return fd >= 0 && fd <= FD_MAX && __atomic_load_n(&fd_slots[fd], __ATOMIC_ACQUIRE);
}

/* A descriptor for the open inode `ino`, which it takes over: released on errors. */
int fd_open(uint64_t ino, uint32_t type, int flags);

/* A descriptor for the file of another one, with flags of its own. */
int fd_open_again(const struct handle *file, int flags);

/* Makes it the current directory, as fd_open(). 0: that is the host's. */
int fd_set_cwd(uint64_t ino);
/* The same of an open directory. */
void fd_set_cwd_file(struct handle *file);

/*
 * Begins a call on a file: 0, or why it cannot be. `access` is O_RDONLY or O_WRONLY, to
 * read or write; O_RDWR for either; O_PATH for what any descriptor can. handle_end()
 * must follow in any case, with how it went: returns what the call does.
 */
int handle_begin(const struct handle *file, int access);
int handle_check(const struct handle *file, int access); /* without beginning one */
long handle_end(struct handle *file, long rc);
/* Instead of both: the call fails whatever the file is. */
long handle_refuse(struct handle *file, int errnum);

/* ---- path.c -------------------------------------------------------------------- */

enum follow {
    FOLLOW,       /* symbolic links, to the end */
    NOFOLLOW,     /* not one at the end, unless a slash comes after it */
    FOLLOW_NEVER, /* nor then: the name itself is meant */
};

/* Where a path of a call leads. */
struct place {
    bool is_host; /* to libc, as `dir` and `path`; else `at` is in `fs` */
    int dir;
    const char *path;
    struct pmfs *fs;
    struct pmfs_place at;
    char *text; /* what `path` points into, or NULL */
    bool begun; /* call_begin() */
};

/*
 * The file of ours that a path as /proc/self/fd/N or /dev/stdin names, of which the kernel
 * has only what stands for it; else NULL. handle_put() must follow.
 */
struct handle *handle_of_path(const char *path);

/* Finds it, and begins a call if it is ours; place_end() must follow. 0 or an errno. */
int place_find(struct place *place, int dir, const char *path, enum follow follow);
/*
 * Does it lead to libc? Then place_host() must follow. Else it is ours, though it may
 * not exist, and there is nothing to end.
 */
bool place_to_host(struct place *place, int dir, const char *path);
/* The second of a call on two names; placed after, and ended before, the first. */
int place_find_second(struct place *place, const struct place *first, int dir,
                      const char *path);
/* Frees it; `rc` is how the call went. Returns what the call does. */
long place_end(struct place *place, long rc);
/* Frees it after a call of libc; returns `rc`, which that has returned. */
long place_host(struct place *place, long rc);

/* The path of the open directory `ino` as the program sees it, allocated. */
int path_of_directory(struct pmfs *fs, uint64_t ino, char **path);

/* ---- wide.c --------------------------------------------------------------------- */

/* What a stream knows of wide characters, of that codeset; NULL and errno: it cannot. */
struct wide;
struct wide *wide_new_of(const char *codeset);
void wide_free(struct wide *wide);

/* ---- file.c, stdio.c ----------------------------------------------------------- */

ssize_t handle_read_at(const struct handle *file, void *buffer, size_t size,
                       uint64_t at);

/* A standard descriptor is about to name something else, and has come to. */
void stdio_flush(int fd);
void stdio_follow(int fd);

/* Where a stream of ours has its struct wide, NULL until it is oriented; else NULL. */
struct wide **stdio_wide(FILE *stream);

/* Around fork(2). */
void stdio_lock(void);
void stdio_unlock(void);

#endif
