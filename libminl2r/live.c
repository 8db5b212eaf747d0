/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/live.h"

#include <stdlib.h>

#include "libminl2r/alloc.h"
#include "libminl2r/watch.h"

/* What lies around all that a lane changed in so many commits, in such steps. */
#define AROUND_LASTS 4096
#define AROUND_STEP 256 /* bytes, a power of two */
#define AROUND_NEAR 16384 /* bytes; slots that are no farther apart are joined */

int settling_init(struct settling *settling, const struct minl2r_pool *pool)
{
    settling->generations = calloc(pool->geo.lane_count, sizeof(uint64_t));
    settling->any = false;
    return settling->generations ? 0 : -1;
}

void settling_finish(struct settling *settling)
{
    free(settling->generations);
}

/* Lanes enter this list at its head, once, and stay. */
static struct lane *first_lane(const struct minl2r_pool *pool)
{
    return __atomic_load_n(&pool->live_lanes, __ATOMIC_ACQUIRE);
}

/*
 * The lane's holder changes what it owns after F1 of its next slot commit. Who sees a part of
 * that already need not see the rest: the generation before is not live then, whatever
 * lane->live says still.
 */
static bool overlaps(const struct interval *owned, struct interval range)
{
    return __atomic_load_n(&owned->low, __ATOMIC_RELAXED) < range.high &&
           range.low < __atomic_load_n(&owned->high, __ATOMIC_RELAXED);
}

static bool overlaps_any(const struct owned *owned, struct interval range)
{
    uint32_t count = __atomic_load_n(&owned->count, __ATOMIC_RELAXED);

    for (uint32_t i = 0; i < count; i++)
        if (overlaps(&owned->ranges[i], range))
            return true;
    return false;
}

/*
 * What a busy lane owns changes with each commit, and looking at it takes its line away
 * from the lane's processor; what is outside of all that it changed lately needs no look.
 */
static bool overlaps_bytes(const struct lane *lane, struct interval range)
{
    return overlaps_any(&lane->bytes_around, range) &&
           overlaps_any(&lane->bytes, range);
}

static bool overlaps_slots(const struct lane *lane, struct interval range)
{
    return overlaps_any(&lane->slots_around, range) && overlaps(&lane->slots, range);
}

/* Flushes it whoever raised it: that one's fence may not have come yet. */
static void raise_settled(const struct minl2r_pool *pool, const struct lane *lane,
                          uint64_t generation, struct pm_phase *phase)
{
    const uint64_t *settled = &pool_lane(pool, lane->index)->settled;

    phase->last_line = 0; /* others store to the line, too */
    pm_max64(phase, settled, generation);
    pm_flush(phase, settled, sizeof(*settled));
}

static void settle(struct minl2r_pool *pool, const struct lane *lane,
                   struct pm_phase *phase, struct settling *settling)
{
    uint64_t generation = live_generation_of(lane);

    if (generation == 0)
        return;
    watch_check(pool, lane, generation);
    settling->generations[lane->index] = generation;
    settling->any = true;
    raise_settled(pool, lane, generation, phase);
}

void live_settle_all(struct minl2r_pool *pool, const struct lane *own,
                     struct pm_phase *phase, struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (lane != own)
            settle(pool, lane, phase, settling);
}

void live_settle_bytes(struct minl2r_pool *pool, const struct lane *own,
                       struct interval range, struct pm_phase *phase,
                       struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (lane != own && overlaps_bytes(lane, range))
            settle(pool, lane, phase, settling);
}

void live_settle_word(struct minl2r_pool *pool, const struct lane *own,
                      struct interval range, struct pm_phase *phase,
                      struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (lane != own && (overlaps_bytes(lane, range) || overlaps_slots(lane, range)))
            settle(pool, lane, phase, settling);
}

/* Unless its holder has gone on: then its line stays with it. */
static void forget(struct lane *lane, uint64_t generation)
{
    if (live_generation_of(lane) != generation)
        return;
    __atomic_compare_exchange_n(&lane->live, &generation, 0, false, __ATOMIC_RELEASE,
                                __ATOMIC_RELAXED);
}

void live_forget_settled(const struct minl2r_pool *pool, struct settling *settling)
{
    settling->any = false;
    for (struct lane *lane = first_lane(pool); lane; lane = lane->next_live) {
        if (settling->generations[lane->index] == 0)
            continue;
        forget(lane, settling->generations[lane->index]);
        settling->generations[lane->index] = 0;
    }
}

int live_settle_word_now(struct minl2r_pool *pool, uint64_t offset,
                         struct pm_phase *phase)
{
    struct interval range = {offset, offset + sizeof(uint64_t)};

    for (struct lane *lane = first_lane(pool); lane; lane = lane->next_live) {
        uint64_t generation = live_generation_of(lane);

        if (generation == 0 ||
            !(overlaps_bytes(lane, range) || overlaps_slots(lane, range)))
            continue;
        watch_check(pool, lane, generation);
        raise_settled(pool, lane, generation, phase);
        if (pm_fence(phase) < 0) /* I3: settled, then the word */
            return pool_poison(pool);
        forget(lane, generation);
    }
    return 0;
}

void live_settle_now(struct minl2r_pool *pool, struct pm_phase *phase)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live) {
        if (lane->live == 0)
            continue;
        watch_check(pool, lane, lane->live);
        raise_settled(pool, lane, lane->live, phase);
    }
    pm_fence(phase); /* I4: settled, then another process */
}

/* Once it has settled all lanes there is nothing to wait for, unless others commit. */
int live_end_quarantine(struct minl2r_pool *pool, struct pm_phase *phase,
                        struct settling *settling)
{
    for (uint32_t i = 0; i < alloc_quarantines(pool); i++) {
        uint64_t mark = alloc_quarantine_mark(pool, i);

        if (alloc_quarantine_count(pool, i) == 0)
            continue;
        live_settle_all(pool, NULL, phase, settling);
        if (pm_fence(phase) < 0) /* I5: settled, then another use of the blocks */
            return pool_poison(pool);
        live_forget(pool, settling);
        alloc_end_quarantine(pool, i, mark);
    }
    return 0;
}

static void store_interval(struct interval *to, struct interval value)
{
    if (to->low == value.low && to->high == value.high)
        return;
    __atomic_store_n(&to->low, value.low, __ATOMIC_RELAXED);
    __atomic_store_n(&to->high, value.high, __ATOMIC_RELAXED);
}

/* In whole steps, so that what grows by a slot at a time seldom changes it. */
static struct interval round_out(struct interval value)
{
    uint64_t mask = AROUND_STEP - 1;

    return (struct interval){value.low & ~mask, (value.high + mask) & ~mask};
}

static void store_around(struct interval *to, struct interval value, bool begins_again)
{
    struct interval rounded = round_out(value);

    store_interval(to, begins_again ? rounded : interval_join(*to, rounded));
}

/* By how much `around` grows if it takes `range` in. */
static uint64_t growth(struct interval around, struct interval range)
{
    struct interval joined = interval_join(around, range);

    return (joined.high - joined.low) - (around.high - around.low);
}

/* Slots lie in few places, some of them far from each other: an inode, nodes of a tree.
 * What is near is joined; where there are too many, what is nearest. */
static void take_slots_in(struct owned *around, struct interval slots)
{
    struct interval rounded = round_out(slots), *best = &around->ranges[0];

    if (slots.low == slots.high)
        return;
    for (uint32_t i = 1; i < around->count; i++)
        if (growth(around->ranges[i], rounded) < growth(*best, rounded))
            best = &around->ranges[i];
    if (around->count == OWNED_MAX ||
        (around->count > 0 && growth(*best, rounded) <= AROUND_NEAR)) {
        store_interval(best, interval_join(*best, rounded));
        return;
    }
    store_interval(&around->ranges[around->count], rounded);
    __atomic_store_n(&around->count, around->count + 1, __ATOMIC_RELAXED);
}

/* Widened as slots and bytes need it, and narrow again every so often. */
static void widen_around(struct lane *lane, uint64_t generation, struct interval slots,
                         const struct owned *bytes)
{
    bool begins_again = generation % AROUND_LASTS == 0;
    struct owned *around = &lane->bytes_around;

    if (begins_again)
        __atomic_store_n(&lane->slots_around.count, 0, __ATOMIC_RELAXED);
    take_slots_in(&lane->slots_around, slots);
    for (uint32_t i = 0; i < bytes->count; i++)
        store_around(&around->ranges[i], bytes->ranges[i],
                     begins_again || i >= around->count);
    if (begins_again || around->count < bytes->count)
        __atomic_store_n(&around->count, bytes->count, __ATOMIC_RELAXED);
}

static void store_owned(struct owned *to, const struct owned *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        store_interval(&to->ranges[i], from->ranges[i]);
    if (to->count != from->count)
        __atomic_store_n(&to->count, from->count, __ATOMIC_RELAXED);
}

static void link_lane(struct minl2r_pool *pool, struct lane *lane)
{
    lane->has_been_live = true;
    lane->next_live = first_lane(pool);
    while (!__atomic_compare_exchange_n(&pool->live_lanes, &lane->next_live, lane,
                                        false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        ;
}

void live_own(struct lane *lane, uint64_t generation, struct interval slots,
              const struct owned *bytes)
{
    widen_around(lane, generation, slots, bytes);
    store_interval(&lane->slots, slots);
    store_owned(&lane->bytes, bytes);
}

void live_enter(struct minl2r_pool *pool, struct lane *lane, uint64_t generation)
{
    __atomic_store_n(&lane->live, generation, __ATOMIC_RELEASE);
    if (!lane->has_been_live)
        link_lane(pool, lane);
}
