/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fs.h - the mounted filesystem, and what every module of it uses.
 *
 * Locks, in the order in which they are taken:
 *
 *   1. rename_lock        renames that move between directories, one at a time
 *   2. inode_lock()       directories before what is in them, an ancestor first; of
 *                         two that are neither's ancestor the lower number first; what
 *                         is no directory last, by number. Two unrelated directories
 *                         are locked at once only under rename_lock or the lock of
 *                         their common parent.
 *   3. table.grow_lock    the shape of the inode table
 *   4. shard.lock         a part of the inode cache, and who has its inodes' locks
 *   5. group.lock         which of 512 inode numbers are free; one at a time
 *   6. search_lock        which of these groups are full, and whose they are
 *
 * Locks 1 to 3 are held from the first read until the transaction has committed:
 * isolation is ours, atomicity the library's. An inode that nobody else can know yet,
 * because it is new or being read in, is locked at any point: that cannot wait.
 */
#ifndef PMFS_FS_H
#define PMFS_FS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "include/pmfs.h"
#include "pmfs-proto/core/format.h"

struct inode_cache;
struct inode_table;

struct pmfs {
    struct minl2r_pool *pool;
    const struct pm_fs *pm;
    uint64_t block_count; /* of the pool: nothing can have more */
    uint32_t block_size;
    uint32_t block_shift;
    uint32_t map_shift;  /* log2 of slots per node */
    uint32_t map_height; /* the greatest that a map can need */
    uint32_t flags;      /* enum pmfs_mount_flags */
    uint64_t hash_seed;  /* of names, from the pool's uuid */
    uint64_t id;         /* from the pool's uuid */
    uint32_t
        spare_inode_blocks; /* that are kept, at least, though no inode is in them */
    struct inode_table *table;
    struct inode_cache *cache;
    pthread_mutex_t rename_lock;
    struct pmfs_recovery recovery;
};

/* Makes a filesystem of an open pool, empty or not, without the pool's file (fsck,
 * tests). */
int fs_format(struct minl2r_pool *pool, const struct pmfs_mkfs_options *options);
int fs_attach(struct minl2r_pool *pool, const struct pmfs_mount_options *options,
              struct pmfs **fs);
void fs_detach(struct pmfs *fs);

/* Fills the zeroed `fs` as far as its superblock goes, after checking that. */
int fs_open_super(struct pmfs *fs, struct minl2r_pool *pool);

/*
 * Each call of pmfs.h that can fail begins with fs_forget_message(), so that what pmfs_errormsg() says is
 * of the last one.
 */
extern _Thread_local bool fs_has_message __attribute__((tls_model("initial-exec")));

static inline void fs_forget_message(void)
{
    fs_has_message = false;
}

/* Passes on `rc`; an error without a message gets that of its number. */
int fs_explain(int rc);

/* Sets this thread's message; is -errnum: return fs_error(EUCLEAN, "..."). */
#define fs_error(errnum, ...) (fs_set_message(__VA_ARGS__), -(errnum))
__attribute__((format(printf, 1, 2))) void fs_set_message(const char *format, ...);

void fs_set_library_message(int rc, const char *what, uint64_t ino);

/*
 * Makes of what the library answered what pmfs answers, its message included. Arguments
 * that it refuses come from the medium, so they are -EUCLEAN; `what` says whose.
 */
static inline int fs_library_error(int rc, const char *what, uint64_t ino)
{
    if (rc >= 0)
        return 0;
    fs_set_library_message(rc, what, ino);
    return rc == -EINVAL ? -EUCLEAN : rc;
}

/*
 * A lock that is held for a few instructions at a time: who wants it looks again for a
 * while before he sleeps, as waking takes longer than what he waits for.
 */
void fs_short_lock_init(pthread_mutex_t *lock);

/* The time for stamps. */
int64_t fs_now_ns(void);

/* The memory of the block that a slot names, or NULL if it can name none. Not for 0. */
const void *fs_block(const struct pmfs *fs, uint64_t offset);

static inline uint64_t blocks_of(const struct pmfs *fs, uint64_t size)
{
    return (size + fs->block_size - 1) >> fs->block_shift;
}

/* Begins the transaction of a call. -EROFS; else as the library. */
int fs_begin(struct pmfs *fs, struct minl2r_tx **tx);

/* Ends a transaction: commits it, or, if `rc` is an error, aborts it and answers with
 * that. */
int fs_end(struct minl2r_tx *tx, int rc);

/* Zeros to write from, and to read holes from. */
#define FS_ZEROS_SIZE 65536u
extern const uint8_t fs_zeros[FS_ZEROS_SIZE];

#endif
