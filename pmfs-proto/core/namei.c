/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * namei.c - names: each call that changes any is one transaction, of entries, link
 * counts and inodes together.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pmfs-proto/core/dir.h"
#include "pmfs-proto/core/orphan.h"
#include "pmfs-proto/core/xattr.h"

/* ---- What all of them do ------------------------------------------------------- */

static bool is_dots(const char *name)
{
    return name[0] == '.' && (name[1] == 0 || (name[1] == '.' && name[2] == 0));
}

/* Pins and locks a directory in which something is to change. */
static int get_parent(struct pmfs *fs, uint64_t ino, struct inode **parent)
{
    int rc = inode_pin(fs, ino, parent);

    if (rc < 0)
        return rc;
    rc = dir_lock(fs, *parent, LOCK_EXCLUSIVE);
    if (rc == 0 && (*parent)->state == PM_STATE_ORPHAN) {
        inode_unlock(*parent);
        rc = -ENOENT; /* removed, and still in use */
    }
    if (rc < 0)
        inode_unpin(*parent);
    return rc;
}

/*
 * Pins what an entry of a locked directory names. A directory must agree that this is
 * where it is: so no damaged medium leads us round in circles of locks.
 */
static int pin_child(struct pmfs *fs, const struct inode *parent,
                     const struct pm_dirent *entry, struct inode **child)
{
    uint64_t ino = parent->place.ino;
    struct inode *found;
    int rc = inode_pin(fs, entry->ino, &found);

    if (rc == -ESTALE)
        return fs_error(EUCLEAN,
                        "directory %" PRIu64 ": an entry names inode %" PRIu64
                        ", which is free",
                        ino, entry->ino);
    if (rc < 0)
        return rc;
    if (is_directory(found) && (found == parent || found->place.pm->parent != ino)) {
        rc = fs_error(EUCLEAN,
                      "directory %" PRIu64 ": an entry names directory %" PRIu64
                      ", whose parent is %" PRIu64,
                      ino, entry->ino, found->place.pm->parent);
        inode_unpin(found);
        return rc;
    }
    *child = found;
    return 0;
}

/* The head of a directory in which a name changes. */
static struct inode_head changed_head(const struct inode *parent, int64_t now_ns)
{
    struct inode_head head = inode_head(parent);

    head.mtime_ns = now_ns;
    head.ctime_ns = now_ns;
    return head;
}

static int begin(struct pmfs *fs, struct minl2r_tx **tx)
{
    return fs_library_error(fs_begin(fs, tx), "begin", 0);
}

static int set_ctime(struct minl2r_tx *tx, const struct inode *inode, int64_t now_ns)
{
    struct inode_head head = inode_head(inode);

    head.ctime_ns = now_ns;
    return inode_set_head(tx, inode, &head);
}

/* ---- Looking up ---------------------------------------------------------------- */

/* Adds to how often the inode is open, or if that is 0, counts a lookup. */
static int answer(struct pmfs *fs, struct inode *inode, uint64_t opens,
                  struct pmfs_attr *attr)
{
    int rc = inode_lock(inode, LOCK_SHARED);

    if (rc < 0)
        return rc;
    inode_attr(fs, inode, attr);
    if (opens)
        __atomic_add_fetch(&inode->opens, opens, __ATOMIC_SEQ_CST);
    else
        inode_count_lookup(fs, inode);
    inode_unlock(inode);
    return 0;
}

static int lookup_dots(struct pmfs *fs, uint64_t ino, const char *name, uint64_t opens,
                       struct pmfs_attr *attr)
{
    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;

    uint64_t found = name[1] ? inode->place.pm->parent : ino;
    bool has_dots = is_directory(inode) || (!name[1] && fs->flags & PMFS_COUNT_LOOKUPS);

    inode_put(inode);
    if (!has_dots)
        return -ENOTDIR;
    rc = inode_pin(fs, found, &inode);
    if (rc < 0)
        return rc;
    rc = answer(fs, inode, opens, attr);
    inode_unpin(inode);
    return rc;
}

/* Under the parent's lock: nobody can take its last name away meanwhile. */
static int answer_entry(struct pmfs *fs, const struct inode *parent,
                        const struct pm_dirent *entry, uint64_t opens,
                        struct pmfs_attr *attr)
{
    bool is_counted = opens || fs->flags & PMFS_COUNT_LOOKUPS;
    struct inode *child;

    if (!is_counted && inode_peek(fs, entry->ino, attr))
        return 0;
    int rc = pin_child(fs, parent, entry, &child);
    if (rc < 0)
        return rc;
    rc = answer(fs, child, opens, attr);
    inode_unpin(child);
    return rc;
}

static int look_up(struct pmfs *fs, uint64_t parent_ino, const char *text,
                   uint64_t opens, struct pmfs_attr *attr)
{
    struct inode *parent;
    struct dir_entry entry;
    struct name name;
    int rc = name_init(&name, fs, text);

    if (rc < 0)
        return rc == -EINVAL ? -ENOENT : rc;
    if (is_dots(text))
        return lookup_dots(fs, parent_ino, text, opens, attr);
    rc = inode_pin(fs, parent_ino, &parent);
    if (rc < 0)
        return rc;
    rc = dir_lock(fs, parent, LOCK_SHARED);
    if (rc < 0)
        goto unpin;
    rc = dir_find(fs, parent, &name, &entry);
    if (rc == 0)
        rc = answer_entry(fs, parent, entry.pm, opens, attr);
    inode_unlock(parent);
unpin:
    inode_unpin(parent);
    return rc;
}

int pmfs_lookup(struct pmfs *fs, uint64_t parent, const char *name,
                struct pmfs_attr *attr)
{
    fs_forget_message();

    return look_up(fs, parent, name, 0, attr);
}

int pmfs_lookup_open(struct pmfs *fs, uint64_t parent, const char *name,
                     struct pmfs_attr *attr)
{
    fs_forget_message();

    return look_up(fs, parent, name, 1, attr);
}

void pmfs_forget(struct pmfs *fs, uint64_t ino, uint64_t count)
{
    struct inode *inode;

    if (!(fs->flags & PMFS_COUNT_LOOKUPS) || inode_pin(fs, ino, &inode) < 0)
        return;
    if (inode_uncount(&inode->lookups, count) == 0) {
        orphan_reap(fs, inode);
        inode_unused(fs, inode);
    }
    inode_unpin(inode);
}

int pmfs_open(struct pmfs *fs, uint64_t ino)
{
    fs_forget_message();

    struct inode *inode;
    int rc = inode_get(fs, ino, LOCK_SHARED, &inode);

    if (rc < 0)
        return rc;
    __atomic_add_fetch(&inode->opens, 1, __ATOMIC_SEQ_CST);
    inode_put(inode);
    return 0;
}

void pmfs_release(struct pmfs *fs, uint64_t ino)
{
    struct inode *inode;

    if (inode_pin(fs, ino, &inode) < 0)
        return;
    if (inode_uncount(&inode->opens, 1) == 0) {
        orphan_reap(fs, inode);
        inode_unused(fs, inode);
    }
    inode_unpin(inode);
}

/* ---- Making -------------------------------------------------------------------- */

struct make {
    struct pmfs *fs;
    struct minl2r_tx *tx;
    struct inode *parent;
    struct inode *child;
    struct name name;
    struct dir_entry place; /* where the name is to be */
    struct table_claim claim;
    enum pm_state state; /* of the child: used, or without a name an orphan */
    struct pm_inode pm;  /* of the child */
    const char *target;  /* of a symbolic link, else NULL */
    uint8_t *xattrs;     /* that it inherits; NULL: none */
};

/* Stores bytes in blocks of their own, under a node if they take several. */
static int add_bytes(struct make *make, const void *bytes, uint64_t size,
                     struct pm_map *map)
{
    struct pmfs *fs = make->fs;
    uint64_t count = blocks_of(fs, size);
    uint64_t nodes = count > 1;
    uint64_t offset;
    uint8_t *memory;
    int rc = minl2r_tx_alloc(make->tx, nodes + count, &offset, &memory);

    if (rc < 0)
        return fs_library_error(rc, "new inode", make->claim.place.ino);
    if (nodes) {
        uint64_t *slots = (uint64_t *)(void *)memory;

        memset(slots, 0, fs->block_size);
        for (uint64_t i = 0; i < count; i++)
            slots[i] = offset + ((1 + i) << fs->block_shift);
    }
    memory += nodes << fs->block_shift;
    memcpy(memory, bytes, size);
    memset(memory + size, 0, (count << fs->block_shift) - size);
    *map = (struct pm_map){.root = offset, .height = nodes};
    make->pm.blocks += nodes + count;
    return 0;
}

/* Fills the child's inode: nobody can find it before the commit, so it is fresh. */
static int add_inode(struct make *make)
{
    const struct inode_place *place = &make->claim.place;
    int rc = 0;

    if (make->target)
        rc = add_bytes(make, make->target, make->pm.size, &make->pm.map);
    if (rc == 0 && make->pm.xattr_size)
        rc = add_bytes(make, make->xattrs, make->pm.xattr_size, &make->pm.xattrs);
    if (rc < 0)
        return rc;
    make->pm.generation = place->pm->generation + 1;
    rc = minl2r_tx_write_fresh(make->tx, place->pm, &make->pm, PM_INODE_USED_SIZE);
    if (rc < 0)
        return fs_library_error(rc, "new inode", place->ino);
    return inode_set_state(make->tx, make->child, make->state);
}

static int add_name(struct make *make)
{
    const struct inode *parent = make->parent;
    struct dir_change change = {.head = changed_head(parent, make->pm.ctime_ns)};
    uint32_t type = make->pm.mode & S_IFMT;
    int rc = dir_add(make->fs, make->tx, parent, &make->name, &make->place,
                     make->claim.place.ino, type, &change);

    if (rc == 0)
        rc = inode_set_head(make->tx, parent, &change.head);
    if (rc == 0 && type == S_IFDIR)
        rc = inode_set_nlink(make->tx, parent, parent->place.pm->nlink + 1);
    return rc;
}

/* Makes the child, pinned and locked, by the transaction. end_child() must follow. */
static int add_child(struct make *make)
{
    struct pmfs *fs = make->fs;
    int rc = table_take(fs, make->tx, &make->claim);

    if (rc < 0)
        return rc;
    rc = inode_new(fs, &make->claim.place, make->pm.mode & S_IFMT, &make->child);
    if (rc < 0) {
        table_give_back(fs, &make->claim);
        return rc;
    }
    return add_inode(make);
}

/* After the transaction, and how that went. The child, if it was made, stays locked. */
static void end_child(struct make *make, int rc)
{
    struct pmfs *fs = make->fs;

    if (!make->child)
        return;
    if (rc == 0) {
        inode_made(make->child, make->state);
        table_keep(fs, &make->claim);
    } else {
        inode_forget(fs, make->child);
        inode_put(make->child);
        make->child = NULL;
        table_give_back(fs, &make->claim);
    }
}

static int make_transaction(struct make *make)
{
    int rc = begin(make->fs, &make->tx);

    if (rc < 0)
        return rc;
    rc = add_child(make);
    if (rc == 0 && make->state == PM_STATE_USED)
        rc = add_name(make);
    rc = fs_end(make->tx, rc);
    end_child(make, rc);
    return rc;
}

/* May this name be made here? */
static int check_new(struct make *make)
{
    const struct inode *parent = make->parent;
    int rc = dir_find(make->fs, parent, &make->name, &make->place);

    if (rc != -ENOENT)
        return rc < 0 ? rc : -EEXIST;
    if (S_ISDIR(make->pm.mode) && parent->place.pm->nlink >= PMFS_LINK_MAX)
        return -EMLINK;
    return 0;
}

/* What is to be made. */
struct request {
    uint32_t mode;
    uint64_t rdev;
    const char *target; /* of a symbolic link, else NULL */
    uint64_t opens;
    bool is_nameless; /* without a name, in what it inherits only in the directory */
    const struct pmfs_cred *cred;
};

static void init_inode(struct make *make, const struct request *request)
{
    const struct pm_inode *parent = make->parent->place.pm;
    bool is_dir = S_ISDIR(request->mode);
    bool inherits = parent->mode & S_ISGID;
    int64_t now = fs_now_ns();

    make->target = request->target;
    make->state = request->is_nameless ? PM_STATE_ORPHAN : PM_STATE_USED;
    make->pm = (struct pm_inode){
        .size = request->target ? strlen(request->target) : 0,
        .mtime_ns = now,
        .ctime_ns = now,
        .mode = is_dir && inherits ? request->mode | S_ISGID : request->mode,
        .nlink = request->is_nameless ? 0
                 : is_dir             ? 2
                                      : 1,
        .uid = request->cred->uid,
        .gid = inherits ? parent->gid : request->cred->gid,
        .atime_ns = now,
        .btime_ns = now,
        .rdev = request->rdev,
        .parent = is_dir ? make->parent->place.ino : 0,
        .flags = is_dir ? PM_INODE_HASHED : 0,
    };
}

/* With the parent locked. */
static int make_locked(struct make *make, const struct request *request,
                       struct pmfs_attr *attr)
{
    struct pmfs *fs = make->fs;
    int rc =
        xattr_inherit(fs, make->parent, request->cred->umask, &make->pm, &make->xattrs);

    if (rc == 0)
        rc = make_transaction(make);
    free(make->xattrs);
    if (rc < 0)
        return rc;
    if (request->opens) /* a locked instruction */
        __atomic_store_n(&make->child->opens, request->opens, __ATOMIC_SEQ_CST);
    inode_count_lookup(fs, make->child);
    inode_attr(fs, make->child, attr);
    return 0;
}

static int make_inode(struct pmfs *fs, uint64_t parent_ino, const char *text,
                      const struct request *request, struct pmfs_attr *attr)
{
    struct make make = {.fs = fs};
    int rc = name_init(&make.name, fs, text);

    if (rc < 0)
        return rc;
    if (is_dots(text))
        return -EEXIST;
    rc = get_parent(fs, parent_ino, &make.parent);
    if (rc < 0)
        return rc;
    init_inode(&make, request);
    rc = check_new(&make);
    if (rc == 0)
        rc = make_locked(&make, request, attr);
    if (rc == 0)
        inode_put(make.child);
    inode_put(make.parent);
    return rc;
}

int pmfs_mknod(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
               uint64_t rdev, const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    struct request request = {.mode = mode & (S_IFMT | 07777), .cred = cred};

    switch (mode & S_IFMT) {
    case 0:
        request.mode |= S_IFREG;
        break;
    case S_IFCHR:
    case S_IFBLK:
        request.rdev = rdev;
        break;
    case S_IFREG:
    case S_IFIFO:
    case S_IFSOCK:
        break;
    default:
        return -EINVAL;
    }
    return make_inode(fs, parent, name, &request, attr);
}

int pmfs_create(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
                const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    const struct request request = {
        .mode = S_IFREG | (mode & 07777),
        .opens = 1,
        .cred = cred,
    };

    return make_inode(fs, parent, name, &request, attr);
}

int pmfs_tmpfile(struct pmfs *fs, uint64_t parent, uint32_t mode, unsigned flags,
                 const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    const struct request request = {
        .mode = S_IFREG | (mode & 07777),
        .opens = 1,
        .is_nameless = true,
        .cred = cred,
    };
    struct make make = {.fs = fs};
    int rc = flags & ~(unsigned)PMFS_NEVER_LINKED ? -EINVAL
                                                  : inode_pin(fs, parent, &make.parent);

    if (rc < 0)
        return rc;
    rc = dir_lock(fs, make.parent, LOCK_SHARED);
    if (rc == 0) {
        init_inode(&make, &request);
        rc = make_locked(&make, &request, attr);
        inode_unlock(make.parent);
    }
    inode_unpin(make.parent);
    if (rc == 0) {
        make.child->linkable = !(flags & PMFS_NEVER_LINKED);
        inode_put(make.child);
    }
    return rc;
}

int pmfs_mkdir(struct pmfs *fs, uint64_t parent, const char *name, uint32_t mode,
               const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    const struct request request = {.mode = S_IFDIR | (mode & 07777), .cred = cred};

    return make_inode(fs, parent, name, &request, attr);
}

int pmfs_symlink(struct pmfs *fs, uint64_t parent, const char *name, const char *target,
                 const struct pmfs_cred *cred, struct pmfs_attr *attr)
{
    fs_forget_message();

    const struct request request = {
        .mode = S_IFLNK | 0777,
        .target = target,
        .cred = cred,
    };

    if (!*target)
        return -EINVAL;
    if (strnlen(target, PMFS_SYMLINK_MAX + 1) > PMFS_SYMLINK_MAX)
        return -ENAMETOOLONG;
    return make_inode(fs, parent, name, &request, attr);
}

/* ---- Linking ------------------------------------------------------------------- */

static int link_transaction(struct pmfs *fs, const struct inode *parent,
                            const struct inode *inode, const struct name *name,
                            const struct dir_entry *place)
{
    int64_t now = fs_now_ns();
    struct dir_change change = {.head = changed_head(parent, now)};
    struct minl2r_tx *tx;
    int rc = begin(fs, &tx);

    if (rc < 0)
        return rc;
    rc = dir_add(fs, tx, parent, name, place, inode->place.ino, inode->type, &change);
    if (rc == 0)
        rc = inode_set_head(tx, parent, &change.head);
    if (rc == 0)
        rc = inode_set_nlink(tx, inode, inode->place.pm->nlink + 1);
    if (rc == 0 && inode->state == PM_STATE_ORPHAN)
        rc = inode_set_state(tx, inode, PM_STATE_USED);
    if (rc == 0)
        rc = set_ctime(tx, inode, now);
    return fs_end(tx, rc);
}

static int link_locked(struct pmfs *fs, const struct inode *parent, struct inode *inode,
                       const struct name *name, struct pmfs_attr *attr)
{
    struct dir_entry entry;
    int rc = dir_find(fs, parent, name, &entry);

    if (rc != -ENOENT)
        return rc < 0 ? rc : -EEXIST;
    if (inode->state == PM_STATE_ORPHAN && !inode->linkable)
        return -ENOENT;
    if (inode->place.pm->nlink >= PMFS_LINK_MAX)
        return -EMLINK;
    rc = link_transaction(fs, parent, inode, name, &entry);
    if (rc == 0) {
        if (inode->state == PM_STATE_ORPHAN)
            inode_state_changed(inode, PM_STATE_USED);
        inode->linkable = false;
        inode_count_lookup(fs, inode);
        inode_attr(fs, inode, attr);
    }
    return rc;
}

int pmfs_link(struct pmfs *fs, uint64_t ino, uint64_t parent_ino, const char *text,
              struct pmfs_attr *attr)
{
    fs_forget_message();

    struct inode *parent, *inode;
    struct name name;
    int rc = name_init(&name, fs, text);

    if (rc < 0)
        return rc;
    if (is_dots(text))
        return -EEXIST;
    rc = inode_pin(fs, ino, &inode);
    if (rc < 0)
        return rc;
    rc = is_directory(inode) ? -EPERM : get_parent(fs, parent_ino, &parent);
    if (rc < 0)
        goto unpin;
    rc = inode_lock(inode, LOCK_EXCLUSIVE);
    if (rc == 0) {
        rc = link_locked(fs, parent, inode, &name, attr);
        inode_unlock(inode);
    }
    inode_put(parent);
unpin:
    inode_unpin(inode);
    return rc;
}

/* ---- Removing ------------------------------------------------------------------ */

/* Queues the loss of one name of `inode`. *state is what it will be. */
static int drop_name(struct pmfs *fs, struct minl2r_tx *tx, const struct inode *inode,
                     int64_t now_ns, enum pm_state *state)
{
    uint32_t nlink = inode->place.pm->nlink;
    int rc;

    *state = inode->state;
    if (is_directory(inode) || nlink <= 1)
        return orphan_unlink(fs, tx, inode, now_ns, state);
    rc = inode_set_nlink(tx, inode, nlink - 1);
    return rc < 0 ? rc : set_ctime(tx, inode, now_ns);
}

static int try_to_remove(struct pmfs *fs, struct inode *parent, struct inode *child,
                         const struct name *name, const struct dir_entry *entry,
                         struct dir_change *change)
{
    int64_t now = fs_now_ns();
    enum pm_state state = child->state;
    struct minl2r_tx *tx;
    int rc = begin(fs, &tx);

    if (rc != 0)
        return rc;
    change->head = changed_head(parent, now);
    /* In the order of make_transaction(): a lane's changes lie near those of its last
     * ones, one by one. */
    rc = drop_name(fs, tx, child, now, &state);
    if (rc == 0)
        rc = dir_remove(fs, tx, parent, name, entry, change);
    if (rc == 0)
        rc = inode_set_head(tx, parent, &change->head);
    if (rc == 0 && is_directory(child))
        rc = inode_set_nlink(tx, parent, parent->place.pm->nlink - 1);
    rc = fs_end(tx, rc);
    if (rc == 0)
        orphan_unlinked(fs, child, state);
    return rc;
}

static int remove_transaction(struct pmfs *fs, struct inode *parent,
                              struct inode *child, const struct name *name,
                              const struct dir_entry *entry)
{
    struct dir_change change = {0};
    int rc = try_to_remove(fs, parent, child, name, entry, &change);

    if (!dir_asks_again(&change, rc))
        return rc;
    change = (struct dir_change){.no_join = true};
    return try_to_remove(fs, parent, child, name, entry, &change);
}

/* Locks for removal. -ENOTEMPTY. */
static int lock_victim(struct pmfs *fs, struct inode *victim)
{
    bool is_empty;
    int rc = inode_lock(victim, LOCK_EXCLUSIVE);

    if (rc < 0 || !is_directory(victim))
        return rc;
    rc = dir_check_empty(fs, victim, &is_empty);
    if (rc == 0 && is_empty)
        return 0;
    inode_unlock(victim);
    return rc < 0 ? rc : -ENOTEMPTY;
}

static int remove_locked(struct pmfs *fs, struct inode *parent, const struct name *name,
                         bool directory, struct inode **child)
{
    struct dir_entry entry;
    int rc = dir_find(fs, parent, name, &entry);

    if (rc == 0)
        rc = pin_child(fs, parent, entry.pm, child);
    if (rc != 0)
        return rc;
    if (directory != is_directory(*child))
        rc = directory ? -ENOTDIR : -EISDIR;
    if (rc == 0)
        rc = lock_victim(fs, *child);
    if (rc == 0) {
        rc = remove_transaction(fs, parent, *child, name, &entry);
        inode_unlock(*child);
    }
    if (rc != 0)
        inode_unpin(*child);
    return rc;
}

static int remove_name(struct pmfs *fs, uint64_t parent_ino, const char *text,
                       bool directory)
{
    struct inode *parent, *child = NULL;
    struct name name;
    int rc = name_init(&name, fs, text);

    if (rc == 0)
        rc = get_parent(fs, parent_ino, &parent);
    if (rc != 0)
        return rc;
    rc = remove_locked(fs, parent, &name, directory, &child);
    inode_put(parent);
    if (rc != 0)
        return rc;
    orphan_reap(fs, child);
    inode_unpin(child);
    return 0;
}

int pmfs_unlink(struct pmfs *fs, uint64_t parent, const char *name)
{
    fs_forget_message();

    return is_dots(name) ? -EISDIR : remove_name(fs, parent, name, false);
}

int pmfs_rmdir(struct pmfs *fs, uint64_t parent, const char *name)
{
    fs_forget_message();

    if (is_dots(name))
        return name[1] ? -ENOTEMPTY : -EINVAL;
    return remove_name(fs, parent, name, true);
}

/* ---- Renaming ------------------------------------------------------------------ */

/* One side of a rename: a name in a directory, and what it names. */
struct side {
    struct inode *parent;
    struct name name;
    struct dir_entry entry;
    struct inode *inode;      /* NULL: none */
    struct dir_change change; /* of the parent */
    uint32_t nlink;           /* of the parent, as it will be */
};

struct rename {
    struct pmfs *fs;
    struct side from, to;
    unsigned flags;
    const struct pmfs_cred *cred; /* whose a whiteout is; NULL: none is made */
    struct make whiteout;         /* its child, or NULL */
    bool one_parent;
    bool no_join; /* of blocks where the old name was */
    enum pm_state victim_state;
};

/*
 * Is `ancestor` the directory `ino` or above it? With rename_lock, so that nothing
 * above moves.
 */
static int is_above(struct pmfs *fs, uint64_t ancestor, uint64_t ino, bool *above)
{
    uint64_t steps = table_end(fs);

    *above = false;
    for (; ino != ancestor && ino != PM_ROOT_INO; steps--) {
        struct inode *inode;
        int rc;

        if (steps == 0)
            return fs_error(EUCLEAN,
                            "directory %" PRIu64 ": its parents lead in a circle", ino);
        rc = inode_pin(fs, ino, &inode);
        if (rc == -ESTALE)
            return 0; /* above a removed directory */
        if (rc < 0)
            return rc;
        bool climbs = is_directory(inode);
        ino = inode->place.pm->parent;
        inode_unpin(inode);
        if (!climbs)
            return 0;
    }
    *above = ino == ancestor;
    return 0;
}

/* Locks two directories in the order of fs.h. */
static int lock_parents(struct pmfs *fs, struct inode *a, struct inode *b)
{
    bool b_first;
    int rc = is_above(fs, b->place.ino, a->place.ino, &b_first);
    bool a_first = false;

    if (rc == 0 && !b_first)
        rc = is_above(fs, a->place.ino, b->place.ino, &a_first);
    if (rc < 0)
        return rc;
    if (b_first || (!a_first && b->place.ino < a->place.ino)) {
        struct inode *swapped = a;

        a = b;
        b = swapped;
    }
    rc = dir_lock(fs, a, LOCK_EXCLUSIVE);
    if (rc < 0)
        return rc;
    rc = dir_lock(fs, b, LOCK_EXCLUSIVE);
    if (rc < 0)
        inode_unlock(a);
    return rc;
}

static int find_side(struct rename *rename, struct side *side)
{
    int rc;

    if (side->parent->state == PM_STATE_ORPHAN)
        return -ENOENT;
    rc = dir_find(rename->fs, side->parent, &side->name, &side->entry);
    if (rc == 0)
        rc = pin_child(rename->fs, side->parent, side->entry.pm, &side->inode);
    return rc;
}

static int find_both(struct rename *rename)
{
    int rc = find_side(rename, &rename->from);

    if (rc == 0)
        rc = find_side(rename, &rename->to);
    else
        return rc;
    if (rc == -ENOENT && rename->to.parent->state != PM_STATE_ORPHAN)
        rc = rename->flags & PMFS_RENAME_EXCHANGE ? -ENOENT : 0;
    return rc;
}

/* A directory may not come to lie in itself. With rename_lock. */
static int check_loops(struct rename *rename)
{
    const struct inode *from = rename->from.inode, *to = rename->to.inode;
    bool above = false;
    int rc = 0;

    if (is_directory(from))
        rc =
            is_above(rename->fs, from->place.ino, rename->to.parent->place.ino, &above);
    if (rc < 0 || above)
        return rc < 0 ? rc : -EINVAL;
    if (to && is_directory(to))
        rc =
            is_above(rename->fs, to->place.ino, rename->from.parent->place.ino, &above);
    if (rc < 0 || !above)
        return rc;
    return rename->flags & PMFS_RENAME_EXCHANGE ? -EINVAL : -ENOTEMPTY;
}

static int check_types(const struct rename *rename)
{
    const struct inode *from = rename->from.inode, *to = rename->to.inode;

    if (!to)
        return 0;
    if (rename->flags & PMFS_RENAME_NOREPLACE)
        return -EEXIST;
    if (rename->flags & PMFS_RENAME_EXCHANGE || is_directory(from) == is_directory(to))
        return 0;
    return is_directory(from) ? -ENOTDIR : -EISDIR;
}

static bool goes_first(const struct inode *a, const struct inode *b)
{
    if (is_directory(a) != is_directory(b))
        return is_directory(a);
    return a->place.ino < b->place.ino;
}

/* Locks what is moved and what is replaced or exchanged. */
static int lock_children(struct rename *rename)
{
    struct inode *from = rename->from.inode, *to = rename->to.inode;
    bool replaces = to && !(rename->flags & PMFS_RENAME_EXCHANGE);
    bool from_first = !to || goes_first(from, to);
    int rc = 0;

    if (from_first)
        rc = inode_lock(from, LOCK_EXCLUSIVE);
    if (rc < 0 || !to)
        return rc;
    rc = replaces ? lock_victim(rename->fs, to) : inode_lock(to, LOCK_EXCLUSIVE);
    if (rc < 0 && from_first)
        inode_unlock(from);
    if (rc < 0 || from_first)
        return rc;
    rc = inode_lock(from, LOCK_EXCLUSIVE);
    if (rc < 0)
        inode_unlock(to);
    return rc;
}

/* The link counts of the parents: each has one from every directory in it. */
static int count_links(struct rename *rename)
{
    struct side *from = &rename->from, *to = &rename->to;
    uint32_t leaves = is_directory(from->inode);
    uint32_t replaced = to->inode && is_directory(to->inode);
    uint32_t comes_back = rename->flags & PMFS_RENAME_EXCHANGE ? replaced : 0;

    from->nlink = from->parent->place.pm->nlink - leaves + comes_back;
    to->nlink = to->parent->place.pm->nlink + leaves - replaced;
    if (rename->one_parent) {
        from->nlink += leaves - replaced;
        return 0;
    }
    if ((leaves > replaced && to->nlink > PMFS_LINK_MAX) ||
        (comes_back > leaves && from->nlink > PMFS_LINK_MAX))
        return -EMLINK;
    return 0;
}

static int queue_entries(struct rename *rename, struct minl2r_tx *tx)
{
    struct side *from = &rename->from, *to = &rename->to;
    const struct inode *moved = from->inode;
    struct dir_change *change = rename->one_parent ? &from->change : &to->change;
    int rc;

    if (rename->one_parent || rename->cred)
        from->change.leaving = &from->entry;
    if (rename->cred) {
        from->change.heir = rename->whiteout.claim.place.ino;
        from->change.heir_type = S_IFCHR;
    }
    if (to->inode)
        rc = dir_replace(tx, to->parent, &to->entry, moved->place.ino, moved->type);
    else
        rc = dir_add(rename->fs, tx, to->parent, &to->name, &to->entry,
                     moved->place.ino, moved->type, change);
    if (rc < 0)
        return rc;
    if (to->inode && rename->flags & PMFS_RENAME_EXCHANGE)
        return dir_replace(tx, from->parent, &from->entry, to->inode->place.ino,
                           to->inode->type);
    if (rename->cred)
        return dir_pass_on(tx, from->parent, &from->change);
    return dir_remove(rename->fs, tx, from->parent, &from->name, &from->entry,
                      &from->change);
}

static int queue_parent(struct minl2r_tx *tx, const struct side *side)
{
    int rc = inode_set_head(tx, side->parent, &side->change.head);

    if (rc == 0 && side->nlink != side->parent->place.pm->nlink)
        rc = inode_set_nlink(tx, side->parent, side->nlink);
    return rc;
}

/* What was moved to `parent` changes, too. */
static int queue_moved(const struct rename *rename, struct minl2r_tx *tx,
                       const struct inode *moved, const struct inode *parent,
                       int64_t now)
{
    int rc = set_ctime(tx, moved, now);

    if (rc == 0 && is_directory(moved) && !rename->one_parent)
        rc = inode_set_parent(tx, moved, parent->place.ino);
    return rc;
}

static int queue_rename(struct rename *rename, struct minl2r_tx *tx)
{
    struct side *from = &rename->from, *to = &rename->to;
    int64_t now = fs_now_ns();
    int rc;

    from->change = (struct dir_change){.head = changed_head(from->parent, now),
                                       .no_join = rename->no_join};
    to->change = (struct dir_change){.head = changed_head(to->parent, now)};
    rc = queue_entries(rename, tx);
    if (rc == 0)
        rc = queue_parent(tx, from);
    if (rc == 0 && !rename->one_parent)
        rc = queue_parent(tx, to);
    if (rc == 0)
        rc = queue_moved(rename, tx, from->inode, to->parent, now);
    if (rc < 0 || !to->inode)
        return rc;
    if (rename->flags & PMFS_RENAME_EXCHANGE)
        return queue_moved(rename, tx, to->inode, from->parent, now);
    return drop_name(rename->fs, tx, to->inode, now, &rename->victim_state);
}

/* What stays in place of the old name. It has no attributes, inherited ones neither. */
static int add_whiteout(struct rename *rename, struct minl2r_tx *tx)
{
    const struct request request = {.mode = S_IFCHR, .cred = rename->cred};

    rename->whiteout.fs = rename->fs;
    rename->whiteout.tx = tx;
    rename->whiteout.parent = rename->from.parent;
    init_inode(&rename->whiteout, &request);
    return add_child(&rename->whiteout);
}

static int try_to_rename(struct rename *rename)
{
    struct inode *victim = rename->to.inode;
    struct minl2r_tx *tx;
    int rc = begin(rename->fs, &tx);

    if (rc < 0)
        return rc;
    if (rename->cred)
        rc = add_whiteout(rename, tx);
    if (rc == 0)
        rc = queue_rename(rename, tx);
    rc = fs_end(tx, rc);
    end_child(&rename->whiteout, rc);
    if (rc < 0)
        return rc;
    if (rename->whiteout.child)
        inode_put(rename->whiteout.child);
    if (victim && !(rename->flags & PMFS_RENAME_EXCHANGE))
        orphan_unlinked(rename->fs, victim, rename->victim_state);
    return 0;
}

static int rename_transaction(struct rename *rename)
{
    int rc = try_to_rename(rename);

    if (!dir_asks_again(&rename->from.change, rc))
        return rc;
    rename->no_join = true;
    return try_to_rename(rename);
}

/* With both parents locked. */
static int rename_locked(struct rename *rename)
{
    int rc = find_both(rename);

    if (rc == 0)
        rc = check_types(rename);
    if (rc < 0 || rename->from.inode == rename->to.inode)
        return rc; /* two names of one inode stay, as POSIX has it */
    if (!rename->one_parent)
        rc = check_loops(rename);
    if (rc == 0)
        rc = count_links(rename);
    if (rc == 0)
        rc = lock_children(rename);
    if (rc < 0)
        return rc;
    rc = rename_transaction(rename);
    inode_unlock(rename->from.inode);
    if (rename->to.inode)
        inode_unlock(rename->to.inode);
    return rc;
}

static int rename_in_one(struct rename *rename)
{
    int rc = dir_lock(rename->fs, rename->from.parent, LOCK_EXCLUSIVE);

    if (rc < 0)
        return rc;
    rc = rename_locked(rename);
    inode_unlock(rename->from.parent);
    return rc;
}

static int rename_between(struct rename *rename)
{
    struct inode *from = rename->from.parent, *to = rename->to.parent;
    int rc = is_directory(from) && is_directory(to) ? 0 : -ENOTDIR;

    if (rc < 0)
        return rc;
    pthread_mutex_lock(&rename->fs->rename_lock);
    rc = lock_parents(rename->fs, from, to);
    if (rc == 0) {
        rc = rename_locked(rename);
        inode_unlock(from);
        inode_unlock(to);
    }
    pthread_mutex_unlock(&rename->fs->rename_lock);
    return rc;
}

/* With both parents pinned. */
static int rename_pinned(struct rename *rename)
{
    struct inode *victim;
    int rc;

    rename->one_parent = rename->from.parent == rename->to.parent;
    rc = rename->one_parent ? rename_in_one(rename) : rename_between(rename);
    victim = rename->to.inode;
    if (victim) {
        orphan_reap(rename->fs, victim);
        inode_unpin(victim);
    }
    if (rename->from.inode)
        inode_unpin(rename->from.inode);
    return rc;
}

static int rename_names(struct pmfs *fs, uint64_t parent, const char *name,
                        uint64_t new_parent, const char *new_name, unsigned flags,
                        const struct pmfs_cred *cred)
{
    struct rename rename = {.fs = fs, .flags = flags, .cred = cred};
    int rc;

    if (is_dots(name) || is_dots(new_name))
        return -EINVAL;
    rc = name_init(&rename.from.name, fs, name);
    if (rc == 0)
        rc = name_init(&rename.to.name, fs, new_name);
    if (rc == 0)
        rc = inode_pin(fs, parent, &rename.from.parent);
    if (rc < 0)
        return rc;
    rc = inode_pin(fs, new_parent, &rename.to.parent);
    if (rc == 0) {
        rc = rename_pinned(&rename);
        inode_unpin(rename.to.parent);
    }
    inode_unpin(rename.from.parent);
    return rc;
}

int pmfs_rename(struct pmfs *fs, uint64_t parent, const char *name, uint64_t new_parent,
                const char *new_name, unsigned flags)
{
    fs_forget_message();

    if (flags > PMFS_RENAME_EXCHANGE)
        return -EINVAL;
    return rename_names(fs, parent, name, new_parent, new_name, flags, NULL);
}

int pmfs_rename_whiteout(struct pmfs *fs, uint64_t parent, const char *name,
                         uint64_t new_parent, const char *new_name, unsigned flags,
                         const struct pmfs_cred *cred)
{
    fs_forget_message();

    if (flags & ~(unsigned)PMFS_RENAME_NOREPLACE)
        return -EINVAL;
    return rename_names(fs, parent, name, new_parent, new_name, flags, cred);
}

/* ---- Listing ------------------------------------------------------------------- */

struct listing {
    struct pmfs *fs;
    const struct inode *dir;
    unsigned flags;
    pmfs_readdir_fn *take;
    void *arg;
    bool refused;
};

static int offer(struct listing *listing, const struct pmfs_dirent *entry)
{
    if (listing->take(listing->arg, entry) == 0)
        return 0;
    listing->refused = true;
    return 1;
}

/* With attributes, as far as they can be read: a damaged inode must not hide the
 * others. */
static int offer_with_attr(struct listing *listing, const struct pm_dirent *pm,
                           struct pmfs_dirent *entry)
{
    struct pmfs_attr attr;
    struct inode *child;
    int rc;

    if (pin_child(listing->fs, listing->dir, pm, &child) < 0)
        return offer(listing, entry);
    if (inode_lock(child, LOCK_SHARED) == 0) {
        inode_attr(listing->fs, child, &attr);
        inode_unlock(child);
        entry->attr = &attr;
    }
    rc = offer(listing, entry);
    if (rc == 0 && entry->attr)
        inode_count_lookup(listing->fs, child);
    inode_unpin(child);
    return rc;
}

static int visit(void *arg, const struct pm_dirent *pm, uint64_t next_cookie)
{
    struct listing *listing = arg;
    char name[PMFS_NAME_MAX + 1];
    struct pmfs_dirent entry = {
        .name = name,
        .ino = pm->ino,
        .mode = (uint32_t)pm->type << 12,
        .name_size = pm->name_size,
        .next_cookie = next_cookie,
    };

    memcpy(name, pm->name, pm->name_size);
    name[pm->name_size] = 0;
    return listing->flags & PMFS_READDIR_ATTR ? offer_with_attr(listing, pm, &entry)
                                              : offer(listing, &entry);
}

static int list_dots(struct listing *listing, uint64_t *cookie)
{
    const struct inode *dir = listing->dir;
    int rc = 0;

    for (; rc == 0 && *cookie < DIR_COOKIE_FIRST; ++*cookie) {
        const struct pmfs_dirent entry = {
            .name = *cookie ? ".." : ".",
            .ino = *cookie ? dir->place.pm->parent : dir->place.ino,
            .mode = S_IFDIR,
            .name_size = *cookie ? 2 : 1,
            .next_cookie = *cookie + 1,
        };

        rc = offer(listing, &entry);
    }
    return rc;
}

int pmfs_readdir(struct pmfs *fs, uint64_t ino, uint64_t cookie, unsigned flags,
                 pmfs_readdir_fn *take, void *arg)
{
    fs_forget_message();

    struct listing listing = {.fs = fs, .flags = flags, .take = take, .arg = arg};
    struct inode *inode;
    int rc;

    if (flags & ~(unsigned)PMFS_READDIR_ATTR)
        return -EINVAL;
    rc = inode_pin(fs, ino, &inode);
    if (rc < 0)
        return rc;
    listing.dir = inode;
    rc = dir_lock(fs, inode, LOCK_SHARED);
    if (rc == 0) {
        rc = list_dots(&listing, &cookie);
        if (rc == 0)
            rc = dir_list(fs, inode, cookie, visit, &listing);
        inode_unlock(inode);
    }
    inode_unpin(inode);
    return listing.refused ? 0 : rc;
}
