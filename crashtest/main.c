/* SPDX-License-Identifier: BSD-3-Clause */
#include <dlfcn.h>
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "crashtest/number.h"
#include "crashtest/options.h"
#include "crashtest/schedules.h"
#include "crashtest/workers.h"
#include "include/crashtest.h"
#include "include/minl2r.h"

#define FAILURES_MAX 3
#define SCHEDULES_MAX 1000000

struct options {
    struct schedules schedules;
    const char *replay;
    const char *json;
    const char *html;
    bool require_exact;
    bool help;
};

/* ---- Command line ---------------------------------------------------------------- */

static void print_help(const char *command)
{
    printf("Usage: %s [OPTION ...]\n\n"
           "Loses power at every point of the program, in every way, and checks what "
           "it\nrecovers. Exits with 0 if all is right, 1 if not, 2 if it cannot be "
           "tested.\n\n",
           command);
    options_print_strategies();
    puts(
        "  --budget N        recoveries of a crash point up to which all is tried "
        "(4096)\n"
        "  --nested N        the same for crashes during recovery (64); 0: none\n"
        "  --no-kill         do not kill the process before the power fails\n"
        "  --schedules N     orders of threads that are tried, if there are any (16);\n"
        "                      0: let threads run as they happen to\n"
        "  --seed N          of the first order, and of random choices (1)\n"
        "  --jobs N          processes that share out the work (as many as "
        "processors)\n"
        "  --seconds N       stop after so long; 0: do not (0; 30 if coverage is "
        "sampled)\n"
        "  --require-exact   fail unless coverage is exact\n"
        "  --failures N      stop when so many different ones are found (3)\n"
        "  --no-lint         do not warn of flushes and fences that do nothing\n"
        "  --replay ID       one state: that of a report\n"
        "  --json FILE       write the report for scripts\n"
        "  --html FILE       write the report as a page\n"
        "  -h, --help        this");
}

enum {
    SCHEDULES = OPTION_OWN,
    JOBS,
    FAILURES,
    NO_LINT,
    REQUIRE_EXACT,
    REPLAY,
    JSON,
    HTML
};

static bool parse_option(struct options *options, int option, const char *text)
{
    struct schedules *schedules = &options->schedules;
    unsigned number;

    switch (option) {
    case SCHEDULES:
        return number_parse(text, SCHEDULES_MAX, &schedules->count);
    case JOBS:
        return options_parse_count(text, WORKERS_MAX, &schedules->jobs);
    case FAILURES:
        if (!options_parse_count(text, UINT_MAX, &number))
            return false;
        schedules->options.failures_max = number;
        return true;
    case NO_LINT:
        schedules->options.lint = false;
        return true;
    case REQUIRE_EXACT:
        options->require_exact = true;
        return true;
    case REPLAY:
        options->replay = text;
        return true;
    case JSON:
        options->json = text;
        return true;
    case HTML:
        options->html = text;
        return true;
    case 'h':
        options->help = true;
        return true;
    default:
        return options_parse(&schedules->options.explore, option, text);
    }
}

/* What the option takes, for who gave it something else. */
static const char *takes(int option)
{
    switch (option) {
    case SCHEDULES:
        return "a number from 0 to " OPTIONS_TEXT(SCHEDULES_MAX);
    case JOBS:
        return "a number from 1 to " OPTIONS_TEXT(WORKERS_MAX);
    case FAILURES:
        return "a number from 1";
    default:
        return options_take(option);
    }
}

static int parse_options(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {
        OPTIONS_OF_EXPLORER,
        {"schedules", required_argument, NULL, SCHEDULES},
        {"jobs", required_argument, NULL, JOBS},
        {"failures", required_argument, NULL, FAILURES},
        {"no-lint", no_argument, NULL, NO_LINT},
        {"require-exact", no_argument, NULL, REQUIRE_EXACT},
        {"replay", required_argument, NULL, REPLAY},
        {"json", required_argument, NULL, JSON},
        {"html", required_argument, NULL, HTML},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    int option, index;

    *options = (struct options){.schedules.count = SCHEDULES_DEFAULT};
    suite_options_init(&options->schedules.options);
    options->schedules.options.failures_max = FAILURES_MAX;
    options->schedules.options.lint = true;
    optind = 1;
    while ((option = getopt_long(argc, argv, "h", names, &index)) != -1) {
        if (option == '?')
            return -EINVAL;
        if (!parse_option(options, option, optarg)) {
            options_refuse(argv[0], names[index].name, optarg, takes(option));
            return -EINVAL;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: no option: %s\n", argv[0], argv[optind]);
        return -EINVAL;
    }
    return 0;
}

/* ---- Testing --------------------------------------------------------------------- */

/*
 * Addresses are the same in each run, so that what depends on them is, too. Libraries
 * take memory for PM if they read this variable before main().
 */
static void start_afresh(char **argv)
{
    int current = personality(0xffffffff);

    if (getenv("CRASHTEST_STARTED"))
        return;
    setenv("CRASHTEST_STARTED", "1", 1);
    setenv("PMEM_IS_PMEM_FORCE", "1", 1);
    if (current != -1)
        personality((unsigned long)current | ADDR_NO_RANDOMIZE);
    execv("/proc/self/exe", argv);
}

/* In either libminl2r, static or shared; and only in the one with hooks. */
#pragma weak minl2r_errormsg
#pragma weak minl2r_is_traced
extern const char minl2r_is_traced;

/* Its stores would be unseen, and what is found would be none of the program's. */
static const char *why_not_tested(void)
{
    bool is_linked = minl2r_errormsg || dlsym(RTLD_DEFAULT, "minl2r_errormsg");
    bool is_traced = &minl2r_is_traced || dlsym(RTLD_DEFAULT, "minl2r_is_traced");

    if (is_linked && !is_traced)
        return "it is linked with libminl2r, which is not traced: use "
               "-lminl2r_traced instead of -lminl2r";
    return NULL;
}

static enum suite_result write_reports(const struct options *options,
                                       const struct report *report)
{
    const char *command = options->schedules.options.command;
    int json = options->json ? report_json(report, options->json) : 0;
    int html = options->html ? report_html(report, options->html) : 0;

    if (json < 0)
        fprintf(stderr, "%s: cannot write %s: %s\n", command, options->json,
                strerror(-json));
    if (html < 0)
        fprintf(stderr, "%s: cannot write %s: %s\n", command, options->html,
                strerror(-html));
    return json < 0 || html < 0 ? SUITE_NOT_TESTED : SUITE_PASSED;
}

static enum suite_result cannot_test(const struct crashtest_program *program,
                                     const char *why)
{
    fprintf(stderr, "%s: cannot be tested: %s\n",
            program->name ? program->name : "crashtest", why);
    return SUITE_NOT_TESTED;
}

/* Nothing was wrong in what was tried. */
static enum suite_result judge_coverage(const struct options *options,
                                        const struct report *report)
{
    const struct report_workload total = report_total(report);

    if (!options->require_exact || options->replay || report_is_exact(&total))
        return SUITE_PASSED;
    fprintf(stderr, "%s: fails, as coverage is not exact (--require-exact)\n",
            report->name);
    return SUITE_FAILED;
}

static enum suite_result run_test(struct options *options,
                                  const struct crashtest_program *program)
{
    struct schedules *schedules = &options->schedules;
    enum suite_result result =
        options->replay ? schedules_replay(schedules, program, options->replay)
                        : schedules_test(schedules, program);

    if (result == SUITE_NOT_TESTED)
        return cannot_test(program, schedules->error);
    report_text(&schedules->report, stdout);
    if (result == SUITE_PASSED)
        result = judge_coverage(options, &schedules->report);
    if (write_reports(options, &schedules->report) == SUITE_PASSED)
        return result;
    return SUITE_NOT_TESTED;
}

int crashtest_main(int argc, char **argv, const struct crashtest_program *program)
{
    static struct options options;

    if (parse_options(&options, argc, argv) < 0) {
        fprintf(stderr, "Try '%s --help'.\n", argv[0]);
        return SUITE_NOT_TESTED;
    }
    if (options.help) {
        print_help(argv[0]);
        return SUITE_PASSED;
    }
    if (!options_can_write(argv[0], options.json, options.html))
        return SUITE_NOT_TESTED;
    const char *why_not = why_not_tested();

    if (why_not)
        return (int)cannot_test(program, why_not);
    start_afresh(argv);
    options.schedules.options.command = argv[0];
    enum suite_result result = run_test(&options, program);

    if (!options_flush(argv[0]) && result == SUITE_PASSED)
        result = SUITE_NOT_TESTED;
    schedules_finish(&options.schedules);
    return (int)result;
}
