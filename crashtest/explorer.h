/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * explorer.h - the explorer inside: what explore.c, lazy.c and compare.c share.
 */
#ifndef CRASHTEST_EXPLORER_H
#define CRASHTEST_EXPLORER_H

#include "crashtest/explore.h"

#define WRONG_MAX 4 /* states of a crash point: then it goes on with the next */

struct content {
    struct px86_choice choice;
    uint64_t hash;
    uint8_t bytes[LINE_SIZE];
};

/* A line that may have several contents, or just another than the image. */
struct choice {
    uint64_t at;
    uint32_t line;  /* of the model */
    uint32_t first; /* of `contents` */
    uint32_t count;
    uint32_t chosen; /* UINT32_MAX: as it was */
    uint64_t hash_before;
    uint8_t before[LINE_SIZE];
};

/* The outer level is the run, the inner one the recovery from one of its crashes. */
enum { RUN, RECOVERY, LEVELS };

/* One of the lines of a clause: that it has not this content, in these bytes. */
struct literal {
    uint32_t choice, content;
    uint64_t bytes;
};

/* Part of what a checksum is taken of. */
struct part {
    uint32_t choice;
    uint64_t bytes;
};

/* Which contents are left, and how that came about: see lazy.c. */
struct lazy {
    bool *alive, *saved; /* as the level's contents */
    uint32_t alive_capacity, saved_capacity;
    /* For each choice: */
    uint64_t *written; /* bytes that the judged code has stored to */
    uint64_t *varying; /* bytes in which its contents differ */
    uint64_t *open;    /* those of them that are not decided yet */
    uint32_t *wanted;  /* a content, so that all clauses hold */
    uint32_t choice_capacity;

    uint32_t *ways;  /* of one decision: contents, or clauses */
    uint32_t *table; /* of values, by hash */
    uint32_t way_capacity, table_capacity;
    struct literal *literals; /* clause after clause: one of each has to hold */
    uint32_t literal_count, literal_capacity;
    uint32_t *clause_ends;
    uint32_t clause_count, clause_capacity;
    struct cut {
        uint32_t killed_event, event;
    } * cuts; /* when a checksum may have been right */
    uint32_t cut_count, cut_capacity;
    struct summed {
        uint64_t offset, end, first_run;
    } * summed; /* ranges that a checksum is taken of together */
    uint32_t summed_count, summed_capacity;
    uint64_t summed_size;
    uint32_t *runs; /* for each byte of them: which run of stores was the last */
    uint32_t run_capacity;
    struct part *parts;
    uint32_t part_capacity;
    struct decision {
        uint32_t taken, count;
    } * path;
    uint32_t depth, length, path_capacity;
};

struct level {
    struct px86 px86;
    struct choice *choices;
    struct content *contents;
    struct px86_choice *scratch;
    uint32_t choice_count, choice_capacity;
    uint32_t *choice_of; /* by line of the model; valid where choices have that line */
    uint32_t choice_of_capacity;
    uint32_t content_count, content_capacity, scratch_capacity;
    struct trace *trace; /* of the recovery from a state of this level */
    struct lazy lazy;
    enum place_kind kind;
    size_t event;
};

/* Different ones, as hashes. */
struct verdicts {
    uint64_t *hashes;
    uint32_t count, capacity;
};

struct explorer {
    const struct subject *subject;
    const struct explore_options *options;
    struct level levels[LEVELS];
    struct crash crash;
    struct explore_count count;
    struct verdict verdict;
    uint64_t outcome; /* of the run's state that recovery is crashed of */
    enum pass pass;
    bool fell_short;   /* not all states of the point were visited */
    bool is_exploring; /* wrong states are findings */
    bool is_stopped;
    struct finding *findings;
    uint32_t finding_count, finding_capacity;
    uint32_t wrong;                  /* states of the point */
    unsigned watched;                /* level */
    bool is_rare;                    /* what is judged now */
    bool is_watched;                 /* the same: its loads are told of */
    struct verdicts eagerly, lazily; /* of a point that is compared */
    struct verdicts *compared;       /* the one that is added to; NULL: none */
    uint64_t hash;                   /* of the image as patched */
    uint64_t random;                 /* of the crash point of the run */
    uint64_t *seen;                  /* hashes, open addressing */
    uint64_t seen_count, seen_capacity;
    struct explore_point *points;
    uint32_t point_count, point_capacity;
    double end; /* of the time to explore */
};

static inline bool is_over(const struct explorer *x)
{
    return x->is_stopped || x->count.out_of_time;
}

/* More of the same would be wrong. */
static inline bool is_point_over(const struct explorer *x)
{
    return is_over(x) ||
           (x->wrong >= WRONG_MAX && !x->options->every_failure && !x->compared);
}

static inline uint32_t last_of(const struct level *level, uint32_t i)
{
    return level->choices[i].count - 1;
}

/* ---- explore.c ------------------------------------------------------------------- */

void *explorer_grow(void *memory, size_t needed, uint32_t *capacity, size_t size);
uint64_t explorer_budget(const struct explorer *x, const struct level *level);
uint64_t explorer_count_states(const struct level *level);
void explorer_visit_every(struct explorer *x, unsigned number);
void explorer_visit_at_best(struct explorer *x, unsigned number, bool all_fit);
void explorer_note_wrong(struct explorer *x, unsigned number);
void explorer_choose_all(struct explorer *x, struct level *level);
void explorer_count_state(struct explorer *x, unsigned number);
/* Is the state right? */
bool explorer_judge(struct explorer *x, unsigned number);
void explorer_visit_nested(struct explorer *x, bool was_killed);

/* ---- lazy.c ---------------------------------------------------------------------- */

/* Visits all states of the level. False: there are more, or loads cannot be watched. */
bool lazy_visit(struct explorer *x, unsigned number);
void lazy_finish(struct lazy *lazy);

/* ---- compare.c ------------------------------------------------------------------- */

void compare_visit(struct explorer *x, unsigned number, bool all_fit);
void compare_note(struct explorer *x); /* the verdict, while points are compared */
void compare_finish(struct explorer *x);

#endif
