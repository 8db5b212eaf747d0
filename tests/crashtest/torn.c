/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * torn.c - data that is larger than can be stored at once, and a recovery that takes it
 * if it is whole. LOOKS: at how much of it; what it does not look at may be missing.
 */
#include <crashtest.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 1024
#define LINE_WORDS 8

struct data {
    uint64_t words[WORDS]; /* each has the version that is being stored */
    uint64_t announced;
    uint64_t taken; /* by recovery, or because it is stored */
};

static void set(uint64_t *word, uint64_t value)
{
    *word = value;
    pmem_persist(word, sizeof(*word));
}

static void fill(struct data *data, uint64_t version)
{
    static uint64_t words[WORDS];

    for (size_t i = 0; i < WORDS; i++)
        words[i] = version;
    set(&data->announced, version);
    memcpy(data->words, words, sizeof(words));
    pmem_persist(data->words, sizeof(words));
    set(&data->taken, version);
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

static bool is_looked_at(size_t word)
{
    const char *looks = getenv("LOOKS");
    bool is_begin = word < LINE_WORDS, is_end = word >= WORDS - LINE_WORDS;

    if (!looks)
        return true;
    return (is_begin && strcmp(looks, "at the end") != 0) ||
           (is_end && strcmp(looks, "at the beginning") != 0);
}

static int recover(const struct crashtest_pm *pm, void *arg)
{
    struct data *data = pm->base;
    uint64_t version = data->announced;
    bool is_whole = true;

    (void)arg;
    crashtest_hash_begin(data->words, sizeof(data->words));
    for (size_t i = 0; i < WORDS; i++)
        if (is_looked_at(i))
            is_whole &= data->words[i] == version;
    crashtest_hash_end();
    if (!is_whole)
        return 0;
    pmem_persist(data->words, sizeof(data->words)); /* it may be in caches only */
    set(&data->taken, version);
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct data *data = pm->base;
    bool is_whole = true;

    (void)arg;
    (void)crash;
    if (data->taken != data->announced)
        return 0; /* nobody says that it is whole */
    crashtest_hash_begin(data->words, sizeof(data->words));
    for (size_t i = 0; i < WORDS; i++)
        is_whole &= data->words[i] == data->taken;
    crashtest_hash_end();
    return is_whole ? 0 : crashtest_fail("what was taken is not whole");
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "torn",
        .pm_size = sizeof(struct data),
        .run = run,
        .recover = recover,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
