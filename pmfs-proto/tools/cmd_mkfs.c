/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/tools/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/pmfs.h"
#include "libminl2r/layout.h"
#include "libminl2r/tools/console.h"
#include "libminl2r/tools/size.h"
#include "pmfs-proto/tools/json.h"
#include "pmfs-proto/tools/medium.h"
#include "pmfs-proto/tools/mounts.h"

static const char help[] =
    "Usage: pmfs mkfs [OPTION ...] POOL SIZE\n\n"
    "Makes an empty filesystem in the new file POOL of SIZE bytes (decimal or "
    "0x...,\n"
    "suffixes K, M, G, T; of an existing device, SIZE may be left out). Its root "
    "belongs "
    "to\n"
    "the caller.\n\n"
    "  -b, --block-size SIZE  512 to 64K, a power of two (4K)\n"
    "  -l, --lanes N          transactions that may log at once (by pool size)\n"
    "  -r, --require MEDIUM   fail unless POOL is on: emulated, file, dax or eadr, in\n"
    "                         this order of what they promise\n"
    "  -f, --force            replace POOL if it is a pool, or empty, and nobody has "
    "it "
    "open\n"
    "  -j, --json             what was made, or the error, as one JSON object\n"
    "  -V                     print the version\n"
    "      --help\n\n"
    "Exit status: 0 made, 1 failed, 2 wrong usage.\n";

struct request {
    const char *pool;
    uint64_t size;
    struct pmfs_mkfs_options options;
    bool force;
    bool json;
};

static bool refuse(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "pmfs mkfs: %s: \"%s\" is not %s\n", name, value, expected);
    return false;
}

/* Not 0, which would mean the default. */
static bool parse_u32(const char *name, const char *text, const char *expected,
                      uint32_t *size)
{
    uint64_t wide;

    if (!size_parse(text, &wide))
        return refuse(name, text, expected);
    if (wide == 0 || wide > UINT32_MAX)
        return refuse(name, text, "a number from 1 on, below 4G");
    *size = (uint32_t)wide;
    return true;
}

static bool parse_option(struct request *request, int option, const char *value)
{
    switch (option) {
    case 'b':
        return parse_u32("--block-size", value, "a size like 4K or 0x1000",
                         &request->options.pool.block_size);
    case 'l':
        return parse_u32("--lanes", value, "a count like 32",
                         &request->options.pool.lanes);
    case 'r':
        return medium_parse(value, &request->options.pool.require) ||
               refuse("--require", value, "emulated, file, dax or eadr");
    case 'f':
        request->force = true;
        return true;
    case 'j':
        request->json = true;
        return true;
    default:
        return false;
    }
}

/* May it be thrown away: does it begin as pools do, or hold nothing? */
static int check_replaceable(int fd)
{
    uint8_t magic[sizeof(PM_MAGIC) - 1];
    ssize_t got = pread(fd, magic, sizeof(magic), 0);

    if (got <= 0)
        return got < 0 ? -errno : 0;
    bool is_pool =
        got == (ssize_t)sizeof(magic) && memcmp(magic, PM_MAGIC, sizeof(magic)) == 0;
    return is_pool ? 0 : -EEXIST;
}

static int lock(int fd)
{
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    return errno == EWOULDBLOCK ? -EBUSY : -errno;
}

/* What a block device is known by, be it a pool. */
static int clear_device(int fd)
{
    static const uint8_t zeros[128 << 10];
    ssize_t size = (ssize_t)sizeof(zeros);

    int error = lock(fd);
    if (error == 0)
        error = check_replaceable(fd);
    if (error == 0 && (pwrite(fd, zeros, sizeof(zeros), 0) != size || fsync(fd) < 0))
        error = -EIO;
    return error == -EEXIST ? 0 : error; /* mkfs says what it thinks of it */
}

/* Is the file that was opened still the one of that name? */
static bool is_still(const char *pool, int fd)
{
    struct stat opened, named;

    return fstat(fd, &opened) == 0 && lstat(pool, &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
}

/* With the pool's lock, so that nobody opens it between the look and the removal. */
static int remove_file(const char *pool, int fd)
{
    int error = lock(fd);

    if (error == 0)
        error = check_replaceable(fd);
    if (error == 0 && !is_still(pool, fd))
        error = -ESTALE;
    if (error < 0)
        return error;
    return unlink(pool) < 0 ? -errno : 0;
}

static bool is_symlink(const char *path)
{
    struct stat status;

    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

/* What else there may be, mkfs refuses, or takes as a device. */
static int remove_old(const char *pool)
{
    struct stat status;

    if (lstat(pool, &status) < 0 ||
        !(S_ISREG(status.st_mode) || S_ISBLK(status.st_mode)))
        return 0;
    int fd =
        open(pool, (S_ISBLK(status.st_mode) ? O_RDWR | O_EXCL : O_RDONLY) | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = S_ISBLK(status.st_mode) ? clear_device(fd) : remove_file(pool, fd);
    close(fd);
    return error;
}

static int fail(const struct request *request, const char *why)
{
    if (request->json) {
        cJSON *report = cJSON_CreateObject();

        cJSON_AddStringToObject(report, "pool", request->pool);
        cJSON_AddStringToObject(report, "error", why);
        json_print(report);
        cJSON_Delete(report);
    } else {
        console_fail("pmfs mkfs", request->pool, why);
    }
    return PLAIN_EXIT_FAILED;
}

static void tell_program(const char *path, const struct minl2r_info *info)
{
    cJSON *report = cJSON_CreateObject();

    cJSON_AddStringToObject(report, "pool", path);
    json_add_count(report, "pool_size", info->pool_size);
    json_add_count(report, "block_size", info->block_size);
    json_add_count(report, "lanes", info->lanes);
    cJSON_AddStringToObject(report, "medium", minl2r_medium_name(info->medium));
    cJSON_AddStringToObject(report, "medium_reason", info->medium_reason);
    json_print(report);
    cJSON_Delete(report);
}

static void tell_person(const char *path, const struct minl2r_info *info)
{
    printf("%s: an empty filesystem in %.1f MiB; medium %s: %s%s\n", path,
           (double)info->pool_size / (1 << 20), minl2r_medium_name(info->medium),
           info->medium_reason,
           info->medium == MINL2R_FILE ? "; each ordering point is an msync(), slow"
                                       : "");
}

/* Size and medium: what was made, and what it promises. */
static int tell(const struct request *request)
{
    struct minl2r_pool *pool;
    struct minl2r_info info;

    if (minl2r_pool_open(request->pool, PMFS_LAYOUT, NULL, &pool) < 0)
        return fail(request, minl2r_errormsg());
    minl2r_pool_info(pool, &info);
    if (request->json)
        tell_program(request->pool, &info);
    else
        tell_person(request->pool, &info);
    minl2r_pool_close(pool);
    return 0;
}

static bool is_device(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 &&
           (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode));
}

/* Why something that is there already was not replaced. */
static const char *why_kept(const struct request *request)
{
    if (is_symlink(request->pool))
        return "a symbolic link, so not replaced; name what it leads to, or remove it "
               "first";
    if (request->force)
        return "not a pool, so not replaced; remove it first";
    return "is there already; --force replaces it if it is a pool, or empty";
}

static int make(const struct request *request)
{
    int error = request->force ? remove_old(request->pool) : 0;

    if (error == -EEXIST)
        return fail(request, why_kept(request));
    if (error == -EBUSY)
        return fail(request, "open already, so not replaced");
    if (error < 0)
        return fail(request, strerror(-error));
    error = pmfs_mkfs(request->pool, request->size, &request->options);
    if (error == -EEXIST && !is_device(request->pool))
        return fail(request, why_kept(request));
    if (error < 0)
        return fail(request, pmfs_errormsg());
    return tell(request);
}

static bool parse_arguments(struct request *request, int count, char **arguments)
{
    if (count == 0) {
        fputs("pmfs mkfs: a POOL and its SIZE have to be named\n", stderr);
        return false;
    }
    if (count > 2) {
        fprintf(stderr, "pmfs mkfs: one argument too many: '%s'\n", arguments[2]);
        return false;
    }
    request->pool = arguments[0];
    if (count == 2)
        return size_parse(arguments[1], &request->size) ||
               refuse("SIZE", arguments[1], "a size like 0x1000000, 64M or 1G");
    if (is_device(request->pool))
        return true;
    fprintf(stderr, "pmfs mkfs: %s: SIZE is missing; only a device has its own\n",
            request->pool);
    return false;
}

static int hint(void)
{
    fputs("Try: pmfs mkfs --help\n", stderr);
    return PLAIN_EXIT_USAGE;
}

int cmd_mkfs(int argc, char **argv)
{
    static const struct option options[] = {
        {"block-size", required_argument, NULL, 'b'},
        {"lanes", required_argument, NULL, 'l'},
        {"require", required_argument, NULL, 'r'},
        {"force", no_argument, NULL, 'f'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct request request = {.options = {.root_uid = getuid(), .root_gid = getgid()}};
    int option;

    while ((option = getopt_long(argc, argv, "b:l:r:fjV", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (option == 'V') {
            printf("pmfs %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
            return 0;
        }
        if (!parse_option(&request, option, optarg))
            return hint();
    }
    if (!parse_arguments(&request, argc - optind, argv + optind))
        return hint();
    return make(&request);
}
