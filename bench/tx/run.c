/* SPDX-License-Identifier: BSD-3-Clause */
#include "bench/tx/run.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench/harness.h"
#include "bench/tx/sequence.h"
#include "bench/tx/tx.h"

#define SYSTEMS_MAX 4

/*
 * Systems that have their pools open at the same time, and what they do there. Every
 * one takes part in all of it: a pool that lay open for nothing would only take room in
 * the caches and TLBs from the others.
 */
struct stage {
    const struct tx_system *systems[SYSTEMS_MAX];
    uint32_t ops; /* bit 1 << enum tx_op */
};

static const struct stage stages[] = {
    {{&minl2r_system, &libpmemobj_system, &floor_system},
     1u << OP_RANGES | 1u << OP_SNAPSHOT | 1u << OP_STORE64},
    {{&minl2r_prove_system, &libpmemobj_system, &floor_system}, 1u << OP_PROVE},
    {{&minl2r_system, &libpmemobj_system},
     1u << OP_READ | 1u << OP_ABORT_QUEUED | 1u << OP_ABORT_SNAPSHOT},
    {{&minl2r_system, &libpmemobj_system, &libpmemblk_system, &floor_system},
     1u << OP_BLOCK},
    {{&minl2r_open_system, &libpmemobj_open_system}, 1u << OP_OPEN},
    {{&minl2r_recover_system, &libpmemobj_recover_system}, 1u << OP_RECOVER},
};

/* One system within a stage. */
struct contestant {
    const struct tx_system *system;
    void *state;
    const struct workload *workload;
    uint64_t operations; /* per batch */
    struct sequence sequence;
    struct tx_counters counters; /* per operation */
    double ns[BENCH_ROUNDS_MAX];
};

struct contest {
    struct contestant contestants[SYSTEMS_MAX];
    size_t count;
};

static int complain(const struct contestant *contestant, const char *doing, int rc)
{
    const char *message = contestant->system->message();

    fprintf(stderr, "bench-tx: %s: %s: %s%s%s\n", contestant->system->name, doing,
            strerror(-rc), message && *message ? ": " : "", message ? message : "");
    return rc;
}

/* ---- Rounds ---------------------------------------------------------------------- */

static int run_timed(struct contestant *contestant, double *ns_per_op)
{
    tx_op_fn *run = contestant->system->run[contestant->workload->op];
    uint64_t start_ns = bench_now_ns();
    int rc = 0;

    for (uint64_t i = 0; i < contestant->operations && rc == 0; i++)
        rc = run(contestant->state, sequence_next(&contestant->sequence));
    *ns_per_op = (double)(bench_now_ns() - start_ns) / (double)contestant->operations;
    return rc;
}

static int run_batch(void *arg, double *ns_per_op)
{
    struct contestant *contestant = arg;
    const struct tx_system *system = contestant->system;
    int rc = system->before ? system->before(contestant->state) : 0;

    if (rc == 0)
        rc = run_timed(contestant, ns_per_op);
    if (rc == 0 && system->after)
        rc = system->after(contestant->state);
    return rc < 0 ? complain(contestant, contestant->workload->name, rc) : 0;
}

/* Ready for the first round: zeroed, and one batch run. */
static int prepare(struct contestant *contestant, const struct workload *workload,
                   uint64_t operations)
{
    const struct tx_system *system = contestant->system;
    double ignored_ns;
    int rc = 0;

    contestant->workload = workload;
    contestant->operations = workload->pattern ? operations : 1;
    sequence_init(&contestant->sequence, workload);
    if (system->reset)
        rc = system->reset(contestant->state, workload->op, sequence_span(workload));
    if (rc < 0)
        return complain(contestant, "zeroing", rc);
    return run_batch(contestant, &ignored_ns);
}

static struct tx_counters read_counters(const struct contestant *contestant)
{
    struct tx_counters sum = {NAN, NAN, NAN, NAN, NAN};

    if (contestant->system->count)
        contestant->system->count(contestant->state, &sum);
    return sum;
}

static struct tx_counters difference_per_op(struct tx_counters after,
                                            struct tx_counters before,
                                            double operations)
{
    return (struct tx_counters){
        .fences = (after.fences - before.fences) / operations,
        .lines_flushed = (after.lines_flushed - before.lines_flushed) / operations,
        .lines_streamed = (after.lines_streamed - before.lines_streamed) / operations,
        .log_payload_bytes =
            (after.log_payload_bytes - before.log_payload_bytes) / operations,
        .log_bytes = (after.log_bytes - before.log_bytes) / operations,
    };
}

/* ---- Rows ------------------------------------------------------------------------ */

static const struct contestant *find_base(struct contestant *const *contestants,
                                          size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(contestants[i]->system->name, name) == 0)
            return contestants[i];
    return NULL;
}

static double ratio(const struct contestant *contestant, const struct contestant *base,
                    size_t rounds)
{
    return base ? bench_ratio(contestant->ns, base->ns, rounds) : NAN;
}

static double number_or_none(uint32_t number, bool applies)
{
    return applies ? number : (double)NAN;
}

/* What the change is. */
static void describe_workload(struct cell *row, const struct workload *workload)
{
    bool has_ranges = workload->op != OP_OPEN;
    bool has_pct = workload->changed_pct > 0 || workload->op == OP_ABORT_QUEUED;

    cell_set_text(&row[TX_CASE], workload->name);
    cell_set_text(&row[TX_PATTERN], workload->pattern ? workload->pattern : "");
    row[TX_SIZE].number = number_or_none(workload->size, has_ranges);
    row[TX_RANGES].number = number_or_none(workload->ranges, has_ranges);
    row[TX_CHANGED_PCT].number = number_or_none(workload->changed_pct, has_pct);
}

static int add_row(struct table *results, const struct contestant *contestant,
                   size_t rounds, const struct contestant *libpmemobj,
                   const struct contestant *floor)
{
    struct cell *row = table_add(results);

    if (!row)
        return -ENOMEM;
    struct bench_spread ns = bench_spread(contestant->ns, rounds);

    describe_workload(row, contestant->workload);
    cell_set_text(&row[TX_SYSTEM], contestant->system->name);
    row[TX_FENCES].number = contestant->counters.fences;
    row[TX_LINES_FLUSHED].number = contestant->counters.lines_flushed;
    row[TX_LINES_STREAMED].number = contestant->counters.lines_streamed;
    row[TX_LOG_PAYLOAD_BYTES].number = contestant->counters.log_payload_bytes;
    row[TX_LOG_BYTES].number = contestant->counters.log_bytes;
    row[TX_NS_MEDIAN].number = ns.median;
    row[TX_NS_MIN].number = ns.min;
    row[TX_NS_MAX].number = ns.max;
    row[TX_RATIO_LIBPMEMOBJ].number = ratio(contestant, libpmemobj, rounds);
    row[TX_RATIO_FLOOR].number = ratio(contestant, floor, rounds);
    return 0;
}

static int add_rows(struct table *results, struct contestant *const *contestants,
                    size_t count, size_t rounds)
{
    const struct contestant *libpmemobj = find_base(contestants, count, "libpmemobj");
    const struct contestant *floor = find_base(contestants, count, "floor");
    int rc = 0;

    for (size_t i = 0; i < count && rc == 0; i++)
        rc = add_row(results, contestants[i], rounds, libpmemobj, floor);
    return rc;
}

/* ---- Workloads ------------------------------------------------------------------- */

static int compete(struct contestant *const *contestants, size_t count, size_t rounds)
{
    struct bench_subject subjects[SYSTEMS_MAX];
    struct tx_counters before[SYSTEMS_MAX];

    for (size_t i = 0; i < count; i++) {
        subjects[i] =
            (struct bench_subject){run_batch, contestants[i], contestants[i]->ns};
        before[i] = read_counters(contestants[i]);
    }
    int rc = bench_rounds(subjects, count, rounds);

    for (size_t i = 0; i < count; i++) {
        struct contestant *contestant = contestants[i];
        double operations = (double)(contestant->operations * rounds);

        contestant->counters =
            difference_per_op(read_counters(contestant), before[i], operations);
    }
    return rc;
}

static int run_workload(struct contest *contest, const struct workload *workload,
                        const struct run_options *options, struct table *results)
{
    struct contestant *taking_part[SYSTEMS_MAX];
    size_t count = 0;

    for (size_t i = 0; i < contest->count; i++)
        if (contest->contestants[i].system->run[workload->op])
            taking_part[count++] = &contest->contestants[i];
    for (size_t i = 0; i < count; i++) {
        int rc = prepare(taking_part[i], workload, options->operations);

        if (rc < 0)
            return rc;
    }
    int rc = compete(taking_part, count, options->rounds);

    return rc < 0 ? rc : add_rows(results, taking_part, count, options->rounds);
}

static bool is_chosen(const struct stage *stage, const struct workload *workload,
                      const struct run_options *options)
{
    return (stage->ops >> workload->op & 1) != 0 &&
           (!options->case_name || strcmp(workload->name, options->case_name) == 0);
}

/* On a terminal one line that changes, else one line per case. */
static void show_progress(const struct workload *workload)
{
    static const char *last_name = "";

    if (isatty(STDERR_FILENO))
        fprintf(stderr, "\r\033[K%s %s %u x %u", workload->name,
                workload->pattern ? workload->pattern : "", workload->ranges,
                workload->size);
    else if (strcmp(last_name, workload->name) != 0)
        fprintf(stderr, "bench-tx: %s\n", workload->name);
    last_name = workload->name;
}

static void end_progress(void)
{
    if (isatty(STDERR_FILENO))
        fputs("\r\033[K", stderr);
}

static int run_chosen(struct contest *contest, const struct stage *stage,
                      const struct run_options *options, struct table *results)
{
    int rc = 0;

    for (size_t i = 0; i < workload_count && rc == 0; i++) {
        if (!is_chosen(stage, &workloads[i], options))
            continue;
        show_progress(&workloads[i]);
        rc = run_workload(contest, &workloads[i], options, results);
    }
    end_progress();
    return rc;
}

/* ---- Stages ---------------------------------------------------------------------- */

static int start_contestant(struct contestant *contestant,
                            const struct tx_system *system)
{
    *contestant = (struct contestant){.system = system};
    int rc = system->start(&contestant->state);

    return rc < 0 ? complain(contestant, "making its pool", rc) : 0;
}

static void finish_all(struct contest *contest)
{
    while (contest->count > 0) {
        struct contestant *contestant = &contest->contestants[--contest->count];

        contestant->system->finish(contestant->state);
    }
}

static int start_all(struct contest *contest, const struct stage *stage)
{
    contest->count = 0;
    for (size_t i = 0; i < SYSTEMS_MAX && stage->systems[i]; i++) {
        int rc = start_contestant(&contest->contestants[i], stage->systems[i]);

        if (rc < 0) {
            finish_all(contest);
            return rc;
        }
        contest->count++;
    }
    return 0;
}

static void show_notes(const struct contest *contest)
{
    static bool medium_shown;
    const struct contestant *minl2r = &contest->contestants[0];
    char text[256] = "";

    if (minl2r->system == &minl2r_system && !medium_shown) {
        medium_shown = true;
        minl2r_describe(minl2r->state, text, sizeof(text));
        printf("Medium: %s\n\n", text);
    } else if (minl2r->system == &minl2r_recover_system) {
        printf("Recovery: validating and undoing took %.3f ms of the last open\n\n",
               (double)minl2r_recovery_ns(minl2r->state) / 1e6);
    }
}

static int run_stage(const struct stage *stage, const struct run_options *options,
                     struct table *results)
{
    static struct contest contest; /* large */
    int rc = start_all(&contest, stage);

    if (rc < 0)
        return rc;
    rc = run_chosen(&contest, stage, options, results);
    if (rc == 0)
        show_notes(&contest);
    finish_all(&contest);
    return rc;
}

static bool is_needed(const struct stage *stage, const struct run_options *options)
{
    for (size_t i = 0; i < workload_count; i++)
        if (is_chosen(stage, &workloads[i], options))
            return true;
    return false;
}

bool run_has_case(const char *name)
{
    for (size_t i = 0; i < workload_count; i++)
        if (strcmp(workloads[i].name, name) == 0)
            return true;
    return false;
}

int run_workloads(const struct run_options *options, struct table *results)
{
    int rc = 0;

    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]) && rc == 0; i++)
        if (is_needed(&stages[i], options))
            rc = run_stage(&stages[i], options, results);
    return rc;
}
