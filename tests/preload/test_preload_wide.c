/* SPDX-License-Identifier: BSD-3-Clause */
/* test_preload_wide.c - wide characters on streams, and where streams begin. */
#include "tests/preload/sides.h"

#include <dlfcn.h>
#include <locale.h>
#include <wchar.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Of one character; what there is none of is -1, and why. */
#define TRY_WIDE(call) TRY((int)(call))

static const char *const locales[] = {"C", "C.UTF-8"};

/* Runs it once in each locale. */
static void in_locales(void (*run)(void))
{
    for (size_t i = 0; i < COUNT(locales); i++) {
        note("locale %s", locales[i]);
        assert_non_null(setlocale(LC_ALL, locales[i]));
        run();
    }
    setlocale(LC_ALL, "C");
}

static void put_bytes(const char *name, const char *bytes, size_t size)
{
    FILE *stream = fopen(path(name), "w");

    assert_int_equal(fwrite(bytes, 1, size, stream), size);
    fclose(stream);
}

static void note_line(const wchar_t *line)
{
    for (; line && *line; line++)
        note("  %lx", (unsigned long)*line);
}

/* ---- Reading --------------------------------------------------------------------- */

wint_t getwchar_unlocked(void);

static void read_characters(void)
{
    static const char *const texts[] = {
        "abc\n",    "h\303\251\342\202\254\360\237\230\200\n",
        "a\377b",   "a\303",
        "a\303\nb", "",
        "\200"};
    wint_t (*const gets[])(FILE *) = {fgetwc, getwc, fgetwc_unlocked, getwc_unlocked};

    for (size_t i = 0; i < COUNT(texts); i++) {
        put_bytes("file", texts[i], strlen(texts[i]));

        FILE *stream = TRY_POINTER(fopen(path("file"), "r"));

        note("text %zu", i);
        TRY(fwide(stream, 0));
        for (int j = 0; j < 8; j++) {
            if (TRY_WIDE(gets[j % 4](stream)) < 0 && errno == EILSEQ)
                clearerr(stream);
            note("  feof %d ferror %d", !!feof(stream), !!ferror(stream));
        }
        TRY(fwide(stream, 0) > 0);
        TRY(fwide(stream, -1) > 0);
        fclose(stream);
    }
}

static void reading_characters(void)
{
    in_locales(read_characters);
}

wchar_t *__fgetws_chk(wchar_t *line, size_t room, int size, FILE *stream);

static void read_lines(void)
{
    static const char text[] = "one\n\303\266\303\266\n\nlong line\nbad \377 one\nend";
    static const int sizes[] = {-1, 0, 1, 2, 5, 64};
    wchar_t line[64];

    put_bytes("file", text, sizeof(text) - 1);
    for (size_t i = 0; i < COUNT(sizes); i++) {
        FILE *stream = TRY_POINTER(fopen(path("file"), "r"));

        note("size %d", sizes[i]);
        for (int j = 0; j < 12; j++) {
            memset(line, 0, sizeof(line));
            TRY_POINTER(fgetws(line, sizes[i], stream));
            note_line(line);
            if (ferror(stream))
                break;
        }
        note("feof %d ferror %d at %ld", !!feof(stream), !!ferror(stream),
             ftell(stream));
        fclose(stream);
    }
    FILE *stream = fopen(path("file"), "r");

    TRY_POINTER(fgetws_unlocked(line, 64, stream));
    note_line(line);
    TRY_POINTER(__fgetws_chk(line, 64, 5, stream));
    fclose(stream);
}

static void reading_lines(void)
{
    in_locales(read_lines);
}

static void pushing_back(void)
{
    FILE *stream;

    setlocale(LC_ALL, "C.UTF-8");
    put("file", "\303\244bc");
    stream = fopen(path("file"), "r");
    TRY_WIDE(ungetwc(L'x', stream));
    TRY_WIDE(fgetwc(stream));
    TRY_WIDE(fgetwc(stream));
    TRY_WIDE(ungetwc(0xe4, stream));
    TRY_WIDE(ungetwc(WEOF, stream));
    TRY(ftell(stream));
    TRY_WIDE(fgetwc(stream));
    TRY_WIDE(fgetwc(stream));
    TRY_WIDE(fgetwc(stream));
    TRY_WIDE(fgetwc(stream));
    TRY(feof(stream) != 0);
    TRY_WIDE(ungetwc(0x20ac, stream));
    TRY(feof(stream) != 0);
    TRY_WIDE(fgetwc(stream));
    TRY_WIDE(fgetwc(stream));
    fclose(stream);
    setlocale(LC_ALL, "C");
}

/* Positions are of bytes. */
static void seeking(void)
{
    FILE *stream;
    long at;

    setlocale(LC_ALL, "C.UTF-8");
    put("file", "a\303\244\342\202\254bcdef\n");
    stream = fopen(path("file"), "r+");
    for (int i = 0; i < 4; i++) {
        TRY_WIDE(fgetwc(stream));
        at = TRY(ftell(stream));
    }
    rewind(stream);
    TRY_WIDE(fgetwc(stream));
    TRY(fseek(stream, 3, SEEK_SET));
    TRY_WIDE(fgetwc(stream));
    TRY(fseek(stream, at, SEEK_SET));
    TRY_WIDE(fgetwc(stream));
    TRY(fseek(stream, 0, SEEK_END));
    TRY_WIDE(fputwc(0xfc, stream));
    TRY(ftell(stream));
    TRY(fseek(stream, 0, SEEK_SET));
    TRY_WIDE(fputwc(L'A', stream));
    fclose(stream);
    note_content("file");
    setlocale(LC_ALL, "C");
}

/* ---- Writing --------------------------------------------------------------------- */

static void write_characters(void)
{
    static const wchar_t text[] = {L'a', 0xe9, 0x20ac, 0x1f600, 0xab, 0xbd, L'\n', 0};
    wint_t (*const puts[])(wchar_t, FILE *) = {fputwc, putwc, fputwc_unlocked,
                                               putwc_unlocked};
    FILE *stream = TRY_POINTER(fopen(path("file"), "w"));

    for (size_t i = 0; i < COUNT(text); i++)
        TRY_WIDE(puts[i % 4](text[i], stream));
    TRY(fputws(text, stream) >= 0);
    TRY(fputws_unlocked(text, stream) >= 0);
    TRY(fputws(L"", stream) >= 0);
    TRY(fwide(stream, 0) > 0);
    TRY(fflush(stream));
    note_content("file");
    TRY(fclose(stream));
    stream = TRY_POINTER(fopen(path("file"), "r"));
    TRY_WIDE(fputwc(L'x', stream));
    TRY(ferror(stream) != 0);
    fclose(stream);
}

static void writing_characters(void)
{
    in_locales(write_characters);
}

/* Some of the text is longer than what is converted at once. */
static void writing_much(void)
{
    enum { LENGTH = 10000 };
    static wchar_t text[LENGTH + 1];
    static wchar_t found[LENGTH + 1];
    FILE *stream;

    setlocale(LC_ALL, "C.UTF-8");
    for (int i = 0; i < LENGTH; i++)
        text[i] = (wchar_t)(i % 3 == 0 ? 0x20ac + i : L'a' + i % 26);
    stream = fopen(path("file"), "w+");
    setvbuf(stream, NULL, _IONBF, 0);
    TRY(fputws(text, stream) >= 0);
    TRY(fflush(stream));
    TRY(ftell(stream));
    rewind(stream);
    TRY_POINTER(fgetws(found, LENGTH + 1, stream));
    TRY(wcscmp(text, found));
    fclose(stream);
    setlocale(LC_ALL, "C");
}

static int print_to(FILE *stream, const wchar_t *format, ...)
{
    va_list args;
    int rc;

    va_start(args, format);
    rc = vfwprintf(stream, format, args);
    va_end(args);
    return rc;
}

int __fwprintf_chk(FILE *stream, int flag, const wchar_t *format, ...);
int __vfwprintf_chk(FILE *stream, int flag, const wchar_t *format, va_list args);

static int print_checked(FILE *stream, const wchar_t *format, ...)
{
    va_list args;
    int rc;

    va_start(args, format);
    rc = __vfwprintf_chk(stream, 1, format, args);
    va_end(args);
    return rc;
}

static void print(void)
{
    FILE *stream = TRY_POINTER(fopen(path("file"), "w"));

    TRY(fwprintf(stream, L"%d %ls %s %lc\n", 7, L"w\x00f6", "bytes", 0xe4));
    TRY(print_to(stream, L"%5.2f|%-8ls|\n", 1.5, L"left"));
    TRY(__fwprintf_chk(stream, 1, L"%x\n", 255));
    TRY(print_checked(stream, L"%o\n", 8));
    TRY(fwprintf(stream, L""));
    TRY(fwprintf(stream, L"%s\n", "\377"));
    TRY(fclose(stream));
    note_content("file");
    stream = fopen(path("file"), "r");
    TRY(fwprintf(stream, L"x"));
    fclose(stream);
}

static void printing(void)
{
    in_locales(print);
}

/* ---- Standard streams ------------------------------------------------------------ */

static int print_out(const wchar_t *format, ...)
{
    va_list args;
    int rc;

    va_start(args, format);
    rc = vwprintf(format, args);
    va_end(args);
    return rc;
}

int __wprintf_chk(int flag, const wchar_t *format, ...);
int __vwprintf_chk(int flag, const wchar_t *format, va_list args);

static int print_out_checked(const wchar_t *format, ...)
{
    va_list args;
    int rc;

    va_start(args, format);
    rc = __vwprintf_chk(1, format, args);
    va_end(args);
    return rc;
}

static void standard_streams(void)
{
    int kept_out = dup(STDOUT_FILENO), kept_in = dup(STDIN_FILENO);
    FILE *stream;

    setlocale(LC_ALL, "C.UTF-8");
    stream = freopen(path("out"), "w", stdout);
    TRY(stream != NULL);
    TRY_WIDE(putwchar(0xe4));
    TRY_WIDE(putwchar_unlocked(L'b'));
    TRY(wprintf(L"%ls\n", L"text"));
    TRY(print_out(L"%d\n", 1));
    TRY(__wprintf_chk(1, L"%d\n", 2));
    TRY(print_out_checked(L"%d\n", 3));
    fflush(stdout);
    stream = freopen(path("out"), "r", stdin);
    TRY(stream != NULL);
    TRY_WIDE(getwchar());
    TRY_WIDE(getwchar_unlocked());
    TRY_WIDE(getwchar());
    TRY(dup2(kept_out, STDOUT_FILENO) >= 0);
    TRY(dup2(kept_in, STDIN_FILENO) >= 0);
    close(kept_out);
    close(kept_in);
    note_content("out");
    setlocale(LC_ALL, "C");
}

/* ---- Modes ----------------------------------------------------------------------- */

static void codesets(void)
{
    static const char *const modes[] = {"r,ccs=UTF-8", "r,ccs=ISO-8859-1", "r,ccs=none",
                                        "r,ccs=", "re,ccs=UTF-8,ccs=none"};

    for (size_t i = 0; i < COUNT(modes); i++) {
        put("file", "\303\244x");

        FILE *stream = TRY_POINTER(fopen(path("file"), modes[i]));

        note("mode %s", modes[i]);
        if (!stream)
            continue;
        TRY(fwide(stream, 0) > 0);
        TRY_WIDE(fgetwc(stream));
        TRY_WIDE(fgetwc(stream));
        TRY_WIDE(fgetwc(stream));
        fclose(stream);
    }
    FILE *stream = TRY_POINTER(fopen(path("latin"), "w,ccs=ISO-8859-1"));

    TRY_WIDE(fputwc(0xe4, stream));
    fclose(stream);
    note_name("latin");
    note_content("latin");
}

/* Where a stream begins, and where it stands after each step. */
static void appending(void)
{
    static const char *const modes[] = {"a", "a+", "ab", "ab+", "a+b", "ae", "ae+"};

    for (size_t i = 0; i < COUNT(modes); i++)
        for (int by_fd = 0; by_fd < 2; by_fd++) {
            put("file", "0123");

            int fd = by_fd ? open(path("file"), O_RDWR) : -1;
            FILE *stream = TRY_POINTER(by_fd ? fdopen(fd, modes[i])
                                             : fopen(path("file"), modes[i]));

            note("mode %s by descriptor %d", modes[i], by_fd);
            TRY(lseek(fileno(stream), 0, SEEK_CUR));
            TRY(ftell(stream));
            TRY(getc(stream));
            clearerr(stream);
            TRY(fseek(stream, 0, SEEK_CUR));
            TRY(ftell(stream));
            TRY(fputs("45", stream) >= 0);
            TRY(ftell(stream));
            TRY(fflush(stream));
            TRY(ftell(stream));
            TRY(fseek(stream, 1, SEEK_SET));
            TRY(getc(stream));
            clearerr(stream);
            TRY(fseek(stream, 0, SEEK_CUR));
            TRY(fputs("6", stream) >= 0);
            TRY(ftell(stream));
            TRY(fclose(stream));
            note_content("file");
        }
}

/* A stream that is opened again has no orientation. */
static void reopening(void)
{
    FILE *stream = fopen(path("file"), "w");

    TRY(fwide(stream, 1) > 0);
    stream = TRY_POINTER(freopen(path("other"), "w", stream));
    TRY(fwide(stream, 0));
    TRY(fwide(stream, -1) < 0);
    TRY_WIDE(fputwc(L'x', stream));
    TRY_WIDE(fgetwc(stream));
    TRY(fputws(L"x", stream) < 0);
    TRY(fwprintf(stream, L"x") < 0);
    TRY(fputs("y", stream) >= 0);
    stream = TRY_POINTER(freopen(path("latin"), "w,ccs=ISO-8859-1", stream));
    TRY_WIDE(fputwc(0xe4, stream));
    TRY(fclose(stream));
    note_content("other");
    note_content("latin");
}

/* ---- Bytes first ----------------------------------------------------------------- */

static void use_bytes(FILE *stream, int way)
{
    char text[16];

    switch (way) {
    case 0:
        TRY(fputc('a', stream));
        break;
    case 1:
        TRY(putc_unlocked('a', stream));
        break;
    case 2:
        TRY(fputs("abc", stream) >= 0);
        break;
    case 3:
        TRY(fwrite("abc", 1, 3, stream));
        break;
    case 4:
        TRY(fprintf(stream, "%d", 12));
        break;
    case 5:
        TRY(fgetc(stream));
        break;
    case 6:
        TRY(fgets(text, sizeof(text), stream) != NULL);
        break;
    case 7:
        TRY(fread(text, 1, 3, stream));
        break;
    case 8:
        TRY(fscanf(stream, "%2s", text));
        break;
    case 9:
        TRY(fflush(stream));
        break;
    case 10:
        TRY(setvbuf(stream, NULL, _IONBF, 0));
        TRY(fputc('a', stream));
        break;
    default:
        break;
    }
}

/* Whatever touched a stream decides what it is for. ungetc() or fseek()
 * first, and then wide characters, is nothing to compare with: libc corrupts its heap. */
static void bytes_before_characters(void)
{
    for (int way = 0; way < 12; way++) {
        put_bytes("file", "text\nmore\n", 10);

        FILE *stream = fopen(path("file"), "r+");

        note("way %d", way);
        TRY(fwide(stream, 0));
        use_bytes(stream, way);
        TRY(fwide(stream, 0));
        if (TRY(fwide(stream, 1) < 0))
            TRY(fseek(stream, 0, SEEK_CUR));
        TRY_WIDE(fputwc(L'x', stream));
        TRY(fwprintf(stream, L"%d", 34));
        TRY(fputws(L"y", stream) >= 0);
        note("  feof %d ferror %d", !!feof(stream), !!ferror(stream));
        TRY(fclose(stream));
        note_content("file");
    }
}

/* To be used otherwise, on the same file and on another one, and out and in again. */
static void reopening_otherwise(void)
{
    static const char *const modes[] = {"r", "r+", "w", "w+", "a", "a+", "re", "r+"};

    for (size_t i = 0; i < COUNT(modes); i++)
        for (size_t j = 0; j < 2 * COUNT(modes); j++) {
            const char *mode = modes[j % COUNT(modes)];
            char text[32] = "";

            put_bytes("file", "first text\n", 11);
            put_bytes("other", "other text\n", 11);

            FILE *stream = fopen(path("file"), modes[i]);

            note("%s, then %s", modes[i], mode);
            TRY(fputs("put", stream) >= 0);
            TRY(fgetc(stream));
            stream = TRY_POINTER(
                freopen(j < COUNT(modes) ? NULL : path("other"), mode, stream));
            assert_non_null(stream);
            note("  feof %d ferror %d", !!feof(stream), !!ferror(stream));
            TRY(ftell(stream));
            TRY(fputs("again", stream) >= 0);
            TRY(fflush(stream));
            TRY(fseek(stream, 1, SEEK_SET));
            TRY(fgets(text, sizeof(text), stream) != NULL);
            note("  text %s", text);
            TRY(fcntl(fileno(stream), F_GETFL));
            TRY(fcntl(fileno(stream), F_GETFD));
            TRY(fclose(stream));
            note_content("file");
            note_content("other");
        }
}

/* Out of the pool and into it. */
static void reopening_elsewhere(void)
{
    char outside[PATH_MAX], text[32] = "";
    FILE *stream = fopen(path("file"), "w+");

    snprintf(outside, sizeof(outside), "%s/outside", getenv("WORK"));
    TRY(fputs("inside", stream) >= 0);
    stream = TRY_POINTER(freopen(outside, "w", stream));
    TRY(fputs("outside", stream) >= 0);
    stream = TRY_POINTER(freopen(outside, "r", stream));
    TRY(fgets(text, sizeof(text), stream) != NULL);
    note("%s", text);
    stream = TRY_POINTER(freopen(path("back"), "w", stream));
    TRY(fputs("back", stream) >= 0);
    TRY(fclose(stream));
    note_content("file");
    note_content("back");
    unlink(outside);
}

#define CASES(X)                                                                       \
    X(reading_characters)                                                              \
    X(reading_lines)                                                                   \
    X(pushing_back)                                                                    \
    X(seeking)                                                                         \
    X(writing_characters)                                                              \
    X(writing_much)                                                                    \
    X(printing)                                                                        \
    X(standard_streams)                                                                \
    X(codesets)                                                                        \
    X(appending)                                                                       \
    X(reopening)                                                                       \
    X(bytes_before_characters)                                                         \
    X(reopening_otherwise)                                                             \
    X(reopening_elsewhere)

CASES(TEST_FUNCTION)

/* ---- What is refused ------------------------------------------------------------- */

typedef int scan_fn(FILE *stream, const wchar_t *format, ...);
typedef int scan_in_fn(const wchar_t *format, ...);
typedef int vscan_fn(FILE *stream, const wchar_t *format, va_list args);
typedef int vscan_in_fn(const wchar_t *format, va_list args);

/* By any of its names, and with its arguments. */
static int call_scan(const char *name, FILE *stream, const wchar_t *format, ...)
{
    void *call = dlsym(RTLD_DEFAULT, name);
    va_list args;
    int rc;

    assert_non_null(call);
    va_start(args, format);
    rc = strstr(name, "vf") ? ((vscan_fn *)call)(stream, format, args)
                            : ((vscan_in_fn *)call)(format, args);
    va_end(args);
    return rc;
}

static void scans_fail_and_do_not_crash(void **state)
{
    static const char *const names[] = {"vfwscanf",          "vwscanf",
                                        "__isoc99_vfwscanf", "__isoc99_vwscanf",
                                        "__isoc23_vfwscanf", "__isoc23_vwscanf"};
    static const char *const variadic[] = {"fwscanf",          "wscanf",
                                           "__isoc99_fwscanf", "__isoc99_wscanf",
                                           "__isoc23_fwscanf", "__isoc23_wscanf"};
    int kept = dup(STDIN_FILENO), number = 0;
    FILE *ours = fopen("/pmfs/numbers", "w+"), *other = tmpfile();

    (void)state;
    dprintf(fileno(ours), "1 2 3 4");
    dprintf(fileno(other), "1 2 3 4");
    rewind(other);
    assert_int_equal(fwscanf(other, L"%d", &number), 1);
    assert_int_equal(number, 1);
    assert_int_equal(call_scan("vfwscanf", other, L"%d", &number), 1);
    assert_int_equal(number, 2);
    assert_non_null(freopen("/pmfs/numbers", "r", stdin));
    for (size_t i = 0; i < COUNT(names); i++) {
        errno = 0;
        assert_int_equal(call_scan(names[i], ours, L"%d", &number), EOF);
        assert_int_equal(errno, EOPNOTSUPP);
        assert_int_not_equal(ferror(i % 2 ? stdin : ours), 0);

        void *call = dlsym(RTLD_DEFAULT, variadic[i]);

        errno = 0;
        assert_int_equal(i % 2 ? ((scan_in_fn *)call)(L"%d", &number)
                               : ((scan_fn *)call)(ours, L"%d", &number),
                         EOF);
        assert_int_equal(errno, EOPNOTSUPP);
    }
    dup2(kept, STDIN_FILENO);
    close(kept);
    fclose(ours);
    fclose(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASES(TEST_ENTRY) cmocka_unit_test(scans_fail_and_do_not_crash)};

    umask(022);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
