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

/* What libfuse sends: a header, then the answer. */
static void add_flags(const struct iovec *pieces, int count)
{
    const struct fuse_out_header *header = pieces[0].iov_base;
    uint8_t *answer = count > 1 ? pieces[1].iov_base : NULL;
    uint32_t flags;

    if (header->error || !answer || pieces[1].iov_len < sizeof(struct fuse_init_out))
        return;
    answer += offsetof(struct fuse_init_out, flags);
    memcpy(&flags, answer, sizeof(flags));
    flags |= FUSE_HANDLE_KILLPRIV_V2;
    memcpy(answer, &flags, sizeof(flags));
}

static ssize_t send_answer(int fd, struct iovec *pieces, int count, void *userdata)
{
    struct mount_state *state = userdata;

    /* The first answer comes alone: nothing else is asked before it. */
    if (!__atomic_load_n(&state->answered, __ATOMIC_RELAXED)) {
        add_flags(pieces, count);
        __atomic_store_n(&state->answered, true, __ATOMIC_RELAXED);
    }
    return writev(own_fd ? own_fd : fd, pieces, count);
}

static ssize_t receive(int fd, void *buffer, size_t size, void *userdata)
{
    struct fuse_in_header *header = buffer;
    ssize_t got = read(own_fd ? own_fd : fd, buffer, size);

    (void)userdata;
    if (got >= (ssize_t)sizeof(*header) && header->opcode == FUSE_TMPFILE)
        header->opcode = FUSE_CREATE;
    return got;
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
