/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: who gets one, who waits, who is refused; and generations. */
#include "tests/unit/memory_pool.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#define POOL_SIZE ((size_t)4 << 20)
#define LANES_MAX 8

static const uint32_t lane_counts[] = {1, 2, 3, 4, 8};

struct bed {
    struct memory_pool mp;
    struct minl2r_pool *pool;
    const uint64_t *words; /* 512, a line apart from each other: words[8 * i] */
};

static void make_bed(struct bed *bed, uint32_t lanes)
{
    struct minl2r_options options = {.lanes = lanes};

    memory_pool_make(&bed->mp, POOL_SIZE, &options);
    bed->pool = &bed->mp.pool;
    bed->words = minl2r_root(bed->pool, (size_t)8 * 4096);
    assert_non_null(bed->words);
}

static void remove_bed(struct bed *bed)
{
    memory_pool_close(&bed->mp);
    memory_pool_check(&bed->mp);
    memory_pool_unmap(&bed->mp);
}

static void for_each_lane_count(void (*run)(struct bed *, uint32_t lanes))
{
    for (size_t i = 0; i < sizeof(lane_counts) / sizeof(lane_counts[0]); i++) {
        struct bed bed;

        make_bed(&bed, lane_counts[i]);
        run(&bed, lane_counts[i]);
        remove_bed(&bed);
    }
}

/* Logs, so it needs a lane: two words that are not neighbours. */
static void commit_something(struct bed *bed, uint64_t value)
{
    struct minl2r_tx *tx = begin(bed->pool);

    assert_ok(minl2r_tx_write(tx, &bed->words[400], &value, 8));
    assert_ok(minl2r_tx_write(tx, &bed->words[500], &value, 8));
    assert_ok(minl2r_tx_commit(tx));
}

static int snapshot_word(struct bed *bed, struct minl2r_tx *tx, uint32_t i)
{
    uint64_t *word;
    int result = minl2r_tx_snapshot(tx, &bed->words[(size_t)8 * i], 8, &word);

    if (result == 0)
        ++*word;
    return result;
}

/* ---- One thread ------------------------------------------------------------------ */

static void hold_all_lanes(struct bed *bed, uint32_t lanes, struct minl2r_tx **holders)
{
    for (uint32_t i = 0; i < lanes; i++) {
        holders[i] = begin(bed->pool);
        assert_ok(snapshot_word(bed, holders[i], i));
    }
}

static void commit_all(struct minl2r_tx **holders, uint32_t lanes)
{
    for (uint32_t i = 0; i < lanes; i++)
        assert_ok(minl2r_tx_commit(holders[i]));
}

static void refuse_one_more(struct bed *bed, uint32_t lanes)
{
    struct minl2r_tx *holders[LANES_MAX], *tx = begin(bed->pool);

    hold_all_lanes(bed, lanes, holders);
    assert_error(snapshot_word(bed, tx, 9), EBUSY, "no lane is free");
    assert_ok(minl2r_tx_commit(holders[0]));
    assert_ok(snapshot_word(bed, tx, 9));
    assert_ok(minl2r_tx_abort(tx));
    commit_all(holders + 1, lanes - 1);
    assert_int_equal(bed->words[0], 1);
    assert_int_equal(bed->words[72], 0);
}

static void thread_that_holds_all_lanes_gets_ebusy_for_one_more(void **state)
{
    (void)state;
    for_each_lane_count(refuse_one_more);
}

static void commit_besides_all_lanes(struct bed *bed, uint32_t lanes)
{
    struct minl2r_tx *holders[LANES_MAX];

    hold_all_lanes(bed, lanes, holders);
    for (uint64_t i = 0; i < 10; i++) {
        commit_something(bed, i);
        assert_ok(minl2r_store64(bed->pool, &bed->words[100], i));
    }
    commit_all(holders, lanes);
}

/* The lane that snapshots never get: a commit ends while all others are held. */
static void thread_that_holds_all_lanes_commits_others(void **state)
{
    (void)state;
    for_each_lane_count(commit_besides_all_lanes);
}

static void transaction_keeps_its_lane(void **state)
{
    struct bed bed;
    struct minl2r_tx *tx;

    (void)state;
    make_bed(&bed, 1);
    tx = begin(bed.pool);
    for (uint32_t i = 0; i < 20; i++)
        assert_ok(snapshot_word(&bed, tx, i));
    assert_ok(minl2r_tx_commit(tx));
    remove_bed(&bed);
}

/* ---- More threads ---------------------------------------------------------------- */

struct waiter {
    struct bed *bed;
    sem_t begun;
    bool has_lane; /* atomic */
};

static void *wait_for_lane(void *arg)
{
    struct waiter *waiter = arg;
    struct minl2r_tx *tx;

    if (minl2r_tx_begin(waiter->bed->pool, &tx) < 0)
        return "begin";
    sem_post(&waiter->begun);
    if (snapshot_word(waiter->bed, tx, 20) < 0)
        return "snapshot";
    __atomic_store_n(&waiter->has_lane, true, __ATOMIC_RELEASE);
    return minl2r_tx_commit(tx) < 0 ? "commit" : NULL;
}

static void wait_for_all_lanes(struct bed *bed, uint32_t lanes)
{
    struct minl2r_tx *holders[LANES_MAX];
    struct waiter waiter = {.bed = bed};
    pthread_t thread;
    void *failed;

    sem_init(&waiter.begun, 0, 0);
    hold_all_lanes(bed, lanes, holders);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_lane, &waiter), 0);
    sem_wait(&waiter.begun);
    usleep(2000); /* it should wait now; if it is late, that is no failure */
    commit_something(bed, 1);
    assert_false(__atomic_load_n(&waiter.has_lane, __ATOMIC_ACQUIRE));
    commit_all(holders, lanes);
    pthread_join(thread, &failed);
    assert_null(failed);
    assert_int_equal(bed->words[160], 1);
    sem_destroy(&waiter.begun);
}

static void snapshot_waits_while_others_hold_all_lanes(void **state)
{
    (void)state;
    for_each_lane_count(wait_for_all_lanes);
}

#define THREADS ((uint64_t)16)
#define ROUNDS 200

struct worker {
    struct bed *bed;
    uint32_t index;
};

static void *increment(void *arg)
{
    struct worker *worker = arg;
    const uint64_t *word = &worker->bed->words[(size_t)8 * worker->index];

    for (uint64_t i = 0; i < ROUNDS; i++) {
        struct minl2r_tx *tx;
        uint64_t next = *word + 1;

        if (minl2r_tx_begin(worker->bed->pool, &tx) < 0 ||
            (i % 3 == 0 && minl2r_tx_snapshot(tx, word + 2, 8, NULL) < 0) ||
            minl2r_tx_write(tx, word, &next, 8) < 0 ||
            (i % 3 == 1 && minl2r_tx_write(tx, word + 3, &next, 8) < 0) ||
            minl2r_tx_commit(tx) < 0)
            return "failed";
    }
    return NULL;
}

static void more_threads_than_lanes(struct bed *bed, uint32_t lanes)
{
    struct worker workers[THREADS];
    pthread_t threads[THREADS];
    uint64_t commits = stats_of(bed->pool).commits;
    void *failed;

    (void)lanes;
    for (uint32_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){bed, i};
        assert_int_equal(pthread_create(&threads[i], NULL, increment, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
        assert_int_equal(bed->words[(size_t)8 * i], ROUNDS);
    }
    assert_int_equal(stats_of(bed->pool).commits - commits, THREADS * ROUNDS);
}

static void more_threads_than_lanes_all_come_to_an_end(void **state)
{
    (void)state;
    for_each_lane_count(more_threads_than_lanes);
}

/* ---- Generations (I4) ------------------------------------------------------------ */

static void settling_never_moves_back(void **state)
{
    struct bed bed;
    struct minl2r_stats stats = {0};

    (void)state;
    make_bed(&bed, 1);
    struct pm_phase phase = {.pm = &bed.pool->pm, .stats = &stats};
    struct lane *lane = &bed.pool->lanes[0];
    uint64_t settled = lane->settled;

    assert_ok(lane_settle(bed.pool, lane, settled + 5, &phase));
    assert_int_equal(stats.fences, 1);
    assert_ok(lane_settle(bed.pool, lane, settled + 5, &phase));
    assert_ok(lane_settle(bed.pool, lane, settled + 1, &phase));
    assert_int_equal(stats.fences, 1);
    assert_int_equal(pool_lane(bed.pool, 0)->settled, settled + 5);
    assert_int_equal(lane_next_generation(lane), settled + 6);
    remove_bed(&bed);
}

static void each_logged_commit_settles_one_generation(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, 1);
    uint64_t before = 0, after = 0;

    for (uint32_t i = 0; i < 2; i++)
        before += pool_lane(bed.pool, i)->settled;
    for (uint64_t i = 1; i <= 10; i++)
        commit_something(&bed, i);
    assert_ok(minl2r_store64(bed.pool, bed.words, 1)); /* without a log */
    for (uint32_t i = 0; i < 2; i++)
        after += pool_lane(bed.pool, i)->settled;
    assert_int_equal(after - before, 10);
    remove_bed(&bed);
}

static void commit_is_settled_when_it_returns(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, 2);
    for (uint64_t i = 1; i <= 20; i++) {
        commit_something(&bed, i);
        for (uint32_t lane = 0; lane < 3; lane++) /* I3 */
            assert_int_equal(pool_lane(bed.pool, lane)->settled,
                             bed.pool->lanes[lane].settled);
    }
    memory_pool_kill(&bed.mp);
    memory_pool_open(&bed.mp);
    assert_int_equal(bed.mp.pool.recovery.records, 0);
    assert_int_equal(bed.words[400], 20);
    remove_bed(&bed);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(thread_that_holds_all_lanes_gets_ebusy_for_one_more),
        cmocka_unit_test(thread_that_holds_all_lanes_commits_others),
        cmocka_unit_test(transaction_keeps_its_lane),
        cmocka_unit_test(snapshot_waits_while_others_hold_all_lanes),
        cmocka_unit_test(more_threads_than_lanes_all_come_to_an_end),
        cmocka_unit_test(settling_never_moves_back),
        cmocka_unit_test(each_logged_commit_settles_one_generation),
        cmocka_unit_test(commit_is_settled_when_it_returns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
