/* SPDX-License-Identifier: BSD-3-Clause */
/* cli_unfinished - leaves a pool as a killed process does, in the middle of a
 * transaction. */
#include <err.h>
#include <unistd.h>

#include "include/minl2r.h"

static void must(int result)
{
    if (result < 0)
        errx(1, "%s", minl2r_errormsg());
}

int main(int argc, char **argv)
{
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;
    uint64_t *word;

    if (argc != 2)
        errx(2, "usage: cli_unfinished POOL");
    must(minl2r_pool_open(argv[1], NULL, NULL, &pool));
    const uint64_t *root = minl2r_root(pool, 64);

    if (!root)
        errx(1, "%s", minl2r_errormsg());
    must(minl2r_store64(pool, root, 0x1122334455667788));
    must(minl2r_tx_begin(pool, &tx));
    must(minl2r_tx_snapshot(tx, root, sizeof(*root), &word));
    *word = 2;
    _exit(0); /* nothing is closed, nothing is ended */
}
