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
#include "pmfs-proto/core/view.h"

#define ROUNDS_MAX 16
#define BLOCKS_PER_TX 512
#define NAMES_MAX 100 /* that are tried for one file */
#define LOST_FOUND "lost+found"

struct finding {
    struct fsck_finding fsck;
    char what[320];
};

/* A finding that was declined, or whose repair has failed. */
struct refusal {
    uint64_t hash; /* of its words */
    char why[64];
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
    struct refusal *refusals;
    uint64_t refusal_count;
    uint64_t repaired;
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
    return XXH3_64bits(finding->what, strlen(finding->what));
}

/* Why it is not to be tried again, or NULL. */
static const char *refusal_of(const struct repair *repair,
                              const struct finding *finding)
{
    uint64_t hash = hash_of(finding);

    for (uint64_t i = 0; i < repair->refusal_count; i++) {
        if (repair->refusals[i].hash == hash)
            return repair->refusals[i].why;
    }
    return NULL;
}

static int refuse(struct repair *repair, const struct finding *finding, const char *why)
{
    uint64_t count = repair->refusal_count + 1;
    struct refusal *refusals =
        realloc(repair->refusals, count * sizeof(*repair->refusals));

    if (!refusals)
        return fs_error(ENOMEM, "out of memory");
    repair->refusals = refusals;
    repair->refusal_count = count;
    refusals[count - 1] = (struct refusal){.hash = hash_of(finding)};
    snprintf(refusals[count - 1].why, sizeof(refusals[0].why), "%s", why);
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

static int find_lost_found(struct repair *repair, uint64_t *ino)
{
    static const struct pmfs_cred root;
    struct pmfs_attr attr;
    int rc = attach(repair);

    if (rc == 0)
        rc = pmfs_lookup(repair->fs, PM_ROOT_INO, LOST_FOUND, &attr);
    if (rc == -ENOENT)
        rc = pmfs_mkdir(repair->fs, PM_ROOT_INO, LOST_FOUND, 0700, &root, &attr);
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

static int add_name(const struct new_name *to, struct minl2r_tx *tx,
                    const struct inode *inode, uint32_t nlink)
{
    const struct inode *dir = to->dir;
    struct dir_change change = {.head = inode_head(dir)};
    int rc = dir_add(to->fs, tx, dir, &to->name, &to->place, inode->place.ino,
                     inode->type, &change);

    if (rc == 0)
        rc = inode_set_head(tx, dir, &change.head);
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
 * or freed. The file is an orphan, which mounting frees while it is empty, until one
 * transaction gives it its name and its first blocks: a crash leaves each block either
 * in a file or unreachable, for the next repair.
 */
struct keeping {
    struct repair *repair;
    uint64_t *offsets; /* of the blocks, ascending */
    uint64_t count;    /* of these */
    uint64_t capacity;
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

static int append_blocks(struct pmfs *fs, struct minl2r_tx *tx,
                         const struct inode *inode, const uint64_t *offsets,
                         uint64_t count)
{
    struct inode_head head = inode_head(inode);
    uint64_t end = head.size >> fs->block_shift;
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->map, inode->place.ino);

    if (rc == 0)
        rc = map_reserve(&map, tx, end + count - 1);
    for (uint64_t i = 0; rc == 0 && i < count; i++)
        rc = map_put(&map, tx, end + i, offsets[i]);
    if (rc < 0)
        return rc;
    head.size += count << fs->block_shift;
    head.blocks += count + map.added;
    return inode_set_head(tx, inode, &head);
}

/* The first one names the file, too. */
static int keep_transaction(const struct keeping *keeping, struct inode *inode,
                            const uint64_t *offsets, uint64_t count)
{
    bool is_first = inode->state == PM_STATE_ORPHAN;
    struct minl2r_tx *tx;
    int rc = begin(keeping->repair, &tx);

    if (rc < 0)
        return rc;
    rc = append_blocks(keeping->to.fs, tx, inode, offsets, count);
    if (rc == 0 && is_first)
        rc = add_name(&keeping->to, tx, inode, 1);
    if (rc == 0 && is_first)
        rc = inode_set_state(tx, inode, PM_STATE_USED);
    rc = fs_end(tx, rc);
    if (rc == 0 && is_first)
        inode_state_changed(inode, PM_STATE_USED);
    return rc;
}

/* What has no room is left: the next round says what that is, and why. */
static int fill_file(struct keeping *keeping, struct inode *inode)
{
    uint64_t kept = 0;
    int rc = choose_file_name(keeping);

    while (rc == 0 && kept < keeping->count) {
        uint64_t left = keeping->count - kept;
        uint64_t count = left < BLOCKS_PER_TX ? left : BLOCKS_PER_TX;

        rc = keep_transaction(keeping, inode, keeping->offsets + kept, count);
        if (rc == 0)
            kept += count;
    }
    return rc == -ENOSPC && kept > 0 ? 0 : rc;
}

static int fill_locked(struct keeping *keeping, uint64_t dir, uint64_t ino)
{
    struct pmfs *fs = keeping->repair->fs;
    struct inode *inode;
    int rc = lock_lost_found(fs, dir, &keeping->to);

    if (rc < 0)
        return rc;
    rc = inode_get(fs, ino, LOCK_EXCLUSIVE, &inode);
    if (rc == 0) {
        rc = fill_file(keeping, inode);
        inode_put(inode);
    }
    unlock_lost_found(&keeping->to);
    return rc;
}

/* After they were gathered: from now on others are allocated that nothing reached. */
static int keep_gathered(struct keeping *keeping)
{
    static const struct pmfs_cred root;
    struct repair *repair = keeping->repair;
    struct pmfs_attr attr;
    uint64_t dir;
    int rc = find_lost_found(repair, &dir);

    if (rc == 0)
        rc = pmfs_tmpfile(repair->fs, dir, 0600, PMFS_NEVER_LINKED, &root, &attr);
    if (rc < 0)
        return rc;
    rc = fill_locked(keeping, dir, attr.ino);
    pmfs_release(repair->fs, attr.ino);
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
    struct new_name to;
    uint64_t dir;
    int rc = find_lost_found(repair, &dir);

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
#define STAGE_LAST 4

static bool is_repairable(const struct finding *finding)
{
    return stage_of(finding->fsck.kind) > 0;
}

static void describe(const struct fsck_finding *finding, char how[96])
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

    snprintf(how, 96, "%s", ways[finding->kind].words);
    if (ways[finding->kind].value)
        snprintf(how, 96, "%s %" PRIu64, ways[finding->kind].words, finding->value);
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

static const char *why_failed(int rc)
{
    switch (rc) {
    case -ENOSPC:
        return "no room for it: remove something and try again";
    case -EEXIST:
        return "its names in /" LOST_FOUND " are taken: remove one and try again";
    case -ENOTDIR:
        return "/" LOST_FOUND " is not a directory: rename it and try again";
    default:
        return strerror(-rc);
    }
}

/* Asks, then repairs. What fails is left; a medium that fails ends it all. */
static int repair_one(struct repair *repair, const struct finding *finding)
{
    char how[96];

    if (refusal_of(repair, finding))
        return 0;
    describe(&finding->fsck, how);
    if (repair->ask && !repair->ask(repair->arg, finding->what, how, NULL))
        return refuse(repair, finding, "it was declined");
    int rc = act(repair, &finding->fsck);
    if (rc == -EIO || rc == -ENOMEM)
        return rc;
    if (rc < 0)
        return refuse(repair, finding, why_failed(rc));
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

    for (int stage = 1; rc == 0 && stage <= last; stage++)
        rc = repair_stage(repair, stage);
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

static const char *why_left(const struct repair *repair, const struct finding *finding)
{
    const char *refused = refusal_of(repair, finding);

    if (refused)
        return refused;
    if (finding->fsck.kind == FSCK_POOL && view_count_unmarked(repair->pool) > 0)
        return "it may follow from the pool's own blocks that are marked free";
    if (!is_repairable(finding))
        return "not safe to repair: what was there cannot be told from the rest";
    return "not safe as long as other damage hides names or blocks";
}

static void tell_left(const struct repair *repair)
{
    for (uint64_t i = 0; i < repair->count; i++) {
        const struct finding *finding = &repair->findings[i];

        if (repair->ask)
            repair->ask(repair->arg, finding->what, NULL, why_left(repair, finding));
    }
}

int repair_pool(struct minl2r_pool *pool, pmfs_repair_fn *ask, void *arg,
                struct pmfs_repair_summary *summary)
{
    struct repair repair = {.pool = pool, .ask = ask, .arg = arg};
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
    rc = repair_pool(pool, ask, arg, summary);
    minl2r_pool_close(pool);
    return rc;
}
