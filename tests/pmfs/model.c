/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/pmfs/model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "include/pmfs.h"

static struct model_inode *add_inode(struct model *model, uint32_t mode, uint64_t ino)
{
    struct model_inode *inode = calloc(1, sizeof(*inode));

    if (!inode)
        abort();
    inode->ino = ino;
    inode->mode = mode;
    if (S_ISDIR(mode)) {
        inode->nlink = 2;
        inode->entries = calloc(MODEL_ENTRIES_MAX, sizeof(*inode->entries));
        if (!inode->entries)
            abort();
    }
    inode->next = model->all;
    model->all = inode;
    model->inode_count++;
    return inode;
}

static void free_inode(struct model_inode *inode)
{
    free(inode->bytes);
    free(inode->entries);
    free(inode);
}

void model_init(struct model *model)
{
    *model = (struct model){0};
    model->root = add_inode(model, S_IFDIR | 0755, PMFS_ROOT_INO);
    model->root->parent = model->root;
}

void model_finish(struct model *model)
{
    for (struct model_inode *inode = model->all, *next; inode; inode = next) {
        next = inode->next;
        free_inode(inode);
    }
}

void model_reap(struct model *model, struct model_inode *inode)
{
    struct model_inode **link = &model->all;

    if (inode->nlink || inode->opens || inode->lookups)
        return;
    while (*link != inode)
        link = &(*link)->next;
    *link = inode->next;
    model->inode_count--;
    free_inode(inode);
}

static struct model_entry *find_entry(const struct model_inode *dir, const char *name)
{
    for (int i = 0; i < dir->entry_count; i++) {
        if (strcmp(dir->entries[i].name, name) == 0)
            return &dir->entries[i];
    }
    return NULL;
}

struct model_inode *model_find(const struct model_inode *dir, const char *name)
{
    struct model_entry *entry = find_entry(dir, name);

    return entry ? entry->inode : NULL;
}

static void add_entry(struct model_inode *dir, const char *name,
                      struct model_inode *inode)
{
    struct model_entry *entry = &dir->entries[dir->entry_count++];

    if (dir->entry_count > MODEL_ENTRIES_MAX)
        abort();
    strcpy(entry->name, name);
    entry->inode = inode;
    if (S_ISDIR(inode->mode)) {
        inode->parent = dir;
        dir->nlink++;
    } else {
        inode->nlink++;
    }
}

/* The link of the inode that the entry was stays counted. */
static void drop_entry(struct model_inode *dir, struct model_entry *entry)
{
    if (S_ISDIR(entry->inode->mode))
        dir->nlink--;
    *entry = dir->entries[--dir->entry_count];
}

int model_may_make(const struct model_inode *dir, const char *name)
{
    if (!S_ISDIR(dir->mode))
        return -ENOTDIR;
    if (dir->nlink == 0)
        return -ENOENT;
    return model_find(dir, name) ? -EEXIST : 0;
}

struct model_inode *model_make(struct model *model, struct model_inode *dir,
                               const char *name, uint32_t mode, uint64_t ino)
{
    struct model_inode *inode = add_inode(model, mode, ino);

    add_entry(dir, name, inode);
    return inode;
}

struct model_inode *model_make_nameless(struct model *model, uint32_t mode,
                                        uint64_t ino, bool linkable)
{
    struct model_inode *inode = add_inode(model, mode, ino);

    inode->linkable = linkable;
    return inode;
}

int model_may_link(const struct model_inode *inode, const struct model_inode *dir,
                   const char *name)
{
    if (S_ISDIR(inode->mode))
        return -EPERM;
    int rc = model_may_make(dir, name);
    return rc == 0 && inode->nlink == 0 && !inode->linkable ? -ENOENT : rc;
}

void model_link(struct model_inode *inode, struct model_inode *dir, const char *name)
{
    add_entry(dir, name, inode);
    inode->linkable = false;
}

int model_may_remove(const struct model_inode *dir, const char *name, bool directory)
{
    const struct model_inode *inode;

    if (!S_ISDIR(dir->mode))
        return -ENOTDIR;
    inode = model_find(dir, name);
    if (!inode)
        return -ENOENT;
    if (directory != !!S_ISDIR(inode->mode))
        return directory ? -ENOTDIR : -EISDIR;
    return directory && inode->entry_count ? -ENOTEMPTY : 0;
}

static void lose_name(struct model *model, struct model_inode *inode)
{
    inode->nlink = S_ISDIR(inode->mode) ? 0 : inode->nlink - 1;
    model_reap(model, inode);
}

void model_remove(struct model *model, struct model_inode *dir, const char *name)
{
    struct model_entry *entry = find_entry(dir, name);
    struct model_inode *inode = entry->inode;

    drop_entry(dir, entry);
    lose_name(model, inode);
}

static bool is_above(const struct model_inode *ancestor, const struct model_inode *dir)
{
    while (dir != ancestor && dir != dir->parent)
        dir = dir->parent;
    return dir == ancestor;
}

static int may_replace(const struct model_inode *moved,
                       const struct model_inode *replaced,
                       const struct model_inode *dir, unsigned flags)
{
    if (flags & PMFS_RENAME_NOREPLACE)
        return -EEXIST;
    if (moved == replaced)
        return 0;
    if (flags & PMFS_RENAME_EXCHANGE)
        return S_ISDIR(replaced->mode) && is_above(replaced, dir) ? -EINVAL : 0;
    if (S_ISDIR(moved->mode) != S_ISDIR(replaced->mode))
        return S_ISDIR(moved->mode) ? -ENOTDIR : -EISDIR;
    return replaced->entry_count ? -ENOTEMPTY : 0;
}

int model_may_rename(const struct model_inode *dir, const char *name,
                     const struct model_inode *new_dir, const char *new_name,
                     unsigned flags)
{
    const struct model_inode *moved, *replaced;
    int rc = 0;

    if (!S_ISDIR(dir->mode) || !S_ISDIR(new_dir->mode))
        return -ENOTDIR;
    moved = model_find(dir, name);
    if (!moved || new_dir->nlink == 0)
        return -ENOENT;
    replaced = model_find(new_dir, new_name);
    if (!replaced && flags & PMFS_RENAME_EXCHANGE)
        return -ENOENT;
    if (replaced && flags & PMFS_RENAME_NOREPLACE)
        return -EEXIST;
    if (replaced && !(flags & PMFS_RENAME_EXCHANGE) &&
        S_ISDIR(moved->mode) != S_ISDIR(replaced->mode))
        return S_ISDIR(moved->mode) ? -ENOTDIR : -EISDIR;
    if (moved == replaced)
        return 0;
    if (S_ISDIR(moved->mode) && is_above(moved, new_dir))
        return -EINVAL;
    if (replaced)
        rc = may_replace(moved, replaced, dir, flags);
    return rc;
}

void model_rename(struct model *model, struct model_inode *dir, const char *name,
                  struct model_inode *new_dir, const char *new_name, unsigned flags)
{
    struct model_inode *moved = model_find(dir, name);
    struct model_inode *replaced = model_find(new_dir, new_name);

    if (moved == replaced)
        return;
    /* A link for the time in between, so that nothing is lost. */
    moved->nlink++;
    if (replaced)
        replaced->nlink++;
    drop_entry(dir, find_entry(dir, name));
    if (!S_ISDIR(moved->mode))
        moved->nlink--;
    if (replaced) {
        drop_entry(new_dir, find_entry(new_dir, new_name));
        if (!S_ISDIR(replaced->mode))
            replaced->nlink--;
    }
    add_entry(new_dir, new_name, moved);
    moved->nlink--;
    if (!replaced)
        return;
    if (flags & PMFS_RENAME_EXCHANGE) {
        add_entry(dir, name, replaced);
        replaced->nlink--;
        return;
    }
    replaced->nlink = S_ISDIR(replaced->mode) ? 0 : replaced->nlink - 1;
    model_reap(model, replaced);
}

static void reserve(struct model_inode *inode, uint64_t size)
{
    if (size <= inode->capacity)
        return;
    inode->bytes = realloc(inode->bytes, size);
    if (!inode->bytes)
        abort();
    memset(inode->bytes + inode->capacity, 0, size - inode->capacity);
    inode->capacity = size;
}

void model_write(struct model_inode *inode, uint64_t offset, const void *bytes,
                 uint64_t size)
{
    if (size == 0)
        return;
    reserve(inode, offset + size);
    memcpy(inode->bytes + offset, bytes, size);
    if (inode->size < offset + size)
        inode->size = offset + size;
}

void model_truncate(struct model_inode *inode, uint64_t size)
{
    reserve(inode, size);
    if (size < inode->size)
        memset(inode->bytes + size, 0, inode->size - size);
    inode->size = size;
}

void model_fallocate(struct model_inode *inode, unsigned mode, uint64_t offset,
                     uint64_t size)
{
    uint64_t end = offset + size;

    if (!(mode & PMFS_KEEP_SIZE) && end > inode->size)
        model_truncate(inode, end);
    if (end > inode->size)
        end = inode->size;
    if (mode & (PMFS_PUNCH_HOLE | PMFS_ZERO_RANGE) && offset < end)
        memset(inode->bytes + offset, 0, end - offset);
}

int model_may_copy(const struct model_inode *from, uint64_t from_offset,
                   const struct model_inode *to, uint64_t to_offset, uint64_t size)
{
    if (from != to || size == 0)
        return 0;
    if (from_offset < to_offset)
        return to_offset - from_offset < size ? -EINVAL : 0;
    return from_offset - to_offset < size ? -EINVAL : 0;
}
