/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/wait.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crashtest/runtime/record.h"
#include "crashtest/runtime/schedule.h"
#include "crashtest/source.h"

void wait_describe(int status, char *text, size_t size)
{
    if (WIFSIGNALED(status))
        snprintf(text, size, "%s (signal %d)", strsignal(WTERMSIG(status)),
                 WTERMSIG(status));
    else
        snprintf(text, size, "it exited with %d", WEXITSTATUS(status));
}

pid_t fork_child(void)
{
    pid_t parent = getpid(), child = fork();

    if (child == 0) {
        record_begin_process();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) /* it has ended before that */
            _exit(1);
    }
    return child;
}

/*
 * So often it is looked at, and so often in a row it has not moved: then it is stuck.
 */
#define LOOK_EVERY_MS 500
#define LOOKS_MAX 6
#define IDLE_S 0.002 /* the tester's own signals take as much */

/* What a child was doing when it was looked at. */
struct look {
    int thread; /* kernel id of the one that has the turn; 0: there is only one */
    uint64_t turns;
    double time; /* of processors that it used, in seconds */
};

static struct look look_at(pid_t child)
{
    struct look look = {0};
    struct timespec time;
    clockid_t clock;

    if (schedule->started < 2)
        return look;
    look.thread = schedule->threads[schedule->current].id;
    look.turns = schedule->turns;
    if (clock_getcpuclockid(child, &clock) == 0 && clock_gettime(clock, &time) == 0)
        look.time = (double)time.tv_sec + (double)time.tv_nsec / 1e9;
    return look;
}

static bool is_same(const struct look *a, const struct look *b)
{
    return a->thread == b->thread && a->turns == b->turns && b->time - a->time < IDLE_S;
}

static bool read_file(pid_t child, int thread, const char *name, char *text, int size)
{
    char path[100];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)child, thread, name);
    FILE *file = fopen(path, "r");

    if (!file)
        return false;
    bool done = fgets(text, size, file) != NULL;

    fclose(file);
    return done;
}

/* Neither on a processor nor waiting for one. */
static bool sleeps(pid_t child, int thread)
{
    char text[500];

    if (!read_file(child, thread, "stat", text, sizeof(text)))
        return false;
    const char *name_end = strrchr(text, ')');

    return name_end && name_end[1] == ' ' && name_end[2] == 'S';
}

static const char *name_of_call(long number)
{
    static const struct {
        long number;
        const char *name;
    } calls[] = {
        {SYS_futex, "futex"},       {SYS_read, "read"},
        {SYS_poll, "poll"},         {SYS_ppoll, "ppoll"},
        {SYS_select, "select"},     {SYS_pselect6, "pselect"},
        {SYS_recvfrom, "recvfrom"}, {SYS_recvmsg, "recvmsg"},
        {SYS_accept, "accept"},     {SYS_epoll_wait, "epoll_wait"},
        {SYS_wait4, "wait4"},       {SYS_rt_sigtimedwait, "sigwait"},
        {SYS_pause, "pause"},       {SYS_epoll_pwait, "epoll_pwait"},
        {SYS_write, "write"},       {SYS_flock, "flock"},
    };

    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (calls[i].number == number)
            return calls[i].name;
    return "a system call";
}

static void describe(pid_t child, const struct look *look, char *text, size_t size)
{
    const struct schedule_thread *thread = &schedule->threads[schedule->current];
    char call[200] = "-1";
    struct source source = {.place = "its beginning"};

    read_file(child, look->thread, "syscall", call, sizeof(call));
    if (thread->pc)
        source_find((uintptr_t)thread->pc, &source);
    snprintf(text, size,
             "is stuck: thread %u waits in %s, after %s, while other threads wait for "
             "their turn. Only waits by pthreads, C11 threads, semaphores and futexes "
             "can be scheduled; --schedules 0 lets threads run as they happen to",
             thread->number, name_of_call(strtol(call, NULL, 10)), source.place);
}

static bool is_stuck(pid_t child, const struct look *before, const struct look *now)
{
    return now->thread != 0 && is_same(before, now) && sleeps(child, now->thread);
}

static void reap(pid_t child, int *status)
{
    while (waitpid(child, status, 0) < 0 && errno == EINTR)
        ;
}

bool wait_for_child(pid_t child, int *status, char *text, size_t size)
{
    struct pollfd ended = {(int)syscall(SYS_pidfd_open, child, 0), POLLIN, 0};
    struct look before = {0};
    unsigned same = 0;
    int result = ended.fd < 0 ? 1 : 0;

    while (result == 0 && same < LOOKS_MAX) {
        result = poll(&ended, 1, LOOK_EVERY_MS);
        if (result < 0 && errno == EINTR)
            result = 0;
        struct look now = look_at(child);

        same = is_stuck(child, &before, &now) ? same + 1 : 0;
        before = now;
    }
    if (ended.fd >= 0)
        close(ended.fd);
    if (same == LOOKS_MAX) {
        describe(child, &before, text, size);
        kill(child, SIGKILL);
    }
    reap(child, status);
    return same < LOOKS_MAX;
}
