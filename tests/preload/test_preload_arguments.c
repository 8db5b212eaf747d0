/* SPDX-License-Identifier: BSD-3-Clause */
/* test_preload_arguments.c - numbers and flags that a call must refuse, and those next to
 * them that it must not. */
#include "tests/preload/sides.h"

#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/statvfs.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/xattr.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* What the compiler would warn of, it must not know. */
static volatile const long negative = -1;

static const off_t offsets[] = {LONG_MIN, -1, 0, 3, 4096, LONG_MAX - 3, LONG_MAX};

/* How far files can reach differs. */
#define FAR 4096

/* Where versions of Linux answer with different errnos. */
#define TRY_REFUSED(call) note(#call ": %s", (call) < 0 ? "refused" : "done")

/* ---- Offsets and sizes ----------------------------------------------------------- */

static void offsets_of_reads_and_writes(void)
{
    static const size_t sizes[] = {0, 1, 8, SSIZE_MAX, (size_t)SSIZE_MAX + 1, SIZE_MAX};
    static char buffer[64];
    const struct iovec vector = {buffer, 8};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    TRY(write(fd, "0123456789", 10));
    for (size_t i = 0; i < COUNT(offsets); i++) {
        note("offset %ld", (long)offsets[i]);
        TRY(pread(fd, buffer, 8, offsets[i]));
        if (offsets[i] > FAR)
            continue;
        for (size_t j = 0; j < COUNT(sizes); j++) {
            TRY(pread(fd, buffer, sizes[j], offsets[i]));
            if (sizes[j] <= 8 || sizes[j] > SSIZE_MAX)
                TRY(pwrite(fd, buffer, sizes[j], offsets[i]));
        }
        TRY(preadv(fd, &vector, 1, offsets[i]));
        TRY(pwritev(fd, &vector, 1, offsets[i]));
        TRY(preadv2(fd, &vector, 1, offsets[i], 0));
        TRY(pwritev2(fd, &vector, 1, offsets[i], 0));
    }
    note_name("file");
    lseek(fd, 0, SEEK_SET);
    TRY(read(fd, buffer, (size_t)negative));
    TRY(write(fd, buffer, (size_t)negative));
    TRY(lseek(fd, 0, SEEK_CUR));
    close(fd);
}

static void vectors_of_wrong_sizes(void)
{
    static char buffer[64];
    const struct iovec overflow[] = {{buffer, SSIZE_MAX}, {buffer, 8}};
    const struct iovec huge[] = {{buffer, 8}, {buffer, (size_t)SSIZE_MAX + 1}};
    const struct iovec good[] = {{buffer, 8}, {buffer, 8}};
    static const int flags[] = {0, RWF_DSYNC, RWF_SYNC, RWF_HIPRI, 0x1000, -1};
    static const int counts[] = {INT_MIN, -1, 0, 2, IOV_MAX + 1, INT_MAX};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    TRY(write(fd, "0123456789", 10));
    TRY(readv(fd, huge, 2));
    TRY(writev(fd, huge, 2));
    TRY(preadv(fd, huge, 2, 0));
    TRY(writev(fd, overflow + 1, 1));
    for (size_t i = 0; i < COUNT(counts); i++) {
        TRY(readv(fd, good, counts[i]));
        TRY(writev(fd, good, counts[i]));
        TRY(preadv(fd, good, counts[i], 0));
        TRY(pwritev(fd, good, counts[i], 0));
    }
    for (size_t i = 0; i < COUNT(flags); i++) {
        TRY(preadv2(fd, good, 2, 0, flags[i]));
        TRY(pwritev2(fd, good, 2, 0, flags[i]));
        TRY(preadv2(fd, good, 2, -2, flags[i]));
        TRY(pwritev2(fd, good, 2, -2, flags[i]));
    }
    note_name("file");
    close(fd);
}

/* They are in Linux before they are in headers; what they ask for is not everywhere. */
enum { NOAPPEND = 0x20 };

static bool has_noappend(void)
{
    FILE *file = tmpfile();
    ssize_t rc = pwritev2(fileno(file), &(struct iovec){"x", 1}, 1, 0, NOAPPEND);

    fclose(file);
    return rc == 1;
}

static void flags_of_vectors(void)
{
    char buffer[] = "ab", found[2];
    const struct iovec pieces[] = {{buffer, 1}, {buffer + 1, 1}};
    const struct iovec room[] = {{found, 1}, {found + 1, 1}};
    static const int flags[] = {
        0,          RWF_HIPRI, RWF_DSYNC,           RWF_SYNC,
        RWF_APPEND, NOAPPEND,  NOAPPEND | RWF_SYNC, NOAPPEND | RWF_APPEND,
        0x1000};

    for (size_t i = 0; i < COUNT(flags); i++)
        for (int appends = 0; appends < 2; appends++) {
            put("file", "0123456789");
            int fd = open(path("file"), O_RDWR | (appends ? O_APPEND : 0));

            if (flags[i] & NOAPPEND && !has_noappend())
                continue;
            note("flags %x appends %d", (unsigned)flags[i], appends);
            TRY(pwritev2(fd, pieces, 2, 3, flags[i]));
            TRY(pwritev2(fd, pieces, 1, 4, flags[i]));
            TRY(pwritev2(fd, pieces, 2, -1, flags[i]));
            TRY(lseek(fd, 0, SEEK_CUR));
            TRY(pwritev2(fd, pieces, 0, 3, flags[i]));
            TRY(preadv2(fd, room, 2, 3, flags[i]));
            TRY(preadv2(fd, room, 0, 3, flags[i]));
            TRY(pwritev2(fd, pieces, (int)negative, 3, flags[i]));
            TRY(preadv2(fd, room, (int)negative, -2, flags[i]));
            note_content("file");
            close(fd);
        }
}

static void offsets_of_seeks(void)
{
    static const int ways[] = {SEEK_SET,  SEEK_CUR, SEEK_END, SEEK_DATA,
                               SEEK_HOLE, 5,        99,       -1};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    TRY(write(fd, "0123456789", 10));
    for (size_t i = 0; i < COUNT(ways); i++)
        for (size_t j = 0; j < COUNT(offsets); j++) {
            if (offsets[j] > FAR)
                continue;
            lseek(fd, 2, SEEK_SET);
            note("offset %ld way %d", (long)offsets[j], ways[i]);
            TRY(lseek(fd, offsets[j], ways[i]));
            TRY(lseek(fd, 0, SEEK_CUR));
        }
    TRY(lseek(fd, 2, SEEK_SET));
    TRY(lseek(fd, LONG_MAX, SEEK_CUR));
    TRY(lseek(fd, LONG_MAX, SEEK_END));
    TRY(lseek(fd, LONG_MIN, SEEK_CUR));
    close(fd);
}

static void ranges(void)
{
    static const off_t sizes[] = {LONG_MIN, -1, 0, 1, 5000};
    static const int modes[] = {0,
                                FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_PUNCH_HOLE,
                                FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_COLLAPSE_RANGE,
                                FALLOC_FL_INSERT_RANGE,
                                FALLOC_FL_COLLAPSE_RANGE | FALLOC_FL_KEEP_SIZE,
                                FALLOC_FL_PUNCH_HOLE | FALLOC_FL_ZERO_RANGE,
                                0x1000,
                                INT_MIN,
                                -1};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    for (size_t i = 0; i < COUNT(offsets); i++)
        for (size_t j = 0; j < COUNT(sizes); j++) {
            if (offsets[i] > FAR)
                continue;
            for (size_t k = 0; k < COUNT(modes); k++) {
                note("offset %ld size %ld mode %x", (long)offsets[i], (long)sizes[j],
                     (unsigned)modes[k]);
                TRY(fallocate(fd, modes[k], offsets[i], sizes[j]));
            }
            TRY(posix_fallocate(fd, offsets[i], sizes[j]));
            TRY(posix_fadvise(fd, offsets[i], sizes[j], POSIX_FADV_WILLNEED));
            note_name("file");
        }
    for (size_t j = 0; j < COUNT(sizes); j++) {
        TRY(ftruncate(fd, sizes[j]));
        TRY(truncate(path("file"), sizes[j]));
    }
    for (int advice = -1; advice < 9; advice++)
        TRY(posix_fadvise(fd, 0, 0, advice));
    close(fd);
    fd = open(path("file"), O_RDONLY);
    for (size_t j = 0; j < COUNT(sizes); j++) {
        TRY(ftruncate(fd, sizes[j]));
        TRY(fallocate(fd, 0, 0, sizes[j]));
    }
    close(fd);
    TRY(fallocate(fd, 0, 0, -1));
    TRY(ftruncate(fd, -1));
    fd = open(now->dir, O_RDONLY);
    TRY(ftruncate(fd, -1));
    TRY(ftruncate(fd, 0));
    TRY(fallocate(fd, 0, 0, 1));
    TRY(pread(fd, &(char){0}, 1, 0));
    TRY(pread(fd, &(char){0}, 1, -1));
    close(fd);
}

static void copies(void)
{
    int from, to;

    put("from", "0123456789");
    from = open(path("from"), O_RDONLY);
    to = open(path("to"), O_RDWR | O_CREAT, 0644);
    for (size_t i = 0; i < COUNT(offsets); i++) {
        off_t at = offsets[i], to_at = 0;

        if (at > FAR)
            continue;
        note("offset %ld", (long)at);
        TRY(sendfile(to, from, &at, 4));
        note("at %ld", (long)at);
        at = offsets[i];
        TRY_REFUSED(copy_file_range(from, &at, to, &to_at, 4, 0));
        note("at %ld %ld", (long)at, (long)to_at);
        to_at = offsets[i];
        at = 0;
        TRY_REFUSED(copy_file_range(from, &at, to, &to_at, 4, 0));
        note("at %ld %ld", (long)at, (long)to_at);
    }
    for (unsigned flags = 1; flags; flags <<= 8)
        TRY(copy_file_range(from, NULL, to, NULL, 4, flags));
    TRY(copy_file_range(from, NULL, to, NULL, 0, 0));
    TRY(copy_file_range(from, NULL, from, NULL, 4, 0));
    TRY(copy_file_range(to, &(off_t){0}, to, &(off_t){2}, 4, 0));
    TRY(sendfile(from, from, NULL, 4));
    TRY(sendfile(to, from, NULL, 0));
    close(to);
    to = open(path("to"), O_WRONLY | O_APPEND);
    TRY(copy_file_range(from, &(off_t){0}, to, NULL, 4, 0));
    TRY(sendfile(to, from, &(off_t){0}, 4));
    TRY(copy_file_range(to, &(off_t){0}, from, NULL, 4, 0));
    close(to);
    to = open(now->dir, O_RDONLY);
    TRY(copy_file_range(from, &(off_t){0}, to, NULL, 4, 0));
    TRY(copy_file_range(to, &(off_t){0}, from, NULL, 4, 0));
    close(to);
    close(from);
    note_content("to");
}

/* ---- Flags ----------------------------------------------------------------------- */

/* One bit at a time, and none, and all. */
static int flag_number(int number)
{
    if (number < 0)
        return 0;
    return number < 32 ? (int)(1u << number) : -1;
}

static void flags_of_names(void)
{
    struct stat stat;

    for (int bit = -1; bit <= 32; bit++) {
        int flag = flag_number(bit);
        int dir = open(now->dir, O_RDONLY | O_DIRECTORY);

        put("file", "text");
        symlink("file", path("link"));
        mkdir(path("dir"), 0755);
        note("flag %x", (unsigned)flag);
        /* An empty path is not what is looked at. */
        TRY(fstatat(dir, "link", &stat, flag & ~AT_NO_AUTOMOUNT));
        TRY(faccessat(dir, "link", R_OK, flag));
        TRY(fchownat(dir, "link", (uid_t)-1, (gid_t)-1, flag));
        TRY(linkat(dir, "link", dir, "linked", flag));
        TRY(utimensat(dir, "link", NULL, flag));
        TRY(fchmodat(dir, "file", 0600, flag & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH)));
        TRY(unlinkat(dir, "dir", flag));
        TRY(unlinkat(dir, "linked", flag));
        TRY(unlinkat(dir, "file", flag));
        unlink(path("file"));
        unlink(path("link"));
        unlink(path("linked"));
        rmdir(path("dir"));
        close(dir);
    }
}

static void flags_of_renames(void)
{
    for (unsigned flags = 0; flags < 16; flags++) {
        int dir = open(now->dir, O_RDONLY | O_DIRECTORY);

        put("a", "a");
        put("b", "b");
        note("flags %x", flags);
        TRY(renameat2(dir, "a", dir, "b", flags));
        note_name("a");
        note_name("b");
        TRY(renameat2(dir, "a", dir, "c", flags));
        note_name("a");
        note_name("c");
        TRY(renameat2(dir, "none", dir, "b", flags));
        unlink(path("a"));
        unlink(path("b"));
        unlink(path("c"));
        close(dir);
    }
}

/* Which of two mistakes is told. */
static void mistakes_in_both_names(void)
{
    static char too_long[NAME_MAX + 2], in_none[NAME_MAX + 8], below[NAME_MAX + 8];
    const char *const names[] = {"file", "none",      "none/x", too_long,
                                 below,  in_none,     "dir",    "file/x",
                                 "",     "../none/x", "link/x", "link"};
    int dir = open(now->dir, O_RDONLY | O_DIRECTORY);

    memset(too_long, 'n', NAME_MAX + 1);
    snprintf(in_none, sizeof(in_none), "none/%s", too_long);
    snprintf(below, sizeof(below), "%s/x", too_long);
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t j = 0; j < COUNT(names); j++) {
            put("file", "text");
            mkdir(path("dir"), 0755);
            symlink(too_long, path("link"));
            note("%zu %zu", i, j);
            TRY(renameat2(dir, names[i], dir, names[j], 0));
            TRY(linkat(dir, names[i], dir, names[j], 0));
            unlinkat(dir, names[j], 0);
            unlinkat(dir, names[j], AT_REMOVEDIR);
        }
    close(dir);
}

static void note_mode(int fd)
{
    struct stat stat;

    assert_int_equal(fstat(fd, &stat), 0);
    note("mode %o", stat.st_mode);
}

/* What becomes of set-ID bits, for root and for others in and out of the group. */
static void set_id_bits(void)
{
    static const mode_t modes[] = {02755, 02745, 06711, 06600, 04755, 02000};
    static const struct {
        uid_t uid;
        gid_t gid;
    } who[] = {{0, 0}, {1001, 50}, {1001, 60}};

    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    note("as root: %d", geteuid() == 0);
    for (size_t i = 0; geteuid() == 0 && i < COUNT(who); i++)
        for (size_t j = 0; j < COUNT(modes); j++) {
            assert_int_equal(fchown(fd, who[i].uid, 50), 0);
            assert_int_equal(fchmod(fd, modes[j]), 0);
            assert_int_equal(setegid(who[i].gid), 0);
            assert_int_equal(seteuid(who[i].uid), 0);
            TRY(fchown(fd, (uid_t)-1, (gid_t)-1));
            note_mode(fd);
            TRY(fchmod(fd, modes[j]));
            note_mode(fd);
            assert_int_equal(seteuid(0), 0);
            assert_int_equal(setegid(0), 0);
        }
    close(fd);
}

/* What programs ask of any descriptor. */
static void questions_to_descriptors(void)
{
    static const int flags[] = {O_RDWR | O_CREAT, O_RDONLY | O_DIRECTORY, O_PATH};
    static const char *const names[] = {"file", "dir", "file"};
    int other;

    mkdir(path("dir"), 0755);
    put("file", "text");
    other = open(path("file"), O_RDONLY);
    for (size_t i = 0; i < COUNT(flags); i++) {
        int fd = TRY_FD(open(path(names[i]), flags[i], 0644));
        int value = 1;
        struct stat stat;
        int64_t size = 0;
        struct fiemap map = {.fm_length = 100};

        TRY(ioctl(fd, FIONBIO, &value));
        TRY(fcntl(fd, F_GETFL) & O_NONBLOCK);
        value = 0;
        TRY(ioctl(fd, FIONBIO, &value));
        TRY(fcntl(fd, F_GETFL) & O_NONBLOCK);
        TRY(ioctl(fd, FIGETBSZ, &value));
        note("%d", value);
        if (TRY(ioctl(fd, FIOQSIZE, &size)) == 0 && fstat(fd, &stat) == 0)
            note("%d", stat.st_blocks * 512 == size);
        value = 0;
        TRY(ioctl(fd, FIBMAP, &value) == 0); /* root only: why it fails may differ */
        TRY(ioctl(fd, FS_IOC_FIEMAP, &map));
        TRY(ioctl(fd, FICLONE, other));
        TRY(ioctl(fd, TIOCGWINSZ, &map));
        TRY(fcntl(fd, F_GETOWN));
        TRY(fcntl(fd, F_SETOWN, getpid()));
        TRY(fcntl(fd, F_GETOWN) == getpid());
        TRY(fcntl(fd, F_SETOWN, -getpgrp()));
        TRY(fcntl(fd, F_GETOWN) == -getpgrp());
        TRY(fcntl(fd, F_SETSIG, 10));
        TRY(fcntl(fd, F_GETSIG));
        TRY(fcntl(fd, F_SETSIG, 100));
        TRY(fcntl(fd, F_GETPIPE_SZ));
        TRY(close(fd));
    }
    close(other);
}

/* By the path of a descriptor. */
static void use_path_of(const char *name)
{
    static const int flags[] = {O_RDONLY,
                                O_RDWR,
                                O_WRONLY | O_APPEND,
                                O_WRONLY | O_CREAT | O_TRUNC,
                                O_RDONLY | O_DIRECTORY,
                                O_RDWR | O_CREAT | O_EXCL,
                                O_PATH};
    struct statvfs filesystem;
    struct stat stat;

    for (size_t i = 0; i < COUNT(flags); i++) {
        int fd = TRY_FD(open(name, flags[i], 0644));

        if (fd < 0)
            continue;
        TRY(fcntl(fd, F_GETFL));
        TRY(write(fd, "more", 4));
        TRY(close(fd));
        note_content("file");
    }
    FILE *stream = TRY_POINTER(fopen(name, "a"));

    if (stream) {
        TRY(fputs("!", stream) >= 0);
        fclose(stream);
    }
    TRY(lstat(name, &stat) == 0 && S_ISLNK(stat.st_mode));
    TRY(chmod(name, 0666)); /* as /dev/null has it */
    TRY(chown(name, 0, 0));
    TRY(utimensat(AT_FDCWD, name, (struct timespec[2]){{5, 0}, {6, 0}}, 0));
    TRY(fstatat(AT_FDCWD, name, &stat, 0));
    note_stat("file", &stat);
    TRY(stat.st_mtime);
    TRY(access(name, W_OK));
    TRY(statvfs(name, &filesystem));
    stream = TRY_POINTER(fopen(name, "r"));
    TRY(fgetc(stream));
    fclose(stream);
}

static void paths_of_descriptors(void)
{
    static const char *const forms[] = {"/proc/self/fd/%d", "/dev/fd/%d",
                                        "/proc/thread-self/fd/%d"};
    struct stat before, after;
    char name[64];
    int fd, dir = open(now->dir, O_RDONLY | O_DIRECTORY), kept = dup(STDIN_FILENO);

    assert_int_equal(stat("/dev/null", &before), 0);
    put("file", "text");
    fd = open(path("file"), O_RDONLY);
    for (size_t i = 0; i < COUNT(forms); i++) {
        snprintf(name, sizeof(name), forms[i], fd);
        use_path_of(name);
        snprintf(name, sizeof(name), forms[i], dir);
        TRY_FD(open(name, O_RDWR));
        close(TRY_FD(open(name, O_RDONLY)));
    }
    snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), fd);
    use_path_of(name);
    dup2(fd, STDIN_FILENO);
    use_path_of("/dev/stdin");
    dup2(kept, STDIN_FILENO);
    close(kept);
    close(fd);
    close(dir);
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_int_equal(after.st_mode, before.st_mode);
    assert_int_equal(after.st_uid, before.st_uid);
    assert_int_equal(after.st_mtime, before.st_mtime);
}

/* Of files without a name. */
static void flags_of_nameless(void)
{
    static const int flags[] = {O_RDONLY,
                                O_WRONLY,
                                O_RDWR,
                                O_ACCMODE,
                                O_RDWR | O_EXCL,
                                O_RDWR | O_CREAT,
                                O_RDWR | O_TRUNC,
                                O_RDONLY | O_TRUNC,
                                O_RDWR | O_NOFOLLOW,
                                O_RDWR | O_APPEND | O_CLOEXEC,
                                O_PATH};
    static const char *const names[] = {"dir", "link", "file", "none", "dir/", "."};

    mkdir(path("dir"), 0755);
    put("file", "text");
    symlink("dir", path("link"));
    for (size_t i = 0; i < COUNT(flags); i++)
        for (size_t j = 0; j < COUNT(names); j++) {
            note("flags %x of %s", (unsigned)flags[i], names[j]);
            int fd = TRY_FD(open(path(names[j]), O_TMPFILE | flags[i], 0640));
            struct stat stat;

            if (fd < 0)
                continue;
            if (TRY(fstat(fd, &stat)) == 0)
                note_stat("nameless", &stat);
            TRY(fcntl(fd, F_GETFL));
            TRY(write(fd, "text", 4));
            TRY(linkat(fd, "", AT_FDCWD, path("linked"), AT_EMPTY_PATH));
            note_name("linked");
            unlink(path("linked"));
            close(fd);
        }
}

static void flags_of_statx(void)
{
    static const unsigned masks[] = {0, STATX_BASIC_STATS, STATX__RESERVED, 0x7fffffff};
    int dir = open(now->dir, O_RDONLY | O_DIRECTORY);
    struct statx found;

    put("file", "text");
    for (int bit = -1; bit <= 32; bit++) {
        int flag = flag_number(bit);
        note("flag %x", (unsigned)flag);
        for (size_t i = 0; i < COUNT(masks); i++)
            TRY(statx(dir, "file", flag, masks[i], &found));
    }
    TRY(statx(dir, "", AT_EMPTY_PATH, 0, &found));
    TRY(statx(dir, "", 0, 0, &found));
    TRY(statx(dir, "file", AT_STATX_FORCE_SYNC | AT_STATX_DONT_SYNC, 0, &found));
    close(dir);
}

static void modes_of_access(void)
{
    put("file", "text");
    for (int mode = -1; mode < 20; mode++) {
        note("mode %d", mode);
        TRY(access(path("file"), mode));
        TRY(access(path("none"), mode));
        TRY(eaccess(path("file"), mode));
    }
}

static void types_of_nodes(void)
{
    for (mode_t type = 0; type <= S_IFMT; type += 010000) {
        note("type %o", type);
        if (type == S_IFCHR || type == S_IFBLK)
            continue; /* who may make them depends */
        TRY(mknod(path("node"), type | 0644, 0));
        TRY(mknod(path("node"), type | 0644, 0));
        unlink(path("node"));
    }
    TRY(mkdir(path("a"), 0177777));
    note_name("a");
    TRY(mkdir(path("b"), 01777));
    note_name("b");
    TRY(symlink("", path("c")));
    TRY(chmod(path("a"), 0177777));
    note_name("a");
}

static void times_that_are_none(void)
{
    static const long ns[] = {LONG_MIN,   -1,        0,          999999999,
                              1000000000, UTIME_NOW, UTIME_OMIT, LONG_MAX};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    for (size_t i = 0; i < COUNT(ns); i++)
        for (size_t j = 0; j < COUNT(ns); j++) {
            const struct timespec times[] = {{1, ns[i]}, {2, ns[j]}};

            note("%ld %ld", ns[i], ns[j]);
            TRY(futimens(fd, times));
            TRY(utimensat(AT_FDCWD, path("file"), times, 0));
            TRY(utimensat(AT_FDCWD, path("none"), times, 0));
        }
    static const long us[] = {LONG_MIN, -1, 0, 999999, 1000000};

    for (size_t i = 0; i < COUNT(us); i++) {
        const struct timeval times[] = {{1, us[i]}, {2, 0}};

        note("%ld us", us[i]);
        TRY(utimes(path("file"), times));
        TRY(lutimes(path("file"), times));
        TRY(futimesat(AT_FDCWD, path("file"), times));
    }
    close(fd);
}

static void attributes_that_are_none(void)
{
    static char long_name[300], large[70000];
    static const char *names[] = {"user.a", "user.",    "user",   "",
                                  "none.a", "system.a", long_name};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    snprintf(long_name, sizeof(long_name), "user.%0280d", 0);
    for (size_t i = 0; i < COUNT(names); i++) {
        note("name %.20s", names[i]);
        for (int bit = -1; bit <= 32; bit++) {
            int flag = flag_number(bit);
            TRY(setxattr(path("file"), names[i], "v", 1, flag));
            TRY(fsetxattr(fd, names[i], "v", 1, flag));
        }
        TRY(getxattr(path("file"), names[i], large, 0));
        TRY(getxattr(path("file"), names[i], large, 1));
        TRY(fgetxattr(fd, names[i], large, sizeof(large)));
        TRY(removexattr(path("file"), names[i]));
        TRY(fremovexattr(fd, names[i]));
    }
    TRY(setxattr(path("file"), "user.large", large, 65537, 0));
    TRY(setxattr(path("file"), "user.large", large, 0, 0));
    TRY(setxattr(path("file"), "user.large", large, 1, XATTR_CREATE | XATTR_REPLACE));
    TRY(setxattr(path("none"), "user.large", large, 1, 99));
    TRY(listxattr(path("file"), large, 1));
    TRY(listxattr(path("file"), large, 0));
    close(fd);
}

struct acl_entry {
    uint16_t tag, permissions;
    uint32_t id;
};

/* Flags ask whether there is an attribute; of an access control list they do not. */
static void flags_of_access_control_lists(void)
{
    static const int flags[] = {0, XATTR_CREATE, XATTR_REPLACE,
                                XATTR_CREATE | XATTR_REPLACE, 4};
    static const struct {
        uint32_t version;
        struct acl_entry entries[5];
    } acl = {2,
             {{1, 6, UINT32_MAX},
              {2, 4, 1001},
              {4, 4, UINT32_MAX},
              {16, 4, UINT32_MAX},
              {32, 0, UINT32_MAX}}};
    static const char *const names[] = {"system.posix_acl_access",
                                        "system.posix_acl_default"};
    static const char *const files[] = {"file", "dir", "link", "none"};
    char value[64];

    put("file", "text");
    mkdir(path("dir"), 0755);
    symlink("none", path("link"));
    for (size_t i = 0; i < COUNT(names); i++)
        for (size_t j = 0; j < COUNT(files); j++)
            for (size_t k = 0; k < COUNT(flags); k++) {
                note("%s of %s flags %x", names[i], files[j], (unsigned)flags[k]);
                TRY(removexattr(path(files[j]), names[i]));
                TRY(setxattr(path(files[j]), names[i], &acl, sizeof(acl), flags[k]));
                TRY(setxattr(path(files[j]), names[i], &acl, sizeof(acl), flags[k]));
                TRY(getxattr(path(files[j]), names[i], value, sizeof(value)));
                TRY(lsetxattr(path(files[j]), names[i], &acl, sizeof(acl), flags[k]));
                TRY(lgetxattr(path(files[j]), names[i], value, sizeof(value)));
                TRY(lremovexattr(path(files[j]), names[i]));
                TRY(setxattr(path(files[j]), names[i], NULL, 0, flags[k]));
                TRY(setxattr(path(files[j]), names[i], &acl, 4, flags[k]));
                TRY(setxattr(path(files[j]), names[i], &acl, 3, flags[k]));
                note_name(files[j]);
            }
}

/* Two things are wrong at a time: what is said must be the same one. */
static void what_is_wrong_first(void)
{
    static const char *const names[] = {"none",  "none/x", "file/x", "loop", "loop/x",
                                        "file/", "dir/",   "dir",    ""};
    static const struct timespec bad[] = {{1, -1}, {1, 0}};
    static const struct timespec omitted[] = {{1, UTIME_OMIT}, {1, UTIME_OMIT}};
    const int wrong = 0x40000000;
    static char buffer[64], long_name[300];
    struct stat stat;
    struct statx statx_found;

    put("file", "text");
    mkdir(path("dir"), 0755);
    symlink("loop", path("loop"));
    memset(long_name, 'x', sizeof(long_name) - 1);
    for (size_t i = 0; i < COUNT(names); i++) {
        const char *name = *names[i] ? path(names[i]) : "";
        int dir = open(now->dir, O_RDONLY | O_DIRECTORY);

        note("name %s", names[i]);
        TRY_FD(open(name, O_TMPFILE | O_RDONLY, 0600));
        TRY_FD(open(name, O_TMPFILE | O_RDWR | O_CREAT, 0600));
        TRY(unlinkat(dir, name, wrong));
        TRY(linkat(dir, name, dir, "new", wrong));
        TRY(linkat(dir, "file", dir, name, wrong));
        TRY(linkat(dir, name, dir, "file", 0));
        TRY(renameat2(dir, name, dir, "new", (unsigned)wrong));
        TRY(renameat2(dir, "file", dir, name, RENAME_NOREPLACE | RENAME_EXCHANGE));
        TRY(fchownat(dir, name, 0, 0, wrong));
        TRY(fchmodat(dir, name, 0600, wrong));
        TRY(utimensat(dir, name, NULL, wrong));
        TRY(utimensat(dir, name, bad, 0));
        TRY(utimensat(dir, name, bad, wrong));
        TRY(utimensat(dir, name, omitted, 0));
        TRY(faccessat(dir, name, 99, 0));
        TRY(faccessat(dir, name, R_OK, wrong));
        TRY(mknodat(dir, name, S_IFDIR | 0600, 0));
        TRY(mknodat(dir, name, 0150000, 0));
        TRY(symlinkat("", dir, name));
        TRY(truncate(name, -1));
        TRY(readlink(name, buffer, 0));
        TRY(statx(dir, name, 0, STATX__RESERVED, &statx_found));
        if (*name) { /* the path is looked at, but not what it leads to */
            TRY(fstatat(dir, name, &stat, wrong));
            TRY(statx(dir, name, wrong, 0, &statx_found));
        }
        TRY_REFUSED(setxattr(name, "user.a", "v", 1, 99));
        TRY_REFUSED(setxattr(name, "", "v", 1, 0));
        TRY_REFUSED(getxattr(name, "", buffer, 1));
        TRY_REFUSED(removexattr(name, long_name));
        close(dir);
    }
}

static void what_is_wrong_first_of_descriptors(void)
{
    static const int flags[] = {O_RDONLY, O_WRONLY, O_RDWR, O_RDONLY | O_DIRECTORY};
    static char buffer[8];
    const struct iovec pieces = {buffer, 8};

    put("file", "text");
    for (size_t i = 0; i < COUNT(flags); i++) {
        int fd = open(flags[i] & O_DIRECTORY ? now->dir : path("file"), flags[i]);

        note("flags %x", (unsigned)flags[i]);
        TRY(pread(fd, buffer, 1, -1));
        TRY(pwrite(fd, buffer, 1, -1));
        TRY(preadv(fd, &pieces, 1, -1));
        TRY(pwritev(fd, &pieces, 1, -1));
        TRY(preadv2(fd, &pieces, 1, -2, 0));
        TRY(pwritev2(fd, &pieces, 1, -2, 0x1000));
        TRY(pwritev2(fd, &pieces, 1, 0, 0x1000));
        TRY(preadv2(fd, &pieces, 1, 0, 0x1000));
        TRY(pwritev2(fd, &pieces, (int)negative, 0, 0x1000));
        TRY(ftruncate(fd, -1));
        TRY(fallocate(fd, 0x1000, 0, 1));
        TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE, 0, 1));
        TRY(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096));
        TRY(fallocate(fd, 0x1000, -1, 1));
        TRY_POINTER(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0));
        TRY_POINTER(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 1));
        TRY_POINTER(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 1));
        TRY_POINTER(mmap(NULL, 4096, PROT_READ, 0, fd, 0));
        if (flags[i] != O_RDWR) /* which could be mapped */
            TRY_POINTER(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
        TRY(sendfile(fd, fd, &(off_t){-1}, 4));
        TRY(copy_file_range(fd, NULL, fd, NULL, 4, 1));
        close(fd);
    }
}

static void descriptors_that_are_none(void)
{
    static const int operations[] = {0,       LOCK_SH, LOCK_UN, LOCK_SH | LOCK_EX,
                                     LOCK_NB, 0x40};
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    TRY(dup3(fd, fd, O_CLOEXEC));
    for (int bit = -1; bit <= 32; bit++) {
        int flag = flag_number(bit);
        int other = TRY_FD(dup3(fd, 200, flag));

        if (other >= 0)
            close(other);
    }
    TRY(fcntl(fd, F_DUPFD, (int)negative));
    TRY(fcntl(fd, F_DUPFD, INT_MAX));
    TRY(fcntl(fd, F_DUPFD_CLOEXEC, (int)negative));
    TRY(fcntl(fd, 9999, 0));
    for (size_t i = 0; i < COUNT(operations); i++) {
        note("operation %d", operations[i]);
        TRY(flock(fd, operations[i]));
    }
    for (short type = -1; type < 5; type++)
        for (short way = -1; way < 4; way++) {
            struct flock lock = {.l_type = type, .l_whence = way, .l_len = 1};

            if (type == F_UNLCK && way >= 0 && way <= 2)
                continue;
            note("type %d way %d", type, way);
            TRY(fcntl(fd, F_SETLK, &lock));
            if (type != F_UNLCK) /* which Linux refuses to look for */
                TRY(fcntl(fd, F_GETLK, &lock));
        }
    TRY(fcntl(fd, F_SETFL, O_RDONLY | O_APPEND | O_EXCL));
    TRY(fcntl(fd, F_GETFL));
    TRY(close_range(20, 10, 0));
    TRY(close_range(300, 301, 0x80));
    close(fd);
}

static void maps_that_are_none(void)
{
    static const int protections[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE};
    int fd = open(path("file"), O_RDONLY | O_CREAT, 0644);

    TRY(truncate(path("file"), 8192));
    for (size_t i = 0; i < COUNT(protections); i++) {
        TRY_POINTER(mmap(NULL, 0, protections[i], MAP_PRIVATE, fd, 0));
        TRY_POINTER(mmap(NULL, 4096, protections[i], MAP_PRIVATE, fd, 1));
        TRY_POINTER(mmap(NULL, 4096, protections[i], MAP_PRIVATE, fd, -4096));
        TRY_POINTER(mmap(NULL, 4096, protections[i], 0, fd, 0));
        TRY_POINTER(mmap(NULL, SIZE_MAX, protections[i], MAP_PRIVATE, fd, 0));
        TRY_POINTER(
            mmap((void *)1, 4096, protections[i], MAP_PRIVATE | MAP_FIXED, fd, 0));
    }
    close(fd);
    fd = open(path("file"), O_WRONLY);
    TRY_POINTER(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
    TRY_POINTER(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
    fd = open(now->dir, O_RDONLY);
    TRY_POINTER(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
}

static void texts_that_are_none(void)
{
    static const char *modes[] = {"", "x", "rr", "w", "q", "r+x", "ab+", "re", "wx"};
    char template[PATH_MAX], target[16];
    FILE *file;

    put("file", "text");
    symlink("file", path("link"));
    TRY(readlink(path("link"), target, 0));
    TRY(readlink(path("file"), target, sizeof(target)));
    for (size_t i = 0; i < COUNT(modes); i++) {
        note("mode %s", modes[i]);
        file = TRY_POINTER(fopen(path("file"), modes[i]));
        if (file) {
            TRY(fseek(file, -1, SEEK_SET));
            TRY(fseek(file, 0, 99));
            TRY(fseek(file, LONG_MIN, SEEK_CUR));
            fclose(file);
        }
    }
    snprintf(template, sizeof(template), "%s/nameXXXXX", now->dir);
    TRY_FD(mkstemp(template));
    TRY_POINTER(mkdtemp(template));
    snprintf(template, sizeof(template), "%s/XXXXXXname", now->dir);
    TRY_FD(mkstemps(template, 5));
    TRY_FD(mkstemps(template, -1));
    TRY(pathconf(path("file"), 9999));
    TRY(pathconf(path("file"), -1));
    TRY_POINTER(getcwd(target, 0));
    TRY_POINTER(opendir(""));
    TRY_POINTER(fdopendir(open(path("file"), O_RDONLY)));
}

#define CASES(X)                                                                       \
    X(offsets_of_reads_and_writes)                                                     \
    X(vectors_of_wrong_sizes)                                                          \
    X(flags_of_vectors)                                                                \
    X(offsets_of_seeks)                                                                \
    X(ranges)                                                                          \
    X(copies)                                                                          \
    X(flags_of_names)                                                                  \
    X(flags_of_renames)                                                                \
    X(mistakes_in_both_names)                                                          \
    X(set_id_bits)                                                                     \
    X(questions_to_descriptors)                                                        \
    X(paths_of_descriptors)                                                            \
    X(flags_of_nameless)                                                               \
    X(flags_of_statx)                                                                  \
    X(modes_of_access)                                                                 \
    X(types_of_nodes)                                                                  \
    X(times_that_are_none)                                                             \
    X(attributes_that_are_none)                                                        \
    X(flags_of_access_control_lists)                                                   \
    X(what_is_wrong_first)                                                             \
    X(what_is_wrong_first_of_descriptors)                                              \
    X(descriptors_that_are_none)                                                       \
    X(maps_that_are_none)                                                              \
    X(texts_that_are_none)

CASES(TEST_FUNCTION)

/* On tmpfs files reach as far as offsets. */
static void a_write_is_cut_off_at_the_largest_size_and_fails_beyond(void **state)
{
    const off_t end = (off_t)1 << 44;
    char text[] = "ending";
    const struct iovec pieces[] = {{text, 2}, {text + 2, 4}};
    int fd = open("/pmfs/large", O_RDWR | O_CREAT, 0644);
    char found[8];

    (void)state;
    assert_int_equal(pwrite(fd, text, 6, end - 3), 3);
    assert_int_equal(pread(fd, found, 8, end - 3), 3);
    assert_memory_equal(found, "end", 3);
    assert_int_equal(pwrite(fd, text, 6, end), -1);
    assert_int_equal(errno, EFBIG);
    assert_int_equal(pwrite(fd, text, 0, end + 1), 0);
    assert_int_equal(lseek(fd, -4, SEEK_END), end - 4);
    assert_int_equal(writev(fd, pieces, 2), 4);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), end);
    assert_int_equal(write(fd, text, 6), -1);
    assert_int_equal(errno, EFBIG);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES(TEST_ENTRY)
            cmocka_unit_test(a_write_is_cut_off_at_the_largest_size_and_fails_beyond),
    };

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
