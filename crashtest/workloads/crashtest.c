/* SPDX-License-Identifier: BSD-3-Clause */
/* The command `crashtest`: what this project explores of itself. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "crashtest/number.h"
#include "crashtest/options.h"
#include "crashtest/workloads/sweep.h"
#include "include/minl2r.h"
#include "libminl2r/tools/utf8.h"

static const struct workload *const workloads[] = {&library_workload, &pmfs_workload,
                                                   NULL};

#define OPERATIONS_NAMED_MAX 64
#define COUNT_MAX 1000

enum {
    LENGTH = OPTION_OWN,
    LANES,
    SETTING,
    OPERATION,
    RANDOM,
    FAILURES,
    JOBS,
    LONG,
    THOROUGH,
    REPLAY,
    BUG,
    JSON,
    HTML,
    VERSION
};

struct options {
    struct sweep sweep;
    const char *operations[OPERATIONS_NAMED_MAX];
    const char *replay;
    const char *bug;
    uint32_t given; /* options, as bits */
    bool help, version;
};

static const struct option names[] = {
    {"length", required_argument, NULL, LENGTH},
    {"lanes", required_argument, NULL, LANES},
    {"setting", required_argument, NULL, SETTING},
    {"operation", required_argument, NULL, OPERATION},
    OPTIONS_OF_EXPLORER,
    {"random", required_argument, NULL, RANDOM},
    {"failures", required_argument, NULL, FAILURES},
    {"jobs", required_argument, NULL, JOBS},
    {"long", no_argument, NULL, LONG},
    {"thorough", required_argument, NULL, THOROUGH},
    {"replay", required_argument, NULL, REPLAY},
    {"bug", required_argument, NULL, BUG},
    {"json", required_argument, NULL, JSON},
    {"html", required_argument, NULL, HTML},
    {"help", no_argument, NULL, 'h'},
    {"version", no_argument, NULL, VERSION},
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    puts(
        "Usage: crashtest WORKLOAD [OPTION ...]\n"
        "       crashtest list [WORKLOAD]\n"
        "       crashtest self-test [--strategy NAME] [--jobs N] [--json FILE]\n\n"
        "Loses power at every point of what a workload does, in every way, and checks "
        "what\nis recovered. Exits with 0 if all is right, 1 if not, 2 if it cannot be "
        "tested.\n"
        "Programs of your own: see crashtest-cc.\n");
    for (size_t i = 0; workloads[i]; i++)
        printf("  %-17s %s\n", workloads[i]->name, workloads[i]->what);
    puts("  list              their operations and settings\n"
         "  self-test         have every bug found that the tester knows to make\n\n"
         "  --length N        operations in a row (2, unless --lanes is given)\n"
         "  --lanes N         operations at once (2, unless --length is given)\n"
         "  --operation NAME  of this operation only; may be given again\n"
         "  --setting NAME    in this setting only\n"
         "  --random N        so many random sequences, guided by coverage (pmfs)\n"
         "  --long            whatever else takes time\n"
         "  --thorough N      of N states, where they are many, one gets every oracle "
         "(16); 0: none\n"
         "  --jobs N          processes (as many as processors)\n"
         "  --failures N      stop after so many (1)");
    options_print_strategies();
    puts("  --budget N        recoveries of a crash point up to which all is tried "
         "(4096)\n"
         "  --nested N        the same for crashes during recovery (64); 0: none\n"
         "  --no-kill         do not kill the process before the power fails\n"
         "  --seconds N       stop after so long; 0: do not (0)\n"
         "  --seed N          of random choices (1)\n"
         "  --replay ID       one state: that of a report\n"
         "  --bug NAME        the same with a bug of the self-test\n"
         "  --json FILE       write the report for scripts\n"
         "  --html FILE       write the report as a page\n"
         "  -h, --help        this\n"
         "  --version         the version");
}

static bool parse_size(const char *text, size_t *number)
{
    unsigned value;

    if (!options_parse_count(text, COUNT_MAX, &value))
        return false;
    *number = value;
    return true;
}

static bool add_operation(struct options *options, const char *name)
{
    struct plan *plan = &options->sweep.plan;

    if (plan->operation_count == OPERATIONS_NAMED_MAX)
        return false;
    plan->operations = options->operations;
    options->operations[plan->operation_count++] = name;
    return true;
}

static bool parse_plan(struct options *options, int option, const char *text)
{
    struct plan *plan = &options->sweep.plan;
    uint64_t number;

    switch (option) {
    case LENGTH:
        return options_parse_count(text, COUNT_MAX, &plan->length);
    case LANES:
        return options_parse_count(text, COUNT_MAX, &plan->lanes);
    case SETTING:
        plan->setting = text;
        return true;
    case OPERATION:
        return add_operation(options, text);
    case RANDOM:
        return number_parse(text, UINT64_MAX, &plan->random) && plan->random > 0;
    case LONG:
        plan->is_long = true;
        return true;
    case THOROUGH:
        if (!number_parse(text, COUNT_MAX, &number))
            return false;
        plan->thorough = (unsigned)number;
        return true;
    default:
        return false;
    }
}

static bool parse_option(struct options *options, int option, const char *text)
{
    switch (option) {
    case FAILURES:
        return parse_size(text, &options->sweep.suite.failures_max);
    case JOBS:
        return options_parse_count(text, COUNT_MAX, &options->sweep.jobs);
    case REPLAY:
        options->replay = text;
        return true;
    case BUG:
        options->bug = text;
        return true;
    case JSON:
        options->sweep.json = text;
        return true;
    case HTML:
        options->sweep.html = text;
        return true;
    case 'h':
        options->help = true;
        return true;
    case VERSION:
        options->version = true;
        return true;
    default:
        return parse_plan(options, option, text) ||
               options_parse(&options->sweep.suite.explore, option, text);
    }
}

/* What the option takes, for who gave it something else. */
static const char *takes(int option)
{
    switch (option) {
    case LENGTH:
    case LANES:
    case JOBS:
    case FAILURES:
        return "a number from 1 to " OPTIONS_TEXT(COUNT_MAX);
    case THOROUGH:
        return "a number from 0 to " OPTIONS_TEXT(COUNT_MAX);
    case RANDOM:
        return "a number from 1";
    case OPERATION:
        return "up to " OPTIONS_TEXT(OPERATIONS_NAMED_MAX) " operations";
    default:
        return options_take(option);
    }
}

static void default_plan(struct plan *plan)
{
    if (plan->length != 0 || plan->lanes != 0)
        return;
    plan->length = plan->lanes = 2;
}

static uint32_t bit_of(int option)
{
    return (uint32_t)1 << option;
}

static bool parse_options(struct options *options, int argc, char **argv)
{
    int option, index = 0;

    suite_options_init(&options->sweep.suite);
    options->sweep.plan.thorough = 16;
    options->sweep.suite.explore.seconds = 0;
    while ((option = getopt_long(argc, argv, "h", names, &index)) != -1) {
        if (option == '?')
            return false;
        if (!parse_option(options, option, optarg)) {
            options_refuse("crashtest", names[index].name, optarg, takes(option));
            return false;
        }
        options->given |= option == 'h' ? 0 : bit_of(option);
    }
    options->sweep.plan.seed = options->sweep.suite.explore.seed;
    default_plan(&options->sweep.plan);
    return true;
}

static const struct workload *find_workload(const char *name)
{
    for (size_t i = 0; workloads[i]; i++)
        if (strcmp(workloads[i]->name, name) == 0)
            return workloads[i];
    return NULL;
}

static int refuse_workload(const char *name)
{
    fputs("crashtest: there is no workload \"", stderr);
    utf8_print(stderr, name);
    fputs("\"; there are", stderr);
    for (size_t i = 0; workloads[i]; i++)
        fprintf(stderr, "%s %s", i > 0 ? "," : "", workloads[i]->name);
    fputs("\nTry 'crashtest list'.\n", stderr);
    return SUITE_NOT_TESTED;
}

static int list(const char *name)
{
    if (name && !find_workload(name))
        return refuse_workload(name);
    for (size_t i = 0; workloads[i]; i++) {
        if (name && strcmp(workloads[i]->name, name) != 0)
            continue;
        printf("%s: %s\n", workloads[i]->name, workloads[i]->what);
        workloads[i]->list(stdout);
    }
    return SUITE_PASSED;
}

static int run(struct options *options, const char *name)
{
    static char command[64];

    options->sweep.workload = find_workload(name);
    if (!options->sweep.workload)
        return refuse_workload(name);
    snprintf(command, sizeof(command), "crashtest %s", name);
    options->sweep.suite.name = options->sweep.workload->name;
    options->sweep.suite.command = command;
    if (options->replay)
        return (int)sweep_replay(&options->sweep, options->replay, options->bug);
    return (int)sweep_explore(&options->sweep);
}

/* Eagerly, if nothing else is asked for. */
static int test_tester(const struct options *options)
{
    const struct strategy *strategy = options->given & bit_of(OPTION_STRATEGY)
                                          ? options->sweep.suite.explore.strategy
                                          : strategy_find("eager");

    return (int)sweep_bugs(workloads, strategy, options->sweep.jobs,
                           options->sweep.json);
}

/*
 * What is no option: a workload or another command, and a workload that `list` shows.
 */
static bool has_arguments(int count, char **arguments)
{
    int most = count > 0 && strcmp(arguments[0], "list") == 0 ? 2 : 1;

    if (count == 0)
        fputs("crashtest: a workload has to be named\n", stderr);
    else if (count > most)
        fprintf(stderr, "crashtest: one argument too many: %s\n", arguments[most]);
    return count > 0 && count <= most;
}

/* Other commands than a workload make sense of few options. */
static uint32_t options_of_command(const char *command)
{
    if (strcmp(command, "list") == 0)
        return 0;
    if (strcmp(command, "self-test") == 0)
        return bit_of(OPTION_STRATEGY) | bit_of(JOBS) | bit_of(JSON);
    return UINT32_MAX;
}

static bool check_options(const struct options *options, const char *command)
{
    uint32_t refused = options->given & ~options_of_command(command);

    for (size_t i = 0; names[i].name; i++)
        if (names[i].val < VERSION && refused & bit_of(names[i].val)) {
            fprintf(stderr, "crashtest: %s has no option --%s\n", command,
                    names[i].name);
            return false;
        }
    if (options->bug && !options->replay) {
        fputs("crashtest: --bug goes with --replay\n", stderr);
        return false;
    }
    return options_can_write("crashtest", options->sweep.json, options->sweep.html);
}

static int run_command(struct options *options, char **arguments)
{
    if (!check_options(options, arguments[0]))
        return SUITE_NOT_TESTED;
    if (strcmp(arguments[0], "list") == 0)
        return list(arguments[1]);
    if (strcmp(arguments[0], "self-test") == 0)
        return test_tester(options);
    return run(options, arguments[0]);
}

static int run_what_is_asked(struct options *options, int count, char **arguments)
{
    if (options->help) {
        print_help();
        return SUITE_PASSED;
    }
    if (options->version) {
        printf("crashtest %d.%d\n", MINL2R_MAJOR, MINL2R_MINOR);
        return SUITE_PASSED;
    }
    if (has_arguments(count, arguments))
        return run_command(options, arguments);
    fputs("Try 'crashtest --help'.\n", stderr);
    return SUITE_NOT_TESTED;
}

int main(int argc, char **argv)
{
    static struct options options;

    if (argc > 1 && strcmp(argv[1], "--self-test") == 0)
        argv[1] += strlen("--"); /* as an option, for who looks for one */
    if (!parse_options(&options, argc, argv)) {
        fputs("Try 'crashtest --help'.\n", stderr);
        return SUITE_NOT_TESTED;
    }
    int status = run_what_is_asked(&options, argc - optind, argv + optind);

    if (!options_flush("crashtest") && status == SUITE_PASSED)
        return SUITE_NOT_TESTED;
    return status;
}
