/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of libc by which threads start, end and wait for each other: they replace
 * its own, in libraries that use them, too. Locks are those of libc, but are only
 * tried; who does not get one waits for its turn.
 */
#include <dlfcn.h>
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "crashtest/runtime/record.h"
#include "crashtest/runtime/schedule.h"

#define HOOK __attribute__((visibility("default")))

static void *find_next(void **found, const char *name)
{
    if (!*found)
        *found = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2"); /* of condition variables */
    if (!*found)
        *found = dlsym(RTLD_NEXT, name);
    return *found;
}

/* The function of libc. */
#define NEXT(name)                                                                     \
    __extension__({                                                                    \
        static void *found_##name;                                                     \
        void *address_##name = find_next(&found_##name, #name);                        \
        __typeof__(&(name)) next_##name;                                               \
        __builtin_memcpy(&next_##name, &address_##name, sizeof(next_##name));          \
        next_##name;                                                                   \
    })

static bool is_free(void)
{
    return schedule_mode == SCHEDULE_FREE;
}

/* A call that others can see. */
static void pause_at(const void *pc)
{
    record_settle();
    schedule_point(pc);
}

static bool wait_for(enum wait_kind kind, const void *object, bool is_timed,
                     const void *pc)
{
    const struct wait wait = {.kind = kind, .object = object, .is_timed = is_timed};

    return schedule_wait(&wait, pc);
}

static void wake_all(const void *object)
{
    schedule_wake(object, UINT32_MAX);
}

/* ---- Threads --------------------------------------------------------------------- */

static bool is_detached(const pthread_attr_t *attributes)
{
    int state = PTHREAD_CREATE_JOINABLE;

    if (attributes)
        pthread_attr_getdetachstate(attributes, &state);
    return state == PTHREAD_CREATE_DETACHED;
}

static int create(pthread_t *handle, const pthread_attr_t *attributes,
                  void *(*function)(void *arg), void *arg, const void *pc)
{
    struct schedule_thread *thread;
    int result;

    if (schedule_mode == SCHEDULE_ALONE) {
        schedule_on_end(SCHEDULE_STARTS_THREADS);
        return NEXT(pthread_create)(handle, attributes, function, arg);
    }
    record_settle();
    thread = schedule_add(function, arg);
    if (!thread)
        schedule_refuse("starts more threads at once than can be scheduled");
    thread->is_detached = is_detached(attributes);
    result = NEXT(pthread_create)(handle, attributes, schedule_run, thread);
    if (result != 0) {
        schedule_drop(thread);
        return result;
    }
    thread->handle = *handle;
    schedule_point(pc);
    return 0;
}

HOOK int pthread_create(pthread_t *handle, const pthread_attr_t *attributes,
                        void *(*function)(void *arg), void *arg)
{
    if (is_free()) {
        recorder.compare = false; /* others are about to store */
        return NEXT(pthread_create)(handle, attributes, function, arg);
    }
    return create(handle, attributes, function, arg, CALLER);
}

/* Not 0: it has not ended when its time has passed. */
static int await_end(struct schedule_thread *thread, bool is_timed, const void *pc)
{
    const struct wait wait = {
        .kind = WAIT_JOIN,
        .object = thread,
        .holder = thread->number,
        .is_timed = is_timed,
    };

    pause_at(pc);
    while (thread->state != THREAD_ENDED)
        if (!schedule_wait(&wait, pc))
            return ETIMEDOUT;
    return 0;
}

static int join(pthread_t handle, void **value, bool is_timed, const void *pc)
{
    struct schedule_thread *thread = schedule_find(handle);

    if (thread && pthread_equal(handle, pthread_self()))
        return EDEADLK;
    if (thread && await_end(thread, is_timed, pc) != 0)
        return ETIMEDOUT;
    if (thread)
        schedule_forget(thread);
    return NEXT(pthread_join)(handle, value);
}

HOOK int pthread_join(pthread_t handle, void **value)
{
    if (is_free())
        return NEXT(pthread_join)(handle, value);
    return join(handle, value, false, CALLER);
}

HOOK int pthread_tryjoin_np(pthread_t handle, void **value)
{
    struct schedule_thread *thread = schedule_find(handle);

    if (is_free() || !thread)
        return NEXT(pthread_tryjoin_np)(handle, value);
    pause_at(CALLER);
    return thread->state == THREAD_ENDED ? join(handle, value, false, CALLER) : EBUSY;
}

HOOK int pthread_timedjoin_np(pthread_t handle, void **value,
                              const struct timespec *time)
{
    if (is_free())
        return NEXT(pthread_timedjoin_np)(handle, value, time);
    return join(handle, value, true, CALLER);
}

HOOK int pthread_clockjoin_np(pthread_t handle, void **value, clockid_t clock,
                              const struct timespec *time)
{
    if (is_free())
        return NEXT(pthread_clockjoin_np)(handle, value, clock, time);
    return join(handle, value, true, CALLER);
}

HOOK int pthread_detach(pthread_t handle)
{
    struct schedule_thread *thread = is_free() ? NULL : schedule_find(handle);

    if (thread)
        schedule_forget(thread);
    return NEXT(pthread_detach)(handle);
}

HOOK int pthread_cancel(pthread_t handle)
{
    if (schedule_mode == SCHEDULE_ON)
        schedule_refuse("cancels a thread, which cannot be scheduled");
    return NEXT(pthread_cancel)(handle);
}

/* ---- Locks ----------------------------------------------------------------------- */

/* How libc tells a thread that it has the lock itself. */
static bool is_mine_and_checked(const pthread_mutex_t *mutex)
{
    return (mutex->__data.__kind & 3) == PTHREAD_MUTEX_ERRORCHECK &&
           mutex->__data.__owner == gettid();
}

static int lock_mutex(pthread_mutex_t *mutex, bool is_timed, const void *pc)
{
    int result;

    pause_at(pc);
    while ((result = NEXT(pthread_mutex_trylock)(mutex)) == EBUSY) {
        const struct wait wait = {
            .kind = WAIT_MUTEX,
            .object = mutex,
            .holder = schedule_number_of(mutex->__data.__owner),
            .is_timed = is_timed,
        };

        if (is_mine_and_checked(mutex))
            return EDEADLK;
        if (!schedule_wait(&wait, pc))
            return ETIMEDOUT;
    }
    return result;
}

static int unlock_mutex(pthread_mutex_t *mutex, const void *pc)
{
    record_settle();
    int result = NEXT(pthread_mutex_unlock)(mutex);

    wake_all(mutex);
    schedule_point(pc);
    return result;
}

HOOK int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (is_free())
        return NEXT(pthread_mutex_lock)(mutex);
    return lock_mutex(mutex, false, CALLER);
}

HOOK int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex,
                                 const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_mutex_timedlock)(mutex, time);
    return lock_mutex(mutex, true, CALLER);
}

HOOK int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                 const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_mutex_clocklock)(mutex, clock, time);
    return lock_mutex(mutex, true, CALLER);
}

HOOK int pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    if (!is_free())
        pause_at(CALLER);
    return NEXT(pthread_mutex_trylock)(mutex);
}

HOOK int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    if (is_free())
        return NEXT(pthread_mutex_unlock)(mutex);
    return unlock_mutex(mutex, CALLER);
}

typedef int try_lock_fn(pthread_rwlock_t *lock);

static int lock_rwlock(pthread_rwlock_t *lock, try_lock_fn *try_lock, bool is_timed,
                       const void *pc)
{
    int result;

    pause_at(pc);
    while ((result = try_lock(lock)) == EBUSY)
        if (!wait_for(WAIT_RWLOCK, lock, is_timed, pc))
            return ETIMEDOUT;
    return result;
}

HOOK int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    if (is_free())
        return NEXT(pthread_rwlock_rdlock)(lock);
    return lock_rwlock(lock, NEXT(pthread_rwlock_tryrdlock), false, CALLER);
}

HOOK int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock,
                                    const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_rwlock_timedrdlock)(lock, time);
    return lock_rwlock(lock, NEXT(pthread_rwlock_tryrdlock), true, CALLER);
}

HOOK int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock,
                                    const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_rwlock_clockrdlock)(lock, clock, time);
    return lock_rwlock(lock, NEXT(pthread_rwlock_tryrdlock), true, CALLER);
}

HOOK int pthread_rwlock_tryrdlock(pthread_rwlock_t *lock)
{
    if (!is_free())
        pause_at(CALLER);
    return NEXT(pthread_rwlock_tryrdlock)(lock);
}

HOOK int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    if (is_free())
        return NEXT(pthread_rwlock_wrlock)(lock);
    return lock_rwlock(lock, NEXT(pthread_rwlock_trywrlock), false, CALLER);
}

HOOK int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock,
                                    const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_rwlock_timedwrlock)(lock, time);
    return lock_rwlock(lock, NEXT(pthread_rwlock_trywrlock), true, CALLER);
}

HOOK int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock,
                                    const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_rwlock_clockwrlock)(lock, clock, time);
    return lock_rwlock(lock, NEXT(pthread_rwlock_trywrlock), true, CALLER);
}

HOOK int pthread_rwlock_trywrlock(pthread_rwlock_t *lock)
{
    if (!is_free())
        pause_at(CALLER);
    return NEXT(pthread_rwlock_trywrlock)(lock);
}

HOOK int pthread_rwlock_unlock(pthread_rwlock_t *lock)
{
    if (is_free())
        return NEXT(pthread_rwlock_unlock)(lock);
    record_settle();
    int result = NEXT(pthread_rwlock_unlock)(lock);

    wake_all((const void *)(uintptr_t)lock);
    schedule_point(CALLER);
    return result;
}

HOOK int pthread_spin_lock(pthread_spinlock_t *lock)
{
    if (is_free())
        return NEXT(pthread_spin_lock)(lock);
    pause_at(CALLER);
    while (NEXT(pthread_spin_trylock)(lock) == EBUSY)
        wait_for(WAIT_SPIN, (const void *)(uintptr_t)lock, false, CALLER);
    return 0;
}

HOOK int pthread_spin_trylock(pthread_spinlock_t *lock)
{
    if (!is_free())
        pause_at(CALLER);
    return NEXT(pthread_spin_trylock)(lock);
}

HOOK int pthread_spin_unlock(pthread_spinlock_t *lock)
{
    if (is_free())
        return NEXT(pthread_spin_unlock)(lock);
    record_settle();
    int result = NEXT(pthread_spin_unlock)(lock);

    wake_all((const void *)(uintptr_t)lock);
    schedule_point(CALLER);
    return result;
}

/* ---- Conditions ------------------------------------------------------------------ */

/* Those of libc are not used at all: who waits is known here. */
static int wait_for_condition(pthread_cond_t *condition, pthread_mutex_t *mutex,
                              bool is_timed, const void *pc)
{
    record_settle();
    int result = NEXT(pthread_mutex_unlock)(mutex);

    if (result != 0)
        return result;
    wake_all(mutex);
    bool woken = wait_for(WAIT_CONDITION, condition, is_timed, pc);

    result = lock_mutex(mutex, false, pc);
    return result != 0 || woken ? result : ETIMEDOUT;
}

static int signal_condition(pthread_cond_t *condition, uint32_t most, const void *pc)
{
    record_settle();
    schedule_wake(condition, most);
    schedule_point(pc);
    return 0;
}

HOOK int pthread_cond_wait(pthread_cond_t *restrict condition,
                           pthread_mutex_t *restrict mutex)
{
    if (is_free())
        return NEXT(pthread_cond_wait)(condition, mutex);
    return wait_for_condition(condition, mutex, false, CALLER);
}

HOOK int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                pthread_mutex_t *restrict mutex,
                                const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_cond_timedwait)(condition, mutex, time);
    return wait_for_condition(condition, mutex, true, CALLER);
}

HOOK int pthread_cond_clockwait(pthread_cond_t *restrict condition,
                                pthread_mutex_t *restrict mutex, clockid_t clock,
                                const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(pthread_cond_clockwait)(condition, mutex, clock, time);
    return wait_for_condition(condition, mutex, true, CALLER);
}

HOOK int pthread_cond_signal(pthread_cond_t *condition)
{
    if (is_free())
        return NEXT(pthread_cond_signal)(condition);
    return signal_condition(condition, 1, CALLER);
}

HOOK int pthread_cond_broadcast(pthread_cond_t *condition)
{
    if (is_free())
        return NEXT(pthread_cond_broadcast)(condition);
    return signal_condition(condition, UINT32_MAX, CALLER);
}

/* ---- Semaphores ------------------------------------------------------------------ */

static int wait_for_semaphore(sem_t *semaphore, bool is_timed, const void *pc)
{
    pause_at(pc);
    while (NEXT(sem_trywait)(semaphore) < 0) {
        if (errno != EAGAIN)
            return -1;
        if (!wait_for(WAIT_SEMAPHORE, semaphore, is_timed, pc)) {
            errno = ETIMEDOUT;
            return -1;
        }
    }
    return 0;
}

HOOK int sem_wait(sem_t *semaphore)
{
    if (is_free())
        return NEXT(sem_wait)(semaphore);
    return wait_for_semaphore(semaphore, false, CALLER);
}

HOOK int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(sem_timedwait)(semaphore, time);
    return wait_for_semaphore(semaphore, true, CALLER);
}

HOOK int sem_clockwait(sem_t *restrict semaphore, clockid_t clock,
                       const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(sem_clockwait)(semaphore, clock, time);
    return wait_for_semaphore(semaphore, true, CALLER);
}

HOOK int sem_trywait(sem_t *semaphore)
{
    if (!is_free())
        pause_at(CALLER);
    return NEXT(sem_trywait)(semaphore);
}

HOOK int sem_post(sem_t *semaphore)
{
    if (is_free())
        return NEXT(sem_post)(semaphore);
    record_settle();
    int result = NEXT(sem_post)(semaphore);

    wake_all(semaphore);
    schedule_point(CALLER);
    return result;
}

/* ---- Barriers -------------------------------------------------------------------- */

#define BARRIERS_MAX 64

/* Those of libc do not tell how many they wait for. */
static struct barrier {
    const pthread_barrier_t *address; /* NULL: none */
    unsigned count, arrived, rounds;
} barriers[BARRIERS_MAX];

static struct barrier *find_barrier(const pthread_barrier_t *address)
{
    for (unsigned i = 0; i < BARRIERS_MAX; i++)
        if (barriers[i].address == address)
            return &barriers[i];
    return NULL;
}

HOOK int pthread_barrier_init(pthread_barrier_t *restrict barrier,
                              const pthread_barrierattr_t *restrict attributes,
                              unsigned count)
{
    int result = NEXT(pthread_barrier_init)(barrier, attributes, count);
    struct barrier *known = find_barrier(barrier);

    if (!known)
        known = find_barrier(NULL);
    if (result == 0 && known)
        *known = (struct barrier){.address = barrier, .count = count};
    return result;
}

HOOK int pthread_barrier_destroy(pthread_barrier_t *barrier)
{
    struct barrier *known = find_barrier(barrier);

    if (known)
        known->address = NULL;
    return NEXT(pthread_barrier_destroy)(barrier);
}

static int wait_at_barrier(struct barrier *barrier, const void *pc)
{
    unsigned round = barrier->rounds;

    if (++barrier->arrived == barrier->count) {
        barrier->arrived = 0;
        barrier->rounds++;
        wake_all(barrier->address);
        schedule_point(pc);
        return PTHREAD_BARRIER_SERIAL_THREAD;
    }
    while (barrier->rounds == round)
        wait_for(WAIT_BARRIER, barrier->address, false, pc);
    return 0;
}

HOOK int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct barrier *known = find_barrier(barrier);

    if (is_free())
        return NEXT(pthread_barrier_wait)(barrier);
    if (!known)
        schedule_refuse("has too many barriers, or one that pthread_barrier_init() did "
                        "not make");
    pause_at(CALLER);
    return wait_at_barrier(known, CALLER);
}

/* ---- Once ------------------------------------------------------------------------ */

/* As libc has it. */
enum { ONCE_NEW, ONCE_RUNNING, ONCE_DONE };

static int call_once_here(pthread_once_t *once, void (*function)(void), const void *pc)
{
    pause_at(pc);
    while (*once == ONCE_RUNNING)
        wait_for(WAIT_ONCE, once, false, pc);
    if (*once == ONCE_DONE)
        return 0;
    *once = ONCE_RUNNING;
    function();
    *once = ONCE_DONE;
    wake_all(once);
    return 0;
}

HOOK int pthread_once(pthread_once_t *once, void (*function)(void))
{
    if (is_free())
        return NEXT(pthread_once)(once, function);
    return call_once_here(once, function, CALLER);
}

/* ---- Time ------------------------------------------------------------------------ */

/* Others go on meanwhile, if there are any. */
static bool sleeps_here(const void *pc)
{
    if (is_free())
        return false;
    record_settle();
    if (schedule_alive > 1)
        wait_for(WAIT_SLEEP, NULL, true, pc);
    return true;
}

HOOK unsigned sleep(unsigned seconds)
{
    return sleeps_here(CALLER) ? 0 : NEXT(sleep)(seconds);
}

HOOK int usleep(useconds_t microseconds)
{
    return sleeps_here(CALLER) ? 0 : NEXT(usleep)(microseconds);
}

HOOK int nanosleep(const struct timespec *time, struct timespec *left)
{
    return sleeps_here(CALLER) ? 0 : NEXT(nanosleep)(time, left);
}

HOOK int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time,
                         struct timespec *left)
{
    return sleeps_here(CALLER) ? 0 : NEXT(clock_nanosleep)(clock, flags, time, left);
}

static bool yields_here(const void *pc)
{
    if (schedule_alive < 2)
        return false;
    record_settle();
    schedule_yield(pc);
    return true;
}

HOOK int sched_yield(void)
{
    return yields_here(CALLER) ? 0 : NEXT(sched_yield)();
}

/* ---- Threads of C ---------------------------------------------------------------- */

static int result_of(int error)
{
    switch (error) {
    case 0:
        return thrd_success;
    case EBUSY:
        return thrd_busy;
    case ETIMEDOUT:
        return thrd_timedout;
    case ENOMEM:
        return thrd_nomem;
    default:
        return thrd_error;
    }
}

struct start {
    thrd_start_t function;
    void *arg;
};

static void *start(void *arg)
{
    struct start started = *(struct start *)arg;

    free(arg);
    return (void *)(intptr_t)started.function(started.arg);
}

HOOK int thrd_create(thrd_t *handle, thrd_start_t function, void *arg)
{
    if (is_free()) {
        recorder.compare = false;
        return NEXT(thrd_create)(handle, function, arg);
    }
    struct start *started = malloc(sizeof(*started));

    if (!started)
        return thrd_nomem;
    *started = (struct start){function, arg};
    int result = create(handle, NULL, start, started, CALLER);

    if (result != 0)
        free(started);
    return result_of(result);
}

HOOK int thrd_join(thrd_t handle, int *value)
{
    void *answer;

    if (is_free())
        return NEXT(thrd_join)(handle, value);
    int result = join(handle, &answer, false, CALLER);

    if (result == 0 && value)
        *value = (int)(intptr_t)answer;
    return result_of(result);
}

HOOK int thrd_detach(thrd_t handle)
{
    return result_of(pthread_detach(handle));
}

HOOK void thrd_yield(void)
{
    if (!yields_here(CALLER))
        NEXT(thrd_yield)();
}

HOOK int thrd_sleep(const struct timespec *time, struct timespec *left)
{
    return sleeps_here(CALLER) ? 0 : NEXT(thrd_sleep)(time, left);
}

/* To libc both kinds are the same, too. */
static pthread_mutex_t *mutex_of(mtx_t *mutex)
{
    return (pthread_mutex_t *)(void *)mutex;
}

static pthread_cond_t *condition_of(cnd_t *condition)
{
    return (pthread_cond_t *)(void *)condition;
}

HOOK int mtx_lock(mtx_t *mutex)
{
    if (is_free())
        return NEXT(mtx_lock)(mutex);
    return result_of(lock_mutex(mutex_of(mutex), false, CALLER));
}

HOOK int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(mtx_timedlock)(mutex, time);
    return result_of(lock_mutex(mutex_of(mutex), true, CALLER));
}

HOOK int mtx_trylock(mtx_t *mutex)
{
    if (!is_free())
        pause_at(CALLER);
    return NEXT(mtx_trylock)(mutex);
}

HOOK int mtx_unlock(mtx_t *mutex)
{
    if (is_free())
        return NEXT(mtx_unlock)(mutex);
    return result_of(unlock_mutex(mutex_of(mutex), CALLER));
}

HOOK int cnd_wait(cnd_t *condition, mtx_t *mutex)
{
    if (is_free())
        return NEXT(cnd_wait)(condition, mutex);
    return result_of(
        wait_for_condition(condition_of(condition), mutex_of(mutex), false, CALLER));
}

HOOK int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex,
                       const struct timespec *restrict time)
{
    if (is_free())
        return NEXT(cnd_timedwait)(condition, mutex, time);
    return result_of(
        wait_for_condition(condition_of(condition), mutex_of(mutex), true, CALLER));
}

HOOK int cnd_signal(cnd_t *condition)
{
    if (is_free())
        return NEXT(cnd_signal)(condition);
    return result_of(signal_condition(condition_of(condition), 1, CALLER));
}

HOOK int cnd_broadcast(cnd_t *condition)
{
    if (is_free())
        return NEXT(cnd_broadcast)(condition);
    return result_of(signal_condition(condition_of(condition), UINT32_MAX, CALLER));
}

HOOK void call_once(once_flag *once, void (*function)(void))
{
    if (is_free())
        NEXT(call_once)(once, function);
    else
        call_once_here((pthread_once_t *)(void *)once, function, CALLER);
}

/* ---- Futexes --------------------------------------------------------------------- */

/* Of locks that programs and libraries make themselves: std::atomic::wait() of C++. */
static bool is_wait(long command)
{
    return command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
}

static bool is_wake(long command)
{
    return command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET;
}

static long wait_for_futex(const uint32_t *word, uint32_t value, bool is_timed,
                           const void *pc)
{
    pause_at(pc);
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) != value)
        errno = EAGAIN;
    else if (wait_for(WAIT_FUTEX, word, is_timed, pc))
        return 0;
    else
        errno = ETIMEDOUT;
    return -1;
}

static long wake_futex(const uint32_t *word, uint32_t most, const void *pc)
{
    record_settle();
    uint32_t woken = schedule_wake(word, most);

    schedule_point(pc);
    return woken;
}

HOOK long syscall(long number, ...)
{
    long a[6];
    va_list args;

    va_start(args, number);
    for (unsigned i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    long command = a[1] & FUTEX_CMD_MASK;

    if (schedule_alive > 1 && number == SYS_futex && is_wait(command))
        return wait_for_futex((const uint32_t *)a[0], (uint32_t)a[2], a[3] != 0,
                              CALLER);
    if (schedule_alive > 1 && number == SYS_futex && is_wake(command))
        return wake_futex((const uint32_t *)a[0], (uint32_t)a[2], CALLER);
    return NEXT(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
