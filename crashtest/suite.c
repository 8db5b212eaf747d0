/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/suite.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crashtest/clock.h"
#include "crashtest/guard.h"
#include "crashtest/number.h"
#include "crashtest/oracle.h"
#include "crashtest/parts.h"

#define HOOKS_MAX ((uint64_t)50 * 1000 * 1000)
#define SAMPLED_SECONDS 30
#define RECOVERY_SHOWN 64
#define TURNS_SHOWN 16
#define TURN_THREADS 256
#define FOUND 8     /* findings, per failure that is reported */
#define EXPLAINED 2 /* of them */

/* What an exploration came to; of the explorer, or the parts. */
struct explored {
    struct explore_count count;
    const struct explore_point *points;
    const struct finding *findings;
    size_t point_count, finding_count;
};

struct suite {
    struct suite_options options;
    struct explore_options explore; /* of the program */
    struct session session;
    struct oracle oracle;
    struct suite_run run;
    struct subject subject;    /* of the run */
    struct explorer *explorer; /* of that subject */
    struct explored explored;
    struct place place;
    struct account account;
    struct lint lint;
    struct report report;
    size_t workload_capacity, failure_capacity;
    double start;
    bool explores_unseen;                /* what is stored past the hooks is known of */
    int own_stdout, own_stderr, nowhere; /* opened before what programs open */
    char error[700];
};

/* ---- Output ---------------------------------------------------------------------- */

/* What the program prints while states are tried goes nowhere: it is printed when a
 * wrong one is explained. */
static void hush(const struct suite *suite)
{
    fflush(NULL);
    if (suite->nowhere >= 0) {
        dup2(suite->nowhere, STDOUT_FILENO);
        dup2(suite->nowhere, STDERR_FILENO);
    }
}

static void unhush(const struct suite *suite)
{
    fflush(NULL);
    if (suite->own_stdout >= 0)
        dup2(suite->own_stdout, STDOUT_FILENO);
    if (suite->own_stderr >= 0)
        dup2(suite->own_stderr, STDERR_FILENO);
}

static enum suite_result cannot_test(struct suite *suite, const char *why)
{
    snprintf(suite->error, sizeof(suite->error), "%s", why);
    return SUITE_NOT_TESTED;
}

/* ---- The report ------------------------------------------------------------------ */

static bool has_room(void **memory, size_t count, size_t *capacity, size_t size)
{
    void *grown;

    if (count < *capacity)
        return true;
    grown = realloc(*memory, (*capacity * 2 + 16) * size);
    if (!grown)
        return false;
    *memory = grown;
    *capacity = *capacity * 2 + 16;
    return true;
}

static const char *workload_of(const struct suite_run *run)
{
    return run->workload ? run->workload : run->name;
}

/* The newest ones are asked for most. */
static struct report_workload *find_workload(struct suite *suite, const char *name)
{
    struct report *report = &suite->report;

    for (size_t i = report->workload_count; i-- > 0;)
        if (strncmp(report->workloads[i].name, name,
                    sizeof(report->workloads[i].name) - 1) == 0)
            return &report->workloads[i];
    void *memory = report->workloads;

    if (!has_room(&memory, report->workload_count, &suite->workload_capacity,
                  sizeof(*report->workloads)))
        return NULL;
    report->workloads = memory;
    struct report_workload *workload = &report->workloads[report->workload_count++];

    *workload = (struct report_workload){0};
    snprintf(workload->name, sizeof(workload->name), "%s", name);
    return workload;
}

static void note_points(struct suite *suite, struct report_workload *workload)
{
    const struct explore_point *points = suite->explored.points;
    const struct trace *trace = suite->subject.trace;
    size_t count = suite->explored.point_count;

    if (count > REPORT_POINTS_MAX)
        count = REPORT_POINTS_MAX;
    workload->points = calloc(count + 1, sizeof(*workload->points));
    if (!workload->points)
        return;
    workload->point_count = count;
    for (size_t i = 0; i < count; i++)
        workload->points[i] = (struct report_point){points[i],
                                                    points[i].event < trace->count
                                                        ? trace->events[points[i].event]
                                                        : (struct trace_event){0},
                                                    points[i].event >= trace->count};
}

static void note_unseen(const struct session *session, struct report_workload *workload)
{
    if (session->unseen == 0 || workload->unseen.words > 0)
        return;
    workload->unseen = (struct report_unseen){
        .words = session->unseen,
        .at = session->unseen_at,
        .is_blind = session->is_blind,
    };
    snprintf(workload->unseen.in, sizeof(workload->unseen.in), "%s",
             session->unseen_in ? session->unseen_in : "");
}

static void note_run(struct suite *suite, struct report_workload *workload)
{
    const struct trace *trace = suite->subject.trace;

    if (workload->programs == 0)
        note_points(suite, workload);
    workload->programs++;
    workload->operations += suite->run.operation_count;
    workload->never_flushes |= trace_has_stores(trace) && !trace_has_flushes(trace) &&
                               !suite->explore.strategy->saves_caches;
}

/* ---- Failures -------------------------------------------------------------------- */

static void print_id(const struct suite *suite, char *id, size_t size)
{
    int length = snprintf(id, size, "%s:%llu:", suite->run.name,
                          (unsigned long long)suite->explore.seed);

    if (length > 0 && (size_t)length < size)
        place_print(&suite->place, id + length, size - (size_t)length);
}

static const char *name_of(const struct suite_run *run, uint64_t operation)
{
    return operation < run->operation_count ? run->operations[operation] : "?";
}

static void describe_operation(const struct suite_run *run, const struct crash *crash,
                               char *text, size_t size)
{
    if (run->at_once)
        operations_describe(run->at_once, crash, text, size);
    else if (crash->running != NO_OPERATION)
        snprintf(text, size, "\"%s\" was running, %llu had returned",
                 name_of(run, crash->running), (unsigned long long)crash->returned);
    else if (crash->returned > 0)
        snprintf(text, size, "\"%s\" had returned, %llu in all",
                 name_of(run, crash->returned - 1),
                 (unsigned long long)crash->returned);
    else
        snprintf(text, size, "none had begun");
}

static const char *operation_of(const struct suite_run *run, const struct crash *crash)
{
    if (crash->running != NO_OPERATION)
        return name_of(run, crash->running);
    return crash->returned > 0 ? name_of(run, crash->returned - 1) : NULL;
}

static void keep_stores(const struct account *account, struct failure *failure)
{
    failure->stores = calloc(account->count + 1, sizeof(*failure->stores));
    failure->recovery = calloc(RECOVERY_SHOWN, sizeof(*failure->recovery));
    if (failure->stores && account->count > 0) {
        memcpy(failure->stores, account->entries,
               account->count * sizeof(*failure->stores));
        failure->store_count = account->count;
    }
    const struct trace *recovery = account->recovery;

    for (size_t i = 0; failure->recovery && recovery && i < recovery->count &&
                       failure->recovery_count < RECOVERY_SHOWN;
         i++)
        if (trace_is_store(&recovery->events[i]))
            failure->recovery[failure->recovery_count++] = recovery->events[i];
}

/* The operation that each thread is in. */
struct current {
    const struct suite_run *run;
    uint64_t operations[TURN_THREADS]; /* + 1; 0: none */
};

static const char *operation_of_thread(struct current *current,
                                       const struct trace_event *event)
{
    uint64_t *operation = &current->operations[event->thread % TURN_THREADS];
    uint64_t was = *operation;

    if (event->kind == TRACE_BEGIN)
        *operation = was = event->at + 1;
    else if (event->kind == TRACE_END)
        *operation = 0;
    return was == 0 ? "" : name_of(current->run, was - 1);
}

static void add_to_turns(struct failure *failure, const struct trace_event *event,
                         const char *operation)
{
    struct report_turn *last =
        failure->turn_count > 0 ? &failure->turns[failure->turn_count - 1] : NULL;

    if (last && last->last.thread == event->thread &&
        strcmp(last->operation, operation) == 0) {
        if (last->first.kind >= TRACE_BEGIN)
            last->first = *event;
        if (event->kind < TRACE_BEGIN || last->last.kind >= TRACE_BEGIN)
            last->last = *event;
        last->stores += trace_is_store(event);
        return;
    }
    if (failure->turn_count == TURNS_SHOWN)
        memmove(&failure->turns[0], &failure->turns[1],
                --failure->turn_count * sizeof(failure->turns[0]));
    last = &failure->turns[failure->turn_count++];
    *last = (struct report_turn){
        .first = *event, .last = *event, .stores = trace_is_store(event)};
    snprintf(last->operation, sizeof(last->operation), "%s", operation);
}

/* Who ran before the crash. */
static void keep_turns(const struct suite *suite, struct failure *failure)
{
    const struct trace *trace = suite->subject.trace;
    const struct place_level *level = &suite->place.levels[0];
    size_t end = level->kind == PLACE_POWER ? level->event : level->event + 1;
    struct current current = {.run = &suite->run};

    failure->seed = suite->explore.seed;
    failure->turns = calloc(TURNS_SHOWN, sizeof(*failure->turns));
    for (size_t i = 0; failure->turns && i < end && i < trace->count; i++)
        add_to_turns(failure, &trace->events[i],
                     operation_of_thread(&current, &trace->events[i]));
}

static void failure_finish(struct failure *failure)
{
    free(failure->turns);
    free(failure->stores);
    free(failure->recovery);
}

/* Without a store to blame, what went wrong has to be another thing. */
static bool has_same_culprit(const struct failure *a, const struct failure *b)
{
    if (strcmp(a->blame.culprit, b->blame.culprit) != 0)
        return false;
    return a->blame.culprit[0] || strcmp(a->verdict.message, b->verdict.message) == 0;
}

static bool is_known(const struct report *report, const struct failure *failure)
{
    for (size_t i = 0; i < report->failure_count; i++)
        if (has_same_culprit(&report->failures[i], failure))
            return true;
    return false;
}

static void keep_failure(struct suite *suite, struct failure *failure)
{
    struct report *report = &suite->report;
    void *memory = report->failures;

    if (is_known(report, failure) ||
        !has_room(&memory, report->failure_count, &suite->failure_capacity,
                  sizeof(*failure)))
        return;
    report->failures = memory;
    keep_stores(&suite->account, failure);
    if (suite->run.at_once)
        keep_turns(suite, failure);
    report->failures[report->failure_count++] = *failure;
}

/* It replays other states, which end as fast. The account's trace of recovery is of the
 * last one. */
static void find_matters(struct suite *suite, const struct verdict *verdict)
{
    struct verdict same;

    if (verdict->hangs)
        return;
    hush(suite);
    explorer_find_matters(suite->explorer, &suite->place, &suite->account);
    explorer_replay(suite->explorer, &suite->place, NULL, &same, NULL);
    unhush(suite);
}

/* Judges a wrong state once more, and finds out why it is. False if it is right now. */
static bool explain(struct suite *suite, struct verdict *verdict)
{
    static struct failure failure; /* is large */
    struct crash crash;

    failure = (struct failure){0};
    account_finish(&suite->account);
    if (!explorer_replay(suite->explorer, &suite->place, &crash, verdict,
                         &suite->account) ||
        verdict->kind != VERDICT_WRONG)
        return false;
    find_matters(suite, verdict);
    failure.verdict = *verdict;
    snprintf(failure.workload, sizeof(failure.workload), "%s",
             workload_of(&suite->run));
    describe_operation(&suite->run, &crash, failure.operation,
                       sizeof(failure.operation));
    report_place(suite->subject.trace, suite->account.recovery, &suite->place,
                 failure.crash, sizeof(failure.crash));
    const struct blame_names names = {
        operation_of(&suite->run, &crash),
        suite->run.at_once ? suite->run.operations : NULL,
    };

    blame_find(&suite->subject, &suite->place, &crash, &suite->account, verdict, &names,
               &failure.blame);
    print_id(suite, failure.id, sizeof(failure.id));
    keep_failure(suite, &failure);
    return true;
}

/* ---- Testing --------------------------------------------------------------------- */

static double seconds_left(const struct suite *suite)
{
    double seconds = suite->options.explore.seconds;

    if (seconds < 0)
        return suite->oracle.in_child ? suite->options.sampled_seconds : 0;
    if (seconds == 0)
        return 0;
    double left = seconds - (clock_now() - suite->start);

    return left > 0 ? left : 1e-9;
}

/* An explorer can be used again as long as PM is where it was. */
static bool begin_run(struct suite *suite, const struct suite_run *run)
{
    const struct subject before = suite->subject;

    suite->run = *run;
    suite->subject = *run->subject;
    suite->explore = suite->options.explore;
    suite->explore.first = run->first;
    if (run->seed != 0)
        suite->explore.seed = run->seed;
    suite->explore.findings_max =
        FOUND * (suite->options.failures_max - suite->report.failure_count);
    if (run->strategy)
        suite->explore.strategy = run->strategy;
    suite->explore.seconds = seconds_left(suite);
    if (!suite->report.name)
        suite->report.name = run->name;
    if (suite->explorer && before.image == suite->subject.image &&
        before.size == suite->subject.size)
        return true;
    explorer_destroy(suite->explorer);
    suite->explorer = explorer_create(&suite->subject, &suite->explore);
    return suite->explorer != NULL;
}

static enum suite_result conclude(struct suite *suite, struct verdict *verdict)
{
    if (verdict->kind == VERDICT_CANNOT_SAY)
        return cannot_test(suite, verdict->message);
    if (verdict->kind == VERDICT_RIGHT)
        return SUITE_PASSED;
    struct verdict first = *verdict;

    if (explain(suite, verdict))
        return SUITE_FAILED;
    snprintf(suite->error, sizeof(suite->error),
             "a state was wrong (%s), but not when it was tried again; recover and "
             "check must depend on PM alone",
             first.message);
    return SUITE_NOT_TESTED;
}

/* The findings after the first are often the same fault in another place. */
static void conclude_others(struct suite *suite)
{
    const struct finding *findings = suite->explored.findings;
    struct verdict verdict;

    for (size_t i = 1; i < suite->explored.finding_count &&
                       i < EXPLAINED * suite->options.failures_max &&
                       suite->report.failure_count < suite->options.failures_max;
         i++) {
        if (findings[i].verdict.kind != VERDICT_WRONG || findings[i].verdict.hangs)
            return;
        place_copy(&suite->place, &findings[i].place);
        hush(suite);
        explorer_shrink(suite->explorer, &suite->place);
        unhush(suite);
        explain(suite, &verdict);
    }
}

static enum suite_result conclude_all(struct suite *suite)
{
    const struct explored *explored = &suite->explored;
    struct verdict verdict = {0};

    if (explored->finding_count > 0) {
        verdict = explored->findings[explored->finding_count - 1].verdict;
        if (verdict.kind == VERDICT_WRONG)
            verdict = explored->findings[0].verdict;
        place_copy(&suite->place, &explored->findings[0].place);
    }
    if (verdict.kind == VERDICT_WRONG && !verdict.hangs) {
        hush(suite);
        explorer_shrink(suite->explorer, &suite->place);
        unhush(suite);
    }
    enum suite_result result = conclude(suite, &verdict);

    if (result == SUITE_FAILED)
        conclude_others(suite);
    return result;
}

static enum suite_result conclude_explored(struct suite *suite,
                                           struct report_workload *workload)
{
    size_t failures = suite->report.failure_count;
    struct explore_count *count = &suite->explored.count;

    count->all_points = count->points;
    if (count->out_of_time)
        count->all_points = explorer_count_points(suite->explorer);
    enum suite_result result = conclude_all(suite);

    explore_count_add(&workload->count, count);
    workload->failures += suite->report.failure_count - failures;
    note_run(suite, workload);
    return result;
}

static enum suite_result explore_here(struct suite *suite,
                                      struct report_workload *workload)
{
    struct explored *explored = &suite->explored;
    struct verdict verdict;

    hush(suite);
    explorer_run(suite->explorer, &explored->count, &suite->place, &verdict);
    unhush(suite);
    explored->points = explorer_points(suite->explorer, &explored->point_count);
    explored->findings = explorer_findings(suite->explorer, &explored->finding_count);
    return conclude_explored(suite, workload);
}

/* ---- In parts -------------------------------------------------------------------- */

static bool unshare(void *arg)
{
    struct suite *suite = arg;

    if (session_unshare(&suite->session) < 0 || oracle_unshare(&suite->oracle) < 0)
        return false;
    guard_init_child();
    return true;
}

static void begin_part(void *arg, bool is_first)
{
    oracle_begin_part(&((struct suite *)arg)->oracle, is_first);
}

static bool is_void(void *arg)
{
    const struct suite *suite = arg;

    return suite->oracle.found_unseen && !suite->explores_unseen;
}

static void tell_progress(void *arg, const char *progress)
{
    const struct suite *suite = arg;

    if (isatty(suite->own_stderr))
        dprintf(suite->own_stderr, "%s: %s\n", suite->run.name, progress);
}

static enum suite_result cannot_test_parts(struct suite *suite,
                                           const struct parts *parts)
{
    const struct trace *trace = suite->subject.trace;
    size_t i = parts->lost_at;

    while (i < trace->count && trace->events[i].kind != TRACE_BEGIN)
        i++;
    snprintf(suite->error, sizeof(suite->error), "%s%s%s%s", parts->error,
             i < trace->count ? ", where crashes from \"" : "",
             i < trace->count ? name_of(&suite->run, trace->events[i].at) : "",
             i < trace->count ? "\" on were tried" : "");
    return SUITE_NOT_TESTED;
}

static bool run_parts(struct suite *suite, struct parts *parts)
{
    hush(suite);
    bool done = parts_explore(parts, suite->explorer);

    unhush(suite);
    return done;
}

/*
 * Stores that no hook has seen were found, in some process: from then on each state is
 * judged in a child, and that from the first on, as it may have been found by chance.
 */
static bool explore_parts(struct suite *suite, struct parts *parts)
{
    bool done = run_parts(suite, parts);

    if (!done || !parts->was_void)
        return done;
    parts_finish(parts);
    oracle_mistrust(&suite->oracle);
    suite->explores_unseen = true;
    suite->explore.seconds = seconds_left(suite);
    done = run_parts(suite, parts);
    suite->explores_unseen = false;
    return done;
}

static enum suite_result
explore_in_parts(struct suite *suite, struct report_workload *workload, unsigned jobs)
{
    struct parts parts = {.subject = &suite->subject,
                          .options = &suite->explore,
                          .jobs = jobs,
                          .unshare = unshare,
                          .begin = begin_part,
                          .is_void = is_void,
                          .tell = tell_progress,
                          .arg = suite};
    enum suite_result result;

    if (explore_parts(suite, &parts)) {
        suite->explored = (struct explored){parts.count, parts.points, parts.findings,
                                            parts.point_count, parts.finding_count};
        result = conclude_explored(suite, workload);
    } else {
        result = cannot_test_parts(suite, &parts);
    }
    parts_finish(&parts);
    return result;
}

/* ---- Either way ------------------------------------------------------------------ */

static enum suite_result explore(struct suite *suite, const struct suite_run *run,
                                 unsigned jobs)
{
    double start = clock_now();

    suite->error[0] = 0;
    if (suite->report.failure_count >= suite->options.failures_max)
        return SUITE_FAILED;
    struct report_workload *workload = find_workload(suite, workload_of(run));

    if (!workload || !begin_run(suite, run))
        return cannot_test(suite, "no memory");
    enum suite_result result = jobs > 0 ? explore_in_parts(suite, workload, jobs)
                                        : explore_here(suite, workload);

    workload->seconds += clock_now() - start;
    return result;
}

enum suite_result suite_explore(struct suite *suite, const struct suite_run *run)
{
    return explore(suite, run, 0);
}

/* ---- Replaying ------------------------------------------------------------------- */

size_t suite_id_name(const char *id)
{
    return strcspn(id, ":");
}

uint64_t suite_id_seed(const char *id)
{
    uint64_t seed = 0;

    id += suite_id_name(id);
    id += *id == ':';
    return number_take(&id, 10, UINT64_MAX, &seed) && *id == ':' ? seed : 0;
}

/* The id without the program's name and the seed. */
static const char *place_of_id(const struct suite *suite, const char *id)
{
    size_t length = strlen(suite->run.name);

    if (strncmp(id, suite->run.name, length) != 0 || id[length] != ':' ||
        suite_id_seed(id) == 0)
        return NULL;
    id = strchr(id + length + 1, ':');
    return id ? id + 1 : NULL;
}

static enum suite_result replay(struct suite *suite, const char *id)
{
    const char *text = place_of_id(suite, id);
    struct verdict verdict;

    place_finish(&suite->place);
    if (!text || !place_parse(&suite->place, text)) {
        snprintf(suite->error, sizeof(suite->error), "this is no id of it: %.300s", id);
        return SUITE_NOT_TESTED;
    }
    if (!explorer_replay(suite->explorer, &suite->place, NULL, &verdict, NULL))
        return cannot_test(suite, "there is no such state: the program has changed "
                                  "since the id was printed");
    return conclude(suite, &verdict);
}

enum suite_result suite_replay_run(struct suite *suite, const struct suite_run *run,
                                   const char *id)
{
    struct report_workload *workload = find_workload(suite, workload_of(run));

    suite->error[0] = 0;
    suite->report.is_replay = true;
    if (!workload || !begin_run(suite, run))
        return cannot_test(suite, "no memory");
    enum suite_result result = replay(suite, id);

    note_run(suite, workload);
    workload->failures = suite->report.failure_count;
    return result;
}

/* ---- Programs -------------------------------------------------------------------- */

static size_t first_event(const struct trace *trace, uint64_t operation)
{
    if (operation == 0)
        return 0;
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].kind == TRACE_BEGIN && trace->events[i].at == operation)
            return i;
    return trace->count;
}

static bool begin_program(struct suite *suite, struct suite_run *run,
                          struct subject *subject)
{
    struct session *session = &suite->session;

    hush(suite);
    int result = oracle_begin(&suite->oracle, session);

    unhush(suite);
    if (result < 0)
        return false;

    *subject = (struct subject){session->image,  session->shadow, session->size,
                                session->trace,  oracle_judge,    &suite->oracle,
                                oracle_set_watch};
    *run = (struct suite_run){
        .name = session->program->name,
        .workload = session->tested->workload,
        .subject = subject,
        .operations = session->operations.names,
        .operation_count = session->operations.count,
        .first = first_event(session->trace, session->tested->first),
        .seed = session->tested->schedule,
        .at_once = session->threads > 1 ? &session->operations : NULL,
    };
    return true;
}

enum suite_result suite_record(struct suite *suite,
                               const struct session_program *tested)
{
    struct session *session = &suite->session;

    suite->error[0] = 0;
    if (tested->in_process)
        hush(suite);
    int result = session_record(session, tested);

    if (tested->in_process)
        unhush(suite);
    return result < 0 ? cannot_test(suite, session->error) : SUITE_PASSED;
}

const struct session *suite_session(const struct suite *suite)
{
    return &suite->session;
}

void suite_lint(struct suite *suite)
{
    const struct session *session = &suite->session;

    if (suite->options.lint)
        lint_run(&suite->lint, session->trace, session->image, session->size);
}

static void note_unseen_of(struct suite *suite)
{
    const struct session_program *tested = suite->session.tested;
    const struct suite_run run = {.name = tested->program->name,
                                  .workload = tested->workload};
    struct report_workload *workload = find_workload(suite, workload_of(&run));

    if (!workload)
        return;
    workload->is_sampled |= suite->session.unseen > 0 || suite->oracle.found_unseen;
    note_unseen(&suite->session, workload);
}

enum suite_result suite_test_recorded(struct suite *suite, unsigned jobs)
{
    struct suite_run run;
    struct subject subject;

    if (!begin_program(suite, &run, &subject))
        return cannot_test(suite, "no memory");
    enum suite_result result = explore(suite, &run, jobs);

    note_unseen_of(suite);
    return result;
}

enum suite_result suite_test(struct suite *suite, const struct session_program *tested)
{
    if (suite->report.failure_count >= suite->options.failures_max)
        return SUITE_FAILED;
    enum suite_result result = suite_record(suite, tested);

    if (result != SUITE_PASSED)
        return result;
    suite_lint(suite);
    return suite_test_recorded(suite, 0);
}

enum suite_result suite_replay(struct suite *suite,
                               const struct session_program *tested, const char *id)
{
    struct suite_run run;
    struct subject subject;
    enum suite_result result = suite_record(suite, tested);

    if (result != SUITE_PASSED)
        return result;
    if (!begin_program(suite, &run, &subject))
        return cannot_test(suite, "no memory");
    result = suite_replay_run(suite, &run, id);
    note_unseen_of(suite);
    return result;
}

/* ---- Life ------------------------------------------------------------------------ */

void suite_options_init(struct suite_options *options)
{
    *options = (struct suite_options){
        .explore = {.strategy = &strategies[0],
                    .budget = 4096,
                    .nested_budget = 64,
                    .kill = true,
                    .seconds = -1,
                    .seed = 1},
        .hooks_max = HOOKS_MAX,
        .failures_max = 1,
        .sampled_seconds = SAMPLED_SECONDS,
    };
}

struct suite *suite_create(const struct suite_options *options)
{
    struct suite *suite = calloc(1, sizeof(*suite));

    if (!suite)
        return NULL;
    suite->options = *options;
    suite->start = clock_now();
    suite->own_stdout = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    suite->own_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    suite->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    suite->report.options = &suite->options.explore;
    suite->report.name = options->name;
    suite->report.lint = options->lint ? &suite->lint : NULL;
    suite->report.command = options->command;
    session_init(&suite->session, options->hooks_max);
    if (guard_init() < 0 || oracle_init(&suite->oracle, options->hooks_max) < 0) {
        suite_destroy(suite);
        return NULL;
    }
    return suite;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void suite_destroy(struct suite *suite)
{
    struct report *report = &suite->report;

    for (size_t i = 0; i < report->failure_count; i++)
        failure_finish(&report->failures[i]);
    for (size_t i = 0; i < report->workload_count; i++)
        free(report->workloads[i].points);
    free(report->failures);
    free(report->workloads);
    explorer_destroy(suite->explorer);
    lint_finish(&suite->lint);
    oracle_finish(&suite->oracle);
    session_finish(&suite->session);
    place_finish(&suite->place);
    account_finish(&suite->account);
    close_fd(suite->own_stdout);
    close_fd(suite->own_stderr);
    close_fd(suite->nowhere);
    free(suite);
}

const char *suite_error(const struct suite *suite)
{
    return suite->error;
}

const struct report *suite_report(struct suite *suite)
{
    if (!suite->report.name && suite->session.program)
        suite->report.name = suite->session.program->name;
    suite->report.seconds = clock_now() - suite->start;
    return &suite->report;
}
