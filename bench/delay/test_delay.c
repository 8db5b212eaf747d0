/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The arithmetic of the model with times made up, and what the door sees of the
 * library, with a medium that takes no time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/delay/model.h"
#include "include/minl2r.h"
#include "libminl2r/pm.h"

#define NS ((uint64_t)1000)

/* ---- The model ------------------------------------------------------------------- */

static const struct delay_medium plain = {.name = "plain",
                                          .fence_ns = 100,
                                          .flush_line_ns = 10,
                                          .stream_line_ns = 7,
                                          .read_ns = 300,
                                          .read_line_ns = 20};
static const struct delay_medium narrow = {
    .name = "narrow", .write_gb_s = 0.64, .read_gb_s = 6.4}; /* 100, 10 ns a line */

static uint64_t fence_end_ns(const struct delay_medium *medium,
                             struct delay_buses *buses, struct delay_writes writes)
{
    return delay_fence_end(medium, buses, &writes) / NS;
}

static void a_fence_ends_when_its_lines_have_had_their_time(void **state)
{
    struct delay_buses buses = {0};

    (void)state;
    assert_int_equal(
        fence_end_ns(
            &plain, &buses,
            (struct delay_writes){.first_ps = 5000 * NS, .flushed = 3, .streamed = 2}),
        5000 + 100 + 3 * 10 + 2 * 7);
}

static void a_fence_empties_what_was_written(void **state)
{
    struct delay_buses buses = {0};
    struct delay_writes writes = {.first_ps = 1, .flushed = 1};

    (void)state;
    assert_true(delay_is_pending(&writes));
    delay_fence_end(&plain, &buses, &writes);
    assert_false(delay_is_pending(&writes));
}

/* 8 lines of 100 ns each are at the bus from 0 on; another thread's 2 from 50 on. */
static void phases_queue_on_the_bus_in_the_order_of_their_fences(void **state)
{
    struct delay_buses buses = {0};

    (void)state;
    assert_int_equal(fence_end_ns(&narrow, &buses,
                                  (struct delay_writes){.first_ps = 0, .flushed = 8}),
                     800);
    assert_int_equal(
        fence_end_ns(&narrow, &buses,
                     (struct delay_writes){.first_ps = 50 * NS, .streamed = 2}),
        1000);
}

static void a_bus_saves_no_idle_time(void **state)
{
    struct delay_buses buses = {0};

    (void)state;
    fence_end_ns(&narrow, &buses, (struct delay_writes){.first_ps = 0, .flushed = 1});
    assert_int_equal(
        fence_end_ns(&narrow, &buses,
                     (struct delay_writes){.first_ps = 9000 * NS, .flushed = 1}),
        9100);
}

static void reads_and_writes_have_a_bus_each(void **state)
{
    struct delay_buses buses = {0};

    (void)state;
    fence_end_ns(&narrow, &buses, (struct delay_writes){.first_ps = 0, .flushed = 50});
    assert_int_equal(delay_read_end(&narrow, &buses, 4, 0) / NS, 40);
}

static void the_slower_of_latency_and_bandwidth_counts(void **state)
{
    struct delay_medium both = plain;
    struct delay_buses buses = {0};

    (void)state;
    both.write_gb_s = 64; /* 1 ns a line */
    assert_int_equal(
        fence_end_ns(&both, &buses, (struct delay_writes){.first_ps = 0, .flushed = 1}),
        110);
    both.write_gb_s = 0.064; /* 1,000 ns a line */
    buses = (struct delay_buses){0};
    assert_int_equal(
        fence_end_ns(&both, &buses, (struct delay_writes){.first_ps = 0, .flushed = 1}),
        1000);
}

static void a_read_pays_its_first_line_and_then_each_further_one(void **state)
{
    struct delay_buses buses = {0};

    (void)state;
    assert_int_equal(delay_read_end(&plain, &buses, 1, 40 * NS) / NS, 340);
    assert_int_equal(delay_read_end(&plain, &buses, 64, 0) / NS, 300 + 63 * 20);
    assert_int_equal(delay_read_end(&plain, &buses, 0, 40 * NS) / NS, 40);
}

static struct delay_fetches fetches;

static const void *at(uintptr_t address)
{
    return (const void *)(((uintptr_t)1 << 40) + address);
}

static uint64_t fetch_end_ns(uintptr_t address, size_t size)
{
    return delay_fetch_end(&fetches, at(address), size) / NS;
}

static void prefetched_lines_follow_each_other(void **state)
{
    (void)state;
    fetches = (struct delay_fetches){0};
    for (uintptr_t line = 0; line < 4; line++)
        delay_fetch(&plain, &fetches, at(64 * line), 1000 * NS);
    delay_fetch(&plain, &fetches, at(640), 5000 * NS);
    assert_int_equal(fetch_end_ns(0, 64), 1300);
    assert_int_equal(fetch_end_ns(0, 200), 1300 + 3 * 20);
    assert_int_equal(fetch_end_ns(640, 8), 5300);
    assert_int_equal(fetch_end_ns(256, 64), 0); /* nobody asked for it */
}

/* Are they `most` of the published ones apart, at the furthest? */
static void assert_as_published(const struct delay_published *published, bool flushes,
                                double most)
{
    const struct delay_medium *optane = delay_find("optane");

    for (; published->lines > 0; published++) {
        struct delay_buses buses = {0};
        struct delay_writes writes = {0};

        *(flushes ? &writes.flushed : &writes.streamed) = published->lines;
        double ns = (double)delay_fence_end(optane, &buses, &writes) / (double)NS;

        assert_true(ns < published->ns * (1 + most) && ns > published->ns * (1 - most));
    }
}

/* A straight line through what was measured: a quarter off where it is furthest, less
 * than a tenth for streams of 4 lines and more. */
static void optane_is_what_was_published(void **state)
{
    struct delay_buses buses = {0};

    (void)state;
    assert_as_published(delay_optane_flush, true, 0.25);
    assert_as_published(delay_optane_stream, false, 0.25);
    assert_as_published(delay_optane_stream + 2, false, 0.1);
    assert_int_equal(delay_read_end(delay_find("optane"), &buses, 1, 0),
                     (uint64_t)delay_optane_read[0].ns * NS);
}

/* ---- The cache ------------------------------------------------------------------- */

static struct delay_cache cache;

static void lines_that_were_read_are_there_until_dropped(void **state)
{
    (void)state;
    cache = (struct delay_cache){0};
    assert_int_equal(delay_cache_fill(&cache, at(60), 8), 2); /* crosses a line */
    assert_int_equal(delay_cache_fill(&cache, at(0), 128), 0);
    delay_cache_drop(&cache, at(64), 1);
    assert_int_equal(delay_cache_fill(&cache, at(0), 128), 1);
    assert_int_equal(delay_cache_fill(&cache, at(0), 0), 0);
}

static void a_line_pushes_out_the_one_that_had_its_place(void **state)
{
    const uintptr_t size = DELAY_CACHE_LINES * DELAY_LINE;

    (void)state;
    cache = (struct delay_cache){0};
    assert_int_equal(delay_cache_fill(&cache, at(0), size), DELAY_CACHE_LINES);
    assert_int_equal(delay_cache_fill(&cache, at(0), size), 0);
    assert_int_equal(delay_cache_fill(&cache, at(size), 1), 1);
    assert_int_equal(delay_cache_fill(&cache, at(0), 64), 1);
}

/* ---- The door -------------------------------------------------------------------- */

/* As a delayed medium, but that nobody has to wait. */
static const struct delay_medium instant = {.name = "instant"};

struct bed {
    struct minl2r_pool *pool;
    const uint8_t *root;
};

static int make_bed(void **state)
{
    static struct bed bed;
    char path[] = "/dev/shm/minl2r-test-delay-XXXXXX";

    close(mkstemp(path));
    unlink(path);
    assert_int_equal(minl2r_pool_create(path, "", 4 << 20, NULL, &bed.pool), 0);
    unlink(path);
    bed.root = minl2r_root(bed.pool, 65536);
    assert_non_null(bed.root);
    *state = &bed;
    return 0;
}

static int close_bed(void **state)
{
    struct bed *bed = *state;

    delay_use(NULL);
    return minl2r_pool_close(bed->pool);
}

static void write_range(struct bed *bed, size_t offset, uint8_t value, size_t size)
{
    static uint8_t bytes[65536];
    struct minl2r_tx *tx;

    memset(bytes, value, size);
    assert_int_equal(minl2r_tx_begin(bed->pool, &tx), 0);
    assert_int_equal(minl2r_tx_write(tx, bed->root + offset, bytes, size), 0);
    assert_int_equal(minl2r_tx_commit(tx), 0);
}

/* Exactly what the library counts is charged. */
static void what_statistics_count_is_charged(void **state)
{
    struct bed *bed = *state;
    struct minl2r_stats before, after;
    struct delay_totals charged = delay_totals();

    delay_use(&instant);
    minl2r_stats_get(bed->pool, &before);
    write_range(bed, 0, 1, 4096);
    write_range(bed, 8000, 2, 3);
    write_range(bed, 16384, 3, 40000);
    minl2r_stats_get(bed->pool, &after);
    struct delay_totals now = delay_totals();

    assert_true(now.fences > charged.fences);
    assert_int_equal(now.fences - charged.fences, after.fences - before.fences);
    assert_int_equal(now.lines_flushed - charged.lines_flushed,
                     after.lines_flushed - before.lines_flushed);
    assert_int_equal(now.lines_streamed - charged.lines_streamed,
                     after.lines_streamed - before.lines_streamed);
}

/* A word alone is not logged: so another one goes along. */
static void write_with_word(struct bed *bed, size_t offset, size_t size, size_t word)
{
    static const uint8_t bytes[1024] = {2};
    struct minl2r_tx *tx;

    assert_int_equal(minl2r_tx_begin(bed->pool, &tx), 0);
    assert_int_equal(minl2r_tx_write(tx, bed->root + offset, bytes, size), 0);
    assert_int_equal(minl2r_tx_write(tx, bed->root + word, bytes, 8), 0);
    assert_int_equal(minl2r_tx_commit(tx), 0);
}

static uint64_t lines_from_medium(void)
{
    return delay_totals().lines_read + delay_totals().lines_prefetched;
}

/* Streamed before, so that no cache has them. */
static void original_bytes_that_are_logged_are_read(void **state)
{
    static const size_t sizes[] = {8, 64, 128, 1024};
    struct bed *bed = *state;

    delay_use(&instant);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        write_range(bed, 4096, 1, 4096);
        write_range(bed, 16384, 1, 64);
        uint64_t before = lines_from_medium();

        write_with_word(bed, 4096, sizes[i], 16384);
        assert_int_equal(lines_from_medium() - before, (sizes[i] + 63) / 64 + 1);
    }
}

static void a_copy_out_of_pm_is_read_once(void **state)
{
    struct bed *bed = *state;
    uint8_t bytes[4096];
    volatile size_t size = sizeof(bytes); /* so that memcpy is called */

    delay_use(&instant);
    write_range(bed, 8192, 1, sizeof(bytes));
    uint64_t before = delay_totals().lines_read;

    for (int times = 0; times < 2; times++) {
        memcpy(bytes, bed->root + 8192, size);
        assert_int_equal(bytes[times], 1);
        assert_int_equal(delay_totals().lines_read - before, sizeof(bytes) / 64);
    }
}

/* ns that a fence or a read may be off, since times are whole picoseconds. */
#define TOLERANCE 1

static void assert_due(uint64_t due_ps, double ns, uint64_t operations)
{
    double off = (double)due_ps / (double)NS - ns;

    assert_true(off <= TOLERANCE * (double)operations);
    assert_true(off >= -TOLERANCE * (double)operations);
}

static void read_range(struct bed *bed, size_t offset, size_t size)
{
    static uint8_t bytes[65536];
    volatile size_t length = size; /* so that memcpy is called */

    memcpy(bytes, bed->root + offset, length);
    assert_int_equal(bytes[0], bed->root[offset]);
}

/* By what the library counts, whatever the clock says. What is written was read before. */
static void writes_are_due_by_their_counts(void **state)
{
    struct bed *bed = *state;

    delay_use(&plain);
    for (size_t size = 3; size <= 40000; size = size * 2 + 5) {
        struct minl2r_stats before, after;

        read_range(bed, 100, size);
        struct delay_totals then = delay_totals();

        minl2r_stats_get(bed->pool, &before);
        write_range(bed, 100, (uint8_t)size, size);
        minl2r_stats_get(bed->pool, &after);
        uint64_t fences = after.fences - before.fences;

        assert_int_equal(delay_totals().lines_read, then.lines_read);
        assert_due(delay_totals().due_ps - then.due_ps,
                   plain.fence_ns * (double)fences +
                       plain.flush_line_ns *
                           (double)(after.lines_flushed - before.lines_flushed) +
                       plain.stream_line_ns *
                           (double)(after.lines_streamed - before.lines_streamed),
                   fences);
    }
}

static void reads_are_due_by_their_lines(void **state)
{
    struct bed *bed = *state;

    delay_use(&plain);
    for (size_t lines = 1; lines <= 64; lines *= 2) {
        write_range(bed, 4096, (uint8_t)lines, lines * 64); /* streamed: in no cache */
        uint64_t due_ps = delay_totals().due_ps;
        uint64_t alone_ps = delay_totals().read_alone_ps;

        read_range(bed, 4096, lines * 64);
        assert_int_equal(delay_totals().read_alone_ps - alone_ps,
                         delay_totals().due_ps - due_ps);
        assert_due(delay_totals().due_ps - due_ps,
                   plain.read_ns + plain.read_line_ns * (double)(lines - 1), 1);
    }
}

/* Lines that are copied are read beside the streams that copy them. */
static void reads_beside_streams_are_not_alone(void **state)
{
    struct bed *bed = *state;
    const struct pm pm = {.base = bed->root, .size = 65536, .medium = MINL2R_EMULATED};
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &pm, .stats = &stats};

    delay_use(&plain);
    write_range(bed, 4096, 1, 4096);
    write_range(bed, 8192, 2, 4096);
    struct delay_totals before = delay_totals();

    pm_store_nt(&phase, bed->root + 4096, bed->root + 8192, 1024);
    assert_int_equal(delay_totals().lines_read - before.lines_read, 16);
    assert_int_equal(delay_totals().read_alone_ps, before.read_alone_ps);
    pm_fence(&phase);
}

static void nothing_is_charged_without_a_medium(void **state)
{
    struct bed *bed = *state;
    struct delay_totals before = delay_totals();

    delay_use(NULL);
    write_range(bed, 0, 9, 8192);
    struct delay_totals after = delay_totals();

    assert_memory_equal(&before, &after, sizeof(before));
}

/* However long it takes, but for a clock that the model reads wrong. */
static void a_fence_returns_no_earlier_than_it_is_due(void **state)
{
    static const struct delay_medium slow = {.name = "slow", .fence_ns = 2e6};
    struct bed *bed = *state;
    struct timespec start, end;

    delay_use(&slow);
    clock_gettime(CLOCK_MONOTONIC, &start);
    minl2r_store64(bed->pool, (const uint64_t *)bed->root, 7);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 +
                (double)(end.tv_nsec - start.tv_nsec);

    assert_true(ns > 1.9e6);
}

static void a_load_waits_for_its_line_that_was_prefetched(void **state)
{
    static const struct delay_medium slow = {.name = "slow", .read_ns = 2e6};
    struct bed *bed = *state;
    struct timespec start, end;
    volatile size_t size = 8; /* so that memcpy is called */
    uint64_t word;

    delay_use(&instant);
    write_range(bed, 4096, 1, 4096); /* streamed: in no cache */
    delay_use(&slow);
    clock_gettime(CLOCK_MONOTONIC, &start);
    delay_prefetch(bed->root + 4096);
    memcpy(&word, bed->root + 4096, size);
    clock_gettime(CLOCK_MONOTONIC, &end);
    double ns = (double)(end.tv_sec - start.tv_sec) * 1e9 +
                (double)(end.tv_nsec - start.tv_nsec);

    assert_int_equal(word, 0x0101010101010101);
    assert_true(ns > 1.9e6);
}

static void media_are_found_by_name(void **state)
{
    (void)state;
    assert_true(delay_find("optane")->read_ns > delay_find("cxl")->read_ns);
    assert_true(delay_find("tmpfs")->read_ns == 0);
    assert_null(delay_find("nonsense"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_fence_ends_when_its_lines_have_had_their_time),
        cmocka_unit_test(a_fence_empties_what_was_written),
        cmocka_unit_test(phases_queue_on_the_bus_in_the_order_of_their_fences),
        cmocka_unit_test(a_bus_saves_no_idle_time),
        cmocka_unit_test(reads_and_writes_have_a_bus_each),
        cmocka_unit_test(the_slower_of_latency_and_bandwidth_counts),
        cmocka_unit_test(a_read_pays_its_first_line_and_then_each_further_one),
        cmocka_unit_test(optane_is_what_was_published),
        cmocka_unit_test(prefetched_lines_follow_each_other),
        cmocka_unit_test(lines_that_were_read_are_there_until_dropped),
        cmocka_unit_test(a_line_pushes_out_the_one_that_had_its_place),
        cmocka_unit_test_setup_teardown(what_statistics_count_is_charged, make_bed,
                                        close_bed),
        cmocka_unit_test_setup_teardown(original_bytes_that_are_logged_are_read,
                                        make_bed, close_bed),
        cmocka_unit_test_setup_teardown(a_copy_out_of_pm_is_read_once, make_bed,
                                        close_bed),
        cmocka_unit_test_setup_teardown(writes_are_due_by_their_counts, make_bed,
                                        close_bed),
        cmocka_unit_test_setup_teardown(reads_are_due_by_their_lines, make_bed,
                                        close_bed),
        cmocka_unit_test_setup_teardown(reads_beside_streams_are_not_alone, make_bed,
                                        close_bed),
        cmocka_unit_test_setup_teardown(nothing_is_charged_without_a_medium, make_bed,
                                        close_bed),
        cmocka_unit_test_setup_teardown(a_fence_returns_no_earlier_than_it_is_due,
                                        make_bed, close_bed),
        cmocka_unit_test_setup_teardown(a_load_waits_for_its_line_that_was_prefetched,
                                        make_bed, close_bed),
        cmocka_unit_test(media_are_found_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
