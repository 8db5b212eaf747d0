/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of libpmem that store, flush, fence and map, as it promises them and no
 * more: they replace its own, in libraries that use it, too. The others are left to it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crashtest/runtime/bytes.h"
#include "crashtest/runtime/map.h"
#include "crashtest/runtime/record.h"

#define HOOK __attribute__((visibility("default")))

/* Flags of <libpmem.h>, which may not be installed. */
#define F_MEM_NODRAIN (1u << 0)
#define F_MEM_NONTEMPORAL (1u << 1)
#define F_MEM_TEMPORAL (1u << 2)
#define F_MEM_WC (1u << 3)
#define F_MEM_NOFLUSH (1u << 5)

/* From here on libpmem streams if it is not told how. */
#define STREAM_SIZE_MIN 256

HOOK int pmem_is_pmem(const void *address, size_t size);
HOOK void pmem_flush(const void *address, size_t size);
HOOK void pmem_deep_flush(const void *address, size_t size);
HOOK void pmem_drain(void);
HOOK int pmem_deep_drain(const void *address, size_t size);
HOOK void pmem_persist(const void *address, size_t size);
HOOK int pmem_deep_persist(const void *address, size_t size);
HOOK int pmem_msync(const void *address, size_t size);
HOOK int pmem_has_auto_flush(void);
HOOK int pmem_has_hw_drain(void);
HOOK void *pmem_memmove(void *dst, const void *src, size_t size, unsigned flags);
HOOK void *pmem_memcpy(void *dst, const void *src, size_t size, unsigned flags);
HOOK void *pmem_memset(void *dst, int byte, size_t size, unsigned flags);
HOOK void *pmem_memmove_persist(void *dst, const void *src, size_t size);
HOOK void *pmem_memcpy_persist(void *dst, const void *src, size_t size);
HOOK void *pmem_memset_persist(void *dst, int byte, size_t size);
HOOK void *pmem_memmove_nodrain(void *dst, const void *src, size_t size);
HOOK void *pmem_memcpy_nodrain(void *dst, const void *src, size_t size);
HOOK void *pmem_memset_nodrain(void *dst, int byte, size_t size);
HOOK void *pmem_map_file(const char *path, size_t size, int flags, mode_t mode,
                         size_t *mapped_size, int *is_pmem);
HOOK int pmem_unmap(void *address, size_t size);

/* ---- Flushing -------------------------------------------------------------------- */

int pmem_is_pmem(const void *address, size_t size)
{
    uint64_t offset;

    return record_find(address, &size, &offset);
}

int pmem_has_auto_flush(void)
{
    return 0;
}

int pmem_has_hw_drain(void)
{
    return 0;
}

void pmem_flush(const void *address, size_t size)
{
    record_flush(address, size, TRACE_FLUSH, CALLER);
}

void pmem_deep_flush(const void *address, size_t size)
{
    record_flush(address, size, TRACE_FLUSH, CALLER);
}

void pmem_drain(void)
{
    record_fence(CALLER);
}

int pmem_deep_drain(const void *address, size_t size)
{
    (void)address;
    (void)size;
    record_fence(CALLER);
    return 0;
}

void pmem_persist(const void *address, size_t size)
{
    record_flush(address, size, TRACE_FLUSH, CALLER);
    record_fence(CALLER);
}

int pmem_deep_persist(const void *address, size_t size)
{
    record_flush(address, size, TRACE_FLUSH, CALLER);
    record_fence(CALLER);
    return 0;
}

int pmem_msync(const void *address, size_t size)
{
    map_sync(address, size, CALLER);
    return 0;
}

/* ---- Storing --------------------------------------------------------------------- */

static enum trace_kind kind_of(size_t size, unsigned flags)
{
    if (flags & (F_MEM_NONTEMPORAL | F_MEM_WC))
        return TRACE_STREAM;
    if (flags & (F_MEM_TEMPORAL | F_MEM_NOFLUSH))
        return TRACE_STORE;
    return size >= STREAM_SIZE_MIN ? TRACE_STREAM : TRACE_STORE;
}

static void finish(void *dst, size_t size, unsigned flags, const void *pc)
{
    if (flags & F_MEM_NOFLUSH)
        return;
    if (kind_of(size, flags) == TRACE_STORE)
        record_flush(dst, size, TRACE_FLUSH, pc);
    if ((flags & F_MEM_NODRAIN) == 0)
        record_fence(pc);
}

static void *move(void *dst, const void *src, size_t size, unsigned flags,
                  const void *pc)
{
    record_store(dst, size, kind_of(size, flags), false, pc);
    bytes_move(dst, src, size);
    record_settle();
    finish(dst, size, flags, pc);
    return dst;
}

static void *set(void *dst, int byte, size_t size, unsigned flags, const void *pc)
{
    record_store(dst, size, kind_of(size, flags), false, pc);
    bytes_set(dst, byte, size);
    record_settle();
    finish(dst, size, flags, pc);
    return dst;
}

void *pmem_memmove(void *dst, const void *src, size_t size, unsigned flags)
{
    return move(dst, src, size, flags, CALLER);
}

void *pmem_memcpy(void *dst, const void *src, size_t size, unsigned flags)
{
    return move(dst, src, size, flags, CALLER);
}

void *pmem_memset(void *dst, int byte, size_t size, unsigned flags)
{
    return set(dst, byte, size, flags, CALLER);
}

void *pmem_memmove_persist(void *dst, const void *src, size_t size)
{
    return move(dst, src, size, 0, CALLER);
}

void *pmem_memcpy_persist(void *dst, const void *src, size_t size)
{
    return move(dst, src, size, 0, CALLER);
}

void *pmem_memset_persist(void *dst, int byte, size_t size)
{
    return set(dst, byte, size, 0, CALLER);
}

void *pmem_memmove_nodrain(void *dst, const void *src, size_t size)
{
    return move(dst, src, size, F_MEM_NODRAIN, CALLER);
}

void *pmem_memcpy_nodrain(void *dst, const void *src, size_t size)
{
    return move(dst, src, size, F_MEM_NODRAIN, CALLER);
}

void *pmem_memset_nodrain(void *dst, int byte, size_t size)
{
    return set(dst, byte, size, F_MEM_NODRAIN, CALLER);
}

/* ---- Mapping --------------------------------------------------------------------- */

typedef void *map_file_fn(const char *path, size_t size, int flags, mode_t mode,
                          size_t *mapped_size, int *is_pmem);
typedef int unmap_fn(void *address, size_t size);

static void *next_function(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

void *pmem_map_file(const char *path, size_t size, int flags, mode_t mode,
                    size_t *mapped_size, int *is_pmem)
{
    void *next = next_function("pmem_map_file");
    map_file_fn *map_file;

    if (map_is_pm_path(path)) {
        if (mapped_size)
            *mapped_size = recorder.size;
        if (is_pmem)
            *is_pmem = 1;
        return recorder.base;
    }
    if (!next) {
        errno = ENOSYS;
        return NULL;
    }
    memcpy(&map_file, &next, sizeof(map_file));
    return map_file(path, size, flags, mode, mapped_size, is_pmem);
}

int pmem_unmap(void *address, size_t size)
{
    return munmap(address, size);
}
