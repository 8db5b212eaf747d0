/* SPDX-License-Identifier: BSD-3-Clause */
/* df, stat and stats: three views of what running daemons answer. */
#include "pmfs-proto/tools/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libminl2r/tools/console.h"
#include "pmfs-proto/fuse/status.h"
#include "pmfs-proto/tools/json.h"
#include "pmfs-proto/tools/mounts.h"

struct view {
    const char *name;
    const char *help;
    const char *heading; /* NULL: none */
    void (*print)(const struct mounted *where, const struct pmfs_status *status);
    void (*add)(cJSON *object, const struct pmfs_status *status);
};

/* A run of one command. */
struct run {
    const struct view *view;
    cJSON *list; /* NULL: for people */
    int status;  /* exit status so far */
    bool has_shown;
};

/* ---- Space ------------------------------------------------------------------- */

static double mib(const struct pmfs_statfs *fs, uint64_t blocks)
{
    return (double)blocks * fs->block_size / (1 << 20);
}

static void print_space(const struct mounted *where, const struct pmfs_status *status)
{
    const struct pmfs_statfs *fs = &status->statfs;
    uint64_t used = fs->blocks - fs->blocks_free;

    printf("%10.1f %10.1f %10.1f %4.0f%% %10" PRIu64 "  ", mib(fs, fs->blocks),
           mib(fs, used), mib(fs, fs->blocks_available),
           fs->blocks == 0 ? 0 : 100.0 * (double)used / (double)fs->blocks,
           fs->files - fs->files_free);
    utf8_print(stdout, where->pool);
    printf(" on ");
    utf8_print(stdout, where->mountpoint);
    putchar('\n');
}

static void add_space(cJSON *object, const struct pmfs_status *status)
{
    const struct pmfs_statfs *fs = &status->statfs;

    json_add_count(object, "block_size", fs->block_size);
    json_add_count(object, "blocks", fs->blocks);
    json_add_count(object, "blocks_free", fs->blocks_free);
    json_add_count(object, "blocks_available", fs->blocks_available);
    json_add_count(object, "files", fs->files);
    json_add_count(object, "files_free", fs->files_free);
}

/* ---- What it lies on --------------------------------------------------------- */

static void format_uuid(char text[37], const uint8_t uuid[16])
{
    for (unsigned i = 0, at = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            text[at++] = '-';
        at += (unsigned)snprintf(text + at, 3, "%02x", uuid[i]);
    }
}

static void print_text(const char *label, const char *text)
{
    printf("%s", label);
    utf8_print(stdout, text);
    putchar('\n');
}

static void print_place(const struct mounted *where, const struct pmfs_status *status)
{
    const struct minl2r_recovery *undone = &status->recovery;
    char uuid[37];

    format_uuid(uuid, status->uuid);
    print_text("pool               ", where->pool);
    print_text("mounted on         ", where->mountpoint);
    printf("served by          process %" PRId64 "\n", status->pid);
    printf("uuid               %s\n", uuid);
    printf("medium             %s: ",
           minl2r_medium_name((enum minl2r_medium)status->medium));
    print_text("", status->medium_reason);
    print_text("flushed by         ", status->flush_method);
    printf("size               %" PRIu64 " bytes\n", status->pool_size);
    printf("block size         %" PRIu32 " bytes\n", status->statfs.block_size);
    printf("pointer logging    from %" PRIu32 " changed bytes of a block on\n",
           status->pointer_threshold);
    printf("lanes              %" PRIu32 ", %" PRIu32 " bytes of log each\n",
           status->lanes, status->log_size);
    printf("undone at mount    %" PRIu64 " transactions, %" PRIu64 " records, %" PRIu64
           " bytes, %" PRIu64 " blocks\n",
           undone->lanes, undone->records, undone->bytes, undone->blocks);
    printf("finished at mount  %" PRIu64 " nameless files, %" PRIu64 " truncations\n",
           status->finished.orphans, status->finished.truncates);
}

static void add_place(cJSON *object, const struct pmfs_status *status)
{
    char uuid[37];

    format_uuid(uuid, status->uuid);
    json_add_count(object, "pid", (uint64_t)status->pid);
    cJSON_AddStringToObject(object, "uuid", uuid);
    cJSON_AddStringToObject(object, "medium",
                            minl2r_medium_name((enum minl2r_medium)status->medium));
    cJSON_AddStringToObject(object, "medium_reason", status->medium_reason);
    cJSON_AddStringToObject(object, "flush_method", status->flush_method);
    json_add_count(object, "pool_size", status->pool_size);
    json_add_count(object, "block_size", status->statfs.block_size);
    json_add_count(object, "pointer_threshold", status->pointer_threshold);
    json_add_count(object, "lanes", status->lanes);
    json_add_count(object, "log_size", status->log_size);
    json_add_count(object, "undone_transactions", status->recovery.lanes);
    json_add_count(object, "undone_records", status->recovery.records);
    json_add_count(object, "undone_bytes", status->recovery.bytes);
    json_add_count(object, "undone_blocks", status->recovery.blocks);
    json_add_count(object, "recovery_ns", status->recovery.ns);
    json_add_count(object, "finished_orphans", status->finished.orphans);
    json_add_count(object, "finished_truncates", status->finished.truncates);
}

/* ---- What it has cost -------------------------------------------------------- */

static const struct counter {
    const char *name;
    size_t offset;
} counters[] = {
    {"commits", offsetof(struct minl2r_stats, commits)},
    {"aborts", offsetof(struct minl2r_stats, aborts)},
    {"fences", offsetof(struct minl2r_stats, fences)},
    {"lines_flushed", offsetof(struct minl2r_stats, lines_flushed)},
    {"lines_streamed", offsetof(struct minl2r_stats, lines_streamed)},
    {"log_payload_bytes", offsetof(struct minl2r_stats, log_payload_bytes)},
    {"log_bytes", offsetof(struct minl2r_stats, log_bytes)},
    {"pm_bytes", offsetof(struct minl2r_stats, pm_bytes)},
    {"pointer_swaps", offsetof(struct minl2r_stats, pointer_swaps)},
    {"blocks_allocated", offsetof(struct minl2r_stats, blocks_allocated)},
    {"blocks_freed", offsetof(struct minl2r_stats, blocks_freed)},
};
#define COUNTER_COUNT (sizeof(counters) / sizeof(counters[0]))

static uint64_t counter_value(const struct pmfs_status *status, size_t index)
{
    uint64_t value;

    memcpy(&value, (const char *)&status->stats + counters[index].offset,
           sizeof(value));
    return value;
}

static void print_costs(const struct mounted *where, const struct pmfs_status *status)
{
    uint64_t commits = status->stats.commits;

    utf8_print(stdout, where->mountpoint);
    puts(", since it was mounted:");
    for (size_t i = 0; i < COUNTER_COUNT; i++) {
        uint64_t value = counter_value(status, i);
        double each = commits == 0 ? 0 : (double)value / (double)commits;
        printf("  %-18s %14" PRIu64 " %12.2f per commit\n", counters[i].name, value,
               each);
    }
    printf("  %-18s %14" PRIu64 " in memory now\n", "cached_inodes",
           status->cached_inodes);
}

static void add_costs(cJSON *object, const struct pmfs_status *status)
{
    for (size_t i = 0; i < COUNTER_COUNT; i++)
        json_add_count(object, counters[i].name, counter_value(status, i));
    json_add_count(object, "cached_inodes", status->cached_inodes);
}

/* ---- Asking ------------------------------------------------------------------ */

static int query(const char *path, struct pmfs_status *status)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int error = 0;

    if (fd < 0)
        return -errno;
    if (ioctl(fd, PMFS_IOC_STATUS, status) < 0)
        error = -errno;
    close(fd);
    /* Whoever mounts says what is there. */
    status->flush_method[sizeof(status->flush_method) - 1] = '\0';
    status->medium_reason[sizeof(status->medium_reason) - 1] = '\0';
    return error;
}

/* `path` is a mount point, the pool of a mount, or anything inside one. */
static int find_mount(const char *path, struct mounted *found)
{
    char place[PATH_MAX];
    int error = mounts_resolve(path, place);

    if (error < 0)
        return error;
    if (mounts_find_pool(place, found))
        return 0;
    while (!mounts_find_at(place, found)) {
        char *slash = strrchr(place, '/');
        if (slash == NULL || slash == place)
            return -ENOTTY;
        *slash = '\0';
    }
    return 0;
}

static void fail(struct run *run, const char *path, int error)
{
    const char *why = error == -ENOTTY ? "no pmfs is mounted here" : strerror(-error);
    char who[16];

    snprintf(who, sizeof(who), "pmfs %s", run->view->name);
    console_fail(who, path, why);
    run->status = PLAIN_EXIT_FAILED;
    if (run->list == NULL)
        return;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(run->list, object);
    cJSON_AddStringToObject(object, "path", path);
    cJSON_AddStringToObject(object, "error", why);
}

static void print_heading(const struct run *run)
{
    if (run->list == NULL && !run->has_shown && run->view->heading != NULL)
        puts(run->view->heading);
}

static void show(void *arg, const struct mounted *where)
{
    struct run *run = arg;
    struct pmfs_status status = {0};
    int error = query(where->mountpoint, &status);

    if (error < 0) {
        fail(run, where->mountpoint, error);
        return;
    }
    if (run->list == NULL) {
        print_heading(run);
        if (run->has_shown && run->view->heading == NULL)
            putchar('\n');
        run->has_shown = true;
        run->view->print(where, &status);
        return;
    }
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToArray(run->list, object);
    cJSON_AddStringToObject(object, "pool", where->pool);
    cJSON_AddStringToObject(object, "mountpoint", where->mountpoint);
    run->view->add(object, &status);
}

static void show_path(struct run *run, const char *path)
{
    struct mounted where;
    int error = find_mount(path, &where);

    if (error < 0)
        fail(run, path, error);
    else
        show(run, &where);
}

static int run_view(const struct view *view, int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct run run = {.view = view};
    int option;

    while ((option = getopt_long(argc, argv, "j", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(view->help, stdout);
            return 0;
        }
        if (option == '?') {
            fprintf(stderr, "Try: pmfs %s --help\n", view->name);
            return PLAIN_EXIT_USAGE;
        }
        run.list = run.list == NULL ? cJSON_CreateArray() : run.list;
    }
    for (int i = optind; i < argc; i++)
        show_path(&run, argv[i]);
    if (optind == argc)
        mounts_visit(show, &run);
    if (run.status == 0)
        print_heading(&run); /* of nothing, if nothing is mounted */
    if (run.list != NULL)
        json_print(run.list);
    cJSON_Delete(run.list);
    return run.status;
}

#define ARGUMENTS_HELP                                                                 \
    "Each PATH is a mount point, the pool of a mount, or anything inside one; "        \
    "without one,\n"                                                                   \
    "all mounts are shown.\n\n"                                                        \
    "  -j, --json   an array of objects; with a member \"error\" where there is "      \
    "nothing\n"                                                                        \
    "      --help\n\n"                                                                 \
    "Exit status: 0 shown, 1 failed, 2 wrong usage.\n"

int cmd_df(int argc, char **argv)
{
    static const struct view view = {
        .name = "df",
        .help = "Usage: pmfs df [--json] [PATH ...]\n\n"
                "Space and inodes of mounted filesystems. What is kept so that a full "
                "one can\n"
                "still be changed is neither used nor available.\n\n" ARGUMENTS_HELP,
        .heading = "       MiB       used  available  use%     inodes  filesystem",
        .print = print_space,
        .add = add_space,
    };

    return run_view(&view, argc, argv);
}

int cmd_stat(int argc, char **argv)
{
    static const struct view view = {
        .name = "stat",
        .help = "Usage: pmfs stat [--json] [PATH ...]\n\n"
                "What mounted filesystems lie on, and what mounting them "
                "undid.\n\n" ARGUMENTS_HELP,
        .print = print_place,
        .add = add_place,
    };

    return run_view(&view, argc, argv);
}

int cmd_stats(int argc, char **argv)
{
    static const struct view view = {
        .name = "stats",
        .help =
            "Usage: pmfs stats [--json] [PATH ...]\n\n"
            "What the transactions of mounted filesystems have cost since they were\n"
            "mounted, and how many inodes are in the daemon's memory. A fence is one "
            "that had\n"
            "something to wait for; a line is 64 bytes.\n\n" ARGUMENTS_HELP,
        .print = print_costs,
        .add = add_costs,
    };

    return run_view(&view, argc, argv);
}
