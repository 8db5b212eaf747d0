/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random calls of several threads on one small tree, in a filesystem that is nearly
 * full and killed in between: whatever they met, what is left must be consistent.
 */
#include "tests/mount/mount_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/xattr.h>
#include <time.h>

#define THREADS 4
#define ROUNDS 4
#define SEED 20150108

static atomic_bool stopped;
static atomic_uint calls_made;
static atomic_uint running;

struct worker {
    const char *root;
    uint64_t random;
    int unexpected; /* errno; 0: none */
    int kept_open;  /* a file, maybe without a name; -1: none */
};

static uint32_t draw(struct worker *worker, uint32_t bound)
{
    worker->random = worker->random * 6364136223846793005ULL + 1442695040888963407ULL;
    return (uint32_t)(worker->random >> 33) % bound;
}

/* One of a few dozen paths, so that threads meet. */
static void choose_path(struct worker *worker, char path[256])
{
    int used = snprintf(path, 256, "%s", worker->root);

    for (uint32_t depth = draw(worker, 3); depth > 0; depth--)
        used += snprintf(path + used, 256 - (size_t)used, "/%u", draw(worker, 3));
    snprintf(path + used, 256 - (size_t)used, "/%u", draw(worker, 5));
}

static int write_somewhere(struct worker *worker, const char *path)
{
    static const uint32_t sizes[] = {1, 100, 2000, 4096, 10000, 100000};
    static const char content[100000];
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);

    if (fd < 0)
        return -1;
    ssize_t put = pwrite(fd, content, sizes[draw(worker, 6)], draw(worker, 200000));
    int error = errno;
    if (worker->kept_open >= 0)
        close(worker->kept_open);
    worker->kept_open = fd;
    errno = error;
    return put < 0 ? -1 : 0;
}

/* Gives, punches or zeroes. */
static int allocate_somewhere(struct worker *worker, const char *path)
{
    static const int modes[] = {0, FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_ZERO_RANGE};
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0)
        return -1;
    int rc = fallocate(fd, modes[draw(worker, 4)], draw(worker, 200000),
                       1 + draw(worker, 100000));
    int error = errno;
    close(fd);
    errno = error;
    return rc;
}

static int copy_somewhere(struct worker *worker, const char *from, const char *to)
{
    loff_t from_offset = draw(worker, 100000), to_offset = draw(worker, 200000);
    int in = open(from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int out = open(to, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    ssize_t copied =
        copy_file_range(in, &from_offset, out, &to_offset, draw(worker, 50000), 0);
    int error = errno;

    if (in >= 0)
        close(in);
    if (out >= 0)
        close(out);
    errno = error == EBADF ? ENOENT : error;
    return copied < 0 ? -1 : 0;
}

static int change_attribute(struct worker *worker, const char *path)
{
    static const char value[5000];
    char name[16];

    snprintf(name, sizeof(name), "trusted.%u", draw(worker, 3));
    if (draw(worker, 3) == 0)
        return lremovexattr(path, name);
    return lsetxattr(path, name, value, draw(worker, sizeof(value)), 0);
}

static int list(const char *path)
{
    DIR *dir = opendir(path);

    if (dir == NULL)
        return -1;
    errno = 0;
    while (readdir(dir) != NULL)
        ;
    int error = errno;
    closedir(dir);
    errno = error;
    return error == 0 ? 0 : -1;
}

static int call_something(struct worker *worker)
{
    char a[256], b[256];
    struct stat status;

    choose_path(worker, a);
    choose_path(worker, b);
    switch (draw(worker, 16)) {
    case 0:
        return mkdir(a, 0755);
    case 1:
        return rmdir(a);
    case 2:
        return unlink(a);
    case 3:
        return rename(a, b);
    case 4:
        return renameat2(AT_FDCWD, a, AT_FDCWD, b, RENAME_EXCHANGE);
    case 5:
        return link(a, b);
    case 6:
        return symlink("nowhere/in/particular", a);
    case 7:
        return truncate(a, draw(worker, 300000));
    case 8:
        return chmod(a, 0600 + draw(worker, 0200));
    case 9:
        return list(a);
    case 10:
        return lstat(a, &status);
    case 11:
    case 12:
        return allocate_somewhere(worker, a);
    case 13:
        return copy_somewhere(worker, a, b);
    case 14:
        return change_attribute(worker, a);
    default:
        return write_somewhere(worker, a);
    }
}

static bool is_expected(int errnum)
{
    static const int expected[] = {ENOENT, EEXIST, ENOTDIR, EISDIR, ENOTEMPTY, EINVAL,
                                   ENOSPC, EPERM,  ELOOP,   EMLINK, ENODATA};

    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
        if (errnum == expected[i])
            return true;
    }
    return false;
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    while (!atomic_load(&stopped)) {
        if (call_something(worker) < 0 && !is_expected(errno)) {
            worker->unexpected = errno;
            break;
        }
        atomic_fetch_add(&calls_made, 1);
    }
    if (worker->kept_open >= 0)
        close(worker->kept_open);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void await_calls(unsigned calls)
{
    while (atomic_load(&calls_made) < calls && atomic_load(&running) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* Lets workers make `calls` calls in all, then stops them or kills the filesystem. */
static void run_workers(struct mount_fixture *f, uint64_t seed, unsigned calls,
                        bool killed)
{
    pthread_t threads[THREADS];
    struct worker workers[THREADS];

    atomic_store(&stopped, false);
    atomic_store(&calls_made, 0);
    atomic_store(&running, THREADS);
    for (uint64_t i = 0; i < THREADS; i++) {
        workers[i] =
            (struct worker){f->mountpoint, .random = seed + i, .kept_open = -1};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    await_calls(calls);
    if (killed)
        kill_daemon(f);
    else
        atomic_store(&stopped, true);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < THREADS && !killed; i++)
        assert_int_equal(workers[i].unexpected, 0);
}

static void assert_consistent(struct mount_fixture *f)
{
    int status = pmfs(f, "fsck", f->pool, NULL);

    if (status != 0)
        print_error("%s\n", f->output);
    assert_int_equal(status, 0);
}

static void random_calls_leave_a_consistent_filesystem(void **state)
{
    struct mount_fixture *f = *state;

    run_workers(f, SEED, 20000, false);
    unmount_fs(f);
    assert_consistent(f);
}

static void random_calls_and_kills_leave_a_consistent_filesystem(void **state)
{
    struct mount_fixture *f = *state;

    for (unsigned i = 0; i < ROUNDS; i++) {
        run_workers(f, SEED + 100 * (i + 1), 2000 + 1500 * i, true);
        mount_fs(f, NULL);
        unmount_fs(f);
        assert_consistent(f);
        mount_fs(f, NULL);
    }
}

/* Everything that was made can be removed again, and then nothing is left. */
static void all_blocks_come_back_when_the_tree_is_removed(void **state)
{
    struct mount_fixture *f = *state;
    char command[256];

    run_workers(f, SEED + 1000, 4000, true);
    mount_fs(f, NULL);
    snprintf(command, sizeof(command), "rm -rf %s/*", f->mountpoint);
    assert_int_equal(run(f, "sh", "-c", command, NULL), 0);
    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
    assert_said(f, ": 0 files, 1 directories, 0 symbolic links");
}

/* ---- One file, as on tmpfs ------------------------------------------------------- */

#define FILE_MAX 300000u
#define STEPS 3000

/* The same file here and on tmpfs, and a mapping of it here. */
struct pair {
    struct worker worker;
    int here, there;
    char *map;
};

static void write_both(struct pair *pair, off_t offset, size_t size)
{
    static char content[FILE_MAX];

    fill_pattern(content, size, draw(&pair->worker, 1000));
    assert_int_equal(pwrite(pair->here, content, size, offset), size);
    assert_int_equal(pwrite(pair->there, content, size, offset), size);
}

static void store_both(struct pair *pair, off_t offset, size_t size)
{
    struct stat status;
    char content[5000];

    assert_success(fstat(pair->there, &status));
    if (offset + (off_t)size > status.st_size)
        return;
    fill_pattern(content, size, draw(&pair->worker, 1000));
    memcpy(pair->map + offset, content, size);
    assert_int_equal(pwrite(pair->there, content, size, offset), size);
}

static void zero_both(struct pair *pair, off_t offset, size_t size)
{
    static const char zeros[FILE_MAX];

    assert_success(fallocate(pair->here, FALLOC_FL_ZERO_RANGE, offset, (off_t)size));
    assert_int_equal(pwrite(pair->there, zeros, size, offset), size);
}

static void allocate_both(struct pair *pair, int mode, off_t offset, size_t size)
{
    assert_success(fallocate(pair->here, mode, offset, (off_t)size));
    assert_success(fallocate(pair->there, mode, offset, (off_t)size));
}

/* Whole copies, however short each call is. */
static void copy_inside(int fd, off_t from, off_t to, size_t size)
{
    while (size > 0) {
        ssize_t copied = copy_file_range(fd, &from, fd, &to, size, 0);

        assert_success(copied);
        if (copied == 0)
            break;
        size -= (size_t)copied;
    }
}

static void copy_both(struct pair *pair, off_t from, off_t to, size_t size)
{
    if (from < to ? to - from < (off_t)size : from - to < (off_t)size)
        return;
    copy_inside(pair->here, from, to, size);
    copy_inside(pair->there, from, to, size);
}

static void change_both(struct pair *pair)
{
    struct worker *worker = &pair->worker;
    off_t offset = draw(worker, FILE_MAX / 2), other = draw(worker, FILE_MAX / 2);
    size_t size = 1 + draw(worker, draw(worker, 2) ? 5000 : FILE_MAX / 2);

    switch (draw(worker, 8)) {
    case 0:
        assert_success(ftruncate(pair->here, other));
        assert_success(ftruncate(pair->there, other));
        break;
    case 1:
        allocate_both(pair, 0, offset, size);
        break;
    case 2:
        allocate_both(pair, FALLOC_FL_KEEP_SIZE, offset, size);
        break;
    case 3:
        allocate_both(pair, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, offset, size);
        break;
    case 4:
        zero_both(pair, offset, size);
        break;
    case 5:
        copy_both(pair, offset, other, size);
        break;
    case 6:
        store_both(pair, offset, size % 5000);
        break;
    default:
        write_both(pair, offset, size);
    }
}

static void assert_same(const struct pair *pair)
{
    static char here[FILE_MAX], there[FILE_MAX];
    ssize_t size = pread(pair->there, there, sizeof(there), 0);

    assert_int_equal(pread(pair->here, here, sizeof(here), 0), size);
    assert_memory_equal(here, there, (size_t)size);
}

static void random_changes_of_a_file_leave_what_they_leave_on_tmpfs(void **state)
{
    struct mount_fixture *f = *state;
    struct pair pair = {.worker.random = SEED};

    pair.here = open(in_mount(f, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    pair.there = open(in_dir(f, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    pair.map = mmap(NULL, FILE_MAX, PROT_READ | PROT_WRITE, MAP_SHARED, pair.here, 0);
    assert_ptr_not_equal(pair.map, MAP_FAILED);
    for (int i = 0; i < STEPS; i++) {
        change_both(&pair);
        if (i % 10 == 0)
            assert_same(&pair);
    }
    munmap(pair.map, FILE_MAX);
    close(pair.here);
    unmount_fs(f);
    assert_consistent(f);
    mount_fs(f, NULL);
    pair.here = open(in_mount(f, "file"), O_RDWR | O_CLOEXEC);
    assert_success(pair.here);
    assert_same(&pair);
    close(pair.here);
    close(pair.there);
}

static int setup_small(void **state)
{
    if (setup_empty(state) != 0)
        return -1;
    struct mount_fixture *f = *state;
    if (pmfs(f, "mkfs", f->pool, "8M", NULL) == 0 &&
        pmfs(f, "mount", "--pid-file", f->pid_file, f->pool, f->mountpoint, NULL) == 0)
        return 0;
    print_error("%s\n", f->output);
    teardown(state);
    return -1;
}

#define test_small(name) cmocka_unit_test_setup_teardown(name, setup_small, teardown)

/* With an argument: the tests whose names match it. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        test_small(random_calls_leave_a_consistent_filesystem),
        test_small(random_calls_and_kills_leave_a_consistent_filesystem),
        test_small(all_blocks_come_back_when_the_tree_is_removed),
        test_mounted(random_changes_of_a_file_leave_what_they_leave_on_tmpfs),
    };

    skip_without_fuse();
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    printf("seed %d\n", SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
