/* SPDX-License-Identifier: BSD-3-Clause */
/* xattr.c - extended attributes. */
#include "pmfs-proto/preload/preload.h"

#include <linux/limits.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

/* One call on an attribute, or on all of them. */
struct request {
    enum { GET, SET, LIST, REMOVE } kind;
    const char *name;
    void *value;
    const void *new_value;
    size_t size;
    int flags;
};

/* What the kernel asks before it looks for the file. */
static int check_request(const struct request *request)
{
    size_t size = request->name ? strlen(request->name) : 1;

    if (request->flags & ~(XATTR_CREATE | XATTR_REPLACE))
        return -EINVAL;
    if (size == 0 || size > XATTR_NAME_MAX)
        return -ERANGE;
    return request->kind == SET && request->size > XATTR_SIZE_MAX ? -E2BIG : 0;
}

static bool is_acl(const char *name)
{
    return strcmp(name, "system.posix_acl_access") == 0 ||
           strcmp(name, "system.posix_acl_default") == 0;
}

/* Of an access control list: what has this size may be one, or is to remove one. */
static bool is_acl_size(size_t size)
{
    enum { HEADER_SIZE = 4, ENTRY_SIZE = 8 };

    return size == 0 || (size >= HEADER_SIZE && (size - HEADER_SIZE) % ENTRY_SIZE == 0);
}

static int check_acl(const struct request *request, uint32_t type)
{
    if (request->kind == SET && !is_acl_size(request->size))
        return -EINVAL;
    return type == S_IFLNK ? -EOPNOTSUPP : 0;
}

/* What the kernel asks before it asks a filesystem. */
static int check(const struct request *request, uint32_t type)
{
    bool is_user = request->kind != LIST && strncmp(request->name, "user.", 5) == 0;

    if (is_user && type != S_IFREG && type != S_IFDIR)
        return request->kind == GET ? -ENODATA : -EPERM;
    return request->kind != LIST && is_acl(request->name) ? check_acl(request, type)
                                                          : 0;
}

/* To set a list of nothing is to remove it. */
static bool removes_acl(const struct request *request)
{
    uint32_t version = 0;

    if (request->kind != SET || !is_acl(request->name))
        return false;
    if (request->size == sizeof(version))
        memcpy(&version, request->new_value, sizeof(version));
    return request->size == 0 || version == 2;
}

static long carry_out(struct pmfs *fs, uint64_t ino, uint32_t type,
                      const struct request *request)
{
    size_t done = 0;
    int rc = check(request, type);

    if (rc < 0)
        return rc;
    if (removes_acl(request))
        return pmfs_removexattr(fs, ino, request->name);

    switch (request->kind) {
    case GET:
        rc =
            pmfs_getxattr(fs, ino, request->name, request->value, request->size, &done);
        break;
    case SET:
        rc = pmfs_setxattr(fs, ino, request->name, request->new_value, request->size,
                           (unsigned)request->flags);
        break;
    case LIST:
        rc = pmfs_listxattr(fs, ino, request->value, request->size, &done);
        break;
    default:
        rc = pmfs_removexattr(fs, ino, request->name);
    }
    return rc < 0 ? rc : (long)done;
}

static long on_inode(const struct place *at, const struct request *request)
{
    struct pmfs_attr attr;
    long rc = pmfs_path_open(at->fs, at->at.parent, at->at.name, O_PATH | O_NOFOLLOW, 0,
                             NULL, &attr);

    if (rc < 0)
        return rc;
    rc = carry_out(at->fs, attr.ino, attr.mode & S_IFMT, request);
    pmfs_release(at->fs, attr.ino);
    return rc;
}

/* Ends the place, which was found with `rc`. */
static long on_place(struct place *at, int rc, const struct request *request)
{
    int early = check_request(request);

    if (early < 0)
        rc = early;
    return place_end(at, rc < 0 ? rc : on_inode(at, request));
}

static long on_file(struct handle *file, const struct request *request)
{
    struct pmfs *fs = NULL;
    long rc = handle_begin(file, O_RDWR);

    if (rc == 0)
        rc = check_request(request);
    if (rc == 0)
        rc = pool_get(&fs);
    return handle_end(file,
                      rc < 0 ? rc : carry_out(fs, file->ino, file->type, request));
}

INTERPOSE(ssize_t, getxattr,
          (const char *path, const char *name, void *value, size_t size))
{
    const struct request request = {
        .kind = GET, .name = name, .value = value, .size = size};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, FOLLOW);

    if (at.is_host)
        return place_host(&at, REAL(getxattr)(at.path, name, value, size));
    return on_place(&at, rc, &request);
}

INTERPOSE(ssize_t, lgetxattr,
          (const char *path, const char *name, void *value, size_t size))
{
    const struct request request = {
        .kind = GET, .name = name, .value = value, .size = size};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, NOFOLLOW);

    if (at.is_host)
        return place_host(&at, REAL(lgetxattr)(at.path, name, value, size));
    return on_place(&at, rc, &request);
}

INTERPOSE(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t size))
{
    const struct request request = {
        .kind = GET, .name = name, .value = value, .size = size};
    struct handle *file = handle_get(fd);

    return file ? on_file(file, &request) : REAL(fgetxattr)(fd, name, value, size);
}

INTERPOSE(int, setxattr,
          (const char *path, const char *name, const void *value, size_t size,
           int flags))
{
    const struct request request = {
        .kind = SET, .name = name, .new_value = value, .size = size, .flags = flags};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, FOLLOW);

    if (at.is_host)
        return (int)place_host(&at, REAL(setxattr)(at.path, name, value, size, flags));
    return (int)on_place(&at, rc, &request);
}

INTERPOSE(int, lsetxattr,
          (const char *path, const char *name, const void *value, size_t size,
           int flags))
{
    const struct request request = {
        .kind = SET, .name = name, .new_value = value, .size = size, .flags = flags};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, NOFOLLOW);

    if (at.is_host)
        return (int)place_host(&at, REAL(lsetxattr)(at.path, name, value, size, flags));
    return (int)on_place(&at, rc, &request);
}

INTERPOSE(int, fsetxattr,
          (int fd, const char *name, const void *value, size_t size, int flags))
{
    const struct request request = {
        .kind = SET, .name = name, .new_value = value, .size = size, .flags = flags};
    struct handle *file = handle_get(fd);

    return file ? (int)on_file(file, &request)
                : REAL(fsetxattr)(fd, name, value, size, flags);
}

INTERPOSE(ssize_t, listxattr, (const char *path, char *names, size_t size))
{
    const struct request request = {.kind = LIST, .value = names, .size = size};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, FOLLOW);

    if (at.is_host)
        return place_host(&at, REAL(listxattr)(at.path, names, size));
    return on_place(&at, rc, &request);
}

INTERPOSE(ssize_t, llistxattr, (const char *path, char *names, size_t size))
{
    const struct request request = {.kind = LIST, .value = names, .size = size};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, NOFOLLOW);

    if (at.is_host)
        return place_host(&at, REAL(llistxattr)(at.path, names, size));
    return on_place(&at, rc, &request);
}

INTERPOSE(ssize_t, flistxattr, (int fd, char *names, size_t size))
{
    const struct request request = {.kind = LIST, .value = names, .size = size};
    struct handle *file = handle_get(fd);

    return file ? on_file(file, &request) : REAL(flistxattr)(fd, names, size);
}

INTERPOSE(int, removexattr, (const char *path, const char *name))
{
    const struct request request = {.kind = REMOVE, .name = name};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, FOLLOW);

    if (at.is_host)
        return (int)place_host(&at, REAL(removexattr)(at.path, name));
    return (int)on_place(&at, rc, &request);
}

INTERPOSE(int, lremovexattr, (const char *path, const char *name))
{
    const struct request request = {.kind = REMOVE, .name = name};
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, NOFOLLOW);

    if (at.is_host)
        return (int)place_host(&at, REAL(lremovexattr)(at.path, name));
    return (int)on_place(&at, rc, &request);
}

INTERPOSE(int, fremovexattr, (int fd, const char *name))
{
    const struct request request = {.kind = REMOVE, .name = name};
    struct handle *file = handle_get(fd);

    return file ? (int)on_file(file, &request) : REAL(fremovexattr)(fd, name);
}
