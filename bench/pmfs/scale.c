/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/scale.h"

#include <errno.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "bench/harness.h"
#include "bench/pmfs/large.h"
#include "bench/pmfs/pages.h"
#include "bench/pmfs/tmpfs.h"
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
    uint8_t *floor; /* [floor_pages] */
    uint64_t floor_pages;
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

#define NAME_SIZE 32

typedef int name_fn(struct scale *scale, const char *name);

struct name_op {
    const char *name;
    name_fn *run;
    uint32_t reads; /* of its floor; 0: it has none */
};

static void write_name(char name[NAME_SIZE], uint64_t number)
{
    snprintf(name, NAME_SIZE, "=name %llu", (unsigned long long)number);
}

static int look_up(struct scale *scale, const char *name)
{
    struct pmfs_attr attr;

    return pmfs_lookup(scale->fs, scale->dir, name, &attr);
}

/* Of a name that is there its end is: no other begins with '='. */
static int look_up_none(struct scale *scale, const char *name)
{
    return look_up(scale, name + 1) == -ENOENT ? 0 : -EIO;
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
    char name[NAME_SIZE];
    int rc = 0;

    for (; rc == 0 && scale->names < names; scale->names++) {
        write_name(name, scale->names);
        rc = create(scale, name);
    }
    return rc;
}

/* ---- The floor of a lookup ------------------------------------------------------- */

/*
 * What a name is looked for in, by its hash, is where it is by chance: a block's tags, the
 * entry in that block, and the inode. Each is known only when the one before has been
 * read, so a lookup takes as long as that many reads, one after the other, of lines that
 * are in no cache. The floor is the same in plain memory, as much as the names take.
 */
#define READS_FOUND 3
#define READS_OF_NONE 1 /* the tags say so */
#define PAGE 4096u
#define LINE 64u

static int make_floor(struct scale *scale)
{
    const char *path = scratch_path("floor");
    struct minl2r_info info;
    size_t mapped_size;
    int is_pmem, rc = minl2r_pool_info(pmfs_pool(scale->fs), &info);

    if (rc < 0)
        return rc;
    scale->floor_pages = info.blocks - info.blocks_free;
    scale->floor =
        pmem_map_file(path, scale->floor_pages * PAGE,
                      PMEM_FILE_CREATE | PMEM_FILE_EXCL, 0600, &mapped_size, &is_pmem);
    scratch_unlink(path);
    if (!scale->floor)
        return -errno;
    for (uint64_t at = 0; at < scale->floor_pages * PAGE; at += LINE)
        scale->floor[at] = (uint8_t)random_below(scale, 256);
    return 0;
}

static void free_floor(struct scale *scale)
{
    pmem_unmap(scale->floor, scale->floor_pages * PAGE);
}

/* A page's first line, one of its others, and another page's first. */
static double run_reads(struct scale *scale, uint32_t reads)
{
    uint64_t start_ns = bench_now_ns(), read = 0;

    for (uint32_t i = 0; i < OPERATIONS; i++) {
        uint64_t page =
            (random_below(scale, scale->floor_pages) + read) % scale->floor_pages;
        uint64_t other = random_below(scale, scale->floor_pages);
        const volatile uint8_t *memory = scale->floor;

        read = memory[page * PAGE];
        if (reads > 1)
            read = memory[page * PAGE + (1 + read % (PAGE / LINE - 1)) * LINE];
        if (reads > 2)
            read = memory[(other + read) % scale->floor_pages * PAGE];
    }
    return (double)(bench_now_ns() - start_ns) / OPERATIONS;
}

/* ---- Measuring names ------------------------------------------------------------- */

static uint64_t fences_of(struct minl2r_pool *pool)
{
    struct minl2r_stats stats;

    return minl2r_stats_get(pool, &stats) == 0 ? stats.fences : 0;
}

static int run_names(struct scale *scale, name_fn *run, double *ns)
{
    static char names[OPERATIONS][NAME_SIZE];
    int rc = 0;

    for (uint32_t i = 0; i < OPERATIONS; i++)
        write_name(names[i], random_below(scale, scale->names));

    uint64_t start_ns = bench_now_ns();

    for (uint32_t i = 0; rc == 0 && i < OPERATIONS; i++)
        rc = run(scale, names[i]);
    *ns = (double)(bench_now_ns() - start_ns) / OPERATIONS;
    return rc;
}

/* Of names in a random order, each round beside its floor. */
static int measure_names(struct scale *scale, const struct name_op *op)
{
    double ns[ROUNDS], floor_ns[ROUNDS], fences = 0;
    int rc = 0;

    for (int round = 0; rc == 0 && round < ROUNDS; round++) {
        uint64_t before = fences_of(pmfs_pool(scale->fs));

        rc = run_names(scale, op->run, &ns[round]);
        fences += (double)(fences_of(pmfs_pool(scale->fs)) - before);
        if (op->reads)
            floor_ns[round] = run_reads(scale, op->reads);
    }
    const struct scale_figure figure = {
        .op = op->name,
        .size = (double)scale->names,
        .ns = ns,
        .rounds = ROUNDS,
        .fences = fences / (ROUNDS * OPERATIONS),
        .reads = op->reads,
        .floor_ns = op->reads ? floor_ns : NULL,
    };
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
            rc = look_up(scale, "=name 7");
        lookup_ns[round] = (double)(bench_now_ns() - start_ns);
    }
    const struct scale_figure mount = {
        .op = "mount", .size = (double)scale->names, .ns = mount_ns, .rounds = ROUNDS};
    const struct scale_figure lookup = {.op = "first lookup",
                                        .size = (double)scale->names,
                                        .ns = lookup_ns,
                                        .rounds = ROUNDS};
    if (rc == 0)
        rc = scale->take(scale->arg, &mount);
    return rc < 0 ? rc : scale->take(scale->arg, &lookup);
}

static const struct name_op name_ops[] = {
    {"lookup among", look_up, READS_FOUND},
    {"lookup of none among", look_up_none, READS_OF_NONE},
    {"create+unlink among", create_and_unlink, 0},
};

static int measure_directory(struct scale *scale, uint64_t names)
{
    int rc = make_names(scale, names);

    if (rc == 0)
        rc = measure_mounts(scale);
    if (rc == 0)
        rc = touch_pages(pmfs_pool(scale->fs));
    if (rc == 0)
        rc = make_floor(scale);
    if (rc < 0)
        return rc;
    for (size_t i = 0; rc == 0 && i < sizeof(name_ops) / sizeof(name_ops[0]); i++)
        rc = measure_names(scale, &name_ops[i]);
    free_floor(scale);
    return rc < 0 ? rc : tmpfs_measure(scale->names, scale->take, scale->arg);
}

static int measure_directories(struct scale *scale, uint64_t names_max)
{
    static const uint64_t sizes[] = {500, 1000, 30000, 1000000};
    struct pmfs_attr attr;
    int rc;

    scale->path = scratch_path("scale");
    rc = pmfs_mkfs(scale->path, POOL_SIZE + names_max * 700, NULL);
    if (rc == 0)
        rc = pmfs_mount(scale->path, NULL, &scale->fs);
    if (rc == 0)
        rc = pmfs_mkdir(scale->fs, PMFS_ROOT_INO, "directory", 0755, &nobody, &attr);
    scale->dir = rc == 0 ? attr.ino : 0;
    for (size_t i = 0; rc == 0 && i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        if (sizes[i] <= names_max)
            rc = measure_directory(scale, sizes[i]);
    }
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
    const struct scale_figure figure = {
        .op = op, .size = percent, .ns = ns, .rounds = ROUNDS};
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
    int rc = measure_directories(&scale, is_quick ? 30000 : 1000000);

    if (rc == 0 && !is_quick)
        rc = large_measure(take, arg);
    return rc < 0 ? rc : measure_allocation(&scale, POOL_SIZE << (is_quick ? 0 : 4));
}
