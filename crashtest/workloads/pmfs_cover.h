/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_cover.h - which ways through the code runs and recoveries have taken: pairs of
 * stores that follow each other, by their places in the code, and whole recoveries.
 */
#ifndef CRASHTEST_PMFS_COVER_H
#define CRASHTEST_PMFS_COVER_H

#include <stdint.h>

#include "crashtest/trace.h"

/* From now on nothing was seen. Until the first call nothing is counted. */
void cover_begin(void);
void cover_run(const struct trace *trace);
void cover_recovery(const struct trace *trace, uint64_t outcome);
/* How many different ways were seen. */
uint64_t cover_count(void);

#endif
