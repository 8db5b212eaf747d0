/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_fixture.h - what tests of the filesystem share: a directory of their own with a
 * filesystem in it. Every test ends with an fsck that must find nothing.
 *
 *     static void a_sentence(void **state)
 *     {
 *         struct fixture *f = *state;
 *         uint64_t ino = make_file(f, ROOT, "a");
 *
 *         assert_error(pmfs_mkdir(f->fs, ROOT, "a", 0755, &nobody, &f->attr), EEXIST);
 *     }
 *
 *     TEST(a_sentence)
 */
#ifndef PMFS_FIXTURE_H
#define PMFS_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/pmfs.h"

/* 1: the calls go through the kernel to a mount, by tests/mount/pmfs_by_kernel.c. */
#ifndef BY_KERNEL
#define BY_KERNEL 0
#endif

#define ROOT PMFS_ROOT_INO
#define MIB ((uint64_t)1 << 20)

#define assert_ok(call) assert_rc((call), 0, #call, __FILE__, __LINE__)
#define assert_error(call, errnum)                                                     \
    assert_rc((call), -(errnum), #call, __FILE__, __LINE__)

/* The kernel refuses it, too, but may do so by itself, with an errno of its own. */
#define assert_refused(call, errnum)                                                   \
    assert_rc(as_refused((call), -(errnum)), -(errnum), #call, __FILE__, __LINE__)

static inline int as_refused(int rc, int expected)
{
    return BY_KERNEL && rc < 0 ? expected : rc;
}

static inline void assert_rc(int rc, int expected, const char *call, const char *file,
                             int line)
{
    if (rc == expected)
        return;
    print_error("%s: %d (%s), not %d; last message: %s\n", call, rc, strerror(-rc),
                expected, pmfs_errormsg());
    _fail(file, line);
}

struct fixture {
    char dir[64];
    char path[80]; /* of the pool file, in `dir` */
    struct pmfs *fs;
    struct pmfs_mkfs_options mkfs;
    struct pmfs_mount_options mount;
    struct pmfs_attr attr;            /* of the last call */
    struct pmfs_fsck_summary summary; /* of the last fsck */
};

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

static inline void fixture_mkfs(struct fixture *f, uint64_t size)
{
    assert_ok(pmfs_mkfs(f->path, size, &f->mkfs));
}

static inline void fixture_mount(struct fixture *f)
{
    assert_ok(pmfs_mount(f->path, &f->mount, &f->fs));
}

static inline void fixture_unmount(struct fixture *f)
{
    assert_ok(pmfs_unmount(f->fs));
    f->fs = NULL;
}

static inline void fixture_remount(struct fixture *f)
{
    fixture_unmount(f);
    fixture_mount(f);
}

static inline void print_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("fsck: %s\n", what);
}

/* Unmounted. */
static inline void fixture_fsck(struct fixture *f)
{
    assert_ok(pmfs_fsck(f->path, print_finding, NULL, &f->summary));
}

static inline void fixture_fsck_and_mount(struct fixture *f)
{
    fixture_unmount(f);
    fixture_fsck(f);
    fixture_mount(f);
}

static inline int fixture_setup_empty(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (!f)
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/pmfs-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(f->dir)) {
        free(f);
        return -1;
    }
    snprintf(f->path, sizeof(f->path), "%s/pool", f->dir);
    *state = f;
    return 0;
}

/* A filesystem of 16 MiB, mounted. */
static inline int fixture_setup(void **state)
{
    if (fixture_setup_empty(state) < 0)
        return -1;
    fixture_mkfs(*state, 16 * MIB);
    fixture_mount(*state);
    return 0;
}

static inline int fixture_teardown_empty(void **state)
{
    struct fixture *f = *state;

    pmfs_unmount(f->fs);
    unlink(f->path);
    rmdir(f->dir);
    free(f);
    return 0;
}

static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;
    int rc = 0;

    if (f->fs)
        rc = pmfs_unmount(f->fs);
    f->fs = NULL;
    if (rc == 0)
        rc = pmfs_fsck(f->path, print_finding, NULL, &f->summary);
    fixture_teardown_empty(state);
    return rc;
}

#define TEST(name)                                                                     \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
#define TEST_EMPTY(name)                                                               \
    cmocka_unit_test_setup_teardown(name, fixture_setup_empty, fixture_teardown_empty)

/* What the kernel cannot be asked for, or what is seen only by who has the pool. */
static inline void not_by_kernel(void **state)
{
    (void)state;
    skip();
}

#define UNLESS_BY_KERNEL(name, setup, teardown)                                        \
    {                                                                                  \
#name, BY_KERNEL ? not_by_kernel : (name), BY_KERNEL ? NULL : (setup),         \
            BY_KERNEL ? NULL : (teardown), NULL                                        \
    }
#define TEST_IN_PROCESS(name) UNLESS_BY_KERNEL(name, fixture_setup, fixture_teardown)
#define TEST_EMPTY_IN_PROCESS(name)                                                    \
    UNLESS_BY_KERNEL(name, fixture_setup_empty, fixture_teardown_empty)

/* ---- Short ways ---------------------------------------------------------------- */

static inline uint64_t make_file(struct fixture *f, uint64_t parent, const char *name)
{
    assert_ok(pmfs_mknod(f->fs, parent, name, S_IFREG | 0644, 0, &nobody, &f->attr));
    return f->attr.ino;
}

static inline uint64_t make_dir(struct fixture *f, uint64_t parent, const char *name)
{
    assert_ok(pmfs_mkdir(f->fs, parent, name, 0755, &nobody, &f->attr));
    return f->attr.ino;
}

static inline uint64_t find(struct fixture *f, uint64_t parent, const char *name)
{
    assert_ok(pmfs_lookup(f->fs, parent, name, &f->attr));
    return f->attr.ino;
}

static inline struct pmfs_attr attr_of(struct fixture *f, uint64_t ino)
{
    assert_ok(pmfs_getattr(f->fs, ino, &f->attr));
    return f->attr;
}

static inline void write_all(struct fixture *f, uint64_t ino, uint64_t offset,
                             const void *bytes, size_t size)
{
    size_t done = 0;

    assert_ok(pmfs_write(f->fs, ino, offset, bytes, size, 0, &done));
    assert_int_equal(done, size);
}

static inline void write_text(struct fixture *f, uint64_t ino, uint64_t offset,
                              const char *text)
{
    write_all(f, ino, offset, text, strlen(text));
}

static inline void assert_bytes(struct fixture *f, uint64_t ino, uint64_t offset,
                                const void *bytes, size_t size)
{
    char *found = malloc(size + 1);
    size_t done = 0;

    assert_non_null(found);
    assert_ok(pmfs_read(f->fs, ino, offset, found, size, &done));
    assert_int_equal(done, size);
    assert_memory_equal(found, bytes, size);
    free(found);
}

static inline void truncate_to(struct fixture *f, uint64_t ino, uint64_t size)
{
    const struct pmfs_attr values = {.size = size};

    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_SIZE, &f->attr));
}

static inline uint64_t blocks_free(struct fixture *f)
{
    struct pmfs_statfs statfs;

    assert_ok(pmfs_statfs(f->fs, &statfs));
    return statfs.blocks_free;
}

static inline struct minl2r_stats stats_of(struct fixture *f)
{
    struct minl2r_stats stats;

    assert_ok(minl2r_stats_get(pmfs_pool(f->fs), &stats));
    return stats;
}

/* The fences that `call` costs. */
#define FENCES(f, call)                                                                \
    (fences_before_ = stats_of(f).fences, assert_ok(call),                             \
     stats_of(f).fences - fences_before_)
static uint64_t fences_before_ __attribute__((unused));

#endif
