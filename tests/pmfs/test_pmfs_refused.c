/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each call that changes something, where nothing can be changed: on a read-only mount, and
 * on a medium that fails. fstatfs() and msync() go to wrappers here, so that any file is
 * on a disk, whose ordering points are msync(), and that these fail from a certain one on.
 */
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#include "tests/pmfs/pmfs_fixture.h"

#define POOL_SIZE (2 * MIB)
#define BLOCK 4096

static bool pretend_disk;
static int msyncs_until_failure = -1; /* negative: none fails */

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
    int rc = __real_fstatfs(fd, fs);

    if (pretend_disk)
        fs->f_type = EXT4_SUPER_MAGIC;
    return rc;
}

int __real_msync(void *at, size_t size, int flags);
int __wrap_msync(void *at, size_t size, int flags);
int __wrap_msync(void *at, size_t size, int flags)
{
    if (msyncs_until_failure == 0) {
        errno = EIO;
        return -1;
    }
    msyncs_until_failure -= msyncs_until_failure > 0;
    return __real_msync(at, size, flags);
}

/* ---- Changes --------------------------------------------------------------------- */

struct scene {
    struct pmfs *fs;
    uint64_t dir, file, other;
};

static void make_scene(struct fixture *f, struct scene *scene)
{
    static const char bytes[3 * BLOCK] = "old";

    scene->fs = f->fs;
    scene->dir = make_dir(f, ROOT, "dir");
    scene->file = make_file(f, ROOT, "file");
    scene->other = make_file(f, scene->dir, "other");
    make_dir(f, ROOT, "empty");
    write_all(f, scene->file, 0, bytes, sizeof(bytes));
    assert_ok(pmfs_setxattr(f->fs, scene->file, "user.a", "old", 3, 0));
}

typedef int change_fn(const struct scene *s);

static const struct pmfs_attr values = {.mode = 0600, .uid = 7, .size = 100};
static struct pmfs_attr attr;
static uint64_t copied;
static size_t done;
static const char new_bytes[2 * BLOCK] = "new";

static int do_mknod(const struct scene *s)
{
    return pmfs_mknod(s->fs, s->dir, "new", S_IFIFO | 0644, 0, &nobody, &attr);
}

static int do_create(const struct scene *s)
{
    int rc = pmfs_create(s->fs, s->dir, "new", 0644, &nobody, &attr);

    if (rc == 0)
        pmfs_release(s->fs, attr.ino);
    return rc;
}

static int do_tmpfile(const struct scene *s)
{
    int rc = pmfs_tmpfile(s->fs, s->dir, 0644, 0, &nobody, &attr);

    if (rc == 0)
        pmfs_release(s->fs, attr.ino);
    return rc;
}

static int do_mkdir(const struct scene *s)
{
    return pmfs_mkdir(s->fs, ROOT, "new", 0755, &nobody, &attr);
}

static int do_symlink(const struct scene *s)
{
    return pmfs_symlink(s->fs, ROOT, "new", "target", &nobody, &attr);
}

static int do_link(const struct scene *s)
{
    return pmfs_link(s->fs, s->file, s->dir, "new", &attr);
}

static int do_unlink(const struct scene *s)
{
    return pmfs_unlink(s->fs, ROOT, "file");
}

static int do_rmdir(const struct scene *s)
{
    return pmfs_rmdir(s->fs, ROOT, "empty");
}

static int do_rename(const struct scene *s)
{
    return pmfs_rename(s->fs, ROOT, "file", s->dir, "other", 0);
}

static int do_exchange(const struct scene *s)
{
    return pmfs_rename(s->fs, ROOT, "file", ROOT, "empty", PMFS_RENAME_EXCHANGE);
}

static int do_whiteout(const struct scene *s)
{
    return pmfs_rename_whiteout(s->fs, ROOT, "file", s->dir, "moved", 0, &nobody);
}

static int do_write_bytes(const struct scene *s)
{
    return pmfs_write(s->fs, s->file, 5, new_bytes, 20, 0, &done);
}

static int do_write_blocks(const struct scene *s)
{
    return pmfs_write(s->fs, s->file, 0, new_bytes, 2 * BLOCK, 0, &done);
}

static int do_append(const struct scene *s)
{
    return pmfs_write(s->fs, s->other, 0, new_bytes, BLOCK, PMFS_APPEND, &done);
}

static int do_chmod(const struct scene *s)
{
    return pmfs_setattr(s->fs, s->file, &values, PMFS_SET_MODE, NULL);
}

static int do_chown(const struct scene *s)
{
    return pmfs_setattr(s->fs, s->file, &values, PMFS_SET_UID | PMFS_SET_MTIME_NOW,
                        NULL);
}

static int do_truncate(const struct scene *s)
{
    return pmfs_setattr(s->fs, s->file, &values, PMFS_SET_SIZE, NULL);
}

static int do_allocate(const struct scene *s)
{
    return pmfs_fallocate(s->fs, s->other, 0, 0, 5 * BLOCK);
}

static int do_punch(const struct scene *s)
{
    return pmfs_fallocate(s->fs, s->file, PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 10,
                          2 * BLOCK);
}

static int do_copy(const struct scene *s)
{
    return pmfs_copy_range(s->fs, s->file, 0, s->other, 0, 2 * BLOCK, &copied);
}

static int do_setxattr(const struct scene *s)
{
    return pmfs_setxattr(s->fs, s->dir, "user.b", "new", 3, 0);
}

static int do_removexattr(const struct scene *s)
{
    return pmfs_removexattr(s->fs, s->file, "user.a");
}

static const struct {
    const char *name;
    change_fn *act;
} changes[] = {
    {"mknod", do_mknod},
    {"create", do_create},
    {"tmpfile", do_tmpfile},
    {"mkdir", do_mkdir},
    {"symlink", do_symlink},
    {"link", do_link},
    {"unlink", do_unlink},
    {"rmdir", do_rmdir},
    {"rename", do_rename},
    {"exchange", do_exchange},
    {"whiteout", do_whiteout},
    {"write bytes", do_write_bytes},
    {"write blocks", do_write_blocks},
    {"append", do_append},
    {"chmod", do_chmod},
    {"chown", do_chown},
    {"truncate", do_truncate},
    {"allocate", do_allocate},
    {"punch", do_punch},
    {"copy", do_copy},
    {"setxattr", do_setxattr},
    {"removexattr", do_removexattr},
};

#define CHANGES (sizeof(changes) / sizeof(changes[0]))

static void assert_refused_with(const struct scene *scene, size_t i, int errnum)
{
    int rc = changes[i].act(scene);

    if (rc != -errnum)
        print_error("%s: %d (%s)\n", changes[i].name, rc, strerror(-rc));
    assert_int_equal(rc, -errnum);
}

/* ---- The pool's file ------------------------------------------------------------- */

static void read_pool(const struct fixture *f, uint8_t *bytes)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    assert_int_equal(pread(fd, bytes, POOL_SIZE, 0), (ssize_t)POOL_SIZE);
    close(fd);
}

static void write_pool(const struct fixture *f, const uint8_t *bytes)
{
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);

    assert_int_equal(pwrite(fd, bytes, POOL_SIZE, 0), (ssize_t)POOL_SIZE);
    close(fd);
}

/* ---- Tests ----------------------------------------------------------------------- */

static void every_change_of_a_read_only_mount_is_erofs(void **state)
{
    static uint8_t before[POOL_SIZE], after[POOL_SIZE];
    struct fixture *f = *state;
    struct scene scene;

    fixture_mkfs(f, POOL_SIZE);
    fixture_mount(f);
    make_scene(f, &scene);
    fixture_unmount(f);
    read_pool(f, before);
    f->mount.flags = PMFS_READ_ONLY;
    fixture_mount(f);
    scene.fs = f->fs;
    for (size_t i = 0; i < CHANGES; i++)
        assert_refused_with(&scene, i, EROFS);
    assert_bytes(f, scene.file, 0, "old", 4);
    assert_int_equal(find(f, scene.dir, "other"), scene.other);
    fixture_unmount(f);
    read_pool(f, after);
    assert_memory_equal(after, before, POOL_SIZE);
}

/* What it answers when the medium fails at an ordering point of it, or 0 if it has none. */
static int change_on_a_failing_medium(struct fixture *f, size_t i, int point,
                                      struct scene *scene)
{
    fixture_mount(f);
    scene->fs = f->fs;
    msyncs_until_failure = point;
    int rc = changes[i].act(scene);

    if (rc == 0)
        return 0;
    assert_int_equal(rc, -EIO);
    assert_non_null(strstr(pmfs_errormsg(), "Input/output error"));
    assert_error(pmfs_mkdir(f->fs, ROOT, "another", 0755, &nobody, &f->attr), EIO);
    assert_error(pmfs_setxattr(f->fs, scene->dir, "user.c", "new", 3, 0), EIO);
    return rc;
}

static void every_change_on_a_failing_medium_is_eio_and_harmless(void **state)
{
    static uint8_t before[POOL_SIZE];
    struct fixture *f = *state;
    struct scene scene;

    pretend_disk = true;
    fixture_mkfs(f, POOL_SIZE);
    fixture_mount(f);
    make_scene(f, &scene);
    fixture_unmount(f);
    read_pool(f, before);
    for (size_t i = 0; i < CHANGES; i++) {
        int point = 0, rc;

        do {
            rc = change_on_a_failing_medium(f, i, point++, &scene);
            pmfs_unmount(f->fs);
            f->fs = NULL;
            msyncs_until_failure = -1;
            fixture_fsck(f);
            fixture_mount(f);
            fixture_unmount(f);
            fixture_fsck(f);
            write_pool(f, before);
        } while (rc < 0);
        if (point < 2)
            print_error("%s never waits for the medium\n", changes[i].name);
        assert_true(point >= 2);
    }
    pretend_disk = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(every_change_of_a_read_only_mount_is_erofs),
        TEST_EMPTY_IN_PROCESS(every_change_on_a_failing_medium_is_eio_and_harmless),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
