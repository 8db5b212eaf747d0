/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/schedules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/guard.h"
#include "crashtest/wait.h"
#include "crashtest/workers.h"

#define IDS_MAX 16

/* An order that is tried: those that do the same to PM are tried once. */
struct attempt {
    size_t index; /* in the list */
    bool is_done;
    enum suite_result result;
    struct report_workload workload;
    char ids[IDS_MAX][sizeof(((struct failure *)0)->id)];
    size_t id_count;
    char error[sizeof(((struct schedules *)0)->error)];
};

/* Shared by all processes. */
struct board {
    const struct schedules *schedules;
    const struct crashtest_program *program;
    unsigned workers;
    size_t next, count;
    size_t last; /* later ones do not matter: there enough is wrong */
    struct attempt attempts[];
};

static enum suite_result cannot(struct schedules *schedules, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum suite_result cannot(struct schedules *schedules, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(schedules->error, sizeof(schedules->error), format, args);
    va_end(args);
    return SUITE_NOT_TESTED;
}

static struct session_program with_seed(const struct crashtest_program *program,
                                        uint64_t seed)
{
    return (struct session_program){
        .program = program, .is_fresh = true, .schedule = seed};
}

/* ---- What there is to try -------------------------------------------------------- */

static uint64_t find_same(const struct schedules *schedules, const uint64_t *hashes,
                          size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (hashes[i] == hashes[index])
            return schedules->list[i].seed;
    return 0;
}

static enum suite_result record_one(struct schedules *schedules,
                                    const struct crashtest_program *program,
                                    uint64_t seed)
{
    /* The session goes on pointing to it. */
    static struct session_program tested;

    tested = with_seed(program, seed);
    if (suite_record(schedules->suite, &tested) == SUITE_PASSED)
        return SUITE_PASSED;
    if (seed != 0 && suite_session(schedules->suite)->threads > 1)
        return cannot(schedules, "%s (again: --seed %llu --schedules 1)",
                      suite_error(schedules->suite), (unsigned long long)seed);
    return cannot(schedules, "%s", suite_error(schedules->suite));
}

static void note_order(struct schedules *schedules, uint64_t *hashes, size_t index,
                       uint64_t seed)
{
    const struct session *session = suite_session(schedules->suite);

    hashes[index] = session_hash(session);
    schedules->list[index] = (struct report_schedule){
        .seed = seed,
        .turns = session->turns,
        .same_as = find_same(schedules, hashes, index),
    };
    if (schedules->report.threads < session->threads)
        schedules->report.threads = session->threads;
    if (schedules->list[index].same_as == 0)
        suite_lint(schedules->suite);
}

/* The first one is recorded. */
static enum suite_result record_all(struct schedules *schedules,
                                    const struct crashtest_program *program)
{
    uint64_t first = schedules->options.explore.seed;
    uint64_t *hashes = calloc(schedules->count, sizeof(*hashes));
    enum suite_result result = SUITE_PASSED;

    schedules->list = calloc(schedules->count, sizeof(*schedules->list));
    if (!hashes || !schedules->list) {
        free(hashes);
        return cannot(schedules, "no memory");
    }
    for (size_t i = 0; i < schedules->count && result == SUITE_PASSED; i++) {
        if (i > 0)
            result = record_one(schedules, program, first + i);
        if (result == SUITE_PASSED)
            note_order(schedules, hashes, i, first + i);
    }
    free(hashes);
    return result;
}

/* ---- A worker -------------------------------------------------------------------- */

static struct suite_options options_of_worker(const struct board *board)
{
    struct suite_options options = board->schedules->options;
    double share = (double)board->workers / (double)board->count;

    options.explore.seconds *= options.explore.seconds > 0 ? share : 1;
    options.sampled_seconds *= share;
    options.lint = false;
    return options;
}

static void tell(struct attempt *attempt, const struct report *report)
{
    if (report->workload_count > 0)
        attempt->workload = report->workloads[0];
    attempt->workload.points = NULL;
    attempt->workload.point_count = 0;
    for (size_t i = 0; i < report->failure_count && i < IDS_MAX; i++)
        memcpy(attempt->ids[attempt->id_count++], report->failures[i].id,
               sizeof(attempt->ids[0]));
}

static void try_order(struct board *board, struct attempt *attempt)
{
    const struct suite_options options = options_of_worker(board);
    const struct session_program tested =
        with_seed(board->program, board->schedules->list[attempt->index].seed);
    struct suite *suite = suite_create(&options);

    if (!suite)
        return;
    attempt->result = suite_test(suite, &tested);
    snprintf(attempt->error, sizeof(attempt->error), "%s", suite_error(suite));
    tell(attempt, suite_report(suite));
    attempt->is_done = true;
    suite_destroy(suite);
}

static bool is_enough(const struct board *board, const struct attempt *attempt)
{
    return attempt->result == SUITE_NOT_TESTED ||
           attempt->id_count >= board->schedules->options.failures_max ||
           attempt->id_count == IDS_MAX;
}

static void end_at(struct board *board, size_t index)
{
    size_t last = __atomic_load_n(&board->last, __ATOMIC_RELAXED);

    while (index < last &&
           !__atomic_compare_exchange_n(&board->last, &last, index, false,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/* In a process of its own: each run begins with the memory of one that has just
 * started. */
static void fork_to_try(struct board *board, struct attempt *attempt)
{
    int status;
    pid_t process = fork_child();

    if (process == 0) {
        guard_init_child();
        try_order(board, attempt);
        _exit(0);
    }
    while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR)
        ;
    if (process > 0 && !attempt->is_done)
        wait_describe(status, attempt->error, sizeof(attempt->error));
}

/* There is one suite at a time, and that of the process before is its own. */
static void work(void *arg, unsigned number)
{
    struct board *board = arg;
    size_t index;

    (void)number;
    suite_destroy(board->schedules->suite);
    while ((index = workers_take(&board->next)) < board->count &&
           index <= __atomic_load_n(&board->last, __ATOMIC_RELAXED)) {
        fork_to_try(board, &board->attempts[index]);
        if (is_enough(board, &board->attempts[index]))
            end_at(board, index);
    }
}

/* ---- One report ------------------------------------------------------------------ */

static void add_counts(struct schedules *schedules, const struct attempt *attempt)
{
    struct report_workload *to = &schedules->workload;
    const struct report_workload *from = &attempt->workload;
    struct report_schedule *order = &schedules->list[attempt->index];

    memcpy(to->name, from->name, sizeof(to->name));
    to->programs = 1;
    to->operations += from->operations;
    to->seconds += from->seconds;
    to->is_sampled |= from->is_sampled;
    to->never_flushes |= from->never_flushes;
    if (to->unseen.words == 0)
        to->unseen = from->unseen;
    explore_count_add(&to->count, &from->count);
    order->count = from->count;
    order->failures = attempt->id_count;
    order->is_tried = true;
}

/* What a worker has found is judged once more here, to be explained. */
static enum suite_result replay_failures(struct schedules *schedules,
                                         const struct crashtest_program *program,
                                         const struct attempt *attempt)
{
    const struct report *report = suite_report(schedules->suite);
    const struct session_program tested =
        with_seed(program, schedules->list[attempt->index].seed);

    for (size_t i = 0; i < attempt->id_count &&
                       report->failure_count < schedules->options.failures_max;
         i++)
        if (suite_replay(schedules->suite, &tested, attempt->ids[i]) != SUITE_FAILED)
            return cannot(schedules, "%.300s was wrong, and is not now: %s",
                          attempt->ids[i], suite_error(schedules->suite));
    return attempt->id_count > 0 ? SUITE_FAILED : SUITE_PASSED;
}

static enum suite_result add_attempt(struct schedules *schedules,
                                     const struct crashtest_program *program,
                                     const struct attempt *attempt)
{
    if (!attempt->is_done)
        return cannot(schedules, "a process that tried states ended: %s",
                      attempt->error[0] ? attempt->error : "it did not begin");
    if (attempt->result == SUITE_NOT_TESTED)
        return cannot(schedules, "%s", attempt->error);
    add_counts(schedules, attempt);
    return replay_failures(schedules, program, attempt);
}

static enum suite_result add_attempts(struct schedules *schedules,
                                      const struct board *board)
{
    const struct report *report = suite_report(schedules->suite);
    enum suite_result worst = SUITE_PASSED;

    for (size_t i = 0; i < board->count && worst != SUITE_NOT_TESTED; i++) {
        if (report->failure_count >= schedules->options.failures_max) {
            schedules->workload.count.is_stopped = true;
            break;
        }
        enum suite_result result =
            add_attempt(schedules, board->program, &board->attempts[i]);

        if (result > worst)
            worst = result;
    }
    return worst;
}

static void make_report(struct schedules *schedules)
{
    uint32_t threads = schedules->report.threads;

    schedules->report = *suite_report(schedules->suite);
    schedules->report.threads = threads;
    schedules->report.schedules = schedules->list;
    schedules->report.schedule_count = schedules->count;
    schedules->report.workloads = &schedules->workload;
    schedules->report.workload_count = 1;
    schedules->report.is_replay = false;
    schedules->workload.failures = schedules->report.failure_count;
}

/* ---- Trying ---------------------------------------------------------------------- */

static size_t count_different(const struct schedules *schedules)
{
    size_t count = 0;

    for (size_t i = 0; i < schedules->count; i++)
        count += schedules->list[i].same_as == 0;
    return count;
}

static struct board *make_board(const struct schedules *schedules,
                                const struct crashtest_program *program, size_t *size)
{
    size_t count = count_different(schedules), at = 0;

    *size = sizeof(struct board) + count * sizeof(struct attempt);
    struct board *board = workers_share(*size);

    if (!board)
        return NULL;
    board->schedules = schedules;
    board->program = program;
    board->workers = workers_count(schedules->jobs, count);
    board->count = board->last = count;
    for (size_t i = 0; i < schedules->count; i++)
        if (schedules->list[i].same_as == 0)
            board->attempts[at++].index = i;
    return board;
}

static void tell_progress(void *arg)
{
    const struct board *board = arg;
    size_t done = 0;

    for (size_t i = 0; i < board->count; i++)
        done += board->attempts[i].is_done;
    if (isatty(STDERR_FILENO))
        fprintf(stderr, "%s: %zu of %zu orders of threads\n", board->program->name,
                done, board->count);
}

static enum suite_result try_all(struct schedules *schedules,
                                 const struct crashtest_program *program)
{
    size_t size;
    struct board *board = make_board(schedules, program, &size);

    if (!board)
        return cannot(schedules, "no memory");
    struct workers_end end;
    bool started = workers_run(
        &(struct workers){board->workers, work, tell_progress, board}, &end);
    char how[200];
    enum suite_result result;

    wait_describe(end.status, how, sizeof(how));
    if (!started)
        result = cannot(schedules, "cannot start processes: %s", strerror(errno));
    else if (end.status != 0)
        result = cannot(schedules, "a process that tried states ended: %s", how);
    else
        result = add_attempts(schedules, board);

    munmap(board, size);
    make_report(schedules);
    return result;
}

/* Nothing to choose: processes share out crash points instead. */
static enum suite_result try_one(struct schedules *schedules)
{
    suite_lint(schedules->suite);
    enum suite_result result = suite_test_recorded(
        schedules->suite, workers_count(schedules->jobs, WORKERS_MAX));

    schedules->report = *suite_report(schedules->suite);
    if (result == SUITE_NOT_TESTED)
        return cannot(schedules, "%s", suite_error(schedules->suite));
    return result;
}

static enum suite_result create(struct schedules *schedules)
{
    schedules->suite = suite_create(&schedules->options);
    return schedules->suite ? SUITE_PASSED : cannot(schedules, "no memory");
}

enum suite_result schedules_test(struct schedules *schedules,
                                 const struct crashtest_program *program)
{
    uint64_t seed = schedules->count > 0 ? schedules->options.explore.seed : 0;

    if (create(schedules) != SUITE_PASSED ||
        record_one(schedules, program, seed) != SUITE_PASSED)
        return SUITE_NOT_TESTED;
    if (seed == 0 || suite_session(schedules->suite)->threads == 1)
        return try_one(schedules);
    enum suite_result result = record_all(schedules, program);

    return result == SUITE_PASSED ? try_all(schedules, program) : result;
}

enum suite_result schedules_replay(struct schedules *schedules,
                                   const struct crashtest_program *program,
                                   const char *id)
{
    const struct session_program tested =
        with_seed(program, schedules->count > 0 ? suite_id_seed(id) : 0);

    if (create(schedules) != SUITE_PASSED)
        return SUITE_NOT_TESTED;
    enum suite_result result = suite_replay(schedules->suite, &tested, id);

    schedules->report = *suite_report(schedules->suite);
    if (result == SUITE_NOT_TESTED)
        return cannot(schedules, "%s", suite_error(schedules->suite));
    return result;
}

void schedules_finish(struct schedules *schedules)
{
    if (schedules->suite)
        suite_destroy(schedules->suite);
    free(schedules->list);
}
