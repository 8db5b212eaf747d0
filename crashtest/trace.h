/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * trace.h - what a program did to PM: every store with the value before and after it,
 * every flush, every fence, and the beginning and end of its operations.
 *
 * A store is cut into the pieces that arrive whole: what lies within an aligned word.
 * Pieces of one store or memcpy() have the same group: their order is not known. A
 * store whose pieces are `joined` arrives whole, or not at all: cmpxchg16b, movdir64b.
 */
#ifndef CRASHTEST_TRACE_H
#define CRASHTEST_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LINE_SIZE 64u

enum trace_kind {
    TRACE_STORE,   /* through the cache */
    TRACE_STREAM,  /* past it: non-temporal */
    TRACE_FLUSH,   /* clwb, clflushopt: of the line at `at` */
    TRACE_CLFLUSH, /* the same, and waits for it */
    TRACE_FENCE,   /* sfence, mfence, locked instructions */
    TRACE_BEGIN,   /* of operation number `at` */
    TRACE_END,
};

enum access {
    ACCESS_LOAD,
    ACCESS_STORE,
    ACCESS_HASHED, /* a range of what the next checksum is taken of */
    ACCESS_HASH    /* of all ranges since the last one */
};

#define TRACE_FRAMES 4

struct trace_event {
    uint8_t kind;
    uint8_t size;    /* of a piece: 1, 2, 4 or 8 bytes */
    bool joined;     /* to the others of its group */
    bool unseen;     /* found by comparing, not by a hook: some time before */
    bool locks;      /* of a fence: it is a locked instruction */
    uint32_t group;  /* of pieces */
    uint32_t thread; /* from 1 */
    uint64_t at;     /* offset in PM */
    uint64_t before; /* the piece's bytes */
    uint64_t after;
    uintptr_t frames[TRACE_FRAMES]; /* return addresses, innermost first; 0: no more */
    uintptr_t outside; /* libminl2r did this: where it was called; 0: it did not */
};

/* Lives in memory that is shared with children, which may add to it. */
struct trace {
    size_t count;
    size_t capacity;
    uint32_t groups;
    bool is_full; /* events were lost */
    struct trace_event events[];
};

/* NULL: no memory. */
struct trace *trace_create(size_t capacity);
void trace_destroy(struct trace *trace);
void trace_clear(struct trace *trace);

/* The next event, zeroed but for its kind. */
struct trace_event *trace_add(struct trace *trace, enum trace_kind kind);

static inline bool trace_is_store(const struct trace_event *event)
{
    return event->kind <= TRACE_STREAM;
}

bool trace_has_stores(const struct trace *trace);

/* Or streams, which need none. */
bool trace_has_flushes(const struct trace *trace);

/* Is this the last piece of a store? */
bool trace_ends_group(const struct trace *trace, size_t index);

/* The largest naturally aligned piece at `offset` that `size` bytes hold. */
static inline uint8_t trace_piece_at(uint64_t offset, size_t size)
{
    uint8_t piece = 8;

    while ((offset & (piece - 1u)) != 0 || piece > size)
        piece /= 2;
    return piece;
}

/* memcpy() is hooked: these stay inline. */
static inline uint64_t trace_load_word(const uint8_t *bytes)
{
    uint64_t word;

    __builtin_memcpy(&word, bytes, sizeof(word));
    return word;
}

static inline void trace_copy_line(uint8_t *to, const uint8_t *from)
{
    __builtin_memcpy(to, from, LINE_SIZE);
}

/* The bytes of a piece as a number, and back: no memcpy(), which is hooked. */
static inline uint64_t trace_load_piece(const uint8_t *piece, uint8_t size)
{
    uint64_t value = 0;

    if (size == 8)
        return trace_load_word(piece);
    for (uint8_t i = 0; i < size; i++)
        value |= (uint64_t)piece[i] << (8 * i);
    return value;
}

static inline void trace_store_piece(uint8_t *piece, uint64_t value, uint8_t size)
{
    if (size == 8) {
        __builtin_memcpy(piece, &value, sizeof(value));
        return;
    }
    for (uint8_t i = 0; i < size; i++)
        piece[i] = (uint8_t)(value >> (8 * i));
}

#endif
