/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmemobj: its undo-log transactions, as its manual shows them: add_range, then
 * stores.
 */
#include "bench/tx/tx.h"

#include <errno.h>
#include <libpmemobj.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/scratch.h"
#include "bench/tx/count.h"
#include "bench/tx/image.h"

#define LAYOUT "bench"
#define POOL_SIZE                                                                      \
    (REGION_SIZE +                                                                     \
     ((uint64_t)64 << 20)) /* room for its lanes and heap                \
                                          */

/* ---- Transactions ---------------------------------------------------------------- */

struct obj_state {
    PMEMobjpool *pool;
    uint8_t *region; /* aligned to a block, as the other systems' are */
    struct tx_tally tally;
};

/* A root object of `size` bytes and its first aligned block. NULL without space. */
static uint8_t *find_region(PMEMobjpool *pool, size_t size)
{
    PMEMoid root = pmemobj_root(pool, size + BLOCK_SIZE);
    uint8_t *start = pmemobj_direct(root);

    return start ? start + (-(uintptr_t)start & (BLOCK_SIZE - 1)) : NULL;
}

static int open_region(struct obj_state *obj)
{
    const char *path = scratch_path("libpmemobj");

    obj->pool = pmemobj_create(path, LAYOUT, POOL_SIZE, 0600);
    scratch_unlink(path);
    if (!obj->pool)
        return -errno;
    obj->region = find_region(obj->pool, REGION_SIZE);
    if (!obj->region) {
        pmemobj_close(obj->pool);
        return -ENOSPC;
    }
    return 0;
}

static int start(void **state)
{
    struct obj_state *obj = calloc(1, sizeof(*obj));
    int rc = obj ? open_region(obj) : -ENOMEM;

    if (rc < 0)
        free(obj);
    *state = obj;
    return rc;
}

static void finish(void *state)
{
    struct obj_state *obj = state;

    pmemobj_close(obj->pool);
    free(obj);
}

static int reset(void *state, enum tx_op op, uint64_t size)
{
    struct obj_state *obj = state;

    (void)op;
    pmemobj_memset_persist(obj->pool, obj->region, 0, size);
    return 0;
}

/* Without a jump buffer an error ends the transaction's work and is returned. */
static int begin(const struct obj_state *obj)
{
    return pmemobj_tx_begin(obj->pool, NULL, TX_PARAM_NONE);
}

static int change_ranges(const struct obj_state *obj, const struct tx_change *change)
{
    for (uint32_t i = 0; i < change->ranges; i++) {
        uint8_t *dst = obj->region + change->offset[i];
        int error = pmemobj_tx_add_range_direct(dst, change->size);

        if (error)
            return error;
        memcpy(dst, change->src, change->size);
    }
    return 0;
}

static int run_read(void *state, const struct tx_change *change)
{
    const struct obj_state *obj = state;
    volatile uint64_t word;

    if (begin(obj) == 0) {
        word = *(const uint64_t *)(const void *)(obj->region + change->offset[0]);
        (void)word;
        pmemobj_tx_commit();
    }
    return -pmemobj_tx_end();
}

static int run_commit(void *state, const struct tx_change *change)
{
    const struct obj_state *obj = state;

    if (begin(obj) == 0 && change_ranges(obj, change) == 0)
        pmemobj_tx_commit();
    return -pmemobj_tx_end();
}

static int run_abort(void *state, const struct tx_change *change)
{
    const struct obj_state *obj = state;

    if (begin(obj) == 0 && change_ranges(obj, change) == 0)
        pmemobj_tx_abort(ECANCELED);
    int error = pmemobj_tx_end();

    return error == ECANCELED ? 0 : -error;
}

static int before(void *state)
{
    tally_begin(&((struct obj_state *)state)->tally);
    return 0;
}

static int after(void *state)
{
    tally_end(&((struct obj_state *)state)->tally);
    return 0;
}

static void count(void *state, struct tx_counters *sum)
{
    *sum = ((struct obj_state *)state)->tally.sum;
}

const struct tx_system libpmemobj_system = {
    .name = "libpmemobj",
    .start = start,
    .finish = finish,
    .reset = reset,
    .before = before,
    .after = after,
    .run = {[OP_READ] = run_read,
            [OP_RANGES] = run_commit,
            [OP_PROVE] = run_commit,
            [OP_BLOCK] = run_commit,
            [OP_SNAPSHOT] = run_commit,
            [OP_STORE64] = run_commit,
            [OP_ABORT_QUEUED] = run_abort,
            [OP_ABORT_SNAPSHOT] = run_abort},
    .count = count,
    .message = pmemobj_errormsg,
};

/* ---- Open ------------------------------------------------------------------------ */

static int start_open(void **state)
{
    const char *path = scratch_path("libpmemobj-open");
    PMEMobjpool *pool = pmemobj_create(path, LAYOUT, OPEN_POOL_SIZE, 0600);

    if (!pool)
        return -errno;
    pmemobj_close(pool);
    *state = NULL;
    return 0;
}

static void finish_open(void *state)
{
    (void)state;
    scratch_unlink(scratch_path("libpmemobj-open"));
}

static int run_open(void *state, const struct tx_change *change)
{
    PMEMobjpool *pool = pmemobj_open(scratch_path("libpmemobj-open"), LAYOUT);

    (void)state;
    (void)change;
    if (!pool)
        return -errno;
    pmemobj_close(pool);
    return 0;
}

const struct tx_system libpmemobj_open_system = {
    .name = "libpmemobj",
    .start = start_open,
    .finish = finish_open,
    .run = {[OP_OPEN] = run_open},
    .message = pmemobj_errormsg,
};

/* ---- Recover --------------------------------------------------------------------- */

struct obj_recover {
    struct image image;
    PMEMobjpool *pool;
};

struct busy {
    struct obj_state *obj;
    uint32_t index;
    pthread_barrier_t *all_changed;
    pthread_t thread;
};

/* One thread per transaction: libpmemobj keeps the current one per thread. */
static void *stay_busy(void *arg)
{
    struct busy *busy = arg;
    uint8_t content[BUSY_SIZE];
    struct tx_change change = {.src = content,
                               .size = BUSY_SIZE,
                               .ranges = 1,
                               .offset = {(uint64_t)busy->index * BUSY_SIZE}};

    memset(content, 0xff, sizeof(content));
    if (begin(busy->obj) != 0 || change_ranges(busy->obj, &change) != 0)
        _exit(1);
    pthread_barrier_wait(busy->all_changed);
    pause();
    return NULL;
}

static int leave_busy(const char *path)
{
    struct obj_state obj = {.pool = pmemobj_open(path, LAYOUT)};
    struct busy busy[BUSY_LANES];
    pthread_barrier_t all_changed;

    if (!obj.pool || !(obj.region = find_region(obj.pool, BUSY_TOTAL)))
        return 1;
    pthread_barrier_init(&all_changed, NULL, BUSY_LANES + 1);
    for (uint32_t i = 0; i < BUSY_LANES; i++) {
        busy[i] = (struct busy){.obj = &obj, .index = i, .all_changed = &all_changed};
        if (pthread_create(&busy[i].thread, NULL, stay_busy, &busy[i]) != 0)
            return 1;
    }
    pthread_barrier_wait(&all_changed);
    return 0;
}

static int create_clean(const char *path)
{
    PMEMobjpool *pool = pmemobj_create(path, LAYOUT, RECOVER_POOL_SIZE, 0600);

    if (!pool)
        return -errno;
    bool ok = find_region(pool, BUSY_TOTAL);

    pmemobj_close(pool);
    return ok ? 0 : -ENOSPC;
}

static int start_recover(void **state)
{
    const char *path = scratch_path("libpmemobj-recover");
    struct obj_recover *recover = calloc(1, sizeof(*recover));
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
    struct obj_recover *recover = state;

    scratch_unlink(recover->image.path);
    image_finish(&recover->image);
    free(recover);
}

static int restore(void *state)
{
    return image_restore(&((struct obj_recover *)state)->image);
}

static int run_recover(void *state, const struct tx_change *change)
{
    struct obj_recover *recover = state;

    (void)change;
    recover->pool = pmemobj_open(recover->image.path, LAYOUT);
    return recover->pool ? 0 : -errno;
}

static int verify_and_close(void *state)
{
    struct obj_recover *recover = state;
    const uint8_t *region = find_region(recover->pool, BUSY_TOTAL);
    int rc = image_is_zero(region, BUSY_TOTAL) ? 0 : -EUCLEAN;

    pmemobj_close(recover->pool);
    return rc;
}

const struct tx_system libpmemobj_recover_system = {
    .name = "libpmemobj",
    .start = start_recover,
    .finish = finish_recover,
    .before = restore,
    .after = verify_and_close,
    .run = {[OP_RECOVER] = run_recover},
    .message = pmemobj_errormsg,
};
