/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * loads.h - shows the model the loads of PM that no call can be wrapped for. The
 * library's core and the schemes are compiled with it in front of them (-include) once
 * more, for programs that link `bench_delay`: `minl2r_seen` and `bench_schemes_seen`.
 * In all others nothing is different.
 *
 * By macros of the names of what loads: copies (inlined or by words, as copy.h has
 * them), comparisons with what is in place, pm_load64(), and prefetches. So whoever
 * loads PM otherwise, by a plain dereference, is not seen: test_loads.c finds it.
 */
#ifndef BENCH_DELAY_LOADS_H
#define BENCH_DELAY_LOADS_H

#include <string.h>

#include "bench/delay/delay.h"
#include "libminl2r/copy.h"
#include "libminl2r/pm.h"

/* Around a load, if what is loaded may be PM that is delayed. */
static inline bool load_is_seen(const void *src)
{
    return (uintptr_t)src - delay_pm_start < delay_pm_size;
}

static inline void *seen_memcpy(void *dst, const void *src, size_t size)
{
    if (!load_is_seen(src))
        return memcpy(dst, src, size);
    uint64_t start = delay_load_begin(src, size);

    memcpy(dst, src, size);
    delay_load_end(src, size, start);
    return dst;
}

static inline void seen_copy_recent(void *dst, const void *src, size_t size)
{
    if (!load_is_seen(src)) {
        copy_recent(dst, src, size);
        return;
    }
    uint64_t start = delay_load_begin(src, size);

    copy_recent(dst, src, size);
    delay_load_end(src, size, start);
}

/* How many bytes a comparison looks at: up to the first that differs. */
static inline size_t seen_prefix(const uint8_t *a, const uint8_t *b, size_t size)
{
    size_t at = 0;

    while (at < size && a[at] == b[at])
        at++;
    return at < size ? at + 1 : size;
}

/* What is in place comes first, as in commit_has_bytes(). */
static inline int seen_memcmp(const void *old, const void *bytes, size_t size)
{
    if (!load_is_seen(old))
        return memcmp(old, bytes, size);
    uint64_t start = delay_load_begin(old, size);
    int result = memcmp(old, bytes, size);

    delay_load_end(old, result == 0 ? size : seen_prefix(old, bytes, size), start);
    return result;
}

static inline uint64_t seen_load64(const uint64_t *word)
{
    if (!load_is_seen(word))
        return pm_load64(word);
    uint64_t start = delay_load_begin(word, sizeof(*word));
    uint64_t value = pm_load64(word);

    delay_load_end(word, sizeof(*word), start);
    return value;
}

static inline void seen_prefetch(const void *at)
{
    __builtin_prefetch(at);
    if (load_is_seen(at))
        delay_prefetch(at);
}

#undef memcpy
#undef memcmp
#define memcpy(...) seen_memcpy(__VA_ARGS__)
#define memcmp(...) seen_memcmp(__VA_ARGS__)
#define copy_recent(...) seen_copy_recent(__VA_ARGS__)
#define pm_load64(word) seen_load64(word)
#define __builtin_prefetch(at, ...) seen_prefetch(at)

#endif
