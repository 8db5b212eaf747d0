/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many threads, each with data of its own, in one pool: they share lanes, blocks and
 * caches of transactions. And two that share data under a lock of their own.
 */
#include "tests/unit/memory_pool.h"
#include "tests/unit/random.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <pthread.h>

#define POOL_SIZE ((size_t)16 << 20)
#define BLOCK ((size_t)4096)
#define THREADS ((uint64_t)8)
#define ROUNDS 400
#define SLOTS 4 /* of each thread */

struct shared {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    const uint64_t *slots; /* [THREADS][SLOTS] */
    const uint64_t *counter;
    pthread_mutex_t counter_lock;
};

/* A thread's content is a function of what it has counted, so all of it is known. */
struct worker {
    struct shared *shared;
    struct random random;
    const uint64_t *slots;
    uint64_t
        blocks[SLOTS]; /* what was written to each slot last: the filling byte + 1 */
    uint64_t run;      /* two blocks, or 0 */
    uint64_t commits, aborts;
    bool changed; /* something in the running transaction */
    const char *failed;
};

#define TRY(call)                                                                      \
    do {                                                                               \
        if ((call) < 0) {                                                              \
            worker->failed = #call;                                                    \
            return;                                                                    \
        }                                                                              \
    } while (0)

/* Whole blocks, so that the pool swaps them; every other time the half is not there. */
static void write_slot(struct worker *worker, struct minl2r_tx *tx, uint64_t fill)
{
    uint8_t bytes[BLOCK];
    uint64_t slot = random_below(&worker->random, SLOTS);

    memset(bytes, (int)fill, sizeof(bytes));
    TRY(minl2r_tx_write_block(tx, &worker->slots[slot], 0, bytes, BLOCK));
    worker->blocks[slot] = fill + 1;
    worker->changed = true;
}

static void change_in_place(struct worker *worker, struct minl2r_tx *tx)
{
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        if (worker->blocks[slot] == 0 || worker->slots[slot] == 0)
            continue;
        const uint8_t *block = minl2r_at(worker->shared->pool, worker->slots[slot]);
        uint8_t *bytes;

        TRY(minl2r_tx_snapshot(tx, block + 100, 50, &bytes));
        memset(bytes, (int)worker->blocks[slot] - 1, 50); /* what is there, again */
        worker->changed = true;
        return;
    }
}

static void allocate_or_free(struct worker *worker, struct minl2r_tx *tx)
{
    worker->changed = true;
    if (worker->run) {
        TRY(minl2r_tx_free(tx, worker->run, 2));
        worker->run = 0;
        return;
    }
    uint8_t *bytes;

    TRY(minl2r_tx_alloc(tx, 2, &worker->run, &bytes));
    memset(bytes, 7, 100);
}

static void work_once(struct worker *worker, uint64_t round)
{
    uint64_t saved[SLOTS], saved_run = worker->run;
    struct minl2r_tx *tx;

    memcpy(saved, worker->blocks, sizeof(saved));
    worker->changed = false;
    TRY(minl2r_tx_begin(worker->shared->pool, &tx));
    if (round % 3 == 0)
        change_in_place(worker, tx);
    if (round % 2 == 0)
        write_slot(worker, tx, round % 200);
    if (round % 5 == 0)
        allocate_or_free(worker, tx);
    if (worker->failed)
        return;
    if (random_below(&worker->random, 8)) {
        TRY(minl2r_tx_commit(tx));
        worker->commits += worker->changed;
        return;
    }
    TRY(minl2r_tx_abort(tx));
    worker->aborts++;
    memcpy(worker->blocks, saved, sizeof(saved));
    worker->run = saved_run;
}

static void count_one(struct worker *worker)
{
    struct shared *shared = worker->shared;
    struct minl2r_tx *tx;

    pthread_mutex_lock(&shared->counter_lock);
    uint64_t next = *shared->counter + 1;

    if (minl2r_tx_begin(shared->pool, &tx) < 0 ||
        minl2r_tx_write(tx, shared->counter, &next, 8) < 0 ||
        minl2r_tx_write(tx, shared->counter + 16, &next, 8) < 0 ||
        minl2r_tx_commit(tx) < 0)
        worker->failed = "counting";
    pthread_mutex_unlock(&shared->counter_lock);
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    for (uint64_t round = 0; round < ROUNDS && !worker->failed; round++) {
        work_once(worker, round);
        count_one(worker);
    }
    return NULL;
}

static void compare(const struct worker *worker)
{
    for (uint64_t slot = 0; slot < SLOTS; slot++) {
        if (worker->blocks[slot] == 0) {
            assert_int_equal(worker->slots[slot], 0);
            continue;
        }
        const uint8_t *block = minl2r_at(worker->shared->pool, worker->slots[slot]);

        assert_int_equal(block[0], worker->blocks[slot] - 1);
        assert_memory_equal(block, block + 1, BLOCK - 1);
    }
}

static uint64_t blocks_of(const struct worker *worker)
{
    uint64_t blocks = worker->run ? 2 : 0;

    for (uint64_t slot = 0; slot < SLOTS; slot++)
        blocks += worker->blocks[slot] != 0;
    return blocks;
}

static void make_shared(struct shared *shared, uint32_t lanes)
{
    struct minl2r_options options = {.lanes = lanes};

    memory_pool_make(&shared->mp, POOL_SIZE, &options);
    shared->pool = &shared->mp.pool;
    shared->counter = minl2r_root(shared->pool, BLOCK);
    shared->slots = shared->counter + 64;
    pthread_mutex_init(&shared->counter_lock, NULL);
}

static void start_workers(struct shared *shared, struct worker workers[THREADS],
                          pthread_t threads[THREADS])
{
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared,
                                     .random = {i + 1},
                                     .slots = shared->slots + (size_t)i * SLOTS};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
}

static void join_workers(struct worker workers[THREADS], pthread_t threads[THREADS])
{
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        if (workers[i].failed)
            fail_msg("thread %u: %s", i, workers[i].failed);
    }
}

static void run_with_lanes(uint32_t lanes)
{
    struct shared shared;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];

    make_shared(&shared, lanes);
    uint64_t blocks_free = free_blocks(shared.pool);

    start_workers(&shared, workers, threads);
    join_workers(workers, threads);
    for (uint64_t i = 0; i < THREADS; i++) {
        compare(&workers[i]);
        blocks_free -= blocks_of(&workers[i]);
    }
    assert_int_equal(*shared.counter, THREADS * ROUNDS);
    assert_int_equal(free_blocks(shared.pool), blocks_free);
    memory_pool_close(&shared.mp);
    memory_pool_check(&shared.mp);
    memory_pool_open(&shared.mp);
    for (uint64_t i = 0; i < THREADS; i++)
        compare(&workers[i]);
    assert_int_equal(free_blocks(shared.pool), blocks_free);
    memory_pool_remove(&shared.mp);
}

static void threads_share_one_lane_without_losing_an_update(void **state)
{
    (void)state;
    run_with_lanes(1);
}

static void threads_share_two_lanes_without_losing_an_update(void **state)
{
    (void)state;
    run_with_lanes(2);
}

static void threads_share_three_lanes_without_losing_an_update(void **state)
{
    (void)state;
    run_with_lanes(3);
}

static void threads_share_eight_lanes_without_losing_an_update(void **state)
{
    (void)state;
    run_with_lanes(8);
}

/* ---- Statistics ------------------------------------------------------------------ */

static void statistics_of_all_threads_add_up(void **state)
{
    struct shared shared;
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t commits = THREADS * ROUNDS, aborts = 0, blocks = 0;

    (void)state;
    make_shared(&shared, 4);
    struct minl2r_stats before = stats_of(shared.pool);

    start_workers(&shared, workers, threads);
    join_workers(workers, threads);
    struct minl2r_stats after = stats_of(shared.pool);

    for (uint64_t i = 0; i < THREADS; i++) {
        commits += workers[i].commits;
        aborts += workers[i].aborts;
        blocks += blocks_of(&workers[i]);
    }
    assert_int_equal(after.commits - before.commits, commits);
    assert_int_equal(after.aborts - before.aborts, aborts);
    assert_int_equal(after.blocks_allocated - before.blocks_allocated,
                     after.blocks_freed - before.blocks_freed + blocks);
    memory_pool_remove(&shared.mp);
}

/* ---- Who may --------------------------------------------------------------------- */

static void *use_foreign(void *arg)
{
    struct minl2r_tx *tx = arg;
    uint64_t word = 0;

    if (minl2r_tx_write(tx, &word, &word, 8) != -EPERM ||
        minl2r_tx_zero(tx, &word, 8) != -EPERM ||
        minl2r_tx_copy(tx, &word, &word, 8) != -EPERM ||
        minl2r_tx_edit(tx, &word, 8, &word) != -EPERM ||
        minl2r_tx_write_fresh(tx, &word, &word, 8) != -EPERM ||
        minl2r_tx_write_block(tx, &word, 0, &word, 8) != -EPERM ||
        minl2r_tx_read(tx, &word, &word, 8) != -EPERM ||
        minl2r_tx_alloc(tx, 1, NULL, NULL) != -EPERM ||
        minl2r_tx_free(tx, 8, 1) != -EPERM ||
        minl2r_tx_snapshot(tx, &word, 8, NULL) != -EPERM ||
        minl2r_tx_snapshotv(tx, NULL, 0, NULL) != -EPERM ||
        minl2r_tx_commit(tx) != -EPERM || minl2r_tx_abort(tx) != -EPERM)
        return "not refused";
    return strstr(minl2r_errormsg(), "another thread") ? NULL : "not told why";
}

static void transaction_of_another_thread_is_eperm_and_stays_open(void **state)
{
    struct shared shared;
    pthread_t thread;
    void *failed;
    uint64_t value = 5;

    (void)state;
    make_shared(&shared, 2);
    struct minl2r_tx *tx = begin(shared.pool);

    assert_int_equal(pthread_create(&thread, NULL, use_foreign, tx), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_ok(minl2r_tx_write(tx, shared.counter, &value, 8));
    assert_ok(minl2r_tx_commit(tx));
    assert_int_equal(*shared.counter, 5);
    memory_pool_remove(&shared.mp);
}

static void *say_nothing_is_wrong(void *arg)
{
    (void)arg;
    return minl2r_errormsg()[0] == 0 ? NULL : "has a message";
}

static void message_belongs_to_the_thread_whose_call_failed(void **state)
{
    pthread_t thread;
    void *failed;

    (void)state;
    assert_int_equal(minl2r_pool_create(NULL, NULL, 0, NULL, NULL), -EINVAL);
    assert_true(minl2r_errormsg()[0] != 0);
    assert_int_equal(pthread_create(&thread, NULL, say_nothing_is_wrong, NULL), 0);
    pthread_join(thread, &failed);
    assert_null(failed);
}

/* ---- Pools ----------------------------------------------------------------------- */

static void *open_and_close(void *arg)
{
    struct fixture *f = arg;

    for (int i = 0; i < 20; i++) {
        struct minl2r_pool *pool;
        int result = minl2r_pool_open(f->path, "test", NULL, &pool);

        if (result == -EBUSY)
            continue;
        if (result < 0 || !minl2r_root(pool, 100) || minl2r_pool_close(pool) < 0)
            return "failed";
    }
    return NULL;
}

static void threads_open_and_close_the_same_pool(void **state)
{
    struct fixture *f = *state;
    pthread_t threads[4];
    void *failed;

    fixture_create(f, MINL2R_POOL_SIZE_MIN, NULL);
    fixture_close(f);
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, f), 0);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_share_one_lane_without_losing_an_update),
        cmocka_unit_test(threads_share_two_lanes_without_losing_an_update),
        cmocka_unit_test(threads_share_three_lanes_without_losing_an_update),
        cmocka_unit_test(threads_share_eight_lanes_without_losing_an_update),
        cmocka_unit_test(statistics_of_all_threads_add_up),
        cmocka_unit_test(transaction_of_another_thread_is_eperm_and_stays_open),
        cmocka_unit_test(message_belongs_to_the_thread_whose_call_failed),
        cmocka_unit_test_setup_teardown(threads_open_and_close_the_same_pool,
                                        fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
