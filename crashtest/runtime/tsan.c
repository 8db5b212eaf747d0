/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hooks that gcc -fsanitize=thread calls before loads and stores, and instead of
 * atomic operations.
 */
#include "crashtest/runtime/record.h"

#define HOOK __attribute__((visibility("default")))

HOOK void __tsan_init(void);
HOOK void __tsan_func_entry(void *caller);
HOOK void __tsan_func_exit(void);

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
    record_enter(caller);
}

void __tsan_func_exit(void)
{
    record_leave();
}

/* ---- Loads and stores ------------------------------------------------------------ */

#define LOAD(name, size)                                                               \
    HOOK void __tsan_##name(void *address);                                            \
    void __tsan_##name(void *address)                                                  \
    {                                                                                  \
        record_load(address, size);                                                    \
    }

#define STORE(name, size)                                                              \
    HOOK void __tsan_##name(void *address);                                            \
    void __tsan_##name(void *address)                                                  \
    {                                                                                  \
        record_plain_store(address, size, CALLER);                                     \
    }

#define LOAD_AND_STORE(prefix, size)                                                   \
    LOAD(prefix##read##size, size)                                                     \
    STORE(prefix##write##size, size)

LOAD_AND_STORE(, 1)
LOAD_AND_STORE(, 2)
LOAD_AND_STORE(, 4)
LOAD_AND_STORE(, 8)
LOAD_AND_STORE(, 16)
LOAD_AND_STORE(unaligned_, 2)
LOAD_AND_STORE(unaligned_, 4)
LOAD_AND_STORE(unaligned_, 8)
LOAD_AND_STORE(unaligned_, 16)
LOAD_AND_STORE(volatile_, 1)
LOAD_AND_STORE(volatile_, 2)
LOAD_AND_STORE(volatile_, 4)
LOAD_AND_STORE(volatile_, 8)
LOAD_AND_STORE(volatile_, 16)
LOAD(vptr_read, sizeof(void *))

HOOK void __tsan_vptr_update(void **address, void *value);
HOOK void __tsan_read_range(void *address, unsigned long size);
HOOK void __tsan_write_range(void *address, unsigned long size);

void __tsan_vptr_update(void **address, void *value)
{
    (void)value;
    record_store(address, sizeof(*address), TRACE_STORE, false, CALLER);
}

void __tsan_read_range(void *address, unsigned long size)
{
    record_load(address, size);
}

void __tsan_write_range(void *address, unsigned long size)
{
    record_plain_store(address, size, CALLER);
}

/* ---- Atomic operations ----------------------------------------------------------- */

/*
 * They are done here, sequentially consistent whatever the program asks for. A locked
 * instruction waits for the flushes before it, as a fence; so does a sequentially
 * consistent store, which is one.
 */
static void about_to_lock(void *address, size_t size, const void *pc)
{
    record_lock(pc);
    record_load(address, size);
    record_store(address, size, TRACE_STORE, size == 16, pc);
}

static void about_to_store(void *address, size_t size, int order, const void *pc)
{
    if (order == __ATOMIC_SEQ_CST)
        about_to_lock(address, size, pc);
    else
        record_store(address, size, TRACE_STORE, size == 16, pc);
}

/* Types cannot be put in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */
#define FETCH(bits, type, name, builtin)                                               \
    HOOK type __tsan_atomic##bits##_##name(volatile type *address, type value,         \
                                           int order);                                 \
    type __tsan_atomic##bits##_##name(volatile type *address, type value, int order)   \
    {                                                                                  \
        (void)order;                                                                   \
        about_to_lock((void *)(uintptr_t)address, sizeof(type), CALLER);               \
        type before = builtin(address, value, __ATOMIC_SEQ_CST);                       \
        record_settle();                                                               \
        return before;                                                                 \
    }

#define COMPARE(bits, type, name)                                                      \
    HOOK int __tsan_atomic##bits##_compare_exchange_##name(                            \
        volatile type *address, type *expected, type value, int order, int failed);    \
    int __tsan_atomic##bits##_compare_exchange_##name(                                 \
        volatile type *address, type *expected, type value, int order, int failed)     \
    {                                                                                  \
        (void)order;                                                                   \
        (void)failed;                                                                  \
        about_to_lock((void *)(uintptr_t)address, sizeof(type), CALLER);               \
        int done = __atomic_compare_exchange_n(address, expected, value, 0,            \
                                               __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);    \
        record_settle();                                                               \
        return done;                                                                   \
    }

#define ATOMIC(bits, type)                                                             \
    HOOK type __tsan_atomic##bits##_load(const volatile type *address, int order);     \
    type __tsan_atomic##bits##_load(const volatile type *address, int order)           \
    {                                                                                  \
        (void)order;                                                                   \
        record_load((const void *)(uintptr_t)address, sizeof(type));                   \
        return __atomic_load_n(address, __ATOMIC_SEQ_CST);                             \
    }                                                                                  \
    HOOK void __tsan_atomic##bits##_store(volatile type *address, type value,          \
                                          int order);                                  \
    void __tsan_atomic##bits##_store(volatile type *address, type value, int order)    \
    {                                                                                  \
        about_to_store((void *)(uintptr_t)address, sizeof(type), order, CALLER);       \
        __atomic_store_n(address, value, __ATOMIC_SEQ_CST);                            \
        record_settle();                                                               \
    }                                                                                  \
    FETCH(bits, type, exchange, __atomic_exchange_n)                                   \
    FETCH(bits, type, fetch_add, __atomic_fetch_add)                                   \
    FETCH(bits, type, fetch_sub, __atomic_fetch_sub)                                   \
    FETCH(bits, type, fetch_and, __atomic_fetch_and)                                   \
    FETCH(bits, type, fetch_or, __atomic_fetch_or)                                     \
    FETCH(bits, type, fetch_xor, __atomic_fetch_xor)                                   \
    FETCH(bits, type, fetch_nand, __atomic_fetch_nand)                                 \
    COMPARE(bits, type, strong)                                                        \
    COMPARE(bits, type, weak)                                                          \
    HOOK type __tsan_atomic##bits##_compare_exchange_val(                              \
        volatile type *address, type expected, type value, int order, int failed);     \
    type __tsan_atomic##bits##_compare_exchange_val(                                   \
        volatile type *address, type expected, type value, int order, int failed)      \
    {                                                                                  \
        __tsan_atomic##bits##_compare_exchange_strong(address, &expected, value,       \
                                                      order, failed);                  \
        return expected;                                                               \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

ATOMIC(8, uint8_t)
ATOMIC(16, uint16_t)
ATOMIC(32, uint32_t)
ATOMIC(64, uint64_t)

HOOK void __tsan_atomic_thread_fence(int order);
HOOK void __tsan_atomic_signal_fence(int order);

void __tsan_atomic_thread_fence(int order)
{
    if (order == __ATOMIC_SEQ_CST)
        record_fence(CALLER);
    else
        record_settle();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void __tsan_atomic_signal_fence(int order)
{
    (void)order;
    record_settle();
}

/* ---- Atomic operations of 16 bytes: all of them are cmpxchg16b --------------------
 */

__extension__ typedef unsigned __int128 uint128_t;

static uint128_t compare128(volatile uint128_t *address, uint128_t expected,
                            uint128_t value, const void *pc)
{
    about_to_lock((void *)(uintptr_t)address, sizeof(value), pc);
    uint128_t before = __sync_val_compare_and_swap(address, expected, value);

    record_settle();
    return before;
}

#define FETCH128(name, result)                                                         \
    HOOK uint128_t __tsan_atomic128_##name(volatile uint128_t *address,                \
                                           uint128_t value, int order);                \
    uint128_t __tsan_atomic128_##name(volatile uint128_t *address, uint128_t value,    \
                                      int order)                                       \
    {                                                                                  \
        uint128_t before = *address, seen;                                             \
                                                                                       \
        (void)order;                                                                   \
        while ((seen = compare128(address, before, result, CALLER)) != before)         \
            before = seen;                                                             \
        return before;                                                                 \
    }

FETCH128(exchange, value)
FETCH128(fetch_add, before + value)
FETCH128(fetch_sub, before - value)
FETCH128(fetch_and, before &value)
FETCH128(fetch_or, before | value)
FETCH128(fetch_xor, before ^ value)
FETCH128(fetch_nand, ~(before &value))

HOOK uint128_t __tsan_atomic128_load(const volatile uint128_t *address, int order);
HOOK void __tsan_atomic128_store(volatile uint128_t *address, uint128_t value,
                                 int order);
HOOK uint128_t __tsan_atomic128_compare_exchange_val(volatile uint128_t *address,
                                                     uint128_t expected,
                                                     uint128_t value, int order,
                                                     int failed);
HOOK int __tsan_atomic128_compare_exchange_strong(volatile uint128_t *address,
                                                  uint128_t *expected, uint128_t value,
                                                  int order, int failed);
HOOK int __tsan_atomic128_compare_exchange_weak(volatile uint128_t *address,
                                                uint128_t *expected, uint128_t value,
                                                int order, int failed);

uint128_t __tsan_atomic128_load(const volatile uint128_t *address, int order)
{
    (void)order;
    record_load((const void *)(uintptr_t)address, sizeof(*address));
    return __sync_val_compare_and_swap((volatile uint128_t *)(uintptr_t)address, 0, 0);
}

void __tsan_atomic128_store(volatile uint128_t *address, uint128_t value, int order)
{
    __tsan_atomic128_exchange(address, value, order);
}

uint128_t __tsan_atomic128_compare_exchange_val(volatile uint128_t *address,
                                                uint128_t expected, uint128_t value,
                                                int order, int failed)
{
    (void)order;
    (void)failed;
    return compare128(address, expected, value, CALLER);
}

int __tsan_atomic128_compare_exchange_strong(volatile uint128_t *address,
                                             uint128_t *expected, uint128_t value,
                                             int order, int failed)
{
    uint128_t before = compare128(address, *expected, value, CALLER);
    int done = before == *expected;

    (void)order;
    (void)failed;
    *expected = before;
    return done;
}

int __tsan_atomic128_compare_exchange_weak(volatile uint128_t *address,
                                           uint128_t *expected, uint128_t value,
                                           int order, int failed)
{
    return __tsan_atomic128_compare_exchange_strong(address, expected, value, order,
                                                    failed);
}
