/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended attributes. */
#include "tests/pmfs/pmfs_fixture.h"

static int set(struct fixture *f, uint64_t ino, const char *name, const char *value,
               unsigned flags)
{
    return pmfs_setxattr(f->fs, ino, name, value, strlen(value), flags);
}

static void assert_value(struct fixture *f, uint64_t ino, const char *name,
                         const void *value, size_t size)
{
    char *found = malloc(size + 1);
    size_t found_size = 0;

    assert_non_null(found);
    assert_ok(pmfs_getxattr(f->fs, ino, name, NULL, 0, &found_size));
    assert_int_equal(found_size, size);
    assert_ok(pmfs_getxattr(f->fs, ino, name, found, size + 1, &found_size));
    assert_int_equal(found_size, size);
    assert_memory_equal(found, value, size);
    free(found);
}

static void assert_text(struct fixture *f, uint64_t ino, const char *name,
                        const char *value)
{
    assert_value(f, ino, name, value, strlen(value));
}

static int get(struct fixture *f, uint64_t ino, const char *name)
{
    size_t size;

    return pmfs_getxattr(f->fs, ino, name, NULL, 0, &size);
}

static void what_is_set_is_there_after_remount(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(set(f, ino, "user.one", "1", 0));
    assert_ok(set(f, ino, "trusted.two", "zwei", 0));
    assert_ok(set(f, ino, "security.empty", "", 0));
    assert_ok(set(f, ROOT, "user.root", "of the root", 0));
    fixture_fsck_and_mount(f);
    assert_text(f, ino, "user.one", "1");
    assert_text(f, ino, "trusted.two", "zwei");
    assert_text(f, ino, "security.empty", "");
    assert_text(f, ROOT, "user.root", "of the root");
    assert_error(get(f, ino, "user.three"), ENODATA);
    assert_error(get(f, ino, "user.on"), ENODATA);
}

static void every_type_of_inode_takes_attributes(void **state)
{
    struct fixture *f = *state;

    assert_ok(pmfs_symlink(f->fs, ROOT, "link", "target", &nobody, &f->attr));
    assert_ok(set(f, f->attr.ino, "trusted.a", "b", 0));
    assert_text(f, f->attr.ino, "trusted.a", "b");
    assert_ok(pmfs_mknod(f->fs, ROOT, "fifo", S_IFIFO | 0644, 0, &nobody, &f->attr));
    assert_ok(set(f, f->attr.ino, "security.a", "b", 0));
    assert_text(f, f->attr.ino, "security.a", "b");
}

static void setting_again_replaces_with_any_size(void **state)
{
    static const size_t sizes[] = {3, 100, 100, 5000, 0, 65536, 20000, 7, 65536, 1};
    static char value[PMFS_XATTR_SIZE_MAX];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(set(f, ino, "user.before", "stays", 0));
    assert_ok(set(f, ino, "user.changed", "first", 0));
    assert_ok(set(f, ino, "user.behind", "stays, too", 0));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        memset(value, 'a' + (int)i, sizes[i]);
        assert_ok(pmfs_setxattr(f->fs, ino, "user.changed", value, sizes[i], 0));
        assert_value(f, ino, "user.changed", value, sizes[i]);
        assert_text(f, ino, "user.before", "stays");
        assert_text(f, ino, "user.behind", "stays, too");
        fixture_fsck_and_mount(f);
    }
}

static void create_and_replace_look_at_what_is_there(void **state)
{
    struct fixture *f = *state;
    const unsigned both = PMFS_XATTR_CREATE | PMFS_XATTR_REPLACE;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_error(set(f, ino, "user.a", "x", PMFS_XATTR_REPLACE), ENODATA);
    assert_ok(set(f, ino, "user.a", "x", PMFS_XATTR_CREATE));
    assert_error(set(f, ino, "user.a", "y", PMFS_XATTR_CREATE), EEXIST);
    assert_text(f, ino, "user.a", "x");
    assert_ok(set(f, ino, "user.a", "y", PMFS_XATTR_REPLACE));
    assert_text(f, ino, "user.a", "y");
    assert_error(set(f, ino, "user.a", "z", both), EEXIST);
    assert_error(set(f, ino, "user.b", "z", both), ENODATA);
    assert_text(f, ino, "user.a", "y");
    assert_error(get(f, ino, "user.b"), ENODATA);
}

static void removing_the_last_one_gives_all_blocks_back(void **state)
{
    static char value[PMFS_XATTR_SIZE_MAX];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t free_before = blocks_free(f);

    assert_ok(set(f, ino, "user.a", "x", 0));
    assert_int_equal(free_before - blocks_free(f), 1);
    assert_int_equal(attr_of(f, ino).blocks, 8);
    assert_ok(pmfs_setxattr(f->fs, ino, "user.b", value, sizeof(value), 0));
    assert_ok(set(f, ino, "user.c", "z", 0));
    assert_ok(pmfs_removexattr(f->fs, ino, "user.b"));
    assert_error(get(f, ino, "user.b"), ENODATA);
    assert_text(f, ino, "user.c", "z");
    assert_ok(pmfs_removexattr(f->fs, ino, "user.a"));
    assert_error(pmfs_removexattr(f->fs, ino, "user.a"), ENODATA);
    assert_ok(pmfs_removexattr(f->fs, ino, "user.c"));
    assert_int_equal(blocks_free(f), free_before);
    assert_int_equal(attr_of(f, ino).blocks, 0);
}

static void unlinking_gives_the_blocks_of_attributes_back(void **state)
{
    static char value[PMFS_XATTR_SIZE_MAX];
    struct fixture *f = *state;
    uint64_t keeper = make_file(f, ROOT, "keeps the directory");
    uint64_t free_before = blocks_free(f), ino;

    for (int open = 0; open < 2; open++) {
        ino = make_file(f, ROOT, "a");
        assert_ok(pmfs_setxattr(f->fs, ino, "user.b", value, sizeof(value), 0));
        write_text(f, ino, 0, "content");
        if (open)
            assert_ok(pmfs_open(f->fs, ino));
        assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
        if (open) {
            assert_value(f, ino, "user.b", value, sizeof(value));
            fixture_fsck_and_mount(f);
            assert_int_equal(f->summary.orphans, 0);
        }
        assert_int_equal(blocks_free(f), free_before);
    }
    ino = make_file(f, ROOT, "a");
    assert_error(get(f, ino, "user.b"), ENODATA);
    assert_error(get(f, keeper, "user.b"), ENODATA);
}

static void listing_shows_every_name_once(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    char names[64];
    size_t size = 7;

    assert_ok(pmfs_listxattr(f->fs, ino, names, sizeof(names), &size));
    assert_int_equal(size, 0);
    assert_ok(set(f, ino, "user.one", "a long value in between", 0));
    assert_ok(set(f, ino, "user.two", "", 0));
    assert_ok(set(f, ino, "security.three", "3", 0));
    assert_ok(pmfs_listxattr(f->fs, ino, NULL, 0, &size));
    assert_int_equal(size, 9 + 9 + 15);
    assert_error(pmfs_listxattr(f->fs, ino, names, size - 1, &size), ERANGE);
    assert_ok(pmfs_listxattr(f->fs, ino, names, size, &size));
    assert_memory_equal(names, "user.one\0user.two\0security.three", size);
}

static void impossible_names_and_sizes_are_refused(void **state)
{
    static char value[PMFS_XATTR_SIZE_MAX + 1];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    char name[PMFS_XATTR_NAME_MAX + 2] = "user.";
    size_t size;

    memset(name + 5, 'n', sizeof(name) - 6);
    assert_refused(set(f, ino, name, "x", 0), ERANGE);
    assert_refused(get(f, ino, name), ERANGE);
    name[PMFS_XATTR_NAME_MAX] = 0;
    assert_ok(set(f, ino, name, "x", 0));
    assert_text(f, ino, name, "x");
    assert_refused(set(f, ino, "", "x", 0), ERANGE);
    assert_refused(set(f, ino, "user.", "x", 0), EINVAL);
    assert_refused(set(f, ino, "system.other", "x", 0), EOPNOTSUPP);
    assert_refused(get(f, ino, "other.name"), EOPNOTSUPP);
    assert_refused(pmfs_setxattr(f->fs, ino, "user.a", value, sizeof(value), 0), E2BIG);
    assert_refused(set(f, 1000, "user.a", "x", 0), ESTALE);
    if (!BY_KERNEL)
        assert_error(pmfs_listxattr(f->fs, 1000, NULL, 0, &size), ESTALE);
    assert_refused(pmfs_getxattr(f->fs, ino, name, value, 0, &size), 0);
    assert_ok(set(f, ino, "user.long", "longer than two", 0));
    assert_refused(pmfs_getxattr(f->fs, ino, "user.long", value, 2, &size), ERANGE);
}

static void too_many_attributes_are_enospc_and_change_nothing(void **state)
{
    static char value[PMFS_XATTR_SIZE_MAX];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    int count = 0, rc;
    char name[32];

    do {
        snprintf(name, sizeof(name), "user.%d", count);
        rc = pmfs_setxattr(f->fs, ino, name, value, sizeof(value), 0);
    } while (rc == 0 && ++count);
    assert_int_equal(rc, -ENOSPC);
    assert_int_equal(count, 15);
    assert_error(get(f, ino, name), ENODATA);
    assert_value(f, ino, "user.14", value, sizeof(value));
}

static void blocks_of_512_bytes_take_32_kib(void **state)
{
    static char value[PMFS_XATTR_SIZE_MAX];
    struct fixture *f = *state;

    f->mkfs.pool.block_size = 512;
    fixture_mkfs(f, 4 * MIB);
    fixture_mount(f);

    uint64_t ino = make_file(f, ROOT, "a");

    assert_error(pmfs_setxattr(f->fs, ino, "user.a", value, 32768, 0), ENOSPC);
    assert_ok(pmfs_setxattr(f->fs, ino, "user.a", value, 32768 - 16, 0));
    assert_value(f, ino, "user.a", value, 32768 - 16);
    assert_ok(pmfs_setxattr(f->fs, ino, "user.a", value, 5, 0));
    assert_value(f, ino, "user.a", value, 5);
    fixture_fsck_and_mount(f);
}

static void full_filesystem_changes_nothing(void **state)
{
    static char value[PMFS_XATTR_SIZE_MAX];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a"), filler = make_file(f, ROOT, "b");
    size_t done;

    assert_ok(set(f, ino, "user.a", "x", 0));
    while (pmfs_write(f->fs, filler, 0, value, 4096, PMFS_APPEND, &done) == 0)
        ;
    assert_error(pmfs_setxattr(f->fs, ino, "user.b", value, sizeof(value), 0), ENOSPC);
    assert_error(get(f, ino, "user.b"), ENODATA);
    assert_ok(set(f, ino, "user.a", "y", 0));
    assert_text(f, ino, "user.a", "y");
    assert_ok(pmfs_removexattr(f->fs, ino, "user.a"));
}

/* Of the owner, user 1, the group, and others, under a mask. */
static uint8_t acl[4 + 5 * 8] = {2,   0,   0,   0,   1,   0,   7,  0,   255, 255, 255,
                                 255, 2,   0,   6,   0,   1,   0,  0,   0,   4,   0,
                                 5,   0,   255, 255, 255, 255, 16, 0,   7,   0,   255,
                                 255, 255, 255, 32,  0,   1,   0,  255, 255, 255, 255};
#define ACL_MASK_PERM 30

static void an_access_list_and_the_mode_change_together(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    const struct pmfs_attr values = {.mode = 0751};

    assert_ok(
        pmfs_setxattr(f->fs, ino, "system.posix_acl_access", acl, sizeof(acl), 0));
    assert_int_equal(attr_of(f, ino).mode, S_IFREG | 0771);
    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE, NULL));
    acl[ACL_MASK_PERM] = 5;
    assert_value(f, ino, "system.posix_acl_access", acl, sizeof(acl));
    acl[ACL_MASK_PERM] = 7;
    assert_ok(pmfs_removexattr(f->fs, ino, "system.posix_acl_access"));
    assert_int_equal(attr_of(f, ino).mode, S_IFREG | 0751);
}

/* As by Linux, which does not look at the flags. */
static void lists_are_set_and_removed_whatever_is_there(void **state)
{
    static const char *const names[] = {"system.posix_acl_access",
                                        "system.posix_acl_default"};
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    for (size_t i = 0; i < 2; i++) {
        assert_ok(pmfs_removexattr(f->fs, dir, names[i]));
        for (unsigned flags = 0; flags < 4; flags++)
            assert_ok(pmfs_setxattr(f->fs, dir, names[i], acl, sizeof(acl), flags));
        assert_value(f, dir, names[i], acl, sizeof(acl));
        assert_ok(pmfs_removexattr(f->fs, dir, names[i]));
        assert_error(get(f, dir, names[i]), ENODATA);
        assert_ok(
            pmfs_setxattr(f->fs, dir, names[i], acl, sizeof(acl), PMFS_XATTR_REPLACE));
    }
    assert_ok(pmfs_removexattr(f->fs, make_file(f, ROOT, "a"), names[1]));
}

static void a_default_list_takes_the_place_of_the_umask(void **state)
{
    const struct pmfs_cred cred = {.umask = 077};
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "d");

    assert_ok(pmfs_mkdir(f->fs, dir, "a", 0777, &cred, &f->attr));
    assert_int_equal(f->attr.mode, S_IFDIR | 0700);
    assert_ok(
        pmfs_setxattr(f->fs, dir, "system.posix_acl_default", acl, sizeof(acl), 0));
    assert_ok(pmfs_mkdir(f->fs, dir, "b", 0777, &cred, &f->attr));
    assert_int_equal(f->attr.mode, S_IFDIR | 0771);
    assert_value(f, f->attr.ino, "system.posix_acl_default", acl, sizeof(acl));
    assert_value(f, f->attr.ino, "system.posix_acl_access", acl, sizeof(acl));
    assert_int_equal(f->attr.blocks, 8);
    fixture_fsck_and_mount(f);
}

static void impossible_lists_are_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    for (size_t size = 0; size < sizeof(acl); size++)
        assert_error(pmfs_setxattr(f->fs, ino, "system.posix_acl_access", acl, size, 0),
                     EINVAL);
    assert_error(
        pmfs_setxattr(f->fs, ino, "system.posix_acl_default", acl, sizeof(acl), 0),
        EACCES);
    assert_ok(pmfs_symlink(f->fs, ROOT, "link", "target", &nobody, &f->attr));
    assert_error(pmfs_setxattr(f->fs, f->attr.ino, "system.posix_acl_access", acl,
                               sizeof(acl), 0),
                 EOPNOTSUPP);
}

/* An entry of all others that came first would hide one that denies a group. */
static void lists_out_of_order_are_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t other_order[sizeof(acl)];

    for (size_t i = 4; i < sizeof(acl) - 8; i += 8) {
        memcpy(other_order, acl, sizeof(acl));
        memcpy(other_order + i, acl + i + 8, 8);
        memcpy(other_order + i + 8, acl + i, 8);
        assert_error(pmfs_setxattr(f->fs, ino, "system.posix_acl_access", other_order,
                                   sizeof(acl), 0),
                     EINVAL);
    }
}

static void privileges_are_dropped_where_a_flag_says_so(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    const struct pmfs_attr values = {.mode = 06755};
    size_t done;

    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE, NULL));
    assert_ok(set(f, ino, "security.capability", "any", 0));
    assert_ok(set(f, ino, "user.a", "stays", 0));
    assert_ok(pmfs_write(f->fs, ino, 0, "x", 1, 0, &done));
    assert_int_equal(attr_of(f, ino).mode & 07777, 06755);
    assert_ok(pmfs_write(f->fs, ino, 0, "x", 1, PMFS_WRITE_DROPS_PRIVILEGES, &done));
    assert_int_equal(attr_of(f, ino).mode & 07777, 0755);
    assert_error(get(f, ino, "security.capability"), ENODATA);
    assert_text(f, ino, "user.a", "stays");
    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE, NULL));
    assert_ok(set(f, ino, "security.capability", "any", 0));
    assert_ok(pmfs_write(f->fs, ino, 0, "x", 1, PMFS_WRITE_DROPS_CAPABILITIES, &done));
    assert_int_equal(attr_of(f, ino).mode & 07777, 06755);
    assert_error(get(f, ino, "security.capability"), ENODATA);
    assert_text(f, ino, "user.a", "stays");
}

/* The mode that is left of `mode`. */
static uint32_t left_of(struct fixture *f, uint64_t ino, uint32_t mode, unsigned mask)
{
    const struct pmfs_attr values = {.mode = mode, .uid = 1};

    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE, NULL));
    assert_ok(pmfs_setattr(f->fs, ino, &values, mask, &f->attr));
    return f->attr.mode & 07777;
}

static uint32_t left_by_write(struct fixture *f, uint64_t ino, uint32_t mode,
                              unsigned flags)
{
    size_t done;

    left_of(f, ino, mode, 0);
    assert_ok(pmfs_write(f->fs, ino, 0, "x", 1, flags, &done));
    return attr_of(f, ino).mode & 07777;
}

static void set_group_id_goes_with_the_right_to_execute_or_by_a_flag(void **state)
{
    const unsigned stranger = PMFS_DROP_PRIVILEGES | PMFS_DROP_SETGID;
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_int_equal(left_of(f, ino, 06767, PMFS_DROP_PRIVILEGES), 02767);
    assert_int_equal(left_of(f, ino, 06777, PMFS_DROP_PRIVILEGES), 0777);
    assert_int_equal(left_of(f, ino, 06767, PMFS_DROP_SETGID), 0767);
    assert_int_equal(left_of(f, ino, 02767, stranger), 0767);
    assert_int_equal(left_of(f, ino, 02767, stranger | PMFS_SET_UID), 0767);
    assert_int_equal(left_of(f, ino, 02767, stranger | PMFS_SET_SIZE), 0767);
    assert_int_equal(left_of(f, ino, 02767, stranger | PMFS_SET_MODE), 02767);
    assert_int_equal(left_by_write(f, ino, 06767, PMFS_WRITE_DROPS_PRIVILEGES), 02767);
    assert_int_equal(left_by_write(f, ino, 06767, PMFS_WRITE_DROPS_SETGID), 0767);
    assert_int_equal(left_by_write(f, ino, 06767, 0), 06767);
}

static void every_type_but_directories_loses_privileges(void **state)
{
    static const uint32_t types[] = {S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK};
    const unsigned stranger = PMFS_DROP_PRIVILEGES | PMFS_DROP_SETGID;
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        char name[] = {(char)('a' + i), 0};

        assert_ok(pmfs_mknod(f->fs, ROOT, name, types[i] | 0644, 0, &nobody, &f->attr));
        uint64_t ino = f->attr.ino;
        assert_int_equal(left_of(f, ino, 06777, PMFS_DROP_PRIVILEGES), 0777);
        assert_int_equal(left_of(f, ino, 06767, stranger | PMFS_SET_UID), 0767);
    }
    assert_int_equal(left_of(f, make_dir(f, ROOT, "dir"), 06777, stranger), 06777);
}

static void attributes_set_the_change_time_only(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    struct pmfs_attr before = f->attr;

    assert_ok(set(f, ino, "user.a", "x", 0));
    assert_int_equal(attr_of(f, ino).mtime_ns, before.mtime_ns);
    assert_true(f->attr.ctime_ns > before.ctime_ns);
}

/* Three where it frees a block. */
static void each_change_costs_two_fences_or_three(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_int_equal(FENCES(f, set(f, ino, "user.a", "x", 0)), 2);
    assert_int_equal(FENCES(f, set(f, ino, "user.a", "longer", 0)), 2);
    assert_int_equal(FENCES(f, pmfs_removexattr(f->fs, ino, "user.a")), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_set_is_there_after_remount),
        TEST_IN_PROCESS(every_type_of_inode_takes_attributes),
        TEST(setting_again_replaces_with_any_size),
        TEST(create_and_replace_look_at_what_is_there),
        TEST(removing_the_last_one_gives_all_blocks_back),
        TEST_IN_PROCESS(unlinking_gives_the_blocks_of_attributes_back),
        TEST(listing_shows_every_name_once),
        TEST(impossible_names_and_sizes_are_refused),
        TEST(too_many_attributes_are_enospc_and_change_nothing),
        TEST_EMPTY(blocks_of_512_bytes_take_32_kib),
        TEST(full_filesystem_changes_nothing),
        TEST(an_access_list_and_the_mode_change_together),
        TEST(lists_are_set_and_removed_whatever_is_there),
        TEST(a_default_list_takes_the_place_of_the_umask),
        TEST_IN_PROCESS(impossible_lists_are_refused),
        TEST_IN_PROCESS(lists_out_of_order_are_refused),
        TEST_IN_PROCESS(privileges_are_dropped_where_a_flag_says_so),
        TEST_IN_PROCESS(set_group_id_goes_with_the_right_to_execute_or_by_a_flag),
        TEST_IN_PROCESS(every_type_but_directories_loses_privileges),
        TEST(attributes_set_the_change_time_only),
        TEST_IN_PROCESS(each_change_costs_two_fences_or_three),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
