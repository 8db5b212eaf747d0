/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_run.h - operations run on a pool and recorded, and what may be seen of them
 * after a crash.
 *
 * What each operation changes is kept as a difference, so that any set of operations
 * has an image: what was there before, with their differences. A recovered pool must
 * show one with all operations that had returned and any of those that were running, in
 * every block that is allocated in that image.
 */
#ifndef LIBRARY_RUN_H
#define LIBRARY_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "crashtest/trace.h"
#include "crashtest/workloads/door.h"
#include "crashtest/workloads/library_operations.h"
#include "include/crashtest.h"

/* What there is where there is no pool yet. */
enum no_pool { IS_POOL, ZEROS, GARBAGE, POOL_WITHOUT_START };

/* A pool to begin with. */
struct setting {
    const char *name;
    const char *what;
    struct minl2r_options options;
    enum minl2r_medium medium;
    enum no_pool no_pool;
    bool has_no_root;
    bool is_full;
    bool has_own_lanes;  /* steps in a row run in lanes of their own, downwards */
    bool looks_for_idle; /* so does each commit; else once in IDLE_ROUND */
    bool has_new_lanes;  /* asleep, and in nobody's list, up to their first commit */
};
extern const struct setting library_settings[];
extern const uint32_t library_setting_count;
const struct setting *library_find_setting(const char *name); /* or NULL */

/* What is run: steps in a row, or each at a pause of the one before. */
#define STEPS_MAX 3

struct script {
    const struct setting *setting;
    uint32_t step_count;
    const struct operation *steps[STEPS_MAX];
    uint32_t pauses[STEPS_MAX]; /* where step i + 1 runs in step i */
    bool is_nested;             /* they do */
    bool on_same_side;          /* of the pool; else each nested one has its own */
    uint32_t first_step;        /* whose crashes are explored, and later ones; also the
                                   number of its first stage */
    struct door_fault fault;    /* of the first step */
    bool fails; /* because of that, and so does what comes later: old or new */
};

#define AGAIN STEPS_MAX /* the transaction after recovery, as a step */
#define DIFFERENCES_MAX (STEPS_MAX + 1)
#define SETS (1u << DIFFERENCES_MAX)

/* A line that operations change. */
struct line {
    uint64_t at;
    uint64_t loose[DIFFERENCES_MAX]; /* bytes that may be there early, as bits */
    uint8_t base[LINE_SIZE];
    uint8_t differences[DIFFERENCES_MAX][LINE_SIZE];
    uint8_t images[SETS][LINE_SIZE]; /* by set of operations */
    bool counts[SETS];               /* a bitmap, or in a block that is allocated */
};

/* What may be seen: the operations that returned, and any of those that run. */
struct expectation {
    uint32_t returned, running; /* sets */
    bool may_be_no_pool;
};

#define STAGES_MAX (2 * STEPS_MAX)

/* What was run last. Stages are its operations to crashtest. */
struct run {
    const struct script *script;
    struct geometry geo;
    bool is_complete; /* there were so many pauses */
    uint32_t steps_begun;

    struct line *lines;
    uint32_t line_count, line_capacity;
    uint32_t *line_index; /* by line of the pool; index + 1 */

    /* By stage: while it runs, and once so many have returned. */
    struct expectation running[STAGES_MAX], returned[STAGES_MAX + 1];
    uint32_t stage_count;
    struct door_count calls; /* of the first step that is explored */
};
extern struct run library_last_run;

/* The pool as the setting has it. Ends the process if there is no memory. */
const uint8_t *library_bed(const struct setting *setting);

/* For struct crashtest_program, `arg` is a script. */
int library_run(const struct crashtest_pm *pm, void *arg);

/* The trace is known now: what may be seen? Differences of a script that fails are
 * those of the run before, which did not. */
void library_expect(const struct trace *trace);

/* Is the line of `offset` a bitmap's, or in a block that is allocated in that image? */
bool library_counts(const struct run *run, uint64_t offset, uint32_t set);

/* The script's first fence number `nth` fails. */
void script_fail_fence(struct script *script, uint64_t nth);

/*
 * "large-log.write_word+free_run"         in a row
 * "small-log.write_word@2.free_run"       at pause 2 of the first
 * "small-log.write_word@2=store_word"     on the same side of the pool
 * "small-log.write_word!2"                fence 2 fails
 *
 * False if it does not fit, or is none.
 */
bool script_print(const struct script *script, char *text, size_t size);
bool script_parse(struct script *script, const char *text);

#endif
