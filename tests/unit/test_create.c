/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Making a pool is all or nothing: whoever makes one is killed before each step that it
 * takes. Steps are calls that the linker wraps (see CMakeLists.txt).
 */
#include "tests/unit/fixture.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libminl2r/pool.h"

#define SIZE ((uint64_t)1 << 20)
#define WORD UINT64_C(0x600d)

/* ---- Steps ----------------------------------------------------------------------- */

static int steps_left;       /* until this process is killed; 0: it is not */
static bool has_no_nameless; /* the file system knows no O_TMPFILE */
static const char *rival;    /* who makes this file before ours gets its name */
static int sync_errnum;      /* with which syncing fails */

static void step(void)
{
    if (steps_left > 0 && --steps_left == 0)
        kill(getpid(), SIGKILL);
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);
int __wrap_open(const char *path, int flags, mode_t mode)
{
    step();
    if (has_no_nameless && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return __real_open(path, flags, mode);
}

int __real_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size);
int __wrap_posix_fallocate(int fd, off_t offset, off_t size)
{
    step();
    return __real_posix_fallocate(fd, offset, size);
}

int __real_linkat(int from_dir, const char *from, int to_dir, const char *to,
                  int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to,
                  int flags);
int __wrap_linkat(int from_dir, const char *from, int to_dir, const char *to, int flags)
{
    step();
    if (rival)
        close(__real_open(rival, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return __real_linkat(from_dir, from, to_dir, to, flags);
}

int __real_fsync(int fd);
int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    step();
    errno = sync_errnum;
    return sync_errnum ? -1 : __real_fsync(fd);
}

int __real_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase)
{
    step();
    return __real_pm_fence(phase);
}

static int set_up(void **state)
{
    steps_left = sync_errnum = 0;
    has_no_nameless = false;
    rival = NULL;
    return fixture_setup(state);
}

/* ---- Making ---------------------------------------------------------------------- */

static int fill(struct minl2r_pool *pool, void *arg)
{
    const uint64_t *root = minl2r_root(pool, sizeof(*root));

    (void)arg;
    step();
    return root ? minl2r_store64(pool, root, WORD) : -errno;
}

static int refuse(struct minl2r_pool *pool, void *arg)
{
    int result = fill(pool, arg);

    return result < 0 ? result : -EDOM;
}

static int make(struct fixture *f, minl2r_fill_fn *how)
{
    return minl2r_pool_create_filled(f->path, "test", SIZE, NULL, how, NULL, &f->pool);
}

static int count_files(const struct fixture *f)
{
    DIR *dir = opendir(f->dir);
    int count = 0;

    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* By a process that is killed before a step. Did it get so far? */
static bool is_killed_before(struct fixture *f, int number)
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        steps_left = number;
        _exit(make(f, fill) < 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        return true;
    assert_int_equal(WEXITSTATUS(status), 0);
    return false;
}

static bool is_filled(struct fixture *f)
{
    const uint64_t *root = minl2r_root(f->pool, sizeof(*root));

    assert_non_null(root);
    return *root == WORD;
}

static void killed_before_any_step_it_leaves_no_file_or_a_filled_pool(void **state)
{
    struct fixture *f = *state;
    int number = 1;

    for (; is_killed_before(f, number); number++) {
        if (count_files(f) == 0)
            continue;
        fixture_open(f);
        assert_true(is_filled(f));
        fixture_close(f);
        unlink(f->path);
    }
    assert_true(number > 10);
    fixture_open(f);
    assert_true(is_filled(f));
}

static void where_files_have_names_at_once_what_is_half_made_says_so(void **state)
{
    struct fixture *f = *state;
    int refused = 0, filled = 0, number = 1;

    has_no_nameless = true;
    for (; is_killed_before(f, number); number++) {
        int result = minl2r_pool_open(f->path, "test", NULL, &f->pool);

        refused += result == -EUCLEAN || result == -EINVAL;
        assert_true(refused || result == 0 || (result == -ENOENT && number <= 3));
        if (result == 0) {
            filled += is_filled(f);
            fixture_close(f);
        }
        unlink(f->path);
    }
    assert_true(refused > 0);
    assert_true(filled > 0);
    fixture_open(f);
    assert_true(is_filled(f));
}

static void what_cannot_be_filled_is_not_made(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(make(f, refuse), -EDOM);
    assert_int_equal(count_files(f), 0);
    has_no_nameless = true;
    assert_int_equal(make(f, refuse), -EDOM);
    assert_int_equal(count_files(f), 0);
}

static void a_file_that_somebody_makes_meanwhile_is_kept(void **state)
{
    struct fixture *f = *state;
    struct stat info;

    rival = f->path;
    assert_error(make(f, fill), EEXIST, "File exists");
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_size, 0);
}

static void a_name_that_cannot_be_made_durable_is_taken_back(void **state)
{
    struct fixture *f = *state;

    sync_errnum = EIO;
    assert_error(make(f, fill), EIO, "cannot sync");
    assert_int_equal(count_files(f), 0);
}

static void nobody_opens_a_new_pool_before_its_maker_closes_it(void **state)
{
    struct fixture *f = *state;
    struct minl2r_pool *other;

    assert_ok(make(f, fill));
    assert_error(minl2r_pool_open(f->path, "test", NULL, &other), EBUSY,
                 "open already");
}

static void paths_that_are_none_are_refused_as_by_open(void **state)
{
    struct fixture *f = *state;
    char path[sizeof(f->path) + 300];

    assert_error(minl2r_pool_create("", "test", SIZE, NULL, &f->pool), ENOENT, "''");
    snprintf(path, sizeof(path), "%s/", f->path);
    assert_error(minl2r_pool_create(path, "test", SIZE, NULL, &f->pool), EISDIR, path);
    snprintf(path, sizeof(path), "%s/none/pool", f->dir);
    assert_error(minl2r_pool_create(path, "test", SIZE, NULL, &f->pool), ENOENT, path);
    snprintf(path, sizeof(path), "%s/%0256d", f->dir, 0);
    assert_error(minl2r_pool_create(path, "test", SIZE, NULL, &f->pool), ENAMETOOLONG,
                 "cannot create");
    assert_int_equal(symlink("nowhere", f->path), 0);
    assert_error(minl2r_pool_create(f->path, "test", SIZE, NULL, &f->pool), EEXIST,
                 "File exists");
    assert_int_equal(count_files(f), 1);
}

static void a_path_without_a_directory_is_one_of_the_current(void **state)
{
    struct fixture *f = *state;
    int here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_int_equal(chdir(f->dir), 0);
    int result = minl2r_pool_create("pool", "test", SIZE, NULL, &f->pool);

    assert_int_equal(fchdir(here), 0);
    close(here);
    assert_ok(result);
    fixture_close(f);
    fixture_open(f);
}

static void the_mode_of_a_file_heeds_the_umask(void **state)
{
    struct fixture *f = *state;
    const struct minl2r_options options = {.mode = 0666};
    mode_t before = umask(027);
    struct stat info;
    int result = minl2r_pool_create(f->path, "test", SIZE, &options, &f->pool);

    umask(before);
    assert_ok(result);
    assert_int_equal(stat(f->path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
}

#define TEST(function)                                                                 \
    cmocka_unit_test_setup_teardown(function, set_up, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(killed_before_any_step_it_leaves_no_file_or_a_filled_pool),
        TEST(where_files_have_names_at_once_what_is_half_made_says_so),
        TEST(what_cannot_be_filled_is_not_made),
        TEST(a_file_that_somebody_makes_meanwhile_is_kept),
        TEST(a_name_that_cannot_be_made_durable_is_taken_back),
        TEST(nobody_opens_a_new_pool_before_its_maker_closes_it),
        TEST(paths_that_are_none_are_refused_as_by_open),
        TEST(a_path_without_a_directory_is_one_of_the_current),
        TEST(the_mode_of_a_file_heeds_the_umask),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
