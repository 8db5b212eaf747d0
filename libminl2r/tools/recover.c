/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/tools/tool.h"

static void add_recovery(cJSON *out, const struct minl2r_recovery *recovery)
{
    cJSON_AddBoolToObject(out, "undone", recovery->lanes > 0);
    tool_add_u64(out, "transactions", recovery->lanes);
    tool_add_u64(out, "batches", recovery->batches);
    tool_add_u64(out, "records", recovery->records);
    tool_add_u64(out, "bytes", recovery->bytes);
    tool_add_u64(out, "blocks", recovery->blocks);
    tool_add_u64(out, "ns", recovery->ns);
}

static enum tool_exit run(const char *path, cJSON *out)
{
    struct minl2r_pool *pool;
    struct minl2r_info info;
    int result = minl2r_pool_open(path, NULL, NULL, &pool);

    if (result < 0)
        return tool_error(out, result);
    minl2r_pool_info(pool, &info);
    add_recovery(out, &info.recovery);
    result = minl2r_pool_close(pool);
    return result < 0 ? tool_error(out, result) : TOOL_OK;
}

const struct command command_recover = {
    .name = "recover",
    .summary = "Undoes what a crash left unfinished, as the next open would",
    .help = "",
    .run = run,
};
