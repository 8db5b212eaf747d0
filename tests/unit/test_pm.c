/* SPDX-License-Identifier: BSD-3-Clause */
/* The door to PM: copies at every alignment, counts, media. */
#include "tests/unit/fake_media.h"

#include <pthread.h>

#include "libminl2r/pm.h"

#define EDGE 130 /* every alignment of two lines, and more */
#define ARENA ((size_t)4096)

/* ---- A piece of memory that is taken for PM -------------------------------------- */

struct bed {
    uint8_t *memory; /* ARENA bytes */
    struct pm pm;
    struct minl2r_stats stats;
    struct pm_phase phase;
};

static void make_bed(struct bed *bed, enum minl2r_medium medium)
{
    bed->memory = __real_mmap(NULL, ARENA, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(bed->memory != MAP_FAILED);
    pm_adopt(&bed->pm, bed->memory, ARENA, medium);
    bed->stats = (struct minl2r_stats){0};
    bed->phase = (struct pm_phase){.pm = &bed->pm, .stats = &bed->stats};
}

static void unmake_bed(struct bed *bed)
{
    munmap(bed->memory, ARENA);
}

static int reset_wraps(void **state)
{
    (void)state;
    fake_nothing();
    return 0;
}

static const enum minl2r_medium media[] = {MINL2R_EMULATED, MINL2R_FILE, MINL2R_DAX,
                                           MINL2R_EADR};

typedef void store_fn(struct pm_phase *phase, const void *dst, const void *src,
                      size_t size);

/* Stores `size` bytes at every alignment and looks at all bytes around. */
static void store_everywhere(enum minl2r_medium medium, store_fn *store)
{
    struct bed bed;
    uint8_t source[EDGE + 1 + EDGE], expected[3 * EDGE];

    for (size_t i = 0; i < sizeof(source); i++)
        source[i] = (uint8_t)(i * 7 + 1);
    make_bed(&bed, medium);
    for (size_t at = 0; at <= EDGE; at++)
        for (size_t size = 0; size <= EDGE; size++) {
            memset(bed.memory, 0xee, sizeof(expected));
            memset(expected, 0xee, sizeof(expected));
            memcpy(expected + at, source + at % 3, size);
            store(&bed.phase, bed.memory + at, source + at % 3, size);
            assert_memory_equal(bed.memory, expected, sizeof(expected));
        }
    unmake_bed(&bed);
}

static void store_everywhere_on_all_media(store_fn *store)
{
    for (size_t i = 0; i < sizeof(media) / sizeof(media[0]); i++)
        store_everywhere(media[i], store);
}

static void store_changes_its_bytes_and_no_others_at_every_alignment(void **state)
{
    (void)state;
    store_everywhere_on_all_media(pm_store);
}

static void stream_changes_its_bytes_and_no_others_at_every_alignment(void **state)
{
    (void)state;
    store_everywhere_on_all_media(pm_store_nt);
}

/* In halves, the second one first. */
static void stream_as_extents(struct pm_phase *phase, const void *dst, const void *src,
                              size_t size)
{
    const uint8_t *bytes = src;
    uint32_t half = (uint32_t)size / 2, rest = (uint32_t)size - half;
    const struct extent extents[] = {{half, bytes + half, rest, false},
                                     {0, bytes, half, false}};

    pm_store_nt_extents(phase, dst, extents, half > 0 ? 2 : rest);
}

static void extents_change_their_bytes_and_no_others_at_every_alignment(void **state)
{
    (void)state;
    store_everywhere_on_all_media(stream_as_extents);
}

static void store_in_pieces(struct pm_phase *phase, const void *dst, const void *src,
                            size_t size)
{
    for (size_t i = 0; i < size; i++)
        pm_store_piece(phase, (const uint8_t *)dst + i, (const uint8_t *)src + i, 1);
}

static void pieces_change_their_bytes_and_no_others(void **state)
{
    (void)state;
    store_everywhere_on_all_media(store_in_pieces);
}

static void zero_clears_its_bytes_and_no_others_at_every_alignment(void **state)
{
    struct bed bed;
    uint8_t expected[ARENA];

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    for (size_t at = 0; at <= EDGE; at++)
        for (size_t size = 0; size <= 600; size += 1 + size / 50) {
            memset(bed.memory, 0xee, ARENA);
            memset(expected, 0xee, ARENA);
            memset(expected + at, 0, size);
            pm_zero(&bed.phase, bed.memory + at, size);
            assert_memory_equal(bed.memory, expected, ARENA);
        }
    unmake_bed(&bed);
}

static void piece_of_each_size_arrives_whole(void **state)
{
    static const uint64_t value = 0x1122334455667788;
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    for (size_t size = 1; size <= 8; size *= 2) {
        uint64_t expected = UINT64_MAX;

        memset(bed.memory, 0xff, 8);
        memcpy(&expected, &value, size);
        pm_store_piece(&bed.phase, bed.memory, &value, size);
        assert_memory_equal(bed.memory, &expected, 8);
    }
    unmake_bed(&bed);
}

static void bits_are_set_and_cleared(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    const uint64_t *word = (const uint64_t *)(void *)bed.memory;

    pm_or64(&bed.phase, word, 0xf0);
    pm_and64(&bed.phase, word, ~(uint64_t)0x30);
    assert_int_equal(*word, 0xc0);
    unmake_bed(&bed);
}

/* ---- Words arrive whole ---------------------------------------------------------- */

#define ROUNDS 200000

struct race {
    struct bed bed;
    bool done; /* atomic */
    uint64_t torn;
};

static void *watch_words(void *arg)
{
    struct race *race = arg;
    const uint64_t *words = (const uint64_t *)(void *)race->bed.memory;

    while (!__atomic_load_n(&race->done, __ATOMIC_RELAXED))
        for (int i = 1; i <= 2; i++) {
            uint64_t word = pm_load64(&words[i]);

            race->torn += word != 0 && word != UINT64_MAX;
        }
    return NULL;
}

/* An unaligned range around two words: a copy by larger pieces would split them. */
static void words_inside_an_unaligned_store_are_never_torn(void **state)
{
    struct race race = {.done = false};
    uint8_t patterns[2][32];
    pthread_t thread;

    (void)state;
    make_bed(&race.bed, MINL2R_EADR); /* no flushes: more rounds */
    memset(patterns[0], 0, sizeof(patterns[0]));
    memset(patterns[1], 0xff, sizeof(patterns[1]));
    assert_int_equal(pthread_create(&thread, NULL, watch_words, &race), 0);
    for (int i = 0; i < ROUNDS; i++)
        pm_store(&race.bed.phase, race.bed.memory + 3 + i % 5, patterns[i & 1], 24);
    __atomic_store_n(&race.done, true, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    assert_int_equal(race.torn, 0);
    unmake_bed(&race.bed);
}

/* ---- Counts ---------------------------------------------------------------------- */

static uint64_t lines_between(size_t at, size_t size)
{
    uint64_t lines = 0;

    for (size_t line = 0; line < ARENA; line += PM_LINE)
        lines += size > 0 && line < at + size && at < line + PM_LINE;
    return lines;
}

static void flush_counts_every_line_it_touches(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    for (size_t at = 0; at <= EDGE; at++)
        for (size_t size = 0; size <= EDGE; size++) {
            uint64_t before = bed.stats.lines_flushed;

            pm_flush(&bed.phase, bed.memory + at, size);
            assert_ok(pm_fence(&bed.phase));
            assert_int_equal(bed.stats.lines_flushed - before, lines_between(at, size));
        }
    unmake_bed(&bed);
}

static void stream_counts_every_line_once(void **state)
{
    struct bed bed;
    uint8_t source[EDGE] = {0};

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    for (size_t at = 0; at <= EDGE; at++)
        for (size_t size = 0; size <= EDGE; size++) {
            uint64_t before = bed.stats.lines_streamed;

            pm_store_nt(&bed.phase, bed.memory + at, source, size);
            assert_int_equal(bed.stats.lines_streamed - before,
                             lines_between(at, size));
            assert_ok(pm_fence(&bed.phase));
        }
    assert_int_equal(bed.stats.lines_flushed, 0);
    unmake_bed(&bed);
}

static void pieces_of_one_line_in_a_row_are_streamed_as_one(void **state)
{
    static const uint8_t source[8];
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    pm_store_nt(&bed.phase, bed.memory, source, 8);
    pm_store_nt(&bed.phase, bed.memory + 20, source, 4);
    pm_store_nt(&bed.phase, bed.memory + 60, source, 8);
    assert_int_equal(bed.stats.lines_streamed, 2);
    assert_ok(pm_fence(&bed.phase));
    pm_store_nt(&bed.phase, bed.memory + 64, source, 8);
    assert_int_equal(bed.stats.lines_streamed, 3);
    unmake_bed(&bed);
}

static void extents_are_counted_as_streams_of_each(void **state)
{
    static const uint8_t source[100];
    const struct extent extents[] = {{0, source, 8, false},
                                     {20, source, 4, false},
                                     {68, source, 8, false},
                                     {200, source, 100, false}};
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    pm_store_nt_extents(&bed.phase, bed.memory, extents, 4);
    assert_int_equal(bed.stats.lines_streamed, 1 + 1 + 2);
    assert_int_equal(bed.stats.pm_bytes, 8 + 4 + 8 + 100);
    pm_store_nt_extents(&bed.phase, bed.memory + 256, extents, 1);
    assert_int_equal(bed.stats.lines_streamed, 4); /* the line of the last one */
    assert_ok(pm_fence(&bed.phase));
    assert_int_equal(bed.stats.fences, 1);
    unmake_bed(&bed);
}

static void every_kind_of_store_counts_its_bytes(void **state)
{
    static const uint8_t source[300];
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    pm_store(&bed.phase, bed.memory + 1, source, 7);
    pm_store_nt(&bed.phase, bed.memory + 1, source, 70);
    pm_zero(&bed.phase, bed.memory + 1, 300);
    pm_store_piece(&bed.phase, bed.memory, source, 2);
    pm_or64(&bed.phase, (const uint64_t *)(void *)bed.memory, 1);
    pm_and64(&bed.phase, (const uint64_t *)(void *)bed.memory, 1);
    assert_int_equal(bed.stats.pm_bytes, 7 + 70 + 300 + 2 + 8 + 8);
    unmake_bed(&bed);
}

static void neighbours_in_one_line_are_flushed_once(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    pm_flush(&bed.phase, bed.memory, 8);
    pm_flush(&bed.phase, bed.memory + 8, 8);
    pm_flush(&bed.phase, bed.memory + 56, 16);
    assert_int_equal(bed.stats.lines_flushed, 2);
    unmake_bed(&bed);
}

static void line_stored_to_after_its_flush_is_flushed_again(void **state)
{
    static const uint64_t value = 1;
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    for (int kind = 0; kind < 5; kind++) {
        const uint64_t *word = (const uint64_t *)(void *)(bed.memory + 8);
        uint64_t before = bed.stats.lines_flushed;

        pm_flush(&bed.phase, bed.memory, 8);
        if (kind == 0)
            pm_store(&bed.phase, word, &value, 8);
        if (kind == 1)
            pm_zero(&bed.phase, word, 8);
        if (kind == 2)
            pm_store_piece(&bed.phase, word, &value, 8);
        if (kind == 3)
            pm_or64(&bed.phase, word, 1);
        if (kind == 4)
            pm_and64(&bed.phase, word, 1);
        pm_flush(&bed.phase, bed.memory + 8, 8);
        assert_int_equal(bed.stats.lines_flushed - before, 2);
        assert_ok(pm_fence(&bed.phase));
    }
    unmake_bed(&bed);
}

static void fence_ends_the_memory_of_the_last_line(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    pm_flush(&bed.phase, bed.memory, 8);
    assert_ok(pm_fence(&bed.phase));
    pm_flush(&bed.phase, bed.memory, 8);
    assert_int_equal(bed.stats.lines_flushed, 2);
    unmake_bed(&bed);
}

static void fence_counts_only_with_something_to_wait_for(void **state)
{
    static const uint64_t value = 1;
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_DAX);
    assert_ok(pm_fence(&bed.phase));
    pm_store(&bed.phase, bed.memory, &value, 8); /* not flushed */
    assert_ok(pm_fence(&bed.phase));
    assert_int_equal(bed.stats.fences, 0);
    pm_flush(&bed.phase, bed.memory, 8);
    assert_ok(pm_fence(&bed.phase));
    assert_ok(pm_fence(&bed.phase));
    pm_store_nt(&bed.phase, bed.memory, &value, 8);
    assert_ok(pm_fence(&bed.phase));
    assert_int_equal(bed.stats.fences, 2);
    unmake_bed(&bed);
}

static void eadr_flushes_nothing_and_waits_for_nothing(void **state)
{
    static const uint8_t source[200];
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_EADR);
    pm_store(&bed.phase, bed.memory, source, sizeof(source));
    pm_flush(&bed.phase, bed.memory, sizeof(source));
    pm_store_nt(&bed.phase, bed.memory, source, sizeof(source));
    assert_ok(pm_fence(&bed.phase));
    assert_int_equal(bed.stats.lines_flushed + bed.stats.lines_streamed, 0);
    assert_int_equal(bed.stats.fences, 0);
    assert_int_equal(bed.stats.pm_bytes, 2 * sizeof(source));
    unmake_bed(&bed);
}

/* ---- msync mode ------------------------------------------------------------------ */

static void fence_in_msync_mode_is_one_msync_over_all_that_was_flushed(void **state)
{
    static const uint8_t source[100];
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_FILE);
    pm_store(&bed.phase, bed.memory + 1000, source, 100);
    pm_flush(&bed.phase, bed.memory + 1000, 100);
    pm_store_nt(&bed.phase, bed.memory + 3000, source, 100);
    assert_ok(pm_fence(&bed.phase));
    assert_int_equal(msync_calls, 1);
    assert_int_equal(bed.stats.fences, 1);
    assert_int_equal(bed.stats.lines_flushed + bed.stats.lines_streamed, 0);
    assert_true(msync_start == (uintptr_t)bed.memory);
    assert_true(msync_end >= (uintptr_t)bed.memory + 3100);
    unmake_bed(&bed);
}

static void msync_begins_at_the_page_that_was_flushed(void **state)
{
    struct pm pm;
    struct minl2r_stats stats = {0};
    uint8_t *memory = __real_mmap(NULL, 4 * ARENA, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    pm_adopt(&pm, memory, 4 * ARENA, MINL2R_FILE);
    struct pm_phase phase = {.pm = &pm, .stats = &stats};

    pm_flush(&phase, memory + 2 * ARENA + 100, 8);
    assert_ok(pm_fence(&phase));
    pm_flush(&phase, memory + ARENA + 100, 8);
    assert_ok(pm_fence(&phase));
    assert_true(msync_start == (uintptr_t)memory + ARENA);
    assert_true(msync_end <= (uintptr_t)memory + 2 * ARENA);
    munmap(memory, 4 * ARENA);
}

static void failing_msync_is_eio_with_the_place(void **state)
{
    struct bed bed;

    (void)state;
    make_bed(&bed, MINL2R_FILE);
    pm_flush(&bed.phase, bed.memory + 8, 8);
    msync_errnum = ENOSPC;
    assert_error(pm_fence(&bed.phase), EIO, "at offset 0 failed: No space left");
    unmake_bed(&bed);
}

/* ---- Mapping --------------------------------------------------------------------- */

static int make_file(struct fixture *f, uint64_t size)
{
    int fd = open(f->path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    return fd;
}

static int setup(void **state)
{
    reset_wraps(state);
    return fixture_setup(state);
}

static void expect_medium(struct fixture *f, bool writable, enum minl2r_medium medium,
                          const char *flush_method)
{
    int fd = make_file(f, 8192);
    struct pm pm;

    assert_ok(pm_map(&pm, fd, 8192, writable));
    assert_int_equal(pm.medium, medium);
    assert_non_null(pm.reason);
    if (flush_method)
        assert_string_equal(pm.flush_method, flush_method);
    pm_unmap(&pm);
    close(fd);
}

static void file_in_tmpfs_is_emulated_and_flushed_by_line(void **state)
{
    struct fixture *f = *state;
    struct statfs fs;

    assert_int_equal(statfs(f->dir, &fs), 0);
    if ((unsigned long)fs.f_type != TMPFS_MAGIC)
        skip();
    expect_medium(f, true, MINL2R_EMULATED, NULL);
}

static void file_without_map_sync_is_msynced(void **state)
{
    pretend_disk = true;
    expect_medium(*state, true, MINL2R_FILE, "msync");
}

static void file_with_map_sync_is_dax(void **state)
{
    pretend_disk = pretend_dax = true;
    expect_medium(*state, true, MINL2R_DAX, NULL);
}

static void dax_is_seen_when_mapped_read_only_too(void **state)
{
    pretend_disk = pretend_dax = true;
    expect_medium(*state, false, MINL2R_DAX, NULL);
}

static void dax_with_auto_flush_is_eadr(void **state)
{
    pretend_disk = pretend_dax = true;
    auto_flush = 1;
    expect_medium(*state, true, MINL2R_EADR, "none");
}

static void dax_with_unknown_auto_flush_is_flushed(void **state)
{
    pretend_disk = pretend_dax = true;
    auto_flush = -1;
    expect_medium(*state, true, MINL2R_DAX, NULL);
}

static void writable_mapping_changes_the_file(void **state)
{
    struct fixture *f = *state;
    int fd = make_file(f, 8192);
    struct minl2r_stats stats = {0};
    struct pm pm;
    char byte = 0;

    assert_ok(pm_map(&pm, fd, 8192, true));
    struct pm_phase phase = {.pm = &pm, .stats = &stats};

    pm_store(&phase, pm.base + 5000, "x", 1);
    assert_int_equal(pread(fd, &byte, 1, 5000), 1);
    assert_int_equal(byte, 'x');
    pm_unmap(&pm);
    close(fd);
}

static void read_only_mapping_cannot_be_stored_to(void **state)
{
    struct fixture *f = *state;
    int fd = make_file(f, 8192);
    struct pm pm;

    assert_ok(pm_map(&pm, fd, 8192, false));
    /* The kernel's answer in place of our own crash. */
    assert_int_equal(pread(fd, (void *)(uintptr_t)pm.base, 1, 0), -1);
    assert_int_equal(errno, EFAULT);
    pm_unmap(&pm);
    close(fd);
}

static void large_mapping_is_aligned_to_a_huge_page(void **state)
{
    struct fixture *f = *state;
    uint64_t size = (2 << 20) + 4096;
    int fd = make_file(f, size);
    struct pm pm;

    for (int i = 0; i < 3; i++) {
        assert_ok(pm_map(&pm, fd, size, true));
        assert_int_equal((uintptr_t)pm.base % (2 << 20), 0);
        pm_unmap(&pm);
    }
    close(fd);
}

static void mapping_what_cannot_be_mapped_is_an_error(void **state)
{
    struct pm pm;

    (void)state;
    assert_error(pm_map(&pm, -1, 8192, true), EBADF, "cannot map 8192 bytes");
    assert_null(pm.base);
}

/* ---- Hash ------------------------------------------------------------------------ */

static void hash_is_xxh3_64_on_every_machine(void **state)
{
    (void)state;
    assert_true(pm_hash("", 0, 0) == 0x2d06800538d394c2);
    assert_true(pm_hash("a", 1, 0) == 0xe6c632b61e964e1f);
}

static void ranges_are_hashed_as_if_they_were_one(void **state)
{
    static uint8_t bytes[2000];
    struct pm_range ranges[40];
    size_t at = 0, count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(i * 7);
    for (; at < sizeof(bytes); at += ranges[count++].size)
        ranges[count] = (struct pm_range){bytes + at, 50 + count % 3 * 50};
    ranges[count - 1].size -= at - sizeof(bytes);
    assert_true(pm_hash_ranges(ranges, count) == pm_hash(bytes, sizeof(bytes), 0));
    assert_true(pm_hash_ranges(ranges, 1) == pm_hash(bytes, 50, 0));
    assert_true(pm_hash_ranges(NULL, 0) == pm_hash("", 0, 0));
}

#define test(function) cmocka_unit_test_setup(function, reset_wraps)
#define file_test(function)                                                            \
    cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(store_changes_its_bytes_and_no_others_at_every_alignment),
        test(stream_changes_its_bytes_and_no_others_at_every_alignment),
        test(extents_change_their_bytes_and_no_others_at_every_alignment),
        test(pieces_change_their_bytes_and_no_others),
        test(zero_clears_its_bytes_and_no_others_at_every_alignment),
        test(piece_of_each_size_arrives_whole),
        test(bits_are_set_and_cleared),
        test(words_inside_an_unaligned_store_are_never_torn),
        test(flush_counts_every_line_it_touches),
        test(stream_counts_every_line_once),
        test(pieces_of_one_line_in_a_row_are_streamed_as_one),
        test(extents_are_counted_as_streams_of_each),
        test(every_kind_of_store_counts_its_bytes),
        test(neighbours_in_one_line_are_flushed_once),
        test(line_stored_to_after_its_flush_is_flushed_again),
        test(fence_ends_the_memory_of_the_last_line),
        test(fence_counts_only_with_something_to_wait_for),
        test(eadr_flushes_nothing_and_waits_for_nothing),
        test(fence_in_msync_mode_is_one_msync_over_all_that_was_flushed),
        test(msync_begins_at_the_page_that_was_flushed),
        test(failing_msync_is_eio_with_the_place),
        file_test(file_in_tmpfs_is_emulated_and_flushed_by_line),
        file_test(file_without_map_sync_is_msynced),
        file_test(file_with_map_sync_is_dax),
        file_test(dax_is_seen_when_mapped_read_only_too),
        file_test(dax_with_auto_flush_is_eadr),
        file_test(dax_with_unknown_auto_flush_is_flushed),
        file_test(writable_mapping_changes_the_file),
        file_test(read_only_mapping_cannot_be_stored_to),
        file_test(large_mapping_is_aligned_to_a_huge_page),
        test(mapping_what_cannot_be_mapped_is_an_error),
        test(hash_is_xxh3_64_on_every_machine),
        test(ranges_are_hashed_as_if_they_were_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
