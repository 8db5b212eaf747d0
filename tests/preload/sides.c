/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/preload/sides.h"

/* ---- Logs ---------------------------------------------------------------------- */

struct side *now;

const char *path(const char *name)
{
    static char paths[4][PATH_MAX];
    static unsigned next;
    char *result = paths[next++ % 4];

    snprintf(result, PATH_MAX, "%s/%s", now->dir, name);
    return result;
}

void note(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(now->out, format, args);
    va_end(args);
    fputc('\n', now->out);
}

long note_result(const char *call, long rc, int errnum)
{
    if (rc < 0)
        note("%s: %ld, %s", call, rc, strerrorname_np(errnum));
    else
        note("%s: %ld", call, rc);
    return rc;
}

long tried;

int note_fd(const char *call, int fd)
{
    note_result(call, fd < 0 ? fd : 0, errno);
    return fd;
}

void *note_pointer(const char *call, const void *pointer)
{
    note_result(call, pointer && pointer != MAP_FAILED ? 0 : -1, errno);
    return (void *)(uintptr_t)pointer;
}

void note_path(const char *what, const char *text)
{
    size_t size = strlen(now->dir);

    if (text && strncmp(text, now->dir, size) == 0)
        note("%s: DIR%s", what, text + size);
    else
        note("%s: %s", what, text ? text : "none");
}

void note_stat(const char *what, const struct stat *stat)
{
    note("%s: mode %o nlink %lu size %ld uid %u gid %u rdev %lx", what, stat->st_mode,
         (unsigned long)stat->st_nlink,
         S_ISDIR(stat->st_mode) ? 0L : (long)stat->st_size, stat->st_uid, stat->st_gid,
         (unsigned long)stat->st_rdev);
}

void note_name(const char *name)
{
    struct stat stat;

    if (TRY(lstat(path(name), &stat)) == 0)
        note_stat(name, &stat);
}

void note_content(const char *name)
{
    char bytes[4096];
    int fd = open(path(name), O_RDONLY);
    ssize_t size = read(fd, bytes, sizeof(bytes) - 1);

    for (ssize_t i = 0; i < size; i++)
        bytes[i] = bytes[i] ? bytes[i] : '0';
    bytes[size > 0 ? size : 0] = 0;
    note("%s: %ld: %s", name, (long)size, bytes);
    close(fd);
}

void put(const char *name, const char *text)
{
    int fd = open(path(name), O_CREAT | O_WRONLY | O_TRUNC, 0644);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

void note_list(struct dirent **list, int count)
{
    for (int i = 0; i < count; i++) {
        note("%s", list[i]->d_name);
        free(list[i]);
    }
    if (count >= 0)
        free(list);
}

/* ---- Comparing ----------------------------------------------------------------- */

static void run_on(struct side *side, const char *root, void (*run)(void),
                   const char *name)
{
    snprintf(side->dir, sizeof(side->dir), "%s/%s", root, name);
    assert_int_equal(mkdir(side->dir, 0755), 0);
    side->out = open_memstream(&side->log, &side->size);
    assert_non_null(side->out);
    now = side;
    run();
    fclose(side->out);
}

static size_t line_length(const char *text)
{
    return strcspn(text, "\n");
}

/* Shows where they part. */
static void assert_same(const char *expected, const char *found)
{
    while (*expected || *found) {
        size_t size = line_length(expected);

        if (line_length(found) != size || memcmp(expected, found, size) != 0)
            fail_msg("tmpfs: %.*s\n          pmfs:  %.*s", (int)size, expected,
                     (int)line_length(found), found);
        expected += size + (expected[size] == '\n');
        found += size + (found[size] == '\n');
    }
}

void compare(void (*run)(void), const char *name)
{
    struct side tmpfs, pmfs;

    run_on(&tmpfs, getenv("WORK"), run, name);
    run_on(&pmfs, "/pmfs", run, name);
    assert_true(tmpfs.size > 0);
    assert_same(tmpfs.log, pmfs.log);
    free(tmpfs.log);
    free(pmfs.log);
}
