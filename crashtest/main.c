/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <time.h>
#include <unistd.h>

#include "crashtest/guard.h"
#include "crashtest/oracle.h"
#include "crashtest/report.h"
#include "crashtest/runtime/record.h"
#include "crashtest/session.h"
#include "include/crashtest.h"

#define HOOKS_MAX ((uint64_t)50 * 1000 * 1000)
#define SAMPLED_SECONDS 30

enum { PASSED = 0, FAILED = 1, NOT_TESTED = 2 };

struct options {
    struct explore_options explore;
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

enum { STRATEGY = 1, BUDGET, NESTED, NO_KILL, SECONDS, SEED, REPLAY, JSON, HTML, HELP };

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return end != text && *end == 0 && *seconds >= 0;
}

static bool parse_option(struct options *options, int option, const char *text)
{
    switch (option) {
    case STRATEGY:
        options->explore.strategy = strategy_find(text);
        return options->explore.strategy != NULL;
    case BUDGET:
        return parse_number(text, &options->explore.budget) &&
               options->explore.budget > 0;
    case NESTED:
        return parse_number(text, &options->explore.nested_budget);
    case NO_KILL:
        options->explore.kill = false;
        return true;
    case SECONDS:
        return parse_seconds(text, &options->explore.seconds);
    case SEED:
        return parse_number(text, &options->explore.seed);
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
        {"replay", required_argument, NULL, REPLAY},
        {"json", required_argument, NULL, JSON},
        {"html", required_argument, NULL, HTML},
        {"help", no_argument, NULL, HELP},
        {NULL, 0, NULL, 0},
    };
    int option;

    *options = (struct options){
        .explore = {.strategy = &strategies[0],
                    .budget = 4096,
                    .nested_budget = 64,
                    .kill = true,
                    .seconds = -1,
                    .seed = 1},
    };
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

struct test {
    struct options options;
    struct session session;
    struct subject subject;
    struct oracle oracle;
    struct explorer *explorer;
    struct failure failure;
    struct report report;
    int own_stdout, own_stderr, nowhere; /* opened before what the program opens */
};

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

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

static void print_id(struct test *test)
{
    struct failure *failure = &test->failure;
    int length = snprintf(failure->id, sizeof(failure->id),
                          "%s:%llu:", test->session.program->name,
                          (unsigned long long)test->options.explore.seed);

    if (length > 0 && (size_t)length < sizeof(failure->id))
        place_print(&failure->place, failure->id + length,
                    sizeof(failure->id) - (size_t)length);
}

static const char *operation_of(const struct test *test)
{
    const struct crash *crash = &test->failure.crash;

    if (crash->running != NO_OPERATION)
        return test->session.operations[crash->running];
    return crash->returned > 0 ? test->session.operations[crash->returned - 1] : NULL;
}

/* Judges a wrong state once more, and finds out why it is. False if it is right now. */
static bool explain(struct test *test)
{
    struct failure *failure = &test->failure;

    if (!explorer_replay(test->explorer, &failure->place, &failure->crash,
                         &failure->verdict, &failure->account))
        return false;
    if (failure->verdict.kind != VERDICT_WRONG)
        return false;
    blame_find(&test->subject, &failure->place, &failure->crash, &failure->account,
               &failure->verdict, operation_of(test), &failure->blame);
    print_id(test);
    test->report.failure = failure;
    return true;
}

/* What the program prints while states are tried goes nowhere: it is printed when the
 * wrong one is explained. */
static void hush(const struct test *test)
{
    fflush(NULL);
    if (test->nowhere >= 0) {
        dup2(test->nowhere, STDOUT_FILENO);
        dup2(test->nowhere, STDERR_FILENO);
    }
}

static void unhush(const struct test *test)
{
    fflush(NULL);
    if (test->own_stdout >= 0)
        dup2(test->own_stdout, STDOUT_FILENO);
    if (test->own_stderr >= 0)
        dup2(test->own_stderr, STDERR_FILENO);
}

static int cannot_say(const struct test *test, const struct verdict *verdict)
{
    fprintf(stderr, "%s: cannot be tested: %s\n", test->session.program->name,
            verdict->message);
    return NOT_TESTED;
}

static int explore_all(struct test *test)
{
    struct verdict verdict;

    hush(test);
    explorer_run(test->explorer, &test->report.count, &test->failure.place, &verdict);
    if (verdict.kind == VERDICT_WRONG)
        explorer_shrink(test->explorer, &test->failure.place);
    unhush(test);
    test->report.points = explorer_points(test->explorer, &test->report.point_count);
    test->report.is_sampled |= test->oracle.found_unseen;
    if (verdict.kind == VERDICT_CANNOT_SAY)
        return cannot_say(test, &verdict);
    if (verdict.kind == VERDICT_RIGHT)
        return PASSED;
    if (!explain(test)) {
        fprintf(stderr,
                "%s: cannot be tested: a state was wrong (%s), but not when it was "
                "tried again; recover and check must depend on PM alone\n",
                test->session.program->name, verdict.message);
        return NOT_TESTED;
    }
    return FAILED;
}

/* The id without the program's name, which may contain anything, and the seed. */
static const char *place_of_id(const struct test *test, const char *id)
{
    const char *name = test->session.program->name;
    size_t length = strlen(name);

    if (strncmp(id, name, length) != 0 || id[length] != ':')
        return NULL;
    id = strchr(id + length + 1, ':');
    return id ? id + 1 : NULL;
}

static int replay(struct test *test)
{
    const char *text = place_of_id(test, test->options.replay);
    struct failure *failure = &test->failure;

    if (!text || !place_parse(&failure->place, text)) {
        fprintf(stderr, "%s: this is no id of it: %s\n", test->session.program->name,
                test->options.replay);
        return NOT_TESTED;
    }
    if (explain(test))
        return FAILED;
    if (failure->verdict.kind == VERDICT_CANNOT_SAY)
        return cannot_say(test, &failure->verdict);
    if (!explorer_replay(test->explorer, &failure->place, &failure->crash,
                         &failure->verdict, NULL)) {
        fprintf(stderr,
                "%s: there is no such state: the program has changed since the id was "
                "printed\n",
                test->session.program->name);
        return NOT_TESTED;
    }
    return PASSED;
}

static int prepare(struct test *test, const struct crashtest_program *program)
{
    struct session *session = &test->session;

    test->own_stdout = dup(STDOUT_FILENO);
    test->own_stderr = dup(STDERR_FILENO);
    test->nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (guard_init() < 0 || session_record(session, program) < 0) {
        fprintf(stderr, "%s: cannot be tested: %s\n",
                program->name ? program->name : "crashtest",
                session->error[0] ? session->error : "no memory");
        return NOT_TESTED;
    }
    test->subject = (struct subject){session->image,  session->shadow, session->size,
                                     session->trace,  oracle_judge,    &test->oracle,
                                     oracle_set_watch};
    test->oracle = (struct oracle){
        .program = program,
        .pm = {session->image, session->size, session->path},
        .operations = session->operations,
        .subject = &test->subject,
        .hooks_max = HOOKS_MAX,
        .in_child = session->unseen > 0,
    };
    test->report.is_sampled = session->unseen > 0;
    if (test->options.explore.seconds < 0)
        test->options.explore.seconds = session->unseen > 0 ? SAMPLED_SECONDS : 0;
    test->explorer = explorer_create(&test->subject, &test->options.explore);
    if (!test->explorer || oracle_init(&test->oracle) < 0) {
        fputs("crashtest: no memory\n", stderr);
        return NOT_TESTED;
    }
    return PASSED;
}

static int write_reports(const struct test *test)
{
    const struct options *options = &test->options;
    int json = options->json ? report_json(&test->report, options->json) : 0;
    int html = options->html ? report_html(&test->report, options->html) : 0;

    if (json < 0)
        fprintf(stderr, "cannot write %s: %s\n", options->json, strerror(-json));
    if (html < 0)
        fprintf(stderr, "cannot write %s: %s\n", options->html, strerror(-html));
    return json < 0 || html < 0 ? NOT_TESTED : PASSED;
}

static int run_test(struct test *test, const char *command,
                    const struct crashtest_program *program)
{
    double start = now();
    int result = prepare(test, program);

    test->report.session = &test->session;
    test->report.options = &test->options.explore;
    test->report.command = command;
    test->report.is_replay = test->options.replay != NULL;
    if (result == PASSED)
        result = test->options.replay ? replay(test) : explore_all(test);
    test->report.seconds = now() - start;
    if (result == NOT_TESTED)
        return result;
    report_text(&test->report, stdout);
    return write_reports(test) == PASSED ? result : NOT_TESTED;
}

int crashtest_main(int argc, char **argv, const struct crashtest_program *program)
{
    static struct test test;

    if (parse_options(&test.options, argc, argv) < 0) {
        fprintf(stderr, "Try '%s --help'.\n", argv[0]);
        return NOT_TESTED;
    }
    if (test.options.help) {
        print_help(argv[0]);
        return PASSED;
    }
    start_afresh(argv);
    int result = run_test(&test, argv[0], program);

    fflush(stdout);
    explorer_destroy(test.explorer);
    oracle_finish(&test.oracle);
    session_finish(&test.session);
    place_finish(&test.failure.place);
    account_finish(&test.failure.account);
    return result;
}
