/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/tx/sequence.h"

#include <string.h>

#define LINE 64u

/*
 * Where in its line an 8-byte range lies: at no multiple of 8, because one aligned word
 * needs no log, and `ranges` is about those that do. OP_STORE64 is about the others.
 */
#define UNALIGNED_SHIFT 4u

uint64_t sequence_span(const struct workload *workload)
{
    if (!workload->pattern)
        return 0;
    return strcmp(workload->pattern, "hot") == 0 ? HOT_SIZE : REGION_SIZE;
}

static uint32_t changed_size(const struct workload *workload)
{
    if (workload->op != OP_BLOCK)
        return workload->size;
    return (workload->size * workload->changed_pct + 50) / 100;
}

void sequence_init(struct sequence *sequence, const struct workload *workload)
{
    uint64_t span = sequence_span(workload);

    *sequence = (struct sequence){
        .stride = workload->size > LINE ? workload->size : LINE,
        .shift =
            workload->size == 8 && workload->op != OP_STORE64 ? UNALIGNED_SHIFT : 0,
        .change = {.src = sequence->content,
                   .size = changed_size(workload),
                   .ranges = workload->ranges},
    };
    while ((uint64_t)sequence->stride << (sequence->log2_count + 1) <= span)
        sequence->log2_count++;
}

/* A scattered order: maps [0, 2^log2_count) onto itself, one to one. */
static uint64_t scatter(uint64_t step, uint32_t log2_count)
{
    uint64_t mask = ((uint64_t)1 << log2_count) - 1;
    uint64_t x = step * 0x9e3779b97f4a7c15u & mask;

    x ^= x >> (log2_count / 2 + 1);
    return x * 0xd1342543de82ef95u & mask;
}

static uint64_t next_offset(struct sequence *sequence)
{
    return scatter(sequence->step++, sequence->log2_count) * sequence->stride +
           sequence->shift;
}

/* Never the byte of the pass before, nor the zero that a reset leaves. */
static void fill_content(struct sequence *sequence)
{
    uint64_t pass = sequence->step >> sequence->log2_count;

    memset(sequence->content, (int)(1 + pass % 255), sequence->change.size);
}

const struct tx_change *sequence_next(struct sequence *sequence)
{
    uint64_t in_pass = sequence->step & (((uint64_t)1 << sequence->log2_count) - 1);
    uint32_t count = sequence->change.ranges > 0 ? sequence->change.ranges : 1;

    if (in_pass == 0)
        fill_content(sequence);
    for (uint32_t i = 0; i < count; i++)
        sequence->change.offset[i] = next_offset(sequence);
    return &sequence->change;
}
