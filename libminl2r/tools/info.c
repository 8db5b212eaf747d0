/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/log.h"
#include "libminl2r/tools/tool.h"

/* Transactions that the next open will undo; -EUCLEAN if a log is damaged. */
static int count_unfinished(struct minl2r_pool *pool, uint64_t *count)
{
    *count = 0;
    for (uint32_t lane = 0; lane < pool->geo.lane_count; lane++) {
        struct log_live live;
        int result = log_validate(pool, lane, &live);

        if (result < 0)
            return result;
        *count += live.last != 0;
    }
    return 0;
}

static int add_all(struct view *view, cJSON *out)
{
    uint64_t unfinished;
    int result = view_attach(view);

    if (result < 0)
        return result;
    tool_add_info(out, view->pool);
    result = count_unfinished(view->pool, &unfinished);
    if (result == 0)
        tool_add_u64(out, "unfinished_transactions", unfinished);
    return result;
}

static enum tool_exit run(const char *path, cJSON *out)
{
    struct view view;
    int result = view_map(&view, path);

    if (result < 0)
        return tool_error(out, result);
    result = add_all(&view, out);
    enum tool_exit code = result < 0 ? tool_error(out, result) : TOOL_OK;

    view_close(&view);
    return code;
}

const struct command command_info = {
    .name = "info",
    .summary = "Shows what a pool is and what keeps its bytes, without changing it",
    .help = "",
    .run = run,
};
