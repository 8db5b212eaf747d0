/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/tools/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libminl2r/tools/console.h"
#include "libminl2r/tools/size.h"
#include "pmfs-proto/fuse/daemon.h"
#include "pmfs-proto/tools/medium.h"
#include "pmfs-proto/tools/mounts.h"

#define POOL_WAIT_MS 5000

static const char help[] =
    "Usage: pmfs mount [OPTION ...] POOL DIRECTORY\n\n"
    "Mounts the filesystem in POOL on DIRECTORY. First undoes what a crash left "
    "unfinished,\n"
    "and says what. What is left of a mount whose daemon has died (\"Transport "
    "endpoint is\n"
    "not connected\") is cleared away.\n\n"
    "  -o, --options LIST    comma-separated:\n"
    "        ro, rw              read-only, also to the pool, or not\n"
    "        allow_other         other users may enter, as permissions allow\n"
    "        dev, suid, noexec   device nodes and set-user-ID work; programs do not "
    "run\n"
    "        nodev, nosuid, exec\n"
    "        require=MEDIUM      refuse a lesser medium: emulated, file, dax, eadr\n"
    "        direct_io           file content bypasses the kernel's cache: every "
    "write() up\n"
    "                            to 1 MiB is one transaction, but there is no shared "
    "mmap()\n"
    "        cached_inodes=N     keep N inodes in memory that the kernel has "
    "forgotten, of\n"
    "                            200 bytes each; 65536 unless said\n"
    "        pid_file=FILE       as --pid-file\n"
    "        noclone_fd          all threads share one descriptor of /dev/fuse\n"
    "        defaults, auto, noauto, user, nouser, users, owner, group, _netdev, "
    "nofail,\n"
    "        noatime, nodiratime, relatime, strictatime, sync, async, dirsync, x-*\n"
    "                            for fstab(5); without effect here (access times do "
    "not\n"
    "                            change by reading with any)\n"
    "  -f, --foreground      serve in this process until unmounted\n"
    "  -s, --single-thread   serve one request after the other\n"
    "      --pid-file FILE   write the process id of the daemon to FILE\n"
    "      --help\n\n"
    "Exit status: 0 mounted, 1 wrong usage, 32 not mounted.\n";

static const char helper_help[] =
    "Usage: mount.pmfs POOL DIRECTORY [-sfnv] [-o OPTIONS]\n\n"
    "Called by mount(8); see `pmfs mount --help`.\n\n"
    "  -s   ignore unknown options\n"
    "  -f   do everything but mount\n"
    "  -n, -v, -t TYPE, -N NAMESPACE   without effect here\n";

struct request {
    struct daemon_options daemon;
    char pool[PATH_MAX];
    char mountpoint[PATH_MAX];
    char pid_file[PATH_MAX];
    char kernel_options[512];
    bool sloppy; /* ignore unknown mount options */
    bool fake;   /* do everything but mount */
};

/* ---- Mount options ----------------------------------------------------------- */

static bool is_listed(const char *option, const char *const *list)
{
    for (; *list != NULL; list++) {
        if (strcmp(option, *list) == 0)
            return true;
    }
    return false;
}

static bool add_kernel_option(struct request *request, const char *option)
{
    size_t used = strlen(request->kernel_options);
    size_t size = sizeof(request->kernel_options) - used;
    int length = snprintf(request->kernel_options + used, size, "%s%s",
                          used == 0 ? "" : ",", option);

    return length > 0 && (size_t)length < size;
}

/* The pid file is written by a process that may have moved to another directory. */
static bool set_pid_file(struct request *request, const char *path)
{
    char directory[PATH_MAX] = "";
    int length;

    if (path[0] != '/' && getcwd(directory, sizeof(directory)) == NULL)
        return false;
    length = snprintf(request->pid_file, sizeof(request->pid_file), "%s%s%s", directory,
                      path[0] == '/' ? "" : "/", path);
    request->daemon.pid_file = request->pid_file;
    return length > 0 && (size_t)length < sizeof(request->pid_file);
}

static bool set_flag(struct daemon_options *options, const char *name)
{
    bool *flag = strcmp(name, "direct_io") == 0    ? &options->direct_io
                 : strcmp(name, "noclone_fd") == 0 ? &options->shared_fd
                                                   : NULL;

    if (flag != NULL)
        *flag = true;
    return flag != NULL;
}

static bool set_mount_option(struct request *request, const char *option)
{
    static const char *const for_kernel[] = {
        "ro",   "rw",     "allow_other", "dev",  "nodev",   "suid", "nosuid",
        "exec", "noexec", "noatime",     "sync", "dirsync", NULL};
    static const char *const for_fstab[] = {
        "defaults", "auto",        "noauto", "user",       "nouser",
        "users",    "owner",       "group",  "nofail",     "relatime",
        "_netdev",  "strictatime", "async",  "nodiratime", NULL};

    if (strcmp(option, "ro") == 0 || strcmp(option, "rw") == 0)
        request->daemon.read_only = option[1] == 'o';
    if (is_listed(option, for_kernel))
        return add_kernel_option(request, option);
    if (is_listed(option, for_fstab) || strncmp(option, "x-", 2) == 0)
        return true;
    if (strncmp(option, "require=", 8) == 0)
        return medium_parse(option + 8, &request->daemon.require);
    if (strncmp(option, "cached_inodes=", 14) == 0)
        return size_parse(option + 14, &request->daemon.cached_inodes) &&
               request->daemon.cached_inodes > 0;
    if (strncmp(option, "pid_file=", 9) == 0)
        return set_pid_file(request, option + 9);
    return set_flag(&request->daemon, option) || request->sloppy;
}

/* 0, or the exit status. */
static int set_mount_options(struct request *request, char *list)
{
    char *rest = list, *option;

    while ((option = strsep(&rest, ",")) != NULL) {
        if (strcmp(option, "remount") == 0) {
            fputs("pmfs mount: remount is not supported: unmount first\n", stderr);
            return MOUNT_EXIT_FAILED;
        }
        if (*option != '\0' && !set_mount_option(request, option)) {
            fprintf(stderr, "pmfs mount: unknown or wrong option '%s'\n", option);
            return MOUNT_EXIT_USAGE;
        }
    }
    return 0;
}

/* ---- Mounting ---------------------------------------------------------------- */

static int fail(const char *path, const char *why)
{
    console_fail("pmfs mount", path, why);
    return MOUNT_EXIT_FAILED;
}

static int clear_stale_mounts(const char *mountpoint)
{
    struct mounted mounted;

    while (mounts_find_at(mountpoint, &mounted)) {
        if (!mounts_is_stale(&mounted))
            return fail(mountpoint, "a pmfs is mounted here already");
        int error = mounts_remove(&mounted, true);
        if (error < 0)
            return fail(mountpoint, strerror(-error));
        fprintf(stderr, "pmfs mount: %s: cleared what a dead daemon had left mounted\n",
                mountpoint);
    }
    return 0;
}

/* Is `path` in `directory`, or below? Both resolved. */
static bool is_inside(const char *path, const char *directory)
{
    size_t length = strlen(directory);

    return strcmp(directory, "/") == 0 ||
           (strncmp(path, directory, length) == 0 && path[length] == '/');
}

/* The kernel would mount on a file, too, and nobody could read that any more. */
static int check_mountpoint(const char *mountpoint, const char *pool)
{
    struct stat status;

    if (stat(mountpoint, &status) < 0)
        return fail(mountpoint, strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return fail(mountpoint, "not a directory");
    if (is_inside(pool, mountpoint))
        return fail(mountpoint, "the pool is in it, and would be hidden");
    return 0;
}

static int await_pool(const char *pool)
{
    struct mounted mounted;
    char why[PATH_MAX + 64];

    if (mounts_find_pool(pool, &mounted) && !mounts_is_stale(&mounted)) {
        snprintf(why, sizeof(why), "mounted on %s already", mounted.mountpoint);
        return fail(pool, why);
    }
    int error = mounts_wait_released(pool, POOL_WAIT_MS);
    if (error == -EBUSY)
        return fail(pool, "in use by another process");
    return error < 0 ? fail(pool, strerror(-error)) : 0;
}

static int mount_pool(struct request *request, const char *pool, const char *mountpoint)
{
    int error = mounts_resolve(pool, request->pool);

    if (error < 0)
        return fail(pool, strerror(-error));
    error = mounts_resolve(mountpoint, request->mountpoint);
    if (error < 0)
        return fail(mountpoint, strerror(-error));
    int status = clear_stale_mounts(request->mountpoint);
    if (status == 0)
        status = check_mountpoint(request->mountpoint, request->pool);
    if (status == 0)
        status = await_pool(request->pool);
    if (status != 0 || request->fake)
        return status;
    request->daemon.pool = request->pool;
    request->daemon.mountpoint = request->mountpoint;
    request->daemon.kernel_options = request->kernel_options;
    return daemon_mount(&request->daemon) < 0 ? MOUNT_EXIT_FAILED : 0;
}

/* 0, or the exit status. */
static int parse_option(struct request *request, int option, char *value)
{
    switch (option) {
    case 'o':
        return set_mount_options(request, value);
    case 'f':
        request->daemon.foreground = true;
        return 0;
    case 's':
        request->daemon.single_thread = true;
        return 0;
    case 'p':
        return set_pid_file(request, value) ? 0 : MOUNT_EXIT_USAGE;
    default:
        return MOUNT_EXIT_USAGE;
    }
}

/* `what` is wrong; NULL: that is said already. */
static int wrong_usage(const char *what)
{
    if (what != NULL)
        fprintf(stderr, "pmfs mount: %s\n", what);
    fputs("Try: pmfs mount --help\n", stderr);
    return MOUNT_EXIT_USAGE;
}

int cmd_mount(int argc, char **argv)
{
    static const struct option options[] = {
        {"options", required_argument, NULL, 'o'},
        {"foreground", no_argument, NULL, 'f'},
        {"single-thread", no_argument, NULL, 's'},
        {"pid-file", required_argument, NULL, 'p'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct request request = {0};
    int option;

    while ((option = getopt_long(argc, argv, "o:fs", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        int status = parse_option(&request, option, optarg);
        if (status != 0)
            return status == MOUNT_EXIT_USAGE ? wrong_usage(NULL) : status;
    }
    if (argc - optind != 2)
        return wrong_usage("a POOL and a DIRECTORY have to be named");
    return mount_pool(&request, argv[optind], argv[optind + 1]);
}

int cmd_mount_helper(int argc, char **argv)
{
    struct request request = {0};
    char *list = NULL;
    int option;

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(helper_help, stdout);
        return 0;
    }
    while ((option = getopt(argc, argv, "sfnvo:t:N:")) != -1) {
        if (option == '?')
            return MOUNT_EXIT_USAGE;
        request.sloppy = request.sloppy || option == 's';
        request.fake = request.fake || option == 'f';
        list = option == 'o' ? optarg : list;
    }
    if (argc - optind != 2) {
        fputs(helper_help, stderr);
        return MOUNT_EXIT_USAGE;
    }
    int status = list != NULL ? set_mount_options(&request, list) : 0;
    if (status != 0)
        return status;
    return mount_pool(&request, argv[optind], argv[optind + 1]);
}
