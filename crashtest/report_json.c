/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "crashtest/report.h"
#include "crashtest/source.h"
#include "libminl2r/tools/utf8.h"

void report_json_string(FILE *out, const char *text)
{
    size_t length;

    fputc('"', out);
    for (; *text; text += length > 0 ? length : 1) {
        unsigned char c = (unsigned char)*text;

        length = utf8_length(text);
        if (length == 0) /* as where a program prints what it finds in PM */
            fputs("\\ufffd", out);
        else if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fwrite(text, 1, length, out);
    }
    fputc('"', out);
}

static void print_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "      \"%s\": ", name);
    report_json_string(out, text);
    fputs(",\n", out);
}

/* Where the program called libminl2r, if that did it. */
static void print_call(FILE *out, const struct trace_event *event)
{
    struct source source;

    if (event->outside == 0)
        return;
    source_of_program(event, &source);
    fputs(", \"call\": ", out);
    report_json_string(out, source.place);
    fputs(", \"call_function\": ", out);
    report_json_string(out, source.function);
}

static void print_store(FILE *out, const struct account_entry *entry, const char *comma)
{
    struct source source;

    source_of_event(&entry->event, &source);
    fputs("        {\"place\": ", out);
    report_json_string(out, source.place);
    fputs(", \"function\": ", out);
    report_json_string(out, source.function);
    print_call(out, &entry->event);
    fprintf(out,
            ", \"offset\": %llu, \"size\": %u, \"before\": \"%llx\", \"after\": "
            "\"%llx\", \"lost\": %s, \"in_recovery\": %s}%s\n",
            (unsigned long long)entry->event.at, entry->event.size,
            (unsigned long long)entry->event.before,
            (unsigned long long)entry->event.after, entry->lost ? "true" : "false",
            entry->level ? "true" : "false", comma);
}

static void print_turns(FILE *out, const struct failure *failure)
{
    char text[500];

    fprintf(out, "      \"seed\": %llu,\n      \"turns\": [",
            (unsigned long long)failure->seed);
    for (size_t i = 0; i < failure->turn_count; i++) {
        const struct report_turn *turn = &failure->turns[i];

        fprintf(out, "%s\n        {\"thread\": %u, \"operation\": ", i > 0 ? "," : "",
                turn->first.thread);
        report_json_string(out, turn->operation);
        fputs(", \"where\": ", out);
        report_turn(turn, text, sizeof(text));
        report_json_string(out, text);
        fputc('}', out);
    }
    fputs("],\n", out);
}

static void print_failure(FILE *out, const struct failure *failure)
{
    struct source culprit = {0};

    if (failure->blame.is_lost)
        source_of_event(&failure->blame.store, &culprit);
    fputs("    {\n", out);
    print_member(out, "workload", failure->workload);
    print_member(out, "id", failure->id);
    print_member(out, "kind", blame_name(failure->blame.kind));
    print_member(out, "headline", failure->blame.headline);
    print_member(out, "hint", failure->blame.hint);
    print_member(out, "culprit", culprit.place);
    print_member(out, "step", failure->verdict.step);
    print_member(out, "message", failure->verdict.message);
    print_member(out, "operation", failure->operation);
    print_member(out, "crash", failure->crash);
    if (failure->turn_count > 0)
        print_turns(out, failure);
    fputs("      \"stores\": [\n", out);
    for (size_t i = 0; i < failure->store_count; i++)
        print_store(out, &failure->stores[i], i + 1 < failure->store_count ? "," : "");
    fputs("      ]\n    }", out);
}

static void print_counts(FILE *out, const struct report_workload *workload,
                         const char *indent)
{
    const struct explore_count *count = &workload->count;
    const struct {
        const char *name;
        uint64_t value;
    } members[] = {
        {"programs", workload->programs},
        {"operations", workload->operations},
        {"points", count->points},
        {"all_points", count->all_points},
        {"exact_points", count->exact_points},
        {"states", count->states},
        {"nested_states", count->nested},
        {"kills", count->kills},
        {"runs", count->judged},
    };
    char coverage[200];

    report_coverage(workload, coverage, sizeof(coverage));
    fprintf(out, "%s\"workload\": ", indent);
    report_json_string(out, workload->name);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
        fprintf(out, ",\n%s\"%s\": %llu", indent, members[i].name,
                (unsigned long long)members[i].value);
    fprintf(out, ",\n%s\"coverage\": ", indent);
    report_json_string(out, coverage);
    fprintf(out, ",\n%s\"out_of_time\": %s", indent,
            count->out_of_time ? "true" : "false");
    fprintf(out, ",\n%s\"seconds\": %.3f", indent, workload->seconds);
}

static void print_workloads(FILE *out, const struct report *report)
{
    fputs("  \"workloads\": [", out);
    for (size_t i = 0; i < report->workload_count; i++) {
        fputs(i > 0 ? ",\n    {\n" : "\n    {\n", out);
        print_counts(out, &report->workloads[i], "      ");
        fprintf(out, ",\n      \"failures\": %zu\n    }",
                report->workloads[i].failures);
    }
    fputs("\n  ],\n", out);
}

static void print_schedules(FILE *out, const struct report *report)
{
    if (report->schedule_count == 0)
        return;
    fprintf(out, "  \"threads\": %u,\n  \"schedules\": [", report->threads);
    for (size_t i = 0; i < report->schedule_count; i++) {
        const struct report_schedule *order = &report->schedules[i];

        fprintf(out,
                "%s\n    {\"seed\": %llu, \"turns\": %llu, \"same_as\": %llu, "
                "\"tried\": %s, "
                "\"points\": %llu, \"states\": %llu, \"failures\": %zu}",
                i > 0 ? "," : "", (unsigned long long)order->seed,
                (unsigned long long)order->turns, (unsigned long long)order->same_as,
                order->is_tried ? "true" : "false",
                (unsigned long long)order->count.points,
                (unsigned long long)order->count.states, order->failures);
    }
    fputs("\n  ],\n", out);
}

static void print_warnings(FILE *out, const struct report *report)
{
    const struct lint_site *site;
    struct source source;
    enum lint_kind kind;
    size_t at = 0;
    const char *comma = "";

    fputs("  \"warnings\": [", out);
    while ((site = report_warning(report, &at, &kind))) {
        source_of_event(&site->event, &source);
        fprintf(out, "%s\n    {\"kind\": \"%s\", \"place\": ", comma, lint_name(kind));
        report_json_string(out, source.place);
        fputs(", \"function\": ", out);
        report_json_string(out, source.function);
        print_call(out, &site->event);
        fprintf(out, ", \"times\": %llu}", (unsigned long long)site->useless[kind]);
        comma = ",";
    }
    fputs(*comma ? "\n  ],\n" : "],\n", out);
}

/* Of the first workload that has some. */
static void print_unseen(FILE *out, const struct report *report)
{
    size_t i = 0;

    while (i < report->workload_count && report->workloads[i].unseen.words == 0)
        i++;
    if (i == report->workload_count)
        return;
    const struct report_unseen *unseen = &report->workloads[i].unseen;

    fprintf(out, "  \"unseen\": {\"words\": %llu, \"offset\": %llu, \"operation\": ",
            (unsigned long long)unseen->words, (unsigned long long)unseen->at);
    report_json_string(out, unseen->in);
    fputs("},\n", out);
}

static void print_report(FILE *out, const struct report *report)
{
    const struct report_workload total = report_total(report);

    fputs("{\n", out);
    print_counts(out, &total, "  ");
    fprintf(out, ",\n  \"strategy\": \"%s\",\n  \"seed\": %llu,\n",
            report->options->strategy->name, (unsigned long long)report->options->seed);
    print_unseen(out, report);
    print_workloads(out, report);
    print_schedules(out, report);
    print_warnings(out, report);
    fputs("  \"failures\": [", out);
    for (size_t i = 0; i < report->failure_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        print_failure(out, &report->failures[i]);
    }
    fputs(report->failure_count > 0 ? "\n  ]\n}\n" : "]\n}\n", out);
}

int report_json(const struct report *report, const char *path)
{
    FILE *out = fopen(path, "w");

    if (!out)
        return -errno;
    print_report(out, report);
    return report_close(out);
}
