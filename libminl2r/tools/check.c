/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "libminl2r/tools/tool.h"

static void add_problem(void *problems, const char *what)
{
    cJSON_AddItemToArray(problems, cJSON_CreateString(what));
}

/* What lies in the pool may have a check of its own. */
static void add_hint(const char *path, cJSON *out)
{
    struct view view;

    if (view_map(&view, path) < 0)
        return;
    if (view_attach(&view) == 0 && strcmp(pool_super(view.pool)->layout, "pmfs") == 0)
        cJSON_AddStringToObject(out, "hint",
                                "a filesystem: `pmfs fsck` looks at its files, too");
    view_close(&view);
}

static enum tool_exit run(const char *path, cJSON *out)
{
    cJSON *problems = cJSON_CreateArray();
    int result = minl2r_pool_check(path, add_problem, problems);

    if (result < 0 && result != -EUCLEAN) {
        cJSON_Delete(problems);
        return tool_error(out, result);
    }
    cJSON_AddBoolToObject(out, "consistent", result == 0);
    cJSON_AddItemToObject(out, "problems", problems);
    add_hint(path, out);
    return result == 0 ? TOOL_OK : TOOL_DAMAGED;
}

const struct command command_check = {
    .name = "check",
    .summary = "Verifies a pool without changing it; names each broken invariant and "
               "its place",
    .help = "",
    .run = run,
};
