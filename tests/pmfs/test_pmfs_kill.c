/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that works on the filesystem is killed at any moment, again and again. What
 * it had acknowledged must be there, and of the call that it was in all or nothing.
 *
 * The calls follow from their number, so that the model can be brought to where the
 * process was. PMFS_TEST_SEED chooses other calls and moments, PMFS_TEST_KILLS how
 * often.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "tests/pmfs/model.h"
#include "tests/pmfs/pmfs_fixture.h"

#define CALLS_MAX 50000 /* of a process: what it holds open without a name takes room */
#define NAMES 14
#define WRITE_MAX 30000
#define FILE_MAX (5 * MIB / 2)
#define LARGE_NAME                                                                     \
    "large" /* of a file that is only ever written to, so much at once: */
#define LARGE_WRITE (3 * MIB + 100)
#define LARGE_MAX (LARGE_WRITE + 20000)

enum kind { MAKE, MAKE_DIR, REMOVE, RENAME, WRITE, APPEND, TRUNCATE, OPEN, KINDS };

struct call {
    enum kind kind;
    char name[8], other[8];
    uint64_t offset, size;
    uint8_t value;
};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
    x = (x ^ x >> 27) * 0x94d049bb133111eb;
    return x ^ x >> 31;
}

static struct call call_of(uint64_t seed, uint64_t number)
{
    uint64_t random[6];
    struct call call;

    for (uint64_t i = 0; i < 6; i++)
        random[i] = mix(seed ^ mix(number * 6 + i));
    call.kind = (enum kind)(random[0] % KINDS);
    snprintf(call.name, sizeof(call.name), "%d", (int)(random[1] % NAMES));
    snprintf(call.other, sizeof(call.other), "%d", (int)(random[2] % NAMES));
    call.offset = random[3] % (random[3] >> 32 & 15 ? 20000 : FILE_MAX);
    call.size = random[4] % (random[4] >> 32 & 3 ? 300 : WRITE_MAX);
    call.value = (uint8_t)random[5];
    /* About as long as all between two of them. */
    if (random[0] / KINDS % 512 == 0) {
        call.kind = call.offset % 4 ? WRITE : MAKE;
        strcpy(call.name, LARGE_NAME);
        call.offset %= LARGE_MAX - LARGE_WRITE;
        call.size = LARGE_WRITE;
    }
    return call;
}

/* So that there is room for all. */
static bool may_write(const struct call *call, uint64_t file_size)
{
    return file_size < FILE_MAX || strcmp(call->name, LARGE_NAME) == 0;
}

/* ---- Doing a call -------------------------------------------------------------- */

static void do_call(struct pmfs *fs, const struct call *call)
{
    static uint8_t bytes[LARGE_WRITE];
    const struct pmfs_attr values = {.size = call->offset};
    struct pmfs_attr attr;
    bool exists = pmfs_lookup(fs, ROOT, call->name, &attr) == 0;
    bool is_file = exists && S_ISREG(attr.mode);
    size_t done;

    memset(bytes, call->value, call->size);
    switch (call->kind) {
    case MAKE:
        pmfs_mknod(fs, ROOT, call->name, 0644, 0, &nobody, &attr);
        break;
    case MAKE_DIR:
        pmfs_mkdir(fs, ROOT, call->name, 0755, &nobody, &attr);
        break;
    case REMOVE:
        if (exists && !is_file)
            pmfs_rmdir(fs, ROOT, call->name);
        else
            pmfs_unlink(fs, ROOT, call->name);
        break;
    case RENAME:
        pmfs_rename(fs, ROOT, call->name, ROOT, call->other, 0);
        break;
    case WRITE:
    case APPEND:
        if (is_file && may_write(call, attr.size))
            pmfs_write(fs, attr.ino, call->offset, bytes, call->size,
                       call->kind == APPEND ? PMFS_APPEND : 0, &done);
        break;
    case TRUNCATE:
        if (is_file)
            pmfs_setattr(fs, attr.ino, &values, PMFS_SET_SIZE, NULL);
        break;
    default:
        if (exists)
            pmfs_open(fs, attr.ino); /* and never released */
    }
}

static void do_in_model(struct model *model, const struct call *call)
{
    static uint8_t bytes[LARGE_WRITE];
    struct model_inode *root = model->root;
    struct model_inode *inode = model_find(root, call->name);
    bool is_file = inode && S_ISREG(inode->mode);

    memset(bytes, call->value, call->size);
    switch (call->kind) {
    case MAKE:
    case MAKE_DIR:
        if (!inode)
            model_make(model, root, call->name,
                       call->kind == MAKE ? S_IFREG | 0644 : S_IFDIR | 0755, 0);
        break;
    case REMOVE:
        if (inode)
            model_remove(model, root, call->name);
        break;
    case RENAME:
        if (model_may_rename(root, call->name, root, call->other, 0) == 0)
            model_rename(model, root, call->name, root, call->other, 0);
        break;
    case WRITE:
        if (is_file && may_write(call, inode->size))
            model_write(inode, call->offset, bytes, call->size);
        break;
    case APPEND:
        if (is_file && may_write(call, inode->size))
            model_write(inode, inode->size, bytes, call->size);
        break;
    case TRUNCATE:
        if (is_file)
            model_truncate(inode, call->offset);
        break;
    default:
        break;
    }
}

/* ---- Comparing ----------------------------------------------------------------- */

static bool is_same_content(struct pmfs *fs, uint64_t ino,
                            const struct model_inode *inode)
{
    static uint8_t found[LARGE_MAX + WRITE_MAX];
    size_t done = 0;

    assert_ok(pmfs_read(fs, ino, 0, found, sizeof(found), &done));
    return done == inode->size && (done == 0 || memcmp(found, inode->bytes, done) == 0);
}

static int count_entry(void *arg, const struct pmfs_dirent *entry)
{
    (void)entry;
    ++*(int *)arg;
    return 0;
}

static bool is_same(struct pmfs *fs, const struct model *model)
{
    const struct model_inode *root = model->root;
    struct pmfs_attr attr;
    int count = 0;

    assert_ok(pmfs_readdir(fs, ROOT, 0, 0, count_entry, &count));
    if (count != root->entry_count + 2)
        return false;
    for (int i = 0; i < root->entry_count; i++) {
        const struct model_inode *inode = root->entries[i].inode;

        if (pmfs_lookup(fs, ROOT, root->entries[i].name, &attr) < 0 ||
            (attr.mode & S_IFMT) != (inode->mode & S_IFMT) ||
            attr.nlink != inode->nlink)
            return false;
        if (S_ISREG(attr.mode) && !is_same_content(fs, attr.ino, inode))
            return false;
    }
    return true;
}

/* ---- Killing ------------------------------------------------------------------- */

/* Shared with the process that works: how many calls it has acknowledged. */
static uint64_t *acknowledged;

static void work(struct fixture *f, uint64_t seed)
{
    struct pmfs *fs;

    if (pmfs_mount(f->path, NULL, &fs) < 0)
        _exit(1);
    for (int i = 0; i < CALLS_MAX; i++) {
        struct call call = call_of(seed, *acknowledged);

        do_call(fs, &call);
        __atomic_store_n(acknowledged, *acknowledged + 1, __ATOMIC_RELEASE);
    }
    for (;;)
        pause();
}

/* `calls` come first, however slow the machine is. */
static void work_and_kill(struct fixture *f, uint64_t seed, unsigned after_us,
                          uint64_t calls)
{
    uint64_t enough = *acknowledged + calls;
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        work(f, seed);
    while (__atomic_load_n(acknowledged, __ATOMIC_ACQUIRE) < enough)
        assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
    usleep(after_us);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

static uint64_t from_environment(const char *name, uint64_t otherwise)
{
    const char *value = getenv(name);

    return value ? strtoull(value, NULL, 0) : otherwise;
}

static void
killed_writer_loses_nothing_acknowledged_and_leaves_nothing_half_done(void **state)
{
    struct fixture *f = *state;
    uint64_t seed = from_environment("PMFS_TEST_SEED", 20150108);
    uint64_t kills = from_environment("PMFS_TEST_KILLS", 60);
    uint64_t in_model = 0, undone = 0, orphans = 0, truncates = 0;
    struct pmfs_recovery recovery;
    struct minl2r_info info;
    struct model model;

    print_message("          seed %llu\n", (unsigned long long)seed);
    acknowledged = mmap(NULL, sizeof(*acknowledged), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(acknowledged, MAP_FAILED);
    fixture_mkfs(f, 80 * MIB);
    model_init(&model);
    for (uint64_t i = 0; i < kills; i++) {
        /* Every other one may be killed while it mounts. */
        work_and_kill(f, seed, (unsigned)(mix(seed + i) % 40000), i % 2 ? 3 : 0);
        fixture_fsck(f);
        fixture_mount(f);
        pmfs_recovery(f->fs, &recovery);
        orphans += recovery.orphans;
        truncates += recovery.truncates;
        assert_ok(minl2r_pool_info(pmfs_pool(f->fs), &info));
        undone += info.recovery.lanes;
        for (; in_model < *acknowledged; in_model++)
            do_in_model(&model, &(struct call[]){call_of(seed, in_model)}[0]);
        if (!is_same(f->fs, &model)) {
            /* The call that was running had been done. */
            do_in_model(&model, &(struct call[]){call_of(seed, in_model++)}[0]);
            *acknowledged = in_model;
            assert_true(is_same(f->fs, &model));
        }
        fixture_unmount(f);
        fixture_fsck(f);
        assert_int_equal(f->summary.orphans + f->summary.truncates, 0);
    }
    print_message("          %llu calls, %llu transactions undone, %llu orphans freed, "
                  "%llu truncations ended\n",
                  (unsigned long long)in_model, (unsigned long long)undone,
                  (unsigned long long)orphans, (unsigned long long)truncates);
    assert_true(in_model > kills);
    model_finish(&model);
    munmap(acknowledged, sizeof(*acknowledged));
}

/* Kills who makes a filesystem. Nothing at all is left, or all of it is there. */
static void make_and_kill(struct fixture *f, unsigned after_us, int *made)
{
    pid_t pid = fork();
    int status;

    assert_true(pid >= 0);
    if (pid == 0)
        _exit(pmfs_mkfs(f->path, 8 * MIB, &f->mkfs) < 0);
    usleep(after_us);
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
    if (rmdir(f->dir) == 0) {
        assert_int_equal(mkdir(f->dir, 0700), 0);
        return;
    }
    ++*made;
    fixture_fsck(f);
    assert_int_equal(unlink(f->path), 0);
}

static void killed_mkfs_leaves_a_whole_filesystem_or_no_file(void **state)
{
    struct fixture *f = *state;
    int made = 0;

    for (unsigned i = 0; i < 100; i++)
        make_and_kill(f, i * 100, &made);
    print_message("          %d made\n", made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST_EMPTY(killed_mkfs_leaves_a_whole_filesystem_or_no_file),
        TEST_EMPTY(
            killed_writer_loses_nothing_acknowledged_and_leaves_nothing_half_done),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
