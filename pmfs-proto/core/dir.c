/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/dir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pmfs-proto/core/linear.h"
#include "pmfs-proto/core/trie.h"

#define HEADER_SIZE ((uint32_t)sizeof(struct pm_dirent))

static int library_error(const struct inode *inode, int rc)
{
    return fs_library_error(rc, "directory", inode->place.ino);
}

/* ---- Locking ------------------------------------------------------------------- */

/* Of one of an older format, with the lock for reading given up meanwhile. */
static int convert_unlocked(struct pmfs *fs, struct inode *inode)
{
    int rc;

    inode_unlock(inode);
    rc = inode_lock(inode, LOCK_EXCLUSIVE);
    if (rc < 0)
        return rc;
    rc = linear_convert(fs, inode);
    inode_unlock(inode);
    return rc < 0 ? rc : inode_lock(inode, LOCK_SHARED);
}

int dir_lock(struct pmfs *fs, struct inode *inode, enum lock_mode mode)
{
    int rc;

    if (!is_directory(inode))
        return -ENOTDIR;
    rc = inode_lock(inode, mode);
    if (rc < 0 || !linear_is(inode))
        return rc;
    if (mode == LOCK_SHARED)
        return convert_unlocked(fs, inode);
    rc = linear_convert(fs, inode);
    if (rc < 0)
        inode_unlock(inode);
    return rc;
}

/* ---- Finding ------------------------------------------------------------------- */

static int find_way(struct pmfs *fs, const struct inode *inode, uint64_t hash,
                    struct trie *trie)
{
    return trie_find(trie, fs, &inode->place.pm->map, inode->place.ino, hash);
}

int dir_find(struct pmfs *fs, const struct inode *inode, const struct name *name,
             struct dir_entry *entry)
{
    struct trie trie;

    *entry = (struct dir_entry){0};
    if (linear_is(inode))
        return linear_find(fs, inode, name, entry);
    int rc = find_way(fs, inode, name->hash, &trie);
    if (rc < 0 || !trie.block)
        return rc < 0 ? rc : -ENOENT;
    entry->block = trie.block;
    rc = dirent_find(fs, inode->place.ino, trie.block, name, &entry->pm);
    return rc == 0 && !entry->pm ? -ENOENT : rc;
}

/* Where there is a node, there is a name: a block below one is freed with its last. */
int dir_check_empty(struct pmfs *fs, const struct inode *inode, bool *is_empty)
{
    struct trie trie;

    if (linear_is(inode))
        return linear_check_empty(fs, inode, is_empty);
    int rc = find_way(fs, inode, 0, &trie);
    *is_empty = trie.height == 0;
    if (rc == 0 && *is_empty && trie.block)
        rc = dirent_check_empty(fs, inode->place.ino, trie.block, dirent_tags(fs),
                                is_empty);
    return rc;
}

/* ---- Listing ------------------------------------------------------------------- */

static int wrong_block(const struct trie *trie, const struct hashed *entry)
{
    return dirent_bad(
        trie->fs, trie->ino, trie->block,
        (uint32_t)((const uint8_t *)entry->pm - (const uint8_t *)trie->block));
}

/* Names that were added when equal hashes had one position have it and those behind. */
static uint64_t next_position(const struct hashed *entry, uint64_t before)
{
    uint64_t position = dirent_position(entry->hash, entry->pm);

    return position > before ? position : before + 1;
}

/* Visits the entries of a block from `cookie` on. `list` has room for them. */
static int list_block(const struct trie *trie, uint64_t cookie, struct hashed *list,
                      dir_visit_fn *visit, void *arg, bool *has_names)
{
    uint64_t first = trie_first(trie), last = trie_last(trie), count = 0;
    uint64_t here = DIR_COOKIE_FIRST - 1;
    int rc = dirent_collect(trie->fs, trie->ino, trie->block, dirent_tags(trie->fs),
                            list, &count);

    *has_names = count > 0;
    if (rc < 0)
        return rc;
    dirent_sort(list, count);
    for (uint64_t i = 0; i < count && rc == 0; i++) {
        if (list[i].hash < first || list[i].hash > last)
            return wrong_block(trie, &list[i]);
        here = next_position(&list[i], here);
        if (here >= cookie)
            rc = visit(arg, list[i].pm, here + 1);
    }
    return rc;
}

/* Goes from group to group. No block can come twice: its names have their places. */
static int list_from(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
                     struct hashed *list, dir_visit_fn *visit, void *arg)
{
    uint64_t hash = cookie / DIRENT_CELL << (64 - DIRENT_CELL_BITS);
    uint32_t gap = 0;
    struct trie trie;
    int rc;

    do {
        bool has_names = false;

        rc = find_way(fs, inode, hash, &trie);
        if (rc < 0)
            return rc;
        trie_widen(&trie);
        if (trie.block)
            rc = list_block(&trie, cookie, list, visit, arg, &has_names);
        if (rc == 0)
            rc = trie_next(&trie, has_names, &gap, &hash);
    } while (rc == 0 && hash != 0);
    return rc;
}

int dir_list(struct pmfs *fs, const struct inode *inode, uint64_t cookie,
             dir_visit_fn *visit, void *arg)
{
    struct hashed *list;
    int rc;

    if (linear_is(inode))
        return linear_list(fs, inode, cookie, visit, arg);
    if (cookie > INT64_MAX)
        return 0;
    list = malloc(dirent_count_max(fs) * sizeof(*list));
    if (!list)
        return -ENOMEM;
    rc = list_from(fs, inode, cookie, list, visit, arg);
    free(list);
    return rc;
}

/* ---- Adding -------------------------------------------------------------------- */

/*
 * Tags are logged, too: one is there exactly where a live entry begins, whatever a
 * crash undoes. If it were fresh, a crash could leave one where later a name lies; and
 * next to what the last transaction has changed, fresh bytes cost a fence.
 */
static int set_tag(struct minl2r_tx *tx, const struct inode *inode, const void *block,
                   const void *entry, uint8_t tag)
{
    return library_error(
        inode, minl2r_tx_write(tx, dirent_tag_of(block, entry), &tag, sizeof(tag)));
}

/*
 * Puts an entry at the start of a free one. Only its header and its tag are seen before
 * the commit, so what comes behind that, the name and the rest's header, is fresh.
 */
static int add_in_room(struct minl2r_tx *tx, const struct inode *inode,
                       const void *block, const struct pm_dirent *room,
                       const struct name *name, const struct pm_dirent *entry)
{
    const uint8_t *start = (const uint8_t *)room;
    struct pm_dirent rest;
    int rc = set_tag(tx, inode, block, room, dirent_tag(name->hash));

    if (rc == 0)
        rc = minl2r_tx_write(tx, start, entry, HEADER_SIZE);

    dirent_set_free(&rest, room->size - entry->size);

    if (rc == 0)
        rc = minl2r_tx_write_fresh(tx, start + HEADER_SIZE, name->text, name->size);
    if (rc == 0 && rest.size)
        rc = minl2r_tx_write_fresh(tx, start + entry->size, &rest, HEADER_SIZE);
    return library_error(inode, rc);
}

/* Takes an entry out of a list. Was it there? */
static bool drop(struct hashed *list, uint64_t *count, const struct pm_dirent *pm)
{
    uint64_t kept = 0, before = *count;

    for (uint64_t i = 0; i < before; i++) {
        if (list[i].pm != pm)
            list[kept++] = list[i];
    }
    *count = kept;
    return kept < before;
}

/* The header of an entry that is to name another inode. */
static void rename_header(struct pm_dirent *header, const struct pm_dirent *pm,
                          uint64_t ino, uint32_t type)
{
    memcpy(header, pm, HEADER_SIZE);
    header->ino = ino;
    header->type = (uint8_t)(type >> 12);
}

/* Lets what leaves have its heir's header, if it is in the list. Was it there? */
static bool pass_on(struct hashed *list, uint64_t count,
                    const struct dir_change *change, struct pm_dirent *header)
{
    for (uint64_t i = 0; i < count; i++) {
        if (list[i].pm != change->leaving->pm)
            continue;
        rename_header(header, list[i].pm, change->heir, change->heir_type);
        list[i].pm = header;
        return true;
    }
    return false;
}

/*
 * Plants new blocks with the entries of one that has no room for another, or had none;
 * what leaves is left out. The new blocks are fresh: only the slots that lead there are
 * logged.
 */
static int plant(struct trie *trie, struct minl2r_tx *tx, const struct hashed *entry,
                 struct hashed *list, struct dir_change *change)
{
    const struct pmfs *fs = trie->fs;
    uint64_t old = trie->slot, count = 0;
    struct pm_dirent heir;
    int rc = 0;

    if (old)
        rc = dirent_collect(fs, trie->ino, trie->block, dirent_tags(fs), list, &count);
    if (change->leaving && change->heir)
        change->has_left = pass_on(list, count, change, &heir);
    else if (change->leaving)
        change->has_left = drop(list, &count, change->leaving->pm);
    list[count++] = *entry;
    dirent_sort(list, count);
    trie_widen(trie);
    /* With an eighth of a block free it is worth while to pack it. */
    if (rc == 0)
        rc = trie_plant(trie, tx, list, count, dirent_room(fs) - fs->block_size / 8,
                        &change->head);
    if (rc == 0 && old) {
        rc = fs_library_error(minl2r_tx_free(tx, old, 1), "directory", trie->ino);
        change->head.blocks--;
        change->head.size -= fs->block_size;
    }
    return rc;
}

int dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
            const struct name *name, const struct dir_entry *place, uint64_t ino,
            uint32_t type, struct dir_change *change)
{
    struct pm_dirent header;
    const struct hashed entry = {name->hash, &header, name->text};
    const struct pm_dirent *room = NULL;
    struct trie trie;
    int rc = 0;

    if (linear_is(inode))
        return fs_error(ENOSPC, "directory %" PRIu64 ": no room to convert it",
                        inode->place.ino);
    dirent_set(&header, name, ino, type);
    if (place->block)
        rc = dirent_choose_position(fs, inode->place.ino, place->block, name->hash,
                                    &header.position);
    if (rc == 0 && place->block)
        rc = dirent_find_room(fs, inode->place.ino, place->block, header.size, &room);
    if (rc < 0)
        return rc;
    if (room) {
        change->added_to = place->block;
        return add_in_room(tx, inode, place->block, room, name, &header);
    }
    rc = find_way(fs, inode, name->hash, &trie);
    if (rc < 0)
        return rc;

    struct hashed *list = malloc((dirent_count_max(fs) + 1) * sizeof(*list));

    if (!list)
        return -ENOMEM;
    rc = plant(&trie, tx, &entry, list, change);
    free(list);
    return rc;
}

/* ---- Removing and replacing ---------------------------------------------------- */

/* Makes a free entry of bytes of a block, in which one leaves. */
static int free_run(struct minl2r_tx *tx, const struct inode *inode,
                    const struct dir_entry *entry, uint32_t start, uint32_t size)
{
    const uint8_t *block = entry->block;
    struct pm_dirent unused;
    int rc = 0;

    dirent_set_free(&unused, size);
    if (!linear_is(inode))
        rc = set_tag(tx, inode, block, entry->pm, 0);
    if (rc == 0)
        rc = library_error(inode,
                           minl2r_tx_write(tx, block + start, &unused, HEADER_SIZE));
    return rc;
}

/* Collects what two blocks have without what leaves. Is it half a block at most? */
static int collect_both(const struct trie *trie, uint64_t twin,
                        const struct pm_dirent *leaving, struct hashed *list,
                        uint64_t *count, bool *is_small)
{
    const struct pmfs *fs = trie->fs;
    const void *other = twin ? fs_block(fs, twin) : NULL;
    uint32_t size = 0;
    int rc = dirent_collect(fs, trie->ino, trie->block, dirent_tags(fs), list, count);

    if (rc == 0 && other)
        rc = dirent_collect(fs, trie->ino, other, dirent_tags(fs), list, count);
    drop(list, count, leaving);
    dirent_sort(list, *count);
    for (uint64_t i = 0; i < *count; i++)
        size += dirent_size(list[i].pm->name_size);
    *is_small = size <= fs->block_size / 2 && (other || !twin);
    return rc;
}

/* Puts what is left of a block together with what its neighbour has. */
static int join(struct trie *trie, struct minl2r_tx *tx,
                const struct pm_dirent *leaving, struct dir_change *change, bool *done)
{
    struct hashed *list;
    uint64_t twin, count = 0;
    bool is_small = false;
    int rc;

    if (change->no_join || !trie_has_twin(trie, &twin))
        return 0;
    list = malloc((size_t)2 * dirent_count_max(trie->fs) * sizeof(*list));
    change->joins = true;
    if (!list)
        return -ENOMEM;
    rc = collect_both(trie, twin, leaving, list, &count, &is_small);
    change->joins = is_small;
    if (rc == 0 && is_small)
        rc = trie_join(trie, tx, twin, list, count, &change->head);
    *done = rc == 0 && is_small;
    free(list);
    return rc;
}

/* Gives blocks back, if that is how to remove an entry: then it is *done. */
static int shrink(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                  const struct name *name, const struct dir_entry *entry, uint32_t live,
                  struct dir_change *change, bool *done)
{
    struct trie trie;
    int rc = find_way(fs, inode, name->hash, &trie);

    if (rc < 0 || trie.height == 0)
        return rc;
    if (trie.block != entry->block)
        return fs_error(EUCLEAN, "directory %" PRIu64 ": a name is in another's block",
                        inode->place.ino);
    trie_widen(&trie);
    *done = live == 0;
    if (*done)
        return trie_clear(&trie, tx, &change->head);
    /* What the transaction has added could be in the neighbour, and is not seen. */
    return change->leaving ? 0 : join(&trie, tx, entry->pm, change, done);
}

int dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
               const struct name *name, const struct dir_entry *entry,
               struct dir_change *change)
{
    uint32_t first = linear_is(inode) ? 0 : dirent_tags(fs);
    struct dirent_rest rest;
    bool done = false;
    int rc;

    if (change->has_left)
        return 0;
    /* What was added there may use a free neighbour: leave them apart this time. */
    if (change->added_to == entry->block)
        return free_run(
            tx, inode, entry,
            (uint32_t)((const uint8_t *)entry->pm - (const uint8_t *)entry->block),
            entry->pm->size);
    rc = dirent_find_rest(fs, inode->place.ino, entry->block, first, entry->pm, &rest);
    if (rc == 0 && !linear_is(inode) && rest.live <= fs->block_size / 4)
        rc = shrink(fs, tx, inode, name, entry, rest.live, change, &done);
    return rc < 0 || done ? rc : free_run(tx, inode, entry, rest.start, rest.size);
}

int dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                const struct dir_entry *entry, uint64_t ino, uint32_t type)
{
    struct pm_dirent changed;

    rename_header(&changed, entry->pm, ino, type);
    return library_error(inode, minl2r_tx_write(tx, entry->pm, &changed, HEADER_SIZE));
}

int dir_pass_on(struct minl2r_tx *tx, const struct inode *inode,
                const struct dir_change *change)
{
    if (change->has_left)
        return 0;
    return dir_replace(tx, inode, change->leaving, change->heir, change->heir_type);
}
