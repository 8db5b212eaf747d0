/* SPDX-License-Identifier: BSD-3-Clause */
/* name.c - making, linking, moving and removing names. */
#include "pmfs-proto/preload/preload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Making -------------------------------------------------------------------- */

INTERPOSE(int, mkdirat, (int dir, const char *path, mode_t mode))
{
    const struct pmfs_cred cred = cred_get();
    struct pmfs_attr attr;
    struct place at;
    int rc = place_find(&at, dir, path, FOLLOW_NEVER);

    if (at.is_host)
        return (int)place_host(&at, REAL(mkdirat)(at.dir, at.path, mode));
    if (rc == 0)
        rc = pmfs_path_mkdir(at.fs, at.at.parent, at.at.name, mode & (0777 | S_ISVTX),
                             &cred, &attr);
    return (int)place_end(&at, rc);
}

INTERPOSE(int, mkdir, (const char *path, mode_t mode))
{
    return mkdirat(AT_FDCWD, path, mode);
}

/* What the kernel asks before it looks at the path. */
static int check_node(mode_t mode)
{
    switch (mode & S_IFMT) {
    case 0:
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
        return 0;
    default:
        return S_ISDIR(mode) ? -EPERM : -EINVAL;
    }
}

INTERPOSE(int, mknodat, (int dir, const char *path, mode_t mode, dev_t device))
{
    const struct pmfs_cred cred = cred_get();
    struct pmfs_attr attr;
    struct place at;
    int rc = place_find(&at, dir, path, FOLLOW_NEVER);

    if (at.is_host)
        return (int)place_host(&at, REAL(mknodat)(at.dir, at.path, mode, device));
    if (check_node(mode) < 0)
        rc = check_node(mode);
    if (rc == 0)
        rc = pmfs_path_mknod(at.fs, at.at.parent, at.at.name, mode, device, &cred,
                             &attr);
    return (int)place_end(&at, rc);
}

INTERPOSE(int, mknod, (const char *path, mode_t mode, dev_t device))
{
    return mknodat(AT_FDCWD, path, mode, device);
}

INTERPOSE(int, mkfifoat, (int dir, const char *path, mode_t mode))
{
    return mknodat(dir, path, (mode & 07777) | S_IFIFO, 0);
}

INTERPOSE(int, mkfifo, (const char *path, mode_t mode))
{
    return mkfifoat(AT_FDCWD, path, mode);
}

/* ---- Links --------------------------------------------------------------------- */

INTERPOSE(int, symlinkat, (const char *target, int dir, const char *path))
{
    const struct pmfs_cred cred = cred_get();
    struct pmfs_attr attr;
    struct place at;
    int rc = place_find(&at, dir, path, FOLLOW_NEVER);

    if (at.is_host)
        return (int)place_host(&at, REAL(symlinkat)(target, at.dir, at.path));
    if (!*target)
        rc = -ENOENT;
    if (rc == 0)
        rc = pmfs_path_symlink(at.fs, target, at.at.parent, at.at.name, &cred, &attr);
    return (int)place_end(&at, rc);
}

INTERPOSE(int, symlink, (const char *target, const char *path))
{
    return symlinkat(target, AT_FDCWD, path);
}

static long read_link(const struct place *at, char *buffer, size_t size)
{
    char target[PMFS_SYMLINK_MAX + 1];
    size_t length;
    int rc =
        pmfs_path_readlink(at->fs, at->at.parent, at->at.name, target, sizeof(target));

    if (rc < 0)
        return rc;
    length = strlen(target);
    length = length < size ? length : size;
    memcpy(buffer, target, length);
    return (long)length;
}

/* Of a descriptor opened with O_PATH and O_NOFOLLOW. */
static ssize_t read_link_of_fd(struct handle *file, char *buffer, size_t size)
{
    char target[PMFS_SYMLINK_MAX + 1];
    struct pmfs *fs;
    ssize_t length = 0;
    int rc = handle_begin(file, O_PATH);

    if (rc == 0)
        rc = file->type == S_IFLNK ? pool_get(&fs) : -ENOENT;
    if (rc == 0)
        rc = pmfs_readlink(fs, file->ino, target, sizeof(target));
    if (rc == 0) {
        size_t whole = strlen(target);

        length = (ssize_t)(whole < size ? whole : size);
        memcpy(buffer, target, (size_t)length);
    }
    return handle_end(file, rc < 0 ? rc : length);
}

INTERPOSE(ssize_t, readlinkat, (int dir, const char *path, char *buffer, size_t size))
{
    struct place at;
    struct handle *file = *path ? NULL : handle_get(dir);
    int rc;

    if (file)
        return (int)size > 0 ? read_link_of_fd(file, buffer, size)
                             : handle_refuse(file, EINVAL);
    rc = place_find(&at, dir, path, NOFOLLOW);
    if (at.is_host)
        return place_host(&at, REAL(readlinkat)(at.dir, at.path, buffer, size));
    if ((int)size <= 0) /* as the kernel has it */
        rc = -EINVAL;
    return place_end(&at, rc < 0 ? rc : read_link(&at, buffer, size));
}

INTERPOSE(ssize_t, readlink, (const char *path, char *buffer, size_t size))
{
    return readlinkat(AT_FDCWD, path, buffer, size);
}

ssize_t __readlink_chk(const char *path, char *buffer, size_t size, size_t room);
INTERPOSE(ssize_t, __readlink_chk,
          (const char *path, char *buffer, size_t size, size_t room))
{
    return readlinkat(AT_FDCWD, path, buffer, size < room ? size : room);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *buffer, size_t size,
                         size_t room);
INTERPOSE(ssize_t, __readlinkat_chk,
          (int dir, const char *path, char *buffer, size_t size, size_t room))
{
    return readlinkat(dir, path, buffer, size < room ? size : room);
}

/* ---- Two names ----------------------------------------------------------------- */

struct pair {
    struct place from, to;
    bool is_host; /* both are */
};

/* Is it too long only at the end, which the kernel looks at last? */
static bool ends_too_long(const char *path, int rc)
{
    size_t size;

    if (rc != -ENAMETOOLONG || strlen(path) > PMFS_PATH_MAX)
        return false;
    while ((size = strcspn(path, "/")) <= PMFS_NAME_MAX && path[size])
        path += size + strspn(path + size, "/");
    return size > PMFS_NAME_MAX && !path[size + strspn(path + size, "/")];
}

/* Why there is nothing at a place, or `rc`. */
static int missing_or(const struct place *at, int rc)
{
    struct pmfs_attr attr;
    int missing = at->is_host ? 0
                              : pmfs_path_getattr(at->fs, at->at.parent, at->at.name,
                                                  PMFS_PATH_NOFOLLOW, &attr);

    return missing < 0 ? missing : rc;
}

/* Both of one filesystem, or -EXDEV. pair_end() or pair_host() must follow. */
static int pair_find(struct pair *pair, int from_dir, const char *from, int to_dir,
                     const char *to)
{
    int from_rc = place_find(&pair->from, from_dir, from, FOLLOW_NEVER);
    int to_rc = place_find_second(&pair->to, &pair->from, to_dir, to);

    pair->is_host = pair->from.is_host && pair->to.is_host;
    if (from_rc < 0 && !ends_too_long(from, from_rc))
        return from_rc;
    if (to_rc < 0 && !ends_too_long(to, to_rc))
        return to_rc;
    if (pair->from.is_host != pair->to.is_host)
        return -EXDEV;
    if (from_rc < 0)
        return from_rc;
    return to_rc < 0 ? missing_or(&pair->from, to_rc) : 0;
}

/* As pair_find(), but that the old name is there comes before all about the new one. */
static int pair_find_to_link(struct pair *pair, int from_dir, const char *from,
                             bool follows, int to_dir, const char *to)
{
    int from_rc = place_find(&pair->from, from_dir, from, follows ? FOLLOW : NOFOLLOW);
    int to_rc = place_find_second(&pair->to, &pair->from, to_dir, to);

    pair->is_host = pair->from.is_host && pair->to.is_host;
    if (from_rc == 0 && to_rc == 0 && pair->from.is_host != pair->to.is_host)
        to_rc = -EXDEV;
    if (from_rc < 0)
        return from_rc;
    return to_rc < 0 ? missing_or(&pair->from, to_rc) : 0;
}

static int pair_end(struct pair *pair, long rc)
{
    place_end(&pair->to, 0);
    return (int)place_end(&pair->from, rc);
}

static int pair_host(struct pair *pair, long rc)
{
    place_host(&pair->to, rc);
    return (int)place_host(&pair->from, rc);
}

/* A further name for a descriptor. */
static int link_fd(struct handle *file, int dir, const char *path)
{
    struct pmfs_attr attr;
    struct place at;
    int rc = place_find(&at, dir, path, FOLLOW_NEVER);

    if (at.is_host)
        rc = rc < 0 ? rc : -EXDEV;
    else if (rc == 0)
        rc = pmfs_link(at.fs, file->ino, at.at.parent, at.at.name, &attr);
    handle_put(file);
    return (int)place_end(&at, rc);
}

/* The file that linkat(2) is to link, if that is named by its descriptor. */
static struct handle *file_to_link(int dir, const char *path, int flags)
{
    if (flags & AT_EMPTY_PATH && !*path)
        return handle_get(dir);
    return flags & AT_SYMLINK_FOLLOW ? handle_of_path(path) : NULL;
}

/* That the new name is taken comes before that what it is to name is a directory. */
static int link_pair(const struct pmfs_place *from, const struct pmfs_place *to,
                     struct pmfs *fs)
{
    struct pmfs_attr attr;
    int rc = pmfs_path_link(fs, from->parent, from->name, to->parent, to->name,
                            PMFS_PATH_NOFOLLOW);

    if (rc == -EPERM &&
        pmfs_path_getattr(fs, to->parent, to->name, PMFS_PATH_NOFOLLOW, &attr) == 0)
        return -EEXIST;
    return rc;
}

INTERPOSE(int, linkat,
          (int from_dir, const char *from, int to_dir, const char *to, int flags))
{
    bool follows = flags & AT_SYMLINK_FOLLOW;
    bool wrong = flags & ~(AT_SYMLINK_FOLLOW | AT_EMPTY_PATH);
    struct handle *file = file_to_link(from_dir, from, flags);
    struct pair pair;
    int rc;

    if (file)
        return wrong ? (int)handle_refuse(file, EINVAL) : link_fd(file, to_dir, to);
    rc = pair_find_to_link(&pair, from_dir, from, follows, to_dir, to);
    if (pair.is_host)
        return pair_host(&pair, REAL(linkat)(pair.from.dir, pair.from.path, pair.to.dir,
                                             pair.to.path, flags));
    if (wrong)
        rc = -EINVAL;
    if (rc == 0)
        rc = link_pair(&pair.from.at, &pair.to.at, pair.to.fs);
    return pair_end(&pair, rc);
}

INTERPOSE(int, link, (const char *from, const char *to))
{
    return linkat(AT_FDCWD, from, AT_FDCWD, to, 0);
}

_Static_assert((unsigned)PMFS_RENAME_NOREPLACE == RENAME_NOREPLACE &&
                   (unsigned)PMFS_RENAME_EXCHANGE == RENAME_EXCHANGE,
               "flags are passed on");

static bool are_rename_flags(unsigned flags)
{
    const unsigned others = RENAME_NOREPLACE | RENAME_WHITEOUT;

    return !(flags & ~(others | RENAME_EXCHANGE)) &&
           !(flags & RENAME_EXCHANGE && flags & others);
}

static int rename_pair(const struct pair *pair, unsigned flags)
{
    const struct pmfs_place *from = &pair->from.at, *to = &pair->to.at;
    const struct pmfs_cred cred = cred_get();

    if (flags & RENAME_WHITEOUT)
        return pmfs_path_rename_whiteout(pair->to.fs, from->parent, from->name,
                                         to->parent, to->name,
                                         flags & ~(unsigned)RENAME_WHITEOUT, &cred);
    return pmfs_path_rename(pair->to.fs, from->parent, from->name, to->parent, to->name,
                            flags);
}

INTERPOSE(int, renameat2,
          (int from_dir, const char *from, int to_dir, const char *to, unsigned flags))
{
    struct pair pair;
    int rc = pair_find(&pair, from_dir, from, to_dir, to);

    if (pair.is_host)
        return pair_host(&pair, REAL(renameat2)(pair.from.dir, pair.from.path,
                                                pair.to.dir, pair.to.path, flags));
    if (!are_rename_flags(flags))
        rc = -EINVAL;
    if (rc == 0)
        rc = rename_pair(&pair, flags);
    return pair_end(&pair, rc);
}

INTERPOSE(int, renameat, (int from_dir, const char *from, int to_dir, const char *to))
{
    return renameat2(from_dir, from, to_dir, to, 0);
}

INTERPOSE(int, rename, (const char *from, const char *to))
{
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* ---- Removing ------------------------------------------------------------------ */

INTERPOSE(int, unlinkat, (int dir, const char *path, int flags))
{
    struct place at;
    int rc = place_find(&at, dir, path, FOLLOW_NEVER);

    if (at.is_host)
        return (int)place_host(&at, REAL(unlinkat)(at.dir, at.path, flags));
    if (flags & ~AT_REMOVEDIR)
        rc = -EINVAL;
    if (rc == 0)
        rc = flags & AT_REMOVEDIR ? pmfs_path_rmdir(at.fs, at.at.parent, at.at.name)
                                  : pmfs_path_unlink(at.fs, at.at.parent, at.at.name);
    return (int)place_end(&at, rc);
}

INTERPOSE(int, unlink, (const char *path))
{
    return unlinkat(AT_FDCWD, path, 0);
}

INTERPOSE(int, rmdir, (const char *path))
{
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

INTERPOSE(int, remove, (const char *path))
{
    if (unlink(path) == 0)
        return 0;
    return errno == EISDIR || errno == EPERM ? rmdir(path) : -1;
}

/* ---- Temporary names ----------------------------------------------------------- */

enum { TEMPORARY_TRIES = 100 };

/* The six X at the end of a template, before a suffix; NULL if there are none. */
static char *placeholder_of(char *template, int suffix)
{
    size_t size = strlen(template);

    if (suffix < 0 || size < (size_t)suffix + 6)
        return NULL;

    char *start = template + size - suffix - 6;

    return strncmp(start, "XXXXXX", 6) == 0 ? start : NULL;
}

/* Calls `make` with names until one is new. */
static int make_temporary(char *template, int suffix, int flags,
                          int (*make)(const char *path, int flags))
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
    char *start = placeholder_of(template, suffix);

    if (!start)
        return (int)result(-EINVAL);
    for (int i = 0; i < TEMPORARY_TRIES; i++) {
        uint8_t random[6] = {0};
        int rc;

        if (getrandom(random, sizeof(random), 0) < 0)
            return -1;
        for (int j = 0; j < 6; j++)
            start[j] = letters[random[j] % (sizeof(letters) - 1)];
        rc = make(template, flags);
        if (rc >= 0 || errno != EEXIST)
            return rc;
    }
    return (int)result(-EEXIST);
}

static int make_file(const char *path, int flags)
{
    return open(path, (flags & ~O_ACCMODE) | O_RDWR | O_CREAT | O_EXCL, 0600);
}

static int make_directory(const char *path, int flags)
{
    (void)flags;
    return mkdir(path, 0700);
}

INTERPOSE(int, mkostemps, (char *template, int suffix, int flags))
{
    return make_temporary(template, suffix, flags, make_file);
}
ALIAS(mkostemps64, mkostemps);

INTERPOSE(int, mkstemps, (char *template, int suffix))
{
    return mkostemps(template, suffix, 0);
}
ALIAS(mkstemps64, mkstemps);

INTERPOSE(int, mkostemp, (char *template, int flags))
{
    return mkostemps(template, 0, flags);
}
ALIAS(mkostemp64, mkostemp);

INTERPOSE(int, mkstemp, (char *template))
{
    return mkostemps(template, 0, 0);
}
ALIAS(mkstemp64, mkstemp);

INTERPOSE(char *, mkdtemp, (char *template))
{
    return make_temporary(template, 0, 0, make_directory) < 0 ? NULL : template;
}
