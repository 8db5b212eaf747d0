/* SPDX-License-Identifier: BSD-3-Clause */
/* pool.c - a pool in memory: formatting, and when it may not be changed. */
#include "libminl2r/pool.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>

#include "libminl2r/error.h"

/* ---- Forks ----------------------------------------------------------------------- */

/*
 * In a page that the kernel wipes in every child: those of clone(2) and _Fork(3) run no
 * handlers. 0: no pool was opened in this process.
 */
static uint64_t without_page;
uint64_t *fork_count_now = &without_page;

static void forget_count(void)
{
    *fork_count_now = 0;
}

static void watch_forks(void)
{
    void *page = mmap(NULL, sizeof(*fork_count_now), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page != MAP_FAILED) {
        madvise(page, sizeof(*fork_count_now), MADV_WIPEONFORK);
        fork_count_now = page;
    }
    pthread_atfork(NULL, NULL, forget_count); /* where the kernel does not know how */
}

uint64_t fork_count(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static uint64_t last;
    uint64_t none = 0;

    pthread_once(&once, watch_forks);
    if (__atomic_load_n(fork_count_now, __ATOMIC_RELAXED) == 0)
        __atomic_compare_exchange_n(fork_count_now, &none,
                                    __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED),
                                    false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    return __atomic_load_n(fork_count_now, __ATOMIC_RELAXED);
}

/* ---- Outside --------------------------------------------------------------------- */

int pool_outside(const struct minl2r_pool *pool, uint64_t offset, uint64_t size)
{
    const uint8_t *address = pool->pm.base + offset;

    if (offset < pool->pm.size)
        return error_set(EINVAL, "[%llu, +%llu) is not in the pool's data area",
                         (unsigned long long)offset, (unsigned long long)size);
    if (!address)
        return error_set(EINVAL, "address NULL is not in the pool");
    return error_set(EINVAL, "address %p is not in the pool", (const void *)address);
}

/* ---- Usable or not --------------------------------------------------------------- */

int pool_not_forked(const struct minl2r_pool *pool)
{
    if (pool->fork_count == *fork_count_now)
        return 0;
    return error_set(EPERM,
                     "the pool was opened before fork(): only the parent may use it");
}

int pool_check_usable(const struct minl2r_pool *pool)
{
    int result = pool_not_forked(pool);

    if (result < 0)
        return result;
    if (__atomic_load_n(&pool->poisoned, __ATOMIC_RELAXED))
        return error_set(EIO,
                         "the medium failed earlier: the pool has to be opened again");
    return 0;
}

int pool_poison(struct minl2r_pool *pool)
{
    __atomic_store_n(&pool->poisoned, true, __ATOMIC_RELAXED);
    return -EIO;
}

/* ---- Formatting ------------------------------------------------------------------ */

static void format_lanes(struct pm_phase *phase, const struct pm_super *super)
{
    const uint8_t *lanes = phase->pm->base + super->lanes_offset;
    size_t size = super->lane_count * sizeof(struct pm_lane);

    pm_zero(phase, lanes, size);
    pm_flush(phase, lanes, size);
}

static void format_bitmap(struct pm_phase *phase, const struct geometry *geo,
                          uint64_t zone)
{
    uint64_t first = zone << geo->zone_shift;
    const uint8_t *bitmap = phase->pm->base + block_offset(geo, first);

    for (uint32_t at = 0; at < geo->block_size; at += 8) {
        uint64_t bits = bitmap_fixed_bits(geo, first + 8ull * at);

        pm_store(phase, bitmap + at, &bits, sizeof(bits));
    }
    pm_flush(phase, bitmap, geo->block_size);
}

static void format_root(struct pm_phase *phase, const struct geometry *geo)
{
    const uint8_t *root = phase->pm->base + block_offset(geo, 1);

    pm_zero(phase, root, geo->block_size);
    pm_flush(phase, root, geo->block_size);
}

/* I4: what lies there from before must not pass for the generation of a batch. */
static void format_logs(struct pm_phase *phase, const struct pm_super *super)
{
    for (uint32_t i = 0; i < super->lane_count; i++) {
        const uint8_t *log =
            phase->pm->base + super->logs_offset + (uint64_t)i * super->log_size;

        pm_zero(phase, log, sizeof(struct pm_batch));
        pm_flush(phase, log, sizeof(struct pm_batch));
    }
}

/* The magic comes last, in a store and a fence of its own: until then there is no pool.
 */
static int format_super(struct pm_phase *phase, const struct pm_super *super)
{
    const uint8_t *base = phase->pm->base;
    size_t magic_size = sizeof(super->magic);

    pm_store(phase, base + magic_size, super->magic + magic_size,
             sizeof(*super) - magic_size);
    pm_flush(phase, base, sizeof(*super));
    int result = pm_fence(phase); /* the whole pool, then what makes it one */

    if (result < 0)
        return result;
    pm_store(phase, base, super->magic, magic_size);
    pm_flush(phase, base, magic_size);
    return pm_fence(phase); /* the pool, then the answer that it exists */
}

static int name_super(struct pm_super *super, const char *layout)
{
    size_t length = strlen(layout);

    if (length > MINL2R_LAYOUT_MAX)
        return error_set(EINVAL, "the layout name has %zu characters: at most %d",
                         length, MINL2R_LAYOUT_MAX);
    memcpy(super->layout, layout, length);
    if (getrandom(super->uuid, sizeof(super->uuid), 0) != sizeof(super->uuid))
        return error_set(EIO, "no random numbers for the uuid");
    super->created_s = (uint64_t)time(NULL);
    memcpy(super->magic, PM_MAGIC, sizeof(super->magic));
    super->checksum = super_checksum(super);
    return 0;
}

/* A device is not made anew by creating a pool: what is on it might be worth something.
 */
int pool_refuse_existing(const struct pm *pm)
{
    const struct pm_super *super = (const struct pm_super *)pm->base;

    if (memcmp(super->magic, PM_MAGIC, sizeof(super->magic)) == 0)
        return error_set(
            EEXIST, "there is a pool already: clear its first %u bytes first", PM_PAGE);
    return 0;
}

static int write_pool(const struct pm *pm, const struct pm_super *super)
{
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = pm, .stats = &stats};
    struct geometry geo;
    int result = geometry_read(&geo, super, pm->size);

    if (result < 0)
        return result;
    format_lanes(&phase, super);
    format_logs(&phase, super);
    for (uint64_t zone = 0; zone < geo.zone_count; zone++)
        format_bitmap(&phase, &geo, zone);
    format_root(&phase, &geo);
    return format_super(&phase, super);
}

int pool_format(const struct pm *pm, const char *layout, uint64_t size,
                const struct minl2r_options *options)
{
    struct pm_super super;
    int result = pool_refuse_existing(pm);

    if (result == 0)
        result = geometry_plan(&super, size ? size : pm->size, options);
    if (result == 0)
        result = name_super(&super, layout);
    if (result == 0)
        result = write_pool(pm, &super);
    return result;
}

void pool_unformat(const struct pm *pm)
{
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = pm, .stats = &stats};
    uint64_t size = pm->size < POOL_SIGNATURES_SIZE ? pm->size : POOL_SIGNATURES_SIZE;

    pm_zero(&phase, pm->base, size);
    pm_flush(&phase, pm->base, size);
    pm_fence(&phase); /* no pool any more, then whatever comes next there */
}
