/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/tx/count.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/scratch.h"

/* ---- Tallies --------------------------------------------------------------------- */

typedef void read_fn(struct tx_counters *counters);

/* All NAN unless counted_libpmem.c is there. */
static struct tx_counters read_libpmem(void)
{
    struct tx_counters counters = {NAN, NAN, NAN, NAN, NAN};
    read_fn *read_counters;

    *(void **)&read_counters = dlsym(RTLD_DEFAULT, "tx_count_read");
    if (read_counters)
        read_counters(&counters);
    return counters;
}

void tally_begin(struct tx_tally *tally)
{
    tally->before = read_libpmem();
}

void tally_end(struct tx_tally *tally)
{
    struct tx_counters after = read_libpmem();

    tally->sum.fences += after.fences - tally->before.fences;
    tally->sum.lines_flushed += after.lines_flushed - tally->before.lines_flushed;
    tally->sum.lines_streamed += after.lines_streamed - tally->before.lines_streamed;
    tally->sum.log_payload_bytes = tally->sum.log_bytes = NAN;
}

/* ---- The second run -------------------------------------------------------------- */

/* It lies beside this program. */
static int find_counted_libpmem(char path[PATH_MAX])
{
    static const char name[] = "bench-tx-counted-libpmem.so";
    ssize_t size = readlink("/proc/self/exe", path, PATH_MAX - sizeof(name));

    if (size < 0)
        return -errno;
    path[size] = '\0';
    char *slash = strrchr(path, '/');

    if (!slash)
        return -ENOENT;
    memcpy(slash + 1, name, sizeof(name));
    return access(path, R_OK) < 0 ? -errno : 0;
}

/* In the child. Few operations: each counts the same. */
static _Noreturn void exec_second_run(const char *counted_libpmem,
                                      const char *case_name, const char *directory,
                                      const char *json_path)
{
    const char *argv[] = {"bench-tx", "--no-counts", "--quick", "--rounds",
                          "1",        "--dir",       directory, "--json",
                          json_path,  NULL,          NULL,      NULL};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (case_name) {
        argv[9] = "--case";
        argv[10] = case_name;
    }
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* it removes its files then */
    if (null >= 0 && dup2(null, STDOUT_FILENO) >= 0 &&
        setenv("LD_PRELOAD", counted_libpmem, 1) == 0)
        execv("/proc/self/exe", (char **)(uintptr_t)argv);
    _exit(1);
}

static int second_run(const char *case_name, const char *directory,
                      const char *json_path)
{
    char counted_libpmem[PATH_MAX];
    int status, rc = find_counted_libpmem(counted_libpmem);

    if (rc < 0)
        return rc;
    fflush(stdout);
    pid_t child = fork();

    if (child < 0)
        return -errno;
    if (child == 0)
        exec_second_run(counted_libpmem, case_name, directory, json_path);
    if (waitpid(child, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static int read_results(struct table *results, const char *path)
{
    FILE *in = fopen(path, "r");

    if (!in)
        return -errno;
    int rc = table_read_json(results, in);

    fclose(in);
    return rc;
}

static void fill_in(struct cell *row, const struct cell *counted)
{
    static const enum tx_column columns[] = {TX_FENCES, TX_LINES_FLUSHED,
                                             TX_LINES_STREAMED};

    for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
        if (isnan(row[columns[i]].number))
            row[columns[i]].number = counted[columns[i]].number;
}

/* Both runs add the same rows in the same order. */
static int merge(struct table *results, const struct table *counted)
{
    if (counted->row_count != results->row_count)
        return -EPROTO;
    for (size_t i = 0; i < results->row_count; i++)
        fill_in(&results->cells[i * results->column_count], table_row(counted, i));
    return 0;
}

int count_in_second_run(const char *case_name, const char *directory,
                        struct table *results)
{
    struct table counted;
    const char *json_path = scratch_path("counts.json");
    int rc = json_path ? second_run(case_name, directory, json_path) : -ENOMEM;

    if (rc < 0)
        return rc;
    table_init(&counted, results->columns, results->column_count);
    rc = read_results(&counted, json_path);
    scratch_unlink(json_path);
    if (rc == 0)
        rc = merge(results, &counted);
    table_finish(&counted);
    return rc;
}
