/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_mutants.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "crashtest/workloads/door.h"
#include "libminl2r/alloc.h"
#include "pmfs-proto/core/dir.h"
#include "pmfs-proto/core/file.h"
#include "pmfs-proto/core/map.h"
#include "pmfs-proto/core/orphan.h"
#include "pmfs-proto/core/trie.h"
#include "pmfs-proto/core/view.h"

#define LATE_MAX 4
#define LATE_SIZE_MAX 512
#define PAGE_SIZE 4096u

/* Words of media that pmfs does not use: of an inode, and of the superblock. */
#define LOCK_WORD(pm) (&(pm)->reserved1[0])
#define POINTER_WORD(pm) (&(pm)->reserved1[1])
#define MOUNTED_WORD(fs) (&(fs)->pm->reserved[0])

/* ---- The catalogue --------------------------------------------------------------- */

enum bug {
    NONE,
    NLINK_ALONE,
    PARENT_ALONE,
    PRIVILEGES_ALONE,
    PRIVILEGES_LATE,
    STATE_ALONE,
    STATE_LATE,
    STATE_KEPT,
    ORPHAN_FREE,
    ORPHAN_USED,
    ENTRY_REMOVED_ALONE,
    ENTRY_ADDED_ALONE,
    ENTRY_ADDED_LATE,
    ENTRY_REPLACED_ALONE,
    WHITEOUT_ALONE,
    WHITEOUT_LATE,
    FREED_ALONE,
    PLANTED_ALONE,
    CLEARED_ALONE,
    JOINED_ALONE,
    BLOCK_ALONE,
    SIZE_ALONE,
    BLOCKS_LATE,
    INODE_LATE,
    CONTENT_LATE, /* of a file that is made with content */
    GAP_LATE,
    TIMES_LATE,
    LINES_LATE, /* of an inode, but the first */
    TIMES_AFTER_SIZE,
    NOT_LOGGED, /* changes of `size` bytes */
    STATE_NOT_LOGGED,
    ORPHAN_FREE_FIRST,
    LOCK_ON_MEDIA,
    DRAM_POINTER,
    ABSOLUTE_ADDRESS,
    BITS_NOT_FLUSHED,
    BITS_NOT_NOTED,
    NUMBER_FORGOTTEN, /* from here on when it is mounted anew */
    BLOCK_FORGOTTEN,
    ORPHANS_LEFT, /* from here on in recovery */
    TRUNCATIONS_LEFT,
    NUMBER_USED_TWICE,
    MOUNTED_FOR_EVER,
    BUGS
};

struct pmfs_mutant {
    struct mutant mutant;
    enum bug bug;
    const char *script;
    size_t size;
};

#define MUTANT(name, class, what, oracle, bug, script, size)                           \
    {                                                                                  \
        {name, class, what, oracle}, bug, "pmfs/half/" script, size                    \
    }

static const struct pmfs_mutant mutants[] = {
    MUTANT("nlink_of_link", "A4",
           "link counts the new name in a transaction of its own", "fsck", NLINK_ALONE,
           "link-foo-bar", 0),
    MUTANT("nlink_of_unlink", "A4",
           "unlink counts the name in a transaction of its own", "fsck", NLINK_ALONE,
           "link-foo-bar+unlink-bar", 0),
    MUTANT("nlink_of_mkdir", "A4", "mkdir counts the parent's link before all else",
           "fsck", NLINK_ALONE, "mkdir-B", 0),
    MUTANT("nlink_of_rename", "A4",
           "a directory is moved, and the links of its parents "
           "are counted before",
           "fsck", NLINK_ALONE, "rename-A/C-B", 0),
    MUTANT("parent_of_rename", "A4",
           "a directory's parent changes in a transaction of its own", "fsck",
           PARENT_ALONE, "exchange-A/C-B", 0),
    MUTANT("privileges_before_write", "A4",
           "a write drops privileges in a transaction of its own", "fsck",
           PRIVILEGES_ALONE, "write-block-dropping-foo", 0),
    MUTANT("privileges_after_write", "A4",
           "a write is there, and then the file loses its privileges", "tree",
           PRIVILEGES_LATE, "append1-dropping-bits-foo", 0),
    MUTANT("state_before_name", "O3", "a new inode is in use before it has a name",
           "fsck", STATE_ALONE, "creat-foo", 0),
    MUTANT("state_before_unlink", "O3", "an inode is an orphan while it has a name",
           "fsck", STATE_ALONE, "remove-foo", 0),
    MUTANT("name_before_inode", "O3", "a name is there before its inode is", "fsck",
           INODE_LATE, "creat-foo", 0),
    MUTANT("name_before_lines", "O7",
           "a name is there before its inode is, but for the first line", "tree",
           LINES_LATE, "creat-foo", 0),
    MUTANT("rename_removes_first", "A5",
           "rename removes the old name, then adds the new", "fsck",
           ENTRY_REMOVED_ALONE, "rename-foo-A/foo", 0),
    MUTANT("rename_adds_first", "A5", "rename adds the new name, then removes the old",
           "fsck", ENTRY_ADDED_ALONE, "rename-foo-A/foo", 0),
    MUTANT("rename_replaces_first", "A5", "rename takes the new name, then the old one",
           "fsck", ENTRY_REPLACED_ALONE, "rename-foo-A/bar", 0),
    MUTANT("exchange_in_two", "A5", "exchange changes one name, then the other", "fsck",
           ENTRY_REPLACED_ALONE, "exchange-foo-A/bar", 0),
    MUTANT("whiteout_before_rename", "A5",
           "the old name is a whiteout's before the file has the new one", "fsck",
           WHITEOUT_ALONE, "whiteout-foo-A/bar", 0),
    MUTANT("rename_before_whiteout", "A5",
           "the file has its new name before a whiteout has the old one", "fsck",
           ENTRY_REPLACED_ALONE, "whiteout-foo-A/bar", 0),
    MUTANT("whiteout_after_rename", "A5",
           "rename removes the old name, and then a whiteout is made", "tree",
           WHITEOUT_LATE, "whiteout-foo-A/bar", 0),
    MUTANT("whiteout_in_use_first", "O3", "a whiteout is in use before it has a name",
           "fsck", STATE_ALONE, "whiteout-foo-A/bar", 0),
    MUTANT("whiteout_after_name", "O3", "a whiteout's name is there before it is",
           "fsck", INODE_LATE, "whiteout-foo-A/bar", 0),
    MUTANT("whiteout_of_split", "A8",
           "a split makes room and the old name a whiteout's before all else", "fsck",
           PLANTED_ALONE, "split-whiteout-D", 0),
    MUTANT("free_before_pointer", "O4", "a block is free before its pointer is cleared",
           "fsck", FREED_ALONE, "clear-A/bar", 0),
    MUTANT("free_before_unlink", "O4",
           "the blocks of a file are free before it is gone", "fsck", FREED_ALONE,
           "unlink-foo", 0),
    MUTANT("planted_before_freed", "A8",
           "the new blocks of a split are there before the old one is free", "fsck",
           PLANTED_ALONE, "split-D", 0),
    MUTANT("planted_before_name", "A5", "rename adds by a split, then removes", "fsck",
           PLANTED_ALONE, "move-D", 0),
    MUTANT("cleared_before_inode", "A4", "a directory loses a block before it counts",
           "fsck", CLEARED_ALONE, "clear-D", 0),
    MUTANT("joined_before_inode", "A4",
           "two blocks of a directory are joined before the inode counts", "fsck",
           JOINED_ALONE, "join-D", 0),
    MUTANT("slots_not_logged", "L1",
           "the slots that lead to the blocks of a split are not logged", "fsck",
           NOT_LOGGED, "move-D", 16 * sizeof(uint64_t)),
    MUTANT("tags_not_logged", "L1", "the tags of names are not logged", "fsck",
           NOT_LOGGED, "rename-foo-A/foo", sizeof(uint8_t)),
    MUTANT("converted_in_two", "A8",
           "a directory of format 2 is converted before its old blocks are free",
           "fsck", PLANTED_ALONE, "convert-D", 0),
    MUTANT("orphan_free_first", "O4",
           "an orphan's number is free before its blocks are", "fsck",
           ORPHAN_FREE_FIRST, "release-orphan", 0),
    MUTANT("nameless_is_free", "O3", "a file without a name is free on media", "fsck",
           ORPHAN_FREE, "tmpfile-write", 0),
    MUTANT("nameless_in_use", "R9", "a file without a name is in use on media", "fsck",
           ORPHAN_USED, "tmpfile", 0),
    MUTANT("nameless_stays_orphan", "R9",
           "a file that gets its first name is an orphan still", "fsck", STATE_KEPT,
           "link-nameless", 0),
    MUTANT("nameless_used_late", "A4",
           "a file gets its first name, and then is no orphan any more", "fsck",
           STATE_LATE, "link-nameless", 0),
    MUTANT("nameless_used_early", "A4",
           "a file is no orphan any more, and then gets its first name", "fsck",
           STATE_ALONE, "link-nameless", 0),
    MUTANT("nlink_of_nameless", "A4",
           "a file's first name is counted before it is there", "fsck", NLINK_ALONE,
           "link-nameless", 0),
    MUTANT("nameless_state_not_logged", "L1",
           "the state of a file that gets its first name is not logged", "fsck",
           STATE_NOT_LOGGED, "link-nameless", 0),
    MUTANT("nameless_free_first", "O4",
           "the number of a file without a name is free before its blocks are", "fsck",
           ORPHAN_FREE_FIRST, "release-nameless", 0),
    MUTANT("write_by_blocks", "A7", "each block is written in a transaction of its own",
           "tree", BLOCK_ALONE, "write65-foo", 0),
    MUTANT("size_before_data", "O2", "the size grows before the data is there", "tree",
           SIZE_ALONE, "extend-foo", 0),
    MUTANT("size_before_cut", "O2", "a file shrinks before its blocks are freed",
           "fsck", SIZE_ALONE, "clear-A/bar", 0),
    MUTANT("count_after_blocks", "A8", "blocks are counted after they are added",
           "fsck", BLOCKS_LATE, "extend-foo", 0),
    MUTANT("gap_after_size", "A6", "the size grows, and then the gap is zeroed", "tree",
           GAP_LATE, "shorten-foo+lengthen-foo", 0),
    MUTANT("times_after_mode", "O2", "chmod's time is stored after the mode", "tree",
           TIMES_LATE, "chmod-foo", 0),
    MUTANT("times_after_append", "O2", "the times of an append come after its size",
           "tree", TIMES_LATE, "append1-foo", 0),
    MUTANT("size_before_times", "O6", "the size comes before the times in its line",
           "tree", TIMES_AFTER_SIZE, "append1-foo", 2),
    MUTANT("mode_not_logged", "A1", "mode and owner change together, without a log",
           "tree", NOT_LOGGED, "setattr-foo", sizeof(uint32_t)),
    MUTANT("entry_not_logged", "L1", "the header of a removed entry is not logged",
           "fsck", NOT_LOGGED, "unlink-foo", sizeof(struct pm_dirent)),
    MUTANT("new_entry_not_logged", "L1", "the header of a new entry is not logged",
           "fsck", NOT_LOGGED, "creat-foo", sizeof(struct pm_dirent)),
    MUTANT("head_not_logged", "L1", "size and count of blocks are not logged", "fsck",
           NOT_LOGGED, "extend-foo", sizeof(struct inode_head)),
    MUTANT("root_not_logged", "L1", "the root of a growing block map is not logged",
           "fsck", NOT_LOGGED, "write-far", sizeof(struct pm_map)),
    MUTANT("state_not_logged", "L1", "the state of a removed inode is not logged",
           "fsck", STATE_NOT_LOGGED, "unlink-foo", 0),
    MUTANT("orphans_left", "R9", "mounting leaves orphans", "fsck", ORPHANS_LEFT,
           "remove-foo", 0),
    MUTANT("truncations_left", "R9", "mounting leaves truncations", "fsck",
           TRUNCATIONS_LEFT, "shorten-long", 0),
    MUTANT("number_used_twice", "R3", "mounting forgets that a number is taken", "use",
           NUMBER_USED_TWICE, "chmod-A", 0),
    MUTANT("mounted_for_ever", "R7", "what was mounted once cannot be mounted again",
           "second recovery", MOUNTED_FOR_EVER, "chmod-foo", 0),
    MUTANT("number_forgotten", "R3",
           "mounting forgets that a number is taken, and then it is given away", "run",
           NUMBER_FORGOTTEN, "creat-A/bar+remount+creat-foo", 0),
    MUTANT("block_forgotten", "R3",
           "mounting forgets that a block is taken, and then it is given away", "run",
           BLOCK_FORGOTTEN, "creat-A/bar+remount+write-far", 0),
    MUTANT("bits_not_flushed", "F1", "repair does not flush a bit of a bitmap", "fsck",
           BITS_NOT_FLUSHED, "repair-free-blocks", 0),
    MUTANT("bits_not_noted", "R10",
           "a killed repair leaves bits in the cache that nobody knows of", "fsck",
           BITS_NOT_NOTED, "repair-free-blocks", 0),
    MUTANT("lost_name_not_logged", "L1",
           "the header of a new name in lost+found is not logged", "recovery",
           NOT_LOGGED, "repair-lost-file", sizeof(struct pm_dirent)),
    MUTANT("adopted_not_logged", "L1",
           "a named orphan is used again before its links are counted", "recovery",
           NOT_LOGGED, "repair-named-orphan", sizeof(uint8_t)),
    MUTANT("kept_name_alone", "A4", "lost blocks have a name before they are in a file",
           "recovery", ENTRY_ADDED_ALONE, "repair-lost-run", 0),
    MUTANT("kept_name_late", "A4",
           "lost blocks are in a file, and then that gets its name", "tree",
           ENTRY_ADDED_LATE, "repair-lost-run", 0),
    MUTANT("kept_blocks_late", "A4",
           "a file for lost blocks is there, and then its first blocks are", "tree",
           CONTENT_LATE, "repair-lost-run", 0),
    MUTANT("kept_size_alone", "A4",
           "a file of lost blocks grows before more of them are in it", "tree",
           SIZE_ALONE, "repair-lost-run", 0),
    MUTANT("kept_slots_not_logged", "L1",
           "the slots of more lost blocks in a node are not logged", "recovery",
           NOT_LOGGED, "repair-lost-run", sizeof(uint64_t)),
    MUTANT("lock_on_media", "V1", "an inode's lock is on media", "fsck", LOCK_ON_MEDIA,
           "link-foo-bar", 0),
    MUTANT("dram_pointer", "V2", "an inode has a pointer to memory of the process",
           "tree", DRAM_POINTER, "append-foo", 0),
    MUTANT("absolute_address", "V3",
           "an inode has an address of PM instead of an offset", "tree",
           ABSOLUTE_ADDRESS, "append-foo", 0),
};
#define MUTANT_COUNT (sizeof(mutants) / sizeof(*mutants))

const struct mutant *pmfs_mutant(size_t index)
{
    return index < MUTANT_COUNT ? &mutants[index].mutant : NULL;
}

/* ---- The one that is chosen ------------------------------------------------------ */

static struct {
    const struct pmfs_mutant *chosen;
    enum pmfs_phase phase;
    enum bug bug;             /* now */
    struct minl2r_pool *pool; /* of the last mount or transaction */

    /* Changes that come after their transaction. */
    struct late {
        const void *dst;
        size_t size;
        uint8_t bytes[LATE_SIZE_MAX];
    } late[LATE_MAX];
    size_t late_count;

    /* An entry that does. */
    struct late_entry {
        struct pmfs *fs; /* NULL: there is none */
        const struct inode *dir;
        const struct name *name;
        const struct dir_entry *place;
        uint64_t ino;
        uint32_t type;
    } late_entry;
} state;

static enum pmfs_phase phase_of(enum bug bug)
{
    return bug >= ORPHANS_LEFT       ? PMFS_RECOVERY
           : bug >= NUMBER_FORGOTTEN ? PMFS_REMOUNT
                                     : PMFS_RUN;
}

/* What is stored by the run and believed by recovery. */
static bool is_of_both(enum bug bug)
{
    return bug == LOCK_ON_MEDIA || bug == DRAM_POINTER || bug == ABSOLUTE_ADDRESS;
}

const char *pmfs_mutate(size_t index)
{
    state.chosen = &mutants[index];
    return state.chosen->script;
}

/* What is gone with the process. */
static const void *memory_of_process(void)
{
    static void *page;

    if (!page)
        page = mmap(NULL, PAGE_SIZE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page;
}

enum pmfs_phase pmfs_enter(enum pmfs_phase phase)
{
    enum pmfs_phase before = state.phase;
    enum bug bug = state.chosen ? state.chosen->bug : NONE;
    bool is_there =
        phase_of(bug) == phase || (is_of_both(bug) && phase == PMFS_RECOVERY);

    state.phase = phase;
    state.bug = is_there ? bug : NONE;
    return before;
}

/* Bugs that the run stores on media, and that recovery believes. */
static bool stores(enum bug bug)
{
    return state.bug == bug && state.phase == PMFS_RUN;
}

static bool believes(enum bug bug)
{
    return state.bug == bug && state.phase == PMFS_RECOVERY;
}

/* Until do_late(). */
static int put_off(const void *dst, const void *src, size_t size)
{
    struct late *late = &state.late[state.late_count++];

    late->dst = dst;
    late->size = size;
    memcpy(late->bytes, src, size);
    return 0;
}

/* ---- Transactions of their own --------------------------------------------------- */

int __wrap_minl2r_tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx);
int __real_minl2r_tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx);

int __wrap_minl2r_tx_begin(struct minl2r_pool *pool, struct minl2r_tx **tx)
{
    state.pool = pool;
    return __real_minl2r_tx_begin(pool, tx);
}

/* Another transaction than `tx`, if that is the bug. */
static struct minl2r_tx *begin_alone(enum bug bug, struct minl2r_tx *tx)
{
    struct minl2r_tx *alone;

    if (state.bug != bug || __real_minl2r_tx_begin(state.pool, &alone) < 0)
        return tx;
    return alone;
}

static int end_alone(struct minl2r_tx *alone, const struct minl2r_tx *tx, int rc)
{
    if (alone == tx)
        return rc;
    if (rc == 0)
        return minl2r_tx_commit(alone);
    minl2r_tx_abort(alone);
    return rc;
}

int __wrap_inode_set_nlink(struct minl2r_tx *tx, const struct inode *inode,
                           uint32_t nlink);
int __real_inode_set_nlink(struct minl2r_tx *tx, const struct inode *inode,
                           uint32_t nlink);
int __wrap_change_drop_privileges(struct change *change, bool setgid);
int __real_change_drop_privileges(struct change *change, bool setgid);
int __wrap_inode_set_parent(struct minl2r_tx *tx, const struct inode *inode,
                            uint64_t parent);
int __real_inode_set_parent(struct minl2r_tx *tx, const struct inode *inode,
                            uint64_t parent);
int __wrap_inode_set_state(struct minl2r_tx *tx, const struct inode *inode,
                           enum pm_state value);
int __real_inode_set_state(struct minl2r_tx *tx, const struct inode *inode,
                           enum pm_state value);
int __wrap_dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                      const struct name *name, const struct dir_entry *entry,
                      struct dir_change *change);
int __real_dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                      const struct name *name, const struct dir_entry *entry,
                      struct dir_change *change);
int __wrap_dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                   const struct name *name, const struct dir_entry *place, uint64_t ino,
                   uint32_t type, struct dir_change *change);
int __real_dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                   const struct name *name, const struct dir_entry *place, uint64_t ino,
                   uint32_t type, struct dir_change *change);
int __wrap_dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                       const struct dir_entry *entry, uint64_t ino, uint32_t type);
int __real_dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                       const struct dir_entry *entry, uint64_t ino, uint32_t type);
int __wrap_dir_pass_on(struct minl2r_tx *tx, const struct inode *inode,
                       const struct dir_change *change);
int __real_dir_pass_on(struct minl2r_tx *tx, const struct inode *inode,
                       const struct dir_change *change);
int __wrap_trie_plant(struct trie *trie, struct minl2r_tx *tx,
                      const struct hashed *list, uint64_t count, uint32_t limit,
                      struct inode_head *head);
int __real_trie_plant(struct trie *trie, struct minl2r_tx *tx,
                      const struct hashed *list, uint64_t count, uint32_t limit,
                      struct inode_head *head);
int __wrap_trie_clear(struct trie *trie, struct minl2r_tx *tx, struct inode_head *head);
int __real_trie_clear(struct trie *trie, struct minl2r_tx *tx, struct inode_head *head);
int __wrap_trie_join(struct trie *trie, struct minl2r_tx *tx, uint64_t twin,
                     const struct hashed *list, uint64_t count,
                     struct inode_head *head);
int __real_trie_join(struct trie *trie, struct minl2r_tx *tx, uint64_t twin,
                     const struct hashed *list, uint64_t count,
                     struct inode_head *head);
int __wrap_minl2r_tx_free(struct minl2r_tx *tx, uint64_t offset, uint64_t blocks);
int __real_minl2r_tx_free(struct minl2r_tx *tx, uint64_t offset, uint64_t blocks);
int __wrap_minl2r_tx_write_block(struct minl2r_tx *tx, const uint64_t *slot,
                                 uint32_t offset, const void *src, uint32_t size);
int __real_minl2r_tx_write_block(struct minl2r_tx *tx, const uint64_t *slot,
                                 uint32_t offset, const void *src, uint32_t size);

int __wrap_inode_set_nlink(struct minl2r_tx *tx, const struct inode *inode,
                           uint32_t nlink)
{
    struct minl2r_tx *alone = begin_alone(NLINK_ALONE, tx);

    return end_alone(alone, tx, __real_inode_set_nlink(alone, inode, nlink));
}

/* The bits only, with PRIVILEGES_LATE. */
int __wrap_change_drop_privileges(struct change *change, bool setgid)
{
    const uint32_t *mode = &change->inode->place.pm->mode;
    const uint32_t left = *mode & ~(uint32_t)(S_ISUID | S_ISGID);
    struct minl2r_tx *tx = change->tx;

    if (state.bug == PRIVILEGES_LATE)
        return put_off(mode, &left, sizeof(left));
    change->tx = begin_alone(PRIVILEGES_ALONE, tx);
    int rc = __real_change_drop_privileges(change, setgid);

    rc = end_alone(change->tx, tx, rc);
    change->tx = tx;
    return rc;
}

int __wrap_inode_set_parent(struct minl2r_tx *tx, const struct inode *inode,
                            uint64_t parent)
{
    struct minl2r_tx *alone = begin_alone(PARENT_ALONE, tx);

    return end_alone(alone, tx, __real_inode_set_parent(alone, inode, parent));
}

int __wrap_inode_set_state(struct minl2r_tx *tx, const struct inode *inode,
                           enum pm_state value)
{
    struct minl2r_tx *alone = begin_alone(STATE_ALONE, tx);
    uint8_t byte = (uint8_t)value;
    bool is_named = inode->state == PM_STATE_ORPHAN && value == PM_STATE_USED;

    if (state.bug == STATE_NOT_LOGGED)
        return minl2r_tx_write_fresh(tx, inode->place.state, &byte, sizeof(byte));
    if (state.bug == STATE_LATE && is_named)
        return put_off(inode->place.state, &byte, sizeof(byte));
    if (state.bug == STATE_KEPT && is_named)
        return 0;
    if (state.bug == ORPHAN_FREE && value == PM_STATE_ORPHAN)
        return 0;
    if (state.bug == ORPHAN_USED && value == PM_STATE_ORPHAN)
        value = PM_STATE_USED;
    return end_alone(alone, tx, __real_inode_set_state(alone, inode, value));
}

int __wrap_dir_remove(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                      const struct name *name, const struct dir_entry *entry,
                      struct dir_change *change)
{
    struct minl2r_tx *alone = begin_alone(ENTRY_REMOVED_ALONE, tx);

    return end_alone(alone, tx,
                     __real_dir_remove(fs, alone, inode, name, entry, change));
}

int __wrap_dir_add(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                   const struct name *name, const struct dir_entry *place, uint64_t ino,
                   uint32_t type, struct dir_change *change)
{
    struct minl2r_tx *alone = begin_alone(ENTRY_ADDED_ALONE, tx);

    if (state.bug == ENTRY_ADDED_LATE) {
        state.late_entry = (struct late_entry){fs, inode, name, place, ino, type};
        return 0;
    }
    return end_alone(alone, tx,
                     __real_dir_add(fs, alone, inode, name, place, ino, type, change));
}

int __wrap_dir_replace(struct minl2r_tx *tx, const struct inode *inode,
                       const struct dir_entry *entry, uint64_t ino, uint32_t type)
{
    struct minl2r_tx *alone = begin_alone(ENTRY_REPLACED_ALONE, tx);

    return end_alone(alone, tx, __real_dir_replace(alone, inode, entry, ino, type));
}

int __wrap_dir_pass_on(struct minl2r_tx *tx, const struct inode *inode,
                       const struct dir_change *change)
{
    struct minl2r_tx *alone = begin_alone(WHITEOUT_ALONE, tx);

    return end_alone(alone, tx, __real_dir_pass_on(alone, inode, change));
}

int __wrap_pmfs_rename_whiteout(struct pmfs *fs, uint64_t parent, const char *name,
                                uint64_t new_parent, const char *new_name,
                                unsigned flags, const struct pmfs_cred *cred);
int __real_pmfs_rename_whiteout(struct pmfs *fs, uint64_t parent, const char *name,
                                uint64_t new_parent, const char *new_name,
                                unsigned flags, const struct pmfs_cred *cred);

int __wrap_pmfs_rename_whiteout(struct pmfs *fs, uint64_t parent, const char *name,
                                uint64_t new_parent, const char *new_name,
                                unsigned flags, const struct pmfs_cred *cred)
{
    struct pmfs_attr attr;

    if (state.bug != WHITEOUT_LATE)
        return __real_pmfs_rename_whiteout(fs, parent, name, new_parent, new_name,
                                           flags, cred);
    int rc = pmfs_rename(fs, parent, name, new_parent, new_name, flags);

    return rc < 0 ? rc : pmfs_mknod(fs, parent, name, S_IFCHR, 0, cred, &attr);
}

int __wrap_trie_plant(struct trie *trie, struct minl2r_tx *tx,
                      const struct hashed *list, uint64_t count, uint32_t limit,
                      struct inode_head *head)
{
    struct minl2r_tx *alone = begin_alone(PLANTED_ALONE, tx);

    return end_alone(alone, tx,
                     __real_trie_plant(trie, alone, list, count, limit, head));
}

int __wrap_trie_clear(struct trie *trie, struct minl2r_tx *tx, struct inode_head *head)
{
    struct minl2r_tx *alone = begin_alone(CLEARED_ALONE, tx);

    return end_alone(alone, tx, __real_trie_clear(trie, alone, head));
}

int __wrap_trie_join(struct trie *trie, struct minl2r_tx *tx, uint64_t twin,
                     const struct hashed *list, uint64_t count, struct inode_head *head)
{
    struct minl2r_tx *alone = begin_alone(JOINED_ALONE, tx);

    return end_alone(alone, tx, __real_trie_join(trie, alone, twin, list, count, head));
}

int __wrap_minl2r_tx_free(struct minl2r_tx *tx, uint64_t offset, uint64_t blocks)
{
    struct minl2r_tx *alone = begin_alone(FREED_ALONE, tx);

    return end_alone(alone, tx, __real_minl2r_tx_free(alone, offset, blocks));
}

int __wrap_minl2r_tx_write_block(struct minl2r_tx *tx, const uint64_t *slot,
                                 uint32_t offset, const void *src, uint32_t size)
{
    struct minl2r_tx *alone = begin_alone(BLOCK_ALONE, tx);

    return end_alone(alone, tx,
                     __real_minl2r_tx_write_block(alone, slot, offset, src, size));
}

/* ---- Too late, or without a log -------------------------------------------------- */

int __wrap_minl2r_tx_write(struct minl2r_tx *tx, const void *dst, const void *src,
                           size_t size);
int __real_minl2r_tx_write(struct minl2r_tx *tx, const void *dst, const void *src,
                           size_t size);
int __wrap_minl2r_tx_write_fresh(struct minl2r_tx *tx, const void *dst, const void *src,
                                 size_t size);
int __real_minl2r_tx_write_fresh(struct minl2r_tx *tx, const void *dst, const void *src,
                                 size_t size);
int __wrap_fs_end(struct minl2r_tx *tx, int rc);
int __real_fs_end(struct minl2r_tx *tx, int rc);

static int write_without_content(struct minl2r_tx *tx, const void *dst, const void *src)
{
    struct pm_inode pm;

    put_off(dst, src, offsetof(struct pm_inode, map) + sizeof(pm.map));
    memcpy(&pm, src, PM_INODE_USED_SIZE);
    pm.size = pm.blocks = 0;
    pm.map = (struct pm_map){0};
    return __real_minl2r_tx_write(tx, dst, &pm, PM_INODE_USED_SIZE);
}

int __wrap_minl2r_tx_write(struct minl2r_tx *tx, const void *dst, const void *src,
                           size_t size)
{
    if (state.bug == CONTENT_LATE && size == PM_INODE_USED_SIZE)
        return write_without_content(tx, dst, src);
    if (state.bug == NOT_LOGGED && size == state.chosen->size)
        return __real_minl2r_tx_write_fresh(tx, dst, src, size);
    return __real_minl2r_tx_write(tx, dst, src, size);
}

static bool is_late(const void *src, size_t size)
{
    switch (state.bug) {
    case INODE_LATE:
        return size == PM_INODE_USED_SIZE;
    case GAP_LATE:
        return src == fs_zeros;
    case TIMES_LATE:
        return size == 2 * sizeof(int64_t);
    default:
        return false;
    }
}

int __wrap_minl2r_tx_write_fresh(struct minl2r_tx *tx, const void *dst, const void *src,
                                 size_t size)
{
    if (is_late(src, size) && state.late_count < LATE_MAX && size <= LATE_SIZE_MAX)
        return put_off(dst, src, size);
    if (state.bug == LINES_LATE && size == PM_INODE_USED_SIZE) {
        size = LINE_SIZE;
        put_off((const uint8_t *)dst + size, (const uint8_t *)src + size,
                PM_INODE_USED_SIZE - size);
    }
    return __real_minl2r_tx_write_fresh(tx, dst, src, size);
}

int __wrap_inode_set_head(struct minl2r_tx *tx, const struct inode *inode,
                          const struct inode_head *head);
int __real_inode_set_head(struct minl2r_tx *tx, const struct inode *inode,
                          const struct inode_head *head);

static int add_late_entry(struct minl2r_tx *tx)
{
    const struct late_entry late = state.late_entry;
    struct dir_change change;

    if (!late.fs)
        return 0;
    state.late_entry.fs = NULL;
    change = (struct dir_change){.head = inode_head(late.dir)};
    int rc = __real_dir_add(late.fs, tx, late.dir, late.name, late.place, late.ino,
                            late.type, &change);

    return rc < 0 ? rc : __real_inode_set_head(tx, late.dir, &change.head);
}

static int do_late(void)
{
    struct minl2r_tx *tx;
    int rc = __real_minl2r_tx_begin(state.pool, &tx);

    for (size_t i = 0; i < state.late_count && rc == 0; i++)
        rc = __real_minl2r_tx_write(tx, state.late[i].dst, state.late[i].bytes,
                                    state.late[i].size);
    state.late_count = 0;
    if (rc == 0)
        rc = add_late_entry(tx);
    return rc < 0 ? rc : minl2r_tx_commit(tx);
}

int __wrap_fs_end(struct minl2r_tx *tx, int rc)
{
    if (state.bug == TIMES_AFTER_SIZE)
        door_break((struct door_fault){DOOR_SWAP_STORES, state.chosen->size});
    rc = __real_fs_end(tx, rc);
    if (state.bug == TIMES_AFTER_SIZE)
        door_break((struct door_fault){0});
    return rc == 0 && (state.late_count > 0 || state.late_entry.fs) ? do_late() : rc;
}

/* ---- Heads of inodes ------------------------------------------------------------- */

static int set_size_alone(const struct inode *inode, uint64_t size)
{
    struct minl2r_tx *tx;
    int rc = __real_minl2r_tx_begin(state.pool, &tx);

    if (rc == 0)
        rc = __real_minl2r_tx_write(tx, &inode->place.pm->size, &size, sizeof(size));
    return rc < 0 ? rc : minl2r_tx_commit(tx);
}

static int point_to(struct minl2r_tx *tx, const struct inode *inode)
{
    uint64_t pointer;

    if (state.bug == ABSOLUTE_ADDRESS) {
        pointer = (uintptr_t)inode->place.pm;
    } else {
        pointer = (uintptr_t)memory_of_process();
    }
    return __real_minl2r_tx_write(tx, POINTER_WORD(inode->place.pm), &pointer,
                                  sizeof(pointer));
}

int __wrap_inode_set_head(struct minl2r_tx *tx, const struct inode *inode,
                          const struct inode_head *wanted)
{
    struct inode_head head = *wanted;
    int rc = 0;

    switch (state.bug) {
    case SIZE_ALONE:
        rc = set_size_alone(inode, head.size);
        break;
    case BLOCKS_LATE:
        if (head.blocks != inode->place.pm->blocks && state.late_count < LATE_MAX)
            put_off(&inode->place.pm->blocks, &head.blocks, sizeof(head.blocks));
        head.blocks = inode->place.pm->blocks;
        break;
    case DRAM_POINTER:
    case ABSOLUTE_ADDRESS:
        if (stores(state.bug))
            rc = point_to(tx, inode);
        break;
    default:
        break;
    }
    return rc < 0 ? rc : __real_inode_set_head(tx, inode, &head);
}

void __wrap_inode_attr(const struct pmfs *fs, const struct inode *inode,
                       struct pmfs_attr *attr);
void __real_inode_attr(const struct pmfs *fs, const struct inode *inode,
                       struct pmfs_attr *attr);

void __wrap_inode_attr(const struct pmfs *fs, const struct inode *inode,
                       struct pmfs_attr *attr)
{
    const volatile uint64_t *pointer;

    __real_inode_attr(fs, inode, attr);
    if (!believes(DRAM_POINTER) && !believes(ABSOLUTE_ADDRESS))
        return;
    pointer = (const volatile uint64_t *)(uintptr_t)*POINTER_WORD(inode->place.pm);
    if (pointer)
        attr->blocks += *pointer & 0;
}

/* ---- Locks on media -------------------------------------------------------------- */

int __wrap_inode_lock(struct inode *inode, enum lock_mode mode);
int __real_inode_lock(struct inode *inode, enum lock_mode mode);
void __wrap_inode_unlock(struct inode *inode);
void __real_inode_unlock(struct inode *inode);
int __wrap_inode_check(const struct pmfs *fs, const struct inode_place *place,
                       uint8_t value);
int __real_inode_check(const struct pmfs *fs, const struct inode_place *place,
                       uint8_t value);

int __wrap_inode_lock(struct inode *inode, enum lock_mode mode)
{
    int rc = __real_inode_lock(inode, mode);

    if (rc == 0 && stores(LOCK_ON_MEDIA) && mode == LOCK_EXCLUSIVE && state.pool)
        minl2r_store64(state.pool, LOCK_WORD(inode->place.pm), 1);
    return rc;
}

void __wrap_inode_unlock(struct inode *inode)
{
    if (stores(LOCK_ON_MEDIA) && *LOCK_WORD(inode->place.pm) != 0)
        minl2r_store64(state.pool, LOCK_WORD(inode->place.pm), 0);
    __real_inode_unlock(inode);
}

int __wrap_inode_check(const struct pmfs *fs, const struct inode_place *place,
                       uint8_t value)
{
    if (believes(LOCK_ON_MEDIA) && *LOCK_WORD(place->pm) != 0)
        return fs_error(EUCLEAN, "inode %llu is locked",
                        (unsigned long long)place->ino);
    return __real_inode_check(fs, place, value);
}

/* ---- Bits that repair sets ------------------------------------------------------- */

int __wrap_view_mark_allocated(struct minl2r_pool *pool, uint64_t offset);
int __real_view_mark_allocated(struct minl2r_pool *pool, uint64_t offset);

/* The note is its first store. */
int __wrap_view_mark_allocated(struct minl2r_pool *pool, uint64_t offset)
{
    if (state.bug == BITS_NOT_FLUSHED)
        door_break((struct door_fault){DOOR_LOSE_FLUSH, 0});
    if (state.bug == BITS_NOT_NOTED)
        door_break((struct door_fault){DOOR_LOSE_STORE, 0});
    int rc = __real_view_mark_allocated(pool, offset);

    if (state.bug == BITS_NOT_FLUSHED || state.bug == BITS_NOT_NOTED)
        door_break((struct door_fault){0});
    return rc;
}

/* ---- Freeing and mounting -------------------------------------------------------- */

int __wrap_map_free(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t end,
                    uint64_t *freed);
int __real_map_free(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t end,
                    uint64_t *freed);
int __wrap_orphan_recover(struct pmfs *fs);
int __real_orphan_recover(struct pmfs *fs);
uint64_t __wrap_table_next_unfinished(struct pmfs *fs, uint64_t ino);
uint64_t __real_table_next_unfinished(struct pmfs *fs, uint64_t ino);
int __wrap_table_attach(struct pmfs *fs);
int __real_table_attach(struct pmfs *fs);
int __wrap_fs_attach(struct minl2r_pool *pool, const struct pmfs_mount_options *options,
                     struct pmfs **fs);
int __real_fs_attach(struct minl2r_pool *pool, const struct pmfs_mount_options *options,
                     struct pmfs **fs);

static void free_number_first(struct map *map)
{
    struct pmfs *fs = (struct pmfs *)(uintptr_t)map->fs;
    const uint8_t free_state = PM_STATE_FREE;
    struct inode_place place;
    struct minl2r_tx *tx;

    if (table_locate(fs, map->ino, &place) < 0 || *place.state != PM_STATE_ORPHAN ||
        __real_minl2r_tx_begin(state.pool, &tx) < 0)
        return;
    __real_minl2r_tx_write(tx, place.state, &free_state, sizeof(free_state));
    minl2r_tx_commit(tx);
}

int __wrap_map_free(struct map *map, struct minl2r_tx *tx, uint64_t first, uint64_t end,
                    uint64_t *freed)
{
    if (state.bug == ORPHAN_FREE_FIRST)
        free_number_first(map);
    return __real_map_free(map, tx, first, end, freed);
}

int __wrap_orphan_recover(struct pmfs *fs)
{
    return state.bug == ORPHANS_LEFT ? 0 : __real_orphan_recover(fs);
}

uint64_t __wrap_table_next_unfinished(struct pmfs *fs, uint64_t ino)
{
    struct inode_place place;

    while ((ino = __real_table_next_unfinished(fs, ino)) != 0) {
        if (state.bug != TRUNCATIONS_LEFT || table_locate(fs, ino, &place) < 0 ||
            *place.state != PM_STATE_TRUNCATE)
            break;
        ino++;
    }
    return ino;
}

/* That of the first inode after the root. */
int __wrap_table_attach(struct pmfs *fs)
{
    int rc = __real_table_attach(fs);

    if (rc == 0 && (state.bug == NUMBER_USED_TWICE || state.bug == NUMBER_FORGOTTEN) &&
        table_is_used(fs, PMFS_ROOT_INO + 1))
        table_free_number(fs, PMFS_ROOT_INO + 1);
    return rc;
}

/* That of the root directory. */
static void forget_block(struct pmfs *fs)
{
    struct inode_place place;

    if (table_locate(fs, PMFS_ROOT_INO, &place) == 0)
        alloc_release(fs->pool,
                      (struct block_run){.offset = place.pm->map.root, .count = 1});
}

int __wrap_fs_attach(struct minl2r_pool *pool, const struct pmfs_mount_options *options,
                     struct pmfs **fs)
{
    state.pool = pool;

    int rc = __real_fs_attach(pool, options, fs);

    if (rc == 0 && state.bug == BLOCK_FORGOTTEN)
        forget_block(*fs);
    if (rc < 0 || state.bug != MOUNTED_FOR_EVER)
        return rc;
    if (*MOUNTED_WORD(*fs) == 0)
        return minl2r_store64(pool, MOUNTED_WORD(*fs), 1);
    fs_detach(*fs);
    return fs_error(EBUSY, "it is mounted already");
}
