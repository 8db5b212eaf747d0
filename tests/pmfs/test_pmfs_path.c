/* SPDX-License-Identifier: BSD-3-Clause */
/* test_pmfs_path.c - calls by path: components, links, slashes, and the way back. */
#include "tests/pmfs/pmfs_fixture.h"

#include <pthread.h>

static uint64_t path_mkdir(struct fixture *f, const char *path)
{
    assert_ok(pmfs_path_mkdir(f->fs, ROOT, path, 0755, &nobody, &f->attr));
    return f->attr.ino;
}

static void path_symlink(struct fixture *f, const char *target, const char *path)
{
    assert_ok(pmfs_path_symlink(f->fs, target, ROOT, path, &nobody, &f->attr));
}

static int path_open(struct fixture *f, const char *path, int flags)
{
    return pmfs_path_open(f->fs, ROOT, path, flags, 0644, &nobody, &f->attr);
}

static uint64_t path_create(struct fixture *f, const char *path)
{
    assert_ok(path_open(f, path, O_CREAT | O_EXCL | O_WRONLY));
    pmfs_release(f->fs, f->attr.ino);
    return f->attr.ino;
}

static int path_stat(struct fixture *f, const char *path, unsigned flags)
{
    return pmfs_path_getattr(f->fs, ROOT, path, flags, &f->attr);
}

static void assert_leads_to(struct fixture *f, const char *path, uint64_t ino)
{
    assert_ok(path_stat(f, path, 0));
    assert_int_equal(f->attr.ino, ino);
}

/* ---- Components ---------------------------------------------------------------- */

static void dots_and_repeated_slashes_lead_where_they_do_in_posix(void **state)
{
    struct fixture *f = *state;
    uint64_t a = path_mkdir(f, "a"), b = path_mkdir(f, "a/b");
    uint64_t file = path_create(f, "/a/b/file");

    assert_leads_to(f, "/", ROOT);
    assert_leads_to(f, "///", ROOT);
    assert_leads_to(f, "..", ROOT);
    assert_leads_to(f, "../../a/./b/..", a);
    assert_leads_to(f, "a//b/", b);
    assert_leads_to(f, "a/b/../b/./file", file);
}

static void relative_path_starts_at_the_given_directory(void **state)
{
    struct fixture *f = *state;
    uint64_t a = path_mkdir(f, "a"), b = path_mkdir(f, "a/b");

    assert_ok(pmfs_path_getattr(f->fs, a, "b", 0, &f->attr));
    assert_int_equal(f->attr.ino, b);
    assert_ok(pmfs_path_getattr(f->fs, b, "../..", 0, &f->attr));
    assert_int_equal(f->attr.ino, ROOT);
    assert_ok(pmfs_path_getattr(f->fs, b, "/a", 0, &f->attr));
    assert_int_equal(f->attr.ino, a);
}

static void impossible_path_gets_its_errno(void **state)
{
    struct fixture *f = *state;
    char name[PMFS_NAME_MAX + 2], path[PMFS_PATH_MAX + 2];
    uint64_t file = path_create(f, "file");

    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    for (size_t i = 0; i + 1 < sizeof(path); i++)
        path[i] = i % 2 ? '/' : '.';
    path[PMFS_PATH_MAX + 1] = 0;
    assert_error(path_stat(f, "", 0), ENOENT);
    assert_error(path_stat(f, "none", 0), ENOENT);
    assert_error(path_stat(f, "none/a", 0), ENOENT);
    assert_error(path_stat(f, "file/a", 0), ENOTDIR);
    assert_error(path_stat(f, "file/", 0), ENOTDIR);
    assert_error(path_stat(f, name, 0), ENAMETOOLONG);
    assert_error(path_stat(f, path, 0), ENAMETOOLONG);
    path[PMFS_PATH_MAX] = 0;
    assert_leads_to(f, path, ROOT);
    assert_error(pmfs_path_getattr(f->fs, file, "a", 0, &f->attr), ENOTDIR);
    assert_error(pmfs_path_getattr(f->fs, 999, "a", 0, &f->attr), ESTALE);
}

/* ---- Symbolic links ------------------------------------------------------------ */

static void links_are_followed_from_where_they_are(void **state)
{
    struct fixture *f = *state;
    uint64_t a = path_mkdir(f, "a");
    uint64_t file = path_create(f, "a/file");
    char target[PMFS_SYMLINK_MAX + 1];

    path_symlink(f, "file", "a/near");
    path_symlink(f, "/a/near", "far");
    path_symlink(f, "a/", "dir");
    assert_leads_to(f, "far", file);
    assert_leads_to(f, "dir/near", file);
    assert_leads_to(f, "dir", a);
    assert_ok(path_stat(f, "dir", PMFS_PATH_NOFOLLOW));
    assert_true(S_ISLNK(f->attr.mode));
    assert_ok(path_stat(f, "dir/", PMFS_PATH_NOFOLLOW));
    assert_int_equal(f->attr.ino, a);
    assert_ok(pmfs_path_readlink(f->fs, ROOT, "far", target, sizeof(target)));
    assert_string_equal(target, "/a/near");
    assert_error(pmfs_path_readlink(f->fs, ROOT, "a", target, sizeof(target)), EINVAL);
}

static void forty_links_are_followed_and_no_more(void **state)
{
    struct fixture *f = *state;
    uint64_t file = path_create(f, "0");
    char path[16], target[16];

    for (int i = 1; i <= 41; i++) {
        snprintf(path, sizeof(path), "%d", i);
        snprintf(target, sizeof(target), "%d", i - 1);
        path_symlink(f, target, path);
    }
    path_symlink(f, "loop", "loop");
    assert_leads_to(f, "40", file);
    assert_error(path_stat(f, "41", 0), ELOOP);
    assert_error(path_stat(f, "loop", 0), ELOOP);
    assert_error(path_stat(f, "loop/a", 0), ELOOP);
}

static void way_out_is_answered_with_what_is_left_of_it(void **state)
{
    static const struct {
        const char *path, *outside;
    } ways[] = {
        {"..", ".."},
        {"a/../../b/c", "../b/c"},
        {"link", "/etc/passwd"},
        {"dir/x/..", "/etc/x/.."},
        {"up/x", "../x"},
    };
    struct fixture *f = *state;
    struct pmfs_place place;

    path_mkdir(f, "a");
    path_symlink(f, "/etc/passwd", "link");
    path_symlink(f, "/etc", "dir");
    path_symlink(f, "a/../..", "up");
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        assert_error(
            pmfs_path_parent(f->fs, ROOT, ways[i].path, PMFS_PATH_BENEATH, &place),
            EXDEV);
        assert_string_equal(place.outside, ways[i].outside);
        pmfs_place_release(f->fs, &place);
    }
    assert_ok(pmfs_path_parent(f->fs, ROOT, "link",
                               PMFS_PATH_BENEATH | PMFS_PATH_NOFOLLOW, &place));
    assert_string_equal(place.name, "link");
    pmfs_place_release(f->fs, &place);
}

/* ---- Opening ------------------------------------------------------------------- */

static void open_answers_as_open_2_does(void **state)
{
    struct fixture *f = *state;

    path_mkdir(f, "dir");
    path_create(f, "file");
    path_symlink(f, "file", "link");
    path_symlink(f, "made", "dangling");
    assert_error(path_open(f, "none", O_RDONLY), ENOENT);
    assert_error(path_open(f, "file", O_CREAT | O_EXCL), EEXIST);
    assert_error(path_open(f, "dangling", O_CREAT | O_EXCL), EEXIST);
    assert_error(path_open(f, "dir", O_WRONLY), EISDIR);
    assert_error(path_open(f, "dir", O_CREAT), EISDIR);
    assert_error(path_open(f, "new/", O_CREAT), EISDIR);
    assert_error(path_open(f, "file", O_DIRECTORY), ENOTDIR);
    assert_error(path_open(f, "file/", O_RDONLY), ENOTDIR);
    assert_error(path_open(f, "link", O_NOFOLLOW), ELOOP);
    assert_error(path_open(f, "link", O_NOFOLLOW | O_DIRECTORY), ENOTDIR);
    assert_error(path_open(f, "dir", O_CREAT | O_DIRECTORY), EINVAL);
    assert_ok(path_open(f, "dangling", O_CREAT | O_WRONLY));
    pmfs_release(f->fs, f->attr.ino);
    assert_leads_to(f, "made", f->attr.ino);
    assert_ok(path_open(f, "link", O_NOFOLLOW | O_PATH));
    assert_true(S_ISLNK(f->attr.mode));
    pmfs_release(f->fs, f->attr.ino);
}

static void open_file_lives_on_without_its_name(void **state)
{
    struct fixture *f = *state;

    assert_ok(path_open(f, "file", O_CREAT | O_RDWR));

    uint64_t ino = f->attr.ino;

    write_text(f, ino, 0, "text");
    assert_ok(pmfs_path_unlink(f->fs, ROOT, "file"));
    assert_bytes(f, ino, 0, "text", 4);
    pmfs_release(f->fs, ino);
    assert_error(pmfs_getattr(f->fs, ino, &f->attr), ESTALE);
}

static void truncating_open_empties_a_file(void **state)
{
    struct fixture *f = *state;

    write_text(f, path_create(f, "file"), 0, "text");
    assert_ok(path_open(f, "file", O_WRONLY | O_TRUNC));
    assert_int_equal(f->attr.size, 0);
    pmfs_release(f->fs, f->attr.ino);
}

/* ---- Making, removing, renaming ------------------------------------------------ */

static void slash_is_for_directories_only(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = f->fs;

    path_mkdir(f, "dir/");
    path_create(f, "file");
    path_symlink(f, "dir", "link");
    assert_error(pmfs_path_symlink(fs, "x", ROOT, "new/", &nobody, &f->attr), ENOENT);
    assert_error(pmfs_path_symlink(fs, "x", ROOT, "dir/", &nobody, &f->attr), EEXIST);
    assert_error(pmfs_path_unlink(fs, ROOT, "file/"), ENOTDIR);
    assert_error(pmfs_path_unlink(fs, ROOT, "dir/"), EISDIR);
    assert_error(pmfs_path_unlink(fs, ROOT, "none/"), ENOENT);
    assert_error(pmfs_path_rmdir(fs, ROOT, "link/"), ENOTDIR);
    assert_error(pmfs_path_rename(fs, ROOT, "file/", ROOT, "x", 0), ENOTDIR);
    assert_error(pmfs_path_rename(fs, ROOT, "file", ROOT, "x/", 0), ENOTDIR);
    assert_ok(pmfs_path_rename(fs, ROOT, "dir/", ROOT, "moved/", 0));
    assert_ok(pmfs_path_rmdir(fs, ROOT, "moved/"));
}

static void nameless_file_is_opened_by_its_directory(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = f->fs;
    const int flags = O_TMPFILE | O_RDWR;

    path_mkdir(f, "dir");
    path_create(f, "file");
    path_symlink(f, "dir", "link");
    assert_ok(pmfs_path_open(fs, ROOT, "link", flags, 0600, &nobody, &f->attr));
    assert_int_equal(f->attr.nlink, 0);
    uint64_t ino = f->attr.ino;
    assert_ok(pmfs_link(fs, ino, ROOT, "linked", &f->attr));
    pmfs_release(fs, ino);
    assert_ok(pmfs_path_open(fs, ROOT, "/", flags | O_EXCL, 0600, &nobody, &f->attr));
    assert_error(pmfs_link(fs, f->attr.ino, ROOT, "never", &f->attr), ENOENT);
    pmfs_release(fs, f->attr.ino);
    assert_error(pmfs_path_open(fs, ROOT, "file", flags, 0600, &nobody, &f->attr),
                 ENOTDIR);
    assert_error(
        pmfs_path_open(fs, ROOT, "link", flags | O_NOFOLLOW, 0600, &nobody, &f->attr),
        ENOTDIR);
    assert_error(pmfs_path_open(fs, ROOT, "dir", O_TMPFILE, 0600, &nobody, &f->attr),
                 EINVAL);
    assert_error(
        pmfs_path_open(fs, ROOT, "dir", flags | O_CREAT, 0600, &nobody, &f->attr),
        EINVAL);
}

static void whiteout_takes_the_place_of_a_path(void **state)
{
    struct fixture *f = *state;

    path_mkdir(f, "a");
    path_mkdir(f, "b");
    path_create(f, "a/file");
    assert_ok(pmfs_path_rename_whiteout(f->fs, ROOT, "a/file", ROOT, "b/../b/new", 0,
                                        &nobody));
    assert_ok(pmfs_path_getattr(f->fs, ROOT, "a/file", 0, &f->attr));
    assert_int_equal(f->attr.mode, S_IFCHR);
    assert_ok(pmfs_path_getattr(f->fs, ROOT, "b/new", 0, &f->attr));
    assert_true(S_ISREG(f->attr.mode));
}

static void dots_and_the_root_are_neither_made_nor_removed(void **state)
{
    struct fixture *f = *state;
    struct pmfs *fs = f->fs;

    path_mkdir(f, "a");
    assert_error(pmfs_path_mkdir(fs, ROOT, "/", 0755, &nobody, &f->attr), EEXIST);
    assert_error(pmfs_path_mkdir(fs, ROOT, "a/.", 0755, &nobody, &f->attr), EEXIST);
    assert_error(pmfs_path_rmdir(fs, ROOT, "/"), EBUSY);
    assert_error(pmfs_path_rmdir(fs, ROOT, "a/."), EINVAL);
    assert_error(pmfs_path_rmdir(fs, ROOT, "a/.."), ENOTEMPTY);
    assert_error(pmfs_path_unlink(fs, ROOT, "/"), EISDIR);
    assert_error(pmfs_path_unlink(fs, ROOT, "a/."), EISDIR);
    assert_error(pmfs_path_rename(fs, ROOT, "/", ROOT, "x", 0), EBUSY);
    assert_error(pmfs_path_rename(fs, ROOT, "a", ROOT, "a/..", 0), EBUSY);
    assert_error(pmfs_path_rename(fs, ROOT, "a", ROOT, ".", PMFS_RENAME_NOREPLACE),
                 EEXIST);
}

static void link_follows_if_asked(void **state)
{
    struct fixture *f = *state;
    uint64_t file = path_create(f, "file");

    path_symlink(f, "file", "link");
    assert_ok(pmfs_path_link(f->fs, ROOT, "link", ROOT, "b", 0));
    assert_leads_to(f, "b", file);
    assert_ok(pmfs_path_link(f->fs, ROOT, "link", ROOT, "second", PMFS_PATH_NOFOLLOW));
    assert_ok(path_stat(f, "second", PMFS_PATH_NOFOLLOW));
    assert_true(S_ISLNK(f->attr.mode));
    assert_int_equal(f->attr.nlink, 2);
}

static void setattr_reaches_what_the_path_leads_to(void **state)
{
    const struct pmfs_attr values = {.mode = 0600};
    struct fixture *f = *state;
    uint64_t file = path_create(f, "file");

    path_symlink(f, "file", "link");
    assert_ok(
        pmfs_path_setattr(f->fs, ROOT, "link", 0, &values, PMFS_SET_MODE, &f->attr));
    assert_int_equal(f->attr.ino, file);
    assert_int_equal(f->attr.mode, S_IFREG | 0600);
}

/* ---- The way back -------------------------------------------------------------- */

static void assert_path_of(struct fixture *f, uint64_t ino, const char *expected)
{
    char path[64];

    assert_ok(pmfs_path_of(f->fs, ino, path, sizeof(path)));
    assert_string_equal(path, expected);
}

/* Longer than any path that a call takes, as far as that is allowed to be. */
static void path_of_a_deep_directory_is_whole_or_refused(void **state)
{
    static char path[3 * PMFS_PATH_MAX];
    struct fixture *f = *state;
    uint64_t dir = ROOT;

    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
    for (uint32_t depth = 1; depth <= PMFS_PATH_MAX; depth++)
        dir = make_dir(f, dir, "d");
    assert_ok(pmfs_path_of(f->fs, dir, path, sizeof(path)));
    assert_int_equal(strlen(path), 2 * PMFS_PATH_MAX);
    for (uint32_t i = 0; i < PMFS_PATH_MAX; i++)
        assert_memory_equal(path + 2 * i, "/d", 2);
    assert_error(pmfs_path_of(f->fs, dir, path, PMFS_PATH_MAX), ERANGE);
    dir = make_dir(f, dir, "d");
    assert_error(pmfs_path_of(f->fs, dir, path, sizeof(path)), ENAMETOOLONG);
    fixture_fsck_and_mount(f);
    assert_int_equal(f->summary.directories, PMFS_PATH_MAX + 2);
}

static void path_of_a_directory_follows_its_moves(void **state)
{
    struct fixture *f = *state;
    char small[5];

    path_mkdir(f, "a");
    path_mkdir(f, "z");

    uint64_t b = path_mkdir(f, "a/bb");

    assert_path_of(f, ROOT, "/");
    assert_path_of(f, b, "/a/bb");
    assert_error(pmfs_path_of(f->fs, b, small, sizeof(small)), ERANGE);
    assert_ok(pmfs_path_rename(f->fs, ROOT, "a/bb", ROOT, "z/c", 0));
    assert_path_of(f, b, "/z/c");
    assert_ok(pmfs_path_of(f->fs, b, small, sizeof(small)));
    assert_ok(pmfs_open(f->fs, b));
    assert_ok(pmfs_path_rmdir(f->fs, ROOT, "z/c"));
    assert_error(pmfs_path_of(f->fs, b, small, sizeof(small)), ENOENT);
    pmfs_release(f->fs, b);
    assert_error(pmfs_path_of(f->fs, path_create(f, "file"), small, 5), ENOTDIR);
}

/* ---- Threads ------------------------------------------------------------------- */

enum { ROUNDS = 2000 };

/* Moves a directory to and fro, and remakes another. */
static void *move(void *arg)
{
    struct fixture *f = arg;
    struct pmfs_attr attr;

    for (int i = 0; i < ROUNDS; i++) {
        pmfs_path_rename(f->fs, ROOT, "a/d", ROOT, "b/d", 0);
        pmfs_path_rmdir(f->fs, ROOT, "a/e");
        pmfs_path_mkdir(f->fs, ROOT, "a/e", 0755, &nobody, &attr);
        pmfs_path_rename(f->fs, ROOT, "b/d", ROOT, "a/d", 0);
    }
    return NULL;
}

static void walk_beside_moves_finds_the_right_file_or_none(void **state)
{
    struct fixture *f = *state;
    struct pmfs_attr attr;
    pthread_t thread;
    int found = 0;
    char path[64];

    path_mkdir(f, "a");
    path_mkdir(f, "b");
    path_mkdir(f, "a/e");

    uint64_t d = path_mkdir(f, "a/d");
    uint64_t file = path_create(f, "a/d/file");

    assert_int_equal(pthread_create(&thread, NULL, move, f), 0);
    for (int i = 0; i < ROUNDS; i++) {
        int rc = pmfs_path_getattr(f->fs, ROOT, i % 2 ? "a/d/file" : "b/d/../d/file", 0,
                                   &attr);

        assert_true(rc == 0 ? attr.ino == file : rc == -ENOENT);
        found += rc == 0;
        rc = pmfs_path_open(f->fs, ROOT, "a/e/x", O_CREAT | O_RDWR, 0644, &nobody,
                            &attr);
        if (rc == 0) {
            assert_ok(pmfs_path_unlink(f->fs, ROOT, "a/e/x"));
            pmfs_release(f->fs, attr.ino);
        } else {
            assert_int_equal(rc, -ENOENT);
        }
        assert_ok(pmfs_path_of(f->fs, d, path, sizeof(path)));
    }
    pthread_join(thread, NULL);
    assert_true(found > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(dots_and_repeated_slashes_lead_where_they_do_in_posix),
        TEST(relative_path_starts_at_the_given_directory),
        TEST(impossible_path_gets_its_errno),
        TEST(links_are_followed_from_where_they_are),
        TEST(forty_links_are_followed_and_no_more),
        TEST(way_out_is_answered_with_what_is_left_of_it),
        TEST(open_answers_as_open_2_does),
        TEST(open_file_lives_on_without_its_name),
        TEST(truncating_open_empties_a_file),
        TEST(slash_is_for_directories_only),
        TEST(nameless_file_is_opened_by_its_directory),
        TEST(whiteout_takes_the_place_of_a_path),
        TEST(dots_and_the_root_are_neither_made_nor_removed),
        TEST(link_follows_if_asked),
        TEST(setattr_reaches_what_the_path_leads_to),
        TEST(path_of_a_directory_follows_its_moves),
        TEST_EMPTY(path_of_a_deep_directory_is_whole_or_refused),
        TEST(walk_beside_moves_finds_the_right_file_or_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
