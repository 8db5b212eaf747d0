/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: who gets one, who waits, who is refused; and generations. */
#include "tests/unit/memory_pool.h"
#include "tests/unit/random.h"
#include "tests/unit/transact.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>

#include "libminl2r/live.h"

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

/* ---- What a live lane owns ------------------------------------------------------- */

#define EXTENTS_MAX 12
struct changed {
    uint32_t count, slot_count;
    struct interval extents[EXTENTS_MAX], slots[EXTENTS_MAX];
    struct interval blocks;
};

/* Near each other, or where entries of the lists are shared. */
static struct interval random_range(struct random *random, uint64_t size_max)
{
    uint64_t low = random_below(random, 4) * LISTED_COUNT * LISTED_STEP +
                   random_below(random, 16 * LISTED_STEP);

    return (struct interval){low, low + 1 + random_below(random, size_max)};
}

/* As a slot commit does. */
static void change(struct minl2r_pool *pool, struct lane *lane, uint64_t generation,
                   struct random *random, struct changed *now)
{
    struct owned bytes = {0};
    struct interval slots = {0};

    now->count = (uint32_t)random_below(random, EXTENTS_MAX + 1);
    now->slot_count = (uint32_t)random_below(random, 3);
    for (uint32_t i = 0; i < now->count; i++) {
        now->extents[i] = random_range(random, i == 0 ? 5 * LISTED_STEP : 16);
        owned_add(&bytes, now->extents[i]);
    }
    for (uint32_t i = 0; i < now->slot_count; i++) {
        uint64_t slot = random_range(random, 1).low & ~7ull;

        now->slots[i] = (struct interval){slot, slot + 8};
        slots = interval_join(slots, now->slots[i]);
    }
    now->blocks = (struct interval){0};
    if (random_below(random, 3) == 0)
        now->blocks = random_range(random, 3 * LISTED_STEP);
    lane_set_generation(lane, generation);
    live_own(lane, slots, &bytes, now->blocks);
    if (live_lists(pool, lane, generation)) {
        for (uint32_t i = 0; i < now->count; i++)
            live_list(lane, LISTED_BYTES, now->extents[i]);
        for (uint32_t i = 0; i < now->slot_count; i++)
            live_list(lane, LISTED_SLOTS, now->slots[i]);
    }
    live_enter(pool, lane, generation);
}

static bool meets(struct interval range, const struct interval *list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (list[i].low < range.high && range.low < list[i].high)
            return true;
    return false;
}

/* What the lane changed settles it; what lies elsewhere is allowed to. */
static void expect_owned(struct minl2r_pool *pool, const struct changed *now,
                         struct random *random, uint32_t *spared)
{
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &pool->pm, .stats = &stats};
    struct settling by_bytes, by_word, by_blocks;
    struct interval range = random_range(
        random, random_below(random, 8) == 0 ? 100 * LISTED_STEP : 2 * LISTED_STEP);

    assert_ok(settling_init(&by_bytes, pool));
    assert_ok(settling_init(&by_word, pool));
    assert_ok(settling_init(&by_blocks, pool));
    live_settle_bytes(pool, NULL, range, &phase, &by_bytes);
    live_settle_word(pool, NULL, range, &phase, &by_word);
    live_settle_blocks(pool, NULL, range, &phase, &by_blocks);
    if (meets(range, now->extents, now->count))
        assert_true(by_bytes.any && by_word.any);
    if (meets(range, now->slots, now->slot_count))
        assert_true(by_word.any);
    assert_int_equal(by_blocks.any, meets(range, &now->blocks, 1));
    *spared += !by_word.any;
    settling_finish(&by_bytes);
    settling_finish(&by_word);
    settling_finish(&by_blocks);
}

static void what_a_live_lane_changed_settles_it(struct bed *bed, uint32_t lanes)
{
    struct lane *lane = &bed->pool->lanes[lanes];
    struct random random = {lanes};
    struct changed now;
    uint32_t spared = 0;

    for (uint64_t generation = 1; generation < 5000; generation++) {
        if (generation == 100) /* until then nothing is listed */
            live_wake(bed->pool, &bed->pool->lanes[0]);
        change(bed->pool, lane, generation, &random, &now);
        for (int i = 0; i < 3; i++)
            expect_owned(bed->pool, &now, &random, &spared);
    }
    assert_true(lane->listed_tag != 0 && spared > 1000);
}

static void what_a_live_lane_changed_settles_it_always(void **state)
{
    (void)state;
    for_each_lane_count(what_a_live_lane_changed_settles_it);
}

/* The only lane has nobody that looks. */
static void lone_lane_lists_nothing(void **state)
{
    struct bed bed;
    struct random random = {1};
    struct changed now;

    (void)state;
    make_bed(&bed, 2);
    for (uint64_t generation = 1; generation < 10; generation++)
        change(bed.pool, &bed.pool->lanes[1], generation, &random, &now);
    assert_null(bed.pool->lanes[1].listed);
    remove_bed(&bed);
}

/* ---- Lanes that are idle --------------------------------------------------------- */

/* As a commit in `own` does at times. */
static void look_for_idle(struct minl2r_pool *pool, const struct lane *own,
                          struct settling *settling)
{
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &pool->pm, .stats = &stats};

    live_look_for_idle(pool, own, &phase, settling);
    pm_fence(&phase);
    live_forget(pool, settling);
}

static void idle_lane_is_settled_then_falls_asleep(void **state)
{
    struct bed bed;
    struct random random = {1};
    struct changed now;
    struct settling settling;
    uint32_t spared = 0;

    (void)state;
    make_bed(&bed, 2);
    struct lane *own = &bed.pool->lanes[0], *idle = &bed.pool->lanes[2];

    assert_ok(settling_init(&settling, bed.pool));
    live_wake(bed.pool, own);
    live_stay_awake(bed.pool, idle);
    change(bed.pool, idle, 1, &random, &now);
    look_for_idle(bed.pool, own, &settling);
    assert_int_equal(live_generation_of(idle), 1);
    look_for_idle(bed.pool, own, &settling);
    assert_int_equal(live_generation_of(idle), 0);
    assert_int_equal(pool_lane(bed.pool, 2)->settled, 1);
    assert_true(live_others_possible(bed.pool, own));
    look_for_idle(bed.pool, own, &settling);
    if (spin_barrier())
        assert_false(live_others_possible(bed.pool, own));
    for (uint64_t generation = 2; generation < 100; generation++) {
        change(bed.pool, idle, generation, &random, &now);
        assert_true(live_others_possible(bed.pool, own));
        expect_owned(bed.pool, &now, &random, &spared);
        for (uint64_t i = 0; i < generation % 4; i++)
            look_for_idle(bed.pool, own, &settling);
    }
    settling_finish(&settling);
    remove_bed(&bed);
}

#define WAKES 2000
#define FAR_STORES 16
struct sleeper {
    struct minl2r_pool *pool;
    const struct lane *lane;
    struct settling settling;
    uint32_t rounds; /* atomic */
    bool stop;       /* atomic */
};

static void *put_lanes_to_sleep(void *arg)
{
    struct sleeper *sleeper = arg;

    while (!__atomic_load_n(&sleeper->stop, __ATOMIC_RELAXED)) {
        look_for_idle(sleeper->pool, sleeper->lane, &sleeper->settling);
        __atomic_add_fetch(&sleeper->rounds, 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

static void await_rounds(const struct sleeper *sleeper, uint32_t count)
{
    uint32_t begin = __atomic_load_n(&sleeper->rounds, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0;
         __atomic_load_n(&sleeper->rounds, __ATOMIC_ACQUIRE) - begin < count; i++)
        spin_wait(i);
}

/* Stores that miss the cache: what is stored next waits for them, and is seen late. */
static void store_slowly(struct random *random)
{
    static uint8_t far[(size_t)32 << 20];

    for (int i = 0; i < FAR_STORES; i++)
        far[random_below(random, sizeof(far))] = 1;
}

#define SLEEPERS 2

/* One that fell asleep as it became live would stay live. */
static void lane_does_not_fall_asleep_as_it_commits(void **state)
{
    struct bed bed;
    struct random random = {1};
    struct sleeper sleepers[SLEEPERS];
    pthread_t threads[SLEEPERS];

    (void)state;
    make_bed(&bed, 3);
    struct lane *own = &bed.pool->lanes[0], *other = &bed.pool->lanes[2];

    live_wake(bed.pool, own);
    for (int i = 0; i < SLEEPERS; i++) {
        sleepers[i] = (struct sleeper){.pool = bed.pool, .lane = &bed.pool->lanes[i]};
        assert_ok(settling_init(&sleepers[i].settling, bed.pool));
        assert_int_equal(
            pthread_create(&threads[i], NULL, put_lanes_to_sleep, &sleepers[i]), 0);
    }
    for (uint64_t generation = 1; generation <= WAKES; generation++) {
        store_slowly(&random);
        live_enter(bed.pool, other, generation);
        assert_true(live_others_possible(bed.pool, own) ||
                    live_generation_of(other) == 0);
        await_rounds(&sleepers[0], (uint32_t)(generation % 3));
        assert_true(live_others_possible(bed.pool, own) ||
                    live_generation_of(other) == 0);
    }
    for (int i = 0; i < SLEEPERS; i++) {
        __atomic_store_n(&sleepers[i].stop, true, __ATOMIC_RELAXED);
        pthread_join(threads[i], NULL);
        settling_finish(&sleepers[i].settling);
    }
    other->generation = WAKES;
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
        cmocka_unit_test(what_a_live_lane_changed_settles_it_always),
        cmocka_unit_test(lone_lane_lists_nothing),
        cmocka_unit_test(idle_lane_is_settled_then_falls_asleep),
        cmocka_unit_test(lane_does_not_fall_asleep_as_it_commits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
