/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-preload - what a call costs a program that runs with libpmfs-preload.so, next to
 * the same by pmfs.h, and by the kernel on tmpfs. All in one process, which starts
 * itself again with the library preloaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/command.h"
#include "bench/harness.h"
#include "bench/scratch.h"
#include "include/pmfs.h"

enum { OPERATIONS = 20000, OPERATIONS_QUICK = 2000, FILE_SIZE = 64 << 20 };
enum { POOL_SIZE = 160 << 20 };

/* In the environment of the program that runs preloaded: the pool made for it. */
#define POOL_VARIABLE "BENCH_PRELOAD_POOL"

enum how { BY_PMFS_H, PRELOADED, BY_KERNEL, HOWS };

static const char *const names[HOWS] = {"pmfs.h", "preloaded", "kernel, tmpfs"};

enum {
    COL_CALL,
    COL_SIZE,
    COL_BY,
    COL_NS,
    COL_NS_MIN,
    COL_NS_MAX,
    COL_RATIO,
    COL_COUNT
};

static const struct column columns[COL_COUNT] = {
    {"call", "call", COLUMN_TEXT, 0},
    {"size", "size", COLUMN_NUMBER, 0},
    {"by", "by", COLUMN_TEXT, 0},
    {"ns_median", "ns", COLUMN_NUMBER, 0},
    {"ns_min", "min", COLUMN_NUMBER, 0},
    {"ns_max", "max", COLUMN_NUMBER, 0},
    {"ratio_pmfs_h", "/pmfs.h", COLUMN_NUMBER, 2},
};

/* ---- What is measured ---------------------------------------------------------- */

struct subject {
    enum how how;
    bool is_write;
    size_t size;
    int operations;
    double ns[BENCH_ROUNDS_MAX];
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

    for (int i = 0; i < subject->operations; i++) {
        int rc = do_one(subject, buffer);

        if (rc < 0)
            return rc;
    }
    *ns_per_op = (double)(bench_now_ns() - start) / subject->operations;
    return 0;
}

static int add_rows(struct table *results, const struct subject *subjects,
                    size_t rounds)
{
    for (int i = 0; i < HOWS; i++) {
        const struct subject *subject = &subjects[i];
        struct bench_spread spread = bench_spread(subject->ns, rounds);
        struct cell *row = table_add(results);

        if (!row)
            return -ENOMEM;
        cell_set_text(&row[COL_CALL], subject->is_write ? "write" : "read");
        cell_set_text(&row[COL_BY], names[i]);
        row[COL_SIZE].number = (double)subject->size;
        row[COL_NS].number = spread.median;
        row[COL_NS_MIN].number = spread.min;
        row[COL_NS_MAX].number = spread.max;
        row[COL_RATIO].number =
            bench_ratio(subject->ns, subjects[BY_PMFS_H].ns, rounds);
    }
    return 0;
}

static int measure_call(const struct bench_options *options, struct table *results,
                        bool is_write, size_t size)
{
    static struct subject subjects[HOWS];
    struct bench_subject rounds[HOWS];

    for (int i = 0; i < HOWS; i++) {
        subjects[i] = (struct subject){
            .how = (enum how)i,
            .is_write = is_write,
            .size = size,
            .operations = options->is_quick ? OPERATIONS_QUICK : OPERATIONS,
        };
        rounds[i] = (struct bench_subject){batch, &subjects[i], subjects[i].ns};
    }
    int rc = bench_rounds(rounds, HOWS, options->rounds);

    return rc < 0 ? rc : add_rows(results, subjects, options->rounds);
}

/* ---- Files --------------------------------------------------------------------- */

static int fill(int fd)
{
    static const char zeros[1 << 20];

    for (int i = 0; i < FILE_SIZE >> 20; i++)
        if (write(fd, zeros, sizeof(zeros)) != sizeof(zeros))
            return -EIO;
    return 0;
}

static int open_direct(void)
{
    static const char zeros[1 << 20];
    const struct pmfs_cred cred = {0};
    const char *path = scratch_path("direct");
    struct pmfs_attr attr;
    size_t done;
    int rc = pmfs_mkfs(path, POOL_SIZE, NULL);

    if (rc == 0)
        rc = pmfs_mount(path, NULL, &fs);
    scratch_unlink(path);
    if (rc == 0)
        rc = pmfs_create(fs, PMFS_ROOT_INO, "file", 0600, &cred, &attr);
    ino = rc == 0 ? attr.ino : 0;
    for (uint64_t at = 0; rc == 0 && at < FILE_SIZE; at += sizeof(zeros))
        rc = pmfs_write(fs, ino, at, zeros, sizeof(zeros), 0, &done);
    return rc;
}

static int open_file(enum how how, const char *path)
{
    fds[how] = open(path, O_RDWR | O_CREAT, 0600);
    return fds[how] < 0 ? -errno : fill(fds[how]);
}

static int open_files(void)
{
    const char *path = scratch_path("file");
    int rc = open_direct();

    if (rc == 0)
        rc = open_file(PRELOADED, "/pmfs/file");
    if (rc == 0)
        rc = open_file(BY_KERNEL, path);
    scratch_unlink(path);
    return rc;
}

/* ---- The command --------------------------------------------------------------- */

static char **arguments; /* main()'s */

/*
 * Starts this program again, with the library and a pool for it: by itself that has none,
 * since the library looks for its pool when it is loaded. Comes back only if that fails.
 */
static int start_preloaded(void)
{
    char self[PATH_MAX], text[2 * PATH_MAX];
    const char *pool = scratch_path("preloaded");
    ssize_t size = readlink("/proc/self/exe", self, sizeof(self) - 1);
    int rc = size < 0 ? -errno : pmfs_mkfs(pool, POOL_SIZE, NULL);

    if (rc < 0)
        return rc;
    self[size] = 0;
    snprintf(text, sizeof(text), "/pmfs=%s", pool);
    setenv("PMFS_PRELOAD", text, 1);
    setenv(POOL_VARIABLE, pool, 1);
    snprintf(text, sizeof(text), "%s/libpmfs-preload.so", dirname(self));
    setenv("LD_PRELOAD", text, 1);
    execv("/proc/self/exe", arguments);
    return -errno;
}

/* It is open, or of no use: who had it made has ended. */
static void remove_pool(char *pool)
{
    unlink(pool);
    rmdir(dirname(pool));
}

static int measure(const void *options, struct table *results)
{
    char *pool = getenv(POOL_VARIABLE);

    if (!pool)
        return start_preloaded();
    int rc = bench_pin();

    if (rc == 0)
        rc = open_files();
    remove_pool(pool);
    if (rc < 0)
        return rc;
    bench_print_setup(options, NULL, NULL);
    for (int is_write = 0; rc == 0 && is_write < 2; is_write++) {
        rc = measure_call(options, results, is_write, 64);
        if (rc == 0)
            rc = measure_call(options, results, is_write, 4096);
    }
    pmfs_unmount(fs);
    return rc;
}

static const struct bench_command command = {
    .name = "bench-preload",
    .about = "Measures what reading and writing 64 and 4096 bytes costs a preloaded "
             "program, next\n"
             "to the same by pmfs.h, and by the kernel on tmpfs.",
    .quick = "fewer and shorter rounds, with more noise",
    .rounds = 21,
    .quick_rounds = 5,
    .room = "384 MiB",
    .columns = columns,
    .column_count = COL_COUNT,
    .measure = measure,
};

int main(int argc, char **argv)
{
    struct bench_options options = {0};

    arguments = argv;
    return bench_main(&command, &options, argc, argv);
}
