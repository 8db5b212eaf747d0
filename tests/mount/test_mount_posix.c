/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each call answers, success or errno, on the mount and on tmpfs: it has to be the
 * same, and leave the same tree.
 */
#include "tests/mount/mount_fixture.h"

#include <dirent.h>
#include <ftw.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <time.h>

/* ---- Both sides ---------------------------------------------------------------- */

/* Something to do in a directory; 0 or the errno. */
typedef int act_fn(int dir, const void *arg);

static int result(long rc)
{
    return rc < 0 ? errno : 0;
}

/* One of everything, and a directory besides to move things to. */
static void make_scene(int dir)
{
    int fd;

    assert_success(mkdirat(dir, "full", 0755));
    assert_success(mkdirat(dir, "full/inner", 0755));
    assert_success(mkdirat(dir, "empty", 0755));
    assert_success(mkdirat(dir, "other", 0755));
    assert_success(mkdirat(dir, "other/full", 0755));
    assert_success(mkdirat(dir, "other/full/inner", 0755));
    assert_success(mkdirat(dir, "other/empty", 0755));
    fd = openat(dir, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    assert_int_equal(write(fd, "content", 7), 7);
    close(fd);
    assert_success(linkat(dir, "file", dir, "other/hard", 0));
    close(openat(dir, "other/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    assert_success(symlinkat("file", dir, "link"));
    assert_success(symlinkat("nowhere", dir, "dangling"));
    assert_success(symlinkat("loop", dir, "loop"));
    assert_success(mkfifoat(dir, "fifo", 0644));
}

/* A listing of a tree: type, mode, links, target and ACLs of each name. */
struct listing {
    char text[16384];
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void add(struct listing *listing,
                                                      const char *format, ...)
{
    va_list args;

    va_start(args, format);
    listing->size +=
        (size_t)vsnprintf(listing->text + listing->size,
                          sizeof(listing->text) - listing->size, format, args);
    va_end(args);
    assert_true(listing->size < sizeof(listing->text));
}

static void add_acl(struct listing *listing, const char *path, const char *name)
{
    unsigned char acl[256];
    ssize_t size = lgetxattr(path, name, acl, sizeof(acl));

    if (size < 0)
        return;
    add(listing, "    %s", name);
    for (ssize_t i = 0; i < size; i++)
        add(listing, " %02x", acl[i]);
    add(listing, "\n");
}

static void list_tree(struct listing *listing, const char *path, size_t prefix)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort);

    assert_success(count);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        char inner[PATH_MAX], target[64] = "";
        struct stat status;

        snprintf(inner, sizeof(inner), "%s/%s", path, name);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            assert_success(lstat(inner, &status));
            if (S_ISLNK(status.st_mode))
                assert_success(readlink(inner, target, sizeof(target) - 1));
            add(listing, "%o %d %.40s %s\n", status.st_mode, (int)status.st_nlink,
                inner + prefix, target);
            add_acl(listing, inner, "system.posix_acl_access");
            add_acl(listing, inner, "system.posix_acl_default");
            assert_int_equal(entries[i]->d_type, IFTODT(status.st_mode));
            if (S_ISDIR(status.st_mode))
                list_tree(listing, inner, prefix);
        }
        free(entries[i]);
    }
    free(entries);
}

static int remove_one(const char *path, const struct stat *status, int type,
                      struct FTW *ftw)
{
    (void)status, (void)type, (void)ftw;
    return remove(path);
}

/* Acts in a fresh scene on one side, and lists what is there then. */
static int act_in(const char *path, act_fn *act, const void *arg,
                  struct listing *listing)
{
    assert_success(mkdir(path, 0755));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_success(dir);
    make_scene(dir);
    int answer = act(dir, arg);
    close(dir);
    listing->size = 0;
    list_tree(listing, path, strlen(path));
    assert_success(nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS));
    return answer;
}

static void assert_as_on_tmpfs(struct mount_fixture *f, const char *what, act_fn *act,
                               const void *arg)
{
    static struct listing expected, found;
    int expected_answer = act_in(in_dir(f, "scene"), act, arg, &expected);
    int answer = act_in(in_mount(f, "scene"), act, arg, &found);

    if (answer != expected_answer || strcmp(expected.text, found.text) != 0)
        print_error("%s: %s, on tmpfs %s\n%s--- on tmpfs:\n%s", what, strerror(answer),
                    strerror(expected_answer), found.text, expected.text);
    assert_int_equal(answer, expected_answer);
    assert_string_equal(found.text, expected.text);
}

/* ---- Renaming ------------------------------------------------------------------ */

struct renaming {
    const char *from, *to;
    unsigned flags;
};

static int act_rename(int dir, const void *arg)
{
    const struct renaming *renaming = arg;

    return result(renameat2(dir, renaming->from, dir, renaming->to, renaming->flags));
}

/* Calls `use` with every renaming there is a point in. */
static void with_every_rename(struct mount_fixture *f,
                              void (*use)(struct mount_fixture *f, const char *what,
                                          act_fn *act, const void *arg))
{
    static const char *const froms[] = {"file", "empty", "full",
                                        "fifo", "none",  "other/hard"};
    static const char *const tos[] = {
        "file",     "other/file", "other/empty", "other/full", "new", "other/new",
        "full/new", "full/inner", "full",        "file/new",   "."};
    static const unsigned all_flags[] = {0,
                                         RENAME_NOREPLACE,
                                         RENAME_EXCHANGE,
                                         RENAME_NOREPLACE | RENAME_EXCHANGE,
                                         1 << 7,
                                         RENAME_WHITEOUT,
                                         RENAME_WHITEOUT | RENAME_NOREPLACE,
                                         RENAME_WHITEOUT | RENAME_EXCHANGE};
    char what[128];

    for (size_t i = 0; i < sizeof(froms) / sizeof(*froms); i++) {
        for (size_t j = 0; j < sizeof(tos) / sizeof(*tos); j++) {
            for (size_t k = 0; k < sizeof(all_flags) / sizeof(*all_flags); k++) {
                const struct renaming renaming = {froms[i], tos[j], all_flags[k]};

                snprintf(what, sizeof(what), "rename %s to %s, flags %u", froms[i],
                         tos[j], all_flags[k]);
                use(f, what, act_rename, &renaming);
            }
        }
    }
}

static void every_rename_answers_as_on_tmpfs(void **state)
{
    with_every_rename(*state, assert_as_on_tmpfs);
}

struct reader {
    const char *path;
    bool over; /* atomic */
    int failures;
};

static void *open_again_and_again(void *arg)
{
    struct reader *reader = arg;

    while (!__atomic_load_n(&reader->over, __ATOMIC_RELAXED)) {
        int fd = open(reader->path, O_RDONLY | O_CLOEXEC);

        reader->failures += fd < 0;
        if (fd >= 0)
            close(fd);
    }
    return NULL;
}

static void a_name_that_is_replaced_is_never_missing(void **state)
{
    struct mount_fixture *f = *state;
    char path[PATH_MAX], other[PATH_MAX];
    struct reader reader = {.path = path};
    pthread_t thread;

    snprintf(path, sizeof(path), "%s", in_mount(f, "file"));
    snprintf(other, sizeof(other), "%s", in_mount(f, "other"));
    write_file(path, "content", 7);
    assert_int_equal(pthread_create(&thread, NULL, open_again_and_again, &reader), 0);
    for (int i = 0; i < 500; i++) {
        write_file(other, "content", 7);
        assert_success(rename(other, path));
    }
    __atomic_store_n(&reader.over, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    assert_int_equal(reader.failures, 0);
}

/* A directory is empty although a file that was in it is open. */
static int act_unlink_while_open(int dir, const void *arg)
{
    int fd, answer;

    (void)arg;
    assert_success(mkdirat(dir, "new", 0755));
    fd = openat(dir, "new/file", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    assert_success(fd);
    assert_success(unlinkat(dir, "new/file", 0));
    answer = result(unlinkat(dir, "new", AT_REMOVEDIR));
    close(fd);
    return answer;
}

static void an_open_file_that_is_unlinked_leaves_no_other_name(void **state)
{
    assert_as_on_tmpfs(*state, "unlink while open", act_unlink_while_open, NULL);
}

/* ---- Names --------------------------------------------------------------------- */

static char long_name[257], long_target[4097];

struct naming {
    enum { LINK, UNLINK, RMDIR, MKDIR, MKNOD, SYMLINK, OPEN, READLINK, TRUNCATE } call;
    const char *name, *other;
    int flags; /* of open; type of mknod; size of truncate */
};

static int act_open(int dir, const struct naming *naming)
{
    int fd = openat(dir, naming->name, naming->flags | O_CLOEXEC | O_NONBLOCK, 0640);
    int answer = result(fd);

    if (fd >= 0)
        close(fd);
    return answer;
}

static int act_truncate(int dir, const struct naming *naming)
{
    int answer =
        fchdir(dir) < 0 ? errno : result(truncate(naming->name, naming->flags));

    return chdir("/") < 0 ? errno : answer;
}

static int act_name(int dir, const void *arg)
{
    const struct naming *naming = arg;
    char target[8];

    switch (naming->call) {
    case LINK:
        return result(linkat(dir, naming->name, dir, naming->other, 0));
    case UNLINK:
        return result(unlinkat(dir, naming->name, 0));
    case RMDIR:
        return result(unlinkat(dir, naming->name, AT_REMOVEDIR));
    case MKDIR:
        return result(mkdirat(dir, naming->name, 01775));
    case MKNOD:
        return result(
            mknodat(dir, naming->name, (mode_t)naming->flags | 0640, makedev(1, 3)));
    case SYMLINK:
        return result(symlinkat(naming->other, dir, naming->name));
    case OPEN:
        return act_open(dir, naming);
    case READLINK:
        return result(readlinkat(dir, naming->name, target, sizeof(target)));
    default:
        return act_truncate(dir, naming);
    }
}

static const struct naming all_namings[] = {
    {LINK, "file", "new", 0},
    {LINK, "file", "other/file", 0},
    {LINK, "file", "file", 0},
    {LINK, "link", "new", 0},
    {LINK, "fifo", "other/fifo", 0},
    {LINK, "empty", "new", 0},
    {LINK, "none", "new", 0},
    {LINK, "file", "none/new", 0},
    {LINK, "file", "file/new", 0},
    {LINK, "file", long_name, 0},
    {UNLINK, "file", NULL, 0},
    {UNLINK, "link", NULL, 0},
    {UNLINK, "fifo", NULL, 0},
    {UNLINK, "empty", NULL, 0},
    {UNLINK, "none", NULL, 0},
    {UNLINK, "file/none", NULL, 0},
    {UNLINK, ".", NULL, 0},
    {UNLINK, long_name, NULL, 0},
    {RMDIR, "empty", NULL, 0},
    {RMDIR, "full", NULL, 0},
    {RMDIR, "file", NULL, 0},
    {RMDIR, "link", NULL, 0},
    {RMDIR, "none", NULL, 0},
    {RMDIR, "empty/.", NULL, 0},
    {RMDIR, "full/inner/..", NULL, 0},
    {MKDIR, "new", NULL, 0},
    {MKDIR, "file", NULL, 0},
    {MKDIR, "empty", NULL, 0},
    {MKDIR, "dangling", NULL, 0},
    {MKDIR, "none/new", NULL, 0},
    {MKDIR, "file/new", NULL, 0},
    {MKDIR, "", NULL, 0},
    {MKDIR, long_name, NULL, 0},
    {MKNOD, "new", NULL, S_IFREG},
    {MKNOD, "new", NULL, S_IFIFO},
    {MKNOD, "new", NULL, S_IFSOCK},
    {MKNOD, "new", NULL, S_IFCHR},
    {MKNOD, "new", NULL, S_IFBLK},
    {MKNOD, "new", NULL, S_IFDIR},
    {MKNOD, "file", NULL, S_IFREG},
    {SYMLINK, "new", "anywhere", 0},
    {SYMLINK, "new", "", 0},
    {SYMLINK, "file", "anywhere", 0},
    {SYMLINK, "new", long_target, 0},
    {SYMLINK, "new", long_target + 1, 0},
    {READLINK, "link", NULL, 0},
    {READLINK, "file", NULL, 0},
    {READLINK, "none", NULL, 0},
    {OPEN, "file", NULL, O_RDWR},
    {OPEN, "file", NULL, O_RDWR | O_CREAT | O_EXCL},
    {OPEN, "new", NULL, O_RDWR | O_CREAT | O_EXCL},
    {OPEN, "none", NULL, O_RDONLY},
    {OPEN, "file", NULL, O_RDONLY | O_DIRECTORY},
    {OPEN, "empty", NULL, O_RDONLY},
    {OPEN, "empty", NULL, O_RDWR},
    {OPEN, "empty", NULL, O_RDONLY | O_CREAT},
    {OPEN, "link", NULL, O_RDONLY | O_NOFOLLOW},
    {OPEN, "dangling", NULL, O_RDONLY},
    {OPEN, "dangling", NULL, O_RDWR | O_CREAT},
    {OPEN, "dangling", NULL, O_RDWR | O_CREAT | O_EXCL},
    {OPEN, "loop", NULL, O_RDONLY},
    {OPEN, "file/none", NULL, O_RDONLY},
    {OPEN, "fifo", NULL, O_WRONLY},
    {OPEN, "fifo", NULL, O_RDONLY},
    {OPEN, long_name, NULL, O_RDONLY | O_CREAT},
    {TRUNCATE, "file", NULL, 3},
    {TRUNCATE, "file", NULL, -1},
    {TRUNCATE, "empty", NULL, 3},
    {TRUNCATE, "none", NULL, 3},
    {TRUNCATE, "fifo", NULL, 3},
};

#define ALL_NAMINGS (sizeof(all_namings) / sizeof(*all_namings))

static void every_call_with_a_name_answers_as_on_tmpfs(void **state)
{
    struct mount_fixture *f = *state;
    char what[64];

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < ALL_NAMINGS; i++) {
        snprintf(what, sizeof(what), "call %d with %.20s", (int)all_namings[i].call,
                 all_namings[i].name);
        assert_as_on_tmpfs(f, what, act_name, &all_namings[i]);
    }
}

/* ---- Permissions --------------------------------------------------------------- */

#define NOBODY 65534

/* What another user gets, in a process of its own. */
static int act_as_nobody(int dir, act_fn *act, const void *arg)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(255);
        _exit(act(dir, arg));
    }
    return exit_status_of(pid);
}

static int act_in_sticky_directory(int dir, const void *arg)
{
    if (fchmod(dir, 01777) < 0)
        return errno;
    return act_as_nobody(dir, act_name, arg);
}

/* Who renames has it, and needs no privilege for that. */
static int act_whiteout_of_nobody(int dir, const void *arg)
{
    struct stat status;

    if (fchmod(dir, 0777) < 0)
        return errno;
    int answer = act_as_nobody(dir, act_rename, arg);
    if (answer == 0 && fstatat(dir, "file", &status, 0) == 0 &&
        (status.st_uid != NOBODY || status.st_rdev != 0 || status.st_mode != S_IFCHR))
        return EBADMSG;
    return answer;
}

/* ---- Files without a name -------------------------------------------------------- */

struct nameless {
    const char *dir;
    int flags;
    bool by_proc; /* linked by /proc, as who has no privilege does */
};

static int link_nameless(int fd, int dir, const char *name, bool by_proc)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return by_proc ? linkat(AT_FDCWD, path, dir, name, AT_SYMLINK_FOLLOW)
                   : linkat(fd, "", dir, name, AT_EMPTY_PATH);
}

/* What is only possible before a name is given, and what only once. */
static int act_nameless(int dir, const void *arg)
{
    const struct nameless *nameless = arg;
    int fd = openat(dir, nameless->dir, O_TMPFILE | O_CLOEXEC | nameless->flags, 0640);
    struct stat status;
    char found[8] = "";

    if (fd < 0)
        return errno;
    int failed = write(fd, "content", 7) != 7 || fstat(fd, &status) < 0 ||
                 status.st_nlink != 0 || fchmod(fd, 0604) < 0;
    int answer = result(link_nameless(fd, dir, "linked", nameless->by_proc));
    if (answer == 0)
        failed |= fstat(fd, &status) < 0 || status.st_nlink != 1 ||
                  link_nameless(fd, dir, "empty/again", nameless->by_proc) < 0 ||
                  fstat(fd, &status) < 0 || status.st_nlink != 2;
    close(fd);
    fd = openat(dir, "linked", O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        failed |= read(fd, found, sizeof(found)) != 7 || strcmp(found, "content") != 0;
    close(fd);
    return failed ? EBADMSG : answer;
}

static void every_nameless_file_is_as_on_tmpfs(void **state)
{
    static const char *const dirs[] = {".", "full", "file", "none"};
    static const int flags[] = {O_RDWR, O_WRONLY, O_RDONLY, O_RDWR | O_EXCL,
                                O_RDWR | O_DIRECT};
    struct mount_fixture *f = *state;
    char what[128];

    for (size_t i = 0; i < 2 * (sizeof(dirs) / sizeof(*dirs)); i++)
        for (size_t j = 0; j < sizeof(flags) / sizeof(*flags); j++) {
            const struct nameless nameless = {dirs[i / 2], flags[j], i % 2};

            snprintf(what, sizeof(what), "nameless in %s, flags %o", nameless.dir,
                     (unsigned)nameless.flags);
            assert_as_on_tmpfs(f, what, act_nameless, &nameless);
        }
}

static int act_nameless_of_nobody(int dir, const void *arg)
{
    if (fchmod(dir, 0777) < 0 || fchmodat(dir, "empty", 0777, 0) < 0)
        return errno;
    return act_as_nobody(dir, act_nameless, arg);
}

static void nameless_file_is_freed_when_it_is_closed(void **state)
{
    static char bytes[1 << 20];
    struct mount_fixture *f = *state;
    struct statvfs before, during, after;

    write_file(in_mount(f, "first"), "content", 7);
    assert_success(statvfs(f->mountpoint, &before));
    int fd = open(f->mountpoint, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    assert_success(fd);
    assert_int_equal(write(fd, bytes, sizeof(bytes)), sizeof(bytes));
    assert_success(statvfs(f->mountpoint, &during));
    assert_true(during.f_bfree + 256 <= before.f_bfree);
    close(fd);
    /* The kernel forgets it in its own time; the inode table keeps what it took. */
    for (int i = 0; i < 1000; i++) {
        assert_success(statvfs(f->mountpoint, &after));
        if (after.f_bfree >= during.f_bfree + 256)
            break;
        usleep(10000);
    }
    assert_true(after.f_bfree >= during.f_bfree + 256);
}

static int act_rename_in_sticky_directory(int dir, const void *arg)
{
    if (fchmod(dir, 01777) < 0)
        return errno;
    return act_as_nobody(dir, act_rename, arg);
}

static int act_without_permission(int dir, const void *arg)
{
    return act_as_nobody(dir, act_name, arg);
}

static void others_may_do_what_they_may_on_tmpfs(void **state)
{
    static const struct naming namings[] = {
        {UNLINK, "file", NULL, 0},    {RMDIR, "empty", NULL, 0},
        {MKDIR, "new", NULL, 0},      {MKNOD, "new", NULL, S_IFREG},
        {LINK, "file", "new", 0},     {OPEN, "file", NULL, O_RDONLY},
        {OPEN, "file", NULL, O_RDWR}, {TRUNCATE, "file", NULL, 3},
        {SYMLINK, "new", "any", 0},
    };
    static const struct renaming renaming = {"file", "new", 0};
    static const struct renaming whiteout = {"file", "new", RENAME_WHITEOUT};
    static const struct nameless nameless = {".", O_RDWR, true};
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    assert_success(chmod(f->dir, 0755));
    for (size_t i = 0; i < sizeof(namings) / sizeof(*namings); i++) {
        assert_as_on_tmpfs(f, "sticky", act_in_sticky_directory, &namings[i]);
        assert_as_on_tmpfs(f, "without permission", act_without_permission,
                           &namings[i]);
    }
    assert_as_on_tmpfs(f, "sticky rename", act_rename_in_sticky_directory, &renaming);
    assert_as_on_tmpfs(f, "whiteout", act_whiteout_of_nobody, &whiteout);
    assert_as_on_tmpfs(f, "nameless", act_nameless_of_nobody, &nameless);
}

static int act_in_setgid_directory(int dir, const void *arg)
{
    struct stat status;

    (void)arg;
    if (fchownat(dir, "empty", 0, 1234, 0) < 0 ||
        fchmodat(dir, "empty", 02775, 0) < 0 || mkdirat(dir, "empty/dir", 0755) < 0 ||
        mknodat(dir, "empty/file", S_IFREG | 0644, 0) < 0)
        return errno;
    assert_success(fstatat(dir, "empty/file", &status, 0));
    assert_int_equal(status.st_gid, 1234);
    assert_success(fstatat(dir, "empty/dir", &status, 0));
    assert_int_equal(status.st_gid, 1234);
    return 0;
}

static void setgid_directories_give_their_group_as_on_tmpfs(void **state)
{
    if (geteuid() != 0)
        skip();
    assert_as_on_tmpfs(*state, "setgid", act_in_setgid_directory, NULL);
}

/* ---- Access control lists ------------------------------------------------------ */

enum { OWNER = 1, USER = 2, OWNING_GROUP = 4, GROUP = 8, MASK = 16, OTHER = 32 };

struct acl {
    uint32_t version;
    struct {
        uint16_t tag, perm;
        uint32_t id;
    } entries[8];
    size_t count;
};

/* The owner rw, nobody r, the group and its mask as said, others nothing. */
static struct acl acl_for_nobody(uint16_t group, uint16_t mask)
{
    return (struct acl){.version = 2,
                        .count = 5,
                        .entries = {{OWNER, 6, UINT32_MAX},
                                    {USER, 4, NOBODY},
                                    {OWNING_GROUP, group, UINT32_MAX},
                                    {MASK, mask, UINT32_MAX},
                                    {OTHER, 0, UINT32_MAX}}};
}

static const struct acl minimal_acl = {.version = 2,
                                       .count = 3,
                                       .entries = {{OWNER, 7, UINT32_MAX},
                                                   {OWNING_GROUP, 5, UINT32_MAX},
                                                   {OTHER, 1, UINT32_MAX}}};

static int set_acl(int dir, const char *path, const char *name, const struct acl *acl)
{
    int answer =
        fchdir(dir) < 0
            ? errno
            : result(setxattr(path, name, acl,
                              offsetof(struct acl, entries) + acl->count * 8, 0));

    return chdir("/") < 0 ? errno : answer;
}

static int set_access(int dir, const char *path, const struct acl *acl)
{
    return set_acl(dir, path, "system.posix_acl_access", acl);
}

static int set_default(int dir, const char *path, const struct acl *acl)
{
    return set_acl(dir, path, "system.posix_acl_default", acl);
}

/* Everything that a list does to modes, and modes to it. */
static int act_acls(int dir, const void *arg)
{
    const struct acl for_nobody = acl_for_nobody(7, 5);

    (void)arg;
    assert_int_equal(set_access(dir, "file", &for_nobody), 0);
    assert_int_equal(set_access(dir, "empty", &minimal_acl), 0);
    assert_int_equal(set_access(dir, "full", &for_nobody), 0);
    assert_success(fchmodat(dir, "full", 0741, 0));
    assert_int_equal(set_access(dir, "full/inner", &for_nobody), 0);
    assert_int_equal(set_access(dir, "full/inner", &minimal_acl), 0);
    assert_int_equal(set_default(dir, "other", &for_nobody), 0);
    assert_int_equal(set_default(dir, "other/full", &minimal_acl), 0);
    return set_access(dir, "fifo", &for_nobody);
}

static int act_inherit(int dir, const void *arg)
{
    const struct acl for_nobody = acl_for_nobody(7, 7);
    mode_t old = umask(*(const mode_t *)arg);

    assert_int_equal(set_default(dir, "empty", &for_nobody), 0);
    assert_success(mkdirat(dir, "empty/dir", 0777));
    assert_success(mkdirat(dir, "empty/dir/inner", 0750));
    assert_success(mkdirat(dir, "full/without", 0777));
    assert_success(mkfifoat(dir, "empty/fifo", 0666));
    assert_success(symlinkat("any", dir, "empty/link"));
    int fd = openat(dir, "empty/dir/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_success(fd);
    close(fd);
    fd = openat(dir, "full/file", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    assert_success(fd);
    close(fd);
    assert_int_equal(set_default(dir, "other/empty", &minimal_acl), 0);
    assert_success(mkdirat(dir, "other/empty/dir", 0777));
    assert_success(mknodat(dir, "other/empty/file", S_IFREG | 0666, 0));
    umask(old);
    return 0;
}

static int act_refused_acls(int dir, const void *arg)
{
    struct acl acl = acl_for_nobody(7, 5);

    (void)arg;
    int on_file = set_default(dir, "file", &acl);
    acl.count = 3; /* no others */
    int without_others = set_access(dir, "file", &acl);
    acl.version = 3;
    return on_file * 10000 + without_others * 100 + set_access(dir, "file", &acl);
}

static int act_by_acl(int dir, const void *arg)
{
    const struct acl acl = acl_for_nobody(0, 4);

    assert_int_equal(set_access(dir, "file", &acl), 0);
    return act_as_nobody(dir, act_name, arg);
}

static void access_control_lists_are_as_on_tmpfs(void **state)
{
    static const mode_t umasks[] = {0, 022, 077};
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    assert_as_on_tmpfs(f, "lists", act_acls, NULL);
    for (size_t i = 0; i < sizeof(umasks) / sizeof(*umasks); i++)
        assert_as_on_tmpfs(f, "inheriting", act_inherit, &umasks[i]);
    assert_as_on_tmpfs(f, "refused lists", act_refused_acls, NULL);
}

static void access_control_lists_let_in_whom_they_name(void **state)
{
    static const struct naming reading = {OPEN, "file", NULL, O_RDONLY};
    static const struct naming writing = {OPEN, "file", NULL, O_RDWR};
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    assert_success(chmod(f->dir, 0755));
    assert_as_on_tmpfs(f, "reading", act_by_acl, &reading);
    assert_as_on_tmpfs(f, "writing", act_by_acl, &writing);
}

/* ---- Read-only ----------------------------------------------------------------- */

/* The scene on a read-only mount, and on a read-only tmpfs that is mounted nowhere. */
static int read_only_scene, read_only_tmpfs;

static int open_dir(const char *path)
{
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_success(dir);
    return dir;
}

/* The attributes that are to be changed, too. */
static void make_read_only_scene(int dir)
{
    char path[64];

    make_scene(dir);
    snprintf(path, sizeof(path), "/proc/self/fd/%d/file", dir);
    setxattr(path, "user.a", "old", 3, 0);
}

static void setup_read_only_scenes(struct mount_fixture *f)
{
    const char *path = in_dir(f, "tmpfs");

    assert_success(mkdir(path, 0755));
    assert_success(mount("tmpfs", path, "tmpfs", 0, NULL));
    read_only_tmpfs = open_dir(path);
    make_read_only_scene(read_only_tmpfs);
    int error = mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0 ? errno : 0;
    umount2(path, MNT_DETACH);
    assert_int_equal(error, 0);

    mount_fs(f, NULL);
    int dir = open_dir(f->mountpoint);
    make_read_only_scene(dir);
    close(dir);
    unmount_fs(f);
    mount_fs(f, "ro");
    read_only_scene = open_dir(f->mountpoint);
}

static unsigned refused; /* with EROFS, so far */

static void assert_answers_as_read_only_tmpfs(struct mount_fixture *f, const char *what,
                                              act_fn *act, const void *arg)
{
    int expected = act(read_only_tmpfs, arg), answer = act(read_only_scene, arg);

    (void)f;
    if (answer != expected)
        print_error("%s: %s, on tmpfs %s\n", what, strerror(answer),
                    strerror(expected));
    assert_int_equal(answer, expected);
    refused += answer == EROFS;
}

/* With `arg` as the path, in the directory that is the current one. */
static int act_chmod(int dir, const void *arg)
{
    return result(fchmodat(dir, arg, 0600, 0));
}

static int act_chown(int dir, const void *arg)
{
    return result(fchownat(dir, arg, 1, 1, AT_SYMLINK_NOFOLLOW));
}

static int act_chown_to_nobody(int dir, const void *arg)
{
    return result(fchownat(dir, arg, (uid_t)-1, (gid_t)-1, 0));
}

static int act_touch(int dir, const void *arg)
{
    return result(utimensat(dir, arg, NULL, AT_SYMLINK_NOFOLLOW));
}

static int act_set_times(int dir, const void *arg)
{
    const struct timespec times[2] = {{.tv_sec = 1}, {.tv_nsec = UTIME_OMIT}};

    return result(utimensat(dir, arg, times, 0));
}

static int act_is_writable(int dir, const void *arg)
{
    return result(faccessat(dir, arg, W_OK, 0));
}

/* The path of what `arg` names. */
static const char *absolute(int dir, const void *arg)
{
    static char path[PATH_MAX];

    snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir, (const char *)arg);
    return path;
}

static int act_setxattr(int dir, const void *arg)
{
    return result(lsetxattr(absolute(dir, arg), "user.a", "new", 3, 0));
}

static int act_set_trusted(int dir, const void *arg)
{
    return result(lsetxattr(absolute(dir, arg), "trusted.a", "new", 3, 0));
}

static int act_removexattr(int dir, const void *arg)
{
    return result(lremovexattr(absolute(dir, arg), "user.a"));
}

static int act_set_acl(int dir, const void *arg)
{
    return set_access(dir, arg, &minimal_acl);
}

static int act_set_default_acl(int dir, const void *arg)
{
    return set_default(dir, arg, &minimal_acl);
}

static int act_bind(int dir, const void *arg)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%.107s", absolute(dir, arg));
    int answer = result(bind(server, (struct sockaddr *)&address, sizeof(address)));
    close(server);
    return answer;
}

/* By a descriptor, which can only be one to read. */
static int with_descriptor(int dir, const char *path, int (*act)(int fd))
{
    int fd = openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int answer = fd < 0 ? errno : result(act(fd));

    if (fd >= 0)
        close(fd);
    return answer;
}

static int fchmod_of(int fd)
{
    return fchmod(fd, 0600);
}

static int futimens_of(int fd)
{
    return futimens(fd, NULL);
}

static int fsetxattr_of(int fd)
{
    return fsetxattr(fd, "user.b", "new", 3, 0);
}

static int act_fchmod(int dir, const void *arg)
{
    return with_descriptor(dir, arg, fchmod_of);
}

static int act_futimens(int dir, const void *arg)
{
    return with_descriptor(dir, arg, futimens_of);
}

static int act_fsetxattr(int dir, const void *arg)
{
    return with_descriptor(dir, arg, fsetxattr_of);
}

static int act_open_to_write(int dir, const void *arg)
{
    const struct naming naming = {OPEN, arg, NULL, O_WRONLY};

    return act_open(dir, &naming);
}

static int act_open_to_truncate(int dir, const void *arg)
{
    const struct naming naming = {OPEN, arg, NULL, O_RDONLY | O_TRUNC};

    return act_open(dir, &naming);
}

static int act_open_to_create(int dir, const void *arg)
{
    const struct naming naming = {OPEN, arg, NULL, O_RDONLY | O_CREAT};

    return act_open(dir, &naming);
}

static int act_open_nameless(int dir, const void *arg)
{
    int fd = openat(dir, arg, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    int answer = result(fd);

    if (fd >= 0)
        close(fd);
    return answer;
}

static void with_every_change(struct mount_fixture *f)
{
    static const char *const names[] = {"file",     "other/hard", "empty", "full",
                                        "link",     "dangling",   "loop",  "fifo",
                                        "file/new", "none",       ".",     long_name};
    static const struct {
        const char *what;
        act_fn *act;
    } changes[] = {
        {"chmod", act_chmod},
        {"chown", act_chown},
        {"chown to nobody", act_chown_to_nobody},
        {"touch", act_touch},
        {"setting times", act_set_times},
        {"access", act_is_writable},
        {"setxattr", act_setxattr},
        {"setxattr trusted", act_set_trusted},
        {"removexattr", act_removexattr},
        {"ACL", act_set_acl},
        {"default ACL", act_set_default_acl},
        {"bind", act_bind},
        {"fchmod", act_fchmod},
        {"futimens", act_futimens},
        {"fsetxattr", act_fsetxattr},
        {"open to write", act_open_to_write},
        {"open to truncate", act_open_to_truncate},
        {"open to create", act_open_to_create},
        {"open nameless", act_open_nameless},
    };
    char what[64];

    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        for (size_t j = 0; j < sizeof(names) / sizeof(*names); j++) {
            snprintf(what, sizeof(what), "%s of %.20s", changes[i].what, names[j]);
            assert_answers_as_read_only_tmpfs(f, what, changes[i].act, names[j]);
        }
    }
}

static void every_change_of_a_read_only_mount_answers_as_on_tmpfs(void **state)
{
    static struct listing expected, found;
    struct mount_fixture *f = *state;
    char what[64], path[64];

    if (geteuid() != 0)
        skip();
    setup_read_only_scenes(f);
    refused = 0;
    with_every_rename(f, assert_answers_as_read_only_tmpfs);
    for (size_t i = 0; i < ALL_NAMINGS; i++) {
        snprintf(what, sizeof(what), "call %d with %.20s", (int)all_namings[i].call,
                 all_namings[i].name);
        assert_answers_as_read_only_tmpfs(f, what, act_name, &all_namings[i]);
    }
    with_every_change(f);
    assert_true(refused > 200);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", read_only_tmpfs);
    list_tree(&expected, path, strlen(path));
    list_tree(&found, f->mountpoint, strlen(f->mountpoint));
    assert_string_equal(found.text, expected.text);
    close(read_only_tmpfs);
    close(read_only_scene);
}

/* ---- Special files ------------------------------------------------------------- */

static void a_socket_and_a_fifo_connect_processes(void **state)
{
    struct mount_fixture *f = *state;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", in_mount(f, "socket"));
    assert_success(bind(server, (struct sockaddr *)&address, sizeof(address)));
    assert_success(listen(server, 1));
    assert_success(connect(client, (struct sockaddr *)&address, sizeof(address)));
    assert_errno(bind(client, (struct sockaddr *)&address, sizeof(address)),
                 EADDRINUSE);
    close(client);
    close(server);
    assert_success(mkfifo(in_mount(f, "fifo"), 0600));
    int reader = open(in_mount(f, "fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    int writer = open(in_mount(f, "fifo"), O_WRONLY | O_CLOEXEC);
    char found[3];
    assert_int_equal(write(writer, "abc", 3), 3);
    assert_int_equal(read(reader, found, 3), 3);
    close(reader);
    close(writer);
}

/* ---- Mount options --------------------------------------------------------------- */

static bool device_opens(const struct mount_fixture *f)
{
    int fd = open(in_mount(f, "null"), O_WRONLY | O_CLOEXEC);
    bool opens = fd >= 0 && write(fd, "x", 1) == 1;

    assert_true(opens || errno == EACCES);
    close(fd);
    return opens;
}

/* A copy of cat(1) of root's, run by another user. */
static int status_of_program(const struct mount_fixture *f, const char *path)
{
    pid_t pid = fork();

    if (pid == 0) {
        if (setgid(NOBODY) < 0 || setuid(NOBODY) < 0)
            _exit(255);
        execl(in_mount(f, "program"), "cat", path, NULL);
        _exit(errno == EACCES ? 126 : 255);
    }
    return exit_status_of(pid);
}

static void options_say_what_special_files_and_programs_do(void **state)
{
    static const struct {
        const char *options;
        bool device, program, set_id;
    } cases[] = {
        {"allow_other", false, true, false},
        {"allow_other,nodev,nosuid,exec", false, true, false},
        {"allow_other,dev", true, true, false},
        {"allow_other,suid", false, true, true},
        {"allow_other,noexec", false, false, false},
        {"allow_other,suid,noexec,dev", true, false, false},
        {"allow_other,dev,nodev,suid,nosuid,noexec,exec", false, true, false},
    };
    struct mount_fixture *f = *state;
    char secret[PATH_MAX];

    if (geteuid() != 0)
        skip();
    snprintf(secret, sizeof(secret), "%s", in_dir(f, "secret"));
    write_file(secret, "content", 7);
    assert_success(chmod(secret, 0600));
    assert_success(chmod(f->dir, 0755));
    mount_fs(f, NULL);
    assert_success(mknod(in_mount(f, "null"), S_IFCHR | 0666, makedev(1, 3)));
    assert_int_equal(run(f, "cp", "/bin/cat", in_mount(f, "program"), NULL), 0);
    assert_success(chmod(in_mount(f, "program"), 04755));
    unmount_fs(f);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        mount_fs(f, cases[i].options);
        assert_int_equal(device_opens(f), cases[i].device);
        assert_int_equal(status_of_program(f, "/dev/null"), cases[i].program ? 0 : 126);
        assert_int_equal(status_of_program(f, secret), !cases[i].program ? 126
                                                       : cases[i].set_id ? 0
                                                                         : 1);
        unmount_fs(f);
    }
}

/* ---- Locks --------------------------------------------------------------------- */

static void flock_keeps_others_out(void **state)
{
    struct mount_fixture *f = *state;
    int first, second;

    write_file(in_mount(f, "file"), "content", 7);
    first = open(in_mount(f, "file"), O_RDWR | O_CLOEXEC);
    second = open(in_mount(f, "file"), O_RDWR | O_CLOEXEC);
    assert_success(flock(first, LOCK_SH | LOCK_NB));
    assert_success(flock(second, LOCK_SH | LOCK_NB));
    assert_errno(flock(second, LOCK_EX | LOCK_NB), EWOULDBLOCK);
    close(first);
    assert_success(flock(second, LOCK_EX | LOCK_NB));
    close(second);
}

static int lock_range(int fd, short type, off_t start, off_t size)
{
    struct flock lock = {
        .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = size};

    return fcntl(fd, F_SETLK, &lock);
}

static void posix_locks_keep_other_processes_out_of_a_range(void **state)
{
    struct mount_fixture *f = *state;
    int fd;

    write_file(in_mount(f, "file"), "content", 7);
    fd = open(in_mount(f, "file"), O_RDWR | O_CLOEXEC);
    assert_success(lock_range(fd, F_WRLCK, 0, 3));
    pid_t pid = fork();
    if (pid == 0) {
        bool kept_out = lock_range(fd, F_RDLCK, 2, 2) < 0 && errno == EAGAIN;
        _exit(kept_out && lock_range(fd, F_WRLCK, 3, 2) == 0 ? 0 : 1);
    }
    assert_int_equal(exit_status_of(pid), 0);
    close(fd);
}

/* ---- Limits -------------------------------------------------------------------- */

static void files_reach_16_tib_and_no_further(void **state)
{
    const off_t end = (off_t)1 << 44;
    struct mount_fixture *f = *state;
    int fd = open(in_mount(f, "file"), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    char found[1];

    assert_success(fd);
    assert_int_equal(pwrite(fd, "x", 1, end - 1), 1);
    assert_errno((int)pwrite(fd, "x", 1, end), EFBIG);
    assert_errno(ftruncate(fd, end + 1), EFBIG);
    assert_int_equal(pread(fd, found, 1, end - 1), 1);
    assert_int_equal(found[0], 'x');
    assert_success(ftruncate(fd, end));
    close(fd);
}

/* In one request and in several. Past the kernel's cache no answer can be short. */
static void a_write_is_cut_off_at_the_largest_size_and_fails_beyond(void **state)
{
    enum { LARGE = 3 << 20 };
    static char bytes[LARGE], found[LARGE];
    const off_t end = (off_t)1 << 44, rooms[] = {1, 4096, 5000, LARGE - 1};
    struct mount_fixture *f = *state;

    memset(bytes, 'x', sizeof(bytes));
    for (size_t i = 0; i < 8; i++) {
        int direct = i % 2 ? O_DIRECT : 0;
        int fd = open(in_mount(f, "file"), O_RDWR | O_CREAT | O_TRUNC | direct, 0644);
        const off_t room = rooms[i / 2], expected = direct ? -1 : room;
        struct stat status;

        assert_success(fd);
        assert_int_equal(pwrite(fd, bytes, LARGE, end - room), expected);
        if (direct)
            assert_int_equal(errno, EFBIG);
        assert_success(fstat(fd, &status));
        assert_int_equal(status.st_size, direct ? 0 : end);
        assert_int_equal(pread(fd, found, LARGE, end - room), direct ? 0 : room);
        if (!direct)
            assert_memory_equal(found, bytes, (size_t)room);
        assert_errno((int)pwrite(fd, bytes, LARGE, end), EFBIG);
        assert_int_equal(pwrite(fd, bytes, 0, end + 1), 0);
        close(fd);
    }
}

static void trees_are_deeper_than_paths_are_long(void **state)
{
    enum { DEPTH = 1000 };
    struct mount_fixture *f = *state;
    struct stat deepest;
    char number[24];
    int dir = open(f->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    for (int i = 0; i < DEPTH; i++) {
        assert_success(mkdirat(dir, "deep", 0755));
        int next = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        assert_success(next);
        close(dir);
        dir = next;
    }
    assert_errno(renameat(AT_FDCWD, in_mount(f, "deep"), dir, "loop"), EINVAL);
    assert_success(fstat(dir, &deepest));
    close(dir);
    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
    assert_said(f, "clean: 0 files, 1001 directories");
    assert_int_equal(pmfs(f, "fsck", "--repair", "--yes", f->pool, NULL), 0);
    assert_int_equal(pmfs(f, "dump", f->pool, NULL), 0);
    snprintf(number, sizeof(number), "%llu", (unsigned long long)deepest.st_ino);
    assert_int_equal(pmfs(f, "dump", f->pool, number, NULL), 0);
    mount_fs(f, NULL);
    assert_int_equal(run(f, "rm", "-rf", in_mount(f, "deep"), NULL), 0);
    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
}

/* ---- Listing ------------------------------------------------------------------- */

#define NAMES 600

static void positions_in_a_directory_stay_valid(void **state)
{
    static long positions[NAMES + 3]; /* the end, too */
    static char names[NAMES + 2][256];
    struct mount_fixture *f = *state;
    const struct dirent *entry;
    char name[32];
    int count = 0;

    assert_success(mkdir(in_mount(f, "dir"), 0755));
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "dir/name %d", i);
        write_file(in_mount(f, name), "", 0);
    }
    DIR *dir = opendir(in_mount(f, "dir"));
    assert_non_null(dir);
    for (;;) {
        positions[count] = telldir(dir);
        entry = readdir(dir);
        if (entry == NULL)
            break;
        snprintf(names[count++], sizeof(names[0]), "%s", entry->d_name);
    }
    assert_int_equal(count, NAMES + 2);
    /* Every other name goes, and as many come. */
    for (int i = 0; i < count; i += 2) {
        snprintf(name, sizeof(name), "dir/new %d", i);
        write_file(in_mount(f, name), "", 0);
        if (names[i][0] != '.')
            assert_success(unlinkat(dirfd(dir), names[i], 0));
    }
    for (int i = count - 1; i >= 0; i--) {
        seekdir(dir, positions[i]);
        entry = readdir(dir);
        assert_non_null(entry);
        if (i % 2 && names[i][0] != '.')
            assert_string_equal(entry->d_name, names[i]);
    }
    closedir(dir);
}

/* ---- Handles ------------------------------------------------------------------- */

struct handle {
    struct file_handle handle;
    unsigned char bytes[MAX_HANDLE_SZ];
};

static struct handle handle_of(const char *path)
{
    struct handle handle = {.handle.handle_bytes = MAX_HANDLE_SZ};
    int mount_id;

    assert_success(name_to_handle_at(AT_FDCWD, path, &handle.handle, &mount_id, 0));
    return handle;
}

static int open_handle(const struct mount_fixture *f, struct handle *handle)
{
    int mount = open(f->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = open_by_handle_at(mount, &handle->handle, O_RDONLY | O_CLOEXEC);
    int saved = errno;

    close(mount);
    errno = saved;
    return fd;
}

/* Soon: the kernel does not wait until the filesystem has heard of a close(). */
static void assert_goes_stale(const struct mount_fixture *f, struct handle *handle)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000 * 1000};
    int fd = open_handle(f, handle);

    for (int i = 0; fd >= 0 && i < 1000; i++) {
        close(fd);
        nanosleep(&pause, NULL);
        fd = open_handle(f, handle);
    }
    assert_errno(fd, ESTALE);
}

/* One thread takes the lowest free number. */
static void mount_single_threaded(struct mount_fixture *f)
{
    assert_int_equal(pmfs(f, "mount", "--single-thread", f->pool, f->mountpoint, NULL),
                     0);
}

static ino_t number_of(const char *path)
{
    struct stat status;

    assert_success(stat(path, &status));
    return status.st_ino;
}

static void a_handle_opens_its_file_and_never_another(void **state)
{
    struct mount_fixture *f = *state;
    struct handle handle, other;
    char found[3];

    if (geteuid() != 0)
        skip();
    mount_single_threaded(f);
    write_file(in_mount(f, "file"), "old", 3);
    handle = handle_of(in_mount(f, "file"));
    ino_t number = number_of(in_mount(f, "file"));
    unmount_fs(f);
    mount_single_threaded(f);
    int fd = open_handle(f, &handle);
    assert_success(fd);
    assert_int_equal(read(fd, found, 3), 3);
    assert_memory_equal(found, "old", 3);
    close(fd);
    assert_success(unlink(in_mount(f, "file")));
    assert_goes_stale(f, &handle);
    unmount_fs(f);
    mount_single_threaded(f);
    write_file(in_mount(f, "file"), "new", 3);
    assert_int_equal(number_of(in_mount(f, "file")), number);
    other = handle_of(in_mount(f, "file"));
    assert_int_equal(other.handle.handle_bytes, handle.handle.handle_bytes);
    assert_memory_not_equal(other.bytes, handle.bytes, handle.handle.handle_bytes);
    assert_errno(open_handle(f, &handle), ESTALE);
    unmount_fs(f);
    mount_single_threaded(f);
    assert_errno(open_handle(f, &handle), ESTALE);
    fd = open_handle(f, &other);
    assert_success(fd);
    assert_int_equal(read(fd, found, 3), 3);
    assert_memory_equal(found, "new", 3);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_mounted(every_rename_answers_as_on_tmpfs),
        test_mounted(every_nameless_file_is_as_on_tmpfs),
        test_mounted(nameless_file_is_freed_when_it_is_closed),
        test_mounted(a_name_that_is_replaced_is_never_missing),
        test_mounted(an_open_file_that_is_unlinked_leaves_no_other_name),
        test_mounted(every_call_with_a_name_answers_as_on_tmpfs),
        test_made(others_may_do_what_they_may_on_tmpfs),
        test_mounted(setgid_directories_give_their_group_as_on_tmpfs),
        test_mounted(access_control_lists_are_as_on_tmpfs),
        test_made(access_control_lists_let_in_whom_they_name),
        test_made(every_change_of_a_read_only_mount_answers_as_on_tmpfs),
        test_mounted(a_socket_and_a_fifo_connect_processes),
        test_made(options_say_what_special_files_and_programs_do),
        test_mounted(flock_keeps_others_out),
        test_mounted(posix_locks_keep_other_processes_out_of_a_range),
        test_mounted(files_reach_16_tib_and_no_further),
        test_mounted(a_write_is_cut_off_at_the_largest_size_and_fails_beyond),
        test_mounted(trees_are_deeper_than_paths_are_long),
        test_mounted(positions_in_a_directory_stay_valid),
        test_made(a_handle_opens_its_file_and_never_another),
    };

    skip_without_fuse();
    umask(022);
    memset(long_name, 'n', sizeof(long_name) - 1);
    memset(long_target, 't', sizeof(long_target) - 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
