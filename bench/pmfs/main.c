/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-pmfs - what the calls of pmfs.h cost in-process: times beside the floor,
 * fences, lines and bytes of log. Each operation alternates with its floor, on one
 * core.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"
#include "bench/pmfs/ops.h"
#include "bench/pmfs/scale.h"
#include "bench/pmfs/threads.h"
#include "bench/scratch.h"
#include "bench/table.h"

enum { EXIT_USAGE = 2 };

struct options {
    size_t rounds;
    uint32_t operations; /* per batch, about */
    bool is_quick;
    bool is_scale;    /* only that */
    uint32_t threads; /* 0: one, and all operations */
    const char *directory;
    const char *json_path;   /* NULL: none */
    const char *render_path; /* NULL: measure */
};

/* ---- Results --------------------------------------------------------------------- */

enum {
    COL_OP,
    COL_SIZE,
    COL_FENCES,
    COL_LINES_FLUSHED,
    COL_LINES_STREAMED,
    COL_LOG_BYTES,
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
        *above; /* the figure is what exceeds this operation's; NULL: all of it */
};

static const struct bar bars[] = {
    {"overwrite", 4096, COL_RATIO_FLOOR, 2.5, NULL},
    {"append", 4096, COL_RATIO_FLOOR, 3.2, NULL},
    {"overwrite", 64, COL_NS_MEDIAN, 300, "transaction"},
    {"read", 4096, COL_RATIO_FLOOR, 1.5, NULL},
    {"create+unlink", 0, COL_NS_MEDIAN, 5000, NULL},
    {"overwrite", 4096, COL_FENCES, 2, NULL},
    {"append", 4096, COL_FENCES, 3, NULL},
    {"append in a block", 64, COL_FENCES, 2, NULL},
    {"create", 0, COL_FENCES, 3, NULL},
    {"unlink", 0, COL_FENCES, 3, NULL},
    {"rename", 0, COL_FENCES, 3, NULL},
    {"chmod", 0, COL_FENCES, 1, NULL},
};

static double figure_of(const struct table *results, const struct bar *bar)
{
    const struct cell *row = find_row(results, bar->op, bar->size);
    const struct cell *base =
        bar->above ? find_row(results, bar->above, bar->size) : NULL;

    if (!row || (bar->above && !base))
        return NAN;
    return row[bar->column].number - (base ? base[bar->column].number : 0);
}

static void print_bars(const struct table *results, const char *bullet)
{
    for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]); i++) {
        const struct bar *bar = &bars[i];
        double figure = figure_of(results, bar);
        char size[24] = "";

        if (bar->size > 0)
            snprintf(size, sizeof(size), " of %.0f B", bar->size);
        printf("%s%s%s: %s%s%s %.2f, at most %.2f: %s\n", bullet, bar->op, size,
               columns[bar->column].heading, bar->above ? " above a " : "",
               bar->above ? bar->above : "", figure, bar->limit,
               isnan(figure)          ? "not measured"
               : figure <= bar->limit ? "met"
                                      : "MISSED");
    }
}

static void print_results(const struct table *results, enum table_format format)
{
    if (format == TABLE_MARKDOWN) {
        puts("### Bars\n");
        print_bars(results, "- ");
        puts("\n### All results\n");
        table_print(results, format, stdout);
        return;
    }
    table_print(results, format, stdout);
    puts("\nBars");
    print_bars(results, "  ");
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
    return bench_rounds(subjects, count, options->rounds);
}

static int measure_op(struct bench *bench, const struct op *op,
                      const struct options *options, struct table *results)
{
    static struct side fs, floor, library; /* large */
    uint32_t operations = op->size < 65536 ? options->operations : 100;
    const struct op *other = op->library ? op->library : op;

    fs = make_side(bench, op, op->run, op->reset, operations);
    floor = make_side(bench, op, op->floor, NULL, operations);
    library =
        make_side(bench, other, op->library ? other->run : NULL, NULL, operations);
    int rc = run_rounds(&fs, &floor, &library, options);
    if (rc == 0 && library.run)
        rc = add_row(results, &library, &floor, options->rounds);
    if (rc == 0)
        rc = add_row(results, &fs, op->floor ? &floor : NULL, options->rounds);
    if (rc < 0)
        fprintf(stderr, "bench-pmfs: %s: %s: %s\n", op->name, strerror(-rc),
                pmfs_errormsg());
    return rc;
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
    row[COL_NS_MEDIAN].number = ns.median;
    row[COL_NS_MIN].number = ns.min;
    row[COL_NS_MAX].number = ns.max;
    return 0;
}

static int measure_scale(const struct options *options, struct table *results)
{
    int rc = scale_measure(options->is_quick, add_scale_row, results);

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
        printf("Medium: %s: %s\nRounds: %zu\n\n", minl2r_medium_name(info.medium),
               info.medium_reason, options->rounds);
    for (size_t i = 0; rc == 0 && i < op_count; i++)
        rc = measure_op(&bench, &ops[i], options, results);
    bench_finish(&bench);
    return rc;
}

/* ---- Commands -------------------------------------------------------------------- */

static int fail(const char *what, int rc)
{
    fprintf(stderr, "bench-pmfs: %s: %s\n", what, table_strerror(rc));
    return EXIT_FAILURE;
}

static int write_json(const char *path, const struct table *results)
{
    FILE *file = fopen(path, "w");
    int rc = file ? table_write_json(results, file) : -errno;

    if (file && fclose(file) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

static int measure(const struct options *options)
{
    struct table results;
    int rc = scratch_init(options->directory);

    if (rc < 0)
        return fail(options->directory, rc);
    rc = bench_pin();
    if (rc < 0)
        return fail("cannot stay on one core", rc);
    table_init(&results, columns, COL_COUNT);
    bench_print_machine();
    if (!options->is_scale)
        rc = measure_ops(options, &results);
    if (rc == 0)
        rc = measure_scale(options, &results);
    if (rc == 0)
        print_results(&results, TABLE_PLAIN);
    if (rc == 0 && options->json_path)
        rc = write_json(options->json_path, &results);
    table_finish(&results);
    return rc < 0 ? fail("measuring", rc) : EXIT_SUCCESS;
}

static int measure_threads(const struct options *options)
{
    int rc = scratch_init(options->directory);

    if (rc < 0)
        return fail(options->directory, rc);
    bench_print_machine();
    rc = threads_measure(options->threads, options->rounds, options->operations);
    return rc < 0 ? fail("measuring threads", rc) : EXIT_SUCCESS;
}

static int render(const char *path)
{
    struct table results;
    FILE *in = fopen(path, "r");

    if (!in)
        return fail(path, -errno);
    table_init(&results, columns, COL_COUNT);
    int rc = table_read_json(&results, in);

    if (rc == 0)
        print_results(&results, TABLE_MARKDOWN);
    table_finish(&results);
    fclose(in);
    return rc < 0 ? fail(path, rc) : EXIT_SUCCESS;
}

static void print_usage(FILE *out)
{
    fputs(
        "Usage: bench-pmfs [OPTION ...]\n"
        "\n"
        "Measures the calls of pmfs.h, in-process, beside the floor: what it costs to "
        "move\n"
        "the same bytes with no filesystem and no atomicity. Prints a table, then "
        "each\n"
        "bar and whether it is met. Then how costs grow with the names in a directory, "
        "to a\n"
        "million, and with how full a pool is.\n"
        "\n"
        "  --quick         fewer and shorter rounds, with more noise; up to 10000 "
        "names\n"
        "  --scale         only how costs grow\n"
        "  --rounds N      rounds (default 51)\n"
        "  --threads N     only overwrites of blocks, by N threads in files of their "
        "own\n"
        "  --dir DIR       where pools are made: tmpfs or DAX (default /dev/shm); "
        "needs\n"
        "                  1.1 GiB, with --quick 420 MiB\n"
        "  --json FILE     also write the results there\n"
        "  --render FILE   measure nothing: print such results as Markdown\n"
        "  --help          this text\n"
        "\n"
        "Exit status: 0, 1 if it could not run, 2 for a wrong usage.\n",
        out);
}

static int parse_rounds(const char *text, size_t *rounds)
{
    char *end;
    unsigned long value = strtoul(text, &end, 10);

    if (end == text || *end != '\0' || value < 1 || value > BENCH_ROUNDS_MAX)
        return -EINVAL;
    *rounds = value;
    return 0;
}

static int parse_option(struct options *options, int option)
{
    switch (option) {
    case 'q':
        options->rounds = 11;
        options->operations = 1000;
        options->is_quick = true;
        return 0;
    case 's':
        options->is_scale = true;
        return 0;
    case 'r':
        return parse_rounds(optarg, &options->rounds);
    case 't':
        options->threads = (uint32_t)strtoul(optarg, NULL, 10);
        return options->threads > 0 && options->threads <= THREADS_MAX ? 0 : -EINVAL;
    case 'd':
        options->directory = optarg;
        return 0;
    case 'j':
        options->json_path = optarg;
        return 0;
    case 'm':
        options->render_path = optarg;
        return 0;
    case 'h':
        print_usage(stdout);
        exit(EXIT_SUCCESS);
    default:
        return -EINVAL; /* getopt has said why */
    }
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"quick", no_argument, NULL, 'q'},
        {"scale", no_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},
        {"threads", required_argument, NULL, 't'},
        {"dir", required_argument, NULL, 'd'},
        {"json", required_argument, NULL, 'j'},
        {"render", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct options options = {
        .rounds = 51, .operations = 2000, .directory = "/dev/shm"};
    int option, rc = 0;

    while (rc == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        rc = parse_option(&options, option);
    if (rc < 0 || optind != argc) {
        bench_say_wrong(argv, option);
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (options.threads > 0)
        return measure_threads(&options);
    return options.render_path ? render(options.render_path) : measure(&options);
}
