/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mount/empty.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "pmfs-proto/fuse/channel.h"
#include "pmfs-proto/fuse/loop.h"
#include "pmfs-proto/fuse/ops.h"

enum { FILE_INO = 2, FIRST_MADE_INO = 3 };

/* More than a batch of jobs removes: without any the kernel would add none. */
#define NAMES_OF_FILE 1000000
#define CACHE_SECONDS 86400.0

static fuse_ino_t next_ino = FIRST_MADE_INO; /* atomic */
static uint64_t *asked_counts;               /* [REQUESTS], atomic */
static char zeros[1 << 20];

const char *const request_names[REQUESTS] = {
    "lookup",  "forget",   "getattr",  "setattr",   "mknod",  "mkdir",
    "symlink", "link",     "unlink",   "rmdir",     "rename", "read",
    "write",   "setxattr", "getxattr", "fallocate",
};

static void count(enum request request)
{
    __atomic_fetch_add(&asked_counts[request], 1, __ATOMIC_RELAXED);
}

static struct stat stat_of(fuse_ino_t ino, mode_t mode)
{
    return (struct stat){
        .st_ino = ino,
        .st_mode = mode,
        .st_nlink = ino == FILE_INO ? NAMES_OF_FILE : 1,
        .st_size = ino == FILE_INO ? EMPTY_FILE_SIZE : 0,
        .st_blksize = 4096,
    };
}

static fuse_ino_t new_ino(void)
{
    return __atomic_fetch_add(&next_ino, 1, __ATOMIC_RELAXED);
}

static void reply_entry(fuse_req_t req, fuse_ino_t ino, mode_t mode)
{
    const struct fuse_entry_param entry = {
        .ino = ino,
        .attr = stat_of(ino, mode),
        .attr_timeout = CACHE_SECONDS,
        .entry_timeout = CACHE_SECONDS,
    };

    fuse_reply_entry(req, &entry);
}

static void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent;
    count(REQUEST_LOOKUP);
    reply_entry(req, strcmp(name, EMPTY_FILE) == 0 ? FILE_INO : 0, S_IFREG | 0644);
}

static void op_forget(fuse_req_t req, fuse_ino_t ino, uint64_t lookups)
{
    (void)ino, (void)lookups;
    count(REQUEST_FORGET);
    fuse_reply_none(req);
}

static void op_forget_multi(fuse_req_t req, size_t size,
                            struct fuse_forget_data *forgets)
{
    (void)size, (void)forgets;
    count(REQUEST_FORGET);
    fuse_reply_none(req);
}

static void op_getattr(fuse_req_t req, fuse_ino_t ino, struct fuse_file_info *fi)
{
    mode_t mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0644;
    struct stat stat = stat_of(ino, mode);

    (void)fi;
    count(REQUEST_GETATTR);
    fuse_reply_attr(req, &stat, CACHE_SECONDS);
}

static void op_setattr(fuse_req_t req, fuse_ino_t ino, struct stat *values, int to_set,
                       struct fuse_file_info *fi)
{
    struct stat stat = stat_of(ino, S_IFREG | 0644);

    (void)fi;
    if (to_set & FUSE_SET_ATTR_MODE)
        stat.st_mode = S_IFREG | (values->st_mode & 07777);
    if (to_set & FUSE_SET_ATTR_SIZE)
        stat.st_size = values->st_size;
    count(REQUEST_SETATTR);
    fuse_reply_attr(req, &stat, CACHE_SECONDS);
}

static void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode,
                     dev_t rdev)
{
    (void)parent, (void)name, (void)rdev;
    count(REQUEST_MKNOD);
    reply_entry(req, new_ino(), mode);
}

static void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    (void)parent, (void)name;
    count(REQUEST_MKDIR);
    reply_entry(req, new_ino(), S_IFDIR | mode);
}

static void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent,
                       const char *name)
{
    (void)target, (void)parent, (void)name;
    count(REQUEST_SYMLINK);
    reply_entry(req, new_ino(), S_IFLNK | 0777);
}

static void op_link(fuse_req_t req, fuse_ino_t ino, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    count(REQUEST_LINK);
    reply_entry(req, ino, S_IFREG | 0644);
}

static void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    count(REQUEST_RMDIR);
    fuse_reply_err(req, 0);
}

static void op_fallocate(fuse_req_t req, fuse_ino_t ino, int mode, off_t offset,
                         off_t size, struct fuse_file_info *fi)
{
    (void)ino, (void)mode, (void)offset, (void)size, (void)fi;
    count(REQUEST_FALLOCATE);
    fuse_reply_err(req, 0);
}

static void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    (void)parent, (void)name;
    count(REQUEST_UNLINK);
    fuse_reply_err(req, 0);
}

static void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name,
                      fuse_ino_t new_parent, const char *new_name, unsigned flags)
{
    (void)parent, (void)name, (void)new_parent, (void)new_name, (void)flags;
    count(REQUEST_RENAME);
    fuse_reply_err(req, 0);
}

static void op_read(fuse_req_t req, fuse_ino_t ino, size_t size, off_t offset,
                    struct fuse_file_info *fi)
{
    const struct iovec piece = {zeros, size < sizeof(zeros) ? size : sizeof(zeros)};

    (void)ino, (void)offset, (void)fi;
    count(REQUEST_READ);
    fuse_reply_iov(req, &piece, 1);
}

static void op_write(fuse_req_t req, fuse_ino_t ino, const char *data, size_t size,
                     off_t offset, struct fuse_file_info *fi)
{
    (void)ino, (void)data, (void)offset, (void)fi;
    count(REQUEST_WRITE);
    fuse_reply_write(req, size);
}

static void op_setxattr(fuse_req_t req, fuse_ino_t ino, const char *name,
                        const char *value, size_t size, int flags)
{
    (void)ino, (void)name, (void)value, (void)size, (void)flags;
    count(REQUEST_SETXATTR);
    fuse_reply_err(req, 0);
}

static void op_getxattr(fuse_req_t req, fuse_ino_t ino, const char *name, size_t size)
{
    (void)ino;
    count(REQUEST_GETXATTR);
    if (strncmp(name, "user.", 5) == 0 && size <= sizeof(zeros))
        fuse_reply_buf(req, zeros, size);
    else
        fuse_reply_err(req, ENODATA);
}

static struct fuse_session *make_session(struct mount_state *state)
{
    struct fuse_lowlevel_ops empty = {
        .init = ops.init,
        .lookup = op_lookup,
        .forget = op_forget,
        .forget_multi = op_forget_multi,
        .getattr = op_getattr,
        .setattr = op_setattr,
        .mknod = op_mknod,
        .mkdir = op_mkdir,
        .symlink = op_symlink,
        .link = op_link,
        .unlink = op_unlink,
        .rmdir = op_rmdir,
        .rename = op_rename,
        .open = ops.open,
        .opendir = ops.opendir,
        .read = op_read,
        .write = op_write,
        .setxattr = op_setxattr,
        .getxattr = op_getxattr,
        .fallocate = op_fallocate,
    };
    char name[] = "empty", option[] = "-o", list[] = "fsname=empty,default_permissions";
    char *argv[] = {name, option, list, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(3, argv);
    struct fuse_session *session =
        fuse_session_new(&args, &empty, sizeof(empty), state);

    fuse_opt_free_args(&args);
    return session;
}

int empty_serve(const char *mountpoint, uint64_t *asked)
{
    struct mount_state state = {0};
    struct fuse_session *session = make_session(&state);
    int error = -EIO;

    if (session == NULL)
        return error;
    asked_counts = asked;
    if (fuse_set_signal_handlers(session) == 0 &&
        fuse_session_mount(session, mountpoint) == 0) {
        error = channel_open(session);
        if (error == 0)
            error = loop_run(session, false);
        fuse_session_unmount(session);
    }
    fuse_remove_signal_handlers(session);
    fuse_session_destroy(session);
    return error < 0 ? error : 0;
}
