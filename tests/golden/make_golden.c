/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * make_golden DIRECTORY - makes the images that test_golden.c opens, anew. Run it when
 * a new format version is born, never to make a failing test pass:
 *
 *     make_golden tests/golden && gzip -9n tests/golden/pool-v1.img
 *         tests/golden/pmfs-v3.img
 *
 * The others were made so by the programs of their time; pmfs-v2-large has "large"
 * only, in blocks of 512 bytes.
 */
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "include/pmfs.h"
#include "libminl2r/pm.h"
#include "tests/golden/golden.h"

/* The process ends, as if killed, when it comes to fence number `die_at`. */
static int die_at, fences;

int __real_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase)
{
    if (die_at > 0 && phase->pending && ++fences == die_at)
        _exit(0);
    return __real_pm_fence(phase);
}

static void check(int rc)
{
    if (rc < 0)
        errx(1, "%s", minl2r_errormsg());
}

static void make_content(struct minl2r_pool *pool)
{
    const struct golden_root *root = minl2r_root(pool, sizeof(*root));
    struct golden_root content;
    uint8_t block[GOLDEN_BLOCK_SIZE];
    uint64_t offset;
    struct minl2r_tx *tx;

    golden_fill(&content, sizeof(content), 1);
    golden_fill(block, sizeof(block), 2);
    check(minl2r_tx_begin(pool, &tx));
    check(minl2r_tx_write(tx, root->bytes, content.bytes, sizeof(content.bytes)));
    check(minl2r_tx_alloc(tx, 3, &offset, NULL));
    check(minl2r_tx_write(tx, &root->run, &offset, sizeof(offset)));
    check(minl2r_tx_write_block(tx, &root->slots[0], 0, block, sizeof(block)));
    check(minl2r_tx_commit(tx));
}

/* A record of each kind, and two segments: cut off after the new bytes were stored. */
static void leave_unfinished(struct minl2r_pool *pool)
{
    const struct golden_root *root = minl2r_root(pool, sizeof(*root));
    struct golden_root content;
    uint8_t block[GOLDEN_BLOCK_SIZE];
    struct minl2r_tx *tx;

    golden_fill(&content, sizeof(content), 3);
    golden_fill(block, sizeof(block), 4);
    check(minl2r_tx_begin(pool, &tx));
    check(minl2r_tx_write(tx, root->bytes, content.bytes, sizeof(content.bytes)));
    check(minl2r_tx_write_block(tx, &root->slots[0], 0, block, sizeof(block)));
    check(minl2r_tx_write_block(tx, &root->slots[1], 0, block, 100));
    check(minl2r_tx_free(tx, root->run, 3));
    check(minl2r_tx_alloc(tx, 5, NULL, NULL));
    die_at = 2; /* F2: everything is stored in place */
    minl2r_tx_commit(tx);
    errx(1, "the transaction was not cut off");
}

static void make_pool(const char *path)
{
    const struct minl2r_options options = {
        .block_size = GOLDEN_BLOCK_SIZE, .lanes = 3, .log_size = 4096};
    struct minl2r_pool *pool;

    unlink(path);
    check(minl2r_pool_create(path, "golden", 1 << 20, &options, &pool));
    make_content(pool);
    check(minl2r_pool_close(pool));
    pid_t child = fork();

    if (child == 0) {
        check(minl2r_pool_open(path, "golden", NULL, &pool));
        leave_unfinished(pool);
    }
    waitpid(child, NULL, 0);
}

static void make_large(struct pmfs *fs, const struct pmfs_cred *cred)
{
    struct pmfs_attr dir, attr;
    char name[32];

    check(pmfs_mkdir(fs, PMFS_ROOT_INO, "large", 0755, cred, &dir));
    check(pmfs_mkdir(fs, dir.ino, "sub", 0755, cred, &attr));
    check(pmfs_mknod(fs, dir.ino, "file", S_IFREG | 0644, 0, cred, &attr));
    for (int i = 0; i < GOLDEN_NAMES; i++) {
        snprintf(name, sizeof(name), "name %d", i);
        check(pmfs_link(fs, attr.ino, dir.ino, name, &attr));
    }
}

static void make_pmfs(const char *path)
{
    static uint8_t bytes[GOLDEN_FILE_SIZE];
    const struct pmfs_cred cred = {.uid = 1000, .gid = 100};
    struct pmfs_attr dir, file;
    struct pmfs *fs;
    size_t done;

    unlink(path);
    golden_fill(bytes, sizeof(bytes), 5);
    check(pmfs_mkfs(path, 1 << 20, NULL));
    check(pmfs_mount(path, NULL, &fs));
    check(pmfs_mkdir(fs, PMFS_ROOT_INO, "dir", 0750, &cred, &dir));
    check(pmfs_mknod(fs, dir.ino, "file", S_IFREG | 0640, 0, &cred, &file));
    check(pmfs_write(fs, file.ino, GOLDEN_FILE_HOLE, bytes, sizeof(bytes), 0, &done));
    check(pmfs_fallocate(fs, file.ino, PMFS_KEEP_SIZE, 0, GOLDEN_FILE_ALLOCATED));
    check(pmfs_setxattr(fs, file.ino, "user.name", "value", 5, 0));
    check(pmfs_setxattr(fs, file.ino, "user.large", bytes, GOLDEN_FILE_SIZE, 0));
    check(pmfs_link(fs, file.ino, PMFS_ROOT_INO, "link", &file));
    check(pmfs_symlink(fs, PMFS_ROOT_INO, "symlink", "dir/file", &cred, &file));
    make_large(fs, &cred);
    check(pmfs_unmount(fs));
}

int main(int argc, char **argv)
{
    if (argc != 2 || chdir(argv[1]) < 0)
        errx(2, "usage: make_golden DIRECTORY");
    make_pool("pool-v1.img");
    make_pmfs("pmfs-v3.img");
    return 0;
}
