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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_have_what_was_written),
    };

    return cmocka_run_group_tests(tests, make_path, remove_path);
}
