/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libminl2r/tools/tool.h"

static struct minl2r_options options;
static const char *layout = "";
static uint64_t size;
static bool is_size_given;

static bool set_threshold_size(const char *text)
{
    if (*text < '0' || *text > '9')
        return tool_bad_value("pointer-threshold", text,
                              "half, auto, always, never or a size like 4096");
    return tool_parse_u32_size("pointer-threshold", text, &options.pointer_threshold);
}

static bool set_threshold(const char *text)
{
    if (strcmp(text, "half") == 0)
        options.pointer_threshold = MINL2R_POINTER_HALF;
    else if (strcmp(text, "auto") == 0)
        options.pointer_threshold = MINL2R_POINTER_AUTO;
    else if (strcmp(text, "always") == 0)
        options.pointer_threshold = MINL2R_POINTER_ALWAYS;
    else if (strcmp(text, "never") == 0)
        options.pointer_threshold = MINL2R_POINTER_NEVER;
    else
        return set_threshold_size(text);
    return true;
}

static bool set_mode(const char *text)
{
    char *end;
    unsigned long mode = strtoul(text, &end, 8);

    if (*text < '0' || *text > '7' || *end != '\0' || mode > 07777)
        return tool_bad_value("mode", text, "octal permission bits");
    options.mode = (uint32_t)mode;
    return true;
}

static bool set(int option, const char *value)
{
    switch (option) {
    case 's':
        is_size_given = true;
        return tool_parse_size("size", value, &size);
    case 'l':
        layout = value;
        return true;
    case 'b':
        return tool_parse_u32_size("block-size", value, &options.block_size);
    case 'n':
        return tool_parse_count("lanes", value, &options.lanes);
    case 'g':
        return tool_parse_u32_size("log-size", value, &options.log_size);
    case 'p':
        return set_threshold(value);
    case 'k':
        return tool_parse_count("spare-blocks", value, &options.spare_blocks);
    case 'm':
        return set_mode(value);
    default:
        return tool_parse_medium(value, &options.require);
    }
}

static bool is_device(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 &&
           (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode));
}

static enum tool_exit run(const char *path, cJSON *out)
{
    struct minl2r_pool *pool;
    struct pm_super plan;

    if (!is_size_given && !is_device(path)) {
        cJSON_AddStringToObject(out, "error",
                                "--size is missing; only a device has its own size");
        return TOOL_USAGE;
    }
    if (is_size_given && geometry_plan(&plan, size, &options) < 0) {
        tool_error(out, -EINVAL);
        return TOOL_USAGE;
    }
    int result = minl2r_pool_create(path, layout, size, &options, &pool);

    if (result < 0)
        return tool_error(out, result);
    tool_add_info(out, pool);
    minl2r_pool_close(pool);
    return TOOL_OK;
}

const struct command command_create = {
    .name = "create",
    .summary = "Creates a pool",
    .help =
        "  --size SIZE           bytes, K, M, G or T; not needed for a device\n"
        "  --layout NAME         what the program keeps in it; empty if not given\n"
        "  --block-size SIZE     a power of two from 512 to 64K; 4K\n"
        "  --lanes COUNT         transactions that may log at once; by the pool's "
        "size\n"
        "  --log-size SIZE       log that a lane has before it grows; 16K\n"
        "  --pointer-threshold half|auto|always|never|SIZE\n"
        "                        changed bytes of a block from which on it is swapped; "
        "half.\n"
        "                        auto: from where that is faster here, which is tried "
        "out\n"
        "  --spare-blocks COUNT  blocks kept for logs and swaps; by the pool's size\n"
        "  --mode OCTAL          permission bits; 0600\n"
        "  --require emulated|file|dax|eadr\n"
        "                        refuse a lesser medium\n",
    .options =
        (const struct option[]){
            {"size", required_argument, NULL, 's'},
            {"layout", required_argument, NULL, 'l'},
            {"block-size", required_argument, NULL, 'b'},
            {"lanes", required_argument, NULL, 'n'},
            {"log-size", required_argument, NULL, 'g'},
            {"pointer-threshold", required_argument, NULL, 'p'},
            {"spare-blocks", required_argument, NULL, 'k'},
            {"mode", required_argument, NULL, 'm'},
            {"require", required_argument, NULL, 'r'},
            {0},
        },
    .set = set,
    .run = run,
};
