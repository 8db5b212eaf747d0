/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bulk.c - much data, stored in place: while that goes on, any mixture of old and new
 * may be there, of which there are more than can be counted. They are tried as one.
 * BUG: its last line is not made durable.
 */
#include <crashtest.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 65536
#define LINE 64

struct bulk {
    uint64_t words[WORDS];
    uint64_t version;
};

static void fill(struct bulk *bulk, uint64_t version)
{
    static uint64_t words[WORDS];
    const size_t kept = getenv("BUG") ? LINE : 0;

    for (size_t i = 0; i < WORDS; i++)
        words[i] = version;
    pmem_memcpy_persist(bulk->words, words, sizeof(words) - kept);
    memcpy((char *)bulk->words + sizeof(words) - kept, words, kept);
    bulk->version = version;
    pmem_persist(&bulk->version, sizeof(bulk->version));
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    for (uint64_t version = 1; version <= 2; version++) {
        crashtest_begin("fill %d", (int)version);
        fill(pm->base, version);
        crashtest_end();
    }
    return 0;
}

/* All that is asked of the words is whether they are whole. */
static bool is_whole(const struct bulk *bulk, uint64_t version)
{
    bool is_whole = true;

    crashtest_hash_begin(bulk->words, sizeof(bulk->words));
    for (size_t i = 0; i < WORDS; i++)
        is_whole &= bulk->words[i] == version;
    crashtest_hash_end();
    return is_whole;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct bulk *bulk = pm->base;

    (void)arg;
    if (!crash->running && !is_whole(bulk, crash->returned))
        return crashtest_fail("version %zu is not whole", crash->returned);
    if (crash->running && bulk->version == crash->returned + 1 &&
        !is_whole(bulk, bulk->version))
        return crashtest_fail("version %zu is there, but not whole",
                              crash->returned + 1);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "bulk",
        .pm_size = sizeof(struct bulk),
        .run = run,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
