/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/harness.h"
#include "bench/table.h"
#include "bench/tx/sequence.h"

/* ---- harness --------------------------------------------------------------------- */

static void median_of_an_odd_count_is_the_middle_one(void **state)
{
    const double samples[] = {9, 1, 5};

    (void)state;
    assert_true(bench_spread(samples, 3).median == 5);
}

static void median_of_an_even_count_lies_between_the_middle_two(void **state)
{
    const double samples[] = {8, 1, 2, 4};

    (void)state;
    assert_true(bench_spread(samples, 4).median == 3);
}

static void spread_names_the_least_and_the_most(void **state)
{
    const double samples[] = {7, 3, 12, 5};
    struct bench_spread spread = bench_spread(samples, 4);

    (void)state;
    assert_true(spread.min == 3);
    assert_true(spread.max == 12);
}

/* A machine that slows down for a round slows both: their ratio stays. */
static void ratio_is_taken_round_by_round(void **state)
{
    const double samples[] = {10, 100, 20};
    const double base[] = {20, 200, 40};

    (void)state;
    assert_true(bench_ratio(samples, base, 3) == 0.5);
}

struct call_log {
    char calls[16];
    size_t count;
};

struct caller {
    struct call_log *log;
    char name;
    int rc;
};

static int log_call(void *arg, double *ns_per_op)
{
    struct caller *caller = arg;

    caller->log->calls[caller->log->count++] = caller->name;
    *ns_per_op = caller->name;
    return caller->rc;
}

static void each_round_starts_with_another_subject(void **state)
{
    struct call_log log = {0};
    struct caller a = {&log, 'a', 0}, b = {&log, 'b', 0};
    double ns_a[3], ns_b[3];
    const struct bench_subject subjects[] = {{log_call, &a, ns_a},
                                             {log_call, &b, ns_b}};

    (void)state;
    assert_int_equal(bench_rounds(subjects, 2, 3), 0);
    assert_string_equal(log.calls, "abbaab");
}

static void an_error_ends_the_rounds(void **state)
{
    struct call_log log = {0};
    struct caller a = {&log, 'a', 0}, b = {&log, 'b', -5};
    double ns_a[3], ns_b[3];
    const struct bench_subject subjects[] = {{log_call, &a, ns_a},
                                             {log_call, &b, ns_b}};

    (void)state;
    assert_int_equal(bench_rounds(subjects, 2, 3), -5);
    assert_string_equal(log.calls, "ab");
}

/* ---- table ----------------------------------------------------------------------- */

static const struct column columns[] = {
    {"name", "name", COLUMN_TEXT, 0},
    {"value", "value", COLUMN_NUMBER, 2},
};

static struct table table_from(const char *json, int *rc)
{
    struct table table;
    FILE *in = tmpfile();

    assert_non_null(in);
    fputs(json, in);
    rewind(in);
    table_init(&table, columns, 2);
    *rc = table_read_json(&table, in);
    fclose(in);
    return table;
}

static void assert_prints(const struct table *table, enum table_format format,
                          const char *expected)
{
    char text[512] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");

    assert_non_null(out);
    table_print(table, format, out);
    fclose(out);
    assert_string_equal(text, expected);
}

static void a_table_is_the_same_after_json(void **state)
{
    const char *json = "[\n{\"name\":\"a\",\"value\":1.5},\n"
                       "{\"name\":null,\"value\":null}\n]\n";
    char text[512] = "";
    FILE *out = fmemopen(text, sizeof(text), "w");
    int rc;
    struct table table = table_from(json, &rc);

    (void)state;
    assert_int_equal(rc, 0);
    assert_int_equal(table_write_json(&table, out), 0);
    fclose(out);
    table_finish(&table);
    assert_string_equal(text, json);
}

static void json_without_one_of_the_keys_is_refused(void **state)
{
    int rc;
    struct table table = table_from("[{\"name\":\"a\"}]", &rc);

    (void)state;
    assert_int_equal(rc, -EBADMSG);
    assert_int_equal(table.row_count, 0);
    table_finish(&table);
}

/* Results that are stored stay readable. */
static void json_may_be_older_than_a_later_column(void **state)
{
    static const struct column later[] = {
        {"name", "name", COLUMN_TEXT, 0},
        {"text", "text", COLUMN_LATER_TEXT, 0},
        {"value", "value", COLUMN_LATER_NUMBER, 2},
    };
    struct table table;
    FILE *in = tmpfile();

    (void)state;
    assert_non_null(in);
    fputs("[{\"name\":\"a\"},{\"name\":\"b\",\"text\":\"c\",\"value\":2}]", in);
    rewind(in);
    table_init(&table, later, 3);
    assert_int_equal(table_read_json(&table, in), 0);
    fclose(in);
    assert_prints(&table, TABLE_PLAIN,
                  "name  text  value\n"
                  "a     -         -\n"
                  "b     c         2\n");
    table.row_count = 1;
    assert_prints(&table, TABLE_PLAIN, "name\na\n");
    table_finish(&table);
}

static void json_with_a_text_for_a_number_is_refused(void **state)
{
    int rc;
    struct table table = table_from("[{\"name\":\"a\",\"value\":\"1\"}]", &rc);

    (void)state;
    assert_int_equal(rc, -EBADMSG);
    table_finish(&table);
}

static void json_that_is_no_array_is_refused(void **state)
{
    int rc;
    struct table table = table_from("{\"name\":\"a\",\"value\":1}", &rc);

    (void)state;
    assert_int_equal(rc, -EBADMSG);
    table_finish(&table);
}

static void a_printed_table_is_aligned(void **state)
{
    int rc;
    struct table table = table_from("[{\"name\":\"long name\",\"value\":3},"
                                    "{\"name\":\"b\",\"value\":0.125}]",
                                    &rc);

    (void)state;
    assert_prints(&table, TABLE_PLAIN,
                  "name       value\n"
                  "long name      3\n"
                  "b           0.12\n");
    table_finish(&table);
}

static void markdown_has_a_dash_where_there_is_no_value(void **state)
{
    int rc;
    struct table table = table_from("[{\"name\":\"a\",\"value\":null}]", &rc);

    (void)state;
    assert_prints(&table, TABLE_MARKDOWN,
                  "| name | value |\n"
                  "|---|---:|\n"
                  "| a | - |\n");
    table_finish(&table);
}

/* ---- sequence -------------------------------------------------------------------- */

static void assert_pass_visits_each_position_once(const struct workload *workload,
                                                  uint64_t positions, uint64_t stride)
{
    struct sequence sequence;
    uint8_t *seen = calloc(positions, 1);

    assert_non_null(seen);
    sequence_init(&sequence, workload);
    for (uint64_t i = 0; i < positions; i++) {
        uint64_t position = sequence_next(&sequence)->offset[0] / stride;

        assert_in_range(position, 0, positions - 1);
        assert_false(seen[position]);
        seen[position] = 1;
    }
    free(seen);
}

static void a_pass_visits_each_position_once(void **state)
{
    const struct workload small = {.pattern = "random", .size = 8, .ranges = 1};
    const struct workload large = {.pattern = "random", .size = 4096, .ranges = 1};
    const struct workload hot = {.pattern = "hot", .size = 2048, .ranges = 1};

    (void)state;
    assert_pass_visits_each_position_once(&small, REGION_SIZE / 64, 64);
    assert_pass_visits_each_position_once(&large, REGION_SIZE / 4096, 4096);
    assert_pass_visits_each_position_once(&hot, HOT_SIZE / 2048, 2048);
}

static void every_write_changes_each_byte(void **state)
{
    const struct workload workload = {.pattern = "hot", .size = 8, .ranges = 16};
    const uint64_t operations = 600 * HOT_SIZE / 64 / 16; /* byte values wrap around */
    struct sequence sequence;
    uint8_t *region = calloc(HOT_SIZE, 1);

    (void)state;
    assert_non_null(region);
    sequence_init(&sequence, &workload);
    for (uint64_t i = 0; i < operations; i++) {
        const struct tx_change *change = sequence_next(&sequence);

        for (uint32_t range = 0; range < change->ranges; range++) {
            uint8_t *dst = region + change->offset[range];

            for (uint32_t byte = 0; byte < change->size; byte++)
                assert_int_not_equal(dst[byte], change->src[byte]);
            memcpy(dst, change->src, change->size);
        }
    }
    free(region);
}

static void an_8_byte_range_is_no_aligned_word_and_stays_in_its_line(void **state)
{
    const struct workload workload = {
        .op = OP_RANGES, .pattern = "hot", .size = 8, .ranges = 1};
    struct sequence sequence;

    (void)state;
    sequence_init(&sequence, &workload);
    uint64_t offset = sequence_next(&sequence)->offset[0];

    assert_int_not_equal(offset % 8, 0);
    assert_in_range(offset % 64, 0, 64 - 8);
}

static void part_of_a_block_is_rounded_to_the_nearest_byte(void **state)
{
    const struct workload workload = {
        .op = OP_BLOCK, .pattern = "hot", .size = 4096, .ranges = 1, .changed_pct = 10};
    struct sequence sequence;

    (void)state;
    sequence_init(&sequence, &workload);
    assert_int_equal(sequence_next(&sequence)->size, 410);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(median_of_an_odd_count_is_the_middle_one),
        cmocka_unit_test(median_of_an_even_count_lies_between_the_middle_two),
        cmocka_unit_test(spread_names_the_least_and_the_most),
        cmocka_unit_test(ratio_is_taken_round_by_round),
        cmocka_unit_test(each_round_starts_with_another_subject),
        cmocka_unit_test(an_error_ends_the_rounds),
        cmocka_unit_test(a_table_is_the_same_after_json),
        cmocka_unit_test(json_without_one_of_the_keys_is_refused),
        cmocka_unit_test(json_may_be_older_than_a_later_column),
        cmocka_unit_test(json_with_a_text_for_a_number_is_refused),
        cmocka_unit_test(json_that_is_no_array_is_refused),
        cmocka_unit_test(a_printed_table_is_aligned),
        cmocka_unit_test(markdown_has_a_dash_where_there_is_no_value),
        cmocka_unit_test(a_pass_visits_each_position_once),
        cmocka_unit_test(every_write_changes_each_byte),
        cmocka_unit_test(an_8_byte_range_is_no_aligned_word_and_stays_in_its_line),
        cmocka_unit_test(part_of_a_block_is_rounded_to_the_nearest_byte),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
