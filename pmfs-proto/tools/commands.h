/* SPDX-License-Identifier: BSD-3-Clause */
/* commands.h - the subcommands of `pmfs`. Each gets its own argv and answers an exit
 * status. */
#ifndef PMFS_TOOLS_COMMANDS_H
#define PMFS_TOOLS_COMMANDS_H

/* Of mount(8) and umount(8). */
#define MOUNT_EXIT_USAGE 1
#define MOUNT_EXIT_FAILED 32

/* Of fsck(8). */
#define FSCK_EXIT_CORRECTED 1
#define FSCK_EXIT_UNCORRECTED 4
#define FSCK_EXIT_FAILED 8
#define FSCK_EXIT_USAGE 16

/* Of all others. */
#define PLAIN_EXIT_FAILED 1
#define PLAIN_EXIT_USAGE 2

int cmd_mkfs(int argc, char **argv);
int cmd_mount(int argc, char **argv);
int cmd_umount(int argc, char **argv);
int cmd_fsck(int argc, char **argv);
int cmd_dump(int argc, char **argv);
int cmd_df(int argc, char **argv);
int cmd_stat(int argc, char **argv);
int cmd_stats(int argc, char **argv);

/* The helper that mount(8) calls: mount.pmfs POOL DIRECTORY [-sfnv] [-o OPTIONS]. */
int cmd_mount_helper(int argc, char **argv);

#endif
