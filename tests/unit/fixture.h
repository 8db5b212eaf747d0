/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fixture.h - what unit tests share: a directory of their own with a pool in it, and
 * asserts that show the library's message. Includes cmocka and what it needs before it.
 *
 *     static void a_sentence(void **state)
 *     {
 *         struct fixture *f = *state;
 *
 *         fixture_create(f, 4 << 20, NULL);
 *         assert_ok(minl2r_store64(f->pool, p, 7));
 *     }
 *
 *     cmocka_unit_test_setup_teardown(a_sentence, fixture_setup, fixture_teardown)
 */
#ifndef FIXTURE_H
#define FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "include/minl2r.h"

/* A call of the library that must succeed, or fail with this errno and these words. */
#define assert_ok(call) assert_ok_at((call), #call, __FILE__, __LINE__)
#define assert_error(call, errnum, words)                                              \
    assert_error_at((call), errnum, words, #call, __FILE__, __LINE__)

static inline void assert_ok_at(int rc, const char *call, const char *file, int line)
{
    if (rc >= 0)
        return;
    print_error("%s: %d: %s\n", call, rc, minl2r_errormsg());
    _fail(file, line);
}

static inline void assert_error_at(int rc, int errnum, const char *words,
                                   const char *call, const char *file, int line)
{
    if (rc == -errnum && strstr(minl2r_errormsg(), words))
        return;
    print_error("%s: %d, not %d with \"%s\": %s\n", call, rc, -errnum, words,
                minl2r_errormsg());
    _fail(file, line);
}

struct fixture {
    char dir[64];
    char path[80]; /* of the pool file, in `dir` */
    struct minl2r_pool *pool;
};

static inline int fixture_setup(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));

    if (!f)
        return -1;
    snprintf(f->dir, sizeof(f->dir), "%s/minl2r-test-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (!mkdtemp(f->dir)) {
        free(f);
        return -1;
    }
    snprintf(f->path, sizeof(f->path), "%s/pool", f->dir);
    *state = f;
    return 0;
}

static inline void fixture_remove_dir(const char *path)
{
    DIR *dir = opendir(path);

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        unlinkat(dirfd(dir), entry->d_name, 0); /* "." and ".." refuse */
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* Closes the pool if it is still open; one with open transactions stays as it is. */
static inline int fixture_teardown(void **state)
{
    struct fixture *f = *state;

    minl2r_pool_close(f->pool);
    fixture_remove_dir(f->dir);
    free(f);
    return 0;
}

static inline void fixture_create(struct fixture *f, uint64_t size,
                                  const struct minl2r_options *options)
{
    assert_ok(minl2r_pool_create(f->path, "test", size, options, &f->pool));
}

static inline void fixture_open(struct fixture *f)
{
    assert_ok(minl2r_pool_open(f->path, "test", NULL, &f->pool));
}

static inline void fixture_close(struct fixture *f)
{
    assert_ok(minl2r_pool_close(f->pool));
    f->pool = NULL;
}

static inline void fixture_reopen(struct fixture *f)
{
    fixture_close(f);
    fixture_open(f);
}

/* Reads or writes the closed pool's file. */
static inline void fixture_peek(const struct fixture *f, uint64_t offset, void *bytes,
                                size_t size)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pread(fd, bytes, size, (off_t)offset), (ssize_t)size);
    close(fd);
}

static inline void fixture_poke(const struct fixture *f, uint64_t offset,
                                const void *bytes, size_t size)
{
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, size, (off_t)offset), (ssize_t)size);
    close(fd);
}

#endif
