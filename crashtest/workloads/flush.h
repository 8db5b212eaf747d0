/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flush.h - is a flush that was left out missed? By the model alone: what a trace says
 * of the lines.
 */
#ifndef CRASHTEST_FLUSH_H
#define CRASHTEST_FLUSH_H

#include "crashtest/trace.h"
#include "crashtest/workloads/door.h"

/*
 * False if nothing of these lines had changed since they were flushed last, or they are
 * flushed once more before the next fence. Of a trace of one thread.
 */
bool flush_is_missed(const struct trace *trace, const struct door_left_out *left_out);

#endif
