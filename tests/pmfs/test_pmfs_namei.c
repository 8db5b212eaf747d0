/* SPDX-License-Identifier: BSD-3-Clause */
/* Names: making, finding, linking, removing, renaming, listing. */
#include "tests/pmfs/pmfs_fixture.h"

/* ---- Making and finding -------------------------------------------------------- */

static void new_filesystem_has_an_empty_root(void **state)
{
    struct fixture *f = *state;
    struct pmfs_attr attr = attr_of(f, ROOT);

    assert_int_equal(attr.mode, S_IFDIR | 0755);
    assert_int_equal(attr.nlink, 2);
    assert_int_equal(attr.size, 0);
}

static void made_file_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_int_equal(find(f, ROOT, "a"), ino);
    assert_int_equal(f->attr.mode, S_IFREG | 0644);
    assert_int_equal(f->attr.nlink, 1);
    assert_int_equal(f->attr.uid, nobody.uid);
    assert_int_equal(f->attr.gid, nobody.gid);
}

static void made_file_is_there_after_remount(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    fixture_remount(f);
    assert_int_equal(find(f, ROOT, "a"), ino);
}

static void unknown_name_is_enoent(void **state)
{
    struct fixture *f = *state;

    assert_error(pmfs_lookup(f->fs, ROOT, "a", &f->attr), ENOENT);
}

static void existing_name_is_eexist(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "a");
    assert_error(pmfs_create(f->fs, ROOT, "a", 0600, &nobody, &f->attr), EEXIST);
}

static void name_of_255_bytes_works_and_256_is_enametoolong(void **state)
{
    struct fixture *f = *state;
    char name[257];

    memset(name, 'n', sizeof(name));
    name[255] = 0;
    uint64_t ino = make_file(f, ROOT, name);
    assert_int_equal(find(f, ROOT, name), ino);
    name[255] = 'n';
    name[256] = 0;
    assert_error(pmfs_mkdir(f->fs, ROOT, name, 0755, &nobody, &f->attr), ENAMETOOLONG);
    assert_error(pmfs_lookup(f->fs, ROOT, name, &f->attr), ENAMETOOLONG);
}

static void name_with_a_slash_or_empty_is_einval(void **state)
{
    struct fixture *f = *state;

    assert_error(pmfs_mkdir(f->fs, ROOT, "a/b", 0755, &nobody, &f->attr), EINVAL);
    assert_error(pmfs_mkdir(f->fs, ROOT, "", 0755, &nobody, &f->attr), EINVAL);
}

static void dots_are_found_but_cannot_be_made_or_removed(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    assert_int_equal(find(f, dir, "."), dir);
    assert_int_equal(find(f, dir, ".."), ROOT);
    assert_refused(pmfs_mkdir(f->fs, dir, "..", 0755, &nobody, &f->attr), EEXIST);
    assert_refused(pmfs_rmdir(f->fs, dir, "."), EINVAL);
    assert_refused(pmfs_rmdir(f->fs, dir, ".."), ENOTEMPTY);
    assert_refused(pmfs_rename(f->fs, ROOT, "d", dir, ".", 0), EINVAL);
}

static void file_as_a_directory_is_enotdir(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_error(pmfs_lookup(f->fs, ino, "b", &f->attr), ENOTDIR);
    assert_error(pmfs_mkdir(f->fs, ino, "b", 0755, &nobody, &f->attr), ENOTDIR);
    assert_error(pmfs_unlink(f->fs, ino, "b"), ENOTDIR);
}

static void special_files_keep_their_type_and_device(void **state)
{
    struct fixture *f = *state;

    assert_ok(pmfs_mknod(f->fs, ROOT, "c", S_IFCHR | 0600, 0x103, &nobody, &f->attr));
    assert_ok(pmfs_mknod(f->fs, ROOT, "p", S_IFIFO | 0600, 7, &nobody, &f->attr));
    assert_ok(pmfs_mknod(f->fs, ROOT, "s", S_IFSOCK | 0600, 0, &nobody, &f->attr));
    fixture_remount(f);
    find(f, ROOT, "c");
    assert_int_equal(f->attr.mode, S_IFCHR | 0600);
    assert_int_equal(f->attr.rdev, 0x103);
    find(f, ROOT, "p");
    assert_int_equal(f->attr.mode, S_IFIFO | 0600);
    assert_int_equal(f->attr.rdev, 0);
    assert_refused(pmfs_mknod(f->fs, ROOT, "d", S_IFDIR | 0600, 0, &nobody, &f->attr),
                   EINVAL);
}

static void setgid_directory_gives_its_group_and_bit(void **state)
{
    struct fixture *f = *state;
    const struct pmfs_cred owner = {.uid = 1, .gid = 2};

    assert_ok(pmfs_mkdir(f->fs, ROOT, "d", 02775, &owner, &f->attr));
    uint64_t dir = f->attr.ino;
    make_file(f, dir, "f");
    assert_int_equal(f->attr.gid, 2);
    assert_int_equal(f->attr.uid, nobody.uid);
    make_dir(f, dir, "sub");
    assert_int_equal(f->attr.gid, 2);
    assert_int_equal(f->attr.mode, S_IFDIR | 02755);
}

static void mkdir_counts_a_link_of_the_parent(void **state)
{
    struct fixture *f = *state;

    make_dir(f, ROOT, "d");
    assert_int_equal(f->attr.nlink, 2);
    assert_int_equal(attr_of(f, ROOT).nlink, 3);
    assert_ok(pmfs_rmdir(f->fs, ROOT, "d"));
    assert_int_equal(attr_of(f, ROOT).nlink, 2);
}

static void change_of_a_directory_sets_its_times(void **state)
{
    struct fixture *f = *state;
    struct pmfs_attr before = attr_of(f, ROOT);

    make_file(f, ROOT, "a");
    struct pmfs_attr made = attr_of(f, ROOT);
    assert_true(made.mtime_ns > before.mtime_ns);
    assert_int_equal(made.mtime_ns, made.ctime_ns);
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_true(attr_of(f, ROOT).mtime_ns > made.mtime_ns);
}

/* ---- Symbolic links ------------------------------------------------------------ */

static void symlink_is_read_back(void **state)
{
    struct fixture *f = *state;
    char target[64];

    assert_ok(pmfs_symlink(f->fs, ROOT, "l", "some/where", &nobody, &f->attr));
    fixture_remount(f);
    uint64_t ino = find(f, ROOT, "l");
    assert_int_equal(f->attr.mode, S_IFLNK | 0777);
    assert_int_equal(f->attr.size, strlen("some/where"));
    assert_ok(pmfs_readlink(f->fs, ino, target, sizeof(target)));
    assert_string_equal(target, "some/where");
    assert_refused(pmfs_readlink(f->fs, ino, target, strlen("some/where")), ERANGE);
    assert_refused(pmfs_readlink(f->fs, ROOT, target, sizeof(target)), EINVAL);
}

static void symlink_of_4095_bytes_works_and_4096_is_enametoolong(void **state)
{
    struct fixture *f = *state;
    char target[PMFS_SYMLINK_MAX + 2], found[PMFS_SYMLINK_MAX + 1];

    memset(target, 't', sizeof(target));
    target[PMFS_SYMLINK_MAX + 1] = 0;
    assert_refused(pmfs_symlink(f->fs, ROOT, "l", target, &nobody, &f->attr),
                   ENAMETOOLONG);
    target[PMFS_SYMLINK_MAX] = 0;
    assert_ok(pmfs_symlink(f->fs, ROOT, "l", target, &nobody, &f->attr));
    assert_ok(pmfs_readlink(f->fs, f->attr.ino, found, sizeof(found)));
    assert_string_equal(found, target);
    assert_refused(pmfs_symlink(f->fs, ROOT, "m", "", &nobody, &f->attr), EINVAL);
}

static void long_symlink_works_with_blocks_of_512_bytes(void **state)
{
    struct fixture *f = *state;
    char target[PMFS_SYMLINK_MAX + 1], found[PMFS_SYMLINK_MAX + 1];

    f->mkfs.pool.block_size = 512;
    fixture_mkfs(f, 4 * MIB);
    fixture_mount(f);
    memset(target, 't', sizeof(target));
    target[PMFS_SYMLINK_MAX] = 0;
    assert_ok(pmfs_symlink(f->fs, ROOT, "l", target, &nobody, &f->attr));
    assert_int_equal(f->attr.blocks, 9);
    assert_ok(pmfs_readlink(f->fs, f->attr.ino, found, sizeof(found)));
    assert_string_equal(found, target);
    fixture_fsck_and_mount(f);
    assert_ok(pmfs_unlink(f->fs, ROOT, "l"));
    fixture_fsck_and_mount(f);
}

/* ---- Hard links ---------------------------------------------------------------- */

static void link_is_another_name_of_the_same_inode(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t dir = make_dir(f, ROOT, "d");

    assert_ok(pmfs_link(f->fs, ino, dir, "b", &f->attr));
    assert_int_equal(f->attr.nlink, 2);
    assert_int_equal(find(f, dir, "b"), ino);
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(attr_of(f, ino).nlink, 1);
}

static void link_of_a_directory_is_eperm(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    assert_error(pmfs_link(f->fs, dir, ROOT, "e", &f->attr), EPERM);
}

static void link_to_an_existing_name_is_eexist(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_error(pmfs_link(f->fs, ino, ROOT, "a", &f->attr), EEXIST);
}

static void link_of_an_unlinked_open_file_is_enoent(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(pmfs_open(f->fs, ino));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_error(pmfs_link(f->fs, ino, ROOT, "b", &f->attr), ENOENT);
    pmfs_release(f->fs, ino);
}

static void links_end_at_link_max_with_emlink(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    char name[16];

    for (int i = 1; i < PMFS_LINK_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        assert_ok(pmfs_link(f->fs, ino, ROOT, name, &f->attr));
    }
    assert_error(pmfs_link(f->fs, ino, ROOT, "one more", &f->attr), EMLINK);
}

/* Of a directory's links two are its own; whatever else makes one more is refused. */
static void directories_in_a_directory_end_at_link_max_with_emlink(void **state)
{
    struct fixture *f = *state;
    char name[16];

    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
    uint64_t full = make_dir(f, ROOT, "full");
    for (int i = 2; i < PMFS_LINK_MAX; i++) {
        snprintf(name, sizeof(name), "%d", i);
        make_dir(f, full, name);
    }
    assert_int_equal(attr_of(f, full).nlink, PMFS_LINK_MAX);
    make_dir(f, ROOT, "other");
    make_file(f, full, "file");
    assert_error(pmfs_mkdir(f->fs, full, "more", 0755, &nobody, &f->attr), EMLINK);
    assert_error(pmfs_rename(f->fs, ROOT, "other", full, "more", 0), EMLINK);
    assert_error(pmfs_rename(f->fs, ROOT, "other", full, "file", PMFS_RENAME_EXCHANGE),
                 EMLINK);
    /* What takes the place of another adds none. */
    assert_ok(pmfs_rename(f->fs, ROOT, "other", full, "7", PMFS_RENAME_EXCHANGE));
    assert_ok(pmfs_rename(f->fs, ROOT, "other", full, "7", 0));
    assert_int_equal(attr_of(f, full).nlink, PMFS_LINK_MAX);
    assert_ok(pmfs_rmdir(f->fs, full, "8"));
    make_dir(f, full, "more");
    fixture_fsck_and_mount(f);
}

/* ---- Removing ------------------------------------------------------------------ */

static void unlinked_file_gives_its_blocks_and_number_back(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "first"); /* the directory has its block now */
    uint64_t before = blocks_free(f);
    uint64_t ino = make_file(f, ROOT, "a");
    write_text(f, ino, 0, "x");
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(blocks_free(f), before);
    assert_error(pmfs_getattr(f->fs, ino, &f->attr), ESTALE);
}

static void number_used_again_has_another_generation(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint32_t generation = f->attr.generation;

    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(make_file(f, ROOT, "a"), ino);
    assert_int_not_equal(f->attr.generation, generation);
}

static void unlink_of_a_directory_is_eisdir(void **state)
{
    struct fixture *f = *state;

    make_dir(f, ROOT, "d");
    assert_error(pmfs_unlink(f->fs, ROOT, "d"), EISDIR);
}

static void rmdir_of_a_file_is_enotdir(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "a");
    assert_error(pmfs_rmdir(f->fs, ROOT, "a"), ENOTDIR);
}

static void rmdir_of_a_full_directory_is_enotempty(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    make_file(f, dir, "a");
    fixture_remount(f);
    assert_error(pmfs_rmdir(f->fs, ROOT, "d"), ENOTEMPTY);
    assert_ok(pmfs_unlink(f->fs, dir, "a"));
    assert_ok(pmfs_rmdir(f->fs, ROOT, "d"));
}

static void nothing_can_be_made_in_a_removed_directory(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    make_file(f, ROOT, "a");
    assert_ok(pmfs_open(f->fs, dir));
    assert_ok(pmfs_rmdir(f->fs, ROOT, "d"));
    assert_error(pmfs_mkdir(f->fs, dir, "e", 0755, &nobody, &f->attr), ENOENT);
    assert_error(pmfs_rename(f->fs, ROOT, "a", dir, "e", 0), ENOENT);
    pmfs_release(f->fs, dir);
    assert_error(pmfs_getattr(f->fs, dir, &f->attr), ESTALE);
}

/* ---- Files without a name ------------------------------------------------------ */

static void open_file_lives_without_a_name(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    write_text(f, ino, 0, "still here");
    assert_ok(pmfs_open(f->fs, ino));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(attr_of(f, ino).nlink, 0);
    assert_bytes(f, ino, 0, "still here", 10);
    pmfs_release(f->fs, ino);
    assert_error(pmfs_getattr(f->fs, ino, &f->attr), ESTALE);
}

static void looked_up_file_lives_until_forgotten(void **state)
{
    struct fixture *f = *state;

    f->mount.flags = PMFS_COUNT_LOOKUPS;
    fixture_remount(f);
    uint64_t ino = make_file(f, ROOT, "a");
    find(f, ROOT, "a");
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    pmfs_forget(f->fs, ino, 1);
    assert_int_equal(attr_of(f, ino).nlink, 0);
    pmfs_forget(f->fs, ino, 1);
    assert_error(pmfs_getattr(f->fs, ino, &f->attr), ESTALE);
}

static void unmounting_frees_open_files_without_a_name(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(pmfs_open(f->fs, ino));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    fixture_unmount(f);
    fixture_fsck(f);
    assert_int_equal(f->summary.orphans, 0);
    assert_int_equal(f->summary.files, 0);
}

static uint64_t make_nameless(struct fixture *f, uint64_t parent, unsigned flags)
{
    assert_ok(pmfs_tmpfile(f->fs, parent, 0640, flags, &nobody, &f->attr));
    assert_int_equal(f->attr.nlink, 0);
    return f->attr.ino;
}

static void nameless_file_gets_names_with_all_that_it_holds(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d"), ino = make_nameless(f, ROOT, 0);

    write_text(f, ino, 0, "content");
    assert_ok(pmfs_setxattr(f->fs, ino, "user.a", "value", 5, 0));
    assert_ok(pmfs_link(f->fs, ino, dir, "a", &f->attr));
    assert_int_equal(f->attr.nlink, 1);
    assert_int_equal(f->attr.mode, S_IFREG | 0640);
    assert_int_equal(f->attr.uid, nobody.uid);
    assert_ok(pmfs_link(f->fs, ino, ROOT, "b", &f->attr));
    pmfs_release(f->fs, ino);
    fixture_fsck_and_mount(f);
    assert_int_equal(find(f, dir, "a"), ino);
    assert_int_equal(find(f, ROOT, "b"), ino);
    assert_int_equal(f->attr.nlink, 2);
    assert_bytes(f, ino, 0, "content", 7);
}

static void nameless_file_is_freed_when_it_is_released(void **state)
{
    struct fixture *f = *state;
    uint64_t before = make_file(f, ROOT, "first") ? blocks_free(f) : 0;
    uint64_t ino = make_nameless(f, ROOT, 0);

    write_text(f, ino, 100000, "content");
    assert_ok(pmfs_open(f->fs, ino));
    pmfs_release(f->fs, ino);
    assert_bytes(f, ino, 100000, "content", 7);
    pmfs_release(f->fs, ino);
    assert_error(pmfs_getattr(f->fs, ino, &f->attr), ESTALE);
    assert_error(pmfs_link(f->fs, ino, ROOT, "a", &f->attr), ESTALE);
    assert_int_equal(blocks_free(f), before);
}

static void nameless_file_lives_until_it_is_forgotten(void **state)
{
    struct fixture *f = *state;

    f->mount.flags = PMFS_COUNT_LOOKUPS;
    fixture_remount(f);
    uint64_t ino = make_nameless(f, ROOT, 0);
    pmfs_release(f->fs, ino);
    assert_ok(pmfs_link(f->fs, ino, ROOT, "a", &f->attr));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    pmfs_forget(f->fs, ino, 1);
    assert_int_equal(attr_of(f, ino).nlink, 0);
    pmfs_forget(f->fs, ino, 1);
    assert_error(pmfs_getattr(f->fs, ino, &f->attr), ESTALE);
}

static void only_what_never_had_a_name_may_get_its_first(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_nameless(f, ROOT, PMFS_NEVER_LINKED);
    uint64_t other = make_nameless(f, ROOT, 0);

    assert_error(pmfs_link(f->fs, ino, ROOT, "a", &f->attr), ENOENT);
    assert_ok(pmfs_link(f->fs, other, ROOT, "a", &f->attr));
    assert_error(pmfs_link(f->fs, other, ROOT, "a", &f->attr), EEXIST);
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_error(pmfs_link(f->fs, other, ROOT, "a", &f->attr), ENOENT);
    pmfs_release(f->fs, ino);
    pmfs_release(f->fs, other);
}

static void nameless_file_inherits_of_its_directory(void **state)
{
    struct fixture *f = *state;
    const struct pmfs_cred cred = {.uid = 1, .gid = 2, .umask = 027};
    const struct pmfs_attr values = {.mode = 02755, .gid = 77};
    uint64_t dir = make_dir(f, ROOT, "d"), file = make_file(f, ROOT, "file");

    assert_ok(pmfs_setattr(f->fs, dir, &values, PMFS_SET_MODE | PMFS_SET_GID, NULL));
    assert_ok(pmfs_tmpfile(f->fs, dir, 0666, 0, &cred, &f->attr));
    assert_int_equal(f->attr.mode, S_IFREG | 0640);
    assert_int_equal(f->attr.uid, 1);
    assert_int_equal(f->attr.gid, 77);
    pmfs_release(f->fs, f->attr.ino);
    assert_error(pmfs_tmpfile(f->fs, file, 0666, 0, &cred, &f->attr), ENOTDIR);
    assert_error(pmfs_tmpfile(f->fs, dir, 0666, 2, &cred, &f->attr), EINVAL);
    assert_error(pmfs_tmpfile(f->fs, 1000, 0666, 0, &cred, &f->attr), ESTALE);
}

/* ---- Renaming ------------------------------------------------------------------ */

static void rename_moves_a_name(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t dir = make_dir(f, ROOT, "d");

    assert_ok(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", 0));
    assert_int_equal(find(f, ROOT, "b"), ino);
    assert_error(pmfs_lookup(f->fs, ROOT, "a", &f->attr), ENOENT);
    assert_ok(pmfs_rename(f->fs, ROOT, "b", dir, "c", 0));
    fixture_fsck_and_mount(f);
    assert_int_equal(find(f, dir, "c"), ino);
    assert_error(pmfs_lookup(f->fs, ROOT, "b", &f->attr), ENOENT);
}

static void rename_replaces_a_file(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t victim = make_file(f, dir, "b");

    assert_ok(pmfs_rename(f->fs, ROOT, "a", dir, "b", 0));
    assert_int_equal(find(f, dir, "b"), ino);
    assert_error(pmfs_getattr(f->fs, victim, &f->attr), ESTALE);
}

static void rename_replaces_an_empty_directory_only(void **state)
{
    struct fixture *f = *state;
    uint64_t a = make_dir(f, ROOT, "a");
    uint64_t b = make_dir(f, ROOT, "b");

    make_file(f, b, "x");
    assert_error(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", 0), ENOTEMPTY);
    assert_ok(pmfs_unlink(f->fs, b, "x"));
    assert_ok(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", 0));
    assert_int_equal(find(f, ROOT, "b"), a);
    assert_int_equal(attr_of(f, ROOT).nlink, 3);
}

static void rename_between_types_is_refused(void **state)
{
    struct fixture *f = *state;

    make_dir(f, ROOT, "d");
    make_file(f, ROOT, "a");
    assert_error(pmfs_rename(f->fs, ROOT, "d", ROOT, "a", 0), ENOTDIR);
    assert_error(pmfs_rename(f->fs, ROOT, "a", ROOT, "d", 0), EISDIR);
}

static void rename_of_a_directory_changes_its_parent(void **state)
{
    struct fixture *f = *state;
    uint64_t a = make_dir(f, ROOT, "a");
    uint64_t b = make_dir(f, ROOT, "b");

    assert_ok(pmfs_rename(f->fs, ROOT, "a", b, "a", 0));
    assert_int_equal(find(f, a, ".."), b);
    assert_int_equal(attr_of(f, ROOT).nlink, 3);
    assert_int_equal(attr_of(f, b).nlink, 3);
}

static void rename_of_a_directory_into_itself_is_einval(void **state)
{
    struct fixture *f = *state;
    uint64_t a = make_dir(f, ROOT, "a");
    uint64_t b = make_dir(f, a, "b");

    assert_error(pmfs_rename(f->fs, ROOT, "a", b, "c", 0), EINVAL);
    assert_error(pmfs_rename(f->fs, ROOT, "a", a, "c", 0), EINVAL);
    assert_error(pmfs_rename(f->fs, a, "b", ROOT, "a", 0), ENOTEMPTY);
}

static void rename_onto_another_name_of_the_same_inode_does_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(pmfs_link(f->fs, ino, ROOT, "b", &f->attr));
    assert_ok(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", 0));
    assert_int_equal(find(f, ROOT, "a"), ino);
    assert_int_equal(f->attr.nlink, 2);
    assert_ok(pmfs_rename(f->fs, ROOT, "a", ROOT, "a", 0));
}

static void rename_noreplace_is_eexist(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "a");
    make_file(f, ROOT, "b");
    assert_error(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", PMFS_RENAME_NOREPLACE),
                 EEXIST);
    assert_ok(pmfs_rename(f->fs, ROOT, "a", ROOT, "c", PMFS_RENAME_NOREPLACE));
}

static void rename_exchange_swaps_file_and_directory(void **state)
{
    struct fixture *f = *state;
    uint64_t d1 = make_dir(f, ROOT, "d1");
    uint64_t d2 = make_dir(f, ROOT, "d2");
    uint64_t file = make_file(f, d1, "a");
    uint64_t dir = make_dir(f, d2, "b");

    assert_ok(pmfs_rename(f->fs, d1, "a", d2, "b", PMFS_RENAME_EXCHANGE));
    assert_int_equal(find(f, d1, "a"), dir);
    assert_int_equal(find(f, d2, "b"), file);
    assert_int_equal(find(f, dir, ".."), d1);
    assert_int_equal(attr_of(f, d1).nlink, 3);
    assert_int_equal(attr_of(f, d2).nlink, 2);
    assert_error(pmfs_rename(f->fs, d1, "a", d2, "x", PMFS_RENAME_EXCHANGE), ENOENT);
}

static void assert_whiteout(struct fixture *f, uint64_t parent, const char *name)
{
    find(f, parent, name);
    assert_int_equal(f->attr.mode, S_IFCHR);
    assert_int_equal(f->attr.rdev, 0);
    assert_int_equal(f->attr.nlink, 1);
    assert_int_equal(f->attr.uid, nobody.uid);
    assert_int_equal(f->attr.gid, nobody.gid);
}

#define RENAME_WHITED(from, name, to, new_name, flags)                                 \
    pmfs_rename_whiteout(f->fs, from, name, to, new_name, flags, &nobody)

static void rename_leaves_a_whiteout(void **state)
{
    struct fixture *f = *state;
    uint64_t file = make_file(f, ROOT, "a"), other = make_file(f, ROOT, "b");
    uint64_t d1 = make_dir(f, ROOT, "d1"), d2 = make_dir(f, ROOT, "d2");
    uint64_t dir = make_dir(f, d1, "d");

    assert_ok(RENAME_WHITED(ROOT, "a", ROOT, "c", PMFS_RENAME_NOREPLACE));
    assert_ok(RENAME_WHITED(ROOT, "b", d2, "b", 0));
    assert_ok(RENAME_WHITED(d1, "d", d2, "d", 0));
    assert_ok(RENAME_WHITED(d2, "b", ROOT, "b", 0)); /* over a whiteout */
    fixture_fsck_and_mount(f);
    assert_whiteout(f, ROOT, "a");
    assert_whiteout(f, d1, "d");
    assert_whiteout(f, d2, "b");
    assert_int_equal(find(f, ROOT, "c"), file);
    assert_int_equal(find(f, ROOT, "b"), other);
    assert_int_equal(find(f, d2, "d"), dir);
    assert_int_equal(find(f, dir, ".."), d2);
    assert_int_equal(attr_of(f, d1).nlink, 2);
    assert_int_equal(attr_of(f, d2).nlink, 3);
}

static void rename_that_does_nothing_leaves_no_whiteout(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(pmfs_link(f->fs, ino, ROOT, "b", &f->attr));
    assert_ok(RENAME_WHITED(ROOT, "a", ROOT, "b", 0));
    assert_int_equal(find(f, ROOT, "a"), ino);
    assert_refused(RENAME_WHITED(ROOT, "a", ROOT, "b", PMFS_RENAME_NOREPLACE), EEXIST);
    assert_refused(RENAME_WHITED(ROOT, "a", ROOT, "b", PMFS_RENAME_EXCHANGE), EINVAL);
    assert_refused(RENAME_WHITED(ROOT, "none", ROOT, "c", 0), ENOENT);
    assert_refused(pmfs_rename(f->fs, ROOT, "a", ROOT, "c", 4), EINVAL);
    assert_int_equal(find(f, ROOT, "a"), ino);
}

static void rename_of_what_is_not_there_is_enoent(void **state)
{
    struct fixture *f = *state;

    assert_refused(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", 0), ENOENT);
    assert_refused(pmfs_rename(f->fs, ROOT, "a", ROOT, "b", 8), EINVAL);
}

/* ---- Listing ------------------------------------------------------------------- */

struct list {
    uint64_t count;
    uint64_t stop_after;
    uint64_t cookie; /* after the last one taken */
    uint64_t with_attr;
    char seen[2000];
};

static int take(void *arg, const struct pmfs_dirent *entry)
{
    struct list *list = arg;

    if (list->count == list->stop_after)
        return 1;
    list->count++;
    list->cookie = entry->next_cookie;
    list->with_attr += entry->attr != NULL;
    if (entry->name[0] == 'n')
        list->seen[atoi(entry->name + 1)]++;
    return 0;
}

static void make_numbered(struct fixture *f, int count)
{
    char name[16];

    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "n%d", i);
        make_file(f, ROOT, name);
    }
}

static void listing_shows_each_name_once(void **state)
{
    struct fixture *f = *state;
    struct list list = {.stop_after = UINT64_MAX};

    make_numbered(f, 1000);
    assert_ok(pmfs_readdir(f->fs, ROOT, 0, PMFS_READDIR_ATTR, take, &list));
    assert_int_equal(list.count, 1002);
    assert_int_equal(list.with_attr, 1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(list.seen[i], 1);
}

static void listing_goes_on_while_names_come_and_go(void **state)
{
    struct fixture *f = *state;
    struct list list = {0};
    char name[32];

    make_numbered(f, 1000);
    for (int i = 0; list.stop_after == list.count; i++) {
        list.stop_after += 7;
        assert_ok(pmfs_readdir(f->fs, ROOT, list.cookie, 0, take, &list));
        snprintf(name, sizeof(name), "n%d", i * 2);
        if (i < 500)
            assert_ok(pmfs_unlink(f->fs, ROOT, name));
        snprintf(name, sizeof(name), "other name %d", i);
        make_file(f, ROOT, name);
    }
    for (int i = 1; i < 1000; i += 2)
        assert_int_equal(list.seen[i], 1);
}

static void listing_of_a_file_is_enotdir(void **state)
{
    struct fixture *f = *state;
    struct list list = {0};
    uint64_t ino = make_file(f, ROOT, "a");

    assert_error(pmfs_readdir(f->fs, ino, 0, 0, take, &list), ENOTDIR);
}

static void room_of_removed_names_is_used_again(void **state)
{
    struct fixture *f = *state;
    char name[16];

    make_numbered(f, 1000);
    uint64_t size = attr_of(f, ROOT).size;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            snprintf(name, sizeof(name), "n%d", i);
            assert_ok(pmfs_unlink(f->fs, ROOT, name));
        }
        make_numbered(f, 1000);
    }
    assert_int_equal(attr_of(f, ROOT).size, size);
}

/* ---- Cost ---------------------------------------------------------------------- */

static void create_unlink_and_rename_cost_two_fences(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    make_file(f, ROOT, "first");
    make_file(f, dir, "first");
    assert_int_equal(
        FENCES(f, pmfs_mknod(f->fs, ROOT, "a", 0644, 0, &nobody, &f->attr)), 2);
    assert_int_equal(FENCES(f, pmfs_rename(f->fs, ROOT, "a", dir, "b", 0)), 2);
    assert_int_equal(FENCES(f, RENAME_WHITED(dir, "b", ROOT, "a", 0)), 2);
    assert_int_equal(FENCES(f, RENAME_WHITED(ROOT, "a", dir, "b", 0)), 2);
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    find(f, dir, "b");
    assert_int_equal(FENCES(f, pmfs_link(f->fs, f->attr.ino, ROOT, "a", &f->attr)), 2);
    assert_int_equal(FENCES(f, pmfs_unlink(f->fs, ROOT, "a")), 2);
    assert_int_equal(FENCES(f, pmfs_unlink(f->fs, dir, "b")), 2);
    assert_int_equal(FENCES(f, pmfs_mkdir(f->fs, dir, "e", 0755, &nobody, &f->attr)),
                     2);
    assert_int_equal(FENCES(f, pmfs_rmdir(f->fs, dir, "e")), 2);
    assert_int_equal(FENCES(f, pmfs_lookup(f->fs, ROOT, "d", &f->attr)), 0);
    assert_int_equal(FENCES(f, pmfs_tmpfile(f->fs, dir, 0644, 0, &nobody, &f->attr)),
                     2);
    assert_int_equal(FENCES(f, pmfs_link(f->fs, f->attr.ino, dir, "n", &f->attr)), 2);
    pmfs_release(f->fs, f->attr.ino);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(new_filesystem_has_an_empty_root),
        TEST(made_file_is_found),
        TEST(made_file_is_there_after_remount),
        TEST(unknown_name_is_enoent),
        TEST(existing_name_is_eexist),
        TEST(name_of_255_bytes_works_and_256_is_enametoolong),
        TEST_IN_PROCESS(name_with_a_slash_or_empty_is_einval),
        TEST(dots_are_found_but_cannot_be_made_or_removed),
        TEST(file_as_a_directory_is_enotdir),
        TEST(special_files_keep_their_type_and_device),
        TEST_IN_PROCESS(setgid_directory_gives_its_group_and_bit),
        TEST(mkdir_counts_a_link_of_the_parent),
        TEST(change_of_a_directory_sets_its_times),
        TEST(symlink_is_read_back),
        TEST(symlink_of_4095_bytes_works_and_4096_is_enametoolong),
        TEST_EMPTY(long_symlink_works_with_blocks_of_512_bytes),
        TEST(link_is_another_name_of_the_same_inode),
        TEST(link_of_a_directory_is_eperm),
        TEST(link_to_an_existing_name_is_eexist),
        TEST(link_of_an_unlinked_open_file_is_enoent),
        TEST(links_end_at_link_max_with_emlink),
        TEST_EMPTY_IN_PROCESS(directories_in_a_directory_end_at_link_max_with_emlink),
        TEST_IN_PROCESS(unlinked_file_gives_its_blocks_and_number_back),
        TEST_IN_PROCESS(number_used_again_has_another_generation),
        TEST(unlink_of_a_directory_is_eisdir),
        TEST(rmdir_of_a_file_is_enotdir),
        TEST(rmdir_of_a_full_directory_is_enotempty),
        TEST(nothing_can_be_made_in_a_removed_directory),
        TEST(open_file_lives_without_a_name),
        TEST(looked_up_file_lives_until_forgotten),
        TEST(unmounting_frees_open_files_without_a_name),
        TEST(nameless_file_gets_names_with_all_that_it_holds),
        TEST_IN_PROCESS(nameless_file_is_freed_when_it_is_released),
        TEST(nameless_file_lives_until_it_is_forgotten),
        TEST(only_what_never_had_a_name_may_get_its_first),
        TEST_IN_PROCESS(nameless_file_inherits_of_its_directory),
        TEST(rename_moves_a_name),
        TEST(rename_replaces_a_file),
        TEST(rename_replaces_an_empty_directory_only),
        TEST(rename_between_types_is_refused),
        TEST(rename_of_a_directory_changes_its_parent),
        TEST(rename_of_a_directory_into_itself_is_einval),
        TEST(rename_onto_another_name_of_the_same_inode_does_nothing),
        TEST(rename_noreplace_is_eexist),
        TEST(rename_exchange_swaps_file_and_directory),
        TEST(rename_leaves_a_whiteout),
        TEST(rename_that_does_nothing_leaves_no_whiteout),
        TEST(rename_of_what_is_not_there_is_enoent),
        TEST(listing_shows_each_name_once),
        TEST(listing_goes_on_while_names_come_and_go),
        TEST(listing_of_a_file_is_enotdir),
        TEST(room_of_removed_names_is_used_again),
        TEST_IN_PROCESS(create_unlink_and_rename_cost_two_fences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
