/* SPDX-License-Identifier: BSD-3-Clause */
/* recovery.h - undo unfinished generations; idempotent. */
#ifndef MINL2R_RECOVERY_H
#define MINL2R_RECOVERY_H

#include <stdint.h>

#include "libminl2r/pool.h"

/*
 * Undoes what a crash left unfinished in an attached pool and settles every lane. Fills
 * pool->recovery. Validates everything before its first store. -EUCLEAN, -ENOMEM, -EIO.
 */
int recovery_run(struct minl2r_pool *pool);

/*
 * Undoes one generation whose newest batch is `last`, newest record first, and flushes
 * all that it decided on; the caller fences, then settles. Needs no memory but
 * `scratch`, of PM_BATCH_SIZE_MAX bytes. Adds to `done`.
 */
void recovery_undo(struct minl2r_pool *pool, uint64_t last, uint8_t *scratch,
                   struct pm_phase *phase, struct minl2r_recovery *done);

#endif
