/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <libpmem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/pmfs/pages.h"
#include "bench/scratch.h"

#define FS_SIZE ((uint64_t)256 << 20)
#define POOL_SIZE ((uint64_t)96 << 20)
#define STREAM_FROM 256u /* bytes: libpmem's own limit for non-temporal stores */

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

/* ---- Making and removing --------------------------------------------------------- */

static int make_files(struct bench *bench)
{
    struct pmfs_attr attr;
    size_t done;
    int rc = pmfs_mknod(bench->fs, PMFS_ROOT_INO, "file", 0644, 0, &nobody, &attr);

    bench->file = attr.ino;
    for (uint64_t at = 0; rc == 0 && at < SPAN_SIZE; at += BUFFER_SIZE)
        rc = pmfs_write(bench->fs, bench->file, at, bench->buffer, BUFFER_SIZE, 0,
                        &done);
    if (rc == 0)
        rc = pmfs_mknod(bench->fs, PMFS_ROOT_INO, "tail", 0644, 0, &nobody, &attr);
    bench->tail = attr.ino;
    if (rc == 0)
        rc = pmfs_symlink(bench->fs, PMFS_ROOT_INO, "symlink", "file", &nobody, &attr);
    bench->symlink = attr.ino;
    for (int i = 0; rc == 0 && i < 2; i++) {
        rc = pmfs_mkdir(bench->fs, PMFS_ROOT_INO, i ? "second" : "first", 0755, &nobody,
                        &attr);
        bench->dirs[i] = attr.ino;
    }
    return rc;
}

static int make_filesystem(struct bench *bench)
{
    const char *path = scratch_path("pmfs");
    int rc = pmfs_mkfs(path, FS_SIZE, NULL);

    if (rc == 0)
        rc = pmfs_mount(path, NULL, &bench->fs);
    scratch_unlink(path);
    if (rc == 0)
        rc = touch_pages(pmfs_pool(bench->fs));
    return rc < 0 ? rc : make_files(bench);
}

static int make_pool(struct bench *bench)
{
    const char *path = scratch_path("pool");
    int rc = minl2r_pool_create(path, "bench", POOL_SIZE, NULL, &bench->pool);

    scratch_unlink(path);
    if (rc == 0)
        rc = touch_pages(bench->pool);
    if (rc < 0)
        return rc;
    bench->region = minl2r_root(bench->pool, SPAN_SIZE);
    return bench->region ? 0 : -ENOSPC;
}

static int make_floor(struct bench *bench)
{
    const char *path = scratch_path("floor");
    size_t mapped_size;
    int is_pmem;

    bench->floor = pmem_map_file(path, SPAN_SIZE, PMEM_FILE_CREATE | PMEM_FILE_EXCL,
                                 0600, &mapped_size, &is_pmem);
    scratch_unlink(path);
    if (!bench->floor)
        return -errno;
    memset(bench->floor, 1, SPAN_SIZE);
    return 0;
}

int bench_make(struct bench *bench)
{
    *bench = (struct bench){.random_state = 1, .buffer = malloc(BUFFER_SIZE)};
    if (!bench->buffer)
        return -ENOMEM;
    memset(bench->buffer, 'b', BUFFER_SIZE);
    int rc = make_filesystem(bench);
    if (rc == 0)
        rc = make_pool(bench);
    return rc < 0 ? rc : make_floor(bench);
}

void bench_finish(struct bench *bench)
{
    pmfs_unmount(bench->fs);
    minl2r_pool_close(bench->pool);
    if (bench->floor)
        pmem_unmap(bench->floor, SPAN_SIZE);
    free(bench->buffer);
}

static uint64_t random_offset(struct bench *bench, uint32_t size)
{
    bench->random_state =
        bench->random_state * 6364136223846793005u + 1442695040888963407u;
    return (bench->random_state >> 33) % (SPAN_SIZE / size) * size;
}

/* ---- Content --------------------------------------------------------------------- */

/* Every byte written is another than before, as far as a pass or two goes. */
static void renew(struct bench *bench, const struct op *op, uint64_t number)
{
    memset(bench->buffer, (int)(number * 37 + 1), op->size < 64 ? op->size : 64);
}

static int overwrite(struct bench *bench, const struct op *op, uint64_t number)
{
    size_t done;

    renew(bench, op, number);
    return pmfs_write(bench->fs, bench->file, random_offset(bench, op->size),
                      bench->buffer, op->size, 0, &done);
}

static int transaction(struct bench *bench, const struct op *op, uint64_t number)
{
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(bench->pool, &tx);

    if (rc < 0)
        return rc;
    renew(bench, op, number);
    rc = minl2r_tx_write(tx, bench->region + random_offset(bench, op->size),
                         bench->buffer, op->size);
    return rc < 0 ? rc : minl2r_tx_commit(tx);
}

static int store_at(struct bench *bench, const struct op *op, uint64_t offset)
{
    pmem_memcpy(bench->floor + offset, bench->buffer, op->size,
                op->size >= STREAM_FROM ? PMEM_F_MEM_NONTEMPORAL : PMEM_F_MEM_TEMPORAL);
    return 0;
}

static int store(struct bench *bench, const struct op *op, uint64_t number)
{
    renew(bench, op, number);
    return store_at(bench, op, random_offset(bench, op->size));
}

static int read_random(struct bench *bench, const struct op *op, uint64_t number)
{
    size_t done;

    (void)number;
    return pmfs_read(bench->fs, bench->file, random_offset(bench, op->size),
                     bench->buffer, op->size, &done);
}

static int use_pieces(void *arg, const struct iovec *pieces, int count, size_t size)
{
    (void)arg;
    (void)pieces;
    (void)count;
    (void)size;
    return 0;
}

/* What it takes to get at the bytes: nobody looks at them. */
static int read_in_place(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)number;
    return pmfs_read_in_place(bench->fs, bench->file, random_offset(bench, op->size),
                              op->size, use_pieces, NULL);
}

static int copy_out(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)number;
    memcpy(bench->buffer, bench->floor + random_offset(bench, op->size), op->size);
    /* What is copied is used. */
    __asm__ volatile("" : : "r"(bench->buffer) : "memory");
    return 0;
}

static int append(struct bench *bench, const struct op *op, uint64_t number)
{
    size_t done;

    renew(bench, op, number);
    return pmfs_write(bench->fs, bench->tail, 0, bench->buffer, op->size, PMFS_APPEND,
                      &done);
}

static int store_next(struct bench *bench, const struct op *op, uint64_t number)
{
    renew(bench, op, number);
    return store_at(bench, op, number * op->size % SPAN_SIZE);
}

static int truncate_tail(struct bench *bench, uint64_t size)
{
    const struct pmfs_attr values = {.size = size};

    return pmfs_setattr(bench->fs, bench->tail, &values, PMFS_SET_SIZE, NULL);
}

static int empty_tail(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    (void)number;
    return truncate_tail(bench, 0);
}

/* The block is there; the chunk fits into it. */
static int start_block(struct bench *bench, const struct op *op, uint64_t number)
{
    int rc = empty_tail(bench, op, number);

    return rc < 0 ? rc : append(bench, op, 0);
}

/* ---- Space ----------------------------------------------------------------------- */

#define BLOCK_SIZE 4096u

/* A chunk of blocks that have been written. */
static int fill_tail(struct bench *bench, const struct op *op, uint64_t number)
{
    size_t done;
    int rc = empty_tail(bench, op, number);

    for (uint64_t i = 0; rc == 0 && i < op->chunk; i++)
        rc = pmfs_write(bench->fs, bench->tail, i * BLOCK_SIZE, bench->buffer,
                        BLOCK_SIZE, 0, &done);
    return rc;
}

/* A block, a hole, a block, and so on. */
static int fill_every_other_block(struct bench *bench, const struct op *op,
                                  uint64_t number)
{
    size_t done;
    int rc = empty_tail(bench, op, number);

    for (uint64_t i = 0; rc == 0 && i <= op->chunk; i++)
        rc = pmfs_write(bench->fs, bench->tail, 2 * i * BLOCK_SIZE, bench->buffer,
                        BLOCK_SIZE, 0, &done);
    return rc;
}

static int shorten(struct bench *bench, const struct op *op, uint64_t number)
{
    return truncate_tail(bench, (op->chunk - 1 - number) * BLOCK_SIZE);
}

static int lengthen(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return truncate_tail(bench, (number + 1) * BLOCK_SIZE);
}

static int allocate(struct bench *bench, const struct op *op, uint64_t number)
{
    return pmfs_fallocate(bench->fs, bench->tail, 0, number * op->size, op->size);
}

static int punch_hole(struct bench *bench, const struct op *op, uint64_t number)
{
    return pmfs_fallocate(bench->fs, bench->tail, PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE,
                          number * op->size, op->size);
}

static int zero_range(struct bench *bench, const struct op *op, uint64_t number)
{
    return pmfs_fallocate(bench->fs, bench->tail, PMFS_ZERO_RANGE, number * op->size,
                          op->size);
}

/* From a hole to the block behind it. */
static int seek_data(struct bench *bench, const struct op *op, uint64_t number)
{
    uint64_t found;

    (void)op;
    return pmfs_seek(bench->fs, bench->tail, (2 * number + 1) * BLOCK_SIZE,
                     PMFS_SEEK_DATA, &found);
}

static int seek_hole(struct bench *bench, const struct op *op, uint64_t number)
{
    uint64_t found;

    (void)op;
    return pmfs_seek(bench->fs, bench->tail, 2 * number * BLOCK_SIZE, PMFS_SEEK_HOLE,
                     &found);
}

static int copy_range(struct bench *bench, const struct op *op, uint64_t number)
{
    uint64_t done;

    return pmfs_copy_range(bench->fs, bench->file, random_offset(bench, op->size),
                           bench->tail, number * op->size, op->size, &done);
}

static int get_statfs(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_statfs statfs;

    (void)op;
    (void)number;
    return pmfs_statfs(bench->fs, &statfs);
}

/* ---- Names ----------------------------------------------------------------------- */

static const char *name_of(uint64_t number)
{
    static char name[32];

    snprintf(name, sizeof(name), "name-%llu", (unsigned long long)number);
    return name;
}

static int create(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    return pmfs_mknod(bench->fs, bench->dirs[0], name_of(number), S_IFREG | 0644, 0,
                      &nobody, &attr);
}

static int make_directory(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    return pmfs_mkdir(bench->fs, bench->dirs[0], name_of(number), 0755, &nobody, &attr);
}

static int make_symlink(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    return pmfs_symlink(bench->fs, bench->dirs[0], name_of(number), "../file", &nobody,
                        &attr);
}

static int add_link(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    return pmfs_link(bench->fs, bench->file, bench->dirs[0], name_of(number), &attr);
}

static int remove_file(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return pmfs_unlink(bench->fs, bench->dirs[0], name_of(number));
}

static int remove_directory(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return pmfs_rmdir(bench->fs, bench->dirs[0], name_of(number));
}

static int create_and_unlink(struct bench *bench, const struct op *op, uint64_t number)
{
    int rc = create(bench, op, number);

    return rc < 0 ? rc : remove_file(bench, op, number);
}

/* Whatever is there: files and directories of both folders. */
static int remove_names(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)number;
    for (uint64_t i = 0; i < op->chunk; i++) {
        for (int dir = 0; dir < 2; dir++) {
            int rc = pmfs_unlink(bench->fs, bench->dirs[dir], name_of(i));

            if (rc == -EISDIR)
                rc = pmfs_rmdir(bench->fs, bench->dirs[dir], name_of(i));
            if (rc < 0 && rc != -ENOENT)
                return rc;
        }
    }
    return 0;
}

static int make_names(struct bench *bench, const struct op *op, op_fn *make)
{
    int rc = remove_names(bench, op, 0);

    for (uint64_t i = 0; rc == 0 && i < op->chunk; i++)
        rc = make(bench, op, i);
    return rc;
}

static int make_file_names(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)number;
    return make_names(bench, op, create);
}

static int make_directory_names(struct bench *bench, const struct op *op,
                                uint64_t number)
{
    (void)number;
    return make_names(bench, op, make_directory);
}

static int rename_here(struct bench *bench, const struct op *op, uint64_t number)
{
    char to[40];

    (void)op;
    snprintf(to, sizeof(to), "to-%llu", (unsigned long long)number);
    return pmfs_rename(bench->fs, bench->dirs[0], name_of(number), bench->dirs[0], to,
                       0);
}

static int rename_away(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return pmfs_rename(bench->fs, bench->dirs[0], name_of(number), bench->dirs[1],
                       name_of(number), 0);
}

/* The names that rename_here() has made go back. */
static int make_names_to_rename(struct bench *bench, const struct op *op,
                                uint64_t number)
{
    char to[40];

    for (uint64_t i = 0; i < op->chunk; i++) {
        snprintf(to, sizeof(to), "to-%llu", (unsigned long long)i);
        int rc = pmfs_unlink(bench->fs, bench->dirs[0], to);
        if (rc < 0 && rc != -ENOENT)
            return rc;
    }
    return make_file_names(bench, op, number);
}

static int look_up(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    return pmfs_lookup(bench->fs, bench->dirs[0], name_of(number), &attr);
}

static int rename_leaving_whiteout(struct bench *bench, const struct op *op,
                                   uint64_t number)
{
    (void)op;
    return pmfs_rename_whiteout(bench->fs, bench->dirs[0], name_of(number),
                                bench->dirs[1], name_of(number), 0, &nobody);
}

static int take_entry(void *arg, const struct pmfs_dirent *entry)
{
    (void)arg;
    (void)entry;
    return 0;
}

/* All names of a chunk. */
static int list(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    (void)number;
    return pmfs_readdir(bench->fs, bench->dirs[0], 0, 0, take_entry, NULL);
}

static int read_symlink(struct bench *bench, const struct op *op, uint64_t number)
{
    char target[16];

    (void)op;
    (void)number;
    return pmfs_readlink(bench->fs, bench->symlink, target, sizeof(target));
}

/* ---- Open files ------------------------------------------------------------------ */

static int release(struct bench *bench, uint64_t ino, int rc)
{
    if (rc == 0)
        pmfs_release(bench->fs, ino);
    return rc;
}

static int open_and_release(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    (void)number;
    return release(bench, bench->file, pmfs_open(bench->fs, bench->file));
}

static int look_up_and_open(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    int rc = pmfs_lookup_open(bench->fs, bench->dirs[0], name_of(number), &attr);

    return release(bench, attr.ino, rc);
}

static int create_and_open(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    int rc =
        pmfs_create(bench->fs, bench->dirs[0], name_of(number), 0644, &nobody, &attr);

    return release(bench, attr.ino, rc);
}

/* It has no name: releasing it frees it. */
static int make_nameless(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    (void)number;
    int rc = pmfs_tmpfile(bench->fs, bench->dirs[0], 0644, 0, &nobody, &attr);

    return release(bench, attr.ino, rc);
}

/* ---- Paths ----------------------------------------------------------------------- */

static const char *path_to(uint64_t number)
{
    static char path[48];

    snprintf(path, sizeof(path), "/first/%s", name_of(number));
    return path;
}

static int open_by_path(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    int rc = pmfs_path_open(bench->fs, PMFS_ROOT_INO, path_to(number), O_RDWR, 0, NULL,
                            &attr);

    return release(bench, attr.ino, rc);
}

static int get_attributes_by_path(struct bench *bench, const struct op *op,
                                  uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    return pmfs_path_getattr(bench->fs, PMFS_ROOT_INO, path_to(number), 0, &attr);
}

static int find_parent(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_place place;

    (void)op;
    int rc = pmfs_path_parent(bench->fs, PMFS_ROOT_INO, path_to(number), 0, &place);

    if (rc == 0)
        pmfs_place_release(bench->fs, &place);
    return rc;
}

static int find_path(struct bench *bench, const struct op *op, uint64_t number)
{
    char path[16];

    (void)op;
    (void)number;
    return pmfs_path_of(bench->fs, bench->dirs[1], path, sizeof(path));
}

/* ---- Attributes ------------------------------------------------------------------ */

static int set_attributes(struct bench *bench, uint64_t number, unsigned mask)
{
    const struct pmfs_attr values = {
        .mode = number % 2 ? 0644 : 0600,
        .uid = (uint32_t)number,
        .mtime_ns = (int64_t)number,
        .size = number,
    };

    return pmfs_setattr(bench->fs, bench->tail, &values, mask, NULL);
}

static int change_mode(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return set_attributes(bench, number, PMFS_SET_MODE);
}

static int change_owner(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return set_attributes(bench, number, PMFS_SET_UID);
}

static int change_times(struct bench *bench, const struct op *op, uint64_t number)
{
    (void)op;
    return set_attributes(bench, number, PMFS_SET_MTIME | PMFS_SET_ATIME);
}

static int get_attributes(struct bench *bench, const struct op *op, uint64_t number)
{
    struct pmfs_attr attr;

    (void)op;
    (void)number;
    return pmfs_getattr(bench->fs, bench->tail, &attr);
}

static int set_xattr(struct bench *bench, const struct op *op, uint64_t number)
{
    renew(bench, op, number);
    return pmfs_setxattr(bench->fs, bench->tail, "user.bench", bench->buffer, op->size,
                         0);
}

static int get_xattr(struct bench *bench, const struct op *op, uint64_t number)
{
    size_t size;

    (void)number;
    return pmfs_getxattr(bench->fs, bench->tail, "user.bench", bench->buffer, op->size,
                         &size);
}

static int list_xattrs(struct bench *bench, const struct op *op, uint64_t number)
{
    size_t size;

    (void)op;
    (void)number;
    return pmfs_listxattr(bench->fs, bench->tail, (char *)bench->buffer, BUFFER_SIZE,
                          &size);
}

static const char *xattr_of(uint64_t number)
{
    static char name[32];

    snprintf(name, sizeof(name), "user.bench-%llu", (unsigned long long)number);
    return name;
}

static int set_xattrs(struct bench *bench, const struct op *op, uint64_t number)
{
    int rc = 0;

    (void)number;
    for (uint64_t i = 0; rc == 0 && i < op->chunk; i++)
        rc = pmfs_setxattr(bench->fs, bench->tail, xattr_of(i), bench->buffer, op->size,
                           0);
    return rc;
}

/* The last one: none was set after it, which would be written again. */
static int remove_xattr(struct bench *bench, const struct op *op, uint64_t number)
{
    return pmfs_removexattr(bench->fs, bench->tail, xattr_of(op->chunk - 1 - number));
}

/* ---- The list -------------------------------------------------------------------- */

static const struct op library_op = {
    .name = "transaction", .size = 64, .chunk = 1000, .run = transaction};

const struct op ops[] = {
    {"overwrite", 64, 1000, NULL, overwrite, store, &library_op},
    {"overwrite", 1024, 1000, NULL, overwrite, store, NULL},
    {"overwrite", 4096, 1000, NULL, overwrite, store, NULL},
    {"overwrite", 65536, 100, NULL, overwrite, store, NULL},
    {"overwrite", 1 << 20, 10, NULL, overwrite, store, NULL},
    {"append in a block", 64, 60, start_block, append, store_next, NULL},
    {"append", 4096, 1000, empty_tail, append, store_next, NULL},
    {"append", 65536, 100, empty_tail, append, store_next, NULL},
    {"append", 1 << 20, 10, empty_tail, append, store_next, NULL},
    {"read", 64, 1000, NULL, read_random, copy_out, NULL},
    {"read", 4096, 1000, NULL, read_random, copy_out, NULL},
    {"read", 65536, 100, NULL, read_random, copy_out, NULL},
    {"create", 0, 500, remove_names, create, NULL, NULL},
    {"unlink", 0, 500, make_file_names, remove_file, NULL, NULL},
    {"create+unlink", 0, 500, remove_names, create_and_unlink, NULL, NULL},
    {"mkdir", 0, 500, remove_names, make_directory, NULL, NULL},
    {"rmdir", 0, 500, make_directory_names, remove_directory, NULL, NULL},
    {"symlink", 0, 500, remove_names, make_symlink, NULL, NULL},
    {"link", 0, 500, remove_names, add_link, NULL, NULL},
    {"rename", 0, 500, make_names_to_rename, rename_here, NULL, NULL},
    {"rename to another directory", 0, 500, make_file_names, rename_away, NULL, NULL},
    {"lookup", 0, 500, make_file_names, look_up, NULL, NULL},
    {"getattr", 0, 1000, NULL, get_attributes, NULL, NULL},
    {"chmod", 0, 1000, NULL, change_mode, NULL, NULL},
    {"chown", 0, 1000, NULL, change_owner, NULL, NULL},
    {"utimens", 0, 1000, NULL, change_times, NULL, NULL},
    {"setxattr", 32, 1000, NULL, set_xattr, NULL, NULL},
    {"getxattr", 32, 1000, NULL, get_xattr, NULL, NULL},
    {"listxattr", 0, 1000, NULL, list_xattrs, NULL, NULL},
    {"removexattr", 32, 10, set_xattrs, remove_xattr, NULL, NULL},
    {"read in place", 4096, 1000, NULL, read_in_place, NULL, NULL},
    {"truncate", 0, 500, fill_tail, shorten, NULL, NULL},
    {"truncate to more", 0, 500, empty_tail, lengthen, NULL, NULL},
    {"fallocate", 4096, 500, empty_tail, allocate, NULL, NULL},
    {"punch a hole", 4096, 500, fill_tail, punch_hole, NULL, NULL},
    {"zero a range", 4096, 500, fill_tail, zero_range, NULL, NULL},
    {"seek data", 0, 500, fill_every_other_block, seek_data, NULL, NULL},
    {"seek a hole", 0, 500, fill_every_other_block, seek_hole, NULL, NULL},
    {"copy a range", 4096, 500, empty_tail, copy_range, NULL, NULL},
    {"statfs", 0, 1000, NULL, get_statfs, NULL, NULL},
    {"rename with whiteout", 0, 500, make_file_names, rename_leaving_whiteout, NULL,
     NULL},
    {"readdir of 500 names", 0, 500, make_file_names, list, NULL, NULL},
    {"readlink", 0, 1000, NULL, read_symlink, NULL, NULL},
    {"open+release", 0, 1000, NULL, open_and_release, NULL, NULL},
    {"lookup, open+release", 0, 500, make_file_names, look_up_and_open, NULL, NULL},
    {"create, open+release", 0, 500, remove_names, create_and_open, NULL, NULL},
    {"tmpfile+release", 0, 500, NULL, make_nameless, NULL, NULL},
    {"open+release by path", 0, 500, make_file_names, open_by_path, NULL, NULL},
    {"getattr by path", 0, 500, make_file_names, get_attributes_by_path, NULL, NULL},
    {"parent of a path", 0, 500, make_file_names, find_parent, NULL, NULL},
    {"path of a directory", 0, 1000, NULL, find_path, NULL, NULL},
};
const size_t op_count = sizeof(ops) / sizeof(ops[0]);
