/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/table.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define JSON_SIZE_MAX ((size_t)64 << 20)

static bool is_text(const struct column *column)
{
    return column->type == COLUMN_TEXT || column->type == COLUMN_LATER_TEXT;
}

static bool is_later(const struct column *column)
{
    return column->type == COLUMN_LATER_TEXT || column->type == COLUMN_LATER_NUMBER;
}

void table_init(struct table *table, const struct column *columns, size_t column_count)
{
    assert(column_count <= TABLE_COLUMNS_MAX);
    *table = (struct table){.columns = columns, .column_count = column_count};
}

void table_finish(struct table *table)
{
    free(table->cells);
    table->cells = NULL;
    table->row_count = table->row_capacity = 0;
}

static int grow(struct table *table)
{
    size_t capacity = table->row_capacity ? 2 * table->row_capacity : 64;
    struct cell *cells =
        reallocarray(table->cells, capacity * table->column_count, sizeof(*cells));

    if (!cells)
        return -ENOMEM;
    table->cells = cells;
    table->row_capacity = capacity;
    return 0;
}

struct cell *table_add(struct table *table)
{
    if (table->row_count == table->row_capacity && grow(table) < 0)
        return NULL;
    struct cell *row = &table->cells[table->row_count++ * table->column_count];

    for (size_t i = 0; i < table->column_count; i++)
        row[i] = (struct cell){.number = NAN};
    return row;
}

const struct cell *table_row(const struct table *table, size_t row)
{
    return &table->cells[row * table->column_count];
}

void cell_set_text(struct cell *cell, const char *text)
{
    snprintf(cell->text, sizeof(cell->text), "%s", text);
}

/* ---- Print ----------------------------------------------------------------------- */

static void format_cell(char *text, size_t size, const struct column *column,
                        const struct cell *cell)
{
    if (is_text(column))
        snprintf(text, size, "%s", cell->text[0] ? cell->text : "-");
    else if (isnan(cell->number))
        snprintf(text, size, "-");
    else if (cell->number == floor(cell->number))
        snprintf(text, size, "%.0f", cell->number);
    else
        snprintf(text, size, "%.*f", column->decimals, cell->number);
}

static int column_width(const struct table *table, size_t column)
{
    size_t width = strlen(table->columns[column].heading);
    char text[TABLE_TEXT_SIZE];

    for (size_t row = 0; row < table->row_count; row++) {
        format_cell(text, sizeof(text), &table->columns[column],
                    &table_row(table, row)[column]);
        if (strlen(text) > width)
            width = strlen(text);
    }
    return (int)width;
}

static bool has_values(const struct table *table, size_t column)
{
    for (size_t row = 0; row < table->row_count; row++) {
        const struct cell *cell = &table_row(table, row)[column];

        if (is_text(&table->columns[column]) ? cell->text[0] != 0
                                             : !isnan(cell->number))
            return true;
    }
    return false;
}

/* Later columns at the end are left out as long as no row has them. */
static size_t shown_count(const struct table *table)
{
    size_t count = table->column_count;

    while (count > 0 && is_later(&table->columns[count - 1]) &&
           !has_values(table, count - 1))
        count--;
    return count;
}

/* Texts to the left, numbers to the right; no blanks at the end of a line. */
static void print_cell(const struct table *table, size_t column, const char *text,
                       int width, enum table_format format, FILE *out)
{
    bool is_left = is_text(&table->columns[column]);
    bool is_last = column + 1 == shown_count(table);

    if (format == TABLE_MARKDOWN)
        fprintf(out, "| %s ", text);
    else if (is_last && is_left)
        fputs(text, out);
    else
        fprintf(out, "%*s%s", is_left ? -width : width, text, is_last ? "" : "  ");
}

static void end_line(enum table_format format, FILE *out)
{
    fputs(format == TABLE_MARKDOWN ? "|\n" : "\n", out);
}

static void print_head(const struct table *table, const int *widths,
                       enum table_format format, FILE *out)
{
    for (size_t i = 0; i < shown_count(table); i++)
        print_cell(table, i, table->columns[i].heading, widths[i], format, out);
    end_line(format, out);
    if (format != TABLE_MARKDOWN)
        return;
    for (size_t i = 0; i < shown_count(table); i++)
        fputs(is_text(&table->columns[i]) ? "|---" : "|---:", out);
    end_line(format, out);
}

static void print_row(const struct table *table, size_t row, const int *widths,
                      enum table_format format, FILE *out)
{
    char text[TABLE_TEXT_SIZE];

    for (size_t i = 0; i < shown_count(table); i++) {
        format_cell(text, sizeof(text), &table->columns[i], &table_row(table, row)[i]);
        print_cell(table, i, text, widths[i], format, out);
    }
    end_line(format, out);
}

void table_print(const struct table *table, enum table_format format, FILE *out)
{
    int widths[TABLE_COLUMNS_MAX];

    for (size_t i = 0; i < shown_count(table); i++)
        widths[i] = column_width(table, i);
    print_head(table, widths, format, out);
    for (size_t row = 0; row < table->row_count; row++)
        print_row(table, row, widths, format, out);
}

/* ---- JSON ------------------------------------------------------------------------ */

/* To thousandths, or to what is shown if that is more. */
static double rounded(const struct cell *cell, const struct column *column)
{
    double scale = pow(10, column->decimals > 3 ? column->decimals : 3);

    return round(cell->number * scale) / scale;
}

static bool add_value(cJSON *object, const struct column *column,
                      const struct cell *cell)
{
    if (is_text(column) && cell->text[0])
        return cJSON_AddStringToObject(object, column->key, cell->text);
    if (!is_text(column) && !isnan(cell->number))
        return cJSON_AddNumberToObject(object, column->key, rounded(cell, column));
    return cJSON_AddNullToObject(object, column->key);
}

/* The caller frees the text with cJSON_free(). NULL without memory. */
static char *row_to_json(const struct table *table, size_t row)
{
    cJSON *object = cJSON_CreateObject();
    char *text = NULL;
    bool ok = object != NULL;

    for (size_t i = 0; ok && i < table->column_count; i++)
        ok = add_value(object, &table->columns[i], &table_row(table, row)[i]);
    if (ok)
        text = cJSON_PrintUnformatted(object);
    cJSON_Delete(object);
    return text;
}

int table_write_json(const struct table *table, FILE *out)
{
    fputs("[\n", out);
    for (size_t row = 0; row < table->row_count; row++) {
        char *text = row_to_json(table, row);

        if (!text)
            return -ENOMEM;
        fprintf(out, "%s%s\n", text, row + 1 < table->row_count ? "," : "");
        cJSON_free(text);
    }
    fputs("]\n", out);
    return fflush(out) == 0 ? 0 : -errno;
}

static char *read_all(FILE *in)
{
    size_t capacity = 1 << 16;
    size_t size = 0;
    char *text = malloc(capacity);

    while (text && capacity <= JSON_SIZE_MAX) {
        size += fread(text + size, 1, capacity - size - 1, in);
        if (size < capacity - 1) {
            text[size] = '\0';
            return text;
        }
        capacity *= 2;
        char *larger = realloc(text, capacity);

        if (!larger)
            break;
        text = larger;
    }
    free(text);
    return NULL;
}

static int read_value(const cJSON *value, const struct column *column,
                      struct cell *cell)
{
    if (is_text(column) && cJSON_IsString(value))
        cell_set_text(cell, value->valuestring);
    else if (!is_text(column) && cJSON_IsNumber(value))
        cell->number = value->valuedouble;
    else if (!cJSON_IsNull(value))
        return -EBADMSG;
    return 0;
}

static int read_row(struct table *table, const cJSON *object)
{
    struct cell *row = table_add(table);

    if (!row)
        return -ENOMEM;
    for (size_t i = 0; i < table->column_count; i++) {
        const struct column *column = &table->columns[i];
        const cJSON *value = cJSON_GetObjectItemCaseSensitive(object, column->key);

        if (!value && is_later(column))
            continue;
        int rc = read_value(value, column, &row[i]);

        if (rc < 0) {
            table->row_count--;
            return rc;
        }
    }
    return 0;
}

int table_read_json(struct table *table, FILE *in)
{
    char *text = read_all(in);
    cJSON *array = text ? cJSON_Parse(text) : NULL;
    int rc = !text ? -ENOMEM : cJSON_IsArray(array) ? 0 : -EBADMSG;

    for (const cJSON *object = rc == 0 ? array->child : NULL; object && rc == 0;
         object = object->next)
        rc = read_row(table, object);
    cJSON_Delete(array);
    free(text);
    return rc;
}

const char *table_strerror(int rc)
{
    return rc == -EBADMSG ? "this is no JSON of such results" : strerror(-rc);
}
