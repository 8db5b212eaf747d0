/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/oracle.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/guard.h"
#include "crashtest/runtime/record.h"

#define AFTER_EVENTS_MAX ((size_t)1 << 22)
/* Memory is compared with its shadow after each state at first, then now and then. */
#define COMPARE_FIRST 16
#define COMPARE_EVERY 4096

#define AGAIN_EVERY 8

#define FIRST_FD 3

int oracle_init(struct oracle *oracle)
{
    oracle->first_free_fd = fcntl(STDIN_FILENO, F_DUPFD, FIRST_FD);
    if (oracle->first_free_fd >= 0)
        close(oracle->first_free_fd);
    else
        oracle->first_free_fd = FIRST_FD;
    oracle->after = trace_create(AFTER_EVENTS_MAX);
    oracle->shared = mmap(NULL, sizeof(*oracle->shared), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (oracle->shared == MAP_FAILED)
        oracle->shared = NULL;
    return oracle->after && oracle->shared ? 0 : -ENOMEM;
}

void oracle_finish(struct oracle *oracle)
{
    trace_destroy(oracle->after);
    if (oracle->shared)
        munmap(oracle->shared, sizeof(*oracle->shared));
}

/* ---- Calling the program --------------------------------------------------------- */

struct call {
    struct oracle *oracle;
    const struct crash *crash;
    struct verdict *verdict;
};

static int call_recover(void *arg)
{
    const struct call *call = arg;
    const struct crashtest_program *program = call->oracle->program;

    return program->recover ? program->recover(&call->oracle->pm, program->arg) : 0;
}

static int call_check(void *arg)
{
    const struct call *call = arg;
    const struct crashtest_program *program = call->oracle->program;
    struct crashtest_crash crash = {
        .running = call->crash->running == NO_OPERATION
                       ? NULL
                       : call->oracle->operations[call->crash->running],
        .returned = call->crash->returned,
        .operations = call->oracle->operations,
    };

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
    if (guard_succeeded(&report))
        return true;
    guard_describe(&report, text, sizeof(text));
    call->verdict->kind = VERDICT_WRONG;
    call->verdict->step = step;
    snprintf(call->verdict->message, sizeof(call->verdict->message), "%s %s", step,
             text);
    return false;
}

static bool has_stores(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace_is_store(&trace->events[i]))
            return true;
    return false;
}

static bool try_check(const struct call *call, const char *step)
{
    const struct trace *after = call->oracle->after;
    size_t before = after->count;

    if (!try_step(call, step, call_check))
        return false;
    record_stop();
    record_start(call->oracle->after);
    for (size_t i = before; i < after->count; i++)
        if (trace_is_store(&after->events[i])) {
            call->verdict->kind = VERDICT_CANNOT_SAY;
            call->verdict->step = step;
            snprintf(call->verdict->message, sizeof(call->verdict->message),
                     "check stores to PM (at offset 0x%llx), but it must only look; "
                     "what is to be tried out belongs in `use`",
                     (unsigned long long)after->events[i].at);
            return false;
        }
    return true;
}

/* A second recovery has nothing to do, and must not harm. */
static bool try_again(const struct call *call)
{
    return try_step(call, "close", call_close) &&
           try_step(call, "a second recovery", call_recover) &&
           try_check(call, "check after a second recovery");
}

/* In a child each state takes long enough without. */
static bool is_time_for_again(const struct oracle *oracle, const struct trace *recovery)
{
    return oracle->in_child ? oracle->judged % AGAIN_EVERY == 0 : has_stores(recovery);
}

static void call_steps(const struct call *call, struct trace *recovery)
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

static void revert(const struct subject *subject, const struct trace *trace)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct trace_event *e = &trace->events[i];

        if (!trace_is_store(e))
            continue;
        trace_store_piece(subject->image + e->at, e->before, e->size);
        trace_store_piece(subject->shadow + e->at, e->before, e->size);
    }
}

/* False if something differed. */
static bool restore(const struct subject *subject)
{
    const uint64_t step = 4096;
    bool same = true;

    for (uint64_t at = 0; at < subject->size; at += step)
        if (memcmp(subject->image + at, subject->shadow + at, step) != 0) {
            memcpy(subject->image + at, subject->shadow + at, step);
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

static void judge_here(const struct call *call, struct trace *recovery)
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
        restore(oracle->subject);
        return;
    }
    revert(oracle->subject, oracle->after);
    revert(oracle->subject, recovery);
}

static void wait_for(pid_t child, struct verdict *verdict)
{
    int status;

    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
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
    child = fork();
    if (child < 0) {
        *call->verdict = (struct verdict){.kind = VERDICT_CANNOT_SAY,
                                          .step = "recovery",
                                          .message = "cannot fork a process"};
        return;
    }
    if (child == 0) {
        struct call in_child = {oracle, call->crash, oracle->shared};

        guard_init_child();
        call_steps(&in_child, recovery);
        _exit(0);
    }
    wait_for(child, oracle->shared);
    *call->verdict = *oracle->shared;
    restore(oracle->subject);
}

static bool is_time_to_compare(const struct oracle *oracle)
{
    return oracle->judged <= COMPARE_FIRST || oracle->judged % COMPARE_EVERY == 0;
}

void oracle_judge(void *arg, const struct crash *crash, struct trace *recovery,
                  struct verdict *verdict)
{
    struct oracle *oracle = arg;
    struct call call = {oracle, crash, verdict};

    *verdict = (struct verdict){0};
    oracle->judged++;
    if (oracle->in_child) {
        judge_in_child(&call, recovery);
        return;
    }
    judge_here(&call, recovery);
    if (is_time_to_compare(oracle) && !restore(oracle->subject)) {
        /* It may have been judged on stores that were not taken back. */
        oracle->found_unseen = oracle->in_child = true;
        recorder.catch_up = true;
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
