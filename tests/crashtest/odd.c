/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * odd.c - a counter and what it counts, by a program that does what programs seldom do.
 * The environment's WAY says what.
 */
#include <crashtest.h>
#include <err.h>
#include <immintrin.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct odd {
    _Alignas(64) uint64_t data;
    char text[56];
    _Alignas(64) uint64_t count;
    char counted[56];
};

static int is(const char *way)
{
    const char *chosen = getenv("WAY");

    return chosen && strcmp(chosen, way) == 0;
}

static void persist(const void *address)
{
    _mm_clflushopt((void *)(uintptr_t)address);
    _mm_sfence();
}

/* Inline assembly. */
static void move(uint64_t *to, uint64_t value)
{
    const uint64_t *from = &value;
    size_t size = sizeof(value);

    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
}

static void move_and_flush(uint64_t *to, uint64_t value)
{
    __asm__ volatile("movq %1, %0\n\tclflush %0\n\tsfence" : "+m"(*to) : "r"(value));
}

static void store_in_child(struct odd *odd, uint64_t value)
{
    pid_t child = fork();

    if (child == 0) {
        odd->data = value;
        persist(&odd->data);
        _exit(0);
    }
    waitpid(child, NULL, 0);
}

/* A child that does not store is nobody's business, however it ends. */
static void fork_for_nothing(void)
{
    pid_t child = fork();

    if (child == 0)
        exit(0);
    waitpid(child, NULL, 0);
}

static void store_and_jump(struct odd *odd, uint64_t value, jmp_buf back)
{
    odd->data = value;
    longjmp(back, 1);
}

static void set_data(struct odd *odd, uint64_t value)
{
    jmp_buf back;

    memcpy(odd->text, "", 0);
    memset(odd->text, 0, 0);
    memmove(odd->text, odd->text + 1, 0);
    if (is("assembly"))
        move(&odd->data, value);
    else if (is("flush in assembly"))
        move_and_flush(&odd->data, value);
    else if (is("fork"))
        store_in_child(odd, value);
    else if (is("longjmp") && setjmp(back) == 0)
        store_and_jump(odd, value, back);
    else if (is("volatile"))
        *(volatile uint64_t *)&odd->data = value;
    else if (!is("longjmp"))
        odd->data = value;
    if (is("fork for nothing"))
        fork_for_nothing();
    if (!is("flush in assembly"))
        persist(&odd->data);
}

/* The text is not flushed before it is counted. */
static void set_text(struct odd *odd, uint64_t value)
{
    odd->text[0] = (char)('0' + value);
    odd->counted[0] = (char)('0' + value);
    persist(odd->text);
    persist(odd->counted);
}

static int run(const struct crashtest_pm *pm, void *arg)
{
    struct odd *odd = pm->base;

    (void)arg;
    for (uint64_t value = 1; value <= 3; value++) {
        crashtest_begin("set %llu", (unsigned long long)value);
        set_data(odd, value);
        odd->count = value;
        persist(&odd->count);
        if (is("text"))
            set_text(odd, value);
        crashtest_end();
        if (is("_exit") && value == 2)
            _exit(5);
    }
    return 0;
}

static int recover(const struct crashtest_pm *pm, void *arg)
{
    struct odd *odd = pm->base;

    (void)arg;
    if (is("recovery forks"))
        store_in_child(odd, 0);
    if (odd->data != 2)
        return 0;
    if (is("recovery calls _exit"))
        _exit(5);
    if (is("recovery calls errx"))
        errx(6, "as it was asked to");
    if (is("recovery is killed"))
        kill(getpid(), SIGKILL);
    return 0;
}

static int check(const struct crashtest_pm *pm, const struct crashtest_crash *crash,
                 void *arg)
{
    const struct odd *odd = pm->base;

    (void)arg;
    if (odd->count < crash->returned)
        return crashtest_fail("%llu are counted, after %zu",
                              (unsigned long long)odd->count, crash->returned);
    if (odd->data < odd->count)
        return crashtest_fail("data is %llu, and %llu counted",
                              (unsigned long long)odd->data,
                              (unsigned long long)odd->count);
    if (atoi(odd->text) < atoi(odd->counted)) /* libc's loads are not seen */
        return crashtest_fail("the text is %s, and %s counted", odd->text,
                              odd->counted);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct crashtest_program program = {
        .name = "odd",
        .pm_size = sizeof(struct odd),
        .run = run,
        .recover = recover,
        .check = check,
    };

    return crashtest_main(argc, argv, &program);
}
