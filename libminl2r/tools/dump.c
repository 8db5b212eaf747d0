/* SPDX-License-Identifier: BSD-3-Clause */
/* dump - what lies on media: superblock, lanes with their live logs, zones; or plain
 * bytes. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libminl2r/error.h"
#include "libminl2r/log.h"
#include "libminl2r/tools/tool.h"

#define ROW 16
#define SHOWN_MAX 32 /* bytes of an undo record */

static uint64_t range_offset;
static uint64_t range_length = 256;
static bool range_given;

static bool set(int option, const char *value)
{
    range_given = true;
    return option == 'o' ? tool_parse_size("offset", value, &range_offset)
                         : tool_parse_size("length", value, &range_length);
}

/* ---- Bytes ----------------------------------------------------------------------- */

static void add_row(cJSON *rows, uint64_t offset, const uint8_t *bytes, size_t size)
{
    cJSON *row = cJSON_CreateObject();
    char text[ROW + 1] = {0};

    for (size_t i = 0; i < size; i++)
        text[i] = isprint(bytes[i]) ? (char)bytes[i] : '.';
    tool_add_u64(row, "offset", offset);
    tool_add_hex(row, "hex", bytes, size);
    cJSON_AddStringToObject(row, "text", text);
    cJSON_AddItemToArray(rows, row);
}

static void add_device_bytes(cJSON *rows, const struct pm *pm)
{
    uint64_t start = range_offset < pm->size ? range_offset : pm->size;
    uint64_t left = pm->size - start < range_length ? pm->size - start : range_length;

    for (uint64_t offset = start; left > 0;) {
        uint64_t size = left < ROW ? left : ROW;

        add_row(rows, offset, pm->base + offset, size);
        offset += size;
        left -= size;
    }
}

static int add_file_bytes(cJSON *rows, int fd)
{
    uint64_t offset = range_offset, left = range_length;
    uint8_t bytes[ROW];

    while (left > 0 && offset <= INT64_MAX - ROW) {
        ssize_t got = pread(fd, bytes, left < ROW ? left : ROW, (off_t)offset);

        if (got < 0)
            return error_set(errno, "cannot read: %s", strerror(errno));
        if (got == 0)
            break;
        add_row(rows, offset, bytes, (size_t)got);
        offset += (uint64_t)got;
        left -= (uint64_t)got;
    }
    return 0;
}

/* A device is mapped: it cannot be read. */
static int dump_device(const char *path, cJSON *out)
{
    struct view view;
    int result = view_map(&view, path);

    if (result < 0)
        return result;
    add_device_bytes(cJSON_AddArrayToObject(out, "bytes"), &view.pm);
    view_close(&view);
    return 0;
}

static int dump_file(int fd, cJSON *out)
{
    cJSON *rows = cJSON_CreateArray();
    int result = add_file_bytes(rows, fd);

    if (result < 0)
        cJSON_Delete(rows);
    else
        cJSON_AddItemToObject(out, "bytes", rows);
    return result;
}

/* What is asked for and lies in the file, be it a pool or not. */
static int dump_bytes(const char *path, cJSON *out)
{
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    struct stat status;

    if (fd < 0)
        return error_set(errno, "cannot open %s: %s", path, strerror(errno));
    bool is_device = fstat(fd, &status) == 0 && S_ISCHR(status.st_mode);
    int result = is_device ? dump_device(path, out) : dump_file(fd, out);

    close(fd);
    return result;
}

/* ---- Superblock ------------------------------------------------------------------ */

static void add_super(cJSON *out, const struct pm_super *super)
{
    cJSON *object = cJSON_AddObjectToObject(out, "superblock");
    char layout[sizeof(super->layout) + 1] = {0};

    for (size_t i = 0; i < sizeof(super->layout) && super->layout[i] != 0; i++)
        layout[i] = isprint((uint8_t)super->layout[i]) ? super->layout[i] : '?';
    tool_add_hex(object, "magic", super->magic, sizeof(super->magic));
    tool_add_u64(object, "format", super->format);
    tool_add_u64(object, "super_size", super->super_size);
    tool_add_u64(object, "features_compat", super->features_compat);
    tool_add_u64(object, "features_ro", super->features_ro);
    tool_add_u64(object, "features_incompat", super->features_incompat);
    tool_add_hex(object, "uuid", super->uuid, sizeof(super->uuid));
    cJSON_AddStringToObject(object, "layout", layout);
    tool_add_u64(object, "pool_size", super->pool_size);
    tool_add_u64(object, "reserved_size", super->reserved_size);
    tool_add_u64(object, "block_size", super->block_size);
    tool_add_u64(object, "lane_count", super->lane_count);
    tool_add_u64(object, "lanes_offset", super->lanes_offset);
    tool_add_u64(object, "logs_offset", super->logs_offset);
    tool_add_u64(object, "zones_offset", super->zones_offset);
    tool_add_u64(object, "log_size", super->log_size);
    tool_add_u64(object, "pointer_threshold", super->pointer_threshold);
    tool_add_u64(object, "spare_blocks", super->spare_blocks);
    tool_add_u64(object, "created_s", super->created_s);
    tool_add_hex(object, "checksum", &super->checksum, sizeof(super->checksum));
}

/* ---- Lanes ----------------------------------------------------------------------- */

static const char *type_name(uint32_t type)
{
    switch (type) {
    case PM_UNDO:
        return "undo";
    case PM_ALLOC:
        return "alloc";
    case PM_FREE:
        return "free";
    case PM_SWAP:
        return "swap";
    case PM_LINK:
        return "link";
    case PM_CHANGE:
        return "change";
    case PM_SLOT:
        return "slot";
    default:
        return "unknown";
    }
}

static void add_record(void *records, const struct pm_record *record,
                       const void *payload)
{
    cJSON *object = cJSON_CreateObject();
    const struct pm_swap *swap = payload;

    cJSON_AddStringToObject(object, "type", type_name(record->type));
    tool_add_u64(object, "target", record->target);
    tool_add_u64(object, "length", record->length);
    if (record->type == PM_UNDO || record->type == PM_CHANGE)
        tool_add_hex(object, record->length > SHOWN_MAX ? "first_bytes" : "bytes",
                     payload, record->length > SHOWN_MAX ? SHOWN_MAX : record->length);
    if (record->type == PM_SWAP || record->type == PM_SLOT) {
        tool_add_u64(object, "old_block", swap->old_block);
        tool_add_u64(object, "new_block", swap->new_block);
    }
    cJSON_AddItemToArray(records, object);
}

/* In the order in which the next open undoes them. */
static void add_live(cJSON *out, struct minl2r_pool *pool, const struct log_live *live)
{
    static uint8_t scratch[PM_BATCH_SIZE_MAX];
    cJSON *object = cJSON_AddObjectToObject(out, "unfinished");

    tool_add_u64(object, "generation", live->generation);
    tool_add_u64(object, "batches", live->batches);
    cJSON *records = cJSON_AddArrayToObject(object, "records_newest_first");

    for (uint64_t offset = live->last; offset != 0;)
        offset = log_visit_batch(pool, offset, scratch, add_record, records);
}

static int add_lane(cJSON *lanes, struct minl2r_pool *pool, uint32_t index)
{
    cJSON *object = cJSON_CreateObject();
    struct log_live live;
    int result = log_validate(pool, index, &live);

    tool_add_lane(object, pool, index);
    tool_add_u64(object, "settled", pm_load64(&pool_lane(pool, index)->settled));
    tool_add_u64(object, "word", pm_load64(&pool_lane(pool, index)->word));
    tool_add_u64(object, "log_offset", pool_log_offset(pool, index));
    if (result < 0)
        cJSON_AddStringToObject(object, "error", minl2r_errormsg());
    else if (live.last != 0)
        add_live(object, pool, &live);
    cJSON_AddItemToArray(lanes, object);
    return result;
}

static int add_lanes(cJSON *out, struct minl2r_pool *pool)
{
    cJSON *lanes = cJSON_AddArrayToObject(out, "lanes");
    uint32_t damaged = 0;

    for (uint32_t index = 0; index < pool->geo.lane_count; index++)
        damaged += add_lane(lanes, pool, index) < 0;
    if (damaged == 0)
        return 0;
    return error_set(EUCLEAN, "%u logs are damaged", damaged);
}

/* ---- Zones ----------------------------------------------------------------------- */

static void add_zone(cJSON *zones, const struct minl2r_pool *pool, uint64_t zone)
{
    const struct geometry *geo = &pool->geo;
    uint64_t first = zone << geo->zone_shift;
    uint64_t end = (zone + 1) << geo->zone_shift;
    cJSON *object = cJSON_CreateObject();
    uint64_t free_blocks = 0;

    for (uint64_t index = first; index < end; index += 64)
        free_blocks += (uint64_t)__builtin_popcountll(~(
            pm_load64(pool_bitmap_word(pool, index)) | bitmap_fixed_bits(geo, index)));
    tool_add_u64(object, "zone", zone);
    tool_add_u64(object, "offset", block_offset(geo, first));
    tool_add_u64(object, "blocks",
                 (end < geo->block_count ? end : geo->block_count) - first);
    tool_add_u64(object, "blocks_free", free_blocks);
    cJSON_AddItemToArray(zones, object);
}

static void add_root(cJSON *out, const struct minl2r_pool *pool)
{
    const struct pm_root *root = pool_root_block(pool);
    cJSON *object = cJSON_AddObjectToObject(out, "root");

    tool_add_u64(object, "offset", root->offset);
    tool_add_u64(object, "size", root->size);
}

static int add_structures(cJSON *out, struct view *view)
{
    add_super(out, (const struct pm_super *)view->pm.base);
    int result = view_attach(view);

    if (result < 0)
        return result;
    add_root(out, view->pool);
    result = add_lanes(out, view->pool);
    cJSON *zones = cJSON_AddArrayToObject(out, "zones");

    for (uint64_t zone = 0; zone < view->pool->geo.zone_count; zone++)
        add_zone(zones, view->pool, zone);
    return result;
}

/* ---- All ------------------------------------------------------------------------- */

static int dump_structures(const char *path, cJSON *out)
{
    struct view view;
    int result = view_map(&view, path);

    if (result < 0)
        return result;
    result = add_structures(out, &view);
    view_close(&view);
    return result;
}

static enum tool_exit run(const char *path, cJSON *out)
{
    int result = range_given ? dump_bytes(path, out) : dump_structures(path, out);

    return result < 0 ? tool_error(out, result) : TOOL_OK;
}

const struct command command_dump = {
    .name = "dump",
    .summary =
        "Shows what lies on media: superblock, root, lanes, unfinished logs, zones",
    .help = "  --offset OFFSET       bytes from here on in place of all that; of any "
            "file, pool "
            "or not\n"
            "  --length SIZE         how many of them; 256\n",
    .options =
        (const struct option[]){
            {"offset", required_argument, NULL, 'o'},
            {"length", required_argument, NULL, 'l'},
            {0},
        },
    .set = set,
    .run = run,
};
