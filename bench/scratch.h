/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scratch.h - files that are gone when the program is: at exit, and on SIGINT, SIGTERM,
 * SIGHUP or SIGPIPE. They lie in one directory of their own.
 */
#ifndef BENCH_SCRATCH_H
#define BENCH_SCRATCH_H

/* Makes the directory, inside `parent`. Once per program. */
int scratch_init(const char *parent);

/*
 * The path of a file `name` in the directory; the caller creates it. The same for the
 * same name. NULL if there are too many.
 */
const char *scratch_path(const char *name);

/* As scratch_path(), for a file anywhere. `path` must stay valid. */
const char *scratch_adopt(const char *path);

/* Removes the file now; who has it open keeps it. */
void scratch_unlink(const char *path);

/*
 * Before the files go, `end` is called, in a signal handler, too: it may do only what
 * POSIX allows there. For what holds files or lies in the directory.
 */
void scratch_before(void (*end)(void));

/* Forgets the file: it stays. */
void scratch_keep(const char *path);

#endif
