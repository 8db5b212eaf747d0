/* SPDX-License-Identifier: BSD-3-Clause */
/* walk.c - what libc builds on directory streams of its own, on ours. */
#include "pmfs-proto/preload/preload.h"

#include <dirent.h>
#include <ftw.h>
#include <glob.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- scandir ------------------------------------------------------------------- */

typedef int filter_fn(const struct dirent *entry);
typedef int compare_fn(const struct dirent **a, const struct dirent **b);

struct entries {
    struct dirent **list;
    size_t count, room;
};

static int add_entry(struct entries *entries, const struct dirent *entry)
{
    if (entries->count == entries->room) {
        size_t room = entries->room ? entries->room * 2 : 64;
        struct dirent **list = realloc(entries->list, room * sizeof(void *));

        if (!list)
            return -1;
        entries->list = list;
        entries->room = room;
    }

    struct dirent *copy = malloc(entry->d_reclen);

    if (!copy)
        return -1;
    memcpy(copy, entry, entry->d_reclen);
    entries->list[entries->count++] = copy;
    return 0;
}

static int fill_entries(struct entries *entries, DIR *dir, filter_fn *filter)
{
    const struct dirent *entry;

    errno = 0;
    while ((entry = readdir(dir)))
        if ((!filter || filter(entry)) && add_entry(entries, entry) < 0)
            return -1;
    return errno ? -1 : 0;
}

static int scan(int fd, struct dirent ***list, filter_fn *filter, compare_fn *compare)
{
    struct entries entries = {0};
    int errnum = errno, rc;
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir)
        return -1;
    rc = fill_entries(&entries, dir, filter);
    errnum = rc < 0 ? errno : errnum;
    closedir(dir);
    if (rc < 0) {
        while (entries.count > 0)
            free(entries.list[--entries.count]);
        free(entries.list);
    } else {
        if (compare && entries.count)
            qsort(entries.list, entries.count, sizeof(void *),
                  (int (*)(const void *, const void *))compare);
        *list = entries.list;
    }
    errno = errnum;
    return rc < 0 ? -1 : (int)entries.count;
}

INTERPOSE(int, scandirat,
          (int at, const char *path, struct dirent ***list, filter_fn *filter,
           compare_fn *compare))
{
    struct place place;

    if (place_to_host(&place, at, path))
        return (int)place_host(
            &place, REAL(scandirat)(place.dir, place.path, list, filter, compare));
    return scan(openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), list, filter,
                compare);
}
ALIAS(scandirat64, scandirat);

INTERPOSE(int, scandir,
          (const char *path, struct dirent ***list, filter_fn *filter,
           compare_fn *compare))
{
    return scandirat(AT_FDCWD, path, list, filter, compare);
}
ALIAS(scandir64, scandir);

/* ---- glob ---------------------------------------------------------------------- */

static void *glob_opendir(const char *path)
{
    return opendir(path);
}

static struct dirent *glob_readdir(void *dir)
{
    return readdir(dir);
}

static void glob_closedir(void *dir)
{
    closedir(dir);
}

INTERPOSE(int, glob,
          (const char *pattern, int flags, int (*failed)(const char *, int),
           glob_t *found))
{
    if (config_get()->prefix && !(flags & GLOB_ALTDIRFUNC)) {
        flags |= GLOB_ALTDIRFUNC;
        found->gl_opendir = glob_opendir;
        found->gl_readdir = glob_readdir;
        found->gl_closedir = glob_closedir;
        found->gl_stat = stat;
        found->gl_lstat = lstat;
    }
    return REAL(glob)(pattern, flags, failed, found);
}
ALIAS(glob64, glob);

/* ---- ftw ----------------------------------------------------------------------- */

struct tree {
    char path[PATH_MAX];
    __nftw_func_t visit;
    __ftw_func_t visit_plain;
    int flags;
    dev_t device;
    void *seen; /* directories, unless FTW_PHYS: tsearch(3) of struct seen */
    int here;   /* FTW_CHDIR: the directory above what is visited; -1: where it began */
};

/* What is at tree->path, as calls reach it. */
static const char *reach(const struct tree *tree, int base)
{
    return tree->path + (tree->flags & FTW_CHDIR ? base : 0);
}

static int tell(struct tree *tree, const struct stat *stat, int kind, int base,
                int level)
{
    struct FTW info = {.base = base, .level = level};

    if (tree->visit_plain)
        return tree->visit_plain(tree->path, stat, kind == FTW_SLN ? FTW_NS : kind);
    return tree->visit(tree->path, stat, kind, &info);
}

struct seen {
    dev_t device;
    ino_t ino;
};

static int compare_seen(const void *a, const void *b)
{
    const struct seen *one = a, *other = b;

    if (one->ino != other->ino)
        return one->ino < other->ino ? -1 : 1;
    return one->device < other->device ? -1 : one->device > other->device;
}

/* Links may lead to a directory again. 1: this is the first time; 0: not; or -1. */
static int see(struct tree *tree, const struct stat *stat)
{
    struct seen *seen = malloc(sizeof(*seen));
    void *node;

    if (!seen)
        return -1;
    *seen = (struct seen){stat->st_dev, stat->st_ino};
    node = tsearch(seen, &tree->seen, compare_seen);
    if (node && *(struct seen **)node == seen)
        return 1;
    free(seen);
    return node ? 0 : -1;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static int visit(struct tree *tree, int base, int level);

static int visit_entries(struct tree *tree, DIR *dir, int level)
{
    size_t size = strlen(tree->path);
    const struct dirent *entry;
    int rc = 0;

    while (rc == 0 && (entry = readdir(dir))) {
        size_t name_size = strlen(entry->d_name);

        if (is_dots(entry->d_name))
            continue;
        if (size + name_size + 2 > sizeof(tree->path)) {
            errno = ENAMETOOLONG;
            rc = -1;
            break;
        }
        tree->path[size] = '/';
        memcpy(tree->path + size + 1, entry->d_name, name_size + 1);
        rc = visit(tree, (int)size + 1, level + 1);
        tree->path[size] = 0;
        if (tree->flags & FTW_ACTIONRETVAL && rc == FTW_SKIP_SUBTREE)
            rc = 0;
    }
    if (tree->flags & FTW_ACTIONRETVAL && rc == FTW_SKIP_SIBLINGS)
        rc = 0;
    return rc;
}

/* As libc has it, a directory that comes after what is in it is still the current one. */
static int visit_directory(struct tree *tree, const struct stat *stat, int base,
                           int level)
{
    bool first = !(tree->flags & FTW_DEPTH), goes = tree->flags & FTW_CHDIR;
    DIR *dir = opendir(reach(tree, base));
    int above = tree->here;
    int rc;

    if (!dir)
        return errno == EACCES ? tell(tree, stat, FTW_DNR, base, level) : -1;
    rc = first ? tell(tree, stat, FTW_D, base, level) : 0;
    if (rc == 0 && goes)
        rc = fchdir(tree->here = dirfd(dir));
    if (rc == 0)
        rc = visit_entries(tree, dir, level);
    if (rc == 0 && !first)
        rc = tell(tree, stat, FTW_DP, base, level);
    closedir(dir);
    if (goes && above >= 0 && fchdir(above) < 0 && rc == 0)
        rc = -1;
    tree->here = above;
    return rc;
}

/* What stat(2) did not find. */
static int visit_missing(struct tree *tree, struct stat *stat, int base, int level)
{
    if (errno != ENOENT && (errno != EACCES || level == 0))
        return -1;
    if (!(tree->flags & FTW_PHYS) && errno == ENOENT &&
        lstat(reach(tree, base), stat) == 0)
        return tell(tree, stat, FTW_SLN, base, level);
    return level == 0 ? -1 : tell(tree, stat, FTW_NS, base, level);
}

/* What is at tree->path, and all below it. */
static int visit(struct tree *tree, int base, int level)
{
    struct stat stat_of_it = {0};
    bool physical = tree->flags & FTW_PHYS;
    const char *name = reach(tree, base);
    int rc = physical ? lstat(name, &stat_of_it) : stat(name, &stat_of_it);

    if (rc < 0)
        return visit_missing(tree, &stat_of_it, base, level);
    if (level == 0)
        tree->device = stat_of_it.st_dev;
    if (tree->flags & FTW_MOUNT && stat_of_it.st_dev != tree->device)
        return 0;
    if (S_ISDIR(stat_of_it.st_mode)) {
        rc = physical ? 1 : see(tree, &stat_of_it);
        return rc > 0 ? visit_directory(tree, &stat_of_it, base, level) : rc;
    }
    return tell(tree, &stat_of_it, S_ISLNK(stat_of_it.st_mode) ? FTW_SL : FTW_F, base,
                level);
}

/* With FTW_CHDIR from the directory that it is in, and back at the end. */
static int walk_from(struct tree *tree, int base)
{
    int start, rc, errnum;

    if (!(tree->flags & FTW_CHDIR))
        return visit(tree, base, 0);
    start = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (start < 0)
        return -1;
    rc = 0;
    if (base > 0) {
        char *end = tree->path + base - 1;

        *end = 0;
        rc = chdir(base > 1 ? tree->path : "/");
        *end = '/';
    }
    if (rc == 0)
        rc = visit(tree, base, 0);
    errnum = errno;
    if (fchdir(start) < 0 && rc == 0) {
        rc = -1;
        errnum = errno;
    }
    close(start);
    errno = errnum;
    return rc;
}

static int walk_tree(const char *path, __nftw_func_t each, __ftw_func_t plain,
                     int flags)
{
    struct tree *tree = calloc(1, sizeof(*tree));
    size_t size = strlen(path);
    int rc, errnum;

    if (!tree || size >= PATH_MAX) {
        free(tree);
        return (int)result(tree ? -ENAMETOOLONG : -ENOMEM);
    }
    while (size > 1 && path[size - 1] == '/')
        size--;
    snprintf(tree->path, sizeof(tree->path), "%.*s", (int)size, path);
    tree->visit = each;
    tree->visit_plain = plain;
    tree->flags = flags;
    tree->here = -1;

    const char *slash = strrchr(tree->path, '/');

    rc = walk_from(tree, slash ? (int)(slash - tree->path) + 1 : 0);
    if (flags & FTW_ACTIONRETVAL && (rc == FTW_SKIP_SUBTREE || rc == FTW_SKIP_SIBLINGS))
        rc = 0;
    errnum = errno;
    tdestroy(tree->seen, free);
    free(tree);
    errno = errnum;
    return rc;
}

INTERPOSE(int, nftw, (const char *path, __nftw_func_t each, int fds, int flags))
{
    struct place at;

    if (place_to_host(&at, AT_FDCWD, path))
        return (int)place_host(&at, REAL(nftw)(at.path, each, fds, flags));
    return walk_tree(path, each, NULL, flags);
}
ALIAS(nftw64, nftw);

INTERPOSE(int, ftw, (const char *path, __ftw_func_t each, int fds))
{
    struct place at;

    if (place_to_host(&at, AT_FDCWD, path))
        return (int)place_host(&at, REAL(ftw)(at.path, each, fds));
    return walk_tree(path, NULL, each, 0);
}
ALIAS(ftw64, ftw);
