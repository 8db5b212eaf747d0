/* SPDX-License-Identifier: BSD-3-Clause */
/* Content and attributes: reading, writing, holes, truncation, times, cost. */
#include "tests/pmfs/pmfs_fixture.h"

#define BLOCK 4096u

/* Bytes that differ from place to place. */
static void fill(uint8_t *bytes, size_t size, uint32_t seed)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

static uint8_t *new_bytes(size_t size, uint32_t seed)
{
    uint8_t *bytes = malloc(size);

    assert_non_null(bytes);
    fill(bytes, size, seed);
    return bytes;
}

static void assert_zeros(struct fixture *f, uint64_t ino, uint64_t offset, size_t size)
{
    uint8_t *zeros = calloc(1, size);

    assert_non_null(zeros);
    assert_bytes(f, ino, offset, zeros, size);
    free(zeros);
}

/* ---- Reading and writing ------------------------------------------------------- */

static void what_is_written_is_read_back_after_remount(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(3 * MIB + 7, 1);

    write_all(f, ino, 0, bytes, 3 * MIB + 7);
    fixture_fsck_and_mount(f);
    assert_int_equal(attr_of(f, ino).size, 3 * MIB + 7);
    assert_bytes(f, ino, 0, bytes, 3 * MIB + 7);
    free(bytes);
}

static void writes_of_every_size_around_a_block_are_read_back(void **state)
{
    static const uint32_t sizes[] = {1,    7,    8,    9,    63,   64,   65,   2047,
                                     2048, 2049, 4095, 4096, 4097, 8191, 8192, 8193};
    static const uint32_t offsets[] = {0, 1, 63, 2048, 4095, 4096, 4097, 5 * BLOCK - 1};
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *model = new_bytes(16 * BLOCK, 1);

    write_all(f, ino, 0, model, 16 * BLOCK);
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        for (size_t o = 0; o < sizeof(offsets) / sizeof(*offsets); o++) {
            fill(model + offsets[o], sizes[s], (uint32_t)(s * 100 + o));
            write_all(f, ino, offsets[o], model + offsets[o], sizes[s]);
            assert_bytes(f, ino, 0, model, 16 * BLOCK);
        }
    }
    free(model);
}

static void reading_past_the_end_is_short(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    char buffer[16];
    size_t done;

    write_text(f, ino, 0, "abc");
    assert_ok(pmfs_read(f->fs, ino, 1, buffer, sizeof(buffer), &done));
    assert_int_equal(done, 2);
    assert_ok(pmfs_read(f->fs, ino, 3, buffer, sizeof(buffer), &done));
    assert_int_equal(done, 0);
    if (!BY_KERNEL) /* an offset has 63 bits there */
        assert_ok(pmfs_read(f->fs, ino, UINT64_MAX, buffer, sizeof(buffer), &done));
    assert_int_equal(done, 0);
}

static void hole_reads_as_zeros_and_takes_no_blocks(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    write_text(f, ino, 10 * BLOCK, "end");
    assert_zeros(f, ino, 0, 10 * BLOCK);
    assert_int_equal(attr_of(f, ino).blocks, 2 * BLOCK / 512); /* a node and a block */
}

static void write_into_a_hole_leaves_zeros_around_it(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");

    truncate_to(f, ino, 2 * BLOCK);
    write_text(f, ino, 100, "x");
    assert_zeros(f, ino, 0, 100);
    assert_zeros(f, ino, 101, 2 * BLOCK - 101);
}

static void file_can_be_16_tib_and_sparse(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    size_t done;

    write_text(f, ino, PMFS_FILE_SIZE_MAX - 3, "end");
    assert_bytes(f, ino, PMFS_FILE_SIZE_MAX - 3, "end", 3);
    assert_zeros(f, ino, MIB, BLOCK);
    assert_error(pmfs_write(f->fs, ino, PMFS_FILE_SIZE_MAX, "x", 1, 0, &done), EFBIG);
    const struct pmfs_attr large = {.size = PMFS_FILE_SIZE_MAX + 1};
    assert_error(pmfs_setattr(f->fs, ino, &large, PMFS_SET_SIZE, NULL), EFBIG);
    fixture_fsck_and_mount(f);
    truncate_to(f, ino, 0);
    assert_int_equal(attr_of(f, ino).blocks, 0);
}

static void write_is_cut_off_at_the_largest_size(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    size_t done = 7;

    assert_ok(pmfs_write(f->fs, ino, PMFS_FILE_SIZE_MAX - 3, "ending", 6, 0, &done));
    assert_int_equal(done, 3);
    assert_int_equal(attr_of(f, ino).size, PMFS_FILE_SIZE_MAX);
    assert_bytes(f, ino, PMFS_FILE_SIZE_MAX - 3, "end", 3);
    assert_error(pmfs_write(f->fs, ino, 0, "x", 1, PMFS_APPEND, &done), EFBIG);
    assert_error(pmfs_write(f->fs, ino, UINT64_MAX, "x", 1, 0, &done), EFBIG);
    assert_ok(pmfs_write(f->fs, ino, UINT64_MAX, "x", 0, 0, &done));
    assert_int_equal(done, 0);
}

static void append_writes_at_the_end_whatever_the_offset(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    size_t done;

    write_text(f, ino, 0, "abc");
    assert_ok(pmfs_write(f->fs, ino, 0, "def", 3, PMFS_APPEND, &done));
    assert_bytes(f, ino, 0, "abcdef", 6);
}

static void write_of_nothing_changes_nothing(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    struct pmfs_attr before = attr_of(f, ino);
    size_t done = 1;

    assert_ok(pmfs_write(f->fs, ino, 100, "", 0, 0, &done));
    assert_int_equal(done, 0);
    assert_int_equal(attr_of(f, ino).size, 0);
    assert_int_equal(attr_of(f, ino).mtime_ns, before.mtime_ns);
}

static void directory_is_no_file(void **state)
{
    struct fixture *f = *state;
    char buffer[4];
    size_t done;

    assert_error(pmfs_read(f->fs, ROOT, 0, buffer, 4, &done), EISDIR);
    assert_error(pmfs_write(f->fs, ROOT, 0, "x", 1, 0, &done), EISDIR);
    const struct pmfs_attr values = {.size = 0};
    assert_error(pmfs_setattr(f->fs, ROOT, &values, PMFS_SET_SIZE, NULL), EISDIR);
}

static void fifo_is_no_file(void **state)
{
    struct fixture *f = *state;
    size_t done;

    assert_ok(pmfs_mknod(f->fs, ROOT, "p", S_IFIFO | 0600, 0, &nobody, &f->attr));
    assert_refused(pmfs_write(f->fs, f->attr.ino, 0, "x", 1, 0, &done), EINVAL);
}

static void number_never_used_is_estale(void **state)
{
    struct fixture *f = *state;
    char buffer[4];
    size_t done;

    assert_error(pmfs_read(f->fs, 77, 0, buffer, 4, &done), ESTALE);
    assert_error(pmfs_getattr(f->fs, 0, &f->attr), ESTALE);
    assert_error(pmfs_getattr(f->fs, UINT64_MAX, &f->attr), ESTALE);
}

/* ---- Reading in place ---------------------------------------------------------- */

struct gathered {
    uint8_t bytes[4 * BLOCK];
    size_t size;
    int pieces;
};

static int gather(void *arg, const struct iovec *pieces, int count, size_t size)
{
    struct gathered *gathered = arg;

    for (int i = 0; i < count; i++) {
        memcpy(gathered->bytes + gathered->size, pieces[i].iov_base, pieces[i].iov_len);
        gathered->size += pieces[i].iov_len;
    }
    gathered->pieces = count;
    assert_int_equal(gathered->size, size);
    return 42;
}

static void reading_in_place_gives_the_same_bytes(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(4 * BLOCK, 3);
    struct gathered gathered = {0};

    memset(bytes + BLOCK, 0, BLOCK);
    write_all(f, ino, 0, bytes, BLOCK);
    write_all(f, ino, 2 * BLOCK, bytes + 2 * BLOCK, 2 * BLOCK - 5);
    assert_int_equal(pmfs_read_in_place(f->fs, ino, 100, 5 * BLOCK, gather, &gathered),
                     42);
    assert_int_equal(gathered.size, 4 * BLOCK - 105);
    assert_memory_equal(gathered.bytes, bytes + 100, gathered.size);
    free(bytes);
}

/* ---- Truncation ---------------------------------------------------------------- */

static void shrunk_and_grown_file_has_zeros(void **state)
{
    static const uint32_t sizes[] = {0, 1, 4095, 4096, 4097, 8000, 3 * BLOCK};
    struct fixture *f = *state;
    uint8_t *bytes = new_bytes(4 * BLOCK, 4);

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t ino = make_file(f, ROOT, "a");

        write_all(f, ino, 0, bytes, 4 * BLOCK);
        truncate_to(f, ino, sizes[i]);
        assert_int_equal(attr_of(f, ino).size, sizes[i]);
        truncate_to(f, ino, 4 * BLOCK);
        assert_bytes(f, ino, 0, bytes, sizes[i]);
        assert_zeros(f, ino, sizes[i], 4 * BLOCK - sizes[i]);
        assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    }
    free(bytes);
}

static void write_past_the_end_zeroes_the_gap(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(BLOCK, 5);

    write_all(f, ino, 0, bytes, BLOCK);
    truncate_to(f, ino, 10);
    write_text(f, ino, 100, "same block");
    assert_zeros(f, ino, 10, 90);
    truncate_to(f, ino, 10);
    write_text(f, ino, 3 * BLOCK + 5, "another block");
    assert_zeros(f, ino, 10, 3 * BLOCK - 5);
    free(bytes);
}

static void truncation_frees_blocks(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint64_t before = blocks_free(f);
    uint8_t *bytes = new_bytes(6 * MIB, 6);

    write_all(f, ino, 0, bytes, 6 * MIB);
    truncate_to(f, ino, 5 * MIB + 1);
    assert_int_equal(attr_of(f, ino).blocks, (5 * 256 + 1 + 4) * 8);
    assert_bytes(f, ino, 0, bytes, 5 * MIB + 1);
    fixture_fsck_and_mount(f);
    truncate_to(f, ino, 1);
    fixture_fsck_and_mount(f);
    assert_bytes(f, ino, 0, bytes, 1);
    truncate_to(f, ino, 0);
    assert_int_equal(blocks_free(f), before);
    free(bytes);
}

static void truncated_orphan_can_grow_again_with_zeros(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(6 * MIB, 7);

    write_all(f, ino, 0, bytes, 6 * MIB);
    assert_ok(pmfs_open(f->fs, ino));
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    truncate_to(f, ino, 3);
    truncate_to(f, ino, 6 * MIB);
    assert_zeros(f, ino, 3, 6 * MIB - 3);
    pmfs_release(f->fs, ino);
    free(bytes);
}

static void large_file_is_freed_by_unlink(void **state)
{
    struct fixture *f = *state;

    make_file(f, ROOT, "first");
    uint64_t before = blocks_free(f);
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(9 * MIB, 8);
    write_all(f, ino, 0, bytes, 9 * MIB);
    assert_ok(pmfs_unlink(f->fs, ROOT, "a"));
    assert_int_equal(blocks_free(f), before);
    free(bytes);
}

/* ---- Attributes ---------------------------------------------------------------- */

static void setattr_sets_what_the_mask_names_and_nothing_else(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    struct pmfs_attr before = attr_of(f, ino);
    const struct pmfs_attr values = {
        .mode = S_IFDIR | 04711, .uid = 7, .gid = 8, .atime_ns = 11, .mtime_ns = 12};

    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE, &f->attr));
    assert_int_equal(f->attr.mode, S_IFREG | 04711);
    assert_int_equal(f->attr.uid, before.uid);
    assert_int_equal(f->attr.mtime_ns, before.mtime_ns);
    assert_true(f->attr.ctime_ns > before.ctime_ns);
    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_GID, &f->attr));
    assert_int_equal(f->attr.uid, before.uid);
    assert_int_equal(f->attr.gid, 8);
    assert_ok(pmfs_setattr(f->fs, ino, &values,
                           PMFS_SET_UID | PMFS_SET_ATIME | PMFS_SET_MTIME, &f->attr));
    fixture_remount(f);
    assert_int_equal(attr_of(f, ino).uid, 7);
    assert_int_equal(f->attr.atime_ns, 11);
    assert_int_equal(f->attr.mtime_ns, 12);
    assert_refused(pmfs_setattr(f->fs, ino, &values, 1u << 30, NULL), EINVAL);
}

static void setattr_now_is_now(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    const struct pmfs_attr values = {.atime_ns = 1, .mtime_ns = 2};
    int64_t made_ns = f->attr.mtime_ns;

    assert_ok(
        pmfs_setattr(f->fs, ino, &values, PMFS_SET_ATIME | PMFS_SET_MTIME, &f->attr));
    assert_ok(pmfs_setattr(f->fs, ino, &values, PMFS_SET_ATIME_NOW | PMFS_SET_MTIME_NOW,
                           &f->attr));
    assert_true(f->attr.atime_ns > made_ns);
    assert_true(f->attr.mtime_ns > made_ns);
}

static int ignore_entry(void *arg, const struct pmfs_dirent *entry)
{
    (void)arg, (void)entry;
    return 0;
}

/* noatime: also where the last access is older than the last change. */
static void reading_changes_no_time(void **state)
{
    const struct pmfs_attr old = {.atime_ns = 12345678901};
    struct fixture *f = *state;
    uint64_t inos[3] = {make_file(f, ROOT, "file"), make_dir(f, ROOT, "dir")};
    struct pmfs_attr before[3];
    char found[16];
    size_t size;
    uint64_t at;

    assert_ok(pmfs_symlink(f->fs, ROOT, "link", "target", &nobody, &f->attr));
    inos[2] = f->attr.ino;
    write_text(f, inos[0], 0, "content");
    assert_ok(pmfs_setxattr(f->fs, inos[0], "user.a", "value", 5, 0));
    make_file(f, inos[1], "inner");
    for (int i = 0; i < 3; i++) {
        if (!S_ISLNK(attr_of(f, inos[i]).mode))
            assert_ok(pmfs_setattr(f->fs, inos[i], &old, PMFS_SET_ATIME, NULL));
        before[i] = attr_of(f, inos[i]);
    }
    assert_bytes(f, inos[0], 0, "content", 7);
    assert_ok(pmfs_seek(f->fs, inos[0], 0, PMFS_SEEK_DATA, &at));
    assert_ok(pmfs_getxattr(f->fs, inos[0], "user.a", found, sizeof(found), &size));
    assert_ok(pmfs_listxattr(f->fs, inos[0], found, sizeof(found), &size));
    assert_ok(pmfs_readdir(f->fs, inos[1], 0, 0, ignore_entry, NULL));
    find(f, inos[1], "inner");
    assert_ok(pmfs_readlink(f->fs, inos[2], found, sizeof(found)));
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < 3; i++) {
            struct pmfs_attr after = attr_of(f, inos[i]);

            assert_memory_equal(&after, &before[i], sizeof(after));
        }
        fixture_remount(f);
    }
    assert_int_equal(before[0].atime_ns, old.atime_ns);
}

static void write_and_truncate_set_times(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    struct pmfs_attr before = f->attr;

    write_text(f, ino, 0, "x");
    struct pmfs_attr written = attr_of(f, ino);
    assert_true(written.mtime_ns > before.mtime_ns);
    assert_int_equal(written.atime_ns, before.atime_ns);
    truncate_to(f, ino, 0);
    assert_true(attr_of(f, ino).mtime_ns > written.mtime_ns);
    assert_true(attr_of(f, ino).ctime_ns > written.ctime_ns);
}

/* ---- The filesystem ------------------------------------------------------------ */

static void statfs_follows_what_is_used(void **state)
{
    struct fixture *f = *state;
    struct pmfs_statfs before, after;
    uint8_t *bytes = new_bytes(BLOCK, 9);
    uint64_t ino = make_file(f, ROOT, "a");

    assert_ok(pmfs_statfs(f->fs, &before));
    write_all(f, ino, 0, bytes, BLOCK);
    assert_ok(pmfs_statfs(f->fs, &after));
    assert_int_equal(after.blocks_free, before.blocks_free - 1);
    assert_int_equal(after.blocks, before.blocks);
    make_file(f, ROOT, "b"); /* by another thread with a block of its own for inodes */
    assert_ok(pmfs_statfs(f->fs, &after));
    assert_int_equal(after.files - after.files_free,
                     before.files - before.files_free + 1);
    assert_true(after.blocks_available <= after.blocks_free);
    free(bytes);
}

/* ---- Cost ---------------------------------------------------------------------- */

static void overwrite_costs_two_fences(void **state)
{
    static const uint32_t sizes[] = {1, 64, 1000, 1100, 2047, 2048, 4096, 65536};
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(MIB, 10);
    size_t done;

    write_all(f, ino, 0, bytes, MIB);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        fill(bytes, MIB, 11 + (uint32_t)i);
        assert_int_equal(
            FENCES(f, pmfs_write(f->fs, ino, 8 * BLOCK, bytes, sizes[i], 0, &done)), 2);
    }
    free(bytes);
}

static void hole_fill_costs_two_fences(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(2 * BLOCK, 10);
    size_t done;

    write_all(f, ino, 8 * BLOCK, bytes, BLOCK);
    for (uint64_t i = 0; i < 6; i += 2)
        assert_int_equal(FENCES(f, pmfs_write(f->fs, ino, i * BLOCK, bytes,
                                              i < 4 ? 2 * BLOCK : 100, 0, &done)),
                         2);
    free(bytes);
}

static void append_inside_a_block_costs_two_fences(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    size_t done;

    write_text(f, ino, 0, "first");
    assert_int_equal(
        FENCES(f, pmfs_write(f->fs, ino, 0, "second", 6, PMFS_APPEND, &done)), 2);
    truncate_to(f, ino, 3);
    assert_int_equal(FENCES(f, pmfs_write(f->fs, ino, 500, "third", 5, 0, &done)), 2);
}

/* One that needs a new node of the block map, too, as the second one. */
static void append_of_blocks_costs_two_fences(void **state)
{
    static const size_t sizes[] = {BLOCK, BLOCK,     BLOCK, 100,       BLOCK, 100,
                                   MIB,   64 * 1024, MIB,   64 * 1024, MIB};
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(MIB, 12);
    size_t done;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++)
        assert_int_equal(
            FENCES(f, pmfs_write(f->fs, ino, 0, bytes, sizes[i], PMFS_APPEND, &done)),
            2);
    free(bytes);
}

/* New, over what is there, and so that each block of it changes in part. */
static void write_of_16_mib_is_one_transaction(void **state)
{
    static const uint64_t offsets[] = {0, 0, 100};
    struct fixture *f = *state;

    fixture_mkfs(f, 64 * MIB);
    fixture_mount(f);
    uint64_t ino = make_file(f, ROOT, "a");

    for (uint32_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
        uint8_t *bytes = new_bytes(16 * MIB, 20 + i);
        uint64_t commits = stats_of(f).commits;

        write_all(f, ino, offsets[i], bytes, 16 * MIB);
        assert_int_equal(stats_of(f).commits - commits, 1);
        assert_bytes(f, ino, offsets[i], bytes, 16 * MIB);
        free(bytes);
    }
    fixture_fsck_and_mount(f);
}

static void chmod_chown_and_small_truncate_cost_one_fence(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    const struct pmfs_attr values = {.mode = 0700, .uid = 5, .gid = 6, .size = 2};

    write_text(f, ino, 0, "hello");
    make_dir(f, ROOT, "b"); /* logs: it settles what that write left live */
    assert_int_equal(FENCES(f, pmfs_setattr(f->fs, ino, &values, PMFS_SET_MODE, NULL)),
                     1);
    assert_int_equal(
        FENCES(f, pmfs_setattr(f->fs, ino, &values, PMFS_SET_UID | PMFS_SET_GID, NULL)),
        1);
    assert_int_equal(FENCES(f, pmfs_setattr(f->fs, ino, &values, PMFS_SET_SIZE, NULL)),
                     1);
}

static void block_overwrite_takes_few_lines(void **state)
{
    struct fixture *f = *state;
    uint64_t ino = make_file(f, ROOT, "a");
    uint8_t *bytes = new_bytes(MIB, 13);

    write_all(f, ino, 0, bytes, MIB);
    fill(bytes, BLOCK, 14);
    struct minl2r_stats before = stats_of(f);
    write_all(f, ino, 64 * BLOCK, bytes, BLOCK);
    struct minl2r_stats after = stats_of(f);
    assert_int_equal(after.pointer_swaps - before.pointer_swaps, 1);
    uint64_t lines = after.lines_flushed + after.lines_streamed - before.lines_flushed -
                     before.lines_streamed;
    print_message("          4 KiB overwrite: %d lines besides the block's 64\n",
                  (int)lines - 64);
    assert_true(lines <= 64 + 8);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_is_written_is_read_back_after_remount),
        TEST(writes_of_every_size_around_a_block_are_read_back),
        TEST(reading_past_the_end_is_short),
        TEST(hole_reads_as_zeros_and_takes_no_blocks),
        TEST(write_into_a_hole_leaves_zeros_around_it),
        TEST(file_can_be_16_tib_and_sparse),
        TEST_IN_PROCESS(write_is_cut_off_at_the_largest_size),
        TEST(append_writes_at_the_end_whatever_the_offset),
        TEST(write_of_nothing_changes_nothing),
        TEST(directory_is_no_file),
        TEST(fifo_is_no_file),
        TEST_IN_PROCESS(number_never_used_is_estale),
        TEST_IN_PROCESS(reading_in_place_gives_the_same_bytes),
        TEST(shrunk_and_grown_file_has_zeros),
        TEST(write_past_the_end_zeroes_the_gap),
        TEST(truncation_frees_blocks),
        TEST(truncated_orphan_can_grow_again_with_zeros),
        TEST_IN_PROCESS(large_file_is_freed_by_unlink),
        TEST(setattr_sets_what_the_mask_names_and_nothing_else),
        TEST(setattr_now_is_now),
        TEST(reading_changes_no_time),
        TEST(write_and_truncate_set_times),
        TEST(statfs_follows_what_is_used),
        TEST_IN_PROCESS(overwrite_costs_two_fences),
        TEST_IN_PROCESS(hole_fill_costs_two_fences),
        TEST_IN_PROCESS(append_inside_a_block_costs_two_fences),
        TEST_IN_PROCESS(append_of_blocks_costs_two_fences),
        TEST_EMPTY_IN_PROCESS(write_of_16_mib_is_one_transaction),
        TEST_IN_PROCESS(chmod_chown_and_small_truncate_cost_one_fence),
        TEST_IN_PROCESS(block_overwrite_takes_few_lines),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
