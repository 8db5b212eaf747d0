/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/mount/jobs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "bench/mount/empty.h"

static char buffer[JOB_SIZE_MAX] __attribute__((aligned(4096)));

static int result_of(long returned)
{
    return returned < 0 ? -errno : 0;
}

static int result_of_io(ssize_t done, uint32_t size)
{
    if (done < 0)
        return -errno;
    return done == (ssize_t)size ? 0 : -EIO;
}

static off_t random_offset(struct load *load, uint32_t size)
{
    load->random_state =
        load->random_state * 6364136223846793005u + 1442695040888963407u;
    return (off_t)((load->random_state >> 33) % (EMPTY_FILE_SIZE / size) * size);
}

/* ---- Content --------------------------------------------------------------------- */

/* Bytes that were not there before. */
static void renew(uint32_t size, uint64_t number)
{
    memset(buffer, (int)(number * 37 + 1), size < 64 ? size : 64);
}

static int overwrite(struct load *load, const struct job *job, uint64_t number)
{
    off_t offset = random_offset(load, job->size);

    renew(job->size, number);
    return result_of_io(pwrite(load->cached, buffer, job->size, offset), job->size);
}

static int append(struct load *load, const struct job *job, uint64_t number)
{
    renew(job->size, number);
    return result_of_io(
        pwrite(load->tail, buffer, job->size, (off_t)(number * job->size)), job->size);
}

static int empty_tail(struct load *load, const struct job *job, uint64_t number)
{
    (void)job;
    return number == 0 ? result_of(ftruncate(load->tail, 0)) : 0;
}

static int read_back(struct load *load, const struct job *job, uint64_t number)
{
    off_t offset = random_offset(load, job->size);

    (void)number;
    return result_of_io(pread(load->direct, buffer, job->size, offset), job->size);
}

static int sync_data(struct load *load, const struct job *job, uint64_t number)
{
    (void)job, (void)number;
    return result_of(fdatasync(load->cached));
}

/* ---- Attributes ------------------------------------------------------------------ */

/* The kernel's copy of them will not do. */
static int get_attributes(struct load *load, const struct job *job, uint64_t number)
{
    struct statx found;

    (void)job, (void)number;
    return result_of(statx(load->cached, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC,
                           STATX_BASIC_STATS, &found));
}

static int change_mode(struct load *load, const struct job *job, uint64_t number)
{
    (void)job;
    return result_of(fchmod(load->cached, number % 2 ? 0600 : 0644));
}

static int set_attribute(struct load *load, const struct job *job, uint64_t number)
{
    renew(job->size, number);
    return result_of(fsetxattr(load->cached, "user.name", buffer, job->size, 0));
}

static int get_attribute(struct load *load, const struct job *job, uint64_t number)
{
    (void)number;
    return result_of_io(fgetxattr(load->cached, "user.name", buffer, job->size),
                        job->size);
}

/* From a block to nothing and back, which is a hole. */
static int cut(struct load *load, const struct job *job, uint64_t number)
{
    (void)job;
    return result_of(ftruncate(load->tail, number % 2 ? 0 : 4096));
}

static int reserve(struct load *load, const struct job *job, uint64_t number)
{
    return result_of(
        fallocate(load->tail, 0, (off_t)(number * job->size), (off_t)job->size));
}

/* ---- Names ----------------------------------------------------------------------- */

static const char *name_of(uint64_t number, char name[32])
{
    snprintf(name, 32, "name-%u", (unsigned)number);
    return name;
}

static int make(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];

    (void)job;
    return result_of(mknodat(load->dir, name_of(number, name), S_IFREG | 0644, 0));
}

static int take(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];

    (void)job;
    return result_of(unlinkat(load->dir, name_of(number, name), 0));
}

/* Never the same again: the kernel knows what is not there, too. */
static int look_up_none(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];
    struct statx found;

    (void)job, (void)number;
    snprintf(name, sizeof(name), "none-%08u", load->nothing++);
    if (statx(load->dir, name, 0, STATX_BASIC_STATS, &found) == 0)
        return -EEXIST;
    return errno == ENOENT ? 0 : -errno;
}

static int make_directory(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];

    (void)job;
    return result_of(mkdirat(load->dir, name_of(number, name), 0755));
}

static int take_directory(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];

    (void)job;
    return result_of(unlinkat(load->dir, name_of(number, name), AT_REMOVEDIR));
}

static int make_symlink(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];

    (void)job;
    return result_of(symlinkat(EMPTY_FILE, load->dir, name_of(number, name)));
}

static int add_link(struct load *load, const struct job *job, uint64_t number)
{
    char name[32];

    (void)job;
    return result_of(
        linkat(load->dir, EMPTY_FILE, load->dir, name_of(number, name), 0));
}

static int take_other(struct load *load, const struct job *job, uint64_t number)
{
    return take(load, job, number + 1000000);
}

static int move(struct load *load, const struct job *job, uint64_t number)
{
    char name[32], other[32];

    (void)job;
    return result_of(renameat(load->dir, name_of(number, name), load->dir,
                              name_of(number + 1000000, other)));
}

/* At first what others ask for, too. */
const struct job jobs[] = {
    {"getattr", 0, JOB_COPIES_NOTHING, get_attributes, NULL, NULL},
    {"setxattr", 32, JOB_COPIES_NOTHING, set_attribute, NULL, NULL},
    {"getxattr", 32, JOB_COPIES_NOTHING, get_attribute, NULL, NULL},
    {"lookup", 0, JOB_COPIES_NOTHING, look_up_none, NULL, NULL},
    {"write", 64, JOB_WRITES, overwrite, NULL, NULL},
    {"write", 1024, JOB_WRITES, overwrite, NULL, NULL},
    {"write", 4096, JOB_WRITES, overwrite, NULL, NULL},
    {"write", 65536, JOB_WRITES, overwrite, NULL, NULL},
    {"append", 4096, JOB_WRITES, append, NULL, empty_tail},
    {"fdatasync", 0, JOB_COPIES_NOTHING, sync_data, NULL, NULL},
    {"read", 4096, JOB_READS, read_back, NULL, NULL},
    {"read", 65536, JOB_READS, read_back, NULL, NULL},
    {"chmod", 0, JOB_COPIES_NOTHING, change_mode, NULL, NULL},
    {"create", 0, JOB_COPIES_NOTHING, make, NULL, take},
    {"rename", 0, JOB_COPIES_NOTHING, move, make, take_other},
    {"unlink", 0, JOB_COPIES_NOTHING, take, make, NULL},
    {"mkdir", 0, JOB_COPIES_NOTHING, make_directory, NULL, take_directory},
    {"rmdir", 0, JOB_COPIES_NOTHING, take_directory, make_directory, NULL},
    {"symlink", 0, JOB_COPIES_NOTHING, make_symlink, NULL, take},
    {"link", 0, JOB_COPIES_NOTHING, add_link, NULL, take},
    {"truncate", 0, JOB_COPIES_NOTHING, cut, NULL, empty_tail},
    {"fallocate", 4096, JOB_COPIES_NOTHING, reserve, NULL, empty_tail},
};
const uint32_t job_count = sizeof(jobs) / sizeof(jobs[0]);

/* ---- Files ----------------------------------------------------------------------- */

static int fill(int fd, off_t size)
{
    int rc = 0;

    for (off_t at = 0; rc == 0 && at < size; at += JOB_SIZE_MAX)
        rc = result_of_io(pwrite(fd, buffer, JOB_SIZE_MAX, at), JOB_SIZE_MAX);
    return rc;
}

int load_open(struct load *load, const char *mountpoint)
{
    *load = (struct load){.random_state = 1, .cached = -1, .direct = -1, .tail = -1};
    load->dir = open(mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (load->dir < 0)
        return -errno;
    memset(buffer, 'b', sizeof(buffer));
    load->cached = openat(load->dir, EMPTY_FILE, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    load->direct = openat(load->dir, EMPTY_FILE, O_RDONLY | O_DIRECT | O_CLOEXEC);
    load->tail = openat(load->dir, "tail", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (load->cached < 0 || load->direct < 0 || load->tail < 0)
        return -errno;
    return fill(load->cached, EMPTY_FILE_SIZE);
}

int load_touch(struct load *load)
{
    int rc = 0;

    for (off_t at = 0; rc == 0; at += JOB_SIZE_MAX)
        rc = result_of_io(pwrite(load->tail, buffer, JOB_SIZE_MAX, at), JOB_SIZE_MAX);
    return rc == -ENOSPC ? result_of(ftruncate(load->tail, 0)) : rc;
}

void load_close(struct load *load)
{
    close(load->tail);
    close(load->direct);
    close(load->cached);
    close(load->dir);
}
