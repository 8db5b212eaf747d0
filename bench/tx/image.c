/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/tx/image.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child dies as from kill -9: no handler runs, nothing is closed in order. */
static int kill_busy_child(const char *path, image_leave_busy_fn *leave_busy)
{
    int status;
    pid_t child = fork();

    if (child < 0)
        return -errno;
    if (child == 0) {
        if (leave_busy(path) == 0)
            raise(SIGKILL);
        _exit(1);
    }
    if (waitpid(child, &status, 0) < 0)
        return -errno;
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : -ECHILD;
}

static int read_image(struct image *image)
{
    int fd = open(image->path, O_RDONLY | O_CLOEXEC);
    size_t done = 0;

    if (fd < 0)
        return -errno;
    while (done < image->size) {
        ssize_t count = read(fd, image->bytes + done, image->size - done);

        if (count <= 0)
            break;
        done += (size_t)count;
    }
    close(fd);
    return done == image->size ? 0 : -EIO;
}

int image_make(struct image *image, const char *path, size_t size,
               image_leave_busy_fn *leave_busy)
{
    *image = (struct image){.path = path, .bytes = malloc(size), .size = size};
    int rc = image->bytes ? kill_busy_child(path, leave_busy) : -ENOMEM;

    if (rc == 0)
        rc = read_image(image);
    if (rc < 0)
        image_finish(image);
    return rc;
}

void image_finish(struct image *image)
{
    free(image->bytes);
    image->bytes = NULL;
}

int image_restore(const struct image *image)
{
    int fd = open(image->path, O_WRONLY | O_CLOEXEC);
    size_t done = 0;

    if (fd < 0)
        return -errno;
    while (done < image->size) {
        ssize_t count = write(fd, image->bytes + done, image->size - done);

        if (count <= 0)
            break;
        done += (size_t)count;
    }
    close(fd);
    return done == image->size ? 0 : -EIO;
}

bool image_is_zero(const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (bytes[i] != 0)
            return false;
    return true;
}
