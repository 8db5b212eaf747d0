/* SPDX-License-Identifier: BSD-3-Clause */
/* workload.h - where the writes and reads of bench-fs go, and what they bring. */
#ifndef BENCH_FS_WORKLOAD_H
#define BENCH_FS_WORKLOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/schemes/scheme.h"

#define RECORD_SIZE_MAX ((uint64_t)1 << 20)

/* As many generations of content there are: then the first comes again. */
#define GENERATIONS ((uint64_t)256)

struct workload {
    const char *name;
    bool is_random;    /* order of the records; else one after the other */
    bool is_unaligned; /* to blocks and lines */
    bool appends;      /* to a file that is empty at first */
    bool reads;        /* seven of ten calls */
    bool is_unchanged; /* brings the bytes that are there */
    bool is_core;      /* measured on slower media, too */
};
extern const struct workload workloads[];
extern const size_t workload_count;
const struct workload *workload_find(const char *name); /* or NULL */

/*
 * The calls of a batch. Each file has one, which goes on from batch to batch, so that
 * all bytes that a call brings are others than those that are there.
 */
struct sequence {
    _Alignas(APART) const struct workload *workload;
    uint64_t record_size;
    uint64_t record_count; /* in the file: a power of two */
    uint64_t file_size;
    uint64_t step;       /* of all batches */
    uint64_t in_batch;   /* of this one */
    uint64_t generation; /* of the file's bytes */
    uint64_t oldest;     /* of them, as far as is known */
};

struct call {
    uint64_t offset;
    const uint8_t *src; /* NULL: read */
};

/* What is written; of this process. 0 or -ENOMEM. */
int content_make(void);

/* Another workload or size; the file goes on. */
void sequence_set(struct sequence *sequence, const struct workload *workload,
                  uint64_t record_size);
/* At most one pass of the file follows. */
void sequence_begin_batch(struct sequence *sequence);
struct call sequence_next(struct sequence *sequence);

#define UNALIGNED_SHIFT                                                                \
    ((uint64_t)1001) /* crosses lines, and blocks where it is large */

/* The calls of one batch that are not more than one pass. */
uint64_t sequence_calls_max(const struct sequence *sequence);

/* What `size` bytes at `offset` are in this generation. */
const uint8_t *content_at(uint64_t offset, uint64_t generation);

#endif
