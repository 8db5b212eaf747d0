/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * caller.c - what libminl2r stores is reported with the line of the program that called
 * it, however deep in the library it is stored. Two transactions do what had to be one.
 */
#include <crashtest.h>
#include <minl2r.h>
#include <stdint.h>

#define LAYOUT "caller"

struct sums {
    uint64_t left;
    uint64_t unused[7]; /* they share no line */
    uint64_t right;
};

static struct minl2r_pool *pool;

static int set(const uint64_t *sum, uint64_t value)
{
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(pool, &tx);

    if (result < 0)
        return result;
    result = minl2r_tx_write(tx, sum, &value, sizeof(value));
    if (result < 0) {
        minl2r_tx_abort(tx);
        return result;
    }
    return minl2r_tx_commit(tx);
}

/* ---- Its test -------------------------------------------------------------------- */

static int open_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    return minl2r_pool_open(pm->path, LAYOUT, NULL, &pool);
}

static int close_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)pm;
    (void)arg;
    return minl2r_pool_close(pool);
}

static int init(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    if (minl2r_pool_create(pm->path, LAYOUT, pm->size, NULL, &pool) < 0)
        return crashtest_fail("cannot make a pool: %s", minl2r_errormsg());
    return minl2r_root(pool, sizeof(struct sums)) ? 0 : -1;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    const struct sums *sums = minl2r_root(pool, sizeof(*sums));

    (void)pm;
    (void)arg;
    crashtest_begin("add");
    int result = set(&sums->left, 1);

    if (result == 0)
        result = set(&sums->right, 1);
    crashtest_end();
    return result;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct sums *sums = minl2r_root(pool, sizeof(*sums));

    (void)pm;
    (void)crash;
    (void)arg;
    return sums->left == sums->right ? 0 : crashtest_fail("they differ");
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "caller",
        .pm_size = MINL2R_POOL_SIZE_MIN,
        .init = init,
        .run = run,
        .recover = open_pool,
        .check = check,
        .close = close_pool,
    };

    return crashtest_main(argc, argv, &program);
}
