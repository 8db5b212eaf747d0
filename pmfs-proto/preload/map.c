/* SPDX-License-Identifier: BSD-3-Clause */
/* map.c - mmap: a private copy. Shared stores could not be made durable. */
#include "pmfs-proto/preload/preload.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_map(const struct handle *file, size_t size, int protection, int flags,
                     off_t at)
{
    bool is_private = (flags & MAP_TYPE) == MAP_PRIVATE;

    if (at & (sysconf(_SC_PAGESIZE) - 1))
        return -EINVAL;
    if (handle_check(file, O_RDWR) < 0)
        return -EBADF;
    if (size == 0)
        return -EINVAL;
    if (at < 0)
        return -EOVERFLOW;
    if ((flags & MAP_TYPE) == 0)
        return -EINVAL;
    if (handle_check(file, O_RDONLY) < 0 ||
        (!is_private && protection & PROT_WRITE && handle_check(file, O_WRONLY) < 0))
        return -EACCES;
    if (file->type != S_IFREG)
        return -ENODEV;
    if (is_private)
        return 0;
    say_once(NOTICE_MAP, "a file below %s cannot be mapped shared, only private",
             config_get()->prefix);
    return -ENODEV;
}

/* Reads what is not in holes: new memory is of zeros, and costs nothing until used. */
static int copy_to(const struct handle *file, char *memory, size_t size, off_t at)
{
    uint64_t next = (uint64_t)at, end = next + size, hole = end;
    struct pmfs *fs;
    int rc = pool_get(&fs);

    while (rc == 0 && next < end) {
        rc = pmfs_seek(fs, file->ino, next, PMFS_SEEK_DATA, &next);
        if (rc == 0)
            rc = pmfs_seek(fs, file->ino, next, PMFS_SEEK_HOLE, &hole);
        if (rc < 0 || next >= end)
            break;
        ssize_t got = handle_read_at(file, memory + (next - (uint64_t)at),
                                     (hole < end ? hole : end) - next, next);

        if (got <= 0)
            return (int)got;
        next += (uint64_t)got;
    }
    return rc == -ENXIO ? 0 : rc; /* there is no more */
}

static int map_copy(const struct handle *file, void **address, size_t size,
                    int protection, int flags, off_t at)
{
    int kind = flags | MAP_ANONYMOUS | (protection & PROT_WRITE ? 0 : MAP_NORESERVE);
    void *memory = REAL(mmap)(*address, size, PROT_READ | PROT_WRITE, kind, -1, 0);
    int rc;

    if (memory == MAP_FAILED)
        return -errno;
    rc = copy_to(file, memory, size, at);
    if (rc == 0 && protection != (PROT_READ | PROT_WRITE) &&
        mprotect(memory, size, protection) < 0)
        rc = -errno;
    if (rc < 0)
        munmap(memory, size);
    *address = memory;
    return rc;
}

INTERPOSE(void *, mmap,
          (void *address, size_t size, int protection, int flags, int fd, off_t at))
{
    struct handle *file = flags & MAP_ANONYMOUS ? NULL : handle_get(fd);
    int rc;

    if (!file)
        return REAL(mmap)(address, size, protection, flags, fd, at);
    rc = handle_begin(file, O_PATH);
    if (rc == 0)
        rc = check_map(file, size, protection, flags, at);
    if (rc == 0)
        rc = map_copy(file, &address, size, protection, flags, at);
    return handle_end(file, rc) < 0 ? MAP_FAILED : address;
}
ALIAS(mmap64, mmap);
