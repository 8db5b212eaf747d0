/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-tx - compares transactions of minl2r with libpmemobj, libpmemblk and the floor.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/command.h"
#include "bench/harness.h"
#include "bench/tx/count.h"
#include "bench/tx/run.h"
#include "bench/tx/tx.h"

struct options {
    struct bench_options shared;
    const char *case_name; /* NULL: all */
    bool no_counts;
};

/* ---- Environment ----------------------------------------------------------------- */

/*
 * libpmem reads its variables when it is loaded, so this program starts itself again
 * with the only one it wants: on tmpfs libpmem would call msync() for each flush
 * without it. Nothing else that libpmem or libpmemobj read from there may favour one of
 * the systems.
 */
static int require_environment(char **argv)
{
    static const char *const others[] = {
        "PMEM_NO_FLUSH",  "PMEM_NO_CLWB",         "PMEM_NO_CLFLUSHOPT",
        "PMEM_NO_MOVNT",  "PMEM_MOVNT_THRESHOLD", "PMEM_AVX",
        "PMEM_AVX512F",   "PMEM_NO_MOVDIR64B",    "PMEM_NO_GENERIC_MEMCPY",
        "PMEM_MMAP_HINT", "PMEMOBJ_CONF",         "PMEMOBJ_CONF_FILE",
        "PMEMBLK_CONF",   "PMEMBLK_CONF_FILE",    "PMEMOBJ_NLANES",
    };
    const char *force = getenv("PMEM_IS_PMEM_FORCE");
    bool is_right = force && strcmp(force, "1") == 0;

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        is_right = is_right && !getenv(others[i]);
        unsetenv(others[i]);
    }
    if (is_right)
        return 0;
    if (setenv("PMEM_IS_PMEM_FORCE", "1", 1) < 0)
        return -errno;
    execv("/proc/self/exe", argv);
    return -errno;
}

static void print_environment(const struct bench_options *options,
                              const struct run_options *run)
{
    bench_print_machine();
    printf("PMDK: %s\n", BENCH_PMDK_VERSION);
    printf("Pools: in %s\n", options->directory);
    printf("Rounds: %zu, of %llu operations per system\n", run->rounds,
           (unsigned long long)run->operations);
}

/* ---- The command ----------------------------------------------------------------- */

static int measure(const void *arg, struct table *results)
{
    const struct options *options = arg;
    const struct run_options run = {
        .case_name = options->case_name,
        .rounds = options->shared.rounds,
        .operations = options->shared.is_quick ? 2000 : 20000,
    };
    int rc = bench_pin();

    if (rc < 0)
        return rc;
    print_environment(&options->shared, &run);
    rc = run_workloads(&run, results);
    if (rc < 0 || options->no_counts)
        return rc;
    return count_in_second_run(options->case_name, options->shared.directory, results);
}

static int print_bars(const struct table *results, enum table_format format)
{
    return bars_print(results, format, stdout);
}

static int set_case(void *arg, const char *value)
{
    struct options *options = arg;

    options->case_name = value;
    return run_has_case(value) ? 0 : -EINVAL;
}

static int set_no_counts(void *arg, const char *value)
{
    struct options *options = arg;

    (void)value;
    options->no_counts = true;
    return 0;
}

static const struct bench_option own_options[] = {
    {"case", "NAME",
     "only ranges, prove, block, snapshot, store64, abort, open or\nrecover", set_case},
    {"no-counts", NULL,
     "leave out the second run, which counts the fences and lines\nof PMDK's libraries",
     set_no_counts},
    {0},
};

static const struct bench_command command = {
    .name = "bench-tx",
    .about = "Compares transactions of minl2r with libpmemobj, libpmemblk, and the "
             "floor: what\n"
             "it costs to make the same bytes durable without atomicity. All run "
             "interleaved\n"
             "on one core. Prints a table, then each bar and whether it is met.",
    .quick = "shorter rounds: ends within 30 seconds",
    .rounds = 11,
    .quick_rounds = 11,
    .options = own_options,
    .room = "2.3 GiB",
    .columns = tx_columns,
    .column_count = TX_COLUMN_COUNT,
    .measure = measure,
    .print_bars = print_bars,
};

int main(int argc, char **argv)
{
    struct options options = {0};
    int rc = require_environment(argv);

    if (rc < 0) {
        fprintf(stderr, "bench-tx: setting PMEM_IS_PMEM_FORCE: %s\n", strerror(-rc));
        return EXIT_FAILURE;
    }
    return bench_main(&command, &options, argc, argv);
}
