/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/harness.h"

#include <assert.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

int bench_pin(void)
{
    cpu_set_t allowed, one;
    int last = CPU_SETSIZE - 1;

    if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
        return -errno;
    while (last > 0 && !CPU_ISSET((size_t)last, &allowed))
        last--;
    CPU_ZERO(&one);
    CPU_SET((size_t)last, &one);
    return sched_setaffinity(0, sizeof(one), &one) < 0 ? -errno : 0;
}

static void print_cpu(void)
{
    char line[256];
    FILE *cpuinfo = fopen("/proc/cpuinfo", "re");

    while (cpuinfo && fgets(line, sizeof(line), cpuinfo)) {
        const char *colon = strchr(line, ':');

        if (strncmp(line, "model name", strlen("model name")) == 0 && colon) {
            printf("CPU:%s", colon + 1);
            break;
        }
    }
    if (cpuinfo)
        fclose(cpuinfo);
}

/* bench-NAME, wherever it lies, is what ./dev bench NAME runs. */
static void print_command(void)
{
    char text[1024] = "";
    FILE *cmdline = fopen("/proc/self/cmdline", "re");
    size_t size = cmdline ? fread(text, 1, sizeof(text) - 1, cmdline) : 0;

    if (cmdline)
        fclose(cmdline);
    const char *slash = strrchr(text, '/'); /* of the first argument */
    const char *name = slash ? slash + 1 : text;

    if (strncmp(name, "bench-", strlen("bench-")) != 0)
        return;
    fputs("Command: ./dev bench", stdout);
    for (name += strlen("bench-"); name < text + size; name += strlen(name) + 1)
        printf(" %s", name);
    putchar('\n');
}

#ifdef __clang__
#define COMPILER __VERSION__
#else
#define COMPILER "gcc " __VERSION__
#endif

void bench_print_machine(void)
{
    const char *code = getenv("MINL2R_BENCH_CODE"); /* set by ./dev bench */
    struct utsname system;

    print_command();
    if (code && *code)
        printf("Code: %s\n", code);
    printf("Compiler: %s\n", COMPILER);
    print_cpu();
    printf("Cores: %ld\n", sysconf(_SC_NPROCESSORS_ONLN));
    if (uname(&system) == 0)
        printf("Kernel: %s %s\n", system.sysname, system.release);
}

int bench_rounds(const struct bench_subject *subjects, size_t count, size_t rounds)
{
    for (size_t round = 0; round < rounds; round++) {
        for (size_t turn = 0; turn < count; turn++) {
            const struct bench_subject *subject = &subjects[(round + turn) % count];
            int rc = subject->batch(subject->arg, &subject->ns[round]);

            if (rc < 0)
                return rc;
        }
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;

    return (x > y) - (x < y);
}

struct bench_spread bench_spread(const double *samples, size_t count)
{
    double sorted[BENCH_ROUNDS_MAX];

    assert(count >= 1 && count <= BENCH_ROUNDS_MAX);
    memcpy(sorted, samples, count * sizeof(*sorted));
    qsort(sorted, count, sizeof(*sorted), compare);
    return (struct bench_spread){
        .median = (sorted[(count - 1) / 2] + sorted[count / 2]) / 2,
        .min = sorted[0],
        .max = sorted[count - 1],
    };
}

double bench_ratio(const double *samples, const double *base, size_t count)
{
    double ratios[BENCH_ROUNDS_MAX];

    assert(count >= 1 && count <= BENCH_ROUNDS_MAX);
    for (size_t i = 0; i < count; i++)
        ratios[i] = samples[i] / base[i];
    return bench_spread(ratios, count).median;
}
