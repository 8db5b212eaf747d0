/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * command.h - the command line that benchmarks share, and what follows from it: to
 * measure, print and store, or to print what is stored.
 *
 * All have --dir, --json, --render and --help; --quick and --rounds have those that
 * something is gained by. What has measured says at its end how long that took, "Took: N s".
 * Exit status: 0; 1 if it could not run; 2 for a wrong usage.
 */
#ifndef BENCH_COMMAND_H
#define BENCH_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/table.h"

/* What was chosen. A benchmark's own struct begins with it, if it has more to choose. */
struct bench_options {
    bool is_quick;
    size_t rounds;
    const char *directory;
    const char *json_path; /* NULL: none */
};

/* One that only this benchmark has. */
struct bench_option {
    const char *name;  /* NULL ends the list */
    const char *value; /* what --help calls its value; NULL: it has none */
    const char *help;
    int (*set)(void *options, const char *value); /* negative: not understood */
};

struct bench_command {
    const char *name; /* of the program */
    const char *about;
    const char *quick;                  /* what --quick does; NULL: there is none */
    size_t rounds, quick_rounds;        /* unless told; 0: there are none */
    const struct bench_option *options; /* NULL: none */
    /* What of the options does not go together, in words; NULL: all does. May be NULL. */
    const char *(*contradiction)(const void *options);
    const char *room; /* that its files take */
    const struct column *columns;
    size_t column_count;
    /* Scratch files are possible. 0 or a negative errno. */
    int (*measure)(const void *options, struct table *results);
    int (*print_bars)(const struct table *results, enum table_format format);
    /* NULL: the table, and the bars if there are any. */
    int (*print)(const struct table *results, enum table_format format);
};

/* Of main(). `options`: a struct bench_options, or one that begins with it. */
int bench_main(const struct bench_command *command, void *options, int argc,
               char **argv);

/* For an option's `set`. 0, or -EINVAL if the text is no number from `low` to `high`. */
int bench_parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *number);

/*
 * For a `measure`: what the figures depend on, a line each, "Medium: " among them if it is
 * not NULL.
 */
void bench_print_setup(const struct bench_options *options, const char *medium,
                       const char *reason);

/* What a bar's line begins with. */
const char *bench_bullet(enum table_format format);

#endif
