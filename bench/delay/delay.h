/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delay.h - a model of media slower than this machine's memory, in front of the door to
 * PM.
 *
 * A program that links `bench_delay` beside the library has it between the two by the
 * linker's --wrap: the library's objects are the same, and until delay_use() every call
 * goes straight through. The rules:
 *
 *   Writes     A phase is durable no earlier than fence_ns, and the time of each of its
 *              lines, after the first of them was flushed or streamed. What this
 *              machine takes counts; the fence waits for what is left. So nothing is
 *              faster than here, and nothing is paid twice.
 *   Reads      n lines take no less than read_ns + (n - 1) * read_line_ns. Lines that
 *              the thread has read or flushed lately are in a cache of 1 MiB, and free;
 *              streaming drops them.
 *   Bandwidth  The lines of all threads share one bus for writes and one for reads. A
 *              phase takes its place on it at its fence, behind those whose fences came
 *              before; idle time is not saved up.
 *
 * Reads are seen where memory that pm_map() or pm_adopt() knows is the source of
 * pm_store(), pm_store_nt() or a call of memcpy(): original bytes that are logged,
 * blocks that are copied, files that are read. Not seen are loads by pointer and what
 * the compiler makes of copies of few bytes: slots, headers, comparisons.
 */
#ifndef BENCH_DELAY_H
#define BENCH_DELAY_H

#include <stddef.h>
#include <stdint.h>

struct delay_medium {
    const char *name;
    double fence_ns;
    double flush_line_ns;
    double stream_line_ns;
    double read_ns;      /* the first line of a read */
    double read_line_ns; /* each further line */
    double write_gb_s;   /* of all threads; 0: no limit */
    double read_gb_s;
    const char *source; /* of the figures */
};

/* "tmpfs" (no delay), "optane" and "cxl". */
extern const struct delay_medium delay_media[];
extern const size_t delay_media_count;

/* NULL if there is no medium of that name. */
const struct delay_medium *delay_find(const char *name);

/*
 * From now on PM is `medium`; NULL: what it is. While no other thread is inside the
 * library. The first call takes 20 ms, to compare the clocks.
 */
void delay_use(const struct delay_medium *medium);

/* As a read of `size` bytes of PM that the model does not see. */
void delay_read(const void *src, size_t size);

/* What the calling thread was charged for since it started. */
struct delay_totals {
    uint64_t fences;
    uint64_t lines_flushed;
    uint64_t lines_streamed;
    uint64_t lines_read; /* those in the cache excluded */
};

struct delay_totals delay_totals(void);

#endif
