/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-fs - what it costs to keep a file consistent, by each of the schemes, and what
 * the calls of pmfs cost: times, fences, lines, and bytes of log.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/command.h"
#include "bench/fs/pmfs.h"
#include "bench/fs/run.h"
#include "bench/fs/slow.h"
#include "bench/harness.h"
#include "bench/scratch.h"
#include "bench/table.h"

struct options {
    struct bench_options shared;
    uint32_t threads_max;
    bool counts;
    const char *medium;   /* or "all"; NULL: tmpfs */
    const char *workload; /* NULL: all */
    uint64_t record_size; /* 0: all */
    char **argv;
    struct plan plan; /* made of the others */
};

/* ---- Results --------------------------------------------------------------------- */

enum {
    COL_SCHEME,
    COL_WORKLOAD,
    COL_RECORD_SIZE,
    COL_THREADS,
    COL_MEDIUM,
    COL_NS_P50,
    COL_NS_P50_MIN,
    COL_NS_P50_MAX,
    COL_NS_P99,
    COL_NS_P999,
    COL_NS_READ_P50,
    COL_NS_WRITE_P50,
    COL_MB_S,
    COL_MB_S_MIN,
    COL_MB_S_MAX,
    COL_LOG_PAYLOAD_BYTES,
    COL_LOG_BYTES,
    COL_COPIED_BYTES,
    COL_PM_BYTES,
    COL_LINES_FLUSHED,
    COL_LINES_STREAMED,
    COL_FENCES,
    COL_NS_READS,
    COL_CHECKPOINTS,
    COL_CALLS,
    COL_COUNT
};

static const struct column columns[COL_COUNT] = {
    {"scheme", "scheme", COLUMN_TEXT, 0},
    {"workload", "workload", COLUMN_TEXT, 0},
    {"record_size", "size", COLUMN_NUMBER, 0},
    {"threads", "threads", COLUMN_NUMBER, 0},
    {"medium", "medium", COLUMN_TEXT, 0},
    {"ns_p50", "p50", COLUMN_NUMBER, 0},
    {"ns_p50_min", "min", COLUMN_NUMBER, 0},
    {"ns_p50_max", "max", COLUMN_NUMBER, 0},
    {"ns_p99", "p99", COLUMN_NUMBER, 0},
    {"ns_p999", "p99.9", COLUMN_NUMBER, 0},
    {"ns_read_p50", "read p50", COLUMN_NUMBER, 0},
    {"ns_write_p50", "write p50", COLUMN_NUMBER, 0},
    {"mb_s", "MB/s", COLUMN_NUMBER, 0},
    {"mb_s_min", "min", COLUMN_NUMBER, 0},
    {"mb_s_max", "max", COLUMN_NUMBER, 0},
    {"log_payload_bytes", "saved B", COLUMN_NUMBER, 0},
    {"log_bytes", "log B", COLUMN_NUMBER, 0},
    {"copied_bytes", "copied B", COLUMN_NUMBER, 0},
    {"pm_bytes", "PM B", COLUMN_NUMBER, 0},
    {"lines_flushed", "flushed", COLUMN_NUMBER, 1},
    {"lines_streamed", "streamed", COLUMN_NUMBER, 1},
    {"fences", "fences", COLUMN_NUMBER, 2},
    {"ns_reads", "reads", COLUMN_LATER_NUMBER, 0},
    {"checkpoints", "checkpoints", COLUMN_NUMBER, 6},
    {"calls", "calls", COLUMN_NUMBER, 0},
};

/* Per call. */
static void put_counts(struct cell *row, const struct scheme_counts *counts,
                       double calls, bool counts_copies)
{
    const struct minl2r_stats *stats = &counts->stats;

    row[COL_LOG_PAYLOAD_BYTES].number = (double)stats->log_payload_bytes / calls;
    row[COL_LOG_BYTES].number = (double)stats->log_bytes / calls;
    row[COL_COPIED_BYTES].number =
        counts_copies ? (double)counts->copied_bytes / calls : (double)NAN;
    row[COL_PM_BYTES].number = (double)stats->pm_bytes / calls;
    row[COL_LINES_FLUSHED].number = (double)stats->lines_flushed / calls;
    row[COL_LINES_STREAMED].number = (double)stats->lines_streamed / calls;
    row[COL_FENCES].number = (double)stats->fences / calls;
    row[COL_CHECKPOINTS].number =
        counts_copies ? (double)counts->checkpoints / calls : (double)NAN;
    row[COL_CALLS].number = calls;
}

#define TIMING(member) offsetof(struct timing, member)

static void set_times(struct cell *row, const struct plan *plan, struct result *result)
{
    struct bench_spread p50 = bench_timing(plan, result, TIMING(p50));
    struct bench_spread mb_s = bench_timing(plan, result, TIMING(mb_s));

    row[COL_NS_P50].number = p50.median;
    row[COL_NS_P50_MIN].number = p50.min;
    row[COL_NS_P50_MAX].number = p50.max;
    row[COL_NS_P99].number = bench_tail(plan, result, TIMING(p99), 0.99, 100);
    row[COL_NS_P999].number = bench_tail(plan, result, TIMING(p999), 0.999, 1000);
    row[COL_MB_S].number = mb_s.median;
    row[COL_MB_S_MIN].number = mb_s.min;
    row[COL_MB_S_MAX].number = mb_s.max;
}

static struct cell *add_row(struct table *results, const char *scheme,
                            const char *workload, uint64_t record_size,
                            uint32_t threads, const char *medium)
{
    struct cell *row = table_add(results);

    if (!row)
        return NULL;
    cell_set_text(&row[COL_SCHEME], scheme);
    cell_set_text(&row[COL_WORKLOAD], workload);
    cell_set_text(&row[COL_MEDIUM], medium);
    row[COL_RECORD_SIZE].number = record_size ? (double)record_size : (double)NAN;
    row[COL_THREADS].number = threads;
    return row;
}

/* ---- The matrix ------------------------------------------------------------------ */

/* Powers of two, and sizes at which part of a block is logged. */
static const uint64_t record_sizes[] = {
    64,   128,  256,   512,   1024,  1536,  1984,   2048,   3072,   4096,
    6144, 8192, 12288, 16384, 32768, 65536, 131072, 262144, 524288, 1048576,
};
static const uint64_t counted_sizes[] = {64, 1024, 2048, 4096, 65536};
static const uint64_t quick_sizes[] = {64, 512, 1024, 2048, 4096, 65536, 1048576};

struct sizes {
    const uint64_t *sizes;
    size_t count;
};

static struct sizes sizes_of(const struct options *options)
{
    if (options->record_size)
        return (struct sizes){&options->record_size, 1};
    if (options->counts)
        return (struct sizes){counted_sizes,
                              sizeof(counted_sizes) / sizeof(*counted_sizes)};
    if (options->shared.is_quick)
        return (struct sizes){quick_sizes, sizeof(quick_sizes) / sizeof(*quick_sizes)};
    return (struct sizes){record_sizes, sizeof(record_sizes) / sizeof(*record_sizes)};
}

static bool is_wanted(const struct options *options, const struct workload *workload,
                      uint32_t threads)
{
    bool is_slow = strcmp(options->medium, "tmpfs") != 0;

    if (options->workload)
        return strcmp(options->workload, workload->name) == 0;
    return !is_slow || (workload->is_core && threads == 1);
}

struct matrix {
    const struct options *options;
    struct subject *subjects;
    struct result *results; /* [scheme_count] */
    struct table *table;
};

static int measure_cell(const struct matrix *matrix, const struct workload *workload,
                        uint64_t record_size, uint32_t threads)
{
    const struct options *options = matrix->options;
    int rc = bench_run(&options->plan, matrix->subjects, workload, record_size, threads,
                       matrix->results);

    for (size_t i = 0; rc == 0 && i < scheme_count; i++) {
        struct result *result = &matrix->results[i];
        struct cell *row = add_row(matrix->table, schemes[i]->name, workload->name,
                                   record_size, threads, options->medium);

        if (!row)
            return -ENOMEM;
        set_times(row, &options->plan, result);
        if (workload->reads) {
            row[COL_NS_READ_P50].number =
                bench_timing(&options->plan, result, TIMING(read_p50)).median;
            row[COL_NS_WRITE_P50].number =
                bench_timing(&options->plan, result, TIMING(write_p50)).median;
        }
        put_counts(row, &result->counts, (double)result->calls,
                   schemes[i]->counts_copies);
        row[COL_NS_READS].number = result->reads / (double)result->calls;
    }
    return rc;
}

static int measure_workload(const struct matrix *matrix,
                            const struct workload *workload, uint32_t threads)
{
    struct sizes sizes = sizes_of(matrix->options);
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizes.count; i++)
        rc = measure_cell(matrix, workload, sizes.sizes[i], threads);
    return rc;
}

/* Calls `measure_workload` for each that is wanted, and says how far it is. */
static int measure_workloads(const struct matrix *matrix)
{
    const struct options *options = matrix->options;
    uint32_t wanted = 0, done = 0;
    int rc = 0;

    for (uint32_t threads = 1; threads <= options->threads_max; threads++)
        for (size_t i = 0; i < workload_count; i++)
            wanted += is_wanted(options, &workloads[i], threads);
    for (uint32_t threads = 1; threads <= options->threads_max; threads++)
        for (size_t i = 0; rc == 0 && i < workload_count; i++) {
            if (!is_wanted(options, &workloads[i], threads))
                continue;
            fprintf(stderr, "%s, %u of %u: %s, %u thread%s\n", options->medium, ++done,
                    wanted, workloads[i].name, threads, threads > 1 ? "s" : "");
            rc = measure_workload(matrix, &workloads[i], threads);
        }
    return rc;
}

/* A row that has what was found out when the volume was made, and no times. */
static int add_thresholds(const struct matrix *matrix)
{
    for (size_t i = 0; i < scheme_count; i++) {
        const struct volume *volume = &matrix->subjects[i].volume;

        if (schemes[i]->is_calibrated &&
            !add_row(matrix->table, schemes[i]->name, "threshold", volume->threshold, 1,
                     matrix->options->medium))
            return -ENOMEM;
    }
    return 0;
}

static int measure_matrix(const struct matrix *matrix)
{
    int rc = slow_use(matrix->options->medium); /* what is calibrated is so on that */

    if (rc == 0)
        rc = bench_open(&matrix->options->plan, matrix->subjects);
    if (rc == 0)
        rc = add_thresholds(matrix);
    if (rc == 0)
        rc = measure_workloads(matrix);
    slow_use("tmpfs");
    bench_close(matrix->subjects);
    return rc;
}

static int measure_schemes(const struct options *options, struct table *table)
{
    struct matrix matrix = {
        .options = options,
        .subjects = memory_apart(scheme_count * sizeof(struct subject)),
        .results = calloc(scheme_count, sizeof(struct result)),
        .table = table,
    };
    int rc = matrix.subjects && matrix.results ? measure_matrix(&matrix) : -ENOMEM;

    free(matrix.subjects);
    free(matrix.results);
    return rc;
}

/* ---- pmfs ------------------------------------------------------------------------ */

struct pmfs_rows {
    const struct options *options;
    struct table *table;
};

static int add_pmfs_row(void *arg, const char *name, uint64_t size,
                        struct result *result)
{
    const struct pmfs_rows *rows = arg;
    struct cell *row = add_row(rows->table, "pmfs", name, size, 1, "tmpfs");

    if (!row)
        return -ENOMEM;
    set_times(row, &rows->options->plan, result);
    put_counts(row, &result->counts, (double)result->calls, false);
    return 0;
}

static int measure_pmfs(const struct options *options, struct table *table)
{
    struct pmfs_rows rows = {options, table};

    fputs("tmpfs: pmfs\n", stderr);
    return bench_pmfs(&options->plan, add_pmfs_row, &rows);
}

/* ---- Slower media ---------------------------------------------------------------- */

/* By the program that has the model in it, with the same options but for two. */
static int run_elsewhere(const struct options *options, const char *medium,
                         const char *json)
{
    char self[PATH_MAX], program[PATH_MAX + 8];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    char *argv[64];
    size_t count = 0;
    int status;

    if (length < 0)
        return -errno;
    snprintf(program, sizeof(program), "%.*s-slow", (int)length, self);
    for (; options->argv[count] && count < 59; count++)
        argv[count] = options->argv[count];
    argv[count++] = "--medium";
    argv[count++] = (char *)(uintptr_t)medium;
    argv[count++] = "--json";
    argv[count++] = (char *)(uintptr_t)json;
    argv[count] = NULL;
    pid_t child = fork();

    if (child == 0) {
        if (!freopen("/dev/null", "w", stdout))
            _exit(EXIT_FAILURE);
        execv(program, argv);
        _exit(EXIT_FAILURE);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

static int measure_elsewhere(const struct options *options, const char *medium,
                             struct table *table)
{
    const char *path = scratch_path("slow.json");
    int rc = path ? run_elsewhere(options, medium, path) : -ENOSPC;
    FILE *in = rc == 0 ? fopen(path, "re") : NULL;

    if (rc == 0)
        rc = in ? table_read_json(table, in) : -errno;
    if (in)
        fclose(in);
    if (path)
        scratch_unlink(path);
    return rc;
}

static int measure_medium(struct options options, const char *medium,
                          struct table *table)
{
    options.medium = medium;
    if (strcmp(medium, "tmpfs") != 0 && !slow_is_here())
        return measure_elsewhere(&options, medium, table);
    int rc = measure_schemes(&options, table);

    if (rc == 0 && strcmp(medium, "tmpfs") == 0 && !options.workload)
        rc = measure_pmfs(&options, table);
    return rc;
}

static int measure_media(const struct options *options, struct table *table)
{
    static const char *const media[] = {"tmpfs", "optane", "cxl"};
    bool all = strcmp(options->medium, "all") == 0;
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(media) / sizeof(*media); i++)
        if (all || strcmp(options->medium, media[i]) == 0)
            rc = measure_medium(*options, media[i], table);
    return rc;
}

/* ---- Bars ------------------------------------------------------------------------ */

struct bar {
    const char *workload, *medium;
    const char *sizes; /* in words */
    double low, high;  /* of record sizes */
    double least;      /* minl2r's throughput, divided by each other's */
    bool is_append;    /* beside bpfs-durable only */
};

static const struct bar bars[] = {
    {"overwrite", "tmpfs", "up to 1 KiB", 0, 1024, 1, false},
    {"overwrite", "tmpfs", "1 KiB to 4 KiB", 1025, 4096, 0.9, false},
    {"overwrite", "tmpfs", "above 4 KiB", 4097, INFINITY, 0.95, false},
    {"append", "tmpfs", "every size", 0, INFINITY, 0.9, true},
    {"overwrite", "optane", "every size", 0, INFINITY, 1, false},
};

static const struct cell *find_row(const struct table *table, const char *scheme,
                                   const char *workload, double size,
                                   const char *medium)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const struct cell *row = table_row(table, i);

        if (strcmp(row[COL_SCHEME].text, scheme) == 0 &&
            strcmp(row[COL_WORKLOAD].text, workload) == 0 &&
            strcmp(row[COL_MEDIUM].text, medium) == 0 && row[COL_THREADS].number == 1 &&
            row[COL_RECORD_SIZE].number == size)
            return row;
    }
    return NULL;
}

static bool is_in_bar(const struct cell *row, const struct bar *bar)
{
    return strcmp(row[COL_SCHEME].text, "minl2r") == 0 &&
           strcmp(row[COL_WORKLOAD].text, bar->workload) == 0 &&
           strcmp(row[COL_MEDIUM].text, bar->medium) == 0 &&
           row[COL_THREADS].number == 1 && row[COL_RECORD_SIZE].number >= bar->low &&
           row[COL_RECORD_SIZE].number <= bar->high;
}

/* The least ratio of a bar beside one scheme, and its size; NAN: not measured. */
static double least_ratio(const struct table *table, const struct bar *bar,
                          const char *other, double *size)
{
    double least = NAN;

    for (size_t i = 0; i < table->row_count; i++) {
        const struct cell *mine = table_row(table, i);

        if (!is_in_bar(mine, bar))
            continue;
        double at = mine[COL_RECORD_SIZE].number;
        const struct cell *others =
            find_row(table, other, bar->workload, at, bar->medium);

        if (!others)
            continue;
        double ratio = mine[COL_MB_S].number / others[COL_MB_S].number;

        if (isnan(least) || ratio < least) {
            least = ratio;
            *size = at;
        }
    }
    return least;
}

static void print_bars(const struct table *table, enum table_format format)
{
    static const char *const others[] = {"bpfs-durable", "sjfs-eager", "journal"};

    for (size_t i = 0; i < sizeof(bars) / sizeof(*bars); i++)
        for (size_t j = 0; j < (bars[i].is_append ? 1 : 3); j++) {
            double size = 0;
            double ratio = least_ratio(table, &bars[i], others[j], &size);

            if (isnan(ratio))
                continue;
            printf(
                "%s%s on %s, %s: as fast as %s at least %.2f times, measured %.2f at "
                "%.0f B: %s\n",
                bench_bullet(format), bars[i].workload, bars[i].medium, bars[i].sizes,
                others[j], bars[i].least, ratio, size,
                ratio >= bars[i].least ? "met" : "MISSED");
        }
}

/* ---- Half of a block, or what is measured ---------------------------------------- */

/* The rows of both that differ in nothing else. */
struct twins {
    const struct cell *half, *automatic;
};

/* Less than 0: half needs less; more: auto does; 0: neither, or not by more than noise. */
typedef int compare_fn(const struct twins *twins);

static int compare_times(const struct twins *twins)
{
    const struct cell *half = twins->half, *automatic = twins->automatic;

    if (half[COL_NS_P50_MAX].number < automatic[COL_NS_P50_MIN].number)
        return -1;
    return automatic[COL_NS_P50_MAX].number < half[COL_NS_P50_MIN].number;
}

static int compare_bytes(const struct twins *twins, size_t column)
{
    double half = twins->half[column].number;
    double automatic = twins->automatic[column].number;

    return (half > automatic * 1.01) - (automatic > half * 1.01);
}

static int compare_log(const struct twins *twins)
{
    return compare_bytes(twins, COL_LOG_BYTES);
}

static int compare_pm(const struct twins *twins)
{
    return compare_bytes(twins, COL_PM_BYTES);
}

static bool is_of(const struct cell *row, const char *scheme, const struct cell *like)
{
    return strcmp(row[COL_SCHEME].text, scheme) == 0 &&
           strcmp(row[COL_WORKLOAD].text, like[COL_WORKLOAD].text) == 0 &&
           strcmp(row[COL_MEDIUM].text, like[COL_MEDIUM].text) == 0 &&
           row[COL_THREADS].number == like[COL_THREADS].number;
}

static const struct cell *find_twin(const struct table *table, const struct cell *half)
{
    for (size_t i = 0; i < table->row_count; i++) {
        const struct cell *row = table_row(table, i);

        if (is_of(row, "minl2r-auto", half) &&
            row[COL_RECORD_SIZE].number == half[COL_RECORD_SIZE].number)
            return row;
    }
    return NULL;
}

/* Sizes at which one of both (`sign` of compare_fn) needs less. Are there any? */
static bool print_wins(const struct table *table, const struct cell *first,
                       compare_fn *compare, int sign, const char *who)
{
    bool has_any = false;

    for (size_t i = 0; i < table->row_count; i++) {
        struct twins twins = {.half = table_row(table, i)};

        if (!is_of(twins.half, "minl2r", first))
            continue;
        twins.automatic = find_twin(table, twins.half);
        if (!twins.automatic || compare(&twins) != sign)
            continue;
        printf("%s %.0f", has_any ? "" : who, twins.half[COL_RECORD_SIZE].number);
        has_any = true;
    }
    if (has_any)
        fputs(" B", stdout);
    return has_any;
}

static void print_halves_of(const struct table *table, const struct cell *first,
                            enum table_format format)
{
    static const struct {
        const char *what;
        compare_fn *compare;
    } figures[] = {{" faster", compare_times},
                   {"; less log", compare_log},
                   {"; less to PM", compare_pm}};

    printf("%s%s on %s", bench_bullet(format), first[COL_WORKLOAD].text,
           first[COL_MEDIUM].text);
    if (first[COL_THREADS].number > 1)
        printf(", %.0f threads", first[COL_THREADS].number);
    putchar(':');
    for (size_t i = 0; i < sizeof(figures) / sizeof(*figures); i++) {
        fputs(figures[i].what, stdout);
        bool has_half = print_wins(table, first, figures[i].compare, -1, ": half at");
        bool has_auto = print_wins(table, first, figures[i].compare, 1,
                                   has_half ? ", auto at" : ": auto at");

        if (!has_half && !has_auto)
            fputs(": neither", stdout);
    }
    putchar('\n');
}

static void print_threshold(const struct cell *row, enum table_format format)
{
    double threshold = row[COL_RECORD_SIZE].number;

    if (threshold > BLOCK_SIZE)
        printf("%sminl2r-auto on %s never swaps blocks, minl2r from half of one on\n",
               bench_bullet(format), row[COL_MEDIUM].text);
    else
        printf("%sminl2r-auto on %s swaps blocks from %.0f B on, minl2r from half of "
               "one on\n",
               bench_bullet(format), row[COL_MEDIUM].text, threshold);
}

/* Where each wins, of workloads, media and threads: each line beginning with the first
 * row of those that it is about. */
static void print_halves(const struct table *table, enum table_format format)
{
    const struct cell *last = NULL;

    for (size_t i = 0; i < table->row_count; i++) {
        const struct cell *row = table_row(table, i);

        if (strcmp(row[COL_WORKLOAD].text, "threshold") == 0)
            print_threshold(row, format);
        if (strcmp(row[COL_SCHEME].text, "minl2r") != 0 ||
            (last && is_of(row, "minl2r", last)) || !find_twin(table, row))
            continue;
        print_halves_of(table, row, format);
        last = row;
    }
}

static bool has_halves(const struct table *table)
{
    for (size_t i = 0; i < table->row_count; i++)
        if (strcmp(table_row(table, i)[COL_SCHEME].text, "minl2r-auto") == 0)
            return true;
    return false;
}

/* ---- Printing -------------------------------------------------------------------- */

static const struct cell *median_row(const struct table *table, size_t scheme,
                                     const char *workload, size_t size,
                                     const char *medium)
{
    return find_row(table, schemes[scheme]->name, workload, (double)record_sizes[size],
                    medium);
}

#define SIZE_COUNT (sizeof(record_sizes) / sizeof(*record_sizes))

static bool has_medians(const struct table *table, size_t scheme, const char *workload,
                        const char *medium)
{
    for (size_t i = 0; i < SIZE_COUNT; i++)
        if (median_row(table, scheme, workload, i, medium))
            return true;
    return false;
}

static void print_medians_of(const struct table *table, size_t scheme,
                             const char *workload, const char *medium)
{
    printf("\n| %s |", schemes[scheme]->name);
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        const struct cell *row = median_row(table, scheme, workload, i, medium);

        if (row)
            printf(" %.0f |", row[COL_NS_P50].number);
        else
            printf(" - |");
    }
}

/* Medians of one workload and medium: a line per scheme that was measured, a column per
 * record size. */
static void print_medians(const struct table *table, const char *workload,
                          const char *medium)
{
    bool has_any = false;

    for (size_t i = 0; i < scheme_count; i++)
        has_any |= has_medians(table, i, workload, medium);
    if (!has_any)
        return;
    printf("\n#### %s, %s, one thread: ns per call\n\n| scheme |", workload, medium);
    for (size_t i = 0; i < SIZE_COUNT; i++)
        printf(" %llu |", (unsigned long long)record_sizes[i]);
    printf("\n|---|");
    for (size_t i = 0; i < SIZE_COUNT; i++)
        printf("---:|");
    for (size_t i = 0; i < scheme_count; i++)
        if (has_medians(table, i, workload, medium))
            print_medians_of(table, i, workload, medium);
    putchar('\n');
}

static int print_results(const struct table *table, enum table_format format)
{
    if (format == TABLE_PLAIN) {
        table_print(table, format, stdout);
        puts("\nBars");
        print_bars(table, format);
        if (has_halves(table))
            puts("\nPointer logging from half of a block, or from what is measured");
        print_halves(table, format);
        return 0;
    }
    puts("### Bars\n");
    print_bars(table, format);
    if (has_halves(table))
        puts("\n#### Pointer logging from half of a block, or from what is measured\n");
    print_halves(table, format);
    for (size_t i = 0; i < workload_count; i++)
        print_medians(table, workloads[i].name, "tmpfs");
    print_medians(table, "overwrite", "optane");
    print_medians(table, "append", "optane");
    print_medians(table, "overwrite", "cxl");
    print_medians(table, "append", "cxl");
    return 0;
}

/* ---- Counts ---------------------------------------------------------------------- */

#define COUNTED_CALLS 64

/* What one thread stores, flushes and waits for: the same on every machine. */
static int print_count(struct subject *subject, const struct workload *workload,
                       uint64_t record_size)
{
    struct scheme_counts counts;
    int rc = bench_count(subject, workload, record_size, COUNTED_CALLS, &counts);
    const struct minl2r_stats *stats = &counts.stats;

    if (rc == 0)
        printf("%-12s  %-26s %6llu %7llu %8llu %9llu %9llu %9llu %9llu\n",
               subject->volume.scheme->name, workload->name,
               (unsigned long long)record_size, (unsigned long long)stats->fences,
               (unsigned long long)stats->lines_flushed,
               (unsigned long long)stats->lines_streamed,
               (unsigned long long)stats->log_payload_bytes,
               (unsigned long long)stats->log_bytes,
               (unsigned long long)stats->pm_bytes);
    return rc;
}

static int print_counts_of(struct subject *subject, struct sizes sizes)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < workload_count; i++)
        for (size_t j = 0; rc == 0 && j < sizes.count; j++)
            rc = print_count(subject, &workloads[i], sizes.sizes[j]);
    return rc;
}

static int print_counts(const struct options *options)
{
    struct subject *subjects = memory_apart(scheme_count * sizeof(*subjects));
    struct sizes sizes = sizes_of(options);
    int rc = subjects ? bench_open(&options->plan, subjects) : -ENOMEM;

    printf("%-12s  %-26s %6s %7s %8s %9s %9s %9s %9s\n", "scheme", "workload", "size",
           "fences", "flushed", "streamed", "saved B", "log B", "PM B");
    for (size_t i = 0; rc == 0 && i < scheme_count; i++)
        if (!schemes[i]->is_calibrated)
            rc = print_counts_of(&subjects[i], sizes);
    if (subjects)
        bench_close(subjects);
    free(subjects);
    return rc;
}

/* ---- The command ----------------------------------------------------------------- */

static struct plan plan_of(const struct options *options)
{
    bool is_quick = options->shared.is_quick;

    return (struct plan){
        .directory = options->shared.directory,
        .file_size = (uint64_t)32 << 20,
        .batch_size = (uint64_t)(is_quick ? 4 : 16) << 20,
        .calls_max = is_quick ? 2000 : 8000,
        .rounds = options->shared.rounds,
        .threads_max = options->threads_max,
    };
}

static int measure(const void *chosen, struct table *results)
{
    struct options options = *(const struct options *)chosen;
    int rc = bench_pin();

    options.plan = plan_of(&options);
    if (!options.medium)
        options.medium = "tmpfs";
    if (rc < 0)
        return rc;
    if (options.counts)
        return print_counts(&options);
    rc = bench_print_clock();
    if (rc < 0)
        return rc;
    bench_print_setup(&options.shared, "emulated",
                      "a file in memory survives a killed process, not a power loss; "
                      "slower media are a model");
    return measure_media(&options, results);
}

static int set_medium(void *arg, const char *value)
{
    struct options *options = arg;

    options->medium = value;
    return strcmp(value, "all") == 0 || slow_is_medium(value) ? 0 : -EINVAL;
}

static int set_workload(void *arg, const char *value)
{
    struct options *options = arg;

    options->workload = value;
    return workload_find(value) ? 0 : -EINVAL;
}

static int set_size(void *arg, const char *value)
{
    struct options *options = arg;

    return bench_parse_number(value, 1, RECORD_SIZE_MAX, &options->record_size);
}

static int set_threads(void *arg, const char *value)
{
    struct options *options = arg;
    uint64_t threads = 0;
    int rc = bench_parse_number(value, 1, THREADS_MAX, &threads);

    options->threads_max = (uint32_t)threads;
    return rc;
}

static int set_counts(void *arg, const char *value)
{
    struct options *options = arg;

    (void)value;
    options->counts = true;
    return 0;
}

static const char *find_contradiction(const void *chosen)
{
    const struct options *options = chosen;

    if (!options->counts)
        return NULL;
    if (options->shared.json_path)
        return "--counts has no --json: what it prints is the table that is compared";
    if (options->workload)
        return "--counts has no --workload: what is counted depends on all before it";
    if (options->medium)
        return "--counts has no --medium: counts are the same on each";
    return NULL;
}

static const struct bench_option own_options[] = {
    {"medium", "NAME", "tmpfs (default), optane, cxl (models of slower media), or all",
     set_medium},
    {"workload", "NAME", "this one only", set_workload},
    {"size", "BYTES", "this record size only", set_size},
    {"threads", "N", "at most so many threads: 1 or 2 (default 2)", set_threads},
    {"counts", NULL,
     "no times: print what 64 calls store, flush and wait\n"
     "for, which is the same on every machine",
     set_counts},
    {0},
};

static const struct bench_command command = {
    .name = "bench-fs",
    .about = "Measures schemes that keep a file on persistent memory consistent, in "
             "one run, and\n"
             "the calls of pmfs. Prints a table, then each bar and whether it is met.",
    .quick = "fewer sizes and shorter rounds, with more noise",
    .rounds = 9,
    .quick_rounds = 5,
    .options = own_options,
    .contradiction = find_contradiction,
    .room = "1.5 GiB",
    .columns = columns,
    .column_count = COL_COUNT,
    .measure = measure,
    .print = print_results,
};

int main(int argc, char **argv)
{
    struct options options = {.threads_max = THREADS_MAX, .argv = argv};

    return bench_main(&command, &options, argc, argv);
}
