/* SPDX-License-Identifier: BSD-3-Clause */
#include "libminl2r/tools/fault.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

static const char *name, *left_file;
static int status;
static bool tells_syslog, is_ending;

/* A line of /proc/self/maps: "START-END rwxp OFFSET MAJOR:MINOR INODE   PATH". */
struct mapping {
    unsigned long long start, end, offset;
    int path_at; /* in the line */
};

/* One line without its end, cut where it is longer. False: there are no more. */
static bool read_line(int fd, char *line, size_t size)
{
    size_t length = 0;
    char c;

    while (read(fd, &c, 1) == 1 && c != '\n') {
        if (length < size - 1)
            line[length++] = c;
    }
    line[length] = 0;
    return length > 0;
}

static bool parse(const char *line, struct mapping *mapping)
{
    mapping->path_at = 0;
    return sscanf(line, "%llx-%llx %*s %llx %*s %*s %n", &mapping->start, &mapping->end,
                  &mapping->offset, &mapping->path_at) == 3;
}

/* Who has mapped the pool need not be known here: the kernel tells. */
static bool find_file(uintptr_t address, char *line, size_t size, const char **path,
                      unsigned long long *offset)
{
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    bool found = false;

    while (fd >= 0 && !found && read_line(fd, line, size)) {
        struct mapping mapping;

        found = parse(line, &mapping) && address >= mapping.start &&
                address < mapping.end && line[mapping.path_at] == '/';
        *path = line + mapping.path_at;
        *offset = address - mapping.start + mapping.offset;
    }
    if (fd >= 0)
        close(fd);
    return found;
}

static const char *reason_of(const siginfo_t *info)
{
    if (info->si_code == BUS_MCEERR_AR || info->si_code == BUS_MCEERR_AO)
        return "the medium has failed";
    return "it was cut short while in use, or its file system has no room for it";
}

/*
 * The signal is of an access of ours to memory, where nothing of libc's is held, so
 * that formatting a line here is safe enough to die by.
 */
static void explain(int signal, siginfo_t *info, void *context)
{
    static char line[PATH_MAX + 256], text[PATH_MAX + 512];
    unsigned long long offset;
    const char *path;

    (void)signal;
    (void)context;
    while (__atomic_exchange_n(&is_ending, true, __ATOMIC_RELAXED))
        pause(); /* another thread tells, and ends all */
    if (find_file((uintptr_t)info->si_addr, line, sizeof(line), &path, &offset))
        snprintf(text, sizeof(text), "%s: %s: no memory at offset 0x%llx: %s\n", name,
                 path, offset, reason_of(info));
    else
        snprintf(text, sizeof(text), "%s: bus error at address %p\n", name,
                 info->si_addr);
    ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    (void)ignored;
    if (tells_syslog)
        syslog(LOG_ERR, "%s", text);
    if (left_file)
        unlink(left_file);
    _exit(status);
}

void fault_explain(const char *who, int exit_status)
{
    struct sigaction action = {.sa_sigaction = explain, .sa_flags = SA_SIGINFO};

    name = who;
    status = exit_status;
    sigaction(SIGBUS, &action, NULL);
}

void fault_remove(const char *path)
{
    left_file = path;
}

void fault_tell_syslog(void)
{
    tells_syslog = true;
}
