/* SPDX-License-Identifier: BSD-3-Clause */
/* pmfs - make, mount, check and look at filesystems in persistent memory. */
#include <stdio.h>
#include <string.h>

#include "include/minl2r.h"
#include "libminl2r/tools/console.h"
#include "libminl2r/tools/fault.h"
#include "pmfs-proto/tools/commands.h"

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    int failed;          /* exit status */
    const char *summary; /* NULL: a name for other programs, not shown */
} commands[] = {
    {"mkfs", cmd_mkfs, PLAIN_EXIT_FAILED,
     "make an empty filesystem in a new pool file"},
    {"mount", cmd_mount, MOUNT_EXIT_FAILED, "mount a filesystem"},
    {"umount", cmd_umount, MOUNT_EXIT_FAILED,
     "unmount it and wait until its pool is closed"},
    {"fsck", cmd_fsck, FSCK_EXIT_FAILED,
     "verify, or repair, a filesystem that is not mounted"},
    {"dump", cmd_dump, PLAIN_EXIT_FAILED,
     "inodes, block maps and entries of a filesystem that is not mounted"},
    {"df", cmd_df, PLAIN_EXIT_FAILED, "space and inodes of mounted filesystems"},
    {"stat", cmd_stat, PLAIN_EXIT_FAILED,
     "what a mounted filesystem lies on, and what mounting undid"},
    {"stats", cmd_stats, PLAIN_EXIT_FAILED,
     "what a mounted filesystem has cost: fences, lines, log bytes"},
    /* As installed for mount(8), mkfs(8) and fsck(8). */
    {"mkfs.pmfs", cmd_mkfs, PLAIN_EXIT_FAILED, NULL},
    {"mount.pmfs", cmd_mount_helper, MOUNT_EXIT_FAILED, NULL},
    {"mount.fuse.pmfs", cmd_mount_helper, MOUNT_EXIT_FAILED, NULL},
    {"fsck.pmfs", cmd_fsck, FSCK_EXIT_FAILED, NULL},
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

/* What getopt() says begins as what the commands say: "pmfs mkfs: ". */
static int run(const struct command *command, int argc, char **argv)
{
    static char who[32];
    int name_length = (int)strcspn(command->name, ".");

    snprintf(who, sizeof(who), "pmfs %.*s", name_length, command->name);
    argv[0] = who;
    fault_explain(who, command->failed);
    return console_finish(who, command->run(argc, argv), command->failed);
}

static int refuse(const char *command)
{
    if (command == NULL) {
        print_usage(stderr);
    } else {
        fprintf(stderr, "pmfs: no command '%s'\n", command);
        fputs("Try: pmfs --help\n", stderr);
    }
    return PLAIN_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    const char *slash = strrchr(argv[0], '/');
    const struct command *command = find_command(slash == NULL ? argv[0] : slash + 1);

    console_guard();
    if (command != NULL)
        return run(command, argc, argv);
    command = argc >= 2 ? find_command(argv[1]) : NULL;
    if (command != NULL)
        return run(command, argc - 1, argv + 1);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0))
        print_usage(stdout);
    else if (argc >= 2 && strcmp(argv[1], "--version") == 0)
        printf("pmfs %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
    else
        return refuse(argv[1]);
    return console_finish("pmfs", 0, PLAIN_EXIT_FAILED);
}
