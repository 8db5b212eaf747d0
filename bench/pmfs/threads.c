/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/threads.h"

#include <errno.h>
#include <libpmem.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/scratch.h"
#include "include/pmfs.h"

#define FILE_SIZE ((uint64_t)8 << 20) /* of each thread */
#define WRITE_SIZE 4096u

struct team;

struct worker {
    struct team *team;
    pthread_t thread;
    uint64_t start_ns, end_ns; /* of its part of a round */
    uint32_t index;
    uint64_t file;
    uint8_t *floor; /* [FILE_SIZE] */
    uint64_t random_state;
    int rc;
    uint8_t bytes[WRITE_SIZE];
    uint8_t pad[128]; /* workers share no line */
};

typedef int write_fn(struct worker *worker, uint64_t offset);

/* All wait at `start`; the first `active` ones write; all meet at `end`. */
struct team {
    struct pmfs *fs;
    uint8_t *floor;
    pthread_barrier_t start, end;
    uint32_t thread_count, active, operations;
    write_fn *write; /* NULL: it is over */
    struct worker *workers;
};

static int write_file(struct worker *worker, uint64_t offset)
{
    size_t done;

    return pmfs_write(worker->team->fs, worker->file, offset, worker->bytes, WRITE_SIZE,
                      0, &done);
}

static int write_floor(struct worker *worker, uint64_t offset)
{
    pmem_memcpy(worker->floor + offset, worker->bytes, WRITE_SIZE,
                PMEM_F_MEM_NONTEMPORAL);
    return 0;
}

static uint64_t next_offset(struct worker *worker)
{
    worker->random_state = worker->random_state * 6364136223846793005u + 1;
    return (worker->random_state >> 33) % (FILE_SIZE / WRITE_SIZE) * WRITE_SIZE;
}

static void write_all(struct worker *worker)
{
    const struct team *team = worker->team;

    for (uint32_t i = 0; i < team->operations && worker->rc == 0; i++) {
        memset(worker->bytes, (int)i, 64);
        worker->rc = team->write(worker, next_offset(worker));
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

static void *work(void *arg)
{
    struct worker *worker = arg;
    struct team *team = worker->team;

    stay_on_core(worker->index);
    for (;;) {
        pthread_barrier_wait(&team->start);
        if (!team->write)
            return NULL;
        worker->start_ns = bench_now_ns();
        if (worker->index < team->active)
            write_all(worker);
        worker->end_ns = bench_now_ns();
        pthread_barrier_wait(&team->end);
    }
}

/*
 * Wall clock, per operation of one thread. By the clocks of those that work: who waits for
 * them may run late where they have all cores.
 */
static double run_round(struct team *team, write_fn *write, uint32_t active)
{
    uint64_t start_ns = UINT64_MAX, end_ns = 0;

    team->write = write;
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
static int measure(struct team *team, size_t rounds, struct threads_figure *alone,
                   struct threads_figure *together)
{
    run_round(team, write_file, together->threads);
    run_round(team, write_floor, together->threads);
    for (size_t i = 0; i < rounds; i++) {
        alone->ns[i] = run_round(team, write_file, 1);
        together->ns[i] = run_round(team, write_file, together->threads);
        alone->floor_ns[i] = run_round(team, write_floor, 1);
        together->floor_ns[i] = run_round(team, write_floor, together->threads);
    }
    for (uint32_t i = 0; i < team->thread_count; i++)
        if (team->workers[i].rc < 0)
            return team->workers[i].rc;
    return 0;
}

static int measure_both(struct team *team, size_t rounds, threads_add_fn *add,
                        void *arg)
{
    static struct threads_figure alone, together; /* large */

    alone = (struct threads_figure){.threads = 1, .size = WRITE_SIZE, .rounds = rounds};
    together = alone;
    together.threads = team->thread_count;
    int rc = measure(team, rounds, &alone, &together);

    if (rc == 0)
        rc = add(arg, &alone);
    return rc < 0 ? rc : add(arg, &together);
}

/* ---- Making ---------------------------------------------------------------------- */

static int make_file(struct worker *worker)
{
    static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};
    struct pmfs_attr attr;
    char name[16];
    int rc;

    snprintf(name, sizeof(name), "file%u", worker->index);
    rc = pmfs_mknod(worker->team->fs, PMFS_ROOT_INO, name, S_IFREG | 0644, 0, &nobody,
                    &attr);
    worker->file = attr.ino;
    for (uint64_t at = 0; rc == 0 && at < FILE_SIZE; at += WRITE_SIZE)
        rc = write_file(worker, at);
    return rc;
}

static int make_filesystem(struct team *team)
{
    const char *path = scratch_path("pmfs");
    int rc = pmfs_mkfs(path, ((uint64_t)64 << 20) + 2 * FILE_SIZE * team->thread_count,
                       NULL);

    if (rc == 0)
        rc = pmfs_mount(path, NULL, &team->fs);
    scratch_unlink(path);
    return rc;
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
    pthread_barrier_init(&team->end, NULL, team->thread_count + 1);
    for (uint32_t i = 0; i < team->thread_count; i++) {
        struct worker *worker = &team->workers[i];

        *worker = (struct worker){.team = team,
                                  .index = i,
                                  .floor = team->floor + (size_t)i * FILE_SIZE,
                                  .random_state = i};
        int rc = make_file(worker);

        if (rc == 0)
            rc = -pthread_create(&worker->thread, NULL, work, worker);
        if (rc < 0)
            return rc; /* the program ends with those that wait */
    }
    return 0;
}

static void stop_threads(struct team *team)
{
    team->write = NULL;
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
    rc = measure_both(&team, rounds, add, arg);
    stop_threads(&team);
    free(team.workers);
    pmem_unmap(team.floor, thread_count * FILE_SIZE);
    pmfs_unmount(team.fs);
    return rc;
}
