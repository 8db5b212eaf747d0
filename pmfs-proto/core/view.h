/* SPDX-License-Identifier: BSD-3-Clause */
/* view.h - a pool as the next open will make it, without writing to it. */
#ifndef PMFS_VIEW_H
#define PMFS_VIEW_H

#include "include/minl2r.h"

/*
 * Maps the pool `path` privately and lets recovery run in that: the file stays as it
 * is, and only pages that recovery writes are copied (all of them, of a device that
 * has no private mappings). minl2r_pool_close() ends it.
 */
int view_open(const char *path, const char *layout, struct minl2r_pool **pool);

/* As minl2r_pool_check(), of a pool that is open; only the findings say what is. */
void view_check(struct minl2r_pool *pool, minl2r_check_fn *found, void *arg);

/* Is the block at `offset` allocated? */
bool view_is_allocated(const struct minl2r_pool *pool, uint64_t offset);

/*
 * Calls `visit` for each allocated block that programs can have: not the library's own,
 * which are bitmaps and the root block.
 */
void view_visit_allocated(const struct minl2r_pool *pool,
                          void (*visit)(void *arg, uint64_t offset), void *arg);

/* Blocks that are not the library's own are numbered below this, in the order of
 * offsets. */
uint64_t view_block_count(const struct minl2r_pool *pool);
uint64_t view_block_index(const struct minl2r_pool *pool, uint64_t offset);

/* Where the library keeps the root object. */
uint64_t view_root_offset(const struct minl2r_pool *pool);

/* Marks the block at `offset` as allocated: one word. No transaction may be running. */
int view_mark_allocated(struct minl2r_pool *pool, uint64_t offset);

/*
 * How many blocks that are the library's own, the superblock's, or past the end, are
 * marked free; marks them as allocated, a word at a time.
 */
uint64_t view_count_unmarked(const struct minl2r_pool *pool);
int view_mark_own(struct minl2r_pool *pool);

#endif
