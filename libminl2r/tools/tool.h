/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tool.h - the command line tool `minl2r`: what its commands share.
 *
 * A command gathers what it has to say in one tree, which is printed as text or, with
 * --json, as it is.
 */
#ifndef MINL2R_TOOL_H
#define MINL2R_TOOL_H

#include <cjson/cJSON.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

#include "libminl2r/pool.h"

enum tool_exit {
    TOOL_OK = 0,
    TOOL_DAMAGED = 1, /* the pool is damaged or inconsistent */
    TOOL_USAGE = 2,
    TOOL_FAILED = 3, /* could not be opened or done */
};

struct command {
    const char *name;
    const char *summary;
    const char *help;             /* lines about the options */
    const struct option *options; /* its own; --json and --help are known to all */
    /* Takes an option's value; false after tool_bad_value(). NULL without options. */
    bool (*set)(int option, const char *value);
    /* Does it, and adds to `out`. */
    enum tool_exit (*run)(const char *path, cJSON *out);
};

extern const struct command command_check, command_create, command_dump, command_info,
    command_recover, command_stats;

/* What messages begin with: "minl2r", then "minl2r info". */
extern char tool_name[32];

/* ---- Values of options ----------------------------------------------------------- */

/* As size_parse() takes it. */
bool tool_parse_size(const char *option, const char *text, uint64_t *value);
/* The same, and not 0, which would mean the default. */
bool tool_parse_u32_size(const char *option, const char *text, uint32_t *value);
bool tool_parse_count(const char *option, const char *text, uint32_t *value);
bool tool_parse_medium(const char *text, enum minl2r_medium *medium);

/* Says what is wrong with the value of `option`, and returns false. */
bool tool_bad_value(const char *option, const char *text, const char *expected);

/* ---- Output ---------------------------------------------------------------------- */

/* 64-bit numbers are kept as digits: a JSON library's doubles would round them. */
void tool_add_u64(cJSON *object, const char *name, uint64_t value);
void tool_add_hex(cJSON *object, const char *name, const void *bytes, size_t size);
void tool_print(const cJSON *out, bool json);

/* Adds the library's message about a failed call, and says how the tool then exits. */
enum tool_exit tool_error(cJSON *out, int result);

/* ---- Pools to look at ------------------------------------------------------------ */

/* A pool opened read-only, as it lies there: not recovered. */
struct view {
    struct pm pm;
    int fd;
    struct minl2r_pool *pool;
};

int view_map(struct view *view, const char *path);
int view_attach(struct view *view);
void view_close(struct view *view);

/* The fields of minl2r_info, but for what recovery did. */
void tool_add_info(cJSON *out, struct minl2r_pool *pool);

/* Which of the pool's lanes it is, and whether it is the one of lane.h that is kept. */
void tool_add_lane(cJSON *lane, const struct minl2r_pool *pool, uint32_t index);

#endif
