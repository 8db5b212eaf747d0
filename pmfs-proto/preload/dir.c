/* SPDX-License-Identifier: BSD-3-Clause */
/* dir.c - directory streams. */
#include "pmfs-proto/preload/preload.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Entries ------------------------------------------------------------------- */

_Static_assert(sizeof(ino_t) == 8 && sizeof(off_t) == 8 && DT_DIR == S_IFDIR >> 12,
               "struct dirent is what getdents64 fills");

struct listing {
    char *buffer;
    size_t size, used;
    uint64_t next; /* where to go on */
    bool is_full;
};

static int take(void *arg, const struct pmfs_dirent *entry)
{
    struct listing *listing = arg;
    size_t size = offsetof(struct dirent, d_name) + entry->name_size + 1;

    size = (size + 7) & ~(size_t)7;
    if (listing->size - listing->used < size) {
        listing->is_full = true;
        return 1;
    }

    struct dirent *dirent = (void *)(listing->buffer + listing->used);

    dirent->d_ino = entry->ino;
    dirent->d_off = (off_t)entry->next_cookie;
    dirent->d_reclen = (unsigned short)size;
    dirent->d_type = (unsigned char)(entry->mode >> 12);
    memcpy(dirent->d_name, entry->name, entry->name_size + 1);
    listing->used += size;
    listing->next = entry->next_cookie;
    return 0;
}

static long list(struct handle *file, void *buffer, size_t size)
{
    struct listing listing = {.buffer = buffer, .size = size};
    struct pmfs_attr attr;
    struct pmfs *fs;
    int rc = file->type == S_IFDIR ? pool_get(&fs) : -ENOTDIR;

    if (rc == 0)
        rc = pmfs_getattr(fs, file->ino, &attr);
    if (rc == 0 && attr.nlink == 0)
        rc = -ENOENT; /* removed */
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&file->lock);
    listing.next = file->offset;
    rc = pmfs_readdir(fs, file->ino, file->offset, 0, take, &listing);
    file->offset = listing.next;
    pthread_mutex_unlock(&file->lock);
    if (rc == 0 && listing.used == 0 && listing.is_full)
        rc = -EINVAL;
    return rc < 0 ? rc : (long)listing.used;
}

INTERPOSE(ssize_t, getdents64, (int fd, void *buffer, size_t size))
{
    struct handle *file = handle_get(fd);
    long rc;

    if (!file)
        return REAL(getdents64)(fd, buffer, size);
    rc = handle_begin(file, O_RDONLY);
    return handle_end(file, rc < 0 ? rc : list(file, buffer, size));
}

/* ---- Streams ------------------------------------------------------------------- */

enum { STREAMS_MAX = 4096, BUFFER_SIZE = 32 << 10 };

/* All lie in one array: that tells them from those of libc. */
static struct stream {
    bool is_used; /* atomic */
    int fd;
    pthread_mutex_t lock;
    char *buffer;
    size_t position, end; /* of what is still to be returned, in `buffer` */
    off_t cookie;         /* of the entry returned last */
} streams[STREAMS_MAX];

static struct stream *stream_of(DIR *dir)
{
    uintptr_t offset = (uintptr_t)dir - (uintptr_t)streams;

    return offset < sizeof(streams) ? (struct stream *)(void *)dir : NULL;
}

static struct stream *stream_new(int fd)
{
    char *buffer = malloc(BUFFER_SIZE);

    for (int i = 0; buffer && i < STREAMS_MAX; i++) {
        struct stream *stream = &streams[i];

        if (__atomic_exchange_n(&stream->is_used, true, __ATOMIC_ACQUIRE))
            continue;
        pthread_mutex_init(&stream->lock, NULL);
        stream->fd = fd;
        stream->buffer = buffer;
        stream->position = stream->end = 0;
        stream->cookie = 0;
        return stream;
    }
    errno = buffer ? EMFILE : ENOMEM;
    free(buffer);
    return NULL;
}

INTERPOSE(DIR *, fdopendir, (int fd))
{
    struct handle *file = handle_get(fd);
    int rc;

    if (!file)
        return REAL(fdopendir)(fd);
    rc = handle_begin(file, O_RDONLY);
    if (rc == 0 && file->type != S_IFDIR)
        rc = -ENOTDIR;
    if (handle_end(file, rc) < 0)
        return NULL;
    return (DIR *)(void *)stream_new(fd);
}

INTERPOSE(DIR *, opendir, (const char *path))
{
    struct place at;
    DIR *dir;
    int fd;

    if (place_to_host(&at, AT_FDCWD, path)) {
        dir = REAL(opendir)(at.path);
        place_host(&at, 0);
        return dir;
    }
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    dir = fdopendir(fd);
    if (!dir) {
        int errnum = errno;

        close(fd);
        errno = errnum;
    }
    return dir;
}

INTERPOSE(int, closedir, (DIR * dir))
{
    struct stream *stream = stream_of(dir);
    int fd;

    if (!stream)
        return REAL(closedir)(dir);
    fd = stream->fd;
    free(stream->buffer);
    pthread_mutex_destroy(&stream->lock);
    __atomic_store_n(&stream->is_used, false, __ATOMIC_RELEASE);
    return close(fd);
}

INTERPOSE(int, dirfd, (DIR * dir))
{
    struct stream *stream = stream_of(dir);

    return stream ? stream->fd : REAL(dirfd)(dir);
}

/* NULL at the end, and where errno says so. */
static struct dirent *next_entry(struct stream *stream)
{
    struct dirent *entry;

    if (stream->position == stream->end) {
        int errnum = errno;
        ssize_t size = getdents64(stream->fd, stream->buffer, BUFFER_SIZE);

        if (size <= 0) {
            /* A directory that was removed has no entries. */
            if (size == 0 || errno == ENOENT)
                errno = errnum;
            return NULL;
        }
        stream->position = 0;
        stream->end = (size_t)size;
    }
    entry = (void *)(stream->buffer + stream->position);
    stream->position += entry->d_reclen;
    stream->cookie = entry->d_off;
    return entry;
}

INTERPOSE(struct dirent *, readdir, (DIR * dir))
{
    struct stream *stream = stream_of(dir);
    struct dirent *entry;

    if (!stream)
        return REAL(readdir)(dir);
    pthread_mutex_lock(&stream->lock);
    entry = next_entry(stream);
    pthread_mutex_unlock(&stream->lock);
    return entry;
}
ALIAS(readdir64, readdir);

/* Returns the errno. */
static int read_entry(DIR *dir, struct dirent *entry, struct dirent **found)
{
    struct stream *stream = stream_of(dir);
    const struct dirent *next;
    int errnum = errno, rc;

    pthread_mutex_lock(&stream->lock);
    errno = 0;
    next = next_entry(stream);
    rc = errno;
    if (next)
        memcpy(entry, next, next->d_reclen);
    pthread_mutex_unlock(&stream->lock);
    errno = errnum;
    *found = next ? entry : NULL;
    return next ? 0 : rc;
}

#pragma GCC diagnostic ignored "-Wdeprecated-declarations" /* but programs call it */
INTERPOSE(int, readdir_r, (DIR * dir, struct dirent *entry, struct dirent **found))
{
    return stream_of(dir) ? read_entry(dir, entry, found)
                          : REAL(readdir_r)(dir, entry, found);
}
ALIAS(readdir64_r, readdir_r);

INTERPOSE(long, telldir, (DIR * dir))
{
    struct stream *stream = stream_of(dir);

    return stream ? stream->cookie : REAL(telldir)(dir);
}

INTERPOSE(void, seekdir, (DIR * dir, long cookie))
{
    struct stream *stream = stream_of(dir);

    if (!stream) {
        REAL(seekdir)(dir, cookie);
        return;
    }
    pthread_mutex_lock(&stream->lock);
    lseek(stream->fd, cookie, SEEK_SET);
    stream->position = stream->end = 0;
    stream->cookie = cookie;
    pthread_mutex_unlock(&stream->lock);
}

INTERPOSE(void, rewinddir, (DIR * dir))
{
    if (stream_of(dir))
        seekdir(dir, 0);
    else
        REAL(rewinddir)(dir);
}
