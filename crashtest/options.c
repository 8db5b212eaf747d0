/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/options.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "crashtest/number.h"

void options_print_strategies(void)
{
    puts("  --strategy NAME   how states are chosen:");
    for (size_t i = 0; i < strategy_count; i++)
        printf("                      %-8s %s\n", strategies[i].name,
               strategies[i].what);
}

const char *options_take(int option)
{
    switch (option) {
    case OPTION_STRATEGY:
        return "the name of a strategy";
    case OPTION_NESTED:
        return "a number from 0";
    case OPTION_SECONDS:
        return "a number from 0, perhaps with a point";
    default:
        return "a number from 1";
    }
}

void options_refuse(const char *command, const char *option, const char *text,
                    const char *takes)
{
    fprintf(stderr, "%s: --%s: not understood: %s (it takes %s)\n", command, option,
            text, takes);
}

/* Without opening what is there: it may be a pipe. */
static int try_to_write(const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return -EISDIR;
        return access(path, W_OK) < 0 ? -errno : 0;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);

    if (fd < 0)
        return -errno;
    close(fd);
    unlink(path);
    return 0;
}

static bool can_write(const char *command, const char *path)
{
    int result = path ? try_to_write(path) : 0;

    if (result < 0)
        fprintf(stderr, "%s: cannot write %s: %s\n", command, path, strerror(-result));
    return result == 0;
}

/* Of files that are not there, too, however they are named. Pipes and such can take two
 * reports. */
static bool are_one_file(const char *a, const char *b)
{
    int made = open(a, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    struct stat first, second;
    bool same = stat(a, &first) == 0 && stat(b, &second) == 0 &&
                S_ISREG(first.st_mode) && first.st_dev == second.st_dev &&
                first.st_ino == second.st_ino;

    if (made >= 0) {
        close(made);
        unlink(a);
    }
    return same;
}

bool options_can_write(const char *command, const char *json, const char *html)
{
    if (!can_write(command, json) || !can_write(command, html))
        return false;
    if (!json || !html || !are_one_file(json, html))
        return true;
    fprintf(stderr, "%s: --json and --html name the same file: %s\n", command, json);
    return false;
}

bool options_flush(const char *command)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return true;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", command,
            strerror(errno));
    return false;
}

bool options_parse_count(const char *text, unsigned most, unsigned *number)
{
    uint64_t value;

    if (!number_parse(text, most, &value) || value == 0)
        return false;
    *number = (unsigned)value;
    return true;
}

/* Digits, and perhaps a point among them. */
static bool parse_seconds(const char *text, double *seconds)
{
    if (*text < '0' || *text > '9' || text[strspn(text, "0123456789.")] != 0)
        return false;
    char *end;

    *seconds = strtod(text, &end);
    return *end == 0;
}

static bool parse_number(const char *text, uint64_t *number)
{
    return number_parse(text, UINT64_MAX, number);
}

bool options_parse(struct explore_options *explore, int option, const char *text)
{
    switch (option) {
    case OPTION_STRATEGY:
        explore->strategy = strategy_find(text);
        return explore->strategy != NULL;
    case OPTION_BUDGET:
        return parse_number(text, &explore->budget) && explore->budget > 0;
    case OPTION_NESTED:
        return parse_number(text, &explore->nested_budget);
    case OPTION_NO_KILL:
        explore->kill = false;
        return true;
    case OPTION_SECONDS:
        return parse_seconds(text, &explore->seconds);
    case OPTION_SEED:
        return parse_number(text, &explore->seed) && explore->seed > 0;
    default:
        return false;
    }
}
