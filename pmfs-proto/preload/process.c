/* SPDX-License-Identifier: BSD-3-Clause */
/* process.c - one process has the pool: it mounts it, its children do not get it. */
#include "pmfs-proto/preload/preload.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

void *real_find(void **found, const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);

    if (!function)
        abort(); /* libc does not have what its headers declare */
    __atomic_store_n(found, function, __ATOMIC_RELEASE);
    return function;
}

void say_once(enum notice notice, const char *format, ...)
{
    static bool said[NOTICES];
    char text[512] = "pmfs-preload: ";
    size_t size = strlen(text);
    int errnum = errno;
    va_list args;

    if (__atomic_exchange_n(&said[notice], true, __ATOMIC_RELAXED))
        return;
    va_start(args, format);
    vsnprintf(text + size, sizeof(text) - size - 1, format, args);
    va_end(args);
    size = strlen(text);
    text[size++] = '\n';
    if (REAL(write)(STDERR_FILENO, text, size) < 0)
        errno = errnum; /* nobody can be told */
    errno = errnum;
}

/* ---- Configuration ------------------------------------------------------------- */

static struct config config;
static mode_t current_umask;

/* PREFIX=POOL; the text lives as long as the process. */
static const char *parse(char *text)
{
    char *equals = text ? strchr(text, '=') : NULL;
    size_t size;

    if (!equals || text[0] != '/' || equals[1] != '/')
        return "PMFS_PRELOAD must be PREFIX=POOL, both absolute paths";
    *equals = 0;
    for (size = strlen(text); size > 1 && text[size - 1] == '/';)
        text[--size] = 0;
    if (size < 2 || strstr(text, "//") || strstr(text, "/."))
        return "PREFIX must be a plain path below /";
    if (strncmp(equals + 1, text, size) == 0 &&
        (equals[1 + size] == '/' || equals[1 + size] == 0))
        return "POOL must not be below PREFIX";
    config.last = strrchr(text, '/') + 1;
    config.above_size = (size_t)(config.last - text) - 1;
    config.prefix_size = size;
    config.pool = equals + 1;
    __atomic_store_n(&config.prefix, text, __ATOMIC_RELEASE);
    return NULL;
}

static void configure(void)
{
    const char *value = getenv("PMFS_PRELOAD");
    char *text = value ? strdup(value) : NULL;
    const char *wrong = value ? parse(text) : "PMFS_PRELOAD is not set";

    if (wrong) {
        say_once(NOTICE_MOUNT, "%s; no path is taken for pmfs", wrong);
        free(text);
    }
    current_umask = REAL(umask)(0);
    REAL(umask)(current_umask);
}

static pthread_once_t configured = PTHREAD_ONCE_INIT;

const struct config *config_get(void)
{
    /* Constructors of other libraries may call before ours. */
    if (!__atomic_load_n(&config.prefix, __ATOMIC_ACQUIRE))
        pthread_once(&configured, configure);
    return &config;
}

INTERPOSE(mode_t, umask, (mode_t mask))
{
    config_get();
    __atomic_store_n(&current_umask, mask & 0777, __ATOMIC_RELAXED);
    return REAL(umask)(mask);
}

struct pmfs_cred cred_get(void)
{
    return (struct pmfs_cred){
        .uid = geteuid(),
        .gid = getegid(),
        .umask = __atomic_load_n(&current_umask, __ATOMIC_RELAXED),
    };
}

/* ---- The pool ------------------------------------------------------------------ */

static struct pmfs *mounted; /* atomic */
static pthread_mutex_t mount_lock = PTHREAD_MUTEX_INITIALIZER;
static int kept_fd = -1;
static bool is_child;
static _Thread_local bool mounting;

bool pool_is_opening(const char *path)
{
    return mounting && strcmp(path, config.pool) == 0;
}

int pool_keep_fd(int fd)
{
    enum { OUT_OF_THE_WAY = 900 };
    int high = fd < 0 ? -1 : REAL(fcntl)(fd, F_DUPFD_CLOEXEC, OUT_OF_THE_WAY);

    if (high >= 0) {
        REAL(close)(fd);
        fd = high;
    }
    __atomic_store_n(&kept_fd, fd, __ATOMIC_RELAXED);
    return fd;
}

int pool_fd(void)
{
    return mounting ? -1 : __atomic_load_n(&kept_fd, __ATOMIC_RELAXED);
}

static int refuse_mount(int rc)
{
    if (rc == -EBUSY) {
        say_once(NOTICE_MOUNT,
                 "%s is in use. One process has a pool: for several, use pmfs mount",
                 config.pool);
        return -EBUSY;
    }
    say_once(NOTICE_MOUNT, "cannot mount %s: %s", config.pool, pmfs_errormsg());
    return -ENOTCONN;
}

/* Runs in the child: its copy of the lock on the pool must not outlive the parent. */
static void become_child(void)
{
    stdio_unlock();
    is_child = true;
    if (kept_fd >= 0)
        REAL(close)(kept_fd);
    kept_fd = -1;
}

static int mount_pool(void)
{
    struct pmfs *fs;
    int rc = 0;

    pthread_mutex_lock(&mount_lock);
    if (!mounted) {
        mounting = true;
        rc = pmfs_mount(config.pool, NULL, &fs);
        mounting = false;
        if (rc == 0) {
            pthread_atfork(stdio_lock, stdio_unlock, become_child);
            __atomic_store_n(&mounted, fs, __ATOMIC_RELEASE);
        } else {
            kept_fd = -1;
            rc = refuse_mount(rc);
        }
    }
    pthread_mutex_unlock(&mount_lock);
    return rc;
}

bool process_is_child(void)
{
    return is_child;
}

int process_check(void)
{
    if (!is_child)
        return 0;
    say_once(NOTICE_CHILD,
             "a child of the process that has %s must not use it: for "
             "several processes, use pmfs mount",
             config.pool);
    return -ENOTCONN;
}

int pool_get(struct pmfs **fs)
{
    int rc = process_check();

    if (rc == 0 && !__atomic_load_n(&mounted, __ATOMIC_ACQUIRE))
        rc = mount_pool();
    *fs = mounted;
    return rc;
}

/* ---- Calls --------------------------------------------------------------------- */

static _Thread_local bool is_calling;

int call_begin(void)
{
    if (is_calling) {
        say_once(NOTICE_SIGNAL,
                 "a signal handler interrupted a call on %s and must "
                 "not make another",
                 config.prefix);
        return -EDEADLK;
    }
    is_calling = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return 0;
}

void call_end(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    is_calling = false;
}

/* ---- Children and programs ----------------------------------------------------- */

/* A child that shares our memory would change our table of descriptors. */
INTERPOSE(pid_t, vfork, (void))
{
    return fork();
}

/* Runs no handlers, and so its child would not know that it is one. */
INTERPOSE(pid_t, _Fork, (void))
{
    return fork();
}

/* The kernel cannot run what it cannot see. */
static int refuse_to_run(void)
{
    say_once(NOTICE_EXEC, "programs below %s cannot be run", config.prefix);
    errno = EACCES;
    return -1;
}

INTERPOSE(int, execve, (const char *path, char *const argv[], char *const envp[]))
{
    struct place at;

    return place_to_host(&at, AT_FDCWD, path)
               ? (int)place_host(&at, REAL(execve)(at.path, argv, envp))
               : refuse_to_run();
}

INTERPOSE(int, execv, (const char *path, char *const argv[]))
{
    return execve(path, argv, environ);
}

INTERPOSE(int, fexecve, (int fd, char *const argv[], char *const envp[]))
{
    return fd_is_ours(fd) ? refuse_to_run() : REAL(fexecve)(fd, argv, envp);
}

/*
 * What stands for a file of ours in the kernel is neither readable nor writable, so a
 * program that inherits it fails and does not lose what it writes. Tells it why.
 */
static bool is_placeholder(int fd)
{
    struct stat stat;
    int flags = REAL(fcntl)(fd, F_GETFL);

    return flags >= 0 && (flags & O_ACCMODE) == O_ACCMODE &&
           REAL(fstat)(fd, &stat) == 0 && S_ISCHR(stat.st_mode) &&
           stat.st_rdev == makedev(1, 3);
}

__attribute__((constructor)) static void look_at_inherited(void)
{
    if (!config_get()->prefix)
        return;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (is_placeholder(fd))
            say_once(NOTICE_EXEC,
                     "descriptor %d was a file below %s in the process "
                     "before exec, and is lost: use pmfs mount",
                     fd, config.prefix);
}
