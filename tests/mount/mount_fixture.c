/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/mount/mount_fixture.h"

#include <dirent.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#define SKIPPED 77
#define ARGUMENT_MAX 16
#define CAP_SYS_ADMIN_BIT 21

extern char **environ;

void assert_success_at(bool success, const char *call, const char *file, int line)
{
    if (success)
        return;
    print_error("%s: %s\n", call, strerror(errno));
    _fail(file, line);
}

void assert_errno_at(int found, int expected, const char *call, const char *file,
                     int line)
{
    if (found == expected)
        return;
    print_error("%s: %s, not: %s\n", call, strerror(found), strerror(expected));
    _fail(file, line);
}

void assert_said(const struct mount_fixture *f, const char *words)
{
    if (strstr(f->output, words) != NULL)
        return;
    print_error("\"%s\" is not in: %s\n", words, f->output);
    fail();
}

/* ---- Whether one can mount at all -------------------------------------------- */

static bool has_admin_capability(void)
{
    unsigned long long capabilities = 0;
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");

    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        if (strncmp(line, "CapEff:", 7) == 0)
            capabilities = strtoull(line + 7, NULL, 16);
    }
    if (file != NULL)
        fclose(file);
    return capabilities >> CAP_SYS_ADMIN_BIT & 1;
}

/* Why this process cannot mount, or NULL. Other users than root have a helper for it.
 */
static const char *why_not(void)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fd < 0)
        return "cannot open /dev/fuse";
    close(fd);
    if (geteuid() != 0)
        return access("/usr/bin/fusermount3", X_OK) < 0 ? "no fusermount3" : NULL;
    return has_admin_capability() ? NULL : "no CAP_SYS_ADMIN";
}

void skip_without_fuse(void)
{
    const char *why = why_not();

    if (why == NULL)
        return;
    printf("SKIPPED: mounting is not possible here: %s\n", why);
    exit(SKIPPED);
}

/* ---- Programs ---------------------------------------------------------------- */

/* An argv, and the text that it points into. */
struct command {
    char *argv[ARGUMENT_MAX + 1];
    char text[8192];
};

static void collect(struct command *command, const char *program, va_list args)
{
    const char *arg = program;
    size_t count = 0, used = 0;

    memset(command, 0, sizeof(*command));
    do {
        size_t size = strlen(arg) + 1;
        assert_true(count < ARGUMENT_MAX && size <= sizeof(command->text) - used);
        command->argv[count++] = memcpy(command->text + used, arg, size);
        used += size;
        arg = va_arg(args, const char *);
    } while (arg != NULL);
}

static pid_t spawn(const struct command *command, const char *output_file)
{
    posix_spawn_file_actions_t actions;
    pid_t pid;

    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output_file,
                                     O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    int error =
        posix_spawnp(&pid, command->argv[0], &actions, NULL, command->argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    assert_int_equal(error, 0);
    return pid;
}

int exit_status_of(pid_t pid)
{
    int status;

    assert_success(waitpid(pid, &status, 0));
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int run_and_read(struct mount_fixture *f, const struct command *command)
{
    int status = exit_status_of(spawn(command, f->output_file));
    FILE *file = fopen(f->output_file, "re");

    assert_non_null(file);
    size_t size = fread(f->output, 1, sizeof(f->output) - 1, file);
    f->output[size] = '\0';
    fclose(file);
    return status;
}

int run(struct mount_fixture *f, const char *program, ...)
{
    struct command command;
    va_list args;

    va_start(args, program);
    collect(&command, program, args);
    va_end(args);
    return run_and_read(f, &command);
}

pid_t start(const char *program, ...)
{
    struct command command;
    va_list args;

    va_start(args, program);
    collect(&command, program, args);
    va_end(args);
    return spawn(&command, "/dev/null");
}

/* ---- Mounting ---------------------------------------------------------------- */

void mount_fs(struct mount_fixture *f, const char *options)
{
    int status = pmfs(f, "mount", "--pid-file", f->pid_file, "-o",
                      options == NULL ? "rw" : options, f->pool, f->mountpoint, NULL);

    if (status != 0)
        print_error("mount: %s\n", f->output);
    assert_int_equal(status, 0);
}

void unmount_fs(struct mount_fixture *f)
{
    int status = pmfs(f, "umount", f->mountpoint, NULL);

    if (status != 0)
        print_error("umount: %s\n", f->output);
    assert_int_equal(status, 0);
}

pid_t daemon_pid(const struct mount_fixture *f)
{
    FILE *file = fopen(f->pid_file, "re");
    int pid = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%d", &pid), 1);
    fclose(file);
    assert_true(pid > 0);
    return pid;
}

void kill_daemon(const struct mount_fixture *f)
{
    assert_success(kill(daemon_pid(f), SIGKILL));
}

/* ---- Setting up and tearing down --------------------------------------------- */

int setup_empty(void **state)
{
    struct mount_fixture *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/pmfs-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(f->dir) == NULL) {
        free(f);
        return -1;
    }
    snprintf(f->pool, sizeof(f->pool), "%s/pool", f->dir);
    snprintf(f->mountpoint, sizeof(f->mountpoint), "%s/mount", f->dir);
    snprintf(f->pid_file, sizeof(f->pid_file), "%s/pid", f->dir);
    snprintf(f->output_file, sizeof(f->output_file), "%s/output", f->dir);
    *state = f;
    return mkdir(f->mountpoint, 0755);
}

static void remove_flat(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;

    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (unlinkat(dirfd(dir), entry->d_name, 0) < 0)
            unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
    }
    if (dir != NULL)
        closedir(dir);
    rmdir(path);
}

/* Whatever a failed test has left mounted goes, too. */
int teardown(void **state)
{
    struct mount_fixture *f = *state;

    if (pmfs(f, "umount", f->mountpoint, NULL) != 0)
        pmfs(f, "umount", "--lazy", f->mountpoint, NULL);
    remove_flat(f->dir);
    free(f);
    return 0;
}

/* Removes the test's directory if a command has failed: cmocka calls no teardown then.
 */
static int set_up(void **state, int status)
{
    const struct mount_fixture *f = *state;

    if (status == 0)
        return 0;
    print_error("%s\n", f->output);
    teardown(state);
    return -1;
}

int setup_made(void **state)
{
    if (setup_empty(state) != 0)
        return -1;
    struct mount_fixture *f = *state;
    return set_up(state, pmfs(f, "mkfs", f->pool, "64M", NULL));
}

int setup_mounted(void **state)
{
    if (setup_made(state) != 0)
        return -1;
    struct mount_fixture *f = *state;
    return set_up(state, pmfs(f, "mount", "--pid-file", f->pid_file, f->pool,
                              f->mountpoint, NULL));
}

/* ---- Paths and files --------------------------------------------------------- */

static const char *join(const char *dir, const char *name)
{
    static char paths[8][1024];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
    return path;
}

const char *in_mount(const struct mount_fixture *f, const char *name)
{
    return join(f->mountpoint, name);
}

const char *in_dir(const struct mount_fixture *f, const char *name)
{
    return join(f->dir, name);
}

void write_file(const char *path, const void *content, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    assert_success(fd);
    assert_int_equal(write(fd, content, size), size);
    assert_success(close(fd));
}

void assert_file_holds(const char *path, const void *content, size_t size)
{
    char *found = malloc(size + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t filled = 0;
    ssize_t got;

    assert_non_null(found);
    assert_success(fd);
    while ((got = read(fd, found + filled, size + 1 - filled)) > 0)
        filled += (size_t)got;
    assert_success(got);
    close(fd);
    assert_int_equal(filled, size);
    assert_memory_equal(found, content, size);
    free(found);
}

void fill_pattern(void *buffer, size_t size, uint64_t seed)
{
    unsigned char *bytes = buffer;

    seed = seed * 0x9e3779b97f4a7c15ULL + 1;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        bytes[i] = (unsigned char)(seed >> 56);
    }
}

uint64_t blocks_free(const struct mount_fixture *f)
{
    struct statvfs status;

    write_file(in_mount(f, "first"), "", 0);
    assert_success(unlink(in_mount(f, "first")));
    assert_success(statvfs(f->mountpoint, &status));
    return status.f_bfree;
}

void assert_blocks_are_back(const struct mount_fixture *f, uint64_t before)
{
    enum { OF_INODES = 40 };

    assert_in_range(blocks_free(f), before - OF_INODES, before);
}
