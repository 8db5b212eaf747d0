/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * table.h - results: rows of texts and numbers; printed as a table or as Markdown, kept
 * as JSON (an array with one object per row, every column a key, null where there is no
 * value).
 */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_TEXT_SIZE 64
#define TABLE_COLUMNS_MAX 32

struct column {
    const char *key;     /* in JSON */
    const char *heading; /* in print */
    /* The latter two: files that are older than the column have no such key, and no
     * column is printed for it. */
    enum { COLUMN_TEXT, COLUMN_NUMBER, COLUMN_LATER_TEXT, COLUMN_LATER_NUMBER } type;
    int decimals; /* shown in print, unless the number is whole */
};

struct cell {
    char text[TABLE_TEXT_SIZE]; /* "": none */
    double number;              /* NAN: none */
};

struct table {
    const struct column *columns;
    size_t column_count;
    struct cell *cells; /* [row_capacity][column_count] */
    size_t row_count;
    size_t row_capacity;
};

enum table_format { TABLE_PLAIN, TABLE_MARKDOWN };

void table_init(struct table *table, const struct column *columns, size_t column_count);
void table_finish(struct table *table);

/* A new last row without values. NULL without memory. Valid until the next call. */
struct cell *table_add(struct table *table);

const struct cell *table_row(const struct table *table, size_t row);

void cell_set_text(struct cell *cell, const char *text);

void table_print(const struct table *table, enum table_format format, FILE *out);

/* 0 or a negative errno. */
int table_write_json(const struct table *table, FILE *out);

/*
 * Appends the rows of a JSON file. -EBADMSG if it is no array of objects with a value
 * or null for each column, but those of a later type, whose key may be missing; `table` then keeps the rows before the bad one.
 */
int table_read_json(struct table *table, FILE *in);

/* What a negative errno says, those of table_read_json() among them. */
const char *table_strerror(int rc);

#endif
