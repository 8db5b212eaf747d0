/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every kind of call, crashed in every way that tests/crash/explore.h knows: recovery
 * must lead to the tree before the call or after it, and fsck must find nothing in it.
 *
 * Calls of several transactions are not among them: they may be seen half done by who
 * looks at blocks, though not by who looks at files. MINL2R_TEST_LONG=ON: more states.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "libminl2r/commit.h"
#include "libminl2r/recovery.h"
#include "pmfs-proto/core/fs.h"
#include "pmfs-proto/core/fsck.h"
#include "tests/crash/run.h"

#define ROOT PMFS_ROOT_INO
#define BLOCK BED_BLOCK_SIZE

static const struct pmfs_cred nobody = {.uid = 7, .gid = 8};
static const struct pmfs_mount_options no_options;

/* ---- What a tree shows --------------------------------------------------------- */

struct list {
    uint64_t inos[16];
    int count;
};

struct sum {
    uint64_t hash;
    struct list dirs;
};

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 1099511628211u;
    return hash;
}

static int remember(void *arg, const struct pmfs_dirent *entry)
{
    struct sum *sum = arg;
    /* All but the times, which may be early. */
    const uint64_t shown[] = {entry->ino,
                              entry->attr ? entry->attr->mode : 0,
                              entry->attr ? entry->attr->nlink : 0,
                              entry->attr ? entry->attr->size : 0,
                              entry->attr ? entry->attr->blocks : 0,
                              entry->attr ? entry->attr->uid : 0,
                              entry->attr ? entry->attr->gid : 0};
    uint64_t hash = mix(entry->next_cookie, entry->name, entry->name_size);

    sum->hash = mix(sum->hash, &(uint64_t){mix(hash, shown, sizeof(shown))}, 8);
    if (S_ISDIR(entry->mode) && entry->name[0] != '.')
        sum->dirs.inos[sum->dirs.count++] = entry->ino;
    return 0;
}

static int remember_file(void *arg, const struct pmfs_dirent *entry)
{
    struct list *files = arg;

    if (S_ISREG(entry->mode))
        files->inos[files->count++] = entry->ino;
    return 0;
}

/* A number that stands for all that the tree shows. */
static uint64_t tree_sum(struct pmfs *fs)
{
    static uint8_t bytes[40 * BLOCK];
    struct sum sum = {.dirs = {.inos = {ROOT}, .count = 1}};

    for (int i = 0; i < sum.dirs.count; i++) {
        uint64_t dir = sum.dirs.inos[i];
        struct list files = {0};

        if (pmfs_readdir(fs, dir, 0, PMFS_READDIR_ATTR, remember, &sum) < 0 ||
            pmfs_readdir(fs, dir, 0, 0, remember_file, &files) < 0)
            return 0;
        for (int n = 0; n < files.count; n++) {
            size_t done = 0;

            if (pmfs_read(fs, files.inos[n], 0, bytes, sizeof(bytes), &done) < 0)
                return 0;
            sum.hash = mix(sum.hash, bytes, done);
        }
    }
    return sum.hash;
}

/* ---- Calls --------------------------------------------------------------------- */

static uint64_t find(struct pmfs *fs, const char *name)
{
    struct pmfs_attr attr = {0};

    pmfs_lookup(fs, ROOT, name, &attr);
    return attr.ino;
}

static int write_new(struct pmfs *fs, const char *name, uint64_t offset, size_t size,
                     unsigned flags)
{
    static uint8_t bytes[20 * BLOCK];
    size_t done;

    run_new_bytes(bytes, size);
    return pmfs_write(fs, find(fs, name), offset, bytes, size, flags, &done);
}

static int set(struct pmfs *fs, const char *name, const struct pmfs_attr *values,
               unsigned mask)
{
    return pmfs_setattr(fs, find(fs, name), values, mask, NULL);
}

#define CALL(name)                                                                     \
    static int call_##name(struct pmfs *fs,                                            \
                           struct pmfs_attr *attr __attribute__((unused)))

CALL(mknod)
{
    return pmfs_mknod(fs, ROOT, "new", 0644, 0, &nobody, attr);
}
CALL(mknod_in_new_directory_block)
{
    return pmfs_mknod(fs, find(fs, "empty"), "a rather long name", 0644, 0, &nobody,
                      attr);
}
CALL(mkdir)
{
    return pmfs_mkdir(fs, ROOT, "new", 0755, &nobody, attr);
}
CALL(symlink)
{
    return pmfs_symlink(fs, ROOT, "new", "where it leads", &nobody, attr);
}
CALL(link)
{
    return pmfs_link(fs, find(fs, "file"), find(fs, "dir"), "new", attr);
}
CALL(unlink)
{
    return pmfs_unlink(fs, ROOT, "file");
}
CALL(unlink_of_one_of_two_names)
{
    return pmfs_unlink(fs, ROOT, "linked");
}
CALL(unlink_of_a_sparse_file)
{
    return pmfs_unlink(fs, ROOT, "sparse");
}
CALL(rmdir)
{
    return pmfs_rmdir(fs, ROOT, "empty");
}
CALL(rename)
{
    return pmfs_rename(fs, ROOT, "file", ROOT, "a new name", 0);
}
CALL(rename_to_another_directory)
{
    return pmfs_rename(fs, ROOT, "file", find(fs, "dir"), "moved", 0);
}
CALL(rename_of_a_directory)
{
    return pmfs_rename(fs, ROOT, "empty", find(fs, "dir"), "moved", 0);
}
CALL(rename_over_a_file)
{
    return pmfs_rename(fs, ROOT, "small", ROOT, "file", 0);
}
CALL(rename_exchange)
{
    return pmfs_rename(fs, ROOT, "empty", find(fs, "dir"), "entry",
                       PMFS_RENAME_EXCHANGE);
}
CALL(overwrite_some_bytes)
{
    return write_new(fs, "file", 700, 50, 0);
}
CALL(overwrite_a_block)
{
    return write_new(fs, "file", BLOCK, BLOCK, 0);
}
CALL(overwrite_across_blocks)
{
    return write_new(fs, "file", 300, 3 * BLOCK, 0);
}
CALL(append_inside_a_block)
{
    return write_new(fs, "small", 0, 40, PMFS_APPEND);
}
CALL(append_across_blocks)
{
    return write_new(fs, "small", 0, 2 * BLOCK, PMFS_APPEND);
}
CALL(append_to_an_empty_file)
{
    return write_new(fs, "nothing", 0, 100, PMFS_APPEND);
}
CALL(write_with_a_gap_inside_a_block)
{
    return write_new(fs, "small", 200, 30, 0);
}
CALL(write_far_past_the_end)
{
    return write_new(fs, "small", 15 * BLOCK + 9, 700, 0);
}
CALL(write_into_a_hole)
{
    return write_new(fs, "sparse", 10 * BLOCK + 100, 100, 0);
}
CALL(write_under_new_nodes)
{
    return write_new(fs, "sparse", (uint64_t)1 << 34, 100, 0);
}
CALL(truncate_inside_a_block)
{
    return set(fs, "small", &(struct pmfs_attr){.size = 5}, PMFS_SET_SIZE);
}
CALL(truncate_by_blocks)
{
    return set(fs, "file", &(struct pmfs_attr){.size = 600}, PMFS_SET_SIZE);
}
CALL(truncate_to_nothing)
{
    return set(fs, "file", &(struct pmfs_attr){.size = 0}, PMFS_SET_SIZE);
}
CALL(truncate_upwards)
{
    return set(fs, "small", &(struct pmfs_attr){.size = 5000}, PMFS_SET_SIZE);
}
CALL(chmod)
{
    return set(fs, "file", &(struct pmfs_attr){.mode = 0600}, PMFS_SET_MODE);
}
CALL(chown)
{
    return set(fs, "file", &(struct pmfs_attr){.uid = 1, .gid = 2},
               PMFS_SET_UID | PMFS_SET_GID);
}
CALL(setattr_of_all)
{
    return set(fs, "small",
               &(struct pmfs_attr){.mode = 0600, .uid = 1, .gid = 2, .size = 60},
               PMFS_SET_MODE | PMFS_SET_UID | PMFS_SET_GID | PMFS_SET_SIZE |
                   PMFS_SET_MTIME_NOW | PMFS_SET_ATIME_NOW);
}

/* As after unlink of an open file: an orphan, which mounting then frees. */
CALL(unlink_of_an_open_file)
{
    pmfs_open(fs, find(fs, "file"));
    return pmfs_unlink(fs, ROOT, "file");
}

static const struct trial {
    const char *name;
    int (*call)(struct pmfs *fs, struct pmfs_attr *attr);
} trials[] = {
#define TRIAL(name)                                                                    \
    {                                                                                  \
#name, call_##name                                                             \
    }
    TRIAL(mknod),
    TRIAL(mknod_in_new_directory_block),
    TRIAL(mkdir),
    TRIAL(symlink),
    TRIAL(link),
    TRIAL(unlink),
    TRIAL(unlink_of_one_of_two_names),
    TRIAL(unlink_of_a_sparse_file),
    TRIAL(unlink_of_an_open_file),
    TRIAL(rmdir),
    TRIAL(rename),
    TRIAL(rename_to_another_directory),
    TRIAL(rename_of_a_directory),
    TRIAL(rename_over_a_file),
    TRIAL(rename_exchange),
    TRIAL(overwrite_some_bytes),
    TRIAL(overwrite_a_block),
    TRIAL(overwrite_across_blocks),
    TRIAL(append_inside_a_block),
    TRIAL(append_across_blocks),
    TRIAL(append_to_an_empty_file),
    TRIAL(write_with_a_gap_inside_a_block),
    TRIAL(write_far_past_the_end),
    TRIAL(write_into_a_hole),
    TRIAL(write_under_new_nodes),
    TRIAL(truncate_inside_a_block),
    TRIAL(truncate_by_blocks),
    TRIAL(truncate_to_nothing),
    TRIAL(truncate_upwards),
    TRIAL(chmod),
    TRIAL(chown),
    TRIAL(setattr_of_all),
};

/* ---- The bed: a filesystem with one of each ------------------------------------ */

static struct bed bed;

static void must(int rc, const char *what)
{
    if (rc == 0)
        return;
    print_error("%s: %d: %s\n", what, rc, pmfs_errormsg());
    exit(2);
}

static void make_tree(struct pmfs *fs)
{
    struct pmfs_attr attr;

    must(pmfs_mkdir(fs, ROOT, "dir", 0755, &nobody, &attr), "mkdir");
    must(pmfs_mknod(fs, attr.ino, "entry", 0644, 0, &nobody, &attr), "mknod");
    must(pmfs_mkdir(fs, ROOT, "empty", 0755, &nobody, &attr), "mkdir");
    must(pmfs_mknod(fs, ROOT, "file", 0644, 0, &nobody, &attr), "mknod");
    must(pmfs_mknod(fs, ROOT, "small", 0644, 0, &nobody, &attr), "mknod");
    must(pmfs_mknod(fs, ROOT, "nothing", 0644, 0, &nobody, &attr), "mknod");
    must(pmfs_mknod(fs, ROOT, "sparse", 0644, 0, &nobody, &attr), "mknod");
    must(write_new(fs, "file", 0, 10 * BLOCK + 100, 0), "write");
    must(write_new(fs, "small", 0, 100, 0), "write");
    must(set(fs, "small", &(struct pmfs_attr){.size = 50}, PMFS_SET_SIZE), "truncate");
    must(write_new(fs, "sparse", 20 * BLOCK, 100, 0), "write");
    must(pmfs_link(fs, find(fs, "sparse"), ROOT, "linked", &attr), "link");
    must(pmfs_link(fs, find(fs, "linked"), ROOT, "other", &attr), "link");
    must(pmfs_unlink(fs, ROOT, "other"), "unlink"); /* leaves a free entry */
    must(pmfs_unlink(fs, ROOT, "linked"), "unlink");
    must(pmfs_link(fs, find(fs, "nothing"), ROOT, "linked", &attr), "link");
}

static void make_bed(const struct minl2r_options *options)
{
    const struct pmfs_mkfs_options mkfs = {0};
    struct minl2r_pool pool = {.tx_lock = PTHREAD_MUTEX_INITIALIZER,
                               .root_lock = PTHREAD_MUTEX_INITIALIZER};
    struct pmfs *fs;
    struct pm pm;

    bed_init(&bed, options, false);
    pm_adopt(&pm, bed.memory, BED_SIZE, MINL2R_DAX);
    must(pool_attach(&pool, &pm, NULL), "attach");
    must(recovery_run(&pool), "recover");
    must(fs_format(&pool, &mkfs), "mkfs");
    must(fs_attach(&pool, &no_options, &fs), "mount");
    make_tree(fs);
    fs_detach(fs);
    must(tx_free_all(&pool), "end");
    pool_detach(&pool);
}

/* ---- Crashing ------------------------------------------------------------------ */

static const struct trial *running;
static uint64_t sum_before, sum_after; /* of the call that is crashed */

static int do_call(struct minl2r_pool *pool, const struct side *side)
{
    const struct geometry *geo = &pool->geo;
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc = fs_attach(pool, &no_options, &fs);

    (void)side;
    if (rc < 0)
        return __LINE__;
    sum_before = tree_sum(fs);
    rc = running->call(fs, &attr);
    if (rc < 0)
        print_error("%s: %d: %s\n", running->name, rc, pmfs_errormsg());
    sum_after = tree_sum(fs);
    fs_detach(fs);
    /* Bytes may be early, as long as the tree does not show them. */
    run_note_loose(pool, pool_at(pool, block_offset(geo, 2)),
                   geo->pool_size - block_offset(geo, 2));
    return rc < 0 || sum_before == 0 || sum_after == 0 ? __LINE__ : 0;
}

static void print_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("fsck: %s\n", what);
}

/* The oracle: what a mount shows after recovery. */
static int judge(struct minl2r_pool *pool)
{
    struct pmfs_fsck_summary summary;
    struct pmfs *fs;
    uint64_t sum;

    if (fsck_pool(pool, print_finding, NULL, &summary) < 0)
        return __LINE__;
    if (fs_attach(pool, &no_options, &fs) < 0)
        return __LINE__;
    sum = tree_sum(fs);
    fs_detach(fs);
    if (sum != sum_before && sum != sum_after)
        return __LINE__;
    if (fsck_pool(pool, print_finding, NULL, &summary) < 0 || summary.orphans)
        return __LINE__;
    return 0;
}

static bool is_long(void)
{
    const char *value = getenv("MINL2R_TEST_LONG");

    return value && strcmp(value, "ON") == 0;
}

static void every_crash_shows_the_tree_before_or_after(void **state)
{
    const struct explore_options options = {
        .medium = MINL2R_DAX,
        .states_max = is_long() ? 16384 : 256,
        .nested_states_max = is_long() ? 64 : 4,
        .kill = true,
        .use_every = 1,
        .use = judge,
        .seed = 1,
    };
    struct explore_count count = {0};
    struct run run;

    running = *state;
    run_begin(&run, &bed, MINL2R_DAX);
    run_operation(&run, do_call);
    bool good = run_explore(&run, &options, &count);
    if (!good)
        print_error("%s: %s\n", running->name, run.failure);
    run_end(&run);
    print_message("          %llu states, %llu with something to undo\n",
                  (unsigned long long)count.states, (unsigned long long)count.undone);
    assert_true(good);
}

static int run_all(const char *group, const struct minl2r_options *options)
{
    struct CMUnitTest tests[sizeof(trials) / sizeof(*trials)];

    for (size_t i = 0; i < sizeof(trials) / sizeof(*trials); i++) {
        const struct trial *trial = &trials[i];

        tests[i] = (struct CMUnitTest){.name = trial->name,
                                       .test_func =
                                           every_crash_shows_the_tree_before_or_after};
        memcpy(&tests[i].initial_state, &trial, sizeof(trial));
    }
    make_bed(options);
    int failed = cmocka_run_group_tests_name(group, tests, NULL, NULL);
    bed_finish(&bed);
    return failed;
}

int main(int argc, char **argv)
{
    const struct minl2r_options by_half = {
        .block_size = BLOCK, .lanes = 2, .log_size = MINL2R_LOG_SIZE_MIN};
    const struct minl2r_options always_swap = {.block_size = BLOCK,
                                               .lanes = 2,
                                               .log_size = MINL2R_LOG_SIZE_MIN,
                                               .pointer_threshold =
                                                   MINL2R_POINTER_ALWAYS};
    int failed;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    failed = run_all("by half", &by_half);
    failed += run_all("swap always", &always_swap);
    run_forget_memory();
    return failed;
}
