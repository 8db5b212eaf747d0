/* SPDX-License-Identifier: BSD-3-Clause */
/* Locks that belong to a thread until another one wants them. */
#include "tests/unit/fixture.h"

#include <pthread.h>
#include <sched.h>

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

/* ---- Threads at once ------------------------------------------------------------- */

struct counted {
    struct spin spin;
    uint64_t count;      /* of the lock */
    uint64_t owner_adds; /* atomic: its owner's share */
    bool other_added;    /* atomic: the last one was another thread's */
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
        far[*seed % sizeof(far)] = 1;
    }
}

static void *own_each(void *arg)
{
    uint32_t seed = 1;

    for (struct counted *to = counted; to < counted + LOCKS; to++)
        do {
            store_slowly(&seed);
            add_one(to);
            if (to->owner_adds > ADDS_AT_ONCE)
                sched_yield();
            __atomic_store_n(&to->owner_adds, to->owner_adds + 1, __ATOMIC_RELEASE);
        } while (!__atomic_load_n(&to->other_added, __ATOMIC_ACQUIRE));
    return arg;
}

static void *take_each(void *arg)
{
    for (struct counted *to = counted; to < counted + LOCKS; to++) {
        while (__atomic_load_n(&to->owner_adds, __ATOMIC_ACQUIRE) == 0)
            sched_yield();
        add_one(to);
        __atomic_store_n(&to->other_added, true, __ATOMIC_RELEASE);
    }
    return arg;
}

static void no_two_threads_are_inside(void **state)
{
    pthread_t owner, other;

    (void)state;
    assert_int_equal(pthread_create(&owner, NULL, own_each, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, take_each, NULL), 0);
    assert_int_equal(pthread_join(owner, NULL), 0);
    assert_int_equal(pthread_join(other, NULL), 0);
    for (const struct counted *to = counted; to < counted + LOCKS; to++)
        assert_int_equal(to->count, to->owner_adds + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobodys_lock_is_held_by_one),
        cmocka_unit_test(own_lock_is_held_by_one),
        cmocka_unit_test(lock_of_another_thread_is_held_by_one),
        cmocka_unit_test(other_thread_takes_what_is_not_held),
        cmocka_unit_test(no_two_threads_are_inside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
