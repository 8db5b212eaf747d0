/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/scale.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bench/harness.h"
#include "bench/scratch.h"
#include "include/pmfs.h"

#define ROUNDS 11
#define OPERATIONS 2000u /* per round */
#define POOL_SIZE ((uint64_t)64 << 20)
#define BATCH 64u /* blocks allocated in a transaction */

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

struct scale {
    const char *path;
    struct pmfs *fs;
    uint64_t dir;
    uint64_t names; /* in it: name 0 and so on */
    uint64_t random;
    scale_take_fn *take;
    void *arg;
};

static uint64_t random_below(struct scale *scale, uint64_t end)
{
    scale->random = scale->random * 6364136223846793005u + 1442695040888963407u;
    return (scale->random >> 33) % end;
}

/* ---- Names ----------------------------------------------------------------------- */

typedef int name_fn(struct scale *scale, const char *name);

static int look_up(struct scale *scale, const char *name)
{
    struct pmfs_attr attr;

    return pmfs_lookup(scale->fs, scale->dir, name, &attr);
}

static int look_up_none(struct scale *scale, const char *name)
{
    char other[48];

    snprintf(other, sizeof(other), "no %s", name);
    return look_up(scale, other) == -ENOENT ? 0 : -EIO;
}

static int create(struct scale *scale, const char *name)
{
    struct pmfs_attr attr;

    return pmfs_mknod(scale->fs, scale->dir, name, S_IFREG | 0644, 0, &nobody, &attr);
}

static int create_and_unlink(struct scale *scale, const char *name)
{
    char other[48];

    snprintf(other, sizeof(other), "another %s", name);
    int rc = create(scale, other);
    return rc < 0 ? rc : pmfs_unlink(scale->fs, scale->dir, other);
}

static int make_names(struct scale *scale, uint64_t names)
{
    char name[32];
    int rc = 0;

    for (; rc == 0 && scale->names < names; scale->names++) {
        snprintf(name, sizeof(name), "name %llu", (unsigned long long)scale->names);
        rc = create(scale, name);
    }
    return rc;
}

static uint64_t fences_of(struct minl2r_pool *pool)
{
    struct minl2r_stats stats;

    return minl2r_stats_get(pool, &stats) == 0 ? stats.fences : 0;
}

/* Of names in a random order. */
static int measure_names(struct scale *scale, const char *op, name_fn *run)
{
    uint64_t before = fences_of(pmfs_pool(scale->fs));
    double ns[ROUNDS];
    char name[32];
    int rc = 0;

    for (int round = 0; round < ROUNDS; round++) {
        uint64_t start_ns = bench_now_ns();

        for (uint32_t i = 0; rc == 0 && i < OPERATIONS; i++) {
            snprintf(name, sizeof(name), "name %llu",
                     (unsigned long long)random_below(scale, scale->names));
            rc = run(scale, name);
        }
        ns[round] = (double)(bench_now_ns() - start_ns) / OPERATIONS;
    }
    double fences = (double)(fences_of(pmfs_pool(scale->fs)) - before);
    const struct scale_figure figure = {op, (double)scale->names, ns, ROUNDS,
                                        fences / (ROUNDS * OPERATIONS)};
    return rc < 0 ? rc : scale->take(scale->arg, &figure);
}

static int remount(struct scale *scale, double *mount_ns)
{
    int rc = pmfs_unmount(scale->fs);
    uint64_t start_ns = bench_now_ns();

    scale->fs = NULL;
    if (rc == 0)
        rc = pmfs_mount(scale->path, NULL, &scale->fs);
    *mount_ns = (double)(bench_now_ns() - start_ns);
    return rc;
}

/* Mounting, and the lookup that comes first after it. */
static int measure_mounts(struct scale *scale)
{
    double mount_ns[ROUNDS], lookup_ns[ROUNDS];
    int rc = 0;

    for (int round = 0; rc == 0 && round < ROUNDS; round++) {
        rc = remount(scale, &mount_ns[round]);
        uint64_t start_ns = bench_now_ns();
        if (rc == 0)
            rc = look_up(scale, "name 7");
        lookup_ns[round] = (double)(bench_now_ns() - start_ns);
    }
    const struct scale_figure mount = {"mount", (double)scale->names, mount_ns, ROUNDS,
                                       0};
    const struct scale_figure lookup = {"first lookup", (double)scale->names, lookup_ns,
                                        ROUNDS, 0};
    if (rc == 0)
        rc = scale->take(scale->arg, &mount);
    return rc < 0 ? rc : scale->take(scale->arg, &lookup);
}

/* The first touch of a page is the kernel's, and a hypervisor's; DAX has few, large ones. */
static int touch_pages(struct minl2r_pool *pool)
{
    struct minl2r_info info;
    int rc = minl2r_pool_info(pool, &info);

    for (uint64_t at = 0; rc == 0 && at < info.pool_size; at += 4096) {
        const volatile uint8_t *byte = minl2r_at(pool, at);

        if (byte)
            (void)*byte;
    }
    return rc;
}

static int measure_directory(struct scale *scale, uint64_t names)
{
    int rc = make_names(scale, names);

    if (rc == 0)
        rc = measure_mounts(scale);
    if (rc == 0)
        rc = touch_pages(pmfs_pool(scale->fs));
    if (rc == 0)
        rc = measure_names(scale, "lookup among", look_up);
    if (rc == 0)
        rc = measure_names(scale, "lookup of none among", look_up_none);
    return rc < 0 ? rc : measure_names(scale, "create+unlink among", create_and_unlink);
}

static int measure_directories(struct scale *scale, uint64_t names_max)
{
    struct pmfs_attr attr;
    int rc;

    scale->path = scratch_path("scale");
    rc = pmfs_mkfs(scale->path, POOL_SIZE + names_max * 700, NULL);
    if (rc == 0)
        rc = pmfs_mount(scale->path, NULL, &scale->fs);
    if (rc == 0)
        rc = pmfs_mkdir(scale->fs, PMFS_ROOT_INO, "directory", 0755, &nobody, &attr);
    scale->dir = rc == 0 ? attr.ino : 0;
    for (uint64_t names = 1000; rc == 0 && names <= names_max; names *= 10)
        rc = measure_directory(scale, names);
    pmfs_unmount(scale->fs);
    scratch_unlink(scale->path);
    return rc;
}

/* ---- Allocation ------------------------------------------------------------------ */

struct blocks {
    struct minl2r_pool *pool;
    uint64_t *offsets; /* of those that are allocated */
    uint64_t count;
    uint64_t all;
};

/* Allocates all that can be, in transactions of a bounded size. */
static int fill(struct blocks *blocks)
{
    bool is_full = false;
    int rc = 0;

    while (rc == 0 && !is_full) {
        struct minl2r_tx *tx;

        rc = minl2r_tx_begin(blocks->pool, &tx);
        if (rc < 0)
            return rc;
        for (uint32_t i = 0; i < BATCH && !is_full; i++) {
            is_full = blocks->count == blocks->all ||
                      minl2r_tx_alloc(tx, 1, &blocks->offsets[blocks->count], NULL) < 0;
            blocks->count += !is_full;
        }
        rc = minl2r_tx_commit(tx);
    }
    return rc;
}

/* Frees random ones, until `percent` of all are allocated. */
static int thin_out(struct scale *scale, struct blocks *blocks, uint32_t percent)
{
    int rc = 0;

    while (rc == 0 && blocks->count * 100 > blocks->all * percent) {
        struct minl2r_tx *tx;

        rc = minl2r_tx_begin(blocks->pool, &tx);
        for (uint32_t i = 0; rc == 0 && i < BATCH && blocks->count > 0; i++) {
            uint64_t *any = &blocks->offsets[random_below(scale, blocks->count)];

            rc = minl2r_tx_free(tx, *any, 1);
            *any = blocks->offsets[--blocks->count];
        }
        if (rc == 0)
            rc = minl2r_tx_commit(tx);
    }
    return rc;
}

/* Takes `run` blocks at a time, and gives them back: nothing is committed. */
static int take_runs(struct blocks *blocks, uint64_t run, double *ns)
{
    struct minl2r_tx *tx;
    uint32_t taken = 0;
    int rc = minl2r_tx_begin(blocks->pool, &tx);
    uint64_t start_ns = bench_now_ns();

    while (rc == 0 && taken < BATCH) {
        rc = minl2r_tx_alloc(tx, run, NULL, NULL);
        taken += rc == 0;
    }
    *ns = (double)(bench_now_ns() - start_ns) / BATCH;
    minl2r_tx_abort(tx);
    return rc;
}

static int measure_taking(struct scale *scale, struct blocks *blocks, const char *op,
                          uint64_t run, uint32_t percent)
{
    double ns[ROUNDS];
    int rc = 0;

    for (int round = 0; rc == 0 && round < ROUNDS; round++)
        rc = take_runs(blocks, run, &ns[round]);
    const struct scale_figure figure = {op, percent, ns, ROUNDS, 0};
    if (rc == -ENOSPC)
        return 0; /* so full, there are no such runs */
    return rc < 0 ? rc : scale->take(scale->arg, &figure);
}

static int measure_allocation(struct scale *scale, uint64_t pool_size)
{
    static const uint32_t percents[] = {95, 90, 75, 50, 25, 10};
    const struct minl2r_options options = {.spare_blocks = 1};
    const char *path = scratch_path("blocks");
    struct blocks blocks = {0};
    struct minl2r_info info;
    int rc = minl2r_pool_create(path, "bench", pool_size, &options, &blocks.pool);

    scratch_unlink(path);
    if (rc == 0)
        rc = minl2r_pool_info(blocks.pool, &info);
    if (rc != 0)
        return rc;
    blocks.all = info.blocks;
    blocks.offsets = malloc(blocks.all * sizeof(*blocks.offsets));
    rc = blocks.offsets ? fill(&blocks) : -ENOMEM;
    for (size_t i = 0; rc == 0 && i < sizeof(percents) / sizeof(percents[0]); i++) {
        rc = thin_out(scale, &blocks, percents[i]);
        if (rc == 0)
            rc =
                measure_taking(scale, &blocks, "allocate a block at %", 1, percents[i]);
        if (rc == 0)
            rc = measure_taking(scale, &blocks, "allocate 2 blocks at %", 2,
                                percents[i]);
    }
    free(blocks.offsets);
    minl2r_pool_close(blocks.pool);
    return rc;
}

int scale_measure(bool is_quick, scale_take_fn *take, void *arg)
{
    struct scale scale = {.random = 1, .take = take, .arg = arg};
    int rc = measure_directories(&scale, is_quick ? 10000 : 1000000);

    return rc < 0 ? rc : measure_allocation(&scale, POOL_SIZE << (is_quick ? 0 : 4));
}
