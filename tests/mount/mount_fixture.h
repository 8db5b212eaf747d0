/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * mount_fixture.h - a directory with a pool and a mount point in it, and the command
 * `pmfs`.
 *
 *     static void a_sentence(void **state)
 *     {
 *         struct mount_fixture *f = *state;
 *
 *         assert_success(mkdir(in_mount(f, "directory"), 0755));
 *         assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 8);
 *         assert_said(f, "mounted");
 *     }
 *
 * Tests that cannot mount are skipped: call skip_without_fuse() first in main().
 */
#ifndef MOUNT_FIXTURE_H
#define MOUNT_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

struct mount_fixture {
    char dir[64];
    char pool[128];
    char mountpoint[128];
    char pid_file[128];
    char output_file[128];
    char output[65536]; /* of the last command: stdout and stderr */
};

/* A system call that must succeed, or fail with this errno. */
#define assert_success(call) assert_success_at((call) >= 0, #call, __FILE__, __LINE__)
#define assert_errno(call, errnum)                                                     \
    assert_errno_at((call) < 0 ? errno : 0, (errnum), #call, __FILE__, __LINE__)

void assert_success_at(bool success, const char *call, const char *file, int line);
void assert_errno_at(int found, int expected, const char *call, const char *file,
                     int line);

/* The last command's output must contain `words`. */
void assert_said(const struct mount_fixture *f, const char *words);

/* Ends the program with ctest's "skipped" if this process cannot mount. */
void skip_without_fuse(void);

/* With an empty directory; with a filesystem of 64 MiB in the pool; and with that
 * mounted. */
int setup_empty(void **state);
int setup_made(void **state);
int setup_mounted(void **state);
int teardown(void **state);

#define test_empty(name) cmocka_unit_test_setup_teardown(name, setup_empty, teardown)
#define test_made(name) cmocka_unit_test_setup_teardown(name, setup_made, teardown)
#define test_mounted(name)                                                             \
    cmocka_unit_test_setup_teardown(name, setup_mounted, teardown)

/* Runs a program; its exit status, or 128 and its signal. Arguments end with NULL. */
int run(struct mount_fixture *f, const char *program, ...) __attribute__((sentinel));

/* Runs `pmfs` so. */
#define pmfs(f, ...) run((f), PMFS_TOOL, __VA_ARGS__)

/* Starts a program that is not waited for here; its output is lost. */
pid_t start(const char *program, ...) __attribute__((sentinel));
int exit_status_of(pid_t pid);

/* Mounts with `options` for -o, which may be NULL; must succeed. */
void mount_fs(struct mount_fixture *f, const char *options);
void unmount_fs(struct mount_fixture *f);

pid_t daemon_pid(const struct mount_fixture *f);

/* Sends SIGKILL to the daemon; the mount stays behind, dead. */
void kill_daemon(const struct mount_fixture *f);

/* A path inside the mount, or beside it. Valid until eight more were asked for. */
const char *in_mount(const struct mount_fixture *f, const char *name);
const char *in_dir(const struct mount_fixture *f, const char *name);

/* Whole small files, by path; must succeed. */
void write_file(const char *path, const void *content, size_t size);
void assert_file_holds(const char *path, const void *content, size_t size);

/* `size` bytes that depend on `seed`. */
void fill_pattern(void *buffer, size_t size, uint64_t seed);

/* Once the root directory has the block that its first entry takes, and keeps. */
uint64_t blocks_free(const struct mount_fixture *f);

/* As many as `before`, but for blocks of inodes, which stay: each of the daemon's threads
 * that made a file may have begun some. */
void assert_blocks_are_back(const struct mount_fixture *f, uint64_t before);

#endif
