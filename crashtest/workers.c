/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workers.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "crashtest/clock.h"
#include "crashtest/wait.h"

#define TELL_S 10
#define LOOK_NS 2000000

unsigned workers_count(unsigned wanted, size_t cases)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    size_t count = wanted > 0 ? wanted : processors > 0 ? (size_t)processors : 1;

    if (count > cases)
        count = cases;
    return (unsigned)(count < WORKERS_MAX ? count : WORKERS_MAX);
}

void *workers_share(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

size_t workers_take(size_t *next)
{
    return __atomic_fetch_add(next, 1, __ATOMIC_RELAXED);
}

static void kill_all(const struct workers *workers, const pid_t *processes)
{
    for (unsigned i = 0; i < workers->count; i++)
        if (processes[i] > 0)
            kill(processes[i], SIGKILL);
}

/* False: it runs. */
static bool has_ended(pid_t process, int *status)
{
    pid_t ended = waitpid(process, status, WNOHANG);

    return ended == process || (ended < 0 && errno != EINTR);
}

/* How many run? */
static unsigned look(const struct workers *workers, pid_t *processes,
                     struct workers_end *end)
{
    unsigned running = 0;

    for (unsigned i = 0; i < workers->count; i++) {
        int status = 0;

        if (processes[i] <= 0)
            continue;
        if (!has_ended(processes[i], &status)) {
            running++;
            continue;
        }
        processes[i] = 0;
        if (status != 0 && end->status == 0) {
            *end = (struct workers_end){i, status};
            kill_all(workers, processes);
        }
    }
    return running;
}

static void wait_for(const struct workers *workers, pid_t *processes,
                     struct workers_end *end)
{
    const struct timespec moment = {0, LOOK_NS};
    double next = clock_now() + TELL_S;

    while (look(workers, processes, end) > 0) {
        syscall(SYS_nanosleep, &moment, NULL); /* time does not pass for libc's */
        if (!workers->tell || clock_now() < next)
            continue;
        workers->tell(workers->arg);
        next = clock_now() + TELL_S;
    }
}

bool workers_run(const struct workers *workers, struct workers_end *end)
{
    pid_t processes[WORKERS_MAX] = {0};
    bool started = true;

    *end = (struct workers_end){0};
    fflush(NULL);
    for (unsigned i = 0; i < workers->count && started; i++) {
        processes[i] = fork_child();
        if (processes[i] == 0) {
            workers->work(workers->arg, i);
            _exit(0);
        }
        started = processes[i] > 0;
    }
    wait_for(workers, processes, end);
    return started;
}
