/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibrate.c - measuring both kinds of logging, by transactions of the public API.
 *
 * Each point is the least of several rounds: what disturbs a machine only ever makes it
 * slower. Rounds go over all points, so that no point has a bad time of its own.
 */
#include "libminl2r/calibrate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/clock.h"
#include "libminl2r/error.h"
#include "libminl2r/pool.h"

#define BLOCKS 4          /* that are changed in turn */
#define COMMITS 8         /* timed at once */
#define ROUNDS 20         /* at most */
#define LIMIT_NS 40000000 /* no round begins later; most of the rest is page faults */

struct bed {
    struct minl2r_pool *pool;
    const uint64_t *slots; /* [BLOCKS] */
    uint8_t *bytes[2];     /* a block of ones, a block of twos */
    uint32_t turn;
};

/* Each block in turn; every byte that is written is new there. */
static int change_block(struct bed *bed, uint32_t size)
{
    const uint8_t *bytes = bed->bytes[bed->turn / BLOCKS % 2];
    const uint64_t *slot = &bed->slots[bed->turn++ % BLOCKS];
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(bed->pool, &tx);

    if (result < 0)
        return result;
    result = minl2r_tx_write_block(tx, slot, 0, bytes, size);
    if (result == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return result;
}

static int change_blocks(struct bed *bed, uint32_t size, uint32_t times)
{
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < times; i++)
        result = change_block(bed, size);
    return result;
}

static int time_commits(struct bed *bed, uint32_t size, uint32_t threshold,
                        double *least_ns)
{
    bed->pool->geo.pointer_threshold = threshold;
    uint64_t start_ns = clock_now_ns();
    int result = change_blocks(bed, size, COMMITS);
    double ns = (double)(clock_now_ns() - start_ns) / COMMITS;

    if (*least_ns == 0 || ns < *least_ns)
        *least_ns = ns;
    return result;
}

static int run_round(struct bed *bed, struct calibrate_point *points)
{
    uint32_t never = bed->pool->geo.block_size + 1;
    int result = 0;

    for (uint32_t i = 0; result == 0 && i < CALIBRATE_POINTS; i++) {
        result = time_commits(bed, points[i].size, never, &points[i].data_ns);
        if (result == 0)
            result = time_commits(bed, points[i].size, MINL2R_POINTER_ALWAYS,
                                  &points[i].pointer_ns);
    }
    return result;
}

static int run_rounds(struct bed *bed, struct calibrate_point *points)
{
    uint64_t start_ns = clock_now_ns();
    int result = 0;

    for (uint32_t round = 0; result == 0 && round < ROUNDS; round++) {
        if (round > 0 && clock_now_ns() - start_ns > LIMIT_NS)
            break;
        result = run_round(bed, points);
    }
    return result;
}

static int fill_blocks(struct bed *bed)
{
    uint32_t block_size = bed->pool->geo.block_size;

    bed->slots = minl2r_root(bed->pool, BLOCKS * sizeof(*bed->slots));
    if (!bed->slots)
        return -ENOSPC;
    memset(bed->bytes[0], 1, block_size);
    memset(bed->bytes[1], 2, block_size);
    return change_blocks(bed, block_size, 2 * BLOCKS);
}

int calibrate_measure(struct minl2r_pool *pool, struct calibrate_point *points)
{
    uint32_t block_size = pool->geo.block_size;
    struct bed bed = {.pool = pool};
    uint8_t *bytes = malloc((size_t)2 * block_size);

    if (!bytes)
        return error_set(ENOMEM, "no memory for calibrating");
    bed.bytes[0] = bytes;
    bed.bytes[1] = bytes + block_size;
    for (uint32_t i = 0; i < CALIBRATE_POINTS; i++)
        points[i] =
            (struct calibrate_point){.size = block_size / CALIBRATE_POINTS * (i + 1)};
    int result = fill_blocks(&bed);

    if (result == 0)
        result = run_rounds(&bed, points);
    free(bytes);
    return result;
}

uint32_t calibrate_choose(const struct calibrate_point *points, uint32_t count)
{
    uint32_t best = MINL2R_POINTER_NEVER;
    double lead_ns =
        0; /* of `best`'s threshold over never swapping; the more the better */
    double saved_ns = 0;

    for (uint32_t i = count; i-- > 0;) {
        saved_ns += points[i].data_ns - points[i].pointer_ns;
        if (saved_ns < lead_ns)
            continue;
        lead_ns = saved_ns;
        best = points[i].size;
    }
    return best;
}
