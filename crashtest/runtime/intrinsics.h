/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * intrinsics.h - included before every file that crashtest-cc compiles: flushes, fences
 * and non-temporal stores become visible. The intrinsics of <immintrin.h> are inline
 * functions around these builtins.
 */
#ifndef CRASHTEST_INTRINSICS_H
#define CRASHTEST_INTRINSICS_H

#define CRASHTEST 1

#ifdef __cplusplus
extern "C" {
#endif

void crashtest_hook_flush(const void *address);
void crashtest_hook_clflush(const void *address);
void crashtest_hook_fence(void);
void crashtest_hook_stream(void *dst, const void *src, unsigned long size);
void crashtest_hook_store_whole(void *dst, const void *src, unsigned long size);

/* Those of the runtime. */
void *crashtest_hook_memmove(void *dst, const void *src, unsigned long size);
void *crashtest_hook_memset(void *dst, int byte, unsigned long size);

/* By these names gcc makes plain stores of them, unseen. */
#ifdef __cplusplus
}
#define CRASHTEST_AT_RUN_TIME(at_compile_time, at_run_time)                            \
    (__builtin_is_constant_evaluated() ? at_compile_time : at_run_time)
#else
#define CRASHTEST_AT_RUN_TIME(at_compile_time, at_run_time) at_run_time
#endif
#define __builtin_memcpy(dst, src, size)                                               \
    CRASHTEST_AT_RUN_TIME(__builtin_memcpy(dst, src, size),                            \
                          crashtest_hook_memmove(dst, src, size))
#define __builtin_memmove(dst, src, size)                                              \
    CRASHTEST_AT_RUN_TIME(__builtin_memmove(dst, src, size),                           \
                          crashtest_hook_memmove(dst, src, size))
#define __builtin_memset(dst, byte, size)                                              \
    CRASHTEST_AT_RUN_TIME(__builtin_memset(dst, byte, size),                           \
                          crashtest_hook_memset(dst, byte, size))

/* Flushes need not be done: only the model's caches matter. */
#define __builtin_ia32_clwb(p) crashtest_hook_flush(p)
#define __builtin_ia32_clflushopt(p) crashtest_hook_flush(p)
#define __builtin_ia32_clflush(p) crashtest_hook_clflush(p)
#define __builtin_ia32_sfence() crashtest_hook_fence()
#define __builtin_ia32_mfence() crashtest_hook_fence()

/* What went past the caches would take long to be read back, which is done at once: it
 * is stored plainly, and called streamed. */
#define CRASHTEST_STREAM(type, p, v)                                                   \
    __extension__({                                                                    \
        type crashtest_value = (v);                                                    \
        crashtest_hook_stream((p), &crashtest_value, sizeof(type));                    \
    })

#define __builtin_ia32_movnti(p, v) CRASHTEST_STREAM(int, p, v)
#define __builtin_ia32_movnti64(p, v) CRASHTEST_STREAM(long long, p, v)
#define __builtin_ia32_movntq(p, v) CRASHTEST_STREAM(unsigned long long, p, v)
#define __builtin_ia32_movntdq(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntdq256(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntdq512(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntps(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntpd(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntps256(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntpd256(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntps512(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)
#define __builtin_ia32_movntpd512(p, v) CRASHTEST_STREAM(__typeof__(v), p, v)

#define CRASHTEST_STORE_WHOLE(type, p, v)                                              \
    __extension__({                                                                    \
        type crashtest_value = (v);                                                    \
        crashtest_hook_store_whole((p), &crashtest_value, sizeof(type));               \
    })

#define __builtin_ia32_directstoreu_u32(p, v) CRASHTEST_STORE_WHOLE(unsigned, p, v)
#define __builtin_ia32_directstoreu_u64(p, v)                                          \
    CRASHTEST_STORE_WHOLE(unsigned long long, p, v)
#define __builtin_ia32_movdir64b(p, q) crashtest_hook_store_whole((p), (q), 64)

#endif
