/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/runtime/intrinsics.h"

#include "crashtest/runtime/record.h"

typedef uint32_t __attribute__((may_alias, aligned(1))) any_u32;

void crashtest_hook_flush(const void *address)
{
    record_flush(address, 1, TRACE_FLUSH, CALLER);
}

void crashtest_hook_clflush(const void *address)
{
    record_flush(address, 1, TRACE_CLFLUSH, CALLER);
}

void crashtest_hook_fence(void)
{
    record_fence(CALLER);
}

/* `size` is a multiple of 4. */
void crashtest_hook_stream(void *dst, const void *src, unsigned long size)
{
    any_u32 *to = dst;
    const any_u32 *from = src;

    record_store(dst, size, TRACE_STREAM, false, CALLER);
    for (unsigned long i = 0; i < size / 4; i++)
        to[i] = from[i];
    record_settle();
}

void crashtest_hook_store_whole(void *dst, const void *src, unsigned long size)
{
    unsigned char *to = dst;
    const unsigned char *from = src;

    record_store(dst, size, TRACE_STREAM, true, CALLER);
    for (unsigned long i = 0; i < size; i++)
        to[i] = from[i];
    record_settle();
}
