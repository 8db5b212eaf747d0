/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_ops.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "crashtest/workloads/pmfs_mutants.h"
#include "pmfs-proto/core/trie.h"

#define FILE_SIZE 600u /* of files that are made because they have to be there */
#define BLOCK UINT64_C(512)

static const struct pmfs_cred owner = {.uid = 7, .gid = 8};

/* ---- What has to be there -------------------------------------------------------- */

static int need_last_directory(struct scene *scene, const char *path)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, path, &attr);

    if (rc == 0 && S_ISDIR(attr.mode))
        return 0;
    if (rc == 0)
        rc = scene_remove(scene, path);
    return rc == 0 || rc == -ENOENT ? scene_mkdir(scene, path) : rc;
}

/* The directories above `path`: all but the last name. */
static int need_parents(struct scene *scene, const char *path)
{
    char above[64];
    int rc = 0;

    for (size_t i = 0; path[i] != 0 && rc == 0; i++) {
        if (path[i] == '/') {
            above[i] = 0;
            rc = need_last_directory(scene, above);
        }
        above[i] = path[i];
    }
    return rc;
}

static int need_directory(struct scene *scene, const char *path)
{
    int rc = need_parents(scene, path);

    return rc < 0 ? rc : need_last_directory(scene, path);
}

static int need_absent(struct scene *scene, const char *path)
{
    int rc = need_parents(scene, path);

    if (rc == 0)
        rc = scene_remove(scene, path);
    return rc == -ENOENT ? 0 : rc;
}

static int need_file_of(struct scene *scene, const char *path, uint64_t size)
{
    struct pmfs_attr attr;
    int rc = need_parents(scene, path);

    if (rc == 0)
        rc = scene_find(scene, path, &attr);
    if (rc == 0 && S_ISREG(attr.mode))
        return 0;
    if (rc == 0)
        rc = scene_remove(scene, path);
    return rc == 0 || rc == -ENOENT ? scene_create(scene, path, size) : rc;
}

static int need_file(struct scene *scene, const char *path)
{
    return need_file_of(scene, path, FILE_SIZE);
}

static int need_empty(struct scene *scene, const char *path)
{
    struct pmfs_attr attr;
    int rc = need_directory(scene, path);

    if (rc == 0)
        rc = scene_find(scene, path, &attr);
    return rc != 0 ? rc : scene_empty(scene, attr.ino);
}

static int has_nothing(struct scene *scene, const struct op *op)
{
    return need_absent(scene, op->path);
}

static int has_file(struct scene *scene, const struct op *op)
{
    return need_file(scene, op->path);
}

static int has_empty(struct scene *scene, const struct op *op)
{
    return need_empty(scene, op->path);
}

static int has_file_only(struct scene *scene, const struct op *op)
{
    int rc = need_file(scene, op->path);

    return rc < 0 ? rc : need_absent(scene, op->to);
}

/* What `to` is before, if anything, differs from sequence to sequence. */
static int has_file_and_parents(struct scene *scene, const struct op *op)
{
    int rc = need_file(scene, op->path);

    return rc < 0 ? rc : need_parents(scene, op->to);
}

static int has_files(struct scene *scene, const struct op *op)
{
    int rc = need_file(scene, op->path);

    return rc < 0 ? rc : need_file(scene, op->to);
}

static int has_file_and_directory(struct scene *scene, const struct op *op)
{
    int rc = need_file(scene, op->path);

    return rc < 0 ? rc : need_directory(scene, op->to);
}

static int has_directories(struct scene *scene, const struct op *op)
{
    int rc = need_directory(scene, op->path);

    return rc < 0 ? rc : need_empty(scene, op->to);
}

static int has_long_file(struct scene *scene, const struct op *op)
{
    int rc = need_absent(scene, op->path);

    return rc < 0 ? rc : scene_create(scene, op->path, (uint64_t)36 << 10);
}

/* With an extended attribute of op->offset bytes. */
static int has_attribute(struct scene *scene, const struct op *op)
{
    static const uint8_t value[2048];
    struct pmfs_attr attr;
    int rc = need_file(scene, op->path);

    if (rc == 0)
        rc = scene_find(scene, op->path, &attr);
    return rc != 0
               ? rc
               : pmfs_setxattr(scene->fs, attr.ino, "user.name", value, op->offset, 0);
}

/* With set-user-ID and set-group-ID bits. */
static int has_set_id(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = need_file(scene, op->path);

    if (rc == 0)
        rc = scene_find(scene, op->path, &attr);
    return rc != 0 ? rc
                   : pmfs_setattr(scene->fs, attr.ino,
                                  &(struct pmfs_attr){.mode = S_ISUID | S_ISGID | 0755},
                                  PMFS_SET_MODE, NULL);
}

/* And capabilities. */
static int has_privileges(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = has_set_id(scene, op);

    if (rc == 0)
        rc = scene_find(scene, op->path, &attr);
    return rc != 0 ? rc
                   : pmfs_setxattr(scene->fs, attr.ino, "security.capability",
                                   "any twenty bytes....", 20, 0);
}

/* An ACL: the owner, user 1, the group, a mask, others. */
static const uint8_t acl[4 + 5 * 8] = {
    2, 0, 0,   0,   1,   0,   7,  0, 255, 255, 255, 255, 2,   0,  6,
    0, 1, 0,   0,   0,   4,   0,  5, 0,   255, 255, 255, 255, 16, 0,
    7, 0, 255, 255, 255, 255, 32, 0, 1,   0,   255, 255, 255, 255};

static int set_acl(struct scene *scene, const char *path, const char *name)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, path, &attr);

    return rc < 0 ? rc : pmfs_setxattr(scene->fs, attr.ino, name, acl, sizeof(acl), 0);
}

static int has_acl(struct scene *scene, const struct op *op)
{
    int rc = need_file(scene, op->path);

    return rc < 0 ? rc : set_acl(scene, op->path, "system.posix_acl_access");
}

static int has_own_default_acl(struct scene *scene, const struct op *op)
{
    int rc = need_empty(scene, op->path);

    return rc < 0 ? rc : set_acl(scene, op->path, "system.posix_acl_default");
}

/* The directory `to` has one for what is made in it. */
static int has_default_acl(struct scene *scene, const struct op *op)
{
    int rc = need_absent(scene, op->path);

    if (rc == 0)
        rc = need_directory(scene, op->to);
    return rc < 0 ? rc : set_acl(scene, op->to, "system.posix_acl_default");
}

/* Behind its end there are bytes that it once had. */
static int has_cut_file(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = need_absent(scene, op->path);

    if (rc == 0)
        rc = scene_create(scene, op->path, FILE_SIZE);
    if (rc == 0)
        rc = scene_find(scene, op->path, &attr);
    return rc != 0 ? rc
                   : pmfs_setattr(scene->fs, attr.ino, &(struct pmfs_attr){.size = 20},
                                  PMFS_SET_SIZE, NULL);
}

static int has_sparse_file(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = need_absent(scene, op->path);

    if (rc == 0)
        rc = scene_create(scene, op->path, 100);
    if (rc == 0)
        rc = scene_find(scene, op->path, &attr);
    return rc != 0 ? rc : scene_write(scene, attr.ino, 20 * BLOCK, 100, 0);
}

/* All of it is a hole, and the file `to` has blocks. */
static int has_hole(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = need_absent(scene, op->path);

    if (rc == 0)
        rc = scene_create(scene, op->path, 0);
    if (rc == 0)
        rc = scene_find(scene, op->path, &attr);
    if (rc == 0)
        rc = pmfs_setattr(scene->fs, attr.ino, &(struct pmfs_attr){.size = 3 * BLOCK},
                          PMFS_SET_SIZE, NULL);
    return rc < 0 ? rc : need_file_of(scene, op->to, 3 * BLOCK);
}

static int has_open_file(struct scene *scene, const struct op *op)
{
    int rc = need_file(scene, op->path);

    return rc < 0 ? rc : scene_open(scene, op->path);
}

/* Open, but without a name. */
static int has_orphan(struct scene *scene, const struct op *op)
{
    int rc = has_open_file(scene, op);

    return rc < 0 ? rc : scene_remove(scene, op->path);
}

/* Opens a file that has never had a name, and may get one. */
static int open_nameless(struct scene *scene, unsigned flags)
{
    struct pmfs_attr attr;

    if (scene->open_count == SCENE_OPENS_MAX)
        return -EMFILE;
    int rc = pmfs_tmpfile(scene->fs, PMFS_ROOT_INO, 0644, flags, &owner, &attr);
    if (rc == 0)
        scene->opens[scene->open_count++] = attr.ino;
    return rc;
}

/* With op->size bytes. */
static int run_tmpfile(struct scene *scene, const struct op *op)
{
    int rc = open_nameless(scene, 0);

    return rc < 0 ? rc
                  : scene_write(scene, scene->opens[scene->open_count - 1], 0, op->size,
                                0);
}

/* The same, and op->path is free. */
static int has_nameless(struct scene *scene, const struct op *op)
{
    int rc = need_absent(scene, op->path);

    return rc < 0 ? rc : run_tmpfile(scene, op);
}

/* ---- Blocks of names ------------------------------------------------------------- */

/*
 * In the directory D, 15 names fill a block, whatever its size. Which block a name goes
 * to, the first bit of its hash decides: there are low and high ones.
 */
enum half { LOW, HIGH };

/* The low or high name number `which`. */
static int name_of_half(const struct scene *scene, enum half half, uint64_t which,
                        char text[PMFS_NAME_MAX + 1])
{
    size_t size = scene->fs->block_size / 16 - sizeof(struct pm_dirent);
    struct name name;

    for (unsigned i = 0; i < 1000; i++) {
        memset(text, 'x', size);
        text[size] = 0;
        text[snprintf(text, size, "%u", i)] = 'x';
        int rc = name_init(&name, scene->fs, text);
        if (rc < 0)
            return rc;
        if (name.hash >> 63 == half && which-- == 0)
            return 0;
    }
    return -ENOENT;
}

static int path_of_half(const struct scene *scene, enum half half, uint64_t which,
                        char path[PMFS_NAME_MAX + 3])
{
    path[0] = 'D';
    path[1] = '/';
    return name_of_half(scene, half, which, path + 2);
}

/* They are names of one file, which has another. */
static int add_halves(struct scene *scene, enum half half, uint64_t count)
{
    char name[PMFS_NAME_MAX + 1];
    struct pmfs_attr dir, file;
    int rc = scene_find(scene, "D", &dir);

    if (rc == 0)
        rc = scene_find(scene, "foo", &file);
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        rc = name_of_half(scene, half, i, name);
        if (rc == 0)
            rc = pmfs_link(scene->fs, file.ino, dir.ino, name, &file);
    }
    return rc;
}

/* ---- Names with equal hashes ----------------------------------------------------- */

#define TWIN_SIZE sizeof(uint64_t)
#define TWIN_PATH_SIZE (TWIN_SIZE + 3)

static uint64_t rotate(uint64_t word, unsigned bits)
{
    return word << bits | word >> (64 - bits);
}

/*
 * XXH3 makes one word of a name of eight bytes, xors it with one that depends on the
 * seed, and mixes that, which can be undone: this does. Of the first step the 64th
 * power is the identity.
 */
static uint64_t unmix(uint64_t hash)
{
    const uint64_t prime = 0x9fb21c651e98df25u;
    uint64_t inverse = prime;

    for (int i = 0; i < 5; i++)
        inverse *= 2 - prime * inverse;
    hash ^= hash >> 28 ^ hash >> 56;
    hash *= inverse;
    hash ^= (hash >> 35) + TWIN_SIZE;
    hash *= inverse;
    for (int i = 0; i < 63; i++)
        hash ^= rotate(hash, 49) ^ rotate(hash, 24);
    return hash;
}

/* The name whose hash differs in the highest bit, which a directory's does not have. */
static void make_twin(const struct scene *scene, const char *name, char *twin)
{
    uint64_t hash = XXH3_64bits_withSeed(name, TWIN_SIZE, scene->fs->hash_seed), word;
    uint64_t difference = unmix(hash) ^ unmix(hash ^ (uint64_t)1 << 63);

    memcpy(&word, name, TWIN_SIZE);
    word ^= rotate(difference, 32);
    memcpy(twin, &word, TWIN_SIZE);
    twin[TWIN_SIZE] = 0;
}

/* The paths of the first two low names in D that are twins. */
static int find_twins(const struct scene *scene, char first[TWIN_PATH_SIZE],
                      char second[TWIN_PATH_SIZE])
{
    struct name a, b;

    memcpy(second, "D/", 3);
    for (unsigned i = 0; i < 100; i++) {
        snprintf(first, TWIN_PATH_SIZE, "D/twin%04u", i);
        make_twin(scene, first + 2, second + 2);
        if (name_init(&a, scene->fs, first + 2) == 0 && a.hash >> 63 == LOW &&
            name_init(&b, scene->fs, second + 2) == 0 && b.size == a.size)
            return a.hash == b.hash ? 0 : -EDOM;
    }
    return -ENOENT;
}

/* They are files of their own. */
static int add_twins(struct scene *scene, unsigned count)
{
    char first[TWIN_PATH_SIZE], second[TWIN_PATH_SIZE];
    int rc = count > 0 ? find_twins(scene, first, second) : 0;

    if (rc == 0 && count > 0)
        rc = scene_create(scene, first, 0);
    if (rc == 0 && count > 1)
        rc = scene_create(scene, second, 100);
    return rc;
}

/* ---- Directories of several blocks ----------------------------------------------- */

/* D has op->offset low names, some twins, op->size high ones, and of these op->mode are
 * removed. */
static int make_names(struct scene *scene, const struct op *op, unsigned twins)
{
    char path[PMFS_NAME_MAX + 3];
    int rc = need_file(scene, "foo");

    if (rc == 0)
        rc = need_empty(scene, "D");
    if (rc == 0)
        rc = add_halves(scene, LOW, op->offset);
    if (rc == 0)
        rc = add_twins(scene, twins);
    if (rc == 0)
        rc = add_halves(scene, HIGH, op->size);
    for (unsigned i = 0; i < op->mode && rc == 0; i++) {
        rc = path_of_half(scene, HIGH, op->size - 1 - i, path);
        if (rc == 0)
            rc = scene_remove(scene, path);
    }
    return rc;
}

static int has_names(struct scene *scene, const struct op *op)
{
    return make_names(scene, op, 0);
}

static int has_twin(struct scene *scene, const struct op *op)
{
    return make_names(scene, op, 1);
}

static int has_twins(struct scene *scene, const struct op *op)
{
    return make_names(scene, op, 2);
}

/* What was no tag before format 3: a free entry in their place. */
static int make_without_tags(struct scene *scene, struct minl2r_tx *tx,
                             const void *block)
{
    struct pm_dirent unused;

    dirent_set_free(&unused, dirent_tags(scene->fs));
    return minl2r_tx_write(tx, block, &unused, sizeof(unused));
}

/* The blocks of D, in a block map instead of their node, as format 2 had it. */
static int make_linear(struct scene *scene)
{
    struct inode_place place;
    struct pmfs_attr attr;
    const uint32_t flags = 0;
    uint64_t offset, *node;
    struct minl2r_tx *tx;
    struct trie trie;
    int rc = scene_find(scene, "D", &attr);

    if (rc == 0)
        rc = table_locate(scene->fs, attr.ino, &place);
    if (rc == 0)
        rc = minl2r_tx_begin(scene->fs->pool, &tx);
    if (rc != 0)
        return rc;
    rc = minl2r_tx_alloc(tx, 1, &offset, &node);
    if (rc == 0) {
        const struct pm_map map = {.root = offset, .height = 1};

        memset(node, 0, scene->fs->block_size);
        for (int half = LOW; half <= HIGH && rc == 0; half++) {
            trie_find(&trie, scene->fs, &place.pm->map, attr.ino, (uint64_t)half << 63);
            node[half] = trie.slot;
            rc = make_without_tags(scene, tx, trie.block);
        }
        minl2r_tx_write(tx, &place.pm->map, &map, sizeof(map));
        minl2r_tx_write(tx, &place.pm->flags, &flags, sizeof(flags));
        if (rc == 0)
            rc = minl2r_tx_free(tx, place.pm->map.root - PM_DIR_NODE, 1);
    }
    return fs_end(tx, rc);
}

static int has_linear(struct scene *scene, const struct op *op)
{
    int rc = has_names(scene, op);

    if (rc == 0)
        rc = make_linear(scene);
    scene_converts = false;
    return rc;
}

/* ---- Damage ---------------------------------------------------------------------- */

static void poke(const void *at, uint64_t value, size_t size)
{
    memcpy((void *)(uintptr_t)at, &value, size);
}

static int locate(struct scene *scene, const char *path, struct inode_place *place)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, path, &attr);

    return rc < 0 ? rc : table_locate(scene->fs, attr.ino, place);
}

/* The entry of a path whose directory has one block. */
static int find_entry(struct scene *scene, const char *path,
                      const struct pm_dirent **entry)
{
    struct inode_place place;
    const uint8_t *block;
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, path, &parent, &name);

    if (rc == 0)
        rc = table_locate(scene->fs, parent, &place);
    if (rc != 0)
        return rc;
    block = fs_block(scene->fs, place.pm->map.root);
    for (uint32_t at = dirent_tags(scene->fs); block && at < scene->fs->block_size;
         at += (*entry)->size) {
        *entry = dirent_at(scene->fs, block, at);
        if ((*entry)->ino && strlen(name) == (*entry)->name_size &&
            memcmp(name, (*entry)->name, strlen(name)) == 0)
            return 0;
    }
    return -ENOENT;
}

/* foo and A are there, with something in them. */
static int has_tree(struct scene *scene, struct inode_place *foo, struct inode_place *a)
{
    int rc = need_file_of(scene, "foo", 1300);

    if (rc == 0)
        rc = need_file(scene, "A/bar");
    if (rc == 0)
        rc = need_directory(scene, "A/C");
    if (rc == 0)
        rc = locate(scene, "foo", foo);
    return rc != 0 ? rc : locate(scene, "A", a);
}

static int has_wrong_links(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc != 0)
        return rc;
    poke(&foo.pm->nlink, 7, sizeof(foo.pm->nlink));
    poke(&a.pm->nlink, 9, sizeof(a.pm->nlink));
    return 0;
}

static int has_wrong_counts(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc != 0)
        return rc;
    poke(&foo.pm->blocks, 40, sizeof(foo.pm->blocks));
    poke(&a.pm->size, 40ull * scene->fs->block_size, sizeof(a.pm->size));
    return 0;
}

static int has_wrong_parent(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc == 0)
        poke(&a.pm->parent, foo.ino, sizeof(a.pm->parent));
    return rc;
}

static int has_wrong_type(struct scene *scene, const struct op *op)
{
    const struct pm_dirent *entry;
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc == 0)
        rc = find_entry(scene, "foo", &entry);
    if (rc == 0)
        poke(&entry->type, S_IFIFO >> 12, sizeof(entry->type));
    return rc;
}

static int lose(struct scene *scene, const char *path)
{
    const struct pm_dirent *entry;
    int rc = find_entry(scene, path, &entry);

    if (rc == 0)
        poke(&entry->ino, 0, sizeof(entry->ino));
    return rc;
}

/* For lost+found and what is put into it: without it repair leaves what is lost. */
static int need_room(struct scene *scene)
{
    int rc = need_file(scene, "room/file");

    return rc < 0 ? rc : scene_remove(scene, "room");
}

/* The name of op->path is gone. */
static int has_lost(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    if (rc == 0)
        rc = need_room(scene);
    return rc < 0 ? rc : lose(scene, op->path);
}

/* So is the name that repair would have given it. */
static int has_taken(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    char path[40];
    int rc = has_tree(scene, &foo, &a);

    if (rc == 0)
        rc = need_directory(scene, "lost+found");
    if (rc != 0)
        return rc;
    snprintf(path, sizeof(path), "lost+found/#%llu", (unsigned long long)foo.ino);
    rc = need_file(scene, path);
    return rc != 0 ? rc : lose(scene, op->path);
}

/* The name of A/bar is one of foo: that has two names, and A/bar none. */
static int has_other_inode(struct scene *scene, const struct op *op)
{
    const struct pm_dirent *entry;
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc == 0)
        rc = need_room(scene);
    if (rc == 0)
        rc = find_entry(scene, "A/bar", &entry);
    if (rc == 0)
        poke(&entry->ino, foo.ino, sizeof(entry->ino));
    return rc;
}

static int has_named_orphan(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc != 0)
        return rc;
    poke(foo.state, PM_STATE_ORPHAN, sizeof(*foo.state));
    poke(&foo.pm->nlink, 0, sizeof(foo.pm->nlink));
    return 0;
}

static void lose_blocks(const struct inode_place *place)
{
    poke(&place->pm->map.root, 0, sizeof(place->pm->map.root));
    poke(&place->pm->map.height, 0, sizeof(place->pm->map.height));
    poke(&place->pm->blocks, 0, sizeof(place->pm->blocks));
}

static int has_lost_blocks(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc == 0)
        rc = need_room(scene);
    if (rc == 0)
        lose_blocks(&foo);
    return rc;
}

/* With its node one more than two transactions of repair take, see pmfs.cmake; the third
 * needs another node, if blocks are small. */
#define LOST_RUN 64

static int has_lost_run(struct scene *scene, const struct op *op)
{
    struct inode_place run;
    int rc = need_directory(scene, "lost+found");

    if (rc == 0)
        rc = need_room(scene);
    if (rc == 0)
        rc = need_file_of(scene, op->path, (uint64_t)LOST_RUN * scene->fs->block_size);
    if (rc == 0)
        rc = locate(scene, op->path, &run);
    if (rc == 0)
        lose_blocks(&run);
    return rc;
}

/* Marks a block as free that is not. */
static void free_block(const struct scene *scene, uint64_t offset)
{
    uint64_t index = block_index(&scene->pool.geo, offset);
    const uint64_t *word = pool_bitmap_word(&scene->pool, index);

    poke(word, *word & ~((uint64_t)1 << index % 64), sizeof(*word));
}

static int has_free_blocks(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc != 0)
        return rc;
    free_block(scene, foo.pm->map.root);
    free_block(scene, a.pm->map.root - (a.pm->map.root & PM_DIR_NODE));
    return 0;
}

/* Neither the pool's own blocks nor those past the end are marked. */
static int has_no_own_blocks(struct scene *scene, const struct op *op)
{
    const struct geometry *geo = &scene->pool.geo;
    const uint64_t *first = pool_bitmap_word(&scene->pool, 0);
    const uint64_t *last = pool_bitmap_word(&scene->pool, geo->block_count);
    struct inode_place foo, a;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc < 0)
        return rc;
    poke(first, *first & ~bitmap_fixed_bits(geo, 0), sizeof(*first));
    poke(last, *last & ~bitmap_fixed_bits(geo, geo->block_count & ~(uint64_t)63),
         sizeof(*last));
    return 0;
}

/* What one repair rests on is damaged, too. */
static int has_much(struct scene *scene, const struct op *op)
{
    struct inode_place foo, a, bar;
    int rc = has_tree(scene, &foo, &a);

    (void)op;
    if (rc == 0)
        rc = need_room(scene);
    if (rc == 0)
        rc = locate(scene, "A/bar", &bar);
    if (rc != 0)
        return rc;
    poke(&foo.pm->nlink, 40, sizeof(foo.pm->nlink));
    poke(&a.pm->size, 7ull * scene->fs->block_size, sizeof(a.pm->size));
    free_block(scene, foo.pm->map.root);
    lose_blocks(&bar);
    return lose(scene, "A");
}

/* ---- Operations ------------------------------------------------------------------ */

static int run_creat(struct scene *scene, const struct op *op)
{
    return scene_create(scene, op->path, 0);
}

static int run_mkdir(struct scene *scene, const struct op *op)
{
    return scene_mkdir(scene, op->path);
}

static int run_write(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc : scene_write(scene, attr.ino, op->offset, op->size, 0);
}

static int run_append(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc : scene_write(scene, attr.ino, 0, op->size, PMFS_APPEND);
}

/* With the flags op->mode. */
static int run_write_dropping(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc : scene_write(scene, attr.ino, op->offset, op->size, op->mode);
}

static int run_link(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    uint64_t parent;
    const char *name;
    int rc = scene_find(scene, op->path, &attr);

    if (rc == 0)
        rc = scene_parent(scene, op->to, &parent, &name);
    return rc != 0 ? rc : pmfs_link(scene->fs, attr.ino, parent, name, &attr);
}

static int run_unlink(struct scene *scene, const struct op *op)
{
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, op->path, &parent, &name);

    return rc < 0 ? rc : pmfs_unlink(scene->fs, parent, name);
}

static int run_rmdir(struct scene *scene, const struct op *op)
{
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, op->path, &parent, &name);

    return rc < 0 ? rc : pmfs_rmdir(scene->fs, parent, name);
}

static int rename_with(struct scene *scene, const struct op *op, unsigned flags)
{
    uint64_t parent, new_parent;
    const char *name, *new_name;
    int rc = scene_parent(scene, op->path, &parent, &name);

    if (rc == 0)
        rc = scene_parent(scene, op->to, &new_parent, &new_name);
    return rc != 0 ? rc
                   : pmfs_rename(scene->fs, parent, name, new_parent, new_name, flags);
}

static int run_rename(struct scene *scene, const struct op *op)
{
    return rename_with(scene, op, 0);
}

static int run_exchange(struct scene *scene, const struct op *op)
{
    return rename_with(scene, op, PMFS_RENAME_EXCHANGE);
}

static int run_whiteout(struct scene *scene, const struct op *op)
{
    uint64_t parent, new_parent;
    const char *name, *new_name;
    int rc = scene_parent(scene, op->path, &parent, &name);

    if (rc == 0)
        rc = scene_parent(scene, op->to, &new_parent, &new_name);
    return rc != 0 ? rc
                   : pmfs_rename_whiteout(scene->fs, parent, name, new_parent, new_name,
                                          0, &owner);
}

static int set(struct scene *scene, const struct op *op, const struct pmfs_attr *values,
               unsigned mask)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc : pmfs_setattr(scene->fs, attr.ino, values, mask, NULL);
}

static int run_truncate(struct scene *scene, const struct op *op)
{
    return set(scene, op, &(struct pmfs_attr){.size = op->size}, PMFS_SET_SIZE);
}

static int run_fallocate(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc
                  : pmfs_fallocate(scene->fs, attr.ino, op->mode, op->offset, op->size);
}

/* From a file to another place, of another. */
static int run_copy(struct scene *scene, const struct op *op)
{
    struct pmfs_attr from, to;
    uint64_t done;
    int rc = scene_find(scene, op->path, &from);

    if (rc == 0)
        rc = scene_find(scene, op->to, &to);
    return rc != 0 ? rc
                   : pmfs_copy_range(scene->fs, from.ino, 0, to.ino, op->offset,
                                     op->size, &done);
}

static int run_chmod(struct scene *scene, const struct op *op)
{
    return set(scene, op, &(struct pmfs_attr){.mode = op->mode}, PMFS_SET_MODE);
}

static int run_chown(struct scene *scene, const struct op *op)
{
    return set(scene, op, &(struct pmfs_attr){.uid = 1, .gid = 2},
               PMFS_SET_UID | PMFS_SET_GID);
}

/* op->mode says what is set and dropped. */
static int run_set_dropping(struct scene *scene, const struct op *op)
{
    return set(scene, op, &(struct pmfs_attr){.uid = 1, .gid = 2, .size = op->size},
               op->mode);
}

static int run_utimes(struct scene *scene, const struct op *op)
{
    return set(scene, op, &(struct pmfs_attr){.atime_ns = 11, .mtime_ns = 12},
               PMFS_SET_ATIME | PMFS_SET_MTIME);
}

static int run_setattr(struct scene *scene, const struct op *op)
{
    return set(scene, op,
               &(struct pmfs_attr){.mode = 0600, .uid = 1, .gid = 2, .size = op->size},
               PMFS_SET_MODE | PMFS_SET_UID | PMFS_SET_GID | PMFS_SET_SIZE |
                   PMFS_SET_MTIME_NOW | PMFS_SET_ATIME_NOW);
}

static int run_setxattr(struct scene *scene, const struct op *op)
{
    static uint8_t value[2048];
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    scene_new_bytes(scene, value, op->size);
    return rc < 0 ? rc
                  : pmfs_setxattr(scene->fs, attr.ino, "user.name", value, op->size, 0);
}

static int run_removexattr(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc : pmfs_removexattr(scene->fs, attr.ino, "user.name");
}

static int run_set_acl(struct scene *scene, const struct op *op)
{
    return set_acl(scene, op->path, "system.posix_acl_access");
}

static int run_set_acl_dropping(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc
                  : pmfs_setxattr(scene->fs, attr.ino, "system.posix_acl_access", acl,
                                  sizeof(acl), PMFS_XATTR_DROPS_SETGID);
}

static int run_set_default_acl(struct scene *scene, const struct op *op)
{
    return set_acl(scene, op->path, "system.posix_acl_default");
}

static int remove_acl(struct scene *scene, const struct op *op, const char *name)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, op->path, &attr);

    return rc < 0 ? rc : pmfs_removexattr(scene->fs, attr.ino, name);
}

static int run_remove_acl(struct scene *scene, const struct op *op)
{
    return remove_acl(scene, op, "system.posix_acl_access");
}

static int run_remove_default_acl(struct scene *scene, const struct op *op)
{
    return remove_acl(scene, op, "system.posix_acl_default");
}

static int run_mknod(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;

    return pmfs_mknod(scene->fs, PMFS_ROOT_INO, op->path, S_IFCHR | 0600, 0x103, &owner,
                      &attr);
}

static int run_mkfifo(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;

    return pmfs_mknod(scene->fs, PMFS_ROOT_INO, op->path, S_IFIFO | 0600, 0, &owner,
                      &attr);
}

/* `size` bytes, of `letter`. */
static void spell(char *text, char letter, size_t size)
{
    for (size_t i = 0; i < size; i++)
        text[i] = letter;
    text[size] = 0;
}

static int run_symlink(struct scene *scene, const struct op *op)
{
    static char target[PMFS_SYMLINK_MAX + 1];
    struct pmfs_attr attr;

    spell(target, 't', op->size);
    return pmfs_symlink(scene->fs, PMFS_ROOT_INO, op->path, target, &owner, &attr);
}

/* A name of op->size bytes; it may be there already. */
static int run_creat_long(struct scene *scene, const struct op *op)
{
    char name[PMFS_NAME_MAX + 1];

    spell(name, 'n', op->size);
    return scene_create(scene, name, 0);
}

static int has_no_long_name(struct scene *scene, const struct op *op)
{
    char name[PMFS_NAME_MAX + 1];

    spell(name, 'n', op->size);
    int rc = scene_remove(scene, name);

    return rc == -ENOENT ? 0 : rc;
}

static int has_file_and_no_long_name(struct scene *scene, const struct op *op)
{
    int rc = has_no_long_name(scene, op);

    return rc < 0 ? rc : need_file(scene, op->path);
}

static int run_rename_long(struct scene *scene, const struct op *op)
{
    char name[PMFS_NAME_MAX + 1];

    spell(name, 'n', op->size);
    return pmfs_rename(scene->fs, PMFS_ROOT_INO, op->path, PMFS_ROOT_INO, name, 0);
}

static int run_link_low(struct scene *scene, const struct op *op)
{
    char path[PMFS_NAME_MAX + 3];
    struct op link = *op;
    int rc = path_of_half(scene, LOW, op->offset, path);

    link.path = "foo";
    link.to = path;
    return rc < 0 ? rc : run_link(scene, &link);
}

static int run_unlink_low(struct scene *scene, const struct op *op)
{
    char path[PMFS_NAME_MAX + 3];
    struct op unlink = *op;
    int rc = path_of_half(scene, LOW, 0, path);

    unlink.path = path;
    return rc < 0 ? rc : run_unlink(scene, &unlink);
}

static int rename_low_by(struct scene *scene, const struct op *op,
                         int (*run)(struct scene *, const struct op *))
{
    char path[PMFS_NAME_MAX + 3], to[PMFS_NAME_MAX + 3];
    struct op rename = *op;
    int rc = path_of_half(scene, LOW, 0, path);

    if (rc == 0)
        rc = path_of_half(scene, HIGH, op->size, to);
    rename.path = path;
    rename.to = to;
    return rc < 0 ? rc : run(scene, &rename);
}

static int run_rename_low(struct scene *scene, const struct op *op)
{
    return rename_low_by(scene, op, run_rename);
}

static int run_whiteout_low(struct scene *scene, const struct op *op)
{
    return rename_low_by(scene, op, run_whiteout);
}

static int run_link_twin(struct scene *scene, const struct op *op)
{
    char first[TWIN_PATH_SIZE], second[TWIN_PATH_SIZE];
    struct op link = *op;
    int rc = find_twins(scene, first, second);

    link.path = "foo";
    link.to = second;
    return rc < 0 ? rc : run_link(scene, &link);
}

static int run_unlink_twin(struct scene *scene, const struct op *op)
{
    char first[TWIN_PATH_SIZE], second[TWIN_PATH_SIZE];
    struct op unlink = *op;
    int rc = find_twins(scene, first, second);

    unlink.path = second;
    return rc < 0 ? rc : run_unlink(scene, &unlink);
}

/* To the name of the other, whether that is there or not. */
static int run_rename_twin(struct scene *scene, const struct op *op)
{
    char first[TWIN_PATH_SIZE], second[TWIN_PATH_SIZE];
    struct op rename = *op;
    int rc = find_twins(scene, first, second);

    rename.path = first;
    rename.to = second;
    return rc < 0 ? rc : run_rename(scene, &rename);
}

static int run_exchange_twins(struct scene *scene, const struct op *op)
{
    char first[TWIN_PATH_SIZE], second[TWIN_PATH_SIZE];
    struct op rename = *op;
    int rc = find_twins(scene, first, second);

    rename.path = first;
    rename.to = second;
    return rc < 0 ? rc : run_exchange(scene, &rename);
}

/* Any use converts it. */
static int run_convert(struct scene *scene, const struct op *op)
{
    char path[PMFS_NAME_MAX + 3];
    struct pmfs_attr attr;
    int rc = path_of_half(scene, LOW, op->offset - 1, path);

    scene_converts = true;
    return rc < 0 ? rc : scene_find(scene, path, &attr);
}

/* Through the handle that was opened last. */
static int run_write_open(struct scene *scene, const struct op *op)
{
    return scene_write(scene, scene->opens[scene->open_count - 1], op->offset, op->size,
                       0);
}

/* The one that was opened last gets a name. */
static int run_link_open(struct scene *scene, const struct op *op)
{
    struct pmfs_attr attr;
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, op->path, &parent, &name);

    return rc < 0 ? rc
                  : pmfs_link(scene->fs, scene->opens[scene->open_count - 1], parent,
                              name, &attr);
}

static int run_release(struct scene *scene, const struct op *op)
{
    (void)op;
    pmfs_release(scene->fs, scene->opens[--scene->open_count]);
    return 0;
}

/* The process ends, and another one comes. */
static int run_remount(struct scene *scene, const struct op *op)
{
    enum pmfs_phase phase = pmfs_enter(PMFS_REMOUNT);
    int rc = scene_remount(scene);

    (void)op;
    pmfs_enter(phase);
    return rc;
}

static int has_anything(struct scene *scene, const struct op *op)
{
    (void)scene;
    (void)op;
    return 0;
}

/* Leaves it to the caller to mount it. */
static int run_repair(struct scene *scene, const struct op *op)
{
    void *memory = (void *)(uintptr_t)scene->pool.pm.base;

    (void)op;
    scene_drop(scene);
    return scene_repair(scene, memory);
}

/* ---- The table ------------------------------------------------------------------- */

#define ACE OP_ACE
#define META (OP_ACE | OP_METADATA)
#define EXTRA OP_EXTRA

#define CREAT(path)                                                                    \
    {                                                                                  \
        "creat-" path, has_nothing, run_creat, path, NULL, 0, 0, ACE, 0                \
    }
#define WRITE(what, path, offset, size)                                                \
    {                                                                                  \
        what "-" path, has_file, run_write, path, NULL, offset, size, META, 0          \
    }
#define LINK(path, to)                                                                 \
    {                                                                                  \
        "link-" path "-" to, has_file_only, run_link, path, to, 0, 0, META, 0          \
    }
#define UNLINK(path)                                                                   \
    {                                                                                  \
        "unlink-" path, has_file, run_unlink, path, NULL, 0, 0, META, 0                \
    }
#define RENAME(path, to)                                                               \
    {                                                                                  \
        "rename-" path "-" to, has_file_and_parents, run_rename, path, to, 0, 0, META, \
            0                                                                          \
    }
#define RENAME_DIRECTORY(path, to)                                                     \
    {                                                                                  \
        "rename-" path "-" to, has_directories, run_rename, path, to, 0, 0, META, 0    \
    }
#define FALLOCATE(what, path, mode, offset, size)                                      \
    {                                                                                  \
        what "-" path, has_file, run_fallocate, path, NULL, offset, size, ACE, mode    \
    }
#define TRUNCATE(what, path, size)                                                     \
    {                                                                                  \
        what "-" path, has_file, run_truncate, path, NULL, 0, size, ACE, 0             \
    }
/* As unlink, where what it removes is still open, and as rmdir. */
#define REMOVE(path)                                                                   \
    {                                                                                  \
        "remove-" path, has_open_file, run_unlink, path, NULL, 0, 0, ACE, 0            \
    }
#define REMOVE_DIRECTORY(path)                                                         \
    {                                                                                  \
        "remove-" path, has_empty, run_rmdir, path, NULL, 0, 0, ACE, 0                 \
    }
#define EXTRA_OP(name, prepare, run, path, to, offset, size)                           \
    {                                                                                  \
        name, prepare, run, path, to, offset, size, EXTRA, 0                           \
    }
#define CHMOD(path, prepare, mode)                                                     \
    {                                                                                  \
        "chmod-" path, prepare, run_chmod, path, NULL, 0, 0, EXTRA, mode               \
    }
#define DROPPING(name, prepare, run, offset, size, mode)                               \
    {                                                                                  \
        name "-foo", prepare, run, "foo", NULL, offset, size, EXTRA, mode              \
    }
#define NAMES(what, prepare, run, low, high, removed)                                  \
    {                                                                                  \
        what "-D", prepare, run, "D", NULL, low, high, EXTRA, removed                  \
    }
#define REPAIR(what, prepare, path)                                                    \
    {                                                                                  \
        "repair-" what, prepare, run_repair, path, NULL, 0, 0, OP_REPAIR | OP_ALONE, 0 \
    }
#define WRITE_OF(size)                                                                 \
    {                                                                                  \
        "write" #size "-foo", has_file, run_write, "foo", NULL, BLOCK - 5, size,       \
            EXTRA, 0                                                                   \
    }
#define NAME_OF(size)                                                                  \
    {                                                                                  \
        "creat-name" #size, has_no_long_name, run_creat_long, "", NULL, 0, size,       \
            EXTRA, 0                                                                   \
    }

const struct op ops[] = {
    CREAT("foo"),
    CREAT("A/bar"),
    {"mkdir-B", has_nothing, run_mkdir, "B", NULL, 0, 0, ACE, 0},
    {"append-foo", has_file, run_append, "foo", NULL, 0, 1000, META, 0},
    WRITE("extend", "foo", 300, 1500),
    WRITE("overwrite", "A/bar", 100, 100),
    WRITE("overwrite-block", "A/bar", 0, BLOCK),
    LINK("foo", "bar"),
    LINK("foo", "A/foo"),
    LINK("foo", "A/bar"),
    LINK("bar", "foo"),
    LINK("bar", "A/foo"),
    LINK("bar", "A/bar"),
    LINK("A/foo", "foo"),
    LINK("A/foo", "bar"),
    LINK("A/foo", "A/bar"),
    LINK("A/bar", "foo"),
    LINK("A/bar", "bar"),
    LINK("A/bar", "A/foo"),
    UNLINK("foo"),
    UNLINK("bar"),
    UNLINK("A/foo"),
    UNLINK("A/bar"),
    UNLINK("A/C/bar"),
    REMOVE("foo"),
    REMOVE("A/bar"),
    REMOVE("A/C/bar"),
    REMOVE_DIRECTORY("A"),
    REMOVE_DIRECTORY("B"),
    RENAME("foo", "bar"),
    RENAME("foo", "A/foo"),
    RENAME("foo", "A/bar"),
    RENAME("bar", "foo"),
    RENAME("bar", "A/foo"),
    RENAME("bar", "A/bar"),
    RENAME("A/foo", "foo"),
    RENAME("A/foo", "bar"),
    RENAME("A/foo", "A/bar"),
    RENAME("A/bar", "foo"),
    RENAME("A/bar", "bar"),
    RENAME("A/bar", "A/foo"),
    RENAME_DIRECTORY("A", "B"),
    RENAME_DIRECTORY("B", "A"),
    RENAME_DIRECTORY("A/C", "B"),
    RENAME_DIRECTORY("B", "A/C"),
    FALLOCATE("fallocate", "foo", 0, 1000, 1500),
    FALLOCATE("fallocate-keep", "foo", PMFS_KEEP_SIZE, 1000, 1500),
    FALLOCATE("punch", "foo", PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 400, 700),
    FALLOCATE("punch-block", "A/bar", PMFS_PUNCH_HOLE | PMFS_KEEP_SIZE, 0, BLOCK),
    FALLOCATE("zero", "foo", PMFS_ZERO_RANGE, 300, 1500),
    FALLOCATE("zero-keep", "A/bar", PMFS_ZERO_RANGE | PMFS_KEEP_SIZE, 600, 1000),
    TRUNCATE("shorten", "foo", 300),
    TRUNCATE("lengthen", "foo", 3000),
    TRUNCATE("shorten-block", "A/bar", BLOCK),
    TRUNCATE("clear", "A/bar", 0),
    {"rmdir-A/C", has_empty, run_rmdir, "A/C", NULL, 0, 0, ACE, 0},

    WRITE_OF(1),
    WRITE_OF(7),
    WRITE_OF(9),
    WRITE_OF(63),
    WRITE_OF(65),
    NAME_OF(1),
    NAME_OF(27),
    NAME_OF(63),
    NAME_OF(64),
    NAME_OF(255),
    EXTRA_OP("append1-foo", has_file, run_append, "foo", NULL, 0, 1),
    EXTRA_OP("append63-foo", has_file, run_append, "foo", NULL, 0, 63),
    EXTRA_OP("rename-name255", has_file_and_no_long_name, run_rename_long, "foo", NULL,
             0, 255),
    EXTRA_OP("symlink9", has_nothing, run_symlink, "link", NULL, 0, 9),
    EXTRA_OP("symlink1500", has_nothing, run_symlink, "link", NULL, 0, 1500),
    EXTRA_OP("mkfifo", has_nothing, run_mkfifo, "fifo", NULL, 0, 0),
    EXTRA_OP("mknod", has_nothing, run_mknod, "device", NULL, 0, 0),
    NAMES("split", has_names, run_link_low, 8, 7, 0),
    NAMES("split-leaving", has_names, run_rename_low, 8, 7, 0),
    {"split-whiteout-D", has_names, run_whiteout_low, "D", NULL, 8, 7, EXTRA | OP_SLOW,
     0},
    NAMES("plant", has_names, run_link_low, 0, 16, 0),
    NAMES("clear", has_names, run_unlink_low, 1, 15, 0),
    NAMES("join", has_names, run_unlink_low, 2, 14, 7),
    NAMES("move", has_names, run_rename_low, 1, 15, 0),
    NAMES("convert", has_linear, run_convert, 9, 7, 0),
    NAMES("link-twin", has_twin, run_link_twin, 1, 1, 0),
    NAMES("unlink-twin", has_twins, run_unlink_twin, 1, 1, 0),
    NAMES("rename-twin", has_twin, run_rename_twin, 1, 1, 0),
    NAMES("replace-twin", has_twins, run_rename_twin, 1, 1, 0),
    NAMES("exchange-twins", has_twins, run_exchange_twins, 1, 1, 0),
    NAMES("split-twins", has_twins, run_link_low, 8, 5, 0),
    NAMES("split-twin", has_twin, run_link_twin, 8, 6, 0),
    NAMES("join-twins", has_twins, run_unlink_low, 1, 15, 9),
    CHMOD("foo", has_file, 0604),
    CHMOD("A", has_empty, 0711),
    EXTRA_OP("chown-foo", has_file, run_chown, "foo", NULL, 0, 0),
    EXTRA_OP("utimes-foo", has_file, run_utimes, "foo", NULL, 0, 0),
    EXTRA_OP("setattr-foo", has_file, run_setattr, "foo", NULL, 0, 60),
    EXTRA_OP("exchange-foo-A/bar", has_files, run_exchange, "foo", "A/bar", 0, 0),
    EXTRA_OP("exchange-foo-A/C", has_file_and_directory, run_exchange, "foo", "A/C", 0,
             0),
    EXTRA_OP("exchange-A/C-B", has_directories, run_exchange, "A/C", "B", 0, 0),
    EXTRA_OP("whiteout-foo-A/bar", has_file_and_parents, run_whiteout, "foo", "A/bar",
             0, 0),
    {"whiteout-A/foo-A/bar", has_file_and_parents, run_whiteout, "A/foo", "A/bar", 0, 0,
     EXTRA | OP_SLOW, 0},
    EXTRA_OP("whiteout-A/C-B", has_directories, run_whiteout, "A/C", "B", 0, 0),
    EXTRA_OP("write-hole", has_sparse_file, run_write, "sparse", NULL, 5 * BLOCK + 10,
             700),
    EXTRA_OP("write-far", has_file, run_write, "foo", NULL, 70 * BLOCK, 10),
    EXTRA_OP("lengthen-cut", has_cut_file, run_truncate, "cut", NULL, 0, 3000),
    EXTRA_OP("write-far-behind-cut", has_cut_file, run_write, "cut", NULL, 70 * BLOCK,
             10),
    EXTRA_OP("write-behind-cut", has_cut_file, run_write, "cut", NULL, 450, 20),
    EXTRA_OP("write-gap", has_file, run_write, "foo", NULL, 610, 20),
    EXTRA_OP("unlink-sparse", has_sparse_file, run_unlink, "sparse", NULL, 0, 0),
    {"write-long", has_long_file, run_write, "long", NULL, 1000, (uint64_t)8 << 10,
     EXTRA | OP_SLOW, 0},
    EXTRA_OP("shorten-long", has_long_file, run_truncate, "long", NULL, 0, 100),
    EXTRA_OP("unlink-long", has_long_file, run_unlink, "long", NULL, 0, 0),
    EXTRA_OP("copy-foo-A/bar", has_files, run_copy, "foo", "A/bar", 600, 600),
    EXTRA_OP("copy-hole-foo", has_hole, run_copy, "hole", "foo", 0, 1000),
    EXTRA_OP("copy-hole-A/bar", has_hole, run_copy, "hole", "A/bar", 100, 1200),
    EXTRA_OP("setxattr-foo", has_file, run_setxattr, "foo", NULL, 0, 20),
    EXTRA_OP("setxattr1200-foo", has_file, run_setxattr, "foo", NULL, 0, 1200),
    EXTRA_OP("replacexattr-foo", has_attribute, run_setxattr, "foo", NULL, 30, 20),
    EXTRA_OP("growxattr-foo", has_attribute, run_setxattr, "foo", NULL, 30, 1200),
    EXTRA_OP("removexattr-foo", has_attribute, run_removexattr, "foo", NULL, 1200, 0),
    EXTRA_OP("unlink-attribute", has_attribute, run_unlink, "foo", NULL, 1200, 0),
    EXTRA_OP("setacl-foo", has_file, run_set_acl, "foo", NULL, 0, 0),
    {"chmod-acl-foo", has_acl, run_chmod, "foo", NULL, 0, 0, EXTRA, 0604},
    EXTRA_OP("creat-inheriting", has_default_acl, run_creat, "A/new", "A", 0, 0),
    EXTRA_OP("mkdir-inheriting", has_default_acl, run_mkdir, "A/new", "A", 0, 0),
    EXTRA_OP("removeacl-foo", has_acl, run_remove_acl, "foo", NULL, 0, 0),
    EXTRA_OP("setdefaultacl-A", has_empty, run_set_default_acl, "A", NULL, 0, 0),
    EXTRA_OP("removedefaultacl-A", has_own_default_acl, run_remove_default_acl, "A",
             NULL, 0, 0),
    DROPPING("setacl-dropping", has_set_id, run_set_acl_dropping, 0, 0, 0),
    DROPPING("write-dropping", has_privileges, run_write_dropping, 100, 100,
             PMFS_WRITE_DROPS_PRIVILEGES),
    DROPPING("write-block-dropping", has_privileges, run_write_dropping, 0, BLOCK,
             PMFS_WRITE_DROPS_PRIVILEGES | PMFS_WRITE_DROPS_SETGID),
    DROPPING("extend-dropping", has_privileges, run_write_dropping, 300, 1500,
             PMFS_WRITE_DROPS_PRIVILEGES),
    DROPPING("append1-dropping", has_privileges, run_write_dropping, 0, 1,
             PMFS_APPEND | PMFS_WRITE_DROPS_PRIVILEGES),
    DROPPING("append1-dropping-bits", has_set_id, run_write_dropping, 0, 1,
             PMFS_APPEND | PMFS_WRITE_DROPS_PRIVILEGES),
    DROPPING("write-dropping-capabilities", has_privileges, run_write_dropping, 100,
             100, PMFS_WRITE_DROPS_CAPABILITIES),
    DROPPING("shorten-dropping", has_privileges, run_set_dropping, 0, 300,
             PMFS_SET_SIZE | PMFS_DROP_PRIVILEGES),
    DROPPING("lengthen-dropping-bits", has_set_id, run_set_dropping, 0, 3000,
             PMFS_SET_SIZE | PMFS_DROP_PRIVILEGES),
    DROPPING("chown-dropping", has_privileges, run_set_dropping, 0, 0,
             PMFS_SET_UID | PMFS_SET_GID | PMFS_DROP_PRIVILEGES),
    DROPPING("chown-dropping-bits", has_set_id, run_set_dropping, 0, 0,
             PMFS_SET_UID | PMFS_DROP_SETGID),
    EXTRA_OP("write-orphan", has_orphan, run_write_open, "foo", NULL, 100, 1000),
    EXTRA_OP("release-orphan", has_orphan, run_release, "foo", NULL, 0, 0),
    EXTRA_OP("tmpfile", has_anything, run_tmpfile, NULL, NULL, 0, 0),
    EXTRA_OP("tmpfile-write", has_anything, run_tmpfile, NULL, NULL, 0, 700),
    EXTRA_OP("write-nameless", has_nameless, run_write_open, "new", NULL, 100, 1000),
    EXTRA_OP("link-nameless", has_nameless, run_link_open, "new", NULL, 0, 700),
    EXTRA_OP("link-nameless-A/new", has_nameless, run_link_open, "A/new", NULL, 0, 0),
    EXTRA_OP("release-nameless", has_nameless, run_release, "new", NULL, 0, 700),
    EXTRA_OP("write-open", has_open_file, run_write_open, "foo", NULL, 9, 63),

    {"remount", has_anything, run_remount, NULL, NULL, 0, 0, EXTRA | OP_ALONE, 0},

    REPAIR("links", has_wrong_links, NULL),
    REPAIR("counts", has_wrong_counts, NULL),
    REPAIR("parent", has_wrong_parent, NULL),
    REPAIR("type", has_wrong_type, NULL),
    REPAIR("lost-file", has_lost, "foo"),
    REPAIR("lost-directory", has_lost, "A"),
    REPAIR("lost-taken", has_taken, "foo"),
    REPAIR("other-inode", has_other_inode, NULL),
    REPAIR("named-orphan", has_named_orphan, NULL),
    REPAIR("lost-blocks", has_lost_blocks, NULL),
    REPAIR("lost-run", has_lost_run, "run"),
    REPAIR("free-blocks", has_free_blocks, NULL),
    REPAIR("own-blocks", has_no_own_blocks, NULL),
    REPAIR("much", has_much, NULL),

    {"creat-B/new", has_nothing, run_creat, "B/new", NULL, 0, 0, EXTRA | OP_INSIDE, 0},
    {"unlink-B/old", has_file, run_unlink, "B/old", NULL, 0, 0, EXTRA | OP_INSIDE, 0},
    {"rename-B/old-B/new", has_file_only, run_rename, "B/old", "B/new", 0, 0,
     EXTRA | OP_INSIDE, 0},
    {"write-B/old", has_file, run_write, "B/old", NULL, 100, 1000, EXTRA | OP_INSIDE,
     0},
};
const size_t op_count = sizeof(ops) / sizeof(*ops);

const struct op *op_find(const char *name, size_t length)
{
    for (size_t i = 0; i < op_count; i++)
        if (strlen(ops[i].name) == length && memcmp(ops[i].name, name, length) == 0)
            return &ops[i];
    return NULL;
}
