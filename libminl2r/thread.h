/* SPDX-License-Identifier: BSD-3-Clause */
/* thread.h - a small number per thread. */
#ifndef MINL2R_THREAD_H
#define MINL2R_THREAD_H

#include <stdint.h>

/* Every call asks for it: found without a call, in the shared library, too. */
extern _Thread_local uint32_t thread_number_cached
    __attribute__((tls_model("initial-exec")));
uint32_t thread_number_assign(void);

/* 1, 2, ... in the order in which threads first ask; never used twice. */
static inline uint32_t thread_number(void)
{
    uint32_t number = thread_number_cached;

    return number ? number : thread_number_assign();
}

#endif
