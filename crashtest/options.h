/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h - the command line of programs under test, as far as the command crashtest
 * has the same.
 */
#ifndef CRASHTEST_OPTIONS_H
#define CRASHTEST_OPTIONS_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "crashtest/explore.h"

enum {
    OPTION_STRATEGY = 1,
    OPTION_BUDGET,
    OPTION_NESTED,
    OPTION_NO_KILL,
    OPTION_SECONDS,
    OPTION_SEED,
    OPTION_OWN /* the first of the others */
};

/* For getopt_long(). */
/* clang-format off */
#define OPTIONS_OF_EXPLORER \
    {"strategy", required_argument, NULL, OPTION_STRATEGY}, \
    {"budget", required_argument, NULL, OPTION_BUDGET}, \
    {"nested", required_argument, NULL, OPTION_NESTED}, \
    {"no-kill", no_argument, NULL, OPTION_NO_KILL}, \
    {"seconds", required_argument, NULL, OPTION_SECONDS}, \
    {"seed", required_argument, NULL, OPTION_SEED}
/* clang-format on */

/* What --help says of the strategies. */
void options_print_strategies(void);

/* False: it is not one of these, or not understood. */
bool options_parse(struct explore_options *explore, int option, const char *text);

/* What one of these takes: "a number from 1". */
const char *options_take(int option);

/* The value of a macro that is a number, as text. */
#define OPTIONS_TEXT(number) OPTIONS_TEXT_OF(number)
#define OPTIONS_TEXT_OF(number) #number

/* Says on standard error that the option's value is not understood, and what it takes.
 */
void options_refuse(const char *command, const char *option, const char *text,
                    const char *takes);

/* A number from 1 to `most`. */
bool options_parse_count(const char *text, unsigned most, unsigned *number);

/* Whether reports can be written, before anything is tried. False, and said on standard
 * error: they cannot. NULL: there is none to write. */
bool options_can_write(const char *command, const char *json, const char *html);

/* False, and said on standard error: standard output cannot be written. */
bool options_flush(const char *command);

#endif
