/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/fuse/loop.h"

#include <errno.h>
#include <linux/fuse.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>

#include "pmfs-proto/fuse/channel.h"

#define THREAD_COUNT 10

/* Content that is copied in less time than it takes to wake a thread. */
#define SHORT_SIZE 65536

/* For so many requests after one that may take long, too, another thread reads. */
#define UNREST_MAX 64

/*
 * Someone reads, or some thread carries out a short request and reads next:
 *
 *   - who takes a request leaves `readers`; if that was the last one, and the request may
 *     take long, it sends a parked thread in its place;
 *   - who is done parks only if another reads. It is counted in `parked` before it looks,
 *     and who takes a request looks there after it has left `readers`: one sees the other.
 */
struct loop {
    struct fuse_session *session;
    bool shared_fd;
    int readers;    /* atomic: reading, or sent to read */
    int parked;     /* atomic: waiting in `wake`, or about to */
    int unrest;     /* atomic: 0 if one reader is enough, unless `slow` */
    int unrest_min; /* more than 0 on several cores */
    int slow;       /* atomic: requests that may take long, being carried out */
    int error;      /* atomic: why a thread gave up */
    sem_t wake;
    sem_t over;
};

static int load(const int *value)
{
    return __atomic_load_n(value, __ATOMIC_SEQ_CST);
}

/* ---- Requests ------------------------------------------------------------------ */

static bool is_short(const struct fuse_in_header *header)
{
    /* The kernel puts them side by side, aligned. */
    const void *body = header + 1;

    switch (header->opcode) {
    case FUSE_WRITE:
        return header->len <= SHORT_SIZE + 4096;
    case FUSE_READ:
        return ((const struct fuse_read_in *)body)->size <= SHORT_SIZE;
    case FUSE_SETATTR:
        return !(((const struct fuse_setattr_in *)body)->valid & FATTR_SIZE);
    case FUSE_GETATTR:
    case FUSE_GETXATTR:
    case FUSE_READLINK:
    case FUSE_STATFS:
    case FUSE_INTERRUPT:
        return true;
    default: /* a name may be looked for in a directory that has no index yet */
        return false;
    }
}

/* If several threads do this at once, the count is less exact, and no harm is done. */
static void note_short(struct loop *loop)
{
    int unrest = __atomic_load_n(&loop->unrest, __ATOMIC_RELAXED);

    if (unrest > loop->unrest_min)
        __atomic_store_n(&loop->unrest, unrest - 1, __ATOMIC_RELAXED);
}

static void note_slow(struct loop *loop)
{
    __atomic_store_n(&loop->unrest, UNREST_MAX, __ATOMIC_RELAXED);
    __atomic_add_fetch(&loop->slow, 1, __ATOMIC_RELAXED);
}

/* What is short may have to wait for what is slow. */
static bool one_is_enough(const struct loop *loop)
{
    return __atomic_load_n(&loop->unrest, __ATOMIC_RELAXED) == 0 &&
           __atomic_load_n(&loop->slow, __ATOMIC_RELAXED) == 0;
}

/* ---- Taking turns -------------------------------------------------------------- */

static void send_reader(struct loop *loop)
{
    int parked = load(&loop->parked);

    while (parked > 0) {
        if (__atomic_compare_exchange_n(&loop->parked, &parked, parked - 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
            __atomic_add_fetch(&loop->readers, 1, __ATOMIC_SEQ_CST);
            sem_post(&loop->wake);
            return;
        }
    }
}

static void leave_readers(struct loop *loop)
{
    int left = __atomic_sub_fetch(&loop->readers, 1, __ATOMIC_SEQ_CST);

    if (left == 0 && !one_is_enough(loop))
        send_reader(loop);
}

/* Waits until it is sent to read, and is among the readers then. */
static void park(struct loop *loop)
{
    while (sem_wait(&loop->wake) < 0)
        ;
}

/* Takes itself back if nobody has sent it yet. */
static bool unpark(struct loop *loop)
{
    int parked = load(&loop->parked);

    while (parked > 0)
        if (__atomic_compare_exchange_n(&loop->parked, &parked, parked - 1, false,
                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
            return true;
    return false;
}

static void join_readers(struct loop *loop)
{
    if (one_is_enough(loop) && load(&loop->readers) > 0) {
        __atomic_add_fetch(&loop->parked, 1, __ATOMIC_SEQ_CST);
        if (load(&loop->readers) > 0 || !unpark(loop)) {
            park(loop);
            return;
        }
    }
    __atomic_add_fetch(&loop->readers, 1, __ATOMIC_SEQ_CST);
}

/* ---- Threads ------------------------------------------------------------------- */

/* The only place where a thread can be cancelled. */
static int receive(struct loop *loop, struct fuse_buf *buffer)
{
    int size;

    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, NULL);
    size = fuse_session_receive_buf(loop->session, buffer);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    return size;
}

static void free_buffer(void *arg)
{
    struct fuse_buf *buffer = arg;

    free(buffer->mem);
}

static void close_channel(void *arg)
{
    (void)arg;
    channel_close_own();
}

static void carry_out(struct loop *loop, const struct fuse_buf *buffer)
{
    bool slow = !is_short(buffer->mem);

    if (slow)
        note_slow(loop);
    else
        note_short(loop);
    leave_readers(loop);
    fuse_session_process_buf(loop->session, buffer);
    if (slow)
        __atomic_sub_fetch(&loop->slow, 1, __ATOMIC_RELAXED);
    join_readers(loop);
}

static void serve(struct loop *loop, struct fuse_buf *buffer)
{
    int size = 0;

    while (!fuse_session_exited(loop->session)) {
        size = receive(loop, buffer);
        if (size == -EINTR || size == -EAGAIN)
            continue;
        if (size <= 0)
            break;
        carry_out(loop, buffer);
    }
    if (size < 0)
        __atomic_store_n(&loop->error, size, __ATOMIC_RELAXED);
}

static void *run_thread(void *arg)
{
    struct loop *loop = arg;
    struct fuse_buf buffer = {.mem = NULL};

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_cleanup_push(free_buffer, &buffer);
    pthread_cleanup_push(close_channel, NULL);
    if (!loop->shared_fd)
        channel_open_own(loop->session);
    park(loop);
    serve(loop, &buffer);
    pthread_cleanup_pop(1);
    pthread_cleanup_pop(1);
    fuse_session_exit(loop->session);
    sem_post(&loop->over);
    return NULL;
}

/* Signals are for the thread that waits until all is over; but one about an access to
 * the pool, for who has made it. */
static int start_thread(pthread_t *thread, struct loop *loop)
{
    sigset_t all, before;

    sigfillset(&all);
    sigdelset(&all, SIGBUS);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, run_thread, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

static bool has_one_core(void)
{
    cpu_set_t cores;

    return sched_getaffinity(0, sizeof(cores), &cores) == 0 && CPU_COUNT(&cores) == 1;
}

int loop_run(struct fuse_session *session, bool shared_fd)
{
    struct loop loop = {.session = session, .shared_fd = shared_fd};
    pthread_t threads[THREAD_COUNT];
    int count = 0, error = 0;

    sem_init(&loop.wake, 0, 0);
    sem_init(&loop.over, 0, 0);
    while (error == 0 && count < THREAD_COUNT) {
        error = start_thread(&threads[count], &loop);
        count += error == 0;
    }
    /* One would do. */
    if (count > 0)
        error = 0;
    loop.unrest = loop.unrest_min = has_one_core() ? 0 : 1;
    loop.parked = count;
    send_reader(&loop);
    while (count > 0 && !fuse_session_exited(session))
        sem_wait(&loop.over);
    for (int i = 0; i < count; i++) {
        pthread_cancel(threads[i]);
        sem_post(&loop.wake);
    }
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    sem_destroy(&loop.wake);
    sem_destroy(&loop.over);
    fuse_session_reset(session);
    return error < 0 ? error : loop.error;
}
