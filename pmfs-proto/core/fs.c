/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/fs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pmfs-proto/core/inode.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/orphan.h"
#include "pmfs-proto/core/table.h"
#include "pmfs-proto/core/view.h"

const uint8_t fs_zeros[FS_ZEROS_SIZE];

/* So that who makes and removes files over and over does not move blocks with them. */
#define SPARE_INODE_BLOCKS 64u

/* ---- Errors and time ----------------------------------------------------------- */

_Thread_local bool fs_has_message;
static _Thread_local char message[320];

void fs_set_message(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    fs_has_message = true;
}

int fs_explain(int rc)
{
    if (rc < 0 && !fs_has_message)
        fs_set_message("%s", strerror(-rc));
    return rc;
}

void fs_set_library_message(int rc, const char *what, uint64_t ino)
{
    if (rc == -EINVAL)
        fs_set_message("inode %" PRIu64 ": %s: %s", ino, what, minl2r_errormsg());
    else
        fs_set_message("%s", minl2r_errormsg());
}

int fs_begin(struct pmfs *fs, struct minl2r_tx **tx)
{
    if (fs->flags & PMFS_READ_ONLY)
        return -EROFS;
    return minl2r_tx_begin(fs->pool, tx);
}

int fs_end(struct minl2r_tx *tx, int rc)
{
    if (rc < 0) {
        minl2r_tx_abort(tx);
        return rc;
    }
    return fs_library_error(minl2r_tx_commit(tx), "commit", 0);
}

const char *pmfs_errormsg(void)
{
    return fs_has_message ? message : "";
}

void fs_short_lock_init(pthread_mutex_t *lock)
{
    pthread_mutexattr_t attributes;

    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(lock, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

int64_t fs_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

const void *fs_block(const struct pmfs *fs, uint64_t offset)
{
    if (offset & (fs->block_size - 1))
        return NULL;
    return minl2r_at(fs->pool, offset);
}

/* ---- Making -------------------------------------------------------------------- */

/* What depends on the block size alone. */
static int init_geometry(struct pmfs *fs, struct minl2r_pool *pool)
{
    struct minl2r_info info;
    int rc = fs_library_error(minl2r_pool_info(pool, &info), "info", 0);

    if (rc < 0)
        return rc;
    fs->pool = pool;
    fs->block_count = info.blocks;
    fs->block_size = info.block_size;
    fs->block_shift = (uint32_t)__builtin_ctz(info.block_size);
    fs->map_shift = fs->block_shift - 3;
    for (uint32_t bits = 44 - fs->block_shift; fs->map_height * fs->map_shift < bits;)
        fs->map_height++;
    memcpy(&fs->id, info.uuid, sizeof(fs->id));
    fs->hash_seed = XXH3_64bits(info.uuid, sizeof(info.uuid));
    fs->pm = minl2r_root(pool, sizeof(*fs->pm));
    if (fs->pm)
        return 0;

    int errnum = errno;

    return fs_library_error(errnum > 0 ? -errnum : -EIO, "root object", 0);
}

static int add_root_inode(const struct pmfs *fs, struct minl2r_tx *tx,
                          const struct pmfs_mkfs_options *options)
{
    int64_t now = fs_now_ns();
    const struct pm_inode root = {
        .mtime_ns = now,
        .ctime_ns = now,
        .atime_ns = now,
        .btime_ns = now,
        .mode = S_IFDIR | (options->root_mode ? options->root_mode & 07777 : 0755),
        .nlink = 2,
        .uid = options->root_uid,
        .gid = options->root_gid,
        .parent = PM_ROOT_INO,
        .generation = 1,
        .flags = PM_INODE_HASHED,
    };
    struct map map;
    uint8_t *block;
    int rc = map_init(&map, fs, &fs->pm->states, 0);

    if (rc == 0)
        rc = map_insert(&map, tx, 0, &block);
    if (rc != 0)
        return rc;
    block[PM_ROOT_INO] = PM_STATE_USED;
    rc = map_init(&map, fs, &fs->pm->inodes, 0);
    if (rc == 0)
        rc = map_insert(&map, tx, 0, &block);
    if (rc != 0)
        return rc;
    memcpy(block + (size_t)PM_ROOT_INO * PM_INODE_SIZE, &root, sizeof(root));
    return 0;
}

static int add_super(const struct pmfs *fs, struct minl2r_tx *tx)
{
    struct pm_fs super = {
        .magic = PM_FS_MAGIC,
        .format = PM_FS_FORMAT,
        .inode_size = PM_INODE_SIZE,
        .created_ns = (uint64_t)fs_now_ns(),
        .inode_count = fs->block_size,
    };

    /* The maps after it were written where their blocks were added. */
    return minl2r_tx_write(tx, fs->pm, &super, offsetof(struct pm_fs, states));
}

int fs_format(struct minl2r_pool *pool, const struct pmfs_mkfs_options *options)
{
    struct pmfs fs = {0};
    struct minl2r_tx *tx;
    int rc = init_geometry(&fs, pool);

    if (rc == 0)
        rc = fs_library_error(minl2r_tx_begin(pool, &tx), "mkfs", 0);
    if (rc != 0)
        return rc;
    rc = add_root_inode(&fs, tx, options);
    if (rc == 0)
        rc = fs_library_error(add_super(&fs, tx), "mkfs", 0);
    if (rc == -ENOSPC)
        fs_set_message("mkfs: the pool is too small");
    return fs_end(tx, rc);
}

struct filling {
    const struct pmfs_mkfs_options *options;
    int rc; /* of the filling; whose message is there, if it failed */
};

static int fill(struct minl2r_pool *pool, void *arg)
{
    struct filling *filling = arg;

    filling->rc = fs_format(pool, filling->options);
    return filling->rc;
}

int pmfs_mkfs(const char *path, uint64_t size, const struct pmfs_mkfs_options *options)
{
    fs_forget_message();

    static const struct pmfs_mkfs_options defaults;
    struct filling filling = {.options = options ? options : &defaults};
    struct minl2r_pool *pool;
    int rc = minl2r_pool_create_filled(path, PMFS_LAYOUT, size, &filling.options->pool,
                                       fill, &filling, &pool);

    if (rc < 0)
        return filling.rc < 0 ? fs_explain(rc) : fs_error(-rc, "%s", minl2r_errormsg());
    minl2r_pool_close(pool);
    return 0;
}

/* ---- Mounting ------------------------------------------------------------------ */

static int check_super(const struct pmfs *fs)
{
    const struct pm_fs *pm = fs->pm;

    if (memcmp(pm->magic, PM_FS_MAGIC, sizeof(pm->magic)) != 0)
        return fs_error(EUCLEAN, "superblock: wrong magic: mkfs was not finished, "
                                 "or it is damaged");
    if (pm->format > PM_FS_FORMAT || pm->features_incompat)
        return fs_error(EPROTONOSUPPORT,
                        "superblock: format %" PRIu32 ", features 0x%" PRIx64
                        " are newer than this program",
                        pm->format, pm->features_incompat);
    if (pm->features_ro && !(fs->flags & PMFS_READ_ONLY))
        return fs_error(EPROTONOSUPPORT,
                        "superblock: features 0x%" PRIx64 " forbid writing",
                        pm->features_ro);
    if (pm->format == 0 || pm->inode_size != PM_INODE_SIZE)
        return fs_error(EUCLEAN,
                        "superblock: format %" PRIu32 ", inodes of %" PRIu32 " B",
                        pm->format, pm->inode_size);
    return 0;
}

/* A pool of an older format is one of this, without what is new. */
static int upgrade(struct pmfs *fs)
{
    const uint32_t format = PM_FS_FORMAT;
    struct minl2r_tx *tx;
    int rc;

    if (fs->pm->format == format)
        return 0;
    rc = fs_library_error(minl2r_tx_begin(fs->pool, &tx), "upgrade", 0);
    if (rc < 0)
        return rc;
    rc = minl2r_tx_write(tx, &fs->pm->format, &format, sizeof(format));
    return fs_end(tx, fs_library_error(rc, "upgrade", 0));
}

int fs_open_super(struct pmfs *fs, struct minl2r_pool *pool)
{
    int rc = init_geometry(fs, pool);

    if (rc == 0 && fs->pm)
        rc = check_super(fs);
    return rc;
}

int fs_attach(struct minl2r_pool *pool, const struct pmfs_mount_options *options,
              struct pmfs **result)
{
    struct pmfs *fs = calloc(1, sizeof(*fs));
    int rc;

    if (!fs)
        return fs_error(ENOMEM, "out of memory");
    fs->flags = options->flags;
    rc = fs_open_super(fs, pool);
    if (rc < 0)
        goto free_fs;
    fs->spare_inode_blocks = SPARE_INODE_BLOCKS;
    rc = table_attach(fs);
    if (rc < 0)
        goto free_fs;
    rc = cache_attach(fs, options->cached_inodes);
    if (rc < 0)
        goto detach_table;
    pthread_mutex_init(&fs->rename_lock, NULL);
    rc = upgrade(fs);
    if (rc == 0)
        rc = orphan_recover(fs);
    if (rc < 0)
        goto detach_cache;
    *result = fs;
    return 0;

detach_cache:
    pthread_mutex_destroy(&fs->rename_lock);
    cache_detach(fs);
detach_table:
    table_detach(fs);
free_fs:
    free(fs);
    return rc;
}

void fs_detach(struct pmfs *fs)
{
    pthread_mutex_destroy(&fs->rename_lock);
    cache_detach(fs);
    table_detach(fs);
    free(fs);
}

static int open_pool(const char *path, const struct pmfs_mount_options *options,
                     struct minl2r_pool **pool)
{
    const struct minl2r_options pool_options = {
        .require = options->require,
        .commit = MINL2R_COMMIT_PROVE,
    };

    if (options->flags & PMFS_READ_ONLY)
        return view_open(path, PMFS_LAYOUT, pool);
    return minl2r_pool_open(path, PMFS_LAYOUT, &pool_options, pool);
}

int pmfs_mount(const char *path, const struct pmfs_mount_options *options,
               struct pmfs **fs)
{
    fs_forget_message();

    static const struct pmfs_mount_options defaults;
    struct minl2r_pool *pool;

    if (!options)
        options = &defaults;
    if (options->flags & ~(uint32_t)(PMFS_COUNT_LOOKUPS | PMFS_READ_ONLY))
        return fs_error(EINVAL, "unknown flags of a mount: 0x%" PRIx32, options->flags);
    int rc = open_pool(path, options, &pool);
    if (rc < 0)
        return fs_error(-rc, "%s", minl2r_errormsg());
    rc = fs_attach(pool, options, fs);
    if (rc < 0)
        minl2r_pool_close(pool);
    return fs_explain(rc);
}

int pmfs_unmount(struct pmfs *fs)
{
    fs_forget_message();

    if (!fs)
        return 0;

    struct minl2r_pool *pool = fs->pool;

    orphan_reap_all(fs);
    fs_detach(fs);
    return fs_library_error(minl2r_pool_close(pool), "unmount", 0);
}

struct minl2r_pool *pmfs_pool(struct pmfs *fs)
{
    return fs->pool;
}

uint64_t pmfs_cached_inodes(struct pmfs *fs)
{
    return cache_inodes(fs);
}

void pmfs_recovery(const struct pmfs *fs, struct pmfs_recovery *recovery)
{
    *recovery = fs->recovery;
}

int pmfs_statfs(struct pmfs *fs, struct pmfs_statfs *result)
{
    fs_forget_message();

    struct minl2r_info info;
    uint64_t used = table_used(fs);
    int rc = minl2r_pool_info(fs->pool, &info);

    if (rc < 0)
        return fs_library_error(rc, "statfs", 0);

    uint64_t spare =
        info.blocks_free < info.blocks_spare ? info.blocks_free : info.blocks_spare;
    uint64_t available = info.blocks_free - spare;

    *result = (struct pmfs_statfs){
        .block_size = fs->block_size,
        .name_max = PMFS_NAME_MAX,
        .blocks = info.blocks,
        .blocks_free = info.blocks_free,
        .blocks_available = available,
        .files_free = table_free(fs) + (available << fs->block_shift) / PM_INODE_SIZE,
        .id = fs->id,
    };
    result->files = used + result->files_free;
    return 0;
}
