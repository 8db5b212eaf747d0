/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench-log - what schemes log and write, by the size of a write in small steps: counts,
 * which are the same on any machine.
 *
 * A write overwrites part of a file, from the start of a block on. Of shadow paging,
 * which has no log, both is shown that could be called one: the blocks that are written
 * anew, and the bytes of old content among them.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/command.h"
#include "bench/schemes/scheme.h"
#include "bench/scratch.h"
#include "bench/table.h"

#define BLOCK_SIZE ((uint64_t)4096)
#define SIZE_STEP 256
#define SIZE_MAX_WRITE (3 * BLOCK_SIZE)
#define WRITES 16 /* of each size, on blocks of their own */
#define FILE_SIZE ((uint64_t)WRITES * SIZE_MAX_WRITE)

/* ---- Results --------------------------------------------------------------------- */

enum figure { LOG_PAYLOAD, LOG_WRITTEN, COPIED, PM_WRITTEN };

enum { COL_SIZE, COL_FIRST };

/* A column per scheme and figure. */
static const struct counted {
    const char *scheme;
    enum figure figure;
} counted[] = {
    {"minl2r", LOG_PAYLOAD},       {"minl2r", LOG_WRITTEN},
    {"bpfs-durable", LOG_PAYLOAD}, {"bpfs-durable", COPIED},
    {"sjfs-eager", LOG_PAYLOAD},   {"journal", LOG_PAYLOAD},
    {"minl2r", PM_WRITTEN},        {"bpfs-durable", PM_WRITTEN},
    {"sjfs-eager", PM_WRITTEN},    {"journal", PM_WRITTEN},
};
#define COUNTED_COUNT (sizeof(counted) / sizeof(counted[0]))

static const struct column columns[COL_FIRST + COUNTED_COUNT] = {
    {"record_size", "size", COLUMN_NUMBER, 0},
    {"minl2r_payload", "minl2r: saved", COLUMN_NUMBER, 0},
    {"minl2r_log", "log", COLUMN_NUMBER, 0},
    {"bpfs_shadow", "bpfs: shadow blocks", COLUMN_NUMBER, 0},
    {"bpfs_copied", "copied", COLUMN_NUMBER, 0},
    {"sjfs_payload", "sjfs-eager: logged", COLUMN_NUMBER, 0},
    {"journal_payload", "journal: logged", COLUMN_NUMBER, 0},
    {"minl2r_pm", "minl2r: in all", COLUMN_NUMBER, 0},
    {"bpfs_pm", "bpfs", COLUMN_NUMBER, 0},
    {"sjfs_pm", "sjfs-eager", COLUMN_NUMBER, 0},
    {"journal_pm", "journal", COLUMN_NUMBER, 0},
};

static uint64_t read_figure(const struct scheme_counts *counts, enum figure figure)
{
    switch (figure) {
    case LOG_PAYLOAD:
        return counts->stats.log_payload_bytes;
    case LOG_WRITTEN:
        return counts->stats.log_bytes;
    case COPIED:
        return counts->copied_bytes;
    case PM_WRITTEN:
        break;
    }
    return counts->stats.pm_bytes;
}

/* ---- Counting -------------------------------------------------------------------- */

static uint8_t bytes[FILE_SIZE];

/* Bytes that are not there yet. */
static void renew_bytes(void)
{
    for (uint64_t i = 0; i < FILE_SIZE; i++)
        bytes[i] = (uint8_t)(bytes[i] + 1);
}

static int write_all(struct volume *volume, uint64_t size)
{
    int rc = 0;

    renew_bytes();
    for (uint64_t i = 0; rc == 0 && i < WRITES; i++)
        rc = volume->scheme->write(volume->files[0], i * SIZE_MAX_WRITE, bytes, size);
    return rc;
}

/* Enters the figures of one scheme into the rows, which are there already. */
static int count_sizes(struct volume *volume, struct table *results)
{
    for (size_t i = 0; i < results->row_count; i++) {
        struct cell *row = &results->cells[i * results->column_count];
        struct scheme_counts before, after;

        volume->scheme->count(volume, &before);
        int rc = write_all(volume, (uint64_t)row[COL_SIZE].number);

        if (rc < 0)
            return rc;
        volume->scheme->count(volume, &after);
        for (size_t c = 0; c < COUNTED_COUNT; c++)
            if (strcmp(counted[c].scheme, volume->scheme->name) == 0)
                row[COL_FIRST + c].number =
                    (double)(read_figure(&after, counted[c].figure) -
                             read_figure(&before, counted[c].figure)) /
                    WRITES;
    }
    return 0;
}

static int fill_file(struct volume *volume)
{
    return volume->scheme->write(volume->files[0], 0, bytes, FILE_SIZE);
}

static int count_scheme(const struct scheme *scheme, struct table *results)
{
    const struct volume_options options = {.block_size = (uint32_t)BLOCK_SIZE,
                                           .file_count = 1,
                                           .file_size = FILE_SIZE,
                                           .write_size = FILE_SIZE,
                                           .log_size = 4 * FILE_SIZE};
    const char *path = scratch_path(scheme->name);
    struct volume volume;
    int rc = volume_create(&volume, path, scheme, &options);

    scratch_unlink(path);
    if (rc < 0)
        return rc;
    rc = fill_file(&volume);
    if (rc == 0)
        rc = count_sizes(&volume, results);
    volume_close(&volume);
    return rc;
}

static bool is_counted(const struct scheme *scheme)
{
    for (size_t i = 0; i < COUNTED_COUNT; i++)
        if (strcmp(counted[i].scheme, scheme->name) == 0)
            return true;
    return false;
}

static int count_all(const void *options, struct table *results)
{
    int rc = 0;

    (void)options;
    for (uint64_t size = SIZE_STEP; size <= SIZE_MAX_WRITE; size += SIZE_STEP) {
        struct cell *row = table_add(results);

        if (!row)
            return -ENOMEM;
        row[COL_SIZE].number = (double)size;
    }
    for (size_t i = 0; rc == 0 && i < scheme_count; i++)
        if (is_counted(schemes[i]))
            rc = count_scheme(schemes[i], results);
    return rc;
}

/* ---- The command ----------------------------------------------------------------- */

static const struct bench_command command = {
    .name = "bench-log",
    .about = "Counts what schemes log and write per overwrite, by its size, from the "
             "start of a\n"
             "block on. Measures no time.",
    .room = "16 MiB",
    .columns = columns,
    .column_count = COL_FIRST + COUNTED_COUNT,
    .measure = count_all,
};

int main(int argc, char **argv)
{
    struct bench_options options = {0};

    return bench_main(&command, &options, argc, argv);
}
