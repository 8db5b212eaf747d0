/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmfs.c - the runs that pmfs is tested with: families of sequences of operations, of
 * which the last one is crashed. So the states after a sequence are explored once, for
 * all that go on from there.
 */
#include <stdio.h>
#include <string.h>

#include "crashtest/workloads/pmfs_mutants.h"
#include "crashtest/workloads/pmfs_random.h"
#include "crashtest/workloads/pmfs_run.h"
#include "crashtest/workloads/sites.h"
#include "crashtest/workloads/workload.h"

#define OPS_MAX 256
#define LENGTH_MAX (PMFS_OPS_MAX - 1) /* without a remount */
#define PAUSES_MAX 12                 /* in an operation, where another one runs */

struct family {
    const char *name;
    const char *what;
    unsigned sets;     /* of operations */
    unsigned length;   /* of sequences, by default */
    const char *image; /* NULL: on each */
    bool is_long;
    bool has_inside;  /* in the last operation another one runs */
    bool has_remount; /* before the last operation */
};

static const struct family families[] = {
    {"ace", "the 56 operations of ACE, two in a row", OP_ACE, 2, .image = "half"},
    {"extra", "these, and what bugs of filesystems needed besides, on each image",
     OP_ACE | OP_EXTRA, 1, .image = NULL},
    {"repair", "damage of each kind that is repaired, on each image", OP_REPAIR, 1,
     .image = NULL},
    {"lanes", "another operation in the middle of each", OP_ACE | OP_EXTRA, 1, "half",
     .has_inside = true},
    {"remount", "as ace, and mounted anew between the two (long)", OP_ACE, 2, "half",
     .is_long = true, .has_remount = true},
    {"pairs", "as extra, two in a row (long)", OP_ACE | OP_EXTRA, 2, NULL,
     .is_long = true},
    {"metadata", "write, link, unlink and rename of ACE, three in a row (long)",
     OP_METADATA, 3, "half", .is_long = true},
};
#define FAMILY_COUNT (sizeof(families) / sizeof(*families))

/* ---- Numbering the runs of a family ---------------------------------------------- */

/* The operations that a family and the plan have in common. */
struct choice {
    const struct op *ops[OPS_MAX];
    size_t count;
};

static bool is_named(const struct plan *plan, const char *name)
{
    if (!plan->operations)
        return true;
    for (size_t i = 0; i < plan->operation_count; i++)
        if (strcmp(plan->operations[i], name) == 0)
            return true;
    return false;
}

static bool is_in_b(const char *path)
{
    return path && path[0] == 'B' && (path[1] == 0 || path[1] == '/');
}

static bool is_chosen(const struct plan *plan, const struct family *family,
                      const struct op *op)
{
    if (!(op->sets & family->sets) || !is_named(plan, op->name))
        return false;
    if (op->sets & OP_SLOW && !plan->is_long && !plan->operations)
        return false;
    return !family->has_inside ||
           !(op->sets & OP_ALONE || is_in_b(op->path) || is_in_b(op->to));
}

static void choose(const struct plan *plan, const struct family *family,
                   struct choice *choice)
{
    choice->count = 0;
    for (size_t i = 0; i < op_count && choice->count < OPS_MAX; i++)
        if (is_chosen(plan, family, &ops[i]))
            choice->ops[choice->count++] = &ops[i];
}

static void choose_insides(struct choice *choice)
{
    choice->count = 0;
    for (size_t i = 0; i < op_count && choice->count < OPS_MAX; i++)
        if (ops[i].sets & OP_INSIDE)
            choice->ops[choice->count++] = &ops[i];
}

/* Both are given where nothing was asked for. */
static bool has_length(const struct plan *plan)
{
    return plan->length > 0 && plan->lanes == 0;
}

static unsigned length_of(const struct plan *plan, const struct family *family)
{
    return has_length(plan) && !family->has_inside ? plan->length : family->length;
}

static size_t image_count(const struct family *family)
{
    return family->image ? 1 : scene_image_count;
}

static bool is_wanted(const struct plan *plan, const struct family *family)
{
    if (plan->setting)
        return strcmp(plan->setting, family->name) == 0;
    if (plan->lanes > 1 && plan->length == 0)
        return family->has_inside;
    return !family->is_long || plan->is_long;
}

/* How many runs a family has, or 0 if they are too many to number. */
static size_t count_runs(const struct plan *plan, const struct family *family)
{
    struct choice choice, insides;
    size_t count = image_count(family);

    choose(plan, family, &choice);
    choose_insides(&insides);
    for (unsigned i = 0; i < length_of(plan, family); i++)
        if (__builtin_mul_overflow(count, choice.count, &count))
            return 0;
    return family->has_inside ? count * insides.count * PAUSES_MAX : count;
}

/* Takes the lowest digit of a number, to that base. */
static size_t take(size_t *number, size_t base)
{
    /* What has no choice has no number. */
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
    size_t digit = *number % base;

    *number /= base;
    return digit;
}

static void insert_remount(struct pmfs_script *script)
{
    script->ops[script->op_count] = script->ops[script->op_count - 1];
    script->ops[script->op_count - 1] = op_find("remount", strlen("remount"));
    script->op_count++;
}

static void make_script(const struct plan *plan, const struct family *family,
                        size_t number, struct pmfs_script *script)
{
    struct choice choice, insides;

    choose(plan, family, &choice);
    choose_insides(&insides);
    *script = (struct pmfs_script){.op_count = length_of(plan, family)};
    if (family->has_inside) {
        script->pause = (uint32_t)take(&number, PAUSES_MAX);
        script->inside = insides.ops[take(&number, insides.count)];
    }
    for (size_t i = script->op_count; i-- > 0;)
        script->ops[i] = choice.ops[take(&number, choice.count)];
    if (family->has_remount)
        insert_remount(script);
    script->image = family->image
                        ? scene_image_find(family->image, strlen(family->image))
                        : &scene_images[number];
}

/* ---- The workload ---------------------------------------------------------------- */

static void list(FILE *out)
{
    fputs("settings:\n", out);
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        fprintf(out, "  %-18s %s\n", families[i].name, families[i].what);
    fputs("images, of which each setting has one or all:\n", out);
    for (size_t i = 0; i < scene_image_count; i++)
        fprintf(out, "  %-18s %s\n", scene_images[i].name, scene_images[i].what);
    fputs("operations:\n", out);
    for (size_t i = 0; i < op_count; i++)
        fprintf(out, "  %s\n", ops[i].name);
}

static bool has_family(const char *name)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        if (strcmp(families[i].name, name) == 0)
            return true;
    return false;
}

static size_t count_cases(const struct plan *plan, char *error)
{
    size_t count = 0;

    if (plan->random > 0)
        return random_campaigns(plan->random);
    if (plan->setting && !has_family(plan->setting)) {
        snprintf(error, WORKLOAD_ERROR_SIZE,
                 "there is no setting \"%s\"; try 'crashtest list pmfs'",
                 plan->setting);
        return 0;
    }
    if (plan->length > LENGTH_MAX) {
        snprintf(error, WORKLOAD_ERROR_SIZE, "sequences have %d operations at most",
                 LENGTH_MAX);
        return 0;
    }
    for (size_t i = 0; i < FAMILY_COUNT; i++)
        if (is_wanted(plan, &families[i]))
            count += count_runs(plan, &families[i]);
    if (count == 0)
        snprintf(error, WORKLOAD_ERROR_SIZE,
                 "pmfs has no such operations; try 'crashtest list pmfs'");
    return count;
}

static enum suite_result test(const struct plan *plan, size_t index,
                              struct suite *suite, char *error)
{
    struct pmfs_script script;

    if (plan->random > 0)
        return random_campaign(plan->random, plan->seed, index, suite, error);
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        size_t count =
            is_wanted(plan, &families[i]) ? count_runs(plan, &families[i]) : 0;

        if (index < count) {
            make_script(plan, &families[i], index, &script);
            return pmfs_test(&script, suite, error);
        }
        index -= count;
    }
    return SUITE_PASSED;
}

/* ---- Every fence, stream and flush is needed ------------------------------------- */

/* Of each operation on each image. */
static struct pmfs_script script_of(size_t number)
{
    return (struct pmfs_script){.image = &scene_images[number / op_count],
                                .ops = {&ops[number % op_count]},
                                .op_count = 1};
}

/* What is slow is like others, and recovery is tested by the library. */
static bool is_hunted(const struct pmfs_script *script)
{
    return !(script->ops[0]->sets & OP_SLOW) &&
           strcmp(script->ops[0]->name, "remount") != 0;
}

static bool is_wrong(size_t number, struct door_fault fault)
{
    const struct pmfs_script script = script_of(number);

    return pmfs_is_wrong(&script, fault);
}

static void look(size_t number)
{
    const struct pmfs_script script = script_of(number);

    if (is_hunted(&script))
        pmfs_look(&script);
}

static enum suite_result kill_calls(char *error)
{
    static const struct sites_needless needless[] = {
        /*
         * Only another thread that uses the block could meet what was streamed there.
         */
        {"commit_order", "tx_abort"},
        /* Recovery's, before a repair that settles the same, and no new pool. */
        {"flush_magic", NULL},
        {"settle_lanes", NULL},
        {"lane_store_settled", "__wrap_lane_store_settled"},
        {NULL, NULL},
    };
    const struct sites_hunt hunt = {scene_image_count * op_count, is_wrong, look,
                                    needless};

    return sites_are_found(&hunt, error) ? SUITE_FAILED : SUITE_PASSED;
}

/* ---- Bugs ------------------------------------------------------------------------ */

static const struct mutant *find_mutant(size_t index)
{
    static const struct mutant calls = {
        "calls", "F1, N1-N6", "a fence, stream or flush of some call is left out",
        NULL};

    if (pmfs_mutant(index))
        return pmfs_mutant(index);
    return index == 0 || pmfs_mutant(index - 1) ? &calls : NULL;
}

static bool mutate(size_t index)
{
    return pmfs_mutant(index) && pmfs_mutate(index);
}

static enum suite_result kill_mutant(size_t index, struct suite *suite, char *error)
{
    struct pmfs_script script;

    if (!pmfs_mutant(index))
        return kill_calls(error);
    if (pmfs_script_parse(&script, pmfs_mutate(index)))
        return pmfs_test(&script, suite, error);
    snprintf(error, WORKLOAD_ERROR_SIZE, "%s has no such script",
             pmfs_mutant(index)->name);
    return SUITE_PASSED;
}

const struct workload pmfs_workload = {
    .name = "pmfs",
    .what = "the filesystem: sequences of calls on small images",
    .list = list,
    .plan = count_cases,
    .test = test,
    .replay = pmfs_replay,
    .mutant = find_mutant,
    .mutate = mutate,
    .kill = kill_mutant,
};
