/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pair.c - two words in PM that must always be equal, changed under an undo log; and
 * the ways to get that wrong. The environment's BUG says which; none: it is right.
 */
#include <crashtest.h>
#include <immintrin.h>
#include <libpmem.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct pair {
    _Alignas(64) uint64_t a;
    _Alignas(64) uint64_t b;
    _Alignas(64) uint64_t old_a;
    uint64_t old_b;
    _Alignas(64) uint64_t log_is_valid;
    _Alignas(64) uint64_t whole[2];
    _Alignas(64) uint64_t stray;
};

static const char *bug;

static int has_bug(const char *name)
{
    return bug && strcmp(bug, name) == 0;
}

static int never_flushes(void)
{
    return bug && strncmp(bug, "never-flushed", strlen("never-flushed")) == 0;
}

static void persist(void *address, size_t size)
{
    if (!never_flushes())
        pmem_persist(address, size);
}

static void *fence_elsewhere(void *arg)
{
    (void)arg;
    _mm_sfence();
    return NULL;
}

static void log_flush(struct pair *pair)
{
    pthread_t thread;

    if (never_flushes() || has_bug("log not flushed") ||
        has_bug("flush before store") || has_bug("log flushed late"))
        return;
    if (has_bug("store after flush")) {
        _mm_sfence();
        return;
    }
    _mm_clflush(&pair->stray); /* of something else */
    pmem_flush(&pair->old_a, 16);
    if (has_bug("other thread's fence")) {
        pthread_create(&thread, NULL, fence_elsewhere, NULL);
        pthread_join(thread, NULL);
    } else if (!has_bug("log not fenced")) {
        _mm_sfence();
    }
}

static void log_write(struct pair *pair)
{
    if (has_bug("flush before store"))
        persist(&pair->old_a, 16);
    if (has_bug("store after flush")) {
        pair->old_a = 0;
        pmem_flush(&pair->old_a, 16);
    }
    if (has_bug("valid before log")) {
        pair->log_is_valid = 1;
        persist(&pair->log_is_valid, 8);
    }
    if (has_bug("stream not fenced")) {
        _mm_stream_si64((long long *)&pair->old_a, (long long)pair->a);
        _mm_stream_si64((long long *)&pair->old_b, (long long)pair->b);
    } else {
        pair->old_a = pair->a;
        pair->old_b = pair->b;
        log_flush(pair);
    }
    pair->log_is_valid = 1;
    if (has_bug("stream not fenced"))
        _mm_clflush(&pair->log_is_valid);
    else
        persist(&pair->log_is_valid, 8);
    if (has_bug("log flushed late"))
        persist(&pair->old_a, 16);
}

static void set_under_log(struct pair *pair, uint64_t value)
{
    if (!has_bug("no log"))
        log_write(pair);
    pair->a = value;
    persist(&pair->a, 8);
    pair->b = value;
    persist(&pair->b, 8);
    if (has_bug("flushed for nothing"))
        persist(&pair->b, 8);
    if (has_bug("fenced for nothing"))
        _mm_sfence();
    pair->log_is_valid = 0;
    if (has_bug("flushed twice"))
        pmem_flush(&pair->log_is_valid, 8);
    if (!has_bug("return early"))
        persist(&pair->log_is_valid, 8);
    if (has_bug("unseen store"))
        snprintf((char *)&pair->stray, sizeof(pair->stray), "by libc");
}

static void set_whole(struct pair *pair, uint64_t value)
{
    uint64_t words[2] = {value, value};

    memcpy(pair->whole, words, sizeof(words));
    persist(pair->whole, sizeof(pair->whole));
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    bug = getenv("BUG");
    if (has_bug("nothing stored"))
        return 0;
    for (uint64_t value = 1; value <= 2; value++) {
        crashtest_begin("set %llu", (unsigned long long)value);
        if (has_bug("torn"))
            set_whole(pm->base, value);
        else
            set_under_log(pm->base, value);
        crashtest_end();
    }
    return has_bug("run fails") ? crashtest_fail("as it was asked to") : 0;
}

static void undo(struct pair *pair)
{
    if (has_bug("recovery cannot tell") && pair->a == pair->b)
        return;
    pair->a = pair->old_a;
    pair->b = pair->old_b;
    if (has_bug("recovery does not flush"))
        return;
    persist(&pair->a, 8);
    persist(&pair->b, 8);
}

static int recover(const struct crashtest_pm *pm, void *arg)
{
    struct pair *pair = pm->base;
    volatile unsigned forever = 1;

    (void)arg;
    bug = getenv("BUG");
    while (has_bug("recovery hangs") && pair->log_is_valid && forever)
        ;
    if (has_bug("recovery crashes") && pair->log_is_valid)
        *(volatile uint64_t *)(uintptr_t)pair->log_is_valid = 0;
    if (has_bug("recovery exits") && pair->log_is_valid)
        exit(3);
    if (has_bug("message is no text") && pair->log_is_valid)
        return crashtest_fail("found \xff");
    if (has_bug("recovery fails") && pair->log_is_valid)
        return crashtest_fail("as it was asked to");
    if (pair->log_is_valid)
        undo(pair);
    pair->log_is_valid = 0;
    persist(&pair->log_is_valid, 8);
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    struct pair *pair = pm->base;

    (void)arg;
    if (has_bug("check stores"))
        pair->stray++;
    if (has_bug("check stores unseen"))
        snprintf((char *)&pair->stray, sizeof(pair->stray), "by libc");
    while (has_bug("check waits"))
        pause();
    if (has_bug("check exits"))
        exit(0);
    if (has_bug("never-flushed, and nobody minds"))
        return 0;
    if (has_bug("check crashes"))
        abort();
    if (has_bug("check hangs"))
        for (volatile uint64_t i = 0;; i++)
            ;
    if (pair->a != pair->b || pair->whole[0] != pair->whole[1])
        return crashtest_fail("the two differ");
    uint64_t value = pair->a + pair->whole[0];

    if (value != crash->returned && !(crash->running && value == crash->returned + 1))
        return crashtest_fail("the value is %llu, after %zu sets",
                              (unsigned long long)value, crash->returned);
    return 0;
}

static int use(const struct crashtest_pm *pm, void *arg)
{
    struct pair *pair = pm->base;

    (void)arg;
    set_under_log(pair, 77);
    return pair->a == 77 && pair->b == 77 && !has_bug("use fails") ? 0 : -1;
}

int main(int argc, char **argv)
{
    static struct crashtest_program program = {
        .name = "pair",
        .pm_size = sizeof(struct pair),
        .run = run,
        .recover = recover,
        .check = check,
        .use = use,
    };

    bug = getenv("BUG");
    if (has_bug("no PM"))
        program.pm_size = 0;
    return crashtest_main(argc, argv, &program);
}
