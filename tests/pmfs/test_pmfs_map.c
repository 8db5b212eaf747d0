/* SPDX-License-Identifier: BSD-3-Clause */
/* Block maps against a plain array, at every height. */
#include "pmfs-proto/core/map.h"
#include "tests/pmfs/pmfs_fixture.h"

/* A map of its own, in a file's inode that pmfs itself does not touch meanwhile. */
struct subject {
    struct fixture *f;
    const struct pm_map *pm;
};

static struct subject new_subject(struct fixture *f, uint32_t block_size)
{
    f->mkfs.pool.block_size = block_size;
    fixture_mkfs(f, 8 * MIB);
    fixture_mount(f);
    /* The reserved end of the superblock is as good as an inode. */
    return (struct subject){
        .f = f,
        .pm = (const struct pm_map *)(const void *)&f->fs->pm->reserved[0],
    };
}

static struct map view(const struct subject *subject)
{
    struct map map;

    assert_ok(map_init(&map, subject->f->fs, subject->pm, 77));
    return map;
}

static struct minl2r_tx *begin(const struct subject *subject)
{
    struct minl2r_tx *tx;

    assert_int_equal(minl2r_tx_begin(subject->f->fs->pool, &tx), 0);
    return tx;
}

/* Gives `index` a block that begins with its number; returns how many blocks that took.
 */
static uint64_t insert(const struct subject *subject, uint64_t index)
{
    struct map map = view(subject);
    struct minl2r_tx *tx = begin(subject);
    uint64_t *memory;

    assert_ok(map_insert(&map, tx, index, &memory));
    memory[0] = index;
    assert_ok(minl2r_tx_commit(tx));
    return map.added;
}

static bool has(const struct subject *subject, uint64_t index)
{
    struct map map = view(subject);
    const void *block;

    assert_ok(map_block(&map, index, &block));
    if (block)
        assert_int_equal(*(const uint64_t *)block, index);
    return block != NULL;
}

/* The first block from `index` on, or the first hole; `end`: none. */
static uint64_t next(const struct subject *subject, uint64_t index, uint64_t end,
                     enum map_wanted wanted)
{
    struct map map = view(subject);
    uint64_t found;

    assert_ok(map_next(&map, index, end, wanted, &found));
    return found;
}

/* Frees what lies between two indexes; returns how many blocks that freed. */
static uint64_t free_between(const struct subject *subject, uint64_t first,
                             uint64_t end)
{
    uint64_t freed = 0;

    while ((first = next(subject, first, end, MAP_BLOCK)) < end) {
        struct map map = view(subject);
        struct minl2r_tx *tx = begin(subject);
        uint64_t node_end = map_node_end(&map, first), before = freed;

        assert_ok(map_free(&map, tx, first, end < node_end ? end : node_end, &freed));
        assert_in_range(freed - before, 1,
                        subject->f->fs->block_size / 8 + MAP_HEIGHT_MAX);
        assert_ok(minl2r_tx_commit(tx));
    }
    return freed;
}

/* Frees all from `first` on. */
static uint64_t cut(const struct subject *subject, uint64_t first)
{
    return free_between(subject, first, UINT64_MAX >> 20);
}

static void new_map_has_no_block(void **state)
{
    struct subject subject = new_subject(*state, 4096);

    assert_false(has(&subject, 0));
    assert_false(has(&subject, UINT64_MAX >> 20));
    assert_int_equal(cut(&subject, 0), 0);
}

static void map_grows_as_high_as_the_index_needs(void **state)
{
    struct subject subject = new_subject(*state, 512);

    assert_int_equal(insert(&subject, 0), 1);
    assert_int_equal(subject.pm->height, 0);
    assert_int_equal(insert(&subject, 63), 2);
    assert_int_equal(subject.pm->height, 1);
    assert_int_equal(insert(&subject, 64), 3);
    assert_int_equal(subject.pm->height, 2);
    assert_int_equal(insert(&subject, ((uint64_t)1 << 35) - 1), 10);
    assert_int_equal(subject.pm->height, 6);
    assert_true(has(&subject, 0) && has(&subject, 63) && has(&subject, 64));
    assert_false(has(&subject, 1));
}

static void empty_map_grows_to_any_height_at_once(void **state)
{
    struct subject subject = new_subject(*state, 512);

    assert_int_equal(insert(&subject, (uint64_t)1 << 30), 7);
    assert_true(has(&subject, (uint64_t)1 << 30));
    assert_false(has(&subject, 0));
    assert_int_equal(cut(&subject, 0), 7);
    assert_int_equal(subject.pm->root, 0);
    assert_int_equal(subject.pm->height, 0);
}

static void index_past_the_highest_map_is_efbig(void **state)
{
    struct subject subject = new_subject(*state, 4096);
    struct map map = view(&subject);
    struct minl2r_tx *tx = begin(&subject);
    void *memory;

    assert_error(map_insert(&map, tx, (uint64_t)1 << 36, &memory), EFBIG);
    minl2r_tx_abort(tx);
}

static void cut_of_nothing_frees_nothing(void **state)
{
    struct subject subject = new_subject(*state, 512);

    insert(&subject, 5);
    insert(&subject, 100);
    assert_int_equal(cut(&subject, 101), 0);
    assert_int_equal(cut(&subject, (uint64_t)1 << 40), 0);
    assert_true(has(&subject, 5) && has(&subject, 100));
    assert_int_equal(cut(&subject, 6), 2); /* and its node */
    assert_true(has(&subject, 5));
    assert_int_equal(cut(&subject, 0), 3);
}

/* What is looked for, from every index on, is where the array says. */
static void assert_finds(const struct subject *subject, const bool *model,
                         uint64_t size)
{
    uint64_t block = size, hole = size;

    for (uint64_t i = size; i-- > 0;) {
        if (model[i])
            block = i;
        else
            hole = i;
        assert_int_equal(next(subject, i, size, MAP_BLOCK), block);
        assert_int_equal(next(subject, i, size, MAP_HOLE), hole);
    }
}

/* Many inserts and cuts in one view each, compared with an array of flags. */
static void random_maps_are_what_an_array_says(void **state)
{
    enum { SIZE = 6000 };
    struct subject subject = new_subject(*state, 512);
    static bool model[SIZE];
    uint64_t random = 20150108, blocks = 0, free_before = blocks_free(subject.f);

    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 60; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            uint64_t index = (random >> 33) % SIZE;

            if (!model[index])
                blocks += insert(&subject, index);
            model[index] = true;
        }
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint64_t first = (random >> 33) % SIZE;
        uint64_t end = round % 2 ? SIZE : first + (random >> 20) % (SIZE - first);
        blocks -= free_between(&subject, first, end);
        memset(model + first, 0, end - first);
        for (uint64_t i = 0; i < SIZE; i++)
            assert_int_equal(has(&subject, i), model[i]);
        assert_finds(&subject, model, SIZE);
        assert_int_equal(blocks_free(subject.f), free_before - blocks);
    }
    blocks -= cut(&subject, 0);
    assert_int_equal(blocks, 0);
}

static void one_view_finds_the_nodes_that_its_transaction_adds(void **state)
{
    struct subject subject = new_subject(*state, 512);
    struct map map = view(&subject);
    struct minl2r_tx *tx = begin(&subject);
    uint64_t *memory;

    assert_ok(map_reserve(&map, tx, 5000));
    for (uint64_t i = 0; i < 5000; i += 13) {
        assert_ok(map_insert(&map, tx, i, &memory));
        memory[0] = i;
    }
    assert_ok(minl2r_tx_commit(tx));
    for (uint64_t i = 0; i < 5000; i++)
        assert_int_equal(has(&subject, i), i % 13 == 0);
    assert_int_equal(cut(&subject, 0), map.added);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(new_map_has_no_block),
        TEST_EMPTY(map_grows_as_high_as_the_index_needs),
        TEST_EMPTY(empty_map_grows_to_any_height_at_once),
        TEST_EMPTY(index_past_the_highest_map_is_efbig),
        TEST_EMPTY(cut_of_nothing_frees_nothing),
        TEST_EMPTY(random_maps_are_what_an_array_says),
        TEST_EMPTY(one_view_finds_the_nodes_that_its_transaction_adds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
