/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crash_schemes.c - every scheme, crashed at any moment of its writes, and what it
 * promises.
 *
 *     crash_schemes SCHEME          all writes alone, and after each other
 *     crash_schemes SCHEME fence N  fence number N of each write is left out: has to be
 *                                   found
 *     crash_schemes SCHEME --replay ID
 *
 * An atomic scheme shows each write or nothing of it. The others must have been seen to
 * tear one: else this test would not see it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/schemes/scheme.h"
#include "crashtest/suite.h"
#include "libminl2r/pm.h"
#include "tests/unit/long.h"

#define BLOCK_SIZE 512u
#define FILE_SIZE_MAX ((uint64_t)40 << 10)
#define WRITES_MAX 3
#define NO_FENCE UINT64_MAX

static const struct volume_options options = {
    .block_size = BLOCK_SIZE,
    .file_count = 1,
    .file_size = FILE_SIZE_MAX,
    .write_size = 4 * BLOCK_SIZE,
    .log_size = 16 * BLOCK_SIZE,
};

/* ---- Writes ---------------------------------------------------------------------- */

#define START_SIZE (4 * BLOCK_SIZE + 100)

struct write {
    const char *name;
    uint64_t offset;
    uint64_t size;
    bool at_end;   /* `offset` counts from the end of the file */
    bool is_first; /* rows begin with it: it frees blocks, adds them, or leaves a log */
};

static const struct write writes[] = {
    {"word", 64, 8, false, false},
    {"bytes", 101, 90, false, false},
    {"half", BLOCK_SIZE + 7, 300, false, true},
    {"block", 2 * BLOCK_SIZE, BLOCK_SIZE, false, false},
    {"across", BLOCK_SIZE - 70, 600, false, false},
    {"append", 0, 60, true, false},
    {"append_block", 0, BLOCK_SIZE, true, true},
    {"over_end", 4 * BLOCK_SIZE - 30, 1000, false, true},
    {"gap", 700, 50, true, false},
    {"grow", 64 * BLOCK_SIZE + 40, 30, false, false},
};
#define WRITE_COUNT (sizeof(writes) / sizeof(*writes))

/* What the file has after so many of them. */
struct image {
    uint8_t bytes[FILE_SIZE_MAX];
    uint64_t size;
};

static struct {
    const struct scheme *scheme;
    const struct write *writes[WRITES_MAX];
    uint32_t write_count;
    struct image images[WRITES_MAX + 1];
    uint64_t offsets[WRITES_MAX];

    struct volume volume;
    uint64_t torn; /* states */

    /* The fence of a write that is left out. */
    uint64_t lost_fence;
    uint64_t fences;
} bench = {.lost_fence = NO_FENCE};

static uint8_t byte_of(uint32_t number, uint64_t offset)
{
    return (uint8_t)(offset * 7 + number * 41 + 1);
}

static void fill(uint8_t *bytes, uint64_t offset, uint64_t size, uint32_t number)
{
    for (uint64_t i = 0; i < size; i++)
        bytes[i] = byte_of(number, offset + i);
}

static void make_images(void)
{
    bench.images[0].size = START_SIZE;
    fill(bench.images[0].bytes, 0, START_SIZE, 0);
    for (uint32_t i = 0; i < bench.write_count; i++) {
        const struct write *write = bench.writes[i];
        struct image *image = &bench.images[i + 1];

        *image = bench.images[i];
        uint64_t offset = write->offset + (write->at_end ? image->size : 0);
        uint64_t end = offset + write->size;

        bench.offsets[i] = offset;
        if (end > image->size) {
            memset(image->bytes + image->size, 0, end - image->size);
            image->size = end;
        }
        fill(image->bytes + offset, offset, write->size, i + 1);
    }
}

/* ---- The program that is tested -------------------------------------------------- */

static int fail_with(const char *what, int rc)
{
    return crashtest_fail("%s: %s", what, strerror(-rc));
}

static int recover(const struct crashtest_pm *pm, void *arg)
{
    int rc = volume_open(&bench.volume, pm->path, bench.scheme, &options);

    (void)arg;
    return rc < 0 ? fail_with("it cannot be opened", rc) : 0;
}

static int close_again(const struct crashtest_pm *pm, void *arg)
{
    (void)pm;
    (void)arg;
    volume_close(&bench.volume);
    return 0;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    int rc = recover(pm, arg);

    for (uint32_t i = 0; rc == 0 && i < bench.write_count; i++) {
        const struct write *write = bench.writes[i];

        bench.fences = 0;
        crashtest_begin("%s", write->name);
        rc = bench.scheme->write(bench.volume.files[0], bench.offsets[i],
                                 bench.images[i + 1].bytes + bench.offsets[i],
                                 write->size);
        crashtest_end();
    }
    bench.fences = NO_FENCE;
    close_again(pm, arg);
    return rc < 0 ? fail_with("a write", rc) : 0;
}

int __real_pm_fence(struct pm_phase *phase);
int __wrap_pm_fence(struct pm_phase *phase);

int __wrap_pm_fence(struct pm_phase *phase)
{
    if (bench.fences == NO_FENCE || !phase->pending ||
        bench.fences++ != bench.lost_fence)
        return __real_pm_fence(phase);
    phase->pending = false;
    phase->last_line = phase->last_streamed = 0;
    return 0;
}

/* ---- What may be seen ------------------------------------------------------------ */

static bool is_image(const struct image *image, const uint8_t *bytes, uint64_t size)
{
    return size == image->size && memcmp(bytes, image->bytes, size) == 0;
}

static int check_atomic(const uint8_t *bytes, uint64_t size, size_t least, size_t most)
{
    for (size_t i = least; i <= most; i++)
        if (is_image(&bench.images[i], bytes, size))
            return 0;
    return crashtest_fail("the file is as after no write");
}

/* Old or new, byte by byte; with metadata in order no byte that was appended is
 * missing. */
static int check_torn(const uint8_t *bytes, uint64_t size, size_t least, size_t most)
{
    const struct image *old = &bench.images[least], *new = &bench.images[most];
    uint64_t start = most > least ? bench.offsets[least] : 0;
    uint64_t end = most > least ? start + bench.writes[least]->size : 0;
    bool is_ordered = strcmp(bench.scheme->name, "ordered") == 0;

    if (size != old->size && size != new->size)
        return crashtest_fail("the size is %llu", (unsigned long long)size);
    for (uint64_t i = 0; i < size; i++) {
        bool is_appended = i >= old->size;
        bool may_tear = i >= start && i < end && !(is_ordered && is_appended);

        if (!may_tear && bytes[i] != new->bytes[i] &&
            (is_appended || bytes[i] != old->bytes[i]))
            return crashtest_fail("byte %llu is neither old nor new",
                                  (unsigned long long)i);
    }
    bench.torn += !is_image(old, bytes, size) && !is_image(new, bytes, size);
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    static uint8_t bytes[FILE_SIZE_MAX];
    size_t most = crash->returned + (crash->running != NULL);
    size_t least = crash->returned;
    uint64_t size;
    int rc = bench.scheme->read(bench.volume.files[0], 0, bytes, sizeof(bytes), &size);

    (void)pm;
    (void)arg;
    if (rc < 0)
        return fail_with("it cannot be read", rc);
    if (!bench.scheme->is_atomic)
        return check_torn(bytes, size, least, most);
    if (!bench.scheme->is_durable && least > 0)
        least--;
    return check_atomic(bytes, size, least, most);
}

/* The tree is whole, and stays so. */
static int use(const struct crashtest_pm *pm, void *arg)
{
    static uint8_t src[3 * BLOCK_SIZE], bytes[sizeof(src)];
    struct file *file = bench.volume.files[0];
    uint64_t size;
    int rc = bench.scheme->check(&bench.volume);

    (void)pm;
    (void)arg;
    fill(src, 0, sizeof(src), 100);
    if (rc == 0)
        rc = bench.scheme->write(file, 40, src, sizeof(src));
    if (rc == 0)
        rc = bench.scheme->read(file, 40, bytes, sizeof(bytes), &size);
    if (rc == 0)
        rc = bench.scheme->check(&bench.volume);
    if (rc < 0)
        return fail_with("it cannot be used", rc);
    return memcmp(src, bytes, sizeof(src)) == 0
               ? 0
               : crashtest_fail("what is written then cannot be read");
}

/* ---- Many of them ---------------------------------------------------------------- */

/* A volume with a file, as bytes. The caller frees them. NULL: it cannot be made. */
static uint8_t *make_base(uint64_t *size)
{
    char path[64];
    uint8_t *base = NULL;

    snprintf(path, sizeof(path), "/dev/shm/crash-schemes-%d", (int)getpid());
    make_images();
    if (volume_create(&bench.volume, path, bench.scheme, &options) == 0) {
        int rc = bench.scheme->write(bench.volume.files[0], 0, bench.images[0].bytes,
                                     START_SIZE);
        volume_close(&bench.volume);
        FILE *in = rc == 0 ? fopen(path, "re") : NULL;

        if (in && fseek(in, 0, SEEK_END) == 0)
            *size = ((uint64_t)ftell(in) + 4095) / 4096 * 4096;
        base = in ? calloc(*size, 1) : NULL;
        if (base) {
            rewind(in);
            *size = fread(base, 1, *size, in) > 0 ? *size : 0;
        }
        if (in)
            fclose(in);
    }
    unlink(path);
    return base;
}

static enum suite_result test_writes(struct suite *suite, const uint8_t *base,
                                     uint64_t size, const char *id)
{
    char name[200] = "";
    const struct crashtest_program program = {.name = name,
                                              .pm_size = size,
                                              .run = run,
                                              .recover = recover,
                                              .check = check,
                                              .use = use,
                                              .close = close_again};
    const struct session_program tested = {.program = &program,
                                           .workload = bench.scheme->name,
                                           .base = base,
                                           .in_process = true,
                                           .first = bench.write_count - 1};

    for (uint32_t i = 0; i < bench.write_count; i++)
        snprintf(name + strlen(name), sizeof(name) - strlen(name), "%s%s", i ? "+" : "",
                 bench.writes[i]->name);
    make_images();
    return id ? suite_replay(suite, &tested, id) : suite_test(suite, &tested);
}

static bool is_wanted(bool is_long)
{
    return is_long || bench.write_count == 1 || bench.writes[0]->is_first;
}

/* All rows of so many writes. */
static enum suite_result test_rows(struct suite *suite, const uint8_t *base,
                                   uint64_t size, bool is_long)
{
    enum suite_result worst = SUITE_PASSED;
    uint64_t count = 1;

    for (uint32_t i = 0; i < bench.write_count; i++)
        count *= WRITE_COUNT;
    for (uint64_t n = 0; n < count && worst == SUITE_PASSED; n++) {
        uint64_t rest = n;

        for (uint32_t i = 0; i < bench.write_count; i++, rest /= WRITE_COUNT)
            bench.writes[i] = &writes[rest % WRITE_COUNT];
        if (is_wanted(is_long))
            worst = test_writes(suite, base, size, NULL);
    }
    return worst;
}

static int report(struct suite *suite, enum suite_result result)
{
    if (result == SUITE_NOT_TESTED)
        fprintf(stderr, "%s\n", suite_error(suite));
    report_text(suite_report(suite), stdout);
    if (result == SUITE_PASSED && !bench.scheme->is_atomic && bench.torn == 0 &&
        bench.lost_fence == NO_FENCE) {
        fprintf(stderr, "%s was never seen to tear a write\n", bench.scheme->name);
        return SUITE_FAILED;
    }
    return (int)result;
}

static const struct write *find_write(const char *name, size_t length)
{
    for (size_t i = 0; i < WRITE_COUNT; i++)
        if (strncmp(writes[i].name, name, length) == 0 && !writes[i].name[length])
            return &writes[i];
    return NULL;
}

/* The writes that an id names. */
static bool choose_writes(const char *id)
{
    for (bench.write_count = 0; bench.write_count < WRITES_MAX;) {
        size_t length = strcspn(id, "+:");
        const struct write *write = find_write(id, length);

        if (!write)
            return false;
        bench.writes[bench.write_count++] = write;
        if (id[length] != '+')
            return true;
        id += length + 1;
    }
    return false;
}

static bool is_library(void)
{
    return strncmp(bench.scheme->name, "minl2r", 6) == 0;
}

/* What the library does after other transactions, its own tests explore; a torn write
 * leaves nothing to the next one; a journal of whole blocks takes long. */
static uint32_t row_length(bool is_long)
{
    bool is_short = is_library() || strcmp(bench.scheme->name, "journal") == 0 ||
                    !bench.scheme->is_atomic;

    return (is_short ? 1 : 2) + (is_long && !is_library() ? 1 : 0);
}

static void set_options(struct suite_options *with, bool is_long)
{
    static char command[64];

    snprintf(command, sizeof(command), "crash_schemes %s", bench.scheme->name);
    suite_options_init(with);
    with->name = bench.scheme->name;
    with->command = command;
    if (is_long)
        return;
    with->explore.budget = 256;
    with->explore.nested_budget = is_library() ? 0 : 2;
    with->explore.kill = !is_library();
}

static int test_scheme(bool is_long, const char *id)
{
    uint32_t length = row_length(is_long);
    struct suite_options with;
    enum suite_result worst = SUITE_PASSED;
    uint64_t size = 0;
    uint8_t *base = make_base(&size);

    set_options(&with, is_long);
    struct suite *suite = base ? suite_create(&with) : NULL;

    if (!suite)
        return SUITE_NOT_TESTED;
    if (id)
        worst =
            choose_writes(id) ? test_writes(suite, base, size, id) : SUITE_NOT_TESTED;
    for (uint32_t i = 1; !id && i <= length && worst == SUITE_PASSED; i++) {
        bench.write_count = i;
        worst = test_rows(suite, base, size, is_long);
    }
    int result = report(suite, worst);

    suite_destroy(suite);
    free(base);
    return result;
}

int main(int argc, char **argv)
{
    const char *what = argc == 4 ? argv[2] : "";
    bool is_replay = strcmp(what, "--replay") == 0;
    bool loses_fence = strcmp(what, "fence") == 0;

    bench.scheme = argc > 1 ? scheme_find(argv[1]) : NULL;
    bench.fences = NO_FENCE;
    if (!bench.scheme || (argc != 2 && !is_replay && !loses_fence)) {
        fputs("Usage: crash_schemes SCHEME [fence N | --replay ID]\n", stderr);
        return SUITE_NOT_TESTED;
    }
    if (loses_fence)
        bench.lost_fence = strtoull(argv[3], NULL, 10);
    return test_scheme(is_long_test(), is_replay ? argv[3] : NULL);
}
