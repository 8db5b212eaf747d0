/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * arena.h - memory of one transaction: handed out in order, taken back all at once. The
 * first chunk is kept for the next transaction, so a small one needs no heap.
 *
 * Copies of bytes for PM lie in their lines as they will there. A copy is stored just
 * before it is streamed, in pieces that memcpy() aligns in the copy and streaming in
 * PM: a load of parts of two pieces would wait until both have left the store queue.
 * See copy.h.
 */
#ifndef MINL2R_ARENA_H
#define MINL2R_ARENA_H

#include <stddef.h>
#include <stdint.h>

#define ARENA_LINE ((size_t)64)

struct arena_chunk {
    struct arena_chunk *next;
    size_t size; /* of `bytes`, a multiple of ARENA_LINE */
    _Alignas(64) uint8_t bytes[];
};

struct arena {
    struct arena_chunk *chunks; /* newest first; the last one is kept */
    size_t used;                /* of the newest */
};

int arena_init(struct arena *arena);
void arena_finish(struct arena *arena);

/* In a new chunk, `skip` bytes from its start, which is aligned to ARENA_LINE. */
void *arena_alloc_slow(struct arena *arena, size_t skip, size_t size);

static inline void *arena_take(struct arena *arena, size_t from, size_t size)
{
    if (from > arena->chunks->size || size > arena->chunks->size - from)
        return NULL;
    arena->used = from + size;
    return arena->chunks->bytes + from;
}

/* Memory aligned to 16 from what is there already, or NULL. */
static inline void *arena_try(struct arena *arena, size_t size)
{
    return arena_take(arena, (arena->used + 15) & ~(size_t)15, size);
}

/* The same of any alignment: right behind what was handed out before. */
static inline void *arena_try_bytes(struct arena *arena, size_t size)
{
    return arena_take(arena, arena->used, size);
}

/* Memory aligned to 16, or NULL. */
static inline void *arena_alloc(struct arena *arena, size_t size)
{
    void *memory = arena_try(arena, size);

    return memory ? memory : arena_alloc_slow(arena, 0, size);
}

/* Memory as far into a line as `offset` is, or NULL. */
static inline void *arena_alloc_like(struct arena *arena, uint64_t offset, size_t size)
{
    size_t skip = (offset - arena->used) & (ARENA_LINE - 1);
    void *memory = arena_take(arena, arena->used + skip, size);

    return memory ? memory : arena_alloc_slow(arena, offset & (ARENA_LINE - 1), size);
}

void arena_free_chunks(struct arena *arena);

/* Takes everything back, and keeps the first chunk. */
static inline void arena_reset(struct arena *arena)
{
    if (arena->chunks->next)
        arena_free_chunks(arena);
    arena->used = 0;
}

#endif
