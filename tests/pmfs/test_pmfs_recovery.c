/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What mounting finishes. A copy of the pool file, made while it is mounted, is what a
 * killed process leaves.
 */
#include <sys/wait.h>

#include "pmfs-proto/core/inode.h"
#include "tests/pmfs/pmfs_fixture.h"

/* The whole pool file. */
static uint8_t *read_pool(const struct fixture *f, size_t size)
{
    uint8_t *bytes = malloc(size);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    assert_non_null(bytes);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, size, 0), (ssize_t)size);
    close(fd);
    return bytes;
}

/* Kills, so to speak: unmounts, and puts back what was there before. */
static void crash(struct fixture *f)
{
    uint8_t *bytes = read_pool(f, 16 * MIB);

    fixture_unmount(f);
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, 16 * MIB, 0), (ssize_t)(16 * MIB));
    close(fd);
    free(bytes);
}

static struct pmfs_recovery recovery_of(struct fixture *f)
{
    struct pmfs_recovery recovery;

    pmfs_recovery(f->fs, &recovery);
    return recovery;
}

static uint64_t make_large_file(struct fixture *f, const char *name)
{
    uint64_t ino = make_file(f, ROOT, name);
    uint8_t *bytes = malloc(5 * MIB);

    assert_non_null(bytes);
    memset(bytes, 'l', 5 * MIB);
    write_all(f, ino, 0, bytes, 5 * MIB);
    free(bytes);
    return ino;
}

static void everything_returned_is_there_without_unmounting(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    write_text(f, make_file(f, dir, "a"), 0, "durable");
    crash(f);
    fixture_mount(f);
    assert_bytes(f, find(f, find(f, ROOT, "d"), "a"), 0, "durable", 7);
}

static void mounting_frees_files_that_were_open_without_a_name(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "first");
    uint64_t before = blocks_free(f);
    assert_ok(pmfs_open(f->fs, make_large_file(f, "large")));
    assert_ok(pmfs_open(f->fs, make_file(f, ROOT, "small")));
    assert_ok(pmfs_open(f->fs, make_dir(f, ROOT, "dir")));
    assert_ok(pmfs_unlink(f->fs, ROOT, "large"));
    assert_ok(pmfs_unlink(f->fs, ROOT, "small"));
    assert_ok(pmfs_rmdir(f->fs, ROOT, "dir"));
    crash(f);
    fixture_fsck(f);
    assert_int_equal(f->summary.orphans, 3);
    fixture_mount(f);
    assert_int_equal(recovery_of(f).orphans, 3);
    assert_int_equal(blocks_free(f), before);
    fixture_unmount(f);
    fixture_fsck(f);
    assert_int_equal(f->summary.orphans, 0);
}

static void replaced_open_file_is_freed_by_mounting(void **state)
{
    struct fixture *f = *state;

    assert_ok(pmfs_open(f->fs, make_file(f, ROOT, "a")));
    make_file(f, ROOT, "b");
    assert_ok(pmfs_rename(f->fs, ROOT, "b", ROOT, "a", 0));
    crash(f);
    fixture_mount(f);
    assert_int_equal(recovery_of(f).orphans, 1);
}

static void mounting_frees_what_never_got_a_name(void **state)
{
    struct fixture *f = *state;
    uint64_t first = make_file(f, ROOT, "first"), before = blocks_free(f);

    for (int i = 0; i < 2; i++) {
        assert_ok(pmfs_tmpfile(f->fs, ROOT, 0644, 0, &nobody, &f->attr));
        write_text(f, f->attr.ino, 0, "content");
    }
    uint64_t linked = f->attr.ino;
    assert_ok(pmfs_link(f->fs, linked, ROOT, "linked", &f->attr));
    crash(f);
    fixture_mount(f);
    assert_int_equal(recovery_of(f).orphans, 1);
    assert_int_equal(find(f, ROOT, "linked"), linked);
    assert_bytes(f, linked, 0, "content", 7);
    assert_int_equal(find(f, ROOT, "first"), first);
    assert_int_equal(blocks_free(f), before - 1);
}

/* As after the first of the transactions that a large truncation takes. */
static void mounting_ends_a_truncation(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_large_file(f, "a");
    struct inode_place place;
    uint64_t offset, size = 10;
    uint8_t truncate = PM_STATE_TRUNCATE;

    assert_ok(table_locate(f->fs, ino, &place));
    offset = minl2r_offset(f->fs->pool, place.pm);
    uint64_t state_offset = minl2r_offset(f->fs->pool, place.state);
    fixture_unmount(f);
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(
        pwrite(fd, &size, 8, (off_t)(offset + offsetof(struct pm_inode, size))), 8);
    assert_int_equal(pwrite(fd, &truncate, 1, (off_t)state_offset), 1);
    close(fd);

    fixture_fsck(f);
    assert_int_equal(f->summary.truncates, 1);
    fixture_mount(f);
    assert_int_equal(recovery_of(f).truncates, 1);
    assert_int_equal(attr_of(f, ino).blocks, 3 * 8); /* one block below two nodes */
    truncate_to(f, ino, 5000);
    assert_bytes(f, ino, 0, "llllllllll\0\0\0", 13);
}

static void child_of_a_fork_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    int status;
    size_t done;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        int made = pmfs_mknod(f->fs, ROOT, "b", 0644, 0, &nobody, &f->attr);
        int written = pmfs_write(f->fs, ino, 0, "x", 1, 0, &done);
        int unmounted = pmfs_unmount(f->fs);

        _exit(made == -EPERM && written == -EPERM && unmounted == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    write_text(f, ino, 0, "still ours");
    assert_error(pmfs_lookup(f->fs, ROOT, "b", &f->attr), ENOENT);
}

static void fsck_does_not_write(void **state)
{
    struct fixture *f = *state;

    assert_ok(pmfs_open(f->fs, make_large_file(f, "a")));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    crash(f);
    uint8_t *before = read_pool(f, 16 * MIB);
    fixture_fsck(f);
    uint8_t *after = read_pool(f, 16 * MIB);
    assert_memory_equal(before, after, 16 * MIB);
    free(before);
    free(after);
}

static void fsck_counts_what_is_there(void **state)
{
    struct fixture *f = *state;

    make_dir(f, ROOT, "d");
    make_large_file(f, "a");
    assert_ok(pmfs_symlink(f->fs, ROOT, "l", "a", &nobody, &f->attr));
    assert_ok(pmfs_mknod(f->fs, ROOT, "p", S_IFIFO, 0, &nobody, &f->attr));
    uint64_t unused = blocks_free(f);
    fixture_unmount(f);
    fixture_fsck(f);
    assert_int_equal(f->summary.findings, 0);
    assert_int_equal(f->summary.files, 1);
    assert_int_equal(f->summary.directories, 2);
    assert_int_equal(f->summary.symlinks, 1);
    assert_int_equal(f->summary.others, 1);
    assert_int_equal(f->summary.blocks_free, unused);
    assert_int_equal(f->summary.blocks_lost, 0);
    assert_true(f->summary.blocks_used >= 5 * 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(everything_returned_is_there_without_unmounting),
        TEST(mounting_frees_files_that_were_open_without_a_name),
        TEST(replaced_open_file_is_freed_by_mounting),
        TEST(mounting_frees_what_never_got_a_name),
        TEST(mounting_ends_a_truncation),
        TEST(child_of_a_fork_changes_nothing),
        TEST(fsck_does_not_write),
        TEST(fsck_counts_what_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
