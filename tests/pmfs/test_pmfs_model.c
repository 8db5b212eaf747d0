/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random calls, compared with a model: each answer, and every so often the whole tree,
 * with remounts and fscks in between. The pool is small, so that it runs full, too.
 *
 * PMFS_TEST_SEED and PMFS_TEST_STEPS choose another run, and a longer one; for long tests
 * there are many with other seeds.
 *
 * The same runs through a mount (tests/mount/pmfs_by_kernel.c). There some calls cannot be
 * asked for (-ENOSYS), and where there are two reasons to refuse one, the kernel may name
 * the other.
 */
#include "tests/pmfs/model.h"
#include "tests/pmfs/pmfs_fixture.h"
#include "tests/unit/long.h"

#define STEPS (BY_KERNEL ? 3000 : 12000)
#define STEPS_SHOWN 1000000 /* so many, a line each */
#define RUNS_IF_LONG 40
#define INODES_MAX 120
#define WRITE_MAX 40000
#define FILE_MAX (3 * MIB)

struct run {
    struct fixture *f;
    struct model model;
    uint64_t random;
    uint64_t no_space;  /* calls that found no room */
    uint64_t unaskable; /* calls that the kernel has no way for */
    uint8_t bytes[WRITE_MAX];
};

static uint64_t below(struct run *run, uint64_t end)
{
    run->random ^= run->random << 13;
    run->random ^= run->random >> 7;
    run->random ^= run->random << 17;
    return run->random % end;
}

/* ---- Picking ------------------------------------------------------------------- */

static struct model_inode *pick(struct run *run)
{
    struct model_inode *inode = run->model.all;

    for (uint64_t i = below(run, (uint64_t)run->model.inode_count); i; i--)
        inode = inode->next;
    return inode;
}

static struct model_inode *pick_type(struct run *run, uint32_t type)
{
    for (int i = 0; i < 50; i++) {
        struct model_inode *inode = pick(run);

        if ((inode->mode & S_IFMT) == type)
            return inode;
    }
    return run->model.root;
}

/* One without a name, mostly. */
static struct model_inode *pick_nameless(struct run *run)
{
    struct model_inode *inode = pick(run);

    for (int i = 0; i < 10 && inode->nlink; i++)
        inode = pick(run);
    return inode;
}

/* Mostly directories. */
static struct model_inode *pick_dir(struct run *run)
{
    return below(run, 50) ? pick_type(run, S_IFDIR) : pick(run);
}

/* A few names, some of them long, so that they meet. */
static const char *pick_name(struct run *run, char *name)
{
    uint64_t number = below(run, 40);
    int length = snprintf(name, MODEL_NAME_SIZE, "name %d", (int)number);

    if (number % 5 == 0) {
        memset(name + length, 'x', (size_t)(MODEL_NAME_SIZE - 1 - length));
        name[MODEL_NAME_SIZE - 1 - (int)number] = 0;
    }
    return name;
}

/* One that exists, mostly. */
static const char *pick_entry(struct run *run, const struct model_inode *dir,
                              char *name)
{
    if (!S_ISDIR(dir->mode) || dir->entry_count == 0 || below(run, 10) == 0)
        return pick_name(run, name);
    return strcpy(name, dir->entries[below(run, (uint64_t)dir->entry_count)].name);
}

/* Compares an answer. True if the call is to be done in the model, too. */
static bool did(struct run *run, int rc, int expected, const char *what)
{
    if (rc == -ENOSPC && expected == 0) {
        run->no_space++;
        return false;
    }
    if (rc == -ENOSYS) {
        run->unaskable++;
        return false;
    }
    if (rc != expected && !(BY_KERNEL && rc < 0 && expected < 0)) {
        print_error("%s: %d (%s), not %d; last message: %s\n", what, rc, strerror(-rc),
                    expected, pmfs_errormsg());
        fail();
    }
    return rc == 0;
}

/* ---- Calls --------------------------------------------------------------------- */

static void count_lookup(struct run *run, struct model_inode *inode)
{
    inode->lookups += (run->f->mount.flags & PMFS_COUNT_LOOKUPS) != 0;
}

static void do_make(struct run *run)
{
    static const uint32_t types[] = {S_IFREG, S_IFREG, S_IFREG, S_IFREG, S_IFDIR,
                                     S_IFDIR, S_IFLNK, S_IFLNK, S_IFIFO, S_IFCHR};
    struct fixture *f = run->f;
    struct model_inode *dir = pick_dir(run), *made;
    uint32_t mode = types[below(run, 10)] | (uint32_t)below(run, 01000);
    uint64_t rdev = S_ISCHR(mode) ? below(run, 1 << 16) : 0;
    char name[MODEL_NAME_SIZE], target[3000];
    const struct pmfs_cred cred = {.uid = (uint32_t)below(run, 9), .gid = 3};
    int rc;

    pick_name(run, name);
    if (run->model.inode_count >= INODES_MAX)
        return;
    memset(target, 't', sizeof(target));
    target[1 + below(run, sizeof(target) - 1)] = 0;
    if (S_ISDIR(mode)) {
        rc = pmfs_mkdir(f->fs, dir->ino, name, mode, &cred, &f->attr);
    } else if (S_ISLNK(mode)) {
        mode = S_IFLNK | 0777;
        rc = pmfs_symlink(f->fs, dir->ino, name, target, &cred, &f->attr);
    } else {
        rc = pmfs_mknod(f->fs, dir->ino, name, mode, rdev, &cred, &f->attr);
    }
    if (!did(run, rc, model_may_make(dir, name), "make"))
        return;
    made = model_make(&run->model, dir, name, mode, f->attr.ino);
    made->uid = cred.uid;
    made->gid = cred.gid;
    made->rdev = rdev;
    if (S_ISLNK(mode))
        model_write(made, 0, target, strlen(target));
    count_lookup(run, made);
}

static void do_make_nameless(struct run *run)
{
    struct fixture *f = run->f;
    struct model_inode *dir = pick_dir(run), *made;
    uint32_t mode = S_IFREG | (uint32_t)below(run, 01000);
    const struct pmfs_cred cred = {.uid = (uint32_t)below(run, 9), .gid = 3};
    unsigned flags = below(run, 4) ? 0 : PMFS_NEVER_LINKED;

    if (run->model.inode_count >= INODES_MAX)
        return;
    if (!did(run, pmfs_tmpfile(f->fs, dir->ino, mode, flags, &cred, &f->attr),
             S_ISDIR(dir->mode) ? 0 : -ENOTDIR, "make nameless"))
        return;
    made = model_make_nameless(&run->model, mode, f->attr.ino, flags == 0);
    made->uid = cred.uid;
    made->gid = cred.gid;
    made->opens = 1;
    count_lookup(run, made);
}

static void do_link(struct run *run)
{
    struct fixture *f = run->f;
    struct model_inode *inode = below(run, 2) ? pick(run) : pick_nameless(run);
    struct model_inode *dir = pick_dir(run);
    char name[MODEL_NAME_SIZE];

    pick_name(run, name);
    if (!did(run, pmfs_link(f->fs, inode->ino, dir->ino, name, &f->attr),
             model_may_link(inode, dir, name), "link"))
        return;
    model_link(inode, dir, name);
    count_lookup(run, inode);
}

static void do_remove(struct run *run)
{
    struct model_inode *dir = pick_dir(run);
    char name[MODEL_NAME_SIZE];
    bool directory = below(run, 3) == 0;
    int rc;

    pick_entry(run, dir, name);
    rc = directory ? pmfs_rmdir(run->f->fs, dir->ino, name)
                   : pmfs_unlink(run->f->fs, dir->ino, name);
    if (rc == -ENOENT && S_ISDIR(dir->mode) && dir->nlink == 0)
        return;
    if (did(run, rc, model_may_remove(dir, name, directory), "remove"))
        model_remove(&run->model, dir, name);
}

static void do_rename(struct run *run)
{
    static const unsigned all_flags[] = {0, 0, 0, PMFS_RENAME_NOREPLACE,
                                         PMFS_RENAME_EXCHANGE};
    struct model_inode *dir = pick_dir(run);
    struct model_inode *new_dir = below(run, 2) ? dir : pick_dir(run);
    char name[MODEL_NAME_SIZE], new_name[MODEL_NAME_SIZE];
    unsigned flags = all_flags[below(run, 5)];

    pick_entry(run, dir, name);
    if (below(run, 2))
        pick_entry(run, new_dir, new_name);
    else
        pick_name(run, new_name);
    if (did(run, pmfs_rename(run->f->fs, dir->ino, name, new_dir->ino, new_name, flags),
            model_may_rename(dir, name, new_dir, new_name, flags), "rename"))
        model_rename(&run->model, dir, name, new_dir, new_name, flags);
}

static void do_rename_whiteout(struct run *run)
{
    struct fixture *f = run->f;
    struct model_inode *dir = pick_dir(run), *made;
    struct model_inode *new_dir = below(run, 2) ? dir : pick_dir(run);
    const struct pmfs_cred cred = {.uid = (uint32_t)below(run, 9), .gid = 3};
    char name[MODEL_NAME_SIZE], new_name[MODEL_NAME_SIZE];
    unsigned flags = below(run, 3) ? 0 : PMFS_RENAME_NOREPLACE;

    pick_entry(run, dir, name);
    pick_name(run, new_name);
    if (run->model.inode_count >= INODES_MAX)
        return;
    if (!did(run,
             pmfs_rename_whiteout(f->fs, dir->ino, name, new_dir->ino, new_name, flags,
                                  &cred),
             model_may_rename(dir, name, new_dir, new_name, flags), "rename whiteout"))
        return;
    model_rename(&run->model, dir, name, new_dir, new_name, flags);
    if (model_find(dir, name))
        return; /* they were one file */
    assert_ok(pmfs_lookup(f->fs, dir->ino, name, &f->attr));
    made = model_make(&run->model, dir, name, S_IFCHR, f->attr.ino);
    made->uid = cred.uid;
    made->gid = cred.gid;
    count_lookup(run, made);
}

static int expected_of_file(const struct model_inode *inode)
{
    if (S_ISREG(inode->mode))
        return 0;
    return S_ISDIR(inode->mode) ? -EISDIR : -EINVAL;
}

/* A mount may have done a part of a write, of what is there already. */
static uint64_t find_written(struct run *run, const struct model_inode *inode,
                             uint64_t offset, uint64_t size)
{
    static uint8_t found[WRITE_MAX];
    uint64_t count = 0;
    size_t done = 0;

    if (offset + size > inode->size)
        return 0;
    assert_ok(pmfs_read(run->f->fs, inode->ino, offset, found, size, &done));
    while (count < done && found[count] == run->bytes[count])
        count++;
    return count;
}

static void do_write(struct run *run)
{
    struct model_inode *inode = below(run, 30) ? pick_type(run, S_IFREG) : pick(run);
    unsigned flags = below(run, 3) ? 0 : PMFS_APPEND;
    uint64_t offset =
        below(run, 2) ? below(run, 60000) : below(run, inode->size + 9000);
    uint64_t size = below(run, 2) ? below(run, 300) : below(run, WRITE_MAX);
    size_t done = 0;

    if (below(run, 20) == 0)
        offset = below(run, FILE_MAX);
    if (flags & PMFS_APPEND && inode->size + size > FILE_MAX)
        return;
    for (uint64_t i = 0; i < size; i += 8)
        memcpy(run->bytes + i, &(uint64_t){below(run, UINT64_MAX)}, 8);
    int rc = pmfs_write(run->f->fs, inode->ino, offset, run->bytes, size, flags, &done);
    if (flags & PMFS_APPEND)
        offset = inode->size;
    if (BY_KERNEL && rc == -ENOSPC)
        model_write(inode, offset, run->bytes, find_written(run, inode, offset, size));
    if (!did(run, rc, expected_of_file(inode), "write"))
        return;
    if (done < size) { /* for want of log, and only of what needs nothing else */
        assert_true(done > 0 && offset + size <= inode->size);
        run->no_space++;
    }
    model_write(inode, offset, run->bytes, done);
}

static void do_truncate(struct run *run)
{
    struct model_inode *inode = below(run, 30) ? pick_type(run, S_IFREG) : pick(run);
    const struct pmfs_attr values = {
        .size = below(run, 3) ? below(run, inode->size + 1)
                              : below(run, below(run, 4) ? 20000 : FILE_MAX)};

    if (did(run, pmfs_setattr(run->f->fs, inode->ino, &values, PMFS_SET_SIZE, NULL),
            expected_of_file(inode), "truncate"))
        model_truncate(inode, values.size);
}

/* How many bytes from `offset` to `end` are zeros. */
static uint64_t find_zeros(struct run *run, const struct model_inode *inode,
                           uint64_t offset, uint64_t end)
{
    uint8_t *bytes = malloc(end - offset);
    uint64_t count = 0;
    size_t done;

    assert_non_null(bytes);
    assert_ok(pmfs_read(run->f->fs, inode->ino, offset, bytes, end - offset, &done));
    while (count < done && bytes[count] == 0)
        count++;
    free(bytes);
    return count;
}

static void do_fallocate(struct run *run)
{
    static const unsigned modes[] = {0,
                                     PMFS_KEEP_SIZE,
                                     PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE,
                                     PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE,
                                     PMFS_ZERO_RANGE,
                                     PMFS_ZERO_RANGE | PMFS_KEEP_SIZE};
    struct model_inode *inode = pick_type(run, S_IFREG);
    unsigned mode = modes[below(run, 6)];
    uint64_t offset = below(run, below(run, 4) ? inode->size + 9000 : FILE_MAX);
    uint64_t size = 1 + below(run, below(run, 4) ? 20000 : FILE_MAX / 4);
    int rc;

    if (!S_ISREG(inode->mode))
        return;
    rc = pmfs_fallocate(run->f->fs, inode->ino, mode, offset, size);
    if (rc != -ENOSPC) {
        assert_ok(rc);
        model_fallocate(inode, mode, offset, size);
        return;
    }
    /* Pieces at the front may be done. */
    run->no_space++;
    size = attr_of(run->f, inode->ino).size;
    if (mode & PMFS_ZERO_RANGE && offset < size)
        model_fallocate(inode, mode, offset, find_zeros(run, inode, offset, size));
    model_truncate(inode, size);
}

static void do_copy(struct run *run)
{
    struct model_inode *from = pick_type(run, S_IFREG), *to = pick_type(run, S_IFREG);
    uint64_t from_offset = below(run, from->size + 100);
    uint64_t to_offset = below(run, to->size + 9000), size = 1 + below(run, WRITE_MAX);
    uint64_t done = 0;

    if (!S_ISREG(from->mode) || !S_ISREG(to->mode))
        return;
    if (from_offset + size > from->size)
        size = from_offset < from->size ? from->size - from_offset : 0;
    if (!did(run,
             pmfs_copy_range(run->f->fs, from->ino, from_offset, to->ino, to_offset,
                             size, &done),
             model_may_copy(from, from_offset, to, to_offset, size), "copy"))
        return;
    assert_in_range(done, size != 0, size);
    if (done)
        memcpy(run->bytes, from->bytes + from_offset, done);
    model_write(to, to_offset, run->bytes, done);
}

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

/* What is no data is zeros, and so is a hole. */
static void do_seek(struct run *run)
{
    struct model_inode *inode = pick_type(run, S_IFREG);
    uint64_t offset = below(run, inode->size + 100), found = inode->size;
    int rc;

    if (!S_ISREG(inode->mode))
        return;
    rc = pmfs_seek(run->f->fs, inode->ino, offset, PMFS_SEEK_DATA, &found);
    if (rc != -ENXIO)
        assert_ok(rc);
    if (offset < inode->size)
        assert_true(is_zero(inode->bytes + offset, found - offset));
    rc = pmfs_seek(run->f->fs, inode->ino, offset, PMFS_SEEK_HOLE, &found);
    assert_int_equal(rc, offset < inode->size ? 0 : -ENXIO);
    assert_in_range(found, rc == 0 ? offset : 0, inode->size);
    if (rc == 0 && found < inode->size)
        assert_int_equal(inode->bytes[found], 0);
}

static void do_setattr(struct run *run)
{
    struct model_inode *inode = pick(run);
    unsigned mask = (unsigned)below(run, PMFS_SET_GID * 2);
    const struct pmfs_attr values = {
        .mode = (uint32_t)below(run, 010000) & ~(uint32_t)S_ISGID,
        .uid = (uint32_t)below(run, 9),
        .gid = (uint32_t)below(run, 9),
    };

    if (below(run, 2))
        mask |= PMFS_SET_ATIME_NOW;
    if (!did(run, pmfs_setattr(run->f->fs, inode->ino, &values, mask, NULL), 0,
             "setattr"))
        return;
    if (mask & PMFS_SET_MODE)
        inode->mode = (inode->mode & S_IFMT) | (values.mode & 07777);
    if (mask & PMFS_SET_UID)
        inode->uid = values.uid;
    if (mask & PMFS_SET_GID)
        inode->gid = values.gid;
}

static const char *xattr_name(uint64_t number, char *name)
{
    snprintf(name, MODEL_NAME_SIZE, "user.attribute %d", (int)number);
    return name;
}

static void do_setxattr(struct run *run)
{
    struct model_inode *inode = pick(run);
    uint64_t number = below(run, MODEL_XATTRS);
    unsigned flags = (unsigned)below(run, 3);
    uint32_t size = (uint32_t)below(run, below(run, 4) ? 50 : 7000);
    uint8_t letter = (uint8_t)below(run, 256);
    bool is_set = inode->xattrs[number].set;
    char name[MODEL_NAME_SIZE];
    int expected = 0;

    if (is_set && flags & PMFS_XATTR_CREATE)
        expected = -EEXIST;
    if (!is_set && flags & PMFS_XATTR_REPLACE)
        expected = -ENODATA;
    memset(run->bytes, letter, size);
    if (!did(run,
             pmfs_setxattr(run->f->fs, inode->ino, xattr_name(number, name), run->bytes,
                           size, flags),
             expected, "setxattr"))
        return;
    inode->xattrs[number].set = true;
    inode->xattrs[number].letter = letter;
    inode->xattrs[number].size = size;
}

static void do_removexattr(struct run *run)
{
    struct model_inode *inode = pick(run);
    uint64_t number = below(run, MODEL_XATTRS);
    char name[MODEL_NAME_SIZE];

    if (did(run, pmfs_removexattr(run->f->fs, inode->ino, xattr_name(number, name)),
            inode->xattrs[number].set ? 0 : -ENODATA, "removexattr"))
        inode->xattrs[number].set = false;
}

static void do_lookup(struct run *run)
{
    struct fixture *f = run->f;
    struct model_inode *dir = pick_type(run, S_IFDIR), *found;
    char name[MODEL_NAME_SIZE];

    pick_name(run, name);
    found = model_find(dir, name);
    if (did(run, pmfs_lookup(f->fs, dir->ino, name, &f->attr), found ? 0 : -ENOENT,
            "lookup") &&
        found) {
        assert_int_equal(f->attr.ino, found->ino);
        count_lookup(run, found);
    }
}

static void do_open(struct run *run)
{
    struct model_inode *inode = pick(run);

    assert_ok(pmfs_open(run->f->fs, inode->ino));
    inode->opens++;
}

static void do_close_or_forget(struct run *run)
{
    struct model_inode *inode = pick_nameless(run); /* the interesting ones */

    if (inode->opens) {
        inode->opens--;
        pmfs_release(run->f->fs, inode->ino);
    } else if (inode->lookups) {
        uint64_t count = 1 + below(run, inode->lookups);

        inode->lookups -= count;
        pmfs_forget(run->f->fs, inode->ino, count);
    }
    model_reap(&run->model, inode);
}

/* ---- Comparing ----------------------------------------------------------------- */

static void compare_content(struct run *run, const struct model_inode *inode)
{
    struct fixture *f = run->f;
    char target[PMFS_SYMLINK_MAX + 1];

    if (S_ISREG(inode->mode)) {
        assert_bytes(f, inode->ino, 0, inode->size ? inode->bytes : run->bytes,
                     inode->size);
    } else if (S_ISLNK(inode->mode)) {
        assert_ok(pmfs_readlink(f->fs, inode->ino, target, sizeof(target)));
        assert_int_equal(strlen(target), inode->size);
        assert_memory_equal(target, inode->bytes, inode->size);
    }
}

static void compare_xattrs(struct run *run, const struct model_inode *inode)
{
    uint8_t found[7000];
    char name[MODEL_NAME_SIZE];
    size_t size, names = 0, expected = 0;

    for (uint64_t i = 0; i < MODEL_XATTRS; i++) {
        bool is_set = inode->xattrs[i].set;
        int rc = pmfs_getxattr(run->f->fs, inode->ino, xattr_name(i, name), found,
                               sizeof(found), &size);

        assert_int_equal(rc, is_set ? 0 : -ENODATA);
        if (!is_set)
            continue;
        expected += strlen(name) + 1;
        assert_int_equal(size, inode->xattrs[i].size);
        for (size_t at = 0; at < size; at++)
            assert_int_equal(found[at], inode->xattrs[i].letter);
    }
    assert_ok(pmfs_listxattr(run->f->fs, inode->ino, NULL, 0, &names));
    assert_int_equal(names, expected);
}

struct comparison {
    const struct model_inode *dir;
    int count;
};

static int compare_entry(void *arg, const struct pmfs_dirent *entry)
{
    struct comparison *comparison = arg;
    const struct model_inode *found;

    if (strcmp(entry->name, ".") == 0)
        found = comparison->dir;
    else if (strcmp(entry->name, "..") == 0)
        found = comparison->dir->parent;
    else
        found = model_find(comparison->dir, entry->name);
    if (!found) {
        print_error("listed, but should not be there: %s\n", entry->name);
        return 1;
    }
    assert_int_equal(entry->ino, found->ino);
    assert_int_equal(entry->mode, found->mode & S_IFMT);
    comparison->count++;
    return 0;
}

/* No call of these sets the times to others than now. */
static void compare_times(struct model_inode *inode, const struct pmfs_attr *attr)
{
    assert_true(attr->mtime_ns <= attr->ctime_ns);
    assert_true(attr->mtime_ns >= inode->mtime_ns);
    assert_true(attr->ctime_ns >= inode->ctime_ns);
    inode->mtime_ns = attr->mtime_ns;
    inode->ctime_ns = attr->ctime_ns;
}

static void compare_inode(struct run *run, struct model_inode *inode)
{
    struct pmfs_attr attr = attr_of(run->f, inode->ino);
    struct comparison comparison = {.dir = inode};

    assert_int_equal(attr.mode, inode->mode);
    assert_int_equal(attr.nlink, inode->nlink);
    assert_int_equal(attr.uid, inode->uid);
    assert_int_equal(attr.gid, inode->gid);
    assert_int_equal(attr.rdev, inode->rdev);
    compare_times(inode, &attr);
    compare_xattrs(run, inode);
    if (!S_ISDIR(inode->mode)) {
        assert_int_equal(attr.size, inode->size);
        compare_content(run, inode);
        return;
    }
    if (inode->nlink == 0)
        return;
    assert_ok(pmfs_readdir(run->f->fs, inode->ino, 0, 0, compare_entry, &comparison));
    assert_int_equal(comparison.count, inode->entry_count + 2);
}

static void compare_all(struct run *run)
{
    for (struct model_inode *inode = run->model.all; inode; inode = inode->next)
        compare_inode(run, inode);
}

/* A remount forgets who used what. */
static void do_remount(struct run *run)
{
    for (struct model_inode *inode = run->model.all, *next; inode; inode = next) {
        next = inode->next;
        inode->opens = 0;
        inode->lookups = 0;
        model_reap(&run->model, inode);
    }
    fixture_fsck_and_mount(run->f);
    assert_int_equal(run->f->summary.orphans, 0);
    compare_all(run);
}

static void step(struct run *run)
{
    static void (*const calls[])(struct run * run) = {
        do_make,
        do_make,
        do_make,
        do_make_nameless,
        do_link,
        do_remove,
        do_remove,
        do_rename,
        do_rename,
        do_rename_whiteout,
        do_write,
        do_write,
        do_write,
        do_truncate,
        do_fallocate,
        do_copy,
        do_seek,
        do_setattr,
        do_setxattr,
        do_removexattr,
        do_lookup,
        do_open,
        do_close_or_forget,
        do_close_or_forget,
    };

    calls[below(run, sizeof(calls) / sizeof(*calls))](run);
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}

static void run_once(struct fixture *f, uint64_t pool_size, uint64_t seed,
                     uint64_t steps)
{
    struct run *run = calloc(1, sizeof(*run));

    assert_non_null(run);
    run->f = f;
    run->random = seed;
    print_message("          seed %llu\n", (unsigned long long)seed);
    fixture_mkfs(f, pool_size);
    fixture_mount(f);
    model_init(&run->model);
    for (uint64_t i = 0; i < steps; i++) {
        step(run);
        if (i % 97 == 0)
            compare_inode(run, pick(run));
        if (below(run, 1000) == 0)
            do_remount(run);
        if ((i + 1) % STEPS_SHOWN == 0)
            print_message("          %llu of %llu steps\n", (unsigned long long)i + 1,
                          (unsigned long long)steps);
    }
    do_remount(run);
    print_message("          %llu calls found no room\n",
                  (unsigned long long)run->no_space);
    assert_true(run->unaskable <= (BY_KERNEL ? steps / 10 : 0));
    model_finish(&run->model);
    free(run);
    fixture_unmount(f);
    unlink(f->path);
}

static void run_model(struct fixture *f, uint64_t pool_size, uint32_t block_size,
                      uint32_t flags)
{
    uint64_t seed = from_environment("PMFS_TEST_SEED", 20150108 + block_size + flags);
    uint64_t steps = from_environment("PMFS_TEST_STEPS", 0);
    uint64_t runs = steps ? 1 : times_if_long(1, RUNS_IF_LONG);

    f->mkfs.pool.block_size = block_size;
    f->mount.flags = flags;
    f->mount.cached_inodes = 64;
    /* A seed of 0 would stay 0. */
    for (uint64_t i = 0; i < runs; i++)
        run_once(f, pool_size, seed + i ? seed + i : 1, steps ? steps : STEPS);
}

static void random_calls_do_what_the_model_does(void **state)
{
    run_model(*state, 2 * MIB, 4096, 0);
}

static void random_calls_do_so_with_lookups_counted(void **state)
{
    run_model(*state, 2 * MIB, 4096, PMFS_COUNT_LOOKUPS);
}

static void random_calls_do_so_with_blocks_of_512_bytes(void **state)
{
    run_model(*state, 2 * MIB, 512, 0);
}

static void random_calls_do_so_with_blocks_of_16_kib(void **state)
{
    run_model(*state, 5 * MIB, 16384, PMFS_COUNT_LOOKUPS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(random_calls_do_what_the_model_does),
        TEST_EMPTY(random_calls_do_so_with_lookups_counted),
        TEST_EMPTY(random_calls_do_so_with_blocks_of_512_bytes),
        TEST_EMPTY(random_calls_do_so_with_blocks_of_16_kib),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
