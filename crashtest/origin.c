/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/origin.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/wait.h"

void origin_fork(void (*run)(void *arg), void *arg, struct origin_answer *answer)
{
    fflush(NULL);
    pid_t child = fork_child();

    if (child == 0) {
        run(arg);
        fflush(NULL);
        _exit(0);
    }
    answer->is_started = child > 0;
    answer->is_stuck = false;
    if (child > 0)
        answer->is_stuck = !wait_for_child(child, &answer->status, answer->stuck,
                                           sizeof(answer->stuck));
}

/* A byte is a request, and an answer. */
static bool send_byte(int socket)
{
    return send(socket, "", 1, MSG_NOSIGNAL) == 1;
}

static bool receive_byte(int socket)
{
    char byte;
    ssize_t got;

    do
        got = recv(socket, &byte, 1, 0);
    while (got < 0 && errno == EINTR);
    return got == 1;
}

static void serve(const struct origin *origin, void (*run)(void *arg), void *arg)
{
    while (receive_byte(origin->socket)) {
        origin_fork(run, arg, origin->shared);
        if (!send_byte(origin->socket))
            break;
    }
}

static int fork_origin(struct origin *origin, void (*run)(void *arg), void *arg,
                       const int ends[2])
{
    fflush(NULL);
    pid_t process = fork_child();

    origin->socket = ends[process == 0];
    close(ends[process != 0]);
    if (process == 0) {
        serve(origin, run, arg);
        _exit(0);
    }
    if (process < 0) {
        close(origin->socket);
        return -EAGAIN;
    }
    origin->process = process;
    return 0;
}

int origin_begin(struct origin *origin, void (*run)(void *arg), void *arg)
{
    int ends[2];
    void *memory = mmap(NULL, sizeof(*origin->shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        return -errno;
    origin->shared = memory;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return -errno;
    return fork_origin(origin, run, arg, ends);
}

const struct origin_answer *origin_run(struct origin *origin)
{
    bool done = send_byte(origin->socket) && receive_byte(origin->socket);

    return done && origin->shared->is_started ? origin->shared : NULL;
}

void origin_finish(struct origin *origin)
{
    int status;

    if (origin->process > 0) {
        close(origin->socket); /* which ends it */
        while (waitpid(origin->process, &status, 0) < 0 && errno == EINTR)
            ;
    }
    if (origin->shared)
        munmap(origin->shared, sizeof(*origin->shared));
    *origin = (struct origin){0};
}
