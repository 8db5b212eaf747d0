/* SPDX-License-Identifier: BSD-3-Clause */
/* Directories of many names: all are found, in any state of growing and shrinking, and
 * what is removed gives its blocks back. */
#include "tests/pmfs/pmfs_fixture.h"
#include "tests/unit/long.h"

#define NAMES (BY_KERNEL ? 1000 : 4000)

/* The other names are of files of their own, each of which has a descriptor by the kernel. */
#define LINKS_OF_A_FILE (BY_KERNEL ? 4900 : 4000)

/* Names of many lengths. */
static const char *name_of(int number)
{
    static char name[PMFS_NAME_MAX + 1];
    int size = snprintf(name, sizeof(name), "%d is the number of this name", number);

    if (number % 7 == 0)
        name[size -= 20] = 0;
    if (number % 50 == 0) {
        memset(name + size, 'x', 200);
        name[size + 200] = 0;
    }
    return name;
}

static void mount_with_blocks_of(struct fixture *f, uint32_t block_size)
{
    f->mkfs.pool.block_size = block_size;
    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
}

/* Each name is another one of the same file. */
static uint64_t make_large(struct fixture *f, int names)
{
    uint64_t dir = make_dir(f, ROOT, "large");
    uint64_t file = make_file(f, ROOT, "file");

    for (int i = 0; i < names; i++)
        assert_ok(pmfs_link(f->fs, file, dir, name_of(i), &f->attr));
    return dir;
}

static int count(void *arg, const struct pmfs_dirent *entry)
{
    (void)entry;
    ++*(int *)arg;
    return 0;
}

static int names_in(struct fixture *f, uint64_t dir)
{
    int names = 0;

    assert_ok(pmfs_readdir(f->fs, dir, 0, 0, count, &names));
    return names - 2;
}

/* All that should be there, and no more. */
static void assert_found(struct fixture *f, uint64_t dir, int names,
                         bool (*is_there)(int))
{
    int there = 0;

    for (int i = 0; i < names; i++) {
        assert_error(pmfs_lookup(f->fs, dir, name_of(i), &f->attr),
                     is_there(i) ? 0 : ENOENT);
        there += is_there(i);
    }
    assert_int_equal(names_in(f, dir), there);
}

static bool all(int number)
{
    (void)number;
    return true;
}

static bool few(int number)
{
    return number % 97 == 5;
}

static bool none(int number)
{
    (void)number;
    return false;
}

static void remove_but(struct fixture *f, uint64_t dir, int names, bool (*stays)(int))
{
    for (int i = 0; i < names; i++) {
        if (!stays(i) && pmfs_lookup(f->fs, dir, name_of(i), &f->attr) == 0)
            assert_ok(pmfs_unlink(f->fs, dir, name_of(i)));
    }
}

static void grow_and_shrink(struct fixture *f, uint32_t block_size, int names)
{
    mount_with_blocks_of(f, block_size);
    uint64_t dir = make_large(f, names);
    uint64_t blocks = attr_of(f, dir).blocks;

    assert_found(f, dir, names, all);
    fixture_fsck_and_mount(f);
    assert_found(f, dir, names, all);
    remove_but(f, dir, names, few);
    fixture_fsck_and_mount(f);
    assert_found(f, dir, names, few);
    assert_true(attr_of(f, dir).blocks < blocks / 4);
    remove_but(f, dir, names, none);
    fixture_fsck_and_mount(f);
    assert_found(f, dir, names, none);
    assert_true(attr_of(f, dir).blocks * 512 <= block_size);
    assert_ok(pmfs_rmdir(f->fs, ROOT, "large"));
    fixture_fsck_and_mount(f);
}

static void names_are_found_and_blocks_given_back_with_blocks_of_512(void **state)
{
    grow_and_shrink(*state, 512, NAMES);
}

static void names_are_found_and_blocks_given_back_with_blocks_of_4096(void **state)
{
    grow_and_shrink(*state, 4096, NAMES);
}

static void names_are_found_and_blocks_given_back_with_blocks_of_65536(void **state)
{
    grow_and_shrink(*state, 65536, 4000);
}

/* A million with ./dev test --long. */
static void a_very_large_directory_has_all_its_names(void **state)
{
    int names = BY_KERNEL ? 5000 : is_long_test() ? 1000000 : 50000;
    struct fixture *f = *state;
    uint64_t dir;

    fixture_mkfs(f, (uint64_t)names * 1024 + 64 * MIB);
    fixture_mount(f);
    dir = make_large(f, LINKS_OF_A_FILE);
    for (int i = LINKS_OF_A_FILE; i < names; i++)
        make_file(f, dir, name_of(i));
    assert_found(f, dir, names, all);
    fixture_fsck_and_mount(f);
    assert_found(f, dir, names, all);
    remove_but(f, dir, names, few);
    assert_found(f, dir, names, few);
    fixture_fsck_and_mount(f);
}

/* What is left of a directory costs about what it would cost in one that was never
 * large. */
static void blocks_of_a_shrunk_directory_are_few(void **state)
{
    struct fixture *f = *state;

    mount_with_blocks_of(f, 4096);
    uint64_t dir = make_large(f, 20000);
    for (int i = 0; i < 20000; i++) {
        if (i % 400)
            assert_ok(pmfs_unlink(f->fs, dir, name_of(i)));
    }
    assert_int_equal(names_in(f, dir), 50);
    assert_true(attr_of(f, dir).blocks * 512 <= 16 * 4096);
    fixture_fsck_and_mount(f);
}

/* Within one directory: adding may split the block that is taken from, or another. */
static void names_change_within_a_directory_as_it_grows(void **state)
{
    struct fixture *f = *state;
    char name[32];

    mount_with_blocks_of(f, 512);
    uint64_t dir = make_large(f, 500);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "another %d", i);
        assert_ok(pmfs_rename(f->fs, dir, name_of(i), dir, name, 0));
        assert_error(pmfs_lookup(f->fs, dir, name_of(i), &f->attr), ENOENT);
        find(f, dir, name);
    }
    assert_int_equal(names_in(f, dir), 500);
    fixture_fsck_and_mount(f);
    for (int i = 0; i < 500; i++) {
        snprintf(name, sizeof(name), "another %d", i);
        assert_ok(pmfs_rename(f->fs, dir, name, dir, name_of(i), 0));
    }
    assert_found(f, dir, 500, all);
    fixture_fsck_and_mount(f);
}

/* The same, where each leaves a whiteout: also in the block that is split for the new name. */
static void names_leave_whiteouts_in_a_directory_as_it_grows(void **state)
{
    struct fixture *f = *state;
    char name[32];

    mount_with_blocks_of(f, 512);
    uint64_t dir = make_large(f, 500);
    for (int i = 0; i < 500; i++) {
        uint64_t ino = find(f, dir, name_of(i));

        snprintf(name, sizeof(name), "another %d", i);
        assert_ok(pmfs_rename_whiteout(f->fs, dir, name_of(i), dir, name, 0, &nobody));
        assert_int_equal(find(f, dir, name), ino);
        find(f, dir, name_of(i));
        assert_int_equal(f->attr.mode, S_IFCHR);
    }
    assert_int_equal(names_in(f, dir), 1000);
    fixture_fsck_and_mount(f);
    if (!BY_KERNEL)
        assert_int_equal(f->summary.others, 500);
}

/* One name that moves on and on, in blocks that it leaves empty. */
static void one_name_leaves_no_blocks_behind(void **state)
{
    struct fixture *f = *state;
    char from[PMFS_NAME_MAX + 1];

    mount_with_blocks_of(f, 512);
    uint64_t dir = make_large(f, 200);
    remove_but(f, dir, 200, few);
    for (int i = 200; i < 1000; i++) {
        strcpy(from, i == 200 ? name_of(5) : name_of(i - 1));
        assert_ok(pmfs_rename(f->fs, dir, from, dir, name_of(i), 0));
    }
    fixture_fsck_and_mount(f);
    assert_ok(pmfs_unlink(f->fs, dir, name_of(999)));
    remove_but(f, dir, 200, none);
    assert_ok(pmfs_rmdir(f->fs, ROOT, "large"));
    fixture_fsck_and_mount(f);
}

struct listing {
    uint64_t cookie;
    int seen[NAMES];
};

/* One entry at a time. */
static int take_one(void *arg, const struct pmfs_dirent *entry)
{
    struct listing *listing = arg;

    if (listing->cookie)
        return 1;
    listing->cookie = entry->next_cookie;
    if (entry->name[0] != '.')
        listing->seen[atoi(entry->name)]++;
    return 0;
}

/* What is there all the time is seen once, though blocks are split and joined. */
static void listing_goes_on_while_a_directory_grows_and_shrinks(void **state)
{
    static struct listing listing;
    struct fixture *f = *state;
    uint64_t at = 0;

    mount_with_blocks_of(f, 512);
    uint64_t dir = make_large(f, NAMES / 2);
    for (int step = 0;; step++) {
        listing.cookie = 0;
        assert_ok(pmfs_readdir(f->fs, dir, at, 0, take_one, &listing));
        if (!listing.cookie)
            break;
        assert_true(listing.cookie > at && listing.cookie <= INT64_MAX);
        at = listing.cookie;
        int other = step < NAMES / 2 ? NAMES / 2 + step : NAMES - 1;

        if (step < NAMES / 4)
            assert_ok(
                pmfs_link(f->fs, find(f, ROOT, "file"), dir, name_of(other), &f->attr));
        else if (step < NAMES / 2 && step % 8)
            pmfs_unlink(f->fs, dir, name_of(step - NAMES / 4));
    }
    for (int i = NAMES / 4; i < NAMES / 2; i++)
        assert_int_equal(listing.seen[i], 1);
    fixture_fsck_and_mount(f);
}

/* Shrinking may want a block; without one it goes on all the same. */
static void names_are_removed_from_a_full_filesystem(void **state)
{
    struct fixture *f = *state;
    static uint8_t bytes[65536];
    struct pmfs_statfs statfs;
    size_t done;

    f->mkfs.pool.block_size = 512;
    fixture_mkfs(f, 4 * MIB);
    fixture_mount(f);
    uint64_t dir = make_large(f, 1000);
    uint64_t filler = make_file(f, ROOT, "filler");
    uint64_t at = 0;
    for (size_t size = sizeof(bytes); size > 0; size /= 2) {
        while (pmfs_write(f->fs, filler, at, bytes, size, 0, &done) == 0)
            at += done;
    }
    assert_ok(pmfs_statfs(f->fs, &statfs));
    assert_int_equal(statfs.blocks_available, 0);
    for (int i = 0; i < 1000; i++)
        assert_ok(pmfs_unlink(f->fs, dir, name_of(i)));
    assert_ok(pmfs_rmdir(f->fs, ROOT, "large"));
    fixture_fsck_and_mount(f);
}

/* ---- Cost ---------------------------------------------------------------------- */

static void note_most(uint64_t *most, uint64_t fences)
{
    if (fences > *most)
        *most = fences;
}

/* Splitting and joining are part of the call: three fences whatever happens, and less
 * where only little changes. */
static void growing_and_shrinking_cost_three_fences_at_most(void **state)
{
    struct fixture *f = *state;
    uint64_t adding = 0, renaming = 0, removing = 0;

    mount_with_blocks_of(f, 512);
    uint64_t dir = make_large(f, 1);
    uint64_t file = find(f, ROOT, "file");
    for (int i = 1; i < 300; i++)
        note_most(&adding,
                  FENCES(f, pmfs_link(f->fs, file, dir, name_of(i), &f->attr)));
    for (int i = 0; i < 300; i++) {
        char to[PMFS_NAME_MAX + 1];

        strcpy(to, name_of(300 + i));
        note_most(&renaming,
                  FENCES(f, pmfs_rename(f->fs, dir, name_of(i), dir, to, 0)));
    }
    for (int i = 300; i < 600; i++)
        note_most(&removing, FENCES(f, pmfs_unlink(f->fs, dir, name_of(i))));
    assert_int_equal(adding, 3);
    assert_int_equal(renaming, 3);
    assert_int_equal(removing, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(names_are_found_and_blocks_given_back_with_blocks_of_512),
        TEST_EMPTY(names_are_found_and_blocks_given_back_with_blocks_of_4096),
        TEST_EMPTY(names_are_found_and_blocks_given_back_with_blocks_of_65536),
        TEST_EMPTY(a_very_large_directory_has_all_its_names),
        TEST_EMPTY_IN_PROCESS(blocks_of_a_shrunk_directory_are_few),
        TEST_EMPTY(names_change_within_a_directory_as_it_grows),
        TEST_EMPTY(names_leave_whiteouts_in_a_directory_as_it_grows),
        TEST_EMPTY(one_name_leaves_no_blocks_behind),
        TEST_EMPTY(listing_goes_on_while_a_directory_grows_and_shrinks),
        TEST_EMPTY(names_are_removed_from_a_full_filesystem),
        TEST_EMPTY_IN_PROCESS(growing_and_shrinking_cost_three_fences_at_most),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
