/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.h - names, paths and what lies on media may be any bytes; JSON is UTF-8. */
#ifndef MINL2R_UTF8_H
#define MINL2R_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The bytes of the character that `text` begins with; 0: it is none (RFC 3629). */
static inline size_t utf8_length(const char *text)
{
    const unsigned char *byte = (const unsigned char *)text;
    unsigned lead = byte[0];
    size_t length = lead < 0x80   ? 1
                    : lead < 0xc2 ? 0
                    : lead < 0xe0 ? 2
                    : lead < 0xf0 ? 3
                    : lead < 0xf5 ? 4
                                  : 0;

    for (size_t i = 1; i < length; i++)
        if ((byte[i] & 0xc0) != 0x80)
            return 0;
    bool too_long =
        (lead == 0xe0 && byte[1] < 0xa0) || (lead == 0xf0 && byte[1] < 0x90);
    bool too_high =
        (lead == 0xed && byte[1] > 0x9f) || (lead == 0xf4 && byte[1] > 0x8f);

    return too_long || too_high ? 0 : length;
}

/*
 * Text that a terminal can be shown: what it would obey, and backslashes, become \xNN.
 * `text` has room for 4 * size + 1 bytes.
 */
static inline void utf8_escape(const char *bytes, size_t size, char *text)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c < ' ' || c == 127 || c == '\\')
            text += sprintf(text, "\\x%02x", c);
        else
            *text++ = (char)c;
    }
    *text = '\0';
}

/* Prints JSON, with U+FFFD in place of each byte that is no UTF-8. */
static inline void utf8_print_json(FILE *out, const char *json)
{
    while (*json != '\0') {
        size_t length = utf8_length(json);

        if (length > 0)
            fwrite(json, 1, length, out);
        else
            fputs("\\ufffd", out);
        json += length > 0 ? length : 1;
    }
}

#endif
