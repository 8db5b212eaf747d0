/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-preload - what a call costs a program that runs with libpmfs-preload.so, next to
 * the same by pmfs.h, and by the kernel on tmpfs. All in one process, which starts
 * itself again with the library preloaded.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/harness.h"
#include "include/pmfs.h"

enum { ROUNDS = 21, OPERATIONS = 20000, FILE_SIZE = 64 << 20, POOL_SIZE = 160 << 20 };

static const char help[] =
    "Usage: bench-preload\n"
    "\n"
    "Measures what reading and writing 64 and 4096 bytes costs a preloaded program, "
    "next\n"
    "to the same by pmfs.h, and by the kernel on tmpfs. Needs 224 MiB in /dev/shm.\n"
    "\n"
    "  --help  this text\n"
    "\n"
    "Exit status: 0, 1 if it could not run, 2 for a wrong usage.\n";

enum how { BY_PMFS_H, PRELOADED, BY_KERNEL, HOWS };

static const char *const names[HOWS] = {"pmfs.h", "preloaded", "kernel, tmpfs"};

/* ---- What is measured ---------------------------------------------------------- */

struct subject {
    enum how how;
    bool is_write;
    size_t size;
    double ns[ROUNDS];
};

static struct pmfs *fs; /* for BY_PMFS_H */
static uint64_t ino;
static int fds[HOWS];
static uint64_t random_state = 1;

/* A place for `size` bytes in the file. */
static uint64_t random_offset(size_t size)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % (FILE_SIZE / size) * size;
}

static int do_one(const struct subject *subject, char *buffer)
{
    uint64_t offset = random_offset(subject->size);
    size_t size = subject->size, done;

    if (subject->how == BY_PMFS_H)
        return subject->is_write ? pmfs_write(fs, ino, offset, buffer, size, 0, &done)
                                 : pmfs_read(fs, ino, offset, buffer, size, &done);

    int fd = fds[subject->how];
    ssize_t rc = subject->is_write ? pwrite(fd, buffer, size, (off_t)offset)
                                   : pread(fd, buffer, size, (off_t)offset);

    return rc == (ssize_t)size ? 0 : -EIO;
}

static int batch(void *arg, double *ns_per_op)
{
    const struct subject *subject = arg;
    static char buffer[1 << 16];
    uint64_t start = bench_now_ns();

    for (int i = 0; i < OPERATIONS; i++) {
        int rc = do_one(subject, buffer);

        if (rc < 0)
            return rc;
    }
    *ns_per_op = (double)(bench_now_ns() - start) / OPERATIONS;
    return 0;
}

static void measure(bool is_write, size_t size)
{
    struct subject subjects[HOWS];
    struct bench_subject rounds[HOWS];

    for (int i = 0; i < HOWS; i++) {
        subjects[i] =
            (struct subject){.how = (enum how)i, .is_write = is_write, .size = size};
        rounds[i] = (struct bench_subject){batch, &subjects[i], subjects[i].ns};
    }
    if (bench_rounds(rounds, HOWS, ROUNDS) < 0)
        errx(1, "a call failed");
    for (int i = 0; i < HOWS; i++) {
        struct bench_spread spread = bench_spread(subjects[i].ns, ROUNDS);

        printf("%-5s %5zu B  %-14s %7.0f ns  (%.0f to %.0f)  %.2f\n",
               is_write ? "write" : "read", size, names[i], spread.median, spread.min,
               spread.max, bench_ratio(subjects[i].ns, subjects[BY_PMFS_H].ns, ROUNDS));
    }
}

/* ---- Files --------------------------------------------------------------------- */

static void fill(int fd)
{
    static const char zeros[1 << 20];

    for (int i = 0; i < FILE_SIZE >> 20; i++)
        if (write(fd, zeros, sizeof(zeros)) != sizeof(zeros))
            err(1, "write");
}

static void open_files(const char *dir)
{
    const struct pmfs_cred cred = {0};
    char path[PATH_MAX];
    struct pmfs_attr attr;
    size_t done;

    snprintf(path, sizeof(path), "%s/direct", dir);
    if (pmfs_mkfs(path, POOL_SIZE, NULL) < 0 || pmfs_mount(path, NULL, &fs) < 0)
        errx(1, "%s", pmfs_errormsg());
    if (pmfs_create(fs, PMFS_ROOT_INO, "file", 0600, &cred, &attr) < 0)
        errx(1, "create: %s", pmfs_errormsg());
    ino = attr.ino;
    for (uint64_t at = 0; at < FILE_SIZE; at += 4096)
        if (pmfs_write(fs, ino, at, path, 4096, 0, &done) < 0)
            errx(1, "write: %s", pmfs_errormsg());

    fds[PRELOADED] = open("/pmfs/file", O_RDWR | O_CREAT, 0600);
    snprintf(path, sizeof(path), "%s/file", dir);
    fds[BY_KERNEL] = open(path, O_RDWR | O_CREAT, 0600);
    if (fds[PRELOADED] < 0 || fds[BY_KERNEL] < 0)
        err(1, "open");
    fill(fds[PRELOADED]);
    fill(fds[BY_KERNEL]);
}

static void remove_files(const char *dir)
{
    static const char *const files[] = {"direct", "preloaded", "file"};
    char path[PATH_MAX];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, files[i]);
        unlink(path);
    }
    rmdir(dir);
}

/* ---- Starting ------------------------------------------------------------------ */

static void start_preloaded(char **argv)
{
    char dir[] = "/dev/shm/bench-preload-XXXXXX", self[PATH_MAX], text[2 * PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (size < 0 || !mkdtemp(dir))
        err(1, "cannot start");
    self[size] = 0;
    snprintf(text, sizeof(text), "%s/preloaded", dir);
    if (pmfs_mkfs(text, POOL_SIZE, NULL) < 0)
        errx(1, "%s", pmfs_errormsg());
    snprintf(text, sizeof(text), "/pmfs=%s/preloaded", dir);
    setenv("PMFS_PRELOAD", text, 1);
    setenv("BENCH_PRELOAD_DIR", dir, 1);
    snprintf(text, sizeof(text), "%s/libpmfs-preload.so", dirname(self));
    setenv("LD_PRELOAD", text, 1);
    execv("/proc/self/exe", argv);
    err(1, "exec");
}

int main(int argc, char **argv)
{
    const char *dir = getenv("BENCH_PRELOAD_DIR");

    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (argc > 1)
        errx(2, "one argument too many: %s\nTry: bench-preload --help", argv[1]);
    if (!dir)
        start_preloaded(argv);
    bench_pin();
    open_files(dir);
    for (int is_write = 0; is_write < 2; is_write++) {
        measure(is_write, 64);
        measure(is_write, 4096);
    }
    remove_files(dir);
    return 0;
}
