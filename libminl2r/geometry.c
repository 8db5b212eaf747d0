/* SPDX-License-Identifier: BSD-3-Clause */
/* geometry.c - the superblock: reading one that may be anything, and planning a new
 * one. */
#include <errno.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/pool.h"

#define BLOCKS_MIN 3u /* bitmap, root block, one for the program */
#define SPARE_DEFAULT_MAX 512u

typedef unsigned long long ull;

/* ---- Reading --------------------------------------------------------------------- */

static bool is_power_of_two(uint64_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static uint64_t round_up(uint64_t value, uint64_t power_of_two)
{
    return (value + power_of_two - 1) & ~(power_of_two - 1);
}

static uint32_t log2_of(uint32_t power_of_two)
{
    return (uint32_t)__builtin_ctz(power_of_two);
}

/* Blocks in all zones. A last zone that has room for its bitmap only is none. */
static uint64_t count_blocks(uint64_t pool_size, uint64_t zones_offset,
                             uint32_t block_size)
{
    uint64_t count = (pool_size - zones_offset) / block_size;

    return count % (8ull * block_size) == 1 ? count - 1 : count;
}

static uint64_t count_zones(uint64_t block_count, uint32_t block_size)
{
    return (block_count + 8ull * block_size - 1) / (8ull * block_size);
}

/* Is the field wrong? Then the message says so. */
static bool wrong(bool ok, const char *field, uint64_t value)
{
    if (!ok)
        error_set(EUCLEAN, "superblock: %s is %llu (0x%llx), which cannot be", field,
                  (ull)value, (ull)value);
    return !ok;
}

static int check_magic(const struct pm_super *super)
{
    static const uint8_t empty[sizeof(super->magic)];

    if (memcmp(super->magic, empty, sizeof(empty)) == 0)
        return error_set(EUCLEAN, "superblock: empty: its creation was not finished, "
                                  "or it was overwritten");
    if (memcmp(super->magic, PM_MAGIC, sizeof(super->magic)) != 0)
        return error_set(EINVAL, "not a MinL2R pool: the file begins with other bytes");
    if (super->format > PM_FORMAT)
        return error_set(EPROTONOSUPPORT,
                         "superblock: format is %u; this library reads up to %u",
                         super->format, PM_FORMAT);
    if (super->features_incompat != 0)
        return error_set(
            EPROTONOSUPPORT,
            "superblock: features_incompat is 0x%llx; this library knows none",
            (ull)super->features_incompat);
    return 0;
}

static bool layout_is_valid(const char layout[sizeof(((struct pm_super *)0)->layout)])
{
    size_t size = sizeof(((struct pm_super *)0)->layout);
    size_t length = strnlen(layout, size);

    for (size_t i = length; i < size; i++)
        if (layout[i] != 0)
            return false;
    return length < size;
}

static bool sizes_are_wrong(const struct pm_super *super)
{
    uint32_t block_size = super->block_size;
    uint64_t size = super->pool_size;

    return wrong(super->format == PM_FORMAT, "format", super->format) ||
           wrong(super->super_size == sizeof(*super), "super_size",
                 super->super_size) ||
           wrong(layout_is_valid(super->layout), "layout", (uint8_t)super->layout[0]) ||
           wrong(is_power_of_two(block_size) && block_size >= MINL2R_BLOCK_SIZE_MIN &&
                     block_size <= MINL2R_BLOCK_SIZE_MAX,
                 "block_size", block_size) ||
           wrong(size >= MINL2R_POOL_SIZE_MIN && size <= MINL2R_POOL_SIZE_MAX &&
                     size % block_size == 0,
                 "pool_size", size) ||
           wrong(super->reserved_size == 0 || super->reserved_size >= size,
                 "reserved_size", super->reserved_size) ||
           wrong(super->lane_count >= 2 && super->lane_count <= MINL2R_LANES_MAX + 1,
                 "lane_count", super->lane_count) ||
           wrong(super->log_size >= MINL2R_LOG_SIZE_MIN &&
                     super->log_size % PM_LINE == 0,
                 "log_size", super->log_size) ||
           wrong(super->pointer_threshold >= 1 &&
                     super->pointer_threshold <= block_size + 1,
                 "pointer_threshold", super->pointer_threshold);
}

/* Everything lies in the order of layout.h, aligned, without overlap, and in the pool.
 */
static bool places_are_wrong(const struct pm_super *super)
{
    uint64_t lanes_end =
        super->lanes_offset + super->lane_count * (uint64_t)sizeof(struct pm_lane);
    uint64_t logs_end =
        super->logs_offset + super->lane_count * (uint64_t)super->log_size;

    return wrong(super->lanes_offset >= sizeof(*super) &&
                     super->lanes_offset % PM_PAGE == 0 &&
                     super->lanes_offset < super->pool_size,
                 "lanes_offset", super->lanes_offset) ||
           wrong(super->logs_offset >= lanes_end && super->logs_offset % PM_PAGE == 0 &&
                     super->logs_offset < super->pool_size,
                 "logs_offset", super->logs_offset) ||
           wrong(super->zones_offset >= logs_end &&
                     super->zones_offset % super->block_size == 0 &&
                     super->zones_offset % PM_PAGE == 0 &&
                     super->zones_offset < super->pool_size &&
                     (super->pool_size - super->zones_offset) / super->block_size >=
                         BLOCKS_MIN,
                 "zones_offset", super->zones_offset) ||
           wrong(super->spare_blocks <
                     (super->pool_size - super->zones_offset) / super->block_size,
                 "spare_blocks", super->spare_blocks);
}

uint64_t super_checksum(const struct pm_super *super)
{
    return pm_hash(super, offsetof(struct pm_super, checksum), 0);
}

static int check_super(const struct pm_super *super, uint64_t mapped_size)
{
    int result = check_magic(super);

    if (result < 0)
        return result;
    if (sizes_are_wrong(super) || places_are_wrong(super))
        return -EUCLEAN;
    if (super->checksum != super_checksum(super))
        return error_set(EUCLEAN,
                         "superblock: checksum is 0x%llx, its bytes have 0x%llx",
                         (ull)super->checksum, (ull)super_checksum(super));
    if (super->pool_size > mapped_size)
        return error_set(
            EUCLEAN, "the file has %llu bytes, but its superblock says %llu: cut short",
            (ull)mapped_size, (ull)super->pool_size);
    return 0;
}

int geometry_read(struct geometry *geo, const struct pm_super *super,
                  uint64_t mapped_size)
{
    struct pm_super copy = *super; /* what is validated is what is used */
    int result = check_super(&copy, mapped_size);

    if (result < 0)
        return result;
    *geo = (struct geometry){
        .pool_size = copy.pool_size,
        .lanes_offset = copy.lanes_offset,
        .logs_offset = copy.logs_offset,
        .zones_offset = copy.zones_offset,
        .block_count = count_blocks(copy.pool_size, copy.zones_offset, copy.block_size),
        .spare_blocks = copy.spare_blocks,
        .block_size = copy.block_size,
        .block_shift = log2_of(copy.block_size),
        .zone_shift = log2_of(copy.block_size) + 3,
        .lane_count = copy.lane_count,
        .log_size = copy.log_size,
        .pointer_threshold = copy.pointer_threshold,
    };
    geo->zone_count = count_zones(geo->block_count, geo->block_size);
    return 0;
}

uint64_t bitmap_fixed_bits(const struct geometry *geo, uint64_t index)
{
    uint64_t in_zone = index & (((uint64_t)1 << geo->zone_shift) - 1);
    uint64_t bits = in_zone == 0 ? 1 : 0;

    if (index == 0)
        bits |= 2; /* the root block */
    if (index >= geo->block_count)
        return UINT64_MAX;
    if (geo->block_count - index < 64)
        bits |= UINT64_MAX << (geo->block_count - index);
    return bits;
}

/* ---- Planning -------------------------------------------------------------------- */

int options_check(const struct minl2r_options *options)
{
    if (!options)
        return 0;
    if ((unsigned)options->require > MINL2R_EADR)
        return error_set(EINVAL, "options: require is %u, which is no medium",
                         (unsigned)options->require);
    if ((unsigned)options->commit > MINL2R_COMMIT_PROVE)
        return error_set(EINVAL, "options: commit is %u, which is no promise",
                         (unsigned)options->commit);
    for (size_t i = 0; i < sizeof(options->reserved) / sizeof(options->reserved[0]);
         i++)
        if (options->reserved[i] != 0)
            return error_set(EINVAL, "options: reserved[%zu] is %u, not 0", i,
                             options->reserved[i]);
    return 0;
}

static int check_create_options(const struct minl2r_options *options)
{
    uint32_t block_size = options->block_size;

    if (block_size != 0 &&
        (!is_power_of_two(block_size) || block_size < MINL2R_BLOCK_SIZE_MIN ||
         block_size > MINL2R_BLOCK_SIZE_MAX))
        return error_set(EINVAL,
                         "options: block_size is %u: a power of two from %u to %u",
                         block_size, MINL2R_BLOCK_SIZE_MIN, MINL2R_BLOCK_SIZE_MAX);
    if (options->lanes > MINL2R_LANES_MAX)
        return error_set(EINVAL, "options: lanes is %u: at most %u", options->lanes,
                         MINL2R_LANES_MAX);
    if (options->log_size != 0 &&
        (options->log_size < MINL2R_LOG_SIZE_MIN || options->log_size % PM_LINE != 0))
        return error_set(EINVAL, "options: log_size is %u: a multiple of %u from %u on",
                         options->log_size, PM_LINE, MINL2R_LOG_SIZE_MIN);
    if (options->mode > 07777)
        return error_set(EINVAL, "options: mode is 0%o, not permission bits",
                         options->mode);
    return options_check(options);
}

/* As many lanes as keep the logs under an eighth of the pool. One more is for commits.
 */
static uint32_t default_lanes(uint64_t pool_size, uint32_t log_size)
{
    uint64_t logs = pool_size / 8 / log_size;

    if (logs < 2)
        return 1;
    return logs > MINL2R_LANES_DEFAULT ? MINL2R_LANES_DEFAULT : (uint32_t)logs - 1;
}

static int plan_threshold(struct pm_super *super, uint32_t threshold)
{
    /* AUTO is half until both were tried. */
    if (threshold == MINL2R_POINTER_HALF || threshold == MINL2R_POINTER_AUTO)
        super->pointer_threshold = super->block_size / 2;
    else if (threshold == MINL2R_POINTER_NEVER)
        super->pointer_threshold = super->block_size + 1;
    else if (threshold <= super->block_size)
        super->pointer_threshold = threshold;
    else
        return error_set(EINVAL,
                         "options: pointer_threshold is %u: at most a block of %u",
                         threshold, super->block_size);
    return 0;
}

static int plan_spare(struct pm_super *super, uint32_t spare)
{
    uint64_t count =
        count_blocks(super->pool_size, super->zones_offset, super->block_size);
    uint64_t data = count - count_zones(count, super->block_size) - 1;

    super->spare_blocks = spare;
    if (spare == 0)
        super->spare_blocks =
            data / 16 < SPARE_DEFAULT_MAX ? data / 16 : SPARE_DEFAULT_MAX;
    if (super->spare_blocks >= data)
        return error_set(EINVAL, "options: spare_blocks is %u of %llu blocks in all",
                         spare, (ull)data);
    return 0;
}

static int plan_places(struct pm_super *super)
{
    uint32_t alignment = super->block_size > PM_PAGE ? super->block_size : PM_PAGE;

    super->lanes_offset = PM_PAGE;
    super->logs_offset = round_up(
        super->lanes_offset + super->lane_count * sizeof(struct pm_lane), PM_PAGE);
    super->zones_offset = round_up(
        super->logs_offset + super->lane_count * (uint64_t)super->log_size, alignment);
    uint64_t least = super->zones_offset + BLOCKS_MIN * (uint64_t)super->block_size;

    if (super->pool_size < least)
        return error_set(EINVAL,
                         "a pool of %llu bytes is too small for %u logs of %u bytes: "
                         "at least %llu",
                         (ull)super->pool_size, super->lane_count, super->log_size,
                         (ull)least);
    return 0;
}

int geometry_plan(struct pm_super *super, uint64_t size,
                  const struct minl2r_options *options)
{
    static const struct minl2r_options defaults;

    if (!options)
        options = &defaults;
    int result = check_create_options(options);

    if (result < 0)
        return result;
    if (size < MINL2R_POOL_SIZE_MIN || size > MINL2R_POOL_SIZE_MAX)
        return error_set(EINVAL, "a pool of %llu bytes: only %llu to %llu are possible",
                         (ull)size, (ull)MINL2R_POOL_SIZE_MIN,
                         (ull)MINL2R_POOL_SIZE_MAX);
    *super = (struct pm_super){
        .format = PM_FORMAT,
        .super_size = sizeof(*super),
        .block_size =
            options->block_size ? options->block_size : MINL2R_BLOCK_SIZE_DEFAULT,
        .log_size = options->log_size ? options->log_size : MINL2R_LOG_SIZE_DEFAULT,
    };
    super->pool_size = size & ~(uint64_t)(super->block_size - 1);
    super->lane_count =
        1 + (options->lanes ? options->lanes : default_lanes(size, super->log_size));
    result = plan_places(super);
    if (result == 0)
        result = plan_spare(super, options->spare_blocks);
    if (result == 0)
        result = plan_threshold(super, options->pointer_threshold);
    return result;
}
