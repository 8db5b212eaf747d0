/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool_threads.c - threads with transactions of libminl2r of their own, at once: each
 * moves something from one field to another.
 */
#include <crashtest.h>
#include <minl2r.h>
#include <pthread.h>
#include <stdint.h>

#define LAYOUT "threads"
#define THREADS 2
#define MOVES 2
#define START 10

/* What belongs together shares no line. */
struct account {
    uint64_t here;
    uint64_t unused[7];
    uint64_t there;
    uint64_t unused_too[7];
};

static struct minl2r_pool *pool;
static const struct account *accounts;

static int move(const struct account *account, uint64_t amount)
{
    const uint64_t here = account->here - amount, there = account->there + amount;
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(pool, &tx);

    if (result < 0)
        return result;
    result = minl2r_tx_write(tx, &account->here, &here, sizeof(here));
    if (result == 0)
        result = minl2r_tx_write(tx, &account->there, &there, sizeof(there));
    if (result == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return result;
}

static void *move_some(void *arg)
{
    const long number = (long)arg;

    for (int i = 0; i < MOVES; i++) {
        crashtest_begin("move %d of %ld", i, number);
        int result = move(&accounts[number], 1);

        crashtest_end();
        if (result < 0)
            return arg ? arg : &pool;
    }
    return NULL;
}

static int open_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    if (minl2r_pool_open(pm->path, LAYOUT, NULL, &pool) < 0)
        return crashtest_fail("cannot open the pool: %s", minl2r_errormsg());
    accounts = minl2r_root(pool, THREADS * sizeof(*accounts));
    return accounts ? 0 : -1;
}

static int close_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)pm;
    (void)arg;
    return minl2r_pool_close(pool);
}

static int init(const struct crashtest_pm *pm, void *arg)
{
    const uint64_t start = START;

    (void)arg;
    if (minl2r_pool_create(pm->path, LAYOUT, pm->size, NULL, &pool) < 0)
        return crashtest_fail("cannot make a pool: %s", minl2r_errormsg());
    accounts = minl2r_root(pool, THREADS * sizeof(*accounts));
    for (int i = 0; accounts && i < THREADS; i++)
        if (minl2r_store64(pool, &accounts[i].here, start) < 0)
            return -1;
    return accounts ? 0 : -1;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    pthread_t threads[THREADS];
    void *failed = NULL;

    (void)pm;
    (void)arg;
    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, move_some, (void *)i) != 0)
            return -1;
    for (int i = 0; i < THREADS && !failed; i++)
        if (pthread_join(threads[i], &failed) != 0)
            return -1;
    return failed ? crashtest_fail("a transaction fails: %s", minl2r_errormsg()) : 0;
}

/* Of each thread: as many moves as had returned, or the one more that was running. */
static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    (void)pm;
    (void)arg;
    for (int i = 0; i < THREADS; i++) {
        uint64_t least = 0, most = 0;

        for (int j = 0; j < MOVES; j++) {
            least += crashtest_progress_of(crash, "move %d of %d", j, i) ==
                     CRASHTEST_RETURNED;
            most += crashtest_progress_of(crash, "move %d of %d", j, i) !=
                    CRASHTEST_NOT_BEGUN;
        }
        if (accounts[i].here + accounts[i].there != START)
            return crashtest_fail("account %d has lost something", i);
        if (accounts[i].there < least || accounts[i].there > most)
            return crashtest_fail("account %d: %llu moved, of %llu to %llu", i,
                                  (unsigned long long)accounts[i].there,
                                  (unsigned long long)least, (unsigned long long)most);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "pool-threads",
        .pm_size = MINL2R_POOL_SIZE_MIN,
        .init = init,
        .run = run,
        .recover = open_pool,
        .check = check,
        .close = close_pool,
    };

    return crashtest_main(argc, argv, &program);
}
