/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-fs - what it costs to keep a file consistent, by each of the schemes, and what
 * the calls of pmfs cost: times, fences, lines, and bytes of log.
 */
#include <errno.h>
#include <getopt.h>
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

#include "bench/fs/pmfs.h"
#include "bench/fs/run.h"
#include "bench/fs/slow.h"
#include "bench/harness.h"
#include "bench/scratch.h"
#include "bench/table.h"

enum { EXIT_USAGE = 2 };

struct options {
    struct plan plan;
    bool is_quick;
    bool counts;
    const char *medium;   /* or "all" */
    const char *workload; /* NULL: all */
    uint64_t record_size; /* 0: all */
    const char *json_path;
    const char *render_path;
    char **argv;
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
    {"checkpoints", "checkpoints", COLUMN_NUMBER, 4},
    {"calls", "calls", COLUMN_NUMBER, 0},
};

/* Per call. */
static void set_counts(struct cell *row, const struct scheme_counts *counts,
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

static void set_times(struct cell *row, const struct plan *plan,
                      const struct result *result)
{
    struct bench_spread p50 = bench_timing(plan, result, TIMING(p50));
    struct bench_spread mb_s = bench_timing(plan, result, TIMING(mb_s));

    row[COL_NS_P50].number = p50.median;
    row[COL_NS_P50_MIN].number = p50.min;
    row[COL_NS_P50_MAX].number = p50.max;
    row[COL_NS_P99].number = bench_timing(plan, result, TIMING(p99)).median;
    row[COL_NS_P999].number = bench_timing(plan, result, TIMING(p999)).median;
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
    if (options->is_quick)
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
        const struct result *result = &matrix->results[i];
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
        set_counts(row, &result->counts, (double)result->calls,
                   schemes[i]->counts_copies);
    }
    return rc;
}

static int measure_workload(const struct matrix *matrix,
                            const struct workload *workload, uint32_t threads)
{
    struct sizes sizes = sizes_of(matrix->options);
    int rc = 0;

    fprintf(stderr, "%s: %s, %u thread%s\n", matrix->options->medium, workload->name,
            threads, threads > 1 ? "s" : "");
    for (size_t i = 0; rc == 0 && i < sizes.count; i++)
        rc = measure_cell(matrix, workload, sizes.sizes[i], threads);
    return rc;
}

static int measure_matrix(const struct matrix *matrix)
{
    const struct options *options = matrix->options;
    int rc = bench_open(&options->plan, matrix->subjects);

    if (rc == 0)
        rc = slow_use(options->medium);
    for (uint32_t threads = 1; threads <= options->plan.threads_max; threads++)
        for (size_t i = 0; rc == 0 && i < workload_count; i++)
            if (is_wanted(options, &workloads[i], threads))
                rc = measure_workload(matrix, &workloads[i], threads);
    slow_use("tmpfs");
    bench_close(matrix->subjects);
    return rc;
}

static int measure_schemes(const struct options *options, struct table *table)
{
    struct matrix matrix = {
        .options = options,
        .subjects = calloc(scheme_count, sizeof(struct subject)),
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
                        const struct result *result)
{
    const struct pmfs_rows *rows = arg;
    struct cell *row = add_row(rows->table, "pmfs", name, size, 1, "tmpfs");

    if (!row)
        return -ENOMEM;
    set_times(row, &rows->options->plan, result);
    set_counts(row, &result->counts, (double)result->calls, false);
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
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 8);
    char *argv[64];
    size_t count = 0;
    int status;

    if (length < 0)
        return -errno;
    strcpy(program + length, "-slow");
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
    double low, high; /* of record sizes */
    double least;     /* minl2r's throughput, divided by each other's */
    bool is_append;   /* beside bpfs-durable only */
};

static const struct bar bars[] = {
    {"overwrite", "tmpfs", 0, 1024, 1, false},
    {"overwrite", "tmpfs", 1025, 4096, 0.9, false},
    {"overwrite", "tmpfs", 4097, 1e9, 0.95, false},
    {"append", "tmpfs", 0, 1e9, 0.9, true},
    {"overwrite", "optane", 0, 1e9, 1, false},
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

/* The least ratio of a bar beside one scheme, and its size; NAN: not measured. */
static double least_ratio(const struct table *table, const struct bar *bar,
                          const char *other, double *size)
{
    double least = NAN;

    for (size_t i = 0; i < sizeof(record_sizes) / sizeof(*record_sizes); i++) {
        double at = (double)record_sizes[i];
        const struct cell *mine =
            find_row(table, "minl2r", bar->workload, at, bar->medium);
        const struct cell *others =
            find_row(table, other, bar->workload, at, bar->medium);

        if (!mine || !others || at < bar->low || at > bar->high)
            continue;
        double ratio = others[COL_NS_P50].number / mine[COL_NS_P50].number;

        if (isnan(least) || ratio < least) {
            least = ratio;
            *size = at;
        }
    }
    return least;
}

static void print_bars(const struct table *table, const char *bullet)
{
    static const char *const others[] = {"bpfs-durable", "sjfs-eager", "journal"};

    for (size_t i = 0; i < sizeof(bars) / sizeof(*bars); i++)
        for (size_t j = 0; j < (bars[i].is_append ? 1 : 3); j++) {
            double size = 0;
            double ratio = least_ratio(table, &bars[i], others[j], &size);

            if (isnan(ratio))
                continue;
            printf("%s%s on %s, %.0f B to %.0f B: as fast as %s at least %.2f times, "
                   "measured %.2f at %.0f B: %s\n",
                   bullet, bars[i].workload, bars[i].medium, bars[i].low, bars[i].high,
                   others[j], bars[i].least, ratio, size,
                   ratio >= bars[i].least ? "met" : "MISSED");
        }
}

/* ---- Printing -------------------------------------------------------------------- */

/* Medians of one workload and medium: a line per scheme, a column per record size. */
static void print_medians(const struct table *table, const char *workload,
                          const char *medium)
{
    bool has_any = false;

    for (size_t i = 0; i < scheme_count; i++)
        for (size_t j = 0; j < sizeof(record_sizes) / sizeof(*record_sizes); j++)
            has_any |= find_row(table, schemes[i]->name, workload,
                                (double)record_sizes[j], medium) != NULL;
    if (!has_any)
        return;
    printf("\n#### %s, %s, one thread: ns per call\n\n| scheme |", workload, medium);
    for (size_t j = 0; j < sizeof(record_sizes) / sizeof(*record_sizes); j++)
        printf(" %llu |", (unsigned long long)record_sizes[j]);
    printf("\n|---|");
    for (size_t j = 0; j < sizeof(record_sizes) / sizeof(*record_sizes); j++)
        printf("---:|");
    for (size_t i = 0; i < scheme_count; i++) {
        printf("\n| %s |", schemes[i]->name);
        for (size_t j = 0; j < sizeof(record_sizes) / sizeof(*record_sizes); j++) {
            const struct cell *row = find_row(table, schemes[i]->name, workload,
                                              (double)record_sizes[j], medium);

            if (row)
                printf(" %.0f |", row[COL_NS_P50].number);
            else
                printf(" - |");
        }
    }
    putchar('\n');
}

static void print_markdown(const struct table *table)
{
    puts("### Bars\n");
    print_bars(table, "- ");
    for (size_t i = 0; i < workload_count; i++)
        print_medians(table, workloads[i].name, "tmpfs");
    print_medians(table, "overwrite", "optane");
    print_medians(table, "append", "optane");
    print_medians(table, "overwrite", "cxl");
    print_medians(table, "append", "cxl");
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

static int print_counts(const struct options *options)
{
    struct subject *subjects = calloc(scheme_count, sizeof(*subjects));
    struct sizes sizes = sizes_of(options);
    int rc = subjects ? bench_open(&options->plan, subjects) : -ENOMEM;

    printf("%-12s  %-26s %6s %7s %8s %9s %9s %9s %9s\n", "scheme", "workload", "size",
           "fences", "flushed", "streamed", "saved B", "log B", "PM B");
    for (size_t i = 0; rc == 0 && i < scheme_count; i++)
        for (size_t j = 0; rc == 0 && j < workload_count; j++)
            for (size_t k = 0; rc == 0 && k < sizes.count; k++)
                rc = print_count(&subjects[i], &workloads[j], sizes.sizes[k]);
    if (subjects)
        bench_close(subjects);
    free(subjects);
    return rc;
}

/* ---- Commands -------------------------------------------------------------------- */

static int fail(const char *what, int rc)
{
    fprintf(stderr, "bench-fs: %s: %s\n", what, table_strerror(rc));
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

    bench_print_machine();
    printf("Medium: emulated (a file in memory survives a killed process, not a power "
           "loss); models of slower ones\nRounds: %zu\n\n",
           options->plan.rounds);
    fflush(stdout);
    table_init(&results, columns, COL_COUNT);
    int rc = measure_media(options, &results);

    if (rc == 0) {
        table_print(&results, TABLE_PLAIN, stdout);
        puts("\nBars");
        print_bars(&results, "  ");
    }
    if (rc == 0 && options->json_path)
        rc = write_json(options->json_path, &results);
    table_finish(&results);
    return rc < 0 ? fail("measuring", rc) : EXIT_SUCCESS;
}

static int start(const struct options *options)
{
    int rc = scratch_init(options->plan.directory);

    if (rc < 0)
        return fail(options->plan.directory, rc);
    rc = bench_pin();
    if (rc < 0)
        return fail("cannot stay on one core", rc);
    if (!options->counts)
        return measure(options);
    rc = print_counts(options);
    return rc < 0 ? fail("counting", rc) : EXIT_SUCCESS;
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
        print_markdown(&results);
    table_finish(&results);
    fclose(in);
    return rc < 0 ? fail(path, rc) : EXIT_SUCCESS;
}

static void print_usage(FILE *out)
{
    fputs(
        "Usage: bench-fs [OPTION ...]\n"
        "\n"
        "Measures schemes that keep a file on persistent memory consistent, in one "
        "run, and\n"
        "the calls of pmfs. Prints a table, then each bar and whether it is met.\n"
        "\n"
        "  --quick          fewer sizes and shorter rounds, with more noise\n"
        "  --rounds N       rounds (default 9)\n"
        "  --medium NAME    tmpfs (default), optane, cxl (models of slower media), or "
        "all\n"
        "  --workload NAME  this one only\n"
        "  --size BYTES     this record size only\n"
        "  --threads N      at most so many threads: 1 or 2 (default 2)\n"
        "  --counts         no times: print what 64 calls store, flush and\n"
        "                   wait for, which is the same on every machine\n"
        "  --dir DIR        where volumes are made: tmpfs or DAX (default /dev/shm); "
        "needs\n"
        "                   1.5 GiB\n"
        "  --json FILE      also write the results there\n"
        "  --render FILE    measure nothing: print such results as Markdown\n"
        "  --help           this text\n"
        "\n"
        "Exit status: 0, 1 if it could not run, 2 for a wrong usage.\n",
        out);
}

static int parse_number(const char *text, uint64_t low, uint64_t high, uint64_t *number)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);

    if (end == text || *end != '\0' || value < low || value > high)
        return -EINVAL;
    *number = value;
    return 0;
}

static int parse_name(struct options *options, int option)
{
    if (option == 'm')
        options->medium = optarg;
    else
        options->workload = optarg;
    if (option == 'm')
        return strcmp(optarg, "all") == 0 || slow_is_medium(optarg) ? 0 : -EINVAL;
    return workload_find(optarg) ? 0 : -EINVAL;
}

static void be_quick(struct options *options)
{
    options->is_quick = true;
    options->plan.rounds = 5;
    options->plan.batch_size = (uint64_t)4 << 20;
    options->plan.calls_max = 2000;
}

static int parse_option(struct options *options, int option)
{
    uint64_t number = 0;
    int rc = 0;

    switch (option) {
    case 'q':
        be_quick(options);
        return 0;
    case 'r':
        rc = parse_number(optarg, 1, BENCH_ROUNDS_MAX, &number);
        options->plan.rounds = number;
        return rc;
    case 's':
        return parse_number(optarg, 1, RECORD_SIZE_MAX, &options->record_size);
    case 't':
        rc = parse_number(optarg, 1, THREADS_MAX, &number);
        options->plan.threads_max = (uint32_t)number;
        return rc;
    case 'm':
    case 'w':
        return parse_name(options, option);
    case 'c':
        options->counts = true;
        return 0;
    case 'd':
        options->plan.directory = optarg;
        return 0;
    case 'j':
        options->json_path = optarg;
        return 0;
    case 'e':
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
        {"rounds", required_argument, NULL, 'r'},
        {"medium", required_argument, NULL, 'm'},
        {"workload", required_argument, NULL, 'w'},
        {"size", required_argument, NULL, 's'},
        {"threads", required_argument, NULL, 't'},
        {"counts", no_argument, NULL, 'c'},
        {"dir", required_argument, NULL, 'd'},
        {"json", required_argument, NULL, 'j'},
        {"render", required_argument, NULL, 'e'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    struct options options = {
        .plan = {.directory = "/dev/shm",
                 .file_size = (uint64_t)32 << 20,
                 .batch_size = (uint64_t)16 << 20,
                 .calls_max = 8000,
                 .rounds = 9,
                 .threads_max = THREADS_MAX},
        .medium = "tmpfs",
        .argv = argv,
    };
    int option, rc = 0;

    while (rc == 0 && (option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        rc = parse_option(&options, option);
    if (rc < 0 || optind != argc) {
        bench_say_wrong(argv, option);
        print_usage(stderr);
        return EXIT_USAGE;
    }
    return options.render_path ? render(options.render_path) : start(&options);
}
