/* SPDX-License-Identifier: BSD-3-Clause */
/* Names whose hashes are equal in all bits: each is found, and listed once. */
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pmfs-proto/core/dirent.h"
#include "pmfs-proto/core/inode.h"
#include "tests/pmfs/pmfs_fixture.h"

#define OTHERS 200 /* names of any hash, in the same directory */

/* With the others in it, in a new filesystem. */
static uint64_t make_directory(struct fixture *f)
{
    char name[16];

    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
    uint64_t dir = make_dir(f, ROOT, "large");
    for (int i = 0; i < OTHERS; i++) {
        snprintf(name, sizeof(name), "%d", i);
        make_file(f, dir, name);
    }
    return dir;
}

#define EQUAL_SIZE 32u
#define EQUAL_NAMES 8

/*
 * Names whose hashes are equal in all bits. XXH3 multiplies the words of such a name in
 * pairs, each with something added by XOR: who knows the seed makes one factor 0, and
 * the other word is free. False: this seed wants a NUL or a '/'.
 */
static bool make_equal_name(const struct pmfs *fs, int number,
                            char name[EQUAL_SIZE + 1])
{
    for (uint32_t word = 0; word < EQUAL_SIZE / 8; word++) {
        uint64_t secret = XXH_readLE64(XXH3_kSecret + (size_t)8 * word);
        uint64_t zero = word % 2 ? secret - fs->hash_seed : secret + fs->hash_seed;

        if (memchr(&zero, 0, sizeof(zero)) || memchr(&zero, '/', sizeof(zero)))
            continue;
        memset(name, 'a', EQUAL_SIZE);
        name[EQUAL_SIZE] = 0;
        memcpy(name + (size_t)8 * word, &zero, sizeof(zero));
        name[(size_t)8 * (word ^ 1)] += (char)number;
        return true;
    }
    return false;
}

static int note_first(void *arg, const struct pmfs_dirent *entry)
{
    uint64_t *next = arg;

    if (*next)
        return 1;
    *next = entry->next_cookie;
    return 0;
}

/* The names that a listing of one entry at a time has, without "." and "..". */
static int list_one_by_one(struct fixture *f, uint64_t dir)
{
    int names = 0;

    for (uint64_t at = 0;; names++) {
        uint64_t next = 0;

        assert_ok(pmfs_readdir(f->fs, dir, at, 0, note_first, &next));
        if (!next)
            return names - 2;
        assert_true(next > at && next <= INT64_MAX);
        at = next;
    }
}

static void a_listing_that_breaks_off_between_equal_hashes_misses_none(void **state)
{
    char names[EQUAL_NAMES][EQUAL_SIZE + 1];
    struct fixture *f = *state;
    uint64_t dir;

    dir = make_directory(f);
    for (int i = 0; i < EQUAL_NAMES; i++) {
        if (!make_equal_name(f->fs, i, names[i]))
            skip();
        assert_true(dirent_hash(f->fs, names[0], EQUAL_SIZE) ==
                    dirent_hash(f->fs, names[i], EQUAL_SIZE));
        make_file(f, dir, names[i]);
        assert_int_equal(list_one_by_one(f, dir), OTHERS + i + 1);
    }
    for (int i = 0; i < EQUAL_NAMES - 1; i++) {
        assert_ok(pmfs_unlink(f->fs, dir, names[i]));
        find(f, dir, names[EQUAL_NAMES - 1]);
        assert_int_equal(list_one_by_one(f, dir), OTHERS + EQUAL_NAMES - i - 1);
    }
    fixture_fsck_and_mount(f);
}

struct first {
    uint64_t next_cookie; /* 0: there is none */
    char name[PMFS_NAME_MAX + 1];
};

static int note_name(void *arg, const struct pmfs_dirent *entry)
{
    struct first *first = arg;

    if (first->next_cookie)
        return 1;
    first->next_cookie = entry->next_cookie;
    strcpy(first->name, entry->name);
    return 0;
}

/* The number of an equal name, or -1. */
static int number_of(char names[][EQUAL_SIZE + 1], int count, const char *name)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0)
            return i;
    }
    return -1;
}

/* Each goes when it has been listed, and another takes its place: those that stay are seen
 * once. */
static void a_listing_sees_equal_hashes_once_while_those_before_go(void **state)
{
    char names[2 * EQUAL_NAMES][EQUAL_SIZE + 1];
    int seen[2 * EQUAL_NAMES] = {0}, others = 0;
    struct fixture *f = *state;
    uint64_t dir;

    dir = make_directory(f);
    for (int i = 0; i < 2 * EQUAL_NAMES; i++) {
        if (!make_equal_name(f->fs, i, names[i]))
            skip();
        if (i < EQUAL_NAMES)
            make_file(f, dir, names[i]);
    }
    for (struct first entry = {0};;) {
        uint64_t at = entry.next_cookie;

        entry.next_cookie = 0;
        assert_ok(pmfs_readdir(f->fs, dir, at, 0, note_name, &entry));
        if (!entry.next_cookie)
            break;
        int number = number_of(names, 2 * EQUAL_NAMES, entry.name);
        if (number < 0) {
            others++;
            continue;
        }
        seen[number]++;
        assert_ok(pmfs_unlink(f->fs, dir, names[number]));
        if (number < EQUAL_NAMES)
            make_file(f, dir, names[EQUAL_NAMES + number]);
    }
    assert_int_equal(others, OTHERS + 2);
    for (int i = 0; i < EQUAL_NAMES; i++)
        assert_int_equal(seen[i], 1);
    fixture_fsck_and_mount(f);
}

/* More than have positions of their own are refused; all other names are not. */
static void a_name_too_many_with_one_hash_is_refused(void **state)
{
    struct fixture *f = *state;
    char name[EQUAL_SIZE + 1];
    uint64_t dir;
    int count = 0;

    f->mkfs.pool.block_size = 65536;
    dir = make_directory(f);
    if (!make_equal_name(f->fs, 0, name))
        skip();
    while (pmfs_mknod(f->fs, dir, name, S_IFREG, 0, &nobody, &f->attr) == 0) {
        assert_true(count < 100);
        make_equal_name(f->fs, ++count, name);
    }
    assert_true(count > 60);
    assert_error(pmfs_mknod(f->fs, dir, name, S_IFREG, 0, &nobody, &f->attr), ENOSPC);
    make_file(f, dir, "another");
    assert_int_equal(list_one_by_one(f, dir), OTHERS + 1 + count);
    fixture_fsck_and_mount(f);
    for (int i = 0; i < count; i++) {
        make_equal_name(f->fs, i, name);
        assert_ok(pmfs_unlink(f->fs, dir, name));
        assert_int_equal(list_one_by_one(f, dir), OTHERS + count - i);
    }
    fixture_fsck_and_mount(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(a_listing_that_breaks_off_between_equal_hashes_misses_none),
        TEST_EMPTY(a_listing_sees_equal_hashes_once_while_those_before_go),
        TEST_EMPTY(a_name_too_many_with_one_hash_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
