/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs do with files, through the kernel. */
#include "tests/mount/mount_fixture.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <sys/xattr.h>

#include "pmfs-proto/fuse/status.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)

static struct stat stat_of(const char *path)
{
    struct stat status;

    assert_success(lstat(path, &status));
    return status;
}

static int open_new(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

    assert_success(fd);
    return fd;
}

/* Transactions committed since the filesystem was mounted. */
static uint64_t commits(const struct mount_fixture *f)
{
    struct pmfs_status status;
    int fd = open(f->mountpoint, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_success(fd);
    assert_success(ioctl(fd, PMFS_IOC_STATUS, &status));
    close(fd);
    return status.stats.commits;
}

/* Drops every cached page and name, so that what is read next comes from the pool. */
static void remount(struct mount_fixture *f)
{
    unmount_fs(f);
    mount_fs(f, NULL);
}

/* ---- Content ----------------------------------------------------------------- */

static void written_bytes_are_read_back_after_a_remount(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4095, 4096, 4097, 100000};
    static char content[100000];
    struct mount_fixture *f = *state;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char name[32];
        fill_pattern(content, sizes[i], i);
        snprintf(name, sizeof(name), "of-%zu-bytes", sizes[i]);
        write_file(in_mount(f, name), content, sizes[i]);
    }
    remount(f);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char name[32];
        fill_pattern(content, sizes[i], i);
        snprintf(name, sizeof(name), "of-%zu-bytes", sizes[i]);
        assert_file_holds(in_mount(f, name), content, sizes[i]);
    }
}

static void overwriting_at_any_offset_changes_just_these_bytes(void **state)
{
    static char content[3 * 4096], patch[4096];
    struct mount_fixture *f = *state;
    uint64_t random = 42;

    fill_pattern(content, sizeof(content), 1);
    write_file(in_mount(f, "file"), content, sizeof(content));
    int fd = open(in_mount(f, "file"), O_WRONLY | O_CLOEXEC);
    assert_success(fd);
    for (uint64_t i = 0; i < 200; i++) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        size_t size = (random >> 33) % sizeof(patch) + 1;
        size_t offset = (random >> 45) % (sizeof(content) - size + 1);
        fill_pattern(patch, size, i);
        memcpy(content + offset, patch, size);
        assert_int_equal(pwrite(fd, patch, size, (off_t)offset), size);
    }
    close(fd);
    remount(f);
    assert_file_holds(in_mount(f, "file"), content, sizeof(content));
}

static void a_large_file_is_read_back(void **state)
{
    struct mount_fixture *f = *state;
    char *content = malloc(40 * MIB);

    assert_non_null(content);
    fill_pattern(content, 40 * MIB, 7);
    write_file(in_mount(f, "large"), content, 40 * MIB);
    remount(f);
    assert_file_holds(in_mount(f, "large"), content, 40 * MIB);
    free(content);
}

static void a_sparse_file_reads_zeros_and_takes_few_blocks(void **state)
{
    static char zeros[64 * KIB];
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "sparse"));
    char found[64 * KIB];

    assert_int_equal(pwrite(fd, "end", 3, (off_t)1 << 40), 3);
    assert_int_equal(pread(fd, found, sizeof(found), (off_t)1 << 39), sizeof(found));
    assert_memory_equal(found, zeros, sizeof(found));
    close(fd);
    assert_int_equal(stat_of(in_mount(f, "sparse")).st_size, ((off_t)1 << 40) + 3);
    assert_in_range(stat_of(in_mount(f, "sparse")).st_blocks, 8, 64);
}

static void truncate_cuts_and_grows_with_zeros(void **state)
{
    static char content[10000];
    struct mount_fixture *f = *state;

    fill_pattern(content, sizeof(content), 1);
    write_file(in_mount(f, "file"), content, sizeof(content));
    assert_success(truncate(in_mount(f, "file"), 5000));
    assert_success(truncate(in_mount(f, "file"), 9000));
    memset(content + 5000, 0, 4000);
    assert_file_holds(in_mount(f, "file"), content, 9000);
    remount(f);
    assert_file_holds(in_mount(f, "file"), content, 9000);
}

static void opening_with_o_trunc_empties_the_file(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "file"), "long content", 12);
    write_file(in_mount(f, "file"), "short", 5);
    assert_file_holds(in_mount(f, "file"), "short", 5);
}

#define MAP_SIZE 12288

static void mapped_stores_are_read_and_survive_a_remount(void **state)
{
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "mapped"));
    char found[5];

    assert_success(ftruncate(fd, MAP_SIZE));
    char *map = mmap(NULL, MAP_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    memcpy(map + 4094, "hello", 5);
    assert_int_equal(pread(fd, found, 5, 4094), 5);
    assert_memory_equal(found, "hello", 5);
    assert_success(msync(map, MAP_SIZE, MS_SYNC));
    munmap(map, MAP_SIZE);
    close(fd);
    remount(f);
    fd = open(in_mount(f, "mapped"), O_RDONLY | O_CLOEXEC);
    assert_int_equal(pread(fd, found, 5, 4094), 5);
    assert_memory_equal(found, "hello", 5);
    close(fd);
}

#define APPEND_COUNT 500
#define APPEND_THREADS 4

struct appender {
    const char *path;
    char letter;
};

static void *append_lines(void *arg)
{
    const struct appender *appender = arg;
    char line[101];
    int fd = open(appender->path, O_WRONLY | O_APPEND | O_CLOEXEC);

    memset(line, appender->letter, sizeof(line));
    line[sizeof(line) - 1] = '\n';
    for (int i = 0; i < APPEND_COUNT; i++) {
        if (write(fd, line, sizeof(line)) != (ssize_t)sizeof(line))
            break;
    }
    close(fd);
    return NULL;
}

static void privately_mapped_stores_reach_nobody(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "mapped"), "content", 7);
    int fd = open(in_mount(f, "mapped"), O_RDONLY | O_CLOEXEC);
    char *map = mmap(NULL, 7, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_memory_equal(map, "content", 7);
    memset(map, 'x', 7);
    assert_file_holds(in_mount(f, "mapped"), "content", 7);
    assert_memory_equal(map, "xxxxxxx", 7);
    munmap(map, 7);
    close(fd);
    remount(f);
    assert_file_holds(in_mount(f, "mapped"), "content", 7);
}

static void concurrent_appends_do_not_overwrite_each_other(void **state)
{
    struct mount_fixture *f = *state;
    char path[PATH_MAX], line[256];
    pthread_t threads[APPEND_THREADS];
    struct appender appenders[APPEND_THREADS];
    int counts[APPEND_THREADS] = {0};

    snprintf(path, sizeof(path), "%s", in_mount(f, "log"));
    write_file(path, "", 0);
    for (int i = 0; i < APPEND_THREADS; i++) {
        appenders[i] = (struct appender){path, (char)('a' + i)};
        assert_int_equal(pthread_create(&threads[i], NULL, append_lines, &appenders[i]),
                         0);
    }
    for (int i = 0; i < APPEND_THREADS; i++)
        pthread_join(threads[i], NULL);
    FILE *file = fopen(path, "re");
    while (fgets(line, sizeof(line), file) != NULL) {
        assert_int_equal(strspn(line, (char[]){line[0], '\0'}), 100);
        assert_in_range(line[0], 'a', 'a' + APPEND_THREADS - 1);
        counts[line[0] - 'a']++;
    }
    fclose(file);
    for (int i = 0; i < APPEND_THREADS; i++)
        assert_int_equal(counts[i], APPEND_COUNT);
}

/* ---- Holes --------------------------------------------------------------------- */

#define PUNCH (FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE)

static void fallocate_gives_punches_and_zeroes(void **state)
{
    static char content[20000];
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "file"));

    fill_pattern(content, sizeof(content), 1);
    assert_int_equal(write(fd, content, sizeof(content)), sizeof(content));
    assert_success(fallocate(fd, PUNCH, 5000, 10000));
    memset(content + 5000, 0, 10000);
    assert_file_holds(in_mount(f, "file"), content, sizeof(content));
    assert_int_equal(stat_of(in_mount(f, "file")).st_blocks, (5 - 1 + 1) * 8);
    assert_success(fallocate(fd, FALLOC_FL_ZERO_RANGE, 100, 200));
    memset(content + 100, 0, 200);
    assert_success(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 100000));
    assert_int_equal(stat_of(in_mount(f, "file")).st_size, sizeof(content));
    assert_int_equal(stat_of(in_mount(f, "file")).st_blocks, (25 + 1) * 8);
    assert_success(posix_fallocate(fd, 0, 30000) == 0 ? 0 : -1);
    assert_int_equal(stat_of(in_mount(f, "file")).st_size, 30000);
    assert_errno(fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), EOPNOTSUPP);
    assert_errno(fallocate(fd, 0, 0, (off_t)1 << 43), ENOSPC);
    assert_success(ftruncate(fd, sizeof(content)));
    close(fd);
    remount(f);
    assert_file_holds(in_mount(f, "file"), content, sizeof(content));
}

static void seeking_finds_data_and_holes(void **state)
{
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "file"));

    assert_int_equal(pwrite(fd, "data", 4, (off_t)1 << 40), 4);
    assert_int_equal(lseek(fd, 0, SEEK_DATA), (off_t)1 << 40);
    assert_int_equal(lseek(fd, 0, SEEK_HOLE), 0);
    assert_int_equal(lseek(fd, (off_t)1 << 40, SEEK_HOLE), ((off_t)1 << 40) + 4);
    assert_errno((int)lseek(fd, ((off_t)1 << 40) + 4, SEEK_DATA), ENXIO);
    assert_errno((int)lseek(fd, ((off_t)1 << 40) + 4, SEEK_HOLE), ENXIO);
    close(fd);
}

static void copying_a_sparse_file_keeps_its_holes(void **state)
{
    struct mount_fixture *f = *state;
    char path[PATH_MAX];
    int fd = open_new(in_mount(f, "file"));

    for (off_t offset = 1000; offset < (off_t)1 << 40; offset *= 9)
        assert_int_equal(pwrite(fd, "data", 4, offset), 4);
    close(fd);
    snprintf(path, sizeof(path), "%s", in_mount(f, "file"));
    assert_int_equal(run(f, "cp", "--sparse=auto", path, in_mount(f, "copy"), NULL), 0);
    assert_int_equal(stat_of(in_mount(f, "copy")).st_size, stat_of(path).st_size);
    assert_int_equal(stat_of(in_mount(f, "copy")).st_blocks, stat_of(path).st_blocks);
}

static void copy_file_range_copies_without_the_kernel_reading(void **state)
{
    static char content[3 * MIB];
    struct mount_fixture *f = *state;
    int from = open_new(in_mount(f, "from")), to = open_new(in_mount(f, "to"));
    off_t from_offset = 100, to_offset = 7;

    fill_pattern(content, sizeof(content), 1);
    assert_int_equal(write(from, content, sizeof(content)), sizeof(content));
    assert_int_equal(write(to, content, 7), 7);
    while (copy_file_range(from, &from_offset, to, &to_offset, sizeof(content), 0) > 0)
        ;
    assert_int_equal(to_offset, sizeof(content) - 93);
    memmove(content + 7, content + 100, sizeof(content) - 100);
    assert_file_holds(in_mount(f, "to"), content, sizeof(content) - 93);
    from_offset = to_offset = 0;
    assert_errno((int)copy_file_range(to, &from_offset, to, &to_offset, 10, 0), EINVAL);
    close(from);
    close(to);
    remount(f);
    assert_file_holds(in_mount(f, "to"), content, sizeof(content) - 93);
}

/* ---- Requests ------------------------------------------------------------------ */

/* How many transactions committed while a record was written across a page's end. */
static uint64_t commits_of_unaligned_write(struct mount_fixture *f, int flags)
{
    static char record[9000];
    int fd = open(in_mount(f, "records"), O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0644);

    assert_success(fd);
    uint64_t before = commits(f);
    assert_int_equal(pwrite(fd, record, sizeof(record), 3000), sizeof(record));
    uint64_t after = commits(f);
    close(fd);
    return after - before;
}

static void a_direct_write_is_one_transaction_at_any_offset(void **state)
{
    assert_int_equal(commits_of_unaligned_write(*state, O_DIRECT), 1);
}

static void a_mount_with_direct_io_makes_every_write_one_transaction(void **state)
{
    mount_fs(*state, "direct_io");
    assert_int_equal(commits_of_unaligned_write(*state, 0), 1);
}

static void an_aligned_write_is_one_transaction(void **state)
{
    struct mount_fixture *f = *state;
    char *content = malloc(MIB);
    int fd = open_new(in_mount(f, "file"));

    assert_non_null(content);
    fill_pattern(content, MIB, 1);
    uint64_t before = commits(f);
    assert_int_equal(pwrite(fd, content, MIB, 8192), MIB);
    assert_int_equal(commits(f) - before, 1);
    close(fd);
    free(content);
}

/* 1 MiB is more pieces than one writev() takes. */
static void a_large_read_from_small_blocks_is_whole(void **state)
{
    struct mount_fixture *f = *state;
    char *content = malloc(2 * MIB), *found = content + MIB;

    assert_non_null(content);
    fill_pattern(content, MIB, 1);
    assert_int_equal(pmfs(f, "mkfs", "--block-size", "512", f->pool, "16M", NULL), 0);
    mount_fs(f, NULL);
    write_file(in_mount(f, "file"), content, MIB);
    int fd = open(in_mount(f, "file"), O_RDONLY | O_DIRECT | O_CLOEXEC);
    assert_success(fd);
    assert_int_equal(read(fd, found, MIB), MIB);
    assert_memory_equal(found, content, MIB);
    close(fd);
    free(content);
}

static void fsync_costs_no_transaction(void **state)
{
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "file"));

    assert_int_equal(write(fd, "content", 7), 7);
    uint64_t before = commits(f);
    assert_success(fsync(fd));
    assert_success(fdatasync(fd));
    assert_int_equal(commits(f), before);
    close(fd);
}

/* ---- Names ------------------------------------------------------------------- */

static void a_renamed_file_has_its_new_name_only(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "to"), 0755));
    write_file(in_mount(f, "from"), "content", 7);
    assert_success(rename(in_mount(f, "from"), in_mount(f, "to/there")));
    assert_errno(access(in_mount(f, "from"), F_OK), ENOENT);
    assert_file_holds(in_mount(f, "to/there"), "content", 7);
}

static void renaming_over_a_file_replaces_it_and_frees_its_blocks(void **state)
{
    static char content[MIB];
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "new"), "new", 3);
    uint64_t before = blocks_free(f);
    write_file(in_mount(f, "old"), content, sizeof(content));
    assert_success(rename(in_mount(f, "new"), in_mount(f, "old")));
    assert_file_holds(in_mount(f, "old"), "new", 3);
    remount(f);
    assert_file_holds(in_mount(f, "old"), "new", 3);
    assert_blocks_are_back(f, before);
}

static void rename_noreplace_keeps_what_is_there(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "a"), "a", 1);
    write_file(in_mount(f, "b"), "b", 1);
    assert_errno(renameat2(AT_FDCWD, in_mount(f, "a"), AT_FDCWD, in_mount(f, "b"),
                           RENAME_NOREPLACE),
                 EEXIST);
    assert_file_holds(in_mount(f, "b"), "b", 1);
}

static void rename_exchange_swaps_two_files(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "a"), "a", 1);
    write_file(in_mount(f, "b"), "b", 1);
    assert_success(renameat2(AT_FDCWD, in_mount(f, "a"), AT_FDCWD, in_mount(f, "b"),
                             RENAME_EXCHANGE));
    assert_file_holds(in_mount(f, "a"), "b", 1);
    assert_file_holds(in_mount(f, "b"), "a", 1);
}

static void an_unlinked_file_lives_while_it_is_open(void **state)
{
    static char content[MIB];
    struct mount_fixture *f = *state;
    uint64_t before = blocks_free(f);
    int fd = open_new(in_mount(f, "file"));
    struct stat status;
    char found[4];

    assert_int_equal(write(fd, content, sizeof(content)), sizeof(content));
    assert_success(unlink(in_mount(f, "file")));
    assert_errno(access(in_mount(f, "file"), F_OK), ENOENT);
    assert_int_equal(pwrite(fd, "here", 4, 5000), 4);
    assert_int_equal(pread(fd, found, 4, 5000), 4);
    assert_memory_equal(found, "here", 4);
    assert_success(fstat(fd, &status));
    assert_int_equal(status.st_nlink, 0);
    close(fd);
    remount(f);
    assert_blocks_are_back(f, before);
}

static void a_file_that_replaces_an_open_one_is_another(void **state)
{
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "file"));
    char found[3];

    assert_int_equal(write(fd, "old", 3), 3);
    write_file(in_mount(f, "new"), "new", 3);
    assert_success(rename(in_mount(f, "new"), in_mount(f, "file")));
    assert_int_equal(pread(fd, found, 3, 0), 3);
    assert_memory_equal(found, "old", 3);
    assert_file_holds(in_mount(f, "file"), "new", 3);
    close(fd);
}

static void a_symlink_leads_to_its_target(void **state)
{
    struct mount_fixture *f = *state;
    char target[64];

    write_file(in_mount(f, "file"), "content", 7);
    assert_success(symlink("file", in_mount(f, "link")));
    assert_file_holds(in_mount(f, "link"), "content", 7);
    remount(f);
    assert_int_equal(readlink(in_mount(f, "link"), target, sizeof(target)), 4);
    assert_memory_equal(target, "file", 4);
    assert_int_equal(stat_of(in_mount(f, "link")).st_size, 4);
}

static void a_long_symlink_is_read_back_whole(void **state)
{
    struct mount_fixture *f = *state;
    char target[PATH_MAX], found[PATH_MAX];

    memset(target, 'x', 4095);
    target[4095] = '\0';
    assert_success(symlink(target, in_mount(f, "link")));
    remount(f);
    assert_int_equal(readlink(in_mount(f, "link"), found, sizeof(found)), 4095);
    assert_memory_equal(found, target, 4095);
}

static void hard_links_share_content_and_count(void **state)
{
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "a"), "one", 3);
    assert_success(link(in_mount(f, "a"), in_mount(f, "b")));
    assert_int_equal(stat_of(in_mount(f, "a")).st_nlink, 2);
    write_file(in_mount(f, "a"), "two", 3);
    assert_file_holds(in_mount(f, "b"), "two", 3);
    assert_int_equal(stat_of(in_mount(f, "a")).st_ino,
                     stat_of(in_mount(f, "b")).st_ino);
    assert_success(unlink(in_mount(f, "a")));
    assert_file_holds(in_mount(f, "b"), "two", 3);
    assert_int_equal(stat_of(in_mount(f, "b")).st_nlink, 1);
}

static void names_have_up_to_255_bytes(void **state)
{
    struct mount_fixture *f = *state;
    char name[257];

    memset(name, 'n', 256);
    name[256] = '\0';
    assert_errno(mkdir(in_mount(f, name), 0755), ENAMETOOLONG);
    name[255] = '\0';
    write_file(in_mount(f, name), "content", 7);
    remount(f);
    assert_file_holds(in_mount(f, name), "content", 7);
}

static bool is_listed(const char *path, const char *name)
{
    const struct dirent *entry;
    DIR *dir = opendir(path);
    bool found = false;

    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL)
        found |= strcmp(entry->d_name, name) == 0;
    closedir(dir);
    return found;
}

/* It is bytes that count: 85 characters of three, and one more is too many. */
static void names_of_several_bytes_per_character_have_up_to_255_bytes(void **state)
{
    struct mount_fixture *f = *state;
    char name[257] = "";

    for (int i = 0; i < 85; i++)
        strcat(name, "\xe2\x82\xac");
    write_file(in_mount(f, name), "content", 7);
    remount(f);
    assert_file_holds(in_mount(f, name), "content", 7);
    assert_true(is_listed(in_mount(f, ""), name));
    strcat(name, "n");
    assert_errno(mkdir(in_mount(f, name), 0755), ENAMETOOLONG);
}

static void a_name_looked_for_in_vain_can_be_made_afterwards(void **state)
{
    struct mount_fixture *f = *state;

    assert_errno(access(in_mount(f, "file"), F_OK), ENOENT);
    write_file(in_mount(f, "file"), "content", 7);
    assert_file_holds(in_mount(f, "file"), "content", 7);
    assert_success(unlink(in_mount(f, "file")));
    assert_errno(access(in_mount(f, "file"), F_OK), ENOENT);
}

/* ---- Directories ------------------------------------------------------------- */

#define MANY 3000

/* How many of the names "file-0" to "file-MANY - 1" the directory lists; each at most
 * once. */
static int count_listed(const char *path, void (*visit)(DIR *dir, const char *name))
{
    static bool seen[MANY];
    const struct dirent *entry;
    int count = 0, number;
    DIR *dir = opendir(path);

    assert_non_null(dir);
    memset(seen, 0, sizeof(seen));
    while ((entry = readdir(dir)) != NULL) {
        if (sscanf(entry->d_name, "file-%d", &number) != 1)
            continue;
        assert_in_range(number, 0, MANY - 1);
        assert_false(seen[number]);
        seen[number] = true;
        count++;
        if (visit != NULL)
            visit(dir, entry->d_name);
    }
    closedir(dir);
    return count;
}

static void make_many(const struct mount_fixture *f)
{
    char name[32];

    assert_success(mkdir(in_mount(f, "many"), 0755));
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof(name), "many/file-%d", i);
        int fd = open_new(in_mount(f, name));
        close(fd);
    }
}

static void remove_listed(DIR *dir, const char *name)
{
    assert_success(unlinkat(dirfd(dir), name, 0));
}

static void a_big_directory_lists_every_name_once(void **state)
{
    struct mount_fixture *f = *state;

    make_many(f);
    assert_int_equal(count_listed(in_mount(f, "many"), NULL), MANY);
    remount(f);
    assert_int_equal(count_listed(in_mount(f, "many"), NULL), MANY);
    /* Now from what the kernel has cached. */
    assert_int_equal(count_listed(in_mount(f, "many"), NULL), MANY);
}

static void removing_while_listing_misses_nothing(void **state)
{
    struct mount_fixture *f = *state;

    make_many(f);
    assert_int_equal(count_listed(in_mount(f, "many"), remove_listed), MANY);
    assert_success(rmdir(in_mount(f, "many")));
}

static void a_cached_listing_shows_what_came_and_went(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "dir"), 0755));
    write_file(in_mount(f, "dir/file-1"), "", 0);
    assert_int_equal(count_listed(in_mount(f, "dir"), NULL), 1);
    assert_int_equal(count_listed(in_mount(f, "dir"), NULL), 1);
    write_file(in_mount(f, "dir/file-2"), "", 0);
    assert_int_equal(count_listed(in_mount(f, "dir"), NULL), 2);
    assert_success(unlink(in_mount(f, "dir/file-1")));
    assert_int_equal(count_listed(in_mount(f, "dir"), NULL), 1);
}

static void a_directory_that_is_not_empty_stays(void **state)
{
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "dir"), 0755));
    assert_success(mkdir(in_mount(f, "dir/sub"), 0755));
    assert_errno(rmdir(in_mount(f, "dir")), ENOTEMPTY);
    assert_int_equal(stat_of(in_mount(f, "dir")).st_nlink, 3);
    assert_success(rmdir(in_mount(f, "dir/sub")));
    assert_int_equal(stat_of(in_mount(f, "dir")).st_nlink, 2);
    assert_success(rmdir(in_mount(f, "dir")));
}

/* ---- Attributes -------------------------------------------------------------- */

static void times_are_kept_to_the_nanosecond(void **state)
{
    static const struct timespec times[2] = {{1000000000, 123456789}, {-1, 999999999}};
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "file"), "content", 7);
    assert_success(utimensat(AT_FDCWD, in_mount(f, "file"), times, 0));
    remount(f);
    struct stat status = stat_of(in_mount(f, "file"));
    assert_memory_equal(&status.st_atim, &times[0], sizeof(times[0]));
    assert_memory_equal(&status.st_mtim, &times[1], sizeof(times[1]));
}

static struct timespec atime_of(const char *path)
{
    struct stat status;

    assert_success(lstat(path, &status));
    return status.st_atim;
}

/* Reads everything, in every way. */
static void read_all(struct mount_fixture *f)
{
    char byte;

    assert_file_holds(in_mount(f, "file"), "content", 7);
    int fd = open(in_mount(f, "file"), O_RDONLY | O_DIRECT | O_CLOEXEC);
    assert_int_equal(read(fd, &byte, 1), 1);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(mapped != MAP_FAILED);
    assert_int_equal(mapped[0], 'c');
    munmap(mapped, 4096);
    close(fd);
    assert_int_equal(run(f, "ls", "-lR", f->mountpoint, NULL), 0);
    assert_int_equal(readlink(in_mount(f, "link"), &byte, 1), 1);
}

/* As pmfs(1) says: whatever kind of access times is asked for. */
static void reading_changes_no_access_time(void **state)
{
    static const char *const options[] = {"rw", "relatime", "strictatime", "noatime",
                                          "nodiratime"};
    static const char *const names[] = {"file", "dir", "link"};
    static const struct timespec old[2] = {{1000, 5}, {.tv_nsec = UTIME_OMIT}};
    struct mount_fixture *f = *state;

    mount_fs(f, NULL);
    write_file(in_mount(f, "file"), "content", 7);
    assert_success(mkdir(in_mount(f, "dir"), 0755));
    write_file(in_mount(f, "dir/inner"), "content", 7);
    assert_success(symlink("file", in_mount(f, "link")));
    for (size_t i = 0; i < 3; i++)
        assert_success(
            utimensat(AT_FDCWD, in_mount(f, names[i]), old, AT_SYMLINK_NOFOLLOW));
    unmount_fs(f);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        mount_fs(f, options[i]);
        read_all(f);
        for (size_t j = 0; j < 6; j++) { /* before and after a remount */
            struct timespec atime = atime_of(in_mount(f, names[j % 3]));

            assert_memory_equal(&atime, &old[0], sizeof(atime));
            if (j == 2)
                remount(f);
        }
        unmount_fs(f);
    }
}

/* The kernel's own idea of "now" is some milliseconds old. */
static void touching_a_file_makes_it_no_older(void **state)
{
    struct mount_fixture *f = *state;

    for (int i = 0; i < 100; i++) {
        write_file(in_mount(f, "file"), "content", 7);
        struct timespec written = stat_of(in_mount(f, "file")).st_mtim;
        assert_success(utimensat(AT_FDCWD, in_mount(f, "file"), NULL, 0));
        struct timespec touched = stat_of(in_mount(f, "file")).st_mtim;
        assert_true(
            touched.tv_sec > written.tv_sec ||
            (touched.tv_sec == written.tv_sec && touched.tv_nsec >= written.tv_nsec));
        assert_success(unlink(in_mount(f, "file")));
    }
}

static void a_time_that_cannot_be_kept_becomes_the_nearest(void **state)
{
    static const struct timespec times[2] = {{-((int64_t)1 << 40), 0},
                                             {(int64_t)1 << 40, 5}};
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "file"), "content", 7);
    assert_success(utimensat(AT_FDCWD, in_mount(f, "file"), times, 0));
    struct stat status = stat_of(in_mount(f, "file"));
    assert_int_equal(status.st_atim.tv_sec, INT64_MIN / 1000000000 - 1);
    assert_int_equal(status.st_mtim.tv_sec, INT64_MAX / 1000000000);
}

static void writing_changes_the_modification_time(void **state)
{
    static const struct timespec long_ago[2] = {{1, 0}, {1, 0}};
    struct mount_fixture *f = *state;

    write_file(in_mount(f, "file"), "content", 7);
    assert_success(utimensat(AT_FDCWD, in_mount(f, "file"), long_ago, 0));
    write_file(in_mount(f, "file"), "another", 7);
    assert_true(stat_of(in_mount(f, "file")).st_mtim.tv_sec > 1);
}

static void mode_and_kind_are_kept(void **state)
{
    struct mount_fixture *f = *state;

    umask(022);
    int fd =
        open(in_mount(f, "read-only"), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
    assert_success(fd);
    assert_int_equal(write(fd, "content", 7), 7);
    close(fd);
    assert_success(mkfifo(in_mount(f, "fifo"), 0666));
    assert_success(mkdir(in_mount(f, "dir"), 0777));
    assert_success(chmod(in_mount(f, "dir"), 01770));
    remount(f);
    assert_int_equal(stat_of(in_mount(f, "read-only")).st_mode, S_IFREG | 0444);
    assert_int_equal(stat_of(in_mount(f, "fifo")).st_mode, S_IFIFO | 0644);
    assert_int_equal(stat_of(in_mount(f, "dir")).st_mode, S_IFDIR | 01770);
}

static void statvfs_counts_blocks_and_inodes(void **state)
{
    static char content[MIB];
    struct mount_fixture *f = *state;
    struct statvfs before, after;

    assert_success(statvfs(f->mountpoint, &before));
    fill_pattern(content, sizeof(content), 1);
    write_file(in_mount(f, "file"), content, sizeof(content));
    assert_success(statvfs(f->mountpoint, &after));
    assert_int_equal(before.f_frsize, 4096);
    assert_in_range(before.f_blocks, 15 * 1024, 16 * 1024);
    assert_in_range(before.f_bavail, 1, before.f_bfree);
    assert_in_range(before.f_bfree - after.f_bfree, 256, 260);
    assert_int_equal(after.f_namemax, 255);
    assert_int_equal((before.f_files - before.f_ffree) + 1,
                     after.f_files - after.f_ffree);
}

#define NOBODY 65534

/* Runs `act` as another user in a process of its own; true if it returned true. */
static bool as_nobody(const struct mount_fixture *f,
                      bool (*act)(const struct mount_fixture *f))
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && act(f) ? 0 : 1);
    return exit_status_of(pid) == 0;
}

static bool can_read_public_only(const struct mount_fixture *f)
{
    return open(in_mount(f, "public"), O_RDONLY | O_CLOEXEC) >= 0 &&
           open(in_mount(f, "private"), O_RDONLY | O_CLOEXEC) < 0 && errno == EACCES &&
           open(in_mount(f, "public"), O_WRONLY | O_CLOEXEC) < 0 && errno == EACCES &&
           unlink(in_mount(f, "public")) < 0 && errno == EACCES;
}

static bool cannot_enter(const struct mount_fixture *f)
{
    return access(in_mount(f, "public"), F_OK) < 0 && errno == EACCES;
}

static bool copy_over(const struct mount_fixture *f)
{
    int from = open(in_mount(f, "public"), O_RDONLY | O_CLOEXEC);
    int to = open(in_mount(f, "program"), O_WRONLY | O_CLOEXEC);

    return from >= 0 && to >= 0 && copy_file_range(from, NULL, to, NULL, 7, 0) == 7;
}

static bool allocate(const struct mount_fixture *f)
{
    int fd = open(in_mount(f, "program"), O_WRONLY | O_CLOEXEC);

    return fd >= 0 && fallocate(fd, FALLOC_FL_ZERO_RANGE, 0, 3) == 0;
}

static bool cut(const struct mount_fixture *f)
{
    return truncate(in_mount(f, "program"), 3) == 0;
}

static bool overwrite(const struct mount_fixture *f)
{
    int fd = open(in_mount(f, "program"), O_WRONLY | O_CLOEXEC);

    return fd >= 0 && write(fd, "x", 1) == 1;
}

static void make_public_and_private(struct mount_fixture *f)
{
    assert_success(chmod(f->dir, 0755));
    write_file(in_mount(f, "public"), "content", 7);
    write_file(in_mount(f, "private"), "content", 7);
    assert_success(chmod(in_mount(f, "private"), 0600));
}

static void another_user_may_do_what_permissions_allow(void **state)
{
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    make_public_and_private(f);
    assert_true(as_nobody(f, can_read_public_only));
}

static void another_user_is_kept_out_without_allow_other(void **state)
{
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    make_public_and_private(f);
    assert_true(as_nobody(f, cannot_enter));
}

/* The mode as exec() finds it: whoever asks for no times may be answered from a cache. */
static unsigned mode_of(const char *path)
{
    struct statx status;

    assert_success(statx(AT_FDCWD, path, 0, STATX_MODE, &status));
    return status.stx_mode & 07777;
}

static void changing_content_clears_the_set_user_id_bit(void **state)
{
    static bool (*const changes[])(const struct mount_fixture *f) = {
        overwrite, copy_over, allocate, cut};
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    make_public_and_private(f);
    write_file(in_mount(f, "program"), "content", 7);
    for (size_t i = 0; i < sizeof(changes) / sizeof(*changes); i++) {
        assert_success(chmod(in_mount(f, "program"), 06777));
        assert_true(as_nobody(f, changes[i]));
        assert_int_equal(mode_of(in_mount(f, "program")), 0777);
        assert_int_equal(stat_of(in_mount(f, "program")).st_mode & 07777, 0777);
    }
}

/* ---- Extended attributes ----------------------------------------------------- */

static void attributes_are_kept_with_any_value_and_prefix(void **state)
{
    static char value[65536], found[65536];
    struct mount_fixture *f = *state;
    char path[PATH_MAX];

    if (geteuid() != 0)
        skip();
    fill_pattern(value, sizeof(value), 1);
    snprintf(path, sizeof(path), "%s", in_mount(f, "file"));
    write_file(path, "content", 7);
    assert_success(setxattr(path, "user.large", value, sizeof(value), 0));
    assert_success(setxattr(path, "trusted.empty", "", 0, XATTR_CREATE));
    assert_success(setxattr(path, "security.other", "three", 5, 0));
    assert_success(setxattr(f->mountpoint, "user.root", "of it", 5, 0));
    remount(f);
    assert_int_equal(getxattr(path, "user.large", found, sizeof(found)), sizeof(value));
    assert_memory_equal(found, value, sizeof(value));
    assert_int_equal(getxattr(path, "trusted.empty", found, sizeof(found)), 0);
    assert_int_equal(getxattr(f->mountpoint, "user.root", found, sizeof(found)), 5);
    assert_int_equal(listxattr(path, found, sizeof(found)), 11 + 14 + 15);
    assert_memory_equal(found, "user.large\0trusted.empty\0security.other", 40);
    assert_errno(setxattr(path, "user.large", "x", 1, XATTR_CREATE), EEXIST);
    assert_errno(setxattr(path, "user.none", "x", 1, XATTR_REPLACE), ENODATA);
    assert_errno((int)getxattr(path, "user.none", found, 1), ENODATA);
    assert_errno((int)getxattr(path, "user.large", found, 1), ERANGE);
    assert_errno(setxattr(path, "other.name", "x", 1, 0), EOPNOTSUPP);
    assert_success(removexattr(path, "user.large"));
    assert_errno(removexattr(path, "user.large"), ENODATA);
    assert_file_holds(path, "content", 7);
}

static bool sees_public_attributes_only(const struct mount_fixture *f)
{
    char found[64];

    return listxattr(in_mount(f, "public"), NULL, 0) == 10 &&
           listxattr(in_mount(f, "public"), found, sizeof(found)) == 10 &&
           memcmp(found, "user.mine", 10) == 0 &&
           listxattr(in_mount(f, "public"), found, 9) < 0 && errno == ERANGE;
}

static void trusted_attributes_are_listed_to_root_only(void **state)
{
    struct mount_fixture *f = *state;
    char found[64];

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    make_public_and_private(f);
    assert_success(setxattr(in_mount(f, "public"), "trusted.a", "x", 1, 0));
    assert_success(setxattr(in_mount(f, "public"), "user.mine", "x", 1, 0));
    assert_success(setxattr(in_mount(f, "public"), "trusted.b", "x", 1, 0));
    assert_int_equal(listxattr(in_mount(f, "public"), NULL, 0), 30);
    assert_int_equal(listxattr(in_mount(f, "public"), found, sizeof(found)), 30);
    assert_true(as_nobody(f, sees_public_attributes_only));
}

static void copying_and_archiving_keep_attributes(void **state)
{
    struct mount_fixture *f = *state;
    char path[PATH_MAX], copy[PATH_MAX], found[8];

    snprintf(path, sizeof(path), "%s", in_mount(f, "file"));
    snprintf(copy, sizeof(copy), "%s", in_mount(f, "copy"));
    write_file(path, "content", 7);
    assert_success(setxattr(path, "user.name", "value", 5, 0));
    assert_int_equal(run(f, "cp", "-a", path, copy, NULL), 0);
    assert_int_equal(getxattr(copy, "user.name", found, sizeof(found)), 5);
    assert_memory_equal(found, "value", 5);
}

/* Requests that the daemon has read. */
static long requests(const struct mount_fixture *f)
{
    char path[64], line[128];
    long count = -1;

    snprintf(path, sizeof(path), "/proc/%d/io", (int)daemon_pid(f));
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (fgets(line, sizeof(line), file) != NULL)
        sscanf(line, "syscr: %ld", &count);
    fclose(file);
    assert_true(count >= 0);
    return count;
}

/* Also of a file that has attributes. */
static void writing_asks_for_no_attribute(void **state)
{
    struct mount_fixture *f = *state;
    int fd = open_new(in_mount(f, "file"));

    for (int with = 0; with < 2; with++) {
        assert_int_equal(write(fd, "content", 7), 7);
        long before = requests(f);
        for (int i = 0; i < 100; i++)
            assert_int_equal(pwrite(fd, "content", 7, i), 7);
        assert_in_range(requests(f) - before, 100, 110);
        assert_success(fsetxattr(fd, "user.name", "value", 5, 0));
    }
    close(fd);
}

/* ---- What the kernel need not ask for ------------------------------------------ */

typedef void step_fn(struct mount_fixture *f);

static void look_up_nothing(struct mount_fixture *f)
{
    assert_errno(access(in_mount(f, "none"), F_OK), ENOENT);
    assert_errno(access(in_mount(f, "dir/none"), F_OK), ENOENT);
}

static void look_up_a_path(struct mount_fixture *f)
{
    assert_success(access(in_mount(f, "dir/inner"), R_OK));
}

static void ask_for_attributes(struct mount_fixture *f)
{
    stat_of(in_mount(f, "dir/inner"));
    stat_of(in_mount(f, "dir"));
}

static void open_a_file(struct mount_fixture *f)
{
    int fd = open(in_mount(f, "file"), O_RDWR | O_CLOEXEC);

    assert_success(fd);
    assert_success(fsync(fd));
    assert_success(close(fd));
}

static void open_a_directory(struct mount_fixture *f)
{
    int fd = open(in_mount(f, "dir"), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    assert_success(fd);
    assert_success(fsync(fd));
    assert_success(close(fd));
}

static void read_a_file(struct mount_fixture *f)
{
    char found[7];
    int fd = open(in_mount(f, "file"), O_RDONLY | O_CLOEXEC);

    assert_int_equal(read(fd, found, sizeof(found)), sizeof(found));
    assert_success(close(fd));
}

static void read_a_link(struct mount_fixture *f)
{
    char found[8];

    assert_int_equal(readlink(in_mount(f, "link"), found, sizeof(found)), 4);
}

static int list_directory(const char *path)
{
    DIR *dir = opendir(path);
    int names = 0;

    assert_non_null(dir);
    while (readdir(dir) != NULL)
        names++;
    closedir(dir);
    return names;
}

static void list_a_directory(struct mount_fixture *f)
{
    assert_int_equal(list_directory(in_mount(f, "dir")), 3);
}

static long requests_of(struct mount_fixture *f, step_fn *step, int times)
{
    long before = requests(f);

    for (int i = 0; i < times; i++)
        step(f);
    return requests(f) - before;
}

static const struct {
    const char *what;
    step_fn *step;
} steps[] = {
    {"names of nothing", look_up_nothing},
    {"names", look_up_a_path},
    {"attributes", ask_for_attributes},
    {"opening", open_a_file},
    {"opening directories", open_a_directory},
    {"reading", read_a_file},
    {"links", read_a_link},
    {"listing", list_a_directory},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

/* Nobody else changes the filesystem, so what was asked once holds: neither after a second,
 * which is what libfuse gives unless told otherwise, does the kernel ask again. */
static void what_the_kernel_knows_it_does_not_ask_again(void **state)
{
    enum { TIMES = 50 };
    struct mount_fixture *f = *state;

    assert_success(mkdir(in_mount(f, "dir"), 0755));
    write_file(in_mount(f, "dir/inner"), "content", 7);
    write_file(in_mount(f, "file"), "content", 7);
    assert_success(symlink("file", in_mount(f, "link")));
    remount(f);
    for (size_t i = 0; i < STEPS; i++)
        requests_of(f, steps[i].step, 3);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < STEPS; i++) {
            long asked = requests_of(f, steps[i].step, TIMES);

            if (asked > 0)
                print_error("%s: %ld requests\n", steps[i].what, asked);
            assert_int_equal(asked, 0);
        }
        usleep(1100 * 1000);
    }
}

/* A listing brings the attributes of all that it names. */
static void listing_a_directory_brings_what_is_in_it(void **state)
{
    enum { NAMES = 200 };
    struct mount_fixture *f = *state;
    char name[16];

    assert_success(mkdir(in_mount(f, "dir"), 0755));
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "dir/%d", i);
        write_file(in_mount(f, name), "content", 7);
    }
    remount(f);
    long before = requests(f);
    assert_int_equal(list_directory(in_mount(f, "dir")), NAMES + 2);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name, sizeof(name), "dir/%d", i);
        assert_int_equal(stat_of(in_mount(f, name)).st_size, 7);
    }
    assert_in_range(requests(f) - before, 1, NAMES / 4);
}

/* A capability as setcap(8) writes it: cap_net_raw, permitted and effective. */
static const unsigned char net_raw[20] = {1, 0, 0, 2, 0, 0x20};

static void writing_drops_a_capability(void **state)
{
    struct mount_fixture *f = *state;
    char found[32];

    if (geteuid() != 0)
        skip();
    mount_fs(f, "allow_other");
    assert_success(chmod(f->dir, 0755));
    write_file(in_mount(f, "program"), "content", 7);
    assert_success(chmod(in_mount(f, "program"), 0777));
    assert_success(setxattr(in_mount(f, "program"), "security.capability", net_raw,
                            sizeof(net_raw), 0));
    assert_int_equal(
        getxattr(in_mount(f, "program"), "security.capability", found, sizeof(found)),
        sizeof(net_raw));
    assert_true(as_nobody(f, overwrite));
    assert_errno((int)getxattr(in_mount(f, "program"), "security.capability", found,
                               sizeof(found)),
                 ENODATA);
}

static void changing_the_owner_drops_privileges(void **state)
{
    struct mount_fixture *f = *state;

    if (geteuid() != 0)
        skip();
    write_file(in_mount(f, "program"), "content", 7);
    assert_success(chmod(in_mount(f, "program"), 06755));
    assert_success(chown(in_mount(f, "program"), NOBODY, NOBODY));
    assert_int_equal(stat_of(in_mount(f, "program")).st_mode & 07777, 0755);
}

/* ---- Full -------------------------------------------------------------------- */

/* Writes blocks of 64 KiB until there is no room; how many bytes the file has. */
static off_t fill_up(const char *path)
{
    static char content[64 * KIB];
    int fd = open_new(path);
    off_t size = 0;

    fill_pattern(content, sizeof(content), 1);
    while (write(fd, content, sizeof(content)) == (ssize_t)sizeof(content))
        size += (off_t)sizeof(content);
    assert_int_equal(errno, ENOSPC);
    close(fd);
    return size;
}

static void a_write_that_does_not_fit_changes_nothing(void **state)
{
    struct mount_fixture *f = *state;
    off_t size = fill_up(in_mount(f, "filler"));

    assert_true((size_t)size > 32 * MIB);
    assert_int_equal(stat_of(in_mount(f, "filler")).st_size, size);
    remount(f);
    assert_int_equal(stat_of(in_mount(f, "filler")).st_size, size);
}

static void a_full_filesystem_can_be_overwritten_and_emptied(void **state)
{
    static char content[64 * KIB];
    struct mount_fixture *f = *state;
    uint64_t before = blocks_free(f);

    off_t size = fill_up(in_mount(f, "filler"));
    int fd = open(in_mount(f, "filler"), O_WRONLY | O_CLOEXEC);
    assert_success(fd);
    fill_pattern(content, sizeof(content), 2);
    for (off_t offset = 0; offset < size; offset += (off_t)sizeof(content))
        assert_int_equal(pwrite(fd, content, sizeof(content), offset), sizeof(content));
    close(fd);
    assert_success(unlink(in_mount(f, "filler")));
    remount(f);
    off_t size_again = fill_up(in_mount(f, "filler")); /* blocks of inodes stay */

    assert_true(labs(size_again - size) <= (off_t)(256 * KIB));
    assert_success(unlink(in_mount(f, "filler")));
    remount(f); /* else the filesystem may not have heard of the close yet */
    assert_blocks_are_back(f, before);
}

/* ---- All together ------------------------------------------------------------ */

static void a_copied_tree_is_identical(void **state)
{
    struct mount_fixture *f = *state;

    assert_int_equal(run(f, "cp", "-a", SOURCE_TREE, in_mount(f, "tree"), NULL), 0);
    remount(f);
    assert_int_equal(run(f, "diff", "-r", SOURCE_TREE, in_mount(f, "tree"), NULL), 0);
    unmount_fs(f);
    assert_int_equal(pmfs(f, "fsck", f->pool, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_mounted(written_bytes_are_read_back_after_a_remount),
        test_mounted(overwriting_at_any_offset_changes_just_these_bytes),
        test_mounted(a_large_file_is_read_back),
        test_mounted(a_sparse_file_reads_zeros_and_takes_few_blocks),
        test_mounted(truncate_cuts_and_grows_with_zeros),
        test_mounted(opening_with_o_trunc_empties_the_file),
        test_mounted(mapped_stores_are_read_and_survive_a_remount),
        test_mounted(privately_mapped_stores_reach_nobody),
        test_mounted(concurrent_appends_do_not_overwrite_each_other),
        test_mounted(fallocate_gives_punches_and_zeroes),
        test_mounted(seeking_finds_data_and_holes),
        test_mounted(copying_a_sparse_file_keeps_its_holes),
        test_mounted(copy_file_range_copies_without_the_kernel_reading),
        test_mounted(a_direct_write_is_one_transaction_at_any_offset),
        test_made(a_mount_with_direct_io_makes_every_write_one_transaction),
        test_mounted(an_aligned_write_is_one_transaction),
        test_empty(a_large_read_from_small_blocks_is_whole),
        test_mounted(fsync_costs_no_transaction),
        test_mounted(a_renamed_file_has_its_new_name_only),
        test_mounted(renaming_over_a_file_replaces_it_and_frees_its_blocks),
        test_mounted(rename_noreplace_keeps_what_is_there),
        test_mounted(rename_exchange_swaps_two_files),
        test_mounted(an_unlinked_file_lives_while_it_is_open),
        test_mounted(a_file_that_replaces_an_open_one_is_another),
        test_mounted(a_symlink_leads_to_its_target),
        test_mounted(a_long_symlink_is_read_back_whole),
        test_mounted(hard_links_share_content_and_count),
        test_mounted(names_have_up_to_255_bytes),
        test_mounted(names_of_several_bytes_per_character_have_up_to_255_bytes),
        test_mounted(a_name_looked_for_in_vain_can_be_made_afterwards),
        test_mounted(a_big_directory_lists_every_name_once),
        test_mounted(removing_while_listing_misses_nothing),
        test_mounted(a_cached_listing_shows_what_came_and_went),
        test_mounted(a_directory_that_is_not_empty_stays),
        test_mounted(times_are_kept_to_the_nanosecond),
        test_made(reading_changes_no_access_time),
        test_mounted(touching_a_file_makes_it_no_older),
        test_mounted(a_time_that_cannot_be_kept_becomes_the_nearest),
        test_mounted(writing_changes_the_modification_time),
        test_mounted(mode_and_kind_are_kept),
        test_mounted(statvfs_counts_blocks_and_inodes),
        test_made(another_user_may_do_what_permissions_allow),
        test_mounted(another_user_is_kept_out_without_allow_other),
        test_made(changing_content_clears_the_set_user_id_bit),
        test_mounted(attributes_are_kept_with_any_value_and_prefix),
        test_made(trusted_attributes_are_listed_to_root_only),
        test_mounted(copying_and_archiving_keep_attributes),
        test_mounted(writing_asks_for_no_attribute),
        test_mounted(what_the_kernel_knows_it_does_not_ask_again),
        test_mounted(listing_a_directory_brings_what_is_in_it),
        test_made(writing_drops_a_capability),
        test_mounted(changing_the_owner_drops_privileges),
        test_mounted(a_write_that_does_not_fit_changes_nothing),
        test_mounted(a_full_filesystem_can_be_overwritten_and_emptied),
        test_mounted(a_copied_tree_is_identical),
    };

    skip_without_fuse();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
