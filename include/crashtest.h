/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crashtest.h - have a program on persistent memory (PM) tested for power failures.
 *
 * Describe the program by a few functions, compile all of it with crashtest-cc, run it:
 *
 *     static int init(const struct crashtest_pm *pm, void *arg) { ... }
 *     static int run(const struct crashtest_pm *pm, void *arg)
 *     {
 *         crashtest_begin("insert 3");
 *         list_insert(pm->base, 3);
 *         crashtest_end();
 *         return 0;
 *     }
 *     static int recover(...) { ... what the program does when it starts ... }
 *     static int check(const struct crashtest_pm *pm,
 *                      const struct crashtest_crash *crash, void *arg)
 *     {
 *         if (list_length(pm->base) < crash->returned)
 *             return crashtest_fail("an insert that had returned is gone");
 *         return 0;
 *     }
 *
 *     int main(int argc, char **argv)
 *     {
 *         static const struct crashtest_program program = {
 *             .name = "list", .pm_size = 4096,
 *             .init = init, .run = run, .recover = recover, .check = check,
 *         };
 *         return crashtest_main(argc, argv, &program);
 *     }
 *
 *     $ crashtest-cc -o list list.c && ./list
 *
 * `run` is run once and recorded. For every moment at which the power could fail, and
 * for every content that PM could have then, `recover` and `check` are called. What
 * they store is taken back each time.
 *
 *   Stores   are seen in what crashtest-cc compiled, and in memcpy() and its kind.
 *            Others (system calls, inline assembly, libraries that were compiled
 *            otherwise) are noticed when they are flushed or their operation ends, and
 *            the coverage is then called "sampled".
 *   Flushes  and fences are seen where they are intrinsics, or calls of libpmem.
 *   Threads  that `run` starts run one at a time, in orders that a seed decides:
 *            several are tried, and each can be had again.
 *   Process  `init` and `run` run in a child: `recover` finds the volatile memory of a
 *            program that has just started, and PM at another address. Several
 *            processes call it, each for some of the states. What they fork must not
 *            store to PM.
 *   Returns  0, or not 0 for failed; crashtest_fail() tells why.
 */
#ifndef CRASHTEST_H
#define CRASHTEST_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/* The persistent memory of the program: use it at `base`, or map or open `path`. */
struct crashtest_pm {
    void *base;
    size_t size;
    const char *path; /* a file of `size` bytes whose shared mappings are PM */
};

enum crashtest_progress { CRASHTEST_NOT_BEGUN, CRASHTEST_RUNNING, CRASHTEST_RETURNED };

/* What the program had done when it crashed. */
struct crashtest_crash {
    const char *running;           /* the operation that was running; NULL: none */
    size_t returned;               /* how many operations had returned */
    const char *const *operations; /* all that `run` does, in order; ends with NULL */

    /*
     * Of each of them. Where threads do several at once, `running` is the one that
     * began last, and the order is that in which they began.
     */
    const enum crashtest_progress *progress;
};

/*
 * How far the operation of that name had come: CRASHTEST_NOT_BEGUN if there is none.
 * Needs names that differ: of several, it is the first.
 */
enum crashtest_progress crashtest_progress_of(const struct crashtest_crash *crash,
                                              const char *format, ...)
    __attribute__((format(printf, 2, 3)));

struct crashtest_program {
    const char *name;
    size_t pm_size; /* bytes; rounded up to pages */

    /* Makes PM, zeroed, what `run` begins with. All of that is taken for durable. */
    int (*init)(const struct crashtest_pm *pm, void *arg);

    /* Does operations, between crashtest_begin() and crashtest_end(). */
    int (*run)(const struct crashtest_pm *pm, void *arg);

    /* What the program does when it starts again. NULL: nothing. Not 0: it failed. */
    int (*recover)(const struct crashtest_pm *pm, void *arg);

    /*
     * Is what recovery left right, for a crash at that time? An operation that was
     * running may have happened or not; one that had returned must have. It must not
     * store to PM.
     */
    int (*check)(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg);

    /* Can the program go on from here? It may store to PM. NULL: not asked. */
    int (*use)(const struct crashtest_pm *pm, void *arg);

    /*
     * Lets go of what `recover` opened, for the next state to be recovered in the same
     * process. It may store to PM. NULL: nothing is open.
     */
    int (*close)(const struct crashtest_pm *pm, void *arg);

    void *arg;          /* handed to each of them */
    bool fixed_address; /* the program needs PM at the same address after a crash */
};

/*
 * Tests `program` as the command line says (--help lists the options) and reports. Call
 * it once, from main(), before there are other threads.
 *
 * Returns: for main() to return: 0 if nothing was found, 1 if something was, 2 if it
 *          could not be tested.
 */
int crashtest_main(int argc, char **argv, const struct crashtest_program *program);

/*
 * Marks an operation of `run`, which tells reports and `check` what was going on: what
 * it is called, printf-like, and where it has returned. Operations do not nest; each
 * thread may be in one.
 */
void crashtest_begin(const char *format, ...) __attribute__((format(printf, 1, 2)));
void crashtest_end(void);

/*
 * `recover` or `check` takes a checksum of these bytes of PM, or compares them all,
 * until crashtest_hash_end(), and all that it will make of it is whether they are
 * complete: as they were when `run` had paused storing them. All other contents, of
 * which there may be any number, are then tried as one; and, of many lines, that only
 * the first is missing, one between, or the last. Optional. Pairs do not nest, and one
 * thread calls them.
 */
void crashtest_hash_begin(const void *data, size_t size);
void crashtest_hash_end(void);

/*
 * Before crashtest_hash_begin(): what lies elsewhere, and the same checksum takes in.
 */
void crashtest_hash_add(const void *data, size_t size);

/* Says why a function of the program fails. Returns -1, for `return crashtest_fail()`.
 */
int crashtest_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
