/* SPDX-License-Identifier: BSD-3-Clause */
/* console.h - what the command line tools owe their standard streams. */
#ifndef MINL2R_CONSOLE_H
#define MINL2R_CONSOLE_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "libminl2r/tools/utf8.h"

/*
 * Call it first. A standard stream that the caller has closed becomes one that fails:
 * else the pool would get its number, and then its messages. A file that may not grow
 * so large (RLIMIT_FSIZE) is an error, too, not a signal.
 */
static inline void console_guard(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        int wrong_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;

        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", wrong_way) != fd)
            _exit(127);
    }
    signal(SIGXFSZ, SIG_IGN);
}

/* Call it last. The exit status: `failed` where `status` is 0, but the output is lost.
 */
static inline int console_finish(const char *who, int status, int failed)
{
    bool lost = ferror(stdout);

    errno = 0;
    lost = fclose(stdout) != 0 || lost;
    if (!lost)
        return status;
    fprintf(stderr, "%s: cannot write to standard output: %s\n", who,
            strerror(errno != 0 ? errno : EIO));
    return status != 0 ? status : failed;
}

/* Is `path` a word of `message`? */
static inline bool console_names(const char *message, const char *path)
{
    size_t length = strlen(path);
    const char *at = message;

    if (length == 0)
        return false;
    while ((at = strstr(at, path)) != NULL) {
        char after = at[length];

        if ((at == message || at[-1] == ' ') &&
            (after == '\0' || after == ' ' || after == ':' || after == ','))
            return true;
        at++;
    }
    return false;
}

/* "minl2r info: PATH: MESSAGE", with the path once. */
static inline void console_fail(const char *who, const char *path, const char *message)
{
    path = *path ? path : "''";
    fprintf(stderr, "%s: ", who);
    if (!console_names(message, path)) {
        utf8_print(stderr, path);
        fputs(": ", stderr);
    }
    utf8_print(stderr, message);
    fputc('\n', stderr);
}

#endif
