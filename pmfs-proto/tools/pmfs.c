/* SPDX-License-Identifier: BSD-3-Clause */
/* pmfs - make, mount, check and look at filesystems in persistent memory. */
#include <stdio.h>
#include <string.h>

#include "include/minl2r.h"
#include "pmfs-proto/tools/commands.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary; /* NULL: a second name, not shown */
} commands[] = {
    {"mkfs", cmd_mkfs, "make an empty filesystem in a new pool file"},
    {"mount", cmd_mount, "mount a filesystem"},
    {"umount", cmd_umount, "unmount it and wait until its pool is closed"},
    {"fsck", cmd_fsck, "verify a filesystem that is not mounted; never writes"},
    {"df", cmd_df, "space and inodes of mounted filesystems"},
    {"stat", cmd_stat, "what a mounted filesystem lies on, and what mounting undid"},
    {"stats", cmd_stats,
     "what a mounted filesystem has cost: fences, lines, log bytes"},
    {"info", cmd_stat, NULL},
    /* As installed for mount(8), mkfs(8) and fsck(8). */
    {"mkfs.pmfs", cmd_mkfs, NULL},
    {"mount.pmfs", cmd_mount_helper, NULL},
    {"fsck.pmfs", cmd_fsck, NULL},
};

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, name) == 0)
            return &commands[i];
    }
    return NULL;
}

static void print_usage(FILE *stream)
{
    fprintf(stream,
            "Usage: pmfs COMMAND [OPTION ...] [ARGUMENT ...]\n\n"
            "A filesystem in persistent memory: every call is atomic and durable "
            "when it returns.\n\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (commands[i].summary != NULL)
            fprintf(stream, "  %-8s %s\n", commands[i].name, commands[i].summary);
    }
    fprintf(stream, "\n`pmfs COMMAND --help` tells more; so does pmfs(1).\n");
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const struct command *command = find_command(slash == NULL ? argv[0] : slash + 1);

    if (command != NULL)
        return command->run(argc, argv);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0)) {
        print_usage(stdout);
        return 0;
    }
    if (argc >= 2 && strcmp(argv[1], "--version") == 0) {
        printf("pmfs %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
        return 0;
    }
    command = argc >= 2 ? find_command(argv[1]) : NULL;
    if (command != NULL)
        return command->run(argc - 1, argv + 1);
    if (argc >= 2)
        fprintf(stderr, "pmfs: no command '%s'\n", argv[1]);
    print_usage(stderr);
    return PLAIN_EXIT_USAGE;
}
