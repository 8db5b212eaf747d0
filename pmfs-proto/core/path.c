/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path.c - calls by path, on top of those by name.
 *
 * Each has two steps: pmfs_path_parent() follows the path to a place, which is a
 * directory kept open and a last component in it; the rest is a call by name. What is
 * on the way is kept open while it is looked at, so that no number comes to mean
 * something else meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "pmfs-proto/core/fs.h"

/* ---- Walking ------------------------------------------------------------------- */

struct walk {
    struct pmfs *fs;
    uint64_t dir; /* open */
    const char *rest;
    char *expanded; /* what `rest` points into once a link was followed, else NULL */
    unsigned links;
    unsigned flags;
};

static bool is_dot_dot(const char *name, size_t size)
{
    return size == 2 && name[0] == '.' && name[1] == '.';
}

/* Makes `dir`, which is open, the one where the walk stands. */
static void enter(struct walk *walk, uint64_t dir)
{
    pmfs_release(walk->fs, walk->dir);
    walk->dir = dir;
}

static int enter_root(struct walk *walk)
{
    int rc = pmfs_open(walk->fs, PMFS_ROOT_INO);

    if (rc == 0)
        enter(walk, PMFS_ROOT_INO);
    return rc;
}

/* Puts the target of the link `ino`, which is open, in front of the rest. */
static int expand(struct walk *walk, uint64_t ino, const char *rest)
{
    size_t rest_size = strlen(rest) + 1;
    char *text = malloc(PMFS_SYMLINK_MAX + rest_size);
    int rc = text ? pmfs_readlink(walk->fs, ino, text, PMFS_SYMLINK_MAX + 1) : -ENOMEM;
    size_t size = rc < 0 ? 0 : strlen(text);

    if (rc == 0 && ++walk->links > PMFS_LINKS_FOLLOWED_MAX)
        rc = -ELOOP;
    if (rc == 0 && size + rest_size > PMFS_PATH_MAX + 1)
        rc = -ENAMETOOLONG;
    if (rc < 0) {
        free(text);
        return rc;
    }
    memcpy(text + size, rest, rest_size);
    free(walk->expanded);
    walk->expanded = text;
    walk->rest = text;
    if (text[0] != '/')
        return 0;
    return walk->flags & PMFS_PATH_BENEATH ? -EXDEV : enter_root(walk);
}

static bool has_more(const char *rest)
{
    return rest[strspn(rest, "/")];
}

/* Goes to, or follows, the component `name`; `rest` is what comes after it. */
static int step(struct walk *walk, const char *name, const char *rest)
{
    struct pmfs_attr attr;
    int rc = pmfs_lookup_open(walk->fs, walk->dir, name, &attr);

    if (rc < 0)
        return rc;
    if (S_ISDIR(attr.mode)) {
        enter(walk, attr.ino);
        walk->rest = rest;
        return 0;
    }
    if (S_ISLNK(attr.mode))
        rc = expand(walk, attr.ino, rest);
    else if (has_more(rest))
        rc = -ENOTDIR;
    /* Else it was a link when must_follow() saw it: the next step looks again. */
    pmfs_release(walk->fs, attr.ino);
    return rc;
}

/* Is the last component a link to follow? */
static int must_follow(const struct walk *walk, const char *name)
{
    struct pmfs_attr attr;

    if (walk->flags & PMFS_PATH_NOFOLLOW)
        return 0;
    int rc = pmfs_lookup(walk->fs, walk->dir, name, &attr);

    if (rc < 0)
        return rc == -ENOENT ? 0 : rc;
    pmfs_forget(walk->fs, attr.ino, 1);
    return S_ISLNK(attr.mode);
}

/* Takes the next component. Returns 1 if it is the last one, `name` then. */
static int advance(struct walk *walk, char name[PMFS_NAME_MAX + 2])
{
    const char *start = walk->rest + strspn(walk->rest, "/");
    size_t size = strcspn(start, "/");
    const char *rest = start + size;

    if (size > PMFS_NAME_MAX)
        return -ENAMETOOLONG;
    if (size == 0) {
        /* Slashes alone, or a link to what ends in one. */
        memcpy(name, walk->dir == PMFS_ROOT_INO ? "/" : ".", 2);
        return 1;
    }
    if (walk->flags & PMFS_PATH_BENEATH && walk->dir == PMFS_ROOT_INO &&
        is_dot_dot(start, size)) {
        walk->rest = start;
        return -EXDEV;
    }
    memcpy(name, start, size);
    name[size] = 0;
    if (has_more(rest))
        return step(walk, name, rest);

    int rc = must_follow(walk, name);

    if (rc != 0)
        return rc < 0 ? rc : step(walk, name, rest);
    if (*rest)
        memcpy(name + size, "/", 2);
    return 1;
}

static int walk_begin(struct walk *walk, uint64_t dir)
{
    if (!*walk->rest)
        return -ENOENT;
    if (strnlen(walk->rest, PMFS_PATH_MAX + 1) > PMFS_PATH_MAX)
        return -ENAMETOOLONG;
    walk->dir = *walk->rest == '/' ? PMFS_ROOT_INO : dir;
    return pmfs_open(walk->fs, walk->dir);
}

/* Released, but for walk->expanded, after errors other than -EXDEV. */
static int walk_to_end(struct walk *walk, uint64_t dir, struct pmfs_place *place)
{
    int rc = walk_begin(walk, dir);

    if (rc < 0)
        return rc;
    do
        rc = advance(walk, place->name);
    while (rc == 0);
    place->parent = walk->dir;
    place->outside = NULL;
    if (rc < 0 && rc != -EXDEV)
        pmfs_release(walk->fs, walk->dir);
    return rc < 0 ? rc : 0;
}

/* As pmfs_path_parent(), inside of the filesystem. `flags`: PMFS_PATH_NOFOLLOW. */
static int locate(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                  struct pmfs_place *place)
{
    struct walk walk = {.fs = fs, .rest = path, .flags = flags & PMFS_PATH_NOFOLLOW};
    int rc = walk_to_end(&walk, dir, place);

    free(walk.expanded);
    return rc;
}

int pmfs_path_parent(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                     struct pmfs_place *place)
{
    fs_forget_message();

    struct walk walk = {.fs = fs, .rest = path, .flags = flags};
    int rc;

    if (flags & ~(unsigned)(PMFS_PATH_NOFOLLOW | PMFS_PATH_BENEATH))
        return -EINVAL;
    rc = walk_to_end(&walk, dir, place);
    if (rc == -EXDEV) {
        place->outside = strdup(walk.rest);
        if (!place->outside) {
            pmfs_release(fs, place->parent);
            rc = -ENOMEM;
        }
    }
    free(walk.expanded);
    return rc;
}

void pmfs_place_release(struct pmfs *fs, struct pmfs_place *place)
{
    free(place->outside);
    pmfs_release(fs, place->parent);
}

/* What locate() has opened. */
static void leave(struct pmfs *fs, const struct pmfs_place *place)
{
    pmfs_release(fs, place->parent);
}

/* ---- Last components ----------------------------------------------------------- */

/* Takes the slash off a name; was there one? */
static bool cut_slash(struct pmfs_place *place)
{
    size_t size = strlen(place->name);

    if (size < 2 || place->name[size - 1] != '/')
        return false;
    place->name[size - 1] = 0;
    return true;
}

static bool is_root(const struct pmfs_place *place)
{
    return place->name[0] == '/';
}

/* "/", "." and "..": always there, and neither made nor removed. */
static bool is_special(const struct pmfs_place *place)
{
    return is_root(place) || strcmp(place->name, ".") == 0 ||
           strcmp(place->name, "..") == 0;
}

/* The name to look it up by. */
static const char *name_of(const struct pmfs_place *place)
{
    return is_root(place) ? "." : place->name;
}

/* Of a call that can only be asked not to follow. */
static int check_flags(unsigned flags)
{
    return flags & ~(unsigned)PMFS_PATH_NOFOLLOW ? -EINVAL : 0;
}

/* A slash asks for what the link leads to. */
static unsigned follow_flags(const char *path, unsigned flags)
{
    size_t size = strlen(path);

    return size && path[size - 1] == '/' ? flags & ~(unsigned)PMFS_PATH_NOFOLLOW
                                         : flags;
}

static int find(struct pmfs *fs, const struct pmfs_place *place, bool slash,
                struct pmfs_attr *attr)
{
    int rc = pmfs_lookup(fs, place->parent, name_of(place), attr);

    if (rc < 0)
        return rc;
    pmfs_forget(fs, attr->ino, 1);
    return slash && !S_ISDIR(attr->mode) ? -ENOTDIR : 0;
}

/* As find(), and opens it. */
static int find_open(struct pmfs *fs, const struct pmfs_place *place, bool slash,
                     struct pmfs_attr *attr)
{
    int rc = pmfs_lookup_open(fs, place->parent, name_of(place), attr);

    if (rc < 0 || !slash || S_ISDIR(attr->mode))
        return rc;
    pmfs_release(fs, attr->ino);
    return -ENOTDIR;
}

/* Follows `path` to something that exists, and opens it. */
static int open_existing(struct pmfs *fs, uint64_t dir, const char *path,
                         unsigned flags, struct pmfs_attr *attr)
{
    struct pmfs_place place;
    int rc = locate(fs, dir, path, follow_flags(path, flags), &place);

    if (rc < 0)
        return rc;
    rc = find_open(fs, &place, cut_slash(&place), attr);
    leave(fs, &place);
    return rc;
}

/* ---- Opening ------------------------------------------------------------------- */

static bool wants_to_write(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || flags & O_TRUNC;
}

/* May what exists be opened like this? */
static int check_open(const struct pmfs_attr *attr, int flags)
{
    bool is_directory = S_ISDIR(attr->mode);

    if (flags & O_CREAT && flags & O_EXCL)
        return -EEXIST;
    if (flags & O_CREAT && is_directory)
        return -EISDIR;
    if (flags & O_DIRECTORY && !is_directory)
        return -ENOTDIR;
    if (flags & O_PATH)
        return 0;
    if (S_ISLNK(attr->mode))
        return -ELOOP;
    return is_directory && wants_to_write(flags) ? -EISDIR : 0;
}

static int open_found(struct pmfs *fs, const struct pmfs_place *place, bool slash,
                      int flags, struct pmfs_attr *attr)
{
    static const struct pmfs_attr empty;
    int rc = find_open(fs, place, slash, attr);

    if (rc < 0)
        return rc;
    rc = check_open(attr, flags);
    if (rc == 0 && flags & O_TRUNC && S_ISREG(attr->mode) && !(flags & O_PATH))
        rc = pmfs_setattr(fs, attr->ino, &empty, PMFS_SET_SIZE, attr);
    if (rc < 0)
        pmfs_release(fs, attr->ino);
    return rc;
}

static int create(struct pmfs *fs, const struct pmfs_place *place, uint32_t mode,
                  const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    int rc = pmfs_create(fs, place->parent, place->name, mode, cred, attr);

    if (rc == 0)
        pmfs_forget(fs, attr->ino, 1);
    return rc;
}

static int open_or_create(struct pmfs *fs, struct pmfs_place *place, int flags,
                          uint32_t mode, const struct pmfs_cred *cred,
                          struct pmfs_attr *attr)
{
    bool slash = cut_slash(place);
    int rc;

    if (slash && flags & O_CREAT)
        return -EISDIR;
    for (;;) {
        rc = open_found(fs, place, slash, flags, attr);
        if (rc != -ENOENT || !(flags & O_CREAT))
            return rc;
        rc = create(fs, place, mode, cred, attr);
        if (rc != -EEXIST || flags & O_EXCL)
            return rc;
        /* Somebody else was faster. */
    }
}

/* Without a name: the path is that of the directory. */
static int open_nameless(struct pmfs *fs, uint64_t dir, const char *path, int flags,
                         uint32_t mode, const struct pmfs_cred *cred,
                         struct pmfs_attr *attr)
{
    struct pmfs_attr parent;

    if ((flags & O_ACCMODE) == O_RDONLY)
        return -EINVAL;
    int rc = open_existing(fs, dir, path, flags & O_NOFOLLOW ? PMFS_PATH_NOFOLLOW : 0,
                           &parent);
    if (rc < 0)
        return rc;
    rc = pmfs_tmpfile(fs, parent.ino, mode, flags & O_EXCL ? PMFS_NEVER_LINKED : 0,
                      cred, attr);
    if (rc == 0)
        pmfs_forget(fs, attr->ino, 1);
    pmfs_release(fs, parent.ino);
    return rc;
}

int pmfs_path_open(struct pmfs *fs, uint64_t dir, const char *path, int flags,
                   uint32_t mode, const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    bool exclusive = flags & O_CREAT && flags & O_EXCL;
    bool nofollow = exclusive || flags & O_NOFOLLOW;
    struct pmfs_place place;
    int rc;

    if (flags & O_PATH)
        flags &= O_PATH | O_DIRECTORY | O_NOFOLLOW;
    if (flags & O_CREAT && flags & O_DIRECTORY)
        return -EINVAL;
    if ((flags & O_TMPFILE) == O_TMPFILE)
        return open_nameless(fs, dir, path, flags, mode, cred, attr);
    rc = locate(fs, dir, path, follow_flags(path, nofollow ? PMFS_PATH_NOFOLLOW : 0),
                &place);
    if (rc < 0)
        return rc;
    rc = open_or_create(fs, &place, flags, mode, cred, attr);
    leave(fs, &place);
    return rc;
}

/* ---- Inodes -------------------------------------------------------------------- */

int pmfs_path_getattr(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                      struct pmfs_attr *attr)
{
    fs_forget_message();

    struct pmfs_place place;
    int rc = check_flags(flags);

    if (rc == 0)
        rc = locate(fs, dir, path, follow_flags(path, flags), &place);
    if (rc < 0)
        return rc;
    rc = find(fs, &place, cut_slash(&place), attr);
    leave(fs, &place);
    return rc;
}

int pmfs_path_setattr(struct pmfs *fs, uint64_t dir, const char *path, unsigned flags,
                      const struct pmfs_attr *values, unsigned mask,
                      struct pmfs_attr *attr)
{
    fs_forget_message();

    struct pmfs_attr found;
    int rc = check_flags(flags);

    if (rc == 0)
        rc = open_existing(fs, dir, path, flags, &found);
    if (rc < 0)
        return rc;
    rc = pmfs_setattr(fs, found.ino, values, mask, attr);
    pmfs_release(fs, found.ino);
    return rc;
}

int pmfs_path_readlink(struct pmfs *fs, uint64_t dir, const char *path, char *target,
                       size_t size)
{
    fs_forget_message();

    struct pmfs_attr found;
    int rc = open_existing(fs, dir, path, PMFS_PATH_NOFOLLOW, &found);

    if (rc < 0)
        return rc;
    rc = pmfs_readlink(fs, found.ino, target, size);
    pmfs_release(fs, found.ino);
    return rc;
}

/* ---- Making -------------------------------------------------------------------- */

/*
 * The place where something new is to be. Only a directory may be asked for with a
 * slash. Released on errors.
 */
static int find_new(struct pmfs *fs, uint64_t dir, const char *path, bool is_directory,
                    struct pmfs_place *place)
{
    struct pmfs_attr attr;
    int rc = locate(fs, dir, path, PMFS_PATH_NOFOLLOW, place);

    if (rc < 0)
        return rc;
    if (cut_slash(place) && !is_directory)
        rc = find(fs, place, false, &attr) == 0 ? -EEXIST : -ENOENT;
    else if (is_special(place))
        rc = -EEXIST;
    if (rc < 0)
        leave(fs, place);
    return rc;
}

/* What all that make something end with. `rc` is how it went. */
static int made(struct pmfs *fs, struct pmfs_place *place, int rc,
                const struct pmfs_attr *attr)
{
    if (rc == 0)
        pmfs_forget(fs, attr->ino, 1);
    leave(fs, place);
    return rc;
}

int pmfs_path_mknod(struct pmfs *fs, uint64_t dir, const char *path, uint32_t mode,
                    uint64_t rdev, const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    struct pmfs_place at;
    int rc = find_new(fs, dir, path, false, &at);

    if (rc < 0)
        return rc;
    rc = pmfs_mknod(fs, at.parent, at.name, mode, rdev, cred, attr);
    return made(fs, &at, rc, attr);
}

int pmfs_path_mkdir(struct pmfs *fs, uint64_t dir, const char *path, uint32_t mode,
                    const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    struct pmfs_place at;
    int rc = find_new(fs, dir, path, true, &at);

    if (rc < 0)
        return rc;
    return made(fs, &at, pmfs_mkdir(fs, at.parent, at.name, mode, cred, attr), attr);
}

int pmfs_path_symlink(struct pmfs *fs, const char *target, uint64_t dir,
                      const char *path, const struct pmfs_cred *cred,
                      struct pmfs_attr *attr)
{
    fs_forget_message();

    struct pmfs_place at;
    int rc = find_new(fs, dir, path, false, &at);

    if (rc < 0)
        return rc;
    return made(fs, &at, pmfs_symlink(fs, at.parent, at.name, target, cred, attr),
                attr);
}

int pmfs_path_link(struct pmfs *fs, uint64_t dir, const char *path, uint64_t new_dir,
                   const char *new_path, unsigned flags)
{
    fs_forget_message();

    struct pmfs_attr old, attr;
    struct pmfs_place at;
    int rc = check_flags(flags);

    if (rc == 0)
        rc = open_existing(fs, dir, path, flags, &old);
    if (rc < 0)
        return rc;
    rc = find_new(fs, new_dir, new_path, false, &at);
    if (rc == 0)
        rc = made(fs, &at, pmfs_link(fs, old.ino, at.parent, at.name, &attr), &attr);
    pmfs_release(fs, old.ino);
    return rc;
}

/* ---- Removing and renaming ----------------------------------------------------- */

static int unlink_place(struct pmfs *fs, struct pmfs_place *at)
{
    bool slash = cut_slash(at);
    struct pmfs_attr attr;
    int rc;

    if (is_special(at))
        return -EISDIR;
    rc = slash ? find(fs, at, true, &attr) : 0;
    if (rc < 0)
        return rc;
    return slash ? -EISDIR : pmfs_unlink(fs, at->parent, at->name);
}

int pmfs_path_unlink(struct pmfs *fs, uint64_t dir, const char *path)
{
    fs_forget_message();

    struct pmfs_place at;
    int rc = locate(fs, dir, path, PMFS_PATH_NOFOLLOW, &at);

    if (rc < 0)
        return rc;
    rc = unlink_place(fs, &at);
    leave(fs, &at);
    return rc;
}

static int rmdir_place(struct pmfs *fs, struct pmfs_place *at)
{
    cut_slash(at);
    if (is_root(at))
        return -EBUSY;
    if (is_special(at))
        return strcmp(at->name, ".") == 0 ? -EINVAL : -ENOTEMPTY;
    return pmfs_rmdir(fs, at->parent, at->name);
}

int pmfs_path_rmdir(struct pmfs *fs, uint64_t dir, const char *path)
{
    fs_forget_message();

    struct pmfs_place at;
    int rc = locate(fs, dir, path, PMFS_PATH_NOFOLLOW, &at);

    if (rc < 0)
        return rc;
    rc = rmdir_place(fs, &at);
    leave(fs, &at);
    return rc;
}

/* Slashes are for directories: what is moved, and what it changes places with. */
static int check_slashes(struct pmfs *fs, struct pmfs_place *from,
                         struct pmfs_place *to, unsigned flags)
{
    bool from_slash = cut_slash(from), to_slash = cut_slash(to);
    struct pmfs_attr attr;
    int rc;

    if (is_special(from))
        return -EBUSY;
    if (is_special(to))
        return flags & PMFS_RENAME_NOREPLACE ? -EEXIST : -EBUSY;
    if (!from_slash && !to_slash)
        return 0;
    if (flags & PMFS_RENAME_EXCHANGE) {
        rc = find(fs, from, from_slash, &attr);
        return rc < 0 ? rc : find(fs, to, to_slash, &attr);
    }
    return find(fs, from, true, &attr);
}

/* `cred`: whose a whiteout is; NULL: none is made. */
static int rename_paths(struct pmfs *fs, uint64_t dir, const char *path,
                        uint64_t new_dir, const char *new_path, unsigned flags,
                        const struct pmfs_cred *cred)
{
    struct pmfs_place from, to;
    int rc = locate(fs, dir, path, PMFS_PATH_NOFOLLOW, &from);

    if (rc < 0)
        return rc;
    rc = locate(fs, new_dir, new_path, PMFS_PATH_NOFOLLOW, &to);
    if (rc == 0) {
        rc = check_slashes(fs, &from, &to, flags);
        if (rc == 0)
            rc = cred ? pmfs_rename_whiteout(fs, from.parent, from.name, to.parent,
                                             to.name, flags, cred)
                      : pmfs_rename(fs, from.parent, from.name, to.parent, to.name,
                                    flags);
        leave(fs, &to);
    }
    leave(fs, &from);
    return rc;
}

int pmfs_path_rename(struct pmfs *fs, uint64_t dir, const char *path, uint64_t new_dir,
                     const char *new_path, unsigned flags)
{
    fs_forget_message();

    return rename_paths(fs, dir, path, new_dir, new_path, flags, NULL);
}

int pmfs_path_rename_whiteout(struct pmfs *fs, uint64_t dir, const char *path,
                              uint64_t new_dir, const char *new_path, unsigned flags,
                              const struct pmfs_cred *cred)
{
    fs_forget_message();

    return rename_paths(fs, dir, path, new_dir, new_path, flags, cred);
}

/* ---- From an inode to its path ------------------------------------------------- */

struct upward {
    char *path;  /* start of the caller's buffer */
    char *start; /* what was found so far, to the end of the buffer */
    uint64_t child;
    int rc;
};

static int put_in_front(struct upward *up, const char *name, size_t size)
{
    if ((size_t)(up->start - up->path) < size + 1)
        return -ERANGE;
    up->start -= size;
    memcpy(up->start, name, size);
    *--up->start = '/';
    return 0;
}

static int take_child(void *arg, const struct pmfs_dirent *entry)
{
    struct upward *up = arg;
    size_t size = entry->name_size;

    if (entry->ino != up->child || is_dot_dot(entry->name, size) ||
        (size == 1 && entry->name[0] == '.'))
        return 0;
    up->rc = put_in_front(up, entry->name, size);
    return 1;
}

/* From a directory, which is open, to its parent, which is then. */
static int step_upward(struct pmfs *fs, struct upward *up, uint64_t *dir)
{
    struct pmfs_attr parent, attr;
    int rc = pmfs_lookup_open(fs, *dir, "..", &parent);

    if (rc < 0)
        return rc;
    up->child = *dir;
    up->rc = -ENOENT;
    rc = pmfs_readdir(fs, parent.ino, 0, 0, take_child, up);
    if (rc == 0)
        rc = up->rc;
    if (rc == -ENOENT && pmfs_getattr(fs, *dir, &attr) == 0 && attr.nlink > 0)
        rc = -EAGAIN; /* it was moved meanwhile */
    if (rc < 0) {
        pmfs_release(fs, parent.ino);
        return rc;
    }
    pmfs_release(fs, *dir);
    *dir = parent.ino;
    return 0;
}

int pmfs_path_of(struct pmfs *fs, uint64_t ino, char *path, size_t size)
{
    fs_forget_message();

    struct upward up = {.path = path};
    struct pmfs_attr attr;
    uint64_t dir = ino;
    int rc = size < 2 ? -ERANGE : pmfs_lookup_open(fs, ino, ".", &attr);

    if (rc < 0)
        return rc;
    up.start = path + size - 1;
    *up.start = 0;
    /* A name takes two bytes of a path at least, so there is an end to all of this. */
    for (int tries = PMFS_PATH_MAX; dir != PMFS_ROOT_INO && tries > 0; tries--) {
        rc = step_upward(fs, &up, &dir);
        if (rc < 0 && rc != -EAGAIN)
            break;
    }
    if (rc >= 0 && dir != PMFS_ROOT_INO)
        rc = -ENAMETOOLONG;
    pmfs_release(fs, dir);
    if (rc < 0)
        return rc == -EAGAIN ? -ENOENT : rc;
    if (!*up.start)
        *--up.start = '/';
    memmove(path, up.start, (size_t)(path + size - up.start));
    return 0;
}
