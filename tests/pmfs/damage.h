/* SPDX-License-Identifier: BSD-3-Clause */
/* damage.h - a filesystem with one of everything, and ways to damage it. */
#ifndef PMFS_DAMAGE_H
#define PMFS_DAMAGE_H

#include "pmfs-proto/core/dirent.h"
#include "pmfs-proto/core/inode.h"
#include "tests/pmfs/pmfs_fixture.h"

#define BLOCK 4096u

/* ---- A tree with one of everything --------------------------------------------- */

static inline void make_tree(struct fixture *f)
{
    static uint8_t bytes[100000];
    uint64_t dir = make_dir(f, ROOT, "dir");
    uint64_t sub = make_dir(f, dir, "sub");
    char name[32];

    memset(bytes, 'b', sizeof(bytes));
    write_all(f, make_file(f, ROOT, "file"), 0, bytes, sizeof(bytes));
    write_all(f, make_file(f, ROOT, "sparse"), (uint64_t)1 << 35, bytes, 100);
    write_all(f, make_file(f, sub, "small"), 0, bytes, 10);
    assert_ok(pmfs_symlink(f->fs, dir, "link", "../file", &nobody, &f->attr));
    assert_ok(pmfs_mknod(f->fs, dir, "fifo", S_IFIFO | 0600, 0, &nobody, &f->attr));
    assert_ok(pmfs_link(f->fs, find(f, ROOT, "file"), sub, "hard", &f->attr));
    assert_ok(pmfs_setxattr(f->fs, find(f, ROOT, "file"), "user.a", "b", 1, 0));
    assert_ok(pmfs_setxattr(f->fs, dir, "user.large", bytes, 9000, 0));
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof(name), "entry number %d", i);
        make_file(f, sub, name);
    }
}

/* A directory whose names are in several blocks, below a node. */
static inline uint64_t make_large(struct fixture *f)
{
    uint64_t dir = make_dir(f, ROOT, "large");
    uint64_t file = make_file(f, dir, "file");
    char name[32];

    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "a name of its own %d", i);
        assert_ok(pmfs_link(f->fs, file, dir, name, &f->attr));
    }
    return dir;
}

/* ---- Damage on purpose --------------------------------------------------------- */

static inline void poke(struct fixture *f, uint64_t offset, const void *bytes,
                        size_t size)
{
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
    close(fd);
}

/* Where an inode and its state lie in the pool. Mounted. */
static inline struct inode_place place_of(struct fixture *f, uint64_t ino,
                                          uint64_t *inode_offset,
                                          uint64_t *state_offset)
{
    struct inode_place place;

    assert_ok(table_locate(f->fs, ino, &place));
    *inode_offset = minl2r_offset(f->fs->pool, place.pm);
    *state_offset = minl2r_offset(f->fs->pool, place.state);
    return place;
}

/* Where the first entry of a directory of one block lies in the pool. */
static inline uint64_t first_entry_of(struct fixture *f, uint64_t dir)
{
    uint64_t inode_offset, state_offset;

    return place_of(f, dir, &inode_offset, &state_offset).pm->map.root +
           dirent_tags(f->fs);
}

#define FIELD(name) offsetof(struct pm_inode, name)

/* Overwrites a field of the inode that `name` in the root is. */
static inline void damage_field(struct fixture *f, const char *name, size_t field,
                                uint64_t value, size_t size)
{
    uint64_t inode_offset, state_offset;
    uint64_t ino;

    make_tree(f);
    ino = strcmp(name, ".") ? find(f, ROOT, name) : ROOT;
    place_of(f, ino, &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, inode_offset + field, &value, size);
}

#define TEST_DAMAGED(name)                                                             \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown_empty)

#endif
