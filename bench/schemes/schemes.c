/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "bench/schemes/families.h"
#include "bench/schemes/tree.h"

const struct scheme *const schemes[] = {
    &scheme_none,       &scheme_minl2r,       &scheme_minl2r_auto,  &scheme_minl2r_data,
    &scheme_minl2r_ptr, &scheme_bpfs_ordered, &scheme_bpfs_durable, &scheme_sp,
    &scheme_sjfs_eager, &scheme_sjfs_lazy,    &scheme_journal,      &scheme_ordered,
};
const size_t scheme_count = sizeof(schemes) / sizeof(schemes[0]);

const struct scheme *scheme_find(const char *name)
{
    for (size_t i = 0; i < scheme_count; i++)
        if (strcmp(schemes[i]->name, name) == 0)
            return schemes[i];
    return NULL;
}

void *memory_apart(size_t size)
{
    size_t whole = (size + APART - 1) / APART * APART;
    void *memory = aligned_alloc(APART, whole);

    return memory ? memset(memory, 0, whole) : NULL;
}

static void init(struct volume *volume, const struct scheme *scheme,
                 const struct volume_options *options)
{
    *volume = (struct volume){.scheme = scheme, .options = *options};
    if (!scheme->has_log)
        volume->options.log_size = 0;
}

int volume_open(struct volume *volume, const char *path, const struct scheme *scheme,
                const struct volume_options *options)
{
    init(volume, scheme, options);
    return scheme->open(volume, path);
}

int volume_create(struct volume *volume, const char *path, const struct scheme *scheme,
                  const struct volume_options *options)
{
    init(volume, scheme, options);
    int rc = scheme->create(volume, path);

    return rc < 0 ? rc : volume_open(volume, path, scheme, options);
}

void volume_close(struct volume *volume)
{
    if (volume->scheme)
        volume->scheme->close(volume);
    volume->scheme = NULL;
}

static void touch(const volatile uint8_t *base, uint64_t size)
{
    for (uint64_t at = 0; base && at < size; at += PM_PAGE)
        (void)base[at];
}

void volume_touch(const struct volume *volume)
{
    struct minl2r_info info;

    if (volume->trees) {
        touch(volume->trees->pm.base, volume->trees->pm.size);
    } else if (minl2r_pool_info(volume->pool, &info) == 0) {
        for (uint64_t at = 0; at < info.pool_size; at += PM_PAGE)
            touch(minl2r_at(volume->pool, at), 1);
    }
}
