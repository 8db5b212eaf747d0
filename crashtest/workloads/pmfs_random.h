/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_random.h - random sequences of operations, guided by coverage: one that took a
 * new way through the code is changed further.
 */
#ifndef CRASHTEST_PMFS_RANDOM_H
#define CRASHTEST_PMFS_RANDOM_H

#include "crashtest/suite.h"

/* In how many parts `sequences` are tried: each depends on seed and number only. */
size_t random_campaigns(uint64_t sequences);
/* `sequences`: in all campaigns. `error` is as of pmfs_test(). */
enum suite_result random_campaign(uint64_t sequences, uint64_t seed, size_t number,
                                  struct suite *suite, char *error);

#endif
