/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that belong to a thread until another one wants them. */
#include "tests/unit/fixture.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "libminl2r/spin.h"

#define LOCKS 500
#define ADDS_AT_ONCE 1000
#define FAR_STORES 16

/* ---- One thread after another ---------------------------------------------------- */

static void *try_to_take(void *arg)
{
    return spin_try(arg) ? arg : NULL;
}

static void *take_and_release(void *arg)
{
    spin_lock(arg);
    spin_unlock(arg);
    return NULL;
}

static void *run_in_thread(void *(*run)(void *), struct spin *spin)
{
    pthread_t thread;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, run, spin), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    return result;
}

static void lock_that_is_held_is_not_taken_again(struct spin *spin)
{
    assert_true(spin_try(spin));
    assert_false(spin_try(spin));
    assert_null(run_in_thread(try_to_take, spin));
    spin_unlock(spin);
}

static void nobodys_lock_is_held_by_one(void **state)
{
    struct spin spin = {0};

    (void)state;
    lock_that_is_held_is_not_taken_again(&spin);
}

static void own_lock_is_held_by_one(void **state)
{
    struct spin spin = {0};

    (void)state;
    for (int i = 0; i < 3; i++)
        take_and_release(&spin);
    lock_that_is_held_is_not_taken_again(&spin);
    lock_that_is_held_is_not_taken_again(&spin);
}

static void lock_of_another_thread_is_held_by_one(void **state)
{
    struct spin spin = {0};

    (void)state;
    run_in_thread(take_and_release, &spin);
    lock_that_is_held_is_not_taken_again(&spin);
    run_in_thread(take_and_release, &spin);
    lock_that_is_held_is_not_taken_again(&spin);
}

static void other_thread_takes_what_is_not_held(void **state)
{
    struct spin spin = {0};

    (void)state;
    take_and_release(&spin);
    assert_ptr_equal(run_in_thread(try_to_take, &spin), &spin);
    assert_false(spin_try(&spin));
}

static uint64_t owner_of(const struct spin *spin)
{
    return spin->state & ~(SPIN_TAKEN | SPIN_SECOND);
}

static void lock_goes_to_the_second_thread_then_to_everyone(void **state)
{
    struct spin spin = {0};

    (void)state;
    if (!spin_barrier())
        skip();
    run_in_thread(take_and_release, &spin);
    take_and_release(&spin);
    assert_int_equal(owner_of(&spin), spin_own());
    lock_that_is_held_is_not_taken_again(&spin);
    run_in_thread(take_and_release, &spin);
    assert_int_equal(owner_of(&spin), SPIN_SHARED);
    lock_that_is_held_is_not_taken_again(&spin);
}

/*
 * Of this thread, as a program does that locks itself in once it has opened its files.
 */
static bool forbid_membarrier(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0 &&
           syscall(SYS_membarrier, 0, 0, 0) < 0;
}

static void *try_without_membarrier(void *arg)
{
    return forbid_membarrier() ? try_to_take(arg) : NULL;
}

static void other_thread_takes_it_where_membarrier_is_forbidden(void **state)
{
    struct spin spin = {0};

    (void)state;
    assert_true(spin_try(&spin));
    assert_null(run_in_thread(try_without_membarrier, &spin));
    spin_unlock(&spin);
    assert_ptr_equal(run_in_thread(try_without_membarrier, &spin), &spin);
    assert_false(spin_try(&spin));
}

/* ---- Threads at once ------------------------------------------------------------- */

#define THREADS 3 /* its first owner, its second one, who makes it everyone's */
struct counted {
    struct spin spin;
    uint64_t count;         /* of the lock */
    uint64_t adds[THREADS]; /* atomic: each one's share */
};

static struct counted counted[LOCKS];

static void add_one(struct counted *to)
{
    spin_lock(&to->spin);
    uint64_t count = to->count;

    for (volatile int i = 0; i < 50; i++)
        ;
    to->count = count + 1;
    spin_unlock(&to->spin);
}

/* Stores that miss the cache: what is stored next waits for them, and is seen late. */
static void store_slowly(uint32_t *seed)
{
    static uint8_t far[(size_t)32 << 20];

    for (uint32_t i = 0; i < FAR_STORES; i++) {
        *seed = *seed * 1664525 + 1013904223;
        __atomic_store_n(&far[*seed % sizeof(far)], 1, __ATOMIC_RELAXED);
    }
}

static uint64_t adds_of(const struct counted *to, int thread)
{
    return __atomic_load_n(&to->adds[thread], __ATOMIC_ACQUIRE);
}

/*
 * Each begins after the one before it, and all go on until the last one had the lock.
 */
static void take_each_as(int thread)
{
    uint32_t seed = (uint32_t)thread + 1;

    for (struct counted *to = counted; to < counted + LOCKS; to++) {
        while (thread > 0 && adds_of(to, thread - 1) == 0)
            sched_yield();
        do {
            store_slowly(&seed);
            add_one(to);
            if (adds_of(to, thread) > ADDS_AT_ONCE)
                sched_yield();
            __atomic_add_fetch(&to->adds[thread], 1, __ATOMIC_RELEASE);
        } while (adds_of(to, THREADS - 1) == 0);
    }
}

static void *take_as_first(void *arg)
{
    take_each_as(0);
    return arg;
}

static void *take_as_second(void *arg)
{
    take_each_as(1);
    return arg;
}

static void *take_as_third(void *arg)
{
    take_each_as(2);
    return arg;
}

static void *take_as_third_without_membarrier(void *arg)
{
    if (!forbid_membarrier())
        abort();
    return take_as_third(arg);
}

static void no_two_are_inside(void *(*take)(void *))
{
    void *(*const take_as[THREADS])(void *) = {take_as_first, take_as_second, take};
    pthread_t threads[THREADS];

    memset(counted, 0, sizeof(counted));
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_as[i], NULL), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (const struct counted *to = counted; to < counted + LOCKS; to++)
        assert_int_equal(to->count, to->adds[0] + to->adds[1] + to->adds[2]);
}

static void no_two_threads_are_inside(void **state)
{
    (void)state;
    no_two_are_inside(take_as_third);
}

static void no_two_are_inside_where_membarrier_is_forbidden(void **state)
{
    (void)state;
    no_two_are_inside(take_as_third_without_membarrier);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobodys_lock_is_held_by_one),
        cmocka_unit_test(own_lock_is_held_by_one),
        cmocka_unit_test(lock_of_another_thread_is_held_by_one),
        cmocka_unit_test(other_thread_takes_what_is_not_held),
        cmocka_unit_test(lock_goes_to_the_second_thread_then_to_everyone),
        cmocka_unit_test(other_thread_takes_it_where_membarrier_is_forbidden),
        cmocka_unit_test(no_two_threads_are_inside),
        cmocka_unit_test(no_two_are_inside_where_membarrier_is_forbidden),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
