/* SPDX-License-Identifier: BSD-3-Clause */
/* Begins, empties and closes a set of writes. */
#include "libminl2r/writeset.h"

#include <stdlib.h>

#include "libminl2r/log.h"
#include "libminl2r/writeset_internal.h"

static void clear_lists(struct writeset *ws)
{
    ws->first = ws->latest = NULL;
    ws->last = &ws->first;
    plain_reset(&ws->plain);
    swaps_reset(&ws->swaps);
    ws->block_count = ws->fresh_count = 0;
    ws->edits = NULL;
    ws->fresh_first = NULL;
    ws->fresh_last = &ws->fresh_first;
    ws->allocs = ws->frees = (struct run_list){0};
    ws->abandoned = ws->segments = (struct run_list){0};
    ws->snapshots = (struct interval_list){0};
    ws->log_queued = ws->log_written = 0;
    ws->log_space = log_part_space(ws->pool->geo.log_size);
}

int writeset_init(struct writeset *ws, struct minl2r_pool *pool)
{
    ws->pool = pool;
    if (writeset_init_table(ws) < 0 || settling_init(&ws->settling, pool) < 0 ||
        swaps_init(&ws->swaps) < 0 || arena_init(&ws->arena) < 0) {
        writeset_finish(ws);
        return no_memory();
    }
    plain_init(&ws->plain);
    clear_lists(ws);
    return 0;
}

void writeset_finish(struct writeset *ws)
{
    free(ws->table);
    settling_finish(&ws->settling);
    swaps_finish(&ws->swaps);
    arena_finish(&ws->arena);
}

void writeset_reset(struct writeset *ws)
{
    writeset_clear_table(ws);
    arena_reset(&ws->arena);
    clear_lists(ws);
}

bool writeset_is_empty(const struct writeset *ws)
{
    return !ws->first && ws->swaps.count == 0 && ws->plain.count == 0 &&
           !ws->fresh_first && ws->allocs.count == 0 && ws->frees.count == 0 &&
           ws->snapshots.count == 0;
}

static void link_plain(struct writeset *ws)
{
    struct block_write *write = &ws->plain_write;

    if (ws->plain.count == 0)
        return;
    *write = (struct block_write){
        .next = ws->first,
        .extents = ws->plain.extents,
        .extent_count = ws->plain.count,
    };
    ws->first = write;
}

/* There is room: it was made when each got its fresh block. */
void writeset_list_swaps(struct writeset *ws)
{
    for (const struct block_write *w = ws->first; w; w = w->next)
        if (w->fresh)
            swaps_add(&ws->swaps, w->slot, w->slot_is_own, w->block, w->fresh);
}

static void list_changes(struct writeset *ws)
{
    struct block_write **to_fill = &ws->to_fill, **in_place = &ws->in_place;

    for (struct block_write *write = ws->first; write; write = write->next) {
        struct block_write ***last = write->fresh ? &to_fill : &in_place;

        if (write->streamed || (!write->fresh && write->extent_count == 0))
            continue;
        **last = write;
        *last = &write->next_change;
    }
    *to_fill = *in_place = NULL;
}

void writeset_close(struct writeset *ws)
{
    if (ws->edits)
        writeset_fold_edits(ws);
    writeset_list_swaps(ws);
    link_plain(ws);
    list_changes(ws);
}
