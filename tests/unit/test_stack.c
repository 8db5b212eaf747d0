/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How deep the library goes into the caller's stack: programs with small stacks of
 * their own, such as user-level threads, have to know. Each call is made on a stack
 * that was painted below it, and what is no longer paint was used: by the library, and
 * by what it calls in turn.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/subject.h"
#include "tests/unit/transact.h"

#include <pthread.h>

#define POOL_SIZE ((size_t)2 << 20)
#define STACK_SIZE ((size_t)256 << 10)
#define STACK_USE_MAX 2048
#define PAINT 0xa5

struct test {
    struct memory_pool mp;
    struct subject subject;
    struct fixture *f;
    uint8_t *stack; /* STACK_SIZE bytes, used from their end on */
    int call;       /* of the subject */
    int result;     /* of the last call */
    const char *failed;
    size_t deepest;
};

typedef void call_fn(struct test *test);

/* ---- Measuring ------------------------------------------------------------------- */

/* Between this function's frame and the call's there is less than that. */
#define FRAME_SIZE 256

__attribute__((noinline)) static void measure(struct test *test, const char *name,
                                              call_fn *call)
{
    uint8_t mark;
    size_t above = (size_t)(&mark - test->stack) - FRAME_SIZE, at = 0;

    memset(test->stack, PAINT, above);
    call(test);
    while (at < above && test->stack[at] == PAINT)
        at++;
    if (above - at > test->deepest)
        test->deepest = above - at;
    if (above - at > STACK_USE_MAX || test->result < 0) {
        print_error("%s: %zu bytes of stack, result %d\n", name, above - at,
                    test->result);
        test->failed = name;
    }
}

/* ---- Calls ----------------------------------------------------------------------- */

static void call_of_subject(struct test *test)
{
    test->result = subject_calls[test->call].call(&test->subject);
}

static void begin_tx(struct test *test)
{
    test->result = minl2r_tx_begin(test->subject.pool, &test->subject.tx);
}

static void commit_tx(struct test *test)
{
    test->result = minl2r_tx_commit(test->subject.tx);
}

static void abort_tx(struct test *test)
{
    test->result = minl2r_tx_abort(test->subject.tx);
}

static void store_word(struct test *test)
{
    test->result = minl2r_store64(test->subject.pool, test->subject.slots, 0);
}

static void find_root(struct test *test)
{
    test->result = minl2r_root(test->subject.pool, SUBJECT_ROOT_SIZE) ? 0 : -1;
}

static void read_bytes(struct test *test)
{
    uint8_t bytes[16];

    test->result = minl2r_tx_read(test->subject.tx, bytes, test->subject.slots, 16);
}

static void get_stats(struct test *test)
{
    struct minl2r_stats stats;

    test->result = minl2r_stats_get(test->subject.pool, &stats);
}

static void create_pool(struct test *test)
{
    test->result =
        minl2r_pool_create(test->f->path, "test", POOL_SIZE, NULL, &test->f->pool);
}

static void close_pool(struct test *test)
{
    test->result = minl2r_pool_close(test->f->pool);
    test->f->pool = NULL;
}

static void open_pool(struct test *test)
{
    test->result = minl2r_pool_open(test->f->path, "test", NULL, &test->f->pool);
}

static void ignore(void *arg, const char *what)
{
    (void)arg;
    (void)what;
}

static void check_pool_file(struct test *test)
{
    test->result = minl2r_pool_check(test->f->path, ignore, NULL);
}

/* Tells what is wrong, which takes a printf(). */
static void refuse_word(struct test *test)
{
    int result = minl2r_store64(test->subject.pool, NULL, 0);

    test->result = result < 0 ? 0 : -1;
}

static void measure_transactions(struct test *test)
{
    for (int commit = 0; commit < 2; commit++) {
        measure(test, "begin", begin_tx);
        test->subject.own = 0;
        for (test->call = 0; test->call < subject_call_count; test->call++)
            measure(test, subject_calls[test->call].name, call_of_subject);
        measure(test, "read", read_bytes);
        measure(test, commit ? "commit" : "abort", commit ? commit_tx : abort_tx);
    }
    measure(test, "store64", store_word);
    measure(test, "root", find_root);
    measure(test, "stats", get_stats);
}

static void measure_pools(struct test *test)
{
    measure(test, "create", create_pool);
    measure(test, "close", close_pool);
    measure(test, "open", open_pool);
    measure(test, "close", close_pool);
    measure(test, "check", check_pool_file);
}

static void measure_errors(struct test *test)
{
    measure(test, "store64, refused", refuse_word);
}

/* ---- On a thread ----------------------------------------------------------------- */

struct painted {
    struct test *test;
    call_fn *calls;
};

static void *call_on_painted_stack(void *arg)
{
    struct painted *painted = arg;

    painted->calls(painted->test);
    return NULL;
}

static void run_on_painted_stack(struct test *test, call_fn *calls)
{
    struct painted painted = {test, calls};
    pthread_attr_t attr;
    pthread_t thread;

    test->stack = map_guarded(STACK_SIZE);
    pthread_attr_init(&attr);
    assert_int_equal(pthread_attr_setstack(&attr, test->stack, STACK_SIZE), 0);
    assert_int_equal(pthread_create(&thread, &attr, call_on_painted_stack, &painted),
                     0);
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    unmap_guarded(test->stack, STACK_SIZE);
    print_message("at most %zu bytes\n", test->deepest);
    assert_null(test->failed);
}

static int setup(void **state)
{
    struct minl2r_options options = {.lanes = 2, .log_size = 4096};
    struct test *test = calloc(1, sizeof(*test));

    *state = test;
    memory_pool_make(&test->mp, POOL_SIZE, &options);
    subject_create(&test->subject, &test->mp.pool);
    return fixture_setup((void **)&test->f);
}

static int teardown(void **state)
{
    struct test *test = *state;
    void *f = test->f;

    memory_pool_remove(&test->mp);
    free(test);
    return fixture_teardown(&f);
}

static void transactions_use_little_stack(void **state)
{
    run_on_painted_stack(*state, measure_transactions);
}

static void pools_use_little_stack(void **state)
{
    run_on_painted_stack(*state, measure_pools);
}

static void errors_use_little_stack(void **state)
{
    run_on_painted_stack(*state, measure_errors);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(transactions_use_little_stack),
        test(pools_use_little_stack),
        test(errors_use_little_stack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
