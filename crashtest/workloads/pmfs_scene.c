/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_scene.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "crashtest/workloads/door.h"
#include "libminl2r/check.h"
#include "libminl2r/recovery.h"
#include "libminl2r/tx.h"
#include "pmfs-proto/core/fs.h"
#include "pmfs-proto/core/fsck.h"
#include "pmfs-proto/core/linear.h"

#define WRITE_MAX ((size_t)512 << 10)
#define REPAIR_TIME_NS 3000000000
#define DEPTH_MAX 16

static const struct pmfs_cred owner = {.uid = 7, .gid = 8};

/* ---- The same in each run: time, and what is random ------------------------------ */

static struct {
    int64_t time_ns;
    uint64_t random;
} world;

int64_t __wrap_fs_now_ns(void);
ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags);

int64_t __wrap_fs_now_ns(void)
{
    return world.time_ns += 1000;
}

ssize_t __wrap_getrandom(void *buffer, size_t size, unsigned flags)
{
    uint8_t *bytes = buffer;

    (void)flags;
    for (size_t i = 0; i < size; i++) {
        world.random = world.random * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(world.random >> 56);
    }
    return (ssize_t)size;
}

void scene_begin_world(void)
{
    world.time_ns = 1000000000;
    world.random = 1;
}

/* ---- Directories of format 2 ----------------------------------------------------- */

bool scene_converts = true;

int __wrap_linear_convert(struct pmfs *fs, struct inode *inode);
int __real_linear_convert(struct pmfs *fs, struct inode *inode);

int __wrap_linear_convert(struct pmfs *fs, struct inode *inode)
{
    return scene_converts ? __real_linear_convert(fs, inode) : 0;
}

/* ---- Mounting -------------------------------------------------------------------- */

/* Asking the processor how to flush takes longer than all else in virtual machines. */
static struct pm adopt(const void *memory)
{
    static struct pm pm;

    if (!pm.base)
        pm_adopt(&pm, memory, SCENE_SIZE, MINL2R_DAX);
    pm.base = memory;
    return pm;
}

static int attach_pool(struct scene *scene, void *memory)
{
    struct pm pm = adopt(memory);
    int rc;

    scene->pool = (struct minl2r_pool){.tx_lock = PTHREAD_MUTEX_INITIALIZER,
                                       .root_lock = PTHREAD_MUTEX_INITIALIZER};
    rc = pool_attach(&scene->pool, &pm, NULL);
    if (rc < 0)
        return rc;
    scene->pool.fork_count = fork_count();
    rc = recovery_run(&scene->pool);
    if (rc < 0)
        pool_detach(&scene->pool);
    return rc;
}

static void detach_pool(struct scene *scene)
{
    tx_free_all(&scene->pool);
    pool_detach(&scene->pool);
}

int scene_mount(struct scene *scene, void *memory)
{
    static const struct pmfs_mount_options options;
    int rc;

    scene->fs = NULL;
    scene->open_count = 0;
    scene_converts = true;
    rc = attach_pool(scene, memory);
    if (rc < 0)
        return fs_error(-rc, "%s", minl2r_errormsg());
    rc = fs_attach(&scene->pool, &options, &scene->fs);
    if (rc < 0)
        detach_pool(scene);
    else
        scene->fs->spare_inode_blocks =
            0; /* the last inode of a block takes it along */
    return rc;
}

void scene_drop(struct scene *scene)
{
    if (!scene->fs)
        return;
    fs_detach(scene->fs);
    scene->fs = NULL;
    detach_pool(scene);
}

int scene_remount(struct scene *scene)
{
    void *memory = (void *)(uintptr_t)scene->pool.pm.base;

    scene_drop(scene);
    return scene_mount(scene, memory);
}

/* What is made meanwhile has the same times, however often a crash ends it. */
int scene_repair(struct scene *scene, void *memory)
{
    int rc = attach_pool(scene, memory);

    if (rc < 0)
        return fs_error(-rc, "%s", minl2r_errormsg());
    world.time_ns = REPAIR_TIME_NS;
    rc = repair_pool(&scene->pool, NULL, NULL, NULL);
    detach_pool(scene);
    return rc;
}

struct finding {
    char *text;
    size_t size;
};

static void take_first(void *arg, const char *what)
{
    struct finding *finding = arg;

    if (finding->text[0] == 0)
        snprintf(finding->text, finding->size, "%s", what);
}

int scene_check(struct scene *scene, char *why, size_t size)
{
    struct finding finding = {why, size};
    struct pmfs_fsck_summary summary;
    int rc;

    why[0] = 0;
    rc = fsck_pool(&scene->pool, take_first, &finding, &summary);
    if (rc < 0 && why[0] == 0)
        snprintf(why, size, "%s", pmfs_errormsg());
    if (rc == 0 && summary.orphans + summary.truncates != scene->open_count) {
        snprintf(
            why, size, "after mounting there are %llu orphans and %llu truncations",
            (unsigned long long)summary.orphans, (unsigned long long)summary.truncates);
        rc = -EUCLEAN;
    }
    return rc;
}

int scene_check_pool(struct scene *scene, char *why, size_t size)
{
    struct finding finding = {why, size};

    why[0] = 0;
    return check_pool(&scene->pool, take_first, &finding);
}

/* ---- Paths ----------------------------------------------------------------------- */

/* Copies the first name of a path, and answers where the next begins. */
static const char *split(const char *path, char name[PMFS_NAME_MAX + 1])
{
    size_t length = strcspn(path, "/");

    if (length > PMFS_NAME_MAX)
        return NULL;
    memcpy(name, path, length);
    name[length] = 0;
    return path + length + (path[length] == '/');
}

int scene_parent(struct scene *scene, const char *path, uint64_t *parent,
                 const char **name)
{
    char component[PMFS_NAME_MAX + 1];
    struct pmfs_attr attr;

    *parent = PMFS_ROOT_INO;
    while (strchr(path, '/')) {
        path = split(path, component);
        int rc =
            path ? pmfs_lookup(scene->fs, *parent, component, &attr) : -ENAMETOOLONG;

        if (rc < 0)
            return rc;
        *parent = attr.ino;
    }
    *name = path;
    return 0;
}

int scene_find(struct scene *scene, const char *path, struct pmfs_attr *attr)
{
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, path, &parent, &name);

    return rc < 0 ? rc : pmfs_lookup(scene->fs, parent, name, attr);
}

void scene_new_bytes(struct scene *scene, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        scene->serial = scene->serial * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(scene->serial >> 56);
    }
}

int scene_write(struct scene *scene, uint64_t ino, uint64_t offset, size_t size,
                unsigned flags)
{
    static uint8_t bytes[WRITE_MAX];
    size_t done;

    if (size > sizeof(bytes))
        return -EINVAL;
    scene_new_bytes(scene, bytes, size);
    return pmfs_write(scene->fs, ino, offset, bytes, size, flags, &done);
}

int scene_create(struct scene *scene, const char *path, uint64_t size)
{
    struct pmfs_attr attr;
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, path, &parent, &name);

    if (rc == 0)
        rc = pmfs_mknod(scene->fs, parent, name, 0644, 0, &owner, &attr);
    if (rc == 0 && size > 0)
        rc = scene_write(scene, attr.ino, 0, size, 0);
    return rc;
}

int scene_mkdir(struct scene *scene, const char *path)
{
    struct pmfs_attr attr;
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, path, &parent, &name);

    return rc < 0 ? rc : pmfs_mkdir(scene->fs, parent, name, 0755, &owner, &attr);
}

int scene_open(struct scene *scene, const char *path)
{
    struct pmfs_attr attr;
    int rc = scene_find(scene, path, &attr);

    if (rc == 0 && scene->open_count == SCENE_OPENS_MAX)
        rc = -EMFILE;
    if (rc == 0)
        rc = pmfs_open(scene->fs, attr.ino);
    if (rc == 0)
        scene->opens[scene->open_count++] = attr.ino;
    return rc;
}

/* ---- Removing -------------------------------------------------------------------- */

struct first_entry {
    bool found;
    uint64_t ino;
    uint32_t mode;
    char name[PMFS_NAME_MAX + 1];
};

static int take_entry(void *arg, const struct pmfs_dirent *entry)
{
    struct first_entry *first = arg;

    if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
        return 0;
    first->found = true;
    first->ino = entry->ino;
    first->mode = entry->mode;
    snprintf(first->name, sizeof(first->name), "%s", entry->name);
    return 1;
}

static int find_first(struct scene *scene, uint64_t directory,
                      struct first_entry *first)
{
    first->found = false;
    return pmfs_readdir(scene->fs, directory, 0, 0, take_entry, first);
}

/* Descends into whatever has something in it. */
int scene_empty(struct scene *scene, uint64_t directory)
{
    uint64_t path[DEPTH_MAX] = {directory};
    struct first_entry first, inside;
    int depth = 0, rc = 0;

    while (rc == 0) {
        rc = find_first(scene, path[depth], &first);
        if (rc < 0)
            break;
        if (!first.found) {
            if (depth-- == 0)
                return 0;
            continue;
        }
        inside.found = false;
        if (S_ISDIR(first.mode))
            rc = find_first(scene, first.ino, &inside);
        if (inside.found && depth + 1 == DEPTH_MAX)
            return -ELOOP;
        if (rc == 0 && inside.found)
            path[++depth] = first.ino;
        else if (rc == 0)
            rc = S_ISDIR(first.mode) ? pmfs_rmdir(scene->fs, path[depth], first.name)
                                     : pmfs_unlink(scene->fs, path[depth], first.name);
    }
    return rc;
}

int scene_remove(struct scene *scene, const char *path)
{
    struct pmfs_attr attr;
    uint64_t parent;
    const char *name;
    int rc = scene_parent(scene, path, &parent, &name);

    if (rc == 0)
        rc = pmfs_lookup(scene->fs, parent, name, &attr);
    if (rc != 0)
        return rc;
    if (!S_ISDIR(attr.mode))
        return pmfs_unlink(scene->fs, parent, name);
    rc = scene_empty(scene, attr.ino);
    return rc < 0 ? rc : pmfs_rmdir(scene->fs, parent, name);
}

/* ---- Images ---------------------------------------------------------------------- */

static int fill_tree(struct scene *scene)
{
    int rc = scene_mkdir(scene, "A");

    if (rc == 0)
        rc = scene_mkdir(scene, "B");
    if (rc == 0)
        rc = scene_mkdir(scene, "A/C");
    if (rc == 0)
        rc = scene_create(scene, "foo", 1300);
    if (rc == 0)
        rc = scene_create(scene, "A/bar", 700);
    return rc;
}

/* No block is free but the spare ones, and no room in the inode table. */
static int fill_medium(struct scene *scene)
{
    char name[32];
    int rc = fill_tree(scene);

    if (rc == 0)
        rc = scene_mkdir(scene, "A/full");
    for (size_t size = (size_t)64 << 10; rc == 0 && size > 0; size /= 2) {
        for (unsigned i = 0; rc == 0; i++) {
            snprintf(name, sizeof(name), "A/full/%zu.%u", size, i);
            rc = scene_create(scene, name, size);
        }
        if (rc != -ENOSPC)
            return rc;
        scene_remove(scene, name);
        rc = 0;
    }
    return rc;
}

#define SMALL .block_size = 512, .lanes = 2, .log_size = MINL2R_LOG_SIZE_MIN

const struct scene_image scene_images[] = {
    {"half", "blocks of 512 bytes", {SMALL}, fill_tree},
    {"swap",
     "the same, and pointers are swapped for every change of a block",
     {SMALL, .pointer_threshold = MINL2R_POINTER_ALWAYS},
     fill_tree},
    {"log",
     "the same as half, and blocks are never swapped: long writes need a longer log",
     {SMALL, .pointer_threshold = MINL2R_POINTER_NEVER},
     fill_tree},
    {"full", "the same as half, and no block is free", {SMALL}, fill_medium},
    {"large",
     "blocks of 4096 bytes",
     {.block_size = 4096, .lanes = 2, .log_size = MINL2R_LOG_SIZE_MIN},
     fill_tree},
};
const size_t scene_image_count = sizeof(scene_images) / sizeof(*scene_images);

const struct scene_image *scene_image_find(const char *name, size_t length)
{
    for (size_t i = 0; i < scene_image_count; i++)
        if (strlen(scene_images[i].name) == length &&
            memcmp(scene_images[i].name, name, length) == 0)
            return &scene_images[i];
    return NULL;
}

static int format(struct scene *scene, const struct scene_image *image, void *memory)
{
    static const struct pmfs_mkfs_options options;
    struct pm pm = adopt(memory);
    int rc = pool_format(&pm, PMFS_LAYOUT, 0, &image->options);

    if (rc == 0)
        rc = attach_pool(scene, memory);
    if (rc < 0)
        return rc;
    rc = fs_format(&scene->pool, &options);
    detach_pool(scene);
    return rc;
}

int scene_make(const struct scene_image *image, void *memory)
{
    struct scene scene = {.serial = 1};
    int rc;

    scene_begin_world();
    memset(memory, USED_MEDIUM, SCENE_SIZE);
    rc = format(&scene, image, memory);
    if (rc == 0)
        rc = scene_mount(&scene, memory);
    if (rc < 0)
        return rc;
    rc = image->fill(&scene);
    scene_drop(&scene);
    return rc;
}
