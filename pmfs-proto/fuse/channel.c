/* SPDX-License-Identifier: BSD-3-Clause */
#include "pmfs-proto/fuse/channel.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "pmfs-proto/fuse/ops.h"

static _Thread_local int own_fd; /* 0: none */
static _Thread_local bool kills; /* the request read last takes privileges */

/* What libfuse sends: a header, then the answer. */
static void add_flags(const struct iovec *pieces, int count, uint32_t offered)
{
    const struct fuse_out_header *header = pieces[0].iov_base;
    uint8_t *answer = count > 1 ? pieces[1].iov_base : NULL;
    uint32_t flags;

    if (header->error || !answer || pieces[1].iov_len < sizeof(struct fuse_init_out))
        return;
    answer += offsetof(struct fuse_init_out, flags);
    memcpy(&flags, answer, sizeof(flags));
    flags |= offered & (FUSE_HANDLE_KILLPRIV_V2 | FUSE_SETXATTR_EXT);
    memcpy(answer, &flags, sizeof(flags));
}

static ssize_t send_answer(int fd, struct iovec *pieces, int count, void *userdata)
{
    struct mount_state *state = userdata;

    /* The first answer comes alone: nothing else is asked before it. */
    if (!__atomic_load_n(&state->answered, __ATOMIC_RELAXED)) {
        add_flags(pieces, count, state->offered);
        __atomic_store_n(&state->answered, true, __ATOMIC_RELEASE);
    }
    return writev(own_fd ? own_fd : fd, pieces, count);
}

/* The first fields that libfuse knows, then the ones it does not, then name and value: takes
 * out what is in the middle. */
static size_t shorten_setxattr(struct fuse_in_header *header, uint8_t *body,
                               size_t size)
{
    const size_t known = FUSE_COMPAT_SETXATTR_IN_SIZE;
    const size_t extra = sizeof(struct fuse_setxattr_in) - known;

    memmove(body + known, body + known + extra, size - known - extra);
    header->len -= (uint32_t)extra;
    return extra;
}

/* Looks at a request, and makes one of it that libfuse knows; its size is then less by the
 * result. The kernel sends no short ones. */
static size_t translate(struct mount_state *state, struct fuse_in_header *header,
                        size_t size)
{
    void *body = header + 1;

    kills = false;
    switch (header->opcode) {
    case FUSE_INIT:
        state->offered = ((const struct fuse_init_in *)body)->flags;
        return 0;
    case FUSE_TMPFILE:
        header->opcode = FUSE_CREATE;
        return 0;
    case FUSE_WRITE:
        kills =
            ((const struct fuse_write_in *)body)->write_flags & FUSE_WRITE_KILL_SUIDGID;
        return 0;
    case FUSE_SETATTR:
        kills = ((const struct fuse_setattr_in *)body)->valid & FATTR_KILL_SUIDGID;
        return 0;
    case FUSE_SETXATTR:
        if (!(state->offered & FUSE_SETXATTR_EXT))
            return 0;
        kills = ((const struct fuse_setxattr_in *)body)->setxattr_flags &
                FUSE_SETXATTR_ACL_KILL_SGID;
        return shorten_setxattr(header, body, size - sizeof(*header));
    default:
        return 0;
    }
}

static ssize_t receive(int fd, void *buffer, size_t size, void *userdata)
{
    ssize_t got = read(own_fd ? own_fd : fd, buffer, size);
    const struct mount_state *state = userdata;

    /* What was agreed on with the first answer is there for whoever reads the next request:
     * by the kernel, and by this for those who do not see through it. */
    (void)__atomic_load_n(&state->answered, __ATOMIC_ACQUIRE);
    if (got >= (ssize_t)sizeof(struct fuse_in_header))
        got -= (ssize_t)translate(userdata, buffer, (size_t)got);
    return got;
}

bool channel_kills(void)
{
    return kills;
}

bool channel_tells_of_acls(const struct mount_state *state)
{
    return state->offered & FUSE_SETXATTR_EXT;
}

int channel_open(struct fuse_session *session)
{
    static const struct fuse_custom_io io = {.writev = send_answer, .read = receive};

    return fuse_session_custom_io(session, &io, fuse_session_fd(session));
}

void channel_open_own(struct fuse_session *session)
{
    uint32_t session_fd = (uint32_t)fuse_session_fd(session);
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);

    if (fd <= 0)
        return;
    if (ioctl(fd, FUSE_DEV_IOC_CLONE, &session_fd) < 0)
        close(fd);
    else
        own_fd = fd;
}

void channel_close_own(void)
{
    if (own_fd)
        close(own_fd);
    own_fd = 0;
}
