/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/live.h"

#include <stdlib.h>

#include "libminl2r/alloc.h"
#include "libminl2r/spin.h"
#include "libminl2r/watch.h"

#define ROUND 4096 /* generations; what a lane listed in the last one is forgotten */
#define LOOK_MAX 16384u /* bytes; with more, looking at the lane itself is cheaper */

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

/* One that is asleep owns nothing. */
static bool is_other(const struct lane *lane, const struct lane *own)
{
    return lane != own && live_wakefulness(lane) != LANE_ASLEEP;
}

/* Lanes enter this list at its head, once, and stay. */
static struct lane *first_lane(const struct minl2r_pool *pool)
{
    return __atomic_load_n(&pool->live_lanes, __ATOMIC_ACQUIRE);
}

/*
 * The lane's holder changes what it owns after F1 of its next slot commit. Who sees a
 * part of that already need not see the rest: the generation before is not live then,
 * whatever lane->live says still.
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

static bool has_tag(const uint8_t *entries, uint8_t tag, struct interval range)
{
    uint64_t end = (range.high + LISTED_STEP - 1) / LISTED_STEP;

    for (uint64_t i = range.low / LISTED_STEP; i < end; i++)
        if (__atomic_load_n(&entries[i % LISTED_COUNT], __ATOMIC_RELAXED) == tag)
            return true;
    return false;
}

/*
 * What a busy lane owns changes with each commit, and looking at it takes its line away
 * from the lane's processor. What it has not listed needs no look.
 */
static bool may_own(const struct lane *lane, enum listed_kind kind,
                    struct interval range)
{
    uint8_t tag = __atomic_load_n(&lane->listed_tag, __ATOMIC_ACQUIRE);

    return tag == 0 || range.high - range.low > LOOK_MAX ||
           has_tag(lane->listed->entries[kind], tag, range);
}

static bool owns_bytes(const struct lane *lane, struct interval range)
{
    return may_own(lane, LISTED_BYTES, range) && live_generation_of(lane) != 0 &&
           overlaps_any(&lane->bytes, range);
}

static bool owns_slots(const struct lane *lane, struct interval range)
{
    return may_own(lane, LISTED_SLOTS, range) && live_generation_of(lane) != 0 &&
           overlaps(&lane->slots, range);
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

    if (generation == 0 || generation == settling->generations[lane->index])
        return; /* nothing, or raised already, for the same fence */
    watch_check(pool, lane, generation);
    settling->generations[lane->index] = generation;
    settling->any = true;
    raise_settled(pool, lane, generation, phase);
}

void live_settle_all(struct minl2r_pool *pool, const struct lane *own,
                     struct pm_phase *phase, struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (is_other(lane, own))
            settle(pool, lane, phase, settling);
}

void live_settle_bytes(struct minl2r_pool *pool, const struct lane *own,
                       struct interval range, struct pm_phase *phase,
                       struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (is_other(lane, own) && owns_bytes(lane, range))
            settle(pool, lane, phase, settling);
}

void live_settle_word(struct minl2r_pool *pool, const struct lane *own,
                      struct interval range, struct pm_phase *phase,
                      struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (is_other(lane, own) && (owns_bytes(lane, range) || owns_slots(lane, range)))
            settle(pool, lane, phase, settling);
}

void live_settle_blocks(struct minl2r_pool *pool, const struct lane *own,
                        struct interval range, struct pm_phase *phase,
                        struct settling *settling)
{
    for (const struct lane *lane = first_lane(pool); lane; lane = lane->next_live)
        if (is_other(lane, own) && overlaps(&lane->blocks, range))
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
        if (!is_other(lane, NULL) ||
            (!owns_bytes(lane, range) && !owns_slots(lane, range)))
            continue;
        uint64_t generation = live_generation_of(lane);

        if (generation == 0)
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

static void store_owned(struct owned *to, const struct owned *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        store_interval(&to->ranges[i], from->ranges[i]);
    if (to->count != from->count)
        __atomic_store_n(&to->count, from->count, __ATOMIC_RELAXED);
}

void live_list(struct lane *lane, enum listed_kind kind, struct interval range)
{
    uint8_t *entries = lane->listed->entries[kind];

    for (uint64_t i = range.low / LISTED_STEP; i <= (range.high - 1) / LISTED_STEP; i++)
        if (entries[i % LISTED_COUNT] != lane->listed_tag)
            __atomic_store_n(&entries[i % LISTED_COUNT], lane->listed_tag,
                             __ATOMIC_RELAXED);
}

/* An old entry that has the tag of this round by chance asks for a look too many. */
static uint8_t tag_of(uint64_t generation)
{
    return (uint8_t)(1 + generation / ROUND % UINT8_MAX);
}

bool live_lists(const struct minl2r_pool *pool, struct lane *lane, uint64_t generation)
{
    uint8_t tag = 0;

    if (live_others_possible(pool, lane)) {
        if (!lane->listed)
            lane->listed = calloc(1, sizeof(*lane->listed));
        if (lane->listed)
            tag = tag_of(generation);
    }
    if (tag != lane->listed_tag)
        __atomic_store_n(&lane->listed_tag, tag, __ATOMIC_RELEASE);
    return tag != 0;
}

void live_own(struct lane *lane, struct interval slots, const struct owned *bytes,
              struct interval blocks)
{
    store_interval(&lane->slots, slots);
    store_owned(&lane->bytes, bytes);
    store_interval(&lane->blocks, blocks);
}

/* ---- Sleep ----------------------------------------------------------------------- */

static bool change_wakefulness(struct lane *lane, uint8_t from, uint8_t to)
{
    return __atomic_compare_exchange_n(&lane->wakefulness, &from, to, false,
                                       __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static void try_to_put_to_sleep(struct minl2r_pool *pool, struct lane *lane)
{
    if (!change_wakefulness(lane, LANE_AWAKE, LANE_DROWSY))
        return;
    bool sleeps = spin_barrier() && live_generation_of(lane) == 0;

    if (change_wakefulness(lane, LANE_DROWSY, sleeps ? LANE_ASLEEP : LANE_AWAKE) &&
        sleeps)
        __atomic_sub_fetch(&pool->awake_lanes, 1, __ATOMIC_SEQ_CST);
}

/*
 * One thread at a time: a second one could mark a lane as drowsy again that has woken
 * since the first one saw that it was not live, which would take the mark for its own.
 */
static void put_to_sleep(struct minl2r_pool *pool, struct lane *lane)
{
    if (__atomic_exchange_n(&pool->puts_to_sleep, true, __ATOMIC_ACQUIRE))
        return;
    try_to_put_to_sleep(pool, lane);
    __atomic_store_n(&pool->puts_to_sleep, false, __ATOMIC_RELEASE);
}

/*
 * Has it committed since somebody looked? Of two who look at once one may see too
 * little: then a busy lane is settled, or sleeps until its next commit.
 */
static bool has_stirred(struct lane *lane)
{
    uint64_t generation = __atomic_load_n(&lane->generation, __ATOMIC_RELAXED);

    if (__atomic_load_n(&lane->last_seen, __ATOMIC_RELAXED) == generation)
        return false;
    __atomic_store_n(&lane->last_seen, generation, __ATOMIC_RELAXED);
    return true;
}

void live_look_for_idle(struct minl2r_pool *pool, const struct lane *own,
                        struct pm_phase *phase, struct settling *settling)
{
    for (struct lane *lane = first_lane(pool); lane; lane = lane->next_live) {
        if (!is_other(lane, own) || has_stirred(lane))
            continue;
        if (live_generation_of(lane) != 0)
            settle(pool, lane, phase, settling);
        else
            put_to_sleep(pool, lane);
    }
}

static void link_lane(struct minl2r_pool *pool, struct lane *lane)
{
    lane->is_linked = true;
    lane->next_live = first_lane(pool);
    while (!__atomic_compare_exchange_n(&pool->live_lanes, &lane->next_live, lane,
                                        false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        ;
}

void live_wake(struct minl2r_pool *pool, struct lane *lane)
{
    if (!lane->is_linked)
        link_lane(pool, lane);
    /* Counted first: it may fall asleep again, and be counted off, at once. */
    __atomic_add_fetch(&pool->awake_lanes, 1, __ATOMIC_SEQ_CST);
    if (__atomic_exchange_n(&lane->wakefulness, LANE_AWAKE, __ATOMIC_SEQ_CST) !=
        LANE_ASLEEP)
        __atomic_sub_fetch(&pool->awake_lanes, 1, __ATOMIC_SEQ_CST);
}

void live_enter(struct minl2r_pool *pool, struct lane *lane, uint64_t generation)
{
    __atomic_store_n(&lane->live, generation, __ATOMIC_RELEASE);
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* the rest is spin_barrier()'s */
    if (live_wakefulness(lane) != LANE_AWAKE)
        live_wake(pool, lane);
}
