/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/fuse/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <fuse3/fuse_lowlevel.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include "libminl2r/tools/console.h"
#include "libminl2r/tools/fault.h"
#include "pmfs-proto/fuse/channel.h"
#include "pmfs-proto/fuse/loop.h"
#include "pmfs-proto/fuse/ops.h"

/* ---- Messages ---------------------------------------------------------------- */

/* A process in the background has no terminal: what libfuse says goes to the system
 * log. */
static void log_to_syslog(enum fuse_log_level level, const char *format, va_list args)
{
    vsyslog((int)level, format, args);
}

static void tell_recovery(struct pmfs *fs)
{
    struct minl2r_info info;
    struct pmfs_recovery finished;

    pmfs_recovery(fs, &finished);
    if (minl2r_pool_info(pmfs_pool(fs), &info) == 0 && info.recovery.lanes > 0)
        fprintf(stderr,
                "pmfs mount: undid %" PRIu64 " transaction%s: %" PRIu64
                " records, %" PRIu64 " bytes, %" PRIu64 " blocks\n",
                info.recovery.lanes, info.recovery.lanes == 1 ? "" : "s",
                info.recovery.records, info.recovery.bytes, info.recovery.blocks);
    if (finished.orphans > 0 || finished.truncates > 0)
        fprintf(stderr,
                "pmfs mount: freed %" PRIu64 " nameless files, finished %" PRIu64
                " truncations\n",
                finished.orphans, finished.truncates);
}

/* ---- Mounting ---------------------------------------------------------------- */

static int open_pool(const struct daemon_options *options, struct pmfs **fs)
{
    const struct pmfs_mount_options mount_options = {
        .require = options->require,
        .flags = PMFS_COUNT_LOOKUPS | (options->read_only ? PMFS_READ_ONLY : 0u),
        .cached_inodes = options->cached_inodes,
    };
    int error = pmfs_mount(options->pool, &mount_options, fs);

    if (error < 0)
        console_fail("pmfs mount", options->pool, pmfs_errormsg());
    else
        tell_recovery(*fs);
    return error;
}

/* The options of the session as one comma-separated list, to be freed; NULL: no memory.
 */
static char *session_options(const struct daemon_options *options)
{
    char *list = NULL, *name = NULL;
    bool ok = asprintf(&name, "fsname=%s", options->pool) > 0 &&
              fuse_opt_add_opt_escaped(&list, name) == 0 &&
              fuse_opt_add_opt(&list, "subtype=pmfs,default_permissions") == 0 &&
              (options->kernel_options[0] == '\0' ||
               fuse_opt_add_opt(&list, options->kernel_options) == 0);

    free(name);
    if (!ok) {
        free(list);
        return NULL;
    }
    return list;
}

static struct fuse_session *make_session(const struct daemon_options *options,
                                         struct mount_state *state)
{
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    struct fuse_session *session = NULL;
    char *list = session_options(options);

    if (list != NULL && fuse_opt_add_arg(&args, "pmfs") == 0 &&
        fuse_opt_add_arg(&args, "-o") == 0 && fuse_opt_add_arg(&args, list) == 0)
        session = fuse_session_new(&args, &ops, sizeof(ops), state);
    fuse_opt_free_args(&args);
    free(list);
    return session;
}

static int pid_file_failed(const char *path, const char *why)
{
    fprintf(stderr, "pmfs mount: %s: %s\n", path, why);
    return -EIO;
}

/* A number and the end of a line, or nothing: what a killed daemon may have left. */
static bool is_pid_file(int fd)
{
    struct stat stat;
    char text[32];
    ssize_t size;

    if (fstat(fd, &stat) < 0 || !S_ISREG(stat.st_mode) ||
        stat.st_size >= (off_t)sizeof(text))
        return false;
    size = pread(fd, text, sizeof(text) - 1, 0);
    if (size < 0)
        return false;
    text[size] = '\0';
    size_t digits = strspn(text, "0123456789");
    return size == 0 ||
           (digits > 0 && digits + strspn(text + digits, "\n") == (size_t)size);
}

static int write_pid_file(const char *path)
{
    char text[32];
    int size = snprintf(text, sizeof(text), "%d\n", (int)getpid());
    int fd = open(path, O_RDWR | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644);
    int error = 0;

    if (fd < 0)
        return pid_file_failed(path, strerror(errno));
    if (!is_pid_file(fd))
        error = pid_file_failed(path, "there already, and no pid file");
    else if (ftruncate(fd, 0) < 0 || write(fd, text, (size_t)size) != size)
        error = pid_file_failed(path, strerror(errno));
    close(fd);
    return error;
}

/* ---- Serving ----------------------------------------------------------------- */

static int loop(struct fuse_session *session, const struct daemon_options *options)
{
    return options->single_thread ? fuse_session_loop(session)
                                  : loop_run(session, options->shared_fd);
}

/* Leaves the terminal, then tells the parent, who holds the other end, that all is
 * well. */
static int go_to_background(int ready_fd)
{
    const int ok = 0;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (null < 0 || chdir("/") < 0)
        return -errno;
    openlog("pmfs", LOG_PID, LOG_DAEMON);
    fuse_set_log_func(log_to_syslog);
    fault_tell_syslog();
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        dup2(null, fd);
    close(null);
    if (write(ready_fd, &ok, sizeof(ok)) != (ssize_t)sizeof(ok))
        return -EPIPE;
    return 0;
}

/* From here on the session is mounted. */
static int serve_mounted(struct fuse_session *session,
                         const struct daemon_options *options, int ready_fd)
{
    int error = options->pid_file ? write_pid_file(options->pid_file) : 0;

    if (error < 0)
        return error;
    fault_remove(options->pid_file);
    if (ready_fd >= 0)
        error = go_to_background(ready_fd);
    if (error == 0)
        error = loop(session, options);
    if (options->pid_file)
        unlink(options->pid_file);
    /* A positive result is the signal that ended the loop. */
    return error < 0 ? error : 0;
}

static int serve_session(struct fuse_session *session,
                         const struct daemon_options *options, int ready_fd)
{
    int error = -EIO;

    if (fuse_set_signal_handlers(session) < 0)
        return error;
    if (fuse_session_mount(session, options->mountpoint) == 0) {
        error = channel_open(session);
        if (error == 0)
            error = serve_mounted(session, options, ready_fd);
        fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
    return error;
}

/* Opens the pool in the process that serves it, for it cannot be taken through a fork.
 */
static int serve(const struct daemon_options *options, int ready_fd)
{
    struct mount_state state = {.direct_io = options->direct_io};
    int error = open_pool(options, &state.fs);

    if (error < 0)
        return error;
    struct fuse_session *session = make_session(options, &state);
    state.session = session;
    error = session == NULL ? -EINVAL : serve_session(session, options, ready_fd);
    if (session != NULL)
        fuse_session_destroy(session);
    int close_error = pmfs_unmount(state.fs);
    if (close_error < 0)
        fuse_log(FUSE_LOG_ERR, "%s\n", pmfs_errormsg());
    return error < 0 ? error : close_error;
}

/* 0 once the daemon is mounted, else why it is not. */
static int await_daemon(int ready_fd)
{
    int result;

    if (read(ready_fd, &result, sizeof(result)) == (ssize_t)sizeof(result))
        return result;
    fprintf(stderr, "pmfs mount: the daemon died while mounting\n");
    return -EIO;
}

static _Noreturn void run_daemon(const struct daemon_options *options, int ready_fd)
{
    setsid();
    int error = serve(options, ready_fd);
    /* Once it was mounted nobody listens any more. */
    signal(SIGPIPE, SIG_IGN);
    ssize_t ignored = write(ready_fd, &error, sizeof(error));
    (void)ignored;
    exit(error < 0 ? 1 : 0);
}

int daemon_mount(const struct daemon_options *options)
{
    int ends[2];

    if (options->foreground)
        return serve(options, -1);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        run_daemon(options, ends[1]);
    }
    int error = pid < 0 ? -errno : 0;
    close(ends[1]);
    if (error == 0)
        error = await_daemon(ends[0]);
    close(ends[0]);
    return error;
}
