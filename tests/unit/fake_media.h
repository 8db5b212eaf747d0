/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fake_media.h - media that this machine does not have. What the kernel and libpmem say
 * of a medium is wrapped by the linker (see CMakeLists.txt), so that
 * tests have msync mode, DAX and eADR on any file, and an msync that fails.
 */
#ifndef FAKE_MEDIA_H
#define FAKE_MEDIA_H

#include "tests/unit/fixture.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>

static bool pretend_disk; /* fstatfs does not tell that a file is in tmpfs */
static bool pretend_dax;  /* MAP_SYNC works */
static int auto_flush;    /* what pmem_has_auto_flush() says */
static int msync_errnum;  /* with it msync fails, from call number ... on */
static int msync_fails_from;
static int msync_calls;
static uintptr_t msync_start, msync_end; /* of the last call */

static inline void fake_nothing(void)
{
    pretend_disk = pretend_dax = false;
    auto_flush = msync_errnum = msync_fails_from = msync_calls = 0;
}

static inline void fake_medium(enum minl2r_medium medium)
{
    pretend_disk = medium != MINL2R_EMULATED;
    pretend_dax = medium == MINL2R_DAX || medium == MINL2R_EADR;
    auto_flush = medium == MINL2R_EADR;
}

int __real_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs);
int __wrap_fstatfs(int fd, struct statfs *fs)
{
    int result = __real_fstatfs(fd, fs);

    if (pretend_disk)
        fs->f_type = EXT4_SUPER_MAGIC;
    return result;
}

void *__real_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int protection, int flags, int fd,
                  off_t offset)
{
    if (flags & MAP_SYNC) {
        if (!pretend_dax) {
            errno = EOPNOTSUPP;
            return MAP_FAILED;
        }
        flags = (flags & ~(MAP_SYNC | MAP_SHARED_VALIDATE)) | MAP_SHARED;
    }
    return __real_mmap(at, size, protection, flags, fd, offset);
}

int __wrap_pmem_has_auto_flush(void);
int __wrap_pmem_has_auto_flush(void)
{
    return auto_flush;
}

int __real_msync(void *at, size_t size, int flags);
int __wrap_msync(void *at, size_t size, int flags);
int __wrap_msync(void *at, size_t size, int flags)
{
    msync_calls++;
    msync_start = (uintptr_t)at;
    msync_end = (uintptr_t)at + size;
    if (msync_errnum == 0 || msync_calls < msync_fails_from)
        return __real_msync(at, size, flags);
    errno = msync_errnum;
    return -1;
}

#endif
