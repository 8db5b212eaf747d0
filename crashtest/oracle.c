/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/guard.h"
#include "crashtest/runtime/record.h"
#include "crashtest/runtime/schedule.h"
#include "crashtest/wait.h"

#define AFTER_EVENTS_MAX ((size_t)1 << 22)
/* Memory is compared with its shadow after each state at first, then now and then. */
#define COMPARE_FIRST 16
#define COMPARE_EVERY 4096

#define AGAIN_EVERY 8

/* Threads are started soon, if at all: so much less is enough to see it. */
#define TRIAL_SHARE 50

#define FIRST_FD 3

static int share(struct oracle *oracle)
{
    oracle->after = trace_create(AFTER_EVENTS_MAX);
    oracle->trial = trace_create(AFTER_EVENTS_MAX);
    oracle->shared = mmap(NULL, sizeof(*oracle->shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (oracle->shared == MAP_FAILED)
        oracle->shared = NULL;
    return oracle->after && oracle->trial && oracle->shared ? 0 : -ENOMEM;
}

static void unmap(struct oracle *oracle)
{
    trace_destroy(oracle->after);
    trace_destroy(oracle->trial);
    if (oracle->shared)
        munmap(oracle->shared, sizeof(*oracle->shared));
}

int oracle_init(struct oracle *oracle, uint64_t hooks_max)
{
    *oracle = (struct oracle){.hooks_max = hooks_max};
    return share(oracle);
}

int oracle_unshare(struct oracle *oracle)
{
    unmap(oracle);
    int result = share(oracle);

    return result < 0 ? result : schedule_init();
}

void oracle_begin_part(struct oracle *oracle, bool is_first)
{
    oracle->judged = is_first ? 0 : COMPARE_EVERY - 1;
}

void oracle_finish(struct oracle *oracle)
{
    unmap(oracle);
    schedule_free();
    free(oracle->touched.stamps);
    free(oracle->touched.lines);
}

static int first_free_fd(void)
{
    int fd = fcntl(STDIN_FILENO, F_DUPFD, FIRST_FD);

    if (fd < 0)
        return FIRST_FD;
    close(fd);
    return fd;
}

/* ---- What was touched ------------------------------------------------------------ */

static int touched_resize(struct touched_set *touched, size_t lines)
{
    if (touched->line_count == lines)
        return 0;
    free(touched->stamps);
    free(touched->lines);
    *touched = (struct touched_set){.stamps = calloc(lines, sizeof(uint32_t)),
                                    .lines = calloc(lines, sizeof(uint64_t))};
    if (!touched->stamps || !touched->lines)
        return -ENOMEM;
    touched->line_count = lines;
    return 0;
}

static size_t touched_add(struct touched_set *touched, size_t count,
                          const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *event = &trace->events[i];
        uint64_t line = event->at / LINE_SIZE;

        if (!trace_is_store(event) || touched->stamps[line] == touched->stamp)
            continue;
        touched->stamps[line] = touched->stamp;
        touched->lines[count++] = line * LINE_SIZE;
    }
    return count;
}

static void touched_begin(struct touched_set *touched, const struct trace *run)
{
    if (++touched->stamp == 0) {
        memset(touched->stamps, 0, touched->line_count * sizeof(*touched->stamps));
        touched->stamp = 1;
    }
    touched->run_count = touched_add(touched, 0, run);
}

/* Those that are not the run's are forgotten. */
static void touched_end(struct touched_set *touched, size_t count)
{
    for (size_t i = touched->run_count; i < count; i++)
        touched->stamps[touched->lines[i] / LINE_SIZE] = 0;
}

static bool starts_threads(struct oracle *oracle);

int oracle_begin(struct oracle *oracle, struct session *session)
{
    oracle->session = session;
    oracle->operations = &session->operations;
    oracle->program = session->program;
    oracle->pm = (struct crashtest_pm){session->image, session->size, session->path};
    oracle->in_child = session->unseen > 0;
    oracle->found_unseen = false;
    oracle->first_free_fd = first_free_fd();
    if (!session->tested->in_process)
        oracle->in_child |= starts_threads(oracle);
    if (!session->tested->check)
        return 0;
    if (touched_resize(&oracle->touched, session->size / LINE_SIZE) < 0)
        return -ENOMEM;
    touched_begin(&oracle->touched, session->trace);
    return 0;
}

/* ---- Calling the program --------------------------------------------------------- */

struct call {
    struct oracle *oracle;
    const struct trace *recovery;
    const struct crash *crash;
    struct verdict *verdict;
    struct touched touched; /* if it is asked for */
};

static int call_recover(void *arg)
{
    const struct call *call = arg;
    const struct crashtest_program *program = call->oracle->program;

    return program->recover ? program->recover(&call->oracle->pm, program->arg) : 0;
}

static struct crashtest_crash describe_crash(const struct call *call)
{
    struct operations *operations = call->oracle->operations;

    operations_seek(operations, call->crash);
    return (struct crashtest_crash){
        .running = operations_running(operations),
        .returned = operations->returned,
        .operations = operations->names,
        .progress = operations->progress,
    };
}

static int call_check(void *arg)
{
    const struct call *call = arg;
    const struct crashtest_program *program = call->oracle->program;
    const struct crashtest_crash crash = describe_crash(call);

    if (call->oracle->session->tested->check)
        return call->oracle->session->tested->check(&call->oracle->pm, &crash,
                                                    &call->touched, program->arg);
    return program->check(&call->oracle->pm, &crash, program->arg);
}

static int call_use(void *arg)
{
    const struct call *call = arg;
    const struct crashtest_program *program = call->oracle->program;

    return program->use(&call->oracle->pm, program->arg);
}

static int call_close(void *arg)
{
    const struct call *call = arg;
    const struct crashtest_program *program = call->oracle->program;

    return program->close ? program->close(&call->oracle->pm, program->arg) : 0;
}

static bool try_step(const struct call *call, const char *step, guard_fn *function)
{
    struct guard_report report;
    char text[420];

    guard_call(function, (void *)(uintptr_t)call, call->oracle->hooks_max, &report);
    call->oracle->starts_threads |= report.end == GUARD_STARTED_THREADS;
    if (guard_succeeded(&report))
        return true;
    guard_describe(&report, text, sizeof(text));
    call->verdict->kind =
        report.end == GUARD_FORKED ? VERDICT_CANNOT_SAY : VERDICT_WRONG;
    call->verdict->hangs = report.end == GUARD_HUNG || report.end == GUARD_SLEEPS;
    call->verdict->step = step;
    snprintf(call->verdict->message, sizeof(call->verdict->message), "%s %s", step,
             text);
    return false;
}

static bool try_to_check(struct call *call, const char *step)
{
    struct touched_set *set = &call->oracle->touched;

    if (!call->oracle->session->tested->check)
        return try_step(call, step, call_check);
    size_t count = touched_add(set, set->run_count, call->recovery);

    count = touched_add(set, count, call->oracle->after);
    call->touched = (struct touched){set->lines, count};
    bool good = try_step(call, step, call_check);

    touched_end(set, count);
    return good;
}

static bool is_time_to_compare(const struct oracle *oracle)
{
    return oracle->judged <= COMPARE_FIRST || oracle->judged % COMPARE_EVERY == 0;
}

/* The first word that was stored past the hooks; UINT64_MAX: none. */
static uint64_t find_unseen(const struct session *session)
{
    const uint64_t step = 4096;

    for (uint64_t at = 0; at < session->size; at += step)
        if (memcmp(session->image + at, session->shadow + at, step) != 0)
            for (;; at += 8)
                if (memcmp(session->image + at, session->shadow + at, 8) != 0)
                    return at;
    return UINT64_MAX;
}

/* Not all that is stored is seen: now and then what check leaves is compared. */
static uint64_t look_for_unseen(const struct oracle *oracle)
{
    struct trace *trace = recorder.trace;

    if (!is_time_to_compare(oracle) || oracle->session->tested->in_process)
        return UINT64_MAX;
    record_settle();
    recorder.trace = NULL; /* these loads are not the program's */
    uint64_t at = find_unseen(oracle->session);

    recorder.trace = trace;
    return at;
}

static bool refuse_check(const struct call *call, const char *step, uint64_t offset)
{
    call->verdict->kind = VERDICT_CANNOT_SAY;
    call->verdict->step = step;
    snprintf(call->verdict->message, sizeof(call->verdict->message),
             "check stores to PM (at offset 0x%llx), but it must only look; what is to "
             "be tried out belongs in `use`",
             (unsigned long long)offset);
    return false;
}

/* A store that leaves what is there changes nothing that check has looked at. */
static bool changes_pm(const struct trace_event *event)
{
    return event->kind == TRACE_STREAM ||
           (event->kind == TRACE_STORE && event->before != event->after);
}

static bool try_check(struct call *call, const char *step)
{
    const struct trace *after = call->oracle->after;
    size_t before = after->count;
    bool all_seen = look_for_unseen(call->oracle) == UINT64_MAX;

    if (!try_to_check(call, step))
        return false;
    record_stop();
    record_start(call->oracle->after);
    for (size_t i = before; i < after->count; i++)
        if (changes_pm(&after->events[i]))
            return refuse_check(call, step, after->events[i].at);
    uint64_t unseen = all_seen ? look_for_unseen(call->oracle) : UINT64_MAX;

    return unseen == UINT64_MAX || refuse_check(call, step, unseen);
}

/* A second recovery has nothing to do, and must not harm. */
static bool try_again(struct call *call)
{
    return try_step(call, "close", call_close) &&
           try_step(call, "a second recovery", call_recover) &&
           try_check(call, "check after a second recovery");
}

/* In a child each state takes long enough without. */
static bool is_time_for_again(const struct oracle *oracle, const struct trace *recovery)
{
    return oracle->in_child ? oracle->judged % AGAIN_EVERY == 0
                            : trace_has_stores(recovery);
}

static void call_steps(struct call *call, struct trace *recovery)
{
    const struct oracle *oracle = call->oracle;
    bool good;

    record_start(recovery);
    good = try_step(call, "recovery", call_recover);
    record_stop();
    record_start(oracle->after);
    good = good && try_check(call, "check");
    if (is_time_for_again(oracle, recovery))
        good = good && try_again(call);
    if (oracle->program->use)
        good = good && try_step(call, "use after recovery", call_use);
    if (good)
        try_step(call, "close", call_close);
    record_stop();
}

/* ---- Taking back ----------------------------------------------------------------- */

/* False if something differed. */
static bool restore(const struct session *session)
{
    const uint64_t step = 4096;
    bool same = true;

    for (uint64_t at = 0; at < session->size; at += step)
        if (memcmp(session->image + at, session->shadow + at, step) != 0) {
            memcpy(session->image + at, session->shadow + at, step);
            same = false;
        }
    return same;
}

/* What a call that did not return has left open. */
static void clean_up(const struct oracle *oracle)
{
    syscall(SYS_close_range, (unsigned)oracle->first_free_fd, ~0u, 0);
    record_forget_aliases();
}

/* ---- Judging --------------------------------------------------------------------- */

static void judge_here(struct call *call, struct trace *recovery)
{
    struct oracle *oracle = call->oracle;

    trace_clear(oracle->after);
    call_steps(call, recovery);
    if (call->verdict->kind != VERDICT_RIGHT)
        clean_up(oracle);
    if (recovery->is_full || oracle->after->is_full) {
        *call->verdict =
            (struct verdict){.kind = VERDICT_CANNOT_SAY,
                             .step = "recovery",
                             .message = "recovery, check or use store too much"};
        restore(oracle->session);
        return;
    }
    session_revert(oracle->session, oracle->after);
    session_revert(oracle->session, recovery);
}

static void await(pid_t child, struct verdict *verdict)
{
    char stuck[400];
    int status;

    if (!wait_for_child(child, &status, stuck, sizeof(stuck))) {
        *verdict = (struct verdict){.kind = VERDICT_CANNOT_SAY, .step = "recovery"};
        snprintf(verdict->message, sizeof(verdict->message), "recovery or check %s",
                 stuck);
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return;
    verdict->kind = VERDICT_WRONG;
    verdict->step = "recovery";
    if (WIFSIGNALED(status))
        snprintf(verdict->message, sizeof(verdict->message),
                 "recovery or check ends its process: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(verdict->message, sizeof(verdict->message),
                 "recovery or check ends its process");
}

static void judge_in_child(const struct call *call, struct trace *recovery)
{
    struct oracle *oracle = call->oracle;
    pid_t child;

    *oracle->shared = (struct verdict){0};
    trace_clear(oracle->after);
    fflush(NULL);
    child = fork_child();
    if (child < 0) {
        *call->verdict = (struct verdict){.kind = VERDICT_CANNOT_SAY,
                                          .step = "recovery",
                                          .message = "cannot fork a process"};
        return;
    }
    if (child == 0) {
        struct call in_child = {
            oracle, recovery, call->crash, oracle->shared, {NULL, 0}};

        guard_init_child();
        if (oracle->session->tested->schedule != 0)
            schedule_begin(oracle->session->tested->schedule);
        else
            schedule_free();
        call_steps(&in_child, recovery);
        _exit(0);
    }
    await(child, oracle->shared);
    *call->verdict = *oracle->shared;
    restore(oracle->session);
}

/* Tried on PM as it was before the run: threads cannot run in this process, as they
 * would not end with the state that is judged. */
static bool starts_threads(struct oracle *oracle)
{
    const struct crash crash = {.running = NO_OPERATION};
    struct verdict verdict = {0};
    struct call call = {oracle, oracle->trial, &crash, &verdict, {NULL, 0}};

    schedule_alone();
    oracle->starts_threads = false;
    if (oracle->in_child || oracle->session->tested->check)
        return false;
    uint64_t hooks_max = oracle->hooks_max;

    oracle->hooks_max = hooks_max / TRIAL_SHARE;
    trace_clear(oracle->trial);
    judge_here(&call, oracle->trial);
    restore(oracle->session);
    oracle->hooks_max = hooks_max;
    bool starts = oracle->starts_threads;

    oracle->starts_threads = false;
    return starts;
}

void oracle_mistrust(struct oracle *oracle)
{
    oracle->found_unseen = oracle->in_child = true;
    recorder.catch_up = true;
}

void oracle_judge(void *arg, const struct crash *crash, struct trace *recovery,
                  struct verdict *verdict)
{
    struct oracle *oracle = arg;
    struct call call = {oracle, recovery, crash, verdict, {NULL, 0}};

    *verdict = (struct verdict){0};
    oracle->judged++;
    if (oracle->in_child) {
        judge_in_child(&call, recovery);
        return;
    }
    judge_here(&call, recovery);
    if (oracle->starts_threads) {
        oracle->found_unseen = oracle->in_child = true;
        trace_clear(recovery);
        judge_in_child(&call, recovery);
        return;
    }
    if (is_time_to_compare(oracle) && !restore(oracle->session)) {
        /* It may have been judged on stores that were not taken back. */
        oracle_mistrust(oracle);
        trace_clear(recovery);
        judge_in_child(&call, recovery);
    }
}

bool oracle_set_watch(void *arg, watch_fn *watch, void *watch_arg)
{
    const struct oracle *oracle = arg;

    recorder.on_access = oracle->in_child ? NULL : watch;
    recorder.on_access_arg = watch_arg;
    return !oracle->in_child;
}
