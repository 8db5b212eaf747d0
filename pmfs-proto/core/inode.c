/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/core/inode.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/spin.h"
#include "pmfs-proto/core/xattr.h"

#define SHARD_COUNT 64u
#define UNUSED_LIMIT_DEFAULT 65536u
#define BUCKETS_MIN 64u

/* Set in inode.pins when the cache no longer knows it: the last pin frees it. */
#define PIN_GONE 0x80000000u

/* How many inodes an addition looks at to find one to drop. */
#define SWEEP_STEPS 4

/*
 * A shard holds every 64th number of a group; another one in each group, as threads
 * take the first numbers of groups of their own. The ring goes through all its inodes,
 * for the sweep. Its lock is held for a few instructions, and belongs to the thread
 * that takes it first (spin.h): a call of the only thread has no locked instruction,
 * which would wait for the last commit's fence.
 */
struct shard {
    struct spin lock;
    struct inode **buckets;
    uint32_t bucket_count; /* power of two, at least `count` */
    uint32_t count;
    struct inode *hand; /* of the sweep; NULL: empty */
} __attribute__((aligned(128)));

struct inode_cache {
    uint32_t shard_limit; /* inodes kept although in no use, roughly */
    struct shard shards[SHARD_COUNT];
};

static struct shard *shard_of(const struct pmfs *fs, uint64_t ino)
{
    return &fs->cache->shards[(ino ^ ino / NUMBERS_GROUP) % SHARD_COUNT];
}

static struct inode **bucket_of(const struct shard *shard, uint64_t ino)
{
    return &shard->buckets[(ino / SHARD_COUNT) & (shard->bucket_count - 1)];
}

/* ---- One inode in DRAM --------------------------------------------------------- */

/* A new inode, pinned once. */
static struct inode *inode_create(struct shard *shard, uint64_t ino)
{
    struct inode *inode = calloc(1, sizeof(*inode));

    if (!inode)
        return NULL;
    inode->place.ino = ino;
    inode->shard = shard;
    inode->pins = 1;
    return inode;
}

/* ---- Shards, each function with its lock held ---------------------------------- */

static struct inode *shard_find(const struct shard *shard, uint64_t ino)
{
    struct inode *inode = *bucket_of(shard, ino);

    while (inode && inode->place.ino != ino)
        inode = inode->hash_next;
    return inode;
}

static void ring_add(struct shard *shard, struct inode *inode)
{
    if (!shard->hand) {
        inode->ring_next = inode->ring_prev = shard->hand = inode;
        return;
    }
    inode->ring_next = shard->hand;
    inode->ring_prev = shard->hand->ring_prev;
    inode->ring_prev->ring_next = inode;
    shard->hand->ring_prev = inode;
}

static void ring_remove(struct shard *shard, struct inode *inode)
{
    if (shard->hand == inode)
        shard->hand = inode->ring_next == inode ? NULL : inode->ring_next;
    inode->ring_next->ring_prev = inode->ring_prev;
    inode->ring_prev->ring_next = inode->ring_next;
}

/* More buckets when there are as many inodes; without memory it stays as it is. */
static void shard_rehash(struct shard *shard)
{
    uint32_t bucket_count = shard->bucket_count * 2;
    struct inode **buckets = calloc(bucket_count, sizeof(struct inode *));
    struct inode **old = shard->buckets;
    uint32_t old_count = shard->bucket_count;

    if (!buckets)
        return;
    shard->buckets = buckets;
    shard->bucket_count = bucket_count;
    for (uint32_t i = 0; i < old_count; i++) {
        for (struct inode *inode = old[i], *next; inode; inode = next) {
            struct inode **bucket = bucket_of(shard, inode->place.ino);

            next = inode->hash_next;
            inode->hash_next = *bucket;
            *bucket = inode;
        }
    }
    free(old);
}

static void shard_add(struct shard *shard, struct inode *inode)
{
    if (shard->count >= shard->bucket_count)
        shard_rehash(shard);

    struct inode **bucket = bucket_of(shard, inode->place.ino);

    inode->hash_next = *bucket;
    *bucket = inode;
    ring_add(shard, inode);
    shard->count++;
}

static void shard_remove(struct shard *shard, struct inode *inode)
{
    struct inode **link = bucket_of(shard, inode->place.ino);

    while (*link != inode)
        link = &(*link)->hash_next;
    *link = inode->hash_next;
    ring_remove(shard, inode);
    shard->count--;
}

/* Past the limit, drops what nobody uses, and nobody used since the hand last came by.
 */
static void shard_sweep(struct inode_cache *cache, struct shard *shard)
{
    for (int i = 0; i < SWEEP_STEPS && shard->hand; i++) {
        struct inode *inode = shard->hand;

        if (shard->count < cache->shard_limit)
            break;
        shard->hand = inode->ring_next;
        if (inode->used_lately) {
            inode->used_lately = false;
            continue;
        }
        /* Nobody has it pinned, so nobody can have it locked. */
        if (inode->pins > 0 || inode_in_use(inode))
            continue;
        shard_remove(shard, inode);
        free(inode);
    }
}

/* ---- Pins ---------------------------------------------------------------------- */

/* With the shard's lock. */
static void pin(struct inode *inode)
{
    inode->pins++;
    inode->used_lately = true;
}

/* With the shard's lock, and gives it back. */
static void unpin(struct inode *inode)
{
    struct shard *shard = inode->shard;
    bool is_last = --inode->pins == PIN_GONE;

    spin_unlock(&shard->lock);
    if (is_last)
        free(inode);
}

void inode_unpin(struct inode *inode)
{
    spin_lock(&inode->shard->lock);
    unpin(inode);
}

/* A new inode in the cache, locked for writing. With the shard's lock. */
static int add_locked(struct pmfs *fs, struct shard *shard, uint64_t ino,
                      struct inode **inode)
{
    shard_sweep(fs->cache, shard);
    *inode = inode_create(shard, ino);
    if (!*inode)
        return -ENOMEM;
    (*inode)->has_writer = true; /* nobody else can have it yet */
    shard_add(shard, *inode);
    return 0;
}

/*
 * The cached inode, pinned; or, of a number that is used, one yet to be read, pinned
 * and locked for writing, with *added.
 */
static int find_or_add(struct pmfs *fs, uint64_t ino, struct inode **inode, bool *added)
{
    struct shard *shard = shard_of(fs, ino);
    int rc = 0;

    spin_lock(&shard->lock);
    *inode = shard_find(shard, ino);
    *added = !*inode;
    if (*inode) {
        pin(*inode);
    } else {
        rc = table_is_used(fs, ino) ? add_locked(fs, shard, ino, inode) : -ESTALE;
    }
    spin_unlock(&shard->lock);
    return rc;
}

/* Fills an inode from media. It is used and was not cached: nobody changes it. */
static int inode_read(struct pmfs *fs, struct inode *inode)
{
    struct inode_place place;
    int rc = table_locate(fs, inode->place.ino, &place);

    if (rc < 0)
        return rc;

    uint8_t state = *place.state;

    rc = inode_check(fs, &place, state);
    if (rc < 0)
        return rc;
    inode->place.state = place.state;
    inode->place.pm = place.pm;
    inode->type = place.pm->mode & S_IFMT;
    inode_state_changed(inode, state);
    return 0;
}

/* Somebody reads it in or makes it, and has it locked meanwhile. */
static int wait_until_ready(struct inode *inode)
{
    int rc = inode_lock(inode, LOCK_SHARED);

    if (rc == 0)
        inode_unlock(inode);
    return rc;
}

int inode_pin(struct pmfs *fs, uint64_t ino, struct inode **result)
{
    struct inode *inode;
    bool added;
    int rc = find_or_add(fs, ino, &inode, &added);

    if (rc < 0)
        return rc;
    if (added) {
        rc = inode_read(fs, inode);
        if (rc < 0)
            inode_forget(fs, inode);
        __atomic_store_n(&inode->ready, true, __ATOMIC_RELEASE);
        inode_unlock(inode);
    } else if (!__atomic_load_n(&inode->ready, __ATOMIC_ACQUIRE)) {
        rc = wait_until_ready(inode);
    }
    if (rc < 0)
        inode_unpin(inode);
    else
        *result = inode;
    return rc;
}

uint64_t inode_uncount(uint64_t *counter, uint64_t count)
{
    uint64_t old = __atomic_load_n(counter, __ATOMIC_SEQ_CST);
    uint64_t left;

    do {
        left = old > count ? old - count : 0;
    } while (!__atomic_compare_exchange_n(counter, &old, left, false, __ATOMIC_SEQ_CST,
                                          __ATOMIC_SEQ_CST));
    return left;
}

void inode_unused(struct pmfs *fs, const struct inode *inode)
{
    struct shard *shard = shard_of(fs, inode->place.ino);

    spin_lock(&shard->lock);
    shard_sweep(fs->cache, shard);
    spin_unlock(&shard->lock);
}

/* With the shard's lock. Many readers must not keep a writer out for ever. */
static bool try_lock(struct inode *inode, enum lock_mode mode)
{
    uint32_t others = mode == LOCK_SHARED ? inode->writers_waiting : inode->readers;

    if (inode->has_writer || others > 0)
        return false;
    if (mode == LOCK_SHARED)
        inode->readers++;
    else
        inode->has_writer = true;
    return true;
}

/* The same, without the shard's lock while it waits. */
static void wait_for_lock(struct inode *inode, enum lock_mode mode)
{
    bool is_writer = mode == LOCK_EXCLUSIVE;

    inode->writers_waiting += is_writer;
    for (uint32_t round = 0; !try_lock(inode, mode); round++) {
        spin_unlock(&inode->shard->lock);
        spin_wait(round);
        spin_lock(&inode->shard->lock);
    }
    inode->writers_waiting -= is_writer;
}

int inode_lock(struct inode *inode, enum lock_mode mode)
{
    spin_lock(&inode->shard->lock);
    if (!try_lock(inode, mode))
        wait_for_lock(inode, mode);
    spin_unlock(&inode->shard->lock);
    if (!inode->gone)
        return 0;
    inode_unlock(inode);
    return -ESTALE;
}

/* With the shard's lock. */
static void release_lock(struct inode *inode)
{
    if (inode->has_writer)
        inode->has_writer = false;
    else
        inode->readers--;
}

void inode_unlock(struct inode *inode)
{
    spin_lock(&inode->shard->lock);
    release_lock(inode);
    spin_unlock(&inode->shard->lock);
}

/*
 * Nearly always it is cached and can be locked at once; else NULL. Who reads it in or
 * makes it has it locked until it is ready, or not to be found any more.
 */
static struct inode *find_and_lock(struct pmfs *fs, uint64_t ino, enum lock_mode mode)
{
    struct shard *shard = shard_of(fs, ino);

    spin_lock(&shard->lock);
    struct inode *inode = shard_find(shard, ino);

    if (inode && try_lock(inode, mode))
        pin(inode);
    else
        inode = NULL;
    spin_unlock(&shard->lock);
    return inode;
}

int inode_get(struct pmfs *fs, uint64_t ino, enum lock_mode mode, struct inode **inode)
{
    *inode = find_and_lock(fs, ino, mode);
    if (*inode)
        return 0;
    int rc = inode_pin(fs, ino, inode);

    if (rc < 0)
        return rc;
    rc = inode_lock(*inode, mode);
    if (rc < 0)
        inode_unpin(*inode);
    return rc;
}

void inode_put(struct inode *inode)
{
    spin_lock(&inode->shard->lock);
    release_lock(inode);
    unpin(inode);
}

int inode_new(struct pmfs *fs, const struct inode_place *place, uint32_t type,
              struct inode **inode)
{
    struct shard *shard = shard_of(fs, place->ino);

    spin_lock(&shard->lock);
    assert(!shard_find(shard, place->ino)); /* what is not used is not cached */
    int rc = add_locked(fs, shard, place->ino, inode);
    spin_unlock(&shard->lock);
    if (rc < 0)
        return rc;
    (*inode)->place.state = place->state;
    (*inode)->place.pm = place->pm;
    (*inode)->type = type;
    return 0;
}

void inode_made(struct inode *inode, enum pm_state state)
{
    inode_state_changed(inode, state);
    __atomic_store_n(&inode->ready, true, __ATOMIC_RELEASE);
}

void inode_forget(struct pmfs *fs, struct inode *inode)
{
    struct shard *shard = shard_of(fs, inode->place.ino);

    inode->gone = true;
    spin_lock(&shard->lock);
    shard_remove(shard, inode);
    inode->pins |= PIN_GONE;
    spin_unlock(&shard->lock);
}

/* ---- Life ---------------------------------------------------------------------- */

int cache_attach(struct pmfs *fs, uint64_t unused_limit)
{
    struct inode_cache *cache = aligned_alloc(128, sizeof(*cache));

    if (!cache)
        return fs_error(ENOMEM, "out of memory");
    memset(cache, 0, sizeof(*cache));
    if (unused_limit == 0)
        unused_limit = UNUSED_LIMIT_DEFAULT;
    if (unused_limit > UINT32_MAX)
        unused_limit = UINT32_MAX;
    cache->shard_limit = (uint32_t)(unused_limit / SHARD_COUNT) + 1;
    fs->cache = cache;
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *shard = &cache->shards[i];

        shard->bucket_count = BUCKETS_MIN;
        shard->buckets = calloc(BUCKETS_MIN, sizeof(struct inode *));
        if (!shard->buckets) {
            cache_detach(fs);
            return fs_error(ENOMEM, "out of memory");
        }
    }
    return 0;
}

void cache_detach(struct pmfs *fs)
{
    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *shard = &fs->cache->shards[i];

        while (shard->hand) {
            struct inode *inode = shard->hand;

            shard_remove(shard, inode);
            free(inode);
        }
        free(shard->buckets);
    }
    free(fs->cache);
    fs->cache = NULL;
}

uint64_t cache_inodes(struct pmfs *fs)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < SHARD_COUNT; i++) {
        spin_lock(&fs->cache->shards[i].lock);
        count += fs->cache->shards[i].count;
        spin_unlock(&fs->cache->shards[i].lock);
    }
    return count;
}

/* ---- What an inode may be ------------------------------------------------------ */

static bool is_type(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
    case S_IFDIR:
    case S_IFLNK:
    case S_IFIFO:
    case S_IFSOCK:
    case S_IFCHR:
    case S_IFBLK:
        return (mode & ~(uint32_t)(S_IFMT | 07777)) == 0;
    default:
        return false;
    }
}

static bool is_size(const struct pmfs *fs, uint32_t type, uint64_t size)
{
    switch (type) {
    case S_IFREG:
        return size <= PMFS_FILE_SIZE_MAX;
    case S_IFDIR:
        return size % fs->block_size == 0 && size >> fs->block_shift <= fs->block_count;
    case S_IFLNK:
        return size >= 1 && size <= PMFS_SYMLINK_MAX;
    default:
        return size == 0;
    }
}

static uint32_t flags_of_type(uint32_t type)
{
    switch (type) {
    case S_IFREG:
        return PM_INODE_BLOCKS_PAST_END;
    case S_IFDIR:
        return PM_INODE_HASHED;
    default:
        return 0;
    }
}

static bool is_hashed(const struct pm_inode *pm)
{
    return S_ISDIR(pm->mode) && pm->flags & PM_INODE_HASHED;
}

/* The name of the first field that cannot be so, or NULL. */
static const char *bad_field(const struct pmfs *fs, uint64_t ino,
                             const struct pm_inode *pm, uint8_t state)
{
    if (state == PM_STATE_FREE || state > PM_STATE_TRUNCATE)
        return "state";
    if (!is_type(pm->mode))
        return "mode";
    if (!is_size(fs, pm->mode & S_IFMT, pm->size))
        return "size";
    if ((pm->nlink == 0) != (state == PM_STATE_ORPHAN))
        return "link count";
    if (pm->map.height > (is_hashed(pm) ? 0 : fs->map_height))
        return "height of its block map";
    if (pm->blocks > fs->block_count)
        return "count of blocks";
    if (ino == PM_ROOT_INO &&
        ((pm->mode & S_IFMT) != S_IFDIR || pm->parent != PM_ROOT_INO || !pm->nlink))
        return "role as the root";
    if (pm->xattrs.height > 1 || pm->xattr_size > xattr_size_max(fs))
        return "size of extended attributes";
    if (pm->flags & ~flags_of_type(pm->mode & S_IFMT))
        return "flags";
    return NULL;
}

int inode_check(const struct pmfs *fs, const struct inode_place *place, uint8_t state)
{
    const char *field = bad_field(fs, place->ino, place->pm, state);

    if (!field)
        return 0;
    return fs_error(EUCLEAN, "inode %" PRIu64 ": its %s is impossible", place->ino,
                    field);
}

static void read_attr(const struct pmfs *fs, const struct inode_place *place,
                      struct pmfs_attr *attr)
{
    const struct pm_inode *pm = place->pm;

    *attr = (struct pmfs_attr){
        .ino = place->ino,
        .generation = pm->generation,
        .mode = pm->mode,
        .nlink = pm->nlink,
        .uid = pm->uid,
        .gid = pm->gid,
        .block_size = fs->block_size,
        .rdev = pm->rdev,
        .size = pm->size,
        .blocks = pm->blocks << (fs->block_shift - 9),
        .atime_ns = pm->atime_ns,
        .mtime_ns = pm->mtime_ns,
        .ctime_ns = pm->ctime_ns,
        .btime_ns = pm->btime_ns,
    };
}

void inode_attr(const struct pmfs *fs, const struct inode *inode,
                struct pmfs_attr *attr)
{
    read_attr(fs, &inode->place, attr);
}

/*
 * Whoever changes an inode has it in the cache, and to get it there takes the shard's
 * lock: as long as that is held, what is not cached does not change.
 */
static bool read_uncached(struct pmfs *fs, const struct inode_place *place,
                          struct pmfs_attr *attr)
{
    if (shard_find(shard_of(fs, place->ino), place->ino) ||
        !table_is_used(fs, place->ino) || S_ISDIR(place->pm->mode) ||
        bad_field(fs, place->ino, place->pm, *place->state))
        return false;
    read_attr(fs, place, attr);
    return true;
}

bool inode_peek(struct pmfs *fs, uint64_t ino, struct pmfs_attr *attr)
{
    struct shard *shard = shard_of(fs, ino);
    struct inode_place place;

    if (table_locate(fs, ino, &place) < 0)
        return false;
    spin_lock(&shard->lock);
    bool done = read_uncached(fs, &place, attr);
    spin_unlock(&shard->lock);
    return done;
}

uint64_t inode_blocks_end(const struct pmfs *fs, const struct inode *inode)
{
    const struct pm_inode *pm = inode->place.pm;

    if (pm->flags & PM_INODE_BLOCKS_PAST_END) {
        uint64_t height = pm->map.height;

        /* It was possible when the inode was cached; but on a damaged medium a file may
         * share its block, and be written since. Who uses the map then is told. */
        if (height > fs->map_height)
            height = fs->map_height;
        return (uint64_t)1 << (fs->map_shift * height);
    }
    return blocks_of(fs, pm->size);
}

/* ---- Changing one -------------------------------------------------------------- */

static int set_field(struct minl2r_tx *tx, const struct inode *inode, const void *field,
                     const void *value, size_t size)
{
    return fs_library_error(minl2r_tx_write(tx, field, value, size), "change",
                            inode->place.ino);
}

int inode_set_head(struct minl2r_tx *tx, const struct inode *inode,
                   const struct inode_head *head)
{
    const struct pm_inode *pm = inode->place.pm;

    if (head->blocks != pm->blocks)
        return set_field(tx, inode, pm, head, sizeof(*head));
    if (head->size != pm->size)
        return set_field(tx, inode, pm, head, offsetof(struct inode_head, blocks));
    return set_field(tx, inode, &pm->mtime_ns, &head->mtime_ns,
                     2 * sizeof(head->mtime_ns));
}

int inode_set_nlink(struct minl2r_tx *tx, const struct inode *inode, uint32_t nlink)
{
    return set_field(tx, inode, &inode->place.pm->nlink, &nlink, sizeof(nlink));
}

int inode_set_parent(struct minl2r_tx *tx, const struct inode *inode, uint64_t parent)
{
    return set_field(tx, inode, &inode->place.pm->parent, &parent, sizeof(parent));
}

int inode_set_state(struct minl2r_tx *tx, const struct inode *inode,
                    enum pm_state state)
{
    uint8_t byte = (uint8_t)state;

    return set_field(tx, inode, inode->place.state, &byte, sizeof(byte));
}

int inode_set_times_fresh(struct minl2r_tx *tx, const struct inode *inode,
                          int64_t mtime_ns, int64_t ctime_ns)
{
    const int64_t times[2] = {mtime_ns, ctime_ns};

    return fs_library_error(
        minl2r_tx_write_fresh(tx, &inode->place.pm->mtime_ns, times, sizeof(times)),
        "times", inode->place.ino);
}

void inode_state_changed(struct inode *inode, enum pm_state state)
{
    bool is_orphan = state == PM_STATE_ORPHAN;

    inode->state = state;
    if (state == PM_STATE_TRUNCATE)
        inode->cut_pending = true;
    /* Seldom, as it is a locked instruction. */
    if (__atomic_load_n(&inode->is_orphan, __ATOMIC_RELAXED) != is_orphan)
        __atomic_store_n(&inode->is_orphan, is_orphan, __ATOMIC_SEQ_CST);
}
