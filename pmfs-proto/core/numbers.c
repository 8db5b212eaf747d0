/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/numbers.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/spin.h"
#include "libminl2r/thread.h"
#include "pmfs-proto/core/fs.h"

#define GROUP_WORDS (NUMBERS_GROUP / 64)
#define HOMES 64u /* a power of two */
#define SEGMENTS 28
#define NONE UINT64_MAX

/*
 * Of 512 numbers, a bit each; free = !taken, and used implies taken. What is atomic is
 * read without the lock, too.
 */
struct group {
    struct spin lock;
    bool is_full;            /* its bit in numbers.full */
    uint32_t empty_blocks;   /* atomic */
    uint32_t empty_reported; /* so many of them are in numbers.empty_blocks */
    /* Remembered, or NULL: the states, and the block of inodes that begins with number
     * block_first. */
    const uint8_t *states;
    const struct pm_inode *block;
    uint64_t block_first;
    uint64_t taken[GROUP_WORDS]; /* atomic */
    uint64_t used[GROUP_WORDS];  /* atomic */
    uint64_t there[GROUP_WORDS]; /* at the first number of a block */
} __attribute__((aligned(128)));

/*
 * The group out of which a thread takes numbers, or several threads where there are
 * more than homes; or NONE.
 */
struct home {
    uint64_t group; /* atomic; changes under search_lock */
} __attribute__((aligned(128)));

/* What changes is apart. NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct numbers {
    uint32_t per_block;
    uint64_t group_count;             /* atomic: below it all are initialized */
    struct group *segments[SEGMENTS]; /* of 1, 2, 4, ... groups, which never move */

    _Alignas(128) pthread_mutex_t search_lock; /* taken last of all */
    uint64_t *full; /* a bit per group: nothing was free when somebody looked */

    _Alignas(128) uint64_t empty_blocks; /* atomic */

    struct home homes[HOMES];
};

/* ---- Groups ---------------------------------------------------------------------- */

static uint64_t load(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void store(uint64_t *word, uint64_t value)
{
    __atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static uint64_t count_groups(const struct numbers *numbers)
{
    return __atomic_load_n(&numbers->group_count, __ATOMIC_ACQUIRE);
}

static uint32_t segment_of(uint64_t index)
{
    return 63 - (uint32_t)__builtin_clzll(index + 1);
}

static struct group *group_at(const struct numbers *numbers, uint64_t index)
{
    uint32_t segment = segment_of(index);

    return &numbers->segments[segment][index + 1 - ((uint64_t)1 << segment)];
}

static struct group *group_of(const struct numbers *numbers, uint64_t ino)
{
    return group_at(numbers, ino / NUMBERS_GROUP);
}

static uint32_t word_of(uint64_t ino)
{
    return ino % NUMBERS_GROUP / 64;
}

static uint64_t bit_of(uint64_t ino)
{
    return (uint64_t)1 << (ino % 64);
}

static uint64_t first_of(const struct numbers *numbers, uint64_t ino)
{
    return ino - ino % numbers->per_block;
}

static bool is_there(const struct numbers *numbers, const struct group *group,
                     uint64_t ino)
{
    uint64_t first = first_of(numbers, ino);

    return group->there[word_of(first)] & bit_of(first);
}

/* Is no number of a block taken? */
static bool is_empty(const struct numbers *numbers, const struct group *group,
                     uint64_t ino)
{
    uint64_t first = first_of(numbers, ino), taken = 0;

    if (numbers->per_block < 64)
        return !(group->taken[word_of(first)] >> first % 64 &
                 (((uint64_t)1 << numbers->per_block) - 1));
    for (uint32_t i = 0; i < numbers->per_block; i += 64)
        taken |= group->taken[word_of(first + i)];
    return !taken;
}

static uint64_t *own_home(struct numbers *numbers)
{
    return &numbers->homes[thread_number() % HOMES].group;
}

/* ---- Each with the group's lock -------------------------------------------------- */

/*
 * All know of it, but for one block of a thread's home: a file that is made and removed
 * over and over, alone in its block, would change a line of all each time.
 */
static void report_empty(struct numbers *numbers, struct group *group, uint32_t kept)
{
    uint32_t now = group->empty_blocks, before = group->empty_reported;

    if ((now > before ? now - before : before - now) <= kept)
        return;
    __atomic_add_fetch(&numbers->empty_blocks, (uint64_t)now - before,
                       __ATOMIC_RELAXED);
    group->empty_reported = now;
}

static void set_empty_blocks(struct numbers *numbers, struct group *group, uint64_t ino,
                             uint32_t count)
{
    if (count == group->empty_blocks)
        return;
    __atomic_store_n(&group->empty_blocks, count, __ATOMIC_RELAXED);
    report_empty(numbers, group, load(own_home(numbers)) == ino / NUMBERS_GROUP);
}

static void set_full(struct numbers *numbers, struct group *group, uint64_t index,
                     bool is_full)
{
    if (group->is_full == is_full)
        return;
    group->is_full = is_full;
    pthread_mutex_lock(&numbers->search_lock);
    if (is_full)
        numbers->full[index / 64] |= bit_of(index);
    else
        numbers->full[index / 64] &= ~bit_of(index);
    pthread_mutex_unlock(&numbers->search_lock);
}

static void mark_taken(struct numbers *numbers, struct group *group, uint64_t ino)
{
    uint64_t *word = &group->taken[word_of(ino)];
    bool was_empty = is_there(numbers, group, ino) && is_empty(numbers, group, ino);

    store(word, *word | bit_of(ino));
    set_empty_blocks(numbers, group, ino, group->empty_blocks - was_empty);
}

static void mark_free(struct numbers *numbers, struct group *group, uint64_t ino)
{
    uint64_t *word = &group->taken[word_of(ino)];

    store(word, *word & ~bit_of(ino));
    set_full(numbers, group, ino / NUMBERS_GROUP, false);
    if (is_there(numbers, group, ino) && is_empty(numbers, group, ino))
        set_empty_blocks(numbers, group, ino, group->empty_blocks + 1);
}

/* The lowest free number of a group, or NONE. */
static uint64_t find_free(const struct group *group, uint64_t index)
{
    for (uint64_t i = 0; i < GROUP_WORDS; i++) {
        if (~group->taken[i])
            return index * NUMBERS_GROUP + i * 64 +
                   (uint64_t)__builtin_ctzll(~group->taken[i]);
    }
    return NONE;
}

static struct inode_place recall(const struct numbers *numbers,
                                 const struct group *group, uint64_t ino)
{
    struct inode_place place = {.ino = ino};

    if (group->block && group->block_first == first_of(numbers, ino)) {
        place.state = group->states + ino % NUMBERS_GROUP;
        place.pm = group->block + ino % numbers->per_block;
    }
    return place;
}

/* ---- Taking ---------------------------------------------------------------------- */

/* With search_lock. */
static bool is_home(const struct numbers *numbers, uint64_t index)
{
    for (uint32_t i = 0; i < HOMES; i++)
        if (load(&numbers->homes[i].group) == index)
            return true;
    return false;
}

/* The lowest group that is not full, or NONE. With search_lock. */
static uint64_t find_group(const struct numbers *numbers, bool may_be_home)
{
    uint64_t count = count_groups(numbers);

    for (uint64_t i = 0; i < count; i += 64) {
        for (uint64_t left = ~numbers->full[i / 64]; left; left &= left - 1) {
            uint64_t index = i + (uint64_t)__builtin_ctzll(left);

            if (index < count && (may_be_home || !is_home(numbers, index)))
                return index;
        }
    }
    return NONE;
}

/* A home in place of one that is full. */
static uint64_t move_home(struct numbers *numbers, uint64_t full)
{
    uint64_t *home = own_home(numbers);

    pthread_mutex_lock(&numbers->search_lock);
    uint64_t index = load(home);
    if (index == full)
        index = find_group(numbers, false);
    if (index == NONE)
        index = find_group(numbers, true);
    store(home, index);
    pthread_mutex_unlock(&numbers->search_lock);
    return index;
}

static bool take_from(struct numbers *numbers, uint64_t index,
                      struct inode_place *place)
{
    struct group *group = group_at(numbers, index);

    spin_lock(&group->lock);
    uint64_t ino = find_free(group, index);

    if (ino != NONE) {
        mark_taken(numbers, group, ino);
        *place = recall(numbers, group, ino);
    } else {
        report_empty(numbers, group, 0);
        set_full(numbers, group, index, true);
    }
    spin_unlock(&group->lock);
    return ino != NONE;
}

bool numbers_take(struct numbers *numbers, struct inode_place *place)
{
    uint64_t index = load(own_home(numbers));

    if (index == NONE)
        index = move_home(numbers, NONE);
    while (index != NONE && !take_from(numbers, index, place))
        index = move_home(numbers, index);
    return index != NONE;
}

/* As long as a number of it is taken, the block stays where it is. */
void numbers_remember(struct numbers *numbers, const struct inode_place *place)
{
    struct group *group = group_of(numbers, place->ino);

    spin_lock(&group->lock);
    group->states = place->state - place->ino % NUMBERS_GROUP;
    group->block = place->pm - place->ino % numbers->per_block;
    group->block_first = first_of(numbers, place->ino);
    spin_unlock(&group->lock);
}

/* ---- Using and freeing ----------------------------------------------------------- */

void numbers_use(struct numbers *numbers, uint64_t ino, bool block_is_new)
{
    struct group *group = group_of(numbers, ino);
    uint64_t first = first_of(numbers, ino);

    spin_lock(&group->lock);
    store(&group->used[word_of(ino)], group->used[word_of(ino)] | bit_of(ino));
    if (block_is_new)
        group->there[word_of(first)] |= bit_of(first);
    spin_unlock(&group->lock);
}

void numbers_unuse(struct numbers *numbers, uint64_t ino)
{
    struct group *group = group_of(numbers, ino);

    spin_lock(&group->lock);
    store(&group->used[word_of(ino)], group->used[word_of(ino)] & ~bit_of(ino));
    spin_unlock(&group->lock);
}

void numbers_free(struct numbers *numbers, uint64_t ino)
{
    struct group *group = group_of(numbers, ino);

    spin_lock(&group->lock);
    mark_free(numbers, group, ino);
    spin_unlock(&group->lock);
}

bool numbers_is_used(const struct numbers *numbers, uint64_t ino)
{
    return ino / NUMBERS_GROUP < count_groups(numbers) &&
           load(&group_of(numbers, ino)->used[word_of(ino)]) & bit_of(ino);
}

/* ---- Counting -------------------------------------------------------------------- */

static uint64_t count_bits(const uint64_t *words)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < GROUP_WORDS; i++)
        count += (uint64_t)__builtin_popcountll(load(&words[i]));
    return count;
}

uint64_t numbers_count_used(const struct numbers *numbers)
{
    uint64_t groups = count_groups(numbers), count = 0;

    for (uint64_t i = 0; i < groups; i++)
        count += count_bits(group_at(numbers, i)->used);
    return count;
}

uint64_t numbers_count_free(const struct numbers *numbers)
{
    uint64_t groups = count_groups(numbers), count = 0;

    for (uint64_t i = 0; i < groups; i++)
        count += NUMBERS_GROUP - count_bits(group_at(numbers, i)->taken);
    return count;
}

uint64_t numbers_empty_blocks(const struct numbers *numbers)
{
    return load(&numbers->empty_blocks);
}

/* ---- Blocks ---------------------------------------------------------------------- */

/*
 * The highest empty block of a group below `end`, by its first number; 0: none. With
 * the group's lock.
 */
static uint64_t find_empty(const struct numbers *numbers, const struct group *group,
                           uint64_t index, uint64_t end)
{
    uint64_t first = (index + 1) * NUMBERS_GROUP;

    if (first > end)
        first = end;
    while (first > index * NUMBERS_GROUP) {
        first -= numbers->per_block;
        if (is_there(numbers, group, first) && is_empty(numbers, group, first))
            return first;
    }
    return 0;
}

static uint64_t take_block_from(struct numbers *numbers, uint64_t index, uint64_t end)
{
    struct group *group = group_at(numbers, index);

    if (__atomic_load_n(&group->empty_blocks, __ATOMIC_RELAXED) == 0)
        return 0;
    spin_lock(&group->lock);
    uint64_t first = find_empty(numbers, group, index, end);

    for (uint64_t i = first; first && i < first + numbers->per_block; i++)
        mark_taken(numbers, group, i);
    if (first && group->block_first == first)
        group->block = NULL;
    spin_unlock(&group->lock);
    return first;
}

bool numbers_take_block(struct numbers *numbers, uint64_t *end)
{
    uint64_t below = numbers_end(numbers), first = 0;

    if (below > *end)
        below = *end;
    for (uint64_t i = (below + NUMBERS_GROUP - 1) / NUMBERS_GROUP; i > 0 && !first; i--)
        first = take_block_from(numbers, i - 1, below);
    *end = first;
    return first != 0;
}

void numbers_free_block(struct numbers *numbers, uint64_t first, bool is_there)
{
    struct group *group = group_of(numbers, first);

    spin_lock(&group->lock);
    if (!is_there)
        group->there[word_of(first)] &= ~bit_of(first);
    for (uint64_t i = first; i < first + numbers->per_block; i++)
        mark_free(numbers, group, i);
    spin_unlock(&group->lock);
}

/* ---- Life ------------------------------------------------------------------------ */

struct numbers *numbers_create(uint32_t per_block)
{
    struct numbers *numbers = aligned_alloc(_Alignof(struct numbers), sizeof(*numbers));

    if (!numbers)
        return NULL;
    *numbers = (struct numbers){.per_block = per_block};
    fs_short_lock_init(&numbers->search_lock);
    for (uint32_t i = 0; i < HOMES; i++)
        numbers->homes[i].group = NONE;
    return numbers;
}

void numbers_destroy(struct numbers *numbers)
{
    if (!numbers)
        return;
    pthread_mutex_destroy(&numbers->search_lock);
    for (uint32_t i = 0; i < SEGMENTS; i++)
        free(numbers->segments[i]);
    free(numbers->full);
    free(numbers);
}

/* With search_lock. */
static int reserve_full(struct numbers *numbers, uint64_t groups)
{
    uint64_t *full = realloc(numbers->full, (groups + 63) / 64 * sizeof(*full));

    if (!full)
        return -ENOMEM;
    numbers->full = full;
    return 0;
}

int numbers_reserve(struct numbers *numbers, uint64_t end)
{
    uint64_t groups = end / NUMBERS_GROUP;

    pthread_mutex_lock(&numbers->search_lock);
    int rc = reserve_full(numbers, groups);
    pthread_mutex_unlock(&numbers->search_lock);
    for (uint32_t i = 0; rc == 0 && i <= segment_of(groups - 1); i++) {
        if (numbers->segments[i])
            continue;
        numbers->segments[i] =
            aligned_alloc(_Alignof(struct group), sizeof(struct group) << i);
        rc = numbers->segments[i] ? 0 : -ENOMEM;
    }
    return rc;
}

void numbers_add(struct numbers *numbers, uint64_t end, uint64_t taken)
{
    uint64_t groups = end / NUMBERS_GROUP;

    pthread_mutex_lock(&numbers->search_lock);
    for (uint64_t i = count_groups(numbers); i < groups; i++) {
        *group_at(numbers, i) = (struct group){.is_full = false};
        if (i % 64 == 0)
            numbers->full[i / 64] = 0;
    }
    if (taken)
        group_of(numbers, taken)->taken[word_of(taken)] |= bit_of(taken);
    __atomic_store_n(&numbers->group_count, groups, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&numbers->search_lock);
}

uint64_t numbers_end(const struct numbers *numbers)
{
    return count_groups(numbers) * NUMBERS_GROUP;
}

void numbers_load(struct numbers *numbers, uint64_t first, uint64_t used)
{
    struct group *group = group_of(numbers, first);

    if (first == 0)
        used &= ~(uint64_t)1; /* number 0 is none */
    group->used[word_of(first)] = used;
    group->taken[word_of(first)] = first == 0 ? used | 1 : used;
}

bool numbers_is_block_empty(const struct numbers *numbers, uint64_t first)
{
    return is_empty(numbers, group_of(numbers, first), first);
}

void numbers_load_block(struct numbers *numbers, uint64_t first)
{
    struct group *group = group_of(numbers, first);

    group->there[word_of(first)] |= bit_of(first);
    group->empty_blocks += is_empty(numbers, group, first);
}

void numbers_loaded(struct numbers *numbers)
{
    uint64_t groups = count_groups(numbers);

    for (uint64_t i = 0; i < groups; i++) {
        struct group *group = group_at(numbers, i);

        report_empty(numbers, group, 0);
        set_full(numbers, group, i, find_free(group, i) == NONE);
    }
}
