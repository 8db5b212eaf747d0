/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A filesystem on a damaged pool is checked, mounted, used and repaired: never a crash
 * or a hang. What fsck does not object to works without damage, and what is repaired
 * has nothing left to find.
 */
#include "tests/fuzz/image.h"

#include <string.h>
#include <sys/stat.h>

#include "pmfs-proto/core/fsck.h"
#include "pmfs-proto/core/inode.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/orphan.h"
#include "pmfs-proto/core/trie.h"
#include "tests/pmfs/use_all.h"

enum { IMAGE_SMALL, IMAGE_SMALL_512, IMAGE_LARGE, IMAGE_LARGE_512, IMAGE_OLD };
#define IMAGE_COUNT (IMAGE_OLD + 1)

static struct image images[IMAGE_COUNT];
static uint8_t *memory;

/* ---- A tree with one of everything ----------------------------------------------- */

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

static uint64_t make(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode)
{
    struct pmfs_attr attr;

    int rc = S_ISDIR(mode) ? pmfs_mkdir(fs, parent, name, mode, &nobody, &attr)
                           : pmfs_mknod(fs, parent, name, mode, 0, &nobody, &attr);
    fuzz_require(rc == 0);
    return attr.ino;
}

static void put(struct pmfs *fs, uint64_t ino, uint64_t offset, size_t size)
{
    static const uint8_t bytes[20000] = "content";
    size_t done;

    fuzz_require(pmfs_write(fs, ino, offset, bytes, size, 0, &done) == 0);
}

static void put_attributes(struct pmfs *fs, uint64_t ino)
{
    static const uint8_t value[3000] = "value";

    fuzz_require(pmfs_setxattr(fs, ino, "user.first", value, 20, 0) == 0);
    fuzz_require(pmfs_setxattr(fs, ino, "user.large", value, sizeof(value), 0) == 0);
    fuzz_require(pmfs_setxattr(fs, ino, "trusted.last", value, 100, 0) == 0);
}

static void make_tree(struct pmfs *fs)
{
    uint64_t dir = make(fs, PMFS_ROOT_INO, "dir", S_IFDIR | 0755);
    uint64_t sub = make(fs, dir, "sub", S_IFDIR | 0755);
    uint64_t file = make(fs, PMFS_ROOT_INO, "file", S_IFREG | 0644);
    uint64_t nameless = make(fs, dir, "nameless", S_IFREG | 0644);
    struct pmfs_attr attr;
    char name[32];

    put(fs, file, 0, 20000);
    put_attributes(fs, file);
    put_attributes(fs, dir);
    put(fs, make(fs, PMFS_ROOT_INO, "sparse", S_IFREG | 0644), (uint64_t)1 << 35, 100);
    put(fs, nameless, 5000, 5000);
    make(fs, dir, "fifo", S_IFIFO | 0600);
    fuzz_require(pmfs_symlink(fs, dir, "link", "../file", &nobody, &attr) == 0);
    fuzz_require(pmfs_link(fs, file, sub, "hard", &attr) == 0);
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof(name), "entry %d", i);
        make(fs, sub, name, S_IFREG | 0644);
    }
    /* Open, without a name, when the machine stops. */
    fuzz_require(pmfs_open(fs, nameless) == 0);
    fuzz_require(pmfs_unlink(fs, dir, "nameless") == 0);
}

/* Names as long as they can be: a few fill blocks, and the nodes above them. */
static uint64_t make_large(struct pmfs *fs)
{
    uint64_t dir = make(fs, PMFS_ROOT_INO, "large", S_IFDIR | 0755);
    uint64_t file = make(fs, dir, "first", S_IFREG | 0644);
    char name[PMFS_NAME_MAX + 1] = {0};
    struct pmfs_attr attr;

    for (int i = 0; i < 24; i++) {
        memset(name, 'a' + i, PMFS_NAME_MAX);
        fuzz_require(pmfs_link(fs, file, dir, name, &attr) == 0);
    }
    return dir;
}

/* Of a directory with one node, what it was before format 3: that node names each block
 * once, from its first slot on. */
static void make_old(struct pmfs *fs, uint64_t dir)
{
    struct inode_place place;
    uint64_t count = 0, last = 0;

    fuzz_require(table_locate(fs, dir, &place) == 0);
    struct pm_inode *pm =
        (struct pm_inode *)(memory + minl2r_offset(fs->pool, place.pm));
    uint64_t *slots = (uint64_t *)(void *)(memory + (pm->map.root - PM_DIR_NODE));

    fuzz_require(pm->map.root & PM_DIR_NODE);
    for (uint32_t i = 0; i < fs->block_size / sizeof(*slots); i++) {
        uint64_t block = slots[i];

        fuzz_require(!(block & PM_DIR_NODE));
        slots[i] = 0;
        if (block && block != last) {
            slots[count++] = last = block;
            /* Where tags were there is a free entry. */
            dirent_set_free((struct pm_dirent *)(void *)(memory + block),
                            dirent_tags(fs));
        }
    }
    pm->map.root -= PM_DIR_NODE;
    pm->map.height = 1;
    pm->flags = 0;
}

/* ---- Where things are ------------------------------------------------------------ */

static void add_entries(struct image *image, uint32_t kind, const struct pmfs *fs,
                        uint64_t block)
{
    uint64_t at = dirent_tags(fs);

    while (at < fs->block_size) {
        const struct pm_dirent *entry =
            (const struct pm_dirent *)minl2r_at(fs->pool, block + at);

        image_add_object(image, kind, block + at);
        at += entry->size;
    }
}

/* The nodes on the way to the first block. */
static void add_map(struct image *image, uint32_t kind, const struct pmfs *fs,
                    const struct pm_map *pm)
{
    uint64_t node = pm->root;

    for (uint64_t level = pm->height; level > 0 && node; level--) {
        const uint64_t *slots = minl2r_at(fs->pool, node);
        uint32_t slot = 0;

        image_add_object(image, kind, node);
        while (slot >> fs->map_shift == 0 && !slots[slot])
            slot++;
        node = slot >> fs->map_shift ? 0 : slots[slot];
    }
}

/* All of its nodes, the entries, and their tags. */
static void add_directory(struct image *image, uint32_t nodes, uint32_t entries,
                          uint32_t tags, const struct pmfs *fs,
                          const struct inode_place *place)
{
    struct trie trie;
    uint64_t hash = 0;

    do {
        fuzz_require(trie_find(&trie, fs, &place->pm->map, place->ino, hash) == 0);
        for (uint32_t level = 0; level < trie.height; level++) {
            if (hash << (level * fs->map_shift) == 0)
                image_add_object(image, nodes,
                                 minl2r_offset(fs->pool, trie.way[level].node));
        }
        trie_widen(&trie);
        if (trie.slot) {
            add_entries(image, entries, fs, trie.slot);
            image_add_object(image, tags, trie.slot);
        }
        hash = trie_last(&trie) + 1;
    } while (hash != 0);
}

/* The start of each block: there are few. */
static void add_attributes(struct image *image, uint32_t kind, const struct pmfs *fs,
                           const struct pm_map *pm)
{
    const uint64_t *slots = pm->height == 1 ? minl2r_at(fs->pool, pm->root) : &pm->root;
    uint32_t count = pm->height == 1 ? fs->block_size / 8 : 1;

    for (uint32_t i = 0; i < count; i++) {
        if (slots[i])
            image_add_object(image, kind, slots[i]);
    }
}

static void learn(struct image *image, struct pmfs *fs)
{
    uint32_t super = image_add_kind(image, sizeof(struct pm_fs));
    uint32_t states = image_add_kind(image, 8);
    uint32_t inodes = image_add_kind(image, PM_INODE_USED_SIZE);
    uint32_t entries = image_add_kind(image, 32);
    uint32_t nodes = image_add_kind(image, fs->block_size);
    uint32_t attributes = image_add_kind(image, 64);
    uint32_t tags = image_add_kind(image, dirent_tags(fs));
    struct inode_place place;

    image_add_object(image, super, minl2r_offset(fs->pool, fs->pm));
    for (uint64_t ino = 1; ino < 64 && table_locate(fs, ino, &place) == 0; ino++) {
        uint64_t state = minl2r_offset(fs->pool, place.state);

        if (*place.state == PM_STATE_FREE)
            continue;
        image_add_object(image, states, state & ~(uint64_t)7);
        image_add_object(image, inodes, minl2r_offset(fs->pool, place.pm));
        if (place.pm->flags & PM_INODE_HASHED)
            add_directory(image, nodes, entries, tags, fs, &place);
        else
            add_map(image, nodes, fs, &place.pm->map);
        add_map(image, nodes, fs, &place.pm->xattrs);
        add_attributes(image, attributes, fs, &place.pm->xattrs);
    }
    add_map(image, nodes, fs, &fs->pm->states);
    add_map(image, nodes, fs, &fs->pm->inodes);
}

static void make_image(int number, uint32_t block_size)
{
    const struct minl2r_options options = {.block_size = block_size, .lanes = 2};
    const struct pmfs_mkfs_options mkfs = {0};
    const struct pmfs_mount_options mount = {0};
    struct image *image = &images[number];
    uint64_t dir = 0;
    struct minl2r_pool pool;
    struct pmfs *fs;

    image_format(memory, PMFS_LAYOUT, &options);
    fuzz_require(image_open(memory, &pool) == 0);
    fuzz_require(fs_format(&pool, &mkfs) == 0);
    fuzz_require(fs_attach(&pool, &mount, &fs) == 0);
    make_tree(fs);
    if (number >= IMAGE_LARGE)
        dir = make_large(fs);
    if (number == IMAGE_OLD)
        make_old(fs, dir);
    image_take(image, memory);
    learn(image, fs);
    fs_detach(fs);
    image_close(&pool);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    memory = image_map();
    for (int i = 0; i < IMAGE_COUNT; i++)
        make_image(i, i == IMAGE_SMALL_512 || i == IMAGE_LARGE_512 ? 512 : 4096);
    return 0;
}

/* ---- Using it -------------------------------------------------------------------- */

static void print_finding(void *arg, const char *what)
{
    (void)arg;
    if (getenv("FUZZ_VERBOSE"))
        fprintf(stderr, "fsck: %s\n", what);
}

static bool print_repair(void *arg, const char *what, const char *how,
                         const char *why_not)
{
    (void)arg;
    if (getenv("FUZZ_VERBOSE"))
        fprintf(stderr, "repair: %s: %s\n", what, how ? how : why_not);
    return true;
}

/* How many findings fsck has; -1 if it could not look at the files. */
static int64_t count_findings(struct minl2r_pool *pool)
{
    struct pmfs_fsck_summary summary = {0};
    int rc = fsck_pool(pool, print_finding, NULL, &summary);

    fuzz_require((rc == 0) == (summary.findings == 0) || rc != -EUCLEAN);
    return rc == 0 || rc == -EUCLEAN ? (int64_t)summary.findings : -1;
}

/* As a daemon would; false if it cannot be mounted. */
static bool mount_and_use(struct minl2r_pool *pool)
{
    const struct pmfs_mount_options options = {.flags = PMFS_COUNT_LOOKUPS};
    struct pmfs *fs;

    if (fs_attach(pool, &options, &fs) < 0)
        return false;
    use_all(fs);
    orphan_reap_all(fs);
    fs_detach(fs);
    return true;
}

static void use_image(const uint8_t *edits, size_t size, const struct image *image)
{
    struct minl2r_pool pool;

    image_damage(image, memory, edits, size);
    if (image_open(memory, &pool) < 0)
        return;
    bool sound = count_findings(&pool) == 0;
    if (mount_and_use(&pool))
        fuzz_require(!sound || count_findings(&pool) == 0);
    else
        fuzz_require(!sound);
    image_close(&pool);
}

static void repair_image(const uint8_t *edits, size_t size, const struct image *image)
{
    struct pmfs_repair_summary summary = {0};
    struct minl2r_pool pool;

    image_damage(image, memory, edits, size);
    if (image_open(memory, &pool) < 0)
        return;
    int rc = repair_pool(&pool, print_repair, NULL, &summary);
    if (rc == 0) {
        fuzz_require(count_findings(&pool) == 0);
        fuzz_require(mount_and_use(&pool));
        fuzz_require(count_findings(&pool) == 0);
    } else if (rc == -EUCLEAN) {
        fuzz_require(repair_pool(&pool, print_repair, NULL, &summary) < 0);
        fuzz_require(summary.repaired == 0);
    }
    image_close(&pool);
}

/* For a test that mounts it: tests/mount/hostile.py. */
static void save_image(const uint8_t *edits, size_t size, const struct image *image,
                       const char *folder)
{
    static unsigned count;
    char path[4096];

    snprintf(path, sizeof(path), "%s/%u", folder, count++);
    FILE *file = fopen(path, "we");

    image_damage(image, memory, edits, size);
    fuzz_require(file && fwrite(memory, 1, IMAGE_SIZE, file) == IMAGE_SIZE);
    fuzz_require(fclose(file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const struct image *image = &images[data[0] % IMAGE_COUNT];
    const char *folder = getenv("FUZZ_SAVE");

    if (folder) {
        save_image(data + 1, size - 1, image, folder);
        return 0;
    }
    use_image(data + 1, size - 1, image);
    repair_image(data + 1, size - 1, image);
    return 0;
}
