/* SPDX-License-Identifier: BSD-3-Clause */
/* What all schemes have to do alike: keep the bytes of files. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "bench/schemes/scheme.h"

#define FILE_SIZE_MAX ((uint64_t)96 << 10)
#define WRITE_SIZE_MAX ((uint64_t)9 << 10)

static const struct volume_options options = {
    .block_size = 512, /* so that trees are high */
    .file_count = 2,
    .file_size = FILE_SIZE_MAX,
    .write_size = WRITE_SIZE_MAX,
    .log_size = (uint64_t)64 << 10,
};

static char path[64];

/* What a file should have. */
struct model {
    uint8_t bytes[FILE_SIZE_MAX];
    uint64_t size;
};

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % limit;
}

static int make_path(void **state)
{
    (void)state;
    snprintf(path, sizeof(path), "/dev/shm/minl2r-test-%d", (int)getpid());
    return 0;
}

static int remove_path(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

static void write_model(struct model *model, uint64_t offset, const uint8_t *src,
                        uint64_t size)
{
    if (offset > model->size)
        memset(model->bytes + model->size, 0, offset - model->size);
    memcpy(model->bytes + offset, src, size);
    if (offset + size > model->size)
        model->size = offset + size;
}

static void assert_same(struct file *file, const struct scheme *scheme,
                        const struct model *model, uint64_t step)
{
    static uint8_t bytes[FILE_SIZE_MAX + 1];
    uint64_t done;

    assert_int_equal(scheme->size(file), model->size);
    assert_int_equal(scheme->read(file, 0, bytes, sizeof(bytes), &done), 0);
    assert_int_equal(done, model->size);
    if (memcmp(bytes, model->bytes, model->size) == 0)
        return;
    uint64_t at = 0;

    while (bytes[at] == model->bytes[at])
        at++;
    fail_msg("%s: byte %llu differs after step %llu", scheme->name,
             (unsigned long long)at, (unsigned long long)step);
}

/* Small or large, often at the end, or some way behind it. */
static void choose_range(const struct model *model, uint64_t *offset, uint64_t *size)
{
    static const uint64_t sizes[] = {1, 8, 64, 300, 512, 1100, WRITE_SIZE_MAX};
    uint64_t limit = sizes[random_below(7)];

    *size = 1 + random_below(limit);
    *offset = random_below(3) == 0 ? model->size : random_below(model->size + 700);
    if (random_below(4) == 0)
        *offset = *offset / 512 * 512;
    if (*offset + *size > FILE_SIZE_MAX)
        *offset = random_below(FILE_SIZE_MAX - *size);
}

static void write_randomly(struct file *file, const struct scheme *scheme,
                           struct model *model, uint64_t step)
{
    static uint8_t src[WRITE_SIZE_MAX];
    uint64_t offset, size;

    choose_range(model, &offset, &size);
    for (uint64_t i = 0; i < size; i++)
        src[i] = (uint8_t)random_below(256);
    assert_int_equal(scheme->write(file, offset, src, size), 0);
    write_model(model, offset, src, size);
    if (step % 16 == 0)
        assert_same(file, scheme, model, step);
}

static void run_randomly(const struct scheme *scheme, uint64_t steps)
{
    static struct model models[2];
    struct volume volume;

    memset(models, 0, sizeof(models));
    unlink(path);
    assert_int_equal(volume_create(&volume, path, scheme, &options), 0);
    for (uint64_t step = 0; step < steps; step++) {
        uint64_t which = random_below(2);

        if (random_below(300) == 0) {
            assert_int_equal(scheme->clear(volume.files[which]), 0);
            models[which].size = 0;
        }
        write_randomly(volume.files[which], scheme, &models[which], step);
        if (random_below(100) == 0) {
            volume_close(&volume);
            assert_int_equal(volume_open(&volume, path, scheme, &options), 0);
        }
        if (step % 64 == 0)
            assert_int_equal(scheme->check(&volume), 0);
    }
    for (int i = 0; i < 2; i++)
        assert_same(volume.files[i], scheme, &models[i], steps);
    assert_int_equal(scheme->check(&volume), 0);
    volume_close(&volume);
}

static void files_have_what_was_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < scheme_count; i++) {
        random_state = 1;
        run_randomly(schemes[i], 3000);
    }
}

/* ---- What is logged -------------------------------------------------------------- */

#define BLOCK ((uint64_t)4096)

static const struct volume_options large = {
    .block_size = BLOCK,
    .file_count = 1,
    .file_size = (uint64_t)64 * BLOCK,
    .write_size = (uint64_t)8 * BLOCK,
    .log_size = (uint64_t)256 << 10,
};

static uint64_t of_each_piece(uint64_t offset, uint64_t size,
                              uint64_t (*payload)(uint64_t changed))
{
    uint64_t sum = 0;

    for (uint64_t end = offset + size; offset < end;) {
        uint64_t next = (offset / BLOCK + 1) * BLOCK;
        uint64_t changed = (next < end ? next : end) - offset;

        sum += payload(changed);
        offset += changed;
    }
    return sum;
}

static uint64_t nothing(uint64_t changed)
{
    (void)changed;
    return 0;
}

static uint64_t original_bytes(uint64_t changed)
{
    return changed;
}

static uint64_t a_pointer(uint64_t changed)
{
    (void)changed;
    return 8;
}

static uint64_t threshold; /* that was measured */

static uint64_t the_lesser_in_time(uint64_t changed)
{
    return changed < threshold ? changed : 8;
}

static uint64_t the_lesser(uint64_t changed)
{
    return changed * 2 < BLOCK ? changed : 8;
}

static uint64_t a_block(uint64_t changed)
{
    (void)changed;
    return BLOCK;
}

/* The new bytes; or the block, and the slot. */
static uint64_t a_difference(uint64_t changed)
{
    return changed * 2 < BLOCK ? changed : BLOCK + 8;
}

/* Of an overwrite, without what is for nodes and inodes. */
static const struct formula {
    const char *scheme;
    uint64_t (*payload)(uint64_t changed);
} formulas[] = {
    {"none", nothing},
    {"minl2r", the_lesser},
    {"minl2r-auto", the_lesser_in_time},
    {"minl2r-data", original_bytes},
    {"minl2r-ptr", a_pointer},
    {"bpfs-ordered", a_block},
    {"bpfs-durable", a_block},
    {"sp", a_block},
    {"sjfs-eager", a_difference},
    {"sjfs-lazy", a_difference},
    {"journal", a_block},
    {"ordered", nothing},
};

/* Shadow paging copies nodes: the one over several blocks; sp always, and the inode. */
static uint64_t copied_above(const char *scheme, uint64_t offset, uint64_t size)
{
    bool is_one_block = offset / BLOCK == (offset + size - 1) / BLOCK;

    if (strcmp(scheme, "sp") == 0)
        return (uint64_t)2 * BLOCK;
    return strncmp(scheme, "bpfs", 4) == 0 && !is_one_block ? BLOCK : 0;
}

static void assert_payload(const struct formula *formula, struct volume *volume,
                           uint64_t offset, uint64_t size)
{
    static uint8_t src[4 * BLOCK], byte;
    struct scheme_counts before, after;

    memset(src, ++byte, size);
    volume->scheme->count(volume, &before);
    assert_int_equal(volume->scheme->write(volume->files[0], offset, src, size), 0);
    volume->scheme->count(volume, &after);
    uint64_t payload = after.stats.log_payload_bytes - before.stats.log_payload_bytes;
    uint64_t expected = of_each_piece(offset, size, formula->payload) +
                        copied_above(formula->scheme, offset, size);

    if (payload != expected)
        fail_msg("%s: %llu bytes at %llu: %llu are logged, not %llu", formula->scheme,
                 (unsigned long long)size, (unsigned long long)offset,
                 (unsigned long long)payload, (unsigned long long)expected);
}

static void test_formula(const struct formula *formula)
{
    static const uint8_t zeros[8 * BLOCK];
    struct volume volume;

    unlink(path);
    assert_int_equal(volume_create(&volume, path, scheme_find(formula->scheme), &large),
                     0);
    threshold = volume.threshold;
    for (uint64_t at = 0; at < large.file_size; at += sizeof(zeros))
        assert_int_equal(
            volume.scheme->write(volume.files[0], at, zeros, sizeof(zeros)), 0);
    for (uint64_t size = 16; size <= 3 * BLOCK + 8; size += 8) {
        assert_payload(formula, &volume, 4 * BLOCK, size);
        assert_payload(formula, &volume, 9 * BLOCK + 1000, size);
    }
    for (uint64_t size = 9; size < 200; size++) /* more than a word: that has no log */
        assert_payload(formula, &volume, 2 * BLOCK + 77, size);
    volume_close(&volume);
}

static void what_is_logged_follows_the_formula_at_every_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(formulas) / sizeof(*formulas); i++)
        test_formula(&formulas[i]);
}

static void every_scheme_has_a_formula(void **state)
{
    (void)state;
    assert_int_equal(scheme_count, sizeof(formulas) / sizeof(*formulas));
    for (size_t i = 0; i < scheme_count; i++)
        assert_string_equal(schemes[i]->name, formulas[i].scheme);
}

/* ---- Full volumes ---------------------------------------------------------------- */

static void a_full_volume_says_so_and_keeps_its_files(void **state)
{
    static uint8_t src[WRITE_SIZE_MAX], bytes[WRITE_SIZE_MAX];
    uint64_t done;

    (void)state;
    for (size_t i = 0; i < scheme_count; i++) {
        struct volume volume;
        uint64_t at = 0;
        int rc = 0;

        unlink(path);
        assert_int_equal(volume_create(&volume, path, schemes[i], &options), 0);
        for (; rc == 0 && at < (uint64_t)64 << 20; at += rc == 0 ? sizeof(src) : 0) {
            memset(src, (int)(at / sizeof(src)), sizeof(src));
            rc = schemes[i]->write(volume.files[0], at, src, sizeof(src));
        }
        assert_int_equal(rc, -ENOSPC);
        assert_true(at >= FILE_SIZE_MAX);
        assert_int_equal(schemes[i]->size(volume.files[0]), at);
        assert_int_equal(schemes[i]->read(volume.files[0], at - sizeof(src), bytes,
                                          sizeof(bytes), &done),
                         0);
        for (uint64_t j = 0; j < sizeof(bytes); j++)
            assert_int_equal(bytes[j], (uint8_t)(at / sizeof(src) - 1));
        volume_close(&volume);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_what_was_written),
        cmocka_unit_test(every_scheme_has_a_formula),
        cmocka_unit_test(what_is_logged_follows_the_formula_at_every_size),
        cmocka_unit_test(a_full_volume_says_so_and_keeps_its_files),
    };

    return cmocka_run_group_tests(tests, make_path, remove_path);
}
