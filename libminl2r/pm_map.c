/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pm_map.c - the door on hardware: mappings, and what medium they are of.
 *
 * Only here and in pm_libpmem.c is <libpmem.h> known.
 */
#include "libminl2r/pm.h"

#include <errno.h>
#include <libpmem.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "libminl2r/error.h"

#define HUGE_PAGE ((uint64_t)2 << 20)

#ifdef __x86_64__
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);

    return value && strcmp(value, "1") == 0;
}

/* As libpmem chooses. */
static const char *line_flush_name(void)
{
    unsigned eax, ebx = 0, ecx, edx;

    __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
    if (ebx & bit_CLWB && !is_set("PMEM_NO_CLWB"))
        return "clwb";
    if (ebx & bit_CLFLUSHOPT && !is_set("PMEM_NO_CLFLUSHOPT"))
        return "clflushopt";
    return "clflush";
}
#else
static const char *line_flush_name(void)
{
    return "native";
}
#endif

static const char *flush_name(enum minl2r_medium medium)
{
    switch (medium) {
    case MINL2R_FILE:
        return "msync";
    case MINL2R_EADR:
        return "none";
    case MINL2R_EMULATED:
    case MINL2R_DAX:
        break;
    }
    return line_flush_name();
}

static void set_medium(struct pm *pm, enum minl2r_medium medium, const char *reason)
{
    pm->medium = medium;
    pm->reason = reason;
    pm->flush_method = flush_name(medium);
}

static bool is_type(int fd, mode_t type)
{
    struct stat stat;

    return fstat(fd, &stat) == 0 && (stat.st_mode & S_IFMT) == type;
}

/* Of a device, fstatfs() describes what its name lies in: /dev, in memory. */
static bool is_in_memory(int fd)
{
    struct statfs fs;

    if (!is_type(fd, S_IFREG) || fstatfs(fd, &fs) < 0)
        return false;
    unsigned long magic = (unsigned long)fs.f_type & 0xffffffff;
    return magic == TMPFS_MAGIC || magic == RAMFS_MAGIC || magic == HUGETLBFS_MAGIC;
}

/*
 * Address space for `size` bytes. What can hold a huge page is aligned to one: fewer
 * page faults and TLB misses where the file system has huge pages to give.
 */
static void *reserve_address(uint64_t size)
{
    uint64_t slack = size >= HUGE_PAGE ? HUGE_PAGE : 0;
    uint8_t *space = mmap(NULL, size + slack, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (space == MAP_FAILED || slack == 0)
        return space;
    uint64_t before = -(uintptr_t)space & (HUGE_PAGE - 1);
    if (before > 0)
        munmap(space, before);
    if (before < slack)
        munmap(space + before + size, slack - before);
    return space + before;
}

/* Replaces the reserved address space at `at`, and leaves it in place on failure. */
static bool map_at(void *at, uint64_t size, int protection, int flags, int fd)
{
    return mmap(at, size, protection, flags | MAP_FIXED, fd, 0) != MAP_FAILED;
}

static bool map_reserved(struct pm *pm, void *at, int fd)
{
    int protection = PROT_READ | (pm->writable ? PROT_WRITE : 0);
    int plain = pm->writable ? MAP_SHARED : MAP_PRIVATE;

    if (is_in_memory(fd)) {
        set_medium(pm, MINL2R_EMULATED,
                   "a file in memory survives a killed process, not a power loss");
        return map_at(at, pm->size, protection, plain, fd);
    }
    if (map_at(at, pm->size, protection, MAP_SHARED_VALIDATE | MAP_SYNC, fd)) {
        if (pmem_has_auto_flush() == 1)
            set_medium(
                pm, MINL2R_EADR,
                "MAP_SYNC works, and the platform saves CPU caches on power loss");
        else
            set_medium(pm, MINL2R_DAX, "MAP_SYNC works; CPU caches have to be flushed");
        return true;
    }
    set_medium(pm, MINL2R_FILE,
               is_type(fd, S_IFBLK)
                   ? "a block device has no MAP_SYNC, whatever it lies on"
                   : "the file system refuses MAP_SYNC: it is not DAX");
    return map_at(at, pm->size, protection, plain, fd);
}

int pm_map(struct pm *pm, int fd, uint64_t size, bool writable)
{
    *pm = (struct pm){.size = size, .writable = writable};
    void *at = reserve_address(size);

    if (at == MAP_FAILED)
        return error_set(errno, "no address space for %llu bytes: %s",
                         (unsigned long long)size, strerror(errno));
    if (!map_reserved(pm, at, fd)) {
        int errnum = errno;

        munmap(at, size);
        return error_set(errnum, "cannot map %llu bytes: %s", (unsigned long long)size,
                         strerror(errnum));
    }
    pm->base = at;
    return 0;
}

static void *at_distance(const void *ptr, uintptr_t distance)
{
    return (void *)((uintptr_t)ptr + distance);
}

void pm_unmap(struct pm *pm)
{
    if (!pm->base)
        return;
    munmap(at_distance(pm->base, 0), pm->size);
    if (pm->twin)
        munmap(at_distance(pm->base, pm->twin), pm->size);
    pm->base = NULL;
}

int pm_watch(struct pm *pm, int fd)
{
    struct pm twin;
    int result = pm_map(&twin, fd, pm->size, true);

    if (result < 0)
        return result;
    if (mprotect(at_distance(pm->base, 0), pm->size, PROT_READ) < 0) {
        int errnum = errno;

        pm_unmap(&twin);
        return error_set(errnum, "cannot watch the mapping: %s", strerror(errnum));
    }
    pm->twin = (uintptr_t)twin.base - (uintptr_t)pm->base;
    return 0;
}

void pm_adopt(struct pm *pm, const void *base, uint64_t size, enum minl2r_medium medium)
{
    *pm = (struct pm){.base = base, .size = size, .writable = true};
    set_medium(pm, medium, "memory given by the caller");
}
