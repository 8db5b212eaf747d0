/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * delay.h - a model of media slower than this machine's memory, in front of the door to
 * PM.
 *
 * A program that links `bench_delay` beside the library has it between the two by the
 * linker's --wrap. Until delay_use() every call goes straight through. The rules:
 *
 *   Writes     A phase is durable no earlier than fence_ns, and the time of each of its
 *              lines, after the first of them was flushed or streamed. What this
 *              machine takes counts; the fence waits for what is left. So nothing is
 *              faster than here, and nothing is paid twice.
 *   Reads      A load goes to the medium if its line is in no cache: if the thread has
 *              not read, stored or flushed it lately (a cache has 1 MiB), or has
 *              streamed to it since. n such lines of one copy or comparison take no
 *              less than read_ns + (n - 1) * read_line_ns. Lines that are prefetched
 *              come likewise, while other things are done; a load of one waits for what
 *              is left. Stores fetch nothing, and flushes keep lines in the cache.
 *   Bandwidth  The lines of all threads share one bus for writes and one for reads. A
 *              phase takes its place on it at its fence, behind those whose fences came
 *              before; idle time is not saved up.
 *
 * Reads are seen where memory that pm_map() or pm_adopt() knows is the source of
 * pm_store(), pm_store_nt() or a call of memcpy(), or is changed by pm_or64(),
 * pm_and64() or pm_max64(): blocks that are copied, files that are read. What compilers
 * make of small copies, comparisons and loads of words is seen in code that was compiled
 * with loads.h: the library's core (link `minl2r_seen`, not `minl2r_static`) and the
 * schemes (`bench_schemes_seen`). Plain dereferences are not.
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

/*
 * For loads that no call is wrapped for: see loads.h. Nothing else is delayed PM than
 * what lies here, and not all that does; empty while nothing is delayed.
 */
extern uintptr_t delay_pm_start, delay_pm_size;

/* The time, or 0 if all is in the cache; and the rest of what a load that began then has to
 * wait. */
uint64_t delay_load_begin(const void *src, size_t size);
void delay_load_end(const void *src, size_t size, uint64_t start_ps);

/* The line at `at` is asked for. */
void delay_prefetch(const void *at);

/* What the calling thread was charged for since it started. */
struct delay_totals {
    uint64_t fences;
    uint64_t lines_flushed;
    uint64_t lines_streamed;
    uint64_t lines_read;       /* those in the cache excluded */
    uint64_t lines_prefetched; /* likewise; loads of them are not read again */
    uint64_t due_ps;           /* of fences and reads, each from its beginning on */
    uint64_t
        read_alone_ps; /* what reads took while nothing was on its way to the medium */
};

struct delay_totals delay_totals(void);

#endif
