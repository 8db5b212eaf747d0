/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * test_preload_threads.c - descriptors that threads open, duplicate, replace and close
 * at once; and that the kernel has no part in reading and writing. Runs with
 * libpmfs-preload.so preloaded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 4, ROUNDS = 3000, SHARED_FD = 200 };

static char failure; /* what a thread returns that has seen one */

static void run_threads(void *(*work)(void *))
{
    pthread_t threads[THREADS];

    for (long i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, (void *)i), 0);
    for (long i = 0; i < THREADS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
}

/* Each has files of its own; no number may ever lead to another's. */
static void *work_apart(void *arg)
{
    char name[32], expected[32], found[32];

    for (long i = 0; i < ROUNDS; i++) {
        snprintf(name, sizeof(name), "/pmfs/thread%ld", (long)arg);
        snprintf(expected, sizeof(expected), "%ld %ld", (long)arg, i);

        int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        int second = dup(fd);
        ssize_t size = write(fd, expected, strlen(expected));

        close(fd);
        if (pread(second, found, sizeof(found), 0) != size ||
            memcmp(found, expected, (size_t)size) != 0)
            return &failure;
        if (i % 10 == 0)
            unlink(name);
        close(second);
    }
    return NULL;
}

static void threads_find_their_own_files(void **state)
{
    (void)state;
    run_threads(work_apart);
}

/* One number is replaced all the time, by files of both kinds, while all use it. */
static void *work_on_one_number(void *arg)
{
    static const char *names[] = {"/pmfs/a", "/pmfs/b", "/dev/zero"};
    struct stat stat;
    char byte;

    for (long i = 0; i < ROUNDS; i++) {
        if (arg == NULL) {
            int fd = open(names[i % 3], O_RDWR);

            if (fd < 0 || dup2(fd, SHARED_FD) != SHARED_FD)
                return &failure;
            close(fd);
            if (i % 7 == 0)
                close(SHARED_FD);
            continue;
        }
        if (pread(SHARED_FD, &byte, 1, 0) == 1 && byte != 'a' && byte != 'b' &&
            byte != 0)
            return &failure;
        if (fstat(SHARED_FD, &stat) == 0 && !S_ISREG(stat.st_mode) &&
            !S_ISCHR(stat.st_mode))
            return &failure;
    }
    return NULL;
}

static void make(const char *name, const char *text)
{
    int fd = open(name, O_WRONLY | O_CREAT, 0644);

    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
}

static void replaced_number_is_one_or_the_other(void **state)
{
    (void)state;
    make("/pmfs/a", "a");
    make("/pmfs/b", "b");
    run_threads(work_on_one_number);
    close(SHARED_FD);
}

enum { RECORD = 100, RECORDS = 500 };

/* Through one descriptor: no byte is written twice at a position. */
static int common_fd;

static void *append_records(void *arg)
{
    char record[RECORD];

    memset(record, 'a' + (int)(long)arg, sizeof(record));
    for (int i = 0; i < RECORDS; i++)
        if (write(common_fd, record, sizeof(record)) != sizeof(record))
            return &failure;
    return NULL;
}

static void check_records(const char *name)
{
    int count[THREADS] = {0};
    char record[RECORD];
    int fd = open(name, O_RDONLY);

    while (read(fd, record, sizeof(record)) == sizeof(record)) {
        for (int i = 1; i < RECORD; i++)
            assert_int_equal(record[i], record[0]);
        count[record[0] - 'a']++;
    }
    close(fd);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(count[i], RECORDS);
}

static void shared_position_moves_with_each_write(void **state)
{
    (void)state;
    common_fd = open("/pmfs/records", O_WRONLY | O_CREAT | O_TRUNC, 0644);
    run_threads(append_records);
    close(common_fd);
    check_records("/pmfs/records");
}

static void *append_by_own_descriptor(void *arg)
{
    char record[RECORD];
    int fd = open("/pmfs/appended", O_WRONLY | O_CREAT | O_APPEND, 0644);

    memset(record, 'a' + (int)(long)arg, sizeof(record));
    for (int i = 0; i < RECORDS; i++)
        if (write(fd, record, sizeof(record)) != sizeof(record))
            return &failure;
    close(fd);
    return NULL;
}

static void appending_threads_do_not_overwrite_each_other(void **state)
{
    (void)state;
    run_threads(append_by_own_descriptor);
    check_records("/pmfs/appended");
}

/* A handler that calls while a call runs is refused, and nothing waits for ever. */
static atomic_int handled, refused;

static void handle(int number)
{
    int errnum = errno;
    struct stat found;

    (void)number;
    if (stat("/pmfs/signalled", &found) < 0 && errno == EDEADLK)
        refused++;
    handled++;
    errno = errnum;
}

static void *interrupt(void *arg)
{
    while (handled < 2000)
        pthread_kill(*(pthread_t *)arg, SIGUSR1);
    return NULL;
}

static void call_in_a_signal_handler_does_not_deadlock(void **state)
{
    static char bytes[1 << 20];
    const struct sigaction action = {.sa_handler = handle};
    pthread_t self = pthread_self(), thread;
    int fd = open("/pmfs/signalled", O_RDWR | O_CREAT, 0644);

    (void)state;
    sigaction(SIGUSR1, &action, NULL);
    pthread_create(&thread, NULL, interrupt, &self);
    while (handled < 2000)
        assert_int_equal(pwrite(fd, bytes, sizeof(bytes), 0), sizeof(bytes));
    pthread_join(thread, NULL);
    signal(SIGUSR1, SIG_IGN);
    close(fd);
    assert_true(refused > 0);
}

/* ---- The kernel ---------------------------------------------------------------- */

/* From here on the kernel kills this process for any call but those that are allowed. */
static int forbid_system_calls(void)
{
    struct sock_filter allowed[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clock_gettime, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    const struct sock_fprog program = {
        .len = sizeof(allowed) / sizeof(allowed[0]),
        .filter = allowed,
    };

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0
               ? -1
               : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static bool read_and_write(int fd)
{
    static char bytes[8192], found[8192];
    const struct iovec pieces[] = {{found, 100}, {found + 100, 4000}};

    memset(bytes, 'x', sizeof(bytes));
    return pwrite(fd, bytes, 4096, 4096) == 4096 && pwrite(fd, bytes, 10, 20) == 10 &&
           pread(fd, found, 8192, 0) == 8192 && lseek(fd, 0, SEEK_SET) == 0 &&
           write(fd, bytes, 100) == 100 && read(fd, found, 100) == 100 &&
           preadv(fd, pieces, 2, 0) == 4100 && fdatasync(fd) == 0 &&
           memcmp(found, bytes, 100) == 0;
}

/* Before anything else: the child is the one that has the pool. */
static void reading_and_writing_never_enter_the_kernel(void **state)
{
    pid_t pid = fork();
    int status;

    (void)state;
    if (pid == 0) {
        int fd = open("/pmfs/kernel", O_RDWR | O_CREAT, 0644);

        if (!read_and_write(fd) || forbid_system_calls() < 0)
            _exit(1);
        for (int i = 0; i < ROUNDS; i++)
            if (!read_and_write(fd))
                _exit(2);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
}

/* With an argument: without the test of this name. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reading_and_writing_never_enter_the_kernel),
        cmocka_unit_test(threads_find_their_own_files),
        cmocka_unit_test(replaced_number_is_one_or_the_other),
        cmocka_unit_test(shared_position_moves_with_each_write),
        cmocka_unit_test(appending_threads_do_not_overwrite_each_other),
        cmocka_unit_test(call_in_a_signal_handler_does_not_deadlock),
    };

    if (argc > 1)
        cmocka_set_skip_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
