/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/runtime/map.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crashtest/runtime/record.h"

#define HOOK __attribute__((visibility("default")))
#define PAGE_SIZE 4096u

extern const char __executable_start, etext; /* of the linker */

HOOK void *mmap(void *address, size_t size, int protection, int flags, int fd,
                off_t offset);
HOOK void *mmap64(void *address, size_t size, int protection, int flags, int fd,
                  off_t offset);
HOOK int munmap(void *address, size_t size);
HOOK int open(const char *path, int flags, ...);
HOOK int open64(const char *path, int flags, ...);
HOOK int msync(void *address, size_t size, int flags);

static bool is_of_program(const void *pc)
{
    uintptr_t at = (uintptr_t)pc;

    return (uintptr_t)&__executable_start <= at && at < (uintptr_t)&etext;
}

static void *map(void *address, size_t size, int protection, int flags, int fd,
                 off_t offset, const void *pc)
{
    bool is_pm = fd >= 0 && (flags & MAP_SHARED) && record_is_pm_file(fd);

    if (is_pm && !(flags & MAP_FIXED) && is_of_program(pc) &&
        (uint64_t)offset <= recorder.size && size <= recorder.size - (uint64_t)offset)
        return recorder.base + offset;
    if (is_pm)
        flags &= ~MAP_SYNC; /* which the file that stands for PM does not know */
    long result = syscall(SYS_mmap, address, size, protection, flags, fd, offset);

    if (result == -1)
        return MAP_FAILED;
    if (is_pm)
        record_add_alias((void *)result, size, (uint64_t)offset);
    return (void *)result;
}

void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
    return map(address, size, protection, flags, fd, offset, CALLER);
}

void *mmap64(void *address, size_t size, int protection, int flags, int fd,
             off_t offset)
{
    return map(address, size, protection, flags, fd, offset, CALLER);
}

int munmap(void *address, size_t size)
{
    if (recorder.base && (uintptr_t)address - (uintptr_t)recorder.base < recorder.size)
        return 0;
    record_remove_alias(address, size);
    return (int)syscall(SYS_munmap, address, size);
}

void map_sync(const void *address, size_t size, const void *pc)
{
    uintptr_t start = (uintptr_t)address & ~(uintptr_t)(PAGE_SIZE - 1);
    uintptr_t end = (uintptr_t)address + size;

    end = (end + PAGE_SIZE - 1) & ~(uintptr_t)(PAGE_SIZE - 1);
    record_flush((const void *)start, end - start, TRACE_FLUSH, pc);
    record_fence(pc);
}

int msync(void *address, size_t size, int flags)
{
    uint64_t offset;
    size_t length = size;

    if (!recorder.base || !record_find(address, &length, &offset))
        return (int)syscall(SYS_msync, address, size, flags);
    map_sync(address, size, CALLER);
    return 0;
}

bool map_is_pm_path(const char *path)
{
    return path && recorder.path && strcmp(path, recorder.path) == 0;
}

/* ---- Opening --------------------------------------------------------------------- */

/* PM is there already, but the program may make its file. */
static int open_file(const char *path, int flags, mode_t mode)
{
    if (map_is_pm_path(path))
        flags &= ~(O_CREAT | O_EXCL | O_TRUNC);
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static bool has_mode(int flags)
{
    return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE;
}

int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    va_start(args, flags);
    if (has_mode(flags))
        mode = va_arg(args, mode_t);
    va_end(args);
    return open_file(path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list args;

    va_start(args, flags);
    if (has_mode(flags))
        mode = va_arg(args, mode_t);
    va_end(args);
    return open_file(path, flags | O_LARGEFILE, mode);
}
