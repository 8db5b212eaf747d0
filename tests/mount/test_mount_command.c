/* SPDX-License-Identifier: BSD-3-Clause */
/* The command `pmfs`: what it refuses, what it says, and its exit statuses. */
#include "tests/mount/mount_fixture.h"

#include <cjson/cJSON.h>
#include <signal.h>
#include <time.h>

static void every_command_explains_itself(void **state)
{
    static const char *const commands[] = {"mkfs", "mount", "umount", "fsck",
                                           "df",   "stat",  "stats"};
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
    assert_said(f, "no command 'mounted'");
}

/* ---- mkfs -------------------------------------------------------------------- */

static void mkfs_keeps_an_existing_file(void **state)
{
    struct mount_fixture *f = *state;

    write_file(f->pool, "precious", 8);
    assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", NULL), 1);
    assert_file_holds(f->pool, "precious", 8);
}

static void mkfs_with_force_replaces_a_file(void **state)
{
    struct mount_fixture *f = *state;

    write_file(f->pool, "precious", 8);
    assert_int_equal(pmfs(f, "mkfs", "--force", f->pool, "16M", NULL), 0);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
}

static void mkfs_with_force_spares_a_mounted_pool(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "mkfs", "--force", f->pool, "16M", NULL), 1);
    assert_said(f, "busy");
    write_file(in_mount(f, "file"), "content", 7);
}

static void mkfs_refuses_sizes_that_are_none(void **state)
{
    static const char *const sizes[] = {"",   "x",   "-5M",
                                        "5X", "5MM", "99999999999999999999"};
    struct mount_fixture *f = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        assert_int_equal(pmfs(f, "mkfs", f->pool, sizes[i], NULL), 2);
    assert_errno(access(f->pool, F_OK), ENOENT);
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

static void unknown_mount_options_are_refused(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(
        pmfs(f, "mount", "-o", "rw,write_back", f->pool, f->mountpoint, NULL), 1);
    assert_said(f, "'write_back'");
    assert_int_equal(
        pmfs(f, "mount", "-o", "require=fast", f->pool, f->mountpoint, NULL), 1);
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

    snprintf(f->pool, sizeof(f->pool), "%s", in_dir(f, "odd, \\ name=1"));
    assert_int_equal(pmfs(f, "mkfs", f->pool, "16M", NULL), 0);
    mount_fs(f, NULL);
    assert_int_equal(pmfs(f, "df", f->pool, NULL), 0);
    assert_said(f, "odd, \\ name=1");
    assert_int_equal(pmfs(f, "umount", f->pool, NULL), 0);
}

static void a_foreground_mount_ends_well_when_unmounted(void **state)
{
    struct mount_fixture *f = *state;
    pid_t pid = start(PMFS_TOOL, "mount", "--foreground", "--pid-file", f->pid_file,
                      f->pool, f->mountpoint, NULL);

    for (int i = 0; i < 1000 && access(f->pid_file, F_OK) < 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    assert_int_equal(daemon_pid(f), pid);
    write_file(in_mount(f, "file"), "content", 7);
    unmount_fs(f);
    assert_int_equal(exit_status_of(pid), 0);
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

static void fsck_without_a_pool_is_wrong_usage(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "fsck", NULL), 16);
    assert_int_equal(pmfs(f, "fsck", in_dir(f, "missing"), NULL), 8);
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
    assert_int_equal((int)(json_number(f, "fences") - fences), 3);
    assert_int_equal(pmfs(f, "stats", f->mountpoint, NULL), 0);
    assert_said(f, "pointer_swaps");
}

static void what_is_not_mounted_has_no_status(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(pmfs(f, "stat", f->pool, NULL), 1);
    assert_said(f, "no pmfs is mounted here");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_empty(every_command_explains_itself),
        test_empty(an_unknown_command_is_refused),
        test_empty(mkfs_keeps_an_existing_file),
        test_empty(mkfs_with_force_replaces_a_file),
        test_mounted(mkfs_with_force_spares_a_mounted_pool),
        test_empty(mkfs_refuses_sizes_that_are_none),
        test_empty(mkfs_refuses_a_lesser_medium_than_required),
        test_mounted(a_second_mount_on_the_directory_is_refused),
        test_mounted(a_second_mount_of_the_pool_is_refused),
        test_empty(mounting_what_is_no_pool_fails_in_the_foreground),
        test_made(mounting_on_no_directory_fails),
        test_made(unknown_mount_options_are_refused),
        test_made(options_for_fstab_are_accepted),
        test_made(a_read_only_mount_takes_no_changes),
        test_made(mounting_requires_the_medium_it_is_told_to),
        test_empty(a_pool_with_an_odd_name_is_mounted_and_found),
        test_made(a_foreground_mount_ends_well_when_unmounted),
        test_made(a_single_thread_serves_too),
        test_made(the_helper_of_mount_takes_its_arguments),
        test_mounted(umount_returns_when_the_pool_is_closed),
        test_mounted(umount_refuses_what_is_in_use_unless_lazy),
        test_empty(umount_leaves_other_mounts_alone),
        test_mounted(fsck_refuses_a_mounted_pool),
        test_mounted(fsck_counts_what_is_there),
        test_made(fsck_finds_damage_and_changes_nothing),
        test_empty(fsck_without_a_pool_is_wrong_usage),
        test_mounted(df_agrees_with_the_size_of_the_pool),
        test_mounted(stat_names_the_medium_and_who_serves),
        test_mounted(stats_count_what_a_change_costs),
        test_made(what_is_not_mounted_has_no_status),
    };

    skip_without_fuse();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
