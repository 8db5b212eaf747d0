/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/sites.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/source.h"
#include "crashtest/workloads/workload.h"

#define SCRIPTS_MAX 24 /* that try to find one */

/* Of each script which sites it comes by. */
struct map {
    struct door_sites sites;
    bool *is_seen; /* [script][DOOR_SITES_MAX] */
};

static void look_at_all(const struct sites_hunt *hunt, struct map *map)
{
    static struct door_sites seen;

    for (size_t script = 0; script < hunt->script_count; script++) {
        seen.count = 0;
        door_note_sites(&seen);
        hunt->look(script);
        door_note_sites(NULL);
        for (size_t i = 0; i < seen.count; i++) {
            size_t site = door_add_site(&map->sites, &seen.sites[i]);

            if (site < DOOR_SITES_MAX)
                map->is_seen[script * DOOR_SITES_MAX + site] = true;
        }
    }
}

static bool is_found(const struct sites_hunt *hunt, const struct map *map, size_t site)
{
    const struct door_fault fault = {DOOR_LOSE_SITE, map->sites.sites[site].key};
    unsigned tried = 0;

    for (size_t script = 0; script < hunt->script_count && tried < SCRIPTS_MAX;
         script++) {
        if (!map->is_seen[script * DOOR_SITES_MAX + site])
            continue;
        if (hunt->is_wrong(script, fault))
            return true;
        tried++;
    }
    return false;
}

static bool is_function(const struct source *source, const char *name)
{
    return strcmp(source->function, name) == 0;
}

static bool is_needless(const struct sites_hunt *hunt, const struct door_site *site)
{
    struct source source, caller;

    source_find(site->frames[0], &source);
    source_find(site->frames[1], &caller);
    for (size_t i = 0; hunt->needless[i].function; i++) {
        const struct sites_needless *needless = &hunt->needless[i];

        if (is_function(&source, needless->function) &&
            (!needless->caller || is_function(&caller, needless->caller)))
            return true;
    }
    return false;
}

static void describe(const struct door_site *site, char *place, size_t size)
{
    struct trace_event event = {0};

    memcpy(event.frames, site->frames, sizeof(event.frames));
    source_describe(&event, place, size);
}

static bool try_all(const struct sites_hunt *hunt, const struct map *map, char *error)
{
    size_t length = 0;
    char place[400];

    for (size_t site = 0; site < map->sites.count; site++) {
        describe(&map->sites.sites[site], place, sizeof(place));
        if (is_found(hunt, map, site) != is_needless(hunt, &map->sites.sites[site]) ||
            length + 1 >= WORKLOAD_ERROR_SIZE)
            continue;
        length += (size_t)snprintf(error + length, WORKLOAD_ERROR_SIZE - length, "%s%s",
                                   length ? "; " : "", place);
    }
    return length == 0;
}

bool sites_are_found(const struct sites_hunt *hunt, char *error)
{
    static struct map map;

    map.sites.count = 0;
    map.is_seen = calloc(hunt->script_count * DOOR_SITES_MAX, sizeof(*map.is_seen));
    if (!map.is_seen)
        exit(2);
    look_at_all(hunt, &map);
    bool all = try_all(hunt, &map, error);

    free(map.is_seen);
    return all;
}
