/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/unit/model.h"

#include <errno.h>

/* Marks of a byte. */
#define AREA_QUEUED 1 /* what is stored directly does not show here */
#define AREA_FRESH 2  /* queued by minl2r_tx_write_fresh(), not read through */

/* ---- Choosing -------------------------------------------------------------------- */

static uint64_t below(struct world *world, uint64_t limit)
{
    return random_below(world->random, limit);
}

static const uint8_t *address(const struct world *world, const struct area *area)
{
    return minl2r_at(world->pool, area->offset);
}

static struct area *container(struct world *world)
{
    return &world->areas[1];
}

/* An area that has an address and was not freed, or NULL. */
static struct area *choose_area(struct world *world)
{
    struct area *area = &world->areas[below(world, WORLD_AREAS)];

    return area->offset != 0 && !area->freed ? area : NULL;
}

/* Mostly small, often near half of a block, sometimes all. */
static size_t choose_size(struct world *world, size_t limit)
{
    static const int near[] = {-1, 0, 1};
    size_t half = world->block_size / 2;
    size_t size;

    switch (below(world, 6)) {
    case 0:
        size = half + (size_t)near[below(world, 3)];
        break;
    case 1:
        size = world->block_size;
        break;
    case 2:
        size = 1 + below(world, limit);
        break;
    case 3:
        size = 8;
        break;
    default:
        size = 1 + below(world, 100);
        break;
    }
    return size < limit ? size : limit;
}

struct span {
    struct area *area; /* NULL: none found */
    size_t at, size;
};

static bool has_mark(const struct span *span, uint8_t marks)
{
    for (size_t i = span->at; i < span->at + span->size; i++)
        if (span->area->marks[i] & marks)
            return true;
    return false;
}

/* A range in `area`, which may be NULL, without fresh bytes in it. */
static struct span choose_span(struct world *world, struct area *area)
{
    struct span span = {area, 0, 0};

    if (!area)
        return span;
    size_t room = area->size - area->slots_size;

    span.size = choose_size(world, room);
    span.at = area->slots_size + below(world, room - span.size + 1);
    if (below(world, 2))
        span.at = (span.at - area->slots_size) / 64 * 64 + area->slots_size;
    if (has_mark(&span, AREA_FRESH))
        span.area = NULL;
    return span;
}

static const uint8_t *new_bytes(struct world *world, size_t size)
{
    static uint8_t bytes[1 << 20];

    random_fill(world->random, bytes, size);
    return bytes;
}

/* ---- What the transaction sees --------------------------------------------------- */

static void mark(const struct span *span, uint8_t mark)
{
    for (size_t i = 0; i < span->size; i++)
        span->area->marks[span->at + i] |= mark;
}

/* Own memory is stored to at once, unless a working copy lies over it. */
static void see_queued(const struct span *span, const void *bytes)
{
    memmove(span->area->seen + span->at, bytes, span->size);
    if (!span->area->own)
        mark(span, AREA_QUEUED);
}

/* Stores directly, where the caller may. */
static void store_directly(const struct span *span, uint8_t *to, const uint8_t *bytes)
{
    for (size_t i = 0; i < span->size; i++) {
        to[i] = bytes[i];
        if (!(span->area->marks[span->at + i] & AREA_QUEUED))
            span->area->seen[span->at + i] = bytes[i];
    }
}

/* Did a call succeed? It may fail for want of memory or space only, and if that is so.
 */
static bool succeeded(struct world *world, int result)
{
    if (world->may_fail && (result == -ENOMEM || result == -ENOSPC)) {
        world->failures++;
        return false;
    }
    assert_ok(result);
    return true;
}

/* ---- Calls ----------------------------------------------------------------------- */

static void do_write(struct world *world)
{
    struct span span = choose_span(world, choose_area(world));

    if (!span.area)
        return;
    const uint8_t *bytes = new_bytes(world, span.size);

    if (succeeded(world, minl2r_tx_write(world->tx, address(world, span.area) + span.at,
                                         bytes, span.size)))
        see_queued(&span, bytes);
}

static void do_zero(struct world *world)
{
    static const uint8_t zeros[1 << 20];
    struct span span = choose_span(world, choose_area(world));

    if (!span.area)
        return;
    if (succeeded(world, minl2r_tx_zero(world->tx, address(world, span.area) + span.at,
                                        span.size)))
        see_queued(&span, zeros);
}

static void do_copy(struct world *world)
{
    struct span from = choose_span(world, choose_area(world));
    struct area *area = choose_area(world);

    if (!from.area || !area || from.size > area->size - area->slots_size)
        return;
    uint64_t room = area->size - area->slots_size - from.size;
    struct span to = {area, area->slots_size + below(world, room + 1), from.size};

    if (has_mark(&to, AREA_FRESH))
        return;
    if (succeeded(world,
                  minl2r_tx_copy(world->tx, address(world, to.area) + to.at,
                                 address(world, from.area) + from.at, from.size)))
        see_queued(&to, from.area->seen + from.at);
}

static void change_copy(struct world *world, const struct model_edit *edit)
{
    for (uint64_t changes = below(world, 40); changes > 0; changes--) {
        size_t at = below(world, edit->size);

        edit->copy[at] = (uint8_t)random_next(world->random);
        edit->area->seen[edit->at + at] = edit->copy[at];
    }
}

/* What minl2r_tx_edit() answers to a range: 1: a copy of its own. */
static int edit_answer(const struct world *world, const struct span *span)
{
    for (int i = 0; i < world->edit_count; i++) {
        const struct model_edit *edit = &world->edits[i];

        if (edit->area != span->area || edit->at >= span->at + span->size ||
            span->at >= edit->at + edit->size)
            continue;
        return edit->at <= span->at && span->at + span->size <= edit->at + edit->size
                   ? 0
                   : -EINVAL;
    }
    return 1;
}

static void do_edit(struct world *world)
{
    struct span span = choose_span(world, choose_area(world));

    if (!span.area || world->edit_count == WORLD_EDITS)
        return;
    int answer = edit_answer(world, &span);
    uint8_t *copy;
    int result = minl2r_tx_edit(world->tx, address(world, span.area) + span.at,
                                span.size, &copy);

    if (answer < 0)
        assert_int_equal(result, answer);
    if (answer < 0 || !succeeded(world, result))
        return;
    assert_memory_equal(copy, span.area->seen + span.at, span.size);
    struct model_edit edit = {span.area, span.at, span.size, copy};

    mark(&span, AREA_QUEUED);
    change_copy(world, &edit);
    if (answer > 0)
        world->edits[world->edit_count++] = edit;
}

static void do_change_copy(struct world *world)
{
    if (world->edit_count > 0)
        change_copy(world, &world->edits[below(world, (uint64_t)world->edit_count)]);
}

static void do_write_fresh(struct world *world)
{
    struct span span = choose_span(world, choose_area(world));

    if (!span.area || has_mark(&span, AREA_QUEUED))
        return;
    const uint8_t *bytes = new_bytes(world, span.size);

    if (!succeeded(world,
                   minl2r_tx_write_fresh(world->tx, address(world, span.area) + span.at,
                                         bytes, span.size)))
        return;
    memcpy(span.area->seen + span.at, bytes, span.size);
    mark(&span, AREA_FRESH);
}

static void do_write_block(struct world *world)
{
    struct area *area = &world->areas[1 + below(world, WORLD_NAMED)];
    struct span span = choose_span(world, area->freed ? NULL : area);

    if (!span.area)
        return;
    const uint8_t *bytes = new_bytes(world, span.size);

    if (!succeeded(world,
                   minl2r_tx_write_block(world->tx, area->slot, (uint32_t)span.at,
                                         bytes, (uint32_t)span.size)))
        return;
    area->by_slot = true;
    see_queued(&span, bytes);
}

static void do_snapshot(struct world *world)
{
    struct span span = choose_span(world, choose_area(world));
    uint8_t *to;

    if (!span.area)
        return;
    int result = minl2r_tx_snapshot(world->tx, address(world, span.area) + span.at,
                                    span.size, &to);

    if (result == -EBUSY) /* both lanes are with the other world */
        return;
    if (!succeeded(world, result))
        return;
    store_directly(&span, to, new_bytes(world, span.size));
}

static void do_store_to_own(struct world *world)
{
    struct span span = choose_span(world, choose_area(world));

    if (!span.area || !span.area->own)
        return;
    uint8_t *to = (uint8_t *)(uintptr_t)(address(world, span.area) + span.at);

    store_directly(&span, to, new_bytes(world, span.size));
}

static void do_read(struct world *world)
{
    static uint8_t bytes[1 << 20];
    struct span span = choose_span(world, choose_area(world));

    if (!span.area)
        return;
    assert_ok(minl2r_tx_read(world->tx, bytes, address(world, span.area) + span.at,
                             span.size));
    assert_memory_equal(bytes, span.area->seen + span.at, span.size);
}

static void do_alloc(struct world *world)
{
    struct area *area = &world->areas[1 + WORLD_NAMED + below(world, WORLD_RUNS)];
    uint64_t blocks = area->size / world->block_size;
    uint8_t *bytes;

    if (area->offset != 0)
        return;
    if (!succeeded(world, minl2r_tx_alloc(world->tx, blocks, &area->offset, &bytes)))
        return;
    area->own = true;
    memcpy(bytes, new_bytes(world, area->size), area->size);
    memcpy(area->seen, bytes, area->size);
}

static bool is_edited(const struct world *world, const struct area *area)
{
    for (int i = 0; i < world->edit_count; i++)
        if (world->edits[i].area == area)
            return true;
    return false;
}

static void do_free(struct world *world)
{
    struct area *area = choose_area(world);
    const uint64_t hole = 0;

    if (!area || area == &world->areas[0] || area == container(world) ||
        area->by_slot || is_edited(world, area))
        return;
    if (!succeeded(world, minl2r_tx_free(world->tx, area->offset,
                                         area->size / world->block_size)))
        return;
    area->freed = true;
    if (area->slot &&
        !succeeded(world, minl2r_tx_write(world->tx, area->slot, &hole, sizeof(hole))))
        world_end(world, false); /* one without the other must not be */
}

static void call_at_random(struct world *world)
{
    typedef void call_fn(struct world *);
    static call_fn *const calls[] = {
        do_write, do_write,       do_write,       do_zero,       do_copy,
        do_edit,  do_change_copy, do_change_copy, do_read,       do_read,
        do_alloc, do_free,        do_write_fresh, do_snapshot,   do_store_to_own,
        do_write, do_write_block, do_write_block, do_write_block};

    calls[below(world, sizeof(calls) / sizeof(calls[0]))](world);
}

void world_step(struct world *world)
{
    if (!world->tx && !succeeded(world, minl2r_tx_begin(world->pool, &world->tx)))
        return;
    call_at_random(world);
    world->operations++;
}

/* ---- Ends ------------------------------------------------------------------------ */

static void area_committed(struct area *area)
{
    if (area->freed) {
        area->offset = 0;
        memset(area->seen, 0, area->size);
    }
    if (area->by_slot) {
        assert_int_not_equal(*area->slot, 0);
        area->offset = *area->slot;
    }
    memcpy(area->committed, area->seen, area->size);
}

static void area_aborted(struct area *area)
{
    if (area->own)
        area->offset = 0;
    memcpy(area->seen, area->committed, area->size);
}

static const uint64_t *slots_at(const struct world *world)
{
    return minl2r_at(world->pool, world->slots_offset);
}

/* The container may have moved, and its slots with it. */
static void find_slots(struct world *world)
{
    const uint64_t *slots = slots_at(world);

    for (int i = 0; i < WORLD_SLOTS; i++)
        world->areas[1 + i].slot = &slots[(size_t)i * 3];
    container(world)->offset = *container(world)->slot;
    slots = minl2r_at(world->pool, container(world)->offset);
    for (int i = 0; i < WORLD_NESTED; i++)
        world->areas[1 + WORLD_SLOTS + i].slot = &slots[(size_t)i * 2];
}

static void forget_tx(struct world *world, bool committed)
{
    find_slots(world);
    for (int i = 0; i < WORLD_AREAS; i++) {
        struct area *area = &world->areas[i];

        if (committed)
            area_committed(area);
        else
            area_aborted(area);
        area->own = area->freed = area->by_slot = false;
        memset(area->marks, 0, area->size);
    }
    world->edit_count = 0;
    world->tx = NULL;
}

void world_end(struct world *world, bool commit)
{
    if (!world->tx)
        return;
    if (commit)
        assert_ok(minl2r_tx_commit(world->tx));
    else
        assert_ok(minl2r_tx_abort(world->tx));
    world->commits += commit;
    world->aborts += !commit;
    forget_tx(world, commit);
    world_compare(world);
}

void world_compare(const struct world *world)
{
    for (int i = 0; i < WORLD_AREAS; i++) {
        const struct area *area = &world->areas[i];

        if (area->slot)
            assert_int_equal(*area->slot, area->offset);
        if (area->offset != 0)
            assert_memory_equal(address(world, area) + area->slots_size,
                                area->committed + area->slots_size,
                                area->size - area->slots_size);
    }
}

uint64_t world_blocks(const struct world *world)
{
    uint64_t blocks = 1;

    for (int i = 0; i < WORLD_AREAS; i++)
        if (world->areas[i].offset != 0)
            blocks += world->areas[i].size / world->block_size;
    return blocks;
}

/* ---- Life ------------------------------------------------------------------------ */

static void area_init(struct area *area, size_t size)
{
    area->size = size;
    area->committed = calloc(3, size);
    assert_non_null(area->committed);
    area->seen = area->committed + size;
    area->marks = area->seen + size;
}

void world_create(struct world *world, struct minl2r_pool *pool, struct random *random)
{
    struct minl2r_info info;
    struct area *stays = &world->areas[0];

    assert_ok(minl2r_pool_info(pool, &info));
    *world =
        (struct world){.pool = pool, .random = random, .block_size = info.block_size};
    area_init(stays, 4 * (size_t)info.block_size);
    for (int i = 0; i < WORLD_NAMED; i++)
        area_init(&world->areas[1 + i], info.block_size);
    container(world)->slots_size = (size_t)WORLD_NESTED * 2 * 8;
    for (size_t i = 0; i < WORLD_RUNS; i++)
        area_init(&world->areas[1 + WORLD_NAMED + i], (i + 1) * info.block_size);
    assert_ok(minl2r_tx_begin(pool, &world->tx));
    assert_ok(minl2r_tx_alloc(world->tx, 1, &world->slots_offset, NULL));
    assert_ok(minl2r_tx_zero(world->tx, minl2r_at(pool, world->slots_offset),
                             info.block_size));
    assert_ok(minl2r_tx_alloc(world->tx, 4, &stays->offset, NULL));
    assert_ok(minl2r_tx_zero(world->tx, address(world, stays), stays->size));
    assert_ok(minl2r_tx_write_block(world->tx, slots_at(world), 0, "", 1));
    assert_ok(minl2r_tx_commit(world->tx));
    world->tx = NULL;
    find_slots(world);
    world_compare(world);
}

void world_reopen(struct world *world, struct minl2r_pool *pool)
{
    world->pool = pool;
    forget_tx(world, false);
    world_compare(world);
}

void world_destroy(struct world *world)
{
    for (int i = 0; i < WORLD_AREAS; i++)
        free(world->areas[i].committed);
}
