/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * journal.c - a log on libpmem that several threads append to, tested by crashtest.
 *
 *     crashtest-cc -o journal journal.c -lpmem && ./journal            passes
 *     crashtest-cc -DBUG -o journal journal.c -lpmem && ./journal      finds a bug
 *
 * Threads take entries under a lock, and fill them without. `count` may say so of an
 * entry once it is durable, and all before it are. The bug is not to wait for these: it
 * is there only if a thread is overtaken by another, which few runs show.
 */
#include <crashtest.h>
#include <libpmem.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ENTRIES_MAX 32
#define THREADS 2
#define APPENDS 2 /* by each of them */

struct entry {
    uint64_t length;
    char text[56];
};

struct journal {
    uint64_t count;
    uint64_t unused[7]; /* entries are lines of their own */
    struct entry entries[ENTRIES_MAX];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t grown = PTHREAD_COND_INITIALIZER;
static uint64_t taken; /* entries */

static void journal_append(struct journal *journal, const char *text)
{
    pthread_mutex_lock(&lock);
    uint64_t number = taken++;
    pthread_mutex_unlock(&lock);

    struct entry *entry = &journal->entries[number];

    entry->length = strlen(text);
    memcpy(entry->text, text, entry->length);
    pmem_persist(entry, sizeof(*entry));

    pthread_mutex_lock(&lock);
#ifndef BUG
    while (journal->count != number)
        pthread_cond_wait(&grown, &lock);
#endif
    journal->count++;
    pmem_persist(&journal->count, sizeof(journal->count));
    pthread_cond_broadcast(&grown);
    pthread_mutex_unlock(&lock);
}

/* ---- Its test -------------------------------------------------------------------- */

struct writer {
    pthread_t thread;
    struct journal *journal;
    int number;
};

static void *append_all(void *arg)
{
    const struct writer *writer = arg;
    char text[56];

    for (int i = 0; i < APPENDS; i++) {
        snprintf(text, sizeof(text), "append %d of writer %d", i, writer->number);
        crashtest_begin("%s", text);
        journal_append(writer->journal, text);
        crashtest_end();
    }
    return NULL;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    struct writer writers[THREADS];

    (void)arg;
    for (int i = 0; i < THREADS; i++) {
        writers[i] = (struct writer){.journal = pm->base, .number = i};
        if (pthread_create(&writers[i].thread, NULL, append_all, &writers[i]) != 0)
            return crashtest_fail("no thread");
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(writers[i].thread, NULL);
    return 0;
}

static size_t times_in_journal(const struct journal *journal, const char *text)
{
    size_t times = 0;

    for (uint64_t i = 0; i < journal->count; i++)
        times += journal->entries[i].length == strlen(text) &&
                 memcmp(journal->entries[i].text, text, strlen(text)) == 0;
    return times;
}

/* All that returned is there, once; what was running may be; nothing else is. */
static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct journal *journal = pm->base;
    size_t found = 0;

    (void)arg;
    if (journal->count > ENTRIES_MAX)
        return crashtest_fail("there are too many entries");
    for (size_t i = 0; crash->operations[i]; i++) {
        size_t times = times_in_journal(journal, crash->operations[i]);

        if (times != 1 && crash->progress[i] == CRASHTEST_RETURNED)
            return crashtest_fail("\"%s\" had returned, and is there %zu times",
                                  crash->operations[i], times);
        if (times > 0 && crash->progress[i] == CRASHTEST_NOT_BEGUN)
            return crashtest_fail("\"%s\" is there already", crash->operations[i]);
        found += times;
    }
    if (found != journal->count)
        return crashtest_fail("of %llu entries only %zu are whole",
                              (unsigned long long)journal->count, found);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "journal",
        .pm_size = sizeof(struct journal),
        .run = run,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
