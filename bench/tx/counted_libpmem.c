/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counted_libpmem.c - preloaded before libpmem, counts what PMDK's libraries ask of it.
 * They reach libpmem by dynamic symbols, so none of their calls is missed.
 */
#include <dlfcn.h>
#include <libpmem.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "bench/tx/count.h"

#define LINE 64u
#define STREAM_FROM 256u /* bytes: libpmem's own limit for non-temporal stores */
#define EXPORT __attribute__((visibility("default")))

typedef void flush_fn(const void *addr, size_t size);
typedef void *copy_fn(void *dst, const void *src, size_t size, unsigned flags);
typedef void *set_fn(void *dst, int c, size_t size, unsigned flags);

static struct tx_counters sum = {.log_payload_bytes = NAN, .log_bytes = NAN};
static unsigned depth; /* libpmem calls its own functions, too: counted once */

EXPORT void tx_count_read(struct tx_counters *counters);

EXPORT void tx_count_read(struct tx_counters *counters)
{
    *counters = sum;
}

/* `function` points to a pointer to a function: ISO C has no cast to one. */
static void find_next(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort(); /* libpmem has it */
    memcpy(function, &found, sizeof(found));
}

static double line_count(const void *addr, size_t size)
{
    size_t count = ((uintptr_t)addr % LINE + size + LINE - 1) / LINE;

    return (double)count;
}

static void count_flush(const void *addr, size_t size)
{
    if (depth == 0 && size > 0)
        sum.lines_flushed += line_count(addr, size);
}

static void count_fence(void)
{
    if (depth == 0)
        sum.fences++;
}

/* What pmem_memcpy() and its like do besides storing. */
static void count_store(const void *dst, size_t size, unsigned flags)
{
    bool stream =
        flags & (PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_WC) ||
        (!(flags & (PMEM_F_MEM_TEMPORAL | PMEM_F_MEM_WB)) && size >= STREAM_FROM);

    if (depth > 0 || flags & PMEM_F_MEM_NOFLUSH)
        return;
    if (size > 0)
        *(stream ? &sum.lines_streamed : &sum.lines_flushed) += line_count(dst, size);
    if (!(flags & PMEM_F_MEM_NODRAIN))
        count_fence();
}

EXPORT void pmem_drain(void)
{
    static void (*next)(void);

    if (!next)
        find_next("pmem_drain", &next);
    count_fence();
    depth++;
    next();
    depth--;
}

EXPORT void pmem_flush(const void *addr, size_t size)
{
    static flush_fn *next;

    if (!next)
        find_next("pmem_flush", &next);
    count_flush(addr, size);
    depth++;
    next(addr, size);
    depth--;
}

EXPORT void pmem_deep_flush(const void *addr, size_t size)
{
    static flush_fn *next;

    if (!next)
        find_next("pmem_deep_flush", &next);
    count_flush(addr, size);
    depth++;
    next(addr, size);
    depth--;
}

EXPORT void pmem_persist(const void *addr, size_t size)
{
    static flush_fn *next;

    if (!next)
        find_next("pmem_persist", &next);
    count_flush(addr, size);
    count_fence();
    depth++;
    next(addr, size);
    depth--;
}

EXPORT void *pmem_memcpy(void *dst, const void *src, size_t size, unsigned flags)
{
    static copy_fn *next;

    if (!next)
        find_next("pmem_memcpy", &next);
    count_store(dst, size, flags);
    depth++;
    next(dst, src, size, flags);
    depth--;
    return dst;
}

EXPORT void *pmem_memmove(void *dst, const void *src, size_t size, unsigned flags)
{
    static copy_fn *next;

    if (!next)
        find_next("pmem_memmove", &next);
    count_store(dst, size, flags);
    depth++;
    next(dst, src, size, flags);
    depth--;
    return dst;
}

EXPORT void *pmem_memset(void *dst, int c, size_t size, unsigned flags)
{
    static set_fn *next;

    if (!next)
        find_next("pmem_memset", &next);
    count_store(dst, size, flags);
    depth++;
    next(dst, c, size, flags);
    depth--;
    return dst;
}

EXPORT void *pmem_memcpy_nodrain(void *dst, const void *src, size_t size)
{
    return pmem_memcpy(dst, src, size, PMEM_F_MEM_NODRAIN);
}

EXPORT void *pmem_memset_persist(void *dst, int c, size_t size)
{
    return pmem_memset(dst, c, size, 0);
}
