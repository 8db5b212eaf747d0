/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/sweep.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "crashtest/clock.h"
#include "crashtest/wait.h"
#include "crashtest/workers.h"

#define SETTINGS_MAX 32
#define FAILURES_MAX 16

/* What a worker tells. */
struct worker {
    uint64_t states; /* so far */
    size_t cases;
    bool is_done;
    enum suite_result worst;
    char error[WORKLOAD_ERROR_SIZE];
    struct report_workload workloads[SETTINGS_MAX];
    size_t workload_count;
    char failures[FAILURES_MAX][sizeof(((struct failure *)0)->id)];
    size_t failure_count;
};

/* Shared by all processes. */
struct board {
    const struct sweep *sweep;
    size_t next, case_count;
    size_t failures;
    struct worker workers[WORKERS_MAX];
};

static enum suite_result cannot(const char *name, const char *why)
{
    fflush(stdout);
    fprintf(stderr, "crashtest: %s: %s\n", name, why);
    return SUITE_NOT_TESTED;
}

/* ---- A worker -------------------------------------------------------------------- */

static void tell(struct worker *worker, const struct report *report)
{
    worker->workload_count =
        report->workload_count < SETTINGS_MAX ? report->workload_count : SETTINGS_MAX;
    for (size_t i = 0; i < worker->workload_count; i++) {
        worker->workloads[i] = report->workloads[i];
        worker->workloads[i].points = NULL;
        worker->workloads[i].point_count = 0;
    }
    for (size_t i = 0; i < report->failure_count && i < FAILURES_MAX; i++)
        memcpy(worker->failures[i], report->failures[i].id,
               sizeof(worker->failures[i]));
    worker->failure_count =
        report->failure_count < FAILURES_MAX ? report->failure_count : FAILURES_MAX;
    worker->states = report_total(report).count.states;
}

static void work(void *arg, unsigned number)
{
    struct board *board = arg;
    struct worker *worker = &board->workers[number];
    const struct sweep *sweep = board->sweep;
    struct suite *suite = suite_create(&sweep->suite);

    while (suite && worker->worst != SUITE_NOT_TESTED &&
           __atomic_load_n(&board->failures, __ATOMIC_RELAXED) <
               sweep->suite.failures_max) {
        size_t index = workers_take(&board->next);

        if (index >= board->case_count)
            break;
        size_t failures = worker->failure_count;
        enum suite_result result =
            sweep->workload->test(&sweep->plan, index, suite, worker->error);

        if (result > worker->worst)
            worker->worst = result;
        tell(worker, suite_report(suite));
        __atomic_add_fetch(&board->failures, worker->failure_count - failures,
                           __ATOMIC_RELAXED);
        worker->cases++;
    }
    worker->is_done = suite != NULL;
}

/* ---- All of them ----------------------------------------------------------------- */

static void print_progress(void *arg)
{
    const struct board *board = arg;
    uint64_t states = 0;
    size_t cases = 0;

    for (unsigned i = 0; i < WORKERS_MAX; i++) {
        states += board->workers[i].states;
        cases += board->workers[i].cases;
    }
    fprintf(stderr, "%s: %zu of %zu cases, %.1f million states\n",
            board->sweep->workload->name, cases, board->case_count,
            (double)states / 1e6);
}

/* ---- One report ------------------------------------------------------------------ */

static struct report_workload *find(struct report *report, const char *name)
{
    for (size_t i = 0; i < report->workload_count; i++)
        if (strcmp(report->workloads[i].name, name) == 0)
            return &report->workloads[i];
    struct report_workload *new = &report->workloads[report->workload_count++];

    memcpy(new->name, name, sizeof(new->name));
    return new;
}

static void add_workload(struct report *report, const struct report_workload *from)
{
    struct report_workload *to = find(report, from->name);

    to->programs += from->programs;
    to->operations += from->operations;
    to->seconds += from->seconds;
    to->is_sampled |= from->is_sampled;
    to->never_flushes |= from->never_flushes;
    to->failures += from->failures;
    explore_count_add(&to->count, &from->count);
}

static void add_workers(struct report *report, const struct board *board)
{
    for (unsigned i = 0; i < WORKERS_MAX; i++)
        for (size_t j = 0; j < board->workers[i].workload_count; j++)
            add_workload(report, &board->workers[i].workloads[j]);
}

/* What workers found is judged once more here, to be explained. */
static enum suite_result replay_failures(const struct sweep *sweep,
                                         const struct board *board, struct suite *suite)
{
    char error[WORKLOAD_ERROR_SIZE];
    enum suite_result result = SUITE_PASSED;

    for (unsigned i = 0; i < WORKERS_MAX; i++)
        for (size_t j = 0; j < board->workers[i].failure_count; j++) {
            result =
                sweep->workload->replay(board->workers[i].failures[j], suite, error);
            if (result != SUITE_FAILED)
                return cannot(board->workers[i].failures[j],
                              "this was wrong, and is not now");
        }
    return result;
}

static enum suite_result write_report(const struct sweep *sweep,
                                      const struct report *report)
{
    int json = sweep->json ? report_json(report, sweep->json) : 0;
    int html = sweep->html ? report_html(report, sweep->html) : 0;

    report_text(report, stdout);
    fflush(stdout);
    if (json < 0)
        return cannot(sweep->json, strerror(-json));
    if (html < 0)
        return cannot(sweep->html, strerror(-html));
    return SUITE_PASSED;
}

static enum suite_result report_all(const struct sweep *sweep,
                                    const struct board *board, double seconds)
{
    static struct report_workload workloads[SETTINGS_MAX];
    struct suite_options options = sweep->suite;

    options.failures_max = SIZE_MAX;
    struct suite *suite = suite_create(&options);

    if (!suite)
        return cannot(sweep->workload->name, "no memory");
    enum suite_result result = replay_failures(sweep, board, suite);
    struct report report = *suite_report(suite);

    report.workloads = workloads;
    report.workload_count = 0;
    report.is_replay = false;
    report.seconds = seconds;
    add_workers(&report, board);
    enum suite_result written = write_report(sweep, &report);

    suite_destroy(suite);
    return written > result ? written : result;
}

static enum suite_result check_workers(const struct board *board, unsigned count,
                                       int status)
{
    char end[200];

    for (unsigned i = 0; i < count; i++) {
        const struct worker *worker = &board->workers[i];

        if (worker->worst == SUITE_NOT_TESTED)
            return cannot("cannot be tested", worker->error);
        if (!worker->is_done && status == 0)
            return cannot("cannot be tested", "no memory");
    }
    if (status == 0)
        return SUITE_PASSED;
    wait_describe(status, end, sizeof(end));
    return cannot("cannot be tested: a process ended", end);
}

enum suite_result sweep_explore(const struct sweep *sweep)
{
    char error[WORKLOAD_ERROR_SIZE] = "";
    double begin = clock_now();
    struct board *board = workers_share(sizeof(*board));

    if (!board)
        return cannot(sweep->workload->name, "no memory");
    board->case_count = sweep->workload->plan(&sweep->plan, error);
    if (board->case_count == 0)
        return cannot(sweep->workload->name, error);
    board->sweep = sweep;
    unsigned count = workers_count(sweep->jobs, board->case_count);
    struct workers_end end;
    bool started =
        workers_run(&(struct workers){count, work, print_progress, board}, &end);
    enum suite_result result = started
                                   ? check_workers(board, count, end.status)
                                   : cannot("cannot start processes", strerror(errno));

    if (result == SUITE_PASSED)
        result = report_all(sweep, board, clock_now() - begin);
    munmap(board, sizeof(*board));
    return result;
}

static bool make_bug(const struct workload *workload, const char *name)
{
    const struct mutant *mutant;

    for (size_t i = 0; (mutant = workload->mutant(i)); i++)
        if (strcmp(mutant->name, name) == 0)
            return workload->mutate(i);
    return false;
}

enum suite_result sweep_replay(const struct sweep *sweep, const char *id,
                               const char *bug)
{
    char error[WORKLOAD_ERROR_SIZE] = "";

    if (bug && !make_bug(sweep->workload, bug))
        return cannot(bug, "there is no such bug to replay");
    struct suite *suite = suite_create(&sweep->suite);

    if (!suite)
        return cannot(sweep->workload->name, "no memory");
    enum suite_result result = sweep->workload->replay(id, suite, error);

    if (result == SUITE_NOT_TESTED)
        cannot("cannot be tested", error);
    else if (write_report(sweep, suite_report(suite)) != SUITE_PASSED)
        result = SUITE_NOT_TESTED;
    suite_destroy(suite);
    return result;
}
