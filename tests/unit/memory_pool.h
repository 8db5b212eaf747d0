/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memory_pool.h - a pool in plain memory, for tests of the library's inside: no file,
 * and pages without access on both sides, where a stray load or store ends the test.
 */
#ifndef MEMORY_POOL_H
#define MEMORY_POOL_H

#include "tests/unit/fixture.h"

#include <sys/mman.h>

#include "libminl2r/alloc.h"
#include "libminl2r/check.h"
#include "libminl2r/pool.h"
#include "libminl2r/recovery.h"
#include "libminl2r/tx.h"

struct memory_pool {
    uint8_t *memory; /* what is on media */
    size_t size;
    struct minl2r_pool pool;
};

/* A mapping of whole pages that ends at a page without access, and begins after one. */
static inline uint8_t *map_guarded(size_t size)
{
    uint8_t *space = mmap(NULL, size + (size_t)2 * PM_PAGE, PROT_NONE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(space != MAP_FAILED);
    assert_int_equal(mprotect(space + PM_PAGE, size, PROT_READ | PROT_WRITE), 0);
    return space + PM_PAGE;
}

static inline void unmap_guarded(uint8_t *memory, size_t size)
{
    munmap(memory - PM_PAGE, size + (size_t)2 * PM_PAGE);
}

/* What minl2r_pool_open() does, in two steps: -EUCLEAN leaves nothing behind. */
static inline int memory_pool_attach(struct memory_pool *mp)
{
    struct pm pm;

    mp->pool = (struct minl2r_pool){.fd = -1};
    pthread_mutex_init(&mp->pool.root_lock, NULL);
    pthread_mutex_init(&mp->pool.tx_lock, NULL);
    pm_adopt(&pm, mp->memory, mp->size, MINL2R_EMULATED);
    return pool_attach(&mp->pool, &pm, NULL);
}

static inline int memory_pool_try_open(struct memory_pool *mp)
{
    int result = memory_pool_attach(mp);

    if (result == 0) {
        result = recovery_run(&mp->pool);
        if (result < 0)
            pool_detach(&mp->pool);
    }
    return result;
}

static inline void memory_pool_open(struct memory_pool *mp)
{
    assert_ok(memory_pool_try_open(mp));
}

static inline void memory_pool_close(struct memory_pool *mp)
{
    assert_ok(tx_free_all(&mp->pool));
    pool_detach(&mp->pool);
}

static inline void memory_pool_reopen(struct memory_pool *mp)
{
    memory_pool_close(mp);
    memory_pool_open(mp);
}

/* Forgets what is in DRAM, as a killed process does; open transactions are lost. */
static inline void memory_pool_kill(struct memory_pool *mp)
{
    for (struct minl2r_tx *tx = mp->pool.tx_all; tx; tx = tx->next)
        if (tx->running) {
            if (tx->lane)
                lane_release(tx->lane);
            tx->running = false;
        }
    memory_pool_close(mp);
}

static inline void memory_pool_make(struct memory_pool *mp, size_t size,
                                    const struct minl2r_options *options)
{
    struct pm pm;

    mp->size = size;
    mp->memory = map_guarded(size);
    pm_adopt(&pm, mp->memory, size, MINL2R_EMULATED);
    assert_ok(pool_format(&pm, "test", 0, options));
    memory_pool_open(mp);
}

/* The pool must be closed, or its opening have failed. */
static inline void memory_pool_unmap(struct memory_pool *mp)
{
    unmap_guarded(mp->memory, mp->size);
}

static inline void memory_pool_remove(struct memory_pool *mp)
{
    memory_pool_close(mp);
    memory_pool_unmap(mp);
}

static inline void print_finding(void *arg, const char *what)
{
    (void)arg;
    print_error("check: %s\n", what);
}

/* Verifies a closed pool. */
static inline void memory_pool_check(struct memory_pool *mp)
{
    assert_ok(memory_pool_attach(mp));
    assert_ok(check_pool(&mp->pool, print_finding, NULL));
    pool_detach(&mp->pool);
}

#endif
