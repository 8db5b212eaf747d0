/* SPDX-License-Identifier: BSD-3-Clause */
/* hello POOL - a filesystem used in-process, as a user's program does. */
#include <err.h>
#include <errno.h>
#include <pmfs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a call says that failed with `rc` after mounting. */
static const char *why(int rc)
{
    return rc == -EUCLEAN || rc == -EIO ? pmfs_errormsg() : strerror(-rc);
}

int main(int argc, char **argv)
{
    static const char world[] = "world\n";
    const struct pmfs_cred me = {.uid = getuid(), .gid = getgid()};
    struct pmfs_fsck_summary summary;
    struct pmfs_attr attr;
    struct pmfs *fs;
    char text[16] = {0};
    size_t done;
    int rc;

    if (argc != 2)
        errx(2, "Usage: hello POOL");
    if (pmfs_mkfs(argv[1], 16 << 20, NULL) < 0 || pmfs_mount(argv[1], NULL, &fs) < 0)
        errx(1, "%s", pmfs_errormsg());
    rc = pmfs_create(fs, PMFS_ROOT_INO, "hello", 0644, &me, &attr);
    if (rc < 0)
        errx(1, "hello: %s", why(rc));
    rc = pmfs_write(fs, attr.ino, 0, world, strlen(world), 0, &done);
    if (rc == 0)
        rc = pmfs_read(fs, attr.ino, 0, text, sizeof(text) - 1, &done);
    if (rc < 0)
        errx(1, "hello: %s", why(rc));
    pmfs_release(fs, attr.ino);
    if (pmfs_unmount(fs) < 0)
        errx(1, "%s", pmfs_errormsg());
    if (pmfs_fsck(argv[1], NULL, NULL, &summary) < 0 || summary.files != 1)
        errx(1, "fsck: %s", pmfs_errormsg());
    fputs(text, stdout);
    return strcmp(text, world) == 0 ? 0 : 1;
}
