/* SPDX-License-Identifier: BSD-3-Clause */
#include "crashtest/report.h"

#include <string.h>

#include "crashtest/source.h"

#define STORES_SHOWN 8

void report_coverage(const struct report *report, char *text, size_t size)
{
    const struct explore_count *count = &report->count;
    unsigned long long seen = count->states;

    if (report->is_sampled)
        snprintf(text, size, "sampled (%llu states; not all stores could be seen)",
                 seen);
    else if (report->failure)
        snprintf(text, size, "until the first failure (%llu states)", seen);
    else if (count->out_of_time)
        snprintf(text, size, "bounded (%llu states; out of time)", seen);
    else if (count->exact_points == count->points)
        snprintf(text, size, "exact");
    else
        snprintf(text, size, "bounded (%llu of %llu crash points in full)",
                 (unsigned long long)count->exact_points,
                 (unsigned long long)count->points);
}

static const char *name_of(const struct report *report, uint64_t operation)
{
    return operation < report->session->operation_count
               ? report->session->operations[operation]
               : "?";
}

void report_operation(const struct report *report, char *text, size_t size)
{
    const struct crash *crash = &report->failure->crash;

    if (crash->running != NO_OPERATION)
        snprintf(text, size, "\"%s\" was running, %llu had returned",
                 name_of(report, crash->running), (unsigned long long)crash->returned);
    else if (crash->returned > 0)
        snprintf(text, size, "\"%s\" had returned, %llu in all",
                 name_of(report, crash->returned - 1),
                 (unsigned long long)crash->returned);
    else
        snprintf(text, size, "none had begun");
}

void report_event(const struct trace *trace, size_t index, char *text, size_t size)
{
    static const char *const kinds[] = {
        [TRACE_STORE] = "the store", [TRACE_STREAM] = "the non-temporal store",
        [TRACE_FLUSH] = "the flush", [TRACE_CLFLUSH] = "the clflush",
        [TRACE_FENCE] = "the fence", [TRACE_BEGIN] = "the operation's beginning",
        [TRACE_END] = "its return"};
    char place[500];

    if (index >= trace->count) {
        snprintf(text, size, "the end");
        return;
    }
    const struct trace_event *event = &trace->events[index];

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
    report_event(trace, level->event, event, sizeof(event));
    snprintf(text, size, "%s %s", kinds[level->kind], event);
}

void report_crash(const struct report *report, char *text, size_t size)
{
    const struct failure *failure = report->failure;
    char nested[700] = "";

    describe_level(report->session->trace, &failure->place.levels[0], text, size);
    if (failure->place.levels[1].kind == PLACE_NONE)
        return;
    describe_level(failure->account.recovery, &failure->place.levels[1], nested,
                   sizeof(nested));
    size_t length = strlen(text);

    snprintf(text + length, size - length, "; then, in recovery: %s", nested);
}

/* ---- Text ------------------------------------------------------------------------ */

static void print_value(FILE *out, uint64_t value, uint8_t size)
{
    fprintf(out, "%0*llx", 2 * size, (unsigned long long)value);
}

static void print_store(FILE *out, const struct account_entry *entry)
{
    const struct trace_event *event = &entry->event;
    char place[500];

    source_describe(event, place, sizeof(place));
    fprintf(out, "  %-10s%s", entry->lost ? "lost" : "arrived", place);
    fprintf(out, ": %u byte%s at 0x%llx: ", event->size, event->size == 1 ? "" : "s",
            (unsigned long long)event->at);
    print_value(out, event->before, event->size);
    fputs(" -> ", out);
    print_value(out, event->after, event->size);
    if (event->unseen)
        fputs(", some time before this", out);
    fputc('\n', out);
}

static void print_stores(FILE *out, const struct account *account, bool lost)
{
    size_t shown = 0, all = 0;

    for (size_t i = 0; i < account->count; i++) {
        if (account->entries[i].lost != lost)
            continue;
        if (all++ < STORES_SHOWN) {
            print_store(out, &account->entries[i]);
            shown++;
        }
    }
    if (all > shown)
        fprintf(out, "  %-10sand %zu more\n", "", all - shown);
}

static void print_failure(const struct report *report, FILE *out)
{
    const struct failure *failure = report->failure;
    char text[1600];

    fprintf(out, "%s\n\n", failure->blame.headline);
    report_operation(report, text, sizeof(text));
    fprintf(out, "  operation %s\n", text);
    report_crash(report, text, sizeof(text));
    fprintf(out, "  crash     %s\n", text);
    fprintf(out, "  then      %s\n", failure->verdict.message);
    print_stores(out, &failure->account, true);
    print_stores(out, &failure->account, false);
    fprintf(out, "  hint      %s\n", failure->blame.hint);
    fprintf(out, "  again     %s --replay %s\n\n", report->command, failure->id);
}

static void print_unseen(const struct report *report, FILE *out)
{
    const struct session *session = report->session;

    if (session->unseen == 0)
        return;
    fprintf(out,
            "note: %llu words of PM were stored unseen by the tester, first at offset "
            "0x%llx%s%s%s.\n",
            (unsigned long long)session->unseen, (unsigned long long)session->unseen_at,
            session->unseen_in ? " in \"" : "",
            session->unseen_in ? session->unseen_in : "",
            session->unseen_in ? "\"" : "");
    fputs(session->is_blind ? "      Was the program compiled by crashtest-cc? It "
                              "shows no store at all.\n"
                            : "      Code that crashtest-cc did not compile stores to "
                              "PM: its stores are "
                              "known\n      only from flush to flush.\n",
          out);
}

static bool has_flushes(const struct trace *trace)
{
    for (size_t i = 0; i < trace->count; i++)
        if (trace->events[i].kind == TRACE_FLUSH ||
            trace->events[i].kind == TRACE_STREAM ||
            trace->events[i].kind == TRACE_CLFLUSH)
            return true;
    return false;
}

static void print_summary(const struct report *report, FILE *out)
{
    const struct explore_count *count = &report->count;
    char coverage[200];

    report_coverage(report, coverage, sizeof(coverage));
    fprintf(out,
            "%s: %s; %llu crash points, %llu states, %llu in recovery, %llu kills; "
            "%.2f s; coverage: %s\n",
            report->session->program->name, report->failure ? "FAILED" : "passed",
            (unsigned long long)count->points, (unsigned long long)count->states,
            (unsigned long long)count->nested, (unsigned long long)count->kills,
            report->seconds, coverage);
}

void report_text(const struct report *report, FILE *out)
{
    if (report->failure)
        print_failure(report, out);
    print_unseen(report, out);
    if (!has_flushes(report->session->trace))
        fputs("note: the program never flushes: nothing that it stores to PM is ever "
              "durable for sure.\n",
              out);
    if (!report->is_replay)
        print_summary(report, out);
    else if (!report->failure)
        fprintf(out, "%s: this state is right\n", report->session->program->name);
}
