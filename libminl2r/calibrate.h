/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * calibrate.h - from how many changed bytes of a block on pointer logging is the
 * cheaper one, found by trying both: MINL2R_POINTER_AUTO.
 */
#ifndef MINL2R_CALIBRATE_H
#define MINL2R_CALIBRATE_H

#include <stdint.h>

#include "include/minl2r.h"

#define CALIBRATE_POINTS 16

/* Room that any block size needs to be tried. */
#define CALIBRATE_POOL_SIZE MINL2R_POOL_SIZE_MIN

/* What a commit takes that changes `size` bytes of one block. */
struct calibrate_point {
    uint32_t size;
    double data_ns;
    double pointer_ns;
};

/*
 * Measures 1/16, 2/16, ... of a block, in a pool that holds nothing else and is of no
 * use afterwards. Tries each once, and again as long as it has not taken 40 ms.
 */
int calibrate_measure(struct minl2r_pool *pool, struct calibrate_point *points);

/*
 * The threshold with which changes of all these sizes, each as likely as the others,
 * take the least time: the size where the two curves cross, if they cross once. As
 * minl2r_options.pointer_threshold. `count` is at least 1, sizes ascend.
 */
uint32_t calibrate_choose(const struct calibrate_point *points, uint32_t count);

#endif
