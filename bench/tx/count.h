/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * count.h - fences and lines of PMDK's libraries, which do not count them. A second run of
 * this program does, in which counted_libpmem.c takes libpmem's place: counting costs
 * time, so the run that measures has nothing of it.
 */
#ifndef BENCH_TX_COUNT_H
#define BENCH_TX_COUNT_H

#include "bench/tx/tx.h"

/* One system's share of what all systems of the process ask of libpmem. */
struct tx_tally {
    struct tx_counters before; /* this batch */
    struct tx_counters sum;    /* of all batches */
};

/* Around each batch. The sum is NAN in the run that measures. */
void tally_begin(struct tx_tally *tally);
void tally_end(struct tx_tally *tally);

/*
 * Starts the second run and fills in the counters that `results` does not have. `case_name`
 * as in struct run_options.
 */
int count_in_second_run(const char *case_name, const char *directory,
                        struct table *results);

#endif
