/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * craft.h - log batches made by hand, with a right checksum whatever they say, in the
 * memory of a closed pool.
 */
#ifndef CRAFT_H
#define CRAFT_H

#include "tests/unit/memory_pool.h"

struct craft {
    struct memory_pool *mp;
    uint32_t lane;
    uint64_t offset; /* of the batch being made */
    struct pm_batch header;
    uint8_t records[2 * PM_BATCH_SIZE_MAX];
    uint32_t records_size;
};

static inline const struct pm_super *craft_super(const struct memory_pool *mp)
{
    return (const struct pm_super *)(const void *)mp->memory;
}

static inline struct pm_lane *craft_lane(const struct memory_pool *mp, uint32_t lane)
{
    return (struct pm_lane *)(void *)(mp->memory + craft_super(mp)->lanes_offset) +
           lane;
}

/* Begins the first batch of the lane's next generation. */
static inline void craft_begin(struct craft *craft, struct memory_pool *mp,
                               uint32_t lane)
{
    const struct pm_super *super = craft_super(mp);

    *craft = (struct craft){
        .mp = mp,
        .lane = lane,
        .offset = super->logs_offset + (uint64_t)lane * super->log_size,
        .header.generation = craft_lane(mp, lane)->settled + 1,
    };
}

static inline void craft_bytes(struct craft *craft, const void *bytes, size_t size)
{
    memcpy(craft->records + craft->records_size, bytes, size);
    craft->records_size += (uint32_t)size;
}

/* Adds a record; its payload, a multiple of 8 bytes, comes by craft_bytes(). */
static inline void craft_record(struct craft *craft, uint32_t type, uint32_t length,
                                uint64_t target)
{
    struct pm_record record = {type, length, target};

    craft_bytes(craft, &record, sizeof(record));
}

static inline void craft_undo(struct craft *craft, uint64_t target, uint64_t word)
{
    craft_record(craft, PM_UNDO, sizeof(word), target);
    craft_bytes(craft, &word, sizeof(word));
}

static inline void craft_swap(struct craft *craft, uint64_t slot, uint64_t old_block,
                              uint64_t new_block)
{
    struct pm_swap swap = {old_block, new_block};

    craft_record(craft, PM_SWAP, 8, slot);
    craft_bytes(craft, &swap, sizeof(swap));
}

/* Writes the batch, with a size that may be wrong, and its checksum over that. */
static inline void craft_end_with_size(struct craft *craft, uint32_t size)
{
    const struct pm_super *super = craft_super(craft->mp);
    uint64_t seed = pm_hash(super->uuid, sizeof(super->uuid), 0) + craft->lane;
    uint8_t *batch = craft->mp->memory + craft->offset;

    craft->header.size = size;
    memcpy(batch, &craft->header, sizeof(craft->header));
    memcpy(batch + sizeof(craft->header), craft->records, craft->records_size);
    craft->header.checksum =
        pm_hash(batch + 8, size > 8 && size <= 65536 ? size - 8 : 0, seed);
    memcpy(batch, &craft->header.checksum, 8);
}

/* Writes the batch and begins the next one behind it. */
static inline void craft_end(struct craft *craft)
{
    uint32_t size = (uint32_t)sizeof(craft->header) + craft->records_size;

    craft_end_with_size(craft, size);
    craft->header.prev = craft->offset;
    craft->header.index++;
    craft->offset += ((uint64_t)size + PM_LINE - 1) / PM_LINE * PM_LINE;
    craft->records_size = 0;
}

/* Writes a batch that links to `blocks` blocks, and goes on there. */
static inline void craft_link(struct craft *craft, uint64_t segment, uint32_t blocks)
{
    craft_record(craft, PM_LINK, blocks, segment);
    craft_end(craft);
    craft->offset = segment;
}

#endif
