/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/thread.h"

_Thread_local uint32_t thread_number_cached;

uint32_t thread_number_assign(void)
{
    static uint32_t last;

    thread_number_cached = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
    return thread_number_cached;
}
