/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel caches pages, attributes and names for as long as it likes: nobody else
 * changes the filesystem. Writes are never delayed: each request is a transaction,
 * durable when it is answered. (Into its cache the kernel writes a write(2) in pieces
 * where it needs to, and each piece is a request; with O_DIRECT or `direct_io` up to 1
 * MiB is one.) Hence what is not here, and so answered ENOSYS, which the kernel takes
 * as "never ask again":
 *
 *   fsync, fsyncdir, flush   there is nothing left to write
 *   open, opendir, create    lookups alone keep inodes alive; a new file comes by mknod,
 *                            but one without a name, which has nothing else
 */
#include "pmfs-proto/fuse/ops.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "pmfs-proto/fuse/caller.h"
#include "pmfs-proto/fuse/channel.h"
#include "pmfs-proto/fuse/status.h"

#define CACHE_SECONDS 86400.0
#define NS_PER_S 1000000000

static struct mount_state *state_of(fuse_req_t req)
{
    return fuse_req_userdata(req);
}

static struct pmfs *fs_of(fuse_req_t req)
{
    return state_of(req)->fs;
}

/* ---- Conversions ------------------------------------------------------------- */

static struct pmfs_cred cred_of(fuse_req_t req)
{
    const struct fuse_ctx *context = fuse_req_ctx(req);

    return (struct pmfs_cred){
        .uid = context->uid,
        .gid = context->gid,
        .umask = context->umask,
    };
}

static struct timespec timespec_of(int64_t ns)
{
    int64_t below = ns % NS_PER_S < 0 ? 1 : 0;

    return (struct timespec){.tv_sec = ns / NS_PER_S - below,
                             .tv_nsec = ns % NS_PER_S + below * NS_PER_S};
}

/* The nearest time that can be kept. */
static int64_t ns_of(struct timespec time)
{
    int64_t ns;

    if (__builtin_mul_overflow(time.tv_sec, NS_PER_S, &ns) ||
        __builtin_add_overflow(ns, time.tv_nsec, &ns))
        return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
    return ns;
}

static struct stat stat_of(const struct pmfs_attr *attr)
{
    return (struct stat){
        .st_ino = attr->ino,
        .st_mode = attr->mode,
        .st_nlink = attr->nlink,
        .st_uid = attr->uid,
        .st_gid = attr->gid,
        .st_rdev = attr->rdev,
        .st_size = (off_t)attr->size,
        .st_blksize = (blksize_t)attr->block_size,
        .st_blocks = (blkcnt_t)attr->blocks,
        .st_atim = timespec_of(attr->atime_ns),
        .st_mtim = timespec_of(attr->mtime_ns),
        .st_ctim = timespec_of(attr->ctime_ns),
    };
}

static struct pmfs_attr attr_of(const struct stat *stat)
{
    return (struct pmfs_attr){
        .mode = stat->st_mode,
        .uid = stat->st_uid,
        .gid = stat->st_gid,
        .size = (uint64_t)stat->st_size,
        .atime_ns = ns_of(stat->st_atim),
        .mtime_ns = ns_of(stat->st_mtim),
        .ctime_ns = ns_of(stat->st_ctim),
    };
}

static struct fuse_entry_param entry_of(const struct pmfs_attr *attr)
{
    return (struct fuse_entry_param){
        .ino = attr->ino,
        .generation = attr->generation,
        .attr = stat_of(attr),
        .attr_timeout = CACHE_SECONDS,
        .entry_timeout = CACHE_SECONDS,
    };
}

static struct statvfs statvfs_of(const struct pmfs_statfs *fs)
{
    return (struct statvfs){
        .f_bsize = fs->block_size,
        .f_frsize = fs->block_size,
        .f_blocks = fs->blocks,
        .f_bfree = fs->blocks_free,
        .f_bavail = fs->blocks_available,
        .f_files = fs->files,
        .f_ffree = fs->files_free,
        .f_favail = fs->files_free,
        .f_fsid = fs->id,
        .f_namemax = fs->name_max,
    };
}

static unsigned set_mask_of(int to_set)
{
    static const struct {
        int fuse;
        unsigned pmfs;
    } fields[] = {
        {FUSE_SET_ATTR_MODE, PMFS_SET_MODE},
        {FUSE_SET_ATTR_UID, PMFS_SET_UID},
        {FUSE_SET_ATTR_GID, PMFS_SET_GID},
        {FUSE_SET_ATTR_SIZE, PMFS_SET_SIZE},
        {FUSE_SET_ATTR_ATIME, PMFS_SET_ATIME},
        {FUSE_SET_ATTR_MTIME, PMFS_SET_MTIME},
        {FUSE_SET_ATTR_CTIME, PMFS_SET_CTIME},
        {FUSE_SET_ATTR_ATIME_NOW, PMFS_SET_ATIME_NOW},
        {FUSE_SET_ATTR_MTIME_NOW, PMFS_SET_MTIME_NOW},
    };
    unsigned mask = 0;

    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        mask |= to_set & fields[i].fuse ? fields[i].pmfs : 0;
    /*
     * With "now" the kernel sends what its clock said last, up to some milliseconds ago:
     * older than what was written meanwhile.
     */
    if (mask & PMFS_SET_ATIME_NOW)
        mask &= ~(unsigned)PMFS_SET_ATIME;
    if (mask & PMFS_SET_MTIME_NOW)
        mask &= ~(unsigned)PMFS_SET_MTIME;
    return mask;
}

/* ---- Privileges -------------------------------------------------------------- */

/* What the caller is not asked about, for most files: that would cost more than the rest. */
static bool has_set_id(fuse_req_t req, fuse_ino_t ino, struct pmfs_attr *attr)
{
    return pmfs_getattr(fs_of(req), ino, attr) == 0 && attr->mode & (S_ISUID | S_ISGID);
}

/* Who changes the content or the owner of a file takes a set-group-ID bit away where the group
 * may execute; where it may not, who is not in it does. */
static bool takes_setgid(fuse_req_t req, const struct pmfs_attr *attr)
{
    return (attr->mode & (S_ISGID | S_IXGRP)) == S_ISGID && !S_ISDIR(attr->mode) &&
           !caller_is_in_group(req, attr->gid) && !caller_is_capable(req, CAP_FSETID);
}

/*
 * The answer to a write does not tell that the mode is another one. The kernel would
 * keep the old one, and run what was written with the privileges of the owner. It holds the
 * inode's lock until a write is answered, and so does a chmod: no bit comes between
 * has_set_id() and what drops it.
 */
static void tell_mode(fuse_req_t req, fuse_ino_t ino)
{
    const off_t attributes_only = -1;

    fuse_lowlevel_notify_inval_inode(state_of(req)->session, ino, attributes_only, 0);
}

static int drop_capabilities(fuse_req_t req, fuse_ino_t ino)
{
    size_t size;
    int error = pmfs_getxattr(fs_of(req), ino, "security.capability", NULL, 0, &size);

    if (error == 0)
        error = pmfs_removexattr(fs_of(req), ino, "security.capability");
    return error == -ENODATA ? 0 : error;
}

/*
 * Drops a file's privileges, if it has any, before it is changed by a call that cannot
 * do so itself, and of which the kernel does not say what the caller may leave.
 */
static int drop_privileges(fuse_req_t req, fuse_ino_t ino)
{
    const struct pmfs_attr none = {0};
    struct pmfs_attr attr;

    if (!has_set_id(req, ino, &attr) || caller_is_capable(req, CAP_FSETID))
        return drop_capabilities(req, ino);
    unsigned setgid = takes_setgid(req, &attr) ? PMFS_DROP_SETGID : 0;
    int error =
        pmfs_setattr(fs_of(req), ino, &none, PMFS_DROP_PRIVILEGES | setgid, NULL);
    if (error == 0)
        tell_mode(req, ino);
    return error;
}

static bool owns(fuse_req_t req, const struct pmfs_attr *attr)
{
    return fuse_req_ctx(req)->uid == attr->uid || caller_is_capable(req, CAP_FOWNER);
}

/*
 * What setting attributes drops besides. A request to set nothing is what is left of chown(path,
 * -1, -1), which drops as every chown does; or it comes before a write, which will drop what it
 * has to. Anybody may write, but only the owner do the other; so his are taken for that.
 */
static unsigned setattr_drops(fuse_req_t req, fuse_ino_t ino, unsigned mask)
{
    bool kills = mask & (PMFS_SET_UID | PMFS_SET_GID) || channel_kills();
    struct pmfs_attr attr;

    if (mask != 0 && !kills)
        return 0;
    if (!has_set_id(req, ino, &attr))
        return kills ? PMFS_DROP_PRIVILEGES : 0;
    if (!kills && !owns(req, &attr))
        return 0;
    return PMFS_DROP_PRIVILEGES | (takes_setgid(req, &attr) ? PMFS_DROP_SETGID : 0);
}

/* What a write drops with it. Of stores into a mapping, which the kernel writes later, nobody
 * does elsewhere either. */
static unsigned write_drops(fuse_req_t req, fuse_ino_t ino, bool from_mapping,
                            bool *has_mode)
{
    struct pmfs_attr attr;

    *has_mode = false;
    if (from_mapping)
        return 0;
    if (!channel_kills()) /* past its cache, the kernel does not look at them */
        return state_of(req)->direct_io ? PMFS_WRITE_DROPS_CAPABILITIES : 0;
    *has_mode = has_set_id(req, ino, &attr);
    return PMFS_WRITE_DROPS_PRIVILEGES |
           (*has_mode && takes_setgid(req, &attr) ? PMFS_WRITE_DROPS_SETGID : 0);
}

/* What an access ACL drops. */
static unsigned acl_drops(fuse_req_t req, fuse_ino_t ino)
{
    struct pmfs_attr attr;
    bool drops = channel_tells_of_acls(state_of(req))
                     ? channel_kills()
                     : has_set_id(req, ino, &attr) && attr.mode & S_ISGID &&
                           !caller_is_in_group(req, attr.gid) &&
                           !caller_is_capable(req, CAP_FSETID);

    return drops ? PMFS_XATTR_DROPS_SETGID : 0;
}

/* ---- Replies ----------------------------------------------------------------- */

/* The only place where the sign of an errno flips. `error` is 0 or negative. */
static void reply_result(fuse_req_t req, int error)
{
    if (error == -EUCLEAN || error == -EIO)
        fuse_log(FUSE_LOG_ERR, "%s\n", pmfs_errormsg());
    fuse_reply_err(req, -error);
}

static void reply_entry(fuse_req_t req, int error, const struct pmfs_attr *attr)
{
    if (error < 0) {
        reply_result(req, error);
        return;
    }
    struct fuse_entry_param entry = entry_of(attr);

    /* The kernel does not take back a lookup that it never heard of. */
    if (fuse_reply_entry(req, &entry) == -ENOENT)
        pmfs_forget(fs_of(req), attr->ino, 1);
}

static void reply_attr(fuse_req_t req, int error, const struct pmfs_attr *attr)
{
    if (error < 0) {
        reply_result(req, error);
        return;
    }
    struct stat stat = stat_of(attr);

    fuse_reply_attr(req, &stat, CACHE_SECONDS);
}

/* An entry without an inode: the kernel remembers that there is none. */
static void reply_no_entry(fuse_req_t req)
{
    const struct fuse_entry_param none = {.entry_timeout = CACHE_SECONDS};

    fuse_reply_entry(req, &none);
}

/* ---- Session ----------------------------------------------------------------- */

static void op_init(void *userdata, struct fuse_conn_info *conn)
{
    /* How set-user-ID bits go is agreed in channel.c; O_TRUNC is a request of its own. */
    const unsigned unwanted = FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_READDIRPLUS_AUTO |
                              FUSE_CAP_HANDLE_KILLPRIV | FUSE_CAP_ATOMIC_O_TRUNC |
                              FUSE_CAP_WRITEBACK_CACHE | FUSE_CAP_SPLICE_READ |
                              FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE;
    const unsigned wanted = FUSE_CAP_EXPLICIT_INVAL_DATA | FUSE_CAP_READDIRPLUS |
                            FUSE_CAP_PARALLEL_DIROPS | FUSE_CAP_CACHE_SYMLINKS |
                            FUSE_CAP_EXPORT_SUPPORT | FUSE_CAP_POSIX_ACL |
                            FUSE_CAP_DONT_MASK;
    struct mount_state *state = userdata;

    state->without_open = !state->direct_io && conn->capable & FUSE_CAP_NO_OPEN_SUPPORT;
    state->without_opendir = conn->capable & FUSE_CAP_NO_OPENDIR_SUPPORT;
    conn->want = (conn->want & ~unwanted) | (conn->capable & wanted);
    conn->max_write = 1 << 20;
}

/* ---- Inodes ------------------------------------------------------------------ */

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    struct pmfs_attr attr;
    int error = pmfs_lookup(fs_of(req), parent, name, &attr);

    if (error == -ENOENT)
        reply_no_entry(req);
    else
        reply_entry(req, error, &attr);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t count)
{
    pmfs_forget(fs_of(req), ino, count);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t count,
                            struct fuse_forget_data *forgets)
{
    for (size_t i = 0; i < count; i++)
        pmfs_forget(fs_of(req), forgets[i].ino, forgets[i].nlookup);
    fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    struct pmfs_attr attr;

    (void)fi;
    reply_attr(req, pmfs_getattr(fs_of(req), ino, &attr), &attr);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *stat, int to_set,
                       struct fuse_file_info *fi)
{
    struct pmfs_attr values = attr_of(stat), attr;
    unsigned mask = set_mask_of(to_set);

    (void)fi;
    mask |= setattr_drops(req, ino, mask);
    reply_attr(req, pmfs_setattr(fs_of(req), ino, &values, mask, &attr), &attr);
}

/* ---- Names ------------------------------------------------------------------- */

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t rdev)
{
    struct pmfs_cred cred = cred_of(req);
    struct pmfs_attr attr;
    int error = pmfs_mknod(fs_of(req), parent, name, mode, rdev, &cred, &attr);

    reply_entry(req, error, &attr);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    struct pmfs_cred cred = cred_of(req);
    struct pmfs_attr attr;
    int error = pmfs_mkdir(fs_of(req), parent, name, mode, &cred, &attr);

    reply_entry(req, error, &attr);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
                       const char *name)
{
    struct pmfs_cred cred = cred_of(req);
    struct pmfs_attr attr;
    int error = pmfs_symlink(fs_of(req), parent, name, target, &cred, &attr);

    reply_entry(req, error, &attr);
}

static void op_readlink(fuse_req_t req, fuse_ino_t ino)
{
    char target[PMFS_SYMLINK_MAX + 1];
    int error = pmfs_readlink(fs_of(req), ino, target, sizeof(target));

    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_readlink(req, target);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    struct pmfs_attr attr;
    int error = pmfs_link(fs_of(req), ino, parent, name, &attr);

    reply_entry(req, error, &attr);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_result(req, pmfs_unlink(fs_of(req), parent, name));
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_result(req, pmfs_rmdir(fs_of(req), parent, name));
}

_Static_assert((unsigned)PMFS_RENAME_NOREPLACE == RENAME_NOREPLACE &&
                   (unsigned)PMFS_RENAME_EXCHANGE == RENAME_EXCHANGE,
               "flags are passed on");

static int rename_whiteout(fuse_req_t req, fuse_ino_t parent, const char *name,
                           fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
    const struct pmfs_cred cred = cred_of(req);

    return pmfs_rename_whiteout(fs_of(req), parent, name, new_parent, new_name,
                                flags & ~(unsigned)RENAME_WHITEOUT, &cred);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
    int error =
        flags & RENAME_WHITEOUT
            ? rename_whiteout(req, parent, name, new_parent, new_name, flags)
            : pmfs_rename(fs_of(req), parent, name, new_parent, new_name, flags);

    reply_result(req, error);
}

/* ---- Files ------------------------------------------------------------------- */

static void op_open(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    if (state_of(req)->without_open) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    fi->direct_io = state_of(req)->direct_io;
    fi->keep_cache = 1;
    fuse_reply_open(req, fi);
}

/*
 * Only of a file without a name: see channel.c. Whether it may get one (O_EXCL) the kernel
 * decides. It has looked it up, and so keeps it alive.
 */
static void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                      struct fuse_file_info *fi)
{
    const struct pmfs_cred cred = cred_of(req);
    struct pmfs_attr attr;

    if (strcmp(name, NAMELESS) != 0) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    int error = pmfs_tmpfile(fs_of(req), parent, mode, 0, &cred, &attr);
    if (error < 0) {
        reply_result(req, error);
        return;
    }
    struct fuse_entry_param entry = entry_of(&attr);

    fi->direct_io = state_of(req)->direct_io;
    fi->keep_cache = 1;
    pmfs_release(fs_of(req), attr.ino);
    if (fuse_reply_create(req, &entry, fi) == -ENOENT)
        pmfs_forget(fs_of(req), attr.ino, 1);
}

/* More pieces than one writev() takes: only large reads from small blocks have them. */
static int reply_copied(fuse_req_t req, const struct iovec *pieces, int count,
                        size_t size)
{
    char *buffer = malloc(size), *end = buffer;

    if (buffer == NULL)
        return -ENOMEM;
    for (int i = 0; i < count; i++) {
        memcpy(end, pieces[i].iov_base, pieces[i].iov_len);
        end += pieces[i].iov_len;
    }
    fuse_reply_buf(req, buffer, size);
    free(buffer);
    return 0;
}

/* The file is locked until the kernel has its copy. libfuse adds a piece of its own. */
static int reply_pieces(void *req, const struct iovec *pieces, int count, size_t size)
{
    if (count >= IOV_MAX)
        return reply_copied(req, pieces, count, size);
    fuse_reply_iov(req, pieces, count);
    return 0;
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    int error =
        pmfs_read_in_place(fs_of(req), ino, (uint64_t)offset, size, reply_pieces, req);

    (void)fi;
    if (error < 0)
        reply_result(req, error);
}

/* Past its cache it makes EIO of a short answer, as it may have asked for more at once. */
static bool kernel_takes_short(fuse_req_t req, const struct fuse_file_info *fi)
{
    return !state_of(req)->direct_io && !(fi->flags & O_DIRECT);
}

/*
 * Without room for the log of all of it a part was written: go on with the rest, which
 * mostly fits as the part did, or say why not.
 */
static int write_all(struct pmfs *fs, fuse_ino_t ino, off_t offset, const char *data,
                     size_t size, unsigned flags, size_t *done)
{
    size_t part = 0;
    int error = pmfs_write(fs, ino, (uint64_t)offset, data, size, flags, &part);

    for (*done = part; error == 0 && *done < size && part > 0; *done += part) {
        part = 0;
        error = pmfs_write(fs, ino, (uint64_t)offset + *done, data + *done,
                           size - *done, flags, &part);
    }
    return error;
}

/* At the largest size of a file it is short, if it can be. */
static int write_below_limit(fuse_req_t req, fuse_ino_t ino, off_t offset,
                             const char *data, size_t size, unsigned flags,
                             const struct fuse_file_info *fi, size_t *done)
{
    off_t room = (off_t)PMFS_FILE_SIZE_MAX - offset;

    if (room > 0 && size > (size_t)room) {
        if (!kernel_takes_short(req, fi))
            return -EFBIG;
        size = (size_t)room;
    }
    return write_all(fs_of(req), ino, offset, data, size, flags, done);
}

/* O_APPEND: the kernel knows the end of the file, and holds its own lock meanwhile. */
static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
                     off_t offset, struct fuse_file_info *fi)
{
    bool has_mode;
    unsigned flags = write_drops(req, ino, fi->writepage, &has_mode);
    size_t done = 0;
    int error = write_below_limit(req, ino, offset, data, size, flags, fi, &done);

    if (has_mode)
        tell_mode(req, ino);
    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_write(req, done);
}

_Static_assert((unsigned)PMFS_KEEP_SIZE == FALLOC_FL_KEEP_SIZE &&
                   (unsigned)PMFS_PUNCH_HOLE == FALLOC_FL_PUNCH_HOLE &&
                   (unsigned)PMFS_ZERO_RANGE == FALLOC_FL_ZERO_RANGE,
               "modes are passed on");

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
                         off_t size, struct fuse_file_info *fi)
{
    int error = drop_privileges(req, ino);

    (void)fi;
    if (error == 0)
        error = pmfs_fallocate(fs_of(req), ino, (unsigned)mode, (uint64_t)offset,
                               (uint64_t)size);
    reply_result(req, error);
}

static void op_lseek(fuse_req_t req, fuse_ino_t ino, off_t offset, int whence,
                     struct fuse_file_info *fi)
{
    enum pmfs_seek seek = whence == SEEK_DATA ? PMFS_SEEK_DATA : PMFS_SEEK_HOLE;
    uint64_t found;
    int error = pmfs_seek(fs_of(req), ino, (uint64_t)offset, seek, &found);

    (void)fi;
    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_lseek(req, (off_t)found);
}

static void op_copy_file_range(fuse_req_t req, fuse_ino_t from, off_t from_offset,
                               struct fuse_file_info *from_fi, fuse_ino_t to,
                               off_t to_offset, struct fuse_file_info *to_fi,
                               size_t size, int flags)
{
    uint64_t done = 0;
    int error = drop_privileges(req, to);

    (void)from_fi, (void)to_fi, (void)flags;
    if (error == 0)
        error = pmfs_copy_range(fs_of(req), from, (uint64_t)from_offset, to,
                                (uint64_t)to_offset, size, &done);
    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_write(req, done);
}

/* ---- Extended attributes ----------------------------------------------------- */

_Static_assert((unsigned)PMFS_XATTR_CREATE == XATTR_CREATE &&
                   (unsigned)PMFS_XATTR_REPLACE == XATTR_REPLACE,
               "flags are passed on");

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
                        const char *value, size_t size, int flags)
{
    unsigned drops =
        strcmp(name, "system.posix_acl_access") == 0 ? acl_drops(req, ino) : 0;

    reply_result(req, pmfs_setxattr(fs_of(req), ino, name, value, size,
                                    (unsigned)flags | drops));
}

static void op_removexattr(fuse_req_t req, fuse_ino_t ino, const char *name)
{
    reply_result(req, pmfs_removexattr(fs_of(req), ino, name));
}

/* With a value or a list of names, or, where its size was asked for, with that. */
static void reply_xattr(fuse_req_t req, int error, const char *bytes, size_t capacity,
                        size_t size)
{
    if (error < 0)
        reply_result(req, error);
    else if (capacity == 0)
        fuse_reply_xattr(req, size);
    else
        fuse_reply_buf(req, bytes, size);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
                        size_t capacity)
{
    char *value = malloc(capacity + 1);
    size_t size = 0;
    int error = -ENOMEM;

    if (value != NULL)
        error = pmfs_getxattr(fs_of(req), ino, name, value, capacity, &size);
    reply_xattr(req, error, value, capacity, size);
    free(value);
}

/* Names that only CAP_SYS_ADMIN may read. Answers with the size of what the caller may. */
static size_t hide_trusted(fuse_req_t req, char *names, size_t size)
{
    size_t kept = 0;

    for (size_t at = 0, length; at < size; at += length) {
        length = strlen(names + at) + 1;
        if (strncmp(names + at, "trusted.", 8) == 0) {
            if (caller_is_capable(req, CAP_SYS_ADMIN))
                return size; /* it is the first of them */
            continue;
        }
        memmove(names + kept, names + at, length);
        kept += length;
    }
    return kept;
}

static void op_listxattr(fuse_req_t req, fuse_ino_t ino, size_t capacity)
{
    char *names = malloc(XATTR_LIST_MAX);
    size_t size = 0;
    int error = -ENOMEM;

    if (names != NULL)
        error = pmfs_listxattr(fs_of(req), ino, names, XATTR_LIST_MAX, &size);
    if (error == 0)
        size = hide_trusted(req, names, size);
    if (error == 0 && capacity > 0 && size > capacity)
        error = -ERANGE;
    reply_xattr(req, error, names, capacity, size);
    free(names);
}

/* ---- Directories ------------------------------------------------------------- */

static void op_opendir(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    (void)ino;
    if (state_of(req)->without_opendir) {
        fuse_reply_err(req, ENOSYS);
        return;
    }
    fi->keep_cache = 1;
    fi->cache_readdir = 1;
    fuse_reply_open(req, fi);
}

/* A reply to READDIR or READDIRPLUS that is being filled. */
struct listing {
    fuse_req_t req;
    char *buffer;
    size_t size;
    size_t used;
};

static int add_name(void *arg, const struct pmfs_dirent *entry)
{
    struct listing *listing = arg;
    const struct stat stat = {.st_ino = entry->ino, .st_mode = entry->mode};
    size_t left = listing->size - listing->used;
    size_t needed =
        fuse_add_direntry(listing->req, listing->buffer + listing->used, left,
                          entry->name, &stat, (off_t)entry->next_cookie);

    if (needed > left)
        return 1;
    listing->used += needed;
    return 0;
}

static int add_entry(void *arg, const struct pmfs_dirent *entry)
{
    struct listing *listing = arg;
    const struct pmfs_attr dots = {.ino = entry->ino, .mode = entry->mode};
    struct fuse_entry_param param = entry_of(entry->attr ? entry->attr : &dots);
    size_t left = listing->size - listing->used;

    /* No inode: neither counted nor looked at. */
    param.ino = entry->attr ? param.ino : 0;
    size_t needed =
        fuse_add_direntry_plus(listing->req, listing->buffer + listing->used, left,
                               entry->name, &param, (off_t)entry->next_cookie);
    if (needed > left)
        return 1;
    listing->used += needed;
    return 0;
}

static void list(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                 unsigned flags, pmfs_readdir_fn *add)
{
    struct listing listing = {.req = req, .buffer = malloc(size), .size = size};
    int error = -ENOMEM;

    if (listing.buffer != NULL)
        error = pmfs_readdir(fs_of(req), ino, (uint64_t)cookie, flags, add, &listing);
    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_buf(req, listing.buffer, listing.used);
    free(listing.buffer);
}

static void op_readdir(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                       struct fuse_file_info *fi)
{
    (void)fi;
    list(req, ino, size, cookie, 0, add_name);
}

static void op_readdirplus(fuse_req_t req, fuse_ino_t ino, size_t size, off_t cookie,
                           struct fuse_file_info *fi)
{
    (void)fi;
    list(req, ino, size, cookie, PMFS_READDIR_ATTR, add_entry);
}

/* ---- The filesystem ---------------------------------------------------------- */

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    struct pmfs_statfs fs = {0};
    int error = pmfs_statfs(fs_of(req), &fs);
    struct statvfs statvfs = statvfs_of(&fs);

    (void)ino;
    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_statfs(req, &statvfs);
}

static void op_ioctl(fuse_req_t req, fuse_ino_t ino, unsigned command, void *arg,
                     struct fuse_file_info *fi, unsigned flags, const void *in,
                     size_t in_size, size_t out_size)
{
    struct pmfs_status status;
    bool known = command == (unsigned)PMFS_IOC_STATUS && out_size >= sizeof(status);
    int error = known ? status_read(fs_of(req), &status) : -ENOTTY;

    (void)ino, (void)arg, (void)fi, (void)flags, (void)in, (void)in_size;
    if (error < 0)
        reply_result(req, error);
    else
        fuse_reply_ioctl(req, 0, &status, sizeof(status));
}

const struct fuse_lowlevel_ops ops = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .symlink = op_symlink,
    .readlink = op_readlink,
    .link = op_link,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .rename = op_rename,
    .open = op_open,
    .create = op_create,
    .opendir = op_opendir,
    .read = op_read,
    .write = op_write,
    .fallocate = op_fallocate,
    .lseek = op_lseek,
    .copy_file_range = op_copy_file_range,
    .setxattr = op_setxattr,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .removexattr = op_removexattr,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .statfs = op_statfs,
    .ioctl = op_ioctl,
};
