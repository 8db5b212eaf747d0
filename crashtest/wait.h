/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * wait.h - children that run the program: they end with who forked them, who waits, and
 * notices that one will not end: that a thread which is to go on waits for something
 * that nobody can schedule.
 */
#ifndef CRASHTEST_WAIT_H
#define CRASHTEST_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* How a process ended, by its status: a clause. */
void wait_describe(int status, char *text, size_t size);

/* fork(); the child is killed when the thread that called this ends. */
pid_t fork_child(void);

/*
 * False: it was stuck, and was killed; `text` says in what, as the end of a sentence
 * that begins with what was called.
 */
bool wait_for_child(pid_t child, int *status, char *text, size_t size);

#endif
