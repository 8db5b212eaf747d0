/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MINL2R_POINTER_AUTO: what is made of two curves, with curves made up; and that trying
 * them out leaves a pool like any other, however it ends. What is measured is not
 * tested: it is the machine's.
 */
#include "tests/unit/fixture.h"

#include <errno.h>

#include "libminl2r/calibrate.h"
#include "libminl2r/pool.h"

#define MIB ((uint64_t)1 << 20)

int __real_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase);
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, mode_t mode);

/* ---- Curves ---------------------------------------------------------------------- */

static void the_crossing_is_chosen(void **state)
{
    const struct calibrate_point points[] = {
        {1024, 400, 900}, {2048, 700, 900}, {3072, 1000, 900}, {4096, 1300, 900}};

    (void)state;
    assert_int_equal(calibrate_choose(points, 4), 3072);
}

static void where_both_cost_the_same_the_block_is_swapped(void **state)
{
    const struct calibrate_point points[] = {
        {1024, 400, 900}, {2048, 900, 900}, {3072, 1000, 900}};

    (void)state;
    assert_int_equal(calibrate_choose(points, 3), 2048);
}

static void never_if_data_logging_always_wins(void **state)
{
    const struct calibrate_point points[] = {{256, 1, 9}, {512, 2, 9}, {768, 3, 9}};

    (void)state;
    assert_int_equal(calibrate_choose(points, 3), MINL2R_POINTER_NEVER);
}

static void the_least_size_if_pointer_logging_always_wins(void **state)
{
    const struct calibrate_point points[] = {{256, 5, 1}, {512, 6, 1}, {768, 7, 1}};

    (void)state;
    assert_int_equal(calibrate_choose(points, 3), 256);
}

/* One point that was disturbed does not outweigh those around it. */
static void a_disturbed_point_moves_nothing(void **state)
{
    const struct calibrate_point data_disturbed[] = {
        {256, 400, 900}, {512, 950, 900}, {768, 600, 900}, {1024, 1000, 900}};
    const struct calibrate_point pointer_disturbed[] = {
        {256, 400, 900}, {512, 950, 900}, {768, 1000, 1010}, {1024, 1100, 900}};

    (void)state;
    assert_int_equal(calibrate_choose(data_disturbed, 4), 1024);
    assert_int_equal(calibrate_choose(pointer_disturbed, 4), 512);
}

/* A whole block needs no copying: often it is the only size at which swapping wins. */
static void a_step_at_the_last_point_is_seen(void **state)
{
    const struct calibrate_point points[] = {
        {1024, 400, 900}, {2048, 500, 900}, {3072, 600, 900}, {4096, 700, 500}};

    (void)state;
    assert_int_equal(calibrate_choose(points, 4), 4096);
}

/* ---- Pools ----------------------------------------------------------------------- */

static const struct minl2r_options automatic = {.pointer_threshold =
                                                    MINL2R_POINTER_AUTO};

static uint32_t threshold_of(struct fixture *f)
{
    struct minl2r_info info;

    assert_ok(minl2r_pool_info(f->pool, &info));
    return info.pointer_threshold;
}

static void what_was_chosen_is_an_ordinary_threshold(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, 4 * MIB, &automatic);
    uint32_t threshold = threshold_of(f);

    assert_in_range(threshold, 1, 4097);
    assert_true(threshold == 4097 || threshold % (4096 / CALIBRATE_POINTS) == 0);
    fixture_reopen(f);
    assert_int_equal(threshold_of(f), threshold);
}

static void every_block_size_can_be_tried(void **state)
{
    struct fixture *f = *state;

    for (uint32_t size = MINL2R_BLOCK_SIZE_MIN; size <= MINL2R_BLOCK_SIZE_MAX;
         size *= 2) {
        struct minl2r_options options = automatic;

        options.block_size = size;
        fixture_create(f, 4 * MIB, &options);
        assert_in_range(threshold_of(f), size / CALIBRATE_POINTS, size + 1);
        assert_ok(minl2r_pool_close(f->pool));
        f->pool = NULL;
        unlink(f->path);
    }
}

static void each_point_is_measured(void **state)
{
    struct fixture *f = *state;
    struct calibrate_point points[CALIBRATE_POINTS];

    fixture_create(f, MIB, NULL);
    assert_ok(calibrate_measure(f->pool, points));
    for (uint32_t i = 0; i < CALIBRATE_POINTS; i++) {
        assert_int_equal(points[i].size, 256 * (i + 1));
        assert_true(points[i].data_ns > 0);
        assert_true(points[i].pointer_ns > 0);
    }
}

static void a_small_pool_takes_half(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, MIB, &automatic);
    assert_int_equal(threshold_of(f), 2048);
}

static void read_file(const struct fixture *f, uint8_t *bytes, size_t size)
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, size), size);
    close(fd);
}

/* Byte for byte, but for the superblock, with its time and uuid. */
static void the_pool_is_as_blank_as_any_other(void **state)
{
    const size_t size = 4 * MIB;
    struct fixture *f = *state;
    uint8_t *plain = malloc(size), *tried = malloc(size);

    fixture_create(f, size, NULL);
    read_file(f, plain, size);
    assert_ok(minl2r_pool_close(f->pool));
    unlink(f->path);
    fixture_create(f, size, &automatic);
    read_file(f, tried, size);
    assert_memory_equal(tried + PM_PAGE, plain + PM_PAGE, size - PM_PAGE);
    free(plain);
    free(tried);
}

static void other_options_are_refused_as_ever(void **state)
{
    struct fixture *f = *state;
    struct minl2r_options options = automatic;

    options.block_size = 5000;
    assert_error(minl2r_pool_create(f->path, "test", 4 * MIB, &options, &f->pool),
                 EINVAL, "block_size is 5000");
    assert_int_equal(access(f->path, F_OK), -1);
}

/* ---- Crashes --------------------------------------------------------------------- */

static struct {
    const struct fixture *f; /* NULL: nobody looks */
    uint32_t blank, other;   /* fences at which the first page was */
} watch;

/* So that the file can be looked at, it has its name from the start. */
int __wrap_open(const char *path, int flags, mode_t mode)
{
    if ((flags & O_TMPFILE) != O_TMPFILE)
        return __real_open(path, flags, mode);
    errno = EOPNOTSUPP;
    return -1;
}

int __wrap_pm_fence(struct pm_phase *phase)
{
    static const uint8_t zeros[PM_PAGE];
    uint8_t page[PM_PAGE];

    if (watch.f) {
        read_file(watch.f, page, sizeof(page));
        if (memcmp(page, zeros, sizeof(page)) == 0)
            watch.blank++;
        else
            watch.other++;
    }
    return __real_pm_fence(phase);
}

/*
 * Without its first page a file is no pool. Blank at hundreds of fences, all those of
 * the trial, and not at the few of the real pool alone.
 */
static void a_crash_while_trying_leaves_no_pool(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, 4 * MIB, NULL);
    assert_ok(minl2r_pool_close(f->pool));
    unlink(f->path);
    watch.f = f;
    fixture_create(f, 4 * MIB, &automatic);
    watch.f = NULL;
    assert_true(watch.blank > 500);
    assert_in_range(watch.other, 1, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crossing_is_chosen),
        cmocka_unit_test(where_both_cost_the_same_the_block_is_swapped),
        cmocka_unit_test(never_if_data_logging_always_wins),
        cmocka_unit_test(the_least_size_if_pointer_logging_always_wins),
        cmocka_unit_test(a_disturbed_point_moves_nothing),
        cmocka_unit_test(a_step_at_the_last_point_is_seen),
        cmocka_unit_test_setup_teardown(what_was_chosen_is_an_ordinary_threshold,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(every_block_size_can_be_tried, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(each_point_is_measured, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(a_small_pool_takes_half, fixture_setup,
                                        fixture_teardown),
        cmocka_unit_test_setup_teardown(the_pool_is_as_blank_as_any_other,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(other_options_are_refused_as_ever,
                                        fixture_setup, fixture_teardown),
        cmocka_unit_test_setup_teardown(a_crash_while_trying_leaves_no_pool,
                                        fixture_setup, fixture_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
