/* SPDX-License-Identifier: BSD-3-Clause */
/* The test of the tester: every bug on demand has to be found. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "crashtest/wait.h"
#include "crashtest/workloads/sweep.h"

#define BUGS_MAX 512
#define PROCESSES_MAX 64
#define HANGS_AFTER_S 300

struct bug {
    const struct workload *workload;
    size_t index;
    const struct mutant *mutant;
    pid_t process; /* that tries it; 0: none now */

    enum suite_result result; /* shared from here on */
    bool is_done;
    char step[32]; /* that found it */
    char id[sizeof(((struct failure *)0)->id)];
    char error[WORKLOAD_ERROR_SIZE];

    int output;     /* what the process writes to stderr */
    char said[200]; /* its first line, such as an assertion's message */
};

static size_t list_bugs(const struct workload *const *workloads, struct bug *bugs)
{
    const struct mutant *mutant;
    size_t count = 0;

    for (; *workloads; workloads++)
        for (size_t i = 0; count < BUGS_MAX && (mutant = (*workloads)->mutant(i)); i++)
            bugs[count++] =
                (struct bug){.workload = *workloads, .index = i, .mutant = mutant};
    return count;
}

/* ---- One ------------------------------------------------------------------------- */

static void note_failure(struct bug *bug, const struct report *report)
{
    if (report->failure_count == 0)
        return;
    snprintf(bug->step, sizeof(bug->step), "%s", report->failures[0].verdict.step);
    memcpy(bug->id, report->failures[0].id, sizeof(bug->id));
    snprintf(bug->error, sizeof(bug->error), "%s: %s", bug->id,
             report->failures[0].verdict.message);
}

static void try_bug(struct bug *bug, const struct strategy *strategy)
{
    struct suite_options options;

    dup2(bug->output, STDERR_FILENO);
    suite_options_init(&options);
    options.explore.strategy = strategy;
    options.explore.budget = 512;
    options.explore.nested_budget = 16;
    options.explore.seconds = 0;
    options.command = "crashtest";
    alarm(HANGS_AFTER_S);
    struct suite *suite = suite_create(&options);

    if (!suite)
        _exit(1);
    bug->result = bug->workload->kill(bug->index, suite, bug->error);
    if (bug->result == SUITE_NOT_TESTED)
        snprintf(bug->step, sizeof(bug->step), "run");
    note_failure(bug, suite_report(suite));
    bug->is_done = true;
    _exit(0);
}

static bool is_killed(const struct bug *bug)
{
    return !bug->is_done || bug->result != SUITE_PASSED;
}

static bool is_found_as_meant(const struct bug *bug)
{
    const char *oracle = bug->mutant->oracle;

    return is_killed(bug) &&
           (!bug->is_done || !oracle || strcmp(bug->step, oracle) == 0);
}

/* ---- All ------------------------------------------------------------------------- */

/* A bug may make the run itself abort, and say why. */
static void keep_what_was_said(struct bug *bug)
{
    ssize_t size = pread(bug->output, bug->said, sizeof(bug->said) - 1, 0);

    bug->said[size > 0 ? size : 0] = 0;
    bug->said[strcspn(bug->said, "\n")] = 0;
    close(bug->output);
}

static void end_one(struct bug *bugs, size_t count)
{
    int status;
    pid_t ended = wait(&status);

    for (size_t i = 0; i < count; i++)
        if (bugs[i].process == ended) {
            bugs[i].process = 0;
            keep_what_was_said(&bugs[i]);
        }
}

static pid_t begin_one(struct bug *bug, const struct strategy *strategy)
{
    bug->output = memfd_create("bug", MFD_CLOEXEC);
    if (bug->output < 0)
        return -1;
    pid_t process = fork_child();

    if (process == 0)
        try_bug(bug, strategy);
    bug->process = process;
    return process;
}

static bool try_all(struct bug *bugs, size_t count, const struct strategy *strategy,
                    unsigned jobs)
{
    unsigned running = 0;

    fflush(NULL);
    for (size_t i = 0; i < count; i++) {
        if (begin_one(&bugs[i], strategy) < 0)
            return false;
        if (++running == jobs) {
            end_one(bugs, count);
            running--;
        }
    }
    for (; running > 0; running--)
        end_one(bugs, count);
    return true;
}

static void print_bug(const struct bug *bug)
{
    const struct mutant *mutant = bug->mutant;

    if (!is_killed(bug))
        printf("%s %s (%s): %s: not found: %s\n", bug->workload->name, mutant->name,
               mutant->class_name, mutant->what, bug->error);
    else if (!is_found_as_meant(bug))
        printf("%s %s (%s): %s: found by \"%s\", not \"%s\": %s\n", bug->workload->name,
               mutant->name, mutant->class_name, mutant->what, bug->step,
               mutant->oracle, bug->error);
}

static void print_json_bug(FILE *out, const struct bug *bug, bool is_last)
{
    fprintf(out,
            "    {\"workload\": \"%s\", \"name\": \"%s\", \"class\": \"%s\", "
            "\"what\": \"%s\", \"killed\": %s, \"oracle\": \"%s\", \"found_by\": "
            "\"%s\", \"id\": \"%s\", \"said\": ",
            bug->workload->name, bug->mutant->name, bug->mutant->class_name,
            bug->mutant->what, is_killed(bug) ? "true" : "false",
            bug->mutant->oracle ? bug->mutant->oracle : "any",
            bug->is_done ? bug->step : "crash", bug->id);
    report_json_string(out, bug->said);
    fprintf(out, "}%s\n", is_last ? "" : ",");
}

static int write_json(const char *path, const struct bug *bugs, size_t count,
                      size_t killed)
{
    FILE *out = fopen(path, "w");
    const char *comma = "";

    if (!out)
        return -errno;
    fprintf(out, "{\n  \"mutants\": %zu,\n  \"killed\": %zu,\n  \"survivors\": [",
            count, killed);
    for (size_t i = 0; i < count; i++)
        if (!is_killed(&bugs[i])) {
            fprintf(out, "%s\"%s\"", comma, bugs[i].mutant->name);
            comma = ", ";
        }
    fputs("],\n  \"bugs\": [\n", out);
    for (size_t i = 0; i < count; i++)
        print_json_bug(out, &bugs[i], i + 1 == count);
    fputs("  ]\n}\n", out);
    bool bad = ferror(out);

    return fclose(out) != 0 || bad ? -EIO : 0;
}

static enum suite_result report(const struct bug *bugs, size_t count, const char *json)
{
    size_t killed = 0, as_meant = 0;

    for (size_t i = 0; i < count; i++) {
        killed += is_killed(&bugs[i]);
        as_meant += is_found_as_meant(&bugs[i]);
        print_bug(&bugs[i]);
    }
    printf("self-test: %zu bugs, %zu found, %zu by the oracle that should\n", count,
           killed, as_meant);
    fflush(stdout);
    int written = json ? write_json(json, bugs, count, killed) : 0;

    if (written < 0) {
        fprintf(stderr, "crashtest: %s: %s\n", json, strerror(-written));
        return SUITE_NOT_TESTED;
    }
    return as_meant == count ? SUITE_PASSED : SUITE_FAILED;
}

enum suite_result sweep_bugs(const struct workload *const *workloads,
                             const struct strategy *strategy, unsigned jobs,
                             const char *json)
{
    size_t size = BUGS_MAX * sizeof(struct bug);
    struct bug *bugs =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (bugs == MAP_FAILED) {
        fputs("crashtest: no memory\n", stderr);
        return SUITE_NOT_TESTED;
    }
    size_t count = list_bugs(workloads, bugs);
    bool tried = try_all(bugs, count, strategy, jobs > 0 ? jobs : 2);
    enum suite_result result = tried ? report(bugs, count, json) : SUITE_NOT_TESTED;

    if (!tried)
        fprintf(stderr, "crashtest: cannot start processes: %s\n", strerror(errno));
    munmap(bugs, size);
    return result;
}
