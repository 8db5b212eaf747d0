/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/pmfs/tmpfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/harness.h"

#define ROUNDS 11
#define OPERATIONS 2000u /* per round */
#define NAME_SIZE 32

/* What the child answers with. */
struct answer {
    double found_ns[ROUNDS], none_ns[ROUNDS];
};

static void write_name(char name[NAME_SIZE], uint64_t number)
{
    snprintf(name, NAME_SIZE, "=name %" PRIu64, number);
}

/* A directory in a tmpfs of this process alone; -1: that is not allowed. */
static int mount_tmpfs(void)
{
    if (unshare(geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS) < 0 ||
        mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("bench", "/tmp", "tmpfs", 0, "size=90%,nr_inodes=0") < 0)
        return -1;
    return open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static bool make_names(int directory, uint64_t names)
{
    char name[NAME_SIZE];

    for (uint64_t i = 0; i < names; i++) {
        write_name(name, i);
        if (mknodat(directory, name, S_IFREG | 0644, 0) < 0)
            return false;
    }
    return true;
}

static bool run(int directory, uint64_t names, uint64_t *random, bool is_there,
                double *ns)
{
    static char text[OPERATIONS][NAME_SIZE];
    struct stat status;
    bool ok = true;

    for (uint32_t i = 0; i < OPERATIONS; i++) {
        *random = *random * 6364136223846793005u + 1442695040888963407u;
        write_name(text[i], (*random >> 33) % names);
    }

    uint64_t start_ns = bench_now_ns();

    for (uint32_t i = 0; i < OPERATIONS; i++)
        ok &= (fstatat(directory, text[i] + !is_there, &status, 0) == 0) == is_there;
    *ns = (double)(bench_now_ns() - start_ns) / OPERATIONS;
    return ok;
}

/* In the child. */
static void measure(uint64_t names, int result)
{
    struct answer answer;
    uint64_t random = 1;
    int directory = mount_tmpfs();
    bool ok = directory >= 0 && make_names(directory, names);

    for (int i = 0; ok && i < ROUNDS; i++)
        ok = run(directory, names, &random, true, &answer.found_ns[i]) &&
             run(directory, names, &random, false, &answer.none_ns[i]);
    if (ok && write(result, &answer, sizeof(answer)) == sizeof(answer))
        _exit(0);
    _exit(1);
}

static bool ask_child(uint64_t names, struct answer *answer)
{
    int result[2];

    if (pipe(result) < 0)
        return false;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(result[0]);
        measure(names, result[1]);
    }
    close(result[1]);
    bool ok = child > 0 && read(result[0], answer, sizeof(*answer)) == sizeof(*answer);
    close(result[0]);
    if (child > 0)
        waitpid(child, NULL, 0);
    return ok;
}

int tmpfs_measure(uint64_t names, scale_take_fn *take, void *arg)
{
    struct answer answer;

    if (!ask_child(names, &answer))
        return 0;
    const struct scale_figure found = {.op = "tmpfs: stat() among",
                                       .size = (double)names,
                                       .ns = answer.found_ns,
                                       .rounds = ROUNDS};
    const struct scale_figure none = {.op = "tmpfs: stat() of none among",
                                      .size = (double)names,
                                      .ns = answer.none_ns,
                                      .rounds = ROUNDS};
    int rc = take(arg, &found);

    return rc < 0 ? rc : take(arg, &none);
}
