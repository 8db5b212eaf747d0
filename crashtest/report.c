/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/report.h"

#include <errno.h>
#include <string.h>

#include "crashtest/source.h"

#define STORES_SHOWN 8
#define WARNINGS_SHOWN 5
#define TURNS_SHOWN 4

struct report_workload report_total(const struct report *report)
{
    struct report_workload total = {0};

    snprintf(total.name, sizeof(total.name), "%s", report->name);
    for (size_t i = 0; i < report->workload_count; i++) {
        const struct report_workload *workload = &report->workloads[i];

        explore_count_add(&total.count, &workload->count);
        total.programs += workload->programs;
        total.operations += workload->operations;
        total.is_sampled |= workload->is_sampled;
        total.failures += workload->failures;
    }
    total.seconds = report->seconds;
    return total;
}

static bool is_exact_in_recovery(const struct explore_count *count)
{
    return count->exact_nested_points == count->nested_points &&
           !count->nested_is_bounded;
}

bool report_is_exact(const struct report_workload *workload)
{
    const struct explore_count *count = &workload->count;

    return !workload->is_sampled && !count->is_stopped && !count->out_of_time &&
           count->exact_points == count->points && is_exact_in_recovery(count);
}

void report_coverage(const struct report_workload *workload, char *text, size_t size)
{
    const struct explore_count *count = &workload->count;
    unsigned long long seen = count->states;

    if (workload->is_sampled)
        snprintf(text, size, "sampled (%llu states; not all stores could be seen%s)",
                 seen, count->out_of_time ? "; out of time" : "");
    else if (count->is_stopped)
        snprintf(text, size, "until enough was wrong (%llu states)", seen);
    else if (count->out_of_time)
        snprintf(text, size, "bounded (%llu states; out of time)", seen);
    else if (count->exact_points < count->points)
        snprintf(text, size, "bounded (%llu of %llu crash points in full)",
                 (unsigned long long)count->exact_points,
                 (unsigned long long)count->points);
    else if (is_exact_in_recovery(count))
        snprintf(text, size, "exact");
    else
        snprintf(text, size, "exact; in recovery: bounded (%llu of %llu crash points)",
                 (unsigned long long)count->exact_nested_points,
                 (unsigned long long)count->nested_points);
}

void report_event(const struct trace_event *event, char *text, size_t size)
{
    static const char *const kinds[] = {
        [TRACE_STORE] = "the store", [TRACE_STREAM] = "the non-temporal store",
        [TRACE_FLUSH] = "the flush", [TRACE_CLFLUSH] = "the clflush",
        [TRACE_FENCE] = "the fence", [TRACE_BEGIN] = "the operation's beginning",
        [TRACE_END] = "its return"};
    char place[500];

    if (event->kind >= TRACE_BEGIN) {
        snprintf(text, size, "%s", kinds[event->kind]);
        return;
    }
    source_describe(event, place, sizeof(place));
    snprintf(text, size, "%s at %s", kinds[event->kind], place);
}

static bool follows_return(const struct trace *trace, const struct place_level *level)
{
    return level->kind == PLACE_POWER && level->event > 0 &&
           trace->events[level->event - 1].kind == TRACE_END;
}

static void describe_level(const struct trace *trace, const struct place_level *level,
                           char *text, size_t size)
{
    static const char *const kinds[] = {[PLACE_NONE] = "",
                                        [PLACE_POWER] = "power failure before",
                                        [PLACE_KILLED] = "process killed after",
                                        [PLACE_SAVED] = "power failure after"};
    char event[600];

    if (follows_return(trace, level)) {
        snprintf(text, size, "power failure after its return");
        return;
    }
    snprintf(event, sizeof(event), "the end");
    if (level->event < trace->count)
        report_event(&trace->events[level->event], event, sizeof(event));
    snprintf(text, size, "%s %s", kinds[level->kind], event);
}

void report_place(const struct trace *trace, const struct trace *recovery,
                  const struct place *place, char *text, size_t size)
{
    char nested[700] = "";

    describe_level(trace, &place->levels[0], text, size);
    if (place->levels[1].kind == PLACE_NONE)
        return;
    describe_level(recovery, &place->levels[1], nested, sizeof(nested));
    size_t length = strlen(text);

    snprintf(text + length, size - length, "; then, in recovery: %s", nested);
}

/* ---- Text ------------------------------------------------------------------------ */

static void print_value(FILE *out, uint64_t value, uint8_t size)
{
    fprintf(out, "%0*llx", 2 * size, (unsigned long long)value);
}

static void print_store(FILE *out, const struct account_entry *entry, bool names_thread)
{
    const struct trace_event *event = &entry->event;
    char place[500];

    source_describe(event, place, sizeof(place));
    fprintf(out, "  %-10s%s", entry->lost ? "lost" : "arrived", place);
    if (names_thread)
        fprintf(out, ", thread %u", event->thread);
    fprintf(out, ": %u byte%s at 0x%llx: ", event->size, event->size == 1 ? "" : "s",
            (unsigned long long)event->at);
    print_value(out, event->before, event->size);
    fputs(" -> ", out);
    print_value(out, event->after, event->size);
    if (event->unseen)
        fputs(", some time before this", out);
    fputc('\n', out);
}

static void print_stores(FILE *out, const struct failure *failure, bool lost)
{
    size_t shown = 0, all = 0;

    for (size_t i = 0; i < failure->store_count; i++) {
        if (failure->stores[i].lost != lost)
            continue;
        if (all++ < STORES_SHOWN) {
            print_store(out, &failure->stores[i], failure->turn_count > 0);
            shown++;
        }
    }
    if (all > shown)
        fprintf(out, "  %-10sand %zu more\n", "", all - shown);
}

void report_turn(const struct report_turn *turn, char *text, size_t size)
{
    struct source first, last;

    if (turn->first.kind >= TRACE_BEGIN) {
        snprintf(text, size, "%s",
                 turn->first.kind == TRACE_BEGIN ? "begins" : "returns");
        return;
    }
    source_of_program(&turn->first, &first);
    source_of_program(&turn->last, &last);
    bool is_one = strcmp(first.place, last.place) == 0;

    snprintf(text, size, "%s%s%s", first.place, is_one ? "" : " to ",
             is_one ? "" : last.place);
    size_t length = strlen(text);

    if (turn->stores > 0)
        snprintf(text + length, size - length, ", %zu store%s", turn->stores,
                 turn->stores == 1 ? "" : "s");
}

/* The newest ones come last. */
static void print_turns(const struct failure *failure, FILE *out)
{
    size_t shown =
        failure->turn_count < TURNS_SHOWN ? failure->turn_count : TURNS_SHOWN;
    char text[500];

    for (size_t i = failure->turn_count - shown; i < failure->turn_count; i++) {
        const struct report_turn *turn = &failure->turns[i];
        bool has_operation = turn->operation[0] != 0;

        report_turn(turn, text, sizeof(text));
        fprintf(out, "  %-10sthread %u%s%s%s: %s\n",
                i + shown == failure->turn_count ? "turns" : "", turn->first.thread,
                has_operation ? " in \"" : "", turn->operation,
                has_operation ? "\"" : "", text);
    }
}

static void print_failure(const struct report *report, const struct failure *failure,
                          FILE *out)
{
    fprintf(out, "%s\n\n", failure->blame.headline);
    fprintf(out, "  operation %s\n", failure->operation);
    print_turns(failure, out);
    fprintf(out, "  crash     %s\n", failure->crash);
    fprintf(out, "  then      %s\n", failure->verdict.message);
    print_stores(out, failure, true);
    print_stores(out, failure, false);
    fprintf(out, "  hint      %s\n", failure->blame.hint);
    fprintf(out, "  again     %s --replay %s\n\n", report->command, failure->id);
}

void report_unseen(const struct report_unseen *unseen, char *text, size_t size)
{
    snprintf(text, size,
             "%llu word%s of PM %s stored unseen by the tester, first at offset "
             "0x%llx%s%s%s.",
             (unsigned long long)unseen->words, unseen->words == 1 ? "" : "s",
             unseen->words == 1 ? "was" : "were", (unsigned long long)unseen->at,
             unseen->in[0] ? " in \"" : "", unseen->in, unseen->in[0] ? "\"" : "");
}

static void print_unseen(const struct report_unseen *unseen, FILE *out)
{
    char text[200];

    if (unseen->words == 0)
        return;
    report_unseen(unseen, text, sizeof(text));
    fprintf(out, "note: %s\n", text);
    fputs(unseen->is_blind
              ? "      Was the program compiled by crashtest-cc? It "
                "shows no store at all.\n"
              : "      A library that crashtest-cc did not compile, a "
                "system call, or inline assembly\n      stores to PM: what "
                "it stores is known only from flush to flush.\n",
          out);
}

/* What it may explain comes after it. */
static void print_all_unseen(const struct report *report, FILE *out)
{
    bool is_any = false;

    for (size_t i = 0; i < report->workload_count; i++) {
        print_unseen(&report->workloads[i].unseen, out);
        is_any |= report->workloads[i].unseen.words > 0;
    }
    if (is_any && report->failure_count > 0)
        fputs("      What follows may come of that: such code may have flushed, "
              "unseen, too.\n\n",
              out);
}

static void print_notes(const struct report_workload *workload, FILE *out)
{
    if (workload->never_flushes)
        fputs("note: the program never flushes: nothing that it stores to PM is ever "
              "durable for sure.\n",
              out);
}

const struct lint_site *report_warning(const struct report *report, size_t *at,
                                       enum lint_kind *kind)
{
    while (report->lint && *at < report->lint->count) {
        const struct lint_site *site = &report->lint->sites[(*at)++];

        if (lint_is_useless(site, kind))
            return site;
    }
    return NULL;
}

static void print_warnings(const struct report *report, FILE *out)
{
    const struct lint_site *site;
    enum lint_kind kind;
    char place[500];
    size_t at = 0, shown = 0;

    while (shown < WARNINGS_SHOWN && (site = report_warning(report, &at, &kind))) {
        source_describe(&site->event, place, sizeof(place));
        fprintf(out, "warning: %s: %s (%llu time%s)\n", place, lint_says(kind),
                (unsigned long long)site->useless[kind],
                site->useless[kind] == 1 ? "" : "s");
        shown++;
    }
    if (shown == WARNINGS_SHOWN && report_warning(report, &at, &kind))
        fputs("warning: there are more; see --json or --html\n", out);
}

size_t report_orders(const struct report *report)
{
    size_t count = 0;

    for (size_t i = 0; i < report->schedule_count; i++)
        count += report->schedules[i].same_as == 0;
    return count;
}

static void print_summary(const struct report *report,
                          const struct report_workload *workload, FILE *out)
{
    const struct explore_count *count = &workload->count;
    char coverage[200];

    report_coverage(workload, coverage, sizeof(coverage));
    fprintf(out, "%s: %s; ", workload->name,
            workload->failures   ? "FAILED"
            : count->out_of_time ? "nothing found, out of time"
                                 : "passed");
    if (workload->programs > 1)
        fprintf(out, "%llu programs, ", (unsigned long long)workload->programs);
    if (report->schedule_count > 0)
        fprintf(out, "%u threads in %zu orders, %zu different; ", report->threads,
                report->schedule_count, report_orders(report));
    if (count->out_of_time)
        fprintf(out, "%llu of ", (unsigned long long)count->points);
    fprintf(out,
            "%llu crash points, %llu states, %llu in recovery, %llu kills; "
            "%.2f s; coverage: %s\n",
            (unsigned long long)count->all_points, (unsigned long long)count->states,
            (unsigned long long)count->nested, (unsigned long long)count->kills,
            workload->seconds, coverage);
}

static void print_summaries(const struct report *report, FILE *out)
{
    const struct report_workload total = report_total(report);

    if (report->workload_count > 1)
        for (size_t i = 0; i < report->workload_count; i++)
            print_summary(report, &report->workloads[i], out);
    print_summary(report, &total, out);
}

void report_text(const struct report *report, FILE *out)
{
    print_all_unseen(report, out);
    for (size_t i = 0; i < report->failure_count; i++)
        print_failure(report, &report->failures[i], out);
    for (size_t i = 0; i < report->workload_count; i++)
        print_notes(&report->workloads[i], out);
    if (!report->is_replay) {
        print_summaries(report, out);
        print_warnings(report, out);
    } else if (report->failure_count == 0) {
        fprintf(out, "%s: this state is right\n", report->name);
    }
}

int report_close(FILE *out)
{
    bool bad = ferror(out);

    errno = 0;
    bad = fclose(out) != 0 || bad;
    if (!bad)
        return 0;
    return errno ? -errno : -EIO;
}
