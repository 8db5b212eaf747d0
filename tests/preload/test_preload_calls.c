/* SPDX-License-Identifier: BSD-3-Clause */
/* test_preload_calls.c - every call that libpmfs-preload.so defines. */
#include "tests/preload/sides.h"

#include <dlfcn.h>
#include <ftw.h>
#include <glob.h>
#include <linux/fs.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <utime.h>

/* ---- file.c -------------------------------------------------------------------- */

int __open_2(const char *name, int flags);
int __openat_2(int dir, const char *name, int flags);
int creat64(const char *name, mode_t mode);

static void opening(void)
{
    static const int flags[] = {
        O_RDONLY,
        O_WRONLY,
        O_RDWR,
        O_RDONLY | O_CREAT,
        O_RDWR | O_CREAT | O_EXCL,
        O_RDONLY | O_DIRECTORY,
        O_RDONLY | O_NOFOLLOW,
        O_RDONLY | O_DIRECTORY | O_NOFOLLOW,
        O_WRONLY | O_TRUNC,
        O_PATH,
        O_PATH | O_NOFOLLOW,
        O_RDWR | O_APPEND | O_CLOEXEC | O_SYNC,
    };
    static const char *names[] = {
        "file",   "dir",   "link", "dirlink", "dangling",   "none",
        "loop",   "file/", "dir/", "none/",   "link/",      "a/b",
        "file/x", "",      ".",    "..",      "dir/../file"};

    mkdir(path("dir"), 0755);
    put("file", "text");
    TRY(symlink("file", path("link")));
    TRY(symlink("dir", path("dirlink")));
    TRY(symlink("loop", path("loop")));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            unlink(path("none"));
            unlink(path("dangling"));
            unlink(path("made"));
            symlink("made", path("dangling"));
            note("flags %x name %s", flags[i], names[j]);

            int fd = TRY_FD(*names[j] ? open(path(names[j]), flags[i], 0640)
                                      : open("", flags[i], 0640));

            if (fd >= 0) {
                TRY(fcntl(fd, F_GETFL));
                TRY(fcntl(fd, F_GETFD));
                TRY(close(fd));
            }
            note_name("made");
        }
}

static void opening_otherwise(void)
{
    int dir = TRY_FD(open(now->dir, O_RDONLY | O_DIRECTORY));
    int fd;

    fd = TRY_FD(creat(path("a"), 0666));
    TRY(write(fd, "a", 1));
    close(fd);
    fd = TRY_FD(openat(dir, "a", O_RDONLY));
    close(fd);
    fd = TRY_FD(__open_2(path("a"), O_RDONLY));
    close(fd);
    fd = TRY_FD(__openat_2(dir, "a", O_RDONLY));
    TRY_FD(openat(fd, "b", O_RDONLY));
    TRY_FD(openat(-1, "b", O_RDONLY));
    close(fd);
    TRY(mkfifo(path("fifo"), 0600));
    TRY_FD(open(path("fifo"), O_WRONLY | O_NONBLOCK));
    note_name("a");
    umask(027);
    close(TRY_FD(open(path("masked"), O_CREAT | O_RDWR, 0777)));
    note_name("masked");
    umask(022);
    close(dir);
}

static void reading_and_writing(void)
{
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT, 0644));
    char buffer[64] = {0};

    TRY(write(fd, "hello world", 11));
    TRY(read(fd, buffer, sizeof(buffer)));
    TRY(pread(fd, buffer, 5, 6));
    note("read %s", buffer);
    TRY(pwrite(fd, "W", 1, 6));
    TRY(pwrite(fd, "end", 3, 10000));
    TRY(pread(fd, buffer, sizeof(buffer), 9995));
    TRY(pread(fd, buffer, 1, -1));
    TRY(pwrite(fd, buffer, 1, -1));
    TRY(pread(fd, buffer, 0, 0));
    TRY(write(fd, buffer, 0));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(close(fd));
    TRY(read(fd, buffer, 1));
    fd = open(path("file"), O_RDONLY);
    TRY(write(fd, "x", 1));
    TRY(pwrite(fd, "x", 1, 0));
    close(fd);
    fd = open(path("file"), O_WRONLY | O_APPEND);
    TRY(read(fd, buffer, 1));
    TRY(write(fd, "abc", 3));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(pwrite(fd, "d", 1, 0));
    close(fd);
    note_name("file");
    fd = open(now->dir, O_RDONLY);
    TRY(read(fd, buffer, 1));
    close(fd);
    fd = open(path("file"), O_PATH);
    TRY(read(fd, buffer, 1));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(fchmod(fd, 0600));
    TRY(fsync(fd));
    close(fd);
}

ssize_t __read_chk(int fd, void *buffer, size_t size, size_t room);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t at, size_t room);

static void vectors(void)
{
    char a[4] = "abc", b[6] = "defgh", c[16] = {0}, d[16] = {0};
    const struct iovec out[] = {{a, 3}, {NULL, 0}, {b, 5}};
    const struct iovec in[] = {{c, 4}, {d, 16}};
    static const struct iovec many[IOV_MAX + 1];
    volatile int negative = -1;
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT, 0644));

    TRY(writev(fd, out, 3));
    TRY(lseek(fd, 1, SEEK_SET));
    TRY(readv(fd, in, 2));
    note("%.4s %.4s", c, d);
    TRY(pwritev(fd, out, 3, 100));
    TRY(preadv(fd, in, 2, 100));
    TRY(preadv(fd, in, 2, -1));
    TRY(pwritev(fd, out, 3, -1));
    TRY(pwritev2(fd, out, 3, 4, RWF_SYNC));
    TRY(preadv2(fd, in, 2, 4, RWF_HIPRI));
    TRY(lseek(fd, 2, SEEK_SET));
    TRY(preadv2(fd, in, 2, -1, 0));
    TRY(pwritev2(fd, out, 3, -1, RWF_APPEND));
    TRY(lseek(fd, 0, SEEK_CUR));
    TRY(writev(fd, out, negative));
    TRY(readv(fd, many, IOV_MAX + 1));
    TRY(writev(fd, out, 0));
    TRY(__pread_chk(fd, c, 4, 0, sizeof(c)));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(__read_chk(fd, c, 4, sizeof(c)));
    close(fd);
    note_content("file");
}

/* ---- space.c ------------------------------------------------------------------- */

static void seeking(void)
{
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT, 0644));

    TRY(pwrite(fd, "x", 1, 65536));
    TRY(lseek(fd, 10, SEEK_SET));
    TRY(lseek(fd, 5, SEEK_CUR));
    TRY(lseek(fd, -20, SEEK_CUR));
    TRY(lseek(fd, -1, SEEK_END));
    TRY(lseek(fd, 100, SEEK_END));
    TRY(lseek(fd, LONG_MAX, SEEK_END));
    TRY(lseek(fd, 0, 99));
    TRY(lseek(fd, 0, SEEK_DATA));
    TRY(lseek(fd, 65536, SEEK_DATA));
    TRY(lseek(fd, 65537, SEEK_DATA));
    TRY(lseek(fd, 0, SEEK_HOLE));
    TRY(lseek(fd, 65536, SEEK_HOLE));
    TRY(lseek(fd, 65537, SEEK_HOLE));
    TRY(lseek(fd, -1, SEEK_HOLE));
    close(fd);
}

static void sizes(void)
{
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT, 0644));

    TRY(write(fd, "0123456789", 10));
    TRY(ftruncate(fd, 4));
    TRY(ftruncate(fd, 8));
    note_content("file");
    TRY(ftruncate(fd, -1));
    TRY(truncate(path("file"), 6));
    TRY(truncate(path("file"), -1));
    TRY(truncate(path("none"), 0));
    TRY(truncate(now->dir, 0));
    TRY(truncate(path("file/"), 0));
    TRY(fallocate(fd, 0, 0, 100));
    note_name("file");
    TRY(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 10000));
    TRY(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 2));
    TRY(fallocate(fd, 0, 0, 0));
    TRY(fallocate(fd, 0, -1, 1));
    TRY(posix_fallocate(fd, 0, 200));
    TRY(posix_fallocate(fd, 0, 0));
    note_name("file");
    note_content("file");
    close(fd);
    fd = open(path("file"), O_RDONLY);
    TRY(ftruncate(fd, 0));
    TRY(fallocate(fd, 0, 0, 1));
    TRY(posix_fallocate(fd, 0, 1));
    close(fd);
}

static void nothing_to_do(void)
{
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT, 0644));

    TRY(fsync(fd));
    TRY(fdatasync(fd));
    TRY(syncfs(fd));
    TRY(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    close(fd);
    TRY(fsync(fd));
    TRY(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL));
    fd = open(now->dir, O_RDONLY);
    TRY(fsync(fd));
    close(fd);
}

/* tmpfs refuses what ours take. */
static void readahead_does_nothing(void)
{
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);

    note("%d",
         sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE) == 0 || errno == EINVAL);
    note("%d", readahead(fd, 0, 4096) == 0 || errno == EINVAL);
    close(fd);
}

static void copying(void)
{
    int from, to, pipes[2];
    off_t at = 2, to_at = 1;
    char buffer[32] = {0};

    put("from", "0123456789");
    from = open(path("from"), O_RDONLY);
    to = open(path("to"), O_RDWR | O_CREAT, 0644);
    TRY(sendfile(to, from, NULL, 3));
    TRY(lseek(from, 0, SEEK_CUR));
    TRY(sendfile(to, from, &at, 4));
    note("at %ld", (long)at);
    TRY(sendfile(to, from, NULL, 100));
    TRY(sendfile(to, from, NULL, 100));
    at = 3;
    TRY(copy_file_range(from, &at, to, &to_at, 2, 0));
    note("at %ld to %ld", (long)at, (long)to_at);
    TRY(copy_file_range(from, &at, to, &to_at, 2, 1));
    TRY(copy_file_range(to, NULL, from, NULL, 2, 0));
    note_content("to");
    TRY(pipe(pipes));
    at = 0;
    TRY(sendfile(pipes[1], from, &at, 5));
    TRY(read(pipes[0], buffer, sizeof(buffer)));
    note("pipe %s", buffer);
    note("%d", splice(pipes[0], NULL, 999, NULL, 1, 0) < 0 && errno == EBADF);
    close(pipes[0]);
    close(pipes[1]);
    close(from);
    close(to);
}

static void note_file(int fd)
{
    char bytes[64] = {0};
    ssize_t size = pread(fd, bytes, sizeof(bytes) - 1, 0);

    note("%ld: %s, at %ld", (long)size, bytes, (long)lseek(fd, 0, SEEK_CUR));
}

static void splicing(void)
{
    int file, other, appending, reading, pipes[2], more[2];
    off_t at = 2, none = -1;
    char buffer[32] = {0};

    put("file", "0123456789");
    file = open(path("file"), O_RDWR);
    other = open(path("other"), O_RDWR | O_CREAT, 0644);
    appending = open(path("file"), O_RDWR | O_APPEND);
    reading = open(path("file"), O_RDONLY);
    TRY(pipe2(pipes, O_NONBLOCK));
    TRY(pipe(more));
    TRY(splice(file, &at, pipes[1], NULL, 3, 0));
    note("at %ld", (long)at);
    TRY(splice(file, NULL, pipes[1], NULL, 100, SPLICE_F_MOVE | SPLICE_F_MORE));
    TRY(splice(file, NULL, pipes[1], NULL, 100, 0));
    note_file(file);
    TRY(splice(pipes[0], NULL, other, NULL, 4, 0));
    note_file(other);
    at = 8;
    TRY(splice(pipes[0], NULL, other, &at, 100, 0));
    note("at %ld", (long)at);
    TRY(splice(pipes[0], NULL, other, &at, 100, SPLICE_F_NONBLOCK));
    TRY(read(pipes[0], buffer, sizeof(buffer)));
    TRY(write(pipes[1], "rest", 4));
    /* What is refused, with nothing lost. */
    TRY(splice(file, NULL, other, NULL, 1, 0));
    TRY(splice(file, NULL, pipes[1], &at, 1, 0));
    TRY(splice(pipes[0], &at, file, NULL, 1, 0));
    TRY(splice(pipes[0], NULL, reading, NULL, 1, 0));
    TRY(splice(pipes[0], NULL, appending, NULL, 1, 0));
    TRY(splice(pipes[0], NULL, file, &none, 1, 0));
    TRY(splice(file, &none, pipes[1], NULL, 1, 0));
    TRY(splice(pipes[1], NULL, file, NULL, 1, 0));
    TRY(splice(file, NULL, pipes[0], NULL, 1, 0));
    TRY(splice(file, NULL, pipes[1], NULL, 1, 64));
    TRY(splice(file, NULL, pipes[1], NULL, 0, 64));
    TRY(splice(file, NULL, 999, NULL, 1, 0));
    TRY(splice(999, NULL, file, NULL, 1, 0));
    TRY(read(pipes[0], buffer, sizeof(buffer)));
    note("%s", buffer);
    /* Nobody writes any more. */
    close(more[1]);
    TRY(splice(more[0], NULL, other, NULL, 1, 0));
    note_content("other");
    for (int i = 0; i < 2; i++)
        close(pipes[i]);
    close(more[0]);
    close(file);
    close(other);
    close(appending);
    close(reading);
}

/* A pipe takes what it has room for, and whoever fills it goes on. */
static void splicing_much(void)
{
    enum { SIZE = 1 << 20 };
    static char bytes[SIZE], found[SIZE];
    int file = open(path("file"), O_RDWR | O_CREAT, 0644);
    int copy = open(path("copy"), O_RDWR | O_CREAT, 0644), pipes[2];
    ssize_t done = 0;

    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 4096);
    TRY(write(file, bytes, SIZE));
    TRY(lseek(file, 0, SEEK_SET));
    TRY(pipe(pipes));
    TRY(splice(file, NULL, pipes[1], NULL, SIZE, 0));
    TRY(splice(file, NULL, pipes[1], NULL, SIZE, SPLICE_F_NONBLOCK));
    while (done < SIZE) {
        ssize_t some = splice(pipes[0], NULL, copy, NULL, SIZE, 0);

        assert_true(some > 0);
        done += some;
        splice(file, NULL, pipes[1], NULL, SIZE, SPLICE_F_NONBLOCK);
    }
    TRY(pread(copy, found, SIZE, 0));
    TRY(memcmp(bytes, found, SIZE));
    TRY(sendfile(pipes[1], file, &(off_t){0}, SIZE));
    close(pipes[0]);
    close(pipes[1]);
    close(file);
    close(copy);
}

/* Between a file here and one of another filesystem, both ways. */
static void copying_across(void)
{
    int file, other = memfd_create("other", 0), closed = dup(other);

    close(closed);
    put("file", "0123456789");
    file = open(path("file"), O_RDWR);
    TRY(sendfile(other, file, &(off_t){2}, 3));
    TRY(sendfile(other, file, NULL, 100));
    note_file(other);
    TRY(lseek(other, 0, SEEK_SET));
    TRY(sendfile(file, other, NULL, 4));
    note_file(file);
    TRY(sendfile(closed, file, NULL, 4));
    TRY(sendfile(file, closed, NULL, 4));
    TRY(copy_file_range(file, NULL, closed, NULL, 4, 0));
    TRY(copy_file_range(closed, NULL, file, NULL, 4, 0));
    TRY(copy_file_range(file, NULL, other, NULL, 4, 1));
    close(other);
    close(file);
}

/* ---- fd.c ---------------------------------------------------------------------- */

static void duplicating(void)
{
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
    int second = TRY_FD(dup(fd)), third;

    TRY(write(fd, "abc", 3));
    TRY(lseek(second, 0, SEEK_CUR));
    TRY(fcntl(second, F_GETFD));
    TRY(fcntl(fd, F_GETFD));
    third = TRY_FD(fcntl(fd, F_DUPFD, 100));
    note("third %d", third);
    TRY(close(fd));
    TRY(write(third, "def", 3));
    TRY(dup2(third, 110));
    TRY(dup2(third, third));
    TRY(dup3(third, 110, O_CLOEXEC));
    TRY(dup3(third, third, 0));
    TRY(fcntl(110, F_GETFD));
    TRY(fcntl(third, F_DUPFD_CLOEXEC, 120));
    TRY(fcntl(120, F_GETFD));
    TRY(fcntl(120, F_SETFD, 0));
    TRY(fcntl(120, F_GETFD));
    TRY(dup2(fd, 110));
    TRY(dup2(third, -1));
    TRY(dup(fd));
    TRY(lseek(110, 0, SEEK_CUR));

    int host = open("/dev/zero", O_RDONLY);

    TRY(dup2(host, 110));
    TRY(lseek(120, 0, SEEK_CUR));
    TRY(dup2(120, host));
    TRY(write(host, "x", 1));
    TRY(close_range(100, 119, 0));
    TRY(write(third, "x", 1));
    TRY(write(120, "x", 1));
    closefrom(120);
    TRY(write(120, "x", 1));
    close(second);
    close(host);
    note_content("file");
}

static void flags_and_locks(void)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = TRY_FD(open(path("file"), O_RDWR | O_CREAT, 0644));
    int other = TRY_FD(open(path("file"), O_RDONLY));
    int count = -1;

    TRY(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK));
    TRY(fcntl(fd, F_GETFL));
    TRY(fcntl(fd, F_SETLK, &lock));
    TRY(fcntl(other, F_SETLK, &lock));
    TRY(fcntl(other, F_GETLK, &lock));
    note("type %d", lock.l_type);
    lock.l_type = 99;
    TRY(fcntl(fd, F_SETLK, &lock));
    TRY(fcntl(fd, 99999, 0));
    TRY(lockf(fd, F_TLOCK, 10));
    TRY(lockf(fd, F_TEST, 10));
    TRY(lockf(fd, F_ULOCK, 10));
    TRY(lockf(fd, 99, 10));
    TRY(flock(fd, LOCK_EX));
    TRY(flock(other, LOCK_SH | LOCK_NB));
    TRY(flock(fd, LOCK_SH));
    TRY(flock(other, LOCK_SH | LOCK_NB));
    TRY(flock(fd, LOCK_EX | LOCK_NB));
    TRY(flock(fd, LOCK_UN));
    TRY(flock(other, LOCK_EX | LOCK_NB));
    TRY(flock(fd, 16));
    close(other);
    TRY(flock(fd, LOCK_EX | LOCK_NB));
    TRY(write(fd, "12345", 5));
    TRY(lseek(fd, 2, SEEK_SET));
    TRY(ioctl(fd, FIONREAD, &count));
    note("count %d", count);
    TRY(ioctl(fd, FIOCLEX));
    TRY(fcntl(fd, F_GETFD));
    TRY(ioctl(fd, TIOCGWINSZ, &lock));
    TRY(fcntl(fd, F_SETFL, 0));
    TRY(ioctl(fd, FICLONE, fd));
    TRY(isatty(fd));
    close(fd);
}

/* ---- attr.c -------------------------------------------------------------------- */

int __xstat(int version, const char *name, struct stat *stat);
int __lxstat(int version, const char *name, struct stat *stat);
int __fxstat(int version, int fd, struct stat *stat);
int __fxstatat(int version, int dir, const char *name, struct stat *stat, int flags);

static void stats(void)
{
    int dir = open(now->dir, O_RDONLY), fd;
    struct statx statx_of;
    struct stat found;

    put("file", "12345");
    TRY(symlink("file", path("link")));
    mkdir(path("dir"), 0700);
    fd = open(path("file"), O_RDONLY);
    TRY(stat(path("link"), &found));
    note_stat("stat", &found);
    TRY(lstat(path("link"), &found));
    note_stat("lstat", &found);
    TRY(lstat(path("link/"), &found));
    TRY(stat(path("none"), &found));
    TRY(fstat(fd, &found));
    note_stat("fstat", &found);
    TRY(fstatat(dir, "dir", &found, 0));
    note_stat("fstatat", &found);
    TRY(fstatat(dir, "link", &found, AT_SYMLINK_NOFOLLOW));
    note_stat("fstatat", &found);
    TRY(fstatat(dir, "", &found, AT_EMPTY_PATH));
    note_stat("fstatat", &found);
    TRY(fstatat(dir, "", &found, 0));
    TRY(fstatat(fd, "x", &found, 0));
    TRY(fstatat(dir, "file", &found, 0x40000000));
    TRY(__xstat(1, path("link"), &found));
    TRY(__lxstat(1, path("link"), &found));
    note_stat("__lxstat", &found);
    TRY(__fxstat(1, fd, &found));
    TRY(__fxstatat(1, dir, "file", &found, 0));
    note_stat("__fxstatat", &found);
    TRY(statx(dir, "file", 0, STATX_BASIC_STATS, &statx_of));
    note("statx %o %lu", statx_of.stx_mode, (unsigned long)statx_of.stx_size);
    TRY(statx(fd, "", AT_EMPTY_PATH, STATX_SIZE, &statx_of));
    note("statx %lu", (unsigned long)statx_of.stx_size);
    TRY(statx(dir, "none", 0, STATX_SIZE, &statx_of));
    fstat(fd, &found);
    note("blocks %ld", (long)found.st_blocks);
    close(fd);
    close(dir);
}

static void accesses(void)
{
    int dir = open(now->dir, O_RDONLY);

    put("file", "");
    chmod(path("file"), 0644);
    TRY(symlink("none", path("link")));
    TRY(access(path("file"), F_OK));
    TRY(access(path("file"), R_OK | W_OK));
    TRY(access(path("file"), X_OK));
    TRY(access(path("none"), F_OK));
    TRY(access(path("link"), F_OK));
    TRY(access(path("file"), 99));
    TRY(faccessat(dir, "file", R_OK, AT_EACCESS));
    TRY(faccessat(dir, "link", F_OK, AT_SYMLINK_NOFOLLOW));
    TRY(faccessat(dir, ".", X_OK, 0));
    TRY(eaccess(path("file"), X_OK));
    chmod(path("file"), 0755);
    TRY(eaccess(path("file"), X_OK));
    close(dir);
}

static void modes_and_owners(void)
{
    int dir = open(now->dir, O_RDONLY), fd;

    put("file", "");
    symlink("file", path("link"));
    fd = open(path("file"), O_RDONLY);
    TRY(chmod(path("link"), 04751));
    note_name("file");
    TRY(chmod(path("none"), 0));
    TRY(fchmod(fd, 0600));
    note_name("file");
    TRY(fchmodat(dir, "file", 0640, 0));
    TRY(fchmodat(dir, "link", 0640, AT_SYMLINK_NOFOLLOW));
    TRY(fchmodat(dir, "file", 0640, AT_SYMLINK_NOFOLLOW));
    TRY(lchmod(path("file"), 0604));
    note_name("file");
    TRY(chown(path("link"), 1, 2));
    note_name("file");
    TRY(lchown(path("link"), 3, 4));
    note_name("link");
    TRY(fchown(fd, (uid_t)-1, 5));
    note_name("file");
    TRY(fchownat(dir, "link", 6, (gid_t)-1, AT_SYMLINK_NOFOLLOW));
    note_name("link");
    TRY(fchownat(dir, "file", (uid_t)-1, (gid_t)-1, 0));
    TRY(fchownat(fd, "", 7, 8, AT_EMPTY_PATH));
    note_name("file");
    TRY(fchownat(fd, "", 7, 8, 0));
    TRY(chmod(path("file"), 06711));
    TRY(chown(path("file"), 7, 8));
    note_name("file");
    close(fd);
    TRY(fchmod(fd, 0));
    close(dir);
}

static void note_times(const char *name)
{
    struct stat found;

    assert_int_equal(lstat(path(name), &found), 0);
    note("%s: %ld.%09ld %ld.%09ld", name, (long)found.st_atim.tv_sec,
         found.st_atim.tv_nsec, (long)found.st_mtim.tv_sec, found.st_mtim.tv_nsec);
}

static void times(void)
{
    const struct timespec precise[2] = {{1, 2}, {3, 4}};
    const struct timespec partly[2] = {{0, UTIME_OMIT}, {5, 6}};
    const struct timespec wrong[2] = {{0, 1000000000}, {5, 6}};
    const struct timeval rough[2] = {{7, 8}, {9, 10}};
    const struct timeval wrong_too[2] = {{7, 8}, {9, 1000000}};
    const struct utimbuf old = {11, 12};
    int dir = open(now->dir, O_RDONLY), fd;
    struct stat found;

    put("file", "");
    symlink("file", path("link"));
    fd = open(path("file"), O_RDONLY);
    TRY(utimensat(dir, "link", precise, 0));
    note_times("file");
    TRY(utimensat(dir, "link", precise, AT_SYMLINK_NOFOLLOW));
    note_times("link");
    TRY(utimensat(dir, "file", partly, 0));
    note_times("file");
    TRY(utimensat(dir, "file", wrong, 0));
    TRY(utimensat(dir, "none", precise, 0));
    TRY(futimens(fd, precise));
    note_times("file");
    TRY(utimes(path("file"), rough));
    note_times("file");
    TRY(utimes(path("file"), wrong_too));
    TRY(lutimes(path("link"), rough));
    note_times("link");
    TRY(futimes(fd, rough));
    TRY(futimesat(dir, "file", rough));
    TRY(utime(path("file"), &old));
    note_times("file");
    TRY(utime(path("file"), NULL));
    TRY(futimens(fd, NULL));
    TRY(fstat(fd, &found));
    note("now %d", labs((long)time(NULL) - (long)found.st_mtim.tv_sec) < 60);
    close(fd);
    close(dir);
}

static void filesystem(void)
{
    int fd = open(now->dir, O_RDONLY);
    struct statfs statfs_of;
    struct statvfs statvfs_of;

    TRY(statfs(path("none"), &statfs_of));
    TRY(statfs(now->dir, &statfs_of));
    note("%ld %ld", (long)statfs_of.f_bsize, (long)statfs_of.f_namelen);
    TRY(fstatfs(fd, &statfs_of));
    TRY(statvfs(now->dir, &statvfs_of));
    note("%lu %lu %d", statvfs_of.f_frsize, statvfs_of.f_namemax,
         statvfs_of.f_bavail > 0 && statvfs_of.f_bavail <= statvfs_of.f_blocks);
    TRY(fstatvfs(fd, &statvfs_of));
    TRY(pathconf(now->dir, _PC_NAME_MAX));
    TRY(pathconf(path("none"), _PC_NAME_MAX));
    TRY(fpathconf(fd, _PC_PATH_MAX));
    close(fd);
}

/* ---- xattr.c ------------------------------------------------------------------- */

static void extended_attributes(void)
{
    char value[16] = {0}, names[64] = {0};
    int fd;

    put("file", "");
    symlink("file", path("link"));
    fd = open(path("file"), O_RDWR);
    TRY(setxattr(path("link"), "trusted.a", "one", 3, 0));
    TRY(setxattr(path("file"), "trusted.a", "two", 3, XATTR_CREATE));
    TRY(fsetxattr(fd, "trusted.b", "two", 3, XATTR_REPLACE));
    TRY(lsetxattr(path("link"), "trusted.c", "three", 5, 0));
    TRY(setxattr(path("file"), "trusted.d", "four", 4, 4));
    TRY(lsetxattr(path("link"), "user.a", "one", 3, 0));
    TRY(lgetxattr(path("link"), "user.a", value, sizeof(value)));
    TRY(lremovexattr(path("link"), "user.a"));
    TRY(getxattr(path("link"), "trusted.a", value, sizeof(value)));
    note("%s", value);
    TRY(getxattr(path("file"), "trusted.a", value, 1));
    TRY(getxattr(path("file"), "trusted.a", NULL, 0));
    TRY(fgetxattr(fd, "trusted.a", value, sizeof(value)));
    TRY(fgetxattr(fd, "trusted.none", value, sizeof(value)));
    TRY(lgetxattr(path("link"), "trusted.c", value, sizeof(value)));
    TRY(lgetxattr(path("none"), "trusted.c", value, sizeof(value)));
    TRY(listxattr(path("file"), names, sizeof(names)));
    note("%s", names);
    TRY(llistxattr(path("link"), names, sizeof(names)));
    TRY(flistxattr(fd, NULL, 0));
    TRY(flistxattr(fd, names, 1));
    TRY(removexattr(path("file"), "trusted.a"));
    TRY(lremovexattr(path("link"), "trusted.c"));
    TRY(fremovexattr(fd, "trusted.a"));
    TRY(flistxattr(fd, names, sizeof(names)));
    close(fd);
}

/* ---- name.c -------------------------------------------------------------------- */

ssize_t __readlink_chk(const char *name, char *buffer, size_t size, size_t room);
ssize_t __readlinkat_chk(int dir, const char *name, char *buffer, size_t size,
                         size_t room);

static void making(void)
{
    int dir = open(now->dir, O_RDONLY);
    char target[16] = {0};

    TRY(mkdir(path("d"), 01777));
    note_name("d");
    TRY(mkdir(path("d"), 0755));
    TRY(mkdir(path("d/"), 0755));
    TRY(mkdir(path("none/e"), 0755));
    TRY(mkdirat(dir, "e/", 0755));
    TRY(mkdirat(dir, ".", 0755));
    TRY(mknod(path("f"), S_IFREG | 0600, 0));
    note_name("f");
    TRY(mknodat(dir, "g/", S_IFREG | 0600, 0));
    TRY(mknodat(dir, "g", S_IFDIR | 0600, 0));
    TRY(mknodat(dir, "null", S_IFCHR | 0666, makedev(1, 3)));
    note_name("null");
    TRY(mkfifo(path("fifo"), 0644));
    TRY(mkfifoat(dir, "fifo", 0644));
    note_name("fifo");
    TRY(symlink("target", path("l")));
    TRY(symlinkat("target", dir, "l"));
    TRY(symlink("", path("m")));
    TRY(readlink(path("l"), target, sizeof(target)));
    note("%s", target);
    TRY(readlink(path("l"), target, 3));
    TRY(readlink(path("l"), target, 0));
    TRY(readlink(path("d"), target, 3));
    TRY(readlinkat(dir, "l", target, sizeof(target)));
    TRY(__readlink_chk(path("l"), target, sizeof(target), sizeof(target)));
    TRY(__readlinkat_chk(dir, "l", target, sizeof(target), sizeof(target)));

    int link = open(path("l"), O_PATH | O_NOFOLLOW);

    TRY(readlinkat(link, "", target, sizeof(target)));
    TRY(readlinkat(dir, "", target, sizeof(target)));
    close(link);
    close(dir);
}

static void linking_and_renaming(void)
{
    int dir = open(now->dir, O_RDONLY), fd;

    put("a", "a");
    symlink("a", path("l"));
    mkdir(path("d"), 0755);
    mkdir(path("full"), 0755);
    mkdir(path("full/x"), 0755);
    TRY(link(path("a"), path("b")));
    TRY(link(path("a"), path("b")));
    TRY(link(path("l"), path("l2")));
    note_name("l2");
    TRY(linkat(dir, "l", dir, "c", AT_SYMLINK_FOLLOW));
    note_name("c");
    TRY(link(path("d"), path("e")));
    TRY(link(path("none"), path("e")));
    TRY(linkat(dir, "a", dir, "e", 99));
    fd = open(path("a"), O_RDONLY);
    TRY(linkat(fd, "", dir, "by-fd", AT_EMPTY_PATH));
    note_name("by-fd");
    close(fd);
    TRY(rename(path("a"), path("a2")));
    TRY(rename(path("none"), path("x")));
    TRY(rename(path("a2"), path("d")));
    TRY(rename(path("d"), path("a2")));
    TRY(rename(path("d"), path("full")));
    TRY(rename(path("full"), path("d")));
    TRY(rename(path("d"), path("d/x/y")));
    TRY(rename(path("d"), path("d/z")));
    TRY(rename(path("d/."), path("q")));
    TRY(rename(path("a2/"), path("q")));
    TRY(renameat(dir, "a2", dir, "b"));
    note_name("b");
    TRY(renameat2(dir, "b", dir, "c", RENAME_NOREPLACE));
    TRY(renameat2(dir, "a2", dir, "d", RENAME_EXCHANGE));
    note_name("d");
    TRY(renameat2(dir, "c", dir, "none", RENAME_EXCHANGE));
    TRY(renameat2(dir, "c", dir, "none", 99));
    close(dir);
}

static void removing(void)
{
    int dir = open(now->dir, O_RDONLY);

    put("a", "");
    put("b", "");
    mkdir(path("d"), 0755);
    mkdir(path("d/e"), 0755);
    TRY(unlink(path("a")));
    TRY(unlink(path("a")));
    TRY(unlink(path("d")));
    TRY(unlink(path("b/")));
    TRY(unlink(path("b/c")));
    TRY(rmdir(path("b")));
    TRY(rmdir(path("d")));
    TRY(rmdir(path("d/e/.")));
    TRY(rmdir(path("d/e/..")));
    TRY(unlinkat(dir, "d/e", AT_REMOVEDIR));
    TRY(unlinkat(dir, "d/e", 0x40000000));
    TRY(remove(path("d")));
    TRY(remove(path("b")));
    TRY(remove(path("b")));
    close(dir);
}

static void temporary_names(void)
{
    char name[PATH_MAX];
    struct stat found;
    int fd;

    snprintf(name, sizeof(name), "%s", path("tXXXXXX"));
    fd = TRY_FD(mkstemp(name));
    TRY(write(fd, "x", 1));
    fstat(fd, &found);
    note_stat("mkstemp", &found);
    TRY(unlink(name));
    close(fd);
    snprintf(name, sizeof(name), "%s", path("tXXXXXX.c"));
    fd = TRY_FD(mkstemps(name, 2));
    note("%s", name + strlen(name) - 2);
    close(fd);
    snprintf(name, sizeof(name), "%s", path("tXXXXXX"));
    fd = TRY_FD(mkostemp(name, O_APPEND | O_CLOEXEC));
    TRY(fcntl(fd, F_GETFL));
    TRY(fcntl(fd, F_GETFD));
    close(fd);
    snprintf(name, sizeof(name), "%s", path("tXXXXXXab"));
    fd = TRY_FD(mkostemps(name, 2, 0));
    close(fd);
    snprintf(name, sizeof(name), "%s", path("tXXXXX"));
    TRY_FD(mkstemp(name));
    snprintf(name, sizeof(name), "%s", path("tXXXXXX"));
    TRY_POINTER(mkdtemp(name));
    stat(name, &found);
    note_stat("mkdtemp", &found);
}

/* ---- path.c -------------------------------------------------------------------- */

char *__getcwd_chk(char *buffer, size_t size, size_t room);
char *__realpath_chk(const char *name, char *buffer, size_t room);

static void current_directory(void)
{
    char buffer[PATH_MAX], *text;
    int dir;

    mkdir(path("a"), 0755);
    mkdir(path("a/b"), 0755);
    put("a/file", "x");
    TRY(chdir(path("a/b")));
    note_path("getcwd", getcwd(buffer, sizeof(buffer)));
    note_path("__getcwd_chk", __getcwd_chk(buffer, sizeof(buffer), sizeof(buffer)));
    TRY_POINTER(getcwd(buffer, 3));
    TRY_POINTER(getcwd(buffer, 0));
    text = get_current_dir_name();
    note_path("get_current_dir_name", text);
    free(text);
    TRY(chdir(".."));
    note_path("getcwd", text = getcwd(NULL, 0));
    free(text);
    TRY(access("file", F_OK));
    TRY(chdir("file"));
    TRY(chdir("none"));
    dir = open("b", O_RDONLY);
    TRY(fchdir(dir));
    note_path("getcwd", getcwd(buffer, sizeof(buffer)));
    TRY(access("../file", F_OK));
    TRY(rmdir("../b"));
    TRY_POINTER(getcwd(buffer, sizeof(buffer)));
    TRY_FD(open("x", O_CREAT | O_RDWR, 0644));
    close(dir);
    TRY(fchdir(dir));
    TRY(chdir("/"));
    note("%s", getcwd(buffer, sizeof(buffer)));
    TRY(access(path("a/file"), F_OK));
}

/* Longer than any path that can be given. */
static void deep_directory(void)
{
    char name[101] = "", *text;

    memset(name, 'd', sizeof(name) - 1);
    TRY(chdir(now->dir));
    for (int i = 0; i < 50; i++)
        if (mkdir(name, 0755) < 0 || chdir(name) < 0)
            note("not deeper than %d", i);
    text = getcwd(NULL, 0);
    note("%zu", text ? strlen(text) - strlen(now->dir) : 0);
    free(text);
    for (int i = 0; i < 50; i++)
        if (chdir("..") < 0 || rmdir(name) < 0)
            note("not up again from %d", i);
    TRY(chdir("/"));
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void deprecated(void)
{
    struct dirent entry, *found;
    char buffer[PATH_MAX];
    DIR *dir;

    TRY(chdir(now->dir));
    /* By dlsym(), because the linker warns of it. */
    char *(*call)(char *) = (char *(*)(char *))dlsym(RTLD_DEFAULT, "getwd");
    note_path("getwd", call(buffer));
    TRY(chdir("/"));
    mkdir(path("only"), 0755);
    dir = opendir(path("only"));
    do
        TRY(readdir_r(dir, &entry, &found));
    while (found);
    closedir(dir);
}
#pragma GCC diagnostic pop

static void resolving(void)
{
    char buffer[PATH_MAX], *text;

    mkdir(path("a"), 0755);
    put("a/file", "");
    symlink("a", path("l"));
    symlink("/etc/passwd", path("out"));
    symlink(now->dir, path("back"));
    symlink("none", path("dangling"));
    note_path("realpath", realpath(path("l/../l/./file"), buffer));
    note_path("realpath", realpath(path("back/back/a"), buffer));
    note_path("realpath", realpath(path("out"), buffer));
    note_path("realpath", text = realpath(now->dir, NULL));
    free(text);
    TRY_POINTER(realpath(path("dangling"), buffer));
    TRY_POINTER(realpath(path("a/file/"), buffer));
    TRY_POINTER(realpath("", buffer));
    note_path("__realpath_chk", __realpath_chk(path("l"), buffer, sizeof(buffer)));
    note_path("canonicalize", text = canonicalize_file_name(path("l")));
    free(text);
}

/* Out of the directory, by links and dots, and into it again. */
static void ways_out_and_in(void)
{
    char buffer[PATH_MAX];
    int fd;

    mkdir(path("a"), 0755);
    put("a/file", "inside");
    symlink("/etc/passwd", path("out"));
    symlink("/", path("root"));
    snprintf(buffer, sizeof(buffer), "%s", path("a"));
    symlink(buffer, path("back"));
    TRY(access(path("out"), R_OK));
    TRY(access(path("root/etc/passwd"), R_OK));
    snprintf(buffer, sizeof(buffer), "%s/root%s/a/file", now->dir, now->dir);
    TRY(access(buffer, F_OK));
    TRY(access(path("back/file"), F_OK));

    FILE *stream = TRY_POINTER(fopen(path("out"), "r"));

    fclose(stream);
    stream = TRY_POINTER(fopen(path("back/file"), "r"));
    fclose(stream);

    DIR *dir = TRY_POINTER(opendir(path("root/etc")));

    closedir(dir);

    struct dirent **list;
    int count = scandir(path("root/proc/self/task"), &list, NULL, alphasort);

    note_list(list, count);
    TRY(access(path("a/../../../../../../../../etc/passwd"), R_OK));
    snprintf(buffer, sizeof(buffer), "/etc/../%s//a/./file", now->dir);
    TRY(access(buffer, F_OK));
    TRY(chdir("/"));
    TRY(access(now->dir + 1, F_OK));
    TRY(chdir("/etc"));
    snprintf(buffer, sizeof(buffer), "..%s/a/file", now->dir);
    TRY(access(buffer, F_OK));
    fd = open("/", O_PATH);
    TRY(faccessat(fd, now->dir + 1, F_OK, 0));
    close(fd);
    TRY(chdir(path("a")));
    TRY(access("../../../../../../../../etc/passwd", R_OK));
    TRY(chdir("/"));
    TRY(rename(path("a/file"), "/proc/nothing"));
    TRY(link("/etc/passwd", path("passwd")));
}

/* ---- dir.c --------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In order, as each filesystem has its own. */
static void note_entries(DIR *dir)
{
    char *names[64], *line = NULL;
    struct dirent *entry;
    size_t count = 0, size = 0;
    FILE *out = open_memstream(&line, &size);

    errno = 0;
    while ((entry = readdir(dir)))
        if (count < 64 &&
            asprintf(&names[count], "%s/%d", entry->d_name, entry->d_type) > 0)
            count++;
    note("errno %d", errno);
    qsort(names, count, sizeof(names[0]), compare_names);
    for (size_t i = 0; i < count; i++) {
        fprintf(out, " %s", names[i]);
        free(names[i]);
    }
    fclose(out);
    note("entries:%s", line);
    free(line);
}

static void make_entries(void)
{
    mkdir(path("d"), 0755);
    mkdir(path("d/sub"), 0755);
    put("d/one", "1");
    put("d/two", "22");
    put("d/sub/three", "333");
    symlink("one", path("d/link"));
    mkfifo(path("d/fifo"), 0644);
}

static void directories(void)
{
    char buffer[4096];
    struct dirent *entry;
    long cookie;
    DIR *dir;
    int fd;

    make_entries();
    dir = TRY_POINTER(opendir(path("d")));
    note_entries(dir);
    note_entries(dir);
    rewinddir(dir);
    note_entries(dir);
    rewinddir(dir);
    (void)readdir(dir);
    (void)readdir(dir);
    cookie = telldir(dir);
    entry = readdir(dir);
    snprintf(buffer, sizeof(buffer), "%s", entry->d_name);
    while (readdir(dir))
        ;
    seekdir(dir, cookie);
    note("same %d", strcmp(readdir(dir)->d_name, buffer) == 0);
    TRY(fstatat(dirfd(dir), "one", &(struct stat){0}, 0));
    TRY(closedir(dir));
    TRY_POINTER(opendir(path("d/one")));
    TRY_POINTER(opendir(path("none")));
    fd = open(path("d"), O_RDONLY);
    dir = TRY_POINTER(fdopendir(fd));
    TRY(dirfd(dir) == fd);
    note_entries(dir);
    TRY(closedir(dir));
    TRY(close(fd));
    TRY_POINTER(fdopendir(fd));
    fd = open(path("d/one"), O_RDONLY);
    TRY_POINTER(fdopendir(fd));
    TRY(getdents64(fd, buffer, sizeof(buffer)));
    close(fd);
    fd = open(path("d"), O_RDONLY);
    TRY(getdents64(fd, buffer, 1));
    TRY(getdents64(fd, buffer, sizeof(buffer)) > 0);
    TRY(getdents64(fd, buffer, sizeof(buffer)));
    TRY(lseek(fd, 0, SEEK_SET));
    TRY(getdents64(fd, buffer, sizeof(buffer)) > 0);
    close(fd);
}

static void removed_directory_is_empty(void)
{
    DIR *dir;

    mkdir(path("d"), 0755);
    dir = opendir(path("d"));
    TRY(rmdir(path("d")));
    note_entries(dir);
    closedir(dir);
}

/* ---- walk.c -------------------------------------------------------------------- */

static int no_dots(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static void scanning(void)
{
    int fd = open(now->dir, O_RDONLY), count;
    struct dirent **list;

    make_entries();
    count = (int)TRY(scandir(path("d"), &list, no_dots, alphasort));
    note_list(list, count);
    count = (int)TRY(scandirat(fd, "d/sub", &list, NULL, alphasort));
    note_list(list, count);
    TRY(scandir(path("none"), &list, NULL, NULL));
    close(fd);
}

static void globbing(void)
{
    static const char *patterns[] = {"d/*", "d/*/t*", "*/[ot]*", "none*",
                                     "d/{one,sub}"};
    glob_t found;

    make_entries();
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        TRY(glob(path(patterns[i]), GLOB_BRACE | GLOB_MARK, NULL, &found));
        for (size_t j = 0; j < found.gl_pathc; j++)
            note_path("glob", found.gl_pathv[j]);
        globfree(&found);
    }
}

/* The order inside a directory is the filesystem's, so this adds up. */
static unsigned long walked;

static unsigned long hash_of(const char *text)
{
    unsigned long hash = 5381;

    for (; *text; text++)
        hash = hash * 33 + (unsigned char)*text;
    return hash;
}

static int add_walked(const char *name, const struct stat *stat, int kind,
                      struct FTW *info)
{
    walked +=
        (hash_of(name + strlen(now->dir)) + (unsigned long)kind * 7 + stat->st_mode) *
        (unsigned long)(info->level + 1);
    return strcmp(name + info->base, "stop") == 0 ? 42 : 0;
}

static int add_plainly(const char *name, const struct stat *stat, int kind)
{
    walked +=
        hash_of(name + strlen(now->dir)) + (unsigned long)kind * 7 + stat->st_mode;
    return 0;
}

/* The current directory, too; and a name without directory is there. */
static int add_inside(const char *name, const struct stat *stat, int kind,
                      struct FTW *info)
{
    struct stat found;
    char here[PATH_MAX];

    if (!getcwd(here, sizeof(here)))
        return -1;
    walked += hash_of(here + strlen(now->dir)) * (unsigned long)(info->level + 2);
    if (kind != FTW_DP)
        walked += (unsigned long)lstat(name + info->base, &found) * 3 +
                  (unsigned long)(found.st_ino == stat->st_ino) * 5;
    return add_walked(name, stat, kind, info);
}

static int skip_some(const char *name, const struct stat *stat, int kind,
                     struct FTW *info)
{
    add_inside(name, stat, kind, info);
    return strcmp(name + info->base, "sub") == 0 ? FTW_SKIP_SUBTREE : FTW_CONTINUE;
}

static void walking_inside(void)
{
    static const int flags[] = {FTW_CHDIR, FTW_CHDIR | FTW_PHYS,
                                FTW_CHDIR | FTW_DEPTH | FTW_PHYS,
                                FTW_CHDIR | FTW_ACTIONRETVAL | FTW_PHYS};
    static const char *const names[] = {"d", "d/", "d/sub", "d/one", "."};
    char start[PATH_MAX], here[PATH_MAX];

    make_entries();
    TRY(mkdir(path("d/sub/deep"), 0755));
    put("d/sub/deep/file", "");
    put("d/sub/stay", "");
    TRY_POINTER(getcwd(start, sizeof(start)));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
        for (size_t j = 0; j < sizeof(names) / sizeof(names[0]); j++) {
            bool skips = flags[i] & FTW_ACTIONRETVAL;

            walked = 0;
            note("flags %x of %s", flags[i], names[j]);
            TRY(nftw(path(names[j]), skips ? skip_some : add_inside, 10, flags[i]));
            note("%lx", walked);
            TRY(strcmp(getcwd(here, sizeof(here)), start));
        }
    TRY(chdir(now->dir));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        walked = 0;
        TRY(nftw("d/sub", skip_some, 10, flags[i] | FTW_ACTIONRETVAL));
        TRY(nftw("none", add_inside, 10, flags[i]));
        note_path("back", getcwd(here, sizeof(here)));
    }
    TRY(chdir(start));
}

/* Links to directories that are walked already, and to themselves. */
static void walking_in_circles(void)
{
    static const int flags[] = {0, FTW_DEPTH, FTW_CHDIR};

    make_entries();
    symlink("..", path("d/sub/up"));
    symlink(".", path("d/same"));
    symlink("none", path("dangling"));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        walked = 0;
        TRY(nftw(path("d/sub"), add_walked, 10, flags[i]) >= 0);
        TRY(nftw(path("dangling"), add_walked, 10, flags[i]));
        note("%lx", walked);
    }
    symlink("loop", path("d/loop"));
    TRY(nftw(path("d"), add_walked, 10, 0));
    TRY(nftw(path("d/loop"), add_walked, 10, 0));
    TRY(nftw(path("d/loop"), add_walked, 10, FTW_PHYS));
}

static void walking(void)
{
    static const int flags[] = {0, FTW_PHYS, FTW_PHYS | FTW_DEPTH, FTW_MOUNT};

    make_entries();
    symlink("none", path("d/dangling"));
    for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
        walked = 0;
        TRY(nftw(path("d"), add_walked, 10, flags[i]));
        note("%lx", walked);
    }
    walked = 0;
    TRY(ftw(path("d"), add_plainly, 10));
    note("%lx", walked);
    put("d/stop", "");
    TRY(nftw(path("d"), add_walked, 10, FTW_PHYS));
    TRY(nftw(path("none"), add_walked, 10, FTW_PHYS));
}

/* ---- stdio.c ------------------------------------------------------------------- */

static void streams(void)
{
    char line[64];
    FILE *stream = TRY_POINTER(fopen(path("file"), "w+"));
    int number = 0;

    TRY(fprintf(stream, "one %d\ntwo\n", 7));
    TRY(ftell(stream));
    rewind(stream);
    TRY(fscanf(stream, "one %d\n", &number));
    note("%d", number);
    TRY_POINTER(fgets(line, sizeof(line), stream));
    note("%s", line);
    TRY(fgetc(stream));
    TRY(feof(stream));
    TRY(fseek(stream, -4, SEEK_END));
    TRY(fputs("TWO", stream) >= 0);
    TRY(fflush(stream));
    TRY(fsync(fileno(stream)));
    TRY(fclose(stream));
    note_content("file");
    stream = TRY_POINTER(fopen(path("file"), "a"));
    TRY(ftell(stream));
    fputs("three\n", stream);
    TRY(ftell(stream));
    TRY(fclose(stream));
    note_content("file");
    stream = TRY_POINTER(fopen(path("file"), "r"));
    TRY(fputc('x', stream));
    TRY(ferror(stream) != 0);
    TRY(fileno_unlocked(stream) == fileno(stream));
    fclose(stream);
    TRY_POINTER(fopen(path("file"), "wx"));
    TRY_POINTER(fopen(path("none"), "r"));
    TRY_POINTER(fopen(path("file"), "q"));
    TRY_POINTER(fopen(now->dir, "w"));
    stream = TRY_POINTER(fopen(path("file"), "re"));
    TRY(fcntl(fileno(stream), F_GETFD));
    fclose(stream);
}

static void streams_on_descriptors(void)
{
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);
    FILE *stream = TRY_POINTER(fdopen(fd, "w"));

    fputs("12345", stream);
    TRY(fileno(stream) == fd);
    TRY(fclose(stream));
    TRY(close(fd));
    TRY_POINTER(fdopen(fd, "r"));
    fd = open(path("file"), O_RDONLY);
    TRY_POINTER(fdopen(fd, "w"));
    TRY_POINTER(fdopen(fd, "q"));
    close(fd);
    fd = open(path("file"), O_RDWR);
    stream = TRY_POINTER(fdopen(fd, "a"));
    fputs("6", stream);
    TRY(fcntl(fd, F_GETFL));
    fclose(stream);
    note_content("file");
    stream = fopen(path("file"), "w");
    stream = TRY_POINTER(freopen(path("other"), "w", stream));
    fputs("other", stream);
    fclose(stream);
    note_content("other");
}

/* The standard streams go with their descriptors, and come back. */
static void standard_streams(void)
{
    int kept = dup(STDOUT_FILENO), fd;

    fflush(stdout);
    fd = open(path("by-dup2"), O_WRONLY | O_CREAT, 0644);
    TRY(dup2(fd, STDOUT_FILENO));
    close(fd);
    printf("printed\n");
    fputs("put\n", stdout);
    puts("and more");
    fflush(stdout);
    TRY_POINTER(freopen(path("by-freopen"), "w", stdout));
    printf("printed\n");
    fflush(stdout);
    TRY(freopen("/dev/null", "w", stdout) == stdout);
    TRY(printf("lost\n"));
    TRY(fflush(stdout));
    dup2(kept, STDOUT_FILENO);
    close(kept);
    note_content("by-dup2");
    note_content("by-freopen");
}

/* ---- map.c --------------------------------------------------------------------- */

/* Holes of a map take no memory. */
static void sparse_map(void)
{
    const size_t size = (size_t)1 << 38, at = (size_t)1 << 33;
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);
    char *memory;

    TRY(ftruncate(fd, (off_t)size));
    TRY(pwrite(fd, "far", 3, (off_t)at));
    memory = TRY_POINTER(mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0));
    note("%d %s %d", memory[0], memory + at, memory[size - 1]);
    munmap(memory, size);
    close(fd);
}

static void private_maps(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *memory;
    int fd;

    put("file", "mapped");
    fd = open(path("file"), O_RDWR);
    memory = TRY_POINTER(mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0));
    note("%.6s %d", memory, memory[100]);
    memory[0] = 'M';
    munmap(memory, page);
    note_content("file");
    TRY_POINTER(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 1));
    TRY_POINTER(mmap(NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0));
    memory = TRY_POINTER(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0));
    note("%.6s", memory);
    munmap(memory, page);
    close(fd);
    TRY_POINTER(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0));
    fd = open(path("file"), O_WRONLY);
    TRY_POINTER(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
    fd = open(now->dir, O_RDONLY);
    TRY_POINTER(mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0));
    close(fd);
}

/* ---- process.c ----------------------------------------------------------------- */

static int status_of(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* What a child does to its own descriptors is not seen by the parent. */
static void children(void)
{
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);
    /* By dlsym(): what it does is more than vfork() may, and not more than ours may. */
    pid_t (*const calls[])(void) = {
        (pid_t(*)(void))dlsym(RTLD_DEFAULT, "vfork"),
        (pid_t(*)(void))dlsym(RTLD_DEFAULT, "_Fork"),
    };

    for (int i = 0; i < 2; i++) {
        pid_t pid = calls[i]();

        if (pid == 0) {
            close(fd);
            dup2(STDERR_FILENO, fd);
            _exit(7);
        }
        note("status %x", status_of(pid));
    }
    TRY(write(fd, "still here", 10));
    close(fd);
    note_content("file");
    char *const arguments[] = {"none", NULL}, *const environment[] = {NULL};

    TRY(execv(path("none/none"), arguments) < 0);
    TRY(execve(path("none/none"), arguments, environment) < 0);
    TRY(fexecve(-1, arguments, environment) < 0);
}

/* ---- syscall.c ----------------------------------------------------------------- */

static void system_calls(void)
{
    int fd = open(path("file"), O_RDWR | O_CREAT, 0644);
    int other = open(path("other"), O_RDWR | O_CREAT, 0644);
    struct statx found = {0};
    char buffer[1024];

    TRY(write(fd, "12345", 5));
    TRY(syscall(SYS_statx, AT_FDCWD, path("file"), 0, STATX_SIZE, &found));
    note("%lu", (unsigned long)found.stx_size);
    TRY(syscall(SYS_faccessat2, AT_FDCWD, path("file"), X_OK, 0));
    TRY(syscall(SYS_copy_file_range, fd, &(off_t){1}, other, NULL, 3L, 0));
    note_content("other");
    TRY(syscall(SYS_renameat2, AT_FDCWD, path("file"), AT_FDCWD, path("other"),
                RENAME_NOREPLACE));
    TRY(syscall(SYS_renameat2, AT_FDCWD, path("file"), AT_FDCWD, path("new"), 0));
    note_name("new");
    TRY(syscall(SYS_close_range, fd, fd, 0));
    TRY(write(fd, "x", 1));
    close(other);
    fd = open(now->dir, O_RDONLY);
    TRY(syscall(SYS_getdents64, fd, buffer, sizeof(buffer)) > 0);
    TRY(syscall(SYS_getpid) == getpid());
    close(fd);
}

/* As open(2) has it. */
static void names_for_the_nameless(void)
{
    const int flags = AT_SYMLINK_FOLLOW;
    int fd = TRY_FD(open(now->dir, O_TMPFILE | O_RDWR, 0640));
    int other = TRY_FD(openat(AT_FDCWD, ".", O_TMPFILE | O_WRONLY | O_EXCL, 0600));
    char proc[32], bytes[8];
    struct stat stat;

    TRY(write(fd, "content", 7));
    TRY(write(other, "other", 5));
    TRY(pread(fd, bytes, sizeof(bytes), 0));
    snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
    TRY(linkat(AT_FDCWD, proc, AT_FDCWD, path("."), flags));
    TRY(linkat(AT_FDCWD, proc, AT_FDCWD, path("linked"), 0));
    TRY(linkat(AT_FDCWD, proc, AT_FDCWD, path("linked"), flags));
    TRY(linkat(AT_FDCWD, proc, AT_FDCWD, path("linked"), flags));
    TRY(linkat(fd, "", AT_FDCWD, path("again"), AT_EMPTY_PATH));
    note_name("linked");
    note_content("again");
    TRY(unlink(path("linked")));
    TRY(unlink(path("again")));
    if (TRY(fstat(fd, &stat)) == 0)
        note_stat("unlinked", &stat);
    TRY(linkat(fd, "", AT_FDCWD, path("late"), AT_EMPTY_PATH));
    TRY(linkat(other, "", AT_FDCWD, path("never"), AT_EMPTY_PATH));
    TRY(linkat(AT_FDCWD, "/proc/self/fd/", AT_FDCWD, path("none"), flags));
    close(fd);
    close(other);
}

/* Where the old directory is the new one, and where not; over something, and not. */
static void whiteouts(void)
{
    TRY(mkdir(path("dir"), 0755));
    put("a", "a");
    put("b", "b");
    TRY(renameat2(AT_FDCWD, path("a"), AT_FDCWD, path("c"), RENAME_WHITEOUT));
    TRY(renameat2(AT_FDCWD, path("b"), AT_FDCWD, path("dir/b"), RENAME_WHITEOUT));
    TRY(renameat2(AT_FDCWD, path("c"), AT_FDCWD, path("a"), RENAME_WHITEOUT));
    TRY(renameat2(AT_FDCWD, path("dir"), AT_FDCWD, path("b"), RENAME_WHITEOUT));
    TRY(renameat2(AT_FDCWD, path("dir"), AT_FDCWD, path("new"), RENAME_WHITEOUT));
    TRY(renameat2(AT_FDCWD, path("dir"), AT_FDCWD, path("dir"), RENAME_WHITEOUT));
    note_name("a");
    note_name("b");
    note_name("c");
    note_name("dir");
    note_name("new");
    note_content("a");
    note_content("new/b");
    TRY(open(path("c"), O_RDONLY));
    TRY(unlink(path("c")));
}

#define CASES(X)                                                                       \
    X(opening)                                                                         \
    X(opening_otherwise)                                                               \
    X(names_for_the_nameless)                                                          \
    X(whiteouts)                                                                       \
    X(reading_and_writing)                                                             \
    X(vectors)                                                                         \
    X(seeking)                                                                         \
    X(sizes)                                                                           \
    X(nothing_to_do)                                                                   \
    X(readahead_does_nothing)                                                          \
    X(copying)                                                                         \
    X(splicing)                                                                        \
    X(splicing_much)                                                                   \
    X(copying_across)                                                                  \
    X(duplicating)                                                                     \
    X(flags_and_locks)                                                                 \
    X(stats)                                                                           \
    X(accesses)                                                                        \
    X(modes_and_owners)                                                                \
    X(times)                                                                           \
    X(filesystem)                                                                      \
    X(extended_attributes)                                                             \
    X(making)                                                                          \
    X(linking_and_renaming)                                                            \
    X(removing)                                                                        \
    X(temporary_names)                                                                 \
    X(current_directory)                                                               \
    X(deep_directory)                                                                  \
    X(deprecated)                                                                      \
    X(resolving)                                                                       \
    X(ways_out_and_in)                                                                 \
    X(directories)                                                                     \
    X(removed_directory_is_empty)                                                      \
    X(scanning)                                                                        \
    X(globbing)                                                                        \
    X(walking)                                                                         \
    X(walking_inside)                                                                  \
    X(walking_in_circles)                                                              \
    X(streams)                                                                         \
    X(streams_on_descriptors)                                                          \
    X(standard_streams)                                                                \
    X(private_maps)                                                                    \
    X(sparse_map)                                                                      \
    X(children)                                                                        \
    X(system_calls)

CASES(TEST_FUNCTION)

int main(void)
{
    const struct CMUnitTest tests[] = {CASES(TEST_ENTRY)};

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
