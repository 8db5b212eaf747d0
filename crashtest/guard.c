/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/guard.h"

#include <dlfcn.h>
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "crashtest/runtime/record.h"
#include "crashtest/runtime/schedule.h"
#include "include/crashtest.h"

#define STACK_SIZE ((size_t)64 << 10)
#define GUARD_LEFT 3
#define TICK_S 1
/* A function that neither loads nor stores does not end if it uses a processor for so
 * long, or none, while so many ticks come. */
#define COMPUTES_S_MAX 2
#define SLEEPS_TICKS_MAX 5
#define SLEEPS_S_MIN 0.01 /* per tick, it would not sleep */

static struct {
    sigjmp_buf back;
    volatile bool is_active;
    struct guard_report *report;
    pthread_t thread; /* that the function was called in */
    pid_t process;    /* this one; what the function forks ends as it likes */
    uint64_t calls;
    uint64_t calls_at_tick, hooks_at_tick;
    double time_at_move, time_at_tick; /* of the processor */
    int sleeps;                        /* ticks in a row */
    char message[400];
} guard;

static __thread bool is_guarded;

static void go_back(void)
{
    siglongjmp(guard.back, 1);
}

/* Another thread than the one that the function was called in cannot go back. */
static void leave(enum guard_end end)
{
    guard.is_active = false;
    guard.report->end = end;
    if (is_guarded)
        go_back();
    if (schedule_mode == SCHEDULE_ON)
        schedule_recall(go_back);
    _exit(GUARD_LEFT); /* it is a child, and whoever waits for it finds the report */
}

static void on_hang(void)
{
    record_allow(UINT64_MAX);
    if (guard.is_active)
        leave(GUARD_HUNG);
}

static void on_schedule_end(enum schedule_end end)
{
    static const enum guard_end ends[] = {
        [SCHEDULE_STARTS_THREADS] = GUARD_STARTED_THREADS,
        [SCHEDULE_DEADLOCK] = GUARD_DEADLOCKED,
        [SCHEDULE_REFUSED] = GUARD_REFUSED,
    };

    if (guard.is_active)
        leave(ends[end]);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (!guard.is_active) {
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    guard.report->signal = number;
    guard.report->address = (uintptr_t)info->si_addr;
    leave(GUARD_CRASHED);
}

static double processor_time(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Ticks that come while the process is stopped are one. */
static void on_tick(int number)
{
    if (!guard.is_active)
        return;
    if (!is_guarded) {
        pthread_kill(guard.thread, number);
        return;
    }
    double time = processor_time();
    uint64_t hooks = recorder.hooks_left + recorder.hooks_kept;
    bool is_other_call = guard.calls != guard.calls_at_tick;
    bool sleeps = time - guard.time_at_tick < SLEEPS_S_MIN;

    /* What loads and stores is bounded by its hooks. */
    if (is_other_call || hooks != guard.hooks_at_tick)
        guard.time_at_move = time;
    guard.sleeps = sleeps && !is_other_call ? guard.sleeps + 1 : 0;
    guard.calls_at_tick = guard.calls;
    guard.hooks_at_tick = hooks;
    guard.time_at_tick = time;
    if (time - guard.time_at_move > COMPUTES_S_MAX)
        leave(GUARD_HUNG);
    if (guard.sleeps >= SLEEPS_TICKS_MAX)
        leave(GUARD_SLEEPS);
}

static void leave_by_exit(int status)
{
    if (!guard.is_active || getpid() != guard.process)
        return;
    guard.report->result = status;
    leave(GUARD_EXITED);
}

/* exit() of libc itself, as in err(): each handler is called once. */
static void on_exit_of_program(int status, void *arg)
{
    if (guard.is_active && getpid() == guard.process)
        on_exit(on_exit_of_program, arg);
    leave_by_exit(status);
}

__attribute__((visibility("default"), noreturn)) void exit(int status);
__attribute__((visibility("default"), noreturn)) void _exit(int status);
__attribute__((visibility("default"), noreturn)) void _Exit(int status);

void exit(int status)
{
    void *next = dlsym(RTLD_NEXT, "exit");
    void (*next_exit)(int);

    leave_by_exit(status);
    memcpy(&next_exit, &next, sizeof(next_exit));
    next_exit(status);
    __builtin_unreachable();
}

void _exit(int status)
{
    leave_by_exit(status);
    for (;;)
        syscall(SYS_exit_group, status);
}

void _Exit(int status)
{
    _exit(status);
}

static int use_own_stack(void)
{
    stack_t stack = {.ss_sp = malloc(STACK_SIZE), .ss_size = STACK_SIZE};

    if (!stack.ss_sp)
        return -ENOMEM;
    return sigaltstack(&stack, NULL) < 0 ? -errno : 0;
}

void guard_init_child(void)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGVTALRM};
    const struct itimerspec tick = {{TICK_S, 0}, {TICK_S, 0}};
    timer_t timer;

    guard.process = getpid();
    if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0)
        timer_settime(timer, 0, &tick, NULL);
}

int guard_init(void)
{
    static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL};
    struct sigaction action = {.sa_sigaction = on_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
    struct sigaction tick = {.sa_handler = on_tick,
                             .sa_flags = SA_NODEFER | SA_RESTART};
    static bool is_done;
    int result = is_done ? 0 : use_own_stack();

    guard.process = getpid();
    if (is_done)
        return 0;
    for (size_t i = 0; result == 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
        if (sigaction(signals[i], &action, NULL) < 0)
            result = -errno;
    if (result == 0 && sigaction(SIGVTALRM, &tick, NULL) < 0)
        result = -errno;
    if (result == 0 && on_exit(on_exit_of_program, NULL) != 0)
        result = -ENOMEM;
    if (result == 0)
        result = record_watch_forks();
    recorder.on_hang = on_hang;
    schedule_on_end = on_schedule_end;
    guard_init_child();
    is_done = result == 0;
    return result;
}

void guard_call(guard_fn *function, void *arg, uint64_t hooks_max,
                struct guard_report *report)
{
    uint32_t depth = record_depth();

    record_set_depth(0);
    report->end = GUARD_RETURNED;
    report->message[0] = 0;
    guard.report = report;
    guard.message[0] = 0;
    guard.calls++;
    guard.thread = pthread_self();
    is_guarded = true;
    record_allow(hooks_max);
    if (sigsetjmp(guard.back, 0) == 0) {
        guard.is_active = true;
        report->result = function(arg);
    }
    guard.is_active = false;
    is_guarded = false;
    record_allow(UINT64_MAX);
    record_set_depth(depth);
    if (guard.message[0])
        memcpy(report->message, guard.message, sizeof(report->message));
    if (record_was_stored_elsewhere())
        report->end = GUARD_FORKED;
}

int crashtest_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(guard.message, sizeof(guard.message), format, args);
    va_end(args);
    return -1;
}

bool guard_succeeded(const struct guard_report *report)
{
    return report->end == GUARD_RETURNED && report->result == 0;
}

static void describe_crash(const struct guard_report *report, char *text, size_t size)
{
    uint64_t offset = report->address - (uintptr_t)recorder.base;

    if (report->signal == SIGABRT)
        snprintf(text, size,
                 "aborts (abort(), a failed assert(), or an exception that nobody "
                 "catches)");
    else if (report->signal != SIGSEGV && report->signal != SIGBUS)
        snprintf(text, size, "crashes: %s", strsignal(report->signal));
    else if (offset < recorder.size)
        snprintf(text, size, "crashes: %s at offset 0x%llx of PM",
                 strsignal(report->signal), (unsigned long long)offset);
    else
        snprintf(text, size, "crashes: %s at address 0x%llx", strsignal(report->signal),
                 (unsigned long long)report->address);
}

static void describe_deadlock(char *text, size_t size)
{
    char threads[1000];

    schedule_describe(threads, sizeof(threads));
    snprintf(text, size, "waits for ever: %s", threads);
}

void guard_describe(const struct guard_report *report, char *text, size_t size)
{
    switch (report->end) {
    case GUARD_CRASHED:
        describe_crash(report, text, size);
        return;
    case GUARD_HUNG:
        snprintf(text, size, "does not end");
        return;
    case GUARD_SLEEPS:
        snprintf(text, size, "waits for something that does not come");
        return;
    case GUARD_EXITED:
        snprintf(text, size, "calls exit(%d)", report->result);
        return;
    case GUARD_DEADLOCKED:
        describe_deadlock(text, size);
        return;
    case GUARD_STARTED_THREADS:
        snprintf(text, size, "starts threads");
        return;
    case GUARD_REFUSED:
        snprintf(text, size, "%s; --schedules 0 lets threads run as they happen to",
                 schedule->refused);
        return;
    case GUARD_FORKED:
        snprintf(text, size,
                 "stores to PM in another process, which it has forked: only what one "
                 "process does can be tested");
        return;
    case GUARD_RETURNED:
        break;
    }
    if (report->message[0])
        snprintf(text, size, "fails: %s", report->message);
    else
        snprintf(text, size, "returns %d", report->result);
}
