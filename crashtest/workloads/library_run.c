/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/workloads/library_run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crashtest/number.h"
#include "crashtest/runtime/record.h"
#include "crashtest/workloads/library_mutants.h"
#include "libminl2r/alloc.h"
#include "libminl2r/live.h"
#include "libminl2r/recovery.h"
#include "libminl2r/thread.h"
#include "libminl2r/tx.h"

/* Threads that the steps of a nested script are taken for. */
#define FIRST_THREAD 10

#define SCRIPT_NAME_MAX 64

/* ---- Settings -------------------------------------------------------------------- */

#define SMALL_LOG .block_size = LIBRARY_BLOCK_SIZE, .log_size = MINL2R_LOG_SIZE_MIN
#define SMALL .medium = MINL2R_DAX, .options = {SMALL_LOG, .lanes = 3}

const struct setting library_settings[] = {
    {"small-log", "three lanes with logs that soon have to grow", SMALL},
    {"large-log", "with room to spare the library takes short cuts",
     .medium = MINL2R_DAX, .options = {.block_size = LIBRARY_BLOCK_SIZE, .lanes = 3}},
    {"slots-and-bytes", "bytes ride along with slots", .medium = MINL2R_DAX,
     .options = {SMALL_LOG, .lanes = 3, .commit = MINL2R_COMMIT_PROVE}},
    {"own-lanes",
     "the same, and each operation as a thread of its own, in a lane before the last's",
     .medium = MINL2R_DAX, .has_own_lanes = true,
     .options = {SMALL_LOG, .lanes = 3, .commit = MINL2R_COMMIT_PROVE}},
    {"idle-lanes", "the same, and each looks for lanes that are idle",
     .medium = MINL2R_DAX, .has_own_lanes = true, .looks_for_idle = true,
     .options = {SMALL_LOG, .lanes = 3, .commit = MINL2R_COMMIT_PROVE}},
    {"new-lanes", "as own-lanes, in which none has committed yet: all are asleep",
     .medium = MINL2R_DAX, .has_own_lanes = true, .has_new_lanes = true,
     .options = {SMALL_LOG, .lanes = 3, .commit = MINL2R_COMMIT_PROVE}},
    {"swap-always", "one lane; every block that is written is swapped",
     .medium = MINL2R_DAX,
     .options = {SMALL_LOG, .lanes = 1, .pointer_threshold = MINL2R_POINTER_ALWAYS}},
    {"swap-never", "one lane; blocks are changed in place", .medium = MINL2R_DAX,
     .options = {SMALL_LOG, .lanes = 1, .pointer_threshold = MINL2R_POINTER_NEVER}},
    {"full", "a swap gets the last free block, and the next one none",
     .medium = MINL2R_DAX, .is_full = true, .has_own_lanes = true,
     .options = {SMALL_LOG, .lanes = 3, .spare_blocks = 1}},
    {"eadr", "caches are saved", .medium = MINL2R_EADR,
     .options = {SMALL_LOG, .lanes = 3}},
    {"no-root", "a pool without a root object", SMALL, .has_no_root = true},
    {"zeros", "no pool yet, but zeros", SMALL, .no_pool = ZEROS},
    {"garbage", "no pool yet, but something else", SMALL, .no_pool = GARBAGE},
    {"no-start", "a pool whose start was cleared", SMALL,
     .no_pool = POOL_WITHOUT_START},
};

#define SETTING_COUNT (sizeof(library_settings) / sizeof(library_settings[0]))
const uint32_t library_setting_count = SETTING_COUNT;

const struct setting *library_find_setting(const char *name)
{
    for (uint32_t i = 0; i < library_setting_count; i++)
        if (strcmp(library_settings[i].name, name) == 0)
            return &library_settings[i];
    return NULL;
}

/* ---- Beds ------------------------------------------------------------------------ */

struct run library_last_run;

static struct {
    const uint8_t *beds[SETTING_COUNT];
    struct minl2r_pool pool;
    uint64_t serial; /* of new bytes */

    /* What is running. */
    uint32_t depth;     /* the innermost step */
    uint32_t pauses;    /* of it, so far */
    uint32_t returned;  /* set of steps */
    const char *failed; /* the step that did, or NULL */
} rig;

static void give_up(const char *what)
{
    fprintf(stderr, "crashtest: %s: %s\n", what, minl2r_errormsg());
    exit(2);
}

void library_new_bytes(void *bytes, uint64_t size)
{
    uint8_t *to = bytes;

    for (uint64_t i = 0; i < size; i++) {
        rig.serial = rig.serial * 6364136223846793005u + 1442695040888963407u;
        to[i] = (uint8_t)(rig.serial >> 56);
    }
}

static int attach(const uint8_t *memory, enum minl2r_medium medium)
{
    struct pm pm;

    pm_adopt(&pm, memory, LIBRARY_SIZE, medium);
    rig.pool = (struct minl2r_pool){.tx_lock = PTHREAD_MUTEX_INITIALIZER,
                                    .root_lock = PTHREAD_MUTEX_INITIALIZER};
    int result = pool_attach(&rig.pool, &pm, NULL);

    return result < 0 ? result : recovery_run(&rig.pool);
}

static void detach(void)
{
    tx_free_all(&rig.pool);
    pool_detach(&rig.pool);
}

/* The same in each process. */
static void name_pool(uint8_t *memory)
{
    struct pm_super *super = (struct pm_super *)(void *)memory;

    memset(super->uuid, 7, sizeof(super->uuid));
    super->created_s = 0;
    super->checksum = super_checksum(super);
}

static void make_pool(uint8_t *memory, const struct setting *setting)
{
    struct pm pm;
    int result = 0;

    pm_adopt(&pm, memory, LIBRARY_SIZE, MINL2R_DAX);
    if (pool_format(&pm, "crash", LIBRARY_SIZE, &setting->options) < 0)
        give_up("cannot format");
    name_pool(memory);
    if (attach(memory, MINL2R_DAX) < 0)
        give_up("cannot open the pool of a run");
    if (!setting->has_no_root)
        result = library_fill(&rig.pool);
    if (result == 0 && setting->is_full)
        result = library_fill_blocks(&rig.pool);
    if (result < 0)
        give_up("cannot fill the pool of a run");
    detach();
}

static const uint8_t *make_bed(const struct setting *setting)
{
    uint8_t *memory = aligned_alloc(PM_PAGE, LIBRARY_SIZE);

    if (!memory)
        give_up("no memory");
    rig.serial = 1;
    memset(memory, setting->no_pool == ZEROS ? 0 : USED_MEDIUM, LIBRARY_SIZE);
    if (setting->no_pool == IS_POOL || setting->no_pool == POOL_WITHOUT_START)
        make_pool(memory, setting);
    if (setting->no_pool == POOL_WITHOUT_START)
        memset(memory, USED_MEDIUM, PM_PAGE);
    return memory;
}

const uint8_t *library_bed(const struct setting *setting)
{
    const uint8_t **bed = &rig.beds[setting - library_settings];

    if (!*bed)
        *bed = make_bed(setting);
    return *bed;
}

/* ---- Steps and stages ------------------------------------------------------------ */

static uint32_t bit(uint32_t step)
{
    return 1u << step;
}

static void begin_stage(uint32_t running)
{
    struct run *run = &library_last_run;

    run->running[run->stage_count] = (struct expectation){rig.returned, running, false};
    crashtest_begin("%s", run->script->steps[rig.depth]->name);
}

static void end_stage(uint32_t running)
{
    struct run *run = &library_last_run;

    crashtest_end();
    run->returned[++run->stage_count] =
        (struct expectation){rig.returned, running, false};
}

static const struct side *side_of(uint32_t number)
{
    uint64_t root = pool_root_block(&rig.pool)->offset;

    return root ? (const struct side *)pool_at(&rig.pool, root) + number : NULL;
}

static int call_step(const struct script *script)
{
    bool has_own_side = script->is_nested && !script->on_same_side;

    if (script->setting->no_pool != IS_POOL)
        return pool_format(&rig.pool.pm, "crash", LIBRARY_SIZE,
                           &script->setting->options);
    int result = library_operate(script->steps[rig.depth], &rig.pool,
                                 side_of(has_own_side ? rig.depth : 0));
    /* Earlier ones may have used up a full pool: then it changes nothing. */
    bool may_find_no_block = script->setting->is_full && rig.depth > 0;

    return result == -ENOSPC && may_find_no_block ? 0 : result;
}

static void run_step(const struct script *script)
{
    uint32_t step = rig.depth;

    library_last_run.steps_begun++;
    if (step == script->first_step) {
        door_break(script->fault);
        mutate_in(MUTANT_IN_RUN);
    }
    int result = call_step(script);

    if (result < 0 && !script->fails && !rig.failed)
        rig.failed = script->steps[step]->name;
    if (result == 0 || !script->fails)
        rig.returned |= bit(step);
    if (step == script->first_step)
        library_last_run.calls = door_counted();
}

static void hold_lanes_but(uint32_t lane, bool hold)
{
    for (uint32_t i = 0; i < rig.pool.geo.lane_count; i++)
        if (i != lane)
            rig.pool.lanes[i].busy.state = SPIN_SHARED | (hold ? SPIN_TAKEN : 0);
}

/* In a lane, and with the blocks, of a thread of its own. */
static void run_own_step(const struct script *script)
{
    uint32_t thread = thread_number();

    thread_number_cached = thread + rig.depth;
    hold_lanes_but(STEPS_MAX - 1 - rig.depth, true);
    run_step(script);
    hold_lanes_but(STEPS_MAX - 1 - rig.depth, false);
    thread_number_cached = thread;
}

static void run_row(const struct script *script)
{
    for (rig.depth = 0; rig.depth < script->step_count; rig.depth++) {
        begin_stage(bit(rig.depth));
        if (script->setting->has_own_lanes)
            run_own_step(script);
        else
            run_step(script);
        end_stage(bit(rig.depth) & ~rig.returned);
        door_break((struct door_fault){0});
    }
    library_last_run.is_complete = true;
}

/* The steps that it is nested in are running, too. */
static void run_nested(const struct script *script, uint32_t step)
{
    rig.depth = step;
    rig.pauses = 0;
    begin_stage(bit(step + 1) - 1);
    run_step(script);
    end_stage(bit(step) - 1);
    if (step + 1 == script->step_count)
        library_last_run.is_complete = true;
}

/* At the right pause of the innermost step the next one runs, as another thread. */
static void pause_step(void *arg)
{
    const struct script *script = arg;
    uint32_t step = rig.depth;

    if (step + 1 == script->step_count || rig.pauses++ != script->pauses[step])
        return;
    end_stage(bit(step + 1) - 1);
    uint32_t thread = record_as_thread(FIRST_THREAD + step + 1);

    run_nested(script, step + 1);
    record_as_thread(thread);
    rig.depth = step;
    rig.pauses = script->pauses[step] + 1;
    begin_stage(bit(step + 1) - 1);
}

void library_pause(void)
{
    const struct script *script = library_last_run.script;

    if (script && script->is_nested && rig.pool.alloc)
        pause_step((void *)(uintptr_t)script);
}

/* ---- Running --------------------------------------------------------------------- */

/* No transaction is open: every block is free, or allocated on media. */
static int check_reservations(void)
{
    uint64_t zeros = 0;

    for (uint64_t i = 0; i < rig.pool.geo.block_count; i += 64)
        zeros += (uint64_t)__builtin_popcountll(~*pool_bitmap_word(&rig.pool, i));
    if (alloc_free_blocks(&rig.pool) == zeros)
        return 0;
    return crashtest_fail("%llu blocks can be reserved afterwards, but %llu are free",
                          (unsigned long long)alloc_free_blocks(&rig.pool),
                          (unsigned long long)zeros);
}

static int check_poison(void)
{
    if (minl2r_store64(&rig.pool, &side_of(0)->words[0], 1) == -EIO)
        return 0;
    return crashtest_fail("a poisoned pool can be changed");
}

static void run_steps(const struct script *script)
{
    record_as_thread(FIRST_THREAD);
    if (script->is_nested) {
        door_on_pause(pause_step, (void *)(uintptr_t)script);
        run_nested(script, 0);
        door_on_pause(NULL, NULL);
    } else {
        run_row(script);
    }
    record_as_thread(0);
    mutate_in(MUTANT_NOWHERE);
}

static void begin_run(const struct script *script)
{
    struct run *run = &library_last_run;

    run->script = script;
    run->is_complete = false;
    run->steps_begun = 0;
    run->stage_count = 0;
    rig.serial = 1000;
    rig.returned = 0;
    rig.failed = NULL;
}

/* As if each had been used lately: so all of them list what they own. */
static void wake_lanes(struct minl2r_pool *pool, const struct setting *setting)
{
    for (uint32_t i = 0; i < pool->geo.lane_count; i++) {
        struct lane *lane = &pool->lanes[i];

        if (setting->looks_for_idle)
            lane->generation += -lane->generation % IDLE_ROUND;
        live_wake(pool, lane);
    }
}

static int open_pool(const uint8_t *memory, const struct setting *setting)
{
    int result = attach(memory, setting->medium);

    rig.pool.prove = setting->options.commit == MINL2R_COMMIT_PROVE;
    if (result == 0 && rig.pool.prove && !setting->has_new_lanes)
        wake_lanes(&rig.pool, setting);
    return result;
}

int library_reopen(struct minl2r_pool *pool, struct minl2r_tx *tx,
                   const struct side *side)
{
    const uint8_t *memory = pool->pm.base;

    (void)tx;
    (void)side;
    detach();
    return open_pool(memory, library_last_run.script->setting);
}

static int run_in_pool(const uint8_t *memory, const struct script *script)
{
    if (open_pool(memory, script->setting) < 0)
        return crashtest_fail("the pool cannot be opened: %s", minl2r_errormsg());
    library_last_run.geo = rig.pool.geo;
    run_steps(script);
    int result = script->fails ? check_poison() : check_reservations();

    if (rig.failed)
        result = crashtest_fail("%s fails: %s", rig.failed, minl2r_errormsg());
    detach();
    return result;
}

/* Formatting may be seen as no pool, until it returns. */
static int run_format(const uint8_t *memory, const struct script *script)
{
    struct run *run = &library_last_run;

    rig.pool = (struct minl2r_pool){.fd = -1};
    pm_adopt(&rig.pool.pm, memory, LIBRARY_SIZE, script->setting->medium);
    run_steps(script);
    run->running[0] = run->returned[0] = (struct expectation){bit(0), 0, true};
    if (rig.failed || geometry_read(&run->geo, pool_super(&rig.pool), LIBRARY_SIZE) < 0)
        return crashtest_fail("no pool was made: %s", minl2r_errormsg());
    return 0;
}

int library_run(const struct crashtest_pm *pm, void *arg)
{
    const struct script *script = arg;

    recorder.locks_are_weak = true;
    begin_run(script);
    return script->setting->no_pool != IS_POOL ? run_format(pm->base, script)
                                               : run_in_pool(pm->base, script);
}

/* ---- What may be seen ------------------------------------------------------------ */

static const uint8_t *bed_of(const struct run *run)
{
    return library_bed(run->script->setting);
}

static struct line *add_line(struct run *run, uint64_t offset)
{
    if (run->line_count == run->line_capacity) {
        run->line_capacity = run->line_capacity * 2 + 256;
        run->lines = realloc(run->lines, run->line_capacity * sizeof(*run->lines));
        if (!run->lines)
            give_up("no memory");
    }
    struct line *line = &run->lines[run->line_count++];

    line->at = offset / LINE_SIZE * LINE_SIZE;
    memset(line->loose, 0, sizeof(line->loose));
    memset(line->differences, 0, sizeof(line->differences));
    memcpy(line->base, bed_of(run) + line->at, LINE_SIZE);
    return line;
}

static struct line *line_at(struct run *run, uint64_t offset)
{
    uint32_t *index = &run->line_index[offset / LINE_SIZE];

    if (*index != 0)
        return &run->lines[*index - 1];
    struct line *line = add_line(run, offset);

    *index = run->line_count;
    return line;
}

static void forget_lines(struct run *run)
{
    if (!run->line_index)
        run->line_index = calloc(LIBRARY_SIZE / LINE_SIZE, sizeof(*run->line_index));
    if (!run->line_index)
        give_up("no memory");
    for (uint32_t i = 0; i < run->line_count; i++)
        run->line_index[run->lines[i].at / LINE_SIZE] = 0;
    run->line_count = 0;
}

static void note_store(struct run *run, const struct trace_event *e, uint32_t step)
{
    struct line *line = line_at(run, e->at);

    for (uint32_t i = 0; i < e->size; i++)
        line->differences[step][e->at % LINE_SIZE + i] ^=
            (uint8_t)((e->before ^ e->after) >> 8 * i);
}

/* A store belongs to the innermost step of its stage. */
static void note_stores(struct run *run, const struct trace *trace)
{
    uint32_t step = 0;

    for (size_t i = 0; i < trace->count; i++) {
        const struct trace_event *e = &trace->events[i];

        if (e->kind == TRACE_BEGIN && run->running[e->at].running != 0)
            step = 31 - (uint32_t)__builtin_clz(run->running[e->at].running);
        if (!trace_is_store(e) || e->at < run->geo.zones_offset)
            continue;
        if (run->script->fails)
            line_at(run, e->at);
        else
            note_store(run, e, step);
    }
}

static void note_again(struct run *run)
{
    const struct setting *setting = run->script->setting;

    if (setting->no_pool != IS_POOL || setting->has_no_root)
        return;
    const struct pm_root *root =
        (const struct pm_root *)(const void *)(bed_of(run) +
                                               block_offset(&run->geo, 1));
    uint64_t start = root->offset + offsetof(struct side, again);

    for (uint64_t i = start; i < start + LIBRARY_AGAIN_END; i++) {
        struct line *line = line_at(run, i);

        if (library_again_changes(i - start))
            line->differences[AGAIN][i % LINE_SIZE] =
                line->base[i % LINE_SIZE] ^ LIBRARY_AGAIN_BYTE;
    }
}

static void make_images(struct line *line)
{
    memcpy(line->images[0], line->base, LINE_SIZE);
    for (uint32_t set = 1; set < SETS; set++) {
        const uint8_t *without = line->images[set & (set - 1)];
        const uint8_t *difference = line->differences[__builtin_ctz(set)];

        for (uint32_t i = 0; i < LINE_SIZE; i++)
            line->images[set][i] = without[i] ^ difference[i];
    }
}

static bool is_allocated(const struct run *run, uint64_t block, uint32_t set)
{
    uint64_t at = run->geo.zones_offset + block / 8;
    uint32_t index = run->line_index[at / LINE_SIZE];
    uint8_t byte =
        index ? run->lines[index - 1].images[set][at % LINE_SIZE] : bed_of(run)[at];

    return byte >> block % 8 & 1;
}

bool library_counts(const struct run *run, uint64_t offset, uint32_t set)
{
    uint64_t block = block_index(&run->geo, offset);

    return block == 0 || is_allocated(run, block, set);
}

/* Loose ranges were noted when the run noted them: they wait here for the lines. */
static struct loose {
    uint64_t offset, size;
    uint32_t step;
} loose[32];
static uint32_t loose_count;

void library_note_loose(const struct minl2r_pool *pool, const void *pm, uint64_t size)
{
    if (loose_count == sizeof(loose) / sizeof(loose[0]))
        give_up("too many loose ranges");
    loose[loose_count++] = (struct loose){pool_offset(pool, pm), size, rig.depth};
}

static void note_loose(struct run *run)
{
    for (uint32_t i = 0; i < loose_count; i++)
        for (uint64_t at = loose[i].offset; at < loose[i].offset + loose[i].size; at++)
            line_at(run, at)->loose[loose[i].step] |= (uint64_t)1 << at % LINE_SIZE;
    loose_count = 0;
}

static int compare_lines(const void *a, const void *b)
{
    uint64_t first = ((const struct line *)a)->at,
             second = ((const struct line *)b)->at;

    return first < second ? -1 : first > second;
}

/* Bitmaps come first: what they say is free is not looked at. */
static void sort_lines(struct run *run)
{
    qsort(run->lines, run->line_count, sizeof(*run->lines), compare_lines);
    for (uint32_t i = 0; i < run->line_count; i++)
        run->line_index[run->lines[i].at / LINE_SIZE] = i + 1;
}

void library_expect(const struct trace *trace)
{
    struct run *run = &library_last_run;

    if (!run->script->fails)
        forget_lines(run);
    note_stores(run, trace);
    note_loose(run);
    note_again(run);
    sort_lines(run);
    for (uint32_t i = 0; i < run->line_count; i++)
        make_images(&run->lines[i]);
    for (uint32_t i = 0; i < run->line_count; i++)
        for (uint32_t set = 0; set < SETS; set++)
            run->lines[i].counts[set] = library_counts(run, run->lines[i].at, set);
}

/* ---- Names ----------------------------------------------------------------------- */

bool script_print(const struct script *script, char *text, size_t size)
{
    FILE *out = fmemopen(text, size, "w");

    if (!out)
        return false;
    fprintf(out, "%s.%s", script->setting->name, script->steps[0]->name);
    for (uint32_t i = 1; i < script->step_count; i++) {
        if (script->is_nested)
            fprintf(out, "@%u%c%s", script->pauses[i - 1],
                    script->on_same_side ? '=' : '.', script->steps[i]->name);
        else
            fprintf(out, "+%s", script->steps[i]->name);
    }
    if (script->fails)
        fprintf(out, "!%llu", (unsigned long long)script->fault.nth);
    return fclose(out) == 0;
}

/* Cuts off the name that `text` begins with. False if it is too long. */
static bool take_name(const char **text, char name[SCRIPT_NAME_MAX])
{
    size_t length = strspn(*text, "abcdefghijklmnopqrstuvwxyz_-0123456789");

    if (length == 0 || length >= SCRIPT_NAME_MAX)
        return false;
    memcpy(name, *text, length);
    name[length] = 0;
    *text += length;
    return true;
}

static bool take_step(struct script *script, const char **text)
{
    char name[SCRIPT_NAME_MAX];

    if (script->step_count == STEPS_MAX || !take_name(text, name))
        return false;
    const struct operation *step = library_find_operation(name);

    script->steps[script->step_count++] = step;
    return step != NULL;
}

/* What stands between two steps. */
static bool take_link(struct script *script, const char **text)
{
    uint64_t pause;

    if (**text == '+') {
        ++*text;
        return !script->is_nested;
    }
    if (**text != '@' || (script->step_count > 1 && !script->is_nested))
        return false;
    ++*text;
    if (!number_take(text, 10, UINT32_MAX, &pause) || (**text != '=' && **text != '.'))
        return false;
    script->is_nested = true;
    script->on_same_side = **text == '=';
    script->pauses[script->step_count - 1] = (uint32_t)pause;
    ++*text;
    return true;
}

void script_fail_fence(struct script *script, uint64_t nth)
{
    script->fails = true;
    script->fault = (struct door_fault){DOOR_FAIL_FENCE, nth};
}

/* The rest of the name. */
static bool take_failing_fence(struct script *script, const char *text)
{
    uint64_t nth;

    if (!number_take(&text, 10, UINT64_MAX, &nth))
        return false;
    script_fail_fence(script, nth);
    return *text == 0 || *text == ':';
}

bool script_parse(struct script *script, const char *text)
{
    char name[SCRIPT_NAME_MAX];

    *script = (struct script){0};
    if (!take_name(&text, name) || *text != '.')
        return false;
    script->setting = library_find_setting(name);
    text++;
    bool good = script->setting && take_step(script, &text);

    while (good && *text != 0 && *text != ':' && *text != '!')
        good = take_link(script, &text) && take_step(script, &text);
    script->first_step = script->step_count - 1;
    return good && (*text != '!' || take_failing_fence(script, text + 1));
}
