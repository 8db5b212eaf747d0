/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/scratch.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILES_MAX 16

/* Static, for the signal handler. A file's slot is set before the file is made. */
static char directory[PATH_MAX / 2];
static char names[FILES_MAX][PATH_MAX];
static const char *volatile files[FILES_MAX];
static void (*volatile end_first)(void);

static void remove_all(void)
{
    if (end_first)
        end_first();
    for (int i = 0; i < FILES_MAX; i++)
        if (files[i])
            unlink(files[i]);
    if (directory[0])
        rmdir(directory);
}

/* Calls only what POSIX allows in a signal handler. */
static void remove_all_and_die(int signal_number)
{
    remove_all();
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void on_signal(int signal_number)
{
    struct sigaction action = {.sa_handler = remove_all_and_die};

    sigaction(signal_number, &action, NULL);
}

int scratch_init(const char *parent)
{
    int length =
        snprintf(directory, sizeof(directory), "%s/minl2r-bench-XXXXXX", parent);

    if (length >= (int)sizeof(directory)) {
        directory[0] = '\0';
        return -ENAMETOOLONG;
    }
    on_signal(SIGINT);
    on_signal(SIGTERM);
    on_signal(SIGHUP);
    on_signal(SIGPIPE);
    if (!mkdtemp(directory)) {
        int rc = -errno;

        directory[0] = '\0';
        return rc;
    }
    return atexit(remove_all) == 0 ? 0 : -ENOMEM;
}

static int find(const char *path)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (files[i] && strcmp(files[i], path) == 0)
            return i;
    return -1;
}

static int find_empty(void)
{
    for (int i = 0; i < FILES_MAX; i++)
        if (!files[i])
            return i;
    return -1;
}

const char *scratch_path(const char *name)
{
    char path[PATH_MAX];

    snprintf(path, sizeof(path), "%s/%s", directory, name);
    int index = find(path);

    if (index < 0) {
        index = find_empty();
        if (index < 0)
            return NULL;
        memcpy(names[index], path, sizeof(path));
        files[index] = names[index];
    }
    return files[index];
}

void scratch_before(void (*end)(void))
{
    end_first = end;
}

const char *scratch_adopt(const char *path)
{
    int index = find_empty();

    if (index < 0)
        return NULL;
    files[index] = path;
    return path;
}

void scratch_unlink(const char *path)
{
    unlink(path);
    scratch_keep(path);
}

void scratch_keep(const char *path)
{
    int index = find(path);

    if (index >= 0)
        files[index] = NULL;
}
