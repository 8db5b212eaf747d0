/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_run.h - a sequence of operations on an image of pmfs, of which the last one is
 * recorded to be crashed, and the judge of what a crash of it leaves.
 */
#ifndef CRASHTEST_PMFS_RUN_H
#define CRASHTEST_PMFS_RUN_H

#include "crashtest/workloads/door.h"
#include "crashtest/workloads/pmfs_ops.h"
#include "crashtest/workloads/workload.h"

#define PMFS_OPS_MAX 16
#define PMFS_NAME_SIZE 640

/*
 * pmfs/IMAGE/OP+OP+OP. In the last operation, at pause number `pause` of it, `inside`
 * may run as another thread would: pmfs/IMAGE/OP+OP@PAUSE=INSIDE.
 */
struct pmfs_script {
    const struct scene_image *image;
    const struct op *ops[PMFS_OPS_MAX];
    size_t op_count;
    const struct op *inside; /* or NULL */
    uint32_t pause;
};

void pmfs_script_print(const struct pmfs_script *script, char name[PMFS_NAME_SIZE]);
/* False if it is none. `name` may go on behind a ':'. */
bool pmfs_script_parse(struct pmfs_script *script, const char *name);

/*
 * Runs a script and explores its crashes. SUITE_NOT_TESTED: it fails without any crash,
 * and `error`, of WORKLOAD_ERROR_SIZE bytes, says how. A script whose last operation
 * has fewer pauses is passed.
 */
enum suite_result pmfs_test(const struct pmfs_script *script, struct suite *suite,
                            char *error);

/* Runs it with that fault, and explores power failures. Is anything wrong? */
bool pmfs_is_wrong(const struct pmfs_script *script, struct door_fault fault);
/* Only runs it. */
void pmfs_look(const struct pmfs_script *script);

/* The same of the one state that `id` names. */
enum suite_result pmfs_replay(const char *id, struct suite *suite, char *error);

#endif
