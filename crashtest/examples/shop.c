/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * shop.c - transactions of libminl2r, tested by crashtest.
 *
 *     crashtest-cc -o shop shop.c -lminl2r_traced -lpmem && ./shop            passes
 *     crashtest-cc -DBUG -o shop shop.c -lminl2r_traced -lpmem && ./shop      finds a
 * bug
 *
 * What is sold is no longer in stock: two fields that change together. The bug is to
 * have only the first of them in the transaction.
 */
#include <crashtest.h>
#include <minl2r.h>
#include <stdint.h>

#define LAYOUT "shop"
#define STOCK 10

struct shop {
    uint64_t in_stock;
    uint64_t unused[7]; /* the fields share no line */
    uint64_t sold;
};

static struct minl2r_pool *pool;

static int shop_sell(const struct shop *shop)
{
    void *writable;
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(pool, &tx);

    if (result < 0)
        return result;
#ifdef BUG
    result = minl2r_tx_snapshot(tx, shop, sizeof(shop->in_stock), &writable);
#else
    result = minl2r_tx_snapshot(tx, shop, sizeof(*shop), &writable);
#endif
    if (result < 0) {
        minl2r_tx_abort(tx);
        return result;
    }
    struct shop *change = writable;

    change->in_stock--;
    change->sold++;
    return minl2r_tx_commit(tx);
}

/* ---- Its test -------------------------------------------------------------------- */

static int open_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    if (minl2r_pool_open(pm->path, LAYOUT, NULL, &pool) < 0)
        return crashtest_fail("cannot open the pool: %s", minl2r_errormsg());
    return 0;
}

static int close_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)pm;
    (void)arg;
    return minl2r_pool_close(pool);
}

/* The file that is PM can be made as if it did not exist yet. */
static int init(const struct crashtest_pm *pm, void *arg)
{
    const uint64_t stock = STOCK;
    const struct shop *shop;

    (void)arg;
    if (minl2r_pool_create(pm->path, LAYOUT, pm->size, NULL, &pool) < 0)
        return crashtest_fail("cannot make a pool: %s", minl2r_errormsg());
    shop = minl2r_root(pool, sizeof(*shop));
    return shop ? minl2r_store64(pool, &shop->in_stock, stock) : -1;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    const struct shop *shop = minl2r_root(pool, sizeof(*shop));

    (void)pm;
    (void)arg;
    for (int i = 0; i < 2; i++) {
        crashtest_begin("sell %d", i);
        int result = shop_sell(shop);

        crashtest_end();
        if (result < 0)
            return crashtest_fail("no transaction: %s", minl2r_errormsg());
    }
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct shop *shop = minl2r_root(pool, sizeof(*shop));

    (void)pm;
    (void)arg;
    if (shop->in_stock + shop->sold != STOCK)
        return crashtest_fail("%llu in stock and %llu sold, of %d",
                              (unsigned long long)shop->in_stock,
                              (unsigned long long)shop->sold, STOCK);
    if (shop->sold != crash->returned &&
        !(crash->running && shop->sold == crash->returned + 1))
        return crashtest_fail("%llu sold, after %zu sales",
                              (unsigned long long)shop->sold, crash->returned);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "shop",
        .pm_size = MINL2R_POOL_SIZE_MIN,
        .init = init,
        .run = run,
        .recover = open_pool,
        .check = check,
        .close = close_pool,
    };

    return crashtest_main(argc, argv, &program);
}
