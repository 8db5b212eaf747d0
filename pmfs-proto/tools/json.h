/* SPDX-License-Identifier: BSD-3-Clause */
/* json.h - the little that the commands need on top of cJSON. */
#ifndef PMFS_TOOLS_JSON_H
#define PMFS_TOOLS_JSON_H

#include <cjson/cJSON.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "libminl2r/tools/utf8.h"

/* Exact below 2^53. */
static inline void json_add_count(cJSON *object, const char *name, uint64_t count)
{
    cJSON_AddNumberToObject(object, name, (double)count);
}

static inline void json_print(const cJSON *value)
{
    char *text = cJSON_Print(value);

    if (text != NULL) {
        utf8_print_json(stdout, text);
        puts("");
    }
    free(text);
}

#endif
