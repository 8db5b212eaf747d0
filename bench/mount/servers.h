/* SPDX-License-Identifier: BSD-3-Clause */
/* servers.h - both filesystems, mounted beside each other, each served by a process. */
#ifndef BENCH_SERVERS_H
#define BENCH_SERVERS_H

#include <stdint.h>

enum system { EMPTY, PMFS, SYSTEMS };

/* Makes a pool of `pool_size` bytes and mounts both, in the scratch directory. */
int servers_start(uint64_t pool_size);

/* Unmounts both and waits until they have ended; so does the end of the program. */
void servers_stop(void);

const char *servers_mountpoint(enum system system);

/* How many requests of each kind (empty.h) the empty filesystem was sent. */
const uint64_t *servers_asked(void);

#endif
