/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/fs/run.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/fs/slow.h"
#include "bench/scratch.h"

#define LOG_SIZE ((uint64_t)4 << 20)

/* ---- Volumes --------------------------------------------------------------------- */

/* All bytes from `from` on, which are then as they are in this generation. */
static int fill(struct subject *subject, uint32_t number, uint64_t from)
{
    const struct sequence *sequence = &subject->sequences[number];
    int rc = 0;

    for (uint64_t at = from; rc == 0 && at < sequence->file_size;) {
        uint64_t left = sequence->file_size - at;
        uint64_t part = left < RECORD_SIZE_MAX ? left : RECORD_SIZE_MAX;

        rc = subject->volume.scheme->write(subject->volume.files[number], at,
                                           content_at(at, sequence->generation), part);
        at += part;
    }
    return rc;
}

/*
 * The file is whole again after appends, which begin with nothing: else reads would find
 * no bytes, and overwrites would fill holes. And none of its bytes is so old that as many
 * batches would come to it again.
 */
static int restore(struct subject *subject, uint32_t number, uint64_t batches)
{
    struct sequence *sequence = &subject->sequences[number];
    bool is_old = sequence->generation - sequence->oldest + batches >= GENERATIONS;
    uint64_t size = subject->volume.scheme->size(subject->volume.files[number]);

    if (sequence->workload->appends)
        return 0;
    if (is_old)
        sequence->oldest = sequence->generation;
    return fill(subject, number, is_old ? 0 : size);
}

static int open_subject(const struct plan *plan, const struct scheme *scheme,
                        struct subject *subject)
{
    const struct volume_options options = {
        .block_size = BLOCK_SIZE,
        .file_count = plan->threads_max,
        .file_size = plan->file_size,
        .write_size = 2 * RECORD_SIZE_MAX,
        .log_size = LOG_SIZE,
    };
    const char *path = scratch_path(scheme->name);

    if (!path)
        return -ENOSPC;
    int rc = volume_create(&subject->volume, path, scheme, &options);

    scratch_unlink(path);
    if (rc == 0)
        volume_touch(&subject->volume);
    for (uint32_t i = 0; rc == 0 && i < plan->threads_max; i++) {
        subject->sequences[i] = (struct sequence){.file_size = plan->file_size};
        rc = fill(subject, i, 0);
    }
    return rc;
}

/*
 * Takes as much memory as all volumes need, and gives it back. A virtual machine may get
 * a page from its host only when it is used first, and then in smaller pieces than
 * later: the scheme that is first would be slower for it. It may also lose a page that
 * nobody touches for some seconds, which the first write of it would pay for: so each
 * batch begins with touching all of them.
 */
static int warm_memory(const struct plan *plan)
{
    uint64_t size =
        scheme_count * plan->threads_max * (plan->file_size + 8 * RECORD_SIZE_MAX);
    const char *path = scratch_path("memory");
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;

    if (fd < 0)
        return path ? -errno : -ENOSPC;
    int rc = -posix_fallocate(fd, 0, (off_t)size);

    close(fd);
    scratch_unlink(path);
    return rc;
}

int bench_open(const struct plan *plan, struct subject *subjects)
{
    int rc = content_make();

    if (rc == 0)
        rc = warm_memory(plan);
    for (size_t i = 0; rc == 0 && i < scheme_count; i++)
        rc = open_subject(plan, schemes[i], &subjects[i]);
    return rc;
}

void bench_close(struct subject *subjects)
{
    for (size_t i = 0; i < scheme_count; i++)
        if (subjects[i].volume.scheme)
            volume_close(&subjects[i].volume);
}

/* ---- One batch of one thread ----------------------------------------------------- */

struct batch {
    _Alignas(APART) struct subject *subject;
    uint32_t number; /* of the thread and its file */
    uint64_t calls;
    uint32_t *ticks;   /* [calls]; NULL: not timed */
    uint8_t *is_read;  /* [calls] */
    uint64_t sum;      /* ticks of all, and of the end of the batch */
    uint64_t overhead; /* ticks of a call that does nothing */
    int rc;
};

static int call(const struct subject *subject, uint32_t number, const struct call *next,
                uint64_t size)
{
    static _Thread_local uint8_t buffer[RECORD_SIZE_MAX];
    const struct scheme *scheme = subject->volume.scheme;
    struct file *file = subject->volume.files[number];
    uint64_t done;

    return next->src ? scheme->write(file, next->offset, next->src, size)
                     : scheme->read(file, next->offset, buffer, size, &done);
}

static void note(struct batch *batch, uint64_t i, const struct call *done,
                 uint64_t ticks)
{
    ticks -= ticks < batch->overhead ? ticks : batch->overhead;
    batch->ticks[i] = ticks < UINT32_MAX ? (uint32_t)ticks : UINT32_MAX;
    batch->is_read[i] = done->src == NULL;
    batch->sum += ticks;
}

/*
 * What is appended to is cleared before the next batch, so that a log would never be full:
 * what it puts off it pays for here. Overwrites go on from batch to batch, and so do logs.
 */
static int end_batch(const struct subject *subject, uint32_t number)
{
    const struct scheme *scheme = subject->volume.scheme;

    if (!subject->sequences[number].workload->appends || !scheme->checkpoint)
        return 0;
    return scheme->checkpoint(subject->volume.files[number]);
}

/*
 * A call takes from its start to the start of the next one: what its last fence waits
 * for is over only then, since the clock can be read while a fence is waiting. What a
 * call that does nothing takes is subtracted.
 */
static void run_batch(struct batch *batch)
{
    struct sequence *sequence = &batch->subject->sequences[batch->number];
    uint64_t start = ticks_now();

    batch->rc = 0;
    batch->sum = 0;
    for (uint64_t i = 0; batch->rc == 0 && i < batch->calls; i++) {
        const struct call next = sequence_next(sequence);

        batch->rc = call(batch->subject, batch->number, &next, sequence->record_size);
        uint64_t end = ticks_now();

        note(batch, i, &next, end - start);
        start = end;
    }
    if (batch->rc == 0)
        batch->rc = end_batch(batch->subject, batch->number);
    batch->sum += ticks_now() - start;
}

/* A file that is appended to is empty at first, or begins with an unaligned piece. */
static int begin_batch(struct subject *subject, uint32_t number)
{
    struct sequence *sequence = &subject->sequences[number];
    const struct workload *workload = sequence->workload;
    const struct scheme *scheme = subject->volume.scheme;
    struct file *file = subject->volume.files[number];

    sequence_begin_batch(sequence);
    if (!workload->appends)
        return 0;
    int rc = scheme->clear(file);

    if (rc == 0 && workload->is_unaligned)
        rc = scheme->write(file, 0, content_at(0, 0), UNALIGNED_SHIFT);
    return rc;
}

/* ---- The second thread ----------------------------------------------------------- */

/* It lives as long as the program, so that what the library keeps per thread is there. */
static struct {
    pthread_t thread;
    pthread_barrier_t start, end;
    struct batch *batch;
    bool is_running;
    atomic_uint running; /* threads that a barrier has let go; it wakes one of them */
} helper;

static void stay_on(int core)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

/* Past the barrier, as the other thread is. */
static void wait_for_both(void)
{
    atomic_fetch_add(&helper.running, 1);
    while (atomic_load(&helper.running) < 2)
        sched_yield();
}

static void *help(void *arg)
{
    (void)arg;
    stay_on(0); /* bench_pin() takes the last one */
    for (;;) {
        pthread_barrier_wait(&helper.start);
        wait_for_both();
        run_batch(helper.batch);
        pthread_barrier_wait(&helper.end);
    }
    return NULL;
}

static int start_helper(void)
{
    if (helper.is_running)
        return 0;
    pthread_barrier_init(&helper.start, NULL, 2);
    pthread_barrier_init(&helper.end, NULL, 2);
    helper.is_running = true;
    return -pthread_create(&helper.thread, NULL, help, NULL);
}

static int run_batches(struct batch *batches, uint32_t threads)
{
    int rc = threads > 1 ? start_helper() : 0;

    if (rc < 0)
        return rc;
    if (threads > 1) {
        helper.batch = &batches[1];
        atomic_store(&helper.running, 0);
        pthread_barrier_wait(&helper.start);
        wait_for_both();
    }
    run_batch(&batches[0]);
    if (threads > 1)
        pthread_barrier_wait(&helper.end);
    return batches[0].rc < 0 ? batches[0].rc : threads > 1 ? batches[1].rc : 0;
}

/* ---- Memory of figures ------------------------------------------------------------ */

/* The times of one batch of each thread. */
static uint32_t *batch_ticks[THREADS_MAX];
static uint8_t *batch_kinds[THREADS_MAX];
static uint32_t *chosen_ticks; /* some of a batch's, or those of all threads */

static int make_memory(const struct plan *plan)
{
    if (chosen_ticks)
        return 0;
    for (uint32_t i = 0; i < THREADS_MAX; i++) {
        batch_ticks[i] = memory_apart(plan->calls_max * sizeof(**batch_ticks));
        batch_kinds[i] = memory_apart(plan->calls_max * sizeof(**batch_kinds));
        if (!batch_ticks[i] || !batch_kinds[i])
            return -ENOMEM;
    }
    chosen_ticks = memory_apart(plan->calls_max * THREADS_MAX * sizeof(*chosen_ticks));
    return chosen_ticks ? 0 : -ENOMEM;
}

/* ---- Figures --------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

uint32_t bench_percentile(uint32_t *ticks, size_t count, double share)
{
    qsort(ticks, count, sizeof(*ticks), compare);
    size_t rank = (size_t)ceil(share * (double)count);

    return ticks[rank > 0 ? rank - 1 : 0];
}

/* ---- What a call that does nothing takes ------------------------------------------ */

static int write_nothing(struct file *file, uint64_t offset, const void *src,
                         uint64_t size)
{
    (void)file;
    (void)offset;
    (void)src;
    (void)size;
    return 0;
}

static uint64_t find_overhead(void)
{
    enum { CALLS = 4000 };
    static const struct scheme nothing = {.write = write_nothing};
    static uint32_t ticks[CALLS];
    static uint8_t is_read[CALLS];
    struct subject subject = {.volume = {.scheme = &nothing},
                              .sequences = {{.file_size = (uint64_t)1 << 20}}};
    struct batch batch = {
        .subject = &subject, .calls = CALLS, .ticks = ticks, .is_read = is_read};

    sequence_set(&subject.sequences[0], &workloads[0], 64);
    run_batch(&batch);
    return bench_percentile(ticks, CALLS, 0.5);
}

static struct ticks clock_of(void)
{
    static struct ticks clock;

    if (clock.ns_per_tick == 0) {
        clock = ticks_calibrate();
        clock.overhead = find_overhead();
    }
    return clock;
}

/* Of those calls that are reads, or not. NAN: there are none. */
static double median_of(const struct batch *batch, bool reads)
{
    size_t count = 0;

    for (uint64_t i = 0; i < batch->calls; i++)
        if (batch->is_read[i] == reads)
            chosen_ticks[count++] = batch->ticks[i];
    if (count == 0)
        return NAN;
    return bench_percentile(chosen_ticks, count, 0.5) * clock_of().ns_per_tick;
}

/* The calls of all threads together, in chosen_ticks; their bytes, while the slowest ran. */
static void find_timing(const struct sequence *sequence, const struct batch *batches,
                        uint32_t threads, struct timing *timing)
{
    uint32_t *all = chosen_ticks;
    double ns_per_tick = clock_of().ns_per_tick;
    uint64_t count = batches[0].calls * threads;
    uint64_t slowest = 0;

    for (uint32_t i = 0; i < threads; i++) {
        memcpy(all + i * batches[i].calls, batches[i].ticks,
               batches[i].calls * sizeof(*all));
        if (batches[i].sum > slowest)
            slowest = batches[i].sum;
    }
    timing->p50 = bench_percentile(all, count, 0.5) * ns_per_tick;
    timing->p99 =
        count >= 100 ? bench_percentile(all, count, 0.99) * ns_per_tick : (double)NAN;
    timing->p999 =
        count >= 1000 ? bench_percentile(all, count, 0.999) * ns_per_tick : (double)NAN;
    timing->mb_s = (double)(count * sequence->record_size) * 1000 /
                   ((double)slowest * ns_per_tick);
}

static void subtract(struct scheme_counts *counts, const struct scheme_counts *less)
{
    counts->stats.fences -= less->stats.fences;
    counts->stats.lines_flushed -= less->stats.lines_flushed;
    counts->stats.lines_streamed -= less->stats.lines_streamed;
    counts->stats.log_payload_bytes -= less->stats.log_payload_bytes;
    counts->stats.log_bytes -= less->stats.log_bytes;
    counts->stats.pm_bytes -= less->stats.pm_bytes;
    counts->copied_bytes -= less->copied_bytes;
    counts->checkpoints -= less->checkpoints;
}

static void add(struct scheme_counts *counts, const struct scheme_counts *more)
{
    counts->stats.fences += more->stats.fences;
    counts->stats.lines_flushed += more->stats.lines_flushed;
    counts->stats.lines_streamed += more->stats.lines_streamed;
    counts->stats.log_payload_bytes += more->stats.log_payload_bytes;
    counts->stats.log_bytes += more->stats.log_bytes;
    counts->stats.pm_bytes += more->stats.pm_bytes;
    counts->copied_bytes += more->copied_bytes;
    counts->checkpoints += more->checkpoints;
}

/* ---- Runs ------------------------------------------------------------------------ */

static uint64_t calls_of(const struct plan *plan, const struct sequence *sequence)
{
    uint64_t calls = plan->batch_size / sequence->record_size;
    uint64_t most = sequence_calls_max(sequence);

    if (calls < 8)
        calls = 8;
    if (calls > plan->calls_max)
        calls = plan->calls_max;
    return calls < most ? calls : most;
}

static int run_subject(struct subject *subject, uint64_t calls, uint32_t threads,
                       struct timing *timing, struct result *result)
{
    struct batch batches[THREADS_MAX] = {0};
    struct scheme_counts before, after;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < threads; i++)
        rc = begin_batch(subject, i);
    if (rc < 0)
        return rc;
    for (uint32_t i = 0; i < threads; i++)
        batches[i] = (struct batch){.subject = subject,
                                    .number = i,
                                    .calls = calls,
                                    .ticks = batch_ticks[i],
                                    .is_read = batch_kinds[i],
                                    .overhead = clock_of().overhead};
    volume_touch(&subject->volume); /* see warm_memory() */
    subject->volume.scheme->count(&subject->volume, &before);
    double reads = threads == 1 ? slow_reads() : NAN;

    rc = run_batches(batches, threads);
    if (rc < 0)
        return rc;
    result->reads += slow_reads() - reads;
    subject->volume.scheme->count(&subject->volume, &after);
    timing->read_p50 = median_of(&batches[0], true);
    timing->write_p50 = median_of(&batches[0], false);
    find_timing(&subject->sequences[0], batches, threads, timing);
    bench_keep(result, chosen_ticks, calls * threads);
    subtract(&after, &before);
    add(&result->counts, &after);
    result->calls += calls * threads;
    return 0;
}

int bench_run(const struct plan *plan, struct subject *subjects,
              const struct workload *workload, uint64_t record_size, uint32_t threads,
              struct result *results)
{
    static struct result warm_up;
    struct timing ignored;
    int rc = make_memory(plan);

    bench_result_clear(&warm_up, 0);
    for (size_t i = 0; i < scheme_count; i++) {
        bench_result_clear(&results[i], clock_of().ns_per_tick);
        for (uint32_t j = 0; j < plan->threads_max; j++)
            sequence_set(&subjects[i].sequences[j], workload, record_size);
        for (uint32_t j = 0; rc == 0 && j < threads; j++)
            rc = restore(&subjects[i], j, 1 + plan->rounds);
    }
    uint64_t calls = calls_of(plan, &subjects[0].sequences[0]);

    for (size_t i = 0; rc == 0 && i < scheme_count; i++)
        rc = run_subject(&subjects[i], calls, threads, &ignored, &warm_up);
    for (size_t round = 0; rc == 0 && round < plan->rounds; round++)
        for (size_t i = 0; rc == 0 && i < scheme_count; i++) {
            size_t turn = (round + i) % scheme_count;

            rc = run_subject(&subjects[turn], calls, threads,
                             &results[turn].rounds[round], &results[turn]);
        }
    return rc;
}

int bench_count(struct subject *subject, const struct workload *workload,
                uint64_t record_size, uint64_t calls, struct scheme_counts *counts)
{
    struct sequence *sequence = &subject->sequences[0];
    struct scheme_counts before;

    sequence_set(sequence, workload, record_size);
    int rc = restore(subject, 0, 1);

    if (rc == 0)
        rc = begin_batch(subject, 0);

    subject->volume.scheme->count(&subject->volume, &before);
    for (uint64_t i = 0; rc == 0 && i < calls; i++) {
        const struct call next = sequence_next(sequence);

        rc = call(subject, 0, &next, record_size);
    }
    if (rc == 0)
        rc = end_batch(subject, 0);
    subject->volume.scheme->count(&subject->volume, counts);
    subtract(counts, &before);
    return rc;
}

void bench_result_clear(struct result *result, double ns_per_tick)
{
    result->few_count = result->calls = 0;
    result->counts = (struct scheme_counts){0};
    result->reads = 0;
    result->ns_per_tick = ns_per_tick;
}

void bench_keep(struct result *result, const uint32_t *ticks, size_t count)
{
    if (count >= FEW_CALLS)
        return;
    memcpy(result->few + result->few_count, ticks, count * sizeof(*ticks));
    result->few_count += count;
}

double bench_tail(const struct plan *plan, struct result *result, size_t member,
                  double share, size_t least)
{
    struct bench_spread spread = bench_timing(plan, result, member);

    if (!isnan(spread.median) || result->few_count < least)
        return spread.median;
    return bench_percentile(result->few, result->few_count, share) *
           result->ns_per_tick;
}

int bench_print_clock(void)
{
    int rc = content_make(); /* for a call that does nothing with it */

    if (rc < 0)
        return rc;
    struct ticks clock = clock_of();

    printf("Clock: steps of %.1f ns; a call that does nothing takes %.1f ns, which is "
           "subtracted\n",
           (double)clock.step * clock.ns_per_tick,
           (double)clock.overhead * clock.ns_per_tick);
    return 0;
}

struct bench_spread bench_timing(const struct plan *plan, const struct result *result,
                                 size_t member)
{
    double samples[BENCH_ROUNDS_MAX];

    for (size_t i = 0; i < plan->rounds; i++)
        memcpy(&samples[i], (const uint8_t *)&result->rounds[i] + member,
               sizeof(samples[i]));
    return bench_spread(samples, plan->rounds);
}
