/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * scheme.h - ways to keep a file on persistent memory consistent, all behind the same
 * calls, so that they can be compared: only the scheme differs.
 *
 * A volume is one file in tmpfs or on DAX that holds a few files of bytes (tree.h). A
 * write changes any range of one of them, and makes it longer where it reaches past its
 * end. Each file belongs to one thread at a time.
 */
#ifndef BENCH_SCHEME_H
#define BENCH_SCHEME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/minl2r.h"

#define VOLUME_FILES_MAX 8

/* What one thread writes, from what another does: processors fetch lines by twos. */
#define APART 128

/* Zeros that are, for free(). NULL: no memory. */
void *memory_apart(size_t size);

struct file;
struct volume;

/* What is written besides what minl2r_stats counts. */
struct scheme_counts {
    struct minl2r_stats stats;
    uint64_t copied_bytes; /* of old content, to where the new one is */
    uint64_t checkpoints;  /* of logs that were full */
};

struct scheme {
    const char *name;
    const char *what;
    bool is_atomic;  /* after a crash a write has happened as a whole, or not at all */
    bool is_durable; /* it has when it has returned; else only those before it have */
    bool has_log;    /* of volume_options.log_size; the others have none */
    bool counts_copies; /* scheme_counts.copied_bytes is known */
    bool is_calibrated; /* what it does depends on the times of the medium */

    /* Makes an empty volume in its mapping, or in a pool that it creates. */
    int (*create)(struct volume *volume, const char *path);

    /* Recovers, and makes twins in DRAM. On error there is nothing to close. */
    int (*open)(struct volume *volume, const char *path);
    void (*close)(struct volume *volume);

    /* -ENOSPC, and nothing has changed. */
    int (*write)(struct file *file, uint64_t offset, const void *src, uint64_t size);

    /* Bytes past the end are not there: `*done` of them are. */
    int (*read)(struct file *file, uint64_t offset, void *dst, uint64_t size,
                uint64_t *done);

    /* The file has no bytes any more. Neither atomic nor counted. */
    int (*clear)(struct file *file);

    /* Stores at home what calls have left in a log that grows. NULL: there is none. */
    int (*checkpoint)(struct file *file);

    uint64_t (*size)(const struct file *file);
    /* A sum over all files since the volume was opened. */
    void (*count)(const struct volume *volume, struct scheme_counts *counts);

    /* 0, or -EUCLEAN: blocks that are no blocks, or that have two places. */
    int (*check)(struct volume *volume);
};

extern const struct scheme *const schemes[];
extern const size_t scheme_count;
const struct scheme *scheme_find(const char *name); /* or NULL */

struct volume_options {
    uint32_t block_size;
    uint32_t file_count;
    uint64_t file_size; /* bytes that each file has room for, even while one write
                           replaces `write_size` of them */
    uint64_t write_size;
    uint64_t log_size; /* of each file, for schemes that have a redo log */
};

struct volume {
    const struct scheme *scheme;
    struct volume_options options;
    struct minl2r_pool *pool;  /* minl2r */
    uint32_t threshold;        /* of its pointer logging, bytes */
    struct tree_volume *trees; /* all others */
    struct file *files[VOLUME_FILES_MAX];
};

/*
 * Makes a volume, in a file that is not there yet or has zeros only, and opens it.
 * Opening needs the same options. 0 or a negative errno.
 */
int volume_create(struct volume *volume, const char *path, const struct scheme *scheme,
                  const struct volume_options *options);
int volume_open(struct volume *volume, const char *path, const struct scheme *scheme,
                const struct volume_options *options);
void volume_close(struct volume *volume);

/* Reads a byte of each page: the first touch of one costs more than many writes. */
void volume_touch(const struct volume *volume);

#endif
