/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that runs out at every allocation in turn (I8): the call answers -ENOMEM, what
 * it would have changed is as before, and the transaction can go on or be aborted. And
 * what needs no memory at all.
 */
#include "tests/unit/subject_bed.h"
#include "tests/unit/transact.h"

#include <errno.h>

/* ---- Allocations that fail ------------------------------------------------------- */

static bool counting;
static uint64_t calls;   /* while counting */
static uint64_t fail_at; /* the call that fails; 0: none */
static bool fail_after;  /* and all after it */

static bool fails(void)
{
    if (!counting)
        return false;
    calls++;
    return fail_at > 0 && (calls == fail_at || (fail_after && calls > fail_at));
}

static void start_failing(uint64_t at, bool after)
{
    calls = 0;
    fail_at = at;
    fail_after = after;
    counting = true;
}

static void stop_failing(void)
{
    counting = false;
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
    return fails() ? NULL : __real_realloc(memory, size);
}

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : __real_aligned_alloc(alignment, size);
}

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__wrap_strdup(const char *text)
{
    return fails() ? NULL : __real_strdup(text);
}

/* ---- Pools ----------------------------------------------------------------------- */

static int open_descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    int count = 0;

    while (readdir(dir))
        count++;
    closedir(dir);
    return count;
}

static void create_without_memory_is_enomem_and_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    int descriptors = open_descriptors();
    uint64_t n = 0;
    int result;

    do {
        start_failing(++n, false);
        result =
            minl2r_pool_create(f->path, "test", MINL2R_POOL_SIZE_MIN, NULL, &f->pool);
        stop_failing();
        if (result < 0) {
            assert_int_equal(result, -ENOMEM);
            assert_int_equal(access(f->path, F_OK), -1);
            assert_int_equal(open_descriptors(), descriptors);
        }
    } while (result < 0);
    assert_true(n > 5);
}

static void open_without_memory_is_enomem_and_can_be_repeated(void **state)
{
    struct fixture *f = *state;
    uint64_t n = 0;
    int result;

    fixture_create(f, MINL2R_POOL_SIZE_MIN, NULL);
    fixture_close(f);
    int descriptors = open_descriptors();

    do {
        start_failing(++n, false);
        result = minl2r_pool_open(f->path, "test", NULL, &f->pool);
        stop_failing();
        if (result < 0) {
            assert_int_equal(result, -ENOMEM);
            assert_int_equal(open_descriptors(), descriptors);
        }
    } while (result < 0);
    assert_true(n > 5);
}

static void check_without_memory_is_enomem_and_finds_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t n = 0;
    int result;

    fixture_create(f, MINL2R_POOL_SIZE_MIN, NULL);
    fixture_close(f);
    int descriptors = open_descriptors();

    do {
        start_failing(++n, false);
        result = minl2r_pool_check(f->path, print_finding, NULL);
        stop_failing();
        assert_int_equal(result, result < 0 ? -ENOMEM : 0);
        assert_int_equal(open_descriptors(), descriptors);
    } while (result < 0);
    assert_true(n > 5);
}

/* ---- Transactions ---------------------------------------------------------------- */

static int setup(void **state)
{
    bed_make(state, &(struct minl2r_options){.lanes = 2, .log_size = 4096});
    return 0;
}

static int teardown(void **state)
{
    stop_failing();
    bed_remove(*state);
    return 0;
}

static void begin_without_memory_is_enomem(void **state)
{
    struct bed *bed = *state;
    struct minl2r_tx *tx, *first = begin(&bed->mp.pool); /* so that none is cached */
    uint64_t n = 0;
    int result;

    do {
        start_failing(++n, false);
        result = minl2r_tx_begin(&bed->mp.pool, &tx);
        stop_failing();
        assert_int_equal(result, result < 0 ? -ENOMEM : 0);
    } while (result < 0);
    assert_true(n > 4);
    assert_ok(minl2r_tx_abort(tx));
    assert_ok(minl2r_tx_abort(first));
}

/* Leaves at most `room` bytes in the memory that the transaction has. */
static void leave_room(struct subject *subject, size_t room)
{
    struct arena *arena = &subject->tx->writes.arena;

    if (arena->chunks->size - arena->used > room)
        arena->used = arena->chunks->size - room;
}

enum then { GO_ON, REPEAT, ABORT };

/*
 * Makes all calls; number `failing` finds `room` bytes of memory and no more. Answers
 * whether that was enough.
 */
static bool run_calls(struct subject *subject, int failing, size_t room, enum then then)
{
    bool enough = true;

    subject_begin(subject);
    for (int i = 0; i < subject_call_count; i++) {
        if (i == failing) {
            leave_room(subject, room);
            start_failing(1, true);
        }
        int result = subject_calls[i].call(subject);

        stop_failing();
        if (result == 0)
            continue;
        assert_int_equal(i, failing);
        assert_int_equal(result, -ENOMEM);
        enough = false;
        subject_compare_seen(subject);
        if (then == ABORT)
            break;
        if (then == REPEAT)
            assert_ok(subject_calls[i].call(subject));
    }
    if (then == ABORT)
        subject_abort(subject);
    else
        subject_commit(subject);
    return enough;
}

static void each_call_with_each_amount_of_memory(struct bed *bed, enum then then)
{
    for (int failing = 0; failing < subject_call_count; failing++) {
        size_t room = 0;

        while (!run_calls(&bed->subject, failing, room, then)) {
            bed_compare_after_reopen(bed);
            bed_start_again(bed);
            room += room < 512 ? 16 : 496;
        }
        if (room == 0)
            print_message("%s needs no memory\n", subject_calls[failing].name);
        bed_start_again(bed);
    }
}

static void transaction_goes_on_after_each_call_without_memory(void **state)
{
    each_call_with_each_amount_of_memory(*state, GO_ON);
}

static void each_call_without_memory_can_be_repeated(void **state)
{
    each_call_with_each_amount_of_memory(*state, REPEAT);
}

static void transaction_is_aborted_after_each_call_without_memory(void **state)
{
    each_call_with_each_amount_of_memory(*state, ABORT);
}

/* The index of the blocks that a transaction changes grows with them. */
static void index_that_cannot_grow_is_enomem_and_keeps_what_it_has(void **state)
{
    struct bed *bed = *state;
    uint64_t offset = make_blocks(&bed->mp.pool, 200, 1), written = 0;
    const uint8_t *data = minl2r_at(&bed->mp.pool, offset);
    struct minl2r_tx *tx = begin(&bed->mp.pool);
    int result = 0;

    start_failing(1, true);
    while (result == 0 && written < 200) {
        result = minl2r_tx_write(tx, data + written * SUBJECT_BLOCK, "new", 4);
        written += result == 0;
    }
    stop_failing();
    assert_int_equal(result, -ENOMEM);
    assert_true(written > 16);
    assert_ok(minl2r_tx_commit(tx));
    for (uint64_t i = 0; i < 200; i++)
        assert_int_equal(memcmp(data + i * SUBJECT_BLOCK, "new", 4) == 0, i < written);
}

/* It is as if the call had not been made: the slot keeps its value and its freedom. */
static void slot_of_a_failed_write_can_be_written_directly(void **state)
{
    struct bed *bed = *state;
    struct subject *subject = &bed->subject;
    uint64_t old[2] = {subject->slots[0], 0};
    uint8_t bytes[SUBJECT_BLOCK] = {1};

    subject_begin(subject);
    for (int i = 0; i < 2; i++) { /* a block, a hole */
        const uint64_t *slot = &subject->slots[i ? SUBJECT_SLOTS : 0];
        size_t room = 0;
        int result;

        do {
            leave_room(subject, room += 16);
            start_failing(1, true);
            result =
                minl2r_tx_write_block(subject->tx, slot, 0, bytes, SUBJECT_BLOCK - 1);
            stop_failing();
            if (result == 0)
                break;
            assert_ok(minl2r_tx_write(subject->tx, slot, &old[i], 8));
            subject_commit(subject);
            assert_int_equal(*slot, old[i]);
            subject_begin(subject);
        } while (room < (size_t)8 * SUBJECT_BLOCK);
        assert_ok(result);
        assert_in_range(room, 512, SUBJECT_BLOCK + 512);
        subject_abort(subject);
        subject_begin(subject);
    }
    subject_abort(subject);
}

static void commit_and_abort_need_no_memory(void **state)
{
    struct bed *bed = *state;

    for (int commit = 0; commit < 2; commit++) {
        subject_begin(&bed->subject);
        for (int i = 0; i < subject_call_count; i++)
            assert_ok(subject_calls[i].call(&bed->subject));
        start_failing(1, true);
        if (commit)
            assert_ok(minl2r_tx_commit(bed->subject.tx));
        else
            assert_ok(minl2r_tx_abort(bed->subject.tx));
        stop_failing();
        if (commit)
            bed->subject.committed = bed->subject.seen;
        subject_compare(&bed->subject);
    }
}

/* ---- No heap in steady state ----------------------------------------------------- */

static void small_transaction(struct subject *subject, uint64_t i)
{
    const uint8_t *data = minl2r_at(subject->pool, subject->data);
    uint64_t offset, *copy;

    subject->tx = begin(subject->pool);
    for (uint64_t j = 0; j < 16; j++)
        assert_ok(minl2r_tx_write(subject->tx, data + j * SUBJECT_BLOCK + i, &i, 8));
    assert_ok(minl2r_tx_write_block(subject->tx, &subject->slots[i % SUBJECT_SLOTS], 0,
                                    data, i % 2 ? 100 : SUBJECT_BLOCK));
    assert_ok(minl2r_tx_edit(subject->tx, data + 20 * SUBJECT_BLOCK, 256, &copy));
    copy[i % 32]++;
    assert_ok(minl2r_tx_alloc(subject->tx, 2, &offset, NULL));
    assert_ok(minl2r_tx_free(subject->tx, offset, 2));
    assert_ok(minl2r_tx_snapshot(subject->tx, data + 21 * SUBJECT_BLOCK, 64, NULL));
    if (i % 5)
        assert_ok(minl2r_tx_commit(subject->tx));
    else
        assert_ok(minl2r_tx_abort(subject->tx));
    assert_ok(minl2r_store64(subject->pool, &subject->slots[SUBJECT_SLOTS + 1], 0));
}

static void small_transactions_use_no_heap(void **state)
{
    struct bed *bed = *state;

    small_transaction(&bed->subject, 0);
    start_failing(0, false);
    for (uint64_t i = 0; i < 1000; i++)
        small_transaction(&bed->subject, i);
    stop_failing();
    assert_int_equal(calls, 0);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
#define file_test(function)                                                            \
    cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        file_test(create_without_memory_is_enomem_and_leaves_no_file),
        file_test(open_without_memory_is_enomem_and_can_be_repeated),
        file_test(check_without_memory_is_enomem_and_finds_nothing),
        test(begin_without_memory_is_enomem),
        test(transaction_goes_on_after_each_call_without_memory),
        test(each_call_without_memory_can_be_repeated),
        test(transaction_is_aborted_after_each_call_without_memory),
        test(index_that_cannot_grow_is_enomem_and_keeps_what_it_has),
        test(slot_of_a_failed_write_can_be_written_directly),
        test(commit_and_abort_need_no_memory),
        test(small_transactions_use_no_heap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
