/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <unistd.h>

#include "crashtest/suite.h"
#include "include/crashtest.h"

#define FAILURES_MAX 3

struct options {
    struct suite_options suite;
    const char *replay;
    const char *json;
    const char *html;
    bool help;
};

/* ---- Command line ---------------------------------------------------------------- */

static void print_help(const char *command)
{
    printf(
        "Usage: %s [OPTION ...]\n\n"
        "Loses power at every point of the program, in every way, and checks what it\n"
        "recovers. Exits with 0 if all is right, 1 if not, 2 if it cannot be "
        "tested.\n\n"
        "  --strategy NAME   how states are chosen:\n",
        command);
    for (size_t i = 0; i < strategy_count; i++)
        printf("                      %-8s %s\n", strategies[i].name,
               strategies[i].what);
    puts("  --budget N        recoveries of a crash point up to which all is tried "
         "(4096)\n"
         "  --nested N        the same for crashes during recovery (64); 0: none\n"
         "  --no-kill         do not kill the process before the power fails\n"
         "  --seconds N       stop after so long; 0: do not (0; 30 if coverage is "
         "sampled)\n"
         "  --seed N          of random choices (1)\n"
         "  --failures N      stop when so many different ones are found (3)\n"
         "  --no-lint         do not warn of flushes and fences that do nothing\n"
         "  --replay ID       one state: that of a report\n"
         "  --json FILE       write the report for scripts\n"
         "  --html FILE       write the report as a page\n"
         "  --help            this");
}

static bool parse_number(const char *text, uint64_t *number)
{
    char *end;

    errno = 0;
    *number = strtoull(text, &end, 0);
    return errno == 0 && end != text && *end == 0 && text[0] != '-';
}

enum {
    STRATEGY = 1,
    BUDGET,
    NESTED,
    NO_KILL,
    SECONDS,
    SEED,
    FAILURES,
    NO_LINT,
    REPLAY,
    JSON,
    HTML,
    HELP
};

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == 0 && *seconds >= 0;
}

static bool parse_option(struct options *options, int option, const char *text)
{
    uint64_t number;

    switch (option) {
    case STRATEGY:
        options->suite.explore.strategy = strategy_find(text);
        return options->suite.explore.strategy != NULL;
    case BUDGET:
        return parse_number(text, &options->suite.explore.budget) &&
               options->suite.explore.budget > 0;
    case NESTED:
        return parse_number(text, &options->suite.explore.nested_budget);
    case NO_KILL:
        options->suite.explore.kill = false;
        return true;
    case SECONDS:
        return parse_seconds(text, &options->suite.explore.seconds);
    case SEED:
        return parse_number(text, &options->suite.explore.seed);
    case FAILURES:
        if (!parse_number(text, &number) || number == 0)
            return false;
        options->suite.failures_max = number;
        return true;
    case NO_LINT:
        options->suite.lint = false;
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
    case HELP:
        options->help = true;
        return true;
    default:
        return false;
    }
}

static int parse_options(struct options *options, int argc, char **argv)
{
    static const struct option names[] = {
        {"strategy", required_argument, NULL, STRATEGY},
        {"budget", required_argument, NULL, BUDGET},
        {"nested", required_argument, NULL, NESTED},
        {"no-kill", no_argument, NULL, NO_KILL},
        {"seconds", required_argument, NULL, SECONDS},
        {"seed", required_argument, NULL, SEED},
        {"failures", required_argument, NULL, FAILURES},
        {"no-lint", no_argument, NULL, NO_LINT},
        {"replay", required_argument, NULL, REPLAY},
        {"json", required_argument, NULL, JSON},
        {"html", required_argument, NULL, HTML},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){0};
    suite_options_init(&options->suite);
    options->suite.failures_max = FAILURES_MAX;
    options->suite.lint = true;
    optind = 1;
    while ((option = getopt_long(argc, argv, "", names, NULL)) != -1) {
        if (option == '?')
            return -EINVAL;
        if (!parse_option(options, option, optarg)) {
            fprintf(stderr, "%s: not understood: %s\n", argv[0], optarg);
            return -EINVAL;
        }
    }
    if (optind < argc) {
        fprintf(stderr, "%s: not understood: %s\n", argv[0], argv[optind]);
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

static enum suite_result write_reports(const struct options *options,
                                       const struct report *report)
{
    int json = options->json ? report_json(report, options->json) : 0;
    int html = options->html ? report_html(report, options->html) : 0;

    if (json < 0)
        fprintf(stderr, "cannot write %s: %s\n", options->json, strerror(-json));
    if (html < 0)
        fprintf(stderr, "cannot write %s: %s\n", options->html, strerror(-html));
    return json < 0 || html < 0 ? SUITE_NOT_TESTED : SUITE_PASSED;
}

static enum suite_result run_test(struct suite *suite, const struct options *options,
                                  const struct session_program *tested)
{
    enum suite_result result = options->replay
                                   ? suite_replay(suite, tested, options->replay)
                                   : suite_test(suite, tested);

    if (result == SUITE_NOT_TESTED) {
        fprintf(stderr, "%s: cannot be tested: %s\n",
                tested->program->name ? tested->program->name : "crashtest",
                suite_error(suite));
        return SUITE_NOT_TESTED;
    }
    report_text(suite_report(suite), stdout);
    if (write_reports(options, suite_report(suite)) == SUITE_PASSED)
        return result;
    return SUITE_NOT_TESTED;
}

int crashtest_main(int argc, char **argv, const struct crashtest_program *program)
{
    const struct session_program tested = {.program = program};
    struct options options;

    if (parse_options(&options, argc, argv) < 0) {
        fprintf(stderr, "Try '%s --help'.\n", argv[0]);
        return SUITE_NOT_TESTED;
    }
    if (options.help) {
        print_help(argv[0]);
        return SUITE_PASSED;
    }
    start_afresh(argv);
    options.suite.command = argv[0];
    struct suite *suite = suite_create(&options.suite);

    if (!suite) {
        fputs("crashtest: no memory\n", stderr);
        return SUITE_NOT_TESTED;
    }
    enum suite_result result = run_test(suite, &options, &tested);

    fflush(stdout);
    suite_destroy(suite);
    return (int)result;
}
