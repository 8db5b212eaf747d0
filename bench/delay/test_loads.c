/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model sees every load of PM that a write or a read does: the library's core and
 * the schemes are compiled with gcc's hooks of ThreadSanitizer, which call what is here
 * before each load, and with loads.h. The hooks do not see memcpy() and memcmp(), which
 * loads.h does, nor the door to PM, whose calls are wrapped.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/delay/model.h"
#include "bench/schemes/scheme.h"

#define FILE_SIZE ((uint64_t)256 << 10)
#define LOADS_MAX 65536

/* ---- What is loaded, and what of it is seen -------------------------------------- */

static struct load {
    uintptr_t line;
    uintptr_t pc; /* 0: seen */
} loads[LOADS_MAX];
static size_t load_count;
static bool is_watching;

extern const char __executable_start[];

static void note_load(const void *address, size_t size, const void *pc)
{
    uintptr_t first = (uintptr_t)address / DELAY_LINE;
    uintptr_t last = ((uintptr_t)address + size - 1) / DELAY_LINE;

    if (!is_watching || (uintptr_t)address - delay_pm_start >= delay_pm_size)
        return;
    for (uintptr_t line = first; line <= last; line++) {
        assert_true(load_count < LOADS_MAX);
        loads[load_count++] =
            (struct load){line, (uintptr_t)pc - (uintptr_t)__executable_start};
    }
}

void __real_delay_load_end(const void *src, size_t size, uint64_t start_ps);
void __wrap_delay_load_end(const void *src, size_t size, uint64_t start_ps);

void __wrap_delay_load_end(const void *src, size_t size, uint64_t start_ps)
{
    uintptr_t first = (uintptr_t)src / DELAY_LINE;
    uintptr_t last = ((uintptr_t)src + size - 1) / DELAY_LINE;

    __real_delay_load_end(src, size, start_ps);
    for (size_t i = load_count; i-- > 0;)
        if (first <= loads[i].line && loads[i].line <= last)
            loads[i].pc = 0;
}

static uint64_t count_unseen(const char *scheme, const char *what)
{
    uint64_t unseen = 0;

    for (size_t i = 0; i < load_count; i++)
        if (loads[i].pc != 0) {
            unseen++;
            print_error("%s, %s: a load at %#jx of the program is not seen\n", scheme,
                        what, (uintmax_t)loads[i].pc);
        }
    return unseen;
}

/* ---- The hooks ------------------------------------------------------------------- */

#define CALLER __builtin_return_address(0)

#define LOAD(name, size)                                                               \
    void __tsan_##name(void *address);                                                 \
    void __tsan_##name(void *address)                                                  \
    {                                                                                  \
        note_load(address, size, CALLER);                                              \
    }

#define STORE(name)                                                                    \
    void __tsan_##name(void *address);                                                 \
    void __tsan_##name(void *address)                                                  \
    {                                                                                  \
        (void)address;                                                                 \
    }

#define LOAD_AND_STORE(prefix, size)                                                   \
    LOAD(prefix##read##size, size)                                                     \
    STORE(prefix##write##size)

LOAD_AND_STORE(, 1)
LOAD_AND_STORE(, 2)
LOAD_AND_STORE(, 4)
LOAD_AND_STORE(, 8)
LOAD_AND_STORE(, 16)
LOAD_AND_STORE(unaligned_, 2)
LOAD_AND_STORE(unaligned_, 4)
LOAD_AND_STORE(unaligned_, 8)
LOAD_AND_STORE(unaligned_, 16)
STORE(func_entry)

void __tsan_init(void);
void __tsan_func_exit(void);
void __tsan_read_range(void *address, unsigned long size);
void __tsan_write_range(void *address, unsigned long size);
void __tsan_atomic_thread_fence(int order);
void __tsan_atomic_signal_fence(int order);

void __tsan_init(void)
{
}

void __tsan_func_exit(void)
{
}

void __tsan_read_range(void *address, unsigned long size)
{
    note_load(address, size, CALLER);
}

void __tsan_write_range(void *address, unsigned long size)
{
    (void)address;
    (void)size;
}

void __tsan_atomic_thread_fence(int order)
{
    (void)order;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
}

/* Types cannot be put in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define FETCH(bits, type, name, builtin)                                               \
    type __tsan_atomic##bits##_##name(volatile type *address, type value, int order);  \
    type __tsan_atomic##bits##_##name(volatile type *address, type value, int order)   \
    {                                                                                  \
        (void)order;                                                                   \
        note_load((const void *)(uintptr_t)address, sizeof(type), CALLER);             \
        return builtin(address, value, __ATOMIC_SEQ_CST);                              \
    }

#define COMPARE(bits, type, name)                                                      \
    int __tsan_atomic##bits##_compare_exchange_##name(                                 \
        volatile type *address, type *expected, type value, int order, int failed);    \
    int __tsan_atomic##bits##_compare_exchange_##name(                                 \
        volatile type *address, type *expected, type value, int order, int failed)     \
    {                                                                                  \
        (void)order;                                                                   \
        (void)failed;                                                                  \
        note_load((const void *)(uintptr_t)address, sizeof(type), CALLER);             \
        return __atomic_compare_exchange_n(address, expected, value, 0,                \
                                           __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);        \
    }

#define ATOMIC(bits, type)                                                             \
    type __tsan_atomic##bits##_load(const volatile type *address, int order);          \
    type __tsan_atomic##bits##_load(const volatile type *address, int order)           \
    {                                                                                  \
        (void)order;                                                                   \
        note_load((const void *)(uintptr_t)address, sizeof(type), CALLER);             \
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);                             \
    }                                                                                  \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order);   \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order)    \
    {                                                                                  \
        (void)order;                                                                   \
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                            \
    }                                                                                  \
    FETCH(bits, type, exchange, __atomic_exchange_n)                                   \
    FETCH(bits, type, fetch_add, __atomic_fetch_add)                                   \
    FETCH(bits, type, fetch_sub, __atomic_fetch_sub)                                   \
    FETCH(bits, type, fetch_and, __atomic_fetch_and)                                   \
    FETCH(bits, type, fetch_or, __atomic_fetch_or)                                     \
    COMPARE(bits, type, strong)                                                        \
    COMPARE(bits, type, weak)
/* NOLINTEND(bugprone-macro-parentheses) */

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

/* ---- The test -------------------------------------------------------------------- */

/* As a delayed medium, but that nobody has to wait. */
static const struct delay_medium instant = {.name = "instant"};

static const struct volume_options options = {
    .block_size = 4096,
    .file_count = 1,
    .file_size = 2 * FILE_SIZE,
    .write_size = FILE_SIZE,
    .log_size = (uint64_t)1 << 20,
};

static void start_watching(void)
{
    load_count = 0;
    is_watching = true;
}

static uint64_t watch_write(struct volume *volume, uint64_t offset, uint64_t size)
{
    static uint8_t bytes[FILE_SIZE];
    static uint8_t value;
    char what[64];

    memset(bytes, ++value, size);
    start_watching();
    int rc = volume->scheme->write(volume->files[0], offset, bytes, size);

    is_watching = false;
    assert_int_equal(rc, 0);
    snprintf(what, sizeof(what), "%ju bytes at %ju", (uintmax_t)size,
             (uintmax_t)offset);
    return count_unseen(volume->scheme->name, what);
}

static uint64_t watch_read(struct volume *volume, uint64_t offset, uint64_t size)
{
    static uint8_t bytes[FILE_SIZE];
    uint64_t done;

    start_watching();
    int rc = volume->scheme->read(volume->files[0], offset, bytes, size, &done);

    is_watching = false;
    assert_int_equal(rc, 0);
    return count_unseen(volume->scheme->name, "a read");
}

static uint64_t watch_calls(struct volume *volume)
{
    static const uint64_t sizes[] = {8,    64,   100,  128,   512,  1024,
                                     1984, 4096, 6144, 16384, 65536};
    uint64_t unseen = 0;

    for (uint64_t at = 0; at < FILE_SIZE; at += 4096)
        unseen += watch_write(volume, at, 4096);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t times = 0; times < 3; times++) {
            unseen += watch_write(volume, times * 8192, sizes[i]);
            unseen += watch_write(volume, times * 8192 + 1234, sizes[i]);
            unseen += watch_write(volume, times * 8192 + 4096 - 24, sizes[i]);
        }
        unseen += watch_read(volume, 3000, sizes[i]);
        unseen += watch_write(volume, volume->scheme->size(volume->files[0]), sizes[i]);
    }
    return unseen;
}

static void every_load_is_seen(void **state)
{
    char path[64];
    uint64_t unseen = 0;

    (void)state;
    for (size_t i = 0; i < scheme_count; i++) {
        struct volume volume = {0};

        snprintf(path, sizeof(path), "/dev/shm/minl2r-test-loads-%d", (int)getpid());
        assert_int_equal(volume_create(&volume, path, schemes[i], &options), 0);
        unlink(path);
        delay_use(&instant);
        unseen += watch_calls(&volume);
        delay_use(NULL);
        volume_close(&volume);
    }
    assert_int_equal(unseen, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_load_is_seen),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
