/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs.h - a filesystem in persistent memory, in-process: no mount, no kernel crossing.
 *
 * The filesystem lives in a minl2r pool. Every call that changes something is one
 * transaction: atomic, data included, and durable when it returns, so there is no
 * fsync.
 *
 *     struct pmfs *fs;
 *     struct pmfs_attr attr;
 *     const struct pmfs_cred me = {.uid = getuid(), .gid = getgid()};
 *     size_t done;
 *
 *     if (pmfs_mount("/mnt/pmem/fs", NULL, &fs) < 0)
 *         errx(1, "%s", pmfs_errormsg());
 *     pmfs_create(fs, PMFS_ROOT_INO, "hello", 0644, &me, &attr);
 *     pmfs_write(fs, attr.ino, 0, "world\n", 6, 0, &done);
 *     pmfs_release(fs, attr.ino);
 *     pmfs_unmount(fs);
 *
 * Compile and link with `pkg-config --cflags --libs pmfs`, or, in CMake, the target minl2r::pmfs
 * of find_package(minl2r). A program that is whole is in libpmfs(7).
 *
 * Contract, for every call unless it says otherwise:
 *
 *   Returns      0, or a negative errno. Results come through the last parameters,
 *                which are written on success only.
 *   Crash        a call is all there or not at all when the pool is opened again after
 *                a crash at any instant; once it has returned it is all there. This
 *                holds for a killed process always, for a power failure as far as the
 *                medium does (minl2r_pool_info()).
 *   Errors       the ones that POSIX names; no room is -ENOSPC, and nothing has
 *                changed. -EUCLEAN: the medium holds something impossible; -EIO: it
 *                failed; pmfs_errormsg() then says what and where. -ESTALE: no such
 *                inode, or no more. -EROFS: a change, where PMFS_READ_ONLY was asked for.
 *                -EINVAL: flags that are not in the call's enum (pmfs_fallocate(): -EOPNOTSUPP).
 *                -ENOMEM anywhere.
 *   Threads      any call from any thread at any time, but pmfs_unmount(). Inside, one
 *                lock per inode: readers of a file do not wait for each other.
 *   Fork         a child may only unmount: its other calls that change are -EPERM.
 *   Permission   is not checked: who calls has the memory mapped anyway. (The mount
 *                leaves it to the kernel.) A file's privileges (the set-user-ID bit, the
 *                set-group-ID bit where its group may execute it, and the attribute
 *                "security.capability") are dropped only where a flag says so.
 *   Names        are NUL-terminated, 1 to 255 bytes, without '/'; others are
 *                -ENAMETOOLONG, or -EINVAL where something is made, removed or moved, and
 *                -ENOENT where it is looked up. "." and ".." are looked up and listed,
 *                but cannot be made (-EEXIST), unlinked (-EISDIR), moved (-EINVAL) or
 *                removed as directories (-EINVAL, -ENOTEMPTY).
 *   Times        ns since the epoch. Access times change by pmfs_setattr() only
 *                (noatime).
 *
 * "Cost" counts fences that have something to wait for; see minl2r.h. What a call adds
 * when the filesystem grows its own tables is in the same transaction and costs none.
 */
#ifndef PMFS_H
#define PMFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "minl2r.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pmfs;

#define PMFS_LAYOUT "pmfs"    /* layout name of the pool */
#define PMFS_ROOT_INO 1       /* inode number of the root directory */
#define PMFS_NAME_MAX 255     /* bytes of a name */
#define PMFS_SYMLINK_MAX 4095 /* bytes of a symbolic link's target */
#define PMFS_LINK_MAX 65000   /* links of a file; directories in a directory */
#define PMFS_FILE_SIZE_MAX ((uint64_t)1 << 44)

/*
 * The message of this thread's last call, if that failed: one line, without a newline,
 * never NULL. After -EUCLEAN and -EIO, and after any failure of a call of the next section,
 * it says what and where; it may be empty after other errors, which say all by their
 * number. It is never that of an older call.
 */
const char *pmfs_errormsg(void);

/* ---- Making, mounting, checking ------------------------------------------------ */

/* All zero means: the defaults. */
struct pmfs_mkfs_options {
    struct minl2r_options pool; /* block size, lanes, medium, mode of the file... */
    uint32_t root_mode;         /* permission bits of the root directory; 0: 0755 */
    uint32_t root_uid;
    uint32_t root_gid;
    uint32_t reserved[5]; /* zero */
};

/*
 * Makes an empty filesystem in the new file `path` of `size` bytes. `options` may be
 * NULL.
 *
 * Cost:    as minl2r_pool_create(), and a few fences.
 * Crash:   before it returns, there is no file; or where minl2r_pool_create() says so,
 *          something that is -EUCLEAN to mount.
 * Errors:  as minl2r_pool_create(), whose message it passes on; then the file is
 *          gone.
 */
int pmfs_mkfs(const char *path, uint64_t size, const struct pmfs_mkfs_options *options);

enum pmfs_mount_flags {
    /*
     * Calls that answer with an entry (lookup, create, tmpfile, mknod, mkdir, symlink, link,
     * and readdir with attributes) count a lookup of its inode, and an inode that has lost
     * its last name lives on until pmfs_forget() has taken back its lookups. A FUSE
     * daemon wants that. Without it only open files live on without a name, and a
     * number that is kept may come to mean another file: compare `generation`.
     */
    PMFS_COUNT_LOOKUPS = 1,

    /*
     * Nothing is written to the pool, whose file may be one that cannot be: what opening
     * it has to undo, finish or convert is so in this process's memory only, where what
     * is changed takes a copy of its page (all of them, of device DAX). Calls that change
     * something are -EROFS. Other processes may have it open so at the same time, and
     * `require` is no matter.
     */
    PMFS_READ_ONLY = 2,
};

/* All zero means: the defaults. */
struct pmfs_mount_options {
    enum minl2r_medium require; /* refuse a lesser medium; 0: take any */
    uint32_t flags;             /* enum pmfs_mount_flags */
    uint64_t cached_inodes;     /* unused inodes kept in DRAM, of 200 bytes; 0: 65536 */
    uint64_t reserved[4];       /* zero */
};

/*
 * Opens the pool `path`, which undoes what a crash left unfinished, then frees the
 * files that were open but had no name, and the blocks of truncations that were not
 * over; with PMFS_READ_ONLY as if. `options` may be NULL.
 *
 * Cost:    reads one byte per inode; no scan of files or directories.
 * Crash:   may crash anywhere and be run again.
 * Errors:  as minl2r_pool_open(), whose message it passes on; -EINVAL (another
 *          layout; flags), -EPROTONOSUPPORT (newer format).
 */
int pmfs_mount(const char *path, const struct pmfs_mount_options *options,
               struct pmfs **fs);

/*
 * Frees the files that have no name but are still open, then closes the pool and frees
 * `fs`. No other call may be running or come after. NULL is allowed. Nothing needs to
 * be written for the sake of durability: a process may as well just end.
 *
 * Cost:    that of freeing those files, as pmfs_forget(), and of minl2r_pool_close().
 * Errors:  -EBUSY where another call was running all the same: `fs` is gone, but the
 *          pool stays open.
 */
int pmfs_unmount(struct pmfs *fs);

/* The pool below, for minl2r_pool_info() and minl2r_stats_get(). */
struct minl2r_pool *pmfs_pool(struct pmfs *fs);

/* Inodes in DRAM now: those in use, looked up ones included, and unused ones that are kept. */
uint64_t pmfs_cached_inodes(struct pmfs *fs);

/* What mounting finished. The pool's own recovery is in struct minl2r_info. */
struct pmfs_recovery {
    uint64_t orphans;   /* files without a name that were freed */
    uint64_t truncates; /* truncations brought to an end */
};

void pmfs_recovery(const struct pmfs *fs, struct pmfs_recovery *recovery);

/* One finding of pmfs_fsck(); `what` says what is wrong and where, in one line. */
typedef void pmfs_fsck_fn(void *arg, const char *what);

struct pmfs_fsck_summary {
    uint64_t findings;
    uint64_t files; /* regular */
    uint64_t directories;
    uint64_t symlinks;
    uint64_t others;      /* fifos, sockets, devices */
    uint64_t orphans;     /* without a name, freed by the next mount: no finding */
    uint64_t truncates;   /* not over, ended by the next mount: no finding */
    uint64_t blocks_used; /* reachable */
    uint64_t blocks_free;
    uint64_t blocks_lost; /* allocated, but not reachable */
};

/*
 * Verifies the filesystem in `path`, which nobody has mounted, as the next mount
 * would see it: the pool, every inode, block map, directory and link count, and that
 * what is reachable is what is allocated. Never writes to it. Stops after a bounded
 * time whatever the medium holds. `found` and `summary` may be NULL.
 *
 * Cost:    reads all but the contents of files.
 * Returns: 0 if consistent, -EUCLEAN if not, else why it could not be checked.
 */
int pmfs_fsck(const char *path, pmfs_fsck_fn *found, void *arg,
              struct pmfs_fsck_summary *summary);

/*
 * Asked by pmfs_repair() before each repair: `what` is wrong, and `how` would it be
 * repaired? True: repair it. At the end it is told what was left: `how` is then NULL,
 * and `why_not` says why; the answer does not matter.
 */
typedef bool pmfs_repair_fn(void *arg, const char *what, const char *how,
                            const char *why_not);

struct pmfs_repair_summary {
    uint64_t repaired;             /* findings */
    uint64_t left;                 /* findings, also of what was declined */
    struct pmfs_fsck_summary fsck; /* as it is afterwards */
};

/*
 * Repairs the filesystem in `path`, which nobody has mounted, where that loses nothing
 * and follows from the rest: bits of the block bitmaps, link counts, counts of blocks,
 * sizes and parents of directories, types and tags of entries. Inodes without a name get
 * one in /lost+found; blocks that nothing reaches become the content of a file there,
 * named "#blocks-0x" and the offset of the first, as far as there is room for its map. What
 * hangs on names that cannot be read is left as long as these cannot. What finds no room
 * changes nothing. `ask` may be NULL: repair all.
 *
 * Cost:    a check of everything, and another for each round of repairs: one to three.
 *          What is consistent is not written to.
 * Crash:   each repair is one transaction (blocks are kept 512 at a time): run it
 *          again.
 * Returns: 0 if it is consistent now, -EUCLEAN if something is left, else why it could
 *          not be repaired.
 */
int pmfs_repair(const char *path, pmfs_repair_fn *ask, void *arg,
                struct pmfs_repair_summary *summary);

/* ---- Inodes -------------------------------------------------------------------- */

struct pmfs_attr {
    uint64_t ino;
    uint32_t generation; /* another one each time the number is used again */
    uint32_t mode;       /* type and permissions, as st_mode */
    uint32_t nlink;
    uint32_t uid;
    uint32_t gid;
    uint32_t block_size; /* of the filesystem: what is good to read and write */
    uint64_t rdev;       /* of devices, as st_rdev */
    uint64_t size;       /* bytes */
    uint64_t blocks;     /* of 512 bytes, block maps included, as st_blocks */
    int64_t atime_ns;
    int64_t mtime_ns;
    int64_t ctime_ns;
    int64_t btime_ns; /* when it was made */
};

/* Who a new inode will belong to; a set-group-ID directory gives its group instead. */
struct pmfs_cred {
    uint32_t uid;
    uint32_t gid;
    uint32_t umask; /* taken from its mode, unless the directory has a default ACL */
};

/*
 * Finds `name` in the directory `parent`. Under PMFS_COUNT_LOOKUPS, counts a lookup, and
 * "." finds `parent` itself whatever its type, as a file handle needs it.
 *
 * Cost:    no fence; but the first use of a directory of format 1 or 2 converts it, by
 *          one transaction.
 * Errors:  -ENOENT, -ENOTDIR, -ENAMETOOLONG, -ESTALE.
 */
int pmfs_lookup(struct pmfs *fs, uint64_t parent, const char *name,
                struct pmfs_attr *attr);

/*
 * As pmfs_lookup(), but opens what it finds instead of counting a lookup, in one step:
 * nothing else can get its number in between. pmfs_release() must follow.
 */
int pmfs_lookup_open(struct pmfs *fs, uint64_t parent, const char *name,
                     struct pmfs_attr *attr);

/*
 * Takes back `count` lookups of `ino`; the last one of an inode that has no name and
 * is not open frees it. Without PMFS_COUNT_LOOKUPS it does nothing.
 *
 * Cost:    none; where it frees, three fences for each 512 blocks or fewer.
 * Errors:  none that the caller could act on: what could not be freed is freed by the
 *          next mount.
 */
void pmfs_forget(struct pmfs *fs, uint64_t ino, uint64_t count);

/*
 * The attributes of any inode, of one moment.
 *
 * Cost:    no fence.
 * Errors:  -ESTALE.
 */
int pmfs_getattr(struct pmfs *fs, uint64_t ino, struct pmfs_attr *attr);

enum pmfs_set {
    PMFS_SET_MODE = 1 << 0, /* permission bits only; the type stays */
    PMFS_SET_UID = 1 << 1,
    PMFS_SET_GID = 1 << 2,
    PMFS_SET_SIZE = 1 << 3, /* regular files; grows with zeros */
    PMFS_SET_ATIME = 1 << 4,
    PMFS_SET_MTIME = 1 << 5,
    PMFS_SET_CTIME = 1 << 6, /* without it: now */
    PMFS_SET_ATIME_NOW = 1 << 7,
    PMFS_SET_MTIME_NOW = 1 << 8,
    /* Of all but directories: security.capability and, without SET_MODE, set-user-ID,
     * and set-group-ID where the group may execute. */
    PMFS_DROP_PRIVILEGES = 1 << 9,
    /* So, and set-group-ID in any case: for a caller who is not in the group. */
    PMFS_DROP_SETGID = 1 << 10,
};

/*
 * Sets the fields of `values` that `mask` (enum pmfs_set) names, together. `attr`,
 * which may be NULL, is what they are afterwards. Where the size shrinks
 * by more than 512 blocks, they are freed in transactions of their own, before the
 * call returns or, if they cannot be, before the next change or by the next mount.
 *
 * Cost:    one fence where one word decides (mode or owner alone; size, when no block
 *          is freed: two if it grows inside a block); else two, or three where blocks are
 *          freed.
 * Crash:   where one word decides, the change time may be newer than the rest, never
 *          older.
 * Errors:  -EISDIR, -EINVAL (size of what is no file; mask), -EFBIG, -ESTALE.
 */
int pmfs_setattr(struct pmfs *fs, uint64_t ino, const struct pmfs_attr *values,
                 unsigned mask, struct pmfs_attr *attr);

/* ---- Names --------------------------------------------------------------------- */

/*
 * Makes an inode and its name in the directory `parent`. `mode` is type and
 * permissions; a type of 0 is a regular file. `attr` is what was made. In a directory
 * with a default ACL it inherits that.
 *
 * Cost:    two fences, mostly.
 * Errors:  -EEXIST, -ENOENT (`parent` was removed), -ENOTDIR, -ENAMETOOLONG, -EINVAL
 *          (type, name), -ENOSPC, -EMLINK, -ESTALE.
 */
int pmfs_mknod(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
               uint64_t rdev, const struct pmfs_cred *cred, struct pmfs_attr *attr);

/* As pmfs_mknod() of a regular file, opened: pmfs_release() must follow. */
int pmfs_create(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
                const struct pmfs_cred *cred, struct pmfs_attr *attr);

enum pmfs_tmpfile_flags {
    PMFS_NEVER_LINKED = 1, /* pmfs_link() is not to give it a name */
};

/*
 * As pmfs_create(), but the file has no name: `parent` only says what it inherits.
 * pmfs_link() gives it one, with all that was written until then; if it is released
 * before, or after a crash, it is freed.
 *
 * Cost:    two fences.
 * Errors:  -ENOTDIR, -EINVAL (flags), -ENOSPC, -ESTALE.
 */
int pmfs_tmpfile(struct pmfs *fs, uint64_t parent, uint32_t mode, unsigned flags,
                 const struct pmfs_cred *cred, struct pmfs_attr *attr);

/* As pmfs_mknod(). A directory made in a set-group-ID directory has that bit, too. */
int pmfs_mkdir(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
               const struct pmfs_cred *cred, struct pmfs_attr *attr);

/* As pmfs_mknod(). -EINVAL for an empty target, -ENAMETOOLONG past PMFS_SYMLINK_MAX. */
int pmfs_symlink(struct pmfs *fs, uint64_t parent, const char *name, const char *target,
                 const struct pmfs_cred *cred, struct pmfs_attr *attr);

/*
 * Copies the target of a symbolic link, NUL-terminated.
 *
 * Cost:    no fence.
 * Errors:  -EINVAL (no symbolic link), -ERANGE (`size`: PMFS_SYMLINK_MAX + 1 bytes are
 *          enough), -ESTALE.
 */
int pmfs_readlink(struct pmfs *fs, uint64_t ino, char *target, size_t size);

/*
 * Gives `ino` the further name `name` in `parent`.
 *
 * Cost:    as pmfs_mknod().
 * Errors:  as pmfs_mknod(); -EPERM (a directory), -EMLINK, -ENOENT (lost its last
 *          name, or is never to have one).
 */
int pmfs_link(struct pmfs *fs, uint64_t ino, uint64_t parent, const char *name,
              struct pmfs_attr *attr);

/*
 * Removes a name; with the last one the inode goes, as soon as nobody has it open or
 * looked up. Works on a full filesystem.
 *
 * Cost:    two fences; with the inode its blocks go in further transactions of three
 *          fences, for each 512 blocks or fewer.
 * Errors:  -ENOENT, -ENOTDIR, -EISDIR, -ENAMETOOLONG, -EINVAL (name), -ESTALE.
 */
int pmfs_unlink(struct pmfs *fs, uint64_t parent, const char *name);

/* As pmfs_unlink(), of an empty directory. -ENOTEMPTY (".." too), -EINVAL ("."). */
int pmfs_rmdir(struct pmfs *fs, uint64_t parent, const char *name);

enum pmfs_rename_flags {
    PMFS_RENAME_NOREPLACE = 1, /* -EEXIST if the new name exists */
    PMFS_RENAME_EXCHANGE = 2,  /* both must exist; they change places */
};

/*
 * Moves a name. What had the new name before is replaced, and no moment shows
 * neither.
 *
 * Cost:    as pmfs_mknod(); the inode of what is replaced goes as by pmfs_unlink().
 * Errors:  -ENOENT, -ENOTDIR, -EISDIR, -ENOTEMPTY, -EEXIST, -ENAMETOOLONG, -EINVAL (a
 *          directory into itself; names; flags), -EMLINK, -ENOSPC (the new directory must
 *          grow and cannot), -ESTALE.
 */
int pmfs_rename(struct pmfs *fs, uint64_t parent, const char *name, uint64_t new_parent,
                const char *new_name, unsigned flags);

/*
 * As pmfs_rename(), in one step with making a whiteout in place of the old name: a
 * character device 0/0 without permissions, by which overlay filesystems say that a name
 * of a lower layer is gone. `flags`: PMFS_RENAME_NOREPLACE.
 */
int pmfs_rename_whiteout(struct pmfs *fs, uint64_t parent, const char *name,
                         uint64_t new_parent, const char *new_name, unsigned flags,
                         const struct pmfs_cred *cred);

/* ---- Files --------------------------------------------------------------------- */

/*
 * Keeps an inode of any type alive, even without a name, until as many pmfs_release().
 *
 * Cost:    no fence; where the last release frees it, as pmfs_forget().
 * Errors:  -ESTALE.
 */
int pmfs_open(struct pmfs *fs, uint64_t ino);
void pmfs_release(struct pmfs *fs, uint64_t ino);

/*
 * Reads up to `size` bytes; `*done` is less only at the end of the file.
 *
 * Cost:    no fence.
 * Errors:  -EISDIR, -EINVAL (neither file nor directory), -ESTALE.
 */
int pmfs_read(struct pmfs *fs, uint64_t ino, uint64_t offset, void *buffer, size_t size,
              size_t *done);

/*
 * As pmfs_read(), without a copy: calls `use` once with pieces of persistent memory
 * (and of a page of zeros for holes), in order. The file is locked for reading until
 * `use` returns; it may call nothing of pmfs. Returns what `use` returns.
 */
typedef int pmfs_read_fn(void *arg, const struct iovec *pieces, int count, size_t size);
int pmfs_read_in_place(struct pmfs *fs, uint64_t ino, uint64_t offset, size_t size,
                       pmfs_read_fn *use, void *arg);

enum pmfs_write_flags {
    PMFS_APPEND = 1, /* write at the end of the file, whatever `offset` is */
    PMFS_WRITE_DROPS_PRIVILEGES = 2,   /* as PMFS_DROP_PRIVILEGES, in one transaction */
    PMFS_WRITE_DROPS_SETGID = 4,       /* as PMFS_DROP_SETGID */
    PMFS_WRITE_DROPS_CAPABILITIES = 8, /* of privileges these only */
};

/*
 * Writes all of `size` bytes, or nothing: size and times of the file included, and
 * however many blocks. The limit is what is free: blocks for what is new and for what
 * is overwritten, as the old ones are free only afterwards; a node for each block_size / 8
 * of the new ones; and at most 64 bytes of log for each block. Of 4 KiB blocks, one write
 * fills 98 % of what pmfs_statfs() calls available. What is larger is -ENOSPC and has
 * changed nothing, but where all of it lies inside the file: then a part of it is written,
 * up to the end of a block, as one transaction, and `*done` says how much. So a full
 * filesystem can be overwritten. `*done` is less than `size`, too, where some would lie
 * past PMFS_FILE_SIZE_MAX: that is left out; -EFBIG if that is all.
 *
 * Cost:    two fences for blocks overwritten by half or more, holes filled, new blocks
 *          at the end, bytes past the end inside the last block, and up to 1000 bytes of
 *          other blocks; three for more of those.
 * Crash:   all or nothing; in the last cheap case the times may be newer than the content.
 * Errors:  -EISDIR, -EINVAL (no regular file; flags), -EFBIG, -ENOSPC, -ESTALE.
 */
int pmfs_write(struct pmfs *fs, uint64_t ino, uint64_t offset, const void *buffer,
               size_t size, unsigned flags, size_t *done);

/* As the FALLOC_FL_ flags of Linux. */
enum pmfs_fallocate_mode {
    PMFS_KEEP_SIZE = 0x01,  /* the range may lie past the end, which stays */
    PMFS_PUNCH_HOLE = 0x02, /* free blocks instead; with PMFS_KEEP_SIZE only */
    PMFS_ZERO_RANGE = 0x10, /* blocks that are there become zeros, too */
};

/*
 * Gives a range of a file blocks of zeros where it has none, so that writing there
 * needs no further room but what a block takes that is changed by being replaced; or
 * makes it a hole, or zeros, as `mode` says. A whole block that is punched is free
 * again; what a range has of other blocks is zeroed. Truncating to any size frees the
 * blocks past the end.
 *
 * Cost:    three fences, for each 512 blocks or fewer, or two where it gives a few; memory
 *          is written for each block given or zeroed.
 * Crash:   all or nothing for what lies in 512 blocks that begin at a multiple of 512
 *          (of blocks of 4 KiB; of others, block_size / 8); beyond that front to back.
 *          On a full filesystem, what is punched or zeroed may take smaller steps.
 * Errors:  -EOPNOTSUPP (mode), -EISDIR, -ENODEV (no regular file), -EINVAL (no size),
 *          -EFBIG, -ENOSPC (found out before anything changes, unless others take the
 *          room meanwhile), -ESTALE.
 */
int pmfs_fallocate(struct pmfs *fs, uint64_t ino, unsigned mode, uint64_t offset,
                   uint64_t size);

enum pmfs_seek { PMFS_SEEK_DATA, PMFS_SEEK_HOLE };

/*
 * Finds the first byte from `offset` on that is in a block, or in a hole. There is a
 * hole at the end of every file.
 *
 * Cost:    no fence. Holes are skipped by what a node spans.
 * Errors:  -ENXIO (at or past the end; or no more data), -EISDIR, -EINVAL (no regular
 *          file; `whence`), -ESTALE.
 */
int pmfs_seek(struct pmfs *fs, uint64_t ino, uint64_t offset, enum pmfs_seek whence,
              uint64_t *found);

/*
 * Copies a range between two files, or inside one; `*done` is how much it did: up to
 * the end of the data or hole that it begins in, and 1 MiB of data. 0: nothing is left
 * to read. Whole blocks of a hole stay a hole. At PMFS_FILE_SIZE_MAX as pmfs_write().
 *
 * Cost:    as pmfs_write().
 * Crash:   all of `*done` or nothing, as pmfs_write().
 * Errors:  as pmfs_write(); -EINVAL (ranges of one file that overlap).
 */
int pmfs_copy_range(struct pmfs *fs, uint64_t from, uint64_t from_offset, uint64_t to,
                    uint64_t to_offset, uint64_t size, uint64_t *done);

/* ---- Extended attributes ------------------------------------------------------- */

#define PMFS_XATTR_NAME_MAX 255    /* bytes of a name, with its prefix */
#define PMFS_XATTR_SIZE_MAX 65536u /* bytes of a value */

/* As XATTR_CREATE and XATTR_REPLACE, which fail together whatever is there; ACLs are set
 * whatever they say, as by Linux. */
enum pmfs_xattr_flags {
    PMFS_XATTR_CREATE = 1,       /* -EEXIST if the attribute is there */
    PMFS_XATTR_REPLACE = 2,      /* -ENODATA if it is not */
    PMFS_XATTR_DROPS_SETGID = 4, /* an access ACL by who is not in the group */
};

/*
 * Sets an attribute of any inode. Names begin with "user.", "trusted." or "security.";
 * or they are "system.posix_acl_access" and "system.posix_acl_default", with a value as
 * Linux has it: an access ACL and the permission bits change together.
 * All attributes of an inode may take 1 MiB together, with 8 bytes for each and its
 * name; with blocks below 4 KiB block_size * block_size / 8 bytes: 32 KiB with the
 * smallest.
 *
 * Cost:    three fences; memory is written for this attribute and those that were set
 *          after it.
 * Errors:  -EEXIST, -ENODATA (flags), -EOPNOTSUPP (another prefix), -EINVAL (nothing
 *          behind it; flags; no ACL), -EACCES (a default ACL of no directory), -ERANGE (a
 *          name that is empty or too long), -E2BIG (too long a value), -ENOSPC, -ESTALE.
 */
int pmfs_setxattr(struct pmfs *fs, uint64_t ino, const char *name, const void *value,
                  size_t size, unsigned flags);

/* As pmfs_setxattr(). -ENODATA if it is not there, and no ACL. */
int pmfs_removexattr(struct pmfs *fs, uint64_t ino, const char *name);

/*
 * Copies a value of `*size` bytes; with a `capacity` of 0 only its size is found.
 *
 * Cost:    no fence.
 * Errors:  -ENODATA, -ERANGE (`capacity`), -ESTALE; of names as pmfs_setxattr().
 */
int pmfs_getxattr(struct pmfs *fs, uint64_t ino, const char *name, void *value,
                  size_t capacity, size_t *size);

/* As pmfs_getxattr(), of all names, each with a NUL behind it. */
int pmfs_listxattr(struct pmfs *fs, uint64_t ino, char *names, size_t capacity,
                   size_t *size);

/* ---- Directories --------------------------------------------------------------- */

struct pmfs_dirent {
    const char *name; /* NUL-terminated; valid during the call */
    uint64_t ino;
    uint32_t mode;                /* type only, as st_mode */
    uint32_t name_size;           /* bytes, without the NUL */
    uint64_t next_cookie;         /* continue here after this entry */
    const struct pmfs_attr *attr; /* if asked for, and not of "." and ".."; or NULL */
};

/* Returns 0 to take the entry and go on, anything else to refuse it and stop. */
typedef int pmfs_readdir_fn(void *arg, const struct pmfs_dirent *entry);

enum pmfs_readdir_flags {
    PMFS_READDIR_ATTR = 1, /* with attributes; entries taken count a lookup */
};

/*
 * Lists a directory from `cookie` on; 0 is the start. Calls `take` for each entry,
 * "." and ".." first, until it refuses one or all are listed. A cookie stays valid as
 * long as the directory lives: what is there throughout is listed exactly once,
 * whatever else comes and goes in between. The directory is locked for reading:
 * `take` may call nothing of pmfs.
 *
 * Cost:    no fence, but as pmfs_lookup() for old directories.
 * Errors:  -ENOTDIR, -EINVAL (flags), -ESTALE.
 */
int pmfs_readdir(struct pmfs *fs, uint64_t ino, uint64_t cookie, unsigned flags,
                 pmfs_readdir_fn *take, void *arg);

/* ---- Paths --------------------------------------------------------------------- */

/*
 * Calls by path. What they make and look up they do not count as looked up; they check
 * no permission to search.
 *
 *   Paths        are at most 4095 bytes and mean what they mean to POSIX. Relative ones
 *                start at the directory `dir`: PMFS_ROOT_INO, or one that is open. There
 *                is no current directory. Absolute ones, and absolute symbolic links,
 *                start at the root of the filesystem, whose ".." is itself.
 *   Errors       beyond those of the call by name: -ENOENT (an empty path, too),
 *                -ENOTDIR (also a slash after what is no directory), -ELOOP (more than
 *                PMFS_LINKS_FOLLOWED_MAX symbolic links), -ENAMETOOLONG (a component, too),
 *                -EINVAL (flags other than those of enum pmfs_path_flags that the call
 *                has).
 *   Cost         that of the call by name, and a lookup for each component.
 */
#define PMFS_PATH_MAX 4095         /* bytes of a path */
#define PMFS_LINKS_FOLLOWED_MAX 40 /* symbolic links on the way */

enum pmfs_path_flags {
    PMFS_PATH_NOFOLLOW = 1, /* a symbolic link at the end is what is meant */
    PMFS_PATH_BENEATH = 2, /* pmfs_path_parent() only: -EXDEV where the way leads out */
};

/*
 * Opens what `path` names, and with O_CREAT makes a regular file if there is nothing:
 * pmfs_release() must follow. `flags` are those of open(2). These count: O_CREAT,
 * O_EXCL, O_TRUNC, O_DIRECTORY, O_NOFOLLOW, O_PATH, O_TMPFILE (as pmfs_tmpfile()), and
 * the access mode, which for directories must be O_RDONLY; others are no matter. `mode` and `cred` are for what
 * is made.
 *
 * Errors:  as open(2): -EEXIST, -EISDIR, -ELOOP (O_NOFOLLOW), -EINVAL (O_CREAT with
 *          O_DIRECTORY, O_TMPFILE with O_RDONLY), -ENOSPC...
 */
int pmfs_path_open(struct pmfs *fs, uint64_t dir, const char *path, int flags,
                   uint32_t mode, const struct pmfs_cred *cred, struct pmfs_attr *attr);

/* As pmfs_getattr() and pmfs_setattr(). `flags`: PMFS_PATH_NOFOLLOW. */
int pmfs_path_getattr(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                      struct pmfs_attr *attr);
int pmfs_path_setattr(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                      const struct pmfs_attr *values, unsigned mask,
                      struct pmfs_attr *attr);

/* As pmfs_mknod(), pmfs_mkdir(), pmfs_symlink(), pmfs_readlink(). */
int pmfs_path_mknod(struct pmfs *fs, uint64_t dir, const char *path, uint32_t mode,
                    uint64_t rdev, const struct pmfs_cred *cred,
                    struct pmfs_attr *attr);
int pmfs_path_mkdir(struct pmfs *fs, uint64_t dir, const char *path, uint32_t mode,
                    const struct pmfs_cred *cred, struct pmfs_attr *attr);
int pmfs_path_symlink(struct pmfs *fs, const char *target, uint64_t dir,
                      const char *path, const struct pmfs_cred *cred,
                      struct pmfs_attr *attr);
int pmfs_path_readlink(struct pmfs *fs, uint64_t dir, const char *path, char *target,
                       size_t size);

/*
 * As pmfs_link(), pmfs_unlink(), pmfs_rmdir(), pmfs_rename(), pmfs_rename_whiteout(). No
 * symbolic link at the end of a path is followed, but that of `path` in pmfs_path_link()
 * without PMFS_PATH_NOFOLLOW. -EBUSY: the root, or "." and ".." to rename.
 */
int pmfs_path_link(struct pmfs *fs, uint64_t dir, const char *path, uint64_t new_dir,
                   const char *new_path, unsigned flags);
int pmfs_path_unlink(struct pmfs *fs, uint64_t dir, const char *path);
int pmfs_path_rmdir(struct pmfs *fs, uint64_t dir, const char *path);
int pmfs_path_rename(struct pmfs *fs, uint64_t dir, const char *path, uint64_t new_dir,
                     const char *new_path, unsigned flags);
int pmfs_path_rename_whiteout(struct pmfs *fs, uint64_t dir, const char *path,
                              uint64_t new_dir, const char *new_path, unsigned flags,
                              const struct pmfs_cred *cred);

/*
 * The path of the directory `ino`, from the root on: "/", "/a/b". NUL-terminated.
 *
 * Cost:    lists each directory on the way.
 * Errors:  -ENOTDIR, -ERANGE (`size` is too small), -ENAMETOOLONG (more than PMFS_PATH_MAX
 *          directories on the way), -ENOENT (removed), -ESTALE.
 */
int pmfs_path_of(struct pmfs *fs, uint64_t ino, char *path, size_t size);

/* Where a path ends: a name in a directory, whether there is such an entry or not. */
struct pmfs_place {
    uint64_t parent;              /* open */
    char name[PMFS_NAME_MAX + 2]; /* the last component, with a slash if one follows it;
                                     "/" for the root */
    char *outside;                /* after -EXDEV: what is left of the path; or NULL */
};

/*
 * Follows `path` to its last component, and that, too, without PMFS_PATH_NOFOLLOW, as
 * long as it is a symbolic link. `place` can be used as directory and path of the calls
 * above; pmfs_place_release() must follow, but after errors other than -EXDEV.
 *
 * Cost:    a lookup for each component.
 * Errors:  -EXDEV (PMFS_PATH_BENEATH): a symbolic link or ".." leads out of the
 *          filesystem. `place->outside` is the way from there: it begins with a slash,
 *          or with ".." above the root.
 */
int pmfs_path_parent(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                     struct pmfs_place *place);

/* Lets go of a directory that pmfs_path_parent() opened, and frees `outside`. */
void pmfs_place_release(struct pmfs *fs, struct pmfs_place *place);

/* ---- The filesystem ------------------------------------------------------------ */

struct pmfs_statfs {
    uint32_t block_size;
    uint32_t name_max;
    uint64_t blocks;      /* of block_size */
    uint64_t blocks_free; /* spare blocks, kept for changes of a full pool, included */
    uint64_t blocks_available; /* without them: what can be filled */
    uint64_t files;            /* inodes in use and how many more there could be */
    uint64_t files_free;
    uint64_t id; /* as f_fsid */
};

/*
 * How large and how full the filesystem is. Exact when no other call is running.
 *
 * Cost:    no fence.
 * Errors:  -EPERM (after fork).
 */
int pmfs_statfs(struct pmfs *fs, struct pmfs_statfs *statfs);

#ifdef __cplusplus
}
#endif

#endif
