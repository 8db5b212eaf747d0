/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sequence.h - the operations of a workload, one after the other: where, and which
 * bytes.
 */
#ifndef BENCH_TX_SEQUENCE_H
#define BENCH_TX_SEQUENCE_H

#include <stdint.h>

#include "bench/tx/tx.h"

struct sequence {
    uint64_t step;       /* positions used so far */
    uint32_t log2_count; /* of positions; one pass uses each once */
    uint32_t stride;     /* bytes between positions */
    uint32_t shift;      /* bytes from a position to its range */
    struct tx_change change;
    uint8_t content[BLOCK_SIZE];
};

/* Bytes that the workload's positions cover. */
uint64_t sequence_span(const struct workload *workload);

/* `sequence` must not be moved afterwards. */
void sequence_init(struct sequence *sequence, const struct workload *workload);

/* The next operation; valid until the next call. */
const struct tx_change *sequence_next(struct sequence *sequence);

#endif
