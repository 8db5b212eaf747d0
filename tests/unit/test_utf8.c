/* SPDX-License-Identifier: BSD-3-Clause */
/* Names may be any bytes; a terminal gets nothing that it would obey. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

#include "libminl2r/tools/utf8.h"

static void assert_escaped(const char *bytes, const char *expected)
{
    char text[256];

    utf8_escape(bytes, strlen(bytes), text);
    assert_string_equal(text, expected);
}

static void characters_are_shown_as_they_are(void **state)
{
    (void)state;
    assert_escaped("plain name", "plain name");
    assert_escaped("\xc2\xa0\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\xb5",
                   "\xc2\xa0\xc3\xa4\xe2\x82\xac\xf0\x9f\x8c\xb5");
}

static void what_a_terminal_obeys_is_escaped(void **state)
{
    (void)state;
    assert_escaped("a\nb\x1b[2Jc\x7f", "a\\x0ab\\x1b[2Jc\\x7f");
    assert_escaped("\xc2\x80\xc2\x9b"
                   "2J\xc2\x9f",
                   "\\xc2\\x80\\xc2\\x9b2J\\xc2\\x9f");
    assert_escaped("\\x0a", "\\x5cx0a");
}

static void bytes_that_are_no_characters_are_escaped(void **state)
{
    (void)state;
    assert_escaped("\x9b\xff", "\\x9b\\xff");
    assert_escaped("\xc3", "\\xc3");
    assert_escaped("\xe2\x82", "\\xe2\\x82");
    assert_escaped("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

/* A name on media ends without a NUL. */
static void nothing_behind_the_name_is_read(void **state)
{
    char text[16];

    (void)state;
    utf8_escape("\xc3\xa4", 1, text);
    assert_string_equal(text, "\\xc3");
}

static char *printed(void (*print)(FILE *out, const char *text), const char *text)
{
    static char said[256];
    FILE *out = fmemopen(said, sizeof(said), "w");

    assert_non_null(out);
    print(out, text);
    fclose(out);
    return said;
}

static void a_printed_path_keeps_its_backslashes(void **state)
{
    (void)state;
    assert_string_equal(printed(utf8_print, "/a\\b\n\xc3\xa4\xc2\x9b"),
                        "/a\\b\\x0a\xc3\xa4\\xc2\\x9b");
}

static void printed_json_has_no_controls(void **state)
{
    (void)state;
    assert_string_equal(printed(utf8_print_json, "\"\xc3\xa4\xff\x7f\xc2\x9b\""),
                        "\"\xc3\xa4\\ufffd\\u007f\\u009b\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_are_shown_as_they_are),
        cmocka_unit_test(what_a_terminal_obeys_is_escaped),
        cmocka_unit_test(bytes_that_are_no_characters_are_escaped),
        cmocka_unit_test(nothing_behind_the_name_is_read),
        cmocka_unit_test(a_printed_path_keeps_its_backslashes),
        cmocka_unit_test(printed_json_has_no_controls),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
