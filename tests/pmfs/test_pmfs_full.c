/* SPDX-License-Identifier: BSD-3-Clause */
/* A filesystem without room: nothing changes that does not fit, and all else works. */
#include "tests/pmfs/pmfs_fixture.h"

#define BLOCK 4096u

static uint8_t *new_bytes(size_t size, int value)
{
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    memset(bytes, value, size);
    return bytes;
}

/* Appends blocks until there is no room. Returns how many. */
static uint64_t fill_file(struct fixture *f, uint64_t ino)
{
    uint8_t *bytes = new_bytes(BLOCK, 'f');
    uint64_t count = 0;
    size_t done;
    int rc;

    while ((rc = pmfs_write(f->fs, ino, 0, bytes, BLOCK, PMFS_APPEND, &done)) == 0)
        count++;
    assert_int_equal(rc, -ENOSPC);
    free(bytes);
    return count;
}

/* Makes files of one block until there is no room for either. Returns how many. */
static uint64_t fill_with_files(struct fixture *f, uint64_t dir)
{
    uint8_t *bytes = new_bytes(BLOCK, 'f');
    char name[32];
    uint64_t count = 0;
    size_t done;

    for (;; count++) {
        snprintf(name, sizeof(name), "file %d", (int)count);
        if (pmfs_mknod(f->fs, dir, name, 0644, 0, &nobody, &f->attr) < 0)
            break;
        if (pmfs_write(f->fs, f->attr.ino, 0, bytes, BLOCK, 0, &done) < 0)
            assert_error(pmfs_write(f->fs, f->attr.ino, 0, bytes, BLOCK, 0, &done),
                         ENOSPC);
    }
    assert_error(pmfs_mknod(f->fs, dir, name, 0644, 0, &nobody, &f->attr), ENOSPC);
    free(bytes);
    return count;
}

static void remove_files(struct fixture *f, uint64_t dir, uint64_t count)
{
    char name[32];

    for (uint64_t i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "file %d", (int)i);
        assert_ok(pmfs_unlink(f->fs, dir, name));
    }
}

static void file_fills_what_statfs_calls_available(void **state)
{
    struct fixture *f = *state;
    struct pmfs_statfs statfs;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(pmfs_statfs(f->fs, &statfs));
    uint64_t count = fill_file(f, ino);
    assert_int_equal(attr_of(f, ino).size, count * BLOCK);
    assert_int_equal(f->attr.blocks / 8, statfs.blocks_available);
    assert_ok(pmfs_statfs(f->fs, &statfs));
    assert_int_equal(statfs.blocks_available, 0);
}

static void call_without_room_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(MIB, 'n');
    size_t done = 7;

    fill_file(f, ino);
    struct pmfs_attr before = attr_of(f, ino);
    uint64_t free_before = blocks_free(f);
    assert_error(pmfs_write(f->fs, ino, before.size - 10, bytes, MIB, 0, &done),
                 ENOSPC);
    assert_int_equal(done, 7);
    assert_int_equal(attr_of(f, ino).size, before.size);
    if (!BY_KERNEL) /* it truncates the file to what it was */
        assert_int_equal(f->attr.mtime_ns, before.mtime_ns);
    assert_int_equal(f->attr.blocks, before.blocks);
    assert_int_equal(blocks_free(f), free_before);
    assert_bytes(f, ino, before.size - 3, "fff", 3);
    free(bytes);
}

/* Blocks that are there for one write: the rest is for nodes and log, as pmfs.h says. */
static uint64_t blocks_for_one_write(struct fixture *f, uint64_t available)
{
    uint64_t block_size = f->attr.block_size, per_node = block_size / 8;
    uint64_t count = available;

    while (count + count / (per_node - 1) + 4 + count * 64 / block_size > available)
        count--;
    return count;
}

static void write_of_all_that_is_free(struct fixture *f, uint32_t block_size)
{
    uint8_t *bytes = new_bytes(16 * MIB, 'n');
    struct pmfs_statfs statfs;
    size_t done = 7;

    f->mkfs.pool.block_size = block_size;
    fixture_mkfs(f, 16 * MIB);
    fixture_mount(f);
    uint64_t ino = make_file(f, ROOT, "a");

    write_text(f, ino, 0, "old");
    struct pmfs_attr before = attr_of(f, ino);

    assert_ok(pmfs_statfs(f->fs, &statfs));
    assert_error(pmfs_write(f->fs, ino, 0, bytes,
                            (statfs.blocks_available + 2) * before.block_size, 0,
                            &done),
                 ENOSPC);
    assert_int_equal(done, 7);
    assert_int_equal(attr_of(f, ino).size, before.size);
    assert_int_equal(f->attr.mtime_ns, before.mtime_ns);
    assert_int_equal(f->attr.blocks, before.blocks);
    assert_int_equal(blocks_free(f), statfs.blocks_free);
    assert_bytes(f, ino, 0, "old", 3);
    fixture_fsck_and_mount(f);

    size_t size = blocks_for_one_write(f, statfs.blocks_available) * before.block_size;
    uint64_t commits = stats_of(f).commits;

    write_all(f, ino, 0, bytes, size);
    assert_int_equal(stats_of(f).commits - commits, 1);
    assert_bytes(f, ino, 0, bytes, size);
    fixture_fsck_and_mount(f);
    free(bytes);
}

static void one_write_fills_what_is_free_or_changes_nothing(void **state)
{
    struct fixture *f = *state;

    write_of_all_that_is_free(f, 4096);
    fixture_unmount(f);
    unlink(f->path);
    write_of_all_that_is_free(f, 512);
}

static void full_filesystem_can_be_overwritten(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(BLOCK, 'o');
    uint64_t count = fill_file(f, ino);

    for (uint64_t i = 0; i < count; i++)
        write_all(f, ino, i * BLOCK, bytes, BLOCK);
    write_all(f, ino, BLOCK - 10, "across blocks", 13);
    assert_bytes(f, ino, BLOCK - 10, "across blocks", 13);
    assert_bytes(f, ino, (count - 1) * BLOCK, bytes, BLOCK);
    free(bytes);
}

static void large_overwrite_of_a_full_filesystem_is_short_but_goes_on(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(MIB, 'o');

    fill_file(f, ino);
    for (size_t at = 0, done; at < MIB; at += done) {
        assert_ok(
            pmfs_write(f->fs, ino, BLOCK / 2 + at, bytes + at, MIB - at, 0, &done));
        assert_in_range(done, 1, MIB - at);
    }
    assert_bytes(f, ino, BLOCK / 2, bytes, MIB);
    free(bytes);
}

static void full_filesystem_takes_attributes_and_moves(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");
    uint64_t ino = make_file(f, ROOT, "a");
    const struct pmfs_attr values = {.mode = 0600, .uid = 1};

    make_file(f, dir, "gives the directory a block");
    fill_file(f, ino);
    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE | PMFS_SET_UID, NULL));
    assert_ok(pmfs_rename(f->fs, ROOT, "a", dir, "b", 0));
    assert_ok(pmfs_link(f->fs, ino, ROOT, "c", &f->attr));
    assert_int_equal(find(f, dir, "b"), ino);
}

static void large_file_is_removed_from_a_full_filesystem(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "first");
    uint64_t before = blocks_free(f);
    fill_file(f, make_file(f, ROOT, "a"));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(blocks_free(f), before);
}

static void large_file_is_truncated_on_a_full_filesystem(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t before = blocks_free(f);

    fill_file(f, ino);
    truncate_to(f, ino, 3 * BLOCK + 1);
    fixture_fsck_and_mount(f);
    truncate_to(f, ino, 0);
    assert_int_equal(blocks_free(f), before);
}

static void filesystem_fills_as_often_as_it_is_emptied(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");
    uint64_t count = fill_with_files(f, dir);

    assert_true(count > 2000);
    fixture_fsck_and_mount(f);
    remove_files(f, dir, count);
    fixture_fsck_and_mount(f);
    assert_true(fill_with_files(f, dir) >= count);
    fixture_fsck_and_mount(f);
    remove_files(f, dir, count);
}

static void mkfs_of_a_pool_too_small_fails_and_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    int rc = pmfs_mkfs(f->path, 1000, &f->mkfs);

    assert_true(rc < 0);
    assert_int_equal(access(f->path, F_OK), -1);
    assert_true(strlen(pmfs_errormsg()) > 0);
}

static void smallest_pool_holds_a_file(void **state)
{
    struct fixture *f = *state;

    fixture_mkfs(f, MINL2R_POOL_SIZE_MIN);
    fixture_mount(f);
    write_text(f, make_file(f, ROOT, "a"), 0, "small");
    fixture_fsck_and_mount(f);
    assert_bytes(f, find(f, ROOT, "a"), 0, "small", 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(file_fills_what_statfs_calls_available),
        TEST(call_without_room_changes_nothing),
        TEST_EMPTY_IN_PROCESS(one_write_fills_what_is_free_or_changes_nothing),
        TEST(full_filesystem_can_be_overwritten),
        TEST(large_overwrite_of_a_full_filesystem_is_short_but_goes_on),
        TEST(full_filesystem_takes_attributes_and_moves),
        TEST_IN_PROCESS(large_file_is_removed_from_a_full_filesystem),
        TEST(large_file_is_truncated_on_a_full_filesystem),
        TEST_IN_PROCESS(filesystem_fills_as_often_as_it_is_emptied),
        TEST_EMPTY(mkfs_of_a_pool_too_small_fails_and_leaves_no_file),
        TEST_EMPTY(smallest_pool_holds_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
