/* SPDX-License-Identifier: BSD-3-Clause */
/* What is there after the daemon was killed, and after it was told to end. */
#include "tests/mount/mount_fixture.h"

#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>

#define KILL_COUNT 6

static void sleep_ms(unsigned ms)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
}

static int verify(struct mount_fixture *f)
{
    return run(f, DEMO_WRITER, "verify", in_mount(f, "writers"), in_dir(f, "acks"),
               NULL);
}

#define ACK_SIZE 16

static off_t size_of(const char *path)
{
    struct stat status;

    return stat(path, &status) < 0 ? 0 : status.st_size;
}

/* Lets writers go on until `acks` more writes are acknowledged, and kills the daemon
 * under them. */
static void write_and_kill(struct mount_fixture *f, unsigned acks)
{
    const char *acks_file = in_dir(f, "acks");
    off_t enough = size_of(acks_file) + (off_t)acks * ACK_SIZE;
    pid_t writer = start(DEMO_WRITER, "run", in_mount(f, "writers"), acks_file, NULL);

    while (size_of(acks_file) < enough && waitpid(writer, NULL, WNOHANG) == 0)
        sleep_ms(1);
    kill_daemon(f);
    assert_int_equal(exit_status_of(writer), 0);
}

static void every_acknowledged_write_survives_kills(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "writers"), 0755));
    for (unsigned i = 0; i < KILL_COUNT; i++) {
        write_and_kill(f, 50 + 77 * i);
        mount_fs(f, NULL);
        assert_int_equal(verify(f), 0);
        unmount_fs(f);
        assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
        mount_fs(f, NULL);
    }
}

/* Changes a byte of the first record of the first file that has one. */
static void spoil_a_record(const struct mount_fixture *f)
{
    char name[32], byte;
    unsigned writer = 0;

    do
        snprintf(name, sizeof(name), "writers/append-%u", writer++);
    while (writer < 8 && size_of(in_mount(f, name)) == 0);
    int fd = open(in_mount(f, name), O_RDWR | O_CLOEXEC);
    assert_success(fd);
    assert_int_equal(pread(fd, &byte, 1, 50), 1);
    byte = (char)~byte;
    assert_int_equal(pwrite(fd, &byte, 1, 50), 1);
    close(fd);
}

/* The checker can fail. */
static void a_torn_record_is_found(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "writers"), 0755));
    write_and_kill(f, 300);
    mount_fs(f, NULL);
    assert_int_equal(verify(f), 0);
    spoil_a_record(f);
    assert_int_equal(verify(f), 1);
    assert_said(f, "append: record 1 is torn");
}

static void a_killed_daemon_leaves_a_dead_mount_that_mounting_clears(void **state)
{
    struct mount_fixture *f = *state;
    struct statvfs status;

    write_file(in_mount(f, "file"), "content", 7);
    kill_daemon(f);
    /* A call that is under way at the kill has another errno. */
    while (statvfs(f->mountpoint, &status) == 0 || errno != ENOTCONN)
        sleep_ms(1);
    mount_fs(f, NULL);
    assert_said(f, "cleared what a dead daemon had left mounted");
    assert_file_holds(in_mount(f, "file"), "content", 7);
}

static void a_nameless_open_file_is_freed_by_the_next_mount(void **state)
{
    static char content[1 << 20];
    struct mount_fixture *f = *state;
    uint64_t before = blocks_free(f);
    int fd = open(in_mount(f, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_success(fd);
    assert_int_equal(write(fd, content, sizeof(content)), sizeof(content));
    assert_success(unlink(in_mount(f, "file")));
    kill_daemon(f);
    close(fd);
    mount_fs(f, NULL);
    assert_said(f, "freed 1 nameless file");
    assert_blocks_are_back(f, before);
}

static void sigterm_unmounts_and_closes_the_pool(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "file"), "content", 7);
    assert_success(kill(daemon_pid(f), SIGTERM));
    for (int i = 0; i < 500 && access(f->pid_file, F_OK) == 0; i++)
        sleep_ms(10);
    mount_fs(f, NULL);
    assert_string_equal(f->output, "");
    assert_file_holds(in_mount(f, "file"), "content", 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_mounted(every_acknowledged_write_survives_kills),
        test_mounted(a_torn_record_is_found),
        test_mounted(a_killed_daemon_leaves_a_dead_mount_that_mounting_clears),
        test_mounted(a_nameless_open_file_is_freed_by_the_next_mount),
        test_mounted(sigterm_unmounts_and_closes_the_pool),
    };

    skip_without_fuse();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
