/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cases of a plan: a setting, and the first operation of its scripts. In rows, scripts
 * are a tree, and what comes before the last operation was explored as a shorter one:
 * only crashes from there on are. With lanes, each other operation runs at each pause
 * of the first, and a third one at each pause of that.
 */
#include <stdlib.h>
#include <string.h>

#include "crashtest/runtime/record.h"
#include "crashtest/workloads/flush.h"
#include "crashtest/workloads/library_judge.h"
#include "crashtest/workloads/library_mutants.h"
#include "crashtest/workloads/library_run.h"
#include "crashtest/workloads/sites.h"
#include "crashtest/workloads/workload.h"

#define NAME_MAX 200
#define THOROUGH 16
#define OPERATIONS_MAX_COUNT 128
#define HOOKS_MAX ((uint64_t)1 << 24)

/* ---- One script ------------------------------------------------------------------ */

/* Of this process. */
static struct {
    struct session session;
    struct subject subject;
    struct library_judge judge;
    bool is_ready;
    bool has_bug; /* in what is replayed */
} bench;

static bool set_watch(void *arg, watch_fn *watch, void *watch_arg)
{
    (void)arg;
    recorder.on_access = watch;
    recorder.on_access_arg = watch_arg;
    return true;
}

static size_t find_first_event(const struct script *script)
{
    const struct trace *trace = bench.session.trace;
    size_t i = 0;

    while (i < trace->count && (trace->events[i].kind != TRACE_BEGIN ||
                                trace->events[i].at < script->first_step))
        i++;
    return i;
}

/* Runs the script, and finds out what may be seen of it. NULL, or why not. */
static const char *record(const struct script *script, const char *name)
{
    const struct crashtest_program program = {.name = name,
                                              .pm_size = LIBRARY_SIZE,
                                              .run = library_run,
                                              .arg = (void *)(uintptr_t)script};
    const struct session_program tested = {.program = &program,
                                           .base = library_bed(script->setting),
                                           .in_process = true,
                                           .only_run = true};

    if (!bench.is_ready)
        session_init(&bench.session, HOOKS_MAX);
    bench.is_ready = true;
    int result = session_record(&bench.session, &tested);

    mutate_in(MUTANT_NOWHERE);
    door_break((struct door_fault){0});
    if (result < 0)
        return bench.session.error;
    if (bench.session.unseen > 0)
        return "stores have passed the hooks";
    library_expect(bench.session.trace);
    bench.subject = (struct subject){bench.session.image,
                                     bench.session.shadow,
                                     bench.session.size,
                                     bench.session.trace,
                                     library_judge,
                                     &bench.judge,
                                     set_watch};
    library_judge_init(&bench.judge, &bench.subject);
    return NULL;
}

static struct suite_run describe(const struct script *script, const char *name)
{
    return (struct suite_run){
        .name = name,
        .workload = script->setting->name,
        .subject = &bench.subject,
        .operations = bench.session.operations.names,
        .operation_count = bench.session.operations.count,
        .first = find_first_event(script),
        .strategy =
            script->setting->medium == MINL2R_EADR ? strategy_find("eadr") : NULL,
    };
}

static enum suite_result cannot_run(char *error, const char *name, const char *why)
{
    snprintf(error, WORKLOAD_ERROR_SIZE, "%s: %s", name, why);
    return SUITE_NOT_TESTED;
}

static enum suite_result test_script(const struct script *script, struct suite *suite,
                                     char *error)
{
    char name[NAME_MAX];

    if (!script_print(script, name, sizeof(name)))
        return cannot_run(error, script->setting->name, "a name is too long");
    const char *why = record(script, name);

    if (why)
        return cannot_run(error, name, why);
    if (!library_last_run.is_complete)
        return SUITE_PASSED;
    const struct suite_run run = describe(script, name);
    enum suite_result result = suite_explore(suite, &run);

    return result == SUITE_NOT_TESTED ? cannot_run(error, name, suite_error(suite))
                                      : result;
}

/* ---- Many ------------------------------------------------------------------------ */

enum kind { ROWS, REOPENED, LANES, FAILING, SPECIAL };

struct job {
    const struct setting *setting;
    enum kind kind;
    const struct operation *first;
};

struct testing {
    const struct plan *plan;
    struct suite *suite;
    char *error;
    enum suite_result worst;
};

#define JOBS_MAX 4096
static struct job jobs[JOBS_MAX];
static size_t job_count;

static void test(struct testing *testing, const struct script *script)
{
    enum suite_result result = test_script(script, testing->suite, testing->error);

    if (result > testing->worst)
        testing->worst = result;
}

static bool is_over(const struct testing *testing)
{
    return testing->worst == SUITE_NOT_TESTED;
}

static bool is_named(const struct plan *plan, const struct operation *operation)
{
    for (size_t i = 0; i < plan->operation_count; i++)
        if (strcmp(plan->operations[i], operation->name) == 0)
            return true;
    return plan->operation_count == 0;
}

static bool fits(const struct setting *setting, const struct operation *operation)
{
    return !setting->is_full || operation->flags & OPERATION_FITS_FULL;
}

/* Rows of three, and what runs at pauses of others, are of core operations only, unless
 * others are asked for, or time does not matter. */
static bool is_wanted(const struct plan *plan, const struct script *script,
                      uint32_t step)
{
    const struct operation *operation = script->steps[step];
    bool is_one_of_many =
        script->step_count == 3 || (script->is_nested && step > 0 && !plan->is_long);

    if (script->is_nested && operation->flags & OPERATION_ONLY_IN_ROWS)
        return false;
    return is_named(plan, operation) && fits(script->setting, operation) &&
           (!is_one_of_many || plan->operation_count > 0 ||
            operation->flags & OPERATION_IS_CORE);
}

/* The steps after the first, as digits of a number. False if they are not wanted. */
static bool choose_steps(const struct plan *plan, struct script *script,
                         uint64_t number)
{
    for (uint32_t i = 1; i < script->step_count; i++) {
        /* It is not 0. NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
        script->steps[i] = &library_operations[number % library_operation_count];
        number /= library_operation_count;
    }
    for (uint32_t i = 0; i < script->step_count; i++)
        if (!is_wanted(plan, script, i))
            return false;
    return true;
}

static uint64_t count_choices(const struct script *script)
{
    uint64_t count = 1;

    for (uint32_t i = 1; i < script->step_count; i++)
        count *= library_operation_count;
    return count;
}

/* Rows of one operation are explored in all settings, longer ones in the first, unless
 * another one is asked for. */
static uint32_t row_length(const struct plan *plan, const struct setting *setting)
{
    return plan->setting || setting == library_settings ? plan->length : 1;
}

static void test_rows(struct testing *testing, const struct job *job)
{
    struct script script = {.setting = job->setting, .steps = {job->first}};
    uint32_t length = row_length(testing->plan, job->setting);

    for (script.step_count = 1; script.step_count <= length; script.step_count++) {
        script.first_step = script.step_count - 1;
        for (uint64_t i = 0; i < count_choices(&script) && !is_over(testing); i++)
            if (choose_steps(testing->plan, &script, i))
                test(testing, &script);
    }
}

/* Another operation after the pool was opened anew: a row of three. */
static void test_reopened(struct testing *testing, const struct job *job)
{
    struct script script = {
        .setting = job->setting,
        .step_count = 3,
        .first_step = 2,
        .steps = {job->first, library_find_operation("reopen")},
    };

    for (uint32_t i = 0; i < library_operation_count && !is_over(testing); i++) {
        script.steps[2] = &library_operations[i];
        if (is_wanted(testing->plan, &script, 0) &&
            is_wanted(testing->plan, &script, 2))
            test(testing, &script);
    }
}

/* Of transactions that keep a lane, only as many as there are lanes. */
static bool has_lanes(const struct script *script)
{
    uint32_t held = 0;

    for (uint32_t i = 0; i < script->step_count; i++)
        held += (script->steps[i]->flags & OPERATION_HOLDS_LANE) != 0;
    return held <= script->setting->options.lanes;
}

/* At each pause of each step. */
static void test_pauses(struct testing *testing, struct script *script)
{
    uint32_t last = script->step_count - 2;

    memset(script->pauses, 0, sizeof(script->pauses));
    for (;;) {
        test(testing, script);
        if (is_over(testing))
            return;
        if (library_last_run.is_complete) {
            script->pauses[last]++;
        } else if (last > 0 && library_last_run.steps_begun > last) {
            script->pauses[last] = 0; /* the last step has no more of them */
            script->pauses[last - 1]++;
        } else {
            return;
        }
    }
}

/* On the same side a word is stored that the others do not change. */
static void test_same_side(struct testing *testing, const struct script *nested)
{
    struct script script = *nested;

    if (nested->steps[0]->flags & OPERATION_HAS_LONE_WORD || script.step_count > 2 ||
        strcmp(nested->steps[1]->name, "store_word") != 0)
        return;
    script.on_same_side = true;
    test_pauses(testing, &script);
}

static void test_lanes(struct testing *testing, const struct job *job)
{
    struct script script = {
        .setting = job->setting, .steps = {job->first}, .is_nested = true};
    uint32_t lanes = testing->plan->lanes;

    for (script.step_count = 2; script.step_count <= lanes; script.step_count++) {
        script.first_step = script.step_count - 1;
        for (uint64_t i = 0; i < count_choices(&script) && !is_over(testing); i++) {
            if (!choose_steps(testing->plan, &script, i) || !has_lanes(&script))
                continue;
            test_pauses(testing, &script);
            test_same_side(testing, &script);
        }
    }
}

/* Each fence fails once, of a run that was right. */
static void test_failing(struct testing *testing, const struct job *job)
{
    struct script script = {
        .setting = job->setting, .step_count = 1, .steps = {job->first}};

    test(testing, &script);
    uint64_t fences = library_last_run.calls.fences;

    for (uint64_t nth = 0; nth < fences && !is_over(testing); nth++) {
        struct script failing = script;

        script_fail_fence(&failing, nth);
        test(testing, &failing);
    }
}

static void test_special(struct testing *testing, const struct job *job)
{
    const struct script script = {
        .setting = job->setting, .step_count = 1, .steps = {job->first}};

    test(testing, &script);
}

static enum suite_result test_job(const struct plan *plan, size_t index,
                                  struct suite *suite, char *error)
{
    static void (*const tests[])(struct testing *, const struct job *) = {
        [ROWS] = test_rows,       [REOPENED] = test_reopened, [LANES] = test_lanes,
        [FAILING] = test_failing, [SPECIAL] = test_special,
    };
    struct testing testing = {.plan = plan, .suite = suite, .error = error};

    bench.judge.thorough = plan->thorough;

    tests[jobs[index].kind](&testing, &jobs[index]);
    return testing.worst;
}

/* ---- Plans ----------------------------------------------------------------------- */

static void add_job(const struct plan *plan, const struct setting *setting,
                    enum kind kind, const struct operation *first)
{
    if (job_count < JOBS_MAX && (kind == SPECIAL || is_named(plan, first)))
        jobs[job_count++] = (struct job){setting, kind, first};
}

static void add_jobs_of_operation(const struct plan *plan,
                                  const struct setting *setting,
                                  const struct operation *operation)
{
    if (plan->length > 0 && fits(setting, operation))
        add_job(plan, setting, ROWS, operation);
    if (row_length(plan, setting) > 2)
        add_job(plan, setting, REOPENED, operation);
    if (plan->lanes > 1 && (plan->setting || setting == library_settings))
        add_job(plan, setting, LANES, operation);
    if (plan->length > 0 && setting == library_settings &&
        operation->flags & OPERATION_ONLY_COMMITS)
        add_job(plan, setting, FAILING, operation);
}

static void add_jobs(const struct plan *plan, const struct setting *setting)
{
    const struct operation *special =
        setting->no_pool != IS_POOL ? library_find_operation("format")
        : setting->has_no_root      ? library_find_operation("create_root")
                                    : NULL;

    if (special && plan->length > 0 && plan->operation_count == 0)
        add_job(plan, setting, SPECIAL, special);
    for (uint32_t i = 0; i < library_operation_count && !special; i++)
        add_jobs_of_operation(plan, setting, &library_operations[i]);
}

static bool check_plan(const struct plan *plan, char *error)
{
    for (size_t i = 0; i < plan->operation_count; i++)
        if (!library_find_operation(plan->operations[i])) {
            snprintf(error, WORKLOAD_ERROR_SIZE,
                     "there is no operation \"%s\"; try 'crashtest list library'",
                     plan->operations[i]);
            return false;
        }
    if (plan->setting && !library_find_setting(plan->setting)) {
        snprintf(error, WORKLOAD_ERROR_SIZE,
                 "there is no setting \"%s\"; try 'crashtest list library'",
                 plan->setting);
        return false;
    }
    if (plan->random > 0) {
        snprintf(error, WORKLOAD_ERROR_SIZE, "library has no random sequences");
        return false;
    }
    if (plan->length <= STEPS_MAX && plan->lanes <= STEPS_MAX)
        return true;
    snprintf(error, WORKLOAD_ERROR_SIZE, "at most %d operations in a row or at once",
             STEPS_MAX);
    return false;
}

static size_t plan_jobs(const struct plan *plan, char *error)
{
    if (!check_plan(plan, error))
        return 0;
    job_count = 0;
    for (uint32_t i = 0; i < library_setting_count; i++)
        if (!plan->setting || strcmp(plan->setting, library_settings[i].name) == 0)
            add_jobs(plan, &library_settings[i]);
    if (job_count == 0)
        snprintf(error, WORKLOAD_ERROR_SIZE, "none of this can be run");
    return job_count;
}

static void list(FILE *out)
{
    fputs("settings:\n", out);
    for (uint32_t i = 0; i < library_setting_count; i++)
        fprintf(out, "  %-15s %s\n", library_settings[i].name,
                library_settings[i].what);
    fputs("operations (*: of which rows of three are made):\n", out);
    for (uint32_t i = 0; i < library_operation_count; i++)
        fprintf(out, "  %s%s\n", library_operations[i].name,
                library_operations[i].flags & OPERATION_IS_CORE ? " *" : "");
}

/* ---- Replaying, and bugs --------------------------------------------------------- */

/* In every step. */
static void put_bug(struct script *script)
{
    script->first_step = 0;
    script->fault = library_mutant_fault();
}

/* What may be seen of a run that fails is known of one that does not. */
static const char *record_as_named(const struct script *script, const char *name)
{
    struct script whole = *script;

    whole.fails = false;
    whole.fault = (struct door_fault){0};
    const char *why = script->fails ? record(&whole, name) : NULL;

    return why ? why : record(script, name);
}

static enum suite_result replay(const char *id, struct suite *suite, char *error)
{
    struct script script;
    char name[NAME_MAX];

    if (!script_parse(&script, id) || !script_print(&script, name, sizeof(name)))
        return cannot_run(error, id, "this is no id of this workload");
    if (bench.has_bug)
        put_bug(&script);
    const char *why = record_as_named(&script, name);

    if (why)
        return cannot_run(error, name, why);
    const struct suite_run run = describe(&script, name);
    enum suite_result result = suite_replay_run(suite, &run, id);

    return result == SUITE_NOT_TESTED ? cannot_run(error, name, suite_error(suite))
                                      : result;
}

/* What is asked of some states only is asked of all where it has to find the bug. */
static unsigned thorough_for(const struct mutant *mutant)
{
    return strcmp(mutant->oracle, "check") == 0 ? 1 : THOROUGH;
}

static enum suite_result kill_chosen(size_t index, struct suite *suite, char *error)
{
    const char *const *scripts = library_mutate(index);
    enum suite_result result = SUITE_PASSED;

    bench.judge.thorough = thorough_for(library_mutant(index));
    for (; *scripts && result == SUITE_PASSED; scripts++) {
        struct script script;

        if (!script_parse(&script, *scripts))
            return cannot_run(error, *scripts, "there is no such script");
        put_bug(&script);
        result = test_script(&script, suite, error);
    }
    return result;
}

/* ---- Every fence, stream and flush is needed ------------------------------------- */

/* What is left out, and why that is no bug. */
struct exception {
    const char *operation;
    struct door_fault fault;
};

/* clang-format off */
static const struct exception exceptions[] = {
    /* One word is old or new without a log. */
    {"write_word_and_same", {DOOR_LOSE_STREAM, 0}},
    {"write_word_and_same", {DOOR_LOSE_FENCE, 0}},
    {"alloc_and_write_same", {DOOR_LOSE_STREAM, 0}}, /* of the bitmap */
    {"alloc_and_write_same", {DOOR_LOSE_FENCE, 0}},
    /* Nothing refers to a block that was given back. */
    {"abort_writes", {DOOR_LOSE_STREAM, 0}},
    {"abort_writes", {DOOR_LOSE_FENCE, 0}},
    {"abort_all_kinds", {DOOR_LOSE_STREAM, 0}},
    {"block_beside_open", {DOOR_LOSE_STREAM, 0}},
    {"block_beside_open", {DOOR_LOSE_FENCE, 0}},
    {"slot_in_changed_block", {DOOR_LOSE_STREAM, 0}},
    {"alloc_nothing_left", {DOOR_LOSE_FENCE, 0}},
    {"alloc_nothing_left", {DOOR_LOSE_FLUSH, 0}},
    {"alloc_and_free_own", {DOOR_LOSE_FLUSH, 2}},
    /* Nothing refers to a block that is freed. */
    {"free_block_of_slot", {DOOR_LOSE_STREAM, 3}},
    /* Nor to one that was swapped away: what was stored there has moved along. */
    {"fresh_amid_changes", {DOOR_LOSE_FLUSH, 1}},
    {"snapshot_in_swapped_block", {DOOR_LOSE_FLUSH, 0}},
    /* The first snapshot has the same bytes, as they were before. */
    {"snapshots_same", {DOOR_LOSE_FENCE, 1}},
    {"snapshots_same", {DOOR_LOSE_STREAM, 1}},
    /* Nothing refers to a block yet. */
    {"snapshot_of_own_block", {DOOR_LOSE_FENCE, 0}},
};
/* clang-format on */

static bool is_harmless(const struct operation *operation, struct door_fault fault)
{
    for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
        if (strcmp(exceptions[i].operation, operation->name) == 0 &&
            exceptions[i].fault.kind == fault.kind &&
            exceptions[i].fault.nth == fault.nth)
            return true;
    return false;
}

/* Nothing is explained: that takes longer than to find it. */
static bool is_wrong(const struct script *script)
{
    const struct explore_options options = {.strategy = &strategies[0],
                                            .budget = 4096,
                                            .nested_budget =
                                                bench.judge.fault.kind ? 64 : 4,
                                            .kill = true,
                                            .seed = 1};
    struct explore_count count;
    struct place place = {0};
    struct verdict verdict;

    if (record(script, script->steps[0]->name))
        return true;
    struct explorer *explorer = explorer_create(&bench.subject, &options);

    if (!explorer)
        exit(2);
    explorer_run(explorer, &count, &place, &verdict);
    explorer_destroy(explorer);
    place_finish(&place);
    return verdict.kind != VERDICT_RIGHT;
}

/* Where slot commits stay live, one that logs, and so settles them. */
static const char *next_of(const struct setting *setting)
{
    return setting->has_own_lanes ? "snapshot" : "write_beside_open";
}

/* Alone, or before a transaction that has no bug. */
static bool is_found(const struct script *whole, struct door_fault fault)
{
    struct script script = *whole;

    script.fault = fault;
    if (is_wrong(&script))
        return true;
    if (script.step_count == STEPS_MAX || script.setting->no_pool != IS_POOL)
        return false;
    script.steps[script.step_count++] = library_find_operation(next_of(script.setting));
    return is_wrong(&script);
}

/* No bug, by name? */
static bool is_sound(const struct script *script, struct door_fault fault, bool is_last)
{
    const struct operation *operation = script->steps[script->first_step];

    /* An abort that is not settled is undone again, to the same. */
    return is_harmless(operation, fault) || (fault.kind != DOOR_LOSE_FLUSH && is_last &&
                                             operation->flags & OPERATION_ABORTS);
}

/* By the model a flush without effect needs no exploring. */
static bool has_no_effect(const struct script *whole, struct door_fault fault)
{
    struct script script = *whole;

    script.fault = fault;
    if (fault.kind != DOOR_LOSE_FLUSH || record(&script, script.steps[0]->name))
        return false;
    const struct door_left_out left_out = door_left_out();

    return !flush_is_missed(bench.session.trace, &left_out);
}

static void name_call(struct door_fault fault, char *error)
{
    const struct door_left_out left_out = door_left_out();
    int length = snprintf(error, WORKLOAD_ERROR_SIZE, "%s number %llu",
                          fault.kind == DOOR_LOSE_FENCE    ? "fence"
                          : fault.kind == DOOR_LOSE_STREAM ? "stream"
                                                           : "flush",
                          (unsigned long long)fault.nth);

    if (fault.kind == DOOR_LOSE_FLUSH)
        snprintf(error + length, WORKLOAD_ERROR_SIZE - (size_t)length,
                 " (of what is from 0x%llx to 0x%llx)",
                 (unsigned long long)left_out.start, (unsigned long long)left_out.end);
}

/* All that are missed, and no others. */
static bool are_found(const struct script *script, enum door_fault_kind kind,
                      uint64_t count, char *error)
{
    for (uint64_t nth = 0; nth < count; nth++) {
        const struct door_fault fault = {kind, nth};

        if (has_no_effect(script, fault) ||
            is_found(script, fault) != is_sound(script, fault, nth + 1 == count))
            continue;
        name_call(fault, error);
        return false;
    }
    return true;
}

/* Failed, if all are found. */
static enum suite_result kill_calls(const struct script *script, bool flushes_only,
                                    char *error)
{
    if (is_wrong(script)) {
        snprintf(error, WORKLOAD_ERROR_SIZE, "it is wrong without any bug");
        return SUITE_PASSED;
    }
    struct door_count calls = library_last_run.calls;
    bool found =
        flushes_only || (are_found(script, DOOR_LOSE_FENCE, calls.fences, error) &&
                         are_found(script, DOOR_LOSE_STREAM, calls.streams, error));

    return found && are_found(script, DOOR_LOSE_FLUSH, calls.flushes, error)
               ? SUITE_FAILED
               : SUITE_PASSED;
}

/* Flushes that no operation has which runs alone on a pool: of their last step. */
static const char *const flushing[] = {
    "garbage.format",
    "zeros.format",
    "no-root.create_root",
    "own-lanes.block_and_words+snapshot",
    "own-lanes.block_and_words+fresh_word_of_words",
    "own-lanes.block_and_words+store_word_of_words",
    "own-lanes.words+words",
    "own-lanes.many_words+word_of_many",
    "slots-and-bytes.words+word_of_words",
    "slots-and-bytes.block_and_words",
    "slots-and-bytes.holes_and_words",
    "swap-never.block_whole",
};
#define FLUSHING_COUNT (sizeof(flushing) / sizeof(*flushing))

static enum suite_result kill_flushes(const char *name, char *error)
{
    struct script script;

    if (!script_parse(&script, name))
        return cannot_run(error, name, "there is no such script");
    script.first_step = script.step_count - 1;
    return kill_calls(&script, true, error);
}

static enum suite_result kill_calls_of(const struct operation *operation, char *error)
{
    const struct script script = {
        .setting = library_settings, .step_count = 1, .steps = {operation}};

    return kill_calls(&script, false, error);
}

/* ---- The same of recovery -------------------------------------------------------- */

/*
 * What it meets: logs to undo, slot commits to finish or to undo, lone words, a pool
 * that was just made.
 */
static const char *const recovering[] = {
    "small-log.store_word",
    "small-log.write_ranges",
    "small-log.alloc_and_store",
    "small-log.free_run",
    "small-log.block_whole",
    "small-log.hole_part",
    "small-log.blocks_and_ranges",
    "slots-and-bytes.words",
    "slots-and-bytes.block_and_words",
    "slots-and-bytes.holes_and_words",
    "own-lanes.block_whole+block_whole",
    "garbage.format",
};
#define RECOVERING_COUNT (sizeof(recovering) / sizeof(*recovering))

static bool recover_with(size_t number, struct door_fault fault)
{
    struct script script;

    if (!script_parse(&script, recovering[number]))
        exit(2);
    bench.judge.fault = fault;
    bool wrong = is_wrong(&script);

    bench.judge.fault = (struct door_fault){0};
    return wrong;
}

static void look_at_recovery(size_t number)
{
    if (recover_with(number, (struct door_fault){0})) {
        fprintf(stderr, "crashtest: %s is wrong without any bug\n", recovering[number]);
        exit(2);
    }
}

/* Failed, if all are found. */
static enum suite_result kill_recovery(char *error)
{
    static const struct sites_needless needless[] = {{NULL, NULL}};
    const struct sites_hunt hunt = {RECOVERING_COUNT, recover_with, look_at_recovery,
                                    needless};

    return sites_are_found(&hunt, error) ? SUITE_FAILED : SUITE_PASSED;
}

static size_t count_chosen(void)
{
    size_t count = 0;

    while (library_mutant(count))
        count++;
    return count;
}

static struct mutant describe_calls(size_t number)
{
    if (number < library_operation_count)
        return (struct mutant){library_operations[number].name, "F1, N1-N6",
                               "a fence, stream or flush of this operation is left out",
                               NULL};
    number -= library_operation_count;
    if (number < FLUSHING_COUNT)
        return (struct mutant){flushing[number], "F1",
                               "a flush of the last operation is left out", NULL};
    return (struct mutant){"recovery", "F1, N1, R2, R10",
                           "a fence, stream or flush of recovery is left out", NULL};
}

/* First those of library_mutants.c, then the calls of each operation, then flushes of
 * some others, then all of recovery. */
static const struct mutant *find_mutant(size_t index)
{
    static struct mutant calls[OPERATIONS_MAX_COUNT + FLUSHING_COUNT + 1];
    size_t chosen = count_chosen();

    if (index < chosen)
        return library_mutant(index);
    size_t number = index - chosen;

    if (library_operation_count > OPERATIONS_MAX_COUNT ||
        number > library_operation_count + FLUSHING_COUNT)
        return NULL;
    calls[number] = describe_calls(number);
    return &calls[number];
}

static bool mutate(size_t index)
{
    bool is_one = index < count_chosen();

    if (is_one)
        library_mutate(index);
    bench.has_bug = is_one;
    return is_one;
}

static enum suite_result kill(size_t index, struct suite *suite, char *error)
{
    size_t chosen = count_chosen();

    bench.judge.thorough = THOROUGH;
    if (index < chosen)
        return kill_chosen(index, suite, error);
    index -= chosen;
    if (index < library_operation_count)
        return kill_calls_of(&library_operations[index], error);
    index -= library_operation_count;
    return index < FLUSHING_COUNT ? kill_flushes(flushing[index], error)
                                  : kill_recovery(error);
}

const struct workload library_workload = {
    .name = "library",
    .what = "transactions of libminl2r: all or nothing, durable when they return",
    .list = list,
    .plan = plan_jobs,
    .test = test_job,
    .replay = replay,
    .mutant = find_mutant,
    .mutate = mutate,
    .kill = kill,
};
