/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/runtime/intrinsics.h"

#include "crashtest/runtime/record.h"

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

void crashtest_hook_stream(const void *address, unsigned long size)
{
    record_store(address, size, TRACE_STREAM, false, CALLER);
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
