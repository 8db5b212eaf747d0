/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An image of each format version stays readable for ever: a pool that was cut off in a
 * commit, and a filesystem. Made by make_golden.c; kept compressed.
 */
#include "tests/unit/fixture.h"

#include <sys/stat.h>

#include "include/pmfs.h"
#include "pmfs-proto/core/table.h"
#include "tests/golden/golden.h"

/* Unpacks an image to f->path. */
static void unpack(const struct fixture *f, const char *name)
{
    char command[512];

    snprintf(command, sizeof(command), "gzip -dc %s/%s.img.gz > %s", GOLDEN_DIRECTORY,
             name, f->path);
    assert_int_equal(system(command), 0);
}

static void no_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("%s\n", what);
}

static void assert_filled(const void *bytes, size_t size, uint32_t seed)
{
    uint8_t *expected = malloc(size);

    golden_fill(expected, size, seed);
    assert_memory_equal(bytes, expected, size);
    free(expected);
}

static void a_pool_of_version_1_is_recovered(void **state)
{
    struct fixture *f = *state;
    struct golden_root content;
    struct minl2r_info info;

    unpack(f, "pool-v1");
    assert_ok(minl2r_pool_check(f->path, no_finding, NULL));
    assert_ok(minl2r_pool_open(f->path, "golden", NULL, &f->pool));
    const struct golden_root *root = minl2r_root(f->pool, sizeof(*root));

    assert_non_null(root);
    golden_fill(&content, sizeof(content), 1);
    assert_memory_equal(root->bytes, content.bytes, sizeof(content.bytes));
    assert_filled(minl2r_at(f->pool, root->slots[0]), GOLDEN_BLOCK_SIZE, 2);
    assert_int_equal(root->slots[1], 0);
    assert_ok(minl2r_pool_info(f->pool, &info));
    assert_int_equal(info.format, 1);
    assert_int_equal(info.lanes, 3);
    assert_int_equal(info.recovery.lanes, 1);
    /* The root object, the block and the run are what is allocated. */
    assert_int_equal(info.blocks - info.blocks_free,
                     (sizeof(*root) + GOLDEN_BLOCK_SIZE - 1) / GOLDEN_BLOCK_SIZE + 1 +
                         3);
    /* A swap, the filling of a hole, a freeing, an allocation, and bytes behind links.
     */
    assert_true(info.recovery.batches > 3);
    assert_true(info.recovery.bytes >= sizeof(content.bytes));
    assert_int_equal(info.recovery.blocks, 2 + 1 + 3 + 5);
}

static struct pmfs *mount_golden(const struct fixture *f, const char *name)
{
    struct pmfs *fs;

    unpack(f, name);
    assert_ok(pmfs_fsck(f->path, no_finding, NULL, NULL));
    assert_ok(pmfs_mount(f->path, NULL, &fs));
    return fs;
}

/* What images of all versions hold; answers with the file. */
static struct pmfs_attr assert_golden(struct pmfs *fs)
{
    static uint8_t bytes[GOLDEN_FILE_HOLE + GOLDEN_FILE_SIZE];
    char target[PMFS_SYMLINK_MAX + 1];
    struct pmfs_attr dir, file, link;
    size_t done;

    assert_ok(pmfs_lookup(fs, PMFS_ROOT_INO, "dir", &dir));
    assert_int_equal(dir.mode, S_IFDIR | 0750);
    assert_int_equal(dir.uid, 1000);
    assert_ok(pmfs_lookup(fs, dir.ino, "file", &file));
    assert_int_equal(file.nlink, 2);
    assert_int_equal(file.size, sizeof(bytes));
    assert_ok(pmfs_read(fs, file.ino, 0, bytes, sizeof(bytes), &done));
    assert_int_equal(done, sizeof(bytes));
    for (size_t i = 0; i < GOLDEN_FILE_HOLE; i++)
        assert_int_equal(bytes[i], 0);
    assert_filled(bytes + GOLDEN_FILE_HOLE, GOLDEN_FILE_SIZE, 5);
    assert_ok(pmfs_lookup(fs, PMFS_ROOT_INO, "symlink", &link));
    assert_ok(pmfs_readlink(fs, link.ino, target, sizeof(target)));
    assert_string_equal(target, "dir/file");
    return file;
}

/* ---- A large directory ----------------------------------------------------------- */

struct names {
    int count;
    int seen[GOLDEN_NAMES];
};

static int take_name(void *arg, const struct pmfs_dirent *entry)
{
    struct names *names = arg;

    names->count++;
    if (strncmp(entry->name, "name ", 5) == 0)
        names->seen[atoi(entry->name + 5)]++;
    return 0;
}

/* All names from number `first` on are found, and listed once. */
static struct pmfs_attr assert_large(struct pmfs *fs, int first)
{
    static struct names names;
    struct pmfs_attr dir, attr, file;
    char name[32];

    assert_ok(pmfs_lookup(fs, PMFS_ROOT_INO, "large", &dir));
    assert_ok(pmfs_lookup(fs, dir.ino, "file", &file));
    assert_int_equal(file.nlink, GOLDEN_NAMES - first + 1);
    names = (struct names){0};
    assert_ok(pmfs_readdir(fs, dir.ino, 0, 0, take_name, &names));
    assert_int_equal(names.count, GOLDEN_NAMES - first + 4);
    for (int i = 0; i < GOLDEN_NAMES; i++) {
        snprintf(name, sizeof(name), "name %d", i);
        assert_int_equal(pmfs_lookup(fs, dir.ino, name, &attr),
                         i < first ? -ENOENT : 0);
        assert_int_equal(names.seen[i], i >= first);
    }
    assert_int_equal(pmfs_rmdir(fs, PMFS_ROOT_INO, "large"), -ENOTEMPTY);
    return dir;
}

static void remove_some(struct pmfs *fs, uint64_t dir, int first, int end)
{
    char name[32];

    for (int i = first; i < end; i++) {
        snprintf(name, sizeof(name), "name %d", i);
        assert_ok(pmfs_unlink(fs, dir, name));
    }
}

static void empty_large(struct pmfs *fs, int first)
{
    struct pmfs_attr dir;

    assert_ok(pmfs_lookup(fs, PMFS_ROOT_INO, "large", &dir));
    remove_some(fs, dir.ino, first, GOLDEN_NAMES);
    assert_ok(pmfs_unlink(fs, dir.ino, "file"));
    assert_ok(pmfs_rmdir(fs, dir.ino, "sub"));
    assert_ok(pmfs_rmdir(fs, PMFS_ROOT_INO, "large"));
}

/* 0 once it is no more of format 2. */
static uint64_t map_height_of(struct pmfs *fs, uint64_t ino)
{
    struct inode_place place;

    assert_ok(table_locate(fs, ino, &place));
    return place.pm->map.height;
}

/* As one that has always been of the newest version. */
static void a_filesystem_of_version_1_is_read_and_can_have_all_that_is_new(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = mount_golden(f, "pmfs-v1");
    struct pmfs_attr file = assert_golden(fs);
    size_t size;

    assert_ok(pmfs_setxattr(fs, file.ino, "user.name", "value", 5, 0));
    assert_ok(pmfs_fallocate(fs, file.ino, PMFS_KEEP_SIZE, 0, GOLDEN_FILE_ALLOCATED));
    assert_ok(pmfs_unmount(fs));
    assert_ok(pmfs_fsck(f->path, no_finding, NULL, NULL));
    assert_ok(pmfs_mount(f->path, NULL, &fs));
    assert_golden(fs);
    assert_ok(pmfs_getxattr(fs, file.ino, "user.name", NULL, 0, &size));
    assert_int_equal(size, 5);
    assert_ok(pmfs_unmount(fs));
}

static void a_filesystem_of_version_2_is_read(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = mount_golden(f, "pmfs-v2");
    struct pmfs_attr file = assert_golden(fs);
    uint8_t value[GOLDEN_FILE_SIZE];
    size_t size;

    assert_ok(pmfs_getxattr(fs, file.ino, "user.name", value, sizeof(value), &size));
    assert_int_equal(size, 5);
    assert_memory_equal(value, "value", 5);
    assert_ok(pmfs_getxattr(fs, file.ino, "user.large", value, sizeof(value), &size));
    assert_int_equal(size, GOLDEN_FILE_SIZE);
    assert_filled(value, GOLDEN_FILE_SIZE, 5);
    assert_true(file.blocks * 512 > GOLDEN_FILE_ALLOCATED + GOLDEN_FILE_SIZE);
    assert_ok(pmfs_unmount(fs));
}

static void a_filesystem_of_version_3_is_read(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = mount_golden(f, "pmfs-v3");

    assert_golden(fs);
    assert_large(fs, 0);
    assert_ok(pmfs_unmount(fs));
}

/* It is converted when it is used first, and nothing is lost by that. */
static void a_large_directory_of_version_2_is_like_any_other(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = mount_golden(f, "pmfs-v2-large");
    struct pmfs_attr dir = assert_large(fs, 0), attr;
    const struct pmfs_cred cred = {0};

    assert_int_equal(map_height_of(fs, dir.ino), 0);
    assert_ok(pmfs_mknod(fs, dir.ino, "new", S_IFREG | 0600, 0, &cred, &attr));
    assert_ok(pmfs_unlink(fs, dir.ino, "new"));
    assert_ok(pmfs_unmount(fs));
    assert_ok(pmfs_fsck(f->path, no_finding, NULL, NULL));
    assert_ok(pmfs_mount(f->path, NULL, &fs));
    assert_large(fs, 0);
    empty_large(fs, 0);
    assert_ok(pmfs_unmount(fs));
    assert_ok(pmfs_fsck(f->path, no_finding, NULL, NULL));
}

/* Without room it stays as it is: names are found and removed, and none are added. */
static void a_large_directory_of_version_2_needs_no_room(void **state)
{
    static uint8_t bytes[65536];
    struct fixture *f = *state;
    struct pmfs *fs = mount_golden(f, "pmfs-v2-large");
    const struct pmfs_cred cred = {0};
    struct pmfs_attr dir, attr;
    uint64_t at = 0;
    size_t done;

    assert_ok(pmfs_mknod(fs, PMFS_ROOT_INO, "full", S_IFREG | 0600, 0, &cred, &attr));
    for (size_t size = sizeof(bytes); size > 0; size /= 2) {
        while (pmfs_write(fs, attr.ino, at, bytes, size, 0, &done) == 0)
            at += done;
    }
    dir = assert_large(fs, 0);
    assert_true(map_height_of(fs, dir.ino) > 0);
    assert_int_equal(pmfs_mknod(fs, dir.ino, "new", S_IFREG, 0, &cred, &attr), -ENOSPC);
    remove_some(fs, dir.ino, 0, 700);
    assert_large(fs, 700);
    assert_ok(pmfs_unmount(fs));
    assert_ok(pmfs_fsck(f->path, no_finding, NULL, NULL));
    assert_ok(pmfs_mount(f->path, NULL, &fs));
    empty_large(fs, 700);
    assert_ok(pmfs_unmount(fs));
    assert_ok(pmfs_fsck(f->path, no_finding, NULL, NULL));
}

/* ---- Read-only ------------------------------------------------------------------- */

static void assert_refuses_changes(struct pmfs *fs)
{
    const struct pmfs_cred cred = {0};
    struct pmfs_attr attr;
    size_t done;

    assert_int_equal(pmfs_mknod(fs, PMFS_ROOT_INO, "new", S_IFREG, 0, &cred, &attr),
                     -EROFS);
    assert_int_equal(pmfs_unlink(fs, PMFS_ROOT_INO, "symlink"), -EROFS);
    assert_int_equal(pmfs_rename(fs, PMFS_ROOT_INO, "symlink", PMFS_ROOT_INO, "new", 0),
                     -EROFS);
    assert_ok(pmfs_lookup(fs, PMFS_ROOT_INO, "dir", &attr));
    assert_ok(pmfs_lookup(fs, attr.ino, "file", &attr));
    assert_int_equal(pmfs_write(fs, attr.ino, 0, "x", 1, 0, &done), -EROFS);
    assert_int_equal(pmfs_fallocate(fs, attr.ino, 0, 0, GOLDEN_FILE_ALLOCATED), -EROFS);
    assert_int_equal(pmfs_setxattr(fs, attr.ino, "user.new", "value", 5, 0), -EROFS);
    attr.mode = 0600;
    assert_int_equal(pmfs_setattr(fs, attr.ino, &attr, PMFS_SET_MODE, &attr), -EROFS);
}

/* Without being converted: the file stays as it is. */
static void read_only(const struct fixture *f, const char *name, bool is_large)
{
    const struct pmfs_mount_options options = {.flags = PMFS_READ_ONLY};
    struct pmfs *fs, *other;
    char command[512];

    unpack(f, name);
    snprintf(command, sizeof(command), "gzip -dc %s/%s.img.gz | cmp - %s",
             GOLDEN_DIRECTORY, name, f->path);
    assert_ok(pmfs_mount(f->path, &options, &fs));
    assert_ok(pmfs_mount(f->path, &options, &other));
    if (is_large)
        assert_large(fs, 0);
    else
        assert_golden(fs);
    if (!is_large)
        assert_refuses_changes(fs);
    assert_ok(pmfs_unmount(other));
    assert_ok(pmfs_unmount(fs));
    assert_int_equal(system(command), 0);
}

static void filesystems_of_all_versions_are_read_without_being_written_to(void **state)
{
    read_only(*state, "pmfs-v1", false);
    read_only(*state, "pmfs-v2", false);
    read_only(*state, "pmfs-v2-large", true);
    read_only(*state, "pmfs-v3", false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_pool_of_version_1_is_recovered, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(
            a_filesystem_of_version_1_is_read_and_can_have_all_that_is_new,
            fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_filesystem_of_version_2_is_read,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_filesystem_of_version_3_is_read,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(
            a_large_directory_of_version_2_is_like_any_other, fixture_setup,
            fixture_teardown),
        cmocka_unit_test_setup_teardown(a_large_directory_of_version_2_needs_no_room,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(
            filesystems_of_all_versions_are_read_without_being_written_to,
            fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
