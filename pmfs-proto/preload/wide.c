/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wide.c - wide characters on streams of ours. A stream of fopencookie(3) has no place
 * for them (libc gives it an address that is sure to crash), so these calls convert to
 * and from the bytes of the stream. What is pushed back is bytes, too; hence positions
 * are right at any time.
 */
#include "pmfs-proto/preload/preload.h"

#include <iconv.h>
#include <langinfo.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

/* ---- Orientation --------------------------------------------------------------- */

struct wide {
    iconv_t decode, encode;
};

enum {
    CODESET_MAX = 64,
    CHARACTER_MAX = 16, /* bytes that make one */
    SUBSTITUTE_MAX = 64 /* bytes of what is written instead of a character */
};

static const iconv_t no_iconv = (iconv_t)-1;

static void close_iconv(const struct wide *wide)
{
    if (wide->decode != no_iconv)
        iconv_close(wide->decode);
    if (wide->encode != no_iconv)
        iconv_close(wide->encode);
}

void wide_free(struct wide *wide)
{
    if (wide)
        close_iconv(wide);
    free(wide);
}

/* As libc's streams: a character that the codeset does not have is written as another. */
struct wide *wide_new_of(const char *codeset)
{
    char target[CODESET_MAX + 16];
    struct wide *wide;

    if (!*codeset || strlen(codeset) >= CODESET_MAX) {
        errno = EINVAL;
        return NULL;
    }
    wide = malloc(sizeof(*wide));
    if (!wide)
        return NULL;
    *wide = (struct wide){no_iconv, no_iconv};
    snprintf(target, sizeof(target), "%s//TRANSLIT", codeset);
    wide->decode = iconv_open("WCHAR_T", codeset);
    if (wide->decode != no_iconv)
        wide->encode = iconv_open(target, "WCHAR_T");
    if (wide->encode != no_iconv)
        return wide;
    wide_free(wide);
    return NULL;
}

/* Locks the stream if it is ours, and returns where its struct wide is; else NULL. */
static struct wide **lock(FILE *stream)
{
    struct wide **slot = stdio_wide(stream);

    if (slot)
        flockfile(stream);
    return slot;
}

/*
 * Orients the stream if nothing has; mode as of fwide(3). What libc knows of it is _mode:
 * 0, or -1 once bytes have been read or written, by anyone.
 */
static int orient(FILE *stream, struct wide **slot, int mode)
{
    if (!*slot && mode > 0 && stream->_mode == 0)
        *slot = wide_new_of(nl_langinfo(CODESET));
    else if (!*slot && mode < 0)
        stream->_mode = -1;
    return *slot ? 1 : stream->_mode;
}

INTERPOSE(int, fwide, (FILE * stream, int mode))
{
    struct wide **slot = lock(stream);
    int orientation;

    if (!slot)
        return REAL(fwide)(stream, mode);
    orientation = orient(stream, slot, mode);
    funlockfile(stream);
    return orientation;
}

/* Ends a call as one that failed. */
static wint_t fail(FILE *stream, int errnum)
{
    stream->_flags |= _IO_ERR_SEEN;
    errno = errnum;
    return WEOF;
}

/* ---- Reading ------------------------------------------------------------------- */

static void push_back(FILE *stream, const char *bytes, size_t count)
{
    while (count > 0)
        ungetc((unsigned char)bytes[--count], stream);
}

/* At the end, where `count` bytes stay unread if they are no character as yet. */
static wint_t end(FILE *stream, const char *bytes, size_t count)
{
    if (count > 0 && !ferror_unlocked(stream)) {
        push_back(stream, bytes, count);
        stream->_flags |= _IO_EOF_SEEN;
    }
    return WEOF;
}

/* One character. Bytes that are none stay unread. */
static wint_t get(FILE *stream, const struct wide *wide)
{
    char bytes[CHARACTER_MAX];
    size_t count = 0;
    int errnum = errno;

    while (count < sizeof(bytes)) {
        wchar_t found;
        char *in = bytes, *out = (char *)&found;
        size_t room = sizeof(found), left, rc;
        int byte = getc_unlocked(stream);

        if (byte == EOF)
            return end(stream, bytes, count);
        bytes[count++] = (char)byte;
        left = count;
        rc = iconv(wide->decode, &in, &left, &out, &room);
        if (room == 0) {
            push_back(stream, in, left);
            return (wint_t)found;
        }
        if (rc == (size_t)-1 && errno != EINVAL)
            break;
        errno = errnum;
        if (rc != (size_t)-1)
            count = 0; /* they were about those to come */
    }
    push_back(stream, bytes, count);
    return fail(stream, EILSEQ);
}

static wint_t get_from(FILE *stream, struct wide **slot)
{
    return orient(stream, slot, 1) > 0 ? get(stream, *slot) : WEOF;
}

INTERPOSE(wint_t, fgetwc, (FILE * stream))
{
    struct wide **slot = lock(stream);
    wint_t found;

    if (!slot)
        return REAL(fgetwc)(stream);
    found = get_from(stream, slot);
    funlockfile(stream);
    return found;
}
ALIAS(getwc, fgetwc);
ALIAS(fgetwc_unlocked, fgetwc);
ALIAS(getwc_unlocked, fgetwc);

INTERPOSE(wint_t, getwchar, (void))
{
    return fgetwc(stdin);
}
ALIAS(getwchar_unlocked, getwchar);

/* A line or a part of it, of at most `size` characters, and a zero; NULL: none. */
static wchar_t *get_line(FILE *stream, struct wide **slot, wchar_t *line, int size)
{
    int had_failed = stream->_flags & _IO_ERR_SEEN;
    int count = 0;
    wint_t found = 0;

    stream->_flags &= ~_IO_ERR_SEEN;
    while (count < size && found != L'\n') {
        found = get_from(stream, slot);
        if (found == WEOF)
            break;
        line[count++] = (wchar_t)found;
    }
    if (count == 0 || ferror_unlocked(stream))
        line = NULL;
    else
        line[count] = 0;
    stream->_flags |= had_failed;
    return line;
}

INTERPOSE(wchar_t *, fgetws, (wchar_t * line, int size, FILE *stream))
{
    struct wide **slot = size > 1 ? lock(stream) : NULL;

    if (!slot)
        return REAL(fgetws)(line, size, stream);
    line = get_line(stream, slot, line, size - 1);
    funlockfile(stream);
    return line;
}
ALIAS(fgetws_unlocked, fgetws);

wchar_t *__fgetws_chk(wchar_t *line, size_t room, int size, FILE *stream);
INTERPOSE(wchar_t *, __fgetws_chk,
          (wchar_t * line, size_t room, int size, FILE *stream))
{
    return stdio_wide(stream) && size > 0 && (size_t)size <= room
               ? fgetws(line, size, stream)
               : REAL(__fgetws_chk)(line, room, size, stream);
}
ALIAS(__fgetws_unlocked_chk, __fgetws_chk);

/* ---- Writing ------------------------------------------------------------------- */

/* Makes bytes of as many characters as there is room for; fewer than none: errno. */
static ssize_t encode(const struct wide *wide, const wchar_t **text, size_t *count,
                      char *bytes, size_t size)
{
    char *in = (char *)(uintptr_t)*text, *out = bytes;
    size_t left = *count * sizeof(wchar_t), room = size;
    size_t rc = iconv(wide->encode, &in, &left, &out, &room);

    *text = (const wchar_t *)(const void *)in;
    *count = left / sizeof(wchar_t);
    return rc == (size_t)-1 && room == size ? -1 : (ssize_t)(size - room);
}

/* By few calls of write(2), also where there is no buffer. */
static bool put(FILE *stream, const struct wide *wide, const wchar_t *text,
                size_t count)
{
    char bytes[4096];

    while (count > 0) {
        ssize_t size = encode(wide, &text, &count, bytes, sizeof(bytes));

        if (size < 0)
            return fail(stream, EILSEQ) != WEOF;
        if (fwrite_unlocked(bytes, 1, (size_t)size, stream) < (size_t)size)
            return false;
    }
    return true;
}

static bool put_to(FILE *stream, struct wide **slot, const wchar_t *text, size_t count)
{
    return orient(stream, slot, 1) > 0 && put(stream, *slot, text, count);
}

INTERPOSE(wint_t, fputwc, (wchar_t character, FILE *stream))
{
    struct wide **slot = lock(stream);
    bool good;

    if (!slot)
        return REAL(fputwc)(character, stream);
    good = put_to(stream, slot, &character, 1);
    funlockfile(stream);
    return good ? (wint_t)character : WEOF;
}
ALIAS(putwc, fputwc);
ALIAS(fputwc_unlocked, fputwc);
ALIAS(putwc_unlocked, fputwc);

INTERPOSE(wint_t, putwchar, (wchar_t character))
{
    return fputwc(character, stdout);
}
ALIAS(putwchar_unlocked, putwchar);

INTERPOSE(int, fputws, (const wchar_t *text, FILE *stream))
{
    struct wide **slot = lock(stream);
    bool good;

    if (!slot)
        return REAL(fputws)(text, stream);
    good = put_to(stream, slot, text, wcslen(text));
    funlockfile(stream);
    return good ? 1 : -1;
}
ALIAS(fputws_unlocked, fputws);

static wint_t unget(FILE *stream, const struct wide *wide, wchar_t character)
{
    char bytes[SUBSTITUTE_MAX];
    const wchar_t *text = &character;
    size_t count = 1;
    ssize_t size = encode(wide, &text, &count, bytes, sizeof(bytes));

    if (size < 0)
        return WEOF;
    push_back(stream, bytes, (size_t)size);
    return (wint_t)character;
}

INTERPOSE(wint_t, ungetwc, (wint_t character, FILE *stream))
{
    struct wide **slot = lock(stream);

    if (!slot)
        return REAL(ungetwc)(character, stream);
    character = character != WEOF && orient(stream, slot, 1) > 0
                    ? unget(stream, *slot, (wchar_t)character)
                    : WEOF;
    funlockfile(stream);
    return character;
}

/* ---- Formats ------------------------------------------------------------------- */

/* What was printed to a stream in memory goes to the stream. */
static int put_printed(FILE *stream, FILE *memory, wchar_t *const *text,
                       const size_t *count, int rc)
{
    struct wide **slot;

    if (fclose(memory) != 0 && rc >= 0)
        rc = -1;
    slot = rc >= 0 ? lock(stream) : NULL;
    if (slot) {
        rc = put_to(stream, slot, *text, *count) ? rc : -1;
        funlockfile(stream);
    }
    free(*text);
    return rc;
}

INTERPOSE(int, vfwprintf, (FILE * stream, const wchar_t *format, va_list args))
{
    wchar_t *text = NULL;
    size_t count;
    FILE *memory;

    if (!stdio_wide(stream))
        return REAL(vfwprintf)(stream, format, args);
    memory = open_wmemstream(&text, &count);
    return memory ? put_printed(stream, memory, &text, &count,
                                REAL(vfwprintf)(memory, format, args))
                  : -1;
}

int __vfwprintf_chk(FILE *stream, int flag, const wchar_t *format, va_list args);
INTERPOSE(int, __vfwprintf_chk,
          (FILE * stream, int flag, const wchar_t *format, va_list args))
{
    wchar_t *text = NULL;
    size_t count;
    FILE *memory;

    if (!stdio_wide(stream))
        return REAL(__vfwprintf_chk)(stream, flag, format, args);
    memory = open_wmemstream(&text, &count);
    return memory ? put_printed(stream, memory, &text, &count,
                                REAL(__vfwprintf_chk)(memory, flag, format, args))
                  : -1;
}

INTERPOSE(int, vwprintf, (const wchar_t *format, va_list args))
{
    return vfwprintf(stdout, format, args);
}

int __vwprintf_chk(int flag, const wchar_t *format, va_list args);
INTERPOSE(int, __vwprintf_chk, (int flag, const wchar_t *format, va_list args))
{
    return __vfwprintf_chk(stdout, flag, format, args);
}

/* The arguments after `last`, as `call` takes them in place of `args_`. */
#define WITH_ARGUMENTS(last, call)                                                     \
    do {                                                                               \
        va_list args_;                                                                 \
        int rc_;                                                                       \
        va_start(args_, last);                                                         \
        rc_ = call;                                                                    \
        va_end(args_);                                                                 \
        return rc_;                                                                    \
    } while (0)

INTERPOSE(int, fwprintf, (FILE * stream, const wchar_t *format, ...))
{
    WITH_ARGUMENTS(format, vfwprintf(stream, format, args_));
}

int __fwprintf_chk(FILE *stream, int flag, const wchar_t *format, ...);
INTERPOSE(int, __fwprintf_chk, (FILE * stream, int flag, const wchar_t *format, ...))
{
    WITH_ARGUMENTS(format, __vfwprintf_chk(stream, flag, format, args_));
}

INTERPOSE(int, wprintf, (const wchar_t *format, ...))
{
    WITH_ARGUMENTS(format, vfwprintf(stdout, format, args_));
}

int __wprintf_chk(int flag, const wchar_t *format, ...);
INTERPOSE(int, __wprintf_chk, (int flag, const wchar_t *format, ...))
{
    WITH_ARGUMENTS(format, __vfwprintf_chk(stdout, flag, format, args_));
}

/*
 * libc has these under several names, by the standard that a program is compiled for:
 * the header gives the plain one to another, and so it needs one that is not its own.
 */
typedef int scan_fn(FILE *stream, const wchar_t *format, va_list args);

static int scan(FILE *stream, const wchar_t *format, va_list args,
                scan_fn *(*real)(void))
{
    if (!stdio_wide(stream))
        return real()(stream, format, args);
    say_once(NOTICE_SCAN, "fwscanf and its kin cannot read files below %s",
             config_get()->prefix);
    fail(stream, EOPNOTSUPP);
    return EOF;
}

#define SCANNERS(id, names)                                                            \
    static scan_fn *real_##id(void)                                                    \
    {                                                                                  \
        static void *found;                                                            \
        void *real = __atomic_load_n(&found, __ATOMIC_ACQUIRE);                        \
        return (scan_fn *)(real ? real : real_find(&found, names "vfwscanf"));         \
    }                                                                                  \
    SCANNER(id##_vfwscanf, names "vfwscanf",                                           \
            (FILE * stream, const wchar_t *format, va_list args))                      \
    {                                                                                  \
        return scan(stream, format, args, real_##id);                                  \
    }                                                                                  \
    SCANNER(id##_fwscanf, names "fwscanf",                                             \
            (FILE * stream, const wchar_t *format, ...))                               \
    {                                                                                  \
        WITH_ARGUMENTS(format, scan(stream, format, args_, real_##id));                \
    }                                                                                  \
    SCANNER(id##_vwscanf, names "vwscanf", (const wchar_t *format, va_list args))      \
    {                                                                                  \
        return scan(stdin, format, args, real_##id);                                   \
    }                                                                                  \
    SCANNER(id##_wscanf, names "wscanf", (const wchar_t *format, ...))                 \
    {                                                                                  \
        WITH_ARGUMENTS(format, scan(stdin, format, args_, real_##id));                 \
    }

#define SCANNER(id, name, params)                                                      \
    int id params __asm__(name);                                                       \
    __attribute__((visibility("default"))) int id params

SCANNERS(gnu, "")
SCANNERS(c99, "__isoc99_")
SCANNERS(c23, "__isoc23_")
