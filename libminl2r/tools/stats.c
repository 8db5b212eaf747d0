/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/tools/tool.h"

struct runs {
    uint64_t free;
    uint64_t count;
    uint64_t longest;
};

static bool is_free(const struct minl2r_pool *pool, uint64_t index)
{
    uint64_t word = index & ~(uint64_t)63;
    uint64_t used =
        pm_load64(pool_bitmap_word(pool, word)) | bitmap_fixed_bits(&pool->geo, word);

    return (used >> index % 64 & 1) == 0;
}

static struct runs free_runs(const struct minl2r_pool *pool, uint64_t zone)
{
    uint64_t first = zone << pool->geo.zone_shift;
    uint64_t end = (zone + 1) << pool->geo.zone_shift;
    struct runs runs = {0};
    uint64_t length = 0;

    if (end > pool->geo.block_count)
        end = pool->geo.block_count;
    for (uint64_t index = first; index < end; index++) {
        length = is_free(pool, index) ? length + 1 : 0;
        runs.free += length > 0;
        runs.count += length == 1;
        if (length > runs.longest)
            runs.longest = length;
    }
    return runs;
}

/* Of the bitmaps on media: an unfinished transaction counts as it stands there. */
static void add_space(cJSON *out, const struct minl2r_pool *pool)
{
    const struct geometry *geo = &pool->geo;
    uint64_t blocks = geo->block_count - geo->zone_count - 1;
    struct runs all = {0};

    for (uint64_t zone = 0; zone < geo->zone_count; zone++) {
        struct runs runs = free_runs(pool, zone);

        all.free += runs.free;
        all.count += runs.count;
        if (runs.longest > all.longest)
            all.longest = runs.longest;
    }
    tool_add_u64(out, "block_size", geo->block_size);
    tool_add_u64(out, "blocks", blocks);
    tool_add_u64(out, "blocks_used", blocks - all.free);
    tool_add_u64(out, "blocks_free", all.free);
    tool_add_u64(out, "blocks_spare", geo->spare_blocks);
    tool_add_u64(out, "free_runs", all.count);
    tool_add_u64(out, "free_run_blocks_max", all.longest);
    tool_add_u64(out, "used_size", (blocks - all.free) << geo->block_shift);
    tool_add_u64(out, "free_size", all.free << geo->block_shift);
    tool_add_u64(out, "overhead_size", geo->pool_size - (blocks << geo->block_shift));
}

/* A lane's generations: one for each logged transaction that ended in it, and for each
 * recovery, that is, opening. */
static void add_generations(cJSON *out, const struct minl2r_pool *pool)
{
    cJSON *lanes = cJSON_CreateArray();
    uint64_t sum = 0;

    for (uint32_t i = 0; i < pool->geo.lane_count; i++) {
        cJSON *lane = cJSON_CreateObject();
        uint64_t settled = pm_load64(&pool_lane(pool, i)->settled);

        tool_add_lane(lane, pool, i);
        tool_add_u64(lane, "generations", settled);
        cJSON_AddItemToArray(lanes, lane);
        sum += settled;
    }
    tool_add_u64(out, "generations", sum);
    cJSON_AddItemToObject(out, "lanes", lanes);
}

static enum tool_exit run(const char *path, cJSON *out)
{
    struct view view;
    int result = view_map(&view, path);

    if (result < 0)
        return tool_error(out, result);
    result = view_attach(&view);
    if (result == 0) {
        add_space(out, view.pool);
        add_generations(out, view.pool);
    }
    enum tool_exit code = result < 0 ? tool_error(out, result) : TOOL_OK;

    view_close(&view);
    return code;
}

const struct command command_stats = {
    .name = "stats",
    .summary = "Shows how a pool's space and lanes are used, without changing it",
    .help = "",
    .run = run,
};
