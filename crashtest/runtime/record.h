/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * record.h - writes down what instrumented code does to PM.
 *
 * The hook of a store comes before it. So a store is *pending* until the next hook of
 * its thread: only then its value is known. The shadow is PM as far as it was seen;
 * what differs from it was stored past the hooks, and is caught up with.
 */
#ifndef CRASHTEST_RECORD_H
#define CRASHTEST_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/trace.h"

/* Code is about to access so many bytes of PM. */
typedef void access_fn(void *arg, uint64_t offset, size_t size, enum access access);

/* What the hooks look at first: off unless `trace` is set. */
struct recorder {
    const char *path; /* of the file that is PM */
    uint8_t *base;
    uint64_t size;
    uint8_t *shadow;
    struct trace *trace;
    bool catch_up;       /* with what is stored past the hooks, at every fence */
    bool compare;        /* look for it where operations begin and end */
    bool locks_are_weak; /* a locked instruction is not taken for a fence */
    uint64_t hooks_left; /* of a function of the program, or of its turn */
    uint64_t hooks_kept; /* for later turns; 0 as well: it hangs */
    void (*on_hang)(void);
    access_fn *on_access; /* NULL: nobody asks */
    void *on_access_arg;
    bool is_forked;  /* the program has forked this process: nothing is recorded */
    bool is_hashing; /* what is loaded was told of as a whole */
    uint32_t alias_count;

    uint64_t
        unseen; /* words that no hook has seen; found where they are caught up with */
    uint64_t unseen_at; /* the first */
};
extern struct recorder recorder;

/* From now on `fd`, also known by `path` and mapped at `base`, is PM; shadow has its
 * content. */
void record_pm(const char *path, int fd, uint8_t *base, uint64_t size, uint8_t *shadow);
bool record_is_pm_file(int fd);

/* Processes that are forked from now on are not recorded. 0 or a negative errno. */
int record_watch_forks(void);
/* But for this one, of the tester. */
void record_begin_process(void);
/* Has one that is not recorded stored to PM, since this was asked last? */
bool record_was_stored_elsewhere(void);

/* Adds what happens to `trace`, until record_stop(). */
void record_start(struct trace *trace);
void record_stop(void);

/* An operation begins or ends: completes what is pending, looks for what was unseen. */
void record_mark(enum trace_kind kind, uint64_t operation);

/* The same for what was stored after the last operation. */
void record_look_for_unseen(void);

/* A second mapping of PM, by code that was not given ours. */
void record_add_alias(void *address, size_t size, uint64_t offset);
void record_remove_alias(const void *address, size_t size);
void record_forget_aliases(void);
/* All of them become mappings of `fd`. 0 or a negative errno. */
int record_map_aliases_again(int fd);

/* ---- For hooks ------------------------------------------------------------------- */

/* False: surely not. */
static inline bool record_may_be_pm(const void *address)
{
    return (uintptr_t)address - (uintptr_t)recorder.base < recorder.size ||
           recorder.alias_count > 0;
}

/* Where PM lies: its offset, and how much of `size` is PM; false: nothing. */
bool record_find(const void *address, size_t *size, uint64_t *offset);

/* Completes what is pending. Each hook calls this, or one that does. */
void record_settle(void);

/* The caller is about to load: in the copy of a struct, the hook of the store comes
 * before that of the load, and the store after both. */
void record_load_slowly(const void *address, size_t size);

extern __thread size_t record_pending_size; /* of the pending store; 0: there is none */

/* Most loads are of no interest. */
static inline void record_load(const void *address, size_t size)
{
    if (record_pending_size == 0 && !recorder.on_access && recorder.hooks_left > 1)
        recorder.hooks_left--;
    else
        record_load_slowly(address, size);
}

/* The caller is about to store. */
void record_store(const void *address, size_t size, enum trace_kind kind, bool joined,
                  const void *pc);

/* The same through the cache; most stores are of no interest either. */
static inline void record_plain_store(const void *address, size_t size, const void *pc)
{
    if (record_pending_size == 0 && !record_may_be_pm(address) &&
        recorder.hooks_left > 1)
        recorder.hooks_left--;
    else
        record_store(address, size, TRACE_STORE, false, pc);
}

void record_flush(const void *address, size_t size, enum trace_kind kind,
                  const void *pc);
void record_fence(const void *pc);
/* A locked instruction. */
void record_lock(const void *pc);

/* What this thread does is that of thread `id` (0: its own) until it is called again.
 * Answers with whose it was. */
uint32_t record_as_thread(uint32_t id);

/* The number that events of this thread get, from now on. */
void record_name_thread(uint32_t number);

/* A function may do so many loads and stores; a turn of it so many of those. */
void record_allow(uint64_t hooks);
void record_begin_turn(uint64_t hooks);

/* Where `pc` is called from, innermost first; 0: no more. */
void record_frames(const void *pc, uintptr_t frames[TRACE_FRAMES]);

void record_enter(const void *pc);
void record_leave(void);
/* How deep the calls are; going back to it after a longjmp(). */
uint32_t record_depth(void);
void record_set_depth(uint32_t depth);

#define CALLER __builtin_return_address(0)

#endif
