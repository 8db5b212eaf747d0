/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/alloc.h"
#include "libminl2r/error.h"
#include "libminl2r/log.h"

typedef unsigned long long ull;

/*
 * What the live logs say: one bit per block that a transaction was allocating or
 * freeing, and the root as it was before. A block is in at most one of all live logs,
 * once: a reserved block belongs to one transaction, and a freed one is not reused
 * before it is settled (I5). Not so those of slot commits, which may be over since
 * long.
 */
struct check {
    struct minl2r_pool *pool;
    minl2r_check_fn *found;
    void *arg;
    uint64_t problems;

    struct log_live *live; /* [lane_count] */
    uint64_t *allocating;
    uint64_t *freeing;
    uint64_t *finishing; /* that slot commits allocate, if they are finished */
    struct pm_root root;
    uint8_t *scratch;

    uint32_t lane; /* whose records are visited */
    bool lane_clean;
};

__attribute__((format(printf, 2, 3))) static void report(struct check *check,
                                                         const char *format, ...)
{
    char what[256];
    va_list args;

    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    check->problems++;
    check->lane_clean = false;
    if (check->found)
        check->found(check->arg, what);
}

/* ---- Bitmaps --------------------------------------------------------------------- */

/* One finding per zone: a damaged bitmap is damaged all over. */
static void check_bitmap(struct check *check, uint64_t zone)
{
    const struct minl2r_pool *pool = check->pool;
    uint64_t first = zone << pool->geo.zone_shift;
    uint64_t end = (zone + 1) << pool->geo.zone_shift;

    for (uint64_t index = first; index < end; index += 64) {
        uint64_t bits = pm_load64(pool_bitmap_word(pool, index));
        uint64_t missing = bitmap_fixed_bits(&pool->geo, index) & ~bits;

        if (missing == 0)
            continue;
        uint64_t block = index + (uint64_t)__builtin_ctzll(missing);

        report(
            check,
            "bitmap of zone %llu at offset %llu: block %llu is marked free, but is %s",
            (ull)zone, (ull)block_offset(&pool->geo, first), (ull)block,
            block >= pool->geo.block_count ? "past the end"
            : block == first               ? "this bitmap"
                                           : "the root block");
        return;
    }
}

/* ---- Logs: what is wrong in each ------------------------------------------------- */

static void check_word_hint(struct check *check, uint32_t lane)
{
    uint64_t word = pm_load64(&pool_lane(check->pool, lane)->word);

    if (word != 0 && !is_zone_word(&check->pool->geo, word))
        report(check,
               "lane %u: word is %llu, which is no word of a block or bitmap (I7)",
               lane, (ull)word);
}

static void check_log(struct check *check, uint32_t lane)
{
    check_word_hint(check, lane);
    if (log_validate(check->pool, lane, &check->live[lane]) == 0)
        return;
    report(check, "%s", minl2r_errormsg());
    check->live[lane].last = 0; /* nothing of it is used */
}

static void check_targets(struct check *check, uint32_t lane)
{
    if (log_validate_targets(check->pool, lane, &check->live[lane], check->scratch) ==
        0)
        return;
    report(check, "%s", minl2r_errormsg());
    check->live[lane].last = 0;
}

/* ---- Logs: what contradicts ------------------------------------------------------ */

static bool test_bit(const uint64_t *bits, uint64_t index)
{
    return bits[index / 64] >> index % 64 & 1;
}

/* Ends at the first contradiction, so that hostile logs take no longer than honest
 * ones. */
static void mark_blocks(struct check *check, uint64_t *bits, struct block_run run)
{
    uint64_t first = block_index(&check->pool->geo, run.offset);

    for (uint64_t i = first; i < first + run.count; i++) {
        if (test_bit(check->allocating, i) || test_bit(check->freeing, i)) {
            report(
                check,
                "log of lane %u: block %llu at offset %llu is allocated or freed twice "
                "(I5)",
                check->lane, (ull)i, (ull)block_offset(&check->pool->geo, i));
            return;
        }
        bits[i / 64] |= (uint64_t)1 << i % 64;
    }
}

static void set_bits(const struct check *check, uint64_t *bits, struct block_run run)
{
    uint64_t first = block_index(&check->pool->geo, run.offset);

    for (uint64_t i = first; i < first + run.count; i++)
        bits[i / 64] |= (uint64_t)1 << i % 64;
}

/* Undoes bytes where they belong to the root. */
static void undo_root(struct check *check, uint64_t target, const void *bytes,
                      size_t size)
{
    uint64_t root = pool_offset(check->pool, pool_root_block(check->pool));
    uint64_t start = target > root ? target : root;
    uint64_t end = target + size;

    if (end > root + sizeof(check->root))
        end = root + sizeof(check->root);
    if (start < end)
        memcpy((uint8_t *)&check->root + (start - root),
               (const uint8_t *)bytes + (start - target), end - start);
}

static void check_swap(struct check *check, uint64_t slot, const struct pm_swap *swap)
{
    uint64_t value = pm_load64(pool_at(check->pool, slot));

    if (value != swap->old_block && value != swap->new_block)
        report(check,
               "log of lane %u: the slot at offset %llu is %llu, neither the old block "
               "%llu "
               "nor the new one %llu (I1)",
               check->lane, (ull)slot, (ull)value, (ull)swap->old_block,
               (ull)swap->new_block);
    if (swap->old_block != 0)
        mark_blocks(check, check->freeing, (struct block_run){swap->old_block, 1});
    mark_blocks(check, check->allocating, (struct block_run){swap->new_block, 1});
    undo_root(check, slot, &swap->old_block, sizeof(swap->old_block));
}

static void check_record(void *arg, const struct pm_record *record, const void *payload)
{
    struct check *check = arg;
    struct block_run run = {record->target, record->length};

    if (!check->lane_clean)
        return;
    switch (record->type) {
    case PM_ALLOC:
        if (check->live[check->lane].of_slot_commit)
            set_bits(check, check->finishing, run);
        else
            mark_blocks(check, check->allocating, run);
        break;
    case PM_FREE:
        mark_blocks(check, check->freeing, run);
        break;
    case PM_SWAP:
        check_swap(check, record->target, payload);
        break;
    case PM_UNDO:
        undo_root(check, record->target, payload, record->length);
        break;
    default:
        break;
    }
}

static void check_records(struct check *check, uint32_t lane)
{
    check->lane = lane;
    check->lane_clean = true;
    for (uint64_t offset = check->live[lane].last; offset != 0 && check->lane_clean;)
        offset =
            log_visit_batch(check->pool, offset, check->scratch, check_record, check);
}

/* ---- Root ------------------------------------------------------------------------ */

/* Is the block allocated once the live logs are undone, or finished? */
static bool will_be_allocated(const struct check *check, uint64_t index)
{
    uint64_t bits = pm_load64(pool_bitmap_word(check->pool, index));

    return test_bit(check->freeing, index) || test_bit(check->finishing, index) ||
           (bits >> index % 64 & 1 && !test_bit(check->allocating, index));
}

static void check_root(struct check *check)
{
    const struct geometry *geo = &check->pool->geo;
    struct pm_root root = check->root;

    if (root.offset == 0)
        return;
    uint64_t count =
        (root.size >> geo->block_shift) + (root.size % geo->block_size != 0);

    if (!is_blocks(geo, root.offset, count)) {
        report(check, "root: %llu bytes at offset %llu do not lie in the data area",
               (ull)root.size, (ull)root.offset);
        return;
    }
    uint64_t first = block_index(geo, root.offset);

    for (uint64_t i = first; i < first + count; i++)
        if (!will_be_allocated(check, i)) {
            report(check, "root: block %llu at offset %llu of it is not allocated",
                   (ull)i, (ull)block_offset(geo, i));
            return;
        }
}

/* ---- All ------------------------------------------------------------------------- */

static void check_all(struct check *check)
{
    const struct geometry *geo = &check->pool->geo;

    for (uint64_t zone = 0; zone < geo->zone_count; zone++)
        check_bitmap(check, zone);
    for (uint32_t lane = 0; lane < geo->lane_count; lane++)
        check_log(check, lane);
    for (uint32_t lane = 0; lane < geo->lane_count; lane++)
        check_targets(check, lane);
    for (uint32_t lane = 0; lane < geo->lane_count; lane++)
        check_records(check, lane);
    check_root(check);
}

static int check_init(struct check *check)
{
    const struct geometry *geo = &check->pool->geo;
    uint64_t words = geo->block_count / 64 + 1;

    check->live = calloc(geo->lane_count, sizeof(*check->live));
    check->allocating = calloc(words, sizeof(uint64_t));
    check->freeing = calloc(words, sizeof(uint64_t));
    check->finishing = calloc(words, sizeof(uint64_t));
    check->scratch = malloc(PM_BATCH_SIZE_MAX);
    check->root = *pool_root_block(check->pool);
    if (!check->live || !check->allocating || !check->freeing || !check->finishing ||
        !check->scratch)
        return error_set(ENOMEM, "no memory to check %llu blocks",
                         (ull)geo->block_count);
    return 0;
}

static void check_finish(struct check *check)
{
    free(check->live);
    free(check->allocating);
    free(check->freeing);
    free(check->finishing);
    free(check->scratch);
}

int check_pool(struct minl2r_pool *pool, minl2r_check_fn *found, void *arg)
{
    struct check check = {.pool = pool, .found = found, .arg = arg};
    int result = check_init(&check);

    if (result == 0) {
        check_all(&check);
        if (check.problems > 0)
            result = error_set(EUCLEAN, "the pool is damaged in %llu places",
                               (ull)check.problems);
    }
    check_finish(&check);
    return result;
}
