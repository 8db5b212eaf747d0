/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs_scene.h - a pmfs mounted in memory, the images that runs begin with, and
 * pmfs.h by paths.
 */
#ifndef CRASHTEST_PMFS_SCENE_H
#define CRASHTEST_PMFS_SCENE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "include/pmfs.h"
#include "libminl2r/pool.h"

#define SCENE_SIZE MINL2R_POOL_SIZE_MIN
#define SCENE_OPENS_MAX 8

struct scene {
    struct minl2r_pool pool;
    struct pmfs *fs;                 /* NULL: not mounted */
    uint64_t serial;                 /* of new bytes */
    uint64_t opens[SCENE_OPENS_MAX]; /* inodes held open */
    uint32_t open_count;
};

/* From now on time and what is random are what they were after an earlier call. */
void scene_begin_world(void);

/* Are directories of format 2 converted when they are used? So after mounting. */
extern bool scene_converts;

/* Recovers the pool in `memory`, of SCENE_SIZE bytes, and mounts it. */
int scene_mount(struct scene *scene, void *memory);
/* As the end of a process would: writes nothing. */
void scene_drop(struct scene *scene);
/* The one, and then the other: what was in DRAM is lost. */
int scene_remount(struct scene *scene);
/* Recovers the pool in `memory`, which is not mounted, and has what is in it repaired:
 * 0 if nothing is left to repair. */
int scene_repair(struct scene *scene, void *memory);
/* What fsck says of it: 0, or -EUCLEAN with what it found first in `why`. */
int scene_check(struct scene *scene, char *why, size_t size);

/* The same of the pool, by the library. */
int scene_check_pool(struct scene *scene, char *why, size_t size);

/* Images by name: "half", "swap", "full"... */
struct scene_image {
    const char *name;
    const char *what;
    struct minl2r_options options;
    int (*fill)(struct scene *scene);
};
extern const struct scene_image scene_images[];
extern const size_t scene_image_count;
const struct scene_image *scene_image_find(const char *name,
                                           size_t length); /* or NULL */

/* Makes the filesystem of an image in `memory`. 0 or a negative errno. */
int scene_make(const struct scene_image *image, void *memory);

/* ---- By paths, from the root, without a leading slash ---------------------------- */

int scene_find(struct scene *scene, const char *path, struct pmfs_attr *attr);
/* The directory that has the last name of the path. */
int scene_parent(struct scene *scene, const char *path, uint64_t *parent,
                 const char **name);
int scene_create(struct scene *scene, const char *path, uint64_t size);
int scene_mkdir(struct scene *scene, const char *path);
int scene_remove(struct scene *scene, const char *path);
int scene_empty(struct scene *scene, uint64_t directory); /* removes all in it */
int scene_write(struct scene *scene, uint64_t ino, uint64_t offset, size_t size,
                unsigned flags);
int scene_open(struct scene *scene, const char *path);

/* Bytes that were never there before: the same in each run. */
void scene_new_bytes(struct scene *scene, uint8_t *bytes, size_t size);

#endif
