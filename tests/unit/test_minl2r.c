/* SPDX-License-Identifier: BSD-3-Clause */
/* The public calls outside of transactions: root, addresses, info, version, close. */
#include "tests/unit/transact.h"

#include <errno.h>

#define POOL_SIZE MINL2R_POOL_SIZE_MIN
#define BLOCK ((size_t)4096)

static int setup(void **state)
{
    int result = fixture_setup(state);

    if (result == 0)
        fixture_create(*state, POOL_SIZE, NULL);
    return result;
}

/* ---- Version and names ----------------------------------------------------------- */

static void library_serves_its_own_version(void **state)
{
    (void)state;
    assert_null(minl2r_check_version(MINL2R_MAJOR, MINL2R_MINOR));
}

static void library_refuses_newer_and_other_versions(void **state)
{
    (void)state;
    assert_non_null(strstr(minl2r_check_version(MINL2R_MAJOR, MINL2R_MINOR + 1),
                           "compiled for version"));
    assert_non_null(minl2r_check_version(MINL2R_MAJOR + 1, 0));
    assert_non_null(minl2r_check_version(MINL2R_MAJOR - 1, 0));
}

static void every_medium_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(minl2r_medium_name(MINL2R_EMULATED), "emulated");
    assert_string_equal(minl2r_medium_name(MINL2R_FILE), "file");
    assert_string_equal(minl2r_medium_name(MINL2R_DAX), "dax");
    assert_string_equal(minl2r_medium_name(MINL2R_EADR), "eadr");
    assert_string_equal(minl2r_medium_name((enum minl2r_medium)77), "unknown");
}

/* ---- Root ------------------------------------------------------------------------ */

static void root_is_zeroed_aligned_and_stays(void **state)
{
    struct fixture *f = *state;
    const uint8_t *root = minl2r_root(f->pool, 10000);

    assert_non_null(root);
    assert_int_equal(minl2r_offset(f->pool, root) % BLOCK, 0);
    for (size_t i = 0; i < 10000; i++)
        assert_int_equal(root[i], 0);
    assert_ptr_equal(minl2r_root(f->pool, 10000), root);
    uint64_t offset = minl2r_offset(f->pool, root);

    fixture_reopen(f);
    assert_int_equal(minl2r_offset(f->pool, minl2r_root(f->pool, 10000)), offset);
}

static void root_of_another_size_is_einval_and_tells_both(void **state)
{
    struct fixture *f = *state;

    assert_non_null(minl2r_root(f->pool, 100));
    assert_null(minl2r_root(f->pool, 101));
    assert_int_equal(errno, EINVAL);
    assert_non_null(strstr(minl2r_errormsg(), "has 100 bytes, not 101"));
}

static void root_of_no_or_too_many_bytes_is_einval(void **state)
{
    struct fixture *f = *state;

    assert_null(minl2r_root(f->pool, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(minl2r_root(f->pool, UINT64_MAX));
    assert_int_equal(errno, EINVAL);
}

static void root_without_space_is_enospc_and_can_be_smaller(void **state)
{
    struct fixture *f = *state;
    uint64_t before = free_blocks(f->pool);

    assert_null(minl2r_root(f->pool, before * BLOCK));
    assert_int_equal(errno, ENOSPC);
    assert_int_equal(free_blocks(f->pool), before);
    assert_non_null(minl2r_root(f->pool, 100));
}

/* Its bytes may have had any content: they are zeroed by the transaction that makes it.
 */
static void root_in_blocks_that_were_used_is_zeroed(void **state)
{
    struct fixture *f = *state;
    uint64_t blocks = free_blocks(f->pool) / 2;
    uint64_t offset = make_blocks(f->pool, blocks, 5);
    struct minl2r_tx *tx = begin(f->pool);

    assert_ok(minl2r_tx_free(tx, offset, blocks));
    assert_ok(minl2r_tx_commit(tx));
    const uint8_t *root = minl2r_root(f->pool, blocks / 2 * BLOCK);

    assert_non_null(root);
    assert_int_equal(root[0], 0);
    assert_memory_equal(root, root + 1, blocks / 2 * BLOCK - 1);
}

/* ---- Addresses ------------------------------------------------------------------- */

static void offsets_and_addresses_are_inverse_in_the_data_area(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = make_blocks(f->pool, 2, 1);

    for (uint64_t at = offset; at < offset + 2 * BLOCK; at += 111)
        assert_int_equal(minl2r_offset(f->pool, minl2r_at(f->pool, at)), at);
}

static void what_is_no_data_has_no_address(void **state)
{
    static const uint64_t offsets[] = {0,         1, 4096, POOL_SIZE, (uint64_t)1 << 40,
                                       UINT64_MAX};
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++)
        assert_null(minl2r_at(f->pool, offsets[i]));
}

static void what_is_no_data_has_no_offset(void **state)
{
    struct fixture *f = *state;
    uint64_t offset = make_blocks(f->pool, 1, 1);
    const uint8_t *base = (const uint8_t *)minl2r_at(f->pool, offset) - offset;

    assert_int_equal(minl2r_offset(f->pool, NULL), 0);
    assert_int_equal(minl2r_offset(f->pool, f), 0);
    assert_int_equal(minl2r_offset(f->pool, base), 0);
    assert_int_equal(minl2r_offset(f->pool, base + 4096), 0);
    assert_int_equal(minl2r_offset(f->pool, base + POOL_SIZE), 0);
}

/* ---- Words ----------------------------------------------------------------------- */

static void store64_is_there_at_once_and_after_reopening(void **state)
{
    struct fixture *f = *state;
    const uint64_t *word = minl2r_root(f->pool, 64);

    assert_ok(minl2r_store64(f->pool, word + 3, 77));
    assert_int_equal(word[3], 77);
    fixture_reopen(f);
    word = minl2r_root(f->pool, 64);
    assert_int_equal(word[3], 77);
}

static void store64_of_what_is_no_word_of_the_data_is_einval(void **state)
{
    struct fixture *f = *state;
    const uint64_t *word = minl2r_root(f->pool, 64);
    const void *misaligned = (const uint8_t *)word + 4;

    assert_error(minl2r_store64(f->pool, NULL, 1), EINVAL,
                 "address NULL is not in the pool");
    assert_error(minl2r_store64(f->pool, misaligned, 1), EINVAL, "no aligned word");
    assert_error(minl2r_store64(f->pool, word - POOL_SIZE / 8, 1), EINVAL,
                 "is not in the pool");
}

static void a_pointer_outside_of_the_pool_is_named_as_one(void **state)
{
    struct fixture *f = *state;
    const uint64_t *word = minl2r_root(f->pool, 64);
    const struct minl2r_slab *no_slab = NULL;
    uint64_t in_dram = 0, *copy, offset;
    char named[64];
    struct minl2r_tx *tx = begin(f->pool);

    snprintf(named, sizeof(named), "address %p is not in the pool", (void *)&in_dram);
    assert_error(minl2r_tx_write(tx, NULL, word, 8), EINVAL,
                 "address NULL is not in the pool");
    assert_error(minl2r_tx_write(tx, &in_dram, word, 8), EINVAL, named);
    assert_error(minl2r_tx_zero(tx, &in_dram, 8), EINVAL, named);
    assert_error(minl2r_tx_copy(tx, &in_dram, word, 8), EINVAL, named);
    assert_error(minl2r_tx_copy(tx, word, &in_dram, 8), EINVAL, named);
    assert_error(minl2r_tx_edit(tx, &in_dram, 8, &copy), EINVAL, named);
    assert_error(minl2r_tx_write_fresh(tx, &in_dram, word, 8), EINVAL, named);
    assert_error(minl2r_tx_write_block(tx, &in_dram, 0, word, 8), EINVAL, named);
    assert_error(minl2r_tx_read(tx, &in_dram, &in_dram, 8), EINVAL, named);
    assert_error(minl2r_tx_snapshot(tx, &in_dram, 8, NULL), EINVAL, named);
    assert_error(minl2r_slab_alloc(tx, no_slab, 8, &offset), EINVAL, "address NULL");
    assert_error(minl2r_store64(f->pool, &in_dram, 1), EINVAL, named);
    /* In the pool, but not the program's. */
    assert_error(
        minl2r_tx_write(tx, word - minl2r_offset(f->pool, word) / 8, &in_dram, 8),
        EINVAL, "[0, +8) is not in the pool's data area");
    assert_ok(minl2r_tx_abort(tx));
}

/* ---- Closing --------------------------------------------------------------------- */

static void pool_with_an_open_transaction_stays_open(void **state)
{
    struct fixture *f = *state;
    struct minl2r_tx *tx = begin(f->pool);

    assert_error(minl2r_pool_close(f->pool), EBUSY, "still open");
    assert_ok(minl2r_tx_alloc(tx, 1, NULL, NULL));
    assert_ok(minl2r_tx_commit(tx));
    fixture_close(f);
}

static void closing_nothing_is_allowed(void **state)
{
    (void)state;
    assert_ok(minl2r_pool_close(NULL));
}

static void missing_arguments_are_einval(void **state)
{
    struct fixture *f = *state;
    struct minl2r_pool *pool;

    assert_error(minl2r_pool_create(NULL, "a", POOL_SIZE, NULL, &pool), EINVAL,
                 "given");
    assert_error(minl2r_pool_create(f->path, NULL, POOL_SIZE, NULL, &pool), EINVAL,
                 "given");
    assert_error(minl2r_pool_create(f->path, "a", POOL_SIZE, NULL, NULL), EINVAL,
                 "given");
    assert_error(minl2r_pool_open(NULL, "a", NULL, &pool), EINVAL, "given");
    assert_error(minl2r_pool_open(f->path, "a", NULL, NULL), EINVAL, "given");
    assert_error(minl2r_pool_check(NULL, NULL, NULL), EINVAL, "given");
}

static void info_counts_what_is_free(void **state)
{
    struct fixture *f = *state;
    struct minl2r_info before, after;

    assert_ok(minl2r_pool_info(f->pool, &before));
    make_blocks(f->pool, 7, 1);
    assert_ok(minl2r_pool_info(f->pool, &after));
    assert_int_equal(before.blocks_free, before.blocks);
    assert_int_equal(after.blocks_free, before.blocks_free - 7);
    assert_int_equal(after.blocks, before.blocks);
    assert_string_equal(after.path, f->path);
}

#define test(function)                                                                 \
    cmocka_unit_test_setup_teardown(function, setup, fixture_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(library_serves_its_own_version),
        test(library_refuses_newer_and_other_versions),
        test(every_medium_has_a_name),
        test(root_is_zeroed_aligned_and_stays),
        test(root_of_another_size_is_einval_and_tells_both),
        test(root_of_no_or_too_many_bytes_is_einval),
        test(root_without_space_is_enospc_and_can_be_smaller),
        test(root_in_blocks_that_were_used_is_zeroed),
        test(offsets_and_addresses_are_inverse_in_the_data_area),
        test(what_is_no_data_has_no_address),
        test(what_is_no_data_has_no_offset),
        test(store64_is_there_at_once_and_after_reopening),
        test(store64_of_what_is_no_word_of_the_data_is_einval),
        test(a_pointer_outside_of_the_pool_is_named_as_one),
        test(pool_with_an_open_transaction_stays_open),
        test(closing_nothing_is_allowed),
        test(missing_arguments_are_einval),
        test(info_counts_what_is_free),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
