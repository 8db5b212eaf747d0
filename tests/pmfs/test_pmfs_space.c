/* SPDX-License-Identifier: BSD-3-Clause */
/* Which parts of a file have blocks: giving, punching, zeroing, seeking, copying. */
#include "tests/pmfs/pmfs_fixture.h"

#define BLOCK 4096u
#define NODE (512 * (uint64_t)BLOCK) /* what one lowest node names */
#define PUNCH (PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE)

static void fill(void *bytes, size_t size, uint32_t seed)
{
    uint8_t *byte = bytes;

    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525u + 1013904223u;
        byte[i] = (uint8_t)(seed >> 24) | 1; /* never 0 */
    }
}

static uint64_t make_filled(struct fixture *f, const char *name, size_t size)
{
    uint64_t ino = make_file(f, ROOT, name);
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    fill(bytes, size, 1);
    write_all(f, ino, 0, bytes, size);
    free(bytes);
    return ino;
}

/* The file holds what make_filled() wrote, but zeros from `offset` to `end`. */
static void assert_filled_but(struct fixture *f, uint64_t ino, size_t size,
                              size_t offset, size_t end)
{
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    fill(bytes, size, 1);
    memset(bytes + offset, 0, end - offset);
    assert_bytes(f, ino, 0, bytes, size);
    free(bytes);
}

static void assert_zeros(struct fixture *f, uint64_t ino, uint64_t offset, size_t size)
{
    uint8_t *zeros = calloc(1, size);

    assert_non_null(zeros);
    assert_bytes(f, ino, offset, zeros, size);
    free(zeros);
}

static int allocate(struct fixture *f, uint64_t ino, unsigned mode, uint64_t offset,
                    uint64_t size)
{
    return pmfs_fallocate(f->fs, ino, mode, offset, size);
}

/* Blocks of content: what is in nodes is not counted. */
static uint64_t data_blocks(struct fixture *f, uint64_t ino)
{
    uint64_t blocks = attr_of(f, ino).blocks / (BLOCK / 512);

    return blocks > 1 ? blocks - 1 : blocks;
}

/* ---- Allocating ---------------------------------------------------------------- */

static void allocating_gives_blocks_of_zeros_and_size(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(allocate(f, ino, 0, 5000, 10000));
    assert_int_equal(data_blocks(f, ino), 3);
    assert_int_equal(f->attr.size, 15000);
    assert_zeros(f, ino, 0, 15000);
}

static void allocating_keeps_what_is_there(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 5000);

    assert_ok(allocate(f, ino, 0, 0, 20000));
    assert_filled_but(f, ino, 5000, 0, 0);
    assert_zeros(f, ino, 5000, 15000);
}

/* A file cut inside a block has old bytes behind its end. */
static void allocating_past_a_cut_end_shows_zeros(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 4000);

    truncate_to(f, ino, 100);
    assert_ok(allocate(f, ino, 0, 200, 300));
    assert_zeros(f, ino, 100, 400);
    assert_ok(allocate(f, ino, PMFS_ZERO_RANGE, 450, 4000));
    assert_zeros(f, ino, 100, 4350);
    assert_filled_but(f, ino, 100, 0, 0);
}

static void kept_size_leaves_blocks_past_the_end(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100);

    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, 0, 5 * BLOCK));
    assert_int_equal(data_blocks(f, ino), 5);
    assert_int_equal(f->attr.size, 100);
    fixture_fsck_and_mount(f);
    assert_int_equal(data_blocks(f, ino), 5);

    uint64_t free_before = blocks_free(f);

    truncate_to(f, ino, 5 * BLOCK);
    assert_zeros(f, ino, 100, 5 * BLOCK - 100);
    assert_int_equal(blocks_free(f), free_before);
}

static void truncating_frees_blocks_past_the_end(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100);
    uint64_t free_before = blocks_free(f);

    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, 100, 5 * BLOCK));
    truncate_to(f, ino, 100);
    assert_int_equal(blocks_free(f), free_before - 1); /* the node */
    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, 2 * NODE, 3 * BLOCK));
    truncate_to(f, ino, 50);
    assert_int_equal(attr_of(f, ino).blocks, 3 * BLOCK / 512); /* two are nodes */
}

static void unlinking_frees_blocks_past_the_end(void **state)
{
    struct fixture *f = *state;
    uint64_t free_before = (make_file(f, ROOT, "keeps the directory"), blocks_free(f));
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, 0, 5 * BLOCK));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(blocks_free(f), free_before);
    ino = make_file(f, ROOT, "b");
    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, NODE - BLOCK, 3 * BLOCK));
    assert_ok(pmfs_unlink(f->fs, ROOT, "b"));
    assert_int_equal(blocks_free(f), free_before);
}

static void allocating_again_takes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(allocate(f, ino, 0, 0, 2 * NODE));

    uint64_t free_before = blocks_free(f);

    assert_ok(allocate(f, ino, 0, 0, 2 * NODE));
    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, 0, 2 * NODE));
    assert_int_equal(blocks_free(f), free_before);
}

static void allocating_more_than_there_is_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100);
    uint64_t free_before = blocks_free(f);

    assert_error(allocate(f, ino, 0, 0, 100 * MIB), ENOSPC);
    assert_int_equal(attr_of(f, ino).size, 100);
    assert_int_equal(blocks_free(f), free_before);
}

static void allocated_blocks_can_be_written_when_all_is_full(void **state)
{
    static uint8_t bytes[BLOCK];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a"), filler = make_file(f, ROOT, "b");
    size_t done;

    assert_ok(allocate(f, ino, 0, 0, 20 * BLOCK));
    while (pmfs_write(f->fs, filler, 0, bytes, BLOCK, PMFS_APPEND, &done) == 0)
        ;
    fill(bytes, sizeof(bytes), 3);
    for (uint64_t i = 0; i < 20; i++)
        write_all(f, ino, i * BLOCK, bytes, BLOCK);
    assert_bytes(f, ino, 19 * BLOCK, bytes, BLOCK);
}

/* ---- Punching and zeroing ------------------------------------------------------ */

static void punching_zeroes_any_range_and_frees_whole_blocks(void **state)
{
    static const struct {
        size_t offset, end;
        uint64_t freed;
    } ranges[] = {
        {10, 20, 0},
        {100, BLOCK, 0},
        {0, BLOCK, 1},
        {BLOCK - 1, 2 * BLOCK + 1, 1},
        {3 * BLOCK + 7, 9 * BLOCK - 7, 4},
        {2 * BLOCK, 10 * BLOCK, 8},
        {10 * BLOCK + 5, 10 * BLOCK + 100,
         0},                               /* of the last block, but not to its end */
        {10 * BLOCK, 10 * BLOCK + 700, 1}, /* to the end of the file */
        {9 * BLOCK, 10 * BLOCK + 700, 2},
    };
    struct fixture *f = *state;

    for (size_t i = 0; i < sizeof(ranges) / sizeof(*ranges); i++) {
        size_t size = 10 * BLOCK + 700;
        uint64_t ino = make_filled(f, "a", size);
        uint64_t blocks = data_blocks(f, ino);

        assert_ok(allocate(f, ino, PUNCH, ranges[i].offset,
                           ranges[i].end - ranges[i].offset));
        assert_filled_but(f, ino, size, ranges[i].offset, ranges[i].end);
        assert_int_equal(blocks - data_blocks(f, ino), ranges[i].freed);
        assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    }
}

static void punching_all_of_a_file_leaves_its_size_only(void **state)
{
    struct fixture *f = *state;
    size_t size = 2 * NODE + 5000;
    uint64_t ino = make_filled(f, "a", size);

    assert_ok(allocate(f, ino, PUNCH, 0, (uint64_t)1 << 40));
    assert_int_equal(attr_of(f, ino).blocks, 0);
    assert_int_equal(f->attr.size, size);
    assert_zeros(f, ino, 0, size);
}

static void punching_across_nodes_frees_those_left_empty(void **state)
{
    struct fixture *f = *state;
    size_t size = 3 * NODE;
    uint64_t ino = make_filled(f, "a", size);
    uint64_t free_before = blocks_free(f);

    assert_ok(allocate(f, ino, PUNCH, NODE - BLOCK, NODE + 2 * BLOCK));
    assert_int_equal(blocks_free(f) - free_before, 512 + 2 + 1);
    assert_filled_but(f, ino, size, NODE - BLOCK, 2 * NODE + BLOCK);
}

static void punching_a_hole_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    truncate_to(f, ino, PMFS_FILE_SIZE_MAX);

    struct pmfs_attr before = attr_of(f, ino);

    assert_ok(allocate(f, ino, PUNCH, 5, PMFS_FILE_SIZE_MAX - 5));
    assert_int_equal(attr_of(f, ino).blocks, 0);
    assert_int_equal(f->attr.mtime_ns, before.mtime_ns);
}

static void zeroing_gives_blocks_and_zeros(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 3 * BLOCK + 100);

    assert_ok(allocate(f, ino, PMFS_ZERO_RANGE | PMFS_KEEP_SIZE, 2 * BLOCK + 5, 20));
    assert_filled_but(f, ino, 3 * BLOCK + 100, 2 * BLOCK + 5, 2 * BLOCK + 25);
    assert_ok(allocate(f, ino, PMFS_ZERO_RANGE, BLOCK + 9, 9 * BLOCK));
    assert_int_equal(attr_of(f, ino).size, 10 * BLOCK + 9);
    assert_int_equal(data_blocks(f, ino), 11);
    assert_filled_but(f, ino, BLOCK + 9, 0, 0);
    assert_zeros(f, ino, BLOCK + 9, 9 * BLOCK);
}

static void full_filesystem_can_be_punched(void **state)
{
    static uint8_t bytes[BLOCK];
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    size_t done;

    while (pmfs_write(f->fs, ino, 0, bytes, BLOCK, PMFS_APPEND, &done) == 0)
        ;

    uint64_t size = attr_of(f, ino).size, free_before = blocks_free(f);

    for (uint64_t at = 0; at < size; at += 2 * BLOCK)
        assert_ok(allocate(f, ino, PUNCH, at, BLOCK));
    assert_int_equal(blocks_free(f) - free_before, (size / BLOCK + 1) / 2);
    assert_ok(allocate(f, ino, PUNCH, 0, size));
    assert_int_equal(attr_of(f, ino).blocks, 0);
}

static void impossible_ranges_and_modes_are_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100), dir = make_dir(f, ROOT, "d");

    assert_refused(allocate(f, ino, 0, 0, 0), EINVAL);
    assert_refused(allocate(f, ino, 0, PMFS_FILE_SIZE_MAX, 1), EFBIG);
    assert_refused(allocate(f, ino, 0, UINT64_MAX - 5, 10), EFBIG);
    assert_refused(allocate(f, ino, PMFS_PUNCH_HOLE, 0, 1), EOPNOTSUPP);
    assert_refused(allocate(f, ino, PUNCH | PMFS_ZERO_RANGE, 0, 1), EOPNOTSUPP);
    assert_refused(allocate(f, ino, 8, 0, 1), EOPNOTSUPP);
    assert_refused(allocate(f, dir, 0, 0, 1), EISDIR);
    assert_refused(allocate(f, 1000, 0, 0, 1), ESTALE);
    assert_ok(pmfs_mknod(f->fs, ROOT, "fifo", S_IFIFO | 0644, 0, &nobody, &f->attr));
    assert_refused(allocate(f, f->attr.ino, 0, 0, 1), ENODEV);
    assert_filled_but(f, ino, 100, 0, 0);
}

/* ---- Seeking ------------------------------------------------------------------- */

static void assert_seeks(struct fixture *f, uint64_t ino, uint64_t offset,
                         uint64_t data, uint64_t hole)
{
    uint64_t found = 7;
    int rc = pmfs_seek(f->fs, ino, offset, PMFS_SEEK_DATA, &found);

    assert_int_equal(rc, data == UINT64_MAX ? -ENXIO : 0);
    assert_int_equal(found, rc < 0 ? 7 : data);
    assert_ok(pmfs_seek(f->fs, ino, offset, PMFS_SEEK_HOLE, &found));
    assert_int_equal(found, hole);
}

static void seeking_finds_data_and_holes_at_any_distance(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t far = (uint64_t)1 << 43;

    write_text(f, ino, 2 * BLOCK + 5, "one");
    write_text(f, ino, far, "two");
    assert_seeks(f, ino, 0, 2 * BLOCK, 0);
    assert_seeks(f, ino, 2 * BLOCK + 100, 2 * BLOCK + 100, 3 * BLOCK);
    assert_seeks(f, ino, 3 * BLOCK, far, 3 * BLOCK);
    assert_seeks(f, ino, far + 2, far + 2, far + 3);
    truncate_to(f, ino, far + 10 * NODE + 9);
    assert_seeks(f, ino, far + BLOCK, UINT64_MAX, far + BLOCK);
    assert_seeks(f, ino, far + 5, far + 5, far + BLOCK);
}

static void seeking_past_the_end_is_enxio(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100), found;

    assert_refused(pmfs_seek(f->fs, ino, 100, PMFS_SEEK_DATA, &found), ENXIO);
    assert_refused(pmfs_seek(f->fs, ino, 100, PMFS_SEEK_HOLE, &found), ENXIO);
    assert_ok(allocate(f, ino, PMFS_KEEP_SIZE, 0, 5 * BLOCK));
    assert_seeks(f, ino, 99, 99, 100);
    assert_refused(pmfs_seek(f->fs, ino, 200, PMFS_SEEK_DATA, &found), ENXIO);
    assert_refused(pmfs_seek(f->fs, ROOT, 0, PMFS_SEEK_DATA, &found), EISDIR);
    assert_refused(pmfs_seek(f->fs, 1000, 0, PMFS_SEEK_DATA, &found), ESTALE);
}

/* ---- Copying ------------------------------------------------------------------- */

/* As programs do: until nothing is left. */
static void copy_all(struct fixture *f, uint64_t from, uint64_t from_offset,
                     uint64_t to, uint64_t to_offset, uint64_t size)
{
    uint64_t done = 1;

    while (size && done) {
        assert_ok(
            pmfs_copy_range(f->fs, from, from_offset, to, to_offset, size, &done));
        assert_true(done <= size);
        from_offset += done;
        to_offset += done;
        size -= done;
    }
}

static void copy_has_the_same_bytes_at_any_offset(void **state)
{
    static uint8_t bytes[3 * MIB];
    struct fixture *f = *state;
    uint64_t from = make_filled(f, "a", sizeof(bytes)), to = make_file(f, ROOT, "b");

    fill(bytes, sizeof(bytes), 1);
    copy_all(f, from, 77, to, 12345, sizeof(bytes));
    assert_int_equal(attr_of(f, to).size, 12345 + sizeof(bytes) - 77);
    assert_bytes(f, to, 12345, bytes + 77, sizeof(bytes) - 77);
    assert_zeros(f, to, 0, 12345);
}

static void copy_of_a_sparse_file_is_sparse(void **state)
{
    struct fixture *f = *state;
    uint64_t from = make_file(f, ROOT, "a"), to = make_filled(f, "b", 3 * NODE);
    uint64_t far = (uint64_t)1 << 42;

    write_text(f, from, 5 * BLOCK + 9, "one");
    write_text(f, from, far, "two");
    truncate_to(f, from, far + 1000 * NODE);
    copy_all(f, from, 0, to, 0, UINT64_MAX >> 20);
    assert_int_equal(attr_of(f, to).size, far + 1000 * NODE);
    assert_int_equal(f->attr.blocks, attr_of(f, from).blocks);
    assert_zeros(f, to, 0, 5 * BLOCK + 9);
    assert_bytes(f, to, 5 * BLOCK + 9, "one", 3);
    assert_zeros(f, to, 6 * BLOCK, 3 * NODE);
    assert_bytes(f, to, far, "two", 3);
}

static void hole_copied_over_data_reads_as_zeros(void **state)
{
    struct fixture *f = *state;
    uint64_t from = make_file(f, ROOT, "a");
    size_t size = 4 * BLOCK;

    truncate_to(f, from, 10 * BLOCK);
    for (uint64_t at = 0; at < 2 * BLOCK; at += 1365) {
        uint64_t to = make_filled(f, "b", size), copied = 2 * BLOCK + at, done;

        assert_ok(pmfs_copy_range(f->fs, from, 7, to, at, copied, &done));
        assert_int_equal(done, copied);
        assert_filled_but(f, to, size, at, at + copied < size ? at + copied : size);
        assert_ok(pmfs_unlink(f->fs, ROOT, "b"));
    }
}

/* The bytes behind the end of a cut file must not come back. */
static void hole_copied_past_a_cut_end_shows_zeros(void **state)
{
    struct fixture *f = *state;
    uint64_t from = make_file(f, ROOT, "a"), done;

    truncate_to(f, from, 10 * BLOCK);
    for (uint64_t at = 50; at < 5000; at += 150) {
        uint64_t to = make_filled(f, "b", BLOCK);

        truncate_to(f, to, 100);
        assert_ok(pmfs_copy_range(f->fs, from, 0, to, at, 9000, &done));
        assert_int_equal(done, 9000);
        assert_filled_but(f, to, 100, at < 100 ? at : 100, 100);
        assert_zeros(f, to, 100, at + done - 100);
        assert_ok(pmfs_unlink(f->fs, ROOT, "b"));
    }
}

static void copy_inside_a_file_may_not_overlap(void **state)
{
    static uint8_t bytes[1000];
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", sizeof(bytes)), done = 7;

    fill(bytes, sizeof(bytes), 1);
    assert_error(pmfs_copy_range(f->fs, ino, 0, ino, 999, 1000, &done), EINVAL);
    assert_error(pmfs_copy_range(f->fs, ino, 500, ino, 400, 101, &done), EINVAL);
    assert_int_equal(done, 7);
    assert_ok(pmfs_copy_range(f->fs, ino, 500, ino, 1000, 9999, &done));
    assert_int_equal(done, 500);
    assert_bytes(f, ino, 1000, bytes + 500, 500);
}

static void copy_is_cut_off_at_the_largest_size(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100), other = make_file(f, ROOT, "b"), done;
    uint8_t bytes[9];

    fill(bytes, sizeof(bytes), 1);
    assert_ok(pmfs_copy_range(f->fs, ino, 0, other, PMFS_FILE_SIZE_MAX - 9, 10, &done));
    assert_int_equal(done, 9);
    assert_int_equal(attr_of(f, other).size, PMFS_FILE_SIZE_MAX);
    assert_bytes(f, other, PMFS_FILE_SIZE_MAX - 9, bytes, 9);
}

static void copy_of_nothing_or_of_no_file_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", 100), done = 7;
    uint64_t other = make_file(f, ROOT, "b"), dir = make_dir(f, ROOT, "d");

    assert_ok(pmfs_copy_range(f->fs, ino, 100, other, 0, 10, &done));
    assert_int_equal(done, 0);
    assert_refused(pmfs_copy_range(f->fs, dir, 0, other, 0, 10, &done), EISDIR);
    assert_refused(pmfs_copy_range(f->fs, ino, 0, dir, 0, 10, &done), EISDIR);
    assert_refused(pmfs_copy_range(f->fs, ino, 0, other, PMFS_FILE_SIZE_MAX, 10, &done),
                   EFBIG);
    assert_refused(pmfs_copy_range(f->fs, ino, 0, 1000, 0, 10, &done), ESTALE);
    assert_refused(pmfs_copy_range(f->fs, 1000, 0, other, 0, 10, &done), ESTALE);
    assert_ok(pmfs_mknod(f->fs, ROOT, "fifo", S_IFIFO | 0644, 0, &nobody, &f->attr));
    assert_refused(pmfs_copy_range(f->fs, f->attr.ino, 0, other, 0, 10, &done), EINVAL);
    assert_int_equal(attr_of(f, other).size, 0);
}

/* ---- Cost ---------------------------------------------------------------------- */

static void each_is_one_transaction(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_filled(f, "a", NODE), to = make_file(f, ROOT, "b"), done;

    assert_int_equal(FENCES(f, allocate(f, ino, 0, NODE, NODE)), 3);
    assert_int_equal(FENCES(f, allocate(f, ino, PUNCH, 100, NODE - 200)), 3);
    assert_int_equal(FENCES(f, allocate(f, ino, PMFS_ZERO_RANGE, 0, NODE)), 3);
    assert_int_equal(FENCES(f, pmfs_copy_range(f->fs, ino, 0, to, 0, 1 << 20, &done)),
                     2);
    assert_int_equal(done, 1 << 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(allocating_gives_blocks_of_zeros_and_size),
        TEST(allocating_keeps_what_is_there),
        TEST(allocating_past_a_cut_end_shows_zeros),
        TEST(kept_size_leaves_blocks_past_the_end),
        TEST(truncating_frees_blocks_past_the_end),
        TEST_IN_PROCESS(unlinking_frees_blocks_past_the_end),
        TEST(allocating_again_takes_nothing),
        TEST(allocating_more_than_there_is_changes_nothing),
        TEST(allocated_blocks_can_be_written_when_all_is_full),
        TEST(punching_zeroes_any_range_and_frees_whole_blocks),
        TEST(punching_all_of_a_file_leaves_its_size_only),
        TEST(punching_across_nodes_frees_those_left_empty),
        TEST(punching_a_hole_changes_nothing),
        TEST(zeroing_gives_blocks_and_zeros),
        TEST(full_filesystem_can_be_punched),
        TEST(impossible_ranges_and_modes_are_refused),
        TEST(seeking_finds_data_and_holes_at_any_distance),
        TEST(seeking_past_the_end_is_enxio),
        TEST(copy_has_the_same_bytes_at_any_offset),
        TEST(copy_of_a_sparse_file_is_sparse),
        TEST(hole_copied_over_data_reads_as_zeros),
        TEST(hole_copied_past_a_cut_end_shows_zeros),
        TEST(copy_inside_a_file_may_not_overlap),
        TEST(copy_is_cut_off_at_the_largest_size),
        TEST(copy_of_nothing_or_of_no_file_is_refused),
        TEST_IN_PROCESS(each_is_one_transaction),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
