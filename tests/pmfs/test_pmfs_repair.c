/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Repair: damage made on purpose. What is safe to repair is repaired, and nothing is
 * found afterwards; what is not is named and stays as it is.
 */
#include "libminl2r/alloc.h"
#include "libminl2r/pool.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/view.h"
#include "tests/pmfs/damage.h"

/* ---- What repair says ---------------------------------------------------------- */

struct said {
    const char *wanted; /* words of `how`, or of `why_not` */
    bool seen;
    bool refuse; /* answer: no */
};

static bool listen(void *arg, const char *what, const char *how, const char *why_not)
{
    struct said *said = arg;

    if (strstr(how ? how : why_not, said->wanted))
        said->seen = true;
    if (getenv("PMFS_TEST_VERBOSE"))
        print_message("%s: %s\n", what, how ? how : why_not);
    return !said->refuse;
}

static bool refuse_all(void *arg, const char *what, const char *how,
                       const char *why_not)
{
    (void)arg;
    (void)what;
    (void)how;
    (void)why_not;
    return false;
}

/* Repairs by `how`; then nothing is found. Leaves the filesystem mounted. */
static void assert_repaired(struct fixture *f, const char *how)
{
    struct said said = {.wanted = how};
    struct pmfs_repair_summary summary;

    assert_error(pmfs_fsck(f->path, NULL, NULL, NULL), EUCLEAN);
    assert_ok(pmfs_repair(f->path, listen, &said, &summary));
    if (!said.seen)
        print_error("repair did not say: %s\n", how);
    assert_true(said.seen);
    assert_true(summary.repaired > 0);
    assert_int_equal(summary.left, 0);
    fixture_fsck(f);
    fixture_mount(f);
}

static uint64_t checksum(struct fixture *f, bool lanes_too)
{
    static uint8_t bytes[16 * MIB];
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);
    uint64_t sum = 14695981039346656037U;

    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
    close(fd);
    const struct pm_super *super = (const void *)bytes;
    for (uint64_t i = lanes_too ? 0 : super->zones_offset; i < sizeof(bytes); i++)
        sum = (sum ^ bytes[i]) * 1099511628211U;
    return sum;
}

/* Of the blocks and their bitmaps: opening a pool may settle its lanes. */
static uint64_t checksum_of(struct fixture *f)
{
    return checksum(f, false);
}

/* Repair must say that it leaves something, and why. */
static void assert_left(struct fixture *f, const char *why_not)
{
    struct said said = {.wanted = why_not};
    struct pmfs_repair_summary summary;

    assert_error(pmfs_repair(f->path, listen, &said, &summary), EUCLEAN);
    assert_true(said.seen);
    assert_true(summary.left > 0);
}

/* ---- What is repaired ---------------------------------------------------------- */

static void a_sound_filesystem_is_left_as_it_is(void **state)
{
    struct fixture *f = *state;
    struct pmfs_repair_summary summary;

    make_tree(f);
    fixture_unmount(f);
    uint64_t before = checksum(f, true);
    assert_ok(pmfs_repair(f->path, NULL, NULL, &summary));
    assert_int_equal(summary.repaired, 0);
    assert_int_equal(summary.fsck.directories, 3);
    assert_true(checksum(f, true) == before);
}

static void a_wrong_link_count_is_set_right(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "file", FIELD(nlink), 7, 4);
    assert_repaired(f, "set its link count to 2");
    assert_int_equal(attr_of(f, find(f, ROOT, "file")).nlink, 2);
}

static void a_wrong_link_count_of_a_directory_is_set_right(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "dir", FIELD(nlink), 9, 4);
    assert_repaired(f, "set its link count to 3");
}

static void a_wrong_count_of_blocks_is_set_right(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "file", FIELD(blocks), 7, 8);
    assert_repaired(f, "set the count to 27");
    assert_int_equal(attr_of(f, find(f, ROOT, "file")).blocks, 27 * BLOCK / 512);
}

static void a_directory_that_is_too_long_is_cut(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "dir", FIELD(size), 40 * BLOCK, 8);
    assert_repaired(f, "set its size in bytes to 4096");
    find(f, find(f, ROOT, "dir"), "sub");
}

/* Names in the part that was cut off count again. */
static void a_directory_that_is_too_short_gets_its_names_back(void **state)
{
    struct fixture *f = *state;
    uint64_t dir = make_dir(f, ROOT, "large");
    uint64_t inode_offset, state_offset;
    char name[32];

    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof(name), "a name of its own %d", i);
        make_file(f, dir, name);
    }
    place_of(f, dir, &inode_offset, &state_offset);
    assert_true(attr_of(f, dir).size > BLOCK);
    fixture_unmount(f);
    poke(f, inode_offset + FIELD(size), &(uint64_t){BLOCK}, sizeof(uint64_t));
    assert_repaired(f, "set its size in bytes to");
    find(f, dir, "a name of its own 299");
    assert_error(pmfs_lookup(f->fs, ROOT, "lost+found", &f->attr), ENOENT);
}

static void a_wrong_parent_is_set_right(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "dir", FIELD(parent), 3, 8);
    assert_repaired(f, "set its parent to 1");
    assert_int_equal(find(f, find(f, ROOT, "dir"), ".."), ROOT);
}

static void a_wrong_type_of_an_entry_is_set_right(void **state)
{
    struct fixture *f = *state;
    uint8_t fifo = S_IFIFO >> 12;

    make_tree(f);
    uint64_t entry = first_entry_of(f, ROOT);
    fixture_unmount(f);
    poke(f, entry + offsetof(struct pm_dirent, type), &fifo, 1);
    assert_repaired(f, "set the type of the entry to");
}

/* An inode whose entry is gone, and its tag. */
static void lose(struct fixture *f, const char *name)
{
    struct pmfs_attr attr = attr_of(f, find(f, ROOT, name));
    uint64_t entry = first_entry_of(f, ROOT);
    uint64_t block = entry - dirent_tags(f->fs);
    const struct pm_dirent *pm = minl2r_at(f->fs->pool, entry);

    for (; pm->ino != attr.ino; pm = minl2r_at(f->fs->pool, entry))
        entry += pm->size;
    fixture_unmount(f);
    poke(f, entry, &(uint64_t){0}, sizeof(uint64_t));
    poke(f, block + (entry - block) / PM_DIRENT_UNIT, &(uint8_t){0}, 1);
}

/* Of an entry that is there, and of one that is not. */
static void wrong_tags_are_made_anew(void **state)
{
    struct fixture *f = *state;
    const uint8_t wrong[2] = {0, 7};

    make_tree(f);
    uint64_t entry = first_entry_of(f, ROOT);
    uint64_t block = entry - dirent_tags(f->fs);
    fixture_unmount(f);
    poke(f, block + (entry - block) / PM_DIRENT_UNIT, wrong, sizeof(wrong));
    assert_repaired(f, "make the tags anew");
}

static void a_file_without_a_name_gets_one_in_lost_and_found(void **state)
{
    struct fixture *f = *state;
    uint8_t bytes[100];
    char name[32];

    make_tree(f);
    uint64_t ino = find(f, ROOT, "sparse");
    lose(f, "sparse");
    assert_repaired(f, "name it in /lost+found");
    snprintf(name, sizeof(name), "#%d", (int)ino);
    assert_int_equal(find(f, find(f, ROOT, "lost+found"), name), ino);
    memset(bytes, 'b', sizeof(bytes));
    assert_bytes(f, ino, (uint64_t)1 << 35, bytes, sizeof(bytes));
}

static void a_directory_without_a_name_keeps_what_is_in_it(void **state)
{
    struct fixture *f = *state;
    char name[32];

    make_tree(f);
    uint64_t ino = find(f, ROOT, "dir");
    lose(f, "dir");
    assert_repaired(f, "name it in /lost+found");
    snprintf(name, sizeof(name), "#%d", (int)ino);
    uint64_t lost = find(f, ROOT, "lost+found");
    uint64_t dir = find(f, lost, name);
    assert_int_equal(dir, ino);
    assert_int_equal(find(f, dir, ".."), lost);
    find(f, find(f, dir, "sub"), "small");
}

static void a_name_in_lost_and_found_that_is_taken_is_not_taken_away(void **state)
{
    struct fixture *f = *state;
    char name[32];

    make_tree(f);
    uint64_t ino = find(f, ROOT, "sparse");
    uint64_t lost = make_dir(f, ROOT, "lost+found");
    snprintf(name, sizeof(name), "#%d", (int)ino);
    uint64_t other = make_file(f, lost, name);
    lose(f, "sparse");
    assert_repaired(f, "name it in /lost+found");
    assert_int_equal(find(f, lost, name), other);
    snprintf(name, sizeof(name), "#%d.1", (int)ino);
    assert_int_equal(find(f, lost, name), ino);
}

/* The blocks of a file in the root are nobody's then. Leaves it unmounted. */
static void lose_blocks(struct fixture *f, const char *name)
{
    uint64_t inode_offset, state_offset;
    struct pm_inode empty = {0};

    place_of(f, find(f, ROOT, name), &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, inode_offset + FIELD(map), &empty.map, sizeof(empty.map));
    poke(f, inode_offset + FIELD(blocks), &empty.blocks, sizeof(empty.blocks));
}

/* Makes a file each of whose blocks has a content of its own. */
static void make_numbered(struct fixture *f, const char *name, uint64_t count)
{
    uint64_t ino = make_file(f, ROOT, name);
    uint64_t words[BLOCK / sizeof(uint64_t)];

    for (uint64_t i = 0; i < count; i++) {
        for (size_t at = 0; at < BLOCK / sizeof(uint64_t); at++)
            words[at] = (i + 1) << 32 | at;
        write_all(f, ino, i * BLOCK, (const uint8_t *)words, BLOCK);
    }
}

#define KEEP "keep them as a file in /lost+found"

static int note_kept(void *arg, const struct pmfs_dirent *entry)
{
    if (entry->name[0] == '#')
        snprintf(arg, PMFS_NAME_MAX + 1, "%s", entry->name);
    return 0;
}

/* The inode in lost+found that has the name noted last. */
static uint64_t find_kept(struct fixture *f, char name[PMFS_NAME_MAX + 1])
{
    uint64_t dir = find(f, ROOT, "lost+found");

    name[0] = 0;
    assert_ok(pmfs_readdir(f->fs, dir, 0, 0, note_kept, name));
    return find(f, dir, name);
}

static void read_pool(struct fixture *f, uint8_t bytes[16 * MIB])
{
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(read(fd, bytes, 16 * MIB), 16 * MIB);
    close(fd);
}

/* Is the file all blocks, in ascending order, as they were in `before`? */
static void assert_kept(struct fixture *f, uint64_t ino, const uint8_t *before,
                        uint64_t first)
{
    struct pmfs_attr attr = attr_of(f, ino);
    uint64_t inode_offset, state_offset, last = 0;
    struct map map;
    const struct pm_inode *pm = place_of(f, ino, &inode_offset, &state_offset).pm;
    const void *block;

    assert_int_equal(attr.mode, S_IFREG | 0600);
    assert_int_equal(attr.uid, 0);
    assert_true(attr.size > 0);
    assert_ok(map_init(&map, f->fs, &pm->map, ino));
    for (uint64_t i = 0; i < attr.size / BLOCK; i++) {
        assert_ok(map_block(&map, i, &block));
        uint64_t offset = minl2r_offset(f->fs->pool, block);

        assert_true(offset > last);
        if (i == 0)
            assert_int_equal(offset, first);
        assert_bytes(f, ino, i * BLOCK, before + offset, BLOCK);
        last = offset;
    }
}

/* Each number that make_numbered() gives, once. */
static void assert_numbered(struct fixture *f, uint64_t ino, uint64_t count)
{
    bool *seen = calloc(count, sizeof(*seen));
    uint64_t size = attr_of(f, ino).size, found = 0;
    uint64_t words[BLOCK / sizeof(uint64_t)], done;

    assert_non_null(seen);
    for (uint64_t at = 0; at < size; at += BLOCK) {
        assert_ok(pmfs_read(f->fs, ino, at, words, BLOCK, &done));
        uint64_t number = words[0] >> 32;
        if (number == 0 || number > count || words[1] != (words[0] | 1))
            continue; /* it was a node */
        assert_false(seen[number - 1]);
        seen[number - 1] = true;
        found++;
    }
    free(seen);
    assert_int_equal(found, count);
}

static void blocks_that_nothing_reaches_are_kept(void **state)
{
    struct fixture *f = *state;
    static uint8_t before[16 * MIB];
    char name[PMFS_NAME_MAX + 1];
    const uint64_t nodes = 5;

    make_numbered(f, "file", 2048);
    lose_blocks(f, "file");
    read_pool(f, before);
    assert_repaired(f, KEEP);
    uint64_t ino = find_kept(f, name);
    uint64_t first = strtoull(name + strlen("#blocks-"), NULL, 16);
    assert_int_equal(attr_of(f, ino).size, (2048 + nodes) * BLOCK);
    assert_kept(f, ino, before, first);
    assert_numbered(f, ino, 2048);

    uint64_t blocks = attr_of(f, ino).blocks * 512 / BLOCK,
             free_before = blocks_free(f);
    assert_int_equal(blocks, 2048 + nodes + 6);
    assert_ok(pmfs_unlink(f->fs, find(f, ROOT, "lost+found"), name));
    assert_true(blocks_free(f) >= free_before + blocks);
}

static void a_name_for_lost_blocks_that_is_taken_is_not_taken_away(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    char name[PMFS_NAME_MAX + 1];

    make_numbered(f, "file", 1);
    uint64_t lost = make_dir(f, ROOT, "lost+found");
    uint64_t block =
        place_of(f, find(f, ROOT, "file"), &inode_offset, &state_offset).pm->map.root;
    snprintf(name, sizeof(name), "#blocks-0x%llx", (unsigned long long)block);
    uint64_t other = make_file(f, lost, name);
    write_text(f, other, 0, "mine");
    lose_blocks(f, "file");
    assert_repaired(f, KEEP);
    assert_int_equal(find(f, lost, name), other);
    assert_bytes(f, other, 0, (const uint8_t *)"mine", 4);
    strcat(name, ".1");
    assert_numbered(f, find(f, lost, name), 1);
}

static void remove_unmounted(struct fixture *f, const char *name)
{
    fixture_mount(f);
    assert_ok(pmfs_unlink(f->fs, ROOT, name));
    fixture_unmount(f);
}

static void lost_blocks_are_left_if_lost_and_found_is_no_directory(void **state)
{
    struct fixture *f = *state;
    char name[PMFS_NAME_MAX + 1];

    make_numbered(f, "file", 1);
    make_file(f, ROOT, "lost+found");
    lose_blocks(f, "file");
    assert_left(f, "/lost+found is not a directory");
    remove_unmounted(f, "lost+found");
    assert_repaired(f, KEEP);
    assert_numbered(f, find_kept(f, name), 1);
}

/* Until nothing has room any more. */
static void fill(struct fixture *f, const char *name)
{
    static uint8_t bytes[BLOCK];
    uint64_t ino = make_file(f, ROOT, name);
    uint64_t done, at = 0;

    while (pmfs_write(f->fs, ino, at, bytes, sizeof(bytes), 0, &done) == 0)
        at += done;
}

static void lost_blocks_without_room_for_a_file_are_left(void **state)
{
    struct fixture *f = *state;
    char name[PMFS_NAME_MAX + 1];

    make_numbered(f, "file", 100);
    fill(f, "large");
    lose_blocks(f, "file");
    assert_left(f, "no room to " KEEP);
    assert_left(f, "no room to " KEEP);
    remove_unmounted(f, "large");
    assert_repaired(f, KEEP);
    assert_numbered(f, find_kept(f, name), 100);
}

/* What has room is kept; and when the user has looked at it and removed it, the rest. */
static void lost_blocks_are_kept_as_far_as_there_is_room(void **state)
{
    struct fixture *f = *state;
    struct pmfs_repair_summary summary;
    char name[PMFS_NAME_MAX + 1];

    make_numbered(f, "file", 2048);
    make_numbered(f, "small", 4);
    make_dir(f, ROOT, "lost+found");
    fill(f, "large");
    lose_blocks(f, "file");
    assert_left(f, "no room to " KEEP);
    remove_unmounted(f, "small");
    assert_error(pmfs_repair(f->path, NULL, NULL, &summary), EUCLEAN);
    assert_int_equal(summary.repaired, 1);
    assert_int_equal(summary.left, 1);
    assert_error(pmfs_repair(f->path, NULL, NULL, &summary), EUCLEAN);
    assert_int_equal(summary.repaired, 0);

    fixture_mount(f);
    uint64_t size = attr_of(f, find_kept(f, name)).size;
    assert_true(size > 0 && size < (uint64_t)2048 * BLOCK);
    assert_int_equal(size % ((uint64_t)512 * BLOCK), 0);
    assert_ok(pmfs_unlink(f->fs, find(f, ROOT, "lost+found"), name));
    fixture_unmount(f);
    assert_repaired(f, KEEP);
    assert_int_equal(attr_of(f, find_kept(f, name)).size, 2053 * BLOCK - size);
}

/* ---- Room ---------------------------------------------------------------------- */

/* What must not change if a repair is refused. */
struct state {
    struct minl2r_pool *pool;
    uint64_t content; /* of the blocks that are allocated, and which these are */
    uint64_t findings;
};

static void add_to(uint64_t *sum, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        *sum = (*sum ^ ((const uint8_t *)bytes)[i]) * 1099511628211U;
}

static void add_block(void *arg, uint64_t offset)
{
    struct state *state = arg;

    add_to(&state->content, &offset, sizeof(offset));
    add_to(&state->content, minl2r_at(state->pool, offset),
           (size_t)1 << state->pool->geo.block_shift);
}

static void add_finding(void *arg, const char *what)
{
    add_to(&((struct state *)arg)->findings, what, strlen(what) + 1);
}

static struct state state_of(struct fixture *f)
{
    struct state state = {0};

    assert_int_equal(minl2r_pool_open(f->path, NULL, NULL, &state.pool), 0);
    view_visit_allocated(state.pool, add_block, &state);
    minl2r_pool_close(state.pool);
    assert_error(pmfs_fsck(f->path, add_finding, &state, NULL), EUCLEAN);
    return state;
}

#define SMALL_BLOCK 512u
#define SMALL_POOL (2 * MIB)

/* Mounts a filesystem of small blocks. */
static void make_small(struct fixture *f)
{
    fixture_unmount(f);
    assert_int_equal(unlink(f->path), 0);
    f->mkfs.pool.block_size = SMALL_BLOCK;
    fixture_mkfs(f, SMALL_POOL);
    fixture_mount(f);
}

/* Fills it to the last block, by a file. */
static void fill_all(struct fixture *f, const char *name)
{
    static uint8_t bytes[64 * SMALL_BLOCK];
    uint64_t ino = make_file(f, ROOT, name), done;

    for (size_t size = sizeof(bytes); size >= SMALL_BLOCK; size /= 2) {
        while (pmfs_write(f->fs, ino, 0, bytes, size, PMFS_APPEND, &done) == 0) {
        }
    }
}

static void write_pool(struct fixture *f, const uint8_t *bytes)
{
    int fd = open(f->path, O_WRONLY | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, bytes, SMALL_POOL, 0), (ssize_t)SMALL_POOL);
    close(fd);
}

/* Repairs it with ever more room. Returns how often nothing at all was done. */
static unsigned repair_with_room(struct fixture *f, uint64_t most, const char *how)
{
    static uint8_t full[16 * MIB];
    struct pmfs_repair_summary summary;
    unsigned refused = 0;
    char why[128];
    int rc = 0;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    snprintf(why, sizeof(why), "no room to %s: remove something and try again", how);
    assert_true(fd >= 0);
    assert_int_equal(read(fd, full, SMALL_POOL), (ssize_t)SMALL_POOL);
    close(fd);
    for (uint64_t room = 0; room <= most; room++) {
        struct said said = {.wanted = why};

        write_pool(f, full);
        fixture_mount(f);
        uint64_t large = find(f, ROOT, "large");
        truncate_to(f, large, attr_of(f, large).size - room * SMALL_BLOCK);
        fixture_unmount(f);
        struct state before = state_of(f);
        rc = pmfs_repair(f->path, listen, &said, &summary);
        if (rc == 0) {
            fixture_fsck(f);
            continue;
        }
        assert_int_equal(rc, -EUCLEAN);
        assert_int_equal(summary.left, 1);
        assert_true(said.seen);
        struct state after = state_of(f);
        if (summary.repaired > 0) /* a part */
            continue;
        assert_true(after.content == before.content);
        assert_true(after.findings == before.findings);
        refused++;
    }
    assert_int_equal(rc, 0);
    return refused;
}

static void a_lost_file_without_room_for_its_name_changes_nothing(void **state)
{
    struct fixture *f = *state;

    for (int has_directory = 0; has_directory < 2; has_directory++) {
        make_small(f);
        make_file(f, ROOT, "lost");
        if (has_directory)
            make_dir(f, ROOT, "lost+found");
        fill_all(f, "large");
        lose(f, "lost");
        assert_int_not_equal(repair_with_room(f, 80, "name it in /lost+found"), 0);
        fixture_mount(f);
    }
}

static void lost_blocks_without_room_change_nothing(void **state)
{
    struct fixture *f = *state;

    for (int has_directory = 0; has_directory < 2; has_directory++) {
        make_small(f);
        make_numbered(f, "file", 1);
        if (has_directory)
            make_dir(f, ROOT, "lost+found");
        fill_all(f, "large");
        lose_blocks(f, "file");
        assert_int_not_equal(repair_with_room(f, 100, KEEP), 0);
        fixture_mount(f);
    }
}

/* Of more blocks than one transaction takes, a part has room before all have. */
static void many_lost_blocks_without_room_change_nothing(void **state)
{
    struct fixture *f = *state;

    for (int has_directory = 0; has_directory < 2; has_directory++) {
        make_small(f);
        make_numbered(f, "file", 1200 * SMALL_BLOCK / BLOCK);
        if (has_directory)
            make_dir(f, ROOT, "lost+found");
        fill_all(f, "large");
        lose_blocks(f, "file");
        assert_int_not_equal(repair_with_room(f, 100, KEEP), 0);
        fixture_mount(f);
    }
}

/* Files in a directory of a small filesystem, as one with numbers to take. */
static void make_files(struct fixture *f, uint64_t dir, unsigned count)
{
    char name[32];

    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "taken %u", i);
        make_file(f, dir, name);
    }
}

/* The table has to grow, for lost+found, for what is put there, or for neither; and
 * blocks of names are split. */
static void lost_blocks_without_room_for_a_number_change_nothing(void **state)
{
    struct fixture *f = *state;

    for (unsigned left = 0; left < 4; left++) {
        for (int has_directory = 0; has_directory < 2; has_directory++) {
            make_small(f);
            make_numbered(f, "file", 1);
            uint64_t lost = has_directory ? make_dir(f, ROOT, "lost+found") : ROOT;
            make_files(f, lost, (unsigned)table_free(f->fs) - 1 - left);
            fill_all(f, "large");
            lose_blocks(f, "file");
            assert_int_not_equal(repair_with_room(f, 70, KEEP), 0);
            fixture_mount(f);
        }
    }
}

/* Clears the bit of the block at `offset`. Unmounted. */
static void mark_free(struct fixture *f, uint64_t offset)
{
    struct minl2r_pool *pool;
    uint64_t bits;

    assert_int_equal(minl2r_pool_open(f->path, NULL, NULL, &pool), 0);
    uint64_t index = block_index(&pool->geo, offset);
    const uint64_t *word = pool_bitmap_word(pool, index);
    uint64_t at = pool_offset(pool, word);

    bits = *word & ~((uint64_t)1 << index % 64);
    minl2r_pool_close(pool);
    poke(f, at, &bits, sizeof(bits));
}

static void a_block_in_use_that_is_marked_free_is_marked(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;

    make_tree(f);
    uint64_t block =
        place_of(f, find(f, ROOT, "file"), &inode_offset, &state_offset).pm->map.root;
    fixture_unmount(f);
    mark_free(f, block);
    assert_repaired(f, "mark the block as allocated");
}

static void a_bitmap_that_is_marked_free_is_marked(void **state)
{
    struct fixture *f = *state;

    make_tree(f);
    uint64_t zones_offset = f->fs->pool->geo.zones_offset;
    fixture_unmount(f);
    mark_free(f, zones_offset);
    assert_repaired(f, "mark the pool's own blocks as allocated");
}

static bool count_offers(void *arg, const char *what, const char *how,
                         const char *why_not)
{
    (void)what;
    (void)why_not;
    *(int *)arg += how && strstr(how, "own blocks");
    return true;
}

/* The library finds each; one repair mends all, and is offered for no other finding. */
static void marking_the_pools_own_blocks_is_offered_once(void **state)
{
    struct fixture *f = *state;
    int offers = 0;

    make_tree(f);
    uint64_t zones_offset = f->fs->pool->geo.zones_offset;
    uint64_t super = minl2r_offset(f->fs->pool, f->fs->pm);
    fixture_unmount(f);
    mark_free(f, zones_offset);
    mark_free(f, super);
    assert_ok(pmfs_repair(f->path, count_offers, &offers, NULL));
    assert_int_equal(offers, 1);
    fixture_fsck(f);
}

/* Without it the root object cannot be had, nor anything else. */
static void a_superblock_whose_block_is_marked_free_is_marked(void **state)
{
    struct fixture *f = *state;

    make_tree(f);
    uint64_t super = minl2r_offset(f->fs->pool, f->fs->pm);
    fixture_unmount(f);
    mark_free(f, super);
    assert_repaired(f, "mark the pool's own blocks as allocated");
    find(f, ROOT, "file");
}

static void an_orphan_with_a_name_is_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    const uint8_t orphan = PM_STATE_ORPHAN;
    const uint32_t none = 0;

    make_tree(f);
    place_of(f, find(f, ROOT, "sparse"), &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, state_offset, &orphan, sizeof(orphan));
    poke(f, inode_offset + FIELD(nlink), &none, sizeof(none));
    assert_repaired(f, "keep it, with a link count of 1");
    assert_int_equal(attr_of(f, find(f, ROOT, "sparse")).nlink, 1);
}

/* Everything at once: what rests on something else is repaired after it. */
static void several_kinds_of_damage_are_repaired_in_one_run(void **state)
{
    struct fixture *f = *state;
    uint64_t dir, file, sparse, state_offset;

    make_tree(f);
    place_of(f, find(f, ROOT, "dir"), &dir, &state_offset);
    place_of(f, find(f, ROOT, "sparse"), &sparse, &state_offset);
    uint64_t block =
        place_of(f, find(f, ROOT, "file"), &file, &state_offset).pm->map.root;
    lose(f, "dir");
    poke(f, dir + FIELD(size), &(uint64_t){7 * BLOCK}, 8);
    poke(f, file + FIELD(nlink), &(uint32_t){40}, 4);
    poke(f, sparse + FIELD(map), &(struct pm_map){0}, sizeof(struct pm_map));
    mark_free(f, block);
    assert_repaired(f, "name it in /lost+found");
    assert_int_equal(attr_of(f, find(f, ROOT, "file")).nlink, 2);
    assert_int_equal(attr_of(f, find(f, ROOT, "sparse")).blocks, 0);
}

/* ---- What is left -------------------------------------------------------------- */

#define UNSAFE "not safe to repair"

static void a_file_whose_size_lacks_blocks_is_left(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "file", FIELD(size), 10, 8);
    uint64_t before = checksum_of(f);
    assert_left(f, UNSAFE);
    assert_true(checksum_of(f) == before);
}

static void a_name_of_a_free_inode_is_left(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    const uint8_t unused = PM_STATE_FREE;

    make_tree(f);
    place_of(f, find(f, ROOT, "file"), &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, state_offset, &unused, 1);
    uint64_t before = checksum_of(f);
    assert_left(f, UNSAFE);
    assert_true(checksum_of(f) == before);
}

/* The blocks of a map that cannot be read look lost; they are not freed. */
static void blocks_are_not_freed_while_a_block_map_is_damaged(void **state)
{
    struct fixture *f = *state;

    damage_field(f, "file", FIELD(map.root), (uint64_t)1 << 40, 8);
    uint64_t before = checksum_of(f);
    assert_left(f, "as long as other damage hides");
    assert_true(checksum_of(f) == before);
}

static void names_are_not_given_while_a_directory_is_damaged(void **state)
{
    struct fixture *f = *state;
    const uint32_t zero = 0;

    make_tree(f);
    uint64_t entry = first_entry_of(f, find(f, find(f, ROOT, "dir"), "sub"));
    fixture_unmount(f);
    poke(f, entry + offsetof(struct pm_dirent, size), &zero, sizeof(zero));
    assert_left(f, "as long as other damage hides");
    fixture_mount(f);
    assert_error(pmfs_lookup(f->fs, ROOT, "lost+found", &f->attr), ENOENT);
}

static void a_circle_of_directories_is_left(void **state)
{
    struct fixture *f = *state;
    uint64_t dir_offset, state_offset;

    make_tree(f);
    uint64_t dir = find(f, ROOT, "dir");
    uint64_t sub = find(f, dir, "sub");
    uint64_t entry = first_entry_of(f, sub);
    place_of(f, dir, &dir_offset, &state_offset);
    lose(f, "dir");
    poke(f, entry, &dir, sizeof(dir));
    poke(f, dir_offset + FIELD(parent), &sub, sizeof(sub));
    assert_left(f, UNSAFE);
}

static void a_name_of_the_root_in_the_tree_is_left(void **state)
{
    struct fixture *f = *state;
    const uint64_t root = ROOT;

    make_tree(f);
    uint64_t entry = first_entry_of(f, find(f, find(f, ROOT, "dir"), "sub"));
    fixture_unmount(f);
    poke(f, entry, &root, sizeof(root));
    assert_left(f, UNSAFE);
}

static void what_is_declined_is_left_and_asked_once(void **state)
{
    struct fixture *f = *state;
    struct pmfs_repair_summary summary;

    damage_field(f, "file", FIELD(nlink), 7, 4);
    uint64_t before = checksum_of(f);
    assert_error(pmfs_repair(f->path, refuse_all, NULL, &summary), EUCLEAN);
    assert_int_equal(summary.repaired, 0);
    assert_int_equal(summary.left, 1);
    assert_true(checksum_of(f) == before);
    struct said said = {.wanted = "it was declined", .refuse = true};
    assert_error(pmfs_repair(f->path, listen, &said, NULL), EUCLEAN);
    assert_true(said.seen);
}

static bool decline(void *arg, const char *what, const char *how, const char *why_not)
{
    (void)what;
    (void)why_not;
    return !how || !strstr(how, arg);
}

/* Mounting would free it: nothing is done that needs it mounted. */
static void an_orphan_that_is_not_to_be_kept_is_not_freed_by_other_repairs(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    const uint8_t orphan = PM_STATE_ORPHAN;
    const uint32_t none = 0;
    char declined[] = "keep it, with";
    char name[PMFS_NAME_MAX + 1];

    make_tree(f);
    make_numbered(f, "lost", 3);
    place_of(f, find(f, ROOT, "file"), &inode_offset, &state_offset);
    lose_blocks(f, "lost");
    poke(f, state_offset, &orphan, sizeof(orphan));
    poke(f, inode_offset + FIELD(nlink), &none, sizeof(none));
    uint64_t before = checksum_of(f);
    assert_error(pmfs_repair(f->path, decline, declined, NULL), EUCLEAN);
    assert_true(checksum_of(f) == before);
    assert_repaired(f, "keep it, with a link count of 2");
    assert_numbered(f, find_kept(f, name), 3);
    assert_int_equal(attr_of(f, find(f, ROOT, "file")).size, 100000);
}

/* lost+found may be among the names that are not found: there would be a second one. */
static void names_are_not_given_while_tags_are_wrong(void **state)
{
    struct fixture *f = *state;
    static uint8_t none[DIRENT_TAGS_MAX];
    char declined[] = "make the tags anew";

    make_tree(f);
    make_dir(f, ROOT, "lost+found");
    uint64_t ino = find(f, ROOT, "sparse");
    uint64_t block = first_entry_of(f, ROOT) - dirent_tags(f->fs);
    uint32_t size = dirent_tags(f->fs);
    lose(f, "sparse");
    poke(f, block, none, size);
    uint64_t before = checksum_of(f);
    assert_error(pmfs_repair(f->path, decline, declined, NULL), EUCLEAN);
    assert_true(checksum_of(f) == before);
    assert_repaired(f, "make the tags anew");
    assert_int_equal(attr_of(f, ino).nlink, 1);
}

/* Mounting would free it, and nobody would have its names any more. */
static void an_orphan_with_names_in_it_is_kept(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    const uint8_t orphan = PM_STATE_ORPHAN;
    const uint32_t none = 0;
    char name[32];

    make_tree(f);
    uint64_t ino = find(f, ROOT, "dir");
    place_of(f, ino, &inode_offset, &state_offset);
    lose(f, "dir");
    poke(f, state_offset, &orphan, sizeof(orphan));
    poke(f, inode_offset + FIELD(nlink), &none, sizeof(none));
    assert_repaired(f, "keep it, with a link count of 3");
    snprintf(name, sizeof(name), "#%d", (int)ino);
    find(f, find(f, find(f, ROOT, "lost+found"), name), "sub");
}

static bool count_questions(void *arg, const char *what, const char *how,
                            const char *why_not)
{
    (void)what;
    (void)why_not;
    *(int *)arg += how != NULL;
    return false;
}

static void each_of_many_repairs_is_asked_for_once(void **state)
{
    struct fixture *f = *state;
    const int count = 3000;
    int questions = 0;
    char name[32];
    struct pm_inode empty = {0};
    uint64_t inode_offset, state_offset;

    uint64_t dir = make_dir(f, ROOT, "dir");
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "%d", i);
        make_file(f, dir, name);
    }
    place_of(f, dir, &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, inode_offset + FIELD(map), &empty.map, sizeof(empty.map));
    poke(f, inode_offset + FIELD(blocks), &empty.blocks, sizeof(empty.blocks));
    poke(f, inode_offset + FIELD(size), &empty.size, sizeof(empty.size));
    assert_error(pmfs_repair(f->path, count_questions, &questions, NULL), EUCLEAN);
    assert_int_equal(questions, count + 1);
    assert_repaired(f, "name it in /lost+found");
}

static void a_pool_that_cannot_be_opened_is_refused(void **state)
{
    struct fixture *f = *state;
    const uint8_t damage[8] = {0};

    make_tree(f);
    assert_error(pmfs_repair(f->path, NULL, NULL, NULL), EBUSY);
    fixture_unmount(f);
    poke(f, offsetof(struct pm_super, checksum), damage, sizeof(damage));
    assert_left(f, "the pool cannot be opened");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_DAMAGED(a_sound_filesystem_is_left_as_it_is),
        TEST_DAMAGED(a_wrong_link_count_is_set_right),
        TEST_DAMAGED(a_wrong_link_count_of_a_directory_is_set_right),
        TEST_DAMAGED(a_wrong_count_of_blocks_is_set_right),
        TEST_DAMAGED(a_directory_that_is_too_long_is_cut),
        TEST_DAMAGED(a_directory_that_is_too_short_gets_its_names_back),
        TEST_DAMAGED(a_wrong_parent_is_set_right),
        TEST_DAMAGED(a_wrong_type_of_an_entry_is_set_right),
        TEST_DAMAGED(wrong_tags_are_made_anew),
        TEST_DAMAGED(a_file_without_a_name_gets_one_in_lost_and_found),
        TEST_DAMAGED(a_directory_without_a_name_keeps_what_is_in_it),
        TEST_DAMAGED(a_name_in_lost_and_found_that_is_taken_is_not_taken_away),
        TEST_DAMAGED(blocks_that_nothing_reaches_are_kept),
        TEST_DAMAGED(lost_blocks_are_left_if_lost_and_found_is_no_directory),
        TEST_DAMAGED(a_name_for_lost_blocks_that_is_taken_is_not_taken_away),
        TEST_DAMAGED(lost_blocks_without_room_for_a_file_are_left),
        TEST_DAMAGED(lost_blocks_are_kept_as_far_as_there_is_room),
        TEST_DAMAGED(a_lost_file_without_room_for_its_name_changes_nothing),
        TEST_DAMAGED(lost_blocks_without_room_change_nothing),
        TEST_DAMAGED(many_lost_blocks_without_room_change_nothing),
        TEST_DAMAGED(lost_blocks_without_room_for_a_number_change_nothing),
        TEST_DAMAGED(a_block_in_use_that_is_marked_free_is_marked),
        TEST_DAMAGED(a_bitmap_that_is_marked_free_is_marked),
        TEST_DAMAGED(marking_the_pools_own_blocks_is_offered_once),
        TEST_DAMAGED(a_superblock_whose_block_is_marked_free_is_marked),
        TEST_DAMAGED(an_orphan_with_a_name_is_kept),
        TEST_DAMAGED(several_kinds_of_damage_are_repaired_in_one_run),
        TEST_DAMAGED(a_file_whose_size_lacks_blocks_is_left),
        TEST_DAMAGED(a_name_of_a_free_inode_is_left),
        TEST_DAMAGED(blocks_are_not_freed_while_a_block_map_is_damaged),
        TEST_DAMAGED(names_are_not_given_while_a_directory_is_damaged),
        TEST_DAMAGED(a_circle_of_directories_is_left),
        TEST_DAMAGED(a_name_of_the_root_in_the_tree_is_left),
        TEST_DAMAGED(what_is_declined_is_left_and_asked_once),
        TEST_DAMAGED(an_orphan_that_is_not_to_be_kept_is_not_freed_by_other_repairs),
        TEST_DAMAGED(names_are_not_given_while_tags_are_wrong),
        TEST_DAMAGED(an_orphan_with_names_in_it_is_kept),
        TEST_DAMAGED(each_of_many_repairs_is_asked_for_once),
        TEST_DAMAGED(a_pool_that_cannot_be_opened_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
