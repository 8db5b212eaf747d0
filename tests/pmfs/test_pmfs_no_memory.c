/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every allocation of memory fails in turn, and every call of the library for want of
 * room: the call answers so, and nothing has changed.
 */
#include "tests/golden/golden.h"
#include "tests/pmfs/pmfs_fixture.h"

#define BLOCK 512u /* small, so that a large file is small, too */
#define LARGE (100 * BLOCK)

/* ---- What fails ---------------------------------------------------------------- */

enum what { MEMORY, ROOM };

static bool counting;
static enum what failing;
static uint64_t calls;   /* while counting */
static uint64_t fail_at; /* the call that fails, from 1 on */
static uint64_t allocs;  /* of blocks, counted always */

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
WRAP(int, minl2r_tx_alloc, ROOM, (allocs++, -ENOSPC),
     (struct minl2r_tx * tx, uint64_t blocks, uint64_t *offset, void *writable),
     (tx, blocks, offset, (allocs++, writable)))
WRAP(int, minl2r_tx_free, ROOM, -ENOSPC,
     (struct minl2r_tx * tx, uint64_t offset, uint64_t blocks), (tx, offset, blocks))

/* ---- What is there ------------------------------------------------------------- */

struct sum {
    uint64_t hash;
    uint64_t dirs[32];
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
    /* A directory's own is another when it has been converted. */
    parts = parts * 131 + (S_ISDIR(entry->mode) ? 0 : entry->attr->size);
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
    struct sum sum = {.dirs = {ROOT}, .dir_count = 1};
    struct pmfs_attr found;
    size_t done;

    for (int i = 0; i < sum.dir_count; i++)
        assert_ok(
            pmfs_readdir(f->fs, sum.dirs[i], 0, PMFS_READDIR_ATTR, add_entry, &sum));
    if (pmfs_lookup(f->fs, ROOT, "file", &found) < 0)
        return sum.hash;
    assert_ok(pmfs_read(f->fs, found.ino, 0, bytes, sizeof(bytes), &done));
    add_bytes(&sum, bytes, done);
    assert_ok(pmfs_getxattr(f->fs, found.ino, "user.a", bytes, sizeof(bytes), &done));
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

/* ---- In directories of many blocks --------------------------------------------- */

/*
 * Directories with so many names of one file that the next call, with the name `next`, is
 * the first to take `allocs` blocks: after `begin` names were added, each call adds one; or
 * removes one, the first first.
 */
struct names {
    const char *dir;
    int begin;
    bool removes;
    uint64_t allocs;
    int next;
};

static struct names all_names[] = {
    {"full", 0, false, 3, 0},    /* a node, and two blocks instead of one */
    {"splits", 20, false, 2, 0}, /* these only */
    {"deep", 20, false, 3, 0},   /* and a node below the node */
    {"shrinks", 17, true, 1, 0}, /* one instead of two and their node */
    {"joins", 200, true, 1, 0},  /* one instead of two */
};

/* 15 of them fill a block. */
static const char *name_of(int number)
{
    static char name[32];

    snprintf(name, sizeof(name), "%016d", number);
    return name;
}

static const char *next_of(const char *dir)
{
    struct names *names = all_names;

    while (strcmp(names->dir, dir) != 0)
        names++;
    return name_of(names->next);
}

static uint64_t add_or_remove(struct fixture *f, uint64_t dir, int number, bool removes)
{
    uint64_t before = allocs;

    if (removes)
        assert_ok(pmfs_unlink(f->fs, dir, name_of(number)));
    else
        assert_ok(
            pmfs_link(f->fs, find(f, ROOT, "named"), dir, name_of(number), &attr));
    return allocs - before;
}

static uint64_t make_names_until(struct fixture *f, const struct names *names, int next)
{
    uint64_t dir = make_dir(f, ROOT, names->dir);

    for (int i = 0; i < names->begin; i++)
        add_or_remove(f, dir, i, false);
    for (int i = names->removes ? 0 : names->begin; i < next; i++)
        add_or_remove(f, dir, i, names->removes);
    return dir;
}

/* What is next is found out by doing it; then it is all done again, but for that. */
static void make_names(struct fixture *f, struct names *names)
{
    uint64_t dir = make_names_until(f, names, 0);

    names->next = names->removes ? 0 : names->begin;
    while (add_or_remove(f, dir, names->next, names->removes) != names->allocs)
        assert_true(++names->next < 2000);
    for (int i = 0; i <= names->next || i < names->begin; i++)
        if (pmfs_lookup(f->fs, dir, name_of(i), &attr) == 0)
            add_or_remove(f, dir, i, true);
    assert_ok(pmfs_rmdir(f->fs, ROOT, names->dir));
    make_names_until(f, names, names->next);
}

static int make_in(struct fixture *f, const char *dir)
{
    uint64_t ino = find_surely(f, dir);

    return pmfs_mknod(f->fs, ino, next_of(dir), 0644, 0, &nobody, &attr);
}

static int call_split(struct fixture *f)
{
    return make_in(f, "splits");
}

static int call_first_node(struct fixture *f)
{
    return make_in(f, "full");
}

static int call_node_below(struct fixture *f)
{
    return make_in(f, "deep");
}

static int call_rename_splitting(struct fixture *f)
{
    uint64_t dir = find_surely(f, "splits");

    return pmfs_rename(f->fs, ROOT, "small", dir, next_of("splits"), 0);
}

static int call_join(struct fixture *f)
{
    uint64_t dir = find_surely(f, "joins");

    return pmfs_unlink(f->fs, dir, next_of("joins"));
}

static int call_join_all(struct fixture *f)
{
    uint64_t dir = find_surely(f, "shrinks");

    return pmfs_unlink(f->fs, dir, next_of("shrinks"));
}

static int call_rename_joining(struct fixture *f)
{
    uint64_t dir = find_surely(f, "joins");

    return pmfs_rename(f->fs, dir, next_of("joins"), ROOT, "moved", 0);
}

/* ---- By path ------------------------------------------------------------------- */

static int call_path_create(struct fixture *f)
{
    int rc = pmfs_path_open(f->fs, ROOT, "/symlink/new", O_RDWR | O_CREAT, 0644,
                            &nobody, &attr);

    if (rc == 0)
        pmfs_release(f->fs, attr.ino);
    return rc;
}

static int call_path_open_truncating(struct fixture *f)
{
    int rc = pmfs_path_open(f->fs, ROOT, "dir/../large", O_WRONLY | O_TRUNC, 0, &nobody,
                            &attr);

    if (rc == 0)
        pmfs_release(f->fs, attr.ino);
    return rc;
}

static int call_path_tmpfile(struct fixture *f)
{
    int rc = pmfs_path_open(f->fs, ROOT, "symlink", O_RDWR | O_TMPFILE, 0644, &nobody,
                            &attr);

    if (rc == 0)
        pmfs_release(f->fs, attr.ino);
    return rc;
}

static int call_path_getattr(struct fixture *f)
{
    return pmfs_path_getattr(f->fs, ROOT, "symlink/entry", 0, &attr);
}

static int call_path_setattr(struct fixture *f)
{
    const struct pmfs_attr values = {.mode = 0700, .size = 5000};

    return pmfs_path_setattr(f->fs, ROOT, "symlink/../file", 0, &values,
                             PMFS_SET_MODE | PMFS_SET_SIZE, NULL);
}

static int call_path_mknod(struct fixture *f)
{
    return pmfs_path_mknod(f->fs, ROOT, "symlink/new", S_IFCHR | 0644, 5, &nobody,
                           &attr);
}

static int call_path_mkdir(struct fixture *f)
{
    return pmfs_path_mkdir(f->fs, ROOT, "symlink/new/", 0755, &nobody, &attr);
}

static int call_path_symlink(struct fixture *f)
{
    return pmfs_path_symlink(f->fs, "target", ROOT, "symlink/new", &nobody, &attr);
}

static int call_path_readlink(struct fixture *f)
{
    static char target[PMFS_SYMLINK_MAX + 1];

    return pmfs_path_readlink(f->fs, ROOT, "symlink/../symlink", target,
                              sizeof(target));
}

static int call_path_link(struct fixture *f)
{
    return pmfs_path_link(f->fs, ROOT, "file", ROOT, "symlink/new", 0);
}

static int call_path_unlink(struct fixture *f)
{
    return pmfs_path_unlink(f->fs, ROOT, "symlink/entry");
}

static int call_path_rmdir(struct fixture *f)
{
    return pmfs_path_rmdir(f->fs, ROOT, "symlink/../empty");
}

static int call_path_rename(struct fixture *f)
{
    return pmfs_path_rename(f->fs, ROOT, "symlink/entry", ROOT, "large", 0);
}

static int call_path_rename_whiteout(struct fixture *f)
{
    return pmfs_path_rename_whiteout(f->fs, ROOT, "symlink/entry", ROOT, "moved", 0,
                                     &nobody);
}

static int call_path_of(struct fixture *f)
{
    static char path[PMFS_PATH_MAX + 1];

    return pmfs_path_of(f->fs, find_surely(f, "dir"), path, sizeof(path));
}

static int call_path_parent(struct fixture *f)
{
    struct pmfs_place place;
    int rc = pmfs_path_parent(f->fs, ROOT, "symlink/entry", 0, &place);

    if (rc == 0)
        pmfs_place_release(f->fs, &place);
    return rc;
}

/* ---- What is not of this version, or not over ---------------------------------- */

static int call_use_of_old(struct fixture *f)
{
    return pmfs_lookup(f->fs, find_surely(f, "large"), "file", &attr);
}

static int call_make_in_old(struct fixture *f)
{
    return pmfs_mknod(f->fs, find_surely(f, "large"), "new", 0644, 0, &nobody, &attr);
}

static int call_unlink_in_old(struct fixture *f)
{
    return pmfs_unlink(f->fs, find_surely(f, "large"), "name 7");
}

static int call_lookup(struct fixture *f)
{
    return pmfs_lookup(f->fs, ROOT, "dir", &attr);
}

/* What calls begin with. */
enum image {
    PLAIN,
    OLD,        /* a directory of format 2, "large" */
    UNFINISHED, /* killed with a file that is open without a name, and in a truncation */
    IMAGES
};

enum flags {
    IN_PART = 1, /* a part of it may be done for want of room */
    IN_OLD = 2,  /* in the image OLD */
};

static const struct {
    const char *name;
    int (*call)(struct fixture *f);
    unsigned flags; /* enum flags */
} all_calls[] = {
    {"mknod", call_mknod, 0},
    {"mkdir", call_mkdir, 0},
    {"symlink", call_symlink, 0},
    {"link", call_link, 0},
    {"unlink", call_unlink, 0},
    {"unlink of a large file", call_unlink_large, 0},
    {"rmdir", call_rmdir, 0},
    {"rename", call_rename, 0},
    {"rename of a directory", call_rename_dir, 0},
    {"rename over a large file", call_replace, 0},
    {"exchange", call_exchange, 0},
    {"rename with a whiteout", call_rename_whiteout, 0},
    {"tmpfile that inherits an ACL", call_tmpfile, 0},
    {"link of a nameless file", call_link_nameless, 0},
    {"write", call_write, IN_PART},
    {"append", call_append, 0},
    {"write far past the end", call_write_far, 0},
    {"truncate", call_truncate, 0},
    {"truncate of a large file", call_truncate_large, 0},
    {"setattr", call_setattr, 0},
    {"allocate", call_allocate, 0},
    {"punch", call_punch, 0},
    {"zero", call_zero, IN_PART},
    {"copy", call_copy, 0},
    {"setxattr", call_setxattr, 0},
    {"removexattr", call_removexattr, 0},
    {"mkdir that inherits an ACL", call_mkdir_inheriting, 0},
    {"chmod with an ACL", call_chmod_with_acl, 0},
    {"write that drops privileges", call_write_dropping, 0},
    {"lookup", call_lookup, 0},
    {"mknod that splits a block", call_split, 0},
    {"mknod that needs a node", call_first_node, 0},
    {"mknod that needs a node below", call_node_below, 0},
    {"rename that splits a block", call_rename_splitting, 0},
    {"unlink that joins blocks", call_join, 0},
    {"unlink that frees a node", call_join_all, 0},
    {"rename that joins blocks", call_rename_joining, 0},
    {"open by path that creates", call_path_create, 0},
    {"open by path that truncates", call_path_open_truncating, 0},
    {"open by path without a name", call_path_tmpfile, 0},
    {"getattr by path", call_path_getattr, 0},
    {"setattr by path", call_path_setattr, 0},
    {"mknod by path", call_path_mknod, 0},
    {"mkdir by path", call_path_mkdir, 0},
    {"symlink by path", call_path_symlink, 0},
    {"readlink by path", call_path_readlink, 0},
    {"link by path", call_path_link, 0},
    {"unlink by path", call_path_unlink, 0},
    {"rmdir by path", call_path_rmdir, 0},
    {"rename by path", call_path_rename, 0},
    {"rename with a whiteout by path", call_path_rename_whiteout, 0},
    {"path of a directory", call_path_of, 0},
    {"parent of a path", call_path_parent, 0},
    {"conversion", call_use_of_old, IN_OLD},
    {"mknod that converts", call_make_in_old, IN_OLD},
    {"unlink that converts", call_unlink_in_old, IN_OLD},
};

/* ---- Failing in turn ----------------------------------------------------------- */

/* Of the owner, user 1, the group, and others, under a mask. */
static const uint8_t acl[4 + 5 * 8] = {
    2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  6,
    0, 1, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
    7, 0, 255, 255, 255, 255, 32, 0, 1,   0,   255, 255, 255, 255};

/* Each is made once, and then copied. */
static uint64_t sums[IMAGES];

static const char *path_of_image(const struct fixture *f, enum image image)
{
    static char path[100];

    snprintf(path, sizeof(path), "%s/image.%d", f->dir, image);
    return path;
}

static void copy_pool(const char *from, const char *to)
{
    static uint8_t bytes[MINL2R_POOL_SIZE_MIN];
    int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0600);

    assert_true(in >= 0 && out >= 0);
    assert_int_equal(read(in, bytes, sizeof(bytes)), sizeof(bytes));
    assert_int_equal(write(out, bytes, sizeof(bytes)), sizeof(bytes));
    close(in);
    close(out);
}

static void make_plain(struct fixture *f)
{
    static uint8_t bytes[LARGE];

    f->mkfs.pool.block_size = BLOCK;
    fixture_mkfs(f, MINL2R_POOL_SIZE_MIN);
    fixture_mount(f);
    memset(bytes, 'b', sizeof(bytes));
    make_file(f, make_dir(f, ROOT, "dir"), "entry");
    make_dir(f, ROOT, "empty");
    assert_ok(pmfs_symlink(f->fs, ROOT, "symlink", "dir", &nobody, &attr));
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
    make_file(f, ROOT, "named");
    for (size_t i = 0; i < sizeof(all_names) / sizeof(*all_names); i++)
        make_names(f, &all_names[i]);
    fixture_unmount(f);
}

static void make_old(struct fixture *f)
{
    char command[512];

    snprintf(command, sizeof(command), "gzip -dc %s/pmfs-v2-large.img.gz > %s",
             GOLDEN_DIRECTORY, f->path);
    assert_int_equal(system(command), 0);
}

/* Of "file", so that its first transaction is all that is done. */
static void truncate_in_part(struct fixture *f)
{
    const struct pmfs_attr values = {.size = 1};
    uint64_t ino = make_file(f, ROOT, "cut");
    static uint8_t bytes[LARGE];
    int rc = -ENOSPC;

    write_all(f, ino, 0, bytes, sizeof(bytes));
    failing = ROOM;
    for (fail_at = 1; rc == -ENOSPC; fail_at++) {
        calls = 0;
        counting = true;
        rc = pmfs_setattr(f->fs, ino, &values, PMFS_SET_SIZE, NULL);
        counting = false;
    }
    assert_ok(rc);
    assert_true(calls >= fail_at - 1);
}

static void make_unfinished(struct fixture *f)
{
    copy_pool(path_of_image(f, PLAIN), f->path);
    fixture_mount(f);
    uint64_t ino = find(f, ROOT, "large");

    assert_ok(pmfs_open(f->fs, ino));
    assert_ok(pmfs_unlink(f->fs, ROOT, "large"));
    truncate_in_part(f);
    /* What a killed process leaves. */
    copy_pool(f->path, path_of_image(f, UNFINISHED));
    pmfs_release(f->fs, ino);
    fixture_unmount(f);
    copy_pool(path_of_image(f, UNFINISHED), f->path);
}

/* Has an image mounted, with nothing cached. */
static void start_over(struct fixture *f, enum image image)
{
    pmfs_unmount(f->fs);
    f->fs = NULL;
    copy_pool(path_of_image(f, image), f->path);
    if (image != UNFINISHED)
        fixture_mount(f);
}

static int make_images(void **state)
{
    static void (*const make[IMAGES])(struct fixture *) = {make_plain, make_old,
                                                           make_unfinished};

    if (fixture_setup_empty(state) < 0)
        return -1;
    for (enum image image = 0; image < IMAGES; image++) {
        struct fixture *f = *state;

        make[image](f);
        copy_pool(f->path, path_of_image(f, image));
        fixture_mount(f);
        sums[image] = tree_sum(f);
        fixture_unmount(f);
        unlink(f->path);
    }
    return 0;
}

static int remove_images(void **state)
{
    for (enum image image = 0; image < IMAGES; image++)
        unlink(path_of_image(*state, image));
    return fixture_teardown_empty(state);
}

/* Does call `n` with its failure number `at`. False if it has fewer. */
static bool fail_once(struct fixture *f, size_t n, enum what what, uint64_t at)
{
    int expected = what == MEMORY ? -ENOMEM : -ENOSPC;
    enum image image = all_calls[n].flags & IN_OLD ? OLD : PLAIN;

    start_over(f, image);
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
    if (rc < 0 && !(all_calls[n].flags & IN_PART) && tree_sum(f) != sums[image]) {
        print_error("%s, failure %d: has changed something\n", all_calls[n].name,
                    (int)at);
        fail();
    }
    fixture_unmount(f);
    if (pmfs_fsck(f->path, print_finding, NULL, &f->summary) != 0) {
        print_error("%s, failure %d: %d, and fsck finds something\n", all_calls[n].name,
                    (int)at, rc);
        fail();
    }
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

/* Mounts what is unfinished with failure number `at`. False if it has fewer. */
static bool fail_to_mount(struct fixture *f, enum what what, uint64_t at)
{
    struct pmfs_recovery recovery;

    start_over(f, UNFINISHED);
    failing = what;
    calls = 0;
    fail_at = at;
    counting = true;
    int rc = pmfs_mount(f->path, NULL, &f->fs);
    counting = false;
    if (rc != 0) {
        f->fs = NULL;
        assert_true(strlen(pmfs_errormsg()) > 0);
    }
    assert_true(rc == 0 || rc == (what == MEMORY ? -ENOMEM : -ENOSPC));
    pmfs_unmount(f->fs);
    f->fs = NULL;
    fixture_fsck(f);
    if (calls < at) {
        assert_ok(rc);
        assert_int_equal(f->summary.orphans + f->summary.truncates, 0);
        return false;
    }
    fixture_mount(f);
    pmfs_recovery(f->fs, &recovery);
    assert_int_equal(recovery.orphans, f->summary.orphans);
    assert_int_equal(recovery.truncates, f->summary.truncates);
    assert_true(tree_sum(f) == sums[UNFINISHED]);
    fixture_unmount(f);
    fixture_fsck(f);
    assert_int_equal(f->summary.orphans + f->summary.truncates, 0);
    return true;
}

static void mounting_without_memory_or_room_leaves_it_to_the_next(void **state)
{
    struct fixture *f = *state;

    start_over(f, UNFINISHED);
    fixture_fsck(f);
    assert_int_equal(f->summary.orphans, 1);
    assert_int_equal(f->summary.truncates, 1);
    for (enum what what = MEMORY; what <= ROOM; what++) {
        for (uint64_t at = 1; fail_to_mount(f, what, at);)
            at++;
    }
}

static void checking_without_memory_is_enomem(void **state)
{
    struct fixture *f = *state;
    bool failed = true;

    start_over(f, PLAIN);
    fixture_unmount(f);
    failing = MEMORY;
    for (fail_at = 1; failed; fail_at++) {
        calls = 0;
        counting = true;
        int rc = pmfs_fsck(f->path, NULL, NULL, NULL);
        counting = false;
        failed = calls >= fail_at;
        assert_true(rc == -ENOMEM || rc == 0);
        assert_true(rc == 0 || strlen(pmfs_errormsg()) > 0);
    }
}

#define TEST_IMAGES(name)                                                              \
    cmocka_unit_test_setup_teardown(name, make_images, remove_images)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_IMAGES(without_memory_a_call_changes_nothing),
        TEST_IMAGES(without_room_a_call_changes_nothing),
        TEST_IMAGES(mounting_without_memory_or_room_leaves_it_to_the_next),
        TEST_IMAGES(checking_without_memory_is_enomem),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
