/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * subject.h - a pool with something in it, and a list of calls, one of each kind, that
 * change it: for tests that let calls fail. The subject knows what must be seen,
 * however many of the calls have succeeded.
 */
#ifndef SUBJECT_H
#define SUBJECT_H

#include "tests/unit/fixture.h"

#define SUBJECT_BLOCK ((size_t)4096)
#define SUBJECT_DATA 52  /* blocks in a row */
#define SUBJECT_SLOTS 6  /* slots that name blocks */
#define SUBJECT_HOLES 4  /* slots that do not */
#define SUBJECT_EXTRA 12 /* blocks in a row, to be freed */
#define SUBJECT_ROOT_SIZE ((SUBJECT_SLOTS + SUBJECT_HOLES) * sizeof(uint64_t))
#define SUBJECT_CONTENT (SUBJECT_DATA + SUBJECT_SLOTS + SUBJECT_HOLES)

struct subject_state {
    uint8_t content[SUBJECT_CONTENT][SUBJECT_BLOCK];
    bool filled[SUBJECT_HOLES];
    uint64_t blocks_used; /* more than at first */
};

struct subject {
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;
    const uint64_t *slots;
    uint64_t data, extra, own;
    uint64_t blocks_free;           /* at first */
    struct subject_state committed; /* what the pool holds */
    struct subject_state seen;      /* what the transaction makes of it */
};

/* Makes the subject in a new pool. */
void subject_create(struct subject *subject, struct minl2r_pool *pool);

/* Finds it again in the pool opened anew. */
void subject_find(struct subject *subject, struct minl2r_pool *pool);

/* One call each; 0, or an error: then what is to be seen stays as it was. */
typedef int subject_call_fn(struct subject *subject);
struct subject_call {
    const char *name;
    subject_call_fn *call;
};
extern const struct subject_call subject_calls[];
extern const int subject_call_count;

void subject_begin(struct subject *subject);
void subject_commit(struct subject *subject);
void subject_abort(struct subject *subject);

/* Compares by minl2r_tx_read(). */
void subject_compare_seen(const struct subject *subject);

/* Compares the pool, free blocks included; no transaction may be open. */
void subject_compare(const struct subject *subject);

#endif
