/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counter - counts how often it was run, in persistent memory: the smallest useful
 * program.
 *
 *     minl2r create --size 1M --layout counter /dev/shm/counter.pool
 *     counter /dev/shm/counter.pool
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include <minl2r.h>

struct counter {
    uint64_t hits;
    uint64_t sum; /* 1 + 2 + ... + hits: wrong if only one of the two was changed */
};

static int count(struct minl2r_pool *pool, const struct counter *counter)
{
    struct minl2r_tx *tx;
    struct counter new = {counter->hits + 1, counter->sum + counter->hits + 1};
    int rc = minl2r_tx_begin(pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_write(tx, &counter->hits, &new.hits, sizeof(new.hits));
    if (rc == 0)
        rc = minl2r_tx_write(tx, &counter->sum, &new.sum, sizeof(new.sum));
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    return minl2r_tx_commit(tx);
}

static long parse_times(const char *text)
{
    char *end;
    long times = strtol(text, &end, 10);

    if (end == text || *end != '\0' || times < 1)
        errx(2, "not a number of times: %s", text);
    return times;
}

int main(int argc, char **argv)
{
    struct minl2r_pool *pool;

    if (argc < 2 || argc > 3)
        errx(2, "usage: counter POOL [TIMES]");
    long times = argc > 2 ? parse_times(argv[2]) : 1;

    if (minl2r_pool_open(argv[1], "counter", NULL, &pool) < 0)
        errx(1, "%s", minl2r_errormsg());

    const struct counter *counter = minl2r_root(pool, sizeof(*counter));
    if (!counter)
        errx(1, "%s", minl2r_errormsg());
    if (counter->sum != counter->hits * (counter->hits + 1) / 2)
        errx(1, "hits and sum do not match");

    for (; times > 0; times--) {
        if (count(pool, counter) < 0)
            errx(1, "%s", minl2r_errormsg());
        printf("%" PRIu64 "\n", counter->hits);
        fflush(stdout);
    }
    minl2r_pool_close(pool);
    return 0;
}
