/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/fs/workload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE ((uint64_t)64)

const struct workload workloads[] = {
    {.name = "overwrite", .is_core = true},
    {.name = "overwrite random", .is_random = true, .is_core = true},
    {.name = "overwrite unaligned", .is_unaligned = true},
    {.name = "overwrite random unaligned", .is_random = true, .is_unaligned = true},
    {.name = "overwrite unchanged", .is_unchanged = true},
    {.name = "append", .appends = true, .is_core = true},
    {.name = "append unaligned", .appends = true, .is_unaligned = true},
    {.name = "mixed", .reads = true},
    {.name = "mixed random", .reads = true, .is_random = true},
    {.name = "mixed unaligned", .reads = true, .is_unaligned = true},
    {.name = "mixed random unaligned",
     .reads = true,
     .is_random = true,
     .is_unaligned = true},
};
const size_t workload_count = sizeof(workloads) / sizeof(*workloads);

const struct workload *workload_find(const char *name)
{
    for (size_t i = 0; i < workload_count; i++)
        if (strcmp(workloads[i].name, name) == 0)
            return &workloads[i];
    return NULL;
}

/* ---- Content --------------------------------------------------------------------- */

/*
 * Byte x of a file in generation g is pattern(x % 64) + x / 64 + g, modulo 256: all
 * bytes differ between two generations. So a record is a piece of one long buffer.
 */
static uint8_t *content;

int content_make(void)
{
    uint64_t size = RECORD_SIZE_MAX + (GENERATIONS + 1) * LINE;

    if (content)
        return 0;
    content = aligned_alloc(LINE, size);
    if (!content)
        return -ENOMEM;
    for (uint64_t i = 0; i < size; i++)
        content[i] = (uint8_t)(i % LINE * 37 + i / LINE);
    return 0;
}

const uint8_t *content_at(uint64_t offset, uint64_t generation)
{
    uint64_t line = (offset / LINE + generation) % GENERATIONS;

    return content + line * LINE + offset % LINE;
}

/* ---- Sequences ------------------------------------------------------------------- */

static uint64_t power_above(uint64_t number)
{
    uint64_t power = 1;

    while (power < number)
        power *= 2;
    return power;
}

void sequence_set(struct sequence *sequence, const struct workload *workload,
                  uint64_t record_size)
{
    sequence->workload = workload;
    sequence->record_size = record_size;
    sequence->record_count = sequence->file_size / power_above(record_size);
    sequence->step = 0;
}

void sequence_begin_batch(struct sequence *sequence)
{
    sequence->in_batch = 0;
    if (!sequence->workload->is_unchanged)
        sequence->generation++;
}

/* A record is left out at the end, where an unaligned one has no room. */
uint64_t sequence_calls_max(const struct sequence *sequence)
{
    return sequence->record_count - (sequence->workload->is_unaligned ? 1 : 0);
}

/* A scattered order: a permutation of [0, count), a power of two. */
static uint64_t scatter(uint64_t step, uint64_t count)
{
    uint64_t x = step * 0x9e3779b97f4a7c15u % count;

    x ^= x >> (__builtin_ctzll(count) / 2 + 1);
    return x * 0xd1342543de82ef95u % count;
}

/* Of those that are in no place for an unaligned one the next is taken instead: no record
 * comes twice in a batch. */
static uint64_t next_record(struct sequence *sequence)
{
    uint64_t calls = sequence_calls_max(sequence);
    uint64_t record;

    if (sequence->workload->is_unchanged)
        return sequence->in_batch % calls;
    if (!sequence->workload->is_random)
        return sequence->step++ % calls;
    do
        record = scatter(sequence->step++, sequence->record_count);
    while (record >= calls);
    return record;
}

struct call sequence_next(struct sequence *sequence)
{
    const struct workload *workload = sequence->workload;
    uint64_t shift = workload->is_unaligned ? UNALIGNED_SHIFT : 0;
    uint64_t stride =
        workload->appends ? sequence->record_size : power_above(sequence->record_size);
    uint64_t record = workload->appends ? sequence->in_batch : next_record(sequence);
    bool reads = workload->reads && sequence->in_batch * 7 % 10 < 7;
    uint64_t offset = record * stride + shift;

    sequence->in_batch++;
    return (struct call){
        .offset = offset,
        .src = reads ? NULL : content_at(offset, sequence->generation),
    };
}
