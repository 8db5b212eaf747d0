/* SPDX-License-Identifier: BSD-3-Clause */
/* number.h - numbers of options and of ids: digits, and nothing else. */
#ifndef CRASHTEST_NUMBER_H
#define CRASHTEST_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The number that `*text` begins with, in base 10 or 16, and moves behind it. False: it
 * begins with something else, such as a sign or a space, or the number is above `most`.
 */
bool number_take(const char **text, unsigned base, uint64_t most, uint64_t *number);

/* The same of all of `text`, in base 10. */
bool number_parse(const char *text, uint64_t most, uint64_t *number);

#endif
