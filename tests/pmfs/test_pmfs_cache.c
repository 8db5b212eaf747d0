/* SPDX-License-Identifier: BSD-3-Clause */
/* What is kept in DRAM is bounded, and nothing depends on its being there. */
#include <malloc.h>

#include "pmfs-proto/core/inode.h"
#include "tests/pmfs/pmfs_fixture.h"

#define DIRECTORIES 200
#define NAMES 100 /* in each */

static void mount_with(struct fixture *f, uint64_t cached_inodes, uint32_t flags)
{
    f->mount.cached_inodes = cached_inodes;
    f->mount.flags = flags;
    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
}

static const char *numbered(const char *what, int number)
{
    static char name[32];

    snprintf(name, sizeof(name), "%s %d", what, number);
    return name;
}

static void make_tree(struct fixture *f)
{
    for (int i = 0; i < DIRECTORIES; i++) {
        uint64_t dir = make_dir(f, ROOT, numbered("directory", i));

        for (int j = 0; j < NAMES; j++)
            make_file(f, dir, numbered("file", j));
    }
}

static void find_all(struct fixture *f)
{
    for (int i = 0; i < DIRECTORIES; i++) {
        uint64_t dir = find(f, ROOT, numbered("directory", i));

        for (int j = 0; j < NAMES; j++)
            find(f, dir, numbered("file", j));
        assert_error(pmfs_lookup(f->fs, dir, "another", &f->attr), ENOENT);
    }
}

static void inodes_in_no_use_are_dropped(void **state)
{
    struct fixture *f = *state;

    mount_with(f, 640, 0);
    make_tree(f);
    assert_in_range(cache_inodes(f->fs), 1, 1280);
    find_all(f);
    assert_in_range(cache_inodes(f->fs), 1, 1280);
    fixture_unmount(f);
    fixture_fsck(f);
}

static void inodes_that_are_looked_up_are_kept_until_forgotten(void **state)
{
    const uint64_t all = 1 + DIRECTORIES * (1 + NAMES);
    struct fixture *f = *state;

    mount_with(f, 640, PMFS_COUNT_LOOKUPS);
    make_tree(f);
    assert_int_equal(cache_inodes(f->fs), all);
    for (uint64_t ino = 1; ino <= all; ino++)
        pmfs_forget(f->fs, ino, 1);
    assert_in_range(cache_inodes(f->fs), 1, all / 8);
    fixture_unmount(f);
    fixture_fsck(f);
}

static void names_that_are_only_looked_up_are_not_cached(void **state)
{
    struct fixture *f = *state;
    struct pmfs_attr looked_up, attr;

    mount_with(f, 65536, 0);
    make_tree(f);
    fixture_unmount(f);
    fixture_mount(f);
    find_all(f);
    assert_int_equal(cache_inodes(f->fs), 1 + DIRECTORIES);
    uint64_t dir = find(f, ROOT, "directory 7");
    for (int j = 0; j < NAMES; j++) {
        assert_ok(pmfs_lookup(f->fs, dir, numbered("file", j), &looked_up));
        assert_ok(pmfs_getattr(f->fs, looked_up.ino, &attr));
        assert_memory_equal(&looked_up, &attr, sizeof(attr));
    }
}

/* As PMFS_DESIGN.md says; with what malloc adds, and the table that finds them. */
static void an_inode_takes_less_than_200_bytes(void **state)
{
    struct fixture *f = *state;

    mount_with(f, 65536, 0);
    size_t before = mallinfo2().uordblks;
    for (int i = 0; i < 20000; i++)
        make_file(f, ROOT, numbered("file", i));
    assert_int_equal(cache_inodes(f->fs), 20001);
    assert_true(mallinfo2().uordblks - before < (size_t)20000 * 200);
}

/* A name costs nothing in DRAM: neither when it is made, nor when it is looked up. */
static void large_directories_take_no_memory(void **state)
{
    struct fixture *f = *state;

    mount_with(f, 640, 0);
    uint64_t dir = make_dir(f, ROOT, "directory");
    for (int i = 0; i < 5000; i++)
        make_file(f, dir, numbered("file", i));
    size_t before = mallinfo2().uordblks;
    for (int i = 5000; i < 20000; i++)
        make_file(f, dir, numbered("file", i));
    for (int i = 0; i < 20000; i++)
        find(f, dir, numbered("file", i));
    assert_true(mallinfo2().uordblks < before + 64 * 1024);
    fixture_unmount(f);
    fixture_fsck(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(inodes_in_no_use_are_dropped),
        TEST_EMPTY(inodes_that_are_looked_up_are_kept_until_forgotten),
        TEST_EMPTY(names_that_are_only_looked_up_are_not_cached),
        TEST_EMPTY(an_inode_takes_less_than_200_bytes),
        TEST_EMPTY(large_directories_take_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
