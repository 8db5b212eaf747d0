/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/runtime/schedule.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "crashtest/runtime/record.h"
#include "crashtest/source.h"

/* Loads and stores of a thread until others run, if it spins. */
#define TURN_HOOKS 20000
/* Of so many points one changes threads; the seed says which row. */
static const uint32_t rates[] = {2, 4, 8, 16, 32};

static struct schedule none;
struct schedule *schedule = &none;
enum schedule_mode schedule_mode;
uint32_t schedule_alive;
void (*schedule_on_end)(enum schedule_end end);

static __thread uint32_t self; /* index of the thread */
static void (*leave_main)(void);
static int ending; /* kernel id of a thread that has given up its turn for good */
static pthread_key_t end_key;
static bool has_end_key;

/* That of libc is a hook, and sets errno. */
static long call_kernel(long number, long a, long b, long c, long d)
{
    long result;
    register long fourth __asm__("r10") = d;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                     : "rcx", "r11", "memory");
    return result;
}

/* ---- Turns ----------------------------------------------------------------------- */

static struct schedule_thread *thread_at(uint32_t index)
{
    return &schedule->threads[index];
}

static void give_turn(uint32_t to)
{
    uint32_t *turn = &thread_at(to)->turn;

    schedule->current = to;
    schedule->turns++;
    record_begin_turn(TURN_HOOKS);
    __atomic_store_n(turn, 1, __ATOMIC_RELEASE);
    call_kernel(SYS_futex, (long)turn, FUTEX_WAKE, 1, 0);
}

/* What an ending thread does last, such as giving back memory, would otherwise happen
 * at some time or other. */
static void await_end_of_other(void)
{
    while (ending != 0 && call_kernel(SYS_tgkill, getpid(), ending, 0, 0) == 0)
        call_kernel(SYS_sched_yield, 0, 0, 0, 0);
    ending = 0;
}

static void await_turn(void)
{
    uint32_t *turn = &thread_at(self)->turn;

    while (__atomic_exchange_n(turn, 0, __ATOMIC_ACQUIRE) == 0)
        call_kernel(SYS_futex, (long)turn, FUTEX_WAIT, 0, 0);
    if (schedule->is_recalled && self == 0)
        leave_main();
    await_end_of_other();
}

static void wait_for_ever(void)
{
    for (;;)
        call_kernel(SYS_pause, 0, 0, 0, 0);
}

void schedule_recall(void (*leave)(void))
{
    leave_main = leave;
    schedule->is_recalled = true;
    give_turn(0);
    wait_for_ever();
    __builtin_unreachable();
}

static void change_to(uint32_t next)
{
    if (next == self)
        return;
    give_turn(next);
    await_turn();
}

/* ---- Choosing -------------------------------------------------------------------- */

static uint32_t random_below(uint32_t limit)
{
    schedule->random = schedule->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(schedule->random >> 33) % limit;
}

static bool is_ready(uint32_t index)
{
    return thread_at(index)->state == THREAD_READY;
}

/* Without `self`. */
static uint32_t count_ready(void)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < schedule->slots; i++)
        count += i != self && is_ready(i);
    return count;
}

/* The ready thread of that number, of those that are not `self`. */
static uint32_t ready_at(uint32_t number)
{
    uint32_t i = 0;

    for (;; i++)
        if (i != self && is_ready(i) && number-- == 0)
            return i;
}

/* Who has waited longest for a time; THREADS_MAX: nobody. */
static uint32_t first_timed(void)
{
    uint32_t first = THREADS_MAX;

    for (uint32_t i = 0; i < schedule->slots; i++) {
        const struct schedule_thread *thread = thread_at(i);

        if (thread->state == THREAD_WAITS && thread->is_timed &&
            (first == THREADS_MAX || thread->since < thread_at(first)->since))
            first = i;
    }
    return first;
}

/* `self` cannot go on. */
static uint32_t choose_other(void)
{
    uint32_t ready = count_ready(), first;

    if (ready > 0)
        return ready_at(schedule->seed == 1 ? 0 : random_below(ready));
    first = first_timed();
    if (first == THREADS_MAX) {
        schedule_on_end(SCHEDULE_DEADLOCK);
        wait_for_ever();
    }
    thread_at(first)->state = THREAD_READY;
    thread_at(first)->timed_out = true;
    return first;
}

/* After the tester has gone on without this thread. */
static void check_turn(void)
{
    if (schedule->current != self || schedule->is_recalled)
        wait_for_ever();
}

void schedule_pause(const void *pc)
{
    const uint32_t rate_count = sizeof(rates) / sizeof(rates[0]);
    uint32_t ready;

    check_turn();
    thread_at(self)->pc = pc;
    if (schedule->seed == 1 || random_below(rates[schedule->seed % rate_count]) != 0)
        return;
    ready = count_ready();
    if (ready > 0)
        change_to(ready_at(random_below(ready)));
}

void schedule_yield(const void *pc)
{
    uint32_t i = self;

    if (schedule_alive < 2)
        return;
    check_turn();
    if (pc)
        thread_at(self)->pc = pc;
    do
        i = (i + 1) % schedule->slots;
    while (!is_ready(i));
    change_to(i);
}

/* ---- Waiting --------------------------------------------------------------------- */

bool schedule_wait(const struct wait *wait, const void *pc)
{
    struct schedule_thread *thread = thread_at(self);

    if (schedule_mode == SCHEDULE_ALONE && wait->is_timed)
        return false;
    check_turn();
    thread->kind = wait->kind;
    thread->object = wait->object;
    thread->holder = wait->holder;
    thread->is_timed = wait->is_timed;
    thread->timed_out = false;
    thread->since = schedule->turns;
    thread->pc = pc;
    thread->state = THREAD_WAITS;
    change_to(choose_other());
    return !thread->timed_out;
}

static uint32_t count_waiting(const void *object)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < schedule->slots; i++)
        count += thread_at(i)->state == THREAD_WAITS && thread_at(i)->object == object;
    return count;
}

static void wake_one(const void *object, uint32_t number)
{
    uint32_t i = 0;

    for (;; i++)
        if (thread_at(i)->state == THREAD_WAITS && thread_at(i)->object == object &&
            number-- == 0)
            break;
    thread_at(i)->state = THREAD_READY;
}

uint32_t schedule_wake(const void *object, uint32_t most)
{
    uint32_t woken = 0, waiting;

    if (schedule_alive < 2)
        return 0;
    for (; woken < most && (waiting = count_waiting(object)) > 0; woken++)
        wake_one(object, schedule->seed == 1 ? 0 : random_below(waiting));
    return woken;
}

void schedule_refuse(const char *what)
{
    schedule->refused = what;
    schedule_on_end(SCHEDULE_REFUSED);
    wait_for_ever();
    __builtin_unreachable();
}

uint32_t schedule_number_of(int kernel_id)
{
    for (uint32_t i = 0; i < schedule->slots; i++)
        if (thread_at(i)->state != THREAD_NONE && thread_at(i)->id == kernel_id)
            return thread_at(i)->number;
    return 0;
}

/* ---- Threads --------------------------------------------------------------------- */

struct schedule_thread *schedule_add(void *(*function)(void *arg), void *arg)
{
    uint32_t i = 0;

    while (i < schedule->slots && thread_at(i)->state != THREAD_NONE)
        i++;
    if (i == THREADS_MAX)
        return NULL;
    if (i == schedule->slots)
        schedule->slots++;
    *thread_at(i) = (struct schedule_thread){.state = THREAD_READY,
                                             .number = ++schedule->started,
                                             .function = function,
                                             .arg = arg};
    schedule_alive++;
    return thread_at(i);
}

void schedule_drop(struct schedule_thread *thread)
{
    thread->state = THREAD_NONE;
    schedule->started--;
    schedule_alive--;
}

void schedule_forget(struct schedule_thread *thread)
{
    thread->is_detached = true;
    if (thread->state == THREAD_ENDED)
        thread->state = THREAD_NONE;
}

static void end_thread(void)
{
    struct schedule_thread *thread = thread_at(self);

    record_settle();
    check_turn();
    thread->state = THREAD_ENDED;
    schedule_wake(thread, UINT32_MAX);
    schedule_alive--;
    ending = thread->id;
    if (thread->is_detached)
        thread->state = THREAD_NONE;
    give_turn(choose_other());
}

/* Destructors of other keys come first, those that they make necessary, too. */
static void end_last(void *value)
{
    static __thread int rounds;

    if (++rounds < PTHREAD_DESTRUCTOR_ITERATIONS)
        pthread_setspecific(end_key, value);
    else
        end_thread();
}

void *schedule_run(void *arg)
{
    struct schedule_thread *thread = arg;

    self = (uint32_t)(thread - schedule->threads);
    thread->id = (int)call_kernel(SYS_gettid, 0, 0, 0, 0);
    record_name_thread(thread->number);
    pthread_setspecific(end_key, thread);
    await_turn();
    return thread->function(thread->arg);
}

struct schedule_thread *schedule_find(pthread_t handle)
{
    for (uint32_t i = 0; i < schedule->slots; i++)
        if (thread_at(i)->state != THREAD_NONE &&
            pthread_equal(thread_at(i)->handle, handle))
            return thread_at(i);
    return NULL;
}

/* ---- Life ------------------------------------------------------------------------ */

/* A child of the program has none of its threads. */
static void end_in_child(void)
{
    if (schedule_mode != SCHEDULE_ON)
        return;
    schedule = &none;
    schedule_mode = SCHEDULE_FREE;
    schedule_alive = 0;
}

int schedule_init(void)
{
    static pid_t owner;
    struct schedule *shared;

    if (owner == getpid())
        return 0;
    if (schedule != &none)
        munmap(schedule, sizeof(*schedule)); /* that of the process before */
    schedule = &none;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return -errno;
    if (!has_end_key && pthread_key_create(&end_key, end_last) != 0)
        return -EAGAIN;
    has_end_key = true;
    owner = getpid();
    schedule = shared;
    return 0;
}

static void begin(void)
{
    *schedule = (struct schedule){.slots = 1, .started = 1};
    thread_at(0)->state = THREAD_READY;
    thread_at(0)->number = 1;
    thread_at(0)->id = (int)call_kernel(SYS_gettid, 0, 0, 0, 0);
    thread_at(0)->handle = pthread_self();
    self = 0;
    ending = 0;
}

void schedule_free(void)
{
    schedule_mode = SCHEDULE_FREE;
    schedule->slots = schedule->started = 0;
}

void schedule_alone(void)
{
    begin();
    schedule_mode = SCHEDULE_ALONE;
}

void schedule_begin(uint64_t seed)
{
    static bool watches_forks;

    begin();
    schedule_mode = SCHEDULE_ON;
    schedule_alive = 1;
    schedule->seed = seed;
    schedule->random = seed * 0x9e3779b97f4a7c15u;
    record_name_thread(1);
    if (!watches_forks)
        watches_forks = pthread_atfork(NULL, NULL, end_in_child) == 0;
}

/* ---- For reports ----------------------------------------------------------------- */

static const char *const waits[] = {
    [WAIT_MUTEX] = "waits for a mutex",
    [WAIT_RWLOCK] = "waits for a read-write lock",
    [WAIT_SPIN] = "waits for a spin lock",
    [WAIT_CONDITION] = "waits for a condition to be signalled",
    [WAIT_SEMAPHORE] = "waits for a semaphore",
    [WAIT_BARRIER] = "waits for others at a barrier",
    [WAIT_ONCE] = "waits for pthread_once() by another thread",
    [WAIT_JOIN] = "waits for the end of another",
    [WAIT_FUTEX] = "waits for a futex",
    [WAIT_SLEEP] = "sleeps",
};

static void describe_holder(const struct schedule_thread *thread, char *text,
                            size_t size)
{
    if (thread->kind == WAIT_JOIN)
        snprintf(text, size, " (thread %u)", thread->holder);
    else if (thread->holder == thread->number)
        snprintf(text, size, " (which it has locked itself)");
    else
        snprintf(text, size, " (which thread %u has locked)", thread->holder);
}

static void describe_thread(const struct schedule_thread *thread, char *text,
                            size_t size)
{
    struct source source;
    char holder[60] = "";

    source_find((uintptr_t)thread->pc, &source);
    if (thread->holder != 0)
        describe_holder(thread, holder, sizeof(holder));
    snprintf(text, size, "thread %u %s%s at %s", thread->number, waits[thread->kind],
             holder, source.place);
}

void schedule_describe(char *text, size_t size)
{
    const char *separator = "";

    text[0] = 0;
    for (uint32_t i = 0; i < schedule->slots; i++) {
        char one[500];
        size_t length = strlen(text);

        if (thread_at(i)->state != THREAD_WAITS)
            continue;
        describe_thread(thread_at(i), one, sizeof(one));
        snprintf(text + length, size - length, "%s%s", separator, one);
        separator = "; ";
    }
}
