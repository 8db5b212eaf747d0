/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * repair.c - makes right what fsck.c finds, where that is safe. In rounds: each checks
 * everything, then repairs what that allows, until a round repairs nothing. Within a
 * round what a finding rests on comes first:
 *
 *   1. bits of the bitmaps, before anything is allocated; sizes of directories, before
 *      names are counted
 *   2. what follows from the names, if all of them were read: parents, types, link
 *      counts
 *   3. inodes without a name, and blocks that nothing reaches
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "pmfs-proto/core/dir.h"
#include "pmfs-proto/core/fsck.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/table.h"
#include "pmfs-proto/core/view.h"

#define ROUNDS_MAX 16
#ifndef BLOCKS_PER_TX /* less, so that crashtest has less to explore */
#define BLOCKS_PER_TX 512u
#endif
#define NAMES_MAX 100 /* that are tried for one file */
#define LOST_FOUND "lost+found"

struct finding {
    struct fsck_finding fsck;
    char what[320];
};

/* A finding that was declined, or whose repair has failed. */
struct refusal {
    uint64_t hash; /* of its words; 0: an empty place of the table */
    int why;       /* -errno; 0: it was declined */
};

struct repair {
    struct minl2r_pool *pool;
    struct fsck *fsck; /* of this round */
    struct pmfs *fs;   /* attached while names are added; else NULL */
    pmfs_repair_fn *ask;
    void *arg;
    struct finding *findings; /* of this round */
    uint64_t count;
    uint64_t capacity;
    bool no_memory;
    struct refusal *refusals; /* by hash, and from there on where there is a place */
    uint64_t refusal_count;
    uint64_t refusal_places; /* a power of two, or 0 */
    uint64_t repaired;
    int64_t now_ns; /* when it began */
};

/* ---- Findings ------------------------------------------------------------------ */

static void remember(void *arg, const struct fsck_finding *finding)
{
    struct repair *repair = arg;

    if (repair->count == repair->capacity) {
        uint64_t capacity = repair->capacity ? repair->capacity * 2 : 64;
        struct finding *findings =
            realloc(repair->findings, capacity * sizeof(*findings));

        if (!findings) {
            repair->no_memory = true;
            return;
        }
        repair->findings = findings;
        repair->capacity = capacity;
    }
    struct finding *kept = &repair->findings[repair->count++];

    kept->fsck = *finding;
    snprintf(kept->what, sizeof(kept->what), "%s", finding->what);
}

static uint64_t hash_of(const struct finding *finding)
{
    return XXH3_64bits(finding->what, strlen(finding->what)) | 1;
}

/* The place of a hash, or the empty one where it would be. */
static struct refusal *place_of(const struct repair *repair, uint64_t hash)
{
    uint64_t mask = repair->refusal_places - 1;
    uint64_t at = (hash >> 1) & mask;

    while (repair->refusals[at].hash && repair->refusals[at].hash != hash)
        at = (at + 1) & mask;
    return &repair->refusals[at];
}

/* Why it is not to be tried again, or NULL. */
static const struct refusal *refusal_of(const struct repair *repair,
                                        const struct finding *finding)
{
    if (repair->refusal_count == 0)
        return NULL;
    const struct refusal *refusal = place_of(repair, hash_of(finding));

    return refusal->hash ? refusal : NULL;
}

/* Half of the places stay empty. */
static int reserve_refusal(struct repair *repair)
{
    struct refusal *old = repair->refusals;
    uint64_t places = repair->refusal_places;

    if (repair->refusal_count < places / 2)
        return 0;
    struct refusal *refusals = calloc(places ? 2 * places : 64, sizeof(*refusals));

    if (!refusals)
        return fs_error(ENOMEM, "out of memory");
    repair->refusals = refusals;
    repair->refusal_places = places ? 2 * places : 64;
    for (uint64_t i = 0; i < places; i++) {
        if (old[i].hash)
            *place_of(repair, old[i].hash) = old[i];
    }
    free(old);
    return 0;
}

/* Once for each: what was refused is not tried again. */
static int refuse(struct repair *repair, const struct finding *finding, int why)
{
    uint64_t hash = hash_of(finding);
    int rc = reserve_refusal(repair);

    if (rc < 0)
        return rc;
    *place_of(repair, hash) = (struct refusal){hash, why};
    repair->refusal_count++;
    return 0;
}

/* ---- Single repairs, each a transaction ---------------------------------------- */

static int begin(const struct repair *repair, struct minl2r_tx **tx)
{
    return fs_library_error(minl2r_tx_begin(repair->pool, tx), "repair", 0);
}

static int set(const struct repair *repair, const void *field, const void *value,
               size_t size)
{
    struct minl2r_tx *tx;
    int rc = begin(repair, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_write(tx, field, value, size);
    return fs_end(tx, fs_library_error(rc, "repair", 0));
}

static int set_inode(const struct repair *repair, const struct fsck_finding *finding,
                     size_t field, size_t size)
{
    const uint8_t *state;
    const struct pm_inode *pm = fsck_inode(repair->fsck, finding->ino, &state);

    return set(repair, (const uint8_t *)pm + field, &finding->value, size);
}

static int adopt_orphan(const struct repair *repair, const struct fsck_finding *finding)
{
    const uint8_t used = PM_STATE_USED;
    const uint32_t nlink = (uint32_t)finding->value;
    const uint8_t *state;
    const struct pm_inode *pm = fsck_inode(repair->fsck, finding->ino, &state);
    struct minl2r_tx *tx;
    int rc = begin(repair, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_write(tx, &pm->nlink, &nlink, sizeof(nlink));
    if (rc == 0)
        rc = minl2r_tx_write(tx, state, &used, sizeof(used));
    return fs_end(tx, fs_library_error(rc, "repair", finding->ino));
}

static int make_tags(const struct repair *repair, const struct fsck_finding *finding)
{
    static uint8_t tags[DIRENT_TAGS_MAX];
    const struct pmfs *fs = fsck_super(repair->fsck);
    const void *block = minl2r_at(repair->pool, finding->offset);
    int rc = dirent_make_tags(fs, finding->ino, block, tags);

    return rc < 0 ? rc : set(repair, block, tags, dirent_tags(fs));
}

/* ---- lost+found ---------------------------------------------------------------- */

/* A new name in lost+found, which is locked. */
struct new_name {
    struct pmfs *fs;
    struct inode *dir;
    char text[48];
    struct name name;       /* of this text */
    struct dir_entry place; /* where it is to be */
};

static int attach(struct repair *repair)
{
    static const struct pmfs_mount_options options;

    return repair->fs ? 0 : fs_attach(repair->pool, &options, &repair->fs);
}

/* Can so many blocks be had? Nothing is stored. */
static int try_room(const struct repair *repair, uint64_t blocks)
{
    struct minl2r_tx *tx;
    int rc = begin(repair, &tx);

    if (rc < 0)
        return rc;
    for (uint64_t i = 0; rc == 0 && i < blocks; i++)
        rc = minl2r_tx_alloc(tx, 1, NULL, NULL);
    minl2r_tx_abort(tx);
    return fs_library_error(rc, "repair", 0);
}

/*
 * What is more than one inode takes, and one name: a block of states and one of inodes,
 * each with the nodes that lead to it; a block of names that is split, and nodes.
 */
static uint64_t room_of_inode(const struct pmfs *fs)
{
    return 2 * (1 + (uint64_t)fs->map_height);
}

static uint64_t room_of_name(const struct pmfs *fs)
{
    return 4 + DIRENT_CELL_BITS / fs->map_shift;
}

/* Not if there is no room for what is to be put into it, which takes `blocks`. */
static int make_lost_found(const struct repair *repair, uint64_t blocks,
                           struct pmfs_attr *attr)
{
    static const struct pmfs_cred root;
    struct pmfs *fs = repair->fs;
    int rc = try_room(repair, room_of_inode(fs) + room_of_name(fs) + blocks);

    return rc < 0 ? rc : pmfs_mkdir(fs, PM_ROOT_INO, LOST_FOUND, 0700, &root, attr);
}

static int find_lost_found(struct repair *repair, uint64_t blocks, uint64_t *ino)
{
    struct pmfs_attr attr;
    int rc = attach(repair);

    if (rc == 0)
        rc = pmfs_lookup(repair->fs, PM_ROOT_INO, LOST_FOUND, &attr);
    if (rc == -ENOENT)
        rc = make_lost_found(repair, blocks, &attr);
    if (rc == 0 && !S_ISDIR(attr.mode))
        rc = -ENOTDIR;
    if (rc == 0)
        *ino = attr.ino;
    return rc;
}

static int lock_lost_found(struct pmfs *fs, uint64_t ino, struct new_name *to)
{
    to->fs = fs;
    int rc = inode_pin(fs, ino, &to->dir);

    if (rc < 0)
        return rc;
    rc = dir_lock(fs, to->dir, LOCK_EXCLUSIVE);
    if (rc < 0)
        inode_unpin(to->dir);
    return rc;
}

static void unlock_lost_found(const struct new_name *to)
{
    inode_unlock(to->dir);
    inode_unpin(to->dir);
}

/* -EEXIST: its text is taken. */
static int try_name(struct new_name *to)
{
    int rc = name_init(&to->name, to->fs, to->text);

    if (rc == 0)
        rc = dir_find(to->fs, to->dir, &to->name, &to->place);
    return rc == -ENOENT ? 0 : rc == 0 ? -EEXIST : rc;
}

static int add_entry(const struct new_name *to, struct minl2r_tx *tx, uint64_t ino,
                     uint32_t type)
{
    struct dir_change change = {.head = inode_head(to->dir)};
    int rc = dir_add(to->fs, tx, to->dir, &to->name, &to->place, ino, type, &change);

    return rc < 0 ? rc : inode_set_head(tx, to->dir, &change.head);
}

static int add_name(const struct new_name *to, struct minl2r_tx *tx,
                    const struct inode *inode, uint32_t nlink)
{
    const struct inode *dir = to->dir;
    int rc = add_entry(to, tx, inode->place.ino, inode->type);

    if (rc == 0)
        rc = inode_set_nlink(tx, inode, nlink);
    if (rc == 0 && is_directory(inode))
        rc = inode_set_parent(tx, inode, dir->place.ino);
    if (rc == 0 && is_directory(inode))
        rc = inode_set_nlink(tx, dir, dir->place.pm->nlink + 1);
    return rc;
}

/* ---- Blocks that nothing reaches ----------------------------------------------- */

/*
 * They become the content of a file, in the order in which they lie. None is written to
 * or freed. One transaction makes the file, with its name and its first blocks, and
 * more add the rest: a crash, or no room, leaves each block either in a file or
 * unreachable, for the next repair.
 */
struct keeping {
    struct repair *repair;
    uint64_t *offsets; /* of the blocks, ascending */
    uint64_t count;    /* of these */
    uint64_t kept;     /* of these: are in the file */
    uint64_t capacity;
    uint64_t ino;       /* of the file; 0: it is not made yet */
    struct new_name to; /* of the file */
};

static void gather_lost(void *arg, uint64_t offset)
{
    struct keeping *keeping = arg;

    if (keeping->count < keeping->capacity &&
        !fsck_is_reachable(keeping->repair->fsck, offset))
        keeping->offsets[keeping->count++] = offset;
}

/* After where its first block lies, and, where that is taken, numbered, too. */
static int choose_file_name(struct keeping *keeping)
{
    struct new_name *to = &keeping->to;
    int length =
        snprintf(to->text, sizeof(to->text), "#blocks-0x%" PRIx64, keeping->offsets[0]);
    int rc = try_name(to);

    for (int number = 1; rc == -EEXIST && number < NAMES_MAX; number++) {
        snprintf(to->text + length, sizeof(to->text) - (size_t)length, ".%d", number);
        rc = try_name(to);
    }
    return rc;
}

/* The next ones, to the end of a map that has `kept`. */
static int put_blocks(const struct keeping *keeping, struct map *map,
                      struct minl2r_tx *tx, uint64_t count)
{
    uint64_t end = keeping->kept;
    int rc = map_reserve(map, tx, end + count - 1);

    for (uint64_t i = end; rc == 0 && i < end + count; i++)
        rc = map_put(map, tx, i, keeping->offsets[i]);
    return rc;
}

/*
 * Nobody has had this inode yet, so its map is empty, whatever is there. It is logged,
 * as a part is by the map.
 */
static int make_file(const struct keeping *keeping, struct minl2r_tx *tx,
                     const struct inode_place *place, uint64_t count)
{
    static const struct pm_map empty;
    const uint8_t used = PM_STATE_USED;
    const struct pmfs *fs = keeping->to.fs;
    int64_t now = keeping->repair->now_ns;
    struct map map;
    int rc = map_init(&map, fs, &empty, place->ino);

    map.pm = &place->pm->map;
    if (rc == 0)
        rc = put_blocks(keeping, &map, tx, count);
    if (rc < 0)
        return rc;
    const struct pm_inode pm = {
        .size = count << fs->block_shift,
        .mtime_ns = now,
        .ctime_ns = now,
        .blocks = count + map.added,
        .map = {.root = map.root, .height = map.height},
        .mode = S_IFREG | 0600,
        .nlink = 1,
        .generation = place->pm->generation + 1,
        .atime_ns = now,
        .btime_ns = now,
    };
    rc = minl2r_tx_write(tx, place->pm, &pm, PM_INODE_USED_SIZE);
    if (rc == 0)
        rc = minl2r_tx_write(tx, place->state, &used, sizeof(used));
    return fs_library_error(rc, "repair", place->ino);
}

static int first_transaction(struct keeping *keeping, uint64_t count)
{
    struct pmfs *fs = keeping->to.fs;
    struct table_claim claim;
    struct minl2r_tx *tx;
    int rc = begin(keeping->repair, &tx);

    if (rc < 0)
        return rc;
    rc = table_take(fs, tx, &claim);
    if (rc < 0)
        return fs_end(tx, rc);
    rc = make_file(keeping, tx, &claim.place, count);
    if (rc == 0)
        rc = add_entry(&keeping->to, tx, claim.place.ino, S_IFREG);
    rc = fs_end(tx, rc);
    if (rc < 0) {
        table_give_back(fs, &claim);
        return rc;
    }
    table_keep(fs, &claim);
    keeping->ino = claim.place.ino;
    return 0;
}

static int append_blocks(const struct keeping *keeping, struct minl2r_tx *tx,
                         const struct inode *inode, uint64_t count)
{
    const struct pmfs *fs = keeping->to.fs;
    struct inode_head head = inode_head(inode);
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    if (rc == 0)
        rc = put_blocks(keeping, &map, tx, count);
    if (rc < 0)
        return rc;
    head.size += count << fs->block_shift;
    head.blocks += count + map.added;
    return inode_set_head(tx, inode, &head);
}

static int next_transaction(const struct keeping *keeping, uint64_t count)
{
    struct inode *inode;
    struct minl2r_tx *tx;
    int rc = inode_get(keeping->to.fs, keeping->ino, LOCK_EXCLUSIVE, &inode);

    if (rc < 0)
        return rc;
    rc = begin(keeping->repair, &tx);
    if (rc == 0)
        rc = fs_end(tx, append_blocks(keeping, tx, inode, count));
    inode_put(inode);
    return rc;
}

/* What has no room is left: the next round says what that is, and why. */
static int fill_file(struct keeping *keeping)
{
    int rc = choose_file_name(keeping);

    while (rc == 0 && keeping->kept < keeping->count) {
        uint64_t left = keeping->count - keeping->kept;
        uint64_t count = left < BLOCKS_PER_TX ? left : BLOCKS_PER_TX;

        rc = keeping->ino ? next_transaction(keeping, count)
                          : first_transaction(keeping, count);
        if (rc == 0)
            keeping->kept += count;
    }
    return rc == -ENOSPC && keeping->kept > 0 ? 0 : rc;
}

/* More than the nodes take that lead to the blocks of one transaction. */
static uint64_t room_of_nodes(const struct pmfs *fs)
{
    return (BLOCKS_PER_TX >> fs->map_shift) + 1 + fs->map_height;
}

/* After they were gathered: from now on others are allocated that nothing reached. */
static int keep_gathered(struct keeping *keeping)
{
    struct repair *repair = keeping->repair;
    const struct pmfs *fs = fsck_super(repair->fsck);
    uint64_t blocks = room_of_inode(fs) + room_of_name(fs) + room_of_nodes(fs), dir;
    int rc = find_lost_found(repair, blocks, &dir);

    if (rc == 0)
        rc = lock_lost_found(repair->fs, dir, &keeping->to);
    if (rc < 0)
        return rc;
    rc = fill_file(keeping);
    unlock_lost_found(&keeping->to);
    return rc;
}

static int keep_lost_blocks(struct repair *repair, const struct fsck_finding *finding)
{
    uint64_t most = PMFS_FILE_SIZE_MAX / fsck_super(repair->fsck)->block_size;
    struct keeping keeping = {.repair = repair, .capacity = finding->value};

    if (keeping.capacity > most) /* the next round keeps the rest */
        keeping.capacity = most;
    keeping.offsets = calloc(keeping.capacity, sizeof(*keeping.offsets));
    if (!keeping.offsets)
        return fs_error(ENOMEM, "out of memory");
    view_visit_allocated(repair->pool, gather_lost, &keeping);
    int rc = keeping.count > 0 ? keep_gathered(&keeping) : 0;
    free(keeping.offsets);
    return rc;
}

/* ---- Inodes without a name ----------------------------------------------------- */

/* Its number, and, where that is taken, its generation, too. */
static int choose_name(struct new_name *to, const struct inode *inode)
{
    int length = snprintf(to->text, sizeof(to->text), "#%" PRIu64, inode->place.ino);
    int rc = try_name(to);

    if (rc != -EEXIST)
        return rc;
    snprintf(to->text + length, sizeof(to->text) - (size_t)length, ".%" PRIu32,
             inode->place.pm->generation);
    return try_name(to);
}

static int name_transaction(const struct repair *repair, const struct new_name *to,
                            const struct inode *inode, uint32_t nlink)
{
    struct minl2r_tx *tx;
    int rc = begin(repair, &tx);

    return rc < 0 ? rc : fs_end(tx, add_name(to, tx, inode, nlink));
}

static int name_inode(const struct repair *repair, struct new_name *to,
                      const struct fsck_finding *finding)
{
    struct inode *inode;
    int rc = inode_get(repair->fs, finding->ino, LOCK_EXCLUSIVE, &inode);

    if (rc < 0)
        return rc;
    rc = choose_name(to, inode);
    if (rc == 0)
        rc = name_transaction(repair, to, inode, (uint32_t)finding->value);
    inode_put(inode);
    return rc;
}

static int name_lost(struct repair *repair, const struct fsck_finding *finding)
{
    uint64_t blocks = room_of_name(fsck_super(repair->fsck)), dir;
    struct new_name to;
    int rc = find_lost_found(repair, blocks, &dir);

    if (rc == 0)
        rc = lock_lost_found(repair->fs, dir, &to);
    if (rc < 0)
        return rc;
    rc = name_inode(repair, &to, finding);
    unlock_lost_found(&to);
    return rc;
}

/* ---- What can be done, and when ------------------------------------------------ */

/* What of a round comes first; 0: nothing is safe. */
static int stage_of(enum fsck_kind kind)
{
    switch (kind) {
    case FSCK_DAMAGE:
    case FSCK_CONTENT:
    case FSCK_POOL:
        break;
    case FSCK_OWN_BLOCKS:
    case FSCK_UNALLOCATED:
    case FSCK_DIR_SIZE:
    case FSCK_BLOCK_COUNT:
        return 1;
    case FSCK_ENTRY_TYPE:
    case FSCK_TAGS:
    case FSCK_PARENT:
    case FSCK_LINK_COUNT:
    case FSCK_NAMED_ORPHAN:
        return 2;
    case FSCK_LOST_BLOCKS: /* before anything is allocated that was not there */
        return 3;
    case FSCK_LOST:
        return 4;
    }
    return 0;
}
#define STAGE_OF_NAMES 2
#define STAGE_LAST 4

static bool is_repairable(const struct finding *finding)
{
    return stage_of(finding->fsck.kind) > 0;
}

#define HOW_SIZE 96
#define WHY_SIZE 192

static void describe(const struct fsck_finding *finding, char how[HOW_SIZE])
{
    static const struct {
        const char *words;
        bool value; /* follows */
    } ways[] = {
        [FSCK_OWN_BLOCKS] = {"mark the pool's own blocks as allocated", false},
        [FSCK_UNALLOCATED] = {"mark the block as allocated", false},
        [FSCK_DIR_SIZE] = {"set its size in bytes to", true},
        [FSCK_BLOCK_COUNT] = {"set the count to", true},
        [FSCK_ENTRY_TYPE] = {"set the type of the entry to", true},
        [FSCK_TAGS] = {"make the tags anew", false},
        [FSCK_PARENT] = {"set its parent to", true},
        [FSCK_LINK_COUNT] = {"set its link count to", true},
        [FSCK_NAMED_ORPHAN] = {"keep it, with a link count of", true},
        [FSCK_LOST_BLOCKS] = {"keep them as a file in /" LOST_FOUND, false},
        [FSCK_LOST] = {"name it in /" LOST_FOUND, false},
    };

    snprintf(how, HOW_SIZE, "%s", ways[finding->kind].words);
    if (ways[finding->kind].value)
        snprintf(how, HOW_SIZE, "%s %" PRIu64, ways[finding->kind].words,
                 finding->value);
}

static int act(struct repair *repair, const struct fsck_finding *finding)
{
    const uint8_t byte = (uint8_t)finding->value;

    switch (finding->kind) {
    case FSCK_DAMAGE:
    case FSCK_CONTENT:
    case FSCK_POOL:
        break;
    case FSCK_OWN_BLOCKS:
        return view_mark_own(repair->pool);
    case FSCK_UNALLOCATED:
        return view_mark_allocated(repair->pool, finding->offset);
    case FSCK_DIR_SIZE:
        return set_inode(repair, finding, offsetof(struct pm_inode, size), 8);
    case FSCK_BLOCK_COUNT:
        return set_inode(repair, finding, offsetof(struct pm_inode, blocks), 8);
    case FSCK_ENTRY_TYPE:
        return set(repair, minl2r_at(repair->pool, finding->offset), &byte, 1);
    case FSCK_TAGS:
        return make_tags(repair, finding);
    case FSCK_PARENT:
        return set_inode(repair, finding, offsetof(struct pm_inode, parent), 8);
    case FSCK_LINK_COUNT:
        return set_inode(repair, finding, offsetof(struct pm_inode, nlink), 4);
    case FSCK_NAMED_ORPHAN:
        return adopt_orphan(repair, finding);
    case FSCK_LOST_BLOCKS:
        return keep_lost_blocks(repair, finding);
    case FSCK_LOST:
        return name_lost(repair, finding);
    }
    return -EINVAL;
}

/* ---- Rounds -------------------------------------------------------------------- */

static void end_check(struct repair *repair)
{
    if (repair->fsck)
        fsck_end(repair->fsck, NULL);
    repair->fsck = NULL;
    repair->count = 0;
}

static int check(struct repair *repair)
{
    end_check(repair);
    int rc = fsck_begin(repair->pool, remember, repair, &repair->fsck);

    return repair->no_memory ? fs_error(ENOMEM, "out of memory") : rc;
}

/* Is there a finding that others rest on? */
static bool has_stage(const struct repair *repair, int stage)
{
    for (uint64_t i = 0; i < repair->count; i++) {
        if (stage_of(repair->findings[i].fsck.kind) == stage &&
            is_repairable(&repair->findings[i]))
            return true;
    }
    return false;
}

/* Until which stage this round may go. */
static int last_stage(const struct repair *repair)
{
    return fsck_is_sound(repair->fsck) && !has_stage(repair, 1) ? STAGE_LAST : 1;
}

/*
 * Was one refused that the last stages rest on? They mount it and look for names: that
 * frees an orphan although it has names, and finds none that has a wrong tag.
 */
static bool has_refused(const struct repair *repair)
{
    for (uint64_t i = 0; i < repair->count; i++) {
        const struct finding *finding = &repair->findings[i];

        if (stage_of(finding->fsck.kind) == STAGE_OF_NAMES &&
            refusal_of(repair, finding))
            return true;
    }
    return false;
}

/* Asks, then repairs. What fails is left; a medium that fails ends it all. */
static int repair_one(struct repair *repair, const struct finding *finding)
{
    char how[HOW_SIZE];

    if (refusal_of(repair, finding))
        return 0;
    describe(&finding->fsck, how);
    if (repair->ask && !repair->ask(repair->arg, finding->what, how, NULL))
        return refuse(repair, finding, 0);
    int rc = act(repair, &finding->fsck);
    if (rc == -EIO || rc == -ENOMEM)
        return rc;
    if (rc < 0)
        return refuse(repair, finding, rc);
    repair->repaired++;
    return 0;
}

static int repair_stage(struct repair *repair, int stage)
{
    int rc = 0;

    for (uint64_t i = 0; rc == 0 && i < repair->count; i++) {
        const struct finding *finding = &repair->findings[i];

        if (stage_of(finding->fsck.kind) == stage && is_repairable(finding))
            rc = repair_one(repair, finding);
    }
    return rc;
}

static int repair_round(struct repair *repair)
{
    int last = last_stage(repair);
    int rc = 0;

    for (int stage = 1; rc == 0 && stage <= last; stage++) {
        rc = repair_stage(repair, stage);
        if (stage == STAGE_OF_NAMES && has_refused(repair))
            break;
    }
    if (repair->fs)
        fs_detach(repair->fs);
    repair->fs = NULL;
    return rc;
}

/* Checks and repairs in turn. The findings of the last check are left. */
static int repair_all(struct repair *repair)
{
    int rc = check(repair);

    for (int round = 0; rc == -EUCLEAN && round < ROUNDS_MAX; round++) {
        uint64_t before = repair->repaired;

        rc = repair_round(repair);
        if (rc < 0)
            return rc;
        if (repair->repaired == before)
            return -EUCLEAN;
        rc = check(repair);
    }
    return rc;
}

static void describe_refusal(const struct finding *finding, int why,
                             char text[WHY_SIZE])
{
    char how[HOW_SIZE];

    describe(&finding->fsck, how);
    switch (why) {
    case 0:
        snprintf(text, WHY_SIZE, "it was declined");
        break;
    case -ENOSPC:
        snprintf(text, WHY_SIZE, "no room to %s: remove something and try again", how);
        break;
    case -EEXIST:
        snprintf(text, WHY_SIZE,
                 "its names in /" LOST_FOUND " are taken: remove one and try again");
        break;
    case -ENOTDIR:
        snprintf(text, WHY_SIZE,
                 "/" LOST_FOUND " is not a directory: rename it and try again");
        break;
    default:
        snprintf(text, WHY_SIZE, "cannot %s: %s", how, strerror(-why));
    }
}

static const char *why_untried(const struct repair *repair,
                               const struct finding *finding)
{
    if (finding->fsck.kind == FSCK_POOL && view_count_unmarked(repair->pool) > 0)
        return "it may follow from the pool's own blocks that are marked free";
    if (!is_repairable(finding))
        return "not safe to repair: what was there cannot be told from the rest";
    if (last_stage(repair) == STAGE_LAST)
        return "not safe as long as something else is left that could be repaired";
    return "not safe as long as other damage hides names or blocks";
}

static void describe_left(const struct repair *repair, const struct finding *finding,
                          char text[WHY_SIZE])
{
    const struct refusal *refused = refusal_of(repair, finding);

    if (refused)
        describe_refusal(finding, refused->why, text);
    else
        snprintf(text, WHY_SIZE, "%s", why_untried(repair, finding));
}

static void tell_left(const struct repair *repair)
{
    for (uint64_t i = 0; i < repair->count; i++) {
        const struct finding *finding = &repair->findings[i];
        char why[WHY_SIZE];

        describe_left(repair, finding, why);
        if (repair->ask)
            repair->ask(repair->arg, finding->what, NULL, why);
    }
}

int repair_pool(struct minl2r_pool *pool, pmfs_repair_fn *ask, void *arg,
                struct pmfs_repair_summary *summary)
{
    struct repair repair = {
        .pool = pool, .ask = ask, .arg = arg, .now_ns = fs_now_ns()};
    int rc = repair_all(&repair);

    if (rc == -EUCLEAN)
        tell_left(&repair);
    if (summary)
        *summary = (struct pmfs_repair_summary){.repaired = repair.repaired,
                                                .left = repair.count};
    if (repair.fsck)
        fsck_end(repair.fsck, summary ? &summary->fsck : NULL);
    free(repair.findings);
    free(repair.refusals);
    return rc;
}

struct leaving {
    pmfs_repair_fn *ask;
    void *arg;
};

static void tell_closed(void *arg, const char *what)
{
    const struct leaving *leaving = arg;

    if (leaving->ask)
        leaving->ask(leaving->arg, what, NULL, "the pool cannot be opened");
}

/* Tells what is wrong with a pool that is too damaged to be opened. */
static int leave_all(const char *path, pmfs_repair_fn *ask, void *arg,
                     struct pmfs_repair_summary *summary)
{
    struct leaving leaving = {ask, arg};
    struct pmfs_fsck_summary fsck;
    int rc = pmfs_fsck(path, tell_closed, &leaving, &fsck);

    if (summary)
        *summary = (struct pmfs_repair_summary){.left = fsck.findings, .fsck = fsck};
    return rc;
}

int pmfs_repair(const char *path, pmfs_repair_fn *ask, void *arg,
                struct pmfs_repair_summary *summary)
{
    fs_forget_message();

    struct pmfs_repair_summary without = {0};
    struct minl2r_pool *pool;
    int rc = pmfs_fsck(path, NULL, NULL, &without.fsck);

    /* Opening it to write does write: what is clean is not touched. */
    if (rc != -EUCLEAN) {
        if (summary)
            *summary = without;
        return rc;
    }
    rc = minl2r_pool_open(path, PMFS_LAYOUT, NULL, &pool);
    if (rc == -EUCLEAN)
        return leave_all(path, ask, arg, summary);
    if (rc < 0)
        return fs_error(-rc, "%s", minl2r_errormsg());
    fs_forget_message(); /* of what was found */
    rc = repair_pool(pool, ask, arg, summary);
    minl2r_pool_close(pool);
    return fs_explain(rc);
}
