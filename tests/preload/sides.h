/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sides.h - calls of libpmfs-preload.so on a directory of tmpfs and on one of a pool: results
 * and errno must be the same. Each case writes down what it sees, and the two logs are
 * compared. Runs with the library preloaded.
 */
#ifndef PRELOAD_SIDES_H
#define PRELOAD_SIDES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct side {
    char dir[128]; /* of the case, and the current directory */
    char *log;
    size_t size;
    FILE *out; /* into `log` */
};

extern struct side *now; /* the side that a case runs on */

/* A path in the directory of the case. */
const char *path(const char *name);

/* Writes a line down. */
__attribute__((format(printf, 1, 2))) void note(const char *format, ...);

/* Writes down the call, its result and its errno. */
#define TRY(call) (errno = 0, tried = (long)(call), note_result(#call, tried, errno))
/* The same of a descriptor or a pointer, whose value may differ. */
#define TRY_FD(call) (errno = 0, note_fd(#call, (call)))
#define TRY_POINTER(call) (errno = 0, note_pointer(#call, (call)))

extern long tried;

long note_result(const char *call, long rc, int errnum);
int note_fd(const char *call, int fd);
void *note_pointer(const char *call, const void *pointer);

/* A path without the directory, which differs. */
void note_path(const char *what, const char *text);

void note_stat(const char *what, const struct stat *stat);
void note_name(const char *name);
void note_content(const char *name);

/* Frees it, too. */
void note_list(struct dirent **list, int count);

/* A file with that text. */
void put(const char *name, const char *text);

/* Runs a case on both sides and compares. */
void compare(void (*run)(void), const char *name);

#define TEST_FUNCTION(name)                                                            \
    static void name##_as_on_tmpfs(void **state)                                       \
    {                                                                                  \
        (void)state;                                                                   \
        compare(name, #name);                                                          \
    }
#define TEST_ENTRY(name) cmocka_unit_test(name##_as_on_tmpfs),

#endif
