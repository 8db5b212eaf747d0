/* SPDX-License-Identifier: BSD-3-Clause */
/* The public entry points: check arguments, compose. The manual is include/minl2r.h. */
#include "include/minl2r.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libminl2r/alloc.h"
#include "libminl2r/calibrate.h"
#include "libminl2r/check.h"
#include "libminl2r/error.h"
#include "libminl2r/live.h"
#include "libminl2r/recovery.h"
#include "libminl2r/thread.h"
#include "libminl2r/tx.h"
#include "libminl2r/watch.h"
#include "libminl2r/word_commit.h"

const char *minl2r_check_version(unsigned major, unsigned minor)
{
    if (major == MINL2R_MAJOR && minor <= MINL2R_MINOR)
        return NULL;
    error_set(EINVAL, "compiled for version %u.%u, but this library is %u.%u", major,
              minor, MINL2R_MAJOR, MINL2R_MINOR);
    return minl2r_errormsg();
}

const char *minl2r_medium_name(enum minl2r_medium medium)
{
    switch (medium) {
    case MINL2R_EMULATED:
        return "emulated";
    case MINL2R_FILE:
        return "file";
    case MINL2R_DAX:
        return "dax";
    case MINL2R_EADR:
        return "eadr";
    }
    return "unknown";
}

/* ---- Pools ----------------------------------------------------------------------- */

static void pool_free(struct minl2r_pool *pool)
{
    pthread_mutex_destroy(&pool->root_lock);
    pthread_mutex_destroy(&pool->tx_lock);
    free(pool->path);
    free(pool);
}

static struct minl2r_pool *pool_new(const char *path)
{
    struct minl2r_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return NULL;
    pthread_mutex_init(&pool->root_lock, NULL);
    pthread_mutex_init(&pool->tx_lock, NULL);
    pool->path = strdup(path);
    if (!pool->path) {
        pool_free(pool);
        return NULL;
    }
    return pool;
}

/* Makes a pool of a mapping; takes over `pm` and `fd` if it succeeds. */
static int pool_start(const char *path, const char *layout,
                      const struct minl2r_options *options, const struct pm *pm, int fd,
                      struct minl2r_pool **pool)
{
    struct minl2r_pool *new = pool_new(path);

    if (!new)
        return error_set(ENOMEM, "no memory for a pool");
    int result = pool_attach(new, pm, layout);

    if (result < 0)
        goto free_pool;
    new->fd = fd;
    new->fork_count = fork_count();
    new->prove = options && options->commit == MINL2R_COMMIT_PROVE;
    if (fd >= 0)
        result = pool_file_fill_holes(path, fd, new->geo.pool_size);
    if (result == 0)
        result = recovery_run(new);
    if (result == 0)
        result = watch_start(new);
    if (result < 0)
        goto detach;
    *pool = new;
    return 0;
detach:
    pool_detach(new);
free_pool:
    pool_free(new);
    return result;
}

static void pool_stop(struct minl2r_pool *pool)
{
    tx_free_all(pool);
    watch_stop(pool);
    pool_detach(pool);
    pool_free(pool);
}

static int calibrate_pool(const struct pm *pm, const struct minl2r_options *options,
                          uint32_t *threshold)
{
    struct calibrate_point points[CALIBRATE_POINTS];
    struct minl2r_pool *pool = NULL;
    int result = pool_format(pm, "", 0, options);

    if (result == 0)
        result = pool_start("", NULL, options, pm, -1, &pool);
    if (!pool)
        return result;
    result = calibrate_measure(pool, points);
    pool_stop(pool);
    if (result == 0)
        *threshold = calibrate_choose(points, CALIBRATE_POINTS);
    return result;
}

static int make_blank(const struct pm *pm)
{
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = pm, .stats = &stats};

    pm_zero(&phase, pm->base, pm->size);
    pm_flush(&phase, pm->base, pm->size);
    return pm_fence(&phase); /* nothing of the trial, then the real pool */
}

/*
 * Tries both kinds of logging in a small pool that lies inside what will be the real
 * one, behind its first page: that stays blank, so that a crash leaves no pool.
 */
static int try_thresholds(const struct pm *pm, uint32_t block_size,
                          struct minl2r_options *options)
{
    struct minl2r_options trial = {.block_size = block_size,
                                   .lanes = 1,
                                   .spare_blocks = 1,
                                   .commit = options->commit};
    struct pm inner = *pm;

    inner.base += PM_PAGE;
    inner.size = CALIBRATE_POOL_SIZE;
    int result = calibrate_pool(&inner, &trial, &options->pointer_threshold);

    return result < 0 ? result : make_blank(&inner);
}

/* Puts what it comes to in the place of MINL2R_POINTER_AUTO. */
static int choose_threshold(const struct pm *pm, uint64_t size,
                            struct minl2r_options *options)
{
    struct pm_super plan;

    if (options->pointer_threshold != MINL2R_POINTER_AUTO)
        return 0;
    int result = pool_refuse_existing(pm);

    if (result == 0)
        result = geometry_plan(&plan, size ? size : pm->size, options);
    if (result != 0)
        return result;
    options->pointer_threshold = MINL2R_POINTER_HALF;
    if (pm->medium == MINL2R_FILE || plan.pool_size < 2 * CALIBRATE_POOL_SIZE)
        return 0;
    return try_thresholds(pm, plan.block_size, options);
}

/* What the program wants in it from the start. Then it gets its name. */
static int pool_fill(const char *path, struct minl2r_pool *pool, minl2r_fill_fn *fill,
                     void *arg)
{
    int result = fill ? fill(pool, arg) : 0;

    return result < 0 ? result : pool_file_publish(path, pool->fd);
}

static int pool_make(const char *path, const char *layout, uint64_t size,
                     const struct minl2r_options *options, const struct pm *pm, int fd,
                     minl2r_fill_fn *fill, void *arg, struct minl2r_pool **pool)
{
    int result = pool_format(pm, layout, size, options);

    if (result < 0)
        return result;
    result = pool_start(path, layout, options, pm, fd, pool);
    if (result == 0) {
        result = pool_fill(path, *pool, fill, arg);
        if (result == 0)
            return 0;
        pool_stop(*pool);
    }
    pool_unformat(pm);
    return result;
}

int minl2r_pool_create_filled(const char *path, const char *layout, uint64_t size,
                              const struct minl2r_options *options,
                              minl2r_fill_fn *fill, void *arg,
                              struct minl2r_pool **pool)
{
    static const struct minl2r_options defaults;
    struct minl2r_pool *made = NULL;
    struct pm pm;
    int fd;

    if (!path || !layout || !pool)
        return error_set(EINVAL, "path, layout and pool must be given");
    if (!options)
        options = &defaults;
    struct minl2r_options chosen = *options;
    int result = pool_file_create(path, size, options, &pm, &fd);

    if (result < 0)
        return result;
    result = choose_threshold(&pm, size, &chosen);
    if (result == 0)
        result = pool_make(path, layout, size, &chosen, &pm, fd, fill, arg, &made);
    if (result < 0)
        pool_file_discard(path, &pm, fd);
    else
        *pool = made;
    return result;
}

int minl2r_pool_create(const char *path, const char *layout, uint64_t size,
                       const struct minl2r_options *options, struct minl2r_pool **pool)
{
    return minl2r_pool_create_filled(path, layout, size, options, NULL, NULL, pool);
}

int minl2r_pool_open(const char *path, const char *layout,
                     const struct minl2r_options *options, struct minl2r_pool **pool)
{
    struct pm pm;
    int fd;

    if (!path || !pool)
        return error_set(EINVAL, "path and pool must be given");
    int result = pool_file_open(path, options, true, &pm, &fd);

    if (result < 0)
        return result;
    result = pool_start(path, layout, options, &pm, fd, pool);
    if (result < 0)
        pool_file_close(&pm, fd);
    return result;
}

/*
 * So that the next open has nothing to finish. It can: a failing medium is no matter.
 */
static void settle_all(struct minl2r_pool *pool)
{
    struct pm_phase phase = {.pm = &pool->pm, .stats = &pool->stats};

    if (pool_is_usable(pool) && live_possible(pool))
        live_settle_now(pool, &phase);
}

/*
 * A child of fork() gives back its memory and nothing else: the lock and the pool are
 * the parent's, and so are transactions that were open.
 */
int minl2r_pool_close(struct minl2r_pool *pool)
{
    if (!pool)
        return 0;
    struct pm pm = pool->pm;
    int fd = pool->fd;

    if (pool->fork_count == fork_count()) {
        int result = tx_free_all(pool);

        if (result < 0)
            return result;
        settle_all(pool);
        pool_file_unlock(fd);
    }

    watch_stop(pool);
    pool_detach(pool);
    pool_free(pool);
    pool_file_close(&pm, fd);
    return 0;
}

int minl2r_pool_check(const char *path, minl2r_check_fn *found, void *arg)
{
    struct pm pm;
    int fd;

    if (!path || !found)
        return error_set(EINVAL, "path and found must be given");
    int result = pool_file_open(path, NULL, false, &pm, &fd);

    if (result < 0)
        return result;
    struct minl2r_pool *pool = pool_new(path);

    result =
        pool ? pool_attach(pool, &pm, NULL) : error_set(ENOMEM, "no memory for a pool");
    if (result == 0) {
        result = check_pool(pool, found, arg);
        pool_detach(pool);
    } else if (result == -EUCLEAN) {
        found(arg, minl2r_errormsg());
    }
    if (pool)
        pool_free(pool);
    pool_file_close(&pm, fd);
    return result;
}

int minl2r_pool_info(struct minl2r_pool *pool, struct minl2r_info *info)
{
    const struct geometry *geo = &pool->geo;
    const struct pm_super *super = pool_super(pool);
    int result = pool_not_forked(pool);

    if (result < 0)
        return result;
    *info = (struct minl2r_info){
        .path = pool->path,
        .format = super->format,
        .medium = pool->pm.medium,
        .medium_reason = pool->pm.reason,
        .flush_method = pool->pm.flush_method,
        .pool_size = geo->pool_size,
        .block_size = geo->block_size,
        .lanes = geo->lane_count - 1,
        .log_size = geo->log_size,
        .pointer_threshold = geo->pointer_threshold,
        .blocks = geo->block_count - geo->zone_count - 1,
        .blocks_free = alloc_free_blocks(pool),
        .blocks_spare = geo->spare_blocks,
        .recovery = pool->recovery,
    };
    memcpy(info->layout, super->layout, sizeof(info->layout));
    memcpy(info->uuid, super->uuid, sizeof(info->uuid));
    return 0;
}

/* ---- Root ------------------------------------------------------------------------ */

static int root_create(struct minl2r_pool *pool, uint64_t size)
{
    uint64_t blocks = (size + pool->geo.block_size - 1) >> pool->geo.block_shift;
    struct pm_root root = {.size = size};
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(pool, &tx);

    if (result != 0)
        return result;
    result = minl2r_tx_alloc(tx, blocks, &root.offset, NULL);
    if (result == 0)
        result = minl2r_tx_zero(tx, pool_at(pool, root.offset),
                                blocks << pool->geo.block_shift);
    if (result == 0)
        result = minl2r_tx_write(tx, pool_root_block(pool), &root, sizeof(root));
    if (result < 0) {
        minl2r_tx_abort(tx);
        return result;
    }
    return minl2r_tx_commit(tx);
}

static int root_verify(const struct minl2r_pool *pool, uint64_t size)
{
    struct pm_root root = *pool_root_block(pool);
    uint64_t blocks = (root.size + pool->geo.block_size - 1) >> pool->geo.block_shift;

    if (root.size > pool->geo.pool_size ||
        !is_blocks(&pool->geo, root.offset, blocks) ||
        !alloc_is_allocated(pool, (struct block_run){root.offset, blocks}))
        return error_set(
            EUCLEAN, "the root block names no root object: offset %llu, size %llu",
            (unsigned long long)root.offset, (unsigned long long)root.size);
    if (root.size != size)
        return error_set(EINVAL, "the root object has %llu bytes, not %llu",
                         (unsigned long long)root.size, (unsigned long long)size);
    return 0;
}

static int root_get(struct minl2r_pool *pool, uint64_t size, uint64_t *offset)
{
    int result = pool_not_forked(pool);

    if (result < 0)
        return result;
    if (size == 0 || size > pool->geo.pool_size)
        return error_set(EINVAL, "a root object cannot have %llu bytes",
                         (unsigned long long)size);
    pthread_mutex_lock(&pool->root_lock);
    if (pool_root_block(pool)->offset == 0)
        result = root_create(pool, size);
    if (result == 0)
        result = root_verify(pool, size);
    *offset = pool_root_block(pool)->offset;
    pthread_mutex_unlock(&pool->root_lock);
    return result;
}

const void *minl2r_root(struct minl2r_pool *pool, uint64_t size)
{
    uint64_t offset;
    int result = root_get(pool, size, &offset);

    if (result == 0)
        return pool_at(pool, offset);
    errno = -result;
    return NULL;
}

/* Is `offset` in a block that may be the program's? The root block is the library's. */
static bool is_programs(const struct geometry *geo, uint64_t offset)
{
    return is_data(geo, offset, 1) && block_index(geo, offset) != 1;
}

const void *minl2r_at(const struct minl2r_pool *pool, uint64_t offset)
{
    return is_programs(&pool->geo, offset) ? pool_at(pool, offset) : NULL;
}

uint64_t minl2r_offset(const struct minl2r_pool *pool, const void *ptr)
{
    uint64_t offset = pool_offset(pool, ptr);

    return is_programs(&pool->geo, offset) ? offset : 0;
}

/* ---- Transactions ---------------------------------------------------------------- */

int minl2r_tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx)
{
    int result = pool_is_usable(pool) ? 0 : pool_check_usable(pool);

    return result < 0 ? result : tx_begin(pool, tx);
}

/* Without a call: who has no number yet owns no transaction. */
static inline bool tx_is_usable(const struct minl2r_tx *tx)
{
    return tx->owner == thread_number_cached && pool_is_usable(tx->pool);
}

/* 0, or why this call on `tx` cannot be. */
__attribute__((noinline)) static int tx_check_usable(const struct minl2r_tx *tx)
{
    if (tx->owner != thread_number())
        return error_set(EPERM, "the transaction belongs to another thread");
    return pool_check_usable(tx->pool);
}

int minl2r_tx_commit(struct minl2r_tx *tx)
{
    if (!tx_is_usable(tx) && tx_check_usable(tx) == -EPERM)
        return -EPERM;
    return tx_commit(tx);
}

int minl2r_tx_abort(struct minl2r_tx *tx)
{
    if (!tx_is_usable(tx) && tx_check_usable(tx) == -EPERM)
        return -EPERM;
    return tx_abort(tx);
}

static int no_source(void)
{
    return error_set(EINVAL, "no source");
}

int minl2r_tx_write(struct minl2r_tx *tx, const void *dst, const void *src, size_t size)
{
    if (!tx_is_usable(tx))
        return tx_check_usable(tx);
    if (!src && size > 0)
        return no_source();
    return writeset_write(&tx->writes, pool_offset(tx->pool, dst), src, size);
}

int minl2r_tx_zero(struct minl2r_tx *tx, const void *dst, size_t size)
{
    int result = tx_check_usable(tx);

    return result < 0
               ? result
               : writeset_write(&tx->writes, pool_offset(tx->pool, dst), NULL, size);
}

int minl2r_tx_copy(struct minl2r_tx *tx, const void *dst, const void *src, size_t size)
{
    int result = tx_check_usable(tx);

    return result < 0 ? result
                      : writeset_copy(&tx->writes, pool_offset(tx->pool, dst),
                                      pool_offset(tx->pool, src), size);
}

int minl2r_tx_edit(struct minl2r_tx *tx, const void *pm, size_t size, void *copy)
{
    uint8_t *bytes;
    int result = tx_check_usable(tx);

    if (result == 0)
        result = writeset_edit(&tx->writes, pool_offset(tx->pool, pm), size, &bytes);
    if (result == 0)
        memcpy(copy, &bytes, sizeof(bytes));
    return result;
}

int minl2r_tx_write_fresh(struct minl2r_tx *tx, const void *dst, const void *src,
                          size_t size)
{
    int result = tx_check_usable(tx);

    if (result < 0)
        return result;
    if (!src && size > 0)
        return no_source();
    return writeset_write_fresh(&tx->writes, pool_offset(tx->pool, dst), src, size);
}

int minl2r_tx_write_block(struct minl2r_tx *tx, const uint64_t *slot, uint32_t offset,
                          const void *src, uint32_t size)
{
    if (!tx_is_usable(tx))
        return tx_check_usable(tx);
    if (!src && size > 0)
        return no_source();
    return writeset_write_block(&tx->writes, pool_offset(tx->pool, slot), offset, src,
                                size);
}

int minl2r_tx_read(struct minl2r_tx *tx, void *dst, const void *src, size_t size)
{
    int result = tx_check_usable(tx);

    return result < 0
               ? result
               : writeset_read(&tx->writes, dst, pool_offset(tx->pool, src), size);
}

/* `*pointer` becomes the writable address of `offset`; callers pass any pointer's
 * address. */
static void set_writable(const struct minl2r_pool *pool, void *pointer, uint64_t offset)
{
    const void *address = pool_at(pool, offset + pool->pm.twin);

    if (pointer)
        memcpy(pointer, &address, sizeof(address));
}

int minl2r_tx_alloc(struct minl2r_tx *tx, uint64_t blocks, uint64_t *offset,
                    void *writable)
{
    uint64_t start = 0;
    int result = tx_check_usable(tx);

    if (result == 0)
        result = writeset_alloc(&tx->writes, blocks, &start);
    if (result < 0)
        return result;
    if (offset)
        *offset = start;
    set_writable(tx->pool, writable, start);
    return 0;
}

int minl2r_tx_free(struct minl2r_tx *tx, uint64_t offset, uint64_t blocks)
{
    int result = tx_check_usable(tx);

    return result < 0 ? result : writeset_free(&tx->writes, offset, blocks);
}

int minl2r_tx_snapshot(struct minl2r_tx *tx, const void *pm, size_t size,
                       void *writable)
{
    struct minl2r_range range = {pm, size};
    int result = minl2r_tx_snapshotv(tx, &range, 1, NULL);

    if (result == 0)
        set_writable(tx->pool, writable, pool_offset(tx->pool, pm));
    return result;
}

int minl2r_tx_snapshotv(struct minl2r_tx *tx, const struct minl2r_range *ranges,
                        size_t count, void **writable)
{
    int result = tx_check_usable(tx);

    if (result == 0)
        result = tx_snapshot(tx, ranges, count);
    for (size_t i = 0; result == 0 && writable && i < count; i++)
        set_writable(tx->pool, &writable[i], pool_offset(tx->pool, ranges[i].pm));
    return result;
}

int minl2r_store64(struct minl2r_pool *pool, const uint64_t *p, uint64_t value)
{
    uint64_t offset = pool_offset(pool, p);
    int result = pool_check_usable(pool);

    if (result < 0)
        return result;
    if (offset >= pool->pm.size)
        return pool_outside(pool, offset, sizeof(*p));
    if (offset % sizeof(*p) != 0 || !is_data(&pool->geo, offset, sizeof(*p)))
        return error_set(EINVAL, "no aligned word of the data area at offset %llu",
                         (unsigned long long)offset);
    if (!alloc_is_allocated(pool,
                            (struct block_run){block_start(&pool->geo, offset), 1}))
        return error_set(EINVAL, "the word at offset %llu is in no allocated block",
                         (unsigned long long)offset);
    return word_store64(pool, pool_at(pool, offset), value);
}

/* ---- Statistics ------------------------------------------------------------------ */

static void stats_sum(struct minl2r_stats *sum, const struct minl2r_stats *more)
{
    uint64_t *to = (uint64_t *)sum;
    const uint64_t *from = (const uint64_t *)more;

    for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += __atomic_load_n(&from[i], __ATOMIC_RELAXED);
}

int minl2r_stats_get(struct minl2r_pool *pool, struct minl2r_stats *stats)
{
    int result = pool_not_forked(pool);

    if (result < 0)
        return result;
    *stats = (struct minl2r_stats){0};
    stats_sum(stats, &pool->stats);
    for (uint32_t i = 0; i < pool->geo.lane_count; i++)
        stats_sum(stats, &pool->lanes[i].stats);
    pthread_mutex_lock(&pool->tx_lock);
    for (const struct minl2r_tx *tx = pool->tx_all; tx; tx = tx->next)
        stats_sum(stats, &tx->stats);
    pthread_mutex_unlock(&pool->tx_lock);
    return 0;
}
