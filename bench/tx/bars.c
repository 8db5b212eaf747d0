/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bars.c - what the library has promised to reach, checked against results.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "bench/tx/tx.h"

/* The figure of a bar, from minl2r's row of the workload. NAN: not measured. */
typedef double bar_figure_fn(const struct table *results, const struct cell *row);

enum bar_relation { EQUAL_TO, AT_MOST, BELOW };

struct bar {
    const char *name;
    const char *unit;
    struct workload workload; /* `op` is not looked at */
    bar_figure_fn *figure;
    enum bar_relation relation;
    double limit;
};

/* ---- Figures --------------------------------------------------------------------- */

static bool same_text(const struct cell *cell, const char *text)
{
    return strcmp(cell->text, text ? text : "") == 0;
}

/* Zero in a workload stands for "does not apply" too. */
static bool same_number(const struct cell *cell, double number)
{
    return isnan(cell->number) ? number == 0 : cell->number == number;
}

static const struct cell *find_row(const struct table *results, const char *system,
                                   const struct workload *workload)
{
    for (size_t i = 0; i < results->row_count; i++) {
        const struct cell *row = table_row(results, i);

        if (same_text(&row[TX_SYSTEM], system) &&
            same_text(&row[TX_CASE], workload->name) &&
            same_text(&row[TX_PATTERN], workload->pattern) &&
            same_number(&row[TX_SIZE], workload->size) &&
            same_number(&row[TX_RANGES], workload->ranges) &&
            same_number(&row[TX_CHANGED_PCT], workload->changed_pct))
            return row;
    }
    return NULL;
}

static double fences(const struct table *results, const struct cell *row)
{
    (void)results;
    return row[TX_FENCES].number;
}

static double lines(const struct table *results, const struct cell *row)
{
    (void)results;
    return row[TX_LINES_FLUSHED].number + row[TX_LINES_STREAMED].number;
}

static double of_libpmemobj(const struct table *results, const struct cell *row)
{
    (void)results;
    return row[TX_RATIO_LIBPMEMOBJ].number;
}

static double of_floor(const struct table *results, const struct cell *row)
{
    (void)results;
    return row[TX_RATIO_FLOOR].number;
}

/* Of the medians: results keep no ratio of the same rounds for it. */
static double of_libpmemblk(const struct table *results, const struct cell *row)
{
    const struct workload workload = {
        .name = row[TX_CASE].text,
        .pattern = row[TX_PATTERN].text,
        .size = (uint32_t)row[TX_SIZE].number,
        .ranges = (uint32_t)row[TX_RANGES].number,
        .changed_pct = (uint32_t)row[TX_CHANGED_PCT].number,
    };
    const struct cell *libpmemblk = find_row(results, "libpmemblk", &workload);

    return libpmemblk ? row[TX_NS_MEDIAN].number / libpmemblk[TX_NS_MEDIAN].number
                      : NAN;
}

static double milliseconds(const struct table *results, const struct cell *row)
{
    (void)results;
    return row[TX_NS_MEDIAN].number / 1e6;
}

/* ---- Bars ------------------------------------------------------------------------ */

#define RANDOM(bytes, count)                                                           \
    {                                                                                  \
        .name = "ranges", .pattern = "random", .size = (bytes), .ranges = (count)      \
    }
#define PROVE(bytes, count)                                                            \
    {                                                                                  \
        .name = "prove", .pattern = "random", .size = (bytes), .ranges = (count)       \
    }
#define WHOLE_BLOCK                                                                    \
    {                                                                                  \
        .name = "block", .pattern = "random", .size = BLOCK_SIZE, .ranges = 1,         \
        .changed_pct = 100                                                             \
    }
#define STORE64                                                                        \
    {                                                                                  \
        .name = "store64", .pattern = "random", .size = 8, .ranges = 1                 \
    }

static const struct bar bars[] = {
    {"fences, 1 range", "", RANDOM(8, 1), fences, EQUAL_TO, 3},
    {"fences, 16 ranges", "", RANDOM(8, 16), fences, EQUAL_TO, 3},
    {"fences, 64 ranges", "", RANDOM(8, 64), fences, EQUAL_TO, 3},
    {"fences, block swap", "", WHOLE_BLOCK, fences, EQUAL_TO, 2},
    {"fences, read only", "", RANDOM(0, 0), fences, EQUAL_TO, 0},
    {"fences, store64", "", STORE64, fences, EQUAL_TO, 1},
    {"lines, 8 B", "", RANDOM(8, 1), lines, AT_MOST, 3},
    {"8 B / libpmemobj", "", RANDOM(8, 1), of_libpmemobj, AT_MOST, 0.50},
    {"16 ranges of 8 B / libpmemobj", "", RANDOM(8, 16), of_libpmemobj, AT_MOST, 0.15},
    {"block 4 KiB / libpmemobj", "", WHOLE_BLOCK, of_libpmemobj, AT_MOST, 0.32},
    {"block 4 KiB / libpmemblk", "", WHOLE_BLOCK, of_libpmemblk, AT_MOST, 0.85},
    {"8 B / floor", "", RANDOM(8, 1), of_floor, AT_MOST, 2.5},
    {"block 4 KiB / floor", "", WHOLE_BLOCK, of_floor, AT_MOST, 2.0},
    {"prove: fences, 1 range", "", PROVE(8, 1), fences, EQUAL_TO, 2},
    {"prove: fences, 16 ranges", "", PROVE(8, 16), fences, EQUAL_TO, 2},
    {"prove: fences, 1 KiB", "", PROVE(1024, 1), fences, EQUAL_TO, 2},
    {"prove: lines, 8 B", "", PROVE(8, 1), lines, AT_MOST, 2},
    {"prove: 8 B / libpmemobj", "", PROVE(8, 1), of_libpmemobj, AT_MOST, 0.36},
    {"prove: 16 ranges of 8 B / libpmemobj", "", PROVE(8, 16), of_libpmemobj, AT_MOST,
     0.11},
    {"prove: 8 B / floor", "", PROVE(8, 1), of_floor, AT_MOST, 1.9},
    {"open of a clean 1 GiB pool", " ms", {.name = "open"}, milliseconds, BELOW, 2},
    {"open and recovery of 8 busy lanes",
     " ms",
     {.name = "recover", .size = BUSY_SIZE, .ranges = BUSY_LANES},
     milliseconds,
     BELOW,
     5},
};

static const char *const relation_names[] = {
    [EQUAL_TO] = "",
    [AT_MOST] = "at most ",
    [BELOW] = "below ",
};

static bool is_met(const struct bar *bar, double figure)
{
    switch (bar->relation) {
    case EQUAL_TO:
        return figure == bar->limit;
    case AT_MOST:
        return figure <= bar->limit;
    case BELOW:
        return figure < bar->limit;
    }
    return false;
}

enum bar_column { BAR_NAME, BAR_LIMIT, BAR_FIGURE, BAR_VERDICT, BAR_COLUMN_COUNT };

static const struct column bar_columns[BAR_COLUMN_COUNT] = {
    [BAR_NAME] = {"bar", "bar", COLUMN_TEXT, 0},
    [BAR_LIMIT] = {"limit", "limit", COLUMN_TEXT, 0},
    [BAR_FIGURE] = {"figure", "measured", COLUMN_NUMBER, 3},
    [BAR_VERDICT] = {"verdict", "", COLUMN_TEXT, 0},
};

static void describe_bar(struct cell *line, const struct bar *bar, double figure)
{
    cell_set_text(&line[BAR_NAME], bar->name);
    snprintf(line[BAR_LIMIT].text, TABLE_TEXT_SIZE, "%s%.4g%s",
             relation_names[bar->relation], bar->limit, bar->unit);
    line[BAR_FIGURE].number = figure;
    cell_set_text(&line[BAR_VERDICT], isnan(figure)         ? "not measured"
                                      : is_met(bar, figure) ? "met"
                                                            : "missed");
}

int bars_print(const struct table *results, enum table_format format, FILE *out)
{
    struct table lines_of_bars;
    int rc = 0;

    table_init(&lines_of_bars, bar_columns, BAR_COLUMN_COUNT);
    for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]) && rc == 0; i++) {
        const struct cell *row = find_row(results, "minl2r", &bars[i].workload);
        struct cell *line = table_add(&lines_of_bars);

        if (line)
            describe_bar(line, &bars[i], row ? bars[i].figure(results, row) : NAN);
        else
            rc = -ENOMEM;
    }
    if (rc == 0)
        table_print(&lines_of_bars, format, out);
    table_finish(&lines_of_bars);
    return rc;
}
