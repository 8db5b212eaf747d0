/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * layout.h - every byte on media. Twin of docs/FORMAT.md, whose headings are these
 * names.
 *
 *   0             struct pm_super
 *   lanes_offset  struct pm_lane [lane_count], packed
 *   logs_offset   log areas: lane_count * log_size
 *   zones_offset  zones of 8 * block_size blocks, up to the end of the pool; the first
 *                 block of each zone is its bitmap (bit set: not free), which covers
 *                 the bitmap block itself and, set, what lies past the end of the pool.
 *                 The second block of the first zone is struct pm_root.
 *
 * Little endian. An offset counts bytes from the start of the pool; 0 is none.
 */
#ifndef MINL2R_LAYOUT_H
#define MINL2R_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define PM_LINE 64u
#define PM_PAGE 4096u

#define PM_MAGIC "MinL2R\r\n"
#define PM_FORMAT 1u

struct pm_super {
    uint8_t magic[8];           /* PM_MAGIC */
    uint32_t format;            /* PM_FORMAT */
    uint32_t super_size;        /* bytes, of this struct */
    uint64_t features_compat;   /* unknown bits: may be written */
    uint64_t features_ro;       /* unknown bits: may be read */
    uint64_t features_incompat; /* unknown bits: refuse */
    uint8_t uuid[16];
    char layout[64];        /* NUL-terminated, zero-padded */
    uint64_t pool_size;     /* bytes */
    uint64_t reserved_size; /* bytes the pool may grow to; 0: pool_size */
    uint32_t block_size;    /* bytes, power of two */
    uint32_t lane_count;
    uint64_t lanes_offset;
    uint64_t logs_offset;
    uint64_t zones_offset;
    uint32_t log_size;          /* bytes per lane */
    uint32_t pointer_threshold; /* bytes of a block; more than block_size: never */
    uint64_t spare_blocks;
    uint64_t created_s; /* seconds since the epoch */
    uint64_t checksum;  /* of all bytes before it, seed 0 */
};
_Static_assert(offsetof(struct pm_super, layout) == 56, "FORMAT.md: pm_super");
_Static_assert(offsetof(struct pm_super, pool_size) == 120, "FORMAT.md: pm_super");
_Static_assert(offsetof(struct pm_super, checksum) == 192, "FORMAT.md: pm_super");
_Static_assert(sizeof(struct pm_super) == 200, "FORMAT.md: pm_super");

/*
 * A lane. The two lines have different writers: `settled` is streamed, `word` is an
 * ordinary store that only a killed process needs to have left behind.
 */
struct pm_lane {
    uint64_t settled; /* newest generation that is over; streamed with its padding */
    uint64_t pad0[7];
    uint64_t
        word; /* offset of the word being stored without a log; a hint; 0: none yet */
    uint64_t pad1[7];
};
_Static_assert(sizeof(struct pm_lane) == 128, "FORMAT.md: pm_lane");
_Static_assert(offsetof(struct pm_lane, word) == 64, "FORMAT.md: pm_lane");

/*
 * A batch: this header, then records, padded with zeros to whole lines. Batches of one
 * generation are numbered from 0; the first lies at the start of the lane's log area.
 */
struct pm_batch {
    uint64_t
        checksum; /* of the bytes after it up to `size`; seed: pool uuid and lane */
    uint64_t generation; /* live only if above pm_lane.settled */
    uint64_t prev; /* offset of the batch before; in batch 0 the hash of the bytes that
                      its PM_CHANGEs bring, or 0 */
    uint32_t index;
    uint32_t size; /* bytes, header included, without padding */
};
_Static_assert(sizeof(struct pm_batch) == 32, "FORMAT.md: pm_batch");

#define PM_BATCH_SIZE_MAX 4096u

enum pm_record_type {
    PM_UNDO = 1,  /* `length` original bytes of `target`, padded to 8 */
    PM_ALLOC = 2, /* `length` blocks at `target` were free */
    PM_FREE = 3,  /* `length` blocks at `target` were allocated */
    PM_SWAP =
        4, /* the slot at `target` named old_block; new_block was free; length 8 */
    PM_LINK = 5, /* the next batch lies at `target`, a segment of `length` blocks */
    /* Slot commits, whose logs begin with one of these and hold no other type than them
     * and PM_ALLOC; all PM_CHANGEs come first, and in batch 0. */
    PM_CHANGE = 6, /* as PM_UNDO; the new bytes are known by the hash of them all */
    PM_SLOT = 7,   /* as PM_SWAP */
};

struct pm_record {
    uint32_t type;
    uint32_t length;
    uint64_t target;
};
_Static_assert(sizeof(struct pm_record) == 16, "FORMAT.md: pm_record");

/* What follows the header of a PM_SWAP and a PM_SLOT. */
struct pm_swap {
    uint64_t old_block; /* 0: a hole */
    uint64_t new_block;
};
_Static_assert(sizeof(struct pm_batch) + sizeof(struct pm_record) +
                       sizeof(struct pm_swap) <=
                   PM_LINE,
               "a block swap is logged in one line");

/* Start of the root block: where the program's root object lies. */
struct pm_root {
    uint64_t offset; /* 0: none yet */
    uint64_t size;   /* bytes */
};
_Static_assert(sizeof(struct pm_root) == 16, "FORMAT.md: pm_root");

/*
 * Start of a block that a slab cuts into objects of one size. The used bits follow, in
 * words: bit i set: object i is not free; set, too, past the last object. Then the
 * objects.
 */
struct pm_slab_block {
    uint32_t magic;          /* PM_SLAB_MAGIC */
    uint32_t object_size;    /* bytes, multiple of 16 */
    uint32_t object_count;   /* 2 or more */
    uint32_t objects_offset; /* bytes, from the start of the block */
    uint64_t next;           /* offset of the next block with room; 0: last, or full */
    uint64_t prev;           /* offset of the block before it; 0: first, or full */
    uint64_t used[];
};
_Static_assert(sizeof(struct pm_slab_block) == 32, "FORMAT.md: pm_slab_block");
_Static_assert(offsetof(struct pm_slab_block, next) == 16, "FORMAT.md: pm_slab_block");
_Static_assert(offsetof(struct pm_slab_block, used) == 32, "FORMAT.md: pm_slab_block");

#define PM_SLAB_MAGIC 0x62616c73u /* "slab" */

#endif
