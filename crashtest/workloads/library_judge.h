/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * library_judge.h - the oracles of the library. Each state is recovered, and then
 *
 *   recovery      succeeds
 *   old or new    shows an image that may be seen: see library_run.h
 *   generations   leaves no generation that was tried to come again (I4)
 *   reservations  leaves no block busy that is not allocated
 *
 * Of some states, and of all that are few, these are asked, too:
 *
 *   check         finds nothing, before recovery and after it
 *   recover twice undoes nothing, and changes nothing
 *   use           the pool can be used
 *   again         a transaction after recovery is done, and survives a power failure
 *
 * What recovery showed has to stay if the power fails again after it returned.
 */
#ifndef LIBRARY_JUDGE_H
#define LIBRARY_JUDGE_H

#include "crashtest/explore.h"
#include "crashtest/workloads/door.h"
#include "libminl2r/pm.h"

struct library_judge {
    const struct subject *subject;
    struct pm pm;        /* the image */
    unsigned thorough;   /* one state of so many gets every oracle; 0: only rare ones */
    struct trace *after; /* of what comes after recovery; made by the first state */
    struct door_fault fault; /* of each recovery, besides what the run has */
    uint32_t shown;          /* the set of operations that the run's recovery showed */
};

/* Of what library_run() ran last. Once for each run. */
void library_judge_init(struct library_judge *judge, const struct subject *subject);

/* `arg` is a struct library_judge. */
judge_fn library_judge;

#endif
