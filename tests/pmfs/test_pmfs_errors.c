/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each call of pmfs.h that takes an inode or a name, on what it has to refuse: the table
 * says with what. What depends on more than one argument is tested with the call itself.
 */
#include "tests/pmfs/pmfs_fixture.h"

/* ---- Calls ----------------------------------------------------------------------- */

/* What all calls are made of. Those with two inodes have a second, and so with names. */
struct args {
    uint64_t ino, ino2;
    const char *name, *name2;
    unsigned flags;
};

typedef int call_fn(struct pmfs *fs, const struct args *a);

static const struct pmfs_attr values = {.mode = 0600};
static struct pmfs_attr attr;
static char bytes[PMFS_PATH_MAX + 1];
static size_t done;

static int do_lookup(struct pmfs *fs, const struct args *a)
{
    return pmfs_lookup(fs, a->ino, a->name, &attr);
}

/* What opens something is followed by a release. */
static int released(struct pmfs *fs, int rc)
{
    if (rc == 0)
        pmfs_release(fs, attr.ino);
    return rc;
}

static int do_lookup_open(struct pmfs *fs, const struct args *a)
{
    return released(fs, pmfs_lookup_open(fs, a->ino, a->name, &attr));
}

static int do_getattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_getattr(fs, a->ino, &attr);
}

static int do_setattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_setattr(fs, a->ino, &values, PMFS_SET_MODE | a->flags, &attr);
}

static int do_mknod(struct pmfs *fs, const struct args *a)
{
    return pmfs_mknod(fs, a->ino, a->name, 0644 | a->flags, 0, &nobody, &attr);
}

static int do_create(struct pmfs *fs, const struct args *a)
{
    return released(fs, pmfs_create(fs, a->ino, a->name, 0644, &nobody, &attr));
}

static int do_tmpfile(struct pmfs *fs, const struct args *a)
{
    return released(fs, pmfs_tmpfile(fs, a->ino, 0644, a->flags, &nobody, &attr));
}

static int do_mkdir(struct pmfs *fs, const struct args *a)
{
    return pmfs_mkdir(fs, a->ino, a->name, 0755, &nobody, &attr);
}

static int do_symlink(struct pmfs *fs, const struct args *a)
{
    return pmfs_symlink(fs, a->ino, a->name, "target", &nobody, &attr);
}

static int do_readlink(struct pmfs *fs, const struct args *a)
{
    return pmfs_readlink(fs, a->ino, bytes, sizeof(bytes));
}

static int do_link(struct pmfs *fs, const struct args *a)
{
    return pmfs_link(fs, a->ino2, a->ino, a->name, &attr);
}

static int do_unlink(struct pmfs *fs, const struct args *a)
{
    return pmfs_unlink(fs, a->ino, a->name);
}

static int do_rmdir(struct pmfs *fs, const struct args *a)
{
    return pmfs_rmdir(fs, a->ino, a->name);
}

static int do_rename(struct pmfs *fs, const struct args *a)
{
    return pmfs_rename(fs, a->ino, a->name, a->ino2, a->name2, a->flags);
}

static int do_rename_whiteout(struct pmfs *fs, const struct args *a)
{
    return pmfs_rename_whiteout(fs, a->ino, a->name, a->ino2, a->name2, a->flags,
                                &nobody);
}

static int do_open(struct pmfs *fs, const struct args *a)
{
    int rc = pmfs_open(fs, a->ino);

    if (rc == 0)
        pmfs_release(fs, a->ino);
    return rc;
}

static int do_read(struct pmfs *fs, const struct args *a)
{
    return pmfs_read(fs, a->ino, 0, bytes, sizeof(bytes), &done);
}

static int use_nothing(void *arg, const struct iovec *pieces, int count, size_t size)
{
    (void)arg;
    (void)pieces;
    (void)count;
    (void)size;
    return 0;
}

static int do_read_in_place(struct pmfs *fs, const struct args *a)
{
    return pmfs_read_in_place(fs, a->ino, 0, sizeof(bytes), use_nothing, NULL);
}

static int do_write(struct pmfs *fs, const struct args *a)
{
    return pmfs_write(fs, a->ino, 0, "new", 3, a->flags, &done);
}

static int do_fallocate(struct pmfs *fs, const struct args *a)
{
    return pmfs_fallocate(fs, a->ino, a->flags, 0, 10000);
}

static int do_seek(struct pmfs *fs, const struct args *a)
{
    uint64_t found;

    return pmfs_seek(fs, a->ino, 0, PMFS_SEEK_HOLE + a->flags, &found);
}

static int do_copy_range(struct pmfs *fs, const struct args *a)
{
    uint64_t copied;

    return pmfs_copy_range(fs, a->ino, 0, a->ino2, 0, 3, &copied);
}

static int do_setxattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_setxattr(fs, a->ino, a->name, "new", 3, a->flags);
}

static int do_removexattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_removexattr(fs, a->ino, a->name);
}

static int do_getxattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_getxattr(fs, a->ino, a->name, bytes, sizeof(bytes), &done);
}

static int do_listxattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_listxattr(fs, a->ino, bytes, sizeof(bytes), &done);
}

static int take(void *arg, const struct pmfs_dirent *entry)
{
    (void)arg;
    (void)entry;
    return 0;
}

static int do_readdir(struct pmfs *fs, const struct args *a)
{
    return pmfs_readdir(fs, a->ino, 0, a->flags, take, NULL);
}

static int do_path_open(struct pmfs *fs, const struct args *a)
{
    return released(fs, pmfs_path_open(fs, a->ino, a->name, O_RDWR | O_CREAT, 0644,
                                       &nobody, &attr));
}

static int do_path_getattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_getattr(fs, a->ino, a->name, a->flags, &attr);
}

static int do_path_setattr(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_setattr(fs, a->ino, a->name, a->flags, &values, PMFS_SET_MODE,
                             &attr);
}

static int do_path_mknod(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_mknod(fs, a->ino, a->name, 0644 | a->flags, 0, &nobody, &attr);
}

static int do_path_mkdir(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_mkdir(fs, a->ino, a->name, 0755, &nobody, &attr);
}

static int do_path_symlink(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_symlink(fs, "target", a->ino, a->name, &nobody, &attr);
}

static int do_path_readlink(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_readlink(fs, a->ino, a->name, bytes, sizeof(bytes));
}

static int do_path_link(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_link(fs, a->ino, a->name, a->ino2, a->name2, a->flags);
}

static int do_path_unlink(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_unlink(fs, a->ino, a->name);
}

static int do_path_rmdir(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_rmdir(fs, a->ino, a->name);
}

static int do_path_rename(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_rename(fs, a->ino, a->name, a->ino2, a->name2, a->flags);
}

static int do_path_rename_whiteout(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_rename_whiteout(fs, a->ino, a->name, a->ino2, a->name2, a->flags,
                                     &nobody);
}

static int do_path_of(struct pmfs *fs, const struct args *a)
{
    return pmfs_path_of(fs, a->ino, bytes, sizeof(bytes));
}

static int do_path_parent(struct pmfs *fs, const struct args *a)
{
    struct pmfs_place place;
    int rc = pmfs_path_parent(fs, a->ino, a->name, a->flags, &place);

    if (rc == 0)
        pmfs_place_release(fs, &place);
    return rc;
}

/* ---- The table ------------------------------------------------------------------- */

/* What there is, all in "dir"; "gone" is open, and has lost its name. */
enum what { NONE, DIR_, FILE_, SYMLINK, FIFO, GONE, WHATS };

/* Names that cannot be, or are there already. */
enum bad_name { LONG, EMPTY, DOT, DOTS, SLASH, BAD_NAMES };

/* Errors, 0 for none. */
#define ON(...)                                                                        \
    {                                                                                  \
        __VA_ARGS__                                                                    \
    }
#define ANYTHING ON(0, 0, 0, 0, 0)
#define DIRECTORIES ON(0, ENOTDIR, ENOTDIR, ENOTDIR, 0)
#define LIVING ON(0, ENOTDIR, ENOTDIR, ENOTDIR, ENOENT) /* directories */
#define CONTENT ON(EISDIR, 0, EINVAL, EINVAL, EISDIR)
/* A name that is looked up, one that is made, one that is gone afterwards. */
#define FOUND ON(ENAMETOOLONG, ENOENT, 0, 0, ENOENT)
#define MADE ON(ENAMETOOLONG, EINVAL, EEXIST, EEXIST, EINVAL)
#define UNLINKED ON(ENAMETOOLONG, EINVAL, EISDIR, EISDIR, EINVAL)
#define REMOVED ON(ENAMETOOLONG, EINVAL, EINVAL, ENOTEMPTY, EINVAL)
#define MOVED ON(ENAMETOOLONG, EINVAL, EINVAL, EINVAL, EINVAL)
#define ATTRIBUTE ON(ERANGE, ERANGE, EOPNOTSUPP, EOPNOTSUPP, EOPNOTSUPP)
/* The same of paths, whose slash leads to another directory, and that one is missing. */
#define MADE_AT ON(ENAMETOOLONG, ENOENT, EEXIST, EEXIST, ENOENT)
#define UNLINKED_AT ON(ENAMETOOLONG, ENOENT, EISDIR, EISDIR, ENOENT)
#define REMOVED_AT ON(ENAMETOOLONG, ENOENT, EINVAL, ENOTEMPTY, ENOENT)
#define MOVED_AT ON(ENAMETOOLONG, ENOENT, EBUSY, EBUSY, ENOENT)

struct row {
    const char *name;
    call_fn *call;
    enum what ino;            /* with which it succeeds */
    const char *text, *text2; /* the same; NULL: it has none */
    int on[WHATS - 1];
    int bad_names[BAD_NAMES];
    enum what ino2;
    int on2[WHATS - 1];
    int bad_names2[BAD_NAMES];
    int read_only;
    unsigned flag; /* unknown; 0: it has no flags */
    int flags;
};

#define ROW(name, ...)                                                                 \
    {                                                                                  \
        "pmfs_" #name, do_##name, __VA_ARGS__                                          \
    }
/* With an inode alone, and with one and a name. */
#define INODE(name, ino, on, read_only, ...)                                           \
    ROW(name, ino, NULL, NULL, on, ON(0), NONE, ON(0), ON(0), read_only, __VA_ARGS__)
#define NAME(name, ino, text, on, bad_names, read_only, ...)                           \
    ROW(name, ino, text, NULL, on, bad_names, NONE, ON(0), ON(0), read_only,           \
        __VA_ARGS__)
#define RENAME(name, on, bad_names)                                                    \
    ROW(name, DIR_, "file", "new", on, bad_names, DIR_, LIVING, bad_names, EROFS, 8,   \
        EINVAL)

static const struct row rows[] = {
    NAME(lookup, DIR_, "file", LIVING, FOUND, 0, 0, 0),
    NAME(lookup_open, DIR_, "file", LIVING, FOUND, 0, 0, 0),
    INODE(getattr, FILE_, ANYTHING, 0, 0, 0),
    INODE(setattr, FILE_, ANYTHING, EROFS, 1 << 20, EINVAL),
    NAME(mknod, DIR_, "new", LIVING, MADE, EROFS, S_IFMT, EINVAL),
    NAME(create, DIR_, "new", LIVING, MADE, EROFS, 0, 0),
    INODE(tmpfile, DIR_, DIRECTORIES, EROFS, 2, EINVAL),
    NAME(mkdir, DIR_, "new", LIVING, MADE, EROFS, 0, 0),
    NAME(symlink, DIR_, "new", LIVING, MADE, EROFS, 0, 0),
    INODE(readlink, SYMLINK, ON(EINVAL, EINVAL, 0, EINVAL, EINVAL), 0, 0, 0),
    ROW(link, DIR_, "new", NULL, LIVING, MADE, FILE_, ON(EPERM, 0, 0, 0, EPERM), ON(0),
        EROFS, 0, 0),
    NAME(unlink, DIR_, "file", LIVING, UNLINKED, EROFS, 0, 0),
    NAME(rmdir, DIR_, "empty", LIVING, REMOVED, EROFS, 0, 0),
    RENAME(rename, LIVING, MOVED),
    RENAME(rename_whiteout, LIVING, MOVED),
    INODE(open, FILE_, ANYTHING, 0, 0, 0),
    INODE(read, FILE_, CONTENT, 0, 0, 0),
    INODE(read_in_place, FILE_, CONTENT, 0, 0, 0),
    INODE(write, FILE_, CONTENT, EROFS, 1 << 20, EINVAL),
    INODE(fallocate, FILE_, ON(EISDIR, 0, ENODEV, ENODEV, EISDIR), EROFS, 1 << 20,
          EOPNOTSUPP),
    INODE(seek, FILE_, CONTENT, 0, 7, EINVAL),
    /* Onto itself, the ranges overlap. */
    ROW(copy_range, FILE_, NULL, NULL, CONTENT, ON(0), FILE_,
        ON(EISDIR, EINVAL, EINVAL, EINVAL, EISDIR), ON(0), EROFS, 0, 0),
    NAME(setxattr, FILE_, "user.a", ANYTHING, ATTRIBUTE, EROFS, 1 << 20, EINVAL),
    NAME(removexattr, FILE_, "user.a", ANYTHING, ATTRIBUTE, EROFS, 0, 0),
    NAME(getxattr, FILE_, "user.a", ANYTHING, ATTRIBUTE, 0, 0, 0),
    INODE(listxattr, FILE_, ANYTHING, 0, 0, 0),
    INODE(readdir, DIR_, DIRECTORIES, 0, 1 << 20, EINVAL),

    NAME(path_open, DIR_, "new", LIVING,
         ON(ENAMETOOLONG, ENOENT, EISDIR, EISDIR, ENOENT), EROFS, 0, 0),
    NAME(path_getattr, DIR_, "file", LIVING, FOUND, 0, 1 << 20, EINVAL),
    NAME(path_setattr, DIR_, "file", LIVING, FOUND, EROFS, PMFS_PATH_BENEATH, EINVAL),
    NAME(path_mknod, DIR_, "new", LIVING, MADE_AT, EROFS, S_IFMT, EINVAL),
    NAME(path_mkdir, DIR_, "new", LIVING, MADE_AT, EROFS, 0, 0),
    NAME(path_symlink, DIR_, "new", LIVING, MADE_AT, EROFS, 0, 0),
    NAME(path_readlink, DIR_, "symlink", LIVING,
         ON(ENAMETOOLONG, ENOENT, EINVAL, EINVAL, ENOENT), 0, 0, 0),
    ROW(path_link, DIR_, "file", "new", LIVING,
        ON(ENAMETOOLONG, ENOENT, EPERM, EPERM, ENOENT), DIR_, LIVING, MADE_AT, EROFS,
        1 << 20, EINVAL),
    NAME(path_unlink, DIR_, "file", LIVING, UNLINKED_AT, EROFS, 0, 0),
    NAME(path_rmdir, DIR_, "empty", LIVING, REMOVED_AT, EROFS, 0, 0),
    RENAME(path_rename, LIVING, MOVED_AT),
    RENAME(path_rename_whiteout, LIVING, MOVED_AT),
    INODE(path_of, DIR_, LIVING, 0, 0, 0),
    NAME(path_parent, DIR_, "file", DIRECTORIES, FOUND, 0, 1 << 20, EINVAL),
};

#define ROWS (sizeof(rows) / sizeof(*rows))

/* ---- What there is --------------------------------------------------------------- */

static uint64_t inodes[WHATS];

/* Everything has an attribute. */
static uint64_t with_attribute(struct fixture *f)
{
    assert_ok(pmfs_setxattr(f->fs, f->attr.ino, "user.a", "old", 3, 0));
    return f->attr.ino;
}

static void make_scene(struct fixture *f)
{
    uint64_t dir = make_dir(f, ROOT, "dir");

    inodes[DIR_] = with_attribute(f);
    write_text(f, make_file(f, dir, "file"), 0, "old");
    inodes[FILE_] = with_attribute(f);
    assert_ok(pmfs_symlink(f->fs, dir, "symlink", "file", &nobody, &f->attr));
    inodes[SYMLINK] = with_attribute(f);
    assert_ok(pmfs_mknod(f->fs, dir, "fifo", S_IFIFO | 0644, 0, &nobody, &f->attr));
    inodes[FIFO] = with_attribute(f);
    write_text(f, make_file(f, dir, "other"), 0, "other");
    make_dir(f, dir, "empty");
    make_dir(f, ROOT, "gone");
    inodes[GONE] = with_attribute(f);
    assert_ok(pmfs_open(f->fs, inodes[GONE]));
    assert_ok(pmfs_rmdir(f->fs, ROOT, "gone"));
}

static void start_over(struct fixture *f)
{
    pmfs_unmount(f->fs);
    f->fs = NULL;
    unlink(f->path);
    f->mkfs.pool.block_size = 512;
    fixture_mkfs(f, MINL2R_POOL_SIZE_MIN);
    fixture_mount(f);
    make_scene(f);
}

static struct args args_of(struct fixture *f, const struct row *row)
{
    struct args args = {.name = row->text, .name2 = row->text2};

    args.ino = inodes[row->ino];
    args.ino2 =
        row->call == do_copy_range ? find(f, inodes[DIR_], "other") : inodes[row->ino2];
    return args;
}

/* Of a call before; none may show it. */
static void leave_message(struct fixture *f)
{
    struct pmfs_mount_options options = {.flags = 1 << 20};
    struct pmfs *fs;

    assert_error(pmfs_mount(f->path, &options, &fs), EINVAL);
    assert_non_null(strstr(pmfs_errormsg(), "0x100000"));
}

/* Does a call on a filesystem of its own, with one argument changed by `change`. */
static void assert_call(struct fixture *f, const struct row *row, int errnum,
                        const char *what, void (*change)(struct args *, int), int which)
{
    start_over(f);
    struct args args = args_of(f, row);

    change(&args, which);
    leave_message(f);
    int rc = row->call(f->fs, &args);

    if (rc != -errnum)
        print_error("%s with %s (%d): %d (%s), not %d\n", row->name, what, which, rc,
                    strerror(-rc), -errnum);
    assert_int_equal(rc, -errnum);
    assert_string_equal(pmfs_errormsg(), "");
    pmfs_release(f->fs, inodes[GONE]);
    fixture_unmount(f);
    fixture_fsck(f);
}

/* ---- Arguments ------------------------------------------------------------------- */

static void change_nothing(struct args *args, int which)
{
    (void)args;
    (void)which;
}

/* Never used, out of range, none. */
static const uint64_t stale[] = {20, (uint64_t)1 << 40, UINT64_MAX, 0};

static void make_stale(struct args *args, int which)
{
    args->ino = stale[which];
}

static void make_stale2(struct args *args, int which)
{
    args->ino2 = stale[which];
}

static void change_type(struct args *args, int which)
{
    args->ino = inodes[which];
}

static void change_type2(struct args *args, int which)
{
    args->ino2 = inodes[which];
}

static const char *bad_name(int which)
{
    static char longer[PMFS_NAME_MAX + 2];
    const char *const names[BAD_NAMES] = {longer, "", ".", "..", "missing/name"};

    memset(longer, 'x', PMFS_NAME_MAX + 1);
    return names[which];
}

static void change_name(struct args *args, int which)
{
    args->name = bad_name(which);
}

static void change_name2(struct args *args, int which)
{
    args->name2 = bad_name(which);
}

static void change_flags(struct args *args, int which)
{
    args->flags = (unsigned)which;
}

/* ---- Tests ----------------------------------------------------------------------- */

static void every_call_on_a_stale_inode_is_estale(void **state)
{
    for (const struct row *row = rows; row < rows + ROWS; row++) {
        assert_call(*state, row, 0, "nothing wrong", change_nothing, 0);
        for (int i = 0; i < 4; i++)
            assert_call(*state, row, ESTALE, "a stale inode", make_stale, i);
        for (int i = 0; i < 4 && row->ino2; i++)
            assert_call(*state, row, ESTALE, "a stale second inode", make_stale2, i);
    }
}

static void every_call_on_an_inode_of_a_wrong_type_is_refused(void **state)
{
    for (const struct row *row = rows; row < rows + ROWS; row++) {
        for (int i = DIR_; i < WHATS; i++)
            assert_call(*state, row, row->on[i - 1], "an inode of type", change_type,
                        i);
        for (int i = DIR_; i < WHATS && row->ino2; i++)
            assert_call(*state, row, row->on2[i - 1], "a second inode of type",
                        change_type2, i);
    }
}

static void every_call_with_a_bad_name_is_refused(void **state)
{
    for (const struct row *row = rows; row < rows + ROWS; row++) {
        for (int i = 0; i < BAD_NAMES && row->text; i++)
            assert_call(*state, row, row->bad_names[i], "bad name", change_name, i);
        for (int i = 0; i < BAD_NAMES && row->text2; i++)
            assert_call(*state, row, row->bad_names2[i], "bad second name",
                        change_name2, i);
    }
}

static void every_call_with_unknown_flags_is_refused(void **state)
{
    for (const struct row *row = rows; row < rows + ROWS; row++)
        assert_call(*state, row, row->flags, "unknown flags", change_flags,
                    (int)row->flag);
}

static void every_change_of_a_read_only_filesystem_is_erofs(void **state)
{
    struct fixture *f = *state;

    start_over(f);
    pmfs_release(f->fs, inodes[GONE]);
    fixture_unmount(f);
    f->mount.flags = PMFS_READ_ONLY;
    fixture_mount(f);
    for (const struct row *row = rows; row < rows + ROWS; row++) {
        struct args args = args_of(f, row);
        int rc = row->call(f->fs, &args);

        if (rc != -row->read_only)
            print_error("%s: %d\n", row->name, rc);
        assert_int_equal(rc, -row->read_only);
    }
}

/* ---- All of them ----------------------------------------------------------------- */

/* Those of no error that a caller could act on, or of none of these arguments. */
static const char *const others[] = {
    "pmfs_forget",   "pmfs_release",       "pmfs_unmount", "pmfs_pool",
    "pmfs_recovery", "pmfs_place_release", "pmfs_statfs",  "pmfs_cached_inodes"};

static int rows_of(const char *name)
{
    int count = 0;

    for (const struct row *row = rows; row < rows + ROWS; row++)
        count += strcmp(row->name, name) == 0;
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        count += strcmp(others[i], name) == 0;
    return count;
}

static void every_call_of_the_header_has_a_row(void **state)
{
    FILE *header = fopen(PMFS_HEADER, "r");
    char line[200], name[200];
    int calls = 0;

    (void)state;
    assert_non_null(header);
    while (fgets(line, sizeof(line), header)) {
        const char *start = strstr(line, "pmfs_"),
                   *end = strstr(line, "(struct pmfs *");

        if (!start || !end || line[0] == ' ' || line[0] == '/')
            continue;
        if (start > end)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)(end - start), start);
        if (rows_of(name) != 1)
            print_error("%s has %d rows\n", name, rows_of(name));
        assert_int_equal(rows_of(name), 1);
        calls++;
    }
    fclose(header);
    assert_int_equal(calls, (int)(ROWS + sizeof(others) / sizeof(*others) - 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(every_call_on_a_stale_inode_is_estale),
        TEST_EMPTY(every_call_on_an_inode_of_a_wrong_type_is_refused),
        TEST_EMPTY(every_call_with_a_bad_name_is_refused),
        TEST_EMPTY(every_call_with_unknown_flags_is_refused),
        TEST_EMPTY(every_change_of_a_read_only_filesystem_is_erofs),
        cmocka_unit_test(every_call_of_the_header_has_a_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
