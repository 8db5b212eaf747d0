/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damaged and hostile media: whatever a pool holds, checking, mounting and using it
 * ends, with an answer. First damage made on purpose, which must be found and named;
 * then a fuzz loop, which must only survive. PMFS_TEST_SEED and PMFS_TEST_STEPS choose
 * another loop.
 */
#include "libminl2r/pool.h"
#include "tests/pmfs/damage.h"
#include "tests/pmfs/use_all.h"

/* ---- Using whatever is there --------------------------------------------------- */

static void ignore_finding(void *arg, const char *what)
{
    (void)what;
    ++*(uint64_t *)arg;
}

/* Checks and uses the pool: nothing may be worse than an error. */
static void survive(struct fixture *f)
{
    uint64_t findings = 0;

    f->mount.flags = PMFS_COUNT_LOOKUPS;
    pmfs_fsck(f->path, ignore_finding, &findings, NULL);
    if (pmfs_mount(f->path, &f->mount, &f->fs) < 0) {
        f->fs = NULL;
        return;
    }
    use_all(f->fs);
    pmfs_unmount(f->fs);
    f->fs = NULL;
    pmfs_fsck(f->path, ignore_finding, &findings, NULL);
}

/* What is repaired does not come back, whatever else there is. */
static void survive_repair(struct fixture *f)
{
    struct pmfs_repair_summary summary = {0};
    int rc = pmfs_repair(f->path, NULL, NULL, &summary);

    if (rc == 0)
        fixture_fsck(f);
    else if (rc == -EUCLEAN && summary.repaired)
        assert_error(pmfs_repair(f->path, NULL, NULL, &summary), EUCLEAN);
    else
        return;
    assert_int_equal(rc == 0 ? 0 : summary.repaired, 0);
}

/* ---- Damage on purpose --------------------------------------------------------- */

struct words {
    const char *wanted;
    bool seen;
};

static void look_for_words(void *arg, const char *what)
{
    struct words *words = arg;

    if (strstr(what, words->wanted))
        words->seen = true;
    else if (getenv("PMFS_TEST_VERBOSE"))
        print_message("fsck: %s\n", what);
}

/* Fsck must say it, and use must survive. Unmounted. */
static void assert_found(struct fixture *f, const char *wanted)
{
    struct words words = {.wanted = wanted};

    assert_error(pmfs_fsck(f->path, look_for_words, &words, NULL), EUCLEAN);
    if (!words.seen)
        print_error("fsck did not say: %s\n", wanted);
    assert_true(words.seen);
    survive(f);
}

static void impossible_height_is_found(void **state)
{
    damage_field(*state, "file", FIELD(map.height), 255, 8);
    assert_found(*state, "its height of its block map is impossible");
}

static void block_outside_the_pool_is_found(void **state)
{
    damage_field(*state, "file", FIELD(map.root), (uint64_t)1 << 40, 8);
    assert_found(*state, "is no block of the pool");
}

static void misaligned_block_is_found(void **state)
{
    damage_field(*state, "sparse", FIELD(map.root), 2 * MIB + 8, 8);
    assert_found(*state, "is no block of the pool");
}

static void wrong_type_is_found(void **state)
{
    damage_field(*state, "file", FIELD(mode), 0644, 4);
    assert_found(*state, "its mode is impossible");
}

static void size_past_the_largest_file_is_found(void **state)
{
    damage_field(*state, "file", FIELD(size), UINT64_MAX, 8);
    assert_found(*state, "its size is impossible");
}

static void size_without_its_blocks_is_found(void **state)
{
    damage_field(*state, "file", FIELD(size), 10, 8);
    assert_found(*state, "blocks past its end");
}

static void directory_without_its_blocks_is_found(void **state)
{
    damage_field(*state, "dir", FIELD(size), 40 * BLOCK, 8);
    assert_found(*state, "39 blocks are missing");
}

static void unknown_flags_are_found(void **state)
{
    damage_field(*state, "file", FIELD(flags), 2, 4);
    assert_found(*state, "its flags is impossible");
}

static void attributes_without_their_blocks_are_found(void **state)
{
    damage_field(*state, "file", FIELD(xattr_size), BLOCK + 10, 8);
    assert_found(*state, "its extended attributes are impossible");
}

static void attributes_cut_in_the_middle_are_found(void **state)
{
    damage_field(*state, "dir", FIELD(xattr_size), 8000, 8);
    assert_found(*state, "its extended attributes are impossible");
}

static void attributes_that_are_too_many_are_found(void **state)
{
    damage_field(*state, "dir", FIELD(xattr_size), UINT64_MAX, 8);
    assert_found(*state, "its size of extended attributes is impossible");
}

static void wrong_link_count_is_found(void **state)
{
    damage_field(*state, "file", FIELD(nlink), 7, 4);
    assert_found(*state, "should have 2 links, and counts 7");
}

static void wrong_block_count_is_found(void **state)
{
    damage_field(*state, "file", FIELD(blocks), 7, 8);
    assert_found(*state, "blocks, and counts 7");
}

static void parent_that_is_another_is_found(void **state)
{
    damage_field(*state, "dir", FIELD(parent), 3, 8);
    assert_found(*state, "but its parent is 3");
}

static void root_that_is_no_directory_is_found_and_not_mounted_as_one(void **state)
{
    damage_field(*state, ".", FIELD(mode), S_IFREG | 0644, 4);
    assert_found(*state, "its role as the root is impossible");
}

static void lost_blocks_are_counted(void **state)
{
    damage_field(*state, "file", FIELD(map.root), 0, 8);
    assert_found(*state, "blocks are allocated but not reachable");
}

static void block_of_two_files_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t file, sparse, state_offset;

    make_tree(f);
    uint64_t root =
        place_of(f, find(f, ROOT, "file"), &file, &state_offset).pm->map.root;
    place_of(f, find(f, ROOT, "sparse"), &sparse, &state_offset);
    fixture_unmount(f);
    poke(f, sparse + FIELD(map.root), &root, sizeof(root));
    assert_found(f, "is used twice");
}

static void node_that_names_itself_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;

    make_tree(f);
    uint64_t root =
        place_of(f, find(f, ROOT, "sparse"), &inode_offset, &state_offset).pm->map.root;
    fixture_unmount(f);
    for (int i = 0; i < 512; i++)
        poke(f, root + (uint64_t)i * 8, &root, sizeof(root));
    assert_found(f, "is used twice");
}

/* The block of a zone's bitmap is marked free: the tree is whole. */
static void damage_of_the_pool_is_a_finding_and_the_tree_is_checked_too(void **state)
{
    struct fixture *f = *state;
    struct words words = {.wanted = "pool: bitmap of zone 0"};
    struct pmfs_fsck_summary summary;

    make_tree(f);
    uint64_t zones_offset = f->fs->pool->geo.zones_offset;
    uint64_t bits = *pool_bitmap_word(f->fs->pool, 0) & ~(uint64_t)1;
    fixture_unmount(f);
    poke(f, zones_offset, &bits, sizeof(bits));
    assert_error(pmfs_fsck(f->path, look_for_words, &words, &summary), EUCLEAN);
    assert_true(words.seen);
    assert_true(summary.findings >= 1);
    assert_int_equal(summary.directories, 3);
}

static void damage_that_hides_the_tree_is_one_finding(void **state)
{
    struct fixture *f = *state;
    struct words words = {.wanted = "its files were not looked at"};
    struct pmfs_fsck_summary summary;
    const uint8_t damage[8] = {0};

    make_tree(f);
    fixture_unmount(f);
    poke(f, offsetof(struct pm_super, checksum), damage, sizeof(damage));
    assert_error(pmfs_fsck(f->path, look_for_words, &words, &summary), EUCLEAN);
    assert_true(words.seen);
    assert_int_equal(summary.findings, 1);
    assert_int_equal(summary.directories, 0);
}

static void directory_that_contains_its_ancestor_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t dir_offset, state_offset, sub, dir, entry_offset;

    make_tree(f);
    dir = find(f, ROOT, "dir");
    sub = find(f, dir, "sub");
    entry_offset = first_entry_of(f, sub);
    uint64_t root_entry_offset = first_entry_of(f, ROOT);
    place_of(f, dir, &dir_offset, &state_offset);
    fixture_unmount(f);
    /* `dir` is in `sub`, and says so itself: a circle, cut off from the root. */
    poke(f, root_entry_offset, &(uint64_t){0}, sizeof(uint64_t));
    poke(f, entry_offset, &dir, sizeof(dir));
    poke(f, dir_offset + FIELD(parent), &sub, sizeof(sub));
    assert_found(f, "its parents lead in a circle");
}

static void entry_of_no_size_is_found(void **state)
{
    struct fixture *f = *state;
    uint32_t zero = 0;

    make_tree(f);
    uint64_t entry = first_entry_of(f, find(f, find(f, ROOT, "dir"), "sub"));
    fixture_unmount(f);
    poke(f, entry + offsetof(struct pm_dirent, size), &zero, sizeof(zero));
    assert_found(f, "the entry at byte 256 is impossible");
}

static void entry_of_no_position_is_found_and_listed(void **state)
{
    struct fixture *f = *state;
    uint8_t position = 254;

    make_tree(f);
    uint64_t sub = find(f, find(f, ROOT, "dir"), "sub");
    uint64_t entry = first_entry_of(f, sub);
    fixture_unmount(f);
    poke(f, entry + offsetof(struct pm_dirent, position), &position, sizeof(position));
    fixture_mount(f);
    static struct visit visit;
    assert_ok(pmfs_readdir(f->fs, sub, 0, 0, visit_remember, &visit));
    assert_int_equal(visit.count, 52);
    fixture_unmount(f);
    assert_found(f, "the position of \"");
}

/* A finding is one line, and a terminal obeys no name. */
static void findings_have_no_control_characters(void **state)
{
    struct fixture *f = *state;
    const uint8_t type = 3;

    make_file(f, ROOT, "line\nfeed\x1b[2J\xc2\x9b");
    uint64_t entry = first_entry_of(f, ROOT);
    fixture_unmount(f);
    poke(f, entry + offsetof(struct pm_dirent, type), &type, sizeof(type));
    assert_found(f, "line\\x0afeed\\x1b[2J\\xc2\\x9b\" has type 3");
}

static void name_with_a_slash_is_found_and_never_listed(void **state)
{
    struct fixture *f = *state;
    uint64_t sub;

    make_tree(f);
    sub = find(f, find(f, ROOT, "dir"), "sub");
    uint64_t entry = first_entry_of(f, sub);
    fixture_unmount(f);
    poke(f, entry + offsetof(struct pm_dirent, name), "../ab", 5);
    fixture_mount(f);
    static struct visit visit;
    assert_error(pmfs_readdir(f->fs, sub, 0, 0, visit_remember, &visit), EUCLEAN);
    assert_int_equal(visit.count, 0);
    fixture_unmount(f);
    assert_found(f, "the name at byte 256 is impossible");
}

/* The slots of the node of a large directory; leaves it unmounted. */
static uint64_t read_slots(struct fixture *f, uint64_t slots[BLOCK / 8])
{
    uint64_t inode_offset, state_offset;
    uint64_t root =
        place_of(f, make_large(f), &inode_offset, &state_offset).pm->map.root;

    assert_true(root & PM_DIR_NODE);
    memcpy(slots, minl2r_at(f->fs->pool, root - PM_DIR_NODE), BLOCK);
    fixture_unmount(f);
    return root - PM_DIR_NODE;
}

static void assert_listing_says(struct fixture *f, const char *what)
{
    struct visit visit = {0};

    fixture_mount(f);
    assert_error(
        pmfs_readdir(f->fs, find(f, ROOT, "large"), 0, 0, visit_remember, &visit),
        EUCLEAN);
    assert_non_null(strstr(pmfs_errormsg(), what));
    fixture_unmount(f);
}

static void assert_listing_is_euclean(struct fixture *f)
{
    assert_listing_says(f, "directory ");
}

static void directory_whose_node_leads_to_itself_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t slots[BLOCK / 8];
    uint64_t node = read_slots(f, slots), itself = node | PM_DIR_NODE;

    poke(f, node + 9 * sizeof(*slots), &itself, sizeof(itself));
    assert_listing_is_euclean(f);
    assert_found(f, "is used twice");
}

static void directory_that_leads_out_of_the_pool_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t slots[BLOCK / 8];
    uint64_t node = read_slots(f, slots), outside = ((uint64_t)1 << 40) | PM_DIR_NODE;

    poke(f, node + 9 * sizeof(*slots), &outside, sizeof(outside));
    assert_listing_is_euclean(f);
    assert_found(f, "can be no block here");
}

static void names_in_a_block_for_others_are_found(void **state)
{
    struct fixture *f = *state;
    uint64_t slots[BLOCK / 8];
    uint64_t node = read_slots(f, slots);
    uint64_t upper = BLOCK / 8 / 2;

    for (uint64_t i = 0; i < upper; i++) {
        poke(f, node + i * sizeof(*slots), &slots[upper], sizeof(*slots));
        poke(f, node + (upper + i) * sizeof(*slots), &slots[0], sizeof(*slots));
    }
    assert_listing_is_euclean(f);
    assert_found(f, "is in a block for other names");
}

/* Six nodes with nothing below them, and each leads to the next by all of its slots: that
 * is 512^6 ways. */
static void nodes_that_lead_to_nothing_in_many_ways_are_given_up(void **state)
{
    struct fixture *f = *state;
    uint64_t slots[BLOCK / 8], nodes[6];

    for (size_t i = 1; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
        uint64_t inode_offset, state_offset, file;
        char name[16];

        snprintf(name, sizeof(name), "node %zu", i);
        file = make_file(f, ROOT, name);
        write_text(f, file, 0, name);
        nodes[i] = place_of(f, file, &inode_offset, &state_offset).pm->map.root;
    }
    nodes[0] = read_slots(f, slots);
    memset(slots, 0, sizeof(slots));
    for (size_t i = sizeof(nodes) / sizeof(nodes[0]); i-- > 0;) {
        poke(f, nodes[i], slots, sizeof(slots));
        for (size_t slot = 0; slot < BLOCK / 8; slot++)
            slots[slot] = nodes[i] | PM_DIR_NODE;
    }
    assert_listing_says(f, "nodes that lead to no names");
    assert_found(f, "is used twice");
}

static void block_without_names_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t slots[BLOCK / 8];
    const uint32_t tags = BLOCK / PM_DIRENT_UNIT;
    const struct pm_dirent unused = {.size = BLOCK - tags};

    read_slots(f, slots);
    poke(f, slots[0] + tags, &unused, sizeof(unused));
    assert_found(f, "has no names");
}

static void impossible_state_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    uint8_t damaged = 77;

    make_tree(f);
    place_of(f, find(f, ROOT, "file"), &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, state_offset, &damaged, 1);
    assert_found(f, "its state is impossible");
}

static void used_inode_marked_free_is_found(void **state)
{
    struct fixture *f = *state;
    uint64_t inode_offset, state_offset;
    uint8_t unused = PM_STATE_FREE;

    make_tree(f);
    place_of(f, find(f, ROOT, "file"), &inode_offset, &state_offset);
    fixture_unmount(f);
    poke(f, state_offset, &unused, 1);
    assert_found(f, "which is free");
}

static void damage_super(struct fixture *f, size_t field, uint64_t value)
{
    make_tree(f);
    uint64_t offset = minl2r_offset(f->fs->pool, f->fs->pm);
    fixture_unmount(f);
    poke(f, offset + field, &value, sizeof(value));
}

static void impossible_inode_count_is_found(void **state)
{
    damage_super(*state, offsetof(struct pm_fs, inode_count), (uint64_t)1 << 50);
    assert_found(*state, "superblock: 1125899906842624 inodes");
}

static void other_magic_is_found(void **state)
{
    damage_super(*state, 0, 0);
    assert_found(*state, "superblock: wrong magic");
}

static void newer_format_is_refused(void **state)
{
    struct fixture *f = *state;

    damage_super(f, offsetof(struct pm_fs, features_incompat), 4);
    assert_error(pmfs_mount(f->path, NULL, &f->fs), EPROTONOSUPPORT);
    f->fs = NULL;
    assert_error(pmfs_fsck(f->path, NULL, NULL, NULL), EPROTONOSUPPORT);
}

static void pool_of_another_layout_is_refused(void **state)
{
    struct fixture *f = *state;
    struct minl2r_pool *pool;

    assert_int_equal(minl2r_pool_create(f->path, "other", 2 * MIB, NULL, &pool), 0);
    minl2r_pool_close(pool);
    assert_error(pmfs_mount(f->path, NULL, &f->fs), EINVAL);
    f->fs = NULL;
    assert_error(pmfs_fsck(f->path, NULL, NULL, NULL), EINVAL);
}

static void empty_and_missing_files_are_refused(void **state)
{
    struct fixture *f = *state;

    assert_error(pmfs_mount(f->path, NULL, &f->fs), ENOENT);
    f->fs = NULL;
    assert_error(pmfs_fsck(f->path, NULL, NULL, NULL), ENOENT);
    close(open(f->path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    assert_true(pmfs_mount(f->path, NULL, &f->fs) < 0);
    f->fs = NULL;
    assert_true(pmfs_fsck(f->path, NULL, NULL, NULL) < 0);
}

static void second_mount_and_fsck_of_a_mounted_one_are_ebusy(void **state)
{
    struct fixture *f = *state;
    struct pmfs *second;

    fixture_mkfs(f, 2 * MIB);
    fixture_mount(f);
    assert_error(pmfs_mount(f->path, NULL, &second), EBUSY);
    assert_error(pmfs_fsck(f->path, NULL, NULL, NULL), EBUSY);
}

/* ---- Fuzzing ------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t below(uint64_t end)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % end;
}

/* A word that holds something, mostly past the library's own tables. */
static uint64_t pick_word(const uint64_t *words, uint64_t count)
{
    uint64_t low = below(10) ? count / 2 : 0;

    for (int i = 0; i < 1000; i++) {
        uint64_t at = low + below(count - low);

        if (words[at] && words[at] != 0x6262626262626262)
            return at;
    }
    return low + below(count - low);
}

static void mutate(uint64_t *words, uint64_t count)
{
    for (uint64_t changes = 1 + below(4); changes; changes--) {
        uint64_t at = pick_word(words, count);

        switch (below(6)) {
        case 0:
            words[at] ^= (uint64_t)1 << below(64);
            break;
        case 1:
            words[at] = 0;
            break;
        case 2:
            words[at] = words[pick_word(words, count)];
            break;
        case 3:
            words[at] += below(3) - 1;
            break;
        case 4:
            ((uint8_t *)&words[at])[below(8)] = (uint8_t)below(256);
            break;
        default:
            words[at] = below(UINT64_MAX);
        }
    }
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}

static void whatever_the_medium_holds_every_call_ends(void **state)
{
    struct fixture *f = *state;
    uint64_t steps = from_environment("PMFS_TEST_STEPS", 400);
    const size_t size = MINL2R_POOL_SIZE_MIN;
    uint64_t *image = malloc(size), *mutant = malloc(size);

    assert_non_null(image);
    assert_non_null(mutant);
    random_state = from_environment("PMFS_TEST_SEED", 20150108);
    print_message("          seed %llu\n", (unsigned long long)random_state);
    fixture_mkfs(f, size);
    fixture_mount(f);
    make_tree(f);
    make_large(f);
    fixture_unmount(f);
    int fd = open(f->path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, image, size, 0), (ssize_t)size);
    for (uint64_t i = 0; i < steps; i++) {
        memcpy(mutant, image, size);
        mutate(mutant, size / 8);
        assert_int_equal(pwrite(fd, mutant, size, 0), (ssize_t)size);
        survive_repair(f);
        assert_int_equal(pwrite(fd, mutant, size, 0), (ssize_t)size);
        survive(f);
    }
    close(fd);
    free(image);
    free(mutant);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_DAMAGED(impossible_height_is_found),
        TEST_DAMAGED(block_outside_the_pool_is_found),
        TEST_DAMAGED(misaligned_block_is_found),
        TEST_DAMAGED(wrong_type_is_found),
        TEST_DAMAGED(size_past_the_largest_file_is_found),
        TEST_DAMAGED(size_without_its_blocks_is_found),
        TEST_DAMAGED(directory_without_its_blocks_is_found),
        TEST_DAMAGED(unknown_flags_are_found),
        TEST_DAMAGED(attributes_without_their_blocks_are_found),
        TEST_DAMAGED(attributes_cut_in_the_middle_are_found),
        TEST_DAMAGED(attributes_that_are_too_many_are_found),
        TEST_DAMAGED(wrong_link_count_is_found),
        TEST_DAMAGED(wrong_block_count_is_found),
        TEST_DAMAGED(parent_that_is_another_is_found),
        TEST_DAMAGED(root_that_is_no_directory_is_found_and_not_mounted_as_one),
        TEST_DAMAGED(lost_blocks_are_counted),
        TEST_DAMAGED(block_of_two_files_is_found),
        TEST_DAMAGED(node_that_names_itself_is_found),
        TEST_DAMAGED(damage_of_the_pool_is_a_finding_and_the_tree_is_checked_too),
        TEST_DAMAGED(damage_that_hides_the_tree_is_one_finding),
        TEST_DAMAGED(directory_that_contains_its_ancestor_is_found),
        TEST_DAMAGED(entry_of_no_size_is_found),
        TEST_DAMAGED(entry_of_no_position_is_found_and_listed),
        TEST_DAMAGED(findings_have_no_control_characters),
        TEST_DAMAGED(name_with_a_slash_is_found_and_never_listed),
        TEST_DAMAGED(directory_whose_node_leads_to_itself_is_found),
        TEST_DAMAGED(directory_that_leads_out_of_the_pool_is_found),
        TEST_DAMAGED(names_in_a_block_for_others_are_found),
        TEST_DAMAGED(nodes_that_lead_to_nothing_in_many_ways_are_given_up),
        TEST_DAMAGED(block_without_names_is_found),
        TEST_DAMAGED(impossible_state_is_found),
        TEST_DAMAGED(used_inode_marked_free_is_found),
        TEST_DAMAGED(impossible_inode_count_is_found),
        TEST_DAMAGED(other_magic_is_found),
        TEST_DAMAGED(newer_format_is_refused),
        TEST_EMPTY(pool_of_another_layout_is_refused),
        TEST_EMPTY(empty_and_missing_files_are_refused),
        TEST_EMPTY(second_mount_and_fsck_of_a_mounted_one_are_ebusy),
        TEST_EMPTY(whatever_the_medium_holds_every_call_ends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
