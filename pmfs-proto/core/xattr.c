/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/xattr.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pmfs-proto/core/acl.h"

#define HEADER_SIZE ((uint64_t)sizeof(struct pm_xattr))
#define CAPABILITY "security.capability"

/* All attributes of an inode, as they lie on media. */
struct list {
    uint8_t *bytes;
    uint64_t size;
};

static uint64_t size_of(uint64_t name_size, uint64_t value_size)
{
    uint64_t unit = PM_XATTR_UNIT;

    return (HEADER_SIZE + name_size + value_size + unit - 1) / unit * unit;
}

uint64_t xattr_size_max(const struct pmfs *fs)
{
    uint64_t node = (uint64_t)fs->block_size << fs->map_shift;

    return node < PM_XATTR_SIZE_MAX ? node : PM_XATTR_SIZE_MAX;
}

/* ---- In memory ----------------------------------------------------------------- */

static const struct pm_xattr *entry_at(const struct list *list, uint64_t at)
{
    return (const struct pm_xattr *)(const void *)(list->bytes + at);
}

static uint64_t entry_size(const struct pm_xattr *entry)
{
    return size_of(entry->name_size, entry->value_size);
}

static uint8_t *value_at(const struct list *list, uint64_t at)
{
    return list->bytes + at + HEADER_SIZE + entry_at(list, at)->name_size;
}

static size_t value_size(const struct list *list, uint64_t at)
{
    return entry_at(list, at)->value_size;
}

static bool is_list(const struct list *list)
{
    uint64_t at = 0;

    while (at < list->size) {
        uint64_t left = list->size - at;
        const struct pm_xattr *entry = entry_at(list, at);

        if (left < HEADER_SIZE || entry->name_size == 0 || entry_size(entry) > left ||
            entry->value_size > PMFS_XATTR_SIZE_MAX ||
            memchr(entry->name, 0, entry->name_size))
            return false;
        at += entry_size(entry);
    }
    return true;
}

/* Where the attribute is, or the end. */
static uint64_t find(const struct list *list, const char *name)
{
    size_t size = strlen(name);
    uint64_t at = 0;

    while (at < list->size) {
        const struct pm_xattr *entry = entry_at(list, at);

        if (entry->name_size == size && memcmp(entry->name, name, size) == 0)
            break;
        at += entry_size(entry);
    }
    return at;
}

static void take_out(struct list *list, uint64_t at)
{
    uint64_t size = entry_size(entry_at(list, at));

    list->size -= size;
    memmove(list->bytes + at, list->bytes + at + size, list->size - at);
}

/* There is room for it. */
static void append(struct list *list, const char *name, const void *value, size_t size)
{
    const struct pm_xattr header = {
        .value_size = (uint32_t)size,
        .name_size = (uint8_t)strlen(name),
    };
    uint8_t *end = list->bytes + list->size;
    uint64_t entry = size_of(header.name_size, size);

    memset(end, 0, entry);
    memcpy(end, &header, HEADER_SIZE);
    memcpy(end + HEADER_SIZE, name, header.name_size);
    if (size)
        memcpy(end + HEADER_SIZE + header.name_size, value, size);
    list->size += entry;
}

/* ---- On media ------------------------------------------------------------------ */

static int bad_list(uint64_t ino)
{
    return fs_error(EUCLEAN,
                    "inode %" PRIu64 ": its extended attributes are impossible", ino);
}

static int copy_blocks(struct map *map, uint8_t *bytes, uint64_t size)
{
    int rc = 0;

    for (uint64_t at = 0; at < size && rc == 0;) {
        struct piece piece = piece_at(map->fs, at, size - at);
        const void *block;

        rc = map_block(map, piece.index, &block);
        if (rc == 0 && !block)
            rc = bad_list(map->ino);
        if (rc == 0)
            memcpy(bytes + at, block, piece.size);
        at += piece.size;
    }
    return rc;
}

/* Reads all attributes, with `room` for more behind them. */
static int list_read(const struct pmfs *fs, const struct inode_place *place,
                     uint64_t room, struct list *list)
{
    const struct pm_inode *pm = place->pm;
    struct map map;
    int rc = map_init(&map, fs, &pm->xattrs, place->ino);

    if (rc < 0)
        return rc;
    if (pm->xattr_size > xattr_size_max(fs))
        return bad_list(place->ino);
    list->size = pm->xattr_size;
    list->bytes = calloc(1, list->size + room + 1);
    if (!list->bytes)
        return -ENOMEM;
    rc = copy_blocks(&map, list->bytes, list->size);
    if (rc == 0 && !is_list(list))
        rc = bad_list(place->ino);
    if (rc < 0)
        free(list->bytes);
    return rc;
}

int xattr_check(const struct pmfs *fs, const struct inode_place *place)
{
    struct list list;
    int rc = list_read(fs, place, 0, &list);

    if (rc == 0)
        free(list.bytes);
    return rc;
}

static int list_error(const struct change *change, int rc)
{
    return fs_library_error(rc, "extended attributes", change->inode->place.ino);
}

/* Queues the bytes of a list from `from` on. */
static int queue_bytes(struct change *change, struct map *map, const struct list *list,
                       uint64_t from)
{
    const struct pmfs *fs = change->fs;
    int rc = list->size > from
                 ? map_reserve(map, change->tx, (list->size - 1) >> fs->block_shift)
                 : 0;

    while (rc == 0 && from < list->size) {
        struct piece piece = piece_at(fs, from, list->size - from);
        const uint64_t *slot;

        rc = map_slot(map, change->tx, piece.index, &slot);
        if (rc < 0)
            break;
        change->head.blocks += *slot == 0;
        rc = list_error(change, minl2r_tx_write_block(change->tx, slot, piece.at,
                                                      list->bytes + from, piece.size));
        from += piece.size;
    }
    change->head.blocks += map->added;
    return rc;
}

/* Queues a list that is new from `from` on. */
static int queue_list(struct change *change, const struct list *list, uint64_t from)
{
    const struct pmfs *fs = change->fs;
    const struct pm_inode *pm = change->inode->place.pm;
    uint64_t freed = 0;
    struct map map;
    int rc = map_init(&map, fs, &pm->xattrs, change->inode->place.ino);

    if (rc == 0)
        rc = queue_bytes(change, &map, list, from);
    if (rc == 0)
        rc = map_free(&map, change->tx, blocks_of(fs, list->size),
                      blocks_of(fs, pm->xattr_size), &freed);
    if (rc == 0)
        rc = list_error(change, minl2r_tx_write(change->tx, &pm->xattr_size,
                                                &list->size, sizeof(list->size)));
    change->head.blocks -= freed < change->head.blocks ? freed : change->head.blocks;
    change->in_place = true;
    return rc;
}

int xattr_queue_free(const struct pmfs *fs, struct minl2r_tx *tx,
                     const struct inode *inode, uint64_t *freed)
{
    struct map map;
    int rc = map_init(&map, fs, &inode->place.pm->xattrs, inode->place.ino);

    return rc < 0 ? rc : map_free(&map, tx, 0, map_node_end(&map, 0), freed);
}

/* ---- Changing ------------------------------------------------------------------ */

int xattr_queue_follow(struct change *change, const uint32_t *mode,
                       bool drop_capabilities)
{
    struct list list;
    int rc = list_read(change->fs, &change->inode->place, 0, &list);

    if (rc < 0)
        return rc;

    uint64_t from = list.size;
    uint64_t acl = mode ? find(&list, ACL_ACCESS) : list.size;

    if (acl < list.size && acl_is_valid(value_at(&list, acl), value_size(&list, acl))) {
        acl_from_mode(value_at(&list, acl), value_size(&list, acl), *mode);
        from = acl;
    }

    uint64_t capability = drop_capabilities ? find(&list, CAPABILITY) : list.size;

    if (capability < list.size) {
        take_out(&list, capability);
        from = from < capability ? from : capability;
    }
    if (from < change->inode->place.pm->xattr_size)
        rc = queue_list(change, &list, from);
    free(list.bytes);
    return rc;
}

/* What setting or, without a value, removing one changes. */
struct request {
    const char *name;
    const void *value;
    size_t size;
    unsigned flags;
    bool remove;
};

static bool is_acl(const char *name)
{
    return strcmp(name, ACL_ACCESS) == 0 || strcmp(name, ACL_DEFAULT) == 0;
}

/* A list that says no more than permission bits is kept as these only. */
static bool is_kept(const struct request *request)
{
    if (request->remove)
        return false;
    return strcmp(request->name, ACL_ACCESS) != 0 ||
           !acl_is_minimal(request->value, request->size);
}

static int queue_request(struct change *change, const struct request *request)
{
    uint64_t added =
        is_kept(request) ? size_of(strlen(request->name), request->size) : 0;
    struct list list;
    int rc = list_read(change->fs, &change->inode->place, added, &list);

    if (rc < 0)
        return rc;

    uint64_t at = find(&list, request->name);
    bool found = at < list.size;

    if (!found && (request->remove || request->flags & PMFS_XATTR_REPLACE))
        rc = -ENODATA;
    if (found && request->flags & PMFS_XATTR_CREATE)
        rc = -EEXIST;
    if (is_acl(request->name)) /* set or removed whatever is there */
        rc = 0;
    if (rc == 0 && found)
        take_out(&list, at);
    if (rc == 0 && list.size + added > xattr_size_max(change->fs))
        rc = -ENOSPC;
    if (rc == 0 && added)
        append(&list, request->name, request->value, request->size);
    if (rc == 0)
        rc = queue_list(change, &list, at);
    free(list.bytes);
    return rc;
}

/*
 * An access list changes the permission bits; who is not in the group loses a
 * set-group-ID bit by it.
 */
static int queue_mode(struct change *change, const struct request *request)
{
    uint32_t mode = change->inode->place.pm->mode;

    if (request->remove || strcmp(request->name, ACL_ACCESS) != 0)
        return 0;
    if (request->flags & PMFS_XATTR_DROPS_SETGID)
        mode &= ~(uint32_t)S_ISGID;
    return change_set_mode(change, acl_to_mode(request->value, request->size, mode));
}

static int change_locked(struct pmfs *fs, struct inode *inode,
                         const struct request *request)
{
    struct change change;
    int rc = change_begin(&change, fs, inode);

    if (rc < 0)
        return rc;
    change.head.mtime_ns = inode->place.pm->mtime_ns;
    rc = queue_request(&change, request);
    if (rc == 0)
        rc = queue_mode(&change, request);
    if (rc == 0)
        rc = change_set_head(&change);
    return fs_end(change.tx, rc);
}

static int check_name(const char *name)
{
    static const char *const prefixes[] = {"user.", "trusted.", "security."};
    size_t size = strnlen(name, PMFS_XATTR_NAME_MAX + 1);

    if (size == 0 || size > PMFS_XATTR_NAME_MAX)
        return -ERANGE;
    if (is_acl(name))
        return 0;
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(*prefixes); i++) {
        size_t prefix = strlen(prefixes[i]);

        if (strncmp(name, prefixes[i], prefix) == 0)
            return size > prefix ? 0 : -EINVAL;
    }
    return -EOPNOTSUPP;
}

/* What has an access list, or a default list. */
static int check_acl(const struct inode *inode, const struct request *request)
{
    if (!is_acl(request->name))
        return 0;
    if (inode->type == S_IFLNK)
        return -EOPNOTSUPP;
    if (request->remove)
        return 0;
    if (strcmp(request->name, ACL_DEFAULT) == 0 && !is_directory(inode))
        return -EACCES;
    return acl_is_valid(request->value, request->size) ? 0 : -EINVAL;
}

static int change(struct pmfs *fs, uint64_t ino, const struct request *request)
{
    struct inode *inode;
    int rc = check_name(request->name);

    if (rc == 0)
        rc = inode_get(fs, ino, LOCK_EXCLUSIVE, &inode);
    if (rc < 0)
        return rc;
    rc = check_acl(inode, request);
    if (rc == 0)
        rc = change_locked(fs, inode, request);
    inode_put(inode);
    return rc;
}

int pmfs_setxattr(struct pmfs *fs, uint64_t ino, const char *name, const void *value,
                  size_t size, unsigned flags)
{
    fs_forget_message();

    const struct request request = {name, value, size, flags, false};

    if (flags &
        ~(unsigned)(PMFS_XATTR_REPLACE | PMFS_XATTR_CREATE | PMFS_XATTR_DROPS_SETGID))
        return -EINVAL;
    return size > PMFS_XATTR_SIZE_MAX ? -E2BIG : change(fs, ino, &request);
}

int pmfs_removexattr(struct pmfs *fs, uint64_t ino, const char *name)
{
    fs_forget_message();

    const struct request request = {.name = name, .remove = true};

    return change(fs, ino, &request);
}

/* ---- Reading ------------------------------------------------------------------- */

/* Answers with bytes, as far as there is room for all of them; with none for their
 * count. */
static int answer(const void *bytes, uint64_t count, void *buffer, size_t capacity,
                  size_t *size)
{
    if (capacity && count > capacity)
        return -ERANGE;
    if (capacity && count)
        memcpy(buffer, bytes, count);
    *size = count;
    return 0;
}

static int get_locked(struct pmfs *fs, const struct inode *inode, const char *name,
                      void *value, size_t capacity, size_t *size)
{
    struct list list;
    int rc =
        inode->place.pm->xattr_size ? list_read(fs, &inode->place, 0, &list) : -ENODATA;

    if (rc < 0)
        return rc;

    uint64_t at = find(&list, name);

    rc = at < list.size
             ? answer(value_at(&list, at), value_size(&list, at), value, capacity, size)
             : -ENODATA;
    free(list.bytes);
    return rc;
}

int pmfs_getxattr(struct pmfs *fs, uint64_t ino, const char *name, void *value,
                  size_t capacity, size_t *size)
{
    fs_forget_message();

    struct inode *inode;
    int rc = check_name(name);

    if (rc == 0)
        rc = inode_get(fs, ino, LOCK_SHARED, &inode);
    if (rc < 0)
        return rc;
    rc = get_locked(fs, inode, name, value, capacity, size);
    inode_put(inode);
    return rc;
}

/* Packs the names at the start of the list itself: none is before what it is read from.
 */
static uint64_t pack_names(struct list *list)
{
    uint64_t packed = 0, entry = 0;

    for (uint64_t at = 0; at < list->size; at += entry) {
        const struct pm_xattr *pm = entry_at(list, at);
        uint8_t name_size = pm->name_size;

        entry = entry_size(pm);
        memmove(list->bytes + packed, pm->name, name_size);
        packed += name_size;
        list->bytes[packed++] = 0;
    }
    return packed;
}

int pmfs_listxattr(struct pmfs *fs, uint64_t ino, char *names, size_t capacity,
                   size_t *size)
{
    fs_forget_message();

    struct list list;
    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;
    rc = list_read(fs, &inode->place, 0, &list);
    inode_put(inode);
    if (rc < 0)
        return rc;

    uint64_t count = pack_names(&list);

    rc = answer(list.bytes, count, names, capacity, size);
    free(list.bytes);
    return rc;
}

/* ---- Inheriting ---------------------------------------------------------------- */

/* The attributes of what is made under a default list: that itself, in a directory, and
 * an access list, if it says more than the mode. */
static int inherit(const struct list *parent, uint64_t at, struct pm_inode *pm,
                   struct list *list)
{
    size_t size = value_size(parent, at);
    uint8_t *acl = value_at(parent, at); /* of a copy */

    list->size = 0;
    list->bytes = malloc(2 * size_of(sizeof(ACL_DEFAULT), size));
    if (!list->bytes)
        return -ENOMEM;
    if (S_ISDIR(pm->mode))
        append(list, ACL_DEFAULT, acl, size);
    pm->mode = acl_inherit(acl, size, pm->mode);
    if (!acl_is_minimal(acl, size))
        append(list, ACL_ACCESS, acl, size);
    pm->xattr_size = list->size;
    return 0;
}

int xattr_inherit(struct pmfs *fs, const struct inode *parent, uint32_t umask,
                  struct pm_inode *pm, uint8_t **bytes)
{
    struct list list = {0}, inherited = {0};
    int rc = 0;

    *bytes = NULL;
    if (S_ISLNK(pm->mode))
        return 0;
    if (parent->place.pm->xattr_size)
        rc = list_read(fs, &parent->place, 0, &list);
    if (rc < 0)
        return rc;

    uint64_t at = find(&list, ACL_DEFAULT);

    if (at < list.size && acl_is_valid(value_at(&list, at), value_size(&list, at))) {
        rc = inherit(&list, at, pm, &inherited);
        *bytes = inherited.bytes;
    } else {
        pm->mode &= ~(umask & 0777);
    }
    free(list.bytes);
    return rc;
}
