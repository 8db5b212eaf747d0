/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pm_libpmem.c - the door on hardware: stores, flushes and fences.
 *
 * libpmem knows which instruction writes a cache line back and whether the platform
 * does so on power loss. Flushes go through pmem_deep_flush(), which no environment
 * variable turns off. Stores are our own: every aligned word must arrive whole, which
 * memcpy does not promise.
 */
#include "libminl2r/pm.h"

#include <errno.h>
#include <libpmem.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "libminl2r/error.h"

#define RECENT_LINES_MAX 4u

/* ---- Stores ---------------------------------------------------------------------- */

typedef uint16_t __attribute__((may_alias)) any_u16;
typedef uint32_t __attribute__((may_alias)) any_u32;
typedef uint64_t __attribute__((may_alias)) any_u64;

/* Where the bytes at `ptr` are stored to. */
static inline void *writable(const struct pm_phase *phase, const void *ptr)
{
    return (void *)((uintptr_t)ptr + phase->pm->twin);
}

/* The atomic store keeps the compiler from splitting it, or from making loops a memcpy.
 */
static inline void store_word(uint8_t *dst, const uint8_t *src)
{
    uint64_t word;

    memcpy(&word, src, sizeof(word));
    __atomic_store_n((any_u64 *)dst, word, __ATOMIC_RELAXED);
}

static inline void store_piece(uint8_t *dst, const uint8_t *src, size_t size)
{
    uint32_t u32;
    uint16_t u16;

    switch (size) {
    case 8:
        store_word(dst, src);
        break;
    case 4:
        memcpy(&u32, src, sizeof(u32));
        __atomic_store_n((any_u32 *)dst, u32, __ATOMIC_RELAXED);
        break;
    case 2:
        memcpy(&u16, src, sizeof(u16));
        __atomic_store_n((any_u16 *)dst, u16, __ATOMIC_RELAXED);
        break;
    default:
        __atomic_store_n(dst, *src, __ATOMIC_RELAXED);
        break;
    }
}

/* The largest naturally aligned piece at `dst` that `size` bytes hold. */
static size_t piece_at(const uint8_t *dst, size_t size)
{
    size_t piece = 8;

    while (((uintptr_t)dst & (piece - 1)) != 0 || piece > size)
        piece /= 2;
    return piece;
}

/*
 * Copies as many times PM_LINE bytes as there are, to a `dst` aligned to 8, where
 * stores of 16 bytes split no word. The barrier keeps the compiler from making it a
 * memcpy.
 */
#ifdef __x86_64__
static size_t copy_bulk(uint8_t *dst, const uint8_t *src, size_t size)
{
    size_t bulk = size & ~(size_t)(PM_LINE - 1);

    for (size_t i = 0; i < bulk; i += PM_LINE) {
        for (size_t j = i; j < i + PM_LINE; j += sizeof(__m128i))
            _mm_storeu_si128((__m128i_u *)(dst + j),
                             _mm_loadu_si128((const __m128i_u *)(src + j)));
        __asm__ volatile("" ::: "memory");
    }
    return bulk;
}
#else
static size_t copy_bulk(uint8_t *dst, const uint8_t *src, size_t size)
{
    size_t bulk = size & ~(size_t)(PM_LINE - 1);

    for (size_t i = 0; i < bulk; i += 8)
        store_word(dst + i, src + i);
    return bulk;
}
#endif

static void copy(uint8_t *dst, const uint8_t *src, size_t size)
{
    while (size > 0) {
        size_t piece = piece_at(dst, size);

        if (piece == 8 && size >= PM_LINE)
            piece = copy_bulk(dst, src, size);
        else
            store_piece(dst, src, piece);
        dst += piece;
        src += piece;
        size -= piece;
    }
}

static uintptr_t line_of(const void *ptr)
{
    return (uintptr_t)ptr & ~(uintptr_t)(PM_LINE - 1);
}

static bool flushes_lines(const struct pm_phase *phase)
{
    return phase->pm->medium == MINL2R_DAX || phase->pm->medium == MINL2R_EMULATED;
}

/* Counts a store; its lines have to be flushed (again). */
static void note_store(struct pm_phase *phase, const void *dst, size_t size)
{
    uintptr_t start = (uintptr_t)dst;

    pm_count(&phase->stats->pm_bytes, size);
    if (phase->last_line < start + size && start < phase->last_line + PM_LINE)
        phase->last_line = 0;
}

void pm_store(struct pm_phase *phase, const void *dst, const void *src, size_t size)
{
    /* Eight bytes are by far the most; where they are not aligned, they hold no word.
     */
    if (size == 8)
        memcpy(writable(phase, dst), src, 8);
    else
        copy(writable(phase, dst), src, size);
    note_store(phase, dst, size);
}

void pm_zero(struct pm_phase *phase, const void *dst, size_t size)
{
    static const uint8_t zeros[256];
    const uint8_t *at = dst;

    for (size_t left = size; left > 0;) {
        size_t piece = left < sizeof(zeros) ? left : sizeof(zeros);

        copy(writable(phase, at), zeros, piece);
        at += piece;
        left -= piece;
    }
    note_store(phase, dst, size);
}

void pm_store_piece(struct pm_phase *phase, const void *dst, const void *src,
                    size_t size)
{
    store_piece(writable(phase, dst), src, size);
    note_store(phase, dst, size);
}

void pm_or64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    __atomic_fetch_or((uint64_t *)writable(phase, word), bits, __ATOMIC_RELAXED);
    note_store(phase, word, sizeof(*word));
}

void pm_and64(struct pm_phase *phase, const uint64_t *word, uint64_t bits)
{
    __atomic_fetch_and((uint64_t *)writable(phase, word), bits, __ATOMIC_RELAXED);
    note_store(phase, word, sizeof(*word));
}

void pm_max64(struct pm_phase *phase, const uint64_t *word, uint64_t value)
{
    uint64_t old = pm_load64(word);

    while (old < value &&
           !__atomic_compare_exchange_n((uint64_t *)writable(phase, word), &old, value,
                                        false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    note_store(phase, word, old < value ? sizeof(*word) : 0);
}

/* ---- Flushes, streams and fences ------------------------------------------------- */

/* Every processor of x86-64 has what whole lines need; elsewhere libpmem knows. */
#ifdef __x86_64__
static void stream_lines_sse(uint8_t *dst, const uint8_t *src, size_t count)
{
    for (; count > 0; count--, dst += PM_LINE, src += PM_LINE)
        for (size_t i = 0; i < PM_LINE; i += sizeof(__m128i))
            _mm_stream_si128(
                (__m128i *)(void *)(dst + i),
                _mm_loadu_si128((const __m128i_u *)(const void *)(src + i)));
}

/*
 * Half as many stores: what is done next begins while twice as many bytes are still on
 * their way.
 */
__attribute__((target("avx"))) static void
stream_lines_avx(uint8_t *dst, const uint8_t *src, size_t count)
{
    for (; count > 0; count--, dst += PM_LINE, src += PM_LINE) {
        __m256i low = _mm256_loadu_si256((const __m256i_u *)(const void *)src);
        __m256i high = _mm256_loadu_si256((const __m256i_u *)(const void *)(src + 32));

        _mm256_stream_si256((__m256i *)(void *)dst, low);
        _mm256_stream_si256((__m256i *)(void *)(dst + 32), high);
    }
}

static inline void stream_word(uint8_t *dst, const uint8_t *src)
{
    long long word;

    memcpy(&word, src, sizeof(word));
    _mm_stream_si64((long long *)(void *)dst, word);
}

/* A log was stored word by word just now: see copy.h. */
static void stream_lines_by_words(uint8_t *dst, const uint8_t *src, size_t count)
{
    for (size_t at = 0; at < count * PM_LINE; at += 8)
        stream_word(dst + at, src + at);
}

static void stream_lines(uint8_t *dst, const uint8_t *src, size_t count)
{
    if (count <= RECENT_LINES_MAX)
        stream_lines_by_words(dst, src, count);
    else if (__builtin_cpu_supports("avx"))
        stream_lines_avx(dst, src, count);
    else
        stream_lines_sse(dst, src, count);
}

static inline void stream_half(uint8_t *dst, const uint8_t *src)
{
    int half;

    memcpy(&half, src, sizeof(half));
    _mm_stream_si32((int *)(void *)dst, half);
}

/* `dst` and `size` are multiples of 4. Aligned words arrive whole. */
static inline void stream_words(uint8_t *dst, const uint8_t *src, size_t size)
{
    size_t at = (uintptr_t)dst & 4;

    if (at > 0)
        stream_half(dst, src);
    for (; at + 8 <= size; at += 8)
        stream_word(dst + at, src + at);
    if (at < size)
        stream_half(dst + at, src + at);
}

static void drain(void)
{
    _mm_sfence();
}
#else
static void stream_lines(uint8_t *dst, const uint8_t *src, size_t count)
{
    pmem_memcpy(dst, src, count * PM_LINE, PMEM_F_MEM_NONTEMPORAL | PMEM_F_MEM_NODRAIN);
}

static void stream_words(uint8_t *dst, const uint8_t *src, size_t size)
{
    copy(dst, src, size);
    pmem_deep_flush(dst, size);
}

static void drain(void)
{
    pmem_drain();
}
#endif

static bool is_words(const uint8_t *dst, size_t size)
{
    return (((uintptr_t)dst | size) & 3) == 0;
}

/* Part of a line: what is no whole word or half of one goes through the cache. */
static void stream_part(uint8_t *dst, const uint8_t *src, size_t size)
{
    if (is_words(dst, size)) {
        stream_words(dst, src, size);
        return;
    }
    copy(dst, src, size);
    pmem_deep_flush(dst, size);
}

/* Out of line, as what is rarer than a few words: see pm_store_nt(). */
__attribute__((noinline)) static void stream(uint8_t *dst, const uint8_t *src,
                                             size_t size)
{
    size_t head = -(uintptr_t)dst & (PM_LINE - 1);

    if (head > size)
        head = size;
    size_t lines = (size - head) / PM_LINE;
    size_t body = head + lines * PM_LINE;

    if (head > 0)
        stream_part(dst, src, head);
    stream_lines(dst + head, src + head, lines);
    if (size > body)
        stream_part(dst + body, src + body, size - body);
}

/* msync mode: the next fence covers the range. */
static void widen(struct pm_phase *phase, const void *ptr, size_t size)
{
    uintptr_t start = (uintptr_t)ptr;

    if (phase->low == phase->high || start < phase->low)
        phase->low = start;
    if (start + size > phase->high)
        phase->high = start + size;
}

/* Where no line has to be written back. */
__attribute__((noinline)) static void
store_in_cache(struct pm_phase *phase, const void *dst, const void *src, size_t size)
{
    pm_store(phase, dst, src, size);
    pm_flush(phase, dst, size);
}

/* What is streamed, counted in registers. */
struct streamed {
    uint64_t bytes, lines;
    uintptr_t last; /* line */
};

static inline void stream_and_count(const struct pm_phase *phase, const void *dst,
                                    const void *src, size_t size,
                                    struct streamed *streamed)
{
    uintptr_t first = line_of(dst);
    uintptr_t last = line_of((const uint8_t *)dst + size - 1);

    streamed->bytes += size;
    streamed->lines += (last - first) / PM_LINE + (first != streamed->last);
    streamed->last = last;
    if (first == last && size < PM_LINE && is_words(dst, size))
        stream_words(writable(phase, dst), src, size);
    else
        stream(writable(phase, dst), src, size);
}

static void note_streamed(struct pm_phase *phase, const struct streamed *streamed)
{
    pm_count(&phase->stats->pm_bytes, streamed->bytes);
    pm_count(&phase->stats->lines_streamed, streamed->lines);
    phase->last_streamed = streamed->last;
    phase->pending = true;
}

void pm_store_nt(struct pm_phase *phase, const void *dst, const void *src, size_t size)
{
    struct streamed streamed = {.last = phase->last_streamed};

    if (!flushes_lines(phase)) {
        store_in_cache(phase, dst, src, size);
        return;
    }
    if (size == 0)
        return;
    stream_and_count(phase, dst, src, size, &streamed);
    note_streamed(phase, &streamed);
}

void pm_store_nt_extents(struct pm_phase *phase, const uint8_t *base,
                         const struct extent *extents, size_t count)
{
    struct streamed streamed = {.last = phase->last_streamed};

    if (!flushes_lines(phase)) {
        for (size_t i = 0; i < count; i++)
            store_in_cache(phase, base + extents[i].start, extents[i].bytes,
                           extents[i].size);
        return;
    }
    for (size_t i = 0; i < count; i++)
        stream_and_count(phase, base + extents[i].start, extents[i].bytes,
                         extents[i].size, &streamed);
    note_streamed(phase, &streamed);
}

void pm_flush(struct pm_phase *phase, const void *ptr, size_t size)
{
    if (size == 0)
        return;
    phase->pending = true;
    if (phase->pm->medium == MINL2R_FILE)
        widen(phase, ptr, size);
    if (!flushes_lines(phase))
        return;

    uintptr_t line = line_of(ptr);
    uintptr_t last = line_of((const uint8_t *)ptr + size - 1);

    if (line == phase->last_line)
        line += PM_LINE;
    if (line > last)
        return;
    pmem_deep_flush((const void *)line, last - line + PM_LINE);
    pm_count(&phase->stats->lines_flushed, (last - line) / PM_LINE + 1);
    phase->last_line = last;
}

/* One msync over the pages of the phase. Never below the mapping, which starts a page.
 */
static int sync_pages(struct pm_phase *phase)
{
    uintptr_t page_mask = (uintptr_t)sysconf(_SC_PAGESIZE) - 1;
    uintptr_t start = phase->low & ~page_mask;
    uintptr_t size = phase->high - start;

    phase->low = phase->high = 0;
    pm_count(&phase->stats->fences, 1);
    if (msync((void *)start, size, MS_SYNC) == 0)
        return 0;
    return error_set(EIO, "msync of %zu bytes at offset %zu failed: %s", (size_t)size,
                     (size_t)(start - (uintptr_t)phase->pm->base), strerror(errno));
}

int pm_fence(struct pm_phase *phase)
{
    if (!phase->pending)
        return 0;
    phase->pending = false;
    phase->last_line = phase->last_streamed = 0;
    if (phase->pm->medium == MINL2R_FILE)
        return sync_pages(phase);
    drain();
    /* With eADR nothing has to reach memory: the fence does not wait for lines. */
    if (phase->pm->medium != MINL2R_EADR)
        pm_count(&phase->stats->fences, 1);
    return 0;
}
