/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many short programs in one process: all sequences of sets of a few records, each with
 * a copy that recovery goes by. With BUG in the environment the copy is not fenced.
 */
#include <immintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/suite.h"

#define PM_SIZE ((size_t)1 << 20)
#define RECORDS 4
#define LENGTH 3

/* Each part on a line of its own. */
struct record {
    uint64_t words[8];
    uint64_t copy[8];
    uint64_t valid[8]; /* the first: is the copy? */
};

static uint8_t base[PM_SIZE];
static bool has_bug;
static unsigned sequence[LENGTH];
static unsigned length;

static void persist(const void *address)
{
    _mm_clflushopt((void *)(uintptr_t)address);
    _mm_sfence();
}

static void set(struct record *record, uint64_t value)
{
    memcpy(record->copy, record->words, sizeof(record->copy));
    _mm_clflushopt(record->copy);
    if (!has_bug)
        _mm_sfence();
    record->valid[0] = 1;
    persist(record->valid);
    for (unsigned i = 0; i < 8; i++)
        record->words[i] = value;
    persist(record->words);
    record->valid[0] = 0;
    persist(record->valid);
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    struct record *records = pm->base;

    (void)arg;
    for (unsigned i = 0; i < length; i++) {
        crashtest_begin("set %u", sequence[i]);
        set(&records[sequence[i]], i + 2);
        crashtest_end();
    }
    return 0;
}

static int recover(const struct crashtest_pm *pm, void *arg)
{
    struct record *records = pm->base;

    (void)arg;
    for (unsigned i = 0; i < RECORDS; i++) {
        if (!records[i].valid[0])
            continue;
        memcpy(records[i].words, records[i].copy, sizeof(records[i].words));
        persist(records[i].words);
        records[i].valid[0] = 0;
        persist(records[i].valid);
    }
    return 0;
}

/* What the record holds after so many operations. */
static uint64_t value_after(unsigned record, size_t operations)
{
    uint64_t value = 0;

    for (unsigned i = 0; i < operations; i++)
        if (sequence[i] == record)
            value = i + 2;
    return value;
}

static bool holds(const uint64_t *words, uint64_t value)
{
    for (unsigned i = 0; i < 8; i++)
        if (words[i] != value)
            return false;
    return true;
}

/* Only lines that were touched can be wrong. */
static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 const struct touched *touched, void *arg)
{
    const struct record *records = pm->base;
    size_t most = crash->returned + (crash->running != NULL);

    (void)arg;
    for (size_t i = 0; i < touched->count; i++) {
        unsigned record = (unsigned)(touched->lines[i] / sizeof(struct record));
        const uint64_t *words = records[record].words;

        if (touched->lines[i] % sizeof(struct record) == 0 &&
            !holds(words, value_after(record, crash->returned)) &&
            !holds(words, value_after(record, most)))
            return crashtest_fail("record %u is neither old nor new", record);
    }
    return 0;
}

static enum suite_result test_sequence(struct suite *suite)
{
    char name[32] = "";
    const struct crashtest_program program = {
        .name = name, .pm_size = PM_SIZE, .run = run, .recover = recover};
    const struct session_program tested = {.program = &program,
                                           .workload = length == 1   ? "length 1"
                                                       : length == 2 ? "length 2"
                                                                     : "length 3",
                                           .base = base,
                                           .in_process = true,
                                           .first = length - 1,
                                           .check = check};

    for (unsigned i = 0; i < length; i++)
        snprintf(name + i, sizeof(name) - i, "%u", sequence[i]);
    return suite_test(suite, &tested);
}

static enum suite_result test_sequences(struct suite *suite)
{
    unsigned count = 1;
    enum suite_result worst = SUITE_PASSED;

    for (unsigned i = 0; i < length; i++)
        count *= RECORDS;
    for (unsigned n = 0; n < count; n++) {
        for (unsigned i = 0, rest = n; i < length; i++, rest /= RECORDS)
            sequence[i] = rest % RECORDS;
        enum suite_result result = test_sequence(suite);

        if (result > worst)
            worst = result;
    }
    return worst;
}

int main(void)
{
    struct suite_options options;
    enum suite_result worst = SUITE_PASSED;

    has_bug = getenv("BUG") != NULL;
    suite_options_init(&options);
    options.name = "sequences";
    options.command = "sequences";
    struct suite *suite = suite_create(&options);

    for (length = 1; suite && length <= LENGTH && worst == SUITE_PASSED; length++)
        worst = test_sequences(suite);
    if (worst == SUITE_NOT_TESTED)
        fprintf(stderr, "%s\n", suite_error(suite));
    report_text(suite_report(suite), stdout);
    suite_destroy(suite);
    return worst;
}
