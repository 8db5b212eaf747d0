/* SPDX-License-Identifier: BSD-3-Clause */
/* The command `pmfs`: what it refuses, what it says, and its exit statuses. */
#include "tests/mount/mount_fixture.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <signal.h>
#include <time.h>

#include "include/minl2r.h"
#include "libminl2r/layout.h"

static void every_command_explains_itself(void **state)
{
    static const char *const commands[] = {"mkfs", "mount", "umount", "fsck",
                                           "dump", "df",    "stat",   "stats"};
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "--help", NULL), 0);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        assert_said(f, commands[i]);
        assert_int_equal(pmfs(f, commands[i], "--help", NULL), 0);
        assert_said(f, "Usage: pmfs");
        assert_said(f, "Exit status:");
        assert_int_equal(pmfs(f, "--help", NULL), 0);
    }
}

static void an_unknown_command_is_refused(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mounted", NULL), 2);
    assert_said(f, "pmfs: no command 'mounted'");
}

static void an_unknown_option_is_refused_with_a_hint(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mount", "--frobnicate", NULL), 1);
    assert_said(f, "pmfs mount: unrecognized option '--frobnicate'");
    assert_said(f, "Try: pmfs mount --help");
    assert_int_equal(pmfs(f, "fsck", "--frobnicate", NULL), 16);
    assert_said(f, "Try: pmfs fsck --help");
}

static void messages_begin_with_the_command_and_name_the_file_once(void **state)
{
    struct mount_fixture *f = *state;
    char expected[256];

    write_file(f->pool, "precious", 8);
    snprintf(expected, sizeof(expected), "pmfs fsck: %s is not a MinL2R pool", f->pool);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 8);
    assert_said(f, expected);
    assert_int_equal(pmfs(f, "mkfs", "--wrong", NULL), 2);
    assert_said(f, "pmfs mkfs: unrecognized option '--wrong'");
    assert_success(symlink(PMFS_TOOL, in_dir(f, "mkfs.pmfs")));
    assert_int_equal(run(f, in_dir(f, "mkfs.pmfs"), "--wrong", NULL), 2);
    assert_said(f, "pmfs mkfs: unrecognized option '--wrong'");
    assert_int_equal(pmfs(f, "fsck", "", NULL), 8);
    assert_said(f, "pmfs fsck: cannot open '': No such file or directory");
    assert_int_equal(pmfs(f, "mount", "", f->mountpoint, NULL), 32);
    assert_said(f, "pmfs mount: '': No such file or directory");
}

/* Runs `pmfs` with its arguments and redirections in one string. */
static int pmfs_in_shell(struct mount_fixture *f, const char *arguments)
{
    char script[1024];

    snprintf(script, sizeof(script), "%s %s", PMFS_TOOL, arguments);
    return run(f, "sh", "-c", script, NULL);
}

static void output_that_is_lost_is_an_error(void **state)
{
    struct mount_fixture *f = *state;
    char fsck[256];

    assert_int_equal(pmfs_in_shell(f, "df >/dev/full"), 1);
    assert_said(f, "pmfs df: cannot write to standard output: No space left");
    assert_int_equal(pmfs_in_shell(f, "df --json >&-"), 1);
    assert_int_equal(pmfs_in_shell(f, "--help >/dev/full"), 1);
    snprintf(fsck, sizeof(fsck), "fsck %s >/dev/full", f->pool);
    assert_int_equal(pmfs_in_shell(f, fsck), 8);
}

/* The pool would get the number of the closed stream, and then its messages. */
static void nothing_is_written_into_the_pool_where_streams_are_closed(void **state)
{
    struct mount_fixture *f = *state;
    char mount[512];

    snprintf(mount, sizeof(mount), "mount -o no_such_option %s %s <&- >&- 2>&-",
             f->pool, f->mountpoint);
    assert_int_equal(pmfs_in_shell(f, mount), 1);
    snprintf(mount, sizeof(mount), "mount %s %s <&- >&- 2>&-", f->pool, f->mountpoint);
    assert_int_equal(pmfs_in_shell(f, mount), 0);
    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
}

/* ---- mkfs -------------------------------------------------------------------- */

static void mkfs_keeps_an_existing_file(void **state)
{
    struct mount_fixture *f = *state;

    write_file(f->pool, "precious", 8);
    assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", NULL), 1);
    assert_said(f, "--force replaces it if it is a pool, or empty");
    assert_file_holds(f->pool, "precious", 8);
}

static void mkfs_with_force_replaces_a_pool_or_an_empty_file(void **state)
{
    struct mount_fixture *f = *state;

    write_file(f->pool, "", 0);
    assert_int_equal(pmfs(f, "mkfs", "--force", f->pool, "16M", NULL), 0);
    assert_int_equal(pmfs(f, "mkfs", "--force", f->pool, "8M", NULL), 0);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
}

static void mkfs_with_force_spares_every_other_file(void **state)
{
    struct mount_fixture *f = *state;

    write_file(f->pool, "precious", 8);
    assert_int_equal(pmfs(f, "mkfs", "--force", f->pool, "16M", NULL), 1);
    assert_said(f, "remove it first");
    assert_file_holds(f->pool, "precious", 8);
}

static void mkfs_says_what_it_thinks_of_a_symbolic_link(void **state)
{
    static const char *const forces[] = {"--json", "--force"};
    struct mount_fixture *f = *state;

    assert_success(symlink("pool", in_dir(f, "link")));
    for (size_t i = 0; i < 4; i++) { /* dangling, then not */
        assert_int_equal(pmfs(f, "mkfs", forces[i % 2], in_dir(f, "link"), "16M", NULL),
                         1);
        assert_said(f, "a symbolic link, so not replaced");
        if (i == 1)
            assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", NULL), 0);
    }
    assert_int_equal(pmfs(f, "mkfs", "--force", f->dir, "16M", NULL), 1);
    assert_said(f, "not a pool, so not replaced");
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
    assert_success(unlink(in_dir(f, "link")));
}

static void mkfs_with_force_spares_a_mounted_pool(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", "--force", f->pool, "16M", NULL), 1);
    assert_said(f, "open already, so not replaced");
    write_file(in_mount(f, "file"), "content", 7);
}

static void mkfs_refuses_sizes_that_are_none(void **state)
{
    static const char *const sizes[] = {"",     "x",   "-5M",  "5X",
                                        "5MM",  "16 ", "+16M", " 1M",
                                        " -5M", "0x",  "0xg",  "99999999999999999999"};
    struct mount_fixture *f = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_int_equal(pmfs(f, "mkfs", f->pool, sizes[i], NULL), 2);
    assert_errno(access(f->pool, F_OK), ENOENT);
}

static void mkfs_takes_hexadecimal_sizes_as_minl2r_does(void **state)
{
    struct mount_fixture *f = *state;
    struct stat status;

    assert_int_equal(pmfs(f, "mkfs", "-b", "0x400", f->pool, "0x1000K", NULL), 0);
    assert_success(stat(f->pool, &status));
    assert_int_equal(status.st_size, 4 << 20);
}

static void mkfs_on_a_device_that_is_no_memory_says_so(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", "/dev/null", "16M", NULL), 1);
    assert_said(f, "pmfs mkfs: /dev/null is a character device, but no DAX device");
    assert_int_equal(pmfs(f, "fsck", "/dev/null", NULL), 8);
    assert_said(f, "pmfs fsck: /dev/null is a character device, but no DAX device");
}

static void mkfs_says_what_is_wrong_with_its_arguments(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", f->pool, NULL), 2);
    assert_said(f, "SIZE is missing");
    assert_int_equal(pmfs(f, "mkfs", f->pool, "1.5G", NULL), 2);
    assert_said(f, "SIZE: \"1.5G\" is not a size");
    assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", "surplus", NULL), 2);
    assert_said(f, "'surplus'");
    assert_int_equal(pmfs(f, "mkfs", "-l", "0", f->pool, "16M", NULL), 2);
    assert_said(f, "--lanes: \"0\"");
    assert_errno(access(f->pool, F_OK), ENOENT);
}

static void mkfs_says_what_it_made_and_on_what(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", NULL), 0);
    assert_said(f, f->pool);
    assert_said(f, "16.0 MiB; medium ");
}

static void mkfs_refuses_a_lesser_medium_than_required(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", "--require", "dax", f->pool, "16M", NULL), 1);
    assert_errno(access(f->pool, F_OK), ENOENT);
}

/* ---- mount ------------------------------------------------------------------- */

static void a_second_mount_on_the_directory_is_refused(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", in_dir(f, "other"), "16M", NULL), 0);
    assert_int_equal(pmfs(f, "mount", in_dir(f, "other"), f->mountpoint, NULL), 32);
    assert_said(f, "mounted here already");
}

static void a_second_mount_of_the_pool_is_refused(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_dir(f, "elsewhere"), 0755));
    assert_int_equal(pmfs(f, "mount", f->pool, in_dir(f, "elsewhere"), NULL), 32);
    assert_said(f, "already");
    write_file(in_mount(f, "file"), "content", 7);
}

static void mounting_what_is_no_pool_fails_in_the_foreground(void **state)
{
    static char zeros[1 << 20];
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mount", f->pool, f->mountpoint, NULL), 32);
    assert_said(f, "No such file");
    write_file(f->pool, zeros, sizeof(zeros));
    assert_int_equal(pmfs(f, "mount", f->pool, f->mountpoint, NULL), 32);
    assert_said(f, f->pool);
    assert_file_holds(f->pool, zeros, sizeof(zeros));
}

static void mounting_on_no_directory_fails(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mount", f->pool, in_dir(f, "missing"), NULL), 32);
    assert_said(f, "missing: No such file");
    assert_int_equal(pmfs(f, "mount", f->pool, f->mountpoint, NULL), 0);
}

static void mounting_on_a_file_fails_and_leaves_it_readable(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_dir(f, "file"), "precious", 8);
    assert_int_equal(pmfs(f, "mount", f->pool, in_dir(f, "file"), NULL), 32);
    assert_said(f, "file: not a directory");
    assert_file_holds(in_dir(f, "file"), "precious", 8);
    assert_int_equal(pmfs(f, "mount", f->pool, f->pool, NULL), 32);
    assert_said(f, "not a directory");
    assert_success(symlink(PMFS_TOOL, in_dir(f, "mount.pmfs")));
    assert_int_equal(
        run(f, in_dir(f, "mount.pmfs"), f->pool, in_dir(f, "file"), "-o", "rw", NULL),
        32);
}

static void mounting_over_the_pool_fails(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mount", f->pool, f->dir, NULL), 32);
    assert_said(f, "the pool is in it");
}

static void unknown_mount_options_are_refused(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(
        pmfs(f, "mount", "-o", "rw,write_back", f->pool, f->mountpoint, NULL), 1);
    assert_said(f, "'write_back'");
    assert_int_equal(
        pmfs(f, "mount", "-o", "require=fast", f->pool, f->mountpoint, NULL), 1);
    assert_int_equal(
        pmfs(f, "mount", "-o", "cached_inodes=0", f->pool, f->mountpoint, NULL), 1);
    assert_int_equal(
        pmfs(f, "mount", "-o", "cached_inodes=many", f->pool, f->mountpoint, NULL), 1);
}

static void options_for_fstab_are_accepted(void **state)
{
    struct mount_fixture *f = *state;

    mount_fs(f, "defaults,noauto,nofail,_netdev,user,noatime,x-systemd.automount");
}

static void a_read_only_mount_takes_no_changes(void **state)
{
    struct mount_fixture *f = *state;

    mount_fs(f, "ro");
    assert_errno(mkdir(in_mount(f, "dir"), 0755), EROFS);
}

/* Though a killed daemon has left something to be finished. */
static void a_read_only_mount_writes_nothing_to_the_pool(void **state)
{
    struct mount_fixture *f = *state;
    const char *copy = in_dir(f, "copy");
    int fd;

    mount_fs(f, NULL);
    fd = open(in_mount(f, "nameless"), O_CREAT | O_RDWR, 0600);
    assert_success(fd);
    assert_success(unlink(in_mount(f, "nameless")));
    write_file(in_mount(f, "file"), "content", 7);
    kill_daemon(f);
    close(fd);
    assert_int_equal(run(f, "cp", f->pool, copy, NULL), 0);
    mount_fs(f, "rw,ro");
    assert_file_holds(in_mount(f, "file"), "content", 7);
    assert_errno(unlink(in_mount(f, "file")), EROFS);
    unmount_fs(f);
    assert_int_equal(run(f, "cmp", f->pool, copy, NULL), 0);
}

static void mounting_requires_the_medium_it_is_told_to(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(
        pmfs(f, "mount", "-o", "require=dax", f->pool, f->mountpoint, NULL), 32);
    mount_fs(f, "require=emulated");
}

static void a_pool_with_an_odd_name_is_mounted_and_found(void **state)
{
    struct mount_fixture *f = *state;

    snprintf(f->pool, sizeof(f->pool), "%s", in_dir(f, "odd, \\ \\043 #name=1"));
    assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", NULL), 0);
    mount_fs(f, NULL);
    assert_int_equal(pmfs(f, "df", f->pool, NULL), 0);
    assert_said(f, "odd, \\ \\043 #name=1");
    assert_int_equal(pmfs(f, "umount", f->pool, NULL), 0);
}

/* Whoever may mount chooses the name of the place. */
static void names_of_mounts_are_shown_without_control_characters(void **state)
{
    struct mount_fixture *f = *state;

    snprintf(f->mountpoint, sizeof(f->mountpoint), "%s",
             in_dir(f, "place\n\x1b[2J\xc2\x9b\xc3\xa4"));
    assert_success(mkdir(f->mountpoint, 0755));
    mount_fs(f, NULL);
    static const char *const commands[] = {"df", "stat", "stats"};
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        assert_int_equal(pmfs(f, commands[i], f->pool, NULL), 0);
        assert_said(f, "place\\x0a\\x1b[2J\\xc2\\x9b\xc3\xa4");
    }
    assert_int_equal(pmfs(f, "umount", f->pool, NULL), 0);
}

static void await_mount(const struct mount_fixture *f, pid_t pid)
{
    for (int i = 0; i < 1000 && access(f->pid_file, F_OK) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(daemon_pid(f), pid);
}

static void a_foreground_mount_ends_well_when_unmounted(void **state)
{
    struct mount_fixture *f = *state;
    pid_t pid = start(PMFS_TOOL, "mount", "--foreground", "--pid-file", f->pid_file,
                      f->pool, f->mountpoint, NULL);

    await_mount(f, pid);
    write_file(in_mount(f, "file"), "content", 7);
    unmount_fs(f);
    assert_int_equal(exit_status_of(pid), 0);
}

/* What is cut off is gone; but who serves it says so, and which file it was. */
static void a_pool_that_is_cut_short_while_mounted_is_named(void **state)
{
    struct mount_fixture *f = *state;
    char command[640];
    pid_t pid;

    snprintf(command, sizeof(command),
             "exec " PMFS_TOOL " mount --foreground --pid-file %s %s %s 2>%s",
             f->pid_file, f->pool, f->mountpoint, in_dir(f, "said"));
    pid = start("sh", "-c", command, NULL);
    await_mount(f, pid);
    assert_success(truncate(f->pool, 4096));
    assert_errno(mkdir(in_mount(f, "dir"), 0755), ECONNABORTED);
    assert_int_equal(exit_status_of(pid), 32);
    assert_int_equal(run(f, "cat", in_dir(f, "said"), NULL), 0);
    assert_said(f, "pmfs mount: ");
    assert_said(f, f->pool);
    assert_said(f, "no memory at offset 0x");
    assert_said(f, "cut short");
    assert_errno(access(f->pid_file, F_OK), ENOENT);
}

static void only_a_pid_file_is_replaced_by_one(void **state)
{
    static const char *const others[] = {"12a\n", "12 13\n", "\n", "-1\n", "short"};
    struct mount_fixture *f = *state;

    assert_int_equal(
        pmfs(f, "mount", "--pid-file", f->pool, f->pool, f->mountpoint, NULL), 32);
    assert_said(f, "no pid file");
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
        write_file(f->pid_file, others[i], strlen(others[i]));
        assert_int_equal(
            pmfs(f, "mount", "--pid-file", f->pid_file, f->pool, f->mountpoint, NULL),
            32);
        assert_said(f, "no pid file");
        assert_file_holds(f->pid_file, others[i], strlen(others[i]));
        assert_success(unlink(f->pid_file));
    }
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
    write_file(f->pid_file, "", 0);
    mount_fs(f, NULL);
    unmount_fs(f);
    write_file(f->pid_file, "999999\n", 7); /* of a daemon that was killed */
    mount_fs(f, NULL);
    assert_int_not_equal(daemon_pid(f), 999999);
}

static void a_single_thread_serves_too(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(
        pmfs(f, "mount", "-s", "--pid-file", f->pid_file, f->pool, f->mountpoint, NULL),
        0);
    write_file(in_mount(f, "file"), "content", 7);
    assert_file_holds(in_mount(f, "file"), "content", 7);
}

static void the_helper_of_mount_takes_its_arguments(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(symlink(PMFS_TOOL, in_dir(f, "mount.pmfs")));
    assert_int_equal(run(f, in_dir(f, "mount.pmfs"), f->pool, f->mountpoint, "-n", "-o",
                         "rw,noauto,what", NULL),
                     1);
    assert_int_equal(run(f, in_dir(f, "mount.pmfs"), f->pool, f->mountpoint, "-s", "-o",
                         "rw,noauto,what", NULL),
                     0);
    write_file(in_mount(f, "file"), "content", 7);
}

/* ---- umount ------------------------------------------------------------------ */

static void umount_returns_when_the_pool_is_closed(void **state)
{
    struct mount_fixture *f = *state;

    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
}

static void umount_refuses_what_is_in_use_unless_lazy(void **state)
{
    struct mount_fixture *f = *state;
    int fd = open(f->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_success(fd);
    assert_int_equal(pmfs(f, "umount", f->mountpoint, NULL), 32);
    assert_said(f, "busy");
    assert_int_equal(pmfs(f, "umount", "--lazy", f->mountpoint, NULL), 0);
    close(fd);
}

static void umount_leaves_other_mounts_alone(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "umount", f->mountpoint, NULL), 32);
    assert_said(f, "no pmfs is mounted here");
    assert_int_equal(pmfs(f, "umount", "/proc", NULL), 32);
}

/* ---- fsck, df, stat, stats --------------------------------------------------- */

/* The member `name` of the last output, or of the first object of the array it is. */
static double json_number(const struct mount_fixture *f, const char *name)
{
    cJSON *json = cJSON_Parse(f->output);
    const cJSON *object = cJSON_IsArray(json) ? cJSON_GetArrayItem(json, 0) : json;
    const cJSON *member = cJSON_GetObjectItem(object, name);

    if (!cJSON_IsNumber(member))
        print_error("no number \"%s\" in: %s\n", name, f->output);
    assert_true(cJSON_IsNumber(member));
    double number = member->valuedouble;
    cJSON_Delete(json);
    return number;
}

static void fsck_refuses_a_mounted_pool(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 8);
}

static void fsck_counts_what_is_there(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "dir"), 0755));
    write_file(in_mount(f, "dir/a"), "a", 1);
    write_file(in_mount(f, "dir/b"), "b", 1);
    assert_success(symlink("b", in_mount(f, "dir/link")));
    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", "--json", f->pool, NULL), 0);
    assert_int_equal((int)json_number(f, "files"), 2);
    assert_int_equal((int)json_number(f, "directories"), 2);
    assert_int_equal((int)json_number(f, "symlinks"), 1);
    assert_int_equal((int)json_number(f, "findings_count"), 0);
}

static void fsck_finds_damage_and_changes_nothing(void **state)
{
    struct mount_fixture *f = *state;
    struct stat before, after;

    /* An allocated block that nothing refers to, or the reverse: the first bitmap's
     * words. */
    int fd = open(f->pool, O_RDWR | O_CLOEXEC);
    assert_success(fd);
    assert_success(fstat(fd, &before));
    assert_success(ftruncate(fd, before.st_size / 2));
    close(fd);
    assert_success(stat(f->pool, &before));
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 4);
    assert_success(stat(f->pool, &after));
    assert_memory_equal(&before.st_mtim, &after.st_mtim, sizeof(before.st_mtim));
}

/* A zone's bitmap says that the block it is in is free: the files are whole. */
static void damage_bitmap(struct mount_fixture *f)
{
    uint64_t zones_offset;
    uint8_t bits;

    write_file(in_mount(f, "file"), "content", 7);
    unmount_fs(f);
    int fd = open(f->pool, O_RDWR | O_CLOEXEC);
    assert_success(fd);
    assert_int_equal(pread(fd, &zones_offset, sizeof(zones_offset),
                           offsetof(struct pm_super, zones_offset)),
                     sizeof(zones_offset));
    assert_int_equal(pread(fd, &bits, 1, (off_t)zones_offset), 1);
    bits &= (uint8_t)~1;
    assert_int_equal(pwrite(fd, &bits, 1, (off_t)zones_offset), 1);
    close(fd);
}

static void fsck_counts_findings_about_the_pool_and_looks_at_the_files(void **state)
{
    struct mount_fixture *f = *state;

    damage_bitmap(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 4);
    assert_said(f, "pool: bitmap of zone 0");
    assert_said(f, "NOT consistent: 1 files, 1 directories");
    assert_int_equal(pmfs(f, "fsck", "--json", f->pool, NULL), 4);
    assert_true(json_number(f, "findings_count") >= 1);
    assert_int_equal((int)json_number(f, "files"), 1);
}

static void fsck_repairs_what_it_is_told_to(void **state)
{
    struct mount_fixture *f = *state;

    damage_bitmap(f);
    assert_int_equal(pmfs(f, "fsck", "--repair", "--yes", f->pool, NULL), 1);
    assert_said(f, "mark the pool's own blocks as allocated");
    assert_int_equal(pmfs(f, "fsck", "--repair", "--yes", f->pool, NULL), 0);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
    mount_fs(f, NULL);
    assert_file_holds(in_mount(f, "file"), "content", 7);
}

/* Standard input is at its end. */
static void fsck_repairs_nothing_without_an_answer(void **state)
{
    struct mount_fixture *f = *state;

    damage_bitmap(f);
    assert_int_equal(pmfs(f, "fsck", "--repair", f->pool, NULL), 4);
    assert_said(f, "left: it was declined");
    assert_int_equal(pmfs(f, "fsck", "-y", "-n", f->pool, NULL), 4);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 4);
}

static void fsck_repairs_what_a_person_agrees_to(void **state)
{
    static const char *const noes[] = {"n", "", "maybe", "ny", " y"};
    struct mount_fixture *f = *state;
    char script[512];

    damage_bitmap(f);
    for (size_t i = 0; i < sizeof(noes) / sizeof(noes[0]); i++) {
        snprintf(script, sizeof(script), "yes '%s' | " PMFS_TOOL " fsck --repair %s",
                 noes[i], f->pool);
        assert_int_equal(run(f, "sh", "-c", script, NULL), 4);
        assert_said(f, "mark the pool's own blocks as allocated? [y/N] ");
        assert_said(f, "left: it was declined");
    }
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 4);
    snprintf(script, sizeof(script), "yes | " PMFS_TOOL " fsck --repair %s", f->pool);
    assert_int_equal(run(f, "sh", "-c", script, NULL), 1);
    assert_said(f, "mark the pool's own blocks as allocated? [y/N] ");
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
    mount_fs(f, NULL);
    assert_file_holds(in_mount(f, "file"), "content", 7);
}

static void fsck_tells_programs_what_it_repaired(void **state)
{
    struct mount_fixture *f = *state;

    damage_bitmap(f);
    assert_int_equal(pmfs(f, "fsck", "--repair", "--json", f->pool, NULL), 16);
    assert_int_equal(pmfs(f, "fsck", "-a", "--json", f->pool, NULL), 1);
    assert_said(f, "mark the pool's own blocks as allocated");
    assert_true(json_number(f, "repaired_count") >= 1);
    assert_int_equal((int)json_number(f, "findings_count"), 0);
}

static void fsck_says_in_json_why_it_could_not_check(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "fsck", "--json", in_dir(f, "missing"), NULL), 8);
    assert_said(f, "\"error\":\t\"cannot open");
}

static void json_is_utf8_whatever_names_are(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "fsck", "--json", in_dir(f, "missing\xff\xc3\xa4"), NULL),
                     8);
    assert_said(f, "missing\\ufffd\xc3\xa4: No such file");
}

static void inode_numbers_are_digits_alone(void **state)
{
    static const char *const wrong[] = {"",   "0",  "01",  "+1",
                                        " 1", "1 ", "0x1", " -18446744073709551615"};
    struct mount_fixture *f = *state;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(pmfs(f, "dump", f->pool, wrong[i], NULL), 2);
}

static void fsck_without_a_pool_is_wrong_usage(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "fsck", NULL), 16);
    assert_int_equal(pmfs(f, "fsck", in_dir(f, "missing"), NULL), 8);
}

/* The field of an inode that is in use, of a filesystem that is not mounted. */
static uint64_t field_of(struct mount_fixture *f, uint64_t ino, const char *field)
{
    char number[24];

    snprintf(number, sizeof(number), "%" PRIu64, ino);
    assert_int_equal(pmfs(f, "dump", "--json", f->pool, number, NULL), 0);

    cJSON *json = cJSON_Parse(f->output);
    const cJSON *inodes = cJSON_GetObjectItem(json, "inodes");
    const cJSON *inode = cJSON_GetArrayItem(inodes, 0);
    uint64_t value = (uint64_t)cJSON_GetNumberValue(cJSON_GetObjectItem(inode, field));

    cJSON_Delete(json);
    return value;
}

static uint64_t number_of(const char *path)
{
    struct stat stat_buf;

    assert_success(stat(path, &stat_buf));
    return stat_buf.st_ino;
}

/* Each node leads to the next by all of its slots, the last to nothing. */
static void dump_ends_where_nodes_lead_to_nothing_in_many_ways(void **state)
{
    struct mount_fixture *f = *state;
    static uint64_t slots[512], nodes[512];
    static const char content[6 * sizeof(slots)];
    char name[300], number[24];

    assert_success(mkdir(in_mount(f, "large"), 0755));
    for (int i = 0; i < 30; i++) {
        snprintf(name, sizeof(name), "large/%0200d", i);
        write_file(in_mount(f, name), "", 0);
    }
    write_file(in_mount(f, "nodes"), content, sizeof(content));
    uint64_t large = number_of(in_mount(f, "large"));
    uint64_t file = number_of(in_mount(f, "nodes"));
    unmount_fs(f);

    uint64_t top = field_of(f, large, "map_root"), map = field_of(f, file, "map_root");
    int fd = open(f->pool, O_RDWR | O_CLOEXEC);

    assert_success(fd);
    assert_int_equal(top % 4096, 1);
    assert_int_equal(pread(fd, nodes, sizeof(nodes), (off_t)map), sizeof(nodes));
    nodes[0] = top - 1;
    for (int i = 6; i-- > 0;) {
        assert_int_equal(pwrite(fd, slots, sizeof(slots), (off_t)nodes[i]),
                         sizeof(slots));
        for (int slot = 0; slot < 512; slot++)
            slots[slot] = nodes[i] + 1;
    }
    close(fd);
    snprintf(number, sizeof(number), "%" PRIu64, large);
    assert_int_equal(pmfs(f, "dump", f->pool, number, NULL), 1);
    assert_said(f, "nodes that lead to no names");
}

static void dump_shows_inodes_maps_and_names(void **state)
{
    struct mount_fixture *f = *state;
    static char content[3 * 4096];

    write_file(in_mount(f, "a file"), content, sizeof(content));
    assert_int_equal(pmfs(f, "dump", f->pool, NULL), 1);
    assert_said(f, "open already");
    unmount_fs(f);
    assert_int_equal(pmfs(f, "dump", f->pool, NULL), 0);
    assert_said(f, "0100644");
    assert_int_equal(pmfs(f, "dump", f->pool, "1", "2", NULL), 0);
    assert_said(f, "a file");
    /* Requests of one write() are served by threads that allocate apart. */
    assert_said(f, "    blocks 0 to ");
    assert_said(f, " to 2 at 0x");
    assert_int_equal(pmfs(f, "dump", f->pool, "3", NULL), 0);
    assert_said(f, "free");
    assert_int_equal(pmfs(f, "dump", f->pool, "99999", NULL), 1);
    assert_said(f, "there is no inode 99999");
    assert_null(strstr(f->output, "format"));
    assert_int_equal(pmfs(f, "dump", f->pool, "x", NULL), 2);
    assert_int_equal(pmfs(f, "dump", "--json", f->pool, "1", NULL), 0);
    assert_int_equal((int)json_number(f, "block_size"), 4096);
    assert_said(f, "\"a file\"");
}

static void mkfs_tells_programs_what_it_made(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", "--json", f->pool, "16M", NULL), 0);
    assert_int_equal((int)json_number(f, "pool_size"), 16 << 20);
    assert_int_equal(pmfs(f, "mkfs", "--json", f->pool, "16M", NULL), 1);
    assert_said(f, "\"error\"");
}

static void df_agrees_with_the_size_of_the_pool(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "df", "--json", f->mountpoint, NULL), 0);
    assert_int_equal((int)json_number(f, "block_size"), 4096);
    assert_in_range((uintmax_t)json_number(f, "blocks"), 15 * 1024, 16 * 1024);
    assert_int_equal(pmfs(f, "df", f->pool, NULL), 0);
    assert_said(f, f->mountpoint);
}

static void stat_names_the_medium_and_who_serves(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "stat", "--json", f->mountpoint, NULL), 0);
    assert_int_equal((int)json_number(f, "pid"), daemon_pid(f));
    assert_int_equal((int)json_number(f, "pool_size"), 64 << 20);
    assert_int_equal((int)json_number(f, "undone_transactions"), 0);
    assert_int_equal(pmfs(f, "stat", f->mountpoint, NULL), 0);
    assert_said(f, "medium");
}

static void stats_count_what_a_change_costs(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "stats", "--json", f->mountpoint, NULL), 0);
    double commits = json_number(f, "commits"), fences = json_number(f, "fences");
    assert_success(mkdir(in_mount(f, "dir"), 0755));
    assert_int_equal(pmfs(f, "stats", "--json", in_mount(f, "dir"), NULL), 0);
    assert_int_equal((int)(json_number(f, "commits") - commits), 1);
    assert_int_equal((int)(json_number(f, "fences") - fences), 2);
    assert_int_equal(pmfs(f, "stats", f->mountpoint, NULL), 0);
    assert_said(f, "pointer_swaps");
}

static bool drop_inodes(void)
{
    int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);
    bool done = fd >= 0 && write(fd, "2", 1) == 1;

    close(fd);
    return done;
}

static double cached_inodes(struct mount_fixture *f)
{
    assert_int_equal(pmfs(f, "stats", "--json", f->mountpoint, NULL), 0);
    return json_number(f, "cached_inodes");
}

/* What the kernel drops under pressure, as here, the daemon does not keep either. */
static void inodes_that_the_kernel_forgets_leave_the_daemon_s_memory(void **state)
{
    enum { FILES = 20000, KEPT = 1000 };
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    struct mount_fixture *f = *state;

    if (!drop_inodes())
        skip();
    mount_fs(f, "cached_inodes=1000");
    int dir = open(f->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; i < FILES; i++) {
        char name[16];

        snprintf(name, sizeof(name), "%d", i);
        assert_success(mknodat(dir, name, S_IFREG | 0644, 0));
    }
    close(dir);
    assert_true(cached_inodes(f) > FILES);
    /* Of what was used lately the first time only takes the mark away. */
    for (int i = 0; i < 200 && cached_inodes(f) > 2 * KEPT; i++) {
        drop_inodes();
        nanosleep(&pause, NULL);
    }
    assert_in_range((uintmax_t)cached_inodes(f), 1, 2 * KEPT);
    assert_int_equal(pmfs(f, "stats", f->mountpoint, NULL), 0);
    assert_said(f, "cached_inodes");
}

static void what_is_not_mounted_has_no_status(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "stat", f->pool, NULL), 1);
    assert_said(f, "no pmfs is mounted here");
    assert_int_equal(pmfs(f, "stats", "--json", f->pool, NULL), 1);
    assert_said(f, "\"error\":");
    assert_said(f, "\"path\":");
    assert_int_equal(pmfs(f, "df", f->pool, NULL), 1);
    assert_null(strstr(f->output, "available"));
}

static void mkfs_and_fsck_tell_their_version(void **state)
{
    struct mount_fixture *f = *state;
    char version[32];

    snprintf(version, sizeof(version), "pmfs %d.%d", MINL2R_MAJOR, MINL2R_MINOR);
    assert_int_equal(pmfs(f, "mkfs", "-V", NULL), 0);
    assert_said(f, version);
    assert_int_equal(pmfs(f, "fsck", "-V", NULL), 0);
    assert_said(f, version);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_empty(every_command_explains_itself),
        test_empty(an_unknown_command_is_refused),
        test_empty(mkfs_and_fsck_tell_their_version),
        test_empty(messages_begin_with_the_command_and_name_the_file_once),
        test_made(output_that_is_lost_is_an_error),
        test_made(nothing_is_written_into_the_pool_where_streams_are_closed),
        test_empty(mkfs_keeps_an_existing_file),
        test_empty(mkfs_with_force_replaces_a_pool_or_an_empty_file),
        test_empty(mkfs_with_force_spares_every_other_file),
        test_empty(mkfs_says_what_it_thinks_of_a_symbolic_link),
        test_mounted(mkfs_with_force_spares_a_mounted_pool),
        test_empty(mkfs_refuses_sizes_that_are_none),
        test_empty(mkfs_takes_hexadecimal_sizes_as_minl2r_does),
        test_empty(mkfs_on_a_device_that_is_no_memory_says_so),
        test_empty(mkfs_says_what_is_wrong_with_its_arguments),
        test_empty(mkfs_says_what_it_made_and_on_what),
        test_empty(mkfs_refuses_a_lesser_medium_than_required),
        test_mounted(a_second_mount_on_the_directory_is_refused),
        test_mounted(a_second_mount_of_the_pool_is_refused),
        test_empty(mounting_what_is_no_pool_fails_in_the_foreground),
        test_made(mounting_on_no_directory_fails),
        test_made(mounting_on_a_file_fails_and_leaves_it_readable),
        test_made(mounting_over_the_pool_fails),
        test_made(unknown_mount_options_are_refused),
        test_made(options_for_fstab_are_accepted),
        test_made(a_read_only_mount_takes_no_changes),
        test_made(a_read_only_mount_writes_nothing_to_the_pool),
        test_made(mounting_requires_the_medium_it_is_told_to),
        test_empty(a_pool_with_an_odd_name_is_mounted_and_found),
        test_made(names_of_mounts_are_shown_without_control_characters),
        test_made(a_foreground_mount_ends_well_when_unmounted),
        test_made(a_pool_that_is_cut_short_while_mounted_is_named),
        test_made(only_a_pid_file_is_replaced_by_one),
        test_made(a_single_thread_serves_too),
        test_made(the_helper_of_mount_takes_its_arguments),
        test_mounted(umount_returns_when_the_pool_is_closed),
        test_mounted(umount_refuses_what_is_in_use_unless_lazy),
        test_empty(umount_leaves_other_mounts_alone),
        test_mounted(fsck_refuses_a_mounted_pool),
        test_mounted(fsck_counts_what_is_there),
        test_made(fsck_finds_damage_and_changes_nothing),
        test_mounted(fsck_counts_findings_about_the_pool_and_looks_at_the_files),
        test_mounted(fsck_repairs_what_it_is_told_to),
        test_mounted(fsck_repairs_nothing_without_an_answer),
        test_mounted(fsck_repairs_what_a_person_agrees_to),
        test_mounted(fsck_tells_programs_what_it_repaired),
        test_empty(fsck_says_in_json_why_it_could_not_check),
        test_empty(json_is_utf8_whatever_names_are),
        test_empty(inode_numbers_are_digits_alone),
        test_empty(fsck_without_a_pool_is_wrong_usage),
        test_empty(an_unknown_option_is_refused_with_a_hint),
        test_mounted(dump_shows_inodes_maps_and_names),
        test_mounted(dump_ends_where_nodes_lead_to_nothing_in_many_ways),
        test_empty(mkfs_tells_programs_what_it_made),
        test_mounted(df_agrees_with_the_size_of_the_pool),
        test_mounted(stat_names_the_medium_and_who_serves),
        test_mounted(stats_count_what_a_change_costs),
        test_made(inodes_that_the_kernel_forgets_leave_the_daemon_s_memory),
        test_made(what_is_not_mounted_has_no_status),
    };

    skip_without_fuse();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
