/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h - a filesystem in plain memory, obviously right: what pmfs is compared with.
 * Each call answers with the errno that pmfs must answer with, and changes nothing on
 * error.
 */
#ifndef PMFS_MODEL_H
#define PMFS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MODEL_ENTRIES_MAX 512
#define MODEL_NAME_SIZE 256
#define MODEL_XATTRS 4

struct model_entry {
    char name[MODEL_NAME_SIZE];
    struct model_inode *inode;
};

struct model_inode {
    uint64_t ino; /* that pmfs gave it */
    uint32_t mode, nlink, uid, gid;
    uint64_t rdev;
    int64_t mtime_ns, ctime_ns; /* as they were seen last */
    uint64_t opens, lookups;
    bool linkable; /* it has never had a name, and may get one */
    uint64_t size;
    uint8_t *bytes; /* content or target, `capacity` of them, zeros past the end */
    uint64_t capacity;
    struct {
        bool set;
        uint8_t letter; /* all bytes of the value */
        uint32_t size;
    } xattrs[MODEL_XATTRS];
    struct model_inode *parent;  /* of directories */
    struct model_entry *entries; /* of directories */
    int entry_count;
    struct model_inode *next; /* in the list of all */
};

struct model {
    struct model_inode *root;
    struct model_inode *all;
    int inode_count;
};

void model_init(struct model *model);
void model_finish(struct model *model);

struct model_inode *model_find(const struct model_inode *dir, const char *name);

/* What making `name` in `dir` must answer, and doing it. */
int model_may_make(const struct model_inode *dir, const char *name);
struct model_inode *model_make(struct model *model, struct model_inode *dir,
                               const char *name, uint32_t mode, uint64_t ino);

/* A file without a name. */
struct model_inode *model_make_nameless(struct model *model, uint32_t mode,
                                        uint64_t ino, bool linkable);

int model_may_link(const struct model_inode *inode, const struct model_inode *dir,
                   const char *name);
void model_link(struct model_inode *inode, struct model_inode *dir, const char *name);

int model_may_remove(const struct model_inode *dir, const char *name, bool directory);
void model_remove(struct model *model, struct model_inode *dir, const char *name);

int model_may_rename(const struct model_inode *dir, const char *name,
                     const struct model_inode *new_dir, const char *new_name,
                     unsigned flags);
void model_rename(struct model *model, struct model_inode *dir, const char *name,
                  struct model_inode *new_dir, const char *new_name, unsigned flags);

void model_write(struct model_inode *inode, uint64_t offset, const void *bytes,
                 uint64_t size);
void model_truncate(struct model_inode *inode, uint64_t size);
void model_fallocate(struct model_inode *inode, unsigned mode, uint64_t offset,
                     uint64_t size);
int model_may_copy(const struct model_inode *from, uint64_t from_offset,
                   const struct model_inode *to, uint64_t to_offset, uint64_t size);

/* Forgets an inode without names that nobody uses. */
void model_reap(struct model *model, struct model_inode *inode);

#endif
