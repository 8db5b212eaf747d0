/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pool.h - superblock, geometry, offset <-> pointer; creating, attaching and opening.
 */
#ifndef MINL2R_POOL_H
#define MINL2R_POOL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/minl2r.h"
#include "libminl2r/layout.h"
#include "libminl2r/pm.h"

#define TX_CACHE_COUNT 64

struct alloc;
struct lane;
struct watch;
struct writeset;

/* The superblock's geometry in DRAM, validated once. */
struct geometry {
    uint64_t pool_size;
    uint64_t lanes_offset;
    uint64_t logs_offset;
    uint64_t zones_offset;
    uint64_t
        block_count; /* in all zones, bitmap blocks included; indexes run below it */
    uint64_t zone_count;
    uint64_t spare_blocks;
    uint32_t block_size;
    uint32_t block_shift; /* log2 of block_size */
    uint32_t zone_shift;  /* log2 of blocks per zone */
    uint32_t lane_count;
    uint32_t log_size;
    uint32_t pointer_threshold;
};

/* An ended transaction, kept for the thread that entered itself as owner: no locking.
 */
struct tx_cache_entry {
    uint32_t owner; /* thread_number(); 0: none yet; atomic */
    struct minl2r_tx *tx;
    uint8_t pad[112]; /* other threads' are in other lines */
};

struct minl2r_pool {
    struct pm pm;
    struct geometry geo;
    uint64_t checksum_seed; /* from the uuid */
    struct alloc *alloc;
    struct lane *lanes;      /* [geo.lane_count] */
    struct lane *live_lanes; /* of live.h; atomic */
    uint32_t awake_lanes;    /* among them, not asleep; atomic */
    bool puts_to_sleep;      /* one thread does, a lane; atomic */
    bool poisoned;           /* atomic */
    bool prove;              /* MINL2R_COMMIT_PROVE */
    struct watch *watch;     /* [geo.lane_count], or NULL: not watched */
    uint64_t fork_count;     /* fork_count() when opened */

    int fd; /* -1: attached */
    char *path;
    struct minl2r_recovery recovery;
    pthread_mutex_t root_lock;

    /* Transactions: all objects ever made, and the ended ones kept for reuse. */
    pthread_mutex_t tx_lock;
    struct minl2r_tx *tx_all;    /* under tx_lock */
    struct minl2r_tx *tx_shared; /* under tx_lock */
    struct tx_cache_entry tx_cache[TX_CACHE_COUNT];
    struct minl2r_stats stats; /* of recovery */
};

/* ---- Geometry -------------------------------------------------------------------- */

static inline const void *pool_at(const struct minl2r_pool *pool, uint64_t offset)
{
    return pool->pm.base + offset;
}

static inline uint64_t pool_offset(const struct minl2r_pool *pool, const void *ptr)
{
    uint64_t offset = (uint64_t)((const uint8_t *)ptr - pool->pm.base);

    /* Writable pointers that were given out may be watched: see pm_watch(). */
    if (pool->pm.twin && offset - pool->pm.twin < pool->pm.size)
        offset -= pool->pm.twin;
    return offset;
}

static inline uint64_t block_index(const struct geometry *geo, uint64_t offset)
{
    return (offset - geo->zones_offset) >> geo->block_shift;
}

static inline uint64_t block_offset(const struct geometry *geo, uint64_t index)
{
    return geo->zones_offset + (index << geo->block_shift);
}

/* The offset of the block that `offset` lies in. */
static inline uint64_t block_start(const struct geometry *geo, uint64_t offset)
{
    return offset - ((offset - geo->zones_offset) & (geo->block_size - 1));
}

/* The bitmap word on media that holds the bit of block `index`, which is bit index
 * % 64. */
static inline const uint64_t *pool_bitmap_word(const struct minl2r_pool *pool,
                                               uint64_t index)
{
    uint64_t in_zone = index & (((uint64_t)1 << pool->geo.zone_shift) - 1);
    uint64_t bitmap = block_offset(&pool->geo, index - in_zone);

    return (const uint64_t *)pool_at(pool, bitmap) + in_zone / 64;
}

/* Is [offset, offset + size) data: inside one zone, and not its bitmap? False for size
 * 0. */
static inline bool is_data(const struct geometry *geo, uint64_t offset, uint64_t size)
{
    if (offset < geo->zones_offset || size == 0 || size > geo->pool_size ||
        offset > geo->pool_size - size)
        return false;
    uint64_t first = block_index(geo, offset);
    uint64_t last = block_index(geo, offset + size - 1);
    uint64_t zone_mask = ((uint64_t)1 << geo->zone_shift) - 1;

    return last < geo->block_count && (first & zone_mask) != 0 &&
           first >> geo->zone_shift == last >> geo->zone_shift;
}

/*
 * -EINVAL with why the `size` bytes at `offset` are no data. Outside of the mapping it
 * names the address: a program that passes a pointer to its own memory, or NULL, knows
 * no offset.
 */
int pool_outside(const struct minl2r_pool *pool, uint64_t offset, uint64_t size);

/* Is it an aligned word of the data area, or of a bitmap? */
static inline bool is_zone_word(const struct geometry *geo, uint64_t offset)
{
    return offset % sizeof(uint64_t) == 0 && offset >= geo->zones_offset &&
           offset < block_offset(geo, geo->block_count);
}

/* Is `offset` the start of `count` blocks that a program may allocate (not the root
 * block)? */
static inline bool is_blocks(const struct geometry *geo, uint64_t offset,
                             uint64_t count)
{
    return offset > block_offset(geo, 1) && count <= geo->block_count &&
           ((offset - geo->zones_offset) & (geo->block_size - 1)) == 0 &&
           is_data(geo, offset, count << geo->block_shift);
}

static inline const struct pm_super *pool_super(const struct minl2r_pool *pool)
{
    return (const struct pm_super *)pool->pm.base;
}

static inline const struct pm_lane *pool_lane(const struct minl2r_pool *pool,
                                              uint32_t lane)
{
    return (const struct pm_lane *)pool_at(pool, pool->geo.lanes_offset) + lane;
}

static inline uint64_t pool_log_offset(const struct minl2r_pool *pool, uint32_t lane)
{
    return pool->geo.logs_offset + (uint64_t)lane * pool->geo.log_size;
}

/* The root block: the second block of the first zone. */
static inline const struct pm_root *pool_root_block(const struct minl2r_pool *pool)
{
    return (const struct pm_root *)pool_at(pool, block_offset(&pool->geo, 1));
}

/* ---- Life ------------------------------------------------------------------------ */

/*
 * Validates a superblock that may be anything, of a pool of `mapped_size` bytes, and
 * fills `geo`. -EINVAL: no pool; -EPROTONOSUPPORT: a newer format; -EUCLEAN: damaged.
 */
int geometry_read(struct geometry *geo, const struct pm_super *super,
                  uint64_t mapped_size);

/*
 * Plans a new pool of `size` bytes: fills `super` but for name, uuid, time and
 * checksum. -EINVAL for options out of range and a size that does not do. `options` may
 * be NULL.
 */
int geometry_plan(struct pm_super *super, uint64_t size,
                  const struct minl2r_options *options);

uint64_t super_checksum(const struct pm_super *super);

/* Checks what both create and open read of `options`, which may be NULL. */
int options_check(const struct minl2r_options *options);

/*
 * The bits of the bitmap word of blocks [index, index + 64) that are always set: the
 * bitmap itself, the root block, and what lies past the end.
 */
uint64_t bitmap_fixed_bits(const struct geometry *geo, uint64_t index);

/* -EEXIST if a pool begins at the start of the mapping. */
int pool_refuse_existing(const struct pm *pm);

/*
 * Writes a new, empty pool into a mapping, of `size` bytes (0: all of it). What a crash
 * leaves is no pool: the magic is durable last. -EEXIST if there is a pool already.
 */
int pool_format(const struct pm *pm, const char *layout, uint64_t size,
                const struct minl2r_options *options);

/* Where file systems and partition tables have what they are known by. */
#define POOL_SIGNATURES_SIZE ((uint64_t)128 << 10)

/* Makes zeros of them, after pool_format(), where the pool is not to be. */
void pool_unformat(const struct pm *pm);

/*
 * Makes `pool` from memory (attach.c): validates the superblock, builds the DRAM twins
 * of bitmaps and lanes. Writes nothing; recovery_run() comes next. `layout` may be
 * NULL. On error nothing is left to detach.
 */
int pool_attach(struct minl2r_pool *pool, const struct pm *pm, const char *layout);
void pool_detach(struct minl2r_pool *pool);

/*
 * Creates or opens the file: fd, lock (exclusive, or shared if not `writable`) and
 * mapping. Used by minl2r_pool_create/open/check and the tools. One that is created
 * gets its name by pool_file_publish(), wherever a file can be without one so long.
 */
int pool_file_create(const char *path, uint64_t size,
                     const struct minl2r_options *options, struct pm *pm, int *fd);
int pool_file_open(const char *path, const struct minl2r_options *options,
                   bool writable, struct pm *pm, int *fd);

/*
 * Gives what was created its name, durably. -EEXIST: somebody else has made one since.
 */
int pool_file_publish(const char *path, int fd);

/*
 * A copied pool may have holes, where a store needs space that there may be none of.
 * Now it is had, or that is an error. Nothing for devices.
 */
int pool_file_fill_holes(const char *path, int fd, uint64_t size);

void pool_file_close(struct pm *pm, int fd);

/*
 * Gives up the lock, which closing alone does not while a child of fork() lives. A
 * child must not: it is its parent's.
 */
void pool_file_unlock(int fd);

/* Closes what pool_file_create() made and removes the file (not a device). */
void pool_file_discard(const char *path, struct pm *pm, int fd);

/* Another number in each process that was forked off since a pool was opened; not 0. */
uint64_t fork_count(void);

/* 0, or -EPERM in a process that was forked off after `pool` was opened. */
int pool_not_forked(const struct minl2r_pool *pool);

/* As fork_count(), once a pool was opened. */
extern uint64_t *fork_count_now;

static inline bool pool_is_usable(const struct minl2r_pool *pool)
{
    return pool->fork_count == *fork_count_now &&
           !__atomic_load_n(&pool->poisoned, __ATOMIC_RELAXED);
}

/* 0, or why `pool` takes no changes: forked (-EPERM) or poisoned (-EIO). */
int pool_check_usable(const struct minl2r_pool *pool);

/* Remembers that the medium failed and returns -EIO. */
int pool_poison(struct minl2r_pool *pool);

#endif
