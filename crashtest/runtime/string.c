/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memcpy() and its kind, for the whole process: they replace those of libc, so that
 * libraries are seen storing to PM, too. Simple rather than fast.
 */
#include <stddef.h>
#include <wchar.h>

#include "crashtest/runtime/bytes.h"
#include "crashtest/runtime/intrinsics.h"
#include "crashtest/runtime/record.h"

#define HOOK __attribute__((visibility("default")))

HOOK void *memcpy(void *restrict dst, const void *restrict src, size_t size);
HOOK void *memmove(void *dst, const void *src, size_t size);
HOOK void *memset(void *dst, int byte, size_t size);
HOOK void *mempcpy(void *restrict dst, const void *restrict src, size_t size);
HOOK char *strcpy(char *restrict dst, const char *restrict src);
HOOK char *stpcpy(char *restrict dst, const char *restrict src);
HOOK char *strncpy(char *restrict dst, const char *restrict src, size_t size);
HOOK char *strcat(char *restrict dst, const char *restrict src);
HOOK char *strncat(char *restrict dst, const char *restrict src, size_t size);
HOOK void bzero(void *dst, size_t size);
HOOK void bcopy(const void *src, void *dst, size_t size);
HOOK size_t strlen(const char *text);
HOOK size_t strnlen(const char *text, size_t size);
HOOK int memcmp(const void *a, const void *b, size_t size);
HOOK int bcmp(const void *a, const void *b, size_t size);
HOOK int strcmp(const char *a, const char *b);
HOOK int strncmp(const char *a, const char *b, size_t size);
HOOK void *memchr(const void *bytes, int byte, size_t size);
HOOK char *strchr(const char *text, int byte);

typedef uint16_t __attribute__((may_alias, aligned(1))) any_u16;
typedef uint32_t __attribute__((may_alias, aligned(1))) any_u32;
typedef uint64_t __attribute__((may_alias, aligned(1))) any_u64;

/* Both ends at once, which overlap: all is loaded before anything is stored. */
#define COPY_ENDS(type, to, from, size)                                                \
    do {                                                                               \
        type head = *(const type *)(from);                                             \
        type tail = *(const type *)((from) + (size) - sizeof(type));                   \
        *(type *)(to) = head;                                                          \
        *(type *)((to) + (size) - sizeof(type)) = tail;                                \
    } while (0)

/* False: it is too large. */
static bool copy_small(unsigned char *to, const unsigned char *from, size_t size)
{
    if (size > 16)
        return false;
    if (size >= 8)
        COPY_ENDS(any_u64, to, from, size);
    else if (size >= 4)
        COPY_ENDS(any_u32, to, from, size);
    else if (size >= 2)
        COPY_ENDS(any_u16, to, from, size);
    else if (size == 1)
        *to = *from;
    return true;
}

static void copy_forward(void *dst, const void *src, size_t size)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(size) : : "memory");
}

static void copy_backward(void *dst, const void *src, size_t size)
{
    unsigned char *to = (unsigned char *)dst + size;
    const unsigned char *from = (const unsigned char *)src + size;

    while (size-- > 0)
        *--to = *--from;
}

void bytes_move(void *dst, const void *src, size_t size)
{
    if (copy_small(dst, src, size))
        ;
    else if ((uintptr_t)dst - (uintptr_t)src < size)
        copy_backward(dst, src, size);
    else
        copy_forward(dst, src, size);
}

void bytes_set(void *dst, int byte, size_t size)
{
    __asm__ volatile("rep stosb" : "+D"(dst), "+c"(size) : "a"(byte) : "memory");
}

static void load(const void *src, size_t size)
{
    if (recorder.trace && recorder.on_access)
        record_load(src, size);
}

static void move(void *dst, const void *src, size_t size, const void *pc)
{
    load(src, size);
    if (recorder.trace)
        record_store(dst, size, TRACE_STORE, false, pc);
    bytes_move(dst, src, size);
    if (recorder.trace)
        record_settle();
}

static void set(void *dst, int byte, size_t size, const void *pc)
{
    if (recorder.trace)
        record_store(dst, size, TRACE_STORE, false, pc);
    bytes_set(dst, byte, size);
    if (recorder.trace)
        record_settle();
}

void *crashtest_hook_memmove(void *dst, const void *src, unsigned long size)
{
    move(dst, src, size, CALLER);
    return dst;
}

void *crashtest_hook_memset(void *dst, int byte, unsigned long size)
{
    set(dst, byte, size, CALLER);
    return dst;
}

void *memcpy(void *restrict dst, const void *restrict src, size_t size)
{
    move(dst, src, size, CALLER);
    return dst;
}

void *memmove(void *dst, const void *src, size_t size)
{
    move(dst, src, size, CALLER);
    return dst;
}

void *memset(void *dst, int byte, size_t size)
{
    set(dst, byte, size, CALLER);
    return dst;
}

void *mempcpy(void *restrict dst, const void *restrict src, size_t size)
{
    move(dst, src, size, CALLER);
    return (char *)dst + size;
}

char *strcpy(char *restrict dst, const char *restrict src)
{
    move(dst, src, strlen(src) + 1, CALLER);
    return dst;
}

char *stpcpy(char *restrict dst, const char *restrict src)
{
    size_t length = strlen(src);

    move(dst, src, length + 1, CALLER);
    return dst + length;
}

char *strncpy(char *restrict dst, const char *restrict src, size_t size)
{
    size_t length = strnlen(src, size);

    move(dst, src, length, CALLER);
    set(dst + length, 0, size - length, CALLER);
    return dst;
}

char *strcat(char *restrict dst, const char *restrict src)
{
    move(dst + strlen(dst), src, strlen(src) + 1, CALLER);
    return dst;
}

char *strncat(char *restrict dst, const char *restrict src, size_t size)
{
    size_t end = strlen(dst), length = strnlen(src, size);

    move(dst + end, src, length, CALLER);
    set(dst + end + length, 0, 1, CALLER);
    return dst;
}

void bzero(void *dst, size_t size)
{
    set(dst, 0, size, CALLER);
}

void bcopy(const void *src, void *dst, size_t size)
{
    move(dst, src, size, CALLER);
}

/* ---- What only loads ------------------------------------------------------------- */

size_t strnlen(const char *text, size_t size)
{
    size_t length = 0;

    for (; length < size; length++) {
        load(text + length, 1);
        if (text[length] == 0)
            break;
    }
    return length;
}

size_t strlen(const char *text)
{
    return strnlen(text, SIZE_MAX);
}

/* What comes after the first difference does not matter, and is not loaded. */
static size_t skip_equal_words(const unsigned char *a, const unsigned char *b,
                               size_t size)
{
    size_t i = 0;

    for (; i + 8 <= size; i += 8) {
        load(a + i, 8);
        load(b + i, 8);
        if (*(const any_u64 *)(a + i) != *(const any_u64 *)(b + i))
            break;
    }
    return i;
}

int memcmp(const void *a, const void *b, size_t size)
{
    const unsigned char *first = a, *second = b;
    size_t i = skip_equal_words(first, second, size);

    for (; i < size; i++) {
        load(first + i, 1);
        load(second + i, 1);
        if (first[i] != second[i])
            return first[i] < second[i] ? -1 : 1;
    }
    return 0;
}

int bcmp(const void *a, const void *b, size_t size)
{
    return memcmp(a, b, size);
}

int strncmp(const char *a, const char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        load(a + i, 1);
        load(b + i, 1);
        unsigned char first = (unsigned char)a[i], second = (unsigned char)b[i];

        if (first != second)
            return first < second ? -1 : 1;
        if (first == 0)
            break;
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

void *memchr(const void *bytes, int byte, size_t size)
{
    const unsigned char *at = bytes;

    for (; size > 0; size--, at++) {
        load(at, 1);
        if (*at == (unsigned char)byte)
            return (void *)(uintptr_t)at;
    }
    return NULL;
}

char *strchr(const char *text, int byte)
{
    for (;; text++) {
        load(text, 1);
        if (*text == (char)byte)
            return (char *)(uintptr_t)text;
        if (*text == 0)
            return NULL;
    }
}
