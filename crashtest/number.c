/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/number.h"

/* 16: it is none. */
static unsigned digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return (unsigned)(c - '0');
    return c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 : 16;
}

bool number_take(const char **text, unsigned base, uint64_t most, uint64_t *number)
{
    const char *at = *text;
    unsigned digit;

    for (*number = 0; (digit = digit_of(*at)) < base; at++) {
        if (digit > most || *number > (most - digit) / base)
            return false;
        *number = *number * base + digit;
    }
    bool has_digits = at != *text;

    *text = at;
    return has_digits;
}

bool number_parse(const char *text, uint64_t most, uint64_t *number)
{
    return number_take(&text, 10, most, number) && *text == 0;
}
