/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * path.c - which paths are ours: those that begin with the prefix once "." and ".." are
 * taken out of them as text, and those relative to a directory of ours. Symbolic links
 * of the host are not followed for that. Links and ".." that lead out of the pool lead
 * to where they would from a mount point in place of the prefix.
 */
#include "pmfs-proto/preload/preload.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Recognising --------------------------------------------------------------- */

/* Appends a component of `size` bytes to the path in `out` (of `*length`). */
static bool append(char out[PATH_MAX], size_t *length, const char *name, size_t size)
{
    if (size == 0 || (size == 1 && name[0] == '.'))
        return true;
    if (size == 2 && name[0] == '.' && name[1] == '.') {
        while (*length > 0 && out[--*length] != '/')
            ;
        return true;
    }
    if (*length + size + 1 >= PATH_MAX)
        return false;
    out[(*length)++] = '/';
    memcpy(out + *length, name, size);
    *length += size;
    return true;
}

/*
 * What comes after the prefix in `path`, with `start` in front of it where it is
 * relative; NULL if it does not get there.
 */
static const char *below_prefix(const char *start, const char *path)
{
    const struct config *config = config_get();
    char seen[PATH_MAX];
    size_t length = 0;

    for (const char *rest = start; *rest; rest += strspn(rest, "/")) {
        size_t size = strcspn(rest, "/");

        if (!append(seen, &length, rest, size))
            return NULL;
        rest += size;
    }
    while (*path) {
        size_t size = strcspn(path, "/");

        if (!append(seen, &length, path, size))
            return NULL;
        path += size;
        if (length == config->prefix_size && memcmp(seen, config->prefix, length) == 0)
            return path;
        path += strspn(path, "/");
    }
    return NULL;
}

/* The path of a directory of the host; "" if it has none. */
static void host_directory(int dir, char path[PATH_MAX])
{
    char link[32];
    ssize_t size;

    path[0] = 0;
    if (dir == AT_FDCWD) {
        if (!REAL(getcwd)(path, PATH_MAX))
            path[0] = 0;
        return;
    }
    snprintf(link, sizeof(link), "/proc/self/fd/%d", dir);
    size = REAL(readlink)(link, path, PATH_MAX - 1);
    path[size > 0 ? size : 0] = 0;
}

/* What comes after the prefix, or NULL. Quick for nearly all that is not ours. */
static const char *below(int dir, const char *path)
{
    const struct config *config = config_get();
    char start[PATH_MAX];

    if (!config->prefix || !path || !strstr(path, config->last))
        return NULL;
    if (strncmp(path, config->prefix, config->prefix_size) == 0 &&
        (path[config->prefix_size] == '/' || path[config->prefix_size] == 0))
        return path + config->prefix_size;
    if (path[0] == '/')
        return below_prefix("", path);
    host_directory(dir, start);
    return start[0] ? below_prefix(start, path) : NULL;
}

/* ---- Names of descriptors ------------------------------------------------------- */

static const char *after(const char *path, const char *start)
{
    size_t size = strlen(start);

    return strncmp(path, start, size) == 0 ? path + size : NULL;
}

/* The number in the path of a descriptor; NULL: it is none. */
static const char *number_in(const char *path)
{
    char own[32];
    const char *number = after(path, "/dev/fd/");

    if (number || !after(path, "/proc/"))
        return number;
    snprintf(own, sizeof(own), "/proc/%d/fd/", (int)getpid());
    number = after(path, own);
    if (!number)
        number = after(path, "/proc/self/fd/");
    return number ? number : after(path, "/proc/thread-self/fd/");
}

struct handle *handle_of_path(const char *path)
{
    static const char *const standard[] = {"/dev/stdin", "/dev/stdout", "/dev/stderr"};

    if (!path || (!after(path, "/proc/") && !after(path, "/dev/")))
        return NULL;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (strcmp(path, standard[fd]) == 0)
            return handle_get(fd);

    const char *number = number_in(path);
    size_t digits = number ? strspn(number, "0123456789") : 0;

    return digits > 0 && digits < 9 && !number[digits] ? handle_get(atoi(number))
                                                       : NULL;
}

static bool names_descriptor(const char *path)
{
    struct handle *file = handle_of_path(path);

    handle_put(file);
    return file;
}

/* ---- Finding ------------------------------------------------------------------- */

static bool ends_in_slash(const char *path)
{
    size_t size = strlen(path);

    return size && path[size - 1] == '/';
}

/* Makes of the way out of the filesystem an absolute path. */
static int leave(struct place *place)
{
    const struct config *config = config_get();
    const char *outside = place->at.outside;
    char *text = NULL;
    int size;

    if (outside[0] == '/')
        size = asprintf(&text, "%s", outside);
    else
        size = asprintf(&text, "%.*s/%s", (int)config->above_size, config->prefix,
                        outside + 2);
    pmfs_place_release(place->fs, &place->at);
    if (size < 0)
        return -ENOMEM;
    free(place->text);
    place->text = text;
    return 0;
}

/* Follows `path` from the directory `ino`, out of the pool and in again, too. */
static int follow_from(struct place *place, uint64_t ino, const char *path,
                       enum follow follow)
{
    for (int ways_out = 0; ways_out <= PMFS_LINKS_FOLLOWED_MAX; ways_out++) {
        bool nofollow =
            follow == FOLLOW_NEVER || (follow == NOFOLLOW && !ends_in_slash(path));
        int rc = pmfs_path_parent(
            place->fs, ino, path,
            PMFS_PATH_BENEATH | (nofollow ? PMFS_PATH_NOFOLLOW : 0), &place->at);

        if (rc != -EXDEV)
            return rc;
        rc = leave(place);
        if (rc < 0)
            return rc;
        path = below(AT_FDCWD, place->text);
        if (!path) {
            place->is_host = true;
            place->dir = AT_FDCWD;
            place->path = place->text;
            return 0;
        }
        ino = PMFS_ROOT_INO;
        path = *path ? path : "/";
    }
    return -ELOOP;
}

static int begin(struct place *place, bool is_second)
{
    int rc = is_second ? 0 : call_begin();

    place->begun = rc == 0 && !is_second;
    return rc < 0 ? rc : pool_get(&place->fs);
}

static int find(struct place *place, int dir, const char *path, enum follow follow,
                bool is_second)
{
    bool is_relative = path && path[0] != '/';
    struct handle *base = is_relative ? handle_get(dir) : NULL;
    const char *rest = base ? path : below(dir, path);
    int rc;

    *place = (struct place){.is_host = !rest, .dir = dir, .path = path};
    /* What the kernel would do by such a path it would do to /dev/null. */
    if (!rest && follow == FOLLOW && names_descriptor(path)) {
        say_once(NOTICE_PROC, "%s is below %s, where this call cannot follow it", path,
                 config_get()->prefix);
        place->is_host = false;
        return -EOPNOTSUPP;
    }
    if (!rest)
        return 0;
    rc = begin(place, is_second);
    if (rc == 0)
        rc = follow_from(place, base ? base->ino : PMFS_ROOT_INO,
                         base || *rest ? rest : "/", follow);
    if (rc < 0)
        place->at.parent = 0;
    if (base)
        handle_put(base);
    if (place->is_host && place->begun) {
        place->begun = false;
        call_end();
    }
    return rc;
}

int place_find(struct place *place, int dir, const char *path, enum follow follow)
{
    return find(place, dir, path, follow, false);
}

int place_find_second(struct place *place, const struct place *first, int dir,
                      const char *path)
{
    return find(place, dir, path, FOLLOW_NEVER, first->begun);
}

long place_end(struct place *place, long rc)
{
    if (!place->is_host && place->at.parent)
        pmfs_place_release(place->fs, &place->at);
    free(place->text);
    if (place->begun)
        call_end();
    return result(rc);
}

bool place_to_host(struct place *place, int dir, const char *path)
{
    int errnum = errno;

    if (names_descriptor(path)) {
        *place = (struct place){0};
        return false;
    }
    int rc = place_find(place, dir, path, FOLLOW);

    if (place->is_host)
        return true;
    place_end(place, rc);
    errno = errnum;
    return false;
}

long place_host(struct place *place, long rc)
{
    int errnum = errno;

    free(place->text);
    errno = errnum;
    return rc;
}

/* ---- The current directory ----------------------------------------------------- */

/*
 * The kernel's current directory meanwhile: an empty one that is removed. Children
 * would else work in a directory of the host that nobody meant.
 */
static int leave_host_directory(void)
{
    char name[] = "/tmp/pmfs-preload-XXXXXX";

    if (!REAL(mkdtemp)(name))
        return -errno;

    int rc = REAL(chdir)(name) < 0 ? -errno : 0;

    REAL(rmdir)(name);
    return rc;
}

static bool is_in_host(void)
{
    return !fd_is_ours(FD_CWD);
}

INTERPOSE(int, chdir, (const char *path))
{
    struct pmfs_attr attr;
    struct place at;
    int rc = place_find(&at, AT_FDCWD, path, FOLLOW);

    if (at.is_host) {
        rc = REAL(chdir)(at.path);
        if (rc == 0)
            fd_set_cwd(0);
        return (int)place_host(&at, rc);
    }
    if (rc == 0)
        rc = pmfs_path_open(at.fs, at.at.parent, at.at.name, O_DIRECTORY, 0, NULL,
                            &attr);
    if (rc == 0 && is_in_host()) {
        rc = leave_host_directory();
        if (rc < 0)
            pmfs_release(at.fs, attr.ino);
    }
    if (rc == 0)
        rc = fd_set_cwd(attr.ino);
    return (int)place_end(&at, rc);
}

INTERPOSE(int, fchdir, (int fd))
{
    struct handle *file = handle_get(fd);
    int rc;

    if (!file) {
        rc = REAL(fchdir)(fd);
        if (rc == 0)
            fd_set_cwd(0);
        return rc;
    }
    rc = handle_begin(file, O_PATH);
    if (rc == 0 && file->type != S_IFDIR)
        rc = -ENOTDIR;
    if (rc == 0 && is_in_host())
        rc = leave_host_directory();
    if (rc == 0)
        fd_set_cwd_file(file);
    return (int)handle_end(file, rc);
}

/* It may be longer than what calls take. */
int path_of_directory(struct pmfs *fs, uint64_t ino, char **path)
{
    const struct config *config = config_get();
    size_t size = PMFS_PATH_MAX + 1;
    char *inside = NULL;
    int rc = -ERANGE;

    for (; rc == -ERANGE; size *= 2) {
        free(inside);
        inside = malloc(size);
        rc = inside ? pmfs_path_of(fs, ino, inside, size) : -ENOMEM;
    }
    if (rc == 0 && asprintf(path, "%s%s", config->prefix, inside[1] ? inside : "") < 0)
        rc = -ENOMEM;
    free(inside);
    return rc;
}

/* The current directory, allocated, or NULL if it is not ours. Sets `*rc`. */
static char *own_directory(int *rc)
{
    struct handle *file = handle_get(FD_CWD);
    struct pmfs *fs;
    char *path = NULL;

    *rc = 0;
    if (!file)
        return NULL;
    *rc = handle_begin(file, O_PATH);
    if (*rc == 0)
        *rc = pool_get(&fs);
    if (*rc == 0)
        *rc = path_of_directory(fs, file->ino, &path);
    handle_end(file, *rc);
    return path;
}

INTERPOSE(char *, getcwd, (char *buffer, size_t size))
{
    int rc;
    char *path = own_directory(&rc);

    if (!path)
        return rc < 0 ? NULL : REAL(getcwd)(buffer, size);

    size_t needed = strlen(path) + 1;

    if (!buffer && size == 0)
        return path;
    if (buffer && size == 0)
        errno = EINVAL;
    else if (size < needed)
        errno = ERANGE;
    else if (buffer || (buffer = malloc(size))) {
        memcpy(buffer, path, needed);
        free(path);
        return buffer;
    }
    free(path);
    return NULL;
}

char *__getcwd_chk(char *buffer, size_t size, size_t room);
INTERPOSE(char *, __getcwd_chk, (char *buffer, size_t size, size_t room))
{
    return is_in_host() ? REAL(__getcwd_chk)(buffer, size, room) : getcwd(buffer, size);
}

INTERPOSE(char *, get_current_dir_name, (void))
{
    return is_in_host() ? REAL(get_current_dir_name)() : getcwd(NULL, 0);
}

INTERPOSE(char *, getwd, (char *buffer))
{
    return getcwd(buffer, PATH_MAX);
}

/* ---- Names without links ------------------------------------------------------- */

/* The path of what is at `at`, allocated. */
static int resolve(const struct place *at, char **path)
{
    const char *name = at->at.name;
    struct pmfs_attr attr;
    char *parent;
    int rc = pmfs_path_getattr(at->fs, at->at.parent, name, PMFS_PATH_NOFOLLOW, &attr);

    if (rc < 0)
        return rc;
    if (S_ISDIR(attr.mode))
        return path_of_directory(at->fs, attr.ino, path);
    rc = path_of_directory(at->fs, at->at.parent, &parent);
    if (rc != 0)
        return rc;
    rc = asprintf(path, "%s/%s", parent, name) < 0 ? -ENOMEM : 0;
    free(parent);
    return rc;
}

INTERPOSE(char *, realpath, (const char *path, char *buffer))
{
    char *resolved = NULL;
    struct place at;
    int rc;

    if (!path) {
        errno = EINVAL;
        return NULL;
    }
    rc = place_find(&at, AT_FDCWD, path, FOLLOW);
    if (at.is_host) {
        resolved = REAL(realpath)(at.path, buffer);
        place_host(&at, 0);
        return resolved;
    }
    if (rc == 0)
        rc = resolve(&at, &resolved);
    if (rc == 0 && buffer) {
        size_t size = strlen(resolved) + 1;

        if (size <= PATH_MAX)
            memcpy(buffer, resolved, size);
        else
            rc = -ENAMETOOLONG;
        free(resolved);
        resolved = buffer;
    }
    return place_end(&at, rc) < 0 ? NULL : resolved;
}

char *__realpath_chk(const char *path, char *buffer, size_t room);
INTERPOSE(char *, __realpath_chk, (const char *path, char *buffer, size_t room))
{
    (void)room;
    return realpath(path, buffer);
}

INTERPOSE(char *, canonicalize_file_name, (const char *path))
{
    return realpath(path, NULL);
}
