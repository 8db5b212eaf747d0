/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/tools/tool.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/error.h"
#include "libminl2r/tools/size.h"
#include "libminl2r/tools/utf8.h"

char tool_name[32] = "minl2r";

/* ---- Values of options ----------------------------------------------------------- */

bool tool_bad_value(const char *option, const char *text, const char *expected)
{
    fprintf(stderr, "%s: --%s: \"%s\" is not %s\n", tool_name, option, text, expected);
    return false;
}

#define A_SIZE "a size like 4096, 64M or 0x1000"

bool tool_parse_size(const char *option, const char *text, uint64_t *value)
{
    return size_parse(text, value) || tool_bad_value(option, text, A_SIZE);
}

static bool parse_u32(const char *option, const char *text, const char *expected,
                      uint32_t *value)
{
    uint64_t number;

    if (!size_parse(text, &number))
        return tool_bad_value(option, text, expected);
    if (number == 0 || number > UINT32_MAX)
        return tool_bad_value(option, text, "a number from 1 on, below 4G");
    *value = (uint32_t)number;
    return true;
}

bool tool_parse_u32_size(const char *option, const char *text, uint32_t *value)
{
    return parse_u32(option, text, A_SIZE, value);
}

bool tool_parse_count(const char *option, const char *text, uint32_t *value)
{
    return parse_u32(option, text, "a count like 32", value);
}

bool tool_parse_medium(const char *text, enum minl2r_medium *medium)
{
    for (enum minl2r_medium i = MINL2R_EMULATED; i <= MINL2R_EADR; i++)
        if (strcmp(text, minl2r_medium_name(i)) == 0) {
            *medium = i;
            return true;
        }
    return tool_bad_value("require", text, "emulated, file, dax or eadr");
}

/* ---- Output: gathering ----------------------------------------------------------- */

void tool_add_u64(cJSON *object, const char *name, uint64_t value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%" PRIu64, value);
    cJSON_AddRawToObject(object, name, digits);
}

void tool_add_hex(cJSON *object, const char *name, const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;
    char *text = malloc(2 * size + 1);

    if (!text)
        return;
    text[0] = '\0';
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", byte[i]);
    cJSON_AddStringToObject(object, name, text);
    free(text);
}

enum tool_exit tool_error(cJSON *out, int result)
{
    cJSON_AddStringToObject(out, "error", minl2r_errormsg());
    return result == -EUCLEAN ? TOOL_DAMAGED : TOOL_FAILED;
}

/* ---- Output: text ---------------------------------------------------------------- */

static bool is_tree(const cJSON *item)
{
    return cJSON_IsObject(item) || cJSON_IsArray(item);
}

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text);

    return length >= strlen(end) && strcmp(text + length - strlen(end), end) == 0;
}

/* Sizes of even KiB, MiB, ... are said in those too. */
static void print_size(uint64_t size)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    int unit = -1;

    for (; size != 0 && size % 1024 == 0 && unit < 3; unit++)
        size /= 1024;
    if (unit >= 0)
        printf(" (%" PRIu64 " %s)", size, units[unit]);
}

/* Some of it lies on media, and may hold anything. */
static void print_text(const char *text)
{
    char shown[4 * 4 + 1];

    for (size_t length; *text != '\0'; text += length) {
        length = utf8_length(text);
        length = length > 0 ? length : 1;
        utf8_escape(text, length, shown);
        fputs(shown, stdout);
    }
}

static void print_scalar(const cJSON *item)
{
    if (cJSON_IsBool(item)) {
        printf("%s", cJSON_IsTrue(item) ? "yes" : "no");
        return;
    }
    print_text(item->valuestring);
    if (cJSON_IsRaw(item) && item->string && ends_with(item->string, "size"))
        print_size(strtoull(item->valuestring, NULL, 10));
}

/* The scalars of one element of an array, in one line. */
static void print_row(const cJSON *row)
{
    const char *separator = "";
    const cJSON *item;

    cJSON_ArrayForEach(item, row)
    {
        if (is_tree(item))
            continue;
        printf("%s%s ", separator, item->string);
        print_scalar(item);
        separator = ", ";
    }
    printf("\n");
}

/* `is_row`: its scalars are printed already. */
static void print_tree(const cJSON *tree, int depth, bool is_row)
{
    const cJSON *item;

    cJSON_ArrayForEach(item, tree)
    {
        if (is_row && !is_tree(item))
            continue;
        printf("%*s", 2 * depth, "");
        if (item->string)
            printf("%s:", item->string);
        if (!is_tree(item)) {
            printf(item->string ? " " : "");
            print_scalar(item);
            printf("\n");
        } else if (!item->string) {
            print_row(item);
            print_tree(item, depth + 1, true); /* as deep as the tool nests: four */
        } else if (!item->child) {
            printf(" none\n");
        } else {
            printf("\n");
            print_tree(item, depth + 1, false);
        }
    }
}

static void print_json(const cJSON *out)
{
    char *text = cJSON_Print(out);

    if (text) {
        utf8_print_json(stdout, text);
        puts("");
    }
    free(text);
}

void tool_print(const cJSON *out, bool json)
{
    if (json)
        print_json(out);
    else if (!cJSON_GetObjectItem(out, "error") || cJSON_GetArraySize(out) > 2)
        print_tree(out, 0, false);
}

void tool_add_lane(cJSON *lane, const struct minl2r_pool *pool, uint32_t index)
{
    tool_add_u64(lane, "lane", index);
    if (index == pool->geo.lane_count - 1)
        cJSON_AddTrueToObject(lane, "kept_for_commits");
}

/* ---- Pools to look at ------------------------------------------------------------ */

int view_map(struct view *view, const char *path)
{
    *view = (struct view){0};
    return pool_file_open(path, NULL, false, &view->pm, &view->fd);
}

int view_attach(struct view *view)
{
    struct minl2r_pool *pool = calloc(1, sizeof(*pool));

    if (!pool)
        return error_set(ENOMEM, "no memory");
    int result = pool_attach(pool, &view->pm, NULL);

    if (result < 0)
        free(pool);
    else
        view->pool = pool;
    return result;
}

void view_close(struct view *view)
{
    if (view->pool) {
        pool_detach(view->pool);
        free(view->pool);
    }
    pool_file_close(&view->pm, view->fd);
}

static void add_threshold(cJSON *out, const struct minl2r_info *info)
{
    if (info->pointer_threshold > info->block_size)
        cJSON_AddStringToObject(out, "pointer_threshold", "never");
    else
        tool_add_u64(out, "pointer_threshold", info->pointer_threshold);
}

void tool_add_info(cJSON *out, struct minl2r_pool *pool)
{
    struct minl2r_info info;

    minl2r_pool_info(pool, &info);
    cJSON_AddStringToObject(out, "layout", info.layout);
    tool_add_hex(out, "uuid", info.uuid, sizeof(info.uuid));
    tool_add_u64(out, "format", info.format);
    cJSON_AddStringToObject(out, "medium", minl2r_medium_name(info.medium));
    cJSON_AddStringToObject(out, "medium_reason", info.medium_reason);
    cJSON_AddStringToObject(out, "flush_method", info.flush_method);
    tool_add_u64(out, "pool_size", info.pool_size);
    tool_add_u64(out, "block_size", info.block_size);
    tool_add_u64(out, "lanes", info.lanes);
    tool_add_u64(out, "lanes_kept_for_commits", pool->geo.lane_count - info.lanes);
    tool_add_u64(out, "log_size", info.log_size);
    add_threshold(out, &info);
    tool_add_u64(out, "blocks", info.blocks);
    tool_add_u64(out, "blocks_free", info.blocks_free);
    tool_add_u64(out, "blocks_spare", info.blocks_spare);
}
