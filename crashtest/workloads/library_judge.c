/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/library_judge.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "crashtest/guard.h"
#include "crashtest/runtime/record.h"
#include "crashtest/workloads/library_mutants.h"
#include "crashtest/workloads/library_run.h"
#include "libminl2r/alloc.h"
#include "libminl2r/check.h"
#include "libminl2r/lane.h"
#include "libminl2r/recovery.h"
#include "libminl2r/tx.h"

#define HOOKS_MAX ((uint64_t)1 << 20)
#define EVENTS_MAX ((size_t)1 << 18)

/* Operations of recovery's trace. */
enum { RECOVERY, TRANSACTION };

/* A state being judged. */
struct trial {
    struct library_judge *judge;
    const struct run *run;
    const struct crash *crash;
    struct expectation expected;
    struct trace *recovery;
    struct verdict *verdict;
    const char *step; /* being done */
    uint32_t shown;   /* the set of operations that recovery showed */
    struct minl2r_pool *pool;
};

typedef uint64_t __attribute__((may_alias)) any_u64;

/* ---- Old or new ------------------------------------------------------------------ */

static bool is_same(const uint8_t *a, const uint8_t *b)
{
    const any_u64 *x = (const any_u64 *)(const void *)a;
    const any_u64 *y = (const any_u64 *)(const void *)b;
    uint64_t difference = 0;

    for (unsigned i = 0; i < LINE_SIZE / 8; i++)
        difference |= x[i] ^ y[i];
    return difference == 0;
}

/* May this byte be there, although its operation is not in the set? */
static bool is_early(const struct line *line, uint32_t set, unsigned at, uint8_t byte)
{
    for (uint32_t step = 0; step < STEPS_MAX; step++)
        if ((set >> step & 1) == 0 && line->loose[step] >> at & 1 &&
            byte == line->images[set | 1u << step][at])
            return true;
    return false;
}

/* Bytes of operations that are not in the set, and may be there even so. */
static uint64_t loose_bytes(const struct line *line, uint32_t set)
{
    uint64_t loose = 0;

    for (uint32_t step = 0; step < STEPS_MAX; step++)
        if ((set >> step & 1) == 0)
            loose |= line->loose[step];
    return loose;
}

/*
 * Where lines are decided as they are loaded, what may be anything stays undecided, and
 * so does what comes after the first difference.
 */
static bool line_shows_so_far(const struct line *line, const uint8_t *memory,
                              uint32_t set, uint64_t loose)
{
    const uint8_t *image = line->images[set];

    for (unsigned i = 0; i < LINE_SIZE; i++) {
        if (loose >> i & 1)
            continue;
        record_load(memory + i, 1);
        if (memory[i] != image[i])
            return false;
    }
    return true;
}

static bool line_shows(const struct line *line, const uint8_t *memory, uint32_t set)
{
    const uint8_t *image = line->images[set];

    if (recorder.on_access)
        return line_shows_so_far(line, memory, set, loose_bytes(line, set));
    if (is_same(memory, image))
        return true;
    for (unsigned i = 0; i < LINE_SIZE; i++)
        if (memory[i] != image[i] && !is_early(line, set, i, memory[i]))
            return false;
    return true;
}

/* What only recovery has stored to must be as it was before the run. */
static bool is_store_harmless(const struct trial *t, const struct trace_event *e,
                              uint32_t set)
{
    const struct run *run = t->run;

    if (!trace_is_store(e) || e->at < run->geo.zones_offset ||
        run->line_index[e->at / LINE_SIZE] != 0 || !library_counts(run, e->at, set))
        return true;
    const uint8_t *bed = library_bed(run->script->setting);
    const uint8_t *image = t->judge->subject->image;

    for (uint64_t i = e->at; i < e->at + e->size; i++)
        if (bed[i] != image[i])
            return false;
    return true;
}

/* Where it is not this set's image; 0: nowhere. */
static uint64_t find_difference(const struct trial *t, uint32_t set)
{
    const struct run *run = t->run;
    const uint8_t *image = t->judge->subject->image;

    for (uint32_t i = 0; i < run->line_count; i++) {
        const struct line *line = &run->lines[i];

        if (!line->counts[set])
            continue;
        if (!line_shows(line, image + line->at, set))
            return line->at;
    }
    for (size_t i = 0; i < t->recovery->count; i++)
        if (!is_store_harmless(t, &t->recovery->events[i], set))
            return t->recovery->events[i].at;
    return 0;
}

static bool is_old_or_new(struct trial *t)
{
    uint32_t open = t->expected.running, some = 0;
    uint64_t differs;

    do { /* the fewest first: what is early is no operation */
        differs = find_difference(t, t->expected.returned | some);
        if (differs == 0) {
            t->shown = t->expected.returned | some;
            return true;
        }
        some = (some - open) & open;
    } while (some != 0);
    crashtest_fail("%s: at 0x%llx it differs from what has to be there",
                   open == 0 ? "what had returned is not there, or not only that"
                             : "neither old nor new",
                   (unsigned long long)differs);
    return false;
}

/* ---- What may be seen ------------------------------------------------------------ */

static struct expectation expected_of_run(const struct run *run,
                                          const struct crash *crash)
{
    return crash->running == NO_OPERATION ? run->returned[crash->returned]
                                          : run->running[crash->running];
}

/* Once recovery had returned, what it showed stays; then a transaction changes it. */
static struct expectation expected(const struct library_judge *judge,
                                   const struct run *run, const struct crash *crash)
{
    struct expectation now = expected_of_run(run, crash);

    if (!crash->again || crash->recovery_returned <= RECOVERY)
        return now;
    now = (struct expectation){.returned = judge->shown};
    if (crash->recovery_running == TRANSACTION)
        now.running = 1u << AGAIN;
    else if (crash->recovery_returned > TRANSACTION)
        now.returned |= 1u << AGAIN;
    return now;
}

/* ---- Oracles --------------------------------------------------------------------- */

/* 0: attached. 1: there may be no pool, and there is none. */
static int attach(struct trial *t)
{
    *t->pool = (struct minl2r_pool){.tx_lock = PTHREAD_MUTEX_INITIALIZER,
                                    .root_lock = PTHREAD_MUTEX_INITIALIZER};
    if (pool_attach(t->pool, &t->judge->pm, NULL) == 0)
        return 0;
    if (t->expected.may_be_no_pool)
        return 1;
    return crashtest_fail("cannot open the pool: %s", minl2r_errormsg());
}

static int check_generations(struct trial *t)
{
    const struct minl2r_pool *pool = t->pool;

    t->step = "generations";
    for (uint32_t i = 0; i < pool->geo.lane_count; i++) {
        const struct pm_batch *batch = pool_at(pool, pool_log_offset(pool, i));

        record_load(&batch->generation, sizeof(batch->generation));
        if (batch->generation > pool->lanes[i].settled)
            return crashtest_fail("generation %llu of lane %u was tried, and can come "
                                  "again",
                                  (unsigned long long)batch->generation, i);
        if (pool_lane(pool, i)->settled != pool->lanes[i].settled)
            return crashtest_fail("settled of lane %u differs from its twin", i);
    }
    return 0;
}

static int check_reservations(struct trial *t)
{
    uint64_t zeros = 0;

    t->step = "reservations";
    for (uint64_t i = 0; i < t->pool->geo.block_count; i += 64)
        zeros += (uint64_t)__builtin_popcountll(~*pool_bitmap_word(t->pool, i));
    if (alloc_free_blocks(t->pool) == zeros)
        return 0;
    return crashtest_fail("%llu blocks can be reserved, but %llu are free",
                          (unsigned long long)alloc_free_blocks(t->pool),
                          (unsigned long long)zeros);
}

static int run_recovery(struct trial *t)
{
    bool has_fault = t->judge->fault.kind != DOOR_IS_SOUND;

    if (has_fault)
        door_break(t->judge->fault);
    door_watch_sites(true);
    int result = recovery_run(t->pool);

    door_watch_sites(false);
    if (has_fault)
        door_break((struct door_fault){0});
    return result;
}

static int recover_attached(struct trial *t)
{
    if (run_recovery(t) < 0)
        return crashtest_fail("%s", minl2r_errormsg());
    record_settle();
    trace_add(t->recovery, TRACE_END)->at = RECOVERY;
    t->step = "old or new";
    if (!is_old_or_new(t))
        return -1;
    int result = check_generations(t);

    return result == 0 ? check_reservations(t) : result;
}

static int recover(void *arg)
{
    struct trial *t = arg;

    t->step = "recovery";
    int result = attach(t);

    if (result != 0)
        return result < 0 ? result : 0;
    result = recover_attached(t);
    pool_detach(t->pool);
    return result;
}

static void found_problem(void *arg, const char *what)
{
    char *text = arg;

    snprintf(text, 256, "%s", what);
}

static int check(void *arg)
{
    struct trial *t = arg;
    char problem[256] = "";

    t->step = "check";
    int result = attach(t);

    if (result != 0)
        return result < 0 ? result : 0;
    if (check_pool(t->pool, found_problem, problem) < 0)
        result = crashtest_fail("%s", problem[0] ? problem : minl2r_errormsg());
    pool_detach(t->pool);
    return result;
}

/* Not where lines are decided as they are loaded: it looks at bytes never written. */
static int use(struct trial *t)
{
    const struct setting *setting = t->run->script->setting;

    if (recorder.on_access || setting->is_full || setting->has_no_root ||
        setting->no_pool != IS_POOL)
        return 0;
    t->step = "use";
    int result = library_use(t->pool);

    if (result < 0)
        return crashtest_fail("%s", result == -EBADMSG
                                        ? "the pool does not hold what was stored"
                                        : minl2r_errormsg());
    return check_reservations(t);
}

static int recover_twice_attached(struct trial *t)
{
    if (recovery_run(t->pool) < 0)
        return crashtest_fail("%s", minl2r_errormsg());
    if (t->pool->recovery.lanes > 0)
        return crashtest_fail("it undoes again");
    uint64_t differs = find_difference(t, t->shown);

    if (differs != 0)
        return crashtest_fail("it changes the pool at 0x%llx",
                              (unsigned long long)differs);
    return use(t);
}

static int recover_twice(void *arg)
{
    struct trial *t = arg;

    t->step = "recover twice";
    int result = attach(t);

    if (result != 0)
        return result < 0 ? result : 0;
    result = recover_twice_attached(t);
    tx_free_all(t->pool);
    pool_detach(t->pool);
    return result;
}

/* Recovers, and does a transaction. The trace has marks of both. */
static int do_again(void *arg)
{
    struct trial *t = arg;

    t->step = "again";
    int result = attach(t);

    if (result != 0)
        return result < 0 ? result : 0;
    result = run_recovery(t);
    record_settle();
    trace_add(t->recovery, TRACE_END)->at = RECOVERY;
    trace_add(t->recovery, TRACE_BEGIN)->at = TRANSACTION;
    if (result == 0)
        result = library_do_again(t->pool);
    record_settle();
    trace_add(t->recovery, TRACE_END)->at = TRANSACTION;
    tx_free_all(t->pool);
    pool_detach(t->pool);
    return result == 0 ? 0 : crashtest_fail("%s", minl2r_errormsg());
}

/* ---- Judging --------------------------------------------------------------------- */

static void take_back(const struct subject *subject, const struct trace *trace)
{
    for (size_t i = trace->count; i-- > 0;) {
        const struct trace_event *e = &trace->events[i];

        if (!trace_is_store(e))
            continue;
        trace_store_piece(subject->image + e->at, e->before, e->size);
        trace_store_piece(subject->shadow + e->at, e->before, e->size);
    }
}

static bool try_step(struct trial *t, guard_fn *function)
{
    struct guard_report report;
    char text[420];

    guard_call(function, t, HOOKS_MAX, &report);
    if (guard_succeeded(&report))
        return true;
    guard_describe(&report, text, sizeof(text));
    t->verdict->kind = VERDICT_WRONG;
    t->verdict->step = t->step;
    snprintf(t->verdict->message, sizeof(t->verdict->message), "%s %s", t->step, text);
    return false;
}

static bool is_thorough(const struct library_judge *judge, const struct crash *crash)
{
    return crash->is_rare ||
           (judge->thorough > 0 && crash->state % judge->thorough == 0);
}

/* Not where lines are decided as they are loaded: recovery cannot be run anew. */
static bool has_again(const struct trial *t)
{
    const struct setting *setting = t->run->script->setting;

    return !t->crash->again && !recorder.on_access && !setting->is_full &&
           !setting->has_no_root && setting->no_pool == IS_POOL;
}

static bool recover_recorded(struct trial *t)
{
    record_start(t->recovery);
    mutate_in(MUTANT_IN_RECOVERY);
    bool good = try_step(t, recover);

    mutate_in(MUTANT_NOWHERE);
    record_stop();
    return good;
}

static bool look_after(struct trial *t)
{
    struct trace *after = t->judge->after;

    trace_clear(after);
    record_start(after);
    bool good = try_step(t, check) && try_step(t, recover_twice);

    record_stop();
    take_back(t->judge->subject, after);
    return good;
}

/* Recovery once more, from the same state, and a transaction: both can crash. */
static bool recover_and_go_on(struct trial *t)
{
    take_back(t->judge->subject, t->recovery);
    trace_clear(t->recovery);
    record_start(t->recovery);
    mutate_in(MUTANT_IN_RECOVERY);
    bool good = try_step(t, do_again);

    mutate_in(MUTANT_NOWHERE);
    record_stop();
    return good;
}

static void judge_thoroughly(struct trial *t)
{
    if (!try_step(t, check) || !recover_recorded(t) || !look_after(t))
        return;
    if (has_again(t))
        recover_and_go_on(t);
}

void library_judge_init(struct library_judge *judge, const struct subject *subject)
{
    judge->subject = subject;
    pm_adopt(&judge->pm, subject->image, LIBRARY_SIZE,
             library_last_run.script->setting->medium);
    if (!judge->after)
        judge->after = trace_create(EVENTS_MAX);
}

void library_judge(void *arg, const struct crash *crash, struct trace *recovery,
                   struct verdict *verdict)
{
    static struct minl2r_pool pool; /* is large, and cleared when it is attached */
    struct library_judge *judge = arg;
    struct trial trial = {.judge = judge,
                          .run = &library_last_run,
                          .crash = crash,
                          .expected = expected(judge, &library_last_run, crash),
                          .recovery = recovery,
                          .verdict = verdict,
                          .pool = &pool};

    *verdict = (struct verdict){0};
    if (is_thorough(judge, crash) && judge->after)
        judge_thoroughly(&trial);
    else
        recover_recorded(&trial);
    if (!crash->again)
        judge->shown = trial.shown;
    verdict->outcome = trial.shown;
    take_back(judge->subject, recovery);
}
