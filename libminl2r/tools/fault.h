/* SPDX-License-Identifier: BSD-3-Clause */
/* fault.h - for our own programs: what a pool does that ends, or fails, under them. */
#ifndef MINL2R_FAULT_H
#define MINL2R_FAULT_H

/*
 * From now on a SIGBUS ends the process with `exit_status`, after a line on stderr that
 * begins with `who`, which has to live on, and names the file and the offset. A program
 * that has handlers of its own need not: the library installs none.
 */
void fault_explain(const char *who, int exit_status);

/* Such an end removes this file, too; the path has to live on. */
void fault_remove(const char *path);

/* The line goes to the system log, too: stderr is nobody's any more. */
void fault_tell_syslog(void);

#endif
