/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-pmfs - what the calls of pmfs.h cost in-process: times beside the floor,
 * fences, lines and bytes of log. Each operation alternates with its floor, on one
 * core.
 */
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command.h"
#include "bench/harness.h"
#include "bench/pmfs/ops.h"
#include "bench/pmfs/scale.h"
#include "bench/pmfs/threads.h"
#include "bench/scratch.h"
#include "bench/table.h"

struct options {
    struct bench_options shared;
    bool is_scale;    /* only that */
    uint32_t threads; /* only by so many; 0: all */
};

static uint32_t operations_of(const struct options *options)
{
    return options->shared.is_quick ? 1000 : 2000; /* per batch, about */
}

/* ---- Results --------------------------------------------------------------------- */

enum {
    COL_OP,
    COL_SIZE,
    COL_FENCES,
    COL_LINES_FLUSHED,
    COL_LINES_STREAMED,
    COL_LOG_BYTES,
    COL_READS,
    COL_NS_MEDIAN,
    COL_NS_MIN,
    COL_NS_MAX,
    COL_NS_FLOOR,
    COL_RATIO_FLOOR,
    COL_COUNT
};

static const struct column columns[COL_COUNT] = {
    {"op", "operation", COLUMN_TEXT, 0},
    {"size", "size", COLUMN_NUMBER, 0},
    {"fences", "fences", COLUMN_NUMBER, 2},
    {"lines_flushed", "flushed", COLUMN_NUMBER, 1},
    {"lines_streamed", "streamed", COLUMN_NUMBER, 1},
    {"log_bytes", "log bytes", COLUMN_NUMBER, 0},
    {"reads", "reads", COLUMN_NUMBER, 0},
    {"ns_median", "ns", COLUMN_NUMBER, 0},
    {"ns_min", "min", COLUMN_NUMBER, 0},
    {"ns_max", "max", COLUMN_NUMBER, 0},
    {"ns_floor", "floor ns", COLUMN_NUMBER, 0},
    {"ratio_floor", "x floor", COLUMN_NUMBER, 2},
};

static const struct cell *find_row(const struct table *results, const char *op,
                                   double size)
{
    for (size_t i = 0; i < results->row_count; i++) {
        const struct cell *row = table_row(results, i);

        if (strcmp(row[COL_OP].text, op) == 0 &&
            (isnan(row[COL_SIZE].number) ? 0 : row[COL_SIZE].number) == size)
            return row;
    }
    return NULL;
}

/* ---- Bars ------------------------------------------------------------------------ */

struct bar {
    const char *op;
    double size;
    int column;
    double limit; /* at most */
    const char
        *above;    /* the figure is what exceeds this operation's; NULL: all of it */
    double beside; /* it is so many times the one of that size; 0: no */
    const char *size_is; /* of what grows; NULL: bytes */
};

#define NAMES_MOST 1000000

static const struct bar bars[] = {
    {"overwrite", 4096, COL_RATIO_FLOOR, 2.5, NULL, 0, NULL},
    {"append", 4096, COL_RATIO_FLOOR, 3.2, NULL, 0, NULL},
    {"overwrite", 64, COL_NS_MEDIAN, 300, "transaction", 0, NULL},
    {"read", 4096, COL_RATIO_FLOOR, 1.5, NULL, 0, NULL},
    {"create+unlink", 0, COL_NS_MEDIAN, 5000, NULL, 0, NULL},
    {"overwrite", 4096, COL_FENCES, 2, NULL, 0, NULL},
    {"append", 4096, COL_FENCES, 3, NULL, 0, NULL},
    {"append in a block", 64, COL_FENCES, 2, NULL, 0, NULL},
    {"create", 0, COL_FENCES, 3, NULL, 0, NULL},
    {"unlink", 0, COL_FENCES, 3, NULL, 0, NULL},
    {"rename", 0, COL_FENCES, 3, NULL, 0, NULL},
    {"chmod", 0, COL_FENCES, 1, NULL, 0, NULL},
    /* How costs grow. Flat is a lookup that takes as long as the cache misses that it
     * cannot do without: see scale.c. */
    {"lookup among", NAMES_MOST, COL_RATIO_FLOOR, 1.5, NULL, 0, "names"},
    {"lookup of none among", NAMES_MOST, COL_RATIO_FLOOR, 1.5, NULL, 0, "names"},
    {"mount, 10 GiB", NAMES_MOST, COL_NS_MEDIAN, 50e6, NULL, 0, "files"},
    {"mount, 10 GiB, after a kill", NAMES_MOST, COL_NS_MEDIAN, 2e9, NULL, 0, "files"},
    {"allocate a block at %", 95, COL_NS_MEDIAN, 1.5, NULL, 10, "%"},
    {"allocate 2 blocks at %", 95, COL_NS_MEDIAN, 1.5, NULL, 10, "%"},
};

static double figure_of(const struct table *results, const struct bar *bar)
{
    const struct cell *row = find_row(results, bar->op, bar->size);
    const struct cell *base =
        bar->above ? find_row(results, bar->above, bar->size) : NULL;

    const struct cell *beside =
        bar->beside > 0 ? find_row(results, bar->op, bar->beside) : NULL;

    if (!row || (bar->above && !base) || (bar->beside > 0 && !beside))
        return NAN;
    double figure = row[bar->column].number - (base ? base[bar->column].number : 0);

    return beside ? figure / beside[bar->column].number : figure;
}

static void print_bar(const struct table *results, const struct bar *bar,
                      const char *bullet)
{
    double figure = figure_of(results, bar);
    char size[32] = "", beside[48] = "";

    if (bar->size_is)
        snprintf(size, sizeof(size), ", %.0f %s", bar->size, bar->size_is);
    else if (bar->size > 0)
        snprintf(size, sizeof(size), " of %.0f B", bar->size);
    if (bar->beside > 0)
        snprintf(beside, sizeof(beside), " / those at %.0f %s", bar->beside,
                 bar->size_is);
    printf("%s%s%s: %s%s%s%s", bullet, bar->op, size, columns[bar->column].heading,
           bar->above ? " above a " : "", bar->above ? bar->above : "", beside);
    if (isnan(figure))
        puts(": not measured");
    else
        printf(" %.2f, at most %.2f: %s\n", figure, bar->limit,
               figure <= bar->limit ? "met" : "MISSED");
}

/* Of "overwrite by 2 threads"; 0: of no threads. */
static unsigned threads_of(const char *op)
{
    unsigned threads;

    return sscanf(op, "%*s by %u thread", &threads) == 1 ? threads : 0;
}

static void print_scaling(const char *bullet, const struct cell *alone,
                          const struct cell *together, unsigned threads)
{
    double scaling =
        threads * alone[COL_NS_MEDIAN].number / together[COL_NS_MEDIAN].number;
    double floor = threads * alone[COL_NS_FLOOR].number / together[COL_NS_FLOOR].number;
    double size = together[COL_SIZE].number;
    char name[TABLE_TEXT_SIZE + 24];

    snprintf(name, sizeof(name), "%s", together[COL_OP].text);
    if (!isnan(size))
        snprintf(name, sizeof(name), "%s, %.0f B", together[COL_OP].text, size);
    printf("%s%s: %.2f times as many as by one, at least %.2f: %s\n", bullet, name,
           scaling, 0.9 * threads, scaling >= 0.9 * threads ? "met" : "MISSED");
    if (floor < 0.9 * threads) /* no more than memory does, if known */
        printf(
            "%s%s: %.2f times as many as by one, at least %.2f (plain memory on this "
            "machine): %s\n",
            bullet, name, scaling, floor, scaling >= floor ? "met" : "MISSED");
}

/* Rows come in pairs: by one thread, by several. */
static void print_scalings(const struct table *results, const char *bullet)
{
    const struct cell *alone = NULL;

    for (size_t i = 0; i < results->row_count; i++) {
        const struct cell *row = table_row(results, i);
        unsigned threads = threads_of(row[COL_OP].text);

        if (threads == 1)
            alone = row;
        else if (threads > 1 && alone)
            print_scaling(bullet, alone, row, threads);
    }
}

static int print_bars(const struct table *results, enum table_format format)
{
    const char *bullet = bench_bullet(format);

    print_scalings(results, bullet);
    for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]); i++)
        print_bar(results, &bars[i], bullet);
    return 0;
}

/* ---- Measuring ------------------------------------------------------------------- */

/* One side of an operation: pmfs, or the floor. */
struct side {
    struct bench *bench;
    const struct op *op;
    op_fn *run;
    op_fn *reset;
    uint32_t chunks;
    struct minl2r_stats spent; /* by what was timed */
    uint64_t operations;
    double ns[BENCH_ROUNDS_MAX];
};

static void read_stats(const struct side *side, struct minl2r_stats *stats)
{
    struct bench *bench = side->bench;
    bool is_plain = strcmp(side->op->name, "transaction") == 0;

    minl2r_stats_get(is_plain ? bench->pool : pmfs_pool(bench->fs), stats);
}

static void add_spent(struct side *side, const struct minl2r_stats *before)
{
    struct minl2r_stats after;

    read_stats(side, &after);
    side->spent.fences += after.fences - before->fences;
    side->spent.lines_flushed += after.lines_flushed - before->lines_flushed;
    side->spent.lines_streamed += after.lines_streamed - before->lines_streamed;
    side->spent.log_bytes += after.log_bytes - before->log_bytes;
    side->operations += side->op->chunk;
}

static int run_chunk(struct side *side, uint64_t *ns)
{
    int rc = side->reset ? side->reset(side->bench, side->op, 0) : 0;
    struct minl2r_stats before;

    read_stats(side, &before);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t i = 0; rc == 0 && i < side->op->chunk; i++)
        rc = side->run(side->bench, side->op, i);
    *ns += bench_now_ns() - start_ns;
    add_spent(side, &before);
    return rc;
}

static int run_batch(void *arg, double *ns_per_op)
{
    struct side *side = arg;
    uint64_t ns = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < side->chunks; i++)
        rc = run_chunk(side, &ns);
    *ns_per_op = (double)ns / ((double)side->chunks * side->op->chunk);
    return rc;
}

static int add_row(struct table *results, const struct side *fs,
                   const struct side *floor, size_t rounds)
{
    struct bench_spread ns = bench_spread(fs->ns, rounds);
    double operations = (double)fs->operations;
    struct cell *row = table_add(results);

    if (!row)
        return -ENOMEM;
    cell_set_text(&row[COL_OP], fs->op->name);
    row[COL_SIZE].number = fs->op->size ? fs->op->size : (double)NAN;
    row[COL_FENCES].number = (double)fs->spent.fences / operations;
    row[COL_LINES_FLUSHED].number = (double)fs->spent.lines_flushed / operations;
    row[COL_LINES_STREAMED].number = (double)fs->spent.lines_streamed / operations;
    row[COL_LOG_BYTES].number = (double)fs->spent.log_bytes / operations;
    row[COL_NS_MEDIAN].number = ns.median;
    row[COL_NS_MIN].number = ns.min;
    row[COL_NS_MAX].number = ns.max;
    row[COL_NS_FLOOR].number =
        floor ? bench_spread(floor->ns, rounds).median : (double)NAN;
    row[COL_RATIO_FLOOR].number =
        floor ? bench_ratio(fs->ns, floor->ns, rounds) : (double)NAN;
    return 0;
}

static uint32_t chunks_of(const struct op *op, uint32_t operations)
{
    return operations / op->chunk > 0 ? operations / op->chunk : 1;
}

static struct side make_side(struct bench *bench, const struct op *op, op_fn *run,
                             op_fn *reset, uint32_t operations)
{
    uint32_t chunks = chunks_of(op, operations);

    return (struct side){
        .bench = bench, .op = op, .run = run, .reset = reset, .chunks = chunks};
}

static int run_rounds(struct side *fs, struct side *floor, struct side *library,
                      const struct options *options)
{
    struct side *sides[] = {fs, floor, library};
    struct bench_subject subjects[3];
    size_t count = 0;
    double ignored_ns;

    for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++) {
        if (!sides[i]->run)
            continue;
        int rc = run_batch(sides[i], &ignored_ns);
        if (rc < 0)
            return rc;
        subjects[count++] = (struct bench_subject){run_batch, sides[i], sides[i]->ns};
    }
    return bench_rounds(subjects, count, options->shared.rounds);
}

static int measure_op(struct bench *bench, const struct op *op,
                      const struct options *options, struct table *results)
{
    static struct side fs, floor, library; /* large */
    uint32_t operations = op->size < 65536 ? operations_of(options) : 100;
    const struct op *other = op->library ? op->library : op;

    fs = make_side(bench, op, op->run, op->reset, operations);
    floor = make_side(bench, op, op->floor, NULL, operations);
    library =
        make_side(bench, other, op->library ? other->run : NULL, NULL, operations);
    int rc = run_rounds(&fs, &floor, &library, options);
    if (rc == 0 && library.run)
        rc = add_row(results, &library, &floor, options->shared.rounds);
    if (rc == 0)
        rc = add_row(results, &fs, op->floor ? &floor : NULL, options->shared.rounds);
    if (rc < 0)
        fprintf(stderr, "bench-pmfs: %s: %s: %s\n", op->name, strerror(-rc),
                pmfs_errormsg());
    return rc;
}

static int add_threads_row(void *arg, const struct threads_figure *figure)
{
    struct bench_spread ns = bench_spread(figure->ns, figure->rounds);
    struct cell *row = table_add(arg);
    char name[TABLE_TEXT_SIZE];

    if (!row)
        return -ENOMEM;
    snprintf(name, sizeof(name), "%s by %u thread%s", figure->op, figure->threads,
             figure->threads > 1 ? "s" : "");
    cell_set_text(&row[COL_OP], name);
    row[COL_SIZE].number = figure->size ? figure->size : (double)NAN;
    row[COL_NS_MEDIAN].number = ns.median;
    row[COL_NS_MIN].number = ns.min;
    row[COL_NS_MAX].number = ns.max;
    if (!figure->has_floor)
        return 0;
    row[COL_NS_FLOOR].number = bench_spread(figure->floor_ns, figure->rounds).median;
    row[COL_RATIO_FLOOR].number =
        bench_ratio(figure->ns, figure->floor_ns, figure->rounds);
    return 0;
}

static int add_scale_row(void *arg, const struct scale_figure *figure)
{
    struct bench_spread ns = bench_spread(figure->ns, figure->rounds);
    struct cell *row = table_add(arg);

    if (!row)
        return -ENOMEM;
    cell_set_text(&row[COL_OP], figure->op);
    row[COL_SIZE].number = figure->size;
    row[COL_FENCES].number = figure->fences;
    row[COL_READS].number = figure->reads ? figure->reads : (double)NAN;
    row[COL_NS_MEDIAN].number = ns.median;
    row[COL_NS_MIN].number = ns.min;
    row[COL_NS_MAX].number = ns.max;
    if (!figure->floor_ns)
        return 0;
    row[COL_NS_FLOOR].number = bench_spread(figure->floor_ns, figure->rounds).median;
    row[COL_RATIO_FLOOR].number =
        bench_ratio(figure->ns, figure->floor_ns, figure->rounds);
    return 0;
}

/* A row without figures for each bar of what was left out. */
static int add_left_out(struct table *results)
{
    for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]); i++) {
        if (!bars[i].size_is || find_row(results, bars[i].op, bars[i].size))
            continue;
        struct cell *row = table_add(results);

        if (!row)
            return -ENOMEM;
        cell_set_text(&row[COL_OP], bars[i].op);
        row[COL_SIZE].number = bars[i].size;
    }
    return 0;
}

static int measure_scale(const struct options *options, struct table *results)
{
    int rc = scale_measure(options->shared.is_quick, add_scale_row, results);

    if (rc == 0)
        rc = add_left_out(results);
    if (rc < 0)
        fprintf(stderr, "bench-pmfs: scale: %s: %s\n", strerror(-rc), pmfs_errormsg());
    return rc;
}

static int measure_ops(const struct options *options, struct table *results)
{
    struct minl2r_info info;
    struct bench bench;
    int rc = bench_make(&bench);

    if (rc < 0) {
        fprintf(stderr, "bench-pmfs: making the filesystem: %s\n", strerror(-rc));
        return rc;
    }
    if (minl2r_pool_info(pmfs_pool(bench.fs), &info) == 0)
        bench_print_setup(&options->shared, minl2r_medium_name(info.medium),
                          info.medium_reason);
    for (size_t i = 0; rc == 0 && i < op_count; i++)
        rc = measure_op(&bench, &ops[i], options, results);
    bench_finish(&bench);
    return rc;
}

/* ---- The command ----------------------------------------------------------------- */

/* Before the others, which keep this thread on one core. */
static int measure_threads(const struct options *options, struct table *results)
{
    uint32_t threads = options->threads ? options->threads : 2;

    return threads_measure(threads, options->shared.rounds, operations_of(options),
                           add_threads_row, results);
}

static int measure(const void *arg, struct table *results)
{
    const struct options *options = arg;

    if (options->is_scale || options->threads > 0)
        bench_print_setup(&options->shared, NULL, NULL);
    int rc = options->is_scale ? 0 : measure_threads(options, results);

    if (rc < 0 || options->threads > 0)
        return rc;
    rc = bench_pin();
    if (rc == 0 && !options->is_scale)
        rc = measure_ops(options, results);
    return rc < 0 ? rc : measure_scale(options, results);
}

static int set_scale(void *options, const char *value)
{
    (void)value;
    ((struct options *)options)->is_scale = true;
    return 0;
}

static int set_threads(void *arg, const char *value)
{
    struct options *options = arg;
    uint64_t threads = 0;
    int rc = bench_parse_number(value, 2, THREADS_MAX, &threads);

    options->threads = (uint32_t)threads;
    return rc;
}

static const struct bench_option own_options[] = {
    {"scale", NULL, "only how costs grow", set_scale},
    {"threads", "N",
     "only what threads do, by one and by N, each in a file or directory\n"
     "of its own (else two are among the rest)",
     set_threads},
    {0},
};

static const struct bench_command command = {
    .name = "bench-pmfs",
    .about = "Measures the calls of pmfs.h, in-process, beside the floor: what it "
             "costs to move\n"
             "the same bytes with no filesystem and no atomicity. Prints a table, then "
             "each\n"
             "bar and whether it is met. Then how costs grow with the names in a "
             "directory, to\n"
             "a million, and with how full a pool is.",
    .quick = "fewer and shorter rounds, with more noise; up to 30000 names",
    .rounds = 51,
    .quick_rounds = 11,
    .options = own_options,
    .room = "1.1 GiB, with --quick 420 MiB; 11 GiB for mounts of 10 GiB",
    .columns = columns,
    .column_count = COL_COUNT,
    .measure = measure,
    .print_bars = print_bars,
};

int main(int argc, char **argv)
{
    struct options options = {0};

    return bench_main(&command, &options, argc, argv);
}
