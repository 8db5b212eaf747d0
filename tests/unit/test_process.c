/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes: what a child of fork() may do, and what becomes of a pool whose process is
 * killed in the middle of its transactions. Children report by pipe or exit status;
 * they use no asserts.
 */
#include "tests/unit/long.h"
#include "tests/unit/random.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define POOL_SIZE ((uint64_t)4 << 20)
#define BLOCK ((size_t)4096)

/* ---- Fork ------------------------------------------------------------------------ */

struct forked {
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;
    const uint64_t *words;
    uint64_t own;
};

/* The number of the first call that was not refused, or 0. */
static int first_call_allowed(const struct forked *forked)
{
    struct minl2r_pool *pool = forked->pool;
    struct minl2r_tx *tx = forked->tx, *other;
    const uint64_t *words = forked->words;
    struct minl2r_range range = {words, 8};
    struct minl2r_stats stats;
    struct minl2r_info info;
    uint64_t word = 1;
    void *copy;
    const int results[] = {
        minl2r_tx_begin(pool, &other),
        minl2r_tx_write(tx, words, &word, 8),
        minl2r_tx_zero(tx, words, 8),
        minl2r_tx_copy(tx, words, words, 8),
        minl2r_tx_edit(tx, words, 8, &copy),
        minl2r_tx_write_fresh(tx, words, &word, 8),
        minl2r_tx_write_block(tx, words, 0, &word, 8),
        minl2r_tx_read(tx, &word, words, 8),
        minl2r_tx_alloc(tx, 1, NULL, NULL),
        minl2r_tx_free(tx, forked->own, 1),
        minl2r_tx_snapshot(tx, words, 8, NULL),
        minl2r_tx_snapshotv(tx, &range, 1, NULL),
        minl2r_tx_commit(tx),
        minl2r_tx_abort(tx),
        minl2r_store64(pool, words, 1),
        minl2r_pool_info(pool, &info),
        minl2r_stats_get(pool, &stats),
        minl2r_root(pool, BLOCK) ? 0 : -errno,
    };

    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
        if (results[i] != -EPERM)
            return (int)i + 1;
    return 0;
}

static int status_of(pid_t child)
{
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* As fork(2), but runs no handlers. */
static pid_t clone_quietly(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void expect_child_refused(struct fixture *f, pid_t (*make_child)(void))
{
    struct forked forked;

    fixture_create(f, POOL_SIZE, NULL);
    forked.pool = f->pool;
    forked.words = minl2r_root(f->pool, BLOCK);
    forked.own = make_blocks(f->pool, 1, 1);
    forked.tx = begin(f->pool);
    pid_t child = make_child();

    if (child == 0) {
        int allowed = first_call_allowed(&forked);

        _exit(allowed == 0 && minl2r_pool_close(f->pool) < 0 ? 100 : allowed);
    }
    assert_int_equal(status_of(child), 0);
    assert_ok(minl2r_tx_write(forked.tx, forked.words, "parent's", 8));
    assert_ok(minl2r_tx_commit(forked.tx));
    assert_memory_equal(forked.words, "parent's", 8);
}

static void every_call_of_a_child_is_eperm_but_close(void **state)
{
    expect_child_refused(*state, fork);
}

static void every_call_of_a_child_of_clone_is_eperm_but_close(void **state)
{
    expect_child_refused(*state, clone_quietly);
}

/* ---- Kill ------------------------------------------------------------------------ */

#define COPIES 40 /* of the sequence number, far from each other */
#define SLOTS 6

/* The root object: all of it says the same number, in every state a reader may see. */
struct diary {
    uint64_t copies[COPIES][32];
    uint64_t slots[SLOTS];
    uint64_t run;          /* two blocks in every odd state, else 0 */
    uint64_t snapshot[32]; /* stored directly */
};

static int write_copies(struct minl2r_tx *tx, const struct diary *diary,
                        uint64_t number)
{
    for (int i = 0; i < COPIES; i++)
        if (minl2r_tx_write(tx, diary->copies[i], &number, 8) < 0)
            return -1;
    return 0;
}

static int write_slots(struct minl2r_tx *tx, const struct diary *diary, uint64_t number)
{
    uint8_t bytes[BLOCK];

    memset(bytes, (int)(number % 251), BLOCK);
    for (int i = 0; i < SLOTS; i++)
        if (minl2r_tx_write_block(tx, &diary->slots[i], 0, bytes, BLOCK) < 0)
            return -1;
    return 0;
}

static int change_run(struct minl2r_tx *tx, const struct diary *diary, uint64_t number)
{
    uint64_t run = 0;

    if (number % 2 && minl2r_tx_alloc(tx, 2, &run, NULL) < 0)
        return -1;
    if (number % 2 == 0 && diary->run && minl2r_tx_free(tx, diary->run, 2) < 0)
        return -1;
    return minl2r_tx_write(tx, &diary->run, &run, 8);
}

static int write_number(struct minl2r_pool *pool, const struct diary *diary,
                        uint64_t number)
{
    struct minl2r_tx *tx;
    uint64_t *words;

    if (minl2r_tx_begin(pool, &tx) < 0 ||
        minl2r_tx_snapshot(tx, diary->snapshot, sizeof(diary->snapshot), &words) < 0)
        return -1;
    for (int i = 0; i < 32; i++)
        words[i] = number;
    if (write_copies(tx, diary, number) < 0 || write_slots(tx, diary, number) < 0 ||
        change_run(tx, diary, number) < 0)
        return -1;
    return minl2r_tx_commit(tx);
}

/* Writes numbers for ever and tells each that is committed; ends only by failing. */
static void write_diary(const char *path, int acknowledged)
{
    struct minl2r_pool *pool;

    if (minl2r_pool_open(path, "test", NULL, &pool) < 0)
        _exit(1);
    const struct diary *diary = minl2r_root(pool, sizeof(*diary));

    for (uint64_t number = diary->copies[0][0] + 1;; number++)
        if (write_number(pool, diary, number) < 0 ||
            write(acknowledged, &number, sizeof(number)) != sizeof(number))
            _exit(2);
}

static void expect_number(struct minl2r_pool *pool, const struct diary *diary,
                          uint64_t number, uint64_t blocks_free)
{
    for (int i = 0; i < COPIES; i++)
        assert_int_equal(diary->copies[i][0], number);
    for (int i = 0; i < 32; i++)
        assert_int_equal(diary->snapshot[i], number);
    for (int i = 0; i < SLOTS; i++) {
        const uint8_t *block = minl2r_at(pool, diary->slots[i]);

        assert_int_equal(block[0], number % 251);
        assert_memory_equal(block, block + 1, BLOCK - 1);
    }
    assert_int_equal(diary->run != 0, number % 2);
    assert_int_equal(free_blocks(pool), blocks_free - (number % 2 ? 2 : 0));
}

/* The last number in the pipe, or `last`. */
static uint64_t last_acknowledged(int acknowledged, uint64_t last)
{
    uint64_t number;

    while (read(acknowledged, &number, sizeof(number)) == sizeof(number))
        last = number;
    return last;
}

static uint64_t run_and_kill(struct fixture *f, uint64_t last, useconds_t delay_us)
{
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();

    if (child == 0)
        write_diary(f->path, ends[1]);
    close(ends[1]);
    usleep(delay_us);
    kill(child, SIGKILL);
    int status;

    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    last = last_acknowledged(ends[0], last);
    close(ends[0]);
    return last;
}

static void print_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("check: %s\n", what);
}

static void
killed_process_leaves_all_it_acknowledged_and_nothing_half_done(void **state)
{
    struct fixture *f = *state;
    struct minl2r_options options = {.lanes = 2, .log_size = 4096};
    struct random random = {17};
    struct minl2r_info info;
    uint64_t last = 2, recovered = 0;

    fixture_create(f, POOL_SIZE, &options);
    const struct diary *diary = minl2r_root(f->pool, sizeof(*diary));

    assert_ok(write_number(f->pool, diary, 2));
    uint64_t blocks_free = free_blocks(f->pool);

    for (uint64_t round = 0; round < times_if_long(40, 10); round++) {
        fixture_close(f);
        last = run_and_kill(f, last, 500 + (useconds_t)random_below(&random, 6000));
        assert_ok(minl2r_pool_check(f->path, print_finding, NULL));
        fixture_open(f);
        diary = minl2r_root(f->pool, sizeof(*diary));
        assert_ok(minl2r_pool_info(f->pool, &info));
        recovered += info.recovery.lanes;
        assert_in_range(diary->copies[0][0], last, last + 1);
        last = diary->copies[0][0];
        expect_number(f->pool, diary, last, blocks_free);
    }
    print_message("%llu transactions, %llu undone\n", (unsigned long long)last,
                  (unsigned long long)recovered);
}

#define test(function)                                                                 \
    cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(every_call_of_a_child_is_eperm_but_close),
        test(every_call_of_a_child_of_clone_is_eperm_but_close),
        test(killed_process_leaves_all_it_acknowledged_and_nothing_half_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
