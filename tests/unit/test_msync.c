/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pools in ordinary files, where each ordering point is an msync, which may fail: the
 * call answers -EIO, so does every later change, and the pool opened again is old or
 * new (I8).
 */
#include "tests/unit/subject.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

#define POOL_SIZE ((uint64_t)2 << 20)

/* ---- Wrapped calls --------------------------------------------------------------- */

static bool pretend_disk; /* tmpfs does not tell that it is one */
static uint64_t calls;    /* of msync */
static uint64_t fail_at;  /* this one and all later ones fail; 0: none */

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
    int result = __real_fstatfs(fd, fs);

    if (pretend_disk)
        fs->f_type = EXT4_SUPER_MAGIC;
    return result;
}

int __real_msync(void *at, size_t size, int flags);
int __wrap_msync(void *at, size_t size, int flags);
int __wrap_msync(void *at, size_t size, int flags)
{
    calls++;
    if (fail_at == 0 || calls < fail_at)
        return __real_msync(at, size, flags);
    errno = EIO;
    return -1;
}

static void fail_from(uint64_t n)
{
    calls = 0;
    fail_at = n;
}

/* ---- Beds ------------------------------------------------------------------------ */

struct bed {
    struct fixture *f;
    struct subject subject;
    struct subject_state before;
};

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    *state = bed;
    pretend_disk = true;
    fail_from(0);
    return fixture_setup((void **)&bed->f);
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    void *f = bed->f;

    fail_from(0);
    free(bed);
    return fixture_teardown(&f);
}

static void create(struct bed *bed)
{
    struct minl2r_options options = {.lanes = 2, .log_size = 4096};

    fixture_create(bed->f, POOL_SIZE, &options);
    subject_create(&bed->subject, bed->f->pool);
    bed->before = bed->subject.committed;
}

static void make_calls(struct bed *bed)
{
    subject_begin(&bed->subject);
    for (int i = 0; i < subject_call_count; i++)
        assert_ok(subject_calls[i].call(&bed->subject));
}

static void print_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("check: %s\n", what);
}

static void open_again(struct bed *bed)
{
    fail_from(0);
    fixture_close(bed->f);
    assert_ok(minl2r_pool_check(bed->f->path, print_finding, NULL));
    fixture_open(bed->f);
}

/* Is the pool, opened again, old or new? Answers true for new. */
static bool expect_old_or_new(struct bed *bed)
{
    struct subject *subject = &bed->subject;
    const uint8_t *data = minl2r_at(bed->f->pool, subject->data);
    bool new = memcmp(data, subject->seen.content[0], SUBJECT_BLOCK) == 0;

    subject->committed = new ? subject->seen : bed->before;
    subject_find(subject, bed->f->pool);
    return new;
}

static void expect_poisoned(struct bed *bed)
{
    struct minl2r_pool *pool = bed->f->pool;
    struct minl2r_tx *tx;

    assert_error(minl2r_tx_begin(pool, &tx), EIO, "opened again");
    assert_error(minl2r_store64(pool, bed->subject.slots, 0), EIO, "opened again");
}

/* ---- A pool on disk -------------------------------------------------------------- */

/* In the directory that the test is run in. */
static void pool_in_an_ordinary_file_works(void **state)
{
    struct bed *bed = *state;
    struct minl2r_info info;

    pretend_disk = false;
    snprintf(bed->f->path, sizeof(bed->f->path), "msync-test-%d.pool", getpid());
    create(bed);
    unlink(bed->f->path);
    assert_ok(minl2r_pool_info(bed->f->pool, &info));
    if (info.medium != MINL2R_FILE)
        skip(); /* it is tmpfs */
    assert_string_equal(info.flush_method, "msync");
    make_calls(bed);
    subject_commit(&bed->subject);
}

static void pool_in_an_ordinary_file_is_found_again(void **state)
{
    struct bed *bed = *state;
    struct minl2r_stats stats;

    create(bed);
    uint64_t fences = stats_of(bed->f->pool).fences;

    calls = 0;
    make_calls(bed);
    subject_commit(&bed->subject);
    stats = stats_of(bed->f->pool);
    assert_int_equal(stats.fences - fences, calls); /* each is an msync */
    assert_int_equal(stats.lines_flushed + stats.lines_streamed, 0);
    open_again(bed);
    subject_find(&bed->subject, bed->f->pool);
}

/* ---- Failing --------------------------------------------------------------------- */

static void failing_commit_poisons_and_leaves_old_or_new(void **state)
{
    struct bed *bed = *state;
    bool seen_old = false, seen_new = false;
    int result = -EIO;

    create(bed);
    for (uint64_t n = 1; result < 0; n++) {
        make_calls(bed);
        fail_from(n);
        result = minl2r_tx_commit(bed->subject.tx);
        if (result == 0)
            break;
        assert_int_equal(result, -EIO);
        assert_non_null(strstr(minl2r_errormsg(), "msync"));
        expect_poisoned(bed);
        open_again(bed);
        if (expect_old_or_new(bed)) {
            seen_new = true;
            fixture_close(bed->f);
            unlink(bed->f->path);
            create(bed);
        } else {
            seen_old = true;
        }
    }
    assert_true(seen_old && seen_new);
}

static void failing_snapshot_poisons_and_leaves_old(void **state)
{
    struct bed *bed = *state;

    create(bed);
    subject_begin(&bed->subject);
    fail_from(1);
    assert_int_equal(minl2r_tx_snapshot(bed->subject.tx, bed->subject.slots, 100, NULL),
                     -EIO);
    assert_int_equal(minl2r_tx_commit(bed->subject.tx), -EIO);
    expect_poisoned(bed);
    open_again(bed);
    expect_old_or_new(bed);
}

static void failing_abort_poisons_and_leaves_old(void **state)
{
    struct bed *bed = *state;

    create(bed);
    for (uint64_t n = 1; n <= 2; n++) {
        make_calls(bed);
        fail_from(n);
        assert_int_equal(minl2r_tx_abort(bed->subject.tx), -EIO);
        expect_poisoned(bed);
        open_again(bed);
        assert_false(expect_old_or_new(bed));
    }
}

static void other_transactions_of_a_poisoned_pool_end_with_eio(void **state)
{
    struct bed *bed = *state;
    uint64_t word = 1;

    create(bed);
    struct minl2r_tx *other = begin(bed->f->pool), *third = begin(bed->f->pool);

    assert_ok(minl2r_tx_write(other, &bed->subject.slots[SUBJECT_SLOTS], &word, 8));
    make_calls(bed);
    fail_from(1);
    assert_int_equal(minl2r_tx_commit(bed->subject.tx), -EIO);
    assert_error(minl2r_tx_write(other, bed->subject.slots, &word, 8), EIO,
                 "opened again");
    assert_error(minl2r_tx_commit(other), EIO, "opened again");
    assert_error(minl2r_tx_abort(third), EIO, "opened again");
    open_again(bed);
    assert_false(expect_old_or_new(bed));
}

static void failing_store64_poisons(void **state)
{
    struct bed *bed = *state;

    create(bed);
    fail_from(1);
    assert_int_equal(minl2r_store64(bed->f->pool, bed->subject.slots, 0), -EIO);
    expect_poisoned(bed);
    open_again(bed);
}

static void failing_open_is_eio_and_can_be_repeated(void **state)
{
    struct bed *bed = *state;
    struct minl2r_pool *pool;
    int result = -EIO;

    create(bed);
    make_calls(bed);
    fail_from(3); /* the generation is not settled, or is */
    assert_int_equal(minl2r_tx_commit(bed->subject.tx), -EIO);
    fixture_close(bed->f);
    for (uint64_t n = 1; result < 0; n++) {
        fail_from(n);
        result = minl2r_pool_open(bed->f->path, "test", NULL, &pool);
        assert_int_equal(result, result < 0 ? -EIO : 0);
        assert_true(n < 5);
    }
    bed->f->pool = pool;
    expect_old_or_new(bed);
}

static void failing_create_is_eio_and_leaves_no_file(void **state)
{
    struct bed *bed = *state;
    int result = -EIO;
    uint64_t n;

    for (n = 1; result < 0; n++) {
        fail_from(n);
        result =
            minl2r_pool_create(bed->f->path, "test", POOL_SIZE, NULL, &bed->f->pool);
        if (result < 0) {
            assert_int_equal(result, -EIO);
            assert_int_equal(access(bed->f->path, F_OK), -1);
        }
    }
    assert_true(n > 3);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(pool_in_an_ordinary_file_works),
        test(pool_in_an_ordinary_file_is_found_again),
        test(failing_commit_poisons_and_leaves_old_or_new),
        test(failing_snapshot_poisons_and_leaves_old),
        test(failing_abort_poisons_and_leaves_old),
        test(other_transactions_of_a_poisoned_pool_end_with_eio),
        test(failing_store64_poisons),
        test(failing_open_is_eio_and_can_be_repeated),
        test(failing_create_is_eio_and_leaves_no_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
