/* SPDX-License-Identifier: BSD-3-Clause */
/* subject_bed.h - a subject in a pool in plain memory, which can begin anew. */
#ifndef SUBJECT_BED_H
#define SUBJECT_BED_H

#include "tests/unit/memory_pool.h"
#include "tests/unit/subject.h"

#define BED_POOL_SIZE ((size_t)2 << 20)

struct bed {
    struct memory_pool mp;
    struct subject subject;
    struct subject at_first;
    uint8_t *image; /* of the pool, at first */
};

static inline void bed_make(void **state, const struct minl2r_options *options)
{
    struct bed *bed = calloc(1, sizeof(*bed));

    *state = bed;
    memory_pool_make(&bed->mp, BED_POOL_SIZE, options);
    subject_create(&bed->at_first, &bed->mp.pool);
    memory_pool_reopen(&bed->mp);
    bed->image = malloc(BED_POOL_SIZE);
    memcpy(bed->image, bed->mp.memory, BED_POOL_SIZE);
    bed->subject = bed->at_first;
}

static inline void bed_remove(struct bed *bed)
{
    memory_pool_kill(&bed->mp);
    memory_pool_unmap(&bed->mp);
    free(bed->image);
    free(bed);
}

static inline void bed_start_again(struct bed *bed)
{
    memory_pool_close(&bed->mp);
    memcpy(bed->mp.memory, bed->image, BED_POOL_SIZE);
    memory_pool_open(&bed->mp);
    bed->subject = bed->at_first;
}

static inline void bed_compare_after_reopen(struct bed *bed)
{
    bed->subject.blocks_free = bed->at_first.blocks_free;
    memory_pool_close(&bed->mp);
    memory_pool_check(&bed->mp);
    memory_pool_open(&bed->mp);
    subject_find(&bed->subject, &bed->mp.pool);
}

#endif
