/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * schedule.h - threads of a program under test run one at a time, and a seed decides
 * which: a run can be had again.
 *
 * The thread that runs has the *turn*. It may lose it where others could see what it
 * does: before a store to PM, a flush, a fence or a locked instruction, and at calls
 * of pthreads, which do not block but wait here. A thread that spins loses it after so
 * many loads and stores. Only who has the turn touches any of this.
 *
 * Seed 1 changes threads only where one waits or ends. Other seeds do so at random,
 * some often and some seldom.
 *
 * Time does not pass: who waits for a time goes on when nobody else can.
 */
#ifndef CRASHTEST_SCHEDULE_H
#define CRASHTEST_SCHEDULE_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define THREADS_MAX 256 /* at once */

enum schedule_mode {
    SCHEDULE_FREE,  /* threads run as they happen to */
    SCHEDULE_ALONE, /* there is one thread, and may be no other */
    SCHEDULE_ON
};

enum wait_kind {
    WAIT_MUTEX,
    WAIT_RWLOCK,
    WAIT_SPIN,
    WAIT_CONDITION,
    WAIT_SEMAPHORE,
    WAIT_BARRIER,
    WAIT_ONCE,
    WAIT_JOIN,
    WAIT_FUTEX,
    WAIT_SLEEP
};

/* Why the one function that is called cannot go on. */
enum schedule_end { SCHEDULE_STARTS_THREADS, SCHEDULE_DEADLOCK, SCHEDULE_REFUSED };

enum thread_state { THREAD_NONE, THREAD_READY, THREAD_WAITS, THREAD_ENDED };

struct schedule_thread {
    enum thread_state state;
    uint32_t number; /* in the trace: from 1, the main thread's */
    uint32_t turn;   /* a futex: 1 once it has it */
    int id;          /* of the kernel */
    pthread_t handle;
    bool is_detached;
    const void *pc; /* where it was last, as a return address */

    enum wait_kind kind; /* while it waits: */
    const void *object;
    uint32_t holder; /* number of the thread that has the object; 0: not known */
    bool is_timed, timed_out;
    uint64_t since; /* turns of then */

    void *(*function)(void *arg);
    void *arg;
};

struct schedule {
    uint32_t started; /* threads, in all */
    uint32_t slots;   /* of `threads` that were ever used */
    uint32_t current;
    uint64_t seed, random;
    uint64_t turns; /* how often they changed */
    bool is_recalled;
    const char *refused; /* what cannot be scheduled */
    struct schedule_thread threads[THREADS_MAX];
};
extern struct schedule *schedule;

/* The process's own. */
extern enum schedule_mode schedule_mode;
extern uint32_t
    schedule_alive; /* threads that have not ended; 0: the mode is not `on` */

/* Of this process, and of children that run the program. 0 or a negative errno. */
int schedule_init(void);

void schedule_free(void);

/*
 * The caller is the only thread: it ends the function if it starts another, or waits.
 */
void schedule_alone(void);

/* The caller is the main thread of what runs from now on, until the process ends. */
void schedule_begin(uint64_t seed);

/* Called where the mode does not let the program go on; does not return. */
extern void (*schedule_on_end)(enum schedule_end end);

/*
 * The main thread gets the turn for good, calls `leave`, and no other thread goes on.
 * By another thread, whose last call this is.
 */
void schedule_recall(void (*leave)(void)) __attribute__((noreturn));

/* Others may run. */
void schedule_pause(const void *pc);
static inline void schedule_point(const void *pc)
{
    if (schedule_alive > 1)
        schedule_pause(pc);
}

/* Others run first. */
void schedule_yield(const void *pc);

struct wait {
    enum wait_kind kind;
    const void *object;
    uint32_t holder;
    bool is_timed;
};

/* Until the object is woken. False: its time has passed. */
bool schedule_wait(const struct wait *wait, const void *pc);

/* Who waits for the object can go on: all, or one of them. How many? */
uint32_t schedule_wake(const void *object, uint32_t most);

/* What the program wants cannot be scheduled: a clause that follows "the program". */
void schedule_refuse(const char *what) __attribute__((noreturn));

uint32_t schedule_number_of(int kernel_id); /* of a thread; 0: of none */

/* ---- Threads --------------------------------------------------------------------- */

/* NULL: there are too many. */
struct schedule_thread *schedule_add(void *(*function)(void *arg), void *arg);
void schedule_drop(struct schedule_thread *thread);
/* Runs its function. */
void *schedule_run(void *thread);
/* One that was not joined; NULL: none. */
struct schedule_thread *schedule_find(pthread_t handle);
void schedule_forget(struct schedule_thread *thread);

/* ---- For reports ----------------------------------------------------------------- */

/* Who waits for what, as a list of clauses. */
void schedule_describe(char *text, size_t size);

#endif
