/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format.h - every byte that pmfs keeps in its pool. Twin of docs/PMFS_FORMAT.md, whose
 * headings are these names.
 *
 *   struct pm_fs, the pool's root object
 *     states -> block map -> one byte per inode: enum pm_state
 *     inodes -> block map -> struct pm_inode [block_size / 256] per block
 *                              map -> block map -> data, target, or struct pm_dirent's
 *
 * Little endian. A block is named by its offset in the pool, in bytes; 0 is none.
 */
#ifndef PMFS_FORMAT_H
#define PMFS_FORMAT_H

#include <stddef.h>
#include <stdint.h>

/*
 * A block map: a radix tree of slots, 8-byte names of blocks, block_size / 8 per node.
 * At height 0 `root` is the slot of block 0 itself; at height h it names a node whose
 * slots name nodes of height h - 1. A slot of 0 is a hole: no block, or none of the
 * whole subtree.
 */
struct pm_map {
    uint64_t root;
    uint64_t height;
};
_Static_assert(sizeof(struct pm_map) == 16, "PMFS_FORMAT.md: pm_map");

#define PM_FS_MAGIC "pmfs\r\n\032"
#define PM_FS_FORMAT 3u

struct pm_fs {
    uint8_t magic[8];           /* PM_FS_MAGIC, written last */
    uint32_t format;            /* PM_FS_FORMAT */
    uint32_t inode_size;        /* bytes: 256 */
    uint64_t features_compat;   /* unknown bits: may be written */
    uint64_t features_ro;       /* unknown bits: may be read */
    uint64_t features_incompat; /* unknown bits: refuse */
    uint64_t created_ns;        /* since the epoch */
    uint64_t inode_count;       /* bytes of `states`: inode numbers run below it */
    uint64_t generation_base;   /* of inodes in a new block; format 1 and 2: 0 */
    struct pm_map states;
    struct pm_map inodes; /* sparse: blocks come with the first inode in them, and may
                             go with the last */
    uint64_t reserved[20];
};
_Static_assert(offsetof(struct pm_fs, inode_count) == 48, "PMFS_FORMAT.md: pm_fs");
_Static_assert(offsetof(struct pm_fs, states) == 64, "PMFS_FORMAT.md: pm_fs");
_Static_assert(sizeof(struct pm_fs) == 256, "PMFS_FORMAT.md: pm_fs");

/*
 * What an inode is, apart from it in a byte of its own: the library keeps transactions
 * apart by bytes, so that no two of them meet here, and mounting finds unfinished work
 * by reading one byte per inode.
 */
enum pm_state {
    PM_STATE_FREE = 0,
    PM_STATE_USED = 1,
    PM_STATE_ORPHAN = 2, /* no name: to be freed once nobody uses it, or by mounting */
    PM_STATE_TRUNCATE = 3, /* used, and blocks past its end are still to be freed */
};

#define PM_INODE_SIZE 256u
#define PM_ROOT_INO 1u

struct pm_inode {
    uint64_t size; /* bytes; of a directory block_size for each block of entries */
    int64_t mtime_ns;
    int64_t ctime_ns;
    uint64_t blocks; /* that `map` and `xattrs` hold, nodes included */
    struct pm_map map;
    uint32_t mode; /* as st_mode */
    uint32_t nlink;
    uint32_t uid;
    uint32_t gid;
    /* Second line: what seldom changes. */
    int64_t atime_ns;
    int64_t btime_ns;     /* when it was made */
    uint64_t rdev;        /* of devices */
    uint64_t parent;      /* of directories: the inode number of the parent */
    uint64_t xattr_size;  /* bytes of extended attributes; format 1: 0 */
    uint32_t generation;  /* counts how often the number was used; stays when freed */
    uint32_t flags;       /* enum pm_inode_flags; format 1: 0 */
    struct pm_map xattrs; /* struct pm_xattr's; format 1: 0 */
    uint64_t reserved1[16];
};
_Static_assert(offsetof(struct pm_inode, map) == 32, "PMFS_FORMAT.md: pm_inode");
_Static_assert(offsetof(struct pm_inode, uid) == 56, "PMFS_FORMAT.md: pm_inode");
_Static_assert(offsetof(struct pm_inode, atime_ns) == 64, "PMFS_FORMAT.md: pm_inode");
_Static_assert(offsetof(struct pm_inode, xattrs) == 112, "PMFS_FORMAT.md: pm_inode");
_Static_assert(offsetof(struct pm_inode, reserved1) == 128, "PMFS_FORMAT.md: pm_inode");
_Static_assert(sizeof(struct pm_inode) == PM_INODE_SIZE, "PMFS_FORMAT.md: pm_inode");

enum pm_inode_flags {
    /* Of a file: blocks of zeros may lie past its end. */
    PM_INODE_BLOCKS_PAST_END = 1,
    /* Of a directory: `map` is as PM_DIR_NODE says, and blocks of entries begin with
     * tags. Without it, it is of format 1 or 2. */
    PM_INODE_HASHED = 2,
};

/* What is written when an inode is made; the rest keeps whatever it was. */
#define PM_INODE_USED_SIZE offsetof(struct pm_inode, reserved1)

/*
 * In a directory, `map.root` and the slots of nodes name a block of entries, or, with
 * this bit, a node. Which of a node's slots leads to a name, the next bits of its hash
 * say, from the top; neighbours may name the same block of entries. `map.height` is 0.
 */
#define PM_DIR_NODE 1u

/*
 * A directory entry, live or free. A block of entries begins with a tag, a byte, for
 * each PM_DIRENT_UNIT of it: where a live entry begins, 1 to 255 by its name's hash,
 * else 0. The entries fill the rest exactly. In format 1 and 2 there are no tags.
 * `name` is not terminated.
 */
struct pm_dirent {
    uint64_t ino;      /* 0: free */
    uint32_t size;     /* bytes, of the whole entry: a multiple of 16 */
    uint8_t position;  /* 0, or low bits of its place in a listing: dirent_position() */
    uint8_t reserved;  /* 0 */
    uint8_t name_size; /* bytes; 1 to 255 in a live entry */
    uint8_t type;      /* st_mode >> 12 of the inode */
    char name[];
};
_Static_assert(sizeof(struct pm_dirent) == 16, "PMFS_FORMAT.md: pm_dirent");

#define PM_DIRENT_UNIT 16u

/*
 * An extended attribute. They lie one behind the other, each at a multiple of
 * PM_XATTR_UNIT, and take at most PM_XATTR_SIZE_MAX bytes and what one lowest node
 * names. The value follows the name.
 */
struct pm_xattr {
    uint32_t value_size; /* bytes; at most 65536 */
    uint8_t name_size;   /* bytes; 1 to 255 */
    uint8_t reserved[3]; /* 0 */
    char name[];
};
_Static_assert(sizeof(struct pm_xattr) == 8, "PMFS_FORMAT.md: pm_xattr");

#define PM_XATTR_UNIT 8u
#define PM_XATTR_SIZE_MAX ((uint64_t)1 << 20)

#endif
