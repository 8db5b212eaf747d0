/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every allocation of memory fails in turn, and every call of the library for want of
 * room: the call answers so, and nothing has changed.
 */
#include "tests/pmfs/pmfs_fixture.h"

#define BLOCK 512u /* small, so that a large file is small, too */
#define LARGE (100 * BLOCK)

/* ---- What fails ---------------------------------------------------------------- */

enum what { MEMORY, ROOM };

static bool counting;
static enum what failing;
static uint64_t calls;   /* while counting */
static uint64_t fail_at; /* the call that fails, from 1 on */

static bool fails(enum what what)
{
    return counting && what == failing && ++calls == fail_at;
}

/* The linker sends every call of `name` to a wrapper that may fail. */
#define WRAP(type, name, what, error, parameters, arguments)                           \
    type __real_##name parameters;                                                     \
    type __wrap_##name parameters;                                                     \
    type __wrap_##name parameters                                                      \
    {                                                                                  \
        return fails(what) ? (error) : __real_##name arguments;                        \
    }

WRAP(void *, malloc, MEMORY, NULL, (size_t size), (size))
WRAP(void *, calloc, MEMORY, NULL, (size_t count, size_t size), (count, size))
WRAP(void *, realloc, MEMORY, NULL, (void *old, size_t size), (old, size))
WRAP(void *, aligned_alloc, MEMORY, NULL, (size_t alignment, size_t size),
     (alignment, size))
WRAP(int, minl2r_tx_write, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, const void *dst, const void *src, size_t size),
     (tx, dst, src, size))
WRAP(int, minl2r_tx_zero, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, const void *dst, size_t size), (tx, dst, size))
WRAP(int, minl2r_tx_write_fresh, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, const void *dst, const void *src, size_t size),
     (tx, dst, src, size))
WRAP(int, minl2r_tx_write_block, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, const uint64_t *slot, uint32_t offset, const void *src,
      uint32_t size),
     (tx, slot, offset, src, size))
WRAP(int, minl2r_tx_alloc, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, uint64_t blocks, uint64_t *offset, void *writable),
     (tx, blocks, offset, writable))
WRAP(int, minl2r_tx_free, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, uint64_t offset, uint64_t blocks), (tx, offset, blocks))

/* ---- What is there ------------------------------------------------------------- */

struct sum {
    struct fixture *f;
    uint64_t hash;
    uint64_t dirs[16];
    int dir_count;
};

static void add_bytes(struct sum *sum, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        sum->hash = (sum->hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
}

static int add_entry(void *arg, const struct pmfs_dirent *entry)
{
    struct sum *sum = arg;
    uint64_t parts = 0;

    if (entry->name[0] == '.')
        return 0;
    /* The order of entries does not matter. */
    for (uint32_t i = 0; i < entry->name_size; i++)
        parts = parts * 131 + (uint8_t)entry->name[i];
    parts = parts * 131 + entry->attr->mode;
    parts = parts * 131 + entry->attr->nlink;
    parts = parts * 131 + entry->attr->size;
    parts = parts * 131 + entry->attr->uid;
    parts = parts * 131 + (uint64_t)entry->attr->mtime_ns;
    sum->hash += parts * parts;
    if (S_ISDIR(entry->mode))
        sum->dirs[sum->dir_count++] = entry->ino;
    return 0;
}

/* A number that stands for the whole tree, the content of "file" included. */
static uint64_t tree_sum(struct fixture *f)
{
    static uint8_t bytes[LARGE];
    struct sum sum = {.f = f, .dirs = {ROOT}, .dir_count = 1};
    size_t done;

    for (int i = 0; i < sum.dir_count; i++)
        assert_ok(
            pmfs_readdir(f->fs, sum.dirs[i], 0, PMFS_READDIR_ATTR, add_entry, &sum));
    assert_ok(pmfs_read(f->fs, find(f, ROOT, "file"), 0, bytes, sizeof(bytes), &done));
    add_bytes(&sum, bytes, done);
    assert_ok(pmfs_getxattr(f->fs, find(f, ROOT, "file"), "user.a", bytes,
                            sizeof(bytes), &done));
    add_bytes(&sum, bytes, done);
    return sum.hash;
}

/* ---- Calls, each with what takes it back --------------------------------------- */

static struct pmfs_attr attr;

/* As find(), but what it needs never fails. */
static uint64_t find_surely(struct fixture *f, const char *name)
{
    counting = false;
    uint64_t ino = find(f, ROOT, name);
    counting = true;
    return ino;
}

static int call_mknod(struct fixture *f)
{
    return pmfs_mknod(f->fs, ROOT, "new", 0644, 0, &nobody, &attr);
}

static int call_mkdir(struct fixture *f)
{
    return pmfs_mkdir(f->fs, find_surely(f, "dir"), "new", 0755, &nobody, &attr);
}

static int call_symlink(struct fixture *f)
{
    return pmfs_symlink(f->fs, ROOT, "new", "target", &nobody, &attr);
}

static int call_link(struct fixture *f)
{
    return pmfs_link(f->fs, find_surely(f, "file"), find_surely(f, "dir"), "new",
                     &attr);
}

static int call_unlink(struct fixture *f)
{
    return pmfs_unlink(f->fs, ROOT, "small");
}

static int call_unlink_large(struct fixture *f)
{
    return pmfs_unlink(f->fs, ROOT, "large");
}

static int call_rmdir(struct fixture *f)
{
    return pmfs_rmdir(f->fs, ROOT, "empty");
}

static int call_rename(struct fixture *f)
{
    return pmfs_rename(f->fs, ROOT, "small", find_surely(f, "dir"), "moved", 0);
}

static int call_rename_dir(struct fixture *f)
{
    return pmfs_rename(f->fs, ROOT, "empty", find_surely(f, "dir"), "moved", 0);
}

static int call_replace(struct fixture *f)
{
    return pmfs_rename(f->fs, ROOT, "small", ROOT, "large", 0);
}

static int call_exchange(struct fixture *f)
{
    return pmfs_rename(f->fs, ROOT, "small", ROOT, "dir", PMFS_RENAME_EXCHANGE);
}

static int call_rename_whiteout(struct fixture *f)
{
    return pmfs_rename_whiteout(f->fs, ROOT, "small", ROOT, "large", 0, &nobody);
}

static int call_tmpfile(struct fixture *f)
{
    int rc = pmfs_tmpfile(f->fs, find_surely(f, "empty"), 0644, 0, &nobody, &attr);

    if (rc == 0)
        pmfs_release(f->fs, attr.ino);
    return rc;
}

static int call_link_nameless(struct fixture *f)
{
    counting = false;
    assert_ok(pmfs_tmpfile(f->fs, ROOT, 0644, 0, &nobody, &attr));
    counting = true;

    uint64_t ino = attr.ino;
    int rc = pmfs_link(f->fs, ino, ROOT, "linked", &attr);

    counting = false;
    pmfs_release(f->fs, ino);
    counting = true;
    return rc;
}

static int call_write(struct fixture *f)
{
    static const uint8_t bytes[10 * BLOCK] = {1, 2, 3};
    size_t done;
    int rc =
        pmfs_write(f->fs, find_surely(f, "file"), 100, bytes, sizeof(bytes), 0, &done);

    /* Short, if the first try found no room. */
    return rc == 0 && done < sizeof(bytes) ? -ENOSPC : rc;
}

static int call_append(struct fixture *f)
{
    size_t done;

    return pmfs_write(f->fs, find_surely(f, "small"), 0, "more", 4, PMFS_APPEND, &done);
}

static int call_write_far(struct fixture *f)
{
    size_t done;

    return pmfs_write(f->fs, find_surely(f, "file"), (uint64_t)1 << 40, "far", 3, 0,
                      &done);
}

static int call_truncate(struct fixture *f)
{
    const struct pmfs_attr values = {.size = 5000};

    return pmfs_setattr(f->fs, find_surely(f, "file"), &values, PMFS_SET_SIZE, NULL);
}

static int call_truncate_large(struct fixture *f)
{
    const struct pmfs_attr values = {.size = 1};

    return pmfs_setattr(f->fs, find_surely(f, "large"), &values, PMFS_SET_SIZE, NULL);
}

static int call_setattr(struct fixture *f)
{
    const struct pmfs_attr values = {.mode = 0700, .uid = 3, .mtime_ns = 5};

    return pmfs_setattr(f->fs, find_surely(f, "file"), &values,
                        PMFS_SET_MODE | PMFS_SET_UID | PMFS_SET_MTIME, NULL);
}

static int call_allocate(struct fixture *f)
{
    return pmfs_fallocate(f->fs, find_surely(f, "file"), 0, 100, 50 * BLOCK);
}

static int call_punch(struct fixture *f)
{
    return pmfs_fallocate(f->fs, find_surely(f, "file"),
                          PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 100, 5 * BLOCK);
}

static int call_zero(struct fixture *f)
{
    return pmfs_fallocate(f->fs, find_surely(f, "file"), PMFS_ZERO_RANGE, 100,
                          5 * BLOCK);
}

static int call_copy(struct fixture *f)
{
    uint64_t done;

    return pmfs_copy_range(f->fs, find_surely(f, "large"), 0, find_surely(f, "file"),
                           100, 5 * BLOCK, &done);
}

static int call_setxattr(struct fixture *f)
{
    static const char value[5 * BLOCK];

    return pmfs_setxattr(f->fs, find_surely(f, "file"), "user.a", value, sizeof(value),
                         0);
}

static int call_removexattr(struct fixture *f)
{
    return pmfs_removexattr(f->fs, find_surely(f, "file"), "user.a");
}

static int call_mkdir_inheriting(struct fixture *f)
{
    return pmfs_mkdir(f->fs, find_surely(f, "empty"), "new", 0755, &nobody, &attr);
}

static int call_chmod_with_acl(struct fixture *f)
{
    const struct pmfs_attr values = {.mode = 0600};

    return pmfs_setattr(f->fs, find_surely(f, "large"), &values, PMFS_SET_MODE, NULL);
}

static int call_write_dropping(struct fixture *f)
{
    size_t done;

    return pmfs_write(f->fs, find_surely(f, "small"), 0, "S", 1,
                      PMFS_WRITE_DROPS_PRIVILEGES, &done);
}

static int call_lookup(struct fixture *f)
{
    return pmfs_lookup(f->fs, ROOT, "dir", &attr);
}

static const struct {
    const char *name;
    int (*call)(struct fixture *f);
    bool overwrites; /* a part of it may be done for want of room */
} all_calls[] = {
    {"mknod", call_mknod, false},
    {"mkdir", call_mkdir, false},
    {"symlink", call_symlink, false},
    {"link", call_link, false},
    {"unlink", call_unlink, false},
    {"unlink of a large file", call_unlink_large, false},
    {"rmdir", call_rmdir, false},
    {"rename", call_rename, false},
    {"rename of a directory", call_rename_dir, false},
    {"rename over a large file", call_replace, false},
    {"exchange", call_exchange, false},
    {"rename with a whiteout", call_rename_whiteout, false},
    {"tmpfile that inherits an ACL", call_tmpfile, false},
    {"link of a nameless file", call_link_nameless, false},
    {"write", call_write, true},
    {"append", call_append, false},
    {"write far past the end", call_write_far, false},
    {"truncate", call_truncate, false},
    {"truncate of a large file", call_truncate_large, false},
    {"setattr", call_setattr, false},
    {"allocate", call_allocate, false},
    {"punch", call_punch, false},
    {"zero", call_zero, true},
    {"copy", call_copy, false},
    {"setxattr", call_setxattr, false},
    {"removexattr", call_removexattr, false},
    {"mkdir that inherits an ACL", call_mkdir_inheriting, false},
    {"chmod with an ACL", call_chmod_with_acl, false},
    {"write that drops privileges", call_write_dropping, false},
    {"lookup", call_lookup, false},
};

/* ---- Failing in turn ----------------------------------------------------------- */

/* Of the owner, user 1, the group, and others, under a mask. */
static const uint8_t acl[4 + 5 * 8] = {
    2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  6,
    0, 1, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
    7, 0, 255, 255, 255, 255, 32, 0, 1,   0,   255, 255, 255, 255};

/* Makes the tree anew and mounts it, with nothing cached. */
static void start_over(struct fixture *f)
{
    static uint8_t bytes[LARGE];

    pmfs_unmount(f->fs);
    unlink(f->path);
    f->mkfs.pool.block_size = BLOCK;
    fixture_mkfs(f, MINL2R_POOL_SIZE_MIN);
    fixture_mount(f);
    memset(bytes, 'b', sizeof(bytes));
    make_file(f, make_dir(f, ROOT, "dir"), "entry");
    make_dir(f, ROOT, "empty");
    write_all(f, make_file(f, ROOT, "file"), 0, bytes, 20 * BLOCK + 10);
    write_all(f, make_file(f, ROOT, "large"), 0, bytes, sizeof(bytes));
    write_text(f, make_file(f, ROOT, "small"), 0, "small");
    assert_ok(pmfs_setxattr(f->fs, find(f, ROOT, "file"), "user.a", "b", 1, 0));
    assert_ok(pmfs_setxattr(f->fs, find(f, ROOT, "small"), "security.capability", "any",
                            3, 0));
    assert_ok(pmfs_setxattr(f->fs, find(f, ROOT, "large"), "system.posix_acl_access",
                            acl, sizeof(acl), 0));
    assert_ok(pmfs_setxattr(f->fs, find(f, ROOT, "empty"), "system.posix_acl_default",
                            acl, sizeof(acl), 0));
    fixture_remount(f);
}

/* Does call `n` with its failure number `at`. False if it has fewer. */
static bool fail_once(struct fixture *f, size_t n, enum what what, uint64_t at)
{
    int expected = what == MEMORY ? -ENOMEM : -ENOSPC;

    start_over(f);
    uint64_t before = tree_sum(f);
    fixture_remount(f);
    failing = what;
    calls = 0;
    fail_at = at;
    counting = true;
    int rc = all_calls[n].call(f);
    counting = false;
    if (calls < at) {
        assert_int_equal(rc, 0);
        return false;
    }
    if (rc != 0 && rc != expected)
        print_error("%s, failure %d: %d\n", all_calls[n].name, (int)at, rc);
    assert_true(rc == 0 || rc == expected);
    if (rc < 0 && !all_calls[n].overwrites && tree_sum(f) != before) {
        print_error("%s, failure %d: has changed something\n", all_calls[n].name,
                    (int)at);
        fail();
    }
    fixture_fsck_and_mount(f);
    return true;
}

static void fail_all(struct fixture *f, enum what what)
{
    uint64_t failures = 0;

    for (size_t n = 0; n < sizeof(all_calls) / sizeof(*all_calls); n++) {
        for (uint64_t at = 1; fail_once(f, n, what, at); at++)
            failures++;
    }
    print_message("          %d failures\n", (int)failures);
    assert_true(failures > 0);
}

static void without_memory_a_call_changes_nothing(void **state)
{
    fail_all(*state, MEMORY);
}

static void without_room_a_call_changes_nothing(void **state)
{
    fail_all(*state, ROOM);
}

static void mounting_and_checking_without_memory_are_enomem(void **state)
{
    struct fixture *f = *state;

    start_over(f);
    for (int checks = 0; checks < 2; checks++) {
        bool failed = true;

        fixture_unmount(f);
        for (uint64_t at = 1; failed; at++) {
            failing = MEMORY;
            calls = 0;
            fail_at = at;
            counting = true;
            int rc = checks ? pmfs_fsck(f->path, NULL, NULL, NULL)
                            : pmfs_mount(f->path, NULL, &f->fs);
            counting = false;
            failed = calls >= at;
            assert_true(rc == -ENOMEM || rc == 0);
            if (rc == 0 && !checks)
                pmfs_unmount(f->fs);
            f->fs = NULL;
        }
        fixture_mount(f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(without_memory_a_call_changes_nothing),
        TEST_EMPTY(without_room_a_call_changes_nothing),
        TEST_EMPTY(mounting_and_checking_without_memory_are_enomem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
