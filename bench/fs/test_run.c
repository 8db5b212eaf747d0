/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What bench-fs asks of the schemes, seen by some that keep files in plain memory:
 * whether all that is written is new, whether reads find bytes, and whose turn it is.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/fs/run.h"
#include "bench/scratch.h"

/* ---- Schemes of plain memory ----------------------------------------------------- */

struct file {
    uint8_t *bytes;
    uint64_t size, capacity;

    /* What came in batches. */
    uint64_t writes, reads;
    uint64_t old_bytes;     /* written where they were already */
    uint64_t missing_bytes; /* that were to be read or overwritten, and not there */
    pthread_t thread;       /* the last one */
};

static struct {
    char turns[64]; /* a letter for each batch: its scheme's */
    size_t turn_count;
    bool is_batch; /* a scheme is counted before it and after it */
    bool appends;
    uint32_t threads;     /* that meet in the first batch of each scheme */
    atomic_uint arrivals; /* of them */
} now;

/* Where batches do not run at the same time, this never ends. */
static void meet(const struct file *file)
{
    if (file->writes > 0 || now.threads < 2)
        return;
    uint32_t round = atomic_fetch_add(&now.arrivals, 1) / now.threads;

    while (atomic_load(&now.arrivals) < (round + 1) * now.threads)
        sched_yield();
}

static void look_at_write(struct file *file, uint64_t offset, const uint8_t *src,
                          uint64_t size)
{
    uint64_t left = offset < file->size ? file->size - offset : 0;
    uint64_t there = size < left ? size : left;

    meet(file);
    file->writes++;
    file->thread = pthread_self();
    if (!now.appends)
        file->missing_bytes += size - there;
    for (uint64_t i = 0; i < there; i++)
        file->old_bytes += file->bytes[offset + i] == src[i];
}

static int plain_write(struct file *file, uint64_t offset, const void *src,
                       uint64_t size)
{
    if (offset + size > file->capacity)
        return -ENOSPC;
    if (now.is_batch)
        look_at_write(file, offset, src, size);
    memcpy(file->bytes + offset, src, size);
    if (offset + size > file->size)
        file->size = offset + size;
    return 0;
}

static int plain_read(struct file *file, uint64_t offset, void *dst, uint64_t size,
                      uint64_t *done)
{
    uint64_t left = offset < file->size ? file->size - offset : 0;

    *done = size < left ? size : left;
    memcpy(dst, file->bytes + offset, *done);
    file->reads++;
    file->missing_bytes += size - *done;
    return 0;
}

static int plain_clear(struct file *file)
{
    file->size = 0;
    return 0;
}

static uint64_t plain_size(const struct file *file)
{
    return file->size;
}

/* A fence is a write, so that it can be told whose figures are whose. */
static void plain_count(const struct volume *volume, struct scheme_counts *counts)
{
    *counts = (struct scheme_counts){0};
    for (uint32_t i = 0; i < volume->options.file_count; i++)
        counts->stats.fences += volume->files[i]->writes;
    now.is_batch = !now.is_batch;
    if (now.is_batch && now.turn_count < sizeof(now.turns) - 1)
        now.turns[now.turn_count++] = volume->scheme->name[0];
}

#define PLAIN(letter)                                                                  \
    {                                                                                  \
        .name = (letter), .write = plain_write, .read = plain_read,                    \
        .clear = plain_clear, .size = plain_size, .count = plain_count                 \
    }

static const struct scheme a = PLAIN("a"), b = PLAIN("b"), c = PLAIN("c");
const struct scheme *const schemes[] = {&a, &b, &c};
#define SCHEMES 3
const size_t scheme_count = SCHEMES;

void *memory_apart(size_t size)
{
    return calloc(1, size);
}

int volume_create(struct volume *volume, const char *path, const struct scheme *scheme,
                  const struct volume_options *options)
{
    (void)path;
    *volume = (struct volume){.scheme = scheme, .options = *options};
    for (uint32_t i = 0; i < options->file_count; i++) {
        struct file *file = calloc(1, sizeof(*file));

        assert_non_null(file);
        file->capacity = options->file_size + options->write_size;
        file->bytes = malloc(file->capacity);
        assert_non_null(file->bytes);
        volume->files[i] = file;
    }
    return 0;
}

void volume_close(struct volume *volume)
{
    for (uint32_t i = 0; i < volume->options.file_count; i++) {
        free(volume->files[i]->bytes);
        free(volume->files[i]);
    }
    volume->scheme = NULL;
}

void volume_touch(const struct volume *volume)
{
    (void)volume;
}

/* ---- Runs ------------------------------------------------------------------------ */

static struct subject subjects[SCHEMES];
static struct result results[SCHEMES];

static struct plan small_plan(void)
{
    return (struct plan){
        .file_size = (uint64_t)4 << 20,
        .batch_size = (uint64_t)1 << 20,
        .calls_max = 100,
        .rounds = 3,
        .threads_max = 2,
    };
}

static void run(const struct plan *plan, const char *workload, uint64_t record_size,
                uint32_t threads)
{
    const struct workload *found = workload_find(workload);

    assert_non_null(found);
    now.turn_count = 0;
    memset(now.turns, 0, sizeof(now.turns));
    now.appends = found->appends;
    now.threads = threads;
    atomic_store(&now.arrivals, 0);
    assert_int_equal(bench_run(plan, subjects, found, record_size, threads, results),
                     0);
}

static void each_round_starts_with_another_scheme(void **state)
{
    const struct plan plan = small_plan();

    (void)state;
    assert_int_equal(bench_open(&plan, subjects), 0);
    run(&plan, "overwrite", 4096, 1);
    assert_string_equal(now.turns, "abc"
                                   "abc"
                                   "bca"
                                   "cab");
    bench_close(subjects);
}

static void figures_are_of_the_scheme_and_of_its_timed_rounds(void **state)
{
    const struct plan plan = small_plan();

    (void)state;
    assert_int_equal(bench_open(&plan, subjects), 0);
    run(&plan, "overwrite", 4096, 1);
    for (size_t i = 0; i < SCHEMES; i++) {
        assert_int_equal(results[i].calls, 3 * 100);
        assert_int_equal(results[i].counts.stats.fences, 3 * 100);
        assert_int_equal(subjects[i].volume.files[0]->writes, 4 * 100);
        assert_int_equal(subjects[i].volume.files[1]->writes, 0);
        for (size_t round = 0; round < plan.rounds; round++)
            assert_true(results[i].rounds[round].mb_s > 0);
    }
    bench_close(subjects);
}

static void two_threads_run_at_once_on_files_of_their_own(void **state)
{
    const struct plan plan = small_plan();

    (void)state;
    assert_int_equal(bench_open(&plan, subjects), 0);
    run(&plan, "overwrite random", 4096, 2);
    for (size_t i = 0; i < SCHEMES; i++) {
        struct file *const *files = subjects[i].volume.files;

        assert_int_equal(results[i].calls, 2 * 3 * 100);
        assert_int_equal(results[i].counts.stats.fences, 2 * 3 * 100);
        assert_int_equal(files[0]->writes, 4 * 100);
        assert_int_equal(files[1]->writes, 4 * 100);
        assert_true(pthread_equal(files[0]->thread, pthread_self()));
        assert_false(pthread_equal(files[0]->thread, files[1]->thread));
    }
    assert_string_equal(now.turns, "abcabcbcacab");
    bench_close(subjects);
}

static void seven_of_ten_mixed_calls_read(void **state)
{
    const struct plan plan = small_plan();

    (void)state;
    assert_int_equal(bench_open(&plan, subjects), 0);
    run(&plan, "mixed unaligned", 4096, 1);
    assert_int_equal(subjects[0].volume.files[0]->reads, 4 * 70);
    assert_int_equal(subjects[0].volume.files[0]->writes, 4 * 30);
    bench_close(subjects);
}

static void assert_all_is_new(const struct workload *workload, uint64_t record_size)
{
    for (size_t i = 0; i < SCHEMES; i++)
        for (uint32_t j = 0; j < 2; j++) {
            struct file *file = subjects[i].volume.files[j];

            if (file->missing_bytes)
                fail_msg("%s, %llu B: %llu bytes are not there", workload->name,
                         (unsigned long long)record_size,
                         (unsigned long long)file->missing_bytes);
            if (!file->old_bytes == workload->is_unchanged && file->writes > 0)
                fail_msg("%s, %llu B: %llu bytes are written that are there",
                         workload->name, (unsigned long long)record_size,
                         (unsigned long long)file->old_bytes);
            file->writes = file->old_bytes = 0;
        }
}

/* As many batches as there are generations of content, and more. */
static void every_write_brings_new_bytes(void **state)
{
    static const uint64_t sizes[] = {64, 1984, 4096, 65536, 1048576};
    const struct plan plan = small_plan();

    (void)state;
    assert_int_equal(bench_open(&plan, subjects), 0);
    for (uint32_t threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < workload_count; i++)
            for (size_t j = 0; j < sizeof(sizes) / sizeof(*sizes); j++) {
                run(&plan, workloads[i].name, sizes[j], threads);
                assert_all_is_new(&workloads[i], sizes[j]);
            }
    assert_true(subjects[0].sequences[0].generation > GENERATIONS);
    bench_close(subjects);
}

/* The counts are of runs like those that are timed. */
static void every_counted_write_brings_new_bytes(void **state)
{
    const struct plan plan = small_plan();
    struct scheme_counts counts;

    (void)state;
    now.threads = 1;
    assert_int_equal(bench_open(&plan, subjects), 0);
    for (size_t i = 0; i < workload_count; i++) {
        now.appends = workloads[i].appends;
        assert_int_equal(bench_count(&subjects[0], &workloads[i], 4096, 64, &counts),
                         0);
        assert_int_equal(counts.stats.fences, subjects[0].volume.files[0]->writes);
        assert_all_is_new(&workloads[i], 4096);
    }
    bench_close(subjects);
}

static int start(void **state)
{
    (void)state;
    return scratch_init("/dev/shm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_round_starts_with_another_scheme),
        cmocka_unit_test(figures_are_of_the_scheme_and_of_its_timed_rounds),
        cmocka_unit_test(two_threads_run_at_once_on_files_of_their_own),
        cmocka_unit_test(seven_of_ten_mixed_calls_read),
        cmocka_unit_test(every_write_brings_new_bytes),
        cmocka_unit_test(every_counted_write_brings_new_bytes),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
