/* SPDX-License-Identifier: BSD-3-Clause */
/* jobs.h - what is asked of a mounted filesystem: system calls that reach who serves
 * it. */
#ifndef BENCH_JOBS_H
#define BENCH_JOBS_H

#include <stdint.h>

#define JOB_SIZE_MAX 65536

/* A program's side of one mount. */
struct load {
    int dir;
    int cached; /* the file of 64 MiB */
    int direct; /* the same, past the kernel's cache */
    int tail;   /* a file that grows */
    uint64_t random_state;
    uint32_t nothing; /* names that were looked up and not there */
};

struct job;

/* Operation `number` of a batch; 0 or a negative errno. */
typedef int job_fn(struct load *load, const struct job *job, uint64_t number);

struct job {
    const char *name;
    uint32_t size;                                             /* bytes; 0: none */
    enum { JOB_COPIES_NOTHING, JOB_WRITES, JOB_READS } copies; /* so much */
    job_fn *run;                                               /* timed */
    job_fn *before; /* untimed, with each number, before the batch; NULL: nothing */
    job_fn *after;  /* untimed, so, after it */
};

extern const struct job jobs[];
extern const uint32_t job_count;

/* Opens and fills files in the filesystem mounted there. */
int load_open(struct load *load, const char *mountpoint);

/* Fills what room there is, once, so that each page of the pool has been touched. */
int load_touch(struct load *load);
void load_close(struct load *load);

#endif
