/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/fixture.h"

#include <errno.h>

#include "libminl2r/layout.h"
#include "libminl2r/pool.h"
#include "libminl2r/tx.h"

#define POOL_SIZE ((uint64_t)4 << 20)
#define OBJECTS_MAX 4096

/* ---- The model: what should be allocated ----------------------------------------- */

struct object {
    uint64_t offset;
    uint32_t size;
    uint64_t seed; /* of its content */
};

struct model {
    uint32_t count;
    struct object objects[OBJECTS_MAX];
};

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint64_t random_below(uint64_t *state, uint64_t limit)
{
    return next_random(state) % limit;
}

static void fill_bytes(uint8_t *bytes, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(i % 8 == 0 ? next_random(&seed) : seed >> i % 8 * 8);
}

static void model_add(struct model *model, struct object object)
{
    assert_true(model->count < OBJECTS_MAX);
    model->objects[model->count++] = object;
}

static void model_remove(struct model *model, uint32_t index)
{
    model->objects[index] = model->objects[--model->count];
}

/* ---- What is in the pool --------------------------------------------------------- */

static const struct minl2r_slab *slab_of(struct fixture *f)
{
    const struct minl2r_slab *slab = minl2r_root(f->pool, sizeof(*slab));

    assert_non_null(slab);
    return slab;
}

static struct minl2r_tx *begin(struct fixture *f)
{
    struct minl2r_tx *tx;

    assert_ok(minl2r_tx_begin(f->pool, &tx));
    return tx;
}

static uint64_t free_blocks(struct fixture *f)
{
    struct minl2r_info info;

    assert_ok(minl2r_pool_info(f->pool, &info));
    return info.blocks_free;
}

static uint64_t alloc_one(struct minl2r_tx *tx, const struct minl2r_slab *slab,
                          size_t size)
{
    uint64_t offset;

    assert_ok(minl2r_slab_alloc(tx, slab, size, &offset));
    return offset;
}

static uint64_t alloc_committed(struct fixture *f, size_t size)
{
    struct minl2r_tx *tx = begin(f);
    uint64_t offset = alloc_one(tx, slab_of(f), size);

    assert_ok(minl2r_tx_commit(tx));
    return offset;
}

static void free_committed(struct fixture *f, uint64_t offset, size_t size)
{
    struct minl2r_tx *tx = begin(f);

    assert_ok(minl2r_slab_free(tx, slab_of(f), offset, size));
    assert_ok(minl2r_tx_commit(tx));
}

static uint64_t block_of(const struct fixture *f, uint64_t offset)
{
    const struct geometry *geo = &f->pool->geo;

    return block_offset(geo, block_index(geo, offset));
}

static const struct pm_slab_block *slab_block(const struct fixture *f, uint64_t offset)
{
    const struct pm_slab_block *block = minl2r_at(f->pool, block_of(f, offset));

    assert_int_equal(block->magic, PM_SLAB_MAGIC);
    return block;
}

static uint32_t count_used(const struct pm_slab_block *block)
{
    uint32_t used = 0;

    for (uint32_t i = 0; i < block->object_count; i++)
        used += (uint32_t)(block->used[i / 64] >> i % 64) & 1;
    return used;
}

/* Every listed block has room and is not empty; links agree in both directions. */
static uint64_t check_list(const struct fixture *f, uint64_t head)
{
    uint64_t before = 0, length = 0;

    for (uint64_t offset = head; offset != 0; length++) {
        const struct pm_slab_block *block = slab_block(f, offset);

        assert_int_equal(block->prev, before);
        assert_in_range(count_used(block), 1, block->object_count - 1);
        before = offset;
        offset = block->next;
    }
    return length;
}

static int compare_offsets(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

/* The model's objects are there, and no block is held by anything but them. */
static void check_slab(struct fixture *f, const struct model *model,
                       uint64_t free_at_first)
{
    static uint8_t expected[1 << 20];
    static uint64_t blocks[OBJECTS_MAX];
    uint32_t block_size = f->pool->geo.block_size;
    uint64_t whole = 0, small_count = 0, distinct = 0, with_room = 0, listed = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        const struct object *o = &model->objects[i];

        fill_bytes(expected, o->size, o->seed);
        assert_memory_equal(minl2r_at(f->pool, o->offset), expected, o->size);
        if ((o->offset - f->pool->geo.zones_offset) % block_size == 0)
            whole += (o->size + block_size - 1) / block_size;
        else
            blocks[small_count++] = block_of(f, o->offset);
    }
    qsort(blocks, small_count, sizeof(*blocks), compare_offsets);
    for (uint64_t i = 0, j; i < small_count; i = j) {
        const struct pm_slab_block *block = slab_block(f, blocks[i]);

        for (j = i; j < small_count && blocks[j] == blocks[i]; j++)
            ;
        assert_int_equal(count_used(block), j - i);
        with_room += j - i < block->object_count;
        distinct++;
    }
    for (unsigned i = 0; i < MINL2R_SLAB_CLASSES; i++)
        listed += check_list(f, slab_of(f)->partial[i]);
    assert_int_equal(listed, with_room);
    assert_int_equal(free_blocks(f), free_at_first - distinct - whole);
}

/* ---- Sizes ----------------------------------------------------------------------- */

static uint64_t blocks_used_by(struct fixture *f, struct minl2r_tx *tx, size_t size,
                               uint32_t count)
{
    const struct minl2r_slab *slab = slab_of(f);
    uint64_t before = free_blocks(f);
    uint64_t last = 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t offset = alloc_one(tx, slab, size);

        assert_int_equal(offset % 16, 0);
        assert_true(last == 0 || offset >= last + size || last >= offset + size);
        last = offset;
    }
    return before - free_blocks(f);
}

/* How many objects of this size there are in a block; 1: they take whole blocks. */
static uint32_t objects_per_block(struct fixture *f, size_t size)
{
    uint64_t offset = alloc_committed(f, size);
    uint64_t block = block_of(f, offset);
    uint32_t count = 1;

    if (offset != block)
        count = slab_block(f, offset)->object_count;
    free_committed(f, offset, size);
    return count;
}

static void check_space(struct fixture *f, uint32_t block_size, uint32_t percent_max)
{
    struct minl2r_options options = {.block_size = block_size};

    fixture_create(f, POOL_SIZE, &options);
    slab_of(f);
    uint64_t free_at_first = free_blocks(f);

    for (size_t size = 16; size <= 3 * (size_t)block_size; size += 1 + size / 100) {
        uint32_t count = objects_per_block(f, size);
        struct minl2r_tx *tx = begin(f);
        uint64_t blocks = blocks_used_by(f, tx, size, 2 * count);

        assert_true(blocks * block_size * 100 <= 2 * size * count * percent_max);
        assert_ok(minl2r_tx_abort(tx));
        assert_int_equal(free_blocks(f), free_at_first);
    }
    fixture_close(f);
    unlink(f->path);
}

static void full_blocks_take_at_most_2_1_times_the_sizes_of_their_objects(void **state)
{
    check_space(*state, 4096, 210);
    check_space(*state, 16384, 210);
    check_space(*state, 65536, 210);
}

static void
full_blocks_take_at_most_2_3_times_the_sizes_if_blocks_are_small(void **state)
{
    check_space(*state, 512, 230);
    check_space(*state, 1024, 230);
}

static void an_object_of_0_bytes_is_einval(void **state)
{
    struct fixture *f = *state;
    uint64_t offset;

    fixture_create(f, POOL_SIZE, NULL);
    struct minl2r_tx *tx = begin(f);

    assert_error(minl2r_slab_alloc(tx, slab_of(f), 0, &offset), EINVAL, "0 bytes");
    assert_error(minl2r_slab_free(tx, slab_of(f), 4096, 0), EINVAL, "0 bytes");
    assert_ok(minl2r_tx_abort(tx));
}

static void an_object_larger_than_a_zone_is_einval(void **state)
{
    struct fixture *f = *state;
    uint64_t offset;

    fixture_create(f, POOL_SIZE, NULL);
    struct minl2r_tx *tx = begin(f);

    assert_error(minl2r_slab_alloc(tx, slab_of(f), SIZE_MAX, &offset), EINVAL,
                 "contiguous blocks");
    assert_ok(minl2r_tx_abort(tx));
}

/* ---- Random operations ----------------------------------------------------------- */

static uint32_t random_size(uint64_t *random, uint32_t block_size)
{
    uint32_t limit = block_size << 2 >> random_below(random, 10);

    return 1 + (uint32_t)random_below(random, limit < 16 ? 16 : limit);
}

static void random_alloc(struct fixture *f, struct minl2r_tx *tx, struct model *model,
                         uint64_t *random)
{
    static uint8_t bytes[1 << 20];
    struct object object = {.size = random_size(random, f->pool->geo.block_size),
                            .seed = next_random(random)};
    int rc = minl2r_slab_alloc(tx, slab_of(f), object.size, &object.offset);

    if (rc == -ENOSPC)
        return;
    assert_ok(rc);
    fill_bytes(bytes, object.size, object.seed);
    assert_ok(minl2r_tx_write_fresh(tx, minl2r_at(f->pool, object.offset), bytes,
                                    object.size));
    model_add(model, object);
}

static void random_free(struct fixture *f, struct minl2r_tx *tx, struct model *model,
                        uint64_t *random)
{
    uint32_t index = (uint32_t)random_below(random, model->count);
    struct object object = model->objects[index];

    assert_ok(minl2r_slab_free(tx, slab_of(f), object.offset, object.size));
    model_remove(model, index);
}

/* One transaction of a few calls, now and then of many; a third of them is aborted. */
static void random_transaction(struct fixture *f, struct model *model, uint64_t *random,
                               uint64_t target)
{
    static struct model before;
    struct minl2r_tx *tx = begin(f);
    uint64_t calls = 1 + random_below(random, random_below(random, 16) ? 4 : 200);

    before = *model;
    while (calls-- > 0) {
        if (model->count < OBJECTS_MAX &&
            (model->count == 0 || random_below(random, 2 * target) >= model->count))
            random_alloc(f, tx, model, random);
        else
            random_free(f, tx, model, random);
    }
    if (random_below(random, 3) == 0) {
        assert_ok(minl2r_tx_abort(tx));
        *model = before;
    } else {
        assert_ok(minl2r_tx_commit(tx));
    }
}

static void run_random(struct fixture *f, uint32_t block_size, uint64_t seed)
{
    static struct model model;
    struct minl2r_options options = {.block_size = block_size};
    uint64_t random = seed;

    print_message("block size %u, seed %llu\n", block_size, (unsigned long long)seed);
    fixture_create(f, 4 * POOL_SIZE, &options);
    slab_of(f);
    uint64_t free_at_first = free_blocks(f);

    model.count = 0;
    for (unsigned i = 0; i < 600; i++) {
        uint64_t target = i % 200 < 100 ? 800 : 20;

        random_transaction(f, &model, &random, target);
        if (i % 50 == 49)
            fixture_reopen(f);
        if (i % 10 == 9)
            check_slab(f, &model, free_at_first);
    }
    while (model.count > 0) {
        struct object object = model.objects[--model.count];
        free_committed(f, object.offset, object.size);
    }
    check_slab(f, &model, free_at_first);
}

static void random_calls_do_what_the_model_does(void **state)
{
    run_random(*state, 4096, 1);
}

static void random_calls_do_what_the_model_does_with_small_blocks(void **state)
{
    run_random(*state, 512, 2);
}

static void random_calls_do_what_the_model_does_with_large_blocks(void **state)
{
    run_random(*state, 65536, 3);
}

/* ---- One transaction ------------------------------------------------------------- */

static void an_object_freed_by_a_transaction_is_not_handed_out_by_it(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    uint64_t kept = alloc_committed(f, 1000);
    uint64_t freed = alloc_committed(f, 1000);
    struct minl2r_tx *tx = begin(f);

    assert_ok(minl2r_slab_free(tx, slab_of(f), freed, 1000));
    for (int i = 0; i < 100; i++) {
        uint64_t offset = alloc_one(tx, slab_of(f), 1000);

        assert_int_not_equal(offset, freed);
        assert_int_not_equal(offset, kept);
    }
    assert_ok(minl2r_tx_abort(tx));
}

static void replacing_objects_in_full_blocks_does_not_take_a_block_each(void **state)
{
    struct fixture *f = *state;
    uint64_t objects[64 * 16] = {0};
    size_t per_block;

    fixture_create(f, POOL_SIZE, NULL);
    per_block = objects_per_block(f, 200);
    for (size_t i = 0; i < 16 * per_block; i++)
        objects[i] = alloc_committed(f, 200);
    uint64_t free_before = free_blocks(f);
    struct minl2r_tx *tx = begin(f);

    for (size_t i = 0; i < 16; i++) {
        assert_ok(minl2r_slab_free(tx, slab_of(f), objects[i * per_block], 200));
        alloc_one(tx, slab_of(f), 200);
    }
    assert_ok(minl2r_tx_commit(tx));
    assert_in_range(free_before - free_blocks(f), 0, 1 + 16 / per_block);
}

static void what_a_transaction_allocates_and_frees_leaves_no_trace(void **state)
{
    struct fixture *f = *state;
    static struct model none;
    uint64_t objects[500];

    fixture_create(f, POOL_SIZE, NULL);
    slab_of(f);
    uint64_t free_at_first = free_blocks(f);
    struct minl2r_tx *tx = begin(f);

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 500; i++)
            objects[i] = alloc_one(tx, slab_of(f), 100);
        for (int i = 0; i < 500; i++)
            assert_ok(minl2r_slab_free(tx, slab_of(f), objects[i], 100));
    }
    assert_ok(minl2r_tx_commit(tx));
    check_slab(f, &none, free_at_first);
}

static void an_allocation_changes_one_word(void **state)
{
    struct fixture *f = *state;
    struct minl2r_stats before, after;

    fixture_create(f, POOL_SIZE, NULL);
    alloc_committed(f, 100);
    assert_ok(minl2r_stats_get(f->pool, &before));
    alloc_committed(f, 100);
    assert_ok(minl2r_stats_get(f->pool, &after));
    assert_int_equal(after.fences - before.fences, 1);
    assert_int_equal(after.log_bytes - before.log_bytes, 0);
}

/* ---- Wrong frees ----------------------------------------------------------------- */

static void freeing_twice_in_one_transaction_is_einval(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    uint64_t offset = alloc_committed(f, 100);
    struct minl2r_tx *tx = begin(f);

    assert_ok(minl2r_slab_free(tx, slab_of(f), offset, 100));
    assert_error(minl2r_slab_free(tx, slab_of(f), offset, 100), EINVAL,
                 "no object of 128 B is allocated");
    assert_ok(minl2r_tx_abort(tx));
}

static void expect_free_refused(struct fixture *f, uint64_t offset, size_t size,
                                const char *words)
{
    struct minl2r_tx *tx = begin(f);

    assert_error(minl2r_slab_free(tx, slab_of(f), offset, size), EINVAL, words);
    assert_ok(minl2r_tx_abort(tx));
}

static void freeing_twice_is_einval_while_the_block_is_used(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    alloc_committed(f, 100);
    uint64_t offset = alloc_committed(f, 100);

    free_committed(f, offset, 100);
    expect_free_refused(f, offset, 100, "no object of 128 B is allocated");
}

static void freeing_twice_is_einval_when_the_block_is_gone(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    uint64_t offset = alloc_committed(f, 100);

    free_committed(f, offset, 100);
    expect_free_refused(f, offset, 100, "no object of 128 B is allocated");
}

static void freeing_twice_is_einval_for_whole_blocks(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    uint64_t offset = alloc_committed(f, 10000);

    free_committed(f, offset, 10000);
    expect_free_refused(f, offset, 10000, "not all allocated");
}

static void freeing_with_another_size_is_einval(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    uint64_t offset = alloc_committed(f, 100);
    expect_free_refused(f, offset, 20, "no object of 32 B is allocated");
}

static void freeing_at_any_other_offset_is_einval(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, POOL_SIZE, NULL);
    uint64_t offset = alloc_committed(f, 100);
    uint64_t others[] = {0,
                         8,
                         offset + 16,
                         offset - 64,
                         offset + 1,
                         offset + 128,
                         block_of(f, offset),
                         POOL_SIZE,
                         UINT64_MAX};
    struct minl2r_tx *tx = begin(f);

    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        assert_error(minl2r_slab_free(tx, slab_of(f), others[i], 100), EINVAL,
                     "no object of 128 B is allocated");
    assert_ok(minl2r_tx_abort(tx));
}

static void a_slab_outside_the_data_area_is_einval(void **state)
{
    struct fixture *f = *state;
    struct minl2r_slab in_dram = {0};
    uint64_t offset;

    fixture_create(f, POOL_SIZE, NULL);
    struct minl2r_tx *tx = begin(f);

    assert_error(minl2r_slab_alloc(tx, &in_dram, 100, &offset), EINVAL,
                 "is not in the pool");
    assert_ok(minl2r_tx_abort(tx));
}

/* ---- No space -------------------------------------------------------------------- */

static uint32_t fill_pool(struct fixture *f, uint64_t *objects, uint32_t max,
                          size_t size)
{
    uint32_t count = 0;
    int rc = 0;

    while (rc == 0) {
        struct minl2r_tx *tx = begin(f);

        assert_true(count < max);
        rc = minl2r_slab_alloc(tx, slab_of(f), size, &objects[count]);
        count += rc == 0;
        assert_ok(minl2r_tx_commit(tx));
    }
    assert_int_equal(rc, -ENOSPC);
    return count;
}

static void a_full_pool_is_enospc_and_can_be_emptied_and_filled_again(void **state)
{
    struct fixture *f = *state;
    static uint64_t objects[40000];
    static struct model none;

    fixture_create(f, MINL2R_POOL_SIZE_MIN, NULL);
    slab_of(f);
    uint64_t free_at_first = free_blocks(f);
    uint32_t count = fill_pool(f, objects, 40000, 50);

    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < count; i++)
            free_committed(f, objects[i], 50);
        check_slab(f, &none, free_at_first);
        assert_int_equal(fill_pool(f, objects, 40000, 50), count);
    }
}

/* Without free blocks the log cannot grow, so a transaction gets only so far. */
static void a_full_log_is_enospc_and_leaves_nothing_of_the_call_queued(void **state)
{
    struct fixture *f = *state;
    static uint64_t objects[40000];
    static struct model left;
    struct minl2r_options options = {.log_size = MINL2R_LOG_SIZE_MIN,
                                     .spare_blocks = 1};
    uint8_t bytes[1000];
    uint32_t freed = 0, refused = 0;

    fixture_create(f, MINL2R_POOL_SIZE_MIN, &options);
    slab_of(f);
    uint64_t free_at_first = free_blocks(f);
    uint32_t count = fill_pool(f, objects, 40000, sizeof(bytes));
    struct minl2r_tx *tx = begin(f);

    left.count = 0;
    for (uint32_t i = 0; i < count; i++) {
        int rc = minl2r_slab_free(tx, slab_of(f), objects[i], sizeof(bytes));

        if (rc == 0) {
            freed++;
            continue;
        }
        assert_int_equal(rc, -ENOSPC);
        refused++;
        model_add(&left, (struct object){objects[i], sizeof(bytes), i});
    }
    assert_true(freed > 0);
    assert_true(refused > 0);
    assert_ok(minl2r_tx_commit(tx));
    for (uint32_t i = 0; i < left.count; i++) {
        tx = begin(f);
        fill_bytes(bytes, sizeof(bytes), left.objects[i].seed);
        assert_ok(minl2r_tx_write_fresh(tx, minl2r_at(f->pool, left.objects[i].offset),
                                        bytes, sizeof(bytes)));
        assert_ok(minl2r_tx_commit(tx));
    }
    check_slab(f, &left, free_at_first);
}

/* ---- No memory ------------------------------------------------------------------- */

static bool no_memory;

void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return no_memory ? NULL : __real_aligned_alloc(alignment, size);
}

/* Leaves a transaction `left` bytes of the memory that it has without asking for more.
 */
static void use_up_memory(struct fixture *f, struct minl2r_tx *tx, size_t left)
{
    static const uint8_t bytes[60000];
    uint64_t offset;

    assert_ok(minl2r_tx_alloc(tx, 16, &offset, NULL));
    size_t arena_left = tx->writes.arena.chunks->size - tx->writes.arena.used;

    assert_true(left + 4096 < arena_left && arena_left < sizeof(bytes) + 8192);
    while (arena_left > left) {
        size_t cut = -tx->writes.arena.used & (ARENA_LINE - 1); /* as the block is */
        size_t size = arena_left - left < 30000 ? arena_left - left : 30000;

        if (size <= cut)
            return;
        size -= cut;
        assert_ok(minl2r_tx_write(tx, minl2r_at(f->pool, offset), bytes, size));
        arena_left = tx->writes.arena.chunks->size - tx->writes.arena.used;
    }
}

/* The calls that take every path: blocks that get room, get full, come and go. */
static int many_calls(struct fixture *f, struct minl2r_tx *tx,
                      const struct model *model)
{
    uint64_t offset;
    int rc = 0;

    for (uint32_t i = 0; i < model->count && rc == 0; i++)
        rc = minl2r_slab_free(tx, slab_of(f), model->objects[i].offset, 900);
    for (uint32_t i = 0; i < model->count && rc == 0; i++)
        rc = minl2r_slab_alloc(tx, slab_of(f), 900, &offset);
    return rc;
}

static void
without_memory_a_call_is_enomem_and_abort_leaves_the_slab_as_it_was(void **state)
{
    struct fixture *f = *state;
    static struct model model;

    fixture_create(f, POOL_SIZE, NULL);
    slab_of(f);
    uint64_t free_at_first = free_blocks(f), random = 5;

    model.count = 0;
    while (model.count < 12) {
        struct minl2r_tx *tx = begin(f);
        uint8_t bytes[900];
        struct object object = {alloc_one(tx, slab_of(f), sizeof(bytes)), sizeof(bytes),
                                next_random(&random)};

        fill_bytes(bytes, sizeof(bytes), object.seed);
        assert_ok(minl2r_tx_write_fresh(tx, minl2r_at(f->pool, object.offset), bytes,
                                        sizeof(bytes)));
        assert_ok(minl2r_tx_commit(tx));
        model_add(&model, object);
    }
    for (size_t left = 0; left < 4096; left += 16) {
        struct minl2r_tx *tx = begin(f);

        use_up_memory(f, tx, left);
        no_memory = true;
        int rc = many_calls(f, tx, &model);

        no_memory = false;
        assert_true(rc == 0 || rc == -ENOMEM);
        assert_true(rc < 0 || left > 0);
        assert_ok(minl2r_tx_abort(tx));
        check_slab(f, &model, free_at_first);
    }
}

/* ---- Damage ---------------------------------------------------------------------- */

#define PER_BLOCK ((size_t)31) /* objects of 128 B in 4 KiB */

/* A slab with two listed blocks of 128 B objects, the newer one first, and a full one.
 */
struct two_blocks {
    uint64_t head_word; /* offset of the head */
    uint64_t newer, older;
    uint64_t in_older, in_full; /* objects */
};

static struct two_blocks make_two_blocks(struct fixture *f)
{
    struct two_blocks two = {0};
    uint64_t objects[2 * PER_BLOCK + 2];

    fixture_create(f, POOL_SIZE, NULL);
    const struct minl2r_slab *slab = slab_of(f);

    assert_int_equal(objects_per_block(f, 128), PER_BLOCK);
    for (size_t i = 0; i < 2 * PER_BLOCK + 2; i++)
        objects[i] = alloc_committed(f, 128);
    free_committed(f, objects[0], 128);
    for (unsigned i = 0; i < MINL2R_SLAB_CLASSES; i++)
        if (slab->partial[i])
            two.head_word = minl2r_offset(f->pool, &slab->partial[i]);
    two.in_older = objects[1];
    two.in_full = objects[PER_BLOCK];
    two.older = block_of(f, objects[1]);
    two.newer = block_of(f, objects[2 * PER_BLOCK]);
    fixture_close(f);
    return two;
}

static void damage(struct fixture *f, uint64_t offset, uint64_t value)
{
    fixture_poke(f, offset, &value, sizeof(value));
    fixture_open(f);
}

static void assert_alloc_is_euclean(struct fixture *f, const char *words)
{
    struct minl2r_tx *tx = begin(f);
    uint64_t offset;

    assert_error(minl2r_slab_alloc(tx, slab_of(f), 128, &offset), EUCLEAN, words);
    assert_ok(minl2r_tx_abort(tx));
}

static void a_head_outside_the_pool_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.head_word, (uint64_t)1 << 50);
    assert_alloc_is_euclean(*state, "which is no block");
}

static void a_head_inside_a_block_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.head_word, two.newer + 64);
    assert_alloc_is_euclean(*state, "which is no block");
}

static void a_head_that_names_another_kind_of_block_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.newer, 0);
    assert_alloc_is_euclean(*state, "which is no block");
}

static void a_head_that_is_not_the_first_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.head_word, two.older);
    assert_alloc_is_euclean(*state, "is broken");
}

/* The link is followed when the head becomes full. */
static void a_listed_block_whose_neighbour_is_broken_is_euclean(void **state)
{
    struct fixture *f = *state;
    struct two_blocks two = make_two_blocks(f);
    struct minl2r_tx *tx;
    uint64_t offset;
    int rc = 0;

    damage(f, two.older + offsetof(struct pm_slab_block, prev), two.older);
    tx = begin(f);
    while (rc == 0)
        rc = minl2r_slab_alloc(tx, slab_of(f), 128, &offset);
    assert_error(rc, EUCLEAN, "is broken");
    assert_ok(minl2r_tx_abort(tx));
}

static void assert_free_is_euclean(struct fixture *f, uint64_t offset,
                                   const char *words)
{
    struct minl2r_tx *tx = begin(f);

    assert_error(minl2r_slab_free(tx, slab_of(f), offset, 128), EUCLEAN, words);
    assert_ok(minl2r_tx_abort(tx));
}

static void making_room_in_a_list_with_a_broken_link_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.newer + offsetof(struct pm_slab_block, next), 16);
    assert_free_is_euclean(*state, two.in_full, "which is no block");
}

static void making_room_in_a_list_with_a_broken_link_back_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.older + offsetof(struct pm_slab_block, prev), two.older);
    assert_free_is_euclean(*state, two.in_full, "is broken");
}

static void a_listed_block_without_room_is_euclean(void **state)
{
    struct two_blocks two = make_two_blocks(*state);

    damage(*state, two.newer + offsetof(struct pm_slab_block, used), UINT64_MAX);
    assert_alloc_is_euclean(*state, "is broken");
}

static void a_block_that_is_emptied_and_not_listed_is_euclean(void **state)
{
    struct fixture *f = *state;
    struct two_blocks two = make_two_blocks(f);
    uint64_t bits;

    fixture_peek(f, two.older + offsetof(struct pm_slab_block, used), &bits,
                 sizeof(bits));
    bits &= ~(((uint64_t)1 << 31) - 1); /* the bits past the last of 31 objects */
    damage(f, two.older + offsetof(struct pm_slab_block, used), bits | 2);
    fixture_close(f);
    damage(f, two.newer + offsetof(struct pm_slab_block, next), 0);
    assert_free_is_euclean(f, two.in_older, "is broken");
}

/* Whatever the bytes of a block's header are, calls end with an answer. */
static void any_damaged_word_gives_an_answer(void **state)
{
    struct fixture *f = *state;
    struct two_blocks two = make_two_blocks(f);
    uint64_t places[] = {two.head_word, two.newer, two.older};
    uint64_t random = 4;

    print_message("seed %llu\n", (unsigned long long)random);
    for (int i = 0; i < 300; i++) {
        uint64_t place = places[random_below(&random, 3)];
        uint64_t values[] = {0,         two.newer,       two.older,
                             place + 8, UINT64_MAX,      next_random(&random),
                             POOL_SIZE, POOL_SIZE - 4096};
        uint64_t good, offset;

        if (place != two.head_word)
            place += 8 * random_below(&random, 5);
        fixture_peek(f, place, &good, sizeof(good));
        damage(f, place, values[random_below(&random, 8)]);
        struct minl2r_tx *tx = begin(f);
        const struct minl2r_slab *slab = slab_of(f);

        minl2r_slab_free(tx, slab, two.in_older, 128);
        minl2r_slab_free(tx, slab, two.in_full, 128);
        for (int j = 0; j < 40; j++)
            if (minl2r_slab_alloc(tx, slab, 128, &offset) == 0 && j % 3 == 0)
                minl2r_slab_free(tx, slab, offset, 128);
        assert_ok(minl2r_tx_abort(tx));
        fixture_close(f);
        fixture_poke(f, place, &good, sizeof(good));
    }
}

#define TEST(name)                                                                     \
    cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(full_blocks_take_at_most_2_1_times_the_sizes_of_their_objects),
        TEST(full_blocks_take_at_most_2_3_times_the_sizes_if_blocks_are_small),
        TEST(an_object_of_0_bytes_is_einval),
        TEST(an_object_larger_than_a_zone_is_einval),
        TEST(random_calls_do_what_the_model_does),
        TEST(random_calls_do_what_the_model_does_with_small_blocks),
        TEST(random_calls_do_what_the_model_does_with_large_blocks),
        TEST(an_object_freed_by_a_transaction_is_not_handed_out_by_it),
        TEST(replacing_objects_in_full_blocks_does_not_take_a_block_each),
        TEST(what_a_transaction_allocates_and_frees_leaves_no_trace),
        TEST(an_allocation_changes_one_word),
        TEST(freeing_twice_in_one_transaction_is_einval),
        TEST(freeing_twice_is_einval_while_the_block_is_used),
        TEST(freeing_twice_is_einval_when_the_block_is_gone),
        TEST(freeing_twice_is_einval_for_whole_blocks),
        TEST(freeing_with_another_size_is_einval),
        TEST(freeing_at_any_other_offset_is_einval),
        TEST(a_slab_outside_the_data_area_is_einval),
        TEST(a_full_pool_is_enospc_and_can_be_emptied_and_filled_again),
        TEST(a_full_log_is_enospc_and_leaves_nothing_of_the_call_queued),
        TEST(without_memory_a_call_is_enomem_and_abort_leaves_the_slab_as_it_was),
        TEST(a_head_outside_the_pool_is_euclean),
        TEST(a_head_inside_a_block_is_euclean),
        TEST(a_head_that_names_another_kind_of_block_is_euclean),
        TEST(a_head_that_is_not_the_first_is_euclean),
        TEST(a_listed_block_whose_neighbour_is_broken_is_euclean),
        TEST(making_room_in_a_list_with_a_broken_link_is_euclean),
        TEST(making_room_in_a_list_with_a_broken_link_back_is_euclean),
        TEST(a_listed_block_without_room_is_euclean),
        TEST(a_block_that_is_emptied_and_not_listed_is_euclean),
        TEST(any_damaged_word_gives_an_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
