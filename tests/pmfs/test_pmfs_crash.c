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
    uint64_t hash; /* of all that is shown */
    uint64_t files[16];
    int file_count;
    uint64_t dirs[16];
    int dir_count;
};

static uint64_t mix(uint64_t hash, const void *bytes, size_t size)
{
    const uint8_t *byte = bytes;

    /* The analyzer does not follow words into their bytes. */
    for (size_t i = 0; i < size; i++) /* NOLINTNEXTLINE(clang-analyzer-core.*) */
        hash = (hash ^ byte[i]) * 1099511628211u;
    return hash;
}

/* All but the times, which may be early. */
static uint64_t mix_attr(uint64_t hash, const struct pmfs_attr *attr)
{
    const uint64_t shown[] = {attr->ino,  attr->mode,   attr->nlink, attr->uid,
                              attr->size, attr->blocks, attr->gid,   attr->rdev};

    return mix(hash, shown, sizeof(shown));
}

static int remember(void *arg, const struct pmfs_dirent *entry)
{
    struct list *list = arg;

    list->hash = mix(list->hash, entry->name, entry->name_size);
    list->hash = mix(list->hash, &entry->next_cookie, sizeof(entry->next_cookie));
    list->hash = mix(list->hash, &entry->ino, sizeof(entry->ino));
    if (!entry->attr)
        return 0;
    if (S_ISDIR(entry->mode)) {
        list->dirs[list->dir_count++] = entry->ino; /* it shows its attributes itself */
        return 0;
    }
    list->hash = mix_attr(list->hash, entry->attr);
    if (S_ISREG(entry->mode))
        list->files[list->file_count++] = entry->ino;
    return 0;
}

/* Lists a directory. The hash stands for all that it shows, but for directories in it.
 */
static int show_directory(struct pmfs *fs, uint64_t ino, struct list *list)
{
    static uint8_t bytes[40 * BLOCK];
    struct pmfs_attr attr = {0};
    int rc = pmfs_getattr(fs, ino, &attr);

    *list = (struct list){0};
    if (rc == 0)
        rc = pmfs_readdir(fs, ino, 0, PMFS_READDIR_ATTR, remember, list);
    if (rc == 0)
        list->hash = mix_attr(list->hash, &attr);
    for (int i = 0; i < list->file_count && rc == 0; i++) {
        size_t done = 0;

        rc = pmfs_read(fs, list->files[i], 0, bytes, sizeof(bytes), &done);
        list->hash = mix(list->hash, bytes, done);
        if (pmfs_getxattr(fs, list->files[i], "user.a", bytes, sizeof(bytes), &done) ==
            0)
            list->hash = mix(list->hash, bytes, done);
    }
    return rc;
}

/*
 * Numbers that stand for what the tree shows: all of it, and the two parts that calls
 * at the same time work in: the directory "dir", and what is not in it. 0: it cannot be
 * read.
 */
struct sums {
    uint64_t all, dir, others;
};

static uint64_t find(struct pmfs *fs, const char *name)
{
    struct pmfs_attr attr = {0};

    pmfs_lookup(fs, ROOT, name, &attr);
    return attr.ino;
}

static struct sums show_tree(struct pmfs *fs)
{
    uint64_t dir = find(fs, "dir");
    struct sums sums = {0};
    struct list root, list;

    if (show_directory(fs, ROOT, &root) < 0)
        return (struct sums){0};
    sums.others = root.hash;
    for (int i = 0; i < root.dir_count; i++) {
        if (show_directory(fs, root.dirs[i], &list) < 0)
            return (struct sums){0};
        if (root.dirs[i] == dir)
            sums.dir = list.hash;
        else
            sums.others = mix(sums.others, &list.hash, sizeof(list.hash));
    }
    sums.all = mix(sums.others, &sums.dir, sizeof(sums.dir));
    return sums;
}

/* ---- Calls --------------------------------------------------------------------- */

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
static int set_xattr(struct pmfs *fs, const char *name, size_t size)
{
    static uint8_t bytes[20 * BLOCK];

    run_new_bytes(bytes, size);
    return pmfs_setxattr(fs, find(fs, name), "user.a", bytes, size, 0);
}

/* Of the owner, user 1, the group, and others, under a mask. */
static const uint8_t acl[4 + 5 * 8] = {
    2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  6,
    0, 1, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
    7, 0, 255, 255, 255, 255, 32, 0, 5,   0,   255, 255, 255, 255};

CALL(access_list)
{
    return pmfs_setxattr(fs, find(fs, "file"), "system.posix_acl_access", acl,
                         sizeof(acl), 0);
}
CALL(chmod_with_an_access_list)
{
    return set(fs, "linked", &(struct pmfs_attr){.mode = 0600}, PMFS_SET_MODE);
}
CALL(mkdir_that_inherits_a_list)
{
    return pmfs_mkdir(fs, find(fs, "dir"), "new", 0755, &nobody, attr);
}
CALL(first_xattr)
{
    return set_xattr(fs, "file", 50);
}
CALL(larger_xattr)
{
    return set_xattr(fs, "small", 3 * BLOCK);
}
CALL(smaller_xattr)
{
    return set_xattr(fs, "small", 9);
}
CALL(removal_of_an_xattr)
{
    return pmfs_removexattr(fs, find(fs, "small"), "user.a");
}
CALL(unlink_with_an_xattr)
{
    return pmfs_unlink(fs, ROOT, "small");
}
CALL(punch_inside_blocks)
{
    return pmfs_fallocate(fs, find(fs, "file"), PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 300,
                          BLOCK);
}
CALL(punch_of_whole_blocks)
{
    return pmfs_fallocate(fs, find(fs, "file"), PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 300,
                          4 * BLOCK);
}
CALL(punch_of_all)
{
    return pmfs_fallocate(fs, find(fs, "sparse"), PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 0,
                          21 * BLOCK);
}
CALL(allocate_past_the_end)
{
    return pmfs_fallocate(fs, find(fs, "small"), PMFS_KEEP_SIZE, 0, 4 * BLOCK);
}
CALL(allocate_and_grow)
{
    return pmfs_fallocate(fs, find(fs, "small"), 0, 100, 4 * BLOCK);
}
CALL(zero_a_range)
{
    return pmfs_fallocate(fs, find(fs, "file"), PMFS_ZERO_RANGE, 9 * BLOCK + 5,
                          3 * BLOCK);
}
CALL(copy_of_data)
{
    uint64_t done;

    return pmfs_copy_range(fs, find(fs, "file"), 100, find(fs, "small"), 200, 2 * BLOCK,
                           &done);
}
CALL(copy_of_a_hole)
{
    uint64_t done;

    return pmfs_copy_range(fs, find(fs, "sparse"), 0, find(fs, "file"), 300, 15 * BLOCK,
                           &done);
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

/* Calls in "dir", for in between another. */
CALL(mknod_in_dir)
{
    return pmfs_mknod(fs, find(fs, "dir"), "new", 0644, 0, &nobody, attr);
}
CALL(unlink_in_dir)
{
    return pmfs_unlink(fs, find(fs, "dir"), "entry");
}
CALL(rename_in_dir)
{
    return pmfs_rename(fs, find(fs, "dir"), "entry", find(fs, "dir"), "a new name", 0);
}
CALL(write_in_dir)
{
    uint8_t bytes[2 * BLOCK];
    size_t done;
    int rc = pmfs_lookup(fs, find(fs, "dir"), "entry", attr);

    run_new_bytes(bytes, sizeof(bytes));
    return rc < 0 ? rc : pmfs_write(fs, attr->ino, 100, bytes, sizeof(bytes), 0, &done);
}

typedef int call_fn(struct pmfs *fs, struct pmfs_attr *attr);

static const struct trial {
    const char *name;
    call_fn *call;
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
    TRIAL(access_list),
    TRIAL(chmod_with_an_access_list),
    TRIAL(mkdir_that_inherits_a_list),
    TRIAL(first_xattr),
    TRIAL(larger_xattr),
    TRIAL(smaller_xattr),
    TRIAL(removal_of_an_xattr),
    TRIAL(unlink_with_an_xattr),
    TRIAL(punch_inside_blocks),
    TRIAL(punch_of_whole_blocks),
    TRIAL(punch_of_all),
    TRIAL(allocate_past_the_end),
    TRIAL(allocate_and_grow),
    TRIAL(zero_a_range),
    TRIAL(copy_of_data),
    TRIAL(copy_of_a_hole),
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
    must(pmfs_setxattr(fs, attr.ino, "system.posix_acl_default", acl, sizeof(acl), 0),
         "setxattr");
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
    must(set_xattr(fs, "small", BLOCK + 7), "setxattr");
    must(pmfs_link(fs, find(fs, "sparse"), ROOT, "linked", &attr), "link");
    must(pmfs_link(fs, find(fs, "linked"), ROOT, "other", &attr), "link");
    must(pmfs_unlink(fs, ROOT, "other"), "unlink"); /* leaves a free entry */
    must(pmfs_unlink(fs, ROOT, "linked"), "unlink");
    must(pmfs_link(fs, find(fs, "nothing"), ROOT, "linked", &attr), "link");
    must(pmfs_setxattr(fs, attr.ino, "system.posix_acl_access", acl, sizeof(acl), 0),
         "setxattr");
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
static call_fn *running_inside; /* in between, or NULL */
static struct pmfs *live;       /* while they run */

/* What may be seen of them. */
static struct sums before, after, inside_before, inside_after;

/* Bytes may be early anywhere, as long as the tree does not show them. */
static void note_all_loose(struct minl2r_pool *pool)
{
    uint64_t first = block_offset(&pool->geo, 2);

    run_note_loose(pool, pool_at(pool, first), pool->geo.pool_size - first);
}

static int do_call(struct minl2r_pool *pool, const struct side *side)
{
    struct pmfs_attr attr;
    int rc = fs_attach(pool, &no_options, &live);

    (void)side;
    if (rc < 0)
        return __LINE__;
    before = show_tree(live);
    rc = running->call(live, &attr);
    if (rc < 0)
        print_error("%s: %d: %s\n", running->name, rc, pmfs_errormsg());
    after = show_tree(live);
    fs_detach(live);
    note_all_loose(pool);
    return rc < 0 || before.all == 0 || after.all == 0 ? __LINE__ : 0;
}

static int do_call_inside(struct minl2r_pool *pool, const struct side *side)
{
    struct pmfs_attr attr;

    (void)side;
    inside_before.dir = show_tree(live).dir;
    int rc = running_inside(live, &attr);
    inside_after.dir = show_tree(live).dir;
    note_all_loose(pool);
    return rc < 0 ? __LINE__ : 0;
}

static void print_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("fsck: %s\n", what);
}

static bool is_allowed(const struct sums *found)
{
    if (!running_inside)
        return found->all == before.all || found->all == after.all;
    return (found->others == before.others || found->others == after.others) &&
           (found->dir == inside_before.dir || found->dir == inside_after.dir);
}

/* The oracle: what a mount shows after recovery. */
static int judge(struct minl2r_pool *pool)
{
    struct pmfs_fsck_summary summary;
    struct sums found;
    struct pmfs *fs;

    if (fsck_pool(pool, print_finding, NULL, &summary) < 0)
        return __LINE__;
    if (fs_attach(pool, &no_options, &fs) < 0)
        return __LINE__;
    found = show_tree(fs);
    fs_detach(fs);
    if (!is_allowed(&found))
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

static void explore_and_end(struct run *run, const char *inside)
{
    const uint64_t few = is_long() ? 1024 : 16; /* where there are many runs */
    const struct explore_options options = {
        .medium = MINL2R_DAX,
        .states_max = running_inside ? few
                      : is_long()    ? 16384
                                     : 256,
        .nested_states_max = running_inside ? few / 16
                             : is_long()    ? 64
                                            : 4,
        .kill = true,
        .use_every = 1,
        .use = judge,
        .seed = 1,
    };
    struct explore_count count = {0};
    bool good = run_explore(run, &options, &count);

    if (!good)
        print_error("%s%s: %s\n", running->name, inside, run->failure);
    run_end(run);
    assert_true(good);
    assert_true(count.states > 0);
}

static void every_crash_shows_the_tree_before_or_after(void **state)
{
    struct run run;

    running = *state;
    running_inside = NULL;
    run_begin(&run, &bed, MINL2R_DAX);
    run_operation(&run, do_call);
    explore_and_end(&run, "");
}

/* Two calls share lines, words of states, and the table; their locks are apart. */
static void every_crash_shows_each_of_two_calls_whole_or_not(void **state)
{
    static const struct trial insides[] = {
        TRIAL(mknod_in_dir),
        TRIAL(unlink_in_dir),
        TRIAL(rename_in_dir),
        TRIAL(write_in_dir),
    };

    running = *state;
    for (size_t i = 0; i < sizeof(insides) / sizeof(*insides); i++) {
        bool ran = true;

        running_inside = insides[i].call;
        for (uint32_t pause = 0; ran; pause++) {
            struct run run;

            run_begin(&run, &bed, MINL2R_DAX);
            ran = run_two(&run, do_call, do_call_inside, 0, pause);
            if (ran)
                explore_and_end(&run, insides[i].name);
            else
                run_end(&run);
        }
    }
}

static int run_group(const char *group, const struct trial *from, size_t count,
                     CMUnitTestFunction function, const struct minl2r_options *options)
{
    struct CMUnitTest tests[sizeof(trials) / sizeof(*trials)];

    for (size_t i = 0; i < count; i++) {
        const struct trial *trial = &from[i];

        tests[i] = (struct CMUnitTest){.name = trial->name, .test_func = function};
        memcpy(&tests[i].initial_state, &trial, sizeof(tests[i].initial_state));
    }
    make_bed(options);
    int failed = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    bed_finish(&bed);
    return failed;
}

int main(int argc, char **argv)
{
    static const struct trial outsides[] = {
        TRIAL(mknod),
        TRIAL(unlink),
        TRIAL(rename),
        TRIAL(rename_over_a_file),
        TRIAL(overwrite_a_block),
        TRIAL(append_inside_a_block),
        TRIAL(append_across_blocks),
        TRIAL(truncate_to_nothing),
        TRIAL(chmod),
    };
    const struct minl2r_options by_half = {
        .block_size = BLOCK, .lanes = 2, .log_size = MINL2R_LOG_SIZE_MIN};
    const struct minl2r_options always_swap = {.block_size = BLOCK,
                                               .lanes = 2,
                                               .log_size = MINL2R_LOG_SIZE_MIN,
                                               .pointer_threshold =
                                                   MINL2R_POINTER_ALWAYS};
    const size_t trial_count = sizeof(trials) / sizeof(*trials);
    int failed = 0;

    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    failed += run_group("one", trials, trial_count,
                        every_crash_shows_the_tree_before_or_after, &by_half);
    failed += run_group("swap always", trials, trial_count,
                        every_crash_shows_the_tree_before_or_after, &always_swap);
    failed += run_group("two at once", outsides, sizeof(outsides) / sizeof(*outsides),
                        every_crash_shows_each_of_two_calls_whole_or_not, &by_half);
    run_forget_memory();
    return failed;
}
