/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * numbers.h - which inode numbers are free, in DRAM.
 *
 * They come in groups of 512, each with a lock of its own. A thread takes numbers out
 * of a group that is no other thread's, as long as there is one, and goes on to the
 * next when that is full. So threads that make and remove inodes share no line: not of
 * what is kept here, since the lock belongs to the thread (spin.h); nor on media, since
 * a line has the states of 64 numbers, and an inode has lines of its own.
 */
#ifndef PMFS_NUMBERS_H
#define PMFS_NUMBERS_H

#include <stdbool.h>
#include <stdint.h>

#include "pmfs-proto/core/format.h"

/* A block of states has as many, at least; a block of inodes at most half as many. */
#define NUMBERS_GROUP 512u

struct numbers;

/* Where an inode lies. */
struct inode_place {
    uint64_t ino;
    const uint8_t *state; /* on media */
    const struct pm_inode *pm;
};

/* None yet. `per_block`: inodes in a block. NULL without memory. */
struct numbers *numbers_create(uint32_t per_block);
void numbers_destroy(struct numbers *numbers);

/* Memory for numbers below `end`. -ENOMEM. One thread at a time. */
int numbers_reserve(struct numbers *numbers, uint64_t end);

/*
 * Now they run below `end`. The new ones are free, but for `taken`, if that is not 0.
 */
void numbers_add(struct numbers *numbers, uint64_t end, uint64_t taken);
uint64_t numbers_end(const struct numbers *numbers);

/*
 * For attaching, before there are threads: which of 64 numbers are used; which blocks
 * are there; then, once, that this is all.
 */
void numbers_load(struct numbers *numbers, uint64_t first, uint64_t used);
bool numbers_is_block_empty(const struct numbers *numbers, uint64_t first);
void numbers_load_block(struct numbers *numbers, uint64_t first);
void numbers_loaded(struct numbers *numbers);

/*
 * Takes a free number, the lowest of this thread's group. False: none is free. The rest
 * of `place` is filled in, too, if it is remembered, else NULL.
 */
bool numbers_take(struct numbers *numbers, struct inode_place *place);

/* Remembers the place of a number that the caller has taken. */
void numbers_remember(struct numbers *numbers, const struct inode_place *place);

/* A taken number is used now; its block is there, if it was not. */
void numbers_use(struct numbers *numbers, uint64_t ino, bool block_is_new);
void numbers_unuse(struct numbers *numbers, uint64_t ino);
void numbers_free(struct numbers *numbers, uint64_t ino);
bool numbers_is_used(const struct numbers *numbers, uint64_t ino);

/* Counted on demand; what threads do meanwhile may be in or not. */
uint64_t numbers_count_used(const struct numbers *numbers);
uint64_t numbers_count_free(const struct numbers *numbers);

/* Blocks that are there, and no number of them is taken; less or more by one for each
 * thread. */
uint64_t numbers_empty_blocks(const struct numbers *numbers);

/* Takes all numbers of the highest of them below *end; that is its first then. */
bool numbers_take_block(struct numbers *numbers, uint64_t *end);
void numbers_free_block(struct numbers *numbers, uint64_t first, bool is_there);

#endif
