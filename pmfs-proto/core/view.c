/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "libminl2r/alloc.h"
#include "libminl2r/check.h"
#include "libminl2r/error.h"
#include "libminl2r/lane.h"
#include "libminl2r/pool.h"
#include "libminl2r/recovery.h"
#include "pmfs-proto/core/format.h"

static bool is_zero(const uint8_t *bytes, uint64_t size)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0;
}

/* Private memory of `size` bytes: of a file, or, if `fd` is -1, zeros. */
static uint8_t *map_privately(uint64_t size, int fd)
{
    int flags = MAP_PRIVATE | MAP_NORESERVE | (fd < 0 ? MAP_ANONYMOUS : 0);

    return mmap(NULL, size, PROT_READ | PROT_WRITE, flags, fd, 0);
}

/* Zeros take no memory. */
static void copy_pages(uint8_t *copy, const struct pm *pm)
{
    for (uint64_t at = 0; at < pm->size; at += PM_PAGE) {
        uint64_t size = pm->size - at < PM_PAGE ? pm->size - at : PM_PAGE;

        if (!is_zero(pm->base + at, size))
            memcpy(copy + at, pm->base + at, size);
    }
}

/*
 * Puts a private, writable mapping in the place of `pm`: its pages are copied when they
 * are first written, and only then take memory. Device DAX has no private mappings, so
 * all of it is copied.
 */
static int make_writable(struct pm *pm, int fd)
{
    uint8_t *copy = map_privately(pm->size, fd);
    bool is_copy = copy == MAP_FAILED;

    if (is_copy)
        copy = map_privately(pm->size, -1);
    if (copy == MAP_FAILED)
        return error_set(errno, "cannot make a private copy: %s", strerror(errno));
    if (is_copy)
        copy_pages(copy, pm);
    pm_unmap(pm);
    pm->base = copy;
    pm->writable = true;
    pm->medium = MINL2R_EMULATED;
    return 0;
}

static int attach(struct minl2r_pool *pool, const struct pm *pm, const char *layout)
{
    int rc = pool_attach(pool, pm, layout);

    if (rc < 0)
        return rc;
    pool->fork_count = fork_count();
    rc = recovery_run(pool);
    if (rc < 0)
        pool_detach(pool);
    return rc;
}

int view_open(const char *path, const char *layout, struct minl2r_pool **result)
{
    struct minl2r_pool *pool;
    struct pm pm;
    int fd;
    int rc = pool_file_open(path, NULL, false, &pm, &fd);

    if (rc < 0)
        return rc;
    rc = make_writable(&pm, fd);
    if (rc < 0)
        goto close_file;
    pool = calloc(1, sizeof(*pool));
    if (!pool) {
        rc = error_set(ENOMEM, "no memory for a pool");
        goto close_file;
    }
    pthread_mutex_init(&pool->root_lock, NULL);
    pthread_mutex_init(&pool->tx_lock, NULL);
    pool->path = strdup(path);
    rc = pool->path ? attach(pool, &pm, layout)
                    : error_set(ENOMEM, "no memory for a pool");
    if (rc < 0)
        goto free_pool;
    pool->fd = fd;
    *result = pool;
    return 0;

free_pool:
    pthread_mutex_destroy(&pool->root_lock);
    pthread_mutex_destroy(&pool->tx_lock);
    free(pool->path);
    free(pool);
close_file:
    pool_file_close(&pm, fd);
    return rc;
}

void view_check(struct minl2r_pool *pool, minl2r_check_fn *found, void *arg)
{
    check_pool(pool, found, arg);
}

bool view_is_allocated(const struct minl2r_pool *pool, uint64_t offset)
{
    return alloc_is_allocated(pool, (struct block_run){.offset = offset, .count = 1});
}

void view_visit_allocated(const struct minl2r_pool *pool,
                          void (*visit)(void *arg, uint64_t offset), void *arg)
{
    const struct geometry *geo = &pool->geo;

    for (uint64_t first = 0; first < geo->block_count; first += 64) {
        uint64_t bits = pm_load64(pool_bitmap_word(pool, first));

        for (; bits != 0; bits &= bits - 1) {
            uint64_t index = first + (uint64_t)__builtin_ctzll(bits);
            uint64_t offset = block_offset(geo, index);

            if (is_blocks(geo, offset, 1))
                visit(arg, offset);
        }
    }
}

uint64_t view_block_count(const struct minl2r_pool *pool)
{
    return pool->geo.block_count;
}

uint64_t view_block_index(const struct minl2r_pool *pool, uint64_t offset)
{
    return block_index(&pool->geo, offset);
}

uint64_t view_root_offset(const struct minl2r_pool *pool)
{
    return pool_root_block(pool)->offset;
}

/*
 * One word, so it is whole or not at all after a crash. A process killed before the
 * fence leaves it in the cache, where the next check finds nothing wrong: so a lane
 * notes the word, and recovery flushes it (I6).
 */
static int set_bits(struct minl2r_pool *pool, uint64_t index, uint64_t bits)
{
    const uint64_t *word = pool_bitmap_word(pool, index);
    struct pm_phase phase = {.pm = &pool->pm, .stats = &pool->stats};

    lane_note_word(pool, &pool->lanes[0], &phase, pool_offset(pool, word));
    pm_or64(&phase, word, bits);
    pm_flush(&phase, word, sizeof(*word));
    int rc = pm_fence(&phase); /* the bits, then whoever allocates */
    alloc_reload(pool);
    return rc < 0 ? pool_poison(pool) : 0;
}

int view_mark_allocated(struct minl2r_pool *pool, uint64_t offset)
{
    uint64_t index = block_index(&pool->geo, offset);

    return set_bits(pool, index, (uint64_t)1 << index % 64);
}

/* Of the word of blocks [index, index + 64): the superblock's, if it lies there. */
static uint64_t super_bit(const struct minl2r_pool *pool, uint64_t index)
{
    const struct pm_root *root = pool_root_block(pool);

    if (root->size != sizeof(struct pm_fs) || !is_blocks(&pool->geo, root->offset, 1))
        return 0;
    uint64_t block = block_index(&pool->geo, root->offset);
    return block / 64 == index / 64 ? (uint64_t)1 << block % 64 : 0;
}

static uint64_t unmarked(const struct minl2r_pool *pool, uint64_t index)
{
    return (bitmap_fixed_bits(&pool->geo, index) | super_bit(pool, index)) &
           ~pm_load64(pool_bitmap_word(pool, index));
}

static uint64_t bitmap_end(const struct minl2r_pool *pool)
{
    return pool->geo.zone_count << pool->geo.zone_shift;
}

uint64_t view_count_unmarked(const struct minl2r_pool *pool)
{
    uint64_t count = 0;

    for (uint64_t index = 0; index < bitmap_end(pool); index += 64)
        count += (uint64_t)__builtin_popcountll(unmarked(pool, index));
    return count;
}

int view_mark_own(struct minl2r_pool *pool)
{
    int rc = 0;

    for (uint64_t index = 0; rc == 0 && index < bitmap_end(pool); index += 64) {
        uint64_t bits = unmarked(pool, index);

        if (bits)
            rc = set_bits(pool, index, bits);
    }
    return rc;
}
