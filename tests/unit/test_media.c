/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whole pools on every medium, made up by fake_media.h; and an msync that fails at each
 * ordering point of each operation: the pool is poisoned then, and shows old or new
 * after it was opened again (I8).
 */
#include "tests/unit/fake_media.h"

#define SIZE ((uint64_t)2 << 20)
#define BLOCK 4096u

/* What the operations change: each has a reader that sees old, new, or a broken pool.
 */
struct root {
    uint64_t first;
    uint64_t slot; /* of a block whose words are all alike */
    uint8_t pad[2 * BLOCK];
    uint64_t last; /* in another block */
};

static const struct root *root_of(struct fixture *f)
{
    const struct root *root = minl2r_root(f->pool, sizeof(struct root));

    assert_non_null(root);
    return root;
}

static int setup(void **state)
{
    fake_nothing();
    return fixture_setup(state);
}

static int teardown(void **state)
{
    fake_nothing();
    return fixture_teardown(state);
}

/* ---- Operations: 0, or the library's error -----------------------------------------
 */

typedef int operate_fn(struct fixture *f, uint64_t value);
typedef uint64_t read_fn(struct fixture *f); /* the value, or fails */

/* Ends what was begun; the first error counts. */
static int finish(struct minl2r_tx *tx, int result)
{
    if (result == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return result;
}

static int write_two_words(struct fixture *f, uint64_t value)
{
    const struct root *root = root_of(f);
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(f->pool, &tx);

    if (result < 0)
        return result;
    result = minl2r_tx_write(tx, &root->first, &value, sizeof(value));
    if (result == 0)
        result = minl2r_tx_write(tx, &root->last, &value, sizeof(value));
    return finish(tx, result);
}

static int snapshot_two_words(struct fixture *f, uint64_t value)
{
    const struct root *root = root_of(f);
    struct minl2r_tx *tx;
    uint64_t *first, *last;
    int result = minl2r_tx_begin(f->pool, &tx);

    if (result < 0)
        return result;
    result = minl2r_tx_snapshot(tx, &root->first, sizeof(value), &first);
    if (result == 0)
        result = minl2r_tx_snapshot(tx, &root->last, sizeof(value), &last);
    if (result == 0)
        *first = *last = value;
    return finish(tx, result);
}

/* Changes nothing in the end. */
static int snapshot_and_abort(struct fixture *f, uint64_t value)
{
    const struct root *root = root_of(f);
    struct minl2r_tx *tx;
    uint64_t *first;
    int result = minl2r_tx_begin(f->pool, &tx);

    if (result < 0)
        return result;
    result = minl2r_tx_snapshot(tx, &root->first, sizeof(value), &first);
    if (result == 0)
        *first = 4711;
    int aborted = minl2r_tx_abort(tx);

    return result < 0 ? result : aborted;
}

static uint64_t read_two_words(struct fixture *f)
{
    const struct root *root = root_of(f);

    assert_int_equal(root->first, root->last);
    return root->first;
}

static int swap_block(struct fixture *f, uint64_t value)
{
    const struct root *root = root_of(f);
    uint64_t words[BLOCK / 8];
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(f->pool, &tx);

    for (size_t i = 0; i < BLOCK / 8; i++)
        words[i] = value;
    if (result < 0)
        return result;
    return finish(tx, minl2r_tx_write_block(tx, &root->slot, 0, words, BLOCK));
}

static uint64_t read_block(struct fixture *f)
{
    const uint64_t *words = minl2r_at(f->pool, root_of(f)->slot);

    if (!words)
        return 0; /* a hole */
    for (size_t i = 1; i < BLOCK / 8; i++)
        assert_int_equal(words[i], words[0]);
    return words[0];
}

static int store_word(struct fixture *f, uint64_t value)
{
    return minl2r_store64(f->pool, &root_of(f)->first, value);
}

static uint64_t read_word(struct fixture *f)
{
    return root_of(f)->first;
}

static const struct operation {
    const char *name;
    operate_fn *operate;
    read_fn *read;
    bool changes;
} operations[] = {
    {"write", write_two_words, read_two_words, true},
    {"snapshot", snapshot_two_words, read_two_words, true},
    {"abort", snapshot_and_abort, read_two_words, false},
    {"block", swap_block, read_block, true},
    {"store64", store_word, read_word, true},
};
#define OPERATION_COUNT (sizeof(operations) / sizeof(operations[0]))

/* ---- Every medium ------------------------------------------------------------------
 */

static void expect_all_operations_work(struct fixture *f)
{
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        const struct operation *op = &operations[i];
        uint64_t before = op->read(f);

        assert_ok(op->operate(f, before + 1));
        fixture_reopen(f);
        assert_int_equal(op->read(f), before + op->changes);
        if (op->operate == store_word) /* alone, it parts the two words */
            assert_ok(write_two_words(f, before + 1));
    }
}

static void on_medium(struct fixture *f, enum minl2r_medium medium)
{
    struct minl2r_info info;

    fake_medium(medium);
    fixture_create(f, SIZE, NULL);
    assert_ok(minl2r_pool_info(f->pool, &info));
    assert_int_equal(info.medium, medium);
    expect_all_operations_work(f);
}

static void all_operations_work_in_msync_mode(void **state)
{
    on_medium(*state, MINL2R_FILE);
}

static void all_operations_work_on_dax(void **state)
{
    on_medium(*state, MINL2R_DAX);
}

static void all_operations_work_with_eadr(void **state)
{
    on_medium(*state, MINL2R_EADR);
}

static void eadr_flushes_no_line_in_any_operation(void **state)
{
    struct fixture *f = *state;
    struct minl2r_stats stats;

    on_medium(f, MINL2R_EADR);
    for (size_t i = 0; i < OPERATION_COUNT; i++)
        assert_ok(operations[i].operate(f, 77));
    assert_ok(minl2r_stats_get(f->pool, &stats));
    assert_int_equal(stats.lines_flushed + stats.lines_streamed + stats.fences, 0);
    assert_true(stats.pm_bytes > 0);
}

static void msync_mode_waits_as_often_as_flushing_does(void **state)
{
    struct fixture *f = *state;
    struct minl2r_stats before, after;

    fake_medium(MINL2R_FILE);
    fixture_create(f, SIZE, NULL);
    assert_ok(write_two_words(f, 1));
    assert_ok(minl2r_stats_get(f->pool, &before));
    msync_calls = 0;
    assert_ok(write_two_words(f, 2));
    assert_ok(minl2r_stats_get(f->pool, &after));
    assert_int_equal(msync_calls, 3);
    assert_int_equal(after.fences - before.fences, 3);
}

/* ---- A medium that fails -----------------------------------------------------------
 */

static void break_msync(int from)
{
    msync_errnum = EIO;
    msync_fails_from = from;
    msync_calls = 0;
}

static void mend_msync(void)
{
    msync_errnum = 0;
}

static void ignore(void *arg, const char *what)
{
    (void)arg;
    print_error("%s\n", what);
}

/* One operation whose msync number `from` and all later ones fail. */
static int operate_broken(struct fixture *f, const struct operation *op, int from,
                          uint64_t value)
{
    struct minl2r_tx *tx;

    break_msync(from);
    int result = op->operate(f, value);

    mend_msync();
    if (result == 0)
        return 0;
    assert_int_equal(result, -EIO);
    assert_error(minl2r_tx_begin(f->pool, &tx), EIO, "opened again");
    assert_int_equal(minl2r_store64(f->pool, &root_of(f)->first, 1), -EIO);
    fixture_close(f);
    assert_ok(minl2r_pool_check(f->path, ignore, NULL));
    fixture_open(f);
    return result;
}

static void break_everywhere(struct fixture *f, const struct operation *op)
{
    for (int from = 1;; from++) {
        uint64_t before = op->read(f);
        int result = operate_broken(f, op, from, before + 1);
        uint64_t after = op->read(f);

        assert_true(after == before || (op->changes && after == before + 1));
        if (result == 0) {
            assert_true(from > 1);
            assert_int_equal(after, before + op->changes);
            return;
        }
    }
}

static void failing_msync_poisons_and_leaves_old_or_new(void **state)
{
    struct fixture *f = *state;

    fake_medium(MINL2R_FILE);
    fixture_create(f, SIZE, NULL);
    for (size_t i = 0; i < OPERATION_COUNT; i++) {
        print_message("%s\n", operations[i].name);
        assert_ok(write_two_words(f, 100));
        assert_ok(swap_block(f, 100));
        break_everywhere(f, &operations[i]);
    }
}

static void create_on_a_failing_medium_leaves_no_file(void **state)
{
    struct fixture *f = *state;

    fake_medium(MINL2R_FILE);
    for (int from = 1; from < 4; from++) {
        break_msync(from);
        assert_error(minl2r_pool_create(f->path, "test", SIZE, NULL, &f->pool), EIO,
                     "msync");
        assert_true(access(f->path, F_OK) < 0);
    }
}

static void open_on_a_failing_medium_can_be_tried_again(void **state)
{
    struct fixture *f = *state;

    fake_medium(MINL2R_FILE);
    fixture_create(f, SIZE, NULL);
    assert_ok(write_two_words(f, 5));
    fixture_close(f);
    break_msync(1);
    assert_error(minl2r_pool_open(f->path, NULL, NULL, &f->pool), EIO, "msync");
    mend_msync();
    fixture_open(f);
    assert_int_equal(read_two_words(f), 5);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(all_operations_work_in_msync_mode),
        test(all_operations_work_on_dax),
        test(all_operations_work_with_eadr),
        test(eadr_flushes_no_line_in_any_operation),
        test(msync_mode_waits_as_often_as_flushing_does),
        test(failing_msync_poisons_and_leaves_old_or_new),
        test(create_on_a_failing_medium_leaves_no_file),
        test(open_on_a_failing_medium_can_be_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
