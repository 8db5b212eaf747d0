/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A damaged pool is checked, opened and used: never a crash, a hang, or a byte changed
 * outside what a pool may change. What the check does not object to opens.
 */
#include "tests/fuzz/image.h"

#include <errno.h>
#include <string.h>

#include "libminl2r/check.h"

#define IMAGE_COUNT 2
#define ROOT_SIZE 2048u

static struct image images[IMAGE_COUNT];
static uint8_t *memory;
static uint8_t *before;

/* ---- Images ---------------------------------------------------------------------- */

static struct minl2r_tx *begin(struct minl2r_pool *pool)
{
    struct minl2r_tx *tx;

    fuzz_require(minl2r_tx_begin(pool, &tx) == 0);
    return tx;
}

/* A root object whose slots name blocks, and blocks in a row. */
static void put_content(struct minl2r_pool *pool)
{
    const uint64_t *slots = minl2r_root(pool, ROOT_SIZE);
    uint64_t offset;

    fuzz_require(slots);
    for (uint32_t i = 0; i < 8; i++) {
        struct minl2r_tx *tx = begin(pool);

        fuzz_require(minl2r_tx_write_block(tx, &slots[i], 0, "content", 8) == 0);
        fuzz_require(minl2r_tx_alloc(tx, 3, &offset, NULL) == 0);
        fuzz_require(minl2r_tx_write(tx, &slots[64 + i], &offset, 8) == 0);
        fuzz_require(minl2r_tx_commit(tx) == 0);
    }
}

static void make_image(struct image *image, uint32_t block_size)
{
    const struct minl2r_options options = {
        .block_size = block_size, .lanes = 2, .log_size = 4096};
    struct minl2r_pool pool;

    image_format(memory, "fuzz", &options);
    fuzz_require(image_open(memory, &pool) == 0);
    put_content(&pool);
    image_take(image, memory);
    uint32_t roots = image_add_kind(image, ROOT_SIZE);
    image_add_object(image, roots, minl2r_offset(&pool, minl2r_root(&pool, ROOT_SIZE)));
    image_close(&pool);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    memory = image_map();
    before = malloc(IMAGE_SIZE);
    fuzz_require(before);
    make_image(&images[0], 4096);
    make_image(&images[1], 512);
    return 0;
}

/* ---- Using it -------------------------------------------------------------------- */

static void expect_same(uint64_t from, uint64_t to)
{
    fuzz_require(from <= to && to <= IMAGE_SIZE);
    fuzz_require(memcmp(memory + from, before + from, to - from) == 0);
}

/* Superblock and, but for two words each, lanes. */
static void expect_frame(const struct geometry *geo)
{
    uint64_t lanes_end =
        geo->lanes_offset + geo->lane_count * (uint64_t)sizeof(struct pm_lane);

    expect_same(0, geo->lanes_offset);
    for (uint32_t i = 0; i < geo->lane_count; i++) {
        uint64_t lane = geo->lanes_offset + i * (uint64_t)sizeof(struct pm_lane);

        expect_same(lane + offsetof(struct pm_lane, pad1),
                    lane + sizeof(struct pm_lane));
    }
    expect_same(lanes_end, geo->logs_offset);
    expect_same(geo->pool_size, IMAGE_SIZE);
}

static uint64_t check(void)
{
    struct minl2r_pool pool;
    struct pm pm;

    pm_adopt(&pm, memory, IMAGE_SIZE, MINL2R_EMULATED);
    pool = (struct minl2r_pool){.fd = -1};
    if (pool_attach(&pool, &pm, NULL) < 0)
        return 1;
    int rc = check_pool(&pool, NULL, NULL);
    pool_detach(&pool);
    fuzz_require(rc == 0 || rc == -EUCLEAN);
    expect_same(0, IMAGE_SIZE);
    return rc != 0;
}

/* Any call may be refused. */
static void use_words(struct minl2r_pool *pool, const uint64_t *slots)
{
    struct minl2r_tx *tx = begin(pool);
    uint64_t word = 5, offset;
    uint8_t bytes[64];

    for (uint32_t i = 0; i < 8; i++) {
        minl2r_tx_write(tx, minl2r_at(pool, slots[i]), &word, 8);
        minl2r_tx_read(tx, bytes, minl2r_at(pool, slots[i]), sizeof(bytes));
        minl2r_tx_free(tx, slots[64 + i], 3);
        minl2r_tx_alloc(tx, i + 1, &offset, NULL);
    }
    fuzz_require(minl2r_tx_commit(tx) == 0);
}

static void use_slots(struct minl2r_pool *pool, const uint64_t *slots)
{
    static const uint8_t bytes[4096] = {1};
    struct minl2r_tx *tx = begin(pool);

    for (uint32_t i = 0; i < 16; i++)
        minl2r_tx_write_block(tx, &slots[i], 0, bytes,
                              i % 2 ? pool->geo.block_size : 8);
    minl2r_tx_snapshot(tx, slots, 64, NULL);
    fuzz_require(minl2r_tx_abort(tx) == 0);
    tx = begin(pool);
    for (uint32_t i = 0; i < 16; i++)
        minl2r_tx_write_block(tx, &slots[i], 0, bytes,
                              i % 2 ? pool->geo.block_size : 8);
    fuzz_require(minl2r_tx_commit(tx) == 0);
}

static void use(struct minl2r_pool *pool)
{
    const uint64_t *slots = minl2r_root(pool, ROOT_SIZE);

    expect_frame(&pool->geo);
    if (slots) {
        use_words(pool, slots);
        use_slots(pool, slots);
    }
    expect_frame(&pool->geo);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct minl2r_pool pool;

    if (size == 0)
        return 0;
    image_damage(&images[data[0] % IMAGE_COUNT], memory, data + 1, size - 1);
    memcpy(before, memory, IMAGE_SIZE);
    bool sound = check() == 0;
    if (image_open(memory, &pool) < 0) {
        fuzz_require(!sound);
        expect_same(0, IMAGE_SIZE);
        return 0;
    }
    use(&pool);
    image_close(&pool);
    return 0;
}
