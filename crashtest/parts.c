/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/clock.h"
#include "crashtest/report.h"
#include "crashtest/wait.h"
#include "crashtest/workers.h"

/*
 * So many parts at most, which begin with an operation: states of different ones are
 * never the same. One of so many points is cut, or of so many times as an average part
 * has.
 */
#define PARTS_MAX 64
#define POINTS_TOO_MANY 32
#define TIMES_TOO_MANY 4

struct part {
    size_t begin, end;
    bool is_done;
    struct explore_count count;
    size_t finding_count, point_count;
    struct explore_point points[REPORT_POINTS_MAX];
};

/* Shared by all processes. */
struct board {
    struct parts *shared_out;
    enum pass pass;
    double end; /* of the time to explore; 0: there is none */
    size_t next, count;
    size_t last;  /* later ones do not matter: there enough is wrong */
    bool is_over; /* for want of time, or all is void */
    bool is_void, has_no_memory;
    size_t tried[WORKERS_MAX]; /* by worker: the part */
    int ends[WORKERS_MAX];     /* of the process that tried it, as of waitpid() */
    struct part parts[PARTS_MAX + 1];
};

/* ---- What parts there are -------------------------------------------------------- */

static size_t points_at(const struct parts *parts, size_t i)
{
    const struct trace *trace = parts->subject->trace;

    switch (trace->events[i].kind) {
    case TRACE_FENCE:
    case TRACE_CLFLUSH:
        return 1;
    case TRACE_END:
        return 2;
    default:
        return parts->options->kill && trace_ends_group(trace, i);
    }
}

static void cut(struct board *board)
{
    const struct parts *parts = board->shared_out;
    const struct trace *trace = parts->subject->trace;
    size_t all = 0, points = 0;

    for (size_t i = 0; i < trace->count; i++)
        all += points_at(parts, i);
    size_t enough = all / PARTS_MAX + 1, too_many = TIMES_TOO_MANY * enough;

    if (too_many < POINTS_TOO_MANY)
        too_many = POINTS_TOO_MANY;
    board->count = 1;
    for (size_t i = 0; i < trace->count; i++) {
        bool is_new = trace->events[i].kind == TRACE_BEGIN;

        if (points >= (is_new ? enough : too_many)) {
            board->parts[board->count - 1].end = i;
            board->parts[board->count++].begin = i;
            points = 0;
        }
        points += points_at(parts, i);
    }
    board->parts[board->count - 1].end = SIZE_MAX;
}

/* ---- A worker -------------------------------------------------------------------- */

static bool is_stop(const struct parts *parts, const struct part *part, size_t findings)
{
    return part->count.is_stopped || findings >= parts->options->findings_max;
}

/* Up to which part are all needed? */
static void find_last(struct board *board)
{
    size_t findings = 0;

    for (size_t i = 0; i < board->count; i++) {
        const struct part *part = &board->parts[i];

        if (!__atomic_load_n(&part->is_done, __ATOMIC_ACQUIRE))
            return;
        findings += part->finding_count;
        if (is_stop(board->shared_out, part, findings)) {
            __atomic_store_n(&board->last, i, __ATOMIC_RELAXED);
            return;
        }
    }
}

static void keep_results(struct part *part, const struct explorer *explorer)
{
    const struct explore_point *points = explorer_points(explorer, &part->point_count);

    if (part->point_count > REPORT_POINTS_MAX)
        part->point_count = REPORT_POINTS_MAX;
    for (size_t i = 0; i < part->point_count; i++)
        part->points[i] = points[i];
    explorer_findings(explorer, &part->finding_count);
}

static void run_part(const struct board *board, struct explorer *explorer,
                     const struct part *part, struct explore_count *count)
{
    const struct parts *parts = board->shared_out;

    parts->begin(parts->arg, board->pass == PASS_POWER && part == board->parts);
    explorer_run_part(
        explorer, &(struct explore_part){board->pass, part->begin, part->end}, count);
}

static void try_part(struct board *board, struct explorer *explorer, size_t index)
{
    const struct parts *parts = board->shared_out;
    struct part *part = &board->parts[index];

    run_part(board, explorer, part, &part->count);
    keep_results(part, explorer);
    __atomic_store_n(&part->is_done, true, __ATOMIC_RELEASE);
    find_last(board);
    if (parts->is_void(parts->arg))
        board->is_void = board->is_over = true;
    if (part->count.out_of_time)
        board->is_over = true;
}

static double seconds_left(const struct board *board)
{
    double left = board->end - clock_now();

    return board->end == 0 ? 0 : left > 0 ? left : 1e-9;
}

static void try_alone(struct board *board, size_t index)
{
    const struct parts *parts = board->shared_out;
    struct explore_options options = *parts->options;
    struct explorer *explorer =
        parts->unshare(parts->arg) ? explorer_create(parts->subject, &options) : NULL;

    options.seconds = seconds_left(board);
    board->has_no_memory |= !explorer;
    if (explorer)
        try_part(board, explorer, index);
    _exit(0);
}

/*
 * In a process of its own: what the program keeps outside PM is as after the run,
 * whatever part this process has tried before.
 */
static int fork_to_try(struct board *board, size_t index)
{
    int status = 0;
    pid_t process = fork_child();

    if (process == 0)
        try_alone(board, index);
    board->has_no_memory |= process < 0;
    while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

static void work(void *arg, unsigned number)
{
    struct board *board = arg;
    size_t index;

    while (!__atomic_load_n(&board->is_over, __ATOMIC_RELAXED) &&
           !board->has_no_memory &&
           (index = workers_take(&board->next)) < board->count &&
           index <= __atomic_load_n(&board->last, __ATOMIC_RELAXED)) {
        board->tried[number] = index;
        board->ends[number] = fork_to_try(board, index);
        if (board->ends[number] != 0)
            _exit(1);
    }
}

/* ---- All of them ----------------------------------------------------------------- */

static void tell_progress(void *arg)
{
    static const char *const passes[] = {"power failures", "power failures in recovery",
                                         "kills", "power failures"};
    const struct board *board = arg;
    const struct parts *parts = board->shared_out;
    uint64_t runs = parts->count.judged;
    char text[200];
    size_t done = 0;

    for (size_t i = 0; i < board->count; i++) {
        done += board->parts[i].is_done;
        runs += board->parts[i].count.judged;
    }
    snprintf(text, sizeof(text), "%s: %zu of %zu parts, %.1f million recoveries",
             passes[board->pass], done, board->count, (double)runs / 1e6);
    parts->tell(parts->arg, text);
}

static bool cannot(struct parts *parts, const char *why, const char *detail)
{
    snprintf(parts->error, sizeof(parts->error), "%s%s", why, detail);
    return false;
}

static bool add_finding(struct parts *parts, const struct finding *from)
{
    for (size_t i = 0; i < parts->finding_count; i++)
        if (finding_is_same(&parts->findings[i], from))
            return true;
    struct finding *grown =
        realloc(parts->findings, (parts->finding_count + 1) * sizeof(*grown));

    if (!grown)
        return cannot(parts, "no memory", "");
    parts->findings = grown;
    struct finding *to = &grown[parts->finding_count++];

    *to = (struct finding){.verdict = from->verdict};
    place_copy(&to->place, &from->place);
    return true;
}

/* What a worker has found is found once more here: it has no way to tell of it all. */
static bool find_again(const struct board *board, struct explorer *explorer,
                       const struct part *part)
{
    struct parts *parts = board->shared_out;
    const struct explore_options options = *parts->options;
    struct explore_count count;
    size_t found;

    parts->options->seconds = 0;
    parts->options->findings_max = part->finding_count;
    run_part(board, explorer, part, &count);
    *parts->options = options;
    const struct finding *findings = explorer_findings(explorer, &found);

    if (found < part->finding_count)
        return cannot(parts,
                      "a state was wrong, but not when it was tried again; recover and "
                      "check must depend on PM alone",
                      "");
    for (size_t i = 0; i < found && parts->finding_count < options.findings_max; i++)
        if (!add_finding(parts, &findings[i]))
            return false;
    return true;
}

static void add_points(struct parts *parts, const struct part *part)
{
    for (size_t i = 0; i < part->point_count && parts->point_count < REPORT_POINTS_MAX;
         i++)
        parts->points[parts->point_count++] = part->points[i];
}

static bool add_part(const struct board *board, struct explorer *explorer,
                     const struct part *part)
{
    struct parts *parts = board->shared_out;

    explore_count_add(&parts->count, &part->count);
    add_points(parts, part);
    if (part->finding_count > 0 && !find_again(board, explorer, part))
        return false;
    return true;
}

static bool add_all(const struct board *board, struct explorer *explorer)
{
    struct parts *parts = board->shared_out;

    for (size_t i = 0; i < board->count && i <= board->last; i++)
        if (board->parts[i].is_done && !add_part(board, explorer, &board->parts[i]))
            return false;
    parts->count.is_stopped |= board->last < board->count;
    return true;
}

static bool complain(const struct board *board, const struct workers_end *end)
{
    struct parts *parts = board->shared_out;
    char text[200];

    parts->lost_at = board->parts[board->tried[end->number]].begin;
    int status = board->ends[end->number];

    wait_describe(status != 0 ? status : end->status, text, sizeof(text));
    return cannot(parts, "a process that tried states ended: ", text);
}

static void begin_pass(struct board *board, enum pass pass)
{
    board->pass = pass;
    board->next = 0;
    board->last = board->count;
    for (size_t i = 0; i < board->count; i++) {
        board->parts[i].is_done = false;
        board->parts[i].count = (struct explore_count){0};
    }
}

static bool run_pass(struct board *board, enum pass pass, struct explorer *explorer)
{
    struct parts *parts = board->shared_out;
    unsigned count = workers_count(parts->jobs, board->count);
    struct workers_end end;

    begin_pass(board, pass);
    if (!workers_run(&(struct workers){count, work, tell_progress, board}, &end))
        return cannot(parts, "cannot start processes: ", strerror(errno));
    if (board->has_no_memory)
        return cannot(parts, "no memory for another process", "");
    if (end.status != 0)
        return complain(board, &end);
    parts->was_void = board->is_void;
    return board->is_void || add_all(board, explorer);
}

bool parts_explore(struct parts *parts, struct explorer *explorer)
{
    struct board *board = workers_share(sizeof(*board));
    bool is_good = true;

    parts->lost_at = SIZE_MAX;
    parts->points = calloc(REPORT_POINTS_MAX, sizeof(*parts->points));
    if (!board || !parts->points)
        return cannot(parts, "no memory", "");
    board->shared_out = parts;
    board->end =
        parts->options->seconds > 0 ? clock_now() + parts->options->seconds : 0;
    cut(board);
    for (enum pass pass = 0;
         pass < PASSES && is_good && !board->is_over && !parts->count.is_stopped;
         pass++)
        if (explorer_wants(parts->options, pass, &parts->count))
            is_good = run_pass(board, pass, explorer);
    munmap(board, sizeof(*board));
    return is_good;
}

void parts_finish(struct parts *parts)
{
    for (size_t i = 0; i < parts->finding_count; i++)
        place_finish(&parts->findings[i].place);
    free(parts->findings);
    free(parts->points);
    parts->findings = NULL;
    parts->points = NULL;
    parts->finding_count = parts->point_count = 0;
    parts->count = (struct explore_count){0};
}
