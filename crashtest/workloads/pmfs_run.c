/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/pmfs_run.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "crashtest/guard.h"
#include "crashtest/number.h"
#include "crashtest/runtime/record.h"
#include "crashtest/workloads/door.h"
#include "crashtest/workloads/pmfs_cover.h"
#include "crashtest/workloads/pmfs_mutants.h"
#include "crashtest/workloads/pmfs_tree.h"

#define WHY_MAX 380
#define EVENTS_MAX ((size_t)1 << 20)
#define HOOKS_MAX ((uint64_t)20 * 1000 * 1000)
#define KEPT "/lost+found/#blocks-0x"
#define MORE_EVERY 32 /* of the states that are many, one is also used */

/* PM is somewhere else after a crash. */
#define RUN_ADDRESS ((uintptr_t)0x100000000000)
#define RECOVERY_ADDRESS ((uintptr_t)0x140000000000)

enum { OUTER_THREAD = 1, INSIDE_THREAD = 2 };

/* What may be seen of an operation, as bits, and what was: [OUTER] of the last one,
 * [INSIDE] of the one inside it. */
enum { BEFORE = 1, AFTER = 2 };
enum { OUTER, INSIDE, PARTS };

/* There is one run at a time. */
static struct {
    struct subject subject;
    const char *operations[4]; /* by number, as the trace has them; ends with NULL */
    bool has_failed;           /* without any crash: */
    char failure[400];
    bool is_impossible; /* no room for what has to be there before, no such pause, or
                             a lock is held there */
    struct pmfs_script script;
    struct door_fault fault; /* of what is crashed */
    uint8_t **images;        /* [scene_image_count]; NULL: not made yet */
    uint8_t *memory;         /* of the run */
    uint8_t *image;          /* of recovery */
    uint8_t *shadow;
    uint8_t *base; /* what image and shadow are between the states */
    struct trace *trace;
    struct trace *after; /* what comes after recovery */

    /* Lines of blocks that the run has stored to. */
    bool is_touched[SCENE_SIZE / LINE_SIZE];
    uint32_t touched[SCENE_SIZE / LINE_SIZE];
    size_t touched_count;
    struct scene live, recovered;
    struct tree before, done, found; /* before and after the last operation */
    uint32_t pauses;                 /* that the last operation has come to */
    bool inside_runs, inside_ran;
    bool inside_would_wait; /* for a lock that the outer one holds */
    jmp_buf give_up;
    int inside_result;
    uint64_t outcome; /* of the run's state that recovery is crashed of */
} bench;

/* ---- Scripts --------------------------------------------------------------------- */

void pmfs_script_print(const struct pmfs_script *script, char name[PMFS_NAME_SIZE])
{
    size_t length =
        (size_t)snprintf(name, PMFS_NAME_SIZE, "pmfs/%s/", script->image->name);

    for (size_t i = 0; i < script->op_count && length < PMFS_NAME_SIZE; i++)
        length += (size_t)snprintf(name + length, PMFS_NAME_SIZE - length, "%s%s",
                                   i ? "+" : "", script->ops[i]->name);
    if (script->inside && length < PMFS_NAME_SIZE)
        snprintf(name + length, PMFS_NAME_SIZE - length, "@%u=%s", script->pause,
                 script->inside->name);
}

static const char *parse_ops(struct pmfs_script *script, const char *text)
{
    while (script->op_count < PMFS_OPS_MAX) {
        size_t length = strcspn(text, "+@:");
        const struct op *op = op_find(text, length);

        if (!op)
            return NULL;
        script->ops[script->op_count++] = op;
        text += length;
        if (*text != '+')
            return text;
        text++;
    }
    return NULL;
}

static bool parse_inside(struct pmfs_script *script, const char *text)
{
    uint64_t pause;

    if (!number_take(&text, 10, UINT32_MAX, &pause) || *text != '=')
        return false;
    text++;
    script->pause = (uint32_t)pause;
    script->inside = op_find(text, strcspn(text, ":"));
    return script->inside && script->inside->sets & OP_INSIDE &&
           !(script->ops[script->op_count - 1]->sets & OP_ALONE);
}

bool pmfs_script_parse(struct pmfs_script *script, const char *name)
{
    static const char prefix[] = "pmfs/";

    *script = (struct pmfs_script){0};
    if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
        return false;
    name += sizeof(prefix) - 1;
    size_t length = strcspn(name, "/");

    script->image = scene_image_find(name, length);
    if (!script->image || name[length] != '/')
        return false;
    name = parse_ops(script, name + length + 1);
    if (!name || *name != '@')
        return name != NULL;
    return parse_inside(script, name + 1);
}

/* ---- What was judged already ----------------------------------------------------- */

/*
 * Most states are recovered to one of a few images. What fsck and the tree show depends
 * on blocks alone, so it is the same for those that differ in their logs only. (Of the
 * lines that are explored lazily it is not known yet what they have.)
 */
#define MEMO_SIZE 4096u

static struct memo {
    uint64_t key; /* 0: none */
    uint64_t outcome;
} memo[MEMO_SIZE];

static void note_touched(const struct trace *trace)
{
    uint64_t blocks = bench.live.pool.geo.zones_offset;

    for (size_t i = 0; i < trace->count; i++) {
        uint64_t line = trace->events[i].at / LINE_SIZE;

        if (!trace_is_store(&trace->events[i]) || bench.is_touched[line] ||
            line * LINE_SIZE < blocks)
            continue;
        bench.is_touched[line] = true;
        bench.touched[bench.touched_count++] = (uint32_t)line;
    }
}

static void forget_touched(size_t from)
{
    while (bench.touched_count > from)
        bench.is_touched[bench.touched[--bench.touched_count]] = false;
}

static void begin_memo(void)
{
    memset(memo, 0, sizeof(memo));
    forget_touched(0);
    note_touched(bench.trace);
}

/* ---- The run --------------------------------------------------------------------- */

static int fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    bench.has_failed = true;
    vsnprintf(bench.failure, sizeof(bench.failure), format, args);
    va_end(args);
    return -1;
}

static uint8_t *map_at(uintptr_t address)
{
    void *memory = mmap((void *)address, SCENE_SIZE, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

    return memory == MAP_FAILED ? NULL : memory;
}

static void init_bench(void)
{
    if (bench.images)
        return;
    bench.images = calloc(scene_image_count, sizeof(*bench.images));
    bench.memory = map_at(RUN_ADDRESS);
    bench.image = map_at(RECOVERY_ADDRESS);
    bench.shadow = aligned_alloc(PM_PAGE, SCENE_SIZE);
    bench.base = aligned_alloc(PM_PAGE, SCENE_SIZE);
    bench.trace = trace_create(EVENTS_MAX);
    bench.after = trace_create(EVENTS_MAX);
    if (!bench.images || !bench.memory || !bench.image || !bench.shadow ||
        !bench.base || !bench.trace || !bench.after || guard_init() < 0) {
        fputs("crashtest: no memory for pmfs\n", stderr);
        exit(2);
    }
}

static const uint8_t *image_of(const struct scene_image *image)
{
    uint8_t **made = &bench.images[image - scene_images];

    if (*made)
        return *made;
    *made = aligned_alloc(PM_PAGE, SCENE_SIZE);
    if (!*made || scene_make(image, *made) < 0) {
        fprintf(stderr, "crashtest: cannot make image %s of pmfs: %s\n", image->name,
                pmfs_errormsg());
        exit(2);
    }
    return *made;
}

/* An operation may find no room; then it must have done nothing. */
static bool is_good(int rc)
{
    return rc == 0 || rc == -ENOSPC;
}

static int fail_op(const struct op *op, const char *what, int rc)
{
    return fail("%s of %s fails, without any crash: %s", what, op->name, strerror(-rc));
}

static int prepare(const struct op *op)
{
    int rc = op->prepare(&bench.live, op);

    if (rc == -ENOSPC)
        bench.is_impossible = true;
    return rc == 0 || rc == -ENOSPC ? rc : fail_op(op, "preparation", rc);
}

/* Unless it is. */
static int mount_live(void)
{
    if (bench.live.fs || scene_mount(&bench.live, bench.memory) == 0)
        return 0;
    return fail("it cannot be mounted: %s", pmfs_errormsg());
}

static int run_prefix(void)
{
    const struct pmfs_script *script = &bench.script;
    int rc = 0;

    for (size_t i = 0; i + 1 < script->op_count && rc == 0; i++) {
        rc = prepare(script->ops[i]);
        if (rc < 0)
            return rc;
        rc = script->ops[i]->run(&bench.live, script->ops[i]);
        if (!is_good(rc))
            return fail_op(script->ops[i], "run", rc);
        rc = mount_live();
    }
    if (rc == 0 && script->inside)
        rc = prepare(script->inside);
    return rc < 0 ? rc : prepare(script->ops[script->op_count - 1]);
}

/* What is damaged cannot be read: it is never shown as it was before. */
static bool repairs(void)
{
    return bench.script.ops[bench.script.op_count - 1]->sets & OP_REPAIR;
}

/* A file of blocks that nothing reached. */
static bool is_kept(const struct tree_node *node)
{
    return strncmp(node->path, KEPT, strlen(KEPT)) == 0;
}

/* Who makes it once more does so in a later generation. */
static void forget_tries(struct tree *tree)
{
    for (uint32_t i = 0; i < tree->count; i++) {
        struct tree_node *node = &tree->nodes[i];

        if (is_kept(node) || strcmp(node->path, "/lost+found") == 0)
            node->generation = 0;
    }
}

/*
 * Where the first block of such a file lies, as its name says; 0: it is none, or empty.
 */
static uint64_t kept_from(const struct tree_node *node)
{
    uint64_t from;

    if (node->size == 0 || !is_kept(node))
        return 0;
    const char *text = node->path + strlen(KEPT);

    return number_take(&text, 16, UINT64_MAX, &from) ? from : 0;
}

/*
 * Instead of a hash of the content: the sum of those of its blocks, and whose they are.
 */
static int sum_blocks(struct pmfs *fs, struct tree_node *node)
{
    static uint8_t block[MINL2R_BLOCK_SIZE_MAX];
    const uint64_t size = bench.script.image->options.block_size;
    const uint32_t owner[] = {node->mode, node->nlink, node->uid, node->gid};
    uint64_t seed = XXH3_64bits_withSeed(owner, sizeof(owner), node->attributes);
    size_t done;
    int rc = 0;

    seed = XXH3_64bits_withSeed(node->times, sizeof(node->times), seed);
    node->content = 0;
    for (uint64_t at = 0; rc == 0 && at < node->size; at += size) {
        rc = pmfs_read(fs, node->ino, at, block, size, &done);
        node->content += XXH3_64bits_withSeed(block, size, seed);
    }
    return rc;
}

/* Into the first of them, by name. */
static void join(struct tree_node *all, const struct tree_node *node)
{
    const uint64_t size = all->size + node->size,
                   content = all->content + node->content;

    if (kept_from(node) < kept_from(all))
        *all = *node;
    all->size = size;
    all->content = content;
}

/*
 * What a repair that was cut off has not kept any more is in a file of the next one.
 * They are taken for one file, which has the blocks of all; in which order does not
 * count, nor how many nodes lead to them.
 */
static int join_kept(struct pmfs *fs, struct tree *tree)
{
    struct tree_node *all = NULL;
    uint32_t count = 0;
    int rc = 0;

    for (uint32_t i = 0; rc == 0 && i < tree->count; i++) {
        struct tree_node node = tree->nodes[i];
        bool has_blocks = kept_from(&node) > 0;

        if (has_blocks) {
            rc = sum_blocks(fs, &node);
            node.blocks = 0;
        }
        if (has_blocks && all) {
            join(all, &node);
            continue;
        }
        tree->nodes[count++] = node;
        if (has_blocks)
            all = &tree->nodes[count - 1];
    }
    tree->count = count;
    return rc;
}

static int read_tree(struct pmfs *fs, struct tree *tree)
{
    int rc = tree_read(fs, tree);

    if (rc == 0 && repairs()) {
        forget_tries(tree);
        rc = join_kept(fs, tree);
    }
    return rc;
}

static int read_live(struct tree *tree)
{
    int rc = read_tree(bench.live.fs, tree);

    return rc < 0 ? fail("the tree cannot be read: %s", strerror(-rc)) : 0;
}

static int begin_live(void)
{
    recorder.trace = NULL;
    mprotect(bench.memory, SCENE_SIZE, PROT_READ | PROT_WRITE);
    memcpy(bench.memory, image_of(bench.script.image), SCENE_SIZE);
    scene_begin_world();
    bench.live = (struct scene){.serial = 2};
    int rc = mount_live();

    if (rc == 0)
        rc = run_prefix();
    return rc < 0 || repairs() ? rc : read_live(&bench.before);
}

static void mark(enum trace_kind kind, uint64_t operation)
{
    record_settle();
    trace_add(bench.trace, kind)->at = operation;
}

/*
 * Of the inode table's lock: a thread that has it for writing, as the outer call does
 * where it makes the table grow, is told so, where another would wait.
 */
static int note_wait(int result)
{
    bench.inside_would_wait |= bench.inside_runs && result == EDEADLK;
    return result;
}

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __real_pthread_rwlock_rdlock(pthread_rwlock_t *lock);
int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock);
int __real_pthread_rwlock_wrlock(pthread_rwlock_t *lock);

int __wrap_pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    return note_wait(__real_pthread_rwlock_rdlock(lock));
}

int __wrap_pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    return note_wait(__real_pthread_rwlock_wrlock(lock));
}

void __wrap_spin_wait(uint32_t round);
void __real_spin_wait(uint32_t round);

/* For an inode that the outer one has locked: what there is of both is given up. */
void __wrap_spin_wait(uint32_t round)
{
    if (!bench.inside_ran) {
        __real_spin_wait(round);
        return;
    }
    bench.inside_would_wait = true;
    longjmp(bench.give_up, 1);
}

static void run_inside(void *arg)
{
    const struct op *inside = bench.script.inside;
    uint32_t outer;

    (void)arg;
    if (bench.inside_ran || bench.pauses++ != bench.script.pause)
        return;
    bench.inside_ran = true;
    outer = record_as_thread(INSIDE_THREAD);
    mark(TRACE_BEGIN, 1);
    bench.inside_runs = true;
    bench.inside_result = inside->run(&bench.live, inside);
    bench.inside_runs = false;
    mark(TRACE_END, 1);
    record_as_thread(outer);
    mark(TRACE_BEGIN, 2);
}

static int record_op(void *arg)
{
    const struct op *op = bench.script.ops[bench.script.op_count - 1];
    int *rc = arg;

    mark(TRACE_BEGIN, 0);
    pmfs_enter(PMFS_RUN);
    door_break(bench.fault);
    door_watch_sites(true);
    if (setjmp(bench.give_up) == 0)
        *rc = op->run(&bench.live, op);
    door_watch_sites(false);
    mark(TRACE_END, bench.inside_ran ? 2 : 0);
    return 0;
}

static int record_last(int *rc)
{
    struct guard_report report;
    char text[300];

    memcpy(bench.image, bench.memory, SCENE_SIZE);
    memcpy(bench.base, bench.memory, SCENE_SIZE);
    memcpy(bench.shadow, bench.memory, SCENE_SIZE);
    trace_clear(bench.trace);
    bench.pauses = 0;
    bench.inside_runs = bench.inside_ran = bench.inside_would_wait = false;
    record_pm("", -1, bench.memory, SCENE_SIZE, bench.shadow);
    recorder.locks_are_weak = true;
    record_as_thread(OUTER_THREAD);
    if (bench.script.inside)
        door_on_pause(run_inside, NULL);
    record_start(bench.trace);
    guard_call(record_op, rc, HOOKS_MAX, &report);
    record_look_for_unseen();
    record_stop();
    pmfs_enter(PMFS_ELSEWHERE);
    door_watch_sites(false);
    door_break((struct door_fault){0});
    door_on_pause(NULL, NULL);
    memcpy(bench.shadow, bench.image, SCENE_SIZE);
    record_pm("", -1, bench.image, SCENE_SIZE, bench.shadow);
    if (guard_succeeded(&report))
        return 0;
    guard_describe(&report, text, sizeof(text));
    return fail("the operation %s, without any crash", text);
}

static int judge_run(int rc)
{
    const struct op *op = bench.script.ops[bench.script.op_count - 1];
    char why[WHY_MAX / 2];

    if (!is_good(rc))
        return fail_op(op, "run", rc);
    if (bench.inside_ran && !is_good(bench.inside_result))
        return fail_op(bench.script.inside, "run", bench.inside_result);
    if (recorder.unseen > 0)
        return fail("a store at offset 0x%llx was not seen by a hook",
                    (unsigned long long)recorder.unseen_at);
    if (mount_live() < 0 || read_live(&bench.done) < 0)
        return -1;
    if (rc < 0 &&
        !tree_matches(TREE_ALL, &bench.done, &bench.before, NULL, why, sizeof(why)))
        return fail("%s finds no room, but %s", op->name, why);
    return 0;
}

/* Runs and records the script. */
static void run_script(void)
{
    const struct pmfs_script *script = &bench.script;
    const struct op *last = script->ops[script->op_count - 1];
    int rc = 0;

    bench.has_failed = bench.is_impossible = false;
    bench.operations[0] = bench.operations[2] = last->name;
    bench.operations[1] = script->inside ? script->inside->name : NULL;
    if (begin_live() == 0 && record_last(&rc) == 0 && !bench.inside_would_wait)
        judge_run(rc);
    scene_drop(&bench.live);
    mprotect(bench.memory, SCENE_SIZE,
             PROT_NONE); /* nothing may point there any more */
    cover_run(bench.trace);
    begin_memo();
    if (script->inside && !bench.inside_ran && !bench.has_failed)
        bench.is_impossible = true;
    if (bench.inside_would_wait)
        bench.is_impossible = true;
}

/* ---- Judging --------------------------------------------------------------------- */

struct judging {
    const struct crash *crash;
    struct verdict *verdict;
    uint64_t seen; /* outcome that was seen already; 0: none */
    bool repairs;  /* first: no repair has returned yet */
    char why[WHY_MAX];
};

static int mount(void *arg)
{
    struct judging *judging = arg;
    int rc = judging->repairs ? scene_repair(&bench.recovered, bench.image) : 0;

    judging->repairs = false;
    if (rc == 0 && scene_mount(&bench.recovered, bench.image) == 0)
        return 0;
    snprintf(judging->why, sizeof(judging->why), "%s", pmfs_errormsg());
    return -1;
}

static int fsck(void *arg)
{
    struct judging *judging = arg;

    int rc = scene_check(&bench.recovered, judging->why, sizeof(judging->why));

    if (rc == 0 && repairs())
        rc = scene_check_pool(&bench.recovered, judging->why, sizeof(judging->why));
    return rc;
}

/*
 * To the trace what is crashed is one operation, number 0; or, with one inside it,
 * three: 0 until that begins, 1 while it runs, and 2 once it has returned.
 */
static void find_allowed(const struct crash *crash, unsigned allowed[PARTS])
{
    bool has_inside = bench.script.inside != NULL;
    bool begun = crash->running != NO_OPERATION || crash->returned > 0;
    bool returned = crash->returned > (has_inside ? 2 : 0);
    bool inside_begun = crash->running == 1 || crash->returned > 1;
    bool inside_returned = crash->returned > 1;

    allowed[OUTER] = (returned ? 0 : BEFORE) | (begun ? AFTER : 0);
    if (repairs())
        allowed[OUTER] = AFTER;
    allowed[INSIDE] = (inside_returned ? 0 : BEFORE) | (inside_begun ? AFTER : 0);
}

/*
 * Before or after, and nothing in between; times may be early. As bits what it is like:
 * both, where only times differ. 0: neither.
 */
static unsigned compare_part(enum tree_part part, unsigned allowed, bool has_begun,
                             char *why, size_t size)
{
    char unlike_before[WHY_MAX / 2 - 30], unlike_after[WHY_MAX / 2 - 30];
    unsigned like = 0;

    if (allowed & AFTER && tree_matches(part, &bench.found, &bench.done, NULL,
                                        unlike_after, sizeof(unlike_after)))
        like |= AFTER;
    if (allowed & BEFORE &&
        tree_matches(part, &bench.found, &bench.before, has_begun ? &bench.done : NULL,
                     unlike_before, sizeof(unlike_before)))
        like |= BEFORE;
    if (like == 0 && allowed == (BEFORE | AFTER))
        snprintf(why, size, "neither as before (%s) nor as after (%s)", unlike_before,
                 unlike_after);
    else if (like == 0)
        snprintf(why, size, "%s", allowed & AFTER ? unlike_after : unlike_before);
    return like;
}

/* What was seen once has to stay: bits as of `seen`, or 0 if there is none. */
static int compare(struct judging *judging, uint64_t seen)
{
    unsigned allowed[PARTS], like[PARTS] = {0};
    unsigned parts = bench.script.inside ? PARTS : 1;

    find_allowed(judging->crash, allowed);
    for (unsigned i = 0; i < parts; i++) {
        enum tree_part part = parts == 1 ? TREE_ALL : i == INSIDE ? TREE_B : TREE_NOT_B;

        bool has_begun = allowed[i] & AFTER;

        if (seen)
            allowed[i] &= (unsigned)(seen >> (2 * i) & 3);
        like[i] = compare_part(part, allowed[i], has_begun, judging->why,
                               sizeof(judging->why));
        if (!like[i])
            return -1;
    }
    judging->verdict->outcome = like[OUTER] | like[INSIDE] << 2;
    return 0;
}

static int look(void *arg)
{
    struct judging *judging = arg;
    int rc = read_tree(bench.recovered.fs, &bench.found);

    if (rc == 0)
        return compare(judging, judging->seen);
    snprintf(judging->why, sizeof(judging->why), "it cannot be read: %s: %s",
             strerror(-rc), pmfs_errormsg());
    return rc;
}

static int drop(void *arg)
{
    (void)arg;
    scene_drop(&bench.recovered);
    return 0;
}

/* Creates, writes, removes everything; then nothing may be left. */
static int use(void *arg)
{
    struct judging *judging = arg;
    struct scene *scene = &bench.recovered;
    int rc = scene_create(scene, "used", 1200);

    if (is_good(rc))
        rc = scene_empty(scene, PMFS_ROOT_INO);
    if (rc == 0)
        rc = scene_create(scene, "used", 1200);
    if (rc == 0)
        return scene_check(scene, judging->why, sizeof(judging->why));
    snprintf(judging->why, sizeof(judging->why), "%s", strerror(-rc));
    return rc;
}

static bool try_step(struct judging *judging, const char *step, guard_fn *function)
{
    struct verdict *verdict = judging->verdict;
    struct guard_report report;
    char text[WHY_MAX];

    judging->why[0] = 0;
    guard_call(function, judging, HOOKS_MAX, &report);
    if (guard_succeeded(&report))
        return true;
    guard_describe(&report, text, sizeof(text));
    verdict->kind = VERDICT_WRONG;
    verdict->step = step;
    snprintf(verdict->message, sizeof(verdict->message), "%s: %s", step,
             judging->why[0] ? judging->why : text);
    return false;
}

/* What is dear is asked of the same states each time. */
static bool is_time_for_more(const struct crash *crash)
{
    return crash->is_rare || crash->state % MORE_EVERY == 0;
}

static bool try_more(struct judging *judging)
{
    judging->seen = judging->verdict->outcome;
    return try_step(judging, "end", drop) &&
           try_step(judging, "second recovery", mount) &&
           try_step(judging, "fsck after a second recovery", fsck) &&
           try_step(judging, "tree after a second recovery", look) &&
           try_step(judging, "use", use);
}

/* Of an image that was recovered: lines that are as before the run do not count. */
static uint64_t hash_image(const struct trace *recovery)
{
    size_t of_run = bench.touched_count;
    uint64_t hash = 0;

    note_touched(recovery);
    for (size_t i = 0; i < bench.touched_count; i++) {
        uint64_t at = (uint64_t)bench.touched[i] * LINE_SIZE;

        hash += XXH3_64bits_withSeed(bench.image + at, LINE_SIZE, at) -
                XXH3_64bits_withSeed(bench.base + at, LINE_SIZE, at);
    }
    forget_touched(of_run);
    return hash;
}

static struct memo *find_memo(const struct judging *judging,
                              const struct trace *recovery)
{
    uint64_t hash = hash_image(recovery);
    unsigned allowed[PARTS];

    find_allowed(judging->crash, allowed);
    const uint64_t all[] = {hash, allowed[OUTER], allowed[INSIDE], judging->seen};
    uint64_t key = XXH3_64bits(all, sizeof(all)) | 1;
    struct memo *place = &memo[key % MEMO_SIZE];

    if (place->key != key)
        *place = (struct memo){.key = key};
    return place;
}

static bool try_looking(struct judging *judging, const struct trace *recovery)
{
    bool is_dear = is_time_for_more(judging->crash) || recorder.on_access;
    struct memo *known = is_dear ? NULL : find_memo(judging, recovery);

    if (known && known->outcome != 0) {
        judging->verdict->outcome = known->outcome;
        return true;
    }
    if (!try_step(judging, "fsck", fsck) || !try_step(judging, "tree", look))
        return false;
    if (known)
        known->outcome = judging->verdict->outcome;
    return true;
}

static void revert(const struct trace *trace)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct trace_event *e = &trace->events[i];

        if (!trace_is_store(e))
            continue;
        trace_store_piece(bench.image + e->at, e->before, e->size);
        trace_store_piece(bench.shadow + e->at, e->before, e->size);
    }
}

static void judge(void *arg, const struct crash *crash, struct trace *recovery,
                  struct verdict *verdict)
{
    struct judging judging = {.crash = crash, .verdict = verdict};
    bool good;

    (void)arg;
    *verdict = (struct verdict){0};
    if (crash->again && crash->recovery_returned > 0)
        judging.seen = bench.outcome;
    judging.repairs = repairs() && crash->returned == 0 && judging.seen == 0;
    pmfs_enter(PMFS_RECOVERY);
    record_start(recovery);
    good = try_step(&judging, "recovery", mount);
    record_settle();
    trace_add(recovery, TRACE_END)->at = 0;
    record_stop();
    trace_clear(bench.after);
    record_start(bench.after);
    good = good && try_looking(&judging, recovery);
    if (!crash->again)
        bench.outcome = verdict->outcome;
    cover_recovery(recovery, verdict->outcome);
    if (good && is_time_for_more(crash))
        good = try_more(&judging);
    if (good)
        try_step(&judging, "end", drop);
    record_stop();
    pmfs_enter(PMFS_ELSEWHERE);
    revert(bench.after);
    revert(recovery);
}

static bool set_watch(void *arg, watch_fn *watch, void *watch_arg)
{
    (void)arg;
    recorder.on_access = watch;
    recorder.on_access_arg = watch_arg;
    return true;
}

/* ---- Exploring ------------------------------------------------------------------- */

static void init_subject(void)
{
    init_bench();
    bench.subject = (struct subject){
        .image = bench.image,
        .shadow = bench.shadow,
        .size = SCENE_SIZE,
        .trace = bench.trace,
        .judge = judge,
        .set_watch = set_watch,
    };
}

/* Runs the script to be explored. False if there is nothing to explore. */
static bool begin(const struct pmfs_script *script, struct suite_run *run,
                  char name[PMFS_NAME_SIZE])
{
    init_subject();
    bench.script = *script;
    pmfs_script_print(script, name);
    *run = (struct suite_run){
        .name = name,
        .workload = "pmfs",
        .subject = &bench.subject,
        .operations = bench.operations,
        .operation_count = script->inside ? 3 : 1,
    };
    run_script();
    return !bench.is_impossible;
}

static enum suite_result fail_run(const char *name, char *error)
{
    snprintf(error, WORKLOAD_ERROR_SIZE, "%.200s: %s", name, bench.failure);
    return SUITE_NOT_TESTED;
}

static enum suite_result answer(struct suite *suite, const char *name,
                                enum suite_result result, char *error)
{
    if (result == SUITE_NOT_TESTED)
        snprintf(error, WORKLOAD_ERROR_SIZE, "%.200s: %s", name, suite_error(suite));
    return result;
}

enum suite_result pmfs_test(const struct pmfs_script *script, struct suite *suite,
                            char *error)
{
    char name[PMFS_NAME_SIZE];
    struct suite_run run;

    if (!begin(script, &run, name))
        return SUITE_PASSED;
    if (bench.has_failed)
        return fail_run(name, error);
    return answer(suite, name, suite_explore(suite, &run), error);
}

/* Nothing is explained: that takes longer than to find it. */
bool pmfs_is_wrong(const struct pmfs_script *script, struct door_fault fault)
{
    const struct explore_options options = {
        .strategy = &strategies[0], .budget = 256, .seed = 1};
    char name[PMFS_NAME_SIZE];
    struct explore_count count;
    struct place place = {0};
    struct verdict verdict;
    struct suite_run run;

    bench.fault = fault;
    bool can_be = begin(script, &run, name);

    bench.fault = (struct door_fault){0};
    if (!can_be || bench.has_failed)
        return can_be;
    struct explorer *explorer = explorer_create(&bench.subject, &options);

    if (!explorer)
        exit(2);
    explorer_run(explorer, &count, &place, &verdict);
    explorer_destroy(explorer);
    place_finish(&place);
    return verdict.kind != VERDICT_RIGHT;
}

void pmfs_look(const struct pmfs_script *script)
{
    char name[PMFS_NAME_SIZE];
    struct suite_run run;

    begin(script, &run, name);
}

enum suite_result pmfs_replay(const char *id, struct suite *suite, char *error)
{
    char name[PMFS_NAME_SIZE];
    struct pmfs_script script;
    struct suite_run run;

    if (!pmfs_script_parse(&script, id) || !begin(&script, &run, name)) {
        snprintf(error, WORKLOAD_ERROR_SIZE, "this is no id of pmfs: %.300s", id);
        return SUITE_NOT_TESTED;
    }
    if (bench.has_failed)
        return fail_run(name, error);
    return answer(suite, name, suite_replay_run(suite, &run, id), error);
}
