/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-delay - the model of slower media, measured: what a phase of writes and a read
 * take on this machine as it is, what the model asks for, and what comes out; beside
 * it what was published of the medium.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/command.h"
#include "bench/delay/model.h"
#include "bench/harness.h"
#include "bench/scratch.h"
#include "bench/table.h"
#include "libminl2r/pm.h"

#define REGION_SIZE ((uint64_t)64 << 20) /* more than any cache here */
#define LINES_MAX 64
#define THREADS_MAX 2

static uint32_t operations_of(const struct bench_options *options)
{
    return options->is_quick ? 200 : 2000; /* per batch */
}

/* ---- Results --------------------------------------------------------------------- */

enum {
    COL_MEDIUM,
    COL_WHAT,
    COL_LINES,
    COL_THREADS,
    COL_PUBLISHED,
    COL_HERE,
    COL_ASKED,
    COL_GOT,
    COL_GOT_MIN,
    COL_GOT_MAX,
    COL_RATIO,
    COL_COUNT
};

static const struct column columns[COL_COUNT] = {
    {"medium", "medium", COLUMN_TEXT, 0},
    {"what", "what", COLUMN_TEXT, 0},
    {"lines", "lines", COLUMN_NUMBER, 0},
    {"threads", "threads", COLUMN_NUMBER, 0},
    {"ns_published", "published ns", COLUMN_NUMBER, 0},
    {"ns_here", "here ns", COLUMN_NUMBER, 0},
    {"ns_asked", "asked ns", COLUMN_NUMBER, 0},
    {"ns_got", "got ns", COLUMN_NUMBER, 0},
    {"ns_got_min", "min", COLUMN_NUMBER, 0},
    {"ns_got_max", "max", COLUMN_NUMBER, 0},
    {"ratio", "got / due", COLUMN_NUMBER, 2},
};

/* ---- What is measured ------------------------------------------------------------ */

struct bed {
    struct pm pm;
    uint8_t bytes[LINES_MAX * DELAY_LINE];
};

typedef void operation_fn(struct bed *bed, struct pm_phase *phase, uint64_t offset,
                          size_t size);

static void flush_lines(struct bed *bed, struct pm_phase *phase, uint64_t offset,
                        size_t size)
{
    pm_store(phase, bed->pm.base + offset, bed->bytes, size);
    pm_flush(phase, bed->pm.base + offset, size);
    pm_fence(phase);
}

static void stream_lines(struct bed *bed, struct pm_phase *phase, uint64_t offset,
                         size_t size)
{
    pm_store_nt(phase, bed->pm.base + offset, bed->bytes, size);
    pm_fence(phase);
}

static void read_lines(struct bed *bed, struct pm_phase *phase, uint64_t offset,
                       size_t size)
{
    uint8_t bytes[LINES_MAX * DELAY_LINE];

    (void)phase;
    memcpy(bytes, bed->pm.base + offset, size);
    __asm__ volatile("" : : "r"(bytes) : "memory"); /* they are used */
}

static double find_published(const struct delay_published *published, size_t lines)
{
    for (; published && published->lines > 0; published++)
        if (published->lines == lines)
            return published->ns;
    return (double)NAN;
}

static double due_of_writes(const struct delay_medium *medium, size_t flushed,
                            size_t streamed)
{
    struct delay_buses buses = {0};
    struct delay_writes writes = {.flushed = flushed, .streamed = streamed};

    return (double)delay_fence_end(medium, &buses, &writes) / 1000;
}

static double due_flush(const struct delay_medium *medium, size_t lines)
{
    return due_of_writes(medium, lines, 0);
}

static double due_stream(const struct delay_medium *medium, size_t lines)
{
    return due_of_writes(medium, 0, lines);
}

static double due_read(const struct delay_medium *medium, size_t lines)
{
    struct delay_buses buses = {0};

    return (double)delay_read_end(medium, &buses, lines, 0) / 1000;
}

static const struct kind {
    const char *name;
    operation_fn *run;
    double (*due)(const struct delay_medium *medium, size_t lines);
    const struct delay_published *of_optane;
} kinds[] = {
    {"flush, fence", flush_lines, due_flush, delay_optane_flush},
    {"stream, fence", stream_lines, due_stream, delay_optane_stream},
    {"read", read_lines, due_read, delay_optane_read},
};

/* ---- Measuring ------------------------------------------------------------------- */

struct load {
    struct bed *bed;
    const struct kind *kind;
    const struct delay_medium *medium; /* NULL: as it is */
    size_t lines;
    uint32_t operations;
    uint32_t threads;
    double ns[BENCH_ROUNDS_MAX];
};

struct worker {
    const struct load *load;
    uint32_t number;
};

/*
 * What is stored through the cache is there already, since fetching lines is no matter of
 * the phase that flushes them. All else goes where this thread was not lately.
 */
static void *run_operations(void *arg)
{
    static uint64_t starts[THREADS_MAX];
    const struct worker *worker = arg;
    const struct load *load = worker->load;
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &load->bed->pm, .stats = &stats};
    size_t size = load->lines * DELAY_LINE;
    uint64_t room = load->kind->run == flush_lines ? 4 * sizeof(load->bed->bytes)
                                                   : REGION_SIZE / THREADS_MAX;
    uint64_t *at = &starts[worker->number];

    for (uint32_t i = 0; i < load->operations; i++) {
        *at = (*at + 8192 + DELAY_LINE) % (room - sizeof(load->bed->bytes));
        load->kind->run(load->bed, &phase,
                        worker->number * room + (*at & ~(DELAY_LINE - 1)), size);
    }
    return NULL;
}

static int run_threads(const struct load *load)
{
    struct worker workers[THREADS_MAX];
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    int rc = 0;

    for (; rc == 0 && started < load->threads; started += rc == 0) {
        workers[started] = (struct worker){load, started};
        rc =
            -pthread_create(&threads[started], NULL, run_operations, &workers[started]);
    }
    for (uint32_t i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return rc;
}

static int run_batch(void *arg, double *ns_per_op)
{
    struct load *load = arg;
    struct worker alone = {load, 0};
    int rc = 0;

    delay_use(load->medium);
    uint64_t start_ns = bench_now_ns();
    if (load->threads == 1)
        run_operations(&alone);
    else
        rc = run_threads(load);
    *ns_per_op = (double)(bench_now_ns() - start_ns) / load->operations;
    delay_use(NULL);
    return rc;
}

static int measure(struct table *results, struct load *delayed, double asked,
                   double published, size_t rounds)
{
    static struct load here; /* large */

    here = *delayed;
    here.medium = NULL;
    const struct bench_subject subjects[] = {{run_batch, &here, here.ns},
                                             {run_batch, delayed, delayed->ns}};
    double ignored;
    int rc = run_batch(&here, &ignored);

    if (rc == 0)
        rc = bench_rounds(subjects, 2, rounds);
    if (rc < 0)
        return rc;
    struct bench_spread got = bench_spread(delayed->ns, rounds);
    double here_ns = bench_spread(here.ns, rounds).median;
    struct cell *row = table_add(results);

    if (!row)
        return -ENOMEM;
    cell_set_text(&row[COL_MEDIUM], delayed->medium->name);
    cell_set_text(&row[COL_WHAT], delayed->kind->name);
    row[COL_LINES].number = (double)delayed->lines;
    row[COL_THREADS].number = delayed->threads;
    row[COL_PUBLISHED].number = published;
    row[COL_HERE].number = here_ns;
    row[COL_ASKED].number = asked;
    row[COL_GOT].number = got.median;
    row[COL_GOT_MIN].number = got.min;
    row[COL_GOT_MAX].number = got.max;
    row[COL_RATIO].number = got.median / (asked > here_ns ? asked : here_ns);
    return 0;
}

static int measure_kind(struct table *results, struct bed *bed,
                        const struct delay_medium *medium, const struct kind *kind,
                        const struct bench_options *options)
{
    const struct delay_published *published =
        strcmp(medium->name, "optane") == 0 ? kind->of_optane : NULL;
    int rc = 0;

    for (size_t lines = 1; rc == 0 && lines <= LINES_MAX; lines *= 2) {
        static struct load load; /* large */

        load = (struct load){.bed = bed,
                             .kind = kind,
                             .medium = medium,
                             .lines = lines,
                             .operations = operations_of(options),
                             .threads = 1};
        rc = measure(results, &load, kind->due(medium, lines),
                     find_published(published, lines), options->rounds);
    }
    return rc;
}

/* A limit that one thread reaches, and two share. */
static int measure_bandwidth(struct table *results, struct bed *bed,
                             const struct bench_options *options)
{
    static const struct delay_medium narrow = {.name = "1 GB/s", .write_gb_s = 1};
    int rc = 0;

    for (uint32_t threads = 1; rc == 0 && threads <= THREADS_MAX; threads++) {
        static struct load load; /* large */

        load = (struct load){.bed = bed,
                             .kind = &kinds[1],
                             .medium = &narrow,
                             .lines = LINES_MAX,
                             .operations = operations_of(options),
                             .threads = threads};
        rc = measure(results, &load, threads * due_stream(&narrow, LINES_MAX),
                     (double)NAN, options->rounds);
    }
    return rc;
}

static int measure_all(struct table *results, struct bed *bed,
                       const struct bench_options *options)
{
    int rc = 0;

    for (size_t m = 1; rc == 0 && m < delay_media_count; m++)
        for (size_t k = 0; rc == 0 && k < sizeof(kinds) / sizeof(kinds[0]); k++)
            rc = measure_kind(results, bed, &delay_media[m], &kinds[k], options);
    return rc < 0 ? rc : measure_bandwidth(results, bed, options);
}

/* ---- The memory ------------------------------------------------------------------ */

static int map_region(struct bed *bed)
{
    const char *path = scratch_path("delay");
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

    if (fd < 0)
        return -errno;
    int rc = -posix_fallocate(fd, 0, (off_t)REGION_SIZE);
    if (rc == 0)
        rc = pm_map(&bed->pm, fd, REGION_SIZE, true);
    close(fd);
    scratch_unlink(path);
    return rc;
}

/* So that no page is touched for the first time while the clock runs. */
static void touch_pages(const struct bed *bed)
{
    struct minl2r_stats stats = {0};
    struct pm_phase phase = {.pm = &bed->pm, .stats = &stats};

    pm_zero(&phase, bed->pm.base, REGION_SIZE);
}

/* ---- The command ----------------------------------------------------------------- */

static int run(const void *options, struct table *results)
{
    static struct bed bed; /* large */
    int rc = map_region(&bed);

    if (rc < 0)
        return rc;
    touch_pages(&bed);
    bench_print_setup(options, minl2r_medium_name(bed.pm.medium), bed.pm.reason);
    rc = measure_all(results, &bed, options);
    pm_unmap(&bed.pm);
    return rc;
}

static void print_media(void)
{
    puts("| medium | fence ns | line flushed ns | line streamed ns | read ns | further "
         "line read ns | write GB/s | read GB/s | source |\n"
         "|---|---:|---:|---:|---:|---:|---:|---:|---|");
    for (size_t i = 1; i < delay_media_count; i++) {
        const struct delay_medium *m = &delay_media[i];

        printf("| %s | %g | %g | %g | %g | %g | %g | %g | %s |\n", m->name, m->fence_ns,
               m->flush_line_ns, m->stream_line_ns, m->read_ns, m->read_line_ns,
               m->write_gb_s, m->read_gb_s, m->source);
    }
    putchar('\n');
}

static int print_results(const struct table *results, enum table_format format)
{
    if (format == TABLE_MARKDOWN)
        print_media();
    table_print(results, format, stdout);
    return 0;
}

static const struct bench_command command = {
    .name = "bench-delay",
    .about = "Measures the model of slower media: what writes and reads take here as "
             "it is,\n"
             "what the model asks for, and what comes out. `due` is the longer of the "
             "first\n"
             "two.",
    .quick = "fewer and shorter rounds, with more noise",
    .rounds = 21,
    .quick_rounds = 5,
    .room = "64 MiB",
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
