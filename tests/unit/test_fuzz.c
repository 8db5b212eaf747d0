/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pool images in several states, damaged at random, with and without their checksums
 * made right again, are checked, opened and used: never a crash, a hang, or a store
 * outside of what the pool may change. Each iteration has a seed of its own, which is
 * told when it fails.
 */
#include "tests/unit/craft.h"
#include "tests/unit/long.h"
#include "tests/unit/random.h"
#include "tests/unit/transact.h"

#include <errno.h>

#define POOL_SIZE MINL2R_POOL_SIZE_MIN
#define SEED 1000000
#define HANG_S 60
#define BLOCK ((size_t)4096)
#define USED_LANES 3

struct fuzz {
    struct memory_pool mp; /* the image at work */
    uint8_t *image;        /* before any damage */
    uint8_t *before;       /* after the damage */
    struct random random;
    uint64_t seed;
    uint64_t opened, refused; /* iterations that ended so */
};

static uint64_t below(struct fuzz *fuzz, uint64_t limit)
{
    return random_below(&fuzz->random, limit);
}

/* ---- Images ---------------------------------------------------------------------- */

/* Slots in the root object that name blocks, and blocks in a row; one is freed again.
 */
static void put_content(struct memory_pool *mp)
{
    const uint64_t *slots = minl2r_root(&mp->pool, BLOCK);

    make_blocks(&mp->pool, 20, 1);
    for (uint32_t i = 0; i < 8; i++) {
        struct minl2r_tx *tx = begin(&mp->pool);

        assert_ok(minl2r_tx_write_block(tx, &slots[i], 0, "content", 8));
        assert_ok(minl2r_tx_commit(tx));
    }
    uint64_t offset = make_blocks(&mp->pool, 3, 2);
    struct minl2r_tx *tx = begin(&mp->pool);

    assert_ok(minl2r_tx_free(tx, offset, 3));
    assert_ok(minl2r_tx_commit(tx));
    assert_ok(minl2r_store64(&mp->pool, &slots[100], 1));
}

static void leave_clean(struct memory_pool *mp)
{
    memory_pool_close(mp);
}

/* Each lane has a log in its own area. */
static void leave_live_logs(struct memory_pool *mp)
{
    const uint8_t *root = minl2r_root(&mp->pool, BLOCK);

    for (size_t lane = 0; lane < USED_LANES; lane++) {
        struct minl2r_tx *tx = begin(&mp->pool);

        for (size_t i = 0; i < 5; i++)
            assert_ok(
                minl2r_tx_snapshot(tx, root + 1000 + lane * 500 + i * 90, 70, NULL));
    }
    memory_pool_kill(mp);
}

/* Each lane has a log that goes on in segments. */
static void leave_segments(struct memory_pool *mp)
{
    const uint8_t *root = minl2r_root(&mp->pool, BLOCK);

    for (size_t lane = 0; lane < USED_LANES; lane++) {
        struct minl2r_tx *tx = begin(&mp->pool);

        for (size_t i = 0; i < 6; i++)
            assert_ok(
                minl2r_tx_snapshot(tx, root + BLOCK * (1 + 3 * lane), 2 * BLOCK, NULL));
    }
    memory_pool_kill(mp);
}

/* A log with records of every type. */
static void leave_every_record(struct memory_pool *mp)
{
    struct craft craft;
    uint64_t last = POOL_SIZE - BLOCK;
    uint64_t data = craft_super(mp)->zones_offset + 4 * BLOCK;

    memory_pool_close(mp);
    uint64_t slots[] = {data + 5 * BLOCK, 0};

    memcpy(mp->memory + data + 8, slots, sizeof(slots));
    craft_begin(&craft, mp, 1);
    craft_undo(&craft, data, 5);
    craft_record(&craft, PM_FREE, 2, data + 10 * BLOCK);
    craft_record(&craft, PM_ALLOC, 3, last - 20 * BLOCK);
    craft_swap(&craft, data + 8, data + 5 * BLOCK, last - 30 * BLOCK);
    craft_end(&craft);
    craft_link(&craft, last - 3 * BLOCK, 2);
    craft_swap(&craft, data + 16, 0, last - 31 * BLOCK);
    craft_end(&craft);
    craft_undo(&craft, data + 100, 5);
    craft_end(&craft);
}

typedef void leave_fn(struct memory_pool *mp);

static void make_image(struct fuzz *fuzz, leave_fn *leave)
{
    struct minl2r_options options = {.lanes = USED_LANES, .log_size = 4096};

    memory_pool_make(&fuzz->mp, POOL_SIZE, &options);
    put_content(&fuzz->mp);
    leave(&fuzz->mp);
    memory_pool_check(&fuzz->mp);
    memcpy(fuzz->image, fuzz->mp.memory, POOL_SIZE);
}

/* ---- Damage ---------------------------------------------------------------------- */

/* A place in one of the parts of the pool; the small ones are hit as often. */
static uint64_t place(struct fuzz *fuzz)
{
    const struct pm_super *super = (const struct pm_super *)(const void *)fuzz->image;
    uint64_t log =
        super->logs_offset + below(fuzz, super->lane_count) * super->log_size;

    switch (below(fuzz, 7)) {
    case 0:
        return below(fuzz, sizeof(*super));
    case 1:
        return super->lanes_offset +
               below(fuzz, super->lane_count * sizeof(struct pm_lane));
    case 2:
        return log + below(fuzz, super->log_size);
    case 3:
        return log + below(fuzz, 128);
    case 4:
        return super->zones_offset + below(fuzz, 64); /* bits */
    case 5:
        return super->zones_offset + BLOCK + below(fuzz, 16); /* the root */
    default:
        return super->zones_offset + below(fuzz, POOL_SIZE - super->zones_offset);
    }
}

static uint64_t interesting_word(struct fuzz *fuzz)
{
    static const uint64_t words[] = {0,          1,          8,
                                     4096,       POOL_SIZE,  POOL_SIZE - 8,
                                     1ull << 40, UINT64_MAX, UINT64_MAX / 2,
                                     UINT32_MAX, 1ull << 63, 0x7fffffff};
    uint64_t which = below(fuzz, sizeof(words) / sizeof(words[0]) + 3);

    if (which < sizeof(words) / sizeof(words[0]))
        return words[which];
    return which % 2 ? place(fuzz) & ~7ull : below(fuzz, 300) * BLOCK;
}

static void damage_once(struct fuzz *fuzz)
{
    uint64_t at = place(fuzz), from = place(fuzz);
    uint64_t size = 1 + below(fuzz, 200);
    uint64_t word = interesting_word(fuzz);
    uint8_t *memory = fuzz->mp.memory;

    if (at + size > POOL_SIZE)
        size = POOL_SIZE - at;
    switch (below(fuzz, 6)) {
    case 0:
        memory[at] ^= (uint8_t)(1 << below(fuzz, 8));
        break;
    case 1:
    case 2:
        at = at / 8 * 8;
        memcpy(memory + at, &word, 8);
        break;
    case 3:
        at = at / 4 * 4;
        memcpy(memory + at, &word, 4);
        break;
    case 4:
        if (from + size <= POOL_SIZE)
            memmove(memory + at, memory + from, size);
        break;
    default:
        random_fill(&fuzz->random, memory + at, size);
        break;
    }
}

static void mend_super(struct fuzz *fuzz)
{
    struct pm_super *super = (struct pm_super *)(void *)fuzz->mp.memory;

    super->checksum = super_checksum(super);
}

/* Makes the checksums right of all batches that can be found where they were. */
static void mend_batches(struct fuzz *fuzz)
{
    const struct pm_super *super = (const struct pm_super *)(const void *)fuzz->image;
    uint64_t uuid_hash =
        pm_hash(fuzz->mp.memory + offsetof(struct pm_super, uuid), 16, 0);

    for (uint64_t at = super->logs_offset; at < POOL_SIZE; at += PM_LINE) {
        struct pm_batch *batch = (struct pm_batch *)(void *)(fuzz->mp.memory + at);
        const struct pm_batch *old =
            (const struct pm_batch *)(const void *)(fuzz->image + at);
        uint32_t lane = (uint32_t)((at - super->logs_offset) / super->log_size);

        if (lane >= super->lane_count)
            lane = (uint32_t)below(fuzz, super->lane_count);
        if (batch->size < sizeof(*batch) || batch->size > PM_BATCH_SIZE_MAX ||
            at + batch->size > POOL_SIZE || batch->generation - old->generation > 2 ||
            batch->generation == 0 || batch->generation > 1000)
            continue;
        batch->checksum =
            pm_hash(&batch->generation, batch->size - 8, uuid_hash + lane);
    }
}

static void damage(struct fuzz *fuzz)
{
    memcpy(fuzz->mp.memory, fuzz->image, POOL_SIZE);
    for (uint64_t count = 1 + below(fuzz, 4); count > 0; count--)
        damage_once(fuzz);
    if (below(fuzz, 2))
        mend_super(fuzz);
    if (below(fuzz, 4))
        mend_batches(fuzz);
    memcpy(fuzz->before, fuzz->mp.memory, POOL_SIZE);
}

/* ---- Use ------------------------------------------------------------------------- */

/* Any call may be refused; none may do harm. */
static void use_blocks(struct fuzz *fuzz, struct minl2r_pool *pool)
{
    struct minl2r_tx *tx = begin(pool);
    uint64_t offset = 0, word = below(fuzz, UINT64_MAX);
    uint8_t bytes[BLOCK] = {1};
    uint8_t *copy;

    if (minl2r_tx_alloc(tx, 1 + below(fuzz, 5), &offset, NULL) == 0) {
        minl2r_tx_write(tx, minl2r_at(pool, offset), &word, 8);
        if (below(fuzz, 2))
            minl2r_tx_free(tx, offset, 1);
    }
    const void *any = (const uint8_t *)pool->pm.base + place(fuzz);

    minl2r_tx_write(tx, any, &word, 8);
    minl2r_tx_read(tx, bytes, any, 64);
    minl2r_tx_zero(tx, any, 3 * BLOCK);
    minl2r_tx_free(tx, interesting_word(fuzz), 1);
    if (minl2r_tx_edit(tx, any, 100, &copy) == 0)
        copy[5]++;
    minl2r_tx_snapshot(tx, any, 100, NULL);
    if (below(fuzz, 2))
        assert_ok(minl2r_tx_commit(tx));
    else
        assert_ok(minl2r_tx_abort(tx));
}

static void use_slots(struct fuzz *fuzz, struct minl2r_pool *pool)
{
    const uint64_t *slots = minl2r_root(pool, BLOCK);
    uint8_t bytes[MINL2R_BLOCK_SIZE_MAX] = {1};
    struct minl2r_tx *tx = begin(pool);

    for (uint64_t i = 0; slots && i < 9; i++)
        minl2r_tx_write_block(tx, &slots[below(fuzz, 12)], 0, bytes,
                              1 + (uint32_t)below(fuzz, pool->geo.block_size));
    assert_ok(minl2r_tx_commit(tx));
}

static void use_words(struct fuzz *fuzz, struct minl2r_pool *pool)
{
    const uint8_t *base = pool->pm.base;
    struct minl2r_info info;

    for (int i = 0; i < 10; i++)
        minl2r_store64(pool, (const uint64_t *)(const void *)(base + place(fuzz)), 1);
    minl2r_at(pool, interesting_word(fuzz));
    minl2r_offset(pool, (const void *)((uintptr_t)base + interesting_word(fuzz)));
    assert_ok(minl2r_pool_info(pool, &info));
}

/* ---- What may change ------------------------------------------------------------- */

static void expect_same(const struct fuzz *fuzz, uint64_t from, uint64_t to)
{
    assert_memory_equal(fuzz->mp.memory + from, fuzz->before + from, to - from);
}

/* Of lanes two words each. */
static void expect_lanes(const struct fuzz *fuzz, const struct geometry *geo)
{
    for (uint32_t i = 0; i < geo->lane_count; i++) {
        const struct pm_lane *before =
            (const struct pm_lane *)(const void *)(fuzz->before + geo->lanes_offset) +
            i;
        const struct pm_lane *lane =
            (const struct pm_lane *)(const void *)(fuzz->mp.memory +
                                                   geo->lanes_offset) +
            i;

        assert_true(lane->settled > before->settled); /* I4 */
        assert_memory_equal(lane->pad1, before->pad1, sizeof(lane->pad1));
    }
}

static void expect_frame(const struct fuzz *fuzz, const struct geometry *geo)
{
    uint64_t lanes_end =
        geo->lanes_offset + geo->lane_count * (uint64_t)sizeof(struct pm_lane);

    expect_same(fuzz, 0, geo->lanes_offset);
    expect_lanes(fuzz, geo);
    expect_same(fuzz, lanes_end, geo->logs_offset);
    expect_same(fuzz, geo->pool_size, fuzz->mp.size);
}

/* Recovery stores to data, bitmaps and lanes, never to logs. */
static void expect_logs(const struct fuzz *fuzz, const struct geometry *geo)
{
    expect_same(fuzz, geo->logs_offset,
                geo->logs_offset + geo->lane_count * (uint64_t)geo->log_size);
}

/* Bits of bitmaps and the root block stay set, whatever is undone. */
static void expect_bitmaps(const struct fuzz *fuzz)
{
    const struct minl2r_pool *pool = &fuzz->mp.pool;

    for (uint64_t zone = 0; zone < pool->geo.zone_count; zone++) {
        uint64_t first = zone << pool->geo.zone_shift;
        const uint64_t *word = pool_bitmap_word(pool, first);
        uint64_t before;

        memcpy(&before, fuzz->before + pool_offset(pool, word), 8);
        assert_true((*word & bitmap_fixed_bits(&pool->geo, first)) ==
                    (before & bitmap_fixed_bits(&pool->geo, first)));
    }
}

/* ---- Iterations ------------------------------------------------------------------ */

static void count_finding(void *arg, const char *what)
{
    (void)what;
    ++*(int *)arg;
}

static int check(struct fuzz *fuzz)
{
    int findings = 0;

    if (memory_pool_attach(&fuzz->mp) < 0)
        return 1;
    int result = check_pool(&fuzz->mp.pool, count_finding, &findings);

    assert_int_equal(result, findings ? -EUCLEAN : 0);
    pool_detach(&fuzz->mp.pool);
    expect_same(fuzz, 0, fuzz->mp.size);
    return findings;
}

static void open_and_use(struct fuzz *fuzz)
{
    struct minl2r_pool *pool = &fuzz->mp.pool;

    expect_frame(fuzz, &pool->geo);
    expect_logs(fuzz, &pool->geo);
    expect_bitmaps(fuzz);
    use_blocks(fuzz, pool);
    use_slots(fuzz, pool);
    use_words(fuzz, pool);
    use_blocks(fuzz, pool);
    expect_frame(fuzz, &pool->geo);
    memory_pool_close(&fuzz->mp);
}

/* A shorter file: no page behind its end may be touched. */
static void cut_short(struct fuzz *fuzz)
{
    fuzz->mp.size = PM_PAGE * (1 + below(fuzz, POOL_SIZE / PM_PAGE));
    assert_int_equal(
        mprotect(fuzz->mp.memory + fuzz->mp.size, POOL_SIZE - fuzz->mp.size, PROT_NONE),
        0);
}

static void restore_size(struct fuzz *fuzz)
{
    fuzz->mp.size = POOL_SIZE;
    assert_int_equal(mprotect(fuzz->mp.memory, POOL_SIZE, PROT_READ | PROT_WRITE), 0);
}

static void iterate(struct fuzz *fuzz)
{
    fuzz->random = (struct random){fuzz->seed};
    damage(fuzz);
    if (below(fuzz, 10) == 0)
        cut_short(fuzz);
    int findings = check(fuzz);
    int result = memory_pool_try_open(&fuzz->mp);

    if (result == 0) {
        open_and_use(fuzz);
        fuzz->opened++;
    } else {
        assert_true(result == -EUCLEAN || result == -EINVAL ||
                    result == -EPROTONOSUPPORT);
        assert_true(findings > 0);
        expect_same(fuzz, 0, fuzz->mp.size);
        fuzz->refused++;
    }
    restore_size(fuzz);
}

static int setup(void **state)
{
    struct fuzz *fuzz = calloc(1, sizeof(*fuzz));

    fuzz->image = malloc(POOL_SIZE);
    fuzz->before = malloc(POOL_SIZE);
    *state = fuzz;
    return 0;
}

static int teardown(void **state)
{
    struct fuzz *fuzz = *state;

    alarm(0);
    print_message("%llu opened, %llu refused, up to seed %llu\n",
                  (unsigned long long)fuzz->opened, (unsigned long long)fuzz->refused,
                  (unsigned long long)fuzz->seed);
    memory_pool_unmap(&fuzz->mp);
    free(fuzz->image);
    free(fuzz->before);
    free(fuzz);
    return 0;
}

static void fuzz_image(struct fuzz *fuzz, leave_fn *leave)
{
    uint64_t count = times_if_long(1500, 10);

    make_image(fuzz, leave);
    for (uint64_t i = 0; i < count; i++) {
        fuzz->seed = SEED + i;
        alarm(HANG_S);
        iterate(fuzz);
    }
    assert_true(fuzz->opened > count / 10 && fuzz->refused > count / 10);
}

static void damaged_clean_pool_does_no_harm(void **state)
{
    fuzz_image(*state, leave_clean);
}

static void damaged_pool_with_live_logs_does_no_harm(void **state)
{
    fuzz_image(*state, leave_live_logs);
}

static void damaged_pool_with_log_segments_does_no_harm(void **state)
{
    fuzz_image(*state, leave_segments);
}

static void damaged_pool_with_records_of_every_type_does_no_harm(void **state)
{
    fuzz_image(*state, leave_every_record);
}

#define test(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(damaged_clean_pool_does_no_harm),
        test(damaged_pool_with_live_logs_does_no_harm),
        test(damaged_pool_with_log_segments_does_no_harm),
        test(damaged_pool_with_records_of_every_type_does_no_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
