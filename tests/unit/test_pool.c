/* SPDX-License-Identifier: BSD-3-Clause */
/* Pools: creating, opening, and everything that is refused, with the words that say
 * why. */
#include "tests/unit/fixture.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "libminl2r/alloc.h"
#include "libminl2r/check.h"
#include "libminl2r/pool.h"

#define MIB ((uint64_t)1 << 20)
#define SIZE (4 * MIB)

static bool exists(const struct fixture *f)
{
    return access(f->path, F_OK) == 0;
}

/* ---- Create: what it makes ------------------------------------------------------- */

static void new_pool_has_the_documented_defaults(void **state)
{
    struct fixture *f = *state;
    struct minl2r_info info;

    fixture_create(f, 64 * MIB, NULL);
    assert_ok(minl2r_pool_info(f->pool, &info));
    assert_string_equal(info.path, f->path);
    assert_string_equal(info.layout, "test");
    assert_int_equal(info.format, 1);
    assert_int_equal(info.pool_size, 64 * MIB);
    assert_int_equal(info.block_size, MINL2R_BLOCK_SIZE_DEFAULT);
    assert_int_equal(info.lanes, MINL2R_LANES_DEFAULT);
    assert_int_equal(info.log_size, MINL2R_LOG_SIZE_DEFAULT);
    assert_int_equal(info.pointer_threshold, MINL2R_BLOCK_SIZE_DEFAULT / 2);
    assert_int_equal(info.blocks_free, info.blocks);
    assert_int_equal(info.blocks_spare, 512);
}

static void options_are_kept_in_the_pool(void **state)
{
    struct fixture *f = *state;
    struct minl2r_options options = {
        .block_size = 512,
        .lanes = 3,
        .log_size = 8192,
        .pointer_threshold = MINL2R_POINTER_NEVER,
        .spare_blocks = 7,
    };
    struct minl2r_info info;

    fixture_create(f, SIZE, &options);
    fixture_reopen(f);
    assert_ok(minl2r_pool_info(f->pool, &info));
    assert_int_equal(info.block_size, 512);
    assert_int_equal(info.lanes, 3);
    assert_int_equal(info.log_size, 8192);
    assert_true(info.pointer_threshold > 512);
    assert_int_equal(info.blocks_spare, 7);
}

static void two_pools_have_different_uuids(void **state)
{
    struct fixture *f = *state;
    struct minl2r_info first, second;

    fixture_create(f, SIZE, NULL);
    assert_ok(minl2r_pool_info(f->pool, &first));
    fixture_close(f);
    assert_int_equal(unlink(f->path), 0);
    fixture_create(f, SIZE, NULL);
    assert_ok(minl2r_pool_info(f->pool, &second));
    assert_memory_not_equal(first.uuid, second.uuid, sizeof(first.uuid));
}

static void size_is_rounded_down_to_whole_blocks(void **state)
{
    struct fixture *f = *state;
    struct minl2r_info info;

    fixture_create(f, SIZE + 4095, NULL);
    assert_ok(minl2r_pool_info(f->pool, &info));
    assert_int_equal(info.pool_size, SIZE);
}

static void space_of_a_new_pool_is_allocated(void **state)
{
    struct fixture *f = *state;
    struct stat stat_buf;

    fixture_create(f, SIZE, NULL);
    assert_int_equal(stat(f->path, &stat_buf), 0);
    assert_true((uint64_t)stat_buf.st_blocks * 512 >= SIZE);
    assert_int_equal(stat_buf.st_mode & 07777, 0600);
}

static void mode_is_that_of_the_options(void **state)
{
    struct fixture *f = *state;
    struct minl2r_options options = {.mode = 0640};
    struct stat stat_buf;
    mode_t old = umask(0);

    fixture_create(f, SIZE, &options);
    umask(old);
    assert_int_equal(stat(f->path, &stat_buf), 0);
    assert_int_equal(stat_buf.st_mode & 07777, 0640);
}

static void ignore_problem(void *arg, const char *what)
{
    (void)arg;
    print_error("%s\n", what);
}

/* Zones that end anywhere: 1 block too few, just enough, one more. */
static void pools_of_every_block_size_and_odd_sizes_are_consistent(void **state)
{
    struct fixture *f = *state;
    uint64_t sizes[] = {MIB, MIB + 65536, 2 * MIB + 512, 4 * MIB + 1536, 5 * MIB};

    for (uint32_t block_size = 512; block_size <= 65536; block_size *= 2)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct minl2r_options options = {.block_size = block_size};

            fixture_create(f, sizes[i], &options);
            fixture_close(f);
            assert_ok(minl2r_pool_check(f->path, ignore_problem, NULL));
            fixture_open(f);
            fixture_close(f);
            assert_int_equal(unlink(f->path), 0);
        }
}

/* ---- Create: what it refuses ----------------------------------------------------- */

static void expect_refused(struct fixture *f, uint64_t size,
                           const struct minl2r_options *options, int errnum,
                           const char *words)
{
    assert_error(minl2r_pool_create(f->path, "test", size, options, &f->pool), errnum,
                 words);
    assert_false(exists(f));
}

static void options_out_of_range_are_refused_and_named(void **state)
{
    static const struct {
        struct minl2r_options options;
        const char *words;
    } cases[] = {
        {{.block_size = 256}, "block_size is 256"},
        {{.block_size = 4095}, "block_size is 4095"},
        {{.block_size = 131072}, "block_size is 131072"},
        {{.lanes = 1024}, "lanes is 1024"},
        {{.log_size = 4032}, "log_size is 4032"},
        {{.log_size = 8193}, "log_size is 8193"},
        {{.pointer_threshold = 4097}, "pointer_threshold is 4097"},
        {{.spare_blocks = 100000}, "spare_blocks is 100000"},
        {{.mode = 010000}, "mode is 010000"},
        {{.require = (enum minl2r_medium)5}, "require is 5"},
        {{.commit = (enum minl2r_commit)2}, "commit is 2"},
        {{.reserved = {[7] = 1}}, "reserved[7] is 1"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect_refused(*state, SIZE, &cases[i].options, EINVAL, cases[i].words);
}

static void sizes_that_no_pool_can_have_are_refused(void **state)
{
    expect_refused(*state, MIB - 1, NULL, EINVAL, "a pool of 1048575 bytes");
    expect_refused(*state, MINL2R_POOL_SIZE_MAX + 1, NULL, EINVAL, "only 1048576 to");
    expect_refused(*state, 0, NULL, EINVAL, "a pool of 0 bytes");
}

static void pool_without_room_for_its_logs_is_refused(void **state)
{
    struct minl2r_options options = {.lanes = 1023};

    expect_refused(*state, SIZE, &options, EINVAL, "too small for 1024 logs");
}

static void layout_name_that_is_too_long_is_refused(void **state)
{
    struct fixture *f = *state;
    char name[MINL2R_LAYOUT_MAX + 2];

    memset(name, 'x', sizeof(name));
    name[MINL2R_LAYOUT_MAX + 1] = '\0';
    assert_error(minl2r_pool_create(f->path, name, SIZE, NULL, &f->pool), EINVAL,
                 "64 characters");
    assert_false(exists(f));
    name[MINL2R_LAYOUT_MAX] = '\0';
    assert_ok(minl2r_pool_create(f->path, name, SIZE, NULL, &f->pool));
}

static void pool_larger_than_its_file_system_is_enospc_and_leaves_no_file(void **state)
{
    struct fixture *f = *state;
    int result = minl2r_pool_create(f->path, "test", (uint64_t)1 << 43, NULL, &f->pool);

    assert_true(result == -ENOSPC || result == -EFBIG);
    assert_false(exists(f));
}

static void existing_file_is_refused_and_untouched(void **state)
{
    struct fixture *f = *state;
    char text[5] = {0};
    int fd = open(f->path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    assert_int_equal(write(fd, "mine", 4), 4);
    close(fd);
    assert_error(minl2r_pool_create(f->path, "test", SIZE, NULL, &f->pool), EEXIST,
                 "File exists");
    fixture_peek(f, 0, text, 4);
    assert_string_equal(text, "mine");
}

static void lesser_medium_than_required_is_refused(void **state)
{
    struct fixture *f = *state;
    struct minl2r_options options = {.require = MINL2R_EADR};

    expect_refused(f, SIZE, &options, ENOTSUP, "\"eadr\" is required");
    fixture_create(f, SIZE, NULL);
    fixture_close(f);
    assert_error(minl2r_pool_open(f->path, NULL, &options, &f->pool), ENOTSUP,
                 "\"eadr\" is required");
    options.require = MINL2R_EMULATED;
    assert_ok(minl2r_pool_open(f->path, NULL, &options, &f->pool));
}

static void device_that_is_no_dax_device_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_error(minl2r_pool_create("/dev/null", "test", 0, NULL, &f->pool), EINVAL,
                 "/dev/null is a character device, but no DAX device");
    assert_error(minl2r_pool_open("/dev/null", "test", NULL, &f->pool), EINVAL,
                 "/dev/null is a character device, but no DAX device");
}

/* ---- Format: into memory --------------------------------------------------------- */

static uint8_t *make_memory(void)
{
    uint8_t *memory = aligned_alloc(4096, SIZE);

    assert_non_null(memory);
    memset(memory, 0xa5, SIZE);
    return memory;
}

static void memory_full_of_garbage_becomes_a_consistent_pool(void **state)
{
    uint8_t *memory = make_memory();
    struct minl2r_pool *pool = calloc(1, sizeof(*pool));
    struct pm pm;

    (void)state;
    pm_adopt(&pm, memory, SIZE, MINL2R_DAX);
    assert_ok(pool_format(&pm, "test", 0, NULL));
    assert_ok(pool_attach(pool, &pm, "test"));
    assert_ok(check_pool(pool, ignore_problem, NULL));
    pool_detach(pool);
    free(pool);
    free(memory);
}

static void memory_that_holds_a_pool_is_not_formatted_again(void **state)
{
    uint8_t *memory = make_memory();
    struct pm pm;

    (void)state;
    pm_adopt(&pm, memory, SIZE, MINL2R_DAX);
    assert_ok(pool_format(&pm, "test", 0, NULL));
    assert_error(pool_format(&pm, "test", 0, NULL), EEXIST, "a pool already");
    free(memory);
}

/* ---- Open: what it refuses ------------------------------------------------------- */

static void expect_open_error(struct fixture *f, int errnum, const char *words)
{
    assert_error(minl2r_pool_open(f->path, "test", NULL, &f->pool), errnum, words);
}

static void create_and_close(struct fixture *f)
{
    fixture_create(f, SIZE, NULL);
    fixture_close(f);
}

static void missing_file_is_enoent(void **state)
{
    expect_open_error(*state, ENOENT, "No such file");
}

static void directory_is_refused(void **state)
{
    struct fixture *f = *state;

    assert_true(minl2r_pool_open(f->dir, NULL, NULL, &f->pool) < 0);
}

static void named_pipe_is_refused_without_waiting(void **state)
{
    struct fixture *f = *state;

    assert_int_equal(mkfifo(f->path, 0600), 0);
    expect_open_error(f, EINVAL, "neither a file nor a device");
    assert_true(minl2r_pool_check(f->path, ignore_problem, NULL) < 0);
}

static void file_that_is_too_short_for_a_superblock_is_no_pool(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    assert_int_equal(truncate(f->path, 4095), 0);
    expect_open_error(f, EINVAL, "only 4095 bytes");
}

static void file_cut_short_is_damaged_and_both_sizes_are_told(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    assert_int_equal(truncate(f->path, 2 * MIB), 0);
    expect_open_error(f, EUCLEAN, "has 2097152 bytes, but its superblock says 4194304");
}

static void file_grown_longer_still_opens(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    assert_int_equal(truncate(f->path, 2 * SIZE), 0);
    fixture_open(f);
}

static uint64_t space_of(const struct fixture *f)
{
    struct stat info;

    assert_int_equal(stat(f->path, &info), 0);
    return (uint64_t)info.st_blocks * 512;
}

static void punch_hole(const struct fixture *f)
{
    int fd = open(f->path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, SIZE / 2, SIZE / 4),
        0);
    close(fd);
    assert_true(space_of(f) < SIZE);
}

static void holes_get_their_space_when_a_pool_is_opened(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    punch_hole(f);
    fixture_open(f);
    assert_true(space_of(f) >= SIZE);
}

static void holes_of_what_is_not_opened_stay(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    punch_hole(f);
    uint64_t space = space_of(f);

    assert_true(minl2r_pool_open(f->path, "other", NULL, &f->pool) < 0);
    assert_ok(minl2r_pool_check(f->path, ignore_problem, NULL));
    assert_int_equal(space_of(f), space);
}

static void file_of_other_bytes_is_no_pool(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    fixture_poke(f, 0, "PK\003\004", 4);
    expect_open_error(f, EINVAL, "not a MinL2R pool");
}

static void pool_whose_creation_was_cut_short_is_damaged(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    fixture_poke(f, 0, "\0\0\0\0\0\0\0", 8);
    expect_open_error(f, EUCLEAN,
                      "its creation was not finished, or it was overwritten");
}

static void other_layout_is_refused_and_both_are_named(void **state)
{
    struct fixture *f = *state;

    create_and_close(f);
    assert_error(minl2r_pool_open(f->path, "other", NULL, &f->pool), EINVAL,
                 "layout is \"test\", not \"other\"");
    assert_error(minl2r_pool_open(f->path, "tes", NULL, &f->pool), EINVAL,
                 "not \"tes\"");
    assert_ok(minl2r_pool_open(f->path, NULL, NULL, &f->pool));
}

static void open_with_reserved_options_is_refused(void **state)
{
    struct fixture *f = *state;
    struct minl2r_options options = {.reserved = {1}};

    create_and_close(f);
    assert_error(minl2r_pool_open(f->path, NULL, &options, &f->pool), EINVAL,
                 "reserved[0]");
}

/* Changes the superblock and makes its checksum right again. */
static void poke_super(struct fixture *f, size_t offset, const void *bytes, size_t size)
{
    struct pm_super super;

    fixture_peek(f, 0, &super, sizeof(super));
    memcpy((uint8_t *)&super + offset, bytes, size);
    super.checksum = super_checksum(&super);
    fixture_poke(f, 0, &super, sizeof(super));
}

static void newer_format_is_refused(void **state)
{
    struct fixture *f = *state;
    uint32_t format = 2;

    create_and_close(f);
    poke_super(f, offsetof(struct pm_super, format), &format, sizeof(format));
    expect_open_error(f, EPROTONOSUPPORT, "format is 2");
}

static void unknown_incompatible_feature_is_refused(void **state)
{
    struct fixture *f = *state;
    uint64_t bits = 4;

    create_and_close(f);
    poke_super(f, offsetof(struct pm_super, features_incompat), &bits, sizeof(bits));
    expect_open_error(f, EPROTONOSUPPORT, "features_incompat is 0x4");
}

static void unknown_read_only_feature_can_be_checked_but_not_opened(void **state)
{
    struct fixture *f = *state;
    uint64_t bits = 1;

    create_and_close(f);
    poke_super(f, offsetof(struct pm_super, features_ro), &bits, sizeof(bits));
    expect_open_error(f, EPROTONOSUPPORT, "features_ro is 0x1");
    assert_ok(minl2r_pool_check(f->path, ignore_problem, NULL));
}

static void unknown_compatible_feature_is_no_obstacle(void **state)
{
    struct fixture *f = *state;
    uint64_t bits = UINT64_MAX;

    create_and_close(f);
    poke_super(f, offsetof(struct pm_super, features_compat), &bits, sizeof(bits));
    fixture_open(f);
}

/* ---- Open: damaged superblocks --------------------------------------------------- */

static void each_flipped_bit_of_the_superblock_is_found(void **state)
{
    struct fixture *f = *state;
    struct pm_super super;

    create_and_close(f);
    fixture_peek(f, 0, &super, sizeof(super));
    for (size_t bit = 0; bit < 8 * sizeof(super); bit++) {
        uint8_t byte = ((const uint8_t *)&super)[bit / 8];
        uint8_t flipped = byte ^ (uint8_t)(1 << bit % 8);

        fixture_poke(f, bit / 8, &flipped, 1);
        int result = minl2r_pool_open(f->path, "test", NULL, &f->pool);

        assert_true(result == -EUCLEAN || result == -EINVAL ||
                    result == -EPROTONOSUPPORT);
        assert_true(strlen(minl2r_errormsg()) > 0);
        fixture_poke(f, bit / 8, &byte, 1);
    }
    fixture_open(f);
}

/* A liar computes checksums too: bounds are what protects. */
static void impossible_field_with_a_right_checksum_is_named(void **state)
{
    static const struct {
        size_t offset;
        size_t size;
        uint64_t value;
        const char *words;
    } cases[] = {
#define FIELD(field, value)                                                            \
    {offsetof(struct pm_super, field), sizeof(((struct pm_super *)0)->field), value,   \
     "superblock: " #field " is"}
        FIELD(format, 0),
        FIELD(super_size, 199),
        FIELD(super_size, UINT32_MAX),
        FIELD(pool_size, 0),
        FIELD(pool_size, SIZE + 1),
        FIELD(pool_size, UINT64_MAX),
        FIELD(pool_size, UINT64_MAX - 4095),
        FIELD(reserved_size, 1),
        FIELD(block_size, 0),
        FIELD(block_size, 256),
        FIELD(block_size, 4097),
        FIELD(block_size, 1u << 31),
        FIELD(lane_count, 0),
        FIELD(lane_count, 1),
        FIELD(lane_count, 1025),
        FIELD(lane_count, UINT32_MAX),
        FIELD(lanes_offset, 0),
        FIELD(lanes_offset, 4097),
        FIELD(lanes_offset, UINT64_MAX - 4095),
        FIELD(logs_offset, 0),
        FIELD(logs_offset, 4096),
        FIELD(logs_offset, SIZE),
        FIELD(logs_offset, UINT64_MAX - 4095),
        FIELD(zones_offset, 0),
        FIELD(zones_offset, 8192),
        FIELD(zones_offset, SIZE - 8192),
        FIELD(zones_offset, UINT64_MAX - 4095),
        FIELD(log_size, 0),
        FIELD(log_size, 4095),
        FIELD(pointer_threshold, 0),
        FIELD(pointer_threshold, 4098),
        FIELD(spare_blocks, UINT64_MAX),
#undef FIELD
    };
    struct fixture *f = *state;
    struct pm_super super;

    create_and_close(f);
    fixture_peek(f, 0, &super, sizeof(super));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        poke_super(f, cases[i].offset, &cases[i].value, cases[i].size);
        expect_open_error(f, EUCLEAN, cases[i].words);
        fixture_poke(f, 0, &super, sizeof(super));
    }
}

static void layout_without_end_is_damage(void **state)
{
    struct fixture *f = *state;
    char layout[64];

    create_and_close(f);
    memset(layout, 'x', sizeof(layout));
    poke_super(f, offsetof(struct pm_super, layout), layout, sizeof(layout));
    expect_open_error(f, EUCLEAN, "superblock: layout");
}

/* Whatever a field says, with a right checksum: an answer, and no crash. */
static void extreme_values_in_any_field_never_crash(void **state)
{
    static const uint64_t values[] = {
        0,       1,          2,         63,   64,         4095,       4096,      65536,
        1 << 20, UINT32_MAX, SIZE - 64, SIZE, 1ull << 40, 1ull << 63, UINT64_MAX};
    struct fixture *f = *state;
    struct pm_super super;

    create_and_close(f);
    fixture_peek(f, 0, &super, sizeof(super));
    for (size_t offset = 8; offset < offsetof(struct pm_super, checksum); offset += 4)
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
            for (size_t size = 4; size <= 8; size += 4) {
                poke_super(f, offset, &values[i], size);
                if (minl2r_pool_open(f->path, NULL, NULL, &f->pool) == 0)
                    fixture_close(f);
                fixture_poke(f, 0, &super, sizeof(super));
            }
    fixture_open(f);
}

static void refused_pool_is_not_written_to(void **state)
{
    struct fixture *f = *state;
    uint8_t *before = malloc(SIZE), *after = malloc(SIZE);
    uint64_t bad = 12345;

    assert_true(before && after);
    create_and_close(f);
    fixture_poke(f, offsetof(struct pm_super, created_s), &bad, sizeof(bad));
    fixture_peek(f, 0, before, SIZE);
    expect_open_error(f, EUCLEAN, "superblock: checksum is");
    fixture_peek(f, 0, after, SIZE);
    assert_memory_equal(before, after, SIZE);
    free(before);
    free(after);
}

/* ---- Who has it open ------------------------------------------------------------- */

static void pool_open_in_this_process_is_busy(void **state)
{
    struct fixture *f = *state;
    struct minl2r_pool *second;

    fixture_create(f, SIZE, NULL);
    assert_error(minl2r_pool_open(f->path, NULL, NULL, &second), EBUSY, "open already");
    assert_int_equal(minl2r_pool_check(f->path, ignore_problem, NULL), -EBUSY);
}

/* Runs in a child and answers with its exit code. */
static int in_child(struct fixture *f, int (*function)(struct fixture *f))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0)
        _exit(function(f));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int open_again(struct fixture *f)
{
    struct minl2r_pool *pool;

    return minl2r_pool_open(f->path, NULL, NULL, &pool) == -EBUSY ? 0 : 1;
}

static void pool_open_in_another_process_is_busy(void **state)
{
    fixture_create(*state, SIZE, NULL);
    assert_int_equal(in_child(*state, open_again), 0);
}

static int use_pool_of_parent(struct fixture *f)
{
    struct minl2r_tx *tx;
    const uint64_t *word =
        minl2r_at(f->pool, pool_offset(f->pool, pool_root_block(f->pool)));

    if (minl2r_tx_begin(f->pool, &tx) != -EPERM)
        return 1;
    if (!strstr(minl2r_errormsg(), "fork"))
        return 2;
    if (minl2r_store64(f->pool, word, 1) != -EPERM)
        return 3;
    if (minl2r_root(f->pool, 64) != NULL)
        return 4;
    return minl2r_pool_close(f->pool) == 0 ? 0 : 5;
}

static void child_of_fork_may_only_close_and_the_parent_goes_on(void **state)
{
    struct fixture *f = *state;

    fixture_create(f, SIZE, NULL);
    assert_int_equal(in_child(f, use_pool_of_parent), 0);
    assert_non_null(minl2r_root(f->pool, 64));
    assert_int_equal(in_child(f, open_again), 0);
}

/* A lock belongs to every process that inherited the file: closing is not enough. */
static void closed_pool_can_be_opened_although_a_child_still_lives(void **state)
{
    struct fixture *f = *state;
    int ends[2];
    char byte;

    fixture_create(f, SIZE, NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        close(ends[1]);
        _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1); /* until the parent is done */
    }
    close(ends[0]);
    fixture_reopen(f);
    close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static int close_pool(struct fixture *f)
{
    return minl2r_pool_close(f->pool) == 0 ? 0 : 1;
}

static void child_that_closes_does_not_unlock_the_pool_of_its_parent(void **state)
{
    fixture_create(*state, SIZE, NULL);
    assert_int_equal(in_child(*state, close_pool), 0);
    assert_int_equal(in_child(*state, open_again), 0);
}

static int open_after_parent(struct fixture *f)
{
    struct minl2r_pool *pool;
    struct minl2r_tx *tx;

    if (minl2r_pool_open(f->path, NULL, NULL, &pool) < 0)
        return 1;
    if (minl2r_tx_begin(pool, &tx) < 0 || minl2r_tx_commit(tx) < 0)
        return 2;
    return minl2r_pool_close(pool) == 0 ? 0 : 3;
}

static void child_may_use_a_pool_that_it_opened_itself(void **state)
{
    create_and_close(*state);
    assert_int_equal(in_child(*state, open_after_parent), 0);
}

/* ---- Poisoned -------------------------------------------------------------------- */

static void poisoned_pool_takes_no_changes_until_opened_again(void **state)
{
    struct fixture *f = *state;
    struct minl2r_tx *tx;

    fixture_create(f, SIZE, NULL);
    assert_int_equal(pool_poison(f->pool), -EIO);
    assert_error(minl2r_tx_begin(f->pool, &tx), EIO, "opened again");
    fixture_reopen(f);
    assert_ok(minl2r_tx_begin(f->pool, &tx));
    assert_ok(minl2r_tx_abort(tx));
}

/* ---- Bitmaps --------------------------------------------------------------------- */

static void fixed_bits_are_bitmap_root_and_what_lies_past_the_end(void **state)
{
    struct geometry geo = {.block_count = 4096 + 70, .zone_shift = 12};

    (void)state;
    assert_true(bitmap_fixed_bits(&geo, 0) == 3);
    assert_true(bitmap_fixed_bits(&geo, 64) == 0);
    assert_true(bitmap_fixed_bits(&geo, 4096) == 1);
    assert_true(bitmap_fixed_bits(&geo, 4096 + 64) == UINT64_MAX << 6);
    assert_true(bitmap_fixed_bits(&geo, 4096 + 128) == UINT64_MAX);
}

#define test(function)                                                                 \
    cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        test(new_pool_has_the_documented_defaults),
        test(options_are_kept_in_the_pool),
        test(two_pools_have_different_uuids),
        test(size_is_rounded_down_to_whole_blocks),
        test(space_of_a_new_pool_is_allocated),
        test(mode_is_that_of_the_options),
        test(pools_of_every_block_size_and_odd_sizes_are_consistent),
        test(options_out_of_range_are_refused_and_named),
        test(sizes_that_no_pool_can_have_are_refused),
        test(pool_without_room_for_its_logs_is_refused),
        test(layout_name_that_is_too_long_is_refused),
        test(pool_larger_than_its_file_system_is_enospc_and_leaves_no_file),
        test(existing_file_is_refused_and_untouched),
        test(lesser_medium_than_required_is_refused),
        test(device_that_is_no_dax_device_is_refused),
        test(memory_full_of_garbage_becomes_a_consistent_pool),
        test(memory_that_holds_a_pool_is_not_formatted_again),
        test(missing_file_is_enoent),
        test(directory_is_refused),
        test(named_pipe_is_refused_without_waiting),
        test(file_that_is_too_short_for_a_superblock_is_no_pool),
        test(file_cut_short_is_damaged_and_both_sizes_are_told),
        test(file_grown_longer_still_opens),
        test(holes_get_their_space_when_a_pool_is_opened),
        test(holes_of_what_is_not_opened_stay),
        test(file_of_other_bytes_is_no_pool),
        test(pool_whose_creation_was_cut_short_is_damaged),
        test(other_layout_is_refused_and_both_are_named),
        test(open_with_reserved_options_is_refused),
        test(newer_format_is_refused),
        test(unknown_incompatible_feature_is_refused),
        test(unknown_read_only_feature_can_be_checked_but_not_opened),
        test(unknown_compatible_feature_is_no_obstacle),
        test(each_flipped_bit_of_the_superblock_is_found),
        test(impossible_field_with_a_right_checksum_is_named),
        test(layout_without_end_is_damage),
        test(extreme_values_in_any_field_never_crash),
        test(refused_pool_is_not_written_to),
        test(pool_open_in_this_process_is_busy),
        test(pool_open_in_another_process_is_busy),
        test(child_of_fork_may_only_close_and_the_parent_goes_on),
        test(closed_pool_can_be_opened_although_a_child_still_lives),
        test(child_that_closes_does_not_unlock_the_pool_of_its_parent),
        test(child_may_use_a_pool_that_it_opened_itself),
        test(poisoned_pool_takes_no_changes_until_opened_again),
        test(fixed_bits_are_bitmap_root_and_what_lies_past_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
