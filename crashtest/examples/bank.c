/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bank.c - money moved by transactions of libpmemobj, tested by crashtest.
 *
 *     crashtest-cc -o bank bank.c -lpmemobj -lpmem && ./bank            passes
 *     crashtest-cc -DBUG -o bank bank.c -lpmemobj -lpmem && ./bank      finds a planted
 * bug
 *
 * What libpmemobj itself stores is not seen, as it is not compiled by crashtest-cc: its
 * stores are known from one flush to the next, and the coverage is "sampled".
 */
#include <crashtest.h>
#include <libpmemobj.h>
#include <stdint.h>

#define LAYOUT "bank"
#define MONEY 100

struct bank {
    uint64_t alice;
    uint64_t unused[7]; /* accounts share no line */
    uint64_t bob;
};

static PMEMobjpool *pool;

static struct bank *bank_of(PMEMobjpool *of)
{
    return pmemobj_direct(pmemobj_root(of, sizeof(struct bank)));
}

static int bank_move(struct bank *bank, uint64_t amount)
{
    volatile int result = -1;

    TX_BEGIN(pool)
    {
        pmemobj_tx_add_range_direct(&bank->alice, sizeof(bank->alice));
        bank->alice -= amount;
#ifndef BUG
        pmemobj_tx_add_range_direct(&bank->bob, sizeof(bank->bob));
#endif
        bank->bob += amount;
    }
    TX_ONCOMMIT
    {
        result = 0;
    }
    TX_END
    return result;
}

/* ---- Its test -------------------------------------------------------------------- */

static int init(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    pool = pmemobj_create(pm->path, LAYOUT, 0, 0600);
    if (!pool)
        return crashtest_fail("cannot create the pool: %s", pmemobj_errormsg());
    struct bank *bank = bank_of(pool);

    bank->alice = MONEY;
    pmemobj_persist(pool, bank, sizeof(*bank));
    return 0;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    (void)pm;
    (void)arg;
    for (int i = 0; i < 2; i++) {
        crashtest_begin("move %d", i);
        int result = bank_move(bank_of(pool), 10);

        crashtest_end();
        if (result != 0)
            return crashtest_fail("no transaction: %s", pmemobj_errormsg());
    }
    return 0;
}

/* Opening a pool undoes what was not committed. */
static int recover(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    pool = pmemobj_open(pm->path, LAYOUT);
    return pool ? 0 : crashtest_fail("cannot open the pool: %s", pmemobj_errormsg());
}

static int close_pool(const struct crashtest_pm *pm, void *arg)
{
    (void)pm;
    (void)arg;
    pmemobj_close(pool);
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct bank *bank = bank_of(pool);
    uint64_t moved = bank->bob;

    (void)pm;
    (void)arg;
    if (bank->alice + bank->bob != MONEY)
        return crashtest_fail("alice has %llu and bob has %llu, not %d together",
                              (unsigned long long)bank->alice,
                              (unsigned long long)bank->bob, MONEY);
    if (moved != crash->returned * 10 &&
        !(crash->running && moved == (crash->returned + 1) * 10))
        return crashtest_fail("%llu was moved, after %zu moves",
                              (unsigned long long)moved, crash->returned);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "bank",
        .pm_size = PMEMOBJ_MIN_POOL,
        .init = init,
        .run = run,
        .recover = recover,
        .check = check,
        .close = close_pool,
    };

    return crashtest_main(argc, argv, &program);
}
