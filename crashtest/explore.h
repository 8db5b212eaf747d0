/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explore.h - crashes a traced run at every point where it matters, in every way the
 * model allows, and has each state judged in place.
 *
 * Crash points are before each fence that has something to wait for, before each
 * clflush, and before and after the return of each operation: what can be lost in
 * between can also be lost at the next of them. Besides, the process is killed after
 * every store: recovery runs on what the caches hold, and the power fails during it or
 * after. A power failure during the recovery from a power failure is explored, too.
 *
 *   program:seed:p123:1c0=2.0.0            a crash has a name: the power fails before
 *   program:seed:k123:                     event 123 of the trace, or the process is
 *   program:seed:p123:/p7:1c0=0.3.0        killed after it; what the lines hold that
 *                                          did not reach PM whole; then the same of
 *                                          recovery
 */
#ifndef CRASHTEST_EXPLORE_H
#define CRASHTEST_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "crashtest/px86.h"
#include "crashtest/trace.h"

#define NO_OPERATION UINT64_MAX

/* What was going on when it crashed. */
struct crash {
    uint64_t running;  /* number of the operation, or NO_OPERATION */
    uint64_t returned; /* how many had returned */

    /* It crashed again, in the recovery from that: the same of the operations that the
     * judge has marked in recovery's trace. */
    bool again;
    uint64_t recovery_running, recovery_returned;

    uint64_t state; /* of what PM has a number, the same each time it is tried */
    bool is_rare;   /* one of few, or being explained: judging it may take long */
};

enum verdict_kind {
    VERDICT_RIGHT,
    VERDICT_WRONG,     /* a state that must not be */
    VERDICT_CANNOT_SAY /* the judge does not work: there is no point in going on */
};

struct verdict {
    enum verdict_kind kind;
    bool hangs;        /* wrong, and so slow that it is enough */
    const char *step;  /* what was being done: "recovery", "check" */
    char message[512]; /* what was wrong, as a sentence without its end */
    uint64_t outcome;  /* which of the right states: crashes in recovery may need it */
};

/*
 * Recovers `image`, which has the state after a crash, and checks it. Adds what
 * recovery does to `recovery`, and takes back everything.
 */
typedef void judge_fn(void *arg, const struct crash *crash, struct trace *recovery,
                      struct verdict *verdict);

/*
 * The judged code is about to access so many bytes of the image; or to take a checksum
 * of ranges of them, and to tell only whether they are complete: its loads are left
 * out.
 */
typedef void watch_fn(void *arg, uint64_t offset, size_t size, enum access access);

struct subject {
    uint8_t *image;  /* what was durable before `trace`; as it was, afterwards */
    uint8_t *shadow; /* changed as `image` is; NULL: none */
    uint64_t size;   /* a multiple of pages */
    const struct trace *trace;
    judge_fn *judge;
    void *arg;

    /* From now on calls `watch` while a state is judged, until it is NULL. False: that
     * cannot be done. May be NULL itself: it never can. */
    bool (*set_watch)(void *arg, watch_fn *watch, void *watch_arg);
};

struct explore_options {
    const struct strategy *strategy;
    uint64_t budget;        /* states per crash point: up to here every one */
    uint64_t nested_budget; /* the same, for crashes in recovery; 0: none */
    bool kill;
    size_t first; /* crash points before this event of the trace are left out */
    uint64_t seed;
    double seconds;      /* then it ends; 0: never */
    size_t findings_max; /* then it ends; 0 is 1 */
    bool every_failure;  /* of each crash point, even if others had the same states */
};

/*
 * What is plain comes first: power failures, then power failures during the recovery
 * from one, then the same where the process was killed before. Caches that are saved
 * are a pass of their own.
 */
enum pass { PASS_POWER, PASS_RECOVERY, PASS_KILL, PASS_SAVED, PASSES };

/* What happened to be explored. */
struct explore_count {
    uint64_t points;       /* of the run */
    uint64_t exact_points; /* those of which every state was seen */
    uint64_t kills;
    uint64_t states;   /* different ones, of the run */
    uint64_t possible; /* as far as they can be counted: saturates at UINT64_MAX */
    uint64_t nested;   /* different ones, of recovery */
    uint64_t nested_points, exact_nested_points;
    bool nested_is_bounded; /* of some state of the run */
    uint64_t judged;        /* how often recovery was run */
    bool recovery_stores;   /* in some state */
    bool out_of_time;
    uint64_t all_points; /* of the run, those among them that time did not allow */
    bool is_stopped;     /* enough was wrong */
};
void explore_count_add(struct explore_count *to, const struct explore_count *from);

/* A crash point of the run. */
struct explore_point {
    size_t event;      /* the power fails before it */
    uint64_t states;   /* that were not seen before */
    uint64_t possible; /* saturates at UINT64_MAX */
    bool exact;
};

/* What each line that is not as it was stored last had when the power failed. */
struct place_line {
    uint64_t at;
    struct px86_choice choice;
};

enum place_kind {
    PLACE_NONE,
    PLACE_POWER,  /* fails before the event */
    PLACE_KILLED, /* after the event */
    PLACE_SAVED   /* the power fails after the event, but caches are saved */
};

struct place_level {
    enum place_kind kind;
    size_t event;
    struct place_line *lines;
    size_t count, capacity;
};

#define PLACE_LEVELS 2

/* A crash: of the run, and perhaps of the recovery from it. */
struct place {
    struct place_level levels[PLACE_LEVELS];
};

void place_finish(struct place *place);
void place_copy(struct place *to, const struct place *from);
void place_add(struct place_level *level, uint64_t at, struct px86_choice choice);
/* The part of the name after program and seed. */
void place_print(const struct place *place, char *text, size_t size);
/* False if it is no name. */
bool place_parse(struct place *place, const char *text);

/* A store that the crash might have lost, in the order of the trace. */
struct account_entry {
    struct trace_event event;
    size_t index; /* in its trace */
    unsigned level;
    bool lost;
    bool matters; /* it arrived, and without its line the state would be right */
};

/* What became of what was not durable. */
struct account {
    struct account_entry *entries;
    size_t count, capacity;
    struct trace *recovery; /* of the run's crash, for nested ones; of the explorer */
};
void account_finish(struct account *account);

struct explorer;

/*
 * NULL: no memory. Options and the trace may be others in the next run, the rest of the
 * subject must stay as it is.
 */
struct explorer *explorer_create(const struct subject *subject,
                                 const struct explore_options *options);
void explorer_destroy(struct explorer *explorer);

/* A wrong state, the first of its crash point with that verdict. */
struct finding {
    struct place place;
    struct verdict verdict;
};

/*
 * Explores. `place` and `verdict` are then the first wrong state; or why it could not
 * go on.
 */
void explorer_run(struct explorer *explorer, struct explore_count *count,
                  struct place *place, struct verdict *verdict);

/*
 * The same in steps, in any order and in any process: one pass over crashes before
 * events [begin, end), of which states are different if they are so within the part.
 * `end` SIZE_MAX: the last crash point, too.
 */
struct explore_part {
    enum pass pass;
    size_t begin, end;
};
void explorer_run_part(struct explorer *explorer, const struct explore_part *part,
                       struct explore_count *count);

/* Is there anything to explore in that pass, after the ones before came to `count`? */
bool explorer_wants(const struct explore_options *options, enum pass pass,
                    const struct explore_count *count);

/*
 * The same verdict on states of one crash point. In steps, a crash of recovery finds
 * again what is wrong with the state that it is of.
 */
bool finding_is_same(const struct finding *a, const struct finding *b);

/* What was wrong, in the order in which it was found. Until the next run. */
const struct finding *explorer_findings(const struct explorer *explorer, size_t *count);

/* How many crash points the whole run has. */
uint64_t explorer_count_points(struct explorer *explorer);

/* The crash points explored, and how many. Until the next run. */
const struct explore_point *explorer_points(const struct explorer *explorer,
                                            size_t *count);

/*
 * Has the state of `place` judged. False if there is no such state. `account` may be
 * NULL.
 */
bool explorer_replay(struct explorer *explorer, const struct place *place,
                     struct crash *crash, struct verdict *verdict,
                     struct account *account);

/* Loses as little as possible for the state to be still wrong. */
void explorer_shrink(struct explorer *explorer, struct place *place);

/* Of a wrong state: which of the stores that arrived matter? */
void explorer_find_matters(struct explorer *explorer, const struct place *place,
                           struct account *account);

/* How the states of a crash point are chosen. */
struct strategy {
    const char *name;
    const char *what; /* for --help */
    void (*visit)(struct explorer *explorer, unsigned level, bool all_fit);
    bool is_lazy;
    bool saves_caches; /* eADR: points are stores, and have one state */
};
extern const struct strategy strategies[];
extern const size_t strategy_count;
const struct strategy *strategy_find(const char *name); /* or NULL */

#endif
