/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fsck.c - the verifier, which only reads; repair.c acts on what it says. Everything
 * reachable is claimed once, in a bitmap of blocks: a second claim is a finding and
 * leads no further. So each block is read once, whatever the medium says, and the time
 * is bounded by the size of the pool.
 *
 *   1. the pool, by the library; the superblock
 *   2. the inode table: its maps, its states
 *   3. each inode: its fields, its block map, and, of a directory, the entries
 *   4. names against link counts; directories against the root
 *   5. allocated blocks against claimed ones
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "libminl2r/tools/utf8.h"
#include "pmfs-proto/core/dir.h"
#include "pmfs-proto/core/fsck.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/trie.h"
#include "pmfs-proto/core/view.h"
#include "pmfs-proto/core/xattr.h"

/* What is found about an inode, besides what it says itself. */
struct known {
    uint32_t names;       /* entries that name it */
    uint32_t directories; /* of a directory: entries in it that name one */
    uint64_t parent;      /* of a directory: where its name is; 0: none found */
    uint64_t walk;        /* of a directory: the walk to the root that came by last */
};

struct fsck {
    struct pmfs fs;
    fsck_visit_fn *visit;
    void *arg;
    struct pmfs_fsck_summary sum;
    uint64_t damages;  /* findings that are FSCK_DAMAGE */
    uint64_t *claimed; /* one bit per block */
    uint64_t inode_count;
    struct known *known; /* [inode_count] */
    struct map states;
    struct map inodes;

    /* The names of the directory being read, by hash. */
    uint64_t *hashes;
    uint64_t hash_count;
    uint64_t hash_capacity;
};

__attribute__((format(printf, 3, 0))) static void
report_list(struct fsck *fsck, struct fsck_finding finding, const char *format,
            va_list args)
{
    char what[320], line[4 * sizeof(what)];

    vsnprintf(what, sizeof(what), format, args);
    utf8_escape(what, strlen(what), line); /* names are any bytes */
    finding.what = line;
    fsck->sum.findings++;
    fsck->damages += finding.kind == FSCK_DAMAGE;
    if (fsck->visit)
        fsck->visit(fsck->arg, &finding);
}

/* A finding that repair.c may act on. */
__attribute__((format(printf, 3, 4))) static void
report_as(struct fsck *fsck, struct fsck_finding finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_list(fsck, finding, format, args);
    va_end(args);
}

__attribute__((format(printf, 2, 3))) static void report(struct fsck *fsck,
                                                         const char *format, ...)
{
    va_list args;

    va_start(args, format);
    report_list(fsck, (struct fsck_finding){.kind = FSCK_DAMAGE}, format, args);
    va_end(args);
}

static void library_found(void *arg, const char *what)
{
    report_as(arg, (struct fsck_finding){.kind = FSCK_POOL}, "pool: %s", what);
}

static void check_own_blocks(struct fsck *fsck, const struct minl2r_pool *pool)
{
    uint64_t count = view_count_unmarked(pool);

    if (count > 0)
        report_as(fsck, (struct fsck_finding){.kind = FSCK_OWN_BLOCKS},
                  "pool: %" PRIu64 " of its own blocks are marked free", count);
}

/* ---- Blocks -------------------------------------------------------------------- */

static bool is_claimed(const struct fsck *fsck, uint64_t offset)
{
    uint64_t index = view_block_index(fsck->fs.pool, offset);

    return fsck->claimed[index / 64] >> (index % 64) & 1;
}

/* Claims a block for `ino` (0: the inode table). False if it cannot have it. */
static bool claim(struct fsck *fsck, uint64_t offset, uint64_t ino)
{
    uint64_t index;

    if (!fs_block(&fsck->fs, offset)) {
        report(fsck,
               "inode %" PRIu64 ": block map: 0x%" PRIx64 " is no block of the pool",
               ino, offset);
        return false;
    }
    if (is_claimed(fsck, offset)) {
        report(fsck, "inode %" PRIu64 ": block map: block 0x%" PRIx64 " is used twice",
               ino, offset);
        return false;
    }
    if (!view_is_allocated(fsck->fs.pool, offset))
        report_as(fsck,
                  (struct fsck_finding){.kind = FSCK_UNALLOCATED, .offset = offset},
                  "inode %" PRIu64 ": block map: block 0x%" PRIx64 " is not allocated",
                  ino, offset);
    index = view_block_index(fsck->fs.pool, offset);
    fsck->claimed[index / 64] |= (uint64_t)1 << (index % 64);
    fsck->sum.blocks_used++;
    return true;
}

/* A walk over a block map that claims all of it. */
struct walk {
    struct fsck *fsck;
    uint64_t ino;
    uint64_t limit;  /* blocks from here on should not be */
    uint64_t blocks; /* claimed, nodes included */
    uint64_t data;   /* claimed below `limit` */
    uint64_t beyond; /* claimed from `limit` on */
    uint64_t end;    /* behind the last data block claimed */
    /* Of each level: the node, its next slot, if it names anything, and the index of
     * its first block. */
    const uint64_t *node[MAP_HEIGHT_MAX + 1];
    uint32_t next[MAP_HEIGHT_MAX + 1];
    bool names[MAP_HEIGHT_MAX + 1];
    uint64_t base[MAP_HEIGHT_MAX + 1];
    /* For each data block below `limit`; NULL: nothing. */
    void (*visit)(struct walk *walk, uint64_t index, const void *block);
};

static void walk_data(struct walk *walk, uint64_t offset, uint64_t index)
{
    if (!claim(walk->fsck, offset, walk->ino))
        return;
    walk->blocks++;
    walk->end = index + 1;
    if (index >= walk->limit) {
        walk->beyond++;
        return;
    }
    walk->data++;
    if (walk->visit)
        walk->visit(walk, index, fs_block(&walk->fsck->fs, offset));
}

static void walk_enter(struct walk *walk, uint32_t level, uint64_t offset,
                       uint64_t base)
{
    walk->node[level] = NULL;
    if (!claim(walk->fsck, offset, walk->ino))
        return;
    walk->blocks++;
    walk->node[level] = fs_block(&walk->fsck->fs, offset);
    walk->next[level] = 0;
    walk->names[level] = false;
    walk->base[level] = base;
}

/* Nodes that become empty are freed: one that is empty was something else. */
static void walk_leave(struct walk *walk, uint32_t level)
{
    const uint64_t *node = walk->node[level];

    if (node && !walk->names[level])
        report(walk->fsck,
               "inode %" PRIu64 ": block map: node 0x%" PRIx64 " names nothing",
               walk->ino, minl2r_offset(walk->fsck->fs.pool, node));
}

static void walk_nodes(struct walk *walk, uint32_t height)
{
    const struct pmfs *fs = &walk->fsck->fs;
    uint32_t level = height;

    while (level <= height) {
        if (!walk->node[level] || walk->next[level] >> fs->map_shift) {
            walk_leave(walk, level++);
            continue;
        }
        uint32_t number = walk->next[level]++;
        uint64_t offset = walk->node[level][number];
        uint64_t base =
            walk->base[level] + ((uint64_t)number << (fs->map_shift * (level - 1)));

        if (!offset)
            continue;
        walk->names[level] = true;
        if (level == 1)
            walk_data(walk, offset, base);
        else
            walk_enter(walk, --level, offset, base);
    }
}

static void walk_map(struct walk *walk, const struct pm_map *pm)
{
    if (pm->height > walk->fsck->fs.map_height) {
        report(walk->fsck, "inode %" PRIu64 ": block map: height %" PRIu64 " above %u",
               walk->ino, pm->height, walk->fsck->fs.map_height);
        return;
    }
    if (!pm->root)
        return;
    if (pm->height == 0) {
        walk_data(walk, pm->root, 0);
        return;
    }
    walk_enter(walk, (uint32_t)pm->height, pm->root, 0);
    walk_nodes(walk, (uint32_t)pm->height);
}

/* ---- The inode table ----------------------------------------------------------- */

static void walk_table(struct fsck *fsck, const struct pm_map *pm, uint64_t limit,
                       bool sparse, const char *what)
{
    struct walk walk = {.fsck = fsck, .limit = limit};

    walk_map(&walk, pm);
    if (walk.beyond)
        report(fsck, "inode table: %s: %" PRIu64 " blocks past the end", what,
               walk.beyond);
    if (!sparse && walk.data < limit)
        report(fsck, "inode table: %s: %" PRIu64 " blocks are missing", what,
               limit - walk.data);
}

static int read_table(struct fsck *fsck)
{
    struct pmfs *fs = &fsck->fs;
    const struct pm_fs *pm = fs->pm;
    uint64_t count = pm->inode_count;

    if (count == 0 || count % fs->block_size ||
        count >> fs->block_shift > fs->block_count) {
        report(fsck, "superblock: %" PRIu64 " inodes", count);
        return -EUCLEAN;
    }
    walk_table(fsck, &pm->states, count >> fs->block_shift, false, "states");
    walk_table(fsck, &pm->inodes, count / (fs->block_size / PM_INODE_SIZE), true,
               "inodes");
    if (map_init(&fsck->states, fs, &pm->states, 0) < 0 ||
        map_init(&fsck->inodes, fs, &pm->inodes, 0) < 0)
        return -EUCLEAN;
    fsck->known = calloc(count, sizeof(*fsck->known));
    if (!fsck->known)
        return fs_error(ENOMEM, "out of memory for %" PRIu64 " inodes", count);
    fsck->inode_count = count;
    return 0;
}

/* The states of the block that has that of `ino`, or NULL. */
static const uint8_t *states_of(struct fsck *fsck, uint64_t ino)
{
    const void *block;

    if (ino >= fsck->inode_count ||
        map_block(&fsck->states, ino >> fsck->fs.block_shift, &block) < 0)
        return NULL;
    return block;
}

/* The state of an inode; free, where it cannot be read. */
static uint8_t state_of(struct fsck *fsck, uint64_t ino)
{
    const uint8_t *states = states_of(fsck, ino);

    return states ? states[ino & (fsck->fs.block_size - 1)] : PM_STATE_FREE;
}

/* The first of the states from `at` on that is not free, or `end`. */
static uint64_t skip_free(const uint8_t *states, uint64_t at, uint64_t end)
{
    uint64_t eight;

    while (at < end) {
        if (at % 8 == 0) {
            memcpy(&eight, states + at, sizeof(eight));
            if (eight == 0) {
                at += 8;
                continue;
            }
        }
        if (states[at] != PM_STATE_FREE)
            break;
        at++;
    }
    return at;
}

/* The first inode from `ino` on whose state is not free, or inode_count. */
static uint64_t next_in_use(struct fsck *fsck, uint64_t ino)
{
    uint64_t mask = fsck->fs.block_size - 1;

    while (ino < fsck->inode_count) {
        const uint8_t *states = states_of(fsck, ino);
        uint64_t at = states ? skip_free(states, ino & mask, mask + 1) : mask + 1;

        ino = (ino & ~mask) + at;
        if (at <= mask)
            break;
    }
    return ino;
}

/* An inode whose state is not free, or NULL. */
static const struct pm_inode *inode_of(struct fsck *fsck, uint64_t ino)
{
    uint32_t per_block = fsck->fs.block_size / PM_INODE_SIZE;
    const void *block;

    if (state_of(fsck, ino) == PM_STATE_FREE ||
        map_block(&fsck->inodes, ino / per_block, &block) < 0 || !block)
        return NULL;
    return (const struct pm_inode *)block + ino % per_block;
}

/* ---- Directories --------------------------------------------------------------- */

static void add_hash(struct fsck *fsck, uint64_t hash)
{
    if (fsck->hash_count == fsck->hash_capacity) {
        uint64_t capacity = fsck->hash_capacity ? fsck->hash_capacity * 2 : 256;
        uint64_t *hashes = realloc(fsck->hashes, capacity * sizeof(*hashes));

        if (!hashes)
            return; /* then equal names stay unseen */
        fsck->hashes = hashes;
        fsck->hash_capacity = capacity;
    }
    fsck->hashes[fsck->hash_count++] = hash;
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static void check_equal_names(struct fsck *fsck, uint64_t dir)
{
    uint64_t equal = 0;

    if (fsck->hash_count == 0)
        return;
    qsort(fsck->hashes, fsck->hash_count, sizeof(*fsck->hashes), compare_hashes);
    for (uint64_t i = 1; i < fsck->hash_count; i++)
        equal += fsck->hashes[i] == fsck->hashes[i - 1];
    if (equal)
        report_as(fsck, (struct fsck_finding){.kind = FSCK_CONTENT},
                  "directory %" PRIu64 ": %" PRIu64 " names come twice", dir, equal);
}

/* Counts a directory's name; the directory must say the same. */
static void check_subdirectory(struct fsck *fsck, uint64_t dir, uint64_t ino,
                               const struct pm_inode *pm)
{
    struct known *known = &fsck->known[ino];

    fsck->known[dir].directories++;
    if (ino == PM_ROOT_INO) {
        report(fsck, "directory %" PRIu64 " has a name of the root directory", dir);
        return;
    }
    if (known->parent) {
        report(fsck,
               "directory %" PRIu64 " has a second name in %" PRIu64
               ", besides that in %" PRIu64,
               ino, dir, known->parent);
        return;
    }
    known->parent = dir;
    if (pm->parent != dir)
        report_as(fsck,
                  (struct fsck_finding){.kind = FSCK_PARENT, .ino = ino, .value = dir},
                  "directory %" PRIu64 " is in %" PRIu64 ", but its parent is %" PRIu64,
                  ino, dir, pm->parent);
}

static void check_type(struct fsck *fsck, uint64_t dir, const struct pm_dirent *entry,
                       const struct pm_inode *pm)
{
    const struct fsck_finding finding = {
        .kind = FSCK_ENTRY_TYPE,
        .offset = minl2r_offset(fsck->fs.pool, &entry->type),
        .value = pm->mode >> 12,
    };

    if (entry->type != (uint8_t)(pm->mode >> 12))
        report_as(fsck, finding,
                  "directory %" PRIu64 ": \"%.*s\" has type %u, inode %" PRIu64
                  " has %u",
                  dir, entry->name_size, entry->name, entry->type, entry->ino,
                  (pm->mode & S_IFMT) >> 12);
}

/* One that is elsewhere than its hash says is listed by nobody, and not found. */
static void check_hash(struct fsck *fsck, const struct trie *trie,
                       const struct pm_dirent *entry)
{
    uint64_t hash = dirent_hash(trie->fs, entry->name, entry->name_size);

    if (hash < trie_first(trie) || hash > trie_last(trie))
        report_as(fsck, (struct fsck_finding){.kind = FSCK_CONTENT},
                  "directory %" PRIu64 ": \"%.*s\" is in a block for other names",
                  trie->ino, entry->name_size, entry->name);
    if (dirent_has_bad_position(entry))
        report_as(fsck, (struct fsck_finding){.kind = FSCK_CONTENT},
                  "directory %" PRIu64 ": the position of \"%.*s\" is impossible",
                  trie->ino, entry->name_size, entry->name);
}

/*
 * Of a block whose entries are good. A name without its tag is listed, but not found.
 */
static void check_tags(struct fsck *fsck, const struct trie *trie)
{
    static uint8_t tags[DIRENT_TAGS_MAX];
    const struct fsck_finding finding = {
        .kind = FSCK_TAGS, .ino = trie->ino, .offset = trie->slot};

    if (dirent_make_tags(trie->fs, trie->ino, trie->block, tags) == 0 &&
        memcmp(trie->block, tags, dirent_tags(trie->fs)) != 0)
        report_as(fsck, finding,
                  "directory %" PRIu64 ": block 0x%" PRIx64
                  ": its tags are not those of its entries",
                  trie->ino, trie->slot);
}

static void check_entry(struct fsck *fsck, uint64_t dir, const struct pm_dirent *entry)
{
    const struct pm_inode *pm = inode_of(fsck, entry->ino);

    add_hash(fsck, XXH3_64bits(entry->name, entry->name_size));
    if (!pm) {
        report(fsck,
               "directory %" PRIu64 ": \"%.*s\" names inode %" PRIu64 ", which is free",
               dir, entry->name_size, entry->name, entry->ino);
        return;
    }
    fsck->known[entry->ino].names++;
    check_type(fsck, dir, entry, pm);
    if (S_ISDIR(pm->mode))
        check_subdirectory(fsck, dir, entry->ino, pm);
}

/* Reads the entries of a block. Returns how many are live. */
static uint32_t check_entries(struct walk *walk, uint64_t index, const void *block,
                              const struct trie *trie)
{
    struct fsck *fsck = walk->fsck;
    const struct pm_dirent *entry;
    uint32_t first = trie ? dirent_tags(&fsck->fs) : 0, count = 0;

    for (uint32_t at = first; at < fsck->fs.block_size; at += entry->size) {
        entry = dirent_at(&fsck->fs, block, at);
        if (!entry) {
            report(fsck,
                   "directory %" PRIu64 ": block %" PRIu64
                   ": the entry at byte %" PRIu32 " is impossible",
                   walk->ino, index, at);
            return count + 1;
        }
        if (!entry->ino)
            continue;
        count++;
        if (!dirent_has_good_name(entry))
            report(fsck,
                   "directory %" PRIu64 ": block %" PRIu64 ": the name at byte %" PRIu32
                   " is impossible",
                   walk->ino, index, at);
        check_entry(fsck, walk->ino, entry);
        if (trie)
            check_hash(fsck, trie, entry);
    }
    if (trie)
        check_tags(fsck, trie);
    return count;
}

/* Of a directory of an older format. */
static void visit_linear(struct walk *walk, uint64_t index, const void *block)
{
    check_entries(walk, index, block, NULL);
}

static bool names_nothing(const struct pmfs *fs, const uint64_t *node)
{
    uint32_t slots = 1u << fs->map_shift;

    for (uint32_t i = 0; i < slots; i++) {
        if (node[i])
            return false;
    }
    return true;
}

/*
 * Claims the nodes that are come to at the first of their hashes. False: one is
 * another's, and the way ends above it.
 */
static bool enter_nodes(struct walk *walk, struct trie *trie, uint64_t hash)
{
    const struct pmfs *fs = trie->fs;

    for (uint32_t level = 0; level < trie->height; level++) {
        const uint64_t *node = trie->way[level].node;
        uint64_t offset = minl2r_offset(fs->pool, node);

        if (hash << (level * fs->map_shift))
            continue;
        if (!claim(walk->fsck, offset, walk->ino)) {
            trie->height = level;
            return false;
        }
        walk->blocks++;
        if (names_nothing(fs, node))
            report(walk->fsck,
                   "directory %" PRIu64 ": node 0x%" PRIx64 " names nothing", walk->ino,
                   offset);
    }
    return true;
}

static void check_block(struct walk *walk, const struct trie *trie)
{
    if (!claim(walk->fsck, trie->slot, walk->ino))
        return;
    walk->blocks++;
    if (check_entries(walk, walk->end++, trie->block, trie) == 0 && trie->height > 0)
        report_as(walk->fsck, (struct fsck_finding){.kind = FSCK_CONTENT},
                  "directory %" PRIu64 ": block 0x%" PRIx64 " has no names", walk->ino,
                  trie->slot);
}

/* Goes from group to group of slots, as dir_list() does. */
static void walk_trie(struct walk *walk, const struct pm_map *pm)
{
    struct fsck *fsck = walk->fsck;
    struct trie trie;
    uint64_t hash = 0;

    do {
        int rc = trie_find(&trie, &fsck->fs, pm, walk->ino, hash);
        bool entered = enter_nodes(walk, &trie, hash);

        if (entered && rc < 0)
            report(fsck, "%s", pmfs_errormsg());
        if (entered && rc == 0)
            trie_widen(&trie);
        if (entered && rc == 0 && trie.block)
            check_block(walk, &trie);
        hash = trie_last(&trie) + 1;
    } while (hash != 0);
    walk->data = walk->end < walk->limit ? walk->end : walk->limit;
    walk->beyond = walk->end - walk->data;
}

static void walk_directory(struct walk *walk, const struct pm_inode *pm)
{
    walk->fsck->hash_count = 0;
    walk->visit = visit_linear;
    if (pm->flags & PM_INODE_HASHED)
        walk_trie(walk, &pm->map);
    else
        walk_map(walk, &pm->map);
}

/* ---- Inodes -------------------------------------------------------------------- */

static void count_inode(struct fsck *fsck, const struct pm_inode *pm, uint8_t state)
{
    fsck->sum.orphans += state == PM_STATE_ORPHAN;
    fsck->sum.truncates += state == PM_STATE_TRUNCATE;
    switch (pm->mode & S_IFMT) {
    case S_IFREG:
        fsck->sum.files++;
        break;
    case S_IFDIR:
        fsck->sum.directories++;
        break;
    case S_IFLNK:
        fsck->sum.symlinks++;
        break;
    default:
        fsck->sum.others++;
    }
}

/* Where a directory ends is told by its blocks, if none is missing among them. */
static void check_directory_size(struct fsck *fsck, const struct walk *walk, bool whole)
{
    bool known = whole && walk->end == walk->data + walk->beyond;
    const struct fsck_finding finding = {
        .kind = known ? FSCK_DIR_SIZE : FSCK_DAMAGE,
        .ino = walk->ino,
        .value = walk->end << fsck->fs.block_shift,
    };

    if (walk->data < walk->limit)
        report_as(fsck, finding, "inode %" PRIu64 ": %" PRIu64 " blocks are missing",
                  walk->ino, walk->limit - walk->data);
    else if (walk->beyond)
        report_as(fsck, finding, "inode %" PRIu64 ": %" PRIu64 " blocks past its end",
                  walk->ino, walk->beyond);
}

/* Content may be lost or not: only its owner can tell. */
static void check_content(struct fsck *fsck, const struct walk *walk,
                          const struct pm_inode *pm)
{
    const struct fsck_finding finding = {.kind = FSCK_CONTENT};

    if (walk->beyond && !(pm->flags & PM_INODE_BLOCKS_PAST_END))
        report_as(fsck, finding, "inode %" PRIu64 ": %" PRIu64 " blocks past its end",
                  walk->ino, walk->beyond);
    if (!S_ISREG(pm->mode) && walk->data < walk->limit)
        report_as(fsck, finding, "inode %" PRIu64 ": %" PRIu64 " blocks are missing",
                  walk->ino, walk->limit - walk->data);
}

/* `whole`: nothing of the map was wrong. */
static void check_blocks(struct fsck *fsck, const struct walk *walk,
                         const struct pm_inode *pm, uint8_t state, bool whole)
{
    const struct fsck_finding count = {
        .kind = whole ? FSCK_BLOCK_COUNT : FSCK_DAMAGE,
        .ino = walk->ino,
        .value = walk->blocks,
    };

    if (walk->blocks != pm->blocks)
        report_as(fsck, count,
                  "inode %" PRIu64 ": has %" PRIu64 " blocks, and counts %" PRIu64,
                  walk->ino, walk->blocks, pm->blocks);
    if (state != PM_STATE_USED)
        return;
    if (S_ISDIR(pm->mode))
        check_directory_size(fsck, walk, whole);
    else
        check_content(fsck, walk, pm);
}

/* Counts the blocks of attributes with the others. */
static void check_xattrs(struct fsck *fsck, const struct inode_place *place,
                         struct walk *walk)
{
    const struct fsck_finding finding = {.kind = FSCK_CONTENT};
    struct walk xattrs = {.fsck = fsck, .ino = place->ino};

    xattrs.limit = blocks_of(&fsck->fs, place->pm->xattr_size);
    walk_map(&xattrs, &place->pm->xattrs);
    walk->blocks += xattrs.blocks;
    if (xattrs.beyond)
        report_as(fsck, finding,
                  "inode %" PRIu64 ": %" PRIu64 " blocks past its extended attributes",
                  place->ino, xattrs.beyond);
    if (xattr_check(&fsck->fs, place) == -EUCLEAN)
        report_as(fsck, finding, "%s", pmfs_errormsg());
}

/* Of a directory just read: only an empty one is removed. */
static void check_is_empty(struct fsck *fsck, uint64_t ino)
{
    const struct fsck_finding finding = {
        .kind = FSCK_NAMED_ORPHAN,
        .ino = ino,
        .value = 2 + fsck->known[ino].directories,
    };

    if (fsck->hash_count > 0)
        report_as(fsck, finding,
                  "directory %" PRIu64 ": an orphan, but there are %" PRIu64
                  " names in it",
                  ino, fsck->hash_count);
}

static void check_inode(struct fsck *fsck, uint64_t ino, uint8_t state)
{
    const struct pm_inode *pm = inode_of(fsck, ino);
    struct inode_place place = {.ino = ino, .pm = pm};
    struct walk walk = {.fsck = fsck, .ino = ino};
    uint64_t damages = fsck->damages;

    if (!pm) {
        report(fsck, "inode table: no block for inode %" PRIu64, ino);
        return;
    }
    if (inode_check(&fsck->fs, &place, state) < 0) {
        report(fsck, "%s", pmfs_errormsg());
        return;
    }
    count_inode(fsck, pm, state);
    walk.limit = blocks_of(&fsck->fs, pm->size);
    if (S_ISDIR(pm->mode))
        walk_directory(&walk, pm);
    else
        walk_map(&walk, &pm->map);
    check_xattrs(fsck, &place, &walk);
    check_blocks(fsck, &walk, pm, state, fsck->damages == damages);
    if (S_ISDIR(pm->mode))
        check_equal_names(fsck, ino);
    if (S_ISDIR(pm->mode) && state == PM_STATE_ORPHAN)
        check_is_empty(fsck, ino);
}

static void check_inodes(struct fsck *fsck)
{
    uint64_t ino = next_in_use(fsck, 1);

    for (; ino < fsck->inode_count; ino = next_in_use(fsck, ino + 1))
        check_inode(fsck, ino, state_of(fsck, ino));
    if (state_of(fsck, PM_ROOT_INO) == PM_STATE_FREE)
        report(fsck, "inode table: the root directory is missing");
}

/* ---- Names and the tree -------------------------------------------------------- */

static void check_links(struct fsck *fsck, uint64_t ino, const struct pm_inode *pm)
{
    const struct known *known = &fsck->known[ino];
    bool is_dir = S_ISDIR(pm->mode);
    bool is_orphan = state_of(fsck, ino) == PM_STATE_ORPHAN;
    bool is_lost = known->names == 0 && ino != PM_ROOT_INO;
    uint32_t nlink = is_dir ? 2 + known->directories : known->names + is_lost;
    struct fsck_finding finding = {.ino = ino, .value = nlink};

    if (is_orphan && known->names) {
        finding.kind = FSCK_NAMED_ORPHAN;
        report_as(fsck, finding,
                  "inode %" PRIu64 ": an orphan, but it has %" PRIu32 " names", ino,
                  known->names);
    } else if (!is_orphan && is_lost) {
        finding.kind = FSCK_LOST;
        report_as(fsck, finding, "inode %" PRIu64 ": lost: it has no name", ino);
    } else if (!is_orphan && nlink != pm->nlink) {
        finding.kind = FSCK_LINK_COUNT;
        report_as(fsck, finding,
                  "inode %" PRIu64 ": should have %" PRIu32
                  " links, and counts %" PRIu32,
                  ino, nlink, pm->nlink);
    }
}

/*
 * Do the parents of a directory lead to the root, or at least to an end, which was
 * reported already? Each is visited once: a walk stops where another came by.
 */
static void check_path(struct fsck *fsck, uint64_t ino)
{
    uint64_t walk = ino;

    while (ino != PM_ROOT_INO && fsck->known[ino].walk == 0) {
        fsck->known[ino].walk = walk;
        if (!fsck->known[ino].parent)
            return;
        ino = fsck->known[ino].parent;
    }
    if (ino != PM_ROOT_INO && fsck->known[ino].walk == walk)
        report(fsck,
               "directory %" PRIu64 ": its parents lead in a circle, not to the root",
               ino);
}

static void check_tree(struct fsck *fsck)
{
    uint64_t ino = next_in_use(fsck, 1);

    for (; ino < fsck->inode_count; ino = next_in_use(fsck, ino + 1)) {
        const struct pm_inode *pm = inode_of(fsck, ino);

        if (!pm)
            continue;
        check_links(fsck, ino, pm);
        if (S_ISDIR(pm->mode))
            check_path(fsck, ino);
    }
}

/* ---- Allocation ---------------------------------------------------------------- */

struct lost {
    struct fsck *fsck;
    uint64_t first;
};

static void visit_allocated(void *arg, uint64_t offset)
{
    struct lost *lost = arg;

    if (is_claimed(lost->fsck, offset))
        return;
    if (lost->fsck->sum.blocks_lost++ == 0)
        lost->first = offset;
}

static void check_allocation(struct fsck *fsck)
{
    struct lost lost = {.fsck = fsck};

    view_visit_allocated(fsck->fs.pool, visit_allocated, &lost);
    if (fsck->sum.blocks_lost)
        report_as(fsck,
                  (struct fsck_finding){.kind = FSCK_LOST_BLOCKS,
                                        .value = fsck->sum.blocks_lost},
                  "%" PRIu64
                  " blocks are allocated but not reachable, the first is 0x%" PRIx64,
                  fsck->sum.blocks_lost, lost.first);
}

/* ---- All ----------------------------------------------------------------------- */

static void claim_root_object(struct fsck *fsck)
{
    uint64_t offset = view_root_offset(fsck->fs.pool);
    uint64_t end = offset + sizeof(struct pm_fs);

    for (; offset < end; offset += fsck->fs.block_size)
        claim(fsck, offset, 0);
}

static int check_all(struct fsck *fsck, struct minl2r_pool *pool)
{
    struct minl2r_info info;
    int rc = fs_open_super(&fsck->fs, pool);

    if (rc == -EUCLEAN)
        report(fsck, "%s", pmfs_errormsg());
    if (rc < 0)
        return rc;
    rc = fs_library_error(minl2r_pool_info(pool, &info), "info", 0);
    if (rc < 0)
        return rc;
    fsck->sum.blocks_free = info.blocks_free;
    fsck->claimed = calloc(view_block_count(pool) / 64 + 1, sizeof(*fsck->claimed));
    if (!fsck->claimed)
        return fs_error(ENOMEM, "out of memory");
    claim_root_object(fsck);
    rc = read_table(fsck);
    if (rc < 0)
        return rc;
    check_inodes(fsck);
    check_tree(fsck);
    check_allocation(fsck);
    return fsck->sum.findings
               ? fs_error(EUCLEAN, "%" PRIu64 " findings", fsck->sum.findings)
               : 0;
}

/* ---- Calls --------------------------------------------------------------------- */

static void finish(struct fsck *fsck, struct pmfs_fsck_summary *summary)
{
    free(fsck->claimed);
    free(fsck->known);
    free(fsck->hashes);
    if (summary)
        *summary = fsck->sum;
}

int fsck_begin(struct minl2r_pool *pool, fsck_visit_fn *visit, void *arg,
               struct fsck **result)
{
    struct fsck *fsck = calloc(1, sizeof(*fsck));

    if (!fsck)
        return fs_error(ENOMEM, "out of memory");
    fsck->visit = visit;
    fsck->arg = arg;
    *result = fsck;
    view_check(pool, library_found, fsck);
    check_own_blocks(fsck, pool);
    return check_all(fsck, pool);
}

void fsck_end(struct fsck *fsck, struct pmfs_fsck_summary *summary)
{
    finish(fsck, summary);
    free(fsck);
}

const struct pmfs *fsck_super(const struct fsck *fsck)
{
    return &fsck->fs;
}

bool fsck_is_sound(const struct fsck *fsck)
{
    return fsck->damages == 0;
}

const struct pm_inode *fsck_inode(struct fsck *fsck, uint64_t ino,
                                  const uint8_t **state)
{
    *state = states_of(fsck, ino) + (ino & (fsck->fs.block_size - 1));
    return inode_of(fsck, ino);
}

bool fsck_is_reachable(const struct fsck *fsck, uint64_t offset)
{
    return is_claimed(fsck, offset);
}

/* For who wants to be told in words only. */
struct teller {
    pmfs_fsck_fn *found;
    void *arg;
};

static void tell(void *arg, const struct fsck_finding *finding)
{
    const struct teller *teller = arg;

    if (teller->found)
        teller->found(teller->arg, finding->what);
}

int fsck_pool(struct minl2r_pool *pool, pmfs_fsck_fn *found, void *arg,
              struct pmfs_fsck_summary *summary)
{
    struct teller teller = {found, arg};
    struct fsck fsck = {.visit = tell, .arg = &teller};
    int rc = check_all(&fsck, pool);

    finish(&fsck, summary);
    return rc;
}

/* The last finding is held back: what keeps the pool from being opened is told once. */
struct pool_findings {
    struct fsck *fsck;
    char last[256]; /* empty: none */
};

static void pass_on(struct pool_findings *found)
{
    if (found->last[0])
        library_found(found->fsck, found->last);
    found->last[0] = 0;
}

static void pool_found(void *arg, const char *what)
{
    struct pool_findings *found = arg;

    pass_on(found);
    snprintf(found->last, sizeof(found->last), "%s", what);
}

/* Its findings do not end the check: what can be believed of the files is looked at. */
static int check_pool(struct pool_findings *found, const char *path)
{
    int rc = minl2r_pool_check(path, pool_found, found);

    if (rc == -EUCLEAN && found->fsck->sum.findings == 0 && !found->last[0])
        pool_found(found, minl2r_errormsg());
    return rc == -EUCLEAN ? 0 : rc;
}

static int check_files(struct pool_findings *found, const char *path)
{
    struct fsck *fsck = found->fsck;
    struct minl2r_pool *pool;
    int rc = view_open(path, PMFS_LAYOUT, &pool);

    if (rc != -EUCLEAN || strcmp(found->last, minl2r_errormsg()) != 0)
        pass_on(found);
    if (rc == -EUCLEAN)
        report(fsck, "pool: so damaged that its files were not looked at: %s",
               minl2r_errormsg());
    if (rc < 0)
        return fs_error(-rc, "%s", minl2r_errormsg());
    rc = check_all(fsck, pool);
    minl2r_pool_close(pool);
    return rc;
}

int pmfs_fsck(const char *path, pmfs_fsck_fn *found, void *arg,
              struct pmfs_fsck_summary *summary)
{
    fs_forget_message();

    struct teller teller = {found, arg};
    struct fsck fsck = {.visit = tell, .arg = &teller};
    struct pool_findings pool = {.fsck = &fsck};
    int rc = check_pool(&pool, path);

    rc = rc < 0 ? fs_error(-rc, "%s", minl2r_errormsg()) : check_files(&pool, path);
    finish(&fsck, summary);
    return fs_explain(rc);
}
