/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#define CHUNK_SIZE 16384u

/* ---- Reading --------------------------------------------------------------------- */

struct listing {
    struct tree *tree;
    uint32_t parent;
    int error;
};

static int set_path(struct tree_node *node, const struct tree_node *parent,
                    const char *name)
{
    const char *above = strcmp(parent->path, "/") == 0 ? "" : parent->path;
    int length = snprintf(node->path, sizeof(node->path), "%s/%s", above, name);

    return length < 0 || (size_t)length >= sizeof(node->path) ? -ENAMETOOLONG : 0;
}

static void set_attr(struct tree_node *node, const struct pmfs_attr *attr)
{
    node->ino = attr->ino;
    node->generation = attr->generation;
    node->mode = attr->mode;
    node->nlink = attr->nlink;
    node->uid = attr->uid;
    node->gid = attr->gid;
    node->size = attr->size;
    node->blocks = attr->blocks;
    node->rdev = attr->rdev;
    node->content = 0;
    node->times[TREE_MTIME] = attr->mtime_ns;
    node->times[TREE_CTIME] = attr->ctime_ns;
    node->times[TREE_ATIME] = attr->atime_ns;
    node->times[TREE_BTIME] = attr->btime_ns;
}

static int add_entry(void *arg, const struct pmfs_dirent *entry)
{
    struct listing *listing = arg;
    struct tree *tree = listing->tree;

    if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
        return 0;
    if (!entry->attr)
        listing->error = -EUCLEAN;
    else if (tree->count == TREE_NODES_MAX)
        listing->error = -E2BIG;
    else
        listing->error = set_path(&tree->nodes[tree->count],
                                  &tree->nodes[listing->parent], entry->name);
    if (listing->error == 0)
        set_attr(&tree->nodes[tree->count++], entry->attr);
    return listing->error;
}

static int read_directory(struct pmfs *fs, struct tree *tree, uint32_t parent)
{
    struct listing listing = {tree, parent, 0};
    int rc = pmfs_readdir(fs, tree->nodes[parent].ino, 0, PMFS_READDIR_ATTR, add_entry,
                          &listing);

    return rc < 0 ? rc : listing.error;
}

static int read_file(struct pmfs *fs, struct tree_node *node)
{
    static uint8_t bytes[CHUNK_SIZE];
    uint64_t offset = 0;
    size_t done = 0;
    int rc;

    do {
        rc = pmfs_read(fs, node->ino, offset, bytes, sizeof(bytes), &done);
        if (rc == 0)
            node->content = XXH3_64bits_withSeed(bytes, done, node->content);
        offset += done;
    } while (rc == 0 && done == sizeof(bytes));
    return rc == 0 && offset != node->size ? -EUCLEAN : rc;
}

static int read_target(struct pmfs *fs, struct tree_node *node)
{
    char target[PMFS_SYMLINK_MAX + 1];
    int rc = pmfs_readlink(fs, node->ino, target, sizeof(target));

    if (rc == 0)
        node->content = XXH3_64bits(target, strlen(target));
    return rc;
}

/* Names and values, in the order of listing. */
static int read_attributes(struct pmfs *fs, struct tree_node *node)
{
    static char names[CHUNK_SIZE];
    static uint8_t value[CHUNK_SIZE];
    size_t names_size, size;
    int rc = pmfs_listxattr(fs, node->ino, names, sizeof(names), &names_size);

    node->attributes = 0;
    for (size_t i = 0; rc == 0 && i < names_size; i += strlen(names + i) + 1) {
        rc = pmfs_getxattr(fs, node->ino, names + i, value, sizeof(value), &size);
        if (rc < 0)
            break;
        node->attributes =
            XXH3_64bits_withSeed(names + i, strlen(names + i), node->attributes);
        node->attributes = XXH3_64bits_withSeed(value, size, node->attributes);
    }
    return rc;
}

static int read_node(struct pmfs *fs, struct tree *tree, uint32_t i)
{
    switch (tree->nodes[i].mode & S_IFMT) {
    case S_IFDIR:
        return read_directory(fs, tree, i);
    case S_IFREG:
        return read_file(fs, &tree->nodes[i]);
    case S_IFLNK:
        return read_target(fs, &tree->nodes[i]);
    default:
        return 0;
    }
}

int tree_read(struct pmfs *fs, struct tree *tree)
{
    struct pmfs_attr attr;
    int rc = pmfs_getattr(fs, PMFS_ROOT_INO, &attr);

    if (rc < 0)
        return rc;
    set_attr(&tree->nodes[0], &attr);
    strcpy(tree->nodes[0].path, "/");
    tree->count = 1;
    for (uint32_t i = 0; i < tree->count && rc == 0; i++)
        rc = read_node(fs, tree, i);
    for (uint32_t i = 0; i < tree->count && rc == 0; i++)
        rc = read_attributes(fs, &tree->nodes[i]);
    return rc;
}

/* ---- Comparing ------------------------------------------------------------------- */

static bool is_in(enum tree_part part, const char *path)
{
    bool is_b = path[1] == 'B' && (path[2] == 0 || path[2] == '/');

    return part == TREE_ALL || is_b == (part == TREE_B);
}

static const struct tree_node *find(const struct tree *tree, const char *path)
{
    for (uint32_t i = 0; i < tree->count; i++)
        if (strcmp(tree->nodes[i].path, path) == 0)
            return &tree->nodes[i];
    return NULL;
}

static const struct tree_node *find_ino(const struct tree *tree, uint64_t ino)
{
    for (uint32_t i = 0; tree && i < tree->count; i++)
        if (tree->nodes[i].ino == ino)
            return &tree->nodes[i];
    return NULL;
}

struct field {
    const char *name;
    uint64_t found, expected;
    bool is_hash;
};

/* The first of the fields that differs, or NULL. */
static const struct field *find_difference(const struct field *fields, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (fields[i].found != fields[i].expected)
            return &fields[i];
    return NULL;
}

static bool node_matches(const struct tree_node *found, const struct tree_node *node,
                         char *why, size_t size)
{
    const struct field fields[] = {
        {"inode", found->ino, node->ino, false},
        {"generation", found->generation, node->generation, false},
        {"mode", found->mode, node->mode, false},
        {"links", found->nlink, node->nlink, false},
        {"user", found->uid, node->uid, false},
        {"group", found->gid, node->gid, false},
        {"size", found->size, node->size, false},
        {"blocks", found->blocks, node->blocks, false},
        {"device", found->rdev, node->rdev, false},
        {"extended attributes", found->attributes, node->attributes, true},
        {"content", found->content, node->content, true},
    };
    const struct field *field =
        find_difference(fields, sizeof(fields) / sizeof(*fields));

    if (!field)
        return true;
    if (field->is_hash)
        snprintf(why, size, "%.200s has other %s", node->path, field->name);
    else
        snprintf(why, size, "%.200s has %s %llu instead of %llu", node->path,
                 field->name, (unsigned long long)field->found,
                 (unsigned long long)field->expected);
    return false;
}

static bool times_match(const struct tree_node *found, const struct tree_node *node,
                        const struct tree_node *newer, char *why, size_t size)
{
    static const char *const names[TREE_TIMES] = {"modification", "change", "access",
                                                  "birth"};

    for (int i = 0; i < TREE_TIMES; i++) {
        if (found->times[i] == node->times[i] ||
            (newer && found->times[i] == newer->times[i]))
            continue;
        snprintf(why, size, "%.200s has %s time %lld instead of %lld", node->path,
                 names[i], (long long)found->times[i], (long long)node->times[i]);
        return false;
    }
    return true;
}

/* The next node of the part, or NULL. */
static const struct tree_node *next(enum tree_part part, const struct tree *tree,
                                    uint32_t *i)
{
    while (*i < tree->count)
        if (is_in(part, tree->nodes[(*i)++].path))
            return &tree->nodes[*i - 1];
    return NULL;
}

/* A path that only one of the trees has, or the order of them. */
static void explain_paths(enum tree_part part, const struct tree *found,
                          const struct tree *expected, char *why, size_t size)
{
    const struct tree_node *node;

    for (uint32_t i = 0; (node = next(part, expected, &i));)
        if (!find(found, node->path)) {
            snprintf(why, size, "%.200s is missing", node->path);
            return;
        }
    for (uint32_t i = 0; (node = next(part, found, &i));)
        if (!find(expected, node->path)) {
            snprintf(why, size, "%.200s is there", node->path);
            return;
        }
    snprintf(why, size, "entries are listed in another order");
}

bool tree_matches(enum tree_part part, const struct tree *found,
                  const struct tree *expected, const struct tree *newer, char *why,
                  size_t size)
{
    uint32_t i = 0, j = 0;

    for (;;) {
        const struct tree_node *a = next(part, found, &i);
        const struct tree_node *b = next(part, expected, &j);

        if (!a && !b)
            return true;
        if (!a || !b || strcmp(a->path, b->path) != 0) {
            explain_paths(part, found, expected, why, size);
            return false;
        }
        if (!node_matches(a, b, why, size) ||
            !times_match(a, b, find_ino(newer, b->ino), why, size))
            return false;
    }
}
