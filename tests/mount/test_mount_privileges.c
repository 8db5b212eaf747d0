/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who takes which set-user-ID and set-group-ID bits from what, by which call: on the mount as
 * on tmpfs. And who may see which attributes.
 */
#include "tests/mount/mount_fixture.h"

#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>

/* ---- Callers ------------------------------------------------------------------- */

enum { OWNER = 1001, STRANGER = 1002, FILES_GROUP = 2001, OTHER_GROUP = 2002 };

struct caller {
    const char *name;
    uid_t uid;
    gid_t gid, also_gid;
    unsigned lost; /* a capability that root has not; 0, CAP_CHOWN: it has all */
    unsigned kept; /* one that another has; 0: none */
};

static const struct caller callers[] = {
    {.name = "root"},
    {.name = "root without CAP_FSETID", .lost = CAP_FSETID},
    {.name = "the owner, in the group", .uid = OWNER, .gid = FILES_GROUP},
    {.name = "the owner, in the group, too",
     .uid = OWNER,
     .gid = OTHER_GROUP,
     .also_gid = FILES_GROUP},
    {.name = "the owner, in another group", .uid = OWNER, .gid = OTHER_GROUP},
    {.name = "a stranger", .uid = STRANGER, .gid = OTHER_GROUP},
    {.name = "a stranger in the group", .uid = STRANGER, .gid = FILES_GROUP},
    {.name = "a stranger with CAP_FSETID",
     .uid = STRANGER,
     .gid = OTHER_GROUP,
     .kept = CAP_FSETID},
};

static void set_capabilities(uint64_t capabilities)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct data[2] = {
        {.effective = (uint32_t)capabilities, .permitted = (uint32_t)capabilities},
        {.effective = (uint32_t)(capabilities >> 32),
         .permitted = (uint32_t)(capabilities >> 32)},
    };

    if (syscall(SYS_capset, &header, data) < 0)
        _exit(255);
}

static uint64_t capabilities(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2];

    if (syscall(SYS_capget, &header, data) < 0)
        _exit(255);
    return (uint64_t)data[1].permitted << 32 | data[0].permitted;
}

/* In a process of its own. */
static void become(const struct caller *caller)
{
    if (setgroups(caller->also_gid != 0, &caller->also_gid) < 0 ||
        setgid(caller->gid) < 0 || prctl(PR_SET_KEEPCAPS, caller->kept != 0) < 0 ||
        setuid(caller->uid) < 0)
        _exit(255);
    if (caller->lost)
        set_capabilities(capabilities() & ~((uint64_t)1 << caller->lost));
    if (caller->kept)
        set_capabilities((uint64_t)1 << caller->kept);
}

/* ---- What they do -------------------------------------------------------------- */

/* Each works on "it" in the directory; a positive errno, or 0. */
typedef int change_fn(int dir);

static int open_it(int dir, int flags)
{
    return openat(dir, "it", flags | O_NONBLOCK | O_CLOEXEC);
}

static int result_of(long rc)
{
    return rc < 0 ? errno : 0;
}

static int overwrite(int dir)
{
    return result_of(write(open_it(dir, O_WRONLY), "x", 1));
}

static int append(int dir)
{
    return result_of(write(open_it(dir, O_WRONLY | O_APPEND), "x", 1));
}

static int cut(int dir)
{
    return result_of(ftruncate(open_it(dir, O_WRONLY), 3));
}

static int clear(int dir)
{
    return result_of(open_it(dir, O_WRONLY | O_TRUNC));
}

static int allocate(int dir)
{
    return result_of(fallocate(open_it(dir, O_WRONLY), 0, 0, 9000));
}

static int copy(int dir)
{
    loff_t from = 0, to = 4;
    int fd = open_it(dir, O_RDWR);

    return result_of(copy_file_range(fd, &from, fd, &to, 3, 0));
}

static int touch(int dir)
{
    return result_of(utimensat(dir, "it", NULL, 0));
}

static int give_to_owner(int dir)
{
    return result_of(fchownat(dir, "it", OWNER, (gid_t)-1, AT_SYMLINK_NOFOLLOW));
}

static int give_to_group(int dir)
{
    return result_of(fchownat(dir, "it", (uid_t)-1, OTHER_GROUP, AT_SYMLINK_NOFOLLOW));
}

/* Of who may not, it is not known here whether that is all he asks for: see the design. */
static int give_to_nobody(int dir)
{
    fchownat(dir, "it", (uid_t)-1, (gid_t)-1, AT_SYMLINK_NOFOLLOW);
    return 0;
}

static int set_list(int dir)
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, perm;
            uint32_t id;
        } entries[5];
    } list = {.version = 2,
              .entries = {{1, 7, UINT32_MAX},
                          {2, 7, 65534},
                          {4, 7, UINT32_MAX},
                          {16, 7, UINT32_MAX},
                          {32, 7, UINT32_MAX}}};

    return fchdir(dir) < 0 ? errno
                           : result_of(setxattr("it", "system.posix_acl_access", &list,
                                                sizeof(list), 0));
}

static int set_mode(int dir)
{
    return result_of(fchmodat(dir, "it", 06755, 0));
}

static const struct change {
    const char *name;
    change_fn *act;
    bool content;
} changes[] = {
    {"overwrites", overwrite, true},
    {"appends to", append, true},
    {"cuts", cut, true},
    {"clears", clear, true},
    {"allocates blocks of", allocate, true},
    {"copies inside", copy, true},
    {"touches", touch, false},
    {"gives its owner", give_to_owner, false},
    {"gives another group", give_to_group, false},
    {"gives nobody", give_to_nobody, false},
    {"sets an access list of", set_list, false},
    {"changes the mode of", set_mode, false},
};

/* ---- To what ------------------------------------------------------------------- */

static const mode_t modes[] = {
    S_IFREG | 04777, S_IFREG | 02777,  S_IFREG | 02767, S_IFREG | 06777,
    S_IFREG | 06767, S_IFREG | 0777,   S_IFDIR | 06777, S_IFDIR | 02767,
    S_IFIFO | 06777, S_IFSOCK | 02767, S_IFCHR | 06767,
};

static void make_it(int dir, mode_t mode)
{
    if (S_ISDIR(mode))
        assert_success(mkdirat(dir, "it", 0700));
    else
        assert_success(mknodat(dir, "it", (mode & S_IFMT) | 0700, 0));
    if (S_ISREG(mode)) {
        int fd = open_it(dir, O_WRONLY);

        assert_int_equal(write(fd, "content", 7), 7);
        close(fd);
    }
    assert_success(fchownat(dir, "it", OWNER, FILES_GROUP, 0));
    assert_success(fchmodat(dir, "it", mode & 07777, 0));
}

static int answer_to(const struct caller *caller, change_fn *act, int dir)
{
    pid_t pid = fork();

    if (pid == 0) {
        become(caller);
        _exit(act(dir));
    }
    int answer = exit_status_of(pid);
    assert_int_not_equal(answer, 255);
    return answer;
}

struct outcome {
    int answer;
    mode_t mode, mode_to_run; /* as exec() finds it, who may be answered from a cache */
};

static struct outcome outcome_of(int dir, const struct change *change,
                                 const struct caller *caller, mode_t mode)
{
    struct outcome outcome;
    struct statx cached;
    struct stat status;

    make_it(dir, mode);
    outcome.answer = answer_to(caller, change->act, dir);
    assert_success(statx(dir, "it", 0, STATX_MODE, &cached));
    assert_success(fstatat(dir, "it", &status, 0));
    outcome.mode_to_run = cached.stx_mode;
    outcome.mode = status.st_mode;
    assert_success(unlinkat(dir, "it", S_ISDIR(mode) ? AT_REMOVEDIR : 0));
    return outcome;
}

static int open_scene(const char *path)
{
    assert_success(mkdir(path, 0755));
    assert_success(chmod(path, 0777));
    int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_success(dir);
    return dir;
}

static int compare(int reference, int mounted, const struct change *change,
                   const struct caller *caller, mode_t mode)
{
    struct outcome expected = outcome_of(reference, change, caller, mode);
    struct outcome found = outcome_of(mounted, change, caller, mode);

    if (found.answer == expected.answer && found.mode == expected.mode &&
        found.mode_to_run == expected.mode)
        return 0;
    print_error("%s %s a file of mode %o: %s, %o (cached: %o); on tmpfs %s, %o\n",
                caller->name, change->name, (unsigned)mode, strerror(found.answer),
                (unsigned)found.mode, (unsigned)found.mode_to_run,
                strerror(expected.answer), (unsigned)expected.mode);
    return 1;
}

static void compare_all(struct mount_fixture *f)
{
    int reference = open_scene(in_dir(f, "scene"));
    int mounted = open_scene(in_mount(f, "scene"));
    int wrong = 0;

    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++)
        for (size_t j = 0; j < sizeof(callers) / sizeof(*callers); j++)
            for (size_t k = 0; k < sizeof(modes) / sizeof(*modes); k++)
                if (!changes[i].content || S_ISREG(modes[k]))
                    wrong +=
                        compare(reference, mounted, &changes[i], &callers[j], modes[k]);
    close(reference);
    close(mounted);
    assert_success(rmdir(in_dir(f, "scene")));
    assert_int_equal(wrong, 0);
}

static void privileges_go_as_on_tmpfs(void **state)
{
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    compare_all(f);
}

static void privileges_go_as_on_tmpfs_past_the_cache(void **state)
{
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other,direct_io");
    compare_all(f);
}

/* ---- Attributes ---------------------------------------------------------------- */

/* cap_net_raw, permitted and effective, as setcap(8) writes it. */
static const unsigned char net_raw[20] = {1, 0, 0, 2, 0, 0x20};

static void assert_capabilities_go(const struct mount_fixture *f, change_fn *act)
{
    int dir = open(f->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char found[64];

    make_it(dir, S_IFREG | 0777);
    assert_success(setxattr(in_mount(f, "it"), "security.capability", net_raw,
                            sizeof(net_raw), 0));
    assert_int_equal(answer_to(&callers[0], act, dir), 0);
    assert_errno(
        (int)getxattr(in_mount(f, "it"), "security.capability", found, sizeof(found)),
        ENODATA);
    assert_success(unlinkat(dir, "it", 0));
    close(dir);
}

/* By anybody: root, too. */
static void any_change_of_content_takes_capabilities(void **state)
{
    static const char *const options[] = {NULL, "direct_io"};
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < 2; i++) {
        mount_fs(f, options[i]);
        for (size_t k = 0; k < sizeof(changes) / sizeof(*changes); k++)
            if (changes[k].content)
                assert_capabilities_go(f, changes[k].act);
        assert_capabilities_go(f, give_to_nobody);
        unmount_fs(f);
    }
}

static int list_it(int dir)
{
    char names[64];

    return fchdir(dir) < 0 ? 254 : (int)listxattr("it", names, sizeof(names));
}

static void trusted_attributes_are_listed_by_capability_only(void **state)
{
    static const struct {
        struct caller caller;
        int size;
    } cases[] = {
        {{.name = "root"}, 10},
        {{.name = "root without", .lost = CAP_SYS_ADMIN}, 0},
        {{.name = "without", .uid = STRANGER, .gid = OTHER_GROUP}, 0},
        {{.name = "with", .uid = STRANGER, .gid = OTHER_GROUP, .kept = CAP_SYS_ADMIN},
         10},
    };
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    int dir = open_scene(in_mount(f, "scene"));
    make_it(dir, S_IFREG | 0777);
    assert_success(setxattr(in_mount(f, "scene/it"), "trusted.a", "x", 1, 0));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_int_equal(answer_to(&cases[i].caller, list_it, dir), cases[i].size);
    close(dir);
}

/* ---- Answers ------------------------------------------------------------------- */

static const struct setting {
    const char *name;
    size_t size;
    int flags;
    bool remove;
} settings[] = {
    {"trusted.a", 1, XATTR_CREATE | XATTR_REPLACE, false},
    {"trusted.a", 1, 4, false},
    {"trusted.a", 1, XATTR_REPLACE, false},
    {"trusted.a", 0, 0, true},
    {"trusted.a", 1, XATTR_CREATE, false},
    {"trusted.a", 1, XATTR_CREATE, false},
    {"trusted.a", 1, XATTR_CREATE | XATTR_REPLACE, false},
    {"system.posix_acl_access", 0, 0, true},
    {"system.posix_acl_access", 28, XATTR_REPLACE, false},
    {"system.posix_acl_access", 28, XATTR_CREATE | XATTR_REPLACE, false},
    {"system.posix_acl_access", 0, 0, false},
    {"system.posix_acl_default", 0, 0, true},
    {"system.posix_acl_default", 28, XATTR_REPLACE, false},
};

static int set(const char *path, const struct setting *setting)
{
    static const uint16_t minimal[] = {2, 0,      1,      7,  0xffff, 0xffff, 4,
                                       5, 0xffff, 0xffff, 32, 5,      0xffff, 0xffff};

    if (setting->remove)
        return result_of(lremovexattr(path, setting->name));
    return result_of(
        lsetxattr(path, setting->name, minimal, setting->size, setting->flags));
}

static void attributes_are_set_and_removed_as_on_tmpfs(void **state)
{
    static const mode_t types[] = {S_IFREG, S_IFDIR, S_IFIFO, S_IFLNK};
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    for (size_t i = 0; i < sizeof(types) / sizeof(*types); i++) {
        const char *const paths[] = {in_dir(f, "it"), in_mount(f, "it")};

        for (size_t k = 0; k < 2; k++) {
            if (types[i] == S_IFDIR)
                assert_success(mkdir(paths[k], 0755));
            else if (types[i] == S_IFLNK)
                assert_success(symlink("nowhere", paths[k]));
            else
                assert_success(mknod(paths[k], types[i] | 0644, 0));
        }
        for (size_t k = 0; k < sizeof(settings) / sizeof(*settings); k++) {
            int expected = set(paths[0], &settings[k]);
            int found = set(paths[1], &settings[k]);

            if (found != expected)
                print_error("type %o, %s, step %zu\n", types[i], settings[k].name, k);
            assert_int_equal(found, expected);
        }
        assert_success(remove(paths[0]));
        assert_success(remove(paths[1]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_made(privileges_go_as_on_tmpfs),
        test_made(privileges_go_as_on_tmpfs_past_the_cache),
        test_made(any_change_of_content_takes_capabilities),
        test_made(trusted_attributes_are_listed_by_capability_only),
        test_mounted(attributes_are_set_and_removed_as_on_tmpfs),
    };

    skip_without_fuse();
    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
