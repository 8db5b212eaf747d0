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
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/harness.h"
#include "bench/schemes/scheme.h"
#include "bench/scratch.h"
#include "bench/table.h"

enum { EXIT_USAGE = 2 };

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

static int count_all(struct table *results)
{
    int rc = 0;

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

/* ---- Commands -------------------------------------------------------------------- */

static int fail(const char *what, int rc)
{
    fprintf(stderr, "bench-log: %s: %s\n", what, table_strerror(rc));
    return EXIT_FAILURE;
}

static int write_json(const char *path, const struct table *results)
{
    FILE *file = fopen(path, "w");
    int rc = file ? table_write_json(results, file) : -errno;

    if (file && fclose(file) != 0 && rc == 0)
        rc = -errno;
    return rc;
}

static int run(const char *directory, const char *json_path)
{
    struct table results;
    int rc = scratch_init(directory);

    if (rc < 0)
        return fail(directory, rc);
    table_init(&results, columns, COL_FIRST + COUNTED_COUNT);
    rc = count_all(&results);
    if (rc == 0)
        table_print(&results, TABLE_PLAIN, stdout);
    if (rc == 0 && json_path)
        rc = write_json(json_path, &results);
    table_finish(&results);
    return rc < 0 ? fail("counting", rc) : EXIT_SUCCESS;
}

static int render(const char *path)
{
    struct table results;
    FILE *in = fopen(path, "r");

    if (!in)
        return fail(path, -errno);
    table_init(&results, columns, COL_FIRST + COUNTED_COUNT);
    int rc = table_read_json(&results, in);

    if (rc == 0)
        table_print(&results, TABLE_MARKDOWN, stdout);
    table_finish(&results);
    fclose(in);
    return rc < 0 ? fail(path, rc) : EXIT_SUCCESS;
}

static void print_usage(FILE *out)
{
    fputs(
        "Usage: bench-log [OPTION ...]\n"
        "\n"
        "Counts what schemes log and write per overwrite, by its size, from the start "
        "of a\n"
        "block on. Measures no time.\n"
        "\n"
        "  --dir DIR       where volumes are made: tmpfs or DAX (default /dev/shm)\n"
        "  --json FILE     also write the results there\n"
        "  --render FILE   count nothing: print such results as Markdown\n"
        "  --help          this text\n"
        "\n"
        "Exit status: 0, 1 if it could not run, 2 for a wrong usage.\n",
        out);
}

int main(int argc, char **argv)
{
    static const struct option long_options[] = {
        {"dir", required_argument, NULL, 'd'},
        {"json", required_argument, NULL, 'j'},
        {"render", required_argument, NULL, 'm'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char *directory = "/dev/shm", *json_path = NULL, *render_path = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == 'd')
            directory = optarg;
        else if (option == 'j')
            json_path = optarg;
        else if (option == 'm')
            render_path = optarg;
        else if (option == 'h') {
            print_usage(stdout);
            return EXIT_SUCCESS;
        } else {
            print_usage(stderr);
            return EXIT_USAGE;
        }
    }
    if (optind != argc) {
        bench_say_wrong(argv, option);
        print_usage(stderr);
        return EXIT_USAGE;
    }
    return render_path ? render(render_path) : run(directory, json_path);
}
