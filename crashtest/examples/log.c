/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * log.c - an append-only log on libpmem, tested by crashtest.
 *
 *     crashtest-cc -o log log.c -lpmem && ./log            passes
 *     crashtest-cc -DBUG -o log log.c -lpmem && ./log      finds a planted bug
 *
 * An entry is written behind the last one, and counts once `count` says so.
 */
#include <crashtest.h>
#include <libpmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX 32

struct entry {
    uint64_t length;
    char text[56];
};

struct log {
    uint64_t count;
    struct entry entries[ENTRIES_MAX];
};

static void log_append(struct log *log, const char *text)
{
    struct entry *entry = &log->entries[log->count];

    entry->length = strlen(text);
    memcpy(entry->text, text, entry->length);
#ifndef BUG
    pmem_persist(entry, sizeof(*entry));
#endif
    log->count++;
    pmem_persist(&log->count, sizeof(log->count));
}

/* ---- Its test -------------------------------------------------------------------- */

static void text_of(uint64_t number, char text[56])
{
    snprintf(text, 56, "entry number %llu", (unsigned long long)number);
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    char text[56];

    (void)arg;
    for (uint64_t i = 0; i < 4; i++) {
        text_of(i, text);
        crashtest_begin("append %llu", (unsigned long long)i);
        log_append(pm->base, text);
        crashtest_end();
    }
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct log *log = pm->base;
    char text[56];

    (void)arg;
    if (log->count != crash->returned &&
        (!crash->running || log->count != crash->returned + 1))
        return crashtest_fail("the log has %llu entries, but %zu appends had returned",
                              (unsigned long long)log->count, crash->returned);
    for (uint64_t i = 0; i < log->count; i++) {
        text_of(i, text);
        if (log->entries[i].length != strlen(text) ||
            memcmp(log->entries[i].text, text, strlen(text)) != 0)
            return crashtest_fail("entry %llu is not what was appended",
                                  (unsigned long long)i);
    }
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "log",
        .pm_size = sizeof(struct log),
        .run = run,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
