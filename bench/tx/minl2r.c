/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * minl2r: by its public API only.
 */
#include "bench/tx/tx.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/scratch.h"
#include "bench/tx/image.h"
#include "include/minl2r.h"

#define LAYOUT "bench"
#define SLOT_COUNT (REGION_SIZE / BLOCK_SIZE)
#define FREE_SIZE ((uint64_t)60 << 20) /* where swapped blocks come from */
#define POOL_SIZE (2 * REGION_SIZE + FREE_SIZE)

/* ---- Transactions ---------------------------------------------------------------- */

struct minl2r_state {
    struct minl2r_pool *pool;
    uint8_t *region;
    const uint64_t *slots; /* [SLOT_COUNT] */
};

/*
 * The region is written directly too (after a snapshot): `writable` is how the library
 * hands out memory for that.
 */
static int alloc_region(struct minl2r_state *state)
{
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(state->pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_alloc(tx, REGION_SIZE / BLOCK_SIZE, NULL, &state->region);
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    memset(state->region, 0, REGION_SIZE);
    return minl2r_tx_commit(tx);
}

/* Reads a byte of each page, so that the mapping has them all. */
static void touch_pages(const struct minl2r_pool *pool, uint64_t size)
{
    for (uint64_t offset = 0; offset < size; offset += BLOCK_SIZE) {
        const volatile uint8_t *page = minl2r_at(pool, offset);

        if (page)
            (void)*page;
    }
}

static int fill_pool(struct minl2r_state *state)
{
    struct minl2r_info info;
    int rc = minl2r_pool_info(state->pool, &info);

    if (rc < 0)
        return rc;
    if (info.medium == MINL2R_FILE)
        return -ENOTSUP;
    state->slots = minl2r_root(state->pool, SLOT_COUNT * sizeof(uint64_t));
    if (!state->slots)
        return -errno;
    touch_pages(state->pool, POOL_SIZE);
    return alloc_region(state);
}

static int open_region(struct minl2r_state *state, enum minl2r_commit commit)
{
    const struct minl2r_options options = {.commit = commit};
    const char *path = scratch_path("minl2r");
    int rc = minl2r_pool_create(path, LAYOUT, POOL_SIZE, &options, &state->pool);

    scratch_unlink(path);
    if (rc < 0)
        return rc;
    rc = fill_pool(state);
    if (rc < 0)
        minl2r_pool_close(state->pool);
    return rc;
}

static int start_with(enum minl2r_commit commit, void **state)
{
    struct minl2r_state *minl2r = calloc(1, sizeof(*minl2r));
    int rc = minl2r ? open_region(minl2r, commit) : -ENOMEM;

    if (rc < 0)
        free(minl2r);
    *state = minl2r;
    return rc;
}

static int start(void **state)
{
    return start_with(MINL2R_COMMIT_SETTLE, state);
}

static int start_prove(void **state)
{
    return start_with(MINL2R_COMMIT_PROVE, state);
}

static void finish(void *state)
{
    struct minl2r_state *minl2r = state;

    minl2r_pool_close(minl2r->pool);
    free(minl2r);
}

void minl2r_describe(void *state, char *text, size_t size)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_info info;

    if (minl2r_pool_info(minl2r->pool, &info) == 0)
        snprintf(text, size, "%s (%s), %s", minl2r_medium_name(info.medium),
                 info.medium_reason, info.flush_method);
}

static int end(struct minl2r_tx *tx, int rc)
{
    if (rc == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return rc;
}

static int run_block(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    const uint64_t *slot = &minl2r->slots[change->offset[0] / BLOCK_SIZE];
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    if (rc < 0)
        return rc;
    return end(tx, minl2r_tx_write_block(tx, slot, 0, change->src, change->size));
}

static int zero_blocks(struct minl2r_state *minl2r, uint64_t size)
{
    static const uint8_t zeros[BLOCK_SIZE];
    struct tx_change change = {.src = zeros, .size = BLOCK_SIZE, .ranges = 1};
    int rc = 0;

    for (uint64_t offset = 0; offset < size && rc == 0; offset += BLOCK_SIZE) {
        change.offset[0] = offset;
        rc = run_block(minl2r, &change);
    }
    return rc;
}

static int zero_region_block(struct minl2r_state *minl2r, uint64_t offset)
{
    static const uint8_t zeros[BLOCK_SIZE];
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    if (rc < 0)
        return rc;
    return end(tx,
               minl2r_tx_write_fresh(tx, minl2r->region + offset, zeros, BLOCK_SIZE));
}

static int reset(void *state, enum tx_op op, uint64_t size)
{
    int rc = 0;

    if (op == OP_BLOCK)
        return zero_blocks(state, size);
    for (uint64_t offset = 0; offset < size && rc == 0; offset += BLOCK_SIZE)
        rc = zero_region_block(state, offset);
    return rc;
}

static int run_read(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_tx *tx;
    uint64_t word;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    if (rc < 0)
        return rc;
    return end(tx, minl2r_tx_read(tx, &word, minl2r->region + change->offset[0],
                                  sizeof(word)));
}

static int write_ranges(const struct minl2r_state *minl2r, struct minl2r_tx *tx,
                        const struct tx_change *change)
{
    int rc = 0;

    for (uint32_t i = 0; i < change->ranges && rc == 0; i++)
        rc = minl2r_tx_write(tx, minl2r->region + change->offset[i], change->src,
                             change->size);
    return rc;
}

static int run_ranges(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    return rc < 0 ? rc : end(tx, write_ranges(minl2r, tx, change));
}

static int snapshot_ranges(const struct minl2r_state *minl2r, struct minl2r_tx *tx,
                           const struct tx_change *change)
{
    struct minl2r_range ranges[RANGES_MAX];
    void *writable[RANGES_MAX];

    for (uint32_t i = 0; i < change->ranges; i++) {
        ranges[i].pm = minl2r->region + change->offset[i];
        ranges[i].size = change->size;
    }
    int rc = minl2r_tx_snapshotv(tx, ranges, change->ranges, writable);

    for (uint32_t i = 0; i < change->ranges && rc == 0; i++)
        memcpy(writable[i], change->src, change->size);
    return rc;
}

static int snapshot_one(const struct minl2r_state *minl2r, struct minl2r_tx *tx,
                        const struct tx_change *change)
{
    uint8_t *writable;
    int rc = minl2r_tx_snapshot(tx, minl2r->region + change->offset[0], change->size,
                                &writable);

    if (rc == 0)
        memcpy(writable, change->src, change->size);
    return rc;
}

static int run_snapshot(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    if (rc < 0)
        return rc;
    return end(tx, change->ranges == 1 ? snapshot_one(minl2r, tx, change)
                                       : snapshot_ranges(minl2r, tx, change));
}

static int run_store64(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    const void *word = minl2r->region + change->offset[0];
    uint64_t value;

    memcpy(&value, change->src, sizeof(value));
    return minl2r_store64(minl2r->pool, word, value);
}

static int run_abort_queued(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    if (rc < 0)
        return rc;
    rc = write_ranges(minl2r, tx, change);
    int abort_rc = minl2r_tx_abort(tx);

    return rc < 0 ? rc : abort_rc;
}

static int run_abort_snapshot(void *state, const struct tx_change *change)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(minl2r->pool, &tx);

    if (rc < 0)
        return rc;
    rc = snapshot_one(minl2r, tx, change);
    int abort_rc = minl2r_tx_abort(tx);

    return rc < 0 ? rc : abort_rc;
}

static void count(void *state, struct tx_counters *sum)
{
    const struct minl2r_state *minl2r = state;
    struct minl2r_stats stats = {0};

    minl2r_stats_get(minl2r->pool, &stats);
    *sum = (struct tx_counters){
        .fences = (double)stats.fences,
        .lines_flushed = (double)stats.lines_flushed,
        .lines_streamed = (double)stats.lines_streamed,
        .log_payload_bytes = (double)stats.log_payload_bytes,
        .log_bytes = (double)stats.log_bytes,
    };
}

const struct tx_system minl2r_system = {
    .name = "minl2r",
    .start = start,
    .finish = finish,
    .reset = reset,
    .run = {[OP_READ] = run_read,
            [OP_RANGES] = run_ranges,
            [OP_BLOCK] = run_block,
            [OP_SNAPSHOT] = run_snapshot,
            [OP_STORE64] = run_store64,
            [OP_ABORT_QUEUED] = run_abort_queued,
            [OP_ABORT_SNAPSHOT] = run_abort_snapshot},
    .count = count,
    .message = minl2r_errormsg,
};

const struct tx_system minl2r_prove_system = {
    .name = "minl2r",
    .start = start_prove,
    .finish = finish,
    .reset = reset,
    .run = {[OP_PROVE] = run_ranges},
    .count = count,
    .message = minl2r_errormsg,
};

/* ---- Open ------------------------------------------------------------------------ */

static int start_open(void **state)
{
    struct minl2r_pool *pool;
    int rc = minl2r_pool_create(scratch_path("minl2r-open"), LAYOUT, OPEN_POOL_SIZE,
                                NULL, &pool);

    *state = NULL;
    return rc < 0 ? rc : minl2r_pool_close(pool);
}

static void finish_open(void *state)
{
    (void)state;
    scratch_unlink(scratch_path("minl2r-open"));
}

static int run_open(void *state, const struct tx_change *change)
{
    struct minl2r_pool *pool;
    int rc = minl2r_pool_open(scratch_path("minl2r-open"), LAYOUT, NULL, &pool);

    (void)state;
    (void)change;
    return rc < 0 ? rc : minl2r_pool_close(pool);
}

const struct tx_system minl2r_open_system = {
    .name = "minl2r",
    .start = start_open,
    .finish = finish_open,
    .run = {[OP_OPEN] = run_open},
    .message = minl2r_errormsg,
};

/* ---- Recover --------------------------------------------------------------------- */

struct minl2r_recover {
    struct image image;
    struct minl2r_pool *pool;
    uint64_t recovery_ns;
};

static int leave_one_busy(struct minl2r_pool *pool, const uint8_t *range)
{
    struct minl2r_tx *tx;
    uint8_t *writable;

    if (minl2r_tx_begin(pool, &tx) < 0 ||
        minl2r_tx_snapshot(tx, range, BUSY_SIZE, &writable) < 0)
        return 1;
    memset(writable, 0xff, BUSY_SIZE);
    return 0;
}

static int leave_busy(const char *path)
{
    struct minl2r_pool *pool;
    int failed = 0;

    if (minl2r_pool_open(path, LAYOUT, NULL, &pool) < 0)
        return 1;
    const uint8_t *region = minl2r_root(pool, BUSY_TOTAL);

    if (!region)
        return 1;
    for (uint32_t i = 0; i < BUSY_LANES && !failed; i++)
        failed = leave_one_busy(pool, region + (size_t)i * BUSY_SIZE);
    return failed;
}

static int create_clean(const char *path)
{
    const struct minl2r_options options = {.lanes = 2 * BUSY_LANES};
    struct minl2r_pool *pool;
    int rc = minl2r_pool_create(path, LAYOUT, RECOVER_POOL_SIZE, &options, &pool);

    if (rc < 0)
        return rc;
    bool ok = minl2r_root(pool, BUSY_TOTAL);

    minl2r_pool_close(pool);
    return ok ? 0 : -ENOSPC;
}

static int start_recover(void **state)
{
    const char *path = scratch_path("minl2r-recover");
    struct minl2r_recover *recover = calloc(1, sizeof(*recover));
    int rc = recover ? create_clean(path) : -ENOMEM;

    if (rc == 0)
        rc = image_make(&recover->image, path, RECOVER_POOL_SIZE, leave_busy);
    if (rc < 0)
        free(recover);
    *state = recover;
    return rc;
}

static void finish_recover(void *state)
{
    struct minl2r_recover *recover = state;

    scratch_unlink(recover->image.path);
    image_finish(&recover->image);
    free(recover);
}

static int restore(void *state)
{
    return image_restore(&((struct minl2r_recover *)state)->image);
}

static int run_recover(void *state, const struct tx_change *change)
{
    struct minl2r_recover *recover = state;

    (void)change;
    return minl2r_pool_open(recover->image.path, LAYOUT, NULL, &recover->pool);
}

static int verify(struct minl2r_recover *recover)
{
    struct minl2r_info info;
    const uint8_t *region = minl2r_root(recover->pool, BUSY_TOTAL);
    int rc = minl2r_pool_info(recover->pool, &info);

    if (rc < 0)
        return rc;
    recover->recovery_ns = info.recovery.ns;
    return info.recovery.lanes == BUSY_LANES && region &&
                   image_is_zero(region, BUSY_TOTAL)
               ? 0
               : -EUCLEAN;
}

static int verify_and_close(void *state)
{
    struct minl2r_recover *recover = state;
    int rc = verify(recover);
    int close_rc = minl2r_pool_close(recover->pool);

    return rc < 0 ? rc : close_rc;
}

uint64_t minl2r_recovery_ns(void *state)
{
    return ((const struct minl2r_recover *)state)->recovery_ns;
}

const struct tx_system minl2r_recover_system = {
    .name = "minl2r",
    .start = start_recover,
    .finish = finish_recover,
    .before = restore,
    .after = verify_and_close,
    .run = {[OP_RECOVER] = run_recover},
    .message = minl2r_errormsg,
};
