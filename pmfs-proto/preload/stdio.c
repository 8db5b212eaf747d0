/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stdio.c - streams. Those of libc go to the kernel by ways inside of it, so a stream
 * of ours is one with functions (fopencookie), which call our read(2) and the like.
 * Streams that existed before do not follow their descriptor into the pool, but stdin,
 * stdout and stderr do: these variables get another stream meanwhile.
 */
#include "pmfs-proto/preload/preload.h"

#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Modes ----------------------------------------------------------------------- */

static const char ccs[] = ",ccs="; /* what comes after it in a mode is a codeset */

/* The flags of open(2) for a mode of fopen(3); -1: there is no such mode. */
static int flags_of(const char *mode)
{
    int flags;

    switch (*mode) {
    case 'r':
        flags = O_RDONLY;
        break;
    case 'w':
        flags = O_WRONLY | O_CREAT | O_TRUNC;
        break;
    case 'a':
        flags = O_WRONLY | O_CREAT | O_APPEND;
        break;
    default:
        return -1;
    }
    while (*++mode && *mode != ',') {
        if (*mode == '+')
            flags = (flags & ~O_ACCMODE) | O_RDWR;
        flags |= *mode == 'x' ? O_EXCL : *mode == 'e' ? O_CLOEXEC : 0;
    }
    return flags;
}

/* What fopencookie(3) makes of all that it does not know is not what fopen(3) does. */
static const char *plain_mode(int flags, const char *mode)
{
    bool both = (flags & O_ACCMODE) == O_RDWR;

    switch (*mode) {
    case 'r':
        return both ? "r+" : "r";
    case 'w':
        return both ? "w+" : "w";
    default:
        return both ? "a+" : "a";
    }
}

/* What libc's _flags mean besides those that headers name. */
enum {
    NO_READS = 0x4,
    NO_WRITES = 0x8,
    CURRENTLY_PUTTING = 0x800,
    IS_APPENDING = 0x1000,
};

/* ---- Streams of ours ----------------------------------------------------------- */

struct cookie {
    int fd;
    FILE *stream;
    struct wide *wide; /* of the lock of the stream */
    struct cookie *next;
};

static struct cookie *cookies;
static pthread_mutex_t cookies_lock = PTHREAD_MUTEX_INITIALIZER;

void stdio_lock(void)
{
    pthread_mutex_lock(&cookies_lock);
}

void stdio_unlock(void)
{
    pthread_mutex_unlock(&cookies_lock);
}

static struct cookie *cookie_of(FILE *stream)
{
    struct cookie *cookie;

    pthread_mutex_lock(&cookies_lock);
    for (cookie = cookies; cookie && cookie->stream != stream; cookie = cookie->next)
        ;
    pthread_mutex_unlock(&cookies_lock);
    return cookie;
}

struct wide **stdio_wide(FILE *stream)
{
    struct cookie *cookie = cookie_of(stream);

    return cookie ? &cookie->wide : NULL;
}

static ssize_t cookie_read(void *arg, char *buffer, size_t size)
{
    return read(((struct cookie *)arg)->fd, buffer, size);
}

static ssize_t cookie_write(void *arg, const char *buffer, size_t size)
{
    ssize_t done = write(((struct cookie *)arg)->fd, buffer, size);

    return done < 0 ? 0 : done; /* as fopencookie wants it */
}

static int cookie_seek(void *arg, off64_t *position, int whence)
{
    off_t at = lseek(((struct cookie *)arg)->fd, *position, whence);

    if (at < 0)
        return -1;
    *position = at;
    return 0;
}

static int cookie_close(void *arg)
{
    struct cookie *cookie = arg, **link = &cookies;
    int fd = cookie->fd;

    pthread_mutex_lock(&cookies_lock);
    while (*link != cookie)
        link = &(*link)->next;
    *link = cookie->next;
    pthread_mutex_unlock(&cookies_lock);
    wide_free(cookie->wide);
    free(cookie);
    return close(fd);
}

static FILE *stream_on(int fd, const char *mode)
{
    const cookie_io_functions_t functions = {
        .read = cookie_read,
        .write = cookie_write,
        .seek = cookie_seek,
        .close = cookie_close,
    };
    struct cookie *cookie = malloc(sizeof(*cookie));
    int flags = flags_of(mode);

    if (!cookie)
        return NULL;
    cookie->fd = fd;
    cookie->wide = NULL;
    cookie->stream = fopencookie(cookie, plain_mode(flags, mode), functions);
    if (!cookie->stream) {
        free(cookie);
        return NULL;
    }
    cookie->stream->_mode = 0; /* libc takes it for one of bytes, see wide.c */
    pthread_mutex_lock(&cookies_lock);
    cookie->next = cookies;
    cookies = cookie;
    pthread_mutex_unlock(&cookies_lock);
    return cookie->stream;
}

/* ---- Opening ------------------------------------------------------------------- */

/* Makes it wide if its mode names a codeset; closes it if that is none. */
static FILE *with_codeset(FILE *stream, const char *mode)
{
    const char *codeset = strstr(mode, ccs);
    char name[64];

    if (!codeset)
        return stream;
    codeset += sizeof(ccs) - 1;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(codeset, ","), codeset);

    struct wide *wide = wide_new_of(name);

    if (wide) {
        *stdio_wide(stream) = wide;
        return stream;
    }
    fclose(stream);
    errno = EINVAL;
    return NULL;
}

/* Who only appends begins at the end. */
static void seek_to_end(int fd, int flags)
{
    if (flags & O_APPEND && (flags & O_ACCMODE) == O_WRONLY)
        lseek(fd, 0, SEEK_END);
}

/* Puts a stream on a descriptor of ours, which is closed if that fails. */
static FILE *open_stream(int fd, const char *mode)
{
    FILE *stream;

    if (fd < 0)
        return NULL;
    stream = stream_on(fd, mode);
    if (!stream) {
        close(fd);
        return NULL;
    }
    seek_to_end(fd, flags_of(mode));
    return with_codeset(stream, mode);
}

INTERPOSE(FILE *, fopen, (const char *path, const char *mode))
{
    struct place at;
    FILE *stream;
    int flags;

    if (place_to_host(&at, AT_FDCWD, path)) {
        stream = REAL(fopen)(at.path, mode);
        place_host(&at, 0);
        return stream;
    }
    flags = flags_of(mode);
    if (flags < 0) {
        errno = EINVAL;
        return NULL;
    }
    return open_stream(open(path, flags, 0666), mode);
}
ALIAS(fopen64, fopen);

/* May a stream of these flags be put on the descriptor? */
static bool fits(int fd, int flags)
{
    int fd_flags = fcntl(fd, F_GETFL);
    int access = fd_flags & O_ACCMODE;

    return fd_flags >= 0 && (access == O_RDWR || access == (flags & O_ACCMODE));
}

INTERPOSE(FILE *, fdopen, (int fd, const char *mode))
{
    int flags;

    if (!fd_is_ours(fd))
        return REAL(fdopen)(fd, mode);
    flags = flags_of(mode);
    if (flags < 0 || !fits(fd, flags)) {
        errno = EINVAL;
        return NULL;
    }
    if (flags & O_APPEND)
        fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_APPEND);
    seek_to_end(fd, flags);
    return stream_on(fd, mode);
}

INTERPOSE(int, fileno, (FILE * stream))
{
    const struct cookie *cookie = cookie_of(stream);

    return cookie ? cookie->fd : REAL(fileno)(stream);
}
ALIAS(fileno_unlocked, fileno);

/* ---- stdin, stdout, stderr ----------------------------------------------------- */

static struct {
    FILE **variable;
    const char *mode;
    FILE *original, *own; /* NULL until needed */
} standard[] = {
    {&stdin, "r", NULL, NULL}, {&stdout, "w", NULL, NULL}, {&stderr, "w", NULL, NULL}};

void stdio_flush(int fd)
{
    fflush(*standard[fd].variable);
}

static FILE *own_stream(int fd)
{
    if (!standard[fd].own) {
        standard[fd].original = *standard[fd].variable;
        standard[fd].own = stream_on(fd, standard[fd].mode);
        if (standard[fd].own && fd == STDERR_FILENO)
            setvbuf(standard[fd].own, NULL, _IONBF, 0);
    }
    return standard[fd].own;
}

void stdio_follow(int fd)
{
    FILE *stream = fd_is_ours(fd) ? own_stream(fd) : standard[fd].original;

    if (stream)
        *standard[fd].variable = stream;
}

/* ---- freopen ------------------------------------------------------------------- */

static bool is_standard(FILE *stream, int fd)
{
    return fd >= 0 && fd <= STDERR_FILENO && stream == *standard[fd].variable;
}

/* Can the stream, or the one that takes the place of a standard one, be used so? */
static bool can_follow(FILE *stream, int flags)
{
    int fd = fileno(stream);

    if (!is_standard(stream, fd))
        return cookie_of(stream);
    return (flags & O_ACCMODE) == (fd == STDIN_FILENO ? O_RDONLY : O_WRONLY);
}

/*
 * Makes a stream of ours as if opened with these flags: it has nothing in its buffer, and
 * no orientation any more, nor, as libc has it, the codeset of a mode.
 */
static void start_again(FILE *stream, int flags)
{
    struct wide **wide = stdio_wide(stream);
    int access = flags & O_ACCMODE;

    stream->_flags &= ~(NO_READS | NO_WRITES | IS_APPENDING | CURRENTLY_PUTTING |
                        _IO_ERR_SEEN | _IO_EOF_SEEN);
    stream->_flags |= (access == O_RDONLY ? NO_WRITES : 0) |
                      (access == O_WRONLY ? NO_READS : 0) |
                      (flags & O_APPEND ? IS_APPENDING : 0);
    stream->_IO_read_base = stream->_IO_read_ptr = stream->_IO_read_end =
        stream->_IO_buf_base;
    stream->_IO_write_base = stream->_IO_write_ptr = stream->_IO_write_end =
        stream->_IO_buf_base;
    wide_free(*wide);
    *wide = NULL;
    stream->_mode = 0;
}

/* Opens what the descriptor is, anew. */
static int open_again(int fd, int flags)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, flags & ~(O_CREAT | O_EXCL));
}

/* The file takes the place of the stream's descriptor; no path: it is the same file. */
static FILE *reopen(const char *path, int flags, FILE *stream)
{
    bool is_ours = cookie_of(stream);
    int fd = fileno(stream);
    bool follows = is_standard(stream, fd);
    bool stays = fcntl(fd, F_GETFD) & FD_CLOEXEC; /* as libc has it */
    int new_fd, rc;

    fflush(stream);
    new_fd = path ? open(path, flags, 0666) : open_again(fd, flags);
    if (new_fd < 0)
        return NULL;
    __fpurge(stream);
    clearerr(stream);
    rc = dup3(new_fd, fd, flags & O_CLOEXEC || (is_ours && stays) ? O_CLOEXEC : 0);
    close(new_fd);
    if (rc < 0)
        return NULL;
    if (!is_ours)
        return *standard[fd].variable;
    if (follows && stream != *standard[fd].variable) { /* out of the pool again */
        stream = *standard[fd].variable;
        __fpurge(stream);
        clearerr(stream);
        return stream;
    }
    start_again(stream, flags);
    seek_to_end(fd, flags);
    return stream;
}

INTERPOSE(FILE *, freopen, (const char *path, const char *mode, FILE *stream))
{
    struct place at;
    int flags;

    if (!cookie_of(stream)) {
        if (!path)
            return REAL(freopen)(path, mode, stream);
        if (place_to_host(&at, AT_FDCWD, path)) {
            stream = REAL(freopen)(at.path, mode, stream);
            place_host(&at, 0);
            return stream;
        }
    }
    flags = flags_of(mode);
    if (flags < 0) {
        errno = EINVAL;
        return NULL;
    }
    if (can_follow(stream, flags))
        return reopen(path, flags, stream);
    say_once(NOTICE_STREAM,
             "a stream can be reopened on %s only if it was opened there, or is a "
             "standard stream to be used in the same way",
             path ? path : "the same file");
    errno = EOPNOTSUPP;
    return NULL;
}
ALIAS(freopen64, freopen);
