/* SPDX-License-Identifier: BSD-3-Clause */
/* size.h - sizes, and other numbers, as the command line tools take them. */
#ifndef MINL2R_SIZE_H
#define MINL2R_SIZE_H

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The power of two of a suffix, or -1. */
static inline int size_suffix_shift(const char *suffix)
{
    static const char suffixes[] = "KMGT";

    if (*suffix == '\0')
        return 0;
    const char *found = strchr(suffixes, toupper((unsigned char)*suffix));

    return found && suffix[1] == '\0' ? 10 * (int)(found - suffixes + 1) : -1;
}

/* A number, decimal or 0x..., with an optional suffix K, M, G or T (powers of 1024). */
static inline bool size_parse(const char *text, uint64_t *size)
{
    bool hexadecimal = strncmp(text, "0x", 2) == 0;
    char *end;

    errno = 0;
    uint64_t number = strtoull(text, &end, hexadecimal ? 16 : 10);
    int shift = size_suffix_shift(end);

    if (errno != 0 || *text < '0' || *text > '9' || shift < 0 ||
        number > UINT64_MAX >> shift)
        return false;
    *size = number << shift;
    return true;
}

#endif
