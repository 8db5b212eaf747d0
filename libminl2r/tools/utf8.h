/* SPDX-License-Identifier: BSD-3-Clause */
/* utf8.h - names, paths and what lies on media may be any bytes; JSON is UTF-8. */
#ifndef MINL2R_UTF8_H
#define MINL2R_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

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
 * Does text begin with one of U+0080 to U+009F, by which terminals are controlled, too?
 */
static inline bool utf8_is_c1(const char *text)
{
    return (unsigned char)text[0] == 0xc2 && (unsigned char)text[1] >= 0x80 &&
           (unsigned char)text[1] < 0xa0;
}

/*
 * The bytes of the character that `bytes` begin with, if a terminal can be shown it; 0
 * if it would obey it (C0, DEL, C1), or if it is no character.
 */
static inline size_t utf8_printable_length(const char *bytes, size_t size)
{
    char text[4 + 1] = "";
    unsigned char lead = (unsigned char)bytes[0];

    if (lead < ' ' || lead == 127)
        return 0;
    for (size_t i = 0; i < size && i < 4; i++)
        text[i] = bytes[i];
    return utf8_is_c1(text) ? 0 : utf8_length(text);
}

/*
 * Text that a terminal can be shown: each byte of what it cannot, and a backslash,
 * becomes \xNN. `text` has room for 4 * size + 1 bytes.
 */
static inline void utf8_escape(const char *bytes, size_t size, char *text)
{
    for (size_t i = 0, length; i < size; i += length ? length : 1) {
        length = bytes[i] == '\\' ? 0 : utf8_printable_length(bytes + i, size - i);
        if (length == 0)
            text += sprintf(text, "\\x%02x", (unsigned char)bytes[i]);
        for (size_t j = 0; j < length; j++)
            *text++ = bytes[i + j];
    }
    *text = '\0';
}

/* Prints text, such as a path, as utf8_escape() makes it; but a backslash is itself. */
static inline void utf8_print(FILE *out, const char *text)
{
    size_t size = strlen(text);

    for (size_t i = 0, length; i < size; i += length ? length : 1) {
        length = utf8_printable_length(text + i, size - i);
        if (length > 0)
            fwrite(text + i, 1, length, out);
        else
            fprintf(out, "\\x%02x", (unsigned char)text[i]);
    }
}

/*
 * Prints JSON, with U+FFFD in place of each byte that is no UTF-8, and without what a
 * terminal would obey: of that, cJSON leaves DEL and C1, which are in strings.
 */
static inline void utf8_print_json(FILE *out, const char *json)
{
    while (*json != '\0') {
        size_t length = utf8_length(json);

        if (length == 0)
            fputs("\\ufffd", out);
        else if (*json == 127 || utf8_is_c1(json))
            fprintf(out, "\\u%04x", (unsigned char)json[length - 1]);
        else
            fwrite(json, 1, length, out);
        json += length > 0 ? length : 1;
    }
}

#endif
