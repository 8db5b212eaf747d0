/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/threads.h"

#include <errno.h>
#include <libpmem.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/pmfs/pages.h"
#include "bench/scratch.h"
#include "include/pmfs.h"

#define FILE_SIZE ((uint64_t)8 << 20) /* of each thread */
#define WRITE_MAX 4096u
#define SPIN_MAX 100000u
#define STREAM_FROM 256u /* bytes: libpmem's own limit for non-temporal stores */

struct team;

struct worker {
    struct team *team;
    pthread_t thread;
    uint64_t start_ns, end_ns; /* of its part of a round */
    uint32_t index;
    uint32_t rounds; /* begun */
    uint64_t file;   /* of FILE_SIZE bytes */
    uint64_t tail;   /* a file that grows */
    uint64_t dir;    /* for names */
    uint8_t *floor;  /* [FILE_SIZE] */
    uint64_t random_state;
    int rc;
    uint8_t bytes[WRITE_MAX];
    uint8_t pad[128]; /* workers share no line */
};

typedef int step_fn(struct worker *worker, uint32_t size);

/* What each thread does in a file or a directory of its own. */
struct job {
    const char *op;
    uint32_t size;  /* bytes; 0: does not apply */
    step_fn *reset; /* before a round, not timed; NULL: nothing */
    step_fn *run;
    step_fn *floor; /* NULL: there is none */
};

/* All wait at `start`; those that work meet at `ready`, and begin at once when all have come
 * from there; all meet at `end`. */
struct team {
    struct pmfs *fs;
    uint8_t *floor;
    pthread_barrier_t start, ready, end;
    uint32_t came; /* from `ready`, in all rounds; atomic */
    uint32_t thread_count, active, operations;
    const struct job *job; /* NULL: it is over */
    bool is_floor;
    struct worker *workers;
};

/* ---- Jobs ------------------------------------------------------------------------ */

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

static uint64_t next_offset(struct worker *worker, uint32_t size)
{
    worker->random_state = worker->random_state * 6364136223846793005u + 1;
    return (worker->random_state >> 33) % (FILE_SIZE / size) * size;
}

static int overwrite(struct worker *worker, uint32_t size)
{
    size_t done;

    return pmfs_write(worker->team->fs, worker->file, next_offset(worker, size),
                      worker->bytes, size, 0, &done);
}

static int store(struct worker *worker, uint32_t size)
{
    pmem_memcpy(worker->floor + next_offset(worker, size), worker->bytes, size,
                size < STREAM_FROM ? PMEM_F_MEM_TEMPORAL : PMEM_F_MEM_NONTEMPORAL);
    return 0;
}

static int read_random(struct worker *worker, uint32_t size)
{
    size_t done;

    return pmfs_read(worker->team->fs, worker->file, next_offset(worker, size),
                     worker->bytes, size, &done);
}

static int copy_out(struct worker *worker, uint32_t size)
{
    memcpy(worker->bytes, worker->floor + next_offset(worker, size), size);
    /* What is copied is used. */
    __asm__ volatile("" : : "r"(worker->bytes) : "memory");
    return 0;
}

static int append(struct worker *worker, uint32_t size)
{
    size_t done;

    return pmfs_write(worker->team->fs, worker->tail, 0, worker->bytes, size,
                      PMFS_APPEND, &done);
}

static int empty_tail(struct worker *worker, uint32_t size)
{
    const struct pmfs_attr values = {.size = 0};

    (void)size;
    return pmfs_setattr(worker->team->fs, worker->tail, &values, PMFS_SET_SIZE, NULL);
}

static int create_and_unlink(struct worker *worker, uint32_t size)
{
    struct pmfs_attr attr;
    int rc = pmfs_mknod(worker->team->fs, worker->dir, "name", S_IFREG | 0644, 0,
                        &nobody, &attr);

    (void)size;
    return rc < 0 ? rc : pmfs_unlink(worker->team->fs, worker->dir, "name");
}

static const struct job jobs[] = {
    {"overwrite", 4096, NULL, overwrite, store},
    {"overwrite", 64, NULL, overwrite, store},
    {"append", 4096, empty_tail, append, store},
    {"read", 4096, NULL, read_random, copy_out},
    {"create+unlink", 0, NULL, create_and_unlink, NULL},
};

/* ---- Threads --------------------------------------------------------------------- */

static void work_once(struct worker *worker)
{
    const struct team *team = worker->team;
    const struct job *job = team->job;
    step_fn *run = team->is_floor ? job->floor : job->run;

    for (uint32_t i = 0; i < team->operations && worker->rc == 0; i++) {
        memset(worker->bytes, (int)i, 64);
        worker->rc = run(worker, job->size);
    }
}

/* Each on a core of its own, as far as there are any. */
static void stay_on_core(uint32_t index)
{
    cpu_set_t all, one;
    uint32_t left;

    if (sched_getaffinity(0, sizeof(all), &all) < 0 || CPU_COUNT(&all) == 0)
        return;
    left = index % (uint32_t)CPU_COUNT(&all);
    CPU_ZERO(&one);
    for (size_t core = 0; core < CPU_SETSIZE; core++)
        if (CPU_ISSET(core, &all) && left-- == 0) {
            CPU_SET(core, &one);
            break;
        }
    sched_setaffinity(0, sizeof(one), &one);
}

/* The last one to be woken may be so a twentieth of a round after the first. */
static void begin_together(struct worker *worker)
{
    struct team *team = worker->team;
    uint32_t all = ++worker->rounds * team->thread_count;

    pthread_barrier_wait(&team->ready);
    __atomic_add_fetch(&team->came, 1, __ATOMIC_RELAXED);
    for (uint32_t i = 0; __atomic_load_n(&team->came, __ATOMIC_RELAXED) < all; i++)
        if (i > SPIN_MAX)
            sched_yield(); /* there are fewer cores than threads */
}

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct team *team = worker->team;

    stay_on_core(worker->index);
    for (;;) {
        pthread_barrier_wait(&team->start);
        if (!team->job)
            return NULL;
        if (team->job->reset && worker->rc == 0)
            worker->rc = team->job->reset(worker, team->job->size);
        begin_together(worker);
        worker->start_ns = bench_now_ns();
        if (worker->index < team->active)
            work_once(worker);
        worker->end_ns = bench_now_ns();
        pthread_barrier_wait(&team->end);
    }
}

/*
 * Wall clock, per operation of one thread. By the clocks of those that work: who waits for
 * them may run late where they have all cores.
 */
static double run_round(struct team *team, bool is_floor, uint32_t active)
{
    uint64_t start_ns = UINT64_MAX, end_ns = 0;

    team->is_floor = is_floor;
    team->active = active;
    pthread_barrier_wait(&team->start);
    pthread_barrier_wait(&team->end);
    for (uint32_t i = 0; i < active; i++) {
        const struct worker *worker = &team->workers[i];

        start_ns = worker->start_ns < start_ns ? worker->start_ns : start_ns;
        end_ns = worker->end_ns > end_ns ? worker->end_ns : end_ns;
    }
    return (double)(end_ns - start_ns) / team->operations;
}

/* In each round alone and together, on pmfs and on plain memory. */
static int measure(struct team *team, struct threads_figure *alone,
                   struct threads_figure *together)
{
    bool has_floor = team->job->floor != NULL;

    run_round(team, false, together->threads);
    for (size_t i = 0; i < alone->rounds; i++) {
        alone->ns[i] = run_round(team, false, 1);
        together->ns[i] = run_round(team, false, together->threads);
        if (has_floor)
            alone->floor_ns[i] = run_round(team, true, 1);
        if (has_floor)
            together->floor_ns[i] = run_round(team, true, together->threads);
    }
    for (uint32_t i = 0; i < team->thread_count; i++)
        if (team->workers[i].rc < 0)
            return team->workers[i].rc;
    return 0;
}

static int measure_job(struct team *team, size_t rounds, threads_add_fn *add, void *arg)
{
    static struct threads_figure alone, together; /* large */

    alone = (struct threads_figure){
        .op = team->job->op,
        .threads = 1,
        .size = team->job->size,
        .rounds = rounds,
        .has_floor = team->job->floor != NULL,
    };
    together = alone;
    together.threads = team->thread_count;
    int rc = measure(team, &alone, &together);

    if (rc == 0)
        rc = add(arg, &alone);
    return rc < 0 ? rc : add(arg, &together);
}

static int measure_jobs(struct team *team, size_t rounds, threads_add_fn *add,
                        void *arg)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < sizeof(jobs) / sizeof(jobs[0]); i++) {
        team->job = &jobs[i];
        rc = measure_job(team, rounds, add, arg);
    }
    return rc;
}

/* ---- Making ---------------------------------------------------------------------- */

static int make_one(struct worker *worker, const char *what, uint32_t mode,
                    uint64_t *ino)
{
    struct pmfs_attr attr;
    char name[24];

    snprintf(name, sizeof(name), "%s%u", what, worker->index);
    int rc = S_ISDIR(mode) ? pmfs_mkdir(worker->team->fs, PMFS_ROOT_INO, name, 0755,
                                        &nobody, &attr)
                           : pmfs_mknod(worker->team->fs, PMFS_ROOT_INO, name, mode, 0,
                                        &nobody, &attr);

    *ino = attr.ino;
    return rc;
}

static int make_files(struct worker *worker)
{
    int rc = make_one(worker, "file", S_IFREG | 0644, &worker->file);
    size_t done;

    for (uint64_t at = 0; rc == 0 && at < FILE_SIZE; at += WRITE_MAX)
        rc = pmfs_write(worker->team->fs, worker->file, at, worker->bytes, WRITE_MAX, 0,
                        &done);
    if (rc == 0)
        rc = make_one(worker, "tail", S_IFREG | 0644, &worker->tail);
    return rc < 0 ? rc : make_one(worker, "dir", S_IFDIR, &worker->dir);
}

static int make_filesystem(struct team *team)
{
    const char *path = scratch_path("pmfs");
    int rc = pmfs_mkfs(path, ((uint64_t)64 << 20) + 3 * FILE_SIZE * team->thread_count,
                       NULL);

    if (rc == 0)
        rc = pmfs_mount(path, NULL, &team->fs);
    scratch_unlink(path);
    return rc < 0 ? rc : touch_pages(pmfs_pool(team->fs));
}

static int make_floor(struct team *team)
{
    const char *path = scratch_path("floor");
    size_t size = team->thread_count * FILE_SIZE, mapped_size;
    int is_pmem;

    team->floor = pmem_map_file(path, size, PMEM_FILE_CREATE | PMEM_FILE_EXCL, 0600,
                                &mapped_size, &is_pmem);
    scratch_unlink(path);
    if (!team->floor)
        return -errno;
    memset(team->floor, 1, size);
    return 0;
}

static int start_threads(struct team *team)
{
    pthread_barrier_init(&team->start, NULL, team->thread_count + 1);
    pthread_barrier_init(&team->ready, NULL, team->thread_count);
    pthread_barrier_init(&team->end, NULL, team->thread_count + 1);
    for (uint32_t i = 0; i < team->thread_count; i++) {
        struct worker *worker = &team->workers[i];

        *worker = (struct worker){.team = team,
                                  .index = i,
                                  .floor = team->floor + (size_t)i * FILE_SIZE,
                                  .random_state = i};
        int rc = make_files(worker);

        if (rc == 0)
            rc = -pthread_create(&worker->thread, NULL, work, worker);
        if (rc < 0)
            return rc; /* the program ends with those that wait */
    }
    return 0;
}

static void stop_threads(struct team *team)
{
    team->job = NULL;
    pthread_barrier_wait(&team->start);
    for (uint32_t i = 0; i < team->thread_count; i++)
        pthread_join(team->workers[i].thread, NULL);
}

int threads_measure(uint32_t thread_count, size_t rounds, uint32_t operations,
                    threads_add_fn *add, void *arg)
{
    struct team team = {.thread_count = thread_count, .operations = operations};
    int rc = make_filesystem(&team);

    if (rc == 0)
        rc = make_floor(&team);
    if (rc < 0)
        return rc;
    team.workers = calloc(thread_count, sizeof(*team.workers));
    rc = team.workers ? start_threads(&team) : -ENOMEM;
    if (rc < 0)
        return rc;
    rc = measure_jobs(&team, rounds, add, arg);
    stop_threads(&team);
    free(team.workers);
    pmem_unmap(team.floor, thread_count * FILE_SIZE);
    pmfs_unmount(team.fs);
    return rc;
}
