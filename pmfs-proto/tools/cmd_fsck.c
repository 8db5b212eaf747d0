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
    "Usage: pmfs fsck [OPTION ...] POOL\n\n"
    "Verifies the filesystem in POOL, which must not be mounted, as the next mount "
    "would see\n"
    "it: what a crash left unfinished, and mounting undoes or finishes, is no error. "
    "Writes\n"
    "nothing, unless told to repair.\n\n"
    "  -r, --repair      repair what is safe, asking before each repair: bits of the\n"
    "                    block bitmaps; counts of links and blocks; sizes and parents "
    "of\n"
    "                    directories; types of entries; inodes without a name get one\n"
    "                    in /lost+found, and blocks that nothing reaches become a "
    "file\n"
    "                    there, #blocks-0xOFFSET\n"
    "  -y, -a, -p, --yes repair without asking\n"
    "  -n                only verify\n"
    "  -j, --json        findings and summary, or the error, as one JSON object; to "
    "repair,\n"
    "                    it needs --yes\n"
    "  -V                print the version\n"
    "      --help\n"
    "  -f, -C FD, -T     accepted for fsck(8); without effect\n\n"
    "Exit status: 0 consistent, 1 errors found and all repaired, 4 errors left, 8 "
    "could "
    "not\n"
    "be checked, 16 wrong usage.\n";

struct request {
    const char *pool;
    bool json;
    bool repair;
    bool yes;
};

/* ---- Verifying --------------------------------------------------------------- */

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

/* ---- Repairing --------------------------------------------------------------- */

/* The end of input is a no. A line is one answer, however long. */
static bool is_answered_yes(void)
{
    printf("? [y/N] ");
    fflush(stdout);

    int first = getchar();

    for (int c = first; c != '\n' && c != EOF;)
        c = getchar();
    return first == 'y' || first == 'Y';
}

static bool ask_person(void *arg, const char *what, const char *how,
                       const char *why_not)
{
    const struct request *request = arg;

    if (how == NULL) {
        printf("%s: left: %s\n", what, why_not);
        return false;
    }
    printf("%s: %s", what, how);
    if (!request->yes)
        return is_answered_yes();
    printf("\n");
    return true;
}

static int repair_exit_status(const char *pool, int error, uint64_t repaired)
{
    return error == 0 && repaired > 0 ? FSCK_EXIT_CORRECTED : exit_status(pool, error);
}

static int repair_for_people(const struct request *request)
{
    struct pmfs_repair_summary summary = {0};
    struct request asked = *request;
    int error = pmfs_repair(request->pool, ask_person, &asked, &summary);

    if (error == 0 || error == -EUCLEAN)
        print_summary(request->pool, error == 0, &summary.fsck);
    if (summary.repaired > 0)
        printf("%s: %" PRIu64 " repaired\n", request->pool, summary.repaired);
    return repair_exit_status(request->pool, error, summary.repaired);
}

static void add_words(cJSON *array, const char *what, const char *key,
                      const char *words)
{
    cJSON *item = cJSON_CreateObject();

    cJSON_AddStringToObject(item, "what", what);
    cJSON_AddStringToObject(item, key, words);
    if (!cJSON_AddItemToArray(array, item))
        cJSON_Delete(item);
}

static bool note_repair(void *arg, const char *what, const char *how,
                        const char *why_not)
{
    cJSON *report = arg;

    if (how != NULL)
        add_words(cJSON_GetObjectItem(report, "repairs"), what, "how", how);
    else
        add_words(cJSON_GetObjectItem(report, "left"), what, "why", why_not);
    return true;
}

static int repair_for_programs(const char *pool)
{
    cJSON *report = cJSON_CreateObject();
    struct pmfs_repair_summary summary = {0};

    cJSON_AddStringToObject(report, "pool", pool);
    cJSON_AddArrayToObject(report, "repairs");
    cJSON_AddArrayToObject(report, "left");
    int error = pmfs_repair(pool, note_repair, report, &summary);
    if (error == 0 || error == -EUCLEAN) {
        cJSON_AddBoolToObject(report, "clean", error == 0);
        json_add_count(report, "repaired_count", summary.repaired);
        add_summary(report, &summary.fsck);
    } else {
        cJSON_AddStringToObject(report, "error", pmfs_errormsg());
    }
    json_print(report);
    cJSON_Delete(report);
    return repair_exit_status(pool, error, summary.repaired);
}

/* ---- Arguments --------------------------------------------------------------- */

static void set_option(struct request *request, int option)
{
    switch (option) {
    case 'j':
        request->json = true;
        break;
    case 'r':
        request->repair = true;
        break;
    case 'y':
    case 'a':
    case 'p':
        request->repair = request->yes = true;
        break;
    case 'n':
        request->repair = request->yes = false;
        break;
    default:
        break;
    }
}

/* `what` is wrong; NULL: that is said already. */
static int wrong_usage(const char *what)
{
    if (what != NULL)
        fprintf(stderr, "pmfs fsck: %s\n", what);
    fputs("Try: pmfs fsck --help\n", stderr);
    return FSCK_EXIT_USAGE;
}

static int run(const struct request *request)
{
    if (!request->repair)
        return request->json ? check_for_programs(request->pool)
                             : check_for_people(request->pool);
    if (!request->json)
        return repair_for_people(request);
    return request->yes ? repair_for_programs(request->pool)
                        : wrong_usage("--json cannot ask: --yes is missing");
}

int cmd_fsck(int argc, char **argv)
{
    static const struct option options[] = {
        {"json", no_argument, NULL, 'j'},
        {"repair", no_argument, NULL, 'r'},
        {"yes", no_argument, NULL, 'y'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct request request = {0};
    int option;

    while ((option = getopt_long(argc, argv, "japnyfrVC::T", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option == 'V') {
            printf("pmfs %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
            return 0;
        }
        if (option == '?')
            return wrong_usage(NULL);
        set_option(&request, option);
    }
    if (argc - optind != 1)
        return wrong_usage("one POOL has to be named");
    request.pool = argv[optind];
    return run(&request);
}
