/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "crashtest/report.h"
#include "crashtest/source.h"

static void print_string(FILE *out, const char *text)
{
    fputc('"', out);
    for (; *text; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void print_member(FILE *out, const char *name, const char *text)
{
    fprintf(out, "      \"%s\": ", name);
    print_string(out, text);
    fputs(",\n", out);
}

static void print_store(FILE *out, const struct account_entry *entry, const char *comma)
{
    struct source source;

    source_of_event(&entry->event, &source);
    fputs("        {\"place\": ", out);
    print_string(out, source.place);
    fputs(", \"function\": ", out);
    print_string(out, source.function);
    fprintf(out,
            ", \"offset\": %llu, \"size\": %u, \"before\": \"%llx\", \"after\": "
            "\"%llx\", \"lost\": %s, \"in_recovery\": %s}%s\n",
            (unsigned long long)entry->event.at, entry->event.size,
            (unsigned long long)entry->event.before,
            (unsigned long long)entry->event.after, entry->lost ? "true" : "false",
            entry->level ? "true" : "false", comma);
}

static void print_failure(FILE *out, const struct report *report)
{
    const struct failure *failure = report->failure;
    struct source culprit = {0};
    char text[1600];

    if (failure->blame.culprit)
        source_of_event(&failure->blame.culprit->event, &culprit);
    fputs("    {\n", out);
    print_member(out, "id", failure->id);
    print_member(out, "kind", blame_name(failure->blame.kind));
    print_member(out, "headline", failure->blame.headline);
    print_member(out, "hint", failure->blame.hint);
    print_member(out, "culprit", culprit.place);
    print_member(out, "step", failure->verdict.step);
    print_member(out, "message", failure->verdict.message);
    report_operation(report, text, sizeof(text));
    print_member(out, "operation", text);
    report_crash(report, text, sizeof(text));
    print_member(out, "crash", text);
    fputs("      \"stores\": [\n", out);
    for (size_t i = 0; i < failure->account.count; i++)
        print_store(out, &failure->account.entries[i],
                    i + 1 < failure->account.count ? "," : "");
    fputs("      ]\n    }\n", out);
}

static void print_report(FILE *out, const struct report *report)
{
    const struct explore_count *count = &report->count;
    char coverage[200];

    report_coverage(report, coverage, sizeof(coverage));
    fputs("{\n  \"workload\": ", out);
    print_string(out, report->session->program->name);
    fprintf(out, ",\n  \"operations\": %zu,\n  \"points\": %llu,\n",
            report->session->operation_count, (unsigned long long)count->points);
    fprintf(out, "  \"exact_points\": %llu,\n  \"states\": %llu,\n",
            (unsigned long long)count->exact_points, (unsigned long long)count->states);
    fprintf(out, "  \"nested_states\": %llu,\n  \"kills\": %llu,\n  \"runs\": %llu,\n",
            (unsigned long long)count->nested, (unsigned long long)count->kills,
            (unsigned long long)count->judged);
    fprintf(out, "  \"strategy\": \"%s\",\n  \"seed\": %llu,\n",
            report->options->strategy->name, (unsigned long long)report->options->seed);
    fputs("  \"coverage\": ", out);
    print_string(out, coverage);
    fprintf(out, ",\n  \"seconds\": %.3f,\n  \"failures\": [\n", report->seconds);
    if (report->failure)
        print_failure(out, report);
    fputs("  ]\n}\n", out);
}

int report_json(const struct report *report, const char *path)
{
    FILE *out = fopen(path, "w");

    if (!out)
        return -errno;
    print_report(out, report);
    return fclose(out) == 0 ? 0 : -errno;
}
