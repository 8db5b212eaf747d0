/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * threads.c - threads that add to a sum in PM, and the ways in which threads wait for
 * each other. The environment's WAY says which, BUG what is wrong.
 */
#define _GNU_SOURCE
#include <crashtest.h>
#include <errno.h>
#include <libpmem.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#define THREADS 3

/* Each on a line of its own. */
struct sums {
    _Alignas(64) uint64_t sum;
    _Alignas(64) uint64_t seen[THREADS][8]; /* by each thread, when it had added */
};

static struct sums *sums;

static int is_set(const char *variable, const char *value)
{
    const char *text = getenv(variable);

    return text && strcmp(text, value) == 0;
}

static int has_bug(const char *name)
{
    return is_set("BUG", name);
}

/* ---- Ways to wait ---------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t other = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_taken;
static sem_t semaphore;
static mtx_t c_mutex;
static atomic_flag flag = ATOMIC_FLAG_INIT;
static atomic_uint word;
static volatile int plain;
static int pipe_ends[2];

static void lock_condition(void)
{
    pthread_mutex_lock(&mutex);
    while (is_taken)
        pthread_cond_wait(&changed, &mutex);
    is_taken = true;
    pthread_mutex_unlock(&mutex);
}

static void unlock_condition(void)
{
    pthread_mutex_lock(&mutex);
    is_taken = false;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&mutex);
}

static void lock_timed(void)
{
    const struct timespec past = {0};

    while (pthread_mutex_timedlock(&mutex, &past) == ETIMEDOUT)
        usleep(1);
}

static void lock_futex(void)
{
    unsigned expected = 0;

    while (!atomic_compare_exchange_strong(&word, &expected, 1)) {
        syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0);
        expected = 0;
    }
}

static void unlock_futex(void)
{
    atomic_store(&word, 0);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* Nobody is told that it waits. */
static void lock_by_pipe(void)
{
    char token;

    if (read(pipe_ends[0], &token, 1) != 1)
        abort();
}

static void unlock_by_pipe(void)
{
    if (write(pipe_ends[1], "", 1) != 1)
        abort();
}

static void lock_spinning(void)
{
    while (atomic_flag_test_and_set(&flag))
        ;
}

static void unlock_spinning(void)
{
    atomic_flag_clear(&flag);
}

/* Right only because one thread runs at a time, and no store to PM is in between. */
static void lock_plain(void)
{
    while (plain)
        ;
    plain = 1;
}

static void unlock_plain(void)
{
    plain = 0;
}

static void lock_mutex(void)
{
    pthread_mutex_lock(&mutex);
}

static void unlock_mutex(void)
{
    pthread_mutex_unlock(&mutex);
}

static void lock_rwlock(void)
{
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_rwlock_wrlock(&rwlock);
}

static void unlock_rwlock(void)
{
    pthread_rwlock_unlock(&rwlock);
}

static void lock_spin(void)
{
    pthread_spin_lock(&spin);
}

static void unlock_spin(void)
{
    pthread_spin_unlock(&spin);
}

static void lock_semaphore(void)
{
    sem_wait(&semaphore);
}

static void unlock_semaphore(void)
{
    sem_post(&semaphore);
}

static void lock_c(void)
{
    mtx_lock(&c_mutex);
}

static void unlock_c(void)
{
    mtx_unlock(&c_mutex);
}

static const struct way {
    const char *name;
    void (*lock)(void), (*unlock)(void);
} ways[] = {
    {"mutex", lock_mutex, unlock_mutex},
    {"timed mutex", lock_timed, unlock_mutex},
    {"rwlock", lock_rwlock, unlock_rwlock},
    {"spin lock", lock_spin, unlock_spin},
    {"condition", lock_condition, unlock_condition},
    {"semaphore", lock_semaphore, unlock_semaphore},
    {"C11", lock_c, unlock_c},
    {"futex", lock_futex, unlock_futex},
    {"atomic", lock_spinning, unlock_spinning},
    {"plain", lock_plain, unlock_plain},
    {"pipe", lock_by_pipe, unlock_by_pipe},
};

static const struct way *find_way(void)
{
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++)
        if (is_set("WAY", ways[i].name))
            return &ways[i];
    return &ways[0];
}

/* ---- The program ----------------------------------------------------------------- */

static const struct way *how;
static pthread_barrier_t barrier;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t amount;

static void set_amount(void)
{
    amount = 1;
}

static void misbehave(long number)
{
    if (number != 1)
        return;
    if (has_bug("thread crashes"))
        *(volatile int *)8 = 0;
    if (has_bug("thread exits"))
        exit(4);
    while (has_bug("thread hangs"))
        ;
}

/* What is seen is written once the sum is durable. The bug: the sum is seen by others
 * before that. */
static void add(long number)
{
    bool is_late = has_bug("flushed after unlocking");

    how->lock();
    if (!is_late || number == 0)
        sums->sum += amount;
    uint64_t sum = sums->sum;

    if (!is_late)
        pmem_persist(&sums->sum, sizeof(sums->sum));
    how->unlock();
    if (is_late && number == 0)
        pmem_persist(&sums->sum, sizeof(sums->sum));
    sums->seen[number][0] = sum;
    pmem_persist(sums->seen[number], sizeof(sums->seen[0]));
}

static void *add_once(void *arg)
{
    long number = (long)arg;

    pthread_once(&once, set_amount);
    misbehave(number);
    pthread_barrier_wait(&barrier);
    crashtest_begin("add %ld", number);
    add(number);
    crashtest_end();
    return arg;
}

static int add_once_c(void *arg)
{
    add_once(arg);
    return 5;
}

static void *lock_in_turn(void *arg)
{
    pthread_mutex_t *first = arg ? &other : &mutex, *second = arg ? &mutex : &other;

    pthread_mutex_lock(first);
    sched_yield();
    pthread_mutex_lock(second);
    pthread_mutex_unlock(second);
    pthread_mutex_unlock(first);
    return NULL;
}

static int start_in_deadlock(void)
{
    pthread_t threads[2];

    for (long i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, lock_in_turn, (void *)i);
    for (long i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    return 0;
}

static int add_by_c_threads(void)
{
    thrd_t threads[THREADS];
    int value;

    for (long i = 0; i < THREADS; i++)
        if (thrd_create(&threads[i], add_once_c, (void *)i) != thrd_success)
            return -1;
    for (long i = 0; i < THREADS; i++)
        if (thrd_join(threads[i], &value) != thrd_success || value != 5)
            return -1;
    return 0;
}

static int add_by_threads(void)
{
    pthread_t threads[THREADS];
    void *value;

    for (long i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, add_once, (void *)i) != 0)
            return -1;
    if (has_bug("cancels"))
        pthread_cancel(threads[0]);
    for (long i = 0; i < THREADS; i++)
        if (pthread_join(threads[i], &value) != 0 || value != (void *)i)
            return -1;
    return 0;
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    (void)arg;
    sums = pm->base;
    how = find_way();
    pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
    sem_init(&semaphore, 0, 1);
    mtx_init(&c_mutex, mtx_plain);
    pthread_barrier_init(&barrier, NULL, THREADS);
    if (pipe(pipe_ends) < 0)
        return -1;
    unlock_by_pipe();
    if (has_bug("deadlock"))
        return start_in_deadlock();
    return is_set("WAY", "C11") ? add_by_c_threads() : add_by_threads();
}

/* ---- Its test -------------------------------------------------------------------- */

static void *look(void *arg)
{
    (void)arg;
    return sums->sum <= THREADS ? NULL : arg;
}

static int recover(const struct crashtest_pm *pm, void *arg)
{
    pthread_t thread;
    void *value = NULL;

    (void)arg;
    sums = pm->base;
    if (is_set("WAY", "recovery by a thread")) {
        pthread_create(&thread, NULL, look, pm->base);
        pthread_join(thread, &value);
    }
    if (has_bug("recovery deadlocks")) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_lock(&mutex);
    }
    return value ? -1 : 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct sums *now = pm->base;

    (void)arg;
    for (int i = 0; i < THREADS; i++) {
        if (now->seen[i][0] > now->sum)
            return crashtest_fail("thread %d saw %llu, but the sum is %llu", i,
                                  (unsigned long long)now->seen[i][0],
                                  (unsigned long long)now->sum);
        if (now->seen[i][0] == 0 && !has_bug("flushed after unlocking") &&
            crashtest_progress_of(crash, "add %d", i) == CRASHTEST_RETURNED)
            return crashtest_fail("thread %d had added, but saw nothing", i);
    }
    if (has_bug("flushed after unlocking"))
        return 0;
    if (now->sum < crash->returned || now->sum > THREADS)
        return crashtest_fail("the sum is %llu after %zu had been added",
                              (unsigned long long)now->sum, crash->returned);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "threads",
        .pm_size = sizeof(struct sums),
        .run = run,
        .recover = recover,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
