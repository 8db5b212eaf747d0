/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * empty.h - a filesystem that keeps nothing and answers at once: what the kernel and
 * libfuse cost, whatever is behind them.
 */
#ifndef BENCH_EMPTY_H
#define BENCH_EMPTY_H

#include <stdint.h>

/* The one file that it has; it takes any other that is made. */
#define EMPTY_FILE "file"
#define EMPTY_FILE_SIZE (64 << 20)

/* What the kernel asks for. */
enum request {
    REQUEST_LOOKUP,
    REQUEST_FORGET,
    REQUEST_GETATTR,
    REQUEST_SETATTR,
    REQUEST_MKNOD,
    REQUEST_MKDIR,
    REQUEST_SYMLINK,
    REQUEST_LINK,
    REQUEST_UNLINK,
    REQUEST_RMDIR,
    REQUEST_RENAME,
    REQUEST_READ,
    REQUEST_WRITE,
    REQUEST_SETXATTR,
    REQUEST_GETXATTR,
    REQUEST_FALLOCATE,
    REQUESTS
};
extern const char *const request_names[REQUESTS];

/*
 * Mounts it on `mountpoint` and serves it until unmounted, or told to end by a signal.
 * It agrees with the kernel on what pmfs does, and has as many threads. `asked`, [REQUESTS]
 * in memory that the caller shares, counts them, also those without an answer (FORGET).
 */
int empty_serve(const char *mountpoint, uint64_t *asked);

#endif
