/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/tools/commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "include/pmfs.h"
#include "pmfs-proto/tools/medium.h"
#include "pmfs-proto/tools/mounts.h"

static const char help[] =
    "Usage: pmfs mkfs [OPTION ...] POOL SIZE\n\n"
    "Makes an empty filesystem in the new file POOL of SIZE bytes (suffixes K, M, G, "
    "T;\n"
    "for an existing device, SIZE may be left out). Its root belongs to the caller.\n\n"
    "  -b, --block-size SIZE  512 to 64K, a power of two (4K)\n"
    "  -l, --lanes N          transactions that may log at once (by pool size)\n"
    "  -r, --require MEDIUM   fail unless POOL is on: emulated, file, dax or eadr, in\n"
    "                         this order of what they promise\n"
    "  -f, --force            replace POOL if it exists and nobody has it open\n"
    "      --help\n\n"
    "Exit status: 0 made, 1 failed, 2 wrong usage.\n";

struct request {
    const char *pool;
    uint64_t size;
    struct pmfs_mkfs_options options;
    bool force;
};

/* Bytes, with an optional suffix K, M, G or T of powers of 1024. */
static bool parse_size(const char *text, uint64_t *size)
{
    static const char suffixes[] = "KMGT";
    char *end;

    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || text[0] == '-')
        return false;
    const char *suffix = *end == '\0' ? NULL : strchr(suffixes, *end & ~0x20);
    if (*end != '\0' && (suffix == NULL || end[1] != '\0'))
        return false;
    unsigned shift = suffix == NULL ? 0 : 10 * (unsigned)(suffix - suffixes + 1);
    if (number > UINT64_MAX >> shift)
        return false;
    *size = (uint64_t)number << shift;
    return true;
}

static bool parse_size32(const char *text, uint32_t *size)
{
    uint64_t wide;

    if (!parse_size(text, &wide) || wide > UINT32_MAX)
        return false;
    *size = (uint32_t)wide;
    return true;
}

static bool parse_option(struct request *request, int option, const char *value)
{
    switch (option) {
    case 'b':
        return parse_size32(value, &request->options.pool.block_size);
    case 'l':
        return parse_size32(value, &request->options.pool.lanes);
    case 'r':
        return medium_parse(value, &request->options.pool.require);
    case 'f':
        request->force = true;
        return true;
    default:
        return false;
    }
}

static int remove_old(const char *pool)
{
    struct stat status;

    if (lstat(pool, &status) < 0 || !S_ISREG(status.st_mode))
        return 0;
    if (mounts_wait_released(pool, 0) == -EBUSY)
        return -EBUSY;
    return unlink(pool) < 0 ? -errno : 0;
}

static int make(const struct request *request)
{
    int error = request->force ? remove_old(request->pool) : 0;

    if (error < 0) {
        fprintf(stderr, "pmfs mkfs: %s: %s\n", request->pool, strerror(-error));
        return PLAIN_EXIT_FAILED;
    }
    error = pmfs_mkfs(request->pool, request->size, &request->options);
    if (error < 0) {
        fprintf(stderr, "pmfs mkfs: %s: %s\n", request->pool, pmfs_errormsg());
        return PLAIN_EXIT_FAILED;
    }
    return 0;
}

int cmd_mkfs(int argc, char **argv)
{
    static const struct option options[] = {
        {"block-size", required_argument, NULL, 'b'},
        {"lanes", required_argument, NULL, 'l'},
        {"require", required_argument, NULL, 'r'},
        {"force", no_argument, NULL, 'f'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct request request = {.options = {.root_uid = getuid(), .root_gid = getgid()}};
    int option;

    while ((option = getopt_long(argc, argv, "b:l:r:f", options, NULL)) != -1) {
        if (option == 'h') {
            fputs(help, stdout);
            return 0;
        }
        if (!parse_option(&request, option, optarg)) {
            if (option != '?')
                fprintf(stderr, "pmfs mkfs: -%c: not understood: %s\n", option, optarg);
            return PLAIN_EXIT_USAGE;
        }
    }
    int left = argc - optind;
    if (left < 1 || left > 2 ||
        (left == 2 && !parse_size(argv[optind + 1], &request.size))) {
        fputs(help, stderr);
        return PLAIN_EXIT_USAGE;
    }
    request.pool = argv[optind];
    return make(&request);
}
