/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trie.h - from the hash of a name to the block of a directory that has its entry.
 *
 *   root ---> node ---> block        the next map_shift bits of the hash, from the top,
 *          |  slot 0 -> block        choose the slot of a node
 *          |  slot 1 -> block
 *          |  slot 2 -> node ---> ...
 *          +  ...
 *
 * Neighbours may name the same block: a group, of 2^k slots at a multiple of 2^k. A
 * block that is full is split, and its group halved; a group of one slot gets a node.
 * So a change touches one block, one group, and the nodes that come or go.
 *
 * A struct trie is the way to one group, by who holds the lock of the directory.
 */
#ifndef PMFS_TRIE_H
#define PMFS_TRIE_H

#include "pmfs-proto/core/dirent.h"
#include "pmfs-proto/core/inode.h"

/* With blocks of 512. */
#define TRIE_HEIGHT_MAX (DIRENT_CELL_BITS / 6)

struct trie {
    const struct pmfs *fs;
    const struct pm_map *pm; /* its root */
    uint64_t ino;            /* for messages */
    uint32_t height;         /* nodes on the way */
    struct {
        const uint64_t *node;
        uint32_t low, high; /* slots: the one that leads on, or the group */
    } way[TRIE_HEIGHT_MAX];
    uint64_t slot;     /* what the group names: a block, or 0 */
    const void *block; /* its memory; NULL: none */
};

/*
 * The way that a hash leads. -EUCLEAN where it comes to something that can be no block:
 * then the way so far.
 */
int trie_find(struct trie *trie, const struct pmfs *fs, const struct pm_map *pm,
              uint64_t ino, uint64_t hash);

/* Looks for all of the group; trie_find() knows one slot of it. */
void trie_widen(struct trie *trie);

/* The hashes that lead to the group. */
uint64_t trie_first(const struct trie *trie);
uint64_t trie_last(const struct trie *trie);

/*
 * Behind a group, widened: the first hash of the next, or 0 after the last. A directory
 * with names in all its nodes has few groups without names in a row; -EUCLEAN when
 * there have been more: a damaged one may lead to the same nodes over and over.
 */
int trie_next(const struct trie *trie, bool has_names, uint32_t *gap, uint64_t *hash);

/* The other half of what a group, widened, is half of: if that is one group, too. *twin
 * is what it names. */
bool trie_has_twin(const struct trie *trie, uint64_t *twin);

/*
 * Lets the group, widened, name blocks with these entries, by hash, instead of what it
 * names; `limit` is what may go into one block without a split. Counts in `head`.
 * -ENOSPC, -EUCLEAN, -ENOMEM.
 */
int trie_plant(struct trie *trie, struct minl2r_tx *tx, const struct hashed *list,
               uint64_t count, uint32_t limit, struct inode_head *head);

/*
 * Makes one group of a group and its twin, of one new block with these entries, and
 * frees theirs. -ENOSPC if there is no block: then nothing is queued.
 */
int trie_join(struct trie *trie, struct minl2r_tx *tx, uint64_t twin,
              const struct hashed *list, uint64_t count, struct inode_head *head);

/* Frees the block that the group names, and the nodes that this leaves empty. */
int trie_clear(struct trie *trie, struct minl2r_tx *tx, struct inode_head *head);

#endif
