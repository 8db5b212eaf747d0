/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/arena.h"

#include <errno.h>
#include <stdlib.h>

#define CHUNK_SIZE ((size_t)64 << 10)

static struct arena_chunk *chunk_create(size_t size, struct arena_chunk *next)
{
    struct arena_chunk *chunk = aligned_alloc(ARENA_LINE, sizeof(*chunk) + size);

    if (chunk) {
        chunk->next = next;
        chunk->size = size;
    }
    return chunk;
}

int arena_init(struct arena *arena)
{
    arena->used = 0;
    arena->chunks = chunk_create(CHUNK_SIZE, NULL);
    return arena->chunks ? 0 : -ENOMEM;
}

void arena_finish(struct arena *arena)
{
    if (!arena->chunks)
        return;
    arena_reset(arena);
    free(arena->chunks);
    arena->chunks = NULL;
}

void *arena_alloc_slow(struct arena *arena, size_t skip, size_t size)
{
    size_t chunk_size = arena->chunks->size * 2;

    if (size > SIZE_MAX / 2)
        return NULL;
    size = (skip + size + ARENA_LINE - 1) & ~(ARENA_LINE - 1);
    struct arena_chunk *chunk =
        chunk_create(chunk_size < size ? size : chunk_size, arena->chunks);

    if (!chunk)
        return NULL;
    arena->chunks = chunk;
    arena->used = size;
    return chunk->bytes + skip;
}

void arena_free_chunks(struct arena *arena)
{
    while (arena->chunks->next) {
        struct arena_chunk *next = arena->chunks->next;

        free(arena->chunks);
        arena->chunks = next;
    }
}
