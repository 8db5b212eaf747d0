/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stores.c - every way to store to PM that the tester promises to see. One that it does
 * not see is reported, and the coverage is not "exact".
 */
#define _GNU_SOURCE
#include <crashtest.h>
#include <immintrin.h>
#include <libpmem.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>

struct bits {
    unsigned low : 3;
    unsigned high : 29;
};

struct big {
    uint64_t words[12];
};

struct __attribute__((packed)) packed {
    char byte;
    uint64_t word;
};

struct pm {
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    float f;
    double d;
    long double ld;
    struct bits bits;
    struct packed packed;
    struct big big, copy;
    uint64_t array[16];
    char text[64];
    _Alignas(16) __int128 wide;
    atomic_int counter;
    _Atomic uint64_t atomic;
    atomic_flag flag;
    _Alignas(64) uint8_t vector[64];
    _Alignas(64) uint8_t stream[64];
    _Alignas(64) uint8_t large[1024];
};

static void store_scalars(struct pm *pm)
{
    volatile uint32_t *volatile_word = &pm->u32;

    pm->u8 = 1;
    pm->u16 = 2;
    *volatile_word = 3;
    pm->u64 = 4;
    pm->f = 5;
    pm->d = 6;
    pm->ld = 7;
    pm->u64++;
    pm->u32 |= 0x80;
    pm->wide = -9;
}

static void store_aggregates(struct pm *pm)
{
    struct big big = {{1, 2, 3}};

    pm->bits.low = 5;
    pm->bits.high = 77;
    pm->packed.word = 0x1122334455667788;
    pm->big = big;
    pm->copy = pm->big;
    for (int i = 0; i < 16; i++)
        pm->array[i] = (uint64_t)i * i + 1;
}

static void store_atomics(struct pm *pm)
{
    uint64_t expected = 8;

    atomic_store(&pm->atomic, 8);
    atomic_compare_exchange_strong(&pm->atomic, &expected, 9);
    atomic_fetch_or(&pm->atomic, 0x100);
    atomic_exchange(&pm->counter, 7);
    atomic_fetch_add_explicit(&pm->counter, 3, memory_order_relaxed);
    atomic_flag_test_and_set(&pm->flag);
    __sync_fetch_and_sub(&pm->u64, 1);
    __atomic_store_n(&pm->u16, 99, __ATOMIC_RELEASE);
}

static void store_strings(struct pm *pm)
{
    strcpy(pm->text, "one");
    strcat(pm->text, "two");
    strncat(pm->text, "three", 2);
    stpcpy(pm->text + 16, "four");
    strncpy(pm->text + 32, "five", 16);
    *(char *)mempcpy(pm->text + 48, "six", 3) = '!';
}

static void store_memory(struct pm *pm)
{
    memset(pm->large, 1, 100);
    memcpy(pm->large + 101, pm->text, 33);
    memmove(pm->large + 3, pm->large, 90);
    bzero(pm->large + 1, 7);
    __builtin_memcpy(pm->large + 200, pm->text, 24);
    __builtin_memset(pm->large + 300, 9, 50);
    bcopy(pm->large, pm->large + 400, 20);
}

static void store_vectors(struct pm *pm)
{
    __m128i ones = _mm_set1_epi8(1), twos = _mm_set1_epi8(2);

    _mm_store_si128((__m128i *)pm->vector, ones);
    _mm_storeu_si128((__m128i_u *)(pm->vector + 17), twos);
    _mm_stream_si128((__m128i *)pm->stream, ones);
    _mm_stream_si64((long long *)(pm->stream + 16), 3);
    _mm_stream_si32((int *)(pm->stream + 24), 4);
    _mm_stream_pd((double *)(pm->stream + 32), _mm_set1_pd(5));
    _mm_stream_ps((float *)(pm->stream + 48), _mm_set1_ps(6));
    _mm_sfence();
}

static void store_by_libpmem(struct pm *pm)
{
    pmem_memcpy_persist(pm->large, pm->vector, 64);
    pmem_memcpy_nodrain(pm->large + 512, pm->large, 300);
    pmem_memset_persist(pm->large + 900, 7, 50);
    pmem_memmove(pm->large + 10, pm->large, 40, PMEM_F_MEM_NOFLUSH);
    pmem_memset(pm->large + 960, 8, 16, PMEM_F_MEM_NONTEMPORAL);
    pmem_drain();
}

static int run(const struct crashtest_pm *memory, void *arg)
{
    static const struct {
        const char *name;
        void (*store)(struct pm *pm);
    } ways[] = {
        {"scalars", store_scalars},    {"aggregates", store_aggregates},
        {"atomics", store_atomics},    {"strings", store_strings},
        {"memory", store_memory},      {"vectors", store_vectors},
        {"libpmem", store_by_libpmem},
    };

    (void)arg;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        crashtest_begin("%s", ways[i].name);
        ways[i].store(memory->base);
        msync(memory->base, memory->size, MS_SYNC);
        crashtest_end();
    }
    return 0;
}

/* Everything that has returned is durable; nothing else is asked. */
static int check(const struct crashtest_pm *memory, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct pm *pm = memory->base;

    (void)arg;
    if (crash->returned > 0 && pm->d != 6)
        return crashtest_fail("scalars are gone");
    if (crash->returned > 1 && pm->copy.words[2] != 3)
        return crashtest_fail("aggregates are gone");
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "stores",
        .pm_size = sizeof(struct pm),
        .run = run,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
