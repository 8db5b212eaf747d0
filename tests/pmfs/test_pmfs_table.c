/* SPDX-License-Identifier: BSD-3-Clause */
/* The inode table grows and shrinks with the inodes in it. */
#include <pthread.h>

#include "pmfs-proto/core/table.h"
#include "tests/pmfs/pmfs_fixture.h"

#define FILES 10000

static const char *numbered(int number)
{
    static _Thread_local char name[32];

    snprintf(name, sizeof(name), "file %d", number);
    return name;
}

static void mount_large(struct fixture *f)
{
    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
}

static void make_files(struct fixture *f)
{
    for (int i = 0; i < FILES; i++)
        make_file(f, ROOT, numbered(i));
}

static void remove_files(struct fixture *f)
{
    for (int i = 0; i < FILES; i++)
        assert_ok(pmfs_unlink(f->fs, ROOT, numbered(i)));
}

/* But for some that are spare, and for states, of which there is one per inode. */
static void blocks_of_removed_inodes_are_given_back(void **state)
{
    struct fixture *f = *state;

    mount_large(f);
    uint64_t before = blocks_free(f);
    for (int round = 0; round < 3; round++) {
        make_files(f);
        assert_true(before - blocks_free(f) > FILES / 16);
        remove_files(f);
        assert_in_range(before - blocks_free(f), 0, 2 * f->fs->spare_inode_blocks + 10);
        fixture_fsck_and_mount(f);
        assert_in_range(before - blocks_free(f), 0, 2 * f->fs->spare_inode_blocks + 10);
    }
}

static void a_number_whose_block_was_given_back_has_another_generation(void **state)
{
    static uint32_t generations[2 * FILES];
    struct fixture *f = *state;

    mount_large(f);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < FILES; i++) {
            uint64_t ino = make_file(f, ROOT, numbered(i));

            assert_true(ino < 2 * FILES);
            assert_true(f->attr.generation > generations[ino]);
            generations[ino] = f->attr.generation;
        }
        remove_files(f);
        if (round == 1)
            fixture_remount(f);
    }
    fixture_unmount(f);
    fixture_fsck(f);
}

/*
 * Nothing comes and goes with a file that does, however full the table is. Three where the
 * name finds no room in its block of the directory.
 */
static void making_and_removing_over_and_over_costs_three_fences_at_most(void **state)
{
    struct fixture *f = *state;

    mount_large(f);
    make_files(f);
    for (int i = FILES - 1; i >= 0; i--) {
        assert_ok(pmfs_unlink(f->fs, ROOT, numbered(i)));
        if (i % 13)
            continue;
        make_file(f, ROOT, "first");
        for (int j = 0; j < 2; j++) {
            assert_in_range(
                FENCES(f, pmfs_mknod(f->fs, ROOT, "file", 0644, 0, &nobody, &f->attr)),
                2, 3);
            assert_in_range(FENCES(f, pmfs_unlink(f->fs, ROOT, "file")), 2, 3);
        }
        assert_ok(pmfs_unlink(f->fs, ROOT, "first"));
    }
}

struct worker {
    pthread_t thread;
    struct pmfs *fs;
    uint64_t dir;
    int failed;
};

static void *make_and_remove(void *arg)
{
    struct worker *worker = arg;
    struct pmfs_attr attr;

    for (int i = 0; i < 600; i++) {
        if (pmfs_mknod(worker->fs, worker->dir, numbered(i), 0644, 0, &nobody, &attr))
            worker->failed++;
        if (i >= 20 && pmfs_unlink(worker->fs, worker->dir, numbered(i - 20)))
            worker->failed++;
    }
    for (int i = 580; i < 600; i++)
        worker->failed += pmfs_unlink(worker->fs, worker->dir, numbered(i)) != 0;
    return NULL;
}

/* With blocks of two inodes, none of them spare. */
static void threads_make_and_remove_while_blocks_come_and_go(void **state)
{
    struct worker workers[4];
    struct fixture *f = *state;

    f->mkfs.pool.block_size = 512;
    mount_large(f);
    f->fs->spare_inode_blocks = 0;
    for (size_t i = 0; i < 4; i++) {
        workers[i] = (struct worker){.fs = f->fs};
        workers[i].dir = make_dir(f, ROOT, numbered((int)i));
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, make_and_remove, &workers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        pthread_join(workers[i].thread, NULL);
        assert_int_equal(workers[i].failed, 0);
    }
    fixture_fsck_and_mount(f);
}

/* ---- Groups of numbers ----------------------------------------------------------- */

#define GROUP_FILES 200

/* A thread that makes files in a directory of its own. */
struct maker {
    pthread_t thread;
    struct pmfs *fs;
    uint64_t dir;
    int failed;
    uint64_t inos[GROUP_FILES];
};

static void *make_numbered(void *arg)
{
    struct maker *maker = arg;
    struct pmfs_attr attr;

    for (int i = 0; i < GROUP_FILES; i++) {
        maker->failed += pmfs_mknod(maker->fs, maker->dir, numbered(i), 0644, 0,
                                    &nobody, &attr) != 0;
        maker->inos[i] = attr.ino;
    }
    return NULL;
}

static void start_maker(struct fixture *f, struct maker *maker, const char *dir)
{
    *maker = (struct maker){.fs = f->fs, .dir = make_dir(f, ROOT, dir)};
    assert_int_equal(pthread_create(&maker->thread, NULL, make_numbered, maker), 0);
}

static void join_maker(struct maker *maker)
{
    pthread_join(maker->thread, NULL);
    assert_int_equal(maker->failed, 0);
}

static uint64_t group_of(uint64_t ino)
{
    return ino / NUMBERS_GROUP;
}

static void threads_take_numbers_out_of_groups_of_their_own(void **state)
{
    static struct maker makers[3];
    struct fixture *f = *state;

    mount_large(f);
    for (size_t i = 0; i < 3; i++)
        start_maker(f, &makers[i], numbered((int)i));
    for (size_t i = 0; i < 3; i++)
        join_maker(&makers[i]);
    for (size_t i = 0; i < 3; i++) {
        uint64_t group = group_of(makers[i].inos[0]);

        assert_int_not_equal(group, 0); /* there is the root, and what made these */
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(group, group_of(makers[j].inos[0]));
        for (size_t j = 0; j < GROUP_FILES; j++)
            assert_int_equal(makers[i].inos[j], group * NUMBERS_GROUP + (uint64_t)j);
    }
    fixture_fsck_and_mount(f);
}

/* With blocks of 512 bytes the table has one group, and grows by one. */
static void a_table_grows_when_all_groups_are_full(void **state)
{
    static struct maker maker;
    struct fixture *f = *state;

    f->mkfs.pool.block_size = 512;
    mount_large(f);
    make_file(f, ROOT, "first");
    for (int i = 0; i < 2; i++) {
        start_maker(f, &maker, numbered(i));
        join_maker(&maker);
        assert_int_equal(table_end(f->fs), NUMBERS_GROUP);
    }
    start_maker(f, &maker, "third");
    join_maker(&maker);
    assert_int_equal(table_end(f->fs), 2 * NUMBERS_GROUP);
    assert_int_equal(table_used(f->fs), 1 + 1 + 3 * (1 + GROUP_FILES));
    assert_int_equal(table_used(f->fs) + table_free(f->fs) + 1, table_end(f->fs));
    fixture_fsck_and_mount(f);
    assert_int_equal(table_used(f->fs), 1 + 1 + 3 * (1 + GROUP_FILES));
}

/* However full it was, and whoever is at home there. */
static void a_freed_number_is_used_before_the_table_grows(void **state)
{
    struct fixture *f = *state;

    f->mkfs.pool.block_size = 512;
    mount_large(f);
    for (uint32_t i = 2; i < 2 * NUMBERS_GROUP; i++)
        make_file(f, ROOT, numbered((int)i));
    assert_int_equal(table_free(f->fs), 0);
    for (uint32_t i = 2; i < 2 * NUMBERS_GROUP; i += 100) {
        uint64_t ino = find(f, ROOT, numbered((int)i));

        assert_ok(pmfs_unlink(f->fs, ROOT, numbered((int)i)));
        assert_int_equal(make_file(f, ROOT, numbered((int)i)), ino);
    }
    assert_int_equal(table_end(f->fs), 2 * NUMBERS_GROUP);
    make_file(f, ROOT, "another");
    assert_int_equal(table_end(f->fs), 3 * NUMBERS_GROUP);
}

/* Where the last block is that a number was taken of is remembered, as long as it is there. */
static void a_block_that_was_given_back_is_not_remembered(void **state)
{
    struct fixture *f = *state;

    f->mkfs.pool.block_size = 512;
    mount_large(f);
    f->fs->spare_inode_blocks = 0;
    for (int i = 2; i < 23; i++)
        assert_int_equal(make_file(f, ROOT, numbered(i)), i);
    uint64_t before = blocks_free(f);
    /* Number 22 came with its block, 21 found that of 20. */
    for (int i = 22; i >= 20; i--)
        assert_ok(pmfs_unlink(f->fs, ROOT, numbered(i)));
    assert_int_equal(blocks_free(f), before + 2);
    assert_int_equal(make_file(f, ROOT, "another"), 20);
    fixture_fsck_and_mount(f);
    find(f, ROOT, "another");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(blocks_of_removed_inodes_are_given_back),
        TEST_EMPTY(a_number_whose_block_was_given_back_has_another_generation),
        TEST_EMPTY(making_and_removing_over_and_over_costs_three_fences_at_most),
        TEST_EMPTY(threads_make_and_remove_while_blocks_come_and_go),
        TEST_EMPTY(threads_take_numbers_out_of_groups_of_their_own),
        TEST_EMPTY(a_table_grows_when_all_groups_are_full),
        TEST_EMPTY(a_freed_number_is_used_before_the_table_grows),
        TEST_EMPTY(a_block_that_was_given_back_is_not_remembered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
