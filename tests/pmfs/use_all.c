/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/pmfs/use_all.h"

#include <string.h>

#define BUFFER_SIZE 8192u

static const struct pmfs_cred nobody = {.uid = 65534, .gid = 65533};

int visit_remember(void *arg, const struct pmfs_dirent *entry)
{
    struct visit *visit = arg;

    if (entry->name[0] == '.' || visit->count == VISIT_MAX)
        return 0;
    visit->inos[visit->count] = entry->ino;
    visit->parents[visit->count] = visit->parent;
    memcpy(visit->names[visit->count++], entry->name, entry->name_size + 1);
    return 0;
}

static void walk(struct pmfs *fs, struct visit *visit)
{
    visit->parent = PMFS_ROOT_INO;
    pmfs_readdir(fs, PMFS_ROOT_INO, 0, PMFS_READDIR_ATTR, visit_remember, visit);
    for (int i = 0; i < visit->count; i++) {
        visit->parent = visit->inos[i];
        pmfs_readdir(fs, visit->inos[i], 0, PMFS_READDIR_ATTR, visit_remember, visit);
    }
}

static void read_inode(struct pmfs *fs, uint64_t ino, uint64_t size, uint8_t *buffer)
{
    uint64_t found;
    size_t done;

    pmfs_read(fs, ino, 0, buffer, BUFFER_SIZE, &done);
    pmfs_read(fs, ino, size > 100 ? size - 100 : 0, buffer, 200, &done);
    pmfs_readlink(fs, ino, (char *)buffer, PMFS_SYMLINK_MAX + 1);
    pmfs_listxattr(fs, ino, (char *)buffer, 1000, &done);
    pmfs_getxattr(fs, ino, "user.a", buffer, 1000, &done);
    if (pmfs_seek(fs, ino, 0, PMFS_SEEK_HOLE, &found) == 0)
        pmfs_seek(fs, ino, found, PMFS_SEEK_DATA, &found);
}

static void change_inode(struct pmfs *fs, uint64_t ino, const uint8_t *buffer)
{
    const struct pmfs_attr size = {.size = 5000};
    uint64_t copied;
    size_t done;

    pmfs_write(fs, ino, 3000, buffer, 2000, 0, &done);
    pmfs_write(fs, ino, 0, buffer, 300, PMFS_APPEND, &done);
    pmfs_fallocate(fs, ino, 0, 6000, 20000);
    pmfs_fallocate(fs, ino, PMFS_KEEP_SIZE, 0, 60000);
    pmfs_fallocate(fs, ino, PMFS_ZERO_RANGE, 100, PMFS_FILE_SIZE_MAX - 100);
    pmfs_fallocate(fs, ino, PMFS_ZERO_RANGE, 100, 9000);
    pmfs_setxattr(fs, ino, "user.large", buffer, 5000, 0);
    pmfs_setxattr(fs, ino, "user.new", "new", 3, PMFS_XATTR_CREATE);
    pmfs_removexattr(fs, ino, "user.a");
    pmfs_fallocate(fs, ino, PMFS_KEEP_SIZE | PMFS_PUNCH_HOLE, 100, 9000);
    pmfs_copy_range(fs, ino, 0, ino, (uint64_t)1 << 30, 5000, &copied);
    pmfs_setattr(fs, ino, &size, PMFS_SET_SIZE | PMFS_SET_MODE, NULL);
}

static void use_attributes(struct pmfs *fs, uint64_t ino, uint8_t *buffer)
{
    size_t size;

    pmfs_listxattr(fs, ino, (char *)buffer, BUFFER_SIZE, &size);
    pmfs_getxattr(fs, ino, "user.large", buffer, BUFFER_SIZE, &size);
    pmfs_setxattr(fs, ino, "user.large", buffer, 5000, 0);
    pmfs_setxattr(fs, ino, "user.small", buffer, 10, 0);
    pmfs_removexattr(fs, ino, "user.first");
    pmfs_removexattr(fs, ino, "user.large");
}

static void use_inode(struct pmfs *fs, uint64_t ino)
{
    static uint8_t buffer[BUFFER_SIZE];
    struct pmfs_attr attr;

    if (pmfs_getattr(fs, ino, &attr) < 0)
        return;
    pmfs_open(fs, ino);
    read_inode(fs, ino, attr.size, buffer);
    change_inode(fs, ino, buffer);
    use_attributes(fs, ino, buffer);
    pmfs_release(fs, ino);
}

static void use_names(struct pmfs *fs, const struct visit *visit)
{
    struct pmfs_attr attr;

    for (int i = 0; i < visit->count; i++) {
        pmfs_lookup(fs, visit->parents[i], visit->names[i], &attr);
        pmfs_lookup(fs, visit->inos[i], "..", &attr);
        use_inode(fs, visit->inos[i]);
        pmfs_mknod(fs, visit->inos[i], "new", 0644, 0, &nobody, &attr);
        pmfs_mkdir(fs, PMFS_ROOT_INO, visit->names[i], 0755, &nobody, &attr);
    }
}

static void rename_all(struct pmfs *fs, const struct visit *visit)
{
    for (int i = 0; i < visit->count; i++) {
        int other = (i * 7 + 3) % visit->count;

        pmfs_rename(fs, visit->parents[i], visit->names[i], visit->parents[other],
                    "moved", 0);
        pmfs_rename(fs, visit->parents[other], "moved", visit->parents[i],
                    visit->names[i], i % 2 ? PMFS_RENAME_EXCHANGE : 0);
    }
}

void use_all(struct pmfs *fs)
{
    static struct visit visit;

    visit.count = 0;
    walk(fs, &visit);
    use_names(fs, &visit);
    rename_all(fs, &visit);
    for (int i = visit.count - 1; i >= 0; i--) {
        if (pmfs_unlink(fs, visit.parents[i], visit.names[i]) < 0)
            pmfs_rmdir(fs, visit.parents[i], visit.names[i]);
    }
}
