/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-threshold - data logging and pointer logging of parts of a block, on this
 * machine's memory and on slower media: where the curves cross, what
 * MINL2R_POINTER_AUTO makes of that, and what it gains over half of a block.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command.h"
#include "bench/delay/delay.h"
#include "bench/harness.h"
#include "bench/scratch.h"
#include "bench/table.h"
#include "libminl2r/calibrate.h"
#include "libminl2r/pool.h"

#define BLOCK_SIZE MINL2R_BLOCK_SIZE_DEFAULT
#define BLOCKS_RANDOM ((uint64_t)16384) /* 64 MiB: more than the caches hold */
#define BLOCKS_HOT ((uint64_t)16)
#define POOL_SIZE (BLOCKS_RANDOM * BLOCK_SIZE + ((uint64_t)16 << 20))
#define TRIAL_SIZE ((uint64_t)4 << 20)

static uint32_t operations_of(const struct bench_options *options)
{
    return options->is_quick ? 200 : 2000; /* per batch */
}

/* ---- Results --------------------------------------------------------------------- */

enum {
    COL_MEDIUM,
    COL_PATTERN,
    COL_SIZE,
    COL_THRESHOLD,
    COL_DATA_NS,
    COL_POINTER_NS,
    COL_DATA_LOG,
    COL_POINTER_LOG,
    COL_DATA_PM,
    COL_POINTER_PM,
    COL_COUNT
};

static const struct column columns[COL_COUNT] = {
    {"medium", "medium", COLUMN_TEXT, 0},
    {"pattern", "pattern", COLUMN_TEXT, 0},
    {"size", "size", COLUMN_NUMBER, 0},
    {"auto_threshold", "auto", COLUMN_NUMBER, 0},
    {"data_ns", "data ns", COLUMN_NUMBER, 0},
    {"pointer_ns", "pointer ns", COLUMN_NUMBER, 0},
    {"data_log_bytes", "data log B", COLUMN_NUMBER, 0},
    {"pointer_log_bytes", "pointer log B", COLUMN_NUMBER, 0},
    {"data_pm_bytes", "data PM B", COLUMN_NUMBER, 0},
    {"pointer_pm_bytes", "pointer PM B", COLUMN_NUMBER, 0},
};

/* What changes of all sizes, each as often, cost on average with one threshold. */
struct average {
    double ns, log_bytes, pm_bytes;
};

struct summary {
    const struct cell *first; /* its medium and pattern */
    size_t rows;
    double automatic, crossing; /* thresholds; past a block: never */
    struct average by_half, by_auto, by_crossing;
};

static bool is_same(const struct cell *a, const struct cell *b)
{
    return strcmp(a[COL_MEDIUM].text, b[COL_MEDIUM].text) == 0 &&
           strcmp(a[COL_PATTERN].text, b[COL_PATTERN].text) == 0;
}

static struct average average_of(const struct summary *summary, double threshold)
{
    struct average sum = {0};

    for (size_t i = 0; i < summary->rows; i++) {
        const struct cell *row = summary->first + i * (size_t)COL_COUNT;
        int swaps = row[COL_SIZE].number >= threshold;

        sum.ns += row[COL_DATA_NS + swaps].number;
        sum.log_bytes += row[COL_DATA_LOG + swaps].number;
        sum.pm_bytes += row[COL_DATA_PM + swaps].number;
    }
    double rows = (double)summary->rows;

    return (struct average){sum.ns / rows, sum.log_bytes / rows, sum.pm_bytes / rows};
}

static double crossing_of(const struct summary *summary)
{
    struct calibrate_point points[CALIBRATE_POINTS];
    uint32_t count = 0;

    for (; count < summary->rows && count < CALIBRATE_POINTS; count++) {
        const struct cell *row = summary->first + count * (size_t)COL_COUNT;

        points[count] = (struct calibrate_point){(uint32_t)row[COL_SIZE].number,
                                                 row[COL_DATA_NS].number,
                                                 row[COL_POINTER_NS].number};
    }
    return calibrate_choose(points, count);
}

/* Of the rows of one medium and pattern, from `start` on. */
static struct summary summarize(const struct table *results, size_t start)
{
    struct summary summary = {.first = table_row(results, start)};

    while (start + summary.rows < results->row_count &&
           is_same(summary.first, table_row(results, start + summary.rows)))
        summary.rows++;
    summary.automatic = summary.first[COL_THRESHOLD].number;
    summary.crossing = crossing_of(&summary);
    summary.by_half = average_of(&summary, BLOCK_SIZE / 2.0);
    summary.by_auto = average_of(&summary, summary.automatic);
    summary.by_crossing = average_of(&summary, summary.crossing);
    return summary;
}

static const char *name_threshold(double threshold, char text[16])
{
    if (threshold > BLOCK_SIZE)
        return "never";
    snprintf(text, 16, "%.0f", threshold);
    return text;
}

static const char *winner(double half, double automatic)
{
    double ratio = half / automatic;

    return ratio > 1.01 ? "auto" : ratio < 0.99 ? "half" : "neither";
}

static void print_summary_markdown(const struct summary *s)
{
    char automatic[16], crossing[16];

    printf("| %s | %s | %s | %s | %.0f | %.0f | %.0f | %s | %.0f | %.0f | %s | %.0f | "
           "%.0f | %s |\n",
           s->first[COL_MEDIUM].text, s->first[COL_PATTERN].text,
           name_threshold(s->crossing, crossing),
           name_threshold(s->automatic, automatic), s->by_half.ns, s->by_auto.ns,
           s->by_crossing.ns, winner(s->by_half.ns, s->by_auto.ns),
           s->by_half.log_bytes, s->by_auto.log_bytes,
           winner(s->by_half.log_bytes, s->by_auto.log_bytes), s->by_half.pm_bytes,
           s->by_auto.pm_bytes, winner(s->by_half.pm_bytes, s->by_auto.pm_bytes));
}

static void print_summary_plain(const struct summary *s)
{
    char automatic[16], crossing[16];

    printf("%s, %s: the curves cross at %s, auto chose %s; half %.0f ns, auto %.0f ns "
           "(at the crossing %.0f): %s wins on time; log %.0f and %.0f B: %s; "
           "PM %.0f and %.0f B: %s\n",
           s->first[COL_MEDIUM].text, s->first[COL_PATTERN].text,
           name_threshold(s->crossing, crossing),
           name_threshold(s->automatic, automatic), s->by_half.ns, s->by_auto.ns,
           s->by_crossing.ns, winner(s->by_half.ns, s->by_auto.ns),
           s->by_half.log_bytes, s->by_auto.log_bytes,
           winner(s->by_half.log_bytes, s->by_auto.log_bytes), s->by_half.pm_bytes,
           s->by_auto.pm_bytes, winner(s->by_half.pm_bytes, s->by_auto.pm_bytes));
}

static int print_results(const struct table *results, enum table_format format)
{
    if (format == TABLE_MARKDOWN)
        puts("| medium | pattern | crossing | auto | half ns | auto ns | crossing ns | "
             "faster | half log B | auto log B | less log | half PM B | auto PM B | "
             "less PM |\n"
             "|---|---|---:|---:|---:|---:|---:|---|---:|---:|---|---:|---:|---|");
    for (size_t i = 0; i < results->row_count;) {
        struct summary summary = summarize(results, i);

        if (format == TABLE_MARKDOWN)
            print_summary_markdown(&summary);
        else
            print_summary_plain(&summary);
        i += summary.rows;
    }
    putchar('\n');
    table_print(results, format, stdout);
    return 0;
}

/* ---- The pool -------------------------------------------------------------------- */

struct bed {
    struct minl2r_pool *pool;
    const uint64_t *slots;        /* [BLOCKS_RANDOM] */
    uint8_t bytes[2][BLOCK_SIZE]; /* of one value each */
    uint8_t last[BLOCKS_RANDOM];  /* what each block was written with */
};

/* Values that nothing was written with yet: whatever is written next is new there. */
static void renew_bytes(struct bed *bed)
{
    memset(bed->bytes[0], bed->bytes[1][0] + 1, BLOCK_SIZE);
    memset(bed->bytes[1], bed->bytes[0][0] + 1, BLOCK_SIZE);
}

static const uint8_t *new_bytes(struct bed *bed, uint64_t block)
{
    const uint8_t *bytes = bed->bytes[bed->last[block] == bed->bytes[0][0]];

    bed->last[block] = bytes[0];
    return bytes;
}

static int write_block(struct bed *bed, uint64_t block, uint32_t size)
{
    const uint8_t *bytes = new_bytes(bed, block);
    struct minl2r_tx *tx;
    int rc = minl2r_tx_begin(bed->pool, &tx);

    if (rc < 0)
        return rc;
    rc = minl2r_tx_write_block(tx, &bed->slots[block], 0, bytes, size);
    if (rc == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return rc;
}

static int make_bed(struct bed *bed)
{
    const char *path = scratch_path("pool");
    int rc = minl2r_pool_create(path, "", POOL_SIZE, NULL, &bed->pool);

    scratch_unlink(path);
    if (rc < 0)
        return rc;
    renew_bytes(bed);
    bed->slots = minl2r_root(bed->pool, BLOCKS_RANDOM * sizeof(*bed->slots));
    for (uint64_t i = 0; bed->slots && rc == 0 && i < BLOCKS_RANDOM; i++)
        rc = write_block(bed, i, BLOCK_SIZE);
    return bed->slots ? rc : -errno;
}

/* What creating a pool on the medium in use makes of MINL2R_POINTER_AUTO. */
static int find_threshold(uint32_t *threshold)
{
    const struct minl2r_options options = {.pointer_threshold = MINL2R_POINTER_AUTO};
    const char *path = scratch_path("trial");
    struct minl2r_pool *pool;
    int rc = minl2r_pool_create(path, "", TRIAL_SIZE, &options, &pool);

    scratch_unlink(path);
    if (rc < 0)
        return rc;
    *threshold = pool->geo.pointer_threshold;
    return minl2r_pool_close(pool);
}

/* ---- Measuring ------------------------------------------------------------------- */

/* Parts of blocks, all by one kind of logging. */
struct load {
    struct bed *bed;
    const struct delay_medium *medium;
    uint32_t threshold;
    uint64_t blocks;
    uint32_t size;
    uint32_t operations;
    uint64_t turn;
    double ns[BENCH_ROUNDS_MAX];
};

/* Every block once per pass, in an order that no prefetcher guesses. */
static int run_batch(void *arg, double *ns_per_op)
{
    struct load *load = arg;
    int rc = 0;

    load->bed->pool->geo.pointer_threshold = load->threshold;
    delay_use(load->medium);
    uint64_t start_ns = bench_now_ns();
    for (uint32_t i = 0; rc == 0 && i < load->operations; i++, load->turn++)
        rc = write_block(load->bed, load->turn * 7919 % load->blocks, load->size);
    *ns_per_op = (double)(bench_now_ns() - start_ns) / load->operations;
    delay_use(NULL);
    return rc;
}

static int count_bytes(struct load *load, double *log_bytes, double *pm_bytes)
{
    struct minl2r_stats before, after;
    double ignored_ns;

    minl2r_stats_get(load->bed->pool, &before);
    int rc = run_batch(load, &ignored_ns);

    minl2r_stats_get(load->bed->pool, &after);
    *log_bytes = (double)(after.log_bytes - before.log_bytes) / load->operations;
    *pm_bytes = (double)(after.pm_bytes - before.pm_bytes) / load->operations;
    return rc;
}

static int measure(struct table *results, struct load *data, struct load *pointer,
                   const char *pattern, uint32_t auto_threshold, size_t rounds)
{
    const struct bench_subject subjects[] = {{run_batch, data, data->ns},
                                             {run_batch, pointer, pointer->ns}};
    struct cell *row = table_add(results);

    if (!row)
        return -ENOMEM;
    cell_set_text(&row[COL_MEDIUM], data->medium->name);
    cell_set_text(&row[COL_PATTERN], pattern);
    row[COL_SIZE].number = data->size;
    row[COL_THRESHOLD].number = auto_threshold;
    /* Also the batch before the first round. */
    int rc = count_bytes(data, &row[COL_DATA_LOG].number, &row[COL_DATA_PM].number);
    if (rc == 0)
        rc = count_bytes(pointer, &row[COL_POINTER_LOG].number,
                         &row[COL_POINTER_PM].number);
    if (rc == 0)
        rc = bench_rounds(subjects, 2, rounds);
    if (rc < 0)
        return rc;
    row[COL_DATA_NS].number = bench_spread(data->ns, rounds).median;
    row[COL_POINTER_NS].number = bench_spread(pointer->ns, rounds).median;
    return 0;
}

static int measure_pattern(struct table *results, struct bed *bed,
                           const struct delay_medium *medium, bool hot,
                           uint32_t auto_threshold, const struct bench_options *options)
{
    static struct load data, pointer; /* large */
    int rc = 0;

    for (uint32_t size = BLOCK_SIZE / CALIBRATE_POINTS; rc == 0 && size <= BLOCK_SIZE;
         size += BLOCK_SIZE / CALIBRATE_POINTS) {
        data = (struct load){.bed = bed,
                             .medium = medium,
                             .threshold = BLOCK_SIZE + 1,
                             .blocks = hot ? BLOCKS_HOT : BLOCKS_RANDOM,
                             .size = size,
                             .operations = operations_of(options)};
        renew_bytes(bed);
        pointer = data;
        pointer.threshold = MINL2R_POINTER_ALWAYS;
        rc = measure(results, &data, &pointer, hot ? "hot" : "random", auto_threshold,
                     options->rounds);
    }
    return rc;
}

static int measure_medium(struct table *results, struct bed *bed,
                          const struct delay_medium *medium,
                          const struct bench_options *options)
{
    uint32_t threshold;

    delay_use(medium);
    int rc = find_threshold(&threshold);

    delay_use(NULL);
    if (rc == 0)
        rc = measure_pattern(results, bed, medium, true, threshold, options);
    if (rc == 0)
        rc = measure_pattern(results, bed, medium, false, threshold, options);
    return rc;
}

static int measure_all(struct table *results, struct bed *bed,
                       const struct bench_options *options)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < delay_media_count; i++)
        rc = measure_medium(results, bed, &delay_media[i], options);
    return rc;
}

/* ---- The command ----------------------------------------------------------------- */

static int run(const void *options, struct table *results)
{
    static struct bed bed; /* large */
    struct minl2r_info info;
    int rc = bench_pin();

    if (rc == 0)
        rc = make_bed(&bed);
    if (rc < 0)
        return rc;
    if (minl2r_pool_info(bed.pool, &info) == 0)
        bench_print_setup(options, minl2r_medium_name(info.medium), info.medium_reason);
    rc = measure_all(results, &bed, options);
    minl2r_pool_close(bed.pool);
    return rc;
}

static const struct bench_command command = {
    .name = "bench-threshold",
    .about = "Measures data and pointer logging of parts of a block, on this machine's "
             "memory\n"
             "and on the media of the delay model; shows where the curves cross, what\n"
             "MINL2R_POINTER_AUTO chose, and what that gains over half of a block.",
    .quick = "fewer and shorter rounds, with more noise",
    .rounds = 21,
    .quick_rounds = 3,
    .room = "90 MiB",
    .columns = columns,
    .column_count = COL_COUNT,
    .measure = run,
    .print = print_results,
};

int main(int argc, char **argv)
{
    struct bench_options options = {0};

    return bench_main(&command, &options, argc, argv);
}
