/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/tools/commands.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "include/pmfs.h"
#include "libminl2r/tools/console.h"
#include "pmfs-proto/tools/json.h"

static const char help[] =
    "Usage: pmfs fsck [--json] POOL\n\n"
    "Verifies the filesystem in POOL, which must not be "
    "mounted, as the next mount would see\n"
    "it: what a crash left unfinished, and mounting undoes or "
    "finishes, is no error. Never\n"
    "writes.\n\n"
    "  -j, --json   findings and summary, or the error, as one JSON object\n"
    "      --help\n"
    "  -a, -p, -n, -y, -f, -r, -V, -C FD, -T\n"
    "               accepted for fsck(8); without effect\n\n"
    "Exit status: 0 consistent, 4 errors found, 8 could not be "
    "checked, 16 wrong usage.\n";

static void print_finding(void *arg, const char *what)
{
    (void)arg;
    printf("%s\n", what);
}

static void add_finding(void *arg, const char *what)
{
    cJSON *finding = cJSON_CreateString(what);

    if (!cJSON_AddItemToArray(arg, finding))
        cJSON_Delete(finding);
}

static void print_summary(const char *pool, bool clean,
                          const struct pmfs_fsck_summary *summary)
{
    printf("%s: %s: %" PRIu64 " files, %" PRIu64 " directories, %" PRIu64
           " symbolic links, %" PRIu64 " others; %" PRIu64 " blocks used, %" PRIu64
           " free\n",
           pool, clean ? "clean" : "NOT consistent", summary->files,
           summary->directories, summary->symlinks, summary->others,
           summary->blocks_used, summary->blocks_free);
    if (!clean)
        printf("%s: %" PRIu64 " findings\n", pool, summary->findings);
    if (summary->orphans > 0 || summary->truncates > 0)
        printf("%s: the next mount frees %" PRIu64
               " nameless files and finishes %" PRIu64 " truncations\n",
               pool, summary->orphans, summary->truncates);
}

static void add_summary(cJSON *report, const struct pmfs_fsck_summary *summary)
{
    json_add_count(report, "findings_count", summary->findings);
    json_add_count(report, "files", summary->files);
    json_add_count(report, "directories", summary->directories);
    json_add_count(report, "symlinks", summary->symlinks);
    json_add_count(report, "others", summary->others);
    json_add_count(report, "orphans", summary->orphans);
    json_add_count(report, "truncates", summary->truncates);
    json_add_count(report, "blocks_used", summary->blocks_used);
    json_add_count(report, "blocks_free", summary->blocks_free);
    json_add_count(report, "blocks_lost", summary->blocks_lost);
}

static int exit_status(const char *pool, int error)
{
    if (error == 0)
        return 0;
    if (error == -EUCLEAN)
        return FSCK_EXIT_UNCORRECTED;
    console_fail("pmfs fsck", pool, pmfs_errormsg());
    return FSCK_EXIT_FAILED;
}

static int check_for_people(const char *pool)
{
    struct pmfs_fsck_summary summary = {0};
    int error = pmfs_fsck(pool, print_finding, NULL, &summary);

    if (error == 0 || error == -EUCLEAN)
        print_summary(pool, error == 0, &summary);
    return exit_status(pool, error);
}

static int check_for_programs(const char *pool)
{
    cJSON *report = cJSON_CreateObject();
    cJSON *findings = cJSON_AddArrayToObject(report, "findings");
    struct pmfs_fsck_summary summary = {0};
    int error = pmfs_fsck(pool, add_finding, findings, &summary);

    cJSON_AddStringToObject(report, "pool", pool);
    if (error == 0 || error == -EUCLEAN) {
        cJSON_AddBoolToObject(report, "clean", error == 0);
        add_summary(report, &summary);
    } else {
        cJSON_AddStringToObject(report, "error", pmfs_errormsg());
    }
    json_print(report);
    cJSON_Delete(report);
    return exit_status(pool, error);
}

int cmd_fsck(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    bool json = false;
    int option;

    while ((option = getopt_long(argc, argv, "japnyfrVC::T", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option == '?')
            return FSCK_EXIT_USAGE;
        json = json || option == 'j';
    }
    if (argc - optind != 1) {
        fputs("pmfs fsck: one POOL has to be named\nTry: pmfs fsck --help\n", stderr);
        return FSCK_EXIT_USAGE;
    }
    return json ? check_for_programs(argv[optind]) : check_for_people(argv[optind]);
}
