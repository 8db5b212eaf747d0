/* SPDX-License-Identifier: BSD-3-Clause */
/* Many threads at once; ThreadSanitizer watches, fsck has the last word. */
#include <pthread.h>

#include "tests/pmfs/pmfs_fixture.h"

/*
 * Which of two directories is locked first changes when one is moved into the other;
 * all that move are ordered by one lock. ThreadSanitizer's guess at deadlocks cannot
 * know.
 */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "detect_deadlocks=0";
}

#define THREADS 4
#define BLOCK 4096u

struct worker {
    pthread_t thread;
    struct fixture *f;
    int number;
    uint64_t ino; /* of what the threads share */
    uint64_t other_ino;
    int failures; /* cmocka's asserts are for the main thread */
};

static void run_workers(struct fixture *f, uint64_t ino, uint64_t other_ino,
                        void *(*body)(void *arg))
{
    struct worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] =
            (struct worker){.f = f, .number = i, .ino = ino, .other_ino = other_ino};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]),
                         0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(workers[i].failures, 0);
}

static void expect(struct worker *worker, bool good, const char *what)
{
    if (good)
        return;
    worker->failures++;
    print_error("thread %d: %s; last message: %s\n", worker->number, what,
                pmfs_errormsg());
}

#define EXPECT(worker, condition) expect(worker, condition, #condition)

static uint32_t next_random(uint32_t *random)
{
    *random = *random * 1664525 + 1013904223;
    return *random >> 8;
}

/* ---- Appending ----------------------------------------------------------------- */

#define RECORDS 300

struct record {
    uint32_t thread, number;
    char padding[25]; /* so that records cross blocks */
};

static void *append_records(void *arg)
{
    struct worker *worker = arg;
    size_t done;

    for (uint32_t i = 0; i < RECORDS; i++) {
        struct record record = {.thread = (uint32_t)worker->number, .number = i};

        memset(record.padding, (int)i, sizeof(record.padding));
        EXPECT(worker, pmfs_write(worker->f->fs, worker->ino, 0, &record,
                                  sizeof(record), PMFS_APPEND, &done) == 0);
    }
    return NULL;
}

static void appends_of_many_threads_are_whole_and_in_order(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "log");
    uint32_t next[THREADS] = {0};
    struct record record;
    size_t done;

    run_workers(f, ino, 0, append_records);
    assert_int_equal(attr_of(f, ino).size, THREADS * RECORDS * sizeof(record));
    for (uint64_t i = 0; i < THREADS * RECORDS; i++) {
        assert_ok(
            pmfs_read(f->fs, ino, i * sizeof(record), &record, sizeof(record), &done));
        assert_in_range(record.thread, 0, THREADS - 1);
        assert_int_equal(record.number, next[record.thread]++);
    }
}

/* ---- Reading while others write ------------------------------------------------ */

static bool is_uniform(const uint8_t *bytes, size_t size)
{
    return memcmp(bytes, bytes + 1, size - 1) == 0;
}

static void *write_or_read_uniform(void *arg)
{
    struct worker *worker = arg;
    uint8_t bytes[2 * BLOCK];
    size_t done;

    for (int i = 0; i < 300; i++) {
        if (worker->number % 2) {
            memset(bytes, worker->number * 100 + i, sizeof(bytes));
            EXPECT(worker, pmfs_write(worker->f->fs, worker->ino, BLOCK / 2, bytes,
                                      sizeof(bytes), 0, &done) == 0);
        } else {
            EXPECT(worker, pmfs_read(worker->f->fs, worker->ino, BLOCK / 2, bytes,
                                     sizeof(bytes), &done) == 0);
            EXPECT(worker, is_uniform(bytes, sizeof(bytes)));
        }
    }
    return NULL;
}

static void reader_sees_all_of_a_write_or_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    truncate_to(f, ino, 4 * BLOCK);
    run_workers(f, ino, 0, write_or_read_uniform);
}

static pthread_barrier_t all_inside;

static int wait_for_all(void *arg, const struct iovec *pieces, int count, size_t size)
{
    (void)arg, (void)pieces, (void)count, (void)size;
    pthread_barrier_wait(&all_inside);
    return 0;
}

static void *read_with_all_others(void *arg)
{
    struct worker *worker = arg;

    for (int i = 0; i < 20; i++)
        EXPECT(worker, pmfs_read_in_place(worker->f->fs, worker->ino, 0, BLOCK,
                                          wait_for_all, NULL) == 0);
    return NULL;
}

/* Each waits in the middle of its read until all are there: ctest sees it if one cannot. */
static void readers_of_a_file_do_not_wait_for_each_other(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    truncate_to(f, ino, 4 * BLOCK);
    assert_int_equal(pthread_barrier_init(&all_inside, NULL, THREADS), 0);
    run_workers(f, ino, 0, read_with_all_others);
    pthread_barrier_destroy(&all_inside);
}

/* Half of the threads copy one way, half the other; each file stays uniform. */
static void *copy_or_zero(void *arg)
{
    struct worker *worker = arg;
    struct pmfs *fs = worker->f->fs;
    uint64_t from = worker->number % 2 ? worker->ino : worker->other_ino;
    uint64_t to = worker->number % 2 ? worker->other_ino : worker->ino;
    uint8_t bytes[4 * BLOCK];
    uint64_t copied, found;
    size_t done;

    for (int i = 0; i < 200; i++) {
        memset(bytes, worker->number * 100 + i, sizeof(bytes));
        if (i % 8 == 0)
            EXPECT(worker, pmfs_fallocate(fs, from,
                                          i % 16 ? PMFS_ZERO_RANGE
                                                 : PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE,
                                          0, sizeof(bytes)) == 0);
        else if (i % 8 == 1)
            EXPECT(worker,
                   pmfs_write(fs, from, 0, bytes, sizeof(bytes), 0, &done) == 0);
        EXPECT(worker,
               pmfs_copy_range(fs, from, 0, to, 0, sizeof(bytes), &copied) == 0);
        EXPECT(worker, copied == sizeof(bytes));
        EXPECT(worker, pmfs_read(fs, to, 0, bytes, sizeof(bytes), &done) == 0);
        EXPECT(worker, is_uniform(bytes, sizeof(bytes)));
        EXPECT(worker, pmfs_seek(fs, to, 0, PMFS_SEEK_HOLE, &found) == 0);
        EXPECT(worker, found == 0 || found == sizeof(bytes));
    }
    return NULL;
}

static void copies_in_both_directions_are_whole(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a"), other_ino = make_file(f, ROOT, "b");

    truncate_to(f, ino, 4 * BLOCK);
    truncate_to(f, other_ino, 4 * BLOCK);
    run_workers(f, ino, other_ino, copy_or_zero);
}

static void *set_or_get_attributes(void *arg)
{
    struct worker *worker = arg;
    struct pmfs *fs = worker->f->fs;
    uint8_t value[2000], names[200];
    char name[32];
    size_t size;

    for (int i = 0; i < 200; i++) {
        snprintf(name, sizeof(name), "user.%d", (worker->number + i % 2) % THREADS);
        memset(value, i, sizeof(value));
        EXPECT(worker, pmfs_setxattr(fs, worker->ino, name, value,
                                     1 + (size_t)i * 31 % sizeof(value), 0) == 0);
        EXPECT(worker,
               pmfs_getxattr(fs, worker->ino, name, value, sizeof(value), &size) == 0);
        EXPECT(worker, size == 1 || is_uniform(value, size));
        EXPECT(worker, pmfs_listxattr(fs, worker->ino, (char *)names, sizeof(names),
                                      &size) == 0);
        EXPECT(worker, size % 7 == 0);
    }
    return NULL;
}

static void attributes_of_many_threads_are_whole(void **state)
{
    struct fixture *f = *state;

    run_workers(f, make_file(f, ROOT, "a"), 0, set_or_get_attributes);
}

/* ---- Names --------------------------------------------------------------------- */

/* All threads make, move and remove the same few names in the same two directories. */
static void *churn_names(void *arg)
{
    struct worker *worker = arg;
    struct pmfs *fs = worker->f->fs;
    uint32_t random = 20150108u + (uint32_t)worker->number;
    const uint64_t dirs[2] = {worker->ino, worker->other_ino};
    struct pmfs_attr attr;
    size_t done;

    for (int i = 0; i < 600; i++) {
        uint64_t dir = dirs[next_random(&random) % 2],
                 to = dirs[next_random(&random) % 2];
        char name[2] = {(char)('a' + next_random(&random) % 6), 0};
        char new_name[2] = {(char)('a' + next_random(&random) % 6), 0};
        int rc = 0;

        switch (next_random(&random) % 8) {
        case 0:
        case 1:
            rc = pmfs_mknod(fs, dir, name, 0644, 0, &nobody, &attr);
            break;
        case 2:
            rc = pmfs_mkdir(fs, dir, name, 0755, &nobody, &attr);
            break;
        case 3:
            rc = pmfs_unlink(fs, dir, name);
            break;
        case 4:
            rc = pmfs_rmdir(fs, dir, name);
            break;
        case 5:
            rc = pmfs_rename(fs, dir, name, to, new_name,
                             next_random(&random) % 4 ? 0 : PMFS_RENAME_EXCHANGE);
            break;
        case 6:
            rc = pmfs_lookup(fs, dir, name, &attr);
            if (rc == 0 && S_ISREG(attr.mode))
                rc = pmfs_link(fs, attr.ino, to, new_name, &attr);
            break;
        default:
            rc = pmfs_lookup(fs, dir, name, &attr);
            if (rc == 0 && S_ISREG(attr.mode))
                rc = pmfs_write(fs, attr.ino, 0, "content", 7, PMFS_APPEND, &done);
        }
        EXPECT(worker, rc == 0 || (rc != -EUCLEAN && rc != -EIO && rc != -ENOMEM));
    }
    return NULL;
}

static void names_of_many_threads_stay_consistent(void **state)
{
    struct fixture *f = *state;

    run_workers(f, make_dir(f, ROOT, "1"), make_dir(f, ROOT, "2"), churn_names);
}

static void names_stay_consistent_while_the_cache_forgets_all(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_dir(f, ROOT, "1"), other_ino = make_dir(f, ROOT, "2");

    f->mount.cached_inodes = 1;
    fixture_remount(f);
    run_workers(f, ino, other_ino, churn_names);
}

/* Directories move about between directories that move, too. */
static void *churn_directories(void *arg)
{
    struct worker *worker = arg;
    struct pmfs *fs = worker->f->fs;
    uint32_t random = 77u + (uint32_t)worker->number;
    struct pmfs_attr from, to;

    for (int i = 0; i < 400; i++) {
        char names[4][2];

        for (int n = 0; n < 4; n++)
            memcpy(names[n], (char[2]){(char)('a' + next_random(&random) % 3), 0}, 2);
        if (pmfs_lookup(fs, ROOT, names[0], &from) < 0 ||
            (next_random(&random) % 2 &&
             pmfs_lookup(fs, from.ino, names[1], &from) < 0))
            from.ino = ROOT;
        if (pmfs_lookup(fs, ROOT, names[2], &to) < 0 ||
            (next_random(&random) % 2 && pmfs_lookup(fs, to.ino, names[3], &to) < 0))
            to.ino = ROOT;
        int rc = next_random(&random) % 2
                     ? pmfs_mkdir(fs, to.ino, names[0], 0755, &nobody, &to)
                     : pmfs_rename(fs, from.ino, names[1], to.ino, names[2], 0);
        EXPECT(worker, rc == 0 || (rc != -EUCLEAN && rc != -EIO && rc != -ENOMEM));
    }
    return NULL;
}

static void directories_moved_by_many_threads_make_no_loops(void **state)
{
    struct fixture *f = *state;

    run_workers(f, 0, 0, churn_directories);
}

/* ---- Files without a name ------------------------------------------------------ */

/* Opens what others remove: an open file stays the same file. */
static void *open_and_remove(void *arg)
{
    struct worker *worker = arg;
    struct pmfs *fs = worker->f->fs;
    uint32_t random = 99u + (uint32_t)worker->number;
    struct pmfs_attr attr, opened;
    size_t done;
    char byte;

    for (int i = 0; i < 500; i++) {
        char name[2] = {(char)('a' + next_random(&random) % 3), 0};

        if (pmfs_create(fs, ROOT, name, 0644, &nobody, &attr) == 0) {
            EXPECT(worker, pmfs_write(fs, attr.ino, 0, name, 1, 0, &done) == 0);
            pmfs_release(fs, attr.ino);
            pmfs_forget(fs, attr.ino, 1);
        } else if (pmfs_lookup(fs, ROOT, name, &attr) == 0) {
            EXPECT(worker, pmfs_open(fs, attr.ino) == 0);
            pmfs_unlink(fs, ROOT, name);
            EXPECT(worker, pmfs_getattr(fs, attr.ino, &opened) == 0);
            EXPECT(worker, opened.generation == attr.generation);
            EXPECT(worker, pmfs_read(fs, attr.ino, 0, &byte, 1, &done) == 0);
            EXPECT(worker, done == 0 || byte == name[0]);
            pmfs_release(fs, attr.ino);
            pmfs_forget(fs, attr.ino, 1);
        }
    }
    return NULL;
}

static void open_file_is_not_freed_by_another_thread(void **state)
{
    struct fixture *f = *state;

    f->mount.flags = PMFS_COUNT_LOOKUPS;
    fixture_remount(f);
    run_workers(f, 0, 0, open_and_remove);
    fixture_unmount(f);
    fixture_fsck(f);
    assert_int_equal(f->summary.orphans, 0);
}

/* ---- Each on its own ----------------------------------------------------------- */

static void *work_alone(void *arg)
{
    struct worker *worker = arg;
    struct pmfs *fs = worker->f->fs;
    struct pmfs_attr dir, file;
    char name[32];
    uint8_t bytes[3 * BLOCK], found[3 * BLOCK];
    size_t done;

    snprintf(name, sizeof(name), "thread %d", worker->number);
    EXPECT(worker, pmfs_mkdir(fs, ROOT, name, 0755, &nobody, &dir) == 0);
    for (int i = 0; i < 150; i++) {
        snprintf(name, sizeof(name), "file %d", i);
        memset(bytes, i, sizeof(bytes));
        EXPECT(worker, pmfs_create(fs, dir.ino, name, 0644, &nobody, &file) == 0);
        EXPECT(worker,
               pmfs_write(fs, file.ino, 0, bytes, 1 + (size_t)i * 50, 0, &done) == 0);
        EXPECT(worker, pmfs_read(fs, file.ino, 0, found, sizeof(found), &done) == 0);
        EXPECT(worker, done == 1 + (size_t)i * 50 && memcmp(found, bytes, done) == 0);
        pmfs_release(fs, file.ino);
        if (i % 3 == 0)
            EXPECT(worker, pmfs_unlink(fs, dir.ino, name) == 0);
    }
    return NULL;
}

static void threads_in_their_own_directories_do_not_disturb_each_other(void **state)
{
    struct fixture *f = *state;

    f->mount.cached_inodes = 64;
    fixture_remount(f);
    run_workers(f, 0, 0, work_alone);
    assert_int_equal(attr_of(f, ROOT).nlink, 2 + THREADS);
}

/* Whatever number of processors there is. */
static void any_number_of_lanes_serves_any_number_of_threads(void **state)
{
    static const uint32_t lanes[] = {1, 2, 3, 4, 8};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(lanes) / sizeof(*lanes); i++) {
        f->mkfs.pool.lanes = lanes[i];
        fixture_mkfs(f, 16 * MIB);
        fixture_mount(f);
        run_workers(f, make_dir(f, ROOT, "1"), make_dir(f, ROOT, "2"), churn_names);
        run_workers(f, 0, 0, work_alone);
        fixture_unmount(f);
        fixture_fsck(f);
        unlink(f->path);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(appends_of_many_threads_are_whole_and_in_order),
        TEST(reader_sees_all_of_a_write_or_nothing),
        TEST(readers_of_a_file_do_not_wait_for_each_other),
        TEST(copies_in_both_directions_are_whole),
        TEST(attributes_of_many_threads_are_whole),
        TEST(names_of_many_threads_stay_consistent),
        TEST(names_stay_consistent_while_the_cache_forgets_all),
        TEST(directories_moved_by_many_threads_make_no_loops),
        TEST(open_file_is_not_freed_by_another_thread),
        TEST(threads_in_their_own_directories_do_not_disturb_each_other),
        TEST_EMPTY(any_number_of_lanes_serves_any_number_of_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
