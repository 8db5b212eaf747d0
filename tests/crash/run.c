/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/crash/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libminl2r/alloc.h"
#include "libminl2r/commit.h"
#include "libminl2r/recovery.h"

/* Bits of struct expectation's `has`. */
enum { OUTER = 1, INNER = 2 };

static struct run *current; /* whose operation is running */
static uint64_t serial;     /* of new bytes */

static void give_up(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, minl2r_errormsg());
    exit(2);
}

/* Memory of pools is used again: the first touch of a page costs more than a state. */
static struct spare {
    struct spare *next;
} * spares;

static uint8_t *pool_memory(void)
{
    uint8_t *memory = (uint8_t *)spares;

    if (memory)
        spares = spares->next;
    else
        memory = aligned_alloc(PM_PAGE, BED_SIZE);
    if (!memory)
        give_up("no memory");
    return memory;
}

static void give_back(uint8_t *memory)
{
    struct spare *spare = (struct spare *)(void *)memory;

    if (!memory)
        return;
    spare->next = spares;
    spares = spare;
}

void run_forget_memory(void)
{
    while (spares) {
        struct spare *next = spares->next;

        free(spares);
        spares = next;
    }
}

static uint8_t *copy_of(const uint8_t *memory)
{
    uint8_t *copy = pool_memory();

    memcpy(copy, memory, BED_SIZE);
    return copy;
}

void run_new_bytes(void *bytes, uint64_t size)
{
    uint8_t *to = bytes;

    for (uint64_t i = 0; i < size; i++) {
        serial = serial * 6364136223846793005u + 1442695040888963407u;
        to[i] = (uint8_t)(serial >> 56);
    }
}

static void attach(struct minl2r_pool *pool, uint8_t *memory, enum minl2r_medium medium)
{
    struct pm pm;

    pm_adopt(&pm, memory, BED_SIZE, medium);
    *pool = (struct minl2r_pool){.tx_lock = PTHREAD_MUTEX_INITIALIZER,
                                 .root_lock = PTHREAD_MUTEX_INITIALIZER};
    if (pool_attach(pool, &pm, NULL) < 0 || recovery_run(pool) < 0)
        give_up("cannot open the test's pool");
}

static void detach(struct minl2r_pool *pool)
{
    if (tx_free_all(pool) < 0)
        give_up("an operation left its transaction open");
    pool_detach(pool);
}

/* ---- Beds ------------------------------------------------------------------------ */

/* Ends a transaction whose calls answered `result`. */
static int end(struct minl2r_tx *tx, int result)
{
    if (result == 0)
        return minl2r_tx_commit(tx);
    minl2r_tx_abort(tx);
    return result;
}

/* Comes first: runs lie lowest, so that what is freed of them is allocated next. */
static int fill_runs(struct minl2r_pool *pool, const struct side *side)
{
    struct minl2r_tx *tx;
    uint64_t run;
    int result = minl2r_tx_begin(pool, &tx);

    if (result < 0)
        return result;
    for (uint32_t i = 0; i < 4 && result == 0; i++) {
        result = minl2r_tx_alloc(tx, 2, &run, NULL);
        if (result == 0)
            result = minl2r_tx_write(tx, &side->runs[i], &run, sizeof(run));
    }
    return end(tx, result);
}

static int fill_bytes(struct minl2r_pool *pool, const struct side *side)
{
    uint8_t bytes[BED_BLOCK_SIZE];
    struct minl2r_tx *tx;
    int result = minl2r_tx_begin(pool, &tx);

    if (result < 0)
        return result;
    run_new_bytes(bytes, sizeof(bytes));
    result = minl2r_tx_write(tx, side->words, bytes, sizeof(bytes));
    for (uint64_t i = 0; i < sizeof(side->area) && result == 0; i += BED_BLOCK_SIZE) {
        run_new_bytes(bytes, sizeof(bytes));
        result = minl2r_tx_write(tx, side->area + i, bytes, sizeof(bytes));
    }
    for (uint32_t i = 0; i < 6 && result == 0; i++) {
        run_new_bytes(bytes, sizeof(bytes));
        memset(bytes, 0, 128); /* holes, where the block holds slots itself */
        result = minl2r_tx_write_block(tx, &side->slots[i], 0, bytes, sizeof(bytes));
    }
    return end(tx, result);
}

static int fill(struct minl2r_pool *pool)
{
    const struct side *sides = minl2r_root(pool, 2 * sizeof(*sides));
    int result = sides ? 0 : -1;

    for (uint32_t i = 0; i < 2 && result == 0; i++)
        result = fill_runs(pool, &sides[i]);
    for (uint32_t i = 0; i < 2 && result == 0; i++)
        result = fill_bytes(pool, &sides[i]);
    return result;
}

/* The same in each run. */
static void name_pool(uint8_t *memory)
{
    struct pm_super *super = (struct pm_super *)(void *)memory;

    memset(super->uuid, 7, sizeof(super->uuid));
    super->created_s = 0;
    super->checksum = super_checksum(super);
}

void bed_init(struct bed *bed, const struct minl2r_options *options, bool with_root)
{
    struct minl2r_pool pool;
    struct pm pm;

    serial = 1;
    shadow_record(NULL);
    bed->memory = pool_memory();
    memset(bed->memory, 0, BED_SIZE);
    pm_adopt(&pm, bed->memory, BED_SIZE, MINL2R_DAX);
    if (pool_format(&pm, "crash", BED_SIZE, options) < 0)
        give_up("cannot format");
    name_pool(bed->memory);
    attach(&pool, bed->memory, MINL2R_DAX);
    if (with_root && fill(&pool) < 0)
        give_up("cannot fill the test's pool");
    detach(&pool);
}

void bed_fill(struct bed *bed)
{
    struct minl2r_pool pool;
    struct minl2r_tx *tx;

    attach(&pool, bed->memory, MINL2R_DAX);
    for (uint64_t count = 64; count > 0; count /= 2) {
        int result = minl2r_tx_begin(&pool, &tx);

        while (result == 0)
            result = minl2r_tx_alloc(tx, count, NULL, NULL);
        if (minl2r_tx_commit(tx) < 0)
            give_up("cannot fill the test's pool");
    }
    detach(&pool);
}

void bed_finish(struct bed *bed)
{
    give_back(bed->memory);
}

/* ---- Runs ------------------------------------------------------------------------ */

void run_begin(struct run *run, const struct bed *bed, enum minl2r_medium medium)
{
    *run = (struct run){.live = copy_of(bed->memory)};
    serial = 1000;
    shadow_record(NULL);
    attach(&run->pool, run->live, medium);
    run->durable = copy_of(run->live);
    run->trace.mirror = copy_of(run->live);
    shadow_record(&run->trace);
    current = run;
}

void run_format(struct run *run, const uint8_t *memory,
                const struct minl2r_options *options)
{
    struct expectation *e = run->expectations;

    *run = (struct run){.live = copy_of(memory), .durable = copy_of(memory)};
    pm_adopt(&run->pool.pm, run->live, BED_SIZE, MINL2R_DAX);
    shadow_record(&run->trace);
    if (pool_format(&run->pool.pm, "crash", BED_SIZE, options) < 0)
        give_up("cannot format");
    shadow_mark(&run->pool.pm, STAGE_DONE);
    e[STAGE_OUTER] = (struct expectation){.images = {run->live},
                                          .count = 1,
                                          .stage = "formatting",
                                          .may_be_no_pool = true};
    e[STAGE_DONE] = (struct expectation){
        .images = {run->live}, .count = 1, .stage = "formatted", .returned = true};
}

void run_end(struct run *run)
{
    shadow_record(NULL);
    current = NULL;
    detach(&run->pool);
    give_back(run->trace.mirror);
    run->trace.mirror = NULL;
    shadow_trace_finish(&run->trace);
    for (uint32_t i = 0; i < RUN_OPERATIONS_MAX * EXPECTED_MAX; i++)
        give_back(run->images[i]);
    give_back(run->inner_before);
    give_back(run->inner_after);
    give_back(run->durable);
    give_back(run->live);
}

void run_note_loose(const struct minl2r_pool *pool, const void *pm, uint64_t size)
{
    struct run *run = current;

    if (run->loose_count == LOOSE_MAX)
        give_up("too many loose ranges");
    run->loose[run->loose_count++] =
        (struct loose_range){pool_offset(pool, pm), size, run->inner_running};
}

static void mark(const struct run *run, uint32_t stage)
{
    shadow_mark(&run->pool.pm, run->operation_count * STAGES + stage);
}

static void run_failed(struct run *run, const char *what, int line)
{
    if (run->failure[0] == 0)
        snprintf(run->failure, sizeof(run->failure), "%s (line %d): %s", what, line,
                 minl2r_errormsg());
}

/* No transaction is open: every block is free, or allocated on media. */
static void check_reservations(struct run *run)
{
    uint64_t zeros = 0;

    for (uint64_t i = 0; i < run->pool.geo.block_count; i += 64)
        zeros += (uint64_t)__builtin_popcountll(~*pool_bitmap_word(&run->pool, i));
    if (alloc_free_blocks(&run->pool) != zeros)
        snprintf(run->failure, sizeof(run->failure),
                 "%llu blocks can be reserved afterwards, but %llu are free",
                 (unsigned long long)alloc_free_blocks(&run->pool),
                 (unsigned long long)zeros);
}

static const struct side *side_of(struct run *run, unsigned number)
{
    uint64_t root = pool_root_block(&run->pool)->offset;

    return root ? (const struct side *)pool_at(&run->pool, root) + number : NULL;
}

static void run_inner(void *arg)
{
    struct run *run = arg;

    if (run->pauses++ != run->inner_pause)
        return;
    shadow_on_pause(NULL, NULL);
    run->inner_before = copy_of(run->live);
    mark(run, STAGE_BOTH);
    run->inner_running = true;
    int line = run->inner(&run->pool, side_of(run, run->inner_side));

    run->inner_running = false;
    if (line != 0)
        run_failed(run, "the inner operation failed", line);
    run->inner_after = copy_of(run->live);
    mark(run, STAGE_INNER_DONE);
}

/* `to` with the change from `from_old` to `from_new`, which lies elsewhere: bit by bit,
 * since the bitmaps are shared. */
static uint8_t *with_change(const uint8_t *to, const uint8_t *from_old,
                            const uint8_t *from_new)
{
    uint8_t *image = copy_of(to);

    for (uint64_t at = 0; at < BED_SIZE; at += PM_LINE)
        if (memcmp(from_old + at, from_new + at, PM_LINE) != 0)
            for (uint64_t i = at; i < at + PM_LINE; i++)
                image[i] ^= from_old[i] ^ from_new[i];
    return image;
}

/*
 * What may be seen at each stage. The inner operation's change is what it changed while
 * the outer one stood still; what else changed is the outer one's.
 */
static void expect(struct run *run, uint8_t *before, uint8_t *both)
{
    uint8_t **images = &run->images[(size_t)run->operation_count * EXPECTED_MAX];
    struct expectation *e = &run->expectations[(size_t)run->operation_count * STAGES];
    const uint8_t *inner = before, *outer = both;

    images[0] = before;
    images[1] = both;
    if (run->inner_after) {
        inner = images[2] = with_change(before, run->inner_before, run->inner_after);
        outer = images[3] = with_change(both, run->inner_before, run->inner_after);
    }
    const struct expectation stages[STAGES] = {
        {.images = {before, outer},
         .has = {0, OUTER},
         .count = 2,
         .stage = "operation running"},
        {.images = {before, outer, inner, both},
         .has = {0, OUTER, INNER, OUTER | INNER},
         .count = 4,
         .stage = "both running"},
        {.images = {inner, both},
         .has = {INNER, OUTER | INNER},
         .count = 2,
         .stage = "inner operation returned"},
        {.images = {both},
         .has = {OUTER | INNER},
         .count = 1,
         .stage = "operation returned",
         .returned = true},
    };

    for (uint32_t i = 0; i < STAGES; i++) {
        e[i] = stages[i];
        e[i].loose_count = run->loose_count;
        memcpy(e[i].loose, run->loose, sizeof(run->loose));
    }
}

void run_operation(struct run *run, operation_fn *operation)
{
    uint8_t *before = copy_of(run->live);

    run->loose_count = 0;
    mark(run, STAGE_OUTER);
    int line = operation(&run->pool, side_of(run, 0));

    if (line != 0)
        run_failed(run, "the operation failed", line);
    mark(run, STAGE_DONE);
    expect(run, before, copy_of(run->live));
    check_reservations(run);
    run->operation_count++;
}

bool run_two(struct run *run, operation_fn *outer, operation_fn *inner, unsigned side,
             uint32_t pause)
{
    run->inner = inner;
    run->inner_side = side;
    run->inner_pause = pause;
    shadow_on_pause(run_inner, run);
    run_operation(run, outer);
    shadow_on_pause(NULL, NULL);
    return run->inner_after != NULL;
}

void run_failing_operation(struct run *run, operation_fn *operation, uint32_t nth,
                           const uint8_t *after)
{
    uint8_t *before = copy_of(run->live);
    const struct side *side = side_of(run, 0);

    run->loose_count = 0;
    shadow_inject((struct shadow_fault){SHADOW_FAIL_FENCE, nth, &run->trace});
    mark(run, STAGE_OUTER);
    if (operation(&run->pool, side) == 0)
        run_failed(run, "the operation did not fail", 0);
    mark(run, STAGE_DONE);
    shadow_inject((struct shadow_fault){0});
    if (minl2r_store64(&run->pool, &side->words[0], 1) != -EIO)
        run_failed(run, "a poisoned pool can be changed", 0);
    expect(run, before, copy_of(after));
    run->expectations[STAGE_DONE] = run->expectations[STAGE_OUTER];
    run->expectations[STAGE_DONE].returned = true;
    run->expectations[STAGE_DONE].stage = "operation failed";
}

bool run_explore(struct run *run, const struct explore_options *options,
                 struct explore_count *count)
{
    shadow_record(NULL);
    if (run->failure[0] != 0)
        return false;
    struct explore x = {
        .options = *options,
        .image = run->durable,
        .size = BED_SIZE,
        .scratch = {pool_memory(), pool_memory()},
        .trace = &run->trace,
        .expectations = run->expectations,
        .count = *count,
    };

    explore(&x);
    give_back(x.scratch[0]);
    give_back(x.scratch[1]);
    *count = x.count;
    memcpy(run->failure, x.failure, sizeof(run->failure));
    return run->failure[0] == 0;
}

/* ---- Using a recovered pool ------------------------------------------------------ */

#define TRY(call)                                                                      \
    do {                                                                               \
        if ((call) < 0)                                                                \
            return __LINE__;                                                           \
    } while (0)

static int use_blocks(struct minl2r_pool *pool, const struct side *side)
{
    uint8_t bytes[BED_BLOCK_SIZE];
    struct minl2r_tx *tx;
    uint64_t run;

    memset(bytes, 0x5a, sizeof(bytes));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_alloc(tx, 2, &run, NULL));
    TRY(minl2r_tx_write(tx, pool_at(pool, run), bytes, sizeof(bytes)));
    TRY(minl2r_tx_write(tx, &side->words[0], &run, sizeof(run)));
    TRY(minl2r_tx_write_block(tx, &side->slots[15], 0, bytes, 100));
    TRY(minl2r_tx_commit(tx));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write_block(tx, &side->slots[15], 100, bytes, 300));
    TRY(minl2r_tx_free(tx, run, 2));
    TRY(minl2r_tx_commit(tx));
    if (memcmp(pool_at(pool, side->slots[15]), bytes, 400) != 0)
        return __LINE__;
    return 0;
}

static int use_snapshot(struct minl2r_pool *pool, const struct side *side)
{
    uint64_t before = side->words[1], after = ~before;
    struct minl2r_tx *tx;

    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_snapshot(tx, &side->words[1], sizeof(before), NULL));
    shadow_store(&pool->pm, &side->words[1], &after, sizeof(after));
    TRY(minl2r_tx_abort(tx));
    return side->words[1] == before ? 0 : __LINE__;
}

int run_use(struct minl2r_pool *pool)
{
    const struct side *sides = minl2r_root(pool, 2 * sizeof(*sides));
    int line = sides ? use_blocks(pool, &sides[0]) : __LINE__;

    return line != 0 ? line : use_snapshot(pool, &sides[0]);
}

/* Its log is no longer than those of most operations, so that theirs lies behind it. */
int run_again(struct minl2r_pool *pool)
{
    const struct side *sides = pool_at(pool, pool_root_block(pool)->offset);
    uint8_t bytes[40];
    struct minl2r_tx *tx;

    memset(bytes, 0xa5, sizeof(bytes));
    TRY(minl2r_tx_begin(pool, &tx));
    TRY(minl2r_tx_write(tx, sides[0].bytes + 140, bytes, sizeof(bytes)));
    TRY(minl2r_tx_write(tx, &sides[0].words[20], bytes, 8));
    TRY(minl2r_tx_commit(tx));
    return 0;
}
